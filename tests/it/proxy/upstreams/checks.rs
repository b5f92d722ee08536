//! Servers that are asked whether they are up: one that is not gets no requests until it says that
//! it is.

use crate::proxy::support::{Gate, HOST, Origin, Received, Setup, sum_of};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// In place of a status: no answer at all.
const SILENCE: u16 = 0;
/// In place of a status: the connection is closed.
const CLOSE: u16 = 1;

/// A server that answers requests, and checks with the status that it is told. A check that asks
/// for another host is none.
fn server() -> (Origin, Arc<AtomicU16>) {
    let says = Arc::new(AtomicU16::new(200));
    let said = says.clone();
    let origin = Origin::start(move |request: &Received, stream: &mut TcpStream| {
        if request.target() != "/up?deep=1" {
            return stream.write_all(OK.as_bytes()).is_ok();
        }
        let status = match said.load(Ordering::SeqCst) {
            // Until crawlgate closes the connection.
            SILENCE => return stream.read(&mut [0]).is_err(),
            CLOSE => return false,
            _ if request.field("host") != Some(HOST) => 421,
            status => status,
        };
        let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
        write!(
            stream,
            "{interim}HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n"
        )
        .is_ok()
    });
    (origin, says)
}

fn gate(servers: &[SocketAddr]) -> Gate {
    let urls: Vec<String> = servers
        .iter()
        .map(|server| format!("http://{server}"))
        .collect();
    let health = "{ path: '/up?deep=1', every: 100ms, timeout: 1s, unhealthy_after: 2, healthy_after: 2, status: [200, 204] }";
    let origins = format!(
        "origins: {{ hosts: ['*.{HOST}', {HOST}], servers: [{}], ejection: off, health: {health} }}",
        urls.join(", ")
    );
    Setup::before(servers[0])
        .without_policy_directory()
        .with_origins(&origins)
        .settings("threads: 1\nlogs: { events: events.log }")
        .start()
}

fn down(server: usize) -> String {
    format!("crawlgate_upstream_servers{{server=\"{server}\",state=\"down\"}}")
}

fn status(gate: &Gate) -> (String, Option<i32>) {
    let output = gate.command(&["status"]);
    (
        String::from_utf8(output.stdout).expect("text"),
        output.status.code(),
    )
}

#[test]
fn server_that_fails_checks_gets_no_requests_until_they_succeed() {
    let ((one, says), (other, _)) = (server(), server());
    let gate = gate(&[one.address, other.address]);
    let requests = || (0..6).for_each(|_| assert_eq!(gate.get(HOST, "/", "").status, 200));
    for (said, why) in [
        (503, "status 503"),
        (SILENCE, "timeout"),
        (301, "status 301"),
        (CLOSE, "read"),
    ] {
        says.store(said, Ordering::SeqCst);
        gate.wait_for_metric(&down(1), 1.0);
        let before = one.received().len();
        requests();
        assert!(gate.command(&["reload"]).status.success());
        requests();
        assert_eq!(one.received().len(), before, "{why}");
        let (shown, code) = status(&gate);
        assert!(
            shown.contains(&format!("{} since ", one.address)),
            "{shown}"
        );
        assert!(shown.contains(&format!(": {why})")), "{shown}");
        assert_eq!(code, Some(1), "an operator has to look: {shown}");
        assert!(gate.admin_page("/health").contains(&format!(": {why}")));
        says.store(204, Ordering::SeqCst);
        gate.wait_for_metric(&down(1), 0.0);
        requests();
        assert_eq!(one.received().len(), before + 3, "{why}");
    }
    let (shown, code) = status(&gate);
    assert_eq!(code, Some(0), "{shown}");
    let metrics = gate.metrics();
    let checks = |labels: &str| {
        sum_of(
            &metrics,
            &format!("crawlgate_upstream_checks_total{{{labels}}}"),
        )
    };
    // A busy machine may let another check of each kind time out.
    assert!(
        checks("server=\"1\",result=\"status\"") >= Some(2.0)
            && checks("server=\"1\",result=\"read\"") >= Some(1.0)
    );
    assert!(checks("server=\"2\",result=\"ok\"") >= Some(2.0));
    assert_eq!(
        sum_of(&metrics, "crawlgate_upstream_requests_total{server=\"1\"}"),
        Some(12.0),
        "of clients alone"
    );
}

#[test]
fn server_that_is_down_at_the_start_gets_no_request() {
    let ((one, says), (other, _)) = (server(), server());
    says.store(503, Ordering::SeqCst);
    let gate = gate(&[one.address, other.address]);
    for _ in 0..6 {
        assert_eq!(gate.get(HOST, "/", "").status, 200);
    }
    assert_eq!(
        sum_of(
            &gate.metrics(),
            "crawlgate_upstream_requests_total{server=\"1\"}"
        )
        .unwrap_or_default(),
        0.0
    );
}

#[test]
fn servers_are_all_tried_where_all_are_down() {
    let (one, says) = server();
    let nowhere = Origin::nowhere();
    let gate = gate(&[nowhere, one.address]);
    gate.wait_for_metric(&down(1), 1.0);
    says.store(404, Ordering::SeqCst);
    gate.wait_for_metric(&down(2), 1.0);
    for _ in 0..4 {
        assert_eq!(gate.get(HOST, "/", "").status, 200);
    }
    let (shown, _) = status(&gate);
    assert!(
        shown.contains("connect refused") && shown.contains("status 404"),
        "{shown}"
    );
    says.store(200, Ordering::SeqCst);
    gate.wait_for_metric(&down(2), 0.0);
    gate.log.wait_for("the health check of the server fails");
    gate.log.wait_for("the server answers again");
}
