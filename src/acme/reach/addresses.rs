//! The addresses that a host leads to, by the system or by name servers of the settings.

use crate::dns::{Dns, DnsAnswer, NameServer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// The limit for asking the system, which has its own.
const TIME: Duration = Duration::from_secs(20);
/// More addresses are not asked.
const MOST: usize = 8;

/// All addresses of a host, IPv4 and IPv6; or why there are none.
pub(super) async fn addresses(host: &str, resolvers: &[SocketAddr]) -> Result<Vec<IpAddr>, String> {
    let mut addresses = match resolvers.is_empty() {
        true => of_system(host).await?,
        false => of_servers(host, resolvers).await?,
    };
    addresses.sort();
    addresses.dedup();
    addresses.truncate(MOST);
    match addresses.is_empty() {
        true => Err(format!("{host} has no address in DNS")),
        false => Ok(addresses),
    }
}

async fn of_system(host: &str) -> Result<Vec<IpAddr>, String> {
    match timeout(TIME, lookup_host((host, 0))).await {
        Ok(Ok(found)) => Ok(found.map(|address| address.ip().to_canonical()).collect()),
        Ok(Err(error)) => Err(format!("the name {host} leads nowhere: {error}")),
        Err(_) => Err(format!("DNS says nothing of {host} within {} s", TIME.as_secs())),
    }
}

async fn of_servers(host: &str, resolvers: &[SocketAddr]) -> Result<Vec<IpAddr>, String> {
    let servers: Vec<NameServer> = resolvers.iter().copied().map(NameServer::At).collect();
    let dns = Dns::new(&servers).map_err(|error| format!("the name servers of `acme` cannot be asked: {error}"))?;
    let mut addresses = Vec::new();
    for like in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        match dns.addresses_of(host, like).await {
            DnsAnswer::Records(found, _) => addresses.extend(found),
            DnsAnswer::Nothing(_) => {}
            DnsAnswer::Failed(reason) => return Err(format!("DNS says nothing of {host}: {reason}")),
        }
    }
    Ok(addresses)
}
