//! An entry point with a crawlgate of its own behind it, the same policies and the same origin.

use super::table::{Row, Side};
use crate::proxy::support::http2::{HEADERS, PREFACE, SETTINGS, literal};
use crate::proxy::support::{Connection, Gate, Http2, Origin, Response, Setup, read};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request};
use axum::response::Response as AxumResponse;
use bytes::Bytes;
use crawlgate::middleware::GateLayer;
use http_body::Frame;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll};
use tempfile::TempDir;

/// A way into crawlgate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPoint {
    Forwarder,
    /// Pingora, because `direct_forwarding` is off.
    Pingora,
    /// Pingora, because the policies have `html`.
    Html,
    /// Pingora, because of the version.
    Http10,
    /// Pingora, because each request asks for a WebSocket. The origin takes none.
    WebSocket,
    Http2,
    Tower,
    Decisions,
}

const SHOP: &str = r#"
hosts: [shop.example]
robots:
  origin: replace
  previous: before.txt
  groups:
    - { agents: ["*"], disallow: [/private/, /trap/] }
    - { agents: [GPTBot], disallow: [/] }
    - { agents: [Firefox, Gecko, Linux, X11, Mozilla], disallow: [/] }
    - { agents: [bingbot], disallow: [/private/], crawl_delay: 1h }
enforcement: { mode: enforce, traps: [/trap/], purposes: { other: enforce } }
indexing:
  - { status: [403, 429, 503], tag: noindex }
  - { types: application/pdf, tag: noarchive }
"#;
/// The robots.txt of the shop from before: it has the same rules, so that each violation and each
/// trap counts at once.
const BEFORE: &str = "User-agent: GPTBot\nDisallow: /\n\nUser-agent: bingbot\nDisallow: /private/\nDisallow: /trap/\n\
                      Crawl-delay: 3600\n\nUser-agent: *\nDisallow: /private/\nDisallow: /trap/\n";
const PAUSED: &str = "hosts: [paused.example]\nrobots: { origin: replace }\npause: { audience: everyone, retry_after: 30m }\n";
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
    if target.starts_with("/a.pdf") {
        ("application/pdf", "%PDF-1.4")
    } else {
        ("text/html", "hello")
    }
}

/// The head of a GET over HTTP/2 begins with its method and its scheme (RFC 7541 appendix A).
pub const GET_OVER_HTTP: &[u8] = b"\x82\x86";

/// The body of an application that fails in the middle.
struct Broken(Option<&'static str>);

impl HttpBody for Broken {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let next = self
            .0
            .take()
            .map(|text| Frame::data(Bytes::from_static(text.as_bytes())));
        Poll::Ready(Some(next.ok_or("broken")))
    }
}

/// An entry point, and all that is behind it.
pub struct World {
    pub entry_point: EntryPoint,
    address: SocketAddr,
    behind: Behind,
    log: PathBuf,
    _directory: TempDir,
}

enum Behind {
    Process(Box<Gate>, Origin),
    Layer(GateLayer),
}

/// A proxy names its client, or the client is not known.
const OF_A_CLIENT: &str = "X-Forwarded-For: 198.51.100.1\r\n";
/// A stream ends early (RFC 9113 section 6.4).
pub const RST_STREAM: u8 = 3;
/// Bytes of a response that no client reads to its end.
const LARGE: usize = 32 << 20;

impl World {
    pub fn open(entry_point: EntryPoint) -> World {
        World::open_on(entry_point, "127.0.0.1:0")
    }

    /// Behind a listener that leads to https.
    pub fn leading_to_https(entry_point: EntryPoint) -> World {
        World::open_on(entry_point, "{ address: 127.0.0.1:0, redirect: https }")
    }

    fn open_on(entry_point: EntryPoint, listener: &str) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        if entry_point == EntryPoint::Tower {
            return World::tower(directory);
        }
        let challenges = directory.path().join(".well-known/acme-challenge");
        fs::create_dir_all(&challenges).expect("a directory");
        fs::write(challenges.join("token"), "token.hash").expect("written");
        let origin = Origin::start(|request, stream| {
            let (media, body) = page(request.target());
            let length = match request.target() {
                "/broken" => 100,
                "/large" => LARGE,
                _ => body.len(),
            };
            let body = if request.line.starts_with("HEAD") {
                ""
            } else {
                body
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n"
            );
            let is_written = stream
                .write_all(&[head.as_bytes(), body.as_bytes()].concat())
                .is_ok();
            if length == LARGE {
                return stream.write_all(&vec![b'x'; LARGE - body.len()]).is_ok();
            }
            is_written && length != 100
        });
        let direct = if entry_point == EntryPoint::Pingora {
            "off"
        } else {
            "on"
        };
        let mut setup = Setup::before(origin.address)
            .listeners(listener)
            .settings(&format!(
                "logs: {{ access: access.log }}\ndirect_forwarding: {direct}\nacme_webroot: {}\n{}",
                directory.path().display(),
                if entry_point == EntryPoint::Decisions {
                    "decisions: 127.0.0.1:0"
                } else {
                    ""
                },
            ));
        let more = if entry_point == EntryPoint::Html {
            "html: { meta: yes }\n"
        } else {
            ""
        };
        for (name, policy) in POLICIES {
            setup = setup.policy(name, &format!("{policy}{more}"));
        }
        fs::write(setup.policies().join("before.txt"), BEFORE).expect("the file from before");
        let gate = setup.start();
        let address = if entry_point == EntryPoint::Decisions {
            gate.decisions[0]
        } else {
            gate.address
        };
        World {
            entry_point,
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
        fs::write(policies.join("before.txt"), BEFORE).expect("the file from before");
        let log = directory.path().join("access.log");
        let gate = GateLayer::builder(&policies)
            .state(directory.path().join("state"))
            .peer(|extensions| Some(extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip()))
            .access_log(&log)
            .open()
            .expect("a gate");
        let app = Router::new().fallback(|request: Request| async move {
            let (media, body) = page(request.uri().path());
            let response = AxumResponse::builder().header("content-type", media);
            let response = match request.uri().path() {
                "/broken" => response
                    .header("content-length", 100)
                    .body(Body::new(Broken(Some(body)))),
                "/large" => response.body(Body::from(vec![b'x'; LARGE])),
                _ => response.body(Body::from(body)),
            };
            response.expect("a response")
        });
        let app = app
            .layer(gate.clone())
            .into_make_service_with_connect_info::<SocketAddr>();
        let (say, said) = channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
                    .await
                    .expect("a free port");
                say.send(listener.local_addr().expect("its address"))
                    .expect("somebody waits");
                axum::serve(listener, app).await.expect("it serves");
            });
        });
        let address = said.recv().expect("an address");
        World {
            entry_point: EntryPoint::Tower,
            address,
            behind: Behind::Layer(gate),
            log,
            _directory: directory,
        }
    }

    /// The response of the entry point to a request.
    pub fn ask(&self, row: &Row) -> Response {
        let Row {
            method,
            host,
            target,
            fields,
            ..
        } = row;
        if let Some(side) = row.broken_by {
            self.break_off(row, side);
            return Response {
                version: String::new(),
                status: row.status,
                headers: Vec::new(),
                body: Vec::new(),
            };
        }
        match self.entry_point {
            EntryPoint::Http2 => {
                // Clients send a cookie in pieces (RFC 9113 section 8.2.3).
                let pieces = |(name, value): &(&'static str, &'static str)| {
                    let separator = if *name == "cookie" { "; " } else { "\0" };
                    value
                        .split(separator)
                        .map(|piece| (*name, piece))
                        .collect::<Vec<_>>()
                };
                let fields: Vec<_> = fields.iter().flat_map(pieces).collect();
                Http2::open(self.address).ask(method, host, target, &fields)
            }
            EntryPoint::Decisions if !row.is_file() => {
                let lines = format!(
                    "{OF_A_CLIENT}X-Forwarded-Method: {method}\r\nX-Forwarded-Uri: {target}\r\nX-Forwarded-Host: {host}\r\n"
                );
                self.send(
                    if *method == "HEAD" { "HEAD" } else { "GET" },
                    "service",
                    "/decide/forward-auth",
                    &lines,
                    fields,
                )
            }
            EntryPoint::Decisions => self.send(method, host, target, OF_A_CLIENT, fields),
            _ => self.send(method, host, target, "", fields),
        }
    }

    /// Asks for a response that breaks off.
    fn break_off(
        &self,
        Row {
            method,
            host,
            target,
            fields,
            ..
        }: &Row,
        side: Side,
    ) {
        let mut connection = Connection::open(self.address);
        if self.entry_point == EntryPoint::Http2 {
            connection.send_bytes(PREFACE);
            connection.send_bytes(&SETTINGS);
            let named = [(":path", target.as_str()), (":authority", host)];
            let lines = named
                .iter()
                .chain(fields)
                .flat_map(|(name, value)| literal(name, value));
            connection.send_headers(
                1,
                &GET_OVER_HTTP
                    .iter()
                    .copied()
                    .chain(lines)
                    .collect::<Vec<u8>>(),
            );
            connection.frame(HEADERS);
            if side == Side::Origin {
                connection.frame(RST_STREAM);
            }
            return;
        }
        let lines: String = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let (version, own) = self.version();
        connection.send(&format!(
            "{method} {target} HTTP/{version}\r\nHost: {host}\r\n{lines}{own}\r\n"
        ));
        match side {
            Side::Client => drop(connection.head()),
            Side::Origin => connection.rest(),
        }
    }

    fn send(
        &self,
        method: &str,
        host: &str,
        target: &str,
        lines: &str,
        fields: &[(&str, &str)],
    ) -> Response {
        let fields: String = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let mut connection = Connection::open(self.address);
        let (version, own) = self.version();
        connection.send(&format!(
            "{method} {target} HTTP/{version}\r\nHost: {host}\r\n{lines}{fields}{own}\r\n"
        ));
        connection.response(method)
    }

    /// The version that the entry point is for, and the fields that lead to it.
    fn version(&self) -> (&'static str, &'static str) {
        match self.entry_point {
            EntryPoint::Http10 => ("1.0", ""),
            EntryPoint::WebSocket => ("1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
            _ => ("1.1", "Connection: close\r\n"),
        }
    }

    /// The target of the last request that the origin got.
    pub fn target_at_origin(&self) -> String {
        match &self.behind {
            Behind::Process(_, origin) => origin
                .received()
                .last()
                .expect("a request")
                .target()
                .to_owned(),
            Behind::Layer(_) => String::new(),
        }
    }

    /// The lines of the access log.
    pub fn log(&self) -> Vec<serde_json::Value> {
        read(&self.log)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
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
