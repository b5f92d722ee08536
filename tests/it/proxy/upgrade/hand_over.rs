//! `crawlgate upgrade`: another process serves on the same listeners, and no request fails.

use crate::proxy::support::manager::Manager;
use crate::proxy::support::upgrade::{ended, signal};
use crate::proxy::support::{
    Authority, Connection, Gate, Http2, Origin, PATIENCE, Received, Response, Setup, TlsConnection,
    eventually, read,
};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// An origin that answers `/slow` when it is told to, and says when it was asked.
fn held() -> (Origin, Receiver<()>, Sender<()>) {
    let ((asked, was_asked), (answer, may_answer)) = (channel(), channel::<()>());
    let may_answer = Arc::new(Mutex::new(may_answer));
    let origin = Origin::start(move |request: &Received, stream: &mut TcpStream| {
        if request.target() == "/slow" {
            let _ = asked.send(());
            let _ = may_answer.lock().map(|may_answer| may_answer.recv());
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
            .is_ok()
    });
    (origin, was_asked, answer)
}

fn closes(response: &Response) -> bool {
    response
        .field("connection")
        .is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

/// The id of the finding of a command that the process before still answers.
fn predecessor(gate: &Gate, command: &str) -> Value {
    let answer: Value =
        serde_json::from_slice(&gate.command(&[command, "--json"]).stdout).expect("JSON");
    answer["predecessor"]["id"].clone()
}

#[test]
fn next_process_serves_and_the_one_before_ends() {
    let (origin, manager) = (Origin::plain(), Manager::new());
    let setup = manager.runs(Setup::before(origin.address), &["WATCHDOG_USEC=400000"]);
    let mut gate = setup.replaceable().start();
    manager.wait_for("READY=1");
    assert_eq!(gate.fetch("/").status, 200);
    let said = gate.command(&["upgrade", "--json"]);
    let pid = gate.noted(&said).expect("a process that serves");
    manager.wait_for(&format!("MAINPID={pid}"));
    manager.wait_for("READY=1");
    // The variable that names the process before would keep this one from feeding the watchdog.
    manager.wait_for("WATCHDOG=1");
    assert!(gate.ended().success());
    gate.log.wait_for("predecessor=\"answered\"");
    let log = gate.log.text();
    assert!(!log.contains("crashed"), "{log}");
    assert_eq!(
        (gate.fetch("/").status, gate.admin_page("/readyz").trim()),
        (200, "ready")
    );
    assert_eq!(gate.command(&["status", "--alive"]).status.code(), Some(0));
    assert_eq!(read(&gate.path("state/lock")).trim(), pid.to_string());
    // And once more, from a process that was itself the next one.
    let said = gate.command(&["upgrade", "--json"]);
    let second = gate.noted(&said).expect("a process that serves");
    manager.wait_for(&format!("MAINPID={second}"));
    ended(pid);
    assert_eq!(gate.fetch("/").status, 200);
    signal(second, "TERM");
    ended(second);
    assert!(
        !gate.control().exists(),
        "the last process takes its socket with it"
    );
}

#[test]
fn kept_connection_gets_one_more_response() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address).policy("site", "robots: { origin: replace }\n");
    let mut gate = setup.replaceable().start();
    let mut kept = [gate.connect(), gate.connect()];
    for connection in &mut kept {
        connection.send(REQUEST);
        assert!(!closes(&connection.response("GET")));
    }
    gate.upgrade();
    assert!(gate.is_running(), "it waits for its connections");
    for command in ["status", "reload"] {
        assert_eq!(predecessor(&gate, command), "predecessor-answers");
    }
    let paused = gate.command(&["pause", "--for", "1s"]);
    assert!(
        paused.status.success() && !paused.stderr.is_empty(),
        "{paused:?}"
    );
    for connection in &mut kept {
        connection.send(REQUEST);
        let response = connection.response("GET");
        assert!(response.status == 200 && closes(&response), "{response:?}");
        assert!(connection.is_closed());
    }
    assert!(gate.ended().success());
    eventually("the process before has ended", || {
        predecessor(&gate, "status").is_null().then_some(())
    });
}

#[test]
fn silent_connection_is_answered_after_the_upgrade() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).replaceable().start();
    let mut silent = gate.connect();
    gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", 1.0);
    gate.upgrade();
    silent.send(REQUEST);
    assert_eq!(silent.response("GET").status, 200);
}

#[test]
fn requests_in_flight_end_where_they_began() {
    let (origin, was_asked, answer) = held();
    let mut gate = Setup::before(origin.address).replaceable().start();
    let mut slow = gate.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    let http2 = Http2::open(gate.address);
    let stream = http2.begin("GET", "http://a.example/slow", &[], None);
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    let mut upload = gate.connect();
    upload.send("POST /upload HTTP/1.1\r\nHost: a.example\r\nContent-Length: 8\r\n\r\nhalf");
    eventually("the upload is passed on", || {
        (gate.metrics().contains("crawlgate_requests_in_flight 3")).then_some(())
    });
    gate.upgrade();
    upload.send("half");
    assert_eq!(upload.response("POST").status, 200);
    assert_eq!(origin.last().body, b"halfhalf");
    assert!(gate.is_running());
    for _ in 0..2 {
        answer.send(()).expect("the origin waits");
    }
    let response = slow.response("GET");
    assert!(response.status == 200 && closes(&response), "{response:?}");
    assert_eq!(stream.wait().expect("a response").status, 200);
    drop(http2);
    assert!(gate.ended().success());
}

#[test]
fn kept_connection_over_http2_ends_with_goaway() {
    let origin = Origin::plain();
    let mut gate = Setup::before(origin.address).replaceable().start();
    let http2 = Http2::open(gate.address);
    assert_eq!(http2.get("a.example", "/", &[]).status, 200);
    gate.upgrade();
    assert!(http2.end().is_ok(), "the process before says goodbye");
    assert!(gate.ended().success());
    assert_eq!(
        Http2::open(gate.address).get("a.example", "/", &[]).status,
        200
    );
}

/// It is bounded by `upgrade.drain` alone, and `--now` ends it.
#[test]
fn websocket_lives_on_until_the_next_upgrade_ends_it() {
    let origin = Origin::start(|request, stream| {
        if request.field("upgrade").is_none() {
            return stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .is_ok();
        }
        let _ =
            stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        let mut bytes = [0; 4];
        while stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {}
        false
    });
    let mut gate = Setup::before(origin.address).replaceable().start();
    let mut socket = gate.connect();
    socket.send(
        "GET /ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(socket.response("GET").status, 101);
    socket.send("ping");
    assert_eq!(socket.bytes(4), b"ping");
    gate.upgrade();
    socket.send("pong");
    assert_eq!(socket.bytes(4), b"pong");
    assert!(gate.refused_upgrade(&["--unsupervised"]).contains("--now"));
    socket.send("more");
    assert_eq!(socket.bytes(4), b"more");
    let said = gate.command(&["upgrade", "--unsupervised", "--now", "--json"]);
    assert!(gate.noted(&said).is_some(), "{said:?}");
    assert!(gate.ended().success());
    assert_eq!(gate.fetch("/").status, 200);
}

#[test]
fn drain_is_bounded_by_the_settings() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address).settings("upgrade: { drain: 1s }");
    let mut gate = setup.replaceable().start();
    let mut idle = gate.connect();
    idle.send(REQUEST);
    assert_eq!(idle.response("GET").status, 200);
    gate.upgrade();
    assert!(gate.ended().success());
    assert!(idle.is_closed());
    assert!(
        gate.log.text().contains("upgrade.drain"),
        "{}",
        gate.log.text()
    );
}

#[test]
fn handshake_over_tls_and_both_versions_of_http_go_on() {
    let (origin, authority) = (Origin::plain(), Authority::new());
    let directory = tempfile::tempdir().expect("a directory");
    authority.certify(directory.path(), "a", &["a.example"], 2999);
    let (cert, key) = (
        directory.path().join("a.pem"),
        directory.path().join("a.key"),
    );
    let files = format!("{{ cert: {}, key: {} }}", cert.display(), key.display());
    let listeners = format!("[{{ address: \"127.0.0.1:0\", tls: {{ certificates: [{files}] }} }}]");
    let gate = Setup::before(origin.address)
        .listeners(&listeners)
        .replaceable()
        .start();
    let client = authority.client(&["http/1.1"], rustls::ALL_VERSIONS);
    let mut kept = TlsConnection::open(gate.address, "a.example", &client).expect("a handshake");
    // It has not begun its handshake yet.
    let waiting = TcpStream::connect(gate.address).expect("a connection");
    gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", 2.0);
    gate.upgrade();
    kept.send(REQUEST);
    assert!(
        kept.response()
            .to_ascii_lowercase()
            .contains("connection: close")
    );
    let mut waiting = TlsConnection::over(waiting, "a.example", &client).expect("a handshake");
    waiting.send(REQUEST);
    assert!(waiting.response().starts_with("HTTP/1.1 200"));
    let mut new = TlsConnection::open(gate.address, "a.example", &client).expect("a handshake");
    new.send(REQUEST);
    assert!(
        new.response()
            .to_ascii_lowercase()
            .contains("connection: keep-alive")
    );
}

#[test]
fn decision_service_and_its_socket_are_taken_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("decide.sock");
    let origin = Origin::plain();
    let decisions = format!(
        "decisions: [\"127.0.0.1:0\", \"unix:{}\"]",
        socket.display()
    );
    let mut gate = Setup::before(origin.address)
        .settings(&decisions)
        .replaceable()
        .start();
    gate.upgrade();
    assert!(gate.ended().success());
    gate.log.wait_for("predecessor=\"answered\"");
    let mut asked = Connection::open(gate.decisions[0]);
    asked.send("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    let by_address = asked.response("GET").status;
    let mut asked = UnixStream::connect(&socket).expect("the socket is there");
    asked
        .write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
        .expect("written");
    let mut answer = String::new();
    asked.read_to_string(&mut answer).expect("an answer");
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {by_address}")),
        "{by_address}: {answer}"
    );
}

#[test]
fn other_settings_bring_other_listeners() {
    let (origin, other) = (
        Origin::plain(),
        Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"),
    );
    let mut gate = Setup::before(origin.address)
        .listeners("[\"127.0.0.1:0\", \"[::1]:0\"]")
        .replaceable()
        .start();
    let (kept, gone) = (gate.listening[0], gate.listening[1]);
    let free = crate::proxy::support::program::free_address();
    gate.change_settings("\"[::1]:0\"", &format!("\"{free}\""));
    gate.change_settings(&origin.address.to_string(), &other.address.to_string());
    gate.upgrade();
    assert!(gate.ended().success());
    for address in [kept, free] {
        let mut connection = Connection::open(address);
        connection.send(REQUEST);
        assert_eq!(connection.response("GET").text(), "other");
    }
    assert!(TcpStream::connect(gone).is_err());
}

#[test]
fn both_processes_write_to_rotated_logs() {
    let (origin, was_asked, answer) = held();
    let mut gate = Setup::before(origin.address)
        .settings("logs: { access: access.log }")
        .replaceable()
        .start();
    let mut slow = gate.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    let pid = gate.upgrade();
    let (log, rotated) = (gate.path("access.log"), gate.path("access.log.1"));
    fs::rename(&log, &rotated).expect("rotated");
    signal(pid, "HUP");
    eventually("a new log", || log.exists().then_some(()));
    assert_eq!(gate.fetch("/new").status, 200);
    eventually("the process before has it open", || {
        let links = fs::read_dir(format!("/proc/{}/fd", gate.pid())).ok()?;
        let mut files = links
            .flatten()
            .filter_map(|link| fs::read_link(link.path()).ok());
        files.any(|file| file == log).then_some(())
    });
    answer.send(()).expect("the origin waits");
    assert_eq!(slow.response("GET").status, 200);
    assert!(gate.ended().success());
    eventually("both lines", || {
        (read(&log).contains("/slow") && read(&log).contains("/new")).then_some(())
    });
    assert!(!read(&rotated).contains("/slow"));
}
