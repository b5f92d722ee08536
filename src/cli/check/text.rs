//! `check` for a person: prints the findings, then each valid site with its robots.txt, then a
//! summary.

use super::{Checked, SiteReport, mode_name};
use crate::cli::import;
use crate::edge::CertificateProblem;
use crate::numbers::plural;
use crate::policy::Site;
use crate::verdict::LINE_FOR_ALL;
use askama::Template;
use std::io::{self, Write};

/// Prints the findings, then the good sites, then a summary.
pub fn print(out: &mut impl Write, checked: &Checked, notes: bool) -> io::Result<()> {
    print_findings(out, checked, notes)?;
    if !notes && checked.counts.notes() > 0 {
        writeln!(out, "{}\n", checked.counts.notes_line())?;
    }
    for site in super::policies::sites(&checked.loaded) {
        let report = SiteReport::new(site, &checked.origins);
        writeln!(out, "{}", SiteText { site, report })?;
    }
    writeln!(out, "{}", summary(checked))
}

/// Prints the findings alone.
pub fn print_findings(out: &mut impl Write, checked: &Checked, notes: bool) -> io::Result<()> {
    for CertificateProblem { is_error, text } in &checked.certificates {
        writeln!(
            out,
            "{}: {text}\n",
            if *is_error { "error" } else { "warning" }
        )?;
    }
    let colour = crate::cli::colour(&io::stdout());
    checked.listed(notes).try_for_each(|(source, finding)| {
        writeln!(out, "{}\n", finding.render(source, colour).trim_end())
    })
}

/// How many files are good, and how many findings there are.
pub fn summary(checked: &Checked) -> String {
    let Checked {
        found,
        loaded,
        counts,
        ..
    } = checked;
    let good = loaded.iter().filter(|file| file.site.is_some()).count();
    let findings = format!(
        "{}, {}",
        plural(counts.errors, "error"),
        plural(counts.warnings, "warning")
    );
    let read = plural(found.len(), "robots.txt file");
    match (loaded.len(), found.len()) {
        (0, _) => format!("{read} read, {findings}"),
        (files, 0) => format!(
            "{good} of {} good, {findings}",
            plural(files, "policy file")
        ),
        (files, _) => format!(
            "{good} of {} good, {read} read, {findings}",
            plural(files, "policy file")
        ),
    }
}

/// A good site: what it is for, what it does, and its robots.txt.
#[derive(Template)]
#[template(path = "check_site.txt")]
struct SiteText<'a> {
    site: &'a Site,
    report: SiteReport<'a>,
}

impl SiteText<'_> {
    /// The first host, where no client asks for any of them.
    fn unreachable_host(&self) -> Option<&String> {
        let hosts = &self.report.hosts;
        let first = hosts.first()?;
        hosts
            .iter()
            .all(|host| import::is_local(host))
            .then_some(first)
    }

    /// The site's mode, and the crawlers and purposes with another one.
    fn mode(&self) -> String {
        let enforcement = &self.site.policy.enforcement;
        let mut text = mode_name(&enforcement.site).unwrap_or("observe").to_owned();
        let purposes = enforcement
            .purposes
            .iter()
            .map(|(purpose, fields)| (purpose.name(), fields));
        let agents = enforcement
            .agents
            .iter()
            .map(|(agent, fields)| (agent.value.as_str(), fields));
        for (name, fields) in purposes.chain(agents) {
            if let Some(mode) = mode_name(fields) {
                text.push_str(&format!("; {mode} for {name}"));
            }
        }
        text
    }
}
