//! [`OriginSettings`]: the settings of one origin. An origin is a group of web servers that gets
//! the requests for some hosts and paths from crawlgate. The settings include load balancing,
//! health checks, TLS and capacity.

use super::OriginServerAddress;
use super::address::parse_host_port;
use super::section::section;
use super::server_health::{EjectionSettings, HealthSettings};
use super::values::{SECOND, decode_timeout};
use crate::crawlers::CrawlerIndex;
use crate::yaml::SourceSpan;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use strum::{EnumString, VariantNames};

/// The servers for some hosts and paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OriginSettings {
    /// Host patterns as in a policy, lower case (`shop.example`, `*.shop.example`); empty for every
    /// other host.
    pub hosts: Vec<String>,
    /// Path prefixes; empty for every path.
    pub paths: Vec<String>,
    /// The servers.
    pub servers: Vec<ServerSettings>,
    /// The Host that is sent to them, with its port if it has one; `None` for the client's.
    pub host: Option<String>,
    /// The name servers that resolve them; the system's when empty.
    pub resolvers: Vec<SocketAddr>,
    /// Which server gets a request.
    pub balance: LoadBalancing,
    /// Timeouts.
    pub timeouts: OriginTimeouts,
    /// TLS to its servers; `None` for the system's roots and each server's own name.
    pub tls: Option<OriginTls>,
    /// When a failing server gets no more requests; `None` for never.
    pub ejection: Option<EjectionSettings>,
    /// Health checks of its servers; `None` for no checks.
    pub health: Option<HealthSettings>,
    /// The limit of concurrent requests; `None` for no limit.
    pub capacity: Option<CapacitySettings>,
}

impl OriginSettings {
    /// An origin for every host and path, with defaults.
    pub fn with_servers(servers: impl IntoIterator<Item = OriginServerAddress>) -> OriginSettings {
        OriginSettings {
            servers: servers.into_iter().map(ServerSettings::from).collect(),
            ejection: Some(EjectionSettings::default()),
            ..OriginSettings::default()
        }
    }

    /// The name in the certificates of its servers: `tls.server_name`, else the origin's `host`
    /// without the port; `None` for each server's own name.
    pub fn certificate_name(&self) -> Option<&str> {
        self.tls
            .as_ref()
            .and_then(|tls| tls.server_name.as_deref())
            .or_else(|| Some(parse_host_port(self.host.as_deref()?)?.0))
    }
}

/// TLS to the servers of an origin.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginTls {
    /// The authorities that are trusted, in PEM; those of the system when absent.
    pub ca: Option<TlsFile>,
    /// The name in the certificates; each server's own when absent.
    pub server_name: Option<String>,
    /// The client certificate and its key, in PEM.
    pub client: Option<[TlsFile; 2]>,
}

impl OriginTls {
    /// All files: authorities, client certificate and key.
    pub fn files(&self) -> impl Iterator<Item = &TlsFile> {
        self.ca.iter().chain(self.client.iter().flatten())
    }
}

/// A file and its place in the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsFile {
    /// The file.
    pub path: PathBuf,
    /// Where it is named.
    pub span: SourceSpan,
}

/// One server of an origin.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Its URL.
    pub address: OriginServerAddress,
    /// How many requests it gets in comparison with other servers.
    pub weight: u16,
    /// Whether it is used only while no other server is up.
    pub is_backup: bool,
    /// The place in the settings file.
    pub span: Option<SourceSpan>,
}

impl From<OriginServerAddress> for ServerSettings {
    fn from(address: OriginServerAddress) -> ServerSettings {
        ServerSettings {
            address,
            weight: 1,
            is_backup: false,
            span: None,
        }
    }
}

/// How a server is chosen for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum LoadBalancing {
    /// Servers take turns, by their weights.
    #[default]
    RoundRobin,
    /// Of two random servers, the one with fewer requests in flight.
    LeastRequests,
    /// All requests of a client's address go to the same server.
    Client,
}

/// The limit of concurrent requests of an origin, with the share of crawlers and the queue of
/// visitors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapacitySettings {
    /// The most requests in flight on each server.
    pub connections: usize,
    /// The most of these that crawlers may have.
    pub crawlers: usize,
    /// Crawlers that wait like visitors, if they are verified.
    pub exempt: Vec<CrawlerIndex>,
    /// How many visitors may wait.
    pub queue_length: usize,
    /// How long a visitor may wait.
    pub queue_timeout: Duration,
}

impl CapacitySettings {
    /// Crawlers may have a fifth of the connections, and at least one.
    pub fn with_connections(connections: usize) -> CapacitySettings {
        CapacitySettings {
            connections,
            crawlers: (connections / 5).max(1),
            exempt: Vec::new(),
            queue_length: 1_000,
            queue_timeout: Duration::from_secs(5),
        }
    }
}

section! {
    /// The timeouts of connections to an origin.
    #[derive(Clone, Copy, Debug, PartialEq)]
    OriginTimeouts {
        /// To accept a connection.
        "connect" => connect: Duration = 3 * SECOND, decode_timeout;
        /// Between two reads.
        "read" => read: Duration = 60 * SECOND, decode_timeout;
        /// Between two writes.
        "write" => write: Duration = 30 * SECOND, decode_timeout;
        /// How long an unused connection is kept.
        "idle" => idle: Duration = 55 * SECOND, decode_timeout;
    }
}
