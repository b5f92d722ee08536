//! [`StoreHealth`]: whether the state database can be written, for `crawlgate status` and the log.
//! [`StateError`]: why state cannot be written or read. The error can be cloned, because several
//! callers may wait for one transaction.

use crate::time::Timestamp;
use std::fmt;
use std::path::Path;

/// Whether the state directory can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// Nothing is written, because no state directory is set.
    NoDirectory,
    /// Nothing is written, because the state directory cannot be used.
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
        matches!(
            self,
            StoreHealth::NoDirectory | StoreHealth::Unusable { .. }
        )
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

/// Why facts cannot be stored or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StateError {
    /// Another process owns the directory.
    #[error(
        "the state directory {directory} belongs to another crawlgate ({}); crawlgate does not start. End that process, \
         or give this one a state directory of its own.",
        .pid.map_or("its process id is not known".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The directory.
        directory: String,
        /// The owner's process id, where it could be read.
        pid: Option<u32>,
    },
    /// The facts could not be written.
    #[error("cannot write the state directory {directory}: {error}")]
    Unwritten {
        /// The directory.
        directory: String,
        /// What the operating system or SQLite says.
        error: String,
    },
    /// The facts could not be read.
    #[error(
        "cannot read {file}: {error}; nothing of it is used. Check that this user may read the file, and that it is the \
         state of a crawlgate."
    )]
    Unread {
        /// The file.
        file: String,
        /// What the operating system or SQLite says.
        error: String,
    },
    /// The thread that writes cannot be started.
    #[error("cannot start the thread that writes the state directory {directory}: {error}")]
    Thread {
        /// The directory.
        directory: String,
        /// What the operating system says.
        error: String,
    },
    /// The store was closed before.
    #[error("the state directory {directory} was closed")]
    Closed {
        /// The directory.
        directory: String,
    },
}

impl StateError {
    /// The directory cannot be written.
    pub(super) fn write_failed(directory: &str, error: &dyn fmt::Display) -> StateError {
        StateError::Unwritten {
            directory: directory.to_owned(),
            error: error.to_string(),
        }
    }

    /// The file cannot be read.
    pub(super) fn read_failed(file: &Path, error: &dyn fmt::Display) -> StateError {
        StateError::Unread {
            file: file.display().to_string(),
            error: error.to_string(),
        }
    }
}
