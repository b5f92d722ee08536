//! Resolves the names of origins in the background, at the start and then every half minute: [`Resolver`]. If a lookup
//! fails, the last good addresses stay. Must not know requests.

use super::{Origins, Server};
use crate::telemetry::ServerPlace;
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::ServiceReadyNotifier;
use pingora_core::services::background::BackgroundService;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Between two rounds.
const INTERVAL: Duration = Duration::from_secs(30);
/// Between two rounds while a server has no address at all.
const INTERVAL_WITHOUT_ADDRESS: Duration = Duration::from_secs(2);
/// Limit for one lookup. The system's resolver may hang for minutes.
const LOOKUP_LIMIT: Duration = Duration::from_secs(10);
/// How long the start waits for the first round, so that the first request finds an address.
const START_LIMIT: Duration = Duration::from_secs(5);

/// Keeps the addresses of [`Origins`] fresh.
pub struct Resolver {
    origins: Arc<Origins>,
    failed: Box<dyn Fn(ServerPlace) + Send + Sync>,
}

impl Resolver {
    /// Calls `failed` for each failed lookup.
    pub fn new(origins: Arc<Origins>, failed: impl Fn(ServerPlace) + Send + Sync + 'static) -> Resolver {
        Resolver { origins, failed: Box::new(failed) }
    }

    /// Resolves all names once. Returns whether every server has an address now.
    pub(super) async fn round(&self) -> bool {
        for (place, server) in self.origins.places().filter(|(_, server)| server.ip().is_none()) {
            if let Err(error) = server.resolve().await {
                (self.failed)(place);
                let kept = server.peers.load().len();
                tracing::warn!(
                    origin = %server.address.host, %error, addresses_kept = kept,
                    "cannot resolve the name of an origin; crawlgate keeps its last addresses and tries again"
                );
            }
        }
        self.origins.servers().all(|server| !server.peers.load().is_empty())
    }
}

impl Server {
    async fn resolve(&self) -> io::Result<()> {
        let lookup = tokio::net::lookup_host((self.address.host.as_str(), self.address.port));
        let found: Vec<SocketAddr> = tokio::time::timeout(LOOKUP_LIMIT, lookup)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the lookup timed out"))??
            .collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        self.use_addresses(&found);
        Ok(())
    }
}

#[async_trait]
impl BackgroundService for Resolver {
    async fn start_with_ready_notifier(&self, mut shutdown: ShutdownWatch, ready: ServiceReadyNotifier) {
        let mut ready = Some(ready);
        loop {
            let round = self.round();
            tokio::pin!(round);
            let complete = match ready.take() {
                None => round.await,
                Some(ready) => {
                    let first = tokio::time::timeout(START_LIMIT, &mut round).await;
                    ready.notify_ready();
                    match first {
                        Ok(complete) => complete,
                        Err(_) => round.await,
                    }
                }
            };
            if self.origins.servers().all(|server| server.ip().is_some()) {
                return;
            }
            let pause = if complete { INTERVAL } else { INTERVAL_WITHOUT_ADDRESS };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                changed = shutdown.changed() => {
                    if changed.is_err() || *shutdown.borrow() {
                        return;
                    }
                }
            }
        }
    }
}
