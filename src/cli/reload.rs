//! `reload`: makes the running crawlgate read its policies again.

use super::{Result, control, fine, show};
use crate::admin::control::{Request, Response};
use crate::sites::{ReloadOutcome, ReloadReport};
use askama::Template;

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
    show(
        arguments.output.json,
        &report,
        ReloadText { report: &report },
    )?;
    fine(report.is_whole())
}

/// A reload as text: why nothing was reloaded or is not in force yet, and for each site what became
/// of it and its findings.
#[derive(Template)]
#[template(path = "reload.txt")]
struct ReloadText<'a> {
    report: &'a ReloadReport,
}
