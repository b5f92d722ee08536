//! A graceful stop that ends with the last request: [`Stop`] is the wish, [`Drain`] waits.
//! Pingora's own stop sleeps for its whole grace period, even when idle, and does not wait for requests after it (Pingora
//! 0.9.1). Must not know signals.
//!
//! A stop is in one of three states: `None`, `Graceful` and `Now`. [`Stop::graceful`] moves it one state on,
//! [`Stop::now`] to `Now`.

use super::service_manager;
use crate::admin::Operations;
use crate::edge::Open;
use crate::gateway::Gateway;
use crate::telemetry::{AccessLog, Events};
use async_trait::async_trait;
use pingora_core::apps::HttpServerApp;
use pingora_core::server::{ShutdownSignal, ShutdownSignalWatch};
use pingora_proxy::HttpProxy;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long writing both logs out may take.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

/// The wish that the server stops.
pub(super) struct Stop {
    request: watch::Sender<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Request {
    None,
    Graceful,
    Now,
}

impl Stop {
    pub(super) fn new() -> Stop {
        Stop { request: watch::Sender::new(Request::None) }
    }

    /// Asks the server to end with its last request. The second time, asks it to end at once.
    pub(super) fn graceful(&self) {
        self.request.send_modify(|request| {
            *request = if *request == Request::None { Request::Graceful } else { Request::Now };
        });
    }

    /// Asks the server to end at once.
    pub(super) fn now(&self) {
        self.request.send_replace(Request::Now);
    }

    async fn at_least(&self, wanted: Request) -> Request {
        let mut request = self.request.subscribe();
        // Waiting cannot fail while `self` holds the sender. If it did, stopping would be safe.
        request.wait_for(|request| *request >= wanted).await.map_or(Request::Now, |request| *request)
    }
}

/// Waits for the wish to stop and for the last request. Then Pingora ends.
pub(super) struct Drain {
    pub(super) stop: Arc<Stop>,
    /// Closes the listeners, and each connection with its request.
    pub(super) closing: watch::Sender<bool>,
    pub(super) proxy: Arc<HttpProxy<Gateway>>,
    pub(super) open: Arc<Open>,
    pub(super) operations: Arc<Operations>,
    pub(super) access: AccessLog,
    pub(super) events: Events,
    pub(super) limit: Duration,
}

#[async_trait]
impl ShutdownSignalWatch for Drain {
    async fn recv(&self) -> ShutdownSignal {
        let request = self.stop.at_least(Request::Graceful).await;
        self.operations.set_ready(false);
        service_manager::tell(&[NotifyState::Stopping, NotifyState::Status("waiting for running requests")]);
        // Idle connections end now, the others with their request. Before the listeners close, so that a client that
        // sees them closed reuses no connection either.
        self.proxy.http_cleanup().await;
        self.closing.send_replace(true);
        if request == Request::Graceful {
            self.drain().await;
        }
        let end = Instant::now() + FLUSH_LIMIT;
        self.access.flush(FLUSH_LIMIT);
        self.events.flush(end.saturating_duration_since(Instant::now()));
        match request {
            Request::Now => ShutdownSignal::FastShutdown,
            Request::None | Request::Graceful => ShutdownSignal::GracefulTerminate,
        }
    }
}

impl Drain {
    async fn drain(&self) {
        tracing::info!(
            "stopping: crawlgate accepts no new connections and waits up to {:?} for running requests",
            self.limit
        );
        tokio::select! {
            () = self.open.none() => tracing::info!("stopped: the last request has ended"),
            () = tokio::time::sleep(self.limit) => {
                tracing::warn!(connections = self.open.now(), "stopped: `limits.drain` is over; crawlgate cut the remaining connections off");
            }
            _ = self.stop.at_least(Request::Now) => {
                tracing::warn!(connections = self.open.now(), "stopped: a second signal came; crawlgate cut the remaining connections off");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn second_graceful_stop_is_immediate() {
        let stop = Stop::new();
        stop.graceful();
        assert_eq!(stop.at_least(Request::Graceful).await, Request::Graceful);
        stop.graceful();
        assert_eq!(stop.at_least(Request::Now).await, Request::Now);
    }
}
