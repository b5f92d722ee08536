//! The decision service as proxies ask it: over HTTP/1.1 and HTTP/2, alone and beside a running
//! proxy. The files below ask through real proxies, set up as `deploy/` shows.

mod caddy;
mod haproxy;
mod nginx;
mod odd;
mod suite;

use crate::proxy::support::{
    BINGBOT, BROWSER, GPTBOT, Gate, HOST, Http2, Origin, Response, Setup, sum_of,
};

/// Rules, tags by type, signals, and a body for refusals.
const POLICY: &str = r#"
robots:
  origin: replace
  groups:
    - { agents: ["*"], disallow: [/private/] }
    - { agents: [GPTBot], disallow: [/] }
indexing:
  - { types: [application/pdf], tag: [noindex, noarchive] }
  - { types: ["image/*"], tag: noimageindex }
  - { paths: [/drafts/], tags: { "*": noindex, googlebot: nofollow } }
enforcement: { mode: enforce }
"#;

/// The user agents of a person's command, and of the server's fetch of an origin's robots.txt.
const OWN_COMMAND: &str = concat!("crawlgate/", env!("CARGO_PKG_VERSION"));
const OWN_FETCH: &str = concat!("crawlgate/", env!("CARGO_PKG_VERSION"), " (origin)");

fn deciding() -> Gate {
    Setup::deciding().policy("site", POLICY).start()
}

/// The fields by which nginx passes a request on.
fn nginx(gate: &Gate, agent: &str, target: &str) -> Response {
    let fields = format!(
        "User-Agent: {agent}\r\nX-Original-Method: GET\r\nX-Original-URI: {target}\r\nX-Forwarded-For: 198.51.100.1\r\n"
    );
    gate.get(HOST, "/decide/nginx", &fields)
}

/// The fields that Traefik documents for `forwardAuth`; those of Caddy and of `crawlgate.lua` are
/// the same.
fn forward_auth(gate: &Gate, agent: &str, target: &str) -> Response {
    let fields = format!(
        "User-Agent: {agent}\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: {HOST}\r\n\
         X-Forwarded-Uri: {target}\r\nX-Forwarded-For: 198.51.100.1\r\n"
    );
    gate.get("127.0.0.1:9180", "/decide/forward-auth", &fields)
}

/// A check request of Envoy's `ext_authz` over HTTP: method, host and path of the request, behind
/// `path_prefix`.
fn envoy(gate: &Gate, agent: &str, target: &str) -> Response {
    let fields =
        format!("User-Agent: {agent}\r\nX-Forwarded-For: 198.51.100.1\r\nContent-Length: 0\r\n");
    gate.get(HOST, &format!("/decide/envoy{target}"), &fields)
}

#[test]
fn nginx_protocol_answers_403_then_the_page_on_request() {
    let gate = deciding();
    let refused = nginx(&gate, GPTBOT, "/page");
    assert_eq!(
        (refused.status, refused.field("crawlgate-status")),
        (403, Some("403"))
    );
    assert_eq!(refused.body, b"");
    let fields = format!(
        "User-Agent: {GPTBOT}\r\nX-Original-URI: /page\r\nX-Forwarded-For: 198.51.100.1\r\n"
    );
    let answer = gate.get(HOST, "/decide/answer", &fields);
    assert_eq!(
        (answer.status, answer.field("crawlgate-status")),
        (403, None)
    );
    assert!(
        answer
            .text()
            .contains("Rule:  Disallow: /\nGroup: GPTBot\n"),
        "{}",
        answer.text()
    );
    // One request, counted once.
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="block",crawler="gptbot",kind="unproven",site="site"}"#,
        1.0,
    );
}

#[test]
fn forward_auth_protocol_of_traefik_gives_the_whole_answer() {
    let gate = deciding();
    let refused = forward_auth(&gate, GPTBOT, "/page");
    assert_eq!(refused.status, 403);
    assert!(
        refused.text().contains("Rule:  Disallow: /\n"),
        "{}",
        refused.text()
    );
    let passed = forward_auth(&gate, BROWSER, "/drafts/one?x=1");
    assert_eq!(
        (passed.status, passed.field("crawlgate-decision")),
        (200, Some("pass"))
    );
    assert_eq!(
        passed.fields("x-robots-tag"),
        ["noindex, googlebot: nofollow"]
    );
}

#[test]
fn envoy_protocol_asks_with_the_path_behind_a_prefix() {
    let gate = deciding();
    assert_eq!(envoy(&gate, GPTBOT, "/page").status, 403);
    assert_eq!(envoy(&gate, BINGBOT, "/private/x?y").status, 403);
    let passed = envoy(&gate, BINGBOT, "/report.pdf?x");
    assert_eq!(
        (passed.status, passed.fields("x-robots-tag")),
        (200, vec!["noindex, noarchive"])
    );
}

#[test]
fn tags_are_answered_by_extension_and_type_class() {
    let gate = deciding();
    let page = nginx(&gate, BROWSER, "/page");
    assert_eq!((page.status, page.field("x-robots-tag")), (200, None));
    assert_eq!(page.field("crawlgate-tags-html"), None);
    assert_eq!(page.field("crawlgate-tags-pdf"), Some("noindex, noarchive"));
    assert_eq!(page.field("crawlgate-tags-image"), Some("noimageindex"));
    let picture = nginx(&gate, BROWSER, "/a/b.png");
    assert_eq!(picture.field("x-robots-tag"), Some("noimageindex"));
}

#[test]
fn robots_txt_is_served_and_recorded() {
    let gate = deciding();
    let fields = format!("User-Agent: {GPTBOT}\r\nX-Forwarded-For: 198.51.100.1\r\n");
    let robots = gate.get(HOST, "/robots.txt", &fields);
    assert_eq!(robots.status, 200);
    assert!(
        robots.text().contains("User-agent: GPTBot\nDisallow: /\n"),
        "{}",
        robots.text()
    );
    let etag = robots.field("etag").expect("an ETag");
    let again = gate.get(
        HOST,
        "/robots.txt",
        &format!("{fields}If-None-Match: {etag}\r\n"),
    );
    assert_eq!(again.status, 304);
    gate.wait_for_metric(
        r#"crawlgate_robots_txt_total{crawler="gptbot",site="site",status="200"}"#,
        1.0,
    );
    // The service asks no origin: it has none.
    assert_eq!(gate.get(HOST, "/page", &fields).status, 404);
}

#[test]
fn own_request_that_comes_back_is_recognised() {
    let gate = deciding();
    for agent in [OWN_FETCH, "crawlgate/0.0.1 (origin)"] {
        assert_eq!(gate.fetch_as(agent, "/robots.txt").status, 508, "{agent}");
    }
    // A person's command on the live site is answered.
    assert_eq!(gate.fetch_as(OWN_COMMAND, "/robots.txt").status, 200);
}

#[test]
fn policy_that_needs_an_origin_is_named_where_there_is_none() {
    let gate = Setup::deciding()
        .policy("site", "robots: { origin: merge }\n")
        .start();
    gate.log.wait_for("--origin");
}

#[test]
fn hosts_without_a_policy_pass_and_have_no_robots_txt() {
    let gate = Setup::deciding()
        .policy("site", &format!("hosts: [{HOST}]\n{POLICY}"))
        .start();
    assert_eq!(gate.get("other.test", "/robots.txt", "").status, 404);
    let fields = format!("User-Agent: {GPTBOT}\r\nX-Original-URI: /page\r\n");
    let passed = gate.get("other.test", "/decide/nginx", &fields);
    assert_eq!(
        (passed.status, passed.field("crawlgate-decision")),
        (200, Some("pass"))
    );
}

#[test]
fn file_that_a_proxy_only_asks_about_passes_with_a_warning() {
    let gate = deciding();
    let passed = forward_auth(&gate, GPTBOT, "/robots.txt");
    assert_eq!(
        (passed.status, passed.field("crawlgate-decision")),
        (200, Some("pass"))
    );
    gate.log.wait_for("route /robots.txt");
    let metric = "crawlgate_problems{problem=\"bypassed_file\"}";
    gate.wait_for_metric(metric, 1.0);
    let fetched = gate.get(HOST, "/robots.txt", &format!("User-Agent: {GPTBOT}\r\n"));
    assert_eq!(fetched.status, 200);
    gate.wait_for_metric(metric, 0.0);
}

#[test]
fn other_spelling_of_a_file_is_led_to_it() {
    let gate = deciding();
    for target in [
        "//robots.txt",
        "/%72obots.txt",
        "/robots.txt;x",
        "/x/..;/robots.txt?y",
        "/robots.txt/.",
    ] {
        let led = forward_auth(&gate, GPTBOT, target);
        // Traefik would complete a path with the address of crawlgate.
        assert_eq!(
            (led.status, led.field("location")),
            (301, Some("https://site.test/robots.txt")),
            "{target}"
        );
        let led = envoy(&gate, GPTBOT, target);
        assert_eq!(
            (led.status, led.field("location")),
            (301, Some("/robots.txt")),
            "{target}"
        );
        let refused = nginx(&gate, GPTBOT, target);
        assert_eq!(
            (refused.status, refused.field("crawlgate-status")),
            (403, Some("301")),
            "{target}"
        );
        let fields = format!(
            "User-Agent: {GPTBOT}\r\nX-Original-URI: {target}\r\nX-Forwarded-For: 198.51.100.1\r\n"
        );
        let answer = gate.get(HOST, "/decide/answer", &fields);
        assert_eq!(
            (answer.status, answer.field("location")),
            (301, Some("/robots.txt")),
            "{target}"
        );
    }
    let head = gate.ask("HEAD", HOST, "/decide/envoy//robots.txt", "");
    assert_eq!((head.status, head.body.len()), (301, 0));
    // Who is led to a file was not served it.
    let robots = gate.get(HOST, "/robots.txt", &format!("User-Agent: {BINGBOT}\r\n"));
    assert_eq!(robots.status, 200);
    gate.wait_for_metric(
        r#"crawlgate_robots_txt_total{crawler="bingbot",site="site",status="200"}"#,
        1.0,
    );
    assert!(
        !gate
            .metrics()
            .contains(r#"crawlgate_robots_txt_total{crawler="gptbot",site="site",status="200"}"#)
    );
}

#[test]
fn questions_that_cannot_be_read_are_refused_with_403() {
    let gate = deciding();
    let large = format!("X-Large: {}", "a".repeat(900 * 1024));
    let many = vec!["X-Odd: a"; 150].join("\r\n");
    let agents = "User-Agent: a\r\nUser-Agent: b";
    for fields in [
        "X-Odd: \u{1}",
        "User-Agent: \u{7f}",
        "X Odd: a",
        "Host: x.example",
        agents,
        &large,
        &many,
    ] {
        let mut connection = gate.connect();
        connection.send(&format!(
            "GET /decide/nginx HTTP/1.1\r\nHost: {HOST}\r\nX-Original-URI: /\r\n{fields}\r\n\r\n"
        ));
        let refused = connection.response("GET");
        assert_eq!(
            (refused.status, refused.field("crawlgate-status")),
            (403, Some("403")),
            "{}",
            &fields[..8]
        );
    }
    for target in ["/ok#/../private/x", "private/x", "?a"] {
        assert_eq!(
            gate.get(
                HOST,
                "/decide/nginx",
                &format!("X-Original-URI: {target}\r\n")
            )
            .status,
            403,
            "{target}"
        );
    }
    for host in [
        "site.test:abc",
        "a@site.test",
        "site.test/x",
        "site.test..",
        "site%2etest",
        "",
    ] {
        let fields = format!("X-Forwarded-Uri: /\r\nX-Forwarded-Host: {host}\r\n");
        assert_eq!(
            gate.get(HOST, "/decide/forward-auth", &fields).status,
            403,
            "{host}"
        );
    }
    assert_eq!(gate.get(HOST, "/decide/nginx", "").status, 403);
}

/// Envoy takes 5xx for a service that is down, and lets requests through.
#[test]
fn envoy_gets_429_instead_of_503() {
    let gate = Setup::deciding()
        .policy("site", &format!("{POLICY}pause: {{ retry_after: 2h }}\n"))
        .start();
    let paused = envoy(&gate, BINGBOT, "/");
    assert_eq!(
        (paused.status, paused.field("retry-after")),
        (429, Some("7200"))
    );
    assert_eq!(paused.text(), forward_auth(&gate, BINGBOT, "/").text());
}

#[test]
fn answers_over_http_2_are_those_over_http_1() {
    let gate = deciding();
    let http2 = Http2::open(gate.address);
    for (agent, target) in [
        (GPTBOT, "/page"),
        (BROWSER, "/report.pdf"),
        (BINGBOT, "/private/"),
        (BINGBOT, "/"),
    ] {
        let fields = [("user-agent", agent), ("x-forwarded-for", "198.51.100.1")];
        let (one, two) = (
            envoy(&gate, agent, target),
            http2.get(HOST, &format!("/decide/envoy{target}"), &fields),
        );
        assert_eq!(
            (one.status, &one.body),
            (two.status, &two.body),
            "{agent} {target}"
        );
        for name in [
            "x-robots-tag",
            "crawlgate-decision",
            "content-type",
            "retry-after",
        ] {
            assert_eq!(one.fields(name), two.fields(name), "{agent} {target}");
        }
    }
    assert_eq!(http2.get(HOST, "/robots.txt", &[]).status, 200);
    assert_eq!(http2.get(HOST, "/decide/nginx", &[]).status, 403);
}

#[test]
fn health_checks_get_200_and_are_not_counted() {
    let gate = deciding();
    assert_eq!(gate.get("crawlgate", "/healthz", "").status, 200);
    assert_eq!(nginx(&gate, BROWSER, "/page").status, 200);
    gate.wait_for_metric("crawlgate_requests_total", 1.0);
    assert_eq!(
        sum_of(&gate.metrics(), "crawlgate_requests_rejected_total"),
        None
    );
}

#[test]
fn many_questions_share_a_connection() {
    let gate = deciding();
    let mut connection = gate.connect();
    for _ in 0..3 {
        connection.send(&format!(
            "GET /decide/envoy/page HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {GPTBOT}\r\n\r\n"
        ));
        assert_eq!(connection.response("GET").status, 403);
        connection.send(&format!(
            "GET /decide/envoy/page HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {BROWSER}\r\n\r\n"
        ));
        assert_eq!(connection.response("GET").status, 200);
    }
}

#[test]
fn peers_that_are_not_trusted_are_turned_away() {
    let settings = "decisions: { listen: 127.0.0.1:0, trusted: [192.0.2.0/24] }";
    let gate = Setup::deciding()
        .with_origins(settings)
        .policy("site", POLICY)
        .start();
    let answer = gate.get(HOST, "/robots.txt", "");
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("decisions.trusted"),
        "{}",
        answer.text()
    );
    gate.log.wait_for("decisions.trusted");
}

#[test]
fn service_runs_beside_a_proxy_with_the_same_policies() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("decisions: 127.0.0.1:0")
        .policy("site", POLICY)
        .start();
    assert_eq!(gate.fetch_as(GPTBOT, "/page").status, 403);
    let mut service = crate::proxy::support::Connection::open(gate.decisions[0]);
    service.send(&format!(
        "GET /decide/envoy/page HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {GPTBOT}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!(service.response("GET").status, 403);
    gate.wait_for_metric(
        r#"crawlgate_requests_total{action="block",crawler="gptbot",kind="unproven",site="site"}"#,
        2.0,
    );
}

#[test]
fn crawl_delay_counts_each_request_once() {
    let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/x], crawl_delay: 1h }] }\n\
                  enforcement: { mode: enforce }\n";
    let gate = Setup::deciding().policy("site", policy).start();
    let robots = format!("User-Agent: {BINGBOT}\r\nX-Forwarded-For: 198.51.100.1\r\n");
    assert_eq!(gate.get(HOST, "/robots.txt", &robots).status, 200);
    let statuses: Vec<u16> = (0..12)
        .map(|_| forward_auth(&gate, BINGBOT, "/page").status)
        .collect();
    let first_slow = statuses
        .iter()
        .position(|status| *status == 429)
        .expect("a slow-down");
    assert!(
        statuses[first_slow..].iter().all(|status| *status == 429),
        "{statuses:?}"
    );
    let slow = nginx(&gate, BINGBOT, "/page");
    assert_eq!(
        (slow.status, slow.field("crawlgate-status")),
        (403, Some("429"))
    );
    let again = gate.get(
        HOST,
        "/decide/answer",
        &format!("{robots}X-Original-URI: /page\r\n"),
    );
    assert_eq!(again.status, 429);
    assert!(again.field("retry-after").is_some());
}

#[test]
fn socket_in_the_file_system_is_answered_and_removed_at_the_end() {
    use std::io::{Read, Write};
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("decide.sock");
    // As a crashed process would leave it.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let settings = format!("decisions: [127.0.0.1:0, 'unix:{}']", path.display());
    let mut gate = Setup::deciding()
        .with_origins(&settings)
        .policy("site", POLICY)
        .start();
    let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("a connection");
    let question = format!(
        "GET /decide/envoy/page HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {GPTBOT}\r\nX-Forwarded-For: 198.51.100.1\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(question.as_bytes()).expect("a question");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    gate.signal("TERM");
    assert!(gate.ended().success());
    assert!(!path.exists());
}
