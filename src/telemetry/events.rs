//! [`Events`] records an [`Event`] for each request that is blocked or slowed down, or would be
//! under enforcement. Pauses and missing licences make no event. It keeps the latest
//! [`Events::KEPT`] for the API, writes all of them to a log as JSON lines (if the settings name
//! one), and keeps samples for the dashboard.
//!
//! Above a rate, each crawler on each site still has one event a second, and the next event says
//! how many were left out. A request never waits for the disk: [`LogWriter`] gathers the lines.

use super::access::moment;
use super::log_writer::LogWriter;
use crate::bounded::Prehashed;
use crate::locks::lock;
use crate::settings::EventSettings;
use crate::threads::spawn;
use crate::time::{Timestamp, rfc3339};
use ahash::RandomState;
use serde::Serialize;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
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

/// One request against the rules.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Event {
    /// RFC 3339 with milliseconds, UTC.
    #[serde(serialize_with = "moment")]
    pub time: SystemTime,
    pub site: String,
    /// The registry's id, the policy's token, or `other`.
    pub crawler: String,
    /// The name that an unlisted bot or program gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_itself: Option<String>,
    pub identity: &'static str,
    /// What the identity rests on: `networks` of the policy, the operator's `list`, `reverse_dns`,
    /// a `signature`, or nothing but the user agent.
    pub proof: &'static str,
    /// What the signature of the request proves, or why it proves nothing, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<&'static str>,
    /// Why nothing is proven of a crawler that can be proven here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
    pub client: Option<IpAddr>,
    /// The address as the history may keep it.
    #[serde(skip)]
    pub kept_address: Option<IpAddr>,
    pub method: String,
    pub host: String,
    pub target: String,
    pub user_agent: Option<String>,
    pub verdict: &'static str,
    /// The readings of robots.txt that the verdict rests on: `rfc9309`, `both` (Google's parser
    /// says the same) or `only_rfc9309` or `only_google` (only that one disallows the request).
    pub readings: &'static str,
    pub kind: &'static str,
    /// A violation of a crawler that was served no robots.txt here within the time that it may use
    /// a copy.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_fetched: bool,
    /// The rule that decided: `Disallow: /cart/`.
    pub rule: Option<String>,
    /// The place of the rule: `file:line:column`.
    pub rule_source: Option<String>,
    /// The version of robots.txt in force.
    pub version: String,
    /// What `held` rests on: `observed`, `declared` by the policy, or `unknown`, which accuses no
    /// crawler.
    pub history: &'static str,
    /// Until when, at the latest, the crawler may use another robots.txt, so that requests like
    /// this one do not count.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339")]
    pub older_until: Option<Timestamp>,
    /// The other versions that the crawler may have cached.
    pub held: Vec<String>,
    pub action: &'static str,
    /// The action that `enforce` would have taken.
    pub would: Option<&'static str>,
    pub status: u16,
    /// How many seconds a client that is too fast is told to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    pub request_id: String,
    /// The trace id of W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Events before this one that were not written.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

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
    recent: Mutex<VecDeque<Arc<Event>>>,
    /// The samples for the history, until it takes them.
    samples: Mutex<Samples>,
    left_out: AtomicU64,
}

impl Events {
    /// The latest events that the API shows; each is bounded, so they are a few MiB at most.
    pub const KEPT: usize = 500;

    /// Opens the log. Unless it is off, also starts a thread that writes, once a second, how many
    /// events were left out in a second that is over, if no event came after them.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or no thread can be started.
    pub fn open(settings: &EventSettings) -> std::io::Result<Events> {
        let log = LogWriter::open("event-log", &settings.destination)?;
        let events = Events::new(log, settings.rate);
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
        Events::new(LogWriter::off(), rate)
    }

    fn new(log: LogWriter, rate: u32) -> Events {
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
            samples: Mutex::default(),
            left_out: AtomicU64::new(0),
        }))
    }

    /// Records an event in the log, the latest events and the samples. Above the rate it is only
    /// counted as left out, unless it is the first of this site and crawler in this second. `make`
    /// is called only for an event that is recorded; its `left_out` is overwritten.
    pub fn record(&self, site: &str, crawler: &str, now: SystemTime, make: impl FnOnce() -> Event) {
        let shared = &*self.0;
        let Some(left_out) = shared.admit(site, crawler, now) else {
            shared.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let event = Arc::new(Event { left_out, ..make() });
        if shared.log.enabled() {
            shared.log.write(&*event);
        }
        shared.sample(&event);
        let mut recent = lock(&shared.recent);
        let oldest = if recent.len() >= Events::KEPT {
            recent.pop_front()
        } else {
            None
        };
        recent.push_back(event);
        drop(recent);
        drop(oldest);
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
    pub fn take_samples(&self) -> Vec<Arc<Event>> {
        std::mem::take(&mut lock(&self.0.samples).taken)
    }

    /// The latest events, the last first.
    pub fn recent(&self) -> Vec<Arc<Event>> {
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

    /// Why lines of the log are being lost, or go into a renamed file, with the number of those
    /// lost since the start; `None` while all is well.
    pub fn problem(&self) -> Option<String> {
        let problem = self.0.log.problem()?;
        Some(match self.dropped() {
            0 => problem,
            dropped => format!("{problem}; lost since the start: {dropped}"),
        })
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

/// A server of an origin that gets no requests any more, or gets them again: a line of the log.
#[derive(Debug, Serialize)]
#[allow(missing_docs)]
pub struct ServerEvent {
    /// RFC 3339 with milliseconds, UTC.
    #[serde(serialize_with = "moment")]
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
    #[serde(serialize_with = "moment")]
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
    taken: Vec<Arc<Event>>,
}

impl Shared {
    /// Keeps an event for the history. Does nothing if 20 of its kind were kept today, if
    /// `MAX_SAMPLES` wait, or if there were `FAIR` kinds today already (then also for a known
    /// kind).
    fn sample(&self, event: &Arc<Event>) {
        let day = Timestamp::from(event.time).0 / 86_400;
        let hash = self.hasher.hash_one((
            &event.site,
            &event.crawler,
            event.identity,
            event.kind,
            &event.rule,
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
            samples.taken.push(event.clone());
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
