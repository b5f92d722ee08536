//! Odd heads and spellings through every entry point, with the real programs: crawlgate's own edge over
//! HTTP/1 and HTTP/2, and nginx, Caddy and HAProxy beside the decision service. Whatever a client
//! writes, it gets nothing that the plain request would not: no closed page, and no robots.txt of
//! the origin's own.

use super::{caddy, haproxy, nginx};
use crate::proxy::support::http2::{GOAWAY, HEADERS, PREFACE, SETTINGS};
use crate::proxy::support::{HOST, PATIENCE, Setup};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const SECRET: &[u8] = b"the closed page";
const OWN_FILE: &[u8] = b"the file of the origin";
/// A crawler to which a part of the site is closed, and one with an allow-list.
const POLICY: &str = r#"
hosts: [site.test]
robots:
  origin: replace
  groups:
    - { agents: [GPTBot], disallow: [/private/] }
    - { agents: [CCBot], disallow: [/], allow: [/public/] }
enforcement: { mode: enforce }
"#;

/// Spellings of the closed page that pass, or may, for one of the crawlers if they are compared as
/// sent.
const PAGES: [&str; 24] = [
    "/private/",
    "//private/",
    "/./private/x",
    "/x/../private/",
    "/%2e/private/",
    "/%70rivate/",
    "/private%2fx",
    "/x%2f..%2fprivate%2fx",
    "/private;x/index.html",
    "/;x/private/",
    "/x/..;/private/",
    "/private;%2F../x",
    "/a;%2F..%2F..%2Fprivate/x",
    "/public/../private/",
    "/public/%2e%2e/private/",
    "/public/..%2fprivate/",
    "/public/..;/private/",
    "/public//../private/",
    "/robots.txt/../private/",
    "/robots.txt;x/../private/",
    "/.well-known/tdmrep.json/../../private/",
    "http://site.test/private/",
    "/ok#/../private/x",
    "/public/#/../../private/x",
];

/// Spellings of robots.txt.
const FILES: [&str; 14] = [
    "/robots.txt",
    "/robots.txt?x",
    "//robots.txt",
    "/./robots.txt",
    "/%72obots.txt",
    "/%2frobots.txt",
    "/x/../robots.txt",
    "/x%2f..%2frobots.txt",
    "/robots.txt;x",
    "/;x/robots.txt",
    "/x/..;/robots.txt",
    "/robots.txt/",
    "/robots.txt/.",
    "/robots.txt/x/..",
];

/// Head lines beside those of the plain request.
const LINES: [&[u8]; 24] = [
    b"X-Odd: a\x01b",
    b"X-Odd: a\x7fb",
    b"X-Odd: a\xffb",
    b"X Odd: a",
    b"X-Odd : a",
    b"X-Odd",
    b": a",
    b" folded",
    b"X_Odd: a\r\n\tb",
    b"User-Agent: Firefox/140.0",
    b"Host: x.example",
    b"Referer: http://site.test/\x7f",
    b"Accept: \x01",
    b"Authorization: License \x02",
    b"Signature-Input: \xff=(",
    b"Connection: user-agent",
    b"Connection: x-forwarded-uri, x-forwarded-host, x-original-uri",
    b"X-Forwarded-Uri: /public/",
    b"X-Forwarded-Host: x.example",
    b"X-Original-URI: /public/",
    b"X-Original-Method: OPTIONS",
    b"Expect: 100-continue",
    b"Upgrade: websocket",
    b"Content-Length: 0",
];

/// What may stand in place of the host.
const HOSTS: [&str; 12] = [
    "site.test:abc",
    "site.test:123456",
    "site.test:",
    "site.test:80",
    "site.test:9999",
    "site.test.",
    "SITE.test",
    "a@site.test",
    "site.test/x",
    "site.test,x.example",
    "site.test x",
    "[site.test]",
];

/// What may stand in place of the crawler's name.
const AGENTS: [&[u8]; 7] = [
    b"GPTBot\x7f/1.0",
    b"GPTBot\x01/1.0",
    b"GPTBot\xff/1.0",
    b"\xc3\xa4 GPTBot/1.0",
    b"\tGPTBot/1.0\t",
    b"GPTBot/1.0\x00",
    b"GPTBot/1.0\r\n Firefox",
];

/// A request as bytes.
fn head(line: &str, host: &str, agent: &[u8], lines: &[u8]) -> Vec<u8> {
    let end: &[u8] = if lines.is_empty() { b"" } else { b"\r\n" };
    let first = format!("{line}\r\nHost: {host}\r\nUser-Agent: ");
    [
        first.as_bytes(),
        agent,
        b"\r\n",
        lines,
        end,
        b"Connection: close\r\n\r\n",
    ]
    .concat()
}

fn plain(target: &str, agent: &str) -> Vec<u8> {
    head(
        &format!("GET {target} HTTP/1.1"),
        HOST,
        agent.as_bytes(),
        b"",
    )
}

/// All of them, over HTTP/1.
fn requests() -> Vec<Vec<u8>> {
    const LINE: &str = "GET /private/ HTTP/1.1";
    let spelled = PAGES
        .iter()
        .chain(&FILES)
        .flat_map(|target| [plain(target, "GPTBot/1.0"), plain(target, "CCBot/1.0")]);
    let agents = AGENTS.iter().map(|agent| head(LINE, HOST, agent, b""));
    let hosts = HOSTS
        .iter()
        .map(|host| head(LINE, host, b"GPTBot/1.0", b""));
    let lines = LINES
        .iter()
        .map(|line| head(LINE, HOST, b"GPTBot/1.0", line));
    let large = [16, 60, 100, 300, 900].map(|size| format!("X-Large: {}", "a".repeat(size * 1024)));
    let many = [90, 150, 300].map(|count| vec!["X-Odd: a"; count].join("\r\n"));
    // Each of these is a line of HAProxy's question, of which 101 made it crash.
    let needed = [
        "Accept: text/html",
        "Referer: /a",
        "Signature: a",
        "User-Agent: GPTBot/1.0",
    ];
    let needed = needed.map(|line| vec![line; 97].join("\r\n"));
    let large = large
        .iter()
        .chain(&many)
        .chain(&needed)
        .map(|lines| head(LINE, HOST, b"GPTBot/1.0", lines.as_bytes()));
    // As large as HAProxy takes, and nginx, and larger.
    let long = [4_000, 7_900, 14_000, 15_000, 15_150, 15_200, 15_250, 40_000];
    let long = long.map(|length| plain(&format!("/private/{}", "a".repeat(length)), "GPTBot/1.0"));
    let named = [7_000, 14_900]
        .map(|length| plain("/private/", &format!("GPTBot/1.0 {}", "a".repeat(length))));
    let others = [
        head(
            "GET http://site.test/private/ HTTP/1.1",
            "x.example",
            b"GPTBot/1.0",
            b"",
        ),
        head(
            "GET http://site.test:80/private/ HTTP/1.1",
            HOST,
            b"GPTBot/1.0",
            b"",
        ),
        head("GET private/ HTTP/1.1", HOST, b"GPTBot/1.0", b""),
        head("GET /private/#a HTTP/1.1", HOST, b"GPTBot/1.0", b""),
        head("GET /private/ HTTP/1.0", HOST, b"GPTBot/1.0", b""),
        head("GET /private/ HTTP/2.0", HOST, b"GPTBot/1.0", b""),
        head("GET  /private/ HTTP/1.1", HOST, b"GPTBot/1.0", b""),
        head("get /private/ HTTP/1.1", HOST, b"GPTBot/1.0", b""),
        head(
            "POST /private/ HTTP/1.1",
            HOST,
            b"GPTBot/1.0",
            b"Content-Length: 0",
        ),
        head("GET /private/\x7f HTTP/1.1", HOST, b"GPTBot/1.0", b""),
        head("GET /private/\u{e4} HTTP/1.1", HOST, b"GPTBot/1.0", b""),
        format!(
            "GET /private/ HTTP/1.1\nHost: {HOST}\nUser-Agent: GPTBot/1.0\nConnection: close\n\n"
        )
        .into_bytes(),
    ];
    spelled
        .chain(agents)
        .chain(hosts)
        .chain(lines)
        .chain(large)
        .chain(long)
        .chain(named)
        .chain(others)
        .collect()
}

/// An origin that resolves paths as nginx does and as Tomcat does, and has a page below
/// `/private/`.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || while page(&mut stream).is_some() {});
        }
    });
    address
}

/// Answers one request.
fn page(stream: &mut TcpStream) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head);
    let target = text.split(' ').nth(1)?;
    let stripped: Vec<&str> = target
        .split('/')
        .map(|segment| segment.split(';').next().unwrap_or_default())
        .collect();
    let readings = [resolved(target), resolved(&stripped.join("/"))];
    let body: &[u8] = match () {
        () if readings.iter().any(|path| path.starts_with("private/")) => SECRET,
        () if readings
            .iter()
            .any(|path| path.trim_end_matches('/') == "robots.txt") =>
        {
            OWN_FILE
        }
        () => b"an open page",
    };
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[answer.as_bytes(), body].concat()).ok()
}

/// A path without escapes, doubled slashes and dot segments.
fn resolved(target: &str) -> String {
    let mut path = target
        .split('?')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    for (escape, sign) in [("%2e", "."), ("%2f", "/"), ("%70", "p"), ("%72", "r")] {
        path = path.replace(escape, sign);
    }
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    let end = if path.ends_with('/') { "/" } else { "" };
    format!("{}{end}", segments.join("/"))
}

/// What comes back, until the end of the connection. An entry point may stop listening before it has read
/// all.
fn answer(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = open(address);
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("no end of the answer to {}", shown(request))
        }
        Ok(_) | Err(_) => answer,
    }
}

fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

fn shown(request: &[u8]) -> String {
    let shown = &request[..request.len().min(300)];
    format!("{} bytes: {}", request.len(), shown.escape_ascii())
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(bytes, wanted).is_some()
}

/// Sends all of them to an entry point, some again: what depends on who is faster does not show at once.
fn check(address: SocketAddr, log: impl Fn() -> String) {
    let open = answer(address, &plain("/public/", "GPTBot/1.0"));
    assert!(
        has(&open, b"an open page"),
        "the entry point is closed: {}{}",
        open.escape_ascii(),
        log()
    );
    for request in requests() {
        let rounds = if request.len() > 10_000 { 8 } else { 1 };
        for _ in 0..rounds {
            let answer = answer(address, &request);
            assert!(
                !has(&answer, SECRET) && !has(&answer, OWN_FILE),
                "{}\n{}",
                shown(&request),
                answer.escape_ascii()
            );
        }
    }
    let open = answer(address, &plain("/public/", "GPTBot/1.0"));
    assert!(
        has(&open, b"an open page"),
        "the entry point does not answer: {}{}",
        open.escape_ascii(),
        log()
    );
}

/// The head of a health check.
const HEALTH_CHECK: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

#[test]
fn nothing_odd_passes_crawlgates_own_edge() {
    let gate = Setup::before(origin()).policy("site", POLICY).start();
    check(gate.address, || gate.log.text());
}

#[test]
fn nothing_odd_passes_nginx() {
    let service = Setup::deciding().policy("site", POLICY).start();
    let server = nginx::start(service.address, origin());
    check(server.address, || server.log());
    // nginx takes the name of its server for it.
    let without_host = answer(
        server.address,
        b"GET /private/ HTTP/1.0\r\nUser-Agent: GPTBot/1.0\r\n\r\n",
    );
    assert!(
        !has(&without_host, SECRET),
        "{}",
        without_host.escape_ascii()
    );
    assert!(has(&answer(server.address, HEALTH_CHECK), b"an open page"));
}

#[test]
fn nothing_odd_passes_caddy() {
    let service = Setup::deciding().policy("site", POLICY).start();
    let server = caddy::start(service.address, origin());
    check(server.address, || server.log());
}

#[test]
fn nothing_odd_passes_haproxy() {
    let service = Setup::deciding().policy("site", POLICY).start();
    let server = haproxy::start(service.address, origin());
    check(server.address, || server.log());
    let without_host = answer(
        server.address,
        b"GET /private/ HTTP/1.0\r\nUser-Agent: GPTBot/1.0\r\n\r\n",
    );
    assert!(
        !has(&without_host, SECRET),
        "{}",
        without_host.escape_ascii()
    );
    assert!(has(&answer(server.address, HEALTH_CHECK), b"an open page"));
}

/// A request over HTTP/2: pseudo fields and fields as they are written, without indexing (RFC 7541
/// section 6.2.2).
fn http2_request(target: &str, host: &str, agent: &[u8], more: &[(&[u8], &[u8])]) -> Vec<u8> {
    let fields: [(&[u8], &[u8]); 5] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", host.as_bytes()),
        (b":path", target.as_bytes()),
        (b"user-agent", agent),
    ];
    let mut block = Vec::new();
    for (name, value) in fields.iter().chain(more) {
        block.push(0);
        for text in [name, value] {
            block.push(
                u8::try_from(text.len())
                    .ok()
                    .filter(|length| *length < 127)
                    .expect("a short text"),
            );
            block.extend_from_slice(text);
        }
    }
    let length = u32::try_from(block.len())
        .expect("a short block")
        .to_be_bytes();
    let frame = [&length[1..], &[HEADERS, 0x05, 0, 0, 0, 1], &block].concat();
    [PREFACE, &SETTINGS, &frame].concat()
}

/// The bytes of all frames up to the end of the stream.
fn http2_answer(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    const RST_STREAM: u8 = 3;
    const END_STREAM: u8 = 1;
    let mut stream = open(address);
    stream.write_all(request).expect("the entry point listens");
    let mut answer = Vec::new();
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return answer;
        }
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        if stream.read_exact(&mut payload).is_err() {
            return answer;
        }
        answer.extend_from_slice(&payload);
        let is_last = matches!(head[3], 0 | HEADERS) && head[4] & END_STREAM != 0;
        if is_last || matches!(head[3], RST_STREAM | GOAWAY) {
            return answer;
        }
    }
}

#[test]
fn nothing_odd_passes_crawlgates_own_edge_over_http_2() {
    let gate = Setup::before(origin()).policy("site", POLICY).start();
    let open = http2_answer(
        gate.address,
        &http2_request("/public/", HOST, b"GPTBot/1.0", &[]),
    );
    assert!(has(&open, b"an open page"), "{}", open.escape_ascii());
    let spelled = PAGES
        .iter()
        .chain(&FILES)
        .filter(|target| target.starts_with('/'))
        .flat_map(|target| {
            [b"GPTBot/1.0", b"CCBot/1.00"].map(|agent| http2_request(target, HOST, agent, &[]))
        });
    let agents = AGENTS
        .iter()
        .map(|agent| http2_request("/private/", HOST, agent, &[]));
    let lines = LINES.iter().filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = line[..colon].to_ascii_lowercase();
        if name == b"host" {
            return None;
        }
        Some(http2_request(
            "/private/",
            HOST,
            b"GPTBot/1.0",
            &[(&name, line[colon + 1..].trim_ascii())],
        ))
    });
    for request in spelled.chain(agents).chain(lines) {
        let answer = http2_answer(gate.address, &request);
        assert!(
            !has(&answer, SECRET) && !has(&answer, OWN_FILE),
            "{}\n{}",
            shown(&request),
            answer.escape_ascii()
        );
    }
}
