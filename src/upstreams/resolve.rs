//! Resolves the names of origins in the background, at the start and then every half minute: [`Resolver`]. If a lookup
//! fails, the last good addresses stay. Must not know requests.

use super::Upstreams;
use super::group::Group;
use super::server::Entry;
use crate::settings::ServerAddress;
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

/// Keeps the addresses of [`Upstreams`] fresh.
pub struct Resolver(pub Arc<Upstreams>);

impl Resolver {
    /// Resolves all names once. Returns whether every server has an address now.
    pub(super) async fn round(&self) -> bool {
        let mut is_complete = true;
        for (group, entry) in self.0.named_entries() {
            match resolve(&entry.address).await {
                Ok(found) => group.use_addresses(entry, &found),
                Err(error) => {
                    self.0.metrics.upstream_failure(Some(entry.place), "dns");
                    let kept = group.servers(entry).len();
                    is_complete &= kept > 0;
                    tracing::warn!(
                        origin = %entry.address.host, %error, addresses_kept = kept,
                        "cannot resolve the name of an origin; crawlgate keeps its last addresses and tries again"
                    );
                }
            }
        }
        is_complete
    }
}

impl Upstreams {
    /// The servers that the settings give by name.
    fn named_entries(&self) -> impl Iterator<Item = (&Group, &Arc<Entry>)> {
        let entries = self.groups.iter().flat_map(|group| group.entries.iter().map(move |entry| (group, entry)));
        entries.filter(|(_, entry)| entry.address.is_name())
    }
}

async fn resolve(address: &ServerAddress) -> io::Result<Vec<SocketAddr>> {
    let lookup = tokio::net::lookup_host((address.host.as_str(), address.port));
    let found: Vec<SocketAddr> = tokio::time::timeout(LOOKUP_LIMIT, lookup)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the lookup timed out"))??
        .collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(found)
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
            if self.0.named_entries().next().is_none() {
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
