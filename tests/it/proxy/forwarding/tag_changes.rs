//! A 304 hides from a crawler what is said newly about a page. Where that may be, crawlers'
//! conditional requests reach the origin as plain ones for 30 days; everywhere else a 304 stays
//! one.

use crate::proxy::support::kinds::tagged;
use crate::proxy::support::{BINGBOT, BROWSER, Gate, HOST, Origin, Response, Setup};
use serde_json::Value;
use std::io::Write;

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
    gate.get(
        HOST,
        target,
        &format!("User-Agent: {user_agent}\r\nIf-None-Match: \"v1\"\r\n"),
    )
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
fn removed_origin_tags_are_seen_by_crawlers() {
    let origin = leaking();
    let old = |rest: &str| {
        let mut gate = Setup::before(origin.address)
            .policy("site", &with(rest))
            .with_clock()
            .start();
        gate.live_through(31 * DAY);
        assert_eq!(
            again(&gate, BINGBOT, "/a").status,
            304,
            "nothing changed lately: {rest}"
        );
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
        assert_eq!(
            (page.status, tagged(&page).as_str()),
            (200, tags),
            "{before} -> {after}"
        );
        assert_eq!(
            again(&gate, BROWSER, "/a").status,
            304,
            "people keep their copies"
        );
    }
}

#[test]
fn the_thirty_days_go_on_through_a_restart_and_end() {
    let origin = leaking();
    let mut gate = Setup::before(origin.address)
        .policy("site", &with(""))
        .with_clock()
        .start();
    gate.live_through(31 * DAY);
    edit(&gate, "origin_tags: strip\n");
    assert_eq!(again(&gate, BINGBOT, "/a").status, 200);
    gate.live_through(29 * DAY);
    gate.restart("TERM", |_| {});
    assert_eq!(again(&gate, BINGBOT, "/a").status, 200, "29 days");
    gate.live_through(2 * DAY);
    assert_eq!(again(&gate, BINGBOT, "/a").status, 304, "31 days");
    gate.restart("TERM", |_| {});
    assert_eq!(
        again(&gate, BINGBOT, "/a").status,
        304,
        "a restart makes nothing new"
    );
}

#[test]
fn first_policy_changes_pages_with_removed_tags_alone() {
    let origin = leaking();
    let first = |rest: &str| {
        let gate = Setup::before(origin.address)
            .policy("site", &with(rest))
            .start();
        again(&gate, BINGBOT, "/a").status
    };
    assert_eq!(first("origin_tags: strip\n"), 200);
    assert_eq!(first("html: meta\n"), 200);
    for nothing_new in [
        "",
        "origin_tags: keep\n",
        "origin_tags: replace\n",
        "html: off\n",
    ] {
        assert_eq!(
            first(nothing_new),
            304,
            "{nothing_new:?}: without rules the origin's tags pass as they are"
        );
    }
}

#[test]
fn changed_tag_rule_sends_its_own_pages_whole() {
    let origin = leaking();
    let rules = |tag: &str, path: &str| {
        format!("indexing: [{{ paths: {path}, tag: {tag} }}, {{ paths: /c/b, tag: noarchive }}]\n")
    };
    let mut gate = Setup::before(origin.address)
        .policy("site", &with(&rules("nofollow", "/c/a")))
        .with_clock()
        .start();
    gate.live_through(31 * DAY);
    let statuses =
        |gate: &Gate| ["/c/a", "/c/b", "/other"].map(|target| again(gate, BINGBOT, target).status);
    assert_eq!(statuses(&gate), [304, 304, 304]);
    edit(&gate, &rules("nosnippet", "/c/a"));
    assert_eq!(statuses(&gate), [200, 304, 304]);
    gate.live_through(31 * DAY);
    // How the origin's tags are combined with ours matters where there are any of ours.
    edit(
        &gate,
        &format!("origin_tags: replace\n{}", rules("nosnippet", "/c/a")),
    );
    assert_eq!(statuses(&gate), [200, 200, 304]);
    gate.live_through(31 * DAY);
    // For which pages a rule was that is gone, nobody knows.
    edit(
        &gate,
        &format!("origin_tags: replace\n{}", rules("nosnippet", "/c/x")),
    );
    assert_eq!(statuses(&gate), [200, 200, 200]);
}

/// Rules by path, with no hosts or some.
fn site(hosts: &str, rules: &[(&str, &str)]) -> String {
    let hosts = if hosts.is_empty() {
        String::new()
    } else {
        format!("hosts: [{hosts}]\n")
    };
    let rules: Vec<String> = rules
        .iter()
        .map(|(path, tag)| format!("{{ paths: {path}, tag: {tag} }}"))
        .collect();
    let rules = if rules.is_empty() {
        String::new()
    } else {
        format!("indexing: [{}]\n", rules.join(", "))
    };
    format!("{hosts}{}", with(&rules))
}

fn remove(gate: &Gate, name: &str) {
    std::fs::remove_file(gate.setup.policies().join(format!("{name}.yaml"))).expect("removed");
}

/// Changes files under a running crawlgate, or while none is there, and confirms the end of sites
/// that have no file.
fn change(gate: &mut Gate, cold: bool, change: impl FnOnce(&Gate)) {
    if cold {
        gate.restart("TERM", change);
    } else {
        change(gate);
    }
    let report: Value =
        serde_json::from_slice(&gate.command(&["reload", "--json"]).stdout).expect("JSON");
    let sites = report["sites"].as_array().expect("sites").iter();
    let missing = sites
        .filter(|site| site["outcome"] == "missing")
        .filter_map(|site| site["site"].as_str());
    let arguments: Vec<&str> = ["reload"]
        .into_iter()
        .chain(missing.flat_map(|site| ["--remove", site]))
        .collect();
    let reload = gate.command(&arguments);
    assert!(reload.status.success(), "{reload:?}");
}

/// What a crawler that has the page of a host is answered.
fn revisit(gate: &Gate, host: &str, target: &str) -> u16 {
    let condition =
        |user_agent: &str| format!("User-Agent: {user_agent}\r\nIf-None-Match: \"v1\"\r\n");
    assert_eq!(
        gate.get(host, target, &condition(BROWSER)).status,
        304,
        "people keep their copies: {host}{target}"
    );
    gate.get(host, target, &condition(BINGBOT)).status
}

/// Begins with policies that are old, changes files, and looks at hosts: those that moved have
/// whole pages for thirty days, through restarts; the others never.
fn moving(policies: &[(&str, String)], files: impl Fn(&Gate), moved: &[&str], others: &[&str]) {
    let origin = Origin::start(|request, stream| {
        let answer: &[u8] = match request.field("if-none-match") {
            Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n",
            None => b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok",
        };
        stream.write_all(answer).is_ok()
    });
    for cold in [false, true] {
        let mut setup = Setup::before(origin.address).with_clock();
        for (name, text) in policies {
            setup = setup.policy(name, text);
        }
        let mut gate = setup.start();
        gate.live_through(40 * DAY);
        for host in moved.iter().chain(others) {
            assert_eq!(
                revisit(&gate, host, "/a"),
                304,
                "nothing changed lately: {host}, cold: {cold}"
            );
        }
        change(&mut gate, cold, &files);
        let look = |gate: &Gate, wanted: u16, when: &str| {
            for host in moved {
                assert_eq!(
                    revisit(gate, host, "/a"),
                    wanted,
                    "{host} {when}, cold: {cold}"
                );
            }
            for host in others {
                assert_eq!(
                    revisit(gate, host, "/a"),
                    304,
                    "{host} {when}, cold: {cold}"
                );
            }
        };
        look(&gate, 200, "at once");
        gate.live_through(29 * DAY);
        gate.restart("TERM", |_| {});
        look(&gate, 200, "29 days later");
        gate.live_through(2 * DAY);
        look(&gate, 304, "31 days later");
    }
}

#[test]
fn renamed_site_sends_pages_with_removed_tags_whole() {
    let rename = |gate: &Gate| {
        remove(gate, "shop");
        gate.write_policy("store", &site("shop.example", &[("/b", "noarchive")]));
    };
    let shop = site("shop.example", &[("/a", "noindex"), ("/b", "noarchive")]);
    let blog = site("blog.example", &[("/a", "nofollow")]);
    moving(
        &[("shop", shop), ("blog", blog)],
        rename,
        &["shop.example"],
        &["blog.example", "elsewhere.example"],
    );
}

#[test]
fn removed_site_loses_its_tags() {
    let shop = || {
        (
            "shop",
            site("shop.example, '*.shop.example'", &[("/a", "noindex")]),
        )
    };
    let gone = |gate: &Gate| remove(gate, "shop");
    let of_the_shop = ["shop.example", "www.shop.example:8080"];
    // Another is for every other host, and says nothing.
    moving(
        &[shop(), ("others", site("", &[]))],
        gone,
        &of_the_shop,
        &["elsewhere.example"],
    );
    // No site is there for its hosts any more.
    moving(
        &[shop(), ("blog", site("blog.example", &[]))],
        gone,
        &of_the_shop,
        &["blog.example", "elsewhere.example"],
    );
    // No policy at all.
    moving(&[shop()], gone, &of_the_shop, &["elsewhere.example"]);
    moving(
        &[("shop", site("", &[("/a", "noindex")]))],
        gone,
        &["elsewhere.example"],
        &[],
    );
    // Its name is that of the site that is there without a policy.
    moving(
        &[("origin", site("", &[("/a", "noindex")]))],
        |gate| remove(gate, "origin"),
        &["elsewhere.example"],
        &[],
    );
}

#[test]
fn host_moved_to_another_site_loses_old_tags() {
    let shop = |hosts: &str| site(hosts, &[("/a", "noindex")]);
    let before = [
        ("shop", shop("shop.example, www.shop.example")),
        ("blog", site("blog.example", &[])),
    ];
    let moves = |gate: &Gate| {
        gate.write_policy("shop", &shop("shop.example"));
        gate.write_policy("blog", &site("blog.example, www.shop.example", &[]));
    };
    moving(
        &before,
        moves,
        &["www.shop.example"],
        &["shop.example", "blog.example", "elsewhere.example"],
    );
    // So it is with one of a wildcard's hosts, and the others stay where they are.
    let before = [
        ("shop", shop("'*.shop.example'")),
        ("blog", site("blog.example", &[])),
    ];
    let moves =
        |gate: &Gate| gate.write_policy("blog", &site("blog.example, www.shop.example", &[]));
    moving(
        &before,
        moves,
        &["www.shop.example"],
        &["a.shop.example", "blog.example"],
    );
}

#[test]
fn host_joining_a_site_gets_its_tags() {
    let joins = |gate: &Gate| {
        gate.write_policy(
            "shop",
            &site("shop.example, new.example", &[("/a", "noindex")]),
        )
    };
    let shop = ("shop", site("shop.example", &[("/a", "noindex")]));
    moving(
        std::slice::from_ref(&shop),
        joins,
        &["new.example"],
        &["shop.example", "elsewhere.example"],
    );
    moving(
        &[shop, ("others", site("", &[]))],
        joins,
        &["new.example"],
        &["shop.example", "elsewhere.example"],
    );
}

#[test]
fn untagged_host_may_move_to_an_untagged_site() {
    let before = [
        ("shop", site("shop.example, new.example", &[])),
        ("blog", site("blog.example", &[])),
    ];
    let moves = |gate: &Gate| {
        gate.write_policy("shop", &site("shop.example", &[]));
        gate.write_policy("blog", &site("blog.example, new.example", &[]));
    };
    moving(
        &before,
        moves,
        &[],
        &["shop.example", "new.example", "blog.example"],
    );
    // A policy's first rules are new themselves, and only for their paths.
    let rules = |gate: &Gate| gate.write_policy("shop", &site("", &[("/c", "noindex")]));
    moving(&[], rules, &[], &["shop.example"]);
}
