//! A real proxy with a configuration of `deploy/`, whose addresses are those of a test.

use crate::support::{Connection, PATIENCE, Response, eventually};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running proxy; killed when dropped.
pub struct Proxy {
    child: Child,
    directory: TempDir,
    /// Where it listens.
    pub address: SocketAddr,
}

/// A proxy before it is started: its address, and the files that it reads.
pub struct Prepared {
    pub directory: TempDir,
    pub address: SocketAddr,
}

impl Prepared {
    /// Writes a file into the directory of the proxy.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.path().join(name), text).expect("a file of the proxy");
    }

    pub fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }
}

/// A file of `deploy/`, with other words in the place of some. Each of them has to be there.
pub fn deployed(name: &str, words: &[(&str, String)]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name);
    let mut text = fs::read_to_string(file).expect("a file of deploy/");
    for (word, other) in words {
        assert!(text.contains(word), "deploy/{name} has no `{word}`");
        text = text.replace(word, other);
    }
    text
}

/// An address that is free at the moment.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

impl Proxy {
    /// Starts a program. No proxy reports a port that the system chose, so one is picked; another test may take it in
    /// between, and then another one is tried.
    pub fn start(prepare: impl Fn(&Prepared) -> Command) -> Proxy {
        let mut said = String::new();
        for _ in 0..10 {
            let prepared =
                Prepared { directory: tempfile::tempdir().expect("a temporary directory"), address: free_address() };
            let log = prepared.directory.path().join("proxy.log");
            let output = File::create(&log).and_then(|file| Ok((file.try_clone()?, file))).expect("a log");
            let mut child = prepare(&prepared)
                .stdin(Stdio::null())
                .stdout(Stdio::from(output.0))
                .stderr(Stdio::from(output.1))
                .spawn()
                .expect("the proxy is installed");
            let is_up = eventually("the proxy listens or ends", || {
                let is_up = TcpStream::connect(prepared.address).is_ok();
                let has_ended = child.try_wait().expect("the state of the proxy").is_some();
                (is_up || has_ended).then_some(is_up && !has_ended)
            });
            if is_up {
                return Proxy { child, address: prepared.address, directory: prepared.directory };
            }
            said = fs::read_to_string(&log).unwrap_or_default();
        }
        panic!("the proxy did not start in {PATIENCE:?}:\n{said}");
    }

    /// One request on a connection of its own.
    pub fn ask(&self, method: &str, host: &str, target: &str, headers: &str) -> Response {
        let mut connection = Connection::open(self.address);
        connection.send(&format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"));
        connection.response(method)
    }

    /// A page as a user agent gets it.
    pub fn fetch_as(&self, agent: &str, target: &str) -> Response {
        self.ask("GET", crate::support::HOST, target, &format!("User-Agent: {agent}\r\n"))
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("proxy.log")).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
