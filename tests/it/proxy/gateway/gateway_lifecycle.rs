//! The life of the process: starting, stopping, signals.

use crate::proxy::support::{Http2, Origin, PATIENCE, Setup, eventually};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An origin that answers when it is told to, and says when it was asked.
fn held() -> (Origin, Receiver<()>, Sender<()>) {
    let (asked, was_asked) = channel();
    let (answer, may_answer) = channel::<()>();
    let may_answer = Arc::new(Mutex::new(may_answer));
    let origin = Origin::start(move |request, stream| {
        if request.is_own() {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .is_ok();
        }
        let _ = asked.send(());
        let _ = may_answer.lock().map(|may_answer| may_answer.recv());
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
            .is_ok()
    });
    (origin, was_asked, answer)
}

#[test]
fn connections_are_counted_by_state() {
    let (origin, was_asked, answer) = held();
    let gate = Setup::before(origin.address).start();
    let wait_for = |idle: f64, active: f64| {
        gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", idle);
        gate.wait_for_metric("crawlgate_connections{state=\"active\"}", active);
    };
    wait_for(0.0, 0.0);
    let (mut first, second) = (gate.connect(), gate.connect());
    wait_for(2.0, 0.0);
    first.send("GET /one HTTP/1.1\r\n");
    wait_for(1.0, 1.0);
    gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
    first.send("Host: a.example\r\n\r\n");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    gate.wait_for_metric("crawlgate_requests_in_flight", 1.0);
    wait_for(1.0, 1.0);
    answer.send(()).expect("the origin waits");
    assert_eq!(first.response("GET").status, 200);
    wait_for(2.0, 0.0);
    drop(second);
    wait_for(1.0, 0.0);
    let http2 = Http2::open(gate.address);
    let request = http2.begin("GET", "http://a.example/two", &[], None);
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    wait_for(1.0, 1.0);
    answer.send(()).expect("the origin waits");
    assert_eq!(request.wait().expect("a response").status, 200);
    wait_for(2.0, 0.0);
    drop((first, http2));
    wait_for(0.0, 0.0);
}

#[test]
fn a_graceful_stop_ends_with_the_last_request() {
    let (origin, was_asked, answer) = held();
    let mut gate = Setup::before(origin.address).start();
    let mut idle = gate.connect();
    idle.send("GET / HTTP/1.1\r\nHost:\r\n\r\n");
    assert_eq!(idle.response("GET").status, 400);
    let mut silent = gate.connect();
    let mut busy = gate.connect();
    busy.send("GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    gate.signal("TERM");
    // Connections without a request end at once, new ones are not taken; the request goes on.
    assert!(silent.is_closed());
    eventually("the listener is closed", || {
        TcpStream::connect(gate.address).is_err().then_some(())
    });
    assert!(gate.is_running());
    let began = Instant::now();
    answer.send(()).expect("the origin waits");
    let response = busy.response("GET");
    assert_eq!((response.status, response.text()), (200, "done"));
    assert_eq!(response.field("connection"), Some("close"));
    assert_eq!(gate.ended().code(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "it went on for {:?} after its last request",
        began.elapsed()
    );
}

#[test]
fn an_idle_process_stops_at_once() {
    let origin = Origin::plain();
    let mut gate = Setup::before(origin.address).start();
    let mut idle = gate.connect();
    idle.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(idle.response("GET").status, 200);
    let began = Instant::now();
    gate.signal("TERM");
    assert_eq!(gate.ended().code(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "it took {:?}",
        began.elapsed()
    );
    assert!(idle.is_closed());
}

#[test]
fn a_request_that_does_not_end_is_cut_off_at_the_deadline() {
    let (origin, was_asked, _answer) = held();
    let mut gate = Setup::before(origin.address)
        .settings("limits: { drain: 1s }\nlogs: { access: access.log }")
        .start();
    let mut busy = gate.connect();
    busy.send("GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    gate.signal("TERM");
    assert_eq!(gate.ended().code(), Some(0));
    let log = gate.log.at_its_end();
    let lines = log.lines().filter(|line| line.contains("limits.drain"));
    let lines: Vec<&str> = lines.collect();
    // How many requests are open when it begins to wait, and how many it cuts off.
    assert_eq!(lines.len(), 2, "{log}");
    for line in lines {
        assert!(line.contains(" 1 open request"), "{line}");
    }
    let access = std::fs::read_to_string(gate.path("access.log")).expect("the access log");
    let line: serde_json::Value = serde_json::from_str(access.trim()).expect("one line");
    assert_eq!(
        (&line["target"], &line["status"], &line["error"]),
        (&"/slow".into(), &0.into(), &"no_response".into())
    );
}

#[test]
fn a_standard_output_that_nothing_reads_holds_up_no_stop() {
    let origin = Origin::plain();
    let settings = "logs: { access: \"-\", events: \"-\" }\nlimits: { drain: 1s }";
    let mut gate = Setup::before(origin.address)
        .settings(settings)
        .unread()
        .start();
    let mut connection = gate.connect();
    // More lines than a pipe holds.
    let agent = "a".repeat(1_000);
    for _ in 0..200 {
        connection.send(&format!(
            "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: {agent}\r\n\r\n"
        ));
        assert_eq!(connection.response("GET").status, 200);
    }
    gate.signal("TERM");
    assert!(gate.ended().success());
}

#[test]
fn a_second_signal_and_an_interrupt_end_it_at_once() {
    for signals in [["TERM", "TERM"], ["TERM", "INT"]] {
        let (origin, was_asked, _answer) = held();
        let mut gate = Setup::before(origin.address).start();
        let mut busy = gate.connect();
        busy.send("GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n");
        was_asked
            .recv_timeout(PATIENCE)
            .expect("the origin is asked");
        gate.signal(signals[0]);
        gate.log.wait_for("stopping");
        gate.signal(signals[1]);
        assert_eq!(gate.ended().code(), Some(0));
    }
    let (origin, was_asked, _answer) = held();
    let mut gate = Setup::before(origin.address).start();
    let mut busy = gate.connect();
    busy.send("GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    gate.signal("INT");
    assert_eq!(gate.ended().code(), Some(0));
}

#[test]
fn a_hang_up_reads_the_policies_again_and_ends_nothing() {
    let origin = Origin::plain();
    let mut gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    connection.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(connection.response("GET").status, 200);
    gate.signal("HUP");
    gate.log.wait_for("SIGHUP");
    connection.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(connection.response("GET").status, 200);
    assert!(gate.is_running());
}

#[test]
fn a_busy_port_fails_at_once_and_says_which() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address");
    let origin = Origin::plain();
    let began = Instant::now();
    let (said, status) = Setup::before(origin.address).listen(address).fail();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains(&address.to_string()), "{said}");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "it took {:?}",
        began.elapsed()
    );
}

#[test]
fn admin_listener_serves_readiness_and_health() {
    let (origin, was_asked, answer) = held();
    let gate = Setup::before(origin.address).start();
    let ask = |path: &str| {
        let mut connection = crate::proxy::support::Connection::open(gate.admin);
        connection.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ));
        connection.response("GET").status
    };
    eventually("readiness", || (ask("/readyz") == 200).then_some(()));
    assert_eq!(ask("/healthz"), 200);
    let mut busy = gate.connect();
    busy.send("GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    gate.signal("TERM");
    // While the last request runs, whoever watches is told to send no more.
    eventually("unreadiness", || (ask("/readyz") == 503).then_some(()));
    assert_eq!(ask("/healthz"), 200);
    answer.send(()).expect("the origin waits");
    assert_eq!(busy.response("GET").status, 200);
}

#[test]
fn every_end_says_why_in_one_line() {
    for (signal, cause) in [
        ("TERM", "stopped after SIGTERM"),
        ("QUIT", "stopped after SIGQUIT"),
        ("INT", "stopped after SIGINT"),
    ] {
        let origin = Origin::plain();
        let mut gate = Setup::before(origin.address).start();
        assert_eq!(gate.fetch("/").status, 200);
        gate.signal(signal);
        gate.ended();
        let says = |gate: &crate::proxy::support::Gate| {
            gate.log
                .text()
                .lines()
                .filter(|line| line.contains(cause))
                .count()
        };
        eventually(cause, || (says(&gate) == 1).then_some(()));
    }
}
