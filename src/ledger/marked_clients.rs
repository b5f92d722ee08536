//! [`MarkedClients`]: the clients that requested a trap, a disallowed path that no obedient crawler
//! requests. Such a client is marked, by site, claimed identity and address, until the mark expires
//! or an operator releases it. While crawlgate runs, the monotonic clock measures the duration of a
//! mark, so a change of the system time does not affect it. Only the time for which crawlgate was
//! stopped is taken from the wall clock.

use super::clock_steps::{ClockStepDetector, MAX_CLOCK_DRIFT};
use crate::bounded::{BoundedTable, Expires};
use crate::clock::Moment;
use crate::facts::{AnyFact, ClientMark, Fact, MarkRelease, diff_facts};
use crate::locks::lock;
use crate::state::StateStore;
use crate::time::Timestamp;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::time::Duration;

/// A mark with its end by the monotonic clock.
struct ActiveMark {
    /// The mark, with times by the wall clock as it was then.
    mark: ClientMark,
    /// When it is over, by the monotonic time.
    ends: Duration,
}

impl Expires for ActiveMark {
    type Time = Duration;

    fn expires_at(&self) -> Duration {
        self.ends
    }
}

impl ActiveMark {
    /// A mark that the store or another instance may have made, with the end of its time by the
    /// elapsed time. Only the wall clock says how much of it is left, but that is never more than
    /// its whole time.
    fn new(mark: ClientMark, moment: Moment) -> ActiveMark {
        let left = mark.until.since(moment.now.max(mark.since));
        ActiveMark {
            mark,
            ends: moment.monotonic.saturating_add(left),
        }
    }

    fn is_active(&self, monotonic: Duration) -> bool {
        monotonic < self.ends
    }

    /// The mark with times by the present wall clock. They stay unless the clock was set by more
    /// than `MAX_CLOCK_DRIFT` since. Then both are moved, so that the remaining time is right.
    fn mark_at(&self, moment: Moment) -> ClientMark {
        let ClientMark { since, until, .. } = self.mark;
        let time = until.since(since);
        let until = moment.now.plus(self.ends.saturating_sub(moment.monotonic));
        let now = Timestamp(until.0.saturating_sub_unsigned(time.as_secs()));
        let since = if now.0.abs_diff(since.0) > MAX_CLOCK_DRIFT {
            now
        } else {
            since
        };
        ClientMark {
            since,
            until: since.plus(time),
            ..self.mark.clone()
        }
    }
}

/// The table of marks.
pub struct MarkedClients {
    marks: BoundedTable<ActiveMark>,
    /// Whether the marks may differ from the stored ones.
    has_changed: AtomicBool,
    store: StateStore,
    /// The marks that the store has.
    stored: Mutex<Vec<AnyFact>>,
    clock: ClockStepDetector,
}

impl MarkedClients {
    /// Restores the marks that are still active. [`MarkedClients::flush`] stores later changes, and
    /// removes expired marks from the store.
    pub fn restore(
        marks: &[(Timestamp, ClientMark)],
        store: StateStore,
        moment: Moment,
    ) -> MarkedClients {
        let known = marks.iter().map(|(_, mark)| mark.clone().into()).collect();
        let traps = MarkedClients {
            marks: BoundedTable::default(),
            // Expired marks must be removed from the store, or they might count again after the
            // clock was set back.
            has_changed: (!marks.is_empty()).into(),
            store,
            stored: Mutex::new(known),
            clock: ClockStepDetector::new(moment),
        };
        for (_, mark) in marks {
            let mark = ActiveMark::new(mark.clone(), moment);
            if mark.is_active(moment.monotonic) {
                traps.insert(mark, moment.monotonic);
            }
        }
        traps
    }

    /// Marks an address (for IPv6 the /64) under a name on a site, for `time` from now on. Replaces
    /// an earlier mark.
    pub fn mark_client(
        &self,
        site: &str,
        crawler: &str,
        address: IpAddr,
        moment: Moment,
        time: Duration,
    ) {
        let mark = ClientMark {
            site: site.to_owned(),
            crawler: crawler.to_owned(),
            address: client_network(address),
            since: moment.now,
            until: moment.now.plus(time),
        };
        self.store
            .subscribers
            .notify(|| Fact::set(moment.now, mark.clone()));
        self.insert(ActiveMark::new(mark, moment), moment.monotonic);
    }

    /// Adds the mark of a peer. Does nothing if it expired, or if the known one ends later.
    pub fn add_peer_mark(&self, mark: ClientMark, moment: Moment) {
        let new = ActiveMark::new(mark, moment);
        let known = self
            .marks
            .get_with(self.hash_mark(&new.mark), |known| Some(known.ends));
        if new.is_active(moment.monotonic) && known.is_none_or(|ends| ends < new.ends) {
            self.insert(new, moment.monotonic);
        }
    }

    /// Removes the marks of a network that an operator released at a peer at `at`. Marks that began
    /// later stay.
    pub fn apply_peer_release(&self, network: IpNet, at: Timestamp, moment: Moment) {
        let network = canonical_network(network);
        self.retain(|known| {
            !network.contains(&known.mark.address) || known.mark_at(moment).since > at
        });
    }

    fn hash_mark(&self, mark: &ClientMark) -> u64 {
        self.marks
            .hash((mark.site.as_str(), mark.crawler.as_str(), mark.address))
    }

    fn insert(&self, new: ActiveMark, monotonic: Duration) {
        self.marks.insert(self.hash_mark(&new.mark), new, monotonic);
        self.has_changed.store(true, Release);
    }

    /// Removes the marks for which `keep` returns false. The next flush removes them from the
    /// store.
    fn retain(&self, keep: impl FnMut(&ActiveMark) -> bool) {
        if self.marks.retain(keep) > 0 {
            self.has_changed.store(true, Release);
        }
    }

    /// Whether the address (of IPv6 its /64) is marked under this name on the site. `monotonic` is
    /// the monotonic time of the clock.
    pub fn is_marked(
        &self,
        site: &str,
        crawler: &str,
        address: IpAddr,
        monotonic: Duration,
    ) -> bool {
        let marks = &self.marks;
        if marks.is_empty() {
            return false;
        }
        let address = client_network(address);
        // Two clients may have the same hash.
        let hash = marks.hash((site, crawler, address));
        let found = marks.get_with(hash, |known| {
            let mark = &known.mark;
            let is_it = mark.site == site && mark.crawler == crawler && mark.address == address;
            (is_it && known.is_active(monotonic)).then_some(())
        });
        found.is_some()
    }

    /// The active marks, the latest first.
    pub fn active_marks(&self, moment: Moment) -> Vec<ClientMark> {
        let mut marks = self.unsorted_marks(moment);
        marks.sort_by(|a, b| {
            (b.since, &a.site, &a.crawler, a.address)
                .cmp(&(a.since, &b.site, &b.crawler, b.address))
        });
        marks
    }

    /// How many marks are in force. `monotonic` is the monotonic time of the clock.
    pub fn active_count(&self, monotonic: Duration) -> usize {
        self.marks
            .collect(|mark| mark.is_active(monotonic).then_some(()))
            .len()
    }

    /// Removes the marks of a network, under every name and on every site. Returns those that were
    /// active. A network within a /64 of IPv6 stands for all of it, as marks do.
    pub fn release_network(&self, whose: IpNet, moment: Moment) -> Vec<ClientMark> {
        let whose = canonical_network(whose);
        let release = Fact::set(moment.now, MarkRelease { network: whose });
        self.store.subscribers.notify(|| release.clone());
        self.store.put([release]);
        let mut released = Vec::new();
        self.retain(|known| {
            let kept = !whose.contains(&known.mark.address);
            if !kept && known.is_active(moment.monotonic) {
                released.push(known.mark_at(moment));
            }
            kept
        });
        released
    }

    /// The active marks, by the wall clock of `moment`.
    fn unsorted_marks(&self, moment: Moment) -> Vec<ClientMark> {
        self.marks.collect(|mark| {
            mark.is_active(moment.monotonic)
                .then(|| mark.mark_at(moment))
        })
    }

    /// Removes expired marks, and stores what changed since the last call; if the clock was set,
    /// all marks with their new times. Call this about once a second, because a crash loses later
    /// changes.
    pub fn flush(&self, moment: Moment) {
        if !self.marks.is_empty() {
            // Also from the store, or they might count again after the clock was set back.
            self.retain(|known| known.is_active(moment.monotonic));
        }
        // The stored times are by the clock before it was set.
        let was_set = self.clock.accept_step(moment).is_some();
        if !self.has_changed.swap(false, Acquire) && !was_set {
            return;
        }
        let marks: Vec<AnyFact> = self
            .unsorted_marks(moment)
            .into_iter()
            .map(AnyFact::from)
            .collect();
        let stored = std::mem::replace(&mut *lock(&self.stored), marks.clone());
        self.store.put(diff_facts(stored, marks, moment.now));
    }

    /// The number of marks, with expired ones that are not removed yet.
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

/// The address by which a client is remembered: for IPv6 the /64, because one machine may use any
/// address of it (RFC 8981). An IPv4-mapped address becomes IPv4.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & u128::MAX << 64).into(),
        v4 => v4,
    }
}

/// The network that marks are compared with: an IPv4-mapped network becomes IPv4, and an IPv6
/// network within a /64 becomes that /64.
fn canonical_network(whose: IpNet) -> IpNet {
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
