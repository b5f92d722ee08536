//! [`Progress`]: what crawlgate stores about one host between attempts to get a certificate: the
//! running order, the pause after a failure, and the renewal window that the authority suggests.

use super::failure::OrderError;
use crate::telemetry::FailedOrder;
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The stored state of a host between attempts.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The order that is not finished.
    #[serde(default)]
    pub order: Option<RunningOrder>,
    /// The failure of the last attempt.
    #[serde(default)]
    pub failure: Option<FailedOrder>,
    /// The suggestion of the authority for the certificate in use.
    #[serde(default)]
    pub suggestion: Option<Suggestion>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningOrder {
    pub url: String,
    /// The private key of the certificate to be, in PEM.
    pub key: String,
    /// The challenge by which the authority checks the host.
    pub challenge: ChallengeKind,
}

/// How an authority checks that a host is the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChallengeKind {
    /// It asks for a file on port 80.
    Http,
    /// It shakes hands on port 443.
    TlsAlpn,
}

/// When the authority suggests to renew a certificate (RFC 9773).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The certificate that it is for, as the authority names it.
    pub certificate: String,
    /// The window, in seconds since 1970; `None` where the authority makes no suggestion.
    pub window: Option<(i64, i64)>,
    /// When to ask again.
    #[serde(serialize_with = "rfc3339")]
    pub next: Timestamp,
}

impl Progress {
    /// Records a failed attempt with the end of the pause after it, and returns it. The number of
    /// failures in a row starts anew if the last failure was of another kind. `retry_after` is what
    /// the authority asked for.
    pub fn fail(
        &mut self,
        error: &OrderError,
        retry_after: Option<Duration>,
        now: Timestamp,
    ) -> &FailedOrder {
        let kind = error.kind();
        let before = self
            .failure
            .as_ref()
            .filter(|failure| failure.kind == kind)
            .map_or(0, |failure| failure.times);
        let times = before.saturating_add(1);
        self.failure.insert(FailedOrder {
            kind,
            at: now,
            reason: error.to_string(),
            times,
            next: now.plus(kind.pause(times, retry_after)),
        })
    }

    /// Whether the host waits after a failure. It does not if the failure is later than `now`.
    pub fn is_paused(&self, now: Timestamp) -> bool {
        // A clock that was set back must not make a pause longer than it can be.
        self.failure
            .as_ref()
            .is_some_and(|failure| failure.at <= now && now < failure.next)
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, RunningOrder};
    use crate::acme::failure::OrderError;
    use crate::acme::progress::ChallengeKind;
    use crate::time::Timestamp;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp(1_750_000_000);

    fn refused() -> OrderError {
        OrderError::Refused("no".into())
    }

    #[test]
    fn pauses_get_longer_and_end() {
        let (mut progress, mut now, mut pauses) = (Progress::default(), NOW, Vec::new());
        for _ in 0..10 {
            let next = progress.fail(&refused(), None, now).next;
            assert!(progress.is_paused(now) && !progress.is_paused(next));
            pauses.push(next.since(now).as_secs() / 60);
            now = next;
        }
        assert_eq!(pauses[..4], [20, 40, 80, 160]);
        assert_eq!(pauses[9], 24 * 60, "never longer than a day");
        let other = progress.fail(&OrderError::Elsewhere("no".into()), None, now);
        assert_eq!(
            (other.times, other.next.since(now)),
            (1, Duration::from_secs(60)),
            "another failure is the first one"
        );
    }

    #[test]
    fn pause_that_the_authority_wants_is_kept_within_bounds() {
        let pause = |retry_after| {
            let error = OrderError::Limited("too many".into());
            Progress::default()
                .fail(&error, retry_after, NOW)
                .next
                .since(NOW)
        };
        assert_eq!(
            pause(Some(Duration::from_secs(7_200))),
            Duration::from_secs(7_200)
        );
        assert_eq!(pause(Some(Duration::ZERO)), Duration::from_secs(10));
        assert_eq!(
            pause(Some(Duration::from_secs(u64::MAX))),
            Duration::from_secs(7 * 86_400)
        );
        assert_eq!(pause(None), Duration::from_secs(3_600));
    }

    #[test]
    fn clock_that_was_set_back_does_not_make_a_pause_longer() {
        let mut progress = Progress::default();
        progress.fail(&refused(), None, NOW);
        assert!(!progress.is_paused(Timestamp(NOW.0 - 86_400)));
    }

    #[test]
    fn progress_is_read_as_it_was_written() {
        let order = RunningOrder {
            url: "https://ca.example/o/1".into(),
            key: "PEM".into(),
            challenge: ChallengeKind::TlsAlpn,
        };
        let mut progress = Progress {
            order: Some(order),
            ..Progress::default()
        };
        progress.fail(&refused(), None, NOW);
        let text = serde_json::to_string(&progress).expect("JSON");
        assert!(
            text.contains("\"tls-alpn\"") && text.contains("2025-06-15T"),
            "{text}"
        );
        assert!(serde_json::from_str::<Progress>(&text).expect("progress") == progress);
    }
}
