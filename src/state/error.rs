//! [`StateError`]: why facts cannot be stored or read. Several callers may wait for one transaction, so it can be cloned.

use std::fmt;
use std::path::Path;

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
    pub(super) fn unwritten(directory: &str, error: &dyn fmt::Display) -> StateError {
        StateError::Unwritten { directory: directory.to_owned(), error: error.to_string() }
    }

    /// The file cannot be read.
    pub(super) fn unread(file: &Path, error: &dyn fmt::Display) -> StateError {
        StateError::Unread { file: file.display().to_string(), error: error.to_string() }
    }
}
