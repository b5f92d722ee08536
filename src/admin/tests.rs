use super::control::{ControlError, ControlSocket, Request, Response, call};
use super::*;
use crate::crawlers::Registry;
use crate::live::{Live, LiveOptions, Outcome, PauseRequest};
use crate::telemetry::{AccessLog, Metrics};
use crate::time::Timestamp;
use ::http::Method;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn operations(directory: &std::path::Path) -> Arc<Operations> {
    std::fs::write(directory.join("shop.yaml"), "robots: { origin: replace }\n").expect("a policy");
    let options = LiveOptions { policies: directory.to_owned(), state: None, strict: false };
    let live = Live::start(options, Registry::builtin(), Timestamp(1_000)).expect("loaded");
    Operations::new(live, Metrics::new())
}

#[test]
fn the_admin_listener_reads_and_answers_only_local_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = operations(directory.path());
    let app = AdminApp::new(operations.clone(), AccessLog::off());
    let get = |host: &str, path: &str| app.answer(&Method::GET, Some(host), path).status().as_u16();
    assert_eq!(get("127.0.0.1:9090", "/healthz"), 200);
    assert_eq!(get("[::1]:9090", "/metrics"), 200);
    assert_eq!(get("localhost", "/api/status"), 200);
    assert_eq!(get("crawlgate:9090", "/metrics"), 200);
    assert_eq!(get("attacker.example", "/metrics"), 421);
    assert_eq!(app.answer(&Method::GET, None, "/metrics").status().as_u16(), 421);
    assert_eq!(get("localhost", "/elsewhere"), 404);
    assert_eq!(app.answer(&Method::POST, Some("localhost"), "/api/status").status().as_u16(), 405);
    assert_eq!(get("localhost", "/readyz"), 503);
    operations.set_ready(true);
    assert_eq!(get("localhost", "/readyz"), 200);
}

#[test]
fn the_control_socket_serves_its_owner_and_nobody_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = operations(directory.path());
    let path = directory.path().join("run/control.sock");
    assert!(matches!(call(&path, &Request::Status), Err(ControlError::NotRunning { .. })));
    let socket = Arc::new(ControlSocket::bind(&path).expect("bound"));
    socket.clone().serve(operations).expect("served");
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(ControlSocket::bind(&path), Err(ControlError::AlreadyRunning(_))));

    let Ok(Response::Status(status)) = call(&path, &Request::Status) else { panic!("a status") };
    assert_eq!(status.sites[0].site, "shop");
    std::fs::write(directory.path().join("shop.yaml"), "robots: {}\n").expect("a policy");
    let Ok(Response::Reloaded(report)) = call(&path, &Request::Reload) else { panic!("a report") };
    assert_eq!(report.sites[0].outcome, Outcome::Kept);
    assert!(report.sites[0].findings[0].contains("shop.yaml:1:9: error[robots-origin]"), "{report:?}");
    let pause = PauseRequest { site: Some("shop".into()), ..PauseRequest::default() };
    assert!(matches!(call(&path, &Request::Pause(pause)), Ok(Response::Paused { .. })));
    let resumed = call(&path, &Request::Resume { site: None }).expect("answered");
    assert_eq!(resumed, Response::Resumed { sites: vec!["shop".into()] });
    let nowhere = PauseRequest { site: Some("nowhere".into()), ..PauseRequest::default() };
    assert!(matches!(call(&path, &Request::Pause(nowhere)), Ok(Response::Refused { .. })));

    let mut stream = UnixStream::connect(&path).expect("connected");
    stream.write_all(b"nonsense\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.contains("this is no request"), "{answer}");
}

#[test]
fn a_socket_left_behind_is_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("control.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
    assert!(path.exists(), "nobody listens behind it any more");
    ControlSocket::bind(&path).expect("bound again");
}
