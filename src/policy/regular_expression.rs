//! Regular expressions in a policy. [`compile_path_regex`] compiles the field `path_regex`, and
//! [`regex_mistake`] explains why a text is not valid. [`looks_like_regex`] recognises a regular
//! expression in a field that takes only path patterns.

use regex_syntax::ast;

/// The size limit of a compiled expression: thousands of sites share one process.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Compiles an expression of `path_regex`.
///
/// # Errors
/// When the text is not a regular expression, or needs more than 1 MiB when compiled.
pub fn compile_path_regex(text: &str) -> Result<regex::bytes::Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(text)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build()
}

/// What is wrong with an expression of `path_regex`, and what to write instead; `None` for a valid
/// one.
pub fn regex_mistake(text: &str) -> Option<(String, String)> {
    use ast::ErrorKind::{UnsupportedBackreference, UnsupportedLookAround};
    let error = compile_path_regex(text).err()?;
    if let regex::Error::CompiledTooBig(most) = error {
        return Some((
            format!(
                "this regular expression is too large: compiled, it needs more than {} KiB",
                most / 1024
            ),
            "use smaller numbers in repetitions such as \"{1000}\", or use \"paths\"".into(),
        ));
    }
    let (why, help) = match ast::parse::Parser::new().parse(text) {
        Err(error) => {
            let help = match error.kind() {
                UnsupportedLookAround => {
                    "to exclude paths, write them under \"not\": \"not: { path_regex: ... }\""
                }
                UnsupportedBackreference => "write the repeated part once more",
                _ => "write \"\\\" before each special character that is meant literally",
            };
            (
                format!(
                    "at character {}, {}",
                    error.span().start.column,
                    error.kind()
                ),
                help,
            )
        }
        Ok(_) => (
            error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
            "write a simpler expression, with classes such as \"[a-z]\"",
        ),
    };
    Some((format!("not a regular expression: {why}"), help.into()))
}

/// The help for a regular expression where a path pattern belongs.
pub const PATH_HELP: &str = "a path begins with \"/\"; \"*\" stands for any characters, and \"$\" \
                             for the end of the URL: write one rule for each path";

/// The help for a path pattern that begins with neither `/` nor `*`.
pub fn path_help(pattern: &str) -> String {
    if pattern.starts_with('^') || looks_like_regex(pattern) {
        return format!("robots.txt has no regular expressions: {PATH_HELP}");
    }
    match pattern.split_once("://") {
        Some((_, url)) => {
            format!(
                "write \"{}\" in the rules of that host",
                url.find('/').map_or("/", |slash| &url[slash..])
            )
        }
        None => format!("write \"/{pattern}\" or \"*{pattern}\""),
    }
}

/// Whether a path pattern is written as a regular expression: `/.*\.php`, `/(en|de)/`.
pub fn looks_like_regex(pattern: &str) -> bool {
    let has_alternatives = pattern.split_once('(').is_some_and(|(_, rest)| {
        rest.split_once('|')
            .is_some_and(|(_, rest)| rest.contains(')'))
    });
    has_alternatives
        || pattern.starts_with("/^")
        || [
            "(.*)", ".+", "\\.", "\\/", "\\?", "\\d", "\\w", "[0-9", "[a-z",
        ]
        .iter()
        .any(|piece| pattern.contains(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistake_has_the_column_and_a_help() {
        for (text, column, help) in [
            ("*.pdf", 1, r#""\""#),
            ("/(a|+b)", 5, r#""\""#),
            ("/a(b", 3, r#""\""#),
            ("/a)b", 3, r#""\""#),
            ("/[a-z", 2, r#""\""#),
            ("/(?!private)", 2, "\"not: { path_regex: ... }\""),
            (r"/(a)\1", 5, "once more"),
        ] {
            let found = regex_mistake(text).unwrap_or_else(|| panic!("{text}"));
            assert!(
                found.0.contains(&format!("at character {column}, ")),
                "{text}: {found:?}"
            );
            assert!(found.1.contains(help), "{text}: {found:?}");
        }
        assert_eq!(regex_mistake("/a/+?"), None);
        let large = regex_mistake("/(a{1000}){1000}").expect("too large");
        assert!(
            large.0.contains("1024 KiB") && large.1.contains("\"paths\""),
            "{large:?}"
        );
    }
}
