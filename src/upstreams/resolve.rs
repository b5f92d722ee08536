//! [`Resolver`] resolves the names of servers in the background. Each name is looked up again when the time to live of its
//! answer is over, or when a server fails. If a lookup fails, the last good addresses stay.

use super::Upstreams;
use super::group::Group;
use super::server::Entry;
use crate::dns::{HostLookupError, addresses_of_host};
use async_trait::async_trait;
use futures_util::future::join_all;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::ServiceReadyNotifier;
use pingora_core::services::background::BackgroundService;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// The least and the most time until a name is looked up again, whatever its answer says.
const LEAST: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(300);
/// The time until the next lookup of a name that has no address at all.
const WITHOUT_ADDRESS: Duration = Duration::from_secs(2);
/// How long the start waits for the first lookups, so that the first request finds an address.
const START_LIMIT: Duration = Duration::from_secs(5);

/// Keeps the addresses of [`Upstreams`] fresh.
pub struct Resolver(pub Arc<Upstreams>);

/// A server that the settings give by name.
struct Named<'u> {
    upstreams: &'u Upstreams,
    group: &'u Group,
    entry: &'u Arc<Entry>,
    /// Why the last lookup failed.
    failure: Option<String>,
}

impl Named<'_> {
    /// Looks the name up now, and then whenever a lookup is due. `begun` gets a permit after the first one.
    async fn follow(mut self, begun: &Semaphore) {
        let mut pause = self.look_up().await;
        begun.add_permits(1);
        loop {
            self.wait(pause).await;
            pause = self.look_up().await;
        }
    }

    /// Looks the name up. Returns the time until the next lookup.
    async fn look_up(&mut self) -> Duration {
        let Entry { address, .. } = &**self.entry;
        match addresses_of_host(&address.host, &self.group.settings.resolvers).await {
            Ok(found) => {
                let found_at = found.addresses.into_iter().map(|ip| SocketAddr::new(ip, address.port));
                self.group.use_addresses(self.entry, &found_at.collect::<Vec<_>>());
                if self.failure.take().is_some() {
                    tracing::info!(origin = %address.host, "the name of an origin is resolved again");
                }
                found.ttl.clamp(LEAST, MOST)
            }
            Err(error) => self.has_failed(&error),
        }
    }

    /// Logs a failed lookup, unless the one before failed in the same way. Returns the time until the next one.
    fn has_failed(&mut self, error: &HostLookupError) -> Duration {
        self.upstreams.metrics.upstream.failed(Some(self.entry.place), "dns");
        let (kept, said) = (self.group.servers(self.entry).len(), error.to_string());
        if self.failure.as_ref() != Some(&said) {
            tracing::warn!(
                origin = %self.entry.address.host, %error, addresses_kept = kept,
                "cannot resolve the name of an origin; crawlgate keeps its last addresses and tries again"
            );
            self.failure = Some(said);
        }
        if kept > 0 { LEAST } else { WITHOUT_ADDRESS }
    }

    /// Waits until a lookup is due, or until a server fails: the name may have another address by now.
    async fn wait(&self, pause: Duration) {
        let due = Instant::now() + pause;
        while Instant::now() < due {
            sleep(due.saturating_duration_since(Instant::now()).min(LEAST)).await;
            if self.group.servers(self.entry).iter().any(|server| server.is_failing()) {
                return;
            }
        }
    }
}

impl Upstreams {
    /// The servers that the settings give by name.
    fn named(&self) -> Vec<Named<'_>> {
        let entries = self.groups.iter().flat_map(|group| group.entries.iter().map(move |entry| (group, entry)));
        let named = entries.filter(|(_, entry)| entry.address.is_name());
        named.map(|(group, entry)| Named { upstreams: self, group, entry, failure: None }).collect()
    }
}

#[cfg(test)]
impl Resolver {
    /// Looks up all names once. Returns whether every server has an address now.
    pub async fn round(&self) -> bool {
        join_all(self.0.named().iter_mut().map(Named::look_up)).await;
        self.0.named().iter().all(|named| !named.group.servers(named.entry).is_empty())
    }
}

#[async_trait]
impl BackgroundService for Resolver {
    async fn start_with_ready_notifier(&self, mut shutdown: ShutdownWatch, ready: ServiceReadyNotifier) {
        let named = self.0.named();
        let Ok(count @ 1..) = u32::try_from(named.len()) else { return ready.notify_ready() };
        let begun = Semaphore::new(0);
        let announce = async {
            let _ = timeout(START_LIMIT, begun.acquire_many(count)).await;
            ready.notify_ready();
            pending::<()>().await;
        };
        tokio::select! {
            _ = join_all(named.into_iter().map(|named| named.follow(&begun))) => {}
            () = announce => {}
            _ = shutdown.wait_for(|is_over| *is_over) => {}
        }
    }
}
