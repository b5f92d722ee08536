//! [`Visit`]: one request from its arrival until its response is at its end, when it is recorded.

use super::pages::{AskedPage, PageState};
use super::shared::Shared;
use crate::answers::Answer;
use crate::forwarding::{Peer, is_trusted};
use crate::heads::{X_ROBOTS_TAG, http_version};
use crate::requests::{Connection, EndedBy, MappedRequest, Next, Sent, Ticket};
use bytes::Bytes;
use http::request::Parts;
use http::response::Parts as ResponseParts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderName, HeaderValue, Response, StatusCode, Uri, header};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// One request. Small, because it moves with the futures and bodies that it is in.
pub struct Visit {
    /// Until it is recorded.
    ticket: Option<Ticket>,
    page: PageState,
    /// What was sent until now.
    status: u16,
    tags: Vec<HeaderValue>,
    octets: u64,
    /// Whether an answer of crawlgate's own is still to be handed over to the server.
    is_due: bool,
}

impl Visit {
    /// Receives a request. Gives the answer, if it gets one of crawlgate's own.
    pub fn new(shared: &Shared, head: &Parts) -> (Visit, Option<Answer>) {
        let trusted = &shared.requests.settings().trusted_proxies;
        let address = shared.peer.and_then(|peer| peer(&head.extensions));
        let is_trusted = address.is_some_and(|peer| is_trusted(peer.to_canonical(), trusted));
        let connection = Connection::from(Peer { address, is_trusted, is_tls: false });
        let authority = head.uri.authority().map(Authority::as_str);
        let request = MappedRequest::new(&head.method, target(&head.uri), authority, &head.headers);
        let request = request.checked(http_version(head.version));
        let (ticket, next) = shared.requests.receive(&request, &connection, shared.requests.arrival());
        let answer = match next {
            Next::Answer(answer) => Some(answer),
            Next::Forward => None,
        };
        let visit = Visit {
            ticket: Some(ticket),
            page: PageState::default(),
            status: 0,
            tags: Vec::new(),
            octets: 0,
            is_due: answer.is_some(),
        };
        (visit, answer)
    }

    /// Prepares the request for the application: with its id, without conditions that would hide a new tag from a crawler,
    /// and asking for pages that can be rewritten.
    pub fn forward(&mut self, head: &mut Parts) {
        let mut state = std::mem::take(&mut self.page);
        if let Some(page) = self.asked_page() {
            state.ask(&mut head.headers, &page);
        }
        self.page = state;
        if let Some(ticket) = &self.ticket {
            let nothing = Peer { address: None, is_trusted: false, is_tls: false };
            ticket.forward(Connection::from(nothing)).write_request_in_process(&mut head.headers);
        }
    }

    /// Takes note of the answer that crawlgate makes itself.
    pub fn answered(&mut self, answer: Answer, is_grpc: bool) -> (ResponseParts, Bytes) {
        let (mut head, body) = Response::<Bytes>::from(answer).into_parts();
        if is_grpc {
            head.headers.insert(GRPC_STATUS, grpc_status(head.status));
        }
        self.note(&head);
        self.is_due = !body.is_empty();
        (head, body)
    }

    /// Writes into the application's response what the policy says about it; says whether its body may become another one.
    pub fn passed(&mut self, head: &mut ResponseParts) -> bool {
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            self.ticket.iter_mut().for_each(Ticket::switch_protocol);
        }
        let (mut is_rewritten, mut state) = (false, std::mem::take(&mut self.page));
        if let (Some(ticket), Some(page)) = (&self.ticket, self.asked_page())
            && !head.status.is_informational()
        {
            let end = state.frame(&mut head.headers, head.status, &page);
            let nothing = Peer { address: None, is_trusted: false, is_tls: false };
            ticket.forward(Connection::from(nothing)).write_response(&mut head.headers, head.status);
            is_rewritten = state.begin(&head.headers, page.entry);
            self.count_page(end);
        }
        self.page = state;
        self.note(head);
        is_rewritten
    }

    /// The request to a site, as what may be one for a page.
    fn asked_page(&self) -> Option<AskedPage<'_>> {
        let ticket = self.ticket.as_ref()?;
        let (decision, entry) = ticket.judged()?;
        Some(AskedPage { method: ticket.method(), target: ticket.target(), decision, entry })
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
        if let (Some(end), Some(ticket)) = (end, &self.ticket) {
            ticket.count_page(end);
        }
    }

    /// Octets of the body were handed over to the server.
    pub fn sent(&mut self, octets: usize) {
        self.octets += octets as u64;
    }

    /// All of an answer was handed over to the server.
    pub fn ended(&mut self) {
        self.is_due = false;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        ticket.finish(&Sent {
            status: self.status,
            tags: self.tags.iter().map(HeaderValue::as_bytes).collect(),
            octets: self.octets,
            ended_by: if self.status == 0 || self.is_due { EndedBy::Client } else { EndedBy::Complete },
        });
    }
}

/// Whether it is a call of gRPC, whose clients read a status of their own.
pub fn is_grpc(head: &Parts) -> bool {
    head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
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
    uri.path_and_query().map_or("/", PathAndQuery::as_str).as_bytes()
}
