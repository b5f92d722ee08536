//! [`ServerOutcomes`] counts how the requests to one server of an origin ended in the last minutes
//! (for example with a response or a timeout), and logs failures. [`OriginServerStatus`] shows the
//! counts to operators. [`UnroutedRequests`] counts the requests for hosts without an origin.

use super::failure::FILE_LIMIT;
use crate::clock::Moment;
use crate::locks::lock;
use crate::numbers::{plural_thousands, thousands};
use crate::telemetry::{LogThrottle, RecentCount, RecentCountByName};
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::time::Duration;

/// The most bytes of a host or a target that are logged.
const MAX_LOGGED_BYTES: usize = 200;
/// The most hosts in the status.
const MAX_HOSTS: usize = 5;
/// More than one failure or 5xx in 20 requests is a problem. The alert `CrawlgateServerFailing` has
/// the same number.
const TOLERATED: u64 = 20;
/// After how many seconds it is a problem that a search crawler is turned away.
const TURNED_AWAY_TOO_LONG: u64 = 3_600;

/// A request that an origin did not answer.
pub struct FailedRequest<'a> {
    /// The requested host.
    pub host: &'a [u8],
    /// Its target.
    pub target: &'a [u8],
    /// A fixed word.
    pub reason: &'static str,
    /// The error in full.
    pub error: &'a dyn std::fmt::Display,
    /// When it failed.
    pub at: Moment,
}

/// The outcomes of requests to one server.
#[derive(Default)]
pub struct ServerOutcomes {
    answers: RecentCount,
    server_errors: RecentCount,
    failures: RecentCount,
    unopened: RecentCount,
    last_failure: Mutex<Option<LastFailure>>,
    throttle: LogThrottle,
}

/// The last request that an origin did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFailure {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Why: `connect_refused`, `read_timeout`, ..., as in `crawlgate_upstream_failures_total`.
    pub reason: String,
    /// The requested host.
    pub host: String,
    /// The request target.
    pub target: String,
}

/// The outcomes of requests to one server of an origin in the last five minutes, and its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginServerStatus {
    /// The server, as in the settings.
    pub origin: String,
    /// The hosts that it is for; empty for every other host.
    pub hosts: Vec<String>,
    /// The path prefixes that it is for; empty for every path.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The number of its addresses. 0 if its name could not be resolved.
    pub addresses: usize,
    /// Requests that were sent to it, or could not be sent.
    pub requests: u64,
    /// Requests that it did not answer.
    pub failures: u64,
    /// Of these, requests that were not sent because crawlgate may open no more files.
    #[serde(default)]
    pub unopened: u64,
    /// Requests that it answered with 5xx.
    pub server_errors: u64,
    /// The last request that it did not answer, however long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// Its requests in flight.
    #[serde(default)]
    pub in_flight: usize,
    /// Whether it is used only while no other server is up.
    #[serde(default)]
    pub is_backup: bool,
    /// Its addresses that get no requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_use: Vec<ExcludedServer>,
}

/// An address of a server that gets no requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedServer {
    /// The address.
    pub address: String,
    /// Since when.
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// Why: the last failure, as in `crawlgate_upstream_failures_total`; of a check, as in
    /// `crawlgate_upstream_checks_total`.
    pub reason: String,
    /// The status that a check was answered with, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether checks say that it is down; otherwise requests have failed.
    #[serde(default)]
    pub is_down: bool,
}

impl ExcludedServer {
    /// Why it gets no requests, as a phrase.
    pub fn reason_text(&self) -> String {
        let ExcludedServer {
            reason,
            status,
            is_down,
            ..
        } = self;
        let failed = if *is_down {
            "its health check fails"
        } else {
            "requests failed"
        };
        match status {
            Some(status) => format!("{failed}: {reason} {status}"),
            None => format!("{failed}: {}", reason.replace('_', " ")),
        }
    }
}

/// The queue of an origin that limits open requests.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// The origin, as the metrics call it.
    pub origin: String,
    /// People who wait at present.
    pub waiting: usize,
    /// Requests of crawlers that were turned away in the last five minutes.
    pub crawlers_turned_away: u64,
    /// Requests of people that were turned away in the last five minutes.
    pub people_turned_away: u64,
    /// Verified search crawlers that were turned away recently, each with the seconds since the
    /// first time.
    pub search_crawlers: Vec<(String, u64)>,
}

/// The state of the servers of all origins.
pub struct UpstreamsStatus {
    /// The servers in the order of the settings.
    pub servers: Vec<OriginServerStatus>,
    /// The queues of those origins that have one.
    pub queues: Vec<QueueStatus>,
    /// Hosts that no origin is for.
    pub without_origin: UnroutedRequestsStatus,
    /// Origins whose files for TLS changed to something that cannot be used, each with the reason.
    pub refused_files: Vec<(String, String)>,
}

impl QueueStatus {
    /// The problem for an operator: verified search crawlers that have been turned away for an hour
    /// or longer. A search engine may drop pages then.
    pub fn problem(&self) -> Option<String> {
        let long: Vec<&str> = self
            .search_crawlers
            .iter()
            .filter(|(_, seconds)| *seconds >= TURNED_AWAY_TOO_LONG)
            .map(|(crawler, _)| crawler.as_str())
            .collect();
        (!long.is_empty()).then(|| {
            format!(
                "the origin {} has been too busy for verified search crawlers for an hour or longer ({}). They get \
                 503, and search engines drop pages that stay 503 for days. Raise \"crawlers\" or \"connections\" of \
                 the origin, or name them in \"exempt\"",
                self.origin,
                long.join(", ")
            )
        })
    }
}

impl ServerOutcomes {
    /// Counts an answer with this status; 5xx also as an error of the server.
    pub fn record_answer(&self, status: u16, monotonic: Duration) {
        self.answers.add(monotonic);
        if status >= 500 {
            self.server_errors.add(monotonic);
        }
    }

    /// Counts a request without an answer, and keeps it as the last failure. Logs at most one a
    /// second.
    pub fn record_failure(&self, origin: &str, request: &FailedRequest<'_>) {
        let FailedRequest {
            reason, error, at, ..
        } = *request;
        self.failures.add(at.monotonic);
        let host = loggable(request.host);
        let target = loggable(request.target);
        let message = if reason == FILE_LIMIT {
            self.unopened.add(at.monotonic);
            "a request was not sent to the origin: crawlgate may open no more files. Raise LimitNOFILE or ulimit -n"
        } else {
            "the origin did not answer a request"
        };
        if let Some(left_out) = self.throttle.admit(at.monotonic) {
            tracing::warn!(origin, ?host, ?target, reason, left_out, %error, "{message}");
        }
        *lock(&self.last_failure) = Some(LastFailure {
            at: at.now,
            reason: reason.to_owned(),
            host,
            target,
        });
    }

    /// The counts of the last five minutes, and the last failure, however old. The caller fills in
    /// the other fields.
    pub fn status(&self, monotonic: Duration) -> OriginServerStatus {
        let failures = self.failures.sum(monotonic);
        OriginServerStatus {
            requests: self.answers.sum(monotonic) + failures,
            failures,
            unopened: self.unopened.sum(monotonic),
            server_errors: self.server_errors.sum(monotonic),
            last_failure: lock(&self.last_failure).clone(),
            ..OriginServerStatus::default()
        }
    }
}

impl OriginServerStatus {
    /// The hosts and paths that it is for, as a phrase. `servers` are those of all origins.
    pub fn scope(&self, servers: &[OriginServerStatus]) -> String {
        let hosts = if !self.hosts.is_empty() {
            self.hosts.join(", ")
        } else if servers.iter().all(|server| server.hosts.is_empty()) {
            "all hosts".to_owned()
        } else {
            "every other host".to_owned()
        };
        if self.paths.is_empty() {
            hosts
        } else {
            format!("{hosts}, below {}", self.paths.join(", "))
        }
    }

    /// The problem for an operator: no address, a server that is down, or more than one request in
    /// 20 without an answer or answered with 5xx. Requests that crawlgate was unable to send do not
    /// count.
    pub fn problem(&self) -> Option<String> {
        let OriginServerStatus {
            origin,
            requests,
            server_errors,
            ..
        } = self;
        let failures = self.failures.saturating_sub(self.unopened);
        if self.addresses == 0 {
            return Some(format!(
                "the name of the origin {origin} does not resolve, so its requests get 502. Check DNS and \"origins\""
            ));
        }
        if failures * TOLERATED > *requests {
            let why = self.last_failure.as_ref().map(|last| {
                format!(
                    ", last at {} for {}{} ({})",
                    last.at,
                    last.host,
                    last.target,
                    last.reason.replace('_', " ")
                )
            });
            return Some(format!(
                "the origin {origin} did not answer {} of {} in the last five minutes{}. Clients get 502 or 504, \
                 unless another server of the origin answers. Check that it runs and can be reached from here",
                thousands(failures),
                plural_thousands(requests, "request"),
                why.unwrap_or_default()
            ));
        }
        if let Some(out) = self.out_of_use.iter().find(|out| out.is_down) {
            let server = if origin.ends_with(&out.address) {
                format!("the server {origin}")
            } else {
                format!("{} of the origin {origin}", out.address)
            };
            return Some(format!(
                "{server} is down since {} ({}). crawlgate sends it requests only if every server of the origin is down. \
                 Check the server, and \"health\" of the origin",
                out.since,
                out.reason_text()
            ));
        }
        ((failures + server_errors) * TOLERATED > *requests).then(|| {
            format!(
                "the origin {origin} failed for {} of {} in the last five minutes: it answered {} with 5xx, and {} not \
                 at all. Its own log has the reasons",
                thousands(failures + server_errors),
                plural_thousands(requests, "request"),
                thousands(server_errors),
                thousands(failures)
            )
        })
    }
}

/// Requests for hosts that no origin of the settings is for.
#[derive(Default)]
pub struct UnroutedRequests {
    hosts: RecentCountByName<String>,
    throttle: LogThrottle,
}

/// Requests of the last five minutes for hosts that no origin of the settings is for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnroutedRequestsStatus {
    /// How many.
    pub requests: u64,
    /// The hosts with the most requests.
    pub hosts: Vec<(String, u64)>,
}

impl UnroutedRequests {
    /// Counts a request for a host that no origin is for. Logs at most one a second.
    pub fn record(&self, host: &[u8], target: &[u8], monotonic: Duration) {
        let host = match host {
            [] => "(no host)".to_owned(),
            host => loggable(host).to_ascii_lowercase(),
        };
        let target = loggable(target);
        if let Some(left_out) = self.throttle.admit(monotonic) {
            tracing::warn!(
                ?host,
                ?target,
                left_out,
                "this host has no origin; crawlgate answered 502. Add it to \"origins\" in crawlgate.yaml, or add an \
                 origin without \"hosts\" for every other host"
            );
        }
        self.hosts.add(host, monotonic);
    }

    /// The requests of the last five minutes, and the five hosts with the most of them.
    pub fn status(&self, monotonic: Duration) -> UnroutedRequestsStatus {
        UnroutedRequestsStatus {
            requests: self.hosts.sum(monotonic),
            hosts: self.hosts.top(MAX_HOSTS, monotonic),
        }
    }
}

/// The first 200 bytes of a client's text, for logs.
fn loggable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LOGGED_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(requests: u64, failures: u64, server_errors: u64) -> OriginServerStatus {
        let (origin, hosts) = ("http://10.0.0.1".to_owned(), Vec::new());
        OriginServerStatus {
            origin,
            hosts,
            addresses: 1,
            requests,
            failures,
            server_errors,
            ..OriginServerStatus::default()
        }
    }

    #[test]
    fn problems_begin_above_documented_failure_rates() {
        for (requests, failures, server_errors, is_problem) in [
            (0, 0, 0, false),
            (1, 1, 0, true),
            (100, 5, 0, false),
            (100, 6, 0, true),
            (100, 0, 5, false),
            (100, 0, 6, true),
            (100, 3, 2, false),
            (100, 3, 3, true),
        ] {
            let status = status(requests, failures, server_errors);
            assert_eq!(status.problem().is_some(), is_problem, "{status:?}");
        }
        assert!(
            OriginServerStatus {
                addresses: 0,
                ..status(0, 0, 0)
            }
            .problem()
            .is_some()
        );
    }

    #[test]
    fn request_that_was_not_sent_is_no_problem_of_its_origin() {
        let unsent = OriginServerStatus {
            unopened: 6,
            ..status(100, 6, 0)
        };
        assert_eq!(unsent.problem(), None);
    }

    #[test]
    fn request_without_host_is_counted_in_words() {
        let unrouted = UnroutedRequests::default();
        unrouted.record(b"", b"/a", Duration::ZERO);
        let status = unrouted.status(Duration::ZERO);
        assert_eq!(status.hosts, [("(no host)".to_owned(), 1)]);
    }

    #[test]
    fn only_origin_is_for_all_hosts() {
        let only = status(0, 0, 0);
        let named = OriginServerStatus {
            hosts: vec!["shop.example".to_owned()],
            ..status(0, 0, 0)
        };
        assert_eq!(only.scope(std::slice::from_ref(&only)), "all hosts");
        assert_eq!(only.scope(&[named, only.clone()]), "every other host");
    }

    #[test]
    fn failure_counts_for_five_minutes_and_stays_last() {
        let (outcomes, at) = (
            ServerOutcomes::default(),
            Moment {
                now: Timestamp(1_000),
                monotonic: Duration::from_secs(10),
            },
        );
        let request = FailedRequest {
            host: b"shop.example",
            target: b"/a",
            reason: "connect_refused",
            error: &"refused",
            at,
        };
        outcomes.record_failure("http://10.0.0.1", &request);
        outcomes.record_answer(200, at.monotonic);
        outcomes.record_answer(503, at.monotonic);
        let seen = |seconds| {
            let status = outcomes.status(Duration::from_secs(seconds));
            (
                status.requests,
                status.failures,
                status.server_errors,
                status.last_failure.map(|last| last.target),
            )
        };
        assert_eq!(seen(10), (3, 1, 1, Some("/a".to_owned())));
        assert_eq!(seen(400), (0, 0, 0, Some("/a".to_owned())));
    }
}
