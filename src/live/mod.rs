//! The policy directory made into the snapshot in force: loading and reloading per site, last good copies, superseded
//! versions, pauses.
//!
//! Knows files and the policy language; knows no request, no proxy and no clock (`now` is an argument).

mod files;
mod pauses;
mod reload;
mod state;
mod status;
mod watch;

pub use pauses::{PauseError, PauseRequest};
pub use reload::{Outcome, ReloadReport, SiteReload};
pub use status::{SiteStatus, Status};
pub use watch::WatchGuard;

use crate::crawlers::Registry;
use crate::policy::Snapshot;
use crate::time::Timestamp;
use arc_swap::ArcSwap;
use reload::Sites;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// What to load from, and where to remember.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// `*.yaml` and `*.yml` directly inside are policies.
    pub policies: PathBuf,
    /// Last good copies and pauses; nothing is remembered when absent.
    pub state: Option<PathBuf>,
    /// Refuse to start on a last good copy.
    pub strict: bool,
}

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
pub struct Live {
    snapshot: ArcSwap<Snapshot>,
    sites: Mutex<Sites>,
}

impl Live {
    /// Loads everything.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(options: LiveOptions, registry: &'static Registry, now: Timestamp) -> Result<Arc<Live>, StartError> {
        let sites = Sites::start(options, registry, now)?;
        let snapshot = ArcSwap::from_pointee(sites.snapshot(now));
        Ok(Arc::new(Live { snapshot, sites: Mutex::new(sites) }))
    }

    /// The snapshot in force. Neither locks nor waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Loads what changed; one site's mistake touches no other.
    pub fn reload(&self, now: Timestamp) -> ReloadReport {
        let mut sites = self.lock();
        let report = sites.reload(now);
        self.publish(&sites, now);
        report
    }

    /// Pauses; outranks the file until it ends, and survives a restart. Returns when it ends.
    ///
    /// # Errors
    /// No such site, or longer than 36 hours without `long`.
    pub fn pause(&self, request: &PauseRequest, now: Timestamp) -> Result<Timestamp, PauseError> {
        let mut sites = self.lock();
        let until = sites.pause(request, now)?;
        self.publish(&sites, now);
        Ok(until)
    }

    /// Ends pauses, planned ones too; returns the sites that were paused.
    ///
    /// # Errors
    /// No such site.
    pub fn resume(&self, site: Option<&str>, now: Timestamp) -> Result<Vec<String>, PauseError> {
        let mut sites = self.lock();
        let resumed = sites.resume(site, now)?;
        self.publish(&sites, now);
        Ok(resumed)
    }

    /// How things stand.
    pub fn status(&self, now: Timestamp) -> Status {
        self.lock().status(&self.snapshot(), now)
    }

    fn lock(&self) -> MutexGuard<'_, Sites> {
        // A panic while reloading leaves the sites as they were between two steps, each of them whole.
        self.sites.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn publish(&self, sites: &Sites, now: Timestamp) {
        let before = self.snapshot.swap(Arc::new(sites.snapshot(now)));
        // Requests that still hold it drop their share; the last one to go frees it, which is not much: sites are shared.
        drop(before);
    }
}

#[cfg(test)]
mod tests;
