//! `diff`: shows what changes for crawlers between two policies, directories of policies, or
//! robots.txt files.

use super::origin_copy::{OriginCopies, OriginFrom};
use super::{Failure, Result, audit, cannot, fine, policies, say, show, tester};
use crate::audit::{PublishedFile, Rules, each_line};
use crate::crawlers::Registry;
use crate::diff::{Basis, Comparison, Difference, Side, markdown, text};
use crate::logs::Line;
use crate::policy::{Site, SiteEntry, Snapshot};
use crate::printable::printable_path;
use crate::sites::policy_directory;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Show which crawlers get other verdicts, answers or tags from NEW than from OLD
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A policy file, a directory of policies, or a robots.txt (`.txt`, an http(s) URL, or `-`)
    old: PathBuf,
    /// The same, as it is to become
    new: PathBuf,
    /// Compare on the URLs and paths of this file, one in a line, and not on URLs made from the
    /// patterns
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// Compare on the requests of an access log; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    log: Vec<PathBuf>,
    /// The form of the log's lines, as in nginx's log_format
    #[arg(long, value_name = "LOG_FORMAT", requires = "log")]
    log_format: Option<String>,
    /// How the changes are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    origin: OriginFrom,
    /// Print JSON: the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a person
    #[default]
    Text,
    /// For a program
    Json,
    /// For a comment on a change
    Markdown,
}

const EXAMPLES: &str = "\
Examples:
  crawlgate diff old.txt robots.txt
  crawlgate diff https://shop.example policies/shop.yaml
  crawlgate diff ../main/policies policies --format markdown
  crawlgate diff robots.txt policies/shop.yaml --log access.log

Exit codes: 0 nothing changes, 1 something changes, 2 wrong usage, 3 a file cannot be read or used.";

/// Compares both sides and prints the changes. Fails (exit code 1) if something changes.
pub fn run(arguments: &Arguments) -> Result {
    let registry = Registry::builtin();
    let origins = arguments.origin.read()?;
    let old = side(&arguments.old, &origins)?;
    let new = side(&arguments.new, &origins)?;
    let mut sites: Vec<&Site> = Vec::new();
    sites.extend(new.snapshot.sites().iter().map(|entry| &*entry.site));
    for SiteEntry { site, .. } in old.snapshot.sites() {
        if new.snapshot.site_named(&site.name).is_none() {
            sites.push(site);
        }
    }
    origins.say_assumptions(sites);
    let difference = compare(arguments, &old, &new, registry)?;
    let text = match arguments.format {
        Format::Markdown => markdown(&difference),
        Format::Text | Format::Json => text(&difference),
    };
    let is_json = arguments.json || arguments.format == Format::Json;
    show(is_json, &difference, text)?;
    fine(!difference.changed)
}

/// Compares both sides on the URLs of a file, the requests of logs, or, without these, on URLs made
/// from the patterns of their rules.
fn compare(
    arguments: &Arguments,
    old: &Side,
    new: &Side,
    registry: &'static Registry,
) -> Result<Difference> {
    let basis = match &arguments.urls {
        Some(_) => Basis::Urls,
        None if arguments.log.is_empty() => Basis::Patterns,
        None => Basis::Log,
    };
    let mut comparison = Comparison::new(old, new, registry, basis);
    match &arguments.urls {
        Some(path) => urls(path, &mut comparison)?,
        None if basis == Basis::Log => log(arguments, &mut comparison)?,
        None => comparison.witnesses(),
    }
    Ok(comparison.finish())
}

/// Reads one side of the comparison: a robots.txt, or policies without their pauses. A directory
/// without policies allows everything. Fails if a policy has errors.
fn side(path: &Path, origins: &OriginCopies) -> Result<Side> {
    let name = printable_path(path);
    let snapshot = if super::check::is_robots_txt(path) {
        tester::refuse_link_out(path)?;
        let file = PublishedFile {
            name: name.clone(),
            bytes: tester::rules(&path.to_string_lossy(), "compare")?.bytes,
            since: None,
        };
        let rules = Rules::published(vec![file], Duration::ZERO, Registry::builtin())?;
        Snapshot::new(rules.entries().cloned().collect(), 0)
    } else if policy_directory::policy_files(path).is_ok_and(|files| files.is_empty()) {
        // The first policies of a repository are compared with a directory that has none yet.
        say(&format!(
            "note: {name} has no policy (*.yaml): every host there allows everything"
        ));
        Snapshot::new(Vec::new(), 0)
    } else {
        let loaded = policies::load_proposed(&[path.to_owned()], origins)?;
        policies::report(&loaded, true);
        if let Some(broken) = loaded.iter().find(|file| file.site.is_none()) {
            return Err(Failure::CouldNot(format!(
                "{} cannot be used, so it cannot be compared",
                broken.source.name
            )));
        }
        policies::without_pauses(loaded)
    };
    Ok(Side {
        name,
        snapshot,
        is_one_file: !path.is_dir(),
    })
}

/// Compares on each line of a file: a path for every host, or a URL. Empty lines and what follows
/// `#` are passed over. Fails after the last line if one is neither.
fn urls(path: &Path, comparison: &mut Comparison<'_>) -> Result {
    let mut wrong = None;
    let mut number = 0_u64;
    let read = each_line(&audit::input(path), |line| {
        number += 1;
        let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        let line = line.split('#').next().unwrap_or_default();
        match (line.split_once("://"), line.starts_with('/')) {
            _ if line.is_empty() => {}
            (_, true) => comparison.url(None, line),
            (Some((_, rest)), false) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                let (host, target) = rest.split_at(end);
                let target = if target.starts_with('/') {
                    target.to_owned()
                } else {
                    format!("/{target}")
                };
                comparison.url(Some(host), &target);
            }
            (None, false) => wrong = wrong.take().or(Some((number, line.to_owned()))),
        }
    });
    read.map_err(cannot("read", path))?;
    match wrong {
        Some((number, line)) => Err(Failure::CouldNot(format!(
            "{}:{number}: `{line}` is neither a path nor a URL; a path begins with `/`, a URL with `https://`",
            printable_path(path)
        ))),
        None => Ok(()),
    }
}

/// Compares on the requests of the logs. Lines that cannot be read or have no user agent are left
/// out with a note. Fails if no line could be read.
fn log(arguments: &Arguments, comparison: &mut Comparison<'_>) -> Result {
    let format = audit::format(arguments.log_format.as_deref())?;
    let mut read = 0_u64;
    let mut unreadable = 0_u64;
    let mut without_agent = 0_u64;
    for path in &arguments.log {
        let lines = each_line(&audit::input(path), |line| match format.read(line) {
            _ if line.is_empty() => {}
            Ok(Line::Request(record)) => {
                read += 1;
                match record.user_agent.as_deref() {
                    Some(user_agent) => comparison.request(&record, user_agent),
                    None => without_agent += 1,
                }
            }
            Ok(Line::NoRequest | Line::ServerMessage) => {}
            Err(_) => unreadable += 1,
        });
        lines.map_err(cannot("read", path))?;
    }
    if unreadable > 0 && read == 0 {
        return audit::unreadable();
    }
    for (count, what) in [
        (unreadable, "could not be read"),
        (without_agent, "have no user agent"),
    ] {
        if count > 0 {
            say(&format!(
                "note: {count} lines {what}; they are not compared"
            ));
        }
    }
    Ok(())
}
