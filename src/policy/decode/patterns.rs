//! [`patterns`] decodes lists of path patterns, for all sections of a policy. A path pattern has
//! the form of Allow and Disallow values: a prefix, in which `*` stands for any characters and a
//! last `$` for the end. [`check_pattern`] checks one pattern.

use crate::policy::regular_expression::{PATHS, is_regular_expression};
use crate::yaml::{Decoder, Diagnostic, Located, Reader};

/// The most octets of a pattern: crawlers are sure to read so many.
pub const MAX_PATTERN: usize = 2_000;

/// Decodes patterns of Allow and Disallow lines, and of conditions on paths: one, or a list. Those
/// that `check_pattern` does not accept are left out.
pub fn patterns(node: Reader<'_>) -> Vec<Located<String>> {
    node.checked("a list of paths", check_pattern)
}

/// Whether a text can stand behind Allow and Disallow: it begins with `/` or `*`, and has at most
/// 2,000 bytes and no control characters. Otherwise adds an error; for an empty text only a
/// warning.
pub fn check_pattern(decoder: &Decoder, pattern: &Located<String>) -> bool {
    let text = pattern.as_str();
    let span = pattern.span;
    if text.is_empty() {
        decoder.push(
            Diagnostic::warning("empty-pattern", span, "an empty path matches nothing")
                .help("remove it; `/` is the whole site"),
        );
    } else if !text.starts_with(['/', '*']) {
        let (message, help) = if let Some((_, rest)) = text.split_once("://") {
            let path = rest.find('/').map_or("/", |slash| &rest[slash..]);
            (
                format!("`{text}` is a URL, not a path"),
                format!("write `{path}`"),
            )
        } else {
            (
                format!("`{text}` matches nothing: a path begins with `/` or `*`"),
                if text.starts_with('^') || is_regular_expression(text) {
                    format!("paths are no regular expressions: {PATHS}")
                } else {
                    format!("write `/{text}` or `*{text}`")
                },
            )
        };
        decoder.error_with_help("bad-path", span, message, help);
    } else if text.chars().any(char::is_control) {
        decoder.error(
            "bad-path",
            span,
            "a path holds no line break and no control character",
        );
    } else if text.len() > MAX_PATTERN {
        decoder.error(
            "bad-path",
            span,
            "this path is longer than 2000 bytes, more than crawlers are sure to read",
        );
    } else {
        return true;
    }
    false
}
