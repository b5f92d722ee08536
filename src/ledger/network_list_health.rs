//! What the lists of networks are worth. One that never once verified the crawler it describes proves nothing: as long
//! as no visit was verified, nobody is called an impostor by it.
//!
//! Per site and crawler of its policy that has networks: when a visit was last verified, and when one last was not. A
//! request reads and writes numbers in a table that is replaced whole when policies change: it takes no lock. Kept in a
//! file beside the table of visits.

use crate::crawlers::Registry;
use crate::policy::Snapshot;
use crate::policy::site::Site;
use crate::time::Timestamp;
use crate::verdict::{Identity, claim_label};
use arc_swap::ArcSwap;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// How long a verified visit speaks for its list.
const PROVEN_FOR: Duration = Duration::from_secs(7 * 86_400);
/// The moment of the last visit is not noted at each of them.
const COARSE: i64 = 60;
const NEVER: i64 = i64::MIN;

/// What is known of one list.
#[derive(Debug)]
struct Proof {
    /// Which list it is: another one has to prove itself anew.
    list: String,
    verified: AtomicI64,
    accused: AtomicI64,
    /// Whether it was told that the finding is suspended.
    told: AtomicBool,
}

/// By site and crawler.
type Table = HashMap<String, HashMap<String, Arc<Proof>>>;

/// How it stands with the list of one crawler on one site: for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListHealth {
    /// The site.
    pub site: String,
    /// The registry's id, or the policy's token.
    pub crawler: String,
    /// When a visit was last verified; at most a minute later in truth.
    pub verified: Option<Timestamp>,
    /// When one last came from elsewhere under this name.
    pub accused: Option<Timestamp>,
    /// Whether the finding is suspended: there were such visits lately, and none that was verified.
    pub suspended: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Written {
    crawlers: Vec<WrittenProof>,
}

#[derive(Serialize, Deserialize)]
struct WrittenProof {
    site: String,
    crawler: String,
    list: String,
    verified: Option<Timestamp>,
    accused: Option<Timestamp>,
}

/// All of them.
#[derive(Debug, Default)]
pub struct NetworkListHealth {
    table: ArcSwap<Table>,
    changed: AtomicBool,
}

impl NetworkListHealth {
    /// What was remembered. Lists that no policy has go with the next [`NetworkListHealth::settle`].
    ///
    /// # Errors
    /// The file cannot be understood.
    pub fn read(bytes: &[u8], now: Timestamp) -> Result<NetworkListHealth, serde_json::Error> {
        let mut table = Table::new();
        for proof in serde_json::from_slice::<Written>(bytes)?.crawlers {
            // A moment to come is one of a clock that was set back since.
            let at = |moment: Option<Timestamp>| moment.map_or(NEVER, |moment| moment.min(now).0).into();
            let (verified, accused) = (at(proof.verified), at(proof.accused));
            let known = Proof { list: proof.list, verified, accused, told: false.into() };
            table.entry(proof.site).or_default().insert(proof.crawler, Arc::new(known));
        }
        Ok(NetworkListHealth { table: ArcSwap::from_pointee(table), changed: false.into() })
    }

    /// As it is written, if something changed since this was last asked.
    pub fn take_changed(&self) -> Option<Vec<u8>> {
        if !self.changed.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut written = Written::default();
        self.each(|site, crawler, proof| {
            let (site, crawler, list) = (site.to_owned(), crawler.to_owned(), proof.list.clone());
            let (verified, accused) = (moment(&proof.verified), moment(&proof.accused));
            written.crawlers.push(WrittenProof { site, crawler, list, verified, accused });
        });
        written.crawlers.sort_by(|one, other| (&one.site, &one.crawler).cmp(&(&other.site, &other.crawler)));
        serde_json::to_vec(&written).ok()
    }

    /// It is to be written again.
    pub fn set_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Knows the lists of these policies and no other.
    pub fn settle(&self, snapshot: &Snapshot, registry: &Registry) {
        let before = self.table.load();
        let mut table = Table::new();
        for entry in snapshot.sites().iter().filter(|entry| entry.site.lists_addresses()) {
            let site = &*entry.site;
            let known = before.get(&site.name);
            let proofs = site.listed_addresses().filter_map(|(claim, networks)| {
                let crawler = claim_label(claim, registry, Some(site))?;
                let list = fingerprint(networks);
                let proof = known.and_then(|known| known.get(crawler)).filter(|proof| proof.list == list);
                Some((crawler.to_owned(), proof.cloned().unwrap_or_else(|| Arc::new(Proof::new(list)))))
            });
            table.insert(site.name.clone(), proofs.collect());
        }
        let is_as_before = |(site, proofs): (&String, &HashMap<String, Arc<Proof>>)| {
            before.get(site).is_some_and(|known| {
                let same = |(crawler, proof)| known.get(crawler).is_some_and(|known| Arc::ptr_eq(known, proof));
                known.len() == proofs.len() && proofs.iter().all(same)
            })
        };
        if table.len() != before.len() || !table.iter().all(is_as_before) {
            self.table.store(Arc::new(table));
            self.set_changed();
        }
    }

    /// What is proven of a request, given what the policy's networks say of its address.
    pub fn weigh(&self, site: &Site, crawler: &str, identity: Identity, now: Timestamp) -> Identity {
        self.with(site, crawler, |proof| {
            let last = match identity {
                Identity::Verified => proof.map(|proof| &proof.verified),
                Identity::Impostor => proof.map(|proof| &proof.accused),
                Identity::Unverified | Identity::Suspended => None,
            };
            if last.is_some_and(|last| note(last, now)) {
                self.set_changed();
            }
            weighed(identity, proof, now)
        })
    }

    /// The same without a trace.
    pub fn look(&self, site: &Site, crawler: &str, identity: Identity, now: Timestamp) -> Identity {
        self.with(site, crawler, |proof| weighed(identity, proof, now))
    }

    fn with<T>(&self, site: &Site, crawler: &str, look: impl FnOnce(Option<&Proof>) -> T) -> T {
        let table = self.table.load();
        look(table.get(&site.name).and_then(|proofs| proofs.get(crawler)).map(|proof| &**proof))
    }

    /// Those of which something is known, by site and crawler.
    pub fn standings(&self, now: Timestamp) -> Vec<ListHealth> {
        let mut all = Vec::new();
        self.each(|site, crawler, proof| {
            let (verified, accused) = (moment(&proof.verified), moment(&proof.accused));
            if verified.is_some() || accused.is_some() {
                let (site, crawler, suspended) = (site.to_owned(), crawler.to_owned(), proof.is_suspended(now));
                all.push(ListHealth { site, crawler, verified, accused, suspended });
            }
        });
        all.sort_by(|one, other| (&one.site, &one.crawler).cmp(&(&other.site, &other.crawler)));
        all
    }

    /// Says in the log, once, what is suspended and what is not any more.
    pub fn tell(&self, now: Timestamp) {
        self.each(|site, crawler, proof| {
            // Of a clock that was set back: it is not to count for longer than it would have.
            for last in [&proof.verified, &proof.accused] {
                last.fetch_min(now.0, Ordering::Relaxed);
            }
            let suspended = proof.is_suspended(now);
            match (suspended, proof.told.swap(suspended, Ordering::Relaxed)) {
                (true, false) => tracing::warn!(
                    site,
                    crawler,
                    "nobody came from the networks that the policy lists for it within seven days, and somebody from \
                     elsewhere did: the list proves nothing, and nobody is called an impostor by it"
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
    }

    fn each(&self, mut look: impl FnMut(&str, &str, &Proof)) {
        for (site, proofs) in self.table.load().iter() {
            proofs.iter().for_each(|(crawler, proof)| look(site, crawler, proof));
        }
    }
}

impl Proof {
    fn new(list: String) -> Proof {
        Proof { list, verified: NEVER.into(), accused: NEVER.into(), told: false.into() }
    }

    /// Whether the list has proven that it describes the crawler.
    fn stands(&self, now: Timestamp) -> bool {
        within(&self.verified, now)
    }

    fn is_suspended(&self, now: Timestamp) -> bool {
        within(&self.accused, now) && !self.stands(now)
    }
}

fn weighed(identity: Identity, proof: Option<&Proof>, now: Timestamp) -> Identity {
    match identity {
        Identity::Impostor if !proof.is_some_and(|proof| proof.stands(now)) => Identity::Suspended,
        _ => identity,
    }
}

fn within(last: &AtomicI64, now: Timestamp) -> bool {
    moment(last).is_some_and(|last| now.since(last) <= PROVEN_FOR)
}

fn moment(last: &AtomicI64) -> Option<Timestamp> {
    Some(last.load(Ordering::Relaxed)).filter(|last| *last != NEVER).map(Timestamp)
}

/// Says whether that is worth writing down.
fn note(last: &AtomicI64, now: Timestamp) -> bool {
    if now.0.saturating_sub(last.load(Ordering::Relaxed)).saturating_abs() < COARSE {
        return false;
    }
    last.store(now.0, Ordering::Relaxed);
    true
}

/// The same for the same addresses, in whatever order they are written.
fn fingerprint(networks: &[IpNet]) -> String {
    let mut networks: Vec<IpNet> = networks.iter().map(IpNet::trunc).collect();
    networks.sort_unstable();
    networks.dedup();
    let mut hash = Sha256::new();
    for network in networks {
        hash.update(format!("{network} "));
    }
    hash.finalize().iter().take(8).map(|octet| format!("{octet:02x}")).collect()
}
