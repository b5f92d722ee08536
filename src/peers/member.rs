//! [`Member`]: the entry of an instance in the shared store. An instance becomes a member before it
//! serves its first robots.txt. It leaves when it stops, when an operator declares it gone, or when
//! it has not written for too long. [`Identity`] tells one store from another, and [`Position`] is
//! a position in the log of a store.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An instance, as it writes itself into the store with each batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The id of the instance, from its `state.db`: 16 hexadecimal digits.
    pub id: String,
    /// The id of this run of its process: the instance's id, a point and 8 hexadecimal digits.
    /// Publications are keyed by it.
    pub run: String,
    /// The run before, whose publications this run tells again as its own. `None` where it knows
    /// nothing of one.
    pub continues: Option<String>,
    /// The form of facts that it reads.
    pub schema: u32,
    /// The version of crawlgate.
    pub version: String,
    /// The name of its machine, for people.
    pub host: String,
    /// When this run became a member, in seconds of the store's clock.
    pub joined: i64,
    /// Up to which moment it has reported what it served, in seconds of the store's clock.
    pub reported: i64,
    /// Up to which entry of the log it had read, before it gathered what it reports: everything
    /// that it served before that entry was written is in the store.
    pub heard: Position,
    /// The store into which it has written everything that it knows. Another one than the present:
    /// it has yet to.
    pub settled: Option<Identity>,
    /// A digest of the policies in force: 16 hexadecimal digits.
    pub policies: String,
    /// A digest of the names by which it tells crawlers apart.
    pub crawlers: String,
    /// Milliseconds by which its clock is ahead of the store's.
    pub clock_ahead_ms: i64,
    /// Whether it has left in order: everything is reported, and it serves no robots.txt any more.
    pub has_left: bool,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It reports.
    Present,
    /// It has not reported for more than 5 seconds: no crawler is accused, until it does or counts
    /// as gone.
    Silent,
    /// It said goodbye.
    Left,
    /// It was silent for 25 hours, or an operator forgot it.
    Gone,
}

/// The place of an entry in the log: the id of an entry of a stream.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Position {
    /// Milliseconds, by the store.
    pub milliseconds: u64,
    /// The number among the entries of one millisecond.
    pub sequence: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.milliseconds, self.sequence)
    }
}

impl Position {
    fn parse(text: &str) -> Option<Position> {
        let (milliseconds, sequence) = text.split_once('-')?;
        Some(Position {
            milliseconds: milliseconds.parse().ok()?,
            sequence: sequence.parse().ok()?,
        })
    }
}

/// A text is no place in the log.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no id of an entry: expected two numbers with `-` between them")]
pub struct MalformedPosition(String);

impl TryFrom<String> for Position {
    type Error = MalformedPosition;

    fn try_from(text: String) -> Result<Position, MalformedPosition> {
        Position::parse(&text).ok_or(MalformedPosition(text))
    }
}

impl From<Position> for String {
    fn from(position: Position) -> String {
        position.to_string()
    }
}

/// The identity of a store. Facts may have been lost where either part differs from before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// `run_id` of `INFO server`: another one after a restart, a restore and a fail-over.
    pub run_id: String,
    /// What the first instance wrote when it found the store empty: another one after `FLUSHALL`.
    pub epoch: String,
}
