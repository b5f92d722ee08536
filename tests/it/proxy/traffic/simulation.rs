//! [`Simulation`] draws requests of crawlers, tools and visitors, sends them to a gate, and counts
//! in [`Truth`] what each client sent and got.

use crate::proxy::support::random::Random;
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, Gate, Origin, Setup};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

pub const HOUR: i64 = 3_600;
pub const DAY: i64 = 24 * HOUR;
/// Each site with the mode of its policy; its host is NAME.example.
pub const SITES: [(&str, &str); 3] = [("shop", "enforce"), ("blog", "observe"), ("wiki", "off")];
/// User agent, address, label and identity. The first three have networks.
const CRAWLERS: [[&str; 4]; 13] = [
    ["PartnerBot/1.0", "198.51.100.7", "PartnerBot", "verified"],
    ["FeedBot/2.1", "198.51.100.8", "FeedBot", "verified"],
    [BINGBOT, "198.51.100.9", "bingbot", "verified"],
    ["PartnerBot/1.0", "203.0.113.9", "PartnerBot", "impostor"],
    [BINGBOT, "203.0.113.9", "bingbot", "impostor"],
    [GPTBOT, "203.0.113.9", "gptbot", "unverified"],
    ["ClaudeBot/1.0", "203.0.113.10", "claudebot", "unverified"],
    ["Bytespider", "203.0.113.11", "bytespider", "unverified"],
    ["CCBot/2.0", "203.0.113.12", "ccbot", "unverified"],
    ["Amazonbot/0.1", "203.0.113.13", "amazonbot", "unverified"],
    ["AhrefsBot/7.0", "203.0.113.14", "ahrefsbot", "unverified"],
    [
        "PriceHunter/2.0 (bot)",
        "203.0.113.15",
        UNKNOWN_BOTS,
        "unverified",
    ],
    [
        "Weasel/1 (crawler)",
        "203.0.113.16",
        UNKNOWN_BOTS,
        "unverified",
    ],
];
pub const UNKNOWN_BOTS: &str = "other";
const TOOLS: [[&str; 4]; 2] = [
    ["curl/8.14.1", "203.0.113.20", "curl", "unverified"],
    ["Wget/1.25.0", "203.0.113.21", "wget", "unverified"],
];
const VISITOR: [&str; 4] = [BROWSER, "192.0.2.1", "none", "none"];
const ROBOTS_TXT: &str = "/robots.txt";
/// Target, and the status and bytes of the origin's response. The policies disallow `/cart/`.
const PAGES: [(&str, u16, usize); 10] = [
    ("/", 200, 1_000),
    ("/news?page=2", 200, 70_001),
    ("/news?page=3", 200, 4),
    ("/logo.png", 200, 333),
    ("/unchanged", 304, 0),
    ("/moved", 301, 0),
    ("/missing", 404, 9),
    ("/broken", 500, 12),
    ("/cart/1", 200, 70),
    (ROBOTS_TXT, 200, 0),
];
/// Referer, what is added to the target, and the service that sends the visit.
const REFERRERS: [(&str, &str, Option<&str>); 10] = [
    ("", "", None),
    ("https://chatgpt.com/", "", Some("chatgpt")),
    ("https://www.google.co.uk/search?q=a", "", Some("google")),
    ("https://google.evil.example/", "", None),
    ("https://shop.example/", "utm_source=chatgpt.com", None),
    ("android-app://x", "utm_source=chatgpt.com", Some("chatgpt")),
    ("garbage <script>", "", None),
    ("//\u{fffd}[", "", None),
    ("", "utm_source=perplexity", Some("perplexity")),
    ("", "utm_source=newsletter", None),
];
/// The columns of the counts that are known beforehand: all but the milliseconds of the origin.
pub const COLUMNS: [&str; 15] = [
    "requests",
    "robots_txt",
    "allowed",
    "violation",
    "impostor",
    "not_a_crawler",
    "off",
    "refused",
    "would_refuse",
    "bytes",
    "status_2xx",
    "status_3xx",
    "status_304",
    "status_4xx",
    "status_5xx",
];

/// By column; without zeros.
pub type Numbers = BTreeMap<&'static str, u64>;
/// Site, crawler and identity.
pub type Labels = [&'static str; 3];

/// What the clients sent and got.
#[derive(Default)]
pub struct Truth {
    /// By the beginning of the hour. Visitors are `none`.
    pub numbers: BTreeMap<(i64, Labels), Numbers>,
    /// By the beginning of the day, site and service.
    pub visits: BTreeMap<(i64, [&'static str; 2]), u64>,
    /// By the beginning of the day, labels and path.
    pub paths: BTreeMap<(i64, Labels, &'static str), u64>,
}

/// What a request comes to by the policies: its kind, and the action if it is not forwarded or
/// would not be.
fn kind_and_action(
    [site, crawler, identity]: Labels,
    target: &str,
) -> (Option<&'static str>, Option<&'static str>) {
    let is_bound = !matches!(crawler, "none" | "curl" | "wget");
    let kind = match site {
        _ if target.starts_with(ROBOTS_TXT) => return (None, Some("robots_txt")),
        _ if !is_bound => "not_a_crawler",
        "wiki" => "off",
        _ if identity == "impostor" => "impostor",
        _ if target.starts_with("/cart/") => "violation",
        _ => "allowed",
    };
    let breaks_rules = ["impostor", "violation"].contains(&kind);
    let action = match (site, crawler) {
        // Unknown bots are only observed.
        ("shop", UNKNOWN_BOTS) | ("blog", _) => "would_refuse",
        _ => "refused",
    };
    (Some(kind), Some(action).filter(|_| breaks_rules))
}

pub fn add_numbers(sum: &mut Numbers, numbers: &Numbers) {
    for (column, number) in numbers {
        *sum.entry(column).or_default() += number;
    }
}

impl Truth {
    /// The sums by a key; rows without one are left out.
    pub fn sums<K: Ord>(&self, key: impl Fn(i64, Labels) -> Option<K>) -> BTreeMap<K, Numbers> {
        let mut sums: BTreeMap<K, Numbers> = BTreeMap::new();
        for ((hour, labels), numbers) in &self.numbers {
            if let Some(key) = key(*hour, *labels) {
                add_numbers(sums.entry(key).or_default(), numbers);
            }
        }
        sums
    }

    /// The sum of a column over the rows with labels that are meant.
    pub fn total(&self, column: &str, is_meant: impl Fn(Labels) -> bool) -> u64 {
        let sums = self.sums(|_, labels| is_meant(labels).then_some(()));
        sums.get(&()).map_or(0, |sum| number(sum, column))
    }

    pub fn requests(&self) -> u64 {
        self.total("requests", |_| true)
    }

    pub fn visits_by_service(&self) -> BTreeMap<&str, u64> {
        let mut sums = BTreeMap::new();
        for ((_, [_, service]), visits) in &self.visits {
            *sums.entry(*service).or_default() += visits;
        }
        sums
    }

    fn add(&mut self, now: i64, labels: Labels, numbers: &Numbers) {
        let known = self.numbers.entry((now - now % HOUR, labels)).or_default();
        add_numbers(known, numbers);
    }
}

pub fn number(numbers: &Numbers, column: &str) -> u64 {
    numbers.get(column).copied().unwrap_or_default()
}

fn status_column(status: u16) -> &'static str {
    match status {
        304 => "status_304",
        200..=299 => "status_2xx",
        300..=399 => "status_3xx",
        400..=499 => "status_4xx",
        _ => "status_5xx",
    }
}

pub fn is_crawler([_, crawler, identity]: Labels) -> bool {
    !matches!(crawler, "none" | "curl" | "wget") && identity != "impostor"
}

pub fn origin() -> Origin {
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

/// Sends requests to a gate, and counts them.
pub struct Simulation {
    random: Random,
    pub truth: Truth,
}

impl Simulation {
    pub fn seeded(seed: u64) -> Simulation {
        Simulation {
            random: Random::seeded(seed),
            truth: Truth::default(),
        }
    }

    /// A page as a client gets it. Returns its status.
    fn request(
        &mut self,
        gate: &Gate,
        site: &'static str,
        client: &[&'static str; 4],
        request: [&str; 2],
        more_fields: &str,
    ) -> u16 {
        let [agent, address, crawler, identity] = *client;
        let [method, target] = request;
        let fields = format!("User-Agent: {agent}\r\nX-Forwarded-For: {address}\r\n{more_fields}");
        let response = gate.ask(method, &format!("{site}.example"), target, &fields);
        let labels = [site, crawler, identity];
        let (kind, action) = kind_and_action(labels, target);
        let page = PAGES.iter().rfind(|(page, ..)| target.starts_with(page));
        let (page, status, bytes) = *page.expect("a page");
        let is_forwarded = !matches!(action, Some("refused" | "robots_txt"));
        let expected = match action {
            Some("refused") => 403,
            _ => status,
        };
        assert_eq!(response.status, expected, "{labels:?} {method} {target}");
        if is_forwarded && method == "GET" {
            assert_eq!(response.body.len(), bytes, "{labels:?} {target}");
        }
        let status = Some(status_column(status)).filter(|_| is_forwarded);
        let counted = [Some("requests"), kind, action, status];
        let mut numbers: Numbers = counted.into_iter().flatten().map(|it| (it, 1)).collect();
        if !response.body.is_empty() {
            numbers.insert("bytes", response.body.len() as u64);
        }
        let now = gate.now();
        self.truth.add(now, labels, &numbers);
        if crawler != "none" {
            let path = page.split('?').next().unwrap_or_default();
            let key = (now - now % DAY, labels, path);
            *self.truth.paths.entry(key).or_default() += 1;
        }
        response.status
    }

    /// The first request of each crawler with networks: those that verified no client yet prove no
    /// impostor.
    pub fn verify(&mut self, gate: &Gate) {
        for (site, _) in SITES {
            for crawler in &CRAWLERS[..3] {
                self.request(gate, site, crawler, ["GET", "/"], "");
            }
        }
        gate.wait_for_metric("crawlgate_requests_total{identity=\"verified\"}", 9.0);
    }

    pub fn random_request(&mut self, gate: &Gate) {
        let (site, _) = *self.random.one(&SITES).expect("one");
        let (target, ..) = *self.random.one(&PAGES).expect("one");
        let clients = match self.random.below(10) {
            0..5 => &CRAWLERS[..],
            5 => &TOOLS[..],
            _ => return self.request_of_visitor(gate, site, target),
        };
        let client = self.random.one(clients).expect("one");
        // A crawler is no visitor, whatever it sends.
        let referer = "Referer: https://chatgpt.com/\r\n";
        self.request(gate, site, client, ["GET", target], referer);
    }

    fn request_of_visitor(&mut self, gate: &Gate, site: &'static str, target: &str) {
        let (referer, added, service) = *self.random.one(&REFERRERS).expect("one");
        let separator = if target.contains('?') { '&' } else { '?' };
        let sent_to = format!("{target}{separator}{added}");
        let fields = match referer {
            "" => String::new(),
            referer => format!("Referer: {referer}\r\n"),
        };
        let method = if self.random.percent(10) {
            "HEAD"
        } else {
            "GET"
        };
        let status = self.request(gate, site, &VISITOR, [method, &sent_to], &fields);
        let is_page = !["/logo.png", ROBOTS_TXT].contains(&target);
        let is_visit = method == "GET" && matches!(status, 200 | 304) && is_page;
        if let Some(service) = service.filter(|_| is_visit) {
            let now = gate.now();
            let key = (now - now % DAY, [site, service]);
            *self.truth.visits.entry(key).or_default() += 1;
        }
    }
}

pub fn setup(origin: &Origin, settings: &str) -> Setup {
    let mut setup = Setup::before(origin.address)
        .settings(&format!("trusted_proxies: [127.0.0.1]\n{settings}"));
    for (site, mode) in SITES {
        let policy = format!(
            "hosts: [{site}.example]\n\
             crawlers:\n\
             - {{ token: PartnerBot, networks: 198.51.100.0/24 }}\n\
             - {{ token: FeedBot, networks: 198.51.100.8/32 }}\n\
             - {{ token: Bingbot, networks: 198.51.100.0/24 }}\n\
             robots: {{ origin: replace, previous: before.txt, groups: [{{ agents: \"*\", disallow: /cart/ }}] }}\n\
             enforcement: {{ mode: {mode}, behind_cache: no }}\n"
        );
        setup = setup.policy(site, &policy);
    }
    let before = setup.policies().join("before.txt");
    fs::write(before, "User-agent: *\nDisallow: /cart/\n").expect("the file from before");
    setup
}
