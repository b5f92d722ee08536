//! [`NetworkListHealthTable`] decides which lists of crawlers' networks may prove impostors. An
//! impostor is a client that claims to be a crawler, but has an address outside the crawler's
//! networks. An outdated list would accuse real crawlers. So a list may accuse clients only if the
//! list verified a client as the crawler within the last week. If the list verified no client in
//! that week, but other addresses sent requests under the crawler's name, the list is suspended.
//!
//! The policy of a site may have a list for a crawler, which counts on that site only. A crawler
//! whose operator publishes networks or host names has one more list, which counts on all sites
//! ([`EVERY_SITE`]). Requests take no lock: they read and write atomics in a table, and a change of
//! policies replaces the whole table.

use crate::crawlers::{Claim, Registry};
use crate::facts::{Fact, ListProof};
use crate::hash::Hash;
use crate::policy::{SiteEntry, Snapshot};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::{Identity, claim_label};
use arc_swap::ArcSwap;
use ipnet::IpNet;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::time::Duration;

/// How long a list may prove impostors after a verified request.
const PROVEN_FOR: Duration = Duration::from_secs(7 * 86_400);
/// Seconds between two recorded requests of a list.
const RECORD_INTERVAL: i64 = 60;
const NEVER: i64 = i64::MIN;
/// The site name of the lists that operators publish, which count on all sites. No policy has this
/// name.
pub const EVERY_SITE: &str = "*";
/// The digest of the lists that operators publish. Such a list may change without losing its times.
const PUBLISHED: &str = "published";

/// The state of one list.
struct ListState {
    /// The digest of the list. A changed list starts without times.
    list: String,
    verified: AtomicI64,
    accused: AtomicI64,
    /// Whether it was last logged as suspended.
    suspension_logged: AtomicBool,
    /// Whether the state store does not have the times yet.
    is_unstored: AtomicBool,
}

/// The lists by site and crawler.
type ListTable = HashMap<String, HashMap<String, Arc<ListState>>>;

/// Names a list of networks by its site and crawler.
#[derive(Clone, Copy)]
pub struct ListKey<'a> {
    pub site: &'a str,
    pub crawler: &'a str,
}

/// The state of one list, for reports.
pub struct ListHealth {
    /// The site, or [`EVERY_SITE`].
    pub site: String,
    /// The registry's id, or the policy's token.
    pub crawler: String,
    /// When a request was last verified; up to a minute too early.
    pub verified: Option<Timestamp>,
    /// When a request under this name last came from outside of the list.
    pub accused: Option<Timestamp>,
    /// Whether the list is suspended: there were such requests within a week, and none was
    /// verified.
    pub suspended: bool,
}

/// The lists of all sites and crawlers.
pub struct NetworkListHealthTable {
    table: ArcSwap<ListTable>,
    store: StateStore,
}

impl NetworkListHealthTable {
    /// Restores the lists of the state store. The next [`NetworkListHealthTable::apply_policies`]
    /// removes lists that no policy has.
    pub fn restore(proofs: &[(Timestamp, ListProof)], store: StateStore) -> NetworkListHealthTable {
        let mut table = ListTable::new();
        for (_, proof) in proofs {
            let known = ListState {
                verified: time_or_never(proof.verified),
                accused: time_or_never(proof.accused),
                ..ListState::new(proof.list.clone())
            };
            table
                .entry(proof.site.clone())
                .or_default()
                .insert(proof.crawler.clone(), Arc::new(known));
        }
        NetworkListHealthTable {
            table: ArcSwap::from_pointee(table),
            store,
        }
    }

    /// Replaces the lists by those of these policies and of operators. A list with the same
    /// networks as before keeps its times. Lists that are gone are removed from the state store.
    pub fn apply_policies(&self, snapshot: &Snapshot, registry: &Registry, now: Timestamp) {
        let before = self.table.load();
        let mut table = ListTable::new();
        for entry in snapshot
            .sites()
            .iter()
            .filter(|entry| !entry.site.networks.0.is_empty())
        {
            let site = &*entry.site;
            let known = before.get(&site.name);
            let mut proofs = HashMap::new();
            for (claim, networks) in &site.networks.0 {
                let Some(crawler) = claim_label(*claim, registry, Some(site)) else {
                    continue;
                };
                let list = networks_digest(networks);
                let proof = match known.and_then(|known| known.get(crawler)) {
                    Some(known) if known.list == list => known.clone(),
                    known => {
                        let proof = ListState::new(list);
                        proof.is_unstored.store(known.is_some(), Relaxed);
                        Arc::new(proof)
                    }
                };
                proofs.insert(crawler.to_owned(), proof);
            }
            table.insert(site.name.clone(), proofs);
        }
        table.insert(
            EVERY_SITE.to_owned(),
            published_lists(registry, before.get(EVERY_SITE)),
        );
        let mut gone = Vec::new();
        self.for_each_list(|site, crawler, proof| {
            let proofs = table.get(site);
            if proofs.is_none_or(|proofs| !proofs.contains_key(crawler)) {
                gone.push(Fact::removed(now, to_list_proof(site, crawler, proof)));
            }
        });
        self.store.put(gone);
        self.table.store(Arc::new(table));
    }

    /// Returns what is proven of a request, given what the list says of its address (`identity`),
    /// and whether `NetworkListHealthTable::record_identity` is due. `Impostor` becomes `Suspended`
    /// unless the list verified a request within a week. A note is due once a minute, for
    /// `Verified` and `Impostor`. Changes nothing, and neither locks nor waits. `list` is what
    /// [`list_key`] returns.
    pub fn check_identity(
        &self,
        list: ListKey<'_>,
        identity: Identity,
        now: Timestamp,
    ) -> (Identity, bool) {
        self.with_list(list, |proof| {
            let is_due = proof
                .and_then(|proof| proof.last_time(identity))
                .is_some_and(|last| is_due(last, now));
            let is_suspended =
                identity == Identity::Impostor && !proof.is_some_and(|proof| proof.may_accuse(now));
            (
                if is_suspended {
                    Identity::Suspended
                } else {
                    identity
                },
                is_due,
            )
        })
    }

    /// Records that the list verified (`Verified`) or accused (`Impostor`) a claimant now. Does
    /// nothing for another identity, an unknown list, or within a minute of the last record.
    pub fn record_identity(&self, list: ListKey<'_>, identity: Identity, now: Timestamp) {
        self.with_list(list, |proof| {
            let Some(proof) = proof else { return };
            if let Some(last) = proof.last_time(identity).filter(|last| is_due(last, now)) {
                last.store(now.0, Relaxed);
                proof.is_unstored.store(true, Release);
            }
        });
    }

    /// Calls `read` with the state of a list, or `None` if there is no such list.
    fn with_list<T>(&self, list: ListKey<'_>, read: impl FnOnce(Option<&ListState>) -> T) -> T {
        let table = self.table.load();
        let proof = table
            .get(list.site)
            .and_then(|proofs| proofs.get(list.crawler));
        read(proof.map(Arc::as_ref))
    }

    /// The lists that verified or accused any request, sorted by site and crawler.
    pub fn report(&self, now: Timestamp) -> Vec<ListHealth> {
        let mut all = Vec::new();
        self.for_each_list(|site, crawler, proof| {
            let verified = load_time(&proof.verified);
            let accused = load_time(&proof.accused);
            if verified.is_some() || accused.is_some() {
                all.push(ListHealth {
                    site: site.to_owned(),
                    crawler: crawler.to_owned(),
                    verified,
                    accused,
                    suspended: proof.is_suspended(now),
                });
            }
        });
        all.sort_by(|one, other| (&one.site, &one.crawler).cmp(&(&other.site, &other.crawler)));
        all
    }

    /// Logs lists that became suspended, and lists that verified a request again. Stores what
    /// changed. Times in the future become `now`.
    pub fn log_and_store(&self, now: Timestamp) {
        let mut facts = Vec::new();
        self.for_each_list(|site, crawler, proof| {
            // A time in the future is from before the clock was set back, and must not count for
            // longer.
            for last in [&proof.verified, &proof.accused] {
                last.fetch_min(now.0, Relaxed);
            }
            if proof.is_unstored.swap(false, AcqRel) {
                facts.push(Fact::set(now, to_list_proof(site, crawler, proof)));
            }
            let suspended = proof.is_suspended(now);
            let by = if site == EVERY_SITE {
                "what its operator publishes"
            } else {
                "its networks in the policy"
            };
            match (suspended, proof.suspension_logged.swap(suspended, Relaxed)) {
                (true, false) => tracing::warn!(
                    site,
                    crawler,
                    "in the last seven days no visit of this crawler was verified by {by}, but some came from \
                     elsewhere; until one is verified, crawlgate calls none of them an impostor. Compare its \
                     networks with the list that its operator publishes"
                ),
                (false, true) if proof.may_accuse(now) => tracing::info!(
                    site,
                    crawler,
                    "a visit was verified by {by}: crawlgate again calls impostors by that name"
                ),
                _ => {}
            }
        });
        self.store.put(facts);
    }

    fn for_each_list(&self, mut visit: impl FnMut(&str, &str, &ListState)) {
        for (site, proofs) in self.table.load().iter() {
            for (crawler, proof) in proofs {
                visit(site, crawler, proof);
            }
        }
    }
}

impl ListState {
    fn new(list: String) -> ListState {
        ListState {
            list,
            verified: NEVER.into(),
            accused: NEVER.into(),
            suspension_logged: false.into(),
            is_unstored: false.into(),
        }
    }

    /// Whether the list verified a request within a week, so that it may prove impostors.
    fn may_accuse(&self, now: Timestamp) -> bool {
        is_within_week(&self.verified, now)
    }

    /// When the list last verified or accused a request; `None` for other identities.
    fn last_time(&self, identity: Identity) -> Option<&AtomicI64> {
        use Identity::*;

        match identity {
            Verified => Some(&self.verified),
            Impostor => Some(&self.accused),
            _ => None,
        }
    }

    /// Whether a request came from outside of the list within a week, and none was verified in that
    /// time.
    fn is_suspended(&self, now: Timestamp) -> bool {
        is_within_week(&self.accused, now) && !self.may_accuse(now)
    }
}

/// The key of the list for a claim: that of the site's policy, or what the crawler's operator
/// publishes (`EVERY_SITE`) if `entry` is `None`. The crawler is empty for a claim without a label.
pub fn list_key<'a>(
    registry: &'a Registry,
    entry: Option<&'a SiteEntry>,
    claim: Claim,
) -> ListKey<'a> {
    let site = entry.map(|entry| &*entry.site);
    ListKey {
        site: site.map_or(EVERY_SITE, |site| site.name.as_str()),
        crawler: claim_label(claim, registry, site).unwrap_or_default(),
    }
}

/// The states of the lists that operators publish, by crawler id: those of `before`, or new ones.
fn published_lists(
    registry: &Registry,
    before: Option<&HashMap<String, Arc<ListState>>>,
) -> HashMap<String, Arc<ListState>> {
    let mut proofs = HashMap::new();
    for crawler in registry.crawlers() {
        if crawler.ips.is_empty() && crawler.rdns.is_empty() {
            continue;
        }
        let known = before.and_then(|before| before.get(&crawler.id)).cloned();
        let proof = known.unwrap_or_else(|| Arc::new(ListState::new(PUBLISHED.to_owned())));
        proofs.insert(crawler.id.clone(), proof);
    }
    proofs
}

fn to_list_proof(site: &str, crawler: &str, proof: &ListState) -> ListProof {
    ListProof {
        site: site.to_owned(),
        crawler: crawler.to_owned(),
        list: proof.list.clone(),
        verified: load_time(&proof.verified),
        accused: load_time(&proof.accused),
    }
}

/// Whether the time is at most a week ago.
fn is_within_week(last: &AtomicI64, now: Timestamp) -> bool {
    load_time(last).is_some_and(|last| now.since(last) <= PROVEN_FOR)
}

fn time_or_never(moment: Option<Timestamp>) -> AtomicI64 {
    moment.map_or(NEVER, |moment| moment.0).into()
}

/// Loads a time; `None` for `NEVER`.
fn load_time(last: &AtomicI64) -> Option<Timestamp> {
    Some(last.load(Relaxed))
        .filter(|last| *last != NEVER)
        .map(Timestamp)
}

/// Whether a recorded time must be replaced: it is a minute away or more, in either direction.
fn is_due(last: &AtomicI64, now: Timestamp) -> bool {
    now.0.saturating_sub(last.load(Relaxed)).saturating_abs() >= RECORD_INTERVAL
}

/// A digest of the networks, regardless of order and repetition.
fn networks_digest(networks: &[IpNet]) -> String {
    let mut networks: Vec<IpNet> = networks.iter().map(IpNet::trunc).collect();
    networks.sort_unstable();
    networks.dedup();
    let text: String = networks
        .iter()
        .map(|network| format!("{network} "))
        .collect();
    Hash::digest(&[text.as_bytes()]).short_hex()
}
