//! What the access log says of requests over HTTP/2 whose client does not take its answer, or goes
//! on as it must not.

use super::streams::{NO_WINDOW, ask, asking};
use crate::proxy::support::http2::{
    DATA, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, frame, literal,
};
use crate::proxy::support::{
    Connection, GPTBOT, Gate, HOST, Origin, PATIENCE, Setup, eventually, read,
};
use std::sync::mpsc::channel;

const REFUSES: &str = "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: [/] }] }\n\
                       enforcement: { mode: enforce }\nindexing: { paths: /, status: 403, tag: noindex }\n";

/// Status, error, bytes and tags of each line about this target, when there are so many.
fn lines(gate: &Gate, target: &str, count: usize) -> Vec<(u64, String, u64)> {
    eventually("the access log has all requests", || {
        let log = read(&gate.path("access.log"));
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let lines: Vec<_> = lines
            .filter(|line| line["target"] == target)
            .map(|line| {
                let number = |name: &str| line[name].as_u64().unwrap_or_default();
                (
                    number("status"),
                    line["error"].as_str().unwrap_or_default().to_owned(),
                    number("bytes"),
                )
            })
            .collect();
        (lines.len() >= count).then_some(lines)
    })
}

fn gate(origin: impl ToString, more: &str) -> Gate {
    let settings = format!("{more}\nlogs: {{ access: access.log }}");
    Setup::before(origin)
        .policy("site", REFUSES)
        .settings(&settings)
        .start()
}

#[test]
fn sent_head_is_logged_with_its_status() {
    let origin = Origin::plain();
    for direct in ["on", "off"] {
        let gate = gate(
            origin.address,
            &format!("direct_forwarding: {direct}\nlimits: {{ stall: 1s }}"),
        );
        // The client takes nothing for so long that it is given up.
        let mut waiting = asking(&gate, &NO_WINDOW, "/waits", GPTBOT);
        waiting.frame(HEADERS);
        ask(&mut waiting, 3, "/robots.txt", GPTBOT);
        waiting.frame(HEADERS);
        assert_eq!(
            [
                waiting.frame(RST_STREAM).stream,
                waiting.frame(RST_STREAM).stream
            ],
            [1, 3]
        );
        // It resets the stream when it has the head, or leaves.
        let mut resetting = asking(&gate, &NO_WINDOW, "/resets", GPTBOT);
        resetting.frame(HEADERS);
        resetting.send_bytes(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
        let mut leaving = asking(&gate, &NO_WINDOW, "/leaves", GPTBOT);
        leaving.frame(HEADERS);
        drop(leaving);
        for (target, status) in [
            ("/waits", 403),
            ("/robots.txt", 200),
            ("/resets", 403),
            ("/leaves", 403),
        ] {
            assert_eq!(
                lines(&gate, target, 1),
                [(status, "WriteError".to_owned(), 0)],
                "{target}, direct_forwarding: {direct}"
            );
        }
        // A robots.txt that did not arrive whole was not served.
        assert!(
            !gate
                .metrics()
                .contains("crawlgate_robots_last_fetch_timestamp_seconds{crawler=\"gptbot\"")
        );
        assert_eq!(
            asking(&gate, &SETTINGS, "/robots.txt", GPTBOT)
                .frame(DATA)
                .stream,
            1
        );
        eventually("it is served", || {
            gate.metrics()
                .contains("crawlgate_robots_last_fetch_timestamp_seconds{crawler=\"gptbot\"")
                .then_some(())
        });
    }
}

#[test]
fn failure_that_waits_for_a_window_is_logged_with_its_status() {
    let gate = gate(Origin::nowhere(), "");
    let mut client = asking(&gate, &NO_WINDOW, "/page", "Mozilla/5.0");
    client.frame(HEADERS);
    client.send_bytes(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
    assert_eq!(
        lines(&gate, "/page", 1),
        [(502, "connect_refused".to_owned(), 0)]
    );
}

#[test]
fn request_reset_at_once_is_logged_without_status() {
    let origin = Origin::plain();
    let gate = gate(origin.address, "");
    let mut client = gate.connect();
    client.send_bytes(PREFACE);
    let mut frames = SETTINGS.to_vec();
    frames.extend(head(1));
    frames.extend(frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
    frames.extend(frame(PING, 0, 0, &[0; 8]));
    client.send_bytes(&frames);
    client.frame(PING);
    let found = lines(&gate, "/", 1);
    assert_eq!(found, [(0, "no_response".to_owned(), 0)]);
}

/// HEADERS that are a whole request of GPTBot for /.
fn head(stream: u32) -> Vec<u8> {
    let fields = [(":authority", HOST), ("user-agent", GPTBOT)];
    let lines = fields.iter().flat_map(|(name, value)| literal(name, value));
    frame(
        HEADERS,
        5,
        stream,
        &b"\x82\x86\x84"
            .iter()
            .copied()
            .chain(lines)
            .collect::<Vec<u8>>(),
    )
}

#[test]
fn request_on_a_broken_connection_is_logged() {
    let (asked, was_asked) = channel();
    let origin = Origin::start(move |request, stream| {
        if request.is_own() {
            return std::io::Write::write_all(
                stream,
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            )
            .is_ok();
        }
        let _ = asked.send(());
        let _ = std::io::Read::read(stream, &mut [0]);
        false
    });
    let gate = gate(origin.address, "");
    let mut client: Connection = asking(&gate, &SETTINGS, "/page", "Mozilla/5.0");
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    // A WINDOW_UPDATE of 0 is an error of the connection (RFC 9113 section 6.9).
    client.send_bytes(&frame(8, 0, 0, &[0; 4]));
    assert_eq!(client.frame(GOAWAY).payload[..8], [0, 0, 0, 1, 0, 0, 0, 1]);
    let found = lines(&gate, "/page", 1);
    assert_eq!((found[0].0, found[0].2), (0, 0), "{found:?}");
    assert_ne!(found[0].1, "");
}

#[test]
fn leaving_client_is_not_logged_as_origin_failure() {
    let origin = Origin::start(|request, stream| {
        let whole = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".as_slice();
        let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello".as_slice();
        if request.is_own() {
            return std::io::Write::write_all(stream, whole).is_ok();
        }
        let _ = std::io::Write::write_all(stream, begun);
        // The rest never comes.
        let _ = std::io::Read::read(stream, &mut [0]);
        false
    });
    let gate = gate(origin.address, "");
    let mut client = asking(&gate, &SETTINGS, "/leaves", "Mozilla/5.0");
    client.frame(DATA);
    drop(client);
    assert_eq!(
        lines(&gate, "/leaves", 1),
        [(200, "WriteError".to_owned(), 5)]
    );
    let mut client = gate.connect();
    client.send(&format!(
        "GET /leaves-http1 HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
    ));
    assert_eq!(client.head().status, 200);
    assert_eq!(client.bytes(5), b"hello");
    drop(client);
    assert_eq!(
        lines(&gate, "/leaves-http1", 1),
        [(200, "WriteError".to_owned(), 5)]
    );
}
