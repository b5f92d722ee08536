//! Certificates by themselves, from pebble: the test authority of Let's Encrypt's makers.

mod failures;
mod first;
mod later;
mod upgrades;

use crate::proxy::support::pebble::Pebble;
use crate::proxy::support::{BROWSER, Connection, Gate, Setup, TlsConnection, eventually};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// crawlgate with `acme`, and a listener that leads to https.
struct Site {
    gate: Gate,
}

impl Site {
    /// With a policy for each of these hosts.
    fn start(setup: Setup, hosts: &[&str]) -> Site {
        let setup = hosts.iter().fold(setup, |setup, host| {
            setup.policy(&host.replace('.', "-"), &policy(host))
        });
        Site {
            gate: setup.start(),
        }
    }

    /// A new connection over TLS, of a client that trusts the authority.
    fn open(&self, pebble: &Pebble, host: &str) -> Option<TlsConnection> {
        TlsConnection::open(self.gate.listening[0], host, &pebble.client()).ok()
    }

    /// A page over https, as soon as there is a certificate.
    fn page(&self, pebble: &Pebble, host: &str) -> String {
        let client = pebble.client();
        let open = || TlsConnection::open(self.gate.listening[0], host, &client).ok();
        let mut connection = eventually(&format!("a certificate for {host}"), open);
        get(&mut connection, host)
    }

    /// The status of a page in clear text.
    fn http(&self, host: &str) -> u16 {
        let mut connection = Connection::open(self.gate.listening[1]);
        connection.send(&format!(
            "GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ));
        connection.response("GET").status
    }

    /// `crawlgate status --json`, and its problems with certificates, as their hosts and messages.
    fn status(&self) -> (Value, Vec<String>) {
        let output = self.gate.command(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let problems = status["problems"].as_array().expect("problems").iter();
        let problems = problems.filter(|problem| problem["problem"] == "certificate");
        let text = |problem: &Value| {
            format!(
                "{} {}",
                problem["subject"].as_str().unwrap_or_default(),
                problem["message"].as_str().unwrap_or_default()
            )
        };
        let problems = problems.map(text).collect();
        (status, problems)
    }

    /// The last attempt for a host in the status, as soon as it has failed.
    fn failure(&self, host: &str) -> Value {
        eventually(&format!("a failure of {host}"), || {
            let (status, _) = self.status();
            let orders = status["orders"].as_array().expect("orders");
            let order = orders.iter().find(|order| order["host"] == host)?;
            Some(order["failed"].clone()).filter(Value::is_object)
        })
    }
}

fn policy(host: &str) -> String {
    format!("hosts: [{host}]\nrobots: {{ origin: replace }}\n")
}

/// A page on a connection that stays open.
fn get(connection: &mut TlsConnection, host: &str) -> String {
    connection.send(&format!(
        "GET /page HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {BROWSER}\r\n\r\n"
    ));
    connection.response()
}

/// Every file below a directory with its permissions.
fn modes(directory: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry"))
    {
        let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
        found.push((entry.file_name().into_string().expect("a name"), mode));
        if entry.path().is_dir() {
            found.extend(modes(&entry.path()));
        }
    }
    found
}
