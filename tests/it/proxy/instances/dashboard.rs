//! The dashboard of several instances: the sums of all, also of one that has left, and what it says
//! while the store is away.

use super::Fleet;
use crate::proxy::support::{GPTBOT, Gate, HOST, eventually};

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

fn shows(gate: &Gate, requests: usize, says: &str) {
    eventually(&format!("{requests} requests"), || {
        let page = gate.admin_page("/?days=1");
        (page.contains(&format!("<b>{requests}</b>requests of crawlers")) && page.contains(says))
            .then_some(())
    });
}

#[test]
fn dashboard_shows_the_sums_of_all_instances() {
    let mut fleet = Fleet::start(3);
    visit(&fleet.gates[0], 3);
    visit(&fleet.gates[1], 4);
    shows(&fleet.gates[0], 7, "Sums of 3 instances;");
    shows(&fleet.gates[2], 7, "Sums of 3 instances;");
    let site = fleet.gates[2].admin_page("/site?name=shop&days=1");
    assert!(
        site.contains("Sums of 3 instances;") && site.contains("GPTBot"),
        "{site}"
    );
    let crawler = fleet.gates[2].admin_page("/crawler?id=gptbot&days=400");
    assert!(
        crawler.contains("<b>7</b>requests under this name"),
        "{crawler}"
    );
    assert!(
        fleet.gates[2]
            .admin_page("/violations")
            .contains("Samples of this instance alone")
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
    shows(&fleet.gates[0], 9, "Sums of 3 instances;");

    fleet.redis.program.kill();
    shows(&fleet.gates[0], 3, "Counts of this instance alone: ");
    // A store that is empty is told everything again, but for what one told that is not there.
    fleet.redis.program.start_again();
    visit(&fleet.gates[2], 1);
    shows(&fleet.gates[0], 4, "Sums of 2 instances;");
    fleet.gates[1].start_again();
    shows(&fleet.gates[0], 10, "Sums of 3 instances;");
}
