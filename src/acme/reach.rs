//! Whether a host leads to this crawlgate: it asks for a token of its own under the host, as the authority will. A name that
//! points elsewhere costs no failed order then. Must not know orders.

mod addresses;
mod file;
mod handshake;

use super::issued::Issued;
use super::progress::ChallengeKind;
use addresses::addresses;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The limit for asking at one address.
const TIME: Duration = Duration::from_secs(8);

/// Where an authority asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// In clear text.
    pub http: u16,
    /// Over TLS.
    pub tls: u16,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// This crawlgate answered.
    Own,
    /// Nobody answered: why. A network in between may let the authority through and not this machine.
    Nobody(String),
    /// Another one answered: which.
    Other(String),
}

/// Asks at each address of a host.
pub(super) struct Reach<'a> {
    pub(super) issued: &'a Arc<Issued>,
    pub(super) resolvers: &'a [SocketAddr],
    pub(super) ports: Ports,
}

impl Reach<'_> {
    /// The ways of these by which an authority may reach this crawlgate, the surest first; or why there is none.
    pub(super) async fn ways(&self, host: &str, kinds: &[ChallengeKind]) -> Result<Vec<ChallengeKind>, String> {
        let addresses = addresses(host, self.resolvers).await?;
        let (mut ways, mut others) = (Vec::new(), Vec::new());
        for kind in kinds {
            match self.ask(host, &addresses, *kind).await {
                Reached::Other(who) => others.push(who),
                reached => ways.push((*kind, reached)),
            }
        }
        // Stable: of two that are as sure, the first one stays first.
        ways.sort_by_key(|(_, reached)| *reached != Reached::Own);
        if ways.is_empty() {
            return Err(format!("{host} leads to another server: {}", others.join("; ")));
        }
        Ok(ways.into_iter().map(|(kind, _)| kind).collect())
    }

    async fn ask(&self, host: &str, addresses: &[IpAddr], kind: ChallengeKind) -> Reached {
        let Some((token, content)) = random().zip(random()) else {
            return Reached::Nobody("there is no randomness".into());
        };
        let mut reached = Vec::new();
        match kind {
            ChallengeKind::Http => {
                let _answering = self.issued.answer_file(&token, content.clone());
                for address in addresses {
                    let address = SocketAddr::new(*address, self.ports.http);
                    reached.push(limited(address, file::ask(address, host, &token, &content)).await);
                }
            }
            ChallengeKind::TlsAlpn => {
                let Ok((_answering, key)) = self.issued.answer_handshake(host, content) else {
                    return Reached::Nobody("a certificate for the question cannot be made".into());
                };
                for address in addresses {
                    let address = SocketAddr::new(*address, self.ports.tls);
                    reached.push(limited(address, handshake::ask(address, host, &key)).await);
                }
            }
        }
        together(reached)
    }
}

async fn limited(address: SocketAddr, ask: impl Future<Output = Reached>) -> Reached {
    let late = || Reached::Nobody(format!("{address} does not answer within {} s", TIME.as_secs()));
    timeout(TIME, ask).await.unwrap_or_else(|_| late())
}

/// An authority may choose any address, so one that is another's is one too many.
fn together(reached: Vec<Reached>) -> Reached {
    if let Some(other) = reached.iter().find(|reached| matches!(reached, Reached::Other(_))) {
        return other.clone();
    }
    if reached.contains(&Reached::Own) {
        return Reached::Own;
    }
    reached.into_iter().next().unwrap_or(Reached::Nobody("the host has no address".into()))
}

/// 128 bits that nobody guesses.
fn random() -> Option<String> {
    let mut octets = [0; 16];
    SystemRandom::new().fill(&mut octets).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(octets))
}

#[cfg(test)]
mod tests {
    use super::{Reached, together};

    #[test]
    fn one_address_of_another_server_is_one_too_many() {
        let nobody = || Reached::Nobody("refused".into());
        let other = || Reached::Other("192.0.2.7".into());
        assert_eq!(together(vec![Reached::Own, other()]), other());
        assert_eq!(together(vec![nobody(), Reached::Own]), Reached::Own);
        assert_eq!(together(vec![nobody()]), nobody());
        assert!(matches!(together(Vec::new()), Reached::Nobody(_)));
    }
}
