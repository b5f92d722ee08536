//! The dashboard of several instances: the sums of all, also of one that has left, and what it says
//! while the store is away.

use super::Fleet;
use crate::proxy::support::{GPTBOT, Gate, HOST, eventually};
use serde_json::Value;

fn visit(gate: &Gate, times: usize) {
    for number in 0..times {
        assert!(
            gate.get(
                HOST,
                &format!("/{number}"),
                &format!("User-Agent: {GPTBOT}\r\n")
            )
            .status
                < 500
        );
    }
}

/// The report of the last day, as one instance tells it.
fn report(gate: &Gate) -> Value {
    let output = gate.command(&["report", "--since", "24h", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Waits for a report with so many requests that says of how many instances they are the sums; of
/// this one alone where it is `None`.
fn shows(gate: &Gate, wanted: usize, instances: Option<usize>) {
    eventually(&format!("{wanted} requests"), || {
        let report = report(gate);
        let said = report["instances"].as_str().unwrap_or_default();
        let is_said = instances.is_none_or(|count| said.contains(&format!(" {count} instances")));
        (report["totals"]["requests"] == wanted && is_said).then_some(())
    });
}

#[test]
fn dashboard_shows_the_sums_of_all_instances() {
    let mut fleet = Fleet::start(3);
    visit(&fleet.gates[0], 3);
    visit(&fleet.gates[1], 4);
    shows(&fleet.gates[0], 7, Some(3));
    shows(&fleet.gates[2], 7, Some(3));
    let site = fleet.gates[2].admin_page("/site?name=shop&days=1");
    assert!(
        site.contains(" 3 instances") && site.contains("GPTBot"),
        "{site}"
    );
    let crawler = fleet.gates[2].admin_page("/crawler?id=gptbot&days=400");
    assert!(
        crawler.contains("<td data-label=\"Requests\">7</td>"),
        "{crawler}"
    );
    // The page says in words alone whose samples it shows.
    assert!(
        fleet.gates[2]
            .admin_page("/violations")
            .contains("id=\"counts-note\"")
    );
    let keys: Vec<String> = fleet.redis.command(&["KEYS", "crawlgate:counts:*"]);
    assert!(keys.len() >= 3, "{keys:?}");
    for key in keys {
        assert!(
            fleet.redis.command::<i64>(&["TTL", &key]) > 0,
            "{key} ends by itself"
        );
    }

    // What an instance counted last is told when it stops.
    let leaving = &mut fleet.gates[1];
    visit(leaving, 2);
    leaving.signal("TERM");
    assert!(leaving.ended().success());
    shows(&fleet.gates[0], 9, Some(3));

    fleet.redis.program.kill();
    shows(&fleet.gates[0], 3, None);
    // A store that is empty is told everything again, but for what one told that is not there.
    fleet.redis.program.start_again();
    visit(&fleet.gates[2], 1);
    shows(&fleet.gates[0], 4, Some(2));
    fleet.gates[1].start_again();
    shows(&fleet.gates[0], 10, Some(3));
}
