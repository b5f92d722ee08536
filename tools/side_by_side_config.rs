//! One policy as nginx and HAProxy configurations, for `benches/side-by-side/run`: so that all
//! proxies of the comparison keep the same rules. It also writes the policy that they are compared
//! with.
//!
//! ```sh
//! cargo run --example side_by_side_config -- policy 1000 > policy.yaml       # 166 crawlers, 1,000 path rules
//! cargo run --example side_by_side_config -- configs policy.yaml DIRECTORY ORIGIN USUAL BEST PLAIN HAPROXY
//! ```
//!
//! The words in capitals after DIRECTORY are addresses with ports. The configurations name their
//! files relative to DIRECTORY. What cannot be said in them as the policy says it is refused, and
//! not left out.
//!
//! `crawlgate::internals::export` writes what crawlers and paths are concerned with, as `crawlgate
//! export` does. This file adds the frames. The configurations do less than crawlgate:
//! `ExportedPolicy::left_out` lists what.

use crawlgate::crawlers::{Purpose, Registry};
use crawlgate::internals::export::{
    ConfigFiles, ExportedPolicy, frontend_config, http_and_server_config, marker_steps, path_steps,
    split_regexes,
};
use crawlgate::internals::verdict::load_site;
use crawlgate::yaml::SourceFile;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Crawlers that the policy names.
const CRAWLERS: usize = 166;
/// HAProxy answers from memory what fits into a buffer with its head. This is the default; where
/// robots.txt does not fit, the origin has it.
const HAPROXY_BUFFER: usize = 16 * 1024;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["policy", rules] => rules
            .parse()
            .map_err(|_| format!("`{rules}` is no number"))
            .map(|rules| {
                print!("{}", policy(rules));
            }),
        [
            "configs",
            policy,
            directory,
            origin,
            usual,
            best,
            plain,
            haproxy,
        ] => read(policy).and_then(|rules| {
            write(
                &rules,
                Path::new(directory),
                origin,
                [usual, best, plain, haproxy],
            )
        }),
        _ => Err(
            "usage: policy RULES | configs POLICY DIRECTORY ORIGIN USUAL BEST PLAIN HAPROXY"
                .to_owned(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// The policy of the comparison: crawlers for training, archives and SEO are kept off the site, the
/// others keep to path rules. The mix of paths is that of `benches/engine.rs`: prefixes, some with
/// `*`, some with `$`.
fn policy(rules: usize) -> String {
    let (mut closed, mut open) = (Vec::new(), Vec::new());
    // Not those that make no requests (policy tokens), nor those that no group of a robots.txt can
    // name.
    let named = Registry::builtin()
        .crawlers()
        .iter()
        .filter(|crawler| !crawler.markers.is_empty());
    for crawler in named.filter(|crawler| !crawler.tokens.is_empty()) {
        let token = crawler.tokens[0].as_str();
        let known = |group: &[&str]| group.iter().any(|other| other.eq_ignore_ascii_case(token));
        if !known(&closed) && !known(&open) && closed.len() + open.len() < CRAWLERS {
            let kept_off = matches!(
                crawler.purpose,
                Purpose::Training | Purpose::Archive | Purpose::Seo
            );
            if kept_off { &mut closed } else { &mut open }.push(token);
        }
    }
    let list = |group: &[&str]| {
        group
            .iter()
            .map(|token| format!("'{token}'"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = format!(
        "robots:\n  origin: replace\n  groups:\n    - agents: [{}]\n      disallow: [/]\n    - agents: [{}]\n      disallow:\n",
        list(&closed),
        list(&open)
    );
    for rule in 0..rules {
        let _ = match rule % 5 {
            0 => writeln!(text, "        - '/section-{rule}/*/print'"),
            1 => writeln!(text, "        - '/*?ref={rule}'"),
            2 => writeln!(text, "        - '/page-{rule}.html$'"),
            _ => writeln!(text, "        - '/section-{rule}/private/'"),
        };
    }
    text.push_str(
        "indexing:\n  - { types: [application/pdf], tag: [noindex, noarchive] }\n  - { types: ['image/*'], tag: noimageindex }\n\
         enforcement:\n  mode: enforce\n  disallowed: { status: 403, body: \"Not for crawlers.\\n\" }\n",
    );
    text
}

/// The rules of a policy that a configuration can say whole, as far as the comparison goes.
fn read(file: &str) -> Result<ExportedPolicy, String> {
    let registry = Registry::builtin();
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let source = SourceFile {
        name: file.into(),
        text: text.as_str().into(),
    };
    let (site, diagnostics) = load_site("site", &source, registry);
    let site = site.ok_or_else(|| {
        diagnostics
            .items
            .iter()
            .map(|item| item.render(&source, false))
            .collect::<Vec<_>>()
            .join("\n")
    })?;
    let rules = ExportedPolicy::from_site(&site, registry);
    if rules.answers.len() != 1
        || rules.answers[0].retry_after.is_some()
        || rules.answers[0].body.contains('$')
    {
        return Err(
            "only one answer to all refusals, without $ and Retry-After, is compared".into(),
        );
    }
    if rules.pauses_everyone {
        return Err("only a pause for crawlers is compared".into());
    }
    let is_typed = |tag: &crawlgate::internals::export::TagRule| {
        let when = &tag.when;
        let is_by_type = when.paths.is_empty() && when.status.is_empty() && tag.unless.is_none();
        is_by_type && !when.types.is_empty() && tag.lines.len() == 1
    };
    if !rules.tags.iter().all(is_typed) {
        return Err("only tag rules by type, with one line, are compared".into());
    }
    Ok(rules)
}

fn write(
    rules: &ExportedPolicy,
    directory: &Path,
    origin: &str,
    listen: [&str; 4],
) -> Result<(), String> {
    let [usual, best, plain, haproxy] = listen;
    // Relative to the directory that the servers are started in.
    let (frontend, mut files) = frontend_config(rules, HAPROXY_BUFFER, ".");
    let frontend = compact_haproxy(rules, &frontend, &mut files);
    files.insert(
        "haproxy.cfg".into(),
        haproxy_frame(haproxy, origin, &frontend).into(),
    );
    files.insert("robots.txt".into(), rules.files[0].body.clone());
    for (name, listen) in [("nginx-usual", usual), ("nginx-best", best)] {
        files.insert(
            format!("{name}.conf"),
            nginx(rules, name, listen, origin).into(),
        );
    }
    files.insert(
        "nginx-plain.conf".into(),
        nginx_frame("nginx-plain", plain, origin, "", "", "").into(),
    );
    save(directory, files)
}

fn save(directory: &Path, files: ConfigFiles) -> Result<(), String> {
    for (name, bytes) in files {
        let path = directory.join(name);
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// As few regular expressions for the user agents of each class of crawlers as there can be.
fn agents(rules: &ExportedPolicy) -> Vec<Vec<String>> {
    let mut agents = Vec::new();
    for class in &rules.classes {
        let markers: Vec<_> = class
            .markers
            .iter()
            .map(|(_, text)| marker_steps(text))
            .collect();
        agents.push(split_regexes(&markers));
    }
    agents
}

/// HAProxy at its best: each class of crawlers has a few expressions of its own, in place of one
/// map with a line for each crawler.
fn compact_haproxy(rules: &ExportedPolicy, frontend: &str, files: &mut ConfigFiles) -> String {
    files.remove("crawlers.map");
    for (class, regexes) in agents(rules).into_iter().enumerate() {
        let lines: String = regexes.into_iter().map(|regex| regex + "\n").collect();
        files.insert(format!("class{class}.agents"), lines.into());
    }
    let mut compact = String::new();
    for line in frontend.lines() {
        let class = line
            .strip_prefix("acl crawlgate_c")
            .and_then(|rest| rest.split_once(" var("));
        if let Some((class, _)) = class {
            let _ = writeln!(
                compact,
                "acl crawlgate_c{class} req.fhdr(user-agent) -m reg -i -f ./class{class}.agents"
            );
        } else if !line.starts_with("http-request set-var(txn.crawlgate_class)") {
            let _ = writeln!(compact, "{line}");
        }
    }
    compact
}

/// Maps of nginx at its best: a few expressions for each class of crawlers, and for each list of
/// paths that opens none.
fn compact_maps(rules: &ExportedPolicy, maps: &str) -> String {
    let mut lines = String::new();
    for (class, regexes) in agents(rules).iter().enumerate() {
        for regex in regexes {
            let _ = writeln!(lines, "    \"~*{regex}\" c{class};");
        }
    }
    let mut maps = with_lines(maps, "$http_user_agent $crawlgate_class", &lines);
    for (place, list) in rules.lists.iter().enumerate() {
        if list.iter().any(|rule| rule.allow) {
            continue;
        }
        let patterns: Vec<_> = list.iter().map(|rule| path_steps(&rule.pattern)).collect();
        let mut lines = String::new();
        for regex in split_regexes(&patterns) {
            let _ = writeln!(lines, "    \"~{regex}\" 1;");
        }
        let names = format!("$request_uri $crawlgate_list{place}");
        maps = with_lines(&maps, &names, &lines);
    }
    maps
}

/// The maps with these lines in place of those of one map, behind its default.
fn with_lines(maps: &str, names: &str, lines: &str) -> String {
    let heading = format!("map {names} {{\n");
    let (before, map) = maps.split_once(&heading).expect("a map with these names");
    let (map, after) = map.split_once("\n}\n").expect("the end of the map");
    let default = map.lines().next().unwrap_or_default();
    format!("{before}{heading}{default}\n{lines}}}\n{after}")
}

/// nginx with the answers where the request is, without a redirect inside, and one map for all
/// tags.
fn nginx(rules: &ExportedPolicy, name: &str, listen: &str, origin: &str) -> String {
    let (mut maps, _) = http_and_server_config(
        &ExportedPolicy {
            tags: Vec::new(),
            ..rules.clone()
        },
        ".",
    );
    if name == "nginx-best" {
        maps = compact_maps(rules, &maps);
    }
    maps.push_str("  map $upstream_http_content_type $robots_tag {\n    default \"\";\n");
    for tag in &rules.tags {
        for media in &tag.when.types {
            let escaped = media
                .trim_end_matches('*')
                .replace('.', "\\.")
                .replace('+', "\\+");
            let end = if media.ends_with('*') { "" } else { "(?:;|$)" };
            let _ = writeln!(maps, "    \"~*^{escaped}{end}\" \"{}\";", tag.lines[0]);
        }
    }
    maps.push_str("  }\n");
    let server = format!(
        "    location = /robots.txt {{\n      root .;\n      charset utf-8;\n      add_header Cache-Control \"{}\";\n    }}\n",
        rules.files[0].cache_control
    );
    let mut text = String::new();
    let refused = rules.answers.iter().map(|answer| ("refused0", answer));
    for (answer_name, answer) in refused.chain(rules.pause.iter().map(|answer| ("paused", answer)))
    {
        let retry_after = answer
            .retry_after
            .map(|seconds| format!("        add_header Retry-After {seconds} always;\n"));
        let body = answer
            .body
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = write!(
            text,
            "      if ($crawlgate_answer = {answer_name}) {{\n        add_header Cache-Control no-store always;\n{}        \
             return {} \"{body}\";\n      }}\n",
            retry_after.unwrap_or_default(),
            answer.status
        );
    }
    text.push_str("      add_header X-Robots-Tag $robots_tag always;\n");
    nginx_frame(name, listen, origin, &maps, &server, &text)
}

/// What all three have in common: a reverse proxy with kept connections to both sides.
fn nginx_frame(
    name: &str,
    listen: &str,
    origin: &str,
    maps: &str,
    server: &str,
    rules: &str,
) -> String {
    format!(
        r#"worker_processes 1;
worker_rlimit_nofile 8192;
pid {name}.pid;
error_log stderr error;
pcre_jit on;
events {{ worker_connections 4096; }}
http {{
  access_log /dev/null combined buffer=64k flush=1s;
  client_body_temp_path {name}.tmp;
  proxy_temp_path {name}.tmp;
  fastcgi_temp_path {name}.tmp;
  uwsgi_temp_path {name}.tmp;
  scgi_temp_path {name}.tmp;
  types {{ text/plain txt; }}
  default_type "text/plain; charset=utf-8";
  sendfile on;
  tcp_nopush on;
  open_file_cache max=100;
  keepalive_timeout 60s;
  keepalive_requests 1000000000;
  map_hash_bucket_size 256;
  upstream origin {{
    server {origin};
    keepalive 256;
    keepalive_requests 1000000000;
    keepalive_timeout 55s;
  }}
{maps}  server {{
    listen {listen} backlog=4096;
{server}    location / {{
{rules}      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto http;
      proxy_set_header X-Forwarded-Host $http_host;
    }}
  }}
}}
"#
    )
}

fn haproxy_frame(listen: &str, origin: &str, rules: &str) -> String {
    format!(
        r#"global
    nbthread 1
    maxconn 2000
    log stdout format raw local0
defaults
    mode http
    log global
    option httplog
    http-reuse always
    timeout connect 3s
    timeout client 60s
    timeout server 60s
    timeout http-keep-alive 60s
frontend site
    bind {listen} backlog 4096
{rules}    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    default_backend origin
backend origin
    server origin {origin} pool-purge-delay 55s
"#
    )
}
