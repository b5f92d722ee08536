//! A file that makes way for a new one before it grows beyond its size: `events.log`, `events.log.1`, `events.log.2`.
//!
//! Knows lines and files; knows nothing of what is in them.

use super::access::append;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file that is written, and those that it was before.
pub(super) struct RotatingFile {
    file: File,
    path: PathBuf,
    size: u64,
    /// Octets at most, unless a single line has more.
    limit: u64,
    /// How many older ones are kept.
    keep: u32,
}

impl RotatingFile {
    pub(super) fn open(path: &Path, limit: u64, keep: u32) -> io::Result<RotatingFile> {
        let file = append(path)?;
        let size = file.metadata()?.len();
        Ok(RotatingFile { file, path: path.to_owned(), size, limit, keep })
    }

    /// Writes whole lines; no line is torn between two files.
    pub(super) fn write_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        while !rest.is_empty() {
            let room = usize::try_from(self.limit.saturating_sub(self.size)).unwrap_or(usize::MAX);
            // As many whole lines as there is room for; at least one into a file that is empty.
            let fitting = match rest.get(..room) {
                None => rest.len(),
                Some(fitting) => fitting.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1),
            };
            let taken = match fitting {
                0 if self.size > 0 => {
                    self.rotate()?;
                    continue;
                }
                0 => rest.iter().position(|octet| *octet == b'\n').map_or(rest.len(), |end| end + 1),
                fitting => fitting,
            };
            self.file.write_all(&rest[..taken])?;
            self.size += taken as u64;
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Each file takes the next number; the last one goes. Where that fails the file that is there grows on.
    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
        for number in (1..self.keep).rev() {
            match std::fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.keep == 0 {
            std::fs::remove_file(&self.path)?;
        } else {
            std::fs::rename(&self.path, numbered(1))?;
        }
        self.reopen()
    }

    /// Opens the file again, under its name.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.file = append(&self.path)?;
        self.size = self.file.metadata()?.len();
        Ok(())
    }
}
