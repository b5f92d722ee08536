//! The command `report`: shows which crawlers break the rules and which obey. It also shows which
//! disallowed requests are not counted as violations, for example because the crawler may still use
//! an older robots.txt. The numbers come from the running crawlgate or from a state directory.

use super::origin_copy::OriginCopies;
use super::policies::{load_policies, snapshot_without_pauses};
use super::{Failure, Result, control, create_parent, file_failure, now, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::admin::dashboard::apply_policies;
use crate::crawlers::Registry;
use crate::report::{
    PeriodBound, Report, ReportPeriod, render_csv, render_html, render_markdown, render_table,
    render_text,
};
use crate::state::history::RequestHistoryReader;
use crate::time::Timestamp;
use crate::yaml::nearest_word;
use std::path::PathBuf;
use std::time::Duration;

/// Show which crawlers break your rules, and what enforcement would block
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate report
  crawlgate report --since 12h --site shop
  crawlgate report --since 7d --crawler gptbot
  crawlgate report --since 30d --html report.html
  crawlgate report --since 2026-11-01 --until 2026-12-01 --csv
  crawlgate report --state /var/lib/crawlgate --json

Exit codes: 0 fine, 1 there is no such site, 2 wrong usage, 3 the state directory cannot be read.")]
pub struct Arguments {
    /// The beginning: 7d for the last seven days, a date, or a time in UTC like
    /// 2026-11-01T10:00:00Z [default: the last 30 days]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<PeriodBound>,
    /// The end, in the same form, not included [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<PeriodBound>,
    /// Only this site
    #[arg(long)]
    site: Option<String>,
    /// Only this crawler, by id or token; "other" means all unknown bots
    #[arg(long)]
    crawler: Option<String>,
    #[command(flatten)]
    output: ReportFlags,
    /// Read this state directory instead of asking the running crawlgate
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    control: control::ControlFlag,
}

/// The times of `--since` and `--until`. Fails if the end is not after the beginning.
pub fn period_bounds(
    bounds: [Option<PeriodBound>; 2],
    now: Timestamp,
) -> Result<[Option<Timestamp>; 2]> {
    let [since, until] = bounds.map(|bound| Some(bound?.moment(now)));
    if let (Some(since), Some(until)) = (since, until)
        && until <= since
    {
        fail!(Usage, "--until ({until}) is not after --since ({since})");
    }
    Ok([since, until])
}

/// The flags for the format of a report.
#[derive(clap::Args)]
pub struct ReportFlags {
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// A title for the HTML page and the Markdown, such as the name of a client
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print CSV: a row for each crawler and identity. "crawlgate audit" adds rows for what each
    /// crawler requested most (sections, parameters, paths) or against the rules, and for URLs of
    /// --sitemap that it never requested
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub csv: bool,
    /// Add a table of all crawlers with all counts
    #[arg(long, conflicts_with_all = ["json", "markdown", "csv"])]
    table: bool,
}

impl ReportFlags {
    /// Prints the report, and with `--html` also writes the page.
    pub fn print(&self, report: &mut Report) -> Result {
        report.title = self.title.clone().unwrap_or_default();
        let report = &*report;
        if let Some(path) = &self.html {
            create_parent(path)?;
            std::fs::write(path, render_html(report)?).map_err(file_failure("write", path))?;
        }
        if self.csv {
            // A printer for people would replace the CR of its lines.
            return super::print_bytes(render_csv(report)?.as_bytes());
        }
        let printed = if self.markdown {
            render_markdown(report)?
        } else if self.table {
            format!("{}\n\n{}", render_text(report)?, render_table(report)?)
        } else {
            render_text(report)?
        };
        print_result(self.json, report, printed)
    }
}

/// The history counts by the hour.
const HOUR: Duration = Duration::from_secs(3_600);
/// The history keeps 400 days.
const MAX_SINCE: Duration = Duration::from_secs(400 * 86_400);

/// Prints the report of the period of `--since` and `--until`.
pub fn run(arguments: &Arguments) -> Result {
    let now = now();
    let Arguments { since, until, .. } = *arguments;
    if let [Some(since), _] = period_bounds([since, until], now)?
        && !(HOUR..=MAX_SINCE).contains(&now.since(since))
    {
        let days = MAX_SINCE.as_secs() / 86_400;
        fail!(
            Usage,
            "--since: requests are counted by the hour and kept for {days} days; give 1h to {days}d, or a time as \
             long ago"
        );
    }
    let site = arguments.site.as_deref().unwrap_or_default();
    let crawler = arguments.crawler.as_deref().unwrap_or_default();
    let registry = Registry::builtin();
    let crawler = match registry.find(crawler) {
        Some(known) => &registry.get(known).id,
        None => crawler,
    };
    let answer = match arguments.state {
        Some(_) => None,
        None => arguments.control.send_if_running(&ControlRequest::Report {
            since,
            until,
            site: site.to_owned(),
            crawler: crawler.to_owned(),
        })?,
    };
    let mut report = match answer {
        Some(ControlResponse::Report(report)) => *report,
        Some(_) => return control::unexpected_response(),
        None => report_from_state(arguments, site, crawler)?,
    };
    if report.crawlers.is_empty()
        && !["", "other", "tool"].contains(&crawler)
        && registry.find(crawler).is_none()
    {
        return Err(unknown_crawler(crawler));
    }
    report.config_option = arguments.control.config.to_shell_option();
    arguments.output.print(&mut report)
}

/// The failure about a name that neither the registry nor a recorded request has.
pub fn unknown_crawler(name: &str) -> Failure {
    let near = nearest_word(name, Registry::builtin().tokens())
        .map(|near| format!(" Did you mean {near}?"))
        .unwrap_or_default();
    Failure::Usage(format!(
        "--crawler {name}: no known crawler and no request has this id or token.{near} \"crawlgate crawlers\" lists them"
    ))
}

/// Makes the report from a state directory.
fn report_from_state(arguments: &Arguments, site: &str, crawler: &str) -> Result<Report> {
    let state = arguments.state.as_deref();
    let directory = arguments.control.config.state_directory(state)?;
    let history = RequestHistoryReader::open(&directory)?;
    if state.is_none() {
        print_message!(
            "note: this report is from the state directory {}",
            directory.display()
        );
    }
    let Arguments { since, until, .. } = *arguments;
    let period = ReportPeriod::from_bounds(since, until, history.first_day()?, now());
    let mut report = Report::from_history(&history, period, site, crawler)?;
    if let Some(settings) = arguments.control.config.settings()?
        && let Ok(policies) = load_policies(&[settings.policies], &OriginCopies::default())
    {
        apply_policies(&mut report, &snapshot_without_pauses(policies));
        report.has_reservation &= crawler.is_empty();
    }
    Ok(report)
}
