//! `crawlgate export`: the real servers with the exported files answer as crawlgate does, where a
//! configuration can say it.

use crate::proxy::support::nginx::{Nginx, write_site};
use crate::proxy::support::program::{Prepared, Program, apache, caddy, haproxy, nginx};
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, HOST, Origin, Response, Setup, run};
use crawlgate::indexing::{RobotsTags, parse_lines};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const GOOGLEBOT_IMAGE: &str = "Googlebot-Image/1.0";
const SHOPBOT: &str = "ShopBot/1.0";
const AGENTS: [&str; 7] = [
    BROWSER,
    BINGBOT,
    GPTBOT,
    GOOGLEBOT,
    GOOGLEBOT_IMAGE,
    SHOPBOT,
    "curl/8.9.1",
];
const PATHS: [&str; 14] = [
    "/",
    "/about.html",
    "/private/one.html",
    "/private/two.html",
    "/report.pdf",
    "/picture.png",
    "/about.html?session=1",
    "/tagged.html",
    "/robots.txt",
    "/.well-known/tdmrep.json",
    "/.well-known/acme-challenge/abc",
    "/.well-known/pki-validation/fileauth.txt?a",
    "/.well-known/pki-validation/.a",
    "/.well-known/pki-validation/a/b",
];

/// Policies of which a configuration can say all that matters here.
const POLICIES: [&str; 6] = [
    "robots:\n  origin: replace\n  groups:\n    - { agents: ['*'], disallow: [/private/] }\n    - { agents: [GPTBot], disallow: [/] }\n\
     indexing:\n  - { types: [application/pdf], tag: [noindex, noarchive] }\n  - { types: ['image/*'], tag: noimageindex }\n  \
     - { paths: [/about.html], tags: { '*': nosnippet, googlebot: nofollow } }\n\
     enforcement: { mode: enforce, disallowed: { status: 403, body: \"Not \\\"here\\\", for $5.\\n\" } }\n",
    // The longest rule counts; another status; a crawler of the owner's own.
    "robots:\n  origin: replace\n  groups:\n    - agents: ['*', ShopBot]\n      disallow: [/private/, '/*?session=', '/*.pdf$']\n      \
     allow: [/private/one.html]\n    - { agents: [Googlebot-Image], disallow: ['/*.png$'] }\n\
     indexing: [{ tag: noarchive }]\n\
     enforcement: { mode: enforce, disallowed: { status: 429, retry_after: 90s, body: \"Slowly.\\n\" } }\n",
    "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/private/] }] }\npause: { retry_after: 10m }\n",
    SIGNALS,
    // Conditions of tags, and the application's own taken away.
    "robots: { origin: replace }\norigin_tags: strip\nindexing:\n  - { status: [404, 5xx], tag: noindex }\n  \
     - { paths: [/private/], not: { paths: [/private/one.html] }, tag: nofollow }\n  \
     - { not: { paths: [/picture, /about.html], types: ['image/*', application/pdf] }, tag: nosnippet }\n",
    // Only observed: all pass.
    "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/private/] }] }\n",
];

/// Everything that a site can say about the use of its pages.
const SIGNALS: &str = "robots:\n  origin: replace\n  signals: headers_only\n  \
     license:\n    - { url: 'https://site.test/50%25$x.xml', paths: [/private/] }\n    - https://site.test/license.xml\n  \
     content_signal: { search: yes, ai-train: no }\n  \
     content_usage:\n    - { train-ai: no, search: yes }\n    - { paths: [/private/], train-ai: yes }\n    \
     - { paths: [/private/one], search: no }\n  \
     groups: [{ agents: [GPTBot], disallow: [/private/two] }]\n\
     tdm:\n  - { paths: [/about, /private/], reservation: no }\n  - { reservation: yes, policy: 'https://site.test/tdm.json' }\n\
     enforcement: { mode: enforce, disallowed: { status: 403, body: \"No.\\n\" } }\n";

#[derive(Debug, PartialEq)]
struct Said {
    status: u16,
    retry_after: Option<String>,
    body: Option<String>,
    tags: RobotsTags,
    signals: Vec<Vec<String>>,
}

/// What must be equal. The body of a pause is the server's own.
fn said(response: &Response, path: &str, has_tags: bool) -> Said {
    let is_file = matches!(path, "/robots.txt" | "/.well-known/tdmrep.json");
    let has_body = is_file && response.status == 200 || matches!(response.status, 403 | 429);
    Said {
        status: response.status,
        retry_after: response.field("retry-after").map(str::to_owned),
        body: has_body.then(|| response.text().to_owned()),
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

/// Exports a policy for a server into a directory.
fn export(server: &str, policy: &str, output: &Path) -> String {
    let policies = output.join("policies");
    std::fs::create_dir_all(&policies).expect("a directory");
    std::fs::write(policies.join("site.yaml"), policy).expect("a policy");
    let (policies, output) = (policies.display().to_string(), output.display().to_string());
    let done = run(&[
        "export",
        server,
        "--policies",
        &policies,
        "--output",
        &output,
    ]);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// A server with the exported policy in front of an application.
fn start(server: &str, policy: &str, application: SocketAddr) -> Program {
    Program::start(|prepared| {
        export(
            server.split(' ').next().expect("a server"),
            policy,
            prepared.directory.path(),
        );
        match server {
            "nginx" => nginx_frame(prepared, application),
            "haproxy" => haproxy_frame(prepared, application),
            "apache" => apache_frame(prepared, application),
            "apache with .htaccess" => htaccess_frame(prepared, ""),
            _ => caddy_frame(prepared, application),
        }
    })
}

fn nginx_frame(prepared: &Prepared, application: SocketAddr) -> Command {
    let http = format!(
        "  include crawlgate-export-http.conf;\n  server {{\n    listen {};\n    include crawlgate-export-server.conf;\n    \
         location / {{ proxy_pass http://{application}; proxy_set_header Host $http_host; }}\n  }}",
        prepared.address
    );
    nginx(prepared, &http)
}

fn haproxy_frame(prepared: &Prepared, application: SocketAddr) -> Command {
    let rules = std::fs::read_to_string(prepared.path("crawlgate.cfg")).expect("the rules");
    let configuration = format!(
        "defaults\n    mode http\n    timeout connect 3s\n    timeout client 30s\n    timeout server 30s\n\
         frontend site\n    bind {}\n{rules}\n    default_backend application\n\
         backend application\n    server application {application}\n",
        prepared.address
    );
    haproxy(prepared, &configuration)
}

fn caddy_frame(prepared: &Prepared, application: SocketAddr) -> Command {
    let snippet = std::fs::read_to_string(prepared.path("crawlgate.caddy")).expect("the snippet");
    let port = prepared.address.port();
    let site = format!(
        "{snippet}\nhttp://{HOST}:{port} {{\n\troute {{\n\t\timport crawlgate\n\t\treverse_proxy {application}\n\t}}\n}}\n"
    );
    caddy(prepared, &site)
}

fn apache_frame(prepared: &Prepared, application: SocketAddr) -> Command {
    let rules = prepared.path("crawlgate.conf");
    let passed = "ProxyPreserveHost On\nProxyPass / http://";
    apache(
        prepared,
        &format!(
            "Include {rules}\n{passed}{application}/\nProxyPassReverse / http://{application}/"
        ),
    )
}

/// The pages as files, as at a provider who lets a site have a `.htaccess`, to whose end `own` is
/// added.
fn htaccess_frame(prepared: &Prepared, own: &str) -> Command {
    let site = prepared.directory.path().join("site");
    write_site(&site);
    let read = |name: &str| std::fs::read(prepared.path(name));
    let rules = String::from_utf8(read("crawlgate.htaccess").expect("the lines")).expect("UTF-8");
    prepared.write("site/.htaccess", rules + own);
    prepared.write("site/robots.txt", read("robots.txt").expect("robots.txt"));
    if let Ok(file) = read("tdmrep.json") {
        prepared.write("site/.well-known/tdmrep.json", file);
    }
    let tagged = ["googlebot: nofollow", "noarchive"].map(|line| {
        format!("Header add X-Robots-Tag \"{line}\" \"expr=%{{REQUEST_URI}} == '/tagged.html'\"\n")
    });
    let directory = format!(
        "AllowOverride FileInfo AuthConfig\nDirectoryIndex index.html\n{}",
        tagged.concat()
    );
    let site = site.display();
    apache(
        prepared,
        &format!("DocumentRoot {site}\n<Directory {site}>\n{directory}</Directory>"),
    )
}

fn compare(server: &str) {
    let origin = Nginx::start(None);
    for policy in POLICIES {
        let gate = Setup::before(origin.address).policy("site", policy).start();
        let native = start(server, policy, origin.address);
        for agent in AGENTS {
            // A bot that neither the registry nor the policy names is in no configuration.
            if agent == SHOPBOT && !policy.contains("ShopBot") {
                continue;
            }
            for path in PATHS {
                let (ours, theirs) = (gate.fetch_as(agent, path), native.fetch_as(agent, path));
                // Caddy knows the type of a page by the extension of its path alone, and takes no
                // field away.
                let is_tagged = path == "/tagged.html" && policy.contains("strip");
                let has_tags = server != "caddy" || ours.status == 200 && !is_tagged;
                assert_eq!(
                    said(&theirs, path, has_tags),
                    said(&ours, path, has_tags),
                    "{server}: {agent} {path}\n{policy}\n{}",
                    native.log()
                );
            }
        }
    }
}

#[test]
fn exported_nginx_answers_as_crawlgate_does() {
    compare("nginx");
}

#[test]
fn exported_haproxy_answers_as_crawlgate_does() {
    compare("haproxy");
}

#[test]
fn exported_caddy_answers_as_crawlgate_does() {
    compare("caddy");
}

#[test]
fn exported_apache_answers_as_crawlgate_does() {
    compare("apache");
}

#[test]
fn exported_htaccess_answers_as_crawlgate_does() {
    compare("apache with .htaccess");
}

#[test]
fn exported_configurations_pass_challenges_by_get_and_head() {
    let policy = "robots: { origin: replace, groups: [{ agents: [GPTBot], disallow: / }] }\n\
                  enforcement: { mode: enforce }\n";
    let application = Origin::plain();
    for server in ["nginx", "haproxy", "caddy", "apache"] {
        let native = start(server, policy, application.address);
        let asked = |method, target| {
            native
                .ask(method, HOST, target, &format!("User-Agent: {GPTBOT}\r\n"))
                .status
        };
        for target in [
            "/.well-known/acme-challenge/abc",
            "/.well-known/pki-validation/fileauth.txt",
        ] {
            let statuses = ["GET", "HEAD", "POST", "DELETE"].map(|method| asked(method, target));
            assert_eq!(
                statuses,
                [200, 200, 403, 403],
                "{server} {target}\n{}",
                native.log()
            );
        }
        let long = format!("/.well-known/pki-validation/{}", "a".repeat(129));
        for target in [
            &long,
            "/.well-known/pki-validation/../page",
            "/.well-known/acme-challenge/a.txt",
        ] {
            assert_eq!(asked("GET", target), 403, "{server} {target}");
        }
    }
}

/// A refusal has its own text, and the site's own refusals keep theirs. No cache has to tell user
/// agents apart.
#[test]
fn exported_htaccess_leaves_the_errors_of_the_site_alone() {
    let policy = "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/private/] }] }\n\
                  enforcement: { mode: enforce, disallowed: { status: 403, body: \"Not here: 5 % & <b>.\\n\" } }\n";
    let own = "ErrorDocument 403 \"of the site\"\n<Files two.html>\nRequire all denied\n</Files>\n";
    let server = Program::start(|prepared| {
        export("apache", policy, prepared.directory.path());
        htaccess_frame(prepared, own)
    });
    let refused = server.fetch_as(GPTBOT, "/private/one.html");
    assert_eq!(
        (refused.status, refused.text()),
        (403, "Not here: 5 % & <b>.\n"),
        "{}",
        server.log()
    );
    assert_eq!(
        refused.field("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(refused.field("cache-control"), Some("no-store"));
    let denied = server.fetch_as(BROWSER, "/private/two.html");
    assert_eq!(
        (denied.status, denied.text()),
        (403, "of the site"),
        "{}",
        server.log()
    );
    for (agent, target) in [
        (BROWSER, "/private/one.html"),
        (GPTBOT, "/about.html"),
        (GPTBOT, "/private/one.html"),
    ] {
        assert_eq!(
            server.fetch_as(agent, target).field("vary"),
            None,
            "{agent} {target}"
        );
    }
}

#[test]
fn fields_about_use_that_the_application_sends_stand() {
    let application = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Usage: train-ai=y\r\nTDM-Reservation: 0\r\nTDM-Policy: /own\r\n\
         Link: </next>; rel=\"next\"\r\n\r\nhi",
    );
    let gate = Setup::before(application.address)
        .policy("site", SIGNALS)
        .start();
    let ours = gate.fetch_as(BROWSER, "/story").signals();
    for server in ["nginx", "haproxy", "caddy", "apache"] {
        let mut theirs = start(server, SIGNALS, application.address)
            .fetch_as(BROWSER, "/story")
            .signals();
        let mut ours = ours.clone();
        theirs
            .iter_mut()
            .chain(&mut ours)
            .for_each(|lines| lines.sort());
        assert_eq!(theirs, ours, "{server}");
    }
}

#[test]
fn untranslatable_rules_are_named_in_file_and_stderr() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/x], crawl_delay: 10s }] }\n\
                  indexing: [{ path_regex: ^/a, tag: noindex }]\n\
                  html: { meta: yes }\n\
                  enforcement: { mode: enforce, traps: [/trap/] }\n";
    for (server, file) in [
        ("nginx", "crawlgate-export-server.conf"),
        ("haproxy", "crawlgate.cfg"),
        ("caddy", "crawlgate.caddy"),
        ("apache", "crawlgate.conf"),
        ("apache", "crawlgate.htaccess"),
    ] {
        let said = export(server, policy, directory.path());
        let text = std::fs::read_to_string(directory.path().join(file)).expect("the configuration");
        for words in [
            "Crawl-delay",
            "traps",
            "\"html\"",
            "the old robots.txt",
            "\"indexing\"",
        ] {
            assert!(
                said.contains(words) && text.contains(words),
                "{server}: {words}\n{said}\n{text}"
            );
        }
    }
}

#[test]
fn several_sites_have_to_be_named() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["one", "two"] {
        let policy = format!("hosts: [{name}.example]\n");
        std::fs::write(directory.path().join(format!("{name}.yaml")), policy).expect("a policy");
    }
    let (policies, output) = (
        directory.path().display().to_string(),
        directory.path().join("out").display().to_string(),
    );
    let arguments = [
        "export",
        "nginx",
        "--policies",
        &policies,
        "--output",
        &output,
    ];
    assert_eq!(run(&arguments).status.code(), Some(2));
    let merged = run(&[arguments.as_slice(), &["--site", "two"]].concat());
    assert_eq!(merged.status.code(), Some(0));
    let warning = String::from_utf8_lossy(&merged.stderr);
    assert!(warning.contains("the origin of two: ") && warning.contains("--origin-robots"));
    assert_eq!(
        run(&[arguments.as_slice(), &["--site", "three"]].concat())
            .status
            .code(),
        Some(1)
    );
}
