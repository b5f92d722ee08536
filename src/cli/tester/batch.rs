//! `tester --batch`: tests many URLs against robots.txt files. For each line
//! `file TAB token TAB url` of standard input, [`run_batch`] prints a line `allow|deny TAB line`.
//! It caches parsed robots.txt files, so that it can answer millions of lines fast.

use super::Result;
use crate::cli::read_line;
use crate::crawlers::Registry;
use crate::files::{MAX_FILE_BYTES, read_argument};
use crate::robots::{Dialect, DialectRules, RobotsFile};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;

/// When the cached files are larger, all are dropped.
const MAX_CACHED_BYTES: usize = 256 * 1024 * 1024;

const MAX_LINE: u64 = 1024 * 1024;

/// Answers each line of standard input with one line. A malformed line and an unreadable file get
/// `error` and the reason.
pub fn run_batch(dialect: Dialect) -> Result {
    let mut questions = io::stdin().lock();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let spaced = Registry::builtin().tokens_with_blanks();
    let mut files = ParsedFiles::default();
    let mut progress = crate::cli::progress::ProgressLine::new();
    let mut lines = 0_u64;
    let mut line = Vec::new();
    while let Some(is_whole) = read_line(&mut questions, &mut line, MAX_LINE)? {
        let mut parts = line.splitn(3, |byte| *byte == b'\t');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(file), Some(token), Some(url)) if is_whole => {
                match files.get_or_read(file, dialect, &spaced) {
                    Ok(reading) => {
                        let verdict = reading.verdict(token, url);
                        let word = if verdict.allowed { "allow" } else { "deny" };
                        writeln!(out, "{word}\t{}", verdict.line.unwrap_or(0))?;
                    }
                    Err(error) => writeln!(out, "error\t{error}")?,
                }
            }
            _ if !is_whole => writeln!(out, "error\tthe line is longer than 1 MiB")?,
            _ => writeln!(out, "error\ta line is: file TAB token TAB url")?,
        }
        lines += 1;
        // Reading the clock for each line would be slow.
        if lines.is_multiple_of(1024) {
            progress.update(|seconds| progress_line(lines, seconds));
        }
    }
    out.flush()?;
    progress.write(|seconds| progress_line(lines, seconds) + "\n");
    Ok(())
}

/// The line of progress.
fn progress_line(lines: u64, seconds: f64) -> String {
    format!("{lines} lines, {:.0} a second", lines as f64 / seconds)
}

/// Caches parsed files by path.
#[derive(Default)]
struct ParsedFiles {
    readings: HashMap<Vec<u8>, io::Result<DialectRules>>,
    bytes: usize,
}

impl ParsedFiles {
    /// The file at a path, parsed in this dialect, or the error. Caches both. `spaced` are the tokens
    /// with blanks.
    fn get_or_read(
        &mut self,
        path: &[u8],
        dialect: Dialect,
        spaced: &[&str],
    ) -> Result<&DialectRules, &io::Error> {
        // Not `entry`, which would copy the path of every question.
        if !self.readings.contains_key(path) {
            if self.bytes > MAX_CACHED_BYTES {
                self.readings.clear();
                self.bytes = 0;
            }
            let reading =
                read_argument(OsStr::from_bytes(path).as_ref(), MAX_FILE_BYTES).map(|bytes| {
                    self.bytes += bytes.len();
                    DialectRules::new(&RobotsFile::parse(bytes), dialect, spaced)
                });
            self.bytes += path.len();
            self.readings.insert(path.to_vec(), reading);
        }
        self.readings[path].as_ref()
    }
}
