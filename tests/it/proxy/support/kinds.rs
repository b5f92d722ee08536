//! One answer of each kind, and what a policy of tags makes of it: the same whatever the version of
//! HTTP.

use super::{Origin, Response};
use std::io::Write;

/// Says something of each kind.
pub const POLICY: &str = r#"
robots: { origin: replace }
indexing:
  - { types: [application/pdf, application/msword], tag: [noindex, noarchive] }
  - { types: "image/*", tags: { "*": noimageindex, googlebot: nofollow } }
  - { types: text/html, status: 200, tag: "max-snippet: 20" }
  - { paths: "/*.md$", tag: noindex, origin_tags: strip }
  - { paths: [/untyped/], tag: nosnippet }
  - { status: 404, tag: noindex }
  - { status: 3xx, tag: nofollow }
  - { status: 502, tag: nosnippet }
"#;

/// An origin that answers each path in its own way, some with fields that are for one connection.
pub fn origin() -> Origin {
    Origin::start(|request, stream| {
        let fresh = request.field("if-none-match").is_some();
        let head = request.line.starts_with("HEAD");
        let answer: &[u8] = match request.target() {
            "/gzip.pdf" => b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf; version=1.7\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08",
            "/chunked.pdf" => b"HTTP/1.1 200 OK\r\nContent-Type: Application/PDF\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
            "/a.doc" if head => b"HTTP/1.1 200 OK\r\nContent-Type: application/msword\r\nContent-Length: 3\r\n\r\n",
            "/readme.md" => b"HTTP/1.1 200 OK\r\nContent-Type: text/markdown\r\nX-Robots-Tag: all\r\nX-Robots-Tag: bingbot: nosnippet\r\nContent-Length: 3\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive, X-Hop\r\nProxy-Connection: keep-alive\r\n\r\nabc",
            "/old" => b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
            "/typed" if fresh => b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nX-Robots-Tag: noarchive\r\n\r\n",
            "/typed" => b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Type: text/html\r\nX-Robots-Tag: googlebot: nofollow\r\nContent-Length: 3\r\n\r\nabc",
            "/part.pdf" => b"HTTP/1.1 206 Partial Content\r\nContent-Type: application/pdf\r\nContent-Range: bytes 0-2/9\r\nContent-Length: 3\r\n\r\nabc",
            "/twice" => b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Type: application/pdf\r\nContent-Length: 3\r\n\r\nabc",
            "/joined" => b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8, application/pdf\r\nContent-Length: 3\r\n\r\nabc",
            "/none" => b"HTTP/1.1 204 No Content\r\nX-Robots-Tag: noarchive\r\n\r\n",
            "/hints" => b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\nabc",
            "/garbage" => b"HTTP/1.1 What\r\n\r\n",
            _ => b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nX-Robots-Tag: googlebot: nosnippet\r\nContent-Length: 3\r\n\r\nabc",
        };
        stream.write_all(answer).is_ok() && request.target() != "/garbage"
    })
}

/// What is asked of [`origin`], and the status and the tags of the answer.
pub const CASES: [(&str, &str, u16, &str); 12] = [
    ("GET", "/gzip.pdf", 200, "noindex, noarchive"),
    ("GET", "/chunked.pdf", 200, "noindex, noarchive"),
    ("HEAD", "/a.doc", 200, "noindex, noarchive"),
    ("GET", "/readme.md", 200, "noindex"),
    (
        "GET",
        "/typed",
        200,
        "max-snippet: 20 | googlebot: nofollow",
    ),
    ("GET", "/old", 302, "nofollow"),
    ("GET", "/part.pdf", 206, "noindex, noarchive"),
    ("GET", "/twice", 200, "noindex, noarchive, max-snippet: 20"),
    ("GET", "/joined", 200, "noindex, noarchive, max-snippet: 20"),
    ("GET", "/missing", 404, "noindex | googlebot: nosnippet"),
    ("GET", "/none", 204, "noarchive"),
    ("GET", "/garbage", 502, "nosnippet"),
];

/// Method, target and a field of a request, and status and tags of the answer.
pub type Exchange = (
    &'static str,
    &'static str,
    (&'static str, &'static str),
    u16,
    &'static str,
);

/// What is asked of nginx, and what it answers.
pub const CASES_OF_NGINX: [Exchange; 9] = [
    (
        "GET",
        "/report.pdf",
        ("accept", "*/*"),
        200,
        "noindex, noarchive",
    ),
    (
        "HEAD",
        "/report.pdf",
        ("accept", "*/*"),
        200,
        "noindex, noarchive",
    ),
    (
        "GET",
        "/report.pdf",
        ("range", "bytes=0-3"),
        206,
        "noindex, noarchive",
    ),
    ("GET", "/report.pdf", ("range", "bytes=9999999-"), 416, ""),
    (
        "HEAD",
        "/picture.png",
        ("accept", "*/*"),
        200,
        "noimageindex | googlebot: nofollow",
    ),
    (
        "GET",
        "/picture.png",
        ("accept", "*/*"),
        200,
        "noimageindex | googlebot: nofollow",
    ),
    (
        "GET",
        "/index.html",
        ("accept", "*/*"),
        200,
        "max-snippet: 20",
    ),
    ("GET", "/old", ("accept", "*/*"), 301, "nofollow"),
    ("GET", "/missing", ("accept", "*/*"), 404, "noindex"),
];

/// The tags of an answer, line after line.
pub fn tagged(response: &Response) -> String {
    response.fields("x-robots-tag").join(" | ")
}
