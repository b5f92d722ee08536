//! [`HeldBack`]: the sites whose new robots.txt is not published until other instances of crawlgate
//! are told of it. Modes, answers, planned pauses, tags and metas do not wait. Meanwhile such a
//! site is compiled from these parts of its new policy and from the rest of the former policy.

use super::pauses::Pauses;
use crate::crawlers::Registry;
use crate::policy::model::{Enforcement, HostPattern, Policy};
use crate::policy::site::TagAges;
use crate::policy::{Site, SiteEntry, compile_with_origin};
use crate::time::Timestamp;
use std::sync::Arc;

/// Pairs of a site that waits and the site that is in force in its place.
#[derive(Default)]
pub struct HeldBack(Vec<(Arc<Site>, Arc<Site>)>);

impl HeldBack {
    /// Nothing waits any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The sites in force while a new robots.txt waits: one entry for each site of `before`. If
    /// `new` has other sites or hosts than `before`, or is empty, the former sites stay. Else a
    /// site whose robots.txt is the same (`is_same`) is the new one, and another gets the parts of
    /// its new policy that do not wait, or stays if these cannot be compiled or would change
    /// robots.txt. Former and mixed sites have the present pauses of pages.
    pub fn meanwhile(
        &mut self,
        before: &[SiteEntry],
        new: &[SiteEntry],
        is_same: impl Fn(&SiteEntry, &SiteEntry) -> bool,
        pauses: &Pauses,
        now: Timestamp,
    ) -> Vec<SiteEntry> {
        let new = if have_same_hosts(before, new) {
            new
        } else {
            &[]
        };
        let mut meanwhile = Vec::new();
        for before in before {
            let new = new.iter().find(|new| new.site.name == before.site.name);
            if let Some(new) = new.filter(|new| is_same(before, new)) {
                meanwhile.push(new.clone());
                continue;
            }
            let mixed = new.and_then(|new| self.of_site(before, new, now));
            meanwhile.push(match (new, mixed.filter(|mixed| is_same(before, mixed))) {
                (Some(new), Some(mixed)) => mixed.with_page_pauses(pauses.of(&new.site, now)),
                _ => before
                    .clone()
                    .with_page_pauses(pauses.of(&before.site, now)),
            });
        }
        meanwhile
    }

    /// The site in force with the parts of its new policy that do not wait. Compiles it once for
    /// each new site, and keeps it for the next attempts. Where its tag rules are not those of
    /// `new`, all tags count as changed now. `None` where it cannot be compiled.
    fn of_site(
        &mut self,
        before: &SiteEntry,
        new: &SiteEntry,
        now: Timestamp,
    ) -> Option<SiteEntry> {
        let site = match self
            .0
            .iter()
            .find(|(waits, _)| Arc::ptr_eq(waits, &new.site))
        {
            Some((_, site)) => site.clone(),
            None => {
                let policy = Arc::new(meanwhile(&before.site.policy, &new.site.policy));
                let site = compile_with_origin(
                    policy,
                    &before.site.origin_known(),
                    Registry::builtin(),
                    now,
                )
                .ok()
                .map(Arc::new)?;
                self.0.retain(|(waits, _)| waits.name != site.name);
                self.0.push((new.site.clone(), site.clone()));
                site
            }
        };
        let tag_ages = if site.tags.identities().eq(new.site.tags.identities()) {
            new.tag_ages.clone()
        } else {
            // Crawlers are sent every page whole.
            TagAges {
                everywhere: Some(now),
                ..TagAges::default()
            }
        };
        Some(SiteEntry {
            site,
            tag_ages,
            ..before.clone()
        })
    }
}

/// Whether the new sites have the names of those in force, and each has the same hosts in the same
/// order.
fn have_same_hosts(before: &[SiteEntry], new: &[SiteEntry]) -> bool {
    before.len() == new.len()
        && new.iter().all(|new| {
            let mut before = before.iter();
            before.any(|before| before.site.name == new.site.name && hosts(before).eq(hosts(new)))
        })
}

fn hosts(entry: &SiteEntry) -> impl Iterator<Item = &HostPattern> {
    entry.site.policy.hosts.iter().map(|host| &host.value)
}

/// The policy in force, with these parts of the new one, which do not wait: indexing, the origin's
/// tags, HTML, pauses, answers, and enforcement except `grace`, `traps` and `behind_cache`. The
/// source text is that of the policy in force, because explanations show its rules of robots.txt.
fn meanwhile(before: &Policy, new: &Policy) -> Policy {
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
