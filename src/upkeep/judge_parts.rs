//! [`JudgeParts`]: a judge opened with what the last run left in the state store. Must not know where settings come from.

use super::instance::Instance;
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::identity::Proofs;
use crate::judge::Logs;
use crate::ledger::{Behaviours, Ledger, PassedBehaviours, Traps};
use crate::sites::{SiteManager, SiteOptions, StartError};
use crate::state::{Remembered, StateStore};
use std::sync::Arc;

/// What a judge is opened with.
pub struct JudgeParts<'a> {
    /// The time.
    pub clock: Clock,
    /// The state store, and what it remembers.
    pub state: (&'a StateStore, &'a Remembered),
    /// Whether the state store has a directory.
    pub has_state_directory: bool,
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
    /// Loads the policies, and begins this run in the state store. [`UpkeepThreads`](super::UpkeepThreads) then reload
    /// policies and store the ledger; without them the policies stay as they are.
    ///
    /// # Errors
    /// The policies cannot be loaded.
    pub fn open(self) -> Result<Arc<Instance>, StartError> {
        let (registry, moment, (store, remembered)) = (Registry::builtin(), self.clock.moment(), self.state);
        let sites = SiteManager::start(self.sites, self.state, registry, moment.now)?;
        sites.keep_evidence(self.logs.evidence.clone());
        let (ledger, facts) = Ledger::open(store.clone(), remembered, self.new_hosts, &sites.snapshot(), moment);
        // Without a state directory the clients that requested traps are forgotten with the process.
        let traps = match self.has_state_directory {
            true => Traps::remembered(&remembered.facts.marked_clients, store.clone(), moment),
            false => Traps::default(),
        };
        // If the first commit fails, `status` reports it, and the store retries every second.
        let _ = store.begin(facts);
        let behaviours = Arc::new(Behaviours::with(traps, self.passed, moment.lived));
        Ok(Instance::new(sites, Arc::new(ledger), self.proofs, behaviours, self.clock, self.logs))
    }
}
