//! [`Reach`] checks, before an order, that a host leads to this crawlgate. At each address of the host it asks as the
//! authority will: for the file of a random token, or for the certificate of a handshake. An address of another server rules
//! the challenge out, and so costs no failed order. Silence does not: a network in between may let the authority through.

mod file;
mod handshake;

use super::issued::Issued;
use super::progress::ChallengeKind;
use crate::dns::{Dns, DnsAnswer};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// The limit for asking at one address.
const TIME: Duration = Duration::from_secs(8);
/// The limit for the system's resolver, which has limits of its own as well.
const LOOKUP: Duration = Duration::from_secs(20);
/// More addresses are not asked.
const MOST_ADDRESSES: usize = 8;

/// The ports that an authority connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// In clear text.
    pub http: u16,
    /// Over TLS.
    pub tls: u16,
}

/// What answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReachResult {
    /// This crawlgate answered.
    Own,
    /// No answer, for this reason. A network in between may let the authority through and not this machine.
    Nobody(String),
    /// Another server answered, in this way.
    Other(String),
}

pub struct Reach<'a> {
    pub issued: &'a Arc<Issued>,
    pub resolvers: &'a [SocketAddr],
    pub ports: Ports,
}

impl Reach<'_> {
    /// Those of `kinds` by which an authority may reach this crawlgate, the most likely one first. The error says why
    /// there is none.
    pub async fn challenges(&self, host: &str, kinds: &[ChallengeKind]) -> Result<Vec<ChallengeKind>, String> {
        let addresses = addresses(host, self.resolvers).await?;
        let (mut possible, mut others) = (Vec::new(), Vec::new());
        for kind in kinds {
            match self.ask(host, &addresses, *kind).await {
                ReachResult::Other(who) => others.push(who),
                reached => possible.push((*kind, reached)),
            }
        }
        // Stable: of two that are as sure, the first one stays first.
        possible.sort_by_key(|(_, reached)| *reached != ReachResult::Own);
        if possible.is_empty() {
            return Err(format!("{host} leads to another server: {}", others.join("; ")));
        }
        Ok(possible.into_iter().map(|(kind, _)| kind).collect())
    }

    async fn ask(&self, host: &str, addresses: &[IpAddr], kind: ChallengeKind) -> ReachResult {
        let Some((token, content)) = random().zip(random()) else {
            return ReachResult::Nobody("there is no randomness".into());
        };
        let (name, port) = match kind {
            ChallengeKind::Http => (token.as_str(), self.ports.http),
            ChallengeKind::TlsAlpn => (host, self.ports.tls),
        };
        let Ok((_answering, key)) = self.issued.answer(kind, name, content.clone()) else {
            return ReachResult::Nobody("a certificate for the question cannot be made".into());
        };
        let mut reached = Vec::new();
        for address in addresses {
            let address = SocketAddr::new(*address, port);
            let asked = async {
                match &key {
                    Some(key) => handshake::ask(address, host, key).await,
                    None => file::ask(address, host, &token, &content).await,
                }
            };
            let late = || ReachResult::Nobody(format!("{address} does not answer within {} s", TIME.as_secs()));
            reached.push(timeout(TIME, asked).await.unwrap_or_else(|_| late()));
        }
        together(reached)
    }
}

/// The result for a host. An authority may choose any address, so one address of another server is too many.
fn together(reached: Vec<ReachResult>) -> ReachResult {
    if let Some(other) = reached.iter().find(|reached| matches!(reached, ReachResult::Other(_))) {
        return other.clone();
    }
    if reached.contains(&ReachResult::Own) {
        return ReachResult::Own;
    }
    reached.into_iter().next().unwrap_or(ReachResult::Nobody("the host has no address".into()))
}

/// The addresses of a host, IPv4 and IPv6. The error says why there are none.
async fn addresses(host: &str, resolvers: &[SocketAddr]) -> Result<Vec<IpAddr>, String> {
    let mut addresses = match resolvers.is_empty() {
        true => of_system(host).await?,
        false => of_servers(host, resolvers).await?,
    };
    addresses.sort();
    addresses.dedup();
    addresses.truncate(MOST_ADDRESSES);
    match addresses.is_empty() {
        true => Err(format!("{host} has no address in DNS")),
        false => Ok(addresses),
    }
}

async fn of_system(host: &str) -> Result<Vec<IpAddr>, String> {
    match timeout(LOOKUP, lookup_host((host, 0))).await {
        Ok(Ok(found)) => Ok(found.map(|address| address.ip().to_canonical()).collect()),
        Ok(Err(error)) => Err(format!("the name {host} leads nowhere: {error}")),
        Err(_) => Err(format!("DNS says nothing of {host} within {} s", LOOKUP.as_secs())),
    }
}

async fn of_servers(host: &str, resolvers: &[SocketAddr]) -> Result<Vec<IpAddr>, String> {
    let dns = Dns::new(resolvers).map_err(|error| format!("the name servers of `acme` cannot be asked: {error}"))?;
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

/// 128 random bits.
fn random() -> Option<String> {
    let mut octets = [0; 16];
    SystemRandom::new().fill(&mut octets).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(octets))
}

#[cfg(test)]
mod tests {
    use super::{ReachResult, together};

    #[test]
    fn one_address_of_another_server_is_one_too_many() {
        let nobody = || ReachResult::Nobody("refused".into());
        let other = || ReachResult::Other("192.0.2.7".into());
        assert_eq!(together(vec![ReachResult::Own, other()]), other());
        assert_eq!(together(vec![nobody(), ReachResult::Own]), ReachResult::Own);
        assert_eq!(together(vec![nobody()]), nobody());
        assert!(matches!(together(Vec::new()), ReachResult::Nobody(_)));
    }
}
