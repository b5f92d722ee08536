//! [`SiteCatalog`]: the sites in force and the policy files, by name. [`SiteCatalog::apply`]
//! applies a planned change of a policy file ([`SiteChange`]). The other methods apply changes by
//! the clock, by the origin's robots.txt, and by operators.

use super::default_sites::{DefaultSite, unclaimed_hosts};
use super::memory::SiteMemory;
use super::origins::OriginFiles;
use super::pauses::{PauseError, PauseRequest};
use super::policy_directory::PolicyText;
use super::policy_file::{
    Candidate, InForce, KnownFile, PolicyOrigin, ReloadOutcome, SiteCompiler,
};
use super::status::SiteStatus;
use crate::crawlers::Registry;
use crate::facts::{Fact, Pause};
use crate::finding::Finding;
use crate::policy::origin::{Origin, OriginFile};
use crate::policy::{Site, SiteEntry, Snapshot, compile_with_origin};
use crate::publications::PublicationLog;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A planned change of one site.
pub struct SiteChange {
    /// The site.
    pub site: String,
    /// Its policy file, compiled anew. `None` where the file is gone.
    pub file: Option<Claim>,
}

/// A policy file that was compiled for a change.
pub struct Claim {
    /// Its text, if it could be read.
    pub text: PolicyText,
    /// What was compiled from it. It has a site if the file comes into force.
    pub candidate: Candidate,
    /// The site that has one of its hosts.
    pub conflicts_with: Option<String>,
    /// The last good policy of the state store, where nothing else is in force.
    pub copy: Option<Arc<Site>>,
}

/// All sites and policy files, by name.
pub struct SiteCatalog {
    /// Compiles policies.
    pub compiler: SiteCompiler,
    /// The policy files.
    pub files: BTreeMap<String, KnownFile>,
    /// The sites in force because there is no policy.
    pub default_sites: BTreeMap<String, SiteEntry>,
    /// The sites in force whenever there is no policy, in the order of the settings.
    pub listed_default_sites: Vec<DefaultSite>,
    /// What is known of the origins' robots.txt files.
    pub origins: OriginFiles,
    /// What outlasts a restart.
    pub memory: SiteMemory,
}

impl SiteCatalog {
    /// Applies a change of one policy file, and returns the outcome. Without a file the site ends,
    /// and its tags and last good policy are forgotten (`Removed`). Else the first of these is in
    /// force: the site of the new text, which also becomes the last good policy; the stored copy;
    /// what was in force before. The outcome is `Added` where nothing of this file was in force
    /// before.
    pub fn apply(&mut self, change: SiteChange, now: Timestamp) -> ReloadOutcome {
        let SiteChange { site: name, file } = change;
        let before = self.files.remove(&name).and_then(|known| known.in_force);
        let Some(Claim {
            text,
            candidate,
            conflicts_with,
            copy,
        }) = file
        else {
            self.memory.forget(&name);
            return ReloadOutcome::Removed;
        };
        let is_added = before.is_none();
        let findings = candidate.findings();
        let rendered = candidate.rendered();
        let in_force = match (candidate.site, copy) {
            (Some(site), _) => {
                if let Ok(source) = &text {
                    self.memory
                        .last_good
                        .insert(name.clone(), source.text.clone());
                }
                Some(InForce {
                    entry: self.bring_into_force(site, now),
                    origin: PolicyOrigin::File,
                })
            }
            (None, Some(copy)) => Some(InForce {
                entry: self.bring_into_force(copy, now),
                origin: PolicyOrigin::Store,
            }),
            (None, None) => before.map(|mut before| {
                if before.origin == PolicyOrigin::File {
                    before.origin = PolicyOrigin::Earlier;
                }
                before
            }),
        };
        let file = KnownFile {
            text,
            findings,
            rendered,
            in_force,
            conflicts_with,
        };
        let outcome = match file.outcome_when_unchanged() {
            ReloadOutcome::Unchanged if is_added => ReloadOutcome::Added,
            ReloadOutcome::Unchanged => ReloadOutcome::Replaced,
            outcome => outcome,
        };
        self.files.insert(name, file);
        outcome
    }

    /// Puts these sites into force as the default sites, in place of all default sites before. Logs
    /// the hosts of the former default sites that no site of a policy file has.
    pub fn apply_default_sites(&mut self, sites: Vec<Arc<Site>>, now: Timestamp) {
        let of_files = self.files.values().filter_map(|file| file.entry().cloned());
        let of_files = Snapshot::new(of_files.collect(), 0);
        let ended = std::mem::take(&mut self.default_sites).into_values();
        let unclaimed: Vec<String> = ended
            .flat_map(|entry| unclaimed_hosts(&entry.site.policy, &of_files))
            .collect();
        if !unclaimed.is_empty() {
            tracing::warn!(
                hosts = %unclaimed.join(", "),
                "a policy is in force now, and none is for these hosts: crawlgate forwards their requests and observes no crawler there"
            );
        }
        for site in sites {
            let entry = self.bring_into_force(site, now);
            self.default_sites.insert(entry.site.name.clone(), entry);
        }
    }

    /// Records in the memory (origin copies, planned pauses, tag rules) that a site comes into
    /// force, and returns its entry with the ages of its tags. Does not put the entry into the
    /// catalog.
    fn bring_into_force(&mut self, site: Arc<Site>, now: Timestamp) -> SiteEntry {
        self.origins
            .note(&site, self.default_sites.contains_key(&site.name), now);
        self.memory.pauses.note(&site, now);
        SiteEntry {
            tag_ages: self.memory.tags.follow(&site, now),
            ..SiteEntry::new(site, now)
        }
    }

    /// Puts a newly compiled site into force in place of the site of the same name: that of its
    /// policy file if one is in force, else the default site. With neither, it is not put into the
    /// catalog.
    fn replace(&mut self, site: Arc<Site>, now: Timestamp) {
        let entry = self.bring_into_force(site, now);
        let name = &entry.site.name;
        let in_file = self
            .files
            .get_mut(name)
            .and_then(|file| Some(&mut file.in_force.as_mut()?.entry));
        if let Some(place) = in_file.or_else(|| self.default_sites.get_mut(name)) {
            *place = entry;
        }
    }

    /// Compiles each site anew whose `next_switch` (the next stage of `retire`, say) has come, and
    /// returns their names. A site that cannot be compiled stays as it is, and the log has an
    /// error. The policy in force is compiled, not the file: the file may have a mistake, or may
    /// have changed a moment ago.
    pub fn keep_time(&mut self, now: Timestamp) -> Vec<String> {
        let mut switched = Vec::new();
        for site in self.sites(|site| site.next_switch.is_some_and(|switch| switch <= now)) {
            match compile_with_origin(
                site.policy.clone(),
                &site.origin_known(),
                Registry::builtin(),
                now,
            ) {
                Ok(next) => {
                    switched.push(site.name.clone());
                    self.replace(Arc::new(next), now);
                }
                // It compiled at the end of its plan when it was loaded.
                Err(error) => {
                    tracing::error!(site = %site.name, %error, "the next stage of `retire` cannot be compiled: the site stays as it is");
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
    /// The site could not be used with it: the findings. Everything stays as it was.
    pub fn origin_says(
        &mut self,
        name: &str,
        file: Arc<OriginFile>,
        now: Timestamp,
    ) -> Result<bool, Vec<Finding>> {
        let Some(before) = self
            .site(name)
            .filter(|site| site.policy.reads_origin())
            .cloned()
        else {
            return Ok(false);
        };
        let candidate = self.recompile(&before, &Origin::Read(file.clone()), now);
        let Some(site) = candidate.site.clone() else {
            return Err(candidate.refusals());
        };
        // With the same octets the rules stay, and so does what is known of the front page.
        if before
            .origin
            .as_ref()
            .is_some_and(|known| known.file.bytes() == file.file.bytes())
        {
            site.front_page.go_on_from(&before.front_page);
        }
        self.origins.set(name, file);
        self.replace(site, now);
        Ok(true)
    }

    /// For a wall clock that was set by so many seconds (negative: back): moves the ends of waiting
    /// for origins' files with it, and compiles the sites that wait. Returns whether one of them
    /// was replaced; one that cannot be compiled stays as it is.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) -> bool {
        self.origins.apply_clock_step(by, now);
        let mut changed = false;
        for before in self.sites(|site| site.robots_txt.awaits_origin_until.is_some()) {
            if let Some(site) = self
                .recompile(&before, &self.origins.of(&before.name, now), now)
                .site
            {
                site.front_page.go_on_from(&before.front_page);
                self.replace(site, now);
                changed = true;
            }
        }
        changed
    }

    /// Compiles the text of the policy in force anew, with this state of the origin's robots.txt.
    /// Puts nothing into force.
    fn recompile(&self, site: &Site, origin: &Origin, now: Timestamp) -> Candidate {
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
        let sites = self.named(request.site.as_deref())?;
        self.memory.pauses.pause(sites, request, now)
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
        let mut resumed = self.named(site)?;
        resumed.retain(|name| {
            self.site(name)
                .cloned()
                .is_some_and(|site| self.memory.pauses.resume(&site, now))
        });
        Ok(resumed)
    }

    /// Applies what an operator did with the pauses of a site at another instance: begins a pause,
    /// also for a site that has no policy here yet, or ends the pauses of a site that is in force
    /// here.
    pub fn apply_pause(&mut self, change: &Fact<Pause>) {
        let pause = &change.fact;
        if !change.is_removal {
            self.memory.pauses.switch_on(pause);
        } else if let Some(site) = self.site(&pause.site).cloned() {
            self.memory.pauses.resume(&site, change.at);
        }
    }

    /// The names of the sites that an operator means: of the one that is named, or of all in force.
    ///
    /// # Errors
    /// No such site is in force, or, without a name, no site at all.
    fn named(&self, site: Option<&str>) -> Result<Vec<String>, PauseError> {
        let sites: Vec<String> = self
            .entries()
            .map(|entry| entry.site.name.clone())
            .collect();
        match site {
            None if sites.is_empty() => Err(PauseError::NoSite),
            None => Ok(sites),
            Some(site) if sites.iter().any(|name| name == site) => Ok(vec![site.to_owned()]),
            Some(site) => Err(PauseError::UnknownSite {
                site: site.to_owned(),
                sites,
            }),
        }
    }

    /// Drops pauses that are over, and the copies of origins whose sites are neither in force nor
    /// in the publication log.
    pub fn prune(&mut self, log: &PublicationLog, now: Timestamp) {
        let in_force = self.sites(|_| true);
        self.memory
            .pauses
            .prune(in_force.iter().map(|site| &**site), now);
        self.origins.forget(
            &in_force.iter().map(|site| site.name.clone()).collect(),
            log,
        );
    }

    /// The sites in force.
    pub fn entries(&self) -> impl Iterator<Item = &SiteEntry> {
        self.files
            .values()
            .filter_map(KnownFile::entry)
            .chain(self.default_sites.values())
    }

    fn sites(&self, is_meant: impl Fn(&Site) -> bool) -> Vec<Arc<Site>> {
        self.entries()
            .map(|entry| entry.site.clone())
            .filter(|site| is_meant(site))
            .collect()
    }

    /// The site of this name that is in force.
    pub fn site(&self, name: &str) -> Option<&Arc<Site>> {
        let in_file = self.files.get(name).and_then(KnownFile::entry);
        in_file
            .or_else(|| self.default_sites.get(name))
            .map(|entry| &entry.site)
    }

    /// The status of each policy file and default site. `is_readable` says whether the directory
    /// could be read.
    pub fn files(&self, is_readable: bool) -> Vec<SiteStatus> {
        let of_files = self.files.iter().map(|(site, file)| SiteStatus {
            site: site.clone(),
            reload_ok: is_readable && file.is_active(),
            removed: file.is_missing(),
            last_good_copy: file.origin() == Some(PolicyOrigin::Store),
            conflicts_with: file.conflicts_with.clone(),
            findings: file.findings.clone(),
            ..SiteStatus::default()
        });
        // A refused file may have the name of a default site. Then its status is shown, which has
        // the findings.
        let without_file = self
            .default_sites
            .keys()
            .filter(|site| !self.files.contains_key(*site));
        let of_default_sites = without_file.map(|site| SiteStatus {
            site: site.clone(),
            reload_ok: is_readable,
            ..SiteStatus::default()
        });
        of_files.chain(of_default_sites).collect()
    }
}
