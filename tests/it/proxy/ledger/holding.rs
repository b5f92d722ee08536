//! Crawlers held to more than paths: pace, traps, impostors, exemptions. Each kind is made with
//! requests against the real binary, and must be shown alike by the answer, `explain --live`, the
//! event, the metrics and the API.

use crate::proxy::support::{
    BROWSER, Connection, Gate, Origin, Response, Setup, eventually, read, sum_of,
};
use serde_json::Value;

const POLICY: &str = r#"
hosts: [shop.example]
robots:
  origin: replace
  groups:
    - { agents: ["*"], disallow: [/cart/], crawl_delay: 1h }
    - { agents: [bingbot], extends: "*" }
enforcement:
  mode: enforce
  behind_cache: no
  disallowed: 403
  ambiguous: 404
  too_fast: { status: 429, body: "Slower, please.\n" }
  impostor: 410
  trapped: { status: 423, for: 1h }
  traps: [/no-crawlers-here/]
  exempt: [IntranetBot]
  agents: { Amazonbot: { unverified: refuse } }
crawlers:
  - { token: IntranetBot, user_agent: [intranet-reader], purpose: search, networks: [10.20.0.0/16] }
  - { token: PartnerBot, networks: [198.51.100.0/24] }
"#;

/// At these addresses crawlers were shown the rules: where the host is new others may go by what
/// was there before.
const SHOWN: [(&str, &str); 8] = [
    ("203.0.113.3", "ClaudeBot/1.0"),
    ("203.0.113.7", "ClaudeBot/1.0"),
    ("203.0.113.8", "ClaudeBot/1.0"),
    ("203.0.113.9", "ClaudeBot/1.0"),
    ("2001:db8:1:2::1", "ClaudeBot/1.0"),
    ("203.0.113.5", "bingbot/2.0"),
    ("203.0.113.6", "bingbot/2.0"),
    // Without a visit from its networks nobody would be called an impostor by them.
    ("198.51.100.1", "PartnerBot/1"),
];

/// A host that is new.
fn shop(policy: &str, origin: &Origin) -> Gate {
    shown(start(policy, origin))
}

/// A host that was watched for a day: nobody holds what was there before.
fn watched_shop(policy: &str, origin: &Origin) -> Gate {
    let mut gate = start(policy, origin);
    for _ in 0..6 {
        assert_eq!(
            from(&gate, "203.0.113.99", "Googlebot/2.1", "/").status,
            200
        );
        gate.live_through(5 * 3_600);
    }
    shown(gate)
}

fn start(policy: &str, origin: &Origin) -> Gate {
    let settings = "trusted_proxies: [127.0.0.1]\nlogs: { events: events.log }";
    Setup::before(origin.address)
        .policy("shop", policy)
        .settings(settings)
        .with_clock()
        .start()
}

fn shown(gate: Gate) -> Gate {
    for (client, user_agent) in SHOWN {
        assert_eq!(from(&gate, client, user_agent, "/robots.txt").status, 200);
    }
    for (crawler, fetches) in [("claudebot", 5), ("bingbot", 2), ("PartnerBot", 1)] {
        let series = format!(
            "crawlgate_robots_txt_total{{crawler=\"{crawler}\",site=\"shop\",status=\"200\"}}"
        );
        gate.wait_for_metric(&series, f64::from(fetches));
    }
    gate
}

/// The policy without a crawl delay, which ClaudeBot honours too.
fn without_pace() -> String {
    POLICY.replace(", crawl_delay: 1h", "")
}

/// A request through a trusted proxy, from this address.
fn from(gate: &Gate, client: &str, user_agent: &str, target: &str) -> Response {
    let headers = format!("User-Agent: {user_agent}\r\nX-Forwarded-For: {client}\r\n");
    gate.get("shop.example", target, &headers)
}

fn api(gate: &Gate, path: &str) -> Value {
    let mut connection = Connection::open(gate.admin);
    connection.send(&format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    ));
    let response = connection.response("GET");
    assert_eq!(response.status, 200, "{path}");
    serde_json::from_slice(&response.body).expect("JSON")
}

fn explained(gate: &Gate, client: &str, user_agent: &str, target: &str) -> Value {
    let question = [
        "explain",
        "--live",
        "--json",
        "--host",
        "shop.example",
        "--ip",
        client,
    ];
    let output = gate.command(&[&question[..], &["--user-agent", user_agent, target]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The last event of a crawler, a kind and a target, in the log and in the API.
fn events(gate: &Gate, crawler: &str, kind: &str, target: &str) -> [Value; 2] {
    let logged = eventually(&format!("an event of {crawler}, {kind}"), || {
        let text = read(&gate.path("events.log"));
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"));
        let is = |event: &Value| {
            event["crawler"] == crawler && event["kind"] == kind && event["target"] == target
        };
        lines.rev().find(is)
    });
    let path = format!("/api/violations?crawler={crawler}&kind={kind}");
    let shown = eventually(&path, || {
        let first = api(gate, &path)["violations"].as_array()?.first().cloned();
        first.filter(|event| event["target"] == target)
    });
    [logged, shown]
}

/// What is asked for, by whom, and what must be shown of it everywhere.
struct Case {
    client: &'static str,
    user_agent: &'static str,
    crawler: &'static str,
    target: &'static str,
    verdict: &'static str,
    kind: &'static str,
    action: &'static str,
    status: u16,
    /// Whether it counts as a violation.
    violation: bool,
    body: &'static str,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { client: "203.0.113.1", user_agent: "GPTBot/1.2", crawler: "gptbot", target: "/cart/", verdict: "disallowed",
        kind: "unproven", action: "block", status: 403, violation: true, body: "Disallow: /cart/" },
    Case { client: "203.0.113.1", user_agent: "GPTBot/1.2", crawler: "gptbot", target: "/x/../cart/", verdict: "disallowed",
        kind: "ambiguous", action: "block", status: 404, violation: false, body: "GPTBot" },
    Case { client: "203.0.113.2", user_agent: "PartnerBot/1", crawler: "PartnerBot", target: "/", verdict: "allowed",
        kind: "impostor", action: "block", status: 410, violation: true, body: "PartnerBot" },
    Case { client: "203.0.113.4", user_agent: "Amazonbot/0.1", crawler: "amazonbot", target: "/", verdict: "allowed",
        kind: "unverified", action: "block", status: 403, violation: false, body: "Amazonbot" },
    Case { client: "203.0.113.5", user_agent: "bingbot/2.0", crawler: "bingbot", target: "/", verdict: "allowed",
        kind: "unproven", action: "slow", status: 429, violation: true, body: "Slower, please." },
];

/// The same on a host that is watched: traps spring there only, and what is disallowed is a
/// violation.
#[rustfmt::skip]
const WATCHED: &[Case] = &[
    Case { client: "203.0.113.5", user_agent: "bingbot/2.0", crawler: "bingbot", target: "/cart/", verdict: "disallowed",
        kind: "violation", action: "block", status: 403, violation: true, body: "Disallow: /cart/" },
    Case { client: "203.0.113.3", user_agent: "ClaudeBot/1.0", crawler: "claudebot", target: "/no-crawlers-here/x",
        verdict: "disallowed", kind: "trapped", action: "block", status: 423, violation: true, body: "/no-crawlers-here/" },
    Case { client: "203.0.113.3", user_agent: "ClaudeBot/1.0", crawler: "claudebot", target: "/elsewhere", verdict: "allowed",
        kind: "trapped", action: "block", status: 423, violation: true, body: "/robots.txt" },
    Case { client: "203.0.113.5", user_agent: "bingbot/2.0", crawler: "bingbot", target: "/", verdict: "allowed",
        kind: "too_fast", action: "slow", status: 429, violation: true, body: "Slower, please." },
];

#[test]
fn each_kind_is_equal_in_answer_event_metric_and_api() {
    let origin = Origin::plain();
    let gate = shop(POLICY, &origin);
    assert_eq!(
        from(&gate, "203.0.113.5", "bingbot/2.0", "/").status,
        200,
        "the first is in time"
    );
    assert_equal_everywhere(&gate, CASES);
    let [logged, _] = events(&gate, "bingbot", "unproven", "/");
    assert_eq!(logged["rule"], "Crawl-delay: 3600");
    assert!(
        logged["rule_source"]
            .as_str()
            .is_some_and(|place| place.ends_with("shop.yaml:6:57")),
        "{logged}"
    );
    let [logged, _] = events(&gate, "gptbot", "unproven", "/cart/");
    assert_eq!(logged["rule"], "Disallow: /cart/");
    assert!(
        logged["rule_source"]
            .as_str()
            .is_some_and(|place| place.ends_with("shop.yaml:6:35")),
        "{logged}"
    );
}

#[test]
fn each_kind_of_a_watched_host_is_equal_everywhere() {
    let origin = Origin::plain();
    let gate = watched_shop(POLICY, &origin);
    assert_eq!(
        from(&gate, "203.0.113.5", "bingbot/2.0", "/").status,
        200,
        "the first is in time"
    );
    assert_equal_everywhere(&gate, WATCHED);
}

fn assert_equal_everywhere(gate: &Gate, cases: &[Case]) {
    for case in cases {
        let Case {
            client,
            user_agent,
            crawler,
            target,
            verdict,
            kind,
            action,
            status,
            ..
        } = *case;
        let shown = format!("{user_agent} {target}");
        let before = explained(gate, client, user_agent, target);
        let answer = from(gate, client, user_agent, target);
        let after = explained(gate, client, user_agent, target);
        // An address of IPv4 is the same one mapped into IPv6.
        let mapped = if client.contains(':') {
            client.to_owned()
        } else {
            format!("::ffff:{client}")
        };
        let mapped = explained(gate, &mapped, user_agent, target);
        assert_eq!(
            (answer.status, answer.field("cache-control")),
            (status, Some("no-store")),
            "{shown}"
        );
        assert!(
            answer.text().contains(case.body),
            "{shown}: {}",
            answer.text()
        );
        for told in [&before, &after, &mapped] {
            let told = (
                &told["verdict"],
                &told["kind"],
                &told["action"]["kind"],
                &told["action"]["status"],
            );
            assert_eq!(
                (told.0, told.1, told.2),
                (&verdict.into(), &kind.into(), &action.into()),
                "{shown}"
            );
            assert_eq!(told.3, status, "{shown}");
        }
        let labels =
            format!("{{action=\"{action}\",crawler=\"{crawler}\",kind=\"{kind}\",site=\"shop\"}}");
        let count = cases.iter().take_while(|other| !std::ptr::eq(*other, case));
        let count = 1 + count
            .filter(|other| (other.crawler, other.kind) == (crawler, kind))
            .count();
        gate.wait_for_metric(&format!("crawlgate_requests_total{labels}"), count as f64);
        let labels = format!(
            "crawlgate_violations_total{{crawler=\"{crawler}\",kind=\"{kind}\",site=\"shop\"}}"
        );
        if case.violation {
            gate.wait_for_metric(&labels, count as f64);
        } else {
            assert_eq!(
                sum_of(&gate.metrics(), &labels),
                None,
                "{shown} is no violation"
            );
        }
        for event in events(gate, crawler, kind, target) {
            assert_eq!(event["site"], "shop");
            assert_eq!(
                (&event["client"], &event["target"]),
                (&client.into(), &target.into()),
                "{shown}"
            );
            assert_eq!(
                (&event["verdict"], &event["action"]),
                (&verdict.into(), &action.into()),
                "{shown}"
            );
            assert_eq!(event["status"], status, "{shown}");
            assert_eq!(event["version"], before["version"], "{shown}");
            assert_eq!(event["identity"], before["identity"], "{shown}");
            let retry_after = answer
                .field("retry-after")
                .and_then(|seconds| seconds.parse::<u64>().ok());
            assert_eq!(event["retry_after"].as_u64(), retry_after, "{shown}");
        }
    }
}

#[test]
fn observe_blocks_no_request_and_counts_would_be_blocks() {
    let origin = Origin::plain();
    let observing = POLICY.replace("mode: enforce", "mode: observe");
    let (gate, watched) = (shop(&observing, &origin), watched_shop(&observing, &origin));
    for (gate, cases) in [(&gate, CASES), (&watched, WATCHED)] {
        from(gate, "203.0.113.5", "bingbot/2.0", "/");
        would_be(gate, cases);
    }
    let series = |action: &str, crawler: &str, kind: &str| {
        format!(
            "crawlgate_requests_total{{action=\"{action}\",crawler=\"{crawler}\",kind=\"{kind}\",site=\"shop\"}}"
        )
    };
    gate.wait_for_metric(&series("would_slow", "bingbot", "unproven"), 1.0);
    watched.wait_for_metric(&series("would_block", "claudebot", "trapped"), 2.0);
    gate.wait_for_metric(&series("would_block", "PartnerBot", "impostor"), 1.0);
}

fn would_be(gate: &Gate, cases: &[Case]) {
    for case in cases {
        let told = explained(gate, case.client, case.user_agent, case.target);
        let answer = from(gate, case.client, case.user_agent, case.target);
        assert_eq!(answer.status, 200, "{} {}", case.user_agent, case.target);
        assert_eq!(told["action"]["kind"], "pass");
        assert_eq!(told["action"]["would"]["kind"], case.action);
        assert_eq!(told["action"]["would"]["status"], case.status);
        for event in events(gate, case.crawler, case.kind, case.target) {
            assert_eq!(
                (&event["action"], &event["would"]),
                (&"pass".into(), &case.action.into())
            );
        }
    }
}

#[test]
fn crawl_delay_answers_retry_after_and_spares_robots_txt() {
    let origin = Origin::plain();
    let gate = shop(
        &POLICY.replace("crawl_delay: 1h", "crawl_delay: 2s"),
        &origin,
    );
    for client in ["203.0.113.5", "203.0.113.6"] {
        assert_eq!(
            from(&gate, client, "bingbot/2.0", "/a").status,
            200,
            "nobody at one address slows another one"
        );
    }
    for _ in 0..3 {
        assert_eq!(
            from(&gate, "203.0.113.6", "bingbot/2.0", "/robots.txt").status,
            200
        );
    }
    let refused = from(&gate, "203.0.113.6", "bingbot/2.0", "/b");
    assert_eq!(refused.status, 429);
    let seconds: u64 = refused
        .field("retry-after")
        .and_then(|seconds| seconds.parse().ok())
        .expect("whole seconds");
    assert!((1..=2).contains(&seconds), "{seconds}");
    assert_eq!(
        from(&gate, "203.0.113.6", "Googlebot/2.1", "/b").status,
        200,
        "it never said that it would"
    );
    assert_eq!(
        from(&gate, "203.0.113.6", "Googlebot/2.1", "/b").status,
        200
    );
    let began = std::time::Instant::now();
    eventually("as long as it was told to wait", || {
        (began.elapsed().as_secs() >= seconds).then_some(())
    });
    assert_eq!(
        from(&gate, "203.0.113.6", "bingbot/2.0", "/b").status,
        200,
        "who waited that long is in time"
    );
}

#[test]
fn visitors_at_a_trapped_address_are_not_blocked() {
    let origin = Origin::plain();
    let gate = watched_shop(&without_pace(), &origin);
    assert_eq!(
        from(
            &gate,
            "2001:db8:1:2::3",
            "ClaudeBot/1.0",
            "/no-crawlers-here/"
        )
        .status,
        423
    );
    assert_eq!(
        from(&gate, "2001:db8:1:2::9", "ClaudeBot/1.0", "/").status,
        423,
        "one machine has the whole /64"
    );
    assert_eq!(
        from(&gate, "2001:db8:1:3::3", "ClaudeBot/1.0", "/").status,
        200
    );
    assert_eq!(
        from(&gate, "2001:db8:1:2::3", "ClaudeBot/1.0", "/robots.txt").status,
        200
    );
    for user_agent in [BROWSER, "curl/8.9.1"] {
        assert_eq!(from(&gate, "2001:db8:1:2::3", user_agent, "/").status, 200);
        assert_eq!(
            from(&gate, "192.0.2.1", user_agent, "/no-crawlers-here/").status,
            200
        );
        assert_eq!(from(&gate, "192.0.2.1", user_agent, "/").status, 200);
    }
    gate.wait_for_metric("crawlgate_trapped", 1.0);
}

#[test]
fn marks_are_listed_released_and_survive_kill_9() {
    let origin = Origin::plain();
    let gate = watched_shop(&without_pace(), &origin);
    for client in ["203.0.113.7", "203.0.113.8"] {
        assert_eq!(
            from(&gate, client, "ClaudeBot/1.0", "/no-crawlers-here/").status,
            423
        );
    }
    let listed = gate.command(&["traps"]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        text.contains("203.0.113.7  claudebot  shop") && text.contains("203.0.113.8"),
        "{text}"
    );
    let released = gate.command(&["traps", "--release", "203.0.113.8"]);
    assert!(
        String::from_utf8_lossy(&released.stdout).starts_with("released: 203.0.113.8"),
        "{released:?}"
    );
    assert_eq!(from(&gate, "203.0.113.8", "ClaudeBot/1.0", "/").status, 200);
    assert_eq!(
        gate.command(&["traps", "--release", "203.0.113.8"])
            .status
            .code(),
        Some(1),
        "not marked any more"
    );
    eventually("the mark on disk", || {
        (marked_on_disk(&gate) == ["203.0.113.7"]).then_some(())
    });
    let gate = gate.killed_and_started_again();
    assert_eq!(
        from(&gate, "203.0.113.7", "ClaudeBot/1.0", "/").status,
        423,
        "it is still marked"
    );
    assert_eq!(from(&gate, "203.0.113.8", "ClaudeBot/1.0", "/").status, 200);
    let marks: Value =
        serde_json::from_slice(&gate.command(&["traps", "--json"]).stdout).expect("JSON");
    assert_eq!(marks.as_array().map(Vec::len), Some(1), "{marks}");
    assert!(
        is_rfc3339(&marks[0]["since"]) && is_rfc3339(&marks[0]["until"]),
        "{marks}"
    );
    assert_eq!(
        gate.command(&["traps", "--release", "203.0.113.0/33"])
            .status
            .code(),
        Some(2)
    );
    let released = gate.command(&["traps", "--release", "203.0.113.0/24", "--json"]);
    assert_eq!(
        serde_json::from_slice::<Value>(&released.stdout).expect("JSON"),
        marks
    );
}

/// The addresses of marks, as an operator may read them while crawlgate runs.
fn marked_on_disk(gate: &Gate) -> Vec<String> {
    let database = rusqlite::Connection::open(gate.path("state/state.db")).expect("opened");
    let mut statement = database
        .prepare("SELECT address FROM marked_clients WHERE removed = 0")
        .expect("a table");
    let addresses = statement.query_map([], |row| row.get(0)).expect("read");
    addresses.collect::<Result<_, _>>().expect("addresses")
}

/// To the second, as events have it to the millisecond.
fn is_rfc3339(moment: &Value) -> bool {
    moment
        .as_str()
        .is_some_and(|text| text.len() == 20 && text.starts_with("20") && text.ends_with('Z'))
}

#[test]
fn a_network_is_released_as_it_is_listed() {
    let origin = Origin::plain();
    let gate = watched_shop(&without_pace(), &origin);
    assert_eq!(
        from(
            &gate,
            "2001:db8:1:1::7",
            "ClaudeBot/1.0",
            "/no-crawlers-here/"
        )
        .status,
        423
    );
    let listed = String::from_utf8(gate.command(&["traps"]).stdout).expect("text");
    let network = listed.split_whitespace().next().expect("a mark");
    assert_eq!(network, "2001:db8:1:1::/64");
    assert!(
        gate.command(&["traps", "--release", network])
            .status
            .success()
    );
    assert_eq!(
        from(&gate, "2001:db8:1:1::7", "ClaudeBot/1.0", "/").status,
        200
    );
}

#[test]
fn moments_are_rfc_3339_wherever_people_and_programs_read_them() {
    let origin = Origin::plain();
    let gate = watched_shop(&without_pace(), &origin);
    assert_eq!(
        from(&gate, "203.0.113.7", "ClaudeBot/1.0", "/robots.txt").status,
        200
    );
    assert!(
        gate.command(&["pause", "--all", "--for", "10m"])
            .status
            .success()
    );
    let status: Value =
        serde_json::from_slice(&gate.command(&["status", "--json"]).stdout).expect("JSON");
    for status in [&status, &api(&gate, "/api/status")] {
        let site = &status["sites"][0];
        for moment in [
            &status["last_reload"],
            &site["since"],
            &site["paused_until"],
        ] {
            assert!(is_rfc3339(moment), "{status}");
        }
    }
}

#[test]
fn crawler_with_rules_older_than_the_trap_is_not_marked() {
    let origin = Origin::plain();
    let gate = shop(
        &without_pace().replace("traps: [/no-crawlers-here/]", "traps: []"),
        &origin,
    );
    assert_eq!(
        from(&gate, "203.0.113.9", "ClaudeBot/1.0", "/no-crawlers-here/").status,
        200
    );
    gate.write_policy("shop", &without_pace());
    assert!(gate.command(&["reload"]).status.success());
    assert!(
        from(&gate, "203.0.113.9", "ClaudeBot/1.0", "/robots.txt")
            .text()
            .contains("/no-crawlers-here/")
    );
    assert_eq!(
        from(&gate, "203.0.113.9", "ClaudeBot/1.0", "/no-crawlers-here/").status,
        200
    );
    assert_eq!(from(&gate, "203.0.113.9", "ClaudeBot/1.0", "/").status, 200);
    let told = explained(&gate, "203.0.113.9", "ClaudeBot/1.0", "/no-crawlers-here/");
    assert_eq!(told["kind"], "stale_copy");
    let marks = gate.command(&["traps", "--json"]).stdout;
    assert_eq!(
        serde_json::from_slice::<Value>(&marks).expect("JSON"),
        Value::Array(Vec::new())
    );
}

#[test]
fn exempt_crawlers_pass_when_proven() {
    let origin = Origin::plain();
    let gate = shop(POLICY, &origin);
    for target in ["/cart/", "/no-crawlers-here/", "/x/../cart/"] {
        assert_eq!(
            from(&gate, "10.20.3.4", "intranet-reader/2", target).status,
            200,
            "{target}"
        );
    }
    assert_eq!(
        explained(&gate, "10.20.3.4", "intranet-reader/2", "/cart/")["identity"],
        "verified"
    );
    assert_eq!(
        from(&gate, "203.0.113.1", "intranet-reader/2", "/").status,
        410,
        "whoever this is, it is not exempt"
    );
    assert_eq!(
        from(&gate, "192.168.1.1", "intranet-reader/2", "/").status,
        200,
        "a private address accuses nobody"
    );
    // A proxy that nobody declared: the field says so, and its own address proves nothing.
    assert_eq!(
        gate.get("shop.example", "/", "User-Agent: intranet-reader/2\r\n")
            .status,
        200
    );
    gate.wait_for_metric(
        "crawlgate_violations_total{crawler=\"IntranetBot\",kind=\"impostor\",site=\"shop\"}",
        1.0,
    );
    let requests_of_kind = |name: &str, kind: &str| {
        sum_of(
            &gate.metrics(),
            &format!("{name}{{crawler=\"IntranetBot\",kind=\"{kind}\",site=\"shop\"}}"),
        )
    };
    assert_eq!(
        sum_of(
            &gate.metrics(),
            "crawlgate_violations_total{crawler=\"IntranetBot\"}"
        ),
        Some(1.0)
    );
    assert_eq!(
        requests_of_kind("crawlgate_requests_total", "exempt"),
        Some(3.0)
    );
    assert_eq!(
        requests_of_kind("crawlgate_requests_total", "violation"),
        None
    );
    assert_eq!(
        explained(&gate, "10.20.3.4", "intranet-reader/2", "/cart/")["kind"],
        "exempt"
    );
}

#[test]
fn refusals_have_the_accepted_form_and_no_secret() {
    let origin = Origin::plain();
    let gate = shop(POLICY, &origin);
    let headers =
        "User-Agent: PartnerBot/1\r\nX-Forwarded-For: 203.0.113.2\r\nAccept: application/json\r\n";
    let refused = gate.get("shop.example", "/", headers);
    let body: Value = serde_json::from_slice(&refused.body).expect("JSON");
    assert_eq!(
        (&body["error"], &body["robots_txt"]),
        (&"impostor".into(), &"/robots.txt".into())
    );
    assert!(
        !refused.text().contains("198.51.100"),
        "the networks are not told: {}",
        refused.text()
    );
    let headers = headers.replace("application/json", "text/html");
    assert!(
        gate.get("shop.example", "/", &headers)
            .text()
            .starts_with("<!DOCTYPE html>")
    );
}

#[test]
fn served_versions_are_equal_in_answer_event_and_api() {
    let origin = Origin::plain();
    let settings = "trusted_proxies: [127.0.0.1]\nlogs: { events: events.log }";
    let setup = Setup::before(origin.address)
        .policy("shop", &without_pace())
        .settings(settings);
    let mut gate = setup.with_clock().start();
    let (client, gptbot) = ("203.0.113.1", "GPTBot/1.2");
    let told = |gate: &Gate, target: &str, kind: &str, never_fetched: bool| {
        let before = explained(gate, client, gptbot, target);
        let answer = from(gate, client, gptbot, target);
        let after = explained(gate, client, gptbot, target);
        assert_eq!(answer.status, 403, "{target}");
        for told in [&before, &after] {
            let mark = told["never_fetched"] == true;
            assert_eq!(
                (&told["kind"], mark),
                (&kind.into(), never_fetched),
                "{target}"
            );
            assert_eq!(
                (&told["action"]["kind"], &told["action"]["status"]),
                (&"block".into(), &403.into())
            );
        }
        let counted = if never_fetched { "never_fetched" } else { kind };
        let series = format!(
            "crawlgate_violations_total{{crawler=\"gptbot\",kind=\"{counted}\",site=\"shop\"}}"
        );
        gate.wait_for_metric(&series, 1.0);
        let events = events(gate, "gptbot", kind, target);
        for event in &events {
            assert_eq!(event["never_fetched"] == true, never_fetched, "{event}");
            assert_eq!(
                (&event["version"], &event["status"]),
                (&before["version"], &403.into()),
                "{event}"
            );
        }
        events
    };
    told(&gate, "/cart/1", "unproven", false);
    // Longer than a copy may be used, and never a day without a crawler: the host is watched.
    for _ in 0..5 {
        gate.live_through(5 * 3_600);
        assert_eq!(from(&gate, "203.0.113.9", "Googlebot/2.1", "/").status, 200);
    }
    let events = told(&gate, "/cart/2", "violation", true);
    assert_eq!(events[0]["cached"], serde_json::json!([]));

    assert_eq!(from(&gate, client, gptbot, "/robots.txt").status, 200);
    let former = explained(&gate, client, gptbot, "/")["version"].clone();
    let events = told(&gate, "/cart/3", "violation", false);
    assert_eq!(events[0]["cached"], serde_json::json!([]));

    gate.write_policy(
        "shop",
        &without_pace().replace("[/cart/]", "[/cart/, /new/]"),
    );
    assert!(gate.command(&["reload"]).status.success());
    assert_eq!(
        explained(&gate, client, gptbot, "/new/")["kind"],
        "stale_copy"
    );
    assert_eq!(
        from(&gate, client, gptbot, "/new/").status,
        200,
        "it goes by the copy it was given"
    );
    assert_eq!(from(&gate, client, gptbot, "/cart/4").status, 403);
    for event in self::events(&gate, "gptbot", "violation", "/cart/4") {
        assert_eq!(event["cached"], serde_json::json!([former]), "{event}");
    }

    // And it is remembered who fetched what, whoever comes after a restart.
    gate.wait_until_stored();
    let gate = gate.killed_and_started_again();
    assert_eq!(
        from(&gate, client, gptbot, "/new/").status,
        200,
        "it still holds that copy"
    );
    assert_eq!(from(&gate, client, gptbot, "/cart/5").status, 403);
    for event in self::events(&gate, "gptbot", "violation", "/cart/5") {
        assert_eq!(event["cached"], serde_json::json!([former]), "{event}");
    }
}

#[test]
fn mode_off_counts_crawlers_and_judges_none() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("shop", &POLICY.replace("mode: enforce", "mode: off"))
        .settings("logs: { access: access.log, events: events.log }")
        .start();
    assert_eq!(
        gate.get("shop.example", "/cart/", "User-Agent: bingbot/2.0\r\n")
            .status,
        200
    );
    assert_eq!(
        gate.get(
            "shop.example",
            "/cart/",
            &format!("User-Agent: {BROWSER}\r\n")
        )
        .status,
        200
    );
    let count = |crawler: &str, kind: &str| {
        let series = format!("action=\"pass\",crawler=\"{crawler}\",kind=\"{kind}\",site=\"shop\"");
        gate.wait_for_metric(&format!("crawlgate_requests_total{{{series}}}"), 1.0);
    };
    count("bingbot", "off");
    count("none", "not_a_crawler");
    let logged = eventually("the access log", || {
        let line = read(&gate.path("access.log"))
            .lines()
            .find(|line| line.contains("bingbot"))?
            .to_owned();
        serde_json::from_str::<Value>(&line).ok()
    });
    assert_eq!(
        (&logged["kind"], logged.get("never_fetched")),
        (&"off".into(), None),
        "{logged}"
    );
}

/// `%72` is `r`, for crawlers and for us (RFC 9309 section 2.2.2): what was answered was served.
#[test]
fn other_spelling_of_robots_txt_is_served() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("shop", &without_pace())
        .start();
    let given = gate.get(
        "shop.example",
        "/%72obots.txt",
        "User-Agent: bingbot/2.0\r\n",
    );
    assert!(
        given.status == 200 && given.text().contains("Disallow: /cart/"),
        "{}",
        given.text()
    );
    gate.wait_for_metric(
        "crawlgate_robots_txt_total{crawler=\"bingbot\",site=\"shop\",status=\"200\"}",
        1.0,
    );
    let served = "crawlgate_robots_last_fetch_timestamp_seconds{crawler=\"bingbot\",site=\"shop\"}";
    assert!(sum_of(&gate.metrics(), served).is_some_and(|at| at > 0.0));
}
