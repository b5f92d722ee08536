//! Work for the servers beside requests. [`Checks`] asks the servers of origins with `health`
//! whether they are up; `group.rs` counts the results and changes the states of the servers.
//! [`Resolver`] resolves the names of servers. Each name is looked up again when the time to live
//! of its answer is over, or when a server fails. If a lookup fails, the last good addresses stay.
//!
//! Each check is one GET over a connection of its own, which is made as those of requests are. So a
//! server that takes no new connections is found.

use super::Upstreams;
use super::failure::failure_reason;
use super::group::{Group, Unwell};
use super::server::{Entry, Server};
use crate::dns::{HostLookupError, addresses_of_host};
use crate::heads::OWN_AGENT;
use crate::settings::HealthSettings;
use async_trait::async_trait;
use futures_util::future::join_all;
use http::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use pingora_core::Error;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::protocols::http::v1::client::HttpSession;
use pingora_core::server::ShutdownWatch;
use pingora_core::server::configuration::ServerConf;
use pingora_core::services::ServiceReadyNotifier;
use pingora_core::services::background::BackgroundService;
use pingora_http::RequestHeader;
use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Checks are up to this part of their time earlier or later, so that several crawlgates do not ask
/// at once.
const SPREAD: u32 = 10;
/// The least and the most time until a name is looked up again, whatever its answer says.
const LEAST: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(300);
/// The time until the next lookup of a name that has no address at all.
const WITHOUT_ADDRESS: Duration = Duration::from_secs(2);
/// How long the start waits for the first lookups, so that the first request finds an address.
const START_LIMIT: Duration = Duration::from_secs(5);

/// Sends the checks of all servers.
pub struct Checks {
    upstreams: Arc<Upstreams>,
    connector: TransportConnector,
    random: RandomState,
}

impl Checks {
    /// Checks of these servers. They connect as Pingora is configured to.
    pub fn new(upstreams: Arc<Upstreams>, configuration: &ServerConf) -> Checks {
        let connector =
            TransportConnector::new(Some(ConnectorOptions::from_server_conf(configuration)));
        Checks {
            upstreams,
            connector,
            random: RandomState::new(),
        }
    }

    /// Checks one server of the settings, at all of its addresses, again and again. The first check
    /// waits for a random part of `every`, the pauses are `every` give or take a tenth. Never ends.
    async fn watch(&self, group: &Group, entry: &Entry, rules: &HealthSettings) {
        let host = group.checked_host(entry);
        // A share of the time, so that not all servers are asked at once after a start.
        sleep(rules.every.mul_f64(self.share(entry, 0))).await;
        for round in 1_u64.. {
            let began = Instant::now();
            let servers = group.servers(entry);
            join_all(
                servers
                    .iter()
                    .map(|server| self.check(group, server, rules, &host)),
            )
            .await;
            let shift = rules.every / SPREAD;
            let pause = rules.every - shift + (shift * 2).mul_f64(self.share(entry, round));
            sleep_until(began + pause).await;
        }
    }

    /// A number from 0 to 1, different in each round.
    fn share(&self, entry: &Entry, round: u64) -> f64 {
        let place = (entry.place.origin, entry.place.server);
        self.random.hash_one((place, round)) as f64 / u64::MAX as f64
    }

    /// Asks one address once. Counts the result in the metrics and for the state of the server:
    /// well is a status that `health` allows, within its timeout. `host` is the Host of the check.
    async fn check(&self, group: &Group, server: &Arc<Server>, rules: &HealthSettings, host: &str) {
        let asked = timeout(rules.timeout, self.ask(server, &rules.path, host)).await;
        let (reason, status) = match asked {
            Ok(Ok(status)) if rules.statuses.iter().any(|range| range.contains(&status)) => {
                ("ok", None)
            }
            Ok(Ok(status)) => ("status", Some(status)),
            Ok(Err(error)) => (failure_reason(error.etype()), None),
            // However far it came.
            Err(_) => ("timeout", None),
        };
        let result = if reason == "ok" {
            Ok(())
        } else {
            Err(Unwell { reason, status })
        };
        let upstreams = &self.upstreams;
        upstreams.metrics.checked(server.entry.place, reason);
        let elapsed = upstreams.elapsed();
        let change = group.checked(server, rules, result, elapsed, upstreams.clock.moment().now);
        upstreams.report(server, change);
    }

    /// Sends one GET for `path` and returns the status of the final answer; 0 if it has none.
    async fn ask(&self, server: &Server, path: &str, host: &str) -> Result<u16, Box<Error>> {
        let mut request = RequestHeader::build("GET", path.as_bytes(), None)?;
        for (name, value) in [
            (HOST, host),
            (USER_AGENT, OWN_AGENT),
            (ACCEPT, "*/*"),
            (CONNECTION, "close"),
        ] {
            request.insert_header(name, value)?;
        }
        let mut session = HttpSession::new(server.connect(&self.connector).await?);
        session.write_request_header(Box::new(request)).await?;
        loop {
            session.read_response().await?;
            match session.get_status().map(|status| status.as_u16()) {
                Some(100..=199) => {}
                status => return Ok(status.unwrap_or_default()),
            }
        }
    }
}

#[async_trait]
impl BackgroundService for Checks {
    /// Watches all servers of origins with `health`, until the shutdown.
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let checked = self
            .upstreams
            .groups
            .iter()
            .filter_map(|group| Some((group, group.settings.health.as_ref()?)));
        let watched = checked.flat_map(|(group, rules)| {
            group.entries.iter().map(move |entry| (group, entry, rules))
        });
        let watches =
            join_all(watched.map(|(group, entry, rules)| self.watch(group, entry, rules)));
        tokio::select! {
            _ = watches => {}
            _ = shutdown.wait_for(|is_over| *is_over) => {}
        }
    }
}

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
    /// Looks the name up now, and then whenever a lookup is due; never ends. `begun` gets a permit
    /// after the first one.
    async fn follow(mut self, begun: &Semaphore) {
        let mut pause = self.look_up().await;
        begun.add_permits(1);
        loop {
            self.wait(pause).await;
            pause = self.look_up().await;
        }
    }

    /// Looks the name up and uses the addresses found. If that fails, the last ones stay. Returns
    /// the time until the next lookup: the time to live, from 5 s to 5 min.
    async fn look_up(&mut self) -> Duration {
        let Entry { address, .. } = &**self.entry;
        match addresses_of_host(&address.host, &self.group.settings.resolvers).await {
            Ok(found) => {
                let found_at = found
                    .addresses
                    .into_iter()
                    .map(|ip| SocketAddr::new(ip, address.port));
                self.group
                    .use_addresses(self.entry, &found_at.collect::<Vec<_>>());
                if self.failure.take().is_some() {
                    tracing::info!(origin = %address.host, "the name of an origin is resolved again");
                }
                found.ttl.clamp(LEAST, MOST)
            }
            Err(error) => self.record_failure(&error),
        }
    }

    /// Counts a failed lookup, and logs it unless the one before failed in the same way. Returns
    /// the time until the next one: shorter while the server has no address at all.
    fn record_failure(&mut self, error: &HostLookupError) -> Duration {
        self.upstreams.metrics.failed(Some(self.entry.place), "dns");
        let kept = self.group.servers(self.entry).len();
        let said = error.to_string();
        if self.failure.as_ref() != Some(&said) {
            tracing::warn!(
                origin = %self.entry.address.host, %error, addresses_kept = kept,
                "cannot resolve the name of an origin; crawlgate keeps its last addresses and tries again"
            );
            self.failure = Some(said);
        }
        if kept > 0 { LEAST } else { WITHOUT_ADDRESS }
    }

    /// Waits for `pause`, or until a server fails: the name may have another address by now. Looks
    /// for failing servers every 5 s.
    async fn wait(&self, pause: Duration) {
        let due = Instant::now() + pause;
        while Instant::now() < due {
            sleep(due.saturating_duration_since(Instant::now()).min(LEAST)).await;
            if self
                .group
                .servers(self.entry)
                .iter()
                .any(|server| server.is_failing())
            {
                return;
            }
        }
    }
}

impl Upstreams {
    /// Whether an origin has `health`.
    pub fn has_checks(&self) -> bool {
        self.groups
            .iter()
            .any(|group| group.settings.health.is_some())
    }

    /// The servers that the settings give by name.
    fn named(&self) -> Vec<Named<'_>> {
        let entries = self
            .groups
            .iter()
            .flat_map(|group| group.entries.iter().map(move |entry| (group, entry)));
        let named = entries.filter(|(_, entry)| entry.address.is_name());
        named
            .map(|(group, entry)| Named {
                upstreams: self,
                group,
                entry,
                failure: None,
            })
            .collect()
    }
}

#[cfg(test)]
impl Resolver {
    /// Looks up all names once. Returns whether every server has an address now.
    pub async fn round(&self) -> bool {
        join_all(self.0.named().iter_mut().map(Named::look_up)).await;
        self.0
            .named()
            .iter()
            .all(|named| !named.group.servers(named.entry).is_empty())
    }
}

#[async_trait]
impl BackgroundService for Resolver {
    /// Resolves all names until the shutdown. Announces that it is ready when each was looked up
    /// once, or after `START_LIMIT`; at once, and ends, if no server is given by name.
    async fn start_with_ready_notifier(
        &self,
        mut shutdown: ShutdownWatch,
        ready: ServiceReadyNotifier,
    ) {
        let named = self.0.named();
        let Ok(count @ 1..) = u32::try_from(named.len()) else {
            return ready.notify_ready();
        };
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
