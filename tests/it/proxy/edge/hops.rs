//! Fields of responses that are for one hop, or that a response of its status may not have: no
//! client gets them.

use crate::proxy::support::{Gate, HOST, Http2, Origin, Response, Setup};
use std::io::Write;

/// The head of a response with all of them, and its body.
fn response(target: &str) -> Option<String> {
    let (status, more, body) = match target {
        "/page" => (
            "200 OK",
            "Content-Length: 2\r\nTrailer: X-Sum\r\nUpgrade: h2c\r\n",
            "ok",
        ),
        "/chunks" => (
            "200 OK",
            "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n",
            "2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
        ),
        "/none" => ("204 No Content", "Content-Length: 2\r\n", ""),
        "/none-in-chunks" => ("204 No Content", "Transfer-Encoding: chunked\r\n", ""),
        "/same" => ("304 Not Modified", "Content-Length: 2\r\n", ""),
        "/old" => (
            "426 Upgrade Required",
            "Content-Length: 2\r\nUpgrade: TLS/1.0\r\n",
            "ok",
        ),
        "/hints" => {
            return Some(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n\
                 Connection: X-Hop\r\nX-Hop: 1\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                    .to_owned(),
            );
        }
        _ => return None,
    };
    Some(format!(
        "HTTP/1.1 {status}\r\n{more}Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
         Connection: X-Hop\r\nX-Hop: 1\r\nX-End: 1\r\n\r\n{body}"
    ))
}

fn names(response: &Response) -> Vec<String> {
    const OTHERS: [&str; 3] = ["date", "x-end", "connection"];
    let names = response
        .headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase());
    let mut names: Vec<String> = names
        .filter(|name| !OTHERS.contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

fn check(gate: &Gate, has_forwarder: bool) {
    let http2 = Http2::open(gate.address);
    let cases: [(&str, u16, &[&str], &[&str]); 6] = [
        ("/page", 200, &["content-length"], &["content-length"]),
        ("/chunks", 200, &["transfer-encoding"], &[]),
        ("/none", 204, &[], &[]),
        ("/none-in-chunks", 204, &[], &[]),
        ("/same", 304, &["content-length"], &["content-length"]),
        (
            "/old",
            426,
            &["content-length", "upgrade"],
            &["content-length"],
        ),
    ];
    for (target, status, over_http1, over_http2) in cases {
        let first = gate.get(HOST, target, "If-None-Match: \"a\"\r\n");
        assert_eq!(
            (first.status, names(&first)),
            (status, owned(over_http1)),
            "{target}, forwarder: {has_forwarder}"
        );
        let second = http2.get(HOST, target, &[("if-none-match", "\"a\"")]);
        let mut found = names(&second);
        // Trailers go to clients of HTTP/2, from the forwarder.
        let is_of_trailers = |name: &String| name == "trailer" || name.ends_with("x-sum");
        assert_eq!(
            found.iter().any(|name| name.ends_with("x-sum")),
            target == "/chunks" && has_forwarder,
            "{found:?}"
        );
        assert!(
            has_forwarder || !found.iter().any(is_of_trailers),
            "{found:?}"
        );
        found.retain(|name| !is_of_trailers(name));
        assert_eq!(
            (second.status, found),
            (status, owned(over_http2)),
            "{target}, forwarder: {has_forwarder}"
        );
        assert_eq!(first.body, second.body);
        assert!(first.field("x-end").is_some() && second.field("x-end").is_some());
    }
    let mut connection = gate.connect();
    connection.send(&format!("GET /hints HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
    let hints = connection.response("GET");
    assert_eq!((hints.status, names(&hints)), (103, owned(&["link"])));
    assert_eq!(connection.response("GET").text(), "ok");
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn fields_of_one_hop_and_lengths_of_no_body_end_at_crawlgate() {
    let origin = Origin::start(|request, stream| {
        let missing = || "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
        stream
            .write_all(
                response(request.target())
                    .unwrap_or_else(missing)
                    .as_bytes(),
            )
            .is_ok()
    });
    for direct in ["on", "off"] {
        let gate = Setup::before(origin.address)
            .settings(&format!("direct_forwarding: {direct}"))
            .start();
        check(&gate, direct == "on");
    }
}
