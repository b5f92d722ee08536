//! `upgrade`: replaces the running crawlgate by another process (a new version, or new settings)
//! without a failed request.

use super::{Result, control, show};
use crate::admin::control::{Request, Response};
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
    output: control::Output,
}

/// Has the running crawlgate start its successor, which takes over its connections, and prints both
/// process numbers and how long that took.
pub fn run(arguments: &Arguments) -> Result {
    let request = UpgradeRequest {
        now: arguments.now,
        unsupervised: arguments.unsupervised,
    };
    let Response::Upgraded(report) = arguments.output.control.ask(&Request::Upgrade(request))?
    else {
        return control::unexpected();
    };
    let UpgradeReport {
        before,
        pid,
        milliseconds,
    } = &report;
    let text = format!(
        "process {pid} serves in place of process {before}, which answers its last requests ({milliseconds} ms)"
    );
    show(arguments.output.json, &report, text)
}
