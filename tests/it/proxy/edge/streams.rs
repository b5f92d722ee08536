//! Streams over HTTP/2 from their first byte to their last: bodies, windows, trailers, stops, and
//! a browser.

use super::https::{before, https};
use crate::proxy::support::http2::{
    DATA, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, TRAILER, literal,
};
use crate::proxy::support::{
    BROWSER, Connection, GPTBOT, Gate, HOST, Http2, Origin, PATIENCE, Received, Setup, chromium,
    eventually, read,
};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

/// SETTINGS that leave no window to any stream (RFC 9113 section 6.5.2).
pub(in crate::proxy) const NO_WINDOW: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
/// SETTINGS that give all streams a window again.
pub(in crate::proxy) const WINDOWS: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0xff, 0xff];
/// WINDOW_UPDATE of 65,535 bytes for the first stream.
const WINDOW: [u8; 13] = [0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 0, 0xff, 0xff];
/// A byte more or less for nobody.
const A_PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

/// A client that begins with these settings, and asks for this.
pub(in crate::proxy) fn asking(
    gate: &Gate,
    settings: &[u8],
    target: &str,
    agent: &str,
) -> Connection {
    let mut connection = gate.connect();
    connection.send_bytes(PREFACE);
    connection.send_bytes(settings);
    ask(&mut connection, 1, target, agent);
    connection
}

pub(super) fn ask(connection: &mut Connection, stream: u8, target: &str, agent: &str) {
    let fields = [
        (":path", target),
        (":authority", HOST),
        ("user-agent", agent),
    ];
    let lines = fields.iter().flat_map(|(name, value)| literal(name, value));
    connection.send_headers(
        stream,
        &b"\x82\x86"
            .iter()
            .copied()
            .chain(lines)
            .collect::<Vec<u8>>(),
    );
}

#[test]
fn answer_is_recorded_when_its_last_byte_was_written() {
    let origin = Origin::plain();
    let policy = "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/x/] }] }\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let served = "crawlgate_robots_txt_total{crawler=\"gptbot\",site=\"site\",status=\"200\"}";
    let mut client = asking(&gate, &NO_WINDOW, "/robots.txt", "GPTBot/1.2");
    assert_eq!(
        client.frame(HEADERS).payload[0],
        0x88,
        "200 of the static table"
    );
    client.send_bytes(&A_PING);
    client.frame(PING);
    // The client has the head, and no window for the body.
    assert!(!gate.metrics().contains(&format!("{served} 1")));
    client.send_bytes(&WINDOW);
    assert!(String::from_utf8_lossy(&client.frame(DATA).payload).contains("Disallow: /x/"));
    gate.wait_for_metric(served, 1.0);
}

/// The streams of the next frames of a kind.
fn streams_of(client: &mut Connection, kind: u8, count: usize) -> Vec<u32> {
    let mut streams: Vec<u32> = (0..count).map(|_| client.frame(kind).stream).collect();
    streams.sort_unstable();
    streams
}

#[test]
fn answers_waiting_for_a_window_keep_the_clients_share() {
    let origin = Origin::plain();
    let policy = "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/x/] }] }\n";
    let share = "limits: { buffers_per_address: 32KiB }";
    let gate = Setup::before(origin.address)
        .policy("site", policy)
        .settings(share)
        .start();
    let mut client = asking(&gate, &NO_WINDOW, "/robots.txt", BROWSER);
    for stream in [3, 5, 7, 9, 11] {
        ask(&mut client, stream, "/robots.txt", BROWSER);
    }
    // Each counts 8 KiB.
    assert_eq!(streams_of(&mut client, RST_STREAM, 2), [9, 11]);
    gate.wait_for_metric("crawlgate_buffers_bytes", 32_768.0);
    gate.wait_for_metric("crawlgate_requests_rejected_total{reason=\"buffers\"}", 2.0);
    client.send_bytes(&WINDOWS);
    assert_eq!(streams_of(&mut client, DATA, 4), [1, 3, 5, 7]);
    gate.wait_for_metric("crawlgate_buffers_bytes", 0.0);
}

#[test]
fn window_that_stays_closed_ends_its_stream_alone() {
    let origin = Origin::start(|request, stream| {
        let length = if request.target() == "/large" {
            1_000_000
        } else {
            2
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).is_ok() && stream.write_all(&vec![b'x'; length]).is_ok()
    });
    let gate = Setup::before(origin.address)
        .settings("limits: { stall: 1s }")
        .start();
    for target in ["/large", "/small"] {
        let mut client = asking(&gate, &NO_WINDOW, target, BROWSER);
        client.frame(HEADERS);
        assert_eq!(client.frame(RST_STREAM).stream, 1, "{target}");
        gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
        gate.wait_for_metric("crawlgate_buffers_bytes", 0.0);
        // The connection goes on.
        client.send_headers(3, b"\x84\x82\x86\x41\x01a");
        assert_eq!(client.frame(HEADERS).stream, 3, "{target}");
    }
}

/// An origin that gives back what it gets.
fn echo() -> Origin {
    Origin::start(|request, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            request.body.len()
        );
        stream.write_all(head.as_bytes()).is_ok() && stream.write_all(&request.body).is_ok()
    })
}

fn large_file(directory: &std::path::Path) -> String {
    let file = directory.join("large");
    let bytes: Vec<u8> = (0..10 << 20_u32)
        .map(|place: u32| (place.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    fs::write(&file, bytes).expect("written");
    file.display().to_string()
}

#[test]
fn ten_megabytes_go_whole_in_both_directions_over_tls() {
    let origin = echo();
    let https = before(origin.address, "", "", origin);
    let sent = large_file(https.directory.path());
    let back = https.directory.path().join("back").display().to_string();
    let data = format!("@{sent}");
    for more in [
        [].as_slice(),
        &[
            "-H",
            "Transfer-Encoding:",
            "-H",
            "Expect:",
            "-H",
            "Content-Length:",
        ],
    ] {
        let arguments = [
            "--http2",
            "--data-binary",
            &data,
            "-o",
            &back,
            "-w",
            "%{http_version} %{http_code}",
        ];
        let said = https.curl(
            &[arguments.as_slice(), more].concat(),
            "https://shop.example/",
        );
        assert_eq!(said, "2 200", "{more:?}");
        assert!(
            fs::read(&back).expect("read") == fs::read(&sent).expect("read"),
            "{more:?}: other bytes came back"
        );
    }
}

#[test]
fn answer_before_the_end_of_an_upload_is_not_lost() {
    let https = https("");
    let data = format!("@{}", large_file(https.directory.path()));
    let arguments = [
        "--http2",
        "-A",
        GPTBOT,
        "--data-binary",
        &data,
        "-w",
        " %{http_code}",
    ];
    let said = https.curl(&arguments, "https://shop.example/");
    assert!(
        said.contains("robots.txt") && said.ends_with(" 403"),
        "{said}"
    );
    assert!(https.origin.received().is_empty());
}

#[test]
fn upload_that_has_begun_is_finished_during_a_stop() {
    let origin = echo();
    let mut gate = Setup::before(origin.address).start();
    let http2 = Http2::open(gate.address);
    let mut upload = http2.upload(HOST, "/", &[]);
    upload.send(b"first ", false);
    gate.wait_for_metric("crawlgate_requests_in_flight", 1.0);
    gate.signal("TERM");
    eventually("the listener is closed", || {
        TcpStream::connect(gate.address).is_err().then_some(())
    });
    upload.send(b"second", true);
    let response = upload.response();
    assert_eq!((response.status, response.text()), (200, "first second"));
    http2.end().expect("a goodbye");
    assert_eq!(gate.ended().code(), Some(0));
}

#[test]
fn goodbye_comes_twice_and_the_second_names_the_last_stream() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let mut client = asking(&gate, &SETTINGS, "/", BROWSER);
    client.frame(HEADERS);
    gate.signal("TERM");
    assert_eq!(client.frame(GOAWAY).payload[..4], [0x7f, 0xff, 0xff, 0xff]);
    // h2 waits for the answer to a ping, so that no request that is under way is lost.
    let ping = client.frame(PING).payload;
    client.send_bytes(&[[0, 0, 8, PING, 1, 0, 0, 0, 0].as_slice(), &ping].concat());
    assert_eq!(client.frame(GOAWAY).payload[..4], [0, 0, 0, 1]);
    client.rest();
}

/// A client that is slow to read can send a request into a connection that ends. It learns that
/// nothing was done with it.
#[test]
fn silent_client_gets_the_final_goaway() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { idle: 1s }")
        .start();
    let mut client = asking(&gate, &SETTINGS, "/", BROWSER);
    client.frame(HEADERS);
    assert_eq!(client.frame(GOAWAY).payload[..4], [0x7f, 0xff, 0xff, 0xff]);
    // It does not answer the ping.
    assert_eq!(client.frame(GOAWAY).payload, [0, 0, 0, 1, 0, 0, 0, 0]);
    client.rest();
}

/// An origin that says what came behind the body of its first request, and ends its response with
/// fields.
fn with_trailers() -> (std::net::SocketAddr, std::sync::mpsc::Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (say, said) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut writer = stream.try_clone().expect("a second handle");
            let mut reader = BufReader::new(stream);
            let mut next = || {
                let mut line = String::new();
                reader
                    .read_line(&mut line)
                    .ok()
                    .map(|_| line.trim_end().to_owned())
            };
            let Some(first) = next() else { continue };
            while next().is_some_and(|line| !line.is_empty()) {}
            if first.contains("robots.txt") {
                continue;
            }
            while next().is_some_and(|line| line != "0") {}
            let trailers: Vec<String> =
                std::iter::from_fn(|| next().filter(|line| !line.is_empty())).collect();
            let _ = writer.write_all(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n2\r\nok\r\n0\r\nX-End: 7\r\n\r\n",
            );
            let _ = say.send(trailers);
        }
    });
    (address, said)
}

#[test]
fn trailers_go_both_ways() {
    let (address, said) = with_trailers();
    let gate = Setup::before(address).start();
    let mut upload = Http2::open(gate.address).upload(HOST, "/", &[]);
    upload.send(b"abc", false);
    upload.send_trailers("x-sum", "1");
    let response = upload.response();
    assert_eq!(
        (
            response.status,
            response.text(),
            response.field(&format!("{TRAILER}x-end"))
        ),
        (200, "ok", Some("7"))
    );
    assert_eq!(
        said.recv_timeout(PATIENCE).expect("a request"),
        ["x-sum: 1"]
    );
    // A body with a length goes in chunks if its head says that trailers come.
    let mut upload = Http2::open(gate.address).upload(
        HOST,
        "/",
        &[("content-length", "3"), ("trailer", "x-sum")],
    );
    upload.send(b"abc", false);
    upload.send_trailers("x-sum", "2");
    assert_eq!(upload.response().text(), "ok");
    assert_eq!(
        said.recv_timeout(PATIENCE).expect("a request"),
        ["x-sum: 2"]
    );
}

#[test]
fn http2_requests_are_forwarded_directly() {
    // Only the forwarder refuses it: the length and the coding of a body.
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    );
    for (direct, status) in [("on", 502), ("off", 200)] {
        let gate = Setup::before(origin.address)
            .settings(&format!("direct_forwarding: {direct}"))
            .start();
        let http2 = Http2::open(gate.address);
        assert_eq!(
            http2.get(HOST, "/", &[("te", "trailers")]).status,
            status,
            "{direct}"
        );
        let mut upload = http2.upload(HOST, "/", &[]);
        upload.send(b"abc", true);
        assert_eq!(upload.response().status, status, "{direct}");
    }
}

const PAGE: &str = "<!doctype html><title>Images</title><body><script>
const images = Array.from({ length: 100 }, (_, number) => new Promise(loaded => {
  const image = new Image();
  image.onload = () => loaded(image.naturalWidth);
  image.onerror = () => loaded('broken');
  image.src = '/image/' + number;
  document.body.append(image);
}));
Promise.all(images).then(async widths => {
  const form = new URLSearchParams({ name: 'value', text: 'x'.repeat(50000) });
  const answer = await fetch('/form', { method: 'POST', body: form });
  document.body.innerHTML = '<pre>' + widths.join() + ' ' + await answer.text() + '</pre>';
});
</script>";

fn site(request: &Received, stream: &mut TcpStream) -> bool {
    let (media, body) = match request.target().strip_prefix("/image/") {
        Some(number) => {
            let width = number.parse::<usize>().map_or(1, |number| number + 1);
            let bytes = "x".repeat(width * 100);
            let image = format!(
                "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='1'><!--{bytes}--></svg>"
            );
            ("image/svg+xml", image)
        }
        None if request.target() == "/form" => {
            let sum: u64 = request.body.iter().map(|byte| u64::from(*byte)).sum();
            (
                "text/plain",
                format!("{} bytes, sum {sum}", request.body.len()),
            )
        }
        None => ("text/html", PAGE.to_owned()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(&[head.as_bytes(), body.as_bytes()].concat())
        .is_ok()
}

#[test]
fn browser_gets_100_images_and_posts_a_form() {
    let origin = Origin::start(site);
    let direct = format!("http://{}/", origin.address);
    let https = before(origin.address, "", "logs: { access: access.log }", origin);
    let shown = |name: &str, url: &str| {
        let profile = https.directory.path().join(name);
        let arguments = [
            "--ignore-certificate-errors",
            "--virtual-time-budget=30000",
            "--dump-dom",
        ];
        let dom = String::from_utf8(chromium(&profile, &arguments, url)).expect("UTF-8");
        dom.split_once("<pre>")
            .map(|(_, rest)| rest.to_owned())
            .unwrap_or(dom)
    };
    let expected = shown("direct", &direct);
    assert!(
        expected.starts_with("1,2,3,") && expected.contains("99,100 50016 bytes, sum "),
        "{expected}"
    );
    assert_eq!(
        shown(
            "through",
            &format!("https://127.0.0.1:{}/", https.gate.address.port())
        ),
        expected
    );
    eventually("every request was over HTTP/2", || {
        let log = read(&https.gate.path("access.log"));
        let of = |target: &str| log.lines().filter(|line| line.contains(target)).count();
        assert_eq!(
            log.lines()
                .filter(|line| !line.contains("\"http\":\"2\""))
                .count(),
            0,
            "{log}"
        );
        (of("/image/") == 100 && of("/form") == 1).then_some(())
    });
}
