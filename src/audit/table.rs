//! A report as text for a terminal.

use super::report::{NO_LISTS, Report, RuleCount, Top, Unlisted};
use std::io::{self, Write};

/// Crawlers and other entries that are shown; JSON has all.
const SHOWN: usize = 30;
const SHOWN_OF_LISTS: usize = 10;

/// Prints a report.
///
/// # Errors
/// Those of the stream.
pub fn table(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.lines == 0 {
        return writeln!(out, "The logs have no lines.");
    }
    head(out, report)?;
    crawlers(out, report)?;
    identities(out, report)?;
    list(out, "Rules that disallowed most of it", report.rules.iter().map(rule))?;
    list(out, "Disallowed URLs that were requested most, without their query", report.urls.iter().map(top))?;
    let title = "Unlisted bots by what they call themselves, with their disallowed requests";
    list(out, title, report.unlisted.iter().map(unlisted))?;
    for damaged in &report.damaged {
        writeln!(out, "\n{} breaks off: {}; it was read up to there.", damaged.file, damaged.error)?;
    }
    if report.unreadable > 0 {
        writeln!(
            out,
            "\n{} could not be read (--format describes other formats), like",
            plural(report.unreadable, "line")
        )?;
        for example in &report.examples {
            writeln!(out, "  {}:{}: {}", example.file, example.line, example.text)?;
        }
    }
    Ok(())
}

fn head(out: &mut impl Write, report: &Report) -> io::Result<()> {
    write!(out, "{}", plural(report.lines, "line"))?;
    if let (Some(from), Some(to)) = (report.from, report.to) {
        write!(out, " from {from} to {to}")?;
    }
    writeln!(out)?;
    for (number, word, text) in [
        (report.no_request, "line", "about connections without a request"),
        (report.other_hosts, "request", "to hosts that are not judged (or to no host: see --host)"),
        (report.no_user_agent, "request", "in lines without a user agent: the Common format does not tell crawlers"),
        (report.people.requests, "request", "of people"),
    ] {
        if number > 0 {
            writeln!(out, "{} {text}", plural(number, word))?;
        }
    }
    let requests = plural(report.disallowed, "request");
    if report.by_policies {
        return writeln!(
            out,
            "{requests} that the policies would have disallowed, had they been in force all the time"
        );
    }
    writeln!(
        out,
        "{requests} of disallowed URLs, {} certain: no robots.txt that the crawler may have used allows them",
        thousands(report.certain)
    )
}

fn crawlers(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let (judged, others): (Vec<_>, Vec<_>) = report.crawlers.iter().partition(|crawler| crawler.judged);
    if !judged.is_empty() {
        let titles =
            ["requests", "robots.txt", "disallowed", "certain", "stale", "unproven", "not bound", "would block"];
        let width = judged.iter().take(SHOWN).map(|crawler| crawler.id.len()).max().unwrap_or(0).max("crawler".len());
        write!(out, "\n{:<width$}", "crawler")?;
        for title in titles {
            write!(out, "  {title:>11}")?;
        }
        writeln!(out, "  {:>9}  {:>9}  first and last disallowed", "sent", "disallowed")?;
        for crawler in judged.iter().take(SHOWN) {
            write!(out, "{:<width$}", crawler.id)?;
            let would = crawler.would.get("block").copied().unwrap_or(0);
            for number in [
                crawler.counts.requests,
                crawler.counts.robots_txt,
                crawler.counts.disallowed,
                crawler.counts.certain,
                crawler.counts.stale,
                crawler.counts.unproven,
                crawler.counts.not_bound,
                would,
            ] {
                write!(out, "  {:>11}", thousands(number))?;
            }
            let (sent, disallowed) = (size(crawler.counts.bytes), size(crawler.counts.bytes_disallowed));
            writeln!(out, "{}", format!("  {sent:>9}  {disallowed:>9}  {}", crawler.days()).trim_end())?;
        }
        if judged.len() > SHOWN {
            writeln!(out, "and {} crawlers more; --json has all", judged.len() - SHOWN)?;
        }
        if judged.iter().any(|crawler| crawler.id == "other" && crawler.counts.disallowed > 0) {
            writeln!(out, "other: unlisted bots, which are refused only with `purposes: {{ other: enforce }}`")?;
        }
    }
    if !others.is_empty() {
        let requests = others.iter().map(|crawler| crawler.counts.requests).sum();
        let names: Vec<&str> = others.iter().take(SHOWN_OF_LISTS).map(|crawler| crawler.id.as_str()).collect();
        let more = if others.len() > names.len() { ", ..." } else { "" };
        writeln!(
            out,
            "\n{} of tools that robots.txt does not concern: {}{more}",
            plural(requests, "request"),
            names.join(", ")
        )?;
    }
    Ok(())
}

/// How to get lists.
const GET_LISTS: &str = "To look for them, give `--lists yes`, which fetches the networks from the operators. A running \
                         crawlgate keeps them in its state directory (--state DIR); `crawlgate crawlers --update` \
                         makes it fetch them.";

/// Who the crawlers were, by published networks.
fn identities(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let Some(lists) = report.lists else { return writeln!(out, "\n{NO_LISTS}\n{GET_LISTS}") };
    let checked = lists.checked.map_or_else(String::new, |at| format!(", last checked {at}"));
    let known = plural(lists.known as u64, "list");
    writeln!(out, "\nRequests by the networks that operators publish ({known}{checked})")?;
    let rows: Vec<_> = report.identities().take(SHOWN).collect();
    if rows.is_empty() {
        return writeln!(out, "The log has no crawler whose operator publishes networks.");
    }
    let width = rows.iter().map(|(crawler, _)| crawler.id.len()).max().unwrap_or(0).max("crawler".len());
    writeln!(
        out,
        "{:<width$}  {:>14}  {:>14}  {:>14}  {:>14}",
        "crawler", "verified", "suspected", "and disallowed", "unverified"
    )?;
    for (crawler, counts) in rows {
        write!(out, "{:<width$}", crawler.id)?;
        for number in [counts.verified, counts.suspected, counts.suspected_disallowed, counts.unverified] {
            write!(out, "  {:>14}", thousands(number))?;
        }
        writeln!(out)?;
    }
    report.identity_notes().iter().try_for_each(|note| writeln!(out, "{note}"))
}

fn rule(rule: &RuleCount) -> (u64, String) {
    (rule.count, format!("{}  ({})", rule.pattern, rule.place))
}

fn top(top: &Top) -> (u64, String) {
    let error = if top.error > 0 { format!("  (at most {} too high)", thousands(top.error)) } else { String::new() };
    (top.count, format!("{}{error}", top.name))
}

fn unlisted(unlisted: &Unlisted) -> (u64, String) {
    let (_, text) = top(&unlisted.top);
    (unlisted.disallowed, format!("{text}, of {}", plural(unlisted.top.count, "request")))
}

fn list(out: &mut impl Write, title: &str, entries: impl Iterator<Item = (u64, String)>) -> io::Result<()> {
    let mut entries = entries.take(SHOWN_OF_LISTS).peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for (count, text) in entries {
        let text: String = text.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect();
        writeln!(out, "{:>12}  {text}", thousands(count))?;
    }
    Ok(())
}

fn plural(number: u64, word: &str) -> String {
    format!("{} {word}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A number with commas: `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of octets: `1.4 GiB`.
pub fn size(octets: u64) -> String {
    let mut number = octets as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if number < 1024.0 {
            return if unit == "B" { format!("{octets} B") } else { format!("{number:.1} {unit}") };
        }
        number /= 1024.0;
    }
    format!("{number:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::{size, thousands};

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1_023, 1_536, 5 << 40].map(size), ["1023 B", "1.5 KiB", "5.0 TiB"]);
    }
}
