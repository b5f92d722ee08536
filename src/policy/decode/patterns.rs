//! Paths of rules, as every section of a policy writes them.

use crate::policy::regular_expression::{is_regular_expression, paths_for};
use crate::yaml::{Decoder, Diagnostic, Located, Node};

/// Octets of a path that crawlers are sure to read.
pub const MAX_PATTERN: usize = 2_000;

/// Patterns of Allow and Disallow lines, and of conditions on paths.
pub fn patterns(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    let written = decoder.texts(node, "a list of paths");
    written.into_iter().filter(|pattern| check_pattern(pattern, decoder)).collect()
}

/// Whether a text can stand behind Allow and Disallow; complains otherwise.
pub fn check_pattern(pattern: &Located<String>, decoder: &mut Decoder<'_>) -> bool {
    let text = pattern.value.as_str();
    if text.is_empty() {
        let warning = Diagnostic::warning("empty-pattern", pattern.span, "an empty path matches nothing")
            .help("remove it; `/` is the whole site");
        decoder.diagnostics.push(warning);
        return false;
    }
    if text.contains("://") && !text.starts_with(['/', '*']) {
        let path =
            text.split_once("://").and_then(|(_, rest)| rest.find('/').map(|slash| &rest[slash..])).unwrap_or("/");
        decoder.error("bad-path", pattern.span, format!("`{text}` is a URL, not a path")).help =
            Some(format!("write `{path}`"));
        return false;
    }
    if !text.starts_with(['/', '*']) {
        let help = match text.starts_with('^') || is_regular_expression(text) {
            true => format!(
                "paths are no regular expressions, but prefixes with `*` and, at the end, `$`: {}",
                paths_for(text)
            ),
            false => format!("write `/{text}` or `*{text}`"),
        };
        decoder
            .error("bad-path", pattern.span, format!("`{text}` matches nothing: a path begins with `/` or `*`"))
            .help = Some(help);
        return false;
    }
    if text.chars().any(char::is_control) {
        decoder.error("bad-path", pattern.span, "a path holds no line break and no control character");
        return false;
    }
    if text.len() > MAX_PATTERN {
        decoder.error(
            "bad-path",
            pattern.span,
            "this path is longer than 2000 bytes, more than crawlers are sure to read",
        );
        return false;
    }
    true
}
