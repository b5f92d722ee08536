//! What comes after the first certificate: new hosts, renewal, restarts.

use super::{Site, get, policy};
use crate::proxy::support::pebble::Pebble;
use crate::proxy::support::pebble::front::{Front, answer};
use crate::proxy::support::{Origin, PATIENCE, TlsConnection, eventually};
use crawlgate::time::Timestamp;
use serde_json::Value;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const DAY: i64 = 86_400;

#[test]
fn new_policy_gets_its_certificate_without_a_restart() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let site = Site::start(pebble.setup(&origin, &pebble.acme("")), &["shop.example"]);
    site.page(&pebble, "shop.example");
    assert!(site.open(&pebble, "blog.example").is_none());
    assert_eq!(
        site.http("blog.example"),
        200,
        "no redirect without a certificate"
    );
    fs::write(
        site.gate.setup.policies().join("blog.yaml"),
        policy("blog.example"),
    )
    .expect("a policy");
    assert!(
        site.page(&pebble, "blog.example")
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(site.http("blog.example"), 301);
}

#[test]
fn certificate_is_renewed_under_load_without_losing_a_request() {
    let (pebble, origin) = (
        Pebble::with(", \"certificateValidityPeriod\": 7776000"),
        Origin::plain(),
    );
    let mut site = Site::start(
        pebble.setup(&origin, &pebble.acme("")).with_clock(),
        &["shop.example"],
    );
    site.page(&pebble, "shop.example");
    let (client, https) = (pebble.client(), site.gate.listening[0]);
    let open = || TlsConnection::open(https, "shop.example", &client).expect("a connection");
    // A new client each time: a resumed session shows the certificate that it began with.
    let certificate = || {
        TlsConnection::open(https, "shop.example", &pebble.client())
            .expect("a connection")
            .certificate()
    };
    let before = certificate();
    let (stop, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut kept = open();
            // A renewal that does not come must not keep this thread.
            let end = Instant::now() + PATIENCE * 2;
            while !stop.load(Ordering::Relaxed) && Instant::now() < end {
                assert!(get(&mut kept, "shop.example").starts_with("HTTP/1.1 200"));
                assert!(get(&mut open(), "shop.example").starts_with("HTTP/1.1 200"));
                served.fetch_add(2, Ordering::Relaxed);
            }
        });
        let traffic = || {
            let until = served.load(Ordering::Relaxed) + 20;
            eventually("requests", || {
                (served.load(Ordering::Relaxed) >= until).then_some(())
            });
        };
        traffic();
        site.gate.set_clock(61 * DAY);
        eventually("the renewed certificate", || {
            (certificate() != before).then_some(())
        });
        traffic();
        stop.store(true, Ordering::Relaxed);
    });
    site.gate.wait_for_metric(
        "crawlgate_certificate_orders_total{result=\"obtained\"}",
        2.0,
    );
}

#[test]
fn certificate_account_and_key_outlast_a_restart() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let mut site = Site::start(pebble.setup(&origin, &pebble.acme("")), &["shop.example"]);
    site.page(&pebble, "shop.example");
    let certificate = || {
        site.open(&pebble, "shop.example")
            .expect("a connection")
            .certificate()
    };
    let before = certificate();
    site.gate.restart("TERM", |_| ());
    let mut connection = site.open(&pebble, "shop.example").expect("at once");
    assert!(connection.certificate() == before);
    assert!(get(&mut connection, "shop.example").starts_with("HTTP/1.1 200"));
    assert_eq!(pebble.log().matches("accounts in memory").count(), 1);
}

#[test]
fn order_goes_on_after_a_crash() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
    // The authority takes the order, and then nothing can be heard of it.
    front.says(|_, path| {
        path.contains("/authZ/")
            .then(|| answer("503 Service Unavailable", "Retry-After: 600\r\n", "{}"))
    });
    let tls = pebble.acme_at(front.address, "");
    let mut site = Site::start(pebble.setup(&origin, &tls), &["shop.example"]);
    assert_eq!(site.failure("shop.example")["kind"], "away");
    assert_eq!(pebble.orders(), 1);
    front.says(|_, _| None);
    site.gate = site.gate.killed_and_started_again();
    site.gate.signal("HUP");
    assert!(
        site.page(&pebble, "shop.example")
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(
        pebble.orders(),
        1,
        "the order that was there is brought to its end"
    );
}

/// The authority asked while no crawlgate answered, and found nothing. That says nothing against
/// the host.
#[test]
fn order_that_failed_during_a_restart_is_made_again_at_once() {
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
    let mut site = Site::start(
        pebble.setup(&origin, &pebble.acme_at(front.address, "")),
        &["shop.example"],
    );
    eventually("the order runs", || {
        told.load(Ordering::Relaxed).then_some(())
    });
    site.gate.restart("KILL", |_| {
        ask.send(()).expect("the front waits");
        eventually("the authority found nothing", || {
            pebble
                .log()
                .contains("set INVALID by completed challenge")
                .then_some(())
        });
    });
    assert!(
        site.page(&pebble, "shop.example")
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(pebble.orders(), 2);
}

/// An authority that suggests to renew three days from now.
fn suggesting(pebble: &Pebble) -> (Front, Timestamp) {
    let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
    let (at, to) = (front.address, pebble.address());
    let directory = format!(
        "{{\"newNonce\":\"https://{at}/nonce-plz\",\"newAccount\":\"https://{at}/sign-me-up\",\"newOrder\":\"https://{at}/order-plz\",\
         \"revokeCert\":\"https://{to}/revoke-cert\",\"keyChange\":\"https://{to}/rollover-account-key\",\
         \"renewalInfo\":\"https://{at}/renewal\"}}"
    );
    let from = Timestamp::from(SystemTime::now() + Duration::from_secs(3 * 86_400));
    let end = from.plus(Duration::from_secs(7_200));
    let window = format!("{{\"suggestedWindow\":{{\"start\":\"{from}\",\"end\":\"{end}\"}}}}");
    front.says(move |_, path| match path {
        "/dir" => Some(answer("200 OK", "", &directory)),
        path if path.starts_with("/renewal/") => {
            Some(answer("200 OK", "Retry-After: 21600\r\n", &window))
        }
        _ => None,
    });
    (front, from)
}

/// Waits until the suggestion is known; the name of the certificate that it is for.
fn suggested(site: &Site, front: &Front, from: Timestamp) -> String {
    eventually("the suggestion", || {
        let (status, _) = site.status();
        let renewal = status["orders"][0]["renewal"]
            .as_str()
            .and_then(Timestamp::parse)?;
        (from <= renewal && renewal <= from.plus(Duration::from_secs(7_200))).then_some(())
    });
    front
        .last_path("/renewal/")
        .expect("it was asked")
        .replace("/renewal/", "")
}

#[test]
fn authority_may_suggest_an_earlier_renewal() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let (front, from) = suggesting(&pebble);
    let site = Site::start(
        pebble.setup(&origin, &pebble.acme_at(front.address, "")),
        &["shop.example"],
    );
    site.page(&pebble, "shop.example");
    suggested(&site, &front, from);
}

/// RFC 9773 section 5. An authority that accepts `replaces` says so; of one that does not, the
/// order is made again without.
#[test]
fn renewal_by_suggestion_names_the_certificate_that_it_replaces() {
    for accepts in [true, false] {
        let (pebble, origin) = (
            Pebble::with(", \"certificateValidityPeriod\": 7776000"),
            Origin::plain(),
        );
        let (front, from) = suggesting(&pebble);
        if accepts {
            front.changes(|_, payload, answer| match payload["replaces"].as_str() {
                Some(id) => with_replaces(&answer, id),
                None => answer,
            });
        }
        let setup = pebble
            .setup(&origin, &pebble.acme_at(front.address, ""))
            .with_clock();
        let mut site = Site::start(setup, &["shop.example"]);
        site.page(&pebble, "shop.example");
        let id = suggested(&site, &front, from);
        site.gate.set_clock(4 * DAY);
        site.gate.wait_for_metric(
            "crawlgate_certificate_orders_total{result=\"obtained\"}",
            2.0,
        );
        let orders = front.payloads("/order-plz").into_iter();
        let mut replaced: Vec<Value> = orders.map(|order| order["replaces"].clone()).collect();
        // pebble refuses some nonces on purpose, and the same is sent again.
        replaced.dedup();
        let expected = [Value::Null, Value::from(id), Value::Null];
        let number = if accepts { 2 } else { 3 };
        assert_eq!(
            (&replaced[..], pebble.orders()),
            (&expected[..number], number),
            "accepts: {accepts}"
        );
    }
}

/// The answer to an order, with the field.
fn with_replaces(answer: &str, id: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    let body = body
        .trim()
        .replacen('{', &format!("{{\"replaces\":\"{id}\","), 1);
    let fields = head
        .lines()
        .filter(|line| !line.to_ascii_lowercase().starts_with("content-length"));
    let head: Vec<&str> = fields.collect();
    format!(
        "{}\r\nContent-Length: {}\r\n\r\n{body}",
        head.join("\r\n"),
        body.len()
    )
}
