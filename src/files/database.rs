//! Checks a database file before SQLite opens it by its name. SQLite would follow a symbolic link,
//! and would wait for the other end of a FIFO.
//!
//! A file that exists is never opened here. Closing it would release the locks that SQLite holds in
//! this process (fcntl), and another process would then delete the write-ahead log.

use super::{fifo_error, foreign_file_error};
use std::fs::{self, File};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Checks that a database to write is a regular file or missing. A missing one is created if `make`
/// is true, readable for this user alone.
///
/// # Errors
/// Something other than a regular file has this name. Other errors are left to SQLite.
pub fn prepare_database(path: &Path, make: bool) -> rusqlite::Result<()> {
    to_sqlite_error(match path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(foreign_file_error(path)),
        Err(_) if make => {
            let mut options = File::options();
            let created = options.write(true).create_new(true).mode(0o600).open(path);
            match created {
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return prepare_database(path, false);
                }
                created => created.map(drop),
            }
        }
        Err(error) => Err(error),
    })
}

/// Checks that a database to read is no FIFO.
///
/// # Errors
/// It is a FIFO. Other errors are left to SQLite.
pub fn check_database(path: &Path) -> rusqlite::Result<()> {
    to_sqlite_error(match fs::metadata(path) {
        Ok(found) if found.file_type().is_fifo() => Err(fifo_error()),
        _ => Ok(()),
    })
}

/// The error as one of SQLite's, if the file has the wrong type. `Ok` for any other error, which
/// SQLite reports itself.
fn to_sqlite_error(checked: Result<()>) -> rusqlite::Result<()> {
    match checked {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::AlreadyExists | ErrorKind::InvalidInput
            ) =>
        {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
            Err(rusqlite::Error::SqliteFailure(
                code,
                Some(error.to_string()),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without its locks SQLite would not notice the other connections of this process, and another
    /// process that closes the database would delete the write-ahead log.
    #[cfg(target_os = "linux")]
    #[test]
    fn checked_database_keeps_the_locks_of_this_process() {
        use std::os::unix::fs::MetadataExt;

        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.db");
        prepare_database(&file, true).expect("created");
        let connection = rusqlite::Connection::open(&file).expect("opened");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);",
            )
            .expect("written");
        let inode = fs::metadata(&file).expect("there").ino();
        let is_locked = || {
            let locks = fs::read_to_string("/proc/locks").expect("the locks of the system");
            locks
                .lines()
                .any(|lock| lock.contains(&format!(":{inode} ")))
        };
        assert!(is_locked());
        prepare_database(&file, true).expect("a file");
        check_database(&file).expect("a file");
        assert!(is_locked());
    }
}
