//! An upgrade that fails at each of its steps: the running process goes on as before, and the next attempt succeeds.

use crate::proxy::support::upgrade::signal;
use crate::proxy::support::{Gate, HOST, Origin, Setup, eventually};
use std::time::Instant;

/// A next process that speaks with the running one and fails on purpose. `say(x)` sends a message, `hear()` waits for one.
const STAND_IN: &str = r#"exec python3 -c '
import json, os, socket, struct, sys, time
s = socket.socket(fileno=0)
def say(name, **more):
    body = json.dumps(dict(message=name, **more)).encode()
    s.sendall(struct.pack(">I", len(body)) + body)
def octets(n):
    got = b""
    while len(got) < n:
        part, anc, _, _ = s.recvmsg(n - len(got), socket.CMSG_LEN(64 * 4))
        if not part: sys.exit("the process before has ended")
        got += part
    return got
def hear(name):
    while True:
        message = json.loads(octets(struct.unpack(">I", octets(4))[0]))
        if message["message"] == name: return message
hello = hear("hello")
def ready(): say("ready", takes=hello["listeners"], takes_control=True)
"#;

fn replaceable(origin: &Origin) -> Gate {
    Setup::before(origin.address).policy("site", &policy("/y/")).replaceable().start()
}

fn policy(disallowed: &str) -> String {
    format!("hosts: [{HOST}]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [{disallowed}] }}] }}\n")
}

/// Requests are answered, facts are written, commands are heard, and a proper next process takes over.
fn goes_on(mut gate: Gate) {
    assert!(gate.is_running());
    assert_eq!(gate.fetch("/").status, 200);
    assert_eq!(gate.command(&["status", "--alive"]).status.code(), Some(0));
    let before = gate.last_commit();
    gate.write_policy("site", &policy("/x/"));
    assert_eq!(gate.command(&["reload"]).status.code(), Some(0), "a change is published, and so committed");
    eventually("the time of the commit goes on", || (gate.last_commit() >= before).then_some(()));
    let robots = gate.fetch("/robots.txt");
    assert!(robots.status == 200 && robots.text().contains("/x/"), "{robots:?}");
    gate.next_is_crawlgate();
    gate.upgrade();
    assert!(gate.ended().success());
    assert!(gate.fetch("/robots.txt").text().contains("/x/"));
}

/// The next process is a script, and `upgrade` says what it wrote.
fn fails_with(script: &str, said: &str) {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    gate.next_is(script);
    let refused = gate.refused_upgrade(&["--unsupervised"]);
    assert!(refused.contains(said), "{refused}");
    goes_on(gate);
}

/// The same for a stand-in, with these lines after its ready.
fn fails_after_ready(lines: &str, said: &str) {
    fails_with(&format!("{STAND_IN}{lines}\n'"), said);
}

#[test]
fn program_that_ends_at_once() {
    fails_with("echo no such library >&2; exit 127", "no such library");
}

#[test]
fn program_that_is_missing() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    std::fs::remove_file(gate.path("crawlgate")).expect("removed");
    assert!(gate.refused_upgrade(&["--unsupervised"]).contains("No such file"));
    gate.next_is("exit 1");
    goes_on(gate);
}

#[test]
fn program_that_says_something_else() {
    fails_with("echo HTTP/1.1 200 OK >&0; sleep 60", "another program");
}

#[test]
fn process_that_ends_when_it_has_the_listeners() {
    fails_after_ready("ready(); hear(\"yours\"); sys.exit(\"the disk is gone\")", "the disk is gone");
}

#[test]
fn process_that_opens_nothing_in_time() {
    let began = Instant::now();
    fails_after_ready("ready(); hear(\"yours\"); print(\"opening\", flush=True); time.sleep(60)", "it took too long");
    assert!(began.elapsed().as_secs() < 50, "the running process does not wait for it");
}

#[test]
fn process_that_ends_when_it_is_told_to_go() {
    fails_after_ready("ready(); hear(\"yours\"); say(\"opened\"); hear(\"go\"); sys.exit(\"panicked\")", "panicked");
}

#[test]
fn settings_with_a_mistake() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    gate.change_settings("policies:", "polices:");
    assert!(gate.refused_upgrade(&["--unsupervised"]).contains("polices"));
    gate.change_settings("polices:", "policies:");
    goes_on(gate);
}

#[test]
fn policies_that_are_refused() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    gate.change_settings("policies: ", "strict: yes\npolicies: ");
    gate.write_policy("site", "hots: [a.example]\n");
    assert!(gate.refused_upgrade(&["--unsupervised"]).contains("hots"));
    gate.write_policy("site", &policy("/y/"));
    goes_on(gate);
}

#[test]
fn another_state_directory() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    gate.change_settings("/state\n", "/other\n");
    assert!(gate.refused_upgrade(&["--unsupervised"]).contains("another state directory"));
    gate.change_settings("/other\n", "/state\n");
    goes_on(gate);
}

/// The running process has `127.0.0.1`, so that the next one cannot have every address of the port.
#[test]
fn listener_that_overlaps_another_one() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    let all = format!("listen: \"0.0.0.0:{}\"", gate.address.port());
    gate.change_settings("listen: 127.0.0.1:0", &all);
    assert!(gate.refused_upgrade(&["--unsupervised"]).contains("cannot listen on 0.0.0.0"));
    gate.change_settings(&all, "listen: 127.0.0.1:0");
    goes_on(gate);
}

#[test]
fn no_service_manager_follows() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    assert!(gate.refused_upgrade(&[]).contains("--unsupervised"));
    goes_on(gate);
}

/// The process before dies while it answers its last requests. The next one goes on.
#[test]
fn process_before_is_killed() {
    let origin = Origin::plain();
    let mut gate = replaceable(&origin);
    let mut kept = gate.connect();
    kept.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(kept.response("GET").status, 200);
    gate.upgrade();
    signal(gate.pid(), "KILL");
    gate.ended();
    gate.log.wait_for("ended without a farewell");
    assert_eq!(gate.fetch("/").status, 200);
    gate.upgrade();
    assert_eq!(gate.fetch("/").status, 200);
}
