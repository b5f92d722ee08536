//! A graceful stop that ends with the last request. Pingora's own sleeps for its whole grace period, even when idle,
//! and does not wait for requests after it (Pingora 0.9.1).

use crate::admin::Operations;
use crate::gateway::Gateway;
use crate::telemetry::{AccessLog, Events};
use async_trait::async_trait;
use pingora_core::apps::HttpServerApp;
use pingora_core::server::{ShutdownSignal, ShutdownSignalWatch};
use pingora_proxy::HttpProxy;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long the logs may take to be written out.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

/// Says that the server is to stop.
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

    /// Finish what was begun, then end. Asked a second time: end now.
    pub(super) fn graceful(&self) {
        self.request.send_modify(|request| {
            *request = if *request == Request::None { Request::Graceful } else { Request::Now };
        });
    }

    /// End now.
    pub(super) fn now(&self) {
        self.request.send_replace(Request::Now);
    }

    async fn at_least(&self, wanted: Request) -> Request {
        let mut request = self.request.subscribe();
        // The sender is ours, so that waiting cannot fail; if it did, stopping is the safe answer.
        request.wait_for(|request| *request >= wanted).await.map_or(Request::Now, |request| *request)
    }
}

/// Counts what is open.
pub(super) struct Open {
    count: watch::Sender<usize>,
}

impl Default for Open {
    fn default() -> Open {
        Open { count: watch::Sender::new(0) }
    }
}

impl Open {
    /// One more, until the guard is dropped.
    pub(super) fn count(self: &Arc<Open>) -> Counted {
        self.count.send_modify(|count| *count += 1);
        Counted(self.clone())
    }

    fn now(&self) -> usize {
        *self.count.borrow()
    }

    async fn none(&self) {
        let mut count = self.count.subscribe();
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

/// Something open.
pub(super) struct Counted(Arc<Open>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

/// Waits for the wish to stop, then for the last request, then lets Pingora end.
pub(super) struct Drain {
    pub(super) stop: Arc<Stop>,
    /// Closes the listeners and keeps connections from being used again.
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
        // Idle connections end; those with a request end with it. First, so that whoever sees the listeners closed is
        // told so.
        self.proxy.http_cleanup().await;
        self.closing.send_replace(true);
        if request == Request::Graceful {
            self.drain().await;
        }
        self.access.flush(FLUSH_LIMIT);
        self.events.flush(FLUSH_LIMIT);
        match request {
            Request::Now => ShutdownSignal::FastShutdown,
            Request::None | Request::Graceful => ShutdownSignal::GracefulTerminate,
        }
    }
}

impl Drain {
    async fn drain(&self) {
        tracing::info!("stopping: no new connections, {:?} for the requests that are running", self.limit);
        tokio::select! {
            () = self.open.none() => tracing::info!("stopped: the last request has ended"),
            () = tokio::time::sleep(self.limit) => {
                tracing::warn!(connections = self.open.now(), "stopped: the time for requests to end is over");
            }
            _ = self.stop.at_least(Request::Now) => {
                tracing::warn!(connections = self.open.now(), "stopped: asked a second time");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn asking_twice_means_now() {
        let stop = Stop::new();
        stop.graceful();
        assert_eq!(stop.at_least(Request::Graceful).await, Request::Graceful);
        stop.graceful();
        assert_eq!(stop.at_least(Request::Now).await, Request::Now);
    }

    #[tokio::test]
    async fn waiting_ends_when_the_last_guard_is_dropped() {
        let open = Arc::new(Open::default());
        let (one, other) = (open.count(), open.count());
        let waiting = tokio::spawn({
            let open = open.clone();
            async move { open.none().await }
        });
        drop(one);
        assert_eq!(open.now(), 1);
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
    }
}
