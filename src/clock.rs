//! [`Clock`]: the clock of the running server. A [`Moment`] has two measures: the time of the wall
//! clock, and the elapsed time, which a change of the system time does not affect. The two differ
//! when the system time is set or the machine sleeps.
//!
//! A clock file may shift both (`crawlgate run --clock`), so that tests see a day pass. `server`
//! refuses such a file unless every listener is on loopback.

use crate::locks::lock;
use crate::threads::spawn;
use crate::time::Timestamp;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// How often a clock file is read.
const LOOK: Duration = Duration::from_millis(20);

/// Why a clock file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// The clock file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file has other words in it.
    #[error("{file}: write `lived 25h`, `set -2h`, or both, with s, m, h or d")]
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
    began: Instant,
    /// What was lived through before it was made, by another process.
    before: Duration,
    shift: Option<Arc<Shift>>,
}

/// A moment by both measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// By the wall clock.
    pub now: Timestamp,
    /// How much time crawlgate lived through since the clock was made, or since the process before
    /// made its own.
    pub lived: Duration,
}

impl Moment {
    /// The seconds by which the wall clock is ahead of the time lived through. They change when the
    /// wall clock is set, or the machine sleeps.
    pub fn ahead(&self) -> i64 {
        self.now.0.saturating_sub(self.lived.as_secs() as i64)
    }
}

/// Seconds on top of the machine's own: on both measures, as if so much time had passed, and on the
/// wall clock alone, as if it had been set.
type Shift = Mutex<(i64, i64)>;

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            began: Instant::now(),
            before: Duration::ZERO,
            shift: None,
        }
    }
}

impl Clock {
    /// A clock that a file shifts while the server runs: `lived 25h` lets a day and an hour pass,
    /// `set -2h` sets the wall clock back. The file may have both. For developers and tests.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn following(file: &Path) -> Result<Clock, ClockError> {
        let shift = Arc::new(Shift::default());
        read(file, &shift)?;
        let followed = Arc::downgrade(&shift);
        let file = file.to_owned();
        let started = spawn("clock", move || {
            while let Some(shift) = followed.upgrade() {
                // A file that is being written is read whole the next time.
                if let Ok(true) = read(&file, &shift) {
                    let (lived, set) = *lock(&shift);
                    tracing::warn!(lived, set, "the developer's clock was moved");
                }
                drop(shift);
                std::thread::sleep(LOOK);
            }
        });
        started.map_err(ClockError::Thread)?;
        Ok(Clock {
            shift: Some(shift),
            ..Clock::default()
        })
    }

    /// The same clock for a process that continues another one: its elapsed time is `lived` now and
    /// goes on from there. It is never set back.
    pub fn going_on(self, lived: Duration) -> Clock {
        let before = lived.saturating_sub(self.moment().lived);
        Clock { before, ..self }
    }

    /// The time of the wall clock.
    pub fn now(&self) -> SystemTime {
        // The instant matters only for the elapsed time, which is dropped here.
        self.read(self.began).0
    }

    /// The present time of the wall clock, and the elapsed time until the instant `until`, which
    /// the caller took a moment ago. A clock file shifts both.
    pub fn read(&self, until: Instant) -> (SystemTime, Duration) {
        let lived = self
            .before
            .saturating_add(until.saturating_duration_since(self.began));
        let Some(shift) = &self.shift else {
            return (SystemTime::now(), lived);
        };
        let (more, set) = *lock(shift);
        (
            shifted(more + set),
            lived.saturating_add(Duration::from_secs(u64::try_from(more).unwrap_or(0))),
        )
    }

    /// Now, by both measures.
    pub fn moment(&self) -> Moment {
        let (now, lived) = self.read(Instant::now());
        Moment {
            now: Timestamp::from(now),
            lived,
        }
    }
}

/// The machine's wall clock, shifted by so many seconds (negative: back); unshifted if the result
/// is no time of the system.
fn shifted(seconds: i64) -> SystemTime {
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
fn read(file: &Path, shift: &Shift) -> Result<bool, ClockError> {
    let read = crate::files::read(file);
    let file = file.display().to_string();
    let text = match read {
        Ok(text) => text,
        Err(source) => return Err(ClockError::Read { file, source }),
    };
    let Some(new) = parse(&String::from_utf8_lossy(&text)) else {
        return Err(ClockError::Malformed { file });
    };
    Ok(std::mem::replace(&mut *lock(shift), new) != new)
}

/// Reads `lived 25h set -2h` as the two shifts in seconds: 90,000 and -7,200. Each may be missing
/// (0), and the last one counts. `None` for other words, or if `lived` is negative.
fn parse(text: &str) -> Option<(i64, i64)> {
    let mut lived = 0;
    let mut set = 0;
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let amount = seconds(words.next()?)?;
        match word {
            "lived" if amount >= 0 => lived = amount,
            "set" => set = amount,
            _ => return None,
        }
    }
    Some((lived, set))
}

/// Reads `25h` or `-2h` (units s, m, h, d) as seconds; `None` for anything else, or about 35,000
/// years and more.
fn seconds(written: &str) -> Option<i64> {
    let unit = written.chars().last()?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    written
        .strip_suffix(unit)?
        .parse::<i64>()
        .ok()?
        .checked_mul(factor)
        .filter(|amount| amount.abs() < 1 << 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_file_says_what_passed_and_what_was_set() {
        assert_eq!(parse("lived 25h\n"), Some((90_000, 0)));
        assert_eq!(parse("set -2h lived 1d"), Some((86_400, -7_200)));
        assert_eq!(parse(""), Some((0, 0)));
        for wrong in [
            "lived",
            "lived -1h",
            "lived 3",
            "set x",
            "later 3h",
            "set 99999999999999999999d",
            "lived é",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_shifted_clock_moves_both_measures_and_one_that_was_set_only_the_wall() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clock");
        std::fs::write(&file, "lived 25h set -1h").expect("written");
        let (real, clock) = (Clock::default(), Clock::following(&file).expect("a clock"));
        let (real, shifted) = (real.moment(), clock.moment());
        assert!(shifted.now.0 - real.now.0 - 24 * 3_600 <= 1);
        assert!(shifted.lived >= Duration::from_secs(25 * 3_600));
        assert!(Clock::following(&directory.path().join("none")).is_err());
    }
}
