//! A state directory that cannot be written for a while, under the real binary: it runs on, and whoever was served what
//! is not known afterwards is no violator.

use crate::support::{BINGBOT, Gate, Origin, Setup, eventually, read};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const HOST: &str = "shop.example";
const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const BYSTANDER: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";

/// What the next start relies on, and what each of them was before it could not be written any more.
const FILES: [&str; 4] = ["versions", "state.json", "last-good", "ledger/visits.json"];

fn policy(closed: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: [{closed}] }}] }}\nenforcement: {{ mode: enforce }}\n"
    )
}

/// A host that was watched for more than a day.
fn watched(origin: &Origin) -> Gate {
    let setup = Setup::before(origin.address).policy("shop", &policy("/cart/, /new/"));
    let mut gate = setup.settings("logs: { access: access.log }").with_clock().start();
    for _ in 0..6 {
        assert_eq!(kind(&gate, BYSTANDER, "/"), "allowed");
        gate.live_through(5 * 3_600);
    }
    assert_eq!(kind(&gate, BYSTANDER, "/"), "allowed");
    wait_until_written(&gate);
    gate
}

fn wait_until_written(gate: &Gate) {
    let stamp = || {
        let stamp: Value = serde_json::from_str(&read(&gate.path("state/ledger/alive.json"))).ok()?;
        stamp["at"].as_i64()
    };
    let before = eventually("a stamp", stamp);
    eventually("the next stamp", || stamp().filter(|at| *at > before));
}

/// What the access log calls a request. Those of requests before it may be written late.
fn kind(gate: &Gate, agent: &str, path: &str) -> String {
    let kinds = || -> Vec<String> {
        let log = read(&gate.path("access.log"));
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_it = lines.filter(|line| line["target"] == path && line["user_agent"] == agent);
        of_it.map(|line| line["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    let before = kinds().len();
    gate.get(HOST, path, &format!("User-Agent: {agent}\r\n"));
    eventually("a line of the access log", || kinds().into_iter().nth(before))
}

fn publish(gate: &Gate, closed: &str) {
    gate.write_policy("shop", &policy(closed));
    assert!(gate.command(&["reload"]).status.success(), "the proxy runs on");
}

fn warnings(gate: &Gate) -> String {
    let status: Value = serde_json::from_slice(&gate.command(&["status", "--json"]).stdout).expect("JSON");
    status["warnings"].to_string()
}

fn away(path: &Path) -> PathBuf {
    path.with_extension("away")
}

/// Puts something in the way of each, so that nothing can be written there. What is in the way of a file cannot be
/// removed like one.
fn block(gate: &Gate, files: &[&str]) {
    for file in files {
        let path = gate.path("state").join(file);
        fs::rename(&path, away(&path)).expect("it is there");
        if away(&path).is_dir() { fs::write(&path, "in the way") } else { fs::create_dir(&path) }.expect("in the way");
    }
}

fn unblock(gate: &Gate, files: &[&str]) {
    for file in files {
        let path = gate.path("state").join(file);
        if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) }.expect("in the way");
        fs::rename(away(&path), &path).expect("as it was");
    }
}

fn robots_txt(gate: &Gate) -> String {
    gate.get(HOST, "/robots.txt", &format!("User-Agent: {BINGBOT}\r\n")).text().to_owned()
}

#[test]
fn an_obedient_crawler_is_no_violator_after_a_time_in_which_nothing_could_be_written() {
    let origin = Origin::plain();
    for signal in ["KILL", "TERM"] {
        let mut gate = watched(&origin);
        block(&gate, &FILES);
        publish(&gate, "/cart/");
        assert_eq!(gate.get(HOST, "/robots.txt", &format!("User-Agent: {BINGBOT}\r\n")).status, 200);
        publish(&gate, "/cart/, /new/, /more/");
        assert!(warnings(&gate).contains("state.json: cannot be written"));
        assert_eq!(kind(&gate, BINGBOT, "/new/"), "stale_copy", "its copy opens it");
        eventually("the stamp is taken away", || (!gate.path("state/ledger/alive.json").exists()).then_some(()));
        gate.restart(signal, |gate| {
            unblock(gate, &FILES);
            gate.write_clock(3, 0);
        });
        assert_eq!(kind(&gate, BINGBOT, "/new/"), "unproven", "{signal}: what it was served nobody knows");
        for _ in 0..5 {
            gate.live_through(5 * 3_600);
            assert_eq!(kind(&gate, BYSTANDER, "/"), "allowed");
        }
        assert_eq!(kind(&gate, BINGBOT, "/new/"), "violation", "{signal}: it holds no copy any more");
    }
}

#[test]
fn what_could_not_be_written_is_written_when_there_is_room_again_and_the_watch_goes_on() {
    let origin = Origin::plain();
    let mut gate = watched(&origin);
    block(&gate, &FILES);
    publish(&gate, "/cart/");
    assert_eq!(gate.get(HOST, "/robots.txt", &format!("User-Agent: {BINGBOT}\r\n")).status, 200);
    publish(&gate, "/cart/, /new/, /more/");
    unblock(&gate, &FILES);
    eventually("everything is written", || (warnings(&gate) == "[]").then_some(()));
    wait_until_written(&gate);
    gate.restart("KILL", |gate| {
        gate.write_clock(3, 0);
    });
    assert_eq!(kind(&gate, BINGBOT, "/new/"), "stale_copy");
    assert_eq!(kind(&gate, BINGBOT, "/cart/"), "violation", "every version that it may hold closes it");
}

/// As where the state directory has another owner, and what is in it has not.
#[test]
fn nor_after_one_in_which_only_the_directory_itself_could_not_be_written() {
    let origin = Origin::plain();
    for signal in ["KILL", "TERM"] {
        let files = ["state.json", "complete"];
        let mut gate = watched(&origin);
        block(&gate, &files);
        publish(&gate, "/cart/");
        assert!(!gate.path("state/ledger/alive.json").exists(), "it is gone before anybody is served the new version");
        assert!(!robots_txt(&gate).contains("/new/"));
        publish(&gate, "/cart/, /new/, /more/");
        // The ledger goes on.
        let file = gate.path("state/ledger/visits.json");
        let visits = || read(&file);
        let before = visits();
        gate.live_through(3_600);
        assert_eq!(kind(&gate, BINGBOT, "/new/"), "stale_copy");
        eventually("the visits are written", || (visits() != before).then_some(()));
        assert!(!gate.path("state/ledger/alive.json").exists());
        gate.restart(signal, |gate| {
            unblock(gate, &files);
            gate.write_clock(3, 0);
        });
        let all_held = kind(&gate, BINGBOT, "/new/");
        assert!(["stale_copy", "unproven"].contains(&all_held.as_str()), "{signal}: {all_held}");
        assert_eq!(kind(&gate, GOOGLEBOT, "/new/"), "unproven", "{signal}: nobody knows what it was served");
    }
}

/// As on a file system that is read-only all of a sudden.
#[test]
fn where_not_even_a_file_can_be_taken_away_what_is_new_waits_until_the_next_start_would_not_be_misled() {
    let origin = Origin::plain();
    let all = [FILES.as_slice(), &["complete", "ledger/alive.json"]].concat();
    let mut gate = watched(&origin);
    block(&gate, &all);
    gate.write_policy("shop", &policy("/cart/"));
    let reloaded = gate.command(&["reload"]);
    assert_eq!(reloaded.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&reloaded.stdout).contains("not in force yet: what is new waits"));
    assert!(warnings(&gate).contains("what is new waits"));
    assert!(robots_txt(&gate).contains("/new/"), "what was in force stays");
    gate.restart("KILL", |gate| {
        unblock(gate, &all);
        gate.write_policy("shop", &policy("/cart/, /new/, /more/"));
        gate.write_clock(3, 0);
    });
    assert_eq!(kind(&gate, BINGBOT, "/new/"), "violation", "that is what it was served");

    wait_until_written(&gate);
    block(&gate, &all);
    gate.write_policy("shop", &policy("/cart/"));
    assert_eq!(gate.command(&["reload"]).status.code(), Some(1));
    gate.live_through(30);
    eventually("nobody believes the stamp any more", || (!robots_txt(&gate).contains("/new/")).then_some(()));
    assert!(!warnings(&gate).contains("what is new waits"));
    publish(&gate, "/cart/, /new/, /more/");
    gate.restart("KILL", |gate| {
        unblock(gate, &all);
        gate.write_clock(3, 0);
    });
    assert_eq!(kind(&gate, BINGBOT, "/new/"), "unproven");
}

#[test]
fn a_second_crawlgate_on_the_same_directory_is_refused_with_the_pid_of_the_first() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", &policy("/cart/")).start();
    let pid = read(&gate.path("state/lock")).trim().to_owned();
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
    let second = || {
        let setup = Setup::before(origin.address).policy("shop", &policy("/cart/"));
        setup.argument("--state").argument(gate.path("state").display())
    };
    let (said, status) = second().fail();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains(&format!("process {pid})")), "{said}");
    assert_eq!(gate.get(HOST, "/", "").status, 200, "the first one goes on");
    // The lock goes with the process, however that ends.
    let gate = gate.killed_and_started_again();
    assert_eq!(gate.get(HOST, "/", "").status, 200);
}

#[test]
fn a_damaged_database_is_set_aside_and_crawlgate_starts() {
    let origin = Origin::plain();
    let mut gate = Setup::before(origin.address).policy("shop", &policy("/cart/")).start();
    gate.restart("TERM", |gate| {
        assert_eq!(read(&gate.path("state/lock")), "", "it ended in order");
        fs::write(gate.path("state/state.db"), "no database at all").expect("written");
    });
    assert_eq!(gate.get(HOST, "/", "").status, 200);
    let names = fs::read_dir(gate.path("state")).expect("there").map(|entry| entry.expect("a file").file_name());
    let aside = names.filter(|name| name.to_string_lossy().starts_with("state.db.damaged-")).count();
    assert_eq!((aside, warnings(&gate).as_str()), (1, "[]"));
}
