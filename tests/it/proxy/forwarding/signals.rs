//! What a site says about the use of its content, before a real origin: lines, headers by path,
//! `tdmrep.json`, and the answer that asks a crawler for a licence.

use crate::proxy::support::{
    BINGBOT, BROWSER, GPTBOT, Gate, Origin, Received, Response, Setup, eventually, run,
};
use std::io::Write;

const HOST: &str = "news.example";

const NEWS: &str = r#"
hosts: [news.example]
robots:
  origin: replace
  signals: all
  license:
    - { url: https://news.example/photos.xml, paths: /photos/ }
    - https://news.example/license.xml
  content_signal: { search: yes, ai-train: no }
  content_usage:
    - { train-ai: no, search: yes }
    - { paths: /press/, train-ai: yes }
  groups:
    - agents: ["*"]
      disallow: [/account/]
    - agents: [Bingbot]
      extends: "*"
      content_signal: { search: yes, ai-input: yes }
tdm:
  - { paths: /press/, reservation: no }
  - { reservation: yes, policy: https://news.example/tdm.json }
indexing: { status: [401, 402], tag: noindex }
enforcement:
  mode: MODE
  purposes: { training: { unlicensed: 401 } }
  agents: { CCBot: { unlicensed: 402 }, ClaudeBot: { unlicensed: pass }, Wget: { unlicensed: 401 } }
"#;

const LINK: &str =
    "<https://news.example/license.xml>; rel=\"license\"; type=\"application/rsl+xml\"";
const CHALLENGE: &str = "License error=\"invalid_request\", error_description=\"Access to this resource requires a valid license\"";

fn news(origin: &Origin, mode: &str) -> Gate {
    Setup::before(origin.address)
        .policy("news", &NEWS.replace("MODE", mode))
        .start()
}

fn get(gate: &Gate, user_agent: &str, target: &str, more: &str) -> Response {
    gate.get(HOST, target, &format!("User-Agent: {user_agent}\r\n{more}"))
}

/// The fields about use, in no order: name, value.
fn signals(response: &Response) -> Vec<(String, String)> {
    let names = [
        "content-signal",
        "content-usage",
        "link",
        "tdm-reservation",
        "tdm-policy",
    ];
    let fields = response
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    let mut fields: Vec<_> = fields
        .filter(|(name, _)| names.contains(&name.as_str()))
        .collect();
    fields.sort();
    fields
}

fn owned(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn metric(gate: &Gate, series: &str) -> Option<f64> {
    crate::proxy::support::sum_of(&gate.metrics(), series)
}

#[test]
fn robots_txt_says_it_in_every_group_and_render_says_the_same() {
    let origin = Origin::plain();
    let gate = news(&origin, "observe");
    let served = get(&gate, BROWSER, "/robots.txt", "");
    assert_eq!(
        served.text(),
        "\
# Written by crawlgate from the site's policy.

License: https://news.example/photos.xml
License: https://news.example/license.xml

# From robots.groups.
User-agent: *
Disallow: /account/
Content-Signal: search=yes, ai-train=no
Content-Usage: train-ai=n, search=y
Content-Usage: /press/ train-ai=y

User-agent: Bingbot
Disallow: /account/
Content-Signal: search=yes, ai-input=yes
Content-Usage: train-ai=n, search=y
Content-Usage: /press/ train-ai=y
"
    );
    assert!(
        signals(&served).is_empty(),
        "robots.txt is no content of the site: {served:?}"
    );
    let policies = gate.setup.policies().display().to_string();
    let rendered = run(&["render", "--host", HOST, "--policies", &policies]);
    assert_eq!(rendered.stdout, served.body);
    let rendered = run(&[
        "render",
        "--tdmrep",
        "--host",
        HOST,
        "--policies",
        &policies,
    ]);
    assert_eq!(
        rendered.stdout,
        get(&gate, BROWSER, "/.well-known/tdmrep.json", "").body
    );
}

#[test]
fn signal_headers_are_equal_for_visitors_and_crawlers() {
    let origin = Origin::plain();
    let gate = news(&origin, "observe");
    let story = owned(&[
        ("content-usage", "train-ai=n, search=y"),
        ("link", LINK),
        ("tdm-policy", "https://news.example/tdm.json"),
        ("tdm-reservation", "1"),
    ]);
    for user_agent in [BROWSER, BINGBOT, GPTBOT] {
        assert_eq!(
            signals(&get(&gate, user_agent, "/2026/story", "")),
            story,
            "{user_agent}"
        );
    }
    let press = owned(&[
        ("content-usage", "train-ai=y"),
        ("link", LINK),
        ("tdm-reservation", "0"),
    ]);
    assert_eq!(signals(&get(&gate, BROWSER, "/%70ress/a?b", "")), press);
    let photo = get(&gate, BROWSER, "/photos/1.jpg", "");
    assert_eq!(
        photo.fields("link"),
        [LINK.replace("license.xml", "photos.xml")]
    );
    assert_eq!(signals(&gate.ask("HEAD", HOST, "/2026/story", "")), story);
    assert!(
        signals(&gate.get("other.example", "/", "")).is_empty(),
        "a host that no policy is for is left alone"
    );
}

#[test]
fn a_304_carries_them_and_early_hints_do_not() {
    let origin = Origin::saying("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n");
    let gate = news(&origin, "observe");
    let response = get(&gate, BROWSER, "/press/a", "If-None-Match: \"x\"\r\n");
    assert_eq!(
        (response.status, response.field("content-usage")),
        (304, Some("train-ai=y"))
    );

    let origin = Origin::saying(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    );
    let gate = news(&origin, "observe");
    let mut connection = gate.connect();
    connection.send("GET /press/a HTTP/1.1\r\nHost: news.example\r\n\r\n");
    let mut response = connection.response("GET");
    if response.status == 103 {
        assert_eq!(
            signals(&response),
            owned(&[("link", "</a.css>; rel=preload")])
        );
        response = connection.response("GET");
    }
    assert_eq!(
        (response.status, response.field("tdm-reservation")),
        (200, Some("0"))
    );
}

#[test]
fn origin_signals_stay_and_links_are_added() {
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Usage: train-ai=y\r\nTDM-Reservation: 0\r\n\
         Link: </next>; rel=\"next\"\r\n\r\nhi",
    );
    let gate = news(&origin, "observe");
    let response = get(&gate, BROWSER, "/story", "");
    assert_eq!(response.fields("content-usage"), ["train-ai=y"]);
    assert_eq!(
        (
            response.fields("tdm-reservation"),
            response.fields("tdm-policy")
        ),
        (vec!["0"], vec![])
    );
    assert_eq!(response.fields("link"), ["</next>; rel=\"next\"", LINK]);
}

#[test]
fn crawler_without_a_licence_gets_401_and_passes_with_one() {
    let origin = Origin::plain();
    let gate = news(&origin, "enforce");
    let asked = get(&gate, GPTBOT, "/2026/story", "Accept: application/json\r\n");
    assert_eq!(asked.status, 401);
    assert_eq!(
        (asked.fields("www-authenticate"), asked.fields("link")),
        (vec![CHALLENGE], vec![LINK])
    );
    assert_eq!(
        (asked.field("cache-control"), asked.field("x-robots-tag")),
        (Some("no-store"), Some("noindex"))
    );
    assert!(
        asked.field("content-usage").is_none() && asked.field("tdm-reservation").is_none(),
        "{asked:?}"
    );
    let json: serde_json::Value = serde_json::from_slice(&asked.body).expect("JSON");
    assert_eq!(
        (&json["error"], &json["crawler"]),
        (&"license_required".into(), &"GPTBot".into())
    );
    assert!(
        json["message"]
            .as_str()
            .is_some_and(|text| text.contains("https://news.example/license.xml")),
        "{json}"
    );
    let photo = get(&gate, GPTBOT, "/photos/1.jpg", "");
    assert_eq!(
        photo.field("link"),
        Some(LINK.replace("license.xml", "photos.xml").as_str())
    );
    assert_eq!(
        get(
            &gate,
            "CCBot/2.0 (https://commoncrawl.org/faq/)",
            "/story",
            ""
        )
        .status,
        402
    );
    let head = gate.ask("HEAD", HOST, "/story", &format!("User-Agent: {GPTBOT}\r\n"));
    assert_eq!(
        (head.status, head.body.len(), head.field("www-authenticate")),
        (401, 0, Some(CHALLENGE))
    );
    for other in [
        "Authorization: Bearer abc\r\n",
        "Authorization: License\r\n",
        "Authorization: License \r\n",
    ] {
        assert_eq!(get(&gate, GPTBOT, "/story", other).status, 401, "{other}");
    }
    assert!(
        origin.received().is_empty(),
        "a request without a licence was forwarded"
    );

    let page = get(
        &gate,
        GPTBOT,
        "/2026/story",
        "Authorization: license rsl_abc\r\n",
    );
    assert_eq!(
        (page.status, page.text(), page.field("link")),
        (200, "hello", Some(LINK))
    );
    assert_eq!(
        origin.last().field("authorization"),
        Some("license rsl_abc"),
        "the origin judges the token"
    );

    // A licence opens nothing that robots.txt disallows.
    for token in ["", "Authorization: License abc\r\n"] {
        let refused = get(&gate, GPTBOT, "/account/", token);
        assert_eq!(
            (refused.status, refused.field("www-authenticate")),
            (403, None),
            "{token}"
        );
    }
    let asked = "crawlgate_requests_total{action=\"license\",crawler=\"gptbot\",kind=\"allowed\",site=\"news\"}";
    eventually("the questions are counted", || {
        metric(&gate, asked).filter(|count| *count >= 6.0)
    });
    let violations =
        "crawlgate_violations_total{crawler=\"gptbot\",kind=\"unproven\",site=\"news\"}";
    eventually("the two disallowed requests", || {
        metric(&gate, violations).filter(|count| *count == 2.0)
    });
}

#[test]
fn licence_is_asked_of_listed_crawlers_alone() {
    let origin = Origin::plain();
    let gate = news(&origin, "enforce");
    for user_agent in [
        BROWSER,
        BINGBOT,
        "",
        "ClaudeBot/1.0 (+claudebot@anthropic.com)",
        "curl/8.5.0",
    ] {
        assert_eq!(
            get(&gate, user_agent, "/story", "").status,
            200,
            "{user_agent}"
        );
    }
    assert_eq!(
        get(&gate, "Wget/1.21.3", "/story", "").status,
        401,
        "the policy names it"
    );
    for open in [
        "/robots.txt",
        "/license.xml",
        "/license.xml?v=2",
        "/photos.xml",
        "/tdm.json",
        "/.well-known/tdmrep.json",
    ] {
        assert_eq!(get(&gate, GPTBOT, open, "").status, 200, "{open}");
    }
    assert_eq!(
        get(&gate, GPTBOT, "/.well-known/acme-challenge/x", "").status,
        200
    );
    assert_eq!(
        get(&gate, GPTBOT, "/.well-known/acme-challenge/../../story", "").status,
        401
    );
    assert_eq!(get(&gate, GPTBOT, "/license.xml.bak", "").status, 401);
}

#[test]
fn crawler_is_asked_for_the_licence_of_its_group() {
    let origin = Origin::plain();
    let ccbot = "CCBot/2.0 (https://commoncrawl.org/faq/)";
    let policy = |site: &str| {
        format!(
            "hosts: [{HOST}]\nrobots:\n  origin: replace\n  signals: all\n{site}  groups:\n    - {{ agents: '*', disallow: /account/ }}\n    \
             - {{ agents: CCBot, extends: '*', license: https://news.example/research.xml }}\n\
             enforcement: {{ mode: enforce, purposes: {{ training: {{ unlicensed: 401 }} }}, agents: {{ CCBot: {{ unlicensed: 402 }} }} }}\n"
        )
    };
    let research = LINK.replace("license.xml", "research.xml");
    let site = "  license: [{ url: https://news.example/license.xml, paths: /2026/ }]\n";
    let gate = Setup::before(origin.address)
        .policy("news", &policy(site))
        .start();
    for target in ["/2026/story", "/story"] {
        let asked = get(&gate, ccbot, target, "Accept: text/plain\r\n");
        assert_eq!(
            (asked.status, asked.fields("link")),
            (402, vec![research.as_str()]),
            "{target}"
        );
        assert!(
            asked.text().contains("https://news.example/research.xml"),
            "{asked:?}"
        );
    }
    assert_eq!(
        get(&gate, ccbot, "/research.xml", "").status,
        200,
        "it can be read"
    );
    let other = get(&gate, GPTBOT, "/2026/story", "");
    assert_eq!((other.status, other.field("link")), (401, Some(LINK)));
    assert_eq!(
        get(&gate, GPTBOT, "/story", "").status,
        200,
        "no licence covers it"
    );
    // Pages are the same for everybody.
    assert_eq!(
        get(&gate, ccbot, "/2026/story", "Authorization: License x\r\n").field("link"),
        Some(LINK)
    );

    let gate = Setup::before(origin.address)
        .policy("news", &policy(""))
        .start();
    assert_eq!(
        get(&gate, ccbot, "/story", "").field("link"),
        Some(research.as_str())
    );
    assert_eq!(get(&gate, GPTBOT, "/story", "").status, 200);
    let policies = gate.setup.policies().display().to_string();
    let shown = run(&[
        "explain",
        "--host",
        HOST,
        "--policies",
        &policies,
        "--user-agent",
        "CCBot",
        "/story",
    ]);
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains(&format!("signal     Link: {research}")),
        "{shown:?}"
    );
}

/// What the served file tells a crawler is what it is asked for, whoever wrote it; while nobody
/// names a licence nobody is asked, and that is said.
#[test]
fn a_crawler_is_asked_for_the_licence_that_the_origin_names() {
    let robots = std::sync::Arc::new(std::sync::Mutex::new(String::from(
        "User-agent: *\nDisallow: /x\n",
    )));
    let served = robots.clone();
    let origin = Origin::start(move |request: &Received, stream| {
        let body = match request.target() {
            "/robots.txt" => served.lock().expect("no panic").clone(),
            _ => "hello".into(),
        };
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        false
    });
    let ccbot = "CCBot/2.0 (https://commoncrawl.org/faq/)";
    let policy = |more: &str| {
        format!(
            "hosts: [{HOST}]\n{more}enforcement: {{ mode: enforce, purposes: {{ training: {{ unlicensed: 401 }} }}, \
             agents: {{ CCBot: {{ unlicensed: 402 }} }} }}\n"
        )
    };
    let gate = Setup::before(origin.address)
        .policy("news", &policy(""))
        .start();
    gate.wait_for_metric(
        r#"crawlgate_origin_robots_state{site="news",state="current"}"#,
        1.0,
    );
    assert_eq!(
        get(&gate, GPTBOT, "/story", "").status,
        200,
        "the origin names none"
    );
    let file = gate.path("origin.txt");
    let policies = gate.setup.policies().display().to_string();
    let check = || {
        std::fs::write(&file, robots.lock().expect("no panic").as_bytes()).expect("written");
        let checked = run(&[
            "check",
            "--origin-robots",
            &file.display().to_string(),
            &policies,
        ]);
        String::from_utf8_lossy(&checked.stdout).into_owned()
    };
    assert_eq!(
        check().matches("license-of-nobody").count(),
        2,
        "{}",
        check()
    );

    *robots.lock().expect("no panic") = "License: https://news.example/license.xml\nUser-agent: *\nDisallow: /x\n\n\
                                         User-agent: CCBot\nDisallow: /x\nLicense: https://news.example/cc.xml\n"
        .into();
    assert!(!check().contains("license-of-nobody"), "{}", check());
    // A change of the policy asks at once.
    gate.write_policy("news", &policy("# a word\n"));
    let asked = eventually("the origin's licence", || {
        Some(get(&gate, GPTBOT, "/story", "")).filter(|answer| answer.status == 401)
    });
    assert_eq!(asked.fields("link"), [LINK]);
    let asked = get(&gate, ccbot, "/story", "");
    assert_eq!(
        (asked.status, asked.fields("link")),
        (402, vec![LINK.replace("license.xml", "cc.xml").as_str()])
    );
    assert_eq!(
        get(&gate, ccbot, "/cc.xml", "").status,
        200,
        "it can be read"
    );
    assert_eq!(get(&gate, GPTBOT, "/license.xml", "").status, 200);
}

#[test]
fn observe_asks_for_no_licence_and_counts() {
    let origin = Origin::plain();
    let gate = news(&origin, "observe");
    assert_eq!(get(&gate, GPTBOT, "/story", "").status, 200);
    assert_eq!(
        get(&gate, GPTBOT, "/story", "Authorization: License abc\r\n").status,
        200
    );
    let would = "crawlgate_requests_total{action=\"would_license\",crawler=\"gptbot\",kind=\"allowed\",site=\"news\"}";
    eventually("one of the two is counted", || {
        metric(&gate, would).filter(|count| *count == 1.0)
    });
    let passed = "crawlgate_requests_total{action=\"pass\",crawler=\"gptbot\",kind=\"allowed\",site=\"news\"}";
    eventually("and the other passed", || {
        metric(&gate, passed).filter(|count| *count == 1.0)
    });
    eventually("the crawler's page has it", || {
        let page = gate.admin_page("/crawler?id=gptbot");
        page.contains("<td data-label=\"Without a licence\">1</td>")
            .then_some(())
    });
    let gate = news(&origin, "off");
    assert_eq!(get(&gate, GPTBOT, "/story", "").status, 200);
    let passed =
        "crawlgate_requests_total{action=\"pass\",crawler=\"gptbot\",kind=\"off\",site=\"news\"}";
    eventually("off records nothing", || {
        metric(&gate, passed).filter(|count| *count == 1.0)
    });
}

#[test]
fn tdmrep_json_is_served_to_everybody_with_a_validator() {
    let origin = Origin::plain();
    let policy = NEWS
        .replace("MODE", "enforce")
        .replace("[/account/]", "[/]")
        + "acknowledge: site_disallowed\n";
    let gate = Setup::before(origin.address)
        .policy("news", &policy)
        .start();
    let file = get(&gate, GPTBOT, "/.well-known/tdmrep.json?x", "");
    assert_eq!(
        (file.status, file.field("content-type")),
        (200, Some("application/json"))
    );
    let json: serde_json::Value = serde_json::from_slice(&file.body).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!([
            { "location": "/press/", "tdm-reservation": 0 },
            { "location": "/", "tdm-reservation": 1, "tdm-policy": "https://news.example/tdm.json" },
        ])
    );
    let etag = file.field("etag").expect("an entity tag").to_owned();
    assert_eq!(file.field("cache-control"), Some("public, max-age=3600"));
    let head = gate.ask("HEAD", HOST, "/.well-known/tdmrep.json", "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in ["etag", "content-length", "content-type"] {
        assert_eq!(head.field(name), file.field(name), "{name}");
    }
    for (condition, status) in [(etag.as_str(), 304), ("\"x\"", 200), ("*", 200)] {
        let again = get(
            &gate,
            BROWSER,
            "/.well-known/tdmrep.json",
            &format!("If-None-Match: {condition}\r\n"),
        );
        assert_eq!(
            (again.status, again.field("etag")),
            (status, Some(etag.as_str())),
            "{condition}"
        );
        assert_eq!(again.body.is_empty(), status == 304);
    }
    let posted = gate.ask(
        "POST",
        HOST,
        "/.well-known/tdmrep.json",
        "Content-Length: 0\r\n",
    );
    assert_eq!(
        (posted.status, posted.field("allow")),
        (405, Some("GET, HEAD"))
    );
    assert!(origin.received().is_empty(), "tdmrep.json was forwarded");
    let served = "crawlgate_requests_total{action=\"tdmrep\",crawler=\"gptbot\",kind=\"allowed\",site=\"news\"}";
    eventually("it is counted as no violation", || {
        metric(&gate, served).filter(|count| *count == 1.0)
    });
    assert!(
        !gate
            .metrics()
            .contains("crawlgate_violations_total{crawler=\"gptbot\""),
        "{}",
        gate.metrics()
    );

    // A pause stops pages, and not this; a policy that says nothing of mining leaves the path to
    // the origin.
    let paused = gate.command(&["pause", "--all", "--for", "1h", "--everyone"]);
    assert!(paused.status.success(), "{paused:?}");
    assert_eq!(get(&gate, BROWSER, "/story", "").status, 503);
    assert_eq!(
        get(&gate, BROWSER, "/.well-known/tdmrep.json", "").status,
        200
    );
    let gate = Setup::before(origin.address)
        .policy("plain", "robots: { origin: replace }")
        .start();
    assert_eq!(
        gate.get(HOST, "/.well-known/tdmrep.json", "").text(),
        "hello"
    );
}

#[test]
fn headers_only_leaves_robots_txt_plain() {
    let origin = Origin::plain();
    let policy = NEWS
        .replace("MODE", "observe")
        .replace("signals: all", "signals: headers_only");
    let gate = Setup::before(origin.address)
        .policy("news", &policy)
        .start();
    let robots = get(&gate, BROWSER, "/robots.txt", "");
    let known = ["#", "User-agent:", "Allow:", "Disallow:"];
    assert!(
        robots
            .text()
            .lines()
            .all(|line| line.is_empty() || known.iter().any(|key| line.starts_with(key))),
        "{robots:?}"
    );
    let page = get(&gate, BROWSER, "/story", "");
    assert_eq!(
        page.field("content-signal"),
        Some("search=yes, ai-train=no")
    );
    assert_eq!(
        (page.field("content-usage"), page.field("link")),
        (Some("train-ai=n, search=y"), Some(LINK))
    );
}

#[test]
fn explain_equals_the_sent_fields() {
    let origin = Origin::start(|_, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            .is_ok()
    });
    let gate = news(&origin, "enforce");
    let policies = gate.setup.policies().display().to_string();
    for (user_agent, target) in [
        (BROWSER, "/press/x"),
        (BINGBOT, "/story"),
        (GPTBOT, "/story"),
        (GPTBOT, "/robots.txt"),
    ] {
        let arguments = [
            "explain",
            "--host",
            HOST,
            "--policies",
            &policies,
            "--user-agent",
            user_agent,
            target,
        ];
        let json: serde_json::Value =
            serde_json::from_slice(&run(&[&arguments[..], &["--json"]].concat()).stdout).unwrap();
        let mut told: Vec<(String, String)> = json["signals"]
            .as_array()
            .expect("lines")
            .iter()
            .filter_map(|line| line.as_str()?.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        told.sort();
        assert_eq!(
            told,
            signals(&get(&gate, user_agent, target, "")),
            "{user_agent} {target}"
        );
    }
    let asked = [
        "explain",
        "--json",
        "--host",
        HOST,
        "--policies",
        &policies,
        "--user-agent",
        "GPTBot",
        "/story",
    ];
    let shown: serde_json::Value = serde_json::from_slice(&run(&asked).stdout).expect("JSON");
    assert_eq!(shown["action"]["status"], 401, "{shown}");
}

#[test]
fn a_signal_that_changes_takes_effect_with_the_policy() {
    let origin = Origin::plain();
    let gate = news(&origin, "observe");
    let before = get(&gate, BROWSER, "/.well-known/tdmrep.json", "");
    gate.write_policy(
        "news",
        &NEWS
            .replace("MODE", "observe")
            .replace("reservation: no", "reservation: yes"),
    );
    let reload = gate.command(&["reload"]);
    assert!(reload.status.success(), "{reload:?}");
    assert_eq!(
        get(&gate, BROWSER, "/press/a", "").field("tdm-reservation"),
        Some("1")
    );
    let after = get(
        &gate,
        BROWSER,
        "/.well-known/tdmrep.json",
        &format!("If-None-Match: {}\r\n", before.field("etag").unwrap()),
    );
    assert_eq!(after.status, 200, "the file is another");
    gate.write_policy(
        "news",
        &NEWS
            .replace("MODE", "observe")
            .replace("/tdm.json", "/tdm\\u000ax.json"),
    );
    let reload = gate.command(&["reload"]);
    assert!(!reload.status.success(), "{reload:?}");
    assert_eq!(
        get(&gate, BROWSER, "/story", "").field("tdm-policy"),
        Some("https://news.example/tdm.json")
    );
}
