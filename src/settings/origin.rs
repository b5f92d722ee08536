//! [`OriginSettings`]: the servers to which requests for some hosts and paths go, and how crawlgate
//! treats these servers.

use super::ServerAddress;
use super::address::host_and_port;
use crate::crawlers::CrawlerIndex;
use crate::yaml::Span;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use strum::{EnumString, VariantNames};

/// Where requests for some hosts go.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginSettings {
    /// Host patterns as in a policy, lower case (`shop.example`, `*.shop.example`); empty for all
    /// others.
    pub hosts: Vec<String>,
    /// Beginnings of paths; empty for every path.
    pub paths: Vec<String>,
    /// The servers.
    pub servers: Vec<ServerSettings>,
    /// The Host that they want, with its port if it has one; `None` for the client's.
    pub host: Option<String>,
    /// The name servers that are asked for their names; those of the system where it is empty.
    pub resolvers: Vec<SocketAddr>,
    /// Which server gets a request.
    pub balance: Balance,
    /// Timeouts.
    pub timeouts: OriginTimeouts,
    /// TLS to its servers; `None` for the system's roots and each server's own name.
    pub tls: Option<OriginTls>,
    /// When a server that fails is left alone; `None` for never.
    pub ejection: Option<Ejection>,
    /// How its servers are asked whether they are up; `None` for not at all.
    pub health: Option<HealthSettings>,
    /// How many requests its servers take at once; `None` for any number.
    pub places: Option<PlaceSettings>,
}

impl OriginSettings {
    /// These servers for every host and path, with the defaults of everything else.
    pub fn of(servers: impl IntoIterator<Item = ServerAddress>) -> OriginSettings {
        OriginSettings {
            hosts: Vec::new(),
            paths: Vec::new(),
            servers: servers.into_iter().map(ServerSettings::from).collect(),
            host: None,
            resolvers: Vec::new(),
            balance: Balance::default(),
            timeouts: OriginTimeouts::default(),
            tls: None,
            ejection: Some(Ejection::default()),
            health: None,
            places: None,
        }
    }

    /// The name that the certificates of its servers are for; `None` for each server's own.
    pub fn certificate_name(&self) -> Option<&str> {
        let named = self.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
        named.or_else(|| Some(host_and_port(self.host.as_deref()?)?.0))
    }
}

/// TLS to the servers of an origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OriginTls {
    /// The authorities that are trusted, in PEM; those of the system when absent.
    pub ca: Option<TlsFile>,
    /// The name that the certificates are for; each server's own when absent.
    pub server_name: Option<String>,
    /// The certificate and the key that servers are shown when they ask, in PEM.
    pub client: Option<[TlsFile; 2]>,
}

impl OriginTls {
    /// The files that it names.
    pub fn files(&self) -> impl Iterator<Item = &TlsFile> {
        self.ca.iter().chain(self.client.iter().flatten())
    }
}

/// A file, and where the settings name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFile {
    /// The file.
    pub path: PathBuf,
    /// Where it is named.
    pub span: Span,
}

/// One server of an origin.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Its URL.
    pub address: ServerAddress,
    /// How many requests it gets in comparison with others.
    pub weight: u16,
    /// Whether it is used only while no other server is up.
    pub is_backup: bool,
    /// Where it is named, if a file names it.
    pub span: Option<Span>,
}

impl From<ServerAddress> for ServerSettings {
    fn from(address: ServerAddress) -> ServerSettings {
        ServerSettings {
            address,
            weight: 1,
            is_backup: false,
            span: None,
        }
    }
}

/// Which server gets a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Balance {
    /// Servers take turns, by their weights.
    #[default]
    RoundRobin,
    /// The one of two servers, drawn at random, that has fewer requests in flight.
    LeastRequests,
    /// All requests of a client's address go to the same server.
    Client,
}

/// When a server that fails gets no more requests for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Ejection {
    /// So many failures in a row eject it.
    pub failures: u32,
    /// For how long, at first. Each time it is twice as long.
    pub time: Duration,
    /// For how long at most.
    pub most: Duration,
    /// Statuses of answers that count as failures.
    pub statuses: Vec<RangeInclusive<u16>>,
}

impl Default for Ejection {
    fn default() -> Ejection {
        Ejection {
            failures: 3,
            time: Duration::from_secs(10),
            most: Duration::from_secs(300),
            statuses: Vec::new(),
        }
    }
}

/// How each server of an origin is asked whether it is up.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthSettings {
    /// Path and query of the request.
    pub path: String,
    /// Its Host; `None` for the first host of the origin.
    pub host: Option<String>,
    /// From the beginning of one check to that of the next.
    pub every: Duration,
    /// How long a check may take.
    pub timeout: Duration,
    /// A server is down after so many checks in a row that failed.
    pub unhealthy_after: u32,
    /// It is up again after so many checks in a row that succeeded.
    pub healthy_after: u32,
    /// Statuses of a server that is up.
    pub statuses: Vec<RangeInclusive<u16>>,
}

impl HealthSettings {
    /// A check of this path, with the defaults of everything else.
    pub fn of(path: String) -> HealthSettings {
        HealthSettings {
            path,
            host: None,
            every: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            unhealthy_after: 3,
            healthy_after: 2,
            statuses: vec![200..=399],
        }
    }
}

/// How many requests the servers of an origin take at once, and who gets a place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceSettings {
    /// Requests in flight on each server.
    pub connections: usize,
    /// Of these, requests of crawlers.
    pub crawlers: usize,
    /// Crawlers that wait like people, once they are verified.
    pub exempt: Vec<CrawlerIndex>,
    /// How many people may wait.
    pub length: usize,
    /// How long a person may wait.
    pub wait: Duration,
}

impl PlaceSettings {
    /// So many requests at each server. A fifth of them may be crawlers'.
    pub fn of(connections: usize) -> PlaceSettings {
        PlaceSettings {
            connections,
            crawlers: (connections / 5).max(1),
            exempt: Vec::new(),
            length: 1_000,
            wait: Duration::from_secs(5),
        }
    }
}

/// How long an origin may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OriginTimeouts {
    /// To accept a connection.
    pub connect: Duration,
    /// Between two reads.
    pub read: Duration,
    /// Between two writes.
    pub write: Duration,
    /// How long an unused connection is kept.
    pub idle: Duration,
}

impl Default for OriginTimeouts {
    fn default() -> OriginTimeouts {
        OriginTimeouts {
            connect: Duration::from_secs(3),
            read: Duration::from_secs(60),
            write: Duration::from_secs(30),
            idle: Duration::from_secs(55),
        }
    }
}
