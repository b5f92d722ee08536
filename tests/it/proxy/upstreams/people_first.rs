//! People before crawlers: who gets a place at a server that takes few requests at once, and that
//! nobody is accused who was turned away.

use crate::proxy::edge::streams::{NO_WINDOW, WINDOWS, asking};
use crate::proxy::support::http2::{DATA, HEADERS};
use crate::proxy::support::{
    BROWSER, Connection, GPTBOT, Gate, HOST, Http2, Origin, PATIENCE, Setup, eventually, sum_of,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const CLAUDEBOT: &str = "ClaudeBot/1.0";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const POLICY: &str = r#"
hosts: [site.test]
robots: { origin: replace, groups: [{ agents: ["*"], disallow: [/cart/], crawl_delay: 10s }] }
enforcement: { mode: enforce, behind_cache: no }
"#;

/// An origin that answers a request when it is told to.
fn patient() -> (Origin, Sender<()>) {
    let (go_on, wait): (Sender<()>, Receiver<()>) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let origin = Origin::start(move |request, stream| {
        if !request.is_own() {
            let _ = wait
                .lock()
                .expect("nobody panics while waiting")
                .recv_timeout(PATIENCE);
        }
        stream.write_all(OK).is_ok()
    });
    (origin, go_on)
}

fn before(origin: &Origin, direct: &str, bound: &str) -> Gate {
    let origins = format!("origins: {{ servers: http://{}, {bound} }}", origin.address);
    let settings = format!(
        "direct_forwarding: {direct}\nthreads: 1\nlogs: {{ access: access.log, events: events.log }}"
    );
    Setup::before(origin.address)
        .with_origins(&origins)
        .policy("site", POLICY)
        .settings(&settings)
        .start()
}

/// Sends a request and does not wait for its answer.
fn ask(gate: &Gate, agent: &str, target: &str) -> Connection {
    let mut connection = gate.connect();
    connection.send(&format!(
        "GET {target} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {agent}\r\n\r\n"
    ));
    connection
}

/// Waits until the origin has been asked so often.
fn arrived(origin: &Origin, requests: usize) {
    eventually("requests at the origin", || {
        (origin.received().len() == requests).then_some(())
    });
}

#[test]
fn crawler_without_a_place_is_turned_away_and_not_accused() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let gate = before(&origin, direct, "connections: 2, crawlers: 1");
        // The crawl delay holds for a client that was served it.
        assert_eq!(gate.fetch_as(CLAUDEBOT, "/robots.txt").status, 200);
        gate.wait_for_metric(
            "crawlgate_robots_txt_total{crawler=\"claudebot\",status=\"200\"}",
            1.0,
        );
        let mut inside = ask(&gate, "Examplebot/1.0 (+https://bots.example)", "/1");
        arrived(&origin, 1);
        let refused = ask(&gate, CLAUDEBOT, "/2").response("GET");
        assert_eq!(refused.status, 503, "direct_forwarding: {direct}");
        let seconds: u32 = refused
            .field("retry-after")
            .expect("Retry-After")
            .parse()
            .expect("seconds");
        assert!(
            (10..=20).contains(&seconds),
            "at least the crawl delay: {seconds}, direct_forwarding: {direct}"
        );
        go_on.send(()).expect("the origin waits");
        assert_eq!(
            inside.response("GET").status,
            200,
            "direct_forwarding: {direct}"
        );
        // It comes back at once, and is in time: the other request did not count.
        let mut second = ask(&gate, CLAUDEBOT, "/2");
        arrived(&origin, 2);
        go_on.send(()).expect("the origin waits");
        assert_eq!(
            second.response("GET").status,
            200,
            "direct_forwarding: {direct}"
        );
        let metrics = gate.metrics();
        assert_eq!(
            sum_of(&metrics, "crawlgate_violations_total"),
            None,
            "direct_forwarding: {direct}"
        );
        let turned_away = "crawlgate_turned_away_total{reason=\"turned_away\"}";
        assert_eq!(
            sum_of(&metrics, turned_away),
            Some(1.0),
            "direct_forwarding: {direct}"
        );
        let log = eventually("two lines", || {
            let text = std::fs::read_to_string(gate.path("access.log")).ok()?;
            (text.matches("\"target\":\"/2\"").count() == 2).then_some(text)
        });
        let line = log
            .lines()
            .find(|line| line.contains("\"status\":503"))
            .expect("its line");
        assert!(
            line.contains("\"error\":\"turned_away\"") && line.contains("\"kind\":\"allowed\""),
            "{line}"
        );
        // Now it comes too soon.
        assert_eq!(
            ask(&gate, CLAUDEBOT, "/3").response("GET").status,
            429,
            "direct_forwarding: {direct}"
        );
    }
}

#[test]
fn people_wait_for_a_place_and_crawlers_stay_out_meanwhile() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let gate = before(
            &origin,
            direct,
            "connections: 1, crawlers: 1, queue: { wait: 60s }",
        );
        let mut inside = ask(&gate, BROWSER, "/1");
        arrived(&origin, 1);
        let mut waiting = ask(&gate, BROWSER, "/2");
        gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
        assert_eq!(
            ask(&gate, GPTBOT, "/3").response("GET").status,
            503,
            "direct_forwarding: {direct}"
        );
        assert_eq!(
            gate.fetch_as(GPTBOT, "/robots.txt").status,
            200,
            "robots.txt is never refused, direct_forwarding: {direct}"
        );
        // A challenge waits like a visitor, whatever its user agent says.
        let mut challenge = ask(&gate, GPTBOT, "/.well-known/acme-challenge/abc");
        gate.wait_for_metric("crawlgate_queue_waiting", 2.0);
        for (place, connection) in [(2, &mut inside), (3, &mut waiting), (3, &mut challenge)] {
            go_on.send(()).expect("the origin waits");
            assert_eq!(
                connection.response("GET").status,
                200,
                "direct_forwarding: {direct}"
            );
            arrived(&origin, place);
        }
        gate.wait_for_metric("crawlgate_queue_waiting", 0.0);
    }
}

#[test]
fn person_who_leaves_leaves_the_queue() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let gate = before(&origin, direct, "connections: 1, queue: { wait: 60s }");
        let mut inside = ask(&gate, BROWSER, "/1");
        arrived(&origin, 1);
        let waiting = ask(&gate, BROWSER, "/2");
        gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
        drop(waiting);
        gate.wait_for_metric("crawlgate_queue_waiting", 0.0);
        go_on.send(()).expect("the origin waits");
        assert_eq!(
            inside.response("GET").status,
            200,
            "direct_forwarding: {direct}"
        );
        assert_eq!(
            origin.received().len(),
            1,
            "the second request was never sent, direct_forwarding: {direct}"
        );
    }
}

#[test]
fn wait_that_is_too_long_ends_with_503_for_a_person() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let gate = before(
            &origin,
            direct,
            "connections: 1, queue: { length: 1, wait: 200ms }",
        );
        let mut inside = ask(&gate, BROWSER, "/1");
        arrived(&origin, 1);
        let response = gate.fetch("/2");
        assert_eq!(
            (response.status, response.field("retry-after")),
            (503, Some("1")),
            "direct_forwarding: {direct}"
        );
        go_on.send(()).expect("the origin waits");
        assert_eq!(
            inside.response("GET").status,
            200,
            "direct_forwarding: {direct}"
        );
        let timed_out = "crawlgate_turned_away_total{reason=\"queue_timeout\"}";
        assert_eq!(
            sum_of(&gate.metrics(), timed_out),
            Some(1.0),
            "direct_forwarding: {direct}"
        );
    }
}

#[test]
fn full_queue_ends_with_503_at_once() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let gate = before(
            &origin,
            direct,
            "connections: 1, queue: { length: 1, wait: 60s }",
        );
        let mut inside = ask(&gate, BROWSER, "/1");
        arrived(&origin, 1);
        let mut waiting = ask(&gate, BROWSER, "/2");
        gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
        let response = gate.fetch("/3");
        assert_eq!(
            (response.status, response.field("retry-after")),
            (503, Some("60")),
            "direct_forwarding: {direct}"
        );
        let full = "crawlgate_turned_away_total{reason=\"queue_full\"}";
        assert_eq!(
            sum_of(&gate.metrics(), full),
            Some(1.0),
            "direct_forwarding: {direct}"
        );
        for (connection, requests) in [(&mut inside, 2), (&mut waiting, 2)] {
            go_on.send(()).expect("the origin waits");
            assert_eq!(
                connection.response("GET").status,
                200,
                "direct_forwarding: {direct}"
            );
            arrived(&origin, requests);
        }
    }
}

#[test]
fn one_address_has_a_quarter_of_the_places() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let origins = format!(
            "origins: {{ servers: http://{}, connections: 8, queue: {{ wait: 60s }} }}",
            origin.address
        );
        let settings = format!("direct_forwarding: {direct}\ntrusted_proxies: [127.0.0.1]");
        let gate = Setup::before("")
            .with_origins(&origins)
            .settings(&settings)
            .start();
        let ask = |address: &str| {
            let mut connection = gate.connect();
            let from = format!("User-Agent: {BROWSER}\r\nX-Forwarded-For: {address}");
            connection.send(&format!(
                "GET /{address} HTTP/1.1\r\nHost: {HOST}\r\n{from}\r\n\r\n"
            ));
            connection
        };
        let _inside = ["192.0.2.1"; 2].map(ask);
        arrived(&origin, 2);
        let mut third = ask("192.0.2.1");
        gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
        let _other = ask("192.0.2.2");
        arrived(&origin, 3);
        go_on.send(()).expect("the origin waits");
        eventually("a place for the third request", || {
            (origin.received().len() == 4).then_some(())
        });
        drop(go_on);
        assert_eq!(
            third.response("GET").status,
            200,
            "direct_forwarding: {direct}"
        );
    }
}

#[test]
fn verified_crawler_of_the_list_waits_like_a_person() {
    const PROVEN: &str = "hosts: [site.test]\ncrawlers: [{ token: Googlebot, networks: [127.0.0.1/32] }]\nrobots: { origin: replace }\n";
    for direct in ["on", "off"] {
        for (exempt, status) in [("", 503), (", exempt: [Googlebot]", 200)] {
            let (origin, go_on) = patient();
            let bound = format!("connections: 1, queue: {{ wait: 60s }}{exempt}");
            let origins = format!("origins: {{ servers: http://{}, {bound} }}", origin.address);
            let settings = format!("direct_forwarding: {direct}\nthreads: 1");
            let setup = Setup::before("")
                .with_origins(&origins)
                .policy("site", PROVEN)
                .settings(&settings);
            let gate = setup.start();
            let mut inside = ask(&gate, BROWSER, "/1");
            arrived(&origin, 1);
            let mut crawler = ask(
                &gate,
                "Googlebot/2.1 (+http://www.google.com/bot.html)",
                "/2",
            );
            if status == 200 {
                gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
            } else {
                assert_eq!(
                    crawler.response("GET").status,
                    status,
                    "direct_forwarding: {direct}"
                );
            }
            go_on.send(()).expect("the origin waits");
            assert_eq!(
                inside.response("GET").status,
                200,
                "direct_forwarding: {direct}"
            );
            if status == 200 {
                arrived(&origin, 2);
                go_on.send(()).expect("the origin waits");
                assert_eq!(
                    crawler.response("GET").status,
                    status,
                    "direct_forwarding: {direct}"
                );
            }
        }
    }
}

#[test]
fn reset_http2_stream_leaves_the_queue() {
    let (origin, go_on) = patient();
    let gate = before(&origin, "on", "connections: 1, queue: { wait: 60s }");
    let mut inside = ask(&gate, BROWSER, "/1");
    arrived(&origin, 1);
    let http2 = Http2::open(gate.address);
    let uri = |target: &str| format!("http://{HOST}{target}");
    let waiting = http2.begin("GET", &uri("/2"), &[("user-agent", BROWSER)], None);
    gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
    let mut upload = http2.upload(HOST, "/3", &[("user-agent", BROWSER)]);
    upload.send(b"abc", true);
    gate.wait_for_metric("crawlgate_queue_waiting", 2.0);
    upload.reset();
    gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
    let crawler = http2.get(HOST, "/4", &[("user-agent", GPTBOT)]);
    assert!(
        crawler.status == 503 && crawler.field("retry-after").is_some(),
        "{}",
        crawler.status
    );
    go_on.send(()).expect("the origin waits");
    assert_eq!(inside.response("GET").status, 200);
    arrived(&origin, 2);
    go_on.send(()).expect("the origin waits");
    assert_eq!(waiting.wait().expect("a response").status, 200);
    assert_eq!(
        origin.received().len(),
        2,
        "the request that was reset was never sent"
    );
}

#[test]
fn stream_of_events_gives_its_place_back_when_it_has_begun() {
    for direct in ["on", "off"] {
        let (hold, held) = channel::<()>();
        let held = Mutex::new(held);
        let origin = Origin::start(move |request, stream| {
            if request.target() == "/events" {
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\ndata: 1\n\n";
                let _ = stream.write_all(head);
                let _ = held
                    .lock()
                    .expect("nobody panics while waiting")
                    .recv_timeout(PATIENCE);
                return false;
            }
            stream.write_all(OK).is_ok()
        });
        let gate = before(&origin, direct, "connections: 1");
        let mut events = ask(&gate, BROWSER, "/events");
        assert_eq!(events.head().status, 200, "direct_forwarding: {direct}");
        assert_eq!(gate.fetch("/").status, 200, "direct_forwarding: {direct}");
        drop(hold);
    }
}

#[test]
fn websocket_gives_its_place_back_when_it_has_begun() {
    let (hold, held) = channel::<()>();
    let held = Mutex::new(held);
    let origin = Origin::start(move |request, stream| {
        if request.target() == "/socket" {
            let head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
            let _ = stream.write_all(head);
            let _ = held
                .lock()
                .expect("nobody panics while waiting")
                .recv_timeout(PATIENCE);
            return false;
        }
        stream.write_all(OK).is_ok()
    });
    let gate = before(&origin, "on", "connections: 1");
    let mut socket = gate.connect();
    socket.send(&format!(
        "GET /socket HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {BROWSER}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    ));
    assert_eq!(socket.head().status, 101);
    assert_eq!(gate.fetch("/").status, 200);
    drop(hold);
}

/// The head of a POST whose body is framed by this field.
fn post(version: &str, fields: &str) -> String {
    format!("POST /1 HTTP/{version}\r\nHost: {HOST}\r\nUser-Agent: {BROWSER}\r\n{fields}\r\n\r\n")
}

#[test]
fn request_takes_no_place_before_its_body_is_there() {
    for (direct, version, framing, first, rest) in [
        ("on", "1.1", "Content-Length: 3", "a", "bc"),
        (
            "on",
            "1.1",
            "Transfer-Encoding: chunked",
            "1\r\na\r\n",
            "2\r\nbc\r\n0\r\n\r\n",
        ),
        ("on", "1.0", "Content-Length: 3", "a", "bc"),
        ("off", "1.1", "Content-Length: 3", "a", "bc"),
        (
            "off",
            "1.1",
            "Transfer-Encoding: chunked",
            "1\r\na\r\n",
            "2\r\nbc\r\n0\r\n\r\n",
        ),
    ] {
        let (origin, go_on) = patient();
        let gate = before(&origin, direct, "connections: 1, queue: { wait: 60s }");
        let mut upload = gate.connect();
        upload.send(&format!("{}{first}", post(version, framing)));
        let mut left = gate.connect();
        left.send(&post(version, framing));
        gate.wait_for_metric("crawlgate_requests_in_flight", 2.0);
        let mut person = ask(&gate, BROWSER, "/2");
        arrived(&origin, 1);
        go_on.send(()).expect("the origin waits");
        assert_eq!(
            person.response("GET").status,
            200,
            "{direct} {version} {framing}"
        );
        drop(left);
        gate.wait_for_metric("crawlgate_requests_in_flight", 1.0);
        upload.send(rest);
        arrived(&origin, 2);
        assert_eq!(origin.last().body, b"abc", "{direct} {version} {framing}");
        go_on.send(()).expect("the origin waits");
        assert_eq!(
            upload.response("POST").status,
            200,
            "{direct} {version} {framing}"
        );
    }
}

#[test]
fn stream_takes_no_place_before_its_body_is_there() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let gate = before(&origin, direct, "connections: 1, queue: { wait: 60s }");
        let http2 = Http2::open(gate.address);
        let mut upload = http2.upload(HOST, "/1", &[("user-agent", BROWSER)]);
        upload.send(b"a", false);
        gate.wait_for_metric("crawlgate_requests_in_flight", 1.0);
        let mut person = ask(&gate, BROWSER, "/2");
        arrived(&origin, 1);
        go_on.send(()).expect("the origin waits");
        assert_eq!(
            person.response("GET").status,
            200,
            "direct_forwarding: {direct}"
        );
        upload.send(b"bc", true);
        arrived(&origin, 2);
        assert_eq!(origin.last().body, b"abc", "direct_forwarding: {direct}");
        go_on.send(()).expect("the origin waits");
        assert_eq!(upload.response().status, 200, "direct_forwarding: {direct}");
    }
}

#[test]
fn half_sent_bodies_of_a_connection_leave_each_other_room() {
    for direct in ["on", "off"] {
        let origin = Origin::plain();
        let gate = before(&origin, direct, "connections: 20, queue: { wait: 60s }");
        let http2 = Http2::open(gate.address);
        let mut uploads: Vec<_> = (0..20)
            .map(|_| http2.upload(HOST, "/1", &[("user-agent", BROWSER)]))
            .collect();
        uploads
            .iter_mut()
            .for_each(|upload| upload.send(&[b'a'; 60_000], false));
        for mut upload in uploads {
            upload.send(b"b", true);
            assert_eq!(upload.response().status, 200, "direct_forwarding: {direct}");
        }
        assert!(
            origin
                .received()
                .iter()
                .all(|request| request.body.len() == 60_001),
            "direct_forwarding: {direct}"
        );
    }
}

#[test]
fn client_that_expects_a_100_gets_it_before_it_has_a_place() {
    for direct in ["on", "off"] {
        let (origin, go_on) = patient();
        let gate = before(&origin, direct, "connections: 1, queue: { wait: 60s }");
        let mut inside = ask(&gate, BROWSER, "/2");
        arrived(&origin, 1);
        let mut upload = gate.connect();
        upload.send(&post("1.1", "Content-Length: 3\r\nExpect: 100-continue"));
        assert_eq!(
            upload.response("POST").status,
            100,
            "direct_forwarding: {direct}"
        );
        upload.send("abc");
        gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
        for (connection, method) in [(&mut inside, "GET"), (&mut upload, "POST")] {
            go_on.send(()).expect("the origin waits");
            assert_eq!(
                connection.final_response(method).status,
                200,
                "direct_forwarding: {direct}"
            );
        }
        assert_eq!(origin.last().body, b"abc", "direct_forwarding: {direct}");
    }
}

#[test]
fn upload_that_stops_gives_its_place_to_a_person_who_waits() {
    for (direct, version) in [("on", "1.1"), ("on", "1.0"), ("off", "1.1")] {
        let (origin, go_on) = patient();
        let gate = before(&origin, direct, "connections: 1, queue: { wait: 60s }");
        let mut upload = gate.connect();
        upload.send(&post(version, "Content-Length: 100000"));
        upload.send(&"a".repeat(65_536));
        gate.wait_for_metric("crawlgate_upstream_in_flight", 1.0);
        let mut person = ask(&gate, BROWSER, "/2");
        gate.wait_for_metric("crawlgate_queue_waiting", 1.0);
        arrived(&origin, 1);
        go_on.send(()).expect("the origin waits");
        assert_eq!(person.response("GET").status, 200, "{direct} {version}");
        // It goes on without a place.
        upload.send(&"a".repeat(100_000 - 65_536));
        arrived(&origin, 2);
        go_on.send(()).expect("the origin waits");
        assert_eq!(upload.response("POST").status, 200, "{direct} {version}");
    }
}

/// An origin that answers a POST before it has the body, and does not end the answer.
fn hasty() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut received = vec![0; 64 * 1024];
                let count = stream.read(&mut received).unwrap_or_default();
                let answer: &[u8] = if received.starts_with(b"POST") {
                    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"
                } else {
                    OK
                };
                let _ = stream.write_all(answer);
                while count > 0 && stream.read(&mut received).is_ok_and(|count| count > 0) {}
            });
        }
    });
    address
}

#[test]
fn upload_that_was_answered_and_stops_gives_its_place_up() {
    let origins = format!(
        "origins: {{ servers: http://{}, connections: 1, queue: {{ wait: 60s }} }}",
        hasty()
    );
    let gate = Setup::before("").with_origins(&origins).start();
    let mut upload = gate.connect();
    upload.send(&post("1.1", "Content-Length: 100000"));
    upload.send(&"a".repeat(65_536));
    gate.wait_for_metric("crawlgate_upstream_in_flight", 1.0);
    assert_eq!(gate.fetch("/2").status, 200);
}

#[test]
fn slow_request_ends_where_too_many_go_on_without_a_place() {
    let (origin, go_on) = patient();
    let gate = before(&origin, "on", "connections: 1, queue: { wait: 60s }");
    let slow = || {
        let mut upload = gate.connect();
        upload.send(&post("1.1", "Content-Length: 100000"));
        upload.send(&"a".repeat(65_536));
        gate.wait_for_metric("crawlgate_upstream_in_flight", 1.0);
        upload
    };
    let _first = slow();
    let mut person = ask(&gate, BROWSER, "/2");
    arrived(&origin, 1);
    go_on.send(()).expect("the origin waits");
    assert_eq!(person.response("GET").status, 200);
    gate.wait_for_metric("crawlgate_upstream_in_flight", 0.0);
    let mut second = slow();
    let mut person = ask(&gate, BROWSER, "/3");
    assert_eq!(second.response("POST").status, 408);
    arrived(&origin, 2);
    go_on.send(()).expect("the origin waits");
    assert_eq!(person.response("GET").status, 200);
}

#[test]
fn response_that_is_not_read_gives_its_place_to_a_person() {
    // More than sockets take.
    static LARGE: [u8; 32 << 20] = [b'x'; 32 << 20];
    let origin = Origin::start(|request, stream| {
        let body: &[u8] = if request.target() == "/large" {
            &LARGE
        } else {
            b"ok"
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).is_ok() && stream.write_all(body).is_ok()
    });
    for direct in ["on", "off"] {
        let gate = before(&origin, direct, "connections: 1, queue: { wait: 60s }");
        let mut stream = asking(&gate, &NO_WINDOW, "/2", BROWSER);
        stream.frame(HEADERS);
        assert_eq!(
            gate.fetch("/2").status,
            200,
            "direct_forwarding: {direct}, HTTP/2"
        );
        // It goes on without a place.
        stream.send_bytes(&WINDOWS);
        assert_eq!(
            stream.frame(DATA).payload,
            b"ok",
            "direct_forwarding: {direct}"
        );
        drop(stream);
        let mut unread = ask(&gate, BROWSER, "/large");
        gate.wait_for_metric("crawlgate_upstream_in_flight", 1.0);
        assert_eq!(
            gate.fetch("/2").status,
            200,
            "direct_forwarding: {direct}, HTTP/1.1"
        );
        // Another one is one too many, and ends. The first goes on.
        let _second = ask(&gate, BROWSER, "/large");
        gate.wait_for_metric("crawlgate_upstream_in_flight", 1.0);
        assert_eq!(gate.fetch("/2").status, 200, "direct_forwarding: {direct}");
        assert_eq!(
            unread.response("GET").body.len(),
            LARGE.len(),
            "direct_forwarding: {direct}"
        );
    }
}
