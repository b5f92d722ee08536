//! Policies by crawlers by paths, through every entry point: what crawlgate answers as a proxy, each proxy
//! beside the decision service answers too, where the table of docs/decision-service.md says so.

use super::{caddy, envoy, forward_auth, haproxy, nginx};
use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, Gate, HOST, Origin, Response, Setup};
use crawlgate::indexing::{RobotsTags, parse_lines};

const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const OTHER: &str = "Mozilla/5.0 (compatible; SomethingBot/1.0; +https://bot.example/)";
const TOOL: &str = "curl/8.9.1";
const AGENTS: [&str; 6] = [BROWSER, BINGBOT, GPTBOT, GOOGLEBOT, OTHER, TOOL];
const PATHS: [&str; 10] = [
    "/",
    "/about.html",
    "/private/one.html",
    "/report.pdf",
    "/picture.png",
    "/private/x.pdf?download=1",
    "/x/../private/one.html",
    "/%70rivate/one.html",
    "/about.html?session=1",
    "/robots.txt",
];
const POLICIES: [&str; 5] = [
    super::POLICY,
    // Another answer, wildcards, and an Allow that is longer.
    "robots:\n  origin: replace\n  groups:\n    - agents: ['*']\n      disallow: [/private/, '/*?session=', '/*.pdf$']\n      \
     allow: [/private/one.html]\n\
     enforcement: { mode: enforce, disallowed: { status: 429, retry_after: 90s } }\n",
    // Observation: all pass.
    "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/private/, /report] }] }\nindexing: [{ tag: nofollow }]\n",
    // Signals and tags for one crawler.
    "robots:\n  origin: replace\n  license: https://site.test/license.xml\n  content_usage: { train-ai: no }\n  \
     groups: [{ agents: [GPTBot], disallow: [/] }]\n\
     tdm: [{ reservation: yes, policy: https://site.test/tdm.json }]\n\
     indexing: [{ tags: { googlebot: noarchive, '*': nosnippet } }, { paths: [/about.html], tag: noindex }]\n\
     enforcement: { mode: enforce, disallowed: { status: 403, body: \"Not here.\\n\" } }\n",
    // Paused for crawlers.
    "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/private/] }] }\npause: { retry_after: 10m }\n",
];

/// What must be equal.
#[derive(Debug, PartialEq)]
struct Said {
    status: u16,
    retry_after: Option<String>,
    /// Of refusals and of robots.txt.
    body: Option<String>,
    tags: RobotsTags,
    signals: Vec<Vec<String>>,
}

fn said(response: &Response, is_own: bool, has_tags: bool) -> Said {
    Said {
        status: response.status,
        retry_after: response.field("retry-after").map(str::to_owned),
        body: is_own.then(|| response.text().to_owned()),
        tags: match has_tags {
            true => parse_lines(
                response
                    .fields("x-robots-tag")
                    .into_iter()
                    .map(str::as_bytes),
            ),
            false => RobotsTags::default(),
        },
        signals: response.signals(),
    }
}

/// What an entry point answers to a request.
type EntryPoint<'a> = dyn Fn(&str, &str) -> Response + 'a;

/// Compares an entry point with the proxy. An entry point that sees decisions alone says 200 for what passes.
fn compare(
    name: &str,
    proxy: &Gate,
    entry_point: &EntryPoint<'_>,
    (forwards, knows_types): (bool, bool),
) {
    for agent in AGENTS {
        for path in PATHS {
            let expected = proxy.fetch_as(agent, path);
            let is_own = path == "/robots.txt" || matches!(expected.status, 403 | 429 | 503);
            // By extension a page that is not there still has the type that its path says.
            let has_tags = knows_types || expected.status != 404;
            let mut expected = said(&expected, is_own, has_tags);
            if !is_own && !forwards {
                expected.status = 200;
            }
            assert_eq!(
                said(&entry_point(agent, path), is_own, has_tags),
                expected,
                "{name}: {agent} {path}"
            );
        }
    }
}

fn each_policy(name: &str, compare: impl Fn(&Gate, &Gate, &Nginx)) {
    let origin = Nginx::start(None);
    for policy in POLICIES {
        let proxy = Setup::before(origin.address).policy("site", policy).start();
        let service = Setup::deciding().policy("site", policy).start();
        compare(&proxy, &service, &origin);
        assert!(!service.log.text().contains("panicked"), "{name}");
    }
}

#[test]
fn nginx_answers_as_the_proxy_does() {
    each_policy("nginx", |proxy, service, origin| {
        let server = nginx::start(service.address, origin.address);
        compare(
            "nginx",
            proxy,
            &|agent, path| server.fetch_as(agent, path),
            (true, true),
        );
    });
}

#[test]
fn caddy_answers_as_the_proxy_does() {
    each_policy("caddy", |proxy, service, origin| {
        let server = caddy::start(service.address, origin.address);
        compare(
            "caddy",
            proxy,
            &|agent, path| server.fetch_as(agent, path),
            (true, false),
        );
    });
}

#[test]
fn haproxy_answers_as_the_proxy_does() {
    each_policy("haproxy", |proxy, service, origin| {
        let server = haproxy::start(service.address, origin.address);
        compare(
            "haproxy",
            proxy,
            &|agent, path| server.fetch_as(agent, path),
            (true, true),
        );
    });
}

#[test]
fn fields_about_use_that_the_application_sends_stand() {
    let application = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Usage: train-ai=y\r\nTDM-Reservation: 0\r\nTDM-Policy: /own\r\n\r\nhi",
    );
    let policy = POLICIES[3];
    let proxy = Setup::before(application.address)
        .policy("site", policy)
        .start();
    let service = Setup::deciding().policy("site", policy).start();
    let ours = proxy.fetch_as(BROWSER, "/page").signals();
    for start in [nginx::start, caddy::start, haproxy::start] {
        let server = start(service.address, application.address);
        assert_eq!(
            server.fetch_as(BROWSER, "/page").signals(),
            ours,
            "{}",
            server.log()
        );
    }
}

#[test]
fn requests_pass_while_crawlgate_hangs() {
    let application = Origin::plain();
    // Connections are accepted by the system, and nobody reads them.
    let hung = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let service = hung.local_addr().expect("its address");
    for start in [nginx::start, caddy::start, haproxy::start] {
        let server = start(service, application.address);
        let passed = server.fetch_as(GPTBOT, "/page");
        assert_eq!(
            (passed.status, passed.field("crawlgate")),
            (200, Some("unavailable")),
            "{}",
            server.log()
        );
    }
}

#[test]
fn protocols_of_traefik_and_envoy_get_the_proxys_answers() {
    each_policy("protocols", |proxy, service, _| {
        let file =
            |agent: &str| service.get(HOST, "/robots.txt", &format!("User-Agent: {agent}\r\n"));
        let traefik = |agent: &str, path: &str| match path {
            "/robots.txt" => file(agent),
            path => forward_auth(service, agent, path),
        };
        compare("traefik", proxy, &traefik, (false, false));
        let envoy = |agent: &str, path: &str| match path {
            "/robots.txt" => file(agent),
            path => {
                let answer = envoy(service, agent, path);
                // A test of its own shows that Envoy is told 429 in place of 503.
                let is_paused = answer.status == 429 && answer.text().starts_with("503");
                Response {
                    status: if is_paused { 503 } else { answer.status },
                    ..answer
                }
            }
        };
        compare("envoy", proxy, &envoy, (false, false));
    });
}
