//! Other instances of crawlgate in front of the same sites, as the core knows them: their status for
//! operators ([`ExchangeStatus`]), what operators ask of them ([`Peers`]), and what requests read of
//! them ([`Gauge`]). An exchange of facts implements it; without one an instance has no peers.

mod member;

pub use member::{Identity, Member, Position, Standing};

use crate::state::history::{Step, Told};
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

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

/// What operators ask of the other instances.
pub trait Peers: Send + Sync {
    /// The status. Does not wait for the shared store.
    fn status(&self) -> ExchangeStatus;

    /// Takes an instance for gone that will not come back.
    ///
    /// # Errors
    /// See [`ForgetError`].
    fn forget(&self, id: &str) -> Result<(), ForgetError>;

    /// The counts of the other instances, for each period of `step` since `from`.
    ///
    /// # Errors
    /// The shared store does not answer.
    fn counts(&self, step: Step, from: Timestamp) -> Result<Vec<Told>, CountsError>;
}

/// Why there are no counts of other instances.
pub type CountsError = Box<dyn Error + Send + Sync>;

/// Why an instance cannot be taken for gone.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ForgetError {
    /// No other instance has this id.
    #[error("no other instance has the id `{0}`; `crawlgate instances` lists them")]
    UnknownInstance(String),
    /// The store takes long.
    #[error("the store has not answered yet what it was asked before")]
    Busy,
}

/// What requests read of the exchange, without a lock.
#[derive(Debug, Default)]
pub struct Gauge {
    /// The number of the next entry: what happens before it is gathered is in it.
    pub next_entry: AtomicU64,
    /// Until when this instance may answer `/robots.txt`, in seconds by its own clock.
    pub speaks_until: AtomicI64,
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
