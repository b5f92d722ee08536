//! [`Desk`]: what becomes of a request over HTTP/1: it is refused, led to https, answered, or forwarded. The request is
//! judged here, once. Borrows the head; must not know connections.

use super::challenges::Challenges;
use super::head::{Fields, MOST_FIELDS, Request, fields_of_answer};
use super::lane::{LaneRequest, fits};
use super::mistake::Mistake;
use super::redirect::Redirect;
use super::visit::Visit;
use crate::answers::{Answer, Answers, Asked, Field, Rejection, Respond, Ruling, challenge, redirect, rejection};
use crate::forwarding::{Arrival, ClientConnection, client_address};
use crate::judge::{Judge, Judgement, Outcome, Unjudged};
use crate::settings::Limits;
use crate::time::Timestamp;
use crate::verdict::Action;
use http::{HeaderMap, HeaderValue, Method};
use ipnet::IpNet;
use std::sync::Arc;
use std::time::Instant;

/// Fields that most heads have room with.
const USUAL_FIELDS: usize = 32;

/// What all requests share.
pub struct Desk {
    /// Judges requests, and records what became of them.
    pub judge: Arc<Judge>,
    /// The answers that crawlgate makes itself.
    pub answers: Arc<Answers>,
    /// Peers whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The challenges of authorities; without them they are the origin's.
    pub challenges: Option<Challenges>,
    /// Bounds on heads.
    pub limits: Limits,
    /// Answers every request, in place of the judge and the origin. Then only trusted proxies may connect.
    pub responder: Option<Arc<dyn Respond>>,
    /// Whether requests that fit the lane take it.
    pub has_lane: bool,
}

/// What becomes of a request.
pub enum Way {
    /// It is answered here, for this reason.
    Answer(Box<Answer>, Reason),
    /// It goes to the origin through the lane.
    Lane(Box<LaneRequest>),
    /// It goes to the origin through Pingora.
    Forward(Judgement),
}

/// Why a request is answered here.
pub enum Reason {
    /// The policy says so.
    Judged(Judgement),
    /// An authority asks whether the host is the operator's.
    Challenged,
    /// The listener leads to https.
    Redirected,
    /// It is no proper request.
    Refused(Mistake),
}

impl Desk {
    /// Decides about a whole head.
    pub fn decide<'b>(
        &self,
        head: &'b [u8],
        connection: &ClientConnection,
        https: Option<&Redirect>,
    ) -> (Visit<'b>, Way) {
        // Room for most heads: to clear that of the largest one would cost as much as to read most.
        match self.decide_within::<USUAL_FIELDS>(head, connection, https) {
            Err(Mistake::TooManyFields) => self.decide_within::<MOST_FIELDS>(head, connection, https),
            decided => decided,
        }
        .unwrap_or_else(|mistake| self.refuse(head, mistake, connection))
    }

    fn decide_within<'b, const ROOM: usize>(
        &self,
        head: &'b [u8],
        connection: &ClientConnection,
        https: Option<&Redirect>,
    ) -> Result<(Visit<'b>, Way), Mistake> {
        let mut room = [httparse::EMPTY_HEADER; ROOM];
        let (request, fields) = Request::read(head, &mut room, &self.limits)?;
        let visit = self.visit(request, fields, connection);
        let way = self.way(&visit, fields, connection, https);
        Ok((visit, way))
    }

    /// Refuses octets that are no proper head, or not a whole one.
    pub fn refuse<'b>(&self, head: &'b [u8], mistake: Mistake, connection: &ClientConnection) -> (Visit<'b>, Way) {
        self.judge.recorder().metrics().request_rejected(mistake.name());
        let reason = if self.responder.is_some() { Rejection::Unreadable } else { mistake.rejection() };
        let answer = rejection(reason, &Asked { method: &Method::GET, headers: &HeaderMap::new() });
        let (request, client) = (Request::recognisable(head), connection.peer.address);
        let visit = Visit { request, arrival: self.arrival(), client, address_may_accuse: false, tls: connection.tls };
        (visit, Way::Answer(Box::new(with_hsts(answer, connection)), Reason::Refused(mistake)))
    }

    fn visit<'b>(&self, request: Request<'b>, fields: Fields<'_, 'b>, connection: &ClientConnection) -> Visit<'b> {
        let peer = connection.peer;
        let forwarded_for = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("x-forwarded-for"));
        let forwarded_for = forwarded_for.map(|field| field.value);
        Visit {
            arrival: self.arrival(),
            client: peer.address.map(|peer| client_address(peer, forwarded_for, &self.trusted_proxies)),
            address_may_accuse: peer.is_trusted || !request.names_another_client,
            tls: connection.tls,
            request,
        }
    }

    fn way(
        &self,
        visit: &Visit<'_>,
        fields: Fields<'_, '_>,
        connection: &ClientConnection,
        https: Option<&Redirect>,
    ) -> Way {
        let request = &visit.request;
        // `Request::read` has checked it.
        let method = Method::from_bytes(request.method).unwrap_or_default();
        if let Some(file) = self.challenges.as_ref().and_then(|challenges| challenges.file(request)) {
            let headers = fields_of_answer(fields);
            return Way::Answer(
                Box::new(challenge(file, &Asked { method: &method, headers: &headers })),
                Reason::Challenged,
            );
        }
        if let Some(location) = https.and_then(|https| https.location(request)) {
            let headers = fields_of_answer(fields);
            if let Some(answer) = redirect(&location, &Asked { method: &method, headers: &headers }) {
                return Way::Answer(Box::new(answer), Reason::Redirected);
            }
        }
        let judgement = self.judge.judge(&visit.facts());
        let Some(judged) = judgement.judged().filter(|judged| judged.decision.action != Action::Pass) else {
            return self.forward(visit, fields, connection, judgement);
        };
        let headers = fields_of_answer(fields);
        let ruling = Ruling::new(judged, self.judge.registry(), Timestamp::from(visit.arrival.arrived));
        match self.answers.answer(&ruling, &Asked { method: &method, headers: &headers }) {
            Some(answer) => Way::Answer(Box::new(with_hsts(answer, connection)), Reason::Judged(judgement)),
            None => self.forward(visit, fields, connection, judgement),
        }
    }

    /// The way of a request to the origin.
    fn forward(
        &self,
        visit: &Visit<'_>,
        fields: Fields<'_, '_>,
        connection: &ClientConnection,
        judgement: Judgement,
    ) -> Way {
        if !self.has_lane || !fits(&visit.request, &judgement) {
            return Way::Forward(judgement);
        }
        let now = Timestamp::from(visit.arrival.arrived);
        Way::Lane(Box::new(LaneRequest::new(&visit.request, fields, connection.peer, judgement, now)))
    }

    /// The present, as a request arrives.
    pub(super) fn arrival(&self) -> Arrival {
        let started = Instant::now();
        let (arrived, lived) = self.judge.recorder().clock().read(started);
        Arrival { arrived, started, lived }
    }

    /// Records that an answer was sent, whole or not at all.
    pub fn record(&self, visit: &Visit<'_>, answer: &Answer, reason: &Reason, is_sent: bool) {
        let request = &visit.request;
        let tags = answer.fields().filter(|(field, _)| is_sent && *field == Field::XRobotsTag);
        let outcome = Outcome {
            status: if is_sent { answer.status().as_u16() } else { 0 },
            answered_whole: is_sent,
            x_robots_tag: tags.map(|(_, value)| HeaderValue::as_bytes(value)).collect(),
            body_octets: if is_sent { answer.body().len() as u64 } else { 0 },
            elapsed: self.judge.recorder().elapsed(visit.arrival.started),
            tls: visit.tls,
            http: if request.is_http10 { "1.0" } else { "1.1" },
            referer: request.referer,
            error: match reason {
                Reason::Refused(mistake) => Some(mistake.name()),
                _ => None,
            },
        };
        match reason {
            Reason::Judged(judgement) => self.judge.record(&visit.facts(), judgement, &outcome),
            Reason::Challenged => self.judge.recorder().record_unjudged(&visit.facts(), Unjudged::Challenged, &outcome),
            Reason::Redirected => self.judge.recorder().record_unjudged(&visit.facts(), Unjudged::Redirected, &outcome),
            Reason::Refused(_) => self.judge.recorder().record_unjudged(&visit.facts(), Unjudged::Refused, &outcome),
        }
    }
}

fn with_hsts(answer: Answer, connection: &ClientConnection) -> Answer {
    match &connection.hsts {
        Some(hsts) => answer.with(Field::StrictTransportSecurity, hsts.clone()),
        None => answer,
    }
}
