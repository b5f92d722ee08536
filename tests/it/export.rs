//! `crawlgate export`: the real servers with the exported files answer as crawlgate does, where a configuration can say it.

use crate::decisions::proxy::Proxy;
use crate::support::nginx::Nginx;
use crate::support::{BINGBOT, BROWSER, GPTBOT, HOST, Response, Setup, run};
use crawlgate::indexing::{Tags, parse_lines};
use std::path::Path;
use std::process::Command;

const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const GOOGLEBOT_IMAGE: &str = "Googlebot-Image/1.0";
const SHOPBOT: &str = "ShopBot/1.0";
const AGENTS: [&str; 7] = [BROWSER, BINGBOT, GPTBOT, GOOGLEBOT, GOOGLEBOT_IMAGE, SHOPBOT, "curl/8.9.1"];
const PATHS: [&str; 8] = [
    "/",
    "/about.html",
    "/private/one.html",
    "/private/two.html",
    "/report.pdf",
    "/picture.png",
    "/about.html?session=1",
    "/robots.txt",
];

/// Policies of which a configuration can say all that matters here.
const POLICIES: [&str; 4] = [
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
    // Only observed: all pass.
    "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/private/] }] }\n",
];

#[derive(Debug, PartialEq)]
struct Said {
    status: u16,
    retry_after: Option<String>,
    body: Option<String>,
    tags: Tags,
}

/// What must be equal. The body of a pause is the server's own.
fn said(response: &Response, path: &str, has_tags: bool) -> Said {
    let has_body = path == "/robots.txt" || matches!(response.status, 403 | 429);
    Said {
        status: response.status,
        retry_after: response.field("retry-after").map(str::to_owned),
        body: has_body.then(|| response.text().to_owned()),
        tags: match has_tags {
            true => parse_lines(response.fields("x-robots-tag").into_iter().map(str::as_bytes)),
            false => Tags::default(),
        },
    }
}

/// Exports a policy for a server into a directory.
fn export(server: &str, policy: &str, output: &Path) -> String {
    let policies = output.join("policies");
    std::fs::create_dir_all(&policies).expect("a directory");
    std::fs::write(policies.join("site.yaml"), policy).expect("a policy");
    let (policies, output) = (policies.display().to_string(), output.display().to_string());
    let done = run(&["export", server, "--policies", &policies, "--output", &output]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn compare(server: &str, start: impl Fn(&str, &Nginx) -> Proxy) {
    let origin = Nginx::start(None);
    for policy in POLICIES {
        let gate = Setup::before(origin.address).policy("site", policy).start();
        let native = start(policy, &origin);
        for agent in AGENTS {
            // A bot that neither the registry nor the policy names is in no configuration.
            if agent == SHOPBOT && !policy.contains("ShopBot") {
                continue;
            }
            for path in PATHS {
                let (ours, theirs) = (gate.fetch_as(agent, path), native.fetch_as(agent, path));
                // Caddy knows the type of a page by the extension of its path alone.
                let has_tags = server != "caddy" || ours.status == 200;
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

fn program(name: &str) -> Command {
    let in_sbin = format!("/usr/sbin/{name}");
    Command::new(if Path::new(&in_sbin).exists() { in_sbin } else { name.to_owned() })
}

#[test]
fn exported_nginx_answers_as_crawlgate_does() {
    compare("nginx", |policy, origin| {
        Proxy::start(|prepared| {
            export("nginx", policy, prepared.directory.path());
            let root = prepared.directory.path().display();
            prepared.write(
                "nginx.conf",
                &format!(
                    "daemon off;\nmaster_process off;\npid {root}/nginx.pid;\nerror_log stderr warn;\n\
                     events {{ worker_connections 256; }}\nhttp {{\n  access_log off;\n  client_body_temp_path {root}/body;\n  \
                     proxy_temp_path {root}/proxy;\n  fastcgi_temp_path {root}/fastcgi;\n  uwsgi_temp_path {root}/uwsgi;\n  \
                     scgi_temp_path {root}/scgi;\n  include crawlgate-http.conf;\n  server {{\n    listen {};\n    \
                     include crawlgate-server.conf;\n    location / {{ proxy_pass http://{}; proxy_set_header Host $http_host; }}\n  }}\n}}\n",
                    prepared.address, origin.address
                ),
            );
            let mut command = program("nginx");
            command.args(["-p", &root.to_string(), "-e", "stderr", "-c", &prepared.path("nginx.conf")]);
            command
        })
    });
}

#[test]
fn exported_haproxy_answers_as_crawlgate_does() {
    compare("haproxy", |policy, origin| {
        Proxy::start(|prepared| {
            export("haproxy", policy, prepared.directory.path());
            let rules = std::fs::read_to_string(prepared.path("crawlgate.cfg")).expect("the rules");
            prepared.write(
                "haproxy.cfg",
                &format!(
                    "defaults\n    mode http\n    timeout connect 3s\n    timeout client 30s\n    timeout server 30s\n\
                     frontend site\n    bind {}\n{rules}\n    default_backend application\n\
                     backend application\n    server application {}\n",
                    prepared.address, origin.address
                ),
            );
            let mut command = program("haproxy");
            command.args(["-db", "-f", &prepared.path("haproxy.cfg")]);
            command
        })
    });
}

#[test]
fn exported_caddy_answers_as_crawlgate_does() {
    compare("caddy", |policy, origin| {
        Proxy::start(|prepared| {
            export("caddy", policy, prepared.directory.path());
            let snippet = std::fs::read_to_string(prepared.path("crawlgate.caddy")).expect("the snippet");
            let site = format!(
                "{{\n\tadmin off\n\tdefault_bind 127.0.0.1\n}}\n{snippet}\nhttp://{HOST}:{} {{\n\troute {{\n\t\timport crawlgate\n\t\t\
                 reverse_proxy {}\n\t}}\n}}\n",
                prepared.address.port(),
                origin.address
            );
            prepared.write("Caddyfile", &site);
            let mut command = program("caddy");
            command
                .args(["run", "--adapter", "caddyfile", "--config", &prepared.path("Caddyfile")])
                .env("HOME", prepared.directory.path())
                .env("XDG_DATA_HOME", prepared.path("data"))
                .env("XDG_CONFIG_HOME", prepared.path("config"));
            command
        })
    });
}

#[test]
fn what_cannot_be_said_is_named_in_the_file_and_on_standard_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: [/x], crawl_delay: 10s }] }\n\
                  indexing: [{ status: [404], tag: noindex }]\n\
                  html: { meta: yes }\n\
                  enforcement: { mode: enforce, traps: [/trap/] }\n";
    for (server, file) in
        [("nginx", "crawlgate-server.conf"), ("haproxy", "crawlgate.cfg"), ("caddy", "crawlgate.caddy")]
    {
        let said = export(server, policy, directory.path());
        let text = std::fs::read_to_string(directory.path().join(file)).expect("the configuration");
        for words in ["Crawl-delay", "traps", "`html`", "cached versions", "`indexing`"] {
            assert!(said.contains(words) && text.contains(words), "{server}: {words}\n{said}\n{text}");
        }
    }
}

#[test]
fn several_sites_have_to_be_named() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["one", "two"] {
        let policy = format!("hosts: [{name}.example]\nrobots: {{ origin: replace }}\n");
        std::fs::write(directory.path().join(format!("{name}.yaml")), policy).expect("a policy");
    }
    let (policies, output) =
        (directory.path().display().to_string(), directory.path().join("out").display().to_string());
    let arguments = ["export", "nginx", "--policies", &policies, "--output", &output];
    assert_eq!(run(&arguments).status.code(), Some(2));
    assert_eq!(run(&[arguments.as_slice(), &["--site", "two"]].concat()).status.code(), Some(0));
    assert_eq!(run(&[arguments.as_slice(), &["--site", "three"]].concat()).status.code(), Some(1));
}
