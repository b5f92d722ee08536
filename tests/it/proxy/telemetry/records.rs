//! What fixed requests leave behind, byte for byte: access log, event log, metrics, API, evidence
//! log and history. `records.txt` has it, with words in place of what differs between two runs.
//!
//! `UPDATE_RECORDS=1 cargo test --test it -- telemetry::records` writes that file anew.

use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::{Connection, Gate, Http2, Origin, Setup, eventually, read, run};
use regex::Regex;
use rusqlite::Connection as Database;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A request a line: the client as the proxy in front names it, and the head, where ` | ` ends a line
/// and each character is a byte. At `+25h` so much time passes.
const REQUESTS: &str = include_str!("requests.txt");
const LATER: &str = "+25h\n";
const RECORDS: &str = include_str!("records.txt");
const SHOP: &str = r#"
hosts: [shop.example]
robots: { origin: replace, previous: before.txt, groups: [
  { agents: ["*"], disallow: [/cart/, /trap/, /new/] },
  { agents: [bingbot], disallow: [/cart/], crawl_delay: 1h }] }
enforcement: { mode: enforce, behind_cache: no, traps: [/trap/], exempt: [IntranetBot], agents: { CCBot: off } }
crawlers: [{ token: PartnerBot, networks: 198.51.100.0/24 }, { token: IntranetBot }]
"#;
/// As the shop's, but for `/new/`.
const BEFORE: &str = "User-agent: bingbot\nDisallow: /cart/\nCrawl-delay: 3600\n\n\
                      User-agent: *\nDisallow: /cart/\nDisallow: /trap/\n";
/// Only observed; what crawlers may have cached is unknown.
const BLOG: &str = "hosts: [blog.example]\nenforcement: { behind_cache: no }\n\
                    robots: { origin: replace, groups: [{ agents: [\"*\"], disallow: [/private/] }] }\n";
const NEWS: &str = "hosts: [news.example]\nrobots: { origin: replace, license: https://news.example/license.xml }\n\
                    enforcement: { mode: enforce, purposes: { training: { unlicensed: 401 } } }\n";
const PAUSED: &str = "hosts: [paused.example]\nrobots: { origin: replace }\npause: { audience: everyone, retry_after: 30m }\n";
const GPTBOT_LIST: &str = "openai.com/gptbot.json";
const REQUEST_ID: &str = "front-1:a/b";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
/// Each entry with its personal values.
const EVIDENCE: &str = "SELECT line || coalesce((SELECT group_concat(' ' || name || '=' || value, '' ORDER BY name) \
                        FROM personal AS p WHERE p.chain = e.chain AND p.number = e.number), '') FROM entries AS e \
                        JOIN chains AS c ON c.id = e.chain WHERE c.crawler <> '' ORDER BY c.site, c.crawler, e.number";
/// All but the time.
const SAMPLES: &str = "SELECT concat_ws(' | ', site, crawler, kind, rule, number, rule_source, client, identity, method, \
                       host, target, user_agent, iif(would = '', action, 'would_' || would), status, version) FROM \
                       history_samples ORDER BY rowid";
/// A hash of something that differs between two runs.
const COMMITMENT: &str = r#"(previous|client|target|user_agent|\d,"sha256)":"[0-9a-f]{64}"#;
/// How much of the long target a log has.
const CUT: usize = 2_048 - "/cart/".len();

/// A crawlgate with an access log of this format, and with more settings. `clock` is by how many
/// seconds its clock is set forward.
fn start(origin: &Origin, format: &str, settings: &str, clock: i64) -> Gate {
    let setup = Setup::before("").with_clock_set(clock);
    let policies = setup.policies();
    let root = policies.parent().expect("the directory").display();
    for (file, text) in [
        ("policies/before.txt", BEFORE),
        (&format!("lists/{GPTBOT_LIST}"), "192.0.2.0/24\n"),
        (".well-known/acme-challenge/token", "token.hash"),
    ] {
        let file = policies.with_file_name(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, text).expect("a file");
    }
    let up = origin.address;
    let down = Origin::nowhere();
    let gate = setup
        .with_origins(&format!(
            "origins: [{{ hosts: [down.example], servers: http://{down} }}, {{ servers: http://{up} }}]"
        ))
        .listeners("[127.0.0.1:0, { address: 127.0.0.1:0, redirect: https }]")
        .settings(&format!(
            "trusted_proxies: [127.0.0.1]\nevidence: on\nacme_webroot: {root}\n\
             logs: {{ access: {{ to: access.log, format: {format} }}, events: events.log }}\n\
             identity: {{ lists: {root}/lists, outgoing: no }}\n{settings}"
        ))
        .policy("shop", SHOP)
        .policy("blog", BLOG)
        .policy("news", NEWS)
        .policy("paused", PAUSED)
        .start();
    let list = format!("crawlgate_identity_list_networks{{list=\"{GPTBOT_LIST}\"}}");
    gate.wait_for_metric(&list, 1.0);
    gate
}

/// Sends requests, one of them over HTTP/2, and waits for the record of each before the next.
fn send(gate: &Gate, requests: &str) {
    let lines = || read(&gate.path("access.log")).matches('\n').count();
    let recorded = |before| eventually("a line", || (lines() > before).then_some(()));
    let mut etag = String::new();
    for request in requests.lines() {
        let (client, head) = request.split_once(' ').expect("a client");
        let head = head
            .replace("LONG", &"x".repeat(3 * 1_024))
            .replace("ETAG", &etag)
            .replace(" | ", "\r\n");
        let forwarded = match client {
            "-" => String::new(),
            client => format!("X-Forwarded-For: {client}\r\n"),
        };
        let head = format!("{head}\r\n{forwarded}\r\n");
        let bytes = head.chars().map(|byte| u8::try_from(byte).expect("a byte"));
        let before = lines();
        let listener = usize::from(head.contains("/to-https"));
        let mut connection = Connection::open(gate.listening[listener]);
        connection.send_bytes(&bytes.collect::<Vec<u8>>());
        let response = connection.response(head.split(' ').next().expect("a method"));
        if let Some(sent) = response.field("etag") {
            etag = sent.to_owned();
        }
        recorded(before);
    }
    let before = lines();
    let fields = [("user-agent", "ClaudeBot/1.0")];
    Http2::open(gate.address).get("shop.example", "/cart/2", &fields);
    recorded(before);
}

/// Stops it, so that all is written.
fn stop(gate: &mut Gate) {
    gate.signal("TERM");
    assert!(gate.ended().success());
}

/// The text with a word in place of each match.
fn replaced(text: &str, pattern: &str, word: &str) -> String {
    let pattern = Regex::new(pattern).expect("a pattern");
    pattern.replace_all(text, word).into_owned()
}

/// JSON with a thing a line, for whoever compares two.
fn compact(json: &str) -> String {
    replaced(json, r"\n *", "").replace("},{", "},\n{") + "\n"
}

/// The first column of each row.
fn rows(database: &Path, query: &str) -> String {
    let database = Database::open(database).expect("a database");
    let mut statement = database.prepare(query).expect("a query");
    let rows = statement.query_map([], |row| row.get(0));
    let text = |row: Result<String, _>| row.expect("a text") + "\n";
    rows.expect("rows").map(text).collect()
}

/// The records of a crawlgate by the names of their sections; it is stopped for that.
fn records(gate: &mut Gate) -> Vec<(&'static str, String)> {
    let violations = compact(&gate.admin_page("/api/violations"));
    let metrics = gate.metrics();
    let counter = Regex::new("crawlgate_(requests|violations|identity|robots_txt)_total\\{");
    let counter = counter.expect("a pattern");
    let lines = metrics.split_inclusive('\n');
    let metrics = lines.filter(|line| counter.is_match(line)).collect();
    stop(gate);
    let state = gate.path("state");
    let report = run(&["report", "--json", "--state", &state.display().to_string()]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let mut counts = format!("{}\n", report["totals"]);
    for row in report["crawlers"].as_array().expect("rows") {
        let (id, identity, part) = (&row["id"], &row["identity"], &row["part"]);
        counts.push_str(&format!("{id} {identity} {part} {}\n", row["counts"]));
    }
    vec![
        ("access log", read(&gate.path("access.log"))),
        ("event log", read(&gate.path("events.log"))),
        ("metrics", metrics),
        ("/api/violations", violations),
        ("evidence log", rows(&state.join("evidence.db"), EVIDENCE)),
        ("samples", rows(&state.join("state.db"), SAMPLES)),
        ("report", counts),
    ]
}

/// The text without what differs between two runs.
fn without_chance(text: &str, gate: &Gate) -> String {
    let directory = gate.path("").display().to_string();
    let text = text.replace(&directory, "");
    let mut text = text.replace(&"x".repeat(CUT), "x{CUT}");
    for (pattern, word) in [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "MILLISECOND"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "SECOND"),
        (r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000", "SECOND"),
        (r#"("milliseconds":)\d+\.\d+"#, "${1}NUMBER"),
        (r#"("origin_milliseconds":)\d+\.\d+"#, "${1}NUMBER"),
        (r#"("server":"127\.0\.0\.1:)\d+"#, "${1}PORT"),
        (r#"("retry_after": ?)\d+"#, "${1}NUMBER"),
        (r#"("(stale|unproven)_until":)\d+"#, "${1}NUMBER"),
        // None where it took less than one.
        (r#""origin_milliseconds":\d+,"#, ""),
        ("crawlgate-evidence-[0-9a-f]{16}", "LOG"),
        (r#"("request_id": ?")[0-9a-f]{32}""#, "${1}MADE\""),
        (COMMITMENT, "$1\":\"HASH"),
    ] {
        text = replaced(&text, pattern, word);
    }
    text
}

/// A section of `records.txt`.
fn section(name: &str) -> &'static str {
    let begin = format!("== {name}\n");
    let mut sections = RECORDS.split_inclusive("\n\n");
    let section = sections.find_map(|section| section.strip_prefix(&begin));
    section.expect("a section").trim_end_matches('\n')
}

/// Compares lines, as many as both have; the first one has some.
fn compare(found: &str, expected: &str) {
    assert!(!found.is_empty());
    let lines = found.lines().zip(expected.lines());
    lines.for_each(|(found, expected)| assert_eq!(found, expected));
}

#[test]
fn fixed_requests_leave_the_same_records_as_ever() {
    let origin = Origin::plain();
    let (before, after) = REQUESTS.split_once(LATER).expect("two parts");
    let mut found = Vec::new();
    for format in ["json", "combined", "vhost_combined"] {
        // In the end the clock is that of the system, as the report reads it.
        let mut gate = start(&origin, format, "", -25 * 3_600);
        send(&gate, before);
        gate.live_through(25 * 3_600);
        send(&gate, after);
        let records = match format {
            "json" => records(&mut gate),
            format => vec![(format, read(&gate.path("access.log")))],
        };
        for (name, text) in records {
            found.push((name, without_chance(&text, &gate)));
        }
    }
    if std::env::var_os("UPDATE_RECORDS").is_some() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/it/proxy/telemetry/records.txt"
        );
        let written = found
            .iter()
            .map(|(name, text)| format!("== {name}\n{text}\n"));
        return fs::write(file, written.collect::<String>()).expect("the records are written");
    }
    for (name, text) in &found {
        compare(text, section(name));
        assert_eq!(
            text.lines().count(),
            section(name).lines().count(),
            "{name}"
        );
    }
}

#[test]
fn records_that_wait_for_other_instances_are_the_same() {
    let origin = Origin::plain();
    let redis = RedisServer::start();
    let mut gate = start(&origin, "json", &format!("store: '{}'", redis.url()), 0);
    gate.wait_for_metric("crawlgate_accuses", 1.0);
    send(&gate, REQUESTS.split(LATER).next().expect("the first part"));
    stop(&mut gate);
    for (file, name) in [("access.log", "access log"), ("events.log", "event log")] {
        let found = without_chance(&read(&gate.path(file)), &gate);
        compare(&found, section(name));
    }
}

#[test]
fn evidence_has_nothing_that_other_logs_are_joined_by() {
    let evidence = section("evidence log");
    let events = section("event log");
    for joined in [REQUEST_ID, TRACE_ID, "request_id", "trace_id"] {
        assert!(events.contains(joined), "{joined}");
        assert!(!evidence.contains(joined), "{joined}");
    }
    // What is personal is no part of an entry.
    for line in evidence.lines() {
        let (entry, personal) = line.split_once("} ").unwrap_or((line, ""));
        let values = personal.split(' ').filter_map(|word| word.split_once('='));
        values.for_each(|(_, value)| assert!(!entry.contains(&format!("\"{value}\"")), "{entry}"));
    }
}
