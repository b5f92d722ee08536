//! Heads that two readers could understand differently: no entry point passes one on, and each is recorded
//! with the same word.

use super::world::{EntryPoint, GET_OVER_HTTP, RST_STREAM, World};
use super::{answered, counters, differently_counted};
use crate::proxy::support::http2::{HEADERS, PREFACE, SETTINGS, literal};
use crate::proxy::support::{Connection, Http2, Response, eventually};

/// The fields of each head that its record names.
const NAMED: [(&str, &str); 2] = [
    ("user-agent", "GPTBot/1.2"),
    ("referer", "https://search.example/"),
];

/// The request line and the fields of a head, the status of its refusal, and the word of its
/// record.
fn heads() -> Vec<(&'static str, String, u16, &'static str)> {
    let host = "Host: shop.example\r\n";
    let of = |line, fields: &str, status, word| (line, fields.to_owned(), status, word);
    vec![
        of("GET / HTTP/1.1", "", 400, "no_host"),
        of(
            "GET / HTTP/1.1",
            "Host: shop.example/x\r\n",
            400,
            "bad_host",
        ),
        of(
            "GET / HTTP/1.1",
            "Host: shop.example x\r\n",
            400,
            "bad_host",
        ),
        of(
            "GET / HTTP/1.1",
            "Host: x.example, shop.example\r\n",
            400,
            "bad_host",
        ),
        of(
            "GET / HTTP/1.1",
            "Host: shop.example\r\nHost: shop.example\r\n",
            400,
            "bad_host",
        ),
        of(
            "GET / HTTP/1.1",
            "Host: shop.example..\r\n",
            400,
            "bad_host",
        ),
        of("GET / HTTP/1.1", "Host: shop..example\r\n", 400, "bad_host"),
        of(
            "GET / HTTP/1.1",
            "Host: shop%2eexample\r\n",
            400,
            "bad_host",
        ),
        of("GET / HTTP/1.1", "Host: -\r\n", 400, "bad_host"),
        of(
            "GET / HTTP/1.1",
            "Host: shop.example\r\nUser-Agent: GPTBot/1.2\r\n",
            400,
            "user_agent",
        ),
        of(
            "GET http://other.example/ HTTP/1.1",
            host,
            400,
            "other_host",
        ),
        of("GET ?a HTTP/1.1", host, 400, "target"),
        of("GET /a#b HTTP/1.1", host, 400, "target"),
        of("GET / HTTP/1.2", host, 400, "version"),
        of("GET  / HTTP/1.1", host, 400, "request_line"),
        of(
            "GET / HTTP/1.1",
            "Host: shop.example\r\nA : b\r\n",
            400,
            "field",
        ),
        of(
            "GET / HTTP/1.1",
            "Host: shop.example\r\n folded\r\n",
            400,
            "folded_line",
        ),
        of(
            "POST / HTTP/1.1",
            "Host: shop.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
            400,
            "content_length",
        ),
        of(
            "POST / HTTP/1.1",
            "Host: shop.example\r\nTransfer-Encoding: gzip\r\n",
            400,
            "transfer_encoding",
        ),
        of("TRACE / HTTP/1.1", host, 405, "method"),
        (
            "GET / HTTP/1.1",
            format!("{host}{}", "A: b\r\n".repeat(150)),
            431,
            "too_many_fields",
        ),
    ]
}

/// The response to bytes.
fn sent(world: &World, line: &str, fields: &str) -> Response {
    let mut connection = Connection::open(world.address());
    let named: String = NAMED
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    connection.send(&format!("{line}\r\n{fields}{named}\r\n"));
    connection.response("GET")
}

#[test]
fn odd_heads_over_http1_are_refused_and_recorded_alike() {
    // hyper reads the heads of the layer, and leaves only the host to it.
    for (entry_point, is_for) in [
        (EntryPoint::Pingora, (|_| true) as fn(&str) -> bool),
        (EntryPoint::Tower, |word| word == "bad_host"),
    ] {
        let (forwarder, other) = (World::open(EntryPoint::Forwarder), World::open(entry_point));
        let heads: Vec<_> = heads()
            .into_iter()
            .filter(|(.., word)| is_for(word))
            .collect();
        for (line, fields, status, word) in &heads {
            let [expected, got] = [&forwarder, &other]
                .map(|world| answered(world, line, || sent(world, line, fields)));
            assert_eq!(expected.status, *status, "{line} {fields}");
            let logged =
                ["action", "error", "user_agent"].map(|name| expected.logged[name].as_str());
            assert_eq!(
                logged,
                [Some("refuse"), Some(word), Some(NAMED[0].1)],
                "{line} {fields}"
            );
            assert_eq!(expected, got, "{entry_point:?} {line} {fields}");
        }
        assert_eq!(
            differently_counted(&forwarder, &other, heads.len()),
            [""; 0]
        );
        assert_eq!(
            (forwarder.origin_was_asked(), other.origin_was_asked()),
            (0, 0)
        );
    }
}

#[test]
fn odd_heads_over_http2_are_refused_and_recorded_as_over_http1() {
    const SHOP: (&str, &str) = (":authority", "shop.example");
    let (forwarder, world) = (
        World::open(EntryPoint::Forwarder),
        World::open(EntryPoint::Http2),
    );
    let heads = [
        ("/", ("host", "shop.example/x"), vec![], 400, "bad_host"),
        ("/", ("host", "shop.example x"), vec![], 400, "bad_host"),
        (
            "/",
            ("host", "x.example, shop.example"),
            vec![],
            400,
            "bad_host",
        ),
        ("/", ("host", "shop.example.."), vec![], 400, "bad_host"),
        ("/", ("host", "shop..example"), vec![], 400, "bad_host"),
        ("/", ("host", "shop%2eexample"), vec![], 400, "bad_host"),
        ("/", ("host", "-"), vec![], 400, "bad_host"),
        ("?a", SHOP, vec![], 400, "target"),
        ("/", SHOP, vec![NAMED[0]], 400, "user_agent"),
        ("/", SHOP, vec![("a", "b"); 150], 431, "too_many_fields"),
    ];
    let count = heads.len();
    for (path, named, more, status, word) in heads {
        let lines: String = more
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let fields = format!("Host: {}\r\n{lines}", named.1);
        let expected = answered(&forwarder, path, || {
            sent(&forwarder, &format!("GET {path} HTTP/1.1"), &fields)
        });
        let got = answered(&world, path, || {
            let mut connection = Connection::open(world.address());
            connection.send_bytes(PREFACE);
            connection.send_bytes(&SETTINGS);
            let lines = [(":path", path), named]
                .into_iter()
                .chain(NAMED)
                .chain(more);
            let lines = lines.flat_map(|(name, value)| literal(name, value));
            let block: Vec<u8> = GET_OVER_HTTP.iter().copied().chain(lines).collect();
            let length = u16::try_from(block.len()).expect("short").to_be_bytes();
            connection
                .send_bytes(&[&[0, length[0], length[1], 1, 5, 0, 0, 0, 1], &block[..]].concat());
            connection.frame(HEADERS);
            Response {
                version: String::new(),
                status,
                headers: Vec::new(),
                body: Vec::new(),
            }
        });
        assert_eq!(
            (expected.status, expected.logged["error"].as_str()),
            (status, Some(word)),
            "{path} {named:?}"
        );
        assert_eq!(expected.logged, got.logged, "{path} {named:?}");
    }
    assert_eq!(differently_counted(&forwarder, &world, count), [""; 0]);
    assert_eq!(world.origin_was_asked(), 0);
}

/// Heads that HTTP/1 has not: each is refused with a status, and has a line in the log.
#[test]
fn heads_that_only_http2_has_are_refused_and_recorded() {
    let world = World::open(EntryPoint::Http2);
    let ask = |fields: &[(&str, &str)]| {
        let mut connection = Connection::open(world.address());
        connection.send_bytes(PREFACE);
        connection.send_bytes(&SETTINGS);
        let lines = fields.iter().flat_map(|(name, value)| literal(name, value));
        connection.send_headers(
            1,
            &GET_OVER_HTTP
                .iter()
                .copied()
                .chain(lines)
                .collect::<Vec<u8>>(),
        );
        // 400 is in the static table (RFC 7541 appendix A).
        assert_eq!(connection.frame(HEADERS).payload[0], 0x8c, "{fields:?}");
    };
    const PATH: (&str, &str) = (":path", "/");
    let shop = (":authority", "shop.example");
    let mut words = Vec::new();
    for (fields, word) in [
        (vec![PATH], "no_host"),
        (vec![PATH, shop, ("host", "other.example")], "other_host"),
        (
            vec![PATH, ("host", "shop.example"), ("host", "shop.example")],
            "bad_host",
        ),
        (vec![PATH, (":authority", "user@shop.example")], "bad_host"),
        (
            vec![PATH, shop, ("content-length", "0"), ("content-length", "0")],
            "content_length",
        ),
    ] {
        ask(&fields);
        words.push((400, word));
    }
    let large = "a".repeat(70_000);
    let client = Http2::open(world.address());
    let refused = client.get("shop.example", "/", &[("x-large", &large)]);
    assert_eq!(refused.status, 431);
    words.push((431, "headers_too_large"));
    let refused = client
        .begin("CONNECT", "shop.example:443", &[], None)
        .wait()
        .expect("a response");
    assert_eq!(refused.status, 405);
    words.push((405, "method"));
    let log = eventually("a line for each", || {
        Some(world.log()).filter(|log| log.len() == words.len())
    });
    let mut logged: Vec<_> = log
        .iter()
        .map(|line| {
            (
                line["status"].as_u64().unwrap_or(0),
                line["error"].as_str().unwrap_or(""),
            )
        })
        .collect();
    // A client has its answer before the line is written.
    logged.sort_unstable();
    words.sort_unstable();
    assert_eq!(logged, words);
    assert_eq!(world.origin_was_asked(), 0);
}

/// The h2 crate refuses what is no URL by itself: the stream ends, the connection goes on, and no
/// line is written.
#[test]
fn targets_that_no_url_may_have_end_their_stream_over_http2() {
    let world = World::open(EntryPoint::Http2);
    let mut connection = Connection::open(world.address());
    connection.send_bytes(PREFACE);
    connection.send_bytes(&SETTINGS);
    let targets = ["/?q=<b>", "/a`b", "/?q=\"b\"", "/page"];
    for (stream, target) in (1_u8..).step_by(2).zip(targets) {
        let lines = [(":path", target), (":authority", "shop.example")];
        let lines = lines.iter().flat_map(|(name, value)| literal(name, value));
        connection.send_headers(
            stream,
            &GET_OVER_HTTP
                .iter()
                .copied()
                .chain(lines)
                .collect::<Vec<u8>>(),
        );
        connection.frame(if target == "/page" {
            HEADERS
        } else {
            RST_STREAM
        });
    }
    let log = eventually("a line", || Some(world.log()).filter(|log| !log.is_empty()));
    let logged: Vec<_> = log.iter().map(|line| line["target"].as_str()).collect();
    assert_eq!(logged, [Some("/page")]);
}

/// A question without a host is none: the decision service says so to the proxy, and records no
/// request.
#[test]
fn questions_about_odd_hosts_are_counted_as_no_questions() {
    let world = World::open(EntryPoint::Decisions);
    let hosts = [
        "shop.example/x",
        "shop.example x",
        "x.example, shop.example",
        "shop.example..",
        "shop%2eexample",
        "-",
    ];
    for host in hosts {
        let asked =
            "Host: service\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\nX-Forwarded-Host";
        let response = sent(
            &world,
            "GET /decide/forward-auth HTTP/1.1",
            &format!("{asked}: {host}\r\n"),
        );
        assert_eq!(
            (response.status, response.field("crawlgate-decision")),
            (403, None),
            "{host}"
        );
    }
    assert_eq!(
        counters(&world, 0),
        ["crawlgate_requests_rejected_total{reason=\"question\"} 6"]
    );
    assert!(world.log().is_empty());
}
