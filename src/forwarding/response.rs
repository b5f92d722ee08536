//! The response as the client gets it: the policy's tags and signals.

use super::head::Head;
use super::{signals, tags};
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::StatusCode;

/// Adds what the policy of a site says about a response of its origin.
pub fn write_response(head: &mut impl Head, status: StatusCode, entry: &SiteEntry, decision: &Decision) {
    tags::attach(head, status.as_u16(), entry, decision);
    signals::attach(head, entry, decision);
}
