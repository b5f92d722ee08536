//! How the store is doing, for `status` and the log. The main type is [`StoreHealth`]. This file must not know how facts
//! are written.

use crate::time::{Timestamp, rfc3339};
use serde::Serialize;
use std::fmt;

/// Why a store keeps everything in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InMemory {
    /// No state directory is set.
    NoDirectory,
    /// The state directory cannot be used.
    Unusable {
        /// The directory.
        directory: String,
        /// What the operating system or SQLite says.
        error: String,
    },
}

/// How the store is doing, for `status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreHealth {
    /// Nothing outlasts the process.
    InMemory {
        /// Why.
        why: InMemory,
    },
    /// The last commit succeeded.
    Healthy,
    /// Commits fail.
    Failing {
        /// The directory.
        directory: String,
        /// Since when.
        #[serde(serialize_with = "rfc3339")]
        since: Timestamp,
        /// What the operating system or SQLite says.
        error: String,
        /// The last commit that succeeded.
        #[serde(serialize_with = "rfc3339")]
        last_commit: Option<Timestamp>,
    },
}

impl fmt::Display for StoreHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreHealth::Healthy => f.write_str("the state directory is written"),
            StoreHealth::InMemory { why: InMemory::NoDirectory } => f.write_str(
                "no state directory is set; crawlgate forgets everything when it ends, and calls no crawler a violator \
                 for a day after each start. Set `state` to keep it.",
            ),
            StoreHealth::InMemory { why: InMemory::Unusable { directory, error } } => write!(
                f,
                "cannot use the state directory {directory}: {error}; crawlgate runs from memory, and calls no crawler a \
                 violator for a day. Make the directory writable and start crawlgate again."
            ),
            StoreHealth::Failing { directory, since, error, .. } => write!(
                f,
                "cannot write the state directory {directory} since {since}: {error}; crawlgate tries again every second \
                 and keeps what is new in memory. Free space or repair the permissions before crawlgate ends."
            ),
        }
    }
}
