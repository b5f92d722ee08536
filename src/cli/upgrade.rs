//! The command `upgrade`: replaces the running crawlgate by a new process (a new version, or new
//! settings) without a failed request.

use super::{Result, control, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::admin::{UpgradeReport, UpgradeRequest};

/// Replace the running crawlgate by another process: another binary or other settings, without a
/// lost request
#[derive(clap::Args)]
#[command(
    after_help = "The next process is started as the running one was: same program name, same arguments. If it is \
                        not ready in a minute, the running one goes on."
)]
pub struct Arguments {
    /// End a process that still answers the last requests of the upgrade before
    #[arg(long)]
    now: bool,
    /// Upgrade although no service manager follows the next process
    #[arg(long)]
    unsupervised: bool,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

/// Makes the running crawlgate start its successor, and prints both process ids and the duration.
pub fn run(arguments: &Arguments) -> Result {
    let request = UpgradeRequest {
        now: arguments.now,
        unsupervised: arguments.unsupervised,
    };
    let ControlResponse::Upgraded(report) = arguments
        .output
        .control
        .send(&ControlRequest::Upgrade(request))?
    else {
        return control::unexpected_response();
    };
    let UpgradeReport {
        before,
        pid,
        milliseconds,
    } = &report;
    let text = format!(
        "process {pid} serves in place of process {before}, which answers its last requests ({milliseconds} ms)"
    );
    print_result(arguments.output.json, &report, text)
}
