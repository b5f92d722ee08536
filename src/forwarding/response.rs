//! The response as the client gets it: the policy's tags and signals, and Strict-Transport-Security.

use super::head::Head;
use super::{signals, tags};
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::{HeaderValue, StatusCode, header};

/// What is known of a response that is passed on.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedResponse<'a> {
    /// Its status, which is no informational one.
    pub status: StatusCode,
    /// Strict-Transport-Security of the connection, where the origin does not send it.
    pub hsts: Option<&'a HeaderValue>,
    /// The decision about the request, and the site; `None` for a host that no site claims.
    pub judged: Option<(&'a Decision, &'a SiteEntry)>,
}

/// Adds what crawlgate says about a response of an origin. A response of a host that no site claims gets no more than the
/// fields of the connection.
pub fn write_response(head: &mut impl Head, response: &ForwardedResponse<'_>) {
    if let Some(hsts) = response.hsts
        && !head.has(header::STRICT_TRANSPORT_SECURITY)
    {
        head.set("Strict-Transport-Security", hsts.as_bytes());
    }
    if let Some((decision, entry)) = response.judged {
        tags::attach(head, response.status.as_u16(), entry, decision);
        signals::attach(head, entry, decision);
    }
}
