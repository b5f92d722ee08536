//! The systemd unit: accepted and found tight by systemd's own checks, and its commands do what
//! they are there for.

use super::files::{path, says, settings, text};
use super::running::Running;
use crate::proxy::support::program::free_address;
use crate::proxy::support::{Origin, Setup, eventually};
use crawlgate::internals::settings::LogDestination;
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const SETTINGS: &str = "deploy/systemd/crawlgate.yaml";

/// What systemd thinks is the exposure of the unit, times ten; 96 without any restriction.
const EXPOSURE: u32 = 20;

fn unit() -> String {
    text("deploy/systemd/crawlgate.service")
}

/// The values of a key, in their order.
fn values(key: &str) -> Vec<String> {
    unit()
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .map(str::to_owned)
        .collect()
}

fn value(key: &str) -> String {
    let values = values(key);
    assert_eq!(values.len(), 1, "{key}: {values:?}");
    values[0].clone()
}

/// The unit with the program where it is here: systemd wants it to exist.
fn installed() -> (TempDir, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("crawlgate.service");
    let unit = unit().replace("/usr/local/bin/crawlgate", env!("CARGO_BIN_EXE_crawlgate"));
    fs::write(&file, unit).expect("a unit");
    let file = file.display().to_string();
    (directory, file)
}

#[test]
fn systemd_understands_every_line_of_the_unit() {
    let (_directory, file) = installed();
    let (fine, said) = says("systemd-analyze", &["verify", "--man=no", &file]);
    // What it does not know it says, and goes on.
    assert!(fine && !said.contains("crawlgate.service"), "{said}");
}

/// Every listener of the socket unit is one of the settings, so that none waits in vain.
#[test]
fn socket_unit_has_the_listeners_of_the_settings() {
    let (directory, service) = installed();
    let socket = directory.path().join("crawlgate.socket");
    let unit = text("deploy/systemd/crawlgate.socket");
    fs::write(&socket, &unit).expect("a unit");
    let (fine, said) = says(
        "systemd-analyze",
        &[
            "verify",
            "--man=no",
            &socket.display().to_string(),
            &service,
        ],
    );
    assert!(fine && !said.contains("crawlgate"), "{said}");
    let mut bound: Vec<String> = unit
        .lines()
        .filter_map(|line| line.strip_prefix("ListenStream="))
        .map(str::to_owned)
        .collect();
    let mut wanted: Vec<String> = settings(SETTINGS)
        .listen
        .iter()
        .map(|listener| listener.address.to_string())
        .collect();
    bound.sort();
    wanted.sort();
    assert_eq!(bound, wanted);
    assert!(text("docs/deploy.md").contains(
        "install -m 0644 deploy/systemd/crawlgate.socket /etc/systemd/system/crawlgate.socket"
    ));
}

/// What follows a word at the beginning of a line of the logrotate file.
fn rotated(word: &str) -> Option<String> {
    let file = text("deploy/logrotate/crawlgate");
    file.lines()
        .find_map(|line| Some(line.trim().strip_prefix(word)?.trim().to_owned()))
}

#[test]
fn logrotate_finds_the_logs_of_the_unit_and_signals_it() {
    let logs = format!("/var/log/{}", value("LogsDirectory"));
    assert_eq!(rotated(&logs).as_deref(), Some("/*.log {"));
    let LogDestination::File(access) = settings(SETTINGS).logs.access else {
        panic!("the access log is no file")
    };
    assert!(
        access.parent() == Some(Path::new(&logs))
            && access.extension().is_some_and(|end| end == "log")
    );
    // `--kill-whom` is not known to systemd 249. Without either, `crawlgate reload` of the unit would get the signal, too.
    assert_eq!(
        rotated("systemctl").as_deref(),
        Some("kill --kill-who=main -s HUP crawlgate")
    );
    // The old file may be written until the signal was handled; copytruncate would lose lines.
    assert!(rotated("delaycompress").is_some() && rotated("copytruncate").is_none());
    let manual = text("docs/settings.md") + &text("docs/deploy.md");
    assert!(
        manual.contains("install -m 0644 deploy/logrotate/crawlgate /etc/logrotate.d/crawlgate")
    );
}

#[test]
fn documentation_named_by_the_unit_is_installed() {
    let page = value("Documentation")
        .strip_prefix("file:")
        .expect("a file")
        .to_owned();
    let page = Path::new(&page);
    let directory = page.parent().expect("its directory").display();
    let commands = text("docs/deploy.md");
    assert!(
        commands
            .lines()
            .any(|line| line == format!("install -m 0644 docs/*.md {directory}/")),
        "{directory}"
    );
    assert!(
        path("docs")
            .join(page.file_name().expect("a name"))
            .is_file(),
        "{}",
        page.display()
    );
}

#[test]
fn systemd_finds_the_service_well_shut_in() {
    let (_directory, file) = installed();
    let threshold = format!("--threshold={EXPOSURE}");
    let (fine, said) = says(
        "systemd-analyze",
        &[
            "security",
            "--offline=true",
            "--no-pager",
            &threshold,
            &file,
        ],
    );
    assert!(fine, "{said}");
    for (key, wanted) in [
        ("CapabilityBoundingSet", "CAP_NET_BIND_SERVICE"),
        ("ProtectSystem", "strict"),
        ("NoNewPrivileges", "yes"),
        ("MemoryDenyWriteExecute", "yes"),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
        ("User", "crawlgate"),
    ] {
        assert_eq!(value(key), wanted);
    }
}

#[test]
fn sysusers_makes_the_user_of_the_unit() {
    let file = path("deploy/systemd/crawlgate.sysusers.conf");
    let (fine, said) = says(
        "systemd-sysusers",
        &["--dry-run", file.to_str().expect("UTF-8")],
    );
    assert!(fine, "{said}");
    let named = text("deploy/systemd/crawlgate.sysusers.conf")
        .lines()
        .any(|line| line.starts_with("u crawlgate "));
    assert!(named && value("User") == "crawlgate" && value("Group") == "crawlgate");
    assert!(
        text("docs/deploy.md")
            .contains("deploy/systemd/crawlgate.sysusers.conf /etc/sysusers.d/crawlgate.conf\n")
    );
}

/// Under the umask of the unit, the group may read the logs, rotated or not, and nothing else.
#[test]
fn log_shippers_of_the_group_can_read_the_logs_and_no_more() {
    assert_eq!(
        (
            value("LogsDirectoryMode").as_str(),
            value("StateDirectoryMode").as_str()
        ),
        ("0750", "0700")
    );
    let shell = format!("umask {}; exec \"$@\"", value("UMask"));
    let origin = Origin::plain();
    let setup =
        Setup::before(origin.address).settings("logs: { access: access.log, events: events.log }");
    let gate = setup.under(&["sh", "-c", &shell, "sh"]).start();
    let mode = |name: &str| {
        eventually(name, || fs::metadata(gate.path(name)).ok())
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(["access.log", "events.log"].map(&mode), [0o640, 0o640]);
    fs::rename(gate.path("access.log"), gate.path("access.log.1")).expect("rotated");
    gate.signal("HUP");
    assert_eq!(["access.log.1", "access.log"].map(&mode), [0o640, 0o640]);
    assert_eq!(["control.sock", "state"].map(&mode), [0o600, 0o700]);
}

#[test]
fn everything_is_where_the_unit_lets_it_be() {
    let settings = settings(SETTINGS);
    for (key, directory) in [
        ("StateDirectory", "/var/lib"),
        ("RuntimeDirectory", "/run"),
        ("LogsDirectory", "/var/log"),
    ] {
        assert_eq!(value(key), "crawlgate", "{directory}");
    }
    // Not named, so that they are where systemd says ($STATE_DIRECTORY, $RUNTIME_DIRECTORY).
    assert!(
        settings.state.is_none() && settings.control.is_none(),
        "{settings:?}"
    );
    let crawlgate::internals::settings::LogDestination::File(log) = &settings.logs.access else {
        panic!("no log")
    };
    assert!(log.starts_with("/var/log/crawlgate"), "{}", log.display());
    // Relative to where the file is: the directory that ExecStartPre checks.
    let policies = Path::new("/etc/crawlgate").join(&settings.policies);
    assert_eq!(
        value("ExecStartPre"),
        format!(
            "-/usr/local/bin/crawlgate check --quiet {}",
            policies.display()
        )
    );
    assert_eq!(
        value("ExecStart"),
        "/usr/local/bin/crawlgate run --config /etc/crawlgate/crawlgate.yaml"
    );
    let seconds = value("TimeoutStopSec")
        .trim_end_matches('s')
        .parse()
        .expect("seconds");
    // Two seconds for the logs.
    assert!(Duration::from_secs(seconds) > settings.limits.drain + Duration::from_secs(2));
    assert_eq!(value("KillSignal"), "SIGTERM");
    assert_eq!(
        (value("Type").as_str(), value("NotifyAccess").as_str()),
        ("notify", "main")
    );
}

/// With systemd's default limit, a port that is busy for some seconds would end the attempts.
#[test]
fn a_start_that_fails_is_tried_again_without_end() {
    assert_eq!(value("Restart"), "on-failure");
    assert_eq!(value("StartLimitIntervalSec"), "0");
}

/// `[::]` has IPv4, too: beside `0.0.0.0` with the same port one of them could not be bound.
#[test]
fn the_listeners_of_the_service_leave_each_other_room() {
    let mut ports = BTreeMap::new();
    let mut bound = Vec::new();
    for listener in &settings(SETTINGS).listen {
        let mut address = listener.address;
        let port = *ports
            .entry(address.port())
            .or_insert_with(|| free_address().port());
        address.set_port(port);
        bound.push(
            TcpListener::bind(address)
                .unwrap_or_else(|error| panic!("{}: {error}", listener.address)),
        );
    }
    assert!(!bound.is_empty());
}

#[test]
fn service_reload_fails_on_a_broken_policy() {
    let policies = tempfile::tempdir().expect("a directory");
    let file = policies.path().join("site.yaml");
    fs::copy(path("deploy/compose/policies/site.yaml"), &file).expect("a policy");
    let running = Running::start(SETTINGS, policies.path());
    let reload = value("ExecReload").replace(
        "/run/crawlgate/control.sock",
        &running.control().display().to_string(),
    );
    let reload: Vec<&str> = reload.split_whitespace().collect();
    assert_eq!(running.command(&reload).status.code(), Some(0));
    fs::write(&file, "hots: [shop.example]\n").expect("a policy");
    let refused = running.command(&reload);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&refused.stdout).contains("hots"),
        "it says why"
    );
}
