//! A report as one HTML page that needs nothing else: tables, and bars as inline SVG, dark and light, without script. The
//! log is hostile input: every text of it is escaped, and a Content-Security-Policy allows nothing but the page's style.

use super::report::{Crawler, Day, NO_LISTS, Report};
use super::table::{size, thousands};
use std::fmt::{self, Display, Formatter, Write};

/// Crawlers that are shown, and days that have a bar each.
const CRAWLERS: usize = 100;
const BARS: usize = 15;
const DAYS: usize = 120;

/// The look of all pages that crawlgate makes for its operator.
const STYLE: &str = include_str!("../look.css");

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
                sign if sign.is_control() => f.write_char('\u{fffd}')?,
                sign => f.write_char(sign)?,
            }
        }
        Ok(())
    }
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
        writeln!(out, "<p class=\"soft\">{from} to {to}</p>")?;
    }
    let crawlers: Vec<&Crawler> = report.crawlers.iter().filter(|crawler| crawler.judged).collect();
    let requests = crawlers.iter().map(|crawler| crawler.counts.requests).sum();
    let breaking = crawlers.iter().filter(|crawler| crawler.counts.certain > 0).count() as u64;
    writeln!(out, "<ul class=\"numbers\">")?;
    let suspected = report.lists.map(|_| (report.suspected, "requests of suspected impostors"));
    let numbers = [
        (requests, "requests of crawlers"),
        (report.disallowed, "fetches of disallowed pages"),
        (report.certain, "of them certain"),
        (breaking, "crawlers with certain ones"),
        (report.people.requests, "requests of people"),
    ];
    for (number, text) in numbers.into_iter().chain(suspected) {
        writeln!(out, "<li><b>{}</b>{text}</li>", thousands(number))?;
    }
    writeln!(
        out,
        "</ul>\n<p>A fetch is certain if no robots.txt that the crawler may have used allows it. It is stale if an older \
         file that the crawler may still use allows it. It is unproven if it is not known what was in force before. \
         <i>Would block</i> says what enforcing the rules would have refused.</p>"
    )?;
    bars(out, &crawlers)?;
    days(out, report)?;
    table(out, &crawlers)?;
    identities(out, report)?;
    let rules = report.rules.iter().map(|rule| (format!("{} ({})", rule.pattern, rule.place), rule.count, 0));
    list(out, "Rules", "Rules that disallowed what was fetched", rules)?;
    let urls = report.urls.iter().map(|top| (top.name.clone(), top.count, top.error));
    list(out, "URLs", "Disallowed URLs that were fetched most, without their query", urls)?;
    unlisted(out, report)?;
    notes(out, report)?;
    writeln!(out, "</body></html>")
}

/// The crawlers with the most disallowed fetches.
fn bars(out: &mut String, crawlers: &[&Crawler]) -> fmt::Result {
    let shown: Vec<&&Crawler> = crawlers.iter().filter(|crawler| crawler.counts.disallowed > 0).take(BARS).collect();
    let Some(most) = shown.iter().map(|crawler| crawler.counts.disallowed).max() else {
        return writeln!(out, "<p><b>No crawler fetched anything that robots.txt disallows.</b></p>");
    };
    let height = shown.len() * 26;
    writeln!(
        out,
        "<h2>Disallowed fetches by crawler</h2>\n<p class=\"soft\">Coloured: certain. Grey: the others. The table below \
         has the numbers.</p>\n<div class=\"scroll\" tabindex=\"0\"><svg viewBox=\"0 0 800 {height}\" role=\"img\" aria-label=\"Disallowed fetches by crawler\">"
    )?;
    for (place, crawler) in shown.iter().enumerate() {
        let y = place * 26;
        let width = |number: u64| number as f64 / most as f64 * 480.0;
        let (certain, all) = (width(crawler.counts.certain), width(crawler.counts.disallowed));
        writeln!(
            out,
            "<text x=\"190\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect class=\"some\" x=\"200\" y=\"{}\" width=\"{all:.1}\" height=\"18\"/>\
             <rect class=\"bad\" x=\"200\" y=\"{}\" width=\"{certain:.1}\" height=\"18\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}</text>",
            y + 17,
            Text(&crawler.name.chars().take(26).collect::<String>()),
            y + 3,
            y + 3,
            208.0 + all,
            y + 17,
            thousands(crawler.counts.disallowed)
        )?;
    }
    writeln!(out, "</svg></div>")
}

/// Disallowed fetches over time: a bar for each day, or for each week where there are many days.
fn days(out: &mut String, report: &Report) -> fmt::Result {
    let (step, name) = if report.days.len() > DAYS { (7, "week") } else { (1, "day") };
    let bars: Vec<(&str, u64, u64)> = report
        .days
        .chunks(step)
        .filter_map(|days| {
            let sum = |number: fn(&Day) -> u64| days.iter().map(number).sum();
            Some((days.first()?.day.as_str(), sum(|day| day.disallowed), sum(|day| day.certain)))
        })
        .collect();
    let most = bars.iter().map(|(_, disallowed, _)| *disallowed).max().unwrap_or(0);
    let (Some((first, ..)), Some(last)) = (bars.first(), report.days.last()) else { return Ok(()) };
    if most == 0 || bars.len() < 2 {
        return Ok(());
    }
    let width = 800.0 / bars.len() as f64;
    writeln!(
        out,
        "<h2>Disallowed fetches by {name}</h2>\n<p class=\"soft\">Coloured: certain. At most {} in a {name}.</p>\n\
         <div class=\"scroll\" tabindex=\"0\"><svg viewBox=\"0 0 800 170\" role=\"img\" aria-label=\"Disallowed fetches by {name}\">",
        thousands(most)
    )?;
    for (place, (day, disallowed, certain)) in bars.iter().enumerate() {
        let height = |number: u64| number as f64 / most as f64 * 140.0;
        for (class, number) in [("some", *disallowed), ("bad", *certain)] {
            writeln!(
                out,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{day}: {} \
                 disallowed, {} certain</title></rect>",
                place as f64 * width,
                145.0 - height(number),
                (width * 0.85).min(40.0),
                height(number),
                thousands(*disallowed),
                thousands(*certain)
            )?;
        }
    }
    writeln!(
        out,
        "<text x=\"0\" y=\"165\">{first}</text><text x=\"800\" y=\"165\" text-anchor=\"end\">{}</text>\n</svg></div>",
        last.day
    )
}

fn table(out: &mut String, crawlers: &[&Crawler]) -> fmt::Result {
    writeln!(out, "<h2>Crawlers</h2>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>")?;
    for title in [
        "Crawler",
        "Requests",
        "robots.txt",
        "Disallowed",
        "Certain",
        "Stale",
        "Unproven",
        "Not bound",
        "Would block",
        "Sent",
        "Sent, disallowed",
        "First and last disallowed",
    ] {
        write!(out, "<th scope=\"col\">{title}</th>")?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for crawler in crawlers.iter().take(CRAWLERS) {
        let purpose = crawler.purpose.map_or("", |purpose| purpose.name());
        write!(out, "<tr><td>{} <span class=\"soft\">{purpose}</span></td>", Text(&crawler.name))?;
        let would = crawler.would.get("block").copied().unwrap_or(0);
        for (number, is_hit) in [
            (crawler.counts.requests, false),
            (crawler.counts.robots_txt, false),
            (crawler.counts.disallowed, false),
            (crawler.counts.certain, crawler.counts.certain > 0),
            (crawler.counts.stale, false),
            (crawler.counts.unproven, false),
            (crawler.counts.not_bound, false),
            (would, false),
        ] {
            write!(out, "<td{}>{}</td>", if is_hit { " class=\"hit\"" } else { "" }, thousands(number))?;
        }
        writeln!(
            out,
            "<td>{}</td><td>{}</td><td>{}</td></tr>",
            size(crawler.counts.bytes),
            size(crawler.counts.bytes_disallowed),
            crawler.days()
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    if crawlers.len() > CRAWLERS {
        writeln!(out, "<p class=\"soft\">{} crawlers more are in the JSON.</p>", crawlers.len() - CRAWLERS)?;
    }
    Ok(())
}

/// Who the crawlers were, by published networks.
fn identities(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "<h2>Impostors</h2>")?;
    let Some(lists) = report.lists else { return writeln!(out, "<p>{NO_LISTS}</p>") };
    let checked = lists.checked.map_or_else(String::new, |at| format!(", last checked {at}"));
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>Requests by the networks that the crawlers' operators \
         publish (lists: {}{checked})</caption><thead><tr>",
        lists.known
    )?;
    for title in ["Crawler", "Verified", "Suspected", "Suspected, disallowed", "Unverified"] {
        write!(out, "<th scope=\"col\">{title}</th>")?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for (crawler, counts) in report.identities().take(CRAWLERS) {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td{}>{}</td><td>{}</td><td>{}</td></tr>",
            Text(&crawler.name),
            thousands(counts.verified),
            if counts.suspected > 0 { " class=\"hit\"" } else { "" },
            thousands(counts.suspected),
            thousands(counts.suspected_disallowed),
            thousands(counts.unverified)
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    report.identity_notes().iter().try_for_each(|note| writeln!(out, "<p>{}</p>", Text(note)))
}

fn list(
    out: &mut String,
    title: &str,
    caption: &str,
    entries: impl Iterator<Item = (String, u64, u64)>,
) -> fmt::Result {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>{title}</h2>\n<div class=\"scroll\" tabindex=\"0\"><table><caption>{caption}</caption><thead><tr><th scope=\"col\" \
         class=\"text\">{title}</th><th scope=\"col\">Requests</th></tr></thead><tbody>"
    )?;
    for (text, count, error) in entries {
        let error = if error > 0 { format!(" (at most {} too high)", thousands(error)) } else { String::new() };
        writeln!(out, "<tr><td class=\"text\">{}</td><td>{}{error}</td></tr>", Text(&text), thousands(count))?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn unlisted(out: &mut String, report: &Report) -> fmt::Result {
    if report.unlisted.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>Unlisted bots</h2>\n<div class=\"scroll\" tabindex=\"0\"><table><caption>Bots that crawlgate does not know, \
         by what they call themselves</caption><thead><tr><th scope=\"col\" class=\"text\">Name</th>\
         <th scope=\"col\">Requests</th><th scope=\"col\">Disallowed</th></tr></thead><tbody>"
    )?;
    for bot in &report.unlisted {
        let (requests, disallowed) = (thousands(bot.top.count), thousands(bot.disallowed));
        writeln!(
            out,
            "<tr><td class=\"text\">{}</td><td>{requests}</td><td>{disallowed}</td></tr>",
            Text(&bot.top.name)
        )?;
    }
    writeln!(out, "</tbody></table></div>")
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
        writeln!(out, "<li>{} breaks off: {}</li>", Text(&damaged.file), Text(&damaged.error))?;
    }
    writeln!(out, "<li>Crawlers are named by their user agents, which anybody can write.</li>\n</ul>")
}
