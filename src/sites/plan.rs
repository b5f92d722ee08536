//! [`plan`] computes the changes that bring the catalog up to the policy files. It compiles the
//! files that changed, and settles which site has which host. It changes nothing itself: the
//! catalog applies the resulting [`SiteChange`]s.

use super::catalog::{Claim, SiteCatalog, SiteChange};
use super::host_owners::HostOwners;
use super::origins::awaited_since;
use super::policy_directory::{PolicyText, is_removed};
use super::policy_file::{Candidate, KnownFile};
use crate::policy::Site;
use crate::publications::PublicationLog;
use crate::time::Timestamp;
use crate::yaml::Source;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The changes that bring the catalog up to the policy files that were found. Unchanged files are
/// left out, with two exceptions: files that were refused because another site had a host of
/// theirs, and, with `has_other_files`, files that name others of the directory. A file that is
/// gone is among `found` while its policy is to stay in force; it gives way to files that have all
/// its hosts. Sites that end come first, because their hosts are free for others.
pub fn plan(
    found: BTreeMap<String, PolicyText>,
    has_other_files: bool,
    catalog: &SiteCatalog,
    log: &PublicationLog,
    now: Timestamp,
) -> Vec<SiteChange> {
    let removed: Vec<String> = catalog
        .files
        .keys()
        .filter(|name| !found.contains_key(*name))
        .cloned()
        .collect();
    let missing: Vec<String> = found
        .iter()
        .filter(|(_, text)| is_removed(text))
        .map(|(name, _)| name.clone())
        .collect();
    let mut claims = BTreeMap::new();
    for (name, text) in found {
        let is_as_it_was = catalog.files.get(&name).is_some_and(|known| {
            let names_files = known
                .entry()
                .is_some_and(|entry| entry.site.policy.names_files());
            known.text == text
                && known.conflicts_with.is_none()
                && !(has_other_files && names_files)
        });
        if !is_as_it_was {
            let candidate = compile_for_hosts(catalog, &name, &text, log, now);
            claims.insert(
                name,
                Claim {
                    text,
                    candidate,
                    conflicts_with: None,
                    copy: None,
                },
            );
        }
    }
    let replaced = Settling {
        catalog,
        log,
        now,
        removed: &removed,
        missing: &missing,
    }
    .settle(&mut claims);
    claims.retain(|name, _| !replaced.contains(name));
    let claims = claims.into_iter().map(|(site, claim)| SiteChange {
        site,
        file: Some(claim),
    });
    removed
        .into_iter()
        .chain(replaced)
        .map(|site| SiteChange { site, file: None })
        .chain(claims)
        .collect()
}

/// The default sites that are to be in force; `None` where they stay as they are. As soon as a
/// policy is in force there are none. They begin only where there is no policy file at all, not
/// even a refused one, and no default site yet. One that cannot be compiled is left out and logged.
pub fn plan_default_sites(
    catalog: &SiteCatalog,
    log: &PublicationLog,
    now: Timestamp,
) -> Option<Vec<Arc<Site>>> {
    if catalog.files.values().any(|file| file.in_force.is_some()) {
        return (!catalog.default_sites.is_empty()).then(Vec::new);
    }
    if !catalog.files.is_empty() || !catalog.default_sites.is_empty() {
        return None;
    }
    let mut sites = Vec::new();
    for default in &catalog.listed_default_sites {
        let candidate = compile_for_hosts(catalog, &default.name, &Ok(default.source()), log, now);
        match candidate.site {
            Some(site) => sites.push(site),
            None => {
                tracing::error!(
                    site = %default.name,
                    findings = ?candidate.findings(),
                    "these hosts of the settings cannot be the hosts of a site: crawlgate observes no crawler there"
                );
            }
        }
    }
    Some(sites)
}

/// Compiles a file with what is known of its origin's robots.txt: where another site had its host
/// until now, with that site's copy. The hosts are known only after a first compilation, so it may
/// compile twice.
fn compile_for_hosts(
    catalog: &SiteCatalog,
    name: &str,
    text: &PolicyText,
    log: &PublicationLog,
    now: Timestamp,
) -> Candidate {
    // A site without a policy that happens to have the file's name may be another host's.
    let origin = if catalog.default_sites.contains_key(name) {
        awaited_since(now)
    } else {
        catalog.origins.of(name, now)
    };
    let candidate = catalog.compiler.compile(name, text, &origin, now);
    let before = catalog.site(name).map(|site| &**site);
    match candidate
        .site
        .as_ref()
        .and_then(|site| catalog.origins.inherited(site, before, log, now))
    {
        Some(origin) => catalog.compiler.compile(name, text, &origin, now),
        None => candidate,
    }
}

/// Decides which site gets each host.
struct Settling<'a> {
    catalog: &'a SiteCatalog,
    log: &'a PublicationLog,
    now: Timestamp,
    removed: &'a [String],
    /// The sites whose files are gone and whose policies are to stay in force.
    missing: &'a [String],
}

impl Settling<'_> {
    /// Decides which claims get their hosts, and marks the others as refused. A host belongs to one
    /// site. What is in force keeps its hosts, unless its own file gives them up; of two new claims
    /// the one of the later name is refused. A refused file leaves its site as it was, which may
    /// put others in the wrong, so this is repeated until no claim is refused. Then takes the
    /// stored copies. Returns the sites whose files are gone and whose hosts other files have:
    /// these end.
    fn settle(&self, claims: &mut BTreeMap<String, Claim>) -> Vec<String> {
        loop {
            let mut replaced = self.replaced(claims);
            let mut owners = self.owners_in_force(claims, &replaced);
            let mut refused = Vec::new();
            for (name, claim) in claims.iter() {
                let Some(site) = &claim.candidate.site else {
                    continue;
                };
                match owners.conflict(site) {
                    Some(conflict) => refused.push((name.clone(), conflict)),
                    None => owners.add(site),
                }
            }
            if refused.is_empty() {
                replaced.extend(self.take_copies(claims, &mut owners));
                return replaced;
            }
            for (name, conflict) in refused {
                if let Some(claim) = claims.get_mut(&name) {
                    claim
                        .candidate
                        .refuse(&conflict, self.missing.contains(&conflict.owner));
                    claim.conflicts_with = Some(conflict.owner);
                }
            }
        }
    }

    /// The sites in force whose files are gone, and whose hosts are all claimed by other files.
    fn replaced(&self, claims: &BTreeMap<String, Claim>) -> Vec<String> {
        let mut claimed = HostOwners::default();
        for site in claims
            .values()
            .filter_map(|claim| claim.candidate.site.as_ref())
        {
            claimed.add(site);
        }
        let mut replaced = self.missing.to_vec();
        replaced.retain(|name| {
            let entry = self.catalog.files.get(name).and_then(KnownFile::entry);
            entry.is_some_and(|entry| claimed.have_all_of(&entry.site))
        });
        replaced
    }

    /// The owners of hosts among the sites in force that stay as they are: those that neither end
    /// (`removed`, `replaced`) nor have a new site among the claims.
    fn owners_in_force(&self, claims: &BTreeMap<String, Claim>, replaced: &[String]) -> HostOwners {
        let gone: Vec<&String> = self.removed.iter().chain(replaced).collect();
        let mut owners = HostOwners::default();
        for (name, file) in &self.catalog.files {
            let is_replaced = claims
                .get(name)
                .is_some_and(|claim| claim.candidate.site.is_some());
            if let Some(entry) = file
                .entry()
                .filter(|_| !is_replaced && !gone.contains(&name))
            {
                owners.add(&entry.site);
            }
        }
        owners
    }

    /// Gives a claim without a site its last good policy as `copy`, if the catalog does not have
    /// the file yet (at the start) and the hosts of the copy are free; these become its own in
    /// `owners`. Returns the sites whose files are gone and whose hosts all have other owners.
    fn take_copies(
        &self,
        claims: &mut BTreeMap<String, Claim>,
        owners: &mut HostOwners,
    ) -> Vec<String> {
        let mut replaced = Vec::new();
        for (name, claim) in claims
            .iter_mut()
            .filter(|(_, claim)| claim.candidate.site.is_none())
        {
            if self.catalog.files.contains_key(name) {
                continue;
            }
            let Some(text) = self.catalog.memory.last_good.get(name) else {
                continue;
            };
            let source = Source {
                name: format!("the last good policy of {name}").into(),
                text: text.clone(),
            };
            let copy = compile_for_hosts(self.catalog, name, &Ok(source), self.log, self.now).site;
            if self.missing.contains(name)
                && copy.as_ref().is_some_and(|copy| owners.have_all_of(copy))
            {
                replaced.push(name.clone());
                continue;
            }
            claim.copy = copy.filter(|copy| owners.conflict(copy).is_none());
            if let Some(copy) = &claim.copy {
                owners.add(copy);
            }
        }
        replaced
    }
}
