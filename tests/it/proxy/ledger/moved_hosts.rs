//! A host that goes to another site and comes back: what crawlers were given there, the first
//! site's ledger does not know.

use crate::proxy::support::{BINGBOT, Gate, Origin, Setup, eventually};
use std::io::Write;
use std::sync::{Arc, Mutex};

const HOUR: i64 = 3_600;

fn policy(hosts: &str, rules: &str) -> String {
    format!(
        "hosts: [{hosts}]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: {rules} }}] }}\nenforcement: {{ mode: enforce }}\n"
    )
}

fn kind(gate: &Gate, target: &str) -> String {
    let question = [
        "explain",
        "--live",
        "--json",
        "--host",
        "shop.example",
        "--user-agent",
        BINGBOT,
        target,
    ];
    let output = gate.command(&question);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    told["kind"].as_str().expect("a kind").to_owned()
}

fn visit(gate: &Gate, target: &str) -> u16 {
    gate.get(
        "shop.example",
        target,
        &format!("User-Agent: {BINGBOT}\r\n"),
    )
    .status
}

/// A day of visits.
fn watched(origin: &Origin) -> Gate {
    let setup = Setup::before(origin.address)
        .policy("shop", &policy("shop.example", "[/a/, /never/]"))
        .policy("other", &policy("other.example", "[/never/]"));
    let mut gate = setup.with_clock().start();
    assert_eq!(visit(&gate, "/robots.txt"), 200);
    for _ in 0..5 {
        gate.live_through(5 * HOUR);
        assert_eq!(visit(&gate, "/"), 200);
    }
    assert_eq!(kind(&gate, "/a/"), "violation");
    gate
}

#[test]
fn crawler_served_another_sites_rules_is_no_violator() {
    let origin = Origin::plain();
    let mut gate = watched(&origin);
    let hosts = |gate: &Gate, shop: &str, other: &str| {
        gate.write_policy("shop", &policy(shop, "[/a/, /never/]"));
        assert!(gate.command(&["reload"]).status.success());
        gate.write_policy("other", &policy(other, "[/never/]"));
        assert!(gate.command(&["reload"]).status.success());
        // The one that could not have the host at first has it now.
        assert!(gate.command(&["reload"]).status.success());
    };
    hosts(&gate, "www.shop.example", "other.example, shop.example");
    let given = gate.get(
        "shop.example",
        "/robots.txt",
        &format!("User-Agent: {BINGBOT}\r\n"),
    );
    assert!(!given.text().contains("/a/"), "{}", given.text());
    assert_eq!(visit(&gate, "/a/"), 200, "it may");
    gate.live_through(HOUR);
    gate.write_policy("other", &policy("other.example", "[/never/]"));
    assert!(gate.command(&["reload"]).status.success());
    gate.write_policy("shop", &policy("shop.example", "[/a/, /never/]"));
    assert!(gate.command(&["reload"]).status.success());
    assert_eq!(visit(&gate, "/"), 200);
    assert_eq!(
        kind(&gate, "/a/"),
        "stale_copy",
        "it holds the other site's, which allows it"
    );
    assert_eq!(kind(&gate, "/never/"), "unproven", "the watch began anew");
    for _ in 0..5 {
        gate.live_through(5 * HOUR);
        assert_eq!(visit(&gate, "/"), 200);
    }
    assert_eq!(
        kind(&gate, "/a/"),
        "violation",
        "a day later no such copy is left"
    );
}

#[test]
fn a_move_is_not_forgotten_by_a_kill_9_right_after_it() {
    let origin = Origin::plain();
    let mut gate = watched(&origin);
    gate.write_policy("shop", &policy("www.shop.example", "[/a/, /never/]"));
    assert!(gate.command(&["reload"]).status.success());
    // At once, and the host is back when it is there again.
    gate.restart("KILL", |gate| {
        gate.write_policy("shop", &policy("shop.example", "[/a/, /never/]"))
    });
    assert_eq!(visit(&gate, "/"), 200);
    assert_eq!(kind(&gate, "/a/"), "unproven");
    // A restart alone ends no watch.
    let mut gate = watched(&origin);
    gate.wait_until_stored();
    gate.restart("KILL", |_| ());
    assert_eq!(kind(&gate, "/never/"), "violation");
}

/// From no policy to one, with a stop in between: the host is the same, and so is the crawler's
/// copy.
#[test]
fn first_policy_counts_versions_served_before() {
    let file = Arc::new(Mutex::new(Some("User-agent: *\nDisallow: /theirs/\n")));
    let told = file.clone();
    let origin = Origin::start(move |request, stream| {
        let file = *told.lock().expect("no panic");
        let answer = match (request.target(), file) {
            ("/robots.txt", Some(file)) => {
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{file}",
                    file.len()
                )
            }
            ("/robots.txt", None) => "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".to_owned(),
            _ => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        };
        stream.write_all(answer.as_bytes()).is_ok()
    });
    let mut gate = Setup::before(origin.address).start();
    let theirs = eventually("the origin's file", || {
        let answer = gate.get(
            "shop.example",
            "/robots.txt",
            &format!("User-Agent: {BINGBOT}\r\n"),
        );
        (answer.status == 200).then_some(answer)
    });
    assert!(theirs.text().contains("/theirs/"));
    gate.restart("TERM", |gate| {
        *file.lock().expect("no panic") = None;
        let ours = "hosts: shop.example\nenforcement: { mode: enforce }\nrobots: { groups: [{ agents: '*', disallow: /ours/ }] }\n";
        gate.write_policy("shop", ours);
    });
    let both = gate.get("shop.example", "/robots.txt", "");
    assert_eq!(
        both.status, 200,
        "the copy that was in use goes on while the origin fails"
    );
    assert!(
        both.text().contains("/theirs/") && both.text().contains("/ours/"),
        "{}",
        both.text()
    );
    assert_eq!(
        (visit(&gate, "/ours/"), kind(&gate, "/ours/")),
        (200, "stale_copy".to_owned()),
        "its copy allows it"
    );
    assert_eq!(
        (visit(&gate, "/theirs/"), kind(&gate, "/theirs/")),
        (403, "unproven".to_owned()),
        "its copy does not"
    );
}
