//! [`Identity`] tells one store from another, and [`Position`] is a place in the log of a store.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The place of an entry in the log: the id of an entry of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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

/// The text is no position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id of an entry: expected two numbers with `-` between them")]
pub struct MalformedPosition(String);

impl FromStr for Position {
    type Err = MalformedPosition;

    fn from_str(text: &str) -> Result<Position, MalformedPosition> {
        let read = |(milliseconds, sequence): (&str, &str)| {
            Some(Position { milliseconds: milliseconds.parse().ok()?, sequence: sequence.parse().ok()? })
        };
        text.split_once('-').and_then(read).ok_or_else(|| MalformedPosition(text.to_owned()))
    }
}

impl TryFrom<String> for Position {
    type Error = MalformedPosition;

    fn try_from(text: String) -> Result<Position, MalformedPosition> {
        text.parse()
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
