//! `check --sitemap`: a site's sitemap against its policy or its robots.txt.

use crate::proxy::support::Origin;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const ROBOTS_TXT: &str = "User-agent: *\nDisallow: /drafts/\n\nUser-agent: PetalBot\nDisallow: /\n";
const POLICY: &str = "hosts: [docs.example]\nrobots:\n  origin: replace\n  groups:\n    - agents: [\"*\"]\n      disallow: [/drafts/]\nindexing: [{ paths: [/old/], tag: noindex }]\n";
const SITEMAP: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n\
    <url><loc>https://docs.example/</loc></url>\n\
    \x20 <url><loc>https://docs.example/drafts/a</loc></url>\n\
    <url><loc>https://docs.example/old/b</loc></url>\n\
    <url><loc>https://staging.docs.example/</loc></url>\n\
    <url><loc>/c</loc></url>\n</urlset>\n";

/// A documentation site as its generator leaves it, with a policy beside it.
fn site(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, content) in files {
        fs::write(directory.path().join(name), content).expect("a file");
    }
    directory
}

fn check(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .arg("check")
        .args(arguments)
        .current_dir(directory)
        .env_remove("GITHUB_WORKSPACE")
        .output()
        .expect("the binary runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The findings about sitemaps, one for each URL: file, id, line and column. Sorted by file and line.
fn findings(directory: &Path, arguments: &[&str]) -> Vec<(String, String, u64, u64)> {
    let report = json(&check(directory, &[arguments, &["--json"]].concat()));
    let findings = report["findings"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let mut found = Vec::new();
    for finding in findings.filter(|finding| text(&finding["id"]).starts_with("sitemap")) {
        let places = finding["urls"].as_array().cloned();
        for place in places.unwrap_or_else(|| vec![finding.clone()]) {
            found.push((
                text(&finding["file"]),
                text(&finding["id"]),
                number(&place["line"]),
                number(&place["column"]),
            ));
        }
    }
    found.sort_by(|one, other| (&one.0, one.2).cmp(&(&other.0, other.2)));
    found
}

fn ids(directory: &Path, arguments: &[&str]) -> Vec<String> {
    let found = findings(directory, arguments).into_iter();
    found.map(|(_, id, ..)| id).collect()
}

#[test]
fn urls_of_a_sitemap_are_judged_by_the_policy() {
    let site = site(&[
        ("docs.yaml", POLICY.as_bytes()),
        ("sitemap.xml", SITEMAP.as_bytes()),
    ]);
    let arguments = ["docs.yaml", "--sitemap", "sitemap.xml"];
    let row = |id: &str, line, column| ("sitemap.xml".to_owned(), id.to_owned(), line, column);
    assert_eq!(
        findings(site.path(), &arguments),
        [
            row("sitemap-url-disallowed", 3, 13),
            row("sitemap-url-noindex", 4, 11),
            row("sitemap-url-other-host", 5, 11),
            row("sitemap-url-relative", 6, 11),
        ]
    );
    let output = check(site.path(), &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "--> sitemap.xml:3:13",
        "docs.yaml:6:18",
        "Googlebot, bingbot, and ",
        "1 sitemap read",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn robots_txt_that_closes_a_listed_url_fails_the_job() {
    let site = site(&[
        ("robots.txt", ROBOTS_TXT.as_bytes()),
        ("sitemap.xml", SITEMAP.as_bytes()),
    ]);
    let arguments = ["robots.txt", "--sitemap", "sitemap.xml", "--format"];
    let output = check(site.path(), &[&arguments[..], &["github"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    let command = "::error title=crawlgate sitemap-url-disallowed,file=sitemap.xml,line=3,endLine=3,col=13,endColumn=42::";
    let line = text.lines().find(|line| line.starts_with(command));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("robots.txt:2") && !line.contains("PetalBot"),
        "{line}"
    );

    let output = check(site.path(), &[&arguments[..], &["sarif"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let log = json(&output);
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].is_string());
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "crawlgate");
    let rules: Vec<&Value> = driver["rules"].as_array().expect("rules").iter().collect();
    let result = run["results"].as_array().expect("results").iter();
    let mut closed = result.filter(|result| result["ruleId"] == "sitemap-url-disallowed");
    let result = closed.next().expect("a result");
    assert_eq!(result["level"], "error");
    assert!(
        result["message"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("robots.txt:2"))
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "sitemap.xml");
    assert_eq!(
        place["region"],
        serde_json::json!({ "startLine": 3, "startColumn": 13, "endColumn": 42 })
    );
    for result in run["results"].as_array().expect("results") {
        let rule = rules.iter().find(|rule| rule["id"] == result["ruleId"]);
        let rule = rule.unwrap_or_else(|| panic!("a rule of {result}"));
        assert!(rule["help"]["text"].is_string() && rule["shortDescription"]["text"].is_string());
    }
}

#[test]
fn names_of_files_are_uris_in_sarif() {
    let site = site(&[("shop ä.yaml", b"hosts: [\n")]);
    let log = json(&check(site.path(), &["shop ä.yaml", "--format", "sarif"]));
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "shop%20%C3%A4.yaml");
}

#[test]
fn sitemaps_of_an_index_are_read_beside_it() {
    let index = "<sitemapindex>\n\
        <sitemap><loc>https://docs.example/a/pages.xml?v=1</loc></sitemap>\n\
        <sitemap><loc>https://docs.example/index.xml</loc></sitemap>\n\
        <sitemap><loc>https://docs.example/other.xml</loc></sitemap>\n\
        <sitemap><loc>https://docs.example/missing.xml</loc></sitemap>\n\
        <sitemap><loc>https://docs.example/..</loc></sitemap>\n\
        </sitemapindex>";
    let site = site(&[
        ("robots.txt", ROBOTS_TXT.as_bytes()),
        ("index.xml", index.as_bytes()),
        ("other.xml", index.as_bytes()),
        ("pages.xml", b"https://docs.example/drafts/\n"),
    ]);
    let row = |file: &str, id: &str, line, column| (file.to_owned(), id.to_owned(), line, column);
    assert_eq!(
        findings(site.path(), &["robots.txt", "--sitemap", "./index.xml"]),
        [
            row("./index.xml", "sitemap-unreadable", 3, 15),
            row("./index.xml", "sitemap-unreadable", 4, 15),
            row("./index.xml", "sitemap-unreadable", 5, 15),
            row("./index.xml", "sitemap-unreadable", 6, 15),
            row("./pages.xml", "sitemap-url-disallowed", 1, 1),
        ]
    );
}

/// One file with many queries is one sitemap; the 101st file is not checked.
#[test]
fn each_file_of_an_index_is_read_once() {
    let listed =
        |name: &str| format!("<sitemap><loc>https://docs.example/{name}</loc></sitemap>\n");
    let queries: String = (0..150)
        .map(|number| listed(&format!("a.xml?{number}")))
        .collect();
    let names: Vec<String> = (0..100).map(|number| format!("{number}.xml")).collect();
    let others: String = names.iter().map(|name| listed(name)).collect();
    let index = format!("<sitemapindex>\n{queries}{others}</sitemapindex>");
    let mut files: Vec<(&str, &[u8])> = vec![
        ("robots.txt", ROBOTS_TXT.as_bytes()),
        ("index.xml", index.as_bytes()),
        ("a.xml", b"https://docs.example/drafts/\n"),
    ];
    let texts: Vec<String> = names
        .iter()
        .map(|name| format!("https://docs.example/{name}.html\n"))
        .collect();
    let others = names.iter().zip(&texts);
    files.extend(others.map(|(name, text)| (&**name, text.as_bytes())));
    let site = site(&files);
    assert_eq!(
        findings(site.path(), &["robots.txt", "--sitemap", "index.xml"])
            .iter()
            .map(|(file, id, line, _)| (&**file, &**id, *line))
            .collect::<Vec<_>>(),
        [
            ("./a.xml", "sitemap-url-disallowed", 1),
            ("index.xml", "sitemap-unreadable", 251),
        ]
    );
}

#[test]
fn urls_closed_by_one_rule_are_one_finding_with_all() {
    let drafts = (0..1_500).map(|page| format!("https://docs.example/drafts/{page}\n"));
    let urls: String = std::iter::once("https://docs.example/cart\n".to_owned())
        .chain(drafts)
        .collect();
    let robots_txt = "User-agent: *\nDisallow: /drafts/\nDisallow: /cart\n";
    let site = site(&[
        ("robots.txt", robots_txt.as_bytes()),
        ("urls.txt", urls.as_bytes()),
    ]);
    let arguments = ["robots.txt", "--sitemap", "urls.txt"];
    let report = json(&check(site.path(), &[&arguments[..], &["--json"]].concat()));
    let findings = report["findings"].as_array().expect("a list").iter();
    let closed: Vec<&Value> = findings
        .filter(|finding| finding["id"] == "sitemap-url-disallowed")
        .collect();
    let listed: Vec<usize> = closed
        .iter()
        .map(|finding| finding["urls"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(listed, [1_500, 1], "the rule with the most URLs first");
    let last = &closed[0]["urls"][1_499];
    assert_eq!(last["url"], "https://docs.example/drafts/1499");
    assert_eq!((&last["line"], &last["column"]), (&1_501.into(), &1.into()));
    assert_eq!(report["errors"], 1_501);

    let text = check(site.path(), &arguments);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in [
        "1,500 URLs",
        "robots.txt:2",
        "/drafts/2\"",
        "robots.txt:3",
        "1,501 errors",
        "in 2 findings",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("/drafts/3\""), "{text}");
}

/// A policy publishes no misspelt line.
#[test]
fn misspelt_line_that_closes_urls_is_named() {
    let policy = "hosts: [docs.example]\n";
    let site = site(&[
        ("robots.txt", b"User-agent: *\nDisalow: /drafts/\n"),
        ("docs.yaml", policy.as_bytes()),
        ("urls.txt", b"https://docs.example/drafts/a\n"),
    ]);
    let with_policy = ["docs.yaml", "--origin-robots", "robots.txt"];
    for (rules, is_named) in [(&["robots.txt"][..], true), (&with_policy, false)] {
        let flags = ["--sitemap", "urls.txt", "--json"];
        let report = json(&check(site.path(), &[rules, &flags].concat()));
        let mut findings = report["findings"].as_array().expect("a list").iter();
        let closed = findings.find(|finding| finding["id"] == "sitemap-url-disallowed");
        let message = closed.and_then(|closed| closed["message"].as_str());
        let message = message.unwrap_or_else(|| panic!("{report}"));
        assert_eq!(message.contains("misspelt"), is_named, "{message}");
    }
}

#[test]
fn hostile_sitemaps_are_unreadable_within_bounds() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..60 {
        bomb.write_all(&vec![b' '; 1 << 20]).expect("memory");
    }
    let bomb = bomb.finish().expect("memory");
    let utf16: Vec<u8> = "<urlset/>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let entities = "<!DOCTYPE a [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><urlset><url><loc>&b;</loc></url></urlset>";
    let outside = "<!DOCTYPE a SYSTEM \"http://127.0.0.1:1/a.dtd\"><urlset/>";
    let site = site(&[
        ("robots.txt", ROBOTS_TXT.as_bytes()),
        ("bomb.xml.gz", &bomb),
        ("utf16.xml", &utf16),
        ("entities.xml", entities.as_bytes()),
        ("outside.xml", outside.as_bytes()),
    ]);
    // One line of a gigabyte, which takes no place on the disk.
    let long = File::create(site.path().join("long.xml")).expect("a file");
    (&long).write_all(b"<urlset>").expect("a file");
    long.set_len(1 << 30).expect("a sparse file");
    for name in [
        "bomb.xml.gz",
        "utf16.xml",
        "entities.xml",
        "outside.xml",
        "long.xml",
    ] {
        let found = ids(site.path(), &["robots.txt", "--sitemap", name]);
        assert_eq!(found, ["sitemap-unreadable"], "{name}");
    }
}

#[test]
fn link_out_of_the_directory_is_not_read_as_sitemap() {
    let site = site(&[
        ("secret", b"hunter2\n"),
        ("robots.txt", ROBOTS_TXT.as_bytes()),
    ]);
    fs::create_dir(site.path().join("public")).expect("a directory");
    let index =
        "<sitemapindex><sitemap><loc>https://docs.example/a.xml</loc></sitemap></sitemapindex>";
    fs::write(site.path().join("public/index.xml"), index).expect("a file");
    std::os::unix::fs::symlink("../secret", site.path().join("public/a.xml")).expect("a link");
    for (name, code) in [("public/a.xml", 3), ("public/index.xml", 1)] {
        let output = check(site.path(), &["robots.txt", "--sitemap", name]);
        assert_eq!(output.status.code(), Some(code), "{name}");
        let shown = [output.stdout, output.stderr].concat();
        assert!(
            !String::from_utf8_lossy(&shown).contains("hunter2"),
            "{name}"
        );
    }
}

/// A server with pages that are there, moved, gone and broken, and with sitemaps of them.
fn docs_server() -> Origin {
    Origin::start(|request, client| {
        let host = request.field("host").unwrap_or_default();
        let (head, body) = match request.target() {
            "/sitemap.xml" => (
                "200 OK",
                format!(
                    "http://{host}/\nhttp://{host}/moved\nhttp://{host}/missing\nhttp://{host}/broken\n\
                     http://{host}/seen\nhttp://other.example/\nhttp://{host}/tagged\nhttp://{host}/meta\n\
                     http://{host}/not-for-others\nhttp://{host}/copy\nhttp://{host}/loop\n\
                     http://{host}/a.pdf\n"
                ),
            ),
            "/index.xml" => (
                "200 OK",
                format!(
                    "<sitemapindex><sitemap><loc>http://{host}/sitemap.xml</loc></sitemap>\n\
                     <sitemap><loc>http://{host}/index.xml</loc></sitemap>\n\
                     <sitemap><loc>http://other.example/s.xml</loc></sitemap>\n\
                     <sitemap><loc>http://{host}/missing</loc></sitemap></sitemapindex>"
                ),
            ),
            "/moved" => ("301 Moved Permanently\r\nlocation: /here", String::new()),
            "/loop" => ("302 Found\r\nlocation: /loop", String::new()),
            "/a.pdf" => (
                "200 OK\r\ncontent-type: application/pdf\r\nlink: </a,b>; rel=next, </a.html>; rel=\"canonical\"",
                String::new(),
            ),
            "/missing" => ("404 Not Found", String::new()),
            "/broken" => ("500 Internal Server Error", String::new()),
            "/tagged" => ("200 OK\r\nx-robots-tag: NoIndex", String::new()),
            "/meta" => (
                "200 OK\r\ncontent-type: text/html; charset=utf-8",
                "<!doctype html><title>T</title><meta name=Robots content='NoIndex, follow'>"
                    .to_owned(),
            ),
            "/not-for-others" => (
                "200 OK\r\nx-robots-tag: otherbot: noindex\r\ncontent-type: text/html",
                "<!doctype html><meta name=otherbot content=noindex><p>noindex".to_owned(),
            ),
            "/copy" => (
                "200 OK\r\ncontent-type: text/html",
                "<!doctype html><link rel=Canonical href='/seen?a&#038;b'>".to_owned(),
            ),
            _ => ("200 OK", "a page".to_owned()),
        };
        let length = body.len();
        write!(
            client,
            "HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .is_ok()
    })
}

/// The directory of a policy for the server, which has no name.
fn policy_of(server: &Origin) -> TempDir {
    let policy = format!(
        "hosts: ['{}']\nrobots: {{ origin: replace }}\n",
        server.address.ip()
    );
    site(&[("docs.yaml", policy.as_bytes())])
}

#[test]
fn fetched_urls_show_redirects_and_missing_pages() {
    let server = docs_server();
    let site = policy_of(&server);
    let sitemap = format!("http://{}/sitemap.xml", server.address);
    let without = ["docs.yaml", "--sitemap", &sitemap];
    assert_eq!(ids(site.path(), &without), ["sitemap-url-other-host"]);
    assert_eq!(server.all().len(), 1, "nothing but the sitemap");
    let found = findings(site.path(), &[&without[..], &["--fetch"]].concat());
    let received = server.all();
    let found: Vec<(&str, u64)> = found
        .iter()
        .map(|(_, id, line, _)| (id.as_str(), *line))
        .collect();
    assert_eq!(
        found,
        [
            ("sitemap-url-redirects", 2),
            ("sitemap-url-missing", 3),
            ("sitemap-url-failing", 4),
            ("sitemap-url-other-host", 6),
            ("sitemap-url-noindex", 7),
            ("sitemap-url-noindex", 8),
            ("sitemap-url-canonical", 10),
            ("sitemap-url-redirects", 11),
            ("sitemap-url-canonical", 12),
        ]
    );
    let report = json(&check(
        site.path(),
        &[&without[..], &["--fetch", "--json"]].concat(),
    ));
    let findings = report["findings"].as_array().expect("a list");
    let urls = findings.iter();
    let urls = urls.flat_map(|finding| finding["urls"].as_array().into_iter().flatten());
    for (key, target) in [
        ("redirects_to", "/here"),
        ("redirects_to", "/loop"),
        ("canonical", "/seen?a&b"),
        ("canonical", "/a.html"),
    ] {
        assert!(urls.clone().any(|url| url[key] == target), "{report}");
    }
    let moved = findings
        .iter()
        .find(|found| found["id"] == "sitemap-url-redirects");
    let message = moved.and_then(|found| found["message"].as_str());
    assert!(message.is_some_and(|message| message.contains("redirects (301)")));
    let requests = received.iter().map(|request| request.line.as_str());
    assert_eq!(requests.filter(|line| line.contains(" / ")).count(), 1);
}

#[test]
fn fetching_ends_with_its_time() {
    let server = docs_server();
    let site = policy_of(&server);
    let sitemap = format!("http://{}/sitemap.xml", server.address);
    let flags = ["docs.yaml", "--sitemap", &sitemap, "--fetch"];
    let limits = ["--fetch-time", "0s", "--connections", "1"];
    let found = ids(site.path(), &[&flags[..], &limits].concat());
    assert!(
        found.contains(&"sitemap-url-unfetched".to_owned()),
        "{found:?}"
    );
    assert_eq!(server.all().len(), 1, "nothing but the sitemap");
    for wrong in [["--connections", "0"], ["--connections", "33"]] {
        let output = check(site.path(), &[&flags[..], &wrong].concat());
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn robots_txt_at_a_url_is_for_its_host_alone() {
    let server = docs_server();
    let site = site(&[]);
    let own = format!("http://{}", server.address);
    let sitemap = format!("{own}/sitemap.xml");
    let found = ids(site.path(), &[&own, "--sitemap", &sitemap]);
    assert_eq!(found, ["sitemap-url-other-host"]);
    // A site without the file allows everything.
    let server = Origin::saying("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let own = format!("http://{}", server.address);
    fs::write(site.path().join("urls.txt"), format!("{own}/a\n")).expect("a file");
    let output = check(site.path(), &[&own, "--sitemap", "urls.txt"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(check(site.path(), &[&own]).status.code(), Some(3));
}

#[test]
fn index_at_a_url_is_fetched_from_its_own_host() {
    let server = docs_server();
    let site = policy_of(&server);
    let index = format!("http://{}/index.xml", server.address);
    let found = ids(site.path(), &["docs.yaml", "--sitemap", &index]);
    assert_eq!(
        found,
        [
            "sitemap-unreadable",
            "sitemap-url-other-host",
            "sitemap-unreadable",
            "sitemap-url-other-host"
        ]
    );
    let gone = format!("http://{}/missing", server.address);
    let output = check(site.path(), &["docs.yaml", "--sitemap", &gone]);
    assert_eq!(output.status.code(), Some(3));
}
