//! Tests of reading a policy, the YAML file in which a site owner writes the rules for crawlers.
//! They check what is read, which defaults apply, and how mistakes are reported.

use super::model::*;
use super::read;
use crate::crawlers::Purpose;
use crate::indexing::TagScope;
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, SourceFile};
use proptest::prelude::*;
use std::time::Duration;

fn source_file(text: &str) -> SourceFile {
    SourceFile {
        name: "policies/shop.yaml".into(),
        text: text.into(),
    }
}

fn decode_findings(text: &str) -> Diagnostics {
    read("shop", &source_file(text)).1
}

fn finding_ids(text: &str) -> Vec<(&'static str, u32, u32)> {
    decode_findings(text)
        .items
        .iter()
        .map(|item| {
            (
                item.id,
                item.span.map_or(0, |span| span.line),
                item.span.map_or(0, |span| span.column),
            )
        })
        .collect()
}

fn decode_valid(text: &str) -> Policy {
    let (policy, findings) = read("shop", &source_file(text));
    policy.unwrap_or_else(|| panic!("{findings:?}"))
}

const WHOLE: &str = r#"hosts: [shop.example, "*.Shop.example", "bücher.example:8443"]
environment: production
purposes: { training: disallow, search: inherit }
robots:
  origin: replace
  groups:
    - agents: ["*"]
      disallow: [/cart/, "/*?sessionid="]
      allow: /cart/help
      crawl_delay: 10s
    - agents: [Googlebot-Image]
      extends: "*"
      disallow: [/images/private/]
  sitemaps: https://shop.example/sitemap.xml
  max_age: 2h
indexing:
  - types: [application/pdf]
    tag: [noindex, noarchive]
  - paths: ["/drafts/"]
    tags: { "*": nofollow, Googlebot: [noindex, nofollow] }
  - path_regex: "^/events/2026/.*\\.(png|jpe?g)$"
    types: ["image/*"]
    status: [200, 4xx]
    not: { paths: [/events/2026/press/] }
    tag: "unavailable_after: 2026-12-31T23:59:59Z"
origin_tags: strip
enforcement:
  mode: enforce
  disallowed: { status: 503, retry_after: 1h, body: "no" }
  grace: 48h
  purposes: { seo: { mode: off } }
  agents: { Bytespider: { disallowed: 410 } }
pause:
  from: 2026-12-01T01:00:00Z
  until: 2026-12-01T03:00:00Z
  robots_txt: pause
acknowledge: [long_pause]
tests:
  - { agent: GPTBot, path: /article, expect: disallowed }
  - { agent: Googlebot, path: /report.pdf, type: application/pdf, expect: { verdict: allowed, tag: "noindex, noarchive" } }
"#;

#[test]
fn whole_policy_is_decoded() {
    let policy = decode_valid(WHOLE);
    let hosts: Vec<_> = policy
        .hosts
        .iter()
        .map(|host| {
            (
                host.value.wildcard,
                host.value.name.as_str(),
                host.value.port,
            )
        })
        .collect();
    assert_eq!(
        hosts,
        [
            (false, "shop.example", None),
            (true, "shop.example", None),
            (false, "xn--bcher-kva.example", Some(8443))
        ]
    );
    assert_eq!(
        policy.purposes[&Purpose::Training].value,
        CrawlStance::Disallow
    );
    let star = &policy.robots.groups[0];
    assert_eq!(star.disallow[1].value, "/*?sessionid=");
    assert_eq!(
        (star.disallow[1].span.line, star.disallow[1].span.column),
        (8, 26)
    );
    assert_eq!(
        star.crawl_delay.as_ref().map(|delay| delay.value),
        Some(Duration::from_secs(10))
    );
    assert_eq!(policy.robots.max_age.value, Duration::from_secs(7_200));
    let scopes: Vec<_> = policy.indexing[1]
        .tags
        .iter()
        .map(|(scope, said)| (scope.clone(), said.to_string()))
        .collect();
    assert_eq!(
        scopes,
        [
            (TagScope::All, "nofollow".to_owned()),
            (
                TagScope::from_name("googlebot"),
                "noindex, nofollow".to_owned()
            )
        ]
    );
    assert_eq!(
        policy.indexing[2].when.status[1].value,
        StatusCondition::Class(4)
    );
    assert_eq!(policy.origin_tags, OriginTagsMode::Strip);
    assert_eq!(
        policy.enforcement.site.disallowed,
        Some(AnswerPolicy {
            status: Some(503),
            retry_after: Some(Duration::from_secs(3_600)),
            body: Some("no".into())
        })
    );
    assert_eq!(
        policy.enforcement.purposes[&Purpose::Seo].mode,
        Some(EnforcementMode::Off)
    );
    assert_eq!(policy.enforcement.grace.value, Duration::from_secs(172_800));
    let [pause] = &policy.pauses[..] else {
        panic!("{:?}", policy.pauses)
    };
    let from = Timestamp::parse("2026-12-01T01:00:00Z");
    assert!(
        matches!(pause.schedule, PauseSchedule::Once { from: begin, .. } if begin == from),
        "{pause:?}"
    );
    assert!(pause.pause_robots_txt);
    assert_eq!(policy.tests.len(), 2);
}

#[test]
fn comment_is_bounded_and_printable() {
    let longest = "x".repeat(4_096);
    for (comment, is_valid) in [
        (longest.clone(), true),
        (format!("{longest}x"), false),
        ("a\\u202eb".to_owned(), false),
        ("a\\nb".to_owned(), true),
    ] {
        let found = finding_ids(&format!(
            "robots: {{ origin: replace, comment: \"{comment}\" }}\n"
        ));
        let is_rejected = found.iter().any(|(id, ..)| *id == "bad-value");
        assert_eq!(is_rejected, !is_valid, "{comment}: {found:?}");
    }
}

#[test]
fn invalid_recurring_pauses_are_rejected() {
    for (pause, id) in [
        ("{ daily: '02:00-02:00' }", "bad-value"),
        ("{ daily: '2:00-03:00' }", "bad-value"),
        ("{ weekly: '02:00-03:00' }", "bad-value"),
        ("{ daily: '02:00-03:00', zone: Europe/Berln }", "bad-value"),
        (
            "{ daily: '02:00-03:00', weekly: 'Sun 02:00-03:00' }",
            "bad-value",
        ),
        ("{ daily: '02:00-03:00', from: 2026-12-01 }", "bad-value"),
        ("{ zone: Europe/Berlin }", "without-effect"),
        ("{ daily: ['02:00-03:00'] }", "wrong-type"),
        ("tonight", "wrong-type"),
    ] {
        let found = finding_ids(&format!(
            "robots: {{ origin: replace }}\npause: [{pause}]\n"
        ));
        assert!(
            matches!(&found[..], [(only, ..)] if *only == id),
            "{pause}: {found:?}"
        );
    }
    let near = decode_findings(
        "robots: { origin: replace }\npause: { daily: '02:00-03:00', zone: Europe/Berln }\n",
    );
    assert!(
        near.items[0]
            .help
            .as_ref()
            .is_some_and(|help| help.contains("\"Europe/Berlin\"")),
        "{near:?}"
    );
    let policy = decode_valid(
        "robots: { origin: replace }\npause: [{ daily: 02:00-03:00 }, { weekly: Sun 02:00-03:00, zone: Asia/Tokyo }]\n",
    );
    let times: Vec<String> = policy
        .pauses
        .iter()
        .map(|pause| pause.schedule.to_string())
        .collect();
    assert_eq!(
        times,
        ["daily 02:00-03:00 UTC", "weekly Sun 02:00-03:00 Asia/Tokyo"]
    );
}

#[test]
fn defaults_are_safe() {
    let policy = decode_valid("robots: { origin: replace }\n");
    assert!(policy.hosts.is_empty());
    assert_eq!(policy.environment, Environment::Production);
    assert_eq!(
        policy.enforcement.site.mode.unwrap_or_default(),
        EnforcementMode::Observe
    );
    assert_eq!(policy.enforcement.grace.value, Duration::from_secs(86_400));
    assert_eq!(policy.robots.max_age.value, Duration::from_secs(3_600));
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    let text = r#"hosts: [https://shop.example/]
enviroment: production
purposes: { training: forbid }
robots:
  origin: replace
  groups:
    - agents: ["*"]
      disallow: [cart/]
    - agents: [GPTBot, gptbot]
      extends: Gooogle
      crawl_delay: soon
indexing:
  - types: [pdf]
    tag: noidnex
  - path_regex: "("
    tag: nofollow
enforcement: { mode: enforced, disallowed: 200 }
pause: { from: 2026-12-02, until: 2026-12-01 }
tests:
  - { agent: GPTBot, path: article, expect: forbidden }
html: metas
"#;
    assert_eq!(
        finding_ids(text),
        [
            ("bad-host", 1, 9),
            ("unknown-field", 2, 1),
            ("bad-value", 3, 23),
            ("bad-path", 8, 18),
            ("duplicate-token", 9, 24),
            ("unknown-group", 10, 16),
            ("bad-value", 11, 20),
            ("bad-type", 13, 13),
            ("bad-directive", 14, 10),
            ("bad-regex", 15, 17),
            ("bad-value", 17, 22),
            ("bad-value", 17, 44),
            ("bad-value", 18, 35),
            ("bad-path", 20, 28),
            ("bad-value", 20, 45),
            ("bad-value", 21, 7),
        ]
    );
    assert!(read("shop", &source_file(text)).0.is_none());
}

#[test]
fn errors_have_a_help() {
    let help = |text: &str| {
        decode_findings(text).items[0]
            .help
            .clone()
            .unwrap_or_default()
    };
    assert!(help("robots: { origin: replace }\nenviroment: staging\n").contains("\"environment\""));
    assert!(help("robots: { origin: replace }\nmode: observe\n").contains("\"enforcement\""));
    assert!(help("groups: []\n").contains("\"robots\""));
    assert!(
        help("robots: { origin: replace }\nhosts: https://a.example/x\n").contains("\"a.example\"")
    );
    let path = |path: &str| {
        help(&format!(
            "robots: {{ origin: replace, groups: {{ agents: '*', disallow: ['{path}'] }} }}\n"
        ))
    };
    assert!(path("^/private").contains("\"*\""));
    assert!(path("private").contains("\"/private\""));
    let mode = help("robots: { origin: replace }\nenforcement: { mode: enforc }\n");
    assert!(
        mode.contains("\"enforce\"") && mode.contains("observe") && !mode.contains("false"),
        "{mode}"
    );
    assert!(
        help("robots: { origin: replace }\nindexing: [{ tag: noindex, noarchive }]\n")
            .contains("quotes")
    );
    let only = "robots:\n  origin: only\n  groups: [{ agents: a-bot, disallow: /a }]\n  sitemaps: https://a.example/s.xml\n";
    assert_eq!(
        finding_ids(only),
        [("without-effect", 3, 3), ("without-effect", 4, 3)]
    );
    assert!(help(only).contains("origin: merge"));
    assert!(
        help("robots: { origin: only }\npurposes: { training: disallow }\n")
            .contains("origin: merge")
    );
}

#[test]
fn sitemap_of_each_host_needs_every_host_by_name() {
    let sitemap = "robots: { origin: replace, sitemaps: 'https://{host}/s.xml' }\n";
    for hosts in ["", "hosts: [a.example, '*.b.example']\n"] {
        let text = format!("{sitemap}{hosts}");
        assert_eq!(finding_ids(&text), [("bad-sitemap", 1, 38)], "{hosts}");
    }
    let policy = decode_valid(&format!("{sitemap}hosts: [a.example, 'b.example:8080']\n"));
    let urls = crate::yaml::located_values(&policy.sitemaps());
    assert_eq!(
        urls,
        ["https://a.example/s.xml", "https://b.example:8080/s.xml"]
    );
}

#[test]
fn origin_file_is_merged_by_default() {
    for (text, origin) in [
        ("hosts: a.example\n", OriginRobotsMode::Merge),
        ("robots: { max_age: 2h }\n", OriginRobotsMode::Merge),
        ("robots: { origin: merge }\n", OriginRobotsMode::Merge),
        ("robots: { origin: replace }\n", OriginRobotsMode::Replace),
        ("robots: { origin: only }\n", OriginRobotsMode::Only),
    ] {
        assert_eq!(decode_valid(text).robots.origin, origin, "{text}");
    }
    assert!(
        !decode_valid("environment: staging\n").reads_origin(),
        "a staging site says one thing only"
    );
}

#[test]
fn behind_cache_is_yes_no_or_a_time() {
    let kept = |said: &str| {
        let (policy, found) = read(
            "a",
            &source_file(&format!(
                "robots: {{ origin: replace }}\nenforcement: {{ behind_cache: {said} }}\n"
            )),
        );
        policy
            .map(|policy| policy.enforcement.behind_cache)
            .ok_or(found.items.first().map(|item| item.id))
    };
    for no in ["no", "false", "Off"] {
        assert_eq!(kept(no), Ok(Some(FrontCacheLifetime::No)), "{no}");
    }
    assert_eq!(kept("yes"), Ok(Some(FrontCacheLifetime::AsLongAsMaxAge)));
    assert_eq!(
        kept("2h"),
        Ok(Some(FrontCacheLifetime::For(Duration::from_secs(7_200))))
    );
    for wrong in ["32d", "maybe", "[1h]"] {
        let id = if wrong == "[1h]" {
            "wrong-type"
        } else {
            "bad-value"
        };
        assert_eq!(kept(wrong), Err(Some(id)), "{wrong}");
    }
}

#[test]
fn short_grace_and_circular_extends_are_rejected() {
    assert_eq!(
        finding_ids("robots: { origin: replace, max_age: 2h }\nenforcement: { grace: 1h }\n"),
        [("grace-below-max-age", 2, 23)]
    );
    let circle = "robots:\n  origin: replace\n  groups:\n    - { agents: a-bot, extends: b-bot }\n    - { agents: b-bot, extends: a-bot }\n";
    assert_eq!(
        finding_ids(circle)
            .iter()
            .map(|(id, line, _)| (*id, *line))
            .collect::<Vec<_>>(),
        [("circular-extends", 4), ("circular-extends", 5)]
    );
}

#[test]
fn token_with_a_version_is_rejected() {
    let text = "robots: { origin: replace, groups: [{ agents: Googlebot/2.1, disallow: / }] }\n";
    assert_eq!(finding_ids(text), [("bad-token", 1, 47)]);
    assert_eq!(
        decode_findings(text).items[0].help.as_deref(),
        Some("write \"Googlebot\"")
    );
}

#[test]
fn empty_condition_is_rejected() {
    let rule = |rule: &str| format!("robots: {{ origin: replace }}\nindexing: [{{ {rule} }}]\n");
    for (text, id) in [
        (rule("paths: [], tag: noindex"), "empty-condition"),
        (rule("paths: [''], tag: noindex"), "empty-condition"),
        (rule("types: [], tag: noindex"), "empty-condition"),
        (rule("tag: noindex, not: { status: [] }"), "empty-condition"),
        (rule("tag: []"), "rule-without-tags"),
        (rule("status: 304, tag: noindex"), "bad-status"),
        (
            "hosts: []\nrobots: { origin: replace }\n".to_owned(),
            "bad-host",
        ),
    ] {
        let found = decode_findings(&text);
        assert!(
            found.has_errors() && found.items.iter().any(|item| item.id == id),
            "{text}: {found:?}"
        );
    }
}

/// `tags` written for `tag`: `none` would be the name of an unknown bot.
#[test]
fn directive_as_name_of_a_crawler_is_rejected() {
    for said in [
        "max-image-preview: none",
        "max-snippet: 50",
        "noindex: nofollow",
        "All: noindex",
        "Unavailable_After: 2030-01-01",
    ] {
        let text = format!("robots: {{ origin: replace }}\nindexing: [{{ tags: {{ {said} }} }}]\n");
        assert_eq!(finding_ids(&text), [("bad-token", 2, 22)], "{said}");
    }
}

#[test]
fn hosts_are_normalised() {
    let host = |text: &str| {
        super::decode::parse_host(text)
            .ok()
            .map(|host| (host.wildcard, host.name, host.port))
    };
    assert_eq!(
        host("Shop.Example."),
        Some((false, "shop.example".into(), None))
    );
    assert_eq!(
        host("[2001:DB8::1]:8080"),
        Some((false, "2001:db8::1".into(), Some(8080)))
    );
    assert_eq!(
        host("192.0.2.1:80"),
        Some((false, "192.0.2.1".into(), Some(80)))
    );
    assert_eq!(host("my_service"), Some((false, "my_service".into(), None)));
    assert_eq!(
        host("*.A-1_b.example:8443"),
        Some((true, "a-1_b.example".into(), Some(8443)))
    );
    let longest = format!("{}_.{}", "a".repeat(62), "b.".repeat(94) + "c");
    assert_eq!(longest.len(), 253);
    assert_eq!(host(&longest), Some((false, longest.clone(), None)));
    for wrong in [
        format!("a.{longest}").as_str(),
        format!("_{}", "a".repeat(63)).as_str(),
        "_a..b",
        "_a!",
        "a.*.b",
        "[::1]x",
        "[::1]80",
        "*.192.0.2.1",
        "",
        "*",
        "a b",
        "http://a",
        "a/b",
        "*.*",
        "a:0",
        "[::1]:0",
        "a:http",
        "2001:db8::1",
        "[::1",
        "[x]",
        "*.[::1]",
    ] {
        assert_eq!(host(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_text_is_decoded_or_rejected(cut in 0usize..WHOLE.len(), junk in "[\\PC\n\t:{}\\[\\],*&-]{0,12}") {
        let mut text = String::new();
        let cut = (0..=cut).rev().find(|cut| WHOLE.is_char_boundary(*cut)).unwrap_or(0);
        text.push_str(&WHOLE[..cut]);
        text.push_str(&junk);
        text.push_str(&WHOLE[cut..]);
        let (policy, findings) = read("shop", &source_file(&text));
        prop_assert_eq!(policy.is_none(), findings.has_errors());
    }
}

#[test]
fn use_of_content_is_one_of_three_words() {
    for word in ["immediate", "reference", "full"] {
        let policy = decode_valid(&format!(
            "robots: {{ origin: replace, content_signal: {{ use: {word} }} }}\n"
        ));
        assert_eq!(
            policy
                .robots
                .signals
                .content_signal
                .and_then(|signal| signal.extent),
            Some(word)
        );
    }
    let text = "robots:\n  origin: replace\n  content_signal: { search: yes, use: referense }\n";
    assert_eq!(finding_ids(text), [("bad-value", 3, 39)]);
    let found = decode_findings(text);
    assert!(
        found.items[0].message.contains("\"referense\""),
        "{found:?}"
    );
    let help = found.items[0].help.as_deref().unwrap_or_default();
    assert!(
        help.contains("\"reference\"") && help.contains("immediate"),
        "{help}"
    );
    let list = "robots: { origin: replace, content_signal: { use: [full, reference] } }\n";
    assert_eq!(finding_ids(list), [("wrong-type", 1, 51)]);
}

#[test]
fn html_is_off_meta_or_a_map() {
    let html = |text: &str| {
        let (policy, findings) = read(
            "shop",
            &source_file(&format!("robots: {{ origin: replace }}\nhtml: {text}\n")),
        );
        policy
            .unwrap_or_else(|| panic!("{text}: {:?}", findings.items))
            .html
    };
    assert!(!html("off").meta && !html("false").meta && !html("{ meta: no }").meta);
    assert!(html("meta").meta && html("{ meta: yes }").meta);
    let all = html("{ meta: yes, paths: /a/, not: { paths: /a/b } }");
    assert_eq!((all.paths.len(), all.not_paths.len()), (1, 1));
}

#[test]
fn mistakes_in_html_are_reported_at_their_place() {
    let text = "robots: { origin: replace }\nhtml:\n  meta: perhaps\n  paths: drafts\n  not: {}\n  metas: x\n";
    assert_eq!(
        finding_ids(text),
        [
            ("bad-value", 3, 9),
            ("bad-path", 4, 10),
            ("empty-not", 5, 8),
            ("unknown-field", 6, 3),
        ]
    );
    assert_eq!(
        finding_ids("robots: { origin: replace }\nhtml: { paths: /a/ }\n"),
        [("missing-field", 2, 7)]
    );
}

#[test]
fn media_type_with_parameters_is_rejected() {
    let text = "robots: { origin: replace }\nindexing:\n  - { types: 'text/html; charset=utf-8', tag: noindex }\n";
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: text.into(),
    };
    let (policy, found) = read("shop", &source);
    assert!(policy.is_none());
    let only = &found.items[0];
    assert!(
        only.help
            .as_deref()
            .is_some_and(|help| help.contains("without parameters"))
    );
}

#[test]
fn any_media_type_is_rejected() {
    for (types, named, help) in [
        ("'*/*'", "\"*/*\"", "\"types\""),
        ("[text/html, '*/*']", "\"*/*\"", "\"types\""),
        ("pdf", "\"pdf\"", "\"application/pdf\""),
    ] {
        let text = format!(
            "robots: {{ origin: replace }}\nindexing:\n  - {{ types: {types}, tag: noai }}\n"
        );
        let (_, found) = read(
            "shop",
            &SourceFile {
                name: "shop.yaml".into(),
                text: text.as_str().into(),
            },
        );
        let [only] = &found.items[..] else {
            panic!("{types}: {found:?}")
        };
        assert_eq!(only.id, "bad-type");
        assert!(only.message.contains(named), "{only:?}");
        assert!(
            only.help.as_deref().is_some_and(|said| said.contains(help)),
            "{only:?}"
        );
    }
}
