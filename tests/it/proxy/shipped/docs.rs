//! What the documentation shows works: every policy and settings file in it is accepted, every
//! command and flag exists.

use super::deploy::generated::assert_or_update;
use crate::proxy::support::program::{Program, haproxy, nginx};
use crate::proxy::support::{BROWSER, Gate, Origin, Setup};
use crawlgate::Engine;
use crawlgate::internals::policy::lint::Lint;
use crawlgate::internals::policy::{self, SCHEMA as SCHEMA_TEXT};
use crawlgate::internals::yaml::{Node, NodeValue as Yaml, YamlDocument};
use crawlgate::internals::{settings, sitemap};
use crawlgate::yaml::{Diagnostics, Severity, SourceFile};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("the document")
}

/// The fenced blocks of a language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let text = read(document);
    let fence = format!("```{language}\n");
    text.split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or("").to_owned())
        .collect()
}

/// What stands between backticks in the text, line breaks as blanks.
fn spans(document: &str) -> Vec<String> {
    let text = read(document);
    let outside: Vec<&str> = text.split("```").step_by(2).collect();
    let spans = outside
        .iter()
        .flat_map(|text| text.split('`').skip(1).step_by(2));
    spans.map(|span| span.replace('\n', " ")).collect()
}

fn findings(name: &str, text: &str) -> String {
    Engine::builder()
        .name(name)
        .load(text)
        .err()
        .map_or_else(String::new, |rejected| rejected.to_string())
}

/// Whether a block of a page with policies is a settings file.
fn is_settings(block: &str) -> bool {
    let mut lines = block.lines().map(str::trim_start);
    let first = lines.find(|line| !line.starts_with('#'));
    ["listen:", "origins:", "trusted_proxies:"]
        .iter()
        .any(|field| first.is_some_and(|line| line.starts_with(field)))
}

/// A configuration of the deployment page for a proxy in front, with these words in the place of
/// others.
fn documented_front(first_words: &str, words: &[(&str, String)]) -> String {
    let block = blocks("docs/deploy.md", "text")
        .into_iter()
        .find(|block| block.starts_with(first_words));
    let mut front = block.expect("the configuration of a proxy");
    for (word, other) in words {
        assert!(front.contains(word), "docs/deploy.md has no `{word}`");
        front = front.replace(word, other);
    }
    front
}

/// HAProxy as documented, in front of a crawlgate. `origin` takes its place while it is down. It does
/// not wait as long for an answer as documented.
fn haproxy_in_front(gate: &Gate, origin: &Origin) -> Program {
    Program::start(|prepared| {
        let words = [
            (
                "bind :443 ssl crt /etc/haproxy/shop.pem alpn h2,http/1.1",
                format!("bind {}", prepared.address),
            ),
            ("127.0.0.1:8080", gate.address.to_string()),
            (
                "check port 9190",
                format!("check port {}", gate.admin.port()),
            ),
            ("127.0.0.1:3000", origin.address.to_string()),
            ("timeout server 10s", "timeout server 2s".to_owned()),
        ];
        haproxy(prepared, &documented_front("frontend web\n", &words))
    })
}

/// nginx in the same place, as impatient.
fn nginx_in_front(gate: &Gate, origin: &Origin) -> Program {
    Program::start(|prepared| {
        let words = [
            ("listen 443 ssl", format!("listen {}", prepared.address)),
            ("127.0.0.1:8080", gate.address.to_string()),
            ("127.0.0.1:3000", origin.address.to_string()),
            ("proxy_read_timeout 10s", "proxy_read_timeout 2s".to_owned()),
        ];
        nginx(prepared, &documented_front("upstream crawlgate {", &words))
    })
}

fn gate_behind_a_front(origin: &Origin) -> Gate {
    Setup::before(origin.address)
        .settings("trusted_proxies: [127.0.0.1]")
        .start()
}

/// Over HTTP/2 a target that is no URL would be a 502.
#[test]
fn documented_haproxy_in_front_passes_odd_targets_on() {
    let origin = Origin::plain();
    let gate = gate_behind_a_front(&origin);
    let front = haproxy_in_front(&gate, &origin);
    for (target, at_origin) in [
        ("/?q=<b>", "/?q=%3Cb%3E"),
        ("/a`b", "/a%60b"),
        ("/page", "/page"),
    ] {
        assert_eq!(
            front.fetch_as(BROWSER, target).status,
            200,
            "{target}\n{}",
            front.log()
        );
        assert_eq!(origin.last().target(), at_origin);
    }
}

/// A crawlgate that hangs still has its connections accepted, by the kernel.
#[test]
fn documented_fronts_send_visitors_to_the_origin_while_crawlgate_hangs() {
    let origin = Origin::plain();
    let reserve = Origin::plain();
    let gate = gate_behind_a_front(&origin);
    let fronts = [
        nginx_in_front(&gate, &reserve),
        haproxy_in_front(&gate, &reserve),
    ];
    for front in &fronts {
        assert_eq!(
            front.fetch_as(BROWSER, "/page").status,
            200,
            "{}",
            front.log()
        );
    }
    assert!(reserve.received().is_empty());
    gate.signal("STOP");
    let statuses = fronts
        .each_ref()
        .map(|front| front.fetch_as(BROWSER, "/page").status);
    gate.signal("CONT");
    assert_eq!(statuses, [200, 200]);
    assert_eq!(reserve.received().len(), fronts.len());
}

#[test]
fn every_policy_in_the_documentation_is_accepted() {
    for (document, at_least) in [
        ("docs/policy.md", 10),
        ("docs/instances.md", 1),
        ("docs/library.md", 1),
        ("docs/tutorial.md", 3),
        ("README.md", 1),
        ("docs/behind-your-proxy.md", 1),
    ] {
        let mut policies = blocks(document, "yaml");
        policies.retain(|block| !is_settings(block));
        assert!(
            policies.len() >= at_least,
            "{document} has {} policies",
            policies.len()
        );
        for policy in policies {
            let found = findings(document, &policy);
            assert!(found.is_empty(), "{document}:\n{policy}\n{found}");
        }
    }
}

/// The fields of the JSON schema, each named by the definition or the field that it is in. With a
/// node, those that it has.
fn fields(schema: &Value, place: &str, node: Option<&Node>, found: &mut BTreeSet<String>) {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(SCHEMA_TEXT).expect("JSON"));
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|at| at.strip_prefix("#/definitions/"))
    {
        // Definitions that contain themselves would not end.
        assert!(place.matches('.').count() < 20, "{place}");
        fields(&SCHEMA["definitions"][name], name, node, found);
    }
    for either in ["allOf", "anyOf"]
        .into_iter()
        .filter_map(|keyword| schema[keyword].as_array())
        .flatten()
    {
        fields(either, place, node, found);
    }
    if schema["items"].is_object() {
        match node.map(|node| &node.value) {
            None => fields(&schema["items"], place, None, found),
            Some(Yaml::Sequence(items)) => {
                items
                    .iter()
                    .for_each(|item| fields(&schema["items"], place, Some(item), found));
            }
            Some(_) => {}
        }
    }
    let entries = node.map(|node| match &node.value {
        Yaml::Mapping(entries) => entries.as_slice(),
        _ => &[],
    });
    let known = schema["properties"].as_object();
    for (name, field) in known.into_iter().flatten() {
        let value = entries.map(|entries| {
            entries
                .iter()
                .find(|(key, _)| is(key, name))
                .map(|(_, value)| value)
        });
        if value != Some(None) {
            let place = if place.is_empty() {
                name.clone()
            } else {
                format!("{place}.{name}")
            };
            fields(field, &place, value.flatten(), found);
            found.insert(place);
        }
    }
    let others = &schema["additionalProperties"];
    if others.is_object() {
        match entries {
            None => fields(others, place, None, found),
            Some(entries) => {
                let unknown =
                    |key: &Node| !known.is_some_and(|known| known.keys().any(|name| is(key, name)));
                for (_, value) in entries.iter().filter(|(key, _)| unknown(key)) {
                    fields(others, place, Some(value), found);
                }
            }
        }
    }
}

fn is(key: &Node, name: &str) -> bool {
    matches!(&key.value, Yaml::Scalar { text, .. } if text == name)
}

#[test]
fn every_field_of_the_language_has_an_example() {
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).expect("JSON");
    let mut there = BTreeSet::new();
    fields(&schema, "", None, &mut there);
    for name in [
        "hosts",
        "robots.origin",
        "group.crawl_delay",
        "case.identity",
        "license.url",
        "case.expect.tag",
    ] {
        assert!(there.contains(name), "`{name}` is not seen among {there:?}");
    }
    let mut shown = BTreeSet::new();
    for policy in blocks("docs/policy.md", "yaml") {
        let source = SourceFile {
            name: "docs/policy.md".into(),
            text: policy.into(),
        };
        let document = YamlDocument::parse(&source, &mut Diagnostics::default());
        let root = document
            .and_then(|document| document.root)
            .expect("a policy");
        fields(&schema, "", Some(&root), &mut shown);
    }
    let missing: Vec<&String> = there.difference(&shown).collect();
    assert!(
        missing.is_empty(),
        "docs/policy.md has no example of {missing:?}"
    );
}

#[test]
fn the_settings_in_the_documentation_are_accepted() {
    let guides = [
        "docs/deploy.md",
        "docs/instances.md",
        "docs/tls.md",
        "docs/tutorial.md",
        "docs/privacy.md",
    ];
    let in_guides: Vec<String> = guides
        .iter()
        .flat_map(|page| blocks(page, "yaml"))
        .filter(|block| is_settings(block))
        .collect();
    let files = blocks("docs/settings.md", "yaml");
    assert!(!files.is_empty() && in_guides.len() >= guides.len());
    for text in files.into_iter().chain(in_guides) {
        let source = SourceFile {
            name: "a page".into(),
            text: text.as_str().into(),
        };
        let (file, diagnostics) =
            settings::decode_settings(&source, Path::new(""), settings::Settings::default());
        let found: Vec<String> = diagnostics
            .items
            .iter()
            .map(|item| item.render(&source, false))
            .collect();
        assert!(file.is_some() && found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn every_command_and_flag_in_the_documentation_exists() {
    let mut helps: HashMap<String, String> = HashMap::new();
    let mut seen = 0;
    for document in [
        "docs/command-line.md",
        "docs/audit.md",
        "docs/dashboard.md",
        "docs/behind-your-proxy.md",
        "docs/deploy.md",
        "docs/instances.md",
        "docs/kubernetes.md",
        "docs/runbook.md",
        "docs/tls.md",
        "docs/internals/trials.md",
        "docs/export.md",
        "docs/log-formats.md",
        "docs/policies-in-git.md",
        "docs/policy.md",
        "docs/settings.md",
        "docs/tutorial.md",
        "docs/first-day.md",
        "docs/faq.md",
        "docs/privacy.md",
        "README.md",
    ] {
        let typed = blocks(document, "sh").join("\n");
        for line in typed.lines().map(str::to_owned).chain(spans(document)) {
            // `target/release/crawlgate` and `crawlgate` alike; `$ ` stands before what is typed in
            // a transcript.
            let line = line
                .trim_start_matches("$ ")
                .trim_start_matches("docker exec CONTAINER ");
            let mut words = line.split_whitespace();
            if !words
                .next()
                .is_some_and(|program| program == "crawlgate" || program.ends_with("/crawlgate"))
            {
                continue;
            }
            // The name alone is no command, nor is `crawlgate --version`.
            let Some(command) = words
                .next()
                .filter(|word| !word.starts_with('-'))
                .map(str::to_owned)
            else {
                continue;
            };
            let help = helps.entry(command.clone()).or_insert_with(|| {
                let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
                    .args([command.as_str(), "--help"])
                    .output()
                    .expect("the binary runs");
                assert!(
                    output.status.success(),
                    "{document}: there is no command `{command}`"
                );
                String::from_utf8_lossy(&output.stdout).into_owned()
            });
            for flag in words.filter(|word| word.starts_with("--")) {
                assert!(
                    help.contains(flag),
                    "{document}: `crawlgate {command}` has no {flag}"
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 15, "only {seen} commands were seen");
}

#[test]
fn every_page_is_in_the_index() {
    let index = read("docs/README.md");
    for directory in ["docs", "docs/internals"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        for entry in std::fs::read_dir(path).expect("the pages") {
            let name = entry.expect("a page").file_name();
            let name = name.to_str().expect("a name in UTF-8");
            let link = format!("{directory}/{name}").replacen("docs/", "](", 1);
            assert!(
                !name.ends_with(".md") || name == "README.md" || index.contains(&link),
                "{directory}/{name} is not in docs/README.md"
            );
        }
    }
}

/// The lints in the order of their sections in `docs/lints.md`.
fn lints() -> impl Iterator<Item = &'static Lint> {
    policy::lint::LINTS
        .into_iter()
        .flatten()
        .chain(sitemap::LINTS)
}

/// `UPDATE_DOCS=1 cargo test --test it -- sections_of_lints` writes the sections again. A new lint
/// needs its heading first.
#[test]
fn sections_of_lints_are_those_of_the_catalogue() {
    let page = read("docs/lints.md");
    let headings: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let ids: Vec<&str> = lints().map(|lint| lint.id).collect();
    assert_eq!(headings, ids, "one section each, in this order");
    let mut expected = page.clone();
    for lint in lints() {
        let begin = expected
            .find(&format!("### {}\n", lint.id))
            .expect("found above");
        let end = expected[begin + 1..]
            .find("\n##")
            .map_or(expected.len(), |at| begin + 1 + at);
        let severity = match lint.severity {
            Severity::Note => "Note",
            Severity::Warning => "Warning",
            Severity::Error => "Error",
        };
        let section = format!(
            "### {}\n\n**{severity}.** {}\n",
            lint.id,
            lint.explanation()
        );
        expected.replace_range(begin..end, &section);
        assert!(section.contains("\n\nFix: "), "{}", lint.id);
    }
    assert_or_update("docs/lints.md", &expected);
}

/// The files of a directory of the source, without tests.
fn source_files(directory: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.to_string_lossy().contains("tests")
        {
            let text = std::fs::read_to_string(&path).expect("a source");
            let text = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
            files.push(text.to_owned());
        }
    }
}

#[test]
fn every_mistake_in_a_file_is_in_the_table() {
    let mut sources = Vec::new();
    for module in ["policy", "yaml", "settings", "indexing", "crawlers"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        source_files(&directory.join(module), &mut sources);
    }
    // The id is the first argument, or the first part of a tuple. Those of tdm are header fields.
    let id = regex::Regex::new(r#"\(\s*"([a-z]+(?:-[a-z]+)+)","#).expect("an expression");
    let written: BTreeSet<&str> = sources
        .iter()
        .flat_map(|text| id.captures_iter(text))
        .map(|found| found.get(1).expect("a group").as_str())
        .filter(|id| !id.starts_with("tdm-") && lints().all(|lint| lint.id != *id))
        .collect();
    let page = read("docs/lints.md");
    let table = page.split("\n## Mistakes").nth(1).expect("the table");
    let listed: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let missing: Vec<&&str> = written.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
