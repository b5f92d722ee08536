//! The first day behind crawlgate: what was there before, as the operator says, and pages for
//! people.

use crate::proxy::support::{
    BINGBOT, BROWSER, Gate, Origin, Received, Setup, eventually, read, run,
};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::net::TcpStream;

const HOST: &str = "shop.example";
const HOUR: i64 = 3_600;
const BEFORE: &str = "User-agent: *\nDisallow: /cart/\n";

fn policy(previous: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, {previous} groups: [{{ agents: \"*\", disallow: [/cart/, /new/] }}] }}\n"
    )
}

fn setup(origin: &Origin, policy: &str) -> Setup {
    let settings = "logs: { events: events.log, access: access.log }";
    Setup::before(origin.address)
        .policy("shop", policy)
        .settings(settings)
        .with_clock()
}

/// A gate whose policy says what was there before.
fn declared(origin: &Origin) -> Gate {
    let setup = setup(origin, &policy("previous: before.txt,"));
    fs::write(setup.policies().join("before.txt"), BEFORE).expect("the file from before");
    setup.start()
}

/// What the access log calls a request of Bingbot.
fn kind(gate: &Gate, path: &str) -> String {
    let kinds = || -> Vec<String> {
        let log = read(&gate.path("access.log"));
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_it = lines.filter(|line| line["target"] == path);
        of_it
            .map(|line| line["kind"].as_str().expect("a kind").to_owned())
            .collect()
    };
    let before = kinds().len();
    gate.get(HOST, path, &format!("User-Agent: {BINGBOT}\r\n"));
    eventually("a line of the access log", || {
        kinds().into_iter().nth(before)
    })
}

fn last_event(gate: &Gate, path: &str) -> Value {
    eventually("an event", || {
        let log = read(&gate.path("events.log"));
        let lines: Vec<Value> = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        lines.into_iter().rfind(|line| line["target"] == path)
    })
}

#[test]
fn violations_are_certain_from_the_first_minute() {
    let origin = Origin::plain();
    let mut gate = declared(&origin);
    assert_eq!(kind(&gate, "/cart/"), "violation");
    let event = last_event(&gate, "/cart/");
    assert_eq!(
        (&event["history"], event["cached"].as_array().map(Vec::len)),
        (&"declared".into(), Some(1)),
        "{event}"
    );
    // What was there before allows it, and the crawler may still use that.
    assert_eq!(kind(&gate, "/new/"), "stale_copy");
    for _ in 0..25 {
        gate.live_through(HOUR);
        assert_eq!(kind(&gate, "/"), "allowed");
    }
    assert_eq!(kind(&gate, "/new/"), "violation");
    assert_eq!(last_event(&gate, "/new/")["history"], "observed");
}

#[test]
fn without_a_word_on_the_past_nothing_is_certain() {
    let origin = Origin::plain();
    let gate = setup(&origin, &policy("")).start();
    assert_eq!(kind(&gate, "/cart/"), "unproven");
    assert_eq!(last_event(&gate, "/cart/")["history"], "unknown");
}

#[test]
fn the_word_on_the_past_outlasts_a_restart_and_no_gap() {
    let origin = Origin::plain();
    let mut gate = declared(&origin);
    assert_eq!(kind(&gate, "/cart/"), "violation");
    gate.wait_until_stored();
    gate.restart("TERM", |_| {});
    assert_eq!(kind(&gate, "/cart/"), "violation");
    assert_eq!(kind(&gate, "/new/"), "stale_copy");
    // Another server may have answered for the host in these minutes.
    gate.restart("TERM", |gate| {
        gate.write_clock(300, 0);
    });
    assert_eq!(kind(&gate, "/cart/"), "unproven");
}

#[test]
fn the_word_on_the_past_ends_when_the_clock_is_set() {
    let origin = Origin::plain();
    let mut gate = declared(&origin);
    assert_eq!(kind(&gate, "/cart/"), "violation");
    gate.set_clock(2 * HOUR);
    assert_eq!(kind(&gate, "/cart/"), "unproven");
    gate.live_through(60);
    assert_eq!(kind(&gate, "/cart/"), "unproven");
}

#[test]
fn previous_without_state_counts_for_nothing() {
    let origin = Origin::plain();
    let setup = setup(&origin, &policy("previous: before.txt,"));
    fs::write(setup.policies().join("before.txt"), BEFORE).expect("the file from before");
    // A file where the state directory should be.
    let directory = setup.policies();
    fs::write(directory.parent().expect("a directory").join("state"), "").expect("a file");
    let gate = setup.start();
    assert_eq!(kind(&gate, "/cart/"), "unproven");
}

#[test]
fn a_file_that_comes_later_is_taken() {
    let origin = Origin::plain();
    let gate = setup(&origin, &policy("previous: before.txt,")).start();
    assert_eq!(kind(&gate, "/cart/"), "unproven");
    let findings = run(&[
        "check",
        "--json",
        &gate.path("policies/shop.yaml").display().to_string(),
    ]);
    assert!(
        String::from_utf8_lossy(&findings.stdout).contains("\"missing-file\""),
        "{findings:?}"
    );
    fs::write(gate.path("policies/before.txt"), BEFORE).expect("the file from before");
    eventually("the file is taken", || {
        (kind(&gate, "/cart/") == "violation").then_some(())
    });
}

/// Answers `/robots.txt` with this and everything else with a page.
fn with_robots_txt(received: &Received, stream: &mut TcpStream) -> bool {
    let body = if received.target() == "/robots.txt" {
        BEFORE
    } else {
        "a page"
    };
    let kind = "Content-Type: text/plain";
    write!(
        stream,
        "HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .is_ok()
}

#[test]
fn previous_can_be_the_origins_own_file() {
    let origin = Origin::start(with_robots_txt);
    let policy = format!(
        "hosts: [{HOST}]\nrobots: {{ previous: origin, groups: [{{ agents: \"*\", disallow: [/new/] }}] }}\n"
    );
    let gate = setup(&origin, &policy).start();
    eventually("the origin's file", || {
        let file = gate.get(HOST, "/robots.txt", "User-Agent: curl/8\r\n");
        file.text().contains("/cart/").then_some(())
    });
    assert_eq!(kind(&gate, "/cart/"), "violation");
    assert_eq!(kind(&gate, "/new/"), "stale_copy");
}

#[test]
fn people_see_the_sites_own_page_during_a_pause() {
    let origin = Origin::plain();
    let policy = format!(
        "{}answers: {{ pause: closed.html, failure: failed.html }}\n",
        policy("")
    );
    let setup = setup(&origin, &policy);
    fs::write(
        setup.policies().join("closed.html"),
        "<title>{{status}}</title><h1>Back at noon</h1>",
    )
    .expect("a page");
    let gate = setup.start();
    assert!(
        gate.command(&["pause", "--everyone", "--for", "1h"])
            .status
            .success()
    );
    let browser = |gate: &Gate| {
        gate.get(
            HOST,
            "/",
            &format!("User-Agent: {BROWSER}\r\nAccept: text/html\r\n"),
        )
    };
    let page = browser(&gate);
    assert_eq!(
        (page.status, page.field("content-type")),
        (503, Some("text/html; charset=utf-8"))
    );
    assert_eq!(
        page.text(),
        "<title>503 Service Unavailable</title><h1>Back at noon</h1>"
    );
    // The page is read again when it changes.
    fs::write(gate.path("policies/closed.html"), "<h1>Back at one</h1>").expect("a page");
    eventually("the changed page", || {
        (browser(&gate).text() == "<h1>Back at one</h1>").then_some(())
    });
}

#[test]
fn people_read_nothing_of_crawlers_when_the_origin_is_gone() {
    let gate = Setup::before(Origin::nowhere())
        .policy("shop", &policy(""))
        .start();
    let page = gate.get(
        HOST,
        "/",
        &format!("User-Agent: {BROWSER}\r\nAccept: text/html\r\n"),
    );
    assert_eq!(page.status, 502);
    assert!(
        !page.text().contains("crawler") && page.text().contains("again"),
        "{}",
        page.text()
    );
}
