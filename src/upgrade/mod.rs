//! An upgrade: the running process passes its listeners and its state to the next process, which
//! may be another binary or have other settings. No request fails. [`NextProcess`] is the side of
//! the running process, [`PendingTakeover`] the side of the next one. [`InheritedListeners`] holds
//! listeners that are bound already.
//!
//! An upgrade has these steps (`docs/deploy.md`):
//! 1. *Starting*: the next process checks settings, policies, certificates and state. Then it
//!    reports that it is ready.
//! 2. *Passing*: the running process closes the state directory, and passes its listeners and the
//!    locks of the state directory and the control socket. It still accepts connections and
//!    answers requests. It tells the next process about each robots.txt that it serves.
//! 3. *Opening*: the next process opens everything in a transaction that is not committed. When the
//!    running process allows it, the next process commits the transaction and accepts connections.
//!    Now both processes accept connections.
//! 4. *Leaving*: the running process, now the previous one, accepts no connections any more. Each
//!    of its connections ends with its next response.
//!
//! A failure before the end of step 3 undoes the upgrade: the running process ends the next one and
//! opens the state again.

mod channel;
mod inherited;
mod messages;
mod next_process;
mod successor;

pub use channel::ProcessChannel;
pub use inherited::InheritedListeners;
pub use messages::{HandedOverListener, PredecessorMessage, SuccessorMessage};
pub use next_process::{HandedOverState, NextProcess, OwnCommandLine, UpgradeError};
pub use successor::{PendingTakeover, Predecessor, SuccessorError, TakenOverState};
