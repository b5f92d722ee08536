//! A server that misbehaves beside one that does not, on both ways: what the client gets, and that
//! nothing is sent twice that may not be.

use crate::proxy::support::{Gate, HOST, Origin, PATIENCE, Received, Setup, eventually, sum_of};
use socket2::{Domain, Socket, Type};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const WAYS: [&str; 2] = ["on", "off"];

/// Before these servers. The first one gets the first request.
fn gate(direct: &str, servers: &[SocketAddr], rules: &str) -> Gate {
    let urls: Vec<String> = servers
        .iter()
        .map(|server| format!("http://{server}"))
        .collect();
    let origins = format!("origins: {{ servers: [{}], {rules} }}", urls.join(", "));
    let settings =
        format!("direct_forwarding: {direct}\nthreads: 1\nlogs: {{ events: events.log }}");
    Setup::before(servers[0])
        .with_origins(&origins)
        .settings(&settings)
        .start()
}

/// The status of one request.
fn status(gate: &Gate, method: &str) -> u16 {
    let body = if method == "POST" {
        "Content-Length: 3\r\n\r\nabc"
    } else {
        "\r\n"
    };
    let mut connection = gate.connect();
    connection.send(&format!("{method} / HTTP/1.1\r\nHost: {HOST}\r\n{body}"));
    connection.final_response(method).status
}

/// Says something in place of a response. The connection goes on if `answer` says so.
fn bad(answer: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static) -> Origin {
    Origin::start(
        move |request: &Received, stream: &mut TcpStream| match request.is_own() {
            true => stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .is_ok(),
            false => answer(stream),
        },
    )
}

fn byte_by_byte(stream: &mut TcpStream) -> bool {
    stream.set_nodelay(true).is_ok()
        && OK
            .as_bytes()
            .iter()
            .all(|byte| stream.write_all(&[*byte]).is_ok())
}

fn hundred_twice(stream: &mut TcpStream) -> bool {
    let hundred = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    stream.write_all(hundred).is_ok() && stream.write_all(OK.as_bytes()).is_ok()
}

/// The connection ends with a reset.
fn reset(stream: &mut TcpStream) -> bool {
    socket2::SockRef::from(&*stream)
        .set_linger(Some(Duration::ZERO))
        .expect("an open socket");
    false
}

fn half_a_head(stream: &mut TcpStream) -> bool {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").is_ok()
}

/// The connection ends, whatever was written.
fn closed_after(_: bool) -> bool {
    false
}

/// Until crawlgate closes the connection.
fn silence(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0]).is_err()
}

/// What a server does in place of a proper answer.
struct Bad {
    name: &'static str,
    answer: fn(&mut TcpStream) -> bool,
    /// What clients get for a GET and for a POST.
    statuses: [u16; 2],
    /// How often each is sent to the other server.
    repeated: [usize; 2],
    /// What is counted.
    reason: Option<&'static str>,
}

const BAD: [Bad; 9] = [
    Bad {
        name: "garbage",
        answer: |stream| stream.write_all(b"SSH-2.0-x\r\n\r\n").is_ok(),
        statuses: [502, 502],
        repeated: [0, 0],
        reason: Some("invalid_response"),
    },
    Bad {
        name: "half a head and a close",
        answer: |stream| closed_after(half_a_head(stream)),
        statuses: [502, 502],
        repeated: [0, 0],
        reason: Some("read"),
    },
    Bad {
        name: "half a head and a reset",
        answer: |stream| half_a_head(stream) && reset(stream),
        statuses: [502, 502],
        repeated: [0, 0],
        reason: Some("read"),
    },
    Bad {
        name: "half a head and silence",
        answer: |stream| half_a_head(stream) && silence(stream),
        statuses: [504, 504],
        repeated: [0, 0],
        reason: Some("read_timeout"),
    },
    Bad {
        name: "a close before the head",
        answer: |_| false,
        statuses: [200, 502],
        repeated: [1, 0],
        reason: Some("read"),
    },
    Bad {
        name: "a reset before the head",
        answer: reset,
        statuses: [200, 502],
        repeated: [1, 0],
        reason: Some("read"),
    },
    Bad {
        name: "silence",
        answer: silence,
        statuses: [504, 504],
        repeated: [0, 0],
        reason: Some("read_timeout"),
    },
    Bad {
        name: "a head byte by byte",
        answer: byte_by_byte,
        statuses: [200, 200],
        repeated: [0, 0],
        reason: None,
    },
    Bad {
        name: "100 twice",
        answer: hundred_twice,
        statuses: [200, 200],
        repeated: [0, 0],
        reason: None,
    },
];

const FAILURES: &str = "crawlgate_upstream_failures_total{server=\"1\"";

#[test]
fn bad_answers_cost_no_repeatable_request() {
    let mut found = Vec::new();
    for direct in WAYS {
        for Bad {
            name,
            answer,
            statuses,
            repeated,
            reason,
        } in BAD
        {
            for (method, (expected, repeated)) in ["GET", "POST"]
                .into_iter()
                .zip(statuses.into_iter().zip(repeated))
            {
                let (bad, good) = (bad(answer), Origin::saying(OK));
                let gate = gate(
                    direct,
                    &[bad.address, good.address],
                    &rules(reason, "ejection: off, "),
                );
                let what = format!("{name}, {method}, direct_forwarding: {direct}");
                let got = status(&gate, method);
                // One that says nothing may read the request when the client has its answer.
                eventually(&what, || (bad.received().len() == 1).then_some(()));
                if (got, good.received().len()) != (expected, repeated) {
                    found.push(format!(
                        "{what}: {got}, sent once more: {}",
                        good.received().len()
                    ));
                }
                let metrics = gate.metrics();
                let counted = reason.map_or(sum_of(&metrics, &format!("{FAILURES}}}")), |reason| {
                    sum_of(&metrics, &format!("{FAILURES},reason=\"{reason}\"}}"))
                });
                if counted != reason.map(|_| 1.0) {
                    found.push(format!("{what}: {:?}", lines_of(&metrics)));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A short time to wait for a server that says nothing. No other server is to be given up because
/// the machine is busy.
fn rules(reason: Option<&str>, rules: &str) -> String {
    let is_silent = reason == Some("read_timeout");
    format!(
        "{rules}timeouts: {{ read: {} }}",
        if is_silent { "1s" } else { "30s" }
    )
}

/// What is counted of failures.
fn lines_of(metrics: &str) -> Vec<&str> {
    metrics
        .lines()
        .filter(|line| line.starts_with("crawlgate_upstream_failures_total{"))
        .collect()
}

#[test]
fn server_with_bad_answers_is_ejected() {
    let mut found = Vec::new();
    for direct in WAYS {
        for Bad {
            name,
            answer,
            reason,
            ..
        } in BAD
        {
            let (bad, good) = (bad(answer), Origin::saying(OK));
            let gate = gate(direct, &[bad.address, good.address], &rules(reason, ""));
            // Every other one goes to the first server.
            for _ in 0..6 {
                status(&gate, "GET");
            }
            let ejected = sum_of(
                &gate.metrics(),
                "crawlgate_upstream_servers{server=\"1\",state=\"ejected\"}",
            );
            eventually(name, || (bad.received().len() == 3).then_some(()));
            let got = (ejected, status(&gate, "POST"));
            if got != (Some(if reason.is_some() { 1.0 } else { 0.0 }), 200) {
                found.push(format!("{name}, direct_forwarding: {direct}: {got:?}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn refused_connection_costs_no_request_at_all() {
    for direct in WAYS {
        let good = Origin::saying(OK);
        let gate = gate(direct, &[Origin::nowhere(), good.address], "ejection: off");
        for method in ["GET", "POST", "GET", "DELETE"] {
            assert_eq!(
                status(&gate, method),
                200,
                "{method}, direct_forwarding: {direct}"
            );
        }
        let retries = "crawlgate_upstream_retries_total{reason=\"connect_refused\"}";
        assert!(
            sum_of(&gate.metrics(), retries) >= Some(2.0),
            "direct_forwarding: {direct}"
        );
    }
}

#[test]
fn broken_body_is_counted_and_not_asked_for_again() {
    type End = fn(&mut TcpStream) -> bool;
    let ends: [(&str, End, &str); 3] = [
        ("close", |_| false, "read"),
        ("reset", reset, "read"),
        ("silence", silence, "read_timeout"),
    ];
    for direct in WAYS {
        for (name, end, reason) in ends {
            for part in [
                "Content-Length: 9\r\n\r\nshort",
                "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
            ] {
                let bad = bad(move |stream| {
                    write!(stream, "HTTP/1.1 200 OK\r\n{part}").is_ok() && end(stream)
                });
                let good = Origin::saying(OK);
                let gate = gate(
                    direct,
                    &[bad.address, good.address],
                    &rules(Some(reason), ""),
                );
                let seen = all_of(&gate);
                let what = format!("{name}, {part}, direct_forwarding: {direct}: {seen}");
                // What came before a reset may be lost, and Pingora may drop it before any break.
                let is_lost = direct == "off" || name == "reset";
                assert!(
                    is_lost || seen.starts_with("HTTP/1.1 200 ") && seen.contains("short"),
                    "{what}"
                );
                assert!(
                    !seen.ends_with("ok") && !seen.ends_with("0\r\n\r\n"),
                    "{what}"
                );
                assert_eq!(good.received().len(), 0, "{what}");
                let metrics = gate.metrics();
                let failures = sum_of(&metrics, &format!("{FAILURES},reason=\"{reason}\"}}"));
                assert_eq!(failures, Some(1.0), "{what}: {:?}", lines_of(&metrics));
                // A body that breaks off may be the fault of one page.
                assert_eq!(
                    sum_of(&metrics, "crawlgate_upstream_servers{state=\"ejected\"}"),
                    Some(0.0),
                    "{what}"
                );
            }
        }
    }
}

/// All that comes in reply to a GET, until the connection ends.
fn all_of(gate: &Gate) -> String {
    let mut stream = TcpStream::connect(gate.address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
        .write_all(format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes())
        .expect("a request");
    let mut seen = Vec::new();
    let _ = stream.read_to_end(&mut seen);
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn server_that_hangs_in_the_handshake_costs_no_request() {
    for direct in WAYS {
        let hanging = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let good = Origin::saying(OK);
        let origins = format!(
            "origins: {{ servers: ['https://{}', 'http://{}'], timeouts: {{ connect: 300ms }}, ejection: off }}",
            hanging.local_addr().expect("its address"),
            good.address
        );
        let gate = Setup::before("")
            .with_origins(&origins)
            .settings(&format!("direct_forwarding: {direct}\nthreads: 1"))
            .start();
        assert_eq!(status(&gate, "POST"), 200, "direct_forwarding: {direct}");
        assert_eq!(good.received().len(), 1, "direct_forwarding: {direct}");
        let metrics = gate.metrics();
        let failures = sum_of(&metrics, &format!("{FAILURES}}}"));
        assert_eq!(
            failures,
            Some(1.0),
            "direct_forwarding: {direct}: {:?}",
            lines_of(&metrics)
        );
    }
}

/// A server whose backlog is full, so that it takes no connection; with what fills it.
fn full() -> (SocketAddr, Vec<Socket>) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    listener
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .expect("a free port");
    listener.listen(0).expect("it listens");
    let address = listener
        .local_addr()
        .ok()
        .and_then(|address| address.as_socket())
        .expect("its address");
    let connection = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        // It is under way, or waits for a place.
        let _ = socket.connect(&address.into());
        socket
    };
    let mut sockets: Vec<Socket> = std::iter::repeat_with(connection).take(4).collect();
    sockets.push(listener);
    (address, sockets)
}

#[test]
fn each_failure_has_its_status_where_no_other_server_is() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (hanging, (full, _sockets)) = (listener.local_addr().expect("its address"), full());
    let plain = Origin::saying(OK);
    for direct in WAYS {
        for (server, timeouts, expected) in [
            (format!("http://{}", Origin::nowhere()), "{}", 502),
            (format!("https://{}", plain.address), "{}", 502),
            (format!("http://{full}"), "{ connect: 300ms }", 504),
            (format!("https://{hanging}"), "{ connect: 300ms }", 504),
            (format!("http://{hanging}"), "{ read: 300ms }", 504),
        ] {
            let origins = format!("origins: {{ servers: '{server}', timeouts: {timeouts} }}");
            let gate = Setup::before("")
                .with_origins(&origins)
                .settings(&format!("direct_forwarding: {direct}\nthreads: 1"))
                .start();
            for method in ["GET", "POST"] {
                assert_eq!(
                    status(&gate, method),
                    expected,
                    "{method}, {server}, {timeouts}, direct_forwarding: {direct}"
                );
            }
        }
    }
}

#[test]
fn kept_connections_that_close_get_no_change_twice() {
    for direct in WAYS {
        // No response says that it is the last of its connection, and each one is.
        let origin = bad(|stream| closed_after(stream.write_all(OK.as_bytes()).is_ok()));
        let gate = gate(direct, &[origin.address], "");
        for number in 0..20 {
            let mut connection = gate.connect();
            connection.send(&format!(
                "POST /{number} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 3\r\n\r\nabc"
            ));
            let status = connection.final_response("POST").status;
            assert!(
                matches!(status, 200 | 502),
                "{status}, direct_forwarding: {direct}"
            );
        }
        let mut lines: Vec<String> = origin
            .received()
            .into_iter()
            .map(|request| request.line)
            .collect();
        let all = lines.len();
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), all, "direct_forwarding: {direct}");
    }
}

#[test]
fn kept_connections_that_close_cost_no_get() {
    for direct in WAYS {
        let count = AtomicUsize::new(0);
        // Every third response is the last of its connection, and does not say so.
        let origin = bad(move |stream| {
            stream.write_all(OK.as_bytes()).is_ok()
                && !count.fetch_add(1, Ordering::SeqCst).is_multiple_of(3)
        });
        let gate = gate(direct, &[origin.address], "");
        let mut connection = gate.connect();
        for request in 0..30 {
            connection.send(&format!("GET /{request} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
            assert_eq!(
                connection.response("GET").status,
                200,
                "{request}, direct_forwarding: {direct}"
            );
        }
    }
}

#[test]
fn kept_connections_of_both_servers_that_close_cost_no_get() {
    for direct in WAYS {
        // The second request on a connection ends it without an answer.
        let once = || {
            let seen = Mutex::new(HashSet::new());
            Origin::start(move |_: &Received, stream: &mut TcpStream| {
                let peer = stream.peer_addr().expect("an open socket");
                let is_first = seen
                    .lock()
                    .expect("nobody panics while writing")
                    .insert(peer);
                is_first && stream.write_all(OK.as_bytes()).is_ok()
            })
        };
        let servers = [once(), once()];
        let gate = gate(direct, &servers.each_ref().map(|server| server.address), "");
        let mut connection = gate.connect();
        for request in 1..=3 {
            connection.send(&format!("GET /{request} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
            assert_eq!(
                connection.response("GET").status,
                200,
                "{request}, direct_forwarding: {direct}"
            );
        }
    }
}

/// A server that can be killed and brought back.
struct Mortal {
    address: SocketAddr,
    is_alive: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Mortal {
    fn born() -> Mortal {
        let address = Origin::nowhere();
        let mortal = Mortal {
            address,
            is_alive: Arc::default(),
            open: Arc::default(),
        };
        mortal.revive();
        mortal
    }

    fn revive(&self) {
        let listener = TcpListener::bind(self.address).expect("its own port");
        self.is_alive.store(true, Ordering::SeqCst);
        let (is_alive, open) = (self.is_alive.clone(), self.open.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if !is_alive.load(Ordering::SeqCst) {
                    return;
                }
                open.lock()
                    .expect("nobody panics while writing")
                    .push(stream.try_clone().expect("a second handle"));
                thread::spawn(move || answer_each(stream));
            }
        });
    }

    fn kill(&self) {
        self.is_alive.store(false, Ordering::SeqCst);
        // The listener ends with the next connection.
        let _ = TcpStream::connect(self.address);
        for stream in self
            .open
            .lock()
            .expect("nobody panics while writing")
            .drain(..)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
        eventually("the server is gone", || {
            TcpStream::connect(self.address).is_err().then_some(())
        });
    }
}

fn answer_each(stream: TcpStream) {
    let mut writer = stream.try_clone().expect("a second handle");
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.is_empty() && writer.write_all(OK.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn server_that_is_killed_under_load_costs_no_get_and_comes_back() {
    for direct in WAYS {
        let (mortal, other) = (Mortal::born(), Mortal::born());
        let gate = gate(
            direct,
            &[mortal.address, other.address],
            "ejection: { for: 1s }",
        );
        let (address, goes_on) = (gate.address, Arc::new(AtomicBool::new(true)));
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let goes_on = goes_on.clone();
                thread::spawn(move || {
                    let mut connection = crate::proxy::support::Connection::open(address);
                    let mut statuses = Vec::new();
                    while goes_on.load(Ordering::SeqCst) {
                        connection.send(&format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
                        statuses.push(connection.response("GET").status);
                    }
                    statuses
                })
            })
            .collect();
        let ejected = "crawlgate_upstream_servers{server=\"1\",state=\"ejected\"}";
        for _ in 0..2 {
            mortal.kill();
            gate.wait_for_metric(ejected, 1.0);
            mortal.revive();
            gate.wait_for_metric(ejected, 0.0);
        }
        goes_on.store(false, Ordering::SeqCst);
        for client in clients {
            let statuses = client.join().expect("a client");
            let failed = statuses.iter().filter(|status| **status != 200).count();
            assert_eq!(
                failed,
                0,
                "of {} requests, direct_forwarding: {direct}",
                statuses.len()
            );
        }
    }
}

#[test]
fn ejection_is_seen_in_status_metrics_and_events() {
    let good = Origin::saying(OK);
    let down = Origin::nowhere();
    let gate = gate("on", &[down, good.address], "");
    for _ in 0..8 {
        assert_eq!(status(&gate, "GET"), 200);
    }
    let metrics = gate.metrics();
    let value = |series: &str| sum_of(&metrics, series);
    assert_eq!(
        value("crawlgate_upstream_servers{origin=\"*\",server=\"1\",state=\"ejected\"}"),
        Some(1.0)
    );
    assert_eq!(
        value("crawlgate_upstream_servers{server=\"1\",state=\"up\"}"),
        Some(0.0)
    );
    assert_eq!(
        value("crawlgate_upstream_servers{server=\"2\",state=\"up\"}"),
        Some(1.0)
    );
    assert_eq!(value("crawlgate_upstream_in_flight"), Some(0.0));
    let shown = String::from_utf8(gate.command(&["status"]).stdout).expect("text");
    assert!(shown.contains(&format!("{down} since ")), "{shown}");
    assert!(gate.admin_page("/health").contains(&down.to_string()));
    gate.log.wait_for("it gets no requests for 10s");
}
