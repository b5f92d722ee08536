//! What waits for a client or an origin counts in `limits.buffers`, on every way and until it is
//! over.

use super::streams::{NO_WINDOW, WINDOWS, ask, asking};
use crate::proxy::support::http2::{
    CONTINUATION, DATA, HEADERS, PREFACE, RST_STREAM, SETTINGS, Upload, frame, literal,
};
use crate::proxy::support::{
    BROWSER, Connection, Gate, HOST, Http2, Origin, Setup, eventually, sum_of,
};
use std::io::Write;
use std::net::TcpListener;

const BUFFERS: &str = "crawlgate_buffers_bytes";
const IN_FLIGHT: &str = "crawlgate_requests_in_flight";
const KIB: f64 = 1024.0;
/// What a request counts in the forwarder and through Pingora, without its head and its response.
const IN_FORWARDER: f64 = 24.0 * KIB;
const IN_PINGORA: f64 = 120.0 * KIB;
/// Settings and a policy for each way.
const WAYS: [(&str, &str, f64); 3] = [
    ("direct_forwarding: on", "", IN_FORWARDER),
    ("direct_forwarding: off", "", IN_PINGORA),
    ("direct_forwarding: on", "html: { meta: yes }\n", IN_PINGORA),
];

fn value(gate: &Gate, series: &str) -> f64 {
    let metrics = gate.metrics();
    metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
        .unwrap_or_default()
}

/// An origin with pages of 1 KiB.
fn pages() -> Origin {
    Origin::saying(Box::leak(
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n{}",
            "x".repeat(1024)
        )
        .into_boxed_str(),
    ))
}

fn before(origin: &Origin, settings: &str, policy: &str) -> Gate {
    let policy = format!("robots: {{ origin: replace }}\n{policy}");
    Setup::before(origin.address)
        .settings(settings)
        .policy("site", &policy)
        .start()
}

/// A client without a window that asks for so many pages, and has their heads.
fn stalled(gate: &Gate, streams: u8) -> Connection {
    let mut client = asking(gate, &NO_WINDOW, "/page", BROWSER);
    for stream in 1..streams {
        ask(&mut client, 2 * stream + 1, "/page", BROWSER);
    }
    for _ in 0..streams {
        client.frame(HEADERS);
    }
    client
}

#[test]
fn response_without_window_counts_until_it_has_left() {
    let origin = pages();
    for (settings, policy, each) in WAYS {
        let gate = before(&origin, settings, policy);
        let mut client = stalled(&gate, 20);
        // The origin is done with each of them.
        gate.wait_for_metric(IN_FLIGHT, 20.0);
        let counted = value(&gate, BUFFERS);
        assert!(counted >= 20.0 * each, "{settings} {policy}: {counted}");
        client.send_bytes(&WINDOWS);
        for _ in 0..20 {
            client.frame(DATA);
        }
        gate.wait_for_metric(BUFFERS, 0.0);
        gate.wait_for_metric(IN_FLIGHT, 0.0);
        // A client that leaves holds nothing either.
        let client = stalled(&gate, 20);
        assert!(value(&gate, BUFFERS) >= 20.0 * each, "{settings} {policy}");
        drop(client);
        gate.wait_for_metric(BUFFERS, 0.0);
        gate.wait_for_metric(IN_FLIGHT, 0.0);
    }
}

/// Clients of the attack, and what the documentation says that a connection takes, in KiB.
const CLIENTS: u64 = 20;
const CONNECTION: u64 = 50;

/// What a gate holds more than `before`, when that changes no more, against what it counts, in KiB.
fn assert_held_is_counted(gate: &Gate, before: u64, what: &str) {
    let mut last = 0;
    let held = eventually("the same memory twice", || {
        let resident = gate.resident();
        (std::mem::replace(&mut last, resident) == resident)
            .then_some(resident.saturating_sub(before))
    });
    let counted = value(gate, BUFFERS) / KIB;
    assert!(
        held as f64 <= 1.3 * counted + (CLIENTS * CONNECTION) as f64,
        "{what}: {held} KiB, {counted} KiB counted"
    );
}

#[test]
fn memory_of_streams_without_a_window_is_within_the_count() {
    let origin = pages();
    for (settings, policy, _) in WAYS {
        let gate = before(
            &origin,
            &format!("{settings}\nlimits: {{ buffers_per_address: 512MiB }}"),
            policy,
        );
        drop(stalled(&gate, 1));
        let before = gate.resident();
        let clients: Vec<Connection> = (0..CLIENTS).map(|_| stalled(&gate, 100)).collect();
        gate.wait_for_metric(IN_FLIGHT, CLIENTS as f64 * 100.0);
        assert_held_is_counted(&gate, before, &format!("{settings} {policy}"));
        drop(clients);
        gate.wait_for_metric(BUFFERS, 0.0);
    }
}

#[test]
fn memory_of_expectations_without_a_window_is_within_the_count() {
    let origin = pages();
    let gate = before(&origin, "", "");
    drop(stalled(&gate, 1));
    let before = gate.resident();
    let fields = [(":path", "/page"), (":authority", HOST), ("expect", "x")];
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect();
    let block = [b"\x82\x86", block.as_slice()].concat();
    let clients: Vec<Connection> = (0..CLIENTS)
        .map(|_| {
            let mut client = gate.connect();
            client.send_bytes(&[PREFACE, &NO_WINDOW].concat());
            (0..100).for_each(|stream| client.send_headers(2 * stream + 1, &block));
            (0..100).for_each(|_| drop(client.frame(HEADERS)));
            client
        })
        .collect();
    gate.wait_for_metric(BUFFERS, CLIENTS as f64 * 100.0 * 8.0 * KIB);
    assert_held_is_counted(&gate, before, "417");
    drop(clients);
    gate.wait_for_metric(
        "crawlgate_requests_rejected_total{reason=\"expectation\"}",
        CLIENTS as f64 * 100.0,
    );
    gate.wait_for_metric(BUFFERS, 0.0);
}

#[test]
fn memory_of_uploads_that_no_origin_reads_is_within_the_count() {
    static BODY: [u8; 1 << 20] = [b'x'; 1 << 20];
    // The system takes connections for it.
    let origin = TcpListener::bind("127.0.0.1:0").expect("a free port");
    for direct in ["on", "off"] {
        let gate = Setup::before(origin.local_addr().expect("its address"))
            .settings(&format!(
                "direct_forwarding: {direct}\nlimits: {{ buffers_per_address: 512MiB }}"
            ))
            .start();
        let before = gate.resident();
        let http2: Vec<Http2> = (0..CLIENTS / 2)
            .map(|_| Http2::open(gate.address))
            .collect();
        let mut uploads: Vec<Upload> = http2
            .iter()
            .flat_map(|client| (0..5).map(|_| client.upload(HOST, "/x", &[])))
            .collect();
        uploads
            .iter_mut()
            .for_each(|upload| upload.send(&BODY, false));
        let http1: Vec<Connection> = (0..CLIENTS / 2).map(|_| gate.connect()).collect();
        for client in &http1 {
            let mut sender = client.sender();
            write!(
                sender,
                "POST /x HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {}\r\n\r\n",
                BODY.len()
            )
            .expect("a head");
            std::thread::spawn(move || sender.write_all(&BODY));
        }
        gate.wait_for_metric(IN_FLIGHT, CLIENTS as f64 * 3.0);
        assert_held_is_counted(&gate, before, direct);
        uploads.into_iter().for_each(Upload::reset);
        drop((http1, http2));
    }
}

#[test]
fn memory_of_large_heads_is_within_the_count() {
    const HEAD: usize = 60 * 1024;
    /// So many that the memory that each thread keeps for later does not matter.
    const CLIENTS: u64 = 80;
    let large = "x".repeat(HEAD);
    // The system takes connections for it.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    for direct in ["on", "off"] {
        let gate = Setup::before(silent.local_addr().expect("its address"))
            .settings(&format!("direct_forwarding: {direct}"))
            .start();
        let upload = |number: u64| {
            let mut client = gate.connect();
            client.send(&format!(
                "POST /x HTTP/1.1\r\nHost: {HOST}\r\nX-Large: {large}\r\nContent-Length: 9\r\n\r\nx"
            ));
            gate.wait_for_metric(IN_FLIGHT, number as f64);
            client
        };
        drop(upload(1));
        gate.wait_for_metric(IN_FLIGHT, 0.0);
        let before = gate.resident();
        let clients: Vec<Connection> = (1..=CLIENTS).map(upload).collect();
        assert!(
            value(&gate, BUFFERS) >= (CLIENTS as usize * 4 * HEAD) as f64,
            "{direct}"
        );
        assert_held_is_counted(
            &gate,
            before,
            &format!("heads of requests, direct_forwarding: {direct}"),
        );
        drop(clients);
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nX-Large: {large}\r\nContent-Length: 1024\r\n\r\n{}",
        &large[..1024]
    );
    let origin = Origin::saying(Box::leak(head.into_boxed_str()));
    for (settings, policy, _) in WAYS {
        let gate = before(&origin, settings, policy);
        drop(stalled(&gate, 1));
        let before = gate.resident();
        let clients: Vec<Connection> = (0..CLIENTS).map(|_| stalled(&gate, 1)).collect();
        assert!(
            value(&gate, BUFFERS) >= (CLIENTS as usize * 4 * HEAD) as f64,
            "{settings} {policy}"
        );
        assert_held_is_counted(
            &gate,
            before,
            &format!("heads of responses, {settings} {policy}"),
        );
        drop(clients);
    }
}

#[test]
fn large_informational_heads_lose_their_fields() {
    let hints = format!(
        "HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n",
        "x".repeat(5_000)
    )
    .repeat(15);
    let answer = format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let origin = Origin::saying(Box::leak(answer.into_boxed_str()));
    for direct in ["on", "off"] {
        let gate = before(&origin, &format!("direct_forwarding: {direct}"), "");
        let mut client = gate.connect();
        client.send(&format!(
            "GET /page HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {BROWSER}\r\n\r\n"
        ));
        let fields = (0..15)
            .map(|_| client.response("GET").field("link").map(str::len))
            .collect::<Vec<_>>();
        assert_eq!(fields[0], Some(5_000), "{direct}");
        assert!(fields[1..].iter().all(Option::is_none), "{direct}");
        assert_eq!(client.response("GET").status, 200, "{direct}");
    }
}

#[test]
fn answers_that_no_socket_takes_count_until_the_client_leaves() {
    let origin = pages();
    let rules = format!("/{}", "x".repeat(1_000))
        .repeat(30)
        .replace('/', ", /");
    let policy = format!(
        "robots: {{ origin: replace, groups: [{{ agents: ['*'], disallow: [{}] }}] }}\n",
        &rules[2..]
    );
    let gate = Setup::before(origin.address)
        .policy("site", &policy)
        .start();
    let fields = [(":path", "/robots.txt"), (":authority", HOST)];
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect();
    let block = [b"\x82\x86", block.as_slice()].concat();
    let mut client = gate.connect();
    // Every stream and the connection have a window of 2 GiB, and the client reads nothing.
    client.send_bytes(
        &[
            PREFACE,
            &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff],
        ]
        .concat(),
    );
    client.send_bytes(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0]);
    let mut stream = 1;
    eventually("an answer that waits", || {
        // No more at once than the limit of streams: resets would end the connection. So the gate
        // must have all that were sent before.
        let metrics = gate.metrics();
        let finished = sum_of(&metrics, "crawlgate_requests_total").unwrap_or_default();
        let open = f64::from(stream / 2) - finished;
        let in_flight = sum_of(&metrics, IN_FLIGHT);
        let batch = match open {
            _ if in_flight != Some(open) => 0,
            few if few < 40.0 => 20,
            some if some < 90.0 => 1,
            _ => 0,
        };
        for _ in 0..batch {
            client.send_bytes(&frame(HEADERS, 5, stream, &block));
            stream += 2;
        }
        (value(&gate, BUFFERS) >= 8.0 * KIB).then_some(())
    });
    drop(client);
    gate.wait_for_metric(BUFFERS, 0.0);
}

fn post() -> Vec<u8> {
    let fields = [(":path", "/x"), (":authority", HOST)];
    let fields = fields.iter().flat_map(|(name, value)| literal(name, value));
    // :method POST, :scheme http
    b"\x83\x86".iter().copied().chain(fields).collect()
}

#[test]
fn trailers_have_the_same_limits_on_every_way() {
    let origin = Origin::plain();
    let many: Vec<u8> = (0..101)
        .flat_map(|place| literal(&format!("x-{place}"), ""))
        .collect();
    let large: Vec<u8> = (0..90)
        .flat_map(|place| literal(&format!("x-{place}"), &"y".repeat(100)))
        .collect();
    for direct in ["on", "off"] {
        let gate = Setup::before(origin.address)
            .settings(&format!("direct_forwarding: {direct}"))
            .start();
        for block in [&many, &large] {
            let mut client = gate.connect();
            client.send_bytes(PREFACE);
            client.send_bytes(&SETTINGS);
            client.send_bytes(&frame(HEADERS, 4, 1, &post()));
            client.send_bytes(&frame(DATA, 0, 1, b"abc"));
            client.send_bytes(&frame(HEADERS, 1, 1, &block[..10]));
            client.send_bytes(&frame(CONTINUATION, 4, 1, &block[10..]));
            if direct == "on" {
                // :status 400 of the static table
                assert_eq!(client.frame(HEADERS).payload[0], 0x8c, "{direct}");
            } else {
                assert_eq!(client.frame(RST_STREAM).stream, 1, "{direct}");
            }
        }
    }
}

#[test]
fn expectation_other_than_a_100_is_417_in_both_versions() {
    let origin = pages();
    let gate = before(&origin, "", "");
    let expecting = [("expect", "x")];
    assert_eq!(
        Http2::open(gate.address)
            .get(HOST, "/page", &expecting)
            .status,
        417
    );
    assert_eq!(gate.get(HOST, "/page", "Expect: x\r\n").status, 417);
    gate.wait_for_metric(
        "crawlgate_requests_rejected_total{reason=\"expectation\"}",
        2.0,
    );
}
