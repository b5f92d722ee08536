//! `audit` on logs of several servers, as a process.

use crate::proxy::support::{Origin, Setup, eventually, read};
use crawlgate::time::Timestamp;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

pub const GPTBOT: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
pub const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
const AHREFS: &str = "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)";
pub const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36";
const ROBOTS: &str =
    "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /cart/\nAllow: /cart/help\n";

/// A directory with files, in which the command runs.
pub struct Case(TempDir);

impl Case {
    pub fn new(files: &[(&str, &[u8])]) -> Case {
        let case = Case(tempfile::tempdir().expect("a temporary directory"));
        case.write("robots.txt", ROBOTS.as_bytes());
        files
            .iter()
            .for_each(|(name, content)| case.write(name, content));
        case
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).expect("a file");
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, b"")
    }

    fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .arg("audit")
            .args(arguments)
            .current_dir(self.0.path())
            // What a crawlgate of this machine stored is none of a test's business.
            .env("STATE_DIRECTORY", self.0.path().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        // A command that fails at once may not read it.
        let _ = child.stdin.take().expect("standard input").write_all(stdin);
        child.wait_with_output().expect("an end")
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

fn line(time: &str, target: &str, user_agent: &str) -> String {
    format!("192.0.2.7 - - [{time}] \"GET {target} HTTP/1.1\" 200 1000 \"-\" \"{user_agent}\"\n")
}

pub fn crawler<'a>(report: &'a Value, id: &str) -> &'a Value {
    let crawlers = report["crawlers"].as_array().expect("a list");
    crawlers
        .iter()
        .find(|crawler| crawler["id"] == id)
        .unwrap_or_else(|| panic!("no {id} in {report}"))
}

/// A column of a row; a column that is zero is left out of it.
pub fn count(row: &Value, column: &str) -> u64 {
    row["counts"][column].as_u64().unwrap_or_default()
}

/// Of a crawler: requests, violations, stale copies, unproven ones.
fn numbers(report: &Value, id: &str) -> [u64; 4] {
    let crawler = crawler(report, id);
    ["requests", "violation", "stale_copy", "unproven"].map(|column| count(crawler, column))
}

#[test]
fn challenges_in_a_log_are_no_crawlers_requests() {
    const AT: &str = "22/Nov/2026:10:00:00 +0000";
    let lines = [
        line(AT, "/.well-known/acme-challenge/abcdefghijk", GPTBOT),
        line(AT, "/.well-known/pki-validation/fileauth.txt", GPTBOT),
        line(AT, "/.well-known/pki-validation/../cart/", GPTBOT),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    assert_eq!(report["visitors"], 2);
    assert_eq!(numbers(&report, "gptbot"), [1, 1, 0, 0]);
}

#[test]
fn webhooks_in_a_log_count_as_a_tool() {
    let hook = "Shop-Hooks/1.0 (+https://pay.example/webhooks)";
    let get = line("22/Nov/2026:10:00:00 +0000", "/cart/", hook);
    let lines = [get.replace("GET", "POST"), get.replace("GET", "PUT"), get];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    assert_eq!(numbers(&report, "tool")[0], 2);
    assert_eq!(numbers(&report, "other")[0], 1);
}

#[test]
fn only_unknown_bots_that_broke_rules_are_named() {
    const AT: &str = "22/Nov/2026:10:00:00 +0000";
    let nice = line(AT, "/hat", "NiceBot/1.0").repeat(3);
    let own = concat!("crawlgate/", env!("CARGO_PKG_VERSION"), " (origin)");
    let lines = [
        nice,
        line(AT, "/cart/1", "PriceWatchBot/1.0"),
        line(AT, "/robots.txt", own),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    assert_eq!(numbers(&report, "other"), [4, 1, 0, 0]);
    assert_eq!(crawler(&report, "other")["name"], "unknown bots");
    let caution = "Of the unknown bots, these broke the rules: PriceWatchBot.";
    assert_eq!(report["log"]["cautions"], json!([caution]));
    assert_eq!(report["unknown_bots"][0]["name"], "NiceBot");
    assert_eq!(crawler(&report, "crawlgate")["part"], "tool");

    let bad = ["FooBot", "PriceWatchBot"].map(|name| line(AT, "/cart/1", name));
    let log = [bad.concat(), line(AT, "/hat", "FooBot")].concat();
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    assert_eq!(crawler(&report, "other")["name"], "FooBot, PriceWatchBot");
    let cautions = report["log"]["cautions"].as_array();
    assert!(cautions.is_none_or(Vec::is_empty), "{report}");
}

#[test]
fn audit_counts_only_requests_from_since_to_until() {
    let times = [
        "31/Oct/2026:23:59:59 +0000",
        "01/Nov/2026:00:00:00 +0000",
        "15/Nov/2026:10:00:00 +0000",
        "01/Dec/2026:00:59:59 +0100",
        "01/Dec/2026:00:00:00 +0000",
    ];
    let lines = times.map(|time| line(time, "/cart/", GPTBOT)).concat();
    let case = Case::new(&[("access.log", lines.as_bytes())]);
    for (since, until, violations) in [
        (Some("2026-11-01"), Some("2026-12-01"), 3),
        (Some("2026-11-15T10:00:00Z"), Some("2026-12-01"), 2),
        (None, Some("2026-11-15T10:00:00Z"), 2),
        (Some("2026-11-15T10:00:01Z"), None, 2),
        (None, None, 5),
    ] {
        let mut arguments = vec!["--robots", "robots.txt", "access.log"];
        for (option, value) in [("--since", since), ("--until", until)] {
            arguments.extend(value.into_iter().flat_map(|value| [option, value]));
        }
        let report = case.json(&arguments);
        assert_eq!(
            report["totals"]["against_rules"], violations,
            "{arguments:?}"
        );
        assert_eq!(report["log"]["outside_period"], 5 - violations);
        assert_eq!(report["log"]["lines"], 5);
    }
    let outside = [
        "--robots",
        "robots.txt",
        "--since",
        "2027-01-01",
        "access.log",
    ];
    let headline = case.json(&outside)["headline"].to_string();
    for day in ["31 Oct 2026", "1 Dec 2026"] {
        assert!(headline.contains(day), "{headline}");
    }
}

#[test]
fn combined_log_shows_crawlers_that_broke_rules() {
    const AT: &str = "22/Nov/2026:10:00:00 +0000";
    let lines = [
        line(AT, "/robots.txt", GPTBOT).replace('\n', " \n"),
        line(AT, "/a?id=1&b=2", GPTBOT),
        line(AT, "/a?b=3&id=2", GPTBOT),
        line(AT, "/cart/1", BINGBOT),
        line(AT, "/cart/help", BINGBOT),
        line(AT, "/cart/1", BROWSER),
        line(AT, "/cart/1", "curl/8.0"),
        line(
            "23/Nov/2026:00:30:00 +0100",
            "/cart/1",
            "FooBot/1.0 (+https://foo.example)",
        ),
        "192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] \"\\x16\\x03\" 400 0 \"-\" \"-\"\n".to_owned(),
        "what is this\n".to_owned(),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    let log = &report["log"];
    let facts = ["lines", "unreadable", "no_request", "disallowed"].map(|name| log[name].clone());
    assert_eq!(facts, [10, 1, 1, 4].map(Value::from));
    assert_eq!(
        log["examples"],
        json!([{"file": "access.log", "line": 10, "reason": "other_format", "text": "what is this"}])
    );
    assert_eq!(
        (&report["from"], &report["to"]),
        (
            &json!("2026-11-22T10:00:00Z"),
            &json!("2026-11-22T23:30:00Z")
        )
    );
    assert_eq!(
        (&report["source"], &report["visitors"]),
        (&json!("logs"), &json!(1))
    );
    assert_eq!(
        (&log["visitors_bytes"], &log["unread_columns"]),
        (&json!(1000), &json!(0))
    );
    let gptbot = crawler(&report, "gptbot");
    assert_eq!(numbers(&report, "gptbot"), [3, 2, 0, 0]);
    assert_eq!(
        (count(gptbot, "robots_txt"), count(gptbot, "would_refuse")),
        (1, 2)
    );
    assert_eq!(
        (&gptbot["disallowed_bytes"], &gptbot["part"]),
        (&json!(2000), &json!("breaks_rules"))
    );
    assert_eq!(
        (&gptbot["example"]["rule"], &gptbot["example"]["place"]),
        (&json!("Disallow: /"), &json!("robots.txt:2"))
    );
    assert_eq!(
        gptbot["rules"],
        json!([{"pattern": "/", "count": 2, "place": "robots.txt:2"}])
    );
    assert_eq!(top(&gptbot["urls_against_rules"]), [("/a?b&id", 2)]);
    assert_eq!(numbers(&report, "bingbot"), [2, 1, 0, 0]);
    let urls = &crawler(&report, "bingbot")["urls_against_rules"];
    assert_eq!(top(urls), [("/cart/1", 1)]);
    assert_eq!(numbers(&report, "other"), [1, 1, 0, 0]);
    assert_eq!(crawler(&report, "curl")["part"], "tool");
    let totals = &report["totals"];
    let totals = ["requests", "against_rules", "tools"].map(|name| totals[name].clone());
    assert_eq!(totals, [6, 4, 1].map(Value::from));
    assert_eq!(
        report["unknown_bots"],
        json!([{"name": "FooBot", "count": 1, "error": 0}])
    );
    assert_eq!(
        report["urls"][0],
        json!({"name": "/a?b&id", "count": 2, "error": 0})
    );
}

#[test]
fn contradicting_options_are_refused() {
    let log = line("22/Nov/2026:10:00:00 +0000", "/a", GPTBOT);
    let page = b"<!doctype html>\n<title>User-agent: *</title>".as_slice();
    let case = Case::new(&[
        ("access.log", log.as_bytes()),
        ("empty.log", b""),
        ("page.txt", page),
        ("none.txt", b"# none\n"),
    ]);
    for (robots, says) in [
        ("access.log", "192.0.2.7 - -"),
        ("page.txt", "<!doctype html>"),
        ("none.txt", ""),
        ("robots.txt", ""),
    ] {
        let output = case.run(&["--robots", robots, "access.log"]);
        let errors = String::from_utf8(output.stderr).expect("UTF-8");
        let is_named = errors.contains(robots) && errors.contains(&format!("\"{says}"));
        assert_eq!(is_named, !says.is_empty(), "{errors}");
        let code = if is_named { 3 } else { 0 };
        assert_eq!(output.status.code(), Some(code), "{errors}");
        if is_named {
            continue;
        }
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let has_note = text.contains("robots.txt has no rules");
        assert_eq!(has_note, robots != "robots.txt", "{text}");
    }
    let output = case.run(&["--robots", "policy.yaml", "access.log"]);
    assert_eq!(output.status.code(), Some(2), "a policy is no robots.txt");
    let empty = case.json(&["--robots", "robots.txt", "empty.log"]);
    assert_eq!(
        (&empty["log"]["lines"], &empty["to"]),
        (&json!(0), &Value::Null)
    );
}

#[test]
fn every_request_is_judged_by_the_files_of_its_time() {
    // Neither the lines nor the files are in the order of time.
    let lines = [
        line("05/Nov/2026:12:00:00 +0000", "/cart/", BINGBOT),
        line("01/Nov/2026:12:00:00 +0000", "/cart/", BINGBOT),
        line("03/Nov/2026:13:00:00 +0000", "/cart/", BINGBOT),
        line("03/Nov/2026:11:00:00 +0000", "/cart/", BINGBOT),
    ];
    let case = Case::new(&[
        ("access.log", lines.concat().as_bytes()),
        ("open.txt", b"User-agent: *\nDisallow: /x\n"),
    ]);
    let files = [
        "--robots",
        "robots.txt@2026-11-03T12:00:00Z",
        "--robots",
        "open.txt",
        "access.log",
    ];
    // Allowed twice. An hour after the change it followed the older file, and at the end of the log
    // nobody could use that any more. Two days after the change it broke the rules.
    let report = case.json(&files);
    assert_eq!(numbers(&report, "bingbot"), [4, 1, 0, 0]);
    let bingbot = crawler(&report, "bingbot");
    assert_eq!(
        (count(bingbot, "allowed"), count(bingbot, "would_refuse")),
        (3, 1)
    );
    assert_eq!(
        (&report["log"]["disallowed"], &report["not_counted"]),
        (&json!(2), &json!([]))
    );
    let span =
        |report: &Value| ["first", "last"].map(|name| crawler(report, "bingbot")[name].clone());
    let (first, last) = ("2026-11-03T13:00:00Z", "2026-11-05T12:00:00Z");
    assert_eq!(span(&report), [last, last]);
    let no_grace = case.json(&[files.as_slice(), &["--grace", "10m"]].concat());
    assert_eq!(numbers(&no_grace, "bingbot"), [4, 2, 0, 0]);
    assert_eq!(span(&no_grace), [first, last]);
    // AhrefsBot is documented to keep a robots.txt for a week.
    case.write(
        "kept.log",
        lines.concat().replace(BINGBOT, AHREFS).as_bytes(),
    );
    let kept = case.json(&[&files[..4], &["kept.log"]].concat());
    assert_eq!(numbers(&kept, "ahrefsbot"), [4, 0, 2, 0]);
    assert_eq!(crawler(&kept, "ahrefsbot")["part"], "does_not_count");
    assert_eq!(
        not_counted(&kept),
        [("older_copy", 2, "2026-11-10T12:00:00Z")]
    );
    // Before the first known file, and as long as crawlers may have used an unknown one, nothing is
    // proven.
    let late = case.json(&["--robots", "robots.txt@2026-11-03T12:00:00Z", "access.log"]);
    assert_eq!(numbers(&late, "bingbot"), [4, 1, 0, 3]);
    assert_eq!(
        not_counted(&late),
        [("not_observed", 3, "2026-11-04T12:00:00Z")]
    );
}

/// Requests that do not count: reason, number, and until when.
fn not_counted(report: &Value) -> Vec<(&str, u64, &str)> {
    let mut found = Vec::new();
    for part in report["not_counted"].as_array().expect("a list") {
        found.push((
            part["reason"].as_str().expect("an id"),
            part["requests"].as_u64().expect("a number"),
            part["until"].as_str().expect("a time"),
        ));
    }
    found
}

#[test]
fn an_older_copy_is_obedience_once_the_log_outlives_it() {
    let lines = [
        line("03/Nov/2026:13:00:00 +0000", "/cart/", BINGBOT),
        line("12/Nov/2026:13:00:00 +0000", "/cart/", BINGBOT),
        line("12/Nov/2026:14:00:00 +0000", "/", BROWSER),
    ];
    let case = Case::new(&[
        ("access.log", lines.concat().as_bytes()),
        ("open.txt", b"User-agent: *\nDisallow: /x\n"),
    ]);
    let report = case.json(&[
        "--robots",
        "open.txt",
        "--robots",
        "robots.txt@2026-11-03T12:00:00Z",
        "--robots",
        "open.txt@2026-11-10",
        "--robots",
        "robots.txt@2026-11-12T12:00:00Z",
        "access.log",
    ]);
    assert_eq!(numbers(&report, "bingbot"), [2, 0, 1, 0]);
    assert_eq!(count(crawler(&report, "bingbot"), "allowed"), 1);
    assert_eq!(
        not_counted(&report),
        [("older_copy", 1, "2026-11-13T12:00:00Z")]
    );
    let periods = report["periods"].as_array().expect("a list");
    assert_eq!(periods.len(), 10);
    let numbers = [("obeyed", 0), ("not_counted", 9)].map(|(name, day)| periods[day][name].clone());
    assert_eq!(numbers, [1, 1].map(Value::from));
}

#[test]
fn a_rule_of_two_files_is_one_row_with_both_places() {
    let lines = [
        line("01/Nov/2026:12:00:00 +0000", "/cart/", BINGBOT),
        line("09/Nov/2026:12:00:00 +0000", "/cart/", BINGBOT),
    ];
    let new = "# moved\n\nUser-agent: *\nDisallow: /cart/\n";
    let case = Case::new(&[
        ("access.log", lines.concat().as_bytes()),
        ("old.txt", b"User-agent: *\nDisallow: /cart/\n"),
        ("new.txt", new.as_bytes()),
    ]);
    let report = case.json(&[
        "--robots",
        "old.txt",
        "--robots",
        "new.txt@2026-11-03",
        "access.log",
    ]);
    assert_eq!(
        report["rules"],
        json!([{"pattern": "/cart/", "count": 2, "place": "old.txt:2, new.txt:4"}])
    );
}

/// The chart of all crawlers, before those of single ones.
fn first_chart(page: &str) -> &str {
    let chart = page.split_once("<svg").expect("a chart").1;
    chart.split_once("</svg>").expect("its end").0
}

#[test]
fn many_days_are_shown_by_week() {
    let day = |day: i64| Timestamp(1_767_225_600 + day * 86_400).to_string();
    let request = |number: i64| {
        format!(
            "{}\n",
            json!({"time": day(number), "target": "/cart/", "user_agent": BINGBOT})
        )
    };
    let log: String = (0..150).map(request).collect();
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "--html", "out.html", "access.log"]);
    let weeks = report["periods"].as_array().expect("a list");
    // From Thursday on; weeks begin on Monday.
    let in_week = [0, 1, 21].map(|week| weeks[week]["against_rules"].clone());
    assert_eq!((weeks.len(), in_week), (22, [4, 7, 6].map(Value::from)));
    let page = fs::read_to_string(case.0.path().join("out.html")).expect("the page");
    assert_eq!(first_chart(&page).matches("<rect").count(), 22);
}

#[test]
fn logs_of_other_servers_and_packed_ones_give_the_same_report() {
    let times = ["2026-11-22T10:00:00Z", "2026-11-23T10:00:00Z"];
    let all = |form: &dyn Fn(&str, &str, &str) -> String| -> String {
        let targets = [
            ("/", GPTBOT),
            ("/cart/1", BINGBOT),
            ("/cart/help", BINGBOT),
            ("/", BROWSER),
        ];
        let of_time = |time: &&str| {
            targets
                .map(|(target, user_agent)| form(time, target, user_agent))
                .concat()
        };
        times.iter().map(of_time).collect()
    };
    let clf = |time: &str| format!("{}/Nov/2026:10:00:00 +0000", &time[8..10]);
    let combined = all(&|time, target, user_agent| line(&clf(time), target, user_agent));
    let hosted = all(&|time, target, user_agent| {
        format!("shop.example:443 {}", line(&clf(time), target, user_agent))
    });
    let own = all(&|time, target, user_agent| {
        let request = json!({"time": time, "method": "GET", "host": "shop.example", "target": target, "status": 200, "bytes": 1000, "user_agent": user_agent});
        format!("{request}\n")
    });
    let caddy = all(&|time, target, user_agent| {
        let request = json!({"method": "GET", "host": "shop.example", "uri": target, "headers": {"User-Agent": [user_agent]}});
        format!(
            "{}\n",
            json!({"ts": time, "request": request, "status": 200, "size": 1000})
        )
    });
    let traefik = all(&|time, target, user_agent| {
        let request = json!({"time": time, "RequestMethod": "GET", "RequestHost": "shop.example", "RequestPath": target, "DownstreamStatus": 200, "DownstreamContentSize": 1000, "request_User-Agent": user_agent});
        format!("{request}\n")
    });
    let nginx = all(&|time, target, user_agent| {
        let request = json!({"time_iso8601": time, "request": format!("GET {target} HTTP/1.1"), "status": "200", "body_bytes_sent": "1000", "http_user_agent": user_agent});
        format!("{request}\n")
    });
    let case = Case::new(&[]);
    let expected = {
        case.write("combined", combined.as_bytes());
        case.json(&["--robots", "robots.txt", "combined"])["crawlers"].clone()
    };
    assert_eq!(count(&expected[0], "violation"), 2, "{expected}");
    for (name, log) in [
        ("hosted", hosted),
        ("own", own),
        ("caddy", caddy),
        ("traefik", traefik),
        ("nginx", nginx),
    ] {
        case.write(name, log.as_bytes());
        let crawlers = case.json(&["--robots", "robots.txt", name])["crawlers"].to_string();
        // Not each of them has the host, for the URLs against the rules.
        let crawlers = crawlers.replace(":443/", "/").replace("shop.example/", "/");
        assert_eq!(crawlers, expected.to_string(), "{name}");
    }

    let format = "$request_method|$uri|$msec|$status|$body_bytes_sent|$http_user_agent";
    let custom = all(&|time, target, user_agent| {
        let seconds = if time == times[0] {
            1_795_341_600
        } else {
            1_795_428_000
        };
        format!("GET|{target}|{seconds}.125|200|1000|{user_agent}\n")
    });
    case.write("custom", custom.as_bytes());
    assert_eq!(
        case.json(&["--robots", "robots.txt", "--log-format", format, "custom"])["crawlers"],
        expected
    );
    assert_eq!(
        case.run(&[
            "--robots",
            "robots.txt",
            "--log-format",
            "$request",
            "custom"
        ])
        .status
        .code(),
        Some(2)
    );

    // A rotated set in the wrong order: one day plain, one packed.
    let (first, second) = combined.split_at(combined.len() / 2);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(first.as_bytes()).expect("room");
    case.write("access.log.1.gz", &packed.finish().expect("gzip"));
    case.write("access.log", second.as_bytes());
    assert_eq!(
        case.json(&["--robots", "robots.txt", "access.log", "access.log.1.gz"])["crawlers"],
        expected
    );
    case.write(
        "packed",
        &zstd::encode_all(combined.as_bytes(), 3).expect("zstd"),
    );
    assert_eq!(
        case.json(&["--robots", "robots.txt", "packed"])["crawlers"],
        expected
    );
    let piped = case.run_with(
        &["--robots", "robots.txt", "--json", "-"],
        combined.as_bytes(),
    );
    let piped: Value = serde_json::from_slice(&piped.stdout).expect("JSON");
    assert_eq!(piped["crawlers"], expected);
}

#[test]
fn policies_judge_each_host_by_its_own_rules() {
    const AT: &str = "22/Nov/2026:10:00:00 +0000";
    let hosted = |host: &str, target: &str| format!("{host} {}", line(AT, target, BINGBOT));
    let lines = [
        hosted("shop.example", "/cart/"),
        hosted("blog.example:443", "/cart/"),
        hosted("x.example", "/cart/"),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    fs::create_dir(case.0.path().join("policies")).expect("a directory");
    let policy = |host: &str, path: &str| {
        format!(
            "hosts: [{host}]\nrobots:\n  origin: replace\n  groups:\n    - agents: \"*\"\n      disallow: {path}\n"
        )
    };
    case.write(
        "policies/shop.yaml",
        policy("shop.example", "/cart/").as_bytes(),
    );
    case.write(
        "policies/blog.yaml",
        policy("blog.example", "/drafts/").as_bytes(),
    );
    let report = case.json(&["--policies", "policies", "access.log"]);
    assert_eq!(report["source"], "logs_by_policies");
    assert_eq!(numbers(&report, "bingbot"), [2, 1, 0, 0]);
    assert_eq!(
        crawler(&report, "bingbot")["rules"][0]["place"],
        "policies/shop.yaml:6:17"
    );
    assert_eq!(
        (&report["log"]["other_hosts"], &report["urls"][0]["name"]),
        (&json!(1), &json!("shop.example/cart/"))
    );
    let one = case.json(&[
        "--policies",
        "policies",
        "--host",
        "Blog.example",
        "access.log",
    ]);
    assert_eq!(
        (numbers(&one, "bingbot"), &one["log"]["other_hosts"]),
        ([1, 0, 0, 0], &json!(2))
    );
    case.write("policies/blog.yaml", b"hots: [blog.example]\n");
    assert_eq!(
        case.run(&["--policies", "policies", "access.log"])
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn exit_codes_differ_for_findings_usage_and_failures() {
    let at = "22/Nov/2026:10:00:00 +0000";
    let case = Case::new(&[
        ("bad.log", line(at, "/", GPTBOT).as_bytes()),
        ("good.log", line(at, "/", BINGBOT).as_bytes()),
        ("empty.log", b""),
        ("binary.log", &[0xff; 3_000]),
        ("sitemap.xml", b"<?xml version=\"1.0\"?>\n<urlset/>\n"),
        (
            "common.log",
            b"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n",
        ),
    ]);
    for (arguments, code) in [
        (&["--robots", "robots.txt", "bad.log"][..], 0),
        (
            &[
                "--robots",
                "robots.txt",
                "--fail-on",
                "violation",
                "bad.log",
            ],
            1,
        ),
        (
            &[
                "--robots",
                "robots.txt@2026-11-22",
                "--fail-on",
                "violation",
                "bad.log",
            ],
            0,
        ),
        (
            &[
                "--robots",
                "robots.txt@2026-11-22",
                "--fail-on",
                "disallowed",
                "bad.log",
            ],
            1,
        ),
        (
            &[
                "--robots",
                "robots.txt",
                "--fail-on",
                "violation",
                "good.log",
            ],
            0,
        ),
        (&["--robots", "robots.txt", "empty.log"], 0),
        (&["--robots", "robots.txt", "common.log"], 3),
        (&["--robots", "robots.txt", "bad.log", "common.log"], 3),
        (&["--robots", "sitemap.xml", "bad.log"], 3),
        (&["--robots", "bad.log", "bad.log"], 3),
        (
            &[
                "--robots",
                "robots.txt",
                "--compare",
                "robots.txt",
                "bad.log",
            ],
            3,
        ),
        (&["bad.log"], 2),
        (&["--robots", "robots.txt"], 2),
        (&["--robots", "robots.txt@soon", "bad.log"], 2),
        (
            &[
                "--robots",
                "robots.txt",
                "--robots",
                "robots.txt",
                "bad.log",
            ],
            2,
        ),
        (&["--robots", "robots.txt", "--policies", ".", "bad.log"], 2),
        (&["--policies", "robots.txt", "bad.log"], 3),
        (&["--robots", "robots.txt", "no.log"], 3),
        (&["--robots", "robots.txt", "."], 3),
        (&["--robots", "no.txt", "bad.log"], 3),
        (&["--robots", "robots.txt", "binary.log"], 3),
    ] {
        let output = case.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            !output.stderr.contains(&0x1b),
            "no progress outside of a terminal"
        );
    }
    let output = case.run(&["--robots", "robots.txt", "common.log", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["log"]["no_user_agent"], 1);
}

#[test]
fn a_log_that_breaks_off_is_read_up_to_there() {
    let lines: String = (0..20_000)
        .map(|number| line("22/Nov/2026:10:00:00 +0000", &format!("/{number}"), GPTBOT))
        .collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(lines.as_bytes()).expect("room");
    let packed = packed.finish().expect("gzip");
    let case = Case::new(&[
        ("cut.gz", &packed[..packed.len() / 2]),
        ("b.bz2", b"BZh91AY"),
    ]);
    let output = case.run(&["--robots", "robots.txt", "--json", "cut.gz"]);
    assert_eq!(output.status.code(), Some(3), "the report is not whole");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["log"]["damaged"][0]["file"], "cut.gz");
    let requests = numbers(&report, "gptbot")[0];
    assert!(requests > 1_000 && requests < 19_000, "{requests}");
    assert_eq!(
        case.run(&["--robots", "robots.txt", "b.bz2"]).status.code(),
        Some(3)
    );
    // Each URL is another one: the list is bounded, and leaves out what it cannot vouch for.
    let whole = Case::new(&[("access.log", lines.as_bytes())]).json(&[
        "--robots",
        "robots.txt",
        "access.log",
    ]);
    assert_eq!(numbers(&whole, "gptbot")[1], 20_000);
    assert!(
        whole["urls"]
            .as_array()
            .is_some_and(|urls| urls.len() <= 20)
    );
}

#[test]
fn a_packed_log_that_is_cut_or_damaged_anywhere_is_an_error() {
    let log = line("22/Nov/2026:10:00:00 +0000", "/a", GPTBOT);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(log.as_bytes()).expect("room");
    let gzip = gzip.finish().expect("gzip");
    let zstd = zstd::encode_all(log.as_bytes(), 3).expect("zstd");
    let case = Case::new(&[
        ("whole.gz", &gzip),
        ("whole.zst", &zstd),
        ("plain.gz", log.as_bytes()),
    ]);
    for (name, code) in [("whole.gz", 0), ("whole.zst", 0), ("plain.gz", 0)] {
        assert_eq!(
            case.run(&["--robots", "robots.txt", name]).status.code(),
            Some(code),
            "{name}"
        );
    }
    let damaged = |name: &str, content: &[u8], what: &str| {
        case.write(name, content);
        let output = case.run(&["--robots", "robots.txt", "--html", "out.html", name]);
        let (text, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(output.status.code(), Some(3), "{what}: {text}{error}");
        let page = fs::read_to_string(case.0.path().join("out.html")).expect("the page");
        for said in [&text, &error, &page.into()] {
            assert!(said.contains(name), "{what}: {said}");
        }
    };
    for (name, packed) in [("a.gz", &gzip), ("a.zst", &zstd)] {
        for length in [
            0,
            1,
            2,
            3,
            5,
            9,
            12,
            20,
            packed.len() / 2,
            packed.len() - 5,
            packed.len() - 1,
        ] {
            damaged(name, &packed[..length], &format!("{name} cut to {length}"));
        }
        let mut other = packed.clone();
        other[0] ^= 0xff;
        damaged(name, &other, &format!("{name} with another beginning"));
    }
    let mut wrong = gzip.clone();
    let crc = wrong.len() - 6;
    wrong[crc] ^= 1;
    damaged("a.gz", &wrong, "a wrong checksum");
}

#[test]
fn no_control_or_direction_character_of_a_log_is_printed() {
    const HIDDEN: [char; 7] = [
        '\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}', '\u{2028}', '\u{61c}',
    ];
    let hidden: String = HIDDEN.iter().collect();
    let lines = [
        line(
            "22/Nov/2026:10:00:00 +0000",
            &format!("/a{hidden}b"),
            GPTBOT,
        ),
        line(
            "22/Nov/2026:10:00:00 +0000",
            "/",
            &format!("Foo{hidden}Bot/1.0 (+https://foo.example)"),
        ),
        format!("no line {hidden}\n"),
    ];
    let robots = format!("User-agent: *\nDisallow: /*{hidden}\nUser-agent: GPTBot\nDisallow: /\n");
    let case = Case::new(&[
        ("access.log", lines.concat().as_bytes()),
        ("odd.txt", robots.as_bytes()),
    ]);
    for arguments in [&["--html", "out.html"][..], &["--table"], &["--json"]] {
        let output = case.run(&[arguments, &["--robots", "odd.txt", "access.log"]].concat());
        let page = fs::read_to_string(case.0.path().join("out.html")).expect("the page");
        for text in [String::from_utf8(output.stdout).expect("UTF-8"), page] {
            assert!(text.contains("/a\u{fffd}"), "{text}");
            assert!(!text.contains(HIDDEN), "{text}");
        }
    }
}

/// A line of a client.
fn line_of(client: &str, target: &str, user_agent: &str) -> String {
    line("22/Nov/2026:10:00:00 +0000", target, user_agent).replacen("192.0.2.7", client, 1)
}

/// Of a crawler: identity, requests and violations of each row, in the order of identities.
fn by_identity(report: &Value, id: &str) -> Vec<(&'static str, u64, u64)> {
    let rows = report["crawlers"].as_array().expect("a list").iter();
    let rows: Vec<&Value> = rows.filter(|row| row["id"] == id).collect();
    let mut found = Vec::new();
    for identity in ["verified", "unverified", "suspected_impostor", "none"] {
        let mut rows = rows.iter();
        if let Some(row) = rows.find(|row| row["identity"].as_str().unwrap_or("none") == identity) {
            found.push((identity, count(row, "requests"), count(row, "violation")));
        }
    }
    assert_eq!(found.len(), rows.len(), "{rows:?}");
    found
}

#[test]
fn an_impostor_is_never_charged_to_the_real_crawler() {
    let lines = [
        line_of("198.51.100.7", "/robots.txt", GPTBOT).repeat(30),
        line_of("203.0.113.9", "/a", GPTBOT).repeat(662),
        line_of("203.0.113.9", "/robots.txt", GPTBOT).repeat(279),
        line_of("203.0.113.9", "/cart/", AHREFS).repeat(5),
        line_of("203.0.113.9", "/cart/", "FooBot/1.0 (+https://foo.example)").repeat(4),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    fs::create_dir_all(case.0.path().join("lists/openai.com")).expect("a directory");
    case.write(
        "lists/openai.com/gptbot.json",
        br#"{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}"#,
    );
    let arguments = ["--robots", "robots.txt", "--lists", "lists", "access.log"];
    let report = case.json(&arguments);
    assert_eq!(
        by_identity(&report, "gptbot"),
        [("verified", 30, 0), ("suspected_impostor", 941, 662)]
    );
    assert_eq!(by_identity(&report, "other"), [("none", 4, 4)]);
    let parts = |report: &Value| -> Vec<(String, Value)> {
        let rows = report["crawlers"].as_array().expect("a list").iter();
        rows.map(|row| {
            (
                row["id"].as_str().expect("an id").to_owned(),
                row["part"].clone(),
            )
        })
        .collect()
    };
    // Those that are not verified, those that claim no name, impostors, and the crawler itself.
    let rows = ["ahrefsbot", "other", "gptbot", "gptbot"].map(str::to_owned);
    let part_of_rows = ["breaks_rules", "breaks_rules", "pretends", "obeys"].map(Value::from);
    let expected: Vec<(String, Value)> = rows.into_iter().zip(part_of_rows).collect();
    assert_eq!(parts(&report), expected);
    let totals =
        ["requests", "against_rules", "pretended"].map(|name| report["totals"][name].clone());
    assert_eq!(totals, [39, 9, 941].map(Value::from));
    let day = ["against_rules", "pretended"].map(|name| report["periods"][0][name].clone());
    assert_eq!(day, [9, 941].map(Value::from));

    case.json(&[&arguments[..], &["--html", "out.html"]].concat());
    let page = fs::read_to_string(case.0.path().join("out.html")).expect("the page");
    let list = page
        .split("class=\"cards list\"")
        .nth(1)
        .and_then(|list| list.split("</table>").next())
        .expect("the list of those that break the rules");
    assert!(
        list.contains("AhrefsBot") && !list.contains("GPTBot"),
        "{list}"
    );
    let failed = case.run(&[&arguments[..], &["--fail-on", "violation"]].concat());
    assert_eq!(failed.status.code(), Some(1));
    let error = String::from_utf8_lossy(&failed.stderr);
    // Those of a pretender do not count.
    assert!(error.contains("9 requests"), "{error}");

    // Without lists everything is a claim.
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    assert_eq!(by_identity(&report, "gptbot"), [("unverified", 971, 662)]);
}

#[test]
fn pretender_is_shown_with_its_most_frequent_addresses() {
    let mut log = line_of("198.51.100.7", "/a", GPTBOT).repeat(9);
    for number in 1..=6 {
        log += &line_of(&format!("203.0.113.{number}"), "/a", GPTBOT).repeat(number);
    }
    let case = Case::new(&[("access.log", log.as_bytes())]);
    write_gptbot_list(&case);
    let arguments = ["--robots", "robots.txt", "--lists", "lists", "access.log"];
    let report = case.json(&arguments);
    let rows = report["crawlers"].as_array().expect("a list");
    let mut shown = Vec::new();
    for row in rows {
        for address in row["addresses"].as_array().expect("a list") {
            shown.push((
                row["identity"].clone(),
                address["name"].clone(),
                address["count"].clone(),
            ));
        }
    }
    let expected = [6, 5, 4, 3, 2].map(|number: u64| {
        (
            "suspected_impostor".into(),
            format!("203.0.113.{number}").into(),
            number.into(),
        )
    });
    assert_eq!(shown, expected);

    let output = case.run(&[&arguments[..], &["--html", "out.html"]].concat());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = fs::read_to_string(case.0.path().join("out.html")).expect("the page");
    let output = case.run(&[&arguments[..], &["--markdown"]].concat());
    let markdown = String::from_utf8(output.stdout).expect("UTF-8");
    for shown in [text, page, markdown] {
        assert!(
            shown.contains("(6 from 203.0.113.6, 5 from 203.0.113.5, 4 from 203.0.113.4)"),
            "{shown}"
        );
    }
    for (options, addresses) in [
        (&["--top", "6", "--markdown"][..], 6),
        (&["--csv"], 6),
        (&["--csv", "--top", "1"], 1),
        (&["--csv", "--no-addresses"], 0),
    ] {
        let output = case.run(&[&arguments[..], options].concat());
        let shown = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(shown.matches("203.0.113.").count(), addresses, "{shown}");
    }
}

/// A list with the network of GPTBot.
fn write_gptbot_list(case: &Case) {
    fs::create_dir_all(case.0.path().join("lists/openai.com")).expect("a directory");
    case.write(
        "lists/openai.com/gptbot.json",
        br#"{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}"#,
    );
}

#[test]
fn misspelt_rules_are_cautioned_about() {
    let log = line_of("192.0.2.7", "/a/", BINGBOT);
    let case = Case::new(&[("access.log", log.as_bytes())]);
    for (rules, number, name) in [
        (
            "User-agent: *\nDisallow /a/\nDisalow: /b/\n",
            1,
            "2 misspelt lines: the first is line 2 (Disallow /a/)",
        ),
        (
            "Useragent: *\nDisallow: /a/\n",
            1,
            "1 misspelt line: line 1 (Useragent: *)",
        ),
        (
            "User-agent: *\nDisallow: /a/\nSitemap https://shop.example/s.xml\n",
            0,
            "",
        ),
    ] {
        case.write("rules.txt", rules.as_bytes());
        let arguments = ["--robots", "rules.txt", "access.log"];
        let report = case.json(&arguments);
        assert_eq!(numbers(&report, "bingbot")[1], 1, "{rules}");
        let cautions = report["log"]["cautions"].as_array().expect("a list");
        assert_eq!(cautions.len(), number, "{rules}");
        let text = String::from_utf8(case.run(&arguments).stdout).expect("UTF-8");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let before = text.split("Break the rules").next().unwrap_or_default();
        assert!(before.contains(name), "{text}");
    }
}

#[test]
fn one_undated_robots_txt_for_a_long_log_is_mentioned() {
    let first = line("22/Nov/2026:10:00:00 +0000", "/", GPTBOT);
    let later = line("24/Nov/2026:10:00:00 +0000", "/", GPTBOT);
    let case = Case::new(&[
        ("short.log", first.as_bytes()),
        ("long.log", [first.as_str(), &later].concat().as_bytes()),
    ]);
    for (rules, log, is_said) in [
        ("robots.txt", "long.log", true),
        ("robots.txt", "short.log", false),
        ("robots.txt@2026-11-20", "long.log", false),
    ] {
        let output = case.run(&["--robots", rules, log]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(text.contains("FILE@TIME"), is_said, "{text}");
    }
}

#[test]
fn mostly_suspected_requests_are_cautioned_about_first() {
    for (number, is_said) in [(3, true), (1, false)] {
        let log = line_of("203.0.113.9", "/a", GPTBOT).repeat(number)
            + &line_of("203.0.113.9", "/a", BINGBOT).repeat(2);
        let case = Case::new(&[("access.log", log.as_bytes())]);
        write_gptbot_list(&case);
        let arguments = ["--robots", "robots.txt", "--lists", "lists", "access.log"];
        let text = String::from_utf8(case.run(&arguments).stdout).expect("UTF-8");
        let head = text.split("\n\n").next().unwrap_or_default();
        let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(head.contains("of a proxy"), is_said, "{text}");
    }
}

#[test]
fn misspelt_crawler_of_an_option_gets_a_suggestion() {
    let case = Case::new(&[("access.log", b"")]);
    let output = case.run(&[
        "--robots",
        "robots.txt",
        "--crawler",
        "Gogelbot",
        "access.log",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("Googlebot?"), "{error}");
}

#[test]
fn shortened_addresses_are_suspected_of_nothing() {
    for (number, is_said) in [(2, true), (1, false)] {
        let mut log = line_of("203.0.113.9", "/a", GPTBOT);
        for _ in 0..number {
            log += &line_of("203.0.113.0", "/a", GPTBOT);
        }
        let case = Case::new(&[("access.log", log.as_bytes())]);
        write_gptbot_list(&case);
        let arguments = ["--robots", "robots.txt", "--lists", "lists", "access.log"];
        let report = case.json(&arguments);
        let expected = [("unverified", number, number), ("suspected_impostor", 1, 1)];
        assert_eq!(by_identity(&report, "gptbot"), expected);
        assert_eq!(report["log"]["shortened_addresses"], number);
        let text = String::from_utf8(case.run(&arguments).stdout).expect("UTF-8");
        assert_eq!(text.contains("seem shortened"), is_said, "{text}");
    }
}

#[test]
fn networks_of_a_policy_verify_and_raise_a_suspicion() {
    const PARTNER: &str = "PartnerBot/1.0";
    let lines = [
        line_of("10.20.0.1", "/a", PARTNER),
        line_of("203.0.113.9", "/a", PARTNER).repeat(2),
        line_of("10.9.0.1", "/a", PARTNER).repeat(3),
        line_of("2001:db8::1", "/a", PARTNER).repeat(4),
        line_of("192.0.2.7", "/a", GPTBOT),
        line_of("198.51.100.7", "/a", GPTBOT).repeat(2),
        line_of("203.0.113.9", "/a", GPTBOT).repeat(3),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    fs::create_dir_all(case.0.path().join("lists/openai.com")).expect("a directory");
    case.write(
        "lists/openai.com/gptbot.json",
        br#"{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}"#,
    );
    let policy = "hosts: [shop.example]\nrobots:\n  origin: replace\n  groups:\n    - agents: \"*\"\n      disallow: /a\n\
                  crawlers:\n  - { token: PartnerBot, networks: [10.20.0.0/16] }\n  - { token: GPTBot, networks: [192.0.2.0/24] }\n";
    fs::create_dir(case.0.path().join("policies")).expect("a directory");
    case.write("policies/shop.yaml", policy.as_bytes());

    let report = case.json(&["--policies", "policies", "access.log"]);
    let partner = [
        ("verified", 1, 1),
        ("unverified", 7, 7),
        ("suspected_impostor", 2, 2),
    ];
    assert_eq!(by_identity(&report, "PartnerBot"), partner, "{report}");
    assert_eq!(
        by_identity(&report, "gptbot"),
        [("verified", 1, 1), ("suspected_impostor", 5, 5)]
    );
    assert_eq!(report["log"]["policy_networks"], true);

    // Either verifies: an address of the operator is not suspected because the policy does not list
    // it.
    let report = case.json(&["--policies", "policies", "--lists", "lists", "access.log"]);
    assert_eq!(by_identity(&report, "PartnerBot"), partner);
    assert_eq!(
        by_identity(&report, "gptbot"),
        [("verified", 3, 3), ("suspected_impostor", 3, 3)]
    );
}

#[test]
fn requests_from_outside_of_published_networks_are_suspected() {
    let lines = [
        line_of("198.51.100.7", "/robots.txt", GPTBOT),
        line_of("203.0.113.9", "/a", GPTBOT),
        line_of("203.0.113.9", "/robots.txt", GPTBOT),
        line_of("2001:db8::1", "/a", GPTBOT),
        line_of("10.0.0.1", "/a", GPTBOT),
        line_of("crawl.example", "/a", GPTBOT),
        // Shortened by the log.
        line_of("203.0.113.0", "/a", GPTBOT),
        line_of("203.0.113.9", "/", AHREFS),
        line_of("203.0.113.9", "/", "curl/8.0"),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    fs::create_dir_all(case.0.path().join("lists/openai.com")).expect("a directory");
    let arguments = ["--robots", "robots.txt", "--lists", "lists", "access.log"];
    let none = case.run(&arguments);
    assert_eq!(none.status.code(), Some(3), "a directory without lists");
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("DIR/openai.com/gptbot.json"),
        "{none:?}"
    );

    case.write(
        "lists/openai.com/gptbot.json",
        br#"{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}"#,
    );
    let report = case.json(&arguments);
    assert_eq!(
        by_identity(&report, "gptbot"),
        [
            ("verified", 1, 0),
            ("unverified", 4, 4),
            ("suspected_impostor", 2, 1)
        ]
    );
    // Its list is not at hand.
    assert_eq!(by_identity(&report, "ahrefsbot"), [("unverified", 1, 0)]);
    assert_eq!(report["log"]["lists"]["known"], 1);

    // A list that was last changed eight days ago accuses no client.
    let list = fs::File::options()
        .append(true)
        .open(case.0.path().join("lists/openai.com/gptbot.json"))
        .expect("it");
    list.set_modified(SystemTime::now() - Duration::from_secs(8 * 86_400))
        .expect("a time");
    let report = case.json(&arguments);
    assert_eq!(
        by_identity(&report, "gptbot"),
        [("verified", 1, 0), ("unverified", 6, 5)]
    );
    assert_eq!(
        (
            &report["log"]["lists"]["known"],
            &report["log"]["lists"]["fresh"]
        ),
        (&json!(1), &json!(0))
    );

    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    assert_eq!(by_identity(&report, "gptbot"), [("unverified", 7, 5)]);
    assert_eq!(report["log"]["lists"], Value::Null);
}

/// Three lines of the real Googlebot and two of an impostor, with the client in place of `CLIENT`
/// in `form`.
fn googlebot_lines(form: &str) -> String {
    const GOOGLEBOT: &str =
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    let lines = [("66.249.66.1", 3), ("203.0.113.9", 2)].map(|(client, number)| {
        line_of(&form.replace("CLIENT", client), "/cart/", GOOGLEBOT).repeat(number)
    });
    lines.concat()
}

/// A case with Google's list.
fn googlebot_case(log: &str) -> Case {
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let path = "lists/developers.google.com/static/crawling/ipranges";
    fs::create_dir_all(case.0.path().join(path)).expect("a directory");
    let list = br#"{"prefixes": [{"ipv4Prefix": "66.249.64.0/19"}]}"#;
    case.write(&format!("{path}/common-crawlers.json"), list);
    case
}

#[test]
fn address_list_without_trusted_proxies_accuses_no_crawler() {
    let known = [("verified", 3, 3), ("suspected_impostor", 2, 2)];
    let nobody = [("unverified", 5, 5)];
    let proxy = [("suspected_impostor", 5, 5)];
    for (form, untrusting, trusting) in [
        ("CLIENT", &known[..], &known[..]),
        ("CLIENT:4711", &known, &known),
        ("CLIENT, 104.16.1.1", &nobody, &known),
        ("\"CLIENT, 104.16.1.1\"", &nobody, &known),
        ("104.16.1.1", &proxy, &nobody),
        ("CLIENT 104.16.1.1", &nobody, &known),
    ] {
        let case = googlebot_case(&googlebot_lines(form));
        let arguments = ["--robots", "robots.txt", "--lists", "lists", "access.log"];
        let report = case.json(&arguments);
        assert_eq!(by_identity(&report, "googlebot"), untrusting, "{form}");
        let trusted = [&arguments[..], &["--trusted-proxy", "104.16.0.0/13"]].concat();
        // The report names the option, until it is set.
        let forwarded = if untrusting == nobody { 5 } else { 0 };
        assert_eq!(report["log"]["no_address"], forwarded, "{form}");
        let output = case.run(&arguments);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(text.contains("--trusted-proxy"), forwarded > 0, "{text}");
        assert_eq!(case.json(&trusted)["log"]["no_address"], 0, "{form}");
        assert_eq!(
            by_identity(&case.json(&trusted), "googlebot"),
            trusting,
            "{form}"
        );
    }
}

#[test]
fn a_prefix_changes_neither_identity_nor_host_nor_exit_code() {
    for (prefix, host) in [
        ("", "shop.example:443 "),
        ("2026-11-22T10:00:00.1Z stdout F ", "shop.example:443 "),
        ("Nov 22 10:00:00 web1 nginx: ", "shop.example:443 "),
        ("web-1  | ", "shop.example:443 "),
        ("web1 ", ""),
        ("2026-11-22T11:00:00+01:00 web1 ", ""),
    ] {
        let lines = googlebot_lines(&format!("{prefix}{host}CLIENT"));
        let start = if host.is_empty() { "" } else { prefix };
        let case = googlebot_case(&format!(
            "{lines}{start}2026/11/22 10:00:00 [notice] 1#1: start\n"
        ));
        let arguments = [
            "--robots",
            "robots.txt",
            "--lists",
            "lists",
            "--host",
            "shop.example",
            "access.log",
        ];
        let report = case.json(&arguments);
        assert_eq!(
            by_identity(&report, "googlebot"),
            [("verified", 3, 3), ("suspected_impostor", 2, 2)],
            "{prefix}"
        );
        let numbers = ["lines", "unreadable", "server_messages", "other_hosts"]
            .map(|name| report["log"][name].clone());
        assert_eq!(numbers, [6, 0, 1, 0].map(Value::from), "{prefix}");
        let failed = case.run(&[&arguments[..], &["--fail-on", "violation"]].concat());
        assert_eq!(failed.status.code(), Some(1), "{prefix}");
    }
}

#[test]
fn lines_that_are_lost_are_counted_and_fail() {
    const AT: &str = "22/Nov/2026:10:00:00 +0000";
    let (good, bad) = (line(AT, "/", BINGBOT), "what is this\n");
    let hosted = format!("shop.example {good}");
    let case = Case::new(&[
        (
            "one.log",
            [good.repeat(9), bad.to_owned()].concat().as_bytes(),
        ),
        (
            "two.log",
            [good.repeat(8), bad.repeat(2)].concat().as_bytes(),
        ),
        ("start.log", b"2026/11/22 10:00:00 [notice] 1#1: start\n"),
        (
            "found.log",
            [line(AT, "/cart/", BINGBOT).repeat(9), bad.to_owned()]
                .concat()
                .as_bytes(),
        ),
        ("hosted.log", hosted.as_bytes()),
        (
            "common.log",
            b"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n",
        ),
        ("good.log", good.as_bytes()),
        (
            "swapped.log",
            line(AT, "/cart/", "-")
                .replacen("\"-\"", "\"GB\"", 1)
                .as_bytes(),
        ),
        (
            "extra.log",
            line(AT, "/cart/", "-")
                .replace('\n', " \"GB\"\n")
                .as_bytes(),
        ),
        (
            "json.log",
            b"{\"time\":\"2026-11-22T10:00:00Z\",\"target\":\"/\",\"ua\":\"GPTBot/1.2\"}\n",
        ),
    ]);
    fs::create_dir(case.0.path().join("policies")).expect("a directory");
    for host in ["shop.example", "blog.example"] {
        let policy = format!("hosts: [{host}]\nrobots:\n  origin: replace\n");
        case.write(&format!("policies/{host}.yaml"), policy.as_bytes());
    }
    let shifted = "$remote_addr - - [$time_local] \"$request\" $status $bytes_sent \"$http_user_agent\" \"$x\"";
    for (arguments, code) in [
        (&["one.log"][..], 0),
        (&["two.log"], 3),
        (&["two.log", "--max-unreadable", "20%"], 0),
        (&["one.log", "--max-unreadable", "9.5%"], 3),
        (&["one.log", "--max-unreadable", "101%"], 2),
        (&["start.log"], 0),
        (&["start.log", "--fail-on", "violation"], 3),
        (&["json.log"], 3),
        (&["swapped.log"], 3),
        (&["good.log", "swapped.log"], 3),
        (&["extra.log"], 3),
        // A check passes only if no line was lost, unless that is said.
        (&["one.log", "--fail-on", "violation"], 3),
        (
            &[
                "one.log",
                "--fail-on",
                "violation",
                "--max-unreadable",
                "10%",
            ],
            0,
        ),
        (&["found.log", "--fail-on", "violation"], 1),
        (&["common.log"], 3),
        (&["common.log", "--fail-on", "violation"], 3),
        (
            &[
                "hosted.log",
                "--fail-on",
                "violation",
                "--host",
                "shop.example",
            ],
            0,
        ),
        (
            &[
                "hosted.log",
                "--fail-on",
                "violation",
                "--host",
                "shop.exmaple",
            ],
            3,
        ),
        (&["hosted.log", "--site", "shop.exmaple"], 3),
        // Off by one column: every user agent is the referer, which is empty.
        (&["good.log", "--log-format", shifted], 3),
    ] {
        let output = case.run(&[&["--robots", "robots.txt"], arguments].concat());
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let without_host = [
        "--policies",
        "policies",
        "good.log",
        "--fail-on",
        "violation",
    ];
    assert_eq!(case.run(&without_host).status.code(), Some(3));
    let policies = ["--policies", "policies", "hosted.log", "--site"];
    for (site, code) in [("shop.example", 0), ("shop.exmaple", 2)] {
        let output = case.run(&[&policies[..], &[site]].concat());
        assert_eq!(output.status.code(), Some(code), "{site}");
    }
    let report = case.json(&["--robots", "robots.txt", "one.log"]);
    assert_eq!(
        report["log"]["unreadable_reasons"],
        json!({"other_format": 1})
    );
}

#[test]
fn absent_crawler_or_quiet_time_of_the_site_is_no_failure() {
    let shop = line("22/Nov/2026:10:00:00 +0000", "/", BINGBOT);
    let blog = line("24/Nov/2026:10:00:00 +0000", "/", BINGBOT);
    let log = format!("shop.example {shop}blog.example {blog}");
    let case = Case::new(&[("hosts.log", log.as_bytes())]);
    let site = ["--robots", "robots.txt", "hosts.log", "--site"];
    for (narrowed, code) in [
        (["shop.example", "--crawler", "gptbot"], 0),
        (["shop.example", "--since", "2026-11-23"], 0),
        (["shop.exmaple", "--crawler", "gptbot"], 3),
        (["shop.exmaple", "--since", "2026-11-23"], 3),
        (["www.shop.example", "--top", "9"], 3),
    ] {
        let output = case.run(&[&site[..], &narrowed].concat());
        assert_eq!(output.status.code(), Some(code), "{narrowed:?}: {output:?}");
        // The headline names the hosts of the log, if none is that of --site.
        let text = String::from_utf8_lossy(&output.stdout);
        let headline = text.split("\n\n").next().unwrap_or_default();
        assert_eq!(headline.contains("blog.example"), code == 3, "{text}");
        let is_near = narrowed[0].starts_with("www.");
        assert_eq!(headline.contains("shop.example?"), is_near, "{text}");
    }
    let later = [&site[..], &["shop.example", "--until", "2026-11-23"]].concat();
    let log = &case.json(&later)["log"];
    // The line of the other host is outside the period, too.
    assert_eq!(
        [&log["outside_period"], &log["other_hosts"]],
        [&json!(1), &json!(0)]
    );
}

#[test]
fn the_page_shows_the_numbers_and_escapes_the_log() {
    let lines = [
        line(
            "22/Nov/2026:10:00:00 +0000",
            "/<script>alert(1)</script>",
            GPTBOT,
        ),
        line("23/Nov/2026:10:00:00 +0000", "/", GPTBOT),
        line(
            "23/Nov/2026:10:00:00 +0000",
            "/",
            "<img>Bot/1.0 (+https://foo.example)",
        ),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    assert_eq!(
        case.run(&["--robots", "robots.txt", "--html", "out.html", "access.log"])
            .status
            .code(),
        Some(0)
    );
    let page = fs::read_to_string(case.0.path().join("out.html")).expect("the page");
    for part in [
        "<!doctype html>",
        "GPTBot",
        "/&#60;script&#62;",
        "<svg",
        "prefers-color-scheme",
        "default-src 'none'",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // One bar for each day, all of it against the rules; the unknown bot obeyed.
    let chart = first_chart(&page);
    assert_eq!(chart.matches("<rect class=\"bad\"").count(), 2);
    assert_eq!(chart.matches("<rect class=\"some\"").count(), 1);
    for forbidden in ["<script", "<img", "http://", "https://", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert_eq!(
        case.run(&[
            "--robots",
            "robots.txt",
            "--html",
            "access.log/out.html",
            "access.log"
        ])
        .status
        .code(),
        Some(3)
    );
}

#[test]
fn combined_log_of_crawlgate_itself_is_read_back() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings(
            "trusted_proxies: [127.0.0.1]\nlogs: { access: { to: access.log, format: combined } }\n\
             privacy: { logs: network }",
        )
        .start();
    let field = "X-Forwarded-For: 203.0.113.9\r\n";
    gate.get(
        "shop.example",
        "/cart/?q=%22",
        &format!("{field}User-Agent: {BINGBOT}\r\n"),
    );
    // A request is recorded after its answer was written: the next one may otherwise be the first
    // in the log.
    eventually("a line", || {
        (read(&gate.path("access.log")).lines().count() == 1).then_some(())
    });
    // What would end a field, and what is no ASCII.
    let odd = "GPTBot/1.2 \\x41 \" - [x] \u{202e}";
    gate.get(
        "shop.example",
        "/a\u{e9}",
        &format!("{field}User-Agent: {odd}\r\nReferer: http://\"\\\r\n"),
    );
    let log = eventually("two lines", || {
        let log = read(&gate.path("access.log"));
        (log.lines().count() == 2).then_some(log)
    });
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines[0].starts_with("203.0.113.0 - - [")
            && lines[0].contains("\"GET /cart/?q=%22 HTTP/1.1\" 200 5 \"-\"")
    );
    assert!(
        lines[1].contains(r#" "http://\x22\x5C" "GPTBot/1.2 \x5Cx41 \x22 - [x] \xE2\x80\xAE""#),
        "{log}"
    );
    assert!(lines[1].contains(r"GET /a\xC3\xA9 HTTP/1.1"), "{log}");
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let report = case.json(&["access.log", "--robots", "robots.txt"]);
    assert_eq!(
        (&report["log"]["lines"], &report["log"]["unreadable"]),
        (&json!(2), &json!(0)),
        "{report}"
    );
}

/// Lines of crawlers, browsers and tools with all kinds of statuses, sizes and referrers.
fn traffic_log() -> String {
    let agents = [
        GPTBOT, BROWSER, BINGBOT, BROWSER, "curl/8.0", AHREFS, BROWSER,
    ];
    let methods = ["GET", "GET", "GET", "POST", "GET", "HEAD"];
    let statuses = [200, 304, 206, 301, 404, 200, 503, 403, 101];
    let referers = [
        "-",
        "https://chatgpt.com/",
        "https://www.google.co.uk/search?q=a",
        "https://shop.example/",
        "https://google.evil.example/",
        "\\x22>garbage",
        "https://www.bing.com/",
        "https://chatgpt.com/c/\\x22",
    ];
    let targets = [
        "/p",
        "/p?utm_source=chatgpt.com",
        "/a.png",
        "/robots.txt",
        "/p.css?b",
    ];
    let mut log = String::new();
    for n in 0..20_160 {
        let target = targets[n / 7 % 5].replacen("/p", &format!("/p{}", n / 35 % 40), 1);
        log.push_str(&format!(
            "192.0.2.7 - - [{:02}/Nov/2026:10:00:00 +0000] \"{} {target} HTTP/1.1\" {} {} \"{}\" \"{}\"\n",
            1 + n / 2_880,
            methods[n / 3 % 6],
            statuses[n / 5 % 9],
            n * 37 % 5_003,
            referers[n / 11 % 8],
            agents[n % 7]
        ));
    }
    log
}

/// What a log has, counted line by line and without crawlgate.
#[derive(Default)]
struct TrafficCount {
    /// By the name in the user agent: requests, bytes, and 2xx, 3xx, 304, 4xx, 5xx.
    agents: BTreeMap<&'static str, [u64; 7]>,
    visits: BTreeMap<&'static str, u64>,
    paths_of_gptbot: BTreeMap<String, u64>,
}

impl TrafficCount {
    fn of_log(log: &str) -> TrafficCount {
        let mut truth = TrafficCount::default();
        for line in log.lines() {
            let quoted: Vec<&str> = line.split('"').collect();
            let request: Vec<&str> = quoted[1].split(' ').collect();
            let numbers: Vec<u64> = quoted[2]
                .split_whitespace()
                .map(|number| number.parse().expect("a number"))
                .collect();
            let (path, query) = request[1].split_once('?').unwrap_or((request[1], ""));
            let names = ["GPTBot", "bingbot", "AhrefsBot", "Chrome", "curl"];
            let name = names.into_iter().find(|name| quoted[5].contains(name));
            let name = name.expect("a known agent");
            let counts = truth.agents.entry(name).or_default();
            counts[0] += 1;
            counts[1] += numbers[1];
            let class = match numbers[0] {
                304 => Some(4),
                status @ 200..=399 => Some(status as usize / 100),
                status @ 400..=599 => Some(status as usize / 100 + 1),
                _ => None,
            };
            if let Some(class) = class.filter(|_| path != "/robots.txt") {
                counts[class] += 1;
            }
            if name == "GPTBot" {
                // The URLs of redirects and errors keep their query.
                let is_ok = numbers[0] < 300 || numbers[0] == 304;
                let url = if is_ok { path } else { request[1] };
                *truth.paths_of_gptbot.entry(url.to_owned()).or_default() += 1;
            }
            let is_page = ![".png", ".css", "/robots.txt"]
                .iter()
                .any(|ending| path.ends_with(ending));
            let is_read = matches!(numbers[0], 200 | 206 | 304) && request[0] == "GET";
            let service = match quoted[3] {
                referer if referer.contains("//chatgpt.com/") => Some("chatgpt"),
                referer if referer.contains("//www.google.co.uk/") => Some("google"),
                referer if referer.contains("//www.bing.com/") => Some("bing"),
                referer if referer.contains("://") => None,
                _ => query
                    .contains("utm_source=chatgpt.com")
                    .then_some("chatgpt"),
            };
            if let Some(service) = service.filter(|_| name == "Chrome" && is_page && is_read) {
                *truth.visits.entry(service).or_default() += 1;
            }
        }
        truth
    }
}

#[test]
fn traffic_of_a_log_is_counted_exactly() {
    let log = traffic_log();
    let truth = TrafficCount::of_log(&log);
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    let columns = [
        "requests",
        "bytes",
        "status_2xx",
        "status_3xx",
        "status_304",
        "status_4xx",
        "status_5xx",
    ];
    let ids = [
        ("GPTBot", "gptbot"),
        ("bingbot", "bingbot"),
        ("AhrefsBot", "ahrefsbot"),
        ("curl", "curl"),
    ];
    for (name, id) in ids {
        let row = crawler(&report, id);
        assert_eq!(
            columns.map(|column| count(row, column)),
            truth.agents[name],
            "{id}"
        );
    }
    let traffic = &report["traffic"];
    let sum = |names: &[&str], column: usize| -> u64 {
        names.iter().map(|name| truth.agents[name][column]).sum()
    };
    let crawlers = ["GPTBot", "bingbot", "AhrefsBot"];
    let all = ["GPTBot", "bingbot", "AhrefsBot", "Chrome", "curl"];
    for (part, column) in [("requests", 0), ("bytes", 1)] {
        let expected = json!({ "crawlers": sum(&crawlers, column), "all": sum(&all, column) });
        assert_eq!(traffic[part], expected);
    }
    let mut visits: Vec<(u64, &str)> = truth.visits.iter().map(|(id, sent)| (*sent, *id)).collect();
    visits.sort_by_key(|(sent, id)| (Reverse(*sent), *id));
    assert_eq!(visits.len(), 3);
    let expected = visits
        .iter()
        .map(|(sent, id)| json!({ "service": id, "visits": sent }));
    assert_eq!(traffic["services"], expected.collect::<Value>());
    let operators = traffic["operators"].as_array().expect("operators");
    let mut operators = operators.iter();
    let openai = operators
        .find(|one| one["operator"] == "OpenAI")
        .expect("OpenAI");
    let pages = truth.agents["GPTBot"][2] + truth.agents["GPTBot"][4];
    assert_eq!(
        (&openai["operator"], &openai["pages"], &openai["visits"]),
        (
            &json!("OpenAI"),
            &json!(pages),
            &json!(truth.visits["chatgpt"])
        )
    );
    let paths = crawler(&report, "gptbot")["paths"]
        .as_array()
        .expect("paths");
    assert_eq!(paths.len(), 20);
    for path in paths {
        let name = path["name"].as_str().expect("a path");
        assert_eq!(
            (&path["count"], &path["error"]),
            (&json!(truth.paths_of_gptbot[name]), &json!(0))
        );
    }
    let csv = case.run(&["--robots", "robots.txt", "access.log", "--csv"]);
    let csv = String::from_utf8(csv.stdout).expect("UTF-8");
    let row = csv
        .split("\r\n")
        .find(|row| row.starts_with("gptbot,"))
        .expect("a row");
    let numbers: Vec<u64> = row
        .split(',')
        .filter_map(|cell| cell.parse().ok())
        .collect();
    assert_eq!(numbers[..7], truth.agents["GPTBot"]);
    let mut lines = csv.split("\r\n");
    let of_section = lines.find(|line| line.contains(",section,"));
    let cells: Vec<&str> = of_section.expect("a section").split(',').collect();
    let section = &crawler(&report, cells[0])["sections"][0];
    assert_eq!(
        (json!(cells[cells.len() - 17]), cells[cells.len() - 16]),
        (section["name"].clone(), &*section["count"].to_string())
    );
}

/// The names and the numbers of a list of the most frequent ones.
fn top(list: &Value) -> Vec<(&str, u64)> {
    let entries = list.as_array().expect("a list").iter();
    entries
        .map(|entry| {
            let name = entry["name"].as_str().expect("a name");
            (name, entry["count"].as_u64().expect("a number"))
        })
        .collect()
}

#[test]
fn urls_behind_the_statuses_of_each_crawler_are_counted() {
    let answered = |number: usize, target: &str, status: &str, agent: &str| {
        let line = line("22/Nov/2026:10:00:00 +0000", target, agent);
        line.replace(" 200 ", &format!(" {status} ")).repeat(number)
    };
    let lines = [
        answered(2, "/robots.txt", "200", BINGBOT),
        answered(3, "/shop/shoes?color=red&size=4", "200", BINGBOT),
        answered(4, "/shop/gone?color=blue&color=red", "404", BINGBOT),
        answered(2, "/old", "404", BINGBOT),
        answered(5, "/moved/away/a", "301", BINGBOT),
        answered(1, "/shop/shoes", "503", BINGBOT),
        answered(9, "/visitors/", "404", BROWSER),
        answered(6, "/shop/tool", "404", "curl/8.0"),
    ];
    let case = Case::new(&[("access.log", lines.concat().as_bytes())]);
    let arguments = ["--robots", "robots.txt", "access.log"];
    let report = case.json(&arguments);
    let bing = crawler(&report, "bingbot");
    assert_eq!(
        top(&bing["sections"]),
        [("/shop/", 8), ("/moved/", 5), ("/", 4)]
    );
    assert_eq!(top(&bing["parameters"]), [("color", 7), ("size", 3)]);
    assert_eq!(bing["with_parameters"], 7);
    assert_eq!(
        top(&bing["combinations"]),
        [("/shop/...?color", 4), ("/shop/...?color&size", 3)]
    );
    assert_eq!(bing["combinations"][0]["urls"], 1);
    let deeper = case.json(&[&arguments[..], &["--section-depth", "2"]].concat());
    let deeper = &crawler(&deeper, "bingbot")["sections"];
    assert_eq!(top(deeper), [("/shop/", 8), ("/moved/away/", 5), ("/", 4)]);
    let whole = case.run(&[&arguments[..], &["--section-depth", "0"]].concat());
    assert_eq!(whole.status.code(), Some(2));
    assert_eq!(bing["distinct_paths"], 5);
    assert_eq!(top(&bing["days"]), [("2026-11-22", 17)]);
    assert_eq!(top(&bing["statuses"][0]["days"]), [("2026-11-22", 6)]);
    assert_eq!(bing["devices"], json!([]));
    let moved = &bing["paths"][0];
    assert_eq!(moved["last"], "2026-11-22T10:00:00Z");
    assert_eq!(moved["bytes"], 5_000);
    assert_eq!(
        top(&bing["statuses"][0]["sections"]),
        [("/shop/", 4), ("/", 2)]
    );
    assert_eq!(
        top(&bing["paths"])[..3],
        [
            ("/moved/away/a", 5),
            ("/shop/gone?color=blue&color=red", 4),
            ("/shop/shoes", 4)
        ]
    );
    let statuses = bing["statuses"].as_array().expect("a list").iter();
    let statuses: Vec<_> = statuses
        .map(|one| {
            let [status, requests] =
                ["status", "requests"].map(|name| one[name].as_u64().unwrap_or_default());
            (status, requests, top(&one["paths"]))
        })
        .collect();
    let expected = [
        (
            404,
            6,
            vec![("/shop/gone?color=blue&color=red", 4), ("/old", 2)],
        ),
        (301, 5, vec![("/moved/away/a", 5)]),
        // Without those of robots.txt.
        (200, 3, vec![("/shop/shoes", 3)]),
        (503, 1, vec![("/shop/shoes", 1)]),
    ];
    assert_eq!(statuses, expected);
    assert_eq!(crawler(&report, "curl")["sections"], json!([]));

    case.json(&[&arguments[..], &["--html", "out.html"]].concat());
    let page = fs::read_to_string(case.path("out.html")).expect("the page");
    let text = case.run(&arguments).stdout;
    let markdown = case.run(&[&arguments[..], &["--markdown"]].concat()).stdout;
    for shown in [page.into_bytes(), text, markdown] {
        let shown = String::from_utf8_lossy(&shown);
        for part in [
            "404 in 6 requests",
            "/shop/gone?color=blue",
            "parameters (in 41 % of requests)",
            "color 7 (41 %)",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains("/visitors/"), "{shown}");
    }
}

#[test]
fn days_of_a_status_are_in_order() {
    let log = [
        line("23/Nov/2026:10:00:00 +0000", "/", BINGBOT).repeat(2),
        line("22/Nov/2026:10:00:00 +0000", "/", BINGBOT),
    ];
    let case = Case::new(&[("access.log", log.concat().as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    let days = &crawler(&report, "bingbot")["statuses"][0]["days"];
    assert_eq!(top(days), [("2026-11-22", 1), ("2026-11-23", 2)]);
}

#[test]
fn response_times_are_shown_by_crawler_and_section() {
    let timed = |target: &str, time: &str| {
        let line = line("22/Nov/2026:10:00:00 +0000", target, BINGBOT);
        format!("{} {time}\n", line.trim_end())
    };
    let log = [
        timed("/shop/a", "1.500"),
        timed("/b", "0.040"),
        timed("/c", "-"),
    ];
    let case = Case::new(&[("access.log", log.concat().as_bytes())]);
    let format = "$remote_addr - - [$time_local] \"$request\" $status $bytes \"$http_referer\" \"$http_user_agent\" $request_time";
    let arguments = [
        "--robots",
        "robots.txt",
        "--log-format",
        format,
        "access.log",
    ];
    let unread = |arguments: &[&str]| case.json(arguments)["log"]["unread_columns"].clone();
    assert_eq!(unread(&["--robots", "robots.txt", "access.log"]), 3);
    assert_eq!(unread(&arguments), 0);
    let report = case.json(&arguments);
    let bing = crawler(&report, "bingbot");
    assert_eq!(bing["usage"]["timed"], 2);
    let root = &bing["sections"][0];
    assert_eq!(
        (&root["timed"], &root["milliseconds"]),
        (&json!(1), &json!(40))
    );
    assert_eq!(bing["sections"][1]["slow"], 1);
    let text = case.run(&arguments).stdout;
    let text = String::from_utf8_lossy(&text);
    for shown in [
        "3 requests, 2.9 KiB, 770 ms, 50 % slow",
        "/shop/ 1 (33 %, 1,500 ms, 100 % slow)",
    ] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
}

/// What a crawler requested of the sitemaps: URLs requested and never requested, requests, and
/// those for other URLs.
fn sitemap_numbers(report: &Value, id: &str) -> [u64; 4] {
    const NUMBERS: [&str; 4] = [
        "requested",
        "never_requested",
        "requests",
        "requests_outside",
    ];
    let sitemap = &crawler(report, id)["sitemap"];
    NUMBERS.map(|name| sitemap[name].as_u64().expect("a number"))
}

#[test]
fn urls_of_sitemaps_are_compared_with_requests() {
    let requests = |agent: &str, targets: &[&str]| -> String {
        let lines = targets.iter();
        let lines = lines.map(|target| line("22/Nov/2026:10:00:00 +0000", target, agent));
        lines.collect()
    };
    const GOOGLEBOT: &str =
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    let log = [
        // Twice the same URL, one in another spelling, three other URLs, and parts of pages.
        requests(GOOGLEBOT, &["/", "/", "/shop/%c3%a4", "/shop/a?sort=price"]),
        requests(
            GOOGLEBOT,
            &["/old", "/old", "/style.css", "/a.png", "/robots.txt"],
        ),
        requests(BINGBOT, &["/shop/b", "/logo.png"]),
        requests(GPTBOT, &["/shop/a"]),
        requests("Googlebot-Image/1.0", &["/shop/a"]),
    ];
    let pages = "<urlset><url><loc>https://www.shop.example</loc></url>\
        <url><loc>https://shop.example/shop/ä</loc></url>\
        <url><loc>https://shop.example/shop/%C3%A4</loc></url>\
        <url><loc>https://shop.example/shop/a</loc></url></urlset>";
    let index = "<sitemapindex><sitemap><loc>https://shop.example/pages.xml</loc></sitemap>\
        <sitemap><loc>https://shop.example/gone.xml</loc></sitemap></sitemapindex>";
    let list = "https://shop.example/shop/b\nhttps://shop.example/logo.png\n/relative\n";
    let case = Case::new(&[
        ("access.log", log.concat().as_bytes()),
        ("pages.xml", pages.as_bytes()),
        ("index.xml", index.as_bytes()),
        ("more.txt", list.as_bytes()),
    ]);
    let arguments = ["--robots", "robots.txt", "access.log"];
    let sitemaps = ["--sitemap", "index.xml", "--sitemap", "more.txt"];
    let all = [&arguments[..], &sitemaps].concat();
    let report = case.json(&all);
    assert_eq!(report["sitemap"]["urls"], 5);
    assert_eq!(report["sitemap"]["names"], json!(["index.xml", "more.txt"]));
    let unread = report["sitemap"]["unread"].as_array().expect("a list");
    assert_eq!(unread.len(), 1, "{unread:?}");
    assert_eq!(sitemap_numbers(&report, "googlebot"), [2, 3, 6, 3]);
    let missed = &crawler(&report, "googlebot")["sitemap"];
    assert_eq!(top(&missed["sections"]), [("/shop/", 2), ("/", 1)]);
    assert_eq!(missed["examples"][0], "https://shop.example/shop/a");
    let outside = [("/old", 2), ("/shop/...?sort", 1)];
    assert_eq!(top(&missed["outside"]), outside);
    let csv = case.run(&[&all[..], &["--csv"]].concat()).stdout;
    assert!(String::from_utf8_lossy(&csv).contains(",outside_sitemap,/old,2,"));
    let table = case.run(&[&arguments[..], &["--sitemap", "urls.csv"]].concat());
    assert_eq!(table.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&table.stderr).contains("one a line"));
    // An image that a sitemap lists counts.
    assert_eq!(sitemap_numbers(&report, "bingbot"), [2, 3, 2, 0]);
    for id in ["gptbot", "googlebot-image"] {
        assert_eq!(crawler(&report, id)["sitemap"], Value::Null, "{id}");
    }
    let of_one = case.json(&[&all[..], &["--crawler", "gptbot"]].concat());
    assert_eq!(sitemap_numbers(&of_one, "gptbot"), [1, 4, 1, 0]);

    case.json(&[&all[..], &["--html", "out.html"]].concat());
    let page = fs::read_to_string(case.path("out.html")).expect("the page");
    let text = case.run(&all).stdout;
    let markdown = case.run(&[&all[..], &["--markdown"]].concat()).stdout;
    for shown in [page.into_bytes(), text, markdown] {
        let shown = String::from_utf8_lossy(&shown);
        for part in [
            "2 of 5 ",
            "50 % of ",
            "/old 2 (33 %)",
            "/shop/ 2 (67 %)",
            "gone.xml",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
    // One that is missing, and one without URLs.
    for sitemap in ["missing.xml", "robots.txt"] {
        let output = case.run(&[&arguments[..], &["--sitemap", sitemap]].concat());
        assert_eq!(output.status.code(), Some(3), "{sitemap}");
    }
}

#[test]
fn forms_of_googlebot_are_counted_apart() {
    const SMARTPHONE: &str = "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) \
        AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 \
        (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    const DESKTOP: &str =
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    let log = [
        line("22/Nov/2026:10:00:00 +0000", "/", SMARTPHONE).repeat(3),
        line("23/Nov/2026:10:00:00 +0000", "/", DESKTOP),
    ];
    let case = Case::new(&[("access.log", log.concat().as_bytes())]);
    let report = case.json(&["--robots", "robots.txt", "access.log", "--html", "out.html"]);
    let googlebot = crawler(&report, "googlebot");
    assert_eq!(
        top(&googlebot["devices"]),
        [("smartphone", 3), ("desktop", 1)]
    );
    assert_eq!(
        top(&googlebot["days"]),
        [("2026-11-22", 3), ("2026-11-23", 1)]
    );
    let page = fs::read_to_string(case.path("out.html")).expect("the page");
    for part in ["smartphone 3 (75 %)", "2026-11-23: 1", "href=\"#urls\""] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn log_without_hosts_is_compared_as_the_named_site() {
    let log = line("22/Nov/2026:10:00:00 +0000", "/", BINGBOT);
    let list = "https://shop.example/\nhttps://other.example/a\nhttps://other.example/b\n";
    let case = Case::new(&[("access.log", log.as_bytes()), ("all.txt", list.as_bytes())]);
    let arguments = [
        "--robots",
        "robots.txt",
        "access.log",
        "--sitemap",
        "all.txt",
    ];
    for (site, requested) in [("shop.example", 1), ("other.example", 0)] {
        let report = case.json(&[&arguments[..], &["--site", site]].concat());
        assert_eq!(sitemap_numbers(&report, "bingbot")[0], requested, "{site}");
    }
}

#[test]
fn sitemap_of_other_hosts_than_the_log_is_named() {
    let line = line("22/Nov/2026:10:00:00 +0000", "/", BINGBOT);
    let log = format!("blog.example {line}www.shop.example:443 {line}");
    let list = "https://shop.example/\nhttps://shop2.example/\n";
    let case = Case::new(&[
        ("access.log", log.as_bytes()),
        ("shop.txt", b"https://shop.example/\n"),
        ("shops.txt", list.as_bytes()),
    ]);
    for (sitemap, others, numbers) in [
        ("shop.txt", json!([]), [1, 0, 2, 1]),
        ("shops.txt", json!(["shop2.example"]), [1, 1, 2, 1]),
    ] {
        let arguments = ["--robots", "robots.txt", "access.log", "--sitemap", sitemap];
        let report = case.json(&arguments);
        assert_eq!(report["sitemap"]["other_hosts"], others);
        assert_eq!(sitemap_numbers(&report, "bingbot"), numbers);
    }
}

#[test]
fn all_paths_of_a_status_are_counted_exactly() {
    // Each once, and a few of them again, in many chunks for all threads.
    let numbers = (0..20_000).chain((0..20_000).step_by(5_000));
    let mut log = String::new();
    for number in numbers {
        let target = format!("/old/{number:05}{}", "x".repeat(100));
        let line = line("22/Nov/2026:10:00:00 +0000", &target, BINGBOT);
        log += &line.replace(" 200 ", " 404 ");
    }
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let arguments = ["--robots", "robots.txt", "access.log"];
    let report = case.json(&[&arguments[..], &["--top", "1000000"]].concat());
    let paths = top(&crawler(&report, "bingbot")["statuses"][0]["paths"]);
    assert_eq!(paths.len(), 20_000);
    let mut sorted = paths.clone();
    sorted.sort_by_key(|(path, count)| (Reverse(*count), *path));
    assert_eq!(paths, sorted);
    let counts: Vec<u64> = paths.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts[..5], [2, 2, 2, 2, 1]);
    assert_eq!(counts.iter().sum::<u64>(), 20_004);
    let output = case.run(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    for shown in [
        "404 in 20,004 requests, by section: /old/ 20,004 (100 %)\n",
        "404 by path: /old/00000",
    ] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    let csv = case.run(&[&arguments[..], &["--csv"]].concat());
    let csv = String::from_utf8_lossy(&csv.stdout);
    assert_eq!(csv.matches(",status_path,").count(), 20_000);
}

#[test]
fn as_many_crawlers_and_paths_are_listed_as_asked() {
    let agents = [
        "Googlebot",
        "bingbot",
        "GPTBot",
        "CCBot",
        "AhrefsBot",
        "DotBot",
    ];
    let mut log = String::new();
    for agent in agents {
        let agent = format!("Mozilla/5.0 (compatible; {agent}/2.1)");
        for number in (0..30).chain(0..30) {
            log += &line("22/Nov/2026:10:00:00 +0000", &format!("/{number}"), &agent);
        }
    }
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let audit = |options: &[&str]| {
        let report = case.json(&[&["--robots", "robots.txt", "access.log"], options].concat());
        let takers = report["traffic"]["takers"].as_array().map_or(0, Vec::len);
        (takers, top(&crawler(&report, "googlebot")["paths"]).len())
    };
    assert_eq!(audit(&[]), (5, 20));
    assert_eq!(audit(&["--top", "25"]), (6, 25));
    assert_eq!(audit(&["--crawler", "Googlebot"]), (0, 20));
    let shown = |options: &[&str]| {
        let output = case.run(&[&["--robots", "robots.txt", "access.log"], options].concat());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        (text.matches("(3").count(), text.contains(", ..."))
    };
    // Five of each crawler at most, and all twenty of one.
    assert!((1..=25).contains(&shown(&[]).0));
    let one = ["--crawler", "Googlebot"];
    assert_eq!(shown(&one), (20, true));
    for (number, has_more) in [("25", true), ("30", false)] {
        let listed = shown(&[&one[..], &["--top", number]].concat());
        assert_eq!(listed.1, has_more, "{number}");
    }
    // The page has its own limit.
    shown(&["--csv", "--html", "out.html"]);
    let page = fs::read_to_string(case.path("out.html")).expect("the page");
    assert_eq!(page.matches("<h3 id=\"urls-").count(), 5);
    let none = case.run(&["--robots", "robots.txt", "access.log", "--top", "0"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn log_without_referrers_has_only_the_visits_of_its_urls() {
    let time = "22/Nov/2026:10:00:00 +0000";
    let lines = [
        line(time, "/a?utm_source=chatgpt.com", BROWSER).repeat(3),
        line(time, "/a", BROWSER),
    ];
    let case = Case::new(&[
        ("access.log", lines.concat().as_bytes()),
        ("plain.log", lines[1].as_bytes()),
    ]);
    let report = case.json(&["--robots", "robots.txt", "access.log"]);
    assert_eq!(report["traffic"]["requests"]["all"], 4);
    assert_eq!(
        report["traffic"]["services"],
        json!([{ "service": "chatgpt", "visits": 3 }])
    );
    assert_eq!(report["log"]["has_referrers"], false);
    let plain = case.json(&["--robots", "robots.txt", "plain.log"]);
    assert_eq!(plain["traffic"]["services"], json!([]));
    assert_eq!(plain["traffic"]["operators"], json!([]));
}

#[test]
fn log_without_methods_and_statuses_has_visits_and_no_pages() {
    let visit = r#"{"at":"2026-11-22T10:00:00Z","url":"/a","ua":"Mozilla/5.0 (X11) Firefox/145.0","from":"https://chatgpt.com/"}"#;
    let crawl = r#"{"at":"2026-11-22T10:00:00Z","url":"/b","ua":"GPTBot/1.2","from":"-"}"#;
    let log = format!("{visit}\n{crawl}\n");
    let case = Case::new(&[("app.jsonl", log.as_bytes())]);
    let map = "time=at,path=url,user_agent=ua,referer=from";
    let report = case.json(&["--robots", "robots.txt", "--map", map, "app.jsonl"]);
    assert_eq!(
        report["traffic"]["services"],
        json!([{ "service": "chatgpt", "visits": 1 }])
    );
    assert_eq!(report["traffic"]["takers"], json!([]));
}

#[test]
fn log_of_several_hosts_is_named_in_the_report() {
    let hosts = ["shop.example", "www.shop.example", "blog.example"];
    let lines = hosts.map(|host| {
        let line = line("22/Nov/2026:10:00:00 +0000", "/a", BROWSER);
        format!("{host} {line}")
    });
    // A line of JSON may have any host.
    let long = "z".repeat(300);
    let own = json!({"time": "2026-11-22T10:00:00Z", "method": "GET", "host": long, "target": "/", "status": 200, "bytes": 9, "user_agent": BROWSER});
    let case = Case::new(&[
        ("access.log", lines.concat().as_bytes()),
        ("own.log", format!("{own}\n").as_bytes()),
    ]);
    let arguments = ["--robots", "robots.txt", "access.log", "own.log"];
    let report = case.json(&arguments);
    assert_eq!(
        report["log"]["hosts"],
        json!([
            "blog.example",
            "shop.example",
            "www.shop.example",
            long[..255]
        ])
    );
    let output = case.run(&[&arguments[..], &["--markdown", "--title", "Client"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("# Client\n"), "{text}");
    assert!(text.contains("blog.example"), "{text}");
}

#[test]
fn earlier_report_is_shown_beside_the_numbers_of_now() {
    let at = "22/Nov/2026:10:00:00 +0000";
    let before = [
        line(at, "/cart/", GPTBOT).repeat(1_200),
        line(at, "/", BINGBOT).replace(" 200 ", " 404 "),
        line(at, "/", "ClaudeBot/1.0").repeat(3),
    ];
    let later = "25/Nov/2026:10:00:00 +0000";
    let now = [
        line(at, "/", GPTBOT).repeat(7),
        line(later, "/", "CCBot/2.0"),
        line(later, "/cart/", "ClaudeBot/1.0").repeat(3),
    ];
    let case = Case::new(&[
        ("before.log", before.concat().as_bytes()),
        ("now.log", now.concat().as_bytes()),
    ]);
    let earlier = case.run(&["--robots", "robots.txt", "before.log", "--json"]);
    case.write("before.json", &earlier.stdout);
    let audit = |options: &[&str]| {
        let compare = [
            "--robots",
            "robots.txt",
            "now.log",
            "--compare",
            "before.json",
        ];
        let output = case.run(&[&compare[..], options].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let table = audit(&["--html", "out.html", "--table"]);
    let rows = table.lines().filter(|row| row.contains(" → "));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    // Those whose violations changed most come first; the last two changed alike.
    let gptbot = "GPTBot (not verified) 1,200 → 7 1,200 → 7";
    assert_eq!(rows[1].join(" "), gptbot, "{table}");
    assert_eq!(rows[2][0], "ClaudeBot", "{table}");
    for row in [
        "bingbot (not verified) 1 → 0 0 → 0 gone",
        "CCBot (not verified) 0 → 1 0 → 0 new",
    ] {
        assert!(rows.iter().any(|shown| shown.join(" ") == row), "{table}");
    }
    let wide = table
        .lines()
        .map(|row| Vec::from_iter(row.split_whitespace()));
    let mut wide = wide.map(|row| row.join(" "));
    assert!(wide.any(|row| row == "gptbot not verified 1200 7 1200 7 0 0 0 0"));
    let markdown = audit(&["--markdown"]);
    for row in [
        "| GPTBot | not verified | 1,200 → 7 | 1,200 → 7 | 0 → 0 | 0 → 0 |",
        "| bingbot | not verified | 1 → 0 (gone) | 0 → 0 | 1 → 0 | 0 → 0 |",
        "| CCBot | not verified | 0 → 1 (new) | 0 → 0 | 0 → 0 | 0 → 0 |",
    ] {
        assert!(markdown.contains(row), "{row} in {markdown}");
    }
    let page = fs::read_to_string(case.path("out.html")).expect("the page");
    for number in ["1,200 → 7", "1 → 0 (gone)", "0 → 1 (new)"] {
        assert!(page.contains(&format!(">{number}</td>")), "{page}");
    }
    let csv = audit(&["--csv"]);
    let rows = csv.lines().filter(|row| row.contains(",before,,"));
    assert_eq!(rows.count(), 3, "{csv}");
    let one = audit(&["--crawler", "GPTBot", "--markdown"]);
    assert!(one.contains("1,200 → 7") && !one.contains("gone"), "{one}");
    let of_site = audit(&["--site", "shop.example", "--markdown"]);
    assert!(of_site.contains("another --site"), "{of_site}");
    assert!(!markdown.contains("another --site"), "{markdown}");
    // The reports differ in their days, and perhaps in more.
    case.write("other.txt", ROBOTS.as_bytes());
    write_gptbot_list(&case);
    for (options, expected) in [
        (&[][..], 1),
        (&["--robots", "other.txt@2026-11-22"], 2),
        (&["--lists", "lists"], 2),
        (&["--until", "2026-11-23"], 0),
    ] {
        let text = audit(options);
        let cautions = text.lines().filter(|line| line.starts_with("Caution: "));
        assert_eq!(cautions.count(), expected, "{text}");
    }
}

/// A log without requests has no period, and not every file is ours.
#[test]
fn odd_earlier_reports_are_read_or_refused() {
    let at = "22/Nov/2026:10:00:00 +0000";
    let case = Case::new(&[
        ("no.log", b""),
        ("now.log", line(at, "/", GPTBOT).as_bytes()),
    ]);
    let arguments = ["--robots", "robots.txt"];
    let mut earlier = case.json(&[&arguments[..], &["no.log"]].concat());
    for (rows, code, shown) in [
        (json!([]), 0, "a report without requests\n"),
        (
            json!([{"id": "x", "name": "x\nNo rule"}]),
            0,
            "x\u{fffd}No rule",
        ),
        (json!(vec![json!({}); 10_001]), 3, ""),
    ] {
        earlier["crawlers"] = rows;
        case.write("before.json", earlier.to_string().as_bytes());
        let compare = ["now.log", "--compare", "before.json"];
        let output = case.run(&[&arguments[..], &compare].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(shown), "{text}");
    }
    let output = case.run(&[&arguments[..], &["now.log", "--compare", "now.log"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("EarlierReport"), "{error}");
}
