//! `check --format text`: prints the findings about the policies, then the site with its robots.txt
//! if there is only one, then a summary.

use super::{CheckResults, SiteSummary};
use crate::cli::import;
use crate::numbers::{plural, plural_thousands};
use crate::policy::Site;
use crate::verdict::ENFORCE_ALL_LINE;
use askama::Template;
use std::io::{self, Write};

/// Prints the findings, the site if there is only one policy, and the summary.
pub fn print_report(out: &mut impl Write, checked: &CheckResults, notes: bool) -> io::Result<()> {
    print_findings(out, checked, notes)?;
    if !notes && checked.counts.note_count() > 0 {
        writeln!(out, "{}\n", checked.counts.notes_summary())?;
        if checked.counts.notes.contains_key("open-ended-path") && checked.sitemaps.is_empty() {
            writeln!(
                out,
                "A rule like /p closes every path that begins with /p, perhaps more than is meant. --sitemap URL shows \
                 which pages of your sitemap are closed.\n"
            )?;
        }
    }
    if checked.loaded.len() > 1 {
        let sites = super::policies::valid_sites(&checked.loaded);
        checked.origins.print_assumptions(sites);
        writeln!(
            out,
            "To see the robots.txt of a site, run \"crawlgate check FILE\" with its policy file.\n"
        )?;
    } else {
        for site in super::policies::valid_sites(&checked.loaded) {
            let report = SiteSummary::new(site, &checked.origins);
            writeln!(out, "{}", SiteText { site, report })?;
        }
    }
    writeln!(out, "{}", Summary { checked })
}

/// Prints only the findings.
pub fn print_findings(out: &mut impl Write, checked: &CheckResults, notes: bool) -> io::Result<()> {
    for problem in &checked.certificates {
        let severity = problem.id.severity().name();
        writeln!(out, "{severity}: {}\n", problem.message)?;
    }
    let colour = crate::cli::supports_colour(&io::stdout());
    checked.findings(notes).try_for_each(|found| {
        let text = found.finding.render(found.source, colour);
        writeln!(out, "{}\n", text.trim_end())
    })
}

/// The number of valid files and of findings.
#[derive(Template)]
#[template(path = "check_summary.txt")]
pub struct Summary<'a> {
    pub checked: &'a CheckResults,
}

/// A valid site with its robots.txt, as text.
#[derive(Template)]
#[template(path = "check_site.txt")]
struct SiteText<'a> {
    site: &'a Site,
    report: SiteSummary<'a>,
}

impl SiteText<'_> {
    /// The first host, if none of them is a public name.
    fn unreachable_host(&self) -> Option<&String> {
        let hosts = &self.report.hosts;
        let first = hosts.first()?;
        hosts
            .iter()
            .all(|host| import::is_local_host(host))
            .then_some(first)
    }
}
