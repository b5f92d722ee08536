//! `check`: validates and lints policies, runs their tests, and shows the robots.txt that each site
//! would serve. Given a robots.txt in place of a policy, it lints that file.

mod github;
mod json;
mod text;

use super::origin_copy::{self, OriginCopies};
use super::policies::{self, Loaded};
use super::tester::{self, RobotsTxt};
use super::{Result, fine, now, print_json};
use crate::acme::Issued;
use crate::crawlers::{Claim, Registry};
use crate::edge::Certificates;
use crate::policy::Site;
use crate::policy::lint::{FileLints, allow_published_proof, lint_file};
use crate::policy::model::{EnforcementFields, Mode};
use crate::printable::{Printer, Style, join, printable_path};
use crate::robots::File;
use crate::settings::Settings;
use crate::sites::RetireStatus;
use crate::telemetry::{CertificateFault, CertificateProblem};
use crate::time::{Timestamp, rfc3339};
use crate::yaml::{Diagnostic, Diagnostics, Severity, Source, Span};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Check policies, run their tests and show their robots.txt; or lint any robots.txt
#[derive(clap::Args)]
pub struct Arguments {
    /// Policy files or directories; a name that ends in `.txt`, an http(s) URL and `-` are
    /// robots.txt files
    #[arg(value_name = "PATH", default_value = "policies")]
    paths: Vec<PathBuf>,
    /// Fail on warnings, too
    #[arg(long)]
    deny_warnings: bool,
    /// Show notes, too: findings that need nothing to be done
    #[arg(long)]
    notes: bool,
    /// Print findings alone, and nothing if there are none
    #[arg(long, short, conflicts_with_all = ["format", "json"])]
    quiet: bool,
    /// The settings file: check it and its certificates, too, and what its `identity` means for the
    /// policies
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    origin: origin_copy::OriginFrom,
    /// How the findings are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print JSON: the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// For a person
    #[default]
    Text,
    /// For a program, with all notes
    Json,
    /// Workflow commands: GitHub shows each finding beside its line
    Github,
}

/// Everything that was read, and what was found.
struct Checked {
    found: Vec<FileLints>,
    loaded: Vec<Loaded>,
    settings: Option<(Source, Diagnostics)>,
    certificates: Vec<CertificateProblem>,
    origins: OriginCopies,
    counts: Counts,
}

/// Checks what is named, and prints it in the chosen form. Fails if a policy cannot be used, or
/// there are errors, or, with `--deny-warnings`, warnings.
pub fn run(arguments: &Arguments) -> Result {
    let checked = check(arguments)?;
    let notes = arguments.notes;
    let mut out = super::out(super::colour(&io::stdout()));
    match if arguments.json {
        Format::Json
    } else {
        arguments.format
    } {
        Format::Text if arguments.quiet => text::print_findings(&mut out, &checked, notes)?,
        Format::Text => text::print(&mut out, &checked, notes)?,
        Format::Json => print_json(&json::report(&checked))?,
        Format::Github => {
            let mut out = Printer::new(io::stdout().lock(), Style::WorkflowCommands);
            github::print(&mut out, &checked, notes)?;
            writeln!(out, "{}", text::summary(&checked))?;
        }
    }
    let refused = checked.loaded.iter().any(|file| file.site.is_none());
    let Counts {
        errors, warnings, ..
    } = checked.counts;
    fine(!refused && errors == 0 && (warnings == 0 || !arguments.deny_warnings))
}

/// Reads and checks all files: robots.txt files, policies, and the settings with their
/// certificates. If the settings allow proof by what operators publish, warnings are dropped that
/// crawlers are refused for want of a proof.
fn check(arguments: &Arguments) -> Result<Checked> {
    let (found, policies): (Vec<PathBuf>, Vec<PathBuf>) = arguments
        .paths
        .iter()
        .cloned()
        .partition(|path| is_robots_txt(path));
    let found = found
        .iter()
        .map(|path| lint(path))
        .collect::<Result<Vec<_>>>()?;
    let origins = arguments.origin.read()?;
    let mut loaded = if policies.is_empty() {
        Vec::new()
    } else {
        policies::load_proposed(&policies, &origins)?
    };
    let mut settings = None;
    let mut certificates = Vec::new();
    if let Some(path) = &arguments.config {
        let (source, diagnostics, read) = super::server_flags::read_settings(path)?;
        if read.as_ref().is_some_and(|read| read.identity.proves()) {
            for Loaded {
                site, diagnostics, ..
            } in &mut loaded
            {
                site.iter()
                    .for_each(|site| allow_published_proof(site, Registry::builtin(), diagnostics));
            }
        }
        certificates = read.as_ref().map(certificate_problems).unwrap_or_default();
        settings = Some((source, diagnostics));
    }
    let mut checked = Checked {
        found,
        loaded,
        settings,
        certificates,
        origins,
        counts: Counts::default(),
    };
    checked.counts = Counts::of(
        checked
            .files()
            .flat_map(|(_, diagnostics)| &diagnostics.items),
    );
    let unusable = checked
        .certificates
        .iter()
        .filter(|problem| problem.id.is_error())
        .count();
    checked.counts.errors += unusable;
    checked.counts.warnings += checked.certificates.len() - unusable;
    Ok(checked)
}

impl Checked {
    /// The findings with their files, without notes unless `notes` is set.
    fn listed(&self, notes: bool) -> impl Iterator<Item = (&Source, &Diagnostic)> {
        let all = self
            .files()
            .flat_map(|(source, found)| found.items.iter().map(move |finding| (source, finding)));
        all.filter(move |(_, finding)| notes || finding.severity != Severity::Note)
    }

    /// All files that were read, with what was found in them.
    fn files(&self) -> impl Iterator<Item = (&Source, &Diagnostics)> {
        let settings = self
            .settings
            .iter()
            .map(|(source, diagnostics)| (source, diagnostics));
        let found = self
            .found
            .iter()
            .map(|lints| (&lints.source, &lints.diagnostics));
        settings.chain(found).chain(
            self.loaded
                .iter()
                .map(|file| (&file.source, &file.diagnostics)),
        )
    }
}

/// A good site: what it is for, what it does, and its robots.txt.
#[derive(Serialize)]
struct SiteReport<'a> {
    site: &'a str,
    file: &'a str,
    hosts: Vec<String>,
    mode: &'static str,
    /// Whether `mode: enforce` does not refuse unlisted bots.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unlisted_only_observed: bool,
    tests: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retire: Vec<RetireStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pauses: Vec<PlannedPause>,
    version: String,
    bytes: usize,
    /// What is assumed about the origin's own file, where the policy asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_robots: Option<String>,
    robots_txt: String,
}

/// A pause of the policy.
#[derive(Serialize)]
struct PlannedPause {
    audience: &'static str,
    /// As in `daily 02:00-03:00 Europe/Berlin`.
    time: String,
    /// When it is on, or will be next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextPause>,
}

#[derive(Serialize)]
struct NextPause {
    #[serde(serialize_with = "rfc3339")]
    from: Timestamp,
    #[serde(serialize_with = "rfc3339")]
    until: Timestamp,
}

impl<'a> SiteReport<'a> {
    /// What `check` says of a site that can be used. A policy without `mode` only observes.
    fn new(site: &'a Site, origins: &OriginCopies) -> SiteReport<'a> {
        SiteReport {
            site: &site.name,
            file: &site.policy.source.name,
            hosts: site
                .policy
                .hosts
                .iter()
                .map(|host| host.value.to_string())
                .collect(),
            mode: mode_name(&site.policy.enforcement.site).unwrap_or("observe"),
            unlisted_only_observed: lets_unlisted_pass(site),
            tests: site.policy.tests.len(),
            retire: RetireStatus::of(&site.policy, site.at),
            pauses: planned(site),
            version: site.robots_txt.version.to_string(),
            bytes: site.robots_txt.body.len(),
            origin_robots: origins.assumption(site),
            robots_txt: String::from_utf8_lossy(&site.robots_txt.body).into_owned(),
        }
    }
}

/// The pauses that the policy plans. `next` is only of a pause that recurs: when one without a
/// beginning begins, `check` does not know.
fn planned(site: &Site) -> Vec<PlannedPause> {
    let around =
        crate::policy::planned_pause::planned_pauses(&site.policy, site.at, |_, from| from);
    let mut planned = Vec::new();
    for pause in &site.policy.pauses {
        let next = around.iter().find(|(plan, active)| {
            pause.time.recurs() && plan.span == pause.span && active.until > site.at
        });
        planned.push(PlannedPause {
            audience: pause.audience.name(),
            time: pause.time.to_string(),
            next: next.map(|(_, active)| NextPause {
                from: active.from,
                until: active.until,
            }),
        });
    }
    planned
}

/// The problems of the certificates that a settings file names, and hosts of origins that none
/// covers. If they cannot be opened at all, that is the only problem.
fn certificate_problems(settings: &Settings) -> Vec<CertificateProblem> {
    let issued = Arc::<Issued>::default();
    match Certificates::open(&settings.listen, |tls| issued.for_listener(tls)) {
        Ok((certificates, _)) => {
            let mut problems = certificates.problems(now());
            problems.extend(
                certificates.uncovered(settings.origins.iter().flat_map(|origin| &origin.hosts)),
            );
            problems
        }
        Err(error) => vec![CertificateFault::Unusable.because(error.to_string())],
    }
}

/// Whether a path names a robots.txt and not a policy: `-`, an http(s) URL, or a name that ends in
/// `.txt` and is no directory.
pub fn is_robots_txt(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let is_text = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("txt"));
    text == "-"
        || text.starts_with("http://")
        || text.starts_with("https://")
        || is_text && !path.is_dir()
}

/// Reads and lints a robots.txt. A link that leads out of its directory is refused.
fn lint(path: &Path) -> Result<FileLints> {
    let given = path.to_string_lossy();
    tester::refuse_link_out(path)?;
    let RobotsTxt { name, bytes } = tester::file(&given, "check")?;
    let host = tester::host_of(&given);
    Ok(lint_file(
        &name,
        &File::parse(bytes),
        host.as_deref(),
        Registry::builtin(),
    ))
}

/// Findings by their weight, those that are not listed included.
#[derive(Default)]
struct Counts {
    errors: usize,
    warnings: usize,
    notes: BTreeMap<&'static str, usize>,
}

impl Counts {
    /// Counts findings by severity, with those that are not listed one by one (`more`).
    fn of<'a>(findings: impl Iterator<Item = &'a Diagnostic>) -> Counts {
        let mut counts = Counts::default();
        for finding in findings {
            let number = 1 + finding.more;
            match finding.severity {
                Severity::Error => counts.errors += number,
                Severity::Warning => counts.warnings += number,
                Severity::Note => *counts.notes.entry(finding.id).or_default() += number,
            }
        }
        counts
    }

    /// The number of notes of all kinds.
    fn notes(&self) -> usize {
        self.notes.values().sum()
    }

    /// How many notes there are of each kind, the most frequent first.
    fn notes_line(&self) -> String {
        let mut notes: Vec<(&str, usize)> = self
            .notes
            .iter()
            .map(|(id, number)| (*id, *number))
            .collect();
        notes.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        let kinds = join(
            notes
                .into_iter()
                .map(|(id, number)| format!("{number} {id}")),
            ", ",
        );
        format!(
            "{} ({kinds}); --notes shows them",
            crate::numbers::plural(self.notes(), "note")
        )
    }
}

/// The lines of a finding beyond its message: the labels of marked places, the help, and, if not
/// all findings of this kind are listed, how many more there are.
fn explanation(finding: &Diagnostic) -> Vec<String> {
    let beside = finding
        .label
        .iter()
        .chain(finding.related.iter().map(|related| &related.label))
        .cloned();
    let more =
        (finding.more > 0).then(|| format!("and {} more of this kind in the file", finding.more));
    beside
        .chain(finding.help.iter().map(|help| format!("help: {help}")))
        .chain(more)
        .collect()
}

/// One past the last column of a place, in the line that it begins in.
fn end_column(source: &Source, span: Span) -> u32 {
    let marked = source.text.get(span.start..span.end).unwrap_or_default();
    let columns = marked.lines().next().unwrap_or_default().chars().count();
    span.column
        .saturating_add(u32::try_from(columns).unwrap_or(u32::MAX))
}

/// Whether the site has `mode: enforce`, and unlisted bots are only observed.
fn lets_unlisted_pass(site: &Site) -> bool {
    site.policy.enforcement.site.mode == Some(Mode::Enforce)
        && site.crawler_rules(Claim::Other).unlisted
}

/// The name of the mode that these fields set; `None` if they set none.
fn mode_name(fields: &EnforcementFields) -> Option<&'static str> {
    fields.mode.map(|mode| mode.name())
}

/// The checkout of the files that are checked.
struct Repository {
    /// The current directory.
    current: PathBuf,
    /// The directory that names are relative to.
    root: PathBuf,
}

impl Repository {
    /// The checkout of the GitHub workflow that runs here, if the current directory is in it; else
    /// the current directory.
    fn here() -> Repository {
        let current = std::env::current_dir().unwrap_or_default();
        let workspace = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
        let root = workspace
            .filter(|root| current.starts_with(root))
            .unwrap_or_else(|| current.clone());
        Repository { current, root }
    }

    /// The name of a file, relative to the checkout. A URL, and a file from elsewhere, keep theirs.
    fn name(&self, given: &str) -> String {
        if given.contains("://") {
            return given.to_owned();
        }
        let mut file = PathBuf::new();
        for component in self.current.join(given).components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    file.pop();
                }
                other => file.push(other),
            }
        }
        printable_path(file.strip_prefix(&self.root).unwrap_or(Path::new(given)))
    }
}
