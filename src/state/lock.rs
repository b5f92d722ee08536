//! [`ProcessLock`]: the lock by which one process owns a state directory or a control socket. The
//! locked file has the process id of the owner. A clean end empties the file, so that the next
//! process notices a crash even if this one could write nothing else.

use crate::files::{foreign, open_own};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The longest content of the file: a process id, padded.
const MAX_LENGTH: u64 = 32;

/// The locked file. The lock goes with the process, however the process ends, or to the process
/// that got a descriptor of the file: a lock belongs to the open file, and lasts until its last
/// descriptor is closed.
#[derive(Debug)]
pub struct ProcessLock {
    file: File,
    is_passed_on: bool,
}

/// The result of locking.
#[derive(Debug)]
pub enum Locking {
    /// This process owns it.
    Owned {
        /// The lock.
        lock: ProcessLock,
        /// Whether the owner before ended in order, or there was none.
        was_released: bool,
    },
    /// Another process owns it.
    Held {
        /// Its process id, where the file says it.
        pid: Option<u32>,
    },
}

impl ProcessLock {
    /// Locks a file, making it if need be, and writes the process id into it. Returns
    /// `Locking::Held`, and changes nothing, if another process owns the lock.
    ///
    /// # Errors
    /// The file cannot be made or written, or its file system has no locks.
    /// [`io::ErrorKind::AlreadyExists`]: it is none of crawlgate's (a link, a second name, or other
    /// content than a process id) and stays as it is.
    pub fn acquire(path: &Path) -> io::Result<Locking> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = open_own(&options, path)?;
        let locked = file.try_lock();
        let mut written = Vec::new();
        (&mut file).take(MAX_LENGTH + 1).read_to_end(&mut written)?;
        // A crash of the machine may leave zeros.
        let is_ours = written
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b' ' | b'\n' | 0));
        // A second name is somebody's: crawlgate gives it none.
        let is_shared = file.metadata()?.nlink() > 1;
        if is_shared || written.len() as u64 > MAX_LENGTH || !is_ours {
            return Err(foreign(path));
        }
        let written = String::from_utf8_lossy(&written);
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(Locking::Held {
                    pid: written.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut lock = ProcessLock {
            file,
            is_passed_on: false,
        };
        lock.write_owner()?;
        Ok(Locking::Owned {
            lock,
            was_released: written.trim().is_empty(),
        })
    }

    /// Makes a lock from the descriptor that another process got by `ProcessLock::share` and gave
    /// to this one. Writes the id of this process into the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn passed(descriptor: OwnedFd) -> io::Result<ProcessLock> {
        let mut lock = ProcessLock {
            file: File::from(descriptor),
            is_passed_on: false,
        };
        lock.write_owner()?;
        Ok(lock)
    }

    /// Says which process owns the lock: this one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_owner(&mut self) -> io::Result<()> {
        // Written over the former id: a full disk has room for that, as a rule.
        self.file.rewind()?;
        writeln!(self.file, "{:<20}", std::process::id())?;
        self.file.sync_all()
    }

    /// A descriptor for another process, which owns the lock when [`ProcessLock::pass_on`] was
    /// called.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.file.try_clone().map(OwnedFd::from)
    }

    /// Notes that the process with the other descriptor owns the lock from now on: this one neither
    /// empties the file nor unlocks it any more.
    pub fn pass_on(&mut self) {
        self.is_passed_on = true;
    }

    /// Empties the file, by which the next start sees that this process ended in order. The lock
    /// itself lasts until this value is dropped. Does nothing to a lock that was passed on: its new
    /// owner empties the file.
    ///
    /// # Errors
    /// The file cannot be emptied: the next start takes this run for a crash.
    pub fn release(&self) -> io::Result<()> {
        if self.is_passed_on {
            return Ok(());
        }
        self.file.set_len(0)?;
        self.file.sync_all()
    }
}

impl Drop for ProcessLock {
    /// Unlocks the file, unless the lock was passed on. Closing it would not be enough: a process
    /// that was forked a moment ago has the file open until it runs its own program.
    fn drop(&mut self) {
        if !self.is_passed_on {
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Locking, ProcessLock};
    use std::path::PathBuf;
    use std::{fs, io};

    fn file(directory: &tempfile::TempDir) -> PathBuf {
        directory.path().join("lock")
    }

    fn owned(locking: io::Result<Locking>) -> (ProcessLock, bool) {
        match locking {
            Ok(Locking::Owned { lock, was_released }) => (lock, was_released),
            other => panic!("not locked: {other:?}"),
        }
    }

    #[test]
    fn a_second_owner_is_refused_with_the_pid_of_the_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let (_lock, was_released) = owned(ProcessLock::acquire(&file(&directory)));
        assert!(was_released);
        match ProcessLock::acquire(&file(&directory)) {
            Ok(Locking::Held { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_owner_that_vanished_leaves_its_pid_and_one_that_released_does_not() {
        let directory = tempfile::tempdir().expect("a directory");
        drop(owned(ProcessLock::acquire(&file(&directory))));
        let (lock, was_released) = owned(ProcessLock::acquire(&file(&directory)));
        assert!(!was_released);
        lock.release().expect("released");
        drop(lock);
        assert!(owned(ProcessLock::acquire(&file(&directory))).1);
    }

    #[test]
    fn lock_that_is_passed_on_outlasts_its_first_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let (mut lock, _) = owned(ProcessLock::acquire(&file(&directory)));
        let passed = ProcessLock::passed(lock.share().expect("a descriptor")).expect("the lock");
        lock.pass_on();
        lock.release().expect("nothing to release");
        drop(lock);
        match ProcessLock::acquire(&file(&directory)) {
            Ok(Locking::Held { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(passed);
        assert!(!owned(ProcessLock::acquire(&file(&directory))).1);
    }

    #[test]
    fn file_of_somebody_else_is_refused_and_left_alone() {
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
    fn fifo_is_refused_without_waiting_for_its_other_end() {
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
    fn a_file_that_cannot_be_written_cannot_be_locked() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(file(&directory)).expect("made");
        assert!(ProcessLock::acquire(&file(&directory)).is_err());
        assert!(ProcessLock::acquire(&directory.path().join("missing/lock")).is_err());
    }
}
