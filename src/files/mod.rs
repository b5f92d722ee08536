//! Opens files safely when their names may be links, devices or FIFOs. Files that operators provide
//! are read up to a maximum size ([`read_bounded`]), and opened without waiting for the other end
//! of a FIFO ([`open_nonblocking`]). Files that crawlgate writes are never opened through a link
//! ([`open_own_file`]).

#[cfg(feature = "state")]
mod database;

#[cfg(feature = "state")]
pub use database::{check_database, prepare_database};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of a file that a person writes: a robots.txt, a key, a certificate.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Whether an error is that this process may open no more files.
pub fn is_file_limit(error: &Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MFILE)
}

/// The directory of a file; `.` for a name without one.
pub fn parent_directory(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The device and the inode of the file that has this name now. `None` if there is none.
pub fn file_identity(file: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The absolute path, for messages; the path itself if the current directory is not known.
pub fn absolute_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or(path.into())
}

/// Reads a file of at most [`MAX_FILE_BYTES`].
///
/// # Errors
/// As for [`read_file_up_to`].
pub fn read_bounded(path: &Path) -> Result<Vec<u8>> {
    read_file_up_to(path, MAX_FILE_BYTES)
}

/// Reads a file of at most `max_bytes` bytes.
///
/// # Errors
/// The file is larger, is a FIFO, or cannot be read.
pub fn read_file_up_to(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    read_opened(open_unless_fifo(path)?, max_bytes)
}

/// Opens a file for reading. An error for a FIFO.
fn open_unless_fifo(path: &Path) -> Result<File> {
    let file = open_nonblocking(File::options().read(true), path)?;
    if file.metadata()?.file_type().is_fifo() {
        return Err(fifo_error());
    }
    Ok(file)
}

fn fifo_error() -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "it is a FIFO, which crawlgate does not read",
    )
}

/// Reads the file of a command's argument. It may be a FIFO: the output of a command (`<(curl ...)`).
///
/// # Errors
/// There are more than `max_bytes` bytes, or they cannot be read.
pub fn read_argument(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    read_opened(File::open(path)?, max_bytes)
}

fn read_opened(file: File, max_bytes: u64) -> Result<Vec<u8>> {
    if file.metadata()?.len() > max_bytes {
        return Err(too_large_error(max_bytes));
    }
    read_up_to(file, max_bytes)
}

/// Reads all bytes of `source`.
///
/// # Errors
/// There are more than `max_bytes` bytes, or they cannot be read.
pub fn read_up_to(source: impl Read, max_bytes: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large_error(max_bytes));
    }
    Ok(bytes)
}

fn too_large_error(max_bytes: u64) -> Error {
    let text = format!(
        "it is larger than {} MiB, so crawlgate does not read it",
        max_bytes >> 20
    );
    Error::new(ErrorKind::FileTooLarge, text)
}

/// Opens a file without waiting for the other end of a FIFO. Reading and writing then block as usual.
/// A FIFO without a reader cannot be opened for writing.
///
/// # Errors
/// The file cannot be opened.
pub fn open_nonblocking(options: &OpenOptions, path: &Path) -> Result<File> {
    let file = options
        .clone()
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens a regular file of crawlgate's own, never through a link.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if something other than a regular file has this name, and those of
/// the system.
pub fn open_own_file(options: &OpenOptions, path: &Path) -> Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options
        .clone()
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Err(error)
            if !path
                .symlink_metadata()
                .is_ok_and(|found| !found.is_file() && !found.is_dir()) =>
        {
            Err(error)
        }
        _ => Err(foreign_file_error(path)),
    }
}

/// Reads a text file of crawlgate's own.
///
/// # Errors
/// It cannot be read, is larger than [`MAX_FILE_BYTES`], is no regular file, or is not UTF-8.
pub fn read_own_file(path: &Path) -> Result<String> {
    let bytes = read_up_to(
        open_own_file(File::options().read(true), path)?,
        MAX_FILE_BYTES,
    )?;
    String::from_utf8(bytes).map_err(Error::other)
}

/// The error for a path of crawlgate's own that is taken by something else.
pub fn foreign_file_error(path: &Path) -> Error {
    let text = format!(
        "{} is not a file of crawlgate, so it is left as it is; move it away",
        path.display()
    );
    Error::new(ErrorKind::AlreadyExists, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_file_is_read_up_to_limit() {
        let error = read_bounded(Path::new("/dev/zero")).expect_err("endless");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_up_to(&b"abc"[..], 3).expect("read"), b"abc");
        assert_eq!(
            read_up_to(&b"abcd"[..], 3).expect_err("larger").kind(),
            ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn links_and_fifos_are_rejected_as_own_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let [target, link, fifo] =
            ["target", "link", "fifo"].map(|name| directory.path().join(name));
        std::fs::write(&target, "precious").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .expect("mkfifo")
                .success()
        );
        for path in [&link, &fifo] {
            assert_eq!(
                read_own_file(path).expect_err("foreign").kind(),
                ErrorKind::AlreadyExists
            );
            assert!(prepare_database(path, true).is_err());
        }
        assert_eq!(read_own_file(&target).expect("read"), "precious");
        assert_eq!(
            read_bounded(&link).expect("an operator's file may be a link"),
            b"precious"
        );
        assert_eq!(
            read_bounded(&fifo).expect_err("a FIFO").kind(),
            ErrorKind::InvalidInput
        );
        assert!(check_database(&fifo).is_err());
    }
}
