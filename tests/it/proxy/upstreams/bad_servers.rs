//! A server that misbehaves beside one that does not, on both ways: what the client gets, and that nothing is sent twice
//! that may not be.

use crate::proxy::support::{Gate, HOST, Origin, PATIENCE, Received, Setup, eventually, sum_of};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const WAYS: [&str; 2] = ["on", "off"];

/// Before these servers. The first one gets the first request.
fn gate(lane: &str, servers: &[SocketAddr], rules: &str) -> Gate {
    let urls: Vec<String> = servers.iter().map(|server| format!("http://{server}")).collect();
    let origins = format!("origins: {{ servers: [{}], timeouts: {{ read: 300ms }}, {rules} }}", urls.join(", "));
    let settings = format!("lane: {lane}\nthreads: 1\nlogs: {{ events: events.log }}");
    Setup::before(servers[0]).with_origins(&origins).settings(&settings).start()
}

/// The status of one request.
fn status(gate: &Gate, method: &str) -> u16 {
    let body = if method == "POST" { "Content-Length: 3\r\n\r\nabc" } else { "\r\n" };
    let mut connection = gate.connect();
    connection.send(&format!("{method} / HTTP/1.1\r\nHost: {HOST}\r\n{body}"));
    connection.final_response(method).status
}

/// Says something in place of a response. The connection goes on if `answer` says so.
fn bad(answer: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static) -> Origin {
    Origin::start(move |request: &Received, stream: &mut TcpStream| match request.is_own() {
        true => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").is_ok(),
        false => answer(stream),
    })
}

fn byte_by_byte(stream: &mut TcpStream) -> bool {
    stream.set_nodelay(true).is_ok() && OK.as_bytes().iter().all(|octet| stream.write_all(&[*octet]).is_ok())
}

fn hundred_twice(stream: &mut TcpStream) -> bool {
    let hundred = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    stream.write_all(hundred).is_ok() && stream.write_all(OK.as_bytes()).is_ok()
}

#[test]
fn bad_answers_cost_no_request_that_may_be_sent_twice() {
    type Answer = fn(&mut TcpStream) -> bool;
    let cases: [(&str, Answer, [u16; 2], [usize; 2]); 6] = [
        ("garbage", |stream| stream.write_all(b"SSH-2.0-x\r\n\r\n").is_ok(), [502, 502], [0, 0]),
        ("half a head", |stream| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").is_err(), [502, 502], [0, 0]),
        ("a close before the head", |_| false, [200, 502], [1, 0]),
        ("a head byte by byte", byte_by_byte, [200, 200], [0, 0]),
        ("100 twice", hundred_twice, [200, 200], [0, 0]),
        // Until crawlgate closes the connection.
        ("silence", |stream| stream.read(&mut [0]).is_err(), [504, 504], [0, 0]),
    ];
    for lane in WAYS {
        for (name, answer, statuses, repeated) in cases {
            for (method, (expected, repeated)) in ["GET", "POST"].into_iter().zip(statuses.into_iter().zip(repeated)) {
                let (bad, good) = (bad(answer), Origin::saying(OK));
                let gate = gate(lane, &[bad.address, good.address], "ejection: off");
                assert_eq!(status(&gate, method), expected, "{name}, {method}, lane: {lane}");
                assert_eq!(good.received().len(), repeated, "{name}, {method}, lane: {lane}");
                assert_eq!(bad.received().len(), 1, "{name}, {method}, lane: {lane}");
            }
        }
    }
}

#[test]
fn refused_connection_costs_no_request_at_all() {
    for lane in WAYS {
        let good = Origin::saying(OK);
        let gate = gate(lane, &[Origin::nowhere(), good.address], "ejection: off");
        for method in ["GET", "POST", "GET", "DELETE"] {
            assert_eq!(status(&gate, method), 200, "{method}, lane: {lane}");
        }
        let retries = "crawlgate_upstream_retries_total{reason=\"connect_refused\"}";
        assert!(sum_of(&gate.metrics(), retries) >= Some(2.0), "lane: {lane}");
    }
}

#[test]
fn broken_body_is_not_asked_for_again() {
    for lane in WAYS {
        let bad = bad(|stream| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort").is_err());
        let good = Origin::saying(OK);
        let gate = gate(lane, &[bad.address, good.address], "ejection: off");
        let mut stream = TcpStream::connect(gate.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).expect("a request");
        let mut seen = Vec::new();
        let _ = stream.read_to_end(&mut seen);
        let seen = String::from_utf8_lossy(&seen);
        // Pingora may drop what came before the break.
        assert!(lane == "off" || seen.starts_with("HTTP/1.1 200 ") && seen.ends_with("short"), "lane: {lane}: {seen}");
        assert!(!seen.ends_with("ok"), "lane: {lane}: {seen}");
        assert_eq!(good.received().len(), 0, "lane: {lane}");
    }
}

#[test]
fn kept_connections_that_close_cost_no_get() {
    for lane in WAYS {
        let count = AtomicUsize::new(0);
        // Every third response is the last of its connection, and does not say so.
        let origin = bad(move |stream| {
            stream.write_all(OK.as_bytes()).is_ok() && !count.fetch_add(1, Ordering::SeqCst).is_multiple_of(3)
        });
        let gate = gate(lane, &[origin.address], "");
        let mut connection = gate.connect();
        for request in 0..30 {
            connection.send(&format!("GET /{request} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
            assert_eq!(connection.response("GET").status, 200, "{request}, lane: {lane}");
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
        let mortal = Mortal { address, is_alive: Arc::default(), open: Arc::default() };
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
                open.lock().expect("nobody panics while writing").push(stream.try_clone().expect("a second handle"));
                thread::spawn(move || answer_each(stream));
            }
        });
    }

    fn kill(&self) {
        self.is_alive.store(false, Ordering::SeqCst);
        // The listener ends with the next connection.
        let _ = TcpStream::connect(self.address);
        for stream in self.open.lock().expect("nobody panics while writing").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        eventually("the server is gone", || TcpStream::connect(self.address).is_err().then_some(()));
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
    for lane in WAYS {
        let (mortal, other) = (Mortal::born(), Mortal::born());
        let gate = gate(lane, &[mortal.address, other.address], "ejection: { for: 1s }");
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
            assert_eq!(failed, 0, "of {} requests, lane: {lane}", statuses.len());
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
    assert_eq!(value("crawlgate_upstream_ejections_total{origin=\"*\",server=\"1\"}"), Some(1.0));
    assert_eq!(value("crawlgate_upstream_servers{server=\"1\",state=\"up\"}"), Some(0.0));
    assert_eq!(value("crawlgate_upstream_servers{server=\"2\",state=\"up\"}"), Some(1.0));
    assert_eq!(value("crawlgate_upstream_in_flight"), Some(0.0));
    let shown = String::from_utf8(gate.command(&["status"]).stdout).expect("text");
    assert!(shown.contains(&format!("gets no requests: {down} since ")), "{shown}");
    assert!(gate.admin_page("/health").contains(&format!("{down} gets no requests since")));
    let events = eventually("the event", || {
        let text = std::fs::read_to_string(gate.path("events.log")).ok()?;
        text.contains("server_ejected").then_some(text)
    });
    let event: serde_json::Value = serde_json::from_str(events.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&event["server"], &event["reason"], &event["seconds"]),
        (&format!("http://{down}").into(), &"connect_refused".into(), &10.into())
    );
}
