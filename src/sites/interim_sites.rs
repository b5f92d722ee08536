//! [`InterimSites`]: the sites in force while a new robots.txt waits, because crawlgate cannot
//! announce it to other instances of crawlgate yet. Other parts of the new policy do not wait:
//! enforcement modes, answers, planned pauses, X-Robots-Tag lines and meta tags. An interim site is
//! compiled from these parts of the new policy, and from the former policy for everything else.

use super::pauses::Pauses;
use super::same_robots::has_same_robots;
use crate::crawlers::Registry;
use crate::policy::model::{Enforcement, HostPattern, Policy};
use crate::policy::site::TagChangeTimes;
use crate::policy::{Site, SiteEntry, compile_with_origin};
use crate::time::Timestamp;
use std::sync::Arc;

/// The compiled interim sites.
#[derive(Default)]
pub struct InterimSites(Vec<InterimSite>);

struct InterimSite {
    /// The new site, which waits.
    waiting: Arc<Site>,
    /// The site in force meanwhile.
    interim: Arc<Site>,
}

impl InterimSites {
    /// Removes all interim sites, because nothing waits any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The sites in force while a new robots.txt waits: one entry for each site of `before`. If
    /// `new` has other sites or hosts than `before`, or is empty, the former sites stay. Otherwise a
    /// site with the same robots.txt is the new one. Any other site gets the parts of
    /// its new policy that do not wait, or stays if these cannot be compiled or would change
    /// robots.txt. Former and interim sites have the present pauses of pages.
    pub fn entries(
        &mut self,
        before: &[SiteEntry],
        new: &[SiteEntry],
        pauses: &Pauses,
        now: Timestamp,
    ) -> Vec<SiteEntry> {
        let new = if have_same_sites(before, new) {
            new
        } else {
            &[]
        };
        let mut entries = Vec::new();
        for before in before {
            let new = new.iter().find(|new| new.site.name == before.site.name);
            if let Some(new) = new.filter(|new| has_same_robots(before, new)) {
                entries.push(new.clone());
                continue;
            }
            let interim = new.and_then(|new| self.interim_entry(before, new, now));
            entries.push(
                match (
                    new,
                    interim.filter(|interim| has_same_robots(before, interim)),
                ) {
                    (Some(new), Some(interim)) => {
                        interim.with_page_pauses(pauses.for_site(&new.site, now))
                    }
                    _ => before
                        .clone()
                        .with_page_pauses(pauses.for_site(&before.site, now)),
                },
            );
        }
        entries
    }

    /// The entry of the interim site. Compiles it once for each new site, and keeps it for the next
    /// attempts. If its tag rules differ from those of `new`, all tags count as changed now. `None`
    /// if it cannot be compiled.
    fn interim_entry(
        &mut self,
        before: &SiteEntry,
        new: &SiteEntry,
        now: Timestamp,
    ) -> Option<SiteEntry> {
        let site = match self
            .0
            .iter()
            .find(|site| Arc::ptr_eq(&site.waiting, &new.site))
        {
            Some(site) => site.interim.clone(),
            None => {
                let policy = Arc::new(mix_policies(&before.site.policy, &new.site.policy));
                let site = compile_with_origin(
                    policy,
                    &before.site.origin_availability(),
                    Registry::builtin(),
                    now,
                )
                .ok()
                .map(Arc::new)?;
                self.0.retain(|known| known.waiting.name != site.name);
                self.0.push(InterimSite {
                    waiting: new.site.clone(),
                    interim: site.clone(),
                });
                site
            }
        };
        let tag_change_times = if site.tags.rule_ids().eq(new.site.tags.rule_ids()) {
            new.tag_change_times.clone()
        } else {
            // Crawlers are sent every page whole.
            TagChangeTimes {
                everywhere: Some(now),
                ..TagChangeTimes::default()
            }
        };
        Some(SiteEntry {
            site,
            tag_change_times,
            ..before.clone()
        })
    }
}

/// Whether both have sites of the same names with the same hosts in the same order.
fn have_same_sites(before: &[SiteEntry], new: &[SiteEntry]) -> bool {
    before.len() == new.len()
        && new.iter().all(|new| {
            let mut before = before.iter();
            before.any(|before| {
                before.site.name == new.site.name && host_patterns(before).eq(host_patterns(new))
            })
        })
}

fn host_patterns(entry: &SiteEntry) -> impl Iterator<Item = &HostPattern> {
    entry.site.policy.hosts.iter().map(|host| &host.value)
}

/// The policy in force with the parts of the new one that do not wait: indexing, the origin's tags,
/// HTML, pauses, answers, and enforcement except `grace`, `marked_clients` and `behind_cache`. The source
/// text is that of the policy in force, because explanations show its rules of robots.txt.
fn mix_policies(before: &Policy, new: &Policy) -> Policy {
    let Enforcement {
        grace,
        traps,
        behind_cache,
        ..
    } = before.enforcement.clone();
    Policy {
        indexing: new.indexing.clone(),
        origin_tags: new.origin_tags,
        html: new.html.clone(),
        enforcement: Enforcement {
            grace,
            traps,
            behind_cache,
            ..new.enforcement.clone()
        },
        pauses: new.pauses.clone(),
        answers: new.answers.clone(),
        ..before.clone()
    }
}
