//! Who stepped into a trap: addresses with the name they gave, for a time. That is time lived through: a clock that is
//! set ends no mark sooner, and brings none back.
//!
//! Knows sites, names and addresses; knows no rule. Remembered through a restart in one file, written whole.

use super::bounded::{Bounded, Ends};
use super::watch::{TOLERANCE, Watch};
use crate::clock::Moment;
use crate::durable::{set_aside, write_whole};
use crate::time::{Timestamp, rfc3339};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A larger file is none of ours.
const MAX_FILE: u64 = 64 * 1024 * 1024;
/// How often marks are written down, when there are new ones: what a crash can lose.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);
const FILE: &str = "traps.json";

/// One mark, by the clock on the wall as it is now: for lists, and for the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The site whose trap it was.
    pub site: String,
    /// Whom it said it was: the registry's id, the policy's token, or what a bot that no list knows calls itself.
    pub crawler: String,
    /// The address; of IPv6 the /64, since that is what one machine has.
    pub address: IpAddr,
    /// When it stepped in, the last time.
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// When that is forgotten.
    #[serde(serialize_with = "rfc3339")]
    pub until: Timestamp,
}

/// One mark as it counts.
#[derive(Debug)]
struct Counted {
    site: String,
    crawler: String,
    address: IpAddr,
    /// By the clock as it was then.
    since: Timestamp,
    time: Duration,
    /// When it is over, by what was lived through.
    ends: Duration,
}

impl Ends for Counted {
    type Moment = Duration;

    fn ends(&self) -> Duration {
        self.ends
    }
}

impl Counted {
    /// One that is remembered. How long crawlgate was away only the clock on the wall says; whatever that says, a mark
    /// has no more left than its whole time.
    fn remembered(mark: Mark, moment: Moment) -> Counted {
        let Mark { site, crawler, address, since, until } = mark;
        let time = until.since(since);
        let ends = moment.lived.saturating_add(until.since(moment.now).min(time));
        Counted { site, crawler, address, since, time, ends }
    }

    fn is_in_force(&self, lived: Duration) -> bool {
        lived < self.ends
    }

    /// Its moments are those of the clock as it is now: of one that was set since, others would say nothing.
    fn at(&self, moment: Moment) -> Mark {
        let until = moment.now.plus(self.ends.saturating_sub(moment.lived));
        let since = Timestamp(until.0.saturating_sub(seconds(self.time)));
        let was_set = since.0.abs_diff(self.since.0) > TOLERANCE.unsigned_abs();
        let since = if was_set { since } else { self.since };
        let (site, crawler, address) = (self.site.clone(), self.crawler.clone(), self.address);
        Mark { site, crawler, address, since, until: since.plus(self.time) }
    }
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// The marks cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("the marks of traps, {path}: {error}")]
pub struct TrapsError {
    path: String,
    error: std::io::Error,
}

#[derive(Default)]
struct Shared {
    marks: Bounded<Counted>,
    changed: AtomicBool,
    failing: AtomicBool,
}

/// All marks; cheap to clone.
#[derive(Clone, Default)]
pub struct Traps(Arc<Shared>);

impl Traps {
    /// Marks that are remembered in the state directory, and read from there. They are written by a thread of its own,
    /// which asks what time it is, and ends with the last of the clones. A file that cannot be understood is set aside.
    ///
    /// # Errors
    /// The file is there and cannot be read, or no thread can be started.
    pub fn open(state: &Path, clock: impl Fn() -> Moment + Send + 'static) -> Result<Traps, TrapsError> {
        let moment = clock();
        let path = state.join(FILE);
        let failed = |error| TrapsError { path: path.display().to_string(), error };
        let (traps, mut over_on_disk) = (Traps::default(), false);
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(metadata) => {
                let bytes = if metadata.len() <= MAX_FILE { std::fs::read(&path).map_err(failed)? } else { Vec::new() };
                match serde_json::from_slice::<Vec<Mark>>(&bytes) {
                    Ok(marks) => {
                        for mark in marks.into_iter().map(|mark| Counted::remembered(mark, moment)) {
                            if mark.is_in_force(moment.lived) {
                                traps.insert(mark, moment.lived);
                            } else {
                                over_on_disk = true;
                            }
                        }
                    }
                    Err(error) => {
                        let aside = set_aside(&path);
                        tracing::warn!(%error, "{}: cannot be understood; set aside as {}", path.display(), aside.display());
                    }
                }
            }
        }
        traps.0.changed.store(over_on_disk, Ordering::Relaxed);
        let shared = Arc::downgrade(&traps.0);
        let thread = std::thread::Builder::new().name("traps".into());
        thread
            .spawn(move || keep(&shared, &path, moment, clock))
            .map_err(|error| TrapsError { path: FILE.into(), error })?;
        Ok(traps)
    }

    /// Marks an address under a name. Who is marked already is marked anew.
    pub fn mark(&self, site: &str, crawler: &str, address: IpAddr, moment: Moment, time: Duration) {
        let (site, crawler, address) = (site.to_owned(), crawler.to_owned(), network(address));
        let ends = moment.lived.saturating_add(time);
        self.insert(Counted { site, crawler, address, since: moment.now, time, ends }, moment.lived);
    }

    fn insert(&self, mark: Counted, lived: Duration) {
        let marks = &self.0.marks;
        marks.insert(marks.hash((mark.site.as_str(), mark.crawler.as_str(), mark.address)), mark, lived);
        self.0.changed.store(true, Ordering::Release);
    }

    /// Whether an address is marked under a name, when so much was lived through.
    pub fn is_marked(&self, site: &str, crawler: &str, address: IpAddr, lived: Duration) -> bool {
        let marks = &self.0.marks;
        if marks.is_empty() {
            return false;
        }
        let address = network(address);
        // Two that share a hash share nothing else.
        let is_it = |mark: &Counted| mark.site == site && mark.crawler == crawler && mark.address == address;
        let look = |mark: &Counted| (is_it(mark) && mark.is_in_force(lived)).then_some(());
        marks.look(marks.hash((site, crawler, address)), look).is_some()
    }

    /// Everybody who is marked, the latest first.
    pub fn list(&self, moment: Moment) -> Vec<Mark> {
        let mut marks = self.0.marks(moment);
        marks.sort_by(|a, b| (b.since, &a.site, &a.crawler, a.address).cmp(&(a.since, &b.site, &b.crawler, b.address)));
        marks
    }

    /// How many are marked.
    pub fn in_force(&self, lived: Duration) -> usize {
        self.0.marks.collect(|mark| mark.is_in_force(lived).then_some(())).len()
    }

    /// Forgets the marks of a network, under every name and on every site; returns those that counted. One within a /64
    /// stands for all of it, as marks do.
    pub fn release(&self, whose: IpNet, moment: Moment) -> Vec<Mark> {
        let whose = canonical(whose);
        let mut released = Vec::new();
        self.0.marks.retain(|mark| {
            let kept = !whose.contains(&mark.address);
            if !kept && mark.is_in_force(moment.lived) {
                released.push(mark.at(moment));
            }
            kept
        });
        self.0.changed.store(true, Ordering::Release);
        released
    }

    /// Marks that are held, those included whose time is over and that nobody has cleared away yet.
    pub fn len(&self) -> usize {
        self.0.marks.len()
    }

    /// Whether nobody is marked.
    pub fn is_empty(&self) -> bool {
        self.0.marks.is_empty()
    }

    /// Whether the marks could not be written the last time.
    pub fn failing(&self) -> bool {
        self.0.failing.load(Ordering::Relaxed)
    }

    /// Writes what is new, at once: the server's stop waits for it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, state: &Path, moment: Moment) -> std::io::Result<()> {
        self.0.save(&state.join(FILE), moment)
    }
}

/// One machine has a whole /64 of IPv6 to choose from (RFC 8981).
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX))),
    }
}

/// The network whose marks are meant: an IPv4 address may come in IPv6's clothes.
fn canonical(whose: IpNet) -> IpNet {
    let (address, length) = (whose.addr(), whose.prefix_len());
    match (address, address.to_canonical()) {
        (IpAddr::V6(_), IpAddr::V4(v4)) if length >= 96 => IpNet::new(v4.into(), length - 96).unwrap_or(whose),
        (IpAddr::V6(v6), _) => IpNet::new(v6.into(), length.min(64)).unwrap_or(whose),
        (IpAddr::V4(_), _) => whose,
    }
}

impl Shared {
    /// Those that count.
    fn marks(&self, moment: Moment) -> Vec<Mark> {
        self.marks.collect(|mark| mark.is_in_force(moment.lived).then(|| mark.at(moment)))
    }

    /// Forgets those that are over, on disk as well: by the clock of another start they might count again.
    fn clear_away(&self, lived: Duration) {
        if !self.marks.is_empty() && self.marks.retain(|mark| mark.is_in_force(lived)) > 0 {
            self.changed.store(true, Ordering::Release);
        }
    }

    fn save(&self, path: &Path, moment: Moment) -> std::io::Result<()> {
        self.clear_away(moment.lived);
        if !self.changed.swap(false, Ordering::Acquire) {
            return Ok(());
        }
        let marks = self.marks(moment);
        let written = write_whole(path, |out| Ok(serde_json::to_writer(out, &marks)?));
        if written.is_err() {
            self.changed.store(true, Ordering::Release);
        }
        written
    }
}

fn keep(shared: &Weak<Shared>, path: &Path, opened: Moment, clock: impl Fn() -> Moment) {
    let watch = Watch::new(opened);
    loop {
        std::thread::park_timeout(WRITTEN_EVERY);
        let Some(shared) = shared.upgrade() else { return };
        let moment = clock();
        // What is in the file is by the clock as it was.
        if watch.settle(moment).is_some() {
            shared.changed.store(true, Ordering::Release);
        }
        match shared.save(path, moment) {
            Ok(()) => shared.failing.store(false, Ordering::Relaxed),
            Err(error) if !shared.failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "{}: cannot be written; marks of traps are lost with the process", path.display());
            }
            Err(_) => {}
        }
    }
}
