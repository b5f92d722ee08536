//! What comes after the first certificate: new hosts, renewal, restarts.

use super::{Site, get, policy};
use crate::proxy::support::pebble::Pebble;
use crate::proxy::support::pebble::front::{Front, answer};
use crate::proxy::support::{Origin, PATIENCE, TlsConnection, eventually};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const DAY: i64 = 86_400;

#[test]
fn new_policy_gets_its_certificate_without_a_restart() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let site = Site::start(pebble.setup(&origin, &pebble.acme("")), &["shop.example"]);
    site.page(&pebble, "shop.example");
    assert!(site.open(&pebble, "blog.example").is_none());
    assert_eq!(site.http("blog.example"), 200, "no redirect without a certificate");
    fs::write(site.gate.setup.policies().join("blog.yaml"), policy("blog.example")).expect("a policy");
    assert!(site.page(&pebble, "blog.example").starts_with("HTTP/1.1 200"));
    assert_eq!(site.http("blog.example"), 301);
}

#[test]
fn certificate_is_renewed_under_load_without_losing_a_request() {
    let (pebble, origin) = (Pebble::with(", \"certificateValidityPeriod\": 7776000"), Origin::plain());
    let mut site = Site::start(pebble.setup(&origin, &pebble.acme("")).with_clock(), &["shop.example"]);
    site.page(&pebble, "shop.example");
    let (client, https) = (pebble.client(), site.gate.listening[0]);
    let open = || TlsConnection::open(https, "shop.example", &client).expect("a connection");
    // A new client each time: a resumed session shows the certificate that it began with.
    let certificate =
        || TlsConnection::open(https, "shop.example", &pebble.client()).expect("a connection").certificate();
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
            eventually("requests", || (served.load(Ordering::Relaxed) >= until).then_some(()));
        };
        traffic();
        site.gate.set_clock(61 * DAY);
        eventually("the renewed certificate", || (certificate() != before).then_some(()));
        traffic();
        stop.store(true, Ordering::Relaxed);
    });
    site.gate.wait_for_metric("crawlgate_certificate_orders_total{result=\"obtained\"}", 2.0);
}

#[test]
fn certificate_account_and_key_outlast_a_restart() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let mut site = Site::start(pebble.setup(&origin, &pebble.acme("")), &["shop.example"]);
    site.page(&pebble, "shop.example");
    let certificate = || site.open(&pebble, "shop.example").expect("a connection").certificate();
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
        path.contains("/authZ/").then(|| answer("503 Service Unavailable", "Retry-After: 600\r\n", "{}"))
    });
    let tls = pebble.acme_at(front.address, "");
    let mut site = Site::start(pebble.setup(&origin, &tls), &["shop.example"]);
    assert!(site.failure("shop.example").contains("cannot be asked"));
    let orders = |front: &Front| front.asked("/order-plz");
    assert_eq!(orders(&front), 1);
    front.says(|_, _| None);
    site.gate = site.gate.killed_and_started_again();
    site.gate.signal("HUP");
    assert!(site.page(&pebble, "shop.example").starts_with("HTTP/1.1 200"));
    assert_eq!(orders(&front), 1, "the order that was there is brought to its end");
}

#[test]
fn authority_may_suggest_an_earlier_renewal() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
    let (at, to) = (front.address, pebble.address());
    let directory = format!(
        "{{\"newNonce\":\"https://{at}/nonce-plz\",\"newAccount\":\"https://{at}/sign-me-up\",\"newOrder\":\"https://{at}/order-plz\",\
         \"revokeCert\":\"https://{to}/revoke-cert\",\"keyChange\":\"https://{to}/rollover-account-key\",\
         \"renewalInfo\":\"https://{at}/renewal\"}}"
    );
    let from = crawlgate::time::Timestamp::from(SystemTime::now() + Duration::from_secs(3 * 86_400));
    let end = from.plus(Duration::from_secs(7_200));
    let window = format!("{{\"suggestedWindow\":{{\"start\":\"{from}\",\"end\":\"{end}\"}}}}");
    front.says(move |_, path| match path {
        "/dir" => Some(answer("200 OK", "", &directory)),
        path if path.starts_with("/renewal/") => Some(answer("200 OK", "Retry-After: 21600\r\n", &window)),
        _ => None,
    });
    let site = Site::start(pebble.setup(&origin, &pebble.acme_at(front.address, "")), &["shop.example"]);
    site.page(&pebble, "shop.example");
    eventually("the suggestion", || {
        let (status, _) = site.status();
        let renewal = status["orders"][0]["renewal"].as_str().and_then(crawlgate::time::Timestamp::parse)?;
        (from <= renewal && renewal <= end).then_some(())
    });
}
