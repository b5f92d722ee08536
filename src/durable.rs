//! Files that outlive the process: written whole, so that a crash leaves the one before or the new one and never half
//! of either; and set aside, when nobody can make sense of them, so that nothing is lost. And two that tell the next
//! start whether everything was written.
//!
//! Knows files; knows nothing of what is in them.

mod witnesses;

pub use witnesses::{Part, Witnesses};

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file in the place of the one before: to a new one beside it, which is on the disk before it takes the name.
///
/// # Errors
/// `write` failed, or the directory is missing, full or not to be written; the file is as it was.
pub fn write_whole(file: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let new = tempfile::NamedTempFile::new_in(directory)?;
    let mut buffered = BufWriter::new(new.as_file());
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// The same with these bytes, in a directory that is made if somebody took it away.
///
/// # Errors
/// See [`write_whole`].
pub fn write_anew(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let write = || write_whole(file, |out| out.write_all(bytes));
    match (write(), file.parent()) {
        // Only itself: where more is missing, what it was on may not be mounted.
        (Err(error), Some(directory)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(directory).map_err(|_| error)?;
            write()
        }
        (written, _) => written,
    }
}

/// Gives a file that cannot be understood another name, so that a person can look at it; says which.
pub fn set_aside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".unreadable");
    let aside = file.with_file_name(name);
    // What cannot be renamed will not be written over either, and that is told.
    let _ = fs::rename(file, &aside);
    aside
}

#[cfg(test)]
mod tests {
    use super::{set_aside, write_anew, write_whole};
    use std::fs;
    use std::io::{Error, Write};

    #[test]
    fn a_file_is_the_new_one_or_the_one_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("state.json");
        write_whole(&file, |out| out.write_all(b"one")).expect("written");
        let half = write_whole(&file, |out| out.write_all(b"tw").and(Err(Error::other("the disk is full"))));
        assert_eq!(half.expect_err("told").to_string(), "the disk is full");
        assert_eq!(fs::read(&file).expect("there"), b"one");
        assert_eq!(fs::read_dir(directory.path()).expect("there").count(), 1, "nothing is left behind");
        write_whole(&file, |out| out.write_all(&[b'2'; 100_000])).expect("written");
        assert_eq!(fs::read(&file).expect("there"), [b'2'; 100_000]);
        assert!(write_whole(&directory.path().join("none/state.json"), |_| Ok(())).is_err());
    }

    #[test]
    fn a_directory_that_was_taken_away_is_made_again_and_none_above_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("versions/one.txt");
        write_anew(&file, b"one").expect("written");
        assert_eq!(fs::read(&file).expect("there"), b"one");
        assert!(write_anew(&directory.path().join("not/mounted/one.txt"), b"one").is_err());
        assert!(!directory.path().join("not").exists());
    }

    #[test]
    fn what_is_set_aside_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("state.json");
        fs::write(&file, "{").expect("written");
        let aside = set_aside(&file);
        assert_eq!(aside, directory.path().join("state.json.unreadable"));
        assert_eq!((fs::read(aside).expect("kept"), file.exists()), (b"{".to_vec(), false));
    }
}
