//! What a proxy must do with any request, policy or not: the tables of Pingora's behaviour that are
//! not to be had bare.

use crate::proxy::support::{Origin, PATIENCE, Setup};
use std::io::{Read, Write};

#[test]
fn a_request_without_a_host_is_refused_and_never_forwarded() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:  \r\n\r\n",
    ] {
        let mut connection = gate.connect();
        connection.send(request);
        let response = connection.response("GET");
        assert_eq!(response.status, 400, "{request:?}");
        assert_eq!(response.field("server"), Some("crawlgate"));
        assert_eq!(response.field("connection"), Some("close"));
        assert!(connection.is_closed());
    }
    assert!(origin.received().is_empty());
}

#[test]
fn trace_is_refused_with_the_methods_that_would_do() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let response = gate.ask("TRACE", "a.example", "/", "");
    assert_eq!(response.status, 405);
    assert!(
        response
            .field("allow")
            .is_some_and(|allow| allow.contains("GET") && !allow.contains("TRACE"))
    );
    assert!(origin.received().is_empty());
}

#[test]
fn targets_and_headers_beyond_their_limits_are_refused() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { target: 1KiB, headers: 2KiB }")
        .start();
    assert_eq!(
        gate.get("a.example", &format!("/{}", "a".repeat(1023)), "")
            .status,
        200
    );
    assert_eq!(
        gate.get("a.example", &format!("/{}", "a".repeat(1024)), "")
            .status,
        414
    );
    assert_eq!(
        gate.get("a.example", "/", &format!("X-A: {}\r\n", "a".repeat(2048)))
            .status,
        431
    );
    assert_eq!(origin.received().len(), 1);
}

#[test]
fn idle_connection_is_reused_then_closed() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { idle: 1s }")
        .start();
    let mut connection = gate.connect();
    for _ in 0..3 {
        connection.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let response = connection.response("GET");
        assert_eq!(
            (response.status, response.field("connection")),
            (200, Some("keep-alive"))
        );
    }
    let idle = std::time::Instant::now();
    assert!(connection.is_closed(), "keep-alive without end");
    assert!(idle.elapsed() < PATIENCE);
}

#[test]
fn a_client_that_asks_to_close_is_closed() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    connection.send("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    assert_eq!(
        connection.response("GET").field("connection"),
        Some("close")
    );
    assert!(connection.is_closed());
}

#[test]
fn an_http_1_0_client_never_sees_chunks() {
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
    );
    let gate = Setup::before(origin.address).start();
    for request in [
        "GET / HTTP/1.0\r\nHost: a.example\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n",
    ] {
        let mut connection = gate.connect();
        connection.send(request);
        let response = connection.response("GET");
        assert_eq!(response.field("transfer-encoding"), None);
        assert_eq!(response.field("connection"), Some("close"));
        assert_eq!(response.text(), "hello world");
    }
}

#[test]
fn http_1_0_request_without_host_reaches_the_origin() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    connection.send("GET /old HTTP/1.0\r\n\r\n");
    assert_eq!(connection.response("GET").status, 200);
    let received = origin.last();
    assert_eq!(
        received.field("host"),
        Some(origin.address.to_string().as_str())
    );
    assert_eq!(received.field("x-forwarded-host"), None);
}

#[test]
fn an_absolute_target_reaches_the_origin_as_a_path() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    for (target, path) in [
        ("http://A.example/b?c=d", "/b?c=d"),
        ("http://a.example", "/"),
        ("http://a.example?q", "/?q"),
    ] {
        assert_eq!(gate.get("a.example", target, "").status, 200);
        assert_eq!(
            origin.last().line,
            format!("GET {path} HTTP/1.1"),
            "{target}"
        );
        assert_eq!(origin.last().field("host"), Some("a.example"));
    }
}

#[test]
fn targets_are_forwarded_as_they_were_sent() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    for target in ["//a/../b", "/%7Euser/%2e%2e/", "/a;b=c?d=/../e&f=%00"] {
        assert_eq!(gate.get("a.example", target, "").status, 200);
        assert_eq!(origin.last().target(), target);
    }
}

#[test]
fn untrusted_forwarding_fields_are_replaced() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let lies = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nX-Forwarded-Proto: https\r\n\
                X-Forwarded-Host: evil.example\r\nForwarded: for=192.0.2.3\r\nX-Real-IP: 192.0.2.4\r\n";
    gate.get("a.example", "/", lies);
    let received = origin.last();
    let forwarded: Vec<_> = received
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("x-forwarded-for"))
        .collect();
    assert_eq!(forwarded.len(), 1);
    assert_eq!(received.field("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(received.field("x-forwarded-proto"), Some("http"));
    assert_eq!(received.field("x-forwarded-host"), Some("a.example"));
    assert_eq!(received.field("forwarded"), None);
    assert_eq!(received.field("x-real-ip"), None);
}

#[test]
fn trusted_proxy_fields_are_extended_and_logged() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address).settings("trusted_proxies: [127.0.0.0/8]");
    let log = setup.policies().join("../access.log");
    let gate = setup
        .settings(&format!("logs: {{ access: {} }}", log.display()))
        .start();
    let said = "X-Forwarded-For: 192.0.2.66, 198.51.100.7\r\nX-Forwarded-For: 127.0.0.9\r\n\
                X-Forwarded-Proto: https\r\nX-Forwarded-Host: public.example\r\n";
    gate.get("a.example", "/", said);
    let received = origin.last();
    assert_eq!(
        received.field("x-forwarded-for"),
        Some("192.0.2.66, 198.51.100.7, 127.0.0.9, 127.0.0.1")
    );
    assert_eq!(received.field("x-forwarded-proto"), Some("https"));
    assert_eq!(received.field("x-forwarded-host"), Some("public.example"));
    let line = crate::proxy::support::eventually("a line in the access log", || {
        let text = crate::proxy::support::read(&log);
        text.lines().next().map(str::to_string)
    });
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["client"], "198.51.100.7");
    assert_eq!(
        (&line["status"], &line["action"]),
        (&200.into(), &"pass".into())
    );
}

#[test]
fn early_hints_and_then_the_answer_reach_the_client() {
    let origin = Origin::saying(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    connection.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let hints = connection.response("GET");
    assert_eq!(
        (hints.status, hints.field("link")),
        (103, Some("</a.css>; rel=preload"))
    );
    assert_eq!(connection.response("GET").text(), "ok");
}

#[test]
fn an_http_1_0_client_gets_no_informational_response() {
    let origin = Origin::saying(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok",
    );
    let html = "robots: { origin: replace }\nhtml: { meta: yes }\nindexing: [{ tag: noarchive }]\n";
    for (direct, policy) in [("on", ""), ("off", ""), ("on", html)] {
        let setup = Setup::before(origin.address).settings(&format!("direct_forwarding: {direct}"));
        let gate = if policy.is_empty() {
            setup
        } else {
            setup.policy("site", policy)
        }
        .start();
        for fields in ["", "Expect: 100-continue\r\nContent-Length: 2\r\n"] {
            let (method, body) = if fields.is_empty() {
                ("GET", "")
            } else {
                ("POST", "hi")
            };
            let mut connection = gate.connect();
            connection.send(&format!(
                "{method} / HTTP/1.0\r\nHost: a.example\r\n{fields}\r\n{body}"
            ));
            assert_eq!(
                connection.response(method).status,
                200,
                "{direct} {policy} {fields}"
            );
            assert!(connection.is_closed(), "{direct} {policy} {fields}");
            assert_eq!(
                (origin.last().field("expect"), &*origin.last().body),
                (None, body.as_bytes()),
                "{fields}"
            );
        }
        // The others get all of them.
        let mut connection = gate.connect();
        connection.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let statuses = [(); 4].map(|()| connection.response("GET").status);
        assert_eq!(statuses, [100, 102, 103, 200], "{direct} {policy}");
    }
}

#[test]
fn an_http_1_0_client_asks_for_no_other_protocol() {
    let origin = Origin::saying(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    connection.send(
        "GET / HTTP/1.0\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(connection.response("GET").status, 502);
    assert_eq!(origin.last().field("upgrade"), None);
}

#[test]
fn uploads_of_known_and_unknown_length_arrive_whole() {
    let origin = Origin::saying("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    let gate = Setup::before(origin.address).start();
    let body: Vec<u8> = (0..300_000_u32).map(|byte| byte.to_le_bytes()[0]).collect();
    let mut connection = gate.connect();
    connection.send(&format!(
        "POST /up HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    connection.send_bytes(&body);
    assert_eq!(connection.response("POST").status, 201);
    assert_eq!(origin.last().body, body);
    connection.send("POST /up HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n");
    for chunk in body.chunks(10_000) {
        connection.send(&format!("{:x}\r\n", chunk.len()));
        connection.send_bytes(chunk);
        connection.send("\r\n");
    }
    connection.send("0\r\n\r\n");
    assert_eq!(connection.response("POST").status, 201);
    assert_eq!(origin.last().body, body);
}

#[test]
fn head_has_the_header_of_get_and_no_body() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    for _ in 0..2 {
        connection.send("HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let response = connection.response("HEAD");
        assert_eq!(
            (response.status, response.field("content-length")),
            (200, Some("5"))
        );
    }
}

#[test]
fn an_origin_that_is_down_is_a_502_that_says_so() {
    let gate = Setup::before(Origin::nowhere()).start();
    let response = gate.get("a.example", "/", "Accept: application/json\r\n");
    assert_eq!(response.status, 502);
    assert_eq!(response.field("server"), Some("crawlgate"));
    assert_eq!(response.field("cache-control"), Some("no-store"));
    assert!(
        response.text().contains("\"status\":502"),
        "{}",
        response.text()
    );
    assert!(gate.ask("HEAD", "a.example", "/", "").body.is_empty());
}

#[test]
fn an_origin_that_does_not_answer_in_time_is_a_504() {
    let origin = Origin::start(|_, stream| {
        let _ = stream.read(&mut [0]);
        false
    });
    let gate = Setup::before(origin.address)
        .with_origins(&format!(
            "origins: [{{ servers: http://{}, timeouts: {{ read: 1s }} }}]",
            origin.address
        ))
        .start();
    assert_eq!(gate.get("a.example", "/", "").status, 504);
}

#[test]
fn an_origin_that_talks_nonsense_is_a_502() {
    let origin = Origin::start(|_, stream| {
        let _ = stream.write_all(b"what?\r\n\r\n");
        false
    });
    let gate = Setup::before(origin.address).start();
    assert_eq!(gate.get("a.example", "/", "").status, 502);
}

#[test]
fn hosts_go_to_their_origins_and_an_unknown_one_to_none() {
    let (one, other) = (Origin::plain(), Origin::plain());
    let origins = format!(
        "origins: [{{ hosts: [a.example], servers: http://{} }}, {{ hosts: [\"*.b.example\"], servers: http://{} }}]",
        one.address, other.address
    );
    let gate = Setup::before(one.address).with_origins(&origins).start();
    assert_eq!(gate.get("A.example:80", "/1", "").status, 200);
    assert_eq!(gate.get("www.b.example", "/2", "").status, 200);
    assert_eq!(gate.get("c.example", "/3", "").status, 502);
    assert_eq!(
        one.received()
            .iter()
            .map(|request| request.target().to_string())
            .collect::<Vec<_>>(),
        ["/1"]
    );
    assert_eq!(
        other
            .received()
            .iter()
            .map(|request| request.target().to_string())
            .collect::<Vec<_>>(),
        ["/2"]
    );
}

#[test]
fn an_origin_given_by_name_is_resolved_before_the_first_request() {
    let origin = Origin::plain();
    let gate = Setup::before(format!("localhost:{}", origin.address.port())).start();
    assert_eq!(gate.get("a.example", "/", "").status, 200);
    // localhost may be [::1] first, where nothing listens: any method must find the address that
    // does.
    assert_eq!(
        gate.ask("POST", "a.example", "/", "Content-Length: 0\r\n")
            .status,
        200
    );
}
