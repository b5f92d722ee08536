//! Spellings of a path: whatever a real server resolves to a disallowed file, no crawler gets by
//! another spelling.

use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::program::caddy_with_files;
use crate::proxy::support::{Connection, Origin, Setup};
use std::io::Write;
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
    (
        response.status,
        String::from_utf8_lossy(&response.body).into_owned(),
    )
}

/// Spellings that go by way of what an allow-list allows.
const BY_WAY_OF_THE_OPEN: [&str; 9] = [
    "/public/../private.txt",
    "/public/%2e%2e/private.txt",
    "/public/..%2fprivate.txt",
    "/public/%2e%2E%2Fprivate.txt",
    "/public//../private.txt",
    "/public/./../private.txt",
    "/public/x/../../private.txt",
    "/public/.//..//private.txt",
    "/public/..;/private.txt",
];

/// Sends each spelling to a server directly and through crawlgate; returns how many the server
/// resolves to the file.
fn resolved(server: SocketAddr) -> usize {
    resolved_despite(server, "disallow: /private.txt", &SPELLINGS)
}

/// The same with an allow-list.
fn resolved_despite_list(server: SocketAddr) -> usize {
    let spellings = [&SPELLINGS[..], &BY_WAY_OF_THE_OPEN].concat();
    resolved_despite(server, "disallow: /, allow: /public/", &spellings)
}

fn resolved_despite(server: SocketAddr, rules: &str, spellings: &[&str]) -> usize {
    let policy = format!(
        "robots: {{ origin: replace, groups: {{ agents: GPTBot, {rules} }} }}\nenforcement: {{ mode: enforce }}\n"
    );
    let gate = Setup::before(server).policy("site", &policy).start();
    let mut resolved = 0;
    for spelling in spellings {
        let (_, direct) = get(server, spelling);
        let (status, through) = get(gate.address, spelling);
        assert!(!through.contains(SECRET), "{rules}: {spelling}");
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
    let count = resolved_despite_list(nginx.address);
    assert!(count > 25, "nginx resolves {count} of the spellings");
}

#[test]
fn no_spelling_of_a_path_carries_a_crawler_past_a_rule_to_caddy() {
    let caddy = caddy_with_files(&[
        ("private.txt", SECRET),
        ("robots.txt", ""),
        ("x/y/page.html", ""),
    ]);
    let count = resolved(caddy.address);
    assert!(count > 15, "Caddy resolves {count} of the spellings");
    let count = resolved_despite_list(caddy.address);
    assert!(count > 18, "Caddy resolves {count} of the spellings");
}

#[test]
fn spellings_of_robots_txt_get_the_same_file_as_robots_txt() {
    let nginx = Nginx::start(None);
    nginx.write("robots.txt", "the file of the origin");
    let gate = Setup::before(nginx.address)
        .policy("site", "robots: { origin: replace, groups: { agents: \"*\", disallow: / } }\nenvironment: staging\n")
        .start();
    let file = gate.get("shop.example", "/robots.txt", "");
    for spelling in [
        "//robots.txt",
        "/./robots.txt",
        "/x/../robots.txt",
        "/%72obots.txt",
        "/x%2f..%2Frobots%2etxt",
    ] {
        assert!(
            get(nginx.address, spelling).1.contains("of the origin"),
            "{spelling}"
        );
        assert_eq!(
            get(gate.address, spelling),
            (200, file.text().to_owned()),
            "{spelling}"
        );
    }
    // Origins of another make answer these with it.
    for spelling in [
        "/robots.txt;x",
        "/;x/robots.txt",
        "/x/..;/robots.txt",
        "/robots.txt/.",
        "/robots.txt/x/..",
    ] {
        assert_eq!(
            get(gate.address, spelling),
            (200, file.text().to_owned()),
            "{spelling}"
        );
    }
}

/// As Tomcat does: parameters are taken away, and then dot segments.
#[test]
fn segment_parameters_do_not_bypass_a_rule() {
    let origin = Origin::start(|request, stream| {
        let path = request.target().split('?').next().unwrap_or_default();
        let mut segments = Vec::new();
        for segment in path
            .split('/')
            .map(|segment| segment.split(';').next().unwrap_or_default())
        {
            match segment {
                "" | "." => {}
                ".." => drop(segments.pop()),
                _ => segments.push(segment),
            }
        }
        let body = if segments.join("/") == "private/index.html" {
            SECRET
        } else {
            ""
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).is_ok()
    });
    let before = |rules: &str| {
        let robots =
            format!("robots: {{ origin: replace, groups: {{ agents: GPTBot, {rules} }} }}\n");
        Setup::before(origin.address)
            .policy(
                "site",
                &format!("{robots}enforcement: {{ mode: enforce }}\n"),
            )
            .start()
    };
    let gate = before("disallow: /private/");
    let listed = before("disallow: /, allow: [/public/, '/*.css$']");
    for spelling in [
        "/private/index.html;x.css",
        "/private/index.html;.css",
        "/public/..;/private/index.html;x",
    ] {
        assert!(
            get(origin.address, spelling).1.contains(SECRET),
            "{spelling}"
        );
        assert_eq!(get(listed.address, spelling).0, 403, "{spelling}");
    }
    assert_eq!(get(listed.address, "/public/a;jsessionid=1").0, 200);
    for spelling in [
        "/private;x/index.html",
        "/;x/private/index.html",
        "/x/..;/private/index.html",
        "/x/..;a=b/private;c=d/index.html;e",
        "/private;%2F../index.html",
        "//;x/./private;/index.html",
    ] {
        assert!(
            get(origin.address, spelling).1.contains(SECRET),
            "{spelling}"
        );
        assert_eq!(get(gate.address, spelling).0, 403, "{spelling}");
    }
}
