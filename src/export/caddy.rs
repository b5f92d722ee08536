//! [`CaddySnippet`] writes the configuration with which Caddy enforces a policy without crawlgate
//! (`templates/caddy.conf`). The site's Caddyfile imports it.

use super::CHALLENGE_PATH;
use super::regex::{alternatives_regex, path_regex, path_steps};
use super::rules::{ExportedPolicy, TagRule};
use crate::printable::join;
use askama::Template;

#[derive(Template)]
#[template(path = "caddy.conf")]
pub struct CaddySnippet<'r> {
    pub rules: &'r ExportedPolicy,
    pub directory: &'r str,
}

/// The path extensions for a media type, as alternatives of a regular expression: Caddy does not know
/// the type before the response.
fn media_extensions(media: &str) -> Option<&'static str> {
    Some(match media {
        "application/pdf" => "pdf",
        "application/msword" => "doc",
        "application/json" => "json",
        "application/zip" => "zip",
        "text/plain" => "txt",
        "text/csv" => "csv",
        "image/*" => "avif|bmp|gif|ico|jpeg|jpg|jxl|png|svg|tif|tiff|webp",
        "video/*" => "avi|m4v|mkv|mov|mp4|mpeg|ogv|webm",
        "audio/*" => "aac|flac|m4a|mp3|ogg|wav",
        _ => return None,
    })
}

/// The extensions of all these types. Empty if none has one.
fn extension_regex(types: &[String]) -> String {
    join(
        types.iter().filter_map(|media| media_extensions(media)),
        "|",
    )
}

/// One regular expression for the paths that match any of the patterns.
fn any_path_regex(patterns: &[String]) -> String {
    let patterns: Vec<_> = patterns.iter().map(|pattern| path_steps(pattern)).collect();
    alternatives_regex(&patterns)
}

/// Whether a rule has a condition on the status, which Caddy does not know before the response.
fn asks_for_status(tag: &TagRule) -> bool {
    tag.conditions()
        .any(|condition| !condition.status.is_empty())
}

/// Whether Caddy has a matcher for each condition of a rule.
fn is_expressible(tag: &TagRule) -> bool {
    let mut types = tag.conditions().map(|condition| &condition.types);
    !asks_for_status(tag)
        && types.all(|types| types.is_empty() || !extension_regex(types).is_empty())
}

/// Quotes a word of a Caddyfile. Backticks need no escapes.
fn quote_word(text: &str) -> String {
    if text.contains('`') {
        format!("\"{}\"", super::escape_quoted(text))
    } else {
        format!("`{text}`")
    }
}
