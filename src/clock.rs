//! [`Clock`]: the clock of the running server. A [`Moment`] has both the wall-clock time and the
//! monotonic time, because the two drift apart when the system time is set or the machine sleeps.
//!
//! A clock file may shift both times (`crawlgate run --clock`), so that tests see a day pass. The
//! module `server` accepts such a file only if every listener is on loopback.

use crate::locks::lock;
use crate::threads::spawn;
use crate::time::Timestamp;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// How often a clock file is read.
const READ_EVERY: Duration = Duration::from_millis(20);

/// Why a clock file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The clock file.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file has other words in it.
    #[error("{file}: write \"elapsed 25h\", \"set -2h\", or both, with s, m, h or d")]
    Malformed {
        /// The clock file.
        file: String,
    },
    /// No thread can be started to follow the file.
    #[error("cannot start the thread for the clock: {0}")]
    Thread(std::io::Error),
}

/// Where the time comes from. Cheap to clone; all clones are one clock.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    shift: Option<Arc<Mutex<ClockShift>>>,
}

/// A moment by the wall clock and by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// By the wall clock.
    pub now: Timestamp,
    /// Time since the start. Setting the system time does not change it.
    pub monotonic: Duration,
}

impl Moment {
    /// The seconds by which the wall clock is ahead of the monotonic time. They change when the
    /// wall clock is set, or the machine sleeps.
    pub fn wall_clock_offset(&self) -> i64 {
        self.now.0.saturating_sub(self.monotonic.as_secs() as i64)
    }
}

/// The shift of a clock file, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClockShift {
    /// Added to both times, as if they had passed.
    elapsed: i64,
    /// Added to the wall clock alone, as if it had been set.
    set: i64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            started: Instant::now(),
            shift: None,
        }
    }
}

impl Clock {
    /// A clock that a file shifts while the server runs: `elapsed 25h` lets a day and an hour pass,
    /// `set -2h` sets the wall clock back. The file may have both. For developers and tests.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn following_file(file: &Path) -> Result<Clock, ClockError> {
        let shift = Arc::new(Mutex::<ClockShift>::default());
        reload_shift(file, &shift)?;
        let followed = Arc::downgrade(&shift);
        let file = file.to_owned();
        let started = spawn("clock", move || {
            let mut has_failed = false;
            while let Some(shift) = followed.upgrade() {
                // A file that is being written is read whole the next time.
                let read = reload_shift(&file, &shift);
                if let Err(error) = &read
                    && !has_failed
                {
                    tracing::warn!(%error, "the clock file cannot be read: the clock keeps its last setting");
                }
                has_failed = read.is_err();
                if let Ok(true) = read {
                    let ClockShift { elapsed, set } = *lock(&shift);
                    tracing::warn!(elapsed, set, "the developer's clock was moved");
                }
                drop(shift);
                std::thread::sleep(READ_EVERY);
            }
        });
        started.map_err(ClockError::Thread)?;
        Ok(Clock {
            shift: Some(shift),
            ..Clock::default()
        })
    }

    /// The time of the wall clock.
    pub fn now(&self) -> SystemTime {
        // The instant matters only for the monotonic time, which is dropped here.
        self.now_and_monotonic_at(self.started).0
    }

    /// The present time of the wall clock, and the monotonic time of an instant that the caller
    /// took a moment ago. A clock file shifts both.
    pub fn now_and_monotonic_at(&self, instant: Instant) -> (SystemTime, Duration) {
        let monotonic = instant.saturating_duration_since(self.started);
        let Some(shift) = &self.shift else {
            return (SystemTime::now(), monotonic);
        };
        let ClockShift { elapsed, set } = *lock(shift);
        (
            shifted_system_time(elapsed + set),
            monotonic.saturating_add(Duration::from_secs(u64::try_from(elapsed).unwrap_or(0))),
        )
    }

    /// The present moment.
    pub fn moment(&self) -> Moment {
        let (now, monotonic) = self.now_and_monotonic_at(Instant::now());
        Moment {
            now: Timestamp::from(now),
            monotonic,
        }
    }
}

/// The machine's wall clock, shifted by so many seconds (negative: back); unshifted if the result
/// is no time of the system.
fn shifted_system_time(seconds: i64) -> SystemTime {
    let now = SystemTime::now();
    let by = Duration::from_secs(seconds.unsigned_abs());
    let shifted = if seconds < 0 {
        now.checked_sub(by)
    } else {
        now.checked_add(by)
    };
    shifted.unwrap_or(now)
}

/// Reads a clock file into `shift`. Returns whether the shift changed; it stays if the file cannot
/// be used.
fn reload_shift(file: &Path, shift: &Mutex<ClockShift>) -> Result<bool, ClockError> {
    let read = crate::files::read_bounded(file);
    let file = file.display().to_string();
    let text = match read {
        Ok(text) => text,
        Err(source) => return Err(ClockError::Read { file, source }),
    };
    let Some(new) = parse_shift(&String::from_utf8_lossy(&text)) else {
        return Err(ClockError::Malformed { file });
    };
    Ok(std::mem::replace(&mut *lock(shift), new) != new)
}

/// Parses `elapsed 25h set -2h`. Each may be missing (0), and the last one counts. `None` for other
/// words, or if `elapsed` is negative.
fn parse_shift(text: &str) -> Option<ClockShift> {
    let mut shift = ClockShift::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let amount = parse_seconds(words.next()?)?;
        match word {
            "elapsed" if amount >= 0 => shift.elapsed = amount,
            "set" => shift.set = amount,
            _ => return None,
        }
    }
    Some(shift)
}

/// Parses `25h` or `-2h` (units s, m, h, d) as seconds; `None` for anything else, or about 35,000
/// years and more.
fn parse_seconds(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    text.strip_suffix(unit)?
        .parse::<i64>()
        .ok()?
        .checked_mul(factor)
        .filter(|amount| amount.abs() < 1 << 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_file_is_parsed_or_rejected() {
        let shift = |elapsed, set| Some(ClockShift { elapsed, set });
        assert_eq!(parse_shift("elapsed 25h\n"), shift(90_000, 0));
        assert_eq!(parse_shift("set -2h elapsed 1d"), shift(86_400, -7_200));
        assert_eq!(parse_shift(""), shift(0, 0));
        for wrong in [
            "elapsed",
            "elapsed -1h",
            "elapsed 3",
            "set x",
            "later 3h",
            "set 99999999999999999999d",
            "elapsed é",
        ] {
            assert_eq!(parse_shift(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn elapsed_shifts_both_times_and_set_the_wall_clock() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clock");
        std::fs::write(&file, "elapsed 25h set -1h").expect("written");
        let real = Clock::default();
        let clock = Clock::following_file(&file).expect("a clock");
        let (real, shifted) = (real.moment(), clock.moment());
        assert!(shifted.now.0 - real.now.0 - 24 * 3_600 <= 1);
        assert!(shifted.monotonic >= Duration::from_secs(25 * 3_600));
        assert!(Clock::following_file(&directory.path().join("none")).is_err());
    }
}
