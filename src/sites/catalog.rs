//! [`SiteCatalog`]: the sites in force and their policy files, by the name of the site.
//! [`SiteCatalog::apply`] applies the change of one policy file ([`PlannedSiteChange`]). Other
//! methods apply changes that come from the clock, from the origin's robots.txt, or from operators.

use super::default_sites::DefaultSite;
use super::origins::OriginRobotsFiles;
use super::pauses::{PauseError, PauseRequest};
use super::policy_directory::{PolicyText, policy_path};
use super::policy_file::{
    ActivePolicy, CompiledPolicy, PolicyFile, PolicySource, ReloadOutcome, SiteCompiler,
};
use super::status::SiteStatus;
use super::stored_state::StoredSitesState;
use crate::crawlers::Registry;
use crate::facts::{Fact, PauseRecord};
use crate::finding::Finding;
use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crate::policy::{Site, SiteEntry, compile_with_origin};
use crate::publications::PublicationLog;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

use PolicySource::*;
use ReloadOutcome::*;

/// A planned change of one site.
pub struct PlannedSiteChange {
    /// The site.
    pub site: String,
    /// Its newly compiled policy file; `None` if the site ends.
    pub file: Option<ChangedFile>,
}

/// A policy file that was read and compiled for a change.
pub struct ChangedFile {
    /// Its text, or why it cannot be read.
    pub text: PolicyText,
    /// The result of compiling it. It has a site if the file comes into force.
    pub compiled: CompiledPolicy,
    /// The site that has one of its hosts.
    pub conflicts_with: Option<String>,
    /// The site of the stored last good policy, if nothing else is in force.
    pub last_good: Option<Arc<Site>>,
}

/// All sites and policy files, by the name of the site.
pub struct SiteCatalog {
    /// Compiles policies.
    pub compiler: SiteCompiler,
    /// The policy files.
    pub files: BTreeMap<String, PolicyFile>,
    /// The default sites in force. Empty while a policy is in force.
    pub default_sites: BTreeMap<String, SiteEntry>,
    /// The default sites to use without a policy, in the order of the settings.
    pub listed_default_sites: Vec<DefaultSite>,
    /// The copies of the origins' robots.txt files.
    pub origins: OriginRobotsFiles,
    /// The state that outlasts a restart.
    pub stored_state: StoredSitesState,
}

impl SiteCatalog {
    /// Applies a change of one policy file, and returns the outcome. Without a file the site ends,
    /// and its tags and last good policy are removed (`Removed`). Otherwise the first of these is in
    /// force: the site of the new text, which also becomes the last good policy; the stored last
    /// good policy; the policy in force before. The outcome is `Added` if nothing of this file was
    /// in force before.
    pub fn apply(&mut self, change: PlannedSiteChange, now: Timestamp) -> ReloadOutcome {
        let PlannedSiteChange { site: name, file } = change;
        let before = self.files.remove(&name).and_then(|known| known.active);
        let Some(ChangedFile {
            text,
            compiled,
            conflicts_with,
            last_good,
        }) = file
        else {
            self.stored_state.remove_site(&name);
            return Removed;
        };
        let is_added = before.is_none();
        let findings = compiled.findings();
        let rendered = compiled.render_errors();
        let active = match (compiled.site, last_good) {
            (Some(site), _) => {
                if let Ok(source) = &text {
                    self.stored_state
                        .last_good
                        .insert(name.clone(), source.text.clone());
                }
                Some(ActivePolicy {
                    entry: self.bring_into_force(site, now),
                    source: File,
                })
            }
            (None, Some(last_good)) => Some(ActivePolicy {
                entry: self.bring_into_force(last_good, now),
                source: Store,
            }),
            (None, None) => before.map(|mut before| {
                if before.source == File {
                    before.source = Earlier;
                }
                before
            }),
        };
        let file = PolicyFile {
            text,
            findings,
            rendered,
            active,
            conflicts_with,
        };
        let outcome = match file.unchanged_outcome() {
            Unchanged if is_added => Added,
            Unchanged => Replaced,
            outcome => outcome,
        };
        self.files.insert(name, file);
        outcome
    }

    /// Replaces all default sites by these.
    pub fn apply_default_sites(&mut self, sites: Vec<Arc<Site>>, now: Timestamp) {
        self.default_sites.clear();
        for site in sites {
            let entry = self.bring_into_force(site, now);
            self.default_sites.insert(entry.site.name.clone(), entry);
        }
    }

    /// Records that a site comes into force (origin copies, planned pauses, tag rules), and returns
    /// its entry with the ages of its tags. Does not put the entry into the catalog.
    fn bring_into_force(&mut self, site: Arc<Site>, now: Timestamp) -> SiteEntry {
        self.origins
            .record_site(&site, self.default_sites.contains_key(&site.name), now);
        self.stored_state.pauses.record_first_seen(&site, now);
        SiteEntry {
            tag_change_times: self.stored_state.tags.update_rules(&site, now),
            ..SiteEntry::new(site, now)
        }
    }

    /// Replaces the site of the same name in its policy file or among the default sites. Does
    /// nothing if neither is in force.
    fn replace(&mut self, site: Arc<Site>, now: Timestamp) {
        let entry = self.bring_into_force(site, now);
        let name = &entry.site.name;
        let in_file = self
            .files
            .get_mut(name)
            .and_then(|file| Some(&mut file.active.as_mut()?.entry));
        if let Some(place) = in_file.or_else(|| self.default_sites.get_mut(name)) {
            *place = entry;
        }
    }

    /// Recompiles each site whose `next_switch` (such as the next stage of `retire`) has come, and
    /// returns their names. A site that cannot be compiled stays as it is, and an error is logged.
    /// Compiles the policy in force, not the file, which may have a mistake.
    pub fn recompile_due_sites(&mut self, now: Timestamp) -> Vec<String> {
        let mut switched = Vec::new();
        for site in self.filter_sites(|site| site.next_switch.is_some_and(|switch| switch <= now)) {
            match compile_with_origin(
                site.policy.clone(),
                &site.origin_availability(),
                Registry::builtin(),
                now,
            ) {
                Ok(next) => {
                    switched.push(site.name.clone());
                    self.replace(Arc::new(next), now);
                }
                // Unlikely: loading a policy compiles all of its stages.
                Err(error) => {
                    tracing::error!(site = %site.name, %error, "the next stage of \"retire\" is not valid: the site \
                        stays as it is");
                }
            }
        }
        switched
    }

    /// Compiles a site with a new copy of its origin's robots.txt and puts it into force. Returns
    /// false, and changes nothing, if no such site is in force or its policy does not use the
    /// origin's file; true otherwise, even for the same bytes.
    ///
    /// # Errors
    /// The findings that speak against the copy. Everything stays as it was.
    pub fn set_origin_copy(
        &mut self,
        name: &str,
        file: Arc<OriginRobotsTxt>,
        now: Timestamp,
    ) -> Result<bool, Vec<Finding>> {
        let Some(before) = self
            .site(name)
            .filter(|site| site.policy.reads_origin())
            .cloned()
        else {
            return Ok(false);
        };
        let compiled = self.recompile(
            &before,
            &OriginRobotsAvailability::Available(file.clone()),
            now,
        );
        let Some(site) = compiled.site.clone() else {
            return Err(compiled.errors_with_help());
        };
        // With the same bytes the rules stay, and so do the recorded tags of the front page.
        if before
            .origin
            .as_ref()
            .is_some_and(|known| known.file.bytes() == file.file.bytes())
        {
            site.front_page.copy_from(&before.front_page);
        }
        if let Some(policy) = self.files.get_mut(name).filter(|file| file.is_active()) {
            policy.findings = compiled.findings();
        }
        self.origins.insert(name, file);
        self.replace(site, now);
        Ok(true)
    }

    /// Call after the wall clock was set by so many seconds (negative: back). Moves the ends of
    /// waiting for origins' files, and recompiles the sites that wait. Returns whether one of them
    /// was replaced; one that cannot be compiled stays as it is.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) -> bool {
        self.origins.apply_clock_step(by, now);
        let mut changed = false;
        for before in self.filter_sites(|site| site.robots_txt.awaits_origin_until.is_some()) {
            if let Some(site) = self
                .recompile(&before, &self.origins.for_site(&before.name, now), now)
                .site
            {
                site.front_page.copy_from(&before.front_page);
                self.replace(site, now);
                changed = true;
            }
        }
        changed
    }

    /// Compiles the policy in force with this state of the origin's robots.txt. Puts nothing into
    /// force.
    fn recompile(
        &self,
        site: &Site,
        origin: &OriginRobotsAvailability,
        now: Timestamp,
    ) -> CompiledPolicy {
        self.compiler
            .compile(&site.name, &Ok(site.policy.source.clone()), origin, now)
    }

    /// Pauses the sites that a request names, and returns the end of the pause.
    ///
    /// # Errors
    /// See [`PauseError`].
    pub fn pause(
        &mut self,
        request: &PauseRequest,
        now: Timestamp,
    ) -> Result<Timestamp, PauseError> {
        let sites = self.select_sites(request.site.as_deref())?;
        if sites.len() > 1 && !request.all {
            return Err(PauseError::SeveralSites(sites));
        }
        self.stored_state.pauses.pause_sites(sites, request, now)
    }

    /// Ends the pauses of a site, or of all sites without a name. Returns the names of those that
    /// were paused at `now`.
    ///
    /// # Errors
    /// No such site, or no site at all.
    pub fn resume(
        &mut self,
        site: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<String>, PauseError> {
        let mut resumed = self.select_sites(site)?;
        resumed.retain(|name| {
            self.site(name)
                .cloned()
                .is_some_and(|site| self.stored_state.pauses.resume_site(&site, now))
        });
        Ok(resumed)
    }

    /// Applies what an operator did with the pauses of a site at another instance. A pause begins
    /// also for a site that has no policy here yet.
    pub fn apply_peer_pause(&mut self, change: &Fact<PauseRecord>) {
        let pause = &change.fact;
        if !change.is_removal {
            self.stored_state.pauses.apply_peer_pause(pause);
        } else if let Some(site) = self.site(&pause.site).cloned() {
            self.stored_state.pauses.resume_site(&site, change.at);
        }
    }

    /// The named site, or without a name all sites in force.
    ///
    /// # Errors
    /// No such site is in force, or, without a name, no site at all.
    fn select_sites(&self, site: Option<&str>) -> Result<Vec<String>, PauseError> {
        let sites: Vec<String> = self
            .entries()
            .map(|entry| entry.site.name.clone())
            .collect();
        match site.map(str::to_owned) {
            None if sites.is_empty() => Err(PauseError::NoSite),
            None => Ok(sites),
            Some(site) if sites.contains(&site) => Ok(vec![site]),
            Some(site) => Err(PauseError::UnknownSite { site, sites }),
        }
    }

    /// Removes pauses that are over, and the origin copies of sites that are neither in force nor in
    /// the publication log.
    pub fn prune(&mut self, log: &PublicationLog, now: Timestamp) {
        let active = self.filter_sites(|_| true);
        self.stored_state
            .pauses
            .prune(active.iter().map(|site| &**site), now);
        self.origins
            .retain_sites(&active.iter().map(|site| site.name.clone()).collect(), log);
    }

    /// The sites in force.
    pub fn entries(&self) -> impl Iterator<Item = &SiteEntry> {
        self.files
            .values()
            .filter_map(PolicyFile::entry)
            .chain(self.default_sites.values())
    }

    fn filter_sites(&self, is_selected: impl Fn(&Site) -> bool) -> Vec<Arc<Site>> {
        self.entries()
            .map(|entry| entry.site.clone())
            .filter(|site| is_selected(site))
            .collect()
    }

    /// The site of this name that is in force.
    pub fn site(&self, name: &str) -> Option<&Arc<Site>> {
        self.files
            .get(name)
            .and_then(PolicyFile::entry)
            .or_else(|| self.default_sites.get(name))
            .map(|entry| &entry.site)
    }

    /// The status of each policy file and default site. `is_readable`: whether the directory could
    /// be read.
    pub fn file_status(&self, is_readable: bool) -> Vec<SiteStatus> {
        let with_files = self.files.iter().map(|(site, file)| SiteStatus {
            site: site.clone(),
            file: policy_path(&file.text),
            reload_ok: is_readable && file.is_active(),
            removed: file.is_missing(),
            last_good_copy: file.source() == Some(Store),
            conflicts_with: file.conflicts_with.clone(),
            findings: file.findings.clone(),
            ..SiteStatus::default()
        });
        // A rejected file may have the name of a default site. Its status has the findings.
        let without_file = self
            .default_sites
            .keys()
            .filter(|site| !self.files.contains_key(*site));
        let default_sites = without_file.map(|site| SiteStatus {
            site: site.clone(),
            reload_ok: is_readable,
            ..SiteStatus::default()
        });
        with_files.chain(default_sites).collect()
    }
}
