//! Alerts and dashboard: Prometheus accepts every expression, and everything they ask for is in the
//! metrics of the running binary.

use super::files::{json, path, says, text, texts, yaml};
use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::{Authority, BINGBOT, BROWSER, GPTBOT, Origin, Setup, eventually};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;

const DASHBOARD: &str = "deploy/grafana/crawlgate.json";
const ALERT_TESTS: [&str; 2] = [
    "deploy/prometheus/alerts_test.yml",
    "deploy/prometheus/alerts_week_test.yml",
];

fn promtool(arguments: &[&str]) {
    let (fine, said) = says("promtool", arguments);
    assert!(fine, "promtool {}:\n{said}", arguments.join(" "));
}

fn alerts() -> Vec<Value> {
    let rules = yaml("deploy/prometheus/alerts.yml");
    let groups = rules["groups"].as_array().expect("groups").clone();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules").clone())
        .collect()
}

/// Panels, those in collapsed rows too.
fn panels(dashboard: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        found.push(panel.clone());
        found.extend(panel["panels"].as_array().cloned().unwrap_or_default());
    }
    found
}

/// Every expression of alerts, panels and variables, Grafana's variables filled in.
fn expressions() -> Vec<String> {
    let text = |value: &Value| {
        value
            .as_str()
            .unwrap_or_else(|| panic!("no expression: {value}"))
            .to_owned()
    };
    let mut found: Vec<String> = alerts().iter().map(|rule| text(&rule["expr"])).collect();
    let dashboard = json(DASHBOARD);
    for panel in panels(&dashboard) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push(filled_in(&text(&target["expr"])));
        }
    }
    for variable in dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
    {
        if variable["type"] == "query" {
            let query = filled_in(&text(&variable["query"]["query"]));
            let inner = query
                .strip_prefix("label_values(")
                .and_then(|query| query.strip_suffix(')'));
            let (selector, label) = inner
                .and_then(|inner| inner.rsplit_once(", "))
                .expect("label_values");
            found.push(format!("count by ({label}) ({selector})"));
        }
    }
    found
}

fn filled_in(expression: &str) -> String {
    let mut filled = expression
        .replace("$__rate_interval", "1m")
        .replace("$__range", "1h");
    for name in ["job", "instance", "site"] {
        filled = filled.replace(&format!("${name}"), ".+");
    }
    assert!(!filled.contains('$'), "an unknown variable: {expression}");
    filled
}

/// The metrics that an expression asks for, each with the labels that it is chosen by.
fn asked(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == ':';
    let mut rest = expression;
    while let Some(start) = rest.find(|sign: char| is_name(sign) || sign == '"') {
        rest = &rest[start..];
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted.split_once('"').expect("the end of a text").1;
            continue;
        }
        let end = rest.find(|sign| !is_name(sign)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        rest = after;
        if !["crawlgate_", "process_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            continue;
        }
        let matchers = after
            .strip_prefix('{')
            .and_then(|after| after.split_once('}'))
            .map_or("", |(inner, _)| inner);
        let labels = matchers
            .split(", ")
            .filter_map(|matcher| Some(matcher.split_once(['=', '!'])?.0.trim().to_owned()));
        found.push((name.to_owned(), labels.collect()));
    }
    found
}

#[test]
fn prometheus_accepts_the_scrape_and_the_alerts() {
    promtool(&[
        "check",
        "config",
        path("deploy/prometheus/prometheus.yml").to_str().unwrap(),
    ]);
    promtool(&[
        "check",
        "rules",
        path("deploy/prometheus/alerts.yml").to_str().unwrap(),
    ]);
}

#[test]
fn every_alert_fires_when_it_should_and_only_then() {
    let mut cases: BTreeSet<(String, bool)> = BTreeSet::new();
    for file in ALERT_TESTS {
        promtool(&["test", "rules", path(file).to_str().unwrap()]);
        for test in yaml(file)["tests"].as_array().expect("tests") {
            for case in test["alert_rule_test"].as_array().expect("cases") {
                let name = case["alertname"].as_str().expect("a name");
                let fires = !case["exp_alerts"].as_array().expect("alerts").is_empty();
                cases.insert((name.to_owned(), fires));
            }
        }
    }
    // And none is without a case of either kind.
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("a name").to_owned();
        assert!(
            cases.contains(&(name.clone(), true)),
            "{name} is never seen to fire"
        );
        assert!(
            cases.contains(&(name.clone(), false)),
            "{name} is never seen to be silent"
        );
    }
}

#[test]
fn alerts_have_severity_and_instructions() {
    let manual = text("docs/runbook.md");
    let headings: Vec<&str> = manual
        .lines()
        .filter_map(|line| line.strip_prefix("### Crawlgate"))
        .collect();
    let mut names = Vec::new();
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("a name");
        names.push(
            name.strip_prefix("Crawlgate")
                .expect("our name before it")
                .to_owned(),
        );
        assert!(
            ["critical", "warning"]
                .map(Value::from)
                .contains(&alert["labels"]["severity"]),
            "{name}"
        );
        for field in ["summary", "description"] {
            assert!(
                alert["annotations"][field]
                    .as_str()
                    .is_some_and(|text| text.len() > 20),
                "{name}: {field}"
            );
        }
        let anchor = format!("docs/runbook.md#{}", name.to_ascii_lowercase());
        assert_eq!(
            alert["annotations"]["runbook_url"],
            anchor.as_str(),
            "{name}"
        );
    }
    assert_eq!(
        headings, names,
        "one section for each alert, in their order"
    );
}

/// A problem without an alert of its own is one of CrawlgateProblems, and the runbook explains it.
#[test]
fn runbook_explains_each_problem_without_an_alert_of_its_own() {
    let alerts = alerts();
    let general = alerts
        .iter()
        .find(|alert| alert["alert"] == "CrawlgateProblems")
        .expect("the alert");
    let expression = general["expr"].as_str().expect("an expression");
    let (_, others) = expression.split_once("problem!~\"").expect("the others");
    let others: Vec<&str> = others
        .split_once('"')
        .expect("the end")
        .0
        .split('|')
        .collect();
    let manual = text("docs/runbook.md");
    let (_, section) = manual
        .split_once("### CrawlgateProblems\n")
        .expect("a section");
    let section = section.split("\n### ").next().expect("its end");
    // The metrics have a series for each kind.
    let metrics = Setup::before(Origin::plain().address).start().metrics();
    let kinds: Vec<&str> = metrics
        .lines()
        .filter_map(|line| {
            line.strip_prefix("crawlgate_problems{problem=\"")?
                .split('"')
                .next()
        })
        .collect();
    assert!(kinds.len() > 15, "{kinds:?}");
    for kind in kinds {
        let is_explained = section.contains(&format!("`{kind}`:"));
        assert!(others.contains(&kind) != is_explained, "{kind}");
    }
}

#[test]
fn prometheus_accepts_every_expression_of_the_dashboard() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules: Vec<Value> = expressions()
        .iter()
        .enumerate()
        .map(|(number, expression)| serde_json::json!({ "record": format!("test:{number}"), "expr": expression }))
        .collect();
    assert!(rules.len() > 25, "{}", rules.len());
    // JSON is YAML.
    let file = directory.path().join("rules.yml");
    let text = serde_json::json!({ "groups": [{ "name": "test", "rules": rules }] }).to_string();
    fs::write(&file, text).expect("rules");
    promtool(&["check", "rules", file.to_str().unwrap()]);
}

/// Labels by the names of the series that have them. Histograms are asked for by their parts, as
/// they are written.
fn series(metrics: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let labels = found.entry(name.to_owned()).or_default();
        if let Some((inner, _)) = line
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
        {
            labels.extend(
                inner
                    .split("\",")
                    .filter_map(|label| Some(label.split_once("=\"")?.0.to_owned())),
            );
        }
    }
    found
}

#[test]
#[cfg(target_os = "linux")]
fn everything_that_is_asked_for_is_in_the_metrics() {
    let origin = Origin::start(|request, stream| {
        let media = if request.target() == "/robots.txt" {
            "text/plain"
        } else {
            "text/html"
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).is_ok()
    });
    let origins = format!(
        "origins:\n  - hosts: [down.test]\n    servers: http://{}\n  - hosts: [half.test]\n    servers: [http://{}, http://{}]\n  \
         - servers: http://{}\n    connections: 100",
        Origin::nowhere(),
        Origin::nowhere(),
        origin.address,
        origin.address
    );
    let policy = "purposes: { training: disallow }\nrobots: { origin: replace }\nenforcement: { mode: enforce, behind_cache: no }\n\
        crawlers: { token: PartnerBot, networks: 198.51.100.0/24 }\n";
    let gate = Setup::before(origin.address)
        .with_origins(&origins)
        .policy("site", policy);
    let redis = RedisServer::start();
    let gate = gate.settings(&format!(
        "trusted_proxies: [127.0.0.1]\nstore: '{}'",
        redis.url()
    ));
    let directory = tempfile::tempdir().expect("a directory");
    Authority::new().certify(directory.path(), "site", &["site.test"], 2100);
    let file = |kind: &str| {
        directory
            .path()
            .join(format!("site.{kind}"))
            .display()
            .to_string()
    };
    let tls = format!(
        "{{ address: 127.0.0.1:0, tls: {{ certificates: {{ cert: {}, key: {} }} }} }}",
        file("pem"),
        file("key")
    );
    let gate = gate.listeners(&format!("[127.0.0.1:0, {tls}]"));
    let gate = gate.policy("merged", "hosts: [merged.test]\n").start();
    for (host, target, agent) in [
        ("site.test", "/", BROWSER),
        ("site.test", "/?utm_source=chatgpt.com", BROWSER),
        ("site.test", "/", BINGBOT),
        ("site.test", "/", GPTBOT),
        ("site.test", "/robots.txt", BINGBOT),
        (
            "site.test",
            "/",
            "PartnerBot/1\r\nX-Forwarded-For: 203.0.113.1",
        ),
        ("down.test", "/", BROWSER),
    ] {
        gate.get(host, target, &format!("User-Agent: {agent}\r\n"));
    }
    // Until one goes to the server that is down first, and is sent once more.
    eventually("a retry", || {
        gate.get("half.test", "/", &format!("User-Agent: {BROWSER}\r\n"));
        let metrics = gate.metrics();
        metrics
            .contains("\ncrawlgate_upstream_retries_total{")
            .then_some(())
    });
    let asked: Vec<(String, Vec<String>)> = expressions()
        .iter()
        .flat_map(|expression| asked(expression))
        .collect();
    assert!(asked.len() > 30, "{asked:?}");
    // Requests are counted when they end, just after their answer.
    let present = eventually("every metric", || {
        let metrics = gate.metrics();
        let present = series(&metrics);
        let missing: Vec<&String> = asked
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !present.contains_key(*name))
            .collect();
        if !missing.is_empty() {
            eprintln!("missing: {missing:?}");
        }
        missing.is_empty().then_some(present)
    });
    for (name, labels) in &asked {
        for label in labels
            .iter()
            .filter(|label| !["job", "instance"].contains(&label.as_str()))
        {
            assert!(
                present[name].contains(label),
                "{name} has no label `{label}`: {:?}",
                present[name]
            );
        }
    }
}

/// A state that the panel does not know would be a gap, as if there were no site.
#[test]
fn dashboard_names_each_origin_robots_txt_state() {
    use crawlgate::internals::policy::origin::OriginCopyState;
    use strum::VariantArray;
    let panels = panels(&json(DASHBOARD));
    let asks = |panel: &&Value, metric: &str| {
        panel["targets"][0]["expr"]
            .as_str()
            .is_some_and(|expression| expression.contains(metric))
    };
    let of_state = panels
        .iter()
        .find(|panel| asks(panel, "crawlgate_origin_robots_state{"))
        .expect("a panel");
    let expression = of_state["targets"][0]["expr"]
        .as_str()
        .expect("an expression");
    for state in OriginCopyState::VARIANTS {
        let numbered = expression.split_once(&format!("state=\"{}\"}} * ", state.name()));
        let number = numbered
            .and_then(|(_, rest)| rest.chars().next())
            .unwrap_or_else(|| panic!("{expression}"));
        let word = &of_state["fieldConfig"]["defaults"]["mappings"][0]["options"]
            [number.to_string()]["text"];
        assert!(
            word.as_str().is_some_and(|word| !word.is_empty()),
            "{number}"
        );
    }
    assert!(panels.iter().any(|panel| asks(
        &panel,
        "crawlgate_origin_robots_last_success_timestamp_seconds{"
    )));
}

/// A crawler comes a few times an hour: nobody reads that as requests a second.
#[test]
fn dashboard_counts_crawler_requests() {
    let panels = panels(&json(DASHBOARD));
    let expressions = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    for expression in expressions.map(|target| target["expr"].as_str().expect("an expression")) {
        assert!(
            !expression.contains("rate(crawlgate_") || expression.contains("_bucket"),
            "{expression}"
        );
    }
    let kept = panels
        .iter()
        .find(|panel| panel["title"] == "Who obeyed it")
        .expect("the panel");
    assert_eq!(
        kept["targets"].as_array().map(Vec::len),
        Some(3),
        "requests, violations, and the share"
    );
}

/// What an impostor does is not charged to the crawler whose name it uses.
#[test]
fn every_count_by_crawler_in_the_dashboard_is_split_by_identity() {
    let mut by_crawler = 0;
    for panel in panels(&json(DASHBOARD)) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().expect("an expression");
            for part in expression.split("sum by (").skip(1) {
                let (labels, rest) = part.split_once(')').expect("labels");
                let summed = rest.split("sum by (").next().unwrap_or_default();
                let labels: Vec<&str> = labels.split(", ").collect();
                let is_counted = ["violations", "requests", "sent_bytes", "responses"]
                    .iter()
                    .any(|counted| summed.contains(&format!("increase(crawlgate_{counted}_total")));
                if is_counted && labels.contains(&"crawler") {
                    by_crawler += 1;
                    assert!(
                        labels.contains(&"identity") || summed.contains("identity="),
                        "{expression}"
                    );
                    let legend = target["legendFormat"]
                        .as_str()
                        .filter(|legend| legend.contains("{{crawler}}"));
                    assert!(
                        legend.is_none_or(|legend| legend.contains("{{identity}}")),
                        "{target}"
                    );
                }
            }
        }
    }
    assert!(by_crawler > 3, "{by_crawler}");
}

#[test]
fn the_panels_of_the_dashboard_lie_side_by_side() {
    let dashboard = json(DASHBOARD);
    let number = |panel: &Value, field: &str| panel["gridPos"][field].as_u64().expect("a number");
    let panels = panels(&dashboard);
    assert!(panels.len() > 15, "{}", panels.len());
    for (index, one) in panels.iter().enumerate() {
        let (x, y, w, h) = (
            number(one, "x"),
            number(one, "y"),
            number(one, "w"),
            number(one, "h"),
        );
        assert!(w > 0 && h > 0 && x + w <= 24, "{} is outside", one["title"]);
        for other in &panels[index + 1..] {
            assert_ne!(
                one["id"], other["id"],
                "{} and {}",
                one["title"], other["title"]
            );
            let beside =
                x + w <= number(other, "x") || number(other, "x") + number(other, "w") <= x;
            let above = y + h <= number(other, "y") || number(other, "y") + number(other, "h") <= y;
            assert!(
                beside || above,
                "{} lies on {}",
                one["title"],
                other["title"]
            );
        }
    }
}

#[test]
fn dashboard_uses_the_chosen_source_and_variables() {
    let dashboard = json(DASHBOARD);
    let variables = &dashboard["templating"]["list"];
    let names: Vec<&str> = variables
        .as_array()
        .expect("variables")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ["datasource", "job", "instance", "site"]);
    assert_eq!(
        (&variables[0]["type"], &variables[0]["query"]),
        (&"datasource".into(), &"prometheus".into())
    );
    let chosen = serde_json::json!({ "type": "prometheus", "uid": "${datasource}" });
    let mut kinds = BTreeSet::new();
    for panel in panels(&dashboard) {
        let (title, kind) = (&panel["title"], panel["type"].as_str().expect("a type"));
        kinds.insert(kind.to_owned());
        if kind == "row" {
            continue;
        }
        assert_eq!(panel["datasource"], chosen, "{title}");
        let targets = panel["targets"].as_array().expect("targets");
        let ids: BTreeSet<&str> = targets
            .iter()
            .filter_map(|target| target["refId"].as_str())
            .collect();
        assert!(!targets.is_empty() && ids.len() == targets.len(), "{title}");
        for target in targets {
            assert_eq!(target["datasource"], chosen, "{title}");
            let expression = target["expr"].as_str().expect("an expression");
            assert!(
                expression.contains("instance=~\"$instance\""),
                "{title}: {expression}"
            );
        }
    }
    let known = [
        "bargauge",
        "row",
        "stat",
        "state-timeline",
        "table",
        "timeseries",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), known);
    // Imported and provisioned dashboards have no id of their own.
    assert!(
        dashboard["id"].is_null()
            && dashboard["schemaVersion"]
                .as_u64()
                .is_some_and(|version| version >= 39)
    );
    assert_eq!(texts(&dashboard["tags"]), ["crawlgate"]);
}
