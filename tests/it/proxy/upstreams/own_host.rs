//! An origin that wants its own Host: it gets that one on every way, and its clients and crawlers
//! never see it.

use crate::proxy::support::{Gate, HOST, Http2, Origin, Received, Setup, eventually, sum_of};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

const OWN: &str = "app-1234.platform.example";
/// The forwarder and Pingora's proxy.
const WAYS: [&str; 2] = ["on", "off"];

/// An application that knows nothing but its Host: another one is not served, and URLs have it.
fn application(wanted: &'static str) -> Origin {
    Origin::start(move |request: &Received, stream: &mut TcpStream| {
        let host = request.field("host").unwrap_or_default();
        let answer = match request.target() {
            _ if host != wanted => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "/robots.txt" => {
                let lines = [
                    "User-agent: *".to_owned(),
                    "Disallow: /theirs/".to_owned(),
                    format!("Host: {host}"),
                    format!("License: https://{host}/license.xml"),
                    format!("Sitemap: https://{host}/sitemap.xml"),
                ];
                let body = lines.join("\n");
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
            "/socket" => {
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n".to_owned()
            }
            target => format!(
                "HTTP/1.1 302 Found\r\nLocation: https://{host}/login?next={target}\r\nContent-Location: //{host}/a\r\n\
                 Refresh: 1; url=http://{host}/\r\nContent-Length: 0\r\n\r\n"
            ),
        };
        stream.write_all(answer.as_bytes()).is_ok()
    })
}

fn gate(server: SocketAddr, wanted: &str, more: &str) -> Gate {
    let origins = format!(
        "origins: {{ hosts: [{HOST}], servers: ['http://{server}'], host: '{wanted}'{more} }}"
    );
    Setup::before(server)
        .with_origins(&origins)
        .settings("threads: 1")
        .start()
}

fn gate_with(server: SocketAddr, direct: &str) -> Gate {
    let origins =
        format!("origins: {{ hosts: [{HOST}], servers: ['http://{server}'], host: {OWN} }}");
    Setup::before(server)
        .with_origins(&origins)
        .settings(&format!("threads: 1\ndirect_forwarding: {direct}"))
        .start()
}

#[test]
fn wanted_host_reaches_the_origin_and_no_client() {
    for direct in WAYS {
        let origin = application(OWN);
        let gate = gate_with(origin.address, direct);
        let mut old = gate.connect();
        old.send(&format!("GET /a HTTP/1.0\r\nHost: {HOST}\r\n\r\n"));
        let http2 = Http2::open(gate.address);
        for (version, response) in [
            ("1.1", gate.get(HOST, "/a", "")),
            ("1.0", old.response("GET")),
            ("2", http2.get(HOST, "/a", &[])),
        ] {
            assert_eq!(response.status, 302, "{direct}, {version}");
            let location = format!("https://{HOST}/login?next=/a");
            assert_eq!(
                response.field("location"),
                Some(location.as_str()),
                "{direct}, {version}"
            );
            assert_eq!(
                response.field("content-location"),
                Some(format!("//{HOST}/a").as_str()),
                "{direct}, {version}"
            );
            assert_eq!(
                response.field("refresh"),
                Some(format!("1; url=http://{HOST}/").as_str()),
                "{direct}, {version}"
            );
            let received = origin.last();
            assert_eq!(received.field("host"), Some(OWN), "{direct}, {version}");
            assert_eq!(
                received.field("x-forwarded-host"),
                Some(HOST),
                "{direct}, {version}"
            );
        }
    }
}

#[test]
fn websocket_and_old_client_without_host_get_the_wanted_one() {
    let origin = application(OWN);
    let origins = format!(
        "origins: {{ servers: ['http://{}'], host: {OWN} }}",
        origin.address
    );
    let gate = Setup::before(origin.address)
        .with_origins(&origins)
        .settings("threads: 1")
        .start();
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    assert_eq!(gate.ask("GET", HOST, "/socket", fields).status, 101);
    let mut old = gate.connect();
    old.send("GET /a HTTP/1.0\r\n\r\n");
    assert_eq!(old.response("GET").status, 302);
    let received = origin.last();
    assert_eq!(
        (received.field("host"), received.field("x-forwarded-host")),
        (Some(OWN), None)
    );
}

#[test]
fn wanted_host_with_a_port_or_of_ipv6_is_replaced() {
    for wanted in ["app.internal:8080", "[2001:db8::1]:8080"] {
        let origin = application(wanted);
        let gate = gate(origin.address, wanted, "");
        let response = gate.get(HOST, "/a", "");
        assert_eq!(
            response.field("location"),
            Some(format!("https://{HOST}/login?next=/a").as_str()),
            "{wanted}"
        );
        // A port speaks one scheme: that of the client.
        let with_port = format!("{HOST}:81");
        let response = gate.get(&with_port, "/a", "");
        assert_eq!(
            response.field("location"),
            Some(format!("http://{HOST}:81/login?next=/a").as_str()),
            "{wanted}"
        );
    }
}

#[test]
fn wanted_host_that_is_public_stays_in_a_location() {
    let origin = application("www.site.test");
    let server = origin.address;
    let origins = format!(
        "origins: {{ hosts: [site.test, www.site.test], servers: ['http://{server}'], host: www.site.test }}"
    );
    let listed = Setup::before(server).with_origins(&origins).start();
    let origins = format!("origins: {{ servers: ['http://{server}'], host: www.site.test }}");
    let policy = "hosts: [site.test, www.site.test]\n";
    let by_policy = Setup::before(server)
        .with_origins(&origins)
        .policy("shop", policy)
        .start();
    for gate in [listed, by_policy] {
        let response = gate.get("site.test", "/a", "");
        assert_eq!(
            response.field("location"),
            Some("https://www.site.test/login?next=/a")
        );
        assert!(
            gate.get("site.test", "/robots.txt", "")
                .text()
                .contains("\nSitemap: https://www.site.test/sitemap.xml\n")
        );
    }
}

#[test]
fn checks_and_robots_txt_use_the_wanted_host() {
    let origin = application(OWN);
    let gate = gate(
        origin.address,
        OWN,
        ", health: { path: /up, every: 100ms, unhealthy_after: 1 }",
    );
    let checks = |result: &str| {
        format!("crawlgate_upstream_checks_total{{server=\"1\",result=\"{result}\"}}")
    };
    eventually("a check", || {
        sum_of(&gate.metrics(), &checks("ok")).filter(|checks| *checks > 0.0)
    });
    assert_eq!(
        sum_of(&gate.metrics(), &checks("status")).unwrap_or_default(),
        0.0,
        "404 for another host"
    );
    let served = gate.get(HOST, "/robots.txt", "");
    let text = served.text();
    assert!(
        text.contains(&format!("\nSitemap: https://{HOST}/sitemap.xml\n")),
        "{text}"
    );
    assert!(text.contains(&format!("\nHost: {HOST}\n")), "{text}");
    assert!(
        text.contains(&format!("\nLicense: https://{HOST}/license.xml\n")),
        "{text}"
    );
    assert!(
        text.contains("\nDisallow: /theirs/\n") && !text.contains(OWN),
        "{text}"
    );
    let fetch = origin.own_for("/robots.txt");
    assert_eq!(
        (fetch.field("host"), fetch.field("x-forwarded-host")),
        (Some(OWN), Some(HOST))
    );
    assert_eq!(origin.own_for("/up").field("host"), Some(OWN));
}

#[test]
fn wanted_host_of_a_site_without_hosts_is_left_out() {
    let origin = application(OWN);
    let origins = format!(
        "origins: {{ servers: ['http://{}'], host: {OWN} }}",
        origin.address
    );
    let gate = Setup::before(origin.address).with_origins(&origins).start();
    let served = gate.get(HOST, "/robots.txt", "");
    assert!(
        served.text().contains("\nDisallow: /theirs/\n") && !served.text().contains(OWN),
        "{}",
        served.text()
    );
    let status = gate.command(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(
        status["sites"][0]["origin_robots"]["unpublished_lines"],
        serde_json::json!([3, 4, 5]),
        "{status}"
    );
}
