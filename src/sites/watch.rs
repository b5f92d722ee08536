//! [`DirectoryWatch`] notices that a file in the policy directory changed. It compares what the
//! directory lists with the last time, because network and overlay file systems send no
//! notifications of changes.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// After so many calls of [`DirectoryWatch::poll`] the directory counts as changed in any case: it
/// may change without end, or its file system may not say when files changed.
const MAX_POLLS: u32 = 30;

/// The policy directory, as it was seen last.
#[derive(Default)]
pub struct DirectoryWatch {
    directory: PathBuf,
    /// The digest of the last call.
    last: u64,
    /// The digest that was last reported as a change.
    reported: u64,
    /// Calls since then.
    polls: u32,
}

impl DirectoryWatch {
    /// Reports the present content as the first change: it may have changed since it was read.
    pub fn new(directory: &Path) -> DirectoryWatch {
        DirectoryWatch {
            directory: directory.to_owned(),
            ..DirectoryWatch::default()
        }
    }

    /// Whether the directory is to be read again: it changed, and has been quiet since the last
    /// call, or this is the call number `MAX_POLLS`.
    pub fn poll(&mut self) -> bool {
        let now = directory_digest(&self.directory);
        let is_quiet = now == self.last;
        self.last = now;
        self.polls += 1;
        let is_due = (is_quiet && now != self.reported) || self.polls >= MAX_POLLS;
        if is_due {
            self.reported = now;
            self.polls = 0;
        }
        is_due
    }
}

/// A digest of the files in a directory: of their names, and of what changes if one is written or
/// replaced. Follows links, which deployments switch.
fn directory_digest(directory: &Path) -> u64 {
    let mut digest = DefaultHasher::new();
    for found in [fs::metadata(directory), fs::symlink_metadata(directory)] {
        hash_file(found, &mut digest);
    }
    let entries = fs::read_dir(directory);
    for entry in entries.into_iter().flatten().flatten() {
        entry.file_name().hash(&mut digest);
        hash_file(fs::metadata(entry.path()), &mut digest);
    }
    digest.finish()
}

/// A change that is undone also changes the times of the file and of its directory.
fn hash_file(found: io::Result<fs::Metadata>, digest: &mut DefaultHasher) {
    if let Ok(file) = found {
        (file.ino(), file.size(), file.ctime(), file.ctime_nsec()).hash(digest);
    }
}
