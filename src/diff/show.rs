//! Renders the result of `crawlgate diff` ([`Difference`]): [`render_text`] for a terminal,
//! [`render_markdown`] for a pull request. URLs and lines of robots.txt are escaped, because
//! anybody may propose them.

use super::{
    AccessChange, AccessEffect, ComparisonBasis, CrawlerTreatment, Difference, HeaderChange,
    Occurrences, SettingChange, SiteDifference,
};
use crate::numbers::plural;
use crate::printable::{join, printable};
use askama::Template;
use std::collections::BTreeSet;

/// Further crawlers are only counted.
const MAX_NAMED: usize = 6;
/// Further rows of a table are only counted.
const MAX_ROWS: usize = 200;
/// After this much Markdown, rows and sites are only counted: a comment on GitHub holds 65,536
/// characters.
const MAX_COMMENT_BYTES: usize = 50_000;
/// A longer cell is cut.
const MAX_CELL_CHARS: usize = 300;

/// Renders the difference as plain text.
pub fn render_text(difference: &Difference) -> String {
    format!("{}\n", DifferenceText { difference })
}

#[derive(Template)]
#[template(path = "difference.txt")]
struct DifferenceText<'a> {
    difference: &'a Difference,
}

/// The changes of access that are shown, grouped by crawlers.
fn shown_access_groups(site: &SiteDifference) -> impl Iterator<Item = &[AccessChange]> {
    let shown = site.access.len().min(MAX_ROWS);
    site.access[..shown].chunk_by(|change, next| change.crawlers == next.crawlers)
}

/// Renders the difference as Markdown.
pub fn render_markdown(difference: &Difference) -> String {
    let mut out = String::new();
    let mut left = difference.sites.len();
    for site in &difference.sites {
        if out.len() > MAX_COMMENT_BYTES {
            break;
        }
        left -= 1;
        out += &format!(
            "### {}\n\n{}\n\n",
            markdown_cell(&site.hosts.join(", ")),
            markdown_cell(&site_summary(site))
        );
        for (effect, title) in [
            (AccessEffect::Loses, "Access that crawlers lose"),
            (AccessEffect::Gains, "Access that crawlers gain"),
            (AccessEffect::Changes, "Other answers to crawlers"),
        ] {
            let changes: Vec<&AccessChange> = site
                .access
                .iter()
                .filter(|change| change.effect == effect)
                .collect();
            let heading =
                format!("**{title}**\n\n| crawlers | URL | before | now |\n|---|---|---|---|\n");
            write_table(&mut out, &heading, &changes, |change| {
                access_row(change, site, difference.basis)
            });
        }
        write_table(
            &mut out,
            "| header | URL | before | now |\n|---|---|---|---|\n",
            &site.responses,
            |change| {
                let url = format!(
                    "{}{}",
                    markdown_code(&change.found.url),
                    header_count_in_brackets(&change.found, difference.basis)
                );
                let old = markdown_code(&join_header_lines(&change.lines.old));
                let new = markdown_code(&join_header_lines(&change.lines.new));
                format!(
                    "| {} | {url} | {old} | {new} |\n",
                    markdown_cell(&header_change_heading(&change.lines))
                )
            },
        );
        write_table(
            &mut out,
            "| setting | before | now |\n|---|---|---|\n",
            &site.settings,
            |change| {
                let setting = format!("{}{}", change.setting, crawlers_in_brackets(change, site));
                format!(
                    "| {} | {} | {} |\n",
                    markdown_cell(&setting),
                    markdown_cell(&change.old),
                    markdown_cell(&change.new)
                )
            },
        );
        for note in &site.notes {
            out += &format!("{}\n\n", markdown_cell(note));
        }
    }
    if left > 0 {
        out += &format!("{left} more sites change; `crawlgate diff --json` has all of them.\n\n");
    }
    out + &markdown_cell(&summary_line(difference)) + "\n"
}

/// Writes a table until the limits of rows and bytes.
fn write_table<T>(out: &mut String, heading: &str, rows: &[T], row: impl Fn(&T) -> String) {
    if rows.is_empty() {
        return;
    }
    *out += heading;
    let mut left = rows.len();
    for shown in rows.iter().take(MAX_ROWS) {
        if out.len() > MAX_COMMENT_BYTES {
            break;
        }
        left -= 1;
        *out += &row(shown);
    }
    if left > 0 {
        *out += &format!("\nand {left} more; `--json` has all of them\n");
    }
    out.push('\n');
}

/// The two files, and how many crawlers and settings change.
fn site_summary(site: &SiteDifference) -> String {
    let counted = [
        (
            count_affected(site, AccessEffect::Loses),
            "crawler loses access",
            "crawlers lose access",
        ),
        (
            count_affected(site, AccessEffect::Gains),
            "crawler gains access",
            "crawlers gain access",
        ),
        (
            count_affected(site, AccessEffect::Changes),
            "crawler gets another answer",
            "crawlers get another answer",
        ),
        (site.responses.len(), "header changes", "headers change"),
        (site.settings.len(), "setting changes", "settings change"),
    ];
    let counted = counted.into_iter().filter(|(number, _, _)| *number > 0);
    let counted: Vec<String> = counted
        .map(|(number, one, more)| format!("{number} {}", if number == 1 { one } else { more }))
        .collect();
    format!(
        "{}: {}",
        side_names(site),
        if counted.is_empty() {
            "nothing changes".into()
        } else {
            counted.join(", ")
        }
    )
}

/// How many crawlers have a change of this effect.
fn count_affected(site: &SiteDifference, effect: AccessEffect) -> usize {
    let changes = site.access.iter().filter(|change| change.effect == effect);
    let crawlers: BTreeSet<&String> = changes.flat_map(|change| &change.crawlers).collect();
    crawlers.len()
}

/// A row of the Markdown table of changed access.
fn access_row(change: &AccessChange, site: &SiteDifference, basis: ComparisonBasis) -> String {
    format!(
        "| {} | {}{} | {} | {} |\n",
        markdown_cell(&crawler_names(&change.crawlers, site.crawlers)),
        markdown_code(&change.found.url),
        count_in_brackets(change.found.count, basis),
        treatment_cell(&change.old),
        treatment_cell(&change.new)
    )
}

/// The files of both sides: `old -> new`.
fn side_names(site: &SiteDifference) -> String {
    format!(
        "{} -> {}",
        site.old.as_deref().unwrap_or("no policy"),
        site.new.as_deref().unwrap_or("no policy")
    )
}

/// The treatment of a crawler with its rule and place, for a Markdown table.
fn treatment_cell(treatment: &CrawlerTreatment) -> String {
    let mut text = treatment_words(treatment);
    if let Some(rule) = &treatment.rule {
        text += &format!(" by {}", markdown_code(rule));
    }
    if let Some(source) = &treatment.source {
        text += &format!(" ({})", markdown_cell(source));
    }
    text
}

/// The verdict and action in words.
fn treatment_words(treatment: &CrawlerTreatment) -> String {
    let verdict = treatment.verdict.replace('_', " ");
    match (treatment.action.as_str(), &treatment.would) {
        ("pass", None) => verdict,
        ("pass", Some(would)) => format!("{verdict}, would be {}", action_words(would)),
        (action, _) => format!("{verdict}, {}", action_words(action)),
    }
}

/// An action in words: `refused with 403` for `block 403`, `asked for a licence with 401` for
/// `license 401`, `robots txt` for `robots_txt`.
fn action_words(action: &str) -> String {
    match action.split_once(' ') {
        Some(("license", status)) => format!("asked for a licence with {status}"),
        Some((_, status)) => format!("refused with {status}"),
        None => action.replace('_', " "),
    }
}

/// The heading of changed header lines: the field, the type and the status. Leaves out status 200,
/// and the type of a page (`text/html`) with status 200.
fn header_change_heading(change: &HeaderChange) -> String {
    match (change.field, change.content_type.as_str(), change.status) {
        (field, "text/html", 200) => field.to_owned(),
        (field, kind, 200) => format!("{field} of {kind}"),
        (field, kind, status) => format!("{field} of {kind} with status {status}"),
    }
}

/// Header lines in one line.
fn join_header_lines(lines: &[String]) -> String {
    if lines.is_empty() {
        "no such line".to_owned()
    } else {
        lines.join("; ")
    }
}

/// The crawlers of a changed setting; empty for a setting of the site.
fn crawlers_in_brackets(change: &SettingChange, site: &SiteDifference) -> String {
    match change.crawlers.as_slice() {
        [] => String::new(),
        crawlers => format!(" ({})", crawler_names(crawlers, site.crawlers)),
    }
}

/// The count with its word. Empty for URLs made from patterns: how many there are means nothing.
fn count_in_brackets(count: u64, basis: ComparisonBasis) -> String {
    match basis {
        ComparisonBasis::Patterns => String::new(),
        ComparisonBasis::Urls => format!("  ({})", plural(count, "URL")),
        ComparisonBasis::Log => format!("  ({})", plural(count, "request")),
    }
}

/// The count with its word for header lines, which visitors receive, too.
fn header_count_in_brackets(found: &Occurrences, basis: ComparisonBasis) -> String {
    match basis {
        ComparisonBasis::Log => {
            let others = if found.others > 0 {
                format!(", {} of others", found.others)
            } else {
                String::new()
            };
            format!("  ({} of crawlers{others})", plural(found.count, "request"))
        }
        ComparisonBasis::Patterns | ComparisonBasis::Urls => count_in_brackets(found.count, basis),
    }
}

/// The names of crawlers. Of more than six, the first six and how many they are of `all` crawlers of
/// the site, or `all N crawlers`.
fn crawler_names(crawlers: &[String], all: usize) -> String {
    if crawlers.len() == all && all > MAX_NAMED {
        return format!("all {all} crawlers");
    }
    let named = join(crawlers.iter().take(MAX_NAMED), ", ");
    match crawlers.len().checked_sub(MAX_NAMED) {
        None | Some(0) => named,
        Some(_) => format!("{} of {all} crawlers: {named}, ...", crawlers.len()),
    }
}

/// The last line: whether anything changes, on how many URLs or requests the rules were compared,
/// and how many had no policy.
fn summary_line(difference: &Difference) -> String {
    let on = match difference.basis {
        ComparisonBasis::Patterns => {
            format!("{} URLs that the patterns match", difference.compared)
        }
        ComparisonBasis::Urls => format!("{} URLs", difference.compared),
        ComparisonBasis::Log => format!("{} requests", difference.compared),
    };
    let others = match difference.other_hosts {
        0 => String::new(),
        count => format!(" {count} were for hosts that neither side has a policy for."),
    };
    if difference.changed {
        format!("Compared on {on}.{others}")
    } else {
        format!("No crawler is told or given anything else. Compared on {on}.{others}")
    }
}

/// [`printable`] for templates.
fn printable_text(text: impl AsRef<str>) -> String {
    printable(text.as_ref().as_bytes())
}

/// Escapes a text for a cell of a Markdown table.
fn markdown_cell(text: &str) -> String {
    let mut out = String::new();
    for sign in clip_cell(&printable_text(text)).chars() {
        match sign {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', sign]),
            sign => out.push(sign),
        }
    }
    out
}

/// Makes a code span for a cell of a Markdown table, whatever the text has.
fn markdown_code(text: &str) -> String {
    let text = clip_cell(&printable_text(text)).replace('|', "\\|");
    let ticks = "`".repeat(
        text.split(|sign| sign != '`')
            .map(str::len)
            .max()
            .unwrap_or(0)
            + 1,
    );
    let blank = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

/// Cuts a text that is too long for a cell.
fn clip_cell(text: &str) -> String {
    match text.char_indices().nth(MAX_CELL_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
