//! [`OriginRobots::follow_sites`] decides, after each change of the policies, which sites are followed.
//!
//! A copy is in one of these states:
//! - used by a followed site. If the site is removed, the copy becomes unused;
//! - unused: no site has its name. If such a site comes back, it uses the copy again. Too old or too many copies are removed;
//! - removed: no site can use it again.

use super::OriginRobots;
use super::followed_site::FollowedSite;
use crate::origin::robots::{FetchState, StoredCopy};
use crate::policy::site::{SiteEntry, Snapshot};
use crate::sites::is_no_policy;
use crate::state::Fact;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// How many copies of removed sites are kept. Beyond that the oldest go.
const MAX_UNUSED: usize = 64;

/// The sites whose policies read the origin's file, by name.
type SitesByName<'a> = BTreeMap<&'a str, &'a SiteEntry>;

impl OriginRobots {
    /// Follows new sites, and stops following those that were removed or no longer read the origin's file.
    pub(super) fn follow_sites(&mut self, now: Timestamp) {
        let snapshot = self.manager.snapshot();
        let sites = snapshot.sites().iter().filter(|entry| entry.site.policy.reads_origin());
        let wanted: SitesByName<'_> = sites.map(|entry| (entry.site.name.as_str(), entry)).collect();
        // A site that takes over hosts takes over the copy that it was compiled with, from whichever site.
        let followed = self.followed.values().map(|site| &site.fetch);
        let copies = followed.chain(self.unused.values().map(|copy| &copy.fetch));
        let copies: Vec<FetchState> = copies.filter(|fetch| fetch.copy().is_some()).cloned().collect();
        let mut facts = self.drop_removed(&snapshot, &wanted, now);
        facts.extend(self.drop_unusable(&snapshot, &wanted, now));
        for (name, entry) in wanted {
            match self.followed.get_mut(name) {
                Some(site) if site.policy == entry.site.policy.source.text => {}
                Some(site) => facts.extend(site.follow_policy(entry, &copies, now).then(|| fact_of(name, site, now))),
                None => facts.extend(self.follow(name, entry, &copies, now)),
            }
        }
        // At once, so that a copy that moves from one site to another is stored with one of them at each moment.
        self.store.put(facts);
        self.report_status(now);
    }

    /// Stops following sites that were removed. Their copies stay if they may be used again.
    fn drop_removed(&mut self, snapshot: &Snapshot, wanted: &SitesByName<'_>, now: Timestamp) -> Vec<Fact> {
        let is_gone = |name: &str, site: &FollowedSite| match wanted.get(name) {
            // A policy file with the name of a default site is another site.
            Some(entry) => site.is_default_site != is_no_policy(&entry.site.policy),
            None => true,
        };
        let gone = self.followed.iter().filter(|(name, site)| is_gone(name, site)).map(|(name, _)| name.clone());
        let mut facts = Vec::new();
        for name in gone.collect::<Vec<_>>() {
            let Some(site) = self.followed.remove(&name) else { continue };
            if snapshot.site_named(&name).is_none() && !site.is_default_site && site.fetch.copy().is_some() {
                self.unused.insert(name, site.to_stored());
            } else {
                facts.push(StoredCopy::removal(&name, now));
            }
        }
        facts
    }

    /// Removes copies that no site can use again: too old, too many, or of no use. Notes of the others since when they
    /// are unused.
    fn drop_unusable(&mut self, snapshot: &Snapshot, wanted: &SitesByName<'_>, now: Timestamp) -> Vec<Fact> {
        let longest = self.manager.longest_cached();
        let mut facts = Vec::new();
        let mut waiting = Vec::new();
        self.unused.retain(|name, copy| {
            if wanted.contains_key(name.as_str()) {
                return true;
            }
            // A site that does not read the origin's file has no use for a copy, and no site has one for a failure.
            let may_return =
                snapshot.site_named(name).is_none() && copy.default_site_hosts.is_none() && copy.fetch.copy().is_some();
            if !may_return || copy.left_at.is_some_and(|moment| now.since(moment) > longest) {
                facts.push(StoredCopy::removal(name, now));
                return false;
            }
            if copy.left_at.is_none() {
                copy.left_at = Some(now);
                facts.push(copy.fact(name, now));
            }
            waiting.push((copy.left_at, name.clone()));
            true
        });
        waiting.sort_unstable();
        for (_, name) in waiting.iter().rev().skip(MAX_UNUSED) {
            self.unused.remove(name);
            facts.push(StoredCopy::removal(name, now));
        }
        facts
    }

    /// Begins to follow a site.
    fn follow(&mut self, name: &str, entry: &SiteEntry, copies: &[FetchState], now: Timestamp) -> Option<Fact> {
        let unused = self.unused.remove(name);
        let is_back = unused.as_ref().is_some_and(|copy| copy.left_at.is_some());
        let site = FollowedSite::new(name, entry, unused.as_ref(), copies, now);
        // The same as what is stored is not stored again, and a failure only after the first fetch.
        let is_changed = site.is_unconditional || is_back;
        let is_stored = unused.is_some();
        let fact = (is_changed && (is_stored || site.fetch.copy().is_some())).then(|| fact_of(name, &site, now));
        self.followed.insert(name.to_owned(), site);
        fact
    }
}

/// The fact that a followed site has this copy, or none.
fn fact_of(name: &str, site: &FollowedSite, now: Timestamp) -> Fact {
    match site.fetch.copy() {
        Some(_) => site.to_stored().fact(name, now),
        None => StoredCopy::removal(name, now),
    }
}
