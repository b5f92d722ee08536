//! [`write_response`] adds the policy's tags and signals, and Strict-Transport-Security, to a
//! response for the client.

use super::head::Head;
use super::{signals, tags};
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::{HeaderValue, StatusCode, header};

/// Adds Strict-Transport-Security (`hsts`), unless the origin sends it, and the tags and signals of
/// the site. The response is an origin's, and not an informational one. `judged` is `None` for a
/// host that no site has: then there are no tags and signals.
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
