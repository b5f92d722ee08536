//! The real Caddy with the Caddyfile of `deploy/caddy`.

use super::POLICY;
use crate::proxy::support::program::{Program, caddy, deployed, free_address};
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, HOST, Origin, Setup};
use std::net::SocketAddr;

/// Caddy in front of an origin, beside a decision service.
pub fn start(service: SocketAddr, origin: SocketAddr) -> Program {
    Program::start(|prepared| {
        let words = [
            ("127.0.0.1:9180", service.to_string()),
            ("127.0.0.1:9181", free_address().to_string()),
            ("127.0.0.1:3000", origin.to_string()),
            (
                "http://shop.example",
                format!("http://{HOST}:{}", prepared.address.port()),
            ),
        ];
        caddy(prepared, &deployed("caddy/Caddyfile", &words))
    })
}

#[test]
fn refusals_robots_txt_and_tags_are_crawlgates() {
    let gate = Setup::deciding().policy("site", POLICY).start();
    let origin = Origin::plain();
    let proxy = start(gate.address, origin.address);
    let refused = proxy.fetch_as(GPTBOT, "/page?x=1");
    assert_eq!(refused.status, 403, "{}", proxy.log());
    assert!(
        refused
            .text()
            .contains("Rule:  Disallow: /\nGroup: GPTBot\n"),
        "{}",
        refused.text()
    );
    assert!(origin.received().is_empty());
    let robots = proxy.fetch_as(GPTBOT, "/robots.txt");
    assert_eq!(
        (robots.status, robots.body),
        (200, gate.fetch_as(GPTBOT, "/robots.txt").body)
    );
    let draft = proxy.fetch_as(BROWSER, "/drafts/page");
    assert_eq!(
        (draft.status, draft.fields("x-robots-tag")),
        (200, vec!["noindex, googlebot: nofollow"])
    );
    let page = proxy.fetch_as(BROWSER, "/page");
    assert_eq!((page.status, page.fields("x-robots-tag")), (200, vec![]));
    assert_eq!(page.field("crawlgate"), None);
    let received = origin.received();
    let ours = received
        .iter()
        .flat_map(|request| &request.headers)
        .filter(|(name, _)| name.to_ascii_lowercase().starts_with("x-crawlgate"));
    assert_eq!(ours.count(), 0, "{received:?}");
    // By extension: Caddy knows no type before its handlers.
    assert_eq!(
        proxy
            .fetch_as(BROWSER, "/report.pdf")
            .fields("x-robots-tag"),
        ["noindex, noarchive"]
    );
}

#[test]
fn application_sends_its_own_file_where_crawlgate_has_none() {
    let policy = format!("hosts: [shop.test]\n{POLICY}");
    let gate = Setup::deciding().policy("site", &policy).start();
    let origin = Origin::plain();
    let proxy = start(gate.address, origin.address);
    assert_eq!(proxy.fetch_as(BINGBOT, "/robots.txt").status, 200);
    assert_eq!(origin.last().target(), "/robots.txt");
}

#[test]
fn status_and_retry_after_come_through() {
    let policy = format!("{POLICY}pause: {{ retry_after: 2h }}\n");
    let gate = Setup::deciding().policy("site", &policy).start();
    let origin = Origin::plain();
    let proxy = start(gate.address, origin.address);
    let paused = proxy.fetch_as(BINGBOT, "/");
    assert_eq!(
        (paused.status, paused.field("retry-after")),
        (503, Some("7200"))
    );
    let post = proxy.ask(
        "POST",
        HOST,
        "/form",
        &format!("User-Agent: {BROWSER}\r\nContent-Length: 5\r\n\r\nhello"),
    );
    assert_eq!(post.status, 200);
    assert_eq!(origin.received()[0].body, b"hello");
}

#[test]
fn questions_hold_as_many_fields_as_the_documentation_says() {
    let gate = Setup::deciding().policy("site", POLICY).start();
    let origin = Origin::plain();
    let proxy = start(gate.address, origin.address);
    let ask = |more: String| {
        proxy
            .ask(
                "GET",
                HOST,
                "/page",
                &format!("User-Agent: {BROWSER}\r\n{more}"),
            )
            .status
    };
    let fields = |count: usize| {
        (0..count)
            .map(|number| format!("X-{number}: a\r\n"))
            .collect::<String>()
    };
    assert_eq!((ask(fields(85)), ask(fields(110))), (200, 403));
    let large = |name: &str, size: usize| format!("{name}: {}\r\n", "a".repeat(size * 1024));
    assert_eq!(
        (
            ask(large("X-Large", 55)),
            ask(large("X-Large", 70)),
            ask(large("Cookie", 70))
        ),
        (200, 403, 200)
    );
}

#[test]
fn requests_pass_and_say_so_while_crawlgate_is_down() {
    let origin = Origin::plain();
    let proxy = start(Origin::nowhere(), origin.address);
    let passed = proxy.fetch_as(GPTBOT, "/page");
    assert_eq!(
        (passed.status, passed.field("crawlgate")),
        (200, Some("unavailable")),
        "{}",
        proxy.log()
    );
}
