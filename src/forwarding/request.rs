//! [`write_request`] turns the request head that a client sent into the head for the origin. It
//! adds fields about the client (such as X-Forwarded-For) and the request id. It removes conditions
//! (If-None-Match) if a 304 could hide a new X-Robots-Tag from a crawler.

use super::client::{ConnectionPeer, ForwardedElement};
use super::head::{EditableHead, valid_field_value};
use crate::heads::ForwardingFieldSet;
use crate::settings::ClientAddressField;
use http::{HeaderMap, HeaderName, header};
use smallvec::SmallVec;
use std::net::IpAddr;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Each proxy adds its name to this field, so that it notices a request that circles (RFC 8586).
pub static CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");
/// The name that crawlgate adds.
pub const LOOP_NAME: &[u8] = b"crawlgate";
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The prefix of the fields in which a proxy says what its client asked for: host, scheme, port and
/// more.
const X_FORWARDED_PREFIX: &str = "x-forwarded-";

/// The conditions by which an origin may answer 304.
const CONDITIONS: [HeaderName; 2] = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];

/// What [`write_request`] needs to know about a request.
pub struct ForwardingFacts<'a> {
    /// The host of the request; empty for an HTTP/1.0 request without one.
    pub host: &'a [u8],
    /// The other end of the client's connection.
    pub peer: ConnectionPeer,
    /// The address of the client, if it is known.
    pub client: Option<IpAddr>,
    /// The field in which trusted proxies name their client.
    pub field: &'a ClientAddressField,
    /// The other parameters of `Forwarded`, if that is this field.
    pub forwarded: Option<&'a ForwardedElement>,
    /// False if the head has no forwarding fields. Saves the search for them.
    pub may_have_forwarding: bool,
    /// Replaces the client's Host.
    pub origin_host: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a [u8],
    /// Whether the `traceparent` of the request is malformed.
    pub has_malformed_trace: bool,
    /// Whether a 304 would hide a new tag from a crawler that has the page.
    pub needs_whole_page: bool,
}

/// Whether a request has conditions by which an origin may answer 304.
pub fn has_condition(head: &impl EditableHead) -> bool {
    CONDITIONS.into_iter().any(|name| head.has(name))
}

/// Removes the conditions by which an origin may answer 304.
pub fn remove_conditions(head: &mut impl EditableHead) {
    for name in CONDITIONS {
        head.remove(&name);
    }
}

/// Turns the client's head into the one for the origin.
pub fn write_request(head: &mut impl EditableHead, request: &ForwardingFacts<'_>) {
    if let Some(host) = request.origin_host {
        head.set("Host", host.as_bytes());
    }
    if request.needs_whole_page {
        remove_conditions(head);
    }
    write_forwarding_fields(head, request);
    head.add("CDN-Loop", LOOP_NAME);
    write_ids(head, request.request_id, request.has_malformed_trace);
}

/// Writes the id of the request. A malformed `traceparent` is removed with its `tracestate` (W3C
/// Trace Context, section 3.3). A well-formed one stays, because crawlgate is no span of the trace.
fn write_ids(head: &mut impl EditableHead, request_id: &[u8], has_malformed_trace: bool) {
    head.set("X-Request-Id", request_id);
    if has_malformed_trace {
        head.remove(&TRACEPARENT);
        head.remove(&TRACESTATE);
    }
}

/// Like `write_ids`, for an application in the same process. For a map this costs half as much.
pub fn write_ids_into_map(headers: &mut HeaderMap, request_id: &[u8], has_malformed_trace: bool) {
    if let Some(value) = valid_field_value("X-Request-Id", request_id) {
        headers.insert(REQUEST_ID, value);
    }
    if has_malformed_trace {
        headers.remove(TRACEPARENT);
        headers.remove(TRACESTATE);
    }
}

/// Fields with a hyphen that crawlgate writes or removes, beside forwarding fields.
const WRITTEN_FIELDS: [HeaderName; 4] = [
    header::ACCEPT_ENCODING,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    REQUEST_ID,
];

impl ForwardingFacts<'_> {
    /// Whether X-Forwarded-Proto, -Host and others with this prefix are believed.
    fn trusts_x_forwarded_fields(&self) -> bool {
        self.peer.is_trusted && !self.field.is_forwarded()
    }

    /// Whether the origin does not get this field. X-Forwarded-For is always written anew.
    ///
    /// - From an untrusted client, all forwarding fields except Via are dropped, and the field in
    ///   which proxies name their client.
    /// - From a trusted proxy, either `Forwarded` or the `X-Forwarded-` fields are believed, and
    ///   the other ones are dropped.
    /// - A name with `_` is dropped if it may be read as one of these or of crawlgate's own.
    fn is_dropped(&self, name: &str) -> bool {
        if name.contains('_') {
            return self.may_be_read_as_ours(name);
        }
        if !self.peer.is_trusted {
            return name.eq_ignore_ascii_case(self.field.0.as_str())
                || self.may_have_forwarding
                    && !ForwardingFieldSet::from_name(name).without_via().is_empty();
        }
        if self.trusts_x_forwarded_fields() {
            return name.eq_ignore_ascii_case(FORWARDED_FOR.as_str())
                || name.eq_ignore_ascii_case(header::FORWARDED.as_str());
        }
        // X-Forwarded-For among them.
        name.get(..X_FORWARDED_PREFIX.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(X_FORWARDED_PREFIX))
    }

    /// Whether applications may read this field as a forwarding field, or as one that crawlgate
    /// writes. CGI and its successors turn hyphens into underscores (RFC 3875 section 4.1.18), so
    /// that `X_Forwarded_For` and `X-Forwarded-For` become one variable.
    fn may_be_read_as_ours(&self, name: &str) -> bool {
        let name = name.replace('_', "-").to_ascii_lowercase();
        !ForwardingFieldSet::from_name(&name).is_empty()
            || name == self.field.0.as_str()
            || WRITTEN_FIELDS
                .iter()
                .any(|written| written.as_str() == name)
    }

    /// The value of X-Forwarded-For: that of a trusted peer, or the client that it names in another
    /// field, followed by the address of the peer.
    fn forwarded_for(&self, head: &impl EditableHead, peer: IpAddr) -> SmallVec<[u8; 48]> {
        let mut value = SmallVec::new();
        if self.peer.is_trusted && self.field.is_x_forwarded_for() {
            for line in head.lines(FORWARDED_FOR) {
                value.extend_from_slice(line);
                value.extend_from_slice(b", ");
            }
        } else if let Some(client) = self.client.filter(|_| self.peer.is_trusted) {
            write_address(&mut value, client);
            value.extend_from_slice(b", ");
        }
        write_address(&mut value, peer);
        value
    }
}

/// Writes X-Forwarded-For, -Proto and -Host. Those of an untrusted client are replaced, those of a
/// trusted proxy are kept and extended. A peer without an address adds no X-Forwarded-For.
fn write_forwarding_fields(head: &mut impl EditableHead, request: &ForwardingFacts<'_>) {
    let ForwardingFacts {
        peer, forwarded, ..
    } = *request;
    let forwarded_for = peer
        .address
        .map(|address| request.forwarded_for(head, address));
    head.remove_if(|name| request.is_dropped(name));
    if let Some(value) = forwarded_for {
        head.add("X-Forwarded-For", &value);
    }
    let keeps = request.trusts_x_forwarded_fields();
    if !keeps || !head.has(FORWARDED_PROTO) {
        let own = if peer.is_tls { "https" } else { "http" };
        let proto = forwarded
            .and_then(|forwarded| forwarded.proto)
            .unwrap_or(own);
        head.add("X-Forwarded-Proto", proto.as_bytes());
    }
    let host = forwarded
        .and_then(|forwarded| forwarded.host.as_deref())
        .unwrap_or(request.host);
    if !host.is_empty() && (!keeps || !head.has(FORWARDED_HOST)) {
        head.add("X-Forwarded-Host", host);
    }
}

/// Writes an address. For IPv4, the formatting of the standard library takes five times as long.
fn write_address(value: &mut SmallVec<[u8; 48]>, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        return value.extend_from_slice(address.to_string().as_bytes());
    };
    for number in address.octets() {
        value.extend(itoa::Buffer::new().format(number).bytes());
        value.push(b'.');
    }
    value.pop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::ResolvedClient;
    use http::HeaderValue;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn request<'a>(peer: ConnectionPeer, field: &'a ClientAddressField) -> ForwardingFacts<'a> {
        ForwardingFacts {
            may_have_forwarding: true,
            host: b"shop.example",
            peer,
            client: peer.address,
            field,
            forwarded: None,
            origin_host: None,
            request_id: b"id-1",
            has_malformed_trace: false,
            needs_whole_page: false,
        }
    }

    /// The head that the origin gets.
    fn forwarded(original: &HeaderMap, is_trusted: bool) -> HeaderMap {
        forwarded_by("x-forwarded-for", original, is_trusted)
    }

    /// The head that the origin gets if proxies name their client in `field`.
    fn forwarded_by(field: &'static str, original: &HeaderMap, is_trusted: bool) -> HeaderMap {
        let field = ClientAddressField(HeaderName::from_static(field));
        let peer = ConnectionPeer {
            address: Some([192, 0, 2, 1].into()),
            is_trusted,
            ..ConnectionPeer::default()
        };
        let lines = original.get_all(&field.0).iter().map(HeaderValue::as_bytes);
        let client = ResolvedClient::resolve(peer, || lines, &field, &[]);
        let request = ForwardingFacts {
            client: client.address,
            forwarded: client.forwarded.as_deref(),
            ..request(peer, &field)
        };
        let mut head = original.clone();
        write_request(&mut head, &request);
        assert_eq!(head.remove(&CDN_LOOP).expect("the name"), "crawlgate");
        head
    }

    #[test]
    fn addresses_are_written_like_their_display() {
        let written = |address: IpAddr| {
            let mut value = SmallVec::new();
            write_address(&mut value, address);
            String::from_utf8(value.into_vec()).expect("ASCII")
        };
        for byte in 0..=255 {
            let address = IpAddr::from([byte, 10, byte, 0]);
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
    fn forwarding_fields_of_an_untrusted_peer_are_replaced() {
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
    fn fields_with_underscores_are_always_dropped() {
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
            ("x_original_url", "/cart/"),
            ("x_azure_clientip", "198.51.100.1"),
            ("x_request_id", "id-2"),
            ("accept_encoding", "gzip"),
            ("if_none_match", "*"),
            ("if_modified_since", "yesterday"),
            ("x_own", "1"),
        ]);
        for is_trusted in [false, true] {
            let sent = forwarded(&claims, is_trusted);
            let left: Vec<&str> = sent
                .keys()
                .map(HeaderName::as_str)
                .filter(|name| name.contains('_'))
                .collect();
            assert_eq!(left, ["x_own"]);
        }
    }

    #[test]
    fn forwarding_fields_of_a_trusted_peer_are_extended() {
        let sent = forwarded(&headers(&CLAIMS), true);
        let expected = headers(&[
            ("x-forwarded-for", "198.51.100.1, 10.0.0.2, 192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "www.shop.example"),
            ("x-real-ip", "198.51.100.1"),
            ("x-request-id", "id-1"),
        ]);
        assert_eq!(sent, expected);
        assert_eq!(
            forwarded(&HeaderMap::new(), true)["x-forwarded-proto"],
            "http",
            "it sent nothing"
        );
    }

    #[test]
    fn other_proxy_fields_of_an_untrusted_peer_are_dropped() {
        let names = [
            "x-original-url",
            "x-rewrite-url",
            "x-forwarded-port",
            "x-forwarded-ssl",
            "x-forwarded-scheme",
            "x-forwarded-server",
            "cf-connecting-ip",
            "true-client-ip",
            "fastly-client-ip",
            "fly-client-ip",
            "x-own-ip",
        ];
        let mut claims: Vec<(&str, &str)> = names
            .into_iter()
            .map(|name| (name, "198.51.100.1"))
            .collect();
        claims.extend([("via", "1.1 a"), ("x-requested-with", "b")]);
        let left = |sent: &HeaderMap| {
            let own = [
                "x-forwarded-for",
                "x-forwarded-proto",
                "x-forwarded-host",
                "x-request-id",
            ];
            let names = sent
                .keys()
                .map(HeaderName::as_str)
                .filter(|name| !own.contains(name));
            let mut names: Vec<String> = names.map(str::to_owned).collect();
            names.sort();
            names
        };
        let sent = forwarded_by("x-own-ip", &headers(&claims), false);
        assert_eq!(
            (left(&sent), &sent["x-forwarded-for"]),
            (
                vec!["via".into(), "x-requested-with".into()],
                &"192.0.2.1".parse().unwrap()
            )
        );
        let sent = forwarded_by("x-own-ip", &headers(&claims), true);
        assert_eq!(left(&sent).len(), claims.len());
        assert_eq!(
            sent["x-forwarded-for"], "198.51.100.1, 192.0.2.1",
            "the client and the peer"
        );
    }

    #[test]
    fn forwarded_becomes_x_forwarded_fields() {
        let claims = headers(&[
            (
                "forwarded",
                "for=203.0.113.9;proto=http;host=forged.example",
            ),
            (
                "forwarded",
                "for=198.51.100.1;proto=https;host=\"www.shop.example\"",
            ),
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", "forged.example"),
            ("x-forwarded-port", "80"),
        ]);
        let sent = forwarded_by("forwarded", &claims, true);
        let expected = headers(&[
            (
                "forwarded",
                "for=203.0.113.9;proto=http;host=forged.example",
            ),
            (
                "forwarded",
                "for=198.51.100.1;proto=https;host=\"www.shop.example\"",
            ),
            ("x-forwarded-for", "198.51.100.1, 192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "www.shop.example"),
            ("x-request-id", "id-1"),
        ]);
        assert_eq!(sent, expected);
        let sent = forwarded_by(
            "forwarded",
            &headers(&[("forwarded", "for=unknown"), ("x-forwarded-proto", "https")]),
            true,
        );
        assert_eq!(
            (&sent["x-forwarded-proto"], &sent["x-forwarded-host"]),
            (&"http".parse().unwrap(), &"shop.example".parse().unwrap())
        );
        assert_eq!(sent["x-forwarded-for"], "192.0.2.1");
    }

    #[test]
    fn request_without_host_gets_the_origin_host() {
        let field = ClientAddressField::default();
        let request = ForwardingFacts {
            host: b"",
            origin_host: Some("10.0.0.1:80"),
            ..request(ConnectionPeer::default(), &field)
        };
        let mut head = headers(&[("x-forwarded-for", "a"), ("x-forwarded-host", "b")]);
        write_request(&mut head, &request);
        assert_eq!(
            head,
            headers(&[
                ("host", "10.0.0.1:80"),
                ("x-forwarded-proto", "http"),
                ("cdn-loop", "crawlgate"),
                ("x-request-id", "id-1")
            ])
        );
    }

    #[test]
    fn malformed_traceparent_goes_with_tracestate() {
        let original = headers(&[
            ("x-request-id", "a"),
            ("x-request-id", "b"),
            ("traceparent", "00-1"),
            ("tracestate", "c=1"),
        ]);
        for write in [write_ids, write_ids_into_map] {
            let mut head = original.clone();
            write(&mut head, b"id-1", true);
            assert_eq!(head, headers(&[("x-request-id", "id-1")]));
            let mut head = original.clone();
            write(&mut head, b"id-1", false);
            assert_eq!(
                head,
                headers(&[
                    ("x-request-id", "id-1"),
                    ("traceparent", "00-1"),
                    ("tracestate", "c=1")
                ])
            );
        }
    }

    #[test]
    fn conditions_go_if_the_whole_page_is_needed() {
        let original = headers(&[
            ("if-none-match", "\"a\""),
            ("if-modified-since", "yesterday"),
        ]);
        assert!(has_condition(&original) && !has_condition(&HeaderMap::new()));
        for needs_whole_page in [false, true] {
            let field = ClientAddressField::default();
            let request = ForwardingFacts {
                needs_whole_page,
                ..request(ConnectionPeer::default(), &field)
            };
            let mut head = original.clone();
            write_request(&mut head, &request);
            assert_eq!(has_condition(&head), !needs_whole_page);
        }
    }
}
