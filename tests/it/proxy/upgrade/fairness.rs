//! What crawlers were served goes with an upgrade: nobody is accused for what the process before
//! served, and violators are known as before.

use crate::proxy::support::upgrade::signal;
use crate::proxy::support::{BINGBOT, Connection, Gate, HOST, Origin, Setup};
use std::fs;

const HOUR: i64 = 3_600;

fn policy(disallowed: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: {disallowed} }}] }}\n\
         enforcement: {{ mode: enforce }}\n"
    )
}

fn kind(gate: &Gate, target: &str) -> String {
    let question = [
        "explain",
        "--live",
        "--json",
        "--host",
        HOST,
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

/// A day of visits under a policy that disallows `/never/`.
fn watched(origin: &Origin) -> Gate {
    let setup = Setup::before(origin.address)
        .policy("site", &policy("[/never/]"))
        .with_clock();
    // A connection that a test keeps open does not end before the test lets it.
    let mut gate = setup
        .settings("limits: { idle: 10m }")
        .replaceable()
        .start();
    assert_eq!(gate.fetch_as(BINGBOT, "/robots.txt").status, 200);
    for _ in 0..5 {
        gate.live_through(5 * HOUR);
        assert_eq!(gate.fetch_as(BINGBOT, "/").status, 200);
    }
    assert_eq!(kind(&gate, "/never/"), "violation");
    gate
}

/// The next process reads its policies elsewhere, and they are stricter: they disallow `/a/`, too.
/// The running one goes on with its own.
fn next_is_stricter(gate: &Gate) {
    fs::create_dir(gate.path("stricter")).expect("a directory");
    fs::write(gate.path("stricter/site.yaml"), policy("[/never/, /a/]")).expect("a policy");
    let policies = |name: &str| format!("policies: {}", gate.path(name).display());
    gate.change_settings(&policies("policies"), &policies("stricter"));
}

fn ask(connection: &mut Connection, target: &str) -> String {
    connection.send(&format!(
        "GET {target} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {BINGBOT}\r\n\r\n"
    ));
    let response = connection.response("GET");
    assert_eq!(response.status, 200);
    response.text().to_owned()
}

#[test]
fn violator_is_known_to_the_next_process_at_once() {
    let origin = Origin::plain();
    let mut gate = watched(&origin);
    gate.upgrade();
    assert!(gate.ended().success());
    assert_eq!(kind(&gate, "/never/"), "violation");
    assert_eq!(gate.fetch_as(BINGBOT, "/never/").status, 403);
}

#[test]
fn robots_txt_of_the_process_before_is_known_to_the_next_one() {
    let origin = Origin::plain();
    let mut gate = watched(&origin);
    let mut kept = gate.connect();
    ask(&mut kept, "/");
    next_is_stricter(&gate);
    gate.upgrade();
    assert!(gate.fetch("/robots.txt").text().contains("/a/"));
    assert_ne!(
        kind(&gate, "/a/"),
        "violation",
        "every crawler may have what was in force until now"
    );
    gate.live_through(20 * HOUR);
    assert!(
        !ask(&mut kept, "/robots.txt").contains("/a/"),
        "the process before has its own policy"
    );
    assert!(gate.ended().success());
    gate.log.wait_for("predecessor=\"answered\"");
    for _ in 0..2 {
        assert_eq!(gate.fetch_as(BINGBOT, "/").status, 200);
        gate.live_through(5 * HOUR);
    }
    assert_ne!(
        kind(&gate, "/a/"),
        "violation",
        "it was served ten hours ago"
    );
    for _ in 0..4 {
        assert_eq!(gate.fetch_as(BINGBOT, "/").status, 200);
        gate.live_through(5 * HOUR);
    }
    assert_eq!(
        kind(&gate, "/a/"),
        "violation",
        "no crawler can have it any more"
    );
}

/// What a process that is killed in its last minutes may have served, every crawler may have.
#[test]
fn killed_process_before_counts_as_a_crash() {
    let origin = Origin::plain();
    let mut gate = watched(&origin);
    let mut kept = gate.connect();
    ask(&mut kept, "/");
    next_is_stricter(&gate);
    gate.upgrade();
    assert!(gate.fetch("/robots.txt").text().contains("/a/"));
    for _ in 0..5 {
        gate.live_through(5 * HOUR);
        assert_eq!(gate.fetch_as(BINGBOT, "/").status, 200);
    }
    assert_ne!(
        kind(&gate, "/a/"),
        "violation",
        "the process before may serve the superseded version at any moment"
    );
    signal(gate.pid(), "KILL");
    gate.ended();
    gate.log.wait_for("predecessor=\"lost\"");
    for hours in [5, 5, 5, 5, 3] {
        gate.live_through(hours * HOUR);
        assert_eq!(gate.fetch_as(BINGBOT, "/").status, 200);
    }
    assert_ne!(
        kind(&gate, "/a/"),
        "violation",
        "it may have been served 23 hours ago"
    );
    gate.live_through(2 * HOUR);
    assert_eq!(gate.fetch_as(BINGBOT, "/").status, 200);
    assert_eq!(kind(&gate, "/a/"), "violation");
}
