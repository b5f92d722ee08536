//! What goes to the next process beside what crawlers were served: the evidence log.

use crate::proxy::support::{GPTBOT, Gate, HOST, Origin, Setup, eventually};
use serde_json::Value;
use std::process::Command;

fn policy(more: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, groups: [{{ agents: [GPTBot, '*'], {more} }}] }}\nenforcement: {{ mode: enforce }}\n"
    )
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
