//! Certificates of an authority while another process takes over.

use super::{Site, get};
use crate::proxy::support::pebble::Pebble;
use crate::proxy::support::pebble::front::Front;
use crate::proxy::support::{Origin, eventually};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

/// The authority is told that the host is ready, and asks when the process that told it is gone: the
/// next one continues the order, or makes another.
#[test]
fn order_in_flight_ends_in_the_next_process() {
    for challenge in ["http", "tls-alpn"] {
        let (pebble, origin) = (Pebble::start(), Origin::plain());
        let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
        let (told, (ask, may_ask)) = (Arc::new(AtomicBool::new(false)), channel::<()>());
        let was_told = told.clone();
        front.says(move |_, path| {
            if path.contains("/chalZ/") && !was_told.swap(true, Ordering::Relaxed) {
                let _ = may_ask.recv();
            }
            None
        });
        let tls = pebble.acme_at(front.address, &format!(", challenge: {challenge}"));
        let mut site = Site::start(pebble.setup(&origin, &tls).replaceable(), &["shop.example"]);
        eventually("the order runs", || {
            told.load(Ordering::Relaxed).then_some(())
        });
        site.gate.upgrade();
        assert!(site.gate.ended().success());
        ask.send(()).expect("the front waits");
        assert!(
            site.page(&pebble, "shop.example")
                .starts_with("HTTP/1.1 200"),
            "{challenge}"
        );
    }
}

#[test]
fn certificate_is_in_use_at_once_and_a_new_host_gets_its_own() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let mut site = Site::start(
        pebble.setup(&origin, &pebble.acme("")).replaceable(),
        &["shop.example"],
    );
    site.page(&pebble, "shop.example");
    let before = site
        .open(&pebble, "shop.example")
        .expect("a connection")
        .certificate();
    site.gate.upgrade();
    assert!(site.gate.ended().success());
    let mut connection = site.open(&pebble, "shop.example").expect("at once");
    assert!(connection.certificate() == before);
    assert!(get(&mut connection, "shop.example").starts_with("HTTP/1.1 200"));
    site.gate
        .write_policy("blog", &super::policy("blog.example"));
    assert!(
        site.page(&pebble, "blog.example")
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(pebble.orders(), 2);
}

/// After an upgrade that failed, the running process continues the order, or makes another.
#[test]
fn order_in_flight_ends_after_a_failed_upgrade() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
    let (told, (ask, may_ask)) = (Arc::new(AtomicBool::new(false)), channel::<()>());
    let was_told = told.clone();
    front.says(move |_, path| {
        if path.contains("/chalZ/") && !was_told.swap(true, Ordering::Relaxed) {
            let _ = may_ask.recv();
        }
        None
    });
    let setup = pebble
        .setup(&origin, &pebble.acme_at(front.address, ""))
        .replaceable();
    let site = Site::start(setup, &["shop.example"]);
    eventually("the order runs", || {
        told.load(Ordering::Relaxed).then_some(())
    });
    site.gate
        .next_hands_over_and("hear(\"yours\"); sys.exit(\"diskless\")");
    assert!(
        site.gate
            .refused_upgrade(&["--unsupervised"])
            .contains("diskless")
    );
    ask.send(()).expect("the front waits");
    assert!(
        site.page(&pebble, "shop.example")
            .starts_with("HTTP/1.1 200")
    );
}
