//! `check` for a person: prints the findings, then each valid site with its robots.txt, then a
//! summary.

use super::{Checked, PlannedPause, SiteReport, mode_name};
use crate::cli::import;
use crate::numbers::plural;
use crate::policy::Site;
use crate::verdict::LINE_FOR_ALL;
use std::io::{self, Write};

/// Prints the findings, then the good sites, then a summary.
pub fn print(out: &mut impl Write, checked: &Checked, notes: bool) -> io::Result<()> {
    print_findings(out, checked, notes)?;
    if !notes && checked.counts.notes() > 0 {
        writeln!(out, "{}\n", checked.counts.notes_line())?;
    }
    for site in super::policies::sites(&checked.loaded) {
        print_site(out, site, &SiteReport::new(site, &checked.origins))?;
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
fn print_site(out: &mut impl Write, site: &Site, report: &SiteReport<'_>) -> io::Result<()> {
    let SiteReport {
        site: name,
        file,
        hosts,
        tests,
        ..
    } = report;
    writeln!(out, "{name} ({file})")?;
    print_hosts(out, hosts)?;
    writeln!(out, "  mode        {}", mode(site))?;
    if report.unlisted_only_observed {
        writeln!(
            out,
            "  unlisted    bots that neither the registry nor this policy names are only observed; to refuse\n              \
             them as well, write `{LINE_FOR_ALL}`"
        )?;
    }
    let tests = match tests {
        0 => "none".to_owned(),
        tests => format!("{tests} passed"),
    };
    writeln!(out, "  tests       {tests}")?;
    if site.html.is_some() {
        writeln!(
            out,
            "  html        crawlgate requests the pages that it rewrites without compression: compress in\n              \
             front of crawlgate, or limit `html.paths`"
        )?;
    }
    for retired in &report.retire {
        writeln!(out, "  retire      {retired}")?;
    }
    for PlannedPause {
        audience,
        time,
        next,
    } in &report.pauses
    {
        let next = next
            .as_ref()
            .map(|next| format!("; next {} to {}", next.from, next.until))
            .unwrap_or_default();
        writeln!(out, "  pause       {audience}, {time}{next}")?;
    }
    if let Some(assumption) = &report.origin_robots {
        writeln!(out, "  origin's    robots.txt {assumption}")?;
    }
    writeln!(
        out,
        "  robots.txt  version {}, {} bytes\n",
        report.version, report.bytes
    )?;
    for line in report.robots_txt.lines() {
        let indent = if line.is_empty() { "" } else { "    " };
        writeln!(out, "{indent}{line}")?;
    }
    writeln!(out)
}

/// The hosts of a site, with a warning where no client asks for any of them.
fn print_hosts(out: &mut impl Write, hosts: &[String]) -> io::Result<()> {
    let Some(first) = hosts.first() else {
        return writeln!(out, "  hosts       every host that no other policy claims");
    };
    writeln!(out, "  hosts       {}", hosts.join(", "))?;
    if hosts.iter().all(|host| import::is_local(host)) {
        writeln!(
            out,
            "  WARNING     {first} is an address, localhost, or has a port: clients ask for the public name of\n              \
             the site. Write that name into `hosts`"
        )?;
    }
    Ok(())
}

/// The site's mode, and the crawlers and purposes with another one.
fn mode(site: &Site) -> String {
    let enforcement = &site.policy.enforcement;
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
