//! [`EventLog`] records an event for each request that crawlgate blocks or slows down. If a policy
//! only observes, each request that it would block or slow down makes an event, too. Each event is
//! written as a line of JSON, if the settings name an event log. The latest
//! [`EventLog::MAX_RECENT`] events are kept for the API, and some events are kept as examples in
//! the history for the dashboard.
//!
//! Two kinds of request are exceptions. If the policy demands a licence and a request has none, the
//! event is only written to the log. A request that is answered 503 because of a pause makes no
//! event. At high rates, only one event a second is recorded for each crawler on each site. The
//! next event says how many were left out.

use super::log_writer::LogWriter;
use crate::bounded::PrehashedKeys;
use crate::finding::Finding;
use crate::locks::lock;
use crate::record::{
    FieldValue, NO_CRAWLER, RecordField, RecordLine, RecordRow, RequestRecord, SAMPLE_FIELDS, Sink,
    SiteJudgement,
};
use crate::settings::{AddressDetail, EventSettings};
use crate::time::Timestamp;
use ahash::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// The most pairs of crawler and site that have one event a second beyond the rate. The names come
/// from the policies and the registry, so few installations have as many pairs.
const MAX_PAIRS: usize = 16_384;
/// Events of one site, crawler, identity, kind, rule and day that the history keeps.
const MAX_SAMPLES_PER_DAY: u8 = 20;
/// The most samples that wait for the history.
const MAX_SAMPLES: usize = 5_000;

/// The fields of an event.
pub const EVENT_FIELDS: &[RecordField] = {
    use RecordField::*;
    &[
        Time,
        Site,
        Crawler,
        CallsItself,
        Identity,
        Proof,
        Signature,
        Doubt,
        Client,
        Method,
        Host,
        Target,
        UserAgent,
        Verdict,
        Readings,
        Kind,
        NeverFetched,
        Rule,
        RuleSource,
        Version,
        History,
        OlderUntil,
        Cached,
        Action,
        Would,
        Status,
        RetryAfter,
        RequestId,
        TraceId,
        LicenseToken,
        LeftOut,
    ]
};

/// The number of events in the current second.
struct EventRateLimiter {
    second: i64,
    taken: u64,
    /// The pairs of site and crawler that had an event, by hash: 64 bits under a random key do not
    /// collide in practice.
    served: HashSet<u64, PrehashedKeys>,
    /// Events left out since the last one that was recorded.
    left_out: u64,
}

/// The recorder of events; cheap to clone.
#[derive(Clone)]
pub struct EventLog(Arc<EventLogInner>);

struct EventLogInner {
    log: LogWriter,
    /// Events a second.
    rate: u64,
    hasher: RandomState,
    rate_state: Mutex<EventRateLimiter>,
    recent: Mutex<VecDeque<Arc<RecordRow>>>,
    /// How much of a client's address is written.
    addresses: AddressDetail,
    /// How much of a client's address the history keeps. With `None` it keeps no queries either.
    kept_addresses: AddressDetail,
    /// The samples for the history, until it takes them.
    samples: Mutex<HistorySamples>,
    left_out: AtomicU64,
}

impl EventLog {
    /// The most events that the API shows. Each is bounded, so they take a few MiB at most.
    pub const MAX_RECENT: usize = 500;

    /// Opens the log. `addresses` says how much of a client's address it has, `kept_addresses` how
    /// much the history keeps.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(
        settings: &EventSettings,
        addresses: AddressDetail,
        kept_addresses: AddressDetail,
    ) -> std::io::Result<EventLog> {
        let log = LogWriter::open("event-log", &settings.destination)?;
        Ok(EventLog::new(log, settings.rate, addresses, kept_addresses))
    }

    /// Events that are kept in memory only, at the default rate.
    pub fn off() -> EventLog {
        let rate = EventSettings::default().rate;
        let addresses = AddressDetail::Full;
        EventLog::new(LogWriter::off(), rate, addresses, addresses)
    }

    fn new(
        log: LogWriter,
        rate: u32,
        addresses: AddressDetail,
        kept_addresses: AddressDetail,
    ) -> EventLog {
        EventLog(Arc::new(EventLogInner {
            log,
            rate: rate.into(),
            hasher: RandomState::new(),
            rate_state: Mutex::new(EventRateLimiter {
                second: 0,
                taken: 0,
                served: HashSet::with_capacity_and_hasher(MAX_PAIRS, PrehashedKeys::default()),
                left_out: 0,
            }),
            recent: Mutex::default(),
            addresses,
            kept_addresses,
            samples: Mutex::default(),
            left_out: AtomicU64::new(0),
        }))
    }

    /// Takes the samples since the last call, for the history: at most 20 events of each site,
    /// crawler, identity, kind, rule and day, and 5,000 in total.
    pub fn take_samples(&self) -> Vec<RecordRow> {
        std::mem::take(&mut lock(&self.0.samples).taken)
    }

    /// The latest events, the last first.
    pub fn recent(&self) -> Vec<Arc<RecordRow>> {
        lock(&self.0.recent).iter().rev().cloned().collect()
    }

    /// Events that were not recorded since the start.
    pub fn left_out(&self) -> u64 {
        self.0.left_out.load(Relaxed)
    }

    /// Lines that could not be written.
    pub fn dropped(&self) -> u64 {
        self.0.log.dropped()
    }

    /// Waits until all events so far are written, for at most `limit`. First writes how many events
    /// were left out since the last one.
    pub fn flush(&self, limit: Duration) {
        let left_out = std::mem::take(&mut lock(&self.0.rate_state).left_out);
        if left_out > 0 {
            self.0.log.write(&RecordRow::from_iter([
                (RecordField::Time, FieldValue::Time(SystemTime::now())),
                (RecordField::LeftOut, FieldValue::Number(left_out)),
            ]));
        }
        self.0.log.flush(limit);
    }

    /// Reopens the file of the log, after it was rotated.
    pub fn reopen(&self) {
        self.0.log.reopen();
    }
}

impl Sink for EventLog {
    /// Lines are being lost.
    fn problem(&self) -> Option<Finding> {
        self.0.log.problem()
    }

    /// Records a request that was blocked or slowed down, or would be under enforcement, in the
    /// log, the latest events and the samples, and a request without a licence in the log. Above
    /// the rate it is only counted as left out, unless it is the first of its site and crawler in
    /// this second.
    fn record(&self, request: &RequestRecord) {
        let Some(judged) = request
            .judged()
            .filter(|judged| judged.decision.is_logged_event())
        else {
            return;
        };
        let shared = &*self.0;
        let site = &judged.entry().site.name;
        let crawler = request.crawler().unwrap_or(NO_CRAWLER);
        let arrived = request.request.arrival.arrived;
        let Some(left_out) = shared.admit_event(site, crawler, arrived) else {
            shared.left_out.fetch_add(1, Relaxed);
            return;
        };
        let line = RecordLine {
            record: request,
            fields: EVENT_FIELDS,
            addresses: shared.addresses,
        };
        let mut event = line.to_row();
        if left_out > 0 {
            event.push(RecordField::LeftOut, FieldValue::Number(left_out));
        }
        shared.log.write(&event);
        if !judged.decision.is_refused() {
            return;
        }
        shared.add_sample(request, judged);
        let mut recent = lock(&shared.recent);
        let oldest = if recent.len() >= EventLog::MAX_RECENT {
            recent.pop_front()
        } else {
            None
        };
        recent.push_back(Arc::new(event));
        drop(recent);
        drop(oldest);
    }
}

/// Samples of events for the history.
#[derive(Default)]
struct HistorySamples {
    /// Days since 1970.
    day: i64,
    /// The number of samples today by site, crawler, identity, kind and rule, as a hash.
    of_today: HashMap<u64, u8, PrehashedKeys>,
    taken: Vec<RecordRow>,
}

impl EventLogInner {
    /// Adds a sample for the history. Does nothing if there are 20 of its kind today, if
    /// `MAX_SAMPLES` wait, or if there are `MAX_PAIRS` kinds today.
    fn add_sample(&self, request: &RequestRecord, judged: &SiteJudgement) {
        let day = request.request.arrived_at().0 / 86_400;
        let decision = &judged.decision;
        let hash = self.hasher.hash_one((
            &judged.entry().site.name,
            request.crawler(),
            judged.identity.name(),
            decision.kind,
            judged.rule(),
        ));
        let mut samples = lock(&self.samples);
        if samples.day != day {
            samples.day = day;
            samples.of_today.clear();
        }
        if samples.taken.len() >= MAX_SAMPLES || samples.of_today.len() >= MAX_PAIRS {
            return;
        }
        let count = samples.of_today.entry(hash).or_default();
        if *count < MAX_SAMPLES_PER_DAY {
            *count += 1;
            let line = RecordLine {
                record: request,
                fields: SAMPLE_FIELDS,
                addresses: self.kept_addresses,
            };
            let mut sample = line.to_row();
            if self.kept_addresses == AddressDetail::None {
                sample.remove_query();
            }
            samples.taken.push(sample);
        }
    }

    /// Decides whether an event is recorded: always if it is the first of its site and crawler in
    /// the second of `now` (for up to `MAX_PAIRS` pairs), else if fewer than `rate` were recorded
    /// in that second. Returns how many events were left out before it; `None`: leave it out.
    fn admit_event(&self, site: &str, crawler: &str, now: SystemTime) -> Option<u64> {
        let second = Timestamp::from(now).0;
        let pair = self.hasher.hash_one((site, crawler));
        let mut rate_state = lock(&self.rate_state);
        if rate_state.second != second {
            rate_state.second = second;
            rate_state.taken = 0;
            rate_state.served.clear();
        }
        // The table has capacity for all of them, so no request waits for it to grow.
        let first = rate_state.served.len() < MAX_PAIRS && rate_state.served.insert(pair);
        if !first && rate_state.taken >= self.rate {
            rate_state.left_out += 1;
            return None;
        }
        rate_state.taken += 1;
        Some(std::mem::take(&mut rate_state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that a policy blocks.
    fn blocked_request(target: &str) -> RequestRecord {
        let text = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/private/] }] }\n\
                    enforcement: { mode: enforce }\n";
        RequestRecord::for_test(text, b"GET", target)
    }

    fn events_in_memory(rate: u32) -> EventLog {
        let addresses = AddressDetail::Full;
        EventLog::new(LogWriter::off(), rate, addresses, addresses)
    }

    #[test]
    fn samples_without_addresses_have_no_query() {
        for (kept, target) in [
            (AddressDetail::Network, "/private/?name=x"),
            (AddressDetail::None, "/private/"),
        ] {
            let events = EventLog::new(LogWriter::off(), 100, AddressDetail::Full, kept);
            events.record(&blocked_request("/private/?name=x"));
            let samples = events.take_samples();
            assert_eq!(samples[0].text(RecordField::Target), target);
            // The latest events in memory follow `privacy.logs`.
            let recent = events.recent();
            assert_eq!(recent[0].text(RecordField::Target), "/private/?name=x");
        }
    }

    #[test]
    fn latest_events_and_samples_are_bounded() {
        let rate = 700;
        let events = events_in_memory(rate);
        let blocked = blocked_request("/private/");
        (0..1_000).for_each(|_| events.record(&blocked));
        assert_eq!(events.recent().len(), EventLog::MAX_RECENT);
        assert_eq!(
            events.take_samples().len(),
            usize::from(MAX_SAMPLES_PER_DAY)
        );
        assert_eq!(events.left_out(), 300);
        let mut allowed = blocked;
        allowed.judgement =
            crate::record::Judgement::Unjudged(crate::record::CountedAction::Redirect);
        events.record(&allowed);
        assert_eq!(events.left_out(), 300, "no event");
    }

    #[test]
    fn crawler_on_a_site_has_one_event_a_second_above_the_rate() {
        let events = events_in_memory(1);
        for second in 0..3 {
            let now = std::time::UNIX_EPOCH + Duration::from_secs(1_765_000_000 + second);
            let mut admitted = HashMap::<(u32, u32), u32>::new();
            for _ in 0..3 {
                for pair in (0..5).flat_map(|site| (0..300).map(move |crawler| (site, crawler))) {
                    let site = format!("site-{}", pair.0);
                    let crawler = format!("crawler-{}", pair.1);
                    if events.0.admit_event(&site, &crawler, now).is_some() {
                        *admitted.entry(pair).or_default() += 1;
                    }
                }
            }
            assert_eq!(admitted.len(), 5 * 300, "in second {second}");
            assert!(
                admitted.values().all(|admitted| *admitted == 1),
                "and no more than the rate lets them"
            );
        }
    }

    #[test]
    fn pairs_beyond_the_bound_are_left_out() {
        let events = events_in_memory(1);
        let admitted = (0..20_000)
            .filter(|number: &u32| {
                let crawler = number.to_string();
                let now = std::time::UNIX_EPOCH;
                events.0.admit_event("site", &crawler, now).is_some()
            })
            .count();
        assert_eq!(admitted, 16_384);
    }
}
