//! The real HAProxy with the files of `deploy/haproxy`.

use super::POLICY;
use crate::proxy::support::program::{Program, deployed, haproxy};
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, HOST, Origin, Setup};
use std::net::SocketAddr;

/// HAProxy in front of an origin, beside a decision service.
pub fn start(service: SocketAddr, origin: SocketAddr) -> Program {
    Program::start(|prepared| {
        prepared.write("crawlgate.lua", deployed("haproxy/crawlgate.lua", &[]));
        let words = [
            ("/etc/haproxy/crawlgate.lua", prepared.path("crawlgate.lua")),
            ("bind :80", format!("bind {}", prepared.address)),
            ("127.0.0.1:9180", service.to_string()),
            ("127.0.0.1:3000", origin.to_string()),
        ];
        let mut command = haproxy(prepared, &deployed("haproxy/haproxy.cfg", &words));
        command.env("CRAWLGATE", service.to_string());
        command
    })
}

#[test]
fn refusals_robots_txt_and_tags_are_crawlgates() {
    let gate = Setup::deciding().policy("site", POLICY).start();
    let origin = Origin::start(|request, stream| {
        let media = if request.target() == "/download" { "application/pdf" } else { "text/html" };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: 0\r\n\r\n");
        std::io::Write::write_all(stream, answer.as_bytes()).is_ok()
    });
    let proxy = start(gate.address, origin.address);
    let refused = proxy.fetch_as(GPTBOT, "/page?x=1");
    assert_eq!(refused.status, 403, "{}", proxy.log());
    assert!(refused.text().contains("Rule:  Disallow: /\nGroup: GPTBot\n"), "{}", refused.text());
    let head = proxy.ask("HEAD", HOST, "/page", &format!("User-Agent: {GPTBOT}\r\n"));
    assert_eq!((head.status, head.body.len()), (403, 0));
    assert!(origin.received().is_empty());
    let robots = proxy.fetch_as(GPTBOT, "/robots.txt");
    assert_eq!((robots.status, robots.body), (200, gate.fetch_as(GPTBOT, "/robots.txt").body));
    for (target, tags) in [
        ("/drafts/page", vec!["noindex, googlebot: nofollow"]),
        ("/download", vec!["noindex, noarchive"]),
        ("/page.pdf", vec![]),
    ] {
        let response = proxy.fetch_as(BROWSER, target);
        assert_eq!((response.status, response.fields("x-robots-tag")), (200, tags), "{target}");
        assert_eq!(response.field("crawlgate"), None);
    }
}

#[test]
fn status_and_retry_after_come_through() {
    let policy = format!("{POLICY}pause: {{ retry_after: 2h }}\n");
    let (gate, origin) = (Setup::deciding().policy("site", &policy).start(), Origin::plain());
    let proxy = start(gate.address, origin.address);
    let paused = proxy.fetch_as(BINGBOT, "/");
    assert_eq!((paused.status, paused.field("retry-after")), (503, Some("7200")), "{}", proxy.log());
    let post = proxy.ask("POST", HOST, "/form", &format!("User-Agent: {BROWSER}\r\nContent-Length: 5\r\n\r\nhello"));
    assert_eq!(post.status, 200);
    assert_eq!(origin.received()[0].body, b"hello");
}

#[test]
fn requests_pass_and_say_so_while_crawlgate_is_down() {
    let origin = Origin::plain();
    let proxy = start(Origin::nowhere(), origin.address);
    let passed = proxy.fetch_as(GPTBOT, "/page");
    assert_eq!((passed.status, passed.field("crawlgate")), (200, Some("unavailable")), "{}", proxy.log());
}
