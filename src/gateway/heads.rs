//! Pingora's heads as the rooms below read them.

use crate::answers::Asked;
use crate::heads;
use pingora_http::RequestHeader;

/// The host that a request asks for.
pub(super) fn host(request: &RequestHeader) -> &[u8] {
    heads::host(&request.headers, request.uri.authority().map(http::uri::Authority::as_str))
}

/// The parts of a request that shape an answer to it.
pub(super) fn asked(request: &RequestHeader) -> Asked<'_> {
    Asked { method: &request.method, headers: &request.headers }
}
