//! Everything that outlasts a restart, in one SQLite file (`state.db` in the state directory).
//! [`StateStore`] takes facts to write; a fact is a record that was set or removed. [`Remembered`]
//! has the records that the previous run (the process before) left.
//!
//! A store is in one of these states, which [`StoreHealth`] names:
//! - `Healthy`: the last commit succeeded. A commit that fails moves it to `Failing`.
//! - `Failing`: facts wait in memory, and a commit is tried about every second. One that succeeds
//!   moves it to `Healthy`.
//! - `NoDirectory` and `Unusable`: nothing is ever written. A store in one of these states stays in
//!   it.
//!
//! What the next start may believe rests on these rules:
//! - The time of the commit stands in the same transaction as the facts before it. Facts that
//!   cannot be written leave the time old, and the next start sees a gap.
//! - Until [`StateStore::begin`] the time of the previous run stays. The facts that follow from the
//!   end of that run are in the same transaction as the first time of this run.
//! - [`StateStore::publish`] succeeds when its facts are on the disk, or when the next start will
//!   see a gap anyway.
//! - Facts that were dropped, because too many waited, make the run incomplete. The next start then
//!   trusts nothing of this run.

#[cfg(feature = "proxy")]
mod backup;
#[cfg(feature = "state")]
mod database;
mod health;
pub mod history;
#[cfg(feature = "state")]
mod lock;
#[cfg(not(feature = "state"))]
mod no_store;
mod previous_run;
#[cfg(feature = "state")]
mod queue;
#[cfg(feature = "state")]
mod store;
#[cfg(feature = "state")]
mod tables;
#[cfg(test)]
#[cfg(feature = "state")]
mod tests;
#[cfg(feature = "state")]
mod writer;

#[cfg(feature = "proxy")]
pub use backup::back_up;
pub use health::{StateError, StoreHealth};
#[cfg(feature = "state")]
pub use lock::{Locking, ProcessLock};
#[cfg(not(feature = "state"))]
pub use no_store::StateStore;
pub use previous_run::{PreviousRun, Remembered};
#[cfg(feature = "state")]
pub use store::StateStore;
