//! [`Upkeep`] reads policies again, puts planned changes into force, and logs both.

use super::instance::Instance;
use crate::locks::lock;
use crate::sites::{ReloadOutcome, ReloadReport, SiteReload};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Keeps an instance up to date. Blocking: reloading compiles policies.
pub struct Upkeep {
    /// What is kept up to date.
    pub instance: Arc<Instance>,
    /// What was said last of each site's file and of the directory: it is not said again every half minute.
    told: Mutex<BTreeMap<String, Vec<String>>>,
    /// One reload at a time, with all that follows from it.
    reloading: Mutex<()>,
}

impl Upkeep {
    /// Logs the warnings of the policies in force, and sets the gauges of their sites.
    pub fn new(instance: Arc<Instance>) -> Arc<Upkeep> {
        let upkeep = Upkeep { instance, told: Mutex::default(), reloading: Mutex::default() };
        let status = upkeep.status();
        for site in &status.sites {
            // What is refused was said by the start itself.
            if site.reload_ok && !site.findings.is_empty() {
                tracing::warn!(site = %site.site, findings = ?site.findings, "the policy has warnings and is in force");
            }
            upkeep.is_news(&site.site, &site.findings);
        }
        upkeep.set_gauges(&status);
        Arc::new(upkeep)
    }

    /// Loads what changed.
    pub fn reload(&self) -> ReloadReport {
        let _one = lock(&self.reloading);
        let report = self.instance.sites.reload(self.now());
        self.instance.ledger.settle(&self.instance.sites.snapshot(), self.now());
        report.sites.iter().for_each(|site| self.tell(site));
        let problem: Vec<String> = report.problem.iter().cloned().collect();
        if self.is_news("", &problem) && !problem.is_empty() {
            tracing::error!(?problem, "the policies were not reloaded; the present ones stay in force");
        }
        self.set_gauges(&self.status());
        report
    }

    /// Logs what came of a file, if it is news.
    fn tell(&self, site: &SiteReload) {
        let (name, findings) = (&site.site, &site.findings);
        let news = self.is_news(name, findings);
        match site.outcome {
            ReloadOutcome::Added | ReloadOutcome::Replaced if findings.is_empty() => {
                tracing::info!(site = %name, outcome = ?site.outcome, "policy");
            }
            ReloadOutcome::Added | ReloadOutcome::Replaced => {
                tracing::warn!(site = %name, outcome = ?site.outcome, ?findings, "the policy has warnings and is in force");
            }
            ReloadOutcome::Removed => tracing::info!(site = %name, "the policy file was removed"),
            ReloadOutcome::Kept if news => {
                tracing::error!(site = %name, ?findings, "the policy file was rejected; the last good policy stays in force");
            }
            ReloadOutcome::Refused if news => {
                tracing::error!(site = %name, ?findings, "the policy file was rejected; there is no last good policy, so none is in force");
            }
            ReloadOutcome::Unchanged | ReloadOutcome::Kept | ReloadOutcome::Refused => {}
        }
    }

    /// Brings what goes by the clock up to date; returns for how long that is known to hold.
    pub fn keep_time(&self) -> Option<Duration> {
        let now = self.instance.clock.now();
        let switched = self.instance.sites.keep_time(now.into());
        for site in &switched {
            tracing::info!(%site, "retired paths reached their next stage");
        }
        if !switched.is_empty() {
            self.set_gauges(&self.status());
        }
        let next =
            SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(self.instance.sites.next_switch()?.0).ok()?);
        // An overdue switch has failed. Trying it again at once would fail again.
        next.duration_since(now).ok()
    }

    /// Whether something else is to be said than the last time. No site has an empty name.
    fn is_news(&self, site: &str, findings: &[String]) -> bool {
        let mut told = lock(&self.told);
        let before = match findings {
            [] => told.remove(site),
            findings => told.insert(site.to_owned(), findings.to_vec()),
        };
        before.as_deref().unwrap_or_default() != findings
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from(self.instance.clock.now())
    }
}
