//! The published lists as they stand: [`PublishedLists`]. A request only looks into tables; the thread that fetches hands each
//! answer to [`PublishedLists::take`], which decides whether it is believed. Must not know how a list is fetched.
//!
//! A list is in one of these states:
//! - unknown: it was never fetched, or not in this form. An answer that is believed makes it known.
//! - fresh: its server said within seven days that it is so. It verifies, and it accuses. An answer with less than half
//!   of its networks is not believed.
//! - old: its server has not said so for seven days. It still verifies, and accuses no client. Any list is believed in its place.

use super::keys::{KeyError, PublicKey, read_keys};
use super::means::{KnownMeans, ListIndex, Means, is_directory};
use super::table::NetworkTable;
use crate::crawlers::{ListError, read_list};
use crate::evidence::Hash;
use crate::state::{Fact, NetworkList, StateStore};
use crate::time::Timestamp;
use crate::verdict::Doubt;
use arc_swap::ArcSwapOption;
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a list accuses after its server last said that it is so.
pub const FRESH: Duration = Duration::from_secs(7 * 86_400);

/// A list that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownList {
    /// Its networks.
    pub table: NetworkTable,
    /// Its keys, if it is a key directory.
    pub keys: Vec<PublicKey>,
    /// The validators that its server gave with it; empty where it gave none.
    pub etag: String,
    /// The same.
    pub last_modified: String,
    /// When its server last said that it is so.
    pub checked: Timestamp,
    /// The list as it came.
    pub bytes: Arc<[u8]>,
    /// Its SHA-256.
    pub sha256: Hash,
}

impl KnownList {
    /// How many networks or keys it has.
    pub fn entries(&self) -> usize {
        self.table.networks().len() + self.keys.len()
    }

    /// Whether it may accuse.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.checked) <= FRESH
    }
}

/// An answer of a server, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedList {
    /// The list as it came.
    pub bytes: Vec<u8>,
    /// Its validators; empty where it has none.
    pub etag: String,
    /// The same.
    pub last_modified: String,
}

/// What became of a list that was fetched.
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

/// A list that cannot be had, or is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFailure {
    /// When that was found first, without a success in between.
    pub since: Timestamp,
    /// Why, the last time.
    pub reason: String,
}

/// What the lists of a crawler say about an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListsSay {
    /// It is in this list.
    Inside(ListIndex),
    /// It is in none of them. They are all that the operator publishes, they are fresh, and they cover addresses of its
    /// kind.
    Outside,
    /// Nothing is proven, for this reason.
    Nothing(Doubt),
}

/// All lists of the registry.
pub struct PublishedLists {
    lists: Vec<ArcSwapOption<KnownList>>,
    urls: Vec<String>,
    /// Those that are to be fetched again soon.
    wanted: Vec<AtomicBool>,
    failures: Mutex<BTreeMap<ListIndex, ListFailure>>,
    store: StateStore,
}

impl PublishedLists {
    /// With what the state store remembers.
    pub fn new(means: &KnownMeans, remembered: &[(Timestamp, NetworkList)], store: StateStore) -> PublishedLists {
        let urls: Vec<String> = means.lists().map(|(_, url)| url.to_owned()).collect();
        let known = |url: &String| {
            let (_, list) = remembered.iter().find(|(_, list)| list.url == *url)?;
            let (table, keys) = read(url, &list.bytes).ok()?;
            let (etag, last_modified, bytes) = (list.etag.clone(), list.last_modified.clone(), list.bytes.clone());
            let sha256 = Hash::of(&[&bytes]);
            Some(Arc::new(KnownList { table, keys, etag, last_modified, checked: list.checked, bytes, sha256 }))
        };
        let lists = urls.iter().map(|url| ArcSwapOption::new(known(url))).collect();
        let wanted = urls.iter().map(|_| AtomicBool::new(false)).collect();
        PublishedLists { lists, urls, wanted, failures: Mutex::default(), store }
    }

    /// A list, if it is known.
    pub fn get(&self, list: ListIndex) -> Option<Arc<KnownList>> {
        self.lists.get(usize::from(list.0))?.load_full()
    }

    /// Where a list is published.
    pub fn url(&self, list: ListIndex) -> &str {
        self.urls.get(usize::from(list.0)).map_or("", String::as_str)
    }

    /// All lists by their URLs.
    pub fn all(&self) -> impl Iterator<Item = (ListIndex, &str)> {
        (0..).map(ListIndex).zip(self.urls.iter().map(String::as_str))
    }

    /// Asks for a list or directory to be fetched again soon.
    pub fn want(&self, list: ListIndex) {
        if let Some(wanted) = self.wanted.get(usize::from(list.0)) {
            wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Whether an operator asked for that.
    pub fn is_wanted(&self, list: ListIndex) -> bool {
        self.wanted.get(usize::from(list.0)).is_some_and(|wanted| wanted.load(Ordering::Relaxed))
    }

    /// Notes what came of looking for a list, after it was taken: why it could not be had or is not believed, if so.
    pub fn looked_for(&self, list: ListIndex, now: Timestamp, error: Option<&str>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reason) = error else { return drop(failures.remove(&list)) };
        let since = failures.get(&list).map_or(now, |failure| failure.since);
        failures.insert(list, ListFailure { since, reason: reason.to_owned() });
    }

    /// The lists that could not be had or were not believed the last time.
    pub fn failures(&self) -> BTreeMap<ListIndex, ListFailure> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the lists of a crawler say about an address. Takes no lock.
    pub fn say(&self, means: &Means, address: IpAddr, now: Timestamp) -> ListsSay {
        let (mut all_known, mut all_fresh, mut covered) = (true, true, false);
        for list in &means.lists {
            let known = self.lists.get(usize::from(list.0)).map(ArcSwapOption::load);
            let Some(known) = known.as_ref().and_then(|known| known.as_ref()) else {
                all_known = false;
                continue;
            };
            if known.table.contains(address) {
                return ListsSay::Inside(*list);
            }
            all_fresh &= known.is_fresh(now);
            covered |= known.table.covers_kind_of(address);
        }
        match (all_known, all_fresh, covered) {
            (false, ..) => ListsSay::Nothing(Doubt::ListUnknown),
            (_, false, _) => ListsSay::Nothing(Doubt::ListOld),
            (.., false) if !means.lists.is_empty() => ListsSay::Nothing(Doubt::ListOtherKind),
            _ if means.lists_are_whole => ListsSay::Outside,
            _ => ListsSay::Nothing(Doubt::NoEvidence),
        }
    }

    /// A server gave a list, or a file had it. `checked` is when that was.
    ///
    /// # Errors
    /// The list is not believed.
    pub fn take(&self, list: ListIndex, fetched: FetchedList, checked: Timestamp) -> Result<ListChange, Disbelief> {
        let (table, keys) = read(self.url(list), &fetched.bytes)?;
        let before = self.get(list);
        let had = before.as_ref().map_or(&[][..], |before| before.table.networks());
        let networks = table.networks().len() + keys.len();
        if before.as_ref().is_some_and(|before| before.is_fresh(checked)) && networks * 2 < had.len() {
            return Err(Disbelief::Shrunk { now: networks, before: had.len() });
        }
        let change = ListChange {
            added: missing(table.networks(), had),
            removed: missing(had, table.networks()),
            networks,
            is_new: before.as_ref().is_none_or(|before| before.table != table || before.keys != keys),
        };
        let FetchedList { bytes, etag, last_modified } = fetched;
        let sha256 = Hash::of(&[&bytes]);
        self.put(list, KnownList { table, keys, etag, last_modified, checked, bytes: bytes.into(), sha256 });
        Ok(change)
    }

    /// The server says that the list is as it was.
    pub fn unchanged(&self, list: ListIndex, now: Timestamp) {
        if let Some(known) = self.get(list) {
            self.put(list, KnownList { checked: now, ..(*known).clone() });
        }
    }

    fn put(&self, list: ListIndex, known: KnownList) {
        let Some(place) = self.lists.get(usize::from(list.0)) else { return };
        if let Some(wanted) = self.wanted.get(usize::from(list.0)) {
            wanted.store(false, Ordering::Relaxed);
        }
        let (url, bytes, checked) = (self.url(list).to_owned(), known.bytes.clone(), known.checked);
        let (etag, last_modified) = (known.etag.clone(), known.last_modified.clone());
        self.store.put([Fact::set(checked, NetworkList { url, bytes, etag, last_modified, checked })]);
        place.store(Some(Arc::new(known)));
    }
}

/// The networks of a list, or the keys of a directory.
fn read(url: &str, bytes: &[u8]) -> Result<(NetworkTable, Vec<PublicKey>), Disbelief> {
    if is_directory(url) {
        return Ok((NetworkTable::default(), read_keys(bytes)?));
    }
    Ok((NetworkTable::new(read_list(bytes)?), Vec::new()))
}

/// The networks of one list that are not in the other.
fn missing(of: &[IpNet], from: &[IpNet]) -> Vec<IpNet> {
    let from: BTreeSet<&IpNet> = from.iter().collect();
    of.iter().filter(|network| !from.contains(network)).copied().collect()
}
