//! Hosts that go from one site to another: crawlers hold the robots.txt that they were given on a host (RFC 9309
//! section 2.3: it is the host's), whichever file it was made from. So a site that takes a host over is judged by what
//! the one before it published there, too, and goes on with its copy of the origin's robots.txt.
//!
//! Knows whose hosts were whose, through a restart; knows no request and nothing of who was served what.

use super::default_sites::{asked_by, asked_host, covers};
use super::origins::OriginKnown;
use super::reload::Sites;
use super::state::Superseded;
use super::succession::{Past, forget_the_oldest, longest_held};
use crate::policy::compiled::Held;
use crate::policy::decode::parse_host;
use crate::policy::model::HostPattern;
use crate::policy::origin::Origin;
use crate::policy::{Site, SiteEntry, Snapshot};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Takeovers that are remembered. Beyond that the oldest go: what was published there is not known any more, and a host
/// that goes to another site is watched anew, so nobody is called a violator by it.
const MAX_LEFT: usize = 64;

/// Hosts that a site had and has no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Left {
    /// The site.
    pub site: String,
    /// The hosts; none stands for every host that no other site had.
    pub hosts: Vec<String>,
    /// When it had them last.
    pub at: Timestamp,
    /// What its robots.txt was, the newest version first.
    pub versions: Vec<Superseded>,
    /// When the last of those that are not kept was superseded.
    pub forgotten: Option<Timestamp>,
    /// The same versions, as they are judged by.
    #[serde(skip)]
    pub held: Vec<Held>,
    /// The copy of its origin's robots.txt.
    #[serde(skip)]
    origin: Option<OriginKnown>,
}

/// A site that goes with this reload.
pub(super) struct Leaving {
    pub entry: SiteEntry,
    pub origin: Option<OriginKnown>,
}

/// What a site published.
#[derive(Clone, Default)]
pub(super) struct Published {
    pub held: Vec<Held>,
    pub forgotten: Option<Timestamp>,
}

impl Published {
    fn add(&mut self, other: &Published) {
        self.held.extend(other.held.iter().cloned());
        self.forgotten = self.forgotten.max(other.forgotten);
    }
}

/// A site that had hosts before this reload, or long ago.
struct Owner<'a> {
    site: &'a str,
    hosts: Vec<HostPattern>,
    /// The names of those that are no wildcards: a site may have thousands, and each is asked for.
    names: BTreeSet<String>,
    left: Option<&'a Left>,
}

impl<'a> Owner<'a> {
    fn new(site: &'a str, written: &[String], left: Option<&'a Left>) -> Owner<'a> {
        let hosts: Vec<HostPattern> = hosts(written).collect();
        let names = hosts.iter().filter(|host| !host.wildcard).map(|host| host.name.clone()).collect();
        Owner { site, hosts, names, left }
    }

    fn has_all_others(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Whether it had this host, or hosts of this pattern.
    fn had(&self, host: &HostPattern) -> bool {
        let either = |theirs: &HostPattern| covers(theirs, host) || covers(host, theirs);
        match host.wildcard {
            true => self.hosts.iter().any(either),
            false => {
                self.names.contains(&host.name) || self.hosts.iter().any(|theirs| theirs.wildcard && either(theirs))
            }
        }
    }
}

impl Sites {
    /// Compares whose hosts are whose with whose they were, and has sites judged by what was published before them.
    /// Called when a reload has put all files in their place.
    pub(super) fn settle_takeovers(&mut self, now: Timestamp) {
        let hosts_now: BTreeMap<String, Vec<String>> =
            self.entries().map(|entry| (entry.site.name.clone(), hosts_of(&entry.site))).collect();
        if hosts_now == self.memory.hosts {
            self.leaving.clear();
            return;
        }
        let new_owners = Snapshot::new(self.entries().cloned().collect(), 0);
        let mut received: BTreeMap<String, Published> = BTreeMap::new();
        let owners = self.owners();
        for (site, hosts) in &hosts_now {
            let mut givers = BTreeSet::new();
            for host in gained(self.memory.hosts.get(site), hosts) {
                givers.extend(self.former_owners(&owners, site, host.as_ref()));
            }
            for giver in givers {
                received.entry(site.clone()).or_default().add(&self.published(&owners[giver], now));
            }
        }
        let mut left = Vec::new();
        for (site, before) in &self.memory.hosts {
            let Some(lost) = lost(before, hosts_now.get(site)) else { continue };
            let published = self.published(&Owner::new(site, &[], None), now);
            // Hosts that nobody names now are those of a wildcard, or of the site for every other host.
            let heirs: BTreeSet<usize> = hosts(&lost)
                .filter_map(|host| {
                    let name = format!("{}{}", if host.wildcard { "www." } else { "" }, host.name);
                    new_owners.site_for_host(name.as_bytes())
                })
                .collect();
            for heir in heirs.into_iter().map(|heir| &new_owners.sites()[heir].site.name).filter(|heir| *heir != site) {
                received.entry(heir.clone()).or_default().add(&published);
            }
            let Published { held, forgotten } = published;
            let origin =
                self.leaving.get(site).map_or_else(|| self.origins.get(site), |leaving| leaving.origin.as_ref());
            let (site, origin) = (site.clone(), origin.cloned());
            left.push(Left { site, hosts: lost, at: now, versions: versions(&held), forgotten, held, origin });
        }
        let gone: Vec<String> =
            self.memory.hosts.keys().filter(|site| !hosts_now.contains_key(*site)).cloned().collect();
        gone.iter().for_each(|site| self.memory.forget(site));
        left.append(&mut self.memory.left);
        left.truncate(MAX_LEFT);
        self.memory.left = left;
        self.memory.hosts = hosts_now;
        self.leaving.clear();
        for (site, published) in received {
            if let Some(entry) = self.entry_mut(&site) {
                hold(entry, published, now);
            }
        }
    }

    /// Reads the versions of hosts that were left before a restart.
    pub(super) fn recall_left(&mut self) {
        let mut left = std::mem::take(&mut self.memory.left);
        for left in &mut left {
            let published = self.read_versions(&left.versions);
            (left.held, left.forgotten) = (published.held, left.forgotten.max(published.forgotten));
            // The copy that is kept in its name is of these hosts, unless it has others by now.
            left.origin = self.origins.get(&left.site).filter(|_| !self.memory.hosts.contains_key(&left.site)).cloned();
        }
        self.memory.left = left;
    }

    /// Forgets who had what before anybody's copy was made; says nothing of sites.
    pub(super) fn forget_left(&mut self, now: Timestamp) {
        let longest = self.entries().map(|entry| longest_held(&entry.site, self.registry)).max();
        let longest = longest.unwrap_or_else(|| self.registry.longest_robots_cache());
        self.memory.left.retain(|left| now.since(left.at) <= longest);
    }

    /// What is known of the origin's robots.txt for the host by which a site asks for it, where that host was not the
    /// site's before: the copy by which it went until now. It is better than none for an hour, should the origin be
    /// down just then. `None` where the site goes on with what it has.
    pub(super) fn inherited(&self, site: &Site, now: Timestamp) -> Option<Origin> {
        // A file that has the name of a site without a policy is another site.
        let of_file = !self.default_sites.contains_key(&site.name);
        let host = asked_by(&site.policy).and_then(|host| parse_host(&host).ok());
        let own = self.memory.hosts.get(&site.name).filter(|_| of_file).is_some_and(|before| match &host {
            Some(host) => before.is_empty() || hosts(before).any(|theirs| covers(&theirs, host)),
            None => before.is_empty(),
        });
        let has_copy = of_file && matches!(self.origins.get(&site.name), Some(OriginKnown::Copy(_)));
        // Where nothing is remembered of whose hosts were whose, the copy with the site's name is as good as known.
        if !site.policy.reads_origin() || own || has_copy && self.memory.hosts.is_empty() {
            return None;
        }
        let owners = self.owners();
        let former = self.former_owners(&owners, if of_file { &site.name } else { "" }, host.as_ref());
        let mut former: Vec<&Owner<'_>> = former.into_iter().map(|owner| &owners[owner]).collect();
        // Who was asked for by this name; where there is none, whom a request for no host goes to.
        let first = self.sites_without_policy.first().map(|without| without.name.as_str());
        former.sort_by_key(|owner| match &host {
            Some(host) => owner.hosts.first() != Some(host),
            None => !owner.has_all_others() && Some(owner.site) != first,
        });
        let known = former.into_iter().find_map(|owner| match (owner.left, self.leaving.get(owner.site)) {
            (Some(left), _) => left.origin.as_ref(),
            (None, Some(leaving)) => leaving.origin.as_ref(),
            (None, None) => self.origins.get(owner.site),
        });
        match known {
            Some(OriginKnown::Copy(file)) => Some(Origin::Read(file.clone())),
            // The host by which it asked is still the site's: its copy is better than none until another host's is
            // there.
            Some(OriginKnown::AwaitedSince(_)) | None if of_file && self.keeps_host(site) => None,
            // A copy that has the site's name is of another host.
            Some(OriginKnown::AwaitedSince(_)) | None => {
                has_copy.then(|| OriginKnown::AwaitedSince(now).for_compiling())
            }
        }
    }

    /// Whether the host by which a site asked for its origin's file is one of its hosts now.
    fn keeps_host(&self, site: &Site) -> bool {
        let before = self.memory.hosts.get(&site.name);
        before.and_then(|written| asked_host(hosts(written))).is_some_and(|host| {
            site.policy.hosts.is_empty() || site.policy.hosts.iter().any(|ours| covers(&ours.value, &host))
        })
    }

    /// Who had hosts until now, and who had some before.
    fn owners(&self) -> Vec<Owner<'_>> {
        let before = self.memory.hosts.iter().map(|(site, hosts)| Owner::new(site, hosts, None));
        let left = self.memory.left.iter().map(|left| Owner::new(&left.site, &left.hosts, Some(left)));
        before.chain(left).collect()
    }

    /// Who of the owners, but for a site itself, had a host (`None`: every other) until now, or before: the one who
    /// named it, else the one for every other host.
    fn former_owners(&self, owners: &[Owner<'_>], site: &str, host: Option<&HostPattern>) -> Vec<usize> {
        let others = (0..owners.len()).filter(|owner| owners[*owner].left.is_some() || owners[*owner].site != site);
        let (all_others, named): (Vec<_>, Vec<_>) = others.partition(|owner| owners[*owner].has_all_others());
        let Some(host) = host else {
            // What others gave up is now among every other host.
            let is_over = |owner: &usize| {
                let Owner { site, left, .. } = owners[*owner];
                left.is_some() || self.leaving.contains_key(site) || self.default_sites.contains_key(site)
            };
            return all_others.into_iter().chain(named.into_iter().filter(is_over)).collect();
        };
        let named: Vec<_> = named.into_iter().filter(|owner| owners[*owner].had(host)).collect();
        if named.iter().any(|owner| owners[*owner].left.is_none()) {
            named
        } else {
            named.into_iter().chain(all_others).collect()
        }
    }

    /// What an owner published, until now or until it left.
    fn published(&self, owner: &Owner<'_>, now: Timestamp) -> Published {
        if let Some(left) = owner.left {
            return Published { held: left.held.clone(), forgotten: left.forgotten };
        }
        let entry = self.leaving.get(owner.site).map(|leaving| &leaving.entry).or_else(|| self.entry(owner.site));
        let past = match entry {
            Some(entry) => Past::of(entry.clone(), now),
            // It was there before a restart and is no more.
            None => self.recall(owner.site),
        };
        past.published(self.registry, now)
    }
}

/// The patterns of a site's hosts as they are written; none for every other host.
pub(super) fn hosts_of(site: &Site) -> Vec<String> {
    site.policy.hosts.iter().map(|host| host.value.to_string()).collect()
}

/// Patterns as they are remembered.
pub(super) fn hosts(written: &[String]) -> impl Iterator<Item = HostPattern> + Clone {
    written.iter().filter_map(|host| parse_host(host).ok())
}

/// The hosts that a site did not have; `None` stands for every other.
fn gained(before: Option<&Vec<String>>, hosts: &[String]) -> Vec<Option<HostPattern>> {
    if hosts.is_empty() {
        return if before.is_some_and(Vec::is_empty) { Vec::new() } else { vec![None] };
    }
    let is_new = |host: &&String| before.is_none_or(|before| !before.contains(host));
    hosts.iter().filter(is_new).filter_map(|host| parse_host(host).ok().map(Some)).collect()
}

/// The hosts that a site had and has no more, if any.
fn lost(before: &[String], now: Option<&Vec<String>>) -> Option<Vec<String>> {
    let lost: Vec<String> = match now {
        Some(now) if *now == *before => return None,
        Some(now) if !now.is_empty() && !before.is_empty() => {
            before.iter().filter(|host| !now.contains(host)).cloned().collect()
        }
        Some(_) | None => return Some(before.to_vec()),
    };
    (!lost.is_empty()).then_some(lost)
}

/// Versions as they are remembered.
pub(super) fn versions(held: &[Held]) -> Vec<Superseded> {
    let superseded = |held: &Held| Superseded {
        version: held.former.version.to_string(),
        since: held.since,
        until: held.superseded_at,
    };
    held.iter().map(superseded).collect()
}

/// Has a site judged by what was published before it on its hosts, too. Who heard 503 for robots.txt may go by its copy
/// for longer than since it was superseded, and who that was is not known any more: so may everybody who may have done
/// so.
fn hold(entry: &mut SiteEntry, mut published: Published, now: Timestamp) {
    let own = entry.site.robots_txt.version;
    let lately = |moment: Timestamp| now.since(moment) <= entry.site.grace * 3;
    for held in published.held.iter_mut().filter(|held| lately(held.superseded_at)) {
        held.superseded_at = held.superseded_at.max(now);
    }
    entry.held.extend(published.held.into_iter().filter(|held| held.former.version != own));
    entry.held.sort_by_key(|held| std::cmp::Reverse(held.superseded_at));
    let mut seen = BTreeSet::new();
    entry.held.retain(|held| seen.insert(held.former.version));
    entry.forgotten = entry.forgotten.max(published.forgotten);
    forget_the_oldest(&mut entry.held, &mut entry.forgotten);
}
