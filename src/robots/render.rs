//! [`render`] writes a [`Document`] as text: UTF-8, LF, no byte order mark. Equal documents give
//! equal text.

use super::file::has_its_own_place;
use super::{Document, Extension, Group};
use std::time::Duration;

/// Writes the document. Each group gets an explicit rule: without one, weak parsers join it to the
/// next group.
///
/// A group without rules gets `Allow: /`. An empty `Disallow:` would say the same, but parsers that
/// skip lines without a value would still join the group to the next one, and its crawlers would be
/// bound by foreign rules.
///
/// Text cannot leave its line: in comments, agents and sitemaps control characters and line
/// separators are replaced. A group with no agent left is not written, or its rules would join the
/// group above.
pub fn render(document: &Document) -> String {
    // Before all groups: a `License` below a User-agent line is for that agent alone (RSL 1.0), and
    // a blank line ends no group (RFC 9309 section 2.1).
    let first = [
        comments(&document.comments),
        document.extensions.iter().filter_map(extension).collect(),
    ];
    let sitemaps: String = document
        .sitemaps
        .iter()
        .map(|url| sitemap(url))
        .filter(|url| !url.is_empty())
        .map(|url| format!("Sitemap: {url}\n"))
        .collect();
    let blocks = first
        .into_iter()
        .chain(document.groups.iter().map(group))
        .chain([sitemaps]);
    blocks
        .filter(|block| !block.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Writes a group: comments, agents, rules (`Allow: /` if there are none), Crawl-delay, other
/// lines. Empty for a group without an agent that can be written.
fn group(group: &Group) -> String {
    let agents: String = group
        .agents
        .iter()
        .map(|name| in_line(name))
        .filter(|name| !name.is_empty())
        .map(|name| format!("User-agent: {name}\n"))
        .collect();
    if agents.is_empty() {
        return agents;
    }
    let mut out = comments(&group.comments) + &agents;
    if group.rules.is_empty() {
        out += "Allow: /\n";
    }
    out.extend(group.rules.iter().map(|rule| format!("{rule}\n")));
    // After the rules: some parsers take it for the end of a list of agents, some drop rules that
    // follow it.
    out.extend(
        group
            .crawl_delay
            .map(|delay| format!("Crawl-delay: {}\n", seconds(delay))),
    );
    out.extend(group.extensions.iter().filter_map(extension));
    out
}

/// Writes each line of the comments behind `# `, with blanks in place of characters that could end
/// it.
fn comments(comments: &[String]) -> String {
    comments
        .iter()
        .flat_map(|comment| comment.split('\n'))
        .map(|line| {
            let text: String = line
                .chars()
                .map(|c| if breaks_lines(c) { ' ' } else { c })
                .collect();
            format!("# {text}").trim_end().to_owned() + "\n"
        })
        .collect()
}

/// Controls, and what readers that split by Unicode (Python's `splitlines`) take for the end of a
/// line.
fn breaks_lines(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Text that stays in its line and begins no comment. What cannot be written becomes `_`: leaving
/// it out, or cutting a token there, might name another crawler.
fn in_line(text: &str) -> String {
    text.trim_matches(|c: char| c.is_ascii_whitespace())
        .chars()
        .map(|c| if breaks_lines(c) || c == '#' { '_' } else { c })
        .collect()
}

/// An extension as a line that parsers do not read as a rule. `None` when its key is empty, or
/// belongs to a field of a document and would change the verdicts there.
fn extension(extension: &Extension) -> Option<String> {
    let key = in_line(&extension.key).replace(':', "_");
    (!key.is_empty() && !has_its_own_place(&key))
        .then(|| format!("{key}: {}\n", in_line(&extension.value)))
}

/// A URL that stays in its line: blanks and line breaks are percent-encoded; a fragment, which
/// names no other file and would be read as a comment, is left out.
fn sitemap(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    let (url, _fragment) = url.split_once('#').unwrap_or((url, ""));
    for c in url.trim().chars() {
        if breaks_lines(c) || c == ' ' {
            for octet in c.encode_utf8(&mut [0; 4]).bytes() {
                out += &format!("%{octet:02X}");
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
