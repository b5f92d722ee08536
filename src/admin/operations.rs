//! What an operator can do, with its traces in metrics and logs.

use crate::live::{Live, Outcome, PauseError, PauseRequest, ReloadReport, Status};
use crate::policy::retire::RetireStage;
use crate::telemetry::{Metrics, SiteGauges};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Reload, pause, resume, status. Blocking: reloading compiles policies.
pub struct Operations {
    /// The sites.
    pub live: Arc<Live>,
    /// Where they leave traces.
    pub metrics: Arc<Metrics>,
    ready: AtomicBool,
    started: Instant,
    /// What was said last of each site's file and of the directory: it is not said again every half minute.
    told: Mutex<BTreeMap<String, Vec<String>>>,
}

impl Operations {
    /// Sets the gauges of the sites that are there.
    pub fn new(live: Arc<Live>, metrics: Arc<Metrics>) -> Arc<Operations> {
        let operations = Operations {
            live,
            metrics,
            ready: AtomicBool::new(false),
            started: Instant::now(),
            told: Mutex::default(),
        };
        for site in operations.status().sites {
            // What is refused was said by the start itself.
            if site.reload_ok && !site.findings.is_empty() {
                tracing::warn!(site = %site.site, findings = ?site.findings, "the policy is in force, with warnings");
            }
            operations.is_news(&site.site, &site.findings);
        }
        operations.refresh();
        Arc::new(operations)
    }

    /// Says whether requests are welcome: after the start until a stop begins.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether requests are welcome.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Loads what changed.
    pub fn reload(&self) -> ReloadReport {
        let report = self.live.reload(now());
        for site in &report.sites {
            let (name, findings) = (&site.site, &site.findings);
            let news = self.is_news(name, findings);
            match site.outcome {
                Outcome::Added | Outcome::Replaced if findings.is_empty() => {
                    tracing::info!(site = %name, outcome = ?site.outcome, "policy");
                }
                Outcome::Added | Outcome::Replaced => {
                    tracing::warn!(site = %name, outcome = ?site.outcome, ?findings, "policy, with warnings");
                }
                Outcome::Removed => tracing::info!(site = %name, "the policy is removed"),
                Outcome::Kept if news => {
                    tracing::error!(site = %name, ?findings, "the new policy is refused: the old one stays");
                }
                Outcome::Refused if news => {
                    tracing::error!(site = %name, ?findings, "the policy is refused, and there is no old one");
                }
                Outcome::Unchanged | Outcome::Kept | Outcome::Refused => {}
            }
        }
        let problem: Vec<String> = report.problem.iter().cloned().collect();
        if self.is_news("", &problem) && !problem.is_empty() {
            tracing::error!(?problem, "nothing was reloaded");
        }
        self.refresh();
        report
    }

    /// Brings what goes by the clock up to date; returns for how long that is known to hold.
    pub fn keep_time(&self) -> Option<Duration> {
        let now = SystemTime::now();
        let switched = self.live.keep_time(now.into());
        for site in &switched {
            tracing::info!(%site, "retired paths have come to their next stage");
        }
        if !switched.is_empty() {
            self.refresh();
        }
        let next = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(self.live.next_switch()?.0).ok()?);
        // What is overdue could not be done: nobody is served by trying it at once again.
        next.duration_since(now).ok()
    }

    /// Whether something else is to be said than the last time. No site has an empty name.
    fn is_news(&self, site: &str, findings: &[String]) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match findings {
            [] => told.remove(site),
            findings => told.insert(site.to_owned(), findings.to_vec()),
        };
        before.as_deref().unwrap_or_default() != findings
    }

    /// Pauses.
    ///
    /// # Errors
    /// See [`Live::pause`].
    pub fn pause(&self, request: &PauseRequest) -> Result<Timestamp, PauseError> {
        let until = self.live.pause(request, now())?;
        tracing::warn!(site = request.site.as_deref().unwrap_or("all"), %until, "crawling is paused");
        self.refresh();
        Ok(until)
    }

    /// Resumes.
    ///
    /// # Errors
    /// See [`Live::resume`].
    pub fn resume(&self, site: Option<&str>) -> Result<Vec<String>, PauseError> {
        let sites = self.live.resume(site, now())?;
        tracing::info!(?sites, "crawling is resumed");
        self.refresh();
        Ok(sites)
    }

    /// For how long it runs.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// How things stand.
    pub fn status(&self) -> Status {
        self.live.status(now())
    }

    /// Brings the gauges up to date; pauses begin and end by the clock, so a scrape asks for it too.
    pub fn refresh(&self) {
        let status = self.status();
        self.metrics.warnings(status.warnings.len());
        let origins = status.sites.iter().filter_map(|site| {
            let robots = site.origin_robots.as_ref()?;
            Some((site.site.clone(), robots.state.clone(), robots.last_success.map(|moment| moment.0)))
        });
        self.metrics.set_origin_robots(&origins.collect::<Vec<_>>());
        let sites: Vec<SiteGauges> = status
            .sites
            .into_iter()
            .map(|site| SiteGauges {
                paused: site.paused_until.is_some(),
                site: site.site,
                version: site.version,
                indexable: site.indexable,
                front_page_seen: site.front_page_seen.map(|seen| seen.0),
                retire: RetireStage::ALL
                    .map(|stage| (stage.name(), site.retire.iter().filter(|retired| retired.stage == stage).count())),
                reload_success: site.reload_ok,
            })
            .collect();
        self.metrics.set_sites(&sites, status.last_reload.0);
    }
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
