//! `report`: summarises which crawlers obeyed the rules and which broke them, from the counts and
//! samples of requests in a state directory. The crawlgate that writes the directory may be
//! running.

use super::places::StateDirectory;
use super::{Failure, Result, cannot, now, show};
use crate::admin::dashboard::{CrawlerRow, Overview, Period, report_page};
use crate::state::history::HistoryReader;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Report from the history which crawlers obeyed the rules, and what enforcing would do
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How far back at least: whole days from midnight UTC on, or hours (up to 7 days) from the
    /// full hour on
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = super::audit::duration)]
    since: Duration,
    #[command(flatten)]
    state: StateDirectory,
    /// Write one HTML page into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  crawlgate report
  crawlgate report --since 12h
  crawlgate report --since 30d --html report.html
  crawlgate report --state /var/lib/crawlgate --json

Exit codes: 0 fine, 2 wrong usage, 3 the history cannot be read.";

/// Crawlers of the table; `--json` has all.
const ROWS: usize = 40;
/// Columns of a paragraph.
const WIDTH: usize = 100;
/// The shortest time that is counted, and the longest that is kept.
const HOUR: Duration = Duration::from_secs(3_600);
const MOST: Duration = Duration::from_secs(400 * 86_400);

pub fn run(arguments: &Arguments) -> Result {
    let directory = arguments.state.path()?;
    if arguments.since < HOUR || arguments.since > MOST {
        let days = MOST.as_secs() / 86_400;
        return Err(Failure::Usage(format!(
            "--since: the history counts by the hour and has the last {days} days, so give 1h to {days}d"
        )));
    }
    let period = Period::since(arguments.since, now());
    let overview = Overview::read(&HistoryReader::open(&directory)?, period)?;
    if let Some(path) = &arguments.html {
        std::fs::write(path, report_page(&overview)?).map_err(cannot("write", path))?;
    }
    show(arguments.json, &overview, |out, overview| {
        writeln!(out, "history in {}", directory.display())?;
        print(out, overview)
    })
}

fn print(out: &mut impl Write, overview: &Overview) -> io::Result<()> {
    writeln!(out, "{} to {}\n", overview.from, overview.to)?;
    wrapped(out, &overview.summary.join(" "))?;
    if overview.people > 0 {
        writeln!(out, "{} requests of people", overview.people)?;
    }
    if overview.unlisted_would_refuse > 0 {
        writeln!(
            out,
            "{} requests of unlisted bots would be refused with `purposes: {{ other: enforce }}`, too",
            overview.unlisted_would_refuse
        )?;
    }
    writeln!(out)?;
    if overview.crawlers.is_empty() {
        return writeln!(out, "The history has no crawlers in this time.");
    }
    crawlers(out, overview)?;
    sites(out, overview)
}

/// A paragraph of lines that a terminal shows whole.
fn wrapped(out: &mut impl Write, text: &str) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line.clear();
        }
        line.extend([if line.is_empty() { "" } else { " " }, word]);
    }
    writeln!(out, "{line}")
}

fn crawlers(out: &mut impl Write, overview: &Overview) -> io::Result<()> {
    writeln!(
        out,
        "crawler                     identity         requests   robots.txt        broke       obeyed do not count would refuse      refused  first and last"
    )?;
    let mut all = Vec::new();
    for (identity, counts) in overview.by_identity.each() {
        if counts.requests() > 0 {
            all.push(CrawlerRow::new("all", identity, *counts));
        }
    }
    for CrawlerRow {
        id,
        identity,
        counts,
        compliance,
        broke,
        ..
    } in overview.crawlers.iter().take(ROWS).chain(&all)
    {
        let hits = if *identity == "impostor" {
            "-".to_owned()
        } else {
            counts.broke().to_string()
        };
        let obeyed = compliance.map_or("-".to_owned(), |share| format!("{share:.1} %"));
        let time = match broke {
            None => String::new(),
            Some((first, last)) if first == last => format!("  {first}"),
            Some((first, last)) => format!("  {first} to {last}"),
        };
        writeln!(
            out,
            "{id:<28}{identity:<12}{:>13}{:>13}{hits:>13}{obeyed:>13}{:>13}{:>13}{:>13}{time}",
            counts.requests(),
            counts.get("robots_txt"),
            counts.uncounted(),
            counts.get("would_refuse"),
            counts.get("refused")
        )?;
    }
    if let more @ 1.. = overview.crawlers.len().saturating_sub(ROWS) {
        writeln!(out, "and {more} more; --json has all of them")?;
    }
    Ok(())
}

/// A row of a site counts as the paragraph does: without impostors and unlisted bots, which have
/// columns of their own.
fn sites(out: &mut impl Write, overview: &Overview) -> io::Result<()> {
    writeln!(
        out,
        "\nsite                             requests        broke   unverified    impostors would refuse unlisted too      refused"
    )?;
    for row in &overview.sites {
        let counts = &row.counts;
        let by_identity = &row.by_identity;
        let numbers = [
            by_identity.own().requests(),
            by_identity.verified.broke(),
            by_identity.unverified.broke(),
            by_identity.impostor.requests(),
            counts.get("would_refuse"),
            row.unlisted_would_refuse,
            counts.get("refused"),
        ];
        write!(out, "{:<28}", row.site)?;
        numbers
            .iter()
            .try_for_each(|number| write!(out, "{number:>13}"))?;
        writeln!(out)?;
    }
    if overview.unclaimed > 0 {
        writeln!(out, "{:<28}{:>13}", "(no policy)", overview.unclaimed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn a_paragraph_is_wrapped_between_words() {
        let mut out = Vec::new();
        wrapped(&mut out, &"word ".repeat(50)).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.lines().all(|line| line.len() <= super::WIDTH),
            "{text}"
        );
        assert_eq!(text.matches("word").count(), 50);
    }
}
