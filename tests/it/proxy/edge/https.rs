//! crawlgate with two sites and two certificates on one listener, and one that leads there.

use crate::proxy::support::{Authority, Gate, Origin, Response, Setup, TlsConnection};
use rustls::version::{TLS12, TLS13};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Both versions of TLS.
pub const BOTH: [&rustls::SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// Listeners for https with these certificates, and for http that leads there.
pub fn listeners(directory: &Path, names: &[&str], more: &str) -> String {
    let file = |name: &str, kind: &str| {
        directory
            .join(format!("{name}.{kind}"))
            .display()
            .to_string()
    };
    let certificates: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "{{ cert: {}, key: {} }}",
                file(name, "pem"),
                file(name, "key")
            )
        })
        .collect();
    format!(
        "[{{ address: 127.0.0.1:0, tls: {{ certificates: [{}]{more} }} }}, {{ address: 127.0.0.1:0, redirect: https }}]",
        certificates.join(", ")
    )
}

/// The running crawlgate.
pub struct Https {
    pub authority: Authority,
    pub directory: tempfile::TempDir,
    pub gate: Gate,
    pub origin: Origin,
}

/// crawlgate before a plain origin; `more` is more of the `tls` of the listener.
pub fn https(more: &str) -> Https {
    let origin = Origin::plain();
    before(origin.address, more, "", origin)
}

/// The same before another address, with more settings.
pub fn before(address: SocketAddr, more: &str, settings: &str, origin: Origin) -> Https {
    let (authority, directory) = (Authority::new(), tempfile::tempdir().expect("a directory"));
    authority.certify(
        directory.path(),
        "shop",
        &["shop.example", "*.shop.example"],
        2100,
    );
    authority.certify(directory.path(), "blog", &["blog.example"], 2100);
    let gate = Setup::before(address)
        .policy("site", "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: / }] }\nenforcement: { mode: enforce }\n")
        .listeners(&listeners(directory.path(), &["shop", "blog"], more))
        .settings(settings)
        .start();
    Https {
        authority,
        directory,
        gate,
        origin,
    }
}

impl Https {
    /// A connection over HTTP/1.1.
    pub fn open(&self, host: &str) -> std::io::Result<TlsConnection> {
        TlsConnection::open(
            self.gate.address,
            host,
            &self.authority.client(&["http/1.1"], &BOTH),
        )
    }

    /// The certificate that a client of this host gets.
    pub fn certificate(&self, host: &str) -> Vec<u8> {
        self.open(host).expect("a connection").certificate()
    }

    /// A request on the listener for http.
    pub fn http(&self, method: &str, host: &str, target: &str, fields: &str) -> Response {
        let mut connection = crate::proxy::support::Connection::open(self.gate.listening[1]);
        connection.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n"
        ));
        connection.response(method)
    }

    /// The file with the certificate of the authority.
    pub fn authority_file(&self) -> PathBuf {
        let file = self.directory.path().join("authority.pem");
        fs::write(&file, self.authority.pem()).expect("written");
        file
    }

    /// What curl prints.
    pub fn curl(&self, arguments: &[&str], url: &str) -> String {
        let port = self.gate.address.port();
        let output = Command::new("curl")
            .args(["-s", "--max-time", "30", "--cacert"])
            .arg(self.authority_file())
            .args(["--connect-to", &format!("::127.0.0.1:{port}")])
            .args(arguments)
            .arg(url)
            .output()
            .expect("curl");
        said(&output)
    }
}

/// What a program printed that did well.
pub fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One request on a connection that stays open.
pub fn get(connection: &mut TlsConnection, host: &str, target: &str, agent: &str) -> String {
    connection.send(&format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n\r\n"
    ));
    connection.response()
}
