//! The Pingora proxy: one file per phase. Translates between Pingora and the rooms below; decides nothing itself.
//!
//! Every request comes from the edge as one of HTTP/1, which has received it and lets it pass. The order of a request: `early`
//! takes it over, `peer` takes a prepared address, `forward` hands the request to the origin, `response` the response to the
//! client, `body` the pages that are rewritten, `upload` watches the body of the request, `errors` answers for an origin that
//! does not, `logging` records what was sent. `heads` is for all of them.
//! Must not know how a policy is written, loaded or judged.

mod body;
mod ctx;
mod early;
mod errors;
mod forward;
mod heads;
mod logging;
mod peer;
mod response;
mod upload;

pub use ctx::RequestContext;

use crate::requests::Requests;
use crate::settings::Limits;
use crate::telemetry::Metrics;
use crate::upstreams::Upstreams;
use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::modules::http::HttpModules;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use std::sync::Arc;
use std::time::Duration;

/// What all requests share.
pub struct Gateway {
    /// The sequence that every request goes through.
    pub requests: Arc<Requests>,
    /// Where requests go.
    pub upstreams: Arc<Upstreams>,
    /// Counters of what the gateway itself does.
    pub metrics: Arc<Metrics>,
    /// Bounds on requests.
    pub limits: Limits,
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = RequestContext;

    fn new_ctx(&self) -> RequestContext {
        RequestContext::new(self.requests.arrival())
    }

    /// None: the default adds a compression module to every request, switched off.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, ctx: &mut RequestContext) -> Result<()> {
        early::take_over(self, session, ctx);
        Ok(())
    }

    async fn upstream_peer(&self, session: &mut Session, ctx: &mut RequestContext) -> Result<Box<HttpPeer>> {
        peer::choose(self, session, ctx).await
    }

    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        ctx: &mut RequestContext,
        error: Box<Error>,
    ) -> Box<Error> {
        peer::connect_failed(self, ctx, error)
    }

    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        _session: &mut Session,
        error: Box<Error>,
        ctx: &mut RequestContext,
        is_kept: bool,
    ) -> Box<Error> {
        peer::failed(self, ctx, (error, is_kept))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream_request: &mut RequestHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        forward::request_header(session, upstream_request, ctx)?;
        body::ask(upstream_request, session.req_header(), ctx);
        Ok(())
    }

    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        _end_of_stream: bool,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        upload::check(body.as_ref(), ctx)
    }

    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        ctx.has_octets = true;
        response::check_switch(session, response)?;
        response::hold(session, response, ctx)?;
        body::frame(session.req_header(), response, ctx);
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        response::filter(self, session, response, ctx);
        body::begin(response, ctx);
        Ok(())
    }

    fn response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut RequestContext,
    ) -> Result<Option<Duration>> {
        body::rewrite(body, end_of_stream, ctx);
        Ok(None)
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, ctx: &mut RequestContext) -> FailToProxy {
        errors::answer(self, session, error, ctx).await
    }

    fn suppress_error_log(&self, _session: &Session, ctx: &RequestContext, error: &Error) -> bool {
        errors::is_clients_own(error, ctx)
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, ctx: &mut RequestContext) {
        logging::record(session, error, ctx);
    }
}
