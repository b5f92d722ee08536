//! `check` for a person: prints the findings, then each valid site with its robots.txt, then a
//! summary.

use super::{Checked, SiteReport, mode_name};
use crate::cli::import;
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
    for problem in &checked.certificates {
        let severity = if problem.id.is_error() {
            "error"
        } else {
            "warning"
        };
        writeln!(out, "{severity}: {}\n", problem.message)?;
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
    let policies = plural(loaded.len(), "policy file");
    match (loaded.len(), found.len()) {
        (0, _) => format!("{read} read, {findings}"),
        (_, 0) => format!("{good} of {policies} good, {findings}"),
        _ => format!("{good} of {policies} good, {read} read, {findings}"),
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
