//! crawlgate under a service manager that speaks systemd's protocols, with a stand-in for it.

use crate::proxy::support::manager::Manager;
use crate::proxy::support::{Origin, Setup};
use std::net::TcpListener;

#[test]
fn manager_hears_of_start_reload_and_stop() {
    let (origin, manager) = (Origin::plain(), Manager::new());
    let mut gate = manager.runs(Setup::before(origin.address), &[]).start();
    assert!(
        manager
            .wait_for("READY=1")
            .contains(&"STATUS=serving".to_owned())
    );
    // It is told after the listeners accept, so a request is answered at once.
    assert_eq!(gate.get("a.example", "/", "").status, 200);
    gate.signal("HUP");
    let reloading = manager.wait_for("RELOADING=1");
    assert!(
        reloading
            .iter()
            .any(|line| line.starts_with("MONOTONIC_USEC=")),
        "{reloading:?}"
    );
    manager.wait_for("READY=1");
    gate.signal("TERM");
    manager.wait_for("STOPPING=1");
    assert!(gate.ended().success());
}

#[test]
fn living_process_feeds_the_watchdog_and_a_stopped_one_does_not() {
    let (origin, manager) = (Origin::plain(), Manager::new());
    let gate = manager
        .runs(Setup::before(origin.address), &["WATCHDOG_USEC=200000"])
        .start();
    for _ in 0..3 {
        manager.wait_for("WATCHDOG=1");
    }
    gate.signal("STOP");
    while !manager.is_quiet() {}
    gate.signal("CONT");
    manager.wait_for("WATCHDOG=1");
}

#[test]
fn watchdog_of_another_process_is_left_alone() {
    let (origin, manager) = (Origin::plain(), Manager::new());
    let _gate = manager
        .runs(
            Setup::before(origin.address),
            &["WATCHDOG_USEC=200000", "WATCHDOG_PID=1"],
        )
        .start();
    manager.wait_for("READY=1");
    assert!(manager.is_quiet());
}

/// The manager keeps the listener. While no process runs, a connection waits; the next process
/// answers it.
#[test]
fn connection_during_a_restart_waits_at_the_socket() {
    let origin = Origin::plain();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let setup = Setup::before(origin.address)
        .listen(address)
        .with_socket(listener, "web");
    let mut gate = setup.start();
    assert_eq!(gate.get("a.example", "/", "").status, 200);
    let mut waiting = None;
    gate.restart("TERM", |gate| {
        let mut connection = gate.connect();
        connection.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        waiting = Some(connection);
    });
    assert_eq!(waiting.expect("a connection").response("GET").status, 200);
    assert_eq!(gate.address, address);
}

/// The manager keeps the listener through an upgrade, and passes it to the process that it starts
/// after that.
#[test]
fn socket_of_the_manager_is_taken_over_in_an_upgrade() {
    let origin = Origin::plain();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let setup = Setup::before(origin.address)
        .listen(address)
        .with_socket(listener, "web");
    let mut gate = setup.replaceable().start();
    gate.upgrade();
    assert!(gate.ended().success());
    assert_eq!(gate.fetch("/").status, 200);
    gate.restart("TERM", |_| ());
    assert_eq!((gate.fetch("/").status, gate.address), (200, address));
}

#[test]
fn unexpected_socket_is_logged() {
    let origin = Origin::plain();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address").to_string();
    let gate = Setup::before(origin.address)
        .with_socket(listener, "strange")
        .start();
    gate.log.wait_for(" strange");
    gate.log.wait_for(&address);
    assert_eq!(gate.get("a.example", "/", "").status, 200);
}
