//! The response as the client gets it: the policy's tags and signals.

use super::head::Head;
use super::{signals, tags};
use crate::heads::{X_ROBOTS_TAG, origin_form};
use crate::indexing::parse_lines;
use crate::policy::SiteEntry;
use crate::time::Timestamp;
use crate::verdict::Decision;
use http::{HeaderValue, StatusCode};

/// What is known of a response from a site's origin.
#[derive(Clone, Copy)]
pub struct ForwardedResponse<'a> {
    /// Its status.
    pub status: StatusCode,
    /// The request target as it came.
    pub target: &'a [u8],
    /// The decision about the request.
    pub decision: &'a Decision,
    /// The site.
    pub entry: &'a SiteEntry,
    /// When the request arrived.
    pub now: Timestamp,
}

/// Adds what the policy says about the response. Remembers what is said with the front page, for
/// `crawlgate_site_indexable`.
pub fn write_response(head: &mut impl Head, response: &ForwardedResponse<'_>) {
    let ForwardedResponse { status, target, decision, entry, now } = *response;
    tags::attach(head, status.as_u16(), entry, decision);
    signals::attach(head, entry, decision);
    if status == StatusCode::OK && *origin_form(target) == *b"/" {
        let lines = head.headers().get_all(X_ROBOTS_TAG).iter().map(HeaderValue::as_bytes);
        entry.site.front_page.saw(&parse_lines(lines).effective("googlebot"), now);
    }
}
