//! [`Standing`]: whether a server gets requests.
//!
//! A server is up, ejected or on trial. Failures in a row lead from up to ejected, the end of its time to a trial by one
//! request, and that request back to up or to ejected.

use crate::settings::Ejection;
use crate::time::Timestamp;
use std::time::Duration;

/// How a server stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub state: State,
    /// Ejections without a long time in between.
    times: u32,
    /// When it came back from the last one, in milliseconds since the start.
    returned: u64,
}

/// See the top of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// It gets requests.
    #[default]
    Up,
    /// It gets none until then, in milliseconds since the start.
    Ejected { until: u64, because: Because },
    /// It has one.
    OnTrial { because: Because },
}

/// Why a server was ejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Because {
    pub since: Timestamp,
    /// A fixed word.
    pub reason: &'static str,
}

impl Standing {
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// When a trial is due, in milliseconds since the start, if it waits for one.
    pub fn trial_due(&self) -> Option<u64> {
        match self.state {
            State::Ejected { until, .. } => Some(until),
            State::Up | State::OnTrial { .. } => None,
        }
    }

    /// Since when, and why, it gets no requests.
    pub fn because(&self) -> Option<&Because> {
        match &self.state {
            State::Up => None,
            State::Ejected { because, .. } | State::OnTrial { because } => Some(because),
        }
    }

    /// Ejects it, and says for how long: twice as long each time, and as at first after a long time without an ejection.
    pub fn eject(&mut self, rules: &Ejection, because: Because, now: u64) -> Duration {
        let lasted = Duration::from_millis(now.saturating_sub(self.returned));
        if self.is_up() && lasted > rules.most {
            self.times = 0;
        }
        let doubled = 1_u32.checked_shl(self.times).unwrap_or(u32::MAX);
        let time = rules.time.saturating_mul(doubled).min(rules.most);
        self.times = self.times.saturating_add(1);
        let because = self.because().cloned().unwrap_or(because);
        let until = now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.state = State::Ejected { until, because };
        time
    }

    /// Lets one request try it. Says whether it was ejected.
    pub fn begin_trial(&mut self) -> bool {
        let State::Ejected { because, .. } = self.state.clone() else { return false };
        self.state = State::OnTrial { because };
        true
    }

    /// The request of its trial came to nothing: the next one is due at once.
    pub fn break_off_trial(&mut self) -> bool {
        let State::OnTrial { because } = self.state.clone() else { return false };
        self.state = State::Ejected { until: 0, because };
        true
    }

    /// Its trial went well. Says whether it had one.
    pub fn come_back(&mut self, now: u64) -> bool {
        let was_on_trial = matches!(self.state, State::OnTrial { .. });
        if was_on_trial {
            (self.state, self.returned) = (State::Up, now);
        }
        was_on_trial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn because(second: i64) -> Because {
        Because { since: Timestamp(second), reason: "connect_refused" }
    }

    #[test]
    fn each_ejection_is_twice_as_long_up_to_the_most() {
        let (rules, mut standing, mut now) = (Ejection::default(), Standing::default(), 0);
        let mut seconds = Vec::new();
        for second in 0..7 {
            let time = standing.eject(&rules, because(second), now);
            seconds.push(time.as_secs());
            now += u64::try_from(time.as_millis()).expect("a few minutes");
            assert!(standing.begin_trial());
        }
        assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(standing.because().map(|because| because.since), Some(Timestamp(0)), "it was never up since");
    }

    #[test]
    fn server_that_was_up_for_long_begins_anew() {
        let (rules, mut standing) = (Ejection::default(), Standing::default());
        let eject = |standing: &mut Standing, now| standing.eject(&rules, because(0), now).as_secs();
        assert_eq!(eject(&mut standing, 1_000), 10);
        assert!(standing.begin_trial() && standing.come_back(11_000) && standing.is_up());
        assert_eq!(eject(&mut standing, 12_000), 20, "it was up for a second");
        assert!(standing.begin_trial() && standing.come_back(40_000));
        assert_eq!(eject(&mut standing, 340_001), 10);
    }

    #[test]
    fn trial_without_an_end_is_repeated_at_once() {
        let (rules, mut standing) = (Ejection::default(), Standing::default());
        assert!(!standing.begin_trial() && !standing.break_off_trial() && !standing.come_back(0));
        standing.eject(&rules, because(0), 0);
        assert!(standing.begin_trial() && standing.break_off_trial());
        assert!(matches!(standing.state, State::Ejected { until: 0, .. }));
    }
}
