//! TLS: two sites on one listener, versions, redirects, challenges.

use super::https::{BOTH, before, get, https, listeners};
use crate::proxy::support::{
    Authority, BROWSER, Http2, Origin, Setup, TlsConnection, eventually, read,
};
use rustls::version::{TLS12, TLS13};
use std::fs;

#[test]
fn two_sites_have_their_own_certificates_on_one_listener() {
    let https = https(", hsts: { max_age: 180d, subdomains: yes }");
    for host in ["shop.example", "www.shop.example", "blog.example"] {
        let mut connection = https
            .open(host)
            .unwrap_or_else(|error| panic!("{host}: {error}"));
        let page = get(&mut connection, host, "/page", BROWSER);
        assert!(
            page.starts_with("HTTP/1.1 200 OK") && page.ends_with("hello"),
            "{page}"
        );
        assert!(
            page.contains("trict-Transport-Security: max-age=15552000; includeSubDomains\r\n")
                || page
                    .to_ascii_lowercase()
                    .contains("strict-transport-security: max-age=15552000; includesubdomains\r\n"),
            "{page}"
        );
        assert_eq!(
            https.origin.last().field("x-forwarded-proto"),
            Some("https")
        );
        // On the same connection, what is answered here.
        let refused = get(&mut connection, host, "/page", "GPTBot");
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        assert!(
            refused.contains("Strict-Transport-Security: max-age=15552000"),
            "{refused}"
        );
        assert!(get(&mut connection, host, "/robots.txt", "GPTBot").contains("User-agent: GPTBot"));
    }
    assert!(https.certificate("shop.example") != https.certificate("blog.example"));
    // A name that no certificate has gets the first one, which the client refuses.
    assert!(https.open("other.example").is_err());
    https.gate.wait_for_metric(
        "crawlgate_certificate_not_after_timestamp_seconds{name=\"shop.example\"}",
        4_102_444_800.0,
    );
}

#[test]
fn versions_and_protocols_are_negotiated() {
    let https = https(", min_version: \"1.3\"");
    let with = |alpn: &[&str], version| {
        let config = https.authority.client(alpn, &[version]);
        TlsConnection::open(https.gate.address, "shop.example", &config)
            .map(|connection| connection.protocol())
    };
    assert_eq!(
        with(&["h2", "http/1.1"], &TLS13).expect("TLS 1.3"),
        Some("h2".into())
    );
    assert_eq!(
        with(&["http/1.1"], &TLS13).expect("TLS 1.3"),
        Some("http/1.1".into())
    );
    assert_eq!(with(&[], &TLS13).expect("TLS 1.3"), None);
    assert!(with(&[], &TLS12).is_err(), "it is not allowed");
}

#[test]
fn listener_without_http2_does_not_offer_it() {
    let origin = Origin::plain();
    let authority = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    authority.certify(directory.path(), "shop", &["shop.example"], 2100);
    let listeners =
        listeners(directory.path(), &["shop"], "").replacen("tls:", "http2: no, tls:", 1);
    let gate = Setup::before(origin.address).listeners(&listeners).start();
    let config = authority.client(&["h2", "http/1.1"], &[&TLS13]);
    let connection = TlsConnection::open(gate.address, "shop.example", &config).expect("TLS 1.3");
    assert_eq!(connection.protocol(), Some("http/1.1".into()));
}

#[test]
fn curl_gets_pages_over_both_versions_of_http_and_of_tls() {
    let https = https("");
    for (arguments, version) in [
        (["--http2", "--tlsv1.3"].as_slice(), "2"),
        (&["--http2", "--tlsv1.2", "--tls-max", "1.2"], "2"),
        (&["--http1.1", "--tlsv1.2"], "1.1"),
    ] {
        let arguments = [
            arguments,
            &["-A", "Firefox", "-w", " %{http_version} %{http_code}"],
        ]
        .concat();
        assert_eq!(
            https.curl(&arguments, "https://shop.example/"),
            format!("hello {version} 200")
        );
        assert_eq!(
            https.origin.last().field("x-forwarded-proto"),
            Some("https")
        );
        let refused = https.curl(
            &[&arguments[..], &["-A", "GPTBot", "-o", "/dev/null"]].concat(),
            "https://www.shop.example/",
        );
        assert_eq!(refused, format!(" {version} 403"));
    }
}

#[test]
fn http_listener_redirects_all_but_robots_and_challenges() {
    let https = https("");
    let port = https.gate.address.port();
    let led = https.http("GET", "shop.example:8080", "/a?b=c", "");
    assert_eq!(led.status, 301);
    assert_eq!(
        led.field("location"),
        Some(format!("https://shop.example:{port}/a?b=c").as_str())
    );
    assert_eq!(
        https
            .http("POST", "shop.example", "/a", "Content-Length: 0\r\n")
            .status,
        308
    );
    assert_eq!(
        https.http("GET", "[::1]:80", "/", "").field("location"),
        Some(format!("https://[::1]:{port}/").as_str())
    );
    let mut http2 = crate::proxy::support::Connection::open(https.gate.listening[1]);
    http2.send_bytes(crate::proxy::support::http2::PREFACE);
    assert_eq!(http2.response("GET").status, 400);
    assert!(https.origin.received().is_empty());
    assert!(
        https
            .http("GET", "shop.example", "/robots.txt", "")
            .text()
            .contains("User-agent: GPTBot")
    );
    assert_eq!(
        https
            .http(
                "GET",
                "shop.example",
                "/.well-known/acme-challenge/token",
                ""
            )
            .text(),
        "hello"
    );
    assert_eq!(https.origin.last().field("x-forwarded-proto"), Some("http"));
    https.gate.wait_for_metric(
        "crawlgate_requests_total{action=\"redirect\",crawler=\"none\",kind=\"not_a_crawler\",site=\"unclaimed\"}",
        3.0,
    );
}

#[test]
fn redirect_leads_to_the_port_that_clients_see() {
    let origin = Origin::plain();
    for (port, expected) in [
        (443, "https://shop.example/a?b"),
        (8443, "https://shop.example:8443/a?b"),
    ] {
        let listener =
            format!("{{ address: 127.0.0.1:0, redirect: {{ to: https, port: {port} }} }}");
        let gate = Setup::before(origin.address).listeners(&listener).start();
        assert_eq!(
            gate.get("shop.example:8080", "/a?b", "").field("location"),
            Some(expected)
        );
    }
}

#[test]
fn challenges_are_served_from_the_webroot_of_the_client() {
    let (origin, directory) = (Origin::plain(), tempfile::tempdir().expect("a directory"));
    let challenges = directory.path().join(".well-known/acme-challenge");
    fs::create_dir_all(&challenges).expect("a directory");
    fs::write(challenges.join("tok-en_1"), "tok-en_1.hash").expect("written");
    fs::write(directory.path().join("secret"), "secret").expect("written");
    let gate = Setup::before(origin.address)
        .listeners("{ address: 127.0.0.1:0, redirect: https }")
        .settings(&format!("acme_webroot: {}", directory.path().display()))
        .start();
    let get = |target: &str| gate.get("shop.example", target, "");
    let found = get("/.well-known/acme-challenge/tok-en_1");
    assert_eq!((found.status, found.text()), (200, "tok-en_1.hash"));
    // What is no challenge is led to https like every other request.
    let others = [
        ("other", 404),
        ("../../secret", 301),
        ("..%2f..%2fsecret", 301),
        ("", 301),
        ("tok-en_1/", 301),
        ("a b", 400),
    ];
    for (target, status) in others {
        let answer = get(&format!("/.well-known/acme-challenge/{target}"));
        assert_eq!(answer.status, status, "{target}");
    }
    let gate = Setup::before(origin.address)
        .settings(&format!("acme_webroot: {}", directory.path().display()))
        .start();
    let over_http2 =
        Http2::open(gate.address).get("shop.example", "/.well-known/acme-challenge/tok-en_1", &[]);
    assert_eq!(
        (over_http2.status, over_http2.text()),
        (200, "tok-en_1.hash")
    );
    assert_eq!(get("/").field("location"), Some("https://shop.example/"));
    assert!(origin.received().is_empty());
}

#[test]
fn handshake_that_stalls_or_is_none_is_ended() {
    let origin = Origin::plain();
    let (authority, directory) = (Authority::new(), tempfile::tempdir().expect("a directory"));
    authority.certify(directory.path(), "shop", &["shop.example"], 2100);
    let gate = Setup::before(origin.address)
        .listeners(&listeners(directory.path(), &["shop"], ""))
        .settings("limits: { handshake: 300ms }")
        .start();
    let mut silent = gate.connect();
    let mut begun = gate.connect();
    begun.send_bytes(&[0x16, 3, 1, 2, 0, 1, 0]);
    assert!(silent.is_closed() && begun.is_closed());
    gate.wait_for_metric(
        "crawlgate_connections_closed_total{reason=\"handshake_timeout\"}",
        2.0,
    );
    let mut plain = gate.connect();
    plain.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let answer = plain.response("GET");
    assert_eq!(answer.status, 400, "{}", answer.text());
    gate.wait_for_metric(
        "crawlgate_connections_closed_total{reason=\"handshake\"}",
        1.0,
    );
    let mut connection =
        TlsConnection::open(gate.address, "shop.example", &authority.client(&[], &BOTH))
            .expect("a connection");
    assert!(get(&mut connection, "shop.example", "/", BROWSER).starts_with("HTTP/1.1 200"));
    gate.signal("TERM");
    assert!(connection.is_closed(), "a stop says goodbye");
}

#[test]
fn failure_pages_have_hsts_and_the_log_says_which_tls_was_used() {
    let settings = "logs: { access: access.log }";
    let https = before(Origin::nowhere(), ", hsts: 180d", settings, Origin::plain());
    for (version, written) in [("--http1.1", "1.1"), ("--http2", "2")] {
        for tls in ["1.2", "1.3"] {
            let target = format!("https://shop.example/{written}/{tls}");
            let flags = ["-i", version, &format!("--tlsv{tls}"), "--tls-max", tls];
            let failed = https.curl(&flags, &target).to_ascii_lowercase();
            assert!(failed.contains(" 502"), "{failed}");
            assert!(
                failed.contains("strict-transport-security: max-age=15552000\r\n"),
                "{failed}"
            );
            let line = format!(
                "\"target\":\"/{written}/{tls}\",\"http\":\"{written}\",\"tls\":\"{tls}\",\"status\":502"
            );
            eventually(&line, || {
                read(&https.gate.path("access.log"))
                    .contains(&line)
                    .then_some(())
            });
        }
    }
    // A request that is refused before it is judged, by the edge and by the gateway.
    for version in ["--http1.1", "--http2"] {
        let refused = https
            .curl(&["-i", version, "-X", "TRACE"], "https://shop.example/")
            .to_ascii_lowercase();
        assert!(refused.contains("strict-transport-security"), "{refused}");
    }
    https.http("GET", "shop.example", "/clear", "");
    let line = "\"target\":\"/clear\",\"http\":\"1.1\",\"tls\":null";
    eventually(line, || {
        read(&https.gate.path("access.log"))
            .contains(line)
            .then_some(())
    });
}
