//! A store that loses facts or deletes keys, and instances that stop while it is away.

use super::{Fleet, instances, kind, kinds, problems, proven_kind, setup};
use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::{BINGBOT, Gate, HOST, Origin, eventually, read};
use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn start_in_a_flushed_store_uses_rewritten_facts() {
    let mut fleet = Fleet::start(2);
    fleet.gates[1].signal("TERM");
    fleet.gates[1].ended();
    let _: () = fleet.redis.command(&["FLUSHALL"]);
    fleet.gates[1].start_again();
    fleet.wait_until_all_accuse();
    assert!(instances(&fleet.gates[1])["begun_anew"].is_null());
    // Also by what the policy says of the time before crawlgate, which begins with no observation.
    assert_eq!(
        proven_kind(&fleet.gates[1], BINGBOT, "/cart/1"),
        "violation"
    );
}

#[test]
fn instance_alone_in_a_flushed_store_says_that_it_begins_anew() {
    let mut fleet = Fleet::start(1);
    let redis = &fleet.redis;
    fleet.gates[0].restart("TERM", |_| redis.command(&["FLUSHALL"]));
    let begun = eventually("it is in the store", || {
        let store = instances(&fleet.gates[0]);
        (store["accuses_not"].is_null()).then(|| store["begun_anew"].clone())
    });
    let (at, until) = (
        begun["at"].as_str().expect("a moment"),
        begun["until"].as_str().expect("a moment"),
    );
    assert!(at < until, "{begun}");
    assert_eq!(kind(&fleet.gates[0], BINGBOT, "/cart/1"), "unproven");
    assert_eq!(fleet.gates[0].get(HOST, "/robots.txt", "").status, 200);
    let list = fleet.gates[0].command(&["instances"]);
    assert!(
        String::from_utf8_lossy(&list.stdout).contains(until),
        "{list:?}"
    );
}

#[test]
fn evicting_store_is_noticed_and_rewritten() {
    let fleet = Fleet::start(1);
    let gate = &fleet.gates[0];
    assert_eq!(kind(gate, BINGBOT, "/robots.txt"), "allowed");
    eventually("the copy is told", || {
        (fleet.redis.command::<u64>(&["ZCARD", "crawlgate:served"]) > 0).then_some(())
    });
    let _: () = fleet
        .redis
        .command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let is_named = || {
        problems(gate)
            .iter()
            .any(|(kind, said)| kind == "store" && said.contains("allkeys-lru"))
    };
    eventually("it is noticed", || is_named().then_some(()));
    let _: () = fleet.redis.command(&["DEL", "crawlgate:served"]);
    let _: () = fleet
        .redis
        .command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let is_told = || fleet.redis.command::<u64>(&["ZCARD", "crawlgate:served"]) > 0;
    eventually("the copy is told again", || is_told().then_some(()));
    fleet.wait_until_all_accuse();
}

#[test]
fn records_that_wait_are_written_at_a_stop_without_the_store() {
    let mut fleet = Fleet::start(1);
    fleet.redis.program.kill();
    let gate = &mut fleet.gates[0];
    for number in 0..3 {
        let refused = gate.get(
            HOST,
            &format!("/cart/{number}"),
            &format!("User-Agent: {BINGBOT}\r\n"),
        );
        assert_eq!(refused.status, 403);
    }
    gate.signal("TERM");
    assert!(gate.ended().success());
    for number in 0..3 {
        let path = format!("/cart/{number}");
        assert_eq!(kinds(gate, &path), ["unproven"]);
        assert!(read(&gate.path("events.log")).contains(&path), "{path}");
    }
}

#[test]
fn start_behind_a_store_that_trickles_serves_and_stops() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!(
        "store: 'redis://{}/0'",
        listener.local_addr().expect("an address")
    );
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while client.write_all(b"+").is_ok() {
                    std::thread::park_timeout(Duration::from_millis(20));
                }
            });
        }
    });
    let origin = Origin::plain();
    let mut gate = setup(&origin, &url).start();
    assert_eq!(gate.get(HOST, "/", "").status, 200);
    assert_eq!(gate.get(HOST, "/robots.txt", "").status, 503);
    let store = instances(&gate);
    assert!(
        store["withholds_robots_txt_since"].is_string() && store["accuses_not"].is_string(),
        "{store}"
    );
    eventually("the status says it", || {
        instances(&gate)["away"].is_object().then_some(())
    });
    gate.signal("TERM");
    assert!(gate.ended().success());
}

/// What an instance says at its stop that needs a person.
fn warnings_at_the_stop(gate: &mut Gate) -> Vec<String> {
    gate.signal("TERM");
    assert!(gate.ended().success());
    let log = gate.log.at_its_end();
    let (_, farewell) = log
        .split_once("after SIGTERM")
        .unwrap_or_else(|| panic!("{log}"));
    farewell
        .lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn instance_never_admitted_withholds_robots_txt() {
    let origin = Origin::plain();
    let mut alone = setup(
        &origin,
        &format!("store: 'redis://{}/0'", Origin::nowhere()),
    )
    .start();
    let store = instances(&alone);
    let since = store["withholds_robots_txt_since"]
        .as_str()
        .expect("a moment");
    let said = problems(&alone)
        .into_iter()
        .find(|(kind, _)| kind == "store")
        .expect("a problem")
        .1;
    assert!(said.contains(since), "{said}");
    assert_eq!(warnings_at_the_stop(&mut alone), [""; 0]);
    let redis = RedisServer::start();
    let mut member = setup(&origin, &format!("store: '{}'", redis.url())).start();
    drop(redis);
    let store = eventually("the store is away", || {
        Some(instances(&member)).filter(|store| store["away"].is_object())
    });
    assert!(store["withholds_robots_txt_since"].is_null());
    assert_eq!(warnings_at_the_stop(&mut member).len(), 1);
}
