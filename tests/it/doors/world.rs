//! A door with a crawlgate of its own behind it, the same policies and the same origin.

use super::table::Row;
use crate::support::{Connection, Gate, Http2, Origin, Response, Setup, read};
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response as AxumResponse;
use crawlgate::middleware::GateLayer;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use tempfile::TempDir;

/// A way into crawlgate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Lane,
    Pingora,
    Http2,
    Tower,
    Decisions,
}

const SHOP: &str = r#"
hosts: [shop.example]
robots:
  origin: replace
  groups:
    - { agents: ["*"], disallow: [/private/, /trap/] }
    - { agents: [GPTBot], disallow: [/] }
    - { agents: [bingbot], disallow: [/private/], crawl_delay: 1h }
enforcement: { mode: enforce, traps: [/trap/] }
indexing:
  - { status: [403, 429, 503], tag: noindex }
  - { types: application/pdf, tag: noarchive }
"#;
const PAUSED: &str =
    "hosts: [paused.example]\nrobots: { origin: replace }\npause: { audience: everyone, retry_after: 30m }\n";
const NEWS: &str = r#"
hosts: [news.example]
robots:
  origin: replace
  license: https://news.example/license.xml
enforcement: { mode: enforce, purposes: { training: { unlicensed: 401 } } }
"#;
const POLICIES: [(&str, &str); 3] = [("shop", SHOP), ("paused", PAUSED), ("news", NEWS)];

/// What every origin answers: content type and body.
fn page(target: &str) -> (&'static str, &'static str) {
    if target.starts_with("/a.pdf") { ("application/pdf", "%PDF-1.4") } else { ("text/html", "hello") }
}

/// A door, and all that is behind it.
pub struct World {
    pub door: Door,
    address: SocketAddr,
    behind: Behind,
    log: PathBuf,
    _directory: TempDir,
}

enum Behind {
    Process(Box<Gate>, Origin),
    Layer(GateLayer),
}

impl World {
    pub fn open(door: Door) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        if door == Door::Tower {
            return World::tower(directory);
        }
        let challenges = directory.path().join(".well-known/acme-challenge");
        fs::create_dir_all(&challenges).expect("a directory");
        fs::write(challenges.join("token"), "token.hash").expect("written");
        let origin = Origin::start(|request, stream| {
            let (media, body) = page(request.target());
            let length = if request.target() == "/broken" { 100 } else { body.len() };
            let body = if request.line.starts_with("HEAD") { "" } else { body };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).is_ok() && length != 100
        });
        let lane = if door == Door::Pingora { "off" } else { "on" };
        let mut setup = Setup::before(origin.address).settings(&format!(
            "logs: {{ access: access.log }}\nlane: {lane}\nacme_webroot: {}\n{}",
            directory.path().display(),
            if door == Door::Decisions { "decisions: 127.0.0.1:0" } else { "" },
        ));
        for (name, policy) in POLICIES {
            setup = setup.policy(name, policy);
        }
        let gate = setup.start();
        let address = if door == Door::Decisions { gate.decisions[0] } else { gate.address };
        World {
            door,
            address,
            log: gate.path("access.log"),
            behind: Behind::Process(Box::new(gate), origin),
            _directory: directory,
        }
    }

    /// An axum application behind the layer.
    fn tower(directory: TempDir) -> World {
        let policies = directory.path().join("policies");
        fs::create_dir(&policies).expect("a directory");
        for (name, policy) in POLICIES {
            fs::write(policies.join(format!("{name}.yaml")), policy).expect("a policy");
        }
        let log = directory.path().join("access.log");
        let gate = GateLayer::builder(&policies)
            .peer(|extensions| Some(extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip()))
            .access_log(&log)
            .open()
            .expect("a gate");
        let app = Router::new().fallback(|request: Request| async move {
            let (media, body) = page(request.uri().path());
            AxumResponse::builder()
                .header("content-type", media)
                .body(axum::body::Body::from(body))
                .expect("a response")
        });
        let app = app.layer(gate.clone()).into_make_service_with_connect_info::<SocketAddr>();
        let (say, said) = channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                say.send(listener.local_addr().expect("its address")).expect("somebody waits");
                axum::serve(listener, app).await.expect("it serves");
            });
        });
        let address = said.recv().expect("an address");
        World { door: Door::Tower, address, behind: Behind::Layer(gate), log, _directory: directory }
    }

    /// The response of the door to a request.
    pub fn ask(&self, row: &Row) -> Response {
        let Row { method, host, target, fields, .. } = row;
        if row.breaks {
            return self.break_off(row);
        }
        match self.door {
            Door::Http2 => Http2::open(self.address).ask(method, host, target, fields),
            Door::Decisions if !row.is_file() => {
                let lines = format!(
                    "X-Forwarded-Method: {method}\r\nX-Forwarded-Uri: {target}\r\nX-Forwarded-Host: {host}\r\n"
                );
                self.send(
                    if *method == "HEAD" { "HEAD" } else { "GET" },
                    "service",
                    "/decide/forward-auth",
                    &lines,
                    fields,
                )
            }
            _ => self.send(method, host, target, "", fields),
        }
    }

    /// What comes of a response that breaks off.
    fn break_off(&self, Row { method, host, target, fields, .. }: &Row) -> Response {
        if self.door == Door::Http2 {
            let broken =
                Http2::open(self.address).begin(method, &format!("http://{host}{target}"), fields, None).wait();
            assert!(broken.is_err(), "the stream ends early");
            return Response { version: String::new(), status: 200, headers: Vec::new(), body: Vec::new() };
        }
        let mut connection = Connection::open(self.address);
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        connection.send(&format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"));
        let head = connection.head();
        connection.rest();
        head
    }

    fn send(&self, method: &str, host: &str, target: &str, lines: &str, fields: &[(&str, &str)]) -> Response {
        let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut connection = Connection::open(self.address);
        connection
            .send(&format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}{fields}Connection: close\r\n\r\n"));
        connection.response(method)
    }

    /// The lines of the access log.
    pub fn log(&self) -> Vec<serde_json::Value> {
        read(&self.log).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often the origin was asked for a client.
    pub fn origin_was_asked(&self) -> usize {
        match &self.behind {
            Behind::Process(_, origin) => origin.received().len(),
            Behind::Layer(_) => 0,
        }
    }

    pub fn metrics(&self) -> String {
        match &self.behind {
            Behind::Process(gate, _) => gate.metrics(),
            Behind::Layer(gate) => gate.metrics(),
        }
    }
}
