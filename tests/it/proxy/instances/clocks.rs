//! Clocks that differ, and policies that differ: who is accused, and what the operator sees.

use super::{Fleet, instances, kind, policy, problems, proven_kind};
use crate::proxy::support::{BINGBOT, Gate, eventually};
use std::fs;

/// Whether something is wrong with an instance or the clock.
fn has_problem(gate: &Gate) -> bool {
    problems(gate).iter().any(|(kind, _)| kind == "instances")
}

/// Whether another instance has other policies than this one.
fn differ(gate: &Gate) -> bool {
    let exchange = instances(gate);
    let members = exchange["members"].as_array().expect("members");
    members
        .iter()
        .any(|member| member["same_policies"] == false)
}

#[test]
fn instance_with_a_wrong_clock_accuses_no_crawler() {
    let mut fleet = Fleet::start(1);
    let wrong = fleet.setup().with_clock();
    fs::write(
        wrong.policies().with_file_name("clock"),
        "elapsed 0s set 8s",
    )
    .expect("a clock");
    fleet.gates.push(wrong.start());
    let [right, wrong] = &fleet.gates[..] else {
        panic!("two instances")
    };
    eventually("the clock is noticed", || {
        (instances(wrong)["accuses_not"] == "clock").then_some(())
    });
    assert_eq!(kind(wrong, BINGBOT, "/cart/1"), "unproven");
    assert!(has_problem(wrong), "{:?}", problems(wrong));
    let shown = |gate: &Gate| {
        let page = gate.admin_page("/health");
        let clocks = page.split("data-label=\"Clock ahead\">").skip(1);
        clocks
            .filter_map(|clock| clock.split_once(" ms<")?.0.parse::<i64>().ok())
            .max()
    };
    for gate in [right, wrong] {
        eventually("its clock is on both pages", || {
            shown(gate).filter(|ahead| (7_000..9_000).contains(ahead))
        });
    }
    // The others go on.
    eventually("the right one goes on", || {
        instances(right)["accuses_not"].is_null().then_some(())
    });
    assert_eq!(proven_kind(right, BINGBOT, "/cart/2"), "violation");

    // Four seconds are a warning, and times are converted.
    fleet.gates[1].restart("TERM", |gate| {
        gate.write_clock(0, -4);
    });
    fleet.wait_until_all_accuse();
    let wrong = &fleet.gates[1];
    assert!(has_problem(wrong), "{:?}", problems(wrong));
    let ahead = instances(wrong)["clock_ahead_ms"].as_i64();
    assert!(ahead.is_some_and(|ahead| (3_500..4_500).contains(&ahead)));
    assert_eq!(proven_kind(wrong, BINGBOT, "/cart/3"), "violation");
}

#[test]
fn instances_with_other_policies_are_named() {
    let fleet = Fleet::start(2);
    let [one, other] = &fleet.gates[..] else {
        panic!("two instances")
    };
    assert!(!differ(one) && !has_problem(one));
    one.write_policy("shop", &policy("/cart/, /more/"));
    for gate in [one, other] {
        eventually("both name the other one", || {
            (differ(gate) && has_problem(gate)).then_some(())
        });
        assert_eq!(gate.command(&["instances"]).status.code(), Some(1));
    }
    other.write_policy("shop", &policy("/cart/, /more/"));
    for gate in [one, other] {
        eventually("they agree", || {
            (!differ(gate) && !has_problem(gate)).then_some(())
        });
        assert_eq!(gate.command(&["instances"]).status.code(), Some(0));
    }
}
