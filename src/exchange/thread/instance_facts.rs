//! [`InstanceFacts`] lets the exchange with other instances read and change what this crawlgate
//! instance knows: which robots.txt each crawler was served, which clients are marked for breaking
//! the rules, and which sites are paused. It implements the trait [`LocalFacts`]. It only collects
//! the pauses that other instances report. `ExchangeThread` applies them after it has released the
//! lock of the exchange, because applying them may wait for the sites.

use crate::clock::Moment;
use crate::exchange::LocalFacts;
use crate::facts::{AnyFact, Fact, PauseRecord};
use crate::sites::run_time_pause_fact;
use crate::upkeep::Instance;

/// The facts of this instance during one turn.
pub struct InstanceFacts<'a> {
    pub instance: &'a Instance,
    pub moment: Moment,
    /// Changes of pauses at peers, to be applied after the turn.
    pub pauses: Vec<Fact<PauseRecord>>,
    /// Whether observation began anew in this turn.
    pub begins_anew: bool,
}

impl LocalFacts for InstanceFacts<'_> {
    /// Returns the served versions, the observed hosts, the marks of clients, and the pauses that
    /// operators switched on. Releases are not among them.
    fn all_facts(&self) -> Vec<Fact> {
        let mut facts = self.instance.ledger.all_facts(self.moment.now);
        let marks = self
            .instance
            .behaviours
            .marked_clients
            .active_marks(self.moment);
        facts.extend(marks.into_iter().map(|mark| Fact::set(mark.since, mark)));
        for entry in self.instance.sites.snapshot().sites() {
            if let Some(pause) = entry.pauses.iter().find(|pause| pause.at_run_time) {
                let fact = run_time_pause_fact(&entry.site.name, pause);
                facts.push(Fact::set(pause.from, fact));
            }
        }
        facts
    }

    /// Passes a fact of a peer to the ledger or the marked clients. Pauses are collected.
    fn apply(&mut self, fact: Fact) {
        let now = self.moment.now;
        let ledger = &self.instance.ledger;
        let traps = &self.instance.behaviours.marked_clients;
        match fact.fact {
            AnyFact::ServedVersion(served) => ledger.record_peer_served(&served, fact.at, now),
            AnyFact::HostObservation(observed) => ledger.record_peer_observation(&observed, now),
            AnyFact::ClientMark(mark) => traps.add_peer_mark(mark, self.moment),
            AnyFact::MarkRelease(release) => {
                traps.apply_peer_release(release.network, fact.at, self.moment)
            }
            AnyFact::PauseRecord(pause) => {
                // An order of this moment by a clock that is slightly ahead takes effect at once.
                let at = fact.at.min(now);
                let until = at.plus(pause.until.since(pause.since));
                self.pauses.push(Fact {
                    at,
                    is_removal: fact.is_removal,
                    fact: PauseRecord {
                        since: at,
                        until,
                        ..pause
                    },
                });
            }
            _ => {}
        }
    }

    /// Restarts the observation of all hosts.
    fn restart_observation(&mut self, is_anew: bool) {
        self.instance.ledger.restart_observations(self.moment.now);
        self.begins_anew |= is_anew;
    }
}
