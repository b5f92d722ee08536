//! [`Instance`]: the parts of one crawlgate that judge and record its requests. Background threads
//! use them too. [`JudgeParts::open`] makes an instance, with the records that the previous process
//! left in the state store.

use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::identity::Proofs;
use crate::judge::{Judge, Logs, Recorder};
use crate::ledger::{Behaviours, Ledger, PassedBehaviours, Traps};
use crate::sites::{SiteManager, SiteOptions, StartError};
use crate::state::{Remembered, StateStore};
use crate::telemetry::{AccessLog, Events, Metrics, Traffic};
use std::sync::{Arc, Mutex};

/// One crawlgate.
pub struct Instance {
    /// Judges requests.
    pub judge: Arc<Judge>,
    /// Records their outcome.
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
    /// Held while what is new is handed to the history: one at a time, or it is counted twice.
    pub(super) feeding: Mutex<()>,
}

impl Instance {
    /// An instance that judges by these parts, and records in these logs.
    pub fn new(
        sites: Arc<SiteManager>,
        ledger: Arc<Ledger>,
        proofs: Arc<Proofs>,
        behaviours: Arc<Behaviours>,
        clock: Clock,
        logs: Logs,
    ) -> Arc<Instance> {
        let registry = Registry::builtin();
        let metrics = Metrics::new();
        let traffic = Arc::<Traffic>::default();
        let judge = Judge::new(
            sites.clone(),
            ledger.clone(),
            proofs.clone(),
            behaviours.clone(),
            registry,
            logs.peers.clone(),
        );
        Arc::new(Instance {
            judge: Arc::new(judge),
            access: logs.access.clone(),
            events: logs.events.clone(),
            recorder: Arc::new(Recorder::new(metrics.clone(), traffic.clone(), logs)),
            sites,
            ledger,
            proofs,
            behaviours,
            clock,
            metrics,
            traffic,
            feeding: Mutex::default(),
        })
    }

    /// Opens the files of both logs again, after they were rotated.
    pub fn reopen_logs(&self) {
        self.access.reopen();
        self.events.reopen();
    }
}

/// What a judge is opened with.
pub struct JudgeParts<'a> {
    /// The time.
    pub clock: Clock,
    /// The state store, and what it remembers.
    pub state: (&'a StateStore, &'a Remembered),
    /// Where policies come from.
    pub sites: SiteOptions,
    /// Hosts that crawlers never saw without crawlgate.
    pub new_hosts: Vec<String>,
    /// What proves crawlers, beside the networks of policies.
    pub proofs: Arc<Proofs>,
    /// What is written down.
    pub logs: Logs,
    /// What clients did at a process that hands over to this one.
    pub passed: Option<PassedBehaviours>,
}

impl JudgeParts<'_> {
    /// Loads the policies, opens the ledger and the marks of before, and begins this run in the
    /// state store. [`UpkeepThreads`](super::UpkeepThreads) then reload policies and store the
    /// ledger; without them the policies stay as they are.
    ///
    /// # Errors
    /// The policies cannot be loaded. A state store that cannot be written is no error: it tries
    /// again.
    pub fn open(self) -> Result<Arc<Instance>, StartError> {
        let moment = self.clock.moment();
        let (store, remembered) = self.state;
        let sites = SiteManager::start(self.sites, self.state, moment.now)?;
        let (ledger, facts) = Ledger::open(
            store.clone(),
            remembered,
            self.new_hosts,
            &sites.snapshot(),
            moment,
        );
        let traps = Traps::remembered(&remembered.facts.marked_clients, store.clone(), moment);
        // If the first commit fails, `status` reports it, and the store retries every second.
        let _ = store.begin(facts);
        let behaviours = Arc::new(Behaviours::with(traps, self.passed, moment.lived));
        Ok(Instance::new(
            sites,
            Arc::new(ledger),
            self.proofs,
            behaviours,
            self.clock,
            self.logs,
        ))
    }
}
