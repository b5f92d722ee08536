//! [`PreviousRun`]: how the process before this one ended: cleanly, in a crash, or in an unknown
//! way. It decides whether hosts stay observed after this start, and whether a new robots.txt may
//! take effect that cannot be stored. [`Remembered`] has the facts that it left.

use crate::clock::Moment;
use crate::facts::{StoredFacts, TOLERANCE};
use crate::time::Timestamp;
use std::path::PathBuf;
use std::time::Duration;

/// Observation continues so many seconds after a run that ended in order: no other server has taken
/// its place in that time.
pub const GAP_AFTER_CLEAN_END: i64 = 60;
/// Observation continues so many seconds after the last commit of a run that crashed. A run that
/// cannot commit publishes nothing new for as long.
pub const GAP_AFTER_CRASH: i64 = 20;

/// How the run before this one ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreviousRun {
    /// In order: everything was written.
    Clean {
        /// When it ended.
        at: Timestamp,
    },
    /// Without an end: what happened after the last commit is not known.
    Crashed {
        /// When facts were last written.
        last_commit: Timestamp,
    },
    /// There was none, or what it left cannot be trusted or kept.
    #[default]
    Unknown,
}

impl PreviousRun {
    /// Whether hosts stay observed when crawlgate starts at `now`: at most `TOLERANCE` seconds
    /// before the end of the previous run, and at most the allowed gap after it. Never after an
    /// unknown run.
    ///
    /// A start before the end of the previous run is one by a clock that was set back. It cannot
    /// say how much time passed, so observation begins anew.
    pub fn is_continued_at(self, now: Timestamp) -> bool {
        let Some(end) = self.end() else { return false };
        (end.0.saturating_sub(TOLERANCE)..=end.0.saturating_add(self.gap())).contains(&now.0)
    }

    /// Whether every start from `moment` on sees a gap after this end: more than the allowed gap
    /// has passed, both by the wall clock and by the elapsed time since `noted` (the time lived
    /// through when the end was recorded). Both count, because a clock that is set back could bring
    /// the time back. Always true of an unknown run, which nothing continues.
    pub fn cannot_mislead(self, moment: Moment, noted: Duration) -> bool {
        let Some(end) = self.end() else { return true };
        let lived = moment.lived.saturating_sub(noted).as_secs();
        moment.now.0 > end.0.saturating_add(self.gap()) && lived > self.gap().unsigned_abs()
    }

    /// When the run ended, or was last known to run; `None` for an unknown run.
    pub fn end(self) -> Option<Timestamp> {
        match self {
            PreviousRun::Clean { at } => Some(at),
            PreviousRun::Crashed { last_commit } => Some(last_commit),
            PreviousRun::Unknown => None,
        }
    }

    /// The same run as a crash: a clean end becomes its last commit. An unknown run stays unknown.
    pub(super) fn without_end(self) -> PreviousRun {
        self.end()
            .map_or(self, |last_commit| PreviousRun::Crashed { last_commit })
    }

    /// For how many seconds after its end the observation of hosts may continue.
    fn gap(self) -> i64 {
        match self {
            PreviousRun::Clean { .. } => GAP_AFTER_CLEAN_END,
            PreviousRun::Crashed { .. } | PreviousRun::Unknown => GAP_AFTER_CRASH,
        }
    }

    /// The moment since which publications count as served to every crawler, because it is not
    /// known which crawler received them: one second before the last commit of a crash. `None`
    /// after a clean end, where everything is known, and after an unknown run, where nothing is.
    pub fn unknown_since(self) -> Option<Timestamp> {
        match self {
            // Moments are whole seconds: what was served in the second before may be missing as
            // well.
            PreviousRun::Crashed { last_commit } => {
                Some(Timestamp(last_commit.0.saturating_sub(1)))
            }
            PreviousRun::Clean { .. } | PreviousRun::Unknown => None,
        }
    }
}

/// What the previous run left.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// How the previous run ended.
    pub previous_run: PreviousRun,
    /// Whether hosts stay observed. Otherwise a stored observation counts only if it delays the
    /// next one: see [`crate::facts::Observation::since`]. The first commit of this run then
    /// deletes the stored observations.
    pub is_continued: bool,
    /// The facts.
    pub facts: StoredFacts,
    /// A damaged database that was set aside at this start.
    pub set_aside: Option<PathBuf>,
    /// Whether the previous run still answers requests: see `StateStore::take_over`.
    pub is_handed_over: bool,
}

impl Remembered {
    /// Whether an earlier run may have known facts that are not here: its file was damaged and set
    /// aside, or there are facts but it is not known how that run ended.
    pub fn has_lost_facts(&self) -> bool {
        self.set_aside.is_some()
            || self.previous_run == PreviousRun::Unknown && self.facts != StoredFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::PreviousRun::{self, Clean, Crashed, Unknown};
    use crate::time::Timestamp;

    const END: Timestamp = Timestamp(1_000_000);

    fn continues(previous: PreviousRun, later: i64) -> bool {
        previous.is_continued_at(Timestamp(END.0 + later))
    }

    #[test]
    fn observation_continues_for_a_minute_after_a_clean_end() {
        for (later, expected) in [
            (0, true),
            (1, true),
            (60, true),
            (61, false),
            (86_400, false),
        ] {
            assert_eq!(continues(Clean { at: END }, later), expected, "{later} s");
        }
    }

    #[test]
    fn observation_continues_for_20_seconds_after_the_last_commit() {
        for (later, expected) in [
            (0, true),
            (20, true),
            (21, false),
            (60, false),
            (i64::from(i32::MAX), false),
        ] {
            assert_eq!(
                continues(Crashed { last_commit: END }, later),
                expected,
                "{later} s"
            );
        }
    }

    #[test]
    fn a_clock_set_back_ends_observation() {
        for previous in [Clean { at: END }, Crashed { last_commit: END }] {
            assert!(continues(previous, -5), "clocks are corrected by seconds");
            assert!(!continues(previous, -6));
            assert!(!continues(previous, -86_400));
            assert!(!previous.is_continued_at(Timestamp(i64::MIN)));
        }
    }

    #[test]
    fn nothing_continues_an_unknown_run() {
        assert!(!continues(Unknown, 0));
        assert_eq!(Unknown.unknown_since(), None);
    }

    #[test]
    fn only_a_crash_leaves_a_time_of_which_nothing_is_known() {
        assert_eq!(Clean { at: END }.unknown_since(), None);
        assert_eq!(
            Crashed { last_commit: END }.unknown_since(),
            Some(Timestamp(END.0 - 1))
        );
    }

    #[test]
    fn moments_at_the_edge_of_time_do_not_overflow() {
        for end in [Timestamp(i64::MIN), Timestamp(i64::MAX)] {
            assert!(Clean { at: end }.is_continued_at(end));
            assert!(Crashed { last_commit: end }.is_continued_at(end));
        }
    }
}
