//! Proof of crawlers on the running binary: published lists from a server that misbehaves, and
//! reverse DNS from a DNS server of our own. No address leaves loopback.

mod client_address;
mod forged;

use crate::proxy::support::dns::{Dns, Record, Reply, reverse};
use crate::proxy::support::{Gate, Origin, Response, Setup, eventually, read, run, sum_of};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const POLICY: &str = r#"
hosts: [shop.example]
robots: { origin: replace, groups: [{ agents: "*", disallow: [/cart/] }] }
enforcement: { mode: enforce, behind_cache: no, impostor: 410, unverified: refuse }
"#;
const GOOGLEBOT: &str = "Googlebot/2.1";
const GPTBOT_LIST: &str = "/openai.com/gptbot.json";
/// Of DuckAssistBot.
const DIRECTORY: &str = "/assistbot.duckduckgo.com/.well-known/http-message-signatures-directory";
const LISTED: &str = r#"{"creationTime": "2024-01-01T00:00:00", "prefixes": [
    {"ipv4Prefix": "198.51.100.0/25"}, {"ipv4Prefix": "198.51.100.128/25"}, {"ipv6Prefix": "2001:db8:1::/48"}]}"#;

/// A server of lists whose answer for the list of GPTBot can be changed; it has no other list.
struct Lists {
    server: Origin,
    answer: Arc<Mutex<String>>,
}

fn lists() -> Lists {
    let answer = Arc::new(Mutex::new(listing(LISTED)));
    let said = answer.clone();
    let server = Origin::start(move |request, stream| {
        let said = said.lock().expect("an answer").clone();
        let _ = match request.target() {
            GPTBOT_LIST if said == "slow" => {
                // Silent until the client gives up.
                let _ = stream.read(&mut [0]);
                return false;
            }
            GPTBOT_LIST if request.field("if-none-match").is_some() && said.contains("\"v1\"") => {
                stream.write_all(b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n")
            }
            GPTBOT_LIST => stream.write_all(said.as_bytes()),
            DIRECTORY => stream.write_all(directory().as_bytes()),
            "/moved.json" => stream.write_all(listing(LISTED).as_bytes()),
            _ => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        };
        !said.contains("Connection: close")
    });
    Lists { server, answer }
}

fn listing(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl Lists {
    fn say(&self, answer: impl Into<String>) {
        *self.answer.lock().expect("an answer") = answer.into();
    }
}

/// What DNS says of the addresses of these tests.
fn zone(name: &str) -> Reply {
    let ptr = |name: &str| Reply::Records(vec![Record::Ptr(name.to_owned())]);
    let at =
        |address: &str| Reply::Records(vec![Record::Address(address.parse().expect("an address"))]);
    let names = [
        ("203.0.113.1", "crawl-203-0-113-1.googlebot.com"),
        ("203.0.113.2", "googlebot.com.evil.example"),
        ("203.0.113.3", "notgooglebot.com"),
        ("203.0.113.4", "crawl-203-0-113-4.googlebot.com"),
        ("203.0.113.5", "late.googlebot.com"),
        ("2001:db8:7::1", "six.googlebot.com"),
        // Neither name has an address.
        ("203.0.113.12", "baiduspider-203-0-113-12.crawl.baidu.com"),
        ("203.0.113.13", "x.googlebot.com"),
    ];
    if let Some((_, named)) = names.iter().find(|(address, _)| reverse(address) == name) {
        return ptr(named);
    }
    match name {
        "crawl-203-0-113-1.googlebot.com" => at("203.0.113.1"),
        // The name leads elsewhere.
        "crawl-203-0-113-4.googlebot.com" => at("203.0.113.99"),
        "late.googlebot.com" => Reply::Late(
            Duration::from_millis(700),
            vec![Record::Address("203.0.113.5".parse().expect("an address"))],
        ),
        "six.googlebot.com" => at("2001:db8:7::1"),
        "b.googlebot.com" => at("203.0.113.6"),
        // RFC 2317: the zone of the address points into another one.
        "6.113.0.203.in-addr.arpa" => Reply::Records(vec![
            Record::Cname("6.0-127.113.0.203.in-addr.arpa".into()),
            Record::Ptr("b.googlebot.com".into()),
        ]),
        "7.113.0.203.in-addr.arpa" => {
            Reply::Truncated(vec![Record::Ptr("b7.googlebot.com".into())])
        }
        "b7.googlebot.com" => Reply::Truncated(vec![Record::Address(
            "203.0.113.7".parse().expect("an address"),
        )]),
        "8.113.0.203.in-addr.arpa" => Reply::ServFail,
        "9.113.0.203.in-addr.arpa" => Reply::Silence,
        "10.113.0.203.in-addr.arpa" => Reply::Records(
            (0..20)
                .map(|number| Record::Ptr(format!("{number}.googlebot.com")))
                .collect(),
        ),
        "11.113.0.203.in-addr.arpa" => Reply::Records(Vec::new()),
        _ => Reply::NxDomain,
    }
}

fn shop(origin: &Origin, lists: &Lists, dns: &Dns) -> Setup {
    let settings = format!(
        "trusted_proxies: [127.0.0.1]\nlogs: {{ events: events.log }}\n\
         identity: {{ outgoing: yes, lists: 'http://{}', resolvers: ['{}'] }}",
        lists.server.address, dns.address
    );
    Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings(&settings)
        .with_clock()
}

fn from(gate: &Gate, client: &str, user_agent: &str) -> Response {
    gate.get(
        "shop.example",
        "/",
        &format!("User-Agent: {user_agent}\r\nX-Forwarded-For: {client}\r\n"),
    )
}

/// Asks until the answer has this status: a proof comes soon, and not with the first request.
fn becomes(gate: &Gate, client: &str, user_agent: &str, status: u16) -> Response {
    eventually(&format!("{status} for {user_agent} from {client}"), || {
        Some(from(gate, client, user_agent)).filter(|response| response.status == status)
    })
}

fn known(gate: &Gate, networks: f64) {
    gate.wait_for_metric(
        "crawlgate_identity_list_networks{list=\"openai.com/gptbot.json\"}",
        networks,
    );
}

fn identified(crawler: &str, outcome: &str) -> String {
    format!("crawlgate_identity_total{{crawler=\"{crawler}\",outcome=\"{outcome}\"}}")
}

fn update(gate: &Gate) -> Value {
    let output = gate.command(&["crawlers", "--update", "--json"]);
    let lists: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    lists
        .into_iter()
        .find(|list| list["url"] == "https://openai.com/gptbot.json")
        .expect("the list of GPTBot")
}

/// What an audit with the state of a running crawlgate says of a request from the list and one from
/// elsewhere.
fn audited(gate: &Gate) -> Value {
    let line = |client: &str| {
        format!(
            "{client} - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"Mozilla/5.0 (compatible; GPTBot/1.2)\"\n"
        )
    };
    let (log, robots) = (gate.path("old.log"), gate.path("old.txt"));
    std::fs::write(&log, line("198.51.100.200") + &line("203.0.113.50")).expect("a log");
    std::fs::write(&robots, "User-agent: *\nDisallow: /\n").expect("a robots.txt");
    let path = |path: &std::path::Path| path.display().to_string();
    let output = run(&[
        "audit",
        "--json",
        "--robots",
        &path(&robots),
        "--state",
        &path(&gate.path("state")),
        &path(&log),
    ]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["crawlers"].as_array().expect("rows of crawlers");
    let requests = |identity: &str| {
        let row = rows.iter().find(|row| row["identity"] == identity);
        row.map_or(Value::from(0), |row| row["counts"]["requests"].clone())
    };
    ["verified", "suspected_impostor", "unverified"]
        .map(requests)
        .into_iter()
        .collect()
}

#[test]
fn a_published_list_verifies_and_accuses() {
    let (origin, lists, dns) = (Origin::plain(), lists(), Dns::start(zone));
    let mut gate = shop(&origin, &lists, &dns).start();
    known(&gate, 3.0);
    let refused = from(&gate, "203.0.113.50", "GPTBot/1.2");
    assert_eq!(
        refused.status, 503,
        "a list that verified no visit accuses nobody"
    );
    assert_eq!(refused.field("retry-after"), Some("60"));
    gate.wait_for_metric(&identified("gptbot", "suspended"), 1.0);
    assert_eq!(from(&gate, "198.51.100.200", "GPTBot/1.2").status, 200);
    assert_eq!(from(&gate, "2001:db8:1::7", "GPTBot/1.2").status, 200);
    gate.wait_for_metric(&identified("gptbot", "verified"), 2.0);
    assert_eq!(from(&gate, "203.0.113.50", "GPTBot/1.2").status, 410);
    gate.wait_for_metric(&identified("gptbot", "impostor"), 1.0);
    let event = eventually("the event", || {
        read(&gate.path("events.log"))
            .lines()
            .find(|line| line.contains("\"impostor\""))
            .map(str::to_owned)
    });
    let event: Value = serde_json::from_str(&event).expect("a JSON line");
    assert_eq!(
        (&event["identity"], &event["proof"]),
        (&"impostor".into(), &"list".into()),
        "{event}"
    );
    let said = gate.command(&[
        "explain",
        "--live",
        "--host",
        "shop.example",
        "--user-agent",
        "GPTBot",
        "--ip",
        "198.51.100.9",
        "/",
        "--json",
    ]);
    let said: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!(said["evidence"][0]["id"], "list-inside", "{said}");
    assert_eq!(dns.questions(), 0, "GPTBot has no host names");

    gate.wait_until_stored();
    assert_eq!(audited(&gate), serde_json::json!([1, 1, 0]));

    // The list is there at once after a restart, without its server.
    lists.say("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    gate.restart("KILL", |_| ());
    assert_eq!(from(&gate, "203.0.113.50", "GPTBot/1.2").status, 410);
    // After eight days without a word of the server it accuses nobody, and still verifies.
    gate.live_through(8 * 86_400);
    assert_eq!(from(&gate, "198.51.100.200", "GPTBot/1.2").status, 200);
    assert_eq!(from(&gate, "203.0.113.50", "GPTBot/1.2").status, 503);
}

#[test]
fn a_list_server_that_misbehaves_changes_nothing() {
    let (origin, lists, dns) = (Origin::plain(), lists(), Dns::start(zone));
    let gate = shop(&origin, &lists, &dns).start();
    known(&gate, 3.0);
    let text = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    for (what, answer, result) in [
        ("empty", text("{\"prefixes\": []}"), "refused"),
        ("nothing", text(""), "refused"),
        ("half of it", text(&LISTED[..90]), "refused"),
        ("a page", text("<!doctype html><p>moved"), "refused"),
        ("everybody", text("[\"0.0.0.0/0\"]"), "refused"),
        ("shrunken", text("[\"198.51.100.0/25\"]"), "refused"),
        (
            "huge",
            format!(
                "{close}Content-Length: 5000000\r\n\r\n{}",
                " ".repeat(5_000_000)
            ),
            "refused",
        ),
        (
            "broken off",
            format!("{close}Content-Length: 900\r\n\r\n{LISTED}"),
            "unreachable",
        ),
        (
            "gone",
            "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "unreachable",
        ),
        (
            "in a circle",
            format!("HTTP/1.1 302 Found\r\nLocation: {GPTBOT_LIST}\r\nContent-Length: 0\r\n\r\n"),
            "unreachable",
        ),
        (
            "elsewhere",
            "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"
                .to_owned(),
            "unreachable",
        ),
        ("slow", "slow".to_owned(), "unreachable"),
    ] {
        lists.say(answer);
        let list = update(&gate);
        assert_eq!(
            (&list["result"], &list["networks"]),
            (&result.into(), &3.into()),
            "{what}: {list}"
        );
        assert!(list["error"].is_string(), "{what}: {list}");
    }
    assert_eq!(
        from(&gate, "198.51.100.200", "GPTBot/1.2").status,
        200,
        "the former list still counts"
    );
    lists.say(listing(LISTED));
    assert_eq!(update(&gate)["result"], "unchanged");
    lists.say("HTTP/1.1 302 Found\r\nLocation: /moved.json\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(
        update(&gate)["result"],
        "unchanged",
        "a redirect is followed"
    );
    lists.say(text("[\"198.51.100.0/24\", \"192.0.2.0/24\"]"));
    let list = update(&gate);
    assert_eq!(
        (&list["result"], &list["networks"]),
        (&"changed".into(), &2.into()),
        "{list}"
    );
    assert_eq!(
        list["added"],
        serde_json::json!(["192.0.2.0/24", "198.51.100.0/24"])
    );
    known(&gate, 2.0);
}

#[test]
fn reverse_dns_result_survives_a_restart() {
    let (origin, lists, dns) = (Origin::plain(), lists(), Dns::start(zone));
    let mut gate = shop(&origin, &lists, &dns).start();
    let first = from(&gate, "203.0.113.1", GOOGLEBOT);
    assert_eq!(
        (first.status, first.field("retry-after")),
        (503, Some("60")),
        "no request waits for DNS"
    );
    assert_eq!(
        gate.get(
            "shop.example",
            "/robots.txt",
            &format!("User-Agent: {GOOGLEBOT}\r\nX-Forwarded-For: 203.0.113.2\r\n")
        )
        .status,
        200
    );
    becomes(&gate, "203.0.113.1", GOOGLEBOT, 200);
    becomes(&gate, "203.0.113.5", GOOGLEBOT, 200);
    becomes(&gate, "2001:db8:7::1", GOOGLEBOT, 200);
    assert_eq!(dns.asked(&reverse("203.0.113.1")), 1, "an answer is kept");
    assert_eq!(
        from(&gate, "203.0.113.1", "Googlebot-Image/1.0").status,
        200,
        "one answer serves all names of an operator"
    );
    assert_eq!(from(&gate, "203.0.113.1", "bingbot/2.0").status, 503);
    gate.wait_until_stored();
    gate.restart("KILL", |_| ());
    assert_eq!(from(&gate, "203.0.113.1", GOOGLEBOT).status, 200);
    assert_eq!(
        dns.asked(&reverse("203.0.113.1")),
        1,
        "a restart forgets no answer"
    );
    // A day later the answer is asked for again, while the former one still counts.
    gate.live_through(86_400);
    assert_eq!(from(&gate, "203.0.113.1", GOOGLEBOT).status, 200);
    eventually("the second question", || {
        (dns.asked(&reverse("203.0.113.1")) == 2).then_some(())
    });
}

#[test]
fn an_impostor_is_one_by_two_answers_ten_minutes_apart() {
    // Yandex documents host names, and no list of networks.
    const YANDEXBOT: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
    let (origin, lists) = (Origin::plain(), lists());
    let dns = Dns::start(|name| match name {
        "1.2.0.192.in-addr.arpa" => Reply::Records(vec![Record::Ptr("a.spider.yandex.com".into())]),
        "a.spider.yandex.com" => Reply::Records(vec![Record::Address(
            "192.0.2.1".parse().expect("an address"),
        )]),
        name => zone(name),
    });
    let mut gate = shop(&origin, &lists, &dns).start();
    becomes(&gate, "192.0.2.1", YANDEXBOT, 200);
    let asked = |times: usize| {
        gate_asked(&dns, "203.0.113.3", times);
    };
    assert_eq!(from(&gate, "203.0.113.3", YANDEXBOT).status, 503);
    asked(1);
    let explained = |gate: &Gate| {
        let question = [
            "explain",
            "--live",
            "--json",
            "--host",
            "shop.example",
            "--user-agent",
            "YandexBot",
            "--ip",
            "203.0.113.3",
            "/",
        ];
        serde_json::from_slice::<Value>(&gate.command(&question).stdout).expect("JSON")
    };
    eventually("the first answer", || {
        (explained(&gate)["evidence"][0]["id"] == "dns-one-answer").then_some(())
    });
    assert_eq!(
        from(&gate, "203.0.113.3", YANDEXBOT).status,
        503,
        "one answer proves nothing"
    );
    gate.live_through(300);
    assert_eq!(from(&gate, "203.0.113.3", YANDEXBOT).status, 503);
    assert_eq!(dns.asked(&reverse("203.0.113.3")), 1);
    gate.live_through(301);
    assert_eq!(from(&gate, "203.0.113.3", YANDEXBOT).status, 503);
    asked(2);
    becomes(&gate, "203.0.113.3", YANDEXBOT, 410);
    let explained = explained(&gate);
    assert_eq!(
        (&explained["identity"], &explained["proof"]),
        (&"impostor".into(), &"reverse_dns".into()),
        "{explained}"
    );
    gate.wait_until_stored();
    gate.restart("KILL", |_| ());
    assert_eq!(
        from(&gate, "203.0.113.3", YANDEXBOT).status,
        410,
        "a restart forgets no impostor"
    );
    // Failures of DNS make none.
    for address in ["203.0.113.8", "203.0.113.10"] {
        for _ in 0..3 {
            assert_eq!(from(&gate, address, YANDEXBOT).status, 503, "{address}");
            gate.live_through(700);
        }
    }
}

#[test]
fn a_name_without_forward_refutes_googlebot_and_not_baidu() {
    const BAIDUSPIDER: &str =
        "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)";
    let origin = Origin::plain();
    let server = Origin::start(|request, stream| {
        let answer = match request.target() {
            "/developers.google.com/static/crawling/ipranges/common-crawlers.json" => {
                listing(LISTED)
            }
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).is_ok()
    });
    let lists = Lists {
        server,
        answer: Arc::default(),
    };
    let dns = Dns::start(|name| match name {
        "14.113.0.203.in-addr.arpa" => {
            Reply::Records(vec![Record::Ptr("a.crawl.baidu.com".into())])
        }
        "a.crawl.baidu.com" => Reply::Records(vec![Record::Address(
            "203.0.113.14".parse().expect("an address"),
        )]),
        name => zone(name),
    });
    let mut gate = shop(&origin, &lists, &dns).start();
    becomes(&gate, "203.0.113.14", BAIDUSPIDER, 200);
    becomes(&gate, "198.51.100.7", GOOGLEBOT, 200);
    let baidu_by_name_alone = "203.0.113.12";
    let forged = "203.0.113.13";
    for _ in 0..3 {
        for (address, user_agent) in [(baidu_by_name_alone, BAIDUSPIDER), (forged, GOOGLEBOT)] {
            let lookups =
                || sum_of(&gate.metrics(), "crawlgate_identity_lookups_total").unwrap_or_default();
            let before = lookups();
            from(&gate, address, user_agent);
            // The clock goes on when the answer has come.
            eventually("an answer", || (lookups() > before).then_some(()));
        }
        gate.live_through(601);
    }
    becomes(&gate, forged, GOOGLEBOT, 410);
    assert_eq!(
        from(&gate, baidu_by_name_alone, BAIDUSPIDER).status,
        503,
        "nothing is proven, and nothing refuted"
    );
    becomes(&gate, baidu_by_name_alone, GOOGLEBOT, 410);
}

fn gate_asked(dns: &Dns, address: &str, times: usize) {
    eventually("the question", || {
        (dns.asked(&reverse(address)) >= times).then_some(())
    });
}

#[test]
fn where_no_proof_can_be_had_the_answer_is_403() {
    let (origin, lists, dns) = (Origin::plain(), lists(), Dns::start(zone));
    let gate = shop(&origin, &lists, &dns).start();
    assert_eq!(
        from(&gate, "203.0.113.2", "SomeBot/1.0 (+https://bot.example/)").status,
        200,
        "unlisted bots are observed"
    );
    assert_eq!(
        from(
            &gate,
            "203.0.113.2",
            "Mozilla/5.0 (compatible; SeekportBot; +https://bot.seekport.com)"
        )
        .status,
        403
    );
    // Without outgoing requests nothing can be proven of any crawler.
    let silent = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings("trusted_proxies: [127.0.0.1]")
        .start();
    assert_eq!(from(&silent, "203.0.113.1", GOOGLEBOT).status, 403);
}

fn status(gate: &Gate) -> String {
    String::from_utf8(gate.command(&["status"]).stdout).expect("text")
}

#[test]
fn files_of_a_directory_are_lists_without_outgoing_requests() {
    let origin = Origin::plain();
    let settings = "trusted_proxies: [127.0.0.1]\nidentity: { lists: lists }";
    let setup = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings(settings)
        .with_clock();
    let file = setup
        .policies()
        .parent()
        .expect("its directory")
        .join("lists/openai.com/gptbot.json");
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    std::fs::write(&file, LISTED).expect("a list");
    let mut gate = setup.start();
    known(&gate, 3.0);
    assert_eq!(from(&gate, "198.51.100.7", "GPTBot/1.2").status, 200);
    assert_eq!(from(&gate, "203.0.113.1", "GPTBot/1.2").status, 410);
    let newer = std::time::SystemTime::now() - Duration::from_secs(3_600);
    std::fs::write(&file, "203.0.113.0/24\n198.51.100.0/24\n").expect("a list");
    std::fs::File::options()
        .append(true)
        .open(&file)
        .and_then(|file| file.set_modified(newer))
        .expect("its time");
    gate.live_through(120);
    known(&gate, 2.0);
    assert_eq!(from(&gate, "203.0.113.1", "GPTBot/1.2").status, 200);
    // Files that are not there are no mistake.
    let update = gate.command(&["crawlers", "--update"]);
    assert!(update.status.success(), "{update:?}");
    // One that is wrong is said once, however often it is looked at.
    std::fs::write(file.with_file_name("searchbot.json"), "<html>moved").expect("a list");
    for _ in 0..3 {
        assert_eq!(
            gate.command(&["crawlers", "--update"]).status.code(),
            Some(1)
        );
    }
    let log = gate.log.text();
    assert_eq!(log.matches("searchbot.json").count(), 1, "{log}");
    // The page says so at once, and the status after a day.
    let page = gate.admin_page("/health");
    assert!(
        page.contains("failing since") && page.contains("openai.com/searchbot.json"),
        "{page}"
    );
    let problem = "identity_lists";
    assert!(!status(&gate).contains(problem));
    gate.live_through(90_000);
    let said = eventually("the list is a problem", || {
        Some(status(&gate)).filter(|said| said.contains(problem))
    });
    assert!(said.contains("https://openai.com/searchbot.json"), "{said}");
    // A list that is right again is none.
    std::fs::write(file.with_file_name("searchbot.json"), LISTED).expect("a list");
    gate.command(&["crawlers", "--update"]);
    assert!(!status(&gate).contains(problem));
    assert!(!gate.admin_page("/health").contains("failing since"));
}

#[test]
fn verification_by_hand_shows_each_step() {
    let (lists, dns) = (lists(), Dns::start(zone));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("crawlgate.yaml");
    let text = format!(
        "origins: http://127.0.0.1:1\nidentity: {{ outgoing: yes, lists: 'http://{}', resolvers: ['{}'] }}\n",
        lists.server.address, dns.address
    );
    std::fs::write(&file, text).expect("settings");
    let config = file.to_str().expect("a path");
    let verify = |address: &str, token: &str| {
        let output = run(&[
            "crawlers", "--verify", address, "--as", token, "--config", config, "--json",
        ]);
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (value, output.status.code())
    };
    for (address, token, outcome) in [
        ("198.51.100.9", "GPTBot", "verified"),
        ("203.0.113.50", "GPTBot", "impostor"),
        ("192.168.1.1", "GPTBot", "unverified"),
        ("203.0.113.1", "Googlebot", "verified"),
        ("203.0.113.6", "Googlebot", "verified"),
        ("203.0.113.7", "Googlebot", "verified"),
        ("2001:db8:7::1", "Googlebot", "verified"),
        ("203.0.113.2", "YandexBot", "impostor_if_repeated"),
        ("203.0.113.2", "Googlebot", "unverified"),
        ("203.0.113.3", "Googlebot", "unverified"),
        ("203.0.113.4", "Googlebot", "unverified"),
        ("203.0.113.8", "YandexBot", "unverified"),
        ("203.0.113.9", "YandexBot", "unverified"),
        ("203.0.113.10", "YandexBot", "unverified"),
        ("203.0.113.11", "YandexBot", "impostor_if_repeated"),
        ("203.0.113.12", "YandexBot", "impostor_if_repeated"),
    ] {
        let (said, code) = verify(address, token);
        assert_eq!(
            (&said["outcome"], code),
            (&outcome.into(), Some(i32::from(outcome != "verified"))),
            "{address}: {said}"
        );
    }
    assert_eq!(
        dns.asked("googlebot.com.evil.example") + dns.asked("notgooglebot.com"),
        0,
        "foreign names are not looked up"
    );
    let said = run(&[
        "crawlers",
        "--verify",
        "203.0.113.1",
        "--as",
        "googlebot",
        "--config",
        config,
    ]);
    let said = String::from_utf8(said.stdout).expect("text");
    assert!(
        said.contains("203.0.113.1: crawl-203-0-113-1.googlebot.com. ("),
        "{said}"
    );
    let outcome = said.trim_end().lines().last().expect("an outcome");
    assert!(outcome.starts_with("verified: "), "{said}");
    // Settings that ask nobody are kept to.
    std::fs::write(
        &file,
        "origins: http://127.0.0.1:1\nidentity: { lists: yes }\n",
    )
    .expect("settings");
    let asked = || (dns.questions(), lists.server.received().len());
    let before = asked();
    let (said, code) = verify("203.0.113.1", "Googlebot");
    assert_eq!(
        (&said["outcome"], code),
        (&"unverified".into(), Some(1)),
        "{said}"
    );
    assert_eq!(asked(), before, "{said}");
    assert_eq!(
        run(&["crawlers", "--verify", "203.0.113.1"]).status.code(),
        Some(2)
    );
    assert_eq!(
        run(&["crawlers", "--verify", "203.0.113.1", "--as", "Googelbot"])
            .status
            .code(),
        Some(1)
    );
    assert_eq!(
        run(&["crawlers", "--update", "--control", "/nonexistent"])
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn a_flood_of_made_up_addresses_stays_bounded() {
    let (origin, lists) = (Origin::plain(), lists());
    let questions = Arc::new(AtomicUsize::new(0));
    let count = questions.clone();
    let dns = Dns::start(move |name| {
        count.fetch_add(1, Ordering::Relaxed);
        zone(name)
    });
    let gate = shop(&origin, &lists, &dns).start();
    becomes(&gate, "203.0.113.1", GOOGLEBOT, 200);
    let began = std::time::Instant::now();
    let mut connection = gate.connect();
    for number in 0..4_000u32 {
        let address = std::net::Ipv4Addr::from(0x0b00_0000 + number);
        connection.send(&format!(
            "GET / HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: {GOOGLEBOT}\r\nX-Forwarded-For: {address}\r\n\r\n"
        ));
        assert_eq!(connection.response("GET").status, 503);
    }
    let seconds = began.elapsed().as_secs() as usize + 1;
    assert!(
        questions.load(Ordering::Relaxed) <= 20 * seconds + 40,
        "{questions:?} in {seconds} s"
    );
    assert_eq!(
        from(&gate, "203.0.113.1", GOOGLEBOT).status,
        200,
        "what is proven stays proven"
    );
    let left_out = || {
        let metrics = gate.metrics();
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("crawlgate_identity_left_out_total "));
        line.and_then(|count| count.parse::<usize>().ok())
            .unwrap_or(0)
    };
    assert!(left_out() > 2_000, "{}", left_out());
}

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key")
}

fn directory() -> String {
    let x = URL_SAFE_NO_PAD.encode(pair().public_key());
    let body = format!(
        "{{\"keys\": [{{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"kid\": \"k1\", \"x\": \"{x}\"}}]}}"
    );
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The fields of a signed request, by the clock of this machine.
fn signature(authority: &str, seconds: i64) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let created = i64::try_from(now).expect("a time") + seconds;
    let agent = "\"https://assistbot.duckduckgo.com\"";
    let params = format!(
        "(\"@authority\" \"signature-agent\");created={created};expires={};keyid=\"k1\";tag=\"web-bot-auth\"",
        created + 300
    );
    let base = format!(
        "\"@authority\": {authority}\n\"signature-agent\": {agent}\n\"@signature-params\": {params}"
    );
    let bytes = STANDARD.encode(pair().sign(base.as_bytes()));
    format!(
        "Signature-Agent: {agent}\r\nSignature-Input: sig1={params}\r\nSignature: sig1=:{bytes}:\r\n"
    )
}

#[test]
fn a_signature_verifies_the_request_that_carries_it() {
    const DUCKASSISTBOT: &str = "DuckAssistBot/1.2; (+http://duckduckgo.com/duckassistbot.html)";
    let (origin, lists, dns) = (Origin::plain(), lists(), Dns::start(zone));
    let gate = shop(&origin, &lists, &dns).start();
    gate.wait_for_metric(
        "crawlgate_identity_list_networks{list=\"assistbot.duckduckgo.com/.well-known/http-message-signatures-directory\"}",
        1.0,
    );
    let ask = |client: &str, fields: &str| {
        let headers =
            format!("User-Agent: {DUCKASSISTBOT}\r\nX-Forwarded-For: {client}\r\n{fields}");
        gate.get("shop.example", "/", &headers).status
    };
    let good = signature("shop.example", -5);
    assert_eq!(ask("203.0.113.60", ""), 503);
    assert_eq!(ask("203.0.113.60", &good), 200);
    let passed_on = origin.last();
    for field in ["signature", "signature-input", "signature-agent"] {
        assert!(passed_on.field(field).is_some(), "{field} is passed on");
    }
    assert_eq!(ask("203.0.113.60", &good), 200, "a request may be repeated");
    assert_eq!(
        ask("203.0.113.61", &good),
        503,
        "from another address it may be a copy"
    );
    // The same bytes in other fields: none of this is covered by the signature.
    for (number, copy) in [
        good.replace("sig1", "sig2"),
        good.replace(":\r\n", ":;a=1\r\n"),
        good.replace("Signature: ", "Signature: a=:AAAA:, "),
        good.replace("Signature: sig1=", "Signature: sig1=1, sig1="),
    ]
    .iter()
    .enumerate()
    {
        assert_ne!(*copy, good);
        assert_eq!(
            ask(&format!("203.0.113.{}", 70 + number), copy),
            503,
            "{copy}"
        );
        assert_eq!(
            ask("203.0.113.60", copy),
            200,
            "a good signature in other words: {copy}"
        );
    }
    assert_eq!(
        ask("203.0.113.62", &signature("shop.example", -600)),
        503,
        "expired"
    );
    assert_eq!(
        ask("203.0.113.63", &signature("shop.example", 600)),
        503,
        "of the future"
    );
    assert_eq!(
        ask("203.0.113.64", &signature("other.example", -5)),
        503,
        "for another site"
    );
    gate.wait_for_metric(&identified("duckassistbot", "verified"), 6.0);
    eventually("a reason for each of the four", || {
        let log = read(&gate.path("events.log"));
        let reasons: BTreeSet<String> = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["status"] == 503)
            .filter_map(|event| event["signature"].as_str().map(str::to_owned))
            .collect();
        (reasons.len() == 4).then_some(())
    });
    assert_eq!(
        from(&gate, "203.0.113.65", GOOGLEBOT).status,
        503,
        "the signature is the agent's alone"
    );
}
