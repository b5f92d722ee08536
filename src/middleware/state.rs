//! [`GateState`]: one running crawlgate inside an application. All clones of a
//! [`GateLayer`](super::GateLayer) share it. When the last clone is dropped, the background threads
//! stop, the logs are flushed, and the state database is written.

use crate::requests::RequestPipeline;
use crate::state::StateStore;
use crate::upkeep::{InstanceUpkeep, UpkeepThreads};
use http::Extensions;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The longest time that a closing gate waits for its logs to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Finds the address of a connection's other end in the extensions of a request.
pub type PeerAddress = fn(&Extensions) -> Option<IpAddr>;

/// The shared state of a gate.
pub struct GateState {
    pub requests: Arc<RequestPipeline>,
    pub upkeep: Arc<InstanceUpkeep>,
    /// Whether anybody requested `/robots.txt` since the start.
    pub robots_txt_requested: AtomicBool,
    pub peer: Option<PeerAddress>,
    pub store: StateStore,
    /// `None` once the gate ends.
    pub threads: Option<UpkeepThreads>,
}

impl Drop for GateState {
    /// Ends the gate: stops its threads, writes the logs out, and closes the state.
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.stop_and_flush();
        }
        self.upkeep.instance.access.flush(FLUSH_TIMEOUT);
        self.upkeep.instance.events.flush(FLUSH_TIMEOUT);
        if let Err(error) = self.store.close() {
            tracing::warn!("{error}; the next start will treat this run as crashed");
        }
    }
}
