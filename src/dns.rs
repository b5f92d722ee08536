//! DNS look-ups. [`DnsResolver`] finds the records that verify a crawler's IP address. A timeout,
//! SERVFAIL or REFUSED says nothing about the crawler, so it gives [`DnsAnswer::Failed`].
//! [`resolve_host`] finds the addresses of a server; like other programs, it also reads
//! `/etc/hosts`. This module caches nothing.

use DnsAnswer::*;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Hosts, Resolver, TokioResolver};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long one server has to answer.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a server is asked.
const ATTEMPTS: usize = 2;
/// The limit for one look-up, with all servers and attempts.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(8);
/// The time to live of an answer that states none. The caller bounds it.
const NO_TTL: Duration = Duration::ZERO;
/// The time to live of addresses that do not come from DNS.
const LOCAL_TTL: Duration = Duration::from_secs(30);

/// The answer to a look-up.
pub enum DnsAnswer<T> {
    /// These records, with their time to live.
    Records(Vec<T>, Duration),
    /// No such record exists. The answer counts for this time to live.
    NotFound(Duration),
    /// There was no definite answer, for this reason.
    Failed(String),
}

/// Asks name servers for records of one kind.
pub struct DnsResolver(TokioResolver);

impl DnsResolver {
    /// A resolver that asks these servers; without any, those of the system (`/etc/resolv.conf`).
    ///
    /// # Errors
    /// The system's configuration cannot be read.
    pub fn new(servers: &[SocketAddr]) -> Result<DnsResolver, NetError> {
        build_resolver(servers).map(DnsResolver)
    }

    /// The names of an address.
    pub async fn reverse_lookup(&self, address: IpAddr) -> DnsAnswer<String> {
        self.lookup_records(Name::from(address), RecordType::PTR, |data| match data {
            RData::PTR(name) => Some(name.0.to_utf8()),
            _ => None,
        })
        .await
    }

    /// The addresses of a name, of the same kind as `like`.
    pub async fn lookup_addresses(&self, name: &str, like: IpAddr) -> DnsAnswer<IpAddr> {
        let kind = if like.is_ipv4() {
            RecordType::A
        } else {
            RecordType::AAAA
        };
        match Name::from_utf8(name) {
            Ok(mut name) => {
                name.set_fqdn(true);
                self.lookup_records(name, kind, RData::ip_addr).await
            }
            // A name that DNS cannot have has no address.
            Err(_) => NotFound(NO_TTL),
        }
    }

    /// Looks up records of one kind. `record` returns the value of a record, and `None` for other
    /// kinds (such as CNAME). The time to live is the shortest in the answer. A name or record that
    /// does not exist is `NotFound`; everything else without an answer is `Failed`.
    async fn lookup_records<T>(
        &self,
        name: Name,
        kind: RecordType,
        record: impl Fn(&RData) -> Option<T>,
    ) -> DnsAnswer<T> {
        let answer = match tokio::time::timeout(LOOKUP_TIMEOUT, self.0.lookup(name, kind)).await {
            Ok(answer) => answer,
            Err(_) => {
                return Failed(format!("no answer within {} s", LOOKUP_TIMEOUT.as_secs()));
            }
        };
        match answer {
            Ok(found) => {
                let ttl = found
                    .answers()
                    .iter()
                    .map(|answer| answer.ttl)
                    .min()
                    .unwrap_or_default();
                let ttl = Duration::from_secs(ttl.into());
                let records: Vec<T> = found
                    .answers()
                    .iter()
                    .filter_map(|answer| record(&answer.data))
                    .collect();
                if records.is_empty() {
                    NotFound(ttl)
                } else {
                    Records(records, ttl)
                }
            }
            Err(NetError::Dns(DnsError::NoRecordsFound(none)))
                if matches!(
                    none.response_code,
                    ResponseCode::NXDomain | ResponseCode::NoError
                ) =>
            {
                NotFound(
                    none.negative_ttl
                        .map_or(NO_TTL, |ttl| Duration::from_secs(ttl.into())),
                )
            }
            Err(error) => Failed(error.to_string()),
        }
    }
}

/// Addresses of a host.
#[derive(Debug)]
pub struct HostAddresses {
    /// At least one.
    pub addresses: Vec<IpAddr>,
    /// How long they count: the shortest time to live of the records.
    pub ttl: Duration,
}

/// Why a host has no address.
#[derive(Debug, thiserror::Error)]
pub enum HostLookupError {
    /// The name servers gave no address.
    #[error("{0}")]
    Dns(#[from] NetError),
    /// The system gave no address.
    #[error("{0}")]
    System(#[from] io::Error),
    /// There was no answer in time.
    #[error("no answer within {} s", LOOKUP_TIMEOUT.as_secs())]
    TimedOut,
    /// The answer has no address.
    #[error("the name has no address")]
    NoAddress,
}

/// The addresses of a host: those of `/etc/hosts`, else those that these name servers know. Without
/// name servers those of `/etc/resolv.conf` are asked, and where they have no answer the system's
/// own resolver, which knows more ways (nsswitch). Both files are read each time, because they
/// change while crawlgate runs.
///
/// # Errors
/// No address was found.
pub async fn resolve_host(
    host: &str,
    servers: &[SocketAddr],
) -> Result<HostAddresses, HostLookupError> {
    if let Some(addresses) = find_in_hosts_file(host) {
        return Ok(HostAddresses {
            addresses,
            ttl: LOCAL_TTL,
        });
    }
    match resolve_by_name_servers(host, servers).await {
        Err(_) if servers.is_empty() => resolve_by_system(host).await,
        result => result,
    }
}

/// [`resolve_host`] for a thread that may block.
///
/// # Errors
/// No address was found.
pub fn resolve_host_blocking(
    host: &str,
    servers: &[SocketAddr],
) -> Result<HostAddresses, HostLookupError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(resolve_host(host, servers))
}

/// The addresses of a host in `/etc/hosts`; `None` if it has none, or the file cannot be read.
fn find_in_hosts_file(host: &str) -> Option<Vec<IpAddr>> {
    let hosts = Hosts::from_system().ok()?;
    let name = Name::from_utf8(host).ok()?;
    let mut addresses = Vec::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        if let Some(found) = hosts.lookup_static_host(&Query::query(name.clone(), kind)) {
            let answers = found.answers().iter();
            addresses.extend(answers.filter_map(|answer| answer.data.ip_addr()));
        }
    }
    (!addresses.is_empty()).then_some(addresses)
}

/// The addresses that name servers know for a host. With `servers` the host is a full name;
/// without, the system's servers are asked, and its search domains tried.
async fn resolve_by_name_servers(
    host: &str,
    servers: &[SocketAddr],
) -> Result<HostAddresses, HostLookupError> {
    let mut name = Name::from_utf8(host).map_err(NetError::from)?;
    // Only the configuration of the system has search domains.
    name.set_fqdn(!servers.is_empty());
    let resolver = build_resolver(servers)?;
    let lookup = tokio::time::timeout(LOOKUP_TIMEOUT, resolver.lookup_ip(name))
        .await
        .map_err(|_| HostLookupError::TimedOut)?;
    let found = lookup?;
    let ttl = found
        .as_lookup()
        .answers()
        .iter()
        .map(|answer| answer.ttl)
        .min()
        .unwrap_or_default();
    non_empty(found.iter().collect(), Duration::from_secs(ttl.into()))
}

fn non_empty(addresses: Vec<IpAddr>, ttl: Duration) -> Result<HostAddresses, HostLookupError> {
    if addresses.is_empty() {
        Err(HostLookupError::NoAddress)
    } else {
        Ok(HostAddresses { addresses, ttl })
    }
}

/// Asks the system's resolver, for eight seconds at most, because it may hang for minutes.
async fn resolve_by_system(host: &str) -> Result<HostAddresses, HostLookupError> {
    let lookup = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, 0))).await;
    let found = lookup.map_err(|_| HostLookupError::TimedOut)??;
    non_empty(found.map(|address| address.ip()).collect(), LOCAL_TTL)
}

/// A resolver that asks `servers`, or without any those of the system. It keeps no answers and does
/// not read `/etc/hosts`.
fn build_resolver(servers: &[SocketAddr]) -> Result<TokioResolver, NetError> {
    let mut builder = if servers.is_empty() {
        TokioResolver::builder_tokio()?
    } else {
        let servers = servers.iter().copied().map(name_server_config).collect();
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        Resolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    options.timeout = SERVER_TIMEOUT;
    options.attempts = ATTEMPTS;
    options.cache_size = 0;
    // A line of /etc/hosts proves nothing about a crawler. For servers the file is read before.
    options.use_hosts_file = ResolveHosts::Never;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.edns0 = true;
    options.num_concurrent_reqs = 1;
    builder.build()
}

fn name_server_config(address: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn host_in_the_hosts_file_needs_no_name_server() {
        let unreachable = SocketAddr::from(([127, 0, 0, 1], 1));
        let found = resolve_host("localhost", &[unreachable])
            .await
            .expect("a line of the file");
        assert!(
            found.addresses.iter().all(IpAddr::is_loopback) && found.ttl == LOCAL_TTL,
            "{found:?}"
        );
        assert!(resolve_host("name.invalid", &[unreachable]).await.is_err());
    }
}
