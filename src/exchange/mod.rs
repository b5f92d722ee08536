//! The exchange of facts between several instances in front of one site. With it, a crawler that
//! fetched robots.txt from one instance is judged rightly by another. The instances write facts to
//! a shared store and read those of the others. [`Store`] is the trait for that store;
//! `shared_store` implements it with Redis or Valkey, and tests have one in memory. Of
//! [`SharedFact`]s with one key the latest counts, so order and repetition do not matter.

pub mod codec;
pub mod fact;
mod instance;
mod member;
mod members;
mod orders;
mod outbox;
mod own_log;
pub mod store;
#[cfg(test)]
pub(crate) mod tests;

pub use codec::Clocks;
use fact::Merged;
pub use fact::SharedFact;
pub use instance::{Before, Exchange, Gauge, Memory, Now};
pub use member::{Identity, Member, Position, Standing};
pub use outbox::Outbox;
pub use store::{Batch, Deadline, Entry, LogRead, Sets, Store, StoreError, Written};

use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often an instance writes and reads.
pub const TURN: Duration = Duration::from_millis(200);
/// An instance writes an entry this often, also when there is nothing to tell.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// How often the clock of the store is asked for.
pub const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// A clock that is further off than this is worth a warning.
pub const CLOCK_WARNS: Duration = Duration::from_secs(1);
/// While the own clock is further off than this, no crawler is accused.
pub const CLOCK_ACCUSES_NOT: Duration = Duration::from_secs(5);
/// For so long the record of a violation waits for the other instances; then it is `unproven`.
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// An instance that has not reached the store for so long answers `/robots.txt` with 503.
pub const SILENT_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// Others take a member that has been silent for so long as gone.
pub const GONE_AFTER: Duration = Duration::from_secs(25 * 3_600);
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

/// The status of the exchange: for `crawlgate status`, metrics and the dashboard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangeStatus {
    /// The id of this instance.
    pub id: String,
    /// All members, this one included.
    pub members: Vec<MemberStatus>,
    /// Since when the store cannot be reached, with what was said then. `None` while it can.
    pub away: Option<Away>,
    /// Milliseconds by which the own clock is ahead of the store's. `None` before it was asked for.
    pub clock_ahead_ms: Option<i64>,
    /// Since when `/robots.txt` is answered with 503: this run never reached the store, or not for
    /// a day.
    #[serde(serialize_with = "rfc3339")]
    pub withholds_robots_txt_since: Option<Timestamp>,
    /// When this run began to observe anew, if it did.
    pub begun_anew: Option<BegunAnew>,
    /// Why no crawler is accused at the moment. `None` while crawlers are.
    pub accuses_not: Option<Hindrance>,
    /// Since when a change of robots.txt waits until the store has taken its announcement.
    #[serde(serialize_with = "rfc3339")]
    pub announcement_waits_since: Option<Timestamp>,
    /// Facts that wait to be written.
    pub facts_waiting: usize,
    /// Records of violations that wait to be confirmed.
    pub records_waiting: usize,
    /// Facts written and read, records confirmed and not, and starts over, since the start of the
    /// process.
    pub totals: Totals,
}

/// Counters since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Facts that were written.
    pub facts_written: u64,
    /// Facts of other instances that were read.
    pub facts_read: u64,
    /// Violations that every member confirmed.
    pub confirmed: u64,
    /// Accusations that another instance's facts took back.
    pub refuted: u64,
    /// Accusations that were not confirmed in time, or that there was no room for.
    pub unconfirmed: u64,
    /// Turns in which the store could not be reached.
    pub failures: u64,
    /// How often the store was another one, or had lost facts.
    pub started_over: u64,
}

/// The store cannot be reached, or not be used as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// Since when.
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// What the last try ended with.
    pub error: String,
    /// Whether it answered, and cannot be used as it is.
    pub is_refused: bool,
}

/// What crawlers were served before is not known: the store was another one than before, and no
/// instance that was there all that time shares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunAnew {
    /// Since when observation goes on.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Until when crawlers may use copies from before.
    #[serde(serialize_with = "rfc3339")]
    pub until: Timestamp,
}

/// A member as others see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its entry.
    pub member: Member,
    /// Its state.
    pub standing: Standing,
    /// Seconds since it last reported.
    pub lag: f64,
    /// Whether it has the same policies as this instance.
    pub same_policies: bool,
    /// Whether it tells crawlers apart as this instance does.
    pub same_crawlers: bool,
}

/// Why no crawler is accused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hindrance {
    /// The store cannot be reached, was never reached, or cannot be used.
    StoreAway,
    /// The store lost facts, and some member has not yet written again what it knows.
    StartingOver,
    /// The own clock is too far from the store's.
    Clock,
    /// A member has not been heard of.
    MemberSilent,
}
