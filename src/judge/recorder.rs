//! [`Recorder`] passes each finished request to metrics, event log, access log, and the other sinks
//! (receivers) in [`RequestLogs`]. If there are other crawlgate instances (peers), a violation
//! first waits until they have reported which versions of robots.txt they served
//! ([`PeerConfirmation`]).

use super::{ConfirmationCounts, Judge, PeerConfirmation, origin_form};
use crate::finding::Finding;
use crate::indexing::parse_lines;
use crate::record::{Judgement, RequestRecord, Sink};
use crate::telemetry::{AccessLog, EventLog, Metrics, RecentTraffic, RequestMetrics};
use crate::verdict::Action;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One request in this many of a thread is timed, beginning with the first.
const TIMED_EVERY: u32 = 16;

thread_local! {
    static REQUEST_COUNT: Cell<u32> = const { Cell::new(0) };
}

/// The open logs, and the other sinks of finished requests.
pub struct RequestLogs {
    /// A line for each request.
    pub access: AccessLog,
    /// A record of each request against the rules.
    pub events: EventLog,
    /// The other sinks.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Whether the history keeps the paths that crawlers request.
    pub keeps_paths: bool,
    /// The peers, which must confirm a violation before it is recorded.
    pub peers: Option<Arc<PeerConfirmation>>,
}

impl RequestLogs {
    /// No logs at all. The history keeps paths.
    pub fn off() -> RequestLogs {
        RequestLogs {
            access: AccessLog::off(),
            events: EventLog::off(),
            sinks: Vec::new(),
            keeps_paths: true,
            peers: None,
        }
    }
}

/// Records finished requests.
pub struct Recorder {
    /// Counters.
    pub metrics: Arc<Metrics>,
    pub(super) logs: RequestLogs,
    requests: RequestMetrics,
    /// The problem that requests have no address of their peer. It is logged once.
    peer_unknown: OnceLock<Finding>,
    /// Whether the last request has the problem.
    is_peer_unknown: AtomicBool,
}

impl Recorder {
    /// A recorder for these metrics and logs.
    pub fn new(metrics: Arc<Metrics>, traffic: Arc<RecentTraffic>, logs: RequestLogs) -> Recorder {
        Recorder {
            requests: RequestMetrics {
                metrics: metrics.clone(),
                traffic,
                counts_paths: logs.keeps_paths,
            },
            metrics,
            logs,
            peer_unknown: OnceLock::new(),
            is_peer_unknown: AtomicBool::new(false),
        }
    }

    /// The traffic of the last minutes.
    pub fn traffic(&self) -> &RecentTraffic {
        &self.requests.traffic
    }

    /// Runs `judge` and returns its result. Measures the time of every 16th call of a thread,
    /// beginning with the first, for the metrics: reading the clock twice takes half as long as
    /// judging.
    #[inline]
    pub fn time_judging<T>(&self, judge: impl FnOnce() -> T) -> T {
        let number = REQUEST_COUNT.get();
        REQUEST_COUNT.set(number.wrapping_add(1));
        let began = number.is_multiple_of(TIMED_EVERY).then(Instant::now);
        let judged = judge();
        if let Some(began) = began {
            self.metrics.decision.observe(began.elapsed().as_secs_f64());
        }
        judged
    }

    /// Whether records of requests for robots.txt need the client's If-None-Match.
    pub fn needs_validator(&self) -> bool {
        self.sinks().any(|sink| sink.needs_validator())
    }

    /// The problems of sinks that do not record requests as they should, and that the last request
    /// has no address.
    pub fn problems(&self) -> impl Iterator<Item = Finding> {
        self.sinks().filter_map(|sink| sink.problem()).chain(
            self.peer_unknown
                .get()
                .filter(|_| self.is_peer_unknown.load(Relaxed))
                .cloned(),
        )
    }

    /// The event log, the access log, and the other sinks.
    fn sinks(&self) -> impl Iterator<Item = &dyn Sink> {
        let logs: [&dyn Sink; 2] = [&self.logs.events, &self.logs.access];
        let added = self.logs.sinks.iter().map(|sink| &**sink);
        logs.into_iter().chain(added)
    }

    /// The time since `began`; zero if neither the access log nor another sink may need it.
    pub fn elapsed(&self, began: Instant) -> Duration {
        if self.logs.access.is_enabled() || !self.logs.sinks.is_empty() {
            began.elapsed()
        } else {
            Duration::ZERO
        }
    }

    /// Records a finished request. With peers a violation waits until they have confirmed it
    /// (`Recorder::resolve_waiting`); if too many wait, it is recorded as `unproven`.
    pub fn record(&self, request: &RequestRecord) {
        let is_unknown = request.request.is_peer_unknown;
        // Written only if it changes: threads share it.
        if self.is_peer_unknown.load(Relaxed) != is_unknown {
            self.is_peer_unknown.store(is_unknown, Relaxed);
        }
        if is_unknown {
            self.peer_unknown.get_or_init(|| {
                let problem = Finding::new(
                    "no-peer-address",
                    "a request came without the address of the connection's other end. Crawl rates, traps and the networks of policies \
                     have no effect on such requests. Give GateBuilder::peer a function that returns the address of \
                     every request",
                );
                tracing::warn!("{problem}");
                problem
            });
        }
        let accuses = request.judged().is_some_and(|judged| judged.accuses());
        match &self.logs.peers {
            Some(peers) if accuses => {
                if !peers.enqueue(request) {
                    self.write_to_sinks(&request.with_unproven_kind());
                }
            }
            _ => self.write_to_sinks(request),
        }
    }

    /// Writes the records that need not wait any longer, and returns how many were confirmed,
    /// refuted and not confirmed in time. `confirmed` is the last entry of the log that all other
    /// instances have read, `monotonic` the monotonic time. A confirmed request is judged once
    /// more; others are written as `unproven`.
    pub fn resolve_waiting(
        &self,
        confirmed: Option<u64>,
        monotonic: Duration,
        judge: &Judge,
    ) -> ConfirmationCounts {
        let mut counts = ConfirmationCounts::default();
        let Some(peers) = &self.logs.peers else {
            return counts;
        };
        for (is_confirmed, mut record) in peers.take_resolved(confirmed, monotonic) {
            let rejudge = if is_confirmed {
                judge.rejudge(&record)
            } else {
                None
            };
            let Some(judged) = rejudge else {
                counts.unconfirmed += 1;
                self.write_to_sinks(&record.with_unproven_kind());
                continue;
            };
            if judged.accuses() {
                counts.confirmed += 1;
            } else {
                counts.refuted += 1;
            }
            record.judgement = Judgement::Judged(judged);
            self.write_to_sinks(&record);
        }
        counts
    }

    /// Passes a record to every sink.
    fn write_to_sinks(&self, request: &RequestRecord) {
        self.requests.record(request);
        self.sinks().for_each(|sink| sink.record(request));
    }
}

/// Stores the tags (X-Robots-Tag) of a front page that was forwarded and answered 200, for the
/// metric `crawlgate_site_indexable`. Does nothing for other requests.
pub fn record_front_page_tags(record: &RequestRecord, tags: &[&[u8]]) {
    let Some(judged) = record.judged() else {
        return;
    };
    let is_forwarded = judged.decision.action == Action::Pass;
    let target = origin_form(record.request.target());
    if is_forwarded && record.response.status == 200 && *target == *b"/" {
        judged.entry().site.front_page.record_tags(
            &parse_lines(tags.iter().copied()),
            record.request.arrived_at(),
        );
    }
}
