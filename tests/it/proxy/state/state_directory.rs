//! A state directory that cannot be written or read, under the real binary: crawlgate runs on, and
//! an obedient crawler is never called a violator.

use crate::proxy::support::{BINGBOT, GPTBOT, Gate, Origin, Setup, eventually, read};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

const HOST: &str = "shop.example";
const BYSTANDER: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
const HOUR: i64 = 3_600;

fn policy(closed: &str) -> String {
    format!(
        "hosts: [{HOST}]\nrobots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: [{closed}] }}] }}\nenforcement: {{ mode: enforce }}\n"
    )
}

/// A host with this rule.
fn setup(origin: &Origin, closed: &str) -> Setup {
    let setup = Setup::before(origin.address).policy("shop", &policy(closed));
    setup.settings("logs: { access: access.log }").with_clock()
}

/// A host that was observed for more than a day.
fn observed(setup: Setup) -> Gate {
    let mut gate = setup.start();
    observe(&mut gate);
    gate.wait_until_stored();
    gate
}

/// More than a day passes, in which a crawler comes now and then.
fn observe(gate: &mut Gate) {
    for _ in 0..6 {
        assert_eq!(kind(gate, BYSTANDER, "/"), "allowed");
        gate.live_through(5 * HOUR);
    }
    assert_eq!(kind(gate, BYSTANDER, "/"), "allowed");
}

/// What the access log calls a request. Lines of earlier requests may be written late.
fn kind(gate: &Gate, agent: &str, path: &str) -> String {
    let kinds = || -> Vec<String> {
        let log = read(&gate.path("access.log"));
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_it = lines.filter(|line| line["target"] == path && line["user_agent"] == agent);
        of_it
            .map(|line| line["kind"].as_str().expect("a kind").to_owned())
            .collect()
    };
    let before = kinds().len();
    gate.get(HOST, path, &format!("User-Agent: {agent}\r\n"));
    eventually("a line of the access log", || {
        kinds().into_iter().nth(before)
    })
}

fn robots_txt(gate: &Gate, agent: &str) -> String {
    gate.get(HOST, "/robots.txt", &format!("User-Agent: {agent}\r\n"))
        .text()
        .to_owned()
}

fn status(gate: &Gate) -> Value {
    serde_json::from_slice(&gate.command(&["status", "--json"]).stdout).expect("JSON")
}

fn warnings(gate: &Gate) -> usize {
    status(gate)["warnings"].as_array().expect("a list").len()
}

/// A process under this does not die when a file grows beyond its limit: writing fails, as on a
/// full disk.
const MAY_FILL: [&str; 4] = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];

/// From now on no file can be written, or all can be again.
fn limit_files(gate: &Gate, limit: &str) {
    let pid = gate.pid().to_string();
    let set = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--fsize={limit}:unlimited")])
        .status();
    assert!(set.expect("prlimit").success());
}

#[test]
fn policy_waits_while_the_disk_is_full() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/cart/").under(&MAY_FILL));
    assert!(!robots_txt(&gate, BINGBOT).contains("/new/"));
    limit_files(&gate, "0");
    gate.write_policy("shop", &policy("/cart/, /new/"));
    let reload = gate.command(&["reload"]);
    assert!(!reload.status.success(), "the new policy is not in force");
    let text = String::from_utf8_lossy(&reload.stdout).into_owned();
    assert!(!text.contains("replaced"), "{text}");
    assert!(!robots_txt(&gate, GPTBOT).contains("/new/"));
    assert!(!gate.log.text().contains("the new policy is in force"));
    // Why, and what waits. The access log may be full, too.
    let found = status(&gate)["warnings"].to_string();
    for id in ["waits-for-state", "state-directory"] {
        assert!(found.contains(&format!("\"{id}\"")), "{found}");
    }
    // The next start will see a gap.
    gate.live_through(21);
    eventually("the new policy is in force", || {
        robots_txt(&gate, GPTBOT).contains("/new/").then_some(())
    });
    gate.restart("KILL", |gate| {
        gate.write_clock(3, 0);
    });
    assert_eq!(kind(&gate, BINGBOT, "/new/"), "stale_copy");
    assert_eq!(kind(&gate, GPTBOT, "/"), "allowed");
    assert_eq!(warnings(&gate), 0);
}

#[test]
fn observation_goes_on_when_the_disk_has_room_again() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/cart/").under(&MAY_FILL));
    limit_files(&gate, "0");
    gate.write_policy("shop", &policy("/cart/, /new/"));
    assert!(!gate.command(&["reload"]).status.success());
    limit_files(&gate, "unlimited");
    eventually("the new policy is in force", || {
        robots_txt(&gate, GPTBOT).contains("/new/").then_some(())
    });
    gate.live_through(60);
    assert!(robots_txt(&gate, BINGBOT).contains("/new/"));
    gate.wait_until_stored();
    gate.restart("KILL", |_| {});
    assert_eq!(
        kind(&gate, BINGBOT, "/new/"),
        "violation",
        "it was served the rule"
    );
    assert_eq!(warnings(&gate), 0);
}

#[test]
fn crawler_that_a_full_disk_hid_is_not_accused_after_a_crash() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/cart/, /old/").under(&MAY_FILL));
    gate.write_policy("shop", &policy("/cart/"));
    assert!(gate.command(&["reload"]).status.success());
    gate.live_through(30 * HOUR);
    assert_eq!(kind(&gate, BYSTANDER, "/"), "allowed");
    gate.wait_until_stored();
    limit_files(&gate, "0");
    // This copy is not in the store: it allows /old/.
    assert!(!robots_txt(&gate, BINGBOT).contains("/old/"));
    gate.restart("KILL", |gate| {
        gate.write_policy("shop", &policy("/cart/, /old/"));
        gate.write_clock(3, 0);
    });
    assert_ne!(kind(&gate, BINGBOT, "/old/"), "violation");
}

/// Pauses and last good policies are read, and nothing is written.
#[test]
fn crawlgate_runs_from_memory_where_the_directory_is_read_only() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/cart/"));
    let state = gate.path("state").display().to_string();
    let mount =
        format!("mount --bind {state} {state} && mount -o remount,ro,bind {state} && exec \"$@\"");
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n");
    let unshare = if is_root { "-m" } else { "-rm" };
    gate.setup
        .wrap(&["unshare", unshare, "sh", "-c", &mount, "sh"]);
    gate.restart("TERM", |gate| gate.write_policy("shop", "robots: [\n"));
    assert!(
        robots_txt(&gate, BINGBOT).contains("/cart/"),
        "the last good policy"
    );
    assert_eq!(kind(&gate, BINGBOT, "/cart/"), "unproven");
    assert_eq!(warnings(&gate), 1, "{}", status(&gate)["warnings"]);
    observe(&mut gate);
    assert_eq!(
        kind(&gate, BYSTANDER, "/cart/"),
        "violation",
        "the host was observed for a day"
    );
}

#[test]
fn foreign_state_directory_means_memory_only() {
    let origin = Origin::plain();
    let setup = setup(&origin, "/cart/");
    let state = setup.policies().with_file_name("state");
    fs::create_dir(&state).expect("a directory");
    // The superuser may write everywhere, unless it gave that right up.
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n");
    let setup = match is_root {
        true => {
            std::os::unix::fs::chown(&state, Some(65_534), Some(65_534)).expect("another owner");
            setup.under(&[
                "setpriv",
                "--bounding-set",
                "-dac_override,-dac_read_search,-fowner",
                "--",
            ])
        }
        false => {
            let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o555);
            fs::set_permissions(&state, read_only).expect("taken away");
            setup
        }
    };
    let gate = setup.start();
    assert_eq!(kind(&gate, BINGBOT, "/cart/"), "unproven");
    assert_eq!(warnings(&gate), 1, "{}", status(&gate)["warnings"]);
    assert_eq!(
        fs::read_dir(&state).map(Iterator::count).ok(),
        Some(0),
        "nothing was written"
    );
}

/// Killed at odd moments while versions come and go: a crawler that obeys its copy is never called
/// a violator.
#[test]
fn obedient_crawler_is_no_violator_after_kills_in_commits() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/a/"));
    for round in 0..8_u64 {
        let (open, closed) = if round % 2 == 0 {
            ("/b/", "/a/")
        } else {
            ("/a/", "/b/")
        };
        let copy = robots_txt(&gate, BINGBOT);
        assert!(
            copy.contains(&format!("Disallow: {closed}")),
            "round {round}: {copy}"
        );
        gate.write_policy("shop", &policy(open));
        std::thread::scope(|scope| {
            scope.spawn(|| gate.command(&["reload"]));
            // Fetches go on while the new version is committed.
            for _ in 0..=round {
                robots_txt(&gate, GPTBOT);
            }
            gate.signal("KILL");
        });
        gate.ended();
        gate.write_clock(2, 0);
        gate.start_again();
        let kind = kind(&gate, BINGBOT, &format!("{open}page"));
        assert!(
            ["stale_copy", "allowed", "unproven"].contains(&kind.as_str()),
            "round {round}: {kind}"
        );
        gate.live_through(5 * HOUR);
    }
}

#[test]
fn obedient_crawler_is_no_violator_after_a_clock_change() {
    for set in [-2 * 24 * HOUR, 2 * 24 * HOUR] {
        let origin = Origin::plain();
        let mut gate = observed(setup(&origin, "/cart/"));
        assert!(!robots_txt(&gate, BINGBOT).contains("/new/"));
        gate.wait_until_stored();
        gate.restart("KILL", |gate| {
            gate.write_policy("shop", &policy("/cart/, /new/"));
            gate.write_clock(0, set);
        });
        let kind = kind(&gate, BINGBOT, "/new/");
        assert!(
            ["stale_copy", "unproven"].contains(&kind.as_str()),
            "set by {set}: {kind}"
        );
    }
}

#[test]
fn second_process_on_a_state_directory_learns_the_first_pid() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("shop", &policy("/cart/"))
        .start();
    let pid = read(&gate.path("state/lock")).trim().to_owned();
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
    let second = || {
        let setup = Setup::before(origin.address).policy("shop", &policy("/cart/"));
        setup
            .argument("--state")
            .argument(gate.path("state").display())
    };
    let (said, status) = second().fail();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains(&pid), "{said}");
    assert_eq!(gate.get(HOST, "/", "").status, 200, "the first one goes on");
    // The lock goes with the process, however that ends.
    let gate = gate.killed_and_started_again();
    assert_eq!(gate.get(HOST, "/", "").status, 200);
}

#[test]
fn damaged_database_is_set_aside_and_restarts_the_first_day() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/cart/"));
    assert!(robots_txt(&gate, BINGBOT).contains("/cart/"));
    gate.restart("TERM", |gate| {
        assert_eq!(read(&gate.path("state/lock")), "", "it ended in order");
        fs::write(gate.path("state/state.db"), "no database at all").expect("written");
    });
    let names = fs::read_dir(gate.path("state"))
        .expect("there")
        .map(|entry| entry.expect("a file").file_name());
    let aside = names
        .filter(|name| name.to_string_lossy().starts_with("state.db.damaged-"))
        .count();
    assert_eq!(
        (aside, warnings(&gate)),
        (1, 1),
        "{}",
        status(&gate)["warnings"]
    );
    assert_eq!(kind(&gate, BINGBOT, "/cart/"), "unproven");
    observe(&mut gate);
    assert_eq!(
        kind(&gate, BYSTANDER, "/cart/"),
        "violation",
        "the host was observed for a day"
    );
}

#[test]
fn gap_is_logged_and_shown_until_the_first_day_ends() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/cart/"));
    let logged = |gate: &Gate| gate.log.text().contains("another first day begins");
    assert!(status(&gate)["first_day"].is_null() && !logged(&gate));
    let may_be_cached = |gate: &Gate| !status(gate)["sites"][0]["cached_until"].is_null();
    gate.write_policy("shop", &policy("/basket/"));
    assert!(gate.command(&["reload"]).status.success());
    assert!(may_be_cached(&gate));
    gate.wait_until_stored();
    for (signal, seconds) in [("KILL", 30), ("TERM", 65)] {
        gate.restart(signal, |gate| {
            gate.write_clock(seconds, 0);
        });
        assert_eq!(status(&gate)["first_day"]["id"], "first-day", "{signal}");
        assert!(!may_be_cached(&gate), "{signal}: the first day ends later");
        eventually("a line at the start", || logged(&gate).then_some(()));
        gate.live_through(25 * HOUR);
        eventually("the end", || {
            status(&gate)["first_day"].is_null().then_some(())
        });
        observe(&mut gate);
        gate.wait_until_stored();
    }
    gate.restart("TERM", |_| ());
    assert!(status(&gate)["first_day"].is_null(), "no gap");
}

#[test]
fn run_without_a_state_directory_works_from_memory() {
    let origin = Origin::plain();
    let mut gate = setup(&origin, "/cart/")
        .argument("--state")
        .argument("off")
        .start();
    assert!(!gate.path("state").exists());
    assert_eq!(kind(&gate, BINGBOT, "/cart/"), "unproven");
    observe(&mut gate);
    assert!(robots_txt(&gate, BINGBOT).contains("/cart/"));
    assert_eq!(kind(&gate, BINGBOT, "/cart/"), "violation");
    assert_eq!(
        gate.command(&["pause", "--all", "--for", "1h"])
            .status
            .code(),
        Some(0)
    );
    assert_eq!(warnings(&gate), 0);
}

/// Makes a backup of the state directory.
fn back_up(gate: &Gate, file: &str) -> Output {
    let (state, file) = (gate.path("state"), gate.path(file));
    let crawlgate = env!("CARGO_BIN_EXE_crawlgate");
    Command::new(crawlgate)
        .args(["state", "backup"])
        .arg(file)
        .arg("--state")
        .arg(state)
        .output()
        .expect("it runs")
}

#[test]
fn restored_backup_is_believed() {
    let origin = Origin::plain();
    let mut gate = observed(setup(&origin, "/cart/"));
    assert_eq!(
        gate.command(&["pause", "--all", "--for", "10h"])
            .status
            .code(),
        Some(0)
    );
    gate.wait_until_stored();
    assert!(
        fs::metadata(gate.path("state/state.db-wal")).is_ok_and(|log| log.len() > 0),
        "commits wait in the log"
    );
    let backup = back_up(&gate, "running.db");
    assert_eq!(
        backup.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&backup.stderr)
    );
    let copy = fs::read(gate.path("running.db")).expect("the backup");

    let again = back_up(&gate, "running.db");
    assert_eq!(
        (
            again.status.code(),
            fs::read(gate.path("running.db")).expect("it")
        ),
        (Some(3), copy)
    );
    assert_eq!(gate.command(&["resume"]).status.code(), Some(0));
    gate.restart("TERM", |gate| {
        assert_eq!(back_up(gate, "ended.db").status.code(), Some(0));
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = fs::remove_file(gate.path("state").join(name));
        }
        assert_eq!(back_up(gate, "missing.db").status.code(), Some(3));
        assert!(!gate.path("missing.db").exists());
        fs::copy(gate.path("running.db"), gate.path("state/state.db")).expect("restored");
    });
    assert_eq!(warnings(&gate), 0, "{}", status(&gate)["warnings"]);
    assert_eq!(
        gate.get(HOST, "/", &format!("User-Agent: {BINGBOT}\r\n"))
            .status,
        503,
        "the pause of the backup"
    );
    assert_eq!(gate.command(&["resume"]).status.code(), Some(0));
    // What was published after the backup is not known: no crawler is accused for a day.
    assert_eq!(kind(&gate, BINGBOT, "/cart/"), "unproven");
    observe(&mut gate);
    assert_eq!(kind(&gate, BYSTANDER, "/cart/"), "violation");
}
