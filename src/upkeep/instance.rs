//! [`Instance`]: the parts of one running crawlgate that judge and record requests: policies,
//! identities of crawlers, counters and logs. Background threads use these parts, too.
//! [`InstanceInputs::open`] opens an instance, with what the previous process left in the state
//! database.

use crate::clock::{Clock, Moment};
use crate::crawlers::Registry;
use crate::finding::Finding;
use crate::identity::IdentityVerifier;
use crate::judge::{Judge, Recorder, RequestLogs};
use crate::ledger::{BehaviourTables, Ledger, MarkedClients};
use crate::sites::{SiteLoadOptions, SiteManager, StartError};
use crate::state::{RestoredState, StateStore};
use crate::telemetry::{AccessLog, EventLog, Metrics, RecentTraffic};
use crate::time::Timestamp;
use std::sync::{Arc, Mutex};

/// The parts of one running crawlgate.
pub struct Instance {
    /// Judges requests.
    pub judge: Arc<Judge>,
    /// Records their outcomes.
    pub recorder: Arc<Recorder>,
    /// The policies in force.
    pub sites: Arc<SiteManager>,
    /// Which robots.txt was served to which crawler.
    pub ledger: Arc<Ledger>,
    /// The proofs of crawlers' identities, beside the networks of policies.
    pub proofs: Arc<IdentityVerifier>,
    /// What clients did recently.
    pub behaviours: Arc<BehaviourTables>,
    /// The time.
    pub clock: Clock,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Counts of requests that indicate a mistake in the setup.
    pub traffic: Arc<RecentTraffic>,
    /// A line for each request.
    pub access: AccessLog,
    /// A record of each request against the rules.
    pub events: EventLog,
    /// Locked while new counts are handed to the history. Two threads would count them twice.
    pub(super) history_feed: Mutex<()>,
    /// Locked while the ledger ticks. Two threads would record a clock that was set twice.
    pub(super) tick: Mutex<()>,
}

impl Instance {
    /// An instance of these parts.
    pub fn new(
        sites: Arc<SiteManager>,
        ledger: Arc<Ledger>,
        proofs: Arc<IdentityVerifier>,
        behaviours: Arc<BehaviourTables>,
        clock: Clock,
        logs: RequestLogs,
    ) -> Arc<Instance> {
        let metrics = Metrics::new();
        let traffic = Arc::<RecentTraffic>::default();
        let judge = Judge {
            sites: sites.clone(),
            registry: Registry::builtin(),
            ledger: ledger.clone(),
            proofs: proofs.clone(),
            behaviours: behaviours.clone(),
            peers: logs.peers.clone(),
        };
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
            history_feed: Mutex::default(),
            tick: Mutex::default(),
        })
    }

    /// Why this start begins another first day, and until when it lasts at least. Logs it. `None` if
    /// it begins none, at the very first start, and with a shared store: what other instances
    /// observed counts.
    pub fn log_first_day(
        &self,
        restored: &RestoredState,
        now: Timestamp,
    ) -> Option<(Timestamp, Finding)> {
        if self.judge.peers.is_some() {
            return None;
        }
        let reason = restored.gap_reason(now)?;
        let snapshot = self.sites.snapshot();
        let lifetimes = snapshot
            .sites()
            .iter()
            .map(|entry| entry.site.copy_lifetime());
        let until = now.plus(lifetimes.min()?);
        let finding = Finding::new(
            "first-day",
            format!(
                "{reason}. What crawlers fetched meanwhile is not known, so another first day begins: no violation counts \
                 until {until}. A host whose first crawler comes later has its first day later"
            ),
        );
        tracing::warn!("{finding}");
        Some((until, finding))
    }

    /// Opens the files of both logs again, after they were rotated.
    pub fn reopen_logs(&self) {
        self.access.reopen();
        self.events.reopen();
    }
}

/// What an [`Instance`] is opened with.
pub struct InstanceInputs<'a> {
    /// The time.
    pub clock: Clock,
    /// The moment before the state was opened, so that the first tick notices a clock that was set
    /// since.
    pub started: Moment,
    /// The state store.
    pub store: &'a StateStore,
    /// The state that it restored.
    pub restored: &'a RestoredState,
    /// Where the sites are loaded from.
    pub sites: SiteLoadOptions,
    /// Hosts that never answered crawlers without crawlgate.
    pub new_hosts: Vec<String>,
    /// The proofs of crawlers' identities, beside the networks of policies.
    pub proofs: Arc<IdentityVerifier>,
    /// The logs.
    pub logs: RequestLogs,
}

impl InstanceInputs<'_> {
    /// Loads the policies, opens the ledger and the stored marks, and begins this run in the state
    /// store. [`UpkeepThreads`](super::UpkeepThreads) then reload policies and store the ledger.
    ///
    /// # Errors
    /// The policies cannot be loaded. A state store that cannot be written is no error: it tries
    /// again.
    pub fn open(self) -> Result<Arc<Instance>, StartError> {
        let moment = self.started;
        let sites = SiteManager::start(self.sites, self.store, self.restored, moment.now)?;
        let (ledger, facts) = Ledger::open(
            self.store.clone(),
            self.restored,
            self.new_hosts,
            &sites.snapshot(),
            moment,
        );
        let marks = &self.restored.facts.marked_clients;
        let marked_clients = MarkedClients::restore(marks, self.store.clone(), moment);
        // If the first commit fails, `status` reports it, and the store retries every second.
        let _ = self.store.begin(facts);
        let behaviours = Arc::new(BehaviourTables::new(marked_clients));
        let instance = Instance::new(
            sites,
            Arc::new(ledger),
            self.proofs,
            behaviours,
            self.clock,
            self.logs,
        );
        let paths = self.store.paths_of_day(moment.now);
        instance.metrics.paths.restore(paths, moment.now);
        Ok(instance)
    }
}
