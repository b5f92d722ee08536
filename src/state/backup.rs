//! [`back_up`] copies the state database of a directory into one file, even while crawlgate runs
//! there. The running crawlgate may later publish another robots.txt, which is not in the copy. So
//! the copy is marked as incomplete. A crawlgate that starts from an incomplete copy first observes
//! each host anew, and meanwhile counts no violation on that host.

use super::database::{STATE_FILE, has_write_ahead_log, open_following, open_for_reading};
use crate::files::parent_directory;
use rusqlite::Connection;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long the copy waits for a commit on file systems without a write-ahead log.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why no backup was made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(
        "there is no state to back up: {0} does not exist. Name the state directory with --state DIR"
    )]
    NoState(String),
    #[error("{0} exists, and crawlgate overwrites no file. Give the backup another name")]
    Exists(String),
    #[error("cannot write {file}: {error}; no backup was made")]
    Unwritten { file: String, error: io::Error },
    /// The state cannot be read, or it or the disk is damaged.
    #[error("cannot back up {file}: {problem}; no backup was made")]
    Failed { file: String, problem: String },
}

/// Copies the state of a directory into a new file that only this user can read. Returns the length
/// of the copy in bytes.
///
/// # Errors
/// There is no state, the file exists, or one of them cannot be used. Then no file is left.
pub fn back_up(directory: &Path, to: &Path) -> Result<u64, BackupError> {
    use BackupError::*;

    let file = directory.join(STATE_FILE);
    let name = file.display().to_string();
    let name_of_copy = to.display().to_string();
    if !file.exists() {
        return Err(NoState(name));
    }
    if to.symlink_metadata().is_ok() {
        return Err(Exists(name_of_copy));
    }
    let unwritten = |error| Unwritten {
        file: name_of_copy.clone(),
        error,
    };
    let copy = tempfile::Builder::new()
        .prefix(".crawlgate-backup")
        .tempfile_in(parent_directory(to))
        .map_err(unwritten)?;
    let checked = vacuum_into(copy.path(), &file).and_then(|_| mark_incomplete(copy.path()));
    let problem = checked.unwrap_or_else(|error| error.to_string());
    if problem != "ok" {
        return Err(Failed {
            file: name,
            problem,
        });
    }
    let bytes = copy
        .as_file()
        .sync_all()
        .and_then(|()| copy.as_file().metadata())
        .map_err(unwritten)?
        .len();
    match copy.persist_noclobber(to) {
        Ok(_) => Ok(bytes),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Exists(name_of_copy))
        }
        Err(error) => Err(unwritten(error.error)),
    }
}

fn vacuum_into(copy: &Path, file: &Path) -> rusqlite::Result<usize> {
    // Without a write-ahead log no process writes the file.
    let connection = if has_write_ahead_log(file) {
        open_following(file)?
    } else {
        open_for_reading(file)?
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()])
}

/// Marks the copy as incomplete, because the run continues after it, and checks the copy. Returns
/// `ok` or the first problem that SQLite finds.
fn mark_incomplete(copy: &Path) -> rusqlite::Result<String> {
    let copy = Connection::open(copy)?;
    copy.execute("UPDATE run SET clean = 0, incomplete = 1", [])?;
    copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
}
