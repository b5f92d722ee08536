//! These tests check how the origin's robots.txt is merged with a policy: which rules each
//! user-agent token gets, which lines of the origin are left out, and that a hostile file causes
//! only limited work.

use crate::crawlers::{Claim, Registry, people, words_of_people};
use crate::policy::compile::CompileError;
use crate::policy::origin::{Origin, OriginFile};
use crate::policy::site::{Binding, RuleSource, Site};
use crate::policy::{compile_with_origin, read};
use crate::robots::{Dialect, File, Reading};
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Severity, Source};
use std::sync::Arc;

fn site(policy: &str, origin: &str) -> Site {
    let source = Source {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let (policy, findings) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{findings:?}"));
    let file = OriginFile::new("http://10.0.0.7:3000/robots.txt", origin.as_bytes());
    compile_with_origin(
        Arc::new(policy),
        &Origin::Read(Arc::new(file)),
        Registry::builtin(),
        Timestamp(i64::MIN),
    )
    .expect("small")
}

fn served(policy: &str, origin: &str) -> String {
    String::from_utf8_lossy(&site(policy, origin).robots_txt.body).into_owned()
}

/// The lines of the group of a token, comments aside.
fn group(text: &str, token: &str) -> Vec<String> {
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

fn allows(text: &str, token: &str, path: &str) -> bool {
    Reading::new(&File::parse(text.as_bytes()), Dialect::Rfc9309, &[])
        .verdict(token.as_bytes(), path.as_bytes())
        .allowed
}

const STAR: &str = "robots: { groups: [{ agents: '*', disallow: /cart/ }] }\n";

#[test]
fn rules_of_both_sides_bind_crawlers_that_either_names() {
    let text = served(
        "robots: { groups: [{ agents: '*', disallow: /cart/ }, { agents: bingbot, disallow: /b/ }] }\n",
        "User-agent: *\nDisallow: /tmp/\nUser-agent: CCBot\nDisallow: /c/\n",
    );
    assert_eq!(group(&text, "*"), ["Disallow: /cart/", "Disallow: /tmp/"]);
    assert_eq!(
        group(&text, "bingbot"),
        ["Disallow: /b/", "Disallow: /tmp/"]
    );
    assert_eq!(group(&text, "CCBot"), ["Disallow: /cart/", "Disallow: /c/"]);
}

#[test]
fn traps_are_in_every_group_and_no_origin_allow_defeats_one() {
    let origin = "User-agent: *\nAllow: /trap/way-out\nAllow: /\nDisallow: /tmp/\n\nUser-agent: CCBot\nAllow: /trap/*\n\n\
                  User-agent: Yandex\nAllow: /trap\nDisallow: /\n\nUser-agent: HouseBot\nDisallow: /h/\n";
    for mode in ["merge", "only"] {
        let policy = format!("robots: {{ origin: {mode} }}\nenforcement: {{ traps: [/trap/] }}\n");
        let text = served(&policy, origin);
        for token in ["*", "CCBot", "Yandex", "HouseBot"] {
            assert!(
                group(&text, token).contains(&"Disallow: /trap/".to_owned()),
                "{token}, {mode}:\n{text}"
            );
            for path in ["/trap/", "/trap/way-out"] {
                assert!(
                    !allows(&text, token, path),
                    "{token}, {path}, {mode}:\n{text}"
                );
            }
        }
        assert!(has_comment(&text, &["`Allow: /trap/way-out`"]), "{text}");
        assert!(
            text.contains("\nAllow: /\n") && text.contains("\nAllow: /trap\n"),
            "what is shorter defeats none:\n{text}"
        );
        assert!(site(&policy, origin).traps.find(b"/trap/x").is_some());
    }
}

#[test]
fn crawlers_of_policy_and_origin_have_their_own_tokens() {
    let site = site(
        "crawlers: [{ token: ShopBot, user_agent: [shop-reader] }]\n",
        "User-agent: HouseBot\nDisallow: /h/\n\nUser-agent: ShopBot\nDisallow: /s/\n",
    );
    let whose =
        |user_agent: &[u8]| match Registry::builtin().identify_with(user_agent, &site.tokens) {
            Claim::Token(index) => site.tokens.tokens()[usize::from(index)].as_str(),
            other => panic!("{other:?}"),
        };
    assert_eq!(
        (whose(b"shop-reader/1.0"), whose(b"HouseBot/2.0")),
        ("ShopBot", "HouseBot")
    );
}

#[test]
fn a_token_is_bound_by_the_group_that_binds_its_crawler() {
    let text = served(
        "robots: { groups: [{ agents: '*', disallow: /cart/ }, { agents: Googlebot, disallow: /g/ }] }\n",
        "User-agent: Googlebot-Image\nDisallow: /images/\n\nUser-agent: *\nDisallow: /tmp/\n",
    );
    assert_eq!(
        group(&text, "Googlebot-Image"),
        ["Disallow: /g/", "Disallow: /images/"]
    );
    assert_eq!(
        group(&text, "Googlebot"),
        ["Disallow: /g/", "Disallow: /tmp/"]
    );
}

#[test]
fn every_known_crawler_is_bound_by_what_binds_it_on_either_side() {
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
        site(&policy, &origin),
        site(&policy, ""),
        site("robots: { origin: only }\n", &origin),
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
                Binding::Group(group) => site
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
fn an_allow_that_could_defeat_a_disallow_is_left_out() {
    let text = served(
        STAR,
        "User-agent: *\nDisallow: /shop/\nAllow: /cart/public/\nAllow: /shop/open/\n",
    );
    assert_eq!(
        group(&text, "*"),
        ["Disallow: /cart/", "Disallow: /shop/", "Allow: /shop/open/"]
    );
    let named = ["`Allow: /cart/public/`", "`Disallow: /cart/`"];
    assert!(has_comment(&text, &named), "{text}");
    // Shorter ones lose by themselves, and others meet nothing.
    let text = served(
        "robots: { groups: [{ agents: '*', disallow: [/cart/, '/*.pdf$'] }] }\n",
        "User-agent: *\nAllow: /c\nAllow: /x/*.html$\nAllow: /manuals/\n",
    );
    assert_eq!(
        group(&text, "*"),
        [
            "Disallow: /cart/",
            "Disallow: /*.pdf$",
            "Allow: /c",
            "Allow: /x/*.html$"
        ]
    );
    let named = ["`Allow: /manuals/`", "`Disallow: /*.pdf$`"];
    assert!(has_comment(&text, &named), "{text}");
}

/// What the policy opens itself no Allow of the origin can defeat: both sides allow it.
#[test]
fn an_allow_within_one_of_the_policy_stays() {
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
        let text = served(
            &format!("robots: {{ groups: [{policy}] }}\n"),
            &format!("User-agent: *\n{origin}"),
        );
        assert!(
            allows(&text, "AnyBot", target) && !has_comment(&text, &["`Allow: "]),
            "{text}"
        );
    }
}

/// Whether one comment names all of these.
fn has_comment(text: &str, named: &[&str]) -> bool {
    let mut comments = text.lines().filter(|line| line.starts_with('#'));
    comments.any(|comment| named.iter().all(|name| comment.contains(name)))
}

/// The ids of what is found in a site, with the lines of the policy.
fn found(site: &Site) -> Vec<(&'static str, u32)> {
    let mut found = crate::yaml::Diagnostics::default();
    crate::policy::lint::lint(site, Registry::builtin(), &mut found);
    found
        .items
        .iter()
        .map(|finding| (finding.id, finding.span.map_or(0, |span| span.line)))
        .collect()
}

#[test]
fn an_allow_that_meets_a_disallow_leaves_a_finding() {
    let policy = "robots:\n  groups: [{ agents: '*', disallow: ['/*?sessionid='] }]\n";
    let origin = "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n";
    let site = site(policy, origin);
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert_eq!(
        group(&text, "*"),
        ["Disallow: /*?sessionid=", "Disallow: /wp-admin/"]
    );
    let named = [
        "`Allow: /wp-admin/admin-ajax.php`",
        "`Disallow: /*?sessionid=`",
    ];
    assert!(has_comment(&text, &named), "{text}");
    assert_eq!(found(&site), [("origin-allow-left-out", 2)]);
}

#[test]
fn an_allow_that_a_disallow_covers_leaves_a_comment() {
    let site = site(STAR, "User-agent: *\nAllow: /cart/public/\n");
    assert_eq!(
        group(&String::from_utf8_lossy(&site.robots_txt.body), "*"),
        ["Disallow: /cart/"]
    );
    assert_eq!(found(&site), []);
}

#[test]
fn an_allow_that_shares_no_url_with_a_disallow_stays() {
    for (disallow, allow) in [
        ("/*.pdf$", "/manuals/*.html$"),
        ("/a/", "/b/longer"),
        ("/a$", "/ab"),
        ("/*/x/", "/y$"),
    ] {
        let policy = format!("robots: {{ groups: [{{ agents: '*', disallow: '{disallow}' }}] }}\n");
        let site = site(
            &policy,
            &format!("User-agent: *\nDisallow: /m\nAllow: {allow}\n"),
        );
        let text = String::from_utf8_lossy(&site.robots_txt.body);
        assert!(
            group(&text, "*").contains(&format!("Allow: {allow}")),
            "{text}"
        );
        assert!(site.left_out.is_empty(), "{text}");
    }
}

#[test]
fn an_allow_as_long_as_a_disallow_of_the_same_urls_is_left_out() {
    let text = served(
        "robots: { groups: [{ agents: '*', disallow: '/*/p/' }] }\n",
        "User-agent: *\nAllow: /*/q*\nAllow: /a*$\n",
    );
    assert_eq!(group(&text, "*"), ["Disallow: /*/p/", "Allow: /a*$"]);
    for (target, allowed) in [
        ("/b/q/p/", false),
        ("/a/p/x", false),
        ("/p/p/q", false),
        ("/a/q", true),
    ] {
        assert_eq!(allows(&text, "AnyBot", target), allowed, "{target}\n{text}");
    }
}

#[test]
fn an_allow_of_the_policy_stays_without_the_origin_s() {
    let policy = "robots: { groups: [{ agents: '*', disallow: /a/, allow: '/a/b*/' }] }\n";
    let site = site(
        policy,
        "User-agent: *\nDisallow: /x/\nAllow: /*/long/enough\n",
    );
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert!(
        !allows(&text, "AnyBot", "/a/long/enough") && allows(&text, "AnyBot", "/a/b/long/enough"),
        "{text}"
    );
    assert_eq!(found(&site), [("origin-allow-left-out", 1)]);
}

#[test]
fn a_disallow_that_the_policy_takes_back_is_said() {
    let text = served(
        "robots: { groups: [{ agents: '*', allow: /press/ }] }\n",
        "User-agent: *\nDisallow: /press/\nDisallow: /b/\n",
    );
    assert_eq!(group(&text, "*"), ["Allow: /press/", "Disallow: /b/"]);
    let named = ["`Disallow: /press/`", "`Allow: /press/`"];
    assert!(has_comment(&text, &named), "{text}");
}

#[test]
fn a_purpose_names_its_tokens_and_the_origin_does_not_weaken_it() {
    let origin = "User-agent: GPTBot\nAllow: /\nUser-agent: CCBot\nDisallow: /\nDisallow: /ccbot/\nUser-agent: *\nDisallow: /tmp/\nCrawl-delay: 7\n";
    let text = served("purposes: { training: disallow }\n", origin);
    assert_eq!(group(&text, "GPTBot"), ["Disallow: /"]);
    assert_eq!(group(&text, "CCBot"), ["Disallow: /"]);

    assert_eq!(group(&text, "*"), ["Disallow: /tmp/", "Crawl-delay: 7"]);
    let text = served("purposes: { training: allow }\n", origin);
    assert_eq!(group(&text, "CCBot"), ["Disallow: /ccbot/"]);
    assert!(has_comment(&text, &["`Disallow: /`"]), "{text}");
    let text = served("purposes: { training: inherit }\n", origin);
    assert_eq!(group(&text, "CCBot"), ["Disallow: /", "Disallow: /ccbot/"]);
}

#[test]
fn who_is_not_bound_by_star_is_not_bound_by_being_named() {
    let crawlers = Registry::builtin().crawlers();
    let named = crawlers.iter().find(|crawler| {
        crawler.binds == crate::crawlers::Binds::Named && crawler.tokens.len() == 1
    });
    let token = &named.expect("one of them").tokens[0];
    let text = served(STAR, &format!("User-agent: {token}\nDisallow: /ads/\n"));
    assert_eq!(group(&text, token), ["Disallow: /ads/"]);
}

#[test]
fn sitemaps_are_united_and_other_lines_survive() {
    let origin = "Host: shop.example\nUser-agent: *\nDisallow: /a/\nRequest-rate: 1/5\nClean-param: sid /\nContent-Signal: ai-train=no\nSitemap: https://a.example/1.xml\nSitemap: https://a.example/2.xml\n";
    let policy = "robots: { sitemaps: [https://a.example/2.xml, https://a.example/3.xml], groups: [{ agents: bingbot, disallow: /b/ }] }\n";
    let text = served(policy, origin);
    let sitemaps: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("Sitemap: https://a.example/"))
        .collect();
    assert_eq!(sitemaps, ["2.xml", "3.xml", "1.xml"]);
    assert_eq!(
        group(&text, "*"),
        [
            "Disallow: /a/",
            "Request-rate: 1/5",
            "Content-Signal: ai-train=no"
        ]
    );
    assert_eq!(
        group(&text, "bingbot"),
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
fn a_value_with_control_characters_is_not_published() {
    let origin = "Sitemap: https://shop.example/\u{1b}[2J\nHost: a\u{9b}b\nUser-agent: *\nDisallow: /a/\u{1b}\n\
                  Content-Signal: ai-train=no\u{7}\nVisit-time: 0600-\u{85}0845\nClean-param: ref\t/x\n";
    let text = served(STAR, origin);
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
fn lines_with_unknown_keys_are_left_out_unless_the_policy_names_them() {
    let origin = "Schemamap: https://shop.example/map\n\"SecretAccessKey\": \"one\",\nUser-agent: *\nDisallow: /a/\nToken: two\n\
                  token: three\nClean-param: sid /\nHost: shop.example\nschemaMap: https://shop.example/other\n";
    for mode in ["merge", "only"] {
        let site = site(&format!("robots: {{ origin: {mode} }}\n"), origin);
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
        assert_eq!(found(&site), [("origin-key-left-out", 0); 3]);
        let site = self::site(
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
        assert_eq!(group(&text, "*"), lines);
        assert!(
            !text.contains("Secret") && has_comment(&text, &["(1)"]),
            "{text}"
        );
        assert_eq!(found(&site), [("origin-key-left-out", 0)]);
    }
}

#[test]
fn key_that_google_alone_reads_is_left_out_with_a_warning() {
    let origin =
        "User-agent: *\nDisallowed: /a/\nDisallow: /b/\nSitemap https://shop.example/s.xml\n";
    for policy in [
        "robots: { origin: merge }\n",
        "robots: { origin: merge, origin_keys: [Disallowed] }\n",
    ] {
        let site = site(policy, origin);
        let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
        assert_eq!(group(&text, "*"), ["Disallow: /b/"], "{policy}");
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
fn keys_of_lines_are_checked() {
    let ids = |robots: &str| {
        let source = Source {
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
fn signals_of_the_policy_are_the_only_ones_in_the_file() {
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
        let text = served(&policy, origin);
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
            group(&text, "*").contains(&"Content-Usage: train-ai=y".to_owned()),
            "{policy}{text}"
        );
        let closed = policy.contains("purposes");
        assert_eq!(
            group(&text, "GPTBot").contains(&"Content-Usage: train-ai=y".to_owned()),
            !closed,
            "{policy}{text}"
        );
    }
}

#[test]
fn content_usage_of_a_group_displaces_that_of_the_origin() {
    let text = served(
        "robots: { groups: [{ agents: bingbot, content_usage: { train-ai: no } }] }\n",
        "User-agent: bingbot\nContent-Usage: train-ai=y\nContent-Signal: search=no\nDisallow: /a/\n",
    );
    let bingbot = group(&text, "bingbot");
    for line in ["Content-Usage: train-ai=n", "Content-Signal: search=no"] {
        assert!(bingbot.contains(&line.to_owned()), "{text}");
    }
    assert!(!text.contains("train-ai=y"), "{text}");
}

/// A policy that says something to one crawler takes nothing away from what the origin says to the
/// others.
#[test]
fn a_signal_of_a_group_displaces_only_that_group_s() {
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
        let text = served(&policy, origin);
        assert!(
            text.contains("License: https://origin.example/l.xml\n"),
            "{policy}{text}"
        );
        assert!(
            group(&text, "*").contains(&"Content-Signal: search=yes, ai-train=no".to_owned()),
            "{policy}{text}"
        );
        assert!(
            group(&text, "GPTBot").contains(&"Content-Signal: ai-train=no".to_owned()),
            "{policy}{text}"
        );
        let bingbot = group(&text, "bingbot");
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
fn a_merged_file_reads_back_without_the_origin_s_address() {
    let origin = "User-agent: a/b # x\nDisallow: /ä b\nDisallow:\nUser-agent:\nDisallow: /nobody\nUser-agent: *bot\nDisallow: private\n";
    for policy in [STAR, "robots: { origin: only }\n"] {
        let text = served(policy, origin);
        assert!(!text.contains("10.0.0.7"), "{text}");
        assert!(!allows(&text, "a", "/%C3%A4%20b"), "{text}");
        assert!(!text.contains("/nobody"), "rules of nobody: {text}");
    }
}

#[test]
fn rules_know_their_lines_and_tokens_join_identification() {
    let site = site(
        "robots: { origin: only }\n",
        "# mine\nUser-agent: ShopScout\nUser-agent: Chrome\nUser-agent: X\nUser-agent: Spider\nDisallow: /a/\n",
    );
    assert_eq!(site.tokens.tokens(), ["ShopScout", "Chrome", "Spider"]);
    assert_eq!(site.rule_sources[0], [RuleSource::Origin(6)]);
    assert_eq!(site.group_sources[0], RuleSource::Origin(2));
    assert_eq!(
        site.origin
            .as_ref()
            .map(|origin| origin.place(6))
            .as_deref(),
        Some("http://10.0.0.7:3000/robots.txt:6")
    );
}

#[test]
fn an_origin_token_that_stands_in_browsers_is_no_crawler() {
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
    let origin_alone = site("robots: { origin: only }\n", &origin);
    let who = |site: &Site, user_agent: &str| {
        Registry::builtin().identify_with(user_agent.as_bytes(), &site.tokens)
    };
    for app in &apps[..10] {
        let person = format!(
            "Mozilla/5.0 (Linux; Android 14; {app}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36 {app}/7.1"
        );
        assert_eq!(who(&origin_alone, &person), Claim::Nobody, "{person}");
        // What has not the shape of a browser, or says that it is a bot, is who it says.
        for bot in [
            format!("{app}/1.0"),
            format!(
                "Mozilla/5.0 AppleWebKit/537.36 (compatible; {app}/1.0; bot/1.0; +https://x.example) Chrome/130.0"
            ),
        ] {
            let is_person = Registry::builtin().identify(bot.as_bytes()) == Claim::Nobody;
            assert_eq!(
                matches!(who(&origin_alone, &bot), Claim::Token(_)),
                !is_person,
                "{bot}"
            );
        }
    }
    let bot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; HouseBot) Chrome/130.0 Safari/537.36";
    assert!(matches!(who(&origin_alone, bot), Claim::Token(_)));
    let words: String = words_of_people()
        .iter()
        .map(|word| format!("User-agent: {word}\n"))
        .collect();
    let list = site(
        "robots: { origin: only }\n",
        &format!("{words}Disallow: /\n"),
    );
    assert!(list.tokens.tokens().len() > 150);
    for person in people() {
        assert_eq!(who(&list, person), Claim::Nobody, "{person}");
    }
    // Neither does a policy's token match a person.
    let policy = site(
        "robots: { groups: [{ agents: ShopScout, disallow: /b/ }] }\n",
        &origin,
    );
    let person = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36 ShopScout/7.1";
    assert_eq!(who(&policy, person), Claim::Nobody);
    assert!(matches!(who(&policy, "ShopScout/7.1"), Claim::Token(_)));
}

#[test]
fn staging_and_replace_know_no_origin() {
    let origin = "User-agent: *\nDisallow: /origin/\n";
    for policy in ["environment: staging\n", "robots: { origin: replace }\n"] {
        assert!(!served(policy, origin).contains("/origin/"), "{policy}");
    }
}

#[test]
fn a_hostile_file_costs_no_more_than_it_may() {
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
    let source = Source {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let policy = read("shop", &source).0.expect("a policy");
    let file = OriginFile::new("origin", format!("User-agent: *\n{rules}").into_bytes());
    let site = compile_with_origin(
        Arc::new(policy),
        &Origin::Read(Arc::new(file)),
        Registry::builtin(),
        Timestamp(i64::MIN),
    )
    .expect("small");
    assert!(site.document.groups[0].rules.iter().all(|rule| !rule.allow));
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert!(has_comment(&text, &["7980"]));
}

fn compiled(policy: &str, origin: &str) -> Result<Site, CompileError> {
    let source = Source {
        name: "shop.yaml".into(),
        text: policy.into(),
    };
    let policy = read("shop", &source).0.expect("a policy");
    let file = OriginFile::new("origin", origin.as_bytes());
    compile_with_origin(
        Arc::new(policy),
        &Origin::Read(Arc::new(file)),
        Registry::builtin(),
        Timestamp(i64::MAX),
    )
}

/// A policy that makes merging dear: groups for hundreds of crawlers, wildcards, a trap, something
/// that is retired.
const DEAR: &str = "robots: { groups: [{ agents: '*', disallow: ['/*?s=', '/*a*b*c*d', /cart/], allow: '/*?s=ok' }, \
                    { agents: GPTBot, disallow: '/*?q=' }] }\npurposes: { search: allow, seo: allow }\n\
                    retire: [{ paths: ['/old*x'], noindex_from: 1970-01-01, disallow_after: 14d }]\n\
                    enforcement: { traps: [/trap/] }\n";

#[test]
fn an_allow_beyond_the_budget_leaves_a_comment_and_a_finding() {
    let tail = "x".repeat(80);
    let allows: String = (0..5_000)
        .map(|number| format!("Allow: /a{number}*{tail}\n"))
        .collect();
    let site = compiled(DEAR, &format!("User-agent: *\nDisallow: /a\n{allows}"))
        .expect("a file that is small enough");
    let text = String::from_utf8_lossy(&site.robots_txt.body);
    assert!(has_comment(&text, &["`Allow: /a"]), "{}", &text[..4_000]);
    // Nothing of it opens what the policy disallows, whether it was compared or not.
    for path in ["/a7?s=1", "/a4999?s=1", "/a4999/a/b/c/d"] {
        assert!(
            !allows_by(&site, "AnyBot", &format!("{path}{tail}")),
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

fn allows_by(site: &Site, token: &str, path: &str) -> bool {
    allows(&String::from_utf8_lossy(&site.robots_txt.body), token, path)
}

#[test]
fn a_file_too_large_to_merge_is_refused_with_its_size() {
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
        (DEAR, tokens, ["(18000)", "(9000)"]),
        (STAR, crossed, ["(12000)", "(100)"]),
        (&groups, left_out, ["(5000)", "(1)"]),
    ] {
        let error = compiled(policy, &origin)
            .err()
            .unwrap_or_else(|| panic!("refused: {counts:?}"));
        let finding = &error.diagnostics.items[0];
        assert_eq!(finding.id, "robots-txt-too-large");
        assert!(
            counts.iter().all(|count| finding.message.contains(count)),
            "{finding:?}"
        );
        // It is the origin's doing, not the policy's.
        assert!(compiled(policy, "").is_ok());
    }
}

/// The rules are there once, however many go by them.
#[test]
fn tokens_of_the_same_rules_are_merged_once_and_share_a_group() {
    let agents: String = (0..20_000)
        .map(|number| format!("User-agent: t{number}x\n"))
        .collect();
    let site = compiled(DEAR, &format!("{agents}Allow: /cart/open*\nDisallow: /b\n"))
        .expect("small enough");
    let group = site.matcher.named("t0x").expect("a group");
    assert_eq!(site.matcher.named("t19999x"), Some(group));
    assert!(
        site.document.groups.len() < 10,
        "{}",
        site.document.groups.len()
    );
    assert!(allows_by(&site, "t19999x", "/c") && !allows_by(&site, "t19999x", "/b"));
    assert!(
        site.tokens.tokens().len() <= 1_100,
        "tokens that join identification"
    );
}

/// A sign of replacement would make it the URL of another file.
#[test]
fn a_sitemap_in_latin_1_is_published_as_crawlers_ask_for_it() {
    let (policy, findings) = read(
        "shop",
        &Source {
            name: "shop.yaml".into(),
            text: STAR.into(),
        },
    );
    let policy = policy.unwrap_or_else(|| panic!("{findings:?}"));
    let bytes = b"Sitemap: https://shop.example/caf\xe9.xml\nSitemap: https://shop.example/\xc3\xa9t\xc3.xml\nSitemap: /\xe9.xml\n";
    let origin = Origin::Read(Arc::new(OriginFile::new("or.txt", bytes.as_slice())));
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
    assert!(has_comment(text, &["`Sitemap: /%E9.xml`"]), "{text}");
}

/// Google-Extended is in no line of the origin's: the comment says nothing about what is said of
/// it.
#[test]
fn who_is_shut_out_is_not_said_to_be_named_by_the_origin() {
    let text = served(
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
