//! The response as the client gets it: the policy's tags and signals, and Strict-Transport-Security.

use super::head::Head;
use super::{signals, tags};
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::{HeaderValue, StatusCode, header};

/// Adds what crawlgate says about a response of an origin, whose status is no informational one: the Strict-Transport-Security
/// of the connection, where the origin does not send it, and the tags and signals of the site. A response of a host that no
/// site claims has nothing to be added by a policy.
pub fn write_response(
    head: &mut impl Head,
    status: StatusCode,
    hsts: Option<&HeaderValue>,
    judged: Option<(&Decision, &SiteEntry)>,
) {
    if let Some(hsts) = hsts
        && !head.has(header::STRICT_TRANSPORT_SECURITY)
    {
        head.set("Strict-Transport-Security", hsts.as_bytes());
    }
    if let Some((decision, entry)) = judged {
        tags::attach(head, status.as_u16(), entry, decision);
        signals::attach(head, entry, decision);
    }
}
