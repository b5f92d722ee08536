//! `crawlgate upgrade` of an instance among several: it stays the same member, and what either
//! process served is known.

use super::{Fleet, instances, kind, kinds, own_id, policy, proven_kind, standings};
use crate::proxy::support::upgrade::signal;
use crate::proxy::support::{BINGBOT, GPTBOT, Gate, HOST, Setup, eventually};

fn members(gate: &Gate) -> usize {
    standings(&instances(gate)).len()
}

#[test]
fn upgraded_instance_stays_the_same_member() {
    let mut fleet = Fleet::with(2, Setup::replaceable);
    let id = own_id(&fleet.gates[0]);
    assert_eq!(kind(&fleet.gates[0], BINGBOT, "/robots.txt"), "allowed");
    fleet.gates[0].upgrade();
    assert!(fleet.gates[0].ended().success());
    fleet.wait_until_all_accuse();
    assert_eq!((own_id(&fleet.gates[0]), members(&fleet.gates[1])), (id, 2));
    // What the process before served is known to the next one and to the other instance.
    for gate in &fleet.gates {
        gate.write_policy("shop", &policy("/cart/, /new/"));
    }
    for gate in &fleet.gates {
        eventually("the new robots.txt", || {
            super::robots_txt(gate).contains("/new/").then_some(())
        });
        assert_eq!(proven_kind(gate, BINGBOT, "/new/1"), "stale_copy");
        assert_eq!(proven_kind(gate, GPTBOT, "/cart/1"), "violation");
    }
}

#[test]
fn failed_upgrade_leaves_a_judging_member() {
    let fleet = Fleet::with(2, Setup::replaceable);
    let [one, other] = &fleet.gates[..] else {
        panic!("two instances")
    };
    let id = own_id(one);
    for (lines, known) in [
        ("hear(\"yours\"); sys.exit(\"no disk\")", "violation"),
        // The next process may have served what this one does not know.
        (
            "hear(\"yours\"); say(\"opened\"); hear(\"go\"); sys.exit(1)",
            "unproven",
        ),
    ] {
        one.next_hands_over_and(lines);
        one.refused_upgrade(&["--unsupervised"]);
        fleet.wait_until_all_accuse();
        assert_eq!((own_id(one), members(other)), (id.clone(), 2));
        eventually("what it knows", || {
            (kind(one, BINGBOT, "/cart/1") == known).then_some(())
        });
        assert_eq!(proven_kind(other, BINGBOT, "/cart/1"), "violation");
    }
}

#[test]
fn record_that_waits_is_written_when_another_process_takes_over() {
    let mut fleet = Fleet::with(2, Setup::replaceable);
    // The other one confirms nothing.
    signal(fleet.gates[1].pid(), "STOP");
    let gate = &mut fleet.gates[0];
    assert_eq!(
        gate.get(HOST, "/cart/1", &format!("User-Agent: {BINGBOT}\r\n"))
            .status,
        403
    );
    gate.upgrade();
    assert!(gate.ended().success());
    signal(fleet.gates[1].pid(), "CONT");
    assert_eq!(kinds(&fleet.gates[0], "/cart/1"), ["unproven"]);
}
