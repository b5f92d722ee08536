//! The exchange of facts between several crawlgate instances in front of the same sites, such as
//! which crawler fetched which robots.txt. Without the exchange, a crawler could fetch robots.txt
//! from one instance, and another instance could judge the crawler wrongly.
//!
//! [`Exchange`] writes the facts of this instance to a shared store, and reads the facts of its
//! peers (the other instances). [`ExchangeThread`] calls it several times a second.
//! [`ExchangeStore`] is the trait of the store, and `shared_store` implements it with Redis or
//! Valkey. If several [`SharedFact`]s have the same key, the latest one counts, so facts may arrive
//! in any order and more than once.

pub mod codec;
pub mod fact;
mod instance;
mod members;
mod operator_commands;
mod outbox;
mod own_publications;
pub mod shared_store;
pub mod store;
#[cfg(test)]
pub(crate) mod tests;
mod thread;
#[cfg(test)]
mod thread_tests;

pub use crate::peers::{
    CONFIRM_TIMEOUT, ExchangeProgress, ExchangeStatus, ExchangeTotals, LogPosition,
    MAX_CLOCK_OFFSET, MAX_STORE_OUTAGE, MEMBER_GONE_AFTER, Member, MemberState, MemberStatus,
    NoAccusationReason, ObservationRestart, StoreIdentity, StoreOutage,
};
pub use codec::StoreClockOffset;
use fact::MergedFacts;
pub use fact::SharedFact;
pub use instance::{Exchange, ExchangeTime, LocalFacts, PreviousMembership};
pub use outbox::FactOutbox;
pub use store::{
    ExchangeStore, LogEntry, LogReadResult, StoreBatch, StoreContents, StoreDeadline, StoreError,
};
pub use thread::{ExchangeOptions, ExchangeThread};

use std::time::Duration;

/// How often an instance writes and reads.
pub const TURN_INTERVAL: Duration = Duration::from_millis(200);
/// An instance writes an entry this often, even if there is nothing to report.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// How often the clock of the store is read.
pub const CLOCK_INTERVAL: Duration = Duration::from_secs(10);
/// How long facts are kept in the store. No robots.txt is cached for longer.
pub const FACT_RETENTION: Duration = Duration::from_secs(32 * 86_400);
/// The longest key of a fact, and the longest member as text, in bytes. No instance writes longer
/// ones: hosts have at most 253 bytes, names of sites and crawlers fewer.
const MAX_NAME: usize = 4 * 1024;
/// The version of the format of entries and facts.
pub const FACT_SCHEMA: u32 = 2;

/// The key of the fact that an operator declared an instance gone.
fn gone_key(instance: &str) -> String {
    format!("gone\n{instance}")
}

/// Converts a duration to whole seconds.
fn whole_seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
