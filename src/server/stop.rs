//! [`StopHandle`] asks the server to stop, and [`ShutdownWaiter`] waits for its last request. They
//! replace Pingora's own stop. Pingora always sleeps for a whole grace period, and then ends
//! without waiting for open requests (Pingora 0.9.1).
//!
//! A stop is in one of these states:
//! - `None`: the server serves. [`StopHandle::stop_after_upgrade`] changes the state to
//!   `AfterUpgrade`, and [`StopHandle::stop_gracefully`] to `Graceful`.
//! - `AfterUpgrade`: another process serves, and each connection ends with its next response.
//! - `Graceful`: the server ends with its last request.
//! - `Immediate`: the server ends at once. [`StopHandle::stop_immediately`] changes every state to
//!   `Immediate`. [`StopHandle::stop_gracefully`] does so in the states `AfterUpgrade` and
//!   `Graceful`.

use super::service_manager;
use super::sockets::PassableListener;
use crate::admin::Operations;
use crate::edge::{ConnectionCounter, StopSender};
use crate::gateway::Gateway;
use crate::locks::lock;
use crate::numbers::plural;
use crate::upkeep::Instance;
use StopRequest::{AfterUpgrade, Graceful, Immediate};
use async_trait::async_trait;
use pingora_core::apps::HttpServerApp;
use pingora_core::server::{ShutdownSignal, ShutdownSignalWatch};
use pingora_proxy::HttpProxy;
use sd_notify::NotifyState;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::watch;

/// The limit for flushing each of the two logs.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);
/// How long connections may take to end that are idle or cut off.
const IDLE_LIMIT: Duration = Duration::from_millis(500);

/// Flushes both logs, each within `FLUSH_LIMIT`.
pub fn flush_logs(instance: &Instance) {
    instance.access.flush(FLUSH_LIMIT);
    instance.events.flush(FLUSH_LIMIT);
}

/// Asks the server to stop. Not requested at first.
#[derive(Default)]
pub struct StopHandle {
    request: watch::Sender<StopRequest>,
    /// Ends the listeners of the proxy and of the decision service, and their connections.
    pub stopper: StopSender,
    /// Ends the admin listener.
    pub admin: StopSender,
    /// The first cause, for the log.
    cause: OnceLock<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum StopRequest {
    #[default]
    None,
    AfterUpgrade,
    Graceful,
    Immediate,
}

impl StopHandle {
    /// Call when another process serves. Closes the admin listener; the others accept no more
    /// connections. Each connection ends with its next response, and the server with its last
    /// connection.
    pub fn stop_after_upgrade(&self) {
        self.admin.close();
        self.stopper.drain();
        self.update_request("an upgrade", |request| request.max(AfterUpgrade));
    }

    /// Asks the server to end with its last request. The second time, and after an upgrade, asks it
    /// to end at once.
    pub fn stop_gracefully(&self, cause: &'static str) {
        self.update_request(cause, |request| {
            if request == StopRequest::None {
                Graceful
            } else {
                Immediate
            }
        });
    }

    /// Asks the server to end at once.
    pub fn stop_immediately(&self, cause: &'static str) {
        self.update_request(cause, |_| Immediate);
    }

    /// Replaces the request by `next` of the present one. Keeps the first cause.
    fn update_request(&self, cause: &'static str, next: impl FnOnce(StopRequest) -> StopRequest) {
        let _ = self.cause.set(cause);
        self.request
            .send_modify(|request| *request = next(*request));
    }

    /// Waits until the request is at least `wanted`, and returns it.
    async fn wait_for_request(&self, wanted: StopRequest) -> StopRequest {
        let mut request = self.request.subscribe();
        // Waiting cannot fail while `self` holds the sender. If it did, stopping would be safe.
        request
            .wait_for(|request| *request >= wanted)
            .await
            .map_or(Immediate, |request| *request)
    }

    /// Logs the end: the cause of the stop, how it ended, and how many connections were cut off, with
    /// how many `requests`.
    fn log_end(&self, how: &str, connections: usize, requests: i64) {
        let cause = self.cause.get().unwrap_or(&"a stop");
        match connections {
            0 => tracing::info!("stopped after {cause}: {how}"),
            _ => tracing::warn!(
                "stopped after {cause}: {how}; crawlgate cut off {} with {}",
                plural(connections, "connection"),
                plural(requests, "open request")
            ),
        }
    }
}

/// Waits for a request to stop, and then for the last request of a client. Then Pingora ends.
pub struct ShutdownWaiter {
    pub stop: Arc<StopHandle>,
    /// The listeners' descriptors for another process, which would keep them open.
    pub passable: Arc<Mutex<Vec<PassableListener>>>,
    pub proxy: Arc<HttpProxy<Gateway>>,
    pub open: Arc<ConnectionCounter>,
    /// How many connections are cut off at the end.
    pub cut_off: Arc<AtomicUsize>,
    pub operations: Arc<Operations>,
    /// How long a stop takes at most.
    pub limit: Duration,
    /// How long an upgrade takes at most.
    pub upgrade_limit: Duration,
}

#[async_trait]
impl ShutdownSignalWatch for ShutdownWaiter {
    /// Waits for a stop and its end, cuts off what is still open, and flushes the logs. Pingora ends
    /// at once in any case, because nothing is left to wait for.
    async fn recv(&self) -> ShutdownSignal {
        let request = self.stop.wait_for_request(AfterUpgrade).await;
        let how = if request == AfterUpgrade {
            self.drain_connections().await
        } else {
            self.drain_requests(request).await
        };
        self.stop.admin.close();
        let connections = self.open.open_count();
        self.cut_off.store(connections, Release);
        self.stop.log_end(how, connections, self.open_requests());
        self.stop.stopper.end();
        // A worker that hangs does not end.
        let _ = tokio::time::timeout(IDLE_LIMIT, self.open.wait_until_none()).await;
        flush_logs(&self.operations.instance);
        if request == Immediate {
            ShutdownSignal::FastShutdown
        } else {
            ShutdownSignal::GracefulTerminate
        }
    }
}

impl ShutdownWaiter {
    /// The number of requests that are not yet answered completely.
    fn open_requests(&self) -> i64 {
        self.operations.instance.metrics.in_flight.get()
    }

    /// Closes the listeners and waits for the last request, unless `request` is `Immediate`. Returns
    /// how that ended: with the last request, at the limit, or by a second signal.
    async fn drain_requests(&self, request: StopRequest) -> &'static str {
        self.operations.set_ready(false);
        service_manager::notify(&[
            NotifyState::Stopping,
            NotifyState::Status("waiting for running requests"),
        ]);
        // Idle connections end now, the others with their request. Before the listeners close, so
        // that a client that sees them closed reuses no connection either.
        self.proxy.http_cleanup().await;
        lock(&self.passable).clear();
        self.stop.stopper.close();
        if request == Immediate {
            return "at once";
        }
        tracing::info!(
            "stopping: {}, waiting up to {:?} (limits.drain)",
            plural(self.open_requests(), "open request"),
            self.limit
        );
        tokio::select! {
            () = self.open.wait_until_none() => "the last request has ended",
            () = tokio::time::sleep(self.limit) => "the time of limits.drain is over",
            _ = self.stop.wait_for_request(Immediate) => "a second signal came",
        }
    }

    /// Waits for the last connection after another process has taken over: each ends with its next
    /// response or its idle timeout. At the limit, or when asked to end, closes the idle ones.
    /// Returns how it ended.
    async fn drain_connections(&self) -> &'static str {
        self.operations.set_ready(false);
        tracing::info!(
            "the new process serves; this one has {}. It ends with its last connection, at the latest after {:?} \
             (upgrade.drain)",
            plural(self.open_requests(), "open request"),
            self.upgrade_limit
        );
        let how = tokio::select! {
            () = self.open.wait_until_none() => return "the last connection has ended",
            () = tokio::time::sleep(self.upgrade_limit) => "the time of upgrade.drain is over",
            _ = self.stop.wait_for_request(Immediate) => "this process was told to end",
        };
        self.stop.stopper.close();
        // Connections without a request end in order.
        let _ = tokio::time::timeout(IDLE_LIMIT, self.open.wait_until_none()).await;
        how
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn second_graceful_stop_is_immediate() {
        let stop = StopHandle::default();
        stop.stop_gracefully("SIGTERM");
        assert_eq!(
            stop.wait_for_request(StopRequest::Graceful).await,
            StopRequest::Graceful
        );
        stop.stop_gracefully("SIGTERM");
        assert_eq!(
            stop.wait_for_request(StopRequest::Immediate).await,
            StopRequest::Immediate
        );
    }
}
