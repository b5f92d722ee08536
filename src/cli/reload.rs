//! `reload`: makes the running crawlgate read its policies again.

use super::{Result, control, fine, show};
use crate::admin::control::{Request, Response};
use crate::sites::{ReloadOutcome, ReloadReport};
use std::io::{self, Write};

/// Make the running crawlgate read its policies again, and print the result for each site
#[derive(clap::Args)]
pub struct Arguments {
    /// End the policy of a site whose file is gone; until then its last good policy stays in force
    #[arg(long, value_name = "SITE")]
    remove: Vec<String>,
    #[command(flatten)]
    output: control::Output,
}

/// Has the running crawlgate read its policies again, and ends the site of `--remove`. Prints what
/// came of it, and fails unless every file is in force as it stands (`ReloadReport::is_whole`).
pub fn run(arguments: &Arguments) -> Result {
    let Response::Reloaded(report) = arguments.output.control.ask(&Request::Reload {
        remove: arguments.remove.clone(),
    })?
    else {
        return control::unexpected();
    };
    show(arguments.output.json, &report, print)?;
    fine(report.is_whole())
}

/// Prints a reload as text: why nothing was reloaded or is not in force yet, and for each site what
/// became of it and its findings.
fn print(out: &mut impl Write, report: &ReloadReport) -> io::Result<()> {
    if let Some(problem) = &report.problem {
        writeln!(out, "nothing was reloaded: {problem}")?;
    }
    if let Some(waiting) = &report.waiting {
        writeln!(out, "not in force yet: {waiting}")?;
    }
    for site in &report.sites {
        let outcome = match site.outcome {
            ReloadOutcome::Added => "added",
            ReloadOutcome::Unchanged => "unchanged",
            ReloadOutcome::Replaced => "replaced",
            ReloadOutcome::Kept => "rejected; the last good policy stays in force",
            ReloadOutcome::Refused => "rejected; there is no last good policy, so none is in force",
            ReloadOutcome::Missing => "the file is gone; crawlgate keeps the last good policy",
            ReloadOutcome::Removed => "removed",
        };
        writeln!(out, "{}: {outcome}", site.site)?;
        for finding in &site.findings {
            writeln!(out, "  {finding}")?;
        }
    }
    Ok(())
}
