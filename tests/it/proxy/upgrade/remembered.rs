//! What goes to the next process beside what crawlers were served: crawl rates with the proof of
//! who is held to them, servers that get no requests, the evidence log.

use crate::proxy::support::{GPTBOT, Gate, HOST, Origin, Setup, eventually, sum_of};
use serde_json::Value;
use std::process::Command;

fn policy(more: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, groups: [{{ agents: [GPTBot, '*'], {more} }}] }}\nenforcement: {{ mode: enforce }}\n"
    )
}

/// On a host that is new: the delay holds for a client that is known to have been served it, and
/// for no other.
#[test]
fn slowed_crawler_stays_slowed_after_an_upgrade() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address)
        .policy("site", &policy("crawl_delay: 1h"))
        .with_clock();
    let mut gate = setup.replaceable().start();
    assert_eq!(gate.fetch_as(GPTBOT, "/robots.txt").status, 200);
    // A copy is recorded when it was written, which may be after the next request.
    eventually("it is slowed down", || {
        (gate.fetch_as(GPTBOT, "/").status == 429).then_some(())
    });
    gate.live_through(600);
    gate.upgrade();
    assert!(gate.ended().success());
    let slowed = gate.fetch_as(GPTBOT, "/");
    assert_eq!(slowed.status, 429);
    let left: u32 = slowed
        .field("retry-after")
        .expect("a time")
        .parse()
        .expect("seconds");
    assert!((2_900..=3_000).contains(&left), "{left}");
    gate.live_through(3_000);
    assert_eq!(gate.fetch_as(GPTBOT, "/").status, 200);
}

#[test]
fn ejected_server_stays_ejected_after_an_upgrade() {
    let (origin, gone) = (Origin::plain(), Origin::nowhere());
    let servers = format!(
        "origins: {{ servers: [\"http://{gone}\", \"http://{}\"] }}",
        origin.address
    );
    let mut gate = Setup::before(origin.address)
        .with_origins(&servers)
        .replaceable()
        .start();
    let ejected = |gate: &Gate| {
        sum_of(
            &gate.metrics(),
            "crawlgate_upstream_servers{server=\"1\",state=\"ejected\"}",
        )
    };
    eventually("it is ejected", || {
        assert_eq!(gate.fetch("/").status, 200);
        (ejected(&gate) == Some(1.0)).then_some(())
    });
    gate.upgrade();
    assert!(gate.ended().success());
    assert_eq!(ejected(&gate), Some(1.0));
    for _ in 0..10 {
        assert_eq!(gate.fetch("/").status, 200);
    }
    let failures = sum_of(
        &gate.metrics(),
        "crawlgate_upstream_failures_total{server=\"1\"}",
    );
    assert_eq!(failures.unwrap_or_default(), 0.0, "it is not asked");
}

fn evidence(gate: &Gate, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
    command.arg("evidence").args(arguments);
    if arguments[0] != "verify" {
        command.arg("--state").arg(gate.path("state"));
    }
    let output = command.output().expect("the binary runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn evidence_status(gate: &Gate) -> Value {
    serde_json::from_slice(&evidence(gate, &["status", "--json"])).expect("JSON")
}

/// Waits until so many requests of the crawler are in the log.
fn recorded(gate: &Gate, number: u64) {
    eventually(&format!("{number} entries"), || {
        let status = evidence_status(gate);
        let chains = status["chains"].as_array()?;
        let chain = chains.iter().find(|chain| chain["crawler"] == "gptbot")?;
        (chain["entries"].as_u64()? >= number).then_some(())
    });
}

/// A case of everything holds, and has so many requests for robots.txt.
fn holds(gate: &Gate, name: &str) -> usize {
    let (file, key) = (
        gate.path(name).display().to_string(),
        evidence_status(gate)["key"].clone(),
    );
    evidence(
        gate,
        &[
            "export",
            "--site",
            "site",
            "--crawler",
            "gptbot",
            "--from",
            "2020-01-01",
            "-o",
            &file,
        ],
    );
    let findings = evidence(
        gate,
        &[
            "verify",
            &file,
            "--key",
            key.as_str().expect("a key"),
            "--json",
        ],
    );
    let findings: Value = serde_json::from_slice(&findings).expect("JSON");
    assert_eq!(findings["faults"], Value::from(Vec::<Value>::new()));
    findings["logs"][0]["served"]
        .as_array()
        .expect("a list")
        .len()
}

#[test]
fn evidence_log_continues_after_upgrades() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address)
        .policy("site", &policy("disallow: [/cart/]"))
        .settings("evidence: on");
    let mut gate = setup.replaceable().start();
    assert_eq!(gate.fetch_as(GPTBOT, "/robots.txt").status, 200);
    recorded(&gate, 1);
    gate.next_hands_over_and("hear(\"yours\"); sys.exit(\"diskless\")");
    assert!(
        gate.refused_upgrade(&["--unsupervised"])
            .contains("diskless")
    );
    assert_eq!(gate.fetch_as(GPTBOT, "/robots.txt").status, 200);
    recorded(&gate, 2);
    gate.next_is_crawlgate();
    gate.upgrade();
    assert!(gate.ended().success());
    assert_eq!(gate.fetch_as(GPTBOT, "/robots.txt").status, 200);
    recorded(&gate, 3);
    assert_eq!(holds(&gate, "case.tar"), 3);
}
