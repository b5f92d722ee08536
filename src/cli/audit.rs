//! `audit`: reads the access logs of any web server, and reports which crawlers fetched URLs that
//! robots.txt disallows. [`networks`] reads the published networks of crawlers from the place that
//! `--lists` names, or from the state directory of a crawlgate.

use super::origin_copy::OriginFrom;
use super::report::ReportOutput;
use super::tester::RobotsTxt;
use super::{Failure, Result, now, places, policies, say, tester};
use crate::audit::{self, Input, Options, PublishedFile, PublishedNetworks, ReadSoFar, Rules};
use crate::crawlers::Registry;
use crate::facts::StoredFacts;
use crate::identity::refresh::{ListUpdate, UpdateResult, file_name, update_all};
use crate::identity::{KnownMeans, ListIndex, PublishedLists, is_directory};
use crate::logs::{FormatString, LineFormat};
use crate::numbers::{plural, thousands};
use crate::report::{ClientIdentity, CrawlerRow, LogFacts, Report};
use crate::settings::ListSettings;
use crate::state::{StateError, StateStore};
use crate::time::Timestamp;
use ipnet::IpNet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Report from access logs which crawlers fetched what robots.txt disallows
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Access logs in any order, plain, gzip or zstd; `-` for standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// A robots.txt (a file, or an http(s) URL) and since when it was in force; may be repeated
    #[arg(long, value_name = "FILE[@TIME]", conflicts_with = "policies")]
    robots: Vec<String>,
    /// Judge by the policies of this directory, as if they had been in force all the time
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// How long a crawler may use a copy of a robots.txt
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    grace: Duration,
    /// Judge only requests to this host; lines without a host are taken to be for it
    #[arg(long)]
    host: Option<String>,
    /// The form of the lines, as in nginx's log_format
    #[arg(long, value_name = "LOG_FORMAT")]
    log_format: Option<String>,
    /// A network of proxies whose addresses in a list (as in X-Forwarded-For) are not the client's;
    /// may be repeated
    #[arg(long, value_name = "CIDR", value_parser = super::run::network)]
    trusted_proxy: Vec<IpNet>,
    /// Exit with 3 if more of the lines cannot be read [default: 10%; with --fail-on, 0%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_unreadable: Option<f64>,
    /// Exit with 1 if there is any: `violation` counts as against the rules, `disallowed` is any
    /// request that the rules disallow
    #[arg(long, value_name = "KIND")]
    fail_on: Option<FailOn>,
    /// The published networks of crawlers: `yes` fetches them, or a directory or URL as in
    /// `identity.lists` [default: what crawlgate has in its state directory]
    #[arg(long, value_name = "FROM")]
    lists: Option<ListSettings>,
    #[command(flatten)]
    origin: OriginFrom,
    #[command(flatten)]
    output: ReportOutput,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FailOn {
    Violation,
    Disallowed,
}

const EXAMPLES: &str = "\
Examples:
  crawlgate audit --robots robots.txt access.log access.log.*.gz
  crawlgate audit --robots old.txt --robots robots.txt@2026-11-01T12:00:00Z access.log --html report.html
  crawlgate audit --policies policies --fail-on violation access.log
  zcat access.log.gz | crawlgate audit --robots https://shop.example - --json

Exit codes: 0 fine, 1 what --fail-on names was found, 2 wrong usage, 3 a file or too many lines could not be read.";

const NO_RULES: &str = "crawlgate audit needs the rules that the requests are judged by: give the site's robots.txt with \
                        `--robots robots.txt` (or its URL), or policies with `--policies DIR`. If the file was changed \
                        meanwhile, give each version with the time it came into force: `--robots FILE@2026-11-01`";

/// Audits the logs, prints the report, writes it as HTML if that is asked for, and fails if too
/// much is unreadable or `--fail-on` found something.
pub fn run(arguments: &Arguments) -> Result {
    let registry = Registry::builtin();
    let format = format(arguments.log_format.as_deref())?;
    let rules = rules(arguments, registry)?;
    let inputs: Vec<Input> = arguments.logs.iter().map(|log| input(log)).collect();
    if inputs
        .iter()
        .filter(|input| **input == Input::Stdin)
        .count()
        > 1
    {
        return Err(Failure::Usage(
            "`-` is given twice; standard input can be read once".into(),
        ));
    }
    let networks = networks(
        arguments.lists.as_ref(),
        arguments.origin.state.as_deref(),
        registry,
    )?;
    let options = Options {
        format,
        host: arguments.host.clone(),
        trusted_proxies: arguments.trusted_proxy.clone(),
        networks,
    };
    let mut progress = super::progress::Progress::new();
    let report = audit::audit(&inputs, &rules, registry, &options, &mut |read| {
        progress.tell(|seconds| line(read, seconds))
    });
    progress.say(|_| String::new());
    let report = report?;
    arguments.output.print(&report)?;
    match &report.log {
        Some(log) => result(&report, log, arguments),
        None => Ok(()),
    }
}

/// Share of the lines that may be unreadable where --max-unreadable does not say: rotation cuts a
/// line here and there.
const MAX_UNREADABLE: f64 = 0.1;

/// The outcome of the command by the report: fails for a damaged log, for too many unreadable
/// lines, for a log without user agents, and then, with `--fail-on`, for what it names and for
/// lines that may have hidden it.
fn result(report: &Report, log: &LogFacts, arguments: &Arguments) -> Result {
    if let Some(damaged) = log.damaged.first() {
        let message = damaged.message();
        return Err(Failure::CouldNot(format!(
            "{message} The report lacks what comes after; unpack the log again"
        )));
    }
    if log.unreadable > 0 && log.unreadable >= log.lines - log.server_messages {
        return unreadable();
    }
    readable(
        log,
        log.unreadable,
        arguments.max_unreadable.unwrap_or(MAX_UNREADABLE),
    )?;
    if let Some(name) = log.without_user_agents.first() {
        return Err(Failure::CouldNot(format!(
            "no request in {name} has a user agent, so all of them count as requests by tools. If its lines have user agents, \
             name their place with $http_user_agent in --log-format; if not, leave the log out"
        )));
    }
    let Some(fail_on) = arguments.fail_on else {
        return Ok(());
    };
    found(report, log, fail_on)?;
    nothing_lost(report, log, arguments.max_unreadable)
}

/// Fails where `lost` lines are more than a share (`max`, from 0 to 1) of all lines but messages of
/// servers.
fn readable(log: &LogFacts, lost: u64, max: f64) -> Result {
    let lines = log.lines - log.server_messages;
    if lost as f64 <= max * lines as f64 {
        return Ok(());
    }
    let reason = log
        .unreadable_reasons
        .iter()
        .max_by_key(|(_, number)| **number);
    let reason = reason.map_or_else(String::new, |(reason, _)| {
        format!(", most of them because of {reason}")
    });
    Err(Failure::CouldNot(format!(
        "{} of {} could not be read or judged{reason}. The report lacks them. Describe the lines with --log-format, or allow \
         more of them with --max-unreadable (now {} %)",
        thousands(lost),
        plural(thousands(lines), "line"),
        max * 100.0
    )))
}

/// A check that found nothing has passed only if nothing was lost in which there might be
/// something: fails for more lost lines than `max` (none without it), and if no request was judged
/// though the logs have lines.
fn nothing_lost(report: &Report, log: &LogFacts, max: Option<f64>) -> Result {
    readable(
        log,
        log.unreadable + log.no_user_agent + log.no_host,
        max.unwrap_or(0.0),
    )?;
    let rows = report.crawlers.iter();
    let judged = report.visitors + rows.map(|row| row.counts.requests()).sum::<u64>();
    if judged == 0 && (log.other_hosts > 0 || log.server_messages > 0) {
        return Err(Failure::CouldNot(format!(
            "no request was judged: {} are to other hosts, and {} are messages of servers. Compare the hosts of the log \
             with --host or the policies, and give the access log",
            plural(thousands(log.other_hosts), "request"),
            plural(thousands(log.server_messages), "line"),
        )));
    }
    Ok(())
}

/// Fails with exit code 1 if the report has what `fail_on` names: requests that count as against
/// the rules, whoever sent them (`Violation`), or any disallowed ones (`Disallowed`).
fn found(report: &Report, log: &LogFacts, fail_on: FailOn) -> Result {
    let broke = |is_meant: fn(&CrawlerRow) -> bool| -> u64 {
        let rows = report.crawlers.iter().filter(|row| is_meant(row));
        rows.map(|row| row.counts.broke()).sum()
    };
    let all = broke(|_| true);
    Err(Failure::Found(match fail_on {
        FailOn::Violation if all > 0 => format!(
            "{} against the rules ({} by verified crawlers, {} not verified, {} by clients that probably pretend, {} by \
             unknown bots), and --fail-on violation is set",
            plural(thousands(all), "request"),
            thousands(broke(|row| row.identity == Some(ClientIdentity::Verified))),
            thousands(broke(|row| row.identity == Some(ClientIdentity::Unverified))),
            thousands(broke(
                |row| row.identity == Some(ClientIdentity::SuspectedImpostor)
            )),
            thousands(broke(|row| row.identity.is_none())),
        ),
        FailOn::Disallowed if log.disallowed > 0 => format!(
            "{} disallowed, and --fail-on disallowed is set",
            plural(thousands(log.disallowed), "request")
        ),
        _ => return Ok(()),
    }))
}

/// No line of the logs could be read.
pub fn unreadable() -> Result {
    let problem =
        "none of the lines could be read; describe them with --log-format, like nginx's log_format";
    Err(Failure::CouldNot(problem.into()))
}

/// Standard input for `-`, else the file of this name.
pub fn input(log: &Path) -> Input {
    if log.as_os_str() == "-" {
        Input::Stdin
    } else {
        Input::File(log.to_owned())
    }
}

/// The form of the lines: that of `--log-format`, or detected for each log without it.
pub fn format(format: Option<&str>) -> Result<LineFormat> {
    let Some(format) = format else {
        return Ok(LineFormat::Detect);
    };
    let pattern = FormatString::parse(format)
        .map_err(|error| Failure::Usage(format!("--log-format: {error}")))?;
    Ok(LineFormat::FormatString(pattern))
}

/// The rules that requests are judged by: of the policies, else of the robots.txt files. One of
/// them must be given.
fn rules(arguments: &Arguments, registry: &'static Registry) -> Result<Rules> {
    if let Some(directory) = &arguments.policies {
        return by_policies(directory, &arguments.origin);
    }
    if arguments.robots.is_empty() {
        return Err(Failure::Usage(NO_RULES.into()));
    }
    let files = arguments
        .robots
        .iter()
        .map(|given| published(given))
        .collect::<Result<Vec<_>>>()?;
    Rules::published(files, arguments.grace, registry)
        .map_err(|error| Failure::Usage(format!("--robots: {error}")))
}

/// The rules of a policy directory, without pauses. Prints the findings; fails if a policy has
/// errors.
fn by_policies(directory: &Path, origin: &OriginFrom) -> Result<Rules> {
    let origins = origin.read()?;
    let loaded = policies::load(&[directory.to_owned()], &origins)?;
    policies::report(&loaded, true);
    if loaded.iter().any(|file| file.site.is_none()) {
        return Err(Failure::Findings);
    }
    origins.say_assumptions(policies::sites(&loaded));
    Ok(Rules::policies(policies::without_pauses(loaded)))
}

/// Reads a file or URL of `--robots`, with the time behind its last `@`. An `@` without a time is
/// part of the name if such a file exists, or in a URL.
fn published(given: &str) -> Result<PublishedFile> {
    let (source, since) = match given.rsplit_once('@') {
        Some((source, time)) => match Timestamp::parse(time) {
            Some(since) => (source, Some(since)),
            None if Path::new(given).exists() || given.contains("://") => (given, None),
            None => {
                let example = "2026-11-01 or 2026-11-01T12:00:00Z";
                return Err(Failure::Usage(format!(
                    "--robots {given}: `{time}` is no time; write it like {example}"
                )));
            }
        },
        None => (given, None),
    };
    if source == "-" {
        return Err(Failure::Usage(
            "--robots takes a file or a URL; standard input is for logs".into(),
        ));
    }
    let RobotsTxt { name, bytes, .. } = tester::rules(source, "judge by")?;
    Ok(PublishedFile { name, bytes, since })
}

/// The line of progress: how much is read, how fast, and, if the size is known, a bar and the time
/// left.
fn line(read: ReadSoFar, seconds: f64) -> String {
    let rate = (read.lines as f64 / seconds) as u64;
    let lines = format!(
        "{} lines, {} a second",
        thousands(read.lines),
        thousands(rate)
    );
    let Some(size) = read.size.filter(|size| *size > 0) else {
        return lines;
    };
    let part = (read.taken as f64 / size as f64).clamp(0.001, 1.0);
    let done = (part * 20.0) as usize;
    let left = (seconds / part - seconds) as u64;
    format!(
        "[{}{}] {:>3.0} %  {lines}, {left} s left",
        "#".repeat(done),
        " ".repeat(20 - done),
        part * 100.0
    )
}

/// A percentage like `10%`, `10` or `0.5%`, as a share from 0 to 1.
fn percent(written: &str) -> Result<f64, &'static str> {
    let number = written
        .strip_suffix('%')
        .unwrap_or(written)
        .trim_end()
        .parse::<f64>()
        .ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number
        .map(|number| number / 100.0)
        .ok_or("write a percentage from 0% to 100%")
}

/// A duration as in policies.
pub fn duration(written: &str) -> Result<Duration, &'static str> {
    crate::yaml::parse_duration(written).ok_or("not a duration like 24h or 30m")
}

/// The networks from where `--lists` says, else from the state directory (`state`, or the one of
/// this machine). `None` if there are none. Without both flags an unreadable state directory only
/// gives a message.
fn networks(
    lists: Option<&ListSettings>,
    state: Option<&Path>,
    registry: &Registry,
) -> Result<Option<PublishedNetworks>> {
    match (lists, state) {
        (Some(ListSettings::Off), _) => Ok(None),
        (Some(from), _) => take(from, registry).map(Some),
        (None, Some(directory)) => Ok(stored(directory, registry)?),
        (None, None) => {
            let Some(directory) = places::state() else {
                return Ok(None);
            };
            Ok(stored(&directory, registry).unwrap_or_else(|error| {
                say(&format!("crawlgate: {error}; impostors are not looked for"));
                None
            }))
        }
    }
}

/// The networks that a crawlgate stored in its state directory; `None` if it stored none.
fn stored(directory: &Path, registry: &Registry) -> Result<Option<PublishedNetworks>, StateError> {
    let facts = StateStore::read(directory, now())?;
    let (means, lists) = lists(registry, &facts);
    Ok(PublishedNetworks::new(means, lists, now()))
}

/// The means of proof of the registry, and the published lists, filled from these facts.
fn lists(registry: &Registry, facts: &StoredFacts) -> (KnownMeans, PublishedLists) {
    let means = KnownMeans::of(registry);
    let lists = PublishedLists::new(&means, &facts.network_lists, StateStore::in_memory_only().0);
    (means, lists)
}

/// Fetches all lists from their operators, a mirror or a directory, and says how many could not be
/// fetched. Fails if there is none at all.
fn take(from: &ListSettings, registry: &Registry) -> Result<PublishedNetworks> {
    let (means, lists) = lists(registry, &StoredFacts::default());
    let wanted: Vec<ListIndex> = lists
        .all()
        .filter(|(_, url)| !is_directory(url))
        .map(|(list, _)| list)
        .collect();
    let updates = update_all(&lists, &wanted, from, now());
    let updates: Vec<ListUpdate> = updates
        .into_iter()
        .filter_map(|(_, update)| update)
        .collect();
    let failed: Vec<&ListUpdate> = updates
        .iter()
        .filter(|update| update.result.is_failure())
        .collect();
    if let Some(ListUpdate { url, error, .. }) = failed.first() {
        say(&format!(
            "crawlgate: {} of {} lists could not be had, the first is {url}: {}. Their crawlers stay unverified",
            failed.len(),
            updates.len(),
            error.as_deref().unwrap_or_default()
        ));
    }
    PublishedNetworks::new(means, lists, now()).ok_or_else(|| {
        let absent = updates
            .iter()
            .filter(|update| update.result == UpdateResult::Absent);
        let absent = absent.min_by_key(|update| update.url.len());
        Failure::CouldNot(match (from, absent) {
            (ListSettings::Directory(directory), Some(absent)) => format!(
                "{} has none of the lists. A list is below the directory under its URL, like {}",
                directory.display(),
                directory.join(file_name(&absent.url)).display()
            ),
            _ => "none of the lists of --lists could be had".to_owned(),
        })
    })
}
