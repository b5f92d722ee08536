//! Tests of which pairs of X-Robots-Tag directives the lint reports as contradictions, and which
//! not.

use crate::policy::lint::tests::compile_and_lint;
use crate::yaml::Diagnostic;

/// The findings about contradictory directives of a rule.
fn lint_tag(tag: &str) -> Vec<Diagnostic> {
    let text = format!("robots: {{ origin: replace }}\nindexing:\n  - {{ paths: /a, {tag} }}\n");
    let (_, found) = compile_and_lint(&text);
    found
        .items
        .into_iter()
        .filter(|item| item.id == "contradictory-tag")
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairKind {
    /// The first of the two has no effect.
    Opposite,
    Fine,
}
use PairKind::{Fine, Opposite};

const PAIRS: &[(&str, &str, PairKind)] = &[
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
    (
        "max-image-preview: large",
        "max-image-preview: none",
        Opposite,
    ),
    (
        "max-image-preview: standard",
        "max-image-preview: none",
        Opposite,
    ),
    ("max-video-preview: -1", "max-video-preview: 0", Opposite),
    (
        "unavailable_after: 2099-01-02",
        "unavailable_after: 2099-01-01",
        Opposite,
    ),
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

#[test]
fn overridden_directives_are_reported() {
    for &(one, other, are) in PAIRS {
        let ways = [
            format!("tag: ['{one}', '{other}']"),
            format!("tag: ['{other}', '{one}']"),
            format!("tag: '{other}, {one}'"),
            format!("tag: '{other}', tags: {{ '*': '{one}' }}"),
        ];
        for way in ways {
            let found = lint_tag(&way);
            let messages: Vec<_> = found
                .iter()
                .map(|item| (item.id, item.message.as_str()))
                .collect();
            match are {
                Fine => assert!(messages.is_empty(), "{way}: {messages:?}"),
                Opposite => {
                    let value = |text: &str| {
                        text.replace("2099-01-01", "2099-01-01T00:00:00Z")
                            .replace("2099-01-02", "2099-01-02T00:00:00Z")
                    };
                    let [("contradictory-tag", message)] = messages[..] else {
                        panic!("{way}: {messages:?}");
                    };
                    for word in [one, other] {
                        assert!(
                            message.contains(&format!("\"{}\"", value(word))),
                            "{message}"
                        );
                    }
                    let help = found[0].help.as_deref().unwrap_or_default();
                    assert!(help.contains(&format!("\"{}\"", value(one))), "{help}");
                }
            }
        }
    }
}

/// Combinations that people, and extensions of shops and blogs, write.
#[test]
fn common_combinations_are_not_reported() {
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
        assert_eq!(lint_tag(&format!("tag: '{tag}'")), [], "{tag}");
        let list = tag
            .replace("Fri, ", "")
            .split(", ")
            .map(|word| format!("'{word}'"))
            .collect::<Vec<_>>()
            .join(", ");
        assert_eq!(lint_tag(&format!("tag: [{list}]")), [], "{list}");
    }
}
