//! [`write_response`] adds header fields to an origin's response: the policy's X-Robots-Tag, its
//! signals about the use of the content, and Strict-Transport-Security.

use super::head::EditableHead;
use super::{signals, tags};
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::{HeaderValue, StatusCode, header};

/// Adds Strict-Transport-Security (`hsts`), unless the origin sends it, and the tags and signals of
/// the site to an origin's final response. `judged` is `None` for a host without a site.
pub fn write_response(
    head: &mut impl EditableHead,
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
        tags::add_tags(head, status.as_u16(), entry, decision);
        signals::add_signals(head, entry, decision);
    }
}
