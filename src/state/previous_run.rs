//! [`PreviousRun`]: how the crawlgate process that last wrote the state database ended: cleanly, in
//! a crash, or in an unknown way. After a crash or an unknown end, stored facts may be missing
//! (such as which crawler was served which robots.txt). [`RestoredState`] has what the previous
//! process stored.

use crate::clock::Moment;
use crate::facts::{CLOCK_TOLERANCE, StoredFacts};
use crate::time::Timestamp;
use PreviousRun::{Clean, Crashed, Unknown};
use std::path::PathBuf;
use std::time::Duration;

/// Observation continues if a start follows a clean end within this many seconds, because no other
/// server replaces crawlgate for so short a time.
pub const GAP_AFTER_CLEAN_END: i64 = 60;
/// Observation continues if a start follows the last commit of a crashed run within this many
/// seconds. A run that cannot commit publishes nothing new for as long.
pub const GAP_AFTER_CRASH: i64 = 20;

/// How the previous run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreviousRun {
    /// In order: everything was written.
    Clean {
        /// When it ended.
        at: Timestamp,
    },
    /// Without an end: what happened after the last commit is unknown.
    Crashed {
        /// When facts were last committed.
        last_commit: Timestamp,
    },
    /// There was none, or its state cannot be trusted.
    #[default]
    Unknown,
}

impl PreviousRun {
    /// Whether hosts stay observed when crawlgate starts at `now`: at most the allowed gap after
    /// the end of the previous run. False after an unknown run.
    ///
    /// A start more than `CLOCK_TOLERANCE` seconds before that end means that the clock was set
    /// back. Then it is unknown how much time passed, and observation begins anew.
    pub fn is_continued_at(self, now: Timestamp) -> bool {
        let Some(end) = self.end() else { return false };
        (end.0.saturating_sub(CLOCK_TOLERANCE)..=end.0.saturating_add(self.max_gap()))
            .contains(&now.0)
    }

    /// Whether every start from `moment` on sees a gap after this end: more than the allowed gap
    /// has passed, both by the wall clock and by the monotonic clock since `recorded_at`, when the
    /// end was recorded. The wall clock alone is not enough, because it may be set back. True for
    /// an unknown run, which is never continued.
    pub fn is_past_gap(self, moment: Moment, recorded_at: Duration) -> bool {
        let Some(end) = self.end() else { return true };
        let monotonic = moment.monotonic.saturating_sub(recorded_at).as_secs();
        moment.now.0 > end.0.saturating_add(self.max_gap())
            && monotonic > self.max_gap().unsigned_abs()
    }

    /// When the run ended, or committed last before a crash; `None` for an unknown run.
    pub fn end(self) -> Option<Timestamp> {
        match self {
            Clean { at } => Some(at),
            Crashed { last_commit } => Some(last_commit),
            Unknown => None,
        }
    }

    /// Turns a clean end into a crash with that last commit. An unknown run stays unknown.
    pub fn as_crashed(self) -> PreviousRun {
        self.end()
            .map_or(self, |last_commit| Crashed { last_commit })
    }

    /// For how many seconds after its end the observation of hosts may continue.
    fn max_gap(self) -> i64 {
        match self {
            Clean { .. } => GAP_AFTER_CLEAN_END,
            Crashed { .. } | Unknown => GAP_AFTER_CRASH,
        }
    }

    /// Since when publications count as served to every crawler, because it is unknown which
    /// crawler received them: one second before the last commit of a crash. `None` after a clean
    /// end, where everything is known, and after an unknown run, where nothing is.
    pub fn unknown_since(self) -> Option<Timestamp> {
        match self {
            // Moments are whole seconds, so the second before may be incomplete as well.
            Crashed { last_commit } => Some(Timestamp(last_commit.0.saturating_sub(1))),
            Clean { .. } | Unknown => None,
        }
    }
}

/// What the previous run left.
#[derive(Clone, Debug, Default)]
pub struct RestoredState {
    /// How the previous run ended.
    pub previous_run: PreviousRun,
    /// Whether hosts stay observed. Otherwise the first commit of this run deletes the stored
    /// observations, and a stored one counts only if it begins in the future: see
    /// [`crate::facts::HostObservation::since`].
    pub is_continued: bool,
    /// The stored facts.
    pub facts: StoredFacts,
    /// The new name of a damaged file that was set aside at this start.
    pub set_aside: Option<PathBuf>,
    /// Whether the previous run still answers requests: see `StateStore::take_over`.
    pub is_handed_over: bool,
}

impl RestoredState {
    /// Whether facts of an earlier run may be missing: its file was set aside, or there are facts
    /// but it is unknown how that run ended.
    pub fn has_lost_facts(&self) -> bool {
        self.set_aside.is_some()
            || self.previous_run == Unknown && self.facts != StoredFacts::default()
    }

    /// Why the observation of hosts begins anew at a start at `now`; `None` if it goes on, and if
    /// there was no run before.
    pub fn gap_reason(&self, now: Timestamp) -> Option<String> {
        if self.is_continued {
            return None;
        }
        match self.previous_run {
            Clean { at: end } | Crashed { last_commit: end } if end > now => Some(format!(
                "The clock was set back: the last run ended at {end}"
            )),
            Clean { at } => Some(format!(
                "crawlgate was down since {at}, for more than {GAP_AFTER_CLEAN_END} seconds"
            )),
            Crashed { last_commit } => Some(format!(
                "crawlgate was killed. It last wrote its state at {last_commit}, more than {GAP_AFTER_CRASH} seconds \
                 before this start"
            )),
            Unknown => self
                .has_lost_facts()
                .then(|| "crawlgate cannot rely on the state of its last run, which is damaged, incomplete or cannot be written".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PreviousRun::{self, Clean, Crashed, Unknown};
    use super::RestoredState;
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
    fn clock_set_back_ends_observation() {
        for previous in [Clean { at: END }, Crashed { last_commit: END }] {
            assert!(continues(previous, -5), "clocks are corrected by seconds");
            assert!(!continues(previous, -6));
            assert!(!continues(previous, -86_400));
            assert!(!previous.is_continued_at(Timestamp(i64::MIN)));
        }
    }

    #[test]
    fn unknown_run_is_never_continued() {
        assert!(!continues(Unknown, 0));
        assert_eq!(Unknown.unknown_since(), None);
    }

    #[test]
    fn gap_has_a_reason_and_a_first_start_has_none() {
        let reason = |previous_run, is_continued, later| {
            let restored = RestoredState {
                previous_run,
                is_continued,
                ..RestoredState::default()
            };
            restored.gap_reason(Timestamp(END.0 + later))
        };
        assert_eq!(reason(Unknown, false, 0), None);
        assert_eq!(reason(Clean { at: END }, true, 10), None);
        let gaps = [
            reason(Clean { at: END }, false, 65),
            reason(Crashed { last_commit: END }, false, 30),
            reason(Clean { at: END }, false, -10),
        ];
        for (place, gap) in gaps.iter().enumerate() {
            let gap = gap.as_deref().expect("a reason");
            assert!(gap.contains(&END.to_string()), "{gap}");
            assert!(!gaps[..place].contains(&Some(gap.to_owned())), "{gap}");
        }
        let damaged = RestoredState {
            set_aside: Some("state.db.damaged".into()),
            ..RestoredState::default()
        };
        assert!(damaged.gap_reason(END).is_some());
    }

    #[test]
    fn only_a_crash_has_an_unknown_time() {
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
