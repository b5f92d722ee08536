//! The Pingora proxy: one file per phase. Translates between Pingora and the rooms below; decides nothing itself.
//!
//! The order of a request: `early` takes it over from the edge, `request` receives one over HTTP/2 and answers it or
//! lets it pass, `peer` takes a prepared address, `forward` hands the request to the origin, `response` the
//! response to the client, `body` the pages that are rewritten, `upload` watches the body of the request, `errors` answers
//! for an origin that does not, `logging` records what was sent. `heads` and `send` are for all of them.
//! Must not know how a policy is written, loaded or judged.

mod body;
mod ctx;
mod early;
mod errors;
mod forward;
mod heads;
mod logging;
mod peer;
mod request;
mod response;
mod send;
mod upload;

pub use ctx::RequestContext;

use crate::clock::Clock;
use crate::origin::Origins;
use crate::requests::Requests;
use crate::settings::Limits;
use crate::telemetry::Metrics;
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
    pub origins: Arc<Origins>,
    /// Counters of what the gateway itself does.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
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

    async fn request_filter(&self, session: &mut Session, ctx: &mut RequestContext) -> Result<bool> {
        request::filter(self, session, ctx).await
    }

    async fn upstream_peer(&self, session: &mut Session, ctx: &mut RequestContext) -> Result<Box<HttpPeer>> {
        peer::choose(self, session, ctx)
    }

    fn fail_to_connect(
        &self,
        session: &mut Session,
        _peer: &HttpPeer,
        ctx: &mut RequestContext,
        error: Box<Error>,
    ) -> Box<Error> {
        peer::connect_failed(self, session, ctx, error)
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream_request: &mut RequestHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        forward::request_header(self, session, upstream_request, ctx)?;
        body::ask(upstream_request, session.req_header(), ctx);
        Ok(())
    }

    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        upload::check(self, body.as_ref(), ctx)?;
        forward::end_request_body(body, end_of_stream);
        Ok(())
    }

    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        ctx: &mut RequestContext,
    ) -> Result<()> {
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
