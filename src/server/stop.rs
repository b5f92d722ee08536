//! [`Stop`] asks the server to stop, and [`Drain`] waits for its last request. Pingora's own stop
//! sleeps for its whole grace period, even when idle, and does not wait for requests after it
//! (Pingora 0.9.1).
//!
//! A stop is in one of these states:
//! - `None`: the server serves. An upgrade ([`Stop::leave`]) moves it to `Leave`, a stop
//!   ([`Stop::graceful`]) to `Graceful`.
//! - `Leave`: another process serves, and each connection ends with its next response.
//! - `Graceful`: the server ends with its last request.
//! - `Now`: the server ends at once. [`Stop::now`] moves every state to it, [`Stop::graceful`]
//!   moves `Leave` and `Graceful` to it.

use super::service_manager;
use super::sockets::Passable;
use crate::admin::Operations;
use crate::edge::{Open, Stopper, Stops};
use crate::gateway::Gateway;
use crate::locks::lock;
use crate::upkeep::Instance;
use async_trait::async_trait;
use pingora_core::apps::HttpServerApp;
use pingora_core::server::{ShutdownSignal, ShutdownSignalWatch};
use pingora_proxy::HttpProxy;
use sd_notify::NotifyState;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long writing both logs out may take.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
/// How long connections without a request may take to end.
const IDLE_LIMIT: Duration = Duration::from_millis(500);

/// Writes out what both logs took in. Takes at most `FLUSH_LIMIT` for both together.
pub fn flush(instance: &Instance) {
    let end = Instant::now() + FLUSH_LIMIT;
    instance.access.flush(FLUSH_LIMIT);
    instance
        .events
        .flush(end.saturating_duration_since(Instant::now()));
}

/// Asks the server to stop.
pub struct Stop {
    request: watch::Sender<StopRequest>,
    /// Ends the listeners of the proxy and of the decision service, and their connections.
    stopper: Stopper,
    /// Ends the admin listener.
    admin: Stopper,
    /// The cause that came first.
    cause: OnceLock<&'static str>,
}

/// How listeners learn of a stop.
pub struct Ends {
    /// The stops of the listeners of the proxy and of the decision service.
    pub proxy: Stops,
    pub admin: Stops,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StopRequest {
    None,
    Leave,
    Graceful,
    Now,
}

impl Stop {
    /// A stop that nobody has asked for, and the signals by which listeners learn of it.
    pub fn new() -> (Stop, Ends) {
        let (stopper, proxy) = Stops::new();
        let (admin, ends_of_admin) = Stops::new();
        let stop = Stop {
            request: watch::Sender::new(StopRequest::None),
            stopper,
            admin,
            cause: OnceLock::new(),
        };
        (
            stop,
            Ends {
                proxy,
                admin: ends_of_admin,
            },
        )
    }

    /// Called when another process serves. Closes the admin listener; the others accept no more.
    /// From now on each connection ends with its next response, and the server with its last
    /// connection.
    pub fn leave(&self) {
        self.admin.close();
        self.stopper.leave();
        self.ask("an upgrade", |request| request.max(StopRequest::Leave));
    }

    /// Asks the server to end with its last request. The second time, and after [`Stop::leave`],
    /// asks it to end at once.
    pub fn graceful(&self, cause: &'static str) {
        self.ask(cause, |request| {
            if request == StopRequest::None {
                StopRequest::Graceful
            } else {
                StopRequest::Now
            }
        });
    }

    /// Asks the server to end at once.
    pub fn now(&self, cause: &'static str) {
        self.ask(cause, |_| StopRequest::Now);
    }

    /// Moves the request by `next`, from the present one to the new one. The first cause is kept
    /// for the log.
    fn ask(&self, cause: &'static str, next: impl FnOnce(StopRequest) -> StopRequest) {
        let _ = self.cause.set(cause);
        self.request
            .send_modify(|request| *request = next(*request));
    }

    /// Waits until the request is at least `wanted`, and returns it.
    async fn at_least(&self, wanted: StopRequest) -> StopRequest {
        let mut request = self.request.subscribe();
        // Waiting cannot fail while `self` holds the sender. If it did, stopping would be safe.
        request
            .wait_for(|request| *request >= wanted)
            .await
            .map_or(StopRequest::Now, |request| *request)
    }

    /// Writes the last line of the log: the cause of the stop, how it ended, and how many
    /// connections were cut off.
    fn say_end(&self, how: &str, connections: usize) {
        let cause = self.cause.get().unwrap_or(&"a stop");
        match connections {
            0 => tracing::info!("ended after {cause}: {how}"),
            _ => tracing::warn!(
                connections,
                "ended after {cause}: {how}; crawlgate cut the remaining connections off"
            ),
        }
    }
}

/// Waits until a stop is asked for, and then for the last request. Then Pingora ends.
pub struct Drain {
    pub stop: Arc<Stop>,
    /// Descriptors that would keep the listeners open.
    pub passable: Arc<Mutex<Vec<Passable>>>,
    pub proxy: Arc<HttpProxy<Gateway>>,
    pub open: Arc<Open>,
    pub operations: Arc<Operations>,
    /// How long a stop takes at most.
    pub limit: Duration,
    /// How long an upgrade takes at most.
    pub upgrade_limit: Duration,
}

#[async_trait]
impl ShutdownSignalWatch for Drain {
    /// Waits for a stop, then for its end (`Drain::leave` or `Drain::end`), and writes the logs
    /// out. Returns what Pingora is to do: it ends at once in any case, because nothing is left to
    /// wait for.
    async fn recv(&self) -> ShutdownSignal {
        let request = self.stop.at_least(StopRequest::Leave).await;
        let how = if request == StopRequest::Leave {
            self.leave().await
        } else {
            self.end(request).await
        };
        self.stop.admin.close();
        flush(&self.operations.instance);
        self.stop.say_end(how, self.open.now());
        if request == StopRequest::Now {
            ShutdownSignal::FastShutdown
        } else {
            ShutdownSignal::GracefulTerminate
        }
    }
}

impl Drain {
    /// Closes the listeners and waits for the last request, unless `request` asks for an end at
    /// once. Returns how that ended: the last request, the limit, or a second signal.
    async fn end(&self, request: StopRequest) -> &'static str {
        self.operations.set_ready(false);
        service_manager::tell(&[
            NotifyState::Stopping,
            NotifyState::Status("waiting for running requests"),
        ]);
        // Idle connections end now, the others with their request. Before the listeners close, so
        // that a client that sees them closed reuses no connection either.
        self.proxy.http_cleanup().await;
        lock(&self.passable).clear();
        self.stop.stopper.close();
        if request == StopRequest::Now {
            return "at once";
        }
        tracing::info!(
            "stopping: crawlgate accepts no new connections and waits up to {:?} for running requests",
            self.limit
        );
        tokio::select! {
            () = self.open.none() => "the last request has ended",
            () = tokio::time::sleep(self.limit) => "`limits.drain` is over",
            _ = self.stop.at_least(StopRequest::Now) => "a second signal came",
        }
    }

    /// Waits for the last connection after another process has taken over: each ends with its next
    /// response, and an idle one as it would have. At the limit, or when it is told to end, closes
    /// the idle ones. Returns how it ended.
    async fn leave(&self) -> &'static str {
        self.operations.set_ready(false);
        tracing::info!(
            connections = self.open.now(),
            "another process serves; crawlgate accepts no new connections and waits up to {:?} for the open ones",
            self.upgrade_limit
        );
        let how = tokio::select! {
            () = self.open.none() => return "the last connection has ended",
            () = tokio::time::sleep(self.upgrade_limit) => "`upgrade.drain` is over",
            _ = self.stop.at_least(StopRequest::Now) => "this process was told to end",
        };
        self.stop.stopper.close();
        // Connections without a request end in order.
        let _ = tokio::time::timeout(IDLE_LIMIT, self.open.none()).await;
        how
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn second_graceful_stop_is_immediate() {
        let (stop, _ends) = Stop::new();
        stop.graceful("SIGTERM");
        assert_eq!(
            stop.at_least(StopRequest::Graceful).await,
            StopRequest::Graceful
        );
        stop.graceful("SIGTERM");
        assert_eq!(stop.at_least(StopRequest::Now).await, StopRequest::Now);
    }
}
