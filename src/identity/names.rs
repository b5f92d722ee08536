//! [`AddressNames`]: a bounded table of what DNS said of the addresses of clients that claim to be
//! crawlers. One answer serves every crawler, because it says which names an address has, and not
//! whose it is. A request only looks here, and puts an address that is not known into the queue of
//! the thread that asks DNS.
//!
//! An address is in one of these states:
//! - asked: it waits for DNS. An answer moves it to answered, a failure to failed. After a minute
//!   it may be asked again, in case its question was lost.
//! - answered: DNS gave a definite answer, with names or without. The next question, after the
//!   answer has expired, moves it to asked.
//! - failed: DNS gave no answer. It may be asked again after a minute.
//!
//! An address that is asked or failed keeps its last answer.

use super::means::Means;
use crate::bounded::{Bounded, Ends};
use crate::facts::{AddressProof, Fact};
use crate::locks::lock;
use crate::state::StateStore;
use crate::time::Timestamp;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two definite answers this far apart refute a crawler. One alone may be the moment in which an
/// operator changes a zone.
const APART: Duration = Duration::from_secs(600);
/// The least and the most time for which an answer with a name counts. Within them, its time to
/// live decides.
const CONFIRMED: (Duration, Duration) = (Duration::from_secs(3_600), Duration::from_secs(86_400));
/// The least and the most time for which an answer without a name counts. The first such answer
/// counts for the least, because a second one decides.
const WITHOUT: (Duration, Duration) = (APART, Duration::from_secs(6 * 3_600));
/// How long a name still counts while it is asked again.
const GRACE: Duration = Duration::from_secs(86_400);
/// How long an address without a name is remembered after its answer, so that the next answer is
/// the second one.
const REMEMBERED: Duration = Duration::from_secs(86_400);
/// How long a question may be on its way, and how long a failure keeps the next one from being
/// asked.
const PAUSE: Duration = Duration::from_secs(60);
/// The most addresses without a name that are stored: clients choose how many there are.
const MOST_STORED: usize = 10_000;

/// The names of an address that are hosts of any crawler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundNames {
    /// Those that lead back to the address.
    pub confirmed: Vec<String>,
    /// Those that have no address at all.
    pub without_forward: Vec<String>,
}

/// A definite answer of DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefiniteAnswer {
    /// The names.
    pub names: Arc<FoundNames>,
    /// When DNS said this for the first time, without another answer since.
    pub first: Timestamp,
    /// When DNS said this for the last time.
    pub last: Timestamp,
    /// Until when the answer counts.
    pub until: Timestamp,
}

impl DefiniteAnswer {
    /// An answer that came now, after the answer `before`. It continues `before` if that had the
    /// same names. It counts for its time to live within bounds; the first answer without a
    /// confirmed name only for `APART`, because the second one decides.
    fn new(
        names: FoundNames,
        ttl: Duration,
        before: Option<&DefiniteAnswer>,
        now: Timestamp,
    ) -> DefiniteAnswer {
        let first = before
            .filter(|before| *before.names == names && before.last <= now)
            .map_or(now, |before| before.first);
        let is_confirmed = !names.confirmed.is_empty();
        let (least, most) = if is_confirmed { CONFIRMED } else { WITHOUT };
        // What was said once may be wrong: it is asked again as soon as that counts as a second
        // time.
        let ttl = if !is_confirmed && first == now {
            APART
        } else {
            ttl.clamp(least, most)
        };
        DefiniteAnswer {
            names: names.into(),
            first,
            last: now,
            until: now.plus(ttl),
        }
    }

    /// Whether DNS gave this answer twice, at least `APART` from each other.
    fn is_repeated(&self) -> bool {
        self.last.since(self.first) >= APART
    }

    /// Until when the answer is remembered: a day longer than it counts.
    fn forgotten(&self) -> Timestamp {
        self.until.plus(if self.names.confirmed.is_empty() {
            REMEMBERED
        } else {
            GRACE
        })
    }
}

/// What is known of an address; see the top of this file for its states.
#[derive(Clone, Debug)]
struct Entry {
    address: IpAddr,
    /// The last definite answer.
    answer: Option<DefiniteAnswer>,
    /// The last question without a definite answer: when it was asked or failed, and whether it
    /// failed.
    open: Option<(Timestamp, bool)>,
}

impl Entry {
    /// What DNS says about the address and a crawler with these means. `Failed` if the last
    /// question failed and no earlier answer still counts.
    fn say(&self, means: &Means, now: Timestamp) -> NamesSay {
        let said = match &self.answer {
            Some(answer) => judged(answer, means, now),
            None => NamesSay::Nothing,
        };
        match self.open {
            Some((at, true)) if said == NamesSay::Nothing => NamesSay::Failed { at },
            _ => said,
        }
    }

    /// Whether DNS may be asked about the address: a minute after the last question or failure, and
    /// otherwise when the answer has expired or comes from a clock that was ahead.
    fn may_be_asked(&self, now: Timestamp) -> bool {
        match (self.open, &self.answer) {
            // Both ways: a clock that was set back is not to be waited for.
            (Some((at, _)), _) => now.0.abs_diff(at.0) >= PAUSE.as_secs(),
            (None, Some(answer)) => now >= answer.until || now < answer.last,
            (None, None) => true,
        }
    }
}

impl Ends for Entry {
    type Moment = Timestamp;

    /// When the entry may be forgotten: with its answer, and not before the pause after a question.
    fn ends(&self) -> Timestamp {
        let pause = self
            .open
            .map_or(Timestamp(i64::MIN), |(at, _)| at.plus(PAUSE));
        self.answer
            .as_ref()
            .map_or(pause, |answer| answer.forgotten().max(pause))
    }
}

/// What DNS says about an address and a crawler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamesSay {
    /// The address has this name, which is one of the crawler's hosts, and the name leads back to
    /// the address.
    Confirmed {
        /// The name.
        name: String,
        /// When DNS said it last.
        at: Timestamp,
    },
    /// Two definite answers, far enough apart, gave no such name.
    Refuted {
        /// When DNS said it first.
        first: Timestamp,
        /// When DNS said it last.
        last: Timestamp,
    },
    /// The address has this name, which is one of the crawler's hosts and has no address. The
    /// crawler's operator documents none.
    NoForward {
        /// The name.
        name: String,
        /// When DNS said it last.
        at: Timestamp,
    },
    /// One definite answer gave no such name.
    Doubted {
        /// When DNS gave it.
        at: Timestamp,
    },
    /// The last question was not answered, and no earlier answer still counts.
    Failed {
        /// When it was asked.
        at: Timestamp,
    },
    /// There is no answer yet, or none that still counts.
    Nothing,
}

/// Puts an address into the queue of the thread that asks DNS. Says whether there was room.
pub type Queue = Box<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// The table.
pub struct AddressNames {
    table: Bounded<Entry>,
    /// `None` where DNS is not asked.
    queue: Option<Queue>,
    store: StateStore,
    /// The addresses without a name in the store, the oldest first.
    stored: Mutex<VecDeque<IpAddr>>,
}

impl AddressNames {
    /// Begins with the answers that the state store remembers. `queue` takes addresses for the
    /// thread that asks DNS; `None`: DNS is never asked.
    pub fn new(
        queue: Option<Queue>,
        remembered: &[(Timestamp, AddressProof)],
        store: StateStore,
    ) -> AddressNames {
        let names = AddressNames {
            table: Bounded::default(),
            queue,
            store,
            stored: Mutex::default(),
        };
        for (_, proof) in remembered {
            let address = proof.address;
            let listed = proof
                .names
                .split(' ')
                .filter(|name| !name.is_empty())
                .map(str::to_owned);
            let found = FoundNames {
                confirmed: listed.collect(),
                without_forward: Vec::new(),
            };
            let answer = DefiniteAnswer {
                names: Arc::new(found),
                first: proof.first,
                last: proof.last,
                until: proof.until,
            };
            if answer.names.confirmed.is_empty() {
                names.note_stored(address, proof.last);
            }
            names.put(address, Some(answer), None, proof.last);
        }
        names
    }

    /// Whether DNS is asked.
    pub fn asks(&self) -> bool {
        self.queue.is_some()
    }

    /// How many addresses are known or asked about.
    pub fn count(&self) -> usize {
        self.table.len()
    }

    /// What DNS says of an address, as one of a crawler with these means. Changes nothing.
    pub fn say(&self, means: &Means, address: IpAddr, now: Timestamp) -> NamesSay {
        self.table
            .look(self.table.hash(address), |entry| {
                (entry.address == address).then(|| entry.say(means, now))
            })
            .unwrap_or(NamesSay::Nothing)
    }

    /// What is known of an address. Another address with the same hash does not count.
    fn known(&self, address: IpAddr) -> Option<Entry> {
        self.table.look(self.table.hash(address), |entry| {
            (entry.address == address).then(|| entry.clone())
        })
    }

    /// Puts an entry into the table, in place of an earlier one.
    fn put(
        &self,
        address: IpAddr,
        answer: Option<DefiniteAnswer>,
        open: Option<(Timestamp, bool)>,
        now: Timestamp,
    ) {
        let entry = Entry {
            address,
            answer,
            open,
        };
        self.table.insert(self.table.hash(address), entry, now);
    }

    /// Queues an address for DNS if its answer is missing or has expired, and it was not asked
    /// about within a minute. Returns true only if it was left out because too many wait; then the
    /// table stays as it was.
    pub fn ask(&self, address: IpAddr, now: Timestamp) -> bool {
        let Some(queue) = &self.queue else {
            return false;
        };
        let before = self.known(address);
        if before
            .as_ref()
            .is_some_and(|known| !known.may_be_asked(now))
        {
            return false;
        }
        let answer = before.as_ref().and_then(|known| known.answer.clone());
        // Into the table first: the answer may come before this thread goes on.
        self.put(address, answer, Some((now, false)), now);
        let has_room = queue(address);
        if !has_room {
            match before {
                Some(known) => self.put(address, known.answer, known.open, now),
                None => self.table.remove(self.table.hash(address)),
            }
        }
        !has_room
    }

    /// Records a definite answer of DNS, in the table and in the state store.
    pub fn answered(&self, address: IpAddr, names: FoundNames, ttl: Duration, now: Timestamp) {
        let before = self.known(address).and_then(|known| known.answer);
        let answer = DefiniteAnswer::new(names, ttl, before.as_ref(), now);
        self.keep(address, &answer, now);
        self.put(address, Some(answer), None, now);
    }

    /// Records that DNS gave no answer. The last definite answer stays.
    pub fn failed(&self, address: IpAddr, now: Timestamp) {
        let answer = self.known(address).and_then(|known| known.answer);
        self.put(address, answer, Some((now, true)), now);
    }

    /// Stores an answer. Of addresses without a name, the store keeps the last ones. An answer that
    /// has only a name without an address is removed from the store, which has no place for it: DNS
    /// is asked again after a restart.
    fn keep(&self, address: IpAddr, answer: &DefiniteAnswer, now: Timestamp) {
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
            self.note_stored(address, now);
        }
    }

    /// Records that an address without a name is in the state store. If these are more than
    /// `MOST_STORED`, the one that was stored first is removed from the store.
    fn note_stored(&self, address: IpAddr, now: Timestamp) {
        let mut stored = lock(&self.stored);
        stored.retain(|other| *other != address);
        stored.push_back(address);
        if stored.len() > MOST_STORED
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

/// What a definite answer says about a crawler with these means. A confirmed name counts for a day
/// longer than the answer, while it is asked again. `Nothing` if the answer counts no more.
fn judged(answer: &DefiniteAnswer, means: &Means, now: Timestamp) -> NamesSay {
    if now > answer.forgotten() {
        return NamesSay::Nothing;
    }
    let mut confirmed = answer.names.confirmed.iter();
    if let Some(name) = confirmed.find(|name| means.has_host(name)) {
        return NamesSay::Confirmed {
            name: name.clone(),
            at: answer.last,
        };
    }
    if now > answer.until {
        return NamesSay::Nothing;
    }
    let mut without_forward = answer.names.without_forward.iter();
    if means.forward_undocumented
        && let Some(name) = without_forward.find(|name| means.has_host(name))
    {
        return NamesSay::NoForward {
            name: name.clone(),
            at: answer.last,
        };
    }
    if answer.is_repeated() {
        NamesSay::Refuted {
            first: answer.first,
            last: answer.last,
        }
    } else {
        NamesSay::Doubted { at: answer.last }
    }
}
