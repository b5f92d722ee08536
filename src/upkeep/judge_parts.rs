//! [`JudgeParts`]: a judge opened with what the last run left in the state store. Must not know where settings come from.

use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::identity::Proofs;
use crate::judge::Judge;
use crate::ledger::{Behaviours, Ledger, Traps};
use crate::settings::AddressDetail;
use crate::sites::{SiteManager, SiteOptions, StartError};
use crate::state::{Remembered, StateStore};
use crate::telemetry::{AccessLog, Events, Metrics};
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
    pub logs: JudgeLogs,
}

/// The opened logs.
pub struct JudgeLogs {
    /// A line for each request.
    pub access: AccessLog,
    /// A record of each request against the rules.
    pub events: Events,
    /// How much of a client's address is written.
    pub addresses: AddressDetail,
    /// How much of it the history keeps.
    pub kept_addresses: AddressDetail,
}

impl JudgeParts<'_> {
    /// Loads the policies, and begins this run in the state store.
    ///
    /// # Errors
    /// The policies cannot be loaded.
    pub fn open(self) -> Result<Arc<Judge>, StartError> {
        let (registry, moment, (store, remembered)) = (Registry::builtin(), self.clock.moment(), self.state);
        let sites = SiteManager::start(self.sites, self.state, registry, moment.now)?;
        let (ledger, facts) = Ledger::open(store.clone(), remembered, self.new_hosts, &sites.snapshot(), moment);
        // Without a state directory the clients that requested traps are forgotten with the process.
        let traps = match self.has_state_directory {
            true => Traps::remembered(&remembered.facts.marked_clients, store.clone(), moment),
            false => Traps::default(),
        };
        // If the first commit fails, `status` reports it, and the store retries every second.
        let _ = store.begin(facts);
        Ok(Arc::new(Judge {
            sites,
            registry,
            ledger: Arc::new(ledger),
            proofs: self.proofs,
            behaviours: Arc::new(Behaviours::with(traps)),
            clock: self.clock,
            metrics: Metrics::new(),
            traffic: Box::default(),
            access: self.logs.access,
            events: self.logs.events,
            addresses: self.logs.addresses,
            kept_addresses: self.logs.kept_addresses,
        }))
    }
}
