//! Questions to DNS: [`Dns`]. An answer is definite or it is none: a timeout, SERVFAIL or a refusal says nothing about an
//! address. Nothing is cached here, because each answer is to be a new one. Must not know crawlers.

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long one server has to answer, and how often it is asked.
const TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;
/// The limit for a question with all servers and attempts.
const TIME: Duration = Duration::from_secs(8);
/// How long an answer counts that does not say so itself: the caller's bounds do.
const NO_TTL: Duration = Duration::ZERO;

/// A name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameServer {
    /// Those of the system: `/etc/resolv.conf`.
    System,
    /// This one.
    At(SocketAddr),
}

/// What DNS said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsAnswer<T> {
    /// These records, for so long.
    Records(Vec<T>, Duration),
    /// There are none, for so long.
    Nothing(Duration),
    /// Nothing definite.
    Failed(String),
}

/// The resolver.
pub struct Dns(TokioResolver);

impl Dns {
    /// That asks these servers.
    ///
    /// # Errors
    /// The system's configuration cannot be read.
    pub fn new(servers: &[NameServer]) -> Result<Dns, NetError> {
        let named: Vec<NameServerConfig> = servers
            .iter()
            .filter_map(|server| match server {
                NameServer::At(address) => Some(name_server(*address)),
                NameServer::System => None,
            })
            .collect();
        let mut builder = if named.is_empty() {
            TokioResolver::builder_tokio()?
        } else {
            let config = ResolverConfig::from_parts(None, Vec::new(), named);
            Resolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        options(builder.options_mut());
        builder.build().map(Dns)
    }

    /// The names of an address.
    pub async fn names_of(&self, address: IpAddr) -> DnsAnswer<String> {
        let record = |data: &RData| match data {
            RData::PTR(name) => Some(name.0.to_utf8()),
            _ => None,
        };
        self.ask(Name::from(address), RecordType::PTR, record).await
    }

    /// The addresses of a name, of the same kind as `like`.
    pub async fn addresses_of(&self, name: &str, like: IpAddr) -> DnsAnswer<IpAddr> {
        let kind = if like.is_ipv4() { RecordType::A } else { RecordType::AAAA };
        let record = |data: &RData| match data {
            RData::A(address) => Some(IpAddr::V4(address.0)),
            RData::AAAA(address) => Some(IpAddr::V6(address.0)),
            _ => None,
        };
        match Name::from_utf8(name) {
            Ok(mut name) => {
                name.set_fqdn(true);
                self.ask(name, kind, record).await
            }
            // A name that cannot be asked for leads nowhere.
            Err(_) => DnsAnswer::Nothing(NO_TTL),
        }
    }

    async fn ask<T>(&self, name: Name, kind: RecordType, record: impl Fn(&RData) -> Option<T>) -> DnsAnswer<T> {
        let answer = match tokio::time::timeout(TIME, self.0.lookup(name, kind)).await {
            Ok(answer) => answer,
            Err(_) => return DnsAnswer::Failed(format!("no answer within {} s", TIME.as_secs())),
        };
        match answer {
            Ok(found) => {
                let ttl = found.answers().iter().map(|answer| answer.ttl).min().unwrap_or_default();
                let ttl = Duration::from_secs(ttl.into());
                let records: Vec<T> = found.answers().iter().filter_map(|answer| record(&answer.data)).collect();
                if records.is_empty() { DnsAnswer::Nothing(ttl) } else { DnsAnswer::Records(records, ttl) }
            }
            Err(NetError::Dns(DnsError::NoRecordsFound(none)))
                if matches!(none.response_code, ResponseCode::NXDomain | ResponseCode::NoError) =>
            {
                DnsAnswer::Nothing(none.negative_ttl.map_or(NO_TTL, |ttl| Duration::from_secs(ttl.into())))
            }
            Err(error) => DnsAnswer::Failed(error.to_string()),
        }
    }
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}

fn options(options: &mut ResolverOpts) {
    options.timeout = TIMEOUT;
    options.attempts = ATTEMPTS;
    options.cache_size = 0;
    // A line of /etc/hosts is no word of the operator.
    options.use_hosts_file = ResolveHosts::Never;
    options.edns0 = true;
    options.num_concurrent_reqs = 1;
}
