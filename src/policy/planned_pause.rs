//! [`planned_pauses`] computes when the pauses that a policy plans begin and end. In a pause
//! crawlgate answers crawlers with 503. The server uses it, and so do the library and the commands
//! that work without a server.

use super::model::{Acknowledgement, PausePolicy, PauseTime, Policy};
use super::site::ActivePause;
use crate::time::Timestamp;
use std::time::Duration;

/// A pause without an end ends after 12 hours. The pause of robots.txt always does: otherwise
/// Google stops crawling the whole host for longer than was meant.
pub const DEFAULT_PAUSE: Duration = Duration::from_secs(12 * 3_600);
/// Search engines drop URLs that answer 503 for two days.
pub const LONG_PAUSE: Duration = Duration::from_secs(36 * 3_600);

/// When the planned pauses of a policy are on, each with its section of the policy. A pause that
/// recurs gives its times around `now`: those that have ended, are on, and come next. Any other
/// gives one time: `begins` gets the pause and its `from`, and returns the beginning; where it
/// returns `None`, the pause is left out. The pause of robots.txt ends after `DEFAULT_PAUSE`.
pub fn planned_pauses(
    policy: &Policy,
    now: Timestamp,
    begins: impl Fn(&PausePolicy, Option<Timestamp>) -> Option<Timestamp>,
) -> Vec<(&PausePolicy, ActivePause)> {
    let acknowledged = policy
        .acknowledge
        .iter()
        .any(|item| item.value == Acknowledgement::LongPause);
    let mut planned = Vec::new();
    for pause in &policy.pauses {
        let spans = match pause.time {
            PauseTime::Recurring(recurrence) => recurrence.around(now),
            PauseTime::Once { from, until } => {
                let begin = begins(pause, from);
                begin
                    .map(|begin| (begin, end_of(begin, from, until, acknowledged)))
                    .into_iter()
                    .collect()
            }
        };
        planned.extend(spans.into_iter().map(|(from, until)| {
            let active = ActivePause {
                audience: pause.audience,
                from,
                until,
                retry_after: u32::try_from(pause.retry_after.as_secs()).unwrap_or(u32::MAX),
                robots_txt_until: pause.pause_robots_txt.then(|| from.plus(DEFAULT_PAUSE)),
                at_run_time: false,
            };
            (pause, active)
        }));
    }
    planned
}

/// The planned pauses of a policy around a moment; none where `moment` is `None`. Pauses that name
/// no `from` (they begin when the server loads them) and do not recur are left out.
pub fn pauses_around(policy: &Policy, moment: Option<Timestamp>) -> Vec<ActivePause> {
    let planned = moment
        .map(|moment| planned_pauses(policy, moment, |_, from| from))
        .unwrap_or_default();
    planned.into_iter().map(|(_, pause)| pause).collect()
}

/// When a pause that begins at `begin` ends: at `until`, else after `DEFAULT_PAUSE`. Where the
/// policy names no `from`, it ends after [`LONG_PAUSE`] at the latest, unless the policy
/// acknowledges a long one: the check of the policy could not tell how long it is.
fn end_of(
    begin: Timestamp,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    acknowledged: bool,
) -> Timestamp {
    let until = until.unwrap_or(begin.plus(DEFAULT_PAUSE));
    if acknowledged || from.is_some() {
        until
    } else {
        until.min(begin.plus(LONG_PAUSE))
    }
}
