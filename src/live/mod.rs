//! The policy directory made into the snapshot in force: loading and reloading per site, last good copies, superseded
//! versions, pauses.
//!
//! Knows files and the policy language; knows no request, no proxy and no clock (`now` is an argument).

use crate::crawlers::Registry;
use crate::policy::Snapshot;
use crate::policy::model::Audience;
use crate::time::Timestamp;
use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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

/// What a reload came to, per site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Sites in the order of their names.
    pub sites: Vec<SiteReload>,
}

/// One site's outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReload {
    /// The site.
    pub site: String,
    /// What came of it.
    pub outcome: Outcome,
    /// `file:line:column: error[id]: message`, errors first.
    pub findings: Vec<String>,
}

/// What came of a site's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// New.
    Added,
    /// As before.
    Unchanged,
    /// The new policy is in force.
    Replaced,
    /// The file is refused; the old policy stays.
    Kept,
    /// Refused, and there is no old policy: the site is not served by a policy.
    Refused,
    /// The file is gone, and with it the site.
    Removed,
}

/// A pause asked for at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRequest {
    /// The site; all sites when absent.
    pub site: Option<String>,
    /// Whom it stops.
    #[serde(default)]
    pub audience: Audience,
    /// How long, in seconds; 12 hours when absent. Beyond 36 hours needs `long`.
    pub seconds: Option<u64>,
    /// Retry-After in seconds; half an hour when absent.
    pub retry_after: Option<u32>,
    /// Whether robots.txt is answered 503 as well, for at most 12 hours.
    #[serde(default)]
    pub robots_txt: bool,
    /// Says that more than 36 hours are meant: search engines drop URLs that stay 503 for two days.
    #[serde(default)]
    pub long: bool,
}

/// Why a pause cannot be set.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct PauseError(pub String);

/// How things stand, for `status` and the API.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Counts replacements of the snapshot.
    pub generation: u64,
    /// Of the last reload.
    pub last_reload: Timestamp,
    /// Sites in the order of their names.
    pub sites: Vec<SiteStatus>,
    /// Warnings about the state directory and the like.
    pub warnings: Vec<String>,
}

/// One site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteStatus {
    /// Its name.
    pub site: String,
    /// Its hosts as patterns; empty for all others.
    pub hosts: Vec<String>,
    /// The version of its robots.txt.
    pub version: String,
    /// Since when that is in force.
    pub since: Timestamp,
    /// `off`, `observe` or `enforce`.
    pub mode: String,
    /// Whether the last reload of its file succeeded.
    pub reload_ok: bool,
    /// Whether it runs on a last good copy from the state directory.
    pub last_good_copy: bool,
    /// Why not, and warnings: `file:line:column: ...`.
    pub findings: Vec<String>,
    /// The pause in force, until this moment.
    pub paused_until: Option<Timestamp>,
    /// Superseded versions that may still be held.
    pub held_versions: usize,
    /// Whether Googlebot may fetch `/` and index it, by the policy.
    pub indexable: bool,
}

/// The sites, alive.
pub struct Live {
    snapshot: ArcSwap<Snapshot>,
}

impl Live {
    /// Loads everything.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(options: LiveOptions, registry: &'static Registry, now: Timestamp) -> Result<Arc<Live>, StartError> {
        let _ = (options, registry, now);
        todo!()
    }

    /// The snapshot in force.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Loads what changed; one site's mistake touches no other.
    pub fn reload(&self, now: Timestamp) -> ReloadReport {
        let _ = now;
        todo!()
    }

    /// Pauses; outranks the file until it ends, and survives a restart. Returns when it ends.
    ///
    /// # Errors
    /// No such site, or longer than 36 hours without `long`.
    pub fn pause(&self, request: &PauseRequest, now: Timestamp) -> Result<Timestamp, PauseError> {
        let _ = (request, now);
        todo!()
    }

    /// Ends pauses, planned ones too; returns the sites that were paused.
    ///
    /// # Errors
    /// No such site.
    pub fn resume(&self, site: Option<&str>, now: Timestamp) -> Result<Vec<String>, PauseError> {
        let _ = (site, now);
        todo!()
    }

    /// How things stand.
    pub fn status(&self, now: Timestamp) -> Status {
        let _ = now;
        todo!()
    }

    /// Watches the directory in a thread of its own (its parent too: a symlink swap replaces the directory), and calls
    /// `changed` after 200 ms of quiet, and every 30 seconds as a net for file systems without notification. Stops
    /// when the guard is dropped.
    ///
    /// # Errors
    /// The watch cannot be set up.
    pub fn watch(
        self: &Arc<Live>,
        debounce: Duration,
        changed: impl Fn() + Send + 'static,
    ) -> Result<WatchGuard, notify::Error> {
        let _ = (debounce, changed);
        todo!()
    }
}

/// Keeps the watch alive.
pub struct WatchGuard {}
