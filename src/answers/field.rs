//! The names of the header fields that only crawlgate's own responses have.

use http::HeaderName;

/// Tells a proxy that asks for a decision that the request may pass.
pub const DECISION: HeaderName = HeaderName::from_static("crawlgate-decision");
/// The id of the request, by which logs name it.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Tells a proxy that asks for a decision that crawlgate refuses, and with which status.
pub const STATUS: HeaderName = HeaderName::from_static("crawlgate-status");
