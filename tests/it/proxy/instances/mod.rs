//! Several instances in front of one site, with a real Redis: they come to the same kinds as one
//! instance, through a rolling restart, a new policy, and the loss of the store or of an instance.

mod balancer;
mod clocks;
mod dashboard;
mod losses;
mod replays;
mod upgrades;

use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::upgrade::signal;
use crate::proxy::support::{
    BINGBOT, BROWSER, GPTBOT, Gate, HOST, Origin, Setup, eventually, read,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const BEFORE: &str = "User-agent: *\nDisallow: /cart/\n";

fn policy(paths: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, previous: before.txt, groups: [{{ agents: \"*\", disallow: [{paths}] }}] }}\n\
         enforcement: {{ mode: enforce, behind_cache: no }}\n"
    )
}

fn setup(origin: &Origin, more: &str) -> Setup {
    let setup = Setup::before(origin.address)
        .policy("shop", &policy("/cart/"))
        .settings("logs: { access: access.log, events: events.log }");
    fs::write(setup.policies().join("before.txt"), BEFORE).expect("the file from before");
    setup.settings(more)
}

/// Instances that share a Redis.
struct Fleet {
    redis: RedisServer,
    origin: Origin,
    gates: Vec<Gate>,
}

impl Fleet {
    fn start(instances: usize) -> Fleet {
        Fleet::with(instances, |setup| setup)
    }

    /// Instances that are started differently.
    fn with(instances: usize, change: impl Fn(Setup) -> Setup) -> Fleet {
        let mut fleet = Fleet {
            redis: RedisServer::start(),
            origin: Origin::plain(),
            gates: Vec::new(),
        };
        fleet.gates = (0..instances)
            .map(|_| change(fleet.setup()).start())
            .collect();
        fleet.wait_until_all_accuse();
        fleet
    }

    /// One more instance.
    fn setup(&self) -> Setup {
        setup(&self.origin, &format!("store: '{}'", self.redis.url()))
    }

    /// Waits until every instance knows all others and calls requests violations.
    fn wait_until_all_accuse(&self) {
        Fleet::wait_until_these_accuse(&self.gates);
    }

    fn wait_until_these_accuse(gates: &[Gate]) {
        for gate in gates {
            eventually("every instance reports", || {
                let store = instances(gate);
                let present = standings(&store)
                    .into_iter()
                    .filter(|(_, standing)| standing == "present")
                    .count();
                let is_well = store["away"].is_null() && store["accuses_not"].is_null();
                (is_well && present == gates.len()).then_some(())
            });
        }
    }
}

/// What `instances --json` says.
fn instances(gate: &Gate) -> Value {
    let output = gate.command(&["instances", "--json"]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The members by their ids, and how each stands.
fn standings(store: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let members = store["members"].as_array().expect("members").iter();
    members
        .map(|found| (text(&found["member"]["id"]), text(&found["standing"])))
        .collect()
}

fn own_id(gate: &Gate) -> String {
    instances(gate)["id"].as_str().expect("an id").to_owned()
}

/// What the access log calls the requests for a path.
fn kinds(gate: &Gate, path: &str) -> Vec<String> {
    let log = read(&gate.path("access.log"));
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_it = lines.filter(|line| line["target"] == path);
    of_it
        .map(|line| line["kind"].as_str().expect("a kind").to_owned())
        .collect()
}

/// What it calls this one.
fn kind(gate: &Gate, agent: &str, path: &str) -> String {
    let before = kinds(gate, path).len();
    gate.get(HOST, path, &format!("User-Agent: {agent}\r\n"));
    eventually("a line of the access log", || {
        kinds(gate, path).into_iter().nth(before)
    })
}

/// The problems that an instance sees: their kinds, and what is said of them.
fn problems(gate: &Gate) -> Vec<(String, String)> {
    let status: Value =
        serde_json::from_slice(&gate.command(&["status", "--json"]).stdout).expect("JSON");
    let problems = status["problems"].as_array().expect("problems").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    problems
        .map(|found| (text(&found["problem"]), text(&found["message"])))
        .collect()
}

/// The kind once the instance knows what the others did. Until then, for some tenths of a second,
/// it is `unproven`.
fn proven_kind(gate: &Gate, agent: &str, path: &str) -> String {
    eventually("a kind that is not `unproven`", || {
        Some(kind(gate, agent, path)).filter(|kind| kind != "unproven")
    })
}

fn robots_txt(gate: &Gate) -> String {
    gate.get(HOST, "/robots.txt", "").text().to_owned()
}

/// A policy reaches all instances.
fn roll_out(gates: &[Gate], paths: &str) {
    for gate in gates {
        gate.write_policy("shop", &policy(paths));
        eventually("the new robots.txt", || {
            let last = paths.rsplit(", ").next().expect("a path");
            robots_txt(gate)
                .contains(&format!("Disallow: {last}\n"))
                .then_some(())
        });
    }
}

/// A day of crawlers and people, each request at the next instance; the kinds of all requests.
fn visits(gates: &[Gate]) -> Vec<(String, String)> {
    let mut next = gates.iter().cycle();
    let mut ask = |agent: &str, path: &str| {
        let gate = next.next().expect("an instance");
        (format!("{agent} {path}"), proven_kind(gate, agent, path))
    };
    let mut kinds = vec![
        ask(BROWSER, "/cart/1"),
        ask(BINGBOT, "/robots.txt"),
        ask(BINGBOT, "/"),
        ask(BINGBOT, "/cart/2"),
        ask(GPTBOT, "/a"),
        ask(GPTBOT, "/cart/3"),
    ];
    roll_out(gates, "/cart/, /new/");
    let mut ask = |agent: &str, path: &str| {
        let gate = next.next().expect("an instance");
        (format!("{agent} {path}"), proven_kind(gate, agent, path))
    };
    kinds.extend([
        // It may still use the copy that another instance gave it.
        ask(BINGBOT, "/new/1"),
        ask(BINGBOT, "/cart/4"),
        ask(GPTBOT, "/new/2"),
        ask(BINGBOT, "/robots.txt"),
        ask(BINGBOT, "/new/3"),
        ask(BINGBOT, "/cart/5"),
        ask(BROWSER, "/new/4"),
    ]);
    kinds
}

#[test]
fn three_instances_come_to_the_kinds_of_one() {
    let origin = Origin::plain();
    let alone = visits(&[setup(&origin, "").start()]);
    assert!(
        alone.iter().any(|(_, kind)| kind == "violation")
            && alone.iter().any(|(_, kind)| kind == "stale_copy")
    );
    let fleet = Fleet::start(3);
    assert_eq!(visits(&fleet.gates), alone);
    let ids: BTreeSet<String> = fleet.gates.iter().map(own_id).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[test]
fn crawler_with_a_copy_from_another_instance_is_not_accused() {
    let fleet = Fleet::start(2);
    let [one, other] = &fleet.gates[..] else {
        panic!("two instances")
    };
    // Looser here, and not yet there: what the crawler was given here allows it.
    one.write_policy("shop", &policy("/elsewhere/"));
    eventually("the new robots.txt", || {
        robots_txt(one).contains("/elsewhere/").then_some(())
    });
    assert_eq!(one.fetch_as(BINGBOT, "/robots.txt").status, 200);
    let mut number = 0;
    eventually("the copy is known there", || {
        number += 1;
        let kind = kind(other, BINGBOT, &format!("/cart/{number}"));
        assert_ne!(kind, "violation");
        (kind == "stale_copy").then_some(())
    });
    assert_eq!(kind(other, GPTBOT, "/cart/of-another"), "stale_copy");
}

#[test]
fn rolling_restart_accuses_no_crawler_and_keeps_facts() {
    let mut fleet = Fleet::start(3);
    assert_eq!(kind(&fleet.gates[0], BINGBOT, "/robots.txt"), "allowed");
    let before: Vec<String> = fleet.gates.iter().map(own_id).collect();
    for place in 0..3 {
        fleet.gates[place].restart("TERM", |_| {});
        fleet.wait_until_all_accuse();
        assert_eq!(
            proven_kind(
                &fleet.gates[(place + 1) % 3],
                BINGBOT,
                &format!("/cart/{place}")
            ),
            "violation"
        );
        assert_eq!(
            proven_kind(&fleet.gates[place], BINGBOT, &format!("/cart/own-{place}")),
            "violation"
        );
    }
    assert_eq!(fleet.gates.iter().map(own_id).collect::<Vec<_>>(), before);
}

#[test]
fn lost_store_accuses_no_crawler_and_keeps_robots_txt() {
    let mut fleet = Fleet::start(2);
    fleet.redis.program.kill();
    let one = &fleet.gates[0];
    assert_eq!(kind(one, BINGBOT, "/cart/1"), "unproven");
    assert_eq!(one.fetch("/").status, 200);
    one.write_policy("shop", &policy("/cart/, /new/"));
    eventually("the change waits", || {
        let reload = one.command(&["reload"]);
        (reload.status.code() == Some(1)).then_some(())
    });
    assert!(!robots_txt(one).contains("/new/"));
    let problems = problems(one);
    assert!(
        problems.iter().any(|(kind, _)| kind == "store"),
        "{problems:?}"
    );
    assert!(one.metrics().contains("crawlgate_store_up 0"));
    let known = instances(one);
    assert!(
        standings(&known)
            .iter()
            .all(|(_, standing)| standing == "present"),
        "as they stood before: {known}"
    );

    fleet.redis.program.start_again();
    eventually("the new robots.txt", || {
        robots_txt(&fleet.gates[0]).contains("/new/").then_some(())
    });
    fleet.gates[1].write_policy("shop", &policy("/cart/, /new/"));
    fleet.wait_until_all_accuse();
    assert_eq!(
        proven_kind(&fleet.gates[0], BINGBOT, "/cart/2"),
        "violation"
    );
    assert_eq!(
        proven_kind(&fleet.gates[1], BINGBOT, "/cart/3"),
        "violation"
    );
}

#[test]
fn flushed_store_is_written_again_by_every_instance() {
    let fleet = Fleet::start(2);
    assert_eq!(kind(&fleet.gates[0], BINGBOT, "/robots.txt"), "allowed");
    let _: () = fleet.redis.command(&["FLUSHALL"]);
    eventually("both notice", || {
        let noticed = |gate: &Gate| instances(gate)["totals"]["started_over"].as_u64() >= Some(1);
        fleet.gates.iter().all(noticed).then_some(())
    });
    fleet.wait_until_all_accuse();
    assert_eq!(
        proven_kind(&fleet.gates[1], BINGBOT, "/cart/1"),
        "violation"
    );
    let served: u64 = fleet.redis.command(&["ZCARD", "crawlgate:served"]);
    assert!(served >= 1);
}

#[test]
fn killed_instance_blocks_accusations_until_forgotten() {
    let mut fleet = Fleet::start(2);
    let lost = own_id(&fleet.gates[1]);
    fleet.gates[1].signal("KILL");
    fleet.gates[1].ended();
    let one = &fleet.gates[0];
    eventually("it is silent", || {
        standings(&instances(one))
            .contains(&(lost.clone(), "silent".into()))
            .then_some(())
    });
    assert_eq!(kind(one, BINGBOT, "/cart/1"), "unproven");
    let forgotten = one.command(&["instances", "forget", &lost]);
    assert_eq!(
        forgotten.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&forgotten.stdout)
    );
    eventually("nothing hinders", || {
        instances(one)["accuses_not"].is_null().then_some(())
    });
    assert_eq!(proven_kind(one, BINGBOT, "/cart/2"), "violation");
    // It comes back under its id.
    fleet.gates[1].start_again();
    fleet.wait_until_all_accuse();
    assert_eq!(own_id(&fleet.gates[1]), lost);
    assert_eq!(unused_address(&fleet.gates[0]), Some(1));
}

/// The exit code of an attempt to forget an instance that is not there.
fn unused_address(gate: &Gate) -> Option<i32> {
    gate.command(&["instances", "forget", "0000000000000000"])
        .status
        .code()
}

#[test]
fn stopped_instance_is_silent_and_comes_back() {
    let fleet = Fleet::start(2);
    let (one, other) = (&fleet.gates[0], &fleet.gates[1]);
    let stopped = own_id(other);
    signal(other.pid(), "STOP");
    eventually("it is silent", || {
        standings(&instances(one))
            .contains(&(stopped.clone(), "silent".into()))
            .then_some(())
    });
    assert_eq!(kind(one, BINGBOT, "/cart/1"), "unproven");
    signal(other.pid(), "CONT");
    fleet.wait_until_all_accuse();
    assert_eq!(proven_kind(one, BINGBOT, "/cart/2"), "violation");
    assert_eq!(proven_kind(other, BINGBOT, "/cart/3"), "violation");
}

#[test]
fn store_that_cannot_be_used_is_a_problem_and_not_the_end() {
    let (redis, origin) = (
        RedisServer::with(&["--maxmemory-policy", "allkeys-lru"]),
        Origin::plain(),
    );
    let gate = setup(&origin, &format!("store: '{}'", redis.url())).start();
    let status = eventually("the problem", || {
        let status = gate.command(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        let problems = status["problems"].as_array().expect("problems").clone();
        problems
            .into_iter()
            .find(|found| found["problem"] == "store")
    });
    assert!(
        status["message"]
            .as_str()
            .is_some_and(|message| message.contains("allkeys-lru")),
        "{status}"
    );
    let list = gate.command(&["instances"]);
    assert!(instances(&gate)["away"]["error"].is_string());
    assert_eq!(list.status.code(), Some(1));
    // It was never in a store: it serves pages, and no robots.txt.
    assert_eq!(gate.fetch("/").status, 200);
    assert_eq!(gate.get(HOST, "/robots.txt", "").status, 503);
    assert_eq!(kind(&gate, BINGBOT, "/cart/1"), "unproven");
    let _: () = redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    eventually("robots.txt", || {
        (gate.get(HOST, "/robots.txt", "").status == 200).then_some(())
    });
}

#[test]
fn without_a_store_there_are_no_other_instances() {
    let origin = Origin::plain();
    let gate = setup(&origin, "").start();
    let said = gate.command(&["instances"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(!gate.metrics().contains("crawlgate_store"));
    let status: Value =
        serde_json::from_slice(&gate.command(&["status", "--json"]).stdout).expect("JSON");
    assert!(status.get("store").is_none());
}
