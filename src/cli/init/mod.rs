//! The command `init`: writes the first files for a site that begins to use crawlgate. These are a
//! policy, a copy of the robots.txt that the site served before, and the settings.
//! [`RobotsComparison`] fetches the robots.txt that crawlers get now, and
//! [`PolicyDraftInputs::render`] makes the policy.
//!
//! Crawlers may use a cached copy of the former robots.txt for a day. The policy's field `previous`
//! names the copy that `init` wrote, so that crawlgate knows which rules these crawlers follow. If
//! hosts of the site serve different files, or the owner does not confirm that the file is at least
//! a day old, crawlers may have cached another file. Then `init` writes the field as a comment.

mod answers;
mod comparison;
mod draft;
mod new_file_paths;

use super::check;
use super::shell_words::{program_word, shell_quote};
use super::{Failure, Result, now, print_text};
use crate::origin::robots::FetchResult;
use crate::policy::import::{yaml_list, yaml_scalar};
use crate::printable::printable_path;
use crate::settings::{OriginServerAddress, parse_listen_address};
use askama::Template;
use comparison::{RobotsComparison, fetch_origin_file};
use draft::{DraftSource, DraftedPolicy, PolicyDraftInputs, Preset};
use new_file_paths::NewFilePaths;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long crawlers may use a copy of robots.txt (RFC 9309 section 2.4).
const FIRST_DAY: Duration = Duration::from_secs(86_400);
/// Why `--unchanged-for` writes nothing without the origin.
const ORIGIN_FAILED: &str =
    "--unchanged-for needs the origin's robots.txt; see above why it failed. Nothing was written";
/// Why an origin that answers nothing, such as PHP-FPM, is an error.
const NO_HTTP: &str = "\
the origin accepts connections, but does not speak HTTP. Nothing was written. If the origin is only starting, try again.
PHP-FPM speaks FastCGI: for PHP, give your web server a port for crawlgate, and name that port as the origin
(\"WordPress\" in faq.md of the documentation)";
/// `crawlgate import` prints the rest.
const MAX_NOTES: usize = 5;

/// Write a policy and the settings for a new site
#[derive(clap::Args)]
#[command(after_help = "\
In a terminal, init asks for what is missing. It overwrites nothing. If
crawlgate.yaml exists, init adds a second site: it writes the policy, and
prints the lines to add to crawlgate.yaml.

Examples:
  crawlgate init
  crawlgate init --host shop.example --origin http://127.0.0.1:3000 --unchanged-for 24h
  crawlgate init --host shop.example --origin http://127.0.0.1:3000 --preset search-yes-training-no

Exit codes: 0 written, 1 the origin speaks no HTTP or the check fails, 2 wrong usage or a file exists, 3 failed.")]
pub struct Arguments {
    /// The directory to write to
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// The name that visitors use, like shop.example; may be repeated
    #[arg(long = "host", value_name = "HOST", value_parser = answers::parse_site_host)]
    hosts: Vec<String>,
    /// The server of the site, like http://127.0.0.1:3000
    #[arg(long, value_name = "URL", value_parser = OriginServerAddress::parse)]
    origin: Option<OriginServerAddress>,
    /// The policy to begin with [default: the rules of the site's robots.txt]
    #[arg(long, value_name = "NAME")]
    preset: Option<Preset>,
    /// How long robots.txt has been the same, on every host and in every cache: at least 24h
    #[arg(long, value_name = "DURATION", value_parser = parse_unchanged)]
    unchanged_for: Option<Duration>,
    /// The address that crawlgate listens on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = parse_listen_address)]
    listen: SocketAddr,
}

/// Parses the time without changes. Less than a day proves nothing.
fn parse_unchanged(written: &str) -> Result<Duration, &'static str> {
    let duration = crate::yaml::parse_duration(written)?;
    if duration < FIRST_DAY {
        return Err("crawlers may use a copy of robots.txt for 24 hours; write 24h or more");
    }
    Ok(duration)
}

/// Compares the robots.txt of all places, writes the files and checks them, and prints the next
/// commands. Fails if one of the files exists.
pub fn run(arguments: &Arguments) -> Result {
    let mut hosts = answers::hosts_or_ask(&arguments.hosts)?;
    let origin = answers::origin_or_ask(arguments.origin.as_ref())?;
    let files = NewFilePaths::new(&arguments.directory, &hosts[0], &origin)?;
    files.require_absent()?;
    let comparison = RobotsComparison::fetch(&mut hosts, &origin);
    print_text(&comparison)?;
    let origin_failed = comparison.origin_rules().is_none();
    match fetch_origin_file("/.well-known/tdmrep.json", &hosts[0], &origin) {
        FetchResult::File { bytes, url, .. } if bytes.trim_ascii_start().starts_with(b"[") => {
            print_message!(
                "note: {url} exists. If the policy has \"tdm\", crawlgate publishes its own file instead: write these rules into \"tdm\""
            );
        }
        FetchResult::Unreachable(failure) if origin_failed && failure.is_other_protocol => {
            fail!(FindingsMessage, "{}", NO_HTTP);
        }
        _ => {}
    }
    if arguments.unchanged_for.is_some() && origin_failed {
        fail!(FindingsMessage, "{}", ORIGIN_FAILED);
    }
    let is_unchanged =
        comparison.agrees() && (arguments.unchanged_for.is_some() || answers::confirm_unchanged()?);
    let draft = PolicyDraftInputs {
        hosts: &hosts,
        preset: arguments.preset,
        before: comparison.before(),
        before_name: &files
            .before
            .file_name()
            .unwrap_or_default()
            .to_string_lossy(),
        is_unchanged,
    };
    let policy = draft.render();
    let origin_value = yaml_scalar(&origin.url());
    let settings = SettingsYaml {
        listen: arguments.listen,
        origin: &origin_value,
    };
    files.write(&policy.text, draft.before, &format!("{settings}\n"))?;
    // The file is not that of the other sites.
    let copy = (draft.before.is_some() && !files.is_second_site).then(|| files.before.clone());
    if let Err(failure) = check::check_new_files(&files.settings, copy) {
        files.remove();
        return Err(match failure {
            Failure::Findings => Failure::FindingsMessage(
                "the check fails, so nothing was written. Fix the file that the error names. If it is the origin's \
                 robots.txt, you can also begin without --preset"
                    .into(),
            ),
            failure => failure,
        });
    }
    let before = printable_path(&files.before);
    for (line, note) in policy.notes.iter().take(MAX_NOTES) {
        print_message!("{before}:{line}: {note}");
    }
    if policy.notes.len() > MAX_NOTES {
        print_message!("crawlgate import {before} prints all notes");
    }
    let summary = Summary {
        arguments,
        comparison: &comparison,
        inputs: &draft,
        drafted: &policy,
        files: &files,
        is_own_origin: hosts.contains(&origin.host),
        origin_value: &origin_value,
    };
    print_text(&summary)
}

/// The text of crawlgate.yaml.
#[derive(Template)]
#[template(path = "init_settings.txt")]
struct SettingsYaml<'a> {
    listen: SocketAddr,
    /// As YAML.
    origin: &'a str,
}

/// What was written, when violations count, and the next commands.
#[derive(Template)]
#[template(path = "init.txt")]
struct Summary<'a> {
    arguments: &'a Arguments,
    comparison: &'a RobotsComparison,
    inputs: &'a PolicyDraftInputs<'a>,
    drafted: &'a DraftedPolicy,
    files: &'a NewFilePaths,
    /// Whether the origin has the name of the site: crawlgate would forward requests to itself.
    is_own_origin: bool,
    /// As YAML, for a second site.
    origin_value: &'a str,
}
