//! Tests of the YAML parser: positions, aliases, limits, error messages and durations.

use super::source::DEFAULTS_MARK;
use super::*;
use proptest::prelude::*;

fn source_file(text: &str) -> SourceFile {
    SourceFile {
        name: "policies/x.yaml".into(),
        text: text.into(),
    }
}

fn parse(text: &str) -> (Option<YamlDocument>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let document = YamlDocument::parse(&source_file(text), &mut diagnostics);
    (document, diagnostics)
}

fn parse_root(text: &str) -> Node {
    let (document, diagnostics) = parse(text);
    assert!(diagnostics.items.is_empty(), "{diagnostics:?}");
    document.and_then(|document| document.root).expect("a root")
}

fn entry_value<'n>(node: &'n Node, name: &str) -> &'n Node {
    let NodeValue::Mapping(entries) = &node.value else {
        panic!("not a map: {node:?}")
    };
    &entries
        .iter()
        .find(|(key, _)| matches!(&key.value, NodeValue::Scalar { text, .. } if text == name))
        .expect(name)
        .1
}

fn text_at(text: &str, span: SourceSpan) -> &str {
    &text[span.start..span.end]
}

#[test]
fn spans_are_bytes_and_columns_are_characters() {
    let text = "# größe\nschlüssel: [ä, bb]\nx: \"ü\"\r\nlast: 1\r\n";
    let node = parse_root(text);
    let NodeValue::Sequence(items) = &entry_value(&node, "schlüssel").value else {
        panic!("a list")
    };
    assert_eq!(text_at(text, items[1].span), "bb");
    assert_eq!((items[1].span.line, items[1].span.column), (2, 16));
    assert_eq!(text_at(text, entry_value(&node, "x").span), "\"ü\"");
    assert_eq!(text_at(text, entry_value(&node, "last").span), "1");
    assert_eq!(entry_value(&node, "last").span.line, 4);
}

#[test]
fn byte_order_mark_does_not_move_places() {
    let text = "\u{feff}a: b\n";
    assert_eq!(text_at(text, entry_value(&parse_root(text), "a").span), "b");
}

#[test]
fn aliases_are_copies_and_merge_keys_give_way_to_explicit_ones() {
    let node = parse_root("base: &base { x: 1, y: 2 }\nuse: { <<: *base, y: 3 }\n");
    let used = entry_value(&node, "use");
    assert!(matches!(&entry_value(used, "x").value, NodeValue::Scalar { text, .. } if text == "1"));
    assert!(matches!(&entry_value(used, "y").value, NodeValue::Scalar { text, .. } if text == "3"));
}

#[test]
fn alias_bomb_is_rejected() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let previous = level - 1;
        text.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            vec![format!("*a{previous}"); 10].join(", ")
        ));
    }
    let (document, diagnostics) = parse(&text);
    assert!(document.is_none());
    assert!(
        matches!(diagnostics.items[0].id, "too-large" | "too-deep"),
        "{diagnostics:?}"
    );
}

#[test]
fn deep_nesting_and_self_reference_are_rejected() {
    assert_eq!(
        parse(&"[".repeat(10_000)).1.items[0].severity,
        Severity::Error
    );
    assert!(parse("a: &a [*a]\n").1.has_errors());
}

#[test]
fn known_yaml_traps_have_own_ids() {
    assert_eq!(parse("paths: [*.pdf]\n").1.items[0].id, "unquoted-star");
    assert_eq!(parse("agents: *\n").1.items[0].id, "unquoted-star");
    let tab = parse("a:\n\tb: 1\n").1;
    assert!(
        tab.items[0]
            .help
            .as_deref()
            .is_some_and(|help| help.contains("tab")),
        "{tab:?}"
    );
    let colon = parse("a: b: c\n").1;
    assert!(colon.has_errors());
    assert_eq!(
        parse("a: 1\n---\nb: 2\n").1.items[0].id,
        "several-documents"
    );
}

#[test]
fn empty_file_has_no_root() {
    for text in ["", "# only a comment\n", "---\n"] {
        let (document, diagnostics) = parse(text);
        assert!(diagnostics.items.is_empty());
        assert!(document.expect("a document").root.is_none());
    }
}

#[test]
fn defaults_add_fields_to_their_policy_alone() {
    let parse_with = |own: &str, defaults: &str| {
        parse(&format!("{own}\n{DEFAULTS_MARK}defaults.yaml\n{defaults}"))
    };
    for defaults in ["b: 2\n", "---\nb: 2\n"] {
        let (document, diagnostics) = parse_with("a: 1", defaults);
        assert!(diagnostics.items.is_empty(), "{diagnostics:?}");
        let root = document.and_then(|document| document.root).expect("a root");
        entry_value(&root, "a");
        entry_value(&root, "b");
        let (document, diagnostics) = parse_with("# only a comment", defaults);
        assert!(diagnostics.items.is_empty(), "{diagnostics:?}");
        assert!(document.expect("a document").root.is_none());
    }
    for (own, defaults, id) in [
        ("a: 1\n---\nb: 2", "c: 3\n", "several-documents"),
        ("a: 1", "c: 3\n---\nd: 4\n", "several-documents"),
        ("a: 1", "--- # the defaults: x\n", "several-documents"),
        ("a: 1\n--- # the defaults: x", "c: 3\n", "several-documents"),
        ("a: 1", "- b\n", "wrong-type"),
        ("a: [x, y", "c: 3\n", "yaml-syntax"),
    ] {
        let finding = &parse_with(own, defaults).1.items[0];
        assert_eq!(finding.id, id, "{own} {defaults}");
        let line = finding.span.expect("a span").line;
        assert_eq!(line == 1, id == "yaml-syntax", "{own} {defaults}");
    }
    let merged = parse_with("\"a\": { b: 1 }", "a: { b: 2, c: 3, c: 4 }\n").0;
    let root = merged.and_then(|document| document.root).expect("a root");
    let NodeValue::Mapping(entries) = &root.value else {
        panic!("a map")
    };
    let NodeValue::Mapping(inner) = &entries[0].1.value else {
        panic!("a map")
    };
    assert_eq!((entries.len(), inner.len()), (1, 3), "repeated keys stay");
}

#[test]
fn diagnostic_is_rendered_like_rustc() {
    let text = "robots:\n  gruops: []\n";
    let span = SourceSpan {
        start: 10,
        end: 16,
        line: 2,
        column: 3,
    };
    let shown = Diagnostic::error("unknown-field", span, "there is no field \"gruops\" here")
        .help("did you mean \"groups\"?")
        .render(&source_file(text), false);
    assert!(shown.starts_with("error[unknown-field]: "), "{shown}");
    assert!(shown.contains("policies/x.yaml:2:3"), "{shown}");
    assert!(shown.contains("gruops: []"), "{shown}");
    assert!(shown.contains("^^^^^^"), "{shown}");
    assert!(shown.contains("\"groups\""), "{shown}");
}

#[test]
fn escape_sequences_of_a_file_do_not_reach_the_terminal() {
    let text = "a: \"\x1b[31mred\u{9b}\"\n";
    let span = SourceSpan {
        start: 0,
        end: 1,
        line: 1,
        column: 1,
    };
    let shown = Diagnostic::error("bad-value", span, "\x1b[2J")
        .related(span, "\x1b[1m")
        .render(&source_file(text), false);
    assert!(
        !shown.contains('\x1b') && !shown.contains('\u{9b}'),
        "{shown:?}"
    );
}

#[test]
fn every_mistake_of_a_map_is_reported() {
    let text = "one: 1\none: 2\nthre: 3\nfour: maybe\n";
    let node = parse_root(text);
    let decoder = Decoder::default();
    decoder.reader(&node).decode_map("a map", |fields| {
        fields.field("one");
        fields.field("three");
        fields.get("four", NodeReader::boolean);
    });
    let diagnostics = decoder.diagnostics.into_inner();
    let ids: Vec<_> = diagnostics
        .items
        .iter()
        .map(|item| (item.id, item.span.map(|span| span.line)))
        .collect();
    assert_eq!(
        ids,
        [
            ("duplicate-key", Some(2)),
            ("bad-value", Some(4)),
            ("unknown-field", Some(3))
        ]
    );
    let help = diagnostics.items[2].help.as_deref();
    assert!(help.is_some_and(|help| help.contains("\"three\"")));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC*|[a-z:{}\\[\\], \n\t&*!|>'\"#%@`-]{0,80}") {
        let (document, diagnostics) = parse(&text);
        prop_assert_eq!(document.is_none(), diagnostics.has_errors());
        for item in &diagnostics.items {
            item.render(&source_file(&text), true);
        }
    }
}

#[test]
fn every_word_for_yes_and_no_is_a_boolean() {
    let decoder = Decoder::default();
    for (value, text) in [(true, "[yes, Y, true, ON]"), (false, "[No, n, false, off]")] {
        let node = parse_root(text);
        let words = decoder.reader(&node).one_or_many("words");
        assert!(
            words
                .map(NodeReader::boolean)
                .all(|read| read == Some(value))
        );
    }
}

/// As in robots.txt files (`Crawl-delay: 1.5`).
#[test]
fn durations_have_fractions() {
    let milliseconds = |text: &str| {
        super::parse_duration(text)
            .ok()
            .map(|duration| duration.as_millis())
    };
    for (text, expected) in [
        ("1.5s", 1_500),
        ("1.5h", 5_400_000),
        ("1.5m 30s", 120_000),
        ("1h0.25s", 3_600_250),
        ("1500ms", 1_500),
        ("2.0ms", 2),
    ] {
        assert_eq!(milliseconds(text), Some(expected), "{text}");
    }
    for text in [
        "0m1",
        "1.5.5s",
        "1,5s",
        "-1.5s",
        "1.5x",
        "99999999999999999.5w",
        "",
        "0",
        "10",
        "0.5",
        "10 ",
        "1h30",
    ] {
        assert_eq!(milliseconds(text), None, "{text}");
    }
}
