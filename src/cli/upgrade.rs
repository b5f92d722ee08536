//! The command `upgrade`: replaces the running crawlgate by a new process (a new version, or new
//! settings) without a failed request.

use super::{Result, control, print_result};
use crate::admin::UpgradeRequest;
use crate::admin::control::{ControlRequest, ControlResponse};

/// Replace the running crawlgate with a new binary or settings, without losing a request
#[derive(clap::Args)]
#[command(
    after_help = "The new process gets the same arguments. If it is not ready in a minute, the old one continues.

Exit codes: 0 replaced, 1 the old process continues, 2 wrong usage, 3 crawlgate is not running."
)]
pub struct Arguments {
    /// If the process from before the last upgrade still answers requests, cut these off and upgrade
    /// at once. Requests of the process that runs now are still answered
    #[arg(long)]
    now: bool,
    /// Upgrade even if no service manager will follow the new process
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
    let control = &arguments.output.control;
    let ControlResponse::Upgraded(report) = control.send(&ControlRequest::Upgrade(request))? else {
        return control::unexpected_response();
    };
    let text = format!(
        "process {} has taken over in {} ms; process {} answers its last requests and ends",
        report.pid, report.milliseconds, report.before
    );
    print_result(arguments.output.json, &report, text)?;
    if let Ok(ControlResponse::Status(status)) = control.send(&ControlRequest::Status)
        && !status.problems.is_empty()
    {
        print_message!("warning: something needs attention: run \"crawlgate status --problems\"");
    }
    Ok(())
}
