//! Spellings of a path: whatever a real server resolves to a disallowed file, no crawler gets by another spelling.

use crate::support::nginx::Nginx;
use crate::support::program::caddy_with_files;
use crate::support::{Connection, Setup};
use std::net::SocketAddr;

const SECRET: &str = "the secret page";

/// Other ways to write `/private.txt`, and some that are none.
const SPELLINGS: [&str; 49] = [
    "/private.txt",
    "//private.txt",
    "///private.txt",
    "/./private.txt",
    "/././private.txt",
    "/x/../private.txt",
    "/x/y/../../private.txt",
    "/x/%2e%2e/private.txt",
    "/x/.%2E/private.txt",
    "/%2e/private.txt",
    "/%2E//private.txt",
    "/%70rivate.txt",
    "/%50rivate.txt",
    "/p%72ivate.txt",
    "/private%2etxt",
    "/private%2Etxt",
    "/pr%69vate%2e%74xt",
    "/private.txt?",
    "/private.txt?a=b",
    "/private.txt?/../public.txt",
    "/private.txt;a=b",
    "/;a=b/private.txt",
    "/private.txt/",
    "/private.txt/.",
    "/private.txt/..",
    "/private.txt%20",
    "/private.txt%00",
    "/private.txt%00.html",
    "/private.txt#a",
    "/%2fprivate.txt",
    "/%2Fprivate.txt",
    "/x%2f..%2fprivate.txt",
    "/..%2fprivate.txt",
    "/%5cprivate.txt",
    "/\\private.txt",
    "/%c0%afprivate.txt",
    "/%c1%b0rivate.txt",
    "/%u0070rivate.txt",
    "/%2570rivate.txt",
    "http://shop.example/x/..//private.txt",
    "/x/%2E%2e/private.txt",
    "/%2e%2E/private.txt",
    "/%2e%2e%2fprivate.txt",
    "/x%2F%2e%2E%2Fprivate.txt",
    "/%e0%80%afprivate.txt",
    "/%f0%80%80%afprivate.txt",
    // By way of the file that is free for every crawler.
    "/robots.txt/../private.txt",
    "/robots.txt%2f..%2fprivate.txt",
    "/robots.txt?/../private.txt",
];

/// The answer to a GET of this target.
fn get(address: std::net::SocketAddr, target: &str) -> (u16, String) {
    let mut connection = Connection::open(address);
    connection.send(&format!(
        "GET {target} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: GPTBot/1.0\r\nConnection: close\r\n\r\n"
    ));
    let response = connection.response("GET");
    (response.status, String::from_utf8_lossy(&response.body).into_owned())
}

/// Sends each spelling to a server directly and through crawlgate; returns how many the server resolves to the file.
fn resolved(server: SocketAddr) -> usize {
    let policy = "robots: { origin: replace, groups: { agents: GPTBot, disallow: /private.txt } }\nenforcement: { mode: enforce }\n";
    let gate = Setup::before(server).policy("site", policy).start();
    let mut resolved = 0;
    for spelling in SPELLINGS {
        let (_, direct) = get(server, spelling);
        let (status, through) = get(gate.address, spelling);
        assert!(!through.contains(SECRET), "{spelling}");
        if direct.contains(SECRET) {
            resolved += 1;
            assert!([400, 403].contains(&status), "{spelling}: {status}");
        }
    }
    resolved
}

#[test]
fn no_spelling_of_a_path_carries_a_crawler_past_a_rule_to_nginx() {
    let nginx = Nginx::start(None);
    nginx.write("private.txt", SECRET);
    nginx.write("robots.txt", "");
    let count = resolved(nginx.address);
    assert!(count > 20, "nginx resolves {count} of the spellings");
}

#[test]
fn no_spelling_of_a_path_carries_a_crawler_past_a_rule_to_caddy() {
    let caddy = caddy_with_files(&[("private.txt", SECRET), ("robots.txt", ""), ("x/y/page.html", "")]);
    let count = resolved(caddy.address);
    assert!(count > 15, "Caddy resolves {count} of the spellings");
}

#[test]
fn spellings_of_robots_txt_get_the_same_file_as_robots_txt() {
    let nginx = Nginx::start(None);
    nginx.write("robots.txt", "the file of the origin");
    let gate = Setup::before(nginx.address)
        .policy("site", "robots: { origin: replace, groups: { agents: \"*\", disallow: / } }\nenvironment: staging\n")
        .start();
    let file = gate.get("shop.example", "/robots.txt", "");
    for spelling in ["//robots.txt", "/./robots.txt", "/x/../robots.txt", "/%72obots.txt", "/x%2f..%2Frobots%2etxt"] {
        assert!(get(nginx.address, spelling).1.contains("of the origin"), "{spelling}");
        assert_eq!(get(gate.address, spelling), (200, file.text().to_owned()), "{spelling}");
    }
}
