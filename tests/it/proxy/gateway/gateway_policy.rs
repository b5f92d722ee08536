//! A policy in force before a real origin: robots.txt, tags, blocks, pauses, and hosts that no
//! policy is for.

use crate::proxy::support::{BINGBOT, Gate, Origin, Response, Setup, eventually};

const GPTBOT: &str = "User-Agent: Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.3; \
                      +https://openai.com/gptbot)\r\n";
const BROWSER: &str =
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:141.0) Gecko/20100101 Firefox/141.0\r\n";

const SHOP: &str = r#"
hosts: [shop.example]
robots:
  origin: replace
  groups:
    - agents: ["*"]
      disallow: [/cart/]
    - agents: [GPTBot]
      disallow: [/]
indexing:
  - types: [application/pdf]
    tag: [noindex, noarchive]
  - paths: [/drafts/]
    tags: { "*": nofollow, googlebot: [noindex, nofollow] }
  - status: [502]
    tag: noindex
  - status: [403]
    tag: nosnippet
enforcement:
  mode: enforce
  disallowed: { status: 403, retry_after: 1h }
"#;

fn shop(origin: &Origin) -> Gate {
    Setup::before(origin.address).policy("shop", SHOP).start()
}

fn metric(gate: &Gate, series: &str) -> Option<f64> {
    crate::proxy::support::sum_of(&gate.metrics(), series)
}

fn pdf() -> Origin {
    Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 4\r\n\r\n%PDF",
    )
}

#[test]
fn robots_txt_is_equal_for_all_clients_and_queries() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    let first = gate.get("shop.example", "/robots.txt", GPTBOT);
    assert_eq!(first.status, 200);
    assert_eq!(
        first.field("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(
        first.field("content-length"),
        Some(first.body.len().to_string().as_str())
    );
    assert!(
        first.text().contains("Disallow: /cart/") && first.text().contains("User-agent: GPTBot")
    );
    assert!(
        first
            .field("etag")
            .is_some_and(|etag| etag.starts_with('"'))
    );
    assert!(first.field("last-modified").is_some() && first.field("cache-control").is_some());
    let second = gate.get("shop.example", "/robots.txt?v=2", BROWSER);
    assert_eq!((second.status, &second.body), (200, &first.body));
    assert!(origin.received().is_empty(), "robots.txt was forwarded");
}

#[test]
fn head_of_robots_txt_has_the_same_header_and_no_body() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    let get = gate.get("shop.example", "/robots.txt", "");
    let mut connection = gate.connect();
    for _ in 0..2 {
        connection.send("HEAD /robots.txt HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        let head = connection.response("HEAD");
        assert_eq!(head.status, 200);
        for name in [
            "content-length",
            "etag",
            "last-modified",
            "cache-control",
            "content-type",
        ] {
            assert_eq!(head.field(name), get.field(name), "{name}");
        }
    }
}

#[test]
fn crawler_with_the_current_robots_txt_gets_304() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    let bingbot = format!("User-Agent: {BINGBOT}\r\n");
    let first = gate.get("shop.example", "/robots.txt", &bingbot);
    let (etag, modified) = (
        first.field("etag").unwrap(),
        first.field("last-modified").unwrap(),
    );
    for condition in [
        format!("If-None-Match: {etag}\r\n"),
        format!("If-None-Match: \"x\", W/{etag}\r\n"),
        format!("If-Modified-Since: {modified}\r\n"),
    ] {
        let again = gate.get(
            "shop.example",
            "/robots.txt",
            &(bingbot.clone() + &condition),
        );
        assert_eq!((again.status, again.body.len()), (304, 0), "{condition}");
        assert_eq!(
            (again.field("etag"), again.field("last-modified")),
            (Some(etag), Some(modified))
        );
    }
    let outdated = format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {modified}\r\n");
    assert_eq!(
        gate.get(
            "shop.example",
            "/robots.txt",
            &(bingbot.clone() + &outdated)
        )
        .status,
        200
    );
    // An asterisk names no copy: the crawler may have a superseded one.
    let any = format!("{bingbot}If-None-Match: *\r\n");
    assert_eq!(gate.get("shop.example", "/robots.txt", &any).status, 200);
    // A date alone says nothing where it may be that of another site's file.
    let later = format!("{bingbot}If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n");
    assert_eq!(gate.get("shop.example", "/robots.txt", &later).status, 200);
    let never_served = format!("User-Agent: Googlebot/2.1\r\nIf-Modified-Since: {modified}\r\n");
    assert_eq!(
        gate.get("shop.example", "/robots.txt", &never_served)
            .status,
        200
    );
}

#[test]
fn robots_txt_cannot_be_posted_to() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    let mut connection = gate.connect();
    connection
        .send("POST /robots.txt HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5\r\n\r\nhello");
    let refused = connection.response("POST");
    assert_eq!(
        (refused.status, refused.field("allow")),
        (405, Some("GET, HEAD"))
    );
    assert_eq!(refused.field("connection"), Some("close"));
    assert!(connection.is_closed() && !connection.was_reset());
}

#[test]
fn a_disallowed_crawler_is_refused_by_name_and_rule_and_counted() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    let refused = gate.get(
        "shop.example",
        "/article",
        &format!("{GPTBOT}Accept: application/json\r\n"),
    );
    assert_eq!(refused.status, 403);
    assert_eq!(refused.field("cache-control"), Some("no-store"));
    assert_eq!(refused.field("retry-after"), Some("3600"));
    assert_eq!(refused.field("server"), Some("crawlgate"));
    assert_eq!(refused.fields("x-robots-tag"), ["nosnippet"]);
    let json: serde_json::Value = serde_json::from_slice(&refused.body).expect("JSON");
    assert_eq!(
        (&json["crawler"], &json["rule"]),
        (&"GPTBot".into(), &"Disallow: /".into())
    );
    assert_eq!(json["robots_txt"], "/robots.txt");
    assert!(
        gate.ask("HEAD", "shop.example", "/article", GPTBOT)
            .body
            .is_empty()
    );
    assert!(
        origin.received().is_empty(),
        "a refused request was forwarded"
    );
    let series = "crawlgate_requests_total{action=\"block\",crawler=\"gptbot\",kind=\"unproven\",site=\"shop\"}";
    eventually("two refusals counted", || {
        metric(&gate, series).filter(|count| *count >= 2.0)
    });
    let series = "crawlgate_violations_total{crawler=\"gptbot\",kind=\"unproven\",site=\"shop\"}";
    eventually("two violations counted", || {
        metric(&gate, series).filter(|count| *count == 2.0)
    });
}

/// Origins merge slashes and decode `%2F`: they would answer with the file that crawlgate takes the
/// place of.
#[test]
fn no_spelling_of_robots_txt_shows_the_file_of_the_origin() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    let file = gate.get("shop.example", "/robots.txt", BROWSER).body;
    for target in [
        "//robots.txt",
        "/x/../robots.txt",
        "/%2Frobots.txt",
        "/./robots.txt?x",
        "/x%2f..%2frobots.txt",
    ] {
        for agent in [BROWSER, GPTBOT] {
            let answer = gate.get("shop.example", target, agent);
            assert_eq!((answer.status, &answer.body), (200, &file), "{target}");
        }
    }
    assert!(origin.received().is_empty(), "the origin was asked");
}

#[test]
fn crawler_requests_are_counted_by_identity() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    gate.get("shop.example", "/article", GPTBOT);
    gate.get("shop.example", "/robots.txt", GPTBOT);
    gate.get("shop.example", "/article", BROWSER);
    let series = "crawlgate_identity_total{crawler=\"gptbot\",outcome=\"unverified\"}";
    eventually("two claims counted", || {
        metric(&gate, series).filter(|count| *count == 2.0)
    });
    let person = "crawlgate_requests_total{action=\"pass\",crawler=\"none\",kind=\"not_a_crawler\",site=\"shop\"}";
    eventually("the person is counted", || {
        metric(&gate, person).filter(|count| *count == 1.0)
    });
    let crawlers = gate
        .metrics()
        .lines()
        .filter(|line| line.starts_with("crawlgate_identity_total{"))
        .count();
    assert_eq!(crawlers, 1, "{}", gate.metrics());
}

#[test]
fn refused_upload_gets_the_answer_and_closes() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    let mut connection = gate.connect();
    let body = "x".repeat(10_000);
    connection.send(&format!(
        "POST /a HTTP/1.1\r\nHost: shop.example\r\n{GPTBOT}Content-Length: 10000\r\n\r\n{body}"
    ));
    let refused = connection.response("POST");
    assert_eq!(
        (refused.status, refused.field("connection")),
        (403, Some("close"))
    );
    assert!(connection.is_closed() && !connection.was_reset());
    // Of unknown length: the same, but not in the face of a client that is still sending.
    let mut connection = gate.connect();
    connection.send(&format!(
        "POST /a HTTP/1.1\r\nHost: shop.example\r\n{GPTBOT}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    ));
    let refused = connection.response("POST");
    assert_eq!(
        (refused.status, refused.field("connection")),
        (403, Some("close"))
    );
    for _ in 0..5 {
        connection.send(&format!("{:x}\r\n{body}\r\n", body.len()));
    }
    connection.send("0\r\n\r\n");
    assert!(connection.is_closed() && !connection.was_reset());
    // Too long to be read for nothing: the connection ends, and says so.
    let mut connection = gate.connect();
    connection.send(&format!(
        "POST /a HTTP/1.1\r\nHost: shop.example\r\n{GPTBOT}Content-Length: 10000000\r\n\r\n"
    ));
    let refused = connection.response("POST");
    assert_eq!(
        (refused.status, refused.field("connection")),
        (403, Some("close"))
    );
    assert!(connection.is_closed());
}

#[test]
fn people_and_allowed_crawlers_pass() {
    let origin = Origin::plain();
    let gate = shop(&origin);
    assert_eq!(gate.get("shop.example", "/cart/", BROWSER).status, 200);
    assert_eq!(
        gate.get("shop.example", "/", "User-Agent: Googlebot/2.1\r\n")
            .status,
        200
    );
    assert_eq!(
        gate.get("shop.example", "/cart/", "User-Agent: Googlebot/2.1\r\n")
            .status,
        403
    );
}

#[test]
fn tags_go_on_by_type_and_path_as_lines_of_their_own() {
    let origin = pdf();
    let gate = shop(&origin);
    let tags = |response: &Response| -> Vec<String> {
        response
            .fields("x-robots-tag")
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        tags(&gate.get("shop.example", "/a.pdf", BROWSER)),
        ["noindex, noarchive"]
    );
    let drafts = tags(&gate.get("shop.example", "/drafts/a.pdf", BROWSER));
    assert_eq!(drafts.len(), 2, "{drafts:?}");
    assert!(
        !drafts[0].contains(':') && drafts[1].starts_with("googlebot:"),
        "{drafts:?}"
    );
    assert!(
        !drafts
            .iter()
            .any(|line| line.contains("googlebot") && line.matches(':').count() > 1)
    );
}

#[test]
fn the_origins_own_tags_are_united_with_ours() {
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nX-Robots-Tag: nofollow\r\nX-Robots-Tag: bingbot: noindex\r\n\
         Content-Length: 0\r\n\r\n",
    );
    let gate = shop(&origin);
    let response = gate.get("shop.example", "/a.pdf", BROWSER);
    let lines = response.fields("x-robots-tag");
    assert_eq!(lines.len(), 2, "{lines:?}");
    for directive in ["noindex", "noarchive", "nofollow"] {
        assert!(lines[0].contains(directive), "{lines:?}");
    }
    assert_eq!(lines[1], "bingbot: noindex");
}

#[test]
fn early_hints_get_no_tag_but_the_answer_does() {
    let origin = Origin::saying(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\
         Content-Length: 2\r\n\r\nok",
    );
    let gate = shop(&origin);
    let mut connection = gate.connect();
    connection.send("GET /drafts/a.pdf HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let hints = connection.response("GET");
    assert_eq!((hints.status, hints.fields("x-robots-tag").len()), (103, 0));
    assert_eq!(connection.response("GET").fields("x-robots-tag").len(), 2);
}

#[test]
fn failing_origin_leaves_robots_txt_and_tags() {
    let gate = Setup::before(Origin::nowhere())
        .policy("shop", SHOP)
        .start();
    let failed = gate.get("shop.example", "/", BROWSER);
    assert_eq!(
        (failed.status, failed.fields("x-robots-tag")),
        (502, vec!["noindex"])
    );
    assert_eq!(gate.get("shop.example", "/robots.txt", "").status, 200);
    assert_eq!(gate.get("shop.example", "/", GPTBOT).status, 403);
}

#[test]
fn a_host_that_no_site_claims_is_forwarded_untouched() {
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nServer: theirs\r\nX-Robots-Tag: a , b\r\nContent-Type: application/pdf\r\nContent-Length: 2\r\n\
         \r\nok",
    );
    let gate = shop(&origin);
    for target in ["/robots.txt", "/drafts/a"] {
        let response = gate.get("other.example", target, GPTBOT);
        assert_eq!((response.status, response.text()), (200, "ok"));
        assert_eq!(
            (response.field("server"), response.fields("x-robots-tag")),
            (Some("theirs"), vec!["a , b"])
        );
    }
}

#[test]
fn observe_blocks_no_request_and_counts() {
    let origin = Origin::plain();
    let policy = SHOP.replace("mode: enforce", "mode: observe");
    let gate = Setup::before(origin.address)
        .policy("shop", &policy)
        .start();
    assert_eq!(gate.get("shop.example", "/article", GPTBOT).status, 200);
    let series = "crawlgate_requests_total{action=\"would_block\",crawler=\"gptbot\",kind=\"unproven\",site=\"shop\"}";
    eventually("the request counted", || {
        metric(&gate, series).filter(|count| *count == 1.0)
    });
}

#[test]
fn a_paused_site_answers_503_and_its_robots_txt_too_when_asked() {
    let origin = Origin::plain();
    let pause = "pause: { audience: everyone, retry_after: 30m, robots_txt: pause }\n";
    let gate = Setup::before(origin.address)
        .policy("shop", &format!("{SHOP}{pause}"))
        .start();
    for (target, agent) in [
        ("/", BROWSER),
        ("/robots.txt", "User-Agent: Googlebot/2.1\r\n"),
    ] {
        let paused = gate.get("shop.example", target, agent);
        assert_eq!(paused.status, 503, "{target}");
        assert_eq!(
            (paused.field("retry-after"), paused.field("cache-control")),
            (Some("1800"), Some("no-store"))
        );
    }
    for challenge in [
        "/.well-known/acme-challenge/x",
        "/.well-known/pki-validation/x.txt",
    ] {
        assert_eq!(
            gate.get("shop.example", challenge, BROWSER).status,
            200,
            "{challenge}"
        );
    }
    assert_eq!(
        gate.get(
            "shop.example",
            "/.well-known/acme-challenge/../../x",
            BROWSER
        )
        .status,
        503
    );
    let series = "crawlgate_robots_txt_total{crawler=\"googlebot\",site=\"shop\",status=\"503\"}";
    eventually("the paused robots.txt counted", || metric(&gate, series));
}

/// Of an authority, of crawlers that are not verified, and of a bot that no list knows.
#[test]
fn challenges_pass_for_everybody_and_are_no_crawlers_requests() {
    const STRICT: &str = "hosts: [shop.example]\n\
        crawlers: [{ token: OurBot, user_agent: OurBot, networks: [192.0.2.0/24] }]\n\
        robots: { origin: replace, groups: [{ agents: ['*'], disallow: /.well-known/ }] }\n\
        indexing: [{ tag: noarchive }]\nhtml: { meta: yes }\n\
        enforcement: { mode: enforce, unverified: refuse, traps: [/.well-known/pki-validation/], purposes: { other: enforce } }\n";
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 25\r\n\r\n<html><head></head></html",
    );
    let gate = Setup::before(origin.address)
        .policy("shop", STRICT)
        .settings("logs: { access: access.log }")
        .start();
    let agents = [
        "User-Agent: Mozilla/5.0 (compatible; Let's Encrypt validation server; +https://www.letsencrypt.org)\r\n",
        "User-Agent: OurBot/1.0\r\n",
        "User-Agent: FoozleBot/1.0 (+https://foozle.example)\r\n",
        GPTBOT,
        BROWSER,
    ];
    for host in ["shop.example", "unknown.example"] {
        for target in [
            "/.well-known/acme-challenge/abcdefghijk",
            "/.well-known/pki-validation/fileauth.txt",
        ] {
            for agent in agents {
                let response = gate.get(host, target, agent);
                assert_eq!(
                    (response.status, response.body.len()),
                    (200, 25),
                    "{host} {target} {agent}"
                );
                assert_eq!(
                    gate.ask("HEAD", host, target, agent).status,
                    200,
                    "{host} {target} {agent}"
                );
            }
        }
    }
    let requests = 2 * 2 * 2 * agents.len();
    let log = eventually("a line for each", || {
        let text = crate::proxy::support::read(&gate.path("access.log"));
        (text.lines().count() == requests).then_some(text)
    });
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(
            line["crawler"].is_null() && line["identity"].is_null(),
            "{line}"
        );
        assert!(
            line["kind"].is_null() || line["kind"] == "not_a_crawler",
            "{line}"
        );
    }
    let counted = "crawlgate_requests_total{action=\"pass\",crawler=\"none\",identity=\"none\",kind=\"not_a_crawler\"}";
    gate.wait_for_metric(counted, requests as f64);
    for target in [
        "/.well-known/pki-validation/../cart/",
        "/.well-known/acme-challenge/a/b",
        "/.well-known/security.txt",
    ] {
        assert_eq!(
            gate.get("shop.example", target, GPTBOT).status,
            403,
            "{target}"
        );
    }
    assert_eq!(
        gate.ask(
            "POST",
            "shop.example",
            "/.well-known/acme-challenge/abc",
            GPTBOT
        )
        .status,
        403
    );
}

#[test]
fn the_access_log_says_why_a_crawler_is_only_observed() {
    let origin = Origin::plain();
    let observing = SHOP
        .replace("shop.example", "calm.example")
        .replace("mode: enforce", "mode: observe");
    let careful = SHOP.replace("shop.example", "care.example") + "  unverified: observe\n";
    let setup = Setup::before(origin.address)
        .policy("shop", SHOP)
        .policy("calm", &observing)
        .policy("care", &careful);
    let gate = setup.settings("logs: { access: access.log }").start();
    gate.get(
        "shop.example",
        "/cart/",
        "User-Agent: FoozleBot/1.0 (+https://foozle.example)\r\n",
    );
    gate.get("calm.example", "/cart/", GPTBOT);
    gate.get("care.example", "/cart/", GPTBOT);
    gate.get("shop.example", "/cart/", GPTBOT);
    let lines: Vec<serde_json::Value> = eventually("four lines in the access log", || {
        let text = crate::proxy::support::read(&gate.path("access.log"));
        let lines: Vec<_> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        (lines.len() == 4).then_some(lines)
    });
    for (host, crawler, observed) in [
        ("shop.example", "other", "unlisted".into()),
        ("calm.example", "gptbot", "mode".into()),
        ("care.example", "gptbot", "unverified".into()),
        ("shop.example", "gptbot", serde_json::Value::Null),
    ] {
        let line = lines
            .iter()
            .find(|line| line["host"] == host && line["crawler"] == crawler)
            .expect("a line");
        assert_eq!(line["observed"], observed, "{line}");
    }
}

#[test]
fn access_log_has_decision_and_rule() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address).policy("shop", SHOP);
    let log = setup.policies().join("../access.log");
    let gate = setup
        .settings(&format!("logs: {{ access: {} }}", log.display()))
        .start();
    gate.get("shop.example", "/article", GPTBOT);
    let line = eventually("a line in the access log", || {
        let text = crate::proxy::support::read(&log);
        text.lines().next().map(str::to_string)
    });
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    for (field, value) in [
        ("site", "shop"),
        ("crawler", "gptbot"),
        ("verdict", "disallowed"),
        ("kind", "unproven"),
        ("action", "block"),
        ("method", "GET"),
        ("host", "shop.example"),
        ("target", "/article"),
        ("client", "127.0.0.1"),
    ] {
        assert_eq!(line[field], value, "{line}");
    }
    assert!(
        line["rule_source"]
            .as_str()
            .is_some_and(|place| place.contains("shop.yaml:9:")),
        "{line}"
    );
    assert!(
        line["version"]
            .as_str()
            .is_some_and(|version| version.len() == 16),
        "{line}"
    );
}

#[test]
fn a_crawler_sees_the_page_whole_where_its_tags_are_new() {
    let origin = pdf();
    let gate = shop(&origin);
    let conditional =
        "If-None-Match: \"x\"\r\nIf-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n";
    let bingbot = format!(
        "User-Agent: {}\r\n{conditional}",
        crate::proxy::support::BINGBOT
    );
    gate.get("shop.example", "/report.pdf", &bingbot);
    assert_eq!(
        origin.last().field("if-none-match"),
        None,
        "a 304 would hide the new noindex"
    );
    assert_eq!(origin.last().field("if-modified-since"), None);
    gate.get(
        "shop.example",
        "/report.pdf",
        &format!(
            "User-Agent: {}\r\n{conditional}",
            crate::proxy::support::BROWSER
        ),
    );
    assert_eq!(
        origin.last().field("if-none-match"),
        Some("\"x\""),
        "people keep their caches"
    );
}

/// A name in a group blocks no app; a marker that the owner acknowledges does.
#[test]
fn an_app_is_blocked_by_an_acknowledged_marker_alone() {
    let origin = Origin::plain();
    let agents = [
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/141.0 \
         Mobile/15E148 Safari/604.1",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 \
         Instagram 300.0",
        "Mozilla/5.0 (Linux; Android 13; Spider 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0 Mobile Safari/537.36",
    ];
    let rules = "robots: { origin: replace, groups: [{ agents: [CriOS, Instagram, Spider], disallow: / }] }\n\
                 enforcement: { mode: enforce }\n";
    let marker =
        "crawlers: [{ token: Instagram, user_agent: Instagram }]\nacknowledge: [blocks_people]\n";
    for (policy, expected) in [
        (rules.to_owned(), [200, 200, 200]),
        (format!("{rules}{marker}"), [200, 403, 200]),
    ] {
        let gate = Setup::before(origin.address)
            .policy("shop", &policy)
            .start();
        let status = agents.map(|agent| {
            gate.get("shop.example", "/x", &format!("User-Agent: {agent}\r\n"))
                .status
        });
        assert_eq!(status, expected, "{policy}");
    }
}
