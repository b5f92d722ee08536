//! The event log of the running binary: renamed files, rates, addresses, and what hostile clients
//! write into it.

use crate::proxy::support::{Gate, Origin, Setup, eventually, read};
use serde_json::Value;

const POLICY: &str = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: \"*\", disallow: /cart/ }] }\n\
                      enforcement: { mode: enforce, behind_cache: no }\n";
const GPTBOT: &str = "User-Agent: GPTBot/1.2\r\n";

fn shop(origin: &Origin, logs: &str) -> Gate {
    let settings = format!("trusted_proxies: [127.0.0.1]\nlogs: {logs}");
    Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings(&settings)
        .start()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Waits for so many events in the log.
fn events(gate: &Gate, count: usize) -> Vec<Value> {
    eventually("the events", || {
        let text = read(&gate.path("events.log"));
        Some(lines(text.rsplit_once('\n').map_or("", |(whole, _)| whole)))
            .filter(|events| events.len() >= count)
    })
}

fn status(gate: &Gate) -> String {
    String::from_utf8(gate.command(&["status"]).stdout).expect("text")
}

/// Many requests on one connection.
fn flood(gate: &Gate, count: usize, headers: &str) {
    let mut connection = gate.connect();
    for number in 0..count {
        connection.send(&format!(
            "GET /cart/{number} HTTP/1.1\r\nHost: shop.example\r\n{headers}\r\n"
        ));
        assert_eq!(connection.response("GET").status, 403);
    }
}

#[test]
fn hostile_values_stay_valid_json_lines_and_bounded() {
    let origin = Origin::plain();
    let gate = shop(&origin, "{ events: events.log }");
    let long = format!("GPTBot/1.2 {}", "\\\"'<x>\u{1f980}".repeat(700));
    let agents: [&[u8]; 5] = [
        long.as_bytes(),
        b"GPTBot/1.2 \"}\n",
        b"GPTBot/1.2 \xff\xfe\x80",
        b"GPTBot/1.2 \t {\"kind\":\"none\"}",
        b"GPTBot/1.2 \\u0000 %00 \\",
    ];
    for agent in agents {
        let mut connection = gate.connect();
        let target = format!("/cart/%22%0a\\{}", "a\"b".repeat(3_000));
        let mut request =
            format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: ").into_bytes();
        request.extend(agent.iter().filter(|byte| **byte != b'\n'));
        request.extend(b"\r\nConnection: close\r\n\r\n");
        connection.send_bytes(&request);
        assert_eq!(connection.response("GET").status, 403);
    }
    let events = events(&gate, agents.len());
    assert_eq!(events.len(), agents.len());
    for (event, line) in events.iter().zip(read(&gate.path("events.log")).lines()) {
        assert_eq!(
            (&event["crawler"], &event["kind"]),
            (&"gptbot".into(), &"unproven".into())
        );
        assert!(line.len() < 16 * 1024, "{} bytes", line.len());
        assert!(!line.chars().any(char::is_control), "{line}");
        assert!(
            event["user_agent"]
                .as_str()
                .is_some_and(|agent| agent.starts_with("GPTBot/1.2 ") && agent.len() <= 2_100)
        );
        assert!(
            event["target"]
                .as_str()
                .is_some_and(|target| target.starts_with("/cart/%22%0a\\a\"ba\"b"))
        );
    }
}

#[test]
fn above_the_rate_each_crawler_keeps_some_events() {
    let origin = Origin::plain();
    let mut gate = shop(&origin, "{ events: { to: events.log, rate: 2 } }");
    let count = 200;
    flood(&gate, count, GPTBOT);
    gate.wait_for_metric(
        "crawlgate_violations_total{crawler=\"gptbot\",kind=\"unproven\",site=\"shop\"}",
        count as f64,
    );
    flood(&gate, 1, "User-Agent: ClaudeBot/1.0\r\n");
    let told = |events: &[Value]| {
        let written = events
            .iter()
            .filter(|event| event["kind"].is_string())
            .count();
        let left_out: u64 = events
            .iter()
            .filter_map(|event| event["left_out"].as_u64())
            .sum();
        (written, left_out)
    };
    eventually("every request is written or counted", || {
        let text = read(&gate.path("events.log"));
        let (written, left_out) = told(&lines(
            text.rsplit_once('\n').map_or("", |(whole, _)| whole),
        ));
        (written as u64 + left_out == count as u64 + 1).then_some(())
    });
    let events = events(&gate, 1);
    let (written, left_out) = told(&events);
    assert!(
        written < count && left_out > 0,
        "{written} written, {left_out} left out"
    );
    assert!(
        events.iter().any(|event| event["crawler"] == "claudebot"),
        "a flood of one hides nobody else"
    );
    // What no event follows is counted at the stop.
    flood(&gate, count, GPTBOT);
    gate.signal("TERM");
    gate.ended();
    let (written, left_out) = told(&lines(&read(&gate.path("events.log"))));
    assert_eq!(written as u64 + left_out, 2 * count as u64 + 1);
}

#[test]
fn addresses_are_written_as_much_as_the_settings_say() {
    let origin = Origin::plain();
    for (detail, v4, v6) in [
        (
            "full",
            Value::from("203.0.113.77"),
            Value::from("2001:db8:1:2::3"),
        ),
        (
            "network",
            Value::from("203.0.113.0"),
            Value::from("2001:db8:1::"),
        ),
        ("none", Value::Null, Value::Null),
    ] {
        let gate = shop(
            &origin,
            &format!("{{ events: events.log }}\nprivacy: {{ logs: {detail} }}"),
        );
        for client in ["203.0.113.77", "2001:db8:1:2::3"] {
            gate.get(
                "shop.example",
                "/cart/",
                &format!("{GPTBOT}X-Forwarded-For: {client}\r\n"),
            );
        }
        let events = events(&gate, 2);
        let clients = || events.iter().map(|event| &event["client"]);
        assert!(
            clients().any(|client| *client == v4) && clients().any(|client| *client == v6),
            "{events:?}"
        );
    }
}

#[test]
fn unwritable_log_delays_no_request_and_is_reported() {
    let origin = Origin::plain();
    let gate = shop(&origin, "{ events: /dev/full }");
    assert!(!status(&gate).contains("event-log"), "{}", status(&gate));
    flood(&gate, 20, GPTBOT);
    gate.log.wait_for("No space left on device");
    eventually("status says so", || {
        let said = status(&gate);
        (said.contains("(warning)") && said.contains("event-log") && said.contains("20"))
            .then_some(())
    });
    gate.wait_for_metric("crawlgate_problems{problem=\"warning\"}", 1.0);
    eventually("the lost lines are counted", || {
        let metrics = gate.metrics();
        let dropped = metrics.lines().find_map(|line| {
            line.strip_prefix("crawlgate_events_dropped_total ")?
                .parse::<u64>()
                .ok()
        });
        dropped.filter(|dropped| *dropped >= 20)
    });
}

#[test]
fn a_removed_or_renamed_file_is_created_again_without_loss() {
    let origin = Origin::plain();
    let gate = shop(&origin, "{ events: { to: events.log, rate: 100000 } }");
    flood(&gate, 3, GPTBOT);
    events(&gate, 3);
    std::fs::remove_file(gate.path("events.log")).expect("removed");
    flood(&gate, 80, GPTBOT);
    assert_eq!(events(&gate, 80).len(), 80);
    std::fs::rename(gate.path("events.log"), gate.path("moved.log")).expect("renamed");
    flood(&gate, 1, GPTBOT);
    assert_eq!(events(&gate, 1).len(), 1);
    gate.wait_for_metric("crawlgate_events_dropped_total", 0.0);
    assert!(!status(&gate).contains("event-log"), "{}", status(&gate));
}

#[test]
fn lines_are_lost_while_a_renamed_file_cannot_be_created() {
    let origin = Origin::plain();
    let gate = shop(&origin, "{ events: { to: events.log, rate: 100000 } }");
    std::fs::rename(gate.path("events.log"), gate.path("moved.log")).expect("renamed");
    std::fs::create_dir(gate.path("events.log")).expect("in the way");
    flood(&gate, 40, GPTBOT);
    gate.wait_for_metric("crawlgate_events_dropped_total", 40.0);
    eventually("status says so", || {
        status(&gate).contains("event-log").then_some(())
    });
    std::fs::remove_dir(gate.path("events.log")).expect("out of the way");
    flood(&gate, 1, GPTBOT);
    assert_eq!(events(&gate, 1).len(), 1);
    eventually("status is silent", || {
        (!status(&gate).contains("event-log")).then_some(())
    });
}

#[test]
fn a_line_that_a_crash_tore_is_ended_before_the_next() {
    let origin = Origin::plain();
    let mut gate = shop(&origin, "{ events: events.log }");
    flood(&gate, 1, GPTBOT);
    events(&gate, 1);
    gate.restart("KILL", |gate| {
        let text = read(&gate.path("events.log"));
        std::fs::write(gate.path("events.log"), &text[..text.len() / 2]).expect("torn");
    });
    flood(&gate, 2, GPTBOT);
    let text = eventually("the events", || {
        Some(read(&gate.path("events.log")))
            .filter(|text| text.ends_with('\n') && text.lines().count() >= 3)
    });
    let (torn, whole) = text.split_once('\n').expect("a line");
    assert!(serde_json::from_str::<Value>(torn).is_err());
    assert_eq!(lines(whole).len(), 2);
}

#[test]
fn each_known_crawler_has_one_event_a_second() {
    let origin = Origin::plain();
    let gate = shop(&origin, "{ events: { to: events.log, rate: 1 } }");
    let listed = std::process::Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(["crawlers", "--json"])
        .output();
    let known: Vec<Value> = serde_json::from_slice(&listed.expect("it runs").stdout).expect("JSON");
    let tokens: Vec<&str> = known
        .iter()
        .filter_map(|crawler| crawler["tokens"][0].as_str())
        .collect();
    assert!(tokens.len() > 50, "{tokens:?}");
    for token in &tokens {
        gate.get(
            "shop.example",
            "/cart/",
            &format!("User-Agent: {token}/1.0\r\n"),
        );
    }
    let against: std::collections::BTreeSet<String> = eventually("their events", || {
        let metrics = gate.metrics();
        let series = metrics
            .lines()
            .filter(|line| line.starts_with("crawlgate_violations_total{"));
        let crawlers = series.filter_map(|line| {
            Some(
                line.split_once("crawler=\"")?
                    .1
                    .split_once('"')?
                    .0
                    .to_owned(),
            )
        });
        Some(crawlers.collect())
            .filter(|crawlers: &std::collections::BTreeSet<String>| crawlers.len() > 50)
    });
    for crawler in against {
        eventually(&format!("an event of {crawler}"), || {
            read(&gate.path("events.log"))
                .contains(&format!("\"crawler\":\"{crawler}\""))
                .then_some(())
        });
    }
}

#[test]
fn unknown_site_filter_is_refused_and_a_recent_one_kept() {
    let origin = Origin::plain();
    let gate = shop(&origin, "{ events: events.log }");
    flood(&gate, 1, GPTBOT);
    events(&gate, 1);
    let asked = |path: &str| {
        let mut connection = crate::proxy::support::Connection::open(gate.admin);
        connection.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ));
        let response = connection.response("GET");
        (
            response.status,
            String::from_utf8(response.body).expect("text"),
        )
    };
    // Its parameter and its value.
    for (query, named) in [
        ("site=nope", ["site", "nope"]),
        ("crawler=nope", ["crawler", "nope"]),
        ("crawler=GPTBot", ["crawler", "GPTBot"]),
    ] {
        let (status, text) = asked(&format!("/api/violations?{query}"));
        let found: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        assert_eq!((status, &*found), (400, &named[..]), "{query}: {text}");
    }
    let (status, text) = asked("/api/violations?crawler=Google+Search");
    assert!(status == 400 && text.starts_with("\"crawler\" "), "{text}");
    for query in [
        "site=shop",
        "crawler=gptbot",
        "crawler=other",
        "crawler=bingbot",
        "site=shop&crawler=gptbot",
    ] {
        assert_eq!(asked(&format!("/api/violations?{query}")).0, 200, "{query}");
    }
    // Its site goes; what it did does not.
    std::fs::write(
        gate.setup.policies().join("other.yaml"),
        POLICY.replace("shop.example", "other.example"),
    )
    .expect("written");
    std::fs::remove_file(gate.setup.policies().join("shop.yaml")).expect("removed");
    assert!(
        gate.command(&["reload", "--remove", "shop"])
            .status
            .success()
    );
    let (status, text) = asked("/api/violations?site=shop");
    assert!(status == 200 && text.contains("/cart/0"), "{status} {text}");
}

#[test]
fn sighup_reopens_the_log_and_stop_flushes_it() {
    let origin = Origin::plain();
    let mut gate = shop(&origin, "{ events: events.log }");
    flood(&gate, 1, GPTBOT);
    events(&gate, 1);
    std::fs::rename(gate.path("events.log"), gate.path("moved.log")).expect("moved");
    gate.signal("HUP");
    eventually("a new file", || {
        gate.path("events.log").exists().then_some(())
    });
    flood(&gate, 3, GPTBOT);
    gate.signal("TERM");
    assert!(gate.ended().success());
    assert_eq!(lines(&read(&gate.path("events.log"))).len(), 3);
    assert_eq!(lines(&read(&gate.path("moved.log"))).len(), 1);
}

#[test]
fn a_flood_of_names_and_addresses_adds_no_series() {
    let origin = Origin::plain();
    let gate = shop(&origin, "{ events: events.log }");
    flood(&gate, 1, GPTBOT);
    gate.wait_for_metric(
        "crawlgate_violations_total{crawler=\"gptbot\",kind=\"unproven\",site=\"shop\"}",
        1.0,
    );
    let mut connection = gate.connect();
    for number in 0..300 {
        let (agent, client) = (
            format!("Bot{number}bot/1.0 (+http://x.example/{number})"),
            format!("203.0.113.{}", number % 256),
        );
        connection.send(&format!(
            "GET /cart/ HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: {agent}\r\nX-Forwarded-For: {client}\r\n\r\n"
        ));
        connection.response("GET");
    }
    gate.wait_for_metric(
        "crawlgate_violations_total{crawler=\"other\",kind=\"unproven\",site=\"shop\"}",
        300.0,
    );
    let metrics = gate.metrics();
    let series = metrics
        .lines()
        .filter(|line| line.contains("site=\"shop\"") && line.contains("crawler="))
        .count();
    assert!(series <= 8, "{series} series:\n{metrics}");
}
