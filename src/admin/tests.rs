//! Tests of the admin listener and the control socket: who may use them, and what they answer.

use super::control::{
    ControlError, ControlRequest, ControlRequestHandler, ControlResponse, ControlSocket,
    send_request,
};
use super::query::QueryMistake;
use super::*;
use crate::crawlers::Registry;
use crate::judge::RequestLogs;
use crate::ledger::Ledger;
use crate::requests::{RequestPipeline, RequestSettings};
use crate::sites::{PauseRequest, ReloadOutcome, SiteLoadOptions, SiteManager};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::upkeep::{Instance, InstanceUpkeep};
use crate::upstreams::Upstreams;
use ::http::Method;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn test_operations(directory: &std::path::Path) -> Arc<Operations> {
    std::fs::write(directory.join("shop.yaml"), "robots: { origin: replace }\n").expect("a policy");
    let (store, remembered) = StateStore::in_memory_only();
    let options = SiteLoadOptions {
        policies: directory.to_owned(),
        ..SiteLoadOptions::default()
    };
    let live = SiteManager::start(options, &store, &remembered, Timestamp(1_000)).expect("loaded");
    let clock = crate::clock::Clock::default();
    let ledger = Arc::new(Ledger::in_memory(
        Vec::new(),
        &live.snapshot(),
        clock.moment(),
    ));
    let proofs =
        Arc::new(crate::identity::IdentityVerifier::with_policy_networks_only(Registry::builtin()));
    let instance = Instance::new(
        live,
        ledger,
        proofs,
        Arc::default(),
        clock,
        RequestLogs::off(),
    );
    let Instance {
        judge,
        recorder,
        clock,
        ..
    } = &*instance;
    let requests = RequestPipeline::new(
        judge.clone(),
        recorder.clone(),
        clock.clone(),
        RequestSettings::default(),
    );
    let upstreams = Upstreams::new(&[], &instance.metrics, clock.clone()).expect("no files");
    Operations::new(
        InstanceUpkeep::new(instance.clone(), store),
        requests,
        Arc::new(upstreams),
        OptionalServices::default(),
    )
}

fn control_commands(operations: Arc<Operations>) -> ControlRequestHandler {
    ControlRequestHandler {
        operations,
        upgrade: None,
    }
}

#[test]
fn admin_listener_answers_only_local_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    let app = AdminApp::new(operations.clone(), &["metrics.internal".to_owned()]);
    let get = |host: &str, path: &str| {
        app.respond(&Method::GET, Some(host), path)
            .status()
            .as_u16()
    };
    assert_eq!(get("127.0.0.1:9190", "/healthz"), 200);
    assert_eq!(get("[::1]:9190", "/metrics"), 200);
    assert_eq!(get("localhost", "/api/status"), 200);
    assert_eq!(get("crawlgate:9190", "/metrics"), 200);
    assert_eq!(get("Metrics.internal:9190", "/metrics"), 200);
    assert_eq!(get("www.metrics.internal", "/metrics"), 421);
    assert_eq!(get("attacker.example", "/metrics"), 421);
    assert_eq!(
        app.respond(&Method::GET, None, "/metrics")
            .status()
            .as_u16(),
        421
    );
    assert_eq!(get("attacker.example", "/api/status?"), 421);
    assert_eq!(get("attacker.example", "/healthz/"), 421);
    assert_eq!(get("balancer.example", "/healthz"), 200);
    assert_eq!(
        app.respond(&Method::GET, None, "/readyz").status().as_u16(),
        503
    );
    assert_eq!(get("localhost", "/elsewhere"), 404);
    assert_eq!(
        app.respond(&Method::POST, Some("localhost"), "/api/status")
            .status()
            .as_u16(),
        405
    );
    assert_eq!(get("localhost", "/readyz"), 503);
    operations.set_ready(true);
    assert_eq!(get("localhost", "/readyz"), 200);
    assert_eq!(
        app.respond(&Method::GET, None, "/readyz").status().as_u16(),
        200
    );
}

#[test]
fn invalid_query_is_rejected_with_mistakes() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    let app = AdminApp::new(operations.clone(), &[]);
    let status = |path: &str| {
        let answer = app.respond(&Method::GET, Some("localhost"), path);
        answer.status().as_u16()
    };
    let names = ["site", "crawler", "kind", "identity"];
    let unknown = |name, value: &str| QueryMistake::UnknownName {
        name,
        value: value.into(),
    };
    for (query, mistake) in [
        ("kind=", QueryMistake::NoValue("kind".into())),
        (
            "site=shop&site=blog",
            QueryMistake::GivenTwice("site".into()),
        ),
        (
            "sites=shop",
            QueryMistake::UnknownParameter {
                name: "sites".into(),
                takes: names.join(", "),
            },
        ),
        ("site=my%20shop", unknown("site", "my shop")),
        ("crawler=Googlebot", unknown("crawler", "Googlebot")),
        ("crawler=SomeBot", unknown("crawler", "SomeBot")),
    ] {
        let refused = violations::list_violations(&operations, query).err();
        assert_eq!(refused.map(|error| error.0), Some(vec![mistake]), "{query}");
    }
    for path in ["/api/violations?kind=violations", "/api/status?site=shop"] {
        assert_eq!(status(path), 400, "{path}");
    }
    for path in [
        "/api/violations?kind=never_fetched&site=shop&crawler=bingbot",
        "/api/violations?crawler=google%62ot",
        "/api/violations?crawler=none&site=unclaimed",
        "/api/status?",
        "/metrics?x=y",
    ] {
        assert_eq!(status(path), 200, "{path}");
    }
}

/// The id of the refusal on a control connection.
fn refusal_id(stream: UnixStream) -> String {
    let answer: ControlResponse = serde_json::from_reader(stream).expect("an answer");
    match answer {
        ControlResponse::Refused(refusal) => refusal.id.into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn control_socket_serves_owner_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    let path = directory.path().join("run/control.sock");
    assert!(matches!(
        send_request(&path, &ControlRequest::Status),
        Err(ControlError::NotRunning { .. })
    ));
    let socket = Arc::new(ControlSocket::bind(&path).expect("bound"));
    socket
        .clone()
        .serve(control_commands(operations))
        .expect("served");
    let mode = std::fs::metadata(&path)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(
        ControlSocket::bind(&path),
        Err(ControlError::AlreadyRunning { pid: Some(_), .. })
    ));

    let Ok(ControlResponse::Status(status)) = send_request(&path, &ControlRequest::Status) else {
        panic!("a status")
    };
    assert_eq!(status.policies.sites[0].site, "shop");
    std::fs::write(
        directory.path().join("shop.yaml"),
        "robots: { origin: both }\n",
    )
    .expect("a policy");
    let Ok(ControlResponse::Reloaded(report)) =
        send_request(&path, &ControlRequest::Reload { remove: Vec::new() })
    else {
        panic!("a report")
    };
    assert_eq!(report.sites[0].outcome, ReloadOutcome::Kept);
    assert!(
        report.sites[0].findings[0]
            .message
            .contains("shop.yaml:1:19: "),
        "{report:?}"
    );
    let pause = PauseRequest {
        site: Some("shop".into()),
        ..PauseRequest::default()
    };
    assert!(matches!(
        send_request(&path, &ControlRequest::Pause(pause)),
        Ok(ControlResponse::Paused { .. })
    ));
    let resumed = send_request(&path, &ControlRequest::Resume { site: None }).expect("answered");
    assert_eq!(
        resumed,
        ControlResponse::Resumed {
            sites: vec!["shop".into()],
            warnings: Vec::new()
        }
    );
    let nowhere = PauseRequest {
        site: Some("nowhere".into()),
        ..PauseRequest::default()
    };
    let refused = send_request(&path, &ControlRequest::Pause(nowhere));
    assert!(
        matches!(refused, Ok(ControlResponse::Refused(refusal)) if refusal.id == "unknown-site")
    );

    let mut stream = UnixStream::connect(&path).expect("connected");
    stream.write_all(b"nonsense\n").expect("sent");
    assert_eq!(refusal_id(stream), "invalid-request");
}

#[test]
fn command_that_was_given_up_does_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    let path = directory.path().join("control.sock");
    let socket = Arc::new(ControlSocket::bind(&path).expect("bound"));
    let pause = ControlRequest::Pause(PauseRequest::default());
    let mut line = serde_json::to_vec(&pause).expect("JSON");
    line.push(b'\n');
    // The process hangs: nothing is accepted until the client has gone.
    let mut stream = UnixStream::connect(&path).expect("connected");
    stream.write_all(&line).expect("sent");
    drop(stream);
    let commands = control_commands(operations);
    socket.serve(commands).expect("served");
    for _ in 0..50 {
        let answer = send_request(&path, &ControlRequest::Status).expect("answered");
        let ControlResponse::Status(status) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(status.policies.sites[0].paused_until, None);
    }
}

#[test]
fn abandoned_socket_is_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("control.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
    assert!(path.exists(), "no process listens behind it any more");
    ControlSocket::bind(&path).expect("bound again");
}

#[test]
fn file_that_is_no_socket_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shop.yaml");
    std::fs::write(&path, "precious").expect("written");
    assert!(matches!(
        ControlSocket::bind(&path),
        Err(ControlError::Io { .. })
    ));
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "precious");
}

#[test]
fn socket_removes_only_its_own_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("control.sock");
    let first = ControlSocket::bind(&path).expect("bound");
    std::fs::remove_file(&path).expect("removed");
    let _other = std::os::unix::net::UnixListener::bind(&path).expect("bound by another process");
    drop(first);
    assert!(path.exists(), "it is the other's");
    std::fs::remove_file(&path).expect("removed");
    drop(ControlSocket::bind(&path).expect("bound"));
    assert!(!path.exists());
}

#[test]
fn silent_clients_delay_no_other_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    let path = directory.path().join("control.sock");
    Arc::new(ControlSocket::bind(&path).expect("bound"))
        .serve(control_commands(operations))
        .expect("served");
    let silent: Vec<UnixStream> = (0..30)
        .map(|_| UnixStream::connect(&path).expect("connected"))
        .collect();
    assert!(matches!(
        send_request(&path, &ControlRequest::Status),
        Ok(ControlResponse::Status(_))
    ));
    // The answer came before the time of the first of them was over.
    silent[0].set_nonblocking(true).expect("set");
    let read = (&silent[0]).read(&mut [0]);
    assert_eq!(
        read.expect_err("it is still waited for").kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[test]
fn foreign_file_at_lock_path_is_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("control.sock");
    let lock = directory.path().join("control.sock.lock");
    let notes = directory.path().join("notes");
    std::fs::write(&notes, "precious").expect("written");
    std::os::unix::fs::symlink(&notes, &lock).expect("a link");
    assert!(matches!(
        ControlSocket::bind(&path),
        Err(ControlError::Io { .. })
    ));
    std::fs::rename(&notes, &lock).expect("in place of the link");
    assert!(matches!(
        ControlSocket::bind(&path),
        Err(ControlError::Io { .. })
    ));
    assert_eq!(std::fs::read_to_string(&lock).expect("read"), "precious");
}

#[test]
fn long_or_endless_request_is_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    let path = directory.path().join("control.sock");
    let socket = Arc::new(ControlSocket::bind(&path).expect("bound"));
    socket
        .clone()
        .serve(control_commands(operations))
        .expect("served");
    let mut stream = UnixStream::connect(&path).expect("connected");
    stream.write_all(&[b' '; 70 * 1024]).expect("sent");
    stream.write_all(b"\n").expect("sent");
    assert_eq!(refusal_id(stream), "too-long");
    // A byte now and then does not keep a thread for ever.
    let mut stream = UnixStream::connect(&path).expect("connected");
    let began = std::time::Instant::now();
    stream
        .set_read_timeout(Some(std::time::Duration::from_millis(200)))
        .expect("set");
    let mut byte = [0];
    while stream.write_all(b" ").is_ok() && stream.read(&mut byte).is_err() {
        assert!(began.elapsed().as_secs() < 20, "it goes on for ever");
    }
}

#[test]
fn status_has_version_and_uptime() {
    let directory = tempfile::tempdir().expect("a directory");
    let app = AdminApp::new(test_operations(directory.path()), &[]);
    let answer = app.respond(&Method::GET, Some("localhost"), "/api/status");
    let status: serde_json::Value = serde_json::from_slice(answer.body()).expect("JSON");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert!(status["uptime_seconds"].is_u64());
    assert_eq!(status["sites"][0]["site"], "shop");
}

#[test]
fn warning_keeps_its_id_as_problem() {
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    std::fs::remove_dir_all(directory.path()).expect("removed");
    operations.reload();
    let problems = serde_json::to_value(operations.status().problems).expect("JSON");
    let problems = problems.as_array().expect("a list");
    assert!(
        problems
            .iter()
            .any(|problem| problem["problem"] == "warning"
                && problem["finding"] == "policy-directory"),
        "{problems:?}"
    );
}

#[test]
fn broken_file_is_logged_once() {
    #[derive(Clone, Default)]
    struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let operations = test_operations(directory.path());
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // With one subscriber alone, tracing-core 0.1 asks that of the thread which comes to a line
    // first, and a thread that has none turns the line off for all.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    tracing::subscriber::with_default(subscriber, || {
        let write = |text: &str| {
            std::fs::write(directory.path().join("shop.yaml"), text).expect("a policy")
        };
        write("robots: { origin: both }\n");
        operations.reload();
        operations.reload();
        write("robots: [\n");
        operations.reload();
    });
    let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
    assert_eq!(
        text.matches("ERROR").count(),
        2,
        "once for each way of being broken: {text}"
    );
}
