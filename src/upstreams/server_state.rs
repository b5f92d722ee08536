//! [`ServerState`]: the state of a server. Only a server that is up gets requests as usual.
//!
//! | from | to | when |
//! |---|---|---|
//! | up | ejected | several requests in a row failed |
//! | ejected | on trial | its time is over, or no other server is up; one request tries it |
//! | on trial | up | the server answers the request |
//! | on trial | ejected | the request fails: for a longer time, or for the rest of its time if the trial was early |
//! | on trial | ejected | the request has no result: for the rest of its time |
//! | any | down | several checks in a row failed |
//! | down | up | several checks in a row succeeded |

use crate::settings::Ejection;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// The states of a server that is not up: see the top of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    /// `None` while it gets requests.
    out: Option<Excluded>,
    /// Ejections without a long time in between.
    times: u32,
    /// When it came back from the last one, in milliseconds since the start.
    returned: u64,
    /// Whether the last check ended well, and how many in a row ended like it.
    checks: (bool, u32),
}

/// A server that gets no requests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excluded {
    state: Exclusion,
    /// When its trial is due, in milliseconds since the start. After a failed early trial, too.
    /// Without a meaning if it is down.
    until: u64,
    because: Because,
}

/// See the top of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exclusion {
    Ejected,
    OnTrial,
    Down,
}

/// The state of a server without requests, for the next process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedState {
    /// Milliseconds until a trial: the next process has another start. `None` for a server that is
    /// down.
    trial_in: Option<u64>,
    times: u32,
    #[serde(flatten)]
    because: Because,
}

/// Why a server gets no requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Because {
    pub since: Timestamp,
    /// A fixed word.
    pub reason: Cow<'static, str>,
    /// The status that it answered, if that is the reason.
    pub status: Option<u16>,
}

impl ServerState {
    pub fn is_up(&self) -> bool {
        self.out.is_none()
    }

    /// When the trial is due (milliseconds since the start), if the server is in this state.
    fn until(&self, state: Exclusion) -> Option<u64> {
        self.out
            .as_ref()
            .filter(|out| out.state == state)
            .map(|out| out.until)
    }

    /// When its trial is due, in milliseconds since the start, if it is ejected.
    pub fn trial_due(&self) -> Option<u64> {
        self.until(Exclusion::Ejected)
    }

    /// Why it gets no requests, and since when.
    pub fn because(&self) -> Option<&Because> {
        self.out.as_ref().map(|out| &out.because)
    }

    /// Whether a request tries it.
    pub fn is_on_trial(&self) -> bool {
        self.until(Exclusion::OnTrial).is_some()
    }

    /// Whether a request tries it before the end of its time. `now` is in milliseconds since the
    /// start.
    pub fn is_tried_early(&self, now: u64) -> bool {
        self.until(Exclusion::OnTrial)
            .is_some_and(|until| until > now)
    }

    /// Whether it is down, because checks fail.
    pub fn is_down(&self) -> bool {
        self.until(Exclusion::Down).is_some()
    }

    /// The state for the next process, if it gets no requests. A trial without a result is due
    /// again.
    pub fn pass(&self, now: u64) -> Option<PassedState> {
        let Excluded {
            state,
            until,
            because,
        } = self.out.clone()?;
        let trial_in = match state {
            Exclusion::Ejected => Some(until.saturating_sub(now)),
            Exclusion::OnTrial => Some(0),
            Exclusion::Down => None,
        };
        Some(PassedState {
            trial_in,
            times: self.times,
            because,
        })
    }

    /// The state that the previous process passed: ejected or down. `now` is in milliseconds since
    /// this start.
    pub fn passed(
        PassedState {
            trial_in,
            times,
            because,
        }: PassedState,
        now: u64,
    ) -> ServerState {
        let state = if trial_in.is_some() {
            Exclusion::Ejected
        } else {
            Exclusion::Down
        };
        ServerState {
            out: Some(Excluded {
                state,
                until: now.saturating_add(trial_in.unwrap_or_default()),
                because,
            }),
            times,
            ..ServerState::default()
        }
    }

    /// Ejects it at `now` (milliseconds since the start), and returns for how long: twice as long
    /// each time, at most `rules.most`, and as at first if it was up for longer than that. If it
    /// got no requests before, as on trial, the earlier reason stays in place of `because`.
    pub fn eject(&mut self, rules: &Ejection, because: Because, now: u64) -> Duration {
        let lasted = Duration::from_millis(now.saturating_sub(self.returned));
        if self.is_up() && lasted > rules.most {
            self.times = 0;
        }
        let doubled = 1_u32.checked_shl(self.times).unwrap_or(u32::MAX);
        let time = rules.time.saturating_mul(doubled).min(rules.most);
        self.times = self.times.saturating_add(1);
        let because = self.because().cloned().unwrap_or(because);
        self.out = Some(Excluded {
            state: Exclusion::Ejected,
            until: now.saturating_add(time.as_millis() as u64),
            because,
        });
        time
    }

    /// Lets one request try it. Returns whether it was ejected.
    pub fn begin_trial(&mut self) -> bool {
        self.leave(Exclusion::Ejected, Exclusion::OnTrial)
    }

    /// Ends a trial without a result: the next one is due when this one was. Returns whether there
    /// was one.
    pub fn break_off_trial(&mut self) -> bool {
        self.leave(Exclusion::OnTrial, Exclusion::Ejected)
    }

    /// Moves from `state` to `next`. Does nothing and returns false in any other state.
    fn leave(&mut self, state: Exclusion, next: Exclusion) -> bool {
        let out = self.out.as_mut().filter(|out| out.state == state);
        out.map(|out| out.state = next).is_some()
    }

    /// Ends a trial that went well. Returns whether there was one.
    pub fn come_back(&mut self, now: u64) -> bool {
        let was_on_trial = self.is_on_trial();
        if was_on_trial {
            self.go_up(now);
        }
        was_on_trial
    }

    /// Counts a check. Returns the number of checks in a row that ended like this one.
    pub fn count_check(&mut self, is_well: bool) -> u32 {
        let count = if self.checks.0 == is_well {
            self.checks.1.saturating_add(1)
        } else {
            1
        };
        self.checks = (is_well, count);
        count
    }

    /// Takes it down, because checks fail. If it got no requests before, that is still the moment
    /// since when; the reason is the new one.
    pub fn go_down(&mut self, because: Because) {
        let since = self
            .because()
            .map_or(because.since, |earlier| earlier.since);
        self.out = Some(Excluded {
            state: Exclusion::Down,
            until: 0,
            because: Because { since, ..because },
        });
    }

    /// Takes it up again at `now`, in milliseconds since the start.
    pub fn go_up(&mut self, now: u64) {
        self.out = None;
        self.returned = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn because(second: i64) -> Because {
        Because {
            since: Timestamp(second),
            reason: "connect_refused".into(),
            status: None,
        }
    }

    #[test]
    fn each_ejection_is_twice_as_long_up_to_the_most() {
        let (rules, mut standing, mut now) = (Ejection::default(), ServerState::default(), 0);
        let mut seconds = Vec::new();
        for second in 0..7 {
            let time = standing.eject(&rules, because(second), now);
            seconds.push(time.as_secs());
            now += u64::try_from(time.as_millis()).expect("a few minutes");
            assert!(standing.begin_trial());
        }
        assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(
            standing.because().map(|because| because.since),
            Some(Timestamp(0)),
            "it was never up since"
        );
    }

    #[test]
    fn server_that_was_up_for_long_begins_anew() {
        let (rules, mut standing) = (Ejection::default(), ServerState::default());
        let eject =
            |standing: &mut ServerState, now| standing.eject(&rules, because(0), now).as_secs();
        assert_eq!(eject(&mut standing, 1_000), 10);
        assert!(standing.begin_trial() && standing.come_back(11_000) && standing.is_up());
        assert_eq!(eject(&mut standing, 12_000), 20, "it was up for a second");
        assert!(standing.begin_trial() && standing.come_back(40_000));
        assert_eq!(eject(&mut standing, 340_001), 10);
    }

    #[test]
    fn requests_bring_no_server_back_that_checks_say_is_down() {
        let (rules, mut standing) = (Ejection::default(), ServerState::default());
        standing.eject(&rules, because(1), 0);
        standing.go_down(Because {
            reason: "status".into(),
            status: Some(503),
            ..because(2)
        });
        let expected = Because {
            since: Timestamp(1),
            reason: "status".into(),
            status: Some(503),
        };
        assert_eq!(
            standing.because(),
            Some(&expected),
            "it has had no requests since the ejection"
        );
        assert!(
            !standing.begin_trial()
                && !standing.break_off_trial()
                && !standing.come_back(1)
                && !standing.is_up()
        );
        assert_eq!(standing.trial_due(), None);
        standing.go_up(2);
        assert!(standing.is_up());
    }

    #[test]
    fn checks_are_counted_as_long_as_they_end_alike() {
        let mut standing = ServerState::default();
        let counts =
            [true, true, false, false, false, true].map(|is_well| standing.count_check(is_well));
        assert_eq!(counts, [1, 2, 1, 2, 3, 1]);
    }

    #[test]
    fn next_process_goes_on_with_the_ejection() {
        let (rules, mut standing) = (Ejection::default(), ServerState::default());
        assert_eq!(standing.pass(0), None);
        standing.eject(&rules, because(7), 1_000);
        let mut next = ServerState::passed(standing.pass(4_000).expect("ejected"), 100);
        assert_eq!(
            (next.trial_due(), next.because()),
            (Some(7_100), Some(&because(7)))
        );
        assert!(next.begin_trial());
        assert_eq!(
            ServerState::passed(next.pass(8_000).expect("on trial"), 50).trial_due(),
            Some(50)
        );
        assert_eq!(
            next.eject(&rules, because(8), 8_000).as_secs(),
            20,
            "the second one in a row"
        );
        standing.go_down(because(9));
        assert!(ServerState::passed(standing.pass(5_000).expect("down"), 0).is_down());
    }

    #[test]
    fn trial_without_an_end_is_due_when_it_was() {
        let (rules, mut standing) = (Ejection::default(), ServerState::default());
        assert!(!standing.begin_trial() && !standing.break_off_trial() && !standing.come_back(0));
        standing.eject(&rules, because(0), 0);
        assert!(
            standing.begin_trial()
                && standing.is_tried_early(9_999)
                && !standing.is_tried_early(10_000)
        );
        assert!(standing.break_off_trial());
        assert_eq!(standing.trial_due(), Some(10_000));
    }
}
