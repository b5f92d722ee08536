//! [`write_request`] turns the head that a client sent into the head for the origin: with forwarding fields and the
//! request's id, and without conditions by which a 304 would hide a new tag from a crawler.

use super::client::is_forwarding_field;
use super::head::{Head, field_value};
use http::{HeaderMap, HeaderName, header};
use smallvec::SmallVec;
use std::net::IpAddr;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The conditions by which an origin may answer 304.
const CONDITIONS: [HeaderName; 2] = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];

/// The other end of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    /// Its address, where it has one.
    pub address: Option<IpAddr>,
    /// Whether its forwarding fields are believed.
    pub is_trusted: bool,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
}

/// The facts about a forwarded request.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedRequest<'a> {
    /// The host of the request; empty if an HTTP/1.0 request has none.
    pub host: &'a [u8],
    /// The other end of the client's connection.
    pub peer: Peer,
    /// The Host for the origin in place of the client's.
    pub origin_host: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a [u8],
    /// Whether the `traceparent` of the request is malformed.
    pub has_malformed_trace: bool,
    /// Whether the client has to get the whole page: a 304 would hide a new noindex from a crawler that has the page.
    pub needs_whole_page: bool,
}

/// Whether the origin may answer 304 to a request with these fields.
pub fn has_condition(head: &impl Head) -> bool {
    CONDITIONS.into_iter().any(|name| head.has(name))
}

/// Removes the conditions by which an origin may answer 304.
pub fn remove_conditions(head: &mut impl Head) {
    CONDITIONS.into_iter().for_each(|name| head.remove(&name));
}

/// Turns `head`, which has the fields as they came, into the head for the origin.
pub fn write_request(head: &mut impl Head, request: &ForwardedRequest<'_>) {
    if let Some(host) = request.origin_host {
        head.set("Host", host.as_bytes());
    }
    if request.needs_whole_page {
        remove_conditions(head);
    }
    head.remove_if(reads_like_ours);
    write_forwarding_fields(head, request);
    write_ids(head, request.request_id, request.has_malformed_trace);
}

/// Writes the id of the request. A malformed `traceparent` is removed with the `tracestate` that belongs to it (W3C Trace
/// Context, section 3.3). Well-formed ones stay as they came, because crawlgate is no span of a trace.
fn write_ids(head: &mut impl Head, request_id: &[u8], has_malformed_trace: bool) {
    head.set("X-Request-Id", request_id);
    if has_malformed_trace {
        head.remove(&TRACEPARENT);
        head.remove(&TRACESTATE);
    }
}

/// Writes the ids for an application in the same process. Into a map, with names that are known, the id costs half as much.
pub fn write_ids_in_map(headers: &mut HeaderMap, request_id: &[u8], has_malformed_trace: bool) {
    if let Some(value) = field_value("X-Request-Id", request_id) {
        headers.insert(REQUEST_ID, value);
    }
    if has_malformed_trace {
        headers.remove(TRACEPARENT);
        headers.remove(TRACESTATE);
    }
}

/// Fields with a hyphen that crawlgate writes into a request or takes away, beside those of a proxy.
const WRITTEN: [HeaderName; 4] =
    [header::ACCEPT_ENCODING, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, REQUEST_ID];
/// The beginning of the fields in which a proxy says what its client asked for: host, scheme, port and more.
const OF_A_PROXY: &str = "x-forwarded-";

/// Whether applications may read this field as one of a proxy, or as one that crawlgate writes: CGI and its heirs turn
/// hyphens into underscores (RFC 3875 section 4.1.18), so that `X_Forwarded_For` and `X-Forwarded-For` are one variable.
fn reads_like_ours(name: &str) -> bool {
    if !name.contains('_') {
        return false;
    }
    let name = name.replace('_', "-").to_ascii_lowercase();
    name.starts_with(OF_A_PROXY) || is_forwarding_field(&name) || WRITTEN.iter().any(|written| written.as_str() == name)
}

/// The claims of an untrusted client about itself are replaced. Those of a trusted proxy are kept and extended.
fn write_forwarding_fields(head: &mut impl Head, request: &ForwardedRequest<'_>) {
    let ForwardedRequest { host, peer, .. } = *request;
    match peer.address {
        Some(address) => {
            let value = forwarded_for(head, address, peer.is_trusted);
            head.set("X-Forwarded-For", &value);
        }
        None => head.remove(&FORWARDED_FOR),
    }
    if !peer.is_trusted {
        head.remove(&FORWARDED);
        head.remove(&REAL_IP);
    }
    if !peer.is_trusted || !head.has(FORWARDED_PROTO) {
        head.set("X-Forwarded-Proto", if peer.is_tls { b"https" } else { b"http" });
    }
    if !peer.is_trusted || !head.has(FORWARDED_HOST) {
        match host {
            [] => head.remove(&FORWARDED_HOST),
            host => head.set("X-Forwarded-Host", host),
        }
    }
}

/// The value of X-Forwarded-For: the lines of a trusted peer, joined, and the peer at the end.
fn forwarded_for(head: &impl Head, peer: IpAddr, is_trusted: bool) -> SmallVec<[u8; 48]> {
    let mut value = SmallVec::new();
    if is_trusted {
        for line in head.lines(FORWARDED_FOR) {
            value.extend_from_slice(line);
            value.extend_from_slice(b", ");
        }
    }
    write_address(&mut value, peer);
    value
}

/// Writes an address. Each request has one, and for those of IPv4 the formatting of the standard library takes ten times as
/// long.
fn write_address(value: &mut SmallVec<[u8; 48]>, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        return value.extend_from_slice(address.to_string().as_bytes());
    };
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            value.push(b'.');
        }
        if octet >= 100 {
            value.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            value.push(b'0' + octet / 10 % 10);
        }
        value.push(b'0' + octet % 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    /// The fields that the origin gets of these.
    fn forwarded(original: &HeaderMap, is_trusted: bool) -> HeaderMap {
        let request = ForwardedRequest {
            host: b"shop.example",
            peer: Peer { address: Some([192, 0, 2, 1].into()), is_trusted, is_tls: false },
            origin_host: None,
            request_id: b"id-1",
            has_malformed_trace: false,
            needs_whole_page: false,
        };
        let mut head = original.clone();
        write_request(&mut head, &request);
        head
    }

    #[test]
    fn addresses_are_written_as_they_are_displayed() {
        let written = |address: IpAddr| {
            let mut value = SmallVec::new();
            write_address(&mut value, address);
            String::from_utf8(value.into_vec()).expect("ASCII")
        };
        for octet in 0..=255 {
            let address = IpAddr::from([octet, 10, octet, 0]);
            assert_eq!(written(address), address.to_string());
        }
        let address: IpAddr = "2001:db8::1".parse().expect("an address");
        assert_eq!(written(address), "2001:db8::1");
    }

    const CLAIMS: [(&str, &str); 6] = [
        ("x-forwarded-for", "198.51.100.1"),
        ("x-forwarded-for", "10.0.0.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "www.shop.example"),
        ("forwarded", "for=198.51.100.1"),
        ("x-real-ip", "198.51.100.1"),
    ];

    #[test]
    fn claims_of_an_untrusted_peer_are_replaced() {
        let sent = forwarded(&headers(&CLAIMS), false);
        assert_eq!(
            sent,
            headers(&[
                ("x-forwarded-for", "192.0.2.1"),
                ("x-forwarded-proto", "http"),
                ("x-forwarded-host", "shop.example"),
                ("x-request-id", "id-1"),
            ])
        );
    }

    #[test]
    fn claims_with_underscores_go_from_every_peer() {
        let claims = headers(&[
            ("x_forwarded_for", "198.51.100.1"),
            ("x-forwarded_for", "198.51.100.1"),
            ("x_real_ip", "198.51.100.1"),
            ("cf_connecting_ip", "198.51.100.1"),
            ("x_forwarded_proto", "https"),
            ("x_forwarded_host", "a.example"),
            ("x_forwarded_port", "443"),
            ("x_forwarded-prefix", "/admin"),
            ("true_client_ip", "198.51.100.1"),
            ("x_request_id", "id-2"),
            ("accept_encoding", "gzip"),
            ("if_none_match", "*"),
            ("if_modified_since", "yesterday"),
            ("x_own", "1"),
        ]);
        for is_trusted in [false, true] {
            let sent = forwarded(&claims, is_trusted);
            let left: Vec<&str> = sent.keys().map(HeaderName::as_str).filter(|name| name.contains('_')).collect();
            assert_eq!(left, ["x_own"]);
        }
    }

    #[test]
    fn claims_of_a_trusted_peer_are_kept_and_extended() {
        let sent = forwarded(&headers(&CLAIMS), true);
        let expected = headers(&[
            ("x-forwarded-for", "198.51.100.1, 10.0.0.2, 192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "www.shop.example"),
            ("forwarded", "for=198.51.100.1"),
            ("x-real-ip", "198.51.100.1"),
            ("x-request-id", "id-1"),
        ]);
        assert_eq!(sent, expected);
        assert_eq!(forwarded(&HeaderMap::new(), true)["x-forwarded-proto"], "http", "it said nothing");
    }

    #[test]
    fn request_without_host_gets_the_origins() {
        let request = ForwardedRequest {
            host: b"",
            peer: Peer { address: None, is_trusted: false, is_tls: false },
            origin_host: Some("10.0.0.1:80"),
            request_id: b"id-1",
            has_malformed_trace: false,
            needs_whole_page: false,
        };
        let mut head = headers(&[("x-forwarded-for", "a"), ("x-forwarded-host", "b")]);
        write_request(&mut head, &request);
        assert_eq!(head, headers(&[("host", "10.0.0.1:80"), ("x-forwarded-proto", "http"), ("x-request-id", "id-1")]));
    }

    #[test]
    fn malformed_trace_goes_with_its_state() {
        let original =
            headers(&[("x-request-id", "a"), ("x-request-id", "b"), ("traceparent", "00-1"), ("tracestate", "c=1")]);
        for write in [write_ids, write_ids_in_map] {
            let mut head = original.clone();
            write(&mut head, b"id-1", true);
            assert_eq!(head, headers(&[("x-request-id", "id-1")]));
            let mut head = original.clone();
            write(&mut head, b"id-1", false);
            assert_eq!(head, headers(&[("x-request-id", "id-1"), ("traceparent", "00-1"), ("tracestate", "c=1")]));
        }
    }

    #[test]
    fn conditions_go_where_the_whole_page_is_needed() {
        let original = headers(&[("if-none-match", "\"a\""), ("if-modified-since", "yesterday")]);
        assert!(has_condition(&original) && !has_condition(&HeaderMap::new()));
        for needs_whole_page in [false, true] {
            let request = ForwardedRequest {
                host: b"shop.example",
                peer: Peer { address: None, is_trusted: false, is_tls: false },
                origin_host: None,
                request_id: b"id-1",
                has_malformed_trace: false,
                needs_whole_page,
            };
            let mut head = original.clone();
            write_request(&mut head, &request);
            assert_eq!(has_condition(&head), !needs_whole_page);
        }
    }
}
