//! [`InstanceUpkeep`] reloads policies, puts planned changes into force, and logs both.
//! [`InstanceUpkeep::status`] gathers the state of the sites, of the published lists of crawlers'
//! networks, and of the logs. [`InstanceUpkeep::set_gauges`] writes that state into the metrics.

use super::instance::Instance;
use super::threads::feed_history;
use crate::finding::Finding;
use crate::ledger::{EVERY_SITE, ListHealth};
use crate::locks::lock;
use crate::policy::retire::RetireStage;
use crate::record::TopPaths;
use crate::sites::{
    ReloadOutcome, ReloadReport, RemoveError, RetireStatus, SiteReload, SiteStatus, SitesStatus,
};
use crate::state::StateStore;
use crate::telemetry::SiteGaugeValues;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// How long a reader of the history waits for new records to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest wait for a planned change. The clock may be set and policies may change meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The shortest wait, so that a change that fails is not retried at once.
const MIN_WAIT: Duration = Duration::from_millis(50);

/// Keeps an instance up to date. Blocking: reloading compiles policies.
pub struct InstanceUpkeep {
    /// The instance to keep up to date.
    pub instance: Arc<Instance>,
    /// The store, which keeps the history.
    store: StateStore,
    /// The findings last logged, by site; the empty name is the directory. A reload every 30 seconds
    /// does not log them again.
    last_logged: Mutex<BTreeMap<String, Vec<Finding>>>,
    /// When the policy of a site came into force, if that was after the start and is known.
    in_force_since: Mutex<BTreeMap<String, Timestamp>>,
    /// Held for a reload and its effects: one at a time.
    reloading: Mutex<()>,
}

impl InstanceUpkeep {
    /// Logs the warnings of the policies in force, and sets the gauges of their sites. The findings
    /// of the start count as logged.
    pub fn new(instance: Arc<Instance>, store: StateStore) -> Arc<InstanceUpkeep> {
        let upkeep = InstanceUpkeep {
            instance,
            store,
            last_logged: Mutex::default(),
            in_force_since: Mutex::default(),
            reloading: Mutex::default(),
        };
        let status = upkeep.status();
        for site in &status.sites {
            // The start has logged rejected files itself.
            if site.reload_ok && !site.findings.is_empty() {
                tracing::warn!(site = %site.site, findings = ?site.findings, "the policy is in force, with warnings");
            }
            upkeep.update_last_logged(&site.site, &site.findings);
        }
        upkeep.set_gauges(&status);
        Arc::new(upkeep)
    }

    /// Reads the policy directory and applies what changed. Logs new outcomes, and updates the ledger
    /// and the gauges. One reload at a time.
    pub fn reload(&self) -> ReloadReport {
        let _one = lock(&self.reloading);
        let mut report = self.instance.sites.reload(self.now());
        self.apply_report(&mut report);
        report
    }

    /// Ends the policies of sites whose files are gone, and then does the same as
    /// [`InstanceUpkeep::reload`].
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::remove`].
    pub fn remove(&self, sites: &[String]) -> Result<ReloadReport, RemoveError> {
        let _one = lock(&self.reloading);
        let mut report = self.instance.sites.remove(sites, self.now())?;
        self.apply_report(&mut report);
        Ok(report)
    }

    /// Applies the effects of a reload: updates the ledger, logs the outcomes, and sets the gauges.
    /// Sets in the report since when unchanged policies are in force.
    fn apply_report(&self, report: &mut ReloadReport) {
        self.instance
            .ledger
            .apply_snapshot(&self.instance.sites.snapshot(), self.now());
        let is_waiting = report.waiting.is_some();
        let mut in_force_since = lock(&self.in_force_since);
        for site in &mut report.sites {
            self.log_outcome(site, is_waiting);
            match site.outcome {
                ReloadOutcome::Unchanged => site.since = in_force_since.get(&site.site).copied(),
                ReloadOutcome::Added | ReloadOutcome::Replaced if !is_waiting => {
                    in_force_since.insert(site.site.clone(), self.now());
                }
                // When a policy that waits comes into force is not known.
                ReloadOutcome::Added | ReloadOutcome::Replaced | ReloadOutcome::Removed => {
                    in_force_since.remove(&site.site);
                }
                _ => {}
            }
        }
        drop(in_force_since);
        let problem = report.problem.as_slice();
        if self.update_last_logged("", problem) && !problem.is_empty() {
            tracing::error!(
                ?problem,
                "the policies were not reloaded; the current ones stay in force"
            );
        }
        self.set_gauges(&self.status());
    }

    /// Logs the outcome for a file. A new policy is logged each time, a problem only if its findings
    /// differ from those last logged, and an unchanged file not at all. `is_waiting` says that new
    /// policies are not in force yet.
    fn log_outcome(&self, site: &SiteReload, is_waiting: bool) {
        use ReloadOutcome::*;

        let SiteReload {
            site: name,
            findings,
            ..
        } = site;
        let is_news = self.update_last_logged(name, findings);
        let problem = match site.outcome {
            Added | Replaced | Removed if is_waiting => {
                return tracing::info!(site = %name, ?findings, "the changed policy is not in force yet");
            }
            Added | Replaced if findings.is_empty() => {
                return tracing::info!(site = %name, "the new policy is in force");
            }
            Added | Replaced => {
                return tracing::warn!(site = %name, ?findings, "the new policy is in force, with warnings");
            }
            Removed => {
                return tracing::info!(site = %name, "the site has no policy any more");
            }
            Unchanged => return,
            Missing => "the policy file is gone; the last good policy stays in force",
            Kept => "the policy file has errors; the last good policy stays in force",
            Refused => {
                "the policy file has errors, and there is no last good policy: none is in force"
            }
        };
        if is_news {
            tracing::error!(site = %name, ?findings, "{problem}");
        }
    }

    /// Applies the changes of policies that are due by the clock, and logs them. Returns the time
    /// until the next call.
    pub fn apply_due_changes(&self) -> Duration {
        let now = self.instance.clock.now();
        let switched = self.instance.sites.apply_due_changes(now.into());
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

    /// Records the findings of a site (an empty name: of the directory). Returns whether they differ
    /// from those recorded before.
    fn update_last_logged(&self, site: &str, findings: &[Finding]) -> bool {
        let mut last_logged = lock(&self.last_logged);
        let before = match findings {
            [] => last_logged.remove(site),
            findings => last_logged.insert(site.to_owned(), findings.to_vec()),
        };
        before.as_deref().unwrap_or_default() != findings
    }

    /// The status of the sites, with hosts on which no violation counts, lists that verified no
    /// visit, and the problems of the logs.
    pub fn status(&self) -> SitesStatus {
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
                        "in the last seven days no visit of {} was verified by its operator's lists or host names, but others \
                         used the name. Until one is verified, crawlgate calls none of them an impostor",
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

    /// Hands new counts to the history and waits until they are written, for 3 seconds at most. Then
    /// the history has all requests that were recorded before.
    pub fn flush_history(&self) {
        feed_history(&self.instance, &self.store, TopPaths::take_due);
        self.store.flush_history(FLUSH_TIMEOUT);
    }

    /// The reader of the history.
    #[cfg(feature = "state")]
    pub fn history(&self) -> crate::state::history::RequestHistoryReader {
        self.store.history()
    }

    /// Updates the gauges. Each scrape calls it, because pauses begin and end by the clock.
    pub fn set_gauges(&self, status: &SitesStatus) {
        let instance = &self.instance;
        let metrics = &instance.metrics;
        metrics.trapped.set(
            instance
                .behaviours
                .marked_clients
                .active_count(instance.clock.moment().monotonic) as i64,
        );
        metrics.raise_counter(&metrics.events_dropped, instance.events.dropped());
        metrics.raise_counter(&metrics.access_log_dropped, instance.access.dropped());
        let list_health = self.list_health().into_iter();
        metrics
            .set_suspended_lists(list_health.map(|list| (list.site, list.crawler, list.suspended)));
        let sites: Vec<SiteGaugeValues> = status.sites.iter().map(site_gauges).collect();
        metrics.set_sites(&sites, status.last_reload.0);
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.instance.clock.now())
    }
}

/// The values of a site's gauges. A site whose file is gone counts as reloaded.
fn site_gauges(site: &SiteStatus) -> SiteGaugeValues {
    SiteGaugeValues {
        paused: site.paused_until.is_some(),
        unproven: site.unproven.len() as i64,
        site: site.site.clone(),
        version: site.version.clone(),
        indexable: site.indexable,
        front_page_seen: site.front_page_seen.map_or(0, |seen| seen.0),
        retire: RetireStage::ALL.map(|stage| (stage.into(), count_paths_at(&site.retire, stage))),
        reload_success: site.reload_ok || site.removed,
    }
}

/// How many paths are at a stage; none for a staging site.
fn count_paths_at(retire: &[RetireStatus], stage: RetireStage) -> usize {
    retire
        .iter()
        .filter(|retired| retired.stage == stage && !retired.staging)
        .count()
}
