//! The schemas that editors use say what the decoders do: the same fields, words, shapes and
//! defaults. Every path of a schema is asked of the decoder, so a field that is added to one of
//! them alone fails here.

use crawlgate::crawlers::{Claim, Registry};
use crawlgate::internals::policy::IncludedFiles;
use crawlgate::internals::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crawlgate::internals::verdict::PolicyDependencies;
use crawlgate::internals::yaml::{Node, NodeValue as Yaml, YamlDocument};
use crawlgate::internals::{policy, settings, verdict};
use crawlgate::time::Timestamp;
use crawlgate::yaml::{Diagnostic, Diagnostics, Severity, SourceFile};
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// A kind of file: its schema, and what crawlgate itself finds in a text.
struct Kind {
    name: &'static str,
    schema: Value,
    validator: Validator,
    findings: fn(&str) -> Diagnostics,
    /// The sources of its decoder, whose words are tried as fields.
    sources: &'static [&'static str],
}

static POLICY: LazyLock<Kind> = LazyLock::new(|| {
    kind(
        "policy",
        policy::SCHEMA,
        |text| policy::read("shop", &source(text)).1,
        &["src/policy/decode"],
    )
});
static SETTINGS: LazyLock<Kind> = LazyLock::new(|| {
    kind(
        "settings",
        settings::SCHEMA,
        |text| {
            settings::decode_settings(&source(text), Path::new(""), settings::Settings::default()).1
        },
        &["src/settings"],
    )
});

fn kind(
    name: &'static str,
    schema: &str,
    findings: fn(&str) -> Diagnostics,
    sources: &'static [&'static str],
) -> Kind {
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    Kind {
        name,
        schema,
        validator,
        findings,
        sources,
    }
}

fn kinds() -> [&'static Kind; 2] {
    [&POLICY, &SETTINGS]
}

fn source(text: &str) -> SourceFile {
    SourceFile {
        name: "file.yaml".into(),
        text: text.into(),
    }
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).expect("the file is readable")
}

// ---- what an editor sees: YAML by the core schema of YAML 1.2

fn as_json(text: &str) -> Option<Value> {
    let document = YamlDocument::parse(&source(text), &mut Diagnostics::default())?;
    Some(document.root.as_ref().map_or(Value::Null, value))
}

fn value(node: &Node) -> Value {
    match &node.value {
        _ if node.is_null() => Value::Null,
        Yaml::Sequence(items) => items.iter().map(value).collect(),
        Yaml::Mapping(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, item)| (text_of(key), value(item)))
                .collect(),
        ),
        Yaml::Scalar { text, plain: false } => json!(text),
        Yaml::Scalar { text, plain: true } => plain(text),
    }
}

fn text_of(node: &Node) -> String {
    match &node.value {
        Yaml::Scalar { text, .. } => text.clone(),
        _ => panic!("a key that is no scalar"),
    }
}

/// Section 10.3.2 of YAML 1.2.2: words and numbers that are not quoted.
fn plain(text: &str) -> Value {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let based = |prefix: &str, radix| u64::from_str_radix(text.strip_prefix(prefix)?, radix).ok();
    match text {
        "true" | "True" | "TRUE" => return json!(true),
        "false" | "False" | "FALSE" => return json!(false),
        _ => {}
    }
    if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return text
            .parse::<i64>()
            .map_or_else(|_| json!(text.parse::<f64>().ok()), |number| json!(number));
    }
    if let Some(number) = based("0x", 16).or_else(|| based("0o", 8)) {
        return json!(number);
    }
    let float = digits.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.')
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    match text.parse::<f64>() {
        Ok(number) if float => json!(number),
        _ => json!(text),
    }
}

impl Kind {
    /// Whether the editor would show no mistake.
    fn schema_accepts(&self, text: &str) -> bool {
        as_json(text).is_some_and(|value| self.validator.is_valid(&value))
    }

    fn schema_complaints(&self, text: &str) -> Vec<String> {
        let value = as_json(text).unwrap_or(Value::Null);
        self.validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    fn accepts(&self, text: &str) -> bool {
        !(self.findings)(text).has_errors()
    }
}

// ---- the paths of a schema

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    Item,
}

/// Every path of a schema with what may stand there, references resolved.
fn places(kind: &Kind) -> BTreeMap<Vec<Step>, Vec<&Value>> {
    let mut places = BTreeMap::new();
    enter(&kind.schema, &kind.schema, Vec::new(), &mut places);
    places
}

fn enter<'s>(
    root: &'s Value,
    schema: &'s Value,
    path: Vec<Step>,
    places: &mut BTreeMap<Vec<Step>, Vec<&'s Value>>,
) {
    let parts = parts(root, schema);
    for part in &parts {
        for (name, inner) in part["properties"].as_object().into_iter().flatten() {
            enter(
                root,
                inner,
                [path.as_slice(), &[Step::Field(name.clone())]].concat(),
                places,
            );
        }
        if part["additionalProperties"].is_object() {
            let any = Step::Field("Examplebot".into());
            enter(
                root,
                &part["additionalProperties"],
                [path.as_slice(), &[any]].concat(),
                places,
            );
        }
        if part["items"].is_object() {
            enter(
                root,
                &part["items"],
                [path.as_slice(), &[Step::Item]].concat(),
                places,
            );
        }
    }
    places.entry(path).or_default().extend(parts);
}

/// A schema and all that it refers to at the same place.
fn parts<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let mut all = vec![schema];
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix('#'))
    {
        all.extend(parts(
            root,
            root.pointer(name).expect("what is referred to"),
        ));
    }
    for list in ["allOf", "anyOf"] {
        for inner in schema[list].as_array().into_iter().flatten() {
            all.extend(parts(root, inner));
        }
    }
    all
}

fn shown(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) => format!("/{name}"),
        Step::Item => "[]".to_owned(),
    };
    path.iter().map(step).collect()
}

/// A file that says only `leaf`, at this path, and where `leaf` begins.
fn file(path: &[Step], leaf: &str) -> (String, usize) {
    let (mut before, mut after) = (String::new(), String::new());
    for step in path {
        match step {
            Step::Field(name) => {
                before += &format!("{{\"{name}\": ");
                after.insert(0, '}');
            }
            Step::Item => {
                before.push('[');
                after.insert(0, ']');
            }
        }
    }
    (format!("{before}{leaf}{after}"), before.len())
}

/// What the decoder says of the value at this path.
fn complaints_at(kind: &Kind, path: &[Step], leaf: &str) -> Vec<Diagnostic> {
    let (text, offset) = file(path, leaf);
    let here = |item: &Diagnostic| {
        item.severity == Severity::Error && item.span.is_some_and(|span| span.start == offset)
    };
    (kind.findings)(&text)
        .items
        .into_iter()
        .filter(here)
        .collect()
}

fn properties(parts: &[&Value]) -> Option<BTreeSet<String>> {
    let maps: Vec<_> = parts
        .iter()
        .filter_map(|part| part["properties"].as_object())
        .collect();
    (!maps.is_empty()).then(|| {
        maps.into_iter()
            .flat_map(|map| map.keys().cloned())
            .collect()
    })
}

// ---- fields

/// Words that may be fields: what either schema names, and every word of the decoder's own source.
fn candidates(kind: &Kind) -> BTreeSet<String> {
    let mut words: BTreeSet<String> = kinds()
        .iter()
        .flat_map(|kind| places(kind).into_values())
        .filter_map(|parts| properties(&parts))
        .flatten()
        .collect();
    for path in kind.sources {
        let path = repository(path);
        let files = match std::fs::read_dir(&path) {
            Ok(entries) => entries
                .map(|entry| entry.expect("an entry").path())
                .collect(),
            Err(_) => vec![path],
        };
        for file in files {
            let text = std::fs::read_to_string(file).expect("a source file");
            let word = |text: &&str| {
                !text.is_empty()
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            words.extend(text.split('"').filter(word).map(str::to_owned));
        }
    }
    words
}

/// The names in messages like `there is no field "x" here`.
fn named<'d>(findings: &'d Diagnostics, id: &str) -> BTreeSet<&'d str> {
    findings
        .items
        .iter()
        .filter(|item| item.id == id)
        .filter_map(|item| item.message.split('"').nth(1))
        .collect()
}

#[test]
fn the_schema_has_exactly_the_fields_that_the_decoder_takes() {
    for kind in kinds() {
        let candidates = candidates(kind);
        assert!(
            candidates.len() > 60,
            "{} words: {candidates:?}",
            candidates.len()
        );
        let mut maps = 0;
        for (path, parts) in places(kind) {
            let place = format!("{}{}", kind.name, shown(&path));
            let Some(properties) = properties(&parts) else {
                continue;
            };
            maps += 1;
            let fields: Vec<String> = candidates
                .iter()
                .map(|name| format!("\"{name}\": x"))
                .collect();
            let findings = (kind.findings)(&file(&path, &format!("{{{}}}", fields.join(", "))).0);
            let (unknown, later) = (
                named(&findings, "unknown-field"),
                named(&findings, "not-supported-yet"),
            );
            let taken: BTreeSet<String> = candidates
                .iter()
                .filter(|name| !unknown.contains(name.as_str()) && !later.contains(name.as_str()))
                .cloned()
                .collect();
            assert_eq!(taken, properties, "{place}");

            // And those are the fields it names to whoever writes one that is not there.
            let findings = (kind.findings)(&file(&path, "{zzzzzzzzzz: x}").0);
            let help = findings
                .items
                .iter()
                .filter(|item| item.id == "unknown-field")
                .find_map(|item| item.help.clone());
            let help = help.unwrap_or_else(|| panic!("{place} takes any field"));
            let told: BTreeSet<String> = help
                .split_once(": ")
                .expect("a list of fields")
                .1
                .split(", ")
                .map(str::to_owned)
                .collect();
            assert_eq!(told, properties, "{place}: what the help names");
        }
        assert!(maps >= 5, "{} has {maps} maps", kind.name);
    }
}

#[test]
fn schema_refuses_unknown_fields_and_describes_known_ones() {
    for kind in kinds() {
        for (path, parts) in places(kind) {
            let place = format!("{}{}", kind.name, shown(&path));
            for part in parts.iter().filter(|part| part["properties"].is_object()) {
                assert_eq!(part["additionalProperties"], json!(false), "{place}");
            }
            if let Some(Step::Field(name)) = path.last()
                && name != "Examplebot"
            {
                let described = parts
                    .iter()
                    .filter_map(|part| part["description"].as_str())
                    .any(|text| text.ends_with('.'));
                assert!(described, "{place} has no description");
            }
        }
    }
}

// ---- shapes

#[test]
fn schema_accepts_the_shapes_of_the_decoder() {
    for kind in kinds() {
        for (path, parts) in places(kind)
            .into_iter()
            .filter(|(path, _)| !path.is_empty())
        {
            let mut types: BTreeSet<&str> = BTreeSet::new();
            for part in parts {
                let listed = part["type"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .chain([&part["type"]]);
                types.extend(listed.filter_map(Value::as_str));
                if part["enum"].is_array() {
                    types.insert("string");
                }
            }
            let scalar = ["string", "number", "integer", "boolean"]
                .iter()
                .any(|name| types.contains(name));
            let shapes = [
                ("[]", types.contains("array")),
                ("{}", types.contains("object")),
                ("zzzzzzzzzz", scalar),
            ];
            for (leaf, allowed) in shapes {
                let refused = complaints_at(kind, &path, leaf)
                    .iter()
                    .any(|item| item.id == "wrong-type");
                assert_eq!(!refused, allowed, "{}{}: {leaf}", kind.name, shown(&path));
            }
            let nothing = (kind.findings)(&file(&path, "~").0);
            assert!(
                nothing.items.iter().any(|item| item.id == "wrong-type"),
                "{}{}: ~",
                kind.name,
                shown(&path)
            );
            assert!(!types.contains("null"), "{}{}", kind.name, shown(&path));
        }
    }
}

// ---- words

#[test]
fn the_words_of_the_schema_are_the_words_that_the_decoder_takes() {
    let as_text = |word: &Value| {
        word.as_str()
            .map_or_else(|| word.to_string(), str::to_owned)
    };
    let mut seen = 0;
    for kind in kinds() {
        for (path, parts) in places(kind) {
            let mut words: BTreeSet<String> = parts
                .iter()
                .filter_map(|part| part["enum"].as_array())
                .flatten()
                .map(as_text)
                .collect();
            if words.is_empty() {
                continue;
            }
            seen += 1;
            let place = format!("{}{}", kind.name, shown(&path));
            for part in parts
                .iter()
                .filter_map(|part| part["enum"].as_array())
                .flatten()
            {
                let complaints = complaints_at(kind, &path, &part.to_string());
                assert!(complaints.is_empty(), "{place}: {part}: {complaints:?}");
            }
            let refusals = complaints_at(kind, &path, "\"zzzzzzzzzz\"");
            let refusal = refusals
                .first()
                .unwrap_or_else(|| panic!("{place} takes any word"));
            // `strict`, `direct_forwarding`, `evidence` and `history.paths` are yes or no in any of their spellings: there the
            // schema's words are only what is offered.
            let offered = [
                "settings/strict",
                "settings/direct_forwarding",
                "settings/evidence",
                "settings/history/paths",
                "policy/html/meta",
            ];
            if offered.contains(&place.as_str()) {
                continue;
            }
            // To an editor of YAML 1.1 `off` is false: it is taken and not offered.
            words.remove("false");
            let help = refusal.help.as_deref().unwrap_or_default();
            let (_, taken) = help.split_once(": ").expect("a list of words");
            let taken: BTreeSet<String> = taken
                .split(", ")
                .filter(|word| complaints_at(kind, &path, &format!("\"{word}\"")).is_empty())
                .map(str::to_owned)
                .collect();
            assert_eq!(taken, words, "{place}");
        }
    }
    assert!(seen > 20, "only {seen} lists of words");
}

// ---- defaults

/// Sets a field of a document.
fn set(document: &mut Value, path: &[Step], to: &Value) {
    let Some((step, rest)) = path.split_first() else {
        *document = to.clone();
        return;
    };
    match step {
        // A field of what stands alone or in a list: in the list, where there is one.
        Step::Field(_) if document.is_array() => set(&mut document[0], path, to),
        Step::Field(name) => {
            if !document.is_object() {
                *document = json!({});
            }
            set(&mut document[name.as_str()], rest, to);
        }
        Step::Item => {
            if !document.is_array() {
                *document = json!([{}]);
            }
            set(&mut document[0], rest, to);
        }
    }
}

/// All that a policy does, as far as a default can change it.
fn effects(document: &Value) -> String {
    let origin = OriginRobotsTxt::new("origin", *b"User-agent: *\nDisallow: /tmp/\n");
    let text = source(&document.to_string());
    let surroundings = PolicyDependencies {
        origin: &OriginRobotsAvailability::Available(origin.into()),
        files: &IncludedFiles::default(),
    };
    let (site, findings) = verdict::load_site_at(
        "shop",
        &text,
        surroundings,
        Registry::builtin(),
        Timestamp(i64::MIN),
    );
    let site = site.unwrap_or_else(|| panic!("{document}: {:?}", findings.items));
    let standings: Vec<String> = (0..Registry::builtin().crawlers().len())
        .map(|index| {
            let crawler = Registry::builtin()
                .find(&Registry::builtin().crawlers()[index].id)
                .expect("a crawler");
            format!("{:?}", site.crawler_rules(Claim::Known(crawler)))
        })
        .collect();
    let pause = site
        .policy
        .pauses
        .first()
        .map(|pause| (pause.audience, pause.retry_after, pause.pause_robots_txt));
    let statuses: Vec<u16> = site.policy.tests.iter().map(|case| case.status).collect();
    let (body, cache) = (
        String::from_utf8_lossy(&site.robots_txt.body),
        &site.robots_txt.cache_control,
    );
    let html = site.html.is_some();
    let retired: Vec<_> = site
        .policy
        .retire
        .iter()
        .map(|retired| retired.disallow_after)
        .collect();
    let tags = (site.origin_tags, html, retired);
    let settled = (
        site.policy.environment,
        tags,
        site.grace,
        site.behind_cache,
        &site.answers,
    );
    format!(
        "{body}\n{cache}\n{settled:?}\n{pause:?}\n{statuses:?}\n{}",
        standings.join("\n")
    )
}

#[test]
fn values_offered_by_an_editor_are_accepted() {
    let mut seen = 0;
    for kind in kinds() {
        for (path, parts) in places(kind) {
            let examples = parts
                .iter()
                .filter_map(|part| part["examples"].as_array())
                .flatten();
            for offer in examples.chain(default_of(&parts)) {
                seen += 1;
                let mut complaints = complaints_at(kind, &path, &offer.to_string());
                // An example needs another field or group of the file, and here there is none.
                complaints
                    .retain(|item| !matches!(item.id, "unknown-group" | "mirror-without-outgoing"));
                assert!(
                    complaints.is_empty(),
                    "{}{}: {offer}: {complaints:?}",
                    kind.name,
                    shown(&path)
                );
                // Editors quote it, and what is quoted is a path in the settings.
                assert_ne!(*offer, json!("off"), "{}{}", kind.name, shown(&path));
            }
        }
    }
    assert!(seen > 60, "only {seen} offers");
}

fn default_of<'s>(parts: &[&'s Value]) -> Option<&'s Value> {
    parts.iter().find_map(|part| part.get("default"))
}

/// A value that is not the default, and says something else.
fn other_than(default: &Value, path: &[Step], parts: &[&Value]) -> Option<Value> {
    if let [Step::Field(purposes), Step::Field(name)] = path
        && purposes == "purposes"
    {
        let crawlers = Registry::builtin().crawlers();
        let published = crawlers
            .iter()
            .any(|crawler| crawler.purpose.name() == name && !crawler.tokens.is_empty());
        return (published && !["tool", "other"].contains(&name.as_str()))
            .then(|| json!("disallow"));
    }
    let mut words = parts
        .iter()
        .filter_map(|part| part["enum"].as_array())
        .flatten()
        .filter(|word| *word != default);
    Some(match (words.next(), default) {
        (Some(word), _) => word.clone(),
        (None, Value::Number(_)) => json!(451),
        (None, _) => json!("86399s"),
    })
}

#[test]
fn policy_default_equals_a_missing_field() {
    let base = json!({
        "robots": { "groups": [{ "agents": ["*"], "disallow": ["/cart/"] }] },
        "pause": { "from": "2026-12-01T01:00:00Z", "until": "2026-12-01T03:00:00Z" },
        "tests": [{ "agent": "Googlebot", "path": "/", "expect": {} }],
        "acknowledge": "site_disallowed",
        "retire": [{ "paths": ["/old/"], "noindex_from": "2026-11-20" }],
    });
    let (mut seen, mut told_apart) = (0, 0);
    for (path, parts) in places(&POLICY) {
        let Some(default) = default_of(&parts) else {
            continue;
        };
        seen += 1;
        let mut without = base.clone();
        if path == [Step::Field("staging_crawl".into())] {
            without["environment"] = json!("staging");
        }
        let mut with = without.clone();
        set(&mut with, &path, default);
        assert!(
            effects(&without) == effects(&with),
            "policy{} is not {default} by itself",
            shown(&path)
        );
        if let Some(other) = other_than(default, &path, &parts) {
            told_apart += 1;
            set(&mut with, &path, &other);
            assert!(
                effects(&without) != effects(&with),
                "policy{}: {other} changes nothing",
                shown(&path)
            );
        }
    }
    assert!(
        seen > 20 && told_apart > 15,
        "{seen} defaults, {told_apart} told apart from something else"
    );
}

#[test]
fn settings_default_equals_a_missing_field() {
    let settled = |document: &Value| {
        let text = document.to_string();
        let (file, findings) =
            settings::decode_settings(&source(&text), Path::new(""), settings::Settings::default());
        let file = file.unwrap_or_else(|| panic!("{text}: {:?}", findings.items));
        file.finalize().expect("an origin")
    };
    let without = json!({ "origins": [{ "servers": "http://127.0.0.1:3000" }] });
    let mut seen = 0;
    for (path, parts) in places(&SETTINGS) {
        let Some(default) = default_of(&parts) else {
            continue;
        };
        seen += 1;
        let mut with = without.clone();
        set(&mut with, &path, default);
        assert_eq!(
            settled(&without),
            settled(&with),
            "settings{}",
            shown(&path)
        );
    }
    assert!(seen > 10, "only {seen} defaults");
}

// ---- whole documents

/// The fenced YAML of a document.
fn blocks(document: &str) -> Vec<String> {
    read(document)
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or("").to_owned())
        .collect()
}

fn yaml_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            found.push(path);
        }
    }
}

#[test]
fn shipped_policies_and_settings_match_their_schemas() {
    let mut files = Vec::new();
    for directory in ["policies", "deploy", "docs"] {
        yaml_files(&repository(directory), &mut files);
    }
    let texts = files
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a file"));
    let texts: Vec<String> = texts
        .chain(
            ["docs/policy.md", "docs/settings.md", "README.md"]
                .into_iter()
                .flat_map(blocks),
        )
        .collect();
    for (kind, at_least) in [(&*POLICY, 17), (&*SETTINGS, 1)] {
        // What is neither is somebody else's YAML.
        let own: Vec<&String> = texts.iter().filter(|text| kind.accepts(text)).collect();
        assert!(
            own.len() >= at_least,
            "only {} files are {}",
            own.len(),
            kind.name
        );
        for text in own {
            let complaints = kind.schema_complaints(text);
            assert!(
                complaints.is_empty(),
                "{}:\n{text}\n{}",
                kind.name,
                complaints.join("\n")
            );
        }
    }
}

/// Accepted by both, in spellings that the documentation does not show.
const RIGHT_POLICIES: &[&str] = &[
    "robots: { origin: replace }\nenforcement: { traps: [], exempt: [], too_fast: { status: 429 }, trapped: { for: 1h }, unverified: observe }",
    "robots: { origin: replace }\nenforcement: { traps: '/a/*b', trapped: { for: 1d, status: 0410 }, too_fast: { body: x } }",
    "robots: { origin: replace }\nenforcement: { exempt: 360Spider, agents: { 360Spider: { trapped: 410, impostor: 404 } } }",
    "robots: { origin: replace }\ncrawlers: { token: 360Spider, user_agent: 360, crawl_delay: Yes, networks: ['::1'] }",
    "robots: { origin: replace }\ncrawlers: [{ token: A, user_agent: [Abot], binds: named, networks: 10.0.0.0/8 }]",
    "robots: { origin: replace, groups: { agents: [360Spider, '*'], disallow: '', crawl_delay: 500ms } }",
    "robots: { origin: replace, max_age: 60s, sitemaps: [] }",
    "hosts: [shop.example]",
    "robots: {}",
    "robots: { origin: merge, sitemaps: 'https://shop.example/s.xml' }",
    "robots: { origin: only, max_age: 60s }",
    "robots: { origin: replace, max_age: '1h 30m' }\nenforcement: { grace: 1w, behind_cache: Yes }",
    "robots: { origin: replace }\nenforcement: { behind_cache: 90m }\ntests: { agent: GPTBot, path: /, cached: none, expect: { kind: allowed, never_fetched: no } }",
    "robots: { origin: replace }\nenforcement: { behind_cache: no }\ntests: { agent: GPTBot, path: /, cached: \"User-agent: *\\nDisallow: /\", expect: allowed }",
    "robots: { origin: replace }\nenforcement: { disallowed: { body: x }, agents: { GPTBot: { disallowed: { retry_after: 1h } } } }",
    "robots: { origin: replace }\nenforcement: { mode: false, disallowed: '403', ambiguous: { status: 0410, body: 12 } }",
    "robots: { origin: replace }\nenforcement: { agents: { 360Spider: { mode: off } }, purposes: { tool: { mode: enforce } } }",
    "robots: { origin: replace }\nenforcement: {}\npurposes: { tool: inherit }\ntests: []\nacknowledge: long_pause",
    "robots: { origin: replace }\nindexing: { status: 4xx, not: { status: ['500', 5xx] }, tags: { '*': none } }",
    "robots: { origin: replace }\npause: { from: 2026-12-01, until: 2026-12-02T01:00:00.5+02:00, retry_after: 90s }",
    "robots: { origin: replace }\nhosts: bücher.example:8443",
    "hosts: ['[2001:db8::1]:8443', 10.0.0.1, _srv.example]\nrobots: &r { origin: replace, max_age: 1m }",
    "robots: { origin: replace, max_age: 1d }",
    "robots: { origin: replace, license: ['http://a.example:81/l?b=[c]', { url: https://a.example }], signals: all }",
    "robots: { origin: replace, content_signal: { search: true, ai-train: 'no' } }\ntdm: { paths: '*.pdf', reservation: false }",
    "robots: { origin: replace, content_usage: [{ train-ai: y }, { paths: [/a, '/b c'], other: { x-1.2: n } }] }",
    "robots: { origin: replace, license: https://a.example/l }\nenforcement: { unlicensed: '402', agents: { a: { unlicensed: pass } } }",
    "robots: { origin: replace }\ntests: { agent: curl, path: /, status: '404', at: 2026-12-01, expect: { tag: [] } }",
];

const RIGHT_SETTINGS: &[&str] = &[
    "logs: { events: 'off' }",
    "logs: { events: { to: '-', rate: 5 } }",
    "logs: { events: { to: x, rate: '5' } }",
    "origins: http://127.0.0.1:3000",
    "origins: [HTTPS://Origin.example/, 'http://[::1]:81']\nlisten: { address: '[::1]:0' }",
    "listen: [127.0.0.1:1, { address: 127.0.0.1:2 }]\nadmin: Off\ncontrol: no\nstate: false\nstrict: TRUE",
    "direct_forwarding: off\nstrict: off\nthreads: '4'\nlimits: { target: 8 KiB, headers: 65536, idle: 90s, drain: 1m30s }",
    "origins: { hosts: '*.shop.example', servers: http://a, timeouts: { connect: 1ms, idle: 1h } }",
    "origins: [{ paths: /api/, servers: [{ url: http://a, weight: 100 }, { url: http://b, backup: yes }] }, http://c]",
    "origins: { servers: [http://a, http://b], balance: client, ejection: off }",
    "origins: { servers: http://a, health: { path: '/up?deep=1', host: a.example, every: 100ms, timeout: 60s, unhealthy_after: '1', healthy_after: 9, status: [200, 300-404] } }",
    "origins: { servers: http://a, balance: least_requests, ejection: { failures: '1', for: 1s, most: 1h, statuses: [500-504, 429] } }",
    "origins: { servers: http://a, connections: 100, crawlers: '20', exempt: [Googlebot, bingbot], queue: { length: 0, wait: 250ms } }",
    "origins: { servers: https://a, tls: { ca: ca.pem, server_name: a.internal, client: { cert: c.pem, key: c.key } } }",
    "origins: { servers: ['unix:/run/app.sock', { url: 'unix:app.sock', backup: yes }] }",
    "trusted_proxies: ['::1', 10.0.0.0/8]\nlogs: { access: '-' }\nprivacy: { logs: none, history: full }\npolicies: 2026",
    "trusted_proxies: 10.0.0.1\nlogs: { access: off }\norigins: []",
    "client_address: CF-Connecting-IP",
    "client_address: x-own_proxy.1",
    "decisions: 127.0.0.1:9180",
    "decisions: off",
    "decisions: ['[::1]:9180', 'unix:/run/decide.sock']",
    "decisions: { listen: 'unix:decide.sock', trusted: [10.0.0.0/8, '::1'] }",
    "identity: {}",
    "identity: { signatures: No }",
    "identity: { outgoing: YES, lists: lists/of/networks, resolvers: system }",
    "origins: { servers: http://a, resolvers: system }",
    "origins: { servers: http://a, resolvers: ['127.0.0.1:8600', '::1'] }",
    "identity: { outgoing: on, lists: off, resolvers: ['9.9.9.9', '[::1]:5353', '::1'] }",
    "identity: { outgoing: yes, lists: 'https://mirror.example/lists/' }",
    "listen: [{ address: '[::]:443', tls: { certificates: { cert: a, key: b }, hsts: 52w } }, { address: 127.0.0.1:80, redirect: https }]",
    "listen: { address: 127.0.0.1:80, redirect: { to: https, port: 8443 } }",
    "listen: { address: 127.0.0.1:1, tls: { acme: yes } }",
    "listen: { address: 127.0.0.1:1, tls: { acme: {}, certificates: { cert: a, key: b } } }",
    "listen: { address: 127.0.0.1:1, tls: { acme: { email: a@b.example, directory: 'https://[::1]:14000/dir', hosts: a.example, challenge: tls-alpn, resolvers: ['9.9.9.9', '[::1]:53'] } } }",
    "listen: { address: 127.0.0.1:1, tls: { certificates: [{ cert: a, key: b }], min_version: 1.3, hsts: { max_age: 0s } } }",
    "listen: { address: 127.0.0.1:1, proxy_protocol: yes }\ntrusted_proxies: 10.0.0.1",
    "listen: { address: 127.0.0.1:1, http2: off }",
    "store: Redis://10.0.0.5",
    "store: { url: 'rediss://a@[::1]:6380/2', password_file: p, ca: ca.pem, prefix: 'shop:' }",
    "limits: { connections: '5', body: 2GiB, body_rate: off, head: 250ms, fields: 256, streams: 1 }",
];

#[test]
fn other_spellings_that_are_accepted_are_accepted_by_the_schema() {
    for (kind, texts) in [(&*POLICY, RIGHT_POLICIES), (&*SETTINGS, RIGHT_SETTINGS)] {
        for text in texts {
            assert!(
                kind.accepts(text),
                "{text}: {:?}",
                (kind.findings)(text).items
            );
            assert!(
                kind.schema_accepts(text),
                "{text}: {:?}",
                kind.schema_complaints(text)
            );
        }
    }
}

const WRONG_POLICIES: &[&str] = &[
    "robots: ~",
    "robots: { origin: both }",
    "robots: { origin: only, groups: [{ agents: a-bot, disallow: / }] }",
    "robots: { origin: only, sitemaps: 'https://shop.example/s.xml' }",
    "robots: { origin: replace, license: x }",
    "robots: { origin: replace, license: https://shop.example/l.xml#a }",
    "robots: { origin: replace, license: { paths: /a } }",
    "robots: { origin: replace, signals: none }",
    "robots: { origin: replace, content_signal: {} }",
    "robots: { origin: replace, content_signal: { search: yes, use: partial } }",
    "robots: { origin: replace, content_signal: { train: no } }",
    "robots: { origin: replace, content_usage: { paths: /a } }",
    "robots: { origin: replace, content_usage: { paths: '*.pdf', search: no } }",
    "robots: { origin: replace, content_usage: { other: { Upper: no } } }",
    "robots: { origin: replace }\ntdm: { policy: https://shop.example/p }",
    "robots: { origin: replace }\ntdm: { reservation: maybe }",
    "robots: { origin: replace, license: https://a.example/l }\nenforcement: { unlicensed: 403 }",
    "robots: { origin: replace }\nhots: [shop.example]",
    "robots: { origin: replace }\nhtml: {}",
    "robots: { origin: replace }\nhtml: metas",
    "robots: { origin: replace }\nhtml: [meta]",
    "robots: { origin: replace }\nhtml: { meta: maybe }",
    "robots: { origin: replace }\nhtml: { paths: [/drafts/] }",
    "robots: { origin: replace }\nhtml: { meta: yes, paths: drafts }",
    "robots: { origin: replace }\nhtml: { meta: yes, not: [/drafts/] }",
    "robots: { origin: replace }\nhtml: { meta: yes, not: {} }",
    "robots: { origin: replace, content_usage: [] }",
    "robots: { origin: replace, license: [] }",
    "robots: { origin: replace, groups: { agents: '*', license: [] } }",
    "robots: { origin: replace, groups: { agents: '*', content_usage: [] } }",
    "robots: { origin: replace }\ntdm: []",
    "robots: { origin: replace }\nhosts: []",
    "robots: { origin: replace }\nhosts: ~",
    "robots: { origin: replace }\nhosts: { a: b }",
    "robots: { origin: replace }\nhosts: https://shop.example/",
    "robots: { origin: replace }\nhosts: ['*']",
    "robots: { origin: replace }\nenvironment: test",
    "robots: { origin: replace }\nstaging_crawl: disallow",
    "robots: { origin: replace }\nenvironment: production\nstaging_crawl: allow",
    "robots: { origin: replace }\npurposes: { training: forbid }",
    "robots: { origin: replace }\npurposes: { trainning: disallow }",
    "robots: { origin: replace }\npurposes: { tool: disallow }",
    "robots: { origin: replace, max_age: soon }",
    "robots: { origin: replace, max_age: 1h30 }",
    "robots: { origin: replace, max_age: 86401 }",
    "robots: { origin: replace, max_age: -1 }",
    "robots: { origin: replace, sitemaps: /sitemap.xml }",
    "robots: { origin: replace, groups: [{ disallow: / }] }",
    "robots: { origin: replace, groups: [{ agents: [] }] }",
    "robots: { origin: replace, groups: [{ agents: GPTBot/1.0 }] }",
    "robots: { origin: replace, groups: [{ agents: 'a*' }] }",
    "robots: { origin: replace, groups: [{ agents: ' GPTBot' }] }",
    "robots: { origin: replace, groups: [{ agents: '*', disallow: [cart/] }] }",
    "robots: { origin: replace, groups: [{ agents: '*', disallow: \"/a\\nb\" }] }",
    "robots: { origin: replace, groups: [{ agents: '*', crawl_delay: 0 }] }",
    "robots: { origin: replace, groups: [{ agents: '*', content_signal: x }] }",
    "robots: { origin: replace, groups: GPTBot }",
    "robots: { origin: replace }\nindexing: { types: application/pdf }",
    "robots: { origin: replace }\nindexing: { types: [], tag: noindex }",
    "robots: { origin: replace }\nindexing: { types: pdf, tag: noindex }",
    "robots: { origin: replace }\nindexing: { status: 99, tag: noindex }",
    "robots: { origin: replace }\nindexing: { status: 304, tag: noindex }",
    "robots: { origin: replace }\nindexing: { status: 6xx, tag: noindex }",
    "robots: { origin: replace }\nindexing: { not: {}, tag: noindex }",
    "robots: { origin: replace }\nindexing: { tag: [] }",
    "robots: { origin: replace }\nindexing: { tag: noindex, noarchive }",
    "robots: { origin: replace }\nindexing: { tags: {} }",
    "robots: { origin: replace }\nindexing: { tags: { 'google bot': noindex } }",
    "robots: { origin: replace }\norigin_tags: drop",
    "robots: { origin: replace }\nenforcement: { mode: on }",
    "robots: { origin: replace }\nenforcement: { mode: true }",
    "robots: { origin: replace }\nenforcement: { disallowed: 99 }",
    "robots: { origin: replace }\nenforcement: { disallowed: '200' }",
    "robots: { origin: replace }\nenforcement: { disallowed: {} }",
    "robots: { origin: replace }\nenforcement: { too_fast: {} }",
    "robots: { origin: replace }\nenforcement: { trapped: {} }",
    "robots: { origin: replace }\nenforcement: { disallowed: { status: 403, retry_after: 0 } }",
    "robots: { origin: replace }\nenforcement: { traps: x }",
    "robots: { origin: replace }\nenforcement: { traps: /* }",
    "robots: { origin: replace }\nenforcement: { too_fast: { retry_after: 1h } }",
    "robots: { origin: replace }\nenforcement: { trapped: { for: 0 } }",
    "robots: { origin: replace }\nenforcement: { unverified: forgive }",
    "robots: { origin: replace }\nenforcement: { exempt: '*' }",
    "robots: { origin: replace }\nenforcement: { agents: { GPTBot: { traps: /trap/ } } }",
    "robots: { origin: replace }\ncrawlers: { user_agent: IntranetBot }",
    "robots: { origin: replace }\ncrawlers: { token: IntranetBot, networks: intranet }",
    "robots: { origin: replace }\ncrawlers: { token: IntranetBot, purpose: own }",
    "robots: { origin: replace }\ncrawlers: IntranetBot",
    "robots: { origin: replace }\nenforcement: { purposes: { bots: {} } }",
    "robots: { origin: replace }\nenforcement: { purposes: { seo: { grace: 1h } } }",
    "robots: { origin: replace }\nenforcement: { agents: { '*': { mode: off } } }",
    "robots: { origin: replace }\nenforcement: { agents: { GPTBot/1: { mode: off } } }",
    "robots: { origin: replace }\nenforcement: { grace: 2678401 }",
    "robots: { origin: replace }\nenforcement: { behind_cache: 2678401 }",
    "robots: { origin: replace }\nenforcement: { behind_cache: sometimes }",
    "robots: { origin: replace }\npause: ~",
    "robots: { origin: replace }\npause: { audience: people }",
    "robots: { origin: replace }\npause: { from: tomorrow }",
    "robots: { origin: replace }\npause: { robots_txt: yes }",
    "robots: { origin: replace }\nacknowledge: everything",
    "robots: { origin: replace }\ntests: [{ agent: GPTBot, path: / }]",
    "robots: { origin: replace }\ntests: [{ agent: GPTBot, path: x, expect: allowed }]",
    "robots: { origin: replace }\ntests: [{ agent: GPTBot, path: /, expect: forbidden }]",
    "robots: { origin: replace }\ntests: [{ agent: GPTBot, path: /, status: 99, expect: allowed }]",
    "robots: { origin: replace }\ntests: [{ agent: GPTBot, path: /, ip: here, expect: allowed }]",
    "robots: { origin: replace }\ntests: [{ agent: GPTBot, path: /, cached: x, expect: allowed }]",
    "robots: { origin: replace }\ntests: [{ agent: GPTBot, path: /, expect: { kind: disallowed } }]",
    "- robots",
];

const WRONG_SETTINGS: &[&str] = &[
    "lissten: 0.0.0.0:80",
    "store: redis",
    "store: http://10.0.0.5",
    "store: { prefix: 'a:' }",
    "store: { url: redis://a, prefix: '' }",
    "store: { url: redis://a, pasword: a }",
    "identity: yes",
    "identity: { outgoing: maybe }",
    "identity: { lists: [a, b] }",
    "identity: { resolvers: [dns.example] }",
    "origins: { servers: http://a, resolvers: [dns.example] }",
    "identity: { signatures: maybe }",
    "listen: 8080",
    "listen: localhost:80",
    "listen: { tls: yes }",
    "listen: { address: 127.0.0.1:1, tls: yes }",
    "listen: { address: 127.0.0.1:1, tls: {} }",
    "listen: { address: 127.0.0.1:1, tls: { acme: { email: admin } } }",
    "listen: { address: 127.0.0.1:1, tls: { acme: { directory: 'http://a/dir' } } }",
    "listen: { address: 127.0.0.1:1, tls: { acme: { challenge: dns } } }",
    "listen: { address: 127.0.0.1:1, tls: { acme: { hosts: '*.a.example' } } }",
    "listen: { address: 127.0.0.1:1, tls: { certificates: [] } }",
    "listen: { address: 127.0.0.1:1, tls: { certificates: { cert: a } } }",
    "listen: { address: 127.0.0.1:1, tls: { certificates: { cert: a, key: b }, min_version: 1.1 } }",
    "listen: { address: 127.0.0.1:1, tls: { certificates: { cert: a, key: b }, hsts: { subdomains: yes } } }",
    "listen: { address: 127.0.0.1:1, redirect: http }",
    "listen: { address: 127.0.0.1:1, redirect: { port: 443 } }",
    "listen: { address: 127.0.0.1:1, redirect: { to: https, port: 0 } }",
    "listen: { address: 127.0.0.1:1, redirect: { to: https, host: a } }",
    "limits: { keepalive: 60s }",
    "limits: { body_rate: 1KiB }",
    "limits: { connections: 0 }",
    "limits: { fields: 300 }",
    "origins: shop.example",
    "origins: ftp://a",
    "origins: http://a/path",
    "origins: { hosts: a }",
    "origins: { servers: [] }",
    "origins: [{ servers: http://a, balance: random }]",
    "origins: [{ servers: http://a, hosts: http://b }]",
    "origins: { servers: http://a, paths: api }",
    "origins: { servers: http://a, paths: '/api/*' }",
    "origins: { servers: [{ weight: 2 }] }",
    "origins: { servers: [{ url: http://a, weight: 0 }] }",
    "origins: 'unix:'",
    "origins: { servers: https://a, tls: { client: { cert: c.pem } } }",
    "origins: { servers: https://a, tls: { server_name: a/b } }",
    "origins: { servers: http://a, ejection: yes }",
    "origins: { servers: http://a, health: yes }",
    "origins: { servers: http://a, health: {} }",
    "origins: { servers: http://a, health: { path: up } }",
    "origins: { servers: http://a, health: { path: /, timeout: 61 } }",
    "origins: { servers: http://a, health: { path: /, healthy_after: 0 } }",
    "origins: { servers: http://a, health: { path: /, status: 101 } }",
    "origins: { servers: http://a, ejection: { statuses: 200 } }",
    "origins: { servers: http://a, connections: 0 }",
    "origins: { servers: http://a, connections: 10, queue: { wait: soon } }",
    "origins: [{ servers: http://a, timeouts: { connect: 3601 } }]",
    "origins: [{ servers: http://a, timeouts: { connect: never } }]",
    "policies: ''",
    "decisions: 9180",
    "decisions: unix:",
    "decisions: { trusted: 10.0.0.0/8 }",
    "decisions: { listen: 127.0.0.1:9180, trusted: proxy.example }",
    "decisions: { listen: 127.0.0.1:9180, tls: yes }",
    "policies: [a, b]",
    "admin: 'on'",
    "admin: true",
    "trusted_proxies: proxy.example",
    "client_address: x forwarded for",
    "client_address: [x-forwarded-for, forwarded]",
    "client_address: ''",
    "limits: { target: huge }",
    "limits: { target: 255 }",
    "limits: { target: 16KB }",
    "limits: { target: 1024.5 }",
    "limits: { drain: 0 }",
    "privacy: { logs: some }",
    "logs: { addresses: full }",
    "logs: { events: { rate: 5 } }",
    "logs: { events: { to: x, size: 1MiB } }",
    "logs: { events: { to: x, keep: 4 } }",
    "logs: { events: { to: x, rate: 0 } }",
    "logs: off",
    "threads: 0",
    "threads: 1025",
    "threads: many",
    "direct_forwarding: fast",
    "lane: off",
    "strict: maybe",
    "strict: 1",
    "- listen",
];

#[test]
fn decoder_and_schema_refuse_the_same_mistakes() {
    for (kind, texts) in [(&*POLICY, WRONG_POLICIES), (&*SETTINGS, WRONG_SETTINGS)] {
        for text in texts {
            assert!(!kind.accepts(text), "{} accepts {text}", kind.name);
            assert!(
                !kind.schema_accepts(text),
                "the schema of {} accepts {text}",
                kind.name
            );
        }
    }
}

// ---- chance

/// Values of any field: good somewhere, bad elsewhere.
fn scalar() -> impl Strategy<Value = String> {
    let quoted = |text: String| json!(text).to_string();
    prop_oneof![
        select(
            &[
                "403",
                "0403",
                "'403'",
                "+410",
                "200",
                "304",
                "4xx",
                "'5xx'",
                "1h",
                "90",
                "0",
                "250ms",
                "1h30m",
                "24h",
                "86400",
                "1.5",
                "-1",
                "1e3",
                "0x10",
                "1d",
                "2026-12-01",
                "2026-1-2",
                "2026-12-01T01:00:00Z",
                "'2026-12-01 01:00:00Z'",
                "2026-12-01T01:00:00.5+02:00",
                "GPTBot",
                "360Spider",
                "360",
                "'*'",
                "Yahoo! Slurp",
                "/",
                "/cart/",
                "'/*?a=$'",
                "''",
                "shop.example",
                "'*.shop.example'",
                "10.0.0.1",
                "'[::1]:80'",
                "127.0.0.1:80",
                "'::1'",
                "10.0.0.0/8",
                "bücher.example",
                "https://shop.example/sitemap.xml",
                "http://127.0.0.1:3000",
                "http://a/",
                "application/pdf",
                "'image/*'",
                "noindex",
                "'noindex, nofollow'",
                "'max-snippet: 50'",
                "16KiB",
                "'16 k'",
                "16384",
                "off",
                "no",
                "-",
                "observe",
                "enforce",
                "allow",
                "disallow",
                "inherit",
                "merge",
                "replace",
                "production",
                "staging",
                "allowed",
                "serve",
                "pause",
                "everyone",
                "full",
            ][..]
        )
        .prop_map(str::to_owned),
        "[0-9]{1,4}(ms|s|m|min|h|d|w)?( ?[0-9]{1,2}[smh])?".prop_map(quoted),
        "[0-9]{4,5}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9])?(Z|[+-][0-9]{2}:[0-9]{2}))?"
            .prop_map(quoted),
        "(\\*\\.)?[a-z0-9_ü-]{1,8}(\\.[a-z0-9-]{1,5}){0,2}(:[0-9]{1,5})?".prop_map(quoted),
        "[A-Za-z0-9 ._!+/*-]{0,12}".prop_map(quoted),
        "[/*][ -~é]{0,12}".prop_map(quoted),
        "https?://[a-z0-9.:/\\[\\]-]{0,12}".prop_map(quoted),
        "[a-z]{1,5}/[a-z*+.]{1,5}".prop_map(quoted),
        "[0-9a-f.:/\\[\\]]{1,16}".prop_map(quoted),
        "[0-9]{1,6} ?([kKmM]i?[bB]?|b)?".prop_map(quoted),
        "\\PC{0,6}".prop_map(quoted),
    ]
}

/// The places where single values stand, each with a validator of its own.
static LEAVES: LazyLock<Vec<(&'static Kind, Vec<Step>, Validator)>> = LazyLock::new(|| {
    let mut leaves = Vec::new();
    for kind in kinds() {
        for (path, parts) in places(kind)
            .into_iter()
            .filter(|(path, _)| !path.is_empty())
        {
            // The first part of a place is the schema as it is entered; the others are what it
            // refers to.
            let alone = json!({ "allOf": [parts[0]], "definitions": kind.schema["definitions"] });
            let validator = jsonschema::validator_for(&alone).expect("a schema");
            leaves.push((kind, path, validator));
        }
    }
    leaves
});

fn maybe<T: Clone + std::fmt::Debug + 'static>(
    name: &'static str,
    values: impl Strategy<Value = T> + 'static,
    as_yaml: fn(T) -> String,
) -> BoxedStrategy<Option<String>> {
    proptest::option::of(values.prop_map(move |value| format!("{name}: {}", as_yaml(value))))
        .boxed()
}

fn map_of(fields: Vec<Option<String>>) -> String {
    format!(
        "{{ {} }}",
        fields.into_iter().flatten().collect::<Vec<_>>().join(", ")
    )
}

/// Whole policies, written by hand as it were: mostly right, single values and lists mixed.
fn whole_policy() -> impl Strategy<Value = String> {
    let pick = |words: &'static [&'static str]| select(words).prop_map(str::to_owned);
    let several = move |words: &'static [&'static str]| {
        prop_oneof![
            select(words).prop_map(str::to_owned),
            proptest::sample::subsequence(words, 1..=words.len().min(3))
                .prop_map(|some| format!("[{}]", some.join(", ")))
        ]
    };
    let paths = &["/cart/", "'/*?a='", "'*.pdf$'", "/", "''"];
    let group = (
        maybe("allow", several(paths), |text| text),
        maybe("disallow", several(paths), |text| text),
        maybe("crawl_delay", pick(&["1", "10s", "500ms"]), |text| text),
    );
    let groups = proptest::collection::vec(group, 0..3).prop_map(|groups| {
        let agents = ["'*'", "[GPTBot, CCBot]", "360Spider"];
        let groups = groups
            .into_iter()
            .zip(agents)
            .map(|((allow, disallow, delay), agents)| {
                map_of(vec![
                    Some(format!("agents: {agents}")),
                    allow,
                    disallow,
                    delay,
                ])
            });
        format!("[{}]", groups.collect::<Vec<_>>().join(", "))
    });
    let answer = || {
        pick(&[
            "403",
            "'451'",
            "{ status: 429, retry_after: 1h }",
            "{ status: 503, body: Gone }",
            "302",
        ])
    };
    let enforcement = (
        maybe(
            "mode",
            pick(&["off", "false", "observe", "enforce"]),
            |text| text,
        ),
        maybe("disallowed", answer(), |text| text),
        maybe("ambiguous", answer(), |text| text),
        maybe("grace", pick(&["24h", "1w", "86400", "90"]), |text| text),
        maybe(
            "behind_cache",
            pick(&["no", "yes", "2h", "off", "90"]),
            |text| text,
        ),
        maybe("agents", answer(), |text| {
            format!("{{ Examplebot: {{ disallowed: {text} }}, 12: {{}} }}")
        }),
    )
        .prop_map(
            |(mode, disallowed, ambiguous, grace, behind_cache, agents)| {
                map_of(vec![
                    mode,
                    disallowed,
                    ambiguous,
                    grace,
                    behind_cache,
                    agents,
                ])
            },
        );
    let rule = (
        maybe("paths", several(&["/a/", "'/*.x'", "/"]), |text| text),
        maybe(
            "types",
            several(&["application/pdf", "'image/*'", "Text/HTML"]),
            |text| text,
        ),
        maybe("status", several(&["200", "4xx", "'404'", "5xx"]), |text| {
            text
        }),
        maybe("not", several(&["404", "5xx"]), |text| {
            format!("{{ status: {text} }}")
        }),
        several(&[
            "noindex",
            "'noindex, nofollow'",
            "'max-snippet: 50'",
            "none",
        ]),
        any::<bool>(),
    )
        .prop_map(|(paths, types, status, not, tag, scoped)| {
            let tag = if scoped {
                format!("tags: {{ '*': {tag}, googlebot: noindex }}")
            } else {
                format!("tag: {tag}")
            };
            map_of(vec![paths, types, status, not, Some(tag)])
        });
    let pause = (
        maybe("audience", pick(&["crawlers", "everyone"]), |text| text),
        maybe(
            "from",
            pick(&["2026-12-01", "2026-12-01T01:00:00Z"]),
            |text| text,
        ),
        maybe("retry_after", pick(&["30m", "90", "1h30m"]), |text| text),
        maybe("robots_txt", pick(&["serve", "pause"]), |text| text),
    )
        .prop_map(|(audience, from, retry, robots)| map_of(vec![audience, from, retry, robots]));
    let case = (
        pick(&[
            "allowed",
            "{ verdict: disallowed, status: '403' }",
            "{ tag: [] }",
            "{}",
        ]),
        pick(&["200", "'404'"]),
    )
        .prop_map(|(expect, status)| {
            format!("{{ agent: GPTBot, path: /, status: {status}, expect: {expect} }}")
        });
    let robots = (
        groups,
        maybe("max_age", pick(&["1h", "60", "1d", "1m 30s"]), |text| text),
    )
        .prop_map(|(groups, age)| {
            map_of(vec![
                Some("origin: replace".into()),
                Some(format!("groups: {groups}")),
                age,
            ])
        });
    (
        robots,
        maybe(
            "hosts",
            several(&[
                "shop.example",
                "'*.shop.example'",
                "10.0.0.1",
                "'[::1]:80'",
                "12",
            ]),
            |text| text,
        ),
        maybe(
            "environment",
            pick(&["production", "staging", "staging, staging_crawl: disallow"]),
            |text| text,
        ),
        maybe(
            "purposes",
            pick(&["allow", "disallow", "inherit"]),
            |text| format!("{{ training: {text}, tool: inherit }}"),
        ),
        maybe(
            "indexing",
            prop_oneof![
                rule.clone(),
                proptest::collection::vec(rule, 0..3)
                    .prop_map(|rules| format!("[{}]", rules.join(", ")))
            ],
            |text| text,
        ),
        maybe(
            "origin_tags",
            pick(&["keep", "merge", "replace", "strip"]),
            |text| text,
        ),
        maybe(
            "html",
            pick(&[
                "off",
                "meta",
                "{ meta: yes }",
                "{ paths: /price/, meta: no }",
            ]),
            |text| text,
        ),
        maybe("enforcement", enforcement, |text| text),
        maybe("pause", pause, |text| text),
        maybe(
            "acknowledge",
            several(&["site_disallowed", "site_noindex", "long_pause"]),
            |text| text,
        ),
        maybe(
            "tests",
            prop_oneof![
                case.clone(),
                proptest::collection::vec(case, 0..3)
                    .prop_map(|cases| format!("[{}]", cases.join(", ")))
            ],
            |text| text,
        ),
    )
        .prop_map(
            |(
                robots,
                hosts,
                environment,
                purposes,
                indexing,
                origin,
                html,
                enforcement,
                pause,
                acknowledge,
                tests,
            )| {
                let robots = Some(format!("robots: {robots}"));
                map_of(vec![
                    robots,
                    hosts,
                    environment,
                    purposes,
                    indexing,
                    origin,
                    html,
                    enforcement,
                    pause,
                    acknowledge,
                    tests,
                ])
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, max_global_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn a_value_that_the_decoder_takes_is_taken_by_the_schema(leaf in scalar(), index in any::<prop::sample::Index>()) {
        let (kind, path, validator) = index.get(&LEAVES);
        prop_assume!(complaints_at(kind, path, &leaf).is_empty());
        let value = as_json(&format!("[{leaf}]")).expect("YAML");
        prop_assert!(validator.is_valid(&value[0]), "{}{}: {leaf}", kind.name, shown(path));
    }

    #[test]
    fn a_policy_that_is_accepted_is_accepted_by_the_schema(text in whole_policy()) {
        prop_assume!(POLICY.accepts(&text));
        prop_assert!(POLICY.schema_accepts(&text), "{text}\n{:?}", POLICY.schema_complaints(&text));
    }
}

// ---- the command

fn crawlgate(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(arguments)
        .output()
        .expect("the binary runs")
}

#[test]
fn schema_command_prints_policy_schema_by_default() {
    for (arguments, schema) in [
        (&["schema"][..], policy::SCHEMA),
        (&["schema", "policy"], policy::SCHEMA),
        (&["schema", "settings"], settings::SCHEMA),
    ] {
        let output = crawlgate(arguments);
        assert_eq!(
            (output.status.code(), output.stdout),
            (Some(0), schema.as_bytes().to_vec()),
            "{arguments:?}"
        );
    }
    assert_eq!(crawlgate(&["schema", "registry"]).status.code(), Some(2));
}
