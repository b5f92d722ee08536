//! An upgrade that fails at each of its steps: the running process goes on as before, and the next
//! attempt succeeds.

use crate::proxy::support::upgrade::signal;
use crate::proxy::support::{Authority, Gate, HOST, Origin, Setup, eventually, read};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn replaceable(origin: &Origin) -> Gate {
    Setup::before(origin.address)
        .policy("site", &policy("/y/"))
        .replaceable()
        .start()
}

fn policy(disallowed: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [{disallowed}] }}] }}\n"
    )
}

/// Requests are answered, facts are written, commands are heard, and a proper next process takes
/// over.
fn goes_on(mut gate: Gate) {
    assert!(gate.is_running());
    assert_eq!(gate.fetch("/").status, 200);
    assert_eq!(gate.command(&["status", "--alive"]).status.code(), Some(0));
    let before = gate.last_commit();
    gate.write_policy("site", &policy("/x/"));
    assert_eq!(
        gate.command(&["reload"]).status.code(),
        Some(0),
        "a change is published, and so committed"
    );
    eventually("the time of the commit goes on", || {
        (gate.last_commit() >= before).then_some(())
    });
    let robots = gate.fetch("/robots.txt");
    assert!(
        robots.status == 200 && robots.text().contains("/x/"),
        "{robots:?}"
    );
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

/// The same for a stand-in that does this after its ready.
fn fails_after_ready(lines: &str, said: &str) {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    gate.next_hands_over_and(lines);
    let refused = gate.refused_upgrade(&["--unsupervised"]);
    assert!(refused.contains(said), "{refused}");
    goes_on(gate);
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
    assert!(
        gate.refused_upgrade(&["--unsupervised"])
            .contains("/crawlgate")
    );
    gate.next_is("exit 1");
    goes_on(gate);
}

#[test]
fn program_that_says_something_else() {
    fails_with("echo HTTP/1.1 200 OK >&0; sleep 60", "another program");
}

#[test]
fn process_that_ends_when_it_has_the_listeners() {
    fails_after_ready(
        "hear(\"yours\"); sys.exit(\"the disk is gone\")",
        "the disk is gone",
    );
}

#[test]
fn process_that_opens_nothing_in_time() {
    let began = Instant::now();
    fails_after_ready(
        "hear(\"yours\"); print(\"opening\", flush=True); time.sleep(60)",
        "it took too long",
    );
    assert!(
        began.elapsed().as_secs() < 50,
        "the running process does not wait for it"
    );
}

#[test]
fn process_that_ends_on_request() {
    fails_after_ready(
        "hear(\"yours\"); say(\"opened\"); hear(\"go\"); sys.exit(\"panicked\")",
        "panicked",
    );
}

#[test]
fn process_that_opens_and_then_accepts_nothing() {
    fails_after_ready(
        "hear(\"yours\"); say(\"opened\"); hear(\"go\"); print(\"stuck\", flush=True); time.sleep(60)",
        "stuck",
    );
}

#[test]
fn process_that_says_something_out_of_turn() {
    fails_after_ready(
        "hear(\"yours\"); say(\"serving\"); time.sleep(60)",
        "another program",
    );
}

#[test]
fn certificate_that_cannot_be_used() {
    let (origin, authority) = (Origin::plain(), Authority::new());
    let directory = tempfile::tempdir().expect("a directory");
    authority.certify(directory.path(), "a", &["a.example"], 2999);
    let gate = replaceable(&origin);
    let file = |kind: &str| directory.path().join(format!("a.{kind}"));
    let tls = format!(
        "{{ cert: {}, key: {} }}",
        file("pem").display(),
        file("key").display()
    );
    let listeners = format!(
        "listen: [127.0.0.1:0, {{ address: \"[::1]:0\", tls: {{ certificates: [{tls}] }} }}]"
    );
    gate.change_settings("listen: 127.0.0.1:0", &listeners);
    let key = read(&file("key"));
    std::fs::write(file("key"), "no key").expect("written");
    assert!(gate.refused_upgrade(&["--unsupervised"]).contains("a.key"));
    std::fs::write(file("key"), key).expect("written");
    goes_on(gate);
}

/// A process under this does not die when a file grows beyond its limit: writing fails, as on a
/// full disk.
const MAY_FILL: [&str; 4] = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];

fn limit_files(gate: &Gate, limit: &str) {
    let pid = gate.pid().to_string();
    let set = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--fsize={limit}:unlimited")])
        .status();
    assert!(set.expect("prlimit").success());
}

/// At once, before any commit has failed, and when the running process knows.
#[test]
fn disk_that_is_full() {
    for waits in [false, true] {
        let origin = Origin::plain();
        let setup = Setup::before(origin.address)
            .policy("site", &policy("/y/"))
            .under(&MAY_FILL);
        let gate = setup.replaceable().start();
        limit_files(&gate, "0");
        if waits {
            gate.write_policy("site", &policy("/z/"));
            assert_eq!(
                gate.command(&["reload"]).status.code(),
                Some(1),
                "it cannot be stored"
            );
        }
        let refused = gate.refused_upgrade(&["--unsupervised"]);
        assert!(refused.contains("state"), "{refused}");
        assert_eq!(gate.fetch("/").status, 200);
        limit_files(&gate, "unlimited");
        eventually("it is written again", || {
            gate.command(&["reload"]).status.success().then_some(())
        });
        goes_on(gate);
    }
}

/// Writes bytes over the page that a table begins with, and returns what was there.
fn overwrite_table(file: &Path, name: &str) -> (u64, Vec<u8>) {
    let database = rusqlite::Connection::open(file).expect("opened");
    // The running process writes as well: all of what it wrote has to be in the file itself.
    eventually("the write-ahead log is empty", || {
        let emptied = database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i64>(0)
        });
        emptied.is_ok_and(|is_busy| is_busy == 0).then_some(())
    });
    let place = "SELECT (rootpage - 1) * page_size, page_size FROM sqlite_master, pragma_page_size WHERE name = ?1";
    let place = database.query_row(place, [name], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    let (start, size) = place.expect("the table is there");
    let (start, mut page) = (
        start.cast_unsigned(),
        vec![0; usize::try_from(size).expect("a size")],
    );
    let file = File::options()
        .read(true)
        .write(true)
        .open(file)
        .expect("opened");
    file.read_exact_at(&mut page, start).expect("read");
    file.write_all_at(&vec![0xff; page.len()], start)
        .expect("written");
    (start, page)
}

/// The running process does not look at the table any more, so it notices nothing.
#[test]
fn state_that_is_damaged() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    let file = gate.path("state/state.db");
    let (start, page) = overwrite_table(&file, "versions");
    let refused = gate.refused_upgrade(&["--unsupervised"]);
    assert!(refused.contains("state.db"), "{refused}");
    assert!(refused.contains("restore a backup"), "{refused}");
    assert!(
        !gate.log.text().contains(".damaged-"),
        "{}",
        gate.log.text()
    );
    let mended = File::options().write(true).open(&file).expect("opened");
    mended.write_all_at(&page, start).expect("written");
    goes_on(gate);
}

#[test]
fn settings_with_a_mistake() {
    let origin = Origin::plain();
    let gate = replaceable(&origin);
    gate.change_settings("policies:", "polices:");
    assert!(
        gate.refused_upgrade(&["--unsupervised"])
            .contains("polices")
    );
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
    assert!(
        gate.refused_upgrade(&["--unsupervised"])
            .contains("\"state\"")
    );
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
    assert!(
        gate.refused_upgrade(&["--unsupervised"])
            .contains("0.0.0.0")
    );
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
    gate.log.wait_for("predecessor=\"lost\"");
    assert_eq!(gate.fetch("/").status, 200);
    gate.upgrade();
    assert_eq!(gate.fetch("/").status, 200);
}
