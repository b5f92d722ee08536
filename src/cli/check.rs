//! `check`: validate, lint, run tests, show the robots.txt that each site would serve. A robots.txt itself is linted.

use super::origin_copy::{self, OriginCopies};
use super::policies::{self, Loaded};
use super::tester::{self, read};
use super::{Failure, certificates, import, print_json, server_flags};
use crate::crawlers::{Claim, Registry};
use crate::policy::Site;
use crate::policy::lint::{FileLints, allow_published_proof, lint_file};
use crate::policy::model::{EnforcementFields, Mode, PausePolicy};
use crate::policy::planned_pause::planned_pauses;
use crate::robots::File;
use crate::settings::IdentitySettings;
use crate::sites::RetireStatus;
use crate::time::{Timestamp, rfc3339};
use crate::verdict::LINE_FOR_ALL;
use crate::yaml::{Diagnostic, Diagnostics, Severity, Source};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Check policies, run their tests and show their robots.txt; or lint any robots.txt
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Policy files or directories; a name that ends in `.txt`, an http(s) URL and `-` are robots.txt files
    #[arg(value_name = "PATH", default_value = "policies")]
    paths: Vec<PathBuf>,
    /// Fail on warnings, too
    #[arg(long)]
    deny_warnings: bool,
    /// Show notes, too: findings that need nothing to be done
    #[arg(long)]
    notes: bool,
    /// The settings file: check it and its certificates, too, and what its `identity` means for the policies
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    origin: origin_copy::OriginFrom,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (found, policies): (Vec<PathBuf>, Vec<PathBuf>) =
        arguments.paths.iter().cloned().partition(|path| is_robots_txt(path));
    let found = found.iter().map(|path| lint(path)).collect::<Result<Vec<_>, Failure>>()?;
    let origins = arguments.origin.read()?;
    let mut loaded = if policies.is_empty() { Vec::new() } else { policies::load(&policies, &origins)? };
    let settings = arguments.config.as_deref().map(server_flags::settings_file).transpose()?.unwrap_or_default();
    if settings.identity.as_ref().is_some_and(IdentitySettings::proves) {
        for Loaded { site, diagnostics, .. } in &mut loaded {
            site.iter().for_each(|site| allow_published_proof(site, Registry::builtin(), diagnostics));
        }
    }
    let certificates = certificates::problems(&settings);
    let unusable = certificates.iter().filter(|problem| problem.is_error).count();
    let mut counts = Counts::of(files(&found, &loaded).flat_map(|(_, diagnostics)| &diagnostics.items));
    counts.errors += unusable;
    counts.warnings += certificates.len() - unusable;
    if arguments.json {
        let certificates = certificates.iter().map(|problem| problem.text.as_str()).collect();
        print_json(&Report { certificates, ..report(&found, &loaded, &origins, &counts) })?;
    } else {
        certificates::print(&certificates)?;
        print(&found, &loaded, &origins, &counts, arguments.notes)?;
    }
    let refused = loaded.iter().any(|file| file.site.is_none());
    if refused || counts.errors > 0 || (arguments.deny_warnings && counts.warnings > 0) {
        return Err(Failure::Findings);
    }
    Ok(())
}

/// Whether a path names a robots.txt and not a policy.
pub(super) fn is_robots_txt(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let is_text = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"));
    text == "-" || text.starts_with("http://") || text.starts_with("https://") || is_text && !path.is_dir()
}

fn lint(path: &Path) -> Result<FileLints, Failure> {
    let given = path.to_string_lossy();
    match read(&given)? {
        tester::Source::File { name, bytes, server } => {
            let host = tester::host_of(&given);
            Ok(lint_file(&name, &File::parse(bytes), host.as_deref(), server.as_deref(), Registry::builtin()))
        }
        tester::Source::Status { status, .. } => {
            Err(Failure::CouldNot(format!("{given} answered {status}; there is no file to check")))
        }
    }
}

/// Findings by their weight, those that are not listed included.
#[derive(Default)]
struct Counts {
    errors: usize,
    warnings: usize,
    notes: BTreeMap<&'static str, usize>,
}

impl Counts {
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

    fn notes(&self) -> usize {
        self.notes.values().sum()
    }

    /// How many notes there are of each kind, the most frequent first.
    fn notes_line(&self) -> String {
        let mut notes: Vec<(&str, usize)> = self.notes.iter().map(|(id, number)| (*id, *number)).collect();
        notes.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        let notes: Vec<String> = notes.into_iter().map(|(id, number)| format!("{number} {id}")).collect();
        format!("{} ({}); --notes shows them", plural(self.notes(), "note"), notes.join(", "))
    }
}

fn plural(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// All files that were read, with what was found in them.
fn files<'a>(found: &'a [FileLints], loaded: &'a [Loaded]) -> impl Iterator<Item = (&'a Source, &'a Diagnostics)> {
    let files = found.iter().map(|lints| (&lints.source, &lints.diagnostics));
    files.chain(loaded.iter().map(|file| (&file.source, &file.diagnostics)))
}

fn print(
    found: &[FileLints],
    loaded: &[Loaded],
    origins: &OriginCopies,
    counts: &Counts,
    notes: bool,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let colour = super::colour(&out);
    for (source, diagnostics) in files(found, loaded) {
        for finding in diagnostics.items.iter().filter(|finding| notes || finding.severity != Severity::Note) {
            writeln!(out, "{}\n", finding.render(source, colour).trim_end())?;
        }
    }
    if !notes && counts.notes() > 0 {
        writeln!(out, "{}\n", counts.notes_line())?;
    }
    for site in loaded.iter().filter_map(|file| file.site.as_deref()) {
        print_site(&mut out, site, origins)?;
    }
    let good = loaded.iter().filter(|file| file.site.is_some()).count();
    let findings = format!("{}, {}", plural(counts.errors, "error"), plural(counts.warnings, "warning"));
    let read = plural(found.len(), "robots.txt file");
    match (loaded.len(), found.len()) {
        (0, _) => writeln!(out, "{read} read, {findings}"),
        (files, 0) => writeln!(out, "{good} of {} good, {findings}", plural(files, "policy file")),
        (files, _) => writeln!(out, "{good} of {} good, {read} read, {findings}", plural(files, "policy file")),
    }
}

/// A good site: what it is for, what it does, and its robots.txt.
fn print_site(out: &mut impl Write, site: &Site, origins: &OriginCopies) -> io::Result<()> {
    writeln!(out, "{} ({})", site.name, site.policy.source.name)?;
    writeln!(out, "  hosts       {}", hosts(site))?;
    if let Some(first) = local_hosts(site).first() {
        writeln!(
            out,
            "  WARNING     {first} is an address, localhost, or has a port: clients ask for the public name of"
        )?;
        writeln!(out, "              the site. Write that name into `hosts`")?;
    }
    writeln!(out, "  mode        {}", mode(site))?;
    if lets_unlisted_pass(site) {
        writeln!(
            out,
            "  unlisted    bots that neither the registry nor this policy names are only observed; to refuse"
        )?;
        writeln!(out, "              them as well, write `{LINE_FOR_ALL}`")?;
    }
    let tests = match site.policy.tests.len() {
        0 => "none".to_owned(),
        tests => format!("{tests} passed"),
    };
    writeln!(out, "  tests       {tests}")?;
    if site.html.is_some() {
        writeln!(out, "  html        crawlgate requests the pages that it rewrites without compression: compress in")?;
        writeln!(out, "              front of crawlgate, or limit `html.paths`")?;
    }
    for retired in RetireStatus::of(&site.policy, site.at) {
        writeln!(out, "  retire      {retired}")?;
    }
    for pause in planned(site) {
        let next = pause.next.map(|next| format!("; next {} to {}", next.from, next.until)).unwrap_or_default();
        writeln!(out, "  pause       {}, {}{next}", pause.audience, pause.time)?;
    }
    if let Some(assumption) = origins.assumption(site) {
        writeln!(out, "  origin's    robots.txt {assumption}")?;
    }
    writeln!(out, "  robots.txt  version {}, {} bytes\n", site.robots_txt.version, site.robots_txt.body.len())?;
    for line in String::from_utf8_lossy(&site.robots_txt.body).lines() {
        writeln!(out, "{}", if line.is_empty() { String::new() } else { format!("    {line}") })?;
    }
    writeln!(out)?;
    Ok(())
}

fn hosts(site: &Site) -> String {
    let names: Vec<String> = site.policy.hosts.iter().map(|host| host.value.to_string()).collect();
    if names.is_empty() { "every host that no other policy claims".into() } else { names.join(", ") }
}

/// The hosts of a site, if all of them are addresses, this machine, or names with a port.
fn local_hosts(site: &Site) -> Vec<String> {
    let hosts: Vec<String> = site.policy.hosts.iter().map(|host| host.value.to_string()).collect();
    if hosts.iter().all(|host| import::is_local(host)) { hosts } else { Vec::new() }
}

/// The site's mode, and the crawlers and purposes with another one.
fn mode(site: &Site) -> String {
    let enforcement = &site.policy.enforcement;
    let mut text = mode_name(&enforcement.site).unwrap_or("observe").to_owned();
    let purposes = enforcement.purposes.iter().map(|(purpose, fields)| (purpose.name(), fields));
    let agents = enforcement.agents.iter().map(|(agent, fields)| (agent.value.as_str(), fields));
    for (name, fields) in purposes.chain(agents) {
        if let Some(mode) = mode_name(fields) {
            text.push_str(&format!("; {mode} for {name}"));
        }
    }
    text
}

/// Whether the site refuses crawlers, but no unlisted bots.
fn lets_unlisted_pass(site: &Site) -> bool {
    site.policy.enforcement.site.mode == Some(Mode::Enforce) && site.crawler_rules(Claim::Other).unlisted
}

fn mode_name(fields: &EnforcementFields) -> Option<&'static str> {
    fields.mode.map(|mode| mode.name())
}

#[derive(Serialize)]
struct Report<'a> {
    sites: Vec<SiteReport<'a>>,
    findings: Vec<Finding<'a>>,
    errors: usize,
    warnings: usize,
    notes: usize,
    /// What is wrong with the certificates of the settings file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<&'a str>,
}

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

/// The pauses that the policy plans. When one without a beginning begins, `check` does not know.
fn planned(site: &Site) -> Vec<PlannedPause> {
    let around = planned_pauses(&site.policy, site.at, |_, from| from);
    let next = |pause: &PausePolicy| {
        let mut own = around.iter().filter(|(plan, active)| plan.span == pause.span && active.until > site.at);
        own.next().map(|(_, active)| NextPause { from: active.from, until: active.until })
    };
    let planned = site.policy.pauses.iter().map(|pause| PlannedPause {
        audience: pause.audience.name(),
        time: pause.time.to_string(),
        next: next(pause).filter(|_| pause.time.recurs()),
    });
    planned.collect()
}

#[derive(Serialize)]
struct Finding<'a> {
    file: &'a str,
    #[serde(flatten)]
    finding: &'a Diagnostic,
}

fn report<'a>(found: &'a [FileLints], loaded: &'a [Loaded], origins: &OriginCopies, counts: &Counts) -> Report<'a> {
    Report {
        sites: loaded.iter().filter_map(|file| file.site.as_deref()).map(|site| site_report(site, origins)).collect(),
        findings: files(found, loaded)
            .flat_map(|(source, diagnostics)| {
                diagnostics.items.iter().map(|finding| Finding { file: &source.name, finding })
            })
            .collect(),
        errors: counts.errors,
        warnings: counts.warnings,
        notes: counts.notes(),
        certificates: Vec::new(),
    }
}

fn site_report<'a>(site: &'a Site, origins: &OriginCopies) -> SiteReport<'a> {
    SiteReport {
        site: &site.name,
        file: &site.policy.source.name,
        hosts: site.policy.hosts.iter().map(|host| host.value.to_string()).collect(),
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
