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
        use StoreHealth::*;
        match self {
            Healthy => f.write_str("the state directory can be written"),
            NoDirectory => f.write_str(
                "no state directory is set: crawlgate forgets everything when it stops, and counts \
                 no violations for a day after each start. To prevent that, set \"state\".",
            ),
            Unusable { directory, error } => write!(
                f,
                "cannot use the state directory {directory}: {error}. crawlgate keeps everything in memory, and \
                 counts no violations for a day. Fix this, then restart crawlgate."
            ),
            Failing {
                directory,
                since,
                error,
            } => write!(
                f,
                "cannot write the state directory {directory} since {since}: {error}; crawlgate \
                 keeps new data in memory and tries again every second. Fix this before crawlgate \
                 stops."
            ),
        }
    }
}

/// Why facts cannot be stored or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StateError {
    /// Another process owns the directory.
    #[error(
        "another crawlgate ({}) uses the state directory {directory}, so this one does not start. Stop that process, \
         or give this one another state directory.",
        .pid.map_or("of unknown process id".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The directory.
        directory: String,
        /// The owner's process id, where it could be read.
        pid: Option<u32>,
    },
    /// The facts could not be written, the thread that writes cannot be started, or the store was
    /// closed before.
    #[error("cannot write the state directory {directory}: {error}")]
    Unwritten {
        /// The directory.
        directory: String,
        /// What the operating system or SQLite says.
        error: String,
    },
    /// The facts could not be read.
    #[error(
        "cannot read {file}: {error}; crawlgate uses nothing of it. Check that this user may read the file, and that \
         crawlgate wrote it."
    )]
    Unread {
        /// The file.
        file: String,
        /// What the operating system or SQLite says.
        error: String,
    },
}

impl StateError {
    /// The directory cannot be written.
    pub fn write_failed(directory: &str, error: &dyn fmt::Display) -> StateError {
        StateError::Unwritten {
            directory: directory.to_owned(),
            error: error.to_string(),
        }
    }

    /// The file cannot be read.
    pub fn read_failed(file: &Path, error: &dyn fmt::Display) -> StateError {
        StateError::Unread {
            file: file.display().to_string(),
            error: error.to_string(),
        }
    }
}
