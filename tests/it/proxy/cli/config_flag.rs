//! `--config` on the commands for a running crawlgate: they find its control socket and its state
//! directory by the settings file. And what other flags refuse.

use crate::proxy::support::{Gate, Origin, Setup, run};
use std::fs;
use std::process::Command;

/// A gate, with a second settings file `near.yaml` whose paths are relative.
fn gate_with_relative_paths() -> Gate {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy(
            "shop",
            "hosts: shop.example\nrobots: { origin: replace, groups: [{ agents: GPTBot, disallow: / }] }\n",
        )
        .settings("evidence: on")
        .start();
    write_settings(&gate, "near.yaml", "control: control.sock\nstate: state\n");
    gate
}

fn write_settings(gate: &Gate, name: &str, paths: &str) {
    let text = format!("origins: http://127.0.0.1:1\npolicies: policies\n{paths}");
    fs::write(gate.path(name), text).expect("a settings file");
}

/// The exit code of a command with `--config NAME`.
fn exit_code(gate: &Gate, command: &str, name: &str) -> Option<i32> {
    let config = gate.path(name).display().to_string();
    let words: Vec<&str> = command.split(' ').chain(["--config", &config]).collect();
    let output = run(&words);
    assert!(
        !output.stdout.is_empty() || !output.stderr.is_empty(),
        "{command}"
    );
    output.status.code()
}

#[test]
fn settings_file_leads_each_command_to_the_running_gate() {
    let gate = gate_with_relative_paths();
    let backup = format!("state backup {}", gate.path("copy.db").display());
    let export = format!("export nginx --output {}", gate.path("nginx").display());
    for (command, expected) in [
        ("status --alive", 0),
        ("reload", 0),
        ("pause --for 10m", 0),
        ("resume", 0),
        ("traps", 0),
        ("report --json", 0),
        ("report --crawler gtpbot", 2),
        (
            "explain --live --host shop.example --user-agent GPTBot /",
            0,
        ),
        ("explain --host shop.example --user-agent GPTBot /", 0),
        ("evidence status", 0),
        ("render --host shop.example", 0),
        (&export, 0),
        (&backup, 0),
        // The gate refuses these two: it has no store, and its settings allow no requests.
        ("instances", 1),
        ("crawlers --update", 1),
    ] {
        assert_eq!(
            exit_code(&gate, command, "near.yaml"),
            Some(expected),
            "{command}"
        );
    }
    assert!(gate.path("copy.db").is_file());
}

#[test]
fn check_warns_of_settings_that_show_less() {
    let gate = gate_with_relative_paths();
    let settings =
        "state: state\nevidence: on\ntrusted_proxies: [10.0.0.0/8]\nadmin: 0.0.0.0:9190\n";
    write_settings(&gate, "unproven.yaml", settings);
    let text = fs::read_to_string(gate.path("unproven.yaml")).expect("settings");
    let other_host = "origins: { hosts: blog.example, servers: http://127.0.0.1:1 }";
    fs::write(
        gate.path("unproven.yaml"),
        text.replace("origins: http://127.0.0.1:1", other_host),
    )
    .expect("a settings file");
    let config = gate.path("unproven.yaml").display().to_string();
    let output = run(&["check", "--json", "--config", &config]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings").iter();
    let ids: Vec<_> = findings
        .filter_map(|finding| finding["id"].as_str())
        .collect();
    for id in [
        "admin-open",
        "evidence-unproven",
        "cache-unknown",
        "host-without-origin",
    ] {
        assert!(ids.contains(&id), "{id}: {ids:?}");
    }
    let of_evidence = ids.iter().filter(|id| **id == "evidence-unproven");
    assert_eq!(of_evidence.count(), 2, "one for times, one for clients");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn report_reads_the_state_of_the_settings_without_a_gate() {
    let mut gate = gate_with_relative_paths();
    gate.signal("TERM");
    gate.ended();
    assert_eq!(exit_code(&gate, "report --json", "near.yaml"), Some(0));
    assert_eq!(exit_code(&gate, "status", "near.yaml"), Some(3));
}

#[test]
fn settings_file_in_the_directory_is_named_if_no_gate_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    for has_settings in [false, true] {
        if has_settings {
            let settings = directory.path().join("crawlgate.yaml");
            fs::write(settings, "origins: http://127.0.0.1:1\n").expect("a settings file");
        }
        for command in [
            "status",
            "reload",
            "resume",
            "report",
            "evidence status",
            "explain --live --host shop.example --user-agent GPTBot /",
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
                .args(command.split(' '))
                .current_dir(directory.path())
                .env_remove("XDG_RUNTIME_DIR")
                .env("RUNTIME_DIRECTORY", &missing)
                .env("STATE_DIRECTORY", &missing)
                .output()
                .expect("the crawlgate binary");
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{command}: {message}");
            let is_named = message.contains("--config crawlgate.yaml");
            assert_eq!(is_named, has_settings, "{command}: {message}");
        }
    }
}

#[test]
fn flag_overrides_the_settings_file() {
    let gate = gate_with_relative_paths();
    let nowhere = format!("status --control {}", gate.path("nowhere.sock").display());
    assert_eq!(exit_code(&gate, &nowhere, "near.yaml"), Some(3));
    write_settings(&gate, "far.yaml", "control: off\nstate: off\n");
    assert_eq!(exit_code(&gate, "status", "far.yaml"), Some(2));
    assert_eq!(exit_code(&gate, "evidence status", "far.yaml"), Some(2));
    let control = format!("status --alive --control {}", gate.control().display());
    assert_eq!(exit_code(&gate, &control, "far.yaml"), Some(0));
}

#[test]
fn broken_settings_file_names_the_socket_all_the_same() {
    let gate = gate_with_relative_paths();
    write_settings(&gate, "broken.yaml", "control: control.sock\nstat: state\n");
    assert_eq!(exit_code(&gate, "status --alive", "broken.yaml"), Some(0));
    assert_eq!(exit_code(&gate, "evidence status", "broken.yaml"), Some(1));
    assert_eq!(exit_code(&gate, "status --alive", "missing.yaml"), Some(3));
    let broken = gate.path("broken.yaml").display().to_string();
    let reload = run(&["reload", "--config", &broken]);
    let message = String::from_utf8_lossy(&reload.stderr);
    assert_eq!(reload.status.code(), Some(0), "{message}");
    assert_eq!(
        message.matches("only its control socket").count(),
        1,
        "{message}"
    );
    // The mistakes are left to "check": the process that upgrade starts prints them, too.
    assert!(
        message.contains("crawlgate check --config") && !message.contains("\"stat\""),
        "{message}"
    );
    let upgrade = run(&["upgrade", "--config", &broken]);
    let message = String::from_utf8_lossy(&upgrade.stderr);
    assert_eq!(upgrade.status.code(), Some(1), "{message}");
    assert!(message.contains("nothing was upgraded"), "{message}");
    // A default socket may be that of another crawlgate.
    for (text, code) in [
        ("control: [a, b]\n", 1),
        ("control: control.sock\norigins: [\n", 1),
        ("controll: control.sock\n", 1),
        ("control_socket: control.sock\n", 1),
        ("stat: state\n", 0),
    ] {
        write_settings(&gate, "unknown.yaml", text);
        let file = gate.path("unknown.yaml");
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(["status", "--alive", "--config"])
            .arg(file)
            .env("RUNTIME_DIRECTORY", gate.path(""))
            .output()
            .expect("the crawlgate binary");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}: {message}");
        assert!(message.contains("--control PATH"), "{message}");
    }
    // Whoever may use the socket need not be allowed to read the keys.
    let tls = "control: control.sock\nlisten: { address: 127.0.0.1:0, tls: { certificates: [{ cert: a, key: b }] } }\n";
    write_settings(&gate, "tls.yaml", tls);
    assert_eq!(exit_code(&gate, "status --alive", "tls.yaml"), Some(0));
}

#[test]
fn flags_without_unit_host_or_file_are_wrong_usage() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().display().to_string();
    for (arguments, word) in [
        (vec!["pause", "--for", "10"], "10m"),
        (vec!["pause", "--retry-after", "90"], "10m"),
        (vec!["report", "--since", "7"], "10h"),
        (vec!["report", "--since", "-1d"], "14d"),
        (vec!["audit", "--since", "-1d", "access.log"], "14d"),
        (
            vec!["report", "--since", "2026-11-02", "--until", "2026-11-02"],
            "2026-11-02T00:00:00Z",
        ),
        (
            vec!["audit", "--since", "1d", "--until", "2d", "access.log"],
            "--until",
        ),
        (vec!["run", "--listen", "8080"], "0.0.0.0:8080"),
        (vec!["run", "--admin", ":9190"], "0.0.0.0:9190"),
        (vec!["demo", "--listen", "8080"], "0.0.0.0:8080"),
        (vec!["run", "--state", ""], "off"),
        (vec!["check", "--sitemap", &root, "policies"], &root),
    ] {
        let output = run(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(word), "{arguments:?}: {message}");
    }
}

#[test]
fn messages_have_no_numbers_of_system_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("robots.txt"), "User-agent: *\nDisallow: /cart/\n").expect("a file");
    fs::write(path("shop.yaml"), "").expect("a file");
    for arguments in [
        vec!["check", &path("missing")],
        vec![
            "import",
            &path("robots.txt"),
            "--host",
            "a.example",
            "-o",
            &path("shop.yaml"),
        ],
        vec![
            "audit",
            "--robots",
            &path("robots.txt"),
            &path("missing.log"),
        ],
        vec!["status", "--control", &path("missing.sock")],
        vec!["report", "--state", &path("missing")],
        vec!["run", "--config", &path("missing.yaml")],
    ] {
        let output = run(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {message}");
        assert!(!message.contains("os error"), "{arguments:?}: {message}");
    }
}
