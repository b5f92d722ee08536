//! Heads that two readers could understand differently: no door passes one on, and each is recorded with the same word.

use super::world::{Door, World};
use crate::support::http2::{PREFACE, SETTINGS};
use crate::support::{Connection, eventually};

/// The request line and the fields of a head, the status of its refusal, and the word of its record.
fn heads() -> Vec<(&'static str, String, u16, &'static str)> {
    let host = "Host: shop.example\r\n";
    let of = |line, fields: &str, status, word| (line, fields.to_owned(), status, word);
    vec![
        of("GET / HTTP/1.1", "", 400, "no_host"),
        of("GET / HTTP/1.1", "Host: shop.example/x\r\n", 400, "bad_host"),
        of("GET / HTTP/1.1", "Host: shop.example x\r\n", 400, "bad_host"),
        of("GET / HTTP/1.1", "Host: x.example, shop.example\r\n", 400, "bad_host"),
        of("GET / HTTP/1.1", "Host: shop.example\r\nHost: shop.example\r\n", 400, "bad_host"),
        of("GET http://other.example/ HTTP/1.1", host, 400, "other_host"),
        of("GET ?a HTTP/1.1", host, 400, "target"),
        of("GET /a#b HTTP/1.1", host, 400, "target"),
        of("GET / HTTP/1.2", host, 400, "version"),
        of("GET  / HTTP/1.1", host, 400, "request_line"),
        of("GET / HTTP/1.1", "Host: shop.example\r\nA : b\r\n", 400, "field"),
        of("GET / HTTP/1.1", "Host: shop.example\r\n folded\r\n", 400, "folded_line"),
        of(
            "POST / HTTP/1.1",
            "Host: shop.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
            400,
            "content_length",
        ),
        of("POST / HTTP/1.1", "Host: shop.example\r\nTransfer-Encoding: gzip\r\n", 400, "transfer_encoding"),
        of("TRACE / HTTP/1.1", host, 405, "method"),
        ("GET / HTTP/1.1", format!("{host}{}", "A: b\r\n".repeat(150)), 431, "too_many_fields"),
    ]
}

/// The log of a refused head.
fn refused(world: &World, lines: usize) -> (u64, String, String) {
    let line = eventually("the line of a refusal", || world.log().get(lines).cloned());
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    (line["status"].as_u64().unwrap_or_default(), text("action"), text("error"))
}

#[test]
fn odd_heads_over_http1_are_refused_before_the_lane_and_before_pingora() {
    for world in [World::open(Door::Lane), World::open(Door::Pingora)] {
        for (line, fields, status, word) in heads() {
            let lines = world.log().len();
            let mut connection = Connection::open(world.address());
            connection.send(&format!("{line}\r\n{fields}\r\n"));
            assert_eq!(connection.response("GET").status, status, "{line} {word}");
            assert_eq!(refused(&world, lines), (status.into(), "refuse".into(), word.into()), "{line}");
        }
        assert_eq!(world.origin_was_asked(), 0);
    }
}

/// A literal field without indexing (RFC 7541 section 6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).expect("short");
    [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

#[test]
fn odd_heads_over_http2_are_refused_and_recorded_as_over_http1() {
    const GET_OVER_HTTP: &[u8] = b"\x82\x86";
    const SHOP: (&str, &str) = (":authority", "shop.example");
    let many: Vec<u8> = (0..150).flat_map(|_| literal("a", "b")).collect();
    let world = World::open(Door::Http2);
    // Pingora refuses a request without a host, or with two, by itself (Pingora 0.9.1).
    for (path, named, more, status, word) in [
        ("/", ("host", "shop.example/x"), &[][..], 400, "bad_host"),
        ("/", ("host", "shop.example x"), &[], 400, "bad_host"),
        ("/", ("host", "x.example, shop.example"), &[], 400, "bad_host"),
        ("?a", SHOP, &[], 400, "target"),
        ("/", SHOP, &many, 431, "too_many_fields"),
    ] {
        let lines = world.log().len();
        let mut connection = Connection::open(world.address());
        connection.send_bytes(PREFACE);
        connection.send_bytes(&SETTINGS);
        let block = [GET_OVER_HTTP, &literal(":path", path), &literal(named.0, named.1), more].concat();
        let length = u16::try_from(block.len()).expect("short").to_be_bytes();
        connection.send_bytes(&[&[0, length[0], length[1], 1, 5, 0, 0, 0, 1], &block[..]].concat());
        assert_eq!(refused(&world, lines), (status, "refuse".into(), word.into()), "{path} {named:?}");
    }
    assert_eq!(world.origin_was_asked(), 0);
}
