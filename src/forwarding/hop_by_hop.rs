//! Removes hop-by-hop header fields, which concern one connection and which a proxy does not
//! forward (RFC 9110 section 7.6.1). [`is_hop_by_hop`] recognises such a field by its name.
//! [`is_dropped_from_response`] says whether a field of an origin's response is removed, which also
//! depends on the status. [`remove_connection_named`] removes the fields that the field Connection
//! names.

use super::head::EditableHead;
use crate::heads::list_members;
use http::{StatusCode, header};

/// Whether a field concerns one connection only (RFC 9110 section 7.6.1). HTTP/2 has none of them
/// except TE in requests (RFC 9113 section 8.2.2).
pub fn is_hop_by_hop(name: &str) -> bool {
    match name.len() {
        2 => name.eq_ignore_ascii_case("te"),
        7 => name.eq_ignore_ascii_case("upgrade"),
        10 => name.eq_ignore_ascii_case("connection") || name.eq_ignore_ascii_case("keep-alive"),
        16 => name.eq_ignore_ascii_case("proxy-connection"),
        17 => name.eq_ignore_ascii_case("transfer-encoding"),
        _ => false,
    }
}

/// Whether crawlgate drops a field from an origin's response with this status: hop-by-hop fields,
/// with these exceptions. Connection and Transfer-Encoding stay for the code that frames the body.
/// A 426 keeps Upgrade (RFC 9110 section 15.5.22). A 1xx and a 204 have no body, and lose
/// Content-Length and Transfer-Encoding (section 8.6, RFC 9112 section 6.1). A 304 keeps its length
/// (RFC 9110 section 15.4.5).
pub fn is_dropped_from_response(name: &str, status: StatusCode) -> bool {
    let is_bodiless = status.is_informational() || status == StatusCode::NO_CONTENT;
    match name.len() {
        7 => status != StatusCode::UPGRADE_REQUIRED && name.eq_ignore_ascii_case("upgrade"),
        10 => name.eq_ignore_ascii_case("keep-alive"),
        14 => is_bodiless && name.eq_ignore_ascii_case("content-length"),
        17 => is_bodiless && name.eq_ignore_ascii_case("transfer-encoding"),
        _ => is_hop_by_hop(name),
    }
}

/// Removes the fields of an origin's response that its Connection field names, except Connection
/// itself, Keep-Alive, and the fields that frame the body.
pub fn remove_connection_named(head: &mut impl EditableHead) {
    const KEPT: [&[u8]; 5] = [
        b"close",
        b"keep-alive",
        b"content-length",
        b"transfer-encoding",
        b"connection",
    ];
    let tokens = head
        .lines(header::CONNECTION)
        .flat_map(list_members)
        .filter(|token| !KEPT.iter().any(|kept| token.eq_ignore_ascii_case(kept)));
    let named: Vec<Vec<u8>> = tokens.map(<[u8]>::to_vec).collect();
    if !named.is_empty() {
        head.remove_if(|name| {
            named
                .iter()
                .any(|named| named.eq_ignore_ascii_case(name.as_bytes()))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn connection_named_fields_go_but_framing_stays() {
        let mut head = HeaderMap::new();
        for name in [
            "x-hop",
            "x-other",
            "x-end",
            "content-length",
            "transfer-encoding",
        ] {
            head.insert(name, HeaderValue::from_static("1"));
        }
        head.append(
            "connection",
            HeaderValue::from_static("X-Hop,, content-length , Transfer-Encoding"),
        );
        head.append(
            "connection",
            HeaderValue::from_static("Keep-Alive, x-OTHER, close, connection"),
        );
        remove_connection_named(&mut head);
        let mut left: Vec<&str> = head.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(
            left,
            ["connection", "content-length", "transfer-encoding", "x-end"]
        );
    }

    #[test]
    fn hop_by_hop_fields_are_dropped_by_status() {
        const FIELDS: [&str; 8] = [
            "Connection",
            "Content-Length",
            "Keep-Alive",
            "Proxy-Connection",
            "TE",
            "Transfer-Encoding",
            "Upgrade",
            "X-Robots-Tag",
        ];
        let left = |status: u16| -> Vec<&str> {
            let status = StatusCode::from_u16(status).expect("a status");
            FIELDS
                .into_iter()
                .filter(|name| !is_dropped_from_response(name, status))
                .collect()
        };
        let framed = [
            "Connection",
            "Content-Length",
            "Transfer-Encoding",
            "X-Robots-Tag",
        ];
        assert_eq!((left(200), left(304)), (framed.to_vec(), framed.to_vec()));
        assert_eq!(
            left(426),
            [
                "Connection",
                "Content-Length",
                "Transfer-Encoding",
                "Upgrade",
                "X-Robots-Tag"
            ]
        );
        for bodiless in [103, 204] {
            assert_eq!(left(bodiless), ["Connection", "X-Robots-Tag"], "{bodiless}");
        }
    }
}
