use super::*;
use crate::time::Timestamp;
use proptest::prelude::*;

fn read(lines: &[&str]) -> Tags {
    parse_lines(lines.iter().map(|line| line.as_bytes()))
}

fn lines(given: &[&str]) -> Vec<String> {
    read(given).lines()
}

fn effective(given: &[&str], bot: &str) -> String {
    read(given).effective(bot).to_string()
}

#[test]
fn examples_of_google_s_page_are_read() {
    assert_eq!(lines(&["noindex"]), ["noindex"]);
    assert_eq!(
        lines(&["noindex", "unavailable_after: 25 Jun 2010 15:00:00 PST"]),
        ["noindex", "unavailable_after: 2010-06-25T23:00:00Z"]
    );
    assert_eq!(
        lines(&["googlebot: nofollow", "otherbot: noindex, nofollow"]),
        ["googlebot: nofollow", "otherbot: noindex, nofollow"]
    );
    assert_eq!(
        lines(&["max-snippet: 20, max-image-preview:large, max-video-preview: -1"]),
        ["max-snippet: 20, max-image-preview: large, max-video-preview: -1"]
    );
}

#[test]
fn a_scope_is_sticky_within_a_line_and_ends_with_it() {
    assert_eq!(
        lines(&["BadBot: noindex, nofollow, googlebot: nofollow"]),
        ["badbot: noindex, nofollow", "googlebot: nofollow"]
    );
    assert_eq!(lines(&["googlebot: nofollow", "noindex"]), ["noindex", "googlebot: nofollow"]);
    assert_eq!(effective(&["noindex, googlebot: nofollow"], "googlebot"), "noindex, nofollow");
    assert_eq!(effective(&["noindex, googlebot: nofollow"], "bingbot"), "noindex");
}

#[test]
fn keys_with_values_are_never_bots() {
    assert_eq!(lines(&["unavailable_after: 2026-12-31, noai"]), ["noai", "unavailable_after: 2026-12-31T00:00:00Z"]);
    assert_eq!(
        lines(&["googlebot: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow"]),
        ["googlebot: nofollow", "googlebot: unavailable_after: 2010-06-25T15:00:00Z"]
    );
    assert_eq!(lines(&["max-foo: 3, noindex"]), ["noindex, max-foo: 3"]);
}

#[test]
fn what_cannot_be_read_is_kept_in_its_scope() {
    assert_eq!(
        lines(&["googlebot: noindex, somethingnew, unavailable_after: whenever"]),
        ["googlebot: noindex, somethingnew, unavailable_after: whenever"]
    );
    assert_eq!(lines(&["max-snippet: many"]), ["max-snippet: many"]);
    assert_eq!(lines(&["noindex,, ,nofollow,"]), ["noindex, nofollow"]);
}

#[test]
fn what_is_sent_on_stays_in_its_scope() {
    assert_eq!(lines(&["other: max-snippet: 3, somethingnew"]), ["other: max-snippet: 3, somethingnew"]);
    assert_eq!(lines(&["googlebot: , key: value"]), ["googlebot: all, key: value"]);
    assert_eq!(lines(&["other: all, somethingnew"]), ["other: all, somethingnew"]);
    assert_eq!(lines(&[":noindex"]), [":noindex"]);
    assert_eq!(lines(&["googlebot: noindex: nofollow, somethingnew"]), ["googlebot: somethingnew, noindex: nofollow"]);
    for line in [
        "other: max-snippet: 3, somethingnew",
        "googlebot: , key: value",
        "other: all, somethingnew",
        "googlebot: noindex: nofollow, new",
    ] {
        assert_eq!(read(&[line]), read(&lines(&[line]).iter().map(String::as_str).collect::<Vec<_>>()));
    }
}

#[test]
fn dates_beyond_four_digits_are_kept_as_they_were() {
    for date in ["-12025-12-03", "12025-12-03", "9999-12-31T23:59:59-12:00", "3 Dec 12025 00:00:00"] {
        let line = format!("unavailable_after: {date}");
        assert_eq!(lines(&[&line]), [line]);
        assert!(Directives::parse(&format!("unavailable_after: {date}")).is_err(), "{date}");
    }
}

#[test]
fn none_is_noindex_and_nofollow_and_all_gives_way() {
    assert_eq!(lines(&["none"]), ["noindex, nofollow"]);
    assert_eq!(lines(&["none", "noindex, nofollow"]), ["noindex, nofollow"]);
    assert_eq!(lines(&["all"]), ["all"]);
    assert_eq!(lines(&["all, noarchive"]), ["noarchive"]);
    assert_eq!(lines(&["NOINDEX"]), ["noindex"]);
}

#[test]
fn the_most_restrictive_value_wins() {
    assert_eq!(lines(&["max-snippet: 50, max-snippet: 0, max-snippet: -1"]), ["max-snippet: 0"]);
    assert_eq!(lines(&["max-image-preview: large", "max-image-preview: standard"]), ["max-image-preview: standard"]);
    assert_eq!(
        lines(&["unavailable_after: 2027-01-01", "unavailable_after: 2026-01-01"]),
        ["unavailable_after: 2026-01-01T00:00:00Z"]
    );
}

#[test]
fn a_policy_s_directives_are_read_strictly() {
    assert_eq!(Directives::parse("noindex, NoArchive").expect("known").to_string(), "noindex, noarchive");
    assert_eq!(Directives::parse("none").expect("known").to_string(), "noindex, nofollow");
    let dated = Directives::parse("unavailable_after: Fri, 31 Dec 2027 23:59:59 GMT").expect("a date");
    assert_eq!(dated.iter().next(), Some(&Directive::UnavailableAfter(Timestamp(1_830_297_599))));
    assert_eq!(Directives::parse("noidnex").expect_err("a typo").help.as_deref(), Some("did you mean `noindex`?"));
    assert!(
        Directives::parse("googlebot: noindex")
            .expect_err("a scope")
            .help
            .is_some_and(|help| help.contains("tags: { googlebot"))
    );
    assert_eq!(
        Directives::parse("max-snipet: 5").expect_err("a typo").help.as_deref(),
        Some("did you mean `max-snippet`?")
    );
    for wrong in ["", "noindex,", "max-snippet: lots", "max-image-preview: huge", "unavailable_after: soon"] {
        assert!(Directives::parse(wrong).is_err(), "{wrong:?} was accepted");
    }
}

#[test]
fn only_noindex_forbids_indexing() {
    assert!(Directives::parse("none").expect("known").forbids_indexing());
    assert!(!Directives::parse("nofollow, unavailable_after: 2001-01-01").expect("known").forbids_indexing());
}

#[test]
fn ten_thousand_members_are_bounded() {
    let line = "x,".repeat(30_000);
    let many: Vec<&[u8]> = std::iter::repeat_n(line.as_bytes(), 1_000).collect();
    assert!(parse_lines(many).lines().len() <= 1);
}

fn any_directives() -> impl Strategy<Value = Directives> {
    let one = prop_oneof![
        "none|all|noindex|nofollow|noarchive|nosnippet|noai|noimageindex",
        (0u32..100).prop_map(|limit| format!("max-snippet: {limit}")),
        "max-snippet: -1|max-image-preview: (none|standard|large)|max-video-preview: 7",
        (0i64..4_000_000_000).prop_map(|moment| format!("unavailable_after: {}", Timestamp(moment))),
    ];
    proptest::collection::vec(one, 1..6).prop_map(|parts| Directives::parse(&parts.join(", ")).expect("valid"))
}

proptest! {
    #[test]
    fn emitted_lines_read_back_as_they_were(scopes in proptest::collection::vec(("[*]|[a-z]{3,8}bot", any_directives()), 0..5)) {
        let mut tags = Tags::default();
        for (scope, directives) in &scopes {
            tags.add(Scope::named(scope), directives);
        }
        let emitted = tags.lines();
        prop_assert_eq!(parse_lines(emitted.iter().map(|line| line.as_bytes())), tags);
    }

    #[test]
    fn the_order_of_insertion_does_not_matter(one in any_directives(), other in any_directives()) {
        let (mut forth, mut back) = (one.clone(), other.clone());
        forth.extend(&other);
        back.extend(&one);
        prop_assert_eq!(forth, back);
    }

    #[test]
    fn any_bytes_are_read(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..4), wild in "[a-z:, \\-0-9]{0,60}") {
        let tags = parse_lines(lines.iter().map(Vec::as_slice).chain([wild.as_bytes()]));
        for line in tags.lines() {
            prop_assert!(!line.contains(['\r', '\n']));
        }
    }
}
