//! [`Member`]: the entry of one crawlgate instance in the shared store. Through this store,
//! instances in front of the same sites exchange what they know. An instance becomes a member
//! before it serves its first robots.txt. Its membership ends when the instance shuts down
//! normally, when an operator declares it gone, or after 25 hours without a report from it.
//! [`StoreIdentity`] tells one store from another. [`LogPosition`] is a position in the store's log
//! (a Redis stream).

use serde::{Deserialize, Serialize};
use std::fmt;

/// The entry of an instance, which it writes with each batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The id of the instance, from its `state.db`: 16 hexadecimal digits.
    pub id: String,
    /// The id of this run of its process: the instance's id, a point and 8 hexadecimal digits.
    /// Publications are keyed by it.
    pub run: String,
    /// The previous run, whose publications this run reports again as its own. `None` if it knows
    /// of none.
    pub continues: Option<String>,
    /// The version of the format of facts that it reads.
    pub schema: u32,
    /// The version of crawlgate.
    pub version: String,
    /// The name of its machine, for display.
    pub host: String,
    /// When this run became a member, in seconds of the store's clock.
    pub joined: i64,
    /// Everything that it served until then is reported, in seconds of the store's clock.
    pub reported: i64,
    /// The last log entry that it read before it collected its report. Everything that it served
    /// before that entry was written is in the store.
    #[serde(rename = "heard")]
    pub read_position: LogPosition,
    /// The store into which it has written everything that it knows. If this is not the present
    /// store, it has yet to do so.
    pub settled: Option<StoreIdentity>,
    /// A digest of the policies in force: 16 hexadecimal digits.
    pub policies: String,
    /// A digest of the names by which it tells crawlers apart.
    pub crawlers: String,
    /// Milliseconds by which its clock is ahead of the store's.
    pub clock_ahead_ms: i64,
    /// Whether it left in order: it reported everything, and no longer serves robots.txt.
    pub has_left: bool,
}

/// The state of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It reports.
    Present,
    /// It has not reported for more than 5 seconds. No crawler is accused until it reports or
    /// counts as gone.
    Silent,
    /// It left in order.
    Left,
    /// It was silent for 25 hours, or an operator declared it gone.
    Gone,
}

/// The position of an entry in the log: its id in the Redis stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogPosition {
    /// Milliseconds, by the store.
    pub milliseconds: u64,
    /// The number among the entries of one millisecond.
    pub sequence: u64,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.milliseconds, self.sequence)
    }
}

impl LogPosition {
    fn parse(text: &str) -> Option<LogPosition> {
        let (milliseconds, sequence) = text.split_once('-')?;
        Some(LogPosition {
            milliseconds: milliseconds.parse().ok()?,
            sequence: sequence.parse().ok()?,
        })
    }
}

/// A text is not a position in the log.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is no id of an entry: use two numbers with a hyphen between them")]
pub struct MalformedLogPosition(String);

impl TryFrom<String> for LogPosition {
    type Error = MalformedLogPosition;

    fn try_from(text: String) -> Result<LogPosition, MalformedLogPosition> {
        LogPosition::parse(&text).ok_or(MalformedLogPosition(text))
    }
}

impl From<LogPosition> for String {
    fn from(position: LogPosition) -> String {
        position.to_string()
    }
}

/// The identity of a store. If either part differs from before, facts may have been lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreIdentity {
    /// `run_id` of `INFO server`. It changes with a restart, a restore or a fail-over.
    pub run_id: String,
    /// A value that the first instance wrote into the empty store. It changes with `FLUSHALL`.
    pub epoch: String,
}
