//! A 304 hides from a crawler what is said newly about a page. Where that may be, crawlers' conditional requests reach
//! the origin as plain ones for 30 days; everywhere else a 304 stays one.
#![cfg(feature = "proxy")]

mod support;

use std::io::Write;
use support::kinds::tagged;
use support::{BINGBOT, BROWSER, Gate, HOST, Origin, Response, Setup};

const DAY: i64 = 86_400;

/// An origin whose pages say noindex, and are confirmed to whoever has them.
fn leaking() -> Origin {
    Origin::start(|request, stream| {
        let answer: &[u8] = match request.field("if-none-match") {
            Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n",
            None => b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Type: text/html\r\nX-Robots-Tag: noindex\r\nContent-Length: 2\r\n\r\nok",
        };
        stream.write_all(answer).is_ok()
    })
}

/// A page asked for by whoever has it.
fn again(gate: &Gate, user_agent: &str, target: &str) -> Response {
    gate.get(HOST, target, &format!("User-Agent: {user_agent}\r\nIf-None-Match: \"v1\"\r\n"))
}

fn with(rest: &str) -> String {
    format!("robots: {{ origin: replace }}\n{rest}")
}

fn edit(gate: &Gate, rest: &str) {
    gate.write_policy("site", &with(rest));
    let reload = gate.command(&["reload"]);
    assert!(reload.status.success(), "{reload:?}");
}

#[test]
fn taking_the_origins_tags_away_is_seen_by_crawlers_that_have_the_pages() {
    let origin = leaking();
    let old = |rest: &str| {
        let mut gate = Setup::before(origin.address).policy("site", &with(rest)).with_clock().start();
        gate.live_through(31 * DAY);
        assert_eq!(again(&gate, BINGBOT, "/a").status, 304, "nothing changed lately: {rest}");
        gate
    };
    for (before, after, tags) in [
        ("origin_tags: merge\n", "origin_tags: strip\n", ""),
        ("origin_tags: keep\n", "origin_tags: strip\n", ""),
        ("", "origin_tags: strip\n", ""),
        ("origin_tags: strip\n", "origin_tags: merge\n", "noindex"),
    ] {
        let gate = old(before);
        edit(&gate, after);
        let page = again(&gate, BINGBOT, "/a");
        assert_eq!((page.status, tagged(&page).as_str()), (200, tags), "{before} -> {after}");
        assert_eq!(again(&gate, BROWSER, "/a").status, 304, "people keep their copies");
    }
}

#[test]
fn the_thirty_days_go_on_through_a_restart_and_end() {
    let origin = leaking();
    let mut gate = Setup::before(origin.address).policy("site", &with("")).with_clock().start();
    gate.live_through(31 * DAY);
    edit(&gate, "origin_tags: strip\n");
    assert_eq!(again(&gate, BINGBOT, "/a").status, 200);
    gate.live_through(29 * DAY);
    gate.restart("TERM", |_| {});
    assert_eq!(again(&gate, BINGBOT, "/a").status, 200, "29 days");
    gate.live_through(2 * DAY);
    assert_eq!(again(&gate, BINGBOT, "/a").status, 304, "31 days");
    gate.restart("TERM", |_| {});
    assert_eq!(again(&gate, BINGBOT, "/a").status, 304, "a restart makes nothing new");
}

#[test]
fn a_first_policy_changes_what_it_takes_away_and_nothing_else() {
    let origin = leaking();
    let first = |rest: &str| {
        let gate = Setup::before(origin.address).policy("site", &with(rest)).start();
        again(&gate, BINGBOT, "/a").status
    };
    assert_eq!(first("origin_tags: strip\n"), 200);
    assert_eq!(first("html: meta\n"), 200);
    for nothing_new in ["", "origin_tags: keep\n", "origin_tags: replace\n", "html: off\n"] {
        assert_eq!(first(nothing_new), 304, "{nothing_new:?}: without rules the origin's tags pass as they are");
    }
}

#[test]
fn a_rule_that_says_something_else_makes_its_own_pages_whole_and_no_others() {
    let origin = leaking();
    let rules = |tag: &str, path: &str| {
        format!("indexing: [{{ paths: {path}, tag: {tag} }}, {{ paths: /c/b, tag: noarchive }}]\n")
    };
    let mut gate = Setup::before(origin.address).policy("site", &with(&rules("nofollow", "/c/a"))).with_clock().start();
    gate.live_through(31 * DAY);
    let statuses = |gate: &Gate| ["/c/a", "/c/b", "/other"].map(|target| again(gate, BINGBOT, target).status);
    assert_eq!(statuses(&gate), [304, 304, 304]);
    edit(&gate, &rules("nosnippet", "/c/a"));
    assert_eq!(statuses(&gate), [200, 304, 304]);
    gate.live_through(31 * DAY);
    // How the origin's tags are combined with ours matters where there are any of ours.
    edit(&gate, &format!("origin_tags: replace\n{}", rules("nosnippet", "/c/a")));
    assert_eq!(statuses(&gate), [200, 200, 304]);
    gate.live_through(31 * DAY);
    // For which pages a rule was that is gone, nobody knows.
    edit(&gate, &format!("origin_tags: replace\n{}", rules("nosnippet", "/c/x")));
    assert_eq!(statuses(&gate), [200, 200, 200]);
}
