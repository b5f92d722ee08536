//! The end of every request: what was sent is recorded.

use super::ctx::RequestContext;
use crate::requests::{EndedBy, Sent};
use http::HeaderValue;
use pingora_core::Error;
use pingora_proxy::Session;

pub(super) fn record(session: &Session, error: Option<&Error>, ctx: &mut RequestContext) {
    let Some(ticket) = ctx.ticket.take() else { return };
    let response = session.response_written();
    let tags = response.into_iter().flat_map(|response| response.headers.get_all("x-robots-tag"));
    ticket.finish(&Sent {
        status: response.map_or(0, |response| response.status.as_u16()),
        tags: tags.map(HeaderValue::as_bytes).collect(),
        octets: session.body_bytes_sent() as u64,
        ended_by: error.map_or(EndedBy::Complete, |error| EndedBy::Error(error.etype().as_str())),
    });
}
