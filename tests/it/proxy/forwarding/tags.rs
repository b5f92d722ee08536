//! X-Robots-Tag as a client receives it from the real binary: for every shipped policy and every
//! value that is found in the wild, what policy and origin together mean; on every kind of answer;
//! and retired paths, by the clock. (That all of it is the same over HTTP/2 is shown in
//! `tests/it/proxy/edge/http2.rs`.)

use crate::proxy::support::kinds::{self, tagged};
use crate::proxy::support::nginx::Nginx;
use crate::proxy::support::{
    BINGBOT, BROWSER, Connection, Gate, HOST, Origin, Response, Setup, eventually, read, run,
};
use crawlgate::crawlers::Registry;
use crawlgate::indexing::{Directives, RobotsTags, TagScope, parse_lines};
use crawlgate::internals::policy::Policy;
use crawlgate::internals::policy::model::{Environment, ResponseConditions, StatusCondition};
use crawlgate::internals::robots::TargetScratch;
use crawlgate::internals::verdict;
use crawlgate::robots::PathPattern;
use crawlgate::time::Timestamp;
use crawlgate::yaml::SourceFile;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const BOTS: [&str; 3] = ["googlebot", "bingbot", "unnamedbot"];

/// Field lines as they are found, and what they come to for each of [`BOTS`].
struct Row {
    lines: Vec<Vec<u8>>,
    means: [String; 3],
}

/// See `src/indexing/wild_tags.txt` for the form.
fn wild() -> Vec<Row> {
    let text = include_str!("../../../../src/indexing/wild_tags.txt");
    let blocks = text
        .split("\n\n")
        .filter(|block| block.lines().any(|line| line.starts_with('>')));
    let rows = blocks.map(|block| {
        let lines = block
            .lines()
            .filter_map(|line| line.strip_prefix('>'))
            .map(|line| bytes(line.trim_matches(' ')));
        let means = ["googlebot ", "bingbot ", "other "].map(|bot| {
            let said = block
                .lines()
                .find_map(|line| line.strip_prefix(bot))
                .expect("each bot has a line");
            let said = String::from_utf8(bytes(said.trim())).expect("UTF-8");
            if said == "-" { String::new() } else { said }
        });
        Row {
            lines: lines.collect(),
            means,
        }
    });
    rows.collect()
}

fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two hexadecimal digits"));
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}

fn effective(response: &Response, bot: &str) -> Directives {
    parse_lines(
        response
            .fields("x-robots-tag")
            .iter()
            .map(|line| line.as_bytes()),
    )
    .effective(bot)
}

/// An origin that answers with the status, the type and the row of the table that the request asks
/// for.
fn echo(rows: Arc<Vec<Row>>) -> Origin {
    Origin::start(move |request, stream| {
        let asked = |name: &str| request.field(name).unwrap_or_default();
        let mut answer = format!(
            "HTTP/1.1 {} Asked\r\nContent-Type: {}\r\nContent-Length: 2\r\n",
            asked("x-status"),
            asked("x-type")
        )
        .into_bytes();
        for line in asked("x-row")
            .parse()
            .ok()
            .and_then(|row: usize| rows.get(row))
            .iter()
            .flat_map(|row| &row.lines)
        {
            answer.extend(b"X-Robots-Tag: ");
            answer.extend(line);
            answer.extend(b"\r\n");
        }
        answer.extend(b"\r\nok");
        stream.write_all(&answer).is_ok()
    })
}

/// What a policy says about a response, rule by rule as they are written.
fn sent_tags(policy: &Policy, target: &str, status: u16, media: &str) -> RobotsTags {
    let holds = |when: &ResponseConditions| {
        let mut scratch = TargetScratch::default();
        let sent = scratch.normalise(target.as_bytes()).sent;
        assert!(when.path_regex.is_none(), "no shipped policy has one");
        let is = |wanted: &str| {
            media == wanted
                || wanted
                    .strip_suffix('*')
                    .is_some_and(|kind| media.starts_with(kind))
        };
        (when.paths.is_empty()
            || when
                .paths
                .iter()
                .any(|path| PathPattern::new(&path.value).matches(sent)))
            && (when.types.is_empty() || when.types.iter().any(|wanted| is(&wanted.value)))
            && (when.status.is_empty()
                || when.status.iter().any(|wanted| match wanted.value {
                    StatusCondition::Code(code) => code == status,
                    StatusCondition::Class(class) => u16::from(class) == status / 100,
                }))
    };
    let mut tags = RobotsTags::default();
    if policy.environment == Environment::Staging {
        tags.merge(&parse_lines([b"noindex".as_slice()]));
    }
    for rule in &policy.indexing {
        if holds(&rule.when) && !rule.unless.as_ref().is_some_and(holds) {
            tags.merge(&rule.tags);
        }
    }
    tags
}

fn shipped() -> Vec<PathBuf> {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let presets = std::fs::read_dir(policies.join("presets"))
        .expect("presets")
        .map(|entry| entry.expect("one").path());
    presets
        .chain([policies.join("demo.yaml")])
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect()
}

#[test]
fn sent_tags_combine_policy_and_origin() {
    let rows = Arc::new(wild());
    assert!(rows.len() >= 40);
    let origin = echo(rows.clone());
    let mut told = 0;
    for path in shipped() {
        let text = read(&path);
        let source = SourceFile {
            name: path.display().to_string().into(),
            text: text.as_str().into(),
        };
        let site = verdict::load_site("site", &source, Registry::builtin())
            .0
            .expect("a shipped policy is good");
        let gate = Setup::before(origin.address).policy("site", &text).start();
        let host = site
            .policy
            .hosts
            .first()
            .map_or(HOST.to_owned(), |host| host.value.to_string());
        let mut connection = gate.connect();
        let responses = [
            ("/article", 200, "text/html"),
            ("/report.pdf", 200, "application/pdf"),
            ("/photo.jpg", 200, "image/jpeg"),
            ("/drafts/notes.md", 200, "text/markdown"),
            ("/join", 404, "text/html"),
            ("/members/", 403, "text/html"),
        ];
        for (target, status, media) in responses {
            let policy = sent_tags(&site.policy, target, status, media);
            for (number, row) in rows.iter().enumerate() {
                connection.send(&format!(
                    "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {BROWSER}\r\nX-Status: {status}\r\nX-Type: {media}\r\n\
                     X-Row: {number}\r\n\r\n"
                ));
                let response = connection.response("GET");
                assert_eq!((response.status, response.text()), (status, "ok"));
                for (bot, means) in BOTS.iter().zip(&row.means) {
                    let mut together = to_all(&policy.effective(bot));
                    together.merge(&to_all(&parse_lines([means.as_bytes()]).effective(bot)));
                    let together = together.effective(bot);
                    let what = format!(
                        "{bot} at {target} ({status}, {media}) of {}, origin row {number}",
                        path.display()
                    );
                    assert_eq!(
                        effective(&response, bot),
                        together,
                        "{what}: {:?}",
                        response.fields("x-robots-tag")
                    );
                }
                told += 1;
            }
        }
    }
    assert!(told > 7 * 6 * 40, "{told} responses");
}

fn to_all(said: &Directives) -> RobotsTags {
    let mut tags = RobotsTags::default();
    tags.add(TagScope::All, said);
    tags
}

#[test]
fn every_kind_of_answer_is_tagged_once() {
    let origin = kinds::origin();
    let gate = Setup::before(origin.address)
        .policy("site", kinds::POLICY)
        .start();
    for (method, target, status, lines) in kinds::CASES {
        let response = gate.ask(method, HOST, target, "");
        assert_eq!(
            (response.status, tagged(&response)),
            (status, lines.to_owned()),
            "{method} {target}"
        );
    }
    assert_eq!(
        gate.fetch("/gzip.pdf").body,
        b"\x1f\x8b\x08",
        "the body is the origin's"
    );
}

#[test]
fn http_1_0_clients_get_the_tags_too() {
    let origin = kinds::origin();
    let gate = Setup::before(origin.address)
        .policy("site", kinds::POLICY)
        .start();
    for target in ["/gzip.pdf", "/chunked.pdf"] {
        let mut connection = gate.connect();
        connection.send(&format!("GET {target} HTTP/1.0\r\nHost: {HOST}\r\n\r\n"));
        let response = connection.response("GET");
        assert_eq!(
            (response.status, tagged(&response)),
            (200, "noindex, noarchive".to_owned()),
            "{target}"
        );
        assert_eq!(response.body.len(), 3);
    }
}

#[test]
fn a_304_says_all_or_nothing() {
    let origin = kinds::origin();
    let gate = Setup::before(origin.address)
        .policy("site", kinds::POLICY)
        .start();
    // A person's copy: a PDF could be what is confirmed, and the origin's line alone would replace
    // both.
    let response = gate.get(
        HOST,
        "/typed",
        &format!("User-Agent: {BROWSER}\r\nIf-None-Match: \"1\"\r\n"),
    );
    assert_eq!((response.status, tagged(&response)), (304, String::new()));
    let untyped = "robots: { origin: replace }\nindexing: { paths: /typed, tag: nosnippet }\n";
    let gate = Setup::before(origin.address)
        .policy("site", untyped)
        .start();
    let response = gate.get(
        HOST,
        "/typed",
        &format!("User-Agent: {BROWSER}\r\nIf-None-Match: \"1\"\r\n"),
    );
    assert_eq!(
        (response.status, tagged(&response)),
        (304, "noarchive, nosnippet".to_owned())
    );
    // A crawler's question is put as a plain one: it is to see the new tag with the page.
    gate.get(
        HOST,
        "/typed",
        &format!("User-Agent: {BINGBOT}\r\nIf-None-Match: \"1\"\r\nIf-Modified-Since: x\r\n"),
    );
    assert_eq!(origin.last().field("if-none-match"), None);
    assert_eq!(origin.last().field("if-modified-since"), None);
}

#[test]
fn parts_and_confirmations_of_a_real_server_are_tagged() {
    let nginx = Nginx::start(None);
    let gate = Setup::before(nginx.address)
        .policy("site", kinds::POLICY)
        .start();
    for (method, target, (name, value), status, lines) in kinds::CASES_OF_NGINX {
        let response = gate.ask(method, HOST, target, &format!("{name}: {value}\r\n"));
        assert_eq!(
            (response.status, tagged(&response)),
            (status, lines.to_owned()),
            "{method} {target}"
        );
    }
    let part = gate.get(HOST, "/report.pdf", "Range: bytes=0-3\r\n");
    assert_eq!(part.body, b"%PDF");
    // The type of several parts is not in the head: what may be said of them is said.
    for target in ["/report.pdf", "/picture.png"] {
        let parts = gate.get(HOST, target, "Range: bytes=0-1,4-5\r\n");
        let media = parts.field("content-type").unwrap_or_default();
        assert!(
            parts.status == 206 && media.starts_with("multipart/byteranges"),
            "{parts:?}"
        );
        assert_eq!(
            tagged(&parts),
            "noindex, noarchive, noimageindex, max-snippet: 20 | googlebot: nofollow",
            "{target}"
        );
    }
    let etag = part.field("etag").expect("nginx sends one").to_owned();
    let confirmed = gate.get(
        HOST,
        "/report.pdf",
        &format!("User-Agent: {BROWSER}\r\nIf-None-Match: {etag}\r\n"),
    );
    assert_eq!((confirmed.status, tagged(&confirmed)), (304, String::new()));
}

fn retiring(from: Timestamp, after: &str) -> String {
    format!(
        "robots: {{ origin: replace, groups: [{{ agents: '*', disallow: /x }}] }}\n\
         retire: {{ paths: /old/, noindex_from: {from}, disallow_after: {after} }}\nenforcement: {{ mode: enforce, grace: 1h }}\n"
    )
}

/// The stage by the bytes, and by the tag of a page, in the order in which they are asked for.
fn stage(gate: &Gate) -> (String, String) {
    let served = gate.fetch("/robots.txt").text().to_owned();
    (
        if served.contains("Disallow: /old/") {
            "disallowed"
        } else {
            "open"
        }
        .to_owned(),
        tagged(&gate.fetch("/old/page")),
    )
}

#[test]
fn a_retired_path_goes_on_by_the_clock_without_an_edit() {
    let origin = Origin::plain();
    let begins = Timestamp::from(SystemTime::now()).plus(Duration::from_secs(3_600));
    let after = retiring(begins, "14d");
    let before = after.lines().next().expect("the robots section").to_owned();
    let mut gate = Setup::before(origin.address)
        .policy("site", &before)
        .with_clock()
        .start();
    gate.write_policy("site", &after);
    assert!(gate.command(&["reload"]).status.success());
    assert_eq!(stage(&gate), ("open".to_owned(), String::new()));
    let first = gate.fetch("/robots.txt").field("etag").map(str::to_owned);
    gate.wait_for_metric(
        "crawlgate_retire_paths{site=\"site\",stage=\"planned\"}",
        1.0,
    );

    gate.live_through(3_600);
    eventually("noindex while crawlable", || {
        (stage(&gate) == ("open".into(), "noindex".into())).then_some(())
    });
    gate.wait_for_metric(
        "crawlgate_retire_paths{site=\"site\",stage=\"noindex\"}",
        1.0,
    );
    gate.wait_for_metric(
        "crawlgate_retire_paths{site=\"site\",stage=\"planned\"}",
        0.0,
    );
    assert_eq!(
        gate.fetch("/robots.txt").field("etag").map(str::to_owned),
        first,
        "the bytes are the same"
    );
    assert_eq!(gate.fetch_as(BINGBOT, "/old/page").status, 200);

    // Just before the end of its time.
    gate.live_through(14 * 86_400 - 600);
    assert_eq!(
        gate.fetch_as(BINGBOT, "/robots.txt")
            .field("etag")
            .map(str::to_owned),
        first
    );
    assert_eq!(stage(&gate), ("open".to_owned(), "noindex".to_owned()));
    gate.live_through(600);
    eventually("disallowed", || {
        (stage(&gate).0 == "disallowed").then_some(())
    });
    gate.wait_for_metric(
        "crawlgate_retire_paths{site=\"site\",stage=\"disallowed\"}",
        1.0,
    );
    assert_ne!(
        gate.fetch("/robots.txt").field("etag").map(str::to_owned),
        first
    );
    // Whoever holds the version before is not refused within the grace time.
    assert_eq!(gate.fetch_as(BINGBOT, "/old/page").status, 200);
    gate.wait_for_metric(
        "crawlgate_requests_total{action=\"pass\",crawler=\"bingbot\",kind=\"stale_copy\",site=\"site\"}",
        1.0,
    );
}

#[test]
fn check_and_explain_say_where_a_path_stands() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("shop.yaml");
    std::fs::write(
        &file,
        retiring(Timestamp::parse("2020-01-01").expect("a day"), "14d"),
    )
    .expect("written");
    let path = file.display().to_string();
    let json: serde_json::Value =
        serde_json::from_slice(&run(&["check", "--json", &path]).stdout).expect("JSON");
    assert_eq!(json["sites"][0]["retire"][0]["stage"], "disallowed");

    let explain = |more: &[&str]| {
        let policies = directory.path().display().to_string();
        let always = [
            "explain",
            "--host",
            HOST,
            "--user-agent",
            BROWSER,
            "--policies",
            &policies,
            "/old/page",
        ];
        String::from_utf8_lossy(&run(&[&always, more].concat()).stdout).into_owned()
    };
    let text = explain(&["--origin-tag", "googlebot: nofollow, noarchive"]);
    assert!(
        text.contains("response   X-Robots-Tag: noindex\nresponse   X-Robots-Tag: googlebot: nofollow, noarchive\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "X-Robots-Tag for googlebot: noindex, nofollow, noarchive\nX-Robots-Tag for bingbot: noindex\n"
        ),
        "{text}"
    );
    let others = "X-Robots-Tag for every other crawler: noindex\n";
    assert!(text.contains(others), "{text}");
    let text = explain(&[]);
    let all = "X-Robots-Tag: noindex\nX-Robots-Tag for every crawler: noindex\n";
    assert!(text.contains(all), "{text}");
    let json = |more: &[&str]| -> serde_json::Value {
        serde_json::from_str(&explain(more)).expect("JSON")
    };
    let kept = json(&["--json", "--origin-tag", "googlebot: nofollow, noarchive"]);
    assert!(kept.get("taken_away").is_none(), "{kept}");
    let json = json(&["--json"]);
    assert_eq!(
        json["effective"][2],
        serde_json::json!({ "bot": "*", "directives": ["noindex"] })
    );
}

#[test]
fn explain_says_which_tags_of_the_origin_are_taken_away() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = "robots: { origin: replace }\nindexing: [{ paths: /a, origin_tags: strip }, { paths: /b, tag: nofollow, origin_tags: replace }]\n";
    std::fs::write(directory.path().join("shop.yaml"), policy).expect("written");
    let policies = directory.path().display().to_string();
    let explain = |more: &[&str]| {
        let always = [
            "explain",
            "--host",
            HOST,
            "--user-agent",
            BROWSER,
            "--policies",
            &policies,
            "--origin-tag",
            "noindex",
        ];
        String::from_utf8_lossy(&run(&[&always, more].concat()).stdout).into_owned()
    };
    for (path, sent) in [
        ("/a", serde_json::json!([])),
        ("/b", serde_json::json!(["nofollow"])),
    ] {
        let json: serde_json::Value =
            serde_json::from_str(&explain(&["--json", path])).expect("JSON");
        assert_eq!(
            (&json["taken_away"], &json["x_robots_tag"]),
            (&serde_json::json!(["noindex"]), &sent),
            "{path}"
        );
    }
}

#[test]
fn staging_site_retires_no_page() {
    let origin = Origin::plain();
    let begun = retiring(Timestamp::parse("2020-01-01").expect("a day"), "14d");
    let policy = format!(
        "environment: staging\n{}",
        begun.replace("disallow: /x", "disallow: /y")
    );
    let gate = Setup::before(origin.address)
        .policy("site", &policy)
        .start();
    assert_eq!(
        stage(&gate),
        ("open".to_owned(), "noindex".to_owned()),
        "as all of the site"
    );
    let json = |output: Output| -> serde_json::Value {
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let status = json(gate.command(&["status", "--json"]));
    let policies = gate.setup.policies().display().to_string();
    let check = json(run(&["check", "--format", "json", &policies]));
    for report in [&status, &check] {
        let retired = &report["sites"][0]["retire"][0];
        assert_eq!(
            (&retired["path"], &retired["staging"]),
            (&"/old/".into(), &true.into()),
            "{report}"
        );
    }
    assert!(
        !gate.metrics().contains("crawlgate_retire_paths{"),
        "{}",
        gate.metrics()
    );
}

#[test]
fn indexable_status_follows_sent_tags() {
    let origin = Origin::start(|request, stream| {
        let tag = if request.field("x-close").is_some() {
            "X-Robots-Tag: Googlebot: none\r\n"
        } else {
            ""
        };
        let status = if request.field("x-error").is_some() {
            "503 No"
        } else {
            "200 OK"
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{tag}Content-Length: 2\r\n\r\nok"
        );
        stream.write_all(answer.as_bytes()).is_ok()
    });
    let policy = "robots: { origin: replace }\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let (indexable, seen) = (
        "crawlgate_site_indexable{site=\"site\"}",
        "crawlgate_site_front_page_timestamp_seconds{site=\"site\"}",
    );
    gate.wait_for_metric(indexable, 1.0);
    gate.wait_for_metric(seen, 0.0);

    gate.get(HOST, "/", "X-Close: 1\r\n");
    gate.wait_for_metric(indexable, 0.0);
    // What is no page of the front says nothing about it.
    gate.get(HOST, "/other", "");
    gate.get(HOST, "/", "X-Error: 1\r\n");
    gate.wait_for_metric(indexable, 0.0);
    gate.get(HOST, "/", "");
    gate.wait_for_metric(indexable, 1.0);

    // What the policy takes away is not sent.
    gate.get(HOST, "/", "X-Close: 1\r\n");
    gate.wait_for_metric(indexable, 0.0);
    gate.write_policy("site", &format!("{policy}origin_tags: strip\n"));
    assert!(gate.command(&["reload"]).status.success());
    gate.wait_for_metric(seen, 0.0);
    gate.get(HOST, "/", "X-Close: 1\r\n");
    eventually("the front page is seen", || {
        (!gate.metrics().contains(&format!("{seen} 0\n"))).then_some(())
    });
    gate.wait_for_metric(indexable, 1.0);
}

#[test]
fn a_connection_goes_on_after_tags_of_any_size() {
    let origin = Origin::start(|_, stream| {
        let long = "x-custom-directive, ".repeat(500);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: {long}\r\nContent-Length: 2\r\n\r\nok"
        );
        stream.write_all(answer.as_bytes()).is_ok()
    });
    let policy =
        "acknowledge: site_noindex\nrobots: { origin: replace }\nindexing: { tag: noindex }\n";
    let gate = Setup::before(origin.address).policy("site", policy).start();
    let mut connection: Connection = gate.connect();
    for _ in 0..3 {
        connection.send(&format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n"));
        let response = connection.response("GET");
        assert_eq!(
            (response.status, tagged(&response).as_str()),
            (200, "noindex, x-custom-directive")
        );
    }
}
