//! [`plan_changes`] plans a reload of the policies: it compares the policy files with the catalog
//! of the sites in force, compiles the files that changed, and decides which site gets each host.
//! It changes nothing itself; the catalog applies the resulting [`PlannedSiteChange`]s.

use super::catalog::{ChangedFile, PlannedSiteChange, SiteCatalog};
use super::host_owners::HostOwners;
use super::origins::awaited_origin;
use super::policy_directory::{PolicyText, is_removed};
use super::policy_file::{CompiledPolicy, PolicyFile};
use crate::policy::Site;
use crate::publications::PublicationLog;
use crate::time::Timestamp;
use crate::yaml::SourceFile;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The changes that bring the catalog up to the policy files that were found. Unchanged files are
/// left out, except those that were rejected because another site had one of their hosts, and, with
/// `included_files_changed`, those that name other files of the directory. A missing file is among
/// `found` as long as its last good policy stays in force; it ends once other files have all its
/// hosts. Sites that end come first, so that their hosts are free.
pub fn plan_changes(
    found: BTreeMap<String, PolicyText>,
    included_files_changed: bool,
    catalog: &SiteCatalog,
    log: &PublicationLog,
    now: Timestamp,
) -> Vec<PlannedSiteChange> {
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
    let mut compiled_files = BTreeMap::new();
    for (name, text) in found {
        let is_unchanged = catalog.files.get(&name).is_some_and(|known| {
            let has_included_files = known
                .entry()
                .is_some_and(|entry| entry.site.policy.has_included_files());
            known.text == text
                && known.conflicts_with.is_none()
                && !(included_files_changed && has_included_files)
        });
        if !is_unchanged {
            let compiled = compile_with_known_origin(catalog, &name, &text, log, now);
            compiled_files.insert(
                name,
                ChangedFile {
                    text,
                    compiled,
                    conflicts_with: None,
                    last_good: None,
                },
            );
        }
    }
    let replaced = HostAssigner {
        catalog,
        log,
        now,
        removed: &removed,
        missing: &missing,
    }
    .assign_hosts(&mut compiled_files);
    compiled_files.retain(|name, _| !replaced.contains(name));
    let compiled_files = compiled_files
        .into_iter()
        .map(|(site, file)| PlannedSiteChange {
            site,
            file: Some(file),
        });
    removed
        .into_iter()
        .chain(replaced)
        .map(|site| PlannedSiteChange { site, file: None })
        .chain(compiled_files)
        .collect()
}

/// The new default sites; `None` if nothing changes. There are none as soon as a policy is in force.
/// They begin only if there is no policy file at all, not even a rejected one, and no default site
/// yet. One that cannot be compiled is left out and logged.
pub fn plan_default_sites(
    catalog: &SiteCatalog,
    log: &PublicationLog,
    now: Timestamp,
) -> Option<Vec<Arc<Site>>> {
    if catalog.files.values().any(|file| file.active.is_some()) {
        return (!catalog.default_sites.is_empty()).then(Vec::new);
    }
    if !catalog.files.is_empty() || !catalog.default_sites.is_empty() {
        return None;
    }
    let mut sites = Vec::new();
    for default in &catalog.listed_default_sites {
        let compiled = compile_with_known_origin(
            catalog,
            &default.name,
            &Ok(default.policy_source()),
            log,
            now,
        );
        match compiled.site {
            Some(site) => sites.push(site),
            None => {
                tracing::error!(
                    site = %default.name,
                    findings = ?compiled.findings(),
                    "these hosts of the settings cannot be a site: crawlgate watches no crawler there"
                );
            }
        }
    }
    Some(sites)
}

/// Compiles a file with the known copy of its origin's robots.txt. If another site had its host
/// until now, that is the copy of that site. The hosts are known only after a first compilation, so
/// it may compile twice.
fn compile_with_known_origin(
    catalog: &SiteCatalog,
    name: &str,
    text: &PolicyText,
    log: &PublicationLog,
    now: Timestamp,
) -> CompiledPolicy {
    // A default site of the same name may have another host.
    let origin = if catalog.default_sites.contains_key(name) {
        awaited_origin(now)
    } else {
        catalog.origins.for_site(name, now)
    };
    let compiled = catalog.compiler.compile(name, text, &origin, now);
    let before = catalog.site(name).map(|site| &**site);
    match compiled
        .site
        .as_ref()
        .and_then(|site| catalog.origins.inherited_origin(site, before, log, now))
    {
        Some(origin) => catalog.compiler.compile(name, text, &origin, now),
        None => compiled,
    }
}

/// Decides which site gets each host. Borrows what [`plan_changes`] knows.
struct HostAssigner<'a> {
    catalog: &'a SiteCatalog,
    log: &'a PublicationLog,
    now: Timestamp,
    removed: &'a [String],
    /// The sites whose files are gone and whose last good policies stay in force.
    missing: &'a [String],
}

impl HostAssigner<'_> {
    /// Rejects the files whose hosts belong to another site. A site in force keeps its hosts unless
    /// its own file gives them up; of two new files the one with the later name is rejected. A
    /// rejected file leaves its site as it was, which may create new conflicts, so this is repeated
    /// until no file is rejected. Then assigns the last good policies. Returns the missing sites
    /// that end because other files have all their hosts.
    fn assign_hosts(&self, compiled_files: &mut BTreeMap<String, ChangedFile>) -> Vec<String> {
        loop {
            let mut replaced = self.fully_replaced(compiled_files);
            let mut owners = self.owners_in_force(compiled_files, &replaced);
            let mut rejected = Vec::new();
            for (name, file) in compiled_files.iter() {
                let Some(site) = &file.compiled.site else {
                    continue;
                };
                match owners.find_conflict(site) {
                    Some(conflict) => rejected.push((name.clone(), conflict)),
                    None => owners.insert_site(site),
                }
            }
            if rejected.is_empty() {
                replaced.extend(self.assign_last_good(compiled_files, &mut owners));
                return replaced;
            }
            for (name, conflict) in rejected {
                if let Some(file) = compiled_files.get_mut(&name) {
                    file.compiled.reject_for_conflict(
                        &conflict,
                        self.missing.contains(&conflict.owner.name),
                    );
                    file.conflicts_with = Some(conflict.owner.name.clone());
                }
            }
        }
    }

    /// The missing sites whose hosts are all in other files.
    fn fully_replaced(&self, compiled_files: &BTreeMap<String, ChangedFile>) -> Vec<String> {
        let mut claimed = HostOwners::default();
        for site in compiled_files
            .values()
            .filter_map(|file| file.compiled.site.as_ref())
        {
            claimed.insert_site(site);
        }
        let mut replaced = self.missing.to_vec();
        replaced.retain(|name| {
            let entry = self.catalog.files.get(name).and_then(PolicyFile::entry);
            entry.is_some_and(|entry| claimed.contains_all_hosts(&entry.site))
        });
        replaced
    }

    /// The owners of hosts among the sites that stay as they are: they neither end (`removed`,
    /// `replaced`) nor have a newly compiled site.
    fn owners_in_force(
        &self,
        compiled_files: &BTreeMap<String, ChangedFile>,
        replaced: &[String],
    ) -> HostOwners {
        let gone: Vec<&String> = self.removed.iter().chain(replaced).collect();
        let mut owners = HostOwners::default();
        for (name, file) in &self.catalog.files {
            let is_replaced = compiled_files
                .get(name)
                .is_some_and(|file| file.compiled.site.is_some());
            if let Some(entry) = file
                .entry()
                .filter(|_| !is_replaced && !gone.contains(&name))
            {
                owners.insert_site(&entry.site);
            }
        }
        owners
    }

    /// At the start, gives each file that has no site its last good policy, if the hosts of that
    /// are free, and adds them to `owners`. Returns the missing sites whose hosts all have other
    /// owners.
    fn assign_last_good(
        &self,
        compiled_files: &mut BTreeMap<String, ChangedFile>,
        owners: &mut HostOwners,
    ) -> Vec<String> {
        let mut replaced = Vec::new();
        for (name, file) in compiled_files
            .iter_mut()
            .filter(|(_, file)| file.compiled.site.is_none())
        {
            if self.catalog.files.contains_key(name) {
                continue;
            }
            let Some(text) = self.catalog.stored_state.last_good.get(name) else {
                continue;
            };
            let source = SourceFile {
                name: format!("the last good policy of {name}").into(),
                text: text.clone(),
            };
            let copy =
                compile_with_known_origin(self.catalog, name, &Ok(source), self.log, self.now).site;
            if self.missing.contains(name)
                && copy
                    .as_ref()
                    .is_some_and(|copy| owners.contains_all_hosts(copy))
            {
                replaced.push(name.clone());
                continue;
            }
            file.last_good = copy.filter(|copy| owners.find_conflict(copy).is_none());
            if let Some(copy) = &file.last_good {
                owners.insert_site(copy);
            }
        }
        replaced
    }
}
