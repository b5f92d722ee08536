//! [`ServerState`]: the state of one web server behind crawlgate. Only a server that is up gets
//! requests as usual. A server whose requests fail is ejected for a time, and then tried with one
//! request. A server whose health checks fail is down.
//!
//! | from | to | when |
//! |---|---|---|
//! | up | ejected | several requests in a row failed |
//! | ejected | on trial | its time is over, or no other server is up; one request tries it |
//! | on trial | up | the server answers the request |
//! | on trial | ejected | the request fails: for a longer time, or for the rest of its time if the trial was early |
//! | on trial | ejected | the request has no result: for the rest of its time |
//! | any | down | several checks in a row failed, or the first one of a server that is there from the start |
//! | down | up | several checks in a row succeeded |

use crate::settings::EjectionSettings;
use crate::time::Timestamp;
use ExclusionKind::{Down, Ejected, OnTrial};
use std::time::Duration;

/// The state of a server: up, or excluded.
#[derive(Default)]
pub struct ServerState {
    /// `None` while it gets requests.
    exclusion: Option<Exclusion>,
    /// Ejections in a row, without a long time in between.
    ejections: u32,
    /// When the last exclusion ended, in milliseconds since the start.
    returned_at: u64,
    checks: CheckSeries,
}

/// The results of the last checks.
#[derive(Default)]
struct CheckSeries {
    is_success: bool,
    /// How many checks in a row had this result. Zero before the first check.
    length: u32,
}

/// Why and until when a server gets no requests.
struct Exclusion {
    kind: ExclusionKind,
    /// When its trial is due, in milliseconds since the start. Unused if it is down.
    until: u64,
    cause: ExclusionCause,
}

/// The states without requests: see the module.
#[derive(PartialEq, Eq)]
enum ExclusionKind {
    Ejected,
    OnTrial,
    Down,
}

/// Why a server gets no requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExclusionCause {
    pub since: Timestamp,
    /// A fixed word.
    pub reason: &'static str,
    /// The status that it answered, if that is the reason.
    pub status: Option<u16>,
}

impl ServerState {
    pub fn is_up(&self) -> bool {
        self.exclusion.is_none()
    }

    /// The end of the exclusion (milliseconds since the start), if the server is in this state.
    fn exclusion_end(&self, kind: ExclusionKind) -> Option<u64> {
        self.exclusion
            .as_ref()
            .filter(|exclusion| exclusion.kind == kind)
            .map(|exclusion| exclusion.until)
    }

    /// When its trial is due, in milliseconds since the start, if it is ejected.
    pub fn trial_due(&self) -> Option<u64> {
        self.exclusion_end(Ejected)
    }

    /// Why it gets no requests, and since when.
    pub fn cause(&self) -> Option<ExclusionCause> {
        self.exclusion.as_ref().map(|exclusion| exclusion.cause)
    }

    /// Whether a request tries it.
    pub fn is_on_trial(&self) -> bool {
        self.exclusion_end(OnTrial).is_some()
    }

    /// Whether a request tries it before its trial was due. `now` is in milliseconds since the start.
    pub fn is_early_trial(&self, now: u64) -> bool {
        self.exclusion_end(OnTrial).is_some_and(|until| until > now)
    }

    /// Whether it is down, because checks fail.
    pub fn is_down(&self) -> bool {
        self.exclusion_end(Down).is_some()
    }

    /// Ejects it at `now` (milliseconds since the start), and returns for how long: twice as long
    /// each time, up to a maximum. If the server was up for longer than the maximum, the time is that
    /// of a first ejection. If it was excluded already, as on trial, the earlier cause stays.
    pub fn eject(&mut self, rules: &EjectionSettings, cause: ExclusionCause, now: u64) -> Duration {
        let lasted = Duration::from_millis(now.saturating_sub(self.returned_at));
        if self.is_up() && lasted > rules.max_time {
            self.ejections = 0;
        }
        let doubled = 1_u32.checked_shl(self.ejections).unwrap_or(u32::MAX);
        let time = rules
            .initial_time
            .saturating_mul(doubled)
            .min(rules.max_time);
        self.ejections = self.ejections.saturating_add(1);
        let cause = self.cause().unwrap_or(cause);
        self.exclusion = Some(Exclusion {
            kind: Ejected,
            until: now.saturating_add(time.as_millis() as u64),
            cause,
        });
        time
    }

    /// Lets one request try it. Returns whether it was ejected.
    pub fn begin_trial(&mut self) -> bool {
        self.change_exclusion_kind(Ejected, OnTrial)
    }

    /// Ends a trial without a result. The time at which it was due stays. Returns whether there was a
    /// trial.
    pub fn cancel_trial(&mut self) -> bool {
        self.change_exclusion_kind(OnTrial, Ejected)
    }

    /// Moves from `kind` to `next`. Does nothing and returns false in any other state.
    fn change_exclusion_kind(&mut self, kind: ExclusionKind, next: ExclusionKind) -> bool {
        let exclusion = self
            .exclusion
            .as_mut()
            .filter(|exclusion| exclusion.kind == kind);
        exclusion.map(|exclusion| exclusion.kind = next).is_some()
    }

    /// Ends a successful trial. Returns whether there was one.
    pub fn finish_trial(&mut self, now: u64) -> bool {
        let was_on_trial = self.is_on_trial();
        if was_on_trial {
            self.mark_up(now);
        }
        was_on_trial
    }

    /// Counts a check. Returns the number of checks in a row with this result. The first check of the
    /// server counts as any number: nothing is known against it.
    pub fn count_check(&mut self, is_success: bool) -> u32 {
        let length = if self.checks.length == 0 {
            u32::MAX
        } else if self.checks.is_success == is_success {
            self.checks.length.saturating_add(1)
        } else {
            1
        };
        self.checks = CheckSeries { is_success, length };
        length
    }

    /// Marks it as down, because checks fail. If it was excluded already, `since` stays.
    pub fn mark_down(&mut self, cause: ExclusionCause) {
        let since = self.cause().map_or(cause.since, |earlier| earlier.since);
        self.exclusion = Some(Exclusion {
            kind: Down,
            until: 0,
            cause: ExclusionCause { since, ..cause },
        });
    }

    /// Marks it as up at `now`, in milliseconds since the start.
    pub fn mark_up(&mut self, now: u64) {
        self.exclusion = None;
        self.returned_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause_at(second: i64) -> ExclusionCause {
        ExclusionCause {
            since: Timestamp(second),
            reason: "connect_refused",
            status: None,
        }
    }

    #[test]
    fn ejections_double_up_to_the_maximum() {
        let (rules, mut state, mut now) = (EjectionSettings::default(), ServerState::default(), 0);
        let mut seconds = Vec::new();
        for second in 0..7 {
            let time = state.eject(&rules, cause_at(second), now);
            seconds.push(time.as_secs());
            now += u64::try_from(time.as_millis()).expect("a few minutes");
            assert!(state.begin_trial());
        }
        assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(
            state.cause().map(|cause| cause.since),
            Some(Timestamp(0)),
            "it was never up since"
        );
    }

    #[test]
    fn server_that_was_up_for_long_starts_over() {
        let (rules, mut state) = (EjectionSettings::default(), ServerState::default());
        let eject = |state: &mut ServerState, now| state.eject(&rules, cause_at(0), now).as_secs();
        assert_eq!(eject(&mut state, 1_000), 10);
        assert!(state.begin_trial() && state.finish_trial(11_000) && state.is_up());
        assert_eq!(eject(&mut state, 12_000), 20, "it was up for a second");
        assert!(state.begin_trial() && state.finish_trial(40_000));
        assert_eq!(eject(&mut state, 340_001), 10);
    }

    #[test]
    fn requests_bring_back_no_server_that_is_down() {
        let (rules, mut state) = (EjectionSettings::default(), ServerState::default());
        state.eject(&rules, cause_at(1), 0);
        state.mark_down(ExclusionCause {
            reason: "status",
            status: Some(503),
            ..cause_at(2)
        });
        let expected = ExclusionCause {
            since: Timestamp(1),
            reason: "status",
            status: Some(503),
        };
        assert_eq!(
            state.cause(),
            Some(expected),
            "it has had no requests since the ejection"
        );
        assert!(
            !state.begin_trial()
                && !state.cancel_trial()
                && !state.finish_trial(1)
                && !state.is_up()
        );
        assert_eq!(state.trial_due(), None);
        state.mark_up(2);
        assert!(state.is_up());
    }

    #[test]
    fn checks_with_the_same_result_are_counted() {
        let mut state = ServerState::default();
        let counts =
            [true, true, false, false, false, true].map(|is_success| state.count_check(is_success));
        assert_eq!(counts, [u32::MAX, u32::MAX, 1, 2, 3, 1]);
    }

    #[test]
    fn cancelled_trial_keeps_its_due_time() {
        let (rules, mut state) = (EjectionSettings::default(), ServerState::default());
        assert!(!state.begin_trial() && !state.cancel_trial() && !state.finish_trial(0));
        state.eject(&rules, cause_at(0), 0);
        assert!(
            state.begin_trial() && state.is_early_trial(9_999) && !state.is_early_trial(10_000)
        );
        assert!(state.cancel_trial());
        assert_eq!(state.trial_due(), Some(10_000));
    }
}
