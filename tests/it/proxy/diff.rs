//! `diff`, as a process: what changes between two sets of rules, with a URL for each change.

use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

const OLD: &str = "\
hosts: shop.example
robots:
  origin: replace
  groups:
    - agents: \"*\"
      disallow: [/cart/, /search]
indexing:
  - types: application/pdf
    tag: noindex
";

struct Case(TempDir);

impl Case {
    fn new(files: &[(&str, &str)]) -> Case {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, content).expect("a file");
        }
        Case(directory)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .arg("diff")
            .args(arguments)
            .current_dir(self.0.path())
            // What a crawlgate of this machine stored is none of a test's business.
            .env("STATE_DIRECTORY", self.0.path().join("state"))
            .output()
            .expect("the binary runs")
    }

    /// The exit code, and what it printed as JSON.
    fn json(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let output = self.run(&[arguments, &["--json"]].concat());
        let shown = serde_json::from_slice(&output.stdout);
        (
            output.status.code(),
            shown.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))),
        )
    }
}

fn list<'a>(value: &'a Value, field: &str) -> &'a Vec<Value> {
    value[field]
        .as_array()
        .unwrap_or_else(|| panic!("{field} in {value}"))
}

/// Verdicts and rules before and after, with the URL, of the changes that a crawler has.
fn of_crawler(difference: &Value, crawler: &str) -> Vec<[String; 5]> {
    let changes = list(&difference["sites"][0], "access").iter();
    let concerned =
        changes.filter(|change| list(change, "crawlers").iter().any(|name| name == crawler));
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let row = |change: &Value| {
        let (old, new) = (&change["old"], &change["new"]);
        [
            &old["verdict"],
            &old["rule"],
            &new["verdict"],
            &new["rule"],
            &change["url"],
        ]
        .map(text)
    };
    concerned.map(row).collect()
}

#[test]
fn the_same_rules_written_otherwise_differ_in_nothing() {
    let other = OLD.replace("[/cart/, /search]", "\n        - /search\n        - /cart/");
    let case = Case::new(&[("old.yaml", OLD), ("new.yaml", &other)]);
    let (code, difference) = case.json(&["old.yaml", "new.yaml"]);
    assert_eq!(
        (code, &difference["changed"], &difference["sites"]),
        (Some(0), &json!(false), &json!([]))
    );
    assert_eq!(case.run(&["old.yaml", "old.yaml"]).status.code(), Some(0));
}

#[test]
fn rule_about_a_challenge_changes_nothing() {
    let new = OLD.replace(
        "[/cart/, /search]",
        "[/cart/, /search, '/.well-known/pki-validation/fileauth.txt$']",
    );
    let case = Case::new(&[("old.yaml", OLD), ("new.yaml", &new)]);
    assert_eq!(case.json(&["old.yaml", "new.yaml"]).1["sites"], json!([]));
}

#[test]
fn each_change_has_its_crawlers_its_rules_and_a_url() {
    let new = OLD.replace(
        "[/cart/, /search]",
        "[/cart/, /private/]\n      allow: \"/*.pdf$\"\n  sitemaps: https://shop.example/map.xml",
    ) + "purposes: { training: disallow }\n";
    let case = Case::new(&[("old.yaml", OLD), ("new.yaml", &new)]);
    let (code, difference) = case.json(&["old.yaml", "new.yaml"]);
    assert_eq!(code, Some(1));
    let row = |cells: [&str; 5]| cells.map(str::to_owned);
    let bing = of_crawler(&difference, "bingbot");
    for expected in [
        row([
            "disallowed",
            "Disallow: /search",
            "allowed",
            "none",
            "/search",
        ]),
        row([
            "allowed",
            "none",
            "disallowed",
            "Disallow: /private/",
            "/private/",
        ]),
        // The longer pattern wins where both match: no example of a single pattern shows it.
        row([
            "disallowed",
            "Disallow: /cart/",
            "allowed",
            "Allow: /*.pdf$",
            "/cart/.pdf",
        ]),
    ] {
        assert!(bing.contains(&expected), "{expected:?} in {bing:?}");
    }
    assert_eq!(
        of_crawler(&difference, "gptbot"),
        [row(["allowed", "none", "disallowed", "Disallow: /", "/"])]
    );
    let source = &list(&difference["sites"][0], "access")[0]["new"]["source"];
    assert!(
        source
            .as_str()
            .is_none_or(|source| source.starts_with("new.yaml:")),
        "{source}"
    );
    let settings = list(&difference["sites"][0], "settings");
    assert!(
        settings
            .iter()
            .any(|change| change["setting"] == "sitemaps" && change["old"] == "none"),
        "{settings:?}"
    );
}

#[test]
fn enforcement_tags_and_delays_are_changes_too() {
    let new = OLD
        .replace("tag: noindex", "tag: noindex, noarchive")
        .replace("disallow: [", "crawl_delay: 5s\n      disallow: [")
        + "enforcement: { mode: enforce }\n";
    let case = Case::new(&[("old.yaml", OLD), ("new.yaml", &new)]);
    let (_, difference) = case.json(&["old.yaml", "new.yaml"]);
    let site = &difference["sites"][0];
    let refused = list(site, "access")
        .iter()
        .find(|change| change["url"] == "/cart/")
        .expect("a change of /cart/");
    assert_eq!(
        (&refused["old"]["action"], &refused["old"]["would"]),
        (&json!("pass"), &json!("block 403"))
    );
    assert_eq!(
        (&refused["new"]["action"], &refused["new"]["would"]),
        (&json!("block 403"), &Value::Null)
    );
    let tag = &list(site, "responses")[0];
    assert_eq!(
        (&tag["field"], &tag["content_type"]),
        (&json!("X-Robots-Tag"), &json!("application/pdf"))
    );
    assert_eq!(
        (&tag["old"], &tag["new"]),
        (&json!(["noindex"]), &json!(["noindex, noarchive"]))
    );
    let names: Vec<&str> = list(site, "settings")
        .iter()
        .filter_map(|change| change["setting"].as_str())
        .collect();
    assert!(
        names.contains(&"mode") && names.contains(&"crawl_delay"),
        "{names:?}"
    );
}

#[test]
fn directories_are_compared_by_host() {
    let blog = "hosts: blog.example\nrobots: { origin: replace }\n";
    let closed = "hosts: blog.example\nrobots:\n  origin: replace\n  groups: [{ agents: \"*\", disallow: /drafts/ }]\n";
    let moved = OLD.replace("/search", "/find");
    let case = Case::new(&[
        ("old/shop.yaml", OLD),
        ("old/blog.yaml", blog),
        ("new/renamed.yaml", &moved),
        ("new/docs.yaml", &closed.replace("blog", "docs")),
    ]);
    let (_, difference) = case.json(&["old", "new"]);
    let sites: Vec<[&Value; 3]> = list(&difference, "sites")
        .iter()
        .map(|site| [&site["hosts"], &site["old"], &site["new"]])
        .collect();
    assert_eq!(
        sites[0],
        [
            &json!(["blog.example"]),
            &json!("old/blog.yaml"),
            &Value::Null
        ]
    );
    assert_eq!(
        sites[1],
        [
            &json!(["docs.example"]),
            &Value::Null,
            &json!("new/docs.yaml")
        ]
    );
    assert_eq!(
        sites[2],
        [
            &json!(["shop.example"]),
            &json!("old/shop.yaml"),
            &json!("new/renamed.yaml")
        ]
    );
    assert_eq!(
        list(&difference["sites"][1], "access")[0]["url"],
        "/drafts/"
    );
}

#[test]
fn diff_compares_robots_txt_with_a_policy_on_a_log() {
    let policy = OLD.replace("/search", "/find");
    let line = |target: &str, agent: &str| {
        format!(
            "192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] \"GET {target} HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n"
        )
    };
    let log = [
        line("/search?q=1", "Mozilla/5.0 (compatible; bingbot/2.0)"),
        line("/search?q=2", "Mozilla/5.0 (compatible; bingbot/2.0)"),
        line("/cart/1", "GPTBot/1.2"),
        line(
            "/search",
            "Mozilla/5.0 (Windows NT 10.0) Chrome/120.0 Safari/537.36",
        ),
        format!(
            "other.example {}",
            line("/search?q=3", "Mozilla/5.0 (compatible; bingbot/2.0)")
        ),
        "rubbish\n".to_owned(),
    ];
    let case = Case::new(&[
        (
            "robots.txt",
            "User-agent: *\nDisallow: /cart/\nDisallow: /search\n",
        ),
        ("shop.yaml", policy.split("indexing").next().expect("rules")),
        (
            "urls",
            "/search?a\nhttps://shop.example/find/1\nhttps://shop.example/find/2#top\n\n/about\n",
        ),
        ("access.log", &log.concat()),
        ("wrong", "search\n"),
    ]);
    let (code, by_urls) = case.json(&["robots.txt", "shop.yaml", "--urls", "urls"]);
    assert_eq!((code, &by_urls["compared"]), (Some(1), &json!(4)));
    let changes = list(&by_urls["sites"][0], "access").iter();
    let mut sides = changes.flat_map(|change| [&change["old"], &change["new"]]);
    assert!(
        sides.all(|side| side.get("would").is_none()),
        "no mode belongs to a robots.txt"
    );
    let of_bing = |change: &&Value| list(change, "crawlers").contains(&json!("bingbot"));
    let changes = list(&by_urls["sites"][0], "access").iter().filter(of_bing);
    let counts: Vec<[&Value; 2]> = changes
        .map(|change| [&change["url"], &change["count"]])
        .collect();
    assert_eq!(
        counts,
        [
            [&json!("https://shop.example/find/1"), &json!(2)],
            [&json!("/search?a"), &json!(1)]
        ]
    );

    let arguments = ["robots.txt", "shop.yaml", "--urls", "urls"];
    let output = case.run(&[&arguments[..], &["--crawler", "bingbot", "--csv"]].concat());
    let csv = String::from_utf8(output.stdout).expect("text");
    let rows = "site,change,crawlers,url,requests,before,rule before,now,rule now\n\
        shop.example,lose access,bingbot,https://shop.example/find/1,,allowed,,disallowed,Disallow: /find\n\
        shop.example,lose access,bingbot,https://shop.example/find/2,,allowed,,disallowed,Disallow: /find\n\
        shop.example,gain access,bingbot,/search?a,,disallowed,Disallow: /search,allowed,\n";
    assert!(csv.starts_with(rows), "{csv}");

    let (code, by_log) = case.json(&["robots.txt", "shop.yaml", "--log", "access.log"]);
    let change = &list(&by_log["sites"][0], "access")[0];
    assert_eq!(
        (code, &by_log["compared"], &change["count"]),
        (Some(1), &json!(4), &json!(2))
    );
    assert_eq!(
        (&change["crawlers"], &change["url"]),
        (&json!(["bingbot"]), &json!("/search?q=1"))
    );
    assert_eq!(change["urls"], json!({"/search?q=1": 1, "/search?q=2": 1}));
    assert_eq!(by_log["other_hosts"], 1, "the policy is for another host");

    for arguments in [
        &["robots.txt", "shop.yaml", "--urls", "wrong"][..],
        &["robots.txt", "missing.yaml"],
    ] {
        assert_eq!(case.run(arguments).status.code(), Some(3), "{arguments:?}");
    }
}

#[test]
fn diff_compares_on_the_urls_of_a_sitemap() {
    let sitemap = "\u{feff} <urlset><url><loc>https://shop.example/cart/1</loc></url>\
        <url><loc>https://shop.example/about</loc></url>\
        <url><loc>https://shop.example/cart/1</loc></url></urlset>";
    let index =
        "<sitemapindex><sitemap><loc>https://shop.example/NAME.xml</loc></sitemap></sitemapindex>";
    let case = Case::new(&[
        ("open.txt", "User-agent: *\nDisallow:\n"),
        ("closed.txt", "User-agent: *\nDisallow: /cart/\n"),
        ("pages.xml", sitemap),
        ("index.xml", &index.replace("NAME", "pages")),
        ("broken.xml", &index.replace("NAME", "missing")),
    ]);
    let listed = "https://shop.example/cart/1";
    for (flag, urls) in [("--urls", "pages.xml"), ("--sitemap", "index.xml")] {
        let (code, difference) = case.json(&["open.txt", "closed.txt", flag, urls]);
        let change = &list(&difference["sites"][0], "access")[0];
        assert_eq!((code, &difference["compared"]), (Some(1), &json!(2)));
        assert_eq!(change["url"], listed);
        assert_eq!(change["urls"], json!({listed: 1}));
    }
    // Another host has another URL.
    let other = "https://de.shop.example/cart/1";
    let hosts = format!("{listed}\n{other}\n");
    fs::write(case.0.path().join("hosts"), hosts).expect("a file");
    let (_, difference) = case.json(&["open.txt", "closed.txt", "--urls", "hosts"]);
    let change = &list(&difference["sites"][0], "access")[0];
    assert_eq!(change["urls"], json!({other: 1, listed: 1}));
    for (old, new, code) in [("open.txt", "closed.txt", 1), ("closed.txt", "open.txt", 0)] {
        let output = case.run(&[old, new, "--urls", "pages.xml", "--fail-on-loss"]);
        assert_eq!(output.status.code(), Some(code), "{old}");
    }
    let output = case.run(&["open.txt", "closed.txt", "--urls", "broken.xml"]);
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("missing.xml"), "{error}");
}

#[test]
fn diff_on_log_says_that_openings_are_not_in_it() {
    let line = |target: &str| {
        format!(
            "192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] \"GET {target} HTTP/1.1\" 200 9 \"-\" \"GPTBot/1.2\"\n"
        )
    };
    let case = Case::new(&[
        ("closed.txt", "User-agent: *\nDisallow: /cart/\n"),
        ("open.txt", "User-agent: *\nDisallow:\n"),
        ("obedient.log", &line("/")),
        ("cart.log", &line("/cart/1")),
    ]);
    let hint = "run diff without --log";
    for (files, log, has_hint, is_unchanged) in [
        (["closed.txt", "open.txt"], "obedient.log", true, true),
        (["closed.txt", "open.txt"], "cart.log", false, false),
        (["open.txt", "closed.txt"], "cart.log", true, false),
    ] {
        for format in ["text", "markdown"] {
            let more = ["--log", log, "--format", format];
            let output = case.run(&[&files[..], &more].concat());
            let shown = String::from_utf8_lossy(&output.stdout);
            assert_eq!(shown.contains(hint), has_hint, "{shown}");
            let unchanged = shown.contains("No request of this log changes.");
            assert_eq!(unchanged, is_unchanged, "{shown}");
        }
    }
    let output = case.run(&["closed.txt", "closed.txt"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!shown.contains(hint), "{shown}");
}

/// Robots.txt files that close `/search` and open `/cart/`, and a log with the requests of twelve
/// crawlers.
fn case_of_many_crawlers() -> Case {
    let line = |target: &str, agent: &str| {
        format!(
            "192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] \"GET {target} HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n"
        )
    };
    let mut log = String::new();
    for target in ["/search?q=1", "/search?q=2", "/search/a", "/cart/1", "/"] {
        log += &line(target, "GPTBot/1.2");
    }
    log += &line("/", "Applebot/0.1");
    // A webhook is no crawler.
    log += &line("/search", "Hooks/1.0 (+https://pay.example/bot)").replace("GET", "POST");
    for agent in [
        "Googlebot",
        "bingbot",
        "ClaudeBot",
        "CCBot",
        "Amazonbot",
        "PerplexityBot",
        "AhrefsBot",
        "SemrushBot",
        "Bytespider",
        "YandexBot",
    ] {
        log += &line("/search", &format!("{agent}/1.0"));
    }
    Case::new(&[
        ("old.txt", "User-agent: *\nDisallow: /cart/\n"),
        ("new.txt", "User-agent: *\nDisallow: /search\n"),
        ("access.log", &log),
    ])
}

#[test]
fn log_counts_requests_and_paths_by_crawler() {
    let case = case_of_many_crawlers();
    let arguments = ["old.txt", "new.txt", "--log", "access.log"];
    let (_, difference) = case.json(&arguments);
    let by_crawler = list(&difference["sites"][0], "by_crawler");
    assert_eq!(by_crawler.len(), 11, "Applebot's request does not change");
    assert_eq!(
        by_crawler[0],
        json!({
            "crawler": "gptbot",
            "requests": 5,
            "changes": {
                "loses": { "requests": 3, "paths": 2 },
                "gains": { "requests": 1, "paths": 1 },
            },
        })
    );
    let names = |shown: &str, cell: &str| shown.matches(cell).count();
    let text = String::from_utf8(case.run(&arguments).stdout).expect("text");
    let words = "lose access: 3 requests (2 paths), gain access: 1 request (1 path)";
    assert!(
        text.contains(&format!("gptbot, 5 requests; {words}\n")),
        "{text}"
    );
    assert_eq!(names(&text, " access: 1 request (1 path)\n"), 10, "{text}");
    let markdown = [&arguments[..], &["--format", "markdown"]].concat();
    let markdown = String::from_utf8(case.run(&markdown).stdout).expect("text");
    assert!(
        markdown.contains(&format!("| gptbot | 5 | {words} |\n")),
        "{markdown}"
    );
    assert_eq!(
        names(&markdown, " access: 1 request (1 path) |\n"),
        10,
        "{markdown}"
    );
    let (_, difference) = case.json(&["old.txt", "new.txt"]);
    assert_eq!(difference["sites"][0]["by_crawler"], Value::Null);
    let csv = [&arguments[..], &["--csv"]].concat();
    let csv = String::from_utf8(case.run(&csv).stdout).expect("text");
    let row = csv.lines().find(|row| row.contains(",/search,"));
    let cells: Vec<&str> = row.expect("a row").split(',').collect();
    assert_eq!(cells[2].split(' ').count(), 11, "{csv}");
    assert_eq!(cells[4], "10", "{csv}");
}

#[test]
fn csv_has_every_url() {
    let urls: String = (0..12_000).map(|page| format!("/a/{page}\n")).collect();
    let case = Case::new(&[
        ("old.txt", ""),
        ("new.txt", "User-agent: *\nDisallow: /a/\n"),
        ("urls", &urls),
    ]);
    let arguments = [
        "old.txt",
        "new.txt",
        "--urls",
        "urls",
        "--crawler",
        "bingbot",
    ];
    let csv = String::from_utf8(case.run(&[&arguments[..], &["--csv"]].concat()).stdout);
    assert_eq!(csv.expect("text").lines().count(), 12_001);
}

#[test]
fn misspelt_line_is_quoted_as_it_is() {
    let case = Case::new(&[
        ("old.txt", "User-agent: *\nDisallow: /a\n"),
        ("new.txt", "User-agent: *\nDisalow /a # old\nDisalow: /b/\n"),
        ("same.txt", "User-agent: *\nDisalow: /a\n"),
    ]);
    let (_, difference) = case.json(&["old.txt", "new.txt"]);
    let change = &list(&difference["sites"][0], "access")[0]["new"];
    assert_eq!(
        (&change["rule"], &change["misspelt"]),
        (&json!("Disalow: /b/"), &json!(true))
    );
    let output = case.run(&["old.txt", "same.txt", "--csv"]);
    let notes = String::from_utf8_lossy(&output.stderr).lines().count();
    assert_eq!((output.status.code(), notes), (Some(0), 1));
}

#[test]
fn option_crawler_compares_only_this_crawler() {
    let case = case_of_many_crawlers();
    let log = ["--log", "access.log"];
    for (options, compared) in [(&log[..], Some(5)), (&[], None)] {
        let arguments = [&["old.txt", "new.txt", "--crawler", "GPTBot"], options].concat();
        let (code, difference) = case.json(&arguments);
        assert_eq!((code, &difference["crawler"]), (Some(1), &json!("gptbot")));
        let changes = list(&difference["sites"][0], "access");
        assert_eq!(changes.len(), 2, "{changes:?}");
        for change in changes {
            assert_eq!(change["crawlers"], json!(["gptbot"]));
        }
        if let Some(compared) = compared {
            assert_eq!(difference["compared"], json!(compared));
        }
        let text = String::from_utf8(case.run(&arguments).stdout).expect("text");
        assert!(text.contains("Compared only for gptbot."), "{text}");
    }
    let two = ["--crawler", "GPTBot", "--crawler", "bingbot"];
    let (_, difference) = case.json(&[&["old.txt", "new.txt"], &two[..]].concat());
    assert_eq!(difference["crawler"], "gptbot, bingbot");
    for change in list(&difference["sites"][0], "access") {
        assert_eq!(change["crawlers"], json!(["bingbot", "gptbot"]));
    }
    let arguments = ["old.txt", "new.txt", "--crawler", "nobot"];
    assert_eq!(case.run(&arguments).status.code(), Some(2));
}

#[test]
fn pretenders_and_other_times_change_nothing_of_a_log() {
    let line = |client: &str, day: u8, agent: &str| {
        format!(
            "{client} - - [{day:02}/Nov/2026:10:00:00 +0000] \"GET /search HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n"
        )
    };
    let log = [
        line("198.51.100.7", 22, "GPTBot/1.2").repeat(2),
        line("203.0.113.9", 22, "GPTBot/1.2").repeat(5),
        line("198.51.100.7", 1, "GPTBot/1.2").repeat(9),
    ];
    let case = Case::new(&[
        ("old.txt", "User-agent: *\nDisallow: /cart/\n"),
        ("new.txt", "User-agent: *\nDisallow: /search\n"),
        ("access.log", &log.concat()),
        (
            "lists/openai.com/gptbot.json",
            r#"{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}"#,
        ),
    ]);
    let compare = |options: &[&str]| {
        let files = ["old.txt", "new.txt", "--log", "access.log"];
        let (_, difference) = case.json(&[&files, options].concat());
        let change = &list(&difference["sites"][0], "access")[0];
        ["compared", "pretended"]
            .map(|field| &difference[field])
            .into_iter()
            .chain([&change["count"]])
            .map(|count| count.as_u64().unwrap_or_default())
            .collect::<Vec<u64>>()
    };
    assert_eq!(compare(&[]), [16, 0, 16]);
    assert_eq!(compare(&["--lists", "lists"]), [16, 5, 11]);
    let period = ["--since", "2026-11-10", "--until", "2026-11-23"];
    let options = [&["--lists", "lists"], &period[..]].concat();
    assert_eq!(compare(&options), [7, 5, 2]);
    // The address of a proxy raises no suspicion.
    let proxy = ["--lists", "lists", "--trusted-proxy", "203.0.113.0/24"];
    assert_eq!(compare(&proxy), [16, 0, 16]);
    for options in [&["--since", "7d"][..], &["--lists", "lists"]] {
        let output = case.run(&[&["old.txt", "new.txt"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn site_that_asks_for_a_login_is_not_compared() {
    let case = Case::new(&[("robots.txt", "User-agent: *\nDisallow: /a\n")]);
    let page = "200 OK\r\nContent-Type: text/html";
    for (status, body, code) in [
        ("401 Unauthorized", "", 3),
        ("403 Forbidden", "", 3),
        (page, "<!DOCTYPE html><title>Log in</title>", 3),
        ("404 Not Found", "", 1),
        ("200 OK", "User-agent: *\nDisallow: /b\n", 1),
    ] {
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
        let origin = crate::proxy::support::Origin::saying(answer.leak());
        let url = format!("http://user:secret@{}", origin.address);
        let output = case.run(&["robots.txt", &url]);
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown);
        assert_eq!(output.status.code(), Some(code), "{status}: {shown}");
        assert!(!shown.contains("secret"), "{shown}");
        if body.contains("/b") {
            assert!(shown.contains("/robots.txt:2"), "{shown}");
        }
    }
}

#[test]
fn sitemap_at_a_private_address_is_shown() {
    let file = "User-agent: *\nDisallow: /a\nSitemap: https://shop.example/s.xml\n";
    let case = Case::new(&[
        ("old.txt", file),
        ("new.txt", &file.replace("shop.example", "10.0.0.5")),
    ]);
    let difference = case.json(&["old.txt", "new.txt"]).1;
    let change = &list(&difference["sites"][0], "settings")[0];
    assert_eq!(change["new"], "https://10.0.0.5/s.xml");
}

#[test]
fn robots_txt_is_compared_on_the_hosts_of_the_policies() {
    let hosts = |difference: &Value| -> Vec<Value> {
        let sites = list(difference, "sites").iter();
        sites.map(|site| site["hosts"].clone()).collect()
    };
    let for_all = OLD.replace("hosts: shop.example\n", "");
    let case = Case::new(&[
        ("robots.txt", "User-agent: *\nDisallow: /private/\n"),
        ("policies/shop.yaml", OLD),
        ("all/shop.yaml", OLD),
        ("all/rest.yaml", &for_all),
        ("none/README", ""),
    ]);
    let compare = |old: &str, new: &str| hosts(&case.json(&[old, new]).1);
    assert_eq!(compare("robots.txt", "policies"), [json!(["shop.example"])]);
    assert_eq!(compare("policies", "robots.txt"), [json!(["shop.example"])]);
    // Here somebody has rules for the hosts that are left.
    assert_eq!(compare("robots.txt", "all").len(), 2);
    assert_eq!(compare("all", "policies").len(), 1);
    assert_eq!(compare("robots.txt", "none").len(), 1);
}

#[test]
fn old_robots_txt_is_the_origins_if_no_flag_names_one() {
    let merge = OLD.replace("origin: replace", "origin: merge");
    let case = Case::new(&[
        ("robots.txt", "User-agent: *\nDisallow: /private/\n"),
        ("empty.txt", ""),
        ("shop.yaml", &merge),
    ]);
    let run = |options: &[&str]| {
        let arguments = [&["robots.txt", "shop.yaml", "--fail-on-loss"], options].concat();
        let output = case.run(&arguments);
        let lines = String::from_utf8_lossy(&output.stderr).lines().count();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        (shown.contains("/private/"), lines)
    };
    assert_eq!(run(&[]), (false, 1));
    assert_eq!(run(&["--origin-robots", "empty.txt"]), (true, 0));
}

#[test]
fn sites_with_the_same_assumption_share_a_warning() {
    let shop = "hosts: shop.example\nrobots: { origin: merge }\n";
    let blog = "hosts: blog.example\nrobots: { origin: merge }\n";
    let case = Case::new(&[
        ("old/shop.yaml", shop),
        ("new/shop.yaml", shop),
        ("new/blog.yaml", blog),
    ]);
    let warnings = case.run(&["old", "new"]).stderr;
    let warnings = String::from_utf8_lossy(&warnings);
    assert_eq!(warnings.lines().count(), 1, "{warnings}");
    assert!(warnings.contains("blog, shop"), "{warnings}");
}

#[test]
fn pdf_tag_counts_possible_pdfs_by_crawler() {
    const BING: &str = "Mozilla/5.0 (compatible; bingbot/2.0)";
    const PERSON: &str = "Mozilla/5.0 (Windows NT 10.0) Chrome/120.0 Safari/537.36";
    let line = |target: &str, status: u16, agent: &str, kind: &str| {
        format!(
            "192.0.2.7 [22/Nov/2026:10:00:00 +0000] \"GET {target} HTTP/1.1\" {status} \"{agent}\" {kind}\n"
        )
    };
    let log = [
        line("/about", 200, BING, "-"),
        line("/a.pdf", 200, BING, "-"),
        line("/a.pdf", 200, PERSON, "-"),
        line("/A.PDF?x", 200, "GPTBot/1.2", "-"),
        line("/download", 200, BING, "application/pdf; charset=binary"),
        line("/b.pdf", 200, BING, "text/html"),
        line("/gone.pdf", 404, BING, "text/html"),
        line("/photo.jpg", 200, BING, "-"),
    ];
    let new = OLD.replace(
        "indexing:",
        "indexing:\n  - { types: image/*, tag: noimageindex }\n  - { paths: /about, tag: noarchive }",
    );
    let case = Case::new(&[
        (
            "robots.txt",
            "User-agent: *\nDisallow: /cart/\nDisallow: /search\n",
        ),
        ("shop.yaml", &new),
        ("access.log", &log.concat()),
    ]);
    let format = "$remote_addr [$time_local] \"$request\" $status \"$http_user_agent\" $sent_http_content_type";
    let arguments = [
        "robots.txt",
        "shop.yaml",
        "--log",
        "access.log",
        "--log-format",
        format,
    ];
    let (code, difference) = case.json(&arguments);
    let tags = list(&difference["sites"][0], "responses").iter();
    let counted: Vec<[&Value; 5]> = tags
        .map(|tag| ["content_type", "status", "url", "count", "others"].map(|field| &tag[field]))
        .collect();
    let expected = [
        [
            json!("text/html"),
            json!(200),
            json!("/about"),
            json!(1),
            Value::Null,
        ],
        [
            json!("image/jpeg"),
            json!(200),
            json!("/photo.jpg"),
            json!(1),
            Value::Null,
        ],
        [
            json!("application/pdf"),
            json!(200),
            json!("/a.pdf"),
            json!(3),
            json!(1),
        ],
    ];
    assert_eq!(code, Some(1));
    assert_eq!(counted.len(), expected.len(), "{difference}");
    for row in &expected {
        assert!(counted.contains(&row.each_ref()), "{row:?} in {difference}");
    }
    let text = String::from_utf8(case.run(&arguments).stdout).expect("text");
    for [_, _, url, ..] in &expected {
        assert!(
            url.as_str().is_some_and(|url| text.contains(url)),
            "{url} in {text}"
        );
    }
}

#[test]
fn markdown_lists_losses_and_gains() {
    let new = OLD.replace("[/cart/, /search]", "[/cart/]") + "purposes: { training: disallow }\n";
    let case = Case::new(&[("old.yaml", OLD), ("new.yaml", &new)]);
    let output = case.run(&["old.yaml", "new.yaml", "--format", "markdown"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    // A table has a title in bold: losses come first, then gains.
    let parts: Vec<&str> = shown.split("\n**").collect();
    let [_, loses, gains, ..] = parts[..] else {
        panic!("{shown}");
    };
    assert!(
        loses.contains("| `/` |") && loses.contains("`Disallow: /`") && !loses.contains("/search"),
        "{shown}"
    );
    assert!(
        gains.contains("`/search`") && gains.contains("`Disallow: /search`"),
        "{shown}"
    );
    let (_, difference) = case.json(&["old.yaml", "new.yaml"]);
    let effects = list(&difference["sites"][0], "access")
        .iter()
        .map(|change| (&change["effect"], &change["url"]));
    for (effect, url) in effects {
        assert_eq!(
            effect == "gains",
            url == "/search" || url.as_str().is_some_and(|url| url.starts_with("/search"))
        );
    }
}

#[test]
fn observe_is_a_gain_and_enforce_a_loss() {
    let enforced = OLD.to_owned() + "enforcement: { mode: enforce }\n";
    let case = Case::new(&[("observed.yaml", OLD), ("enforced.yaml", &enforced)]);
    for (old, new, effect) in [
        ("observed.yaml", "enforced.yaml", "loses"),
        ("enforced.yaml", "observed.yaml", "gains"),
    ] {
        let (_, difference) = case.json(&[old, new]);
        let access = list(&difference["sites"][0], "access");
        assert!(
            !access.is_empty() && access.iter().all(|change| change["effect"] == effect),
            "{access:?}"
        );
    }
}

#[test]
fn markdown_has_room_in_a_comment() {
    let site = |number: usize, path: &str| {
        let rules: Vec<String> = (0..150)
            .map(|rule| format!("/{path}/{}/{rule}/", "x".repeat(200)))
            .collect();
        let agents = format!(
            "hosts: s{number}.example\nrobots:\n  origin: replace\n  groups:\n    - agents: \"*\"\n"
        );
        format!("{agents}      disallow: [{}]\n", rules.join(", "))
    };
    let names: Vec<(String, String)> = (0..4)
        .flat_map(|number| {
            [
                (format!("old/s{number}.yaml"), site(number, "a")),
                (format!("new/s{number}.yaml"), site(number, "b")),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> = names
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let case = Case::new(&files);
    let shown =
        String::from_utf8(case.run(&["old", "new", "--format", "markdown"]).stdout).expect("UTF-8");
    assert!(
        shown.chars().count() < 65_536,
        "{} characters",
        shown.chars().count()
    );
    let is_cut = |line: &str| line.starts_with("and ");
    assert!(shown.lines().any(is_cut), "{shown}");
}

#[test]
fn a_directory_without_policies_allows_everything() {
    let case = Case::new(&[("old/README", ""), ("new/shop.yaml", OLD)]);
    let (code, difference) = case.json(&["old", "new"]);
    assert_eq!(
        (code, &difference["sites"][0]["old"]),
        (Some(1), &Value::Null)
    );
    assert!(
        list(&difference["sites"][0], "access")
            .iter()
            .any(|change| change["url"] == "/cart/")
    );
    assert_eq!(case.run(&["missing", "new"]).status.code(), Some(3));
}

#[test]
fn markdown_shows_hostile_patterns_as_text() {
    let new = OLD.replace("/search", "/a|b`<script>`");
    let case = Case::new(&[("old.yaml", OLD), ("new.yaml", &new)]);
    let output = case.run(&["old.yaml", "new.yaml", "--format", "markdown"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 4, "{shown}");
    for row in rows {
        assert_eq!(
            row.replace("\\|", "").matches('|').count(),
            5,
            "four cells in {row}"
        );
        assert!(!row.contains("<script>") || row.contains('`'), "{row}");
    }
}

#[test]
fn patterns_of_many_wildcards_are_not_tried_all() {
    let rules: String = (0..51)
        .map(|rule| format!("Disallow: /{}{rule}\n", "a*".repeat(1_000)))
        .collect();
    let plain: String = (0..2_000)
        .map(|rule| format!("Disallow: /p{rule}/\n"))
        .collect();
    let case = Case::new(&[
        ("old.txt", ""),
        ("new.txt", &format!("User-agent: *\n{rules}{plain}")),
    ]);
    let (code, difference) = case.json(&["old.txt", "new.txt"]);
    assert_eq!(
        (code, list(&difference["sites"][0], "notes").len()),
        (Some(1), 1)
    );
    assert!(
        difference["compared"]
            .as_u64()
            .is_some_and(|compared| compared < 100),
        "{}",
        difference["compared"]
    );
}

#[test]
fn losses_of_search_engines_come_first() {
    let robots = |star: &str, google: &str, bing: &str| {
        format!(
            "User-agent: *\nDisallow: {star}\n\nUser-agent: Googlebot\nDisallow: {google}\n\n\
             User-agent: bingbot\nDisallow: {bing}\n"
        )
    };
    let case = Case::new(&[
        ("old.txt", &robots("/cart/", "", "")),
        ("new.txt", &robots("/search", "/google/", "/bing/")),
    ]);
    let (_, difference) = case.json(&["old.txt", "new.txt"]);
    let changes = list(&difference["sites"][0], "access").iter();
    let shown: Vec<[&Value; 2]> = changes
        .map(|change| [&change["effect"], &list(change, "crawlers")[0]])
        .collect();
    assert_eq!(
        shown,
        [
            [&json!("loses"), &json!("googlebot")],
            [&json!("loses"), &json!("bingbot")],
            [&json!("loses"), &json!("gptbot")],
            [&json!("gains"), &json!("gptbot")],
        ]
    );
}

#[test]
fn crawlers_that_owners_ask_about_come_first() {
    let new = OLD.replace("/search]", "/search, /private/]") + "enforcement: { mode: enforce }\n";
    let case = Case::new(&[("old.yaml", OLD), ("new.yaml", &new)]);
    let (_, difference) = case.json(&["old.yaml", "new.yaml"]);
    let site = &difference["sites"][0];
    let of = |part: &str, field: &str, value: &str| {
        let change = list(site, part)
            .iter()
            .find(|change| change[field] == value)
            .expect("a change");
        let crawlers = list(change, "crawlers");
        assert!(
            crawlers.len() > 200 && crawlers[12..].is_sorted_by_key(|name| name.as_str()),
            "{crawlers:?}"
        );
        crawlers[..3].to_vec()
    };
    let expected = [json!("googlebot"), json!("bingbot"), json!("gptbot")];
    assert_eq!(
        (
            of("access", "url", "/private/"),
            of("settings", "setting", "mode")
        ),
        (expected.to_vec(), expected.to_vec())
    );
}

#[test]
fn tag_of_a_type_is_shown_at_a_url_of_it() {
    let tags = "indexing:\n  - { types: image/*, paths: /photos/, tag: noimageindex }\n  - { types: audio/x, tag: noarchive }\n";
    let new = OLD
        .replace("tag: noindex", "tag: nofollow")
        .replace("indexing:\n", tags);
    let case = Case::new(&[
        ("old.yaml", OLD),
        ("new.yaml", &new),
        ("urls", "/\n/report-of-the-year.PDF\n/docs\n"),
    ]);
    let urls = |arguments: &[&str]| {
        let (_, difference) = case.json(arguments);
        let tags = list(&difference["sites"][0], "responses").iter();
        assert!(tags.clone().all(|tag| tag["urls"].is_null()));
        tags.map(|tag| (tag["content_type"].clone(), tag["url"].clone()))
            .collect::<Vec<_>>()
    };
    let made = urls(&["old.yaml", "new.yaml"]);
    for expected in [
        ("application/pdf", "/.pdf"),
        ("image/webp", "/photos/.webp"),
        ("audio/x", "/"),
    ] {
        assert!(
            made.contains(&(json!(expected.0), json!(expected.1))),
            "{expected:?} in {made:?}"
        );
    }
    let given = urls(&["old.yaml", "new.yaml", "--urls", "urls"]);
    assert!(
        given.contains(&(json!("application/pdf"), json!("/report-of-the-year.PDF"))),
        "{given:?}"
    );
}
