//! [`ControlRequestHandler`] carries out requests of the control socket, through which commands
//! such as `pause` and `reload` reach the running crawlgate. If a request fails, the command gets a
//! [`ControlRefusal`]: an id for programs, and a message for people.

use super::{ControlRequest, ControlResponse};
use crate::admin::dashboard::{live_report, report_period};
use crate::admin::{Operations, UpgradeReport, UpgradeRequest};
use crate::peers::ForgetError;
use crate::sites::{PauseError, RemoveError};
use crate::state::history::RequestHistoryError;
use ipnet::IpNet;
use std::error::Error;
use std::sync::Arc;

use ControlRefusal::*;
use ControlResponse::*;

pub const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlRefusal {
    #[error("the request is longer than {MAX_REQUEST_BYTES} bytes")]
    TooLong,
    #[error("invalid request: {0}")]
    Invalid(#[from] serde_json::Error),
    #[error(transparent)]
    Network(#[from] ipnet::PrefixLenError),
    #[error(transparent)]
    Pause(#[from] PauseError),
    #[error(transparent)]
    Remove(#[from] RemoveError),
    #[error(transparent)]
    Forget(#[from] ForgetError),
    #[error(transparent)]
    History(#[from] RequestHistoryError),
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    #[error(
        "the lists were not updated: the running crawlgate has neither \"identity.outgoing: yes\" nor a directory in \
         identity.lists, or the servers took too long"
    )]
    NoUpdate,
    #[error("there is no site {0}, and the history has none in this period")]
    NoSite(String),
    #[error("the running crawlgate has no other instances: its settings have no \"store\"")]
    NoStore,
    #[error("this crawlgate is a demo and cannot be upgraded. Stop it and start it again")]
    NoUpgrade,
}

impl ControlRefusal {
    pub fn id(&self) -> &'static str {
        match self {
            TooLong => "too-long",
            Invalid(_) => "invalid-request",
            Network(_) => "invalid-network",
            History(_) => "history",
            Pause(error) => error.id(),
            Remove(error) => error.id(),
            Forget(ForgetError::UnknownInstance(_)) => "unknown-instance",
            Forget(ForgetError::Busy) => "store-busy",
            Upgrade(_) => "no-upgrade",
            NoUpdate => "no-update",
            NoSite(_) => "unknown-site",
            NoStore => "no-store",
            NoUpgrade => "demo",
        }
    }
}

/// Starts the next process and hands over to it.
pub type UpgradeHandler =
    Box<dyn Fn(UpgradeRequest) -> Result<UpgradeReport, UpgradeError> + Send + Sync>;

/// Why an upgrade failed. The running process continues.
pub type UpgradeError = Box<dyn Error + Send + Sync>;

/// Performs the requests of clients.
pub struct ControlRequestHandler {
    /// For all requests but upgrades.
    pub operations: Arc<Operations>,
    /// For upgrades, where they are possible.
    pub upgrade: Option<UpgradeHandler>,
}

/// Performs the request in this line of JSON.
pub fn perform_request(
    line: &[u8],
    commands: &ControlRequestHandler,
) -> Result<ControlResponse, ControlRefusal> {
    use ControlRequest::*;

    let operations = &commands.operations;
    let sites = &operations.instance.sites;
    let store = operations.sources.instances.as_ref().ok_or(NoStore);
    Ok(match serde_json::from_slice(line)? {
        Status => ControlResponse::Status(Box::new(operations.status())),
        Reload { remove } if remove.is_empty() => Reloaded(operations.reload()),
        Reload { remove } => Reloaded(operations.remove_sites(&remove)?),
        Pause(request) => Paused {
            until: operations.pause(&request)?,
            warnings: operations.change_warnings(),
        },
        Resume { site } => Resumed {
            sites: operations.resume(site.as_deref())?,
            warnings: operations.change_warnings(),
        },
        Traps => Marks {
            marks: operations.trap_marks(),
        },
        Release {
            address,
            prefix_length,
        } => Released {
            marks: operations.release_marks(IpNet::new(address, prefix_length)?),
        },
        Explain(question) => Explained(operations.explain(&question)),
        Report {
            since,
            until,
            site,
            crawler,
        } => {
            let period = report_period(operations, since, until)?;
            let report = live_report(operations, period, &site, &crawler)?;
            let is_known = site.is_empty() || sites.snapshot().entry_by_name(&site).is_some();
            if !is_known && report.crawlers.is_empty() {
                return Err(NoSite(site));
            }
            ControlResponse::Report(Box::new(report))
        }
        Instances => ControlResponse::Instances(Box::new(store?.status())),
        Forget { instance } => {
            let store = store?;
            store.peers.forget(&instance)?;
            ControlResponse::Instances(Box::new(store.status()))
        }
        Upgrade(request) => {
            let upgrade = commands.upgrade.as_ref().ok_or(NoUpgrade)?;
            Upgraded(upgrade(request)?)
        }
        UpdateLists => ListsUpdated {
            lists: operations.update_lists().ok_or(NoUpdate)?,
        },
    })
}
