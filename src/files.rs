//! Opens and reads files whose names may stand for something else: a device, a FIFO, somebody's
//! file. Files that an operator chooses are read up to a size ([`read`]) and opened without waiting
//! for the other end of a FIFO ([`open_at_once`]). Files that crawlgate makes for itself are never
//! links ([`open_own`]).

#[cfg(feature = "state")]
mod database;

#[cfg(feature = "state")]
pub use database::{check_database, prepare_database};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Bytes of a file that a person writes: a robots.txt, a key, a certificate. Crawlers read 500 KiB
/// of a robots.txt.
pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The directory of a file; `.` for a bare name.
pub fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// A file of at most [`MAX_BYTES`].
///
/// # Errors
/// As for [`read_file`].
pub fn read(path: &Path) -> Result<Vec<u8>> {
    read_file(path, MAX_BYTES)
}

/// A file of at most `most` bytes. One that says that it is larger is not read at all.
///
/// # Errors
/// The file is larger, is a FIFO, or cannot be read.
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_whole(open(path)?, most)
}

/// Opens anything but a FIFO for reading.
fn open(path: &Path) -> Result<File> {
    let file = open_at_once(File::options().read(true), path)?;
    if file.metadata()?.file_type().is_fifo() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "it is a FIFO, which crawlgate does not read",
        ));
    }
    Ok(file)
}

/// What an argument of a command names, which may be the output of another command (`<(curl ...)`).
///
/// # Errors
/// There are more than `most` bytes, or they cannot be read.
pub fn read_argument(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_whole(File::open(path)?, most)
}

fn read_whole(file: File, most: u64) -> Result<Vec<u8>> {
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    read_up_to(file, most)
}

/// All bytes of `source`.
///
/// # Errors
/// There are more than `most` bytes, or they cannot be read.
pub fn read_up_to(source: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

fn too_large(most: u64) -> Error {
    let text = format!(
        "it has more than {} MiB, so crawlgate does not read it",
        most >> 20
    );
    Error::new(ErrorKind::FileTooLarge, text)
}

/// Opens a file, which may be a link or a FIFO, without waiting for the other end of a FIFO;
/// reading and writing it then waits as usual. A FIFO that nobody reads cannot be opened for
/// writing.
///
/// # Errors
/// The file cannot be opened.
pub fn open_at_once(options: &OpenOptions, path: &Path) -> Result<File> {
    let file = options
        .clone()
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens a regular file of crawlgate's own: never through a link.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`]: something else than a regular file has this name. Other errors are
/// the system's.
pub fn open_own(options: &OpenOptions, path: &Path) -> Result<File> {
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
        _ => Err(foreign(path)),
    }
}

/// Reads a file of crawlgate's own, which is text.
///
/// # Errors
/// It cannot be read, is larger than [`MAX_BYTES`], is no regular file, or is not UTF-8.
pub fn read_own(path: &Path) -> Result<String> {
    let bytes = read_up_to(open_own(File::options().read(true), path)?, MAX_BYTES)?;
    String::from_utf8(bytes).map_err(Error::other)
}

/// The error for a file that is none of crawlgate's.
pub fn foreign(path: &Path) -> Error {
    let text = format!(
        "{} is not a file of crawlgate's, which leaves it as it is; move it away",
        path.display()
    );
    Error::new(ErrorKind::AlreadyExists, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_read_up_to_the_bound() {
        let error = read(Path::new("/dev/zero")).expect_err("endless");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_up_to(&b"abc"[..], 3).expect("read"), b"abc");
        assert_eq!(
            read_up_to(&b"abcd"[..], 3).expect_err("larger").kind(),
            ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn key_and_database_that_are_links_or_fifos_are_refused() {
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
                read_own(path).expect_err("foreign").kind(),
                ErrorKind::AlreadyExists
            );
            assert!(prepare_database(path, true).is_err());
        }
        assert_eq!(read_own(&target).expect("read"), "precious");
        assert_eq!(
            read(&link).expect("an operator's file may be a link"),
            b"precious"
        );
        assert_eq!(
            read(&fifo).expect_err("a FIFO").kind(),
            ErrorKind::InvalidInput
        );
        assert!(check_database(&fifo).is_err());
    }
}
