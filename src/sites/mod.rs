//! The policy directory made into the snapshot in force: loading and reloading per site, last good copies, superseded
//! versions, pauses.
//!
//! Knows files and the policy language; knows no request, no proxy and no clock (`now` is an argument).

mod default_sites;
mod files;
mod hosts;
mod origins;
mod pauses;
mod reload;
mod schedule;
mod state;
mod status;
mod succession;
mod waiting;
mod watch;

pub use default_sites::{DEFAULT_SITE, DefaultSite, asked_by, is_no_policy};
pub use origins::{KnownOrigins, OriginKnown, OriginRobotsStatus, PATIENCE, Served};
pub use pauses::{PauseError, PauseRequest};
pub use reload::{Outcome, ReloadReport, SiteReload};
pub use status::{RetireStatus, SiteStatus, Status};
pub use watch::WatchGuard;

use crate::crawlers::Registry;
use crate::durable::Witnesses;
use crate::policy::Snapshot;
use crate::policy::origin::OriginFile;
use crate::time::Timestamp;
use crate::verdict;
use arc_swap::ArcSwap;
use reload::{Read, Sites};
use status::Files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;
use succession::longest_held;
use waiting::WAITING;

/// What to load from, and where to remember.
#[derive(Clone, Debug)]
pub struct SiteOptions {
    /// `*.yaml` and `*.yml` directly inside are policies.
    pub policies: PathBuf,
    /// Last good copies and pauses; nothing is remembered when absent.
    pub state: Option<PathBuf>,
    /// Refuse to start on a last good copy.
    pub strict: bool,
    /// Whether a directory that is not there is one without policies: nobody named it.
    pub may_be_missing: bool,
    /// What is known of the origins' own robots.txt files, and the sites that there are without a policy.
    pub origins: KnownOrigins,
}

/// Called after a change that is one for requests.
type Listener = Box<dyn Fn() + Send>;

/// Why the policies could not be loaded at start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Policies are broken and there is no last good copy (or `--strict`): the whole text, for a person.
    #[error("{0}")]
    Policies(String),
    /// The directory or the state directory cannot be used.
    #[error("{0}")]
    Io(String),
}

/// The sites, alive: readers take the snapshot without a lock, changes are made one after the other.
pub struct SiteManager {
    snapshot: ArcSwap<Snapshot>,
    /// The same snapshot, with how the files stand: no status waits for a reload.
    overview: ArcSwap<(Files, Arc<Snapshot>)>,
    changes: Mutex<Changes>,
    origin_reports: Mutex<BTreeMap<String, OriginRobotsStatus>>,
    listeners: Mutex<Vec<Listener>>,
    /// Whether something is to be written that could not be.
    behind: AtomicBool,
    versions_missing: bool,
    withheld_before: BTreeSet<String>,
    witnesses: Arc<Witnesses>,
}

/// What only a change may touch.
struct Changes {
    sites: Sites,
    /// Snapshots that requests may still hold. The last share is given up here: a request never pays for freeing one.
    retired: Vec<Arc<Snapshot>>,
}

impl SiteManager {
    /// Loads everything.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        options: SiteOptions,
        registry: &'static Registry,
        now: Timestamp,
    ) -> Result<Arc<SiteManager>, StartError> {
        SiteManager::start_reading(options, registry, verdict::load_with_origin, now)
    }

    fn start_reading(
        options: SiteOptions,
        registry: &'static Registry,
        read: Read,
        now: Timestamp,
    ) -> Result<Arc<SiteManager>, StartError> {
        let mut sites = Sites::start(options, registry, read, now)?;
        let snapshot = Arc::new(sites.snapshot(now));
        let (behind, versions_missing) = (sites.state.is_behind(), sites.state.is_incomplete());
        let (witnesses, withheld_before) = (sites.state.witnesses().clone(), sites.withheld_before.clone());
        Ok(Arc::new(SiteManager {
            overview: ArcSwap::from_pointee((sites.files(), snapshot.clone())),
            snapshot: ArcSwap::new(snapshot),
            changes: Mutex::new(Changes { sites, retired: Vec::new() }),
            origin_reports: Mutex::default(),
            listeners: Mutex::default(),
            behind: AtomicBool::new(behind),
            versions_missing,
            withheld_before,
            witnesses,
        }))
    }

    /// The snapshot in force. Neither locks nor waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Loads what changed; one site's mistake touches no other.
    pub fn reload(&self, now: Timestamp) -> ReloadReport {
        let (mut report, waits) = self.change_or_wait(now, |sites| sites.reload(now));
        report.waiting = waits.then(|| WAITING.to_owned());
        report
    }

    /// When something that goes by the clock is due. Neither locks nor waits.
    pub fn next_switch(&self) -> Option<Timestamp> {
        self.snapshot.load().next_switch()
    }

    /// Brings what goes by the clock up to date: bytes, verdicts and tags of a site in one. Returns the sites that
    /// changed.
    pub fn keep_time(&self, now: Timestamp) -> Vec<String> {
        if self.next_switch().is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.change(now, |sites| {
            let switched = sites.keep_time(now);
            sites.remember(now);
            (switched, true)
        })
    }

    /// Pauses; outranks the file until it ends, and survives a restart. Returns when it ends.
    ///
    /// # Errors
    /// No such site, or longer than 36 hours without `long`.
    pub fn pause(&self, request: &PauseRequest, now: Timestamp) -> Result<Timestamp, PauseError> {
        self.change(now, |sites| {
            let until = sites.pause(request, now);
            let is_new = until.is_ok();
            (until, is_new)
        })
    }

    /// Ends pauses, planned ones too; returns the sites that were paused.
    ///
    /// # Errors
    /// No such site.
    pub fn resume(&self, site: Option<&str>, now: Timestamp) -> Result<Vec<String>, PauseError> {
        self.change(now, |sites| {
            let resumed = sites.resume(site, now);
            let is_new = resumed.as_ref().is_ok_and(|sites| !sites.is_empty());
            (resumed, is_new)
        })
    }

    /// How things stand. Waits for no change.
    pub fn status(&self, now: Timestamp) -> Status {
        let overview = self.overview.load_full();
        let mut status = status::status(&overview.0, &overview.1, now);
        let reports = self.origin_reports.lock().unwrap_or_else(PoisonError::into_inner);
        for site in &mut status.sites {
            let entry = overview.1.site_named(&site.site).map(|index| &overview.1.sites()[index]);
            site.origin_robots = reports.get(&site.site).zip(entry).map(|(report, entry)| {
                let (served, unavailable_until) = Served::of(&entry.site, now);
                OriginRobotsStatus { served, unavailable_until, ..report.clone() }
            });
        }
        status
    }

    /// Puts a copy of a site's origin's robots.txt into force. Blocking: it compiles the site.
    ///
    /// # Errors
    /// The site could not be used with it (it would trip an interlock, be too large, fail one of the policy's tests):
    /// the findings. Everything stays as it was.
    pub fn origin_says(&self, site: &str, file: Arc<OriginFile>, now: Timestamp) -> Result<(), Vec<String>> {
        self.change(now, |sites| sites.origin_says(site, file, now))
    }

    /// The clock on the wall was set by so many seconds, or the machine slept: who waits for an origin's robots.txt
    /// waits as long as was meant. Blocking: it compiles these sites.
    pub fn clock_was_set(&self, by: i64, now: Timestamp) {
        self.change(now, |sites| ((), sites.clock_was_set(by, now)));
    }

    /// For how long after a site is gone somebody may go by what it published.
    pub fn longest_held(&self) -> Duration {
        let snapshot = self.snapshot();
        let held = snapshot.sites().iter().map(|entry| longest_held(&entry.site, Registry::builtin()));
        held.max().unwrap_or_else(|| Registry::builtin().longest_robots_cache())
    }

    /// How it stands with the origins' robots.txt files, for the status.
    pub fn report_origins(&self, reports: BTreeMap<String, OriginRobotsStatus>) {
        *self.origin_reports.lock().unwrap_or_else(PoisonError::into_inner) = reports;
    }

    /// Has `changed` called after each change of what requests see. It must not wait.
    pub fn on_change(&self, changed: impl Fn() + Send + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(changed));
    }

    /// Whether, when crawlgate was last there, versions may have been in force that could not be written: whoever was
    /// served what then is not to be told by what is known.
    pub fn versions_missing(&self) -> bool {
        self.versions_missing
    }

    /// The sites whose robots.txt was answered 503 when crawlgate was last there.
    pub fn withheld_before(&self) -> &BTreeSet<String> {
        &self.withheld_before
    }

    /// What tells the next start whether everything is written.
    pub fn witnesses(&self) -> Arc<Witnesses> {
        self.witnesses.clone()
    }

    /// Once a second, and at the end: what could not be written is tried again, and what waits for that is put in
    /// force; says whether it was. Waits for no change. To be called after the ledger has written down that its watches
    /// began anew, if they did: from then on the state directory counts as complete.
    pub fn write_again(&self, now: Timestamp) -> bool {
        if !self.behind.load(Ordering::Acquire) && self.witnesses.has_mark() {
            return false;
        }
        let mut changes = match self.changes.try_lock() {
            Ok(changes) => changes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let waited = changes.sites.waiting.is_some();
        changes.sites.defer(now);
        let Sites { state, memory, .. } = &mut changes.sites;
        state.write_again(memory);
        let is_new = waited && !self.witnesses.mislead(now);
        self.publish(&mut changes, is_new, now);
        is_new
    }

    /// Makes a change, and publishes a new snapshot when it is one for requests.
    fn change<T>(&self, now: Timestamp, change: impl FnOnce(&mut Sites) -> (T, bool)) -> T {
        self.change_or_wait(now, change).0
    }

    /// The same; says whether what is new waits.
    fn change_or_wait<T>(&self, now: Timestamp, change: impl FnOnce(&mut Sites) -> (T, bool)) -> (T, bool) {
        // A panic in a change leaves the sites as they were between two steps, each of them whole.
        let mut changes = self.changes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (result, is_new) = change(&mut changes.sites);
        changes.sites.defer(now);
        self.publish(&mut changes, is_new, now);
        (result, changes.sites.waiting.is_some())
    }

    /// Shows requests and the status what there is now, as far as it may be shown.
    fn publish(&self, changes: &mut Changes, is_new: bool, now: Timestamp) {
        let is_new = is_new || changes.sites.has_news();
        if is_new {
            let snapshot = changes.sites.publishable(&self.snapshot.load(), now);
            changes.retired.push(self.snapshot.swap(Arc::new(snapshot)));
        }
        let is_behind = changes.sites.state.is_behind() || changes.sites.waiting.is_some();
        self.behind.store(is_behind, Ordering::Release);
        self.overview.store(Arc::new((changes.sites.files(), self.snapshot.load_full())));
        changes.retired.retain(|snapshot| Arc::strong_count(snapshot) > 1);
        if is_new {
            self.listeners.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|changed| changed());
        }
    }
}

#[cfg(test)]
mod default_sites_tests;
#[cfg(test)]
mod moved_tests;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod takeover_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unwritten_tests;
#[cfg(test)]
mod waiting_tests;
