//! The real nginx with the files of `deploy/nginx`.

use super::{OWN_COMMAND, OWN_FETCH, POLICY, deciding};
use crate::proxy::support::program::{Prepared, Program, deployed, nginx};
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, Gate, HOST, Origin, Setup};
use std::net::SocketAddr;

/// nginx in front of an origin, beside a decision service.
pub fn start(service: SocketAddr, origin: SocketAddr) -> Program {
    Program::start(|prepared| {
        write_deployed(prepared, service);
        let site = [
            ("listen 80", format!("listen {}", prepared.address)),
            ("shop.example", HOST.to_owned()),
            ("127.0.0.1:3000", origin.to_string()),
        ];
        prepared.write("site.conf", deployed("nginx/site.conf", &site));
        nginx(
            prepared,
            "  include crawlgate-http.conf;\n  include site.conf;",
        )
    })
}

/// Writes the two files of `deploy/nginx` that ask a decision service.
fn write_deployed(prepared: &Prepared, service: SocketAddr) {
    let http = [("127.0.0.1:9180", service.to_string())];
    prepared.write(
        "crawlgate-http.conf",
        deployed("nginx/crawlgate-http.conf", &http),
    );
    prepared.write(
        "crawlgate-server.conf",
        deployed("nginx/crawlgate-server.conf", &[]),
    );
}

/// nginx beside a decision service with this policy.
fn with_policy(policy: &str) -> (Gate, Origin, Program) {
    let gate = Setup::deciding().policy("site", policy).start();
    let origin = Origin::plain();
    let proxy = start(gate.address, origin.address);
    (gate, origin, proxy)
}

#[test]
fn refusals_have_the_status_body_and_type_of_crawlgates_own() {
    let (_gate, origin, proxy) = with_policy(POLICY);
    let refused = proxy.fetch_as(GPTBOT, "/page");
    assert_eq!(refused.status, 403);
    assert!(
        refused
            .text()
            .contains("Rule:  Disallow: /\nGroup: GPTBot\n"),
        "{}",
        refused.text()
    );
    assert_eq!(
        refused.field("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let head = proxy.ask("HEAD", HOST, "/page", &format!("User-Agent: {GPTBOT}\r\n"));
    assert_eq!((head.status, head.body.len()), (403, 0));
    let post = proxy.ask(
        "POST",
        HOST,
        "/page",
        &format!("User-Agent: {GPTBOT}\r\nContent-Length: 0\r\n"),
    );
    assert_eq!(post.status, 403);
    assert!(origin.received().is_empty());
}

#[test]
fn other_status_and_retry_after_come_through() {
    let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/private/] }] }\n\
                  enforcement: { mode: enforce, disallowed: { status: 429, retry_after: 7m } }\n";
    let (_gate, _origin, proxy) = with_policy(policy);
    let refused = proxy.fetch_as(BINGBOT, "/private/");
    assert_eq!(
        (refused.status, refused.field("retry-after")),
        (429, Some("420"))
    );
    assert!(
        refused.text().contains("Rule:  Disallow: /private/"),
        "{}",
        refused.text()
    );
    assert_eq!(proxy.fetch_as(BINGBOT, "/").status, 200);
}

#[test]
fn paused_site_answers_503_and_keeps_its_robots_txt() {
    let (_gate, _origin, proxy) = with_policy(&format!("{POLICY}pause: {{ retry_after: 2h }}\n"));
    let paused = proxy.fetch_as(BINGBOT, "/");
    assert_eq!(
        (paused.status, paused.field("retry-after")),
        (503, Some("7200"))
    );
    assert_eq!(proxy.fetch_as(BINGBOT, "/robots.txt").status, 200);
    assert_eq!(proxy.fetch_as(BROWSER, "/").status, 200);
}

#[test]
fn location_of_the_question_is_closed_to_clients() {
    let (_gate, _origin, proxy) = with_policy(POLICY);
    let closed = proxy.fetch_as(BROWSER, "/_crawlgate");
    assert_eq!(closed.status, 404);
    assert_eq!(proxy.fetch_as(GPTBOT, "/_crawlgate").status, 404);
}

#[test]
fn robots_txt_is_crawlgates_byte_for_byte() {
    let (gate, origin, proxy) = with_policy(POLICY);
    assert_eq!(
        proxy.fetch_as(BINGBOT, "/%72obots.txt").body,
        gate.fetch_as(BINGBOT, "/robots.txt").body
    );
    let (ours, theirs) = (
        gate.fetch_as(BINGBOT, "/robots.txt"),
        proxy.fetch_as(BINGBOT, "/robots.txt"),
    );
    assert_eq!((theirs.status, &theirs.body), (200, &ours.body));
    for name in ["etag", "last-modified", "cache-control", "content-type"] {
        assert_eq!(theirs.fields(name), ours.fields(name));
    }
    assert!(origin.received().is_empty());
}

#[test]
fn own_fetch_gets_508_and_a_command_the_file() {
    let (_gate, origin, proxy) = with_policy(POLICY);
    assert_eq!(proxy.fetch_as(OWN_FETCH, "/robots.txt").status, 508);
    assert_eq!(proxy.fetch_as(OWN_COMMAND, "/robots.txt").status, 200);
    assert!(origin.received().is_empty());
}

#[test]
fn site_sends_its_own_files_where_crawlgate_has_none() {
    let (gate, origin, proxy) = with_policy(&format!("hosts: [{HOST}]\n{POLICY}"));
    for (host, target) in [
        ("other.test", "/robots.txt?x"),
        ("other.test", "/.well-known/tdmrep.json"),
        (HOST, "/.well-known/tdmrep.json"),
        (HOST, "/.well-known/tdmrep.json?x"),
    ] {
        let sent = proxy.ask("GET", host, target, &format!("User-Agent: {BINGBOT}\r\n"));
        assert_eq!(
            (sent.status, sent.field("crawlgate")),
            (200, None),
            "{host}"
        );
        assert_eq!(origin.last().target(), target);
    }
    assert_eq!(proxy.fetch_as(BINGBOT, "/_crawlgate_file").status, 404);
    // Each was asked about once.
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="pass",crawler="bingbot",kind="allowed",site="site"}"#,
        2.0,
    );
}

#[test]
fn hanging_crawlgate_delays_a_page_once() {
    // Accepts connections and never answers.
    let hanging = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let service = hanging.local_addr().expect("an address");
    let proxy = Program::start(|prepared| {
        write_deployed(prepared, service);
        prepared.write("site/index.html", "a page");
        let address = prepared.address;
        let root = prepared.path("site");
        let server = format!("listen {address}; root {root}; include crawlgate-server.conf;");
        nginx(
            prepared,
            &format!("  include crawlgate-http.conf;\n  server {{ {server} }}"),
        )
    });
    let page = proxy.fetch_as(BINGBOT, "/");
    assert_eq!(
        (page.status, page.field("crawlgate")),
        (200, Some("unavailable"))
    );
    // The question for `/`, and none for `/index.html`.
    hanging.set_nonblocking(true).expect("a listener");
    let questions = std::iter::from_fn(|| hanging.accept().ok());
    assert_eq!(questions.count(), 1, "{}", proxy.log());
}

/// Under `satisfy any`, crawlgate's answer alone would open a page that has a password.
#[test]
fn page_with_a_password_is_not_opened_by_crawlgate() {
    let gate = deciding();
    let proxy = Program::start(|prepared| {
        write_deployed(prepared, gate.address);
        prepared.write("site/index.html", "a page");
        prepared.write("site/office/index.html", "a page");
        prepared.write("passwords", "user:{PLAIN}password\n");
        let address = prepared.address;
        let root = prepared.path("site");
        let password = format!(
            "auth_basic site; auth_basic_user_file {};",
            prepared.path("passwords")
        );
        let server = format!(
            "listen {address}; root {root}; include crawlgate-server.conf; {password}\n\
             location /office/ {{ satisfy any; deny all; auth_request off; }}"
        );
        nginx(
            prepared,
            &format!("  satisfy any;\n  include crawlgate-http.conf;\n  server {{ {server} }}"),
        )
    });
    for target in ["/", "/office/"] {
        let refused = proxy.fetch_as(BROWSER, target);
        assert_eq!(refused.status, 401, "{target}\n{}", proxy.log());
        let fields = "Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n";
        assert_eq!(proxy.ask("GET", HOST, target, fields).status, 200);
    }
}

#[test]
fn tags_go_by_the_type_that_the_origin_says() {
    let gate = deciding();
    let origin = Origin::start(|request, stream| {
        let media = match request.target() {
            "/download" => "application/pdf",
            "/picture" => "image/webp",
            "/missing.pdf" => "text/html; charset=utf-8",
            _ => "text/html",
        };
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: 0\r\n\r\n");
        std::io::Write::write_all(stream, answer.as_bytes()).is_ok()
    });
    let proxy = start(gate.address, origin.address);
    for (target, tags) in [
        ("/download", vec!["noindex, noarchive"]),
        ("/picture", vec!["noimageindex"]),
        ("/missing.pdf", vec![]),
        ("/drafts/page", vec!["noindex, googlebot: nofollow"]),
    ] {
        let response = proxy.fetch_as(BROWSER, target);
        assert_eq!(
            (response.status, response.fields("x-robots-tag")),
            (200, tags),
            "{target}"
        );
        assert_eq!(response.field("crawlgate"), None);
    }
}

#[test]
fn request_that_nginx_redirects_inside_is_asked_about_once() {
    let gate = deciding();
    let proxy = Program::start(|prepared| {
        write_deployed(prepared, gate.address);
        prepared.write("site/drafts/index.html", "a page");
        prepared.write("site/404.html", "no page");
        let address = prepared.address;
        let root = prepared.path("site");
        let server = format!(
            "listen {address}; root {root}; error_page 404 /404.html; include crawlgate-server.conf;"
        );
        nginx(
            prepared,
            &format!(
                "  default_type text/html; include crawlgate-http.conf;\n  server {{ {server} }}"
            ),
        )
    });
    for (path, status, tags) in [
        ("/drafts/", 200, vec!["noindex, googlebot: nofollow"]),
        ("/missing", 404, vec![]),
        ("/private/", 403, vec![]),
    ] {
        let response = proxy.fetch_as(BINGBOT, path);
        assert_eq!(
            (response.status, response.fields("x-robots-tag")),
            (status, tags),
            "{path} {}",
            proxy.log()
        );
        assert_eq!(response.field("crawlgate"), None);
    }
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="pass",crawler="bingbot",kind="allowed",site="site"}"#,
        2.0,
    );
}

#[test]
fn requests_pass_and_say_so_while_crawlgate_is_down() {
    let origin = Origin::plain();
    let proxy = start(Origin::nowhere(), origin.address);
    let passed = proxy.fetch_as(GPTBOT, "/page");
    assert_eq!(
        (passed.status, passed.field("crawlgate")),
        (200, Some("unavailable"))
    );
    assert_eq!(proxy.fetch_as(GPTBOT, "/robots.txt").status, 502);
}

#[test]
fn answers_of_nginx_itself_do_not_name_crawlgate() {
    let (_gate, origin, proxy) = with_policy(POLICY);
    for (method, target, fields, status) in [
        ("GET", "/ok#/../private/x", "", 400),
        ("GET", "/", "Host: other.example\r\n", 400),
        ("TRACE", "/", "", 405),
        ("POST", "/", "Transfer-Encoding: gzip\r\n", 501),
    ] {
        let answer = proxy.ask(
            method,
            HOST,
            target,
            &format!("User-Agent: {BROWSER}\r\n{fields}"),
        );
        assert_eq!(
            (answer.status, answer.field("crawlgate")),
            (status, None),
            "{method} {target} {fields}"
        );
    }
    assert!(origin.received().is_empty());
}

#[test]
fn application_gets_the_user_agent_that_was_judged() {
    let (_gate, origin, proxy) = with_policy(POLICY);
    let both = |agents: [&str; 2]| {
        let lines = agents.map(|agent| format!("User-Agent: {agent}\r\n"));
        proxy.ask("GET", HOST, "/page", &lines.concat()).status
    };
    assert_eq!(both([GPTBOT, BROWSER]), 403);
    assert!(origin.received().is_empty());
    // nginx 1.23 and later joins them, and then this is GPTBot too.
    if both([BROWSER, GPTBOT]) == 200 {
        let received = origin.last();
        let agents: Vec<&str> = received
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("user-agent"))
            .map(|(_, agent)| agent.as_str())
            .collect();
        assert_eq!(agents, [BROWSER]);
    }
}

#[test]
fn client_that_names_another_address_is_judged_by_its_own() {
    let policy = "crawlers: [{ token: ShopBot, networks: [203.0.113.0/24] }]\n\
                  robots: { origin: replace, groups: [{ agents: '*', disallow: [/x] }] }\n\
                  enforcement: { mode: enforce, unverified: refuse }\n";
    let (_gate, _origin, proxy) = with_policy(policy);
    let fields = "User-Agent: ShopBot/1.0\r\nX-Forwarded-For: 203.0.113.7\r\nX-Original-URI: /\r\n";
    assert_ne!(proxy.ask("GET", HOST, "/page", fields).status, 200);
}
