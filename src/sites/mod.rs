//! [`SiteManager`] turns the policy files of a directory into the snapshot by which requests are
//! judged. The snapshot has all compiled sites at one moment, and requests read it without a lock.
//! The `SiteUpdater` makes one change at a time. Callers pass the current time (`now`).
//!
//! `policy_directory` reads the files, `plan` compares them with the sites in force, `catalog`
//! applies the changes, and `publisher` commits and publishes the result, and says when a changed
//! robots.txt must wait. `policy_file` has the states of a policy file.

mod catalog;
mod default_sites;
pub mod host_owners;
mod interim_sites;
mod log_facts;
mod origins;
mod pauses;
mod plan;
pub mod policy_directory;
mod policy_file;
mod publisher;
mod same_robots;
mod status;
mod stored_state;
mod updater;
mod warnings;
mod watch;

pub use default_sites::{DefaultSite, is_default_site_policy, origin_request_host};
pub use origins::{
    InitialOriginRobots, MAX_ORIGIN_WAIT, OriginRobotsStatus, ServedRobotsKind, awaited_origin,
};
pub use pauses::{PauseError, PauseRequest, nearest_sites, run_time_pause_fact};
pub use policy_file::{ReloadOutcome, ReloadReport, RemoveError, SiteReload};
pub use publisher::{AnnounceError, PublicationSubscriber};
pub use status::{RetireStatus, SiteStatus, SitesStatus};
pub use watch::DirectoryWatch;

use crate::facts::{Fact, PauseRecord};
use crate::finding::Finding;
use crate::locks::lock;
use crate::policy::origin::OriginRobotsTxt;
use crate::policy::{IncludedFiles, Snapshot};
use crate::publications::{PeerPublicationLogs, PublicationLog, VersionFile};
use crate::state::{RestoredState, StateStore};
use crate::time::Timestamp;
use crate::verdict;
use arc_swap::{ArcSwap, ArcSwapOption};
use policy_directory::PolicyText;
use policy_file::SiteCompiler;
use publisher::{Deferral, max_cache_time};
use status::OriginStatusBySite;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;
use updater::SiteUpdater;

/// How often a start tries again to commit its first publication.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Where the sites are loaded from.
#[derive(Clone, Debug, Default)]
pub struct SiteLoadOptions {
    /// `*.yaml` and `*.yml` directly inside are policies.
    pub policies: PathBuf,
    /// Refuse to start if any policy file is broken or missing.
    pub strict: bool,
    /// The policies, by site, if that directory does not exist. `None` if an operator named it, so
    /// that it must exist.
    pub without_directory: Option<BTreeMap<String, PolicyText>>,
    /// The copies of the origins' own robots.txt files, and the default sites.
    pub origins: InitialOriginRobots,
    /// Whether the settings allow proof by networks that the operators of crawlers publish.
    pub published_proof: bool,
}

/// Called after each change of the snapshot.
type ChangeListener = Box<dyn Fn() + Send>;

/// Why the policies could not be loaded at start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Policies have mistakes and no policy can be used (with `--strict`: any is broken): all
    /// findings as text.
    #[error("{0}")]
    Policies(String),
    /// The policy directory cannot be read.
    #[error("the policy directory {} cannot be read: {source}. Check its path and its owner", .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl StartError {
    /// The finding about the policy directory.
    fn finding(&self) -> Finding {
        Finding::new("policy-directory", self.to_string())
    }
}

/// The sites in force, and the way to change them.
pub struct SiteManager {
    snapshot: ArcSwap<Snapshot>,
    /// The snapshot with the status of the files, so that a status need not wait for a reload.
    overview: ArcSwap<(SitesStatus, Arc<Snapshot>)>,
    updater: Mutex<SiteUpdater>,
    origin_reports: Mutex<OriginStatusBySite>,
    listeners: Mutex<Vec<ChangeListener>>,
    /// Why new sites are not in force yet, while they are deferred.
    deferral: ArcSwapOption<Deferral>,
    store: StateStore,
    set_aside: Option<PathBuf>,
}

impl SiteManager {
    /// Loads the policies and the stored state. Waits while the first publication cannot be
    /// committed and a crash would mislead the next start: a minute at most.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        options: SiteLoadOptions,
        store: &StateStore,
        restored: &RestoredState,
        now: Timestamp,
    ) -> Result<Arc<SiteManager>, StartError> {
        let compiler = SiteCompiler {
            compile: verdict::load_site_at,
            files: IncludedFiles::default(),
            published_proof: options.published_proof,
        };
        SiteManager::start_with_compile_fn(options, store, restored, compiler, now)
    }

    /// [`SiteManager::start`] with a compiler that a test may replace.
    fn start_with_compile_fn(
        options: SiteLoadOptions,
        store: &StateStore,
        restored: &RestoredState,
        compiler: SiteCompiler,
        now: Timestamp,
    ) -> Result<Arc<SiteManager>, StartError> {
        let mut updater = SiteUpdater::new(&options, store, restored, compiler, now);
        updater.load(now)?;
        updater.check_broken_files(options.strict)?;
        let mut snapshot = updater.publish(now);
        if updater.publisher.deferred.is_some() {
            tracing::error!("crawlgate serves nothing until then");
        }
        while updater.publisher.deferred.is_some() {
            std::thread::sleep(RETRY_EVERY);
            snapshot = updater.publish(now);
        }
        let snapshot = Arc::new(snapshot);
        Ok(Arc::new(SiteManager {
            overview: ArcSwap::from_pointee((updater.file_status(), snapshot.clone())),
            snapshot: ArcSwap::new(snapshot),
            updater: Mutex::new(updater),
            origin_reports: Mutex::default(),
            listeners: Mutex::default(),
            deferral: ArcSwapOption::default(),
            store: store.clone(),
            set_aside: restored.set_aside.clone(),
        }))
    }

    /// Adds a subscriber of publications. It gets the sites in force at once.
    pub fn subscribe(&self, subscriber: Box<dyn PublicationSubscriber>) {
        lock(&self.updater).publisher.subscribe(subscriber);
    }

    /// The snapshot in force. Neither locks nor waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Reads the policy directory and applies what changed. A mistake in one file affects no other
    /// site. If the directory cannot be read, the report has the problem and no sites, and nothing
    /// changes.
    pub fn reload(&self, now: Timestamp) -> ReloadReport {
        let (sites, problem) = self.update(now, |updater| match updater.load(now) {
            Ok((sites, has_changed)) => ((sites, None), has_changed),
            Err(error) => ((Vec::new(), Some(error.finding())), false),
        });
        ReloadReport {
            sites,
            problem,
            waiting: self.deferral_finding(),
            predecessor: None,
        }
    }

    /// Ends the last good policies of these sites, whose files are gone, and loads what changed.
    /// The report has all sites, as for a reload.
    ///
    /// # Errors
    /// No such site, or its file is there, or the directory cannot be read. Nothing was removed.
    pub fn remove(&self, sites: &[String], now: Timestamp) -> Result<ReloadReport, RemoveError> {
        let sites = self.update(now, |updater| match updater.remove_sites(sites, now) {
            Ok((sites, has_changed)) => (Ok(sites), has_changed),
            Err(error) => (Err(error), false),
        })?;
        Ok(ReloadReport {
            sites,
            waiting: self.deferral_finding(),
            ..ReloadReport::default()
        })
    }

    /// When the next change by the clock is due in the snapshot in force; `None` if none is.
    /// Neither locks nor waits.
    pub fn next_switch(&self) -> Option<Timestamp> {
        self.snapshot.load().next_switch()
    }

    /// Applies the changes that are due by the clock: retired paths, and pauses of robots.txt.
    /// Returns the sites that reached the next stage of their policy. Does nothing before
    /// [`SiteManager::next_switch`].
    pub fn apply_due_changes(&self, now: Timestamp) -> Vec<String> {
        if self.next_switch().is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.update(now, |updater| {
            (updater.catalog.recompile_due_sites(now), true)
        })
    }

    /// Pauses the sites of a request, and notifies the other instances. The pause outranks the
    /// policy file and survives a restart. Returns its end.
    ///
    /// # Errors
    /// No such site, several sites without `all`, no time at all, or longer than 36 hours without
    /// `long`.
    pub fn pause(&self, request: &PauseRequest, now: Timestamp) -> Result<Timestamp, PauseError> {
        self.update(now, |updater| {
            let until = updater.catalog.pause(request, now);
            let has_changed = until.is_ok();
            if has_changed {
                updater.notify_pauses(&self.store.subscribers, request.site.as_deref(), now);
            }
            (until, has_changed)
        })
    }

    /// Ends the pauses of a site, or of all sites without a name, also planned pauses in force.
    /// Notifies the other instances. Returns the sites that were paused.
    ///
    /// # Errors
    /// No such site.
    pub fn resume(&self, site: Option<&str>, now: Timestamp) -> Result<Vec<String>, PauseError> {
        self.update(now, |updater| {
            let resumed = updater.catalog.resume(site, now);
            let has_changed = resumed.as_ref().is_ok_and(|sites| !sites.is_empty());
            if resumed.is_ok() {
                updater.notify_pauses(&self.store.subscribers, site, now);
            }
            (resumed, has_changed)
        })
    }

    /// The status. Does not wait for a change that is being made.
    pub fn status(&self, now: Timestamp) -> SitesStatus {
        let overview = self.overview.load_full();
        let mut status =
            status::build_status(&overview.0, &overview.1, &lock(&self.origin_reports), now);
        status.warnings.extend(self.deferral_finding());
        status.warnings.extend(self.store_warnings());
        status
    }

    /// Puts a copy of the robots.txt of a site's origin into force. Does nothing if there is no such
    /// site, or if its policy does not use the origin's file. Blocking: it compiles the site.
    ///
    /// # Errors
    /// The findings that speak against the copy: it would trip an interlock, is too large, or fails
    /// a test of the policy. Everything stays as it was.
    pub fn set_origin_copy(
        &self,
        site: &str,
        file: Arc<OriginRobotsTxt>,
        now: Timestamp,
    ) -> Result<(), Vec<Finding>> {
        self.update(now, |updater| {
            let result = updater.catalog.set_origin_copy(site, file, now);
            let has_changed = result == Ok(true);
            (result.map(drop), has_changed)
        })
    }

    /// Call after the wall clock was set by so many seconds (negative: back), or the machine slept.
    /// Moves the end of waiting for an origin's robots.txt by as much, so that a site waits no
    /// shorter and no longer. Blocking: it compiles the sites that wait.
    pub fn apply_clock_step(&self, by: i64, now: Timestamp) {
        self.update(now, |updater| {
            ((), updater.catalog.apply_clock_step(by, now))
        });
    }

    /// Call after the wall clock jumped by so many seconds. `robots.previous` no longer applies, and
    /// stored publication times shift by as much.
    pub fn record_clock_step(&self, by: i64, now: Timestamp) {
        self.update(now, |updater| {
            updater.publisher.apply_clock_step(by, now);
            ((), true)
        });
    }

    /// Records that other servers may have answered for the hosts until now. `robots.previous` no
    /// longer applies.
    pub fn record_observation_gap(&self, now: Timestamp) {
        self.record_clock_step(0, now);
    }

    /// How long a crawler may use a cached robots.txt, at most.
    pub fn max_cache_time(&self) -> Duration {
        max_cache_time(self.snapshot().sites())
    }

    /// The present publication log, and the bytes of the versions that crawlers may still use.
    pub fn publications(&self) -> (PublicationLog, Vec<VersionFile>) {
        let updater = lock(&self.updater);
        (
            updater.publisher.log.clone(),
            updater.publisher.versions.iter().collect(),
        )
    }

    /// Applies what other instances published, and publishes a new snapshot. Does not wait: while a
    /// change is being made, `logs` comes back as the error, for another attempt.
    ///
    /// # Errors
    /// A change is being made.
    pub fn apply_peer_logs(
        &self,
        logs: PeerPublicationLogs,
        now: Timestamp,
    ) -> Result<(), PeerPublicationLogs> {
        let Some(mut updater) = self.try_lock_updater() else {
            return Err(logs);
        };
        updater.publisher.set_peer_logs(logs);
        self.publish(&mut updater, now);
        Ok(())
    }

    /// Applies what operators did with pauses at other instances, and publishes the result. Does
    /// not wait: while a change is being made, `pauses` come back as the error, for another attempt.
    ///
    /// # Errors
    /// A change is being made.
    pub fn apply_peer_pauses(
        &self,
        pauses: Vec<Fact<PauseRecord>>,
        now: Timestamp,
    ) -> Result<(), Vec<Fact<PauseRecord>>> {
        let Some(mut updater) = self.try_lock_updater() else {
            return Err(pauses);
        };
        for pause in &pauses {
            updater.catalog.apply_peer_pause(pause);
        }
        self.publish(&mut updater, now);
        Ok(())
    }

    /// Sets the states of the origins' robots.txt files, for the status.
    pub fn set_origin_reports(&self, reports: OriginStatusBySite) {
        *lock(&self.origin_reports) = reports;
    }

    /// Adds a function that is called after each change of the snapshot, in the thread of the
    /// change and before the next change can begin. It must not wait.
    pub fn on_change(&self, changed: impl Fn() + Send + 'static) {
        lock(&self.listeners).push(Box::new(changed));
    }

    /// Tries again to publish what was deferred. Called once a second. Returns true if it is in
    /// force now; false if nothing was deferred, if it is deferred again, or while another change
    /// is being made, for which it does not wait.
    pub fn publish_deferred(&self, now: Timestamp) -> bool {
        if self.deferral.load().is_none() {
            return false;
        }
        let Some(mut updater) = self.try_lock_updater() else {
            return false;
        };
        self.publish(&mut updater, now);
        self.deferral.load().is_none()
    }

    /// Locks the updater without waiting; `None` while a change is being made.
    fn try_lock_updater(&self) -> Option<MutexGuard<'_, SiteUpdater>> {
        match self.updater.try_lock() {
            Ok(updater) => Some(updater),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Makes a change under the lock, and returns its result. The closure also returns whether
    /// requests need a new snapshot: then one is published, otherwise only the overview for the
    /// status is updated.
    fn update<T>(&self, now: Timestamp, change: impl FnOnce(&mut SiteUpdater) -> (T, bool)) -> T {
        // A panic in a change leaves each site complete.
        let mut updater = lock(&self.updater);
        let (result, has_changed) = change(&mut updater);
        if has_changed {
            self.publish(&mut updater, now);
        } else {
            self.overview
                .store(Arc::new((updater.file_status(), self.snapshot.load_full())));
        }
        result
    }

    /// Publishes the sites of the catalog: replaces the snapshot, the overview and the deferral,
    /// and calls the listeners. Frees the former snapshots that no request has any more.
    fn publish(&self, updater: &mut SiteUpdater, now: Timestamp) {
        let snapshot = Arc::new(updater.publish(now));
        updater
            .former_snapshots
            .push(self.snapshot.swap(snapshot.clone()));
        updater
            .former_snapshots
            .retain(|snapshot| Arc::strong_count(snapshot) > 1);
        self.deferral
            .store(updater.publisher.deferred.clone().map(Arc::new));
        self.overview
            .store(Arc::new((updater.file_status(), snapshot)));
        lock(&self.listeners).iter().for_each(|changed| changed());
    }
}

#[cfg(test)]
mod announced_tests;
#[cfg(test)]
mod default_sites_tests;
#[cfg(test)]
mod deferred_tests;
#[cfg(test)]
mod moved_tests;
#[cfg(test)]
mod removed_tests;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod takeover_tests;
#[cfg(test)]
mod tests;
