//! [`Tally`] counts the outcomes of requests to one server in the last minutes, and logs failures.
//! [`OriginStatus`] is what an operator reads of it. [`WithoutOrigin`] counts the requests for
//! hosts that have no origin.

use crate::clock::Moment;
use crate::locks::lock;
use crate::telemetry::{Recent, RecentByName, Throttle};
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::time::Duration;

/// Characters of a host or a path that are logged: a log does not grow with what clients send.
const SHOWN: usize = 200;
/// Hosts that the status names.
const HOSTS: usize = 5;
/// Above this share of requests without an answer the operator has to look: one in 20, as for the
/// alert on it.
const TOLERATED: u64 = 20;
/// So many seconds a search crawler may be turned away before the operator has to look.
const TURNED_AWAY_TOO_LONG: u64 = 3_600;

/// A request that an origin did not answer.
pub struct FailedRequest<'a> {
    /// The host that it asked for.
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
pub struct Tally {
    answers: Recent,
    server_errors: Recent,
    failures: Recent,
    last_failure: Mutex<Option<LastFailure>>,
    throttle: Throttle,
}

/// The last request that an origin did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFailure {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Why: `connect_refused`, `read_timeout`, ..., as in `crawlgate_upstream_failures_total`.
    pub reason: String,
    /// The host that was asked for.
    pub host: String,
    /// The target that was asked for.
    pub target: String,
}

/// The outcomes of requests to one server of an origin in the last five minutes, and its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginStatus {
    /// The server, as in the settings.
    pub origin: String,
    /// The hosts that it is for; empty for every other host.
    pub hosts: Vec<String>,
    /// The beginnings of paths that it is for; empty for every path.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The number of its addresses. 0 if its name could not be resolved.
    pub addresses: usize,
    /// Requests that were sent to it, or were to be.
    pub requests: u64,
    /// Requests that it did not answer.
    pub failures: u64,
    /// Requests that it answered with 5xx.
    pub server_errors: u64,
    /// The last request that it did not answer, however long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// Requests that it has now.
    #[serde(default)]
    pub in_flight: usize,
    /// Whether it is used only while no other server is up.
    #[serde(default)]
    pub is_backup: bool,
    /// Its addresses that get no requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_use: Vec<OutOfUse>,
}

/// An address of a server that gets no requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfUse {
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

impl OutOfUse {
    /// Why it gets no requests, in words.
    pub fn why(&self) -> String {
        let OutOfUse {
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
            None => format!("{failed}: {reason}"),
        }
    }
}

/// The places of an origin that has a bound on requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// The origin, as the metrics call it.
    pub origin: String,
    /// People who wait now.
    pub waiting: usize,
    /// Crawlers of the last five minutes that found no place.
    pub crawlers_turned_away: u64,
    /// People of the last five minutes who found no place.
    pub people_turned_away: u64,
    /// Verified search crawlers that were turned away lately, and for how many seconds that happens
    /// already.
    pub search_crawlers: Vec<(String, u64)>,
}

/// The state of the servers of all origins.
pub struct UpstreamsStatus {
    /// The servers in the order of the settings.
    pub servers: Vec<OriginStatus>,
    /// The queues of those origins that have one.
    pub queues: Vec<QueueStatus>,
    /// Hosts that no origin is for.
    pub without_origin: WithoutOriginStatus,
    /// Origins whose files for TLS changed to something that cannot be used, each with the reason.
    pub refused_files: Vec<(String, String)>,
}

impl QueueStatus {
    /// What an operator has to look at: verified search crawlers that have been turned away for an
    /// hour or longer. A search engine may drop pages then.
    pub fn problem(&self) -> Option<String> {
        let long: Vec<&str> = self
            .search_crawlers
            .iter()
            .filter(|(_, seconds)| *seconds >= TURNED_AWAY_TOO_LONG)
            .map(|(crawler, _)| crawler.as_str())
            .collect();
        (!long.is_empty()).then(|| {
            format!(
                "the origin {} turns verified search crawlers away for want of a place, since an hour or longer ({}); they are \
                 answered 503, and search engines drop pages that stay 503 for days. Raise `crawlers` or `connections` of the origin, \
                 or name them in `exempt`",
                self.origin,
                long.join(", ")
            )
        })
    }
}

impl Tally {
    /// Counts an answer with this status; 5xx also as an error of the server. `lived` is the time
    /// that the clock had lived through.
    pub fn answered(&self, status: u16, lived: Duration) {
        self.answers.add(lived);
        if status >= 500 {
            self.server_errors.add(lived);
        }
    }

    /// Counts a request without an answer, and keeps it as the last one. Logs at most one a second.
    pub fn failed(&self, origin: &str, request: &FailedRequest<'_>) {
        let FailedRequest {
            reason, error, at, ..
        } = *request;
        self.failures.add(at.lived);
        let host = shown(request.host);
        let target = shown(request.target);
        if let Some(left_out) = self.throttle.admit(at.lived) {
            tracing::warn!(origin, ?host, ?target, reason, left_out, %error, "the origin did not answer a request");
        }
        *lock(&self.last_failure) = Some(LastFailure {
            at: at.now,
            reason: reason.to_owned(),
            host,
            target,
        });
    }

    /// The counts of the last five minutes for the status, and the last failure, however old. The
    /// caller adds the rest.
    pub fn status(&self, lived: Duration) -> OriginStatus {
        let failures = self.failures.sum(lived);
        OriginStatus {
            requests: self.answers.sum(lived) + failures,
            failures,
            server_errors: self.server_errors.sum(lived),
            last_failure: lock(&self.last_failure).clone(),
            ..OriginStatus::default()
        }
    }
}

impl OriginStatus {
    /// The hosts and paths that it is for, in words.
    pub fn what_for(&self) -> String {
        let hosts = if self.hosts.is_empty() {
            "every other host".to_owned()
        } else {
            self.hosts.join(", ")
        };
        if self.paths.is_empty() {
            hosts
        } else {
            format!("{hosts}, below {}", self.paths.join(", "))
        }
    }

    /// What an operator has to look at: no address, more than one request in 20 without an answer,
    /// a server that checks say is down, or more than half of the answers 5xx.
    pub fn problem(&self) -> Option<String> {
        let OriginStatus {
            origin,
            requests,
            failures,
            server_errors,
            ..
        } = self;
        if self.addresses == 0 {
            return Some(format!(
                "the name of the origin {origin} cannot be resolved; its requests get 502. Check DNS and `origins`"
            ));
        }
        if failures * TOLERATED > *requests {
            let why = self.last_failure.as_ref().map(|last| {
                format!(
                    ", last at {} for {}{} ({})",
                    last.at, last.host, last.target, last.reason
                )
            });
            return Some(format!(
                "the origin {origin} did not answer {failures} of {requests} requests in the last five minutes{}; \
                 a client gets 502 or 504, unless another server of the origin answers. Check whether it runs and can be \
                 reached from here",
                why.unwrap_or_default()
            ));
        }
        if let Some(out) = self.out_of_use.iter().find(|out| out.is_down) {
            return Some(format!(
                "{} of the origin {origin} gets no requests since {} ({}), unless every server of the origin is down. \
                 Check the server and `health` of the origin",
                out.address,
                out.since,
                out.why()
            ));
        }
        let answers = requests - failures;
        (server_errors * 2 > answers).then(|| {
            format!(
                "the origin {origin} answered {server_errors} of {answers} requests in the last five minutes with 5xx. \
                 See its own log"
            )
        })
    }
}

/// Requests for hosts that no origin of the settings is for.
#[derive(Default)]
pub struct WithoutOrigin {
    hosts: RecentByName<String>,
    throttle: Throttle,
}

/// Requests of the last five minutes for hosts that no origin of the settings is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithoutOriginStatus {
    /// How many.
    pub requests: u64,
    /// The hosts that were asked for most, each with its requests.
    pub hosts: Vec<(String, u64)>,
}

impl WithoutOrigin {
    /// Counts a request for a host that no origin is for. Logs at most one a second.
    pub fn asked(&self, host: &[u8], target: &[u8], lived: Duration) {
        let host = shown(host).to_ascii_lowercase();
        let target = shown(target);
        if let Some(left_out) = self.throttle.admit(lived) {
            tracing::warn!(
                ?host,
                ?target,
                left_out,
                "no origin is configured for this host; crawlgate answered 502. Name the host in `origins` of \
                 crawlgate.yaml, or add an origin without `hosts` for every other host"
            );
        }
        self.hosts.add(host, lived);
    }

    /// The requests of the last five minutes, and the five hosts that were asked for most.
    pub fn status(&self, lived: Duration) -> WithoutOriginStatus {
        WithoutOriginStatus {
            requests: self.hosts.sum(lived),
            hosts: self.hosts.top(HOSTS, lived),
        }
    }
}

/// The first 200 bytes of what a client sent, as text.
fn shown(octets: &[u8]) -> String {
    String::from_utf8_lossy(&octets[..octets.len().min(SHOWN)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(requests: u64, failures: u64, server_errors: u64) -> OriginStatus {
        let (origin, hosts) = ("http://10.0.0.1".to_owned(), Vec::new());
        OriginStatus {
            origin,
            hosts,
            addresses: 1,
            requests,
            failures,
            server_errors,
            ..OriginStatus::default()
        }
    }

    #[test]
    fn problems_begin_above_one_failure_in_twenty_and_half_of_the_answers() {
        for (requests, failures, server_errors, is_problem) in [
            (0, 0, 0, false),
            (1, 1, 0, true),
            (100, 5, 0, false),
            (100, 6, 0, true),
            (10, 0, 5, false),
            (10, 0, 6, true),
        ] {
            let status = status(requests, failures, server_errors);
            assert_eq!(status.problem().is_some(), is_problem, "{status:?}");
        }
        assert!(
            OriginStatus {
                addresses: 0,
                ..status(0, 0, 0)
            }
            .problem()
            .is_some()
        );
    }

    #[test]
    fn a_failure_counts_for_five_minutes_and_stays_the_last() {
        let (health, at) = (
            Tally::default(),
            Moment {
                now: Timestamp(1_000),
                lived: Duration::from_secs(10),
            },
        );
        let request = FailedRequest {
            host: b"shop.example",
            target: b"/a",
            reason: "connect_refused",
            error: &"refused",
            at,
        };
        health.failed("http://10.0.0.1", &request);
        health.answered(200, at.lived);
        health.answered(503, at.lived);
        let seen = |seconds| {
            let status = health.status(Duration::from_secs(seconds));
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
