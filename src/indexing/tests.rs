//! Tests of parsing, merging and rendering X-Robots-Tag.

use super::*;
use crate::time::Timestamp;
use proptest::prelude::*;

fn parsed_tags(lines: &[&str]) -> RobotsTags {
    parse_lines(lines.iter().map(|line| line.as_bytes()))
}

fn rewritten_lines(given: &[&str]) -> Vec<String> {
    parsed_tags(given).lines()
}

fn effective_text(given: &[&str], bot: &str) -> String {
    parsed_tags(given).effective(bot).to_string()
}

#[test]
fn google_examples_are_parsed() {
    assert_eq!(rewritten_lines(&["noindex"]), ["noindex"]);
    assert_eq!(
        rewritten_lines(&["noindex", "unavailable_after: 25 Jun 2010 15:00:00 PST"]),
        ["noindex", "unavailable_after: 2010-06-25T23:00:00Z"]
    );
    assert_eq!(
        rewritten_lines(&["googlebot: nofollow", "otherbot: noindex, nofollow"]),
        ["googlebot: nofollow", "otherbot: noindex, nofollow"]
    );
    assert_eq!(
        rewritten_lines(&["max-snippet: 20, max-image-preview:large, max-video-preview: -1"]),
        ["max-snippet: 20, max-image-preview: large, max-video-preview: -1"]
    );
}

#[test]
fn scope_is_sticky_within_its_line() {
    assert_eq!(
        rewritten_lines(&["BadBot: noindex, nofollow, googlebot: nofollow"]),
        ["badbot: noindex, nofollow", "googlebot: nofollow"]
    );
    assert_eq!(
        rewritten_lines(&["googlebot: nofollow", "noindex"]),
        ["noindex", "googlebot: nofollow"]
    );
    assert_eq!(
        effective_text(&["noindex, googlebot: nofollow"], "googlebot"),
        "noindex, nofollow"
    );
    assert_eq!(
        effective_text(&["noindex, googlebot: nofollow"], "bingbot"),
        "noindex"
    );
}

#[test]
fn value_keys_are_never_bot_names() {
    assert_eq!(
        rewritten_lines(&["unavailable_after: 2026-12-31, noai"]),
        ["noai", "unavailable_after: 2026-12-31T00:00:00Z"]
    );
    assert_eq!(
        rewritten_lines(&[
            "googlebot: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow"
        ]),
        [
            "googlebot: nofollow",
            "googlebot: unavailable_after: 2010-06-25T15:00:00Z"
        ]
    );
    assert_eq!(
        rewritten_lines(&["max-foo: 3, noindex"]),
        ["noindex, max-foo: 3"]
    );
}

#[test]
fn unreadable_directives_keep_their_scope() {
    assert_eq!(
        rewritten_lines(&["googlebot: noindex, somethingnew, unavailable_after: whenever"]),
        [
            "googlebot: noindex, somethingnew",
            "googlebot: unavailable_after: whenever"
        ]
    );
    assert_eq!(
        rewritten_lines(&["unavailable_after: Sol, 25 Florx 2010 9:00, noindex"]),
        ["noindex", "unavailable_after: Sol, 25 Florx 2010 9:00"]
    );
    assert_eq!(
        rewritten_lines(&["max-snippet: many"]),
        ["max-snippet: many"]
    );
    assert_eq!(
        rewritten_lines(&["googlebot: noindex,\r\n nofollow"]),
        ["googlebot: noindex, nofollow"],
        "folded"
    );
    assert_eq!(
        rewritten_lines(&["noindex,, ,nofollow,"]),
        ["noindex, nofollow"]
    );
}

#[test]
fn rewritten_lines_keep_scopes() {
    assert_eq!(
        rewritten_lines(&["other: max-snippet: 3, somethingnew"]),
        ["other: max-snippet: 3, somethingnew"]
    );
    assert_eq!(
        rewritten_lines(&["googlebot: , key: value"]),
        ["googlebot: key: value"]
    );
    assert_eq!(
        rewritten_lines(&["googlebot: max-foo: 3, noindex"]),
        ["googlebot: noindex, max-foo: 3"]
    );
    assert_eq!(
        rewritten_lines(&["seabot: new, sea: ice: noindex"]),
        ["seabot: new, sea: ice: noindex"]
    );
    assert_eq!(
        rewritten_lines(&["a-bot: b: noindex, new"]),
        ["a-bot: new", "a-bot: b: noindex"],
        "b is no bot here"
    );
    assert_eq!(
        rewritten_lines(&["other: all, somethingnew"]),
        ["other: all, somethingnew"]
    );
    assert_eq!(rewritten_lines(&[":noindex"]), [":noindex"]);
    assert_eq!(
        rewritten_lines(&["googlebot: noindex: nofollow, somethingnew"]),
        ["googlebot: somethingnew, noindex: nofollow"]
    );
    for line in [
        "other: max-snippet: 3, somethingnew",
        "googlebot: , key: value",
        "other: all, somethingnew",
        "googlebot: noindex: nofollow, new",
        "a-bot: b: noindex, new",
        "a-bot: b-bot: c-bot: noindex, new",
        "foo: b-bot: noindex, c: noindex",
        "unavailable_after: Friday, zz",
        "googlebot: unavailable_after: Friday,\u{16} 25-Jun-10 15:00:00 GMT, nofoll",
    ] {
        assert_eq!(
            parsed_tags(&[line]),
            parsed_tags(
                &rewritten_lines(&[line])
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
            )
        );
    }
}

#[test]
fn years_beyond_four_digits_are_kept_as_text() {
    for date in [
        "-12025-12-03",
        "12025-12-03",
        "9999-12-31T23:59:59-12:00",
        "3 Dec 12025 00:00:00",
    ] {
        let line = format!("unavailable_after: {date}");
        assert_eq!(rewritten_lines(&[&line]), [line]);
        assert!(
            Directives::parse(&format!("unavailable_after: {date}")).is_err(),
            "{date}"
        );
    }
}

#[test]
fn none_expands_and_all_gives_way() {
    assert_eq!(rewritten_lines(&["none"]), ["noindex, nofollow"]);
    assert_eq!(
        rewritten_lines(&["none", "noindex, nofollow"]),
        ["noindex, nofollow"]
    );
    assert_eq!(rewritten_lines(&["all"]), ["all"]);
    assert_eq!(rewritten_lines(&["all, noarchive"]), ["noarchive"]);
    assert_eq!(rewritten_lines(&["NOINDEX"]), ["noindex"]);
}

#[test]
fn most_restrictive_value_wins() {
    assert_eq!(
        rewritten_lines(&["max-snippet: 50, max-snippet: 0, max-snippet: -1"]),
        ["max-snippet: 0"]
    );
    assert_eq!(
        rewritten_lines(&["max-image-preview: large", "max-image-preview: standard"]),
        ["max-image-preview: standard"]
    );
    assert_eq!(
        rewritten_lines(&[
            "unavailable_after: 2027-01-01",
            "unavailable_after: 2026-01-01"
        ]),
        ["unavailable_after: 2026-01-01T00:00:00Z"]
    );
}

#[test]
fn merged_sources_restrict_as_much_as_each() {
    let united = |one: &[&str], other: &[&str]| {
        let (mut forth, mut back) = (parsed_tags(one), parsed_tags(other));
        forth.merge(&parsed_tags(other));
        back.merge(&parsed_tags(one));
        assert_eq!(forth, back, "{one:?} and {other:?}");
        forth.lines()
    };
    assert_eq!(united(&["noarchive"], &["nocache"]), ["noarchive"]);
    assert_eq!(united(&["noarchive"], &["bingbot: nocache"]), ["noarchive"]);
    assert_eq!(
        united(&["bingbot: noarchive"], &["nocache"]),
        ["bingbot: noarchive"],
        "nobody but Bing goes by nocache"
    );
    assert_eq!(
        united(&["otherbot: noarchive"], &["nocache"]),
        ["nocache", "otherbot: noarchive"]
    );
    assert_eq!(
        united(&["nocache, noarchive"], &["nocache"]),
        ["noarchive, nocache"],
        "one source has weighed them"
    );
    assert_eq!(
        united(&["nocache, noarchive"], &["noarchive"]),
        ["noarchive"]
    );
    assert_eq!(
        united(&["noindex"], &["noindex, indexifembedded"]),
        ["noindex"]
    );
    assert_eq!(
        united(&["noindex"], &["googlebot: noindex, indexifembedded"]),
        ["noindex", "googlebot: noindex"]
    );
    assert_eq!(
        united(&["googlebot: noindex"], &["noindex, indexifembedded"]),
        ["noindex", "googlebot: noindex"]
    );
    assert_eq!(
        united(&["nofollow"], &["noindex, indexifembedded"]),
        ["noindex, nofollow, indexifembedded"]
    );
    assert_eq!(
        united(&["noindex, indexifembedded"], &["noindex, indexifembedded"]),
        ["noindex, indexifembedded"]
    );
}

#[test]
fn policy_directives_are_parsed_strictly() {
    assert_eq!(
        Directives::parse("noindex, NoArchive")
            .expect("known")
            .to_string(),
        "noindex, noarchive"
    );
    assert_eq!(
        Directives::parse("none").expect("known").to_string(),
        "noindex, nofollow"
    );
    let dated =
        Directives::parse("unavailable_after: Fri, 31 Dec 2027 23:59:59 GMT").expect("a date");
    assert_eq!(
        dated.iter().next(),
        Some(&Directive::UnavailableAfter(Timestamp(1_830_297_599)))
    );
    for (wrong, meant) in [
        ("noidnex", "\"noindex\""),
        ("googlebot: noindex", "googlebot:"),
        ("max-snipet: 5", "\"max-snippet\""),
    ] {
        let help = Directives::parse(wrong).expect_err(wrong).help;
        assert!(help.is_some_and(|help| help.contains(meant)), "{wrong}");
    }
    assert_eq!(
        Directives::parse("dontkeepme, NoIndex")
            .expect("a word of somebody's")
            .to_string(),
        "noindex, dontkeepme"
    );
    for wrong in [
        "",
        "noindex,",
        "no index",
        "noindx",
        "max-snippet",
        "indexifembeded",
        "max-snippet: lots",
        "max-image-preview: huge",
        "unavailable_after: soon",
    ] {
        assert!(Directives::parse(wrong).is_err(), "{wrong:?} was accepted");
    }
}

#[test]
fn only_noindex_forbids_indexing() {
    assert!(Directives::parse("none").expect("known").forbids_indexing());
    assert!(
        !Directives::parse("nofollow, unavailable_after: 2001-01-01")
            .expect("known")
            .forbids_indexing()
    );
}

#[test]
fn excess_members_are_ignored() {
    let line = "x,".repeat(30_000);
    let many: Vec<&[u8]> = std::iter::repeat_n(line.as_bytes(), 1_000).collect();
    assert!(parse_lines(many.clone()).lines().len() <= 1);
    assert_eq!(parse_lines_complete(many), None, "the rest would be lost");
    assert!(parse_lines_complete([b"noindex, x".as_slice()]).is_some());
    assert_eq!(
        parse_lines_complete([line.as_bytes()]),
        None,
        "1,000 members of 30,000"
    );
}

#[test]
fn dates_are_parsed_in_documented_forms() {
    for date in [
        "25 Jun 2010 15:00:00 PST",
        "Fri, 25 Jun 2010 15:00:00 PST",
        "Friday, 25-Jun-10 15:00:00 PST",
        "25-Jun-2010 15:00:00 PST",
        "25-Jun-2010 15:00:00 -0800",
        "Fri, 25 Jun 2010 23:00:00 GMT",
        "Friday, 25-Jun-10 23:00:00 GMT",
        "25 Jun 10 23:00:00 UTC",
        "2010-06-25T15:00:00-08:00",
        "2010-06-25T15:00:00-0800",
        "2010-06-25T23:00:00Z",
        "2010-06-25T23:00:00.000Z",
        "2010-06-25T23:00:00",
        "2010-06-25T23:00Z",
        "2010-06-25 23:00:00",
        "2010-06-25T15:00:00-08",
        "2010-06-25T15:00-08",
        "2010-06-25 15:00:00.25 -08:00",
    ] {
        assert_eq!(
            effective_text(&[&format!("unavailable_after: {date}")], "x"),
            "unavailable_after: 2010-06-25T23:00:00Z",
            "{date}"
        );
        assert_eq!(
            Directives::parse(&format!("unavailable_after: {date}"))
                .expect(date)
                .to_string(),
            "unavailable_after: 2010-06-25T23:00:00Z"
        );
    }
    assert_eq!(
        effective_text(
            &["unavailable_after: Friday,, ,25-Jun-10 23:00:00 GMT"],
            "x"
        ),
        "unavailable_after: 2010-06-25T23:00:00Z"
    );
    for day in ["2010-06-25", "20100625"] {
        let read = effective_text(&[&format!("unavailable_after: {day}")], "x");
        assert_eq!(read, "unavailable_after: 2010-06-25T00:00:00Z", "{day}");
    }
}

#[test]
fn ambiguous_dates_are_rejected() {
    for date in [
        "25 Jun 2030",
        "25 Jun 2030 15:00 CEST",
        "June 25, 2030",
        "2030-176",
        "2030176",
        "2030-06",
        "2030-W26",
        "2030",
        "06/07/2030",
        "25062030",
        "2030-366",
        "2030-W53-1",
        "2030-06-25T1",
        "2030-06-25T150",
        "2030-06-25T15:00:00-8",
        "2030-06-25T25",
        "1893456000",
        "2030-06-25T24:30",
        "2030-W26-8",
        "2030-W-6",
        "20300625T",
        "2030é625",
    ] {
        let line = format!("unavailable_after: {date}");
        assert_eq!(rewritten_lines(&[&line]).join("\n"), line, "kept as it is");
        let help = Directives::parse(&line)
            .expect_err(date)
            .help
            .expect("what to do");
        assert!(help.contains("\"20261231\""), "{help}");
    }
    for form in ["2026-12-31T23:59:59Z", "2026-12-31", "20261231"] {
        let read = Directives::parse(&format!("unavailable_after: {form}"))
            .expect("a form that the help names");
        assert!(
            read.to_string()
                .starts_with("unavailable_after: 2026-12-31T"),
            "{read}"
        );
    }
}

/// What the origin writes so counts, like a noindex, once it has passed.
#[test]
fn past_date_forbids_indexing_in_every_form() {
    for date in ["20200101", "2020-01-01T00:00:00+00"] {
        let tags = parsed_tags(&[&format!("unavailable_after: {date}")]);
        assert!(
            tags.effective("googlebot")
                .forbids_indexing_at(Timestamp(1_790_000_000)),
            "{date}"
        );
    }
}

#[test]
fn known_bot_names_are_sorted() {
    assert!(known_bot_names().is_sorted());
    assert!(is_bot_name("Google-Extended") && is_bot_name("SomeSpider") && !is_bot_name("max-foo"));
}

#[test]
fn documented_bots_have_sources() {
    use documented_bots::{DOCUMENTED_BOTS, DirectiveSource, find_bot};
    assert_eq!(
        find_bot("applebot").map(|bot| bot.directive_source),
        Some(DirectiveSource::Meta)
    );
    assert!(find_bot("somebot").is_none());
    for bot in DOCUMENTED_BOTS {
        assert!(
            bot.source_url.starts_with("https://") && bot.as_of.starts_with("20"),
            "{bot:?}"
        );
    }
}

fn any_directives() -> impl Strategy<Value = Directives> {
    let one = prop_oneof![
        "none|all|noindex|nofollow|noarchive|nosnippet|noai|noimageindex",
        (0u32..100).prop_map(|limit| format!("max-snippet: {limit}")),
        "max-snippet: -1|max-image-preview: (none|standard|large)|max-video-preview: 7",
        (0i64..4_000_000_000)
            .prop_map(|moment| format!("unavailable_after: {}", Timestamp(moment))),
    ];
    proptest::collection::vec(one, 1..6)
        .prop_map(|parts| Directives::parse(&parts.join(", ")).expect("valid"))
}

proptest! {
    #[test]
    fn emitted_lines_parse_back(scopes in proptest::collection::vec(("[*]|[a-z]{3,8}bot", any_directives()), 0..5)) {
        let mut tags = RobotsTags::default();
        for (scope, directives) in &scopes {
            tags.add(TagScope::from_name(scope), directives);
        }
        let emitted = tags.lines();
        prop_assert_eq!(parse_lines(emitted.iter().map(|line| line.as_bytes())), tags);
    }

    #[test]
    fn rewritten_origin_tags_bind_each_bot_alike(
        members in proptest::collection::vec((
            "(googlebot|bingbot|otherbot|slurp|robots|[*]|max-foo|noindex|x)?( ?: ?)?",
            "noindex|none|all|index|noai|new|max-snippet: 3|max-snippet:no|max-foo: 3|unavailable_after: (25-Jun-10|Friday|2026-01-01)|25-Jun-10 15:00:00 GMT|a b|:|;|",
            "(, ?|,,|\n|\n\t)",
        ), 0..8),
    ) {
        let text: String = members.iter().map(|(scope, said, end)| format!("{scope}{said}{end}")).collect();
        let read = parse_lines(text.split('\n').map(str::as_bytes));
        let sent = read.lines();
        let again = parse_lines(sent.iter().map(String::as_bytes));
        for bot in ["googlebot", "bingbot", "otherbot", "slurp", "robots", "max-foo", "x", "unnamedbot"] {
            prop_assert_eq!(again.effective(bot), read.effective(bot), "{} of {:?} sent as {:?}", bot, &text, &sent);
        }
    }

    #[test]
    fn dates_are_not_split_at_commas(
        pieces in proptest::collection::vec(
            "Tue(sday)?|Fri|Jun(e|\\.)? 25(th)?|25 Jun|2030|2030-06-25|06/25/2030|15:00(:00)?( ?PM)?|3 pm|PST|IST|CEST|[+]0200|when(ever)?|z|[a-z]{1,4} [0-9:]{1,5}",
            1..6,
        ),
        next in "nofollow|none|googlebot: nofollow|max-snippet: 3|x: noindex",
    ) {
        let date = pieces.join(", ");
        let read = parsed_tags(&[&format!("unavailable_after: {date}, {next}")]);
        let (_, said) = read.iter().next().expect("a date");
        let kept = said.iter().find(|directive| directive.name() == "unavailable_after").expect("a date").clone();
        let torn = |known: &Directive| matches!(known, Directive::Custom(_)) || matches!(known, Directive::Unknown(key, _) if key.is_empty());
        prop_assert!(!said.iter().any(torn), "{:?}", said);
        if let Directive::Unknown(_, text) = kept {
            prop_assert_eq!(&*text, date);
        }
    }

    #[test]
    fn order_of_insertion_does_not_matter(one in any_directives(), other in any_directives()) {
        let (mut forth, mut back) = (one.clone(), other.clone());
        forth.extend(&other);
        back.extend(&one);
        prop_assert_eq!(forth, back);
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..4), wild in "[a-z:, \\-0-9]{0,60}") {
        let tags = parse_lines(lines.iter().map(Vec::as_slice).chain([wild.as_bytes()]));
        for line in tags.lines() {
            prop_assert!(!line.contains(['\r', '\n']));
        }
    }
}
