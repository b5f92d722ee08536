//! Converts message heads between HTTP/2 and HTTP/1.1. Requests are converted for crawlgate's
//! checks ([`http2_request_head`]) and for origins ([`http1_fields`]). crawlgate's own answers
//! ([`answer_head`]) and the responses of origins ([`response_head`]) are converted for the client.

use crate::answers::Answer;
use crate::edge::date::with_date;
use crate::forwarding::is_hop_by_hop;
use crate::requests::{BodyFraming, HeaderMapHead};
use BodyFraming::{Chunked, Length};
use bytes::{Bytes, BytesMut};
use http::header;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

/// As many fields as most heads have.
const USUAL_FIELDS: usize = 15;
/// As many bytes as the values of most heads have.
const USUAL_VALUES: usize = 512;

/// The head of a request as [`HeaderMapHead`], which checks it.
pub fn http2_request_head(head: &Parts) -> HeaderMapHead<'_> {
    let request = HeaderMapHead::new(
        &head.method,
        request_target(head),
        authority(head),
        &head.headers,
    );
    match head.uri.scheme_str() {
        Some(scheme) => request.with_scheme(scheme),
        // h2 drops the scheme of a request without an authority.
        None => request,
    }
}

fn authority(head: &Parts) -> Option<&str> {
    head.uri.authority().map(Authority::as_str)
}

/// Path and query; the authority for CONNECT, which has no path.
pub fn request_target(head: &Parts) -> &[u8] {
    head.uri
        .path_and_query()
        .map(PathAndQuery::as_str)
        .or_else(|| authority(head))
        .unwrap_or_default()
        .as_bytes()
}

/// The framing of the body for an origin. `is_over` is whether the client has already sent the end
/// of the request: then there is no body. A body without a length is sent in chunks. h2 checks that
/// a body is as long as its head says.
pub fn body_framing(head: &Parts, is_over: bool) -> BodyFraming {
    if is_over {
        return BodyFraming::None;
    }
    let length = head.headers.get(header::CONTENT_LENGTH);
    match length.map(|length| length.to_str().ok().and_then(|digits| digits.parse().ok())) {
        // A length that is no number was rejected before.
        Some(None | Some(0)) => BodyFraming::None,
        Some(Some(length)) => Length(length),
        None => Chunked,
    }
}

/// Changes the framing to chunks if the head announces trailers: only chunks can have trailers (RFC
/// 9112 section 7.1.2).
pub fn framing_with_trailers(head: &Parts, framing: BodyFraming) -> BodyFraming {
    match framing {
        Length(_) if head.headers.contains_key(header::TRAILER) => Chunked,
        framing => framing,
    }
}

/// The lines of Cookie, joined by `; ` (RFC 9113 section 8.2.3). `None` if there are fewer than
/// two.
pub fn joined_cookies(head: &Parts) -> Option<Vec<u8>> {
    let mut pieces = head
        .headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes);
    let first = pieces.next()?;
    let second = pieces.next()?;
    let mut joined = [first, b"; ", second].concat();
    for piece in pieces {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(piece);
    }
    Some(joined)
}

/// The fields of a request as an origin gets them over HTTP/1.1, with `cookies` from
/// [`joined_cookies`]:
///
/// - Host is that of the head, or `:authority`.
/// - TE and HTTP2-Settings are dropped.
/// - A body in chunks has `transfer-encoding: chunked` and no Content-Length.
/// - POST, PUT and PATCH without a body have `content-length: 0`.
pub fn http1_fields<'h>(
    head: &'h Parts,
    framing: BodyFraming,
    cookies: Option<&'h [u8]>,
) -> impl Iterator<Item = (&'h str, &'h [u8])> {
    let authority = authority(head).filter(|_| !head.headers.contains_key(header::HOST));
    let mut is_joined = false;
    let fields = head.headers.iter().filter_map(move |(name, value)| {
        // h2 does not remove white space around a value (RFC 9110 section 5.5).
        let value = value.as_bytes().trim_ascii();
        match (name.as_str(), cookies) {
            ("cookie", Some(cookies)) => {
                (!std::mem::replace(&mut is_joined, true)).then_some(("cookie", cookies))
            }
            ("te" | "http2-settings", _) => None,
            ("content-length", _) if framing == Chunked => None,
            (name, _) => Some((name, value)),
        }
    });
    let framing = match framing {
        Chunked => Some(("transfer-encoding", b"chunked".as_slice())),
        // Otherwise servers may wait for a body, or answer 411.
        BodyFraming::None
            if matches!(head.method, Method::POST | Method::PUT | Method::PATCH)
                && !head.headers.contains_key(header::CONTENT_LENGTH) =>
        {
            Some(("content-length", b"0".as_slice()))
        }
        _ => None,
    };
    authority
        .map(|authority| ("host", authority.as_bytes()))
        .into_iter()
        .chain(fields)
        .chain(framing)
}

/// The head of an answer of crawlgate's own.
pub fn answer_head(answer: &Answer) -> Response<()> {
    let mut fields = HeaderMap::with_capacity(12);
    for (field, value) in answer.fields() {
        fields.append(field, value.clone());
    }
    fields.insert(header::DATE, with_date(HeaderValue::clone));
    build_response(answer.status(), fields)
}

/// The head of a response with these fields of HTTP/1.1, without hop-by-hop fields (RFC 9113
/// section 8.2.2).
pub fn response_head<'h>(
    status: StatusCode,
    lines: impl Iterator<Item = (&'h str, &'h [u8])> + Clone,
) -> Response<()> {
    let mut fields = HeaderMap::with_capacity(lines.size_hint().1.unwrap_or(USUAL_FIELDS) + 1);
    append_fields(lines, &mut fields);
    build_response(status, fields)
}

/// The trailers of a response (RFC 9110 section 6.5), without hop-by-hop fields.
pub fn trailer_map<'h>(lines: impl Iterator<Item = (&'h str, &'h [u8])> + Clone) -> HeaderMap {
    let mut fields = HeaderMap::new();
    append_fields(lines, &mut fields);
    fields
}

/// Appends these lines to `fields`, without hop-by-hop fields and those that `http` does not take.
/// The values share one allocation: a usual response has eight of them.
fn append_fields<'h>(
    lines: impl Iterator<Item = (&'h str, &'h [u8])> + Clone,
    fields: &mut HeaderMap,
) {
    let lines = lines.filter(|(name, _)| !is_hop_by_hop(name));
    let mut values = BytesMut::with_capacity(USUAL_VALUES);
    for (_, value) in lines.clone() {
        values.extend_from_slice(value);
    }
    let mut values: Bytes = values.freeze();
    for (name, value) in lines {
        let value = HeaderValue::from_maybe_shared(values.split_to(value.len()));
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
            fields.append(name, value);
        }
    }
}

fn build_response(status: StatusCode, fields: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn head(method: &str, uri: &str, lines: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    fn written(head: &Parts, is_over: bool) -> Vec<(String, String)> {
        let cookies = joined_cookies(head);
        let fields = http1_fields(head, body_framing(head, is_over), cookies.as_deref());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields
            .map(|(name, value)| (name.to_owned(), text(value)))
            .collect()
    }

    fn line(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn authority_becomes_host_and_cookies_are_joined() {
        let lines = [
            ("cookie", "a=1"),
            ("x-a", "1"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
            ("http2-settings", "x"),
        ];
        let pieces = head("GET", "http://shop.example:81/a?b", &lines);
        assert_eq!(request_target(&pieces), b"/a?b");
        let expected = [
            line("host", "shop.example:81"),
            line("cookie", "a=1; b=2; c=3"),
            line("x-a", "1"),
        ];
        assert_eq!(written(&pieces, true), expected);
        let own = head(
            "GET",
            "http://shop.example/",
            &[("host", "shop.example"), ("cookie", "a=1")],
        );
        assert_eq!(
            written(&own, true),
            [line("host", "shop.example"), line("cookie", "a=1")]
        );
        assert_eq!(
            request_target(&head("CONNECT", "shop.example:443", &[])),
            b"shop.example:443"
        );
    }

    #[test]
    fn body_is_framed_by_length_or_in_chunks() {
        let of = |method: &str, lines: &[_], is_over| {
            let head = head(method, "http://a/", lines);
            (
                body_framing(&head, is_over),
                written(&head, is_over).split_off(1),
            )
        };
        let length = [("content-length", "5")];
        assert_eq!(
            of("POST", &length, false),
            (BodyFraming::Length(5), vec![line("content-length", "5")])
        );
        assert_eq!(
            of("POST", &[], false),
            (
                BodyFraming::Chunked,
                vec![line("transfer-encoding", "chunked")]
            )
        );
        assert_eq!(
            of("POST", &[], true),
            (BodyFraming::None, vec![line("content-length", "0")])
        );
        let none = [("content-length", "0")];
        assert_eq!(
            of("PUT", &none, false),
            (BodyFraming::None, vec![line("content-length", "0")])
        );
        assert_eq!(of("DELETE", &[], true), (BodyFraming::None, vec![]));
        let lines = [("content-length", "5"), ("trailer", "x-sum")];
        let announced = head("POST", "http://a/", &lines);
        assert_eq!(
            framing_with_trailers(&announced, body_framing(&announced, true)),
            BodyFraming::None
        );
        let framing = framing_with_trailers(&announced, body_framing(&announced, false));
        let fields: Vec<_> = http1_fields(&announced, framing, None)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(fields, ["host", "trailer", "transfer-encoding"]);
        assert_eq!(
            framing_with_trailers(&head("POST", "http://a/", &length), BodyFraming::Length(5)),
            BodyFraming::Length(5)
        );
    }

    #[test]
    fn hop_by_hop_fields_are_dropped_from_responses() {
        let lines = [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "TE",
            "Transfer-Encoding",
            "Upgrade",
            "X-Robots-Tag",
        ];
        let response = response_head(
            StatusCode::NOT_FOUND,
            lines.iter().map(|name| (*name, b"a".as_slice())),
        );
        assert_eq!(response.status(), 404);
        assert_eq!(
            response.headers().keys().collect::<Vec<_>>(),
            ["x-robots-tag"]
        );
    }
}
