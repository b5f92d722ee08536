//! These tests check a policy's statements about the use of content, such as `Content-Signal` and
//! licences: which statements are accepted, and how they are published in robots.txt and in
//! headers. Another test checks that no such statement changes what a crawler may fetch.

use crate::crawlers::Registry;
use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crate::policy::site::PathSignals;
use crate::policy::{Site, compile, compile_with_origin, read};
use crate::robots::{Dialect, DialectRules, RobotsFile, RobotsKey, TargetScratch};
use crate::time::Timestamp;
use crate::yaml::SourceFile;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::sync::Arc;

fn compile_site(text: &str) -> Site {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: text.into(),
    };
    let (policy, found) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{text}\n{found:?}"));
    compile(Arc::new(policy), Registry::builtin()).expect("compiles")
}

fn robots_txt(text: &str) -> String {
    String::from_utf8(compile_site(text).robots_txt.body.to_vec()).expect("UTF-8")
}

/// The lines of an agent's group about the use of content.
fn group_signal_lines(body: &str, agent: &str) -> Vec<String> {
    let group = body.split("\n\n").find(|group| {
        group
            .lines()
            .any(|line| line == format!("User-agent: {agent}"))
    });
    let keys = ["Content-Signal:", "Content-Usage:", "License:"];
    let lines = group
        .unwrap_or_else(|| panic!("{agent} in\n{body}"))
        .lines();
    lines
        .filter(|line| keys.iter().any(|key| line.starts_with(key)))
        .map(str::to_owned)
        .collect()
}

fn header_lines(site: &Site, path: &str) -> Vec<String> {
    let mut scratch = TargetScratch::default();
    let said = site.signals.for_path(scratch.normalise(path.as_bytes()));
    site.signals
        .fields(said)
        .map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

/// The id, line and column of each error.
fn decode_errors(text: &str) -> Vec<(&'static str, u32, u32)> {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: text.into(),
    };
    let (policy, found) = read("shop", &source);
    assert!(policy.is_none(), "{text} is accepted");
    let place =
        |item: &crate::yaml::Diagnostic| item.span.map_or((0, 0), |span| (span.line, span.column));
    found
        .items
        .iter()
        .map(|item| (item.id, place(item).0, place(item).1))
        .collect()
}

#[test]
fn bad_tdm_policy_url_has_a_help_about_tdm() {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: "robots: { origin: replace }\ntdm: { reservation: yes, policy: /tdm.json }".into(),
    };
    let (_, found) = read("shop", &source);
    let help = found.items[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("tdm-policy.json"), "{help}");
}

#[test]
fn absent_signals_publish_nothing() {
    let site = compile_site("robots: { origin: replace, groups: [{ agents: '*', disallow: /a }] }");
    assert_eq!(
        &*site.robots_txt.body,
        b"# Written by crawlgate from the site's policy.\n\n# From robots.groups.\nUser-agent: *\nDisallow: /a\n"
    );
    assert!(header_lines(&site, "/").is_empty() && site.signals.tdmrep.as_ref().is_none());
}

const ALL: &str = "
purposes: { seo: disallow, archive: allow }
robots:
  origin: replace
  license: [{ url: https://shop.example/photos.xml, paths: /photos/ }, https://shop.example/all.xml]
  content_signal: { ai-train: no, search: yes, use: reference }
  content_usage:
    - { search: yes, train-ai: no, other: { x-new: yes } }
    - { paths: [/open/, '/ü b/*.pdf$'], train-ai: y }
  groups:
    - { agents: '*', disallow: [/cart/] }
    - { agents: Bingbot, extends: '*', content_signal: { ai-input: yes }, license: https://shop.example/bing.xml }
    - { agents: msnbot, extends: Bingbot, content_usage: { paths: /open/, train-ai: no } }
    - { agents: GPTBot, disallow: / }
";

#[test]
fn own_signals_of_a_group_outrank_extended_ones() {
    let body = robots_txt(ALL);
    let usage = [
        "Content-Usage: train-ai=n, search=y, x-new=y",
        "Content-Usage: /open/ train-ai=y",
        "Content-Usage: /%C3%BC%20b/*.pdf$ train-ai=y",
    ];
    let signal = "Content-Signal: search=yes, ai-train=no, use=reference";
    assert_eq!(
        group_signal_lines(&body, "*"),
        [&[signal], &usage[..]].concat()
    );
    assert_eq!(
        group_signal_lines(&body, "GPTBot"),
        group_signal_lines(&body, "*")
    );
    assert_eq!(
        group_signal_lines(&body, "ia_archiver"),
        group_signal_lines(&body, "*"),
        "`allow` starts from the rules of `*`"
    );
    let bing = "License: https://shop.example/bing.xml";
    assert_eq!(
        group_signal_lines(&body, "Bingbot"),
        [&["Content-Signal: ai-input=yes"], &usage[..], &[bing]].concat()
    );
    assert_eq!(
        group_signal_lines(&body, "msnbot"),
        [
            "Content-Signal: ai-input=yes",
            "Content-Usage: /open/ train-ai=n",
            usage[0],
            usage[2],
            bing
        ],
    );
    assert!(
        group_signal_lines(&body, "AhrefsBot").is_empty(),
        "nothing can be used that may not be fetched"
    );
    let (first, _) = body.split_once("User-agent").expect("a group");
    let licenses: Vec<&str> = first
        .lines()
        .filter(|line| line.starts_with("License"))
        .collect();
    assert_eq!(
        licenses,
        [
            "License: https://shop.example/photos.xml",
            "License: https://shop.example/all.xml"
        ]
    );
}

#[test]
fn site_signals_make_an_open_star_group() {
    let body = robots_txt(
        "robots: { origin: replace, content_signal: { ai-train: no }, groups: [{ agents: a, disallow: /x }] }",
    );
    assert!(
        body.contains("User-agent: *\nAllow: /\nContent-Signal: ai-train=no\n"),
        "{body}"
    );
    let staging = robots_txt(
        "environment: staging\nrobots: { origin: replace, content_usage: { train-ai: no } }",
    );
    assert!(
        staging.ends_with("User-agent: *\nAllow: /\nContent-Usage: train-ai=n\n"),
        "{staging}"
    );
    // A licence needs no group.
    let body = robots_txt("robots: { origin: replace, license: https://a.example/l }");
    assert!(!body.contains("User-agent"), "{body}");
}

#[test]
fn headers_only_removes_signals_from_robots_txt() {
    let quiet = ALL.replace(
        "origin: replace",
        "origin: replace\n  signals: headers_only",
    );
    let body = robots_txt(&quiet);
    let known = |line: &str| {
        line.is_empty()
            || ["#", "User-agent:", "Allow:", "Disallow:"]
                .iter()
                .any(|key| line.starts_with(key))
    };
    assert!(body.lines().all(known), "{body}");
    assert_eq!(
        header_lines(&compile_site(&quiet), "/"),
        [
            "Content-Signal: search=yes, ai-train=no, use=reference",
            "Content-Usage: train-ai=n, search=y, x-new=y",
            "Link: <https://shop.example/all.xml>; rel=\"license\"; type=\"application/rsl+xml\"",
        ]
    );
    let alone =
        "robots: { origin: replace, signals: headers_only, content_signal: { ai-train: no } }";
    assert!(
        !robots_txt(alone).contains("User-agent"),
        "no group is made for lines that are not written"
    );
}

#[test]
fn headers_have_longest_usage_and_first_licence() {
    let text = format!(
        "{ALL}\ntdm:\n  - {{ paths: ['/open/*.txt', /free], reservation: no }}\n  - {{ reservation: yes, policy: https://shop.example/tdm }}\n"
    );
    let site = compile_site(&text);
    let link = |name: &str| {
        format!(
            "Link: <https://shop.example/{name}.xml>; rel=\"license\"; type=\"application/rsl+xml\""
        )
    };
    let (usage, reserved) = (
        "Content-Usage: train-ai=n, search=y, x-new=y".to_owned(),
        [
            "tdm-reservation: 1".to_owned(),
            "tdm-policy: https://shop.example/tdm".to_owned(),
        ],
    );
    assert_eq!(
        header_lines(&site, "/"),
        [&[usage.clone(), link("all")], &reserved[..]].concat()
    );
    assert_eq!(
        header_lines(&site, "/photos/1"),
        [&[usage, link("photos")], &reserved[..]].concat()
    );
    let open = "Content-Usage: train-ai=y".to_owned();
    assert_eq!(
        header_lines(&site, "/%6fpen/x"),
        [&[open.clone(), link("all")], &reserved[..]].concat()
    );
    assert_eq!(
        header_lines(&site, "/open/a.txt"),
        [open.clone(), link("all"), "tdm-reservation: 0".to_owned()]
    );
    assert_eq!(header_lines(&site, "/ü%20b/c.pdf")[0], open);
    assert_ne!(header_lines(&site, "/ü%20b/c.pdf?x")[0], open);
}

#[test]
fn tdmrep_json_and_headers_agree() {
    let site = compile_site(
        "robots: { origin: replace, max_age: 2h }\ntdm:\n  - { paths: ['/a \"b\"', '*.jpg$'], reservation: no }\n  - { reservation: yes, policy: https://shop.example/tdm }\n",
    );
    let file = site.signals.tdmrep.as_ref().expect("a file");
    let json: serde_json::Value = serde_json::from_slice(&file.body).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!([
            { "location": "/a%20\"b\"", "tdm-reservation": 0 },
            { "location": "*.jpg$", "tdm-reservation": 0 },
            { "location": "/", "tdm-reservation": 1, "tdm-policy": "https://shop.example/tdm" },
        ])
    );
    assert_eq!(file.cache_control, "public, max-age=7200");
    assert!(file.etag.starts_with('"') && file.etag.ends_with('"'));
}

/// A value that could break its line, its header or the `<>` of a Link is an error.
#[test]
fn hostile_values_are_rejected_at_their_place() {
    let signs = [
        "\\r\\nX: y",
        "\\n",
        "\\0",
        " ",
        "\\t",
        ">",
        "<",
        "\\\"",
        "#a",
        "é",
        "\\u2028",
        "\\x7f",
        "{",
        "\\\\",
    ];
    for sign in signs {
        for (before, after, column) in [
            (
                "robots: { origin: replace, license: \"https://a.example/",
                "\" }",
                37,
            ),
            (
                "robots: { origin: replace, groups: { agents: a, license: \"https://a.example/",
                "\" } }",
                58,
            ),
            (
                "robots: { origin: replace, license: { url: \"https://a.example/",
                "\" } }",
                44,
            ),
        ] {
            assert_eq!(
                decode_errors(&format!("{before}{sign}{after}")),
                [("bad-url", 1, column)],
                "{sign:?}"
            );
        }
        let text = format!(
            "robots: {{ origin: replace }}\ntdm: {{ reservation: yes, policy: \"https://a.example/{sign}\" }}"
        );
        assert_eq!(decode_errors(&text), [("bad-url", 2, 34)], "{sign:?}");
    }
    for url in [
        "/license.xml",
        "license.xml",
        "javascript:alert(1)",
        "https://",
        "https:///x",
        "http://?",
        "ftp://a.example/",
        "''",
    ] {
        assert_eq!(
            decode_errors(&format!("robots: {{ origin: replace, license: {url} }}")),
            [("bad-url", 1, 37)],
            "{url}"
        );
    }
    for name in ["A", "a=y", "a\\nb", "a b", "a,b", "é", "", "-a", "a;q"] {
        let text = format!(
            "robots: {{ origin: replace, content_usage: {{ other: {{ \"{name}\": no }} }} }}"
        );
        assert_eq!(decode_errors(&text)[0], ("bad-category", 1, 54), "{name:?}");
    }
    for path in ["a", "/a\\nDisallow: /", "https://a.example/"] {
        let text = format!(
            "robots: {{ origin: replace, content_usage: {{ paths: \"{path}\", search: no }} }}"
        );
        assert_eq!(decode_errors(&text), [("bad-path", 1, 52)], "{path:?}");
    }
    assert_eq!(
        decode_errors("robots: { origin: replace, content_usage: { paths: '*.pdf', search: no } }"),
        [("bad-path", 1, 52)]
    );
}

#[test]
fn empty_and_repeated_signals_are_rejected() {
    for (text, found) in [
        (
            "robots: { origin: replace, content_signal: {} }",
            ("empty-signal", 1, 44),
        ),
        (
            "robots: { origin: replace, content_usage: { paths: /a } }",
            ("empty-signal", 1, 43),
        ),
        (
            "robots: { origin: replace, content_usage: { paths: [], search: no } }",
            ("empty-condition", 1, 45),
        ),
        (
            "robots: { origin: replace, content_usage: [{ search: no }, { paths: [/a, /], search: no }] }",
            ("duplicate-path", 1, 74),
        ),
        (
            "robots: { origin: replace, content_usage: [{ paths: /a, search: no }, { paths: '/%61', search: y }] }",
            ("duplicate-path", 1, 80),
        ),
        (
            "robots: { origin: replace, content_usage: { search: no, other: { search: y } } }",
            ("duplicate-key", 1, 66),
        ),
        (
            "robots: { origin: replace, content_signal: { train: no } }",
            ("unknown-field", 1, 46),
        ),
        (
            "robots: { origin: replace, content_signal: { search: maybe } }",
            ("bad-value", 1, 54),
        ),
        (
            "robots: { origin: replace, license: { paths: /a } }",
            ("missing-field", 1, 37),
        ),
        (
            "robots: { origin: replace }\ntdm: { policy: https://a.example/ }",
            ("missing-field", 2, 6),
        ),
        (
            "robots: { origin: replace }\ntdm: [{ reservation: yes }, { reservation: no }]",
            ("duplicate-path", 2, 29),
        ),
        (
            "robots: { origin: replace, license: https://a.example/ }\nenforcement: { unlicensed: 403 }",
            ("bad-value", 2, 28),
        ),
    ] {
        assert_eq!(decode_errors(text), [found], "{text}");
    }
}

#[test]
fn number_of_paths_is_limited() {
    let paths: Vec<String> = (0..10_001).map(|number| format!("/{number}")).collect();
    let text = format!(
        "robots: {{ origin: replace, content_usage: {{ paths: [{}], search: no }} }}",
        paths.join(",")
    );
    let span = text.find("/10000").expect("the last path");
    assert_eq!(decode_errors(&text), [("bad-value", 1, span as u32 + 1)]);
}

fn arbitrary_signals() -> impl Strategy<Value = String> {
    let words = [
        "content_signal: { search: yes, ai-train: no }",
        "content_usage: [{ train-ai: no }, { paths: /a, search: y }]",
        "license: https://a.example/license.xml",
    ];
    subsequence(words.to_vec(), 0..=3)
        .prop_map(|chosen| chosen.iter().map(|word| format!(", {word}")).collect())
}

fn arbitrary_group(agent: &'static str) -> impl Strategy<Value = (&'static str, String, String)> {
    let paths = subsequence(vec!["/", "/a", "/a/b", "/*.pdf$", "/b", "*x"], 0..4);
    let rules = (paths.clone(), paths).prop_map(|(allow, disallow)| {
        let list = |key: &str, paths: &[&str]| {
            if paths.is_empty() {
                String::new()
            } else {
                format!(", {key}: ['{}']", paths.join("', '"))
            }
        };
        format!("{}{}", list("allow", &allow), list("disallow", &disallow))
    });
    (Just(agent), rules, arbitrary_signals())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// With and without signals every reader finds the same groups and verdicts, and no line has an
    /// issue.
    #[test]
    fn signals_change_no_verdict(
        groups in (arbitrary_group("'*'"), arbitrary_group("Bingbot"), arbitrary_group("GPTBot")).prop_flat_map(|(a, b, c)| subsequence(vec![a, b, c], 0..=3)),
        of_site in arbitrary_signals(),
        purposes in select(vec!["{}", "{ training: disallow }", "{ search: allow }", "{ training: allow, seo: disallow }"]),
        tdm in select(vec!["", "tdm: { reservation: yes }\n"]),
    ) {
        let text = |with: bool| {
            let said = |signals: &String| if with { signals.clone() } else { String::new() };
            let groups: Vec<String> =
                groups.iter().map(|(agent, rules, signals)| format!("{{ agents: {agent}{rules}{} }}", said(signals))).collect();
            format!(
                "acknowledge: site_disallowed\npurposes: {purposes}\n{}robots: {{ origin: replace, groups: [{}]{} }}\n",
                if with { tdm } else { "" }, groups.join(", "), said(&of_site),
            )
        };
        let (with, without) = (compile_site(&text(true)), compile_site(&text(false)));
        let files = [&with, &without].map(|site| RobotsFile::parse(site.robots_txt.body.to_vec()));
        for line in files[0].lines() {
            prop_assert!(line.issues.is_empty(), "{}", line.number);
            let known = line.key_value.as_ref().is_none_or(|record| record.key != RobotsKey::Unknown);
            prop_assert!(known, "line {}", line.number);
        }
        let mut scratch = TargetScratch::default();
        for dialect in [Dialect::Rfc9309, Dialect::Google] {
            let [with_signals, without_signals] = [0, 1].map(|file| DialectRules::new(&files[file], dialect, &[]));
            for agent in ["Bingbot", "GPTBot", "AhrefsBot", "Googlebot", "Nobody"] {
                for url in ["/", "/a", "/a/b", "/a/c.pdf", "/b?x", "/x", "/.well-known/tdmrep.json"] {
                    let verdicts = [&with_signals, &without_signals]
                        .map(|reading| reading.verdict(agent.as_bytes(), url.as_bytes()).allowed);
                    prop_assert_eq!(verdicts[0], verdicts[1], "{} {}", agent, url);
                    if dialect == Dialect::Rfc9309 {
                        // And the matcher of requests says what the file says.
                        let group = with.matcher.named_group(agent).or(with.matcher.star_group());
                        let target = scratch.normalise(url.as_bytes());
                        let rules = group.map(|group| with.matcher.rules(group));
                        let allowed = rules.and_then(|rules| Some(rules.rules()[rules.find(target.sent)?].allow));
                        prop_assert_eq!(verdicts[0], allowed.unwrap_or(true), "{} {}", agent, url);
                    }
                }
            }
        }
    }
}

/// Many origins resolve `/open/../x` to `/x`.
#[test]
fn path_has_the_signals_of_its_resolved_path() {
    let site = compile_site(
        "robots:
  origin: replace
  license: [{ url: https://a.example/open.xml, paths: /open/ }, { url: https://a.example/closed.xml, paths: /closed/ }]
  content_usage: [{ paths: /open/, train-ai: yes }, { paths: /closed/, train-ai: no }]
tdm: [{ paths: /open/, reservation: no }, { paths: /closed/, reservation: yes }]
",
    );
    for (sent, resolved) in [
        ("/open/../closed/x", "/closed/x"),
        ("//closed/x", "/closed/x"),
        ("/closed;a/x", "/closed/x"),
    ] {
        assert_eq!(
            header_lines(&site, sent),
            header_lines(&site, resolved),
            "{sent}"
        );
    }
    assert_eq!(header_lines(&site, "/open/../x"), Vec::<String>::new());
    assert_eq!(
        header_lines(&site, "/open/./y"),
        header_lines(&site, "/open/y")
    );
}

#[test]
fn origin_licence_of_a_group_is_asked_for() {
    let asked = |line: &str| {
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: "robots: { groups: { agents: GPTBot, disallow: /y, license: https://a.example/g.xml } }\nenforcement: { unlicensed: 401 }\n".into(),
        };
        let policy = Arc::new(read("shop", &source).0.expect("good"));
        let file = format!("User-agent: CCBot\nDisallow: /x\n{line}\n");
        let origin = OriginRobotsTxt::new("http://127.0.0.1/robots.txt", file.into_bytes());
        let origin = OriginRobotsAvailability::Available(Arc::new(origin));
        let site = compile_with_origin(policy, &origin, Registry::builtin(), Timestamp(0))
            .expect("compiles");
        let group = site.matcher.named_group("CCBot");
        let license = site
            .signals
            .license(PathSignals::default(), group)
            .map(|license| license.url.clone());
        (
            license,
            site.signals
                .is_terms_page(TargetScratch::default().normalise(b"/cc.xml")),
        )
    };
    assert_eq!(
        asked("License: https://a.example/cc.xml"),
        (Some("https://a.example/cc.xml".to_owned()), true)
    );
    for odd in [
        "License: /cc.xml",
        "License: https://a.example/cc.xml>; rel=x",
        "License:",
    ] {
        assert_eq!(asked(odd), (None, false), "{odd}");
    }
}

/// A licence of the origin before all groups is for every crawler, beside a licence of the policy
/// for some paths.
#[test]
fn origin_licence_is_asked_of_all_crawlers() {
    let asked = |robots: &str, path: &str, agent: &str| {
        let text = format!("{robots}enforcement: {{ unlicensed: 401 }}\n");
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: text.into(),
        };
        let policy = Arc::new(read("shop", &source).0.expect("good"));
        let file = "License: /not.whole\nLicense: https://a.example/site.xml\nUser-agent: *\nDisallow: /x\n\n\
                    User-agent: CCBot\nDisallow: /y\nLicense: https://a.example/cc.xml\n";
        let origin = OriginRobotsTxt::new("http://127.0.0.1/robots.txt", file.as_bytes().to_vec());
        let origin = OriginRobotsAvailability::Available(Arc::new(origin));
        let site = compile_with_origin(policy, &origin, Registry::builtin(), Timestamp(0))
            .expect("compiles");
        let group = site.matcher.named_group(agent);
        let mut scratch = TargetScratch::default();
        let said = site.signals.for_path(scratch.normalise(path.as_bytes()));
        assert!(site.signals.has_license());
        let license = site
            .signals
            .license(said, group)
            .map(|license| license.url.clone());
        // Pages name what the policy says, and no more.
        let links = site
            .signals
            .fields(said)
            .filter(|(name, _)| *name == "Link")
            .count();
        let license =
            license.and_then(|url| Some(url.strip_prefix("https://a.example/")?.to_owned()));
        let is_terms_page = license.as_ref().is_some_and(|path| {
            site.signals
                .is_terms_page(TargetScratch::default().normalise(format!("/{path}").as_bytes()))
        });
        assert!(license.is_none() || is_terms_page, "it can be read");
        (license, links)
    };
    let is = |license: &str, links: usize| (Some(license.to_owned()), links);
    for origin in ["merge", "only"] {
        let none = format!("robots: {{ origin: {origin} }}\n");
        assert_eq!(asked(&none, "/a", "GPTBot"), is("site.xml", 0));
        assert_eq!(asked(&none, "/a", "CCBot"), is("cc.xml", 0));
        let images = format!(
            "robots: {{ origin: {origin}, license: [{{ paths: [/img/], url: 'https://a.example/img.xml' }}] }}\n"
        );
        assert_eq!(asked(&images, "/img/1", "GPTBot"), is("img.xml", 1));
        assert_eq!(asked(&images, "/a", "GPTBot"), is("site.xml", 0));
        assert_eq!(asked(&images, "/a", "CCBot"), is("cc.xml", 0));
        let all =
            format!("robots: {{ origin: {origin}, license: 'https://a.example/ours.xml' }}\n");
        assert_eq!(asked(&all, "/a", "CCBot"), is("ours.xml", 1));
    }
}

#[test]
fn empty_list_is_rejected() {
    for (text, place) in [
        ("robots: { origin: replace, content_usage: [] }", (1, 43)),
        ("robots: { origin: replace, license: [] }", (1, 37)),
        (
            "robots: { origin: replace, groups: { agents: '*', disallow: /a, license: [] } }",
            (1, 74),
        ),
        ("robots: { origin: replace }\ntdm: []", (2, 6)),
    ] {
        assert_eq!(
            decode_errors(text),
            [("empty-signal", place.0, place.1)],
            "{text}"
        );
    }
}
