//! Authorities that are away, limit, refuse or talk nonsense; names that lead elsewhere.

use super::Site;
use crate::proxy::support::pebble::Pebble;
use crate::proxy::support::pebble::front::{Front, answer};
use crate::proxy::support::{Origin, eventually};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

#[test]
fn before_the_first_certificate_port_80_serves() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
    front.says(|_, _| Some(answer("503 Service Unavailable", "", "away")));
    let site = Site::start(
        pebble.setup(&origin, &pebble.acme_at(front.address, "")),
        &["shop.example"],
    );
    assert_eq!(site.failure("shop.example")["kind"], "away");
    assert_eq!(site.http("shop.example"), 200);
    assert!(site.open(&pebble, "shop.example").is_none());
    eventually("the log names the host", || {
        let log = site.gate.log.text();
        log.lines()
            .any(|line| {
                line.contains("no certificate was issued") && line.contains("host=\"shop.example\"")
            })
            .then_some(())
    });
    let (_, problems) = site.status();
    assert!(
        problems.len() == 1 && problems[0].starts_with("shop.example "),
        "{problems:?}"
    );
    // It comes back.
    front.says(|_, _| None);
    site.gate.signal("HUP");
    site.page(&pebble, "shop.example");
    assert_eq!(site.http("shop.example"), 301);
    assert_eq!(site.status().1, Vec::<String>::new());
}

#[test]
fn limit_of_the_authority_is_kept_over_a_restart() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
    let problem = "{\"type\":\"urn:ietf:params:acme:error:rateLimited\",\"detail\":\"too many certificates\"}";
    front.says(move |_, path| {
        (path == "/order-plz")
            .then(|| answer("429 Too Many Requests", "Retry-After: 7200\r\n", problem))
    });
    let mut site = Site::start(
        pebble.setup(&origin, &pebble.acme_at(front.address, "")),
        &["shop.example"],
    );
    assert_eq!(site.failure("shop.example")["kind"], "limited");
    site.gate.wait_for_metric(
        "crawlgate_certificate_orders_total{result=\"limited\"}",
        1.0,
    );
    let asked = front.asked("");
    site.gate.restart("TERM", |_| ());
    site.gate.signal("HUP");
    // The thread has looked at the host, which it names, and asks nothing.
    site.gate.log.wait_for("hosts=[\"shop.example\"]");
    let failed = site.failure("shop.example");
    assert_eq!(failed["kind"], "limited");
    let moment = |name: &str| {
        failed[name]
            .as_str()
            .and_then(crawlgate::time::Timestamp::parse)
            .expect("a moment")
    };
    assert_eq!(moment("next").since(moment("at")).as_secs(), 7_200);
    assert_eq!(front.asked(""), asked);
}

#[test]
fn one_bad_name_among_many_hurts_no_other() {
    let (pebble, origin) = (
        Pebble::with(", \"domainBlocklist\": [\"blocked.example\"]"),
        Origin::plain(),
    );
    // Another server has the same port at another address.
    let other = TcpListener::bind(("127.0.0.2", pebble.http.port())).expect("another address");
    thread::spawn(move || {
        for mut stream in other.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    pebble.point("elsewhere.example", &["127.0.0.2"]);
    let hosts = [
        "blocked.example",
        "elsewhere.example",
        "one.example",
        "two.example",
    ];
    let tls = pebble.acme(", challenge: http");
    let site = Site::start(pebble.setup(&origin, &tls), &hosts);
    for host in &hosts[2..] {
        assert!(
            site.page(&pebble, host).starts_with("HTTP/1.1 200"),
            "{host}"
        );
    }
    let elsewhere = site.failure("elsewhere.example");
    assert_eq!(elsewhere["kind"], "elsewhere");
    let reason = elsewhere["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("127.0.0.2") && reason.contains("404"),
        "{reason}"
    );
    assert_eq!(site.failure("blocked.example")["kind"], "refused");
    let (_, problems) = site.status();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(
        pebble.log().matches("Added order").count(),
        2,
        "no order for a name that leads elsewhere"
    );
    site.gate.wait_for_metric(
        "crawlgate_certificate_orders_total{result=\"elsewhere\"}",
        1.0,
    );
}

#[test]
fn hostile_answers_are_failures_and_nothing_more() {
    let (pebble, origin) = (Pebble::start(), Origin::plain());
    let front = Front::of(pebble.address(), &pebble.transport, pebble.files.path());
    front.says(|_, _| Some(answer("503 Service Unavailable", "", "away")));
    let site = Site::start(
        pebble.setup(&origin, &pebble.acme_at(front.address, "")),
        &["shop.example"],
    );
    let elsewhere = "{\"newNonce\":\"http://127.0.0.1/\",\"newAccount\":\"http://127.0.0.1/\",\"newOrder\":\"http://127.0.0.1/\"}";
    let huge = format!("[{}]", "0,".repeat(400_000));
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    site.failure("shop.example");
    let mut failures = 1.0;
    let answers = [
        ("/dir", answer("200 OK", "", "<html>")),
        ("/dir", answer("200 OK", "", &huge)),
        ("/dir", answer("200 OK", "", elsewhere)),
        (
            "/dir",
            answer("302 Found", "Location: https://127.0.0.1:1/\r\n", ""),
        ),
        ("/dir", b"garbage\r\n\r\n".to_vec()),
        (
            "/order-plz",
            answer("201 Created", "Location: https://127.0.0.1:1/\r\n", "{}"),
        ),
        (
            "/order-plz",
            answer("500 Internal Server Error", "", "\u{1b}[31m{"),
        ),
        ("/certZ/", answer("200 OK", "", certificate)),
        ("/certZ/", answer("200 OK", "", "")),
    ];
    for (path, said) in answers {
        let shown = String::from_utf8_lossy(&said[..said.len().min(80)]).into_owned();
        front.says(move |_, asked| asked.starts_with(path).then(|| said.clone()));
        let before = front.asked(path);
        site.gate.signal("HUP");
        eventually(&format!("{path} is asked, and {shown}"), || {
            (front.asked(path) > before).then_some(())
        });
        failures += 1.0;
        eventually(&format!("a failure: {shown}"), || {
            let metrics = site.gate.metrics();
            let failed =
                crate::proxy::support::sum_of(&metrics, "crawlgate_certificate_orders_total")
                    .unwrap_or_default();
            (failed >= failures).then_some(())
        });
        assert_eq!(site.http("shop.example"), 200);
    }
    front.says(|_, _| None);
    site.gate.signal("HUP");
    assert!(
        site.page(&pebble, "shop.example")
            .starts_with("HTTP/1.1 200")
    );
}
