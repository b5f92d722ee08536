//! What crawlers read, what they get, and who sends visitors: a simulated week comes to the numbers
//! that it was made of, in metrics, report, CSV and state database, also over a restart, and so do
//! requests to two instances.

mod simulation;

use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::{Gate, eventually};
use crawlgate::time::Timestamp;
use rusqlite::Connection as Database;
use serde_json::Value;
use simulation::{
    COLUMNS, DAY, HOUR, Labels, Numbers, SITES, Simulation, Truth, UNKNOWN_BOTS, add_numbers,
    is_crawler, number, origin, setup,
};
use std::collections::{BTreeMap, BTreeSet};

/// The JSON report of the running gate with these arguments, once it has so many requests. What it
/// has is in the history, in the hour of the clock.
fn report(gate: &Gate, arguments: &[&str], requests: u64) -> Value {
    eventually("the history has all of it", || {
        let output = gate.command(&[&["report", "--json"], arguments].concat());
        let report: Value = serde_json::from_slice(&output.stdout).ok()?;
        (report["traffic"]["requests"]["all"] == requests).then_some(report)
    })
}

fn label<'a>(series: &'a str, name: &str) -> &'a str {
    let rest = series.split_once(&format!("{name}=\""));
    let value = rest.map(|(_, rest)| rest.split('"').next());
    value.flatten().unwrap_or_default()
}

/// The column of a series, or none for what the history has not.
fn column_of_series(series: &str) -> Vec<&'static str> {
    let name = series.split('{').next().unwrap_or_default();
    let find = |wanted: &str| COLUMNS.into_iter().find(|column| *column == wanted);
    match name {
        "crawlgate_sent_bytes_total" => vec!["bytes"],
        "crawlgate_responses_total" => {
            let column = format!("status_{}", label(series, "status"));
            find(&column).into_iter().collect()
        }
        "crawlgate_requests_total" => {
            let action = match label(series, "action") {
                "robots_txt" => return vec!["requests", "robots_txt"],
                "block" => Some("refused"),
                "would_block" => Some("would_refuse"),
                _ => None,
            };
            let kind = find(label(series, "kind"));
            [Some("requests"), kind, action]
                .into_iter()
                .flatten()
                .collect()
        }
        _ => Vec::new(),
    }
}

fn assert_metrics(gate: &Gate, truth: &Truth) {
    let metrics = gate.metrics();
    let mut found: BTreeMap<[String; 3], Numbers> = BTreeMap::new();
    let mut visits: BTreeMap<[String; 2], u64> = BTreeMap::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let value = value.parse::<f64>().expect("a number") as u64;
        for column in column_of_series(series) {
            let labels = ["site", "crawler", "identity"].map(|name| label(series, name).into());
            *found.entry(labels).or_default().entry(column).or_default() += value;
        }
        if series.starts_with("crawlgate_visits_total{") {
            visits.insert(
                ["site", "service"].map(|name| label(series, name).into()),
                value,
            );
        }
    }
    found
        .values_mut()
        .for_each(|numbers| numbers.retain(|_, number| *number > 0));
    let expected = truth.sums(|_, labels| Some(labels.map(str::to_owned)));
    assert_eq!(found, expected);
    let mut expected = BTreeMap::new();
    for ((_, labels), visits) in &truth.visits {
        *expected.entry(labels.map(str::to_owned)).or_default() += visits;
    }
    assert_eq!(visits, expected);
}

/// The known columns of counts in JSON.
fn numbers_from_json(counts: &Value) -> Numbers {
    let number = |column: &&'static str| Some((*column, counts[*column].as_u64()?));
    COLUMNS.iter().filter_map(number).collect()
}

/// The label and identity of a row in a report. Nobody is an unknown bot for certain.
fn row_key([_, crawler, identity]: Labels) -> Option<[String; 2]> {
    let identity = if crawler == UNKNOWN_BOTS {
        ""
    } else {
        identity
    };
    (crawler != "none").then(|| [crawler.to_owned(), identity.to_owned()])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn assert_report(report: &Value, truth: &Truth) {
    let rows = report["crawlers"].as_array().expect("rows").iter();
    let found: BTreeMap<[String; 2], Numbers> = rows
        .map(|row| {
            (
                [text(&row["id"]), text(&row["identity"])],
                numbers_from_json(&row["counts"]),
            )
        })
        .collect();
    assert_eq!(found, truth.sums(|_, labels| row_key(labels)));
    assert_eq!(
        report["visitors"],
        truth.total("requests", |[_, crawler, _]| crawler == "none")
    );
    for column in ["requests", "bytes"] {
        let share = &report["traffic"][column];
        assert_eq!(share["all"], truth.total(column, |_| true), "{column}");
        assert_eq!(
            share["crawlers"],
            truth.total(column, is_crawler),
            "{column}"
        );
    }
    let services = report["traffic"]["services"].as_array().expect("services");
    let visits: BTreeMap<&str, u64> = services
        .iter()
        .map(|row| {
            let service = row["service"].as_str().expect("an id");
            (service, row["visits"].as_u64().expect("visits"))
        })
        .collect();
    assert_eq!(visits, truth.visits_by_service());
}

fn assert_sites(report: &Value, truth: &Truth) {
    for row in report["sites"].as_array().expect("sites") {
        let name = text(&row["site"]);
        let sums = truth.sums(|_, labels| (labels[0] == name && is_crawler(labels)).then_some(()));
        let mut expected = sums.get(&()).cloned().unwrap_or_default();
        // Unknown bots are blocked only if the policy says so.
        let of_unknown_bots = truth.total("would_refuse", |[site, crawler, _]| {
            site == name && crawler == UNKNOWN_BOTS
        });
        if let Some(all) = expected.get_mut("would_refuse") {
            *all -= of_unknown_bots;
        }
        expected.retain(|_, number| *number > 0);
        assert_eq!(numbers_from_json(&row["counts"]), expected, "{name}");
        let pretended = truth.total("requests", |[site, _, identity]| {
            site == name && identity == "impostor"
        });
        assert_eq!(row["pretended"], pretended, "{name}");
    }
    assert_eq!(report["sites"].as_array().map(Vec::len), Some(SITES.len()));
}

/// Compares the bars of a report with the truth of a site (empty: all), by the beginnings of hours
/// or days.
fn assert_periods(report: &Value, truth: &Truth, step: i64, only: &str) {
    let label = |hour: i64| {
        let moment = Timestamp(hour - hour % step).to_string().replace('T', " ");
        moment[..if step == DAY { 10 } else { 16 }].to_owned()
    };
    let is_counted =
        |[site, crawler, _]: Labels| crawler != "none" && (only.is_empty() || site == only);
    let pretended = truth
        .sums(|hour, labels| (is_counted(labels) && labels[2] == "impostor").then(|| label(hour)));
    let expected = truth.sums(|hour, labels| is_counted(labels).then(|| label(hour)));
    let expected: BTreeMap<String, [u64; 4]> = expected
        .into_iter()
        .map(|(period, sum)| {
            let parts = ["allowed", "violation"].map(|kind| number(&sum, kind));
            let pretended = pretended
                .get(&period)
                .map_or(0, |sum| number(sum, "requests"));
            (period, [parts[0], parts[1], pretended, 0])
        })
        .filter(|(_, parts)| *parts != [0; 4])
        .collect();
    let bars = report["periods"].as_array().expect("periods").iter();
    let found: BTreeMap<String, [u64; 4]> = bars
        .map(|bar| {
            let parts = ["obeyed", "against_rules", "pretended", "not_counted"];
            (
                text(&bar["period"]),
                parts.map(|part| bar[part].as_u64().expect("a number")),
            )
        })
        .filter(|(_, parts)| *parts != [0; 4])
        .collect();
    assert_eq!(found, expected);
}

fn assert_csv(gate: &Gate, truth: &Truth) {
    let output = gate.command(&["report", "--csv", "--since", "7d"]);
    let csv = String::from_utf8(output.stdout).expect("UTF-8");
    let found: BTreeSet<Vec<String>> = csv
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            // A name may have commas.
            let rest = &cells[cells.len() - 19..cells.len() - 5];
            assert_eq!([rest[1], rest[2], rest[4]], ["crawler", "", ""]);
            [&cells[..1], &rest[..1], &rest[3..4], &rest[5..]]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect()
        })
        .collect();
    let columns = [
        "requests",
        "bytes",
        "status_2xx",
        "status_3xx",
        "status_304",
    ];
    let more = [
        "status_4xx",
        "status_5xx",
        "violation",
        "refused",
        "license_demanded",
    ];
    let expected = truth.sums(|_, labels| row_key(labels)).into_iter();
    let expected: BTreeSet<Vec<String>> = expected
        .map(|(key, numbers)| {
            let columns = columns.iter().chain(&more);
            let numbers = columns.map(|column| number(&numbers, column).to_string());
            key.into_iter().chain(numbers).collect()
        })
        .collect();
    assert_eq!(found, expected);
}

fn database(gate: &Gate) -> Database {
    Database::open(gate.path("state/state.db")).expect("the state")
}

/// Each row of a query as text, its values parted by spaces.
fn stored_rows(gate: &Gate, query: &str) -> BTreeSet<String> {
    let database = database(gate);
    let mut statement = database.prepare(query).expect("a query");
    let rows = statement.query_map([], |row| row.get(0));
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

/// A table of counts is the truth by its step, with the sums of each crawler, of each site, and of
/// all. Visitors are in no sum of crawlers.
fn assert_stored_counts(gate: &Gate, truth: &Truth, table: &str, start: fn(i64) -> i64) {
    let mut expected: BTreeMap<(i64, Labels), Numbers> = BTreeMap::new();
    for ((hour, [site, crawler, identity]), numbers) in &truth.numbers {
        let mut rows = vec![(*site, *crawler), ("", *crawler)];
        if *crawler != "none" {
            rows.extend([(*site, ""), ("", "")]);
        }
        for (site, crawler) in rows {
            let key = (start(*hour), [site, crawler, *identity]);
            add_numbers(expected.entry(key).or_default(), numbers);
        }
    }
    let expected = expected.into_iter().map(|((start, labels), numbers)| {
        let numbers = COLUMNS.map(|column| number(&numbers, column).to_string());
        format!("{start} {} {}", labels.join(" "), numbers.join(" "))
    });
    let columns = [&["start", "site", "crawler", "identity"][..], &COLUMNS].concat();
    let query = format!("SELECT {} FROM {table}", columns.join(" || ' ' || "));
    assert_eq!(stored_rows(gate, &query), expected.collect(), "{table}");
}

fn assert_stored_paths(gate: &Gate, truth: &Truth) {
    let query = "SELECT day || ' ' || site || ' ' || crawler || ' ' || identity || ' ' || path || ' ' || requests FROM \
                 history_paths";
    let expected = truth.paths.iter().map(|((day, labels, path), requests)| {
        format!("{day} {} {path} {requests}", labels.join(" "))
    });
    assert_eq!(stored_rows(gate, query), expected.collect());
}

fn assert_state(gate: &Gate, truth: &Truth) {
    // 1970-01-05 is the first Monday.
    let week = |hour: i64| hour - (hour - 4 * DAY).rem_euclid(7 * DAY);
    assert_stored_counts(gate, truth, "history_hours", |hour| hour);
    assert_stored_counts(gate, truth, "history_days", |hour| hour - hour % DAY);
    assert_stored_counts(gate, truth, "history_weeks", week);
    let query = "SELECT day || ' ' || site || ' ' || service || ' ' || visits FROM history_visits";
    let expected = truth
        .visits
        .iter()
        .map(|((day, labels), visits)| format!("{day} {} {visits}", labels.join(" ")));
    assert_eq!(stored_rows(gate, query), expected.collect());
}

/// Lets time pass until ten minutes after the next midnight. The clock then moves by whole hours, so
/// that no hour ends while requests come.
fn begin_week(gate: &mut Gate) {
    gate.live_through(DAY - gate.now() % DAY + 600);
}

#[test]
fn simulated_week_comes_to_its_exact_numbers() {
    let origin = origin();
    let mut gate = setup(&origin, "").with_clock().start();
    begin_week(&mut gate);
    let mut simulation = Simulation::seeded(51);
    simulation.verify(&gate);
    for slot in 0..7 * 6 {
        if slot > 0 {
            gate.live_through(4 * HOUR);
        }
        for _ in 0..24 {
            simulation.random_request(&gate);
        }
        // Until these are in their hour.
        report(&gate, &["--since", "8d"], simulation.truth.requests());
    }
    let truth = &simulation.truth;
    assert_metrics(&gate, truth);
    let week = report(&gate, &["--since", "7d"], truth.requests());
    assert_report(&week, truth);
    assert_sites(&week, truth);
    assert_periods(&week, truth, DAY, "");
    let of_shop = truth.total("requests", |[site, ..]| site == "shop");
    let hours = report(&gate, &["--since", "167h", "--site", "shop"], of_shop);
    assert_periods(&hours, truth, HOUR, "shop");
    assert_csv(&gate, truth);
    gate.restart("TERM", |gate| {
        assert_state(gate, truth);
        assert_stored_paths(gate, truth);
    });
    // The next run goes on with the counts and paths of the day.
    for _ in 0..40 {
        simulation.random_request(&gate);
    }
    let truth = &simulation.truth;
    assert_report(&report(&gate, &["--since", "7d"], truth.requests()), truth);
    gate.restart("TERM", |gate| {
        assert_state(gate, truth);
        assert_stored_paths(gate, truth);
    });
}

#[test]
fn two_instances_come_to_the_sum_of_their_numbers() {
    let redis = RedisServer::start();
    let origin = origin();
    let store = format!("store: '{}'", redis.url());
    let gates = [0, 1].map(|_| setup(&origin, &store).start());
    for gate in &gates {
        eventually("both are present", || {
            let output = gate.command(&["instances", "--json"]);
            let store: Value = serde_json::from_slice(&output.stdout).ok()?;
            let members = store["members"].as_array()?.iter();
            let present = members.filter(|found| found["standing"] == "present");
            (present.count() == 2 && store["accuses_not"].is_null()).then_some(())
        });
    }
    let mut simulation = Simulation::seeded(53);
    for gate in &gates {
        simulation.verify(gate);
    }
    for number in 0..300 {
        simulation.random_request(&gates[number % 2]);
    }
    let truth = &simulation.truth;
    for gate in &gates {
        let report = report(gate, &["--since", "7d"], truth.requests());
        assert_report(&report, truth);
        assert_sites(&report, truth);
    }
}

#[test]
fn history_without_paths_keeps_everything_else() {
    let origin = origin();
    let settings = "history: { paths: no }";
    let mut gate = setup(&origin, settings).with_clock().start();
    begin_week(&mut gate);
    let mut simulation = Simulation::seeded(52);
    simulation.verify(&gate);
    for _ in 0..40 {
        simulation.random_request(&gate);
    }
    let truth = &simulation.truth;
    assert_report(&report(&gate, &["--since", "7d"], truth.requests()), truth);
    gate.restart("TERM", |gate| {
        assert_state(gate, truth);
        assert_stored_paths(gate, &Truth::default());
    });
}
