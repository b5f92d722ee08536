//! `report`: summarises which crawlers obeyed the rules and which broke them, from the counts and
//! samples of requests in a state directory. The crawlgate that writes the directory may be
//! running.

use super::places::StateDirectory;
use super::{Failure, Result, cannot, now, show};
use crate::admin::dashboard::{CrawlerRow, Overview, Period, report_page};
use crate::state::history::HistoryReader;
use askama::Template;
use std::io::Write;
use std::path::{Path, PathBuf};
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

/// Prints the history of the last `--since` (an hour up to `MOST`) from the state directory; with
/// `--html` also writes it as a page into that file.
pub fn run(arguments: &Arguments) -> Result {
    let directory = &arguments.state.path()?;
    if arguments.since < HOUR || arguments.since > MOST {
        let days = MOST.as_secs() / 86_400;
        return Err(Failure::Usage(format!(
            "--since: the history counts by the hour and has the last {days} days, so give 1h to {days}d"
        )));
    }
    let period = Period::since(arguments.since, now());
    let overview = Overview::read(&HistoryReader::open(directory)?, period)?;
    if let Some(path) = &arguments.html {
        std::fs::write(path, report_page(&overview)?).map_err(cannot("write", path))?;
    }
    show(arguments.json, &overview, |out, overview| {
        let text = ReportText {
            directory,
            overview,
        };
        writeln!(out, "{text}")
    })
}

#[derive(Template)]
#[template(path = "report.txt")]
struct ReportText<'a> {
    directory: &'a Path,
    overview: &'a Overview,
}

impl ReportText<'_> {
    /// The sums over all crawlers, by identity.
    fn all(&self) -> Vec<CrawlerRow> {
        let mut all = Vec::new();
        for (identity, counts) in self.overview.by_identity.iter() {
            if counts.requests() > 0 {
                all.push(CrawlerRow::new("all", identity, *counts));
            }
        }
        all
    }
}

/// A paragraph in lines that a terminal shows whole.
fn wrapped(text: String) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines += word;
        width += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn a_paragraph_is_wrapped_between_words() {
        let text = wrapped("word ".repeat(50));
        assert!(
            text.lines().all(|line| line.len() <= super::WIDTH),
            "{text}"
        );
        assert_eq!(text.matches("word").count(), 50);
    }
}
