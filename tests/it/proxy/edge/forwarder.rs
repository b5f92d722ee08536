//! The forwarder: requests on their way past Pingora's proxy, and that they come out as they would come
//! out of it.

#[path = "../../../../tools/forwarder_differential/cases.rs"]
mod cases;
#[path = "../../../../tools/forwarder_differential/drive.rs"]
mod drive;
#[path = "../../../../tools/forwarder_differential/http2.rs"]
mod http2;

use crate::proxy::support::{
    BROWSER, Connection, Gate, Http2, Origin, PATIENCE, Setup, eventually, read,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// Only the forwarder refuses it: the length and the coding of a body.
const BOTH_FRAMINGS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n";

fn before(origin: &Origin) -> Gate {
    Setup::before(origin.address).start()
}

fn ask(connection: &mut Connection, target: &str) {
    connection.send(&format!(
        "GET {target} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: {BROWSER}\r\n\r\n"
    ));
}

/// The status of a request over a connection of its own.
fn status(gate: &Gate, request: &str) -> u16 {
    let mut connection = gate.connect();
    connection.send(request);
    connection
        .response(request.split(' ').next().unwrap_or_default())
        .status
}

#[test]
fn forwarder_and_pingora_agree_about_generated_requests() {
    let origins = [drive::Origin::start(), drive::Origin::start()];
    let gates = [("on", &origins[0]), ("off", &origins[1])].map(|(direct, origin)| {
        Setup::before(origin.address)
            .policy("site", drive::POLICY)
            .settings(&format!("direct_forwarding: {direct}"))
            .start()
    });
    let pair = drive::Pair {
        gates: gates.each_ref().map(|gate| gate.address),
        origins,
    };
    let count = pair
        .compare(0..2_000)
        .unwrap_or_else(|difference| panic!("{difference}"));
    assert_eq!(count.alike + count.stricter + count.never_asked, 2_000);
    assert!(count.alike > 1_500, "{count:?}");
}

#[test]
fn requests_that_stay_with_http1_take_the_forwarder() {
    let origin = Origin::saying(BOTH_FRAMINGS);
    let gate = before(&origin);
    for (fields, takes_it) in [
        ("", true),
        ("Connection: keep-alive\r\n", true),
        ("Connection: X-A\r\n", false),
        ("Content-Length: 0\r\n", true),
        ("TE: trailers\r\n", true),
        ("Trailer: x\r\n", true),
        ("Upgrade: websocket\r\n", false),
        ("Expect: 100-continue\r\n", false),
        ("HTTP2-Settings: AAMAAABkAAQAAP__\r\n", false),
    ] {
        let status = status(
            &gate,
            &format!("GET / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"),
        );
        assert_eq!(status == 502, takes_it, "{fields:?}: {status}");
    }
    for (fields, takes_it) in [
        ("Content-Length: 1\r\n", true),
        ("Transfer-Encoding: chunked\r\n", true),
        ("Content-Length: 1\r\nExpect: 100-continue\r\n", true),
        ("Content-Length: 1\r\nUpgrade: websocket\r\n", false),
    ] {
        let body = if fields.starts_with('C') {
            "x"
        } else {
            "0\r\n\r\n"
        };
        let status = status(
            &gate,
            &format!("POST / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n{body}"),
        );
        assert_eq!(status == 502, takes_it, "{fields:?}: {status}");
    }
    assert_eq!(
        status(
            &gate,
            "GET / HTTP/1.1\r\nHost: a.example\r\nExpect: x\r\n\r\n"
        ),
        417
    );
    assert_eq!(
        status(&gate, "DELETE / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        502
    );
    assert_eq!(
        status(&gate, "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        200
    );
    assert_eq!(
        status(&gate, "GET / HTTP/1.0\r\nHost: a.example\r\n\r\n"),
        200
    );
    assert_eq!(
        status(
            &gate,
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"
        ),
        200
    );
    assert_eq!(
        status(&gate, "HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        502
    );
}

#[test]
fn fields_named_by_connection_stay_behind_on_both_ways() {
    const NAMING: &str = "HTTP/1.1 200 OK\r\nConnection: X-Hop, keep-alive, Content-Length\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
                          X-End: 1\r\nContent-Length: 2\r\n\r\nok";
    let origin = Origin::saying(NAMING);
    for direct in ["on", "off"] {
        let gate = Setup::before(origin.address)
            .settings(&format!("direct_forwarding: {direct}"))
            .start();
        let response = gate.get("a.example", "/", "");
        assert_eq!(
            (response.status, response.text(), response.field("x-end")),
            (200, "ok", Some("1")),
            "{direct}"
        );
        assert_eq!(
            (response.field("x-hop"), response.field("content-length")),
            (None, Some("2")),
            "{direct}"
        );
        assert_eq!(
            (response.field("connection"), response.field("keep-alive")),
            (Some("close"), None),
            "{direct}"
        );
    }
}

#[test]
fn switch_that_was_not_asked_for_is_502_on_both_ways() {
    // Pingora passes on no other protocol (Pingora 0.9.1).
    let origin = Origin::saying(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nGIF89a",
    );
    let gate = before(&origin);
    for request in [
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a.example\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive\r\nUpgrade: websocket\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
    ] {
        assert_eq!(status(&gate, request), 502, "{request:?}");
    }
    assert_eq!(
        Http2::open(gate.address).get("a.example", "/", &[]).status,
        502
    );
}

#[test]
fn claims_with_underscores_reach_the_origin_on_no_way() {
    let origin = Origin::plain();
    let gate = before(&origin);
    let fields = "X_Forwarded_For: 198.51.100.1\r\nX-Real_IP: 198.51.100.1\r\nX_FORWARDED_PORT: 443\r\nX_Own: 1\r\n";
    for method in ["GET", "POST"] {
        gate.ask(
            method,
            "a.example",
            "/",
            &format!(
                "{fields}{}",
                if method == "POST" {
                    "Content-Length: 0\r\n"
                } else {
                    ""
                }
            ),
        );
        let asked = origin.last();
        let underscored: Vec<&str> = asked
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| name.contains('_'))
            .collect();
        assert_eq!(underscored, ["X_Own"], "{method}");
    }
    Http2::open(gate.address).get(
        "a.example",
        "/",
        &[("x_forwarded_for", "198.51.100.1"), ("x_own", "1")],
    );
    let asked = origin.last();
    assert_eq!(
        (asked.field("x_forwarded_for"), asked.field("x_own")),
        (None, Some("1"))
    );
}

#[test]
fn forwarder_switched_off_passes_nothing() {
    let origin = Origin::saying(BOTH_FRAMINGS);
    let gate = Setup::before(origin.address)
        .settings("direct_forwarding: off")
        .start();
    assert_eq!(
        status(&gate, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        200
    );
}

#[test]
fn pages_that_are_rewritten_do_not_take_the_forwarder() {
    let origin = Origin::saying(BOTH_FRAMINGS);
    let policy = "hosts: a.example\nhtml: { meta: yes }\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    assert_eq!(
        status(&gate, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        200
    );
    assert_eq!(
        status(&gate, "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n"),
        502
    );
}

/// Counts connections; says the same on each as long as it says so.
fn counting(
    answer: impl Fn(usize, usize, &mut TcpStream) -> bool + Send + Sync + 'static,
) -> (Origin, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let known: Mutex<Vec<(std::net::SocketAddr, usize)>> = Mutex::default();
    let origin = Origin::start(move |request, stream| {
        if request.is_own() {
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            return false;
        }
        let peer = stream.peer_addr().expect("a peer");
        let mut known = known.lock().expect("nobody panics while writing");
        let place = known
            .iter()
            .position(|(address, _)| *address == peer)
            .unwrap_or_else(|| {
                count.fetch_add(1, Ordering::SeqCst);
                known.push((peer, 0));
                known.len() - 1
            });
        known[place].1 += 1;
        let requests = known[place].1;
        drop(known);
        answer(place, requests, stream)
    });
    (origin, connections)
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn connections_to_the_origin_are_used_again() {
    let (origin, connections) = counting(|_, _, stream| stream.write_all(OK).is_ok());
    let gate = Setup::before(origin.address).settings("threads: 1").start();
    let mut connection = gate.connect();
    for _ in 0..5 {
        ask(&mut connection, "/");
        assert_eq!(connection.response("GET").status, 200);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[test]
fn kept_connection_that_fails_is_replaced_once() {
    let (origin, connections) =
        counting(|_, requests, stream| requests < 2 && stream.write_all(OK).is_ok());
    let gate = Setup::before(origin.address).settings("threads: 1").start();
    let mut connection = gate.connect();
    for _ in 0..4 {
        ask(&mut connection, "/");
        assert_eq!(connection.response("GET").status, 200);
    }
    assert_eq!(
        connections.load(Ordering::SeqCst),
        4,
        "each was used, and failed when it was used again"
    );
}

#[test]
fn new_connection_that_fails_is_answered_with_502() {
    let (origin, connections) = counting(|_, _, _| false);
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    ask(&mut connection, "/");
    let response = connection.response("GET");
    assert_eq!(
        (response.status, response.field("connection")),
        (502, Some("close"))
    );
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    assert!(connection.is_closed());
}

#[test]
fn server_that_refuses_connections_is_passed_over() {
    let origin = Origin::plain();
    let origins = format!(
        "origins: [http://{}, http://{}]",
        Origin::nowhere(),
        origin.address
    );
    let gate = Setup::before(origin.address).with_origins(&origins).start();
    for _ in 0..4 {
        assert_eq!(gate.get("a.example", "/", "").status, 200);
    }
    let gate = Setup::before(Origin::nowhere()).start();
    let response = gate.get("a.example", "/", "");
    assert_eq!(
        (response.status, response.field("server")),
        (502, Some("crawlgate"))
    );
}

/// Both ways: without a body in the forwarder, with one through Pingora.
#[test]
fn retried_request_counts_against_the_first_server() {
    let origin = Origin::plain();
    let origins = format!(
        "origins: [http://{}, http://{}]",
        Origin::nowhere(),
        origin.address
    );
    for direct in ["on", "off"] {
        let gate = Setup::before(origin.address)
            .with_origins(&origins)
            .settings(&format!("direct_forwarding: {direct}"))
            .start();
        for _ in 0..4 {
            assert_eq!(gate.get("a.example", "/", "").status, 200);
        }
        let failed =
            r#"crawlgate_upstream_failures_total{origin="*",reason="connect_refused",server="1"}"#;
        gate.wait_for_metric(failed, 2.0);
        let answered = r#"crawlgate_upstream_requests_total{origin="*",server="2",status="2xx"}"#;
        gate.wait_for_metric(answered, 4.0);
    }
}

#[test]
fn connection_with_surplus_bytes_is_not_used_again() {
    let (origin, connections) = counting(|_, _, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!")
            .is_ok()
    });
    let gate = Setup::before(origin.address).settings("threads: 1").start();
    let mut connection = gate.connect();
    for _ in 0..3 {
        ask(&mut connection, "/");
        assert_eq!(connection.response("GET").text(), "ok");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[test]
fn broken_body_ends_the_connection_and_is_never_whole() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nx\r\n",
    ] {
        let origin = Origin::start(move |_, stream| {
            let _ = stream.write_all(answer.as_bytes());
            false
        });
        let gate = before(&origin);
        let mut stream = TcpStream::connect(gate.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .expect("a request");
        let mut seen = Vec::new();
        let _ = stream.read_to_end(&mut seen);
        let seen = String::from_utf8_lossy(&seen);
        assert!(
            seen.starts_with("HTTP/1.1 200 ")
                && seen.contains("short")
                && !seen.contains("\r\n0\r\n"),
            "{seen}"
        );
    }
}

#[test]
fn pieces_of_a_response_are_passed_on_as_they_come() {
    for head in [
        "Transfer-Encoding: chunked",
        "Content-Length: 12",
        "X-Until: close",
    ] {
        let (go_on, wait) = channel::<()>();
        let wait = Mutex::new(wait);
        let is_chunked = head.starts_with("Transfer");
        let origin = Origin::start(move |request, stream| {
            if request.is_own() {
                return false;
            }
            let (first, second) = if is_chunked {
                ("6\r\nfirst,\r\n", "6\r\nsecond\r\n0\r\n\r\n")
            } else {
                ("first,", "second")
            };
            let _ =
                stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{first}").as_bytes());
            let _ = wait
                .lock()
                .expect("nobody panics while waiting")
                .recv_timeout(PATIENCE);
            let _ = stream.write_all(second.as_bytes());
            false
        });
        let gate = before(&origin);
        let mut connection = gate.connect();
        ask(&mut connection, "/");
        let response = connection.head();
        let is_chunked = response.field("transfer-encoding").is_some();
        let frame = if is_chunked { 3 + 6 + 2 } else { 6 };
        assert!(
            String::from_utf8_lossy(&connection.bytes(frame)).contains("first,"),
            "{head}"
        );
        go_on.send(()).expect("the origin waits");
        let rest = if is_chunked { 3 + 6 + 2 + 5 } else { 6 };
        assert!(
            String::from_utf8_lossy(&connection.bytes(rest)).contains("second"),
            "{head}"
        );
    }
}

#[test]
fn informational_responses_are_passed_on() {
    let origin = Origin::start(|_, stream| {
        stream
            .write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
            .is_ok()
            && stream.write_all(OK).is_ok()
    });
    let gate = before(&origin);
    let mut connection = gate.connect();
    ask(&mut connection, "/");
    let early = connection.response("GET");
    assert_eq!(
        (early.status, early.field("link"), early.field("connection")),
        (103, Some("</a.css>"), None)
    );
    assert_eq!(connection.response("GET").text(), "ok");
}

#[test]
fn endless_heads_are_refused() {
    let endless = |_: &_, stream: &mut TcpStream| {
        let mut is_taken = stream.write_all(b"HTTP/1.1 200 OK\r\n").is_ok();
        while is_taken {
            is_taken = stream
                .write_all(&b"X-More: and more\r\n".repeat(64))
                .is_ok();
        }
        false
    };
    assert_eq!(
        before(&Origin::start(endless))
            .get("a.example", "/", "")
            .status,
        502
    );
    let hints = |_: &_, stream: &mut TcpStream| {
        while stream
            .write_all(&b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(64))
            .is_ok()
        {}
        false
    };
    let gate = before(&Origin::start(hints));
    let mut connection = gate.connect();
    ask(&mut connection, "/");
    assert_eq!(connection.final_response("GET").status, 502);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let origin = Origin::start(|request, stream| {
        let target = request.target();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}",
            target.len()
        )
        .is_ok()
    });
    let gate = before(&origin);
    let mut connection = gate.connect();
    let request = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let post = "POST /two HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc";
    connection.send(
        &[
            &request("/one"),
            post,
            &request("/three"),
            &request("/four"),
        ]
        .concat(),
    );
    for target in ["/one", "/two", "/three", "/four"] {
        assert_eq!(connection.response("GET").text(), target);
    }
}

#[test]
fn request_whose_client_is_gone_ends_at_the_origin() {
    let (gone, seen) = channel();
    let gone = Mutex::new(gone);
    let origin = Origin::start(move |request, stream| {
        if !request.is_own() {
            // Nothing is answered: only the end of the connection is awaited.
            let read = stream.read(&mut [0]);
            let _ = gone
                .lock()
                .expect("nobody panics while sending")
                .send(read.is_ok_and(|count| count == 0));
        }
        false
    });
    let gate = before(&origin);
    let mut connection = gate.connect();
    ask(&mut connection, "/");
    eventually("the origin is asked", || {
        (!origin.received().is_empty()).then_some(())
    });
    drop(connection);
    assert_eq!(seen.recv_timeout(PATIENCE), Ok(true));
}

#[test]
fn origin_that_is_too_slow_gets_504() {
    let origin = Origin::start(|request, stream| {
        if !request.is_own() {
            let _ = stream.read(&mut [0]);
        }
        false
    });
    let origins = format!(
        "origins: {{ servers: http://{}, timeouts: {{ read: 200ms }} }}",
        origin.address
    );
    let gate = Setup::before(origin.address).with_origins(&origins).start();
    assert_eq!(gate.get("a.example", "/", "").status, 504);
}

#[test]
fn requests_in_the_forwarder_are_recorded() {
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    let policy = "hosts: a.example\nindexing: [{ types: application/pdf, tag: noindex }]\n";
    let gate = Setup::before(origin.address)
        .policy("site", policy)
        .settings("logs: { access: access.log }")
        .start();
    let response = gate.get("a.example", "/report", "");
    assert_eq!(
        (response.text(), response.field("x-robots-tag")),
        ("abc", Some("noindex"))
    );
    let line = eventually("a line in the access log", || {
        let log = read(&gate.path("access.log"));
        log.lines()
            .find(|line| line.contains("/report"))
            .map(str::to_owned)
    });
    for part in [
        "\"status\":200",
        "\"bytes\":3",
        "\"http\":\"1.1\"",
        "\"site\":\"site\"",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
