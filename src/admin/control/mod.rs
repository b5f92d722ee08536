//! The control socket, by which commands such as `pause`, `reload` and `status` reach the running
//! crawlgate. It is a Unix socket that only its owner can open. [`ControlSocket`] is the server,
//! and [`send_request`] is the client. A request ([`ControlRequest`]) and its response
//! ([`ControlResponse`]) are one line of JSON each.

mod commands;
mod socket;

pub use commands::{ControlRequestHandler, UpgradeHandler};
pub use socket::ControlSocket;

use super::{
    ExplainRequest, ExplainResponse, InstanceStatus, StoreStatus, UpgradeReport, UpgradeRequest,
};
use crate::facts::ClientMark;
use crate::finding::Finding;
use crate::identity::refresh::ListUpdateReport;
use crate::report::{PeriodBound, Report};
use crate::sites::{PauseRequest, ReloadReport};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A response may have the findings of all sites.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024 * 1024;
/// How long a client may take to send its request, or to receive the response, and how long it waits
/// for a status, which health checks ask for.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client waits for a response. A reload of thousands of sites takes seconds.
const SERVER_TIMEOUT: Duration = Duration::from_secs(120);

/// A request of a client.
#[derive(Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ControlRequest {
    Status,
    Reload {
        /// Sites to end: their policy files are gone.
        #[serde(default)]
        remove: Vec<String>,
    },
    Pause(PauseRequest),
    Resume {
        site: Option<String>,
    },
    Traps,
    Release {
        address: IpAddr,
        prefix_length: u8,
    },
    Explain(ExplainRequest),
    Report {
        /// By default as far back as the history reaches, up to 30 days.
        since: Option<PeriodBound>,
        /// By default now.
        until: Option<PeriodBound>,
        /// A site; empty for all.
        site: String,
        /// The id of a crawler; empty for all.
        crawler: String,
    },
    UpdateLists,
    Instances,
    Forget {
        instance: String,
    },
    Upgrade(UpgradeRequest),
}

/// The response to a [`ControlRequest`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ControlResponse {
    Status(Box<InstanceStatus>),
    Reloaded(ReloadReport),
    Paused {
        until: Timestamp,
        /// Why the pause is not fully in force, or may be lost at a restart.
        warnings: Vec<Finding>,
    },
    Resumed {
        sites: Vec<String>,
        /// Why the end of the pause is not fully in force, or may be lost at a restart.
        warnings: Vec<Finding>,
    },
    Marks {
        marks: Vec<ClientMark>,
    },
    Released {
        marks: Vec<ClientMark>,
    },
    Explained(ExplainResponse),
    Report(Box<Report>),
    /// The update of each published list.
    ListsUpdated {
        lists: Vec<ListUpdateReport>,
    },
    /// The state of the store and its instances.
    Instances(Box<StoreStatus>),
    /// The next process serves.
    Upgraded(UpgradeReport),
    /// The request failed: no such site, too long a pause.
    Refused(Finding),
}

/// Why a client cannot send a request, or the server cannot open the socket.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No process listens.
    #[error(
        "crawlgate does not answer at {path} ({error}). {}",
        if error.kind() == io::ErrorKind::PermissionDenied {
            "Run this command as the user of crawlgate, or as root"
        } else {
            "It is not running, it is still starting (see its log), or it hangs. If it runs elsewhere, name its settings file with --config, or its socket with --control"
        }
    )]
    NotRunning {
        /// The socket.
        path: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// Another process serves the socket already.
    #[error(
        "another crawlgate uses the control socket {path}{}, so this one does not start. Stop the other one (after an \
         upgrade, it may be the old process, which still answers requests: \"pgrep -a crawlgate\" shows it), or give this \
         one another socket with --control",
        .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    AlreadyRunning {
        /// The socket.
        path: String,
        /// Its process id, where it is known.
        pid: Option<u32>,
    },
    /// The socket cannot be made or used.
    #[error("cannot use the control socket {path}: {error}")]
    Io {
        /// The socket.
        path: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
}

impl ControlError {
    fn io(path: &Path, error: io::Error) -> ControlError {
        ControlError::Io {
            path: path.display().to_string(),
            error,
        }
    }
}

/// Sends a request to the running crawlgate, and returns its response.
///
/// # Errors
/// No process listens, or the response cannot be read.
pub fn send_request(
    path: &Path,
    request: &ControlRequest,
) -> Result<ControlResponse, ControlError> {
    let silent = |error| ControlError::NotRunning {
        path: path.display().to_string(),
        error,
    };
    let stream = UnixStream::connect(path).map_err(silent)?;
    exchange_messages(&stream, request).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => silent(io::ErrorKind::TimedOut.into()),
        _ => ControlError::io(path, error),
    })
}

fn exchange_messages(
    mut stream: &UnixStream,
    request: &ControlRequest,
) -> io::Result<ControlResponse> {
    let timeout = match request {
        ControlRequest::Status => CLIENT_TIMEOUT,
        _ => SERVER_TIMEOUT,
    };
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut bytes = serde_json::to_vec(request)?;
    bytes.push(b'\n');
    stream.write_all(&bytes)?;
    let mut line = Vec::new();
    BufReader::new(stream.take(MAX_RESPONSE_BYTES)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}
