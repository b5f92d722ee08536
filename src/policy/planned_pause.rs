//! The pause that a policy plans, with its bounds settled: one piece of code for the server and for the commands that
//! ask without one. Knows no clock and no memory: when the pause begins is an argument.

use super::model::{Acknowledgement, Policy};
use super::site::ActivePause;
use crate::time::Timestamp;
use std::time::Duration;

/// A pause without an end ends after 12 hours. The pause of robots.txt always does: otherwise Google stops
/// crawling the whole host for longer than was meant.
pub const DEFAULT_PAUSE: Duration = Duration::from_secs(12 * 3_600);
/// Search engines drop URLs that answer 503 for two days.
pub const LONG_PAUSE: Duration = Duration::from_secs(36 * 3_600);

/// The pause of a policy, if it plans one, where it begins at `from`. A pause that names no beginning ends after
/// [`LONG_PAUSE`] unless the policy acknowledges a long one: the check of the policy could not tell how long it is.
pub fn planned_pause(policy: &Policy, from: Timestamp) -> Option<ActivePause> {
    let pause = policy.pause.as_ref()?;
    let acknowledged = policy.acknowledge.iter().any(|item| item.value == Acknowledgement::LongPause);
    let until = pause.until.unwrap_or(from.plus(DEFAULT_PAUSE));
    let until = if acknowledged || pause.from.is_some() { until } else { until.min(from.plus(LONG_PAUSE)) };
    Some(ActivePause {
        audience: pause.audience,
        from,
        until,
        retry_after: u32::try_from(pause.retry_after.as_secs()).unwrap_or(u32::MAX),
        robots_txt_until: pause.pause_robots_txt.then(|| from.plus(DEFAULT_PAUSE)),
        at_run_time: false,
    })
}
