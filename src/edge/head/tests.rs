//! Which heads of HTTP/1 are read, and which are refused because two servers could read them
//! differently.

use super::*;

/// Reads a head with these lines after the request line.
fn read(line: &str, fields: &str) -> Result<(Vec<u8>, Framing, bool), Mistake> {
    let head = format!("{line}\r\n{fields}\r\n");
    let mut room = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    Request::read(head.as_bytes(), &mut room, &Limits::DEFAULT).map(|request| {
        (
            request.fields.host.to_vec(),
            request.framing,
            request.closes,
        )
    })
}

fn mistake(line: &str, fields: &str) -> Option<Mistake> {
    read(line, fields).err()
}

const GET: &str = "GET / HTTP/1.1";
const HOST: &str = "Host: a.example\r\n";

#[test]
fn ordinary_heads_are_read() {
    let host = b"a.example".to_vec();
    for (line, fields, framing, closes) in [
        (GET, "", Framing::None, false),
        (
            "GET /a?b=c:d HTTP/1.1",
            "Accept: */*\r\n",
            Framing::None,
            false,
        ),
        ("GET http://a.example HTTP/1.1", "", Framing::None, false),
        ("GET HTTP://A.example?x HTTP/1.1", "", Framing::None, false),
        ("OPTIONS * HTTP/1.1", "", Framing::None, false),
        (
            "POST /\u{e9} HTTP/1.1",
            "Content-Length: 0\r\n",
            Framing::None,
            false,
        ),
        (
            "POST / HTTP/1.1",
            "content-length:12\r\n",
            Framing::Length(12),
            false,
        ),
        (
            "PUT / HTTP/1.1",
            "Transfer-Encoding: Chunked\r\n",
            Framing::Chunked,
            false,
        ),
        (
            "GET / HTTP/1.1",
            "Connection: x, Close\r\n",
            Framing::None,
            true,
        ),
        (
            "GET / HTTP/1.0",
            "Connection: keep-alive\r\n",
            Framing::None,
            true,
        ),
    ] {
        assert_eq!(
            read(line, &format!("{HOST}{fields}")),
            Ok((host.clone(), framing, closes)),
            "{line} {fields}"
        );
    }
    assert_eq!(
        read("GET / HTTP/1.0", "").map(|(host, ..)| host),
        Ok(Vec::new())
    );
}

#[test]
fn hosts_are_names_and_addresses_with_or_without_a_port() {
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
        assert_eq!(mistake(GET, &format!("Host: {host}\r\n")), None, "{host}");
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
            mistake(GET, &format!("Host: {host}\r\n")),
            Some(Mistake::BadHost),
            "{host}"
        );
    }
    assert_eq!(mistake(GET, ""), Some(Mistake::NoHost));
    assert_eq!(mistake(GET, "Host:\r\n"), Some(Mistake::NoHost));
    assert_eq!(
        mistake(GET, "Host: a\r\nHost: a\r\n"),
        Some(Mistake::BadHost)
    );
    assert_eq!(
        mistake("GET / HTTP/1.0", "Host: a\r\nhost: b\r\n"),
        Some(Mistake::BadHost)
    );
}

#[test]
fn request_lines_that_are_none_are_refused() {
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
                mistake(line, HOST),
                Some(Mistake::RequestLine | Mistake::Version)
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
            mistake(&format!("GET / {version}"), HOST),
            Some(Mistake::Version),
            "{version}"
        );
    }
}

#[test]
fn targets_of_other_servers_and_forms_are_refused() {
    for (target, wrong) in [
        ("http://b.example/", Mistake::OtherHost),
        ("http://a.example:80/", Mistake::OtherHost),
        ("http://u@a.example/", Mistake::Target),
        ("http:///", Mistake::Target),
        ("ftp://a.example/", Mistake::Target),
        ("a.example:80", Mistake::Target),
        ("*", Mistake::Target),
        ("?x", Mistake::Target),
        ("/a#b", Mistake::Target),
        ("a", Mistake::Target),
    ] {
        assert_eq!(
            mistake(&format!("GET {target} HTTP/1.1"), HOST),
            Some(wrong),
            "{target}"
        );
    }
    assert_eq!(
        mistake("CONNECT a.example:443 HTTP/1.1", HOST),
        Some(Mistake::Method)
    );
    assert_eq!(mistake("TRACE / HTTP/1.1", HOST), Some(Mistake::Method));
}

#[test]
fn fields_that_two_readers_could_read_differently_are_refused() {
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
            mistake(GET, &format!("{HOST}{field}\r\n")),
            Some(Mistake::Field),
            "{field:?}"
        );
    }
    for agents in [
        "User-Agent: a\r\nUser-Agent: b",
        "user-agent: a\r\nUSER-AGENT: a",
        "User-Agent:\r\nUser-Agent: a",
    ] {
        assert_eq!(
            mistake(GET, &format!("{HOST}{agents}\r\n")),
            Some(Mistake::UserAgent),
            "{agents:?}"
        );
    }
    let many = "A: b\r\n".repeat(Limits::DEFAULT.fields);
    assert_eq!(
        mistake(GET, &format!("{HOST}{many}")),
        Some(Mistake::TooManyFields)
    );
}

#[test]
fn expectation_other_than_a_100_is_refused() {
    for (fields, wrong) in [
        ("Expect: x\r\n", Some(Mistake::Expectation)),
        ("Expect:\r\n", Some(Mistake::Expectation)),
        (
            "Expect: 100-continue\r\nexpect: x\r\n",
            Some(Mistake::Expectation),
        ),
        ("Expect: 100-Continue\r\n", None),
    ] {
        assert_eq!(
            mistake(GET, &format!("{HOST}{fields}")),
            wrong,
            "{fields:?}"
        );
        assert_eq!(
            mistake("GET / HTTP/1.0", &format!("{HOST}{fields}")),
            None,
            "{fields:?}"
        );
    }
}

#[test]
fn bodies_that_two_readers_could_frame_differently_are_refused() {
    for (fields, wrong) in [
        (
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            Mistake::ContentLength,
        ),
        ("Content-Length: 1, 1\r\n", Mistake::ContentLength),
        ("Content-Length: +1\r\n", Mistake::ContentLength),
        ("Content-Length: -1\r\n", Mistake::ContentLength),
        ("Content-Length: 0x1\r\n", Mistake::ContentLength),
        ("Content-Length: 1 1\r\n", Mistake::ContentLength),
        ("Content-Length:\r\n", Mistake::ContentLength),
        (
            "Content-Length: 9999999999999999999\r\n",
            Mistake::ContentLength,
        ),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            Mistake::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Mistake::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked, chunked\r\n",
            Mistake::TransferEncoding,
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            Mistake::TransferEncoding,
        ),
        ("Transfer-Encoding: xchunked\r\n", Mistake::TransferEncoding),
        ("Transfer-Encoding: identity\r\n", Mistake::TransferEncoding),
        ("Transfer-Encoding:\r\n", Mistake::TransferEncoding),
    ] {
        assert_eq!(
            mistake("POST / HTTP/1.1", &format!("{HOST}{fields}")),
            Some(wrong),
            "{fields:?}"
        );
    }
    let limits = Limits {
        body: Some(5),
        ..Limits::DEFAULT
    };
    for (length, is_refused) in [(5, false), (6, true)] {
        let head = format!("POST / HTTP/1.1\r\n{HOST}Content-Length: {length}\r\n\r\n");
        let mut room = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let refusal = Request::read(head.as_bytes(), &mut room, &limits).err();
        assert_eq!(refusal, is_refused.then_some(Mistake::BodyTooLarge));
    }
    let chunked = format!("{HOST}Transfer-Encoding: chunked\r\n");
    assert_eq!(
        mistake("POST / HTTP/1.0", &chunked),
        Some(Mistake::TransferEncoding)
    );
}
