//! The real binary before a real nginx: what a site is made of passes unharmed, with the policy
//! attached and held to.

use crate::proxy::support::nginx::{LARGE, Nginx};
use crate::proxy::support::{GPTBOT, Gate, HOST, PATIENCE, Setup};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const POLICY: &str = r#"
purposes: { training: disallow }
robots:
  origin: replace
  groups:
    - agents: ["*"]
      disallow: [/private/]
indexing:
  - types: [application/pdf]
    tag: [noindex, noarchive]
  - types: ["image/*"]
    tags: { "*": noimageindex, googlebot: [nofollow, noimageindex] }
  - status: [404]
    tag: noindex
enforcement: { mode: enforce }
"#;

fn gate(nginx: &Nginx) -> Gate {
    Setup::before(nginx.address).policy("site", POLICY).start()
}

#[test]
fn a_page_passes_unchanged_and_without_a_tag() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    let response = gate.fetch("/index.html");
    assert_eq!(response.status, 200);
    assert_eq!(response.field("content-type"), Some("text/html"));
    assert_eq!(response.fields("x-robots-tag"), Vec::<&str>::new());
    assert!(response.text().contains("<h1>Home</h1>"));
    assert!(
        response.field("etag").is_some(),
        "the origin's validators are kept"
    );
}

#[test]
fn a_pdf_and_an_image_get_their_tags_one_line_a_scope() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    assert_eq!(
        gate.fetch("/report.pdf").fields("x-robots-tag"),
        ["noindex, noarchive"]
    );
    let image = gate.fetch("/picture.png");
    assert_eq!(image.body, b"\x89PNG\r\n\x1a\n");
    assert_eq!(
        image.fields("x-robots-tag"),
        ["noimageindex", "googlebot: nofollow, noimageindex"]
    );
}

#[test]
fn tags_of_the_origin_are_merged_with_the_policy_s() {
    let nginx = Nginx::start(None);
    let policy = format!("{POLICY}\norigin_tags: merge\n").replace(
        "  - status: [404]",
        "  - paths: [/tagged.html]\n    tags: { googlebot: noindex }\n  - status: [404]",
    );
    let gate = Setup::before(nginx.address).policy("site", &policy).start();
    assert_eq!(
        gate.fetch("/tagged.html").fields("x-robots-tag"),
        ["noarchive", "googlebot: noindex, nofollow"]
    );
}

#[test]
fn tag_condition_on_status_sees_redirects_and_404() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    let redirect = gate.fetch("/old");
    assert_eq!(redirect.status, 301);
    assert!(
        redirect
            .field("location")
            .is_some_and(|to| to.ends_with("/index.html"))
    );
    let missing = gate.fetch("/nothing.html");
    assert_eq!(missing.status, 404);
    assert_eq!(missing.fields("x-robots-tag"), ["noindex"]);
}

#[test]
fn a_large_download_arrives_whole() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    let response = gate.fetch("/large.bin");
    assert_eq!(response.body.len(), LARGE);
    assert!(
        response
            .body
            .iter()
            .enumerate()
            .all(|(index, byte)| *byte == (index % 251) as u8)
    );
}

#[test]
fn a_range_of_a_file_passes() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    let response = gate.get(HOST, "/large.bin", "Range: bytes=100-199\r\n");
    assert_eq!(response.status, 206);
    assert_eq!(response.body.len(), 100);
}

#[test]
fn an_upload_reaches_the_origin_whole() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    let body = vec![b'x'; 3 * 1024 * 1024];
    let mut connection = gate.connect();
    connection.send(&format!(
        "POST /upload HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    connection.send_bytes(&body);
    assert_eq!(
        connection.final_response("POST").text(),
        body.len().to_string()
    );
}

/// Pingora 0.9.1 tears an upgraded connection down when the origin's 101 overtakes the end of the
/// request (pingora issue 946), which on a busy machine happens now and then: one tunnel of five
/// tries is what is asked here.
#[test]
fn a_websocket_upgrade_becomes_a_tunnel() {
    let backend = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nginx = Nginx::start(Some(backend.local_addr().expect("its address")));
    std::thread::spawn(move || backend.incoming().flatten().for_each(echo_after_upgrade));
    let gate = gate(&nginx);
    assert!(
        (0..5).any(|_| tunnel(&gate) == Some(*b"ping")),
        "no tunnel in five tries"
    );
}

fn echo_after_upgrade(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    assert!(
        String::from_utf8_lossy(&head)
            .to_lowercase()
            .contains("upgrade: websocket")
    );
    let _ = stream
        .write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nwelcome");
    let mut message = [0; 4];
    if stream.read_exact(&mut message).is_ok() {
        let _ = stream.write_all(&message);
    }
}

/// What comes back through an upgraded connection; nothing where it was torn down.
fn tunnel(gate: &Gate) -> Option<[u8; 4]> {
    let mut client = TcpStream::connect(gate.address).expect("crawlgate accepts");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    client
        .write_all(
            b"GET /socket HTTP/1.1\r\nHost: site.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        )
        .expect("the request is sent");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 101"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    // What the origin says right behind its 101 is the tunnel's already.
    let mut greeting = [0; 7];
    client.read_exact(&mut greeting).ok()?;
    assert_eq!(&greeting, b"welcome");
    client.write_all(b"ping").ok()?;
    let mut echo = [0; 4];
    client.read_exact(&mut echo).ok()?;
    Some(echo)
}

#[test]
fn a_refused_crawler_never_reaches_the_origin_and_is_counted() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    let response = gate.fetch_as(GPTBOT, "/index.html?refused");
    assert_eq!(response.status, 403);
    assert_eq!(response.field("cache-control"), Some("no-store"));
    assert!(
        response.text().contains("/robots.txt"),
        "it says where the rules are"
    );
    assert_eq!(gate.fetch("/index.html?passed").status, 200);
    let requests = nginx.requests();
    assert!(requests.iter().any(|path| path.ends_with("?passed")));
    assert!(!requests.iter().any(|path| path.ends_with("?refused")));
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="block",crawler="gptbot",kind="unproven",site="site"}"#,
        1.0,
    );
}

#[test]
fn robots_txt_is_the_policy_s_not_the_origin_s() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    for path in ["/robots.txt", "/robots.txt?x=1"] {
        let response = gate.fetch_as(GPTBOT, path);
        assert_eq!(response.status, 200);
        assert_eq!(
            response.field("content-type"),
            Some("text/plain; charset=utf-8")
        );
        assert!(response.text().contains("Disallow: /private/"));
        assert!(
            !response.text().contains("/about.html"),
            "the origin's rule is replaced"
        );
    }
}

#[test]
fn the_origin_learns_who_asked() {
    let nginx = Nginx::start(None);
    let gate = gate(&nginx);
    assert_eq!(
        gate.fetch("/forwarded").text(),
        format!("127.0.0.1|http|{HOST}|{HOST}")
    );
    // Nobody declared the peer a trusted proxy: what it claims is replaced, not extended.
    let forged = gate.get(HOST, "/forwarded", "X-Forwarded-For: 192.0.2.1\r\n");
    assert!(forged.text().starts_with("127.0.0.1|"), "{}", forged.text());
}
