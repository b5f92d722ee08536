//! [`Traps`]: the marked clients. A trap is a disallowed path that no obedient crawler requests. A
//! client that requests a trap is marked, by site, claimed identity and address, until the mark
//! expires or an operator releases it. The duration of a mark is elapsed time, so a change of the
//! system time neither ends a mark early nor revives one that has ended. (Only the time for which
//! crawlgate did not run is taken from the wall clock.)

use super::clock_steps::{ClockSteps, TOLERANCE};
use crate::bounded::{Bounded, Ends};
use crate::clock::Moment;
use crate::facts::{AnyFact, Fact, Mark, Release, Subscribers, changes};
use crate::locks::lock;
use crate::state::StateStore;
use crate::time::Timestamp;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One mark as it counts.
#[derive(Debug)]
struct Counted {
    /// By the clock as it was then.
    mark: Mark,
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
    /// A mark that the store or another instance may have made, with the end of its time by the
    /// elapsed time. Only the wall clock says how much of it is left, but that is never more than
    /// its whole time.
    fn new(mark: Mark, moment: Moment) -> Counted {
        let left = mark.until.since(moment.now.max(mark.since));
        Counted {
            mark,
            ends: moment.lived.saturating_add(left),
        }
    }

    fn is_in_force(&self, lived: Duration) -> bool {
        lived < self.ends
    }

    /// The mark by the wall clock as it is now. Its times stay unless the clock was set by more
    /// than `TOLERANCE` since; then its end is what is left of it from now on, and its beginning is
    /// its whole time before that.
    fn at(&self, moment: Moment) -> Mark {
        let Mark { since, until, .. } = self.mark;
        let time = until.since(since);
        let until = moment.now.plus(self.ends.saturating_sub(moment.lived));
        let now = Timestamp(until.0.saturating_sub_unsigned(time.as_secs()));
        let since = if now.0.abs_diff(since.0) > TOLERANCE.unsigned_abs() {
            now
        } else {
            since
        };
        Mark {
            since,
            until: since.plus(time),
            ..self.mark.clone()
        }
    }
}

/// All marks.
#[derive(Default)]
pub struct Traps {
    marks: Bounded<Counted>,
    /// Whether the marks are not those in the store any more.
    changed: AtomicBool,
    kept: Option<Kept>,
    subscribers: Subscribers,
}

/// What the store was told.
struct Kept {
    store: StateStore,
    clock: ClockSteps,
    marks: Mutex<Vec<AnyFact>>,
}

impl Traps {
    /// The marks that the store remembers and that are still in force. [`Traps::keep`] stores later
    /// changes, and removes from the store those that are over.
    pub fn remembered(marks: &[(Timestamp, Mark)], store: StateStore, moment: Moment) -> Traps {
        let known = marks.iter().map(|(_, mark)| mark.clone().into()).collect();
        let subscribers = store.subscribers.clone();
        let kept = Kept {
            store,
            clock: ClockSteps::new(moment),
            marks: Mutex::new(known),
        };
        let traps = Traps {
            kept: Some(kept),
            subscribers,
            ..Traps::default()
        };
        for (_, mark) in marks {
            let mark = Counted::new(mark.clone(), moment);
            if mark.is_in_force(moment.lived) {
                traps.insert(mark, moment.lived);
            }
        }
        // What is over has to go from the store: by the clock of another start it might count
        // again.
        traps.changed.store(!marks.is_empty(), Ordering::Release);
        traps
    }

    /// Marks an address (of IPv6 the /64) under a name on a site, for `time` from now on, in place
    /// of an earlier mark.
    pub fn mark(&self, site: &str, crawler: &str, address: IpAddr, moment: Moment, time: Duration) {
        let mark = Mark {
            site: site.to_owned(),
            crawler: crawler.to_owned(),
            address: network(address),
            since: moment.now,
            until: moment.now.plus(time),
        };
        self.subscribers
            .notify(|| Fact::set(moment.now, mark.clone()));
        self.insert(Counted::new(mark, moment), moment.lived);
    }

    /// Marks a client that requested a trap at another instance. Does nothing if that mark is over,
    /// or if one that ends later is here.
    pub fn marked_elsewhere(&self, mark: Mark, moment: Moment) {
        let new = Counted::new(mark, moment);
        let known = self
            .marks
            .look(self.hash(&new.mark), |known| Some(known.ends));
        if new.is_in_force(moment.lived) && known.is_none_or(|ends| ends < new.ends) {
            self.insert(new, moment.lived);
        }
    }

    /// Removes the marks of a network, which an operator released at another instance at the moment
    /// `at`. Marks that began later stay.
    pub fn released_elsewhere(&self, network: IpNet, at: Timestamp, moment: Moment) {
        let network = canonical(network);
        self.retain(|known| !network.contains(&known.mark.address) || known.at(moment).since > at);
    }

    fn hash(&self, mark: &Mark) -> u64 {
        self.marks
            .hash((mark.site.as_str(), mark.crawler.as_str(), mark.address))
    }

    fn insert(&self, new: Counted, lived: Duration) {
        self.marks.insert(self.hash(&new.mark), new, lived);
        self.changed.store(true, Ordering::Release);
    }

    /// Removes the marks that `keep` does not keep. They go from the store with the next
    /// `Traps::keep`.
    fn retain(&self, keep: impl FnMut(&Counted) -> bool) {
        if self.marks.retain(keep) > 0 {
            self.changed.store(true, Ordering::Release);
        }
    }

    /// Whether the address (of IPv6 its /64) is marked under this name on the site. `lived` is the
    /// elapsed time.
    pub fn is_marked(&self, site: &str, crawler: &str, address: IpAddr, lived: Duration) -> bool {
        let marks = &self.marks;
        if marks.is_empty() {
            return false;
        }
        let address = network(address);
        // Two marks with one hash may be of different clients.
        let hash = marks.hash((site, crawler, address));
        let found = marks.look(hash, |known| {
            let mark = &known.mark;
            let is_it = mark.site == site && mark.crawler == crawler && mark.address == address;
            (is_it && known.is_in_force(lived)).then_some(())
        });
        found.is_some()
    }

    /// The marks in force, the latest first.
    pub fn list(&self, moment: Moment) -> Vec<Mark> {
        let mut marks = self.marks_at(moment);
        marks.sort_by(|a, b| {
            (b.since, &a.site, &a.crawler, a.address)
                .cmp(&(a.since, &b.site, &b.crawler, b.address))
        });
        marks
    }

    /// How many marks are in force. `lived` is the elapsed time.
    pub fn in_force(&self, lived: Duration) -> usize {
        self.marks
            .collect(|mark| mark.is_in_force(lived).then_some(()))
            .len()
    }

    /// Removes the marks of a network, under every name and on every site. Returns those that were in
    /// force. A network within a /64 of IPv6 stands for all
    /// of it, as marks do.
    pub fn release(&self, whose: IpNet, moment: Moment) -> Vec<Mark> {
        let whose = canonical(whose);
        let release = Fact::set(moment.now, Release { network: whose });
        self.subscribers.notify(|| release.clone());
        if let Some(kept) = &self.kept {
            kept.store.put([release]);
        }
        let mut released = Vec::new();
        self.retain(|known| {
            let kept = !whose.contains(&known.mark.address);
            if !kept && known.is_in_force(moment.lived) {
                released.push(known.at(moment));
            }
            kept
        });
        released
    }

    /// The marks in force, by the wall clock of `moment`, in no order.
    fn marks_at(&self, moment: Moment) -> Vec<Mark> {
        self.marks
            .collect(|mark| mark.is_in_force(moment.lived).then(|| mark.at(moment)))
    }

    /// Removes marks that are over, and hands the store what changed since the last call; if the
    /// clock was set, all marks with their new times. To be called about once a second: a crash
    /// loses what changed since. Without a store it does nothing.
    pub fn keep(&self, moment: Moment) {
        let Some(kept) = &self.kept else { return };
        if !self.marks.is_empty() {
            // On disk as well: by the clock of another start what is over might count again.
            self.retain(|known| known.is_in_force(moment.lived));
        }
        // What the store was told is by the clock as it was.
        let was_set = kept.clock.settle(moment).is_some();
        if !self.changed.swap(false, Ordering::Acquire) && !was_set {
            return;
        }
        let marks: Vec<AnyFact> = self
            .marks_at(moment)
            .into_iter()
            .map(AnyFact::from)
            .collect();
        let told = std::mem::replace(&mut *lock(&kept.marks), marks.clone());
        kept.store.put(changes(told, marks, moment.now));
    }

    /// How many marks are remembered, with those whose time is over but which are not cleared away
    /// yet.
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

/// The address by which a client is remembered: of IPv6 the /64, because one machine has a whole
/// /64 to choose from (RFC 8981). An IPv4 address that is mapped to IPv6 becomes one of IPv4.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)))
        }
    }
}

/// The network whose marks are meant: a network of IPv4 addresses that are mapped to IPv6 becomes
/// one of IPv4, and one of IPv6 that is within a /64 becomes that /64.
fn canonical(whose: IpNet) -> IpNet {
    let address = whose.addr();
    let length = whose.prefix_len();
    match (address, address.to_canonical()) {
        (IpAddr::V6(_), IpAddr::V4(v4)) if length >= 96 => {
            IpNet::new(v4.into(), length - 96).unwrap_or(whose)
        }
        (IpAddr::V6(v6), _) => IpNet::new(v6.into(), length.min(64)).unwrap_or(whose),
        (IpAddr::V4(_), _) => whose,
    }
}
