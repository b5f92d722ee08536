//! [`ProcessLock`]: a locked file by which one process owns a state directory or a control socket.
//! The file has the process id of the owner. A process that ends cleanly empties the file. So a
//! process id in the file tells the next process that the previous one crashed. An upgrade passes
//! the lock to the next process.

use crate::files::{foreign_file_error, open_own_file};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The longest content of the file: a padded process id.
const MAX_PID_LENGTH: u64 = 32;

/// The locked file. The lock belongs to the open file, and lasts until the last descriptor of it is
/// closed, so it ends with the process unless another process has a descriptor.
#[derive(Debug)]
pub struct ProcessLock {
    file: File,
    is_transferred: bool,
}

/// The result of locking.
#[derive(Debug)]
pub enum LockOutcome {
    /// This process owns it.
    Owned {
        /// The lock.
        lock: ProcessLock,
        /// Whether the previous owner ended in order, or there was none.
        was_released: bool,
    },
    /// Another process owns it.
    Held {
        /// Its process id, if the file has it.
        pid: Option<u32>,
    },
}

impl ProcessLock {
    /// Locks a file, creates it if it is missing, and writes the process id into it. Returns
    /// `LockOutcome::Held`, and changes nothing, if another process owns the lock.
    ///
    /// # Errors
    /// The file cannot be created or written, or its file system has no locks.
    /// [`io::ErrorKind::AlreadyExists`]: the file is not crawlgate's (a link, a second name, or
    /// other content than a process id) and stays as it is.
    pub fn acquire(path: &Path) -> io::Result<LockOutcome> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = open_own_file(&options, path).map_err(|error| name_owner(path, error))?;
        let locked = file.try_lock();
        let mut written = Vec::new();
        (&mut file)
            .take(MAX_PID_LENGTH + 1)
            .read_to_end(&mut written)?;
        // A crash of the machine may leave zeros.
        let is_ours = written
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b' ' | b'\n' | 0));
        // crawlgate never gives the file a second name.
        let is_shared = file.metadata()?.nlink() > 1;
        if is_shared || written.len() as u64 > MAX_PID_LENGTH || !is_ours {
            return Err(foreign_file_error(path));
        }
        let written = String::from_utf8_lossy(&written);
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(LockOutcome::Held {
                    pid: written.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut lock = ProcessLock {
            file,
            is_transferred: false,
        };
        lock.write_pid()?;
        Ok(LockOutcome::Owned {
            lock,
            was_released: written.trim().is_empty(),
        })
    }

    /// Takes over the lock of a descriptor that another process passed to this one. Writes the id
    /// of this process into the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<ProcessLock> {
        let mut lock = ProcessLock {
            file: File::from(descriptor),
            is_transferred: false,
        };
        lock.write_pid()?;
        Ok(lock)
    }

    /// Locks the file again after the process with the other descriptor has ended: its end may have
    /// unlocked the file for both.
    ///
    /// # Errors
    /// The file cannot be written, or a third process has locked it.
    pub fn reclaim(&mut self) -> io::Result<()> {
        self.file.try_lock()?;
        self.write_pid()
    }

    /// Writes the id of this process into the file.
    fn write_pid(&mut self) -> io::Result<()> {
        // Overwriting the former id works on a full disk, as a rule.
        self.file.rewind()?;
        writeln!(self.file, "{:<20}", std::process::id())?;
        self.file.sync_all()
    }

    /// Returns a descriptor for another process, which owns the lock after
    /// [`ProcessLock::mark_transferred`].
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn duplicate_descriptor(&self) -> io::Result<OwnedFd> {
        self.file.try_clone().map(OwnedFd::from)
    }

    /// Records that the process with the other descriptor owns the lock from now on. This process
    /// then neither empties nor unlocks the file.
    pub fn mark_transferred(&mut self) {
        self.is_transferred = true;
    }

    /// Empties the file, so that the next start sees a clean end. The lock lasts until this value
    /// is dropped. Does nothing to a transferred lock.
    ///
    /// # Errors
    /// The file cannot be emptied. The next start takes this run for a crash.
    pub fn release(&self) -> io::Result<()> {
        if self.is_transferred {
            return Ok(());
        }
        self.file.set_len(0)?;
        self.file.sync_all()
    }
}

/// The error, with the owner of `path` and what to do, if another user's file or directory may be
/// the cause.
pub fn name_owner(path: &Path, error: io::Error) -> io::Error {
    let own = geteuid().as_raw();
    match path.symlink_metadata().map(|found| found.uid()) {
        Ok(owner) if owner != own && error.kind() == io::ErrorKind::PermissionDenied => {
            let path = path.display();
            let cause = format!(
                "{path} belongs to the user {owner}, and crawlgate runs as the user {own}; use \
                 another place, or change its owner if it is crawlgate's own"
            );
            io::Error::new(error.kind(), cause)
        }
        _ => error,
    }
}

impl Drop for ProcessLock {
    /// Unlocks the file, unless the lock was transferred. Closing it is not enough, because a
    /// process that was just forked has the file open until it runs its own program.
    fn drop(&mut self) {
        if !self.is_transferred {
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LockOutcome, ProcessLock, name_owner};
    use std::os::unix::fs::{MetadataExt, chown};
    use std::path::{Path, PathBuf};
    use std::{fs, io};

    fn file(directory: &tempfile::TempDir) -> PathBuf {
        directory.path().join("lock")
    }

    fn owned(locking: io::Result<LockOutcome>) -> (ProcessLock, bool) {
        match locking {
            Ok(LockOutcome::Owned { lock, was_released }) => (lock, was_released),
            other => panic!("not locked: {other:?}"),
        }
    }

    #[test]
    fn second_owner_is_rejected_with_the_pid_of_the_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let (_lock, was_released) = owned(ProcessLock::acquire(&file(&directory)));
        assert!(was_released);
        match ProcessLock::acquire(&file(&directory)) {
            Ok(LockOutcome::Held { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn crashed_owner_leaves_its_pid() {
        let directory = tempfile::tempdir().expect("a directory");
        drop(owned(ProcessLock::acquire(&file(&directory))));
        let (lock, was_released) = owned(ProcessLock::acquire(&file(&directory)));
        assert!(!was_released);
        lock.release().expect("released");
        drop(lock);
        assert!(owned(ProcessLock::acquire(&file(&directory))).1);
    }

    #[test]
    fn transferred_lock_outlasts_its_first_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let (mut lock, _) = owned(ProcessLock::acquire(&file(&directory)));
        let passed =
            ProcessLock::from_descriptor(lock.duplicate_descriptor().expect("a descriptor"))
                .expect("the lock");
        lock.mark_transferred();
        lock.release().expect("nothing to release");
        drop(lock);
        match ProcessLock::acquire(&file(&directory)) {
            Ok(LockOutcome::Held { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(passed);
        assert!(!owned(ProcessLock::acquire(&file(&directory))).1);
    }

    #[test]
    fn lock_is_held_again_after_the_other_process_unlocked_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let (mut lock, _) = owned(ProcessLock::acquire(&file(&directory)));
        let descriptor = lock.duplicate_descriptor().expect("a descriptor");
        drop(ProcessLock::from_descriptor(descriptor).expect("the lock"));
        lock.reclaim().expect("locked again");
        let second = ProcessLock::acquire(&file(&directory));
        assert!(matches!(second, Ok(LockOutcome::Held { .. })));
    }

    #[test]
    fn foreign_file_is_rejected_and_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let (target, link) = (
            directory.path().join("notes"),
            directory.path().join("link"),
        );
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        for text in ["", "a note\n", &"1".repeat(33)] {
            fs::write(&target, text).expect("written");
            let refused = ProcessLock::acquire(&link).expect_err("a link");
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            if !text.is_empty() {
                let refused = ProcessLock::acquire(&target).expect_err("a file of another form");
                assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            }
            assert_eq!(fs::read_to_string(&target).expect("read"), text);
        }
        let name = directory.path().join("second name");
        fs::write(&target, "17").expect("written");
        fs::hard_link(&target, &name).expect("a second name");
        assert_eq!(
            ProcessLock::acquire(&name).expect_err("shared").kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read_to_string(&target).expect("read"), "17");
    }

    #[test]
    fn fifo_is_rejected_without_waiting() {
        let directory = tempfile::tempdir().expect("a directory");
        let fifo = file(&directory);
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .expect("mkfifo")
                .success()
        );
        let refused = ProcessLock::acquire(&fifo).expect_err("a FIFO");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn file_of_zeros_after_a_crash_is_locked() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(file(&directory), [0; 21]).expect("written");
        owned(ProcessLock::acquire(&file(&directory)));
    }

    #[test]
    fn unwritable_file_cannot_be_locked() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(file(&directory)).expect("made");
        assert!(ProcessLock::acquire(&file(&directory)).is_err());
        assert!(ProcessLock::acquire(&directory.path().join("missing/lock")).is_err());
    }

    #[test]
    fn other_owner_is_named_if_access_is_denied() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = directory.path();
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(name_owner(own, denied()).to_string(), denied().to_string());
        // Only root can give a file away. To everybody else `/` is another user's.
        let foreign = chown(own, Some(65_534), None).map_or(Path::new("/"), |()| own);
        let owner = foreign.metadata().expect("there").uid();
        let named = name_owner(foreign, denied());
        assert_eq!(named.kind(), io::ErrorKind::PermissionDenied);
        let text = named.to_string();
        assert!(
            text.starts_with(&foreign.display().to_string())
                && text.contains(&format!(" {owner},")),
            "{text}"
        );
    }
}
