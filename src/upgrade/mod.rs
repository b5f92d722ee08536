//! The hand-over from a running process to the next one, another binary or other settings among them, so that no request
//! fails. [`NextProcess`] is the next process as the running one sees it, [`Successor`] the running one as the next sees it.
//! [`Inherited`] are listeners that another process has bound.
//!
//! An upgrade is in one of these steps (`docs/deploy.md`):
//! 1. *Starting*: the next process checks settings, policies, certificates and state. It says that it is ready.
//! 2. *Passing*: the running process closes the state directory and passes its listeners, its locks, and what it remembers
//!    outside of that directory. It still accepts and answers; what robots.txt it serves it tells the next one.
//! 3. *Opening*: the next process opens everything in a transaction that is not committed, and is told to go. It commits
//!    and accepts connections. Both processes accept now.
//! 4. *Leaving*: the process before accepts no connection any more. Each of its connections ends with its next response.
//!
//! Until the end of step 3 a failure leads back: the next process is ended, and the running one opens the state again.

mod channel;
mod inherited;
mod messages;
mod next_process;
mod program;
mod successor;

pub use channel::Channel;
pub use inherited::Inherited;
pub use messages::{FromPredecessor, FromSuccessor, Memory, PassedListener};
pub use next_process::{Handed, NextProcess, Running, UpgradeError};
pub use program::Program;
pub use successor::{Predecessor, Successor, SuccessorError, Taken};
