//! The command `evidence`, for the evidence log of what crawlers did. It exports a case (an excerpt
//! of the log as one file, for a third party), and verifies the file of a case. It also deletes
//! personal values from the log, replaces the key that signs the log, and shows the state of the
//! log. The proxy may keep running during all of this.

use super::control::{ConfigFlag, StateFlag};
use super::report::unknown_crawler;
use super::{
    Failure, Result, file_failure, findings_failure_unless, print_result, print_text,
    write_new_file,
};
use crate::crawlers::Registry;
use crate::evidence::{
    CaseFindings, CaseScope, ExportedLog, LogStatus, OpenEvidenceLog, VerifyKey, build_case,
    delete_personal_values, ensure_checkpoints, fetch_timestamps, log_status, open_existing,
    read_exported_logs, rotate_key, verify_case,
};
use crate::files;
use crate::numbers::plural;
use crate::state::StateStore;
use crate::time::Timestamp;
use askama::Template;
use clap::builder::NonEmptyStringValueParser;
use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAX_CASE_BYTES: u64 = 1024 * 1024 * 1024;

/// About how long a crawler may use a robots.txt from before the observation.
const DAY: Duration = Duration::from_secs(86_400);

/// Export evidence about a crawler as one file, and verify such a file
#[derive(clap::Args)]
#[command(
    after_help = "\
Examples:
  crawlgate evidence status
  crawlgate evidence export --site shop.example --crawler gptbot --from 2026-11-01 -o case.tar
  crawlgate evidence verify case.tar --key log.vkey
  crawlgate evidence forget --address 203.0.113.5
  crawlgate evidence forget --before 2026-01-01 --state /var/lib/crawlgate

Exit codes: 0 fine, 1 the case is not valid, 2 wrong usage, 3 a file cannot be read or written.",
    disable_help_subcommand = true
)]
pub struct Arguments {
    #[command(subcommand)]
    action: EvidenceCommand,
}

#[derive(clap::Subcommand)]
enum EvidenceCommand {
    /// Write a case: what a crawler did on a site, and what the site published, with the proof
    Export(ExportArguments),
    /// Verify a case with the public key of its log
    Verify(VerifyArguments),
    /// Delete personal values; the log can still be verified
    Forget(ForgetArguments),
    /// Give the log a new key, signed by the old one
    RotateKey(StateFlag),
    /// Show the public key of the log and what the log contains
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateFlag,
    },
}

#[derive(clap::Args)]
struct ExportArguments {
    /// The site
    #[arg(long)]
    site: String,
    /// The crawler, by id, name or token [default: a case of each crawler in the log]
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    crawler: Option<String>,
    /// From this time on (UTC), like 2026-11-01 or 2026-11-01T06:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Timestamp,
    /// Up to this time (UTC), not including it [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,
    /// The case, a new file, or a directory for it; without --crawler, a directory for all cases
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The state directory; repeat it for other instances on this machine
    #[arg(long, value_name = "DIR")]
    state: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigFlag,
    /// Add a case that was exported on another machine; may be repeated
    #[arg(long, value_name = "FILE", requires = "crawler")]
    join: Vec<PathBuf>,
}

impl ExportArguments {
    /// The file for the case of a crawler.
    fn case_path(&self, crawler: &str) -> PathBuf {
        let mut path = self.output.clone();
        let is_directory = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if self.crawler.is_none() || is_directory {
            path.push(format!("{crawler}.tar"));
        }
        path
    }
}

#[derive(clap::Args)]
struct VerifyArguments {
    /// The case
    file: PathBuf,
    /// The public key of the log, or a file with it; repeat it for each log of the case
    #[arg(long, required = true)]
    key: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("values").args(["address", "before"]).required(true).multiple(true))]
struct ForgetArguments {
    /// Only values of requests from this address
    #[arg(long)]
    address: Option<IpAddr>,
    /// Only values from before this time, like 2026-11-01
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: Option<Timestamp>,
    #[command(flatten)]
    state: StateFlag,
}

/// Parses a date or a time from 1970 on.
fn parse_time(text: &str) -> Result<Timestamp, &'static str> {
    let moment = Timestamp::parse(text).filter(|moment| moment.0 >= 0);
    moment.ok_or("write a date or a time, like 2026-11-23 or 2026-11-23T06:00:00Z")
}

/// Converts a time that is not before 1970 (see [`parse_time`]).
fn system_time(moment: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(moment.0.unsigned_abs())
}

pub fn run(arguments: &Arguments) -> Result {
    use EvidenceCommand::*;

    match &arguments.action {
        Export(arguments) => run_export(arguments),
        Verify(arguments) => run_verify(arguments),
        Forget(arguments) => run_forget(arguments),
        RotateKey(state) => run_rotate_key(state),
        Status { json, state } => run_status(*json, state),
    }
}

/// Writes a case of one crawler, or of each crawler of the site, from the logs on this machine and the
/// joined cases. Wrong arguments are found before a checkpoint is signed, also if all files exist. A failed
/// case does not stop the others; the last failure is returned. Timestamps are fetched now; a missing
/// one gives only a message.
fn run_export(arguments: &ExportArguments) -> Result {
    let now = SystemTime::now();
    let mut span = CaseScope {
        site: arguments.site.clone(),
        crawler: String::new(),
        from: system_time(arguments.from),
        to: arguments.to.map_or(now, system_time).min(now),
    };
    if span.from >= now {
        fail!(Usage, "--from is in the future");
    }
    if span.from >= span.to {
        fail!(Usage, "--from is not before --to");
    }
    let directories = match arguments.state.as_slice() {
        [] => vec![arguments.config.state_directory(None)?],
        given => given.to_vec(),
    };
    let mut logs = Vec::new();
    let mut crawlers = BTreeSet::new();
    for directory in &directories {
        let log = open_existing(directory)?;
        let mut chains = log_status(&log)?.chains;
        // Without a crawler, a chain is about the site or the log.
        chains.retain(|chain| chain.site == span.site && !chain.crawler.is_empty());
        crawlers.extend(chains.into_iter().map(|chain| chain.crawler));
        print_first_days(directory, &span.site, arguments.from)?;
        logs.push(log);
    }
    if crawlers.is_empty() && arguments.join.is_empty() {
        fail!(
            Usage,
            "the evidence log has no crawler on a site {}: crawlgate evidence status lists what it has",
            span.site
        );
    }
    let mut joined = Vec::new();
    for file in &arguments.join {
        let read = read_case(file)
            .and_then(|archive| read_exported_logs(&archive).map_err(io::Error::other));
        joined.extend(read.map_err(file_failure("open", file))?);
    }
    if let Some(name) = &arguments.crawler {
        let registry = Registry::builtin();
        let known = registry.find(name).map(|index| &registry.get(index).id);
        if known.is_none() && joined.is_empty() && !crawlers.contains(name) {
            return Err(unknown_crawler(name));
        }
        let crawler = known.unwrap_or(name);
        crawlers = BTreeSet::from([crawler.clone()]);
    }
    let mut names = crawlers.iter();
    if names.all(|name| arguments.case_path(name).symlink_metadata().is_ok()) {
        fail!(
            Runtime,
            "{}: the case exists already",
            arguments.output.display()
        );
    }
    // From here on the logs change.
    for log in &mut logs {
        ensure_checkpoints(log, &span, now)?;
        add_timestamps(log, now)?;
        print_message!(
            "the public key of the log is {}",
            log.key.verify_key().to_line()
        );
    }
    let mut outcome = Ok(());
    for crawler in crawlers {
        let output = arguments.case_path(&crawler);
        span.crawler = crawler;
        if let Err(failure) = write_case(&mut logs, mem::take(&mut joined), &span, now, &output) {
            outcome = Err(Failure::Printed(failure.print()));
        }
    }
    outcome
}

/// Fetches the timestamps that the log lacks. Prints a note if the last checkpoint has none.
fn add_timestamps(log: &mut OpenEvidenceLog, now: SystemTime) -> Result {
    let fetched = fetch_timestamps(log, now);
    let last = log_status(log)?.last_checkpoint;
    if let Err(error) = fetched {
        print_message!(
            "note: a checkpoint has no timestamp: {error}; the case is written without it"
        );
    } else if last.is_some_and(|last| last.2.is_none()) {
        print_message!(
            "note: no authority confirms the times of the log, so they are only your word; name one in evidence.timestamps"
        );
    }
    Ok(())
}

/// Writes a case into a new file. Fails if the case does not hold by its own check; the file is
/// written all the same.
fn write_case(
    logs: &mut [OpenEvidenceLog],
    joined: Vec<ExportedLog>,
    span: &CaseScope,
    now: SystemTime,
    output: &Path,
) -> Result {
    let (archive, findings) = build_case(logs, joined, span, now)?;
    write_new_file(output, &archive)?;
    let name = output.display();
    if let Some(first) = findings.faults.first() {
        fail!(
            FindingsMessage,
            "{name}: the case is not valid: {first}. Failed checks: {}; \"crawlgate evidence verify\" lists them",
            findings.faults.len()
        );
    }
    let requests: usize = findings.logs.iter().map(|log| log.requests.len()).sum();
    let served: usize = findings.logs.iter().map(|log| log.served.len()).sum();
    print_message!(
        "{name}: {}, robots.txt served: {}",
        plural(requests, "request"),
        plural(served, "time")
    );
    for log in &findings.logs {
        print_message!(
            "the log {} covers the time from {} until {}{}",
            log.log,
            log.from,
            log.to,
            log.gaps_text()
        );
    }
    Ok(())
}

/// Prints the hosts of the site that were observed for less than a day when the time of the case
/// began: at first no request there is a violation if the policy does not declare `previous`.
fn print_first_days(directory: &Path, site: &str, from: Timestamp) -> Result {
    for (_, observed) in StateStore::read(directory, super::now())?.observations {
        let since = observed.since;
        if observed.site == site && from.since(since) < DAY {
            print_message!(
                "note: crawlgate has served {} without a long gap since {since}. The case lists short gaps. The log may lack earlier requests. On the \
                 first day, violations count only if robots.previous in the policy declares the earlier robots.txt",
                observed.host
            );
        }
    }
    Ok(())
}

/// Reads the file of a case. It is in memory twice while it is checked.
fn read_case(file: &Path) -> io::Result<Vec<u8>> {
    files::read_argument(file, MAX_CASE_BYTES)
}

/// Parses `--key`: a public key, or a file with it.
fn parse_key(given: &str) -> Result<VerifyKey> {
    if let Ok(key) = VerifyKey::parse(given) {
        return Ok(key);
    }
    let text = files::read_argument(given.as_ref(), files::MAX_FILE_BYTES).map_err(|error| {
        Failure::Usage(format!(
            "--key {given} is neither a key nor a file with one: {error}"
        ))
    })?;
    VerifyKey::parse(&String::from_utf8_lossy(&text))
        .map_err(|error| Failure::Usage(format!("--key {given}: {error}")))
}

/// Checks a case by the keys of `--key`, and prints the findings. Fails if the case has faults.
fn run_verify(arguments: &VerifyArguments) -> Result {
    let keys = arguments
        .key
        .iter()
        .map(|key| parse_key(key))
        .collect::<Result<Vec<_>>>()?;
    let archive = read_case(&arguments.file).map_err(file_failure("open", &arguments.file))?;
    let findings = verify_case(&archive, &keys);
    print_result(arguments.json, &findings, CaseText { case: &findings })?;
    findings_failure_unless(findings.faults.is_empty())
}

/// The findings about a case, as text.
#[derive(Template)]
#[template(path = "case.txt")]
struct CaseText<'a> {
    case: &'a CaseFindings,
}

/// Deletes personal values from the log: of an address, before a time, or of an address before a
/// time. Prints how many were deleted.
fn run_forget(arguments: &ForgetArguments) -> Result {
    let now = SystemTime::now();
    let before = arguments.before.map(system_time);
    if before.is_some_and(|before| before > now) {
        fail!(Usage, "--before is in the future; nothing was deleted");
    }
    let mut log = open_existing(&arguments.state.path_or_default()?)?;
    let forgotten = delete_personal_values(&mut log, arguments.address, before, now)?;
    print_message!(
        "{} deleted; backups and exported cases still have them",
        plural(forgotten, "personal value")
    );
    Ok(())
}

/// Replaces the key of the log, and prints the new public key on standard output.
fn run_rotate_key(state: &StateFlag) -> Result {
    let directory = state.path_or_default()?;
    let mut log = open_existing(&directory)?;
    let key = rotate_key(&directory, &mut log, SystemTime::now())?;
    print_message!(
        "the log has a new key. Publish it, and keep the old one public: it verifies what it signed",
    );
    print_text(key.to_line())
}

/// Prints the state of the log, as JSON or text.
fn run_status(json: bool, state: &StateFlag) -> Result {
    let log = open_existing(&state.path_or_default()?)?;
    let status = &log_status(&log)?;
    print_result(json, status, LogStatusText { status })
}

/// The state of a log, as text.
#[derive(Template)]
#[template(path = "evidence.txt")]
struct LogStatusText<'a> {
    status: &'a LogStatus,
}
