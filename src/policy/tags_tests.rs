//! Tests of the X-Robots-Tag lines that a response gets from the rules of a policy, also together
//! with the origin's own lines. Some tests are about retired paths, whose pages first get `noindex`
//! and are disallowed later.

use super::origin::OriginRobotsAvailability;
use super::retire::RetireStage;
use super::site::{SelectedRules, Site, TagHeaderEdit, combine_with_origin};
use super::{compile_with_origin, read};
use crate::crawlers::Registry;
use crate::robots::{PathPattern, TargetScratch};
use crate::time::Timestamp;
use crate::yaml::SourceFile;
use proptest::prelude::*;
use std::sync::Arc;

fn compile_at(text: &str, moment: &str) -> Site {
    let source = SourceFile {
        name: "shop.yaml".into(),
        text: text.into(),
    };
    let (policy, found) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{found:?}"));
    compile_with_origin(
        Arc::new(policy),
        &OriginRobotsAvailability::Missing,
        Registry::builtin(),
        Timestamp::parse(moment).expect("a moment"),
    )
    .expect("compiles")
}

fn selected_rules(site: &Site, target: &str) -> SelectedRules {
    let mut scratch = TargetScratch::default();
    site.tags
        .for_path(scratch.normalise(target.as_bytes()), &mut Vec::new())
}

/// The lines of a response with this status and type, combined with those of the origin.
fn combined_lines(
    site: &Site,
    target: &str,
    status: u16,
    media: &str,
    theirs: &[&str],
) -> Vec<String> {
    let ours = site.tags.tags(
        &selected_rules(site, target),
        status,
        Some(media.as_bytes()),
    );
    match combine_with_origin(
        ours.as_deref(),
        theirs.iter().map(|line| line.as_bytes()),
        site.origin_tags,
    ) {
        TagHeaderEdit::Add(lines) => theirs
            .iter()
            .map(ToString::to_string)
            .chain(lines.iter().cloned())
            .collect(),
        TagHeaderEdit::Replace(lines) => lines.into_owned(),
    }
}

const RULES: &str = r#"
robots: { origin: replace }
origin_tags: keep
indexing:
  - { types: [application/pdf, "image/*"], status: 200, tag: noindex }
  - { paths: /a/, tag: nofollow, not: { status: [3xx, 404] } }
  - { paths: /merged/, tag: noarchive, origin_tags: merge }
  - { paths: /mine/, tag: noarchive, origin_tags: replace }
  - { paths: [/mine/alone/, "/*.md$"], origin_tags: strip }
"#;

#[test]
fn types_statuses_and_not_select_responses() {
    let site = compile_at(RULES, "2026-11-21");
    let lines =
        |target, status, media| combined_lines(&site, target, status, media, &[]).join(" | ");
    assert_eq!(lines("/x", 200, "application/pdf; version=1.7"), "noindex");
    assert_eq!(lines("/x", 200, "IMAGE/PNG"), "noindex");
    assert_eq!(
        lines("/x", 206, "application/pdf"),
        "noindex",
        "a part of the page is tagged as the page"
    );
    assert_eq!(lines("/x", 404, "application/pdf"), "");
    assert_eq!(lines("/a/x", 200, "image/png"), "noindex, nofollow");
    assert_eq!(lines("/a/x", 302, "text/html"), "");
    assert_eq!(lines("/a/x", 404, "text/html"), "");
    assert_eq!(lines("/a/x", 410, "text/html"), "nofollow");
}

/// The type is not certain in a multipart 206, and with two Content-Type lines.
#[test]
fn uncertain_type_gets_every_possible_restriction() {
    let rules = r#"
robots: { origin: replace }
indexing:
  - { types: application/pdf, tag: noindex }
  - { paths: /not/, not: { types: text/html }, tag: nofollow }
  - { paths: /sure/, tag: noarchive }
"#;
    let site = compile_at(rules, "2026-11-21");
    let said = |target: &str, status: u16, media: &str| {
        combined_lines(&site, target, status, media, &[]).join(" | ")
    };
    for unsure in [
        "multipart/byteranges; boundary=a,b/c",
        "text/html, application/pdf",
        "Multipart/ByteRanges",
    ] {
        assert_eq!(said("/x", 206, unsure), "noindex", "{unsure}");
        assert_eq!(
            said("/not/x", 206, unsure),
            "noindex, nofollow",
            "what may be no exception is none: {unsure}"
        );
        assert_eq!(said("/sure/x", 206, unsure), "noindex, noarchive");
    }
    assert_eq!(
        said("/x", 200, "multipart/byteranges"),
        "",
        "a 200 is what it says"
    );
    assert_eq!(
        said("/not/x", 200, "text/html, text/html; charset=utf-8"),
        "",
        "twice the same is one type"
    );
    assert_eq!(said("/x", 206, "text/html"), "");
}

#[test]
fn not_modified_of_unknown_type_has_no_tags() {
    let site = compile_at(RULES, "2026-11-21");
    assert!(
        site.tags.hides_tags(&selected_rules(&site, "/x"), 304)
            && !site.tags.hides_tags(&selected_rules(&site, "/x"), 200)
    );
    let untyped = compile_at(
        "robots: { origin: replace }\nindexing: { paths: /a/, tag: noindex }\n",
        "2026-11-21",
    );
    assert!(
        !untyped
            .tags
            .hides_tags(&selected_rules(&untyped, "/a/"), 304)
    );
    assert_eq!(combined_lines(&untyped, "/a/", 304, "", &[]), ["noindex"]);
}

#[test]
fn origin_tags_are_set_per_site_and_rule() {
    let site = compile_at(RULES, "2026-11-21");
    let lines =
        |target| combined_lines(&site, target, 404, "text/html", &["a b", "nofollow"]).join(" | ");
    assert_eq!(lines("/x"), "a b | nofollow", "kept");
    assert_eq!(lines("/merged/x"), "nofollow, noarchive, a b");
    assert_eq!(lines("/mine/x"), "noarchive");
    assert_eq!(
        lines("/mine/alone/x"),
        "noarchive",
        "of two the one that passes less on"
    );
    assert_eq!(lines("/x.md"), "");
}

const RETIRED: &str = r#"
purposes: { training: disallow }
robots: { origin: replace, groups: [{ agents: [Googlebot, Applebot], disallow: /g/ }] }
retire:
  - { paths: [/old/, "/*?v=1"], noindex_from: 2026-11-20, disallow_after: 14d }
  - { paths: /later/, noindex_from: 2027-01-01 }
tests:
  - { agent: Googlebot, path: /old/1, expect: { verdict: allowed, tag: [] } }
  - { agent: Googlebot, path: /old/1, at: 2026-11-20T00:00:00Z, expect: { verdict: allowed, tag: noindex } }
  - { agent: Bingbot, path: "/a?v=1", at: 2026-12-04T00:00:00Z, expect: { verdict: disallowed } }
"#;

#[test]
fn retired_paths_are_noindex_first_and_disallowed_later() {
    let stand = |moment: &str| {
        let site = compile_at(RETIRED, moment);
        let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
        let noindex = combined_lines(&site, "/old/1", 200, "text/html", &[]) == ["noindex"];
        (
            noindex,
            text.matches("Disallow: /old/\n").count(),
            text,
            site,
        )
    };
    let (noindex, closed, text, site) = stand("2026-11-19T23:59:59Z");
    assert!(!noindex && closed == 0, "{text}");
    assert_eq!(site.next_switch, Timestamp::parse("2026-11-20"));
    let (noindex, closed, text, site) = stand("2026-11-20T00:00:00Z");
    assert!(noindex && closed == 0, "{text}");
    assert_eq!(site.next_switch, Timestamp::parse("2026-12-04"));
    let (noindex, closed, text, site) = stand("2026-12-04T00:00:00Z");
    // Googlebot, Applebot, and a group for everybody else; those for training are closed already.
    assert!(noindex && closed == 3, "{text}");
    assert!(
        text.contains("User-agent: *\nDisallow: /old/\nDisallow: /*?v=1\n"),
        "{text}"
    );
    assert!(
        text.contains("User-agent: Googlebot\nDisallow: /g/\nDisallow: /old/\nDisallow: /*?v=1\n"),
        "{text}"
    );
    assert_eq!(site.next_switch, Timestamp::parse("2027-01-01"));
    assert_eq!(site.policy.retire[1].stage(site.at), RetireStage::Planned);
}

#[test]
fn mistakes_in_indexing_have_their_places() {
    let text = "robots: { origin: replace, groups: [{ agents: '*', noindex: /a }] }\nretire:\n  - { paths: old, noindex_from: 2026-11-20 }\n  - { noindex_from: soon }\n  - { paths: [], noindex_from: 2026-11-20, disallow_after: 0s, for: 3 }\nindexing:\n  - { paths: /a, origin_tags: replace }\n  - { tags: { GoogleBot: noindex, bingbot: noindex, googlebot: nofollow } }\nhtml: { meta: yes, not: {} }\n";
    let (policy, found) = read(
        "shop",
        &SourceFile {
            name: "shop.yaml".into(),
            text: text.into(),
        },
    );
    assert!(policy.is_none());
    let found: Vec<_> = found
        .items
        .iter()
        .map(|item| (item.id, item.span.map_or(0, |span| span.line)))
        .collect();
    for wanted in [
        ("unknown-field", 1),
        ("bad-path", 3),
        ("bad-value", 4),
        ("missing-field", 4),
        ("empty-condition", 5),
        ("bad-value", 5),
        ("unknown-field", 5),
        ("rule-without-tags", 7),
        ("duplicate-key", 8),
        ("empty-not", 9),
    ] {
        assert!(found.contains(&wanted), "{wanted:?} in {found:?}");
    }
}

/// Many origins resolve `//drafts/` to `/drafts/`, and crawlers follow bad links.
#[test]
fn path_has_tags_of_its_resolved_path() {
    let rules = "  - { paths: /drafts/, tag: noindex }\n  - { path_regex: '^/x/', tag: nofollow }\n  - { paths: /drafts/, not: { paths: /drafts/open/ }, tag: noarchive }\n";
    let site = compile_at(
        &format!("robots: {{ origin: replace }}\nindexing:\n{rules}"),
        "2026-11-21",
    );
    let said = |target| combined_lines(&site, target, 200, "text/html", &[]);
    for target in [
        "/drafts/a",
        "//drafts/a",
        "/./drafts/a",
        "/y/../drafts/a",
        "/y/%2e%2e/drafts/a",
    ] {
        assert_eq!(said(target), ["noindex, noarchive"], "{target}");
    }
    assert_eq!(
        said("/x/../drafts/a"),
        ["noindex, nofollow, noarchive"],
        "both readings"
    );
    assert_eq!(said("//drafts/open/a"), ["noindex"]);
    assert_eq!(
        said("/drafts/../a"),
        ["noindex, noarchive"],
        "as it was sent, too"
    );
}

proptest! {
    #[test]
    fn index_selects_the_same_rules_as_trying_each(
        rules in proptest::collection::vec(proptest::collection::vec("/[ab/*]{0,4}[$]?|[*][ab.]{1,3}[$]?|/[*][?]s=[0-9]", 0..3), 1..40),
        targets in proptest::collection::vec("/[ab/.]{0,8}([?]s=[0-9])?", 1..8),
    ) {
        let listed: String = rules
            .iter()
            .enumerate()
            .map(|(index, paths)| match paths.is_empty() {
                true => format!("  - {{ tag: \"max-snippet: {index}\" }}\n"),
                false => format!("  - {{ paths: {paths:?}, tag: \"max-snippet: {index}\" }}\n"),
            })
            .collect();
        let site = compile_at(&format!("robots: {{ origin: replace }}\nindexing:\n{listed}"), "2026-11-21");
        for target in targets {
            let mut scratch = TargetScratch::default();
            let normal = scratch.normalise(target.as_bytes());
            let tried: Vec<u16> = (0u16..)
                .zip(&rules)
                .filter(|(_, paths)| {
                    let is = |path: &str| {
                        let pattern = PathPattern::new(path);
                        normal.forms().any(|path| pattern.matches(path))
                    };
                    paths.is_empty() || paths.iter().any(|path| is(path))
                })
                .map(|(index, _)| index)
                .collect();
            let found: Vec<u16> = site.tags.for_path(normal, &mut Vec::new()).iter().map(|found| found.rule).collect();
            prop_assert_eq!(found, tried, "{} in {:?}", target, &rules);
        }
    }
}
