//! [`HostProgress`]: what crawlgate stores about one host between attempts to get a TLS
//! certificate: the unfinished order, the pause after a failure, and the renewal window that the
//! certificate authority suggests.

use super::failure::OrderError;
use crate::telemetry::FailedOrder;
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The stored state of a host. Its JSON is read by later versions.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostProgress {
    /// The unfinished order.
    pub order: Option<UnfinishedOrder>,
    /// The failure of the last attempt.
    pub failure: Option<FailedOrder>,
    /// For the certificate in use.
    pub suggestion: Option<RenewalSuggestion>,
}

/// An order that is not finished.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct UnfinishedOrder {
    pub url: String,
    /// The private key of the future certificate, in PEM.
    pub key: String,
    pub challenge: ChallengeKind,
}

/// How an authority checks that a host is the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChallengeKind {
    /// It requests a file on port 80.
    Http,
    /// It makes a TLS handshake on port 443.
    TlsAlpn,
}

/// When the authority suggests to renew a certificate (RFC 9773).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RenewalSuggestion {
    /// The RFC 9773 identifier of the certificate.
    pub certificate: String,
    /// In seconds since 1970; `None` if the authority makes no suggestion.
    pub window: Option<(i64, i64)>,
    /// When to ask again.
    #[serde(serialize_with = "rfc3339")]
    pub next: Timestamp,
}

impl HostProgress {
    /// Records a failed attempt with the end of its pause. A failure of another kind than the last one
    /// is the first in a row.
    pub fn record_failure(
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

    /// Whether the host waits after a failure.
    pub fn is_paused(&self, now: Timestamp) -> bool {
        // A failure later than `now` (the clock was set back) does not make the pause longer.
        self.failure
            .as_ref()
            .is_some_and(|failure| failure.at <= now && now < failure.next)
    }
}

#[cfg(test)]
mod tests {
    use super::{HostProgress, UnfinishedOrder};
    use crate::acme::failure::OrderError;
    use crate::acme::progress::ChallengeKind;
    use crate::time::Timestamp;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp(1_750_000_000);

    fn refused_error() -> OrderError {
        OrderError::Refused("no".into())
    }

    #[test]
    fn pauses_get_longer_and_end() {
        let (mut progress, mut now, mut pauses) = (HostProgress::default(), NOW, Vec::new());
        for _ in 0..10 {
            let next = progress.record_failure(&refused_error(), None, now).next;
            assert!(progress.is_paused(now) && !progress.is_paused(next));
            pauses.push(next.since(now).as_secs() / 60);
            now = next;
        }
        assert_eq!(pauses[..4], [20, 40, 80, 160]);
        assert_eq!(pauses[9], 24 * 60, "never longer than a day");
        let other = progress.record_failure(&OrderError::HostNotReached("no".into()), None, now);
        assert_eq!(
            (other.times, other.next.since(now)),
            (1, Duration::from_secs(60)),
            "another failure is the first one"
        );
    }

    #[test]
    fn retry_after_is_clamped() {
        let pause = |retry_after| {
            let error = OrderError::RateLimited("too many".into());
            HostProgress::default()
                .record_failure(&error, retry_after, NOW)
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
    fn clock_set_back_does_not_lengthen_a_pause() {
        let mut progress = HostProgress::default();
        progress.record_failure(&refused_error(), None, NOW);
        assert!(!progress.is_paused(Timestamp(NOW.0 - 86_400)));
    }

    #[test]
    fn progress_survives_its_json() {
        let order = UnfinishedOrder {
            url: "https://ca.example/o/1".into(),
            key: "PEM".into(),
            challenge: ChallengeKind::TlsAlpn,
        };
        let mut progress = HostProgress {
            order: Some(order),
            ..HostProgress::default()
        };
        progress.record_failure(&refused_error(), None, NOW);
        let text = serde_json::to_string(&progress).expect("JSON");
        assert!(
            text.contains("\"tls-alpn\"") && text.contains("2025-06-15T"),
            "{text}"
        );
        assert!(serde_json::from_str::<HostProgress>(&text).expect("progress") == progress);
    }
}
