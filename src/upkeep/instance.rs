//! [`Instance`]: one crawlgate, as handles on what its requests are judged by and recorded in. What works beside the
//! requests takes from here what it needs, so that the judge and the recorder keep theirs to themselves.

use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::evidence::Evidence;
use crate::identity::Proofs;
use crate::judge::{Judge, Logs, Recorder};
use crate::ledger::{Behaviours, Ledger};
use crate::sites::SiteManager;
use crate::telemetry::{AccessLog, Events, Metrics, Traffic};
use std::sync::Arc;

/// One crawlgate.
pub struct Instance {
    /// Judges requests.
    pub judge: Arc<Judge>,
    /// Records what became of them.
    pub recorder: Arc<Recorder>,
    /// The policies in force.
    pub sites: Arc<SiteManager>,
    /// Which robots.txt was served to which crawler.
    pub ledger: Arc<Ledger>,
    /// What proves crawlers, beside the networks of policies.
    pub proofs: Arc<Proofs>,
    /// What clients did recently.
    pub behaviours: Arc<Behaviours>,
    /// The time.
    pub clock: Clock,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What points at a mistake in the setup.
    pub traffic: Arc<Traffic>,
    /// A line for each request.
    pub access: AccessLog,
    /// A record of each request against the rules.
    pub events: Events,
    /// What third parties can check.
    pub evidence: Evidence,
}

impl Instance {
    /// One that judges by these, and records in these logs.
    pub fn new(
        sites: Arc<SiteManager>,
        ledger: Arc<Ledger>,
        proofs: Arc<Proofs>,
        behaviours: Arc<Behaviours>,
        clock: Clock,
        logs: Logs,
    ) -> Arc<Instance> {
        let (registry, metrics, traffic) = (Registry::builtin(), Metrics::new(), Arc::<Traffic>::default());
        let (access, events, evidence) = (logs.access.clone(), logs.events.clone(), logs.evidence.clone());
        let recorder = Arc::new(Recorder::new(registry, metrics.clone(), proofs.clone(), traffic.clone(), logs));
        let judge = Judge::new(sites.clone(), ledger.clone(), proofs.clone(), behaviours.clone(), registry);
        let judge = Arc::new(judge);
        Arc::new(Instance {
            judge,
            recorder,
            sites,
            ledger,
            proofs,
            behaviours,
            clock,
            metrics,
            traffic,
            access,
            events,
            evidence,
        })
    }
}
