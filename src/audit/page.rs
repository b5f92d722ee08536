//! A report as one HTML page that needs nothing else: tables and bars, dark and light, without script. The log is hostile
//! input: every text of it is escaped, and a Content-Security-Policy allows nothing but the page's style.

use super::accused::{accusations, nothing_proven, remarks, title};
use super::numbers::{plural, size, thousands};
use super::report::{Crawler, Day, Report, Unlisted};
use super::tally::{ClientIdentity, is_only_claimed};
use std::fmt::{self, Display, Formatter, Write};

/// Rows of crawlers that are shown, and days that have a bar each.
const CRAWLERS: usize = 100;
const BARS: usize = 15;
const DAYS: usize = 120;

/// The look of all pages that crawlgate makes for its operator, and of this page.
const STYLE: &str = concat!(include_str!("../look.css"), include_str!("page.css"));

/// Text of the log as HTML.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for sign in self.0.chars() {
            match sign {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                sign => f.write_char(sign)?,
            }
        }
        Ok(())
    }
}

/// A sentence as HTML, with commands between backticks.
struct Prose<'a>(&'a str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, part) in self.0.split('`').enumerate() {
            match place % 2 {
                0 => write!(f, "{}", Text(part))?,
                _ => write_code(part, f)?,
            }
        }
        Ok(())
    }
}

/// No option breaks into two lines: browsers break after each of its hyphens.
fn write_code(code: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("<code>")?;
    for word in code.split_inclusive(' ') {
        match word.starts_with("--") {
            true => write!(f, "<span class=\"option\">{}</span>", Text(word))?,
            false => write!(f, "{}", Text(word))?,
        }
    }
    f.write_str("</code>")
}

/// The page.
pub fn page(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut out, report);
    out
}

fn write(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Crawlers and robots.txt</title>\n<style>\n{STYLE}</style></head><body>\n\
         <h1>Crawlers and robots.txt</h1>"
    )?;
    if let (Some(from), Some(to)) = (report.from, report.to) {
        writeln!(
            out,
            "<p class=\"soft\"><span class=\"option\">{from}</span> to <span class=\"option\">{to}</span></p>"
        )?;
    }
    let crawlers: Vec<&Crawler> = report.crawlers.iter().filter(|crawler| crawler.judged).collect();
    numbers(out, report, &crawlers)?;
    accused(out, report)?;
    bars(out, &crawlers)?;
    days(out, report)?;
    table(out, &crawlers)?;
    let rules = report.rules.iter().map(|rule| (format!("{} ({})", rule.pattern, rule.place), rule.count, 0));
    list(out, "Rules", "Rules that disallowed what was fetched", rules)?;
    let urls = report.urls.iter().map(|top| (top.name.clone(), top.count, top.error));
    list(out, "URLs", "Disallowed URLs that were fetched most, without their query", urls)?;
    unlisted(out, report)?;
    notes(out, report)?;
    writeln!(out, "</body></html>")
}

fn numbers(out: &mut String, report: &Report, crawlers: &[&Crawler]) -> fmt::Result {
    let requests = crawlers.iter().map(|crawler| crawler.counts.requests).sum();
    let identities = &report.identities;
    let named = identities.verified.certain + identities.unverified.certain + identities.suspected_impostor.certain;
    writeln!(out, "<ul class=\"numbers\">")?;
    let has_lists = report.lists.is_some() || report.policy_networks;
    for (number, text, is_known) in [
        (requests, "requests of crawlers", true),
        (identities.verified.certain, "against the rules, verified crawlers", has_lists),
        (identities.unverified.certain, "against the rules, unverified", true),
        (identities.suspected_impostor.certain, "against the rules, suspected impostors", has_lists),
        (report.certain - named, "against the rules, unlisted bots", true),
        (report.people.requests, "requests of people", true),
    ] {
        if !is_known {
            continue;
        }
        writeln!(out, "<li><b>{}</b>{text}</li>", thousands(number))?;
    }
    writeln!(out, "</ul>")
}

fn accused(out: &mut String, report: &Report) -> fmt::Result {
    let accused = accusations(report);
    writeln!(out, "<h2>{}</h2>", title(report))?;
    if accused.is_empty() {
        writeln!(out, "<p><b>No request is certain to have broken them.</b></p>")?;
    } else {
        writeln!(out, "<ul>")?;
        for accusation in accused.iter().take(CRAWLERS) {
            let requests = plural(accusation.requests, "request");
            writeln!(out, "<li><b>{requests}</b>: {}</li>", Text(&accusation.text))?;
        }
        writeln!(out, "</ul>")?;
        nothing_proven(report).map_or(Ok(()), |text| writeln!(out, "<p><b>{text}</b></p>"))?;
    }
    remarks(report).iter().try_for_each(|remark| writeln!(out, "<p>{}</p>", Prose(remark)))?;
    writeln!(
        out,
        "<p>A disallowed request is certain if no robots.txt that the crawler may have used allows it: only these break \
         the rules. It is stale if an older file that the crawler may still use allows it. It is unproven if it is not \
         known what was in force before. <i>Would block</i> says what enforcing the rules would have refused.</p>"
    )
}

/// What the colours of both charts mean.
const KEY: &str = "<span class=\"key bad\"></span> certain, of verified crawlers and of bots that claim no known name \
                   <span class=\"key claim\"></span> certain, of clients that use a crawler's name \
                   <span class=\"key some\"></span> not certain";

/// The rows with the most disallowed requests. Only a verified crawler, and a bot that claims no name, is shown in red.
fn bars(out: &mut String, crawlers: &[&Crawler]) -> fmt::Result {
    let shown: Vec<&&Crawler> = crawlers.iter().filter(|crawler| crawler.counts.disallowed > 0).take(BARS).collect();
    let Some(most) = shown.iter().map(|crawler| crawler.counts.disallowed).max() else {
        return writeln!(out, "<p><b>No crawler fetched anything that robots.txt disallows.</b></p>");
    };
    writeln!(out, "<h2>Disallowed requests by who sent them</h2>\n<p class=\"soft\">{KEY}</p>\n<div class=\"bars\">")?;
    for crawler in shown {
        let width = |number: u64| number as f64 / most as f64 * 100.0;
        let (certain, all) = (crawler.counts.certain, crawler.counts.disallowed);
        let colour = if is_only_claimed(crawler.identity) { "claim" } else { "bad" };
        writeln!(
            out,
            "<span>{} <span class=\"soft\">{}</span></span><span class=\"bar\"><i class=\"{colour}\" \
             style=\"width:{:.1}%\"></i><i class=\"some\" style=\"width:{:.1}%\"></i></span><b>{}</b>",
            Text(&crawler.name),
            identity(crawler),
            width(certain),
            width(all - certain),
            thousands(all)
        )?;
    }
    writeln!(out, "</div>")
}

fn identity(crawler: &Crawler) -> &'static str {
    crawler.identity.map_or("", ClientIdentity::name)
}

/// Disallowed requests over time: a bar for each day, or for each week where there are many days.
fn days(out: &mut String, report: &Report) -> fmt::Result {
    let (step, name) = if report.days.len() > DAYS { (7, "week") } else { (1, "day") };
    let bars: Vec<(&str, u64, u64, u64)> = report
        .days
        .chunks(step)
        .filter_map(|days| {
            let sum = |number: fn(&Day) -> u64| days.iter().map(number).sum();
            let claimed = sum(|day| day.certain_claimed);
            Some((days.first()?.day.as_str(), sum(|day| day.disallowed), sum(|day| day.certain), claimed))
        })
        .collect();
    let most = bars.iter().map(|(_, disallowed, ..)| *disallowed).max().unwrap_or(0);
    let (Some((first, ..)), Some(last)) = (bars.first(), report.days.last()) else { return Ok(()) };
    if most == 0 || bars.len() < 2 {
        return Ok(());
    }
    let width = 100.0 / bars.len() as f64;
    writeln!(
        out,
        "<h2>Disallowed requests by {name}</h2>\n<p class=\"soft\">{KEY}. At most {} in a {name}.</p>\n<svg class=\"days\" viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"Disallowed requests by {name}\">",
        thousands(most)
    )?;
    for (place, (day, disallowed, certain, claimed)) in bars.iter().enumerate() {
        let height = |number: u64| number as f64 / most as f64 * 100.0;
        // Each bar covers the lower part of the one before it.
        for (class, number) in [("some", *disallowed), ("claim", *certain), ("bad", certain - claimed)] {
            writeln!(
                out,
                "<rect class=\"{class}\" x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\"><title>{day}: {} \
                 disallowed, {} certain, {} of these by clients that use a crawler's name</title></rect>",
                place as f64 * width,
                100.0 - height(number),
                (width * 0.85).min(5.0),
                height(number),
                thousands(*disallowed),
                thousands(*certain),
                thousands(*claimed)
            )?;
        }
    }
    writeln!(out, "</svg>\n<p class=\"axis\"><span>{first}</span><span>{}</span></p>", last.day)
}

/// A column: its title, and the class of its cells.
type Column = (&'static str, &'static str);

/// A table, of which a narrow screen shows each row as a list (`page.css`).
fn sheet(out: &mut String, caption: &str, columns: &[Column], rows: impl Iterator<Item = Vec<String>>) -> fmt::Result {
    write!(out, "<div class=\"scroll\" tabindex=\"0\"><table>")?;
    if !caption.is_empty() {
        write!(out, "<caption>{caption}</caption>")?;
    }
    write!(out, "<thead><tr>")?;
    columns.iter().try_for_each(|(title, class)| write!(out, "<th scope=\"col\" class=\"{class}\">{title}</th>"))?;
    writeln!(out, "</tr></thead><tbody>")?;
    for row in rows {
        write!(out, "<tr>")?;
        for ((title, class), cell) in columns.iter().zip(row) {
            write!(out, "<td class=\"{class}\" data-label=\"{title}\">{cell}</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn table(out: &mut String, crawlers: &[&Crawler]) -> fmt::Result {
    const COLUMNS: [Column; 13] = [
        ("Crawler", "name"),
        ("Identity", "who"),
        ("Requests", ""),
        ("robots.txt", ""),
        ("Disallowed", ""),
        ("Certain", ""),
        ("Stale", ""),
        ("Unproven", ""),
        ("Not bound", ""),
        ("Would block", ""),
        ("Sent", ""),
        ("Sent, disallowed", ""),
        ("First and last disallowed", "dates"),
    ];
    let row = |crawler: &&Crawler| {
        let counts = &crawler.counts;
        let purpose = crawler.purpose.map_or("", |purpose| purpose.name());
        let name = format!("{} <span class=\"soft\">{purpose}</span>", Text(&crawler.name));
        let would = crawler.would.get("block").copied().unwrap_or(0);
        let numbers = [
            counts.requests,
            counts.robots_txt,
            counts.disallowed,
            counts.certain,
            counts.stale,
            counts.unproven,
            counts.not_bound,
            would,
        ];
        let mut cells = vec![name, identity(crawler).to_owned()];
        cells.extend(numbers.map(thousands));
        cells.extend([size(counts.bytes), size(counts.bytes_disallowed), crawler.days()]);
        cells
    };
    writeln!(out, "<h2>Crawlers</h2>")?;
    sheet(out, "", &COLUMNS, crawlers.iter().take(CRAWLERS).map(row))?;
    if crawlers.len() > CRAWLERS {
        writeln!(out, "<p class=\"soft\">{} rows more are in the JSON.</p>", crawlers.len() - CRAWLERS)?;
    }
    Ok(())
}

fn list(
    out: &mut String,
    title: &'static str,
    caption: &str,
    entries: impl Iterator<Item = (String, u64, u64)>,
) -> fmt::Result {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "<h2>{title}</h2>")?;
    let row = |(text, count, error): (String, u64, u64)| {
        let error = if error > 0 { format!(" (at most {} too high)", thousands(error)) } else { String::new() };
        vec![Text(&text).to_string(), format!("{}{error}", thousands(count))]
    };
    sheet(out, caption, &[(title, "text"), ("Requests", "")], entries.map(row))
}

fn unlisted(out: &mut String, report: &Report) -> fmt::Result {
    if report.unlisted.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Unlisted bots</h2>")?;
    let caption = "Bots that crawlgate does not know, by what they call themselves";
    let row =
        |bot: &Unlisted| vec![Text(&bot.top.name).to_string(), thousands(bot.top.count), thousands(bot.disallowed)];
    let columns = [("Name", "text"), ("Requests", ""), ("Disallowed", "")];
    sheet(out, caption, &columns, report.unlisted.iter().map(row))
}

/// What was not read or not judged.
fn notes(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "<h2>About this report</h2>\n<ul>\n<li>{} lines were read.</li>", thousands(report.lines))?;
    for (number, text) in [
        (report.unreadable, "lines could not be read."),
        (report.no_request, "lines are about connections without a request."),
        (report.other_hosts, "requests are to hosts that were not judged."),
        (report.no_user_agent, "requests are in lines without a user agent, which do not tell crawlers."),
    ] {
        if number > 0 {
            writeln!(out, "<li>{} {text}</li>", thousands(number))?;
        }
    }
    for damaged in &report.damaged {
        writeln!(out, "<li>{}</li>", Text(&damaged.message()))?;
    }
    writeln!(out, "<li>Crawlers are named by their user agents, which anybody can write.</li>\n</ul>")
}
