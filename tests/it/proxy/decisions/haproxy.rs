//! The real HAProxy with the files of `deploy/haproxy`.

use super::POLICY;
use crate::proxy::support::program::{Program, deployed, haproxy};
use crate::proxy::support::{
    BINGBOT, BROWSER, Connection, GPTBOT, HOST, Origin, Setup, eventually,
};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// HAProxy in front of an origin, beside a decision service.
pub fn start(service: SocketAddr, origin: SocketAddr) -> Program {
    start_with(service, origin, &[])
}

/// The same with other words in `haproxy.cfg`.
fn start_with(service: SocketAddr, origin: SocketAddr, other: &[(&str, String)]) -> Program {
    Program::start(|prepared| {
        prepared.write("crawlgate.lua", deployed("haproxy/crawlgate.lua", &[]));
        let words = [
            ("/etc/haproxy/crawlgate.lua", prepared.path("crawlgate.lua")),
            ("bind :80", format!("bind {}", prepared.address)),
            ("127.0.0.1:9180", service.to_string()),
            ("127.0.0.1:3000", origin.to_string()),
        ];
        let words: Vec<_> = words.into_iter().chain(other.iter().cloned()).collect();
        let mut command = haproxy(prepared, &deployed("haproxy/haproxy.cfg", &words));
        command.env("CRAWLGATE", service.to_string());
        command
    })
}

#[test]
fn refusals_robots_txt_and_tags_are_crawlgates() {
    let gate = Setup::deciding().policy("site", POLICY).start();
    let origin = Origin::start(|request, stream| {
        let media = if request.target() == "/download" {
            "application/pdf"
        } else {
            "text/html"
        };
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).is_ok()
    });
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
    let head = proxy.ask("HEAD", HOST, "/page", &format!("User-Agent: {GPTBOT}\r\n"));
    assert_eq!((head.status, head.body.len()), (403, 0));
    assert!(origin.received().is_empty());
    let robots = proxy.fetch_as(GPTBOT, "/robots.txt");
    assert_eq!(
        (robots.status, robots.body),
        (200, gate.fetch_as(GPTBOT, "/robots.txt").body)
    );
    for (target, tags) in [
        ("/drafts/page", vec!["noindex, googlebot: nofollow"]),
        ("/download", vec!["noindex, noarchive"]),
        ("/page.pdf", vec![]),
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

/// A token of an application can be longer than 8 KiB. HAProxy itself takes up to 15 KiB.
#[test]
fn large_fields_are_asked_about_like_small_ones() {
    let gate = Setup::deciding().policy("site", POLICY).start();
    let origin = Origin::plain();
    let proxy = start(gate.address, origin.address);
    for length in [9_000, 14_500] {
        for field in ["Authorization", "Referer", "Accept", "Signature"] {
            let large = format!("{field}: {}\r\n", "a".repeat(length));
            let ask = |agent: &str| {
                let lines = format!("User-Agent: {agent}\r\n{large}");
                let response = proxy.ask("GET", HOST, "/page", &lines);
                assert_eq!(response.field("crawlgate"), None, "{field} {length}");
                response.status
            };
            assert_eq!((ask(BROWSER), ask(GPTBOT)), (200, 403), "{field} {length}");
        }
    }
    let crawler = format!("{GPTBOT} {}", "a".repeat(14_500));
    assert_eq!(proxy.fetch_as(&crawler, "/page").status, 403);
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
        (503, Some("7200")),
        "{}",
        proxy.log()
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
fn names_that_are_not_the_sites_are_closed_by_the_line_for_it() {
    const LINE: &str = "http-request deny deny_status 404";
    let gate = Setup::deciding().policy("site", POLICY).start();
    let origin = Origin::plain();
    let words = [
        (&*format!("# {LINE}"), LINE.to_owned()),
        ("shop.example", HOST.to_owned()),
    ];
    let proxy = start_with(gate.address, origin.address, &words);
    let status = |host: &str| {
        proxy
            .ask("GET", host, "/page", &format!("User-Agent: {BROWSER}\r\n"))
            .status
    };
    assert_eq!(
        (
            status(HOST),
            status(&format!("{HOST}:80")),
            status("other.example")
        ),
        (200, 200, 404)
    );
    let mut check = Connection::open(proxy.address);
    check.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(check.response("GET").status, 200);
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

/// A decision service that lets every request pass. Its health check fails while the flag is not
/// set.
fn service_with_health(is_healthy: &Arc<AtomicBool>) -> Origin {
    let is_healthy = is_healthy.clone();
    Origin::start(move |request, stream| {
        let status = match request.target() {
            "/healthz" if !is_healthy.load(Ordering::Relaxed) => "503 Service Unavailable",
            _ => "200 OK",
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nServer: crawlgate\r\nCrawlgate-Decision: pass\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).is_ok()
    })
}

#[test]
fn nobody_is_asked_while_the_health_check_fails() {
    let is_healthy = Arc::new(AtomicBool::new(true));
    let service = service_with_health(&is_healthy);
    let origin = Origin::plain();
    let proxy = start(service.address, origin.address);
    let wait_for = |state: Option<&str>| {
        eventually("the state of crawlgate", || {
            let passed = proxy.fetch_as(GPTBOT, "/page");
            assert_eq!(passed.status, 200, "{}", proxy.log());
            (passed.field("crawlgate") == state).then_some(())
        });
    };
    let asked = || {
        let received = service.all().into_iter();
        received
            .filter(|request| request.target() != "/healthz")
            .count()
    };
    wait_for(None);
    is_healthy.store(false, Ordering::Relaxed);
    wait_for(Some("unavailable"));
    let before = asked();
    wait_for(Some("unavailable"));
    assert_eq!(proxy.fetch_as(GPTBOT, "/robots.txt").status, 503);
    assert_eq!(asked(), before);
    is_healthy.store(true, Ordering::Relaxed);
    wait_for(None);
    assert_eq!(proxy.fetch_as(GPTBOT, "/robots.txt").status, 200);
}
