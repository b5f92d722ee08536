//! [`render`] writes a [`Document`] as text: UTF-8, LF, no byte order mark. Equal documents give equal text.

use super::file::has_its_own_place;
use super::{Document, Extension, Group};
use std::fmt::Write;
use std::time::Duration;

/// Writes the document. Each group gets an explicit rule: without one, weak parsers join it to the next group.
///
/// A group without rules gets `Allow: /`. An empty `Disallow:` would say the same, but parsers that skip lines without
/// a value would still join the group to the next one, and its crawlers would be bound by foreign rules.
///
/// Text cannot leave its line: in comments, agents and sitemaps control characters and line separators are replaced.
/// A group with no agent left is not written, or its rules would join the group above.
pub fn render(document: &Document) -> String {
    let mut out = String::new();
    write_comments(&mut out, &document.comments);
    // Before all groups: a `License` below a User-agent line is for that agent alone (RSL 1.0), and a blank line ends
    // no group (RFC 9309 section 2.1).
    let extensions: Vec<(String, String)> = document.extensions.iter().filter_map(extension).collect();
    if !extensions.is_empty() {
        begin_block(&mut out);
    }
    for (key, value) in extensions {
        write_line(&mut out, format_args!("{key}: {value}"));
    }
    for group in &document.groups {
        write_group(&mut out, group);
    }
    let sitemaps = document.sitemaps.iter().map(|url| sitemap(url)).filter(|url| !url.is_empty());
    for (place, url) in sitemaps.enumerate() {
        if place == 0 {
            begin_block(&mut out);
        }
        write_line(&mut out, format_args!("Sitemap: {url}"));
    }
    out
}

fn write_group(out: &mut String, group: &Group) {
    let agents: Vec<String> = group.agents.iter().map(|name| in_line(name)).filter(|name| !name.is_empty()).collect();
    if agents.is_empty() {
        return;
    }
    begin_block(out);
    write_comments(out, &group.comments);
    for agent in agents {
        write_line(out, format_args!("User-agent: {agent}"));
    }
    if group.rules.is_empty() {
        out.push_str("Allow: /\n");
    }
    for rule in &group.rules {
        let key = if rule.allow { "Allow:" } else { "Disallow:" };
        let blank = if rule.pattern.is_empty() { "" } else { " " };
        write_line(out, format_args!("{key}{blank}{}", rule.pattern.as_str()));
    }
    // After the rules: some parsers take it for the end of a list of agents, some drop rules that follow it.
    if let Some(delay) = group.crawl_delay {
        write_line(out, format_args!("Crawl-delay: {}", seconds(delay)));
    }
    for (key, value) in group.extensions.iter().filter_map(extension) {
        write_line(out, format_args!("{key}: {value}"));
    }
}

fn begin_block(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

fn write_line(out: &mut String, line: std::fmt::Arguments<'_>) {
    out.write_fmt(line).expect("writing to a String does not fail");
    out.push('\n');
}

fn write_comments(out: &mut String, comments: &[String]) {
    for line in comments.iter().flat_map(|comment| comment.split('\n')) {
        let text: String = line.chars().map(|c| if breaks_lines(c) { ' ' } else { c }).collect();
        let text = text.trim_end();
        write_line(out, format_args!("#{}{text}", if text.is_empty() { "" } else { " " }));
    }
}

/// Controls, and what readers that split by Unicode (Python's `splitlines`) take for the end of a line.
fn breaks_lines(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Text that stays in its line and begins no comment. What cannot be written becomes `_`: leaving it out, or cutting a
/// token there, might name another crawler.
fn in_line(text: &str) -> String {
    text.trim().chars().map(|c| if breaks_lines(c) || c == '#' { '_' } else { c }).collect()
}

/// An extension as a line that parsers do not read as a rule. `None` when its key is empty, or belongs to a field of a
/// document and would change the verdicts there.
fn extension(extension: &Extension) -> Option<(String, String)> {
    let key = in_line(&extension.key).replace(':', "_");
    (!key.is_empty() && !has_its_own_place(&key)).then(|| (key, in_line(&extension.value)))
}

/// A URL that stays in its line: blanks and line breaks are percent-encoded; a fragment, which names no other file and
/// would be read as a comment, is left out.
fn sitemap(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    let (url, _fragment) = url.split_once('#').unwrap_or((url, ""));
    for c in url.trim().chars() {
        if breaks_lines(c) || c == ' ' {
            for octet in c.encode_utf8(&mut [0; 4]).bytes() {
                write!(out, "%{octet:02X}").expect("writing to a String does not fail");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Seconds with as many decimals as are needed: `10`, `0.5`.
pub fn seconds(delay: Duration) -> String {
    let whole = format!("{}.{:09}", delay.as_secs(), delay.subsec_nanos());
    whole.trim_end_matches('0').trim_end_matches('.').to_owned()
}
