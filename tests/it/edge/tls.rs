//! TLS: two sites with two certificates, renewal, redirects, versions.

use crate::support::{Authority, BROWSER, Gate, Origin, Response, Setup, TlsConnection, eventually};
use rustls::version::{TLS12, TLS13};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BOTH: [&rustls::SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// Listeners for https with these certificates, and for http that leads there.
fn listeners(directory: &Path, names: &[&str], more: &str) -> String {
    let file = |name: &str, kind: &str| directory.join(format!("{name}.{kind}")).display().to_string();
    let certificates: Vec<String> =
        names.iter().map(|name| format!("{{ cert: {}, key: {} }}", file(name, "pem"), file(name, "key"))).collect();
    format!(
        "[{{ address: 127.0.0.1:0, tls: {{ certificates: [{}]{more} }} }}, {{ address: 127.0.0.1:0, redirect: https }}]",
        certificates.join(", ")
    )
}

struct Https {
    authority: Authority,
    directory: tempfile::TempDir,
    gate: Gate,
    origin: Origin,
}

fn https(more: &str) -> Https {
    let (authority, directory, origin) = (Authority::new(), tempfile::tempdir().expect("a directory"), Origin::plain());
    authority.certify(directory.path(), "shop", &["shop.example", "*.shop.example"], 2100);
    authority.certify(directory.path(), "blog", &["blog.example"], 2100);
    let gate = Setup::before(origin.address)
        .policy("site", "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: / }] }\nenforcement: { mode: enforce }\n")
        .listeners(&listeners(directory.path(), &["shop", "blog"], more))
        .start();
    Https { authority, directory, gate, origin }
}

impl Https {
    fn open(&self, host: &str) -> std::io::Result<TlsConnection> {
        TlsConnection::open(self.gate.address, host, &self.authority.client(&["http/1.1"], &BOTH))
    }

    fn certificate(&self, host: &str) -> Vec<u8> {
        self.open(host).expect("a connection").certificate()
    }

    /// A request on the listener for http.
    fn http(&self, method: &str, host: &str, target: &str, fields: &str) -> Response {
        let mut connection = crate::support::Connection::open(self.gate.listening[1]);
        connection.send(&format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n"));
        connection.response(method)
    }

    fn curl(&self, arguments: &[&str], url: &str) -> String {
        let authority = self.directory.path().join("authority.pem");
        fs::write(&authority, self.authority.pem()).expect("written");
        let port = self.gate.address.port();
        let output = Command::new("curl")
            .args(["-s", "--max-time", "30", "--cacert"])
            .arg(&authority)
            .args(["--connect-to", &format!("::127.0.0.1:{port}")])
            .args(arguments)
            .arg(url)
            .output()
            .expect("curl");
        assert!(output.status.success(), "curl {arguments:?} {url}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn get(connection: &mut TlsConnection, host: &str, target: &str, agent: &str) -> String {
    connection.send(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n\r\n"));
    connection.response()
}

#[test]
fn two_sites_have_their_own_certificates_on_one_listener() {
    let https = https(", hsts: { max_age: 180d, subdomains: yes }");
    for host in ["shop.example", "www.shop.example", "blog.example"] {
        let mut connection = https.open(host).unwrap_or_else(|error| panic!("{host}: {error}"));
        let page = get(&mut connection, host, "/page", BROWSER);
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.ends_with("hello"), "{page}");
        assert!(
            page.contains("trict-Transport-Security: max-age=15552000; includeSubDomains\r\n")
                || page
                    .to_ascii_lowercase()
                    .contains("strict-transport-security: max-age=15552000; includesubdomains\r\n"),
            "{page}"
        );
        assert_eq!(https.origin.last().field("x-forwarded-proto"), Some("https"));
        // On the same connection, what is answered here.
        let refused = get(&mut connection, host, "/page", "GPTBot");
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        assert!(refused.contains("Strict-Transport-Security: max-age=15552000"), "{refused}");
        assert!(get(&mut connection, host, "/robots.txt", "GPTBot").contains("User-agent: GPTBot"));
    }
    assert!(https.certificate("shop.example") != https.certificate("blog.example"));
    // A name that no certificate has gets the first one, which the client refuses.
    assert!(https.open("other.example").is_err());
    https
        .gate
        .wait_for_metric("crawlgate_certificate_not_after_timestamp_seconds{name=\"shop.example\"}", 4_102_444_800.0);
}

#[test]
fn versions_and_protocols_are_negotiated() {
    let https = https(", min_version: \"1.3\"");
    let with = |alpn: &[&str], version| {
        let config = https.authority.client(alpn, &[version]);
        TlsConnection::open(https.gate.address, "shop.example", &config).map(|connection| connection.protocol())
    };
    assert_eq!(with(&["h2", "http/1.1"], &TLS13).expect("TLS 1.3"), Some("h2".into()));
    assert_eq!(with(&["http/1.1"], &TLS13).expect("TLS 1.3"), Some("http/1.1".into()));
    assert_eq!(with(&[], &TLS13).expect("TLS 1.3"), None);
    assert!(with(&[], &TLS12).is_err(), "it is not allowed");
    https.gate.wait_for_metric("crawlgate_tls_handshakes_total{protocol=\"h2\",version=\"1.3\"}", 1.0);
}

#[test]
fn curl_gets_pages_over_both_versions_of_http_and_of_tls() {
    let https = https("");
    for (arguments, version) in [
        (["--http2", "--tlsv1.3"].as_slice(), "2"),
        (&["--http2", "--tlsv1.2", "--tls-max", "1.2"], "2"),
        (&["--http1.1", "--tlsv1.2"], "1.1"),
    ] {
        let arguments = [arguments, &["-A", "Firefox", "-w", " %{http_version} %{http_code}"]].concat();
        assert_eq!(https.curl(&arguments, "https://shop.example/"), format!("hello {version} 200"));
        assert_eq!(https.origin.last().field("x-forwarded-proto"), Some("https"));
        let refused =
            https.curl(&[&arguments[..], &["-A", "GPTBot", "-o", "/dev/null"]].concat(), "https://www.shop.example/");
        assert_eq!(refused, format!(" {version} 403"));
    }
}

#[test]
fn renewed_certificate_is_taken_without_losing_a_connection_and_a_bad_one_is_refused() {
    let https = https("");
    let shop = || https.certificate("shop.example");
    let (before, blog) = (shop(), https.certificate("blog.example"));
    let mut kept = https.open("shop.example").expect("a connection");
    assert!(get(&mut kept, "shop.example", "/1", BROWSER).starts_with("HTTP/1.1 200"));

    https.authority.certify(https.directory.path(), "shop", &["shop.example"], 2090);
    https.gate.signal("HUP");
    eventually("the renewed certificate", || (shop() != before).then_some(()));
    https.gate.log.wait_for("took a renewed certificate");
    assert!(https.certificate("blog.example") == blog, "the other one stays");
    assert!(get(&mut kept, "shop.example", "/2", BROWSER).starts_with("HTTP/1.1 200"), "a connection goes on");

    let renewed = shop();
    let path = |name: &str| -> PathBuf { https.directory.path().join(name) };
    for (name, what) in [("blog.key", "another key"), ("blog.pem", "no key")] {
        fs::copy(path(name), path("shop.key")).expect("copied");
        https.gate.signal("HUP");
        https.gate.wait_for_metric("crawlgate_certificates_refused", 1.0);
        assert!(shop() == renewed, "{what}");
    }
    https.gate.log.wait_for("the former certificate stays in use");
    https.authority.certify(https.directory.path(), "shop", &["shop.example"], 2001);
    https.gate.signal("HUP");
    https.gate.log.wait_for("expired on");
    assert!(shop() == renewed);
    https.authority.certify(https.directory.path(), "shop", &["shop.example"], 2095);
    https.gate.signal("HUP");
    https.gate.wait_for_metric("crawlgate_certificates_refused", 0.0);
    eventually("the renewed certificate", || (shop() != renewed).then_some(()));
}

#[test]
fn certificates_that_cannot_be_used_stop_the_start_and_the_check() {
    let (authority, directory, origin) = (Authority::new(), tempfile::tempdir().expect("a directory"), Origin::plain());
    authority.certify(directory.path(), "one", &["a.example"], 2100);
    authority.certify(directory.path(), "other", &["a.example"], 2100);
    fs::copy(directory.path().join("other.key"), directory.path().join("one.key")).expect("copied");
    let setup = Setup::before(origin.address).listeners(&listeners(directory.path(), &["one"], ""));
    let (said, status) = setup.fail();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("does not belong to the certificate"), "{said}");
    let check = || {
        let settings = directory.path().join("crawlgate.yaml");
        let text = format!("listen: {}\norigins: http://127.0.0.1:1\n", listeners(directory.path(), &["one"], ""));
        fs::write(&settings, text).expect("written");
        fs::write(directory.path().join("site.yaml"), "robots: { origin: replace }\n").expect("written");
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .arg("check")
            .arg(directory.path().join("site.yaml"))
            .arg("--config")
            .arg(&settings)
            .output()
            .expect("crawlgate");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("does not belong to the certificate"), "{said}");
    authority.certify(directory.path(), "one", &["a.example"], 2001);
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("expired on"), "{said}");
    authority.certify(directory.path(), "one", &["a.example"], 2100);
    let (code, said) = check();
    assert!(code == Some(0) && !said.contains("certificate"), "{said}");
}

#[test]
fn listener_for_http_leads_to_https_but_for_robots_txt_and_challenges() {
    let https = https("");
    let port = https.gate.address.port();
    let led = https.http("GET", "shop.example:8080", "/a?b=c", "");
    assert_eq!(led.status, 301);
    assert_eq!(led.field("location"), Some(format!("https://shop.example:{port}/a?b=c").as_str()));
    assert_eq!(https.http("POST", "shop.example", "/a", "Content-Length: 0\r\n").status, 308);
    assert_eq!(
        https.http("GET", "[::1]:80", "/", "").field("location"),
        Some(format!("https://[::1]:{port}/").as_str())
    );
    let mut http2 = crate::support::Connection::open(https.gate.listening[1]);
    http2.send_bytes(crate::support::http2::PREFACE);
    assert_eq!(http2.response("GET").status, 400);
    assert!(https.origin.received().is_empty());
    assert!(https.http("GET", "shop.example", "/robots.txt", "").text().contains("User-agent: GPTBot"));
    assert_eq!(https.http("GET", "shop.example", "/.well-known/acme-challenge/token", "").text(), "hello");
    assert_eq!(https.origin.last().field("x-forwarded-proto"), Some("http"));
    https.gate.wait_for_metric(
        "crawlgate_requests_total{action=\"redirect\",crawler=\"none\",kind=\"not_a_crawler\",site=\"unclaimed\"}",
        3.0,
    );
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
    for target in ["other", "../../secret", "..%2f..%2fsecret", "", "tok-en_1/", "a b"] {
        let answer = get(&format!("/.well-known/acme-challenge/{target}"));
        assert!([400, 404].contains(&answer.status) && !answer.text().contains("secret"), "{target}");
    }
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
    gate.wait_for_metric("crawlgate_connections_closed_total{reason=\"handshake_timeout\"}", 2.0);
    let mut plain = gate.connect();
    plain.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let answer = plain.response("GET");
    assert!(answer.status == 400 && answer.text().contains("https only"), "{}", answer.text());
    gate.wait_for_metric("crawlgate_connections_closed_total{reason=\"handshake\"}", 1.0);
    let mut connection =
        TlsConnection::open(gate.address, "shop.example", &authority.client(&[], &BOTH)).expect("a connection");
    assert!(get(&mut connection, "shop.example", "/", BROWSER).starts_with("HTTP/1.1 200"));
    gate.signal("TERM");
    assert!(connection.is_closed(), "a stop says goodbye");
}
