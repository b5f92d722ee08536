//! Reads files and streams up to a size: [`read`] takes no more memory for a device, or for a file that was named by
//! mistake.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a file that a person writes: a robots.txt, a key, a certificate. Crawlers read 500 KiB of a robots.txt.
pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A file of at most [`MAX_BYTES`].
///
/// # Errors
/// As for [`read_file`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_file(path, MAX_BYTES)
}

/// A file of at most `most` bytes. One that says that it is larger is not read at all.
///
/// # Errors
/// The file is larger, or cannot be read.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    read_up_to(file, most)
}

/// All bytes of `source`.
///
/// # Errors
/// There are more than `most` bytes, or they cannot be read.
pub fn read_up_to(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

fn too_large(most: u64) -> io::Error {
    let text = format!("it has more than {} MiB, so crawlgate does not read it", most >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_read_up_to_the_bound() {
        let error = read(Path::new("/dev/zero")).expect_err("endless");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_up_to(&b"abc"[..], 3).expect("read"), b"abc");
        assert_eq!(read_up_to(&b"abcd"[..], 3).expect_err("larger").kind(), io::ErrorKind::FileTooLarge);
    }
}
