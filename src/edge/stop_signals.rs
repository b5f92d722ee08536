//! [`StopSignals`] tell listeners and their connections to end, because crawlgate stops or a new
//! process takes over in an upgrade. [`StopSender`] sends them.

use pingora_core::server::ShutdownWatch;
use tokio::sync::watch;

/// The signals that listeners and their connections wait for. Each one implies those before it.
#[derive(Clone)]
pub struct StopSignals {
    /// No connection is accepted any more. Each open one ends after its present or next request.
    pub draining: ShutdownWatch,
    /// Connections without a request end at once.
    pub closing: ShutdownWatch,
    /// Every connection is cut off, and its requests are recorded.
    pub ending: ShutdownWatch,
}

/// Sends the signals of [`StopSignals`]. None is sent at first.
#[derive(Default)]
pub struct StopSender {
    draining: watch::Sender<bool>,
    closing: watch::Sender<bool>,
    ending: watch::Sender<bool>,
}

impl StopSender {
    /// The signals that this sends.
    pub fn signals(&self) -> StopSignals {
        StopSignals {
            draining: self.draining.subscribe(),
            closing: self.closing.subscribe(),
            ending: self.ending.subscribe(),
        }
    }

    /// Signals `draining`: another process accepts connections now. Open connections take one more
    /// request, because a client may be sending one.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Signals `closing`: each connection ends as soon as it has no request.
    pub fn close(&self) {
        self.drain();
        self.closing.send_replace(true);
    }

    /// Signals `ending`: the workers end, whatever their connections do.
    pub fn end(&self) {
        self.close();
        self.ending.send_replace(true);
    }
}
