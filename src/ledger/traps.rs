//! [`Traps`]: the marked clients. A client that requests a trap is marked by site, claimed identity and address, until the time
//! of the mark is over or an operator releases it. That is time lived through, so a clock that is set ends no mark sooner and
//! brings none back.

use super::client_news::{ClientNews, Mark, Tell, Teller};
use super::clock_steps::{ClockSteps, TOLERANCE};
use crate::bounded::{Bounded, Ends};
use crate::clock::Moment;
use crate::locks::lock;
use crate::state::{AsWritten, Fact, MarkedClient, StateStore};
use crate::time::Timestamp;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    /// A mark that the store or another instance has. Only the wall clock says how long crawlgate was away; whatever it says, a
    /// mark has no more left than its whole time.
    fn remembered(mark: Mark, moment: Moment) -> Counted {
        let Mark { site, crawler, address, since, until } = mark;
        let time = until.since(since);
        let ends = moment.lived.saturating_add(until.since(moment.now).min(time));
        Counted { site, crawler, address, since, time, ends }
    }

    fn is_in_force(&self, lived: Duration) -> bool {
        lived < self.ends
    }

    /// The mark by the clock as it is now. If the clock was set since, the moments of then would say nothing.
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

/// All marks.
#[derive(Default)]
pub struct Traps {
    marks: Bounded<Counted>,
    /// Whether the marks are not those in the store any more.
    changed: AtomicBool,
    kept: Option<Kept>,
    others: Teller,
}

/// What the store was told.
struct Kept {
    store: StateStore,
    clock: ClockSteps,
    /// Each mark, by site, crawler and address.
    marks: Mutex<HashMap<(String, String, IpAddr), Mark>>,
}

impl Traps {
    /// The marks that the store remembers, and that are kept there with [`Traps::keep`].
    pub fn remembered(clients: &[(Timestamp, MarkedClient)], store: StateStore, moment: Moment) -> Traps {
        let marks: Vec<Mark> = clients.iter().filter_map(|(_, client)| Mark::of(client)).collect();
        let known = marks.iter().map(|mark| (mark.key(), mark.clone())).collect();
        let kept = Kept { store, clock: ClockSteps::new(moment), marks: Mutex::new(known) };
        let traps = Traps { kept: Some(kept), ..Traps::default() };
        for mark in marks.into_iter().map(|mark| Counted::remembered(mark, moment)) {
            if mark.is_in_force(moment.lived) {
                traps.insert(mark, moment.lived);
            }
        }
        // What is over has to go from the store: by the clock of another start it might count again.
        traps.changed.store(!clients.is_empty(), Ordering::Release);
        traps
    }

    /// Marks an address under a name. A mark that is there already begins anew.
    pub fn mark(&self, site: &str, crawler: &str, address: IpAddr, moment: Moment, time: Duration) {
        let (site, crawler, address) = (site.to_owned(), crawler.to_owned(), network(address));
        let ends = moment.lived.saturating_add(time);
        let mark = Counted { site, crawler, address, since: moment.now, time, ends };
        self.others.tell(|| Some(ClientNews::Marked(mark.at(moment))));
        self.insert(mark, moment.lived);
    }

    /// Marks, and releases of marks, are told to other instances from now on.
    pub(super) fn tell_others(&self, tell: Tell) {
        self.others.begin(tell);
    }

    /// A client requested a trap at another instance. The mark that ends last stays.
    pub(super) fn marked_elsewhere(&self, mark: Mark, moment: Moment) {
        let new = Counted::remembered(mark, moment);
        let hash = self.hash(&new);
        let is_longer = |known: &Counted| (known.ends >= new.ends).then_some(());
        if new.is_in_force(moment.lived) && self.marks.look(hash, is_longer).is_none() {
            self.insert(new, moment.lived);
        }
    }

    /// An operator released the marks of a network at another instance. What came later stays.
    pub(super) fn released_elsewhere(&self, network: IpNet, at: Timestamp, moment: Moment) {
        let network = canonical(network);
        let gone = self.marks.retain(|mark| !network.contains(&mark.address) || mark.at(moment).since > at);
        if gone > 0 {
            self.changed.store(true, Ordering::Release);
        }
    }

    fn hash(&self, mark: &Counted) -> u64 {
        self.marks.hash((mark.site.as_str(), mark.crawler.as_str(), mark.address))
    }

    fn insert(&self, mark: Counted, lived: Duration) {
        self.marks.insert(self.hash(&mark), mark, lived);
        self.changed.store(true, Ordering::Release);
    }

    /// Whether an address is marked under a name, when so much was lived through.
    pub fn is_marked(&self, site: &str, crawler: &str, address: IpAddr, lived: Duration) -> bool {
        let marks = &self.marks;
        if marks.is_empty() {
            return false;
        }
        let address = network(address);
        // Two marks with one hash may be of different clients.
        let is_it = |mark: &Counted| mark.site == site && mark.crawler == crawler && mark.address == address;
        let look = |mark: &Counted| (is_it(mark) && mark.is_in_force(lived)).then_some(());
        marks.look(marks.hash((site, crawler, address)), look).is_some()
    }

    /// The marks in force, the latest first.
    pub fn list(&self, moment: Moment) -> Vec<Mark> {
        let mut marks = self.marks_at(moment);
        marks.sort_by(|a, b| (b.since, &a.site, &a.crawler, a.address).cmp(&(a.since, &b.site, &b.crawler, b.address)));
        marks
    }

    /// How many are marked.
    pub fn in_force(&self, lived: Duration) -> usize {
        self.marks.collect(|mark| mark.is_in_force(lived).then_some(())).len()
    }

    /// Forgets the marks of a network, under every name and on every site; returns those that counted. One within a /64
    /// stands for all of it, as marks do.
    pub fn release(&self, whose: IpNet, moment: Moment) -> Vec<Mark> {
        let whose = canonical(whose);
        self.others.tell(|| Some(ClientNews::Released { network: whose, at: moment.now }));
        let mut released = Vec::new();
        self.marks.retain(|mark| {
            let kept = !whose.contains(&mark.address);
            if !kept && mark.is_in_force(moment.lived) {
                released.push(mark.at(moment));
            }
            kept
        });
        self.changed.store(true, Ordering::Release);
        released
    }

    /// How many marks are remembered, with those whose time is over but which are not cleared away yet.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether no client is marked.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }
}

impl Mark {
    fn of(client: &MarkedClient) -> Option<Mark> {
        let (site, crawler) = (client.site.clone(), client.crawler.clone());
        let (since, until) = (client.since.0, client.until.0);
        Some(Mark { site, crawler, address: client.address.parse().ok()?, since, until })
    }

    fn key(&self) -> (String, String, IpAddr) {
        (self.site.clone(), self.crawler.clone(), self.address)
    }

    fn record(&self) -> MarkedClient {
        let (site, crawler, address) = (self.site.clone(), self.crawler.clone(), self.address.to_string());
        MarkedClient { site, crawler, address, since: AsWritten(self.since), until: AsWritten(self.until) }
    }
}

/// One machine has a whole /64 of IPv6 to choose from (RFC 8981).
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX))),
    }
}

/// The network whose marks are meant: an IPv4 address may be written as one of IPv6.
fn canonical(whose: IpNet) -> IpNet {
    let (address, length) = (whose.addr(), whose.prefix_len());
    match (address, address.to_canonical()) {
        (IpAddr::V6(_), IpAddr::V4(v4)) if length >= 96 => IpNet::new(v4.into(), length - 96).unwrap_or(whose),
        (IpAddr::V6(v6), _) => IpNet::new(v6.into(), length.min(64)).unwrap_or(whose),
        (IpAddr::V4(_), _) => whose,
    }
}

impl Traps {
    /// The marks in force.
    fn marks_at(&self, moment: Moment) -> Vec<Mark> {
        self.marks.collect(|mark| mark.is_in_force(moment.lived).then(|| mark.at(moment)))
    }

    /// Forgets marks that are over, on disk as well: by the clock of another start they might count again.
    fn clear_away(&self, lived: Duration) {
        if !self.marks.is_empty() && self.marks.retain(|mark| mark.is_in_force(lived)) > 0 {
            self.changed.store(true, Ordering::Release);
        }
    }

    /// Tells the store what changed. To be called about once a second: what a crash can lose.
    pub fn keep(&self, moment: Moment) {
        let Some(kept) = &self.kept else { return };
        self.clear_away(moment.lived);
        // What the store was told is by the clock as it was.
        let was_set = kept.clock.settle(moment).is_some();
        if !self.changed.swap(false, Ordering::Acquire) && !was_set {
            return;
        }
        let marks: HashMap<_, _> = self.marks_at(moment).into_iter().map(|mark| (mark.key(), mark)).collect();
        let mut told = lock(&kept.marks);
        let new = marks.iter().filter(|(key, mark)| told.get(*key) != Some(mark));
        let new = new.map(|(_, mark)| Fact::set(moment.now, mark.record()));
        let gone = told.iter().filter(|(key, _)| !marks.contains_key(*key));
        let gone = gone.map(|(_, mark)| Fact::removed(moment.now, mark.record()));
        kept.store.put(new.chain(gone).collect::<Vec<_>>());
        *told = marks;
    }
}
