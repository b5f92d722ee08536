//! `reload`: the running crawlgate reads its policies again.

use super::{Failure, control, print_json};
use crate::admin::control::{Request, Response};
use crate::sites::{Outcome, ReloadReport};
use std::io::{self, Write};

/// Make the running crawlgate read its policies again, and print the result for each site
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: control::Socket,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let report = match arguments.control.ask(&Request::Reload)? {
        Response::Reloaded(report) => report,
        _ => return Err(control::unexpected()),
    };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&report)?;
    }
    if report.is_whole() { Ok(()) } else { Err(Failure::Findings) }
}

fn print(report: &ReloadReport) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if let Some(problem) = &report.problem {
        writeln!(out, "nothing was reloaded: {problem}")?;
    }
    if let Some(waiting) = &report.waiting {
        writeln!(out, "not in force yet: {waiting}")?;
    }
    for site in &report.sites {
        let outcome = match site.outcome {
            Outcome::Added => "added",
            Outcome::Unchanged => "unchanged",
            Outcome::Replaced => "replaced",
            Outcome::Kept => "rejected; the last good policy stays in force",
            Outcome::Refused => "rejected; there is no last good policy, so none is in force",
            Outcome::Removed => "removed",
        };
        writeln!(out, "{}: {outcome}", site.site)?;
        for finding in &site.findings {
            writeln!(out, "  {finding}")?;
        }
    }
    Ok(())
}
