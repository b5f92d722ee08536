//! These tests check how the origin's robots.txt is merged with a policy: which rules each
//! user-agent token gets, which lines of the origin are left out, and that a hostile file causes
//! only limited work.

use crate::crawlers::{Claim, CrawlerIndex, Registry, visitor_user_agents, visitor_words};
use crate::policy::compile::CompileError;
use crate::policy::import::import;
use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crate::policy::site::{GroupBinding, RuleSource, Site};
use crate::policy::{compile_with_origin, read};
use crate::robots::{Dialect, DialectRules, RobotsFile, Rule};
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Severity, SourceFile};
use std::collections::BTreeSet;
use std::sync::Arc;

fn compile_site(policy: &str, origin: &str) -> Site {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let (policy, findings) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{findings:?}"));
    let file = OriginRobotsTxt::new("http://10.0.0.7:3000/robots.txt", origin.as_bytes());
    compile_with_origin(
        Arc::new(policy),
        &OriginRobotsAvailability::Available(Arc::new(file)),
        Registry::builtin(),
        Timestamp(i64::MIN),
    )
    .expect("small")
}

fn served_text(policy: &str, origin: &str) -> String {
    String::from_utf8_lossy(&compile_site(policy, origin).robots_txt.body).into_owned()
}

/// The lines of the group of a token, comments aside.
fn group_lines(text: &str, token: &str) -> Vec<String> {
    let mut blocks = text.split("\n\n").filter(|block| {
        block
            .lines()
            .any(|line| line == format!("User-agent: {token}"))
    });
    let block = blocks
        .next()
        .unwrap_or_else(|| panic!("no group for {token}:\n{text}"));
    assert!(blocks.next().is_none(), "two groups for {token}:\n{text}");
    block
        .lines()
        .filter(|line| !line.starts_with(['#', 'U']))
        .map(str::to_owned)
        .collect()
}

fn is_allowed(text: &str, token: &str, path: &str) -> bool {
    DialectRules::new(&RobotsFile::parse(text.as_bytes()), Dialect::Rfc9309, &[])
        .verdict(token.as_bytes(), path.as_bytes())
        .allowed
}

const STAR: &str = "robots: { groups: [{ agents: '*', disallow: /cart/ }] }\n";

#[test]
fn token_gets_rules_of_policy_and_origin() {
    let text = served_text(
        "robots: { groups: [{ agents: '*', disallow: /cart/ }, { agents: bingbot, disallow: /b/ }] }\n",
        "User-agent: *\nDisallow: /tmp/\nUser-agent: CCBot\nDisallow: /c/\n",
    );
    assert_eq!(
        group_lines(&text, "*"),
        ["Disallow: /cart/", "Disallow: /tmp/"]
    );
    assert_eq!(
        group_lines(&text, "bingbot"),
        ["Disallow: /b/", "Disallow: /tmp/"]
    );
    assert_eq!(
        group_lines(&text, "CCBot"),
        ["Disallow: /cart/", "Disallow: /c/"]
    );
}

#[test]
fn traps_are_in_all_groups_and_outrank_origin_allows() {
    let origin = "User-agent: *\nAllow: /trap/way-out\nAllow: /\nDisallow: /tmp/\n\nUser-agent: CCBot\nAllow: /trap/*\n\n\
                  User-agent: Yandex\nAllow: /trap\nDisallow: /\n\nUser-agent: HouseBot\nDisallow: /h/\n";
    for mode in ["merge", "only"] {
        let policy = format!("robots: {{ origin: {mode} }}\nenforcement: {{ traps: [/trap/] }}\n");
        let text = served_text(&policy, origin);
        for token in ["*", "CCBot", "Yandex", "HouseBot"] {
            assert!(
                group_lines(&text, token).contains(&"Disallow: /trap/".to_owned()),
                "{token}, {mode}:\n{text}"
            );
            for path in ["/trap/", "/trap/way-out"] {
                assert!(
                    !is_allowed(&text, token, path),
                    "{token}, {path}, {mode}:\n{text}"
                );
            }
        }
        assert!(has_comment(&text, &["\"Allow: /trap/way-out\""]), "{text}");
        assert!(
            text.contains("\nAllow: /\n") && text.contains("\nAllow: /trap\n"),
            "what is shorter defeats none:\n{text}"
        );
        assert!(
            compile_site(&policy, origin)
                .traps
                .find(b"/trap/x")
                .is_some()
        );
    }
}

#[test]
fn tokens_of_policy_and_origin_have_own_groups() {
    let site = compile_site(
        "crawlers: [{ token: ShopBot, user_agent: [shop-reader] }]\n",
        "User-agent: HouseBot\nDisallow: /h/\n\nUser-agent: ShopBot\nDisallow: /s/\n",
    );
    let whose =
        |user_agent: &[u8]| match Registry::builtin().identify_on_site(user_agent, &site.tokens) {
            Claim::PolicyToken(index) => site.tokens.tokens()[usize::from(index)].as_str(),
            other => panic!("{other:?}"),
        };
    assert_eq!(
        (whose(b"shop-reader/1.0"), whose(b"HouseBot/2.0")),
        ("ShopBot", "HouseBot")
    );
}

#[test]
fn token_is_bound_by_the_group_of_its_crawler() {
    let text = served_text(
        "robots: { groups: [{ agents: '*', disallow: /cart/ }, { agents: Googlebot, disallow: /g/ }] }\n",
        "User-agent: Googlebot-Image\nDisallow: /images/\n\nUser-agent: *\nDisallow: /tmp/\n",
    );
    assert_eq!(
        group_lines(&text, "Googlebot-Image"),
        ["Disallow: /g/", "Disallow: /images/"]
    );
    assert_eq!(
        group_lines(&text, "Googlebot"),
        ["Disallow: /g/", "Disallow: /tmp/"]
    );
}

#[test]
fn known_crawlers_are_bound_by_both_sides() {
    // Each side names another token of many crawlers; who finds which group must not lose the other
    // side's.
    let tokens: Vec<&str> = Registry::builtin()
        .crawlers()
        .iter()
        .filter_map(|crawler| crawler.tokens.last())
        .map(String::as_str)
        .collect();
    let origin: String = tokens
        .iter()
        .step_by(3)
        .map(|token| format!("User-agent: {token}\nDisallow: /o-{}/\n\n", token.len()))
        .collect();
    let mut seen = std::collections::HashSet::new();
    let agents: Vec<String> = tokens
        .iter()
        .skip(1)
        .step_by(2)
        .filter(|token| seen.insert(token.to_ascii_lowercase()))
        .map(|token| format!("\"{token}\""))
        .collect();
    let policy = format!(
        "robots: {{ groups: [{{ agents: [{}], disallow: /p/ }}] }}\n",
        agents.join(", ")
    );
    let (merged, alone, theirs) = (
        compile_site(&policy, &origin),
        compile_site(&policy, ""),
        compile_site("robots: { origin: only }\n", &origin),
    );
    let mut known = std::collections::HashSet::new();
    for (index, crawler) in Registry::builtin().crawlers().iter().enumerate() {
        // Two crawlers of one token read one group; it is made for the first.
        if !crawler
            .tokens
            .first()
            .is_some_and(|token| known.insert(token))
        {
            continue;
        }
        let claim = Claim::Known(crate::crawlers::CrawlerIndex(
            u16::try_from(index).expect("few"),
        ));
        let disallowed = |site: &Site| -> Vec<String> {
            match site.crawler_rules(claim).binding {
                GroupBinding::Group(group) => site
                    .matcher
                    .rules(usize::from(group))
                    .rules()
                    .iter()
                    .map(|rule| rule.pattern.as_str().to_owned())
                    .collect(),
                _ => Vec::new(),
            }
        };
        let (mut both, mut got) = (
            [disallowed(&alone), disallowed(&theirs)].concat(),
            disallowed(&merged),
        );
        both.sort();
        got.sort();
        assert_eq!(got, both, "{}", crawler.id);
    }
}

#[test]
fn allow_that_could_defeat_a_disallow_is_left_out() {
    let text = served_text(
        STAR,
        "User-agent: *\nDisallow: /shop/\nAllow: /cart/public/\nAllow: /shop/open/\n",
    );
    assert_eq!(
        group_lines(&text, "*"),
        ["Disallow: /cart/", "Disallow: /shop/", "Allow: /shop/open/"]
    );
    let named = ["\"Allow: /cart/public/\"", "\"Disallow: /cart/\""];
    assert!(has_comment(&text, &named), "{text}");
    // Shorter ones lose by themselves, and others meet nothing.
    let text = served_text(
        "robots: { groups: [{ agents: '*', disallow: [/cart/, '/*.pdf$'] }] }\n",
        "User-agent: *\nAllow: /c\nAllow: /x/*.html$\nAllow: /manuals/\n",
    );
    assert_eq!(
        group_lines(&text, "*"),
        [
            "Disallow: /cart/",
            "Disallow: /*.pdf$",
            "Allow: /c",
            "Allow: /x/*.html$"
        ]
    );
    let named = ["\"Allow: /manuals/\"", "\"Disallow: /*.pdf$\""];
    assert!(has_comment(&text, &named), "{text}");
}

/// An Allow of the origin cannot defeat a Disallow where the policy itself allows the URLs.
#[test]
fn allow_within_an_allow_of_the_policy_stays() {
    for (policy, origin, target) in [
        (
            "{ agents: '*', allow: /blog/, disallow: / }",
            "Disallow: /blog/drafts/\nAllow: /blog/drafts/public/\n",
            "/blog/drafts/public/x",
        ),
        (
            "{ agents: '*', allow: '/*?page=', disallow: '/*?' }",
            "Disallow: /catalog/internal\nAllow: /catalog/internal/list?page=\n",
            "/catalog/internal/list?page=2",
        ),
    ] {
        let text = served_text(
            &format!("robots: {{ groups: [{policy}] }}\n"),
            &format!("User-agent: *\n{origin}"),
        );
        assert!(
            is_allowed(&text, "AnyBot", target) && !has_comment(&text, &["\"Allow: "]),
            "{text}"
        );
    }
}

/// Whether one comment contains all of these texts.
fn has_comment(text: &str, named: &[&str]) -> bool {
    let mut comments = text.lines().filter(|line| line.starts_with('#'));
    comments.any(|comment| named.iter().all(|name| comment.contains(name)))
}

/// The ids of the findings about a site, with their lines in the policy.
fn finding_ids(site: &Site) -> Vec<(&'static str, u32)> {
    let mut found = crate::yaml::Diagnostics::default();
    crate::policy::lint::lint(site, Registry::builtin(), &mut found);
    found
        .items
        .iter()
        .map(|finding| (finding.id, finding.span.map_or(0, |span| span.line)))
        .collect()
}

#[test]
fn allow_that_defeats_a_disallow_is_reported() {
    let policy = "robots:\n  groups: [{ agents: '*', disallow: ['/*?sessionid='] }]\n";
    let origin = "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n";
    let site = compile_site(policy, origin);
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert_eq!(
        group_lines(&text, "*"),
        ["Disallow: /*?sessionid=", "Disallow: /wp-admin/"]
    );
    let named = [
        "\"Allow: /wp-admin/admin-ajax.php\"",
        "\"Disallow: /*?sessionid=\"",
    ];
    assert!(has_comment(&text, &named), "{text}");
    assert_eq!(finding_ids(&site), [("origin-allow-left-out", 2)]);
}

#[test]
fn origins_closing_rule_that_an_allow_defeats_is_reported() {
    let policy = "robots:\n  groups: [{ agents: '*', allow: [/, /a] }]\n";
    let site = compile_site(policy, "User-agent: *\nDisallow: /\nDisallow: /a\n");
    assert_eq!(finding_ids(&site), [("origin-disallow-left-out", 2)]);
}

#[test]
fn allow_that_a_disallow_covers_is_only_commented() {
    let site = compile_site(STAR, "User-agent: *\nAllow: /cart/public/\n");
    assert_eq!(
        group_lines(&String::from_utf8_lossy(&site.robots_txt.body), "*"),
        ["Disallow: /cart/"]
    );
    assert_eq!(finding_ids(&site), []);
}

#[test]
fn allow_without_common_urls_stays() {
    for (disallow, allow) in [
        ("/*.pdf$", "/manuals/*.html$"),
        ("/a/", "/b/longer"),
        ("/a$", "/ab"),
        ("/*/x/", "/y$"),
    ] {
        let policy = format!("robots: {{ groups: [{{ agents: '*', disallow: '{disallow}' }}] }}\n");
        let site = compile_site(
            &policy,
            &format!("User-agent: *\nDisallow: /m\nAllow: {allow}\n"),
        );
        let text = String::from_utf8_lossy(&site.robots_txt.body);
        assert!(
            group_lines(&text, "*").contains(&format!("Allow: {allow}")),
            "{text}"
        );
        assert!(site.dropped_rules.is_empty(), "{text}");
    }
}

#[test]
fn allow_as_long_as_the_disallow_is_left_out() {
    let text = served_text(
        "robots: { groups: [{ agents: '*', disallow: '/*/p/' }] }\n",
        "User-agent: *\nAllow: /*/q*\nAllow: /a*$\n",
    );
    assert_eq!(group_lines(&text, "*"), ["Disallow: /*/p/", "Allow: /a*$"]);
    for (target, allowed) in [
        ("/b/q/p/", false),
        ("/a/p/x", false),
        ("/p/p/q", false),
        ("/a/q", true),
    ] {
        assert_eq!(
            is_allowed(&text, "AnyBot", target),
            allowed,
            "{target}\n{text}"
        );
    }
}

#[test]
fn allow_of_the_policy_stays_without_the_origins() {
    let policy = "robots: { groups: [{ agents: '*', disallow: /a/, allow: '/a/b*/' }] }\n";
    let site = compile_site(
        policy,
        "User-agent: *\nDisallow: /x/\nAllow: /*/long/enough\n",
    );
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert!(
        !is_allowed(&text, "AnyBot", "/a/long/enough")
            && is_allowed(&text, "AnyBot", "/a/b/long/enough"),
        "{text}"
    );
    assert_eq!(finding_ids(&site), [("origin-allow-left-out", 1)]);
}

#[test]
fn disallow_that_the_policy_allows_is_commented() {
    let text = served_text(
        "robots: { groups: [{ agents: '*', allow: /press/ }] }\n",
        "User-agent: *\nDisallow: /press/\nDisallow: /b/\n",
    );
    assert_eq!(group_lines(&text, "*"), ["Allow: /press/", "Disallow: /b/"]);
    let named = ["\"Disallow: /press/\"", "\"Allow: /press/\""];
    assert!(has_comment(&text, &named), "{text}");
}

/// The policy's `*` says nothing about a crawler that only the origin names.
#[test]
fn allow_for_all_opens_nothing_for_a_named_token() {
    let policy = "robots: { groups: [{ agents: '*', allow: [/, /cart/help, /x/], disallow: /cart/ }, \
                  { agents: bingbot, allow: / }] }\n";
    let text = served_text(
        policy,
        "User-agent: GPTBot\nUser-agent: bingbot\nDisallow: /\nAllow: /x/\n\n\
         User-agent: AhrefsBot\nDisallow: /x/y\n",
    );
    for (token, path, allowed) in [
        ("GPTBot", "/", false),
        ("GPTBot", "/cart/help", false),
        ("GPTBot", "/x/", true),
        ("bingbot", "/", true),
        ("AhrefsBot", "/cart/help", true),
        ("AhrefsBot", "/x/y", false),
        ("AnyBot", "/cart/help", true),
    ] {
        assert_eq!(
            is_allowed(&text, token, path),
            allowed,
            "{token}{path}\n{text}"
        );
    }
    let named = ["policy's group", "\"Allow: /\"", "\"Disallow: /\""];
    assert!(has_comment(&text, &named), "{text}");
}

#[test]
fn origin_does_not_weaken_a_purpose() {
    let origin = "User-agent: GPTBot\nAllow: /\nUser-agent: CCBot\nDisallow: /\nDisallow: /ccbot/\nUser-agent: *\nDisallow: /tmp/\nCrawl-delay: 7\n";
    let text = served_text("purposes: { training: disallow }\n", origin);
    assert_eq!(group_lines(&text, "GPTBot"), ["Disallow: /"]);
    assert_eq!(group_lines(&text, "CCBot"), ["Disallow: /"]);

    assert_eq!(
        group_lines(&text, "*"),
        ["Disallow: /tmp/", "Crawl-delay: 7"]
    );
    let text = served_text("purposes: { training: allow }\n", origin);
    assert_eq!(group_lines(&text, "CCBot"), ["Disallow: /ccbot/"]);
    assert!(has_comment(&text, &["\"Disallow: /\""]), "{text}");
    let text = served_text("purposes: { training: inherit }\n", origin);
    assert_eq!(
        group_lines(&text, "CCBot"),
        ["Disallow: /", "Disallow: /ccbot/"]
    );
}

#[test]
fn crawler_outside_star_is_not_bound_by_its_group() {
    let crawlers = Registry::builtin().crawlers();
    let named = crawlers.iter().find(|crawler| {
        crawler.binds == crate::crawlers::RobotsObedience::Named && crawler.tokens.len() == 1
    });
    let token = &named.expect("one of them").tokens[0];
    let text = served_text(STAR, &format!("User-agent: {token}\nDisallow: /ads/\n"));
    assert_eq!(group_lines(&text, token), ["Disallow: /ads/"]);
}

#[test]
fn sitemaps_are_united_and_other_lines_kept() {
    let origin = "Host: shop.example\nUser-agent: *\nDisallow: /a/\nRequest-rate: 1/5\nClean-param: sid /\nContent-Signal: ai-train=no\nSitemap: https://a.example/1.xml\nSitemap: https://a.example/2.xml\n";
    let policy = "robots: { sitemaps: [https://a.example/2.xml, https://a.example/3.xml], groups: [{ agents: bingbot, disallow: /b/ }] }\n";
    let text = served_text(policy, origin);
    let sitemaps: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("Sitemap: https://a.example/"))
        .collect();
    assert_eq!(sitemaps, ["2.xml", "3.xml", "1.xml"]);
    assert_eq!(
        group_lines(&text, "*"),
        [
            "Disallow: /a/",
            "Request-rate: 1/5",
            "Content-Signal: ai-train=no"
        ]
    );
    assert_eq!(
        group_lines(&text, "bingbot"),
        [
            "Disallow: /b/",
            "Disallow: /a/",
            "Request-rate: 1/5",
            "Content-Signal: ai-train=no"
        ]
    );
    for line in ["Host: shop.example", "Clean-param: sid /"] {
        assert_eq!(
            text.lines().filter(|other| *other == line).count(),
            1,
            "{text}"
        );
    }
}

#[test]
fn value_with_control_characters_is_not_published() {
    let origin = "Sitemap: https://shop.example/\u{1b}[2J\nHost: a\u{9b}b\nUser-agent: *\nDisallow: /a/\u{1b}\n\
                  Content-Signal: ai-train=no\u{7}\nVisit-time: 0600-\u{85}0845\nClean-param: ref\t/x\n";
    let text = served_text(STAR, origin);
    assert!(
        !text.contains(|sign: char| sign.is_control() && sign != '\n'),
        "{text:?}"
    );
    for kept in ["Disallow: /a/%1B\n", "Clean-param: ref /x\n"] {
        assert!(text.contains(kept), "{text:?}");
    }
    for left_out in ["Sitemap:", "Host:", "Content-Signal:", "Visit-time:"] {
        assert!(!text.contains(left_out), "{text:?}");
    }
}

#[test]
fn unknown_keys_are_published_only_if_listed() {
    let origin = "Schemamap: https://shop.example/map\n\"SecretAccessKey\": \"one\",\nUser-agent: *\nDisallow: /a/\nToken: two\n\
                  token: three\nClean-param: sid /\nHost: shop.example\nschemaMap: https://shop.example/other\n";
    for mode in ["merge", "only"] {
        let site = compile_site(&format!("robots: {{ origin: {mode} }}\n"), origin);
        let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
        for absent in ["Secret", "one", "two", "three", "chemamap", "chemaMap"] {
            assert!(!text.contains(absent), "{mode}: {text}");
        }
        assert!(has_comment(&text, &["(5)"]), "{text}");
        assert!(
            text.contains("Host: shop.example\n") && text.contains("Clean-param: sid /\n"),
            "{text}"
        );
        // One for each key.
        assert_eq!(finding_ids(&site), [("origin-key-left-out", 0); 3]);
        let site = compile_site(
            &format!("robots: {{ origin: {mode}, origin_keys: [Token, schemamap] }}\n"),
            origin,
        );
        let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
        assert!(
            text.starts_with("# ") && text.contains("\nSchemamap: https://shop.example/map\n"),
            "{text}"
        );
        let lines = [
            "Disallow: /a/",
            "Token: two",
            "token: three",
            "schemaMap: https://shop.example/other",
        ];
        assert_eq!(group_lines(&text, "*"), lines);
        assert!(
            !text.contains("Secret") && has_comment(&text, &["(1)"]),
            "{text}"
        );
        assert_eq!(finding_ids(&site), [("origin-key-left-out", 0)]);
    }
}

#[test]
fn key_only_google_reads_is_left_out_with_a_warning() {
    let origin =
        "User-agent: *\nDisallowed: /a/\nDisallow: /b/\nSitemap https://shop.example/s.xml\n";
    for policy in [
        "robots: { origin: merge }\n",
        "robots: { origin: merge, origin_keys: [Disallowed] }\n",
    ] {
        let site = compile_site(policy, origin);
        let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
        assert_eq!(group_lines(&text, "*"), ["Disallow: /b/"], "{policy}");
        let mut found = Diagnostics::default();
        crate::policy::lint::lint(&site, Registry::builtin(), &mut found);
        let warnings = found
            .items
            .iter()
            .filter(|found| found.severity == Severity::Warning);
        assert_eq!(
            warnings.map(|found| found.id).collect::<Vec<_>>(),
            ["origin-key-left-out"; 2],
            "{policy}"
        );
    }
}

#[test]
fn origin_keys_are_validated() {
    let ids = |robots: &str| {
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: format!("robots: {{ {robots} }}\n").into(),
        };
        read("shop", &source)
            .1
            .items
            .iter()
            .map(|finding| finding.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("origin_keys: Schemamap"), [""; 0]);
    assert_eq!(
        ids("origin_keys: ['', 'a:', 'a b', Fine, \"a\\nb\"]"),
        ["bad-value"; 4]
    );
    assert_eq!(ids(&format!("origin_keys: [{}]", "a".repeat(100))), [""; 0]);
    assert_eq!(
        ids(&format!("origin_keys: [{}]", "a".repeat(101))),
        ["bad-value"]
    );
    assert_eq!(
        ids("origin: replace, origin_keys: [Schemamap]"),
        ["without-effect"]
    );
}

#[test]
fn signals_of_the_policy_replace_the_origins() {
    let origin = "License: https://origin.example/l.xml\ncontent-signal: ai-train=yes\n\nUser-agent: *\nContent-Signal: ai-train=yes\n\
                  Content-Usage: train-ai=y\nDisallow: /a/\n\nUser-agent: GPTBot\nContent-Signal: ai-train=yes\nLicense: https://origin.example/g.xml\n\
                  Content-Usage: train-ai=y\nDisallow: /g/\n";
    let signals = "content_signal: { ai-train: no }, license: https://shop.example/l.xml";
    for (policy, inside) in [
        (format!("robots: {{ {signals} }}\n"), true),
        (
            format!("robots: {{ {signals} }}\npurposes: {{ training: disallow }}\n"),
            true,
        ),
        (format!("robots: {{ {signals}, origin: only }}\n"), true),
        (
            format!("robots: {{ {signals}, signals: headers_only }}\n"),
            false,
        ),
    ] {
        let text = served_text(&policy, origin);
        assert!(
            !text.contains("ai-train=yes") && !text.contains("origin.example"),
            "{policy}{text}"
        );
        assert_eq!(
            text.contains("Content-Signal: ai-train=no\n"),
            inside,
            "{policy}{text}"
        );
        assert!(
            has_comment(&text, &["Content-Signal, License"]),
            "{policy}{text}"
        );
        // What the policy does not speak of stays, but for whom nothing is open.
        assert!(
            group_lines(&text, "*").contains(&"Content-Usage: train-ai=y".to_owned()),
            "{policy}{text}"
        );
        let closed = policy.contains("purposes");
        assert_eq!(
            group_lines(&text, "GPTBot").contains(&"Content-Usage: train-ai=y".to_owned()),
            !closed,
            "{policy}{text}"
        );
    }
}

#[test]
fn content_usage_of_a_group_replaces_the_origins() {
    let text = served_text(
        "robots: { groups: [{ agents: bingbot, content_usage: { train-ai: no } }] }\n",
        "User-agent: bingbot\nContent-Usage: train-ai=y\nContent-Signal: search=no\nDisallow: /a/\n",
    );
    let bingbot = group_lines(&text, "bingbot");
    for line in ["Content-Usage: train-ai=n", "Content-Signal: search=no"] {
        assert!(bingbot.contains(&line.to_owned()), "{text}");
    }
    assert!(!text.contains("train-ai=y"), "{text}");
}

/// A signal for one crawler does not remove the origin's signals for others.
#[test]
fn signal_of_a_group_replaces_only_that_groups() {
    let origin = "License: https://origin.example/l.xml\n\nUser-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallow: /a/\n\n\
                  User-agent: GPTBot\nContent-Signal: ai-train=no\nDisallow: /g/\n\nUser-agent: bingbot\n\
                  Content-Signal: search=no\nLicense: https://origin.example/b.xml\n";
    for (signals, mode, shown) in [
        ("content_signal: { search: yes }", "", true),
        (
            "content_signal: { search: yes }",
            ", signals: headers_only",
            false,
        ),
        (
            "content_signal: { search: yes }",
            ", content_usage: { train-ai: no }",
            true,
        ),
    ] {
        let policy = format!("robots: {{ groups: [{{ agents: bingbot, {signals} }}]{mode} }}\n");
        let text = served_text(&policy, origin);
        assert!(
            text.contains("License: https://origin.example/l.xml\n"),
            "{policy}{text}"
        );
        assert!(
            group_lines(&text, "*").contains(&"Content-Signal: search=yes, ai-train=no".to_owned()),
            "{policy}{text}"
        );
        assert!(
            group_lines(&text, "GPTBot").contains(&"Content-Signal: ai-train=no".to_owned()),
            "{policy}{text}"
        );
        let bingbot = group_lines(&text, "bingbot");
        assert!(
            !bingbot.iter().any(|line| line.contains("search=no")),
            "{policy}{text}"
        );
        assert_eq!(
            bingbot.contains(&"Content-Signal: search=yes".to_owned()),
            shown,
            "{policy}{text}"
        );
        assert!(
            bingbot.contains(&"License: https://origin.example/b.xml".to_owned()),
            "{policy}{text}"
        );
        assert!(has_comment(&text, &["Content-Signal"]), "{policy}{text}");
    }
}

#[test]
fn merged_file_has_no_address_of_the_origin() {
    let origin = "User-agent: a/b # x\nDisallow: /ä b\nDisallow:\nUser-agent:\nDisallow: /nobody\nUser-agent: *bot\nDisallow: private\n";
    for policy in [STAR, "robots: { origin: only }\n"] {
        let text = served_text(policy, origin);
        assert!(!text.contains("10.0.0.7"), "{text}");
        assert!(!is_allowed(&text, "a", "/%C3%A4%20b"), "{text}");
        assert!(!text.contains("/nobody"), "rules of nobody: {text}");
    }
}

#[test]
fn merged_crawl_delay_has_the_line_of_its_file() {
    let policy = "robots: { groups: [{ agents: [\"*\"], disallow: [/cart/] }] }\n";
    let origin = "User-agent: *\nDisallow: /tmp/\nCrawl-delay: 0\nCrawl-delay: 2\n";
    let site = compile_site(policy, origin);
    assert!(matches!(site.group_sources[0], RuleSource::Policy(_)));
    assert_eq!(site.delay_sources, [Some(RuleSource::Origin(4))]);
    let own = policy.replace("}] }", ", crawl_delay: 3s }] }");
    let site = compile_site(&own, origin);
    assert!(matches!(
        site.delay_sources[..],
        [Some(RuleSource::Policy(_))]
    ));
}

#[test]
fn origin_rules_have_lines_and_tokens_identify() {
    let site = compile_site(
        "robots: { origin: only }\n",
        "# mine\nUser-agent: ShopScout\nUser-agent: Chrome\nUser-agent: X\nUser-agent: Spider\nDisallow: /a/\n",
    );
    assert_eq!(site.tokens.tokens(), ["ShopScout", "Chrome", "Spider"]);
    assert_eq!(site.rule_sources[0], [RuleSource::Origin(6)]);
    assert_eq!(site.group_sources[0], RuleSource::Origin(2));
    assert_eq!(site.delay_sources, [None, None, None, None]);
    assert_eq!(
        site.origin
            .as_ref()
            .map(|origin| origin.line_location(6))
            .as_deref(),
        Some("http://10.0.0.7:3000/robots.txt:6")
    );
}

#[test]
fn origin_token_of_browsers_is_no_crawler() {
    let apps = [
        "TikTok",
        "Vivaldi",
        "Teams",
        "UCBrowser",
        "Epiphany",
        "Kindle",
        "PlayStation",
        "MetaSr",
        "SM-G991B",
        "ShopScout",
        "HouseBot",
    ];
    let origin: String = apps
        .iter()
        .map(|app| format!("User-agent: {app}\n"))
        .collect::<String>()
        + "Disallow: /a/\n";
    let origin_alone = compile_site("robots: { origin: only }\n", &origin);
    let who = |site: &Site, user_agent: &str| {
        Registry::builtin().identify_on_site(user_agent.as_bytes(), &site.tokens)
    };
    for app in &apps[..10] {
        let person = format!(
            "Mozilla/5.0 (Linux; Android 14; {app}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36 {app}/7.1"
        );
        assert_eq!(who(&origin_alone, &person), Claim::Visitor, "{person}");
        // What has not the shape of a browser, or says that it is a bot, is who it says.
        for bot in [
            format!("{app}/1.0"),
            format!(
                "Mozilla/5.0 AppleWebKit/537.36 (compatible; {app}/1.0; bot/1.0; +https://x.example) Chrome/130.0"
            ),
        ] {
            let is_person = Registry::builtin().identify(bot.as_bytes()) == Claim::Visitor;
            assert_eq!(
                matches!(who(&origin_alone, &bot), Claim::PolicyToken(_)),
                !is_person,
                "{bot}"
            );
        }
    }
    let bot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; HouseBot) Chrome/130.0 Safari/537.36";
    assert!(matches!(who(&origin_alone, bot), Claim::PolicyToken(_)));
    let words: String = visitor_words()
        .iter()
        .map(|word| format!("User-agent: {word}\n"))
        .collect();
    let list = compile_site(
        "robots: { origin: only }\n",
        &format!("{words}Disallow: /\n"),
    );
    assert!(list.tokens.tokens().len() > 150);
    for person in visitor_user_agents() {
        assert_eq!(who(&list, person), Claim::Visitor, "{person}");
    }
    // Neither does a policy's token match a person.
    let policy = compile_site(
        "robots: { groups: [{ agents: ShopScout, disallow: /b/ }] }\n",
        &origin,
    );
    let person = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36 ShopScout/7.1";
    assert_eq!(who(&policy, person), Claim::Visitor);
    assert!(matches!(
        who(&policy, "ShopScout/7.1"),
        Claim::PolicyToken(_)
    ));
}

#[test]
fn known_tokens_take_no_place_of_unknown_ones() {
    let known = Registry::builtin().crawlers().iter();
    let known = known.flat_map(|crawler| &crawler.tokens);
    let unknown: Vec<String> = (1..=1_001).map(|n| format!("shop{n}bot")).collect();
    let origin: String = known
        .chain(&unknown)
        .map(|token| format!("User-agent: {token}\n"))
        .collect();
    let policy = "robots: { origin: only }\n";
    let tokens = compile_site(policy, &(origin + "Disallow: /x/\n")).tokens;
    assert!(tokens.token_claim("shop1000bot").is_some());
    assert!(tokens.token_claim("shop1001bot").is_none());
}

#[test]
fn staging_and_replace_ignore_the_origin() {
    let origin = "User-agent: *\nDisallow: /origin/\n";
    for policy in ["environment: staging\n", "robots: { origin: replace }\n"] {
        assert!(
            !served_text(policy, origin).contains("/origin/"),
            "{policy}"
        );
    }
}

#[test]
fn hostile_file_stays_within_the_budget() {
    let paths = |count: usize| {
        (0..count)
            .map(|i| format!("/*a*{i}*b*c*d*e*f*g*h*"))
            .collect::<Vec<_>>()
    };
    let rules: String = paths(8_000)
        .iter()
        .map(|path| format!("Allow: {path}\n"))
        .collect();
    let disallow: Vec<String> = paths(1_000)
        .iter()
        .map(|path| format!("\"{}\"", path.replace('h', "i")))
        .collect();
    let policy = format!(
        "robots: {{ groups: [{{ agents: '*', disallow: [{}] }}] }}\n",
        disallow.join(", ")
    );
    // Beyond the budget every Allow may defeat a Disallow; with it, all of these do.
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let policy = read("shop", &source).0.expect("a policy");
    let file = OriginRobotsTxt::new("origin", format!("User-agent: *\n{rules}").into_bytes());
    let site = compile_with_origin(
        Arc::new(policy),
        &OriginRobotsAvailability::Available(Arc::new(file)),
        Registry::builtin(),
        Timestamp(i64::MIN),
    )
    .expect("small");
    assert!(site.document.groups[0].rules.iter().all(|rule| !rule.allow));
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert!(has_comment(&text, &["7980"]));
}

fn try_compile(policy: &str, origin: &str) -> Result<Site, CompileError> {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let policy = read("shop", &source).0.expect("a policy");
    let file = OriginRobotsTxt::new("origin", origin.as_bytes());
    compile_with_origin(
        Arc::new(policy),
        &OriginRobotsAvailability::Available(Arc::new(file)),
        Registry::builtin(),
        Timestamp(i64::MAX),
    )
}

/// A policy that makes merging expensive: groups for hundreds of crawlers, wildcards, a trap, a
/// retired path.
const COSTLY_POLICY: &str = "robots: { groups: [{ agents: '*', disallow: ['/*?s=', '/*a*b*c*d', /cart/], allow: '/*?s=ok' }, \
                    { agents: GPTBot, disallow: '/*?q=' }] }\npurposes: { search: allow, seo: allow }\n\
                    retire: [{ paths: ['/old*x'], noindex_from: 1970-01-01, disallow_after: 14d }]\n\
                    enforcement: { traps: [/trap/] }\n";

#[test]
fn allow_beyond_the_budget_is_left_out_and_reported() {
    let tail = "x".repeat(80);
    let allows: String = (0..5_000)
        .map(|number| format!("Allow: /a{number}*{tail}\n"))
        .collect();
    let site = try_compile(
        COSTLY_POLICY,
        &format!("User-agent: *\nDisallow: /a\n{allows}"),
    )
    .expect("a file that is small enough");
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert!(has_comment(&text, &["\"Allow: /a"]), "{}", &text[..4_000]);
    // Nothing of it opens what the policy disallows, whether it was compared or not.
    for path in ["/a7?s=1", "/a4999?s=1", "/a4999/a/b/c/d"] {
        assert!(
            !is_allowed_by_site(&site, "AnyBot", &format!("{path}{tail}")),
            "{path}"
        );
    }
    let mut found = crate::yaml::Diagnostics::default();
    crate::policy::lint::lint(&site, Registry::builtin(), &mut found);
    let found: Vec<_> = found
        .items
        .iter()
        .filter(|finding| finding.id == "origin-allow-left-out")
        .collect();
    assert!(!found.is_empty() && found.len() <= 10, "{}", found.len());
    assert!(found.iter().any(|finding| finding.more > 0));
}

fn is_allowed_by_site(site: &Site, token: &str, path: &str) -> bool {
    is_allowed(&String::from_utf8_lossy(&site.robots_txt.body), token, path)
}

#[test]
fn file_too_large_to_merge_is_rejected_with_its_size() {
    let tokens: String = (0..9_000)
        .map(|n| format!("User-agent: t{n}x\nAllow: /a{n}*\nDisallow: /b{n}\n\n"))
        .collect();
    // Each token is named in another half of the groups: together they would have fifty times what
    // the file has.
    let crossed: String = (0..200)
        .map(|group| {
            let named =
                (0..100).filter(|token| (group * 31 + token * token * (group % 13 + 1)) % 97 < 40);
            let agents: String = named
                .map(|token| format!("User-agent: t{token}x\n"))
                .collect();
            agents
                + &(0..60)
                    .map(|rule| format!("Disallow: /g{group}/{rule}\n"))
                    .collect::<String>()
        })
        .collect();
    // Kept or not: a rule that is held against a hundred groups was looked at a hundred times.
    let groups: Vec<String> = (0..100)
        .map(|n| format!("{{ agents: shop{n}bot, disallow: ['/*q{n}', /] , allow: /p{n}/ }}"))
        .collect();
    let groups = format!("robots: {{ groups: [{}] }}\n", groups.join(", "));
    let left_out: String = "User-agent: *\n".to_owned()
        + &(0..5_000)
            .map(|n| format!("Allow: /a{n}\n"))
            .collect::<String>();
    for (policy, origin, counts) in [
        (COSTLY_POLICY, tokens, ["(18000)", "(9000)"]),
        (STAR, crossed, ["(12000)", "(100)"]),
        (&groups, left_out, ["(5000)", "(1)"]),
    ] {
        let error = try_compile(policy, &origin)
            .err()
            .unwrap_or_else(|| panic!("refused: {counts:?}"));
        let finding = &error.diagnostics.items[0];
        assert_eq!(finding.id, "robots-txt-too-large");
        assert!(
            counts.iter().all(|count| finding.message.contains(count)),
            "{finding:?}"
        );
        // It is the origin's doing, not the policy's.
        assert!(try_compile(policy, "").is_ok());
    }
}

#[test]
fn tokens_with_equal_rules_share_a_group() {
    let agents: String = (0..20_000)
        .map(|number| format!("User-agent: t{number}x\n"))
        .collect();
    let site = try_compile(
        COSTLY_POLICY,
        &format!("{agents}Allow: /cart/open*\nDisallow: /b\n"),
    )
    .expect("small enough");
    let group = site.matcher.named_group("t0x").expect("a group");
    assert_eq!(site.matcher.named_group("t19999x"), Some(group));
    assert!(
        site.document.groups.len() < 10,
        "{}",
        site.document.groups.len()
    );
    assert!(
        is_allowed_by_site(&site, "t19999x", "/c") && !is_allowed_by_site(&site, "t19999x", "/b")
    );
    assert!(
        site.tokens.tokens().len() <= 1_100,
        "tokens that join identification"
    );
}

/// A replacement character would make it another URL.
#[test]
fn latin_1_sitemap_is_percent_encoded() {
    let (policy, findings) = read(
        "shop",
        &SourceFile {
            name: "shop.yaml".into(),
            text: STAR.into(),
        },
    );
    let policy = policy.unwrap_or_else(|| panic!("{findings:?}"));
    let bytes = b"Sitemap: https://shop.example/caf\xe9.xml\nSitemap: https://shop.example/\xc3\xa9t\xc3.xml\nSitemap: /\xe9.xml\n";
    let origin = OriginRobotsAvailability::Available(Arc::new(OriginRobotsTxt::new(
        "or.txt",
        bytes.as_slice(),
    )));
    let site = compile_with_origin(Arc::new(policy), &origin, Registry::builtin(), Timestamp(0))
        .expect("small");
    let text = std::str::from_utf8(&site.robots_txt.body).expect("UTF-8");
    assert!(
        text.contains("\nSitemap: https://shop.example/caf%E9.xml\n"),
        "{text}"
    );
    assert!(
        text.contains("\nSitemap: https://shop.example/\u{e9}t%C3.xml\n"),
        "{text}"
    );
    assert!(
        text.contains("sitemaps that are not full URLs (1)"),
        "{text}"
    );
}

/// The origin's file does not name Google-Extended, so no comment may say that it does.
#[test]
fn closed_group_does_not_mention_the_origin_token() {
    let text = served_text(
        "purposes: { training: disallow }\n",
        "User-agent: *\nDisallow: /tmp/\n",
    );
    let above = text
        .lines()
        .position(|line| line == "User-agent: Google-Extended")
        .expect("a group");
    let comment = text
        .lines()
        .take(above)
        .filter(|line| line.starts_with('#'))
        .last()
        .expect("a comment");
    assert!(!comment.contains("Google-Extended"), "{comment}");
}

/// The rules that bind each crawler of the registry.
fn rules_of_crawlers(site: &Site) -> Vec<Option<&[Rule]>> {
    let claims = (0..).map(CrawlerIndex).zip(Registry::builtin().crawlers());
    let bindings = claims.map(|(index, _)| site.crawler_rules(Claim::Known(index)).binding);
    let groups = bindings.map(|binding| site.document.groups.get(binding.group()?));
    groups
        .map(|group| group.map(|group| &*group.rules))
        .collect()
}

#[test]
fn file_and_its_import_bind_each_crawler_alike() {
    let registry = Registry::builtin();
    let tokens: BTreeSet<&String> = registry
        .crawlers()
        .iter()
        .flat_map(|crawler| &crawler.tokens)
        .collect();
    for token in tokens {
        let text = format!("User-agent: *\nDisallow: /a\n\nUser-agent: {token}\nDisallow: /b\n");
        let file = RobotsFile::parse(text.as_bytes());
        let imported = import(&file, None, registry);
        if !imported.notes.is_empty() {
            continue;
        }
        let of_file = compile_site("enforcement: { mode: observe }\n", &text);
        let of_policy = compile_site(&imported.text, "");
        assert_eq!(
            rules_of_crawlers(&of_file),
            rules_of_crawlers(&of_policy),
            "{token}"
        );
    }
}
