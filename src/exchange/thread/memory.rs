//! [`OfInstance`] gives the exchange access to this instance: to its ledger (what crawlers were
//! served), the marks of clients that requested a trap, and the pauses of sites. Nothing here waits
//! for the sites; `super` explains the locks.

use crate::clock::Moment;
use crate::exchange::Memory;
use crate::facts::{AnyFact, Fact, Pause};
use crate::sites::switched_fact;
use crate::upkeep::Instance;

/// The instance, as the exchange sees it.
pub(super) struct OfInstance<'a> {
    instance: &'a Instance,
    moment: Moment,
    /// What operators did with pauses at other instances.
    pub(super) pauses: Vec<Fact<Pause>>,
    /// Whether what was served lately is not known.
    pub(super) begins_anew: bool,
}

impl<'a> OfInstance<'a> {
    pub(super) fn new(instance: &'a Instance) -> OfInstance<'a> {
        OfInstance {
            instance,
            moment: instance.clock.moment(),
            pauses: Vec::new(),
            begins_anew: false,
        }
    }
}

impl Memory for OfInstance<'_> {
    /// The versions that were served, the hosts that are observed, the marks of clients, and the
    /// pauses of run time. Releases are not remembered.
    fn everything(&self) -> Vec<Fact> {
        let mut facts = self.instance.ledger.everything(self.moment.now);
        let marks = self.instance.behaviours.traps.list(self.moment);
        facts.extend(marks.into_iter().map(|mark| Fact::set(mark.since, mark)));
        for entry in self.instance.sites.snapshot().sites() {
            let pause = entry.pauses.iter().find(|pause| pause.at_run_time);
            facts.extend(
                pause.map(|pause| Fact::set(pause.from, switched_fact(&entry.site.name, pause))),
            );
        }
        facts
    }

    /// Hands a fact of another instance on to the ledger or the traps. Pauses are collected for the
    /// end of the turn.
    fn apply(&mut self, fact: Fact) {
        let now = self.moment.now;
        let ledger = &self.instance.ledger;
        let traps = &self.instance.behaviours.traps;
        match fact.fact {
            AnyFact::Served(served) => ledger.served_elsewhere(&served, fact.at, now),
            AnyFact::Observation(observed) => ledger.observed_elsewhere(&observed, now),
            AnyFact::Mark(mark) => traps.marked_elsewhere(mark, self.moment),
            AnyFact::Release(release) => {
                traps.released_elsewhere(release.network, fact.at, self.moment)
            }
            AnyFact::Pause(pause) => {
                // An order that was given a moment ago by a clock that is a little ahead holds at
                // once.
                let at = fact.at.min(now);
                let until = at.plus(pause.until.since(pause.since));
                self.pauses.push(Fact {
                    at,
                    is_removal: fact.is_removal,
                    fact: Pause {
                        since: at,
                        until,
                        ..pause
                    },
                });
            }
            _ => {}
        }
    }

    /// The ledger observes all hosts anew from now on. `is_anew` is kept for the end of the turn.
    fn begin(&mut self, is_anew: bool) {
        self.instance.ledger.begin_anew(self.moment.now);
        self.begins_anew |= is_anew;
    }
}
