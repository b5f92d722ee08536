//! [`OperatorState`]: which clients are marked for breaking the rules, and whether the site is
//! paused, on one simulated instance. Tests of the exchange of facts between crawlgate instances
//! (such as which crawler fetched which robots.txt) use it in place of the real tables.

use crate::exchange::FactOutbox;
use crate::facts::{
    AnyFact, ClientMark, Fact, FactSubscriber, MarkRelease, PauseEvent, PauseRecord,
};
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
#[derive(Clone, Default)]
pub struct OperatorState {
    marks: BTreeMap<IpAddr, Timestamp>,
    paused: Option<Timestamp>,
    outbox: Option<Arc<FactOutbox>>,
}

fn mark_fact(address: IpAddr, at: Timestamp) -> Fact {
    let mark = ClientMark {
        site: SITE.into(),
        crawler: "other".into(),
        address,
        since: at,
        until: at.plus(MONTH),
    };
    Fact::set(at, mark)
}

fn pause_fact(is_on: bool, at: Timestamp) -> Fact {
    let pause = PauseRecord {
        until: at.plus(MONTH),
        ..PauseRecord::for_pause_event(SITE, "", PauseEvent::Switched, at)
    };
    Fact {
        is_removal: !is_on,
        ..Fact::set(at, pause)
    }
}

impl OperatorState {
    /// From now on what happens is told through this.
    pub fn set_outbox(&mut self, outbox: Arc<FactOutbox>) {
        self.outbox = Some(outbox);
    }

    fn notify_outbox(&self, fact: Fact) {
        if let Some(outbox) = &self.outbox {
            outbox.notify(&fact);
        }
    }

    /// A client requests a trap.
    pub fn mark(&mut self, address: IpAddr, at: Timestamp) {
        self.marks.insert(address, at);
        self.notify_outbox(mark_fact(address, at));
    }

    /// An operator releases the marks of a network.
    pub fn release(&mut self, network: IpNet, at: Timestamp) {
        self.marks.retain(|address, _| !network.contains(address));
        self.notify_outbox(Fact::set(at, MarkRelease { network }));
    }

    /// An operator pauses the site, or ends that.
    pub fn pause(&mut self, is_on: bool, at: Timestamp) {
        self.paused = is_on.then_some(at);
        self.notify_outbox(pause_fact(is_on, at));
    }

    /// What is told to a store that starts over.
    pub fn all_facts(&self) -> Vec<Fact> {
        let marks = self
            .marks
            .iter()
            .map(|(address, at)| mark_fact(*address, *at));
        marks
            .chain(self.paused.map(|at| pause_fact(true, at)))
            .collect()
    }

    /// Another instance told this.
    pub fn apply(&mut self, fact: Fact) {
        let at = fact.at;
        match fact.fact {
            AnyFact::ClientMark(mark) => {
                let known = self.marks.entry(mark.address).or_insert(at);
                *known = at.max(*known);
            }
            AnyFact::MarkRelease(MarkRelease { network }) => {
                self.marks
                    .retain(|address, since| !network.contains(address) || *since > at);
            }
            AnyFact::PauseRecord(_) => self.paused = (!fact.is_removal).then_some(at),
            _ => {}
        }
    }

    /// Who is marked, and whether the site is paused.
    pub fn marks_and_pause(&self) -> (Vec<IpAddr>, bool) {
        (self.marks.keys().copied().collect(), self.paused.is_some())
    }
}
