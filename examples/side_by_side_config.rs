//! One policy as nginx and HAProxy configurations, for `benches/side-by-side/run`: so that all proxies of the
//! comparison keep the same rules. It also writes the policy that they are compared with.
//!
//! ```sh
//! cargo run --example side_by_side_config -- policy 1000 > policy.yaml       # 166 crawlers, 1,000 path rules
//! cargo run --example side_by_side_config -- configs policy.yaml DIRECTORY ORIGIN USUAL BEST PLAIN HAPROXY
//! ```
//!
//! The words in capitals after DIRECTORY are addresses with ports. The configurations name their files relative to
//! DIRECTORY. What cannot be said in them as the policy says it is refused, and not left out.
//!
//! They do less than crawlgate: paths are compared as they were sent (not normalised), a crawler is whoever has its
//! mark anywhere in the user agent (inside a word, or behind `like `), bots in no list pass, and the origin's own
//! X-Robots-Tag is not united with theirs.

use crawlgate::crawlers::{Claim, CrawlerIndex, Purpose, Registry};
use crawlgate::policy::Site;
use crawlgate::policy::model::{Audience, Mode};
use crawlgate::policy::site::{Answer, Binding};
use crawlgate::verdict::load;
use crawlgate::yaml::Source;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Crawlers that the policy names.
const CRAWLERS: usize = 166;
/// nginx takes words of up to 4,096 bytes in its configuration, the quotes included.
const LONGEST_REGEX: usize = 3_900;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["policy", rules] => rules.parse().map_err(|_| format!("`{rules}` is no number")).map(|rules| {
            print!("{}", policy(rules));
        }),
        ["configs", policy, directory, origin, usual, best, plain, haproxy] => Rules::read(policy)
            .and_then(|rules| rules.write(Path::new(directory), origin, [usual, best, plain, haproxy])),
        _ => Err("usage: policy RULES | configs POLICY DIRECTORY ORIGIN USUAL BEST PLAIN HAPROXY".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// The policy of the comparison: crawlers for training, archives and SEO are kept off the site, the others keep to path
/// rules. The mix of paths is that of `benches/engine.rs`: prefixes, some with `*`, some with `$`.
fn policy(rules: usize) -> String {
    let (mut closed, mut open) = (Vec::new(), Vec::new());
    // Not those that make no requests (policy tokens), nor those that no group of a robots.txt can name.
    let named = Registry::builtin().crawlers().iter().filter(|crawler| !crawler.markers.is_empty());
    for crawler in named.filter(|crawler| !crawler.tokens.is_empty()) {
        let token = crawler.tokens[0].as_str();
        let known = |group: &[&str]| group.iter().any(|other| other.eq_ignore_ascii_case(token));
        if !known(&closed) && !known(&open) && closed.len() + open.len() < CRAWLERS {
            let kept_off = matches!(crawler.purpose, Purpose::Training | Purpose::Archive | Purpose::Seo);
            if kept_off { &mut closed } else { &mut open }.push(token);
        }
    }
    let list = |group: &[&str]| group.iter().map(|token| format!("'{token}'")).collect::<Vec<_>>().join(", ");
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

/// What the configurations say.
struct Rules {
    groups: Vec<Group>,
    /// Media type or `image/*`, and what is then said.
    tags: Vec<(String, String)>,
    robots_txt: Vec<u8>,
    robots_cache: String,
    status: u16,
    body: String,
    /// Retry-After while crawlers are paused.
    pause: Option<u64>,
}

/// Crawlers that share rules.
struct Group {
    /// As in the registry: `^x` at the start of the user agent, `=x` all of it, `x` anywhere.
    marks: Vec<String>,
    /// Patterns as in robots.txt.
    disallow: Vec<String>,
}

impl Group {
    /// Whether everything is closed, so that paths need no look.
    fn is_closed(&self) -> bool {
        self.disallow.iter().any(|pattern| pattern == "/" || pattern == "/*" || pattern == "*")
    }
}

impl Rules {
    fn read(file: &str) -> Result<Rules, String> {
        let registry = Registry::builtin();
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let source = Source { name: file.into(), text: text.as_str().into() };
        let (site, diagnostics) = load("site", &source, registry);
        let site = site.ok_or_else(|| {
            diagnostics.items.iter().map(|item| item.render(&source, false)).collect::<Vec<_>>().join("\n")
        })?;
        let pause = match &site.policy.pause {
            None => None,
            Some(pause) if pause.audience == Audience::Crawlers && !pause.pause_robots_txt && pause.from.is_none() => {
                Some(pause.retry_after.as_secs())
            }
            Some(_) => return Err("only a pause for crawlers, from now, with robots.txt served, is translated".into()),
        };
        let (groups, answers) = groups(&site, registry)?;
        let [answer] = &answers[..] else { return Err("only one answer to all refusals is translated".into()) };
        let body = answer.body.as_deref().filter(|body| !body.contains('$') && answer.retry_after.is_none());
        Ok(Rules {
            groups,
            tags: tags(&site)?,
            robots_txt: site.robots_txt.body.to_vec(),
            robots_cache: site.robots_txt.cache_control.clone(),
            status: answer.status,
            body: body.ok_or("only an answer with its own body, without $ and Retry-After, is translated")?.to_owned(),
            pause,
        })
    }

    fn write(&self, directory: &Path, origin: &str, listen: [&str; 4]) -> Result<(), String> {
        let [usual, best, plain, haproxy] = listen;
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        files.insert("robots.txt".into(), self.robots_txt.clone());
        files.insert("refused.txt".into(), self.body.clone().into());
        files.insert("paused.txt".into(), PAUSED.into());
        files.insert("nginx-usual.conf".into(), self.nginx("nginx-usual", usual, origin, &self.usual_maps()).into());
        files.insert("nginx-best.conf".into(), self.nginx("nginx-best", best, origin, &self.best_maps()).into());
        files.insert("nginx-plain.conf".into(), nginx_frame("nginx-plain", plain, origin, "", "", "").into());
        self.haproxy(haproxy, origin, &mut files);
        for (name, bytes) in files {
            let path = directory.join(name);
            fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

const PAUSED: &str = "The site is not to be fetched for the moment.\n";

/// The groups of the policy, each with the marks of the crawlers that it binds by name. Also the answers to their
/// refusals, each once.
fn groups(site: &Site, registry: &Registry) -> Result<(Vec<Group>, Vec<Answer>), String> {
    // In a short robots.txt each crawler has its own group, with the same rules again.
    let (mut groups, mut place): (Vec<Group>, Vec<usize>) = (Vec::new(), Vec::new());
    for document in &site.document.groups {
        if document.rules.iter().any(|rule| rule.allow) {
            return Err("Allow lines are not translated: in a list of patterns nothing is longest".into());
        }
        let disallow: Vec<String> = document.rules.iter().map(|rule| rule.pattern.as_str().to_owned()).collect();
        place.push(groups.iter().position(|group| group.disallow == disallow).unwrap_or(groups.len()));
        if place.last() == Some(&groups.len()) {
            groups.push(Group { marks: Vec::new(), disallow });
        }
    }
    let mut answers: Vec<Answer> = Vec::new();
    for (index, crawler) in (0..).zip(registry.crawlers()) {
        let rules = site.crawler_rules(Claim::Known(CrawlerIndex(index)));
        if !rules.named || crawler.markers.is_empty() {
            continue;
        }
        if rules.mode != Mode::Enforce {
            return Err(format!("{} is not enforced: only `enforce` is translated", crawler.name));
        }
        if let Binding::Group(group) = rules.binding {
            groups[place[usize::from(group)]].marks.extend(crawler.markers.iter().cloned());
        }
        let answer = &site.answers[usize::from(rules.disallowed)];
        if !answers.contains(answer) {
            answers.push(answer.clone());
        }
    }
    if !site.tokens.tokens().is_empty() {
        return Err("tokens that the registry does not know are not translated".into());
    }
    groups.retain(|group| !group.marks.is_empty());
    Ok((groups, answers))
}

fn tags(site: &Site) -> Result<Vec<(String, String)>, String> {
    let mut tags = Vec::new();
    for rule in &site.policy.indexing {
        let plain = rule.when.paths.is_empty() && rule.when.path_regex.is_none() && rule.when.status.is_empty();
        let lines = rule.tags.lines();
        let ([line], true, None) = (&lines[..], plain && !rule.when.types.is_empty(), &rule.unless) else {
            return Err("only tag rules by type, with one line, are translated".into());
        };
        tags.extend(rule.when.types.iter().map(|media| (media.value.clone(), line.clone())));
    }
    Ok(tags)
}

// Regular expressions.

/// One step of a pattern, in the order in which alternatives are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Start,
    Byte(u8),
    Any,
    End,
}

/// Alternatives that share their beginnings, so that a regex engine reads these once.
#[derive(Default)]
struct Trie {
    next: BTreeMap<Step, Trie>,
    matches: bool,
}

impl Trie {
    fn add(&mut self, steps: &[Step]) {
        if self.matches {
            return; // A shorter pattern matches already.
        }
        match steps.split_first() {
            Some((step, rest)) => self.next.entry(*step).or_default().add(rest),
            None => {
                self.matches = true;
                self.next.clear();
            }
        }
    }

    fn write(&self, out: &mut String) {
        let several = self.next.len() > 1;
        out.push_str(if several { "(?:" } else { "" });
        for (place, (step, rest)) in self.next.iter().enumerate() {
            out.push_str(if place > 0 { "|" } else { "" });
            write_step(*step, out);
            rest.write(out);
        }
        out.push_str(if several { ")" } else { "" });
    }
}

fn write_step(step: Step, out: &mut String) {
    match step {
        Step::Start => out.push('^'),
        Step::Any => out.push_str(".*"),
        Step::End => out.push('$'),
        Step::Byte(byte) if byte.is_ascii_alphanumeric() || b"/_-=&%~,:@".contains(&byte) => out.push(byte.into()),
        Step::Byte(byte) if b".?+*()|[]^$".contains(&byte) => out.extend(['\\', byte.into()]),
        // Neither nginx nor HAProxy, which both read the regex out of a file of theirs, gives these a meaning.
        Step::Byte(byte) => {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// A mark of the registry.
fn mark(text: &str) -> Vec<Step> {
    let body = text.trim_start_matches(['^', '=']);
    let start = (body.len() < text.len()).then_some(Step::Start);
    let end = text.starts_with('=').then_some(Step::End);
    // Compared without regard to case: in one case, so that beginnings are shared.
    start.into_iter().chain(body.to_ascii_lowercase().bytes().map(Step::Byte)).chain(end).collect()
}

/// A pattern of robots.txt.
fn path(text: &str) -> Vec<Step> {
    let body = text.strip_suffix('$').unwrap_or(text);
    let end = (body.len() < text.len()).then_some(Step::End);
    let steps = body.bytes().map(|byte| if byte == b'*' { Step::Any } else { Step::Byte(byte) });
    std::iter::once(Step::Start).chain(steps).chain(end).collect()
}

/// One regex.
fn regex(patterns: &[Vec<Step>]) -> String {
    let mut trie = Trie::default();
    for pattern in patterns {
        trie.add(pattern);
    }
    let mut text = String::new();
    trie.write(&mut text);
    text
}

/// As few regexes as there can be, each short enough for nginx.
fn regexes(patterns: &[Vec<Step>]) -> Vec<String> {
    let text = regex(patterns);
    if text.len() <= LONGEST_REGEX || patterns.len() < 2 {
        return vec![text];
    }
    let mut sorted = patterns.to_vec();
    sorted.sort();
    let (left, right) = sorted.split_at(sorted.len() / 2);
    [regexes(left), regexes(right)].concat()
}

fn marks_of(group: &Group) -> Vec<Vec<Step>> {
    group.marks.iter().map(|text| mark(text)).collect()
}

fn paths_of(group: &Group) -> Vec<Vec<Step>> {
    group.disallow.iter().map(|text| path(text)).collect()
}

// nginx.

impl Rules {
    /// As people write it: a line a crawler, a line a path, and a third map that combines the two. It asks both for
    /// every request, whoever sends it.
    fn usual_maps(&self) -> String {
        let mut text = "  map $http_user_agent $group {\n    default none;\n".to_owned();
        // Of two marks in one user agent the longer counts, as it does in crawlgate.
        let mut marks: Vec<(usize, &String)> = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            marks.extend(group.marks.iter().map(|mark| (number, mark)));
        }
        marks.sort_by_key(|(_, mark)| std::cmp::Reverse(mark.len()));
        for (number, text_of_mark) in marks {
            let _ = writeln!(text, "    \"~*{}\" group{number};", regex(&[mark(text_of_mark)]));
        }
        text.push_str("  }\n");
        let (mut key, mut refused) = ("$group".to_owned(), String::new());
        for (number, group) in self.groups.iter().enumerate() {
            if group.is_closed() {
                let _ = writeln!(refused, "    \"~^group{number}\" 1;");
                continue;
            }
            let _ = writeln!(text, "  map $request_uri $closed{number} {{\n    default open;");
            for pattern in &group.disallow {
                let _ = writeln!(text, "    \"~{}\" closed{number};", regex(&[path(pattern)]));
            }
            text.push_str("  }\n");
            let _ = write!(key, " $closed{number}");
            let _ = writeln!(refused, "    \"~^group{number} .*closed{number}\" 1;");
        }
        let _ = write!(text, "  map \"{key}\" $refused {{\n    default 0;\n{refused}  }}\n");
        text
    }

    /// The best that we know: one regex a group of crawlers, as few as can be for all paths, alternatives that share
    /// their beginnings, and paths that are looked at only for crawlers (nginx evaluates a variable when it is needed).
    fn best_maps(&self) -> String {
        let mut text = "  map $http_user_agent $group {\n    default none;\n".to_owned();
        for (number, group) in self.groups.iter().enumerate() {
            for regex in regexes(&marks_of(group)) {
                let _ = writeln!(text, "    \"~*{regex}\" group{number};");
            }
        }
        text.push_str("  }\n");
        let mut refused = String::new();
        for (number, group) in self.groups.iter().enumerate() {
            if group.is_closed() {
                let _ = writeln!(refused, "    group{number} 1;");
                continue;
            }
            let _ = writeln!(refused, "    group{number} $closed{number};");
            let _ = writeln!(text, "  map $request_uri $closed{number} {{\n    default 0;");
            for regex in regexes(&paths_of(group)) {
                let _ = writeln!(text, "    \"~{regex}\" 1;");
            }
            text.push_str("  }\n");
        }
        let _ = write!(text, "  map $group $refused {{\n    default 0;\n{refused}  }}\n");
        text
    }

    fn nginx(&self, name: &str, listen: &str, origin: &str, maps: &str) -> String {
        let mut maps = maps.to_owned();
        maps.push_str("  map $upstream_http_content_type $robots_tag {\n    default \"\";\n");
        for (media, line) in &self.tags {
            let _ = match media.strip_suffix('*') {
                Some(class) => writeln!(maps, "    \"~*^{class}\" \"{line}\";"),
                None => writeln!(
                    maps,
                    "    \"~*^{}(?:;|$)\" \"{line}\";",
                    regex(&[media.bytes().map(Step::Byte).collect()])
                ),
            };
        }
        maps.push_str("  }\n");
        let cache = &self.robots_cache;
        let server = format!(
            "    location = /robots.txt {{\n      root .;\n      charset utf-8;\n      add_header Cache-Control \"{cache}\";\n    }}\n"
        );
        let mut rules = String::new();
        if let Some(seconds) = self.pause {
            maps.push_str("  map $group $paused {\n    default 1;\n    none 0;\n  }\n");
            let _ = write!(
                rules,
                "      if ($paused) {{\n        add_header Retry-After {seconds} always;\n        \
                 add_header Cache-Control no-store always;\n        return 503 {};\n      }}\n",
                quoted(PAUSED)
            );
        }
        let _ = write!(
            rules,
            "      if ($refused) {{\n        add_header Cache-Control no-store always;\n        return {} {};\n      }}\n      \
             add_header X-Robots-Tag $robots_tag always;\n",
            self.status,
            quoted(&self.body)
        );
        nginx_frame(name, listen, origin, &maps, &server, &rules)
    }
}

/// A string in an nginx configuration.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// What all three have in common: a reverse proxy with kept connections to both sides.
fn nginx_frame(name: &str, listen: &str, origin: &str, maps: &str, server: &str, rules: &str) -> String {
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

// HAProxy.

/// HAProxy answers from memory what fits into a buffer with its head. This is the default.
const HAPROXY_BUFFER: usize = 16 * 1024;

impl Rules {
    /// The best that we know: what begins with a text or is a text is looked up in trees, the rest are regexes as for
    /// nginx. Conditions are read from the left and no further than needed, so paths are looked at only for crawlers.
    fn haproxy(&self, listen: &str, origin: &str, files: &mut BTreeMap<String, Vec<u8>>) {
        let mut rules = String::new();
        // `fhdr`: `hdr` would split user agents at their commas.
        for (number, group) in self.groups.iter().enumerate() {
            let list = regexes(&marks_of(group)).join("\n") + "\n";
            files.insert(format!("group{number}.agents"), list.into());
            let _ = writeln!(rules, "    acl group{number} req.fhdr(user-agent) -m reg -i -f group{number}.agents");
        }
        let fits = self.robots_txt.len() <= HAPROXY_BUFFER - 4096;
        if fits {
            let _ = writeln!(
                rules,
                "    http-request return status 200 content-type \"text/plain; charset=utf-8\" file robots.txt \
                 hdr cache-control \"{}\" if {{ path /robots.txt }}",
                self.robots_cache
            );
        } else {
            rules.push_str("    # robots.txt does not fit into a buffer: the origin has the same file.\n");
            rules.push_str("    acl robots path /robots.txt\n");
        }
        let unless_robots = if fits { "" } else { " !robots" };
        for (number, group) in self.groups.iter().enumerate() {
            if let Some(seconds) = self.pause {
                let _ = writeln!(
                    rules,
                    "    http-request return status 503 content-type \"text/plain; charset=utf-8\" file paused.txt \
                     hdr retry-after {seconds} hdr cache-control no-store if group{number}{unless_robots}"
                );
            }
            let closed = if group.is_closed() {
                String::new()
            } else {
                rules.push_str(&haproxy_paths(number, group, files));
                format!(" closed{number}")
            };
            let _ = writeln!(
                rules,
                "    http-request return status {} content-type \"text/plain; charset=utf-8\" file refused.txt \
                 hdr cache-control no-store if group{number}{unless_robots}{closed}",
                self.status
            );
        }
        for (media, line) in &self.tags {
            let test = match media.strip_suffix('*') {
                Some(class) => format!("res.hdr(content-type) -i -m beg {class}"),
                None => format!("res.hdr(content-type),field(1,;) -i -m str {media}"),
            };
            let _ = writeln!(rules, "    http-response add-header X-Robots-Tag \"{line}\" if {{ {test} }}");
        }
        let text = format!(
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
        );
        files.insert("haproxy.cfg".into(), text.into());
    }
}

/// The path rules of a group: by their kind in files, as conditions of one name.
fn haproxy_paths(number: usize, group: &Group, files: &mut BTreeMap<String, Vec<u8>>) -> String {
    let (mut prefixes, mut whole, mut wild) = (Vec::new(), Vec::new(), Vec::new());
    for pattern in &group.disallow {
        match pattern.strip_suffix('$') {
            _ if pattern.contains('*') => wild.push(path(pattern)),
            Some(text) => whole.push(text),
            None => prefixes.push(pattern.as_str()),
        }
    }
    let kinds = [("beg", prefixes.join("\n")), ("str", whole.join("\n")), ("reg", regexes(&wild).join("\n"))];
    let mut rules = String::new();
    for (kind, list) in kinds.into_iter().filter(|(_, list)| !list.is_empty()) {
        let file = format!("closed{number}.{kind}");
        let _ = writeln!(rules, "    acl closed{number} pathq -m {kind} -f {file}");
        files.insert(file, (list + "\n").into());
    }
    rules
}
