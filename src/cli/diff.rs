//! The command `diff`: shows what changes for crawlers between two policies, directories of
//! policies, or robots.txt files.

use super::origin_copy::{OriginCopies, OriginFlags};
use super::sources::is_robots_txt;
use super::url_list::for_each_url;
use super::{
    Result, audit, findings_failure_unless, policies, print_result, stdout_printer, tester,
};
use crate::audit::{AuditOptions, AuditRules, client_identity, for_each_line};
use crate::crawlers::{Claim, Registry};
use crate::diff::{
    AccessEffect, ComparedRules, Comparison, ComparisonBasis, render_csv, render_markdown,
    render_text,
};
use crate::logs::{ColumnHeader, LineReader, LogLine};
use crate::numbers::plural;
use crate::policy::{Site, Snapshot};
use crate::printable::printable_path;
use crate::report::ClientIdentity;
use crate::robots::escape_url;
use crate::settings::ListSource;
use crate::sites::policy_directory;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Show what changes for crawlers between two policies or robots.txt files
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate diff old.txt robots.txt
  crawlgate diff https://shop.example policies/shop.yaml
  crawlgate diff ../main/policies policies --format markdown
  crawlgate diff robots.txt policies/shop.yaml --log access.log --since 7d --lists yes
  crawlgate diff old.txt robots.txt --log access.log --crawler googlebot

Exit codes: 0 nothing changes, 1 something changes (see --fail-on-loss), 2 wrong usage, 3 a file cannot be read or used.")]
pub struct Arguments {
    /// A policy, a directory of policies, or a robots.txt (.txt, an http(s) URL, or -)
    old: PathBuf,
    /// The new version
    new: PathBuf,
    /// Compare on the URLs or paths in this file: one a line, those of a sitemap, or of CSV the first
    /// column with URLs or paths [default: URLs made from the rules]
    #[arg(long, alias = "sitemap", value_name = "FILE|URL")]
    urls: Option<PathBuf>,
    /// Compare on the requests of an access log, or of the logs in a directory; may be repeated
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "urls")]
    log: Vec<PathBuf>,
    /// Only this crawler, by id or token; "other" means all unknown bots; may be repeated
    #[arg(long)]
    crawler: Vec<String>,
    #[command(flatten)]
    reading: audit::LogFlags,
    /// How to print the changes
    #[arg(long, value_enum, default_value_t)]
    format: DiffFormat,
    #[command(flatten)]
    origin: OriginFlags,
    /// Exit with 1 only if a crawler loses access
    #[arg(long)]
    fail_on_loss: bool,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print CSV: a row for each URL that changes, with its crawlers and their requests, and for each
    /// header and setting
    #[arg(long, conflicts_with_all = ["format", "json"])]
    csv: bool,
}

#[derive(Clone, Default, PartialEq, clap::ValueEnum)]
enum DiffFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// For a comment on a pull request
    Markdown,
}

/// Compares the old and the new rules, and prints the changes. An old robots.txt is taken as the
/// origin's of the new policies, unless a flag names one. Fails (exit code 1) if something changes.
pub fn run(arguments: &Arguments) -> Result {
    let options = arguments.reading.options()?;
    let mut origins = arguments.origin.read()?;
    let old = load_rule_set(&arguments.old, &origins)?;
    let is_old_robots = is_robots_txt(&arguments.old);
    if is_old_robots && !is_robots_txt(&arguments.new) {
        origins.assume(old.snapshot.sites()[0].site.origin.clone());
    }
    let new = load_rule_set(&arguments.new, &origins)?;
    let sites = new.snapshot.sites();
    let old_sites = old.snapshot.sites().iter().filter(|_| !is_old_robots);
    origins.print_assumptions(sites.iter().chain(old_sites).map(|entry| &*entry.site));
    let basis = match &arguments.urls {
        Some(_) => ComparisonBasis::Urls,
        None if arguments.log.is_empty() => ComparisonBasis::Patterns,
        None => ComparisonBasis::Log,
    };
    let both = Vec::from_iter(sites.iter().chain(old.snapshot.sites()));
    let crawlers = audit::crawler_labels(&arguments.crawler, &both)?;
    let is_json = arguments.json || arguments.format == DiffFormat::Json;
    let mut comparison = Comparison::new(&old, &new, basis, &crawlers, is_json || arguments.csv);
    match &arguments.urls {
        Some(path) => compare_urls(path, &mut comparison)?,
        None if basis == ComparisonBasis::Log => compare_logs(arguments, options, &mut comparison)?,
        None => comparison.compare_witness_urls(),
    }
    let difference = comparison.finish();
    if arguments.csv {
        for note in difference.sites.iter().flat_map(|site| &site.notes) {
            print_message!("note: {note}");
        }
        write!(stdout_printer(false), "{}", render_csv(&difference))?;
    } else {
        let text = match arguments.format {
            DiffFormat::Markdown => render_markdown(&difference),
            DiffFormat::Text | DiffFormat::Json => render_text(&difference),
        };
        print_result(is_json, &difference, text)?;
    }
    let is_failing = if arguments.fail_on_loss {
        difference.has_effect(AccessEffect::Loses)
    } else {
        difference.changed
    };
    findings_failure_unless(!is_failing)
}

/// Reads a robots.txt, or policies without their pauses. A directory without policies allows
/// everything. Fails if a policy has errors.
fn load_rule_set(path: &Path, origins: &OriginCopies) -> Result<ComparedRules> {
    let name = printable_path(path);
    let snapshot = if is_robots_txt(path) {
        policies::check_no_link_out(path)?;
        let file = tester::read_rules(&path.to_string_lossy(), "compare")?;
        let rules = AuditRules::from_files(vec![file], Duration::ZERO, Registry::builtin())?;
        Snapshot::new(rules.site_entries().cloned().collect(), 0)
    } else if policy_directory::list_policies(path).is_ok_and(|files| files.is_empty()) {
        // The first policies of a repository are compared with a directory that has none yet.
        print_message!("note: {name} has no policy (*.yaml), so everything is allowed there");
        Snapshot::new(Vec::new(), 0)
    } else {
        let loaded = policies::load_proposed(&[path.to_owned()], origins)?;
        policies::print_errors(&loaded);
        if let Some(broken) = loaded.iter().find(|file| file.site.is_none()) {
            fail!(
                Runtime,
                "{} cannot be used, so it cannot be compared",
                broken.file.source.name
            );
        }
        policies::snapshot_without_pauses(loaded)
    };
    Ok(ComparedRules {
        name,
        snapshot,
        is_one_file: !path.is_dir(),
    })
}

/// Compares on each path, which is for every host, and each URL of a list or sitemap.
fn compare_urls(path: &Path, comparison: &mut Comparison<'_>) -> Result {
    for_each_url(path, |url| {
        let Some((_, rest)) = url.split_once("://").filter(|_| !url.starts_with('/')) else {
            return comparison.compare_url(None, &escape_url(url), url);
        };
        let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let root = if target.starts_with('/') { "" } else { "/" };
        comparison.compare_url(Some(host), &escape_url(&format!("{root}{target}")), url);
    })
}

/// Compares on the requests of the logs in the period. Prints how many lines are unreadable or have
/// no user agent. Fails if no line could be read.
fn compare_logs(
    arguments: &Arguments,
    options: AuditOptions,
    comparison: &mut Comparison<'_>,
) -> Result {
    let inputs = audit::find_logs(&arguments.log)?;
    let lists = arguments.reading.lists.as_ref();
    let options = AuditOptions {
        networks: audit::load_networks(lists, arguments.origin.state.as_deref())?,
        ..options
    };
    if options.networks.is_none() && !matches!(lists, Some(ListSource::Off)) {
        print_message!(
            "note: no lists of crawler networks, so clients that only pretend to be a crawler count as the crawler; \
             --lists yes fetches the lists"
        );
    }
    let period = options.period.as_ref();
    let mut read = 0_u64;
    let mut skipped = 0_u64;
    for input in inputs {
        let mut reader = LineReader::new(&options.format, ColumnHeader::default());
        for_each_line(&input, |line| match reader.parse(line) {
            _ if line.is_empty() => {}
            Ok(LogLine::Request(record)) => {
                read += 1;
                let pretends = |claim: Claim, site: &Site| {
                    client_identity(claim, &record, Registry::builtin(), site, &options)
                        == ClientIdentity::SuspectedImpostor
                };
                match record.user_agent.as_deref() {
                    _ if period.is_some_and(|period| !period.contains(&record.time)) => {}
                    Some(user_agent) => {
                        comparison.compare_request(&record, user_agent, &pretends);
                    }
                    None => skipped += 1,
                }
            }
            Ok(LogLine::NoRequest | LogLine::ServerMessage) => {}
            Err(_) => skipped += 1,
        })
        .map_err(|error| input.error(error))?;
    }
    if skipped > 0 && read == 0 {
        return audit::no_readable_line_failure();
    }
    if skipped > 0 {
        let lines = plural(skipped, "line");
        print_message!("note: not compared: {lines} without a readable request or user agent");
    }
    Ok(())
}
