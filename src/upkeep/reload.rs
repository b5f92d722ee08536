//! [`Upkeep`] reads policies again, puts planned changes into force, and logs both.
//! [`Upkeep::status`] gathers the state of the sites, the lists of networks and the logs.
//! [`Upkeep::set_gauges`] writes it into the metrics.

use super::instance::Instance;
use super::threads::keep_history;
use crate::finding::Finding;
use crate::ledger::{EVERY_SITE, ListHealth};
use crate::locks::lock;
use crate::policy::retire::RetireStage;
use crate::sites::{
    ReloadOutcome, ReloadReport, RemoveError, RetireStatus, SiteReload, SiteStatus, Status,
};
use crate::state::StateStore;
use crate::telemetry::SiteGauges;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// How long a reader of the history waits for what is new.
const FLUSH: Duration = Duration::from_secs(3);
/// The longest wait for a planned change. The clock may be set and policies may change meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The shortest wait, so that a change that fails is not retried without a pause.
const MIN_WAIT: Duration = Duration::from_millis(50);

/// Keeps an instance up to date. Blocking: reloading compiles policies.
pub struct Upkeep {
    /// What is kept up to date.
    pub instance: Arc<Instance>,
    /// What keeps the history.
    store: StateStore,
    /// What was said last of each site's file and of the directory: it is not said again every half
    /// minute.
    told: Mutex<BTreeMap<String, Vec<Finding>>>,
    /// One reload at a time, with all that follows from it.
    reloading: Mutex<()>,
}

impl Upkeep {
    /// Logs the warnings of the policies in force, and sets the gauges of their sites. The findings
    /// of the start count as told.
    pub fn new(instance: Arc<Instance>, store: StateStore) -> Arc<Upkeep> {
        let upkeep = Upkeep {
            instance,
            store,
            told: Mutex::default(),
            reloading: Mutex::default(),
        };
        let status = upkeep.status();
        for site in &status.sites {
            // What is refused was said by the start itself.
            if site.reload_ok && !site.findings.is_empty() {
                tracing::warn!(site = %site.site, findings = ?site.findings, "the policy has warnings and is in force");
            }
            upkeep.record_findings(&site.site, &site.findings);
        }
        upkeep.set_gauges(&status);
        Arc::new(upkeep)
    }

    /// Reads the policy directory and applies what changed. Logs what is new, and updates the
    /// ledger and the gauges. One reload at a time.
    pub fn reload(&self) -> ReloadReport {
        let _one = lock(&self.reloading);
        let report = self.instance.sites.reload(self.now());
        self.follow(&report);
        report
    }

    /// Ends the policies of sites whose files are gone, and loads what changed, as
    /// `Upkeep::reload` does.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::remove`].
    pub fn remove(&self, sites: &[String]) -> Result<ReloadReport, RemoveError> {
        let _one = lock(&self.reloading);
        let report = self.instance.sites.remove(sites, self.now())?;
        self.follow(&report);
        Ok(report)
    }

    /// Does what follows from a reload: hands the new policies to the ledger, logs what is new of
    /// each site and of the directory, and sets the gauges.
    fn follow(&self, report: &ReloadReport) {
        self.instance
            .ledger
            .settle(&self.instance.sites.snapshot(), self.now());
        for site in &report.sites {
            self.tell(site);
        }
        let problem = report.problem.as_slice();
        if self.record_findings("", problem) && !problem.is_empty() {
            tracing::error!(
                ?problem,
                "the policies were not reloaded; the present ones stay in force"
            );
        }
        self.set_gauges(&self.status());
    }

    /// Logs the outcome for a file. A new policy is logged each time, a problem only if its
    /// findings differ from those told last, and an unchanged file not at all.
    fn tell(&self, site: &SiteReload) {
        let SiteReload {
            site: name,
            findings,
            ..
        } = site;
        let news = self.record_findings(name, findings);
        match site.outcome {
            ReloadOutcome::Added | ReloadOutcome::Replaced if findings.is_empty() => {
                tracing::info!(site = %name, outcome = ?site.outcome, "policy");
            }
            ReloadOutcome::Added | ReloadOutcome::Replaced => {
                tracing::warn!(site = %name, outcome = ?site.outcome, ?findings, "the policy has warnings and is in force");
            }
            ReloadOutcome::Removed => {
                tracing::info!(site = %name, "the site has no policy any more")
            }
            ReloadOutcome::Missing if news => {
                tracing::error!(site = %name, outcome = ?site.outcome, ?findings, "the policy file is gone; the last good policy stays in force");
            }
            ReloadOutcome::Kept if news => {
                tracing::error!(site = %name, outcome = ?site.outcome, ?findings, "the policy file was rejected; the last good policy stays in force");
            }
            ReloadOutcome::Refused if news => {
                tracing::error!(site = %name, outcome = ?site.outcome, ?findings, "the policy file was rejected; there is no last good policy, so none is in force");
            }
            ReloadOutcome::Unchanged
            | ReloadOutcome::Kept
            | ReloadOutcome::Refused
            | ReloadOutcome::Missing => {}
        }
    }

    /// Makes the changes of policies that are due by the clock, and logs them. Returns the time
    /// until the next call.
    pub fn keep_time(&self) -> Duration {
        let now = self.instance.clock.now();
        let switched = self.instance.sites.keep_time(now.into());
        for site in &switched {
            tracing::info!(%site, "retired paths reached their next stage");
        }
        if !switched.is_empty() {
            self.set_gauges(&self.status());
        }
        let next = self.instance.sites.next_switch();
        let next = next.and_then(|next| u64::try_from(next.0).ok());
        let next = next.map(|next| SystemTime::UNIX_EPOCH + Duration::from_secs(next));
        // An overdue switch has failed. Trying it again at once would fail again.
        let wait = next.and_then(|next| next.duration_since(now).ok());
        wait.map_or(MAX_WAIT, |wait| wait.clamp(MIN_WAIT, MAX_WAIT))
    }

    /// Records what is said of a site (an empty name: of the directory; no site has one). Returns
    /// whether it differs from what was said the last time.
    fn record_findings(&self, site: &str, findings: &[Finding]) -> bool {
        let mut told = lock(&self.told);
        let before = match findings {
            [] => told.remove(site),
            findings => told.insert(site.to_owned(), findings.to_vec()),
        };
        before.as_deref().unwrap_or_default() != findings
    }

    /// The status of the sites, with hosts on which no violation counts, lists that verified no
    /// visit, and the problems of the logs.
    pub fn status(&self) -> Status {
        let mut status = self.instance.sites.status(self.now());
        status.warnings.extend(self.instance.recorder.problems());
        let mut unproven = self
            .instance
            .ledger
            .unproven_hosts(&self.instance.sites.snapshot(), self.now());
        for site in &mut status.sites {
            site.unproven = unproven.remove(&site.site).unwrap_or_default();
        }
        for list in self.list_health().into_iter().filter(|list| list.suspended) {
            if list.site == EVERY_SITE {
                let warning = Finding::new(
                    "identity-suspended",
                    format!(
                        "no visit of {} was verified within seven days by what its operator publishes; crawlgate calls no \
                         request an impostor's by it",
                        list.crawler
                    ),
                );
                status.warnings.push(warning);
            } else if let Some(site) = status.sites.iter_mut().find(|site| site.site == list.site) {
                site.suspended.push(list.crawler);
            }
        }
        status
    }

    /// The state of the lists of networks that verified or accused a visit.
    pub fn list_health(&self) -> Vec<ListHealth> {
        self.instance.ledger.list_health.report(self.now())
    }

    /// Hands what is new to the history and waits until it is written, for 3 seconds at most.
    /// Whoever reads the history next finds all requests that were recorded before.
    pub fn flush_history(&self) {
        keep_history(&self.instance, &self.store);
        self.store.flush_history(FLUSH);
    }

    /// The history of what was counted.
    #[cfg(feature = "state")]
    pub fn history(&self) -> crate::state::history::HistoryReader {
        self.store.history()
    }

    /// Brings the gauges up to date; pauses begin and end by the clock, so a scrape asks for it
    /// too.
    pub fn set_gauges(&self, status: &Status) {
        let instance = &self.instance;
        let metrics = &instance.metrics;
        metrics.trapped.set(
            instance
                .behaviours
                .traps
                .in_force(instance.clock.moment().lived) as i64,
        );
        metrics.raise(&metrics.events_left_out, instance.events.left_out());
        metrics.raise(&metrics.events_dropped, instance.events.dropped());
        let list_health = self.list_health().into_iter();
        metrics.set_suspended(list_health.map(|list| (list.site, list.crawler, list.suspended)));
        let sites: Vec<SiteGauges> = status.sites.iter().map(gauges).collect();
        metrics.set_sites(&sites, status.last_reload.0);
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.instance.clock.now())
    }
}

/// The values of a site's gauges. A site whose file is gone counts as reloaded.
fn gauges(site: &SiteStatus) -> SiteGauges {
    SiteGauges {
        paused: site.paused_until.is_some(),
        site: site.site.clone(),
        version: site.version.clone(),
        indexable: site.indexable,
        front_page_seen: site.front_page_seen.map(|seen| seen.0),
        retire: RetireStage::ALL.map(|stage| (stage.into(), paths_at(&site.retire, stage))),
        reload_success: site.reload_ok || site.removed,
    }
}

/// How many paths are at a stage; of a staging site none is at any.
fn paths_at(retire: &[RetireStatus], stage: RetireStage) -> usize {
    retire
        .iter()
        .filter(|retired| retired.stage == stage && !retired.staging)
        .count()
}
