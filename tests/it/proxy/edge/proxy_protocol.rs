//! The PROXY protocol: who the client is, and who may say so.

use crate::proxy::support::{HOST, Origin, Setup, eventually, read};

const LISTEN: &str = "{ address: 127.0.0.1:0, proxy_protocol: yes }";
const GET: &str = "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

#[test]
fn client_that_the_header_names_is_the_client_everywhere() {
    let origin = Origin::plain();
    let policy = "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: / }] }\nenforcement: { mode: enforce }\n";
    let gate = Setup::before(origin.address)
        .listeners(LISTEN)
        .policy("site", policy)
        .settings("trusted_proxies: 127.0.0.1\nlogs: { access: access.log, events: events.log }")
        .start();
    let v2 = [
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0f".as_slice(),
        &[198, 51, 100, 7, 1, 1, 1, 1, 0, 80, 0, 80],
        &[4, 0, 0],
    ]
    .concat();
    let v6 = b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n".to_vec();
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0".to_vec();
    for (header, client) in [
        (
            b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n".to_vec(),
            "192.0.2.7",
        ),
        (v2, "198.51.100.7"),
        (v6, "2001:db8::7"),
        (local, "127.0.0.1"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
    ] {
        // In one piece with the request, and byte by byte.
        for piece in [1, 1000] {
            let mut connection = gate.connect();
            for bytes in [&header, GET.as_bytes()].concat().chunks(piece) {
                connection.send_bytes(bytes);
            }
            assert_eq!(connection.response("GET").status, 200, "{client}");
            assert_eq!(origin.last().field("x-forwarded-for"), Some(client));
        }
    }
    // The named client is not trusted, whatever it says of others.
    let mut connection = gate.connect();
    connection.send(
        "PROXY TCP4 192.0.2.8 192.0.2.1 4711 443\r\nGET /no HTTP/1.1\r\nHost: shop.example\r\n",
    );
    connection.send("User-Agent: GPTBot\r\nX-Forwarded-For: 192.0.2.66\r\n\r\n");
    assert_eq!(connection.response("GET").status, 403);
    for log in ["access.log", "events.log"] {
        eventually(log, || {
            read(&gate.path(log))
                .contains("\"client\":\"192.0.2.8\"")
                .then_some(())
        });
    }
}

#[test]
fn header_without_client_leaves_it_unknown_and_fields_unread() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .listeners(LISTEN)
        .policy(
            "site",
            "enforcement: { mode: enforce, unverified: refuse }\nrobots: { origin: replace }\n",
        )
        .settings("trusted_proxies: 127.0.0.1\nlogs: { access: access.log }")
        .start();
    let unix = [b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8".as_slice(), &[0; 216]].concat();
    for header in [
        &b"PROXY UNKNOWN\r\n"[..],
        b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0",
        &unix,
    ] {
        let mut connection = gate.connect();
        connection.send_bytes(header);
        connection
            .send("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 192.0.2.66\r\n\r\n");
        assert_eq!(connection.response("GET").status, 200);
        assert_eq!(origin.last().field("x-forwarded-for"), Some("127.0.0.1"));
        connection.send("GET /bot HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: Bytespider\r\n");
        connection.send("X-Forwarded-For: 192.0.2.66\r\n\r\n");
        assert_eq!(connection.response("GET").status, 503);
    }
    eventually("the log", || {
        let log = read(&gate.path("access.log"));
        let is_unknown = |line: &&str| {
            line.contains("Bytespider") && line.contains("\"doubt\":\"client_unknown\"")
        };
        (log.lines().filter(is_unknown).count() == 3).then_some(())
    });
    assert!(!read(&gate.path("access.log")).contains("192.0.2.66"));
}

#[test]
fn connection_without_the_header_or_from_another_peer_is_closed() {
    let origin = Origin::plain();
    for (trusted, sent) in [
        ("127.0.0.1", GET),
        (
            "127.0.0.1",
            "PROXY TCP4 192.0.2.7 192.0.2.1 99999 443\r\nGET / HTTP/1.1\r\n",
        ),
        (
            "127.0.0.1",
            "\r\n\r\n\0\r\nQUIZ\n!\u{11}\0\u{c}aaaabbbbccdd",
        ),
        ("127.0.0.1", "PROXY TCP4 192.0.2.7 192.0.2.1 1"),
        (
            "192.0.2.1",
            "PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
    ] {
        let settings = format!("trusted_proxies: {trusted}\nlimits: {{ handshake: 300ms }}");
        let gate = Setup::before(origin.address)
            .listeners(LISTEN)
            .settings(&settings)
            .start();
        let mut connection = gate.connect();
        connection.try_send(sent);
        gate.wait_for_metric(
            "crawlgate_connections_closed_total{reason=\"proxy_header\"}",
            1.0,
        );
        gate.log.wait_for("PROXY protocol");
    }
    assert!(origin.received().is_empty(), "{:?}", origin.received());
}

#[test]
fn longest_line_without_an_end_closes_the_connection_at_once() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .listeners(LISTEN)
        .settings("trusted_proxies: 127.0.0.1\nlimits: { handshake: 5m }")
        .start();
    let mut connection = gate.connect();
    connection.send(&format!("PROXY {}", "x".repeat(101)));
    gate.wait_for_metric(
        "crawlgate_connections_closed_total{reason=\"proxy_header\"}",
        1.0,
    );
}

#[test]
fn header_where_none_is_expected_is_no_request() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("trusted_proxies: 127.0.0.1")
        .start();
    let mut connection = gate.connect();
    connection.send(&format!("PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n{GET}"));
    assert_eq!(connection.response("GET").status, 400);
    assert_eq!(gate.get(HOST, "/", "").status, 200);
    assert!(
        origin
            .received()
            .iter()
            .all(|request| request.field("x-forwarded-for") != Some("192.0.2.7"))
    );
}
