//! The exchange of facts between several instances in front of one site. With it, a crawler that
//! fetched robots.txt from one instance is judged rightly by another. The instances write facts to
//! a shared store and read those of the others. [`Store`] is the trait for that store;
//! `shared_store` implements it with Redis or Valkey, and tests have one in memory. Of
//! [`SharedFact`]s with one key the latest counts, so order and repetition do not matter.

pub mod codec;
pub mod fact;
mod instance;
mod members;
mod orders;
mod outbox;
mod own_log;
pub mod store;
#[cfg(test)]
pub(crate) mod tests;
mod thread;
#[cfg(test)]
mod thread_tests;

pub use crate::peers::{
    Away, BegunAnew, CLOCK_ACCUSES_NOT, CONFIRM_WITHIN, ExchangeStatus, GONE_AFTER, Gauge,
    Hindrance, Identity, Member, MemberStatus, Position, SILENT_AFTER, Standing, Totals,
};
pub use codec::Clocks;
use fact::Merged;
pub use fact::SharedFact;
pub use instance::{Before, Exchange, Memory, Now};
pub use outbox::Outbox;
pub use store::{Batch, Deadline, Entry, LogRead, Sets, Store, StoreError, Written};
pub use thread::{ExchangeOptions, ExchangeThread};

use std::time::Duration;

/// How often an instance writes and reads.
pub const TURN: Duration = Duration::from_millis(200);
/// An instance writes an entry this often, also when there is nothing to tell.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// How often the clock of the store is asked for.
pub const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// For so long facts are kept in the store. No robots.txt is cached for longer.
pub const KEPT: Duration = Duration::from_secs(32 * 86_400);
/// The form of entries and facts.
pub const SCHEMA: u32 = 2;

/// The key of the word of an operator that an instance is gone.
fn gone_key(instance: &str) -> String {
    format!("gone\n{instance}")
}

/// A time in seconds.
fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
