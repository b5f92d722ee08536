//! The access log: one JSON line a request. Lines are put together on the worker, gathered in a buffer, and written by
//! a thread of its own several times a second: waking it for each line would cost more than everything else. A full
//! buffer drops lines and counts them; a request never waits for a disk.

use super::log_file::{LogFile, Lost};
use crate::policy::Version;
use crate::settings::AccessDestination;
use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{Stdout, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Octets that may wait: some seconds of a busy server.
const ROOM: usize = 8 * 1024 * 1024;
/// From here on the writer does not wait for more.
const ENOUGH: usize = 64 * 1024;
/// What it is called in messages.
const NAME: &str = "access-log";
/// How long a line may wait for others.
const GATHERED: Duration = Duration::from_millis(50);

/// One line.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct AccessRecord<'a> {
    /// RFC 3339 with milliseconds, UTC.
    #[serde(serialize_with = "moment")]
    pub time: SystemTime,
    pub client: Option<IpAddr>,
    pub method: Cow<'a, str>,
    pub host: Cow<'a, str>,
    pub target: Cow<'a, str>,
    pub http: &'static str,
    pub status: u16,
    pub bytes: u64,
    pub milliseconds: f64,
    pub user_agent: Option<Cow<'a, str>>,
    pub referer: Option<Cow<'a, str>>,
    pub site: Option<&'a str>,
    /// The registry's id, the policy's token, or `other`; absent for a person.
    pub crawler: Option<&'a str>,
    pub verdict: Option<&'static str>,
    pub kind: Option<&'static str>,
    /// A violation of a crawler that was never served robots.txt here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_fetched: bool,
    /// `file:line:column` of the rule that decided.
    pub rule: Option<String>,
    pub action: &'static str,
    /// What enforce would have done.
    pub would: Option<&'static str>,
    /// The version of robots.txt it was judged by.
    #[serde(serialize_with = "version")]
    pub version: Option<Version>,
    pub error: Option<&'a str>,
}

/// Digit by digit: the formatting machinery takes longer than all the rest of a line.
pub(super) fn moment<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let at = DateTime::<Utc>::from(*time);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let mut write = |place: usize, digits: usize, mut number: u32| {
        for digit in text[place..place + digits].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    write(0, 4, at.year().clamp(0, 9_999).unsigned_abs());
    for (place, number) in [(5, at.month()), (8, at.day()), (11, at.hour()), (14, at.minute()), (17, at.second())] {
        write(place, 2, number);
    }
    write(20, 3, at.timestamp_subsec_millis());
    serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
}

pub(super) fn version<S: Serializer>(version: &Option<Version>, serializer: S) -> Result<S::Ok, S::Error> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let Some(Version(octets)) = version else { return serializer.serialize_none() };
    let mut text = [0; 16];
    for (pair, octet) in text.chunks_exact_mut(2).zip(octets) {
        pair.copy_from_slice(&[HEX[usize::from(octet >> 4)], HEX[usize::from(octet & 15)]]);
    }
    serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
}

thread_local! {
    /// A line is put together here, so that the lock is held for copying only.
    static LINE: RefCell<Vec<u8>> = RefCell::default();
}

/// What waits to be written, and what the writer is to do.
#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Octets that were ever taken in, and that the writer is done with.
    taken_in: u64,
    done: u64,
    /// Whether somebody waits for the writer.
    hurry: bool,
    /// The file is to be opened again; so many of the octets that wait belong into the old one.
    reopen: Option<usize>,
    /// The writer is at it.
    reopening: bool,
    closed: bool,
    /// A line found no room since the writer came by.
    overflowed: bool,
    /// Why lines are lost, as the writer last saw it.
    problem: Option<String>,
}

/// What the writer shares with those who write.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// The writer has something to do.
    work: Condvar,
    /// The writer has done something.
    written: Condvar,
    dropped: AtomicU64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log; cheap to clone. The writer ends with the last of them.
#[derive(Clone)]
pub struct AccessLog {
    open: Option<Arc<Open>>,
}

struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.work.notify_one();
    }
}

/// Where lines go.
pub(super) enum Output {
    Stdout(Stdout),
    File(LogFile),
}

impl AccessLog {
    /// Opens the destination and starts the writer.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or no thread can be started.
    pub fn open(destination: &AccessDestination) -> std::io::Result<AccessLog> {
        let output = match destination {
            AccessDestination::Off => return Ok(AccessLog::off()),
            AccessDestination::Stdout => Output::Stdout(std::io::stdout()),
            AccessDestination::File(path) => Output::File(LogFile::open(NAME, path, None)?),
        };
        AccessLog::start(NAME, output)
    }

    /// Starts the writer of a log, called so in messages.
    pub(super) fn start(name: &'static str, output: Output) -> std::io::Result<AccessLog> {
        let shared = Arc::<Shared>::default();
        std::thread::Builder::new().name(name.into()).spawn({
            let shared = shared.clone();
            move || write_lines(name, output, &shared)
        })?;
        Ok(AccessLog { open: Some(Arc::new(Open(shared))) })
    }

    /// A log that goes nowhere.
    pub fn off() -> AccessLog {
        AccessLog { open: None }
    }

    fn shared(&self) -> Option<&Shared> {
        self.open.as_deref().map(|open| &*open.0)
    }

    /// Whether lines go anywhere, so that nobody builds a record for nothing.
    pub fn enabled(&self) -> bool {
        self.open.is_some()
    }

    /// Takes a line in.
    pub fn write(&self, record: &impl Serialize) {
        let Some(shared) = self.shared() else { return };
        LINE.with_borrow_mut(|line| {
            line.clear();
            if serde_json::to_writer(&mut *line, record).is_err() {
                shared.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            line.push(b'\n');
            let mut state = shared.state();
            let before = state.waiting.len();
            if before + line.len() > ROOM {
                state.overflowed = true;
                shared.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            state.waiting.extend_from_slice(line);
            state.taken_in += line.len() as u64;
            let after = state.waiting.len();
            drop(state);
            // Between the first line and enough of them the writer sleeps by the clock.
            if before == 0 || (before < ENOUGH && after >= ENOUGH) {
                shared.work.notify_one();
            }
        });
    }

    /// Lines dropped because too many were waiting, or that could not be written.
    pub fn dropped(&self) -> u64 {
        self.shared().map_or(0, |shared| shared.dropped.load(Ordering::Relaxed))
    }

    /// Why lines are being lost, where they are.
    pub fn problem(&self) -> Option<String> {
        let state = self.shared()?.state();
        let waiting = || state.overflowed.then(|| "the log is written too slowly, and lines are lost".to_owned());
        state.problem.clone().or_else(waiting)
    }

    /// Waits until everything taken in is written, for at most `limit`.
    pub fn flush(&self, limit: Duration) {
        let Some(shared) = self.shared() else { return };
        let end = Instant::now() + limit;
        let mut state = shared.state();
        let wanted = state.taken_in;
        while state.done < wanted || state.reopen.is_some() || state.reopening {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state.hurry = true;
            shared.work.notify_one();
            state = shared.written.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Opens the file again (after rotation, on SIGHUP).
    pub fn reopen(&self) {
        if let Some(shared) = self.shared() {
            let mut state = shared.state();
            state.reopen = Some(state.waiting.len());
            drop(state);
            shared.work.notify_one();
        }
    }
}

fn write_lines(name: &str, mut output: Output, shared: &Shared) {
    // Lines that were lost since the log could be written the last time.
    let mut lost = 0;
    // The two buffers change places.
    let mut lines = Vec::new();
    loop {
        let mut state = shared.state();
        let idle =
            |state: &mut State| state.waiting.is_empty() && !state.hurry && state.reopen.is_none() && !state.closed;
        state = shared.work.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        let few =
            |state: &mut State| state.waiting.len() < ENOUGH && !state.hurry && state.reopen.is_none() && !state.closed;
        state = shared.work.wait_timeout_while(state, GATHERED, few).unwrap_or_else(PoisonError::into_inner).0;
        lines.clear();
        std::mem::swap(&mut lines, &mut state.waiting);
        let (reopen, closed) = (state.reopen.take(), state.closed);
        state.reopening = reopen.is_some();
        state.hurry = false;
        let overflowed = std::mem::take(&mut state.overflowed);
        drop(state);

        let (before, after) = lines.split_at(reopen.unwrap_or(lines.len()).min(lines.len()));
        let mut problem = None;
        let mut put = |output: &mut Output, lines: &[u8], as_it_is: bool| {
            if lines.is_empty() {
                return;
            }
            match output.write(lines, as_it_is) {
                Ok(()) if lost > 0 => {
                    tracing::warn!(lost, "the {name} is written again");
                    lost = 0;
                }
                Ok(()) => {}
                Err(Lost { lines, error }) => {
                    if lost == 0 {
                        tracing::error!(%error, "the {name} cannot be written; lines are lost until it can");
                    }
                    lost += lines;
                    shared.dropped.fetch_add(lines, Ordering::Relaxed);
                    problem = Some(format!("the {name} cannot be written, and lines are lost: {error}"));
                }
            }
        };
        put(&mut output, before, reopen.is_some());
        let opened = if reopen.is_some() { output.reopen() } else { Ok(()) };
        put(&mut output, after, false);
        if let Err(error) = opened {
            tracing::error!(%error, "the {name} cannot be opened again");
        }
        let mut state = shared.state();
        if problem.is_some() || !lines.is_empty() {
            let stuck =
                || Some(format!("the {name} cannot be made anew, and the old file grows on: {}", output.stuck()?));
            let overflow = || overflowed.then(|| format!("the {name} is written too slowly, and lines are lost"));
            state.problem = problem.or_else(overflow).or_else(stuck);
        }
        state.done += lines.len() as u64;
        state.reopening = false;
        drop(state);
        shared.written.notify_all();
        if closed {
            return;
        }
        // What a burst needed is given back.
        if lines.capacity() > 4 * ENOUGH {
            lines = Vec::new();
        }
    }
}

impl Output {
    /// Writes whole lines, into the file as it is where it is to be opened again.
    fn write(&mut self, lines: &[u8], as_it_is: bool) -> Result<(), Lost> {
        match self {
            Output::Stdout(stdout) => stdout.write_all(lines).and_then(|()| stdout.flush()).map_err(|error| {
                let lost = lines.iter().filter(|octet| **octet == b'\n').count();
                Lost { lines: lost as u64, error }
            }),
            Output::File(file) => file.write_lines(lines, as_it_is),
        }
    }

    fn reopen(&mut self) -> std::io::Result<()> {
        match self {
            Output::Stdout(_) => Ok(()),
            Output::File(file) => file.reopen(),
        }
    }

    /// Why its file is not made anew, where it should be.
    fn stuck(&self) -> Option<&str> {
        match self {
            Output::Stdout(_) => None,
            Output::File(file) => file.stuck(),
        }
    }
}
