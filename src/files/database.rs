//! Files that SQLite opens by their names: they are looked at before.

use super::{open, open_own};
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Refuses the file of a database that SQLite is to write, if it is no regular file: SQLite would
/// follow a link. If there is no file and `make` is true, makes one that only this user can read.
///
/// # Errors
/// Something else than a regular file has this name. Whatever else is wrong, SQLite says.
pub fn prepare_database(path: &Path, make: bool) -> rusqlite::Result<()> {
    refused(open_own(
        File::options().append(true).create(make).mode(0o600),
        path,
    ))
}

/// Refuses the file of a database that SQLite is to read, if it is a FIFO: SQLite would wait for
/// its other end.
///
/// # Errors
/// It is a FIFO. Whatever else is wrong, SQLite says.
pub fn check_database(path: &Path) -> rusqlite::Result<()> {
    refused(open(path))
}

/// An error of SQLite's kind if the file was refused because of what it is; `Ok` if it was opened,
/// and also for any other error, which SQLite then meets and says itself.
fn refused(opened: Result<File>) -> rusqlite::Result<()> {
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
