//! [`Socket`] sends a request to the running crawlgate through its control socket. All commands
//! that need the running process use it: `pause`, `resume`, `reload`, `status`, `traps`,
//! `instances`, `upgrade`, and some flags of `crawlers` and `explain`.

use super::{Failure, Result, places, say};
use crate::admin::control::{ControlError, Request, Response, call};
use crate::finding::Finding;
use std::path::PathBuf;

/// Where the running crawlgate is asked.
#[derive(clap::Args)]
pub struct Socket {
    /// The control socket of the running crawlgate [default: where `run` puts it]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// How a command prints what the running crawlgate answers, and where that one is asked.
#[derive(clap::Args)]
pub struct Output {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub control: Socket,
}

impl Socket {
    /// The path of the socket: that of `--control`, else where a running crawlgate has or would
    /// have it.
    pub fn path(&self) -> Result<PathBuf> {
        let path = self.control.clone().or_else(places::control_to_ask);
        path.ok_or_else(|| {
            Failure::Usage("found no place for a control socket; name it with --control".into())
        })
    }

    /// As [`Socket::ask`]; `None` if no socket is named and nothing answers at the default one.
    pub fn ask_if_running(&self, request: &Request) -> Result<Option<Response>> {
        match call(&self.path()?, request) {
            Err(ControlError::NotRunning { .. }) if self.control.is_none() => Ok(None),
            Ok(Response::Refused(refusal)) => Err(Failure::Found(refusal.message)),
            answer => Ok(Some(answer?)),
        }
    }

    /// Sends a request. A refusal is a finding: the running crawlgate understood the request and
    /// cannot do it.
    pub fn ask(&self, request: &Request) -> Result<Response> {
        match call(&self.path()?, request)? {
            Response::Refused(refusal) => Err(Failure::Found(refusal.message)),
            response => Ok(response),
        }
    }
}

/// Prints why a change is not fully in force, or may be lost at a restart.
pub fn warn(warnings: &[Finding]) {
    for warning in warnings {
        say(&format!("warning: {warning}"));
    }
}

/// The answer does not fit the question: another version of crawlgate is running.
pub fn unexpected() -> Result {
    Err(Failure::CouldNot(
        "the running crawlgate gave an unexpected answer; it may be another version".into(),
    ))
}
