//! The response as the client gets it: the policy's tags and signals, and Strict-Transport-Security.

use super::head::Head;
use super::{signals, tags};
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use http::{HeaderName, HeaderValue, StatusCode, header};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

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

/// Takes away the fields of an origin's response that are for crawlgate alone, because its Connection field names them (RFC
/// 9110 section 7.6.1). Connection itself stays, and so do the fields that say where the body ends.
pub fn remove_named_by_connection(head: &mut impl Head) {
    const KEPT: [&[u8]; 4] = [b"close", b"content-length", b"transfer-encoding", b"connection"];
    let tokens = head.lines(header::CONNECTION).flat_map(|line| line.split(|octet| *octet == b','));
    let tokens = tokens.map(<[u8]>::trim_ascii).filter(|token| {
        // Nearly every response names this one, and nearly none has it.
        let is_absent = || token.eq_ignore_ascii_case(b"keep-alive") && !head.has(KEEP_ALIVE);
        !is_absent() && !KEPT.iter().any(|kept| token.eq_ignore_ascii_case(kept))
    });
    let named: Vec<Vec<u8>> = tokens.map(<[u8]>::to_vec).collect();
    if !named.is_empty() {
        head.remove_if(|name| named.iter().any(|named| named.eq_ignore_ascii_case(name.as_bytes())));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn fields_named_by_connection_go_and_those_of_the_body_stay() {
        let mut head = HeaderMap::new();
        for name in ["x-hop", "x-other", "x-end", "keep-alive", "content-length", "transfer-encoding"] {
            head.insert(name, HeaderValue::from_static("1"));
        }
        head.append("connection", HeaderValue::from_static("X-Hop,, content-length , Transfer-Encoding"));
        head.append("connection", HeaderValue::from_static("Keep-Alive, x-OTHER, close, connection"));
        remove_named_by_connection(&mut head);
        let mut left: Vec<&str> = head.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["connection", "content-length", "transfer-encoding", "x-end"]);
    }
}
