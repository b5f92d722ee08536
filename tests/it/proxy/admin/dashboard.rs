//! The dashboard and the history behind it, on the running binary: what it shows, what it refuses,
//! and that it outlasts a crash.

use crate::proxy::support::{
    BINGBOT, Connection, GPTBOT, Gate, Origin, Response, Setup, chromium, eventually, run,
};
use serde_json::Value;
use std::fs;

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

/// A host that was observed for more than a day, and then visited: one crawler obeys, one does not.
fn visited(setup: Setup) -> Gate {
    let mut gate = setup.policy("shop", POLICY).with_clock().start();
    for _ in 0..6 {
        visit(&gate, BINGBOT, "/");
        gate.live_through(5 * HOUR);
    }
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

fn report(gate: &Gate) -> Value {
    let state = gate.path("state").display().to_string();
    let output = run(&["report", "--since", "3d", "--state", &state, "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

fn crawler(report: &Value, id: &str) -> Option<Value> {
    report["crawlers"]
        .as_array()?
        .iter()
        .find(|crawler| crawler["id"] == id)
        .cloned()
}

#[test]
fn history_outlasts_a_crash_and_leads_from_counts_to_samples_to_the_policy() {
    let origin = Origin::plain();
    let mut gate = visited(Setup::before(origin.address));
    gate.wait_until_stored();
    gate.restart("KILL", |_| {});
    let of_gptbot = crawler(&report(&gate), "gptbot").expect("gptbot");
    assert_eq!(
        (
            &of_gptbot["counts"]["would_refuse"],
            &of_gptbot["counts"]["robots_txt"]
        ),
        (&25.into(), &1.into())
    );
    let of_bing = crawler(&report(&gate), "bingbot").expect("bingbot");
    assert_eq!(
        (of_bing["compliance"].as_f64(), &of_bing["broke"]),
        (Some(100.0), &Value::Null)
    );

    // `mode: enforce` alone refuses no unlisted bot.
    let report = report(&gate);
    assert_eq!(
        (
            &report["totals"]["would_refuse"],
            &report["unlisted_would_refuse"]
        ),
        (&25.into(), &1.into())
    );
    let (site, by_identity) = (&report["sites"][0], &report["by_identity"]["unverified"]);
    assert_eq!(
        (
            &site["counts"]["would_refuse"],
            &site["unlisted_would_refuse"]
        ),
        (&25.into(), &1.into()),
        "{site}"
    );
    assert_eq!(by_identity["would_refuse"], 25, "{by_identity}");
    let unlisted = crawler(&report, "other").expect("unlisted bots");
    let counts = (
        &unlisted["counts"]["would_refuse"],
        &unlisted["unlisted_would_refuse"],
    );
    assert_eq!(counts, (&Value::Null, &1.into()), "{unlisted}");
    let overview = page(&gate, "/");
    assert!(overview.contains("<b>25</b>"), "{overview}");
    assert!(
        overview.contains("/crawler?id=gptbot") && overview.contains("SomeNewBot"),
        "{overview}"
    );
    for target in ["/", "/site?name=shop", "/crawler?id=other"] {
        assert!(
            page(&gate, target).contains("purposes: { other: enforce }"),
            "{target}"
        );
    }
    assert!(page(&gate, "/crawler?id=gptbot").contains(">--as</span> gptbot</code>"));
    let samples = page(&gate, "/violations?crawler=gptbot");
    assert_eq!(
        samples.matches("<li><p><strong>").count(),
        20,
        "the first 20 of a day"
    );
    assert!(
        samples.contains("From 127.0.0.0, "),
        "a network and no address: {samples}"
    );
    let line = samples
        .split("href=\"/site?name=shop#line-")
        .nth(1)
        .expect("a link to the policy");
    let line: usize = line
        .split('"')
        .next()
        .and_then(|line| line.parse().ok())
        .expect("a number");
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
        (report(&gate)["totals"]["requests"] == 14).then_some(())
    });
    gate
}

#[test]
fn impostors_and_unproven_names_do_not_count_against_the_crawler() {
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
    assert_eq!(
        (verified["compliance"].as_f64(), &verified["broke"]),
        (Some(100.0), &Value::Null),
        "{verified}"
    );
    assert_eq!(unverified["counts"]["violation"], 3, "{unverified}");
    assert_eq!(
        (
            &impostor["counts"]["impostor"],
            &impostor["counts"]["violation"]
        ),
        (&4.into(), &Value::Null)
    );
    assert_eq!(impostor["compliance"], Value::Null, "{impostor}");
    assert_eq!(report["by_identity"]["impostor"]["requests"], 4);
    let summary = report["summary"].to_string();
    assert!(
        summary.contains("10 requests"),
        "impostors are no crawlers: {summary}"
    );

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
    for target in [
        "/",
        "/site?name=shop",
        "/crawler?id=googlebot",
        "/violations",
    ] {
        let page = page(&gate, target);
        for words in [
            "verified",
            "claims to be Googlebot; nothing is proven",
            "impostor: proven not to be Googlebot",
        ] {
            let is_of_samples = target == "/violations" && words == "verified";
            assert!(page.contains(words) || is_of_samples, "{target}: {words}");
        }
    }
    let chosen = page(&gate, "/violations?identity=impostor");
    assert!(
        chosen.contains("impostor: ") && !chosen.contains("claims to be"),
        "{chosen}"
    );
}

#[test]
fn a_report_counts_alike_in_its_head_and_its_sites() {
    let origin = Origin::plain();
    let gate = visited(Setup::before(origin.address));
    let state = gate.path("state").display().to_string();
    let output = run(&["report", "--since", "3d", "--state", &state]);
    let text = String::from_utf8(output.stdout).expect("text");
    let summary = text.split("\n\n").nth(1).expect("the summary");
    let mut numbers = summary.split(|sign: char| !sign.is_ascii_digit());
    assert!(numbers.any(|number| number == "25"), "{text}");
    let site = text
        .lines()
        .skip_while(|line| !line.starts_with("site "))
        .nth(1)
        .expect("the row of the site");
    let numbers: Vec<&str> = site.split_whitespace().skip(5).collect();
    assert_eq!(
        numbers,
        ["25", "1", "0"],
        "would be refused, unlisted bots, refused: {site}"
    );
    let column = |row: &str| {
        let row = text
            .lines()
            .find(|line| line.starts_with(row))
            .expect("a row");
        row.split_whitespace().nth_back(1).map(str::to_owned)
    };
    assert_eq!(column("all  "), Some("25".to_owned()), "{text}");
    // An hour is an hour: the visits before it are not in it.
    let output = run(&["report", "--since", "1h", "--state", &state, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let [from, to] = ["from", "to"].map(|name| report[name].as_str().expect("a time").to_owned());
    assert!(from.ends_with(":00:00Z") && from < to, "{from} {to}");
    assert_eq!(
        run(&["report", "--since", "30m", "--state", &state])
            .status
            .code(),
        Some(2)
    );
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
