//! docs/logs-and-metrics.md has every metric and every field of the logs, as the running binary
//! writes them.

use super::files::{says, text};
use super::generated::{assert_or_update, with_table};
use crate::proxy::support::dns::{Dns, Reply};
use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::{
    Authority, BINGBOT, BROWSER, GPTBOT, Gate, Origin, Setup, TlsConnection, eventually, read,
};
use crawlgate::internals::record::RecordField;
use crawlgate::internals::telemetry::{ACCESS_FIELDS, EVENT_FIELDS};
use rustls::version::TLS13;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use strum::VariantArray;
use tempfile::TempDir;

const PAGE: &str = "docs/logs-and-metrics.md";
const BYSTANDER: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
const SIGNED_AND_TRACED: &str = "DuckAssistBot/1.2\r\nSignature-Input: sig1=()\r\nSignature: sig1=:AA==:\r\n\
                                 traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const HOUR: i64 = 3_600;

/// A policy with something of everything that is counted.
const POLICY: &str = "\
hosts: [site.test]
robots: { origin: replace, groups: [{ agents: \"*\", disallow: [/cart/], crawl_delay: 1h }] }
enforcement: { mode: enforce, behind_cache: no }
crawlers: { token: PartnerBot, networks: 198.51.100.0/24 }
html: meta
indexing: [{ types: text/html, tag: noarchive }]
retire: [{ paths: /old/, noindex_from: 2026-01-01 }]
";

/// The cells of the rows of the page whose first cell is code and begins so.
fn rows(beginning: &str) -> Vec<Vec<String>> {
    let page = text(PAGE);
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let cells = rows.filter(|row| row.starts_with(beginning)).map(|row| {
        let cells = row
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned());
        cells.collect()
    });
    cells.collect()
}

/// A metric as the binary exports it, or as the page has it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metric {
    kind: String,
    meaning: String,
    labels: BTreeSet<String>,
}

fn exported(metrics: &str) -> BTreeMap<String, Metric> {
    let mut found: BTreeMap<String, Metric> = BTreeMap::new();
    for line in metrics.lines() {
        if let Some((name, help)) = line
            .strip_prefix("# HELP ")
            .and_then(|line| line.split_once(' '))
        {
            found.entry(name.to_owned()).or_default().meaning = help.to_owned();
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|line| line.split_once(' '))
        {
            found.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((series, labels)) = line.split_once('{') {
            let of_histogram = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| series.strip_suffix(end));
            let name = of_histogram
                .filter(|name| found.contains_key(*name))
                .unwrap_or(series);
            let (labels, _) = labels.rsplit_once('}').expect("the end of the labels");
            let names = labels
                .split("\",")
                .filter_map(|label| label.split_once("=\""))
                .map(|(name, _)| name.to_owned());
            let metric = found
                .get_mut(name)
                .unwrap_or_else(|| panic!("{name} has no type"));
            metric.labels.extend(names.filter(|label| label != "le"));
        }
    }
    found.retain(|name, _| name.starts_with("crawlgate_"));
    found
}

fn documented() -> BTreeMap<String, Metric> {
    let metric = |row: Vec<String>| {
        let [name, kind, labels, meaning, _] = &row[..] else {
            panic!("not five cells: {row:?}")
        };
        let labels = labels
            .split(',')
            .map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        (
            name.clone(),
            Metric {
                kind: kind.clone(),
                meaning: meaning.clone(),
                labels,
            },
        )
    };
    rows("crawlgate_").into_iter().map(metric).collect()
}

/// A host that was observed for a day and longer, with each thing that is counted or logged.
fn busy() -> ((Origin, TempDir), Gate) {
    let origin = Origin::start(|request, stream| {
        let media = if request.target() == "/robots.txt" {
            "text/plain"
        } else {
            "text/html"
        };
        let page = "<html><head></head></html>";
        let length = page.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n{page}"
        );
        stream.write_all(answer.as_bytes()).is_ok()
    });
    // Both are asked for one request, and the first one is ejected.
    let (down, down_too) = (Origin::nowhere(), Origin::nowhere());
    let origins = format!(
        "origins: [{{ hosts: [down.test], servers: [http://{down}, http://{down_too}] }}, {{ servers: http://{}, connections: 100, health: {{ path: / }} }}]",
        origin.address
    );
    let logs = "trusted_proxies: [127.0.0.1]\nlogs: { access: access.log, events: { to: events.log, rate: 20 } }";
    let (authority, directory) = (Authority::new(), tempfile::tempdir().expect("a directory"));
    authority.certify(directory.path(), "site", &["site.test"], 2100);
    let file = |end: &str| {
        directory
            .path()
            .join(format!("site.{end}"))
            .display()
            .to_string()
    };
    let tls = format!(
        "tls: {{ certificates: [{{ cert: {}, key: {} }}] }}",
        file("pem"),
        file("key")
    );
    let listeners = format!("[127.0.0.1:0, {{ address: 127.0.0.1:0, {tls} }}]");
    let dns = Dns::start(|_| Reply::NxDomain);
    let identity = format!(
        "identity: {{ outgoing: yes, lists: lists, resolvers: ['{}'] }}",
        dns.address
    );
    let setup = Setup::before("")
        .with_origins(&origins)
        .listeners(&listeners)
        .settings(logs)
        .settings(&identity);
    let setup = setup.with_clock();
    let list = setup
        .policies()
        .with_file_name("lists")
        .join("openai.com/gptbot.json");
    fs::create_dir_all(list.parent().expect("a directory")).expect("a directory");
    fs::write(&list, "192.0.2.0/24\n").expect("a list");
    let mut gate = setup
        .policy("site", POLICY)
        .policy("merged", "hosts: [merged.test]\n")
        .start();
    let ask = |gate: &Gate, host: &str, target: &str, agent: &str| {
        // The last line counts, which some agents bring along.
        gate.get(
            host,
            target,
            &format!("X-Forwarded-For: 198.51.100.9\r\nUser-Agent: {agent}\r\n"),
        );
    };
    for _ in 0..6 {
        ask(&gate, "site.test", "/", BYSTANDER);
        gate.live_through(5 * HOUR);
    }
    let sent_by_service = format!("{BROWSER}\r\nReferer: https://chatgpt.com/");
    ask(&gate, "site.test", "/robots.txt", BINGBOT);
    for target in ["/", "/", "/cart/", "/cart/2", "/cart/3"] {
        ask(&gate, "site.test", target, BINGBOT);
    }
    let licensed = format!("{GPTBOT}\r\nAuthorization: License token");
    for (host, target, agent) in [
        ("site.test", "/cart/", licensed.as_str()),
        (
            "site.test",
            "/cart/",
            "SomeBot/1.0 (+https://some.example/bot)",
        ),
        ("site.test", "/", &sent_by_service),
        (
            "site.test",
            "/",
            "PartnerBot/1\r\nX-Forwarded-For: 203.0.113.1",
        ),
        (
            "site.test",
            "/",
            "YandexBot/3.0\r\nX-Forwarded-For: 203.0.113.1",
        ),
        ("site.test", "/cart/", SIGNED_AND_TRACED),
        ("unclaimed.test", "/", BROWSER),
    ] {
        ask(&gate, host, target, agent);
    }
    // Once of 15 runs beside a load four requests did not do.
    eventually("an ejected server", || {
        ask(&gate, "down.test", "/", BROWSER);
        gate.metrics()
            .contains("state=\"ejected\"} 1")
            .then_some(())
    });
    let config = authority.client(&["http/1.1"], &[&TLS13]);
    drop(TlsConnection::open(gate.listening[1], "site.test", &config).expect("a handshake"));
    let mut connection = gate.connect();
    connection.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(connection.response("GET").status, 400);
    // Last, so that no event above is left out: a request's event may be recorded after those of
    // the next requests.
    eventually("a line that says how many events were left out", || {
        let mut connection = gate.connect();
        for _ in 0..60 {
            connection.send(&format!(
                "GET /cart/ HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {BINGBOT}\r\n\r\n"
            ));
            connection.response("GET");
        }
        read(&gate.path("events.log"))
            .contains("\"left_out\"")
            .then_some(())
    });
    ((origin, directory), gate)
}

/// The fields of the lines of a log: all of them, and those that each line has. Lines that only
/// count have no method.
fn fields(log: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<BTreeSet<String>> = lines
        .filter_map(|line| line.get("method").is_some().then(|| keys(&line)))
        .collect();
    let all = lines.iter().flatten().cloned().collect();
    let always = lines.iter().skip(1).fold(
        lines.first().cloned().unwrap_or_default(),
        |always, line| &always & line,
    );
    (all, always)
}

/// One of several instances.
fn with_store() -> (RedisServer, Gate) {
    let redis = RedisServer::start();
    let gate = Setup::before("127.0.0.1:9")
        .settings(&format!("store: '{}'", redis.url()))
        .start();
    (redis, gate)
}

fn keys(line: &Value) -> BTreeSet<String> {
    line.as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect()
}

#[test]
fn every_metric_is_on_the_page_with_its_type_labels_and_meaning() {
    let (_origin, gate) = busy();
    let (_redis, one_of_several) = with_store();
    let documented = documented();
    let exported = eventually("every metric", || {
        // The clock of the first one is not that of a store.
        let exported = exported(&format!("{}{}", gate.metrics(), one_of_several.metrics()));
        let missing: Vec<&String> = documented
            .keys()
            .filter(|name| !exported.contains_key(*name))
            .collect();
        if !missing.is_empty() {
            eprintln!("not exported: {missing:?}");
        }
        missing.is_empty().then_some(exported)
    });
    let undocumented: Vec<&String> = exported
        .keys()
        .filter(|name| !documented.contains_key(*name))
        .collect();
    assert!(undocumented.is_empty(), "not on the page: {undocumented:?}");
    for (name, metric) in &exported {
        assert_eq!(&documented[name], metric, "{name}");
    }
}

/// The beginning of the table of fields on the page.
const FIELDS_HEAD: &str = "| field | access log";

/// The table of fields: each with its logs by the source, and its meaning by the page.
fn table_of_fields(page: &str) -> String {
    let (_, table) = page.split_once(FIELDS_HEAD).expect("the table");
    let meaning = |field: &RecordField| {
        let row = table
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| `{}` | ", field.name())))
            .unwrap_or_else(|| panic!("{} has no row", field.name()));
        row.splitn(3, " | ").nth(2).expect("a meaning").to_owned()
    };
    let presence = |field: &RecordField, log: &[RecordField]| {
        // An event is always that of a crawler.
        let is_of_event = *field == RecordField::Identity && log == EVENT_FIELDS;
        if !log.contains(field) {
            "-"
        } else if field.is_optional() && !is_of_event {
            "sometimes"
        } else {
            "yes"
        }
    };
    let row = |field: &RecordField| {
        format!(
            "| `{}` | {} | {} | {}\n",
            field.name(),
            presence(field, ACCESS_FIELDS),
            presence(field, EVENT_FIELDS),
            meaning(field)
        )
    };
    let rows: String = RecordField::VARIANTS.iter().map(row).collect();
    format!("| field | access log | event log | meaning |\n|---|---|---|---|\n{rows}")
}

#[test]
fn table_of_fields_is_that_of_the_source() {
    let page = text(PAGE);
    let table = table_of_fields(&page);
    assert_or_update(PAGE, &with_table(&page, FIELDS_HEAD, &table));
}

#[test]
fn every_field_of_both_logs_is_on_the_page() {
    let (_origin, gate) = busy();
    let page = rows("")
        .into_iter()
        .filter(|row| row.len() == 4)
        .collect::<Vec<_>>();
    for (log, column) in [("access.log", 1), ("events.log", 2)] {
        let of = |wanted: &[&str]| -> BTreeSet<String> {
            page.iter()
                .filter(|row| wanted.contains(&row[column].as_str()))
                .map(|row| row[0].clone())
                .collect()
        };
        let (documented, always) = (of(&["yes", "sometimes"]), of(&["yes"]));
        // The lines of the last answers are written after these were read, and a field may be
        // missing in them alone.
        eventually(&format!("every field of {log}"), || {
            let found = fields(&read(&gate.path(log)));
            if found != (documented.clone(), always.clone()) {
                eprintln!(
                    "{log}: {:?}",
                    found
                        .0
                        .symmetric_difference(&documented)
                        .collect::<Vec<_>>()
                );
                eprintln!(
                    "{log}, in each line: {:?}",
                    found.1.symmetric_difference(&always).collect::<Vec<_>>()
                );
            }
            (found == (documented.clone(), always.clone())).then_some(())
        });
    }
}

#[test]
fn a_rule_is_the_same_in_both_logs() {
    let (_origin, gate) = busy();
    let line = |log: &str| {
        eventually("the line", || {
            let text = read(&gate.path(log));
            let lines = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines
                .into_iter()
                .find(|line| line["crawler"] == "gptbot" && line["target"] == "/cart/")
        })
    };
    let (access, event) = (line("access.log"), line("events.log"));
    for field in [
        "rule",
        "rule_source",
        "verdict",
        "kind",
        "action",
        "version",
        "status",
        "never_fetched",
    ] {
        assert_eq!(access[field], event[field], "{field}");
    }
    assert_eq!(access["rule"], "Disallow: /cart/");
    assert!(
        access["rule_source"]
            .as_str()
            .is_some_and(|place| place.contains("site.yaml:2:")),
        "{access}"
    );
}

#[test]
fn every_example_query_of_the_page_is_one_for_its_metric() {
    let queries: Vec<(String, String)> = rows("crawlgate_")
        .into_iter()
        .map(|row| (row[0].clone(), row[4].clone()))
        .collect();
    let mut rules = Vec::new();
    for (name, query) in &queries {
        assert!(query.contains(name.as_str()), "{name}: {query}");
        rules.push(
            serde_json::json!({ "record": name.replace("crawlgate_", "test:"), "expr": query }),
        );
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.yml");
    let text = serde_json::json!({ "groups": [{ "name": "test", "rules": rules }] }).to_string();
    fs::write(&file, text).expect("rules");
    let (fine, said) = says(
        "promtool",
        &["check", "rules", file.to_str().expect("UTF-8")],
    );
    assert!(fine, "{said}");
}
