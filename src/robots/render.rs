//! [`render_robots_txt`] writes a [`RobotsDocument`] as the text of a robots.txt: UTF-8, LF, no
//! byte order mark. Equal documents give equal text.

use super::file::is_document_field;
use super::{ExtensionLine, RobotsDocument, RuleGroup};
use std::time::Duration;

/// Renders a document.
///
/// A group without rules gets `Allow: /`: some parsers would join it to the next group, even with an
/// empty `Disallow:`, because they skip lines without a value.
///
/// No text can break its line: control characters and line separators are replaced. A group without
/// agents is not written, because its rules would join the group above.
pub fn render_robots_txt(document: &RobotsDocument) -> String {
    // Before all groups: a `License` below a User-agent line is for that agent alone (RSL 1.0), and
    // a blank line ends no group (RFC 9309 section 2.1).
    let first = [
        render_comments(&document.comments),
        document
            .extensions
            .iter()
            .filter_map(render_extension)
            .collect(),
    ];
    let sitemaps: String = document
        .sitemaps
        .iter()
        .map(|url| escape_sitemap_url(url))
        .filter(|url| !url.is_empty())
        .map(|url| format!("Sitemap: {url}\n"))
        .collect();
    let blocks = first
        .into_iter()
        .chain(document.groups.iter().map(render_group))
        .chain([sitemaps]);
    blocks
        .filter(|block| !block.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Renders a group: comments, agents, rules (`Allow: /` if there are none), Crawl-delay, extensions.
/// Empty for a group without agents.
fn render_group(group: &RuleGroup) -> String {
    let agents: String = group
        .agents
        .iter()
        .map(|name| to_single_line(name))
        .filter(|name| !name.is_empty())
        .map(|name| format!("User-agent: {name}\n"))
        .collect();
    if agents.is_empty() {
        return agents;
    }
    let mut out = render_comments(&group.comments) + &agents;
    if group.rules.is_empty() {
        out += "Allow: /\n";
    }
    out.extend(group.rules.iter().map(|rule| format!("{rule}\n")));
    // After the rules: for some parsers it ends the list of agents, and some drop rules behind it.
    out.extend(
        group
            .crawl_delay
            .map(|delay| format!("Crawl-delay: {}\n", format_seconds(delay))),
    );
    out.extend(group.extensions.iter().filter_map(render_extension));
    out
}

/// Renders each line of the comments behind `# `, with blanks in place of line breaks.
fn render_comments(comments: &[String]) -> String {
    comments
        .iter()
        .flat_map(|comment| comment.split('\n'))
        .map(|line| {
            let text: String = line
                .chars()
                .map(|c| if is_control_or_line_break(c) { ' ' } else { c })
                .collect();
            format!("# {text}").trim_end().to_owned() + "\n"
        })
        .collect()
}

/// Whether a character is a control, or a line break for parsers that split lines by Unicode
/// (Python's `splitlines`).
fn is_control_or_line_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Text that neither breaks its line nor begins a comment. A character that would becomes `_`: to
/// drop it might name another crawler.
fn to_single_line(text: &str) -> String {
    text.trim_matches(|c: char| c.is_ascii_whitespace())
        .chars()
        .map(|c| {
            if is_control_or_line_break(c) || c == '#' {
                '_'
            } else {
                c
            }
        })
        .collect()
}

/// An extension as a line. `None` for an empty key, and for one that parsers read as a rule, an
/// agent, a sitemap or a delay.
fn render_extension(extension: &ExtensionLine) -> Option<String> {
    let key = to_single_line(&extension.key).replace(':', "_");
    (!key.is_empty() && !is_document_field(&key))
        .then(|| format!("{key}: {}\n", to_single_line(&extension.value)))
}

/// A URL for a Sitemap line: blanks and line breaks are percent-encoded. A fragment is dropped: it
/// would be read as a comment.
fn escape_sitemap_url(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    let (url, _fragment) = url.split_once('#').unwrap_or((url, ""));
    for c in url.trim().chars() {
        if is_control_or_line_break(c) || c == ' ' {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                out += &format!("%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Seconds with only the decimals that are needed: `10`, `0.5`.
pub fn format_seconds(delay: Duration) -> String {
    let whole = format!("{}.{:09}", delay.as_secs(), delay.subsec_nanos());
    whole.trim_end_matches('0').trim_end_matches('.').to_owned()
}
