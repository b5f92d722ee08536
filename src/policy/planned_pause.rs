//! [`planned_pauses`] computes when the pauses that a policy plans begin and end. In a pause,
//! crawlgate answers crawlers with 503.

use super::model::{Acknowledgement, PausePolicy, PauseSchedule, Policy};
use super::site::PauseWindow;
use crate::time::Timestamp;
use crate::yaml::saturating_u32;
use std::time::Duration;

/// The length of a pause without an end, and of each pause of robots.txt: a longer 503 on
/// robots.txt makes Google stop crawling the whole host.
pub const DEFAULT_PAUSE_LENGTH: Duration = Duration::from_secs(12 * 3_600);
/// A longer pause needs an acknowledgement: search engines drop URLs that answer 503 for two days.
/// Half a day is kept in hand.
pub const LONG_PAUSE: Duration = Duration::from_secs(36 * 3_600);

/// The planned pauses of a policy with their times. A recurring pause gives its times around `now`:
/// the last, the present and the next one. Any other pause gives one time: `begins` receives the
/// pause and its `from` and returns the beginning, or `None` to leave the pause out.
pub fn planned_pauses(
    policy: &Policy,
    now: Timestamp,
    begins: impl Fn(&PausePolicy, Option<Timestamp>) -> Option<Timestamp>,
) -> Vec<(&PausePolicy, PauseWindow)> {
    let acknowledged = policy.acknowledges(Acknowledgement::LongPause);
    let mut planned = Vec::new();
    for pause in &policy.pauses {
        let spans = match pause.schedule {
            PauseSchedule::Recurring(recurrence) => recurrence.spans_around(now),
            PauseSchedule::Once { from, until } => begins(pause, from)
                .map(|begin| (begin, pause_end(begin, from, until, acknowledged)))
                .into_iter()
                .collect(),
        };
        for (from, until) in spans {
            let window = PauseWindow {
                audience: pause.audience,
                from,
                until,
                retry_after: saturating_u32(pause.retry_after.as_secs()),
                robots_txt_until: pause
                    .pause_robots_txt
                    .then(|| from.plus(DEFAULT_PAUSE_LENGTH)),
                at_run_time: false,
            };
            planned.push((pause, window));
        }
    }
    planned
}

/// The planned pauses of a policy around a time; none without a time. A pause without `from` begins
/// when the server loads it, and is left out here unless it recurs.
pub fn pauses_around(policy: &Policy, moment: Option<Timestamp>) -> Vec<PauseWindow> {
    moment
        .into_iter()
        .flat_map(|moment| planned_pauses(policy, moment, |_, from| from))
        .map(|(_, pause)| pause)
        .collect()
}

/// When a pause that begins at `begin` ends: at `until`, else after [`DEFAULT_PAUSE_LENGTH`].
/// Without `from`, no lint can check its length: then it ends after [`LONG_PAUSE`] at the latest,
/// unless the policy acknowledges a long one.
fn pause_end(
    begin: Timestamp,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    acknowledged: bool,
) -> Timestamp {
    let until = until.unwrap_or(begin.plus(DEFAULT_PAUSE_LENGTH));
    if acknowledged || from.is_some() {
        until
    } else {
        until.min(begin.plus(LONG_PAUSE))
    }
}
