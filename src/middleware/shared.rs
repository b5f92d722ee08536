//! [`Shared`]: the parts that all requests of a gate share. A gate is one
//! [`GateLayer`](super::GateLayer) with its clones. When the last clone of the gate is dropped, the
//! threads stop, the logs are flushed, and the state is written.

use crate::requests::Requests;
use crate::state::StateStore;
use crate::upkeep::{Upkeep, UpkeepThreads};
use http::Extensions;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The longest time that the end of a gate waits for its logs to be written.
const FLUSH: Duration = Duration::from_secs(2);

/// Finds the address of a connection's other end in the extensions of a request.
pub type PeerAddress = fn(&Extensions) -> Option<IpAddr>;

/// What all requests of a gate share.
pub struct Shared {
    pub requests: Arc<Requests>,
    pub upkeep: Arc<Upkeep>,
    pub peer: Option<PeerAddress>,
    pub store: StateStore,
    /// `None` once the gate ends.
    pub threads: Option<UpkeepThreads>,
}

impl Drop for Shared {
    /// Ends the gate: stops its threads, writes the logs out, and closes the state.
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.close();
        }
        self.upkeep.instance.access.flush(FLUSH);
        self.upkeep.instance.events.flush(FLUSH);
        if let Err(error) = self.store.close() {
            tracing::warn!("{error}; the next start will treat this run as crashed");
        }
    }
}
