//! The interface to peers: the other instances of crawlgate in front of the same sites.
//! [`ExchangeStatus`] shows operators the state of all instances, and [`Peers`] has what operators
//! can do with peers. [`ExchangeProgress`] has what crawlgate reads about peers while it handles a
//! request. The module `exchange` implements this interface by means of a shared store. If
//! crawlgate is built without `exchange`, an instance has no peers.

mod member;

pub use member::{LogPosition, Member, MemberState, StoreIdentity};

use crate::state::history::{PeerPeriodCounts, PeriodLength};
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

/// A clock that is off by more than this is reported.
pub const CLOCK_WARNING_OFFSET: Duration = Duration::from_secs(1);
/// While the own clock is off by more than this, no crawler is accused.
pub const MAX_CLOCK_OFFSET: Duration = Duration::from_secs(5);
/// How long the record of a violation waits for confirmation by peers. Then it is `unproven`.
pub const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
/// After this long without the store an instance answers `/robots.txt` with 503.
pub const MAX_STORE_OUTAGE: Duration = Duration::from_secs(24 * 3_600);
/// A member that was silent for this long counts as gone. Longer than `MAX_STORE_OUTAGE`.
pub const MEMBER_GONE_AFTER: Duration = Duration::from_secs(25 * 3_600);

/// What operators can do with peers.
pub trait Peers: Send + Sync {
    /// Returns the status. Does not wait for the shared store.
    fn status(&self) -> ExchangeStatus;

    /// Declares an instance gone that will not come back.
    ///
    /// # Errors
    /// See [`ForgetError`].
    fn forget(&self, id: &str) -> Result<(), ForgetError>;

    /// Returns the request counts of peers, for each period of length `step` since `from`.
    ///
    /// # Errors
    /// The shared store does not answer.
    fn counts(
        &self,
        step: PeriodLength,
        from: Timestamp,
    ) -> Result<Vec<PeerPeriodCounts>, CountsError>;
}

/// Why there are no counts of peers.
pub type CountsError = Box<dyn Error + Send + Sync>;

/// Why an instance cannot be declared gone.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ForgetError {
    /// No other instance has this id.
    #[error("no other instance has the id {0}. To list them, run \"crawlgate instances\"")]
    UnknownInstance(String),
    /// The exchange still waits for the store.
    #[error("the store has not answered the previous command yet")]
    Busy,
}

/// What requests read from the exchange without a lock.
#[derive(Default)]
pub struct ExchangeProgress {
    /// The number of the next log entry. It reports everything that happened before it was written.
    pub next_entry: AtomicU64,
    /// Until when this instance may answer `/robots.txt`, in seconds by its own clock.
    pub robots_txt_until: AtomicI64,
}

/// The status of the exchange: for `crawlgate status`, metrics and the dashboard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangeStatus {
    /// The id of this instance.
    pub id: String,
    /// All members, this one included.
    pub members: Vec<MemberStatus>,
    /// Since when the store cannot be used, with the error. `None` while it can.
    pub away: Option<StoreOutage>,
    /// Milliseconds by which the own clock is ahead of the store's. `None` before it was measured.
    pub clock_ahead_ms: Option<i64>,
    /// Since when `/robots.txt` is answered with 503, because this run never reached the store, or
    /// not for a day.
    #[serde(serialize_with = "rfc3339")]
    pub withholds_robots_txt_since: Option<Timestamp>,
    /// When this run restarted its observation, if it did.
    pub begun_anew: Option<ObservationRestart>,
    /// Why no crawler is accused at present. `None` while crawlers are.
    pub accuses_not: Option<NoAccusationReason>,
    /// Since when a change of robots.txt waits until the store has taken its announcement.
    #[serde(serialize_with = "rfc3339")]
    pub announcement_waits_since: Option<Timestamp>,
    /// Facts that wait to be written to the store.
    pub facts_waiting: usize,
    /// Records of violations that wait to be confirmed.
    pub records_waiting: usize,
    /// Counters since the start of the process.
    pub totals: ExchangeTotals,
}

/// Counters since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeTotals {
    /// Facts that were written.
    pub facts_written: u64,
    /// Facts of other instances that were read.
    pub facts_read: u64,
    /// Violations that every member confirmed.
    pub confirmed: u64,
    /// Accusations that facts of peers refuted.
    pub refuted: u64,
    /// Accusations that were not confirmed in time, or did not fit into the queue.
    pub unconfirmed: u64,
    /// Turns in which the store could not be reached.
    pub failures: u64,
    /// How often the store was another one, or had lost facts.
    pub started_over: u64,
}

/// A time in which the store cannot be reached or used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreOutage {
    /// Since when.
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// The error of the last attempt.
    pub error: String,
}

/// Observation began anew, because it is unknown what crawlers were served before: the store was
/// another one than before, and no peer in it was running all that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationRestart {
    /// When observation began.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Until when crawlers may use cached copies from before.
    #[serde(serialize_with = "rfc3339")]
    pub until: Timestamp,
}

/// A member as this instance sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its entry in the store.
    pub member: Member,
    /// Its state.
    pub standing: MemberState,
    /// Seconds since it last reported.
    pub lag: f64,
    /// Whether it has the same policies as this instance.
    pub same_policies: bool,
    /// Whether it tells crawlers apart as this instance does.
    pub same_crawlers: bool,
}

/// Why no crawler is accused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoAccusationReason {
    /// The store cannot be reached, was never reached, or cannot be used.
    StoreAway,
    /// The store lost facts, and some member has not yet written again what it knows.
    StartingOver,
    /// The own clock is too far from the store's.
    Clock,
    /// A member has not reported for more than 5 seconds.
    MemberSilent,
}
