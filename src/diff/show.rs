//! Prints a [`Difference`] for people: [`text`] for a terminal, [`markdown`] for a pull request. It
//! escapes URLs and lines of robots.txt, because these come from files of any origin.

use super::{
    AccessChange, Basis, Difference, Effect, HeaderChange, Occurrences, Ruling, SettingChange,
    SiteDifference,
};
use crate::numbers::plural;
use crate::printable::{join, printable};
use askama::Template;
use std::collections::BTreeSet;

/// Crawlers that are named one by one.
const NAMED: usize = 6;
/// Rows of a table. The rest is counted.
const ROWS: usize = 200;
/// Beyond this many bytes of Markdown, rows and sites are only counted: a comment on GitHub holds
/// 65,536 characters.
const COMMENT: usize = 50_000;
/// Characters of a cell. Patterns may be longer.
const CELL: usize = 300;

/// The difference as plain text.
pub fn text(difference: &Difference) -> String {
    format!("{}\n", DifferenceText { difference })
}

#[derive(Template)]
#[template(path = "difference.txt")]
struct DifferenceText<'a> {
    difference: &'a Difference,
}

/// The changes of access that are shown, those for the same crawlers together.
fn groups(site: &SiteDifference) -> impl Iterator<Item = &[AccessChange]> {
    let shown = site.access.len().min(ROWS);
    site.access[..shown].chunk_by(|change, next| change.crawlers == next.crawlers)
}

/// The difference as Markdown.
pub fn markdown(difference: &Difference) -> String {
    let mut out = String::new();
    let mut left = difference.sites.len();
    for site in &difference.sites {
        if out.len() > COMMENT {
            break;
        }
        left -= 1;
        out += &format!(
            "### {}\n\n{}\n\n",
            cell(&site.hosts.join(", ")),
            cell(&sites_and_effects(site))
        );
        for (effect, title) in [
            (Effect::Loses, "Access that crawlers lose"),
            (Effect::Gains, "Access that crawlers gain"),
            (Effect::Changes, "Other answers to crawlers"),
        ] {
            let changes: Vec<&AccessChange> = site
                .access
                .iter()
                .filter(|change| change.effect == effect)
                .collect();
            let heading =
                format!("**{title}**\n\n| crawlers | URL | before | now |\n|---|---|---|---|\n");
            table(&mut out, &heading, &changes, |change| {
                access_row(change, site, difference.basis)
            });
        }
        table(
            &mut out,
            "| header | URL | before | now |\n|---|---|---|---|\n",
            &site.responses,
            |change| {
                let url = format!(
                    "{}{}",
                    code(&change.found.url),
                    times_of(&change.found, difference.basis)
                );
                let old = code(&lines(&change.lines.old));
                let new = code(&lines(&change.lines.new));
                format!(
                    "| {} | {url} | {old} | {new} |\n",
                    cell(&heading(&change.lines))
                )
            },
        );
        table(
            &mut out,
            "| setting | before | now |\n|---|---|---|\n",
            &site.settings,
            |change| {
                let setting = format!("{}{}", change.setting, of_crawlers(change, site));
                format!(
                    "| {} | {} | {} |\n",
                    cell(&setting),
                    cell(&change.old),
                    cell(&change.new)
                )
            },
        );
        for note in &site.notes {
            out += &format!("{}\n\n", cell(note));
        }
    }
    if left > 0 {
        out += &format!("{left} more sites change; `crawlgate diff --json` has all of them.\n\n");
    }
    out + &cell(&summary(difference)) + "\n"
}

/// A table, as far as it has room.
fn table<T>(out: &mut String, heading: &str, rows: &[T], row: impl Fn(&T) -> String) {
    if rows.is_empty() {
        return;
    }
    *out += heading;
    let mut left = rows.len();
    for shown in rows.iter().take(ROWS) {
        if out.len() > COMMENT {
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
fn sites_and_effects(site: &SiteDifference) -> String {
    let counted = [
        (
            affected(site, Effect::Loses),
            "crawler loses access",
            "crawlers lose access",
        ),
        (
            affected(site, Effect::Gains),
            "crawler gains access",
            "crawlers gain access",
        ),
        (
            affected(site, Effect::Changes),
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
        sides(site),
        if counted.is_empty() {
            "nothing changes".into()
        } else {
            counted.join(", ")
        }
    )
}

/// How many crawlers a change of this effect is for.
fn affected(site: &SiteDifference, effect: Effect) -> usize {
    let changes = site.access.iter().filter(|change| change.effect == effect);
    let crawlers: BTreeSet<&String> = changes.flat_map(|change| &change.crawlers).collect();
    crawlers.len()
}

/// A row of the Markdown table of changed access: the crawlers, the URL with its count, and the
/// answers before and now.
fn access_row(change: &AccessChange, site: &SiteDifference, basis: Basis) -> String {
    format!(
        "| {} | {}{} | {} | {} |\n",
        cell(&names(&change.crawlers, site.crawlers)),
        code(&change.found.url),
        times(change.found.count, basis),
        ruling(&change.old),
        ruling(&change.new)
    )
}

/// The files of both sides, `old -> new`, with `no policy` for a side that has none.
fn sides(site: &SiteDifference) -> String {
    format!(
        "{} -> {}",
        site.old.as_deref().unwrap_or("no policy"),
        site.new.as_deref().unwrap_or("no policy")
    )
}

/// The answer to a crawler, its rule and the place of that, for a table of Markdown.
fn ruling(ruling: &Ruling) -> String {
    let mut text = answer(ruling);
    if let Some(rule) = &ruling.rule {
        text += &format!(" by {}", code(rule));
    }
    if let Some(source) = &ruling.source {
        text += &format!(" ({})", cell(source));
    }
    text
}

/// The answer to a crawler, in words.
fn answer(ruling: &Ruling) -> String {
    let verdict = ruling.verdict.replace('_', " ");
    match (ruling.action.as_str(), &ruling.would) {
        ("pass", None) => verdict,
        ("pass", Some(would)) => format!("{verdict}, would be {}", refused(would)),
        (action, _) => format!("{verdict}, {}", refused(action)),
    }
}

/// An action in words: `block 403` is `refused with 403`, `license 401` is
/// `asked for a licence with 401`; an action without a status keeps its name, with blanks for `_`.
fn refused(action: &str) -> String {
    match action.split_once(' ') {
        Some(("license", status)) => format!("asked for a licence with {status}"),
        Some((_, status)) => format!("refused with {status}"),
        None => action.replace('_', " "),
    }
}

/// The heading of changed header lines: the field, and of which type and status the responses are.
/// Status 200 is not named, and neither are both for a page (`text/html`) with status 200.
fn heading(change: &HeaderChange) -> String {
    match (change.field, change.content_type.as_str(), change.status) {
        (field, "text/html", 200) => field.to_owned(),
        (field, kind, 200) => format!("{field} of {kind}"),
        (field, kind, status) => format!("{field} of {kind} with status {status}"),
    }
}

/// Header lines joined by `; `; `no such line` if there are none.
fn lines(lines: &[String]) -> String {
    if lines.is_empty() {
        "no such line".to_owned()
    } else {
        lines.join("; ")
    }
}

/// The crawlers that a changed setting is for, in brackets after a blank; empty if it names none.
fn of_crawlers(change: &SettingChange, site: &SiteDifference) -> String {
    match change.crawlers.as_slice() {
        [] => String::new(),
        crawlers => format!(" ({})", names(crawlers, site.crawlers)),
    }
}

/// The count in words; nothing where the URLs were made from patterns, because it says little
/// there.
fn times(count: u64, basis: Basis) -> String {
    match basis {
        Basis::Patterns => String::new(),
        Basis::Urls => format!("  ({})", plural(count, "URL")),
        Basis::Log => format!("  ({})", plural(count, "request")),
    }
}

/// The count in words for header lines, which people receive, too.
fn times_of(found: &Occurrences, basis: Basis) -> String {
    match basis {
        Basis::Log => {
            let others = if found.others > 0 {
                format!(", {} of others", found.others)
            } else {
                String::new()
            };
            format!("  ({} of crawlers{others})", plural(found.count, "request"))
        }
        Basis::Patterns | Basis::Urls => times(found.count, basis),
    }
}

/// The names of crawlers: all of them up to six; of more, how many they are of `all` crawlers of
/// the site and the first six; `all N crawlers` if there are more than six and all are meant.
fn names(crawlers: &[String], all: usize) -> String {
    if crawlers.len() == all && all > NAMED {
        return format!("all {all} crawlers");
    }
    let named = join(crawlers.iter().take(NAMED), ", ");
    match crawlers.len().checked_sub(NAMED) {
        None | Some(0) => named,
        Some(_) => format!("{} of {all} crawlers: {named}, ...", crawlers.len()),
    }
}

/// The last line of a comparison: on how many URLs or requests it was made, and how many requests
/// were left out because neither side has a policy for their host. Says first if nothing changes.
fn summary(difference: &Difference) -> String {
    let on = match difference.basis {
        Basis::Patterns => format!("{} URLs that the patterns match", difference.compared),
        Basis::Urls => format!("{} URLs", difference.compared),
        Basis::Log => format!("{} requests", difference.compared),
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

/// Text without control characters, which a terminal would obey.
fn plain(text: impl AsRef<str>) -> String {
    printable(text.as_ref().as_bytes())
}

/// Text in a table of Markdown.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for sign in clipped(&plain(text)).chars() {
        match sign {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', sign]),
            sign => out.push(sign),
        }
    }
    out
}

/// A code span in a table of Markdown: nothing ends it, and a bar ends no cell.
fn code(text: &str) -> String {
    let text = clipped(&plain(text)).replace('|', "\\|");
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

/// The beginning of what is too long for a table.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(CELL) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
