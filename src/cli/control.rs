//! Talking to a running crawlgate: which socket, and what its refusals mean. Shared by `pause`, `resume`, `reload`,
//! `status`, `traps` and `explain --live`.

use super::{Failure, places};
use crate::admin::control::{Request, Response, call};
use std::path::PathBuf;

/// Where the running crawlgate is asked.
#[derive(Debug, clap::Args)]
pub struct Socket {
    /// The control socket of the running crawlgate [default: where `run` puts it]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl Socket {
    /// Asks. A refusal is a finding: the request was understood, and makes no sense there.
    pub fn ask(&self, request: &Request) -> Result<Response, Failure> {
        let Some(path) = self.control.clone().or_else(places::control_to_ask) else {
            return Err(Failure::Usage(
                "there is no usual place for a control socket here: name it with --control".into(),
            ));
        };
        match call(&path, request).map_err(|error| Failure::CouldNot(error.to_string()))? {
            Response::Refused { error } => Err(Failure::Found(error)),
            response => Ok(response),
        }
    }
}

/// The answer is not to the question: another version of crawlgate is running.
pub fn unexpected() -> Failure {
    Failure::CouldNot("the running crawlgate answered something else; is it of another version?".into())
}
