//! [`Events`] records an event for each request that is blocked or slowed down, or would be under
//! enforcement. Pauses and missing licences make no event. It keeps the latest [`Events::KEPT`] for
//! the API, writes all of them to a log as JSON lines (if the settings name one), and keeps samples
//! for the history.
//!
//! Above a rate, each crawler on each site still has one event a second, and the next event says
//! how many were left out. A request never waits for the disk: [`LogWriter`] gathers the lines.

use super::log_writer::LogWriter;
use crate::bounded::Prehashed;
use crate::finding::Finding;
use crate::locks::lock;
use crate::record::{
    Field, Judged, Line, NO_CRAWLER, RequestRecord, Row, SAMPLE_FIELDS, Sink, Value,
    time_with_milliseconds,
};
use crate::settings::{AddressDetail, EventSettings};
use crate::threads::spawn;
use crate::time::Timestamp;
use ahash::RandomState;
use serde::Serialize;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Beyond the rate each crawler on each site has one event a second, for so many pairs of crawler
/// and site. The names come from the policies and the registry, so few installations have as many.
const FAIR: usize = 16_384;
/// Events of one site, crawler, identity, kind, rule and day that the history keeps.
const SAMPLES_EACH: u8 = 20;
/// Events that wait for the history.
const MAX_SAMPLES: usize = 5_000;
const SUMMED_EVERY: Duration = Duration::from_secs(1);

/// The fields of an event.
pub const EVENT_FIELDS: &[Field] = &[
    Field::Time,
    Field::Site,
    Field::Crawler,
    Field::CallsItself,
    Field::Identity,
    Field::Proof,
    Field::Signature,
    Field::Doubt,
    Field::Client,
    Field::Method,
    Field::Host,
    Field::Target,
    Field::UserAgent,
    Field::Verdict,
    Field::Readings,
    Field::Kind,
    Field::NeverFetched,
    Field::Rule,
    Field::RuleSource,
    Field::Version,
    Field::History,
    Field::OlderUntil,
    Field::Held,
    Field::Action,
    Field::Would,
    Field::Status,
    Field::RetryAfter,
    Field::RequestId,
    Field::TraceId,
    Field::LeftOut,
];

/// The events of the present second.
struct Sampling {
    second: i64,
    taken: u64,
    /// Which pairs of site and crawler had one, by their hash: 64 bits under a random key do not
    /// collide in practice.
    served: HashSet<u64, Prehashed>,
    /// Events left out since the last one that was recorded.
    left_out: u64,
}

/// The recorder of events; cheap to clone.
#[derive(Clone)]
pub struct Events(Arc<Shared>);

struct Shared {
    log: LogWriter,
    /// Events a second.
    rate: u64,
    hasher: RandomState,
    sampling: Mutex<Sampling>,
    recent: Mutex<VecDeque<Arc<Row>>>,
    /// How much of a client's address is written.
    addresses: AddressDetail,
    /// How much of it the history keeps.
    kept_addresses: AddressDetail,
    /// The samples for the history, until it takes them.
    samples: Mutex<Samples>,
    left_out: AtomicU64,
}

impl Events {
    /// The latest events that the API shows; each is bounded, so they are a few MiB at most.
    pub const KEPT: usize = 500;

    /// Opens the log. `addresses` says how much of a client's address it has, `kept_addresses` how
    /// much the history keeps. Unless it is off, also starts a thread that writes, once a second, how many
    /// events were left out in a second that is over, if no event came after them.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or no thread can be started.
    pub fn open(
        settings: &EventSettings,
        addresses: AddressDetail,
        kept_addresses: AddressDetail,
    ) -> std::io::Result<Events> {
        let log = LogWriter::open("event-log", &settings.destination)?;
        let events = Events::new(log, settings.rate, addresses, kept_addresses);
        if events.0.log.enabled() {
            // After a flood there may be no event for a while: the number that was left out is
            // written all the same.
            let shared = Arc::downgrade(&events.0);
            spawn("events", move || {
                loop {
                    std::thread::park_timeout(SUMMED_EVERY);
                    let Some(shared) = shared.upgrade() else {
                        return;
                    };
                    shared.say_left_out(SystemTime::now());
                }
            })?;
        }
        Ok(events)
    }

    /// Events that are kept in memory only, at the default rate.
    pub fn off() -> Events {
        Events::recording(EventSettings::default().rate)
    }

    /// Events that are kept in memory only, `rate` a second.
    pub fn recording(rate: u32) -> Events {
        Events::new(
            LogWriter::off(),
            rate,
            AddressDetail::Full,
            AddressDetail::Full,
        )
    }

    fn new(
        log: LogWriter,
        rate: u32,
        addresses: AddressDetail,
        kept_addresses: AddressDetail,
    ) -> Events {
        Events(Arc::new(Shared {
            log,
            rate: rate.into(),
            hasher: RandomState::new(),
            sampling: Mutex::new(Sampling {
                second: 0,
                taken: 0,
                served: HashSet::with_capacity_and_hasher(FAIR, Prehashed::default()),
                left_out: 0,
            }),
            recent: Mutex::default(),
            addresses,
            kept_addresses,
            samples: Mutex::default(),
            left_out: AtomicU64::new(0),
        }))
    }

    /// Writes that a server was ejected, went down or came back. No rate bounds these lines,
    /// because each ejection of a server is longer than the one before.
    pub fn server(&self, event: &ServerEvent) {
        if self.0.log.enabled() {
            self.0.log.write(event);
        }
    }

    /// Takes the samples gathered since the last call: at most 20 events of each site, crawler,
    /// identity, kind, rule and day, and 5,000 altogether. The history calls this.
    pub fn take_samples(&self) -> Vec<Row> {
        std::mem::take(&mut lock(&self.0.samples).taken)
    }

    /// The latest events, the last first.
    pub fn recent(&self) -> Vec<Arc<Row>> {
        lock(&self.0.recent).iter().rev().cloned().collect()
    }

    /// Events that were not recorded since the start.
    pub fn left_out(&self) -> u64 {
        self.0.left_out.load(Ordering::Relaxed)
    }

    /// Lines that could not be written.
    pub fn dropped(&self) -> u64 {
        self.0.log.dropped()
    }

    /// Waits until everything taken in is written, for at most `limit`. Writes before how many
    /// events were left out, also in the present second.
    pub fn flush(&self, limit: Duration) {
        // A second later, so that the present second counts as over.
        self.0.say_left_out(SystemTime::now() + SUMMED_EVERY);
        self.0.log.flush(limit);
    }

    /// Opens the file of the log again, after it was rotated.
    pub fn reopen(&self) {
        self.0.log.reopen();
    }
}

impl Sink for Events {
    /// Lines are being lost, with the number of those lost since the start, or go into a renamed
    /// file.
    fn problem(&self) -> Option<Finding> {
        let problem = self.0.log.problem()?;
        let message = match self.dropped() {
            0 => problem,
            dropped => format!("{problem}; lost since the start: {dropped}"),
        };
        Some(Finding::new("event-log", message))
    }

    /// Records a request that was blocked or slowed down, or would be under enforcement, in the
    /// log, the latest events and the samples. Above the rate it is only counted as left out,
    /// unless it is the first of its site and crawler in this second.
    fn record(&self, request: &RequestRecord) {
        let Some(judged) = request.judged().filter(|judged| judged.decision.is_event()) else {
            return;
        };
        let shared = &*self.0;
        let site = &judged.entry().site.name;
        let crawler = request.crawler().unwrap_or(NO_CRAWLER);
        let arrived = request.request.arrival.arrived;
        let Some(left_out) = shared.admit(site, crawler, arrived) else {
            shared.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let line = Line {
            record: request,
            fields: EVENT_FIELDS,
            addresses: shared.addresses,
        };
        let mut event = line.to_row();
        if left_out > 0 {
            event.push(Field::LeftOut, Value::Number(left_out));
        }
        if shared.log.enabled() {
            shared.log.write(&event);
        }
        shared.sample(request, judged);
        let mut recent = lock(&shared.recent);
        let oldest = if recent.len() >= Events::KEPT {
            recent.pop_front()
        } else {
            None
        };
        recent.push_back(Arc::new(event));
        drop(recent);
        drop(oldest);
    }
}

/// A server of an origin that gets no requests any more, or gets them again: a line of the log.
#[derive(Debug, Serialize)]
#[allow(missing_docs)]
pub struct ServerEvent {
    /// RFC 3339 with milliseconds, UTC.
    #[serde(serialize_with = "time_with_milliseconds")]
    pub time: SystemTime,
    /// `server_ejected`, `server_down` or `server_returned`.
    pub event: &'static str,
    /// The origin, as the metrics call it.
    pub origin: String,
    pub server: String,
    /// Why it gets none: the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The status that a check was answered with, if that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// For how many seconds it gets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// The line that stands for events that were not written, when none comes after them.
#[derive(Serialize)]
struct LeftOut {
    #[serde(serialize_with = "time_with_milliseconds")]
    time: SystemTime,
    left_out: u64,
}

/// Events for the history.
#[derive(Default)]
struct Samples {
    /// Days since 1970.
    day: i64,
    /// How many there were today of each site, crawler, identity, kind and rule, by their hash.
    of_today: HashMap<u64, u8, Prehashed>,
    taken: Vec<Row>,
}

impl Shared {
    /// Keeps a request for the history. Does nothing if 20 of its kind were kept today, if
    /// `MAX_SAMPLES` wait, or if there were `FAIR` kinds today already (then also for a known
    /// kind).
    fn sample(&self, request: &RequestRecord, judged: &Judged) {
        let day = request.request.now().0 / 86_400;
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
        if samples.taken.len() >= MAX_SAMPLES || samples.of_today.len() >= FAIR {
            return;
        }
        let count = samples.of_today.entry(hash).or_default();
        if *count < SAMPLES_EACH {
            *count += 1;
            let line = Line {
                record: request,
                fields: SAMPLE_FIELDS,
                addresses: self.kept_addresses,
            };
            samples.taken.push(line.to_row());
        }
    }

    /// Writes a line with the number of events left out since the last recorded one, and starts
    /// that number anew. Does nothing if there are none, if the second that they fell into is not
    /// over at `now`, or if the log is off.
    fn say_left_out(&self, now: SystemTime) {
        let mut sampling = lock(&self.sampling);
        if sampling.left_out > 0 && sampling.second < Timestamp::from(now).0 && self.log.enabled() {
            let left_out = std::mem::take(&mut sampling.left_out);
            drop(sampling);
            self.log.write(&LeftOut {
                time: now,
                left_out,
            });
        }
    }

    /// Decides whether an event is recorded: always if it is the first of this site and crawler in
    /// the second of `now` (for up to `FAIR` such pairs), else if fewer than `rate` were in this
    /// second. Returns how many before it were left out since the last recorded one; `None`: leave
    /// it out.
    fn admit(&self, site: &str, crawler: &str, now: SystemTime) -> Option<u64> {
        let second = Timestamp::from(now).0;
        let pair = self.hasher.hash_one((site, crawler));
        let mut sampling = lock(&self.sampling);
        if sampling.second != second {
            sampling.second = second;
            sampling.taken = 0;
            sampling.served.clear();
        }
        // The table was made with room for all of them, so no request waits for it to grow.
        let first = sampling.served.len() < FAIR && sampling.served.insert(pair);
        if !first && sampling.taken >= self.rate {
            sampling.left_out += 1;
            return None;
        }
        sampling.taken += 1;
        Some(std::mem::take(&mut sampling.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawlers::Registry;
    use crate::heads::HeadFields;
    use crate::policy::{SiteEntry, Snapshot};
    use crate::record::{Judgement, RequestFacts};
    use crate::verdict::{CachedVersions, HistoryBasis, Identity, Proof, Scratch, decide, load};
    use crate::yaml::Source;

    /// A request that a policy blocks.
    fn blocked() -> RequestRecord {
        let registry = Registry::builtin();
        let text = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/private/] }] }\n\
                    enforcement: { mode: enforce }\n";
        let source = Source {
            name: "shop.yaml".into(),
            text: text.into(),
        };
        let site = load("shop", &source, registry).0.expect("a policy");
        let snapshot = Snapshot::new(vec![SiteEntry::new(site, Timestamp(0))], 1);
        let head = HeadFields {
            method: b"GET",
            host: b"shop.example",
            target: b"/private/",
            user_agent: Some(b"GPTBot/1.2"),
            ..HeadFields::default()
        };
        let mut record =
            RequestRecord::unjudged(RequestFacts::of(&head, None, SystemTime::UNIX_EPOCH));
        let facts = record.request.for_engine(b"/private/");
        let cached = CachedVersions::default();
        let decision = decide(
            &snapshot,
            registry,
            &facts,
            &cached,
            &mut Scratch::default(),
        );
        record.judgement = Judgement::Judged(Judged {
            decision: decision.expect("a site"),
            identity: Identity::Unverified,
            proof: Proof::None,
            signature: None,
            doubt: None,
            good_signature: None,
            cached: 0,
            basis: HistoryBasis::Unknown,
            older_until: None,
            may_confirm_by_date: false,
            is_silent: false,
            snapshot: Arc::new(snapshot),
        });
        record
    }

    #[test]
    fn latest_events_and_samples_are_bounded_and_the_rest_counted() {
        let rate = 700;
        let events = Events::recording(rate);
        let blocked = blocked();
        (0..1_000).for_each(|_| events.record(&blocked));
        assert_eq!(events.recent().len(), Events::KEPT);
        assert_eq!(events.take_samples().len(), usize::from(SAMPLES_EACH));
        assert_eq!(events.left_out(), 300);
        let mut allowed = blocked;
        allowed.judgement = Judgement::Unjudged(crate::record::CountedAction::Redirect);
        events.record(&allowed);
        assert_eq!(events.left_out(), 300, "no event");
    }

    #[test]
    fn beyond_the_rate_a_crawler_on_a_site_has_one_event_a_second() {
        let events = Events::recording(1);
        for second in 0..3 {
            let now = std::time::UNIX_EPOCH + Duration::from_secs(1_765_000_000 + second);
            let mut admitted = HashMap::<(u32, u32), u32>::new();
            for _ in 0..3 {
                for pair in (0..5).flat_map(|site| (0..300).map(move |crawler| (site, crawler))) {
                    let site = format!("site-{}", pair.0);
                    let crawler = format!("crawler-{}", pair.1);
                    if events.0.admit(&site, &crawler, now).is_some() {
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
    fn more_names_than_there_is_room_for_are_left_out() {
        let events = Events::recording(1);
        let admitted = (0..20_000)
            .filter(|number: &u32| {
                let crawler = number.to_string();
                let now = std::time::UNIX_EPOCH;
                events.0.admit("site", &crawler, now).is_some()
            })
            .count();
        assert_eq!(admitted, 16_384);
    }
}
