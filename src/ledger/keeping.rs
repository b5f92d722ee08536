//! The ledger as others use it: asked on the request path, told at the end of each answer, written down in between.

use super::holdings::{RobotsCache, holdings};
use super::network_list_health::{ListHealth, NetworkListHealth};
use super::store::{Store, Writing};
use super::visits::{ANYONE, Bounds, Host, Visit, Visits, key, split};
use super::watch::Watch;
use crate::clock::Moment;
use crate::crawlers::{Claim, Registry};
use crate::durable::Witnesses;
use crate::policy::site::name_and_port;
use crate::policy::{SiteEntry, Snapshot};
use crate::time::Timestamp;
use crate::verdict::{Claimant, Holdings, Identity, claim_label};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What was served in the last second before a crash is not written; a second more for the writing.
const UNWRITTEN: i64 = 2;

/// How a ledger is kept.
#[derive(Clone, Debug, Default)]
pub struct LedgerOptions {
    /// The state directory; nothing outlasts a restart when absent.
    pub state: Option<PathBuf>,
    /// Hosts that nobody can have a copy from before we were there, like those of the demo: watched since ever.
    pub new_hosts: Vec<String>,
    /// Versions may have been in force when crawlgate was last there that nobody knows of.
    pub versions_missing: bool,
    /// Those of the same directory. Without them it has its own: nobody else writes there.
    pub witnesses: Option<Arc<Witnesses>>,
}

/// What was served to whom, and since when which host is watched.
#[derive(Debug)]
pub struct Ledger {
    visits: Visits,
    watch: Watch,
    store: Option<Mutex<Store>>,
    new_hosts: Vec<String>,
    proofs: NetworkListHealth,
    /// Of the snapshot whose hosts were last looked at.
    generation: AtomicU64,
}

/// What one crawler was served on one host: for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlerVisits {
    /// The host, with its port where that is not the usual one.
    pub host: String,
    /// Since when the host is watched without a gap.
    pub watched_since: Timestamp,
    /// The crawler's id, the name of the cache that it shares, a token of the policy, or `other`.
    pub crawler: String,
    /// Each version with the last time.
    pub versions: Vec<Visit>,
}

impl Ledger {
    /// Reads what is remembered. After a gap, when the clock was set back meanwhile, or when what was served is not
    /// known because it could not be written, all watches begin now; after a crash anybody may have been served what
    /// was in force then.
    pub fn open(options: LedgerOptions, snapshot: &Snapshot, moment: Moment) -> Ledger {
        let LedgerOptions { state, new_hosts, versions_missing, witnesses } = options;
        let now = moment.now;
        let (store, visits, proofs) = match state {
            None => (None, Visits::new(Bounds::default()), NetworkListHealth::default()),
            Some(state) => {
                let witnesses = witnesses.unwrap_or_else(|| Arc::new(Witnesses::of(Some(&state))));
                let (mut store, visits, stamp) = Store::open(&state, witnesses, Bounds::default());
                let proofs = store.read_proofs(now);
                let seen = visits.last_seen();
                visits.bound(now);
                match &stamp {
                    Some(stamp) if !versions_missing && !stamp.is_gap(now) => {
                        if !stamp.clean {
                            let from = Timestamp(stamp.at.0.saturating_sub(UNWRITTEN));
                            served_to_anyone(&visits, snapshot, from, now);
                        }
                    }
                    // How long it was away only a clock can say that was not set back.
                    Some(stamp) => visits.watch_anew(now, now.0.saturating_sub(stamp.at.0).min(0)),
                    // Where no stamp says when it was last there, the table does: about.
                    None => visits.watch_anew(now, seen.map_or(0, |seen| now.0.saturating_sub(seen.0).min(0))),
                }
                visits.set_changed();
                (Some(Mutex::new(store)), visits, proofs)
            }
        };
        let generation = AtomicU64::new(snapshot.generation);
        let ledger = Ledger { visits, watch: Watch::new(moment), store, new_hosts, proofs, generation };
        ledger.settle(snapshot, now);
        ledger
    }

    /// What the claimant may have cached. Counts as a request to the host. Never waits for a file.
    pub fn holdings<'a>(
        &self,
        registry: &Registry,
        claimant: Claimant<'a>,
        host: &[u8],
        moment: Moment,
    ) -> Holdings<'a> {
        let entry = claimant.entry;
        if claimant.claim == Claim::Nobody {
            return Holdings::default();
        }
        let Some(key) = key(&entry.site.name, host) else { return Holdings::of_anyone(claimant, moment.now) };
        let cache = RobotsCache::of(claimant.claim, registry, entry);
        let is_steady = self.watch.is_steady(moment);
        let look = |host: Option<&Host>| (holdings(claimant, cache, host, moment.now, is_steady), host.is_some());
        let (held, is_known) = self.visits.touch(&key, entry.site.grace, moment.now, look);
        if is_known {
            return held;
        }
        self.visits.change(&key, || self.new_host(entry, host, moment.now), |_| {});
        self.visits.look(&key, |host| holdings(claimant, cache, host, moment.now, is_steady))
    }

    /// The same for explanations: changes nothing.
    pub fn peek<'a>(
        &self,
        registry: &Registry,
        claimant: Claimant<'a>,
        host_name: &[u8],
        moment: Moment,
    ) -> Holdings<'a> {
        let entry = claimant.entry;
        let Some(key) = key(&entry.site.name, host_name) else { return Holdings::of_anyone(claimant, moment.now) };
        let cache = RobotsCache::of(claimant.claim, registry, entry);
        let is_steady = self.watch.is_steady(moment);
        self.visits.look(&key, |host| match host {
            Some(host) => holdings(claimant, cache, Some(host), moment.now, is_steady),
            None => {
                let host = self.new_host(entry, host_name, moment.now);
                holdings(claimant, cache, Some(&host), moment.now, is_steady)
            }
        })
    }

    /// The version of the entry was served whole, or a 304 for it.
    pub fn served(&self, registry: &Registry, entry: &SiteEntry, host: &[u8], claim: Claim, now: Timestamp) {
        let Some(key) = key(&entry.site.name, host) else { return };
        let cache = RobotsCache::of(claim, registry, entry);
        let version = entry.site.robots_txt.version;
        self.visits.change(
            &key,
            || self.new_host(entry, host, now),
            |host| {
                for name in [cache.name, ANYONE] {
                    host.crawler_mut(name).add(version, now);
                }
            },
        );
        self.visits.touch(&key, entry.site.grace, now, |_| ());
    }

    /// Once a second: notices a clock that was set, forgets the sites that are gone, writes down what changed.
    pub fn tick(&self, snapshot: &Snapshot, moment: Moment) {
        if let Some(set_by) = self.watch.settle(moment) {
            tracing::warn!(
                "the clock was set, or the machine slept: nobody is called a violator until it went on for a while"
            );
            self.visits.watch_anew(moment.now, set_by);
            self.visits.bound(moment.now);
        }
        let other = self.generation.load(Ordering::Relaxed) != snapshot.generation;
        // A request that began under the policies before may bring back a host that moved meanwhile.
        if self.visits.take_grown() || other {
            self.settle(snapshot, moment.now);
        }
        self.proofs.tell(moment.now);
        self.write(moment.now, Writing::WhenDue);
    }

    /// Goes by these policies from now on. To be told after each change of them and before the next. Forgets what was
    /// served on hosts that lead to another site by now, or to none: what crawlers are given there, nobody here knows,
    /// and a host that comes back is new.
    pub fn settle(&self, snapshot: &Snapshot, now: Timestamp) {
        // Two threads come here, and the one with the older policies may be the later.
        if self.generation.fetch_max(snapshot.generation, Ordering::Relaxed) > snapshot.generation {
            return;
        }
        self.proofs.settle(snapshot, Registry::builtin());
        let entries: HashMap<&[u8], &SiteEntry> =
            snapshot.sites().iter().map(|entry| (entry.site.name.as_bytes(), entry)).collect();
        let moved = self.visits.keep(|site, host, of| {
            let Some(entry) = entries.get(site) else { return false };
            if of.is_behind(entry.site.behind_cache, now) {
                self.visits.set_changed();
            }
            of.leads_as_before(ways(snapshot, site, host))
        });
        if moved {
            // A crash must not bring them back.
            self.write(now, Writing::AtOnce);
        }
    }

    /// Writes everything down, for an end in order.
    pub fn close(&self, now: Timestamp) {
        self.write(now, Writing::ForTheLastTime);
    }

    /// What is proven of a request, given what the policy's networks say of its address. Neither locks nor waits.
    pub fn weigh(
        &self,
        registry: &Registry,
        entry: &SiteEntry,
        claim: Claim,
        identity: Identity,
        now: Timestamp,
    ) -> Identity {
        match claim_label(claim, registry, Some(&entry.site)) {
            Some(crawler) => self.proofs.weigh(&entry.site, crawler, identity, now),
            None => identity,
        }
    }

    /// The same without a trace, for explanations.
    pub fn weigh_unseen(
        &self,
        registry: &Registry,
        entry: &SiteEntry,
        claim: Claim,
        identity: Identity,
        now: Timestamp,
    ) -> Identity {
        let crawler = claim_label(claim, registry, Some(&entry.site)).unwrap_or_default();
        self.proofs.look(&entry.site, crawler, identity, now)
    }

    /// How it stands with the lists of networks that had anything to say.
    pub fn standings(&self, now: Timestamp) -> Vec<ListHealth> {
        self.proofs.standings(now)
    }

    /// What is wrong with the files, for a person.
    pub fn problem(&self) -> Option<String> {
        let store = self.store.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        store.problem()
    }

    /// The name under which a crawler stands in [`Ledger::visits`].
    pub fn name<'a>(registry: &'a Registry, entry: &'a SiteEntry, claim: Claim) -> &'a str {
        RobotsCache::of(claim, registry, entry).name
    }

    /// What was served to the crawlers of a site, by host and name.
    pub fn visits(&self, site: &str) -> Vec<CrawlerVisits> {
        let mut all = Vec::new();
        self.visits.each(|key, host| {
            let Some((_, name)) = split(key).filter(|(of, _)| *of == site.as_bytes()) else { return };
            for (crawler, served) in host.crawlers().filter(|(crawler, _)| *crawler != ANYONE) {
                all.push(CrawlerVisits {
                    host: String::from_utf8_lossy(name).into_owned(),
                    watched_since: host.since(),
                    crawler: crawler.to_string(),
                    versions: served.versions.to_vec(),
                });
            }
        });
        all.sort_by(|one, other| (&one.host, &one.crawler).cmp(&(&other.host, &other.crawler)));
        all
    }

    fn write(&self, now: Timestamp, writing: Writing) {
        if let Some(store) = &self.store {
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            store.write(&self.visits, now, writing);
            store.write_proofs(&self.proofs);
        }
    }

    fn new_host(&self, entry: &SiteEntry, host: &[u8], now: Timestamp) -> Host {
        let (name, _) = name_and_port(host);
        let is = |pattern: &str| pattern.as_bytes().eq_ignore_ascii_case(name);
        let named = entry.site.policy.hosts.iter().any(|host| !host.value.wildcard && is(&host.value.name));
        let since = if self.is_new(host) { Timestamp(0) } else { now };
        Host::new(since, now, named, entry.site.behind_cache)
    }

    fn is_new(&self, host: &[u8]) -> bool {
        !self.new_hosts.is_empty() && {
            let (name, _) = name_and_port(host);
            self.new_hosts.iter().any(|new| new.as_bytes().eq_ignore_ascii_case(name))
        }
    }
}

/// Under which names a host leads to a site, a bit for each: the usual ports are one host here, and a policy may name
/// one.
fn ways(snapshot: &Snapshot, site: &[u8], host: &[u8]) -> u8 {
    let leads = |host: &[u8]| {
        let entry = snapshot.site_for_host(host).and_then(|index| snapshot.sites().get(index));
        entry.is_some_and(|entry| entry.site.name.as_bytes() == site)
    };
    let (_, port) = name_and_port(host);
    let usual = [b":80".as_slice(), b":443"].map(|port| [host, port].concat());
    let others = usual.iter().map(|usual| port.is_none() && leads(usual));
    [leads(host)].into_iter().chain(others).fold(0, |ways, leads| ways << 1 | u8::from(leads))
}

/// Notes for every host that any crawler may have been served what was published there since a moment.
fn served_to_anyone(visits: &Visits, snapshot: &Snapshot, since: Timestamp, now: Timestamp) {
    let mut keys = Vec::new();
    visits.each(|key, _| keys.push(Box::<[u8]>::from(key)));
    for key in keys {
        let Some((_, name)) = split(&key) else { continue };
        let Some(entry) = snapshot.site_for_host(name).and_then(|site| snapshot.sites().get(site)) else { continue };
        let superseded = snapshot.history(name).superseded.iter().filter(|held| held.superseded_at >= since);
        let superseded = superseded.map(|held| held.former.version);
        visits.change(&key, Host::default, |host| {
            for version in superseded.chain([entry.site.robots_txt.version]) {
                host.everyone.add(version, now);
            }
        });
    }
}
