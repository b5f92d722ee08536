//! [`Recorder`] gives each finished request to the sinks: metrics, event log, evidence log, access
//! log, and what was added to them. With other instances a violation waits until they have
//! confirmed it ([`Others`]).

use super::evidence::EvidenceSink;
use super::{Judge, Others, Settled, origin_form};
use crate::evidence::Evidence;
use crate::identity::Proofs;
use crate::indexing::parse_lines;
use crate::record::{Judgement, RequestRecord, Sink};
use crate::telemetry::{AccessLog, Events, Metrics, RequestMetrics, Traffic};
use crate::verdict::Action;
use std::cell::Cell;
use std::sync::{Arc, OnceLock};
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
    /// The log that third parties can check.
    pub evidence: Evidence,
    /// What else takes finished requests.
    pub sinks: Vec<Arc<dyn Sink>>,
}

impl Logs {
    /// No logs at all.
    pub fn off() -> Logs {
        Logs {
            access: AccessLog::off(),
            events: Events::off(),
            evidence: Evidence::off(),
            sinks: Vec::new(),
        }
    }
}

/// Records requests.
pub struct Recorder {
    /// Counters.
    pub metrics: Arc<Metrics>,
    pub(super) logs: Logs,
    requests: RequestMetrics,
    evidence: EvidenceSink,
    /// Other instances, which must confirm a violation before it is recorded.
    others: OnceLock<Arc<Others>>,
}

impl Recorder {
    /// A recorder that writes into these. `proofs` is what proved crawlers, for the evidence.
    pub fn new(
        metrics: Arc<Metrics>,
        proofs: Arc<Proofs>,
        traffic: Arc<Traffic>,
        logs: Logs,
    ) -> Recorder {
        Recorder {
            requests: RequestMetrics::new(metrics.clone(), traffic),
            evidence: EvidenceSink::new(logs.evidence.clone(), proofs),
            metrics,
            logs,
            others: OnceLock::new(),
        }
    }

    /// Sets the other instances in front of the same sites. To be called once, before the first
    /// request; a second call changes nothing.
    pub fn go_by(&self, others: Arc<Others>) {
        let _ = self.others.set(others);
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

    /// Whether evidence is kept.
    pub fn keeps_evidence(&self) -> bool {
        self.logs.evidence.is_on()
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
        match self.others.get() {
            Some(others) if accuses => {
                if !others.wait(request) {
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
        let Some(others) = self.others.get() else {
            return settled;
        };
        for (is_confirmed, mut record) in others.take(confirmed, lived) {
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
        self.logs.events.record(request);
        self.evidence.record(request);
        self.logs.access.record(request);
        for sink in &self.logs.sinks {
            sink.record(request);
        }
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
