//! [`Snippet`] is the configuration by which Caddy itself enforces a policy, without crawlgate. It
//! is imported into the site's Caddyfile (`templates/caddy.conf`).

use super::CHALLENGE;
use super::regex::{path, path_regex, regex};
use super::rules::{Rules, TagRule};
use crate::printable::join;
use askama::Template;

#[derive(Template)]
#[template(path = "caddy.conf")]
pub struct Snippet<'r> {
    pub rules: &'r Rules,
    pub directory: &'r str,
}

/// The extensions of a type that policies name, as alternatives: Caddy does not know the type
/// before the response.
fn extensions(media: &str) -> Option<&'static str> {
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

/// The extensions of all these types, as alternatives of a regular expression. Types without an
/// extension are left out; empty if all are.
fn any_extension(types: &[String]) -> String {
    join(types.iter().filter_map(|media| extensions(media)), "|")
}

/// One regular expression for paths that any of these patterns matches.
fn any_path(patterns: &[String]) -> String {
    let patterns: Vec<_> = patterns.iter().map(|pattern| path(pattern)).collect();
    regex(&patterns)
}

/// Whether a rule asks for the status, which Caddy does not know before the response.
fn asks_for_status(tag: &TagRule) -> bool {
    tag.conditions()
        .any(|condition| !condition.status.is_empty())
}

/// Whether Caddy has a matcher for each condition of a rule.
fn is_possible(tag: &TagRule) -> bool {
    let mut types = tag.conditions().map(|condition| &condition.types);
    !asks_for_status(tag) && types.all(|types| types.is_empty() || !any_extension(types).is_empty())
}

/// A word of a Caddyfile. Between backticks every sign is itself.
fn quoted(text: &str) -> String {
    if text.contains('`') {
        format!("\"{}\"", super::escaped(text))
    } else {
        format!("`{text}`")
    }
}
