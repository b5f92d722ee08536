//! [`StopSignals`] tell listeners and their connections to end, because crawlgate stops or a new
//! process takes over in an upgrade. [`StopSender`] sends them.

use pingora_core::server::ShutdownWatch;
use tokio::sync::watch;

/// The two signals that listeners and their connections wait for. `closing` implies `draining`.
#[derive(Clone, Debug)]
pub struct StopSignals {
    /// No connection is accepted any more. Each open one ends after its present or next request.
    pub draining: ShutdownWatch,
    /// Connections without a request end at once.
    pub closing: ShutdownWatch,
}

/// Sends the signals of [`StopSignals`]. None is sent at first.
#[derive(Default)]
pub struct StopSender {
    draining: watch::Sender<bool>,
    closing: watch::Sender<bool>,
}

impl StopSender {
    /// The signals that this sends.
    pub fn signals(&self) -> StopSignals {
        StopSignals {
            draining: self.draining.subscribe(),
            closing: self.closing.subscribe(),
        }
    }

    /// Signals `draining`: another process accepts connections now. Open connections take one more
    /// request, because a client may be sending one.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Signals both: each connection ends as soon as it has no request.
    pub fn close(&self) {
        self.drain();
        self.closing.send_replace(true);
    }
}
