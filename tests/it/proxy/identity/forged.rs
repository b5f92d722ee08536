//! Names that others take: what a forger was given binds no honest crawler, and a list of networks
//! that never verified the crawler it describes calls nobody an impostor.

use crate::proxy::support::{Gate, Origin, Response, Setup, eventually, read};
use serde_json::Value;

const POLICY: &str = r#"
hosts: [shop.example]
robots:
  origin: replace
  groups: [{ agents: ["*"], disallow: [/cart/], crawl_delay: 1h }]
enforcement: { mode: enforce, behind_cache: no, impostor: 410, traps: [/no-crawlers-here/], trapped: { status: 423, for: 1h } }
crawlers:
  - { token: PartnerBot, networks: [198.51.100.0/24] }
"#;

const FORGER: &str = "203.0.113.66";
const HONEST: &str = "192.0.2.10";
const SUSPENDED: &str = "crawlgate_identity_suspended{crawler=\"PartnerBot\",site=\"shop\"}";

fn shop(origin: &Origin) -> Setup {
    let settings = "trusted_proxies: [127.0.0.1]\nlogs: { events: events.log }";
    Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings(settings)
}

fn from(gate: &Gate, client: &str, user_agent: &str, target: &str) -> Response {
    gate.get(
        "shop.example",
        target,
        &format!("User-Agent: {user_agent}\r\nX-Forwarded-For: {client}\r\n"),
    )
}

fn status(gate: &Gate) -> Value {
    serde_json::from_slice(&gate.command(&["status", "--json"]).stdout).expect("JSON")
}

#[test]
fn new_host_judges_a_crawler_by_its_own_fetches() {
    let origin = Origin::plain();
    let gate = shop(&origin).start();
    for user_agent in ["ClaudeBot/1.0", "bingbot/2.0"] {
        assert_eq!(from(&gate, FORGER, user_agent, "/robots.txt").status, 200);
    }
    let fetched = "crawlgate_robots_txt_total{crawler=\"bingbot\",site=\"shop\",status=\"200\"}";
    gate.wait_for_metric(fetched, 1.0);
    for _ in 0..3 {
        assert_eq!(
            from(&gate, HONEST, "bingbot/2.0", "/").status,
            200,
            "it may hold a version without a delay"
        );
    }
    assert_eq!(
        from(&gate, HONEST, "ClaudeBot/1.0", "/no-crawlers-here/").status,
        403,
        "by the rule, as any other"
    );
    assert_eq!(
        from(&gate, HONEST, "ClaudeBot/1.0", "/").status,
        200,
        "it is not marked"
    );
    // The forger is held to what it was shown; but no trap springs where a copy from before may be
    // held.
    assert_eq!(from(&gate, FORGER, "bingbot/2.0", "/").status, 200);
    assert_eq!(from(&gate, FORGER, "bingbot/2.0", "/").status, 429);
    assert_eq!(
        from(&gate, FORGER, "ClaudeBot/1.0", "/no-crawlers-here/").status,
        403
    );
    let marks = gate.command(&["traps", "--json"]).stdout;
    assert_eq!(
        serde_json::from_slice::<Value>(&marks).expect("JSON"),
        Value::Array(Vec::new())
    );
    // And who is shown the file itself knows.
    assert_eq!(
        from(&gate, HONEST, "bingbot/2.0", "/robots.txt").status,
        200
    );
    gate.wait_for_metric(fetched, 2.0);
    assert_eq!(from(&gate, HONEST, "bingbot/2.0", "/a").status, 200);
    assert_eq!(from(&gate, HONEST, "bingbot/2.0", "/b").status, 429);
}

#[test]
fn unproven_list_makes_no_impostor_and_is_reported() {
    let origin = Origin::plain();
    let mut gate = shop(&origin).with_clock().start();
    assert!(
        status(&gate)["sites"][0]["suspended"]
            .as_array()
            .is_none_or(Vec::is_empty),
        "{}",
        status(&gate)
    );
    for target in ["/", "/a", "/cart/"] {
        let expected = if target == "/cart/" { 403 } else { 200 };
        assert_eq!(
            from(&gate, "203.0.113.2", "PartnerBot/1", target).status,
            expected,
            "{target}"
        );
    }
    gate.wait_for_metric(
        "crawlgate_identity_total{crawler=\"other\",outcome=\"suspended\"}",
        3.0,
    );
    gate.wait_for_metric(SUSPENDED, 1.0);
    assert!(!gate.metrics().contains("outcome=\"impostor\""));
    assert!(!gate.metrics().contains("kind=\"impostor\""));
    let event = eventually("the event", || {
        read(&gate.path("events.log"))
            .lines()
            .next()
            .map(str::to_owned)
    });
    let event: Value = serde_json::from_str(&event).expect("a JSON line");
    assert_eq!(
        (&event["kind"], &event["identity"], &event["proof"]),
        (&"unproven".into(), &"unverified".into(), &"none".into())
    );
    assert_eq!(
        status(&gate)["sites"][0]["suspended"],
        serde_json::json!(["PartnerBot"])
    );
    let explain = |live: &[&str], json: &[&str]| {
        let question = [
            &["explain"],
            live,
            json,
            &["--host", "shop.example", "--ip", "203.0.113.2"],
        ]
        .concat();
        let output =
            gate.command(&[&question[..], &["--user-agent", "PartnerBot/1", "/"]].concat());
        String::from_utf8(output.stdout).expect("text")
    };
    let live: Value = serde_json::from_str(&explain(&["--live"], &["--json"])).expect("JSON");
    assert_eq!(
        (&live["identity"], &live["suspended"], &live["kind"]),
        (&"unverified".into(), &true.into(), &"allowed".into())
    );
    // Who asks nobody that is running hears what it would be, and on what that depends.
    let policies = gate.path("policies");
    let offline = explain(
        &["--policies", policies.to_str().expect("a path")],
        &["--json"],
    );
    let offline: Value = serde_json::from_str(&offline).expect("JSON");
    assert_eq!(
        (&offline["identity"], &offline["kind"]),
        (&"impostor".into(), &"impostor".into()),
        "{offline}"
    );

    // One visit from there, and the list is believed.
    assert_eq!(from(&gate, "198.51.100.7", "PartnerBot/1", "/").status, 200);
    assert_eq!(from(&gate, "203.0.113.2", "PartnerBot/1", "/").status, 410);
    gate.wait_for_metric(
        "crawlgate_identity_total{crawler=\"other\",outcome=\"impostor\"}",
        1.0,
    );
    gate.wait_for_metric(SUSPENDED, 0.0);
    assert_eq!(
        status(&gate)["sites"][0]["suspended"],
        serde_json::json!([])
    );

    // Through a restart, and for seven days.
    gate.wait_until_stored();
    gate.restart("KILL", |_| ());
    assert_eq!(from(&gate, "203.0.113.2", "PartnerBot/1", "/").status, 410);
    gate.live_through(7 * 86_400 + 60);
    assert_eq!(from(&gate, "203.0.113.2", "PartnerBot/1", "/").status, 200);
    gate.wait_for_metric(SUSPENDED, 1.0);
}
