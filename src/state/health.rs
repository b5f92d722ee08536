//! [`StoreHealth`]: whether the state directory can be written, for the command `status` and the log. `mod.rs` says what moves
//! the store between its states.

use crate::time::Timestamp;
use std::fmt;

/// Whether the state directory can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// Nothing outlasts the process, because no state directory is set.
    NoDirectory,
    /// Nothing outlasts the process, because the state directory cannot be used.
    Unusable {
        /// The directory.
        directory: String,
        /// What the operating system or SQLite says.
        error: String,
    },
    /// The last commit succeeded.
    Healthy,
    /// Commits fail.
    Failing {
        /// The directory.
        directory: String,
        /// Since when.
        since: Timestamp,
        /// What the operating system or SQLite says.
        error: String,
        /// The last commit that succeeded.
        last_commit: Option<Timestamp>,
    },
}

impl StoreHealth {
    /// Whether nothing is ever written.
    pub fn is_in_memory(&self) -> bool {
        matches!(self, StoreHealth::NoDirectory | StoreHealth::Unusable { .. })
    }
}

impl fmt::Display for StoreHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreHealth::Healthy => f.write_str("the state directory is written"),
            StoreHealth::NoDirectory => f.write_str(
                "no state directory is set; crawlgate forgets everything when it ends, and calls no crawler a violator \
                 for a day after each start. Set `state` to keep it.",
            ),
            StoreHealth::Unusable { directory, error } => write!(
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
