//! The proxy of Pingora, for requests that the lane (`edge/lane`) does not forward, such as
//! WebSocket. [`Gateway`] implements Pingora's phases with the functions of other modules, and
//! decides nothing itself.
//!
//! Every request was received and judged by the edge, which hands it on as HTTP/1. `early` takes
//! the ticket of a request and sets the timeouts and keep-alive of its connection, `peer` chooses a
//! server, `response` adapts the response, and `errors` answers if the origin does not. The other
//! phases are in this file.

mod early;
mod errors;
mod heads;
mod peer;
mod response;

use crate::forwarding::{PageRewrite, RewriteEnd};
use crate::heads::X_ROBOTS_TAG;
use crate::requests::{Arrival, EndedBy, Record, Requests, Ticket};
use crate::settings::Limits;
use crate::upstreams::{Attempts, Reached, Upstreams};
use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::modules::http::HttpModules;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use std::sync::Arc;
use std::time::Duration;

/// The parts that all requests share.
pub struct Gateway {
    /// The sequence that every request goes through.
    pub requests: Arc<Requests>,
    /// The origins and their servers.
    pub upstreams: Arc<Upstreams>,
    /// Bounds on requests.
    pub limits: Limits,
}

/// One request. It is judged once: every phase goes by the same ticket.
pub struct RequestContext {
    arrival: Arrival,
    /// `None` when the request was recorded.
    ticket: Option<Ticket>,
    /// The servers that were tried.
    attempts: Attempts,
    /// Whether the request may be sent twice.
    may_repeat: bool,
    /// Whether octets of a response have come from the last server.
    has_octets: bool,
    /// Bytes of the heads of informational responses.
    informational_bytes: usize,
    body: PageRewrite,
}

impl RequestContext {
    /// Counts how the rewriting of a page ended, if it did.
    fn count_page(&self, end: Option<RewriteEnd>) {
        if let (Some(end), Some(ticket)) = (end, &self.ticket) {
            ticket.count_page(end);
        }
    }
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = RequestContext;

    /// The context before the ticket is taken: the arrival is now, nothing was tried, and the body
    /// passes as it is.
    fn new_ctx(&self) -> RequestContext {
        RequestContext {
            arrival: self.requests.arrival(),
            ticket: None,
            attempts: Attempts::default(),
            may_repeat: false,
            has_octets: false,
            informational_bytes: 0,
            body: PageRewrite::No,
        }
    }

    /// Adds none. The default adds a compression module to every request, switched off.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    /// Sets the timeouts and keep-alive of the connection, and takes the request's ticket and
    /// arrival into the context. Never fails.
    async fn early_request_filter(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        early::take_over(self, session, ctx);
        Ok(())
    }

    /// Chooses the server of the request: a new one after each failed attempt.
    async fn upstream_peer(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
    ) -> Result<Box<HttpPeer>> {
        peer::choose(self, session, ctx).await
    }

    /// Reports that the server could not be reached, and sets in the error whether another try
    /// follows.
    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        ctx: &mut RequestContext,
        mut error: Box<Error>,
    ) -> Box<Error> {
        // Nothing of the request was sent, so that another try is safe whatever its method.
        let goes_on = peer::note_failure(self, ctx, Reached::Nothing, &error);
        error.set_retry(goes_on);
        error
    }

    /// Reports that the server failed after the connection was made, and sets in the error whether
    /// another try follows. `is_kept` says that the connection was used before.
    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        _session: &mut Session,
        error: Box<Error>,
        ctx: &mut RequestContext,
        is_kept: bool,
    ) -> Box<Error> {
        peer::failed(self, ctx, error, is_kept)
    }

    /// Turns the head into the one for the origin. Without a ticket it goes on as it came.
    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream_request: &mut RequestHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        if let Some(ticket) = &ctx.ticket {
            if let Some((_, entry)) = ticket.judged() {
                ctx.body.ask(
                    upstream_request,
                    ticket.method(),
                    ticket.target(),
                    &entry.site,
                );
            }
            // HTTP/1.0 need not name a host; the request goes on as HTTP/1.1, which must.
            let host = ticket.origin_host(&self.upstreams).or_else(|| {
                ctx.attempts
                    .authority()
                    .filter(|_| ticket.host().is_empty())
            });
            ticket
                .forward(early::shared(session))
                .write_request(upstream_request, host);
        }
        Ok(())
    }

    /// Counts the bytes of the request's body. Fails if it is too large or too slow.
    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        _end_of_stream: bool,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        let Some(ticket) = &mut ctx.ticket else {
            return Ok(());
        };
        ticket
            .count_upload(body.as_ref().map_or(0, Bytes::len))
            .map_err(|error| {
                Error::because(
                    ErrorType::HTTPStatus(error.status()),
                    "while reading the request",
                    error,
                )
                .into_down()
            })
    }

    /// Checks the head of the origin's response, reserves buffer space for it, and decides whether
    /// its page is rewritten. Fails for a switch of protocols that nobody asked for, and without
    /// space.
    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        ctx.has_octets = true;
        response::check_switch(session, response)?;
        response::hold(session, response, ctx)?;
        // Before Pingora frames it: pingora-proxy 0.9.1 makes a response without length chunked
        // between the two filters.
        if let Some(ticket) = &ctx.ticket
            && let Some((decision, entry)) = ticket.judged()
        {
            let status = response.status;
            let end = ctx.body.frame(response, status, decision, &entry.site);
            ctx.count_page(end);
        }
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        response::filter(self, session, response, ctx);
        Ok(())
    }

    /// Rewrites a piece of the body, if the page is rewritten. The result `None` asks for no delay.
    fn response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut RequestContext,
    ) -> Result<Option<Duration>> {
        let end = ctx.body.write(body, end_of_stream);
        ctx.count_page(end);
        Ok(None)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        ctx: &mut RequestContext,
    ) -> FailToProxy {
        errors::answer(self, session, error, ctx).await
    }

    /// Whether Pingora leaves an error out of its log: the client caused it, or the request was
    /// refused. Clients leave all day.
    fn suppress_error_log(&self, _session: &Session, ctx: &RequestContext, error: &Error) -> bool {
        ctx.ticket.as_ref().is_some_and(Ticket::is_refused)
            || *error.esource() == ErrorSource::Downstream
    }

    /// Records what was sent. Over HTTP/2 the edge does so later. The context has no ticket
    /// afterwards.
    async fn logging(
        &self,
        session: &mut Session,
        error: Option<&Error>,
        ctx: &mut RequestContext,
    ) {
        let Some(ticket) = ctx.ticket.take() else {
            return;
        };
        let response = session.response_written();
        let tags = response
            .into_iter()
            .flat_map(|response| response.headers.get_all(X_ROBOTS_TAG));
        let record = Record {
            ticket,
            status: response.map_or(0, |response| response.status.as_u16()),
            tags: tags
                .flat_map(|tag| [tag.as_bytes(), b"\n"].concat())
                .collect(),
            bytes: session.body_bytes_sent() as u64,
            ended_by: error.map_or(EndedBy::Complete, |error| {
                EndedBy::Error(error.etype().as_str())
            }),
        };
        match early::connection(session) {
            Some(connection) => connection.record(record),
            None => record.finish(true),
        }
    }
}
