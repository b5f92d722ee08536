//! [`PublishedLists`]: the published network lists and key directories of crawlers. Requests only
//! look into tables. A background thread fetches lists, and hands them to
//! [`PublishedLists::replace_list`], which rejects implausible ones.
//!
//! A list is in one of these states:
//! - unknown: it was never fetched, or could not be read. It becomes fresh when it is fetched and
//!   accepted.
//! - fresh: its server confirmed it within seven days. It verifies crawlers and proves impostors.
//!   A new list with less than half as many networks is rejected.
//! - old: its server has not confirmed it for seven days. It still verifies crawlers, but proves no
//!   impostors. Any new list is accepted.

use super::keys::{KeyDirectoryError, PublicKey, read_keys};
use super::means::{ListId, ProofMeans, RegistryProofMeans, is_directory};
use super::table::NetworkTable;
use crate::crawlers::{NetworkListError, parse_network_list};
use crate::facts::{Fact, NetworkList};
use crate::hash::Hash;
use crate::locks::lock;
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::IdentityDoubt;
use ListUpdateResult::*;
use arc_swap::ArcSwapOption;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a list proves impostors after its server last confirmed it.
pub const MAX_LIST_AGE: Duration = Duration::from_secs(7 * 86_400);

/// A network list or key directory that was fetched and parsed.
#[derive(Clone)]
pub struct ParsedList {
    /// The networks of a list.
    pub table: NetworkTable,
    /// The keys of a key directory.
    pub keys: Vec<PublicKey>,
    /// The bytes, with their validators and the time when the server last confirmed them.
    pub copy: NetworkList,
    /// The SHA-256 of the bytes.
    pub sha256: Hash,
}

impl ParsedList {
    /// Parses a network list or a key directory, depending on the URL.
    fn parse(copy: NetworkList) -> Result<ParsedList, ListRejection> {
        let (table, keys) = if is_directory(&copy.url) {
            (NetworkTable::default(), read_keys(&copy.bytes)?)
        } else {
            (
                NetworkTable::new(parse_network_list(&copy.bytes)?),
                Vec::new(),
            )
        };
        Ok(ParsedList {
            table,
            keys,
            sha256: Hash::digest(&[&copy.bytes]),
            copy,
        })
    }

    /// How many networks or keys it has.
    pub fn entry_count(&self) -> usize {
        self.table.networks().len() + self.keys.len()
    }

    /// Whether the server confirmed the list within seven days.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.copy.checked) <= MAX_LIST_AGE
    }
}

/// A list as fetched from a server or read from a file.
pub struct FetchedList {
    pub bytes: Vec<u8>,
    /// The `ETag`; empty without one.
    pub etag: String,
    /// The `Last-Modified`, or the modification time of a file; empty without one.
    pub last_modified: String,
    /// When its server last confirmed it.
    pub checked: Timestamp,
}

/// The report about the update of one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListUpdateReport {
    /// The URL of the list.
    pub url: String,
    /// The result.
    pub result: ListUpdateResult,
    /// How many networks or keys the list has now.
    pub networks: usize,
    /// New networks.
    pub added: Vec<IpNet>,
    /// Removed networks.
    pub removed: Vec<IpNet>,
    /// Why the update failed. The former list stays in use.
    pub error: Option<String>,
}

/// The result of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListUpdateResult {
    /// The list differs from the former one.
    Changed,
    /// The list is the same.
    #[default]
    Unchanged,
    /// The list could not be fetched.
    Unreachable,
    /// The list was fetched and rejected.
    Refused,
    /// The directory or mirror has no copy, and there was none before.
    Absent,
}

impl ListUpdateReport {
    /// Makes it the report of a failure.
    pub(super) fn fail(&mut self, result: ListUpdateResult, error: String) {
        self.result = result;
        self.error = Some(error);
    }
}

impl ListUpdateResult {
    /// Whether it needs attention.
    pub fn is_failure(self) -> bool {
        matches!(self, Unreachable | Refused)
    }
}

/// Why a fetched list is rejected. The former one stays.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListRejection {
    /// It is not a network list.
    #[error(transparent)]
    NotAList(#[from] NetworkListError),
    /// It is not a key directory.
    #[error(transparent)]
    NotADirectory(#[from] KeyDirectoryError),
    /// It lost more than half of its networks at once.
    #[error(
        "it has {now} networks instead of {before}; crawlgate keeps the old list for seven days after its last check"
    )]
    Shrunk {
        /// How many it has.
        now: usize,
        /// How many the former one has.
        before: usize,
    },
}

/// Why a list could not be updated.
#[derive(Clone)]
pub struct ListFailure {
    /// The first failure since the last success.
    pub since: Timestamp,
    /// The reason of the last failure.
    pub reason: String,
}

/// What the lists of a crawler say about an address.
#[derive(Clone, PartialEq, Eq)]
pub enum ListMembership {
    /// The address is in this list.
    Inside,
    /// The address is in no list. The lists are all that the operator publishes, they are fresh,
    /// and they cover addresses of its kind.
    Outside,
    /// The lists decide nothing, for this reason.
    Undecided(IdentityDoubt),
}

/// One list, which may be unknown.
struct ListSlot {
    url: String,
    known: ArcSwapOption<ParsedList>,
    /// Whether a request has a key that the known list lacks.
    is_fetch_requested: AtomicBool,
}

/// All lists of the registry.
pub struct PublishedLists {
    lists: Vec<ListSlot>,
    failures: Mutex<BTreeMap<ListId, ListFailure>>,
    store: StateStore,
}

impl PublishedLists {
    /// Begins with the lists in the state store.
    pub fn new(
        means: &RegistryProofMeans,
        remembered: &[(Timestamp, NetworkList)],
        store: StateStore,
    ) -> PublishedLists {
        let mut lists = Vec::new();
        for url in &means.urls {
            let known = remembered.iter().find(|(_, list)| list.url == *url);
            let known = known.and_then(|(_, list)| ParsedList::parse(list.clone()).ok());
            lists.push(ListSlot {
                url: url.clone(),
                known: ArcSwapOption::new(known.map(Arc::new)),
                is_fetch_requested: false.into(),
            });
        }
        PublishedLists {
            lists,
            failures: Mutex::default(),
            store,
        }
    }

    /// `None` if the list is unknown.
    pub fn get(&self, list: ListId) -> Option<Arc<ParsedList>> {
        self.slot(list).known.load_full()
    }

    /// The URL of a list.
    pub fn url(&self, list: ListId) -> &str {
        &self.slot(list).url
    }

    fn slot(&self, list: ListId) -> &ListSlot {
        &self.lists[usize::from(list.0)]
    }

    /// All lists with their URLs.
    pub fn all(&self) -> impl Iterator<Item = (ListId, &str)> {
        (0..)
            .map(ListId)
            .zip(self.lists.iter().map(|place| place.url.as_str()))
    }

    /// Requests that a list is fetched again soon.
    pub fn request_fetch(&self, list: ListId) {
        self.slot(list).is_fetch_requested.store(true, Relaxed);
    }

    /// Whether the list was requested since its server last gave or confirmed it.
    pub fn is_fetch_requested(&self, list: ListId) -> bool {
        self.slot(list).is_fetch_requested.load(Relaxed)
    }

    /// Records the result of an update: an error, or `None` for a success.
    pub fn record_update(&self, list: ListId, now: Timestamp, error: Option<&str>) {
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
    pub fn failures(&self) -> BTreeMap<ListId, ListFailure> {
        lock(&self.failures).clone()
    }

    /// What the lists of a crawler say about an address. It is inside if any known list has it, also an
    /// old one. It is outside only if all lists are known and fresh, one has its family (IPv4 or
    /// IPv6), and they are complete. Takes no lock.
    pub fn look_up(&self, means: &ProofMeans, address: IpAddr, now: Timestamp) -> ListMembership {
        use IdentityDoubt::*;
        use ListMembership::*;

        let mut all_known = true;
        let mut all_fresh = true;
        let mut covered = false;
        for list in &means.lists {
            let known = self.slot(*list).known.load();
            let Some(known) = &*known else {
                all_known = false;
                continue;
            };
            if known.table.contains(address) {
                return Inside;
            }
            all_fresh &= known.is_fresh(now);
            covered |= known.table.has_family(address);
        }
        if !all_known {
            Undecided(ListUnknown)
        } else if !all_fresh {
            Undecided(ListOld)
        } else if !covered && !means.lists.is_empty() {
            Undecided(ListOtherKind)
        } else if means.are_lists_complete {
            Outside
        } else {
            Undecided(NoEvidence)
        }
    }

    /// Replaces a list by a fetched one, and stores it.
    ///
    /// # Errors
    /// The list is rejected: it cannot be read, or has less than half of the networks of a fresh former
    /// list.
    pub fn replace_list(
        &self,
        list: ListId,
        fetched: FetchedList,
    ) -> Result<ListUpdateReport, ListRejection> {
        let new = ParsedList::parse(NetworkList {
            url: self.url(list).to_owned(),
            bytes: fetched.bytes.into(),
            etag: fetched.etag,
            last_modified: fetched.last_modified,
            checked: fetched.checked,
        })?;
        let before = self.get(list);
        let former = before
            .as_ref()
            .map_or(&[][..], |before| before.table.networks());
        let networks = new.entry_count();
        if before
            .as_ref()
            .is_some_and(|before| before.is_fresh(fetched.checked))
            && networks * 2 < former.len()
        {
            return Err(ListRejection::Shrunk {
                now: networks,
                before: former.len(),
            });
        }
        let is_changed = before
            .as_ref()
            .is_none_or(|before| before.table != new.table || before.keys != new.keys);
        let update = ListUpdateReport {
            url: new.copy.url.clone(),
            result: if is_changed { Changed } else { Unchanged },
            networks,
            added: difference(new.table.networks(), former),
            removed: difference(former, new.table.networks()),
            error: None,
        };
        self.store_list(list, new);
        Ok(update)
    }

    /// Records that the server confirmed the list at `now`.
    pub fn record_confirmation(&self, list: ListId, now: Timestamp) {
        if let Some(known) = self.get(list) {
            let mut known = ParsedList::clone(&known);
            known.copy.checked = now;
            self.store_list(list, known);
        }
    }

    /// Replaces a list in memory and in the state store.
    fn store_list(&self, list: ListId, known: ParsedList) {
        let place = self.slot(list);
        place.is_fetch_requested.store(false, Relaxed);
        self.store
            .put([Fact::set(known.copy.checked, known.copy.clone())]);
        place.known.store(Some(Arc::new(known)));
    }
}

/// The networks of `left` that are not in `right`.
fn difference(left: &[IpNet], right: &[IpNet]) -> Vec<IpNet> {
    let right: BTreeSet<&IpNet> = right.iter().collect();
    left.iter()
        .filter(|network| !right.contains(network))
        .copied()
        .collect()
}
