//! [`Gateway`] forwards requests to origins with Pingora's proxy: it implements the phases of this
//! proxy. The module `edge` first receives and judges every request. crawlgate's own forwarder
//! (`edge/forwarder`) cannot send some requests, such as WebSockets. `edge` passes these requests
//! to Pingora, as HTTP/1.
//!
//! `connection` takes over the client's connection, `peer` chooses a server of the origin,
//! `response` adapts the response, and `errors` answers the client if the origin gives no response.

mod connection;
mod errors;
mod heads;
mod peer;
mod response;

use crate::forwarding::{PageRewriteState, RewriteLabel};
use crate::heads::X_ROBOTS_TAG;
use crate::requests::{ArrivalTimes, PendingRecord, RequestPipeline, ResponseEnd, Ticket};
use crate::settings::Limits;
use crate::upstreams::{AttemptProgress, Attempts, Upstreams, logged_error};
use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::modules::http::HttpModules;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use std::sync::Arc;
use std::time::Duration;

/// Pingora's application for the proxy.
pub struct Gateway {
    pub requests: Arc<RequestPipeline>,
    pub upstreams: Arc<Upstreams>,
    pub limits: Limits,
}

/// One request on its way through Pingora's phases.
pub struct GatewayContext {
    arrival: ArrivalTimes,
    /// `None` after the request was recorded.
    ticket: Option<Ticket>,
    attempts: Attempts,
    /// Whether the request may be sent again after an origin has perhaps received it.
    may_repeat: bool,
    /// Whether a response has come from the last server.
    has_response: bool,
    /// Bytes of the heads of informational responses.
    informational_bytes: usize,
    body: PageRewriteState,
}

impl GatewayContext {
    /// Counts how the rewriting of a page ended, if it did.
    fn count_rewrite_outcome(&self, end: Option<RewriteLabel>) {
        if let (Some(end), Some(ticket)) = (end, &self.ticket) {
            ticket.count_page_rewrite(end);
        }
    }
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = GatewayContext;

    /// The context before the ticket is taken.
    fn new_ctx(&self) -> GatewayContext {
        GatewayContext {
            arrival: self.requests.arrival_now(),
            ticket: None,
            attempts: Attempts::default(),
            may_repeat: false,
            has_response: false,
            informational_bytes: 0,
            body: PageRewriteState::Off,
        }
    }

    /// Adds none. The default adds a compression module to every request, although it is off.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(
        &self,
        session: &mut Session,
        ctx: &mut GatewayContext,
    ) -> Result<()> {
        connection::take_ticket(self, session, ctx);
        Ok(())
    }

    /// Called for each attempt.
    async fn upstream_peer(
        &self,
        session: &mut Session,
        ctx: &mut GatewayContext,
    ) -> Result<Box<HttpPeer>> {
        peer::choose_peer(self, session, ctx).await
    }

    /// Reports that no connection to the server could be made, and decides about another attempt.
    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        ctx: &mut GatewayContext,
        mut error: Box<Error>,
    ) -> Box<Error> {
        // Nothing of the request was sent, so that another attempt is safe whatever its method.
        let may_retry = peer::report_failure(self, ctx, AttemptProgress::Nothing, &error);
        error.set_retry(may_retry);
        error
    }

    /// Reports that the server failed after the connection was made, and decides about another
    /// attempt.
    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        _session: &mut Session,
        error: Box<Error>,
        ctx: &mut GatewayContext,
        is_reused: bool,
    ) -> Box<Error> {
        peer::report_request_failure(self, ctx, error, is_reused)
    }

    /// Turns the client's head into the one for the origin.
    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream_request: &mut RequestHeader,
        ctx: &mut GatewayContext,
    ) -> Result<()> {
        if let Some(ticket) = &ctx.ticket {
            if let Some((_, entry)) = ticket.judged() {
                ctx.body.prepare_request(
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
                .head_writer(connection::connection_facts(session))
                .write_request(upstream_request, host);
        }
        Ok(())
    }

    /// Counts the request's body. Fails if it is too large or too slow.
    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        _end_of_stream: bool,
        ctx: &mut GatewayContext,
    ) -> Result<()> {
        let Some(ticket) = &mut ctx.ticket else {
            return Ok(());
        };
        ticket
            .count_body_bytes(body.as_ref().map_or(0, Bytes::len))
            .map_err(|error| {
                Error::because(
                    ErrorType::HTTPStatus(error.status()),
                    "while reading the request",
                    error,
                )
                .into_down()
            })
    }

    /// Checks the head of the origin's response, reserves buffer space, and decides whether the
    /// page is rewritten.
    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut GatewayContext,
    ) -> Result<()> {
        ctx.has_response = true;
        response::check_protocol_switch(session, response)?;
        response::reserve_space(session, response, ctx)?;
        // Before Pingora frames it: pingora-proxy 0.9.1 makes a response without length chunked
        // between the two filters.
        if let Some(ticket) = &ctx.ticket
            && let Some((decision, entry)) = ticket.judged()
        {
            let status = response.status;
            let end = ctx.body.adapt_head(response, status, decision, &entry.site);
            ctx.count_rewrite_outcome(end);
        }
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut GatewayContext,
    ) -> Result<()> {
        response::rewrite_head(self, session, response, ctx);
        Ok(())
    }

    /// Rewrites a piece of the body, if the page is rewritten. The result is a delay: none.
    fn response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut GatewayContext,
    ) -> Result<Option<Duration>> {
        let end = ctx.body.rewrite_chunk(body, end_of_stream);
        ctx.count_rewrite_outcome(end);
        Ok(None)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        ctx: &mut GatewayContext,
    ) -> FailToProxy {
        errors::answer_failure(self, session, error, ctx).await
    }

    /// Whether Pingora does not log an error: the client caused it, or crawlgate rejected the
    /// request.
    fn suppress_error_log(&self, _session: &Session, ctx: &GatewayContext, error: &Error) -> bool {
        ctx.ticket.as_ref().is_some_and(Ticket::is_rejected)
            || *error.esource() == ErrorSource::Downstream
    }

    /// Records what was sent. Over HTTP/2 the edge does so later.
    async fn logging(
        &self,
        session: &mut Session,
        error: Option<&Error>,
        ctx: &mut GatewayContext,
    ) {
        let Some(ticket) = ctx.ticket.take() else {
            return;
        };
        let response = session.response_written();
        let tags = response
            .into_iter()
            .flat_map(|response| response.headers.get_all(X_ROBOTS_TAG));
        let record = PendingRecord {
            ticket,
            status: response.map_or(0, |response| response.status.as_u16()),
            tags: tags
                .flat_map(|tag| [tag.as_bytes(), b"\n"].concat())
                .collect(),
            bytes: session.body_bytes_sent() as u64,
            ended_by: error.map_or(ResponseEnd::Complete, |error| {
                ResponseEnd::Error(logged_error(error))
            }),
        };
        match connection::client_connection(session) {
            Some(connection) => connection.finish_response(record),
            None => record.finish(true),
        }
    }
}
