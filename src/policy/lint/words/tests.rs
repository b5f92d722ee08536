//! Which pairs of directives contradict each other, and which are fine.

use crate::policy::lint::tests::linted;
use crate::yaml::Diagnostic;

/// What is said of the words of a rule.
fn said(tag: &str) -> Vec<Diagnostic> {
    let text = format!("robots: {{ origin: replace }}\nindexing:\n  - {{ paths: /a, {tag} }}\n");
    let (_, found) = linted(&text);
    found.items.into_iter().filter(|item| item.id == "contradictory-tag").collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Are {
    /// Of one thing the opposite is said: the first of the two has no effect.
    Opposite,
    Fine,
}
use Are::{Fine, Opposite};

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
        ("noindex", "none", Fine),
        ("nofollow", "none", Fine),
        ("index", "all", Fine),
        ("follow", "all", Fine),
        ("archive", "all", Fine),
        ("max-snippet: 5", "nosnippet", Fine),
        ("max-snippet: 0", "nosnippet", Fine),
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
            }
        }
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

/// What one crawler is told beside everybody: the same, less, or more.
#[test]
fn what_one_is_told_beside_everybody_is_told_as_it_is() {
    // Nothing is claimed of crawlers that do not read both.
    let less = Some("goes by what everybody is told, too");
    for (all, one, expected) in [
        ("noindex", "noindex", None),
        ("'noindex, nofollow'", "noindex", None),
        ("none", "noindex", None),
        ("'max-snippet: 50'", "'max-snippet: 50'", None),
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
            (Some(words), [only]) => assert!(only.message.contains(words), "{all}, {one}: {only:?}"),
            _ => panic!("{all}, {one}: {found:?}"),
        }
    }
}

/// A rule within another's reach: what it loosens is told by the words that it has.
#[test]
fn a_rule_that_loosens_another_is_told_by_its_words() {
    let said = |wider: &str, one: &str| {
        let found = said(&format!("tag: {wider} }}\n  - {{ paths: /a/b, tag: {one}"));
        found.into_iter().map(|item| item.message).collect::<Vec<_>>()
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
    let not = "take them out of it with `not` and say the rest of it again for them";
    let others = "name the others in the other rule";
    for (wider, one, has, has_not) in [
        ("tag: noindex", "paths: /a/b, tag: index", not, others),
        ("tag: 'noindex, noai'", "paths: /a/b, tags: { googlebot: index }", others, not),
        ("tags: { googlebot: noindex }", "paths: /a/b, tags: { googlebot: index }", not, others),
        ("tag: noindex", "paths: /a, tag: all", "change the other rule", others),
    ] {
        let found = said(&format!("{wider} }}\n  - {{ {one}"));
        let [only] = &found[..] else { panic!("{wider}, {one}: {found:?}") };
        let help = only.help.as_deref().unwrap_or_default();
        assert!(help.contains(has) && !help.contains(has_not), "{wider}, {one}: {help}");
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
            "tag: noarchive }}\n  - {{ paths: '{wider}', tag: noindex }}\n  - {{ paths: '{narrower}', tag: index"
        ));
        assert_eq!(found.len(), usize::from(within), "{wider}, {narrower}: {found:?}");
    }
}

/// Rules are held against each other as long as there is something left of what that may take.
#[test]
fn comparisons_end_where_they_are_used_up() {
    for (paths, all) in [(1, true), (100, false)] {
        let list = (0..paths).map(|path| format!("'/{path}/*x'")).collect::<Vec<_>>().join(", ");
        let narrower = format!("  - {{ paths: [{list}], tag: index }}\n").repeat(200);
        let found = said(&format!(
            "tag: noarchive }}\n  - {{ paths: [{list}], tag: noindex }}\n{narrower}  - {{ paths: /z, tag: noai"
        ));
        assert_eq!(found.len() == 200, all, "{paths}: {} found", found.len());
    }
}
