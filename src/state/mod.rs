//! The state store: everything that outlasts a restart, in one SQLite file (`state.db` in the state
//! directory). [`StateStore`] writes facts (such as which robots.txt a crawler was served), and
//! [`RestoredState`] has the facts that the previous run left. A run is the time from a start of
//! crawlgate to its end. [`history`] has the request counts and samples for the dashboard.
//!
//! A store is in one of these states, which [`StoreHealth`] names:
//! - `Healthy`: the last commit succeeded. A failed commit moves it to `Failing`.
//! - `Failing`: facts wait in memory, and a commit is tried about every second. A successful one
//!   moves it to `Healthy`.
//! - `NoDirectory` and `Unusable`: nothing is ever written. These states never change.
//!
//! What the next start may trust follows from these rules:
//! - The time of a commit is in the same transaction as its facts. If facts cannot be written, the
//!   stored time does not change. The next start then sees a gap: a time from which facts may be
//!   missing.
//! - Until [`StateStore::begin`] is called, the stored time is that of the previous run.
//!   [`StateStore::begin`] writes the first time of this run. The same transaction has the facts
//!   that follow from the end of the previous run, such as a crash.
//! - [`StateStore::publish`] succeeds when its facts are on disk, or when the next start will see a
//!   gap anyway.
//! - If facts were dropped because too many waited, the run is incomplete, and the next start
//!   trusts nothing of it.

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
pub use lock::{LockOutcome, ProcessLock, name_owner};
#[cfg(not(feature = "state"))]
pub use no_store::StateStore;
pub use previous_run::{PreviousRun, RestoredState};
#[cfg(feature = "state")]
pub use store::StateStore;
