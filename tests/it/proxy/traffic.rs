//! What crawlers read, what they get, and who sends visitors: a simulated day comes to the numbers
//! that it was made of, in metrics, history and report, also over a restart.

use crate::proxy::support::random::Random;
use crate::proxy::support::{BROWSER, GPTBOT, Gate, Origin, Setup, eventually, sum_of};
use rusqlite::Connection as Database;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

const HOST: &str = "shop.example";
const POLICY: &str = "\
hosts: [shop.example]
crawlers: [{ token: PartnerBot, networks: 198.51.100.0/24 }]
robots: { origin: replace, groups: [{ agents: \"*\", disallow: /cart/ }] }
";
/// User agent, address, label and identity.
const CRAWLERS: [[&str; 4]; 3] = [
    ["PartnerBot/1.0", "198.51.100.7", "PartnerBot", "verified"],
    ["PartnerBot/1.0", "203.0.113.9", "PartnerBot", "impostor"],
    [GPTBOT, "203.0.113.9", "gptbot", "unverified"],
];
/// Target, status and bytes of the origin's response.
const PAGES: [(&str, u16, usize); 7] = [
    ("/", 200, 1_000),
    ("/news?page=2", 200, 70_001),
    ("/news?page=3", 200, 4),
    ("/logo.png", 200, 333),
    ("/unchanged", 304, 0),
    ("/moved", 301, 0),
    ("/missing", 404, 9),
];
/// Referer, what is added to the target, and the service that sends the visit.
const REFERRERS: [(&str, &str, Option<&str>); 9] = [
    ("", "", None),
    ("https://chatgpt.com/", "", Some("chatgpt")),
    ("https://www.google.co.uk/search?q=a", "", Some("google")),
    ("https://google.evil.example/", "", None),
    ("https://shop.example/", "utm_source=chatgpt.com", None),
    ("android-app://x", "utm_source=chatgpt.com", Some("chatgpt")),
    ("garbage <script>", "", None),
    ("", "utm_source=perplexity", Some("perplexity")),
    ("", "utm_source=newsletter", None),
];
const STATUSES: [&str; 4] = ["2xx", "3xx", "304", "4xx"];

#[derive(Debug, Default, PartialEq)]
struct Numbers {
    requests: u64,
    bytes: u64,
    statuses: [u64; STATUSES.len()],
}

impl Numbers {
    fn add(&mut self, status: u16, bytes: usize) {
        self.requests += 1;
        self.bytes += bytes as u64;
        let place = match status {
            200 => 0,
            301 => 1,
            304 => 2,
            _ => 3,
        };
        self.statuses[place] += 1;
    }
}

/// What the day was made of.
#[derive(Default)]
struct Truth {
    /// By crawler and identity; visitors are `none`.
    numbers: BTreeMap<[&'static str; 2], Numbers>,
    visits: BTreeMap<&'static str, u64>,
    /// By crawler, identity and path.
    paths: BTreeMap<[&'static str; 3], u64>,
}

fn origin() -> Origin {
    Origin::start(|received, stream| {
        let target = received.target();
        // The last one that fits: every target begins with the first one.
        let page = PAGES.iter().rfind(|(page, ..)| target.starts_with(page));
        let (_, status, bytes) = page.expect("a page");
        let length = match status {
            304 => String::new(),
            _ => format!("Content-Length: {bytes}\r\n"),
        };
        let head = format!("HTTP/1.1 {status} x\r\nContent-Type: text/html\r\n{length}\r\n");
        let is_head = received.line.starts_with("HEAD ");
        let body = "x".repeat(if is_head { 0 } else { *bytes });
        stream.write_all((head + &body).as_bytes()).is_ok()
    })
}

fn request_of_crawler(
    gate: &Gate,
    crawlers: &[[&'static str; 4]],
    random: &mut Random,
    truth: &mut Truth,
) {
    let [agent, address, crawler, identity] = *random.one(crawlers).expect("one");
    let (target, status, bytes) = *random.one(&PAGES).expect("one");
    // A crawler is no visitor, whatever it sends.
    let fields = format!(
        "User-Agent: {agent}\r\nX-Forwarded-For: {address}\r\nReferer: https://chatgpt.com/\r\n"
    );
    assert_eq!(gate.get(HOST, target, &fields).status, status);
    let numbers = truth.numbers.entry([crawler, identity]).or_default();
    numbers.add(status, bytes);
    let path = target.split('?').next().unwrap_or_default();
    *truth.paths.entry([crawler, identity, path]).or_default() += 1;
}

fn request_of_visitor(gate: &Gate, random: &mut Random, truth: &mut Truth) {
    let (target, status, bytes) = *random.one(&PAGES).expect("one");
    let (referer, added, service) = *random.one(&REFERRERS).expect("one");
    let separator = if target.contains('?') { '&' } else { '?' };
    let sent_to = format!("{target}{separator}{added}");
    let mut fields = format!("User-Agent: {BROWSER}\r\nX-Forwarded-For: 192.0.2.1\r\n");
    if !referer.is_empty() {
        fields += &format!("Referer: {referer}\r\n");
    }
    let is_head = random.percent(10);
    let method = if is_head { "HEAD" } else { "GET" };
    assert_eq!(gate.ask(method, HOST, &sent_to, &fields).status, status);
    let numbers = truth.numbers.entry(["none", "none"]).or_default();
    numbers.add(status, if is_head { 0 } else { bytes });
    let is_visit = !is_head && matches!(status, 200 | 304) && target != "/logo.png";
    if let Some(service) = service.filter(|_| is_visit) {
        *truth.visits.entry(service).or_default() += 1;
    }
}

/// A day of so many requests.
fn simulate(gate: &mut Gate, requests: usize, random: &mut Random) -> Truth {
    let mut truth = Truth::default();
    for number in 1..=requests {
        if number == 1 {
            // Networks that verified nobody yet prove no impostor.
            request_of_crawler(gate, &CRAWLERS[..1], random, &mut truth);
            gate.wait_for_metric("crawlgate_requests_total{identity=\"verified\"}", 1.0);
        } else if random.percent(50) {
            request_of_crawler(gate, &CRAWLERS, random, &mut truth);
        } else {
            request_of_visitor(gate, random, &mut truth);
        }
        if number % (requests / 4) == 0 {
            gate.wait_for_metric("crawlgate_requests_total{site=\"shop\"}", number as f64);
            gate.live_through(6 * 3_600);
        }
    }
    truth
}

fn assert_metrics(gate: &Gate, truth: &Truth) {
    let metrics = gate.metrics();
    let value = |name: &str, labels: String| {
        let series = format!("crawlgate_{name}{{site=\"shop\",{labels}}}");
        sum_of(&metrics, &series).unwrap_or_default() as u64
    };
    for ([crawler, identity], numbers) in &truth.numbers {
        let labels = format!("crawler=\"{crawler}\",identity=\"{identity}\"");
        let found = Numbers {
            requests: value("requests_total", labels.clone()),
            bytes: value("sent_bytes_total", labels.clone()),
            statuses: STATUSES
                .map(|status| value("responses_total", format!("{labels},status=\"{status}\""))),
        };
        assert_eq!(found, *numbers, "{crawler} {identity}");
    }
    for (service, visits) in &truth.visits {
        let found = value("visits_total", format!("service=\"{service}\""));
        assert_eq!(found, *visits, "{service}");
    }
    let all = sum_of(&metrics, "crawlgate_visits_total");
    assert_eq!(all, Some(truth.visits.values().sum::<u64>() as f64));
}

/// The report of the running crawlgate, once it has so many requests.
fn whole_report(gate: &Gate, requests: u64) -> Value {
    eventually("the history has all of it", || {
        let output = gate.command(&["report", "--since", "3d", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).ok()?;
        (report["traffic"]["requests"]["all"] == requests).then_some(report)
    })
}

fn assert_report(report: &Value, truth: &Truth) {
    let rows = report["crawlers"].as_array().expect("rows");
    for ([crawler, identity], numbers) in &truth.numbers {
        if *crawler == "none" {
            assert_eq!(report["visitors"], numbers.requests);
            continue;
        }
        let is_row = |row: &&Value| row["id"] == *crawler && row["identity"] == *identity;
        let counts = &rows.iter().find(is_row).expect("a row")["counts"];
        let count = |column: &str| counts[column].as_u64().unwrap_or_default();
        let found = Numbers {
            requests: count("requests"),
            bytes: count("bytes"),
            statuses: STATUSES.map(|status| count(&format!("status_{status}"))),
        };
        assert_eq!(found, *numbers, "{crawler} {identity}");
    }
    let services = report["traffic"]["services"].as_array().expect("services");
    let visits: BTreeMap<&str, u64> = services
        .iter()
        .map(|row| {
            let service = row["service"].as_str().expect("an id");
            (service, row["visits"].as_u64().expect("visits"))
        })
        .collect();
    assert_eq!(visits, truth.visits);
    let of_crawlers: Vec<&Numbers> = truth
        .numbers
        .iter()
        .filter(|([crawler, identity], _)| *crawler != "none" && *identity != "impostor")
        .map(|(_, numbers)| numbers)
        .collect();
    let all = |number: fn(&Numbers) -> u64| truth.numbers.values().map(number).sum::<u64>();
    for (part, number) in [
        (
            "requests",
            (|numbers| numbers.requests) as fn(&Numbers) -> u64,
        ),
        ("bytes", |numbers| numbers.bytes),
    ] {
        let crawlers: u64 = of_crawlers.iter().map(|numbers| number(numbers)).sum();
        let share = &report["traffic"][part];
        assert_eq!(
            (&share["crawlers"], &share["all"]),
            (&crawlers.into(), &all(number).into())
        );
    }
}

fn stored_paths(gate: &Gate) -> Vec<(String, u64)> {
    let database = Database::open(gate.path("state/state.db")).expect("the state");
    let mut statement = database
        .prepare(
            "SELECT crawler || ' ' || identity || ' ' || path, SUM(requests) FROM history_paths WHERE site = 'shop' GROUP \
             BY crawler, identity, path ORDER BY 1",
        )
        .expect("a query");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

fn expected_paths(truth: &Truth) -> Vec<(String, u64)> {
    let paths = truth.paths.iter();
    paths
        .map(|(labels, requests)| (labels.join(" "), *requests))
        .collect()
}

fn start(origin: &Origin, settings: &str) -> Gate {
    Setup::before(origin.address)
        .settings(&format!("trusted_proxies: [127.0.0.1]\n{settings}"))
        .policy("shop", POLICY)
        .with_clock()
        .start()
}

#[test]
fn simulated_day_comes_to_its_exact_numbers() {
    let origin = origin();
    let mut gate = start(&origin, "");
    let mut random = Random::seeded(51);
    let mut truth = simulate(&mut gate, 240, &mut random);
    assert_metrics(&gate, &truth);
    assert_report(&whole_report(&gate, 240), &truth);
    gate.restart("TERM", |gate| {
        assert_eq!(stored_paths(gate), expected_paths(&truth));
    });
    // The next run continues the paths of the day.
    for number in 1..=40 {
        request_of_crawler(&gate, &CRAWLERS, &mut random, &mut truth);
        gate.wait_for_metric("crawlgate_requests_total{site=\"shop\"}", f64::from(number));
    }
    gate.restart("TERM", |gate| {
        assert_eq!(stored_paths(gate), expected_paths(&truth));
    });
}

#[test]
fn history_without_paths_keeps_everything_else() {
    let origin = origin();
    let mut gate = start(&origin, "history: { paths: no }");
    let truth = simulate(&mut gate, 40, &mut Random::seeded(52));
    assert_report(&whole_report(&gate, 40), &truth);
    gate.restart("TERM", |gate| assert_eq!(stored_paths(gate), []));
}
