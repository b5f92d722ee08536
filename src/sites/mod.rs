//! [`SiteManager`] turns the policy files of a directory into the snapshot in force, which is all
//! compiled sites at one moment. Readers take the snapshot without a lock, and changes are made one
//! after the other. The wall clock is an argument (`now`).
//!
//! `policy_directory` reads the files, `plan` compares them with the catalog, `catalog` applies the
//! changes, and `publisher` commits and publishes the result. The states of a file are in
//! `policy_file`, those of a publication in `publisher`.

mod catalog;
mod default_sites;
mod held_back;
pub mod host_owners;
mod log_facts;
mod memory;
mod origins;
mod pauses;
mod plan;
pub mod policy_directory;
mod policy_file;
mod publisher;
mod status;
mod watch;

pub use default_sites::{DefaultSite, asked_by, is_no_policy};
pub use origins::{KnownOrigins, OriginRobotsStatus, PATIENCE, Served, awaited_since};
pub use pauses::{PauseError, PauseRequest, switched_fact};
pub use policy_file::{ReloadOutcome, ReloadReport, RemoveError, SiteReload};
pub use status::{RetireStatus, SiteStatus, Status};
pub use watch::{WatchGuard, watch};

use crate::facts::{Fact, Pause, Subscribers, changes};
use crate::finding::Finding;
use crate::locks::lock;
use crate::policy::origin::OriginFile;
use crate::policy::{IncludedFiles, Snapshot};
use crate::publications::{OfOthers, PublicationLog, VersionFile};
use crate::state::{Remembered, StateStore, StoreHealth};
use crate::time::Timestamp;
use crate::verdict;
use arc_swap::{ArcSwap, ArcSwapOption};
use catalog::SiteCatalog;
use memory::SiteMemory;
use origins::OriginFiles;
use plan::{plan, plan_default_sites};
use policy_directory::{PolicyText, Unread, Unreadable};
use policy_file::SiteCompiler;
pub use publisher::{AnnounceError, PublicationSubscriber};
use publisher::{Deferral, Publisher, longest_cached};
use status::OriginReports;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// How often a start tries again to commit what it has to publish.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Where the sites are loaded from.
#[derive(Clone, Debug)]
pub struct SiteOptions {
    /// `*.yaml` and `*.yml` directly inside are policies.
    pub policies: PathBuf,
    /// Refuse to start on a last good copy.
    pub strict: bool,
    /// Whether a directory that does not exist is one without policies, because no operator named
    /// it.
    pub may_be_missing: bool,
    /// What is known of the origins' own robots.txt files, and the sites in force without a policy.
    pub origins: KnownOrigins,
    /// Whether the settings allow proof by what the operators of crawlers publish.
    pub published_proof: bool,
}

/// Called after each change of the snapshot.
type Listener = Box<dyn Fn() + Send>;

/// Why the policies could not be loaded at start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Policies have mistakes and there is no last good policy (or `--strict`): the whole text, for
    /// a person.
    #[error("{0}")]
    Policies(String),
    /// The policy directory cannot be read.
    #[error("the policy directory {} cannot be read: {source}", .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
}

impl StartError {
    /// The finding about the policy directory.
    fn finding(&self) -> Finding {
        Finding::new("policy-directory", self.to_string())
    }
}

/// The sites: readers take the snapshot without a lock, changes are made one after the other.
pub struct SiteManager {
    snapshot: ArcSwap<Snapshot>,
    /// The same snapshot with the status of the files, so that a status need not wait for a reload.
    overview: ArcSwap<(Status, Arc<Snapshot>)>,
    changes: Mutex<Changes>,
    origin_reports: Mutex<OriginReports>,
    listeners: Mutex<Vec<Listener>>,
    /// Why new sites are not in force yet, while they are deferred.
    deferral: ArcSwapOption<Deferral>,
    store: StateStore,
    set_aside: Option<PathBuf>,
}

/// The parts that only a change reads or writes.
struct Changes {
    policies: PathBuf,
    may_be_missing: bool,
    catalog: SiteCatalog,
    publisher: Publisher,
    /// The catalog's memory as it was last handed to the store.
    stored: SiteMemory,
    last_reload: Timestamp,
    /// What is wrong with the directory itself.
    problem: Option<Finding>,
    /// Snapshots that requests may still have. The last share is given up here: a request never
    /// pays for freeing one.
    retired: Vec<Arc<Snapshot>>,
}

impl SiteManager {
    /// Loads everything, with what the state store remembers. Waits while a new publication cannot
    /// be committed and a crash would mislead the next start: a minute at most.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        options: SiteOptions,
        state: (&StateStore, &Remembered),
        now: Timestamp,
    ) -> Result<Arc<SiteManager>, StartError> {
        let (store, remembered) = state;
        let compiler = SiteCompiler {
            read: verdict::load_with,
            files: IncludedFiles::default(),
            published_proof: options.published_proof,
        };
        SiteManager::start_reading(options, store, remembered, compiler, now)
    }

    /// `SiteManager::start` with this compiler, which a test may replace.
    fn start_reading(
        options: SiteOptions,
        store: &StateStore,
        remembered: &Remembered,
        compiler: SiteCompiler,
        now: Timestamp,
    ) -> Result<Arc<SiteManager>, StartError> {
        let mut changes = Changes::new(&options, store, remembered, compiler, now);
        changes.load(now)?;
        changes.refuse_broken(options.strict)?;
        let mut snapshot = changes.publish(now);
        while changes.publisher.deferred.is_some() {
            std::thread::sleep(TRY_AGAIN);
            snapshot = changes.publish(now);
        }
        let snapshot = Arc::new(snapshot);
        Ok(Arc::new(SiteManager {
            overview: ArcSwap::from_pointee((changes.files(), snapshot.clone())),
            snapshot: ArcSwap::new(snapshot),
            changes: Mutex::new(changes),
            origin_reports: Mutex::default(),
            listeners: Mutex::default(),
            deferral: ArcSwapOption::default(),
            store: store.clone(),
            set_aside: remembered.set_aside.clone(),
        }))
    }

    /// From now on this subscriber follows what is published, beginning with the sites in force.
    pub fn subscribe(&self, subscriber: Box<dyn PublicationSubscriber>) {
        lock(&self.changes).publisher.subscribe(subscriber);
    }

    /// The snapshot in force. Neither locks nor waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Reads the policy directory and applies what changed; one site's mistake touches no other. If
    /// the directory cannot be read, the report has the problem and no sites, and nothing changes.
    pub fn reload(&self, now: Timestamp) -> ReloadReport {
        let (sites, problem) = self.change(now, |changes| match changes.load(now) {
            Ok((sites, is_new)) => ((sites, None), is_new),
            Err(error) => ((Vec::new(), Some(error.finding())), false),
        });
        ReloadReport {
            sites,
            problem,
            waiting: self.waiting(),
        }
    }

    /// Ends the last good policies of these sites, whose files are gone, and loads what changed.
    /// The report has all sites, as for a reload.
    ///
    /// # Errors
    /// No such site, or its file is there, or the directory cannot be read. Nothing was removed.
    pub fn remove(&self, sites: &[String], now: Timestamp) -> Result<ReloadReport, RemoveError> {
        let sites = self.change(now, |changes| match changes.end(sites, now) {
            Ok((sites, is_new)) => (Ok(sites), is_new),
            Err(error) => (Err(error), false),
        })?;
        Ok(ReloadReport {
            sites,
            problem: None,
            waiting: self.waiting(),
        })
    }

    /// When the next change by the clock is due in the snapshot in force; `None` if none is.
    /// Neither locks nor waits.
    pub fn next_switch(&self) -> Option<Timestamp> {
        self.snapshot.load().next_switch()
    }

    /// Makes the changes that are due by the clock: bytes, verdicts and tags of a site, and whether
    /// robots.txt is answered 503. Returns the sites that reached the next stage of their policy.
    /// Before `SiteManager::next_switch` it does nothing.
    pub fn keep_time(&self, now: Timestamp) -> Vec<String> {
        if self.next_switch().is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.change(now, |changes| (changes.catalog.keep_time(now), true))
    }

    /// Pauses the sites that a request names, and tells the other instances. The pause outranks the
    /// policy file and survives a restart. Returns its end.
    ///
    /// # Errors
    /// No such site, no time at all, or longer than 36 hours without `long`.
    pub fn pause(&self, request: &PauseRequest, now: Timestamp) -> Result<Timestamp, PauseError> {
        self.change(now, |changes| {
            let until = changes.catalog.pause(request, now);
            let is_new = until.is_ok();
            if is_new {
                let site = request.site.as_deref();
                changes.notify_of_pauses(&self.store.subscribers, site, now);
            }
            (until, is_new)
        })
    }

    /// Ends the pauses of a site, or of all sites without a name, planned pauses in force too.
    /// Tells the other instances. Returns the sites that were paused.
    ///
    /// # Errors
    /// No such site.
    pub fn resume(&self, site: Option<&str>, now: Timestamp) -> Result<Vec<String>, PauseError> {
        self.change(now, |changes| {
            let resumed = changes.catalog.resume(site, now);
            let is_new = resumed.as_ref().is_ok_and(|sites| !sites.is_empty());
            if resumed.is_ok() {
                changes.notify_of_pauses(&self.store.subscribers, site, now);
            }
            (resumed, is_new)
        })
    }

    /// The status. Does not wait for a change that is being made.
    pub fn status(&self, now: Timestamp) -> Status {
        let overview = self.overview.load_full();
        let mut status = status::status(&overview.0, &overview.1, &lock(&self.origin_reports), now);
        status.warnings.extend(self.waiting());
        status.warnings.extend(self.store_problems());
        status
    }

    /// Why a change that was just made is not in force yet, or would not outlast the process.
    pub fn storing_problems(&self) -> Vec<Finding> {
        self.waiting()
            .into_iter()
            .chain(self.unhealthy_store())
            .collect()
    }

    /// What is wrong with the state store, for people. `None` if it is healthy, or if the settings
    /// name no directory.
    fn unhealthy_store(&self) -> Option<Finding> {
        match self.store.health() {
            StoreHealth::Healthy | StoreHealth::NoDirectory => None,
            health => Some(Finding::new("state-directory", health.to_string())),
        }
    }

    /// Warnings about stored state: an unhealthy store, a state of the previous run that was set
    /// aside because it could not be read, and `robots.previous` without a state directory.
    fn store_problems(&self) -> impl Iterator<Item = Finding> {
        let set_aside = self.set_aside.as_ref().map(|file| {
            Finding::new(
                "state-set-aside",
                format!(
                    "the state of the previous run could not be understood and was set aside as {}; crawlgate began an empty \
                     one. Check pauses, and remove the file when it is of no more use.",
                    file.display()
                ),
            )
        });
        self.unhealthy_store()
            .into_iter()
            .chain(set_aside)
            .chain(self.ignored_declarations())
    }

    /// A warning that names the sites whose policies have `robots.previous`, if the state is in
    /// memory only: then each start looks like the first, and nothing can be said of the time
    /// before it.
    fn ignored_declarations(&self) -> Option<Finding> {
        let snapshot = self.snapshot.load();
        let sites: Vec<&str> = snapshot
            .sites()
            .iter()
            .filter(|entry| entry.site.policy.robots.previous.is_some())
            .map(|entry| entry.site.name.as_str())
            .collect();
        if sites.is_empty() || !self.store.health().is_in_memory() {
            return None;
        }
        Some(Finding::new(
            "previous-without-state",
            format!(
                "`robots.previous` has no effect ({}): crawlgate keeps no state, so every start looks like the first one. Set \
                 `state` to a directory that outlasts a restart.",
                sites.join(", ")
            ),
        ))
    }

    /// Why new sites are not in force yet, in words for the status. `None` if nothing is deferred.
    fn waiting(&self) -> Option<Finding> {
        Some(match &*self.deferral.load_full()? {
            Deferral::Uncommitted(_) => Finding::new(
                "waits-for-state",
                "new policies and pauses of robots.txt wait, because the state directory cannot be written and a crash now \
                 would mislead the next start; they come into force after some 20 seconds at most",
            ),
            Deferral::Unannounced(_) => Finding::new(
                "waits-for-store",
                "a new robots.txt, or a pause of one, waits, because the other instances cannot be told of it in the store and \
                 would call crawlers violators that obey what is new; it comes into force once the store takes it. Modes, tags \
                 and pauses of pages are in force",
            ),
        })
    }

    /// Puts a copy of a site's origin's robots.txt into force. Does nothing if there is no such
    /// site, or if its policy does not use the origin's file. Blocking: it compiles the site.
    ///
    /// # Errors
    /// The site could not be used with it (it would trip an interlock, be too large, fail one of
    /// the policy's tests): the findings. Everything stays as it was.
    pub fn origin_says(
        &self,
        site: &str,
        file: Arc<OriginFile>,
        now: Timestamp,
    ) -> Result<(), Vec<Finding>> {
        self.change(now, |changes| {
            let said = changes.catalog.origin_says(site, file, now);
            let is_new = said == Ok(true);
            (said.map(drop), is_new)
        })
    }

    /// For a wall clock that was set by so many seconds (negative: back), or a machine that slept.
    /// Moves the end of waiting for origins' robots.txt by as much, so that a site waits as long as
    /// was meant. Blocking: it compiles the sites that wait.
    pub fn apply_clock_step(&self, by: i64, now: Timestamp) {
        self.change(now, |changes| {
            ((), changes.catalog.apply_clock_step(by, now))
        });
    }

    /// Records in the publication log that the wall clock was set by so many seconds. From then on
    /// `robots.previous` does not count, because its time cannot be placed any more, and what was
    /// published before is not as old as the clock says.
    pub fn history_was_shifted(&self, by: i64, now: Timestamp) {
        self.change(now, |changes| {
            changes.publisher.apply_clock_step(by, now);
            ((), true)
        });
    }

    /// Records that other servers may have answered for the hosts until now, so that
    /// `robots.previous` does not cover that time. It is a shift by 0 seconds.
    pub fn history_was_broken(&self, now: Timestamp) {
        self.history_was_shifted(0, now);
    }

    /// For how long after a site is gone a crawler may use what it published.
    pub fn longest_cached(&self) -> Duration {
        longest_cached(self.snapshot().sites())
    }

    /// The publications at this moment, and the bytes of the versions that crawlers may still use.
    pub fn published(&self) -> (PublicationLog, Vec<VersionFile>) {
        let changes = lock(&self.changes);
        (
            changes.publisher.log.clone(),
            changes.publisher.versions.each().collect(),
        )
    }

    /// Takes in what other instances published, and publishes a snapshot that knows it. Does not
    /// wait: while a change is being made, `others` comes back as the error, for another attempt.
    ///
    /// # Errors
    /// A change is being made.
    pub fn others_published(&self, others: OfOthers, now: Timestamp) -> Result<(), OfOthers> {
        let Some(mut changes) = self.try_changes() else {
            return Err(others);
        };
        changes.publisher.learn(others);
        self.publish(&mut changes, now);
        Ok(())
    }

    /// Applies what operators did with pauses at other instances, and publishes the result. Does
    /// not wait: while a change is being made, `pauses` come back as the error, for another attempt.
    ///
    /// # Errors
    /// A change is being made.
    pub fn apply_pauses(
        &self,
        pauses: Vec<Fact<Pause>>,
        now: Timestamp,
    ) -> Result<(), Vec<Fact<Pause>>> {
        let Some(mut changes) = self.try_changes() else {
            return Err(pauses);
        };
        for pause in &pauses {
            changes.catalog.apply_pause(pause);
        }
        self.publish(&mut changes, now);
        Ok(())
    }

    /// Takes the states of the origins' robots.txt files, for the status.
    pub fn report_origins(&self, reports: OriginReports) {
        *lock(&self.origin_reports) = reports;
    }

    /// Adds a function that is called after each change of the snapshot, in the thread of the
    /// change and before the next change can begin. It must not wait.
    pub fn on_change(&self, changed: impl Fn() + Send + 'static) {
        lock(&self.listeners).push(Box::new(changed));
    }

    /// Called once a second: tries again to publish what was deferred. Returns true if it is in
    /// force now; false if nothing was deferred, if it is deferred again, or while another change
    /// is being made, for which it does not wait.
    pub fn publish_deferred(&self, now: Timestamp) -> bool {
        if self.deferral.load().is_none() {
            return false;
        }
        let Some(mut changes) = self.try_changes() else {
            return false;
        };
        self.publish(&mut changes, now);
        self.deferral.load().is_none()
    }

    /// The lock for changes, without waiting. `None` while a change is being made.
    fn try_changes(&self) -> Option<MutexGuard<'_, Changes>> {
        match self.changes.try_lock() {
            Ok(changes) => Some(changes),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Makes a change under the lock, and returns its result. The closure also returns whether
    /// requests are to see a new snapshot: then one is published, else only the overview for the
    /// status is made anew.
    fn change<T>(&self, now: Timestamp, change: impl FnOnce(&mut Changes) -> (T, bool)) -> T {
        // A panic in a change leaves the sites as they were between two steps, each of them whole.
        let mut changes = lock(&self.changes);
        let (result, is_new) = change(&mut changes);
        if is_new {
            self.publish(&mut changes, now);
        } else {
            self.overview
                .store(Arc::new((changes.files(), self.snapshot.load_full())));
        }
        result
    }

    /// Publishes the sites of the catalog: replaces the snapshot, the overview and the deferral,
    /// and calls the listeners. Frees the former snapshots that no request has any more.
    fn publish(&self, changes: &mut Changes, now: Timestamp) {
        let snapshot = Arc::new(changes.publish(now));
        changes.retired.push(self.snapshot.swap(snapshot.clone()));
        changes
            .retired
            .retain(|snapshot| Arc::strong_count(snapshot) > 1);
        self.deferral
            .store(changes.publisher.deferred.clone().map(Arc::new));
        self.overview.store(Arc::new((changes.files(), snapshot)));
        lock(&self.listeners).iter().for_each(|changed| changed());
    }
}

impl Changes {
    /// The state before the first load, with the memory of an earlier process. Has no policy file
    /// and no site in force yet. Without listed default sites there is one for every host.
    fn new(
        options: &SiteOptions,
        store: &StateStore,
        remembered: &Remembered,
        compiler: SiteCompiler,
        now: Timestamp,
    ) -> Changes {
        let KnownOrigins {
            copies,
            default_sites,
            for_every_site,
            ..
        } = options.origins.clone();
        let memory = SiteMemory::remembered(&remembered.facts);
        Changes {
            policies: options.policies.clone(),
            may_be_missing: options.may_be_missing,
            publisher: Publisher::new(store.clone(), remembered, now),
            stored: memory.clone(),
            catalog: SiteCatalog {
                compiler,
                files: BTreeMap::new(),
                default_sites: BTreeMap::new(),
                listed_default_sites: if default_sites.is_empty() {
                    vec![DefaultSite::for_every_host()]
                } else {
                    default_sites
                },
                origins: OriginFiles(copies, for_every_site),
                memory,
            },
            last_reload: now,
            problem: None,
            retired: Vec::new(),
        }
    }

    /// Reads the policy directory and applies what changed, then what is due by the clock, then the
    /// default sites. Returns the outcome and the findings of each file, and whether requests are
    /// to see a new snapshot.
    ///
    /// # Errors
    /// The directory cannot be read: nothing changes, and the problem is kept for the status.
    fn load(&mut self, now: Timestamp) -> Result<(Vec<SiteReload>, bool), StartError> {
        self.last_reload = now;
        let found = self.read_directory();
        self.problem = found.as_ref().err().map(StartError::finding);
        let found = self.with_missing(found?);
        let files = policy_directory::included_files(&self.policies);
        let has_other_files = files != self.catalog.compiler.files;
        self.catalog.compiler.files = files;
        let changes = plan(
            found,
            has_other_files,
            &self.catalog,
            &self.publisher.log,
            now,
        );
        let mut outcomes: BTreeMap<String, ReloadOutcome> = self
            .catalog
            .files
            .iter()
            .map(|(name, file)| (name.clone(), file.outcome_when_unchanged()))
            .collect();
        let mut is_new = false;
        // Files that are gone come first in a plan: their hosts are free for others.
        for change in changes {
            let name = change.site.clone();
            let had = self.catalog.site(&name).cloned();
            let outcome = self.catalog.apply(change, now);
            let has = self.catalog.site(&name);
            is_new |= match (&had, has) {
                (Some(had), Some(has)) => !Arc::ptr_eq(had, has),
                (had, has) => had.is_some() != has.is_some(),
            };
            outcomes.insert(name, outcome);
        }
        is_new |= !self.catalog.keep_time(now).is_empty();
        if let Some(change) = plan_default_sites(&self.catalog, &self.publisher.log, now) {
            self.catalog.apply_default_sites(change, now);
            is_new = true;
        }
        is_new |= self.publisher.is_due(now);
        let mut reports = Vec::new();
        for (site, outcome) in outcomes {
            let file = self.catalog.files.get(&site);
            reports.push(SiteReload {
                findings: file.map(|file| file.findings.clone()).unwrap_or_default(),
                site,
                outcome,
            });
        }
        Ok((reports, is_new))
    }

    /// The policy files by site. A directory that does not exist has none if it may be missing;
    /// with every other problem the load fails, so that the sites stay.
    fn read_directory(&self) -> Result<BTreeMap<String, PolicyText>, StartError> {
        match policy_directory::policies(&self.policies) {
            Err(error) if self.may_be_missing && error.kind() == std::io::ErrorKind::NotFound => {
                Ok(BTreeMap::new())
            }
            // A directory that cannot be read is no reason to forget the sites.
            Err(source) => Err(StartError::Directory {
                directory: self.policies.clone(),
                source,
            }),
            Ok(found) => Ok(found),
        }
    }

    /// Adds to the files that were found an entry "removed" for each site that has a last good
    /// policy and no file any more: its policy is to stay in force.
    fn with_missing(
        &self,
        mut found: BTreeMap<String, PolicyText>,
    ) -> BTreeMap<String, PolicyText> {
        for site in self.catalog.memory.last_good.keys() {
            if found.contains_key(site) {
                continue;
            }
            let path = match self.catalog.files.get(site) {
                Some(known) => path_of(&known.text),
                None => self
                    .policies
                    .join(format!("{site}.yaml"))
                    .display()
                    .to_string(),
            };
            let why = Unread::Removed(site.clone());
            found.insert(site.clone(), Err(Unreadable { path, why }));
        }
        found
    }

    /// Forgets the last good policies of these sites, whose files are gone, and loads what changed.
    /// Returns what `load` does.
    ///
    /// # Errors
    /// A site has a file, or is not known, or the directory cannot be read. If this is found before
    /// the load, no policy is forgotten.
    fn end(
        &mut self,
        sites: &[String],
        now: Timestamp,
    ) -> Result<(Vec<SiteReload>, bool), RemoveError> {
        let found = self
            .read_directory()
            .map_err(|error| RemoveError::Directory(error.to_string()))?;
        for site in sites {
            if let Some(text) = found.get(site) {
                return Err(RemoveError::FileExists {
                    site: site.clone(),
                    path: path_of(text),
                });
            }
            if !self.catalog.memory.last_good.contains_key(site)
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
            self.catalog.memory.last_good.remove(site);
        }
        self.load(now)
            .map_err(|error| RemoveError::Directory(error.to_string()))
    }

    /// At the start, fails with the findings of all files that have a mistake and no last good
    /// policy in force; with `strict`, of all files that are not in force as they are, missing ones
    /// too. Logs the other files that are not in force.
    fn refuse_broken(&self, strict: bool) -> Result<(), StartError> {
        let mut broken = String::new();
        for (name, file) in &self.catalog.files {
            if file.is_active() {
                continue;
            }
            if (file.in_force.is_none() && !file.is_missing()) || strict {
                broken.push_str(&file.rendered);
                broken.push('\n');
            } else {
                tracing::error!(site = %name, findings = ?file.findings, "the policy file is not in force; the last good policy is, if there is one");
            }
        }
        if broken.is_empty() {
            Ok(())
        } else {
            Err(StartError::Policies(broken))
        }
    }

    /// Prunes the catalog, and publishes its sites with their present pauses. Hands the changes of
    /// the catalog's memory to the store with the same publication. Returns the new snapshot, in
    /// which a deferred change is not in force.
    fn publish(&mut self, now: Timestamp) -> Snapshot {
        self.catalog.prune(&self.publisher.log, now);
        let pauses = &self.catalog.memory.pauses;
        let sites = self
            .catalog
            .entries()
            .map(|entry| entry.clone().with_pauses(pauses.of(&entry.site, now), now))
            .collect();
        let others = changes(self.stored.facts(), self.catalog.memory.facts(), now);
        self.stored = self.catalog.memory.clone();
        self.publisher.publish(sites, pauses, others, now)
    }

    /// Notifies subscribers of what an operator just did with the pauses of a site, or of all
    /// sites: the pause that is switched on, or that all pauses ended.
    fn notify_of_pauses(&self, subscribers: &Subscribers, site: Option<&str>, now: Timestamp) {
        for entry in self.catalog.entries() {
            let name = &entry.site.name;
            if site.is_none_or(|site| site == name) {
                subscribers.notify(|| self.catalog.memory.pauses.switched(name, now));
            }
        }
    }

    /// The part of the status that the policy files give.
    fn files(&self) -> Status {
        Status {
            last_reload: self.last_reload,
            sites: self.catalog.files(self.problem.is_none()),
            warnings: self.problem.iter().cloned().collect(),
            ..Status::default()
        }
    }
}

/// The path of a policy file, also of one that cannot be read.
fn path_of(text: &PolicyText) -> String {
    match text {
        Ok(source) => source.name.to_string(),
        Err(unreadable) => unreadable.path.clone(),
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
