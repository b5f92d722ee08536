//! The first certificate, and what is served until it is there.

use super::{Site, modes};
use crate::proxy::support::pebble::Pebble;
use crate::proxy::support::{Origin, Setup};

#[test]
fn host_of_a_policy_gets_its_certificate_by_either_challenge() {
    for challenge in ["any", "http", "tls-alpn"] {
        let (pebble, origin) = (Pebble::start(), Origin::plain());
        let tls = pebble.acme(&format!(
            ", email: admin@shop.example, challenge: {challenge}"
        ));
        let site = Site::start(pebble.setup(&origin, &tls), &["shop.example"]);
        let page = site.page(&pebble, "shop.example");
        assert!(page.starts_with("HTTP/1.1 200"), "{challenge}: {page}");
        assert_eq!(site.http("shop.example"), 301, "{challenge}");
        for (name, mode) in modes(&site.gate.path("state/acme")) {
            assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
        }
        let (status, problems) = site.status();
        assert_eq!(problems, Vec::<String>::new(), "{challenge}");
        assert_eq!(
            status["certificates"][0]["names"][0], "shop.example",
            "{challenge}"
        );
        let orders = "crawlgate_certificate_orders_total{result=\"obtained\"}";
        site.gate.wait_for_metric(orders, 1.0);
    }
}

#[test]
fn acme_without_a_state_directory_does_not_start() {
    let setup = Setup::before("127.0.0.1:3000")
        .listeners("{ address: 127.0.0.1:0, tls: { acme: yes } }")
        .argument("--state")
        .argument("off");
    let (said, status) = setup.fail();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("\"acme\""), "{said}");
}
