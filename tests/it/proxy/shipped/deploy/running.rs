//! The real binary with a settings file as it is shipped: only addresses and directories are
//! others.

use super::files::{below, path, settings, text};
use crate::proxy::support::{Connection, Origin, PATIENCE, Response};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use tempfile::TempDir;

/// Settings files, each with the policies that go with it.
pub const SHIPPED: &[(&str, &str)] = &[
    ("deploy/compose/crawlgate.yaml", "deploy/compose/policies"),
    (
        "deploy/kubernetes/crawlgate.yaml",
        "deploy/kubernetes/policies",
    ),
    // The package of the service has no policies; any will do.
    ("deploy/systemd/crawlgate.yaml", "deploy/compose/policies"),
];

/// A running crawlgate; killed when dropped.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub directory: TempDir,
    _origin: Origin,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub fn start(settings: &str, policies: &Path) -> Running {
        Running::with(settings, policies, &[])
    }

    /// With other words in the place of some.
    pub fn with(settings: &str, policies: &Path, words: &[(&str, &str)]) -> Running {
        let origin = Origin::plain();
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("crawlgate.yaml");
        let logs = directory.path().display().to_string();
        let mut said = text(settings).replace("/var/log/crawlgate", &logs);
        for (word, other) in words {
            said = said.replace(word, other);
        }
        fs::write(&file, said).expect("the settings file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(["run", "--config"])
            .arg(&file)
            .args([
                "--listen",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
                "--access-log",
                "-",
            ])
            .args(["--origin", &format!("http://{}", origin.address)])
            .arg("--policies")
            .arg(policies)
            .arg("--control")
            .arg(directory.path().join("control.sock"))
            .arg("--state")
            .arg(directory.path().join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the crawlgate binary");
        let (sender, lines) = channel();
        let stdout = child.stdout.take().expect("stdout is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut address = |prefix: &str| -> SocketAddr {
            let Ok(line) = lines.recv_timeout(PATIENCE) else {
                let _ = child.kill();
                panic!("{settings} does not start a server");
            };
            line.strip_prefix(prefix)
                .and_then(|address| address.parse().ok())
                .unwrap_or_else(|| panic!("{line}"))
        };
        let (address, admin) = (address("listening on http://"), address("admin on http://"));
        Running {
            child,
            address,
            admin,
            directory,
            _origin: origin,
        }
    }

    pub fn control(&self) -> PathBuf {
        self.directory.path().join("control.sock")
    }

    /// Runs a command of a shipped file, which begins with the path of the program there. Only this
    /// server is found.
    pub fn command(&self, words: &[&str]) -> Output {
        assert_eq!(words[0], "/usr/local/bin/crawlgate");
        Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(&words[1..])
            .env_clear()
            .env("RUNTIME_DIRECTORY", self.directory.path())
            .env("STATE_DIRECTORY", self.directory.path())
            .output()
            .expect("the crawlgate binary")
    }
}

/// GET with this Host, or another.
pub fn get(address: SocketAddr, host: &str, target: &str, more: &str) -> Response {
    let mut connection = Connection::open(address);
    connection.send(&format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n"
    ));
    connection.response("GET")
}

#[test]
fn shipped_settings_start_and_policies_pass_tests() {
    let mut files = below("deploy");
    files.retain(|name| name.ends_with("/crawlgate.yaml") || name.contains("/policies/"));
    // These need a store: instances.rs starts them.
    files.retain(|name| !name.contains("instances/"));
    for (name, policies) in SHIPPED {
        files.retain(|file| file != name && !file.starts_with(&format!("{policies}/")));
        let running = Running::start(name, &path(policies));
        let robots_txt = get(running.address, "any.example", "/robots.txt", "");
        assert_eq!(robots_txt.status, 200, "{name}");
        assert!(
            robots_txt.text().contains("User-agent: GPTBot"),
            "{name}: {}",
            robots_txt.text()
        );
        assert_eq!(
            get(running.address, "any.example", "/", "").status,
            200,
            "{name}"
        );
        let checked = running.command(&[
            "/usr/local/bin/crawlgate",
            "check",
            "--deny-warnings",
            policies,
        ]);
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stdout)
        );
        assert!(!settings(name).limits.drain.is_zero());
    }
    assert!(files.is_empty(), "nobody starts a server with {files:?}");
}
