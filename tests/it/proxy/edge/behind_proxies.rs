//! Visitors of real proxies in front of crawlgate, beside one visitor whose requests would end the
//! connection that all of them share. No request of another visitor fails.

use super::attacks::GET;
use crate::proxy::support::http2::{HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, frame, literal};
use crate::proxy::support::program::{Program, caddy, haproxy};
use crate::proxy::support::{Connection, Gate, HOST, Origin, PATIENCE, Setup, eventually};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

const PROXIES: [fn(SocketAddr, bool) -> Program; 2] = [behind_caddy, behind_haproxy];
/// More than crawlgate allows one client: 32 malformed heads, and 100 resets in ten seconds.
const ROUNDS: usize = 120;

fn behind_caddy(gate: SocketAddr, speaks_http2: bool) -> Program {
    let scheme = if speaks_http2 { "h2c" } else { "http" };
    Program::start(|prepared| {
        let port = prepared.address.port();
        caddy(
            prepared,
            &format!("http://:{port} {{\n\treverse_proxy {scheme}://{gate}\n}}\n"),
        )
    })
}

fn behind_haproxy(gate: SocketAddr, speaks_http2: bool) -> Program {
    let protocol = if speaks_http2 { "proto h2" } else { "" };
    Program::start(|prepared| {
        let configuration = format!(
            "global\n  maxconn 500\n  nbthread 1\ndefaults\n  mode http\n  http-reuse always\n  option forwardfor\n  option abortonclose\n  \
             timeout connect 10s\n  timeout client 30s\n  timeout server 30s\n\
             listen web\n  bind {}\n  server one {gate} {protocol}\n",
            prepared.address
        );
        haproxy(prepared, &configuration)
    })
}

/// An origin that answers `/held` when it is told to, and `/never` not at all.
fn origin() -> (Origin, Sender<()>) {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let origin = Origin::start(move |request, stream| {
        match request.target() {
            "/held" => {
                let _ = released
                    .lock()
                    .expect("nobody panics while waiting")
                    .recv_timeout(PATIENCE);
            }
            "/never" => {
                let _ = stream.read(&mut [0]);
                return false;
            }
            _ => {}
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            .is_ok()
    });
    (origin, release)
}

fn gate(origin: &Origin, listener: &str) -> Gate {
    Setup::before(origin.address)
        .listeners(listener)
        .settings("trusted_proxies: 127.0.0.1")
        .start()
}

fn get(target: &[u8], fields: &[u8]) -> Vec<u8> {
    [
        b"GET ".as_slice(),
        target,
        b" HTTP/1.1\r\nHost: site.test\r\n",
        fields,
        b"\r\n",
    ]
    .concat()
}

/// One request of the visitor who disturbs, up to the beginning of its answer.
fn disturb(proxy: &Program, request: &[u8]) {
    let mut connection = Connection::open(proxy.address);
    connection.send_bytes(request);
    connection.is_closed();
}

/// Sends each of these requests again and again, beside a visitor whose request is open all the
/// time and visitors who come and go.
fn visitors_pass_beside(
    proxy: &Program,
    origin: &Origin,
    release: &Sender<()>,
    requests: &[Vec<u8>],
) {
    let count = |target: &str| {
        origin
            .received()
            .iter()
            .filter(|request| request.target() == target)
            .count()
    };
    for request in requests {
        let name = String::from_utf8_lossy(request).into_owned();
        let before = count("/held");
        let mut held = Connection::open(proxy.address);
        held.send(&format!("GET /held HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
        eventually("the held request", || {
            (count("/held") > before).then_some(())
        });
        for round in 0..ROUNDS {
            disturb(proxy, request);
            assert_eq!(
                proxy.ask("GET", HOST, "/page", "").status,
                200,
                "{name}, round {round}"
            );
        }
        release.send(()).expect("the origin waits");
        assert_eq!(held.response("GET").status, 200, "{name}");
        assert_eq!(count("/held"), before + 1, "{name}: it was not sent again");
    }
}

/// Clients that leave before they have an answer, also beside a visitor whose request is open all
/// the time.
fn visitors_pass_beside_clients_that_leave(proxy: &Program, origin: &Origin, release: &Sender<()>) {
    let count = |target: &str| {
        origin
            .received()
            .iter()
            .filter(|request| request.target() == target)
            .count()
    };
    let before = count("/held");
    let mut held = Connection::open(proxy.address);
    held.send(&format!("GET /held HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
    eventually("the held request", || {
        (count("/held") > before).then_some(())
    });
    for round in 1..=ROUNDS {
        let mut leaver = Connection::open(proxy.address);
        leaver.send(&format!("GET /never HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
        eventually("a request without an answer", || {
            (count("/never") == round).then_some(())
        });
        drop(leaver);
        assert_eq!(
            proxy.ask("GET", HOST, "/page", "").status,
            200,
            "round {round}"
        );
    }
    release.send(()).expect("the origin waits");
    assert_eq!(held.response("GET").status, 200);
    assert_eq!(count("/held"), before + 1, "it was not sent again");
}

fn websocket() -> Vec<u8> {
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    get(b"/socket", fields.as_bytes())
}

#[test]
fn no_visitor_fails_behind_a_proxy_that_speaks_http1() {
    for start in PROXIES {
        let (origin, release) = origin();
        let gate = gate(&origin, "{ address: 127.0.0.1:0, http2: no }");
        let proxy = start(gate.address, false);
        let requests = [
            get(b"/?\xff", b""),
            get(b"/\xff", b""),
            get(b"/", b"X-Mark: a\x01b\r\n"),
            get(b"/?q=<b>", b""),
            websocket(),
        ];
        visitors_pass_beside(&proxy, &origin, &release, &requests);
        visitors_pass_beside_clients_that_leave(&proxy, &origin, &release);
    }
}

#[test]
fn no_visitor_fails_behind_a_proxy_that_speaks_http2() {
    for start in PROXIES {
        let (origin, release) = origin();
        let gate = gate(&origin, "127.0.0.1:0");
        let proxy = start(gate.address, true);
        visitors_pass_beside(&proxy, &origin, &release, &[websocket()]);
        visitors_pass_beside_clients_that_leave(&proxy, &origin, &release);
        assert!(
            !gate.metrics().contains("{reason=\"http2\"}"),
            "{}",
            gate.log.text()
        );
    }
}

/// Frames that make a stream end alone, each sent more often than one client may.
#[test]
fn no_count_of_one_client_ends_a_trusted_proxys_connection() {
    let origin = Origin::plain();
    let gate = gate(&origin, "127.0.0.1:0");
    let field = |name, value| literal(name, value);
    let two_hosts = [
        b"\x82\x84\x86".to_vec(),
        field(":authority", "a.example"),
        field("host", "b.example"),
    ]
    .concat();
    let no_url = [
        b"\x82\x86".to_vec(),
        field(":path", "/<b>"),
        field(":authority", HOST),
    ]
    .concat();
    let extended = [
        b"\x84\x86".to_vec(),
        field(":method", "CONNECT"),
        field(":protocol", "websocket"),
    ]
    .concat();
    let extended = [extended, field(":authority", HOST)].concat();
    for block in [GET, &two_hosts, &no_url, &extended] {
        let mut connection = gate.connect();
        connection.send_bytes(&[PREFACE, &SETTINGS].concat());
        for number in 0..300 {
            let stream = 2 * number + 1;
            connection.send_bytes(&frame(HEADERS, 5, stream, block));
            connection.send_bytes(&frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
            connection.send_bytes(&frame(PING, 0, 0, &[0; 8]));
            connection.frame(PING);
        }
        connection.send_bytes(&frame(HEADERS, 5, 601, GET));
        while connection.frame(HEADERS).stream != 601 {}
    }
}

#[test]
fn listener_without_http2_speaks_http1_alone() {
    let origin = Origin::plain();
    let gate = gate(&origin, "{ address: 127.0.0.1:0, http2: no }");
    let mut connection = gate.connect();
    connection.send_bytes(&[PREFACE, &SETTINGS].concat());
    assert_eq!(connection.response("GET").status, 400);
    assert_eq!(gate.get(HOST, "/", "").status, 200);
}
