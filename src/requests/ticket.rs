//! [`Ticket`]: one request, from its arrival to the record of what was sent. Its states are open and finished; a ticket that
//! is dropped open is recorded as a request whose client left.

use super::buffer_space::{Held, NoSpace};
use super::connection::{Arrival, Connection};
use super::mistake::Mistake;
use super::noted::{Noted, Shown};
use super::sent::{EndedBy, Sent};
use super::shared::Shared;
use crate::forwarding::Head;
use crate::judge::{Judgement, Outcome, Unjudged};
use crate::policy::SiteEntry;
use crate::time::Timestamp;
use crate::verdict::Decision;
use std::sync::Arc;

/// What was found of a request.
pub(super) enum Found {
    /// The judge's word.
    Judged(Judgement),
    /// It is no proper request.
    Refused(Mistake),
    /// An authority asks for the proof that a host is the operator's.
    Challenged,
    /// The listener leads it to https.
    Redirected,
}

/// One request.
pub struct Ticket {
    shared: Arc<Shared>,
    noted: Noted,
    found: Found,
    tls: Option<&'static str>,
    /// Whether the answer is crawlgate's own.
    is_answered: bool,
    is_open: bool,
    /// What the request and its response hold of buffers.
    held: Vec<Held>,
    lacks_space: bool,
}

impl Ticket {
    pub(super) fn new(shared: Arc<Shared>, noted: Noted, found: Found, connection: &Connection<'_>) -> Ticket {
        shared.recorder.metrics().in_flight(1);
        let (tls, held) = (connection.tls, Vec::new());
        Ticket { shared, noted, found, tls, is_answered: false, is_open: true, held, lacks_space: false }
    }

    pub(super) fn is_answered_here(&mut self) {
        self.is_answered = true;
    }

    /// When it arrived.
    pub fn arrival(&self) -> Arrival {
        self.noted.arrival
    }

    /// Its method.
    pub fn method(&self) -> &[u8] {
        self.noted.method()
    }

    /// The host that it asks for.
    pub fn host(&self) -> &[u8] {
        self.noted.host()
    }

    /// Its target as it came.
    pub fn target(&self) -> &[u8] {
        self.noted.target()
    }

    /// Whether it was refused for its head.
    pub fn is_refused(&self) -> bool {
        matches!(self.found, Found::Refused(_))
    }

    /// The decision and the site that it is about; `None` for hosts that no site claims.
    pub fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        let judged = self.judgement()?.judged()?;
        Some((&judged.decision, judged.entry()))
    }

    /// Holds space in buffers for the request until it is recorded.
    pub fn hold(&mut self, octets: usize) {
        let held = self.shared.space.hold(octets, self.noted.sharer());
        self.keep(held.map(Some));
    }

    /// Holds space for what can wait of the body of its response: all of it, or `most`. `head` is that of the response.
    pub fn hold_body(&mut self, head: &impl Head, most: usize) {
        let held = self.shared.space.hold_body(head, most, self.noted.sharer());
        self.keep(held);
    }

    fn keep(&mut self, held: Result<Option<Held>, NoSpace>) {
        self.lacks_space |= held.is_err();
        self.held.extend(held.ok().flatten());
    }

    /// Whether there was no space: the answer is [`Forward::fail`](super::Forward::fail) with 503.
    pub fn lacks_space(&self) -> bool {
        self.lacks_space
    }

    /// The connection changes its protocol (101) and may last for days: the ticket lets go of the policies that the
    /// request was judged by.
    pub fn switch_protocol(&mut self) {
        if let Found::Judged(judgement) = &mut self.found {
            judgement.let_go(self.noted.host());
        }
    }

    /// Counts what became of a page that is rewritten on its way.
    pub fn count_page(&self, end: &'static str) {
        if let Some((_, entry)) = self.judged() {
            self.shared.recorder.metrics().page(&entry.site.name, end);
        }
    }

    /// Records what was sent. To be called when the octets were written.
    pub fn finish(mut self, sent: &Sent<'_>) {
        self.close(sent);
    }

    pub(super) fn judgement(&self) -> Option<&Judgement> {
        match &self.found {
            Found::Judged(judgement) => Some(judgement),
            Found::Refused(_) | Found::Challenged | Found::Redirected => None,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.noted.now()
    }

    fn close(&mut self, sent: &Sent<'_>) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let Shared { judge, recorder, clock, .. } = &*self.shared;
        recorder.metrics().in_flight(-1);
        let facts = self.noted.facts(Shown::default());
        let outcome = Outcome {
            status: sent.status,
            x_robots_tag: sent.tags.iter().copied().collect(),
            body_octets: sent.octets,
            elapsed: recorder.elapsed(self.noted.arrival.started),
            http: self.noted.http,
            tls: self.tls,
            referer: self.noted.referer(),
            error: match &self.found {
                Found::Refused(mistake) => Some(mistake.name()),
                Found::Judged(_) | Found::Challenged | Found::Redirected if self.lacks_space => Some("buffers"),
                Found::Judged(_) | Found::Challenged | Found::Redirected => sent.error(),
            },
        };
        let unjudged = match &self.found {
            Found::Judged(judgement) => {
                if let Some(judged) = judgement.judged().filter(|_| self.has_sent_a_copy(sent)) {
                    // The ledger first: whoever sees the count may rely on the rest.
                    judge.served(&facts, judged, clock.now().into());
                }
                return recorder.record(&facts, judgement, &outcome);
            }
            Found::Refused(_) => Unjudged::Refused,
            Found::Challenged => Unjudged::Challenged,
            Found::Redirected => Unjudged::Redirected,
        };
        recorder.record_unjudged(&facts, unjudged, &outcome);
    }

    /// Whether the client got a whole answer of crawlgate's that a crawler may keep. HEAD gives nobody a copy.
    fn has_sent_a_copy(&self, sent: &Sent<'_>) -> bool {
        let is_whole = self.is_answered && sent.ended_by == EndedBy::Complete;
        is_whole && matches!(sent.status, 200 | 304) && self.noted.method() == b"GET"
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.close(&Sent::default());
    }
}
