//! Pages rewritten on their way (`html` of a policy), before origins that send them in every way
//! there is.

use crate::proxy::support::{BROWSER, Gate, Origin, Received, Response, Setup};
use std::io::{Read, Write};
use std::net::TcpStream;

const PAGE: &str = "<!doctype html><html><head><title>t</title></head><body><p>x</p></body></html>";
const REWRITTEN: &str = "<!doctype html><html><head><title>t</title><meta name=\"robots\" content=\"noindex\"></head>\
                         <body><p>x</p></body></html>";

const POLICY: &str = r#"
hosts: [shop.example]
robots: { origin: replace }
indexing:
  - { paths: [/drafts/], tag: noindex }
  - { paths: [/scoped/], tags: { "*": "max-snippet: 50", googlebot: [noindex] } }
html: meta
"#;

/// An origin that answers with these bytes, and remembers what it was asked.
fn saying(response: Vec<u8>) -> Origin {
    Origin::start(move |_, stream| stream.write_all(&response).is_ok())
}

fn with_length(fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn html(body: &str) -> Origin {
    saying(with_length(
        "Content-Type: text/html; charset=utf-8\r\n",
        body.as_bytes(),
    ))
}

fn gate(origin: &Origin) -> Gate {
    Setup::before(origin.address).policy("shop", POLICY).start()
}

/// Nothing about the response was touched, but for the tags.
fn assert_untouched(response: &Response, body: &[u8], field: (&str, &str)) {
    assert!(
        response.body == body,
        "the body was changed: {}",
        String::from_utf8_lossy(&response.body)
    );
    assert_eq!(
        response.field("content-length"),
        Some(body.len().to_string().as_str())
    );
    assert_eq!(response.field(field.0), Some(field.1));
    assert_eq!(response.fields("x-robots-tag"), ["noindex"]);
}

#[test]
fn page_gets_the_meta_of_its_field() {
    let origin = saying(with_length(
        "Content-Type: text/html; charset=utf-8\r\nETag: \"abc\"\r\nAccept-Ranges: bytes\r\nContent-MD5: eA==\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nX-Robots-Tag: googlebot: nofollow\r\n",
        PAGE.as_bytes(),
    ));
    let gate = gate(&origin);
    let response = gate.get("shop.example", "/drafts/a", "Accept-Encoding: gzip, br\r\n");
    assert_eq!(
        response.fields("x-robots-tag"),
        ["noindex", "googlebot: nofollow"]
    );
    let metas =
        "<meta name=\"robots\" content=\"noindex\"><meta name=\"googlebot\" content=\"nofollow\">";
    assert_eq!(
        response.text(),
        PAGE.replace("</head>", &format!("{metas}</head>"))
    );
    assert_eq!(response.field("transfer-encoding"), Some("chunked"));
    assert_eq!(
        response.field("etag"),
        Some("W/\"abc\""),
        "the bytes are others"
    );
    assert_eq!(
        response.field("last-modified"),
        Some("Sun, 06 Nov 1994 08:49:37 GMT")
    );
    for gone in ["content-length", "accept-ranges", "content-md5"] {
        assert_eq!(response.field(gone), None, "{gone}");
    }
    assert_eq!(origin.last().field("accept-encoding"), Some("identity"));

    // What only the origin says is said too; what nobody says changes nothing.
    let response = gate.get("shop.example", "/other", "");
    assert!(
        response
            .text()
            .contains("<meta name=\"googlebot\" content=\"nofollow\"></head>"),
        "{}",
        response.text()
    );
    assert!(!response.text().contains("noindex"));
}

#[test]
fn untouched_page_keeps_length_and_etag() {
    let origin = saying(with_length(
        "Content-Type: text/html\r\nETag: \"abc\"\r\n",
        PAGE.as_bytes(),
    ));
    let gate = gate(&origin);
    let response = gate.get("shop.example", "/", "");
    assert_eq!(
        (response.text(), response.field("etag")),
        (PAGE, Some("\"abc\""))
    );
    assert_eq!(
        response.field("content-length"),
        Some(PAGE.len().to_string().as_str())
    );
}

#[test]
fn a_meta_of_the_page_is_merged_with_policy_and_origin() {
    let page = "<html><head><meta name=robots content=\"nofollow, max-snippet:20\"><meta name=googlebot content=noai></head>";
    let origin = saying(with_length(
        "Content-Type: text/html\r\nX-Robots-Tag: noarchive\r\n",
        page.as_bytes(),
    ));
    let response = gate(&origin).get("shop.example", "/scoped/x", "");
    assert_eq!(
        response.fields("x-robots-tag"),
        ["noarchive, max-snippet: 50", "googlebot: noindex"]
    );
    assert_eq!(
        response.text(),
        "<html><head><meta name=robots content=\"nofollow, noarchive, max-snippet: 20\">\
         <meta name=googlebot content=\"noindex, noai\"></head>"
    );
}

#[test]
fn an_answer_whose_range_was_taken_away_promises_none() {
    let fields = "Content-Type: application/byte-stream\r\nAccept-Ranges: bytes\r\n";
    let origin = saying(with_length(fields, b"0123456789"));
    let gate = gate(&origin);
    let whole = gate.get("shop.example", "/film", "Range: bytes=0-3\r\n");
    assert_eq!(whole.fields("accept-ranges"), [""; 0]);
    assert_eq!(
        gate.get("shop.example", "/film", "")
            .fields("accept-ranges"),
        ["bytes"]
    );
}

#[test]
fn only_rewritable_pages_are_requested_uncoded() {
    let origin = html(PAGE);
    let policy = POLICY.replace(
        "html: meta",
        "html: { meta: yes, paths: [/drafts/], not: { paths: [/drafts/raw/] } }",
    );
    let gate = Setup::before(origin.address)
        .policy("shop", &policy)
        .policy(
            "plain",
            "hosts: [plain.example]\nrobots: { origin: replace }\n",
        )
        .start();
    let headers = "Accept-Encoding: gzip\r\nRange: bytes=0-3\r\nIf-Range: \"abc\"\r\n";
    let asked = |host: &str, target: &str, more: &str| {
        gate.get(host, target, &format!("{headers}{more}"));
        let last = origin.last();
        (
            last.field("accept-encoding").map(str::to_owned),
            last.field("range").is_some(),
            last.field("if-range").is_some(),
        )
    };
    let (whole, as_asked) = (
        (Some("identity".to_owned()), false, false),
        (Some("gzip".to_owned()), true, true),
    );
    assert_eq!(asked("shop.example", "/drafts/a", ""), whole);
    assert_eq!(
        asked(
            "shop.example",
            "/drafts/a.html?b=c.css",
            "Sec-Fetch-Dest: document\r\n"
        ),
        whole
    );
    assert_eq!(
        asked("shop.example", "/%64rafts/a", ""),
        whole,
        "paths are compared in their normal form"
    );
    assert_eq!(asked("shop.example", "/drafts/raw/a", ""), as_asked);
    assert_eq!(asked("shop.example", "/other", ""), as_asked);
    assert_eq!(asked("shop.example", "/drafts/film.mp4", ""), as_asked);
    assert_eq!(
        asked("shop.example", "/drafts/film", "Sec-Fetch-Dest: video\r\n"),
        as_asked
    );
    assert_eq!(
        asked("shop.example", "/drafts/a", "Sec-Fetch-Dest: empty\r\n"),
        as_asked,
        "for a script"
    );
    assert_eq!(
        asked("shop.example", "/drafts/a", "Accept: application/json\r\n"),
        as_asked
    );
    assert_eq!(
        asked(
            "shop.example",
            "/drafts/a",
            "Cache-Control: no-transform\r\n"
        ),
        as_asked
    );
    assert_eq!(asked("plain.example", "/drafts/a", ""), as_asked);
    assert_eq!(asked("unclaimed.example", "/drafts/a", ""), as_asked);
    // A form that is sent is no page that is indexed.
    gate.ask(
        "POST",
        "shop.example",
        "/drafts/a",
        "Content-Length: 0\r\nAccept-Encoding: gzip\r\n",
    );
    assert_eq!(origin.last().field("accept-encoding"), Some("gzip"));
}

#[test]
fn unrewritable_page_passes_unchanged_with_the_field() {
    let utf_16: Vec<u8> = PAGE.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let marked: Vec<u8> = [b"\xFE\xFF".as_slice(), &utf_16].concat();
    // `<!doctype html><title>t</title><p>x</p>`, from an origin that compresses whatever it is
    // asked.
    let gzip: &[u8] = &[
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 179, 81, 76, 201, 79, 46, 169, 44, 72, 85, 200, 40, 201,
        205, 177, 179, 41, 201, 44, 201, 73, 181, 43, 177, 209, 135, 48, 108, 10, 236, 42, 108,
        244, 11, 236, 0, 181, 196, 138, 12, 39, 0, 0, 0,
    ];
    let page = PAGE.as_bytes();
    for (fields, body, kept) in [
        (
            "Content-Type: text/html\r\nContent-Encoding: gzip\r\nETag: \"a\"\r\n",
            gzip,
            ("content-encoding", "gzip"),
        ),
        (
            "Content-Type: text/html\r\nCache-Control: no-transform\r\nETag: \"a\"\r\n",
            page,
            ("etag", "\"a\""),
        ),
        (
            "Content-Type: text/html; charset=utf-16be\r\nETag: \"a\"\r\n",
            &utf_16,
            ("etag", "\"a\""),
        ),
        (
            "Content-Type: text/html; charset=iso-2022-jp\r\nETag: \"a\"\r\n",
            page,
            ("etag", "\"a\""),
        ),
        (
            "Content-Type: application/xhtml+xml\r\nETag: \"a\"\r\n",
            page,
            ("etag", "\"a\""),
        ),
        (
            "Content-Type: text/plain\r\nETag: \"a\"\r\n",
            page,
            ("etag", "\"a\""),
        ),
        (
            "Content-Type: text/html\r\nETag: \"a\"\r\n",
            b"",
            ("etag", "\"a\""),
        ),
    ] {
        let gate = gate(&saying(with_length(fields, body)));
        assert_untouched(&gate.get("shop.example", "/drafts/a", ""), body, kept);
    }
    // What only the page itself shows is seen when its length is taken away already.
    let in_japanese =
        b"<!doctype html><meta charset=iso-2022-jp><title>\x1B$B%F%9%H\x1B(B</title><p>x".to_vec();
    for body in [marked, utf_16, in_japanese, b"{\"a\": 1}".to_vec()] {
        let gate = gate(&saying(with_length("Content-Type: text/html\r\n", &body)));
        let response = gate.get("shop.example", "/drafts/a", "");
        assert!(response.body == body);
        assert_eq!(response.fields("x-robots-tag"), ["noindex"]);
    }
}

#[test]
fn rewritten_pages_are_counted_by_outcome() {
    let origin = Origin::start(|request: &Received, stream| {
        let (fields, body) = match request.target() {
            "/drafts/gzip" => ("Content-Encoding: gzip\r\n", "\x1F"),
            "/drafts/fixed" => ("Cache-Control: no-transform\r\n", PAGE),
            "/drafts/value" => ("", "42"),
            _ => ("", PAGE),
        };
        stream
            .write_all(&with_length(
                &format!("Content-Type: text/html\r\n{fields}"),
                body.as_bytes(),
            ))
            .is_ok()
    });
    let gate = gate(&origin);
    for target in [
        "/drafts/a",
        "/drafts/b",
        "/drafts/gzip",
        "/drafts/fixed",
        "/drafts/value",
        "/about",
    ] {
        gate.get("shop.example", target, "");
    }
    for (outcome, count) in [
        ("rewritten", 2),
        ("coded", 1),
        ("no_transform", 1),
        ("not_markup", 1),
    ] {
        gate.wait_for_metric(
            &format!("crawlgate_html_pages_total{{outcome=\"{outcome}\",site=\"shop\"}}"),
            f64::from(count),
        );
    }
}

#[test]
fn pages_in_shift_jis_keep_their_bytes() {
    // Among them one whose second byte is that of a backslash.
    let page = b"<!doctype html><title>\x83\x65\x83\x58\x83\x67</title><p>\x95\x5C \x83\x5C</p>"
        .as_slice();
    let origin = saying(with_length(
        "Content-Type: text/html; charset=Shift_JIS\r\n",
        page,
    ));
    let response = gate(&origin).get("shop.example", "/drafts/a", "");
    let place = page
        .windows(3)
        .position(|window| window == b"<p>")
        .expect("a paragraph");
    let expected = [
        &page[..place],
        b"<meta name=\"robots\" content=\"noindex\">",
        &page[place..],
    ]
    .concat();
    assert!(
        response.body == expected,
        "{}",
        String::from_utf8_lossy(&response.body)
    );
}

#[test]
fn chunked_and_close_delimited_pages_are_rewritten() {
    let mut chunked =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    for piece in PAGE.as_bytes().chunks(7) {
        chunked.extend(format!("{:x}\r\n", piece.len()).bytes());
        chunked.extend(piece);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let until_close =
        format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n{PAGE}").into_bytes();
    let origins = [
        saying(chunked),
        Origin::start(move |_, stream| {
            let _ = stream.write_all(&until_close);
            let _ = stream.shutdown(std::net::Shutdown::Both);
            false
        }),
    ];
    for origin in origins {
        assert_eq!(
            gate(&origin).get("shop.example", "/drafts/a", "").text(),
            REWRITTEN
        );
    }
}

#[test]
fn connection_is_reused_after_a_rewritten_page() {
    let origin = Origin::start(|request: &Received, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"a\"\r\nContent-Length: {}\r\n\r\n",
            PAGE.len()
        );
        let body = if request.line.starts_with("HEAD") {
            ""
        } else {
            PAGE
        };
        stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
    });
    let gate = gate(&origin);
    let mut connection = gate.connect();
    for method in ["GET", "HEAD", "GET", "HEAD", "GET"] {
        connection.send(&format!(
            "{method} /drafts/a HTTP/1.1\r\nHost: shop.example\r\n\r\n"
        ));
        let response = connection.response(method);
        assert_eq!(
            response.text(),
            if method == "GET" { REWRITTEN } else { "" }
        );
        // HEAD has the fields of GET (RFC 9110 section 9.3.2).
        assert_eq!(response.field("content-length"), None, "{method}");
        assert_eq!(response.field("etag"), Some("W/\"a\""), "{method}");
        assert_eq!(response.fields("x-robots-tag"), ["noindex"], "{method}");
    }
}

#[test]
fn http_1_0_client_gets_the_page_until_close() {
    let origin = html(PAGE);
    let gate = gate(&origin);
    for keep in ["", "Connection: keep-alive\r\n"] {
        let mut connection = gate.connect();
        connection.send(&format!(
            "GET /drafts/a HTTP/1.0\r\nHost: shop.example\r\n{keep}\r\n"
        ));
        let response = connection.response("GET");
        assert_eq!(response.text(), REWRITTEN);
        assert_eq!(
            (
                response.field("transfer-encoding"),
                response.field("content-length")
            ),
            (None, None)
        );
    }
}

#[test]
fn a_304_has_the_tag_that_the_client_has() {
    let origin = Origin::saying("HTTP/1.1 304 Not Modified\r\nETag: \"abc\"\r\n\r\n");
    let gate = gate(&origin);
    let tag = |asked: &str| {
        let response = gate.get(
            "shop.example",
            "/drafts/a",
            &format!("User-Agent: {BROWSER}\r\nIf-None-Match: {asked}\r\n"),
        );
        assert_eq!((response.status, response.body.len()), (304, 0));
        response.field("etag").map(str::to_owned)
    };
    assert_eq!(tag("\"x\", W/\"abc\"").as_deref(), Some("W/\"abc\""));
    assert_eq!(tag("\"abc\"").as_deref(), Some("\"abc\""));
    assert_eq!(origin.last().field("if-none-match"), Some("\"abc\""));
    // By the date alone nobody says which tag it has: it gets that of the page as it is sent (RFC
    // 9110 section 15.4.5).
    let by_date =
        &format!("User-Agent: {BROWSER}\r\nIf-Modified-Since: Sat, 21 Nov 2026 10:00:00 GMT\r\n");
    assert_eq!(
        gate.get("shop.example", "/drafts/a", by_date).field("etag"),
        Some("W/\"abc\"")
    );
    assert_eq!(
        gate.get("shop.example", "/drafts/a.css", by_date)
            .field("etag"),
        Some("\"abc\""),
        "no page"
    );
}

#[test]
fn a_part_that_comes_all_the_same_and_errors_are_let_be() {
    let part = "HTTP/1.1 206 Partial Content\r\nContent-Type: text/html\r\nContent-Range: bytes 0-14/78\r\n\
                Content-Length: 15\r\nETag: \"a\"\r\n\r\n<!doctype html>";
    let response =
        gate(&Origin::saying(part)).get("shop.example", "/drafts/a", "Range: bytes=0-14\r\n");
    assert_eq!(response.status, 206);
    assert_untouched(
        &response,
        b"<!doctype html>",
        ("content-range", "bytes 0-14/78"),
    );
    let error = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 24\r\nETag: \"a\"\r\n\r\n\
                 <!doctype html><p>no</p>";
    let response = gate(&Origin::saying(error)).get("shop.example", "/drafts/a", "");
    assert_untouched(&response, b"<!doctype html><p>no</p>", ("etag", "\"a\""));
}

#[test]
fn pages_of_a_megabyte_come_whole_while_they_are_made() {
    let mut page = String::from("<!doctype html><html><head><title>long</title></head><body>");
    while page.len() < 1 << 20 {
        page.push_str("<p class=price>Ein längerer Absatz mit einem <a href=/x>Verweis</a>.</p>\n");
    }
    let origin = html(&page);
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    let response = gate.get("shop.example", "/drafts/a", "");
    let expected = page.replace(
        "</head>",
        "<meta name=\"robots\" content=\"noindex\"></head>",
    );
    assert!(response.text() == expected);

    // The start of a page is passed on before its end is there.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let receiver = std::sync::Mutex::new(receiver);
    let start = page[..200_000].to_string();
    let slow = Origin::start(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(format!("{head}{start}").as_bytes());
        // The end comes when the client has seen the start.
        let _ = receiver
            .lock()
            .expect("one request")
            .recv_timeout(crate::proxy::support::PATIENCE);
        let _ = stream.write_all(b"<p>the end</p>");
        false
    });
    let gate = Setup::before(slow.address).policy("shop", POLICY).start();
    let mut connection = gate.connect();
    connection.send("GET /drafts/a HTTP/1.0\r\nHost: shop.example\r\n\r\n");
    connection.head();
    let early = connection.bytes(150_000);
    assert!(
        early.starts_with(b"<!doctype html><html><head><title>long</title><meta name=\"robots\"")
    );
    sender.send(()).expect("the origin waits");
}

#[test]
fn an_origin_that_breaks_off_leaves_the_page_broken_off() {
    let origin = Origin::start(|_, stream| {
        let _ = stream.write_all(
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n{PAGE}"
            )
            .as_bytes(),
        );
        let _ = stream.shutdown(std::net::Shutdown::Both);
        false
    });
    let gate = gate(&origin);
    let mut client = TcpStream::connect(gate.address).expect("a connection");
    client
        .set_read_timeout(Some(crate::proxy::support::PATIENCE))
        .expect("a timeout");
    client
        .write_all(b"GET /drafts/a HTTP/1.1\r\nHost: shop.example\r\n\r\n")
        .expect("it is taken");
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = client.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        text.starts_with("HTTP/1.1 200 OK") && !text.ends_with("0\r\n\r\n"),
        "the client can tell: {text}"
    );
}

/// The end of the head is not known when the page breaks off.
#[test]
fn broken_page_is_sent_as_far_as_it_came() {
    for (sent, got) in [
        (
            "<!doctype html><title>T</title>",
            "<!doctype html><title>T</title>",
        ),
        (
            "<html><head><noscript><img></noscript><meta name=robots content=nofollow><title>T</title>",
            "<html><head><noscript><img></noscript><meta name=robots content=\"noindex, nofollow\"><title>T</title>",
        ),
    ] {
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n{sent}"
        );
        let origin = Origin::start(move |_, stream| {
            let _ = stream.write_all(response.as_bytes());
            false
        });
        let gate = gate(&origin);
        for version in ["1.0", "1.1"] {
            let mut client = TcpStream::connect(gate.address).expect("a connection");
            client
                .set_read_timeout(Some(crate::proxy::support::PATIENCE))
                .expect("a timeout");
            let asked = format!("GET /drafts/a HTTP/{version}\r\nHost: shop.example\r\n\r\n");
            client.write_all(asked.as_bytes()).expect("it is taken");
            let mut bytes = Vec::new();
            // A reset is an end too.
            let _ = client.read_to_end(&mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            let (_, body) = text.split_once("\r\n\r\n").expect("a head");
            if version == "1.0" {
                assert_eq!(body, got);
            } else {
                assert_eq!(
                    body,
                    format!("{:X}\r\n{got}\r\n", got.len()),
                    "no last chunk"
                );
            }
        }
    }
}

#[test]
fn http_1_0_origin_is_answered_in_http_1_1() {
    for length in [
        "".to_string(),
        format!("Content-Length: {}\r\n", PAGE.len()),
    ] {
        let fields = length.clone();
        let origin = Origin::start(move |request: &Received, stream| {
            let body = if request.line.starts_with("HEAD") {
                ""
            } else {
                PAGE
            };
            let head = format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
            false
        });
        let gate = gate(&origin);
        for target in ["/drafts/a", "/other"] {
            for method in ["GET", "HEAD"] {
                let mut connection = gate.connect();
                connection.send(&format!(
                    "{method} {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n"
                ));
                assert_eq!(
                    connection.head().version,
                    "HTTP/1.1",
                    "{method} {target} {length}"
                );
            }
        }
    }
}
