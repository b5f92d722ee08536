//! [`Checks`] ask the servers of origins with `health` whether they are up. `group.rs` counts the results and changes the
//! states of the servers.
//!
//! Each check is one GET over a connection of its own, which is made as those of requests are. So a server that takes no
//! new connections is found.

use super::Upstreams;
use super::failure::failure_reason;
use super::group::{Group, Unwell};
use super::server::{Entry, Server};
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
use pingora_core::services::background::BackgroundService;
use pingora_http::RequestHeader;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The word for a check that was answered with a wrong status.
const STATUS: &str = "status";
/// The word for a check that took too long, however far it came.
const TIMEOUT: &str = "timeout";
/// Checks are up to this part of their time earlier or later, so that several crawlgates do not ask at once.
const SPREAD: u32 = 10;

/// Sends the checks of all servers.
pub struct Checks {
    upstreams: Arc<Upstreams>,
    connector: TransportConnector,
    random: RandomState,
}

impl Checks {
    /// Checks of these servers. They connect as Pingora is configured to.
    pub fn new(upstreams: Arc<Upstreams>, configuration: &ServerConf) -> Checks {
        let connector = TransportConnector::new(Some(ConnectorOptions::from_server_conf(configuration)));
        Checks { upstreams, connector, random: RandomState::new() }
    }

    /// Asks one server of the settings, at all of its addresses, again and again.
    async fn watch(&self, group: &Group, entry: &Entry, rules: &HealthSettings) {
        let host = group.checked_host(entry);
        // A share of the time, so that not all servers are asked at once after a start.
        sleep(rules.every.mul_f64(self.share(entry, 0))).await;
        for round in 1_u64.. {
            let began = Instant::now();
            let servers = group.servers(entry);
            join_all(servers.iter().map(|server| self.check(group, server, rules, &host))).await;
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

    async fn check(&self, group: &Group, server: &Arc<Server>, rules: &HealthSettings, host: &str) {
        let asked = timeout(rules.timeout, self.ask(server, &rules.path, host)).await;
        let result = match asked {
            Ok(Ok(status)) if rules.statuses.iter().any(|range| range.contains(&status)) => Ok(()),
            Ok(Ok(status)) => Err(Unwell { reason: STATUS, status: Some(status) }),
            Ok(Err(error)) => Err(Unwell { reason: failure_reason(error.etype()), status: None }),
            Err(_) => Err(Unwell { reason: TIMEOUT, status: None }),
        };
        let upstreams = &self.upstreams;
        upstreams.metrics.upstream.checked(server.entry.place, result.map_or_else(|unwell| unwell.reason, |()| "ok"));
        let at = (upstreams.elapsed(), upstreams.clock.moment().now);
        upstreams.report(server, group.checked(server, rules, result, at));
    }

    /// Returns the status of the answer.
    async fn ask(&self, server: &Server, path: &str, host: &str) -> Result<u16, Box<Error>> {
        let mut request = RequestHeader::build("GET", path.as_bytes(), None)?;
        for (name, value) in [(HOST, host), (USER_AGENT, OWN_AGENT), (ACCEPT, "*/*"), (CONNECTION, "close")] {
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
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let checked = self.upstreams.groups.iter().filter_map(|group| Some((group, group.settings.health.as_ref()?)));
        let watched = checked.flat_map(|(group, rules)| group.entries.iter().map(move |entry| (group, entry, rules)));
        let watches = join_all(watched.map(|(group, entry, rules)| self.watch(group, entry, rules)));
        tokio::select! {
            _ = watches => {}
            _ = shutdown.wait_for(|is_over| *is_over) => {}
        }
    }
}

impl Upstreams {
    /// Whether an origin has `health`.
    pub fn has_checks(&self) -> bool {
        self.groups.iter().any(|group| group.settings.health.is_some())
    }
}
