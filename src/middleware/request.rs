//! [`InFlightRequest`]: one request to an application in which crawlgate runs as middleware. It
//! exists from the arrival of the request until its response is dropped. Then the request is
//! recorded in metrics and logs.

use super::pages::PageRewriteState;
use super::state::GateState;
use crate::answers::Answer;
use crate::forwarding::{ConnectionPeer, is_trusted, write_ids_into_map};
use crate::heads::{X_ROBOTS_TAG, http_version};
use crate::policy::Site;
use crate::record::{DecidingLine, RequestRecord};
use crate::requests::{ConnectionFacts, HeaderMapHead, ResponseEnd, ResponseOutcome, Ticket};
use crate::verdict::{Action, ActionKind, Identity, Kind};
use bytes::Bytes;
use http::request::Parts;
use http::response::Parts as ResponseParts;
use http::uri::{Authority, PathAndQuery};
use http::{Extensions, HeaderName, HeaderValue, Response, StatusCode, header};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// What crawlgate found out about a crawler's request, with the words of the logs
/// (`docs/logs-and-metrics.md`). The layer puts it into the extensions of each request of a crawler
/// that it passes on to the application, and into those of each response to a crawler. Tools such
/// as curl have one, too. Tests of a handler make one by `CrawlerRequest::default()`.
///
/// ```
/// use crawlgate::Identity;
/// use crawlgate::middleware::CrawlerRequest;
///
/// fn is_verified_crawler(request: &http::Request<()>) -> bool {
///     let crawler = request.extensions().get::<CrawlerRequest>();
///     crawler.is_some_and(|crawler| crawler.identity == Identity::Verified)
/// }
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CrawlerRequest {
    /// The registry's id, the policy's token, `other` for an unknown bot, or `tool`.
    pub crawler: String,
    /// Whether the client is that crawler. [`Identity::name`] is the word of the logs.
    pub identity: Identity,
    /// How the request relates to the rules. [`Kind::name`] is the word of the logs.
    pub kind: Kind,
    /// What the layer does. [`ActionKind::name`] is the word of the logs.
    pub action: ActionKind,
    /// What enforcement of this crawler would do, if the request passes only because the policy
    /// observes the crawler. Unknown bots are observed even with `mode: enforce` for the site.
    pub would: Option<ActionKind>,
    site: Option<Arc<Site>>,
    line: Option<DecidingLine>,
    request_id: SmallVec<[u8; 32]>,
}

impl CrawlerRequest {
    /// The site of the host. Empty in `CrawlerRequest::default()`.
    pub fn site(&self) -> &str {
        self.site.as_deref().map_or("", |site| &site.name)
    }

    /// The line of robots.txt that decided, such as `Disallow: /cart/`. `None` if no line matched.
    /// Allocates.
    pub fn rule(&self) -> Option<String> {
        self.line.as_ref()?.text()
    }

    /// Where that line comes from: `file:line:column` of the policy, or a line of the application's
    /// own robots.txt. Allocates.
    pub fn rule_source(&self) -> Option<String> {
        self.line.as_ref()?.location()
    }

    /// The id of the request in the logs. Empty in `CrawlerRequest::default()`.
    pub fn request_id(&self) -> &str {
        std::str::from_utf8(&self.request_id).unwrap_or_default()
    }

    /// `None` for a visitor, and if no site has the host.
    fn from_record(record: &RequestRecord) -> Option<CrawlerRequest> {
        let judged = record.judged()?;
        let decision = &judged.decision;
        Some(CrawlerRequest {
            crawler: record.crawler()?.to_owned(),
            identity: record.identity()?,
            kind: decision.kind,
            action: decision.action.kind(),
            would: decision.would.map(Action::kind),
            site: Some(judged.entry().site.clone()),
            line: judged.deciding_line(),
            request_id: record.request.id().into(),
        })
    }
}

impl fmt::Debug for CrawlerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrawlerRequest")
            .field("crawler", &self.crawler)
            .field("identity", &self.identity)
            .field("kind", &self.kind)
            .field("action", &self.action)
            .field("would", &self.would)
            .field("site", &self.site())
            .field("rule", &self.rule())
            .field("request_id", &self.request_id())
            .finish()
    }
}

/// One request. Small, because it moves with the futures and bodies that it is in.
pub struct InFlightRequest {
    ticket: Option<Ticket>,
    page: PageRewriteState,
    /// What was sent so far.
    status: u16,
    tags: Vec<HeaderValue>,
    pub bytes: u64,
    /// Whether the server has not taken crawlgate's own answer yet.
    pub answer_pending: bool,
    /// Whether the application, or the body of its response, ended with an error.
    pub has_failed: bool,
}

impl InFlightRequest {
    /// Has a request judged. Returns crawlgate's own answer, if the request does not pass. The
    /// address of the peer is found by the application's function, if it has set one.
    pub fn new(shared: &GateState, head: &Parts) -> (InFlightRequest, Option<Answer>) {
        let trusted = &shared.requests.settings().trusted_proxies;
        let address = shared.peer.and_then(|peer| peer(&head.extensions));
        let is_trusted = address.is_some_and(|peer| is_trusted(peer.to_canonical(), trusted));
        let connection = ConnectionFacts::cleartext(ConnectionPeer {
            address,
            is_trusted,
            ..ConnectionPeer::default()
        });
        let authority = head.uri.authority().map(Authority::as_str);
        // `*` stays what it is.
        let target = head.uri.path_and_query();
        let target = target.map_or("/", PathAndQuery::as_str).as_bytes();
        let request = HeaderMapHead::new(&head.method, target, authority, &head.headers);
        let request = request.prechecked(http_version(head.version));
        let (ticket, answer) =
            shared
                .requests
                .receive(&request, &connection, shared.requests.arrival_now());
        let call = InFlightRequest {
            ticket: Some(ticket),
            page: PageRewriteState::default(),
            status: 0,
            tags: Vec::new(),
            bytes: 0,
            answer_pending: answer.is_some(),
            has_failed: false,
        };
        (call, answer)
    }

    /// Prepares the request for the application: adds its id and its [`CrawlerRequest`], removes
    /// conditions that would hide a new tag from a crawler, and requests pages without coding, so
    /// that they can be rewritten.
    pub fn prepare_request(&mut self, head: &mut Parts) {
        if let Some(ticket) = &self.ticket {
            if let Some((_, entry)) = ticket.judged() {
                self.page.prepare_request(
                    &mut head.headers,
                    ticket.method(),
                    ticket.target(),
                    &entry.site,
                );
            }
            ticket
                .head_writer(ConnectionFacts::default())
                .write_request_in_process(&mut head.headers);
        }
        self.insert_crawler(&mut head.extensions);
    }

    /// Adds the [`CrawlerRequest`], if a crawler sent the request.
    fn insert_crawler(&self, extensions: &mut Extensions) {
        let ticket = self.ticket.as_ref();
        if let Some(crawler) =
            ticket.and_then(|ticket| CrawlerRequest::from_record(ticket.record()))
        {
            extensions.insert(crawler);
        }
    }

    /// Turns crawlgate's own answer into the head and body of a response, and keeps its status and
    /// tags for the record. An error has the id of the request, by which it is found in the logs. A
    /// gRPC call gets a `grpc-status`. The response is complete when the body is taken, or at once
    /// if it is empty.
    pub fn own_response(&mut self, answer: Answer, is_grpc: bool) -> (ResponseParts, Bytes) {
        let (mut head, body) = Response::<Bytes>::from(answer).into_parts();
        // The server is the application.
        head.headers.remove(header::SERVER);
        if let Some(ticket) = self.ticket.as_ref().filter(|_| head.status.as_u16() >= 400) {
            write_ids_into_map(&mut head.headers, ticket.record().request.id(), false);
        }
        if is_grpc {
            head.headers.insert(GRPC_STATUS, grpc_status(head.status));
        }
        self.record_response_head(&mut head);
        self.answer_pending = !body.is_empty();
        (head, body)
    }

    /// Adds the policy's fields to the application's response, unless that is informational, and
    /// keeps its status and tags for the record. Returns whether its body may be changed.
    pub fn finish_response_head(&mut self, head: &mut ResponseParts) -> bool {
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
                .adapt_head(&mut head.headers, head.status, decision, &entry.site);
            ticket
                .head_writer(ConnectionFacts::default())
                .write_response(&mut head.headers, head.status, None);
            self.page.start(&head.headers);
            self.count_rewrite_outcome(end);
        }
        self.record_response_head(head);
        self.page.may_change_length()
    }

    /// Keeps the status and the tags of the response for the record, and adds its
    /// [`CrawlerRequest`].
    fn record_response_head(&mut self, head: &mut ResponseParts) {
        self.insert_crawler(&mut head.extensions);
        self.status = head.status.as_u16();
        self.tags = head.headers.get_all(X_ROBOTS_TAG).iter().cloned().collect();
    }

    /// Rewrites a piece of a page; `None` is the end of the page. Returns the bytes that can be
    /// sent now, if there are any.
    pub fn rewrite_piece(&mut self, mut piece: Option<Bytes>) -> Option<Bytes> {
        let is_end = piece.is_none();
        let end = self.page.rewrite_chunk(&mut piece, is_end);
        self.count_rewrite_outcome(end);
        piece
    }

    /// Ends a page that the application broke off. Returns the bytes of it that are not sent yet.
    pub fn end_page_early(&mut self) -> Bytes {
        let (unsent, end) = self.page.abort();
        self.count_rewrite_outcome(end);
        unsent
    }

    fn count_rewrite_outcome(&self, end: Option<&'static str>) {
        if let (Some(end), Some(ticket)) = (end, &self.ticket) {
            ticket.count_page_rewrite(end);
        }
    }
}

impl Drop for InFlightRequest {
    /// Records the request. If no response was made, or crawlgate's own answer was not taken, the
    /// client has left.
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        ticket.finish(&ResponseOutcome {
            status: self.status,
            tags: self.tags.iter().map(HeaderValue::as_bytes).collect(),
            bytes: self.bytes,
            ended_by: if self.has_failed {
                ResponseEnd::Error("application_error")
            } else if self.status == 0 || self.answer_pending {
                ResponseEnd::Client
            } else {
                ResponseEnd::Complete
            },
        });
    }
}

/// Whether the request is a gRPC call, whose client reads `grpc-status`.
pub fn is_grpc(head: &Parts) -> bool {
    head.headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The gRPC status for an HTTP status (grpc/doc/http-grpc-status-mapping.md). Without it a client
/// would read the body first.
fn grpc_status(status: StatusCode) -> HeaderValue {
    HeaderValue::from_static(match status.as_u16() {
        401 => "16",
        403 => "7",
        404 => "12",
        429 | 502..=504 => "14",
        _ => "2",
    })
}
