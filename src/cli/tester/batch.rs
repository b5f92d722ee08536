//! [`run`]: `tester --batch`. It answers one question in each line of standard input, `file TAB
//! token TAB url`, with one line, `allow|deny TAB line`. It keeps the robots.txt files parsed, so
//! millions of questions are answered fast.

use super::Result;
use crate::crawlers::Registry;
use crate::files::{MAX_BYTES, read_argument};
use crate::robots::{Dialect, File, Reading};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;

/// Octets of files that are kept prepared; beyond it, all are forgotten and read again when asked
/// about.
const KEPT: usize = 256 * 1024 * 1024;

/// Bytes of a line.
const MAX_LINE: u64 = 1024 * 1024;

/// Answers each line of standard input. A line that is not a question, and a file that cannot be
/// read, get `error` and the reason in place of the verdict, so that lines in and out stay side by
/// side.
pub fn run(dialect: Dialect) -> Result {
    let mut questions = io::stdin().lock();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let spaced = Registry::builtin().tokens_with_blanks();
    let mut files = Files::default();
    let mut progress = crate::cli::progress::Progress::new();
    let mut lines = 0_u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        if questions
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)?
            == 0
        {
            break;
        }
        let is_whole = line.len() < MAX_LINE as usize || line.ends_with(b"\n");
        if !is_whole {
            questions.skip_until(b'\n')?;
        }
        let question = line.strip_suffix(b"\n").unwrap_or(&line);
        // Written on Windows; no URL ends so.
        let question = question.strip_suffix(b"\r").unwrap_or(question);
        let mut parts = question.splitn(3, |octet| *octet == b'\t');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(file), Some(token), Some(url)) if is_whole => {
                match files.reading(file, dialect, &spaced) {
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
        // The clock is asked now and then only.
        if lines.is_multiple_of(1024) {
            progress.tell(|seconds| far(lines, seconds));
        }
    }
    out.flush()?;
    progress.say(|seconds| far(lines, seconds) + "\n");
    Ok(())
}

/// The line of progress.
fn far(lines: u64, seconds: f64) -> String {
    format!("{lines} lines, {:.0} a second", lines as f64 / seconds)
}

/// Files prepared for verdicts, by path.
#[derive(Default)]
struct Files {
    readings: HashMap<Vec<u8>, io::Result<Reading>>,
    octets: usize,
}

impl Files {
    /// The file at a path, read in this dialect, or why it cannot be read. Keeps the result; beyond
    /// `KEPT` bytes all are forgotten first. `spaced` are the tokens with blanks.
    fn reading(
        &mut self,
        path: &[u8],
        dialect: Dialect,
        spaced: &[&str],
    ) -> Result<&Reading, &io::Error> {
        // Not `entry`, which would copy the path of every question.
        if !self.readings.contains_key(path) {
            if self.octets > KEPT {
                self.readings.clear();
                self.octets = 0;
            }
            let reading = read_argument(OsStr::from_bytes(path).as_ref(), MAX_BYTES).map(|bytes| {
                self.octets += bytes.len();
                Reading::new(&File::parse(bytes), dialect, spaced)
            });
            self.octets += path.len();
            self.readings.insert(path.to_vec(), reading);
        }
        self.readings[path].as_ref()
    }
}
