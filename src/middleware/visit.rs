//! [`Visit`]: one request from its arrival until its response is at its end, when it is recorded. It owns what the record
//! needs, because the request itself belongs to the application.

use super::fields::RequestFields;
use super::pages::{AskedPage, PageState};
use super::shared::Shared;
use crate::answers::{Answer, Asked, Ruling};
use crate::forwarding::{
    ForwardedResponse, client_address, has_condition, is_trusted, remove_conditions, write_response,
};
use crate::heads::{self, X_ROBOTS_TAG};
use crate::judge::{Judgement, Outcome, RequestFacts};
use crate::telemetry::InFlight;
use crate::time::Timestamp;
use bytes::Bytes;
use http::request::Parts;
use http::response::Parts as ResponseParts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri, Version};
use smallvec::SmallVec;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// One request.
pub struct Visit {
    shared: Arc<Shared>,
    method: Method,
    uri: Uri,
    version: Version,
    host: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    is_grpc: bool,
    client: Option<IpAddr>,
    address_may_accuse: bool,
    arrived: SystemTime,
    started: Instant,
    lived: Duration,
    judgement: Option<Judgement>,
    page: PageState,
    /// What was sent until now.
    status: u16,
    tags: SmallVec<[HeaderValue; 2]>,
    octets: u64,
    is_answered_whole: bool,
    _in_flight: InFlight,
}

impl Visit {
    /// Judges a request.
    pub fn new(shared: &Arc<Shared>, head: &Parts) -> Box<Visit> {
        let judge = &shared.judge;
        let started = Instant::now();
        let (arrived, lived) = judge.recorder().clock().read(started);
        let fields = RequestFields::of(&head.headers);
        let peer = shared.peer.and_then(|peer| peer(&head.extensions));
        let is_trusted = peer.is_some_and(|peer| is_trusted(peer.to_canonical(), &shared.trusted_proxies));
        let mut visit = Box::new(Visit {
            method: head.method.clone(),
            uri: head.uri.clone(),
            version: head.version,
            host: fields.host.cloned(),
            user_agent: fields.user_agent.cloned(),
            referer: fields.referer.cloned(),
            is_grpc: fields.is_grpc,
            client: peer.map(|peer| client_address(peer, fields.forwarded_for(), &shared.trusted_proxies)),
            address_may_accuse: is_trusted || !fields.names_another_client,
            arrived,
            started,
            lived,
            judgement: None,
            page: PageState::default(),
            status: 0,
            tags: SmallVec::new(),
            octets: 0,
            is_answered_whole: false,
            _in_flight: InFlight::begin(judge.recorder().metrics().clone()),
            shared: shared.clone(),
        });
        let facts = RequestFacts {
            signature: fields.signature(),
            has_license_token: fields.has_license_token(),
            ..visit.facts()
        };
        let judgement = judge.judge(&facts);
        visit.judgement = Some(judgement);
        visit
    }

    /// The request as the judge is told of it.
    fn facts(&self) -> RequestFacts<'_> {
        let host = match &self.host {
            Some(host) => host.as_bytes().trim_ascii(),
            None => self.uri.authority().map_or("", http::uri::Authority::as_str).as_bytes(),
        };
        RequestFacts {
            host,
            target: target(&self.uri),
            method: self.method.as_str().as_bytes(),
            user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
            client: self.client,
            address_may_accuse: self.address_may_accuse,
            signature: None,
            has_license_token: false,
            arrived: self.arrived,
            lived: self.lived,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.arrived)
    }

    /// The answer that the policy asks for; `None` where the request passes.
    pub fn answer(&self, head: &Parts) -> Option<Answer> {
        let judged = self.judgement.as_ref()?.judged()?;
        let ruling = Ruling::new(judged, self.shared.judge.registry(), self.now());
        self.shared.answers.answer(&ruling, &Asked { method: &head.method, headers: &head.headers })
    }

    /// Prepares the request for the application: without conditions that would hide a new tag from a crawler, and asking
    /// for pages that can be rewritten.
    pub fn forward(mut self: Box<Visit>, head: &mut Parts) -> Box<Visit> {
        let hides_change = has_condition(&head.headers)
            && self
                .judgement
                .as_ref()
                .is_some_and(|judgement| judgement.needs_whole_page(self.facts().host, self.now()));
        if let Some(page) = asked_page(&self.method, &self.uri, self.judgement.as_ref()) {
            self.page.ask(&mut head.headers, &page);
        }
        if hides_change {
            remove_conditions(&mut head.headers);
        }
        self
    }

    /// Takes note of the answer that crawlgate makes itself.
    pub fn answered(&mut self, answer: Answer) -> (ResponseParts, Bytes) {
        let (mut head, body) = Response::<Bytes>::from(answer).into_parts();
        if self.is_grpc {
            head.headers.insert(GRPC_STATUS, grpc_status(head.status));
        }
        self.note(&head);
        self.is_answered_whole = body.is_empty();
        (head, body)
    }

    /// Writes into the application's response what the policy says about it; says whether its body may become another one.
    pub fn passed(&mut self, head: &mut ResponseParts) -> bool {
        let mut is_rewritten = false;
        if let Some(page) = asked_page(&self.method, &self.uri, self.judgement.as_ref())
            && !head.status.is_informational()
        {
            let end = self.page.frame(&mut head.headers, head.status, &page);
            let judged = Some((page.decision, page.entry));
            let response = ForwardedResponse { status: head.status, hsts: None, judged };
            write_response(&mut head.headers, &response);
            is_rewritten = self.page.begin(&head.headers, page.entry);
            self.count_page(end);
        }
        self.note(head);
        is_rewritten
    }

    fn note(&mut self, head: &ResponseParts) {
        self.status = head.status.as_u16();
        self.tags = head.headers.get_all(X_ROBOTS_TAG).iter().cloned().collect();
    }

    /// A piece of a page that is rewritten; `None` is its end. Gives what can be sent by now.
    pub fn rewrite(&mut self, piece: Option<Bytes>) -> Option<Bytes> {
        let (piece, end) = self.page.write(piece);
        self.count_page(end);
        piece
    }

    /// The application broke off in the middle of a page: gives what is held of it.
    pub fn break_off(&mut self) -> Bytes {
        let (held, end) = self.page.break_off();
        self.count_page(end);
        held
    }

    fn count_page(&self, end: Option<&'static str>) {
        let judged = self.judgement.as_ref().and_then(Judgement::judged);
        if let (Some(end), Some(judged)) = (end, judged) {
            self.shared.judge.recorder().metrics().page(&judged.entry().site.name, end);
        }
    }

    /// Octets of the body were handed over to the server.
    pub fn sent(&mut self, octets: usize) {
        self.octets += octets as u64;
    }

    /// All of an answer was handed over to the server.
    pub fn ended(&mut self) {
        self.is_answered_whole = true;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Some(judgement) = &self.judgement else { return };
        let outcome = Outcome {
            tls: None,
            status: self.status,
            answered_whole: self.is_answered_whole,
            x_robots_tag: self.tags.iter().map(HeaderValue::as_bytes).collect(),
            body_octets: self.octets,
            elapsed: self.shared.judge.recorder().elapsed(self.started),
            http: heads::http_version(self.version),
            referer: self.referer.as_ref().map(HeaderValue::as_bytes),
            error: (self.status == 0).then_some("no_response"),
        };
        self.shared.judge.record(&self.facts(), judgement, &outcome);
    }
}

/// What gRPC makes of a status (grpc/doc/http-grpc-status-mapping.md), for clients that would read the body first.
fn grpc_status(status: StatusCode) -> HeaderValue {
    HeaderValue::from_static(match status.as_u16() {
        401 => "16",
        403 => "7",
        404 => "12",
        429 | 502..=504 => "14",
        _ => "2",
    })
}

/// Path and query; `*` stays what it is.
fn target(uri: &Uri) -> &[u8] {
    uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).as_bytes()
}

/// A request to a site, as what may be one for a page.
fn asked_page<'a>(method: &'a Method, uri: &'a Uri, judgement: Option<&'a Judgement>) -> Option<AskedPage<'a>> {
    let judged = judgement?.judged()?;
    Some(AskedPage { method, target: target(uri), decision: &judged.decision, entry: judged.entry() })
}
