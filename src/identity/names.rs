//! [`ReverseDnsTable`]: a bounded table of the host names that reverse DNS returned for client
//! addresses. One answer for an address serves for every crawler that the client may claim to be.
//! Requests only read the table, and queue unknown addresses for the thread that asks DNS.
//!
//! An address is in one of these states:
//! - queried: it waits for DNS. An answer moves it to answered, a failure to failed. After a minute
//!   it may be queried again, in case the query was lost.
//! - answered: DNS gave a definite answer, with names or without. When the answer has expired, the
//!   next query moves the address to queried.
//! - failed: DNS gave no answer. The address may be queried again after a minute.
//!
//! While an address is queried, and after a failure, its last answer is kept.

use super::means::ProofMeans;
use crate::bounded::{BoundedTable, Expires};
use crate::facts::{AddressProof, Fact};
use crate::locks::lock;
use crate::state::StateStore;
use crate::time::Timestamp;
use ReverseDnsResult::*;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two definite answers this far apart refute a crawler. One may fall into the moment in which an
/// operator changes a zone.
const MIN_REFUTATION_GAP: Duration = Duration::from_secs(600);
/// The bounds for the time to live of an answer with a confirmed name.
const CONFIRMED_TTL: (Duration, Duration) =
    (Duration::from_secs(3_600), Duration::from_secs(86_400));
/// The bounds for the time to live of an answer without a confirmed name.
const NAMELESS_TTL: (Duration, Duration) = (MIN_REFUTATION_GAP, Duration::from_secs(6 * 3_600));
/// How long an answer is kept after it has expired. A confirmed name counts meanwhile, while it is
/// queried again. After an answer without a name, the next one is the second.
const ANSWER_MEMORY: Duration = Duration::from_secs(86_400);
/// The least time between two queries about an address.
const RETRY_PAUSE: Duration = Duration::from_secs(60);
/// The most addresses without a name that are stored: clients choose how many there are.
const MAX_STORED: usize = 10_000;

/// The names of an address that are hosts of any crawler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReverseDnsNames {
    /// Those that resolve to the address.
    pub confirmed: Vec<String>,
    /// Those that resolve to no address.
    pub without_forward: Vec<String>,
}

/// A definite answer of DNS.
#[derive(Clone, Debug)]
pub struct DefiniteDnsAnswer {
    pub names: Arc<ReverseDnsNames>,
    /// When DNS first gave this answer, without another one since.
    pub first: Timestamp,
    /// When DNS last gave this answer.
    pub last: Timestamp,
    /// When the answer expires.
    pub until: Timestamp,
}

impl DefiniteDnsAnswer {
    /// An answer that came now. It continues `before` if the names are the same. Its time to live is
    /// clamped; the first answer without a confirmed name lives only for `MIN_REFUTATION_GAP`, because
    /// the second one decides.
    fn new(
        names: ReverseDnsNames,
        ttl: Duration,
        before: Option<&DefiniteDnsAnswer>,
        now: Timestamp,
    ) -> DefiniteDnsAnswer {
        let first = before
            .filter(|before| *before.names == names && before.last <= now)
            .map_or(now, |before| before.first);
        let is_confirmed = !names.confirmed.is_empty();
        let (least, most) = if is_confirmed {
            CONFIRMED_TTL
        } else {
            NAMELESS_TTL
        };
        let ttl = if !is_confirmed && first == now {
            MIN_REFUTATION_GAP
        } else {
            ttl.clamp(least, most)
        };
        DefiniteDnsAnswer {
            names: names.into(),
            first,
            last: now,
            until: now.plus(ttl),
        }
    }

    /// Whether DNS gave this answer twice, at least `MIN_REFUTATION_GAP` from each other.
    fn is_repeated(&self) -> bool {
        self.last.since(self.first) >= MIN_REFUTATION_GAP
    }

    /// The answer is kept a day longer than it counts.
    fn remembered_until(&self) -> Timestamp {
        self.until.plus(ANSWER_MEMORY)
    }
}

/// The state of an address; see the module comment.
#[derive(Clone, Debug)]
struct ReverseDnsEntry {
    address: IpAddr,
    /// The last definite answer.
    answer: Option<DefiniteDnsAnswer>,
    /// The last query without a definite answer: its time, and whether it failed.
    pending_query: Option<(Timestamp, bool)>,
}

impl ReverseDnsEntry {
    /// `Failed` only if no earlier answer counts.
    fn look_up(&self, means: &ProofMeans, now: Timestamp) -> ReverseDnsResult {
        let lookup = match &self.answer {
            Some(answer) => evaluate_answer(answer, means, now),
            None => Unknown,
        };
        match self.pending_query {
            Some((at, true)) if lookup == Unknown => Failed { at },
            _ => lookup,
        }
    }

    /// Whether DNS may be queried: a minute after the last query without an answer, else when the
    /// answer has expired or is from the future.
    fn may_be_queried(&self, now: Timestamp) -> bool {
        match (self.pending_query, &self.answer) {
            // In both directions: the clock may have been set back.
            (Some((at, _)), _) => now.0.abs_diff(at.0) >= RETRY_PAUSE.as_secs(),
            (None, Some(answer)) => now >= answer.until || now < answer.last,
            (None, None) => true,
        }
    }
}

impl Expires for ReverseDnsEntry {
    type Time = Timestamp;

    /// With its answer, and not before the pause after a query.
    fn expires_at(&self) -> Timestamp {
        let pause = self
            .pending_query
            .map_or(Timestamp(i64::MIN), |(at, _)| at.plus(RETRY_PAUSE));
        self.answer
            .as_ref()
            .map_or(pause, |answer| answer.remembered_until().max(pause))
    }
}

/// What DNS says about an address that claims to be a certain crawler.
#[derive(PartialEq, Eq)]
pub enum ReverseDnsResult {
    /// This host name of the crawler belongs to the address, and resolves to it.
    Confirmed {
        /// The name.
        name: String,
        /// The time of the last answer.
        at: Timestamp,
    },
    /// Two definite answers, ten minutes apart, had no such name.
    Refuted {
        /// The time of the first answer.
        first: Timestamp,
        /// The time of the last answer.
        last: Timestamp,
    },
    /// The address has this host name of the crawler, which resolves to no address. The operator
    /// documents no forward record.
    NoForward {
        /// The name.
        name: String,
        /// The time of the last answer.
        at: Timestamp,
    },
    /// One definite answer had no such name.
    RefutedOnce {
        /// When DNS answered.
        at: Timestamp,
    },
    /// The last query failed, and no earlier answer counts.
    Failed {
        /// When the query failed.
        at: Timestamp,
    },
    /// There is no answer yet, or it has expired.
    Unknown,
}

/// Queues an address for the thread that asks DNS. False if the queue is full.
pub type DnsQueue = Box<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// The host names of client addresses.
pub struct ReverseDnsTable {
    table: BoundedTable<ReverseDnsEntry>,
    /// `None` if DNS is not asked.
    queue: Option<DnsQueue>,
    store: StateStore,
    /// The addresses without a name in the store, the oldest first.
    stored: Mutex<VecDeque<IpAddr>>,
}

impl ReverseDnsTable {
    /// Begins with the answers in the state store. Without a `queue` DNS is never asked.
    pub fn new(
        queue: Option<DnsQueue>,
        remembered: &[(Timestamp, AddressProof)],
        store: StateStore,
    ) -> ReverseDnsTable {
        let names = ReverseDnsTable {
            table: BoundedTable::default(),
            queue,
            store,
            stored: Mutex::default(),
        };
        for (_, proof) in remembered {
            let address = proof.address;
            let listed = proof.names.split_ascii_whitespace().map(str::to_owned);
            let found = ReverseDnsNames {
                confirmed: listed.collect(),
                without_forward: Vec::new(),
            };
            let answer = DefiniteDnsAnswer {
                names: Arc::new(found),
                first: proof.first,
                last: proof.last,
                until: proof.until,
            };
            if answer.names.confirmed.is_empty() {
                names.track_stored(address, proof.last);
            }
            names.put_entry(address, Some(answer), None, proof.last);
        }
        names
    }

    /// Whether DNS is asked at all.
    pub fn is_enabled(&self) -> bool {
        self.queue.is_some()
    }

    /// How many addresses are answered, queried or failed.
    pub fn address_count(&self) -> usize {
        self.table.len()
    }

    /// What DNS says about an address that claims to be a crawler with these means.
    pub fn look_up(&self, means: &ProofMeans, address: IpAddr, now: Timestamp) -> ReverseDnsResult {
        self.table
            .get_with(self.table.hash(address), |entry| {
                (entry.address == address).then(|| entry.look_up(means, now))
            })
            .unwrap_or(Unknown)
    }

    /// The entry of exactly this address: another one may have the same hash.
    fn entry(&self, address: IpAddr) -> Option<ReverseDnsEntry> {
        self.table.get_with(self.table.hash(address), |entry| {
            (entry.address == address).then(|| entry.clone())
        })
    }

    /// Replaces the entry of an address.
    fn put_entry(
        &self,
        address: IpAddr,
        answer: Option<DefiniteDnsAnswer>,
        pending_query: Option<(Timestamp, bool)>,
        now: Timestamp,
    ) {
        let entry = ReverseDnsEntry {
            address,
            answer,
            pending_query,
        };
        self.table.insert(self.table.hash(address), entry, now);
    }

    /// Queues an address for DNS if it may be queried. Returns true if it is dropped because the
    /// queue is full; the table then stays as it was.
    pub fn enqueue(&self, address: IpAddr, now: Timestamp) -> bool {
        let Some(queue) = &self.queue else {
            return false;
        };
        let before = self.entry(address);
        if before
            .as_ref()
            .is_some_and(|known| !known.may_be_queried(now))
        {
            return false;
        }
        let answer = before.as_ref().and_then(|known| known.answer.clone());
        // Into the table first: the answer may come before this thread goes on.
        self.put_entry(address, answer, Some((now, false)), now);
        let has_room = queue(address);
        if !has_room {
            match before {
                Some(known) => self.put_entry(address, known.answer, known.pending_query, now),
                None => self.table.remove(self.table.hash(address)),
            }
        }
        !has_room
    }

    /// Records a definite answer, in the table and in the state store.
    pub fn record_answer(
        &self,
        address: IpAddr,
        names: ReverseDnsNames,
        ttl: Duration,
        now: Timestamp,
    ) {
        let before = self.entry(address).and_then(|known| known.answer);
        let answer = DefiniteDnsAnswer::new(names, ttl, before.as_ref(), now);
        self.store_answer(address, &answer, now);
        self.put_entry(address, Some(answer), None, now);
    }

    /// Records a failed query. The last definite answer stays.
    pub fn record_failure(&self, address: IpAddr, now: Timestamp) {
        let answer = self.entry(address).and_then(|known| known.answer);
        self.put_entry(address, answer, Some((now, true)), now);
    }

    /// Writes an answer into the state store. Answers with only a name without a forward record are
    /// not stored: DNS is asked again after a restart.
    fn store_answer(&self, address: IpAddr, answer: &DefiniteDnsAnswer, now: Timestamp) {
        let proof = AddressProof {
            address,
            names: answer.names.confirmed.join(" "),
            first: answer.first,
            last: answer.last,
            until: answer.until,
        };
        if !answer.names.without_forward.is_empty() && answer.names.confirmed.is_empty() {
            self.store.put([Fact::removed(now, proof)]);
            return;
        }
        self.store.put([Fact::set(now, proof)]);
        if answer.names.confirmed.is_empty() {
            self.track_stored(address, now);
        }
    }

    /// Remembers that an address without a name is in the state store. Beyond `MAX_STORED` of them the
    /// oldest is removed from the store.
    fn track_stored(&self, address: IpAddr, now: Timestamp) {
        let mut stored = lock(&self.stored);
        stored.retain(|other| *other != address);
        stored.push_back(address);
        if stored.len() > MAX_STORED
            && let Some(oldest) = stored.pop_front()
        {
            let removed = AddressProof {
                address: oldest,
                names: String::new(),
                first: now,
                last: now,
                until: now,
            };
            self.store.put([Fact::removed(now, removed)]);
        }
    }
}

/// What a definite answer says about a crawler with these means. `Unknown` if it has expired; a
/// confirmed name counts for a day longer.
fn evaluate_answer(
    answer: &DefiniteDnsAnswer,
    means: &ProofMeans,
    now: Timestamp,
) -> ReverseDnsResult {
    if now > answer.remembered_until() {
        return Unknown;
    }
    let mut confirmed = answer.names.confirmed.iter();
    if let Some(name) = confirmed.find(|name| means.has_host(name)) {
        return Confirmed {
            name: name.clone(),
            at: answer.last,
        };
    }
    if now > answer.until {
        return Unknown;
    }
    let mut without_forward = answer.names.without_forward.iter();
    if means.forward_undocumented
        && let Some(name) = without_forward.find(|name| means.has_host(name))
    {
        return NoForward {
            name: name.clone(),
            at: answer.last,
        };
    }
    if answer.is_repeated() {
        Refuted {
            first: answer.first,
            last: answer.last,
        }
    } else {
        RefutedOnce { at: answer.last }
    }
}
