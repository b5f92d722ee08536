//! `audit`: what crawlers did by the access logs of any server.

use super::origin_copy::OriginFrom;
use super::{Failure, networks, policies, print_json, tester};
use crate::audit::{self, Input, Options, Progress, PublishedFile, Report, Rules, thousands};
use crate::crawlers::Registry;
use crate::logs::{FormatString, LineFormat, printable};
use crate::policy::{SiteEntry, Snapshot};
use crate::robots::File;
use crate::settings::ListSettings;
use crate::time::Timestamp;
use clap::ValueEnum;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Report from access logs which crawlers fetched what robots.txt disallows
#[derive(Debug, clap::Args)]
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
    /// Exit with 1 if there is any: `violation` is a certain one, `disallowed` any at all
    #[arg(long, value_name = "KIND")]
    fail_on: Option<FailOn>,
    /// Write a report as one HTML page into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The published networks of crawlers: `yes` fetches them, or a directory or URL as in `identity.lists`
    /// [default: what crawlgate has in its state directory]
    #[arg(long, value_name = "FROM")]
    lists: Option<ListSettings>,
    #[command(flatten)]
    origin: OriginFrom,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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

Exit codes: 0 fine, 1 what --fail-on names was found, 2 wrong usage, 3 a file could not be read.";

const NO_RULES: &str = "crawlgate audit needs the rules that the requests are judged by: give the site's robots.txt with \
                        `--robots robots.txt` (or its URL), or policies with `--policies DIR`. If the file was changed \
                        meanwhile, give each version with the time it came into force: `--robots FILE@2026-11-01`";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let registry = Registry::builtin();
    let format = format(arguments.log_format.as_deref())?;
    let rules = rules(arguments, registry)?;
    let inputs: Vec<Input> = arguments.logs.iter().map(|log| input(log)).collect();
    if inputs.iter().filter(|input| **input == Input::Stdin).count() > 1 {
        return Err(Failure::Usage("`-` is given twice; standard input can be read once".into()));
    }
    let networks = networks::read(arguments.lists.as_ref(), arguments.origin.state(), registry)?;
    let options = Options { format, host: arguments.host.clone(), networks };
    let mut bar = ProgressBar::new();
    let report = audit::audit(&inputs, &rules, registry, &options, &mut |progress| bar.show(progress));
    bar.clear();
    let report = report.map_err(|error| Failure::CouldNot(error.to_string()))?;
    if let Some(path) = &arguments.html {
        std::fs::write(path, audit::page(&report)).map_err(|error| {
            Failure::CouldNot(format!("cannot write {}: {error}", printable(path.as_os_str().as_encoded_bytes())))
        })?;
    }
    match arguments.json {
        true => print_json(&report)?,
        false => audit::table(&mut io::stdout().lock(), &report)?,
    }
    result(&report, arguments.fail_on)
}

fn result(report: &Report, fail_on: Option<FailOn>) -> Result<(), Failure> {
    if let Some(damaged) = report.damaged.first() {
        let message = damaged.message();
        return Err(Failure::CouldNot(format!("{message} The report lacks what comes after; unpack the log again")));
    }
    if report.lines > 0 && report.unreadable == report.lines {
        let problem = "none of the lines could be read; describe them with --log-format, like nginx's log_format";
        return Err(Failure::CouldNot(problem.into()));
    }
    let found = match fail_on {
        None => 0,
        Some(FailOn::Violation) => report.certain,
        Some(FailOn::Disallowed) => report.disallowed,
    };
    let Some(kind) = fail_on.filter(|_| found > 0) else { return Ok(()) };
    let found = thousands(found);
    Err(Failure::Found(match kind {
        FailOn::Violation => {
            let of = &report.identities;
            let named = [of.verified, of.unverified, of.suspected_impostor].map(|counts| counts.certain);
            let unlisted = thousands(report.certain - named.iter().sum::<u64>());
            let [verified, unverified, impostors] = named.map(thousands);
            format!(
                "{found} disallowed requests are certain ({verified} of verified crawlers, {unverified} of unverified \
                 ones, {impostors} of suspected impostors, {unlisted} of unlisted bots), and --fail-on violation is set"
            )
        }
        FailOn::Disallowed => format!("{found} requests are disallowed, and --fail-on disallowed is set"),
    }))
}

pub(super) fn input(log: &std::path::Path) -> Input {
    if log.as_os_str() == "-" { Input::Stdin } else { Input::File(log.to_owned()) }
}

pub(super) fn format(format: Option<&str>) -> Result<LineFormat, Failure> {
    match format {
        None => Ok(LineFormat::Detect),
        Some(format) => match FormatString::parse(format) {
            Ok(pattern) => Ok(LineFormat::FormatString(pattern)),
            Err(error) => Err(Failure::Usage(format!("--log-format: {error}"))),
        },
    }
}

fn rules(arguments: &Arguments, registry: &'static Registry) -> Result<Rules, Failure> {
    if let Some(directory) = &arguments.policies {
        return by_policies(directory, &arguments.origin);
    }
    if arguments.robots.is_empty() {
        return Err(Failure::Usage(NO_RULES.into()));
    }
    let files = arguments.robots.iter().map(|given| published(given)).collect::<Result<Vec<_>, Failure>>()?;
    Rules::published(files, arguments.grace, registry).map_err(|error| Failure::Usage(format!("--robots: {error}")))
}

fn by_policies(directory: &std::path::Path, origin: &OriginFrom) -> Result<Rules, Failure> {
    let origins = origin.read()?;
    let loaded = policies::load(&[directory.to_owned()], &origins)?;
    policies::report(&loaded, true);
    if loaded.iter().any(|file| file.site.is_none()) {
        return Err(Failure::Findings);
    }
    origins.say_assumptions(loaded.iter().filter_map(|file| file.site.as_deref()));
    // Without pauses: those are about the time to come.
    let sites = loaded.into_iter().filter_map(|file| file.site);
    let entries = sites.map(|site| SiteEntry::new(site, super::now())).collect();
    Ok(Rules::policies(Snapshot::new(entries, 0)))
}

/// A file or URL, with the time behind its last `@`.
fn published(given: &str) -> Result<PublishedFile, Failure> {
    let (source, since) = match given.rsplit_once('@') {
        Some((source, time)) => match Timestamp::parse(time) {
            Some(since) => (source, Some(since)),
            None if std::path::Path::new(given).exists() || given.contains("://") => (given, None),
            None => {
                let example = "2026-11-01 or 2026-11-01T12:00:00Z";
                return Err(Failure::Usage(format!("--robots {given}: `{time}` is no time; write it like {example}")));
            }
        },
        None => (given, None),
    };
    if source == "-" {
        return Err(Failure::Usage("--robots takes a file or a URL; standard input is for logs".into()));
    }
    match tester::read(source)? {
        tester::Source::File { name, bytes, .. } => {
            tester::warn_unless_robots_txt(&name, &File::parse(&*bytes));
            Ok(PublishedFile { name, bytes, since })
        }
        // A site without the file has no rules (RFC 9309 section 2.3.1.3).
        tester::Source::Status { allowed: true, .. } => {
            Ok(PublishedFile { name: source.to_owned(), bytes: Vec::new(), since })
        }
        tester::Source::Status { status, allowed: false } => {
            Err(Failure::CouldNot(format!("{source} answered {status}; there is no file to judge by")))
        }
    }
}

/// One line on standard error, on a terminal only.
struct ProgressBar {
    is_shown: bool,
    began: Instant,
    last: Option<Instant>,
}

impl ProgressBar {
    fn new() -> ProgressBar {
        ProgressBar { is_shown: io::stderr().is_terminal(), began: Instant::now(), last: None }
    }

    fn show(&mut self, progress: Progress) {
        let now = Instant::now();
        let is_due = self.last.is_none_or(|last| now - last > Duration::from_millis(200));
        if !self.is_shown || !is_due {
            return;
        }
        self.last = Some(now);
        let _ = write!(io::stderr(), "\r\x1b[K{}", line(progress, now - self.began));
    }

    fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// How far it is, how fast it goes, and how long it will take.
fn line(progress: Progress, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(0.001);
    let rate = (progress.lines as f64 / seconds) as u64;
    let lines = format!("{} lines, {} a second", thousands(progress.lines), thousands(rate));
    let Some(size) = progress.size.filter(|size| *size > 0) else { return lines };
    let part = (progress.taken as f64 / size as f64).clamp(0.001, 1.0);
    let done = (part * 20.0) as usize;
    let left = Duration::from_secs_f64(seconds / part - seconds).as_secs();
    format!("[{}{}] {:>3.0} %  {lines}, {left} s left", "#".repeat(done), " ".repeat(20 - done), part * 100.0)
}

/// A duration as in policies.
pub(super) fn duration(written: &str) -> Result<Duration, NoDuration> {
    crate::yaml::parse_duration(written).ok_or(NoDuration)
}

#[derive(Debug, thiserror::Error)]
#[error("not a duration like 24h or 30m")]
pub(super) struct NoDuration;
