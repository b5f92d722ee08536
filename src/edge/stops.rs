//! [`Stops`]: the signals that tell listeners and their connections to end, when crawlgate stops or
//! another process takes over. [`Stopper`] sends them.

use pingora_core::server::ShutdownWatch;
use tokio::sync::watch;

/// The two signals that listeners and their connections wait for. `closing` implies `leaving`.
#[derive(Clone, Debug)]
pub struct Stops {
    /// No connection is accepted any more, and each one ends with its next request, or the one that
    /// it has.
    pub leaving: ShutdownWatch,
    /// Connections without a request end at once.
    pub closing: ShutdownWatch,
}

/// Sends the signals of [`Stops`].
pub struct Stopper {
    leaving: watch::Sender<bool>,
    closing: watch::Sender<bool>,
}

impl Stops {
    /// Two signals that were not sent yet.
    pub fn new() -> (Stopper, Stops) {
        let (leaving, left) = watch::channel(false);
        let (closing, closed) = watch::channel(false);
        (
            Stopper { leaving, closing },
            Stops {
                leaving: left,
                closing: closed,
            },
        )
    }
}

impl Stopper {
    /// Signals `leaving`, when another process accepts connections. Those that are open take one
    /// more request, so that no client sends one into a connection that is just closed.
    pub fn leave(&self) {
        self.leaving.send_replace(true);
    }

    /// Signals both: each connection ends as soon as it has no request.
    pub fn close(&self) {
        self.leave();
        self.closing.send_replace(true);
    }
}
