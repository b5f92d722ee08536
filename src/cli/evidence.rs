//! `evidence`: exports a case (an excerpt of the evidence log, as one file for a third party), and
//! checks such a file. It also deletes personal values from the log, gives the log a new key, and
//! shows its state. crawlgate may be running meanwhile.

use super::places::StateDirectory;
use super::{Failure, Result, cannot, fine, places, say, show, write_new};
use crate::crawlers::Registry;
use crate::evidence::{
    CaseFindings, CaseSpan, Joined, LogStatus, VerifyKey, cover, forget, open_existing,
    read_joined, rotate_key, stamp, status, verify, write_case,
};
use crate::files;
use crate::numbers::plural;
use crate::printable::join;
use crate::state::StateStore;
use crate::time::Timestamp;
use askama::Template;
use std::error::Error;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Bytes of a case.
const MAX_CASE: u64 = 1024 * 1024 * 1024;

/// For about as long a crawler may use a robots.txt from before the observation.
const DAY: Duration = Duration::from_secs(86_400);

/// Export evidence about a crawler as one file, and check such a file
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  crawlgate evidence status
  crawlgate evidence export --site shop --crawler gptbot --from 2026-11-01 --to 2026-12-01 -o case.tar
  crawlgate evidence export --site shop --crawler gptbot --from 2026-11-01 --join other-machine.tar -o case.tar
  crawlgate evidence verify case.tar --key log.vkey
  crawlgate evidence forget --address 203.0.113.5
  crawlgate evidence forget --before 2026-01-01 --state /var/lib/crawlgate

Exit codes: 0 fine, 1 the case does not hold, 2 wrong usage, 3 the log or the file cannot be read or written.";

#[derive(clap::Subcommand)]
enum Action {
    /// Write a case: what one crawler did on one site, with all that proves it
    Export(Export),
    /// Check a case by the public key of its log
    Verify(Verify),
    /// Delete personal values; the log still verifies
    Forget(Forget),
    /// Give the log a new key, by the word of the old one
    RotateKey(StateDirectory),
    /// Show the public key of the log and what it has
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateDirectory,
    },
}

#[derive(clap::Args)]
struct Export {
    /// The site
    #[arg(long)]
    site: String,
    /// The crawler, by its id in the registry or its token in the policy
    #[arg(long)]
    crawler: String,
    /// From this moment: a date or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Timestamp,
    /// Until this moment [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Timestamp>,
    /// The case, a new file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The state directory; again for each further instance on this machine
    #[arg(long, value_name = "DIR")]
    state: Vec<PathBuf>,
    /// Take in the log of an instance on another machine: the case that was exported there
    #[arg(long, value_name = "FILE")]
    join: Vec<PathBuf>,
}

#[derive(clap::Args)]
struct Verify {
    /// The case
    file: PathBuf,
    /// The public key of the log, or a file with it; again for each further log of the case
    #[arg(long, required = true)]
    key: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Forget {
    /// Of requests from this address
    #[arg(long, required_unless_present = "before")]
    address: Option<IpAddr>,
    /// Of entries before this moment: a date or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    before: Option<Timestamp>,
    #[command(flatten)]
    state: StateDirectory,
}

/// Reads a date or a moment; one before 1970 is an error.
fn moment(text: &str) -> Result<Timestamp, &'static str> {
    let moment = Timestamp::parse(text).filter(|moment| moment.0 >= 0);
    moment.ok_or("write a date or a moment, like 2026-11-23 or 2026-11-23T06:00:00Z")
}

/// The same time in the form of the standard library. `moment` is not before 1970 (see `moment`).
fn system_time(moment: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(moment.0.unsigned_abs())
}

pub fn run(arguments: &Arguments) -> Result {
    match &arguments.action {
        Action::Export(arguments) => run_export(arguments),
        Action::Verify(arguments) => run_verify(arguments),
        Action::Forget(arguments) => run_forget(arguments),
        Action::RotateKey(state) => run_rotate_key(state),
        Action::Status { json, state } => run_status(*json, state),
    }
}

/// Writes a case into a new file: of the logs on this machine, with timestamps that are fetched
/// now, and of the joined cases. A checkpoint without a timestamp is only said. Fails if the case
/// does not hold by its own check; the file is written all the same.
fn run_export(arguments: &Export) -> Result {
    let now = SystemTime::now();
    let registry = Registry::builtin();
    let span = CaseSpan {
        site: arguments.site.clone(),
        crawler: registry
            .find(&arguments.crawler)
            .map_or(&arguments.crawler, |index| &registry.get(index).id)
            .clone(),
        from: system_time(arguments.from),
        to: arguments.to.map_or(now, system_time).min(now),
    };
    if span.from >= span.to {
        return Err(Failure::Usage("--from is not before --to".into()));
    }
    let directories = match arguments.state.as_slice() {
        [] => vec![places::state_or_failure()?],
        given => given.to_vec(),
    };
    let mut logs = Vec::new();
    for directory in &directories {
        let mut log = open_existing(directory)?;
        say_first_days(directory, &span.site, arguments.from)?;
        cover(&mut log, &span, now)?;
        if let Err(error) = stamp(&mut log, now) {
            say(&format!(
                "a checkpoint has no timestamp: {error}; the case is written without it"
            ));
        }
        logs.push(log);
    }
    let mut joined = Vec::new();
    for file in &arguments.join {
        let read = read_other(file);
        joined.extend(
            read.map_err(|error| Failure::CouldNot(format!("--join {}: {error}", file.display())))?,
        );
    }
    let (archive, findings) = write_case(&mut logs, joined, &span, now)?;
    write_new(&arguments.output, &archive)?;
    let requests: usize = findings.logs.iter().map(|log| log.requests.len()).sum();
    let served: usize = findings.logs.iter().map(|log| log.served.len()).sum();
    say(&format!(
        "{}: {}, robots.txt served: {}",
        arguments.output.display(),
        plural(requests, "request"),
        plural(served, "time"),
    ));
    for log in &logs {
        say(&format!(
            "the key of the log is {}",
            log.key.verify_key().line()
        ));
    }
    if findings.faults.is_empty() {
        return Ok(());
    }
    let faults = join(findings.faults, "; ");
    Err(Failure::Found(format!("the case does not hold: {faults}")))
}

/// Says which hosts of the site had been observed for less than a day, or not yet, when the time of
/// a case began: of that time no request is a violation.
fn say_first_days(directory: &Path, site: &str, from: Timestamp) -> Result {
    for (_, observed) in StateStore::read(directory, super::now())?.observations {
        let since = observed.since;
        if observed.site == site && from.since(since) < DAY {
            say(&format!(
                "{} is observed without a gap since {since}: of the time before, requests may be missing, and for about a day from \
                 then on they are unproven and no violations, for a crawler may use an older robots.txt",
                observed.host
            ));
        }
    }
    Ok(())
}

/// The logs of a case that was exported on another machine.
fn read_other(file: &Path) -> Result<Vec<Joined>, Box<dyn Error>> {
    Ok(read_joined(&read_case(file)?)?)
}

/// Reads the file of a case, up to 1 GiB. It is in memory twice while it is checked.
fn read_case(file: &Path) -> io::Result<Vec<u8>> {
    files::read_argument(file, MAX_CASE)
}

/// The public key that `--key` gives: the key itself, or a file with it.
fn key_of(given: &str) -> Result<VerifyKey> {
    if let Ok(key) = VerifyKey::parse(given) {
        return Ok(key);
    }
    let text = files::read_argument(given.as_ref(), files::MAX_BYTES).map_err(|error| {
        Failure::Usage(format!(
            "--key {given} is no key, and no file with one: {error}"
        ))
    })?;
    VerifyKey::parse(&String::from_utf8_lossy(&text))
        .map_err(|error| Failure::Usage(format!("--key {given}: {error}")))
}

/// Checks the file of a case, with the keys of `--key`, and prints the findings. Fails if a key
/// cannot be read, or the case has faults.
fn run_verify(arguments: &Verify) -> Result {
    let keys = arguments
        .key
        .iter()
        .map(|key| key_of(key))
        .collect::<Result<Vec<_>, _>>()?;
    let archive = read_case(&arguments.file).map_err(cannot("read", &arguments.file))?;
    let findings = verify(&archive, &keys);
    show(arguments.json, &findings, CaseText { case: &findings })?;
    fine(findings.faults.is_empty())
}

/// What was found in a case, as text.
#[derive(Template)]
#[template(path = "case.txt")]
struct CaseText<'a> {
    case: &'a CaseFindings,
}

/// Deletes personal values from the log: those of an address, those before a time, or with both
/// flags those that are both. Says how many were deleted.
fn run_forget(arguments: &Forget) -> Result {
    let mut log = open_existing(&arguments.state.path()?)?;
    let before = arguments.before.map(system_time);
    let forgotten = forget(&mut log, arguments.address, before, SystemTime::now())?;
    say(&format!(
        "{forgotten} personal values were deleted; backups and cases that were exported before still have them"
    ));
    Ok(())
}

/// Gives the log a new key, and prints the line of its public part on standard output.
fn run_rotate_key(state: &StateDirectory) -> Result {
    let directory = state.path()?;
    let mut log = open_existing(&directory)?;
    let key = rotate_key(&directory, &mut log, SystemTime::now())?;
    say(
        "the log has a new key; publish it beside the old one, which stays good for what it signed",
    );
    Ok(writeln!(super::out(false), "{}", key.line())?)
}

/// Prints the state of the log, as JSON or text.
fn run_status(json: bool, state: &StateDirectory) -> Result {
    let log = open_existing(&state.path()?)?;
    let status = &status(&log)?;
    show(json, status, LogText { status })
}

/// The state of a log, as text.
#[derive(Template)]
#[template(path = "evidence.txt")]
struct LogText<'a> {
    status: &'a LogStatus,
}
