//! What an operator can do, with its traces in metrics and logs.

use crate::live::{Live, PauseError, PauseRequest, ReloadReport, Status};
use crate::telemetry::{Metrics, SiteGauges};
use crate::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// Reload, pause, resume, status. Blocking: reloading compiles policies.
pub struct Operations {
    /// The sites.
    pub live: Arc<Live>,
    /// Where they leave traces.
    pub metrics: Arc<Metrics>,
    ready: AtomicBool,
}

impl Operations {
    /// Sets the gauges of the sites that are there.
    pub fn new(live: Arc<Live>, metrics: Arc<Metrics>) -> Arc<Operations> {
        let operations = Operations { live, metrics, ready: AtomicBool::new(false) };
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
            use crate::live::Outcome;
            match site.outcome {
                Outcome::Unchanged => {}
                Outcome::Added | Outcome::Replaced | Outcome::Removed => {
                    tracing::info!(site = %site.site, outcome = ?site.outcome, "policy");
                }
                Outcome::Kept => {
                    tracing::error!(site = %site.site, findings = ?site.findings, "the new policy is refused: the old one stays")
                }
                Outcome::Refused => {
                    tracing::error!(site = %site.site, findings = ?site.findings, "the policy is refused, and there is no old one")
                }
            }
        }
        if let Some(problem) = &report.problem {
            tracing::error!(%problem, "nothing was reloaded");
        }
        self.refresh();
        report
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

    /// How things stand.
    pub fn status(&self) -> Status {
        self.live.status(now())
    }

    /// Brings the gauges up to date; pauses begin and end by the clock, so a scrape asks for it too.
    pub fn refresh(&self) {
        let status = self.status();
        let sites: Vec<SiteGauges> = status
            .sites
            .into_iter()
            .map(|site| SiteGauges {
                paused: site.paused_until.is_some(),
                site: site.site,
                version: site.version,
                indexable: site.indexable,
                reload_success: site.reload_ok,
            })
            .collect();
        self.metrics.set_sites(&sites, status.last_reload.0);
    }
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
