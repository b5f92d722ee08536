//! Proof of crawlers in the running server: [`open`] makes the [`Proofs`] that the settings ask for, and
//! [`IdentityThreads::start`] starts the threads that ask servers and DNS.

use super::ServerError;
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::identity::refresh::{Refresher, UpdateHandle};
use crate::identity::{Proofs, Uses, refresh, worker};
use crate::settings::{IdentitySettings, ListSettings};
use crate::state::{StateStore, StoredFacts};
use crate::telemetry::Metrics;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// What the threads need, until they are started.
pub struct IdentityThreads {
    settings: IdentitySettings,
    queue: Option<Receiver<IpAddr>>,
}

/// Makes the proofs, with what the state store remembers.
pub fn open(
    settings: &IdentitySettings,
    registry: &Registry,
    facts: &StoredFacts,
    store: &StateStore,
) -> (Arc<Proofs>, IdentityThreads) {
    // Without outgoing requests the lists of an earlier run still count.
    let has_source = settings.outgoing || matches!(settings.lists, ListSettings::Directory(_));
    let has_lists = has_source || !facts.network_lists.is_empty();
    let (queue, waiting) = settings.outgoing.then(worker::queue).unzip();
    let uses =
        Uses { lists: settings.lists != ListSettings::Off && has_lists, signatures: settings.signatures && has_lists };
    let proofs = Proofs::new(registry, facts, store, uses, queue);
    (Arc::new(proofs), IdentityThreads { settings: settings.clone(), queue: waiting })
}

impl IdentityThreads {
    /// Starts the threads. `None` where no lists are refreshed.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        self,
        proofs: &Arc<Proofs>,
        clock: &Clock,
        metrics: &Arc<Metrics>,
    ) -> Result<Option<UpdateHandle>, ServerError> {
        let IdentitySettings { outgoing, lists, resolvers, signatures } = &self.settings;
        if let Some(queue) = self.queue {
            worker::start(proofs.clone(), resolvers.clone(), queue, clock.clone(), metrics.clone())
                .map_err(ServerError::io("cannot start the thread for reverse DNS"))?;
        }
        let is_refreshed = match lists {
            ListSettings::Off => *outgoing && *signatures,
            ListSettings::Published | ListSettings::Mirror(_) => *outgoing,
            ListSettings::Directory(_) => true,
        };
        if !is_refreshed {
            return Ok(None);
        }
        if let ListSettings::Directory(directory) = lists
            && !directory.is_dir()
        {
            tracing::warn!(
                directory = %directory.display(),
                "`identity.lists` names a directory that is not there: crawlgate reads lists as soon as it is"
            );
        }
        let refresher = Refresher::new(proofs.clone(), &self.settings, clock.clone());
        refresh::start(refresher).map(Some).map_err(ServerError::io("cannot start the thread for lists of networks"))
    }
}
