//! `status`: shows the problems, sites, instances, origins and certificates of the running
//! crawlgate.

use super::{Result, control, fine, instances, show};
use crate::admin::control::{Request, Response};
use crate::admin::{self, InstanceStatus};
use crate::numbers;
use crate::policy::origin::OriginCopyState;
use crate::sites::{OriginRobotsStatus, Served};
use crate::verdict::{LINE_FOR_ALL, PERHAPS_CACHED};
use askama::Template;

/// Hosts without violations that are shown of a site: anybody can make up hosts of a pattern.
const MAX_UNPROVEN: usize = 5;

/// Show the sites, origins and problems of the running crawlgate
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 fine, 1 something needs attention, 3 no crawlgate answers.")]
pub struct Arguments {
    /// Only whether crawlgate runs: one line, and exit code 0 whatever its problems, for health checks
    #[arg(long)]
    alive: bool,
    #[command(flatten)]
    output: control::Output,
}

/// Prints the status of the running crawlgate; with `--alive` one line. Fails if it has problems;
/// with `--alive` only if it does not answer.
pub fn run(arguments: &Arguments) -> Result {
    let Response::Status(status) = arguments.output.control.ask(&Request::Status)? else {
        return control::unexpected();
    };
    let asked = &arguments.output.control.path()?;
    let status = &*status;
    let mut text = format!(
        "crawlgate {} is running: up for {}, control socket {}",
        status.version,
        numbers::span(status.uptime_seconds),
        asked.display()
    );
    if !arguments.alive {
        text += &format!("\n{}", StatusText { status });
    }
    show(arguments.output.json, status, text)?;
    fine(status.problems.is_empty() || arguments.alive)
}

/// The status as text.
#[derive(Template)]
#[template(path = "status.txt")]
struct StatusText<'a> {
    status: &'a InstanceStatus,
}
