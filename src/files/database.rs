//! Checks a database file before SQLite opens it by its name. SQLite would follow a symbolic link,
//! and would wait for the other end of a FIFO.

use super::{open_own_file, open_unless_fifo};
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Checks that a database to write is a regular file or missing. A missing one is created if `make`
/// is true, readable for this user alone.
///
/// # Errors
/// Something other than a regular file has this name. Other errors are left to SQLite.
pub fn prepare_database(path: &Path, make: bool) -> rusqlite::Result<()> {
    to_sqlite_error(open_own_file(
        File::options().append(true).create(make).mode(0o600),
        path,
    ))
}

/// Checks that a database to read is no FIFO.
///
/// # Errors
/// It is a FIFO. Other errors are left to SQLite.
pub fn check_database(path: &Path) -> rusqlite::Result<()> {
    to_sqlite_error(open_unless_fifo(path))
}

/// The error as one of SQLite's, if the file has the wrong type. `Ok` for any other error, which
/// SQLite reports itself.
fn to_sqlite_error(opened: Result<File>) -> rusqlite::Result<()> {
    match opened {
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
