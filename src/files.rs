//! Opening files under names that somebody else's file may have. [`open_own`] is for files that crawlgate makes for
//! itself, and [`open_at_once`] for those that an operator chooses.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file: never through a link, and without waiting for the other end of a FIFO.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`]: something else than a regular file has this name.
pub fn open_own(options: &OpenOptions, path: &Path) -> Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.clone().custom_flags(flags.bits().cast_signed()).open(path);
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Err(error) if !path.symlink_metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) => Err(error),
        _ => Err(foreign(path)),
    }
}

/// Opens a file, which may be a link or a FIFO that somebody reads already.
///
/// # Errors
/// Nobody reads the FIFO, or the file cannot be opened.
pub fn open_at_once(options: &OpenOptions, path: &Path) -> Result<File> {
    let file = options.clone().custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Makes the file of a database for this user alone, unless it is there. SQLite would follow a link.
///
/// # Errors
/// Something else than a regular file has this name. Whatever else is wrong, SQLite says.
pub fn make_database(path: &Path) -> rusqlite::Result<()> {
    match open_own(OpenOptions::new().append(true).create(true).mode(0o600), path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
            Err(rusqlite::Error::SqliteFailure(code, Some(error.to_string())))
        }
        _ => Ok(()),
    }
}

/// Reads a file that crawlgate made.
///
/// # Errors
/// It cannot be read, or is no regular file.
pub fn read_own(path: &Path) -> Result<String> {
    std::io::read_to_string(open_own(OpenOptions::new().read(true), path)?)
}

/// The error for a file that is none of crawlgate's.
pub fn foreign(path: &Path) -> Error {
    let text = format!("{} is not a file of crawlgate's, which leaves it as it is; move it away", path.display());
    Error::new(ErrorKind::AlreadyExists, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_database_that_are_links_or_fifos_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let [target, link, fifo] = ["target", "link", "fifo"].map(|name| directory.path().join(name));
        std::fs::write(&target, "precious").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        for path in [&link, &fifo] {
            assert_eq!(read_own(path).expect_err("foreign").kind(), ErrorKind::AlreadyExists);
            assert!(make_database(path).is_err());
        }
        assert_eq!(read_own(&target).expect("read"), "precious");
    }
}
