//! Heads that no origin may see, pipelining, and the framing of bodies.

use crate::proxy::support::{BROWSER, GPTBOT, Gate, HOST, Origin, Setup, eventually, read};
use std::io::Write;
use std::time::Duration;

/// An origin that says which target it was asked for, and how long the body was.
fn echo() -> Origin {
    Origin::start(|request, stream| {
        let body = format!("{} {}", request.target(), request.body.len());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).is_ok() && stream.write_all(body.as_bytes()).is_ok()
    })
}

fn refused(gate: &Gate, bytes: &[u8]) -> u16 {
    let mut connection = gate.connect();
    connection.send_bytes(bytes);
    let response = connection.response("GET");
    assert_eq!(
        response.field("connection"),
        Some("close"),
        "{}",
        String::from_utf8_lossy(bytes)
    );
    assert_eq!(response.field("server"), Some("crawlgate"));
    assert!(connection.is_closed(), "{}", String::from_utf8_lossy(bytes));
    response.status
}

#[test]
fn ambiguous_heads_are_refused_and_logged() {
    let origin = echo();
    let gate = Setup::before(origin.address)
        .settings("logs: { access: access.log }")
        .start();
    let cases: [(&[u8], &str, u16); 24] = [
        (b"GET / HTTP/1.1\nHost: a.example\n\n", "bare_line_feed", 400),
        (b"GET / HTTP/1.1\r\nHost: a.example\n\r\n", "bare_line_feed", 400),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\nX: a\r\n b\r\n\r\n", "folded_line", 400),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\nX: a\0b\r\n\r\n", "field", 400),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\nX: a\rb\r\n\r\n", "field", 400),
        (b"GET / HTTP/1.1\r\nHost : a.example\r\n\r\n", "field", 400),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", "bad_host", 400),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\nhost: a.example\r\n\r\n", "bad_host", 400),
        (b"GET / HTTP/1.1\r\nHost: a.example@b.example\r\n\r\n", "bad_host", 400),
        (b"GET / HTTP/1.1\r\n\r\n", "no_host", 400),
        (b"GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "other_host", 400),
        (b"GET /a b HTTP/1.1\r\nHost: a.example\r\n\r\n", "version", 400),
        (b"GET /a#b HTTP/1.1\r\nHost: a.example\r\n\r\n", "target", 400),
        (b"GET / HTTP/2.0\r\nHost: a.example\r\n\r\n", "version", 400),
        (b"GET /\r\n\r\n", "request_line", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", "request_line", 400),
        (b"TRACE / HTTP/1.1\r\nHost: a.example\r\n\r\n", "method", 405),
        (b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "method", 405),
        (
            b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            "content_length",
            400,
        ),
        (b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1, 1\r\n\r\nx", "content_length", 400),
        (
            b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "transfer_encoding",
            400,
        ),
        (
            b"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "transfer_encoding",
            400,
        ),
        (b"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", "field", 400),
        (
            b"POST / HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "transfer_encoding",
            400,
        ),
    ];
    for (bytes, _, status) in cases {
        assert_eq!(
            refused(&gate, bytes),
            status,
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
    assert!(origin.received().is_empty(), "{:?}", origin.received());
    let log = eventually("the access log", || {
        let log = read(&gate.path("access.log"));
        (log.lines().count() >= cases.len()).then_some(log)
    });
    for (bytes, reason, status) in cases {
        let line = log
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let found = line
            .into_iter()
            .any(|line| line["error"] == reason && line["status"] == status);
        assert!(
            found,
            "{reason} for {}:\n{log}",
            String::from_utf8_lossy(bytes)
        );
        assert!(gate.metrics().contains(&format!(
            "crawlgate_requests_rejected_total{{reason=\"{reason}\"}}"
        )));
    }
}

#[test]
fn pipelined_requests_are_all_answered_in_their_order() {
    let origin = echo();
    let policy = "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: / }] }\nenforcement: { mode: enforce }\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let mut connection = gate.connect();
    let get = |target: &str, agent: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {agent}\r\n\r\n")
    };
    // Forwarded, answered here, with a body of either kind, and forwarded again: in one piece.
    let all = [
        get("/1", BROWSER),
        get("/robots.txt", GPTBOT),
        format!("POST /2 HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 5\r\n\r\nhello"),
        get("/secret", GPTBOT),
        format!(
            "POST /3 HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        ),
        format!("\r\n{}", get("/4", BROWSER)),
    ];
    connection.send(&all.concat());
    let expected = [
        (200, "/1 0"),
        (200, ""),
        (200, "/2 5"),
        (403, ""),
        (200, "/3 3"),
        (200, "/4 0"),
    ];
    for (status, body) in expected {
        let response = connection.response("GET");
        assert_eq!(response.status, status, "{body}");
        assert!(
            body.is_empty() || response.text() == body,
            "{} is not {body}",
            response.text()
        );
    }
    // The same in pieces of every size.
    let bytes = all.concat().into_bytes();
    for size in [1, 7, 50, 300] {
        let mut connection = gate.connect();
        for piece in bytes.chunks(size) {
            connection.send_bytes(piece);
        }
        for (status, _) in expected {
            assert_eq!(
                connection.response("GET").status,
                status,
                "in pieces of {size}"
            );
        }
    }
}

#[test]
fn bytes_of_a_body_are_never_taken_for_a_request() {
    let origin = echo();
    let policy = "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: / }] }\nenforcement: { mode: enforce }\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let smuggled = format!("GET /smuggled HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    for framing in [
        format!("Content-Length: {}", smuggled.len()),
        "Transfer-Encoding: chunked".to_owned(),
    ] {
        let mut connection = gate.connect();
        connection
            .send(&format!("POST /a HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {GPTBOT}\r\n{framing}\r\n\r\n{smuggled}"));
        let answer = connection.response("POST");
        assert_eq!(
            (answer.status, answer.field("connection")),
            (403, Some("close"))
        );
        assert!(connection.is_closed());
    }
    // A chunk that ends elsewhere for another reader.
    for body in [
        "5 \r\nhello\r\n0\r\n\r\n",
        "5\nhello\n0\n\n",
        "5\r\nhello0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut connection = gate.connect();
        connection.send(&format!(
            "POST /a HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n{body}{smuggled}"
        ));
        connection.finish_sending();
        let mut rest = String::new();
        while !connection.is_closed() {
            rest.push_str(&String::from_utf8_lossy(&connection.bytes(1)));
        }
        assert!(!rest.contains("200 OK"), "{body:?}: {rest}");
    }
    assert!(
        origin
            .received()
            .iter()
            .all(|request| request.target() != "/smuggled"),
        "{:?}",
        origin.received()
    );
}

#[test]
fn fields_of_a_connection_end_with_it() {
    let origin = echo();
    let gate = Setup::before(origin.address).start();
    let fields = "Connection: X-Mine, keep-alive\r\nX-Mine: a\r\nKeep-Alive: timeout=5\r\nProxy-Connection: b\r\nTE: trailers\r\n\
                  Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nX-Other: c\r\n";
    let mut connection = gate.connect();
    connection.send(&format!("GET /a HTTP/1.1\r\nHost: {HOST}\r\n{fields}\r\n"));
    assert_eq!(connection.response("GET").status, 200);
    let asked = origin.last();
    for name in [
        "x-mine",
        "keep-alive",
        "proxy-connection",
        "upgrade",
        "http2-settings",
    ] {
        assert_eq!(asked.field(name), None, "{name}");
    }
    assert_eq!(asked.field("x-other"), Some("c"));
    // Nobody takes away what the origin has to know.
    for name in ["Host", "X-Forwarded-For"] {
        let mut connection = gate.connect();
        connection.send(&format!(
            "GET /b HTTP/1.1\r\nHost: {HOST}\r\nConnection: {name}\r\n\r\n"
        ));
        assert_eq!(connection.response("GET").status, 400, "{name}");
    }
    assert_eq!(origin.last().target(), "/a");
}

#[test]
fn client_that_expects_a_100_gets_it_from_the_origin() {
    let origin = Origin::start(|request, stream| {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}",
            request.body.len()
        );
        stream.write_all(answer.as_bytes()).is_ok()
    });
    let policy = "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: / }] }\nenforcement: { mode: enforce }\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let post = |agent: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {agent}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    let mut connection = gate.connect();
    connection.send(&post(BROWSER));
    connection.send("hello");
    assert_eq!(connection.final_response("POST").text(), "5");
    // Answered here: the body is never asked for.
    let mut connection = gate.connect();
    connection.send(&post("GPTBot"));
    let refused = connection.response("POST");
    assert_eq!(
        (refused.status, refused.field("connection")),
        (403, Some("close"))
    );
    assert!(connection.is_closed());
}

#[test]
fn origin_may_switch_to_another_protocol() {
    let origin = Origin::start(|request, stream| {
        if request.field("upgrade").is_none() {
            return stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
                .is_ok();
        }
        let _ =
            stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
        let mut bytes = [0; 4];
        let _ = std::io::Read::read_exact(stream, &mut bytes);
        let _ = stream.write_all(&bytes);
        false
    });
    let gate = Setup::before(origin.address).start();
    let upgrade = format!(
        "GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    // Pingora 0.9.1 may end a connection whose origin switches before the end of the request is
    // passed on (issue 946).
    eventually("a switch of protocols", || {
        let mut connection = gate.connect();
        connection.send(&upgrade);
        assert_eq!(connection.response("GET").status, 101);
        if connection.says_something_within(Duration::from_millis(20)) {
            return None;
        }
        connection.send("ping");
        assert_eq!(connection.bytes(4), b"ping");
        assert!(connection.is_closed());
        Some(())
    });
    // An origin that stays with HTTP/1.1 is asked again on the same connection.
    let mut connection = gate.connect();
    for _ in 0..2 {
        connection.send(&format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
        assert_eq!(connection.response("GET").text(), "no");
    }
}
