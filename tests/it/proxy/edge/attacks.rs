//! Clients that attack, while another client's requests go on. Limits are short, and every attack
//! is larger than what one client may do by accident.

use crate::proxy::support::http2::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, RST_STREAM, SETTINGS,
    SETTINGS_FRAME, WINDOW_UPDATE, frame,
};
use crate::proxy::support::random::Random;
use crate::proxy::support::{Connection, Gate, HOST, Origin, PATIENCE, Setup};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const SETTINGS_OF_ATTACKS: &str =
    "limits: { head: 1s, idle: 2s, stall: 1s, handshake: 1s, connections_per_address: 2000 }";

fn gate(origin: &Origin) -> Gate {
    Setup::before(origin.address)
        .settings(SETTINGS_OF_ATTACKS)
        .start()
}

/// Runs an attack while another client asks for a page again and again. Each of its requests is
/// answered, soon.
fn while_others_are_served(gate: &Gate, attack: impl FnOnce()) {
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            let mut connection = gate.connect();
            while !over.load(Ordering::Acquire) || answered.load(Ordering::Relaxed) < 20 {
                let began = Instant::now();
                connection.send(&format!("GET /other HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
                assert_eq!(connection.response("GET").status, 200);
                slowest = slowest.max(began.elapsed());
                answered.fetch_add(1, Ordering::Relaxed);
            }
            // A new client gets in, too.
            assert_eq!(gate.get(HOST, "/new", "").status, 200);
            slowest
        });
        attack();
        over.store(true, Ordering::Release);
        let slowest = other.join().expect("the other client is served");
        assert!(
            slowest < Duration::from_secs(10),
            "a request took {slowest:?}"
        );
    });
    assert!(
        gate.log
            .text()
            .lines()
            .all(|line| !line.contains("panicked")),
        "{}",
        gate.log.text()
    );
}

/// Waits until all of these are closed by crawlgate.
fn all_are_closed(connections: &mut [Connection]) {
    let began = Instant::now();
    for connection in connections {
        while !connection.is_closed() {
            if connection.was_reset() {
                break;
            }
            connection.bytes(1);
        }
    }
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn slow_and_silent_and_half_closed_clients_are_ended() {
    let origin = Origin::plain();
    let gate = gate(&origin);
    while_others_are_served(&gate, || {
        let mut open: Vec<Connection> = (0..300).map(|_| gate.connect()).collect();
        for (number, connection) in open.iter_mut().enumerate() {
            match number % 5 {
                0 => {}
                1 => connection.send("G"),
                2 => connection.send("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Slow: "),
                3 => {
                    connection.send("GET / HT");
                    connection.finish_sending();
                }
                _ => connection.send("PRI * HTTP/2.0\r\n\r\nSM"),
            }
        }
        all_are_closed(&mut open);
    });
    gate.wait_for_metric(
        "crawlgate_requests_rejected_total{reason=\"head_timeout\"}",
        120.0,
    );
}

#[test]
fn garbage_and_head_bombs_end_their_own_connection_alone() {
    let origin = Origin::plain();
    let gate = gate(&origin);
    while_others_are_served(&gate, || {
        let mut random = Random::seeded(0x2545_f491_4f6c_dd1d);
        let mut open = Vec::new();
        for _ in 0..100 {
            let bytes: Vec<u8> = (0..2_000).map(|_| random.next() as u8).collect();
            let mut connection = gate.connect();
            let _ = connection.try_send_bytes(&bytes);
            connection.try_finish_sending();
            open.push(connection);
        }
        for bomb in [
            format!("GET /{} HTTP/1.1\r\n", "a".repeat(200_000)),
            format!(
                "GET / HTTP/1.1\r\nHost: {HOST}\r\nX: {}\r\n\r\n",
                "b".repeat(500_000)
            ),
            format!(
                "GET / HTTP/1.1\r\nHost: {HOST}\r\n{}\r\n",
                "A: b\r\n".repeat(50_000)
            ),
            format!("GET / HTTP/1.1\r\n{}", "a".repeat(500_000)),
        ] {
            let mut connection = gate.connect();
            let _ = connection.try_send_bytes(bomb.as_bytes());
            open.push(connection);
        }
        drop(open);
    });
    for reason in ["target_too_long", "headers_too_large", "too_many_fields"] {
        assert!(
            gate.metrics().contains(&format!(
                "crawlgate_requests_rejected_total{{reason=\"{reason}\"}}"
            )),
            "{reason}"
        );
    }
}

/// GET / over http, with :authority a.
pub(super) const GET: &[u8] = b"\x82\x86\x84\x41\x01a";
/// POST.
const POST: &[u8] = b"\x83\x86\x84\x41\x01a";

/// Sends frames until the other side ends the connection, at most so many.
fn flood(gate: &Gate, most: usize, mut frames: impl FnMut(u32) -> Vec<u8>) -> bool {
    let mut connection = gate.connect();
    connection.send_bytes(PREFACE);
    connection.send_bytes(&SETTINGS);
    (0..most)
        .any(|number| !connection.try_send_bytes(&frames(u32::try_from(number).expect("small"))))
}

#[test]
fn floods_of_http2_frames_end_their_own_connection() {
    let origin = Origin::plain();
    let gate = gate(&origin);
    while_others_are_served(&gate, || {
        let reset = |number: u32| {
            let stream = 2 * number + 1;
            [
                frame(HEADERS, 5, stream, GET),
                frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]),
            ]
            .concat()
        };
        assert!(flood(&gate, 200_000, reset), "rapid reset");
        let continuation = |number: u32| match number {
            0 => frame(HEADERS, 1, 1, GET),
            _ => frame(
                CONTINUATION,
                0,
                1,
                &[b"\0\x01a".as_slice(), &[0x7f, 0xe1, 0x7e], &[b'x'; 16_000]].concat(),
            ),
        };
        assert!(flood(&gate, 10_000, continuation), "CONTINUATION");
        let data = |number: u32| match number {
            0 => frame(HEADERS, 4, 1, POST),
            _ => frame(DATA, 0, 1, &[]).repeat(100),
        };
        assert!(flood(&gate, 100_000, data), "empty DATA");
        assert!(
            flood(&gate, 10_000, |_| frame(HEADERS, 5, 2, GET)),
            "a stream of the server"
        );
        assert!(
            flood(&gate, 10_000, |_| b"GET / HTTP/1.1\r\n\r\n".to_vec()),
            "no frames"
        );
    });
}

/// Frames after a request that make its stream end, by the client or because crawlgate has to reset
/// it (CVE-2025-8671). At those from [`OF_CONNECTION`] on h2 ends the whole connection (h2 0.4.20).
fn resets(stream: u32) -> [(&'static str, Vec<u8>); 4] {
    [
        ("RST_STREAM", frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])),
        (
            "WINDOW_UPDATE beyond 2^31",
            frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff]),
        ),
        (
            "WINDOW_UPDATE of 0",
            frame(WINDOW_UPDATE, 0, stream, &[0; 4]),
        ),
        ("DATA after the end", frame(DATA, 1, stream, b"x")),
    ]
}

const OF_CONNECTION: usize = 2;

/// An origin that never answers, and says of each request when its connection has ended.
fn silent() -> (Origin, Receiver<()>, Receiver<()>) {
    let ((asked, was_asked), (ended, has_ended)) = (channel(), channel());
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
        let _ = ended.send(());
        false
    });
    (origin, was_asked, has_ended)
}

#[test]
fn request_whose_stream_is_reset_ends_at_the_origin() {
    let (origin, was_asked, has_ended) = silent();
    let gate = Setup::before(origin.address).start();
    for case in 0..resets(1).len() {
        let mut connection = gate.connect();
        connection.send_bytes(PREFACE);
        connection.send_bytes(&SETTINGS);
        connection.send_bytes(&frame(HEADERS, 5, 1, GET));
        was_asked
            .recv_timeout(PATIENCE)
            .expect("the origin is asked");
        let (name, reset) = &resets(1)[case];
        connection.send_bytes(reset);
        has_ended
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("{name}: the request goes on"));
        gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
    }
}

#[test]
fn resets_end_the_connection_whoever_sends_them() {
    let (origin, was_asked, has_ended) = silent();
    let gate = Setup::before(origin.address).start();
    // Each kind alone, and in turn those that end no more than a stream.
    for case in 0..=resets(1).len() {
        let mut connection = gate.connect();
        connection.send_bytes(PREFACE);
        connection.send_bytes(&SETTINGS);
        // Each request has reached the origin before it is reset.
        let (mut number, mut reached) = (0, 0);
        while number < 300 {
            let stream = 2 * number + 1;
            let was_taken = connection.try_send_bytes(&frame(HEADERS, 5, stream, GET));
            if !was_taken || was_asked.recv_timeout(Duration::from_secs(5)).is_err() {
                break;
            }
            reached += 1;
            let kinds = resets(stream);
            let (_, reset) = kinds
                .get(case)
                .unwrap_or(&kinds[number as usize % OF_CONNECTION]);
            connection.try_send_bytes(reset);
            has_ended.recv_timeout(PATIENCE).expect("the request ends");
            number += 1;
        }
        let name = resets(1).get(case).map_or("all", |(name, _)| name);
        // A browser that leaves a page with a hundred pictures is no attack.
        let expected = if (OF_CONNECTION..resets(1).len()).contains(&case) {
            1..=1
        } else {
            100..=101
        };
        assert!(
            expected.contains(&reached),
            "{name}: {reached} requests reached the origin"
        );
        // PROTOCOL_ERROR or ENHANCE_YOUR_CALM.
        let reason = connection.frame(GOAWAY).payload[7];
        assert!(matches!(reason, 1 | 11), "{name}: {reason}");
    }
    gate.wait_for_metric("crawlgate_connections_closed_total{reason=\"http2\"}", 5.0);
    gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
}

/// Frames that move nothing, and a client that reads what comes of them. More than 2 MiB of each.
fn idle_frames() -> [(&'static str, Vec<u8>); 5] {
    [
        ("PING", frame(PING, 0, 0, &[0; 8])),
        ("SETTINGS", frame(SETTINGS_FRAME, 0, 0, &[])),
        ("PRIORITY", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])),
        ("WINDOW_UPDATE", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("of an unknown kind", frame(0xfe, 0, 0, &[0; 100])),
    ]
}

#[test]
fn floods_of_frames_that_move_nothing_end_their_own_connection() {
    let origin = Origin::plain();
    let gate = gate(&origin);
    while_others_are_served(&gate, || {
        for (name, frame) in idle_frames() {
            let mut connection = gate.connect();
            connection.send_bytes(&[PREFACE, &SETTINGS].concat());
            let mut sender = connection.sender();
            let flood = std::thread::spawn(move || {
                let frames = frame.repeat(1 + 4096 / frame.len());
                // At most 16 MiB, lest it never end.
                (0..4_096).any(|_| sender.write_all(&frames).is_err())
            });
            if matches!(name, "PING" | "SETTINGS") {
                // Answers may fill the socket, and take the place of the GOAWAY.
                let mut reader = connection.sender();
                while reader.read(&mut [0; 65_536]).is_ok_and(|count| count > 0) {}
            } else {
                assert_eq!(
                    connection.frame(GOAWAY).payload[4..8],
                    [0, 0, 0, 11],
                    "{name}: ENHANCE_YOUR_CALM"
                );
            }
            drop(connection);
            assert!(flood.join().expect("no panic"), "{name}");
        }
    });
    gate.wait_for_metric("crawlgate_connections_closed_total{reason=\"http2\"}", 5.0);
}

#[test]
fn client_that_reads_no_replies_is_disconnected() {
    let origin = Origin::plain();
    let gate = gate(&origin);
    while_others_are_served(&gate, || {
        for (name, frame) in &idle_frames()[..2] {
            assert!(flood(&gate, 100_000, |_| frame.repeat(20)), "{name}");
        }
    });
}

#[test]
fn client_with_window_updates_and_pings_is_served() {
    let body = "x".repeat(1_000);
    let page = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{body}");
    let origin = Origin::start(move |_, stream| stream.write_all(page.as_bytes()).is_ok());
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    connection.send_bytes(&[PREFACE, &SETTINGS].concat());
    // 4 MiB beside the requests: twice what moves nothing at all.
    for number in 0..400_u32 {
        let stream = 2 * number + 1;
        let update = frame(WINDOW_UPDATE, 0, 0, &[0, 0, 3, 0xe8]);
        let pings = frame(PING, 0, 0, &[0; 8]).repeat(620);
        connection.send_bytes(&[frame(HEADERS, 5, stream, GET), update, pings].concat());
        assert_eq!(connection.frame(DATA).stream, stream);
    }
}

#[test]
fn http2_client_that_does_not_answer_a_ping_is_ended() {
    let origin = Origin::start(|request, stream| {
        if request.is_own() {
            return std::io::Write::write_all(
                stream,
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            )
            .is_ok();
        }
        // It never answers.
        let _ = std::io::Read::read(stream, &mut [0]);
        false
    });
    let gate = gate(&origin);
    let mut connection = gate.connect();
    connection.send_bytes(PREFACE);
    connection.send_bytes(&SETTINGS);
    connection.send_bytes(&frame(HEADERS, 5, 1, GET));
    assert_eq!(connection.frame(PING).payload.len(), 8);
    connection.rest();
    gate.wait_for_metric(
        "crawlgate_connections_closed_total{reason=\"no_pong\"}",
        1.0,
    );
    gate.wait_for_metric("crawlgate_connections{state=\"active\"}", 0.0);
    // An idle one gets a goodbye.
    let mut idle = gate.connect();
    idle.send_bytes(PREFACE);
    idle.send_bytes(&SETTINGS);
    assert_eq!(idle.frame(GOAWAY).stream, 0);
    idle.rest();
}

#[test]
fn thousand_idle_connections_hold_little_memory_and_end_in_time() {
    let origin = Origin::plain();
    let gate = gate(&origin);
    assert_eq!(gate.get(HOST, "/", "").status, 200);
    let before = gate.resident();
    let mut open: Vec<Connection> = (0..1_000).map(|_| gate.connect()).collect();
    gate.wait_for_metric("crawlgate_connections{state=\"idle\"}", 1_000.0);
    let each = gate.resident().saturating_sub(before) / 1_000;
    assert!(each < 50, "{each} KiB for an idle connection");
    while_others_are_served(&gate, || all_are_closed(&mut open));
}

/// Trailers of a field of one byte, and of thousands of references to it, one byte each (RFC 7541
/// section 6.1).
fn trailers_of_references() -> Vec<u8> {
    [b"\x40\x01b\x00".as_slice(), &[0xbe; 9_800]].concat()
}

#[test]
fn trailers_behind_a_request_that_is_answered_hold_no_memory() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("shop", "hosts: [shop.example]\n")
        .start();
    assert_eq!(gate.get("shop.example", "/robots.txt", "").status, 200);
    let before = gate.resident();
    let head = [
        b"\x82\x86\x44\x0b/robots.txt\x41\x0c",
        b"shop.example".as_slice(),
    ]
    .concat();
    let trailers = trailers_of_references();
    let connections: Vec<Connection> = (0..4)
        .map(|_| {
            let mut connection = gate.connect();
            // Not a byte of a body may be sent: the answers wait.
            connection
                .send_bytes(&[PREFACE, &frame(SETTINGS_FRAME, 0, 0, &[0, 4, 0, 0, 0, 0])].concat());
            for number in 0..100 {
                let stream = 2 * number + 1;
                connection.send_bytes(
                    &[
                        frame(HEADERS, 4, stream, &head),
                        frame(HEADERS, 5, stream, &trailers),
                    ]
                    .concat(),
                );
            }
            connection.send_bytes(&frame(PING, 0, 0, &[0; 8]));
            connection.frame(PING);
            connection
        })
        .collect();
    let grown = gate.resident().saturating_sub(before) / 1024;
    assert!(grown < 60, "{grown} MiB for 3.7 MiB that came");
    drop(connections);
}
