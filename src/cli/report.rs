//! `report`: shows which crawlers break the rules, which obey, and what does not count. It asks the
//! running crawlgate, or reads the state directory of one that ran.

use super::places::StateDirectory;
use super::{Failure, Result, cannot, control, now, say, show};
use crate::admin::control::{Request, Response};
use crate::report::{Period, Report, html, markdown, table, text};
use crate::state::history::HistoryReader;
use std::path::PathBuf;
use std::time::Duration;

/// Show which crawlers break your rules, and what enforcement would block
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How far back at least: whole days from midnight UTC on, or hours (up to 7 days) from the
    /// full hour on [default: what there is, up to 30 days]
    #[arg(long, value_name = "DURATION", value_parser = super::audit::duration)]
    since: Option<Duration>,
    /// Only this site
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    #[command(flatten)]
    output: ReportOutput,
    #[command(flatten)]
    state: StateDirectory,
    #[command(flatten)]
    control: control::Socket,
}

/// How a report is printed.
#[derive(clap::Args)]
pub struct ReportOutput {
    /// Write one HTML page into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Add every crawler with all its counts
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    table: bool,
}

impl ReportOutput {
    /// Writes the page if one is wanted, and prints the report.
    pub fn print(&self, report: &Report) -> Result {
        if let Some(path) = &self.html {
            std::fs::write(path, html(report)?).map_err(cannot("write", path))?;
        }
        let printed = if self.markdown {
            markdown(report)?
        } else if self.table {
            format!("{}\n\n{}", text(report)?, table(report)?)
        } else {
            text(report)?
        };
        show(self.json, report, printed)
    }
}

const EXAMPLES: &str = "\
Examples:
  crawlgate report
  crawlgate report --since 12h --site shop
  crawlgate report --since 30d --html report.html
  crawlgate report --state /var/lib/crawlgate --json

Exit codes: 0 fine, 1 there is no such site, 2 wrong usage, 3 the history cannot be read.";

/// The shortest time that is counted, and the longest that is kept.
const HOUR: Duration = Duration::from_secs(3_600);
const MAX_SINCE: Duration = Duration::from_secs(400 * 86_400);

/// Prints the report of the last `--since` (an hour up to `MAX_SINCE`).
pub fn run(arguments: &Arguments) -> Result {
    if let Some(since) = arguments.since
        && !(HOUR..=MAX_SINCE).contains(&since)
    {
        let days = MAX_SINCE.as_secs() / 86_400;
        return Err(Failure::Usage(format!(
            "--since: the history counts by the hour and has the last {days} days, so give 1h to {days}d"
        )));
    }
    let site = arguments.site.as_deref().unwrap_or_default();
    let answer = match arguments.state.given() {
        Some(_) => None,
        None => arguments.control.ask_if_running(&Request::Report {
            since: arguments.since.map(|since| since.as_secs()),
            site: site.to_owned(),
        })?,
    };
    let report = match answer {
        Some(Response::Report(report)) => *report,
        Some(_) => return control::unexpected(),
        None => stored(arguments, site)?,
    };
    arguments.output.print(&report)
}

/// The report of what a state directory has.
fn stored(arguments: &Arguments, site: &str) -> Result<Report> {
    let directory = arguments.state.path()?;
    if arguments.state.given().is_none() {
        let directory = directory.display();
        say(&format!(
            "crawlgate: no crawlgate answers here; this is what {directory} has"
        ));
    }
    let history = HistoryReader::open(&directory)?;
    let period = match arguments.since {
        Some(since) => Period::since(since, now()),
        None => Period::fitting(history.first_day()?, now()),
    };
    Ok(Report::from_history(&history, period, site)?)
}
