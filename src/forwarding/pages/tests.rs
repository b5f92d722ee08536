//! Tests of which responses count as HTML pages that can be rewritten, by their header fields.
//! Tests with the running binary check whole rewritten pages.

use super::*;
use http::{HeaderMap, HeaderValue};

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn is_page(status: u16, fields: &[(&'static str, &'static str)]) -> bool {
    is_whole_page(
        StatusCode::from_u16(status).expect("a status"),
        &headers(fields),
    )
}

#[test]
fn only_whole_uncoded_html_is_rewritten() {
    const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
    for (status, fields) in [
        (200, vec![HTML]),
        (203, vec![HTML]),
        (
            200,
            vec![("Content-Type", "TEXT/HTML;Charset=\"Shift_JIS\"")],
        ),
        (
            200,
            vec![
                HTML,
                ("Content-Encoding", "identity"),
                ("Content-Length", "10"),
            ],
        ),
        (
            200,
            vec![HTML, ("Cache-Control", "max-age=60, must-revalidate")],
        ),
    ] {
        assert!(is_page(status, &fields), "{status} {fields:?}");
        assert_eq!(
            rewrite_obstacle(&headers(&fields)),
            None,
            "{status} {fields:?}"
        );
    }
    for (status, fields) in [
        (206, vec![HTML]),
        (204, vec![HTML]),
        (205, vec![HTML]),
        (304, vec![HTML]),
        (301, vec![HTML]),
        (404, vec![HTML]),
        (500, vec![HTML]),
        (200, vec![]),
        (200, vec![("Content-Type", "text/htmlx")]),
        (200, vec![("Content-Type", "application/xhtml+xml")]),
        (200, vec![HTML, ("Content-Length", "0")]),
        (200, vec![HTML, ("Content-Range", "bytes 0-1/2")]),
    ] {
        assert!(!is_page(status, &fields), "{status} {fields:?}");
    }
    for (fields, why) in [
        (
            vec![("Content-Type", "text/html; charset=utf-16le")],
            "encoding",
        ),
        (
            vec![("Content-Type", "text/html;charset=\"ISO-2022-JP\"")],
            "encoding",
        ),
        (vec![HTML, ("Content-Encoding", "gzip")], "coded"),
        (
            vec![
                HTML,
                ("Content-Encoding", "identity"),
                ("Content-Encoding", "br"),
            ],
            "coded",
        ),
        (
            vec![
                HTML,
                ("Cache-Control", "max-age=60"),
                ("Cache-Control", "public, No-Transform"),
            ],
            "no_transform",
        ),
    ] {
        assert_eq!(rewrite_obstacle(&headers(&fields)), Some(why), "{fields:?}");
    }
}

#[test]
fn file_extensions_tell_files_from_pages() {
    for target in [
        "/a.css",
        "/a.b/c.PNG?x=y",
        "/video.mp4",
        "/a.tar.gz",
        "/.pdf",
    ] {
        assert!(has_non_page_extension(target.as_bytes()), "{target}");
    }
    for target in [
        "/",
        "/a",
        "/a.html",
        "/index.php?file=a.css",
        "/a.css/",
        "/v1.2",
        "/shop.example",
        "/a.",
        "",
    ] {
        assert!(!has_non_page_extension(target.as_bytes()), "{target}");
    }
    assert!(NON_PAGE_EXTENSIONS.lines().is_sorted());
}

#[test]
fn entity_tag_is_made_weak_once() {
    let weak = |text: &'static str| weak_etag(&headers(&[("ETag", text)]));
    assert_eq!(weak("\"abc\"").expect("a strong one"), b"W/\"abc\"");
    assert_eq!(weak("W/\"abc\""), None);
    assert_eq!(weak("abc"), None);
}

#[test]
fn not_modified_has_the_clients_entity_tag() {
    for (asked, sent) in [
        (vec![b"W/\"abc\"".to_vec()], "W/\"abc\""),
        (vec![b"\"abc\"".to_vec()], "\"abc\""),
        (Vec::new(), "W/\"abc\""),
    ] {
        let mut response = headers(&[("ETag", "\"abc\"")]);
        weaken_etag_for_client(&asked, &mut response);
        assert_eq!(response[header::ETAG], sent, "{asked:?}");
    }
}
