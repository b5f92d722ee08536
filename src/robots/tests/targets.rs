//! Tests of request targets (path and query): how different spellings are normalised, how an
//! absolute URL is reduced to its path, and how dot segments and parameters are resolved.

use super::{normalised_target, resolved_target, stripped_target};
use crate::robots::target::ResolvedTarget;
use crate::robots::{TargetScratch, escape_url};

#[test]
fn escapes_are_decoded_only_where_they_mean_the_same() {
    for (raw, normal) in [
        ("/%41%7a%30%2D%2e%5F%7e", "/Az0-._~"),
        ("/a%2fb%3F%23", "/a%2Fb%3F%23"),
        ("/a b\"<>\\^`{|}%7c", "/a%20b\"<>\\^`{|}%7C"),
        ("/*$", "/\u{1}$"),
        ("/%2a%24", "/\u{1}$"),
        ("/%", "/%"),
        ("/%4", "/%4"),
        ("/%zz", "/%zz"),
        ("/:@!&'()+,;=[]?/?", "/:@!&'()+,;=[]?/?"),
    ] {
        assert_eq!(normalised_target(raw.as_bytes()), normal, "{raw}");
    }
    assert_eq!(
        normalised_target(b"/\x00\r\n\x7f\xff\xc3\xa9"),
        "/%00%0D%0A%7F%FF%C3%A9"
    );
}

#[test]
fn target_loses_origin_and_fragment_and_gains_slash() {
    for (raw, normal) in [
        ("", "/"),
        ("#top", "/"),
        ("/a#b?c", "/a"),
        ("a/b", "/a/b"),
        ("?q", "/?q"),
        ("*", "/\u{1}"),
        ("http://host.example", "/"),
        (
            "HTTPS://user@host.example:8080/a?b=http://c/",
            "/a?b=http://c/",
        ),
        ("http://host.example?q=/x", "/?q=/x"),
        ("http://host.example#/x", "/"),
        ("coap+tcp://host/x", "/x"),
        ("//host/x", "//host/x"),
        ("/http://host/x", "/http://host/x"),
        ("http:/x", "/http:/x"),
        ("1http://host/x", "/1http://host/x"),
        ("://host/x", "/://host/x"),
    ] {
        assert_eq!(normalised_target(raw.as_bytes()), normal, "{raw}");
    }
}

#[test]
fn normal_target_is_borrowed() {
    let mut scratch = TargetScratch::default();
    for raw in [
        "/",
        "/a/b.html?q=1&r=%2F%C3%A9",
        "/.well-known/x",
        "http://host/a",
    ] {
        let target = scratch.normalise(raw.as_bytes());
        assert!(
            raw.as_bytes()
                .as_ptr_range()
                .contains(&target.sent.as_ptr()),
            "{raw} should not be copied"
        );
        assert_eq!(target.resolved, None);
    }
}

#[test]
fn scratch_keeps_nothing_between_targets() {
    let mut scratch = TargetScratch::default();
    scratch.normalise("/ä//b/../secret?é".as_bytes());
    let target = scratch.normalise(b"/x y");
    assert_eq!((target.sent, target.resolved), (&b"/x%20y"[..], None));
    let target = scratch.normalise(b"/x//y");
    let resolved = ResolvedTarget {
        target: b"/x/y",
        is_shortened: false,
    };
    assert_eq!(
        (target.sent, target.resolved, target.stripped),
        (&b"/x//y"[..], Some(resolved), None)
    );
}

#[test]
fn dot_segments_and_doubled_slashes_are_resolved_as_origins_do() {
    for (raw, expected) in [
        // RFC 3986 section 5.4, as far as it is about paths.
        ("/b/c/./g", Some("/b/c/g")),
        ("/b/c/.", Some("/b/c/")),
        ("/b/c/./", Some("/b/c/")),
        ("/b/c/..", Some("/b/")),
        ("/b/c/../", Some("/b/")),
        ("/b/c/../g", Some("/b/g")),
        ("/b/c/../..", Some("/")),
        ("/b/c/../../../../g", Some("/g")),
        ("/b/c/g.", None),
        ("/b/c/.g", None),
        ("/b/c/g..", None),
        ("/b/c/..g", None),
        ("/b/c/...", None),
        ("/b/c/./g/.", Some("/b/c/g/")),
        ("/b/c/g;x=1/../y", Some("/b/c/y")),
        // Escaped dots are dots.
        ("/public/%2e%2E/private", Some("/private")),
        ("/public/.%2e/private", Some("/private")),
        // Origins take escaped slashes for slashes.
        ("/public/..%2fprivate", Some("/private")),
        ("/cart%2f", Some("/cart/")),
        ("/blog%2f..%2Fcart%2fx", Some("/cart/x")),
        ("/a%2F%2Fb", Some("/a/b")),
        ("/%2F", Some("/")),
        ("/a%252Fb", None),
        ("/a%2Eb2F", None),
        ("/%%2F2F", Some("/%/2F")),
        ("/a?x=%2F", None),
        ("//", Some("/")),
        ("//private", Some("/private")),
        ("/a//b///c", Some("/a/b/c")),
        ("/a//", Some("/a/")),
        ("/a//../b", Some("/b")),
        ("/..", Some("/")),
        ("/", None),
        ("", None),
        // The query is the origin's business.
        ("/a?x=//../y", None),
        ("/a/../b?x=//../y", Some("/b?x=//../y")),
        ("/a/..?x", Some("/?x")),
    ] {
        assert_eq!(resolved_target(raw).as_deref(), expected, "{raw}");
    }
}

#[test]
fn written_url_is_escaped_as_crawlers_do() {
    for (written, sent) in [
        ("/a?b=c#d", "/a?b=c#d"),
        ("/überuns", "/%C3%BCberuns"),
        ("/a b/\t?q=\"<>`\"", "/a%20b/%09?q=%22%3C%3E%60%22"),
        ("/%c3%BC%zz%", "/%c3%BC%zz%"),
        ("/{a}|[b]^'\\", "/{a}|[b]^'\\"),
    ] {
        assert_eq!(escape_url(written), sent);
    }
}

#[test]
fn parameters_of_segments_are_stripped_as_servlet_containers_do() {
    for (raw, expected) in [
        ("/private;x/index.html", Some("/private/index.html")),
        ("/private;x=1;y=2/a;z", Some("/private/a")),
        ("/;x/private/", Some("/private/")),
        ("/x/..;/private/", Some("/private/")),
        ("/x/.;y=1/private", Some("/x/private")),
        ("/x/%2e%2E;y/private", Some("/private")),
        ("/x;/../private", None),
        ("/a/b;x/../c;y", Some("/a/c")),
        ("/a;", Some("/a")),
        ("/a/;x", Some("/a/")),
        ("/a/..;x", Some("/")),
        ("/;", Some("/")),
        ("/a;b?c;d", Some("/a?c;d")),
        // Tomcat takes parameters away before it reads escapes.
        ("/private;%2F../x", Some("/private/x")),
        ("/a%2fb;x/c", Some("/a/b/c")),
        ("/a%3Bx/b", None),
        ("/a?b;c", None),
        ("/a/b", None),
    ] {
        assert_eq!(stripped_target(raw).as_deref(), expected, "{raw}");
    }
    // nginx takes a semicolon for a letter.
    assert_eq!(resolved_target("/private;%2F../x").as_deref(), Some("/x"));
    assert_eq!(resolved_target("/x/..;/private"), None);
}

#[test]
fn paths_that_lose_dot_segments_or_parameters_are_shortened() {
    let is_shortened = |raw: &str| {
        let mut scratch = TargetScratch::default();
        let target = scratch.normalise(raw.as_bytes());
        [target.resolved, target.stripped]
            .map(|resolved| resolved.map(|resolved| resolved.is_shortened))
    };
    for (raw, expected) in [
        ("/a/../b", [Some(true), None]),
        ("/a/./b", [Some(true), None]),
        ("/a/b/..", [Some(true), None]),
        ("/a%2F%2e%2e%2Fb", [Some(true), None]),
        ("/a//b", [Some(false), None]),
        ("/a%2Fb", [Some(false), None]),
        ("/a;x/b", [None, Some(true)]),
        ("/a//b;x", [Some(false), Some(true)]),
        ("/a/..;x/b", [None, Some(true)]),
        ("/a/.../b.", [None, None]),
    ] {
        assert_eq!(is_shortened(raw), expected, "{raw}");
    }
}

#[test]
fn robots_txt_is_known_with_any_query_and_in_any_spelling() {
    let mut scratch = TargetScratch::default();
    for raw in [
        "/robots.txt",
        "/robots.txt?",
        "/robots.txt?x=/y",
        "/%72obots%2etxt",
        "http://host/robots.txt",
        "/robots.txt#x",
    ] {
        let target = scratch.normalise(raw.as_bytes());
        assert!(
            target.is_robots_txt() && target.reaches_robots_txt(),
            "{raw}"
        );
    }
    for raw in [
        "//robots.txt",
        "/./robots.txt",
        "/a/../robots.txt?x",
        "/%2Frobots.txt",
        "/a%2f..%2frobots.txt",
        "/robots.txt/",
        "/robots.txt%2F?x",
        "/robots.txt/.",
        "/robots.txt/x/..",
        "/robots.txt;x",
        "/robots.txt;x/",
        "/;x/robots.txt",
        "/x/..;/robots.txt?y",
    ] {
        let target = scratch.normalise(raw.as_bytes());
        assert!(
            !target.is_robots_txt() && target.reaches_robots_txt(),
            "{raw}"
        );
    }
    for raw in [
        "/",
        "/robots.txt/x",
        "/Robots.txt",
        "/a/robots.txt",
        "/robots.txt%3F",
        "/robots.txt%3Bx",
        "/x?/robots.txt",
    ] {
        assert!(
            !scratch.normalise(raw.as_bytes()).reaches_robots_txt(),
            "{raw}"
        );
    }
}
