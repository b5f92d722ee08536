//! [`PublishedLists`]: the published lists of networks and the key directories of crawlers. A
//! request only looks into tables. The thread that fetches hands each answer to
//! [`PublishedLists::take`], which decides whether it is believed.
//!
//! A list is in one of these states:
//! - unknown: it was never fetched, or crawlgate could not read it. An answer that is believed
//!   makes it known.
//! - fresh: its server confirmed it within seven days. It verifies crawlers and proves impostors.
//!   An answer with less than half of its networks is not believed.
//! - old: its server has not confirmed it for seven days. It still verifies crawlers, and proves no
//!   impostor. Any list is believed in its place.

use super::keys::{KeyError, PublicKey, read_keys};
use super::means::{KnownMeans, ListIndex, Means, is_directory};
use super::table::NetworkTable;
use crate::crawlers::{ListError, read_list};
use crate::facts::{Fact, NetworkList};
use crate::hash::Hash;
use crate::locks::lock;
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::Doubt;
use arc_swap::ArcSwapOption;
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a list accuses after its server last confirmed it.
pub const FRESH: Duration = Duration::from_secs(7 * 86_400);

/// A list that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownList {
    /// Its networks.
    pub table: NetworkTable,
    /// Its keys, if it is a key directory.
    pub keys: Vec<PublicKey>,
    /// The list as it came, the validators that its server gave with it, and when its server last
    /// confirmed it.
    pub copy: NetworkList,
    /// The SHA-256 of its octets.
    pub sha256: Hash,
}

impl KnownList {
    /// Reads the networks of a list, or the keys of a directory: its URL says which of them it is.
    fn read(copy: NetworkList) -> Result<KnownList, Disbelief> {
        let (table, keys) = if is_directory(&copy.url) {
            (NetworkTable::default(), read_keys(&copy.bytes)?)
        } else {
            (NetworkTable::new(read_list(&copy.bytes)?), Vec::new())
        };
        Ok(KnownList {
            table,
            keys,
            sha256: Hash::of(&[&copy.bytes]),
            copy,
        })
    }

    /// How many networks or keys it has.
    pub fn entries(&self) -> usize {
        self.table.networks().len() + self.keys.len()
    }

    /// Whether the list may accuse: its server confirmed it within seven days.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.copy.checked) <= FRESH
    }
}

/// An answer of a server, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedList {
    /// The list as it came.
    pub bytes: Vec<u8>,
    /// Its `ETag`; empty where it has none.
    pub etag: String,
    /// Its `Last-Modified`, or the time of change of a file; empty where it has none.
    pub last_modified: String,
}

/// The difference between a fetched list and the former one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    /// Networks that are new in it.
    pub added: Vec<IpNet>,
    /// Networks that it had before.
    pub removed: Vec<IpNet>,
    /// How many networks or keys it has.
    pub networks: usize,
    /// Whether it differs from the former one.
    pub is_new: bool,
}

/// Why a list that was fetched is not believed. The former one stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disbelief {
    /// It is no list.
    #[error(transparent)]
    NotAList(#[from] ListError),
    /// It is no key directory.
    #[error(transparent)]
    NotADirectory(#[from] KeyError),
    /// It lost more than half of its networks at once.
    #[error(
        "it has {now} networks and had {before}; crawlgate keeps the former list for seven days after its last check"
    )]
    Shrunk {
        /// How many it has.
        now: usize,
        /// How many the former one has.
        before: usize,
    },
}

/// The failure of a list that cannot be fetched, or is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFailure {
    /// When the first failure since the last success was found.
    pub since: Timestamp,
    /// Why, the last time.
    pub reason: String,
}

/// What the lists of a crawler say about an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListsSay {
    /// The address is in this list.
    Inside(ListIndex),
    /// The address is in no list. The lists are all that the operator publishes, they are fresh,
    /// and they cover addresses of its kind.
    Outside,
    /// Nothing is proven, for this reason.
    Nothing(Doubt),
}

/// One list.
struct ListPlace {
    url: String,
    known: ArcSwapOption<KnownList>,
    /// Whether it is to be fetched again soon.
    is_wanted: AtomicBool,
}

/// All lists of the registry.
pub struct PublishedLists {
    lists: Vec<ListPlace>,
    failures: Mutex<BTreeMap<ListIndex, ListFailure>>,
    store: StateStore,
}

impl PublishedLists {
    /// Begins with the lists that the state store remembers. One that cannot be read counts as
    /// unknown.
    pub fn new(
        means: &KnownMeans,
        remembered: &[(Timestamp, NetworkList)],
        store: StateStore,
    ) -> PublishedLists {
        let mut lists = Vec::new();
        for (_, url) in means.lists() {
            let known = remembered.iter().find(|(_, list)| list.url == url);
            let known = known.and_then(|(_, list)| KnownList::read(list.clone()).ok());
            lists.push(ListPlace {
                url: url.to_owned(),
                known: ArcSwapOption::new(known.map(Arc::new)),
                is_wanted: AtomicBool::new(false),
            });
        }
        PublishedLists {
            lists,
            failures: Mutex::default(),
            store,
        }
    }

    /// A list, if it is known.
    pub fn get(&self, list: ListIndex) -> Option<Arc<KnownList>> {
        self.place(list).known.load_full()
    }

    /// Where a list is published.
    pub fn url(&self, list: ListIndex) -> &str {
        &self.place(list).url
    }

    fn place(&self, list: ListIndex) -> &ListPlace {
        &self.lists[usize::from(list.0)]
    }

    /// All lists by their URLs.
    pub fn all(&self) -> impl Iterator<Item = (ListIndex, &str)> {
        (0..)
            .map(ListIndex)
            .zip(self.lists.iter().map(|place| place.url.as_str()))
    }

    /// Asks for a list or directory to be fetched again soon.
    pub fn want(&self, list: ListIndex) {
        self.place(list).is_wanted.store(true, Ordering::Relaxed);
    }

    /// Whether a request asked for the list to be fetched (`PublishedLists::want`) since its server
    /// last gave or confirmed it.
    pub fn is_wanted(&self, list: ListIndex) -> bool {
        self.place(list).is_wanted.load(Ordering::Relaxed)
    }

    /// Records the result of an update. `error` says why the list could not be fetched or is not
    /// believed; `None` ends the failure. A failure that goes on keeps its first moment.
    pub fn looked_for(&self, list: ListIndex, now: Timestamp, error: Option<&str>) {
        let mut failures = lock(&self.failures);
        let Some(reason) = error else {
            return drop(failures.remove(&list));
        };
        let since = failures.get(&list).map_or(now, |failure| failure.since);
        failures.insert(
            list,
            ListFailure {
                since,
                reason: reason.to_owned(),
            },
        );
    }

    /// The lists whose last update failed.
    pub fn failures(&self) -> BTreeMap<ListIndex, ListFailure> {
        lock(&self.failures).clone()
    }

    /// What the lists of a crawler say about an address. Any known list that has it verifies it,
    /// however old. The address is outside only if all lists are known and fresh, one covers its
    /// kind (IPv4 or IPv6), and they are all that the operator publishes. Takes no lock.
    pub fn say(&self, means: &Means, address: IpAddr, now: Timestamp) -> ListsSay {
        let mut all_known = true;
        let mut all_fresh = true;
        let mut covered = false;
        for list in &means.lists {
            let known = self.place(*list).known.load();
            let Some(known) = &*known else {
                all_known = false;
                continue;
            };
            if known.table.contains(address) {
                return ListsSay::Inside(*list);
            }
            all_fresh &= known.is_fresh(now);
            covered |= known.table.covers_kind_of(address);
        }
        if !all_known {
            ListsSay::Nothing(Doubt::ListUnknown)
        } else if !all_fresh {
            ListsSay::Nothing(Doubt::ListOld)
        } else if !covered && !means.lists.is_empty() {
            ListsSay::Nothing(Doubt::ListOtherKind)
        } else if means.lists_are_whole {
            ListsSay::Outside
        } else {
            ListsSay::Nothing(Doubt::NoEvidence)
        }
    }

    /// Takes a list that a server gave or a file had at `checked`, in place of the former one,
    /// stores it, and returns the difference.
    ///
    /// # Errors
    /// The list is not believed, and the former one stays: it cannot be read, or has less than half
    /// of the networks of a former list that is fresh.
    pub fn take(
        &self,
        list: ListIndex,
        fetched: FetchedList,
        checked: Timestamp,
    ) -> Result<ListChange, Disbelief> {
        let new = KnownList::read(NetworkList {
            url: self.url(list).to_owned(),
            bytes: fetched.bytes.into(),
            etag: fetched.etag,
            last_modified: fetched.last_modified,
            checked,
        })?;
        let before = self.get(list);
        let had = before
            .as_ref()
            .map_or(&[][..], |before| before.table.networks());
        let networks = new.entries();
        if before
            .as_ref()
            .is_some_and(|before| before.is_fresh(checked))
            && networks * 2 < had.len()
        {
            return Err(Disbelief::Shrunk {
                now: networks,
                before: had.len(),
            });
        }
        let change = ListChange {
            added: missing(new.table.networks(), had),
            removed: missing(had, new.table.networks()),
            networks,
            is_new: before
                .as_ref()
                .is_none_or(|before| before.table != new.table || before.keys != new.keys),
        };
        self.put(list, new);
        Ok(change)
    }

    /// Records that the server confirmed the list at `now`. Does nothing if the list is not known.
    pub fn unchanged(&self, list: ListIndex, now: Timestamp) {
        if let Some(known) = self.get(list) {
            let mut known = KnownList::clone(&known);
            known.copy.checked = now;
            self.put(list, known);
        }
    }

    /// Replaces a list, in memory and in the state store. It is no longer wanted.
    fn put(&self, list: ListIndex, known: KnownList) {
        let place = self.place(list);
        place.is_wanted.store(false, Ordering::Relaxed);
        self.store
            .put([Fact::set(known.copy.checked, known.copy.clone())]);
        place.known.store(Some(Arc::new(known)));
    }
}

/// The networks of `of` that are not in `from`.
fn missing(of: &[IpNet], from: &[IpNet]) -> Vec<IpNet> {
    let from: BTreeSet<&IpNet> = from.iter().collect();
    of.iter()
        .filter(|network| !from.contains(network))
        .copied()
        .collect()
}
