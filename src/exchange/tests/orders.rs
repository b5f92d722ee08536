//! Marks and pauses of one instance of a simulated life, as plainly as can be: what an operator and
//! clients did, and what was heard of others.

use crate::exchange::Outbox;
use crate::facts::{AnyFact, Fact, Mark, Pause, PauseEvent, Release, Subscriber};
use crate::time::Timestamp;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const SITE: &str = "shop";
/// Longer than a life.
const MONTH: Duration = Duration::from_secs(30 * 86_400);

/// Clients that are marked, and whether the site is paused.
#[derive(Clone, Debug, Default)]
pub struct OfOperators {
    marks: BTreeMap<IpAddr, Timestamp>,
    paused: Option<Timestamp>,
    outbox: Option<Arc<Outbox>>,
}

fn mark(address: IpAddr, at: Timestamp) -> Fact {
    let mark = Mark {
        site: SITE.into(),
        crawler: "other".into(),
        address,
        since: at,
        until: at.plus(MONTH),
    };
    Fact::set(at, mark)
}

fn pause(is_on: bool, at: Timestamp) -> Fact {
    let pause = Pause {
        until: at.plus(MONTH),
        ..Pause::of_plan(SITE, "", PauseEvent::Switched, at)
    };
    Fact {
        is_removal: !is_on,
        ..Fact::set(at, pause)
    }
}

impl OfOperators {
    /// From now on what happens is told through this.
    pub fn tell(&mut self, outbox: Arc<Outbox>) {
        self.outbox = Some(outbox);
    }

    fn happened(&self, fact: Fact) {
        if let Some(outbox) = &self.outbox {
            outbox.notify(&fact);
        }
    }

    /// A client requests a trap.
    pub fn mark(&mut self, address: IpAddr, at: Timestamp) {
        self.marks.insert(address, at);
        self.happened(mark(address, at));
    }

    /// An operator releases the marks of a network.
    pub fn release(&mut self, network: IpNet, at: Timestamp) {
        self.marks.retain(|address, _| !network.contains(address));
        self.happened(Fact::set(at, Release { network }));
    }

    /// An operator pauses the site, or ends that.
    pub fn pause(&mut self, is_on: bool, at: Timestamp) {
        self.paused = is_on.then_some(at);
        self.happened(pause(is_on, at));
    }

    /// What is told to a store that starts over.
    pub fn everything(&self) -> Vec<Fact> {
        let marks = self.marks.iter().map(|(address, at)| mark(*address, *at));
        marks.chain(self.paused.map(|at| pause(true, at))).collect()
    }

    /// Another instance told this.
    pub fn apply(&mut self, fact: Fact) {
        let at = fact.at;
        match fact.fact {
            AnyFact::Mark(mark) => {
                let known = self.marks.entry(mark.address).or_insert(at);
                *known = at.max(*known);
            }
            AnyFact::Release(Release { network }) => {
                self.marks
                    .retain(|address, since| !network.contains(address) || *since > at);
            }
            AnyFact::Pause(_) => self.paused = (!fact.is_removal).then_some(at),
            _ => {}
        }
    }

    /// Who is marked, and whether the site is paused.
    pub fn in_force(&self) -> (Vec<IpAddr>, bool) {
        (self.marks.keys().copied().collect(), self.paused.is_some())
    }
}
