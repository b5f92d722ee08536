//! The command `check`: validates and lints policy files, and runs their tests. Given one policy, it
//! also shows the robots.txt that the site would serve. Given a robots.txt, it lints that file.

mod github;
mod json;
mod sarif;
pub mod sitemaps;
mod text;

use super::origin_copy::{OriginCopies, OriginFlags};
use super::policies::{self, LoadedPolicy};
use super::server_flags::{self, warning};
use super::sources::is_robots_txt;
use super::{Result, findings_failure_unless, now, print_json, tester};
use crate::acme::IssuedCertificates;
use crate::crawlers::{Claim, Registry};
use crate::edge::CertificateStore;
use crate::numbers::{plural_thousands, thousands};
use crate::policy::Site;
use crate::policy::lint::{FileFindings, LINTS, Lint, lint_file, remove_provable_findings};
use crate::policy::model::EnforcementMode;
use crate::printable::{OutputStyle, SanitizingWriter, join, join_first, printable_path};
use crate::robots::RobotsFile;
use crate::settings::{OriginIndex, Settings};
use crate::sitemap::{AffectedUrl, SitemapFindings};
use crate::sites::RetireStatus;
use crate::telemetry::{CertificateFault, CertificateProblem};
use crate::time::{Timestamp, rfc3339};
use crate::yaml::{Diagnostic, Severity, SourceFile, SourceSpan, saturating_u32};
use Severity::*;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Check policies, run their tests, and show the robots.txt of a single policy; or check any robots.txt
#[derive(Default, clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate check
  crawlgate check --config crawlgate.yaml
  crawlgate check policies/shop.yaml --deny-warnings --config crawlgate.yaml
  crawlgate check https://shop.example --sitemap https://shop.example/sitemap.xml
  crawlgate check robots.txt --deny site-closed

Exit codes: 0 fine, 1 errors (or warnings, with --deny-warnings), 2 wrong usage, 3 a file or URL cannot be read.")]
pub struct Arguments {
    /// Policy files, directories of policies, or robots.txt files (.txt, an http(s) URL, or - for
    /// standard input) [default: the policies of --config, else policies]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Fail on warnings too
    #[arg(long)]
    deny_warnings: bool,
    /// Count findings with this id as errors; may be repeated
    #[arg(
        long,
        value_name = "ID",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(lints().map(|lint| lint.id).chain(OTHER_IDS.split(' ')))
    )]
    deny: Vec<String>,
    /// Show notes too; they need no action
    #[arg(long)]
    notes: bool,
    /// Print only findings
    #[arg(long, short, conflicts_with_all = ["format", "json"])]
    quiet: bool,
    /// Check this settings file too, its certificates, and how it verifies crawlers. Use its
    /// policies and its state directory, unless others are given
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    sitemaps: sitemaps::SitemapFlags,
    #[command(flatten)]
    origin: OriginFlags,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t)]
    format: CheckFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum CheckFormat {
    /// For people
    #[default]
    Text,
    /// For programs, with all notes
    Json,
    /// GitHub workflow commands, which show each finding beside its line
    Github,
    /// SARIF 2.1.0, for code scanning and editors
    Sarif,
}

/// Ids of warnings and notes that are no lints.
const OTHER_IDS: &str = "admin-open cache-unknown empty-pattern evidence-unproven host-without-origin missing-directory";

/// All lints of policies, robots.txt files and sitemaps.
fn lints() -> impl Iterator<Item = &'static Lint> {
    LINTS.into_iter().flatten().chain(crate::sitemap::LINTS)
}

/// The files that were read, with their findings.
struct CheckResults {
    found: Vec<FileFindings>,
    sitemaps: Vec<SitemapFindings>,
    loaded: Vec<LoadedPolicy>,
    settings: Option<FileFindings>,
    certificates: Vec<CertificateProblem>,
    origins: OriginCopies,
    /// The ids of findings that count as errors.
    denied: Vec<String>,
    counts: FindingCounts,
}

/// Checks all paths and prints the findings. Fails if there are errors (each policy that cannot be
/// used has one) or, with `--deny-warnings`, warnings.
pub fn run(arguments: &Arguments) -> Result {
    let checked = check_paths(arguments)?;
    super::ignore_closed_pipe(print_checked(arguments, &checked))?;
    let has_warnings = arguments.deny_warnings && checked.counts.warnings > 0;
    findings_failure_unless(checked.counts.errors == 0 && !has_warnings)
}

/// Checks a settings file and its policies, with the origin's robots.txt if there is a copy, and prints
/// the findings alone.
pub fn check_new_files(settings: &Path, origin: Option<PathBuf>) -> Result {
    run(&Arguments {
        config: Some(settings.to_owned()),
        origin: OriginFlags {
            origin_robots: origin,
            state: None,
        },
        quiet: true,
        ..Arguments::default()
    })
}

fn print_checked(arguments: &Arguments, checked: &CheckResults) -> Result {
    use CheckFormat::*;
    let notes = arguments.notes;
    let mut out = super::stdout_printer(super::supports_colour(&io::stdout()));
    let format = if arguments.json {
        Json
    } else {
        arguments.format
    };
    match format {
        Text if arguments.quiet => text::print_findings(&mut out, checked, notes)?,
        Text => text::print_report(&mut out, checked, notes)?,
        Json => print_json(&json::build_report(checked))?,
        Sarif => print_json(&sarif::build_log(checked, notes))?,
        Github => {
            let mut out = SanitizingWriter::new(io::stdout().lock(), OutputStyle::WorkflowCommands);
            github::print_annotations(&mut out, checked, notes)?;
            writeln!(out, "{}", text::Summary { checked })?;
        }
    }
    Ok(())
}

/// Reads and checks robots.txt files, policies, and the settings with their certificates. Drops
/// warnings about missing proof if the settings allow published lists.
fn check_paths(arguments: &Arguments) -> Result<CheckResults> {
    let (mut settings_file, settings) = arguments
        .config
        .as_deref()
        .map(server_flags::read_settings_file)
        .transpose()?
        .unzip();
    let settings = settings.flatten();
    let mut found = Vec::new();
    let mut robots_files = Vec::new();
    let mut policies = Vec::new();
    if arguments.paths.is_empty() {
        policies.extend(default_policies(
            arguments.config.is_some(),
            settings.as_ref(),
        ));
    }
    for path in &arguments.paths {
        if !is_robots_txt(path) {
            policies.push(path.clone());
            continue;
        }
        policies::check_no_link_out(path)?;
        let source = path.to_string_lossy();
        let read = if arguments.sitemaps.sitemaps.is_empty() {
            tester::read_robots_txt
        } else {
            tester::read_optional_robots_txt
        };
        let file = read(&source, "check")?;
        found.push(lint_file(
            &file.name,
            &RobotsFile::parse(file.bytes.as_slice()),
            super::url_host(&source).as_deref(),
            Registry::builtin(),
        ));
        robots_files.push(file);
    }
    let origins = arguments.origin.read_or_settings(settings.as_ref())?;
    let mut loaded = if policies.is_empty() {
        Vec::new()
    } else {
        policies::load_proposed(&policies, &origins)?
    };
    let sitemaps = arguments.sitemaps.check(&loaded, robots_files)?;
    if let (Some(file), Some(settings)) = (&mut settings_file, &settings) {
        for LoadedPolicy { site, file, .. } in &mut loaded {
            if let Some(site) = site
                && settings.identity.can_prove()
            {
                remove_provable_findings(site, Registry::builtin(), &mut file.diagnostics);
            }
        }
        add_settings_warnings(settings, &loaded, file);
    }
    let mut checked = CheckResults {
        found,
        sitemaps,
        loaded,
        settings: settings_file,
        certificates: settings
            .as_ref()
            .map(certificate_problems)
            .unwrap_or_default(),
        origins,
        denied: arguments.deny.clone(),
        counts: FindingCounts::default(),
    };
    checked.counts = FindingCounts::from_findings(checked.findings(true));
    for problem in &checked.certificates {
        match problem.id.severity() {
            Error => checked.counts.errors += 1,
            _ => checked.counts.warnings += 1,
        }
    }
    Ok(checked)
}

/// Adds warnings about settings that work, but not as their owner may think, and the finding about
/// an origin that is a listener of crawlgate.
fn add_settings_warnings(settings: &Settings, loaded: &[LoadedPolicy], file: &mut FileFindings) {
    if let Some(evidence) = &settings.evidence {
        if evidence.timestamps.is_empty() {
            file.diagnostics.push(warning(
                "evidence-unproven",
                "the evidence proves no times: they are only your word",
                "write \"evidence: { timestamps: [URL] }\"",
            ));
        }
        if !settings.identity.can_prove() {
            file.diagnostics.push(warning(
                "evidence-unproven",
                "the evidence does not prove who a client is: that is only your word",
                "write \"identity: { outgoing: yes }\"",
            ));
        }
    }
    let served = settings.clone().with_default_listener();
    if let Some(mut own) = server_flags::check_own_listeners(&served) {
        // Flags may change that, and "crawlgate decide" has no such listener.
        if settings.listen.is_empty() {
            own.severity = Warning;
        }
        file.diagnostics.push(own);
    }
    if settings
        .admin
        .is_some_and(|admin| admin.ip().is_unspecified())
    {
        let mut finding = warning(
            "admin-open",
            "\"admin\" has no password: everybody who reaches its port reads dashboard, metrics and clients' addresses",
            "let a firewall or the container's network admit only Prometheus and your balancer",
        );
        // In a container there is no other way.
        finding.severity = Note;
        file.diagnostics.push(finding);
    }
    if settings.origins.is_empty() {
        return;
    }
    let origins = OriginIndex::new(&settings.origins);
    let unserved = policies::valid_sites(loaded)
        .flat_map(|site| &site.policy.hosts)
        .map(|host| host.to_string())
        .filter(|host| origins.find(host.as_bytes(), b"/").is_none());
    let unserved = join_first(unserved, 5);
    if !unserved.is_empty() {
        file.diagnostics.push(warning(
            "host-without-origin",
            &format!(
                "\"origins\" has no origin for these hosts of policies, so crawlgate answers 502: {unserved}"
            ),
            "add the hosts to \"origins\", or an origin without \"hosts\" for every other host",
        ));
    }
    let sites = policies::valid_sites(loaded).filter(|site| site.perhaps_behind_cache);
    let sites = join_first(sites.map(|site| &site.name), 5);
    if !settings.trusted_proxies.is_empty() && !sites.is_empty() {
        file.diagnostics.push(warning(
            "cache-unknown",
            &format!("\"trusted_proxies\" may be caches, so no violation counts yet: {sites}"),
            "write \"enforcement: { behind_cache: no }\" into these policies; \"yes\" if a proxy caches robots.txt",
        ));
    }
}

/// The policies to check if no path is given: those that `run` would use. `None` if the settings have
/// mistakes, or name no policies and there are none.
fn default_policies(has_file: bool, settings: Option<&Settings>) -> Option<PathBuf> {
    match settings {
        None => (!has_file).then(|| Settings::default().policies),
        Some(settings) => (!settings.policies_may_be_missing || settings.policies.exists())
            .then(|| settings.policies.clone()),
    }
}

impl CheckResults {
    /// The findings with their files; notes only with `notes`.
    fn findings(&self, notes: bool) -> impl Iterator<Item = CheckedFinding<'_>> {
        let policies = self.loaded.iter().map(|policy| &policy.file);
        let files = self.settings.iter().chain(&self.found).chain(policies);
        let of_files = files.flat_map(|file| {
            let findings = file.diagnostics.items.iter();
            findings.map(|finding| (&file.source, finding, &[][..]))
        });
        let of_sitemaps = self.sitemaps.iter().flat_map(|sitemap| {
            let findings = sitemap.findings.iter();
            findings.map(|found| (&sitemap.source, &found.diagnostic, &*found.urls))
        });
        let all = of_files.chain(of_sitemaps).map(|(source, finding, urls)| {
            let mut finding = finding.clone();
            if self.denied.iter().any(|id| id == finding.id) {
                finding.severity = Error;
            }
            CheckedFinding {
                file: &source.name,
                source,
                finding,
                urls,
            }
        });
        // A mistake in the defaults is one finding, whatever the number of policies.
        let mut of_defaults = HashSet::new();
        all.filter(move |found| {
            let finding = &found.finding;
            (notes || finding.severity != Note)
                && (!finding.is_about_defaults() || of_defaults.insert(finding.message.clone()))
        })
    }
}

/// A finding with its file.
#[derive(Serialize)]
struct CheckedFinding<'a> {
    file: &'a str,
    #[serde(skip)]
    source: &'a SourceFile,
    #[serde(flatten)]
    finding: Diagnostic,
    /// The URLs of a sitemap that it is about.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    urls: &'a [AffectedUrl],
}

/// A valid site with its robots.txt.
#[derive(Serialize)]
struct SiteSummary<'a> {
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
    /// The assumption about the origin's own file, if the policy uses it.
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
    /// The current or next time.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<PauseOccurrence>,
}

#[derive(Serialize)]
struct PauseOccurrence {
    #[serde(serialize_with = "rfc3339")]
    from: Timestamp,
    #[serde(serialize_with = "rfc3339")]
    until: Timestamp,
}

impl<'a> SiteSummary<'a> {
    /// A policy without `mode` only observes.
    fn new(site: &'a Site, origins: &OriginCopies) -> SiteSummary<'a> {
        let mode = site.policy.enforcement.site.mode;
        SiteSummary {
            site: &site.name,
            file: &site.policy.source.name,
            hosts: site
                .policy
                .hosts
                .iter()
                .map(|host| host.to_string())
                .collect(),
            mode: mode.map_or("observe", EnforcementMode::name),
            unlisted_only_observed: mode == Some(EnforcementMode::Enforce)
                && site.crawler_rules(Claim::UnknownBot).unlisted,
            tests: site.policy.tests.len(),
            retire: RetireStatus::for_policy(&site.policy, site.at),
            pauses: planned_pauses(site),
            version: site.robots_txt.version.to_string(),
            bytes: site.robots_txt.body.len(),
            origin_robots: origins.assumption(site),
            robots_txt: String::from_utf8_lossy(&site.robots_txt.body).into_owned(),
        }
    }
}

/// The pauses that the policy plans. Only a recurring pause has `next`: `check` does not know when a
/// pause without a beginning begins.
fn planned_pauses(site: &Site) -> Vec<PlannedPause> {
    let around =
        crate::policy::planned_pause::planned_pauses(&site.policy, site.at, |_, from| from);
    let mut planned = Vec::new();
    for pause in &site.policy.pauses {
        let next = around.iter().find(|(plan, active)| {
            pause.schedule.recurs() && plan.span == pause.span && active.until > site.at
        });
        planned.push(PlannedPause {
            audience: pause.audience.name(),
            time: pause.schedule.to_string(),
            next: next.map(|(_, active)| PauseOccurrence {
                from: active.from,
                until: active.until,
            }),
        });
    }
    planned
}

/// The problems of the certificates in the settings, and hosts of origins without a certificate. If
/// the certificates cannot be opened, that is the only problem.
fn certificate_problems(settings: &Settings) -> Vec<CertificateProblem> {
    let issued = Arc::<IssuedCertificates>::default();
    match CertificateStore::open(&settings.listen, |tls| issued.for_listener(tls)) {
        Ok((certificates, _)) => {
            let hosts = settings.origins.iter().flat_map(|origin| &origin.hosts);
            let mut problems = certificates.problems(now());
            problems.extend(certificates.uncovered_hosts_problem(hosts));
            problems
        }
        Err(error) => vec![CertificateFault::Unusable.with_message(error.to_string())],
    }
}

/// Findings by severity, including those that are not listed. Each URL of a sitemap counts.
#[derive(Default)]
struct FindingCounts {
    errors: usize,
    warnings: usize,
    notes: BTreeMap<&'static str, usize>,
}

impl FindingCounts {
    fn from_findings<'a>(findings: impl Iterator<Item = CheckedFinding<'a>>) -> FindingCounts {
        let mut counts = FindingCounts::default();
        for CheckedFinding { finding, urls, .. } in findings {
            let number = urls.len().max(1) + finding.more;
            match finding.severity {
                Error => counts.errors += number,
                Warning => counts.warnings += number,
                Note => *counts.notes.entry(finding.id).or_default() += number,
            }
        }
        counts
    }

    fn note_count(&self) -> usize {
        self.notes.values().sum()
    }

    /// The number of notes of each kind, the most frequent first.
    fn notes_summary(&self) -> String {
        let mut notes = Vec::from_iter(&self.notes);
        notes.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
        let kinds = notes
            .into_iter()
            .map(|(id, number)| format!("{} {id}", thousands(number)));
        format!(
            "{} ({}); --notes shows them",
            plural_thousands(self.note_count(), "note"),
            join(kinds, ", ")
        )
    }
}

/// The lines of a finding after its message: labels, help, and how many more findings of this kind
/// there are.
fn explanation_lines(finding: &Diagnostic) -> Vec<String> {
    let help = finding.help_and_more();
    finding
        .label
        .iter()
        .chain(finding.related.iter().map(|related| &related.label))
        .cloned()
        .chain(help.map(|help| format!("help: {help}")))
        .collect()
}

/// The column after a place, in its first line. Where the text is not kept, it counts bytes.
fn end_column(source: &SourceFile, span: SourceSpan) -> u32 {
    let columns = match source.text.get(span.start..span.end) {
        Some(marked) => marked.lines().next().unwrap_or_default().chars().count(),
        None => span.end.saturating_sub(span.start),
    };
    span.column.saturating_add(saturating_u32(columns))
}

/// The checkout with the checked files.
struct Repository {
    /// The current directory.
    current: PathBuf,
    /// The directory that names are relative to.
    root: PathBuf,
}

impl Repository {
    /// The checkout of the running GitHub workflow if the current directory is in it, else the
    /// current directory.
    fn from_environment() -> Repository {
        let current = std::env::current_dir().unwrap_or_default();
        let root = std::env::var_os("GITHUB_WORKSPACE")
            .map(PathBuf::from)
            .filter(|root| current.starts_with(root))
            .unwrap_or_else(|| current.clone());
        Repository { current, root }
    }

    /// The name of a file relative to the checkout. A URL and a file outside keep their names.
    fn relative_name(&self, given: &str) -> String {
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
