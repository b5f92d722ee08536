//! [`Recorder`] gives each finished request to the sinks: metrics, event log, access log, and what
//! was added to them. With other instances a violation waits until they have confirmed it
//! ([`PeerConfirmation`]).

use super::{Judge, PeerConfirmation, Settled, origin_form};
use crate::finding::Finding;
use crate::indexing::parse_lines;
use crate::record::{Judgement, RequestRecord, Sink};
use crate::telemetry::{AccessLog, Events, Metrics, RequestMetrics, Traffic};
use crate::verdict::Action;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One of so many requests of a thread is timed, beginning with the first.
const TIMED: u32 = 16;

thread_local! {
    static REQUESTS: Cell<u32> = const { Cell::new(0) };
}

/// The opened logs.
pub struct Logs {
    /// A line for each request.
    pub access: AccessLog,
    /// A record of each request against the rules.
    pub events: Events,
    /// What else takes finished requests.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Other instances, which must confirm a violation before it is recorded.
    pub peers: Option<Arc<PeerConfirmation>>,
}

impl Logs {
    /// No logs at all.
    pub fn off() -> Logs {
        Logs {
            access: AccessLog::off(),
            events: Events::off(),
            sinks: Vec::new(),
            peers: None,
        }
    }
}

/// Records requests.
pub struct Recorder {
    /// Counters.
    pub metrics: Arc<Metrics>,
    pub(super) logs: Logs,
    requests: RequestMetrics,
}

impl Recorder {
    /// A recorder that writes into these.
    pub fn new(metrics: Arc<Metrics>, traffic: Arc<Traffic>, logs: Logs) -> Recorder {
        Recorder {
            requests: RequestMetrics::new(metrics.clone(), traffic),
            metrics,
            logs,
        }
    }

    /// Runs `judge` and returns its result. Measures the time of every 16th call of a thread,
    /// beginning with the first, for the metrics: two looks at the clock take as long as half of
    /// judging.
    #[inline]
    pub fn timed<T>(&self, judge: impl FnOnce() -> T) -> T {
        let number = REQUESTS.get();
        REQUESTS.set(number.wrapping_add(1));
        let began = number.is_multiple_of(TIMED).then(Instant::now);
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

    /// Why requests are not recorded as they should be.
    pub fn problems(&self) -> impl Iterator<Item = Finding> {
        self.sinks().filter_map(|sink| sink.problem())
    }

    /// The logs that are open, and what was added to them.
    fn sinks(&self) -> impl Iterator<Item = &dyn Sink> {
        let logs: [&dyn Sink; 2] = [&self.logs.events, &self.logs.access];
        let added = self.logs.sinks.iter().map(|sink| &**sink);
        logs.into_iter().chain(added)
    }

    /// How long a request has taken that began at `began`; zero if the access log is off, which
    /// alone needs it.
    pub fn elapsed(&self, began: Instant) -> Duration {
        if self.logs.access.enabled() {
            began.elapsed()
        } else {
            Duration::ZERO
        }
    }

    /// Records a finished request. With other instances a record that accuses a crawler waits until
    /// they have confirmed it (`Recorder::settle`); if there is no room for it, it is written as
    /// `unproven`.
    pub fn record(&self, request: &RequestRecord) {
        let accuses = request.judged().is_some_and(|judged| judged.accuses());
        match &self.logs.peers {
            Some(peers) if accuses => {
                if !peers.wait(request) {
                    self.write(&request.unproven());
                }
            }
            _ => self.write(request),
        }
    }

    /// Writes the records that need not wait any longer, and returns how many were confirmed,
    /// refuted and not confirmed in time. `confirmed` is the last entry of the log that all other
    /// instances have read, `lived` the elapsed time. A confirmed request is judged once more;
    /// others are written as `unproven`.
    pub fn settle(&self, confirmed: Option<u64>, lived: Duration, judge: &Judge) -> Settled {
        let mut settled = Settled::default();
        let Some(peers) = &self.logs.peers else {
            return settled;
        };
        for (is_confirmed, mut record) in peers.take(confirmed, lived) {
            let judged_again = if is_confirmed {
                judge.judged_again(&record)
            } else {
                None
            };
            let Some(judged) = judged_again else {
                settled.unconfirmed += 1;
                self.write(&record.unproven());
                continue;
            };
            if judged.accuses() {
                settled.confirmed += 1;
            } else {
                settled.refuted += 1;
            }
            record.judgement = Judgement::Judged(judged);
            self.write(&record);
        }
        settled
    }

    /// Gives a record to every sink.
    fn write(&self, request: &RequestRecord) {
        self.requests.record(request);
        self.sinks().for_each(|sink| sink.record(request));
    }
}

/// Remembers the tags (X-Robots-Tag) of a front page that was forwarded and answered 200, for the
/// metric `crawlgate_site_indexable`. Other requests change nothing.
pub fn watch_front_page(record: &RequestRecord, tags: &[&[u8]]) {
    let Some(judged) = record.judged() else {
        return;
    };
    let front_page = &judged.entry().site.front_page;
    let is_forwarded = judged.decision.action == Action::Pass;
    let target = origin_form(record.request.target());
    if is_forwarded && record.response.status == 200 && front_page.is_at(&target) {
        front_page.record(
            &target,
            &parse_lines(tags.iter().copied()),
            record.request.now(),
        );
    }
}
