//! Marks and pauses of one instance of a simulated life, as plainly as can be: what an operator and
//! clients did, and what was heard of others.

use crate::exchange::Outbox;
use crate::exchange::event::{Event, MarkedClient, PauseTerms, PausedSite};
use crate::time::Timestamp;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

const SITE: &str = "shop";
/// Longer than a life.
const MONTH: u64 = 30 * 86_400;

/// Clients that are marked, and whether the site is paused.
#[derive(Clone, Debug, Default)]
pub struct OfOperators {
    marks: BTreeMap<IpAddr, Timestamp>,
    paused: Option<Timestamp>,
    outbox: Option<Arc<Outbox>>,
}

fn mark(address: IpAddr) -> Event {
    Event::Marked(MarkedClient {
        site: SITE.into(),
        crawler: "other".into(),
        address,
        seconds: MONTH,
    })
}

fn pause(is_on: bool) -> Event {
    let terms = PauseTerms {
        seconds: MONTH,
        retry_after: 60,
        everyone: true,
        robots_txt: false,
    };
    Event::Paused(PausedSite {
        site: SITE.into(),
        pause: is_on.then_some(terms),
    })
}

impl OfOperators {
    /// From now on what happens is told through this.
    pub fn tell(&mut self, outbox: Arc<Outbox>) {
        self.outbox = Some(outbox);
    }

    fn happened(&self, event: Event, at: Timestamp) {
        if let Some(outbox) = &self.outbox {
            outbox.happened(event, at);
        }
    }

    /// A client requests a trap.
    pub fn mark(&mut self, address: IpAddr, at: Timestamp) {
        self.marks.insert(address, at);
        self.happened(mark(address), at);
    }

    /// An operator releases the marks of a network.
    pub fn release(&mut self, network: IpNet, at: Timestamp) {
        self.marks.retain(|address, _| !network.contains(address));
        self.happened(Event::Released(network), at);
    }

    /// An operator pauses the site, or ends that.
    pub fn pause(&mut self, is_on: bool, at: Timestamp) {
        self.paused = is_on.then_some(at);
        self.happened(pause(is_on), at);
    }

    /// What is told to a store that starts over.
    pub fn everything(&self) -> Vec<(Event, Timestamp)> {
        let marks = self.marks.iter().map(|(address, at)| (mark(*address), *at));
        marks
            .chain(self.paused.map(|at| (pause(true), at)))
            .collect()
    }

    /// Another instance told this.
    pub fn heard(&mut self, event: Event, at: Timestamp) {
        match event {
            Event::Marked(client) => {
                let known = self.marks.entry(client.address).or_insert(at);
                *known = at.max(*known);
            }
            Event::Released(network) => {
                self.marks
                    .retain(|address, since| !network.contains(address) || *since > at);
            }
            Event::Paused(paused) => self.paused = paused.pause.map(|_| at),
            Event::Served(_) => {}
        }
    }

    /// Who is marked, and whether the site is paused.
    pub fn in_force(&self) -> (Vec<IpAddr>, bool) {
        (self.marks.keys().copied().collect(), self.paused.is_some())
    }
}
