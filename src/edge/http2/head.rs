//! Converts heads between HTTP/2 and HTTP/1.1: of requests with [`mapped`] and [`fields_of_http1`],
//! of responses with [`head_of`] and [`head_of_http2`].

use crate::answers::Answer;
use crate::edge::date::date_value;
use crate::forwarding::is_of_one_hop;
use crate::requests::{Framing, MappedRequest};
use bytes::{Bytes, BytesMut};
use http::header;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

/// Room for the fields of most heads.
const USUAL_FIELDS: usize = 15;
/// Room for the values of most heads, in octets.
const USUAL_VALUES: usize = 512;

/// The head as `MappedRequest`, which checks it. A scheme that is missing is not checked.
pub fn mapped(head: &Parts) -> MappedRequest<'_> {
    let request = MappedRequest::new(&head.method, target(head), authority(head), &head.headers);
    match head.uri.scheme_str() {
        Some(scheme) => request.with_scheme(scheme),
        // h2 drops the scheme of a request without an authority.
        None => request,
    }
}

fn authority(head: &Parts) -> Option<&str> {
    head.uri.authority().map(Authority::as_str)
}

/// Path and query. For CONNECT, which has none, the authority; empty without both.
pub fn target(head: &Parts) -> &[u8] {
    let path = head.uri.path_and_query().map(PathAndQuery::as_str);
    path.or_else(|| authority(head))
        .unwrap_or_default()
        .as_bytes()
}

/// The framing of the body for an origin. `is_over` says whether the client has sent all of it:
/// then there is no body, and none with a length of 0. Without a length it is sent in chunks. h2
/// checks that a body is as long as its head says.
pub fn framing(head: &Parts, is_over: bool) -> Framing {
    if is_over {
        return Framing::None;
    }
    let length = head.headers.get(header::CONTENT_LENGTH);
    match length.map(|length| length.to_str().ok().and_then(|digits| digits.parse().ok())) {
        // A length that is no number was refused.
        Some(None | Some(0)) => Framing::None,
        Some(Some(length)) => Framing::Length(length),
        None => Framing::Chunked,
    }
}

/// The framing for an origin that gets trailers: chunks, if the head announces some. Only chunks
/// carry trailers (RFC 9112 section 7.1.2).
pub fn framing_with_trailers(head: &Parts, framing: Framing) -> Framing {
    match framing {
        Framing::Length(_) if head.headers.contains_key(header::TRAILER) => Framing::Chunked,
        framing => framing,
    }
}

/// The pieces of a cookie, joined by `; ` as one value (RFC 9113 section 8.2.3). `None` if there is
/// only one piece or none, so that nothing has to be joined.
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

/// The fields of a request as an origin gets them: first a Host of `:authority`, if the head has no
/// Host; then the others without TE and HTTP2-Settings, with `cookies` (of `joined_cookies`) in the
/// place of all pieces; for chunks without Content-Length, and with `transfer-encoding: chunked` at
/// the end. POST, PUT and PATCH without a body and a length get `content-length: 0`.
pub fn fields_of_http1<'h>(
    head: &'h Parts,
    framing: Framing,
    cookies: Option<&'h [u8]>,
) -> impl Iterator<Item = (&'h str, &'h [u8])> {
    let authority = authority(head).filter(|_| !head.headers.contains_key(header::HOST));
    let mut is_joined = false;
    let fields = head.headers.iter().filter_map(move |(name, value)| {
        // White space around a value is no part of it (RFC 9110 section 5.5); the h2 crate lets it
        // pass.
        let value = value.as_bytes().trim_ascii();
        match (name.as_str(), cookies) {
            ("cookie", Some(cookies)) => {
                (!std::mem::replace(&mut is_joined, true)).then_some(("cookie", cookies))
            }
            // TE is for the next hop alone, and HTTP2-Settings for a change of the version.
            ("te" | "http2-settings", _) => None,
            ("content-length", _) if framing == Framing::Chunked => None,
            (name, _) => Some((name, value)),
        }
    });
    let framing = match framing {
        Framing::Chunked => Some(("transfer-encoding", b"chunked".as_slice())),
        // Servers may wait for the body of a request with one of these methods, or refuse it,
        // unless it says that there is none.
        Framing::None
            if matches!(head.method, Method::POST | Method::PUT | Method::PATCH)
                && !head.headers.contains_key(header::CONTENT_LENGTH) =>
        {
            Some(("content-length", b"0".as_slice()))
        }
        Framing::None | Framing::Length(_) => None,
    };
    authority
        .map(|authority| ("host", authority.as_bytes()))
        .into_iter()
        .chain(fields)
        .chain(framing)
}

/// The head of an answer of crawlgate's own.
pub fn head_of(answer: &Answer) -> Response<()> {
    let mut fields = HeaderMap::with_capacity(12);
    for (field, value) in answer.fields() {
        fields.append(field.name(), value.clone());
    }
    fields.insert(header::DATE, date_value());
    response(answer.status(), fields)
}

/// The head of a response with these fields of HTTP/1.1, without those of one hop (RFC 9113 section
/// 8.2.2).
pub fn head_of_http2<'h>(
    status: StatusCode,
    lines: impl Iterator<Item = (&'h str, &'h [u8])> + Clone,
) -> Response<()> {
    let mut fields = HeaderMap::with_capacity(lines.size_hint().1.unwrap_or(USUAL_FIELDS) + 1);
    append(lines.filter(|(name, _)| !is_of_one_hop(name)), &mut fields);
    response(status, fields)
}

/// The fields that end a message (RFC 9110 section 6.5), without those of one hop.
pub fn trailers<'h>(lines: impl Iterator<Item = (&'h str, &'h [u8])> + Clone) -> HeaderMap {
    let mut fields = HeaderMap::new();
    append(lines.filter(|(name, _)| !is_of_one_hop(name)), &mut fields);
    fields
}

/// Appends these lines to `fields`; lines that `http` does not take are left out. The values share
/// one allocation: a usual response has eight of them.
fn append<'h>(lines: impl Iterator<Item = (&'h str, &'h [u8])> + Clone, fields: &mut HeaderMap) {
    let mut values = BytesMut::with_capacity(USUAL_VALUES);
    for (_, value) in lines.clone() {
        values.extend_from_slice(value);
    }
    let mut values: Bytes = values.freeze();
    for (name, value) in lines {
        let value = HeaderValue::from_maybe_shared(values.split_to(value.len()));
        // Both were read already, so neither fails.
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
            fields.append(name, value);
        }
    }
}

fn response(status: StatusCode, fields: HeaderMap) -> Response<()> {
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
        let fields = fields_of_http1(head, framing(head, is_over), cookies.as_deref());
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        fields
            .map(|(name, value)| (name.to_owned(), text(value)))
            .collect()
    }

    fn line(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn host_comes_from_the_authority_and_a_cookie_in_one_line() {
        let lines = [
            ("cookie", "a=1"),
            ("x-a", "1"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
            ("http2-settings", "x"),
        ];
        let pieces = head("GET", "http://shop.example:81/a?b", &lines);
        assert_eq!(target(&pieces), b"/a?b");
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
            target(&head("CONNECT", "shop.example:443", &[])),
            b"shop.example:443"
        );
    }

    #[test]
    fn body_is_framed_by_its_length_or_in_chunks() {
        let of = |method: &str, lines: &[_], is_over| {
            let head = head(method, "http://a/", lines);
            (
                framing(&head, is_over),
                written(&head, is_over).split_off(1),
            )
        };
        let length = [("content-length", "5")];
        assert_eq!(
            of("POST", &length, false),
            (Framing::Length(5), vec![line("content-length", "5")])
        );
        assert_eq!(
            of("POST", &[], false),
            (Framing::Chunked, vec![line("transfer-encoding", "chunked")])
        );
        assert_eq!(
            of("POST", &[], true),
            (Framing::None, vec![line("content-length", "0")])
        );
        let none = [("content-length", "0")];
        assert_eq!(
            of("PUT", &none, false),
            (Framing::None, vec![line("content-length", "0")])
        );
        assert_eq!(of("DELETE", &[], true), (Framing::None, vec![]));
        let lines = [("content-length", "5"), ("trailer", "x-sum")];
        let announced = head("POST", "http://a/", &lines);
        assert_eq!(
            framing_with_trailers(&announced, framing(&announced, true)),
            Framing::None
        );
        let framing = framing_with_trailers(&announced, framing(&announced, false));
        let fields: Vec<_> = fields_of_http1(&announced, framing, None)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(fields, ["host", "trailer", "transfer-encoding"]);
        assert_eq!(
            framing_with_trailers(&head("POST", "http://a/", &length), Framing::Length(5)),
            Framing::Length(5)
        );
    }

    #[test]
    fn fields_of_one_hop_are_none_of_a_response_over_http2() {
        let lines = [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "TE",
            "Transfer-Encoding",
            "Upgrade",
            "X-Robots-Tag",
        ];
        let response = head_of_http2(
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
