//! [`SiteUpdater`] reloads the policies: it reads the policy directory, applies what changed to the
//! [`SiteCatalog`], and publishes the result, so that requests are judged by it. The
//! [`SiteManager`](super::SiteManager) calls it under a lock.

use super::catalog::SiteCatalog;
use super::default_sites::DefaultSite;
use super::origins::{InitialOriginRobots, OriginRobotsFiles};
use super::plan::{plan_changes, plan_default_sites};
use super::policy_directory::{self, PolicyText, UnreadableFile, UnreadableReason, policy_path};
use super::policy_file::{ReloadOutcome, RemoveError, SiteCompiler, SiteReload};
use super::publisher::Publisher;
use super::same_robots::is_same_publication;
use super::status::SitesStatus;
use super::stored_state::StoredSitesState;
use super::{SiteLoadOptions, StartError};
use crate::facts::{FactSubscribers, diff_facts};
use crate::files::absolute_path;
use crate::finding::Finding;
use crate::policy::Snapshot;
use crate::state::{RestoredState, StateStore};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The state that only a change of the sites reads or writes.
pub struct SiteUpdater {
    policies: PathBuf,
    without_directory: Option<BTreeMap<String, PolicyText>>,
    pub catalog: SiteCatalog,
    pub publisher: Publisher,
    /// The stored state of the catalog as the store last got it.
    last_stored: StoredSitesState,
    last_reload: Timestamp,
    /// The problem with the directory itself.
    problem: Option<Finding>,
    /// Snapshots that requests may still use. They are freed here, so that no request spends time on
    /// it.
    pub former_snapshots: Vec<Arc<Snapshot>>,
}

impl SiteUpdater {
    /// The state before the first load, with the stored state of an earlier process. It has no
    /// policy file and no site yet. Without listed default sites there is one for every host.
    pub fn new(
        options: &SiteLoadOptions,
        store: &StateStore,
        restored: &RestoredState,
        compiler: SiteCompiler,
        now: Timestamp,
    ) -> SiteUpdater {
        let InitialOriginRobots {
            copies,
            default_sites,
            for_every_site,
            ..
        } = options.origins.clone();
        let stored_state = StoredSitesState::from_facts(&restored.facts);
        SiteUpdater {
            policies: options.policies.clone(),
            without_directory: options.without_directory.clone(),
            publisher: Publisher::new(store.clone(), restored, now),
            last_stored: stored_state.clone(),
            catalog: SiteCatalog {
                compiler,
                files: BTreeMap::new(),
                default_sites: BTreeMap::new(),
                listed_default_sites: if default_sites.is_empty() {
                    vec![DefaultSite::catch_all()]
                } else {
                    default_sites
                },
                origins: OriginRobotsFiles {
                    by_site: copies,
                    for_every_site,
                },
                stored_state,
            },
            last_reload: now,
            problem: None,
            former_snapshots: Vec::new(),
        }
    }

    /// Reads the policy directory and applies what changed, then what is due by the clock, then the
    /// default sites. Returns the outcome and the findings of each file, and whether requests need a
    /// new snapshot.
    ///
    /// # Errors
    /// The directory cannot be read: nothing changes, and the problem is kept for the status.
    pub fn load(&mut self, now: Timestamp) -> Result<(Vec<SiteReload>, bool), StartError> {
        self.last_reload = now;
        let found = self.read_directory();
        self.problem = found.as_ref().err().map(StartError::finding);
        let found = self.add_missing_files(found?);
        let files = policy_directory::read_included_files(&self.policies);
        let included_files_changed = files != self.catalog.compiler.files;
        self.catalog.compiler.files = files;
        let changes = plan_changes(
            found,
            included_files_changed,
            &self.catalog,
            &self.publisher.log,
            now,
        );
        let mut outcomes: BTreeMap<String, (ReloadOutcome, bool)> = self
            .catalog
            .files
            .iter()
            .map(|(name, file)| (name.clone(), (file.unchanged_outcome(), true)))
            .collect();
        let mut has_changed = false;
        // Sites that end come first in a plan, so that their hosts are free.
        for change in changes {
            let name = change.site.clone();
            let had = self.catalog.site(&name).cloned();
            let outcome = self.catalog.apply(change, now);
            let has = self.catalog.site(&name);
            has_changed |= had.as_ref().map(Arc::as_ptr) != has.map(Arc::as_ptr);
            let same_robots_txt = had
                .zip(has)
                .is_some_and(|(had, has)| is_same_publication(&had, has));
            outcomes.insert(name, (outcome, same_robots_txt));
        }
        has_changed |= !self.catalog.recompile_due_sites(now).is_empty();
        if let Some(change) = plan_default_sites(&self.catalog, &self.publisher.log, now) {
            self.catalog.apply_default_sites(change, now);
            has_changed = true;
        }
        has_changed |= self.publisher.is_due(now);
        let mut reports = Vec::new();
        for (site, (outcome, same_robots_txt)) in outcomes {
            let file = self.catalog.files.get(&site);
            reports.push(SiteReload {
                findings: file.map(|file| file.findings.clone()).unwrap_or_default(),
                site,
                outcome,
                same_robots_txt,
                since: None,
            });
        }
        Ok((reports, has_changed))
    }

    /// The policies by site. Once the directory had one, no built-in policy takes its place.
    fn read_directory(&mut self) -> Result<BTreeMap<String, PolicyText>, StartError> {
        let found = policy_directory::read_policies(&self.policies);
        if found.as_ref().is_ok_and(|found| !found.is_empty())
            && self
                .without_directory
                .take_if(|texts| !texts.is_empty())
                .is_some()
        {
            tracing::warn!(
                "{} has policies, so the policies in the program do not count",
                absolute_path(&self.policies).display()
            );
        }
        match (found, &self.without_directory) {
            (Err(error), Some(texts)) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(texts.clone())
            }
            // The sites in force stay if the directory cannot be read.
            (found, _) => found.map_err(|source| StartError::Directory {
                directory: absolute_path(&self.policies),
                source,
            }),
        }
    }

    /// Adds an entry "removed" for each site with a last good policy and no file, because its policy
    /// stays in force.
    fn add_missing_files(
        &self,
        mut found: BTreeMap<String, PolicyText>,
    ) -> BTreeMap<String, PolicyText> {
        for site in self.catalog.stored_state.last_good.keys() {
            if found.contains_key(site) {
                continue;
            }
            let path = match self.catalog.files.get(site) {
                Some(known) => policy_path(&known.text),
                None => self
                    .policies
                    .join(format!("{site}.yaml"))
                    .display()
                    .to_string(),
            };
            let why = UnreadableReason::Removed(site.clone());
            found.insert(site.clone(), Err(UnreadableFile { path, why }));
        }
        found
    }

    /// Removes the last good policies of these sites, whose files are gone, and loads what changed.
    /// Returns the same as `load`.
    ///
    /// # Errors
    /// A site has a file, or is not known, or the directory cannot be read.
    pub fn remove_sites(
        &mut self,
        sites: &[String],
        now: Timestamp,
    ) -> Result<(Vec<SiteReload>, bool), RemoveError> {
        let found = self.read_directory()?;
        for site in sites {
            if let Some(text) = found.get(site) {
                return Err(RemoveError::FileExists {
                    site: site.clone(),
                    path: policy_path(text),
                });
            }
            if !self.catalog.stored_state.last_good.contains_key(site)
                && !self.catalog.files.contains_key(site)
            {
                let sites = self.catalog.files.keys().cloned().collect();
                return Err(RemoveError::UnknownSite {
                    site: site.clone(),
                    sites,
                });
            }
        }
        for site in sites {
            self.catalog.stored_state.last_good.remove(site);
        }
        Ok(self.load(now)?)
    }

    /// Fails a start if files have a mistake and no policy at all is in force; with `strict`, if any
    /// file is not in force as it is, also a missing one. The error has the findings of these files.
    /// Otherwise logs the files that are not in force.
    pub fn check_broken_files(&self, strict: bool) -> Result<(), StartError> {
        let is_any_active = self
            .catalog
            .files
            .values()
            .any(|file| file.active.is_some());
        let mut broken = String::new();
        for (name, file) in &self.catalog.files {
            if file.is_active() {
                continue;
            }
            if strict || !(is_any_active || file.is_missing()) {
                broken.push_str(&file.rendered);
                broken.push('\n');
            } else {
                tracing::error!(site = %name, findings = ?file.findings, has_last_good = file.active.is_some(), "the policy file is not in force; the last good policy is, if the site has one");
            }
        }
        if broken.is_empty() {
            Ok(())
        } else {
            Err(StartError::Policies(broken.trim_end().to_owned()))
        }
    }

    /// Prunes the catalog, and publishes its sites with their present pauses. Stores the changes of
    /// the catalog's state with the same publication. Returns the new snapshot, in which a deferred
    /// change is not in force.
    pub fn publish(&mut self, now: Timestamp) -> Snapshot {
        self.catalog.prune(&self.publisher.log, now);
        let pauses = &self.catalog.stored_state.pauses;
        let sites = self
            .catalog
            .entries()
            .map(|entry| {
                entry
                    .clone()
                    .with_pauses(pauses.for_site(&entry.site, now), now)
            })
            .collect();
        let others = diff_facts(
            self.last_stored.to_facts(),
            self.catalog.stored_state.to_facts(),
            now,
        );
        self.last_stored = self.catalog.stored_state.clone();
        self.publisher.publish(sites, pauses, others, now)
    }

    /// Notifies subscribers that an operator began or ended the pauses of a site, or of all sites.
    pub fn notify_pauses(&self, subscribers: &FactSubscribers, site: Option<&str>, now: Timestamp) {
        for entry in self.catalog.entries() {
            let name = &entry.site.name;
            if site.is_none_or(|site| site == name) {
                subscribers.notify(|| self.catalog.stored_state.pauses.run_time_fact(name, now));
            }
        }
    }

    /// The status without what the snapshot adds. If an operator named the policy directory, it has
    /// a warning while there is no policy, nor a last good one.
    pub fn file_status(&self) -> SitesStatus {
        let is_expected = self.without_directory.is_none() && self.catalog.files.is_empty();
        let no_policy = is_expected.then(|| {
            Finding::new(
                "no-policy",
                format!(
                    "there is no policy (*.yaml) in {}, so crawlgate publishes and enforces no \
                     rules of yours. Put a policy there. If crawlgate is only to observe, do not \
                     name a policy directory in the settings or the command",
                    absolute_path(&self.policies).display()
                ),
            )
        });
        SitesStatus {
            last_reload: self.last_reload,
            sites: self.catalog.file_status(self.problem.is_none()),
            warnings: self.problem.clone().or(no_policy).into_iter().collect(),
            ..SitesStatus::default()
        }
    }
}
