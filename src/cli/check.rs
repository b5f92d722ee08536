//! `check`: validate, lint, run tests, show the robots.txt that each site would serve. A robots.txt itself is linted.

use super::origin_copy::{self, OriginCopies};
use super::policies::{self, Loaded};
use super::tester::{self, read};
use super::{Failure, certificates, import, print_json};
use crate::crawlers::Registry;
use crate::policy::Site;
use crate::policy::lint::{FileLints, lint_file};
use crate::policy::model::EnforcementFields;
use crate::robots::File;
use crate::sites::RetireStatus;
use crate::yaml::{Diagnostic, Severity};
use serde::Serialize;
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
    /// The settings file: check it and its certificates, too
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
    let loaded = if policies.is_empty() { Vec::new() } else { policies::load(&policies, &origins)? };
    let all = || found.iter().map(|lints| &lints.diagnostics).chain(loaded.iter().map(|file| &file.diagnostics));
    let count = |severity| all().flat_map(|found| &found.items).filter(|finding| finding.severity == severity).count();
    let certificates = arguments.config.as_deref().map(certificates::problems).transpose()?.unwrap_or_default();
    let unusable = certificates.iter().filter(|problem| problem.is_error).count();
    let errors = count(Severity::Error) + unusable;
    let warnings = count(Severity::Warning) + certificates.len() - unusable;
    if arguments.json {
        let certificates = certificates.iter().map(|problem| problem.text.as_str()).collect();
        print_json(&Report { certificates, ..report(&found, &loaded, &origins, errors, warnings) })?;
    } else {
        certificates::print(&certificates)?;
        print(&found, &loaded, &origins, errors, warnings)?;
    }
    let refused = loaded.iter().any(|file| file.site.is_none());
    if refused || errors > 0 || (arguments.deny_warnings && warnings > 0) {
        return Err(Failure::Findings);
    }
    Ok(())
}

fn is_robots_txt(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let is_text = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"));
    text == "-" || text.starts_with("http://") || text.starts_with("https://") || is_text && !path.is_dir()
}

fn lint(path: &Path) -> Result<FileLints, Failure> {
    let given = path.to_string_lossy();
    match read(&given)? {
        tester::Source::File { name, bytes, server } => {
            let host = import::host_of(&given);
            Ok(lint_file(&name, &File::parse(bytes), host.as_deref(), server.as_deref(), Registry::builtin()))
        }
        tester::Source::Status { status, .. } => {
            Err(Failure::CouldNot(format!("{given} answered {status}; there is no file to check")))
        }
    }
}

fn print(
    found: &[FileLints],
    loaded: &[Loaded],
    origins: &OriginCopies,
    errors: usize,
    warnings: usize,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let colour = super::colour(&out);
    let files = found.iter().map(|lints| (&lints.source, &lints.diagnostics));
    for (source, diagnostics) in files.chain(loaded.iter().map(|file| (&file.source, &file.diagnostics))) {
        for finding in &diagnostics.items {
            writeln!(out, "{}\n", finding.render(source, colour).trim_end())?;
        }
    }
    for site in loaded.iter().filter_map(|file| file.site.as_deref()) {
        writeln!(out, "{} ({})", site.name, site.policy.source.name)?;
        writeln!(out, "  hosts       {}", hosts(site))?;
        writeln!(out, "  mode        {}", mode(site))?;
        let tests = match site.policy.tests.len() {
            0 => "none".to_owned(),
            tests => format!("{tests} passed"),
        };
        writeln!(out, "  tests       {tests}")?;
        for retired in RetireStatus::of(&site.policy, site.at) {
            writeln!(out, "  retire      {retired}")?;
        }
        if let Some(assumption) = origins.assumption(site) {
            writeln!(out, "  origin's    robots.txt {assumption}")?;
        }
        writeln!(out, "  robots.txt  version {}, {} bytes\n", site.robots_txt.version, site.robots_txt.body.len())?;
        for line in String::from_utf8_lossy(&site.robots_txt.body).lines() {
            writeln!(out, "{}", if line.is_empty() { String::new() } else { format!("    {line}") })?;
        }
        writeln!(out)?;
    }
    let good = loaded.iter().filter(|file| file.site.is_some()).count();
    let plural = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let findings = format!("{}, {}", plural(errors, "error"), plural(warnings, "warning"));
    let read = plural(found.len(), "robots.txt file");
    match (loaded.len(), found.len()) {
        (0, _) => writeln!(out, "{read} read, {findings}"),
        (files, 0) => writeln!(out, "{good} of {} good, {findings}", plural(files, "policy file")),
        (files, _) => writeln!(out, "{good} of {} good, {read} read, {findings}", plural(files, "policy file")),
    }
}

fn hosts(site: &Site) -> String {
    let names: Vec<String> = site.policy.hosts.iter().map(|host| host.value.to_string()).collect();
    if names.is_empty() { "every host that no other policy claims".into() } else { names.join(", ") }
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

fn mode_name(fields: &EnforcementFields) -> Option<&'static str> {
    fields.mode.map(|mode| mode.name())
}

#[derive(Serialize)]
struct Report<'a> {
    sites: Vec<SiteReport<'a>>,
    findings: Vec<Finding<'a>>,
    errors: usize,
    warnings: usize,
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
    tests: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retire: Vec<RetireStatus>,
    version: String,
    bytes: usize,
    /// What is assumed about the origin's own file, where the policy asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_robots: Option<String>,
    robots_txt: String,
}

#[derive(Serialize)]
struct Finding<'a> {
    file: &'a str,
    #[serde(flatten)]
    finding: &'a Diagnostic,
}

fn report<'a>(
    found: &'a [FileLints],
    loaded: &'a [Loaded],
    origins: &OriginCopies,
    errors: usize,
    warnings: usize,
) -> Report<'a> {
    let files = found.iter().map(|lints| (&lints.source, &lints.diagnostics));
    let files = files.chain(loaded.iter().map(|file| (&file.source, &file.diagnostics)));
    Report {
        sites: loaded.iter().filter_map(|file| file.site.as_deref()).map(|site| site_report(site, origins)).collect(),
        findings: files
            .flat_map(|(source, diagnostics)| {
                diagnostics.items.iter().map(|finding| Finding { file: &source.name, finding })
            })
            .collect(),
        errors,
        warnings,
        certificates: Vec::new(),
    }
}

fn site_report<'a>(site: &'a Site, origins: &OriginCopies) -> SiteReport<'a> {
    SiteReport {
        site: &site.name,
        file: &site.policy.source.name,
        hosts: site.policy.hosts.iter().map(|host| host.value.to_string()).collect(),
        mode: mode_name(&site.policy.enforcement.site).unwrap_or("observe"),
        tests: site.policy.tests.len(),
        retire: RetireStatus::of(&site.policy, site.at),
        version: site.robots_txt.version.to_string(),
        bytes: site.robots_txt.body.len(),
        origin_robots: origins.assumption(site),
        robots_txt: String::from_utf8_lossy(&site.robots_txt.body).into_owned(),
    }
}
