//! The command `status`: shows the problems, sites, instances, origins and certificates of the
//! running crawlgate.

use super::{Result, control, findings_unless, instances, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::admin::{self, InstanceStatus};
use crate::numbers;
use crate::policy::origin::OriginCopyState;
use crate::sites::{OriginRobotsStatus, ServedRobots};
use crate::verdict::{ENFORCE_ALL_LINE, PERHAPS_CACHED_END};
use askama::Template;

/// Further unproven hosts of a site are only counted: anybody can make up hosts of a pattern.
const MAX_UNPROVEN: usize = 5;

/// Show the sites, origins and problems of the running crawlgate
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 fine, 1 something needs attention, 3 no crawlgate answers.")]
pub struct Arguments {
    /// Only whether crawlgate runs: one line, and exit code 0 whatever its problems, for health checks
    #[arg(long)]
    alive: bool,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

/// Prints the status of the running crawlgate. Fails if it has problems, but not with `--alive`.
pub fn run(arguments: &Arguments) -> Result {
    let ControlResponse::Status(status) = arguments.output.control.send(&ControlRequest::Status)?
    else {
        return control::unexpected_response();
    };
    let socket = &arguments.output.control.path()?;
    let status = &*status;
    let mut text = format!(
        "crawlgate {} is running: up for {}, control socket {}",
        status.version,
        numbers::duration(status.uptime_seconds),
        socket.display()
    );
    if !arguments.alive {
        text += &format!("\n{}", StatusText { status });
    }
    print_result(arguments.output.json, status, text)?;
    findings_unless(status.problems.is_empty() || arguments.alive)
}

/// The status as text.
#[derive(Template)]
#[template(path = "status.txt")]
struct StatusText<'a> {
    status: &'a InstanceStatus,
}
