//! Which pairs of directives contradict each other, which say something twice, and which are fine.

use crate::policy::lint::tests::linted;
use crate::policy::read;
use crate::yaml::{Diagnostic, Diagnostics, Source};

/// What is said of the words of a rule.
fn said(tag: &str) -> Vec<Diagnostic> {
    let text = format!("robots: {{ origin: replace }}\nindexing:\n  - {{ paths: /a, {tag} }}\n");
    let (_, found) = linted(&text);
    let about = ["contradictory-tag", "redundant-tag"];
    found.items.into_iter().filter(|item| about.contains(&item.id)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Are {
    /// Of one thing the opposite is said: the first of the two has no effect.
    Opposite,
    /// The first one is said by the second, too.
    Needless,
    Fine,
}
use Are::{Fine, Needless, Opposite};

/// In either order the same is said of the same word.
#[test]
fn every_pair_is_what_it_says() {
    let pairs = [
        ("index", "noindex", Opposite),
        ("index", "none", Opposite),
        ("follow", "nofollow", Opposite),
        ("follow", "none", Opposite),
        ("archive", "noarchive", Opposite),
        ("all", "noindex", Opposite),
        ("all", "nofollow", Opposite),
        ("all", "none", Opposite),
        ("all", "noarchive", Opposite),
        ("all", "nosnippet", Opposite),
        ("all", "noimageindex", Opposite),
        ("all", "max-snippet: 50", Opposite),
        ("all", "max-image-preview: none", Opposite),
        ("all", "unavailable_after: 2099-01-01", Opposite),
        ("max-snippet: 7", "max-snippet: 5", Opposite),
        ("max-snippet: -1", "max-snippet: 5", Opposite),
        ("max-snippet: -1", "nosnippet", Opposite),
        ("max-image-preview: large", "max-image-preview: none", Opposite),
        ("max-image-preview: standard", "max-image-preview: none", Opposite),
        ("max-video-preview: -1", "max-video-preview: 0", Opposite),
        ("unavailable_after: 2099-01-02", "unavailable_after: 2099-01-01", Opposite),
        ("noindex", "none", Needless),
        ("nofollow", "none", Needless),
        ("index", "all", Needless),
        ("follow", "all", Needless),
        ("archive", "all", Needless),
        ("max-snippet: 5", "nosnippet", Needless),
        ("max-snippet: 0", "nosnippet", Needless),
        ("index", "nofollow", Fine),
        ("index", "follow", Fine),
        ("index", "noarchive", Fine),
        ("index", "nosnippet", Fine),
        ("index", "noai", Fine),
        ("index", "indexifembedded", Fine),
        ("index", "max-snippet: -1", Fine),
        ("index", "max-image-preview: large", Fine),
        ("index", "unavailable_after: 2099-01-01", Fine),
        ("follow", "noindex", Fine),
        ("follow", "noarchive", Fine),
        ("archive", "noindex", Fine),
        ("archive", "nocache", Fine),
        ("archive", "nofollow", Fine),
        ("all", "noai", Fine),
        ("all", "noimageai", Fine),
        ("all", "max-snippet: -1", Fine),
        ("all", "max-image-preview: large", Fine),
        ("all", "max-video-preview: -1", Fine),
        ("all", "dontkeepme", Fine),
        ("noindex", "nofollow", Fine),
        ("noindex", "indexifembedded", Fine),
        ("noindex", "noarchive", Fine),
        ("noindex", "max-snippet: -1", Fine),
        ("noindex", "unavailable_after: 2099-01-01", Fine),
        ("nosnippet", "max-image-preview: large", Fine),
        ("nosnippet", "max-video-preview: -1", Fine),
        ("noimageindex", "max-image-preview: none", Fine),
        ("noarchive", "max-snippet: 50", Fine),
    ];
    for (one, other, are) in pairs {
        let ways = [
            format!("tag: ['{one}', '{other}']"),
            format!("tag: ['{other}', '{one}']"),
            format!("tag: '{other}, {one}'"),
            format!("tag: '{other}', tags: {{ '*': '{one}' }}"),
        ];
        for way in ways {
            let found = said(&way);
            let messages: Vec<_> = found.iter().map(|item| (item.id, item.message.as_str())).collect();
            match are {
                Fine => assert!(messages.is_empty(), "{way}: {messages:?}"),
                Opposite => {
                    let value = |text: &str| {
                        text.replace("2099-01-01", "2099-01-01T00:00:00Z").replace("2099-01-02", "2099-01-02T00:00:00Z")
                    };
                    let message = format!("`{}` has no effect beside `{}`", value(one), value(other));
                    assert_eq!(messages, [("contradictory-tag", message.as_str())], "{way}");
                    let help = found[0].help.as_deref().unwrap_or_default();
                    assert!(
                        help.starts_with(&format!("remove `{}`, and what crawlers go by stays the same", value(one))),
                        "{help}"
                    );
                }
                Needless => assert!(
                    matches!(messages[..], [("redundant-tag", said)] if said.contains(&format!("`{one}`")) ),
                    "{way}: {messages:?}"
                ),
            }
        }
    }
}

/// Beside nosnippet a max-snippet is sent, and goes when it is removed: it is what crawlers go by that stays the same.
#[test]
fn what_is_sent_is_not_said_to_stay_the_same() {
    for limit in ["-1", "0", "5"] {
        let found = said(&format!("tag: [nosnippet, 'max-snippet: {limit}']"));
        let [only] = &found[..] else { panic!("{limit}: {found:?}") };
        let words = format!("{} {}", only.message, only.help.as_deref().unwrap_or_default());
        assert!(words.contains("crawlers go by") && !words.contains("sent"), "{words}");
    }
}

/// What everybody writes, and what the extensions of shops and blogs write for them.
#[test]
fn what_is_common_is_let_be() {
    for tag in [
        "noindex, follow",
        "index, nofollow",
        "index, follow",
        "noindex, follow, max-image-preview: large",
        "index, follow, max-snippet:-1, max-image-preview:large, max-video-preview:-1",
        "index, follow, max-image-preview:large, max-snippet:-1, max-video-preview:-1, unavailable_after: Fri, 25 Jan 2099 15:00:00 GMT",
        "noindex, nofollow",
        "noindex, nofollow, noarchive, nosnippet, noimageindex",
        "none, noarchive",
    ] {
        assert_eq!(said(&format!("tag: '{tag}'")), [], "{tag}");
        let list = tag.replace("Fri, ", "").split(", ").map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
        assert_eq!(said(&format!("tag: [{list}]")), [], "{list}");
    }
}

#[test]
fn a_word_is_said_twice_only_if_it_is() {
    for (tag, times) in [
        ("[noindex, noindex]", 1),
        ("[index, index]", 1),
        ("'max-snippet: 5, max-snippet:5'", 1),
        ("[index, follow]", 0),
    ] {
        let found = said(&format!("tag: {tag}"));
        assert_eq!(
            found.iter().filter(|item| item.message.ends_with("is said twice")).count(),
            times,
            "{tag}: {found:?}"
        );
        assert_eq!(found.len(), times, "{tag}: {found:?}");
    }
}

/// What one crawler is told beside everybody: the same, less, or more.
#[test]
fn what_one_is_told_beside_everybody_is_told_as_it_is() {
    // Nothing is claimed of crawlers that do not read both.
    let already = Some((
        "redundant-tag",
        "everybody is told this already: it adds nothing for a crawler that, like Google's, goes by that, too",
    ));
    let less = Some(("contradictory-tag", "goes by what everybody is told, too"));
    for (all, one, expected) in [
        ("noindex", "noindex", already),
        ("'noindex, nofollow'", "noindex", already),
        ("none", "noindex", already),
        ("'max-snippet: 50'", "'max-snippet: 50'", already),
        ("'max-snippet: 50'", "'max-snippet: 100'", less),
        ("'max-snippet: 50'", "'max-snippet: -1'", less),
        ("'max-image-preview: none'", "'max-image-preview: large'", less),
        ("noindex", "all", less),
        ("noindex", "index", less),
        ("none", "'noindex, follow'", less),
        ("noindex", "follow", None),
        ("'max-snippet: 50'", "'index, follow'", None),
        ("'max-snippet: 50'", "'max-snippet: 20'", None),
        ("noindex", "nofollow", None),
        ("nofollow", "'noindex, follow'", less),
    ] {
        let found = said(&format!("tags: {{ '*': {all}, googlebot: {one} }}"));
        match (expected, &found[..]) {
            (None, []) => {}
            (Some((id, words)), [only]) => {
                assert!(only.id == id && only.message.contains(words), "{all}, {one}: {only:?}")
            }
            _ => panic!("{all}, {one}: {found:?}"),
        }
    }
}

/// A rule within another's reach: what it loosens is told by the words that it has.
#[test]
fn a_rule_that_loosens_another_is_told_by_its_words() {
    let said = |wider: &str, one: &str| {
        let found = said(&format!("tag: {wider} }}\n  - {{ paths: /a/b, tag: {one}"));
        found.into_iter().filter(|item| item.id == "contradictory-tag").map(|item| item.message).collect::<Vec<_>>()
    };
    for (wider, one, word) in [
        ("noindex", "'index, follow'", Some("index")),
        ("noindex", "'index, nofollow'", Some("index")),
        ("noindex", "all", Some("all")),
        ("nofollow", "'index, follow'", Some("follow")),
        ("noarchive", "'index, follow'", None),
        ("'max-snippet: 5'", "'index, follow'", None),
        ("noai", "all", None),
        ("'max-snippet: 5'", "'max-snippet: 50'", Some("max-snippet: 50")),
        ("nosnippet", "'max-snippet: -1'", Some("max-snippet: -1")),
    ] {
        let found = said(wider, one);
        match word {
            None => assert_eq!(found, Vec::<String>::new(), "{wider}, {one}"),
            Some(word) => assert!(
                found.len() == 1 && found[0].starts_with(&format!("`{word}` has no effect: ")),
                "{wider}, {one}: {found:?}"
            ),
        }
    }
}

/// An owner who follows the help loses no restriction of another crawler or another directive.
#[test]
fn the_way_to_loosen_a_rule_keeps_the_rest_of_it() {
    let not = "take them out of the other rule with `not`";
    let rest = "say the rest of it again for them";
    let others = "name the others";
    let itself = "change the other rule itself";
    for (wider, one, has, has_not) in [
        ("tag: noindex", "paths: /a/b, tag: index", vec![not], vec![rest, others]),
        ("tag: noindex", "paths: /a/b, tags: { googlebot: index }", vec![not, "name the others here"], vec![rest]),
        ("tag: 'noindex, noai'", "paths: /a/b, tags: { googlebot: index }", vec![not, others, rest], vec![]),
        ("tag: [noarchive, noai, 'max-snippet: 50']", "paths: /a/b, tag: 'max-snippet: 200'", vec![not, rest], vec![]),
        (
            "tags: { googlebot: noindex, bingbot: noindex }",
            "paths: /a/b, tags: { googlebot: index }",
            vec![not, rest],
            vec![others],
        ),
        ("tags: { googlebot: noindex }", "paths: /a/b, tags: { googlebot: index }", vec![not], vec![rest, others]),
        ("tag: noindex", "paths: /a, tags: { googlebot: all }", vec!["name the others in the other rule"], vec![not]),
        ("tag: noindex", "paths: /a, tag: all", vec![itself], vec![not]),
        ("tag: noindex", "paths: /a/b, not: { paths: /a/b/c }, tag: all", vec![itself], vec![not]),
    ] {
        let found = said(&format!("{wider} }}\n  - {{ {one}"));
        let [only] = &found[..] else { panic!("{wider}, {one}: {found:?}") };
        let help = only.help.as_deref().unwrap_or_default();
        assert!(has.iter().all(|words| help.contains(words)), "{wider}, {one}: {help}");
        assert!(!has_not.iter().any(|words| help.contains(words)), "{wider}, {one}: {help}");
    }
}

/// Patterns are one if they match the same, however they are spelled, and apart if they do not.
#[test]
fn a_rule_is_within_another_s_reach_as_patterns_are() {
    for (wider, narrower, within) in [
        ("/a%", "/a%41", false),
        ("/a", "/%61", true),
        ("/x/", "/x/*.pdf$", true),
        ("/x/*", "/x/y", true),
        ("/x$", "/x$y", false),
        ("/*.pdf", "/x/*.pdf$", true),
        ("/*.pdf$", "/x/*.pdf", false),
    ] {
        let found = said(&format!(
            "tag: noindex }}\n  - {{ paths: '{wider}', tag: noai }}\n  - {{ paths: '{narrower}', tag: noai"
        ));
        assert_eq!(found.len(), usize::from(within), "{wider}, {narrower}: {found:?}");
    }
}

/// Rules are held against each other as long as there is something left of what that may take.
#[test]
fn comparisons_end_where_they_are_used_up() {
    let rules = |paths: usize| {
        let list = (0..paths).map(|path| format!("'/{path}/*x'")).collect::<Vec<_>>().join(", ");
        let rule = format!("  - {{ paths: [{list}], tag: noai }}\n");
        let text = format!("robots: {{ origin: replace }}\nindexing:\n{}", rule.repeat(200));
        let source = Source { name: "shop.yaml".into(), text: text.as_str().into() };
        read("shop", &source).0.expect("a policy").indexing
    };
    for (paths, all) in [(1, true), (100, false)] {
        let (rules, mut left, mut found) =
            (rules(paths), super::super::redundant_rules::COMPARISONS, Diagnostics::default());
        super::super::redundant_rules::lint(&rules, &mut left, &mut found);
        assert_eq!((found.items.len() == 199, left > 0), (all, all), "{paths}: {} found", found.items.len());
    }
}
