//! [`NetworkListHealth`] decides which lists of networks may prove that a client is an impostor. A
//! list that is out of date would accuse real crawlers. So for each site and each crawler with a
//! list, it keeps two times: that of the last request that the list verified, and that of the last
//! request by the crawler's name from outside of the list. The networks and host names that
//! operators publish count across sites ([`EVERY_SITE`]).
//!
//! A list may prove impostors for a week after a request that it verified. Otherwise it proves
//! none, and as long as requests came from outside of it within a week, it is reported as
//! suspended.
//!
//! A request takes no lock: it reads and writes numbers in a table that is replaced whole when
//! policies change.

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

/// How long a verified visit speaks for its list.
const PROVEN_FOR: Duration = Duration::from_secs(7 * 86_400);
/// The moment of the last visit is not noted at each of them.
const COARSE: i64 = 60;
const NEVER: i64 = i64::MIN;
/// In the place of a site: what operators publish, which holds for all sites. No policy file has
/// this name.
pub const EVERY_SITE: &str = "*";
/// In the place of a digest: what operators publish may change every day and stays theirs.
const PUBLISHED: &str = "published";

/// What is known of one list.
#[derive(Debug)]
struct Proof {
    /// Which list it is: another one has to prove itself anew.
    list: String,
    verified: AtomicI64,
    accused: AtomicI64,
    /// Whether the log says that the finding is suspended.
    told: AtomicBool,
    /// Whether the state store does not know the moments yet.
    is_unstored: AtomicBool,
}

/// By site and crawler.
type Table = HashMap<String, HashMap<String, Arc<Proof>>>;

/// A list of networks, by the site and the crawler that it is for.
#[derive(Clone, Copy)]
pub struct ListKey<'a> {
    pub site: &'a str,
    pub crawler: &'a str,
}

/// The state of the list of one crawler on one site: for reports.
#[derive(Debug, PartialEq, Eq)]
pub struct ListHealth {
    /// The site, or [`EVERY_SITE`].
    pub site: String,
    /// The registry's id, or the policy's token.
    pub crawler: String,
    /// When a visit was last verified; at most a minute later in truth.
    pub verified: Option<Timestamp>,
    /// When a visit under this name last came from elsewhere.
    pub accused: Option<Timestamp>,
    /// Whether the finding is suspended: there were such visits lately, and none that was verified.
    pub suspended: bool,
}

/// The lists of all sites and crawlers.
#[derive(Debug, Default)]
pub struct NetworkListHealth {
    table: ArcSwap<Table>,
    store: Option<StateStore>,
}

impl NetworkListHealth {
    /// What the state store remembers. Lists that no policy has go with the next
    /// [`NetworkListHealth::settle`].
    pub fn remembered(proofs: &[(Timestamp, ListProof)], store: StateStore) -> NetworkListHealth {
        let mut table = Table::new();
        for (_, proof) in proofs {
            let known = Proof {
                verified: stored(proof.verified),
                accused: stored(proof.accused),
                ..Proof::new(proof.list.clone())
            };
            table
                .entry(proof.site.clone())
                .or_default()
                .insert(proof.crawler.clone(), Arc::new(known));
        }
        NetworkListHealth {
            table: ArcSwap::from_pointee(table),
            store: Some(store),
        }
    }

    /// Keeps the lists of these policies and of operators, and no other. A list whose networks are
    /// the same as before keeps its moments; a changed one has to prove itself anew. The records of
    /// the other lists are removed from the state store.
    pub fn settle(&self, snapshot: &Snapshot, registry: &Registry, now: Timestamp) {
        let before = self.table.load();
        let mut table = Table::new();
        for entry in snapshot
            .sites()
            .iter()
            .filter(|entry| !entry.site.networks.is_empty())
        {
            let site = &*entry.site;
            let known = before.get(&site.name);
            let mut proofs = HashMap::new();
            for (claim, networks) in site.networks.each() {
                let Some(crawler) = claim_label(claim, registry, Some(site)) else {
                    continue;
                };
                let list = fingerprint(networks);
                let proof = match known.and_then(|known| known.get(crawler)) {
                    Some(known) if known.list == list => known.clone(),
                    known => {
                        let proof = Proof::new(list);
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
            published(registry, before.get(EVERY_SITE)),
        );
        let mut gone = Vec::new();
        self.each(|site, crawler, proof| {
            let proofs = table.get(site);
            if proofs.is_none_or(|proofs| !proofs.contains_key(crawler)) {
                gone.push(Fact::removed(now, record(site, crawler, proof)));
            }
        });
        self.put(gone);
        self.table.store(Arc::new(table));
    }

    /// Hands facts to the state store, if there is one and any fact.
    fn put(&self, facts: Vec<Fact>) {
        if let Some(store) = self.store.as_ref().filter(|_| !facts.is_empty()) {
            store.put(facts);
        }
    }

    /// Returns what is proven of a request, given what the list says of its address (`identity`),
    /// and whether `NetworkListHealth::note` is due. `Impostor` becomes `Suspended` unless the list
    /// verified a request within a week. A note is due once a minute, for `Verified` and
    /// `Impostor`. Changes nothing, and neither locks nor waits. `list` is what [`list_of`]
    /// returns.
    pub fn look(&self, list: ListKey<'_>, identity: Identity, now: Timestamp) -> (Identity, bool) {
        self.with(list, |proof| {
            let is_due = proof
                .and_then(|proof| proof.last(identity))
                .is_some_and(|last| is_due(last, now));
            let is_suspended =
                identity == Identity::Impostor && !proof.is_some_and(|proof| proof.stands(now));
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

    /// Records that the list proved (`Verified`) or accused (`Impostor`) a claimant now. Does
    /// nothing for another identity, an unknown list, or within a minute of the last record.
    pub fn note(&self, list: ListKey<'_>, identity: Identity, now: Timestamp) {
        self.with(list, |proof| {
            let Some(proof) = proof else { return };
            if let Some(last) = proof.last(identity).filter(|last| is_due(last, now)) {
                last.store(now.0, Relaxed);
                proof.is_unstored.store(true, Release);
            }
        });
    }

    /// Calls `look` with what is known of the list of a site and a crawler; `None` if there is
    /// none.
    fn with<T>(&self, list: ListKey<'_>, look: impl FnOnce(Option<&Proof>) -> T) -> T {
        let table = self.table.load();
        let proof = table
            .get(list.site)
            .and_then(|proofs| proofs.get(list.crawler));
        look(proof.map(Arc::as_ref))
    }

    /// The lists that proved or accused any request, in the order of sites and crawlers.
    pub fn report(&self, now: Timestamp) -> Vec<ListHealth> {
        let mut all = Vec::new();
        self.each(|site, crawler, proof| {
            let verified = moment(&proof.verified);
            let accused = moment(&proof.accused);
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

    /// Logs, once, which lists are suspended and which verified a request again. Hands the state
    /// store what changed. Moments that lie ahead, by a clock that was set back, become `now`.
    pub fn tell(&self, now: Timestamp) {
        let mut facts = Vec::new();
        self.each(|site, crawler, proof| {
            // A moment that lies ahead is one of a clock that was set back. It must not count for
            // longer than others.
            for last in [&proof.verified, &proof.accused] {
                last.fetch_min(now.0, Relaxed);
            }
            if proof.is_unstored.swap(false, AcqRel) {
                facts.push(Fact::set(now, record(site, crawler, proof)));
            }
            let suspended = proof.is_suspended(now);
            match (suspended, proof.told.swap(suspended, Relaxed)) {
                (true, false) if site == EVERY_SITE => tracing::warn!(
                    crawler,
                    "no visit of this crawler was verified by its operator's networks or host names within seven days, and \
                     one came from elsewhere; crawlgate calls no request an impostor's by them. `crawlgate crawlers \
                     --verify` shows what they say about an address."
                ),
                (false, true) if site == EVERY_SITE && proof.stands(now) => {
                    tracing::info!(crawler, "a visit was verified by the operator's word: impostors are called so");
                }
                (true, false) => tracing::warn!(
                    site,
                    crawler,
                    "no visit came from the networks that the policy lists for this crawler within seven days, and one came \
                     from elsewhere; crawlgate calls no request an impostor's by this list. Check the list."
                ),
                (false, true) if proof.stands(now) => {
                    tracing::info!(
                        site,
                        crawler,
                        "a visit was verified by the policy's networks: impostors are called so"
                    );
                }
                _ => {}
            }
        });
        self.put(facts);
    }

    fn each(&self, mut look: impl FnMut(&str, &str, &Proof)) {
        for (site, proofs) in self.table.load().iter() {
            for (crawler, proof) in proofs {
                look(site, crawler, proof);
            }
        }
    }
}

impl Proof {
    fn new(list: String) -> Proof {
        Proof {
            list,
            verified: NEVER.into(),
            accused: NEVER.into(),
            told: false.into(),
            is_unstored: false.into(),
        }
    }

    /// Whether the list verified a request within a week, so that it may prove impostors.
    fn stands(&self, now: Timestamp) -> bool {
        within(&self.verified, now)
    }

    /// When the list last verified or accused a request; `None` for an identity that says neither.
    fn last(&self, identity: Identity) -> Option<&AtomicI64> {
        match identity {
            Identity::Verified => Some(&self.verified),
            Identity::Impostor => Some(&self.accused),
            Identity::Unverified | Identity::Suspended | Identity::Pending => None,
        }
    }

    /// Whether a request came from outside of the list within a week, and none was verified in that
    /// time.
    fn is_suspended(&self, now: Timestamp) -> bool {
        within(&self.accused, now) && !self.stands(now)
    }
}

/// The site and the crawler that a list of networks is for: that of the site's policy, or what the
/// crawler's operator publishes (`EVERY_SITE`) where no site is given. The crawler is empty for a
/// claim without a label.
pub fn list_of<'a>(
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

/// What is known of each crawler of the registry whose operator publishes networks or host names,
/// by its id: as before, or nothing yet.
fn published(
    registry: &Registry,
    before: Option<&HashMap<String, Arc<Proof>>>,
) -> HashMap<String, Arc<Proof>> {
    let mut proofs = HashMap::new();
    for crawler in registry.crawlers() {
        if crawler.ips.is_empty() && crawler.rdns.is_empty() {
            continue;
        }
        let known = before.and_then(|before| before.get(&crawler.id)).cloned();
        let proof = known.unwrap_or_else(|| Arc::new(Proof::new(PUBLISHED.to_owned())));
        proofs.insert(crawler.id.clone(), proof);
    }
    proofs
}

fn record(site: &str, crawler: &str, proof: &Proof) -> ListProof {
    ListProof {
        site: site.to_owned(),
        crawler: crawler.to_owned(),
        list: proof.list.clone(),
        verified: moment(&proof.verified),
        accused: moment(&proof.accused),
    }
}

/// Whether the moment is a week old at most.
fn within(last: &AtomicI64, now: Timestamp) -> bool {
    moment(last).is_some_and(|last| now.since(last) <= PROVEN_FOR)
}

fn stored(moment: Option<Timestamp>) -> AtomicI64 {
    moment.map_or(NEVER, |moment| moment.0).into()
}

/// The moment; `None` for `NEVER`.
fn moment(last: &AtomicI64) -> Option<Timestamp> {
    Some(last.load(Relaxed))
        .filter(|last| *last != NEVER)
        .map(Timestamp)
}

/// Whether a moment is old enough to be replaced: a minute or more, in either direction of the
/// clock.
fn is_due(last: &AtomicI64, now: Timestamp) -> bool {
    now.0.saturating_sub(last.load(Relaxed)).saturating_abs() >= COARSE
}

/// A digest of the addresses, whatever their order and however often one is listed.
fn fingerprint(networks: &[IpNet]) -> String {
    let mut networks: Vec<IpNet> = networks.iter().map(IpNet::trunc).collect();
    networks.sort_unstable();
    networks.dedup();
    let text: String = networks
        .iter()
        .map(|network| format!("{network} "))
        .collect();
    Hash::of(&[text.as_bytes()]).short()
}
