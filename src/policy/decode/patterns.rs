//! [`patterns`] decodes lists of path patterns, for all sections of a policy. A path pattern is
//! written like a value of Allow and Disallow: as the beginning of the URLs that it matches. In a
//! pattern, `*` stands for any characters, and a last `$` for the end of the URL.

use crate::policy::regular_expression::path_help;
use crate::yaml::{Decoder, Diagnostic, Located, NodeReader};

/// The most bytes of a pattern. Every crawler reads so many.
pub const MAX_PATTERN: usize = 2_000;

/// Decodes one pattern, or a list.
pub fn patterns(node: NodeReader<'_>) -> Vec<Located<String>> {
    node.texts_where("a list of paths", check_pattern)
}

/// Whether a text is a valid path pattern; otherwise adds an error, or a warning for an empty text.
pub fn check_pattern(decoder: &Decoder, pattern: &Located<String>) -> bool {
    let text = pattern.as_str();
    let span = pattern.span;
    if text.is_empty() {
        decoder.push(
            Diagnostic::warning("empty-pattern", span, "an empty path matches nothing")
                .help("remove it, or write \"/\" for the whole site"),
        );
    } else if !text.starts_with(['/', '*']) {
        decoder.error_with_help(
            "bad-path",
            span,
            format!("\"{text}\" matches nothing: a path begins with \"/\" or \"*\""),
            path_help(text),
        );
    } else if text.chars().any(char::is_control) {
        decoder.error(
            "bad-path",
            span,
            "a path cannot contain a line break or a control character",
        );
    } else if text.len() > MAX_PATTERN {
        decoder.error(
            "bad-path",
            span,
            "this path is longer than 2,000 bytes; crawlers may not read all of it",
        );
    } else {
        return true;
    }
    false
}
