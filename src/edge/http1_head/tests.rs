//! Tests of the HTTP/1 parser: which request heads are accepted, and which are errors because two
//! servers could read them differently.

use super::*;

/// Parses a head with this request line and these field lines.
fn parse(line: &str, fields: &str) -> Result<(Vec<u8>, BodyFraming, bool), HeadError> {
    let head = format!("{line}\r\n{fields}\r\n");
    let mut line_memory = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    Http1RequestHead::parse(head.as_bytes(), &mut line_memory, &Limits::default()).map(|request| {
        (
            request.fields.host.to_vec(),
            request.framing,
            request.wants_close,
        )
    })
}

fn parse_error(line: &str, fields: &str) -> Option<HeadError> {
    parse(line, fields).err()
}

const GET: &str = "GET / HTTP/1.1";
const HOST: &str = "Host: a.example\r\n";

#[test]
fn ordinary_heads_are_parsed() {
    let host = b"a.example".to_vec();
    for (line, fields, framing, closes) in [
        (GET, "", BodyFraming::None, false),
        (
            "GET /a?b=c:d HTTP/1.1",
            "Accept: */*\r\n",
            BodyFraming::None,
            false,
        ),
        (
            "GET http://a.example HTTP/1.1",
            "",
            BodyFraming::None,
            false,
        ),
        (
            "GET HTTP://A.example?x HTTP/1.1",
            "",
            BodyFraming::None,
            false,
        ),
        ("OPTIONS * HTTP/1.1", "", BodyFraming::None, false),
        (
            "POST /\u{e9} HTTP/1.1",
            "Content-Length: 0\r\n",
            BodyFraming::None,
            false,
        ),
        (
            "POST / HTTP/1.1",
            "content-length:12\r\n",
            BodyFraming::Length(12),
            false,
        ),
        (
            "PUT / HTTP/1.1",
            "Transfer-Encoding: Chunked\r\n",
            BodyFraming::Chunked,
            false,
        ),
        (
            "GET / HTTP/1.1",
            "Connection: x, Close\r\n",
            BodyFraming::None,
            true,
        ),
        (
            "GET / HTTP/1.0",
            "Connection: keep-alive\r\n",
            BodyFraming::None,
            true,
        ),
    ] {
        assert_eq!(
            parse(line, &format!("{HOST}{fields}")),
            Ok((host.clone(), framing, closes)),
            "{line} {fields}"
        );
    }
    assert_eq!(
        parse("GET / HTTP/1.0", "").map(|(host, ..)| host),
        Ok(Vec::new())
    );
}

#[test]
fn host_is_a_name_or_address_with_or_without_port() {
    for host in [
        "a.example",
        "A.example:80",
        "192.0.2.1:8080",
        "[2001:db8::1]",
        "[::1]:443",
        "a_b.example",
        "a.example:",
        "localhost",
        "a.example.",
        "a.example.:80",
        "xn--1",
    ] {
        assert_eq!(
            parse_error(GET, &format!("Host: {host}\r\n")),
            None,
            "{host}"
        );
    }
    for host in [
        "a b",
        "a,b",
        "a/b",
        "a@b",
        "user:pass@a",
        "a?b",
        "a#b",
        "a\\b",
        "[::1",
        "[x]",
        "[::1]x",
        "::1",
        "a:b",
        "a:123456",
        ":80",
        "a.example:80:80",
        "\u{e9}.example",
        "a\tb",
        "\"a\"",
        "<a>",
        "a..b",
        "a.example..",
        ".a.example",
        ".",
        "a%41.example",
        "%",
        "-",
        "_._",
        "-:80",
    ] {
        assert_eq!(
            parse_error(GET, &format!("Host: {host}\r\n")),
            Some(HeadError::BadHost),
            "{host}"
        );
    }
    assert_eq!(parse_error(GET, ""), Some(HeadError::NoHost));
    assert_eq!(parse_error(GET, "Host:\r\n"), Some(HeadError::NoHost));
    assert_eq!(
        parse_error(GET, "Host: a\r\nHost: a\r\n"),
        Some(HeadError::BadHost)
    );
    assert_eq!(
        parse_error("GET / HTTP/1.0", "Host: a\r\nhost: b\r\n"),
        Some(HeadError::BadHost)
    );
}

#[test]
fn malformed_request_line_is_an_error() {
    for line in [
        "",
        "GET",
        "GET /",
        "GET  / HTTP/1.1",
        "GET / a HTTP/1.1",
        " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET /\u{7f} HTTP/1.1",
        "GET /\0 HTTP/1.1",
    ] {
        assert!(
            matches!(
                parse_error(line, HOST),
                Some(HeadError::RequestLine | HeadError::Version)
            ),
            "{line:?}"
        );
    }
    for version in [
        "HTTP/0.9",
        "HTTP/1.2",
        "HTTP/2.0",
        "http/1.1",
        "HTTP/1.1 ",
        "HTTP/01.1",
    ] {
        assert_eq!(
            parse_error(&format!("GET / {version}"), HOST),
            Some(HeadError::Version),
            "{version}"
        );
    }
}

#[test]
fn target_of_other_server_or_form_is_an_error() {
    for (target, wrong) in [
        ("http://b.example/", HeadError::OtherHost),
        ("http://a.example:80/", HeadError::OtherHost),
        ("http://u@a.example/", HeadError::Target),
        ("http:///", HeadError::Target),
        ("ftp://a.example/", HeadError::Target),
        ("a.example:80", HeadError::Target),
        ("*", HeadError::Target),
        ("?x", HeadError::Target),
        ("/a#b", HeadError::Target),
        ("a", HeadError::Target),
    ] {
        assert_eq!(
            parse_error(&format!("GET {target} HTTP/1.1"), HOST),
            Some(wrong),
            "{target}"
        );
    }
    assert_eq!(
        parse_error("CONNECT a.example:443 HTTP/1.1", HOST),
        Some(HeadError::Method)
    );
    assert_eq!(
        parse_error("TRACE / HTTP/1.1", HOST),
        Some(HeadError::Method)
    );
}

#[test]
fn ambiguous_field_is_an_error() {
    for field in [
        "Host : a",
        "A",
        "A b: c",
        ": a",
        "A\t: b",
        "A: b\0",
        "A: b\u{1}c",
        "A: b\rc",
        "\u{e9}: b",
        "(: b",
    ] {
        assert_eq!(
            parse_error(GET, &format!("{HOST}{field}\r\n")),
            Some(HeadError::Field),
            "{field:?}"
        );
    }
    for agents in [
        "User-Agent: a\r\nUser-Agent: b",
        "user-agent: a\r\nUSER-AGENT: a",
        "User-Agent:\r\nUser-Agent: a",
    ] {
        assert_eq!(
            parse_error(GET, &format!("{HOST}{agents}\r\n")),
            Some(HeadError::UserAgent),
            "{agents:?}"
        );
    }
    let many = "A: b\r\n".repeat(Limits::default().fields);
    assert_eq!(
        parse_error(GET, &format!("{HOST}{many}")),
        Some(HeadError::TooManyFields)
    );
}

#[test]
fn expectation_other_than_100_is_an_error() {
    for (fields, wrong) in [
        ("Expect: x\r\n", Some(HeadError::Expectation)),
        ("Expect:\r\n", Some(HeadError::Expectation)),
        (
            "Expect: 100-continue\r\nexpect: x\r\n",
            Some(HeadError::Expectation),
        ),
        ("Expect: 100-Continue\r\n", None),
    ] {
        assert_eq!(
            parse_error(GET, &format!("{HOST}{fields}")),
            wrong,
            "{fields:?}"
        );
        assert_eq!(
            parse_error("GET / HTTP/1.0", &format!("{HOST}{fields}")),
            None,
            "{fields:?}"
        );
    }
}

#[test]
fn ambiguous_framing_is_an_error() {
    for (fields, wrong) in [
        (
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            HeadError::ContentLength,
        ),
        ("Content-Length: 1, 1\r\n", HeadError::ContentLength),
        ("Content-Length: +1\r\n", HeadError::ContentLength),
        ("Content-Length: -1\r\n", HeadError::ContentLength),
        ("Content-Length: 0x1\r\n", HeadError::ContentLength),
        ("Content-Length: 1 1\r\n", HeadError::ContentLength),
        ("Content-Length:\r\n", HeadError::ContentLength),
        (
            "Content-Length: 9999999999999999999\r\n",
            HeadError::ContentLength,
        ),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            HeadError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            HeadError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked, chunked\r\n",
            HeadError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            HeadError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: xchunked\r\n",
            HeadError::TransferEncoding,
        ),
        (
            "Transfer-Encoding: identity\r\n",
            HeadError::TransferEncoding,
        ),
        ("Transfer-Encoding:\r\n", HeadError::TransferEncoding),
    ] {
        assert_eq!(
            parse_error("POST / HTTP/1.1", &format!("{HOST}{fields}")),
            Some(wrong),
            "{fields:?}"
        );
    }
    let limits = Limits {
        body: Some(5),
        ..Limits::default()
    };
    for (length, is_error) in [(5, false), (6, true)] {
        let head = format!("POST / HTTP/1.1\r\n{HOST}Content-Length: {length}\r\n\r\n");
        let mut line_memory = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let error = Http1RequestHead::parse(head.as_bytes(), &mut line_memory, &limits).err();
        assert_eq!(error, is_error.then_some(HeadError::BodyTooLarge));
    }
    let chunked = format!("{HOST}Transfer-Encoding: chunked\r\n");
    assert_eq!(
        parse_error("POST / HTTP/1.0", &chunked),
        Some(HeadError::TransferEncoding)
    );
}
