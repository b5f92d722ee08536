//! [`Call`]: one request in the middleware, from its arrival until its response is dropped. The
//! request is recorded then.

use super::pages::PageRewrite;
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
pub struct Call {
    ticket: Option<Ticket>,
    page: PageRewrite,
    /// What was sent until now.
    status: u16,
    tags: Vec<HeaderValue>,
    pub octets: u64,
    /// Whether an answer of crawlgate's own is still to be handed over to the server.
    pub is_due: bool,
}

impl Call {
    /// Has a request judged. Returns crawlgate's own answer, if the request does not pass. The
    /// address of the other end is what the application's function finds, if it has given one.
    pub fn new(shared: &Shared, head: &Parts) -> (Call, Option<Answer>) {
        let trusted = &shared.requests.settings().trusted_proxies;
        let address = shared.peer.and_then(|peer| peer(&head.extensions));
        let is_trusted = address.is_some_and(|peer| is_trusted(peer.to_canonical(), trusted));
        let connection = Connection::from(Peer {
            address,
            is_trusted,
            ..Peer::default()
        });
        let authority = head.uri.authority().map(Authority::as_str);
        let request = MappedRequest::new(&head.method, target(&head.uri), authority, &head.headers);
        let request = request.checked(http_version(head.version));
        let (ticket, next) =
            shared
                .requests
                .receive(&request, &connection, shared.requests.arrival());
        let answer = match next {
            Next::Answer(answer) => Some(answer),
            Next::Forward => None,
        };
        let call = Call {
            ticket: Some(ticket),
            page: PageRewrite::default(),
            status: 0,
            tags: Vec::new(),
            octets: 0,
            is_due: answer.is_some(),
        };
        (call, answer)
    }

    /// Prepares the request for the application: adds its id, removes conditions that would hide a
    /// new tag from a crawler, and asks for pages that can be rewritten. In the same process no
    /// facts of the connection are needed, so that an empty one is given.
    pub fn forward(&mut self, head: &mut Parts) {
        if let Some(ticket) = &self.ticket {
            if let Some((_, entry)) = ticket.judged() {
                self.page.ask(
                    &mut head.headers,
                    ticket.method(),
                    ticket.target(),
                    &entry.site,
                );
            }
            ticket
                .forward(Connection::from(Peer::default()))
                .write_request_in_process(&mut head.headers);
        }
    }

    /// Turns crawlgate's own answer into the head and body of a response, and keeps its status and
    /// tags for the record. A call of gRPC gets a `grpc-status`. The request counts as complete
    /// when the body is taken, at once if it is empty.
    pub fn answered(&mut self, answer: Answer, is_grpc: bool) -> (ResponseParts, Bytes) {
        let (mut head, body) = Response::<Bytes>::from(answer).into_parts();
        if is_grpc {
            head.headers.insert(GRPC_STATUS, grpc_status(head.status));
        }
        self.note(&head);
        self.is_due = !body.is_empty();
        (head, body)
    }

    /// Adds the policy's fields to the application's response, unless that is informational, and
    /// keeps its status and tags for the record. Returns whether its body may be changed.
    pub fn passed(&mut self, head: &mut ResponseParts) -> bool {
        if head.status == StatusCode::SWITCHING_PROTOCOLS
            && let Some(ticket) = &mut self.ticket
        {
            ticket.switch_protocol();
        }
        if let Some(ticket) = self
            .ticket
            .as_ref()
            .filter(|_| !head.status.is_informational())
            && let Some((decision, entry)) = ticket.judged()
        {
            let end = self
                .page
                .frame(&mut head.headers, head.status, decision, &entry.site);
            ticket
                .forward(Connection::from(Peer::default()))
                .write_response(&mut head.headers, head.status, None);
            self.page.begin(&head.headers);
            self.count_page(end);
        }
        self.note(head);
        self.page.has_own_length()
    }

    /// Keeps the status and the tags of the response for the record.
    fn note(&mut self, head: &ResponseParts) {
        self.status = head.status.as_u16();
        self.tags = head.headers.get_all(X_ROBOTS_TAG).iter().cloned().collect();
    }

    /// Rewrites a piece of a page; `None` is its end. Returns the bytes that can be sent by now;
    /// `None` if there are none.
    pub fn rewrite(&mut self, mut piece: Option<Bytes>) -> Option<Bytes> {
        let is_end = piece.is_none();
        let end = self.page.write(&mut piece, is_end);
        self.count_page(end);
        piece
    }

    /// Ends a page in the middle of which the application broke off. Returns what is held of it.
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
}

impl Drop for Call {
    /// Records the request. It is complete, unless no response was made or crawlgate's own answer
    /// was not taken: then the client has left.
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        ticket.finish(&Sent {
            status: self.status,
            tags: self.tags.iter().map(HeaderValue::as_bytes).collect(),
            octets: self.octets,
            ended_by: if self.status == 0 || self.is_due {
                EndedBy::Client
            } else {
                EndedBy::Complete
            },
        });
    }
}

/// Whether it is a call of gRPC, whose clients read a status of their own.
pub fn is_grpc(head: &Parts) -> bool {
    head.headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The status of gRPC for a status of HTTP (grpc/doc/http-grpc-status-mapping.md). A client without
/// it would read the body first.
fn grpc_status(status: StatusCode) -> HeaderValue {
    HeaderValue::from_static(match status.as_u16() {
        401 => "16",
        403 => "7",
        404 => "12",
        429 | 502..=504 => "14",
        _ => "2",
    })
}

/// Path and query, `/` if the URI has none; `*` stays what it is.
fn target(uri: &Uri) -> &[u8] {
    uri.path_and_query()
        .map_or("/", PathAndQuery::as_str)
        .as_bytes()
}
