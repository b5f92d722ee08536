//! [`LogFile`]: a log file that is appended in whole lines. The file is opened when the first lines
//! are written. If it was renamed, removed or replaced, it is created again under its path. While
//! that fails, lines are lost and counted. After a failed write, for example on a full disk, a line
//! end is written before the next line, because the last one may be there in part.

use crate::files::open_nonblocking;
use crate::locks::lock;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Held while a log is written to standard output, so that two logs do not mix their lines.
static STDOUT_LOCK: Mutex<()> = Mutex::new(());

/// The file of a log.
pub struct LogFile {
    /// The name of the log in messages, with its path.
    pub name: String,
    /// `None` until it could be opened.
    file: Option<File>,
    /// `None` for standard output.
    path: Option<PathBuf>,
    /// Whether the file may end with a part of a line.
    torn: bool,
}

/// The error of a write, with the number of lines that are not in the file.
#[derive(Debug)]
pub struct LogWriteError {
    pub lines: u64,
    pub error: io::Error,
}

impl LogFile {
    /// A file that is not open yet. `name` is for messages, which add the path.
    pub fn new(name: &str, path: &Path) -> LogFile {
        LogFile {
            name: format!("{name} {}", path.display()),
            file: None,
            path: Some(path.to_owned()),
            torn: false,
        }
    }

    /// Standard output, with a descriptor of its own. A pipe that nothing reads blocks the writer,
    /// and `std::io::Stdout` would stay locked, so that the end of the process could not flush it.
    pub fn stdout(name: &str) -> io::Result<LogFile> {
        let file = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(LogFile {
            name: name.to_owned(),
            file: Some(file.into()),
            path: None,
            torn: false,
        })
    }

    /// Whether the file could be opened.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Appends whole lines to the file at the log's path, which is opened if it is not open, and
    /// created again if it was renamed or removed. If that fails, the lines are lost. Without lines
    /// it only opens the file, or ends the line that a failed write left.
    pub fn write_lines(&mut self, lines: &[u8]) -> Result<(), LogWriteError> {
        let _alone = self.path.is_none().then(|| lock(&STDOUT_LOCK));
        match self.reopen_if_moved() {
            Ok(()) => self.append_lines(lines),
            Err(error) => Err(LogWriteError {
                lines: count_lines(lines),
                error,
            }),
        }
    }

    /// Appends whole lines to the open file.
    fn append_lines(&mut self, lines: &[u8]) -> Result<(), LogWriteError> {
        self.end_torn_line().map_err(|error| LogWriteError {
            lines: count_lines(lines),
            error,
        })?;
        self.append(lines).map_err(|(written, error)| {
            let unwritten = &lines[written..];
            // A line without its line end is not lost: the line end is written before the next
            // line.
            let ended = u64::from(self.torn && unwritten.first() == Some(&b'\n'));
            // So an attempt without lines writes a line end, and shows whether there is room again.
            self.torn = true;
            LogWriteError {
                lines: count_lines(unwritten) - ended,
                error,
            }
        })
    }

    /// Opens the file if it is not open. Reopens it if its path does not exist or leads to another
    /// file, and logs that. Does nothing for standard output.
    fn reopen_if_moved(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let Some(file) = &self.file else {
            return self.reopen();
        };
        let open = file.metadata()?;
        match std::fs::metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => return Ok(()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => self.reopen()?,
        }
        tracing::warn!(
            "the {} was removed or renamed; crawlgate created a new one",
            self.name
        );
        Ok(())
    }

    /// Ends a line that was written in part.
    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.torn {
            self.append(b"\n").map_err(|(_, error)| error)?;
        }
        Ok(())
    }

    /// Appends all bytes, and updates `torn`. An error comes with the number of bytes that were
    /// written before it.
    fn append(&mut self, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut written = 0;
        let Some(file) = &mut self.file else {
            return Err((written, ErrorKind::NotFound.into()));
        };
        while let rest @ [_, ..] = &bytes[written..] {
            match file.write(rest) {
                Ok(0) => return Err((written, ErrorKind::WriteZero.into())),
                Ok(more) => {
                    written += more;
                    self.torn = bytes[written - 1] != b'\n';
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }

    /// Ends a torn line in the old file, then opens (or creates) the file at the log's path. After
    /// an error the old file stays open. Does nothing for standard output.
    pub fn reopen(&mut self) -> io::Result<()> {
        let Some(path) = self.path.clone() else {
            return Ok(());
        };
        // Two lines must not be joined when the old and the new file are read as one.
        let _ = self.end_torn_line();
        let (file, torn) = open_for_append(&path)?;
        self.file = Some(file);
        self.torn = torn;
        Ok(())
    }
}

/// Opens a file for appending, or creates it for its owner and the group: it may have addresses of
/// clients. Returns whether it ends with a part of a line.
fn open_for_append(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o640);
    let file = open_nonblocking(&options, path)?;
    let metadata = file.metadata()?;
    // A file that cannot be read counts as one that ends with a whole line.
    let torn =
        metadata.is_file() && metadata.len() > 0 && last_byte(path).is_ok_and(|last| last != b'\n');
    Ok((file, torn))
}

fn last_byte(path: &Path) -> io::Result<u8> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last[0])
}

fn count_lines(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;
