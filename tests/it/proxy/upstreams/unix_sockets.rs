//! Servers on Unix sockets, on both ways.

use crate::proxy::support::{HOST, Origin, Setup, eventually, sum_of};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const WAYS: [&str; 2] = ["on", "off"];

/// Answers each request with its body, and counts connections.
fn serve(path: &Path) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(path).expect("a socket");
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || answer_each(stream));
        }
    });
    connections
}

fn answer_each(mut writer: UnixStream) -> Option<()> {
    let mut reader = BufReader::new(writer.try_clone().ok()?);
    loop {
        let (mut target, mut length, mut line) = (String::new(), 0, String::new());
        while reader.read_line(&mut line).ok()? > 0 && line != "\r\n" {
            if target.is_empty() {
                target = line.split(' ').nth(1)?.to_owned();
            }
            let field = line.to_ascii_lowercase();
            length = field
                .strip_prefix("content-length: ")
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(length);
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        if target == "/robots.txt" {
            body = b"User-agent: *\nDisallow: /theirs/\n".to_vec();
        }
        write!(
            writer,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .ok()?;
        writer.write_all(&body).ok()?;
    }
}

fn setup(direct: &str, servers: &str) -> Setup {
    Setup::before("")
        .with_origins(&format!(
            "origins: {{ servers: [{servers}], ejection: off }}"
        ))
        .settings(&format!("direct_forwarding: {direct}\nthreads: 1"))
}

#[test]
fn requests_and_robots_txt_go_over_one_kept_connection_each() {
    for direct in WAYS {
        let setup = setup(direct, "'unix:app.sock'").policy(
            "site",
            "robots: { origin: merge, groups: { agents: '*', disallow: /ours/ } }\n",
        );
        let connections = serve(&setup.policies().with_file_name("app.sock"));
        let gate = setup.start();
        eventually("the origin's rules", || {
            let answer = gate.get(HOST, "/robots.txt", "");
            (answer.status == 200 && answer.text().contains("/theirs/")).then_some(())
        });
        let before = connections.load(Ordering::SeqCst);
        let mut connection = gate.connect();
        for _ in 0..3 {
            connection.send(&format!(
                "POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 3\r\n\r\nabc"
            ));
            let response = connection.response("POST");
            assert_eq!(
                (response.status, response.text()),
                (200, "abc"),
                "direct_forwarding: {direct}"
            );
        }
        assert_eq!(
            connections.load(Ordering::SeqCst) - before,
            1,
            "direct_forwarding: {direct}"
        );
    }
}

#[test]
fn missing_socket_costs_no_request() {
    for direct in WAYS {
        let other = Origin::plain();
        let both = setup(
            direct,
            &format!("'unix:gone.sock', 'http://{}'", other.address),
        )
        .start();
        (0..4).for_each(|_| {
            assert_eq!(
                both.ask("DELETE", HOST, "/", "").status,
                200,
                "direct_forwarding: {direct}"
            )
        });
        assert!(
            sum_of(&both.metrics(), "crawlgate_upstream_retries_total") >= Some(2.0),
            "direct_forwarding: {direct}"
        );
        let alone = setup(direct, "'unix:gone.sock'").start();
        assert_eq!(
            alone.get(HOST, "/", "").status,
            502,
            "direct_forwarding: {direct}"
        );
        let shown = String::from_utf8(alone.command(&["status"]).stdout).expect("text");
        assert!(
            shown.contains("gone.sock"),
            "direct_forwarding: {direct}: {shown}"
        );
    }
}

#[test]
fn too_long_socket_path_is_an_error_in_its_place() {
    let (said, code) = setup("on", &format!("'unix:{}.sock'", "a".repeat(100))).fail();
    assert!(
        !code.success() && said.contains("bad-origin") && said.contains("crawlgate.yaml:2:22"),
        "{said}"
    );
}
