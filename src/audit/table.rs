//! [`table`] prints the report of an audit as text for a terminal.

use super::accused::{accusations, nothing_proven, remarks, title};
use super::report::{Crawler, Report, RuleCount, Top, Unlisted};
use crate::numbers::{plural, size, thousands};
use crate::printable::join;
use std::io::{self, Write};

/// Crawlers and other entries that are shown; JSON has all.
const SHOWN: usize = 30;
const SHOWN_OF_LISTS: usize = 10;

/// Prints a report.
///
/// # Errors
/// The stream cannot be written.
pub fn table(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.lines == 0 {
        writeln!(out, "The logs have no lines.")?;
        return damaged(out, report);
    }
    head(out, report)?;
    accused(out, report)?;
    crawlers(out, report)?;
    list(
        out,
        "Rules that disallowed most of it",
        report.rules.iter().map(rule),
    )?;
    list(
        out,
        "Disallowed URLs that were requested most, without their query",
        report.urls.iter().map(top),
    )?;
    let title = "Unlisted bots by what they call themselves, with their disallowed requests";
    list(out, title, report.unlisted.iter().map(unlisted))?;
    damaged(out, report)?;
    if report.unreadable > 0 {
        writeln!(
            out,
            "\n{} could not be read (--log-format describes other formats):",
            plural(thousands(report.unreadable), "line")
        )?;
        for (reason, number) in &report.unreadable_reasons {
            writeln!(out, "{:>12}  {reason}", thousands(number))?;
        }
        writeln!(out, "For example")?;
        for example in &report.examples {
            writeln!(
                out,
                "  {}:{}: {}: {}",
                example.file, example.line, example.reason, example.text
            )?;
        }
    }
    Ok(())
}

fn damaged(out: &mut impl Write, report: &Report) -> io::Result<()> {
    report
        .damaged
        .iter()
        .try_for_each(|damaged| writeln!(out, "\n{}", damaged.message()))
}

/// What was read, and how much of it is disallowed.
fn head(out: &mut impl Write, report: &Report) -> io::Result<()> {
    write!(out, "{}", plural(thousands(report.lines), "line"))?;
    if let (Some(from), Some(to)) = (report.from, report.to) {
        write!(out, " from {from} to {to}")?;
    }
    writeln!(out)?;
    for (number, word, text) in [
        (
            report.no_request,
            "line",
            "about connections without a request",
        ),
        (
            report.server_messages,
            "line",
            "of the server's start and its errors, which are no access log",
        ),
        (
            report.other_hosts,
            "request",
            "to hosts that are not judged",
        ),
        (
            report.no_host,
            "request",
            "in lines without a host, which any of the policies might judge: see --host",
        ),
        (
            report.no_user_agent,
            "request",
            "in lines without a user agent: the Common format does not tell crawlers",
        ),
        (report.people.requests, "request", "of people"),
    ] {
        if number > 0 {
            writeln!(out, "{} {text}", plural(thousands(number), word))?;
        }
    }
    let requests = plural(thousands(report.disallowed), "request");
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

/// The crawlers that are judged as a table, and the tools in one line.
fn crawlers(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let (judged, tools): (Vec<&Crawler>, Vec<&Crawler>) =
        report.crawlers.iter().partition(|crawler| crawler.judged);
    if !judged.is_empty() {
        judged_crawlers(out, &judged)?;
    }
    if tools.is_empty() {
        return Ok(());
    }
    let requests: u64 = tools.iter().map(|crawler| crawler.counts.requests).sum();
    let names = join(tools.iter().take(SHOWN_OF_LISTS).map(|tool| &tool.id), ", ");
    let more = if tools.len() > SHOWN_OF_LISTS {
        ", ..."
    } else {
        ""
    };
    writeln!(
        out,
        "\n{} of tools that robots.txt does not concern: {names}{more}",
        plural(thousands(requests), "request"),
    )
}

/// A row for each crawler and identity, as far as there is room.
fn judged_crawlers(out: &mut impl Write, judged: &[&Crawler]) -> io::Result<()> {
    let shown = &judged[..judged.len().min(SHOWN)];
    let mut width = "crawler".len();
    let mut named = "identity".len();
    for crawler in shown {
        width = width.max(crawler.id.len());
        named = named.max(crawler.identity_name().len());
    }
    write!(out, "\n{:<width$}  {:<named$}", "crawler", "identity")?;
    for title in [
        "requests",
        "robots.txt",
        "disallowed",
        "certain",
        "stale",
        "unproven",
        "not bound",
        "would block",
    ] {
        write!(out, "  {title:>11}")?;
    }
    writeln!(
        out,
        "  {:>9}  {:>9}  first and last disallowed",
        "sent", "disallowed"
    )?;
    for crawler in shown {
        let identity = crawler.identity_name();
        write!(out, "{:<width$}  {identity:<named$}", crawler.id)?;
        for number in [
            crawler.counts.requests,
            crawler.counts.robots_txt,
            crawler.counts.disallowed,
            crawler.counts.certain,
            crawler.counts.stale,
            crawler.counts.unproven,
            crawler.counts.not_bound,
            crawler.would_block(),
        ] {
            write!(out, "  {:>11}", thousands(number))?;
        }
        let sent = size(crawler.counts.bytes);
        let disallowed = size(crawler.counts.bytes_disallowed);
        let end = format!("  {sent:>9}  {disallowed:>9}  {}", crawler.days());
        writeln!(out, "{}", end.trim_end())?;
    }
    if let more @ 1.. = judged.len() - shown.len() {
        writeln!(out, "and {more} rows more; --json has all")?;
    }
    if judged
        .iter()
        .any(|crawler| crawler.id == "other" && crawler.counts.disallowed > 0)
    {
        writeln!(
            out,
            "other: unlisted bots, which are refused only with `purposes: {{ other: enforce }}`"
        )?;
    }
    Ok(())
}

/// The clients that certainly broke the rules.
fn accused(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let accused = accusations(report);
    if !accused.is_empty() {
        writeln!(out, "\n{} (certain requests)", title(report))?;
        for (requests, text) in accused.iter().take(SHOWN_OF_LISTS) {
            writeln!(out, "{:>12}  {text}", thousands(requests))?;
        }
        if let more @ 1.. = accused.len().saturating_sub(SHOWN_OF_LISTS) {
            writeln!(out, "and {more} more in the table of crawlers")?;
        }
        nothing_proven(report).map_or(Ok(()), |text| writeln!(out, "{text}"))?;
    }
    writeln!(out)?;
    remarks(report)
        .iter()
        .try_for_each(|remark| writeln!(out, "{remark}"))
}

fn rule(rule: &RuleCount) -> (u64, String) {
    (rule.count, format!("{}  ({})", rule.pattern, rule.place))
}

fn top(top: &Top) -> (u64, String) {
    let error = if top.error > 0 {
        format!("  (at most {} too high)", thousands(top.error))
    } else {
        String::new()
    };
    (top.count, format!("{}{error}", top.name))
}

fn unlisted(unlisted: &Unlisted) -> (u64, String) {
    let (_, text) = top(&unlisted.top);
    (
        unlisted.disallowed,
        format!(
            "{text}, of {}",
            plural(thousands(unlisted.top.count), "request")
        ),
    )
}

/// A list under a title; nothing where it is empty.
fn list(
    out: &mut impl Write,
    title: &str,
    entries: impl Iterator<Item = (u64, String)>,
) -> io::Result<()> {
    let mut entries = entries.take(SHOWN_OF_LISTS).peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for (count, text) in entries {
        writeln!(out, "{:>12}  {text}", thousands(count))?;
    }
    Ok(())
}
