//! An upgrade: the running process passes its listeners and its state to the next process, which
//! may be another binary or have other settings. No request fails. [`NextProcess`] is the part of
//! the running process, [`Successor`] that of the next one. [`Inherited`] holds listeners that are
//! bound already.
//!
//! An upgrade is in one of these steps (`docs/deploy.md`):
//! 1. *Starting*: the next process checks settings, policies, certificates and state. It says that
//!    it is ready.
//! 2. *Passing*: the running process closes the state directory and passes its listeners, its
//!    locks, and what it remembers outside of that directory. It still accepts connections and
//!    answers requests. It tells the next process each robots.txt that it serves.
//! 3. *Opening*: the next process opens everything in a transaction that is not committed, and is
//!    told to go. It commits and accepts connections. Both processes accept now.
//! 4. *Leaving*: the previous process accepts no connection any more. Each of its connections ends
//!    with its next response.
//!
//! A failure before the end of step 3 undoes the upgrade: the running process ends the next one and
//! opens the state again.

mod channel;
mod inherited;
mod messages;
mod next_process;
mod successor;

pub use channel::Channel;
pub use inherited::Inherited;
pub use messages::{FromPredecessor, FromSuccessor, Memory, PassedListener};
pub use next_process::{Handed, NextProcess, Program, UpgradeError};
pub use successor::{Predecessor, Successor, SuccessorError, Taken};
