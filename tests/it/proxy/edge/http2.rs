//! HTTP/2 with prior knowledge on the plain listener: every answer is that of HTTP/1.1, whatever it
//! is about, and clients that misbehave harm nobody.

use crate::proxy::support::http2::{GOAWAY, HEADERS, PREFACE, SETTINGS, TRAILER};
use crate::proxy::support::kinds::{self, tagged};
use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::{
    BINGBOT, BROWSER, GPTBOT, Gate, HOST, Http2, Origin, PATIENCE, Response, Setup, eventually,
    read,
};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Fields that speak of a connection, which HTTP/2 has none of (RFC 9113 section 8.2.2), and the
/// time.
const OF_THE_CONNECTION: [&str; 6] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
    "date",
];

fn fields(response: &Response) -> Vec<(String, String)> {
    let mut fields: Vec<_> = response
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| !OF_THE_CONNECTION.contains(&name.as_str()))
        // Clients of HTTP/1.1 get none.
        .filter(|(name, _)| name != "trailer" && !name.starts_with(TRAILER))
        .collect();
    // In any order, but for lines of one name.
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}

/// Asks in both versions for the same; what comes must be the same.
fn both(
    gate: &Gate,
    http2: &Http2,
    method: &str,
    target: &str,
    asked: &[(&str, &str)],
) -> Response {
    let lines: String = asked
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let before = gate.ask(method, HOST, target, &lines);
    let response = http2.ask(method, HOST, target, asked);
    assert_eq!(response.version, "HTTP/2.0");
    assert_eq!(response.status, before.status, "{method} {target}");
    let ids =
        [&response, &before].map(|response| response.field("x-request-id").map(str::to_owned));
    let own = |response: &Response, id: &Option<String>| {
        let mut fields = fields(response);
        fields.retain(|(name, _)| name != "x-request-id");
        let body = String::from_utf8_lossy(&response.body).into_owned();
        (
            fields,
            id.as_ref()
                .map_or(body.clone(), |id| body.replace(id.as_str(), "its id")),
        )
    };
    let (own, befores) = (own(&response, &ids[0]), own(&before, &ids[1]));
    assert_eq!(own.0, befores.0, "{method} {target}");
    assert!(own.1 == befores.1, "{method} {target}: another body");
    assert_eq!(ids[0].is_some(), ids[1].is_some(), "{method} {target}");
    for name in OF_THE_CONNECTION.iter().filter(|name| **name != "date") {
        assert_eq!(response.field(name), None, "{method} {target}");
    }
    assert_eq!(response.fields("date").len(), 1);
    response
}

/// The lines of the access log, when there are so many.
fn access_log(gate: &Gate, lines: usize) -> Vec<serde_json::Value> {
    eventually("the access log is written", || {
        let log: Vec<_> = read(&gate.path("access.log"))
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        (log.len() >= lines).then_some(log)
    })
}

const ENFORCED: &str = r#"
robots:
  origin: replace
  groups:
    - { agents: ["*"], disallow: [/cart/] }
    - { agents: [GPTBot], disallow: [/] }
    - { agents: [bingbot], disallow: [/cart/], crawl_delay: 1h }
enforcement: { mode: enforce }
indexing:
  - { paths: [/], status: [403, 429, 503], tag: noindex }
"#;

#[test]
fn answers_of_crawlgate_itself_are_those_of_http_1() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("site", ENFORCED)
        .settings("logs: { access: access.log }")
        .start();
    let http2 = Http2::open(gate.address);

    let robots = both(
        &gate,
        &http2,
        "GET",
        "/robots.txt",
        &[("user-agent", GPTBOT)],
    );
    assert_eq!(robots.status, 200);
    assert!(
        robots.text().contains("User-agent: GPTBot\nDisallow: /\n"),
        "{}",
        robots.text()
    );
    let head = both(
        &gate,
        &http2,
        "HEAD",
        "/robots.txt?x",
        &[("user-agent", GPTBOT)],
    );
    assert_eq!(
        (head.status, head.field("content-length")),
        (200, robots.field("content-length"))
    );
    let etag = robots.field("etag").expect("one").to_owned();
    let fresh = both(
        &gate,
        &http2,
        "GET",
        "/robots.txt",
        &[("if-none-match", etag.as_str())],
    );
    assert_eq!((fresh.status, fresh.body.len()), (304, 0));
    assert_eq!(both(&gate, &http2, "POST", "/robots.txt", &[]).status, 405);

    for (accept, kind) in [
        ("", "text/plain"),
        ("text/html", "text/html"),
        ("application/json", "application/json"),
    ] {
        let refused = both(
            &gate,
            &http2,
            "GET",
            "/page",
            &[("user-agent", GPTBOT), ("accept", accept)],
        );
        assert_eq!(
            (refused.status, tagged(&refused)),
            (403, "noindex".to_owned())
        );
        assert!(
            refused
                .field("content-type")
                .is_some_and(|media| media.starts_with(kind)),
            "{:?}",
            refused.headers
        );
        assert!(
            refused.text().contains("Disallow: /") && refused.text().contains("GPTBot"),
            "{}",
            refused.text()
        );
        assert_eq!(refused.field("cache-control"), Some("no-store"));
    }
    assert_eq!(
        both(&gate, &http2, "HEAD", "/page", &[("user-agent", GPTBOT)]).status,
        403
    );

    // Who was shown the pace over HTTP/2 is held to it.
    assert_eq!(
        http2
            .get(HOST, "/robots.txt", &[("user-agent", BINGBOT)])
            .status,
        200
    );
    gate.wait_for_metric(
        "crawlgate_robots_txt_total{crawler=\"bingbot\",site=\"site\",status=\"200\"}",
        1.0,
    );
    assert_eq!(
        http2.get(HOST, "/a", &[("user-agent", BINGBOT)]).status,
        200
    );
    let slower = http2.get(HOST, "/b", &[("user-agent", BINGBOT)]);
    assert_eq!(
        (slower.status, tagged(&slower)),
        (429, "noindex".to_owned())
    );
    assert!(slower.field("retry-after").is_some());

    assert!(gate.command(&["pause", "--for", "10m"]).status.success());
    let paused = http2.get(HOST, "/", &[("user-agent", BINGBOT)]);
    assert_eq!(
        (paused.status, tagged(&paused)),
        (503, "noindex".to_owned())
    );
    assert!(paused.field("retry-after").is_some());
    assert_eq!(
        http2
            .get(HOST, "/robots.txt", &[("user-agent", BINGBOT)])
            .status,
        200,
        "a pause does not hide the rules"
    );
    assert_eq!(http2.get(HOST, "/", &[("user-agent", BROWSER)]).status, 200);

    // All that went over one connection; the log says in which version.
    let log = access_log(&gate, 20);
    let versions = |status: u64| -> BTreeSet<String> {
        let lines = log.iter().filter(|line| line["status"] == status);
        lines
            .map(|line| line["http"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        versions(403),
        BTreeSet::from(["1.1".to_owned(), "2".to_owned()])
    );
    assert_eq!(versions(429), BTreeSet::from(["2".to_owned()]));
    // Counted under the same names, whatever the version.
    gate.wait_for_metric(
        "crawlgate_requests_total{action=\"block\",crawler=\"gptbot\",kind=\"unproven\",site=\"site\"}",
        8.0,
    );
    assert!(
        gate.metrics().contains(
            "crawlgate_robots_txt_total{crawler=\"gptbot\",site=\"site\",status=\"200\"} "
        )
    );
}

#[test]
fn every_kind_of_answer_of_an_origin_is_tagged_as_over_http_1() {
    let origin = kinds::origin();
    let gate = Setup::before(origin.address)
        .policy("site", kinds::POLICY)
        .start();
    let http2 = Http2::open(gate.address);
    for (method, target, status, lines) in kinds::CASES {
        let response = both(&gate, &http2, method, target, &[("user-agent", BROWSER)]);
        assert_eq!(
            (response.status, tagged(&response)),
            (status, lines.to_owned()),
            "{method} {target}"
        );
    }
    // A person's copy: what is confirmed could be of a type that has a tag.
    let fresh = both(
        &gate,
        &http2,
        "GET",
        "/typed",
        &[("user-agent", BROWSER), ("if-none-match", "\"1\"")],
    );
    assert_eq!((fresh.status, tagged(&fresh)), (304, String::new()));
    // What is said before the answer does not take its place.
    let response = http2.get(HOST, "/hints", &[]);
    assert_eq!(
        (response.status, response.text(), tagged(&response)),
        (200, "abc", "max-snippet: 20".to_owned())
    );
}

#[test]
fn files_of_a_real_server_are_served_as_over_http_1() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", kinds::POLICY)
        .start();
    let http2 = Http2::open(gate.address);
    for (method, target, asked, status, lines) in kinds::CASES_OF_NGINX {
        let response = both(
            &gate,
            &http2,
            method,
            target,
            &[asked, ("user-agent", BROWSER)],
        );
        assert_eq!(
            (response.status, tagged(&response)),
            (status, lines.to_owned()),
            "{method} {target}"
        );
    }
    let etag = http2
        .get(HOST, "/report.pdf", &[])
        .field("etag")
        .expect("nginx sends one")
        .to_owned();
    let fresh = both(
        &gate,
        &http2,
        "GET",
        "/report.pdf",
        &[("user-agent", BROWSER), ("if-none-match", etag.as_str())],
    );
    assert_eq!(
        (fresh.status, fresh.body.len(), tagged(&fresh)),
        (304, 0, String::new())
    );
}

#[test]
fn pages_are_rewritten_as_over_http_1() {
    const PAGE: &str =
        "<!doctype html><html><head><title>t</title></head><body><p>x</p></body></html>";
    let origin = Origin::start(|request, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nETag: \"abc\"\r\nAccept-Ranges: bytes\r\n\
             X-Robots-Tag: googlebot: nofollow\r\nContent-Length: {}\r\n\r\n",
            PAGE.len()
        );
        if request
            .field("if-none-match")
            .is_some_and(|etags| etags.contains("\"abc\""))
        {
            return stream
                .write_all(b"HTTP/1.1 304 Not Modified\r\nETag: \"abc\"\r\n\r\n")
                .is_ok();
        }
        let body = if request.line.starts_with("HEAD") {
            ""
        } else {
            PAGE
        };
        stream.write_all(head.as_bytes()).is_ok() && stream.write_all(body.as_bytes()).is_ok()
    });
    let policy =
        "robots: { origin: replace }\nindexing: { paths: [/drafts/], tag: noindex }\nhtml: meta\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let http2 = Http2::open(gate.address);
    let page = both(
        &gate,
        &http2,
        "GET",
        "/drafts/a",
        &[("accept-encoding", "gzip"), ("range", "bytes=0-3")],
    );
    assert_eq!(
        (page.status, tagged(&page)),
        (200, "noindex | googlebot: nofollow".to_owned())
    );
    let metas =
        "<meta name=\"robots\" content=\"noindex\"><meta name=\"googlebot\" content=\"nofollow\">";
    assert_eq!(
        page.text(),
        PAGE.replace("</head>", &format!("{metas}</head>"))
    );
    assert_eq!(
        (page.field("content-length"), page.field("etag")),
        (None, Some("W/\"abc\""))
    );
    assert_eq!(origin.last().field("accept-encoding"), Some("identity"));
    let head = both(&gate, &http2, "HEAD", "/drafts/a", &[]);
    assert_eq!(
        (
            head.field("content-length"),
            head.field("etag"),
            head.body.len()
        ),
        (None, Some("W/\"abc\""), 0)
    );
    let fresh = both(
        &gate,
        &http2,
        "GET",
        "/drafts/a",
        &[("user-agent", BROWSER), ("if-none-match", "W/\"abc\"")],
    );
    assert_eq!(
        (fresh.status, fresh.field("etag")),
        (304, Some("W/\"abc\""))
    );
}

#[test]
fn the_origin_is_asked_as_over_http_1() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("trusted_proxies: [127.0.0.1]")
        .start();
    let http2 = Http2::open(gate.address);
    let crumbs = [
        ("cookie", "a=1"),
        ("x-own", "1"),
        ("cookie", "b=2; c=3"),
        ("cookie", "d=4"),
    ];
    assert_eq!(
        http2
            .get("Shop.Example:8080", "/a%2Fb?c=d&e", &crumbs)
            .status,
        200
    );
    let asked = origin.last();
    assert_eq!(asked.line, "GET /a%2Fb?c=d&e HTTP/1.1");
    let of = |name: &str| -> Vec<&str> {
        let lines = asked
            .headers
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(of("host"), ["Shop.Example:8080"]);
    assert_eq!(of("cookie"), ["a=1; b=2; c=3; d=4"]);
    assert_eq!(of("x-own"), ["1"]);
    assert_eq!(of("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(of("x-forwarded-proto"), ["http"]);
    assert_eq!(of("x-forwarded-host"), ["Shop.Example:8080"]);
    assert_eq!(of("transfer-encoding"), [""; 0]);
    // A proxy in front that is trusted and ends TLS says so.
    http2.get(
        HOST,
        "/",
        &[
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-proto", "https"),
        ],
    );
    let asked = origin.last();
    assert_eq!(
        asked.field("x-forwarded-for"),
        Some("203.0.113.7, 127.0.0.1")
    );
    assert_eq!(asked.field("x-forwarded-proto"), Some("https"));
    assert_eq!(http2.ask("OPTIONS", HOST, "/", &[]).status, 200);
}

#[test]
fn malformed_stream_is_refused_alone() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { target: 1KiB, headers: 4KiB }")
        .start();
    let http2 = Http2::open(gate.address);
    assert_eq!(
        http2
            .get(HOST, &format!("/{}", "a".repeat(1_025)), &[])
            .status,
        414
    );
    let large = "a".repeat(4_100);
    let refused = http2.get(HOST, "/", &[("x-large", large.as_str())]);
    assert_eq!(refused.status, 431);
    assert_eq!(http2.ask("TRACE", HOST, "/", &[]).status, 405);
    let connected = http2
        .begin("CONNECT", "shop.example:443", &[], None)
        .wait()
        .expect("a response");
    assert_eq!(connected.status, 405);
    // Two names for the host that are not one name, and a name that hides another.
    assert_eq!(
        http2.get("a.example", "/", &[("host", "b.example")]).status,
        400
    );
    assert_eq!(http2.get("user@a.example", "/", &[]).status, 400);
    assert!(
        http2
            .begin("GET", "http://a.example/", &[("te", "gzip")], None)
            .wait()
            .is_err()
    );
    assert_eq!(origin.received().len(), 0, "{:?}", origin.received());
    assert_eq!(
        http2.get("a.example", "/", &[("host", "a.example")]).status,
        200,
        "the connection goes on"
    );
    assert_eq!(origin.last().field("host"), Some("a.example"));

    // Without a host in either way; and with the one that HTTP/1 has. (:method GET, :scheme http,
    // :path /, host.)
    let mut raw = gate.connect();
    raw.send_bytes(PREFACE);
    raw.send_bytes(&SETTINGS);
    raw.send_headers(1, b"\x82\x86\x84");
    let response = raw.frame(HEADERS);
    assert_eq!(
        (response.stream, response.payload[0]),
        (1, 0x8c),
        "400 of the static table"
    );
    raw.send_headers(3, b"\x82\x86\x84\x0f\x17\x09c.example");
    let response = raw.frame(HEADERS);
    assert_eq!(
        (response.stream, response.payload[0]),
        (3, 0x88),
        "200 of the static table"
    );
    assert_eq!(origin.last().field("host"), Some("c.example"));
}

#[test]
fn bodies_go_whole_in_both_directions() {
    let origin = Origin::start(|request, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            request.body.len()
        );
        stream.write_all(head.as_bytes()).is_ok() && stream.write_all(&request.body).is_ok()
    });
    let gate = Setup::before(origin.address).start();
    let http2 = Http2::open(gate.address);
    // More than the windows and buffers of a stream and of a connection, with and without a length
    // said before.
    let body = |seed: usize, length: usize| -> Vec<u8> {
        (0..length)
            .map(|place| ((place * seed) % 251) as u8)
            .collect()
    };
    let sent: Vec<_> = (1..=6_usize)
        .map(|number| {
            let body = body(number, 600_000 * number);
            let length = body.len().to_string();
            let fields = [("content-length", length.as_str())];
            let fields = if number % 2 == 0 {
                fields.as_slice()
            } else {
                &[]
            };
            (
                body.clone(),
                http2.begin(
                    "PUT",
                    &format!("http://{HOST}/{number}"),
                    fields,
                    Some(body),
                ),
            )
        })
        .collect();
    for (body, response) in sent {
        let response = response.wait().expect("a response");
        assert!(
            response.status == 200 && response.body == body,
            "{} bytes of {}",
            response.body.len(),
            body.len()
        );
    }
}

/// The connections that requests came on, in their order.
fn connections() -> (Origin, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let origin = Origin::start({
        let seen = seen.clone();
        move |request, stream| {
            if !request.is_own() {
                let peer = stream.peer_addr().expect("an address");
                seen.lock().expect("nobody panics").push(format!(
                    "{} {}",
                    request.line,
                    peer.port()
                ));
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .is_ok()
        }
    });
    (origin, seen)
}

#[test]
fn a_body_that_ends_in_an_empty_frame_ends_once() {
    let (origin, seen) = connections();
    let gate = Setup::before(origin.address)
        .argument("--threads")
        .argument("1")
        .start();
    let http2 = Http2::open(gate.address);
    for (pieces, whole) in [
        ([b"abc".as_slice(), b"def", b""], "abcdef"),
        ([b"", b"", b""], ""),
    ] {
        let mut upload = http2.upload(HOST, "/upload", &[]);
        for (number, piece) in pieces.into_iter().enumerate() {
            upload.send(piece, number == 2);
        }
        assert_eq!(upload.response().status, 200);
        assert_eq!(String::from_utf8_lossy(&origin.last().body), whole);
        // A second end of the body would be the beginning of the next request on this connection.
        assert_eq!(http2.get(HOST, "/next", &[]).status, 200);
    }
    let mut upload = http2.upload(HOST, "/upload", &[]);
    upload.send(b"abc", false);
    upload.send_trailers("x-sum", "1");
    assert_eq!(upload.response().status, 200);
    assert_eq!(http2.get(HOST, "/next", &[]).status, 200);
    let seen = seen.lock().expect("nobody panics").clone();
    let ports: BTreeSet<_> = seen
        .iter()
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!(
        (seen.len(), ports.len()),
        (6, 1),
        "one connection of the origin is used again and again: {seen:?}"
    );
    for (number, line) in seen.iter().enumerate() {
        assert!(
            line.starts_with(["POST /upload ", "GET /next "][number % 2]),
            "{seen:?}"
        );
    }
}

#[test]
fn an_upload_to_who_is_refused_and_one_that_stalls_end() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("site", ENFORCED)
        .settings("limits: { stall: 1s }")
        .start();
    let http2 = Http2::open(gate.address);
    let refused = http2.begin(
        "POST",
        &format!("http://{HOST}/"),
        &[("user-agent", GPTBOT)],
        Some(vec![0; 4_000_000]),
    );
    assert_eq!(refused.wait().expect("a response").status, 403);
    let mut stalled = http2.upload(HOST, "/upload", &[]);
    stalled.send(b"the rest never comes", false);
    assert_eq!(stalled.response().status, 408);
    assert_eq!(http2.get(HOST, "/", &[]).status, 200);
}

#[test]
fn broken_response_resets_its_stream_alone() {
    let origin = Origin::start(|request, stream| match request.target() {
        "/short" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
            false
        }
        // As long as its head is not over, all of it is held.
        "/page" => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\n<title>t</title>");
            false
        }
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
            while stream.write_all(&[b'x'; 65_536]).is_ok() {}
            false
        }
        _ => stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .is_ok(),
    });
    let policy =
        "robots: { origin: replace }\nindexing: { paths: /page, tag: noindex }\nhtml: meta\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let http2 = Http2::open(gate.address);
    for target in ["short", "page"] {
        assert!(
            http2
                .begin("GET", &format!("http://{HOST}/{target}"), &[], None)
                .wait()
                .is_err(),
            "{target}"
        );
    }
    let endless = http2.upload(HOST, "/endless", &[]);
    assert_eq!(http2.get(HOST, "/", &[]).status, 200, "beside it");
    endless.reset();
    gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
    assert_eq!(http2.get(HOST, "/", &[]).status, 200);
}

/// Policies that differ in rule and tag at once: an answer that was made of two of them would show
/// one of each.
fn version(number: usize) -> String {
    format!(
        "robots: {{ origin: replace, groups: [{{ agents: ['*'], disallow: [/version-{number}/] }}] }}\n\
         indexing: [{{ paths: [/], tag: \"max-snippet: {number}\" }}]\nhtml: meta\n"
    )
}

/// An origin that answers when it is told to, and says when it was asked.
fn held() -> (Origin, Receiver<String>, Sender<()>) {
    let (asked, was_asked) = channel();
    let (answer, may_answer) = channel::<()>();
    let may_answer = Arc::new(Mutex::new(may_answer));
    let origin = Origin::start(move |request, stream| {
        if request.target().starts_with("/slow") {
            let _ = asked.send(request.target().to_owned());
            let _ = may_answer.lock().map(|may_answer| may_answer.recv());
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 26\r\n\r\n<head></head><p>hello</p>\r\n")
            .is_ok()
    });
    (origin, was_asked, answer)
}

#[test]
fn each_of_many_streams_is_of_one_version_of_the_policy() {
    let (origin, was_asked, answer) = held();
    let gate = Setup::before(origin.address)
        .policy("site", &version(0))
        .start();
    let http2 = Http2::open(gate.address);
    let uri = |target: &str| format!("http://{HOST}{target}");
    let begun_before = http2.begin("GET", &uri("/slow"), &[], None);
    was_asked
        .recv_timeout(PATIENCE)
        .expect("the origin is asked");
    let mut versions = BTreeSet::new();
    for round in 1..=10 {
        let streams: Vec<_> = (0..60)
            .map(|number| {
                http2.begin(
                    "GET",
                    &uri(if number % 2 == 0 {
                        "/robots.txt"
                    } else {
                        "/page"
                    }),
                    &[],
                    None,
                )
            })
            .collect();
        gate.write_policy("site", &version(round));
        assert!(gate.command(&["reload"]).status.success());
        for (number, stream) in streams.into_iter().enumerate() {
            let response = stream.wait().expect("a response");
            assert_eq!(response.status, 200);
            let tag = tagged(&response);
            let of = tag
                .strip_prefix("max-snippet: ")
                .expect("one tag")
                .to_owned();
            let proof = if number % 2 == 0 {
                format!("Disallow: /version-{of}/\n")
            } else {
                format!("<meta name=\"robots\" content=\"max-snippet: {of}\">")
            };
            assert!(
                response.text().contains(&proof),
                "{tag} with {}",
                response.text()
            );
            versions.insert(of);
        }
    }
    assert!(
        versions.len() > 1,
        "the policy changed while they ran: {versions:?}"
    );
    answer.send(()).expect("the origin waits");
    let response = begun_before.wait().expect("a response");
    assert_eq!(
        tagged(&response),
        "max-snippet: 0",
        "it ends by the policy that it began with"
    );
    assert!(
        response.text().contains("content=\"max-snippet: 0\""),
        "{}",
        response.text()
    );
}

#[test]
fn the_preface_may_come_in_any_pieces() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    // Byte by byte, each in a packet of its own.
    let mut slow = gate.connect();
    for byte in [PREFACE, &SETTINGS].concat() {
        slow.send_bytes(&[byte]);
        std::thread::sleep(Duration::from_millis(2));
    }
    slow.send_headers(1, b"\x82\x86\x84\x0f\x17\x09c.example");
    assert_eq!(slow.frame(HEADERS).payload[0], 0x88);
    // All at once.
    let mut fast = gate.connect();
    fast.send_bytes(
        &[
            PREFACE,
            &SETTINGS,
            &[0, 0, 15, HEADERS, 5, 0, 0, 0, 1],
            b"\x82\x86\x84\x0f\x17\x09c.example",
        ]
        .concat(),
    );
    assert_eq!(fast.frame(HEADERS).payload[0], 0x88);
}

#[test]
fn http_1_waits_for_no_preface() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    for (text, status) in [
        ("GET / HTTP/1.0\r\n\r\n", 200),
        ("PUT / HTTP/1.0\r\n\r\n", 200),
        ("PRI / HTTP/1.0\r\n\r\n", 200),
        ("PRI * HTTP/1.1\r\n\r\n", 400),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r!", 400),
        ("X\r\n\r\n", 400),
    ] {
        let mut connection = gate.connect();
        connection.send(text);
        assert_eq!(connection.response("GET").status, status, "{text:?}");
    }
    // In two pieces, the first of which could be a preface's; and one that is left in the middle.
    let mut connection = gate.connect();
    connection.send("P");
    connection.send("UT / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(connection.response("PUT").status, 200);
    let mut left = gate.connect();
    left.send("PRI * HT");
    left.finish_sending();
    assert!(left.is_closed() || left.response("GET").status == 400);
    // Nobody is asked to change the version on the way.
    let response = gate.get(
        HOST,
        "/",
        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n",
    );
    assert_eq!(
        (response.version.as_str(), response.status),
        ("HTTP/1.1", 200)
    );
    assert_eq!(
        (
            origin.last().field("upgrade"),
            origin.last().field("http2-settings")
        ),
        (None, None)
    );
}

#[test]
fn stop_ends_with_the_last_stream() {
    let (origin, was_asked, answer) = held();
    let mut gate = Setup::before(origin.address)
        .policy("site", &version(1))
        .start();
    let busy = Http2::open(gate.address);
    let slow: Vec<_> = (0..20)
        .map(|_| busy.begin("GET", &format!("http://{HOST}/slow"), &[], None))
        .collect();
    for _ in 0..20 {
        was_asked
            .recv_timeout(PATIENCE)
            .expect("the origin is asked");
    }
    let idle = Http2::open(gate.address);
    assert_eq!(idle.get(HOST, "/", &[]).status, 200);
    let mut half = gate.connect();
    half.send_bytes(&PREFACE[..10]);
    // Never answers anything.
    let mut deaf = gate.connect();
    deaf.send_bytes(&[PREFACE, &SETTINGS].concat());
    deaf.send_headers(1, b"\x82\x86\x84\x0f\x17\x09c.example");
    deaf.frame(HEADERS);

    gate.signal("TERM");
    idle.end().expect("a goodbye");
    assert!(half.is_closed());
    deaf.frame(GOAWAY);
    deaf.rest();
    eventually("the listener is closed", || {
        TcpStream::connect(gate.address).is_err().then_some(())
    });
    assert!(gate.is_running(), "streams go on");
    let began = Instant::now();
    for _ in 0..20 {
        answer.send(()).expect("the origin waits");
    }
    for stream in slow {
        let response = stream.wait().expect("a response");
        assert_eq!(
            (response.status, tagged(&response)),
            (200, "max-snippet: 1".to_owned())
        );
    }
    busy.end().expect("a goodbye");
    assert_eq!(gate.ended().code(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "it went on for {:?} after its last stream",
        began.elapsed()
    );
}

#[test]
fn idle_connection_gets_goaway_before_it_is_closed() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { idle: 1s }")
        .start();
    let http2 = Http2::open(gate.address);
    assert_eq!(http2.get(HOST, "/", &[]).status, 200);
    http2.end().expect("a goodbye");
    let mut silent = gate.connect();
    silent.send_bytes(&[PREFACE, &SETTINGS].concat());
    assert_eq!(silent.frame(GOAWAY).stream, 0);
    // It does not answer, and is closed all the same.
    silent.rest();
}

#[test]
fn who_sends_nothing_but_malformed_requests_is_shown_out() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let http2 = Http2::open(gate.address);
    for number in 0..32 {
        let refused = http2
            .begin("GET", "http://a.example/", &[("host", "b.example")], None)
            .wait();
        assert!(
            number == 31 || refused.is_ok_and(|response| response.status == 400),
            "the {number}th"
        );
    }
    http2
        .begin("GET", "http://a.example/", &[], None)
        .wait()
        .expect_err("the connection is closed");
    assert_eq!(
        Http2::open(gate.address).get("a.example", "/", &[]).status,
        200
    );
}
