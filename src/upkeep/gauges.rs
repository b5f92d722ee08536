//! [`Upkeep::status`] gathers the state of the sites, the lists of networks and the logs. [`Upkeep::set_gauges`] writes it into
//! the metrics.

use super::reload::Upkeep;
use crate::ledger::{EVERY_SITE, ListHealth};
use crate::policy::retire::RetireStage;
use crate::sites::{RetireStatus, SiteStatus, Status};
use crate::telemetry::SiteGauges;

impl Upkeep {
    /// The status of the sites, and what is wrong with the lists of networks, the event log and the evidence log.
    pub fn status(&self) -> Status {
        let mut status = self.instance.sites.status(self.now());
        status.warnings.extend(self.instance.events.problem());
        status.warnings.extend(self.instance.evidence.problem());
        for list in self.list_health().into_iter().filter(|list| list.suspended) {
            if list.site == EVERY_SITE {
                status.warnings.push(format!(
                    "no visit of {} was verified within seven days by what its operator publishes; crawlgate calls no \
                     request an impostor's by it",
                    list.crawler
                ));
            } else if let Some(site) = status.sites.iter_mut().find(|site| site.site == list.site) {
                site.suspended.push(list.crawler);
            }
        }
        status
    }

    /// The state of the lists of networks that verified or accused a visit.
    pub fn list_health(&self) -> Vec<ListHealth> {
        self.instance.ledger.list_health(self.now())
    }

    /// Brings the gauges up to date; pauses begin and end by the clock, so a scrape asks for it too.
    pub fn set_gauges(&self, status: &Status) {
        let instance = &self.instance;
        let metrics = &instance.metrics;
        metrics.trapped.set(instance.behaviours.traps.in_force(instance.clock.moment().lived) as i64);
        for (counter, count) in [
            (&metrics.events_left_out, instance.events.left_out()),
            (&metrics.events_dropped, instance.events.dropped()),
            (&metrics.evidence_entries, instance.evidence.entries()),
            (&metrics.evidence_left_out, instance.evidence.lost()),
        ] {
            metrics.raise(counter, count);
        }
        let list_health = self.list_health().into_iter();
        let suspended = list_health.map(|list| (list.site, list.crawler, list.suspended));
        metrics.set_suspended(suspended);
        let sites: Vec<SiteGauges> = status.sites.iter().map(gauges).collect();
        metrics.set_sites(&sites, status.last_reload.0);
    }
}

fn gauges(site: &SiteStatus) -> SiteGauges {
    SiteGauges {
        paused: site.paused_until.is_some(),
        site: site.site.clone(),
        version: site.version.clone(),
        indexable: site.indexable,
        front_page_seen: site.front_page_seen.map(|seen| seen.0),
        retire: RetireStage::ALL.map(|stage| (stage.name(), paths_at(&site.retire, stage))),
        reload_success: site.reload_ok,
    }
}

/// How many paths are at a stage; of a staging site none is at any.
fn paths_at(retire: &[RetireStatus], stage: RetireStage) -> usize {
    retire.iter().filter(|retired| retired.stage == stage && !retired.staging).count()
}
