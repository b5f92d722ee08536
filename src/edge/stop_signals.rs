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

/// Sends the signals of [`StopSignals`].
pub struct StopSender {
    draining: watch::Sender<bool>,
    closing: watch::Sender<bool>,
}

impl StopSignals {
    /// Creates the two signals, which are not sent yet.
    pub fn channel() -> (StopSender, StopSignals) {
        let (draining, drained) = watch::channel(false);
        let (closing, closed) = watch::channel(false);
        (
            StopSender { draining, closing },
            StopSignals {
                draining: drained,
                closing: closed,
            },
        )
    }
}

impl StopSender {
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
