//! The dashboard and the history behind it, on the running binary: what it shows, what it refuses,
//! and that it outlasts a crash.

use crate::proxy::support::{
    BINGBOT, Connection, GPTBOT, Gate, Origin, Response, Setup, chromium, eventually, run,
};
use crawlgate::time::Timestamp;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output};

const HOST: &str = "shop.example";
const HOUR: i64 = 3_600;
const POLICY: &str = "\
hosts: [shop.example]
robots:
  origin: replace
  groups:
    - agents: \"*\"
      disallow: /cart/
indexing:
  - types: application/pdf
    tag: noindex
";
/// What a hostile client sends.
const HOSTILE_PATH: &str = "/cart/<script>alert(1)</script>'\"&x";
const HOSTILE_AGENT: &str =
    "GPTBot/1.2 (compatible; <img src=x onerror=alert(1)>; +https://openai.com/gptbot)";
const PAGES: [&str; 6] = [
    "/",
    "/?days=1",
    "/site?name=shop",
    "/crawler?id=gptbot",
    "/violations",
    "/health",
];

fn ask(gate: &Gate, method: &str, host: &str, target: &str) -> Response {
    let mut connection = Connection::open(gate.admin);
    connection.send(&format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    ));
    connection.response(method)
}

fn page(gate: &Gate, target: &str) -> String {
    let response = ask(gate, "GET", "localhost", target);
    assert_eq!(response.status, 200, "{target}: {}", response.text());
    response.text().to_owned()
}

fn visit(gate: &Gate, agent: &str, path: &str) {
    gate.get(HOST, path, &format!("User-Agent: {agent}\r\n"));
}

/// A host that was observed for more than a day, in which one crawler obeyed. The clock is that of
/// the system in the end, as commands that read the state have no other.
fn observed(setup: Setup) -> Gate {
    let setup = setup.policy("shop", POLICY);
    let mut gate = setup.with_clock_set(-30 * HOUR).start();
    for _ in 0..6 {
        visit(&gate, BINGBOT, "/");
        // A request counts in the hour in which it is taken into the history.
        eventually("it is in the history", || {
            crawler(&report(&gate), "bingbot")
        });
        gate.live_through(5 * HOUR);
    }
    gate
}

/// The same, and then visited by one that does not obey.
fn visited(setup: Setup) -> Gate {
    let gate = observed(setup);
    visit(&gate, GPTBOT, "/robots.txt");
    visit(&gate, HOSTILE_AGENT, HOSTILE_PATH);
    for number in 0..24 {
        visit(&gate, GPTBOT, &format!("/cart/{number}"));
    }
    for path in ["/robots.txt", "/cart/1", "/"] {
        visit(&gate, "SomeNewBot/1.0 (+https://new.example/bot)", path);
    }
    eventually("the history has all of it", || {
        let report = report(&gate);
        let (of_gptbot, of_others) = (crawler(&report, "gptbot")?, crawler(&report, "other")?);
        (of_gptbot["counts"]["violation"] == 25 && of_others["counts"]["requests"] == 3)
            .then_some(())
    });
    gate
}

/// What the running crawlgate reports.
fn report(gate: &Gate) -> Value {
    read_json(&gate.command(&["report", "--since", "3d", "--json"]))
}

fn read_json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn crawler(report: &Value, id: &str) -> Option<Value> {
    report["crawlers"]
        .as_array()?
        .iter()
        .find(|crawler| crawler["id"] == id)
        .cloned()
}

#[test]
fn history_survives_a_crash_and_links_to_the_policy() {
    let origin = Origin::plain();
    let mut gate = visited(Setup::before(origin.address));
    gate.wait_until_stored();
    gate.restart("KILL", |_| {});
    let report = report(&gate);
    let of_gptbot = crawler(&report, "gptbot").expect("gptbot");
    for (column, count) in [
        ("requests", 26),
        ("robots_txt", 1),
        ("violation", 25),
        ("would_refuse", 25),
        ("status_2xx", 25),
    ] {
        assert_eq!(of_gptbot["counts"][column], count, "{column}");
    }
    assert_eq!(
        (&of_gptbot["part"], &of_gptbot["identity"]),
        (&"breaks_rules".into(), &"unverified".into())
    );
    let of_bing = crawler(&report, "bingbot").expect("bingbot");
    assert_eq!(
        (&of_bing["part"], &of_bing["counts"]["allowed"]),
        (&"obeys".into(), &6.into())
    );
    let unknown = crawler(&report, "other").expect("unknown bots");
    assert_eq!(
        (&unknown["identity"], &unknown["counts"]["violation"]),
        (&Value::Null, &1.into())
    );
    // Enforcement alone blocks no unknown bot.
    assert_eq!(
        report["totals"],
        json!({"requests": 35, "against_rules": 26, "not_counted": 0, "blocked": 0, "blocked_against_rules": 0,
            "license_demanded": 0, "would_block": 25, "would_block_against_rules": 25,
            "unknown_bots_would_block": 1,
            "unknown_bots_would_block_against_rules": 1, "pretended": 0, "tools": 0}),
    );
    let site = &report["sites"][0];
    assert_eq!(
        (
            &site["counts"]["violation"],
            &site["counts"]["would_refuse"]
        ),
        (&26.into(), &25.into()),
        "{site}"
    );
    let overview = page(&gate, "/");
    assert!(overview.contains("class=\"headline breaks\""), "{overview}");
    assert!(
        overview.contains("/crawler?id=gptbot") && overview.contains("SomeNewBot"),
        "{overview}"
    );
    let counted = "/violations?crawler=gptbot&#38;identity=unverified\">25 of 26</a>";
    assert!(overview.contains(counted), "{overview}");
    assert!(page(&gate, "/crawler?id=gptbot").contains(">--as</span> gptbot</code>"));
    let samples = page(&gate, "/violations?crawler=gptbot");
    assert_eq!(
        samples.matches("class=\"example unverified\"").count(),
        20,
        "the first 20 of a day"
    );
    let counted = "kind=violation&#38;identity=unverified\">25</a>";
    assert!(samples.contains(counted), "all requests: {samples}");
    assert_eq!(samples.matches("<section id=").count(), 1, "no impostors");
    let observed = "crawlgate would have blocked it.";
    assert_eq!(samples.matches(observed).count(), 20, "{samples}");
    // Enforcement alone blocks no unknown bot.
    let of_unknown_bots = page(&gate, "/violations?crawler=other");
    assert!(!of_unknown_bots.contains(observed), "{of_unknown_bots}");
    assert!(of_unknown_bots.contains("<code>purposes: { other: enforce }</code>"));
    assert!(
        samples.contains("From 127.0.0.0, "),
        "a network and no address: {samples}"
    );
    let linked_line = |page: &str| {
        let link = page.split("href=\"/site?name=shop#line-").nth(1);
        let number = link.expect("a link to the policy").split('"').next();
        number.and_then(|line| line.parse::<usize>().ok())
    };
    let line = linked_line(&samples).expect("a number");
    assert_eq!(linked_line(&overview), Some(line));
    assert!(
        POLICY
            .lines()
            .nth(line - 1)
            .is_some_and(|line| line.contains("/cart/")),
        "line {line}"
    );
    let site = page(&gate, "/site?name=shop");
    assert!(
        site.contains(&format!("id=\"line-{line}\""))
            && site.contains(&format!("href=\"#line-{line}\""))
    );
}

#[test]
fn no_text_of_a_client_is_markup_and_nothing_runs() {
    let origin = Origin::plain();
    let gate = visited(Setup::before(origin.address));
    for target in PAGES.iter().chain(&["/violations?crawler=gptbot"]) {
        let response = ask(&gate, "GET", "localhost", target);
        let text = response.text();
        assert_eq!(response.status, 200, "{target}: {text}");
        let markup = [
            "<script",
            "<img",
            "<b>",
            "onerror=\"",
            "style=",
            "javascript:",
        ];
        let found: Vec<&str> = markup
            .into_iter()
            .filter(|markup| text.contains(markup))
            .collect();
        // Totals are in bold; their text is crawlgate's own.
        let is_own = |markup: &&str| *markup == "<b>" && text.contains("class=\"numbers\"");
        assert_eq!(
            found.iter().filter(|markup| !is_own(markup)).count(),
            0,
            "{target}: {found:?}"
        );
        let policy = response.field("Content-Security-Policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
    assert!(
        page(&gate, "/violations").contains("&#60;script&#62;"),
        "the hostile path is shown as text"
    );
}

#[test]
fn dashboard_answers_reads_under_local_names_alone() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    for target in PAGES {
        assert_eq!(
            ask(&gate, "GET", "attacker.example", target).status,
            421,
            "{target}"
        );
        assert_eq!(
            ask(&gate, "POST", "localhost", target).status,
            405,
            "{target}"
        );
    }
    for (target, status) in [
        ("/?days=3", 400),
        ("/?when=now", 400),
        ("/site?name=nothing", 404),
        ("/crawler?id=%3Cb%3E", 404),
        ("/style.css", 200),
    ] {
        assert_eq!(
            ask(&gate, "GET", "localhost", target).status,
            status,
            "{target}"
        );
    }
    assert!(page(&gate, "/site?name=shop").contains("crawlgate pause --site shop --for 2h"));
    gate.command(&["pause", "--site", "shop", "--for", "1h"]);
    assert!(page(&gate, "/site?name=shop").contains("crawlgate resume --site shop"));
}

#[test]
fn history_without_a_state_directory_is_kept_in_memory() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("shop", POLICY)
        .argument("--state")
        .argument("off")
        .start();
    visit(&gate, GPTBOT, "/");
    eventually("the crawler is on the dashboard", || {
        page(&gate, "/")
            .contains("/crawler?id=gptbot")
            .then_some(())
    });
}

#[test]
fn report_without_a_history_says_so() {
    let empty = tempfile::tempdir().expect("a directory");
    let output = run(&["report", "--state", &empty.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("state.db"));
}

/// A site that Googlebot obeys from its own network, with impostors and clients of which nothing is
/// proven.
fn with_impostors(origin: &Origin) -> Gate {
    let policy = format!(
        "{POLICY}crawlers:\n  - {{ token: Googlebot, networks: [198.51.100.0/24] }}\nenforcement: {{ behind_cache: no }}\n"
    );
    let setup = Setup::before(origin.address)
        .policy("shop", &policy)
        .settings("trusted_proxies: [127.0.0.1]");
    let mut gate = setup.with_clock().start();
    let visit = |gate: &Gate, client: &str, path: &str| {
        gate.get(
            HOST,
            path,
            &format!("User-Agent: Googlebot/2.1\r\nX-Forwarded-For: {client}\r\n"),
        );
    };
    for _ in 0..6 {
        visit(&gate, "198.51.100.7", "/");
        gate.live_through(5 * HOUR);
    }
    visit(&gate, "198.51.100.7", "/robots.txt");
    for number in 0..3 {
        visit(&gate, "203.0.113.9", &format!("/cart/{number}"));
        visit(&gate, "10.0.0.9", &format!("/cart/{number}"));
    }
    visit(&gate, "203.0.113.9", "/");
    eventually("the history has all of it", || {
        (report(&gate)["totals"]["pretended"] == 4).then_some(())
    });
    gate
}

#[test]
fn impostors_do_not_count_against_the_crawler() {
    let origin = Origin::plain();
    let gate = with_impostors(&origin);
    let report = report(&gate);
    let row = |identity: &str| {
        let rows = report["crawlers"].as_array().expect("rows");
        let of_google = rows
            .iter()
            .find(|row| row["id"] == "googlebot" && row["identity"] == identity);
        of_google
            .cloned()
            .unwrap_or_else(|| panic!("{identity}: {report}"))
    };
    let (verified, unverified, impostor) = (row("verified"), row("unverified"), row("impostor"));
    let parts = [&verified, &unverified, &impostor].map(|row| row["part"].clone());
    assert_eq!(parts, ["obeys", "breaks_rules", "pretends"]);
    assert_eq!(verified["counts"]["allowed"], 6, "{verified}");
    assert_eq!(unverified["counts"]["violation"], 3, "{unverified}");
    assert_eq!(
        (
            &impostor["counts"]["impostor"],
            &impostor["counts"]["violation"]
        ),
        (&4.into(), &Value::Null)
    );
    assert_eq!(
        report["totals"],
        json!({"requests": 10, "against_rules": 3, "not_counted": 0, "blocked": 0, "blocked_against_rules": 0,
            "license_demanded": 0, "would_block": 3, "would_block_against_rules": 3,
            "unknown_bots_would_block": 0,
            "unknown_bots_would_block_against_rules": 0, "pretended": 4, "tools": 0}),
        "impostors are no crawlers"
    );
    assert_eq!(
        (
            &report["sites"][0]["counts"]["requests"],
            &report["sites"][0]["pretended"]
        ),
        (&10.into(), &4.into())
    );
    assert_eq!(report["traffic"]["requests"]["crawlers"], 10);
    let bytes = |row: &Value| row["counts"]["bytes"].as_u64().expect("bytes");
    let of_crawlers = bytes(&verified) + bytes(&unverified);
    assert_eq!(report["traffic"]["bytes"]["crawlers"], of_crawlers);
    let takers = report["traffic"]["takers"].as_array().expect("takers");
    let mut identities: Vec<&Value> = takers.iter().map(|taker| &taker["identity"]).collect();
    identities.sort_by_key(|identity| identity.to_string());
    assert_eq!(identities, ["unverified", "verified"]);

    // The same in the metrics, the API and on every page.
    for (identity, kind, count) in [
        ("impostor", "impostor", 4.0),
        ("unverified", "violation", 3.0),
    ] {
        let labels =
            format!("crawler=\"googlebot\",identity=\"{identity}\",kind=\"{kind}\",site=\"shop\"");
        gate.wait_for_metric(&format!("crawlgate_violations_total{{{labels}}}"), count);
    }
    let of_verified = crate::proxy::support::sum_of(
        &gate.metrics(),
        "crawlgate_violations_total{identity=\"verified\"}",
    );
    assert_eq!(of_verified, None);
    let events: Value =
        serde_json::from_str(&page(&gate, "/api/violations?identity=impostor")).expect("JSON");
    assert_eq!(events["violations"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        ask(&gate, "GET", "localhost", "/api/violations?identity=false").status,
        400
    );
    let has = |target: &str, class: &str| {
        page(&gate, target).contains(&format!("class=\"says {class}\""))
    };
    for target in ["/site?name=shop", "/crawler?id=googlebot", "/violations"] {
        let page = page(&gate, target);
        for (identity, is_linked) in [
            ("unverified", true),
            ("impostor", true),
            ("verified", false),
        ] {
            let link = format!("identity={identity}\"");
            assert_eq!(page.contains(&link), is_linked, "{target}: {identity}");
        }
    }
    let chosen = "/violations?identity=impostor";
    assert!(has(chosen, "impostor") && !has(chosen, "unverified"));
    let sections = page(&gate, "/violations");
    let (broke, impostors) = sections
        .split_once("<section id=\"impostor\">")
        .expect("a section of their own");
    assert!(broke.contains("<section id=\"violation\">"), "{broke}");
    assert!(!broke.contains("example impostor"), "{broke}");
    assert_eq!(impostors.matches("class=\"example impostor\"").count(), 4);
    assert!(!impostors.contains("example unverified"), "{impostors}");
}

#[test]
fn report_has_a_request_as_soon_as_it_was_counted() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    for visits in 1..=3_u32 {
        visit(&gate, GPTBOT, "/");
        let series = "crawlgate_requests_total{crawler=\"gptbot\"}";
        gate.wait_for_metric(series, f64::from(visits));
        let of_gptbot = crawler(&report(&gate), "gptbot").expect("gptbot");
        assert_eq!(of_gptbot["counts"]["allowed"], visits);
        let text = gate.command(&["report"]);
        assert_eq!(text.status.code(), Some(0), "{text:?}");
    }
}

#[test]
fn report_shows_one_model_in_each_of_its_forms() {
    let origin = Origin::plain();
    let gate = visited(Setup::before(origin.address));
    let printed = |arguments: &[&str]| {
        let output = gate.command(&[&["report"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let short = printed(&[]);
    let wide = printed(&["--table"]);
    assert!(
        short.lines().all(|line| line.chars().count() <= 80),
        "{short}"
    );
    assert!(short.contains("25 of 26") && wide.starts_with(short.trim_end()));
    let row = wide
        .lines()
        .find(|line| line.starts_with("gptbot "))
        .expect("a row");
    let numbers: Vec<&str> = row.split_whitespace().skip(3).collect();
    assert_eq!(
        numbers[..3],
        ["26", "1", "25"],
        "requests, robots.txt, against rules: {row}"
    );
    assert!(printed(&["--markdown"]).contains("| 25 of 26 |"));

    let file = gate.path("report.html");
    printed(&["--html", &file.display().to_string()]);
    let page = fs::read_to_string(file).expect("a page");
    assert!(page.contains("<td data-label=\"Against the rules\" class=\"hit\">25 of 26</td>"));
    for other in [
        "<link", "<script", "<img", "href=\"/", "src=", "http:", "https:",
    ] {
        assert!(!page.contains(other), "{other}");
    }

    let of_site = |site: &str| {
        let output = gate.command(&["report", "--site", site, "--json"]);
        let report = read_json(&output);
        assert_eq!(report["site"], site);
        report["totals"]["requests"].as_u64()
    };
    assert_eq!(of_site("shop"), Some(35));
    let mistyped = gate.command(&["report", "--site", "shpo"]);
    assert_eq!(mistyped.status.code(), Some(1));

    // An hour is an hour: the visits before it are not in it.
    let hour = read_json(&gate.command(&["report", "--since", "1h", "--json"]));
    let [from, to] = ["from", "to"].map(|name| hour[name].as_str().expect("a time"));
    assert!(from.ends_with(":00:00Z") && from < to, "{from} {to}");
    let visits = |id: &str| {
        let row = crawler(&hour, id).unwrap_or_default();
        row["counts"]["requests"].as_u64().unwrap_or_default()
    };
    assert!(visits("gptbot") == 26 && visits("bingbot") < 6, "{hour}");
    let too_short = gate.command(&["report", "--since", "30m"]);
    assert_eq!(too_short.status.code(), Some(2));
    let until = Timestamp(gate.now() - 12 * HOUR).to_string();
    assert_until_12_hours_ago(
        &gate.command(&["report", "--since", "3d", "--until", &until, "--json"]),
    );
}

/// Checks the report of [`visited`] until 12 hours before its end: four visits of Bing.
fn assert_until_12_hours_ago(output: &Output) {
    let report = read_json(output);
    let bingbot = crawler(&report, "bingbot").expect("bingbot");
    assert_eq!(bingbot["counts"]["requests"], 4, "{report}");
    assert_eq!(report["totals"]["requests"], 4, "{report}");
    let end = report["to"].as_str().expect("a time");
    assert!(end.ends_with(":59:59Z"), "{end}");
}

#[test]
fn report_reads_the_state_directory_when_nothing_runs() {
    let origin = Origin::plain();
    let mut gate = visited(Setup::before(origin.address));
    let live = report(&gate);
    let named = ["report", "--since", "3d", "--json", "--state"];
    let state = gate.path("state").display().to_string();
    gate.restart("TERM", |gate| {
        let stored = read_json(&run(&[&named[..], &[&state]].concat()));
        for part in ["totals", "unknown_bots", "visitors"] {
            assert_eq!(stored[part], live[part], "{part}");
        }
        let until = ["--until", "12h"];
        assert_until_12_hours_ago(&run(&[&named[..], &[&state], &until].concat()));
        // Without a name, it looks where a crawlgate without a name keeps it.
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(["report", "--since", "3d", "--json"])
            .env("STATE_DIRECTORY", &state)
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("RUNTIME_DIRECTORY")
            .output()
            .expect("the crawlgate binary");
        assert_eq!(read_json(&output)["totals"], live["totals"], "{output:?}");
        // Who is named has to answer.
        assert_eq!(gate.command(&["report"]).status.code(), Some(3));
    });
}

#[test]
fn first_day_overview_accuses_no_crawler_and_has_an_end() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    visit(&gate, BINGBOT, "/");
    for number in 0..3 {
        visit(&gate, GPTBOT, &format!("/cart/{number}"));
    }
    gate.wait_for_metric("crawlgate_requests_total{kind=\"unproven\"}", 3.0);
    let report = read_json(&gate.command(&["report", "--json"]));
    assert_eq!(
        report["totals"],
        json!({"requests": 4, "against_rules": 0, "not_counted": 3, "blocked": 0, "blocked_against_rules": 0,
            "license_demanded": 0, "would_block": 3, "would_block_against_rules": 0,
            "unknown_bots_would_block": 0,
            "unknown_bots_would_block_against_rules": 0, "pretended": 0, "tools": 0}),
    );
    let [part] = &report["not_counted"].as_array().expect("parts")[..] else {
        panic!("{report}")
    };
    assert_eq!(
        (&part["reason"], &part["requests"]),
        (&"not_observed".into(), &3.into())
    );
    let of_gptbot = crawler(&report, "gptbot").expect("gptbot");
    assert_eq!(of_gptbot["part"], "does_not_count");
    // A new history is shown by hours.
    assert_eq!(report["periods"].as_array().map(Vec::len), Some(25));

    let page = page(&gate, "/");
    let (_, notice) = page.split_once("<p class=\"notice\">").expect("a notice");
    let (notice, rest) = notice.split_once("</p>").expect("its end");
    let until = part["until"].as_str().expect("an end");
    assert!(
        notice.contains(&format!("{} UTC", &until[11..16])),
        "{until}: {notice}"
    );
    assert!(!rest.contains("class=\"notice\""), "{rest}");
    assert!(
        !page.contains("class=\"hit\"") && !page.contains("headline breaks"),
        "{page}"
    );
    assert!(
        page.contains("href=\"/?days=1\" aria-current=\"true\""),
        "{page}"
    );
}

#[test]
fn lines_suggested_by_the_overview_block_the_crawler() {
    let origin = Origin::plain();
    let gate = observed(Setup::before(origin.address));
    visit(&gate, GPTBOT, "/robots.txt");
    visit(&gate, GPTBOT, "/cart/");
    let row = eventually("it broke a rule", || {
        crawler(&report(&gate), "gptbot").filter(|row| row["part"] == "breaks_rules")
    });
    assert_eq!(row["is_blocked"], false, "{row}");
    let line = row["to_block"]["line"].as_str().expect("a line");
    assert_eq!(row["to_block"]["under"], "", "it stands alone");
    let overview = page(&gate, "/");
    assert!(overview.contains("id=\"block\"") && overview.contains("href=\"#block\""));
    assert!(
        overview.contains(&format!("<code>{line}</code>")),
        "{overview}"
    );

    gate.write_policy("shop", &format!("{POLICY}{line}\n"));
    let reloaded = gate.command(&["reload"]);
    assert_eq!(reloaded.status.code(), Some(0), "{reloaded:?}");
    let answer = gate.get(HOST, "/cart/", &format!("User-Agent: {GPTBOT}\r\n"));
    assert_eq!(answer.status, 403);
    eventually("it is blocked", || {
        let row = crawler(&report(&gate), "gptbot")?;
        (row["is_blocked"] == true).then_some(())
    });
    let row = crawler(&report(&gate), "gptbot").expect("gptbot");
    assert_eq!(row["to_block"], Value::Null, "{row}");
}

#[test]
fn exempt_crawler_passes_now_live_and_from_state() {
    let origin = Origin::plain();
    let gate = observed(Setup::before(origin.address));
    for agent in [GPTBOT, BINGBOT] {
        visit(&gate, agent, "/robots.txt");
        visit(&gate, agent, "/cart/");
    }
    let breaking = |report: &Value, id| {
        let row = crawler(report, id).filter(|row| row["part"] == "breaks_rules")?;
        Some((row["is_blocked"].clone(), row["to_block"].is_null()))
    };
    eventually("both broke a rule", || {
        let report = report(&gate);
        breaking(&report, "gptbot").and(breaking(&report, "bingbot"))
    });
    // The line to write is not for search engines.
    assert_eq!(
        breaking(&report(&gate), "bingbot"),
        Some((false.into(), true))
    );
    let policy = format!("{POLICY}enforcement: {{ mode: enforce, exempt: [GPTBot] }}\n");
    gate.write_policy("shop", &policy);
    assert_eq!(gate.command(&["reload"]).status.code(), Some(0));
    gate.wait_until_stored();
    let directory = |name: &str| gate.path(name).display().to_string();
    let settings = directory("settings.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\norigins: http://127.0.0.1:9\npolicies: {}\n",
        directory("policies")
    );
    fs::write(&settings, text).expect("settings");
    let state = directory("state");
    let arguments = [
        "report", "--since", "3d", "--json", "--state", &state, "--config", &settings,
    ];
    let stored = read_json(&run(&arguments));
    for report in [report(&gate), stored] {
        assert_eq!(breaking(&report, "gptbot"), Some((false.into(), true)));
        assert_eq!(breaking(&report, "bingbot"), Some((true.into(), true)));
    }
}

#[test]
fn link_to_a_line_of_the_policy_opens_it_in_chromium() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = |fragment: &str| {
        let url = format!("http://{}/site?name=shop{fragment}", gate.admin);
        let profile = directory.path().join("profile");
        let dom = chromium(&profile, &["--dump-dom"], &url);
        let dom = String::from_utf8_lossy(&dom).into_owned();
        assert!(dom.contains("id=\"line-6\""), "{dom}");
        dom.matches("<details open=").count()
    };
    assert_eq!((opened(""), opened("#line-6")), (0, 1));
}

#[test]
fn health_says_why_lists_are_not_fetched() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    let health = page(&gate, "/health");
    assert!(health.contains("id=\"lists\""), "{health}");
    assert!(health.contains("identity: { outgoing: yes }"), "{health}");
    assert!(health.contains("class=\"mode observe\""), "{health}");
    assert!(!health.contains('`'), "{health}");
}

#[test]
fn badges_show_what_is_enforced_for_whom() {
    let policy = format!("{POLICY}enforcement: {{ purposes: {{ training: enforce }} }}\n");
    let gate = Setup::before(Origin::nowhere())
        .policy("shop", &policy)
        .start();
    for target in ["/", "/health", "/site?name=shop"] {
        let page = page(&gate, target);
        for badge in [
            "class=\"mode observe\">observe<",
            "class=\"mode enforce\">enforce for training<",
        ] {
            assert!(page.contains(badge), "{target}: {page}");
        }
    }
}

/// Frames of a width with pages in them, and how far each page reaches beyond its frame.
const FRAMES: &str = "<!doctype html><meta charset=utf-8><pre id=out></pre><script>addEventListener('load', () => {\
    out.textContent = [...document.querySelectorAll('iframe')].map(frame => {\
    const page = frame.contentDocument; return [page.title, page.documentElement.scrollWidth - frame.clientWidth, \
    page.querySelectorAll('script, img').length, page.querySelectorAll('h1').length, \
    [...page.querySelectorAll('[aria-label=\"Violations by rule\"]')].filter(table => \
    table.scrollWidth > table.clientWidth).length].join('|') }).join('\\n') })</script>";

#[test]
fn pages_fit_a_phone_and_a_desktop_in_chromium() {
    let origin = Origin::plain();
    let gate = visited(Setup::before(origin.address));
    let style = page(&gate, "/style.css");
    let report = gate.path("report.html");
    let state = gate.path("state").display().to_string();
    run(&[
        "report",
        "--state",
        &state,
        "--html",
        &report.display().to_string(),
    ]);
    let mut pages: Vec<String> = PAGES.iter().map(|target| page(&gate, target)).collect();
    pages.push(fs::read_to_string(report).expect("a report"));
    let mut frames = FRAMES.to_owned();
    for page in &pages {
        let whole = page.replace(
            "<link rel=\"stylesheet\" href=\"/style.css\">",
            &format!("<style>{style}</style>"),
        );
        let quoted = whole.replace('&', "&amp;").replace('"', "&quot;");
        for width in [390, 1280] {
            frames.push_str(&format!(
                "<iframe width={width} height=800 srcdoc=\"{quoted}\"></iframe>"
            ));
        }
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("frames.html");
    fs::write(&file, frames).expect("a page");
    let dom = chromium(
        &directory.path().join("profile"),
        &["--dump-dom"],
        &format!("file://{}", file.display()),
    );
    let dom = String::from_utf8_lossy(&dom);
    let shown = dom
        .split("<pre id=\"out\">")
        .nth(1)
        .and_then(|rest| rest.split("</pre>").next())
        .expect("an answer");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split('|').collect())
        .collect();
    assert_eq!(rows.len(), 2 * pages.len(), "{shown}");
    for row in rows {
        assert!(
            matches!(row[..], [title, "0", "0", "1", "0"] if !title.is_empty()),
            "title, overflow, scripts, h1, violations out of sight: {row:?}"
        );
    }
}
