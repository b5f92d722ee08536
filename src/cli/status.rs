//! The command `status`: shows the problems, sites, instances, origins and certificates of the
//! running crawlgate.

use super::{Result, control, findings_failure_unless, instances, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::admin::{self, InstanceStatus};
use crate::policy::origin::OriginCopyState;
use crate::sites::{OriginRobotsStatus, ServedRobotsKind};
use crate::verdict::{ENFORCE_ALL_LINE, PERHAPS_CACHED_END};
use askama::Template;
use std::path::PathBuf;
use std::time::Duration;

/// Further unproven hosts of a site are only counted: anybody can make up hosts of a pattern.
const MAX_UNPROVEN: usize = 5;

/// Show whether crawlgate is running, its sites and origins, and what needs attention
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 fine, 1 something needs attention, 2 wrong usage, 3 crawlgate is not running."
)]
pub struct Arguments {
    /// Only check that crawlgate runs, for health checks: exit code 0 whatever its problems
    #[arg(long)]
    alive: bool,
    /// Show only what needs attention
    #[arg(long)]
    problems: bool,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

/// Prints the status of the running crawlgate. Fails if it has problems, but not with `--alive`.
pub fn run(arguments: &Arguments) -> Result {
    let flags = &arguments.output.control;
    let socket = flags.path()?;
    let ControlResponse::Status(status) = flags.send_to(&socket, &ControlRequest::Status)? else {
        return control::unexpected_response();
    };
    let status = &*status;
    let text = StatusText {
        status,
        socket,
        alive: arguments.alive,
        problems_only: arguments.problems,
    };
    print_result(arguments.output.json, status, text)?;
    findings_failure_unless(status.problems.is_empty() || arguments.alive)
}

/// The status as text.
#[derive(Template)]
#[template(path = "status.txt")]
struct StatusText<'a> {
    status: &'a InstanceStatus,
    socket: PathBuf,
    alive: bool,
    problems_only: bool,
}
