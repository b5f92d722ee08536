//! The file of a log: lines are appended whole, and where it has a size it makes way for a new one before it grows
//! beyond: `events.log`, `events.log.1`, `events.log.2`.
//!
//! A file whose name was taken away is made anew. One that cannot make way grows on. A line that was torn, by a disk
//! that is full, is ended before the next one, and what is lost is known to the line. Knows lines and files; knows
//! nothing of what is in them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// When a file makes way for a new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    /// Octets at most, unless a single line has more.
    pub limit: u64,
    /// How many older ones are kept.
    pub keep: u32,
}

/// The file that is written.
pub(super) struct LogFile {
    /// What it is called in messages.
    name: &'static str,
    file: File,
    path: PathBuf,
    rotation: Option<Rotation>,
    /// Nothing of a pipe or a device: they make way for nothing.
    size: Option<u64>,
    /// It ends in a part of a line.
    torn: bool,
    /// Why it could not make way for a new one, the last time.
    stuck: Option<String>,
}

/// Lines that are not in the file.
#[derive(Debug)]
pub(super) struct Lost {
    pub lines: u64,
    pub error: io::Error,
}

impl LogFile {
    pub(super) fn open(name: &'static str, path: &Path, rotation: Option<Rotation>) -> io::Result<LogFile> {
        let (file, size, torn) = append(path)?;
        Ok(LogFile { name, file, path: path.to_owned(), rotation, size, torn, stuck: None })
    }

    /// Writes whole lines; no line is torn between two files. Lines that belong into the file as it is, because it is
    /// to be opened again, go into it whatever its name is by now, but not where it has none: nobody could read them.
    pub(super) fn write_lines(&mut self, lines: &[u8], as_it_is: bool) -> Result<(), Lost> {
        let told = self.stuck.take().is_some();
        let as_it_is = as_it_is && !self.is_nameless();
        let mut may_rotate = !as_it_is;
        if !as_it_is && let Err(error) = self.keep_name() {
            self.grow_on(error, told).map_err(|error| Lost { lines: count(lines), error })?;
            may_rotate = false;
        }
        self.end_torn_line().map_err(|error| Lost { lines: count(lines), error })?;
        let mut rest = lines;
        while !rest.is_empty() {
            let limit = self.rotation.filter(|_| may_rotate).map(|rotation| rotation.limit);
            let room = limit.zip(self.size).map(|(limit, size)| limit.saturating_sub(size));
            let taken = match whole_lines(rest, room.unwrap_or(u64::MAX)) {
                0 if self.size > Some(0) => {
                    if let Err(error) = self.rotate() {
                        self.grow_on(error, told).map_err(|error| Lost { lines: count(rest), error })?;
                        may_rotate = false;
                    }
                    continue;
                }
                0 => rest.iter().position(|octet| *octet == b'\n').map_or(rest.len(), |end| end + 1),
                taken => taken,
            };
            if let Err((written, error)) = self.append(&rest[..taken]) {
                let unwritten = &rest[written..];
                // Of a line that lacks but its end nothing is lost.
                let ended = u64::from(self.torn && unwritten.first() == Some(&b'\n'));
                return Err(Lost { lines: count(unwritten) - ended, error });
            }
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Why the file grows beyond its size, or under another name.
    pub(super) fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    /// The file that is there is written, though it should have made way. What has no name any more nobody can read.
    fn grow_on(&mut self, error: io::Error, told: bool) -> io::Result<()> {
        if self.is_nameless() {
            return Err(error);
        }
        if !told {
            tracing::error!(%error, "{}: the {} cannot be made anew; the old file grows on", self.path.display(), self.name);
        }
        self.stuck = Some(error.to_string());
        Ok(())
    }

    fn is_nameless(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }

    /// Opens the file anew where its name is gone, or another's: who looks for it by its name finds nothing else.
    fn keep_name(&mut self) -> io::Result<()> {
        let own = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (own.dev(), own.ino()) => {
                // Somebody may have emptied it.
                self.size = size(&own);
                return Ok(());
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => self.reopen()?,
        }
        tracing::warn!("{}: the {} was removed or renamed; it is made anew", self.path.display(), self.name);
        Ok(())
    }

    /// Ends what was torn, so that the next line stands for itself.
    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.torn {
            self.append(b"\n").map_err(|(_, error)| error)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Appends everything, or says how much of it was.
    fn append(&mut self, octets: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut written = 0;
        while let rest @ [_, ..] = &octets[written..] {
            let error = match self.file.write(rest) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(more) => {
                    written += more;
                    self.size = self.size.map(|size| size + more as u64);
                    self.torn = octets[written - 1] != b'\n';
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            return Err((written, error));
        }
        Ok(())
    }

    /// Each file takes the next number; the last one goes.
    fn rotate(&mut self) -> io::Result<()> {
        let keep = self.rotation.map_or(0, |rotation| rotation.keep);
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
        for number in (1..keep).rev() {
            unless_gone(std::fs::rename(numbered(number), numbered(number + 1)))?;
        }
        unless_gone(match keep {
            0 => std::fs::remove_file(&self.path),
            _ => std::fs::rename(&self.path, numbered(1)),
        })?;
        self.reopen()
    }

    /// Opens the file again, under its name.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        // Whoever reads the old one and then the new one finds no two lines in one.
        let _ = self.end_torn_line();
        (self.file, self.size, self.torn) = append(&self.path)?;
        Ok(())
    }
}

fn size(file: &Metadata) -> Option<u64> {
    file.is_file().then_some(file.len())
}

fn append(path: &Path) -> io::Result<(File, Option<u64>, bool)> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let size = size(&file.metadata()?);
    // Where it cannot be read, nobody knows better.
    let torn = size > Some(0) && last_octet(path).is_ok_and(|last| last != b'\n');
    Ok((file, size, torn))
}

fn last_octet(path: &Path) -> io::Result<u8> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last[0])
}

fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|octet| **octet == b'\n').count() as u64
}

/// The octets of as many whole lines as there is room for.
fn whole_lines(lines: &[u8], room: u64) -> usize {
    match lines.get(..usize::try_from(room).unwrap_or(usize::MAX)) {
        None => lines.len(),
        Some(fitting) => fitting.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1),
    }
}

#[cfg(test)]
mod tests;
