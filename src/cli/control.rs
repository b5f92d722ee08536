//! [`ControlFlag`]: the flag `--control`, which names the control socket of the running crawlgate.
//! [`ControlFlag::send`] sends a request there. Every command that needs the running process uses
//! it, such as `pause`, `reload` and `status`.

use super::{Failure, Result, default_paths, print_message};
use crate::admin::control::{ControlError, ControlRequest, ControlResponse, send_request};
use crate::finding::Finding;
use std::path::PathBuf;

/// The flag `--control`.
#[derive(clap::Args)]
pub struct ControlFlag {
    /// The control socket of the running crawlgate [default: where `run` puts it]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// The flags `--json` and `--control`.
#[derive(clap::Args)]
pub struct ControlOutputFlags {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub control: ControlFlag,
}

impl ControlFlag {
    /// The path of the socket: that of `--control`, else the default path.
    pub fn path(&self) -> Result<PathBuf> {
        let path = self
            .control
            .clone()
            .or_else(default_paths::control_socket_to_connect);
        path.ok_or_else(|| {
            Failure::Usage("found no place for a control socket; name it with --control".into())
        })
    }

    /// Like [`ControlFlag::send`]. `None` if no crawlgate listens at the default path.
    pub fn send_if_running(&self, request: &ControlRequest) -> Result<Option<ControlResponse>> {
        match send_request(&self.path()?, request) {
            Err(ControlError::NotRunning { .. }) if self.control.is_none() => Ok(None),
            Ok(ControlResponse::Refused(refusal)) => Err(Failure::FindingsMessage(refusal.message)),
            answer => Ok(Some(answer?)),
        }
    }

    /// Sends a request, and returns the response. A refusal is a finding: the running crawlgate
    /// understood the request.
    pub fn send(&self, request: &ControlRequest) -> Result<ControlResponse> {
        match send_request(&self.path()?, request)? {
            ControlResponse::Refused(refusal) => Err(Failure::FindingsMessage(refusal.message)),
            response => Ok(response),
        }
    }
}

/// Prints why a change is not fully in force, or may be lost at a restart.
pub fn print_warnings(warnings: &[Finding]) {
    for warning in warnings {
        print_message(&format!("warning: {warning}"));
    }
}

/// The failure for a response to another request, as another version of crawlgate may send it.
pub fn unexpected_response() -> Result {
    Err(Failure::Runtime(
        "the running crawlgate gave an unexpected answer; it may be another version".into(),
    ))
}
