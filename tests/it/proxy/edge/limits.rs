//! Connections, deadlines and sizes: each with its answer, its metric and no harm to others.

use crate::proxy::support::http2::{PREFACE, SETTINGS};
use crate::proxy::support::{
    Connection, Gate, HOST, Http2, Origin, PATIENCE, Setup, eventually, read,
};
use std::io::Write;
use std::time::{Duration, Instant};

const GET: &str = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";

fn closed(reason: &str) -> String {
    format!("crawlgate_connections_closed_total{{reason=\"{reason}\"}}")
}

fn rejected(reason: &str) -> String {
    format!("crawlgate_requests_rejected_total{{reason=\"{reason}\"}}")
}

/// Waits for so many requests in the access log that ended by this error.
fn wait_for_errors(gate: &Gate, error: &str, count: usize) {
    eventually("the access log has the errors", || {
        let log = read(&gate.path("access.log"));
        (log.matches(&format!("\"error\":\"{error}\"")).count() == count).then_some(())
    });
}

#[test]
fn one_client_gets_so_many_connections_and_the_rest_a_503() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { connections_per_address: 3 }")
        .start();
    let open: Vec<Connection> = (0..3).map(|_| gate.connect()).collect();
    gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", 3.0);
    let mut one_more = gate.connect();
    let answer = one_more.response("GET");
    assert_eq!(
        (answer.status, answer.field("retry-after")),
        (503, Some("10"))
    );
    assert!(one_more.is_closed());
    gate.wait_for_metric(&closed("too_many_of_one_address"), 1.0);
    gate.log.wait_for("limits.connections_per_address");
    drop(open);
    gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", 0.0);
    assert_eq!(gate.get(HOST, "/", "").status, 200);
}

#[test]
fn admin_listener_has_the_deadlines_and_bounds_of_the_proxy() {
    let origin = Origin::plain();
    let settings = "limits: { head: 300ms, idle: 30s, connections_per_address: 3 }";
    let gate = Setup::before(origin.address).settings(settings).start();
    let mut slow = Connection::open(gate.admin);
    slow.send("GET /healthz HTTP/1.1\r\nHost: local");
    assert_eq!(slow.response("GET").status, 408);
    assert!(slow.is_closed());
    let open: Vec<Connection> = (0..3).map(|_| Connection::open(gate.admin)).collect();
    assert_eq!(Connection::open(gate.admin).response("GET").status, 503);
    drop((slow, open));
    let ask = |connection: &mut Connection| {
        connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        connection.response("GET").status
    };
    let mut connection = eventually("there is room again", || {
        let mut connection = Connection::open(gate.admin);
        (ask(&mut connection) == 200).then_some(connection)
    });
    assert_eq!(ask(&mut connection), 200, "the connection goes on");
}

#[test]
fn a_trusted_proxy_is_counted_in_total_only() {
    let origin = Origin::plain();
    let settings =
        "limits: { connections: 4, connections_per_address: 1 }\ntrusted_proxies: 127.0.0.1";
    let gate = Setup::before(origin.address).settings(settings).start();
    let open: Vec<Connection> = (0..4).map(|_| gate.connect()).collect();
    gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", 4.0);
    assert_eq!(gate.connect().response("GET").status, 503);
    gate.wait_for_metric(&closed("too_many"), 1.0);
    drop(open);
    gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", 0.0);
    assert_eq!(gate.get(HOST, "/", "").status, 200);
}

#[test]
fn a_head_that_comes_too_slowly_gets_a_408() {
    let origin = Origin::plain();
    let settings = "limits: { head: 300ms, idle: 30s }\nlogs: { access: access.log }";
    let gate = Setup::before(origin.address).settings(settings).start();
    let mut connection = gate.connect();
    let began = Instant::now();
    // Byte by byte: each one comes soon after the one before.
    for byte in "GET /slow HTTP/1.1\r\nHost: shop.example\r\nX-Slow: "
        .chars()
        .cycle()
    {
        if connection.says_something_within(Duration::from_millis(20))
            || !connection.try_send(&byte.to_string())
        {
            break;
        }
    }
    assert!(began.elapsed() < PATIENCE);
    let answer = connection.response("GET");
    assert_eq!(
        (answer.status, answer.field("connection")),
        (408, Some("close"))
    );
    gate.wait_for_metric(&rejected("head_timeout"), 1.0);
    let line = eventually("a line in the access log", || {
        read(&gate.path("access.log"))
            .lines()
            .next()
            .map(str::to_owned)
    });
    assert!(
        line.contains("\"target\":\"/slow\"") && line.contains("\"status\":408"),
        "{line}"
    );
    // The next head of a connection has its own time.
    let mut connection = gate.connect();
    for _ in 0..2 {
        connection.send(GET);
        assert_eq!(connection.response("GET").status, 200);
    }
    connection.send("GET");
    assert_eq!(connection.response("GET").status, 408);
}

#[test]
fn a_silent_client_is_closed_without_a_word() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { idle: 1s }")
        .start();
    let mut silent = gate.connect();
    let mut after_a_request = gate.connect();
    after_a_request.send(GET);
    assert_eq!(after_a_request.response("GET").status, 200);
    assert!(silent.is_closed() && after_a_request.is_closed());
}

#[test]
fn too_many_fields_are_refused() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { fields: 10 }")
        .start();
    let with = |fields: usize| gate.get(HOST, "/", &"X-A: b\r\n".repeat(fields)).status;
    // Host and Connection are two of them.
    assert_eq!((with(8), with(9)), (200, 431));
    gate.wait_for_metric(&rejected("too_many_fields"), 1.0);
}

#[test]
fn bodies_that_are_too_large_get_a_413() {
    let origin = Origin::plain();
    for direct in ["on", "off"] {
        let settings = format!(
            "limits: {{ body: 1KiB }}\ndirect_forwarding: {direct}\nlogs: {{ access: access.log }}"
        );
        bodies_that_are_too_large(&Setup::before(origin.address).settings(&settings).start());
    }
}

fn bodies_that_are_too_large(gate: &Gate) {
    let body = "x".repeat(1025);
    let post = |bytes: usize| {
        let mut connection = gate.connect();
        connection.send(&format!(
            "POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {bytes}\r\n\r\n{}",
            &body[..bytes]
        ));
        connection.response("POST").status
    };
    assert_eq!((post(1024), post(1025)), (200, 413));
    let mut connection = gate.connect();
    connection.send(&format!(
        "POST / HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n401\r\n{body}\r\n0\r\n\r\n"
    ));
    assert_eq!(connection.response("POST").status, 413);
    gate.wait_for_metric(&rejected("body_too_large"), 2.0);
    let http2 = Http2::open(gate.address);
    let post = |bytes: usize, said: bool| {
        let length = bytes.to_string();
        let fields = if said {
            vec![("content-length", length.as_str())]
        } else {
            Vec::new()
        };
        http2
            .begin(
                "POST",
                &format!("http://{HOST}/"),
                &fields,
                Some(vec![b'x'; bytes]),
            )
            .wait()
            .expect("an answer")
            .status
    };
    assert_eq!((post(1024, true), post(1024, false)), (200, 200));
    assert_eq!((post(1025, true), post(1025, false)), (413, 413));
    wait_for_errors(gate, "body_too_large", 4);
}

#[test]
fn a_body_that_stops_or_comes_too_slowly_gets_a_408() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { stall: 500ms, body_rate: 1KiB/s }\nlogs: { access: access.log }");
    let gate = gate.start();
    let mut stopped = gate.connect();
    stopped.send(&format!(
        "POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 5000\r\n\r\nx"
    ));
    assert_eq!(stopped.response("POST").status, 408);
    let mut slow = gate.connect();
    slow.send(&format!(
        "POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 5000\r\n\r\n"
    ));
    while !slow.says_something_within(Duration::from_millis(100)) && slow.try_send("x") {}
    assert_eq!(slow.response("POST").status, 408);
    gate.wait_for_metric(&rejected("body_rate"), 1.0);
    wait_for_errors(&gate, "body_rate", 1);
    let http2 = Http2::open(gate.address);
    let mut slow = http2.upload(HOST, "/", &[]);
    // Two bytes, the second one a second after `stall`: too slow on average.
    let began = Instant::now();
    slow.send(b"x", false);
    while began.elapsed() < Duration::from_millis(1_700) {
        std::thread::park_timeout(Duration::from_millis(100));
    }
    slow.send(b"x", false);
    assert_eq!(slow.response().status, 408);
}

#[test]
fn a_client_that_reads_nothing_is_given_up() {
    let origin = Origin::start(|request, stream| {
        if request.is_own() {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .is_ok();
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        let piece = vec![b'x'; 1_000_000];
        while stream.write_all(&piece).is_ok() {}
        false
    });
    let gate = Setup::before(origin.address)
        .settings("limits: { stall: 500ms }")
        .start();
    let mut greedy = gate.connect();
    greedy.send(GET);
    gate.wait_for_metric("crawlgate_connections{state=\"active\"}", 1.0);
    gate.wait_for_metric("crawlgate_requests_in_flight", 1.0);
    gate.wait_for_metric("crawlgate_connections{state=\"active\"}", 0.0);
    gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
    gate.wait_for_metric(&closed("stall"), 1.0);
}

#[test]
fn exhausted_descriptors_are_survived() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .under(&["sh", "-c", "ulimit -n 100; exec \"$0\" \"$@\""])
        .start();
    gate.log.wait_for(" 100 files");
    let open: Vec<Connection> = (0..200).map(|_| gate.connect()).collect();
    gate.log.wait_for("count=1");
    drop(open);
    // The admin listener has descriptors again, too.
    eventually("an answer", || {
        (gate.get(HOST, "/", "").status == 200).then_some(())
    });
    assert!(
        !gate
            .metrics()
            .contains("crawlgate_connections_closed_total{reason=\"accept\"} 0\n"),
        "{}",
        gate.metrics()
    );
}

/// An origin whose answers never end before the client does.
fn endless() -> Origin {
    Origin::start(|request, stream| {
        if request.is_own() || request.target() == "/small" {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .is_ok();
        }
        let began = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while began.is_ok() && stream.write_all(&[b'x'; 65_536]).is_ok() {}
        false
    })
}

const BUFFERS: &str = "crawlgate_buffers_bytes";

fn value(gate: &Gate, series: &str) -> f64 {
    let metrics = gate.metrics();
    metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
        .unwrap_or_default()
}

#[test]
fn http2_client_that_reads_nothing_keeps_its_share() {
    const SHARE: f64 = 4.0 * 1_048_576.0;
    let origin = endless();
    let gate = Setup::before(origin.address)
        .settings("limits: { buffers_per_address: 4MiB }")
        .start();
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut connection = gate.connect();
        connection.send_bytes(PREFACE);
        connection.send_bytes(&SETTINGS);
        for stream in 0..20 {
            // :method GET, :scheme http, :path /, :authority a
            connection.send_headers(2 * stream + 1, b"\x82\x86\x84\x41\x01a");
        }
        open.push(connection);
    }
    // Each response may come to 160 KiB and each request has 24 KiB, so that no more than 22 go on.
    eventually("all but a few are refused", || {
        (value(&gate, &rejected("buffers")) >= 78.0).then_some(())
    });
    assert!(
        value(&gate, BUFFERS) >= 704.0 * 1_024.0,
        "{}",
        value(&gate, BUFFERS)
    );
    assert!(value(&gate, BUFFERS) <= SHARE, "{}", value(&gate, BUFFERS));
    gate.log.wait_for("limits.buffers_per_address");
    // What is small needs no share.
    assert_eq!(gate.get(HOST, "/small", "").status, 404);
    drop(open);
    gate.wait_for_metric(BUFFERS, 0.0);
    gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
}

#[test]
fn one_response_more_than_the_buffers_hold_is_503_on_both_ways() {
    let origin = endless();
    let gate = Setup::before(origin.address)
        .settings("limits: { buffers: 4MiB }\nlogs: { access: access.log }")
        .start();
    for (version, most, each) in [("1.0", 3, 1_048_576 + 65_536), ("1.1", 25, 163_840)] {
        let request = format!("GET / HTTP/{version}\r\nHost: {HOST}\r\n\r\n");
        let open: Vec<Connection> = (0..most)
            .map(|_| {
                let mut connection = gate.connect();
                connection.send(&request);
                connection
            })
            .collect();
        gate.wait_for_metric(BUFFERS, f64::from(most * each));
        let mut one_more = gate.connect();
        one_more.send(&request);
        let answer = one_more.response("GET");
        assert_eq!(
            (answer.status, answer.field("retry-after")),
            (503, Some("10")),
            "{version}"
        );
        drop(open);
        gate.wait_for_metric(BUFFERS, 0.0);
    }
    gate.wait_for_metric(&rejected("buffers"), 2.0);
    eventually("two lines of refusals", || {
        (read(&gate.path("access.log"))
            .matches("\"status\":503")
            .count()
            == 2)
            .then_some(())
    });
    assert_eq!(
        read(&gate.path("access.log"))
            .matches("\"error\":\"buffers\"")
            .count(),
        2
    );
    assert!(
        !gate.metrics().contains("crawlgate_upstream_failures_total"),
        "the origin has answered"
    );
}

#[test]
fn clients_behind_a_trusted_proxy_have_a_share_each() {
    let origin = endless();
    let settings = "limits: { buffers_per_address: 300KiB }\ntrusted_proxies: 127.0.0.1";
    let request = |field: &str| format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n{field}\r\n");
    let forwarded = |client: &str| request(&format!("X-Forwarded-For: 203.0.113.9, {client}\r\n"));
    let announced =
        |client: &str| format!("PROXY TCP4 {client} 192.0.2.1 4000 80\r\n{}", request(""));
    let by_field = (
        Setup::before(origin.address).settings(settings),
        [
            forwarded("198.51.100.1"),
            forwarded("198.51.100.2"),
            request(""),
        ],
    );
    let by_header = (
        Setup::before(origin.address)
            .settings(settings)
            .listeners("{ address: 127.0.0.1:0, proxy_protocol: yes }"),
        [
            announced("198.51.100.1"),
            announced("198.51.100.2"),
            format!("PROXY UNKNOWN\r\n{}", request("")),
        ],
    );
    for (setup, [one, other, nobody]) in [by_field, by_header] {
        let gate = setup.start();
        let begin = |request: &String| {
            let mut connection = gate.connect();
            connection.send(request);
            connection
        };
        // A request that names no client is one of the proxy, as its health checks are. The proxy
        // has no share of its own.
        let _open = [&one, &other, &nobody, &nobody].map(begin);
        gate.wait_for_metric(BUFFERS, f64::from(4 * 163_840));
        assert_eq!(begin(&one).response("GET").status, 503);
        gate.wait_for_metric(&rejected("buffers"), 1.0);
    }
}
