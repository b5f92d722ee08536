//! `report`: what crawlers did, from the history in a state directory. The crawlgate of that directory may be running.

use super::{Failure, now, print_json};
use crate::admin::dashboard::{Overview, Period, report_page};
use crate::crawlers::Registry;
use crate::state::history::{HistoryError, HistoryReader};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Report from the history which crawlers kept to the rules, and what enforcing would do
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How far back: days, or hours up to a day
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = super::audit::duration)]
    since: Duration,
    /// The state directory
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
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
  crawlgate report --since 30d --html report.html
  crawlgate report --state /var/lib/crawlgate --json

Exit codes: 0 fine, 2 wrong usage, 3 the history cannot be read.";

/// Crawlers of the table; `--json` has all.
const ROWS: usize = 40;
/// Days that are kept.
const MOST_DAYS: u64 = 400;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let directory = match &arguments.state {
        Some(directory) => directory.clone(),
        None => super::places::state().ok_or_else(|| {
            Failure::Usage("the default state directory is not known here; name one with --state DIR".into())
        })?,
    };
    let days = arguments.since.as_secs().div_ceil(86_400);
    if days == 0 || days > MOST_DAYS {
        return Err(Failure::Usage(format!(
            "--since: the history has the last {MOST_DAYS} days, so give 1d to {MOST_DAYS}d"
        )));
    }
    let period = Period::days(i64::try_from(days).unwrap_or(1), now());
    let could_not = |error: HistoryError| Failure::CouldNot(error.to_string());
    let history = HistoryReader::open(&directory).map_err(could_not)?;
    let overview = Overview::read(&history, period, Registry::builtin()).map_err(could_not)?;
    if let Some(path) = &arguments.html {
        let page = report_page(&overview).map_err(|error| Failure::CouldNot(error.to_string()))?;
        std::fs::write(path, page)
            .map_err(|error| Failure::CouldNot(format!("cannot write {}: {error}", path.display())))?;
    }
    if arguments.json {
        return print_json(&overview);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "history in {}", directory.display())?;
    Ok(table(&mut out, &overview)?)
}

fn table(out: &mut impl Write, overview: &Overview) -> std::io::Result<()> {
    let percent = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.1} %"));
    let totals = &overview.totals;
    writeln!(out, "{} to {}", overview.from, overview.to)?;
    writeln!(
        out,
        "{} requests of crawlers: {} broke the rules, {} kept to them; {} would be refused if enforced, {} were \
         refused; {} requests of people",
        totals.requests(),
        totals.broke(),
        percent(totals.compliance()),
        overview.would_refuse(),
        totals.get("refused"),
        overview.people
    )?;
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
    let head = ["crawler", "requests", "robots.txt", "broke", "kept", "unproven", "would refuse", "refused"];
    let [crawler, rest @ ..] = head;
    write!(out, "{crawler:<28}")?;
    rest.iter().try_for_each(|title| write!(out, "{title:>13}"))?;
    writeln!(out, "  first and last")?;
    for row in overview.crawlers.iter().take(ROWS) {
        let counts = &row.counts;
        write!(out, "{:<28}{:>13}{:>13}", row.id, counts.requests(), counts.get("robots_txt"))?;
        write!(out, "{:>13}{:>13}{:>13}", counts.broke(), percent(row.compliance), counts.get("unproven"))?;
        write!(out, "{:>13}{:>13}", counts.get("would_refuse"), counts.get("refused"))?;
        match &row.broke {
            None => writeln!(out)?,
            Some((first, last)) if first == last => writeln!(out, "  {first}")?,
            Some((first, last)) => writeln!(out, "  {first} to {last}")?,
        }
    }
    if let Some(more) = overview.crawlers.len().checked_sub(ROWS).filter(|more| *more > 0) {
        writeln!(out, "and {more} more; --json has all of them")?;
    }
    writeln!(out, "\n{:<28}{:>13}{:>13}{:>13}{:>13}", "site", "requests", "broke", "would refuse", "refused")?;
    for row in &overview.sites {
        let counts = &row.counts;
        write!(out, "{:<28}{:>13}{:>13}", row.site, counts.requests(), counts.broke())?;
        writeln!(out, "{:>13}{:>13}", counts.get("would_refuse"), counts.get("refused"))?;
    }
    Ok(())
}
