//! [`Reach`] checks, before an order, that a host leads to this crawlgate. At each address of the
//! host it asks as the authority will: for the file of a random token, or for the certificate of a
//! handshake.
//!
//! If an address leads to another server, that kind of challenge could fail, and crawlgate does not
//! use it. If no kind is left, it makes no order: authorities limit failed orders. An address that
//! does not respond prevents no order: a network in between may refuse crawlgate and still let the
//! authority through.

use super::failure::{OrderError, cut};
use super::issued::Issued;
use super::progress::ChallengeKind;
use crate::dns::addresses_of_host;
use crate::edge::ACME_ALPN;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use httparse::{EMPTY_HEADER, Response, Status};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The limit for asking at one address.
const TIME: Duration = Duration::from_secs(8);
/// More addresses are not asked.
const MOST_ADDRESSES: usize = 8;
/// The most octets that are read of an answer.
const LARGEST: u64 = 16 * 1024;
const MOST_FIELDS: usize = 100;

/// The ports that an authority connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// In clear text.
    pub http: u16,
    /// Over TLS.
    pub tls: u16,
}

/// How an authority may reach this crawlgate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reachable {
    /// The ports that it connects to.
    pub ports: Ports,
    /// Whether a listener of this crawlgate speaks clear text.
    pub has_clear_text: bool,
}

/// What answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReachResult {
    /// This crawlgate answered.
    Own,
    /// No answer. A network in between may let the authority through and not this machine.
    Nobody,
    /// Another server answered, in this way.
    Other(String),
}

pub struct Reach<'a> {
    pub issued: &'a Arc<Issued>,
    pub resolvers: &'a [SocketAddr],
    pub ports: Ports,
}

impl Reach<'_> {
    /// Those of `kinds` by which an authority may reach this crawlgate: first those where this
    /// crawlgate answered, then those without an answer, each in the order of `kinds`. Kinds that
    /// another server answers are left out. The error says why there is none.
    pub async fn challenges(
        &self,
        host: &str,
        kinds: &[ChallengeKind],
    ) -> Result<Vec<ChallengeKind>, OrderError> {
        let addresses = addresses(host, self.resolvers).await?;
        let mut possible = Vec::new();
        let mut others = Vec::new();
        for kind in kinds {
            match self.ask(host, &addresses, *kind).await {
                ReachResult::Other(who) => others.push(who),
                reached => possible.push((*kind, reached)),
            }
        }
        // Stable: of two that are as sure, the first one stays first.
        possible.sort_by_key(|(_, reached)| *reached != ReachResult::Own);
        if possible.is_empty() {
            return Err(OrderError::Elsewhere(format!(
                "{host} leads to another server: {}",
                others.join("; ")
            )));
        }
        Ok(possible.into_iter().map(|(kind, _)| kind).collect())
    }

    /// Opens a challenge with a random proof, asks for it at each address in turn, at most eight
    /// seconds each, and returns the result for all of them. `Nobody` without an answer, and also
    /// if the proof cannot be made.
    async fn ask(&self, host: &str, addresses: &[IpAddr], kind: ChallengeKind) -> ReachResult {
        let Some((token, content)) = random().zip(random()) else {
            return ReachResult::Nobody;
        };
        let (name, port) = match kind {
            ChallengeKind::Http => (token.as_str(), self.ports.http),
            ChallengeKind::TlsAlpn => (host, self.ports.tls),
        };
        let Ok((_answering, key)) = self.issued.answer(kind, name, content.clone()) else {
            return ReachResult::Nobody;
        };
        let mut reached = Vec::new();
        for address in addresses {
            let address = SocketAddr::new(*address, port);
            let asked = async {
                let stream = TcpStream::connect(address).await.ok()?;
                Some(match &key {
                    Some(key) => shake_hands(stream, address, host, key).await,
                    None => ask_for_file(stream, address, host, &token, &content).await,
                })
            };
            reached.extend(timeout(TIME, asked).await.ok().flatten());
        }
        together(reached)
    }
}

/// The result for a host from those of its addresses: the first `Other`, because an authority may
/// choose any address; else `Own` if one is; else `Nobody`.
fn together(reached: Vec<ReachResult>) -> ReachResult {
    let is_own = reached.contains(&ReachResult::Own);
    let mut others = reached.into_iter();
    match others.find(|reached| matches!(reached, ReachResult::Other(_))) {
        Some(other) => other,
        None if is_own => ReachResult::Own,
        None => ReachResult::Nobody,
    }
}

/// The addresses of a host, IPv4 and IPv6, sorted and without doubles, at most eight. The error
/// says why there are none.
async fn addresses(host: &str, resolvers: &[SocketAddr]) -> Result<Vec<IpAddr>, OrderError> {
    let found = addresses_of_host(host, resolvers).await.map_err(|error| {
        OrderError::Elsewhere(format!("the name {host} leads nowhere: {error}"))
    })?;
    let mut addresses: Vec<IpAddr> = found.addresses.iter().map(IpAddr::to_canonical).collect();
    addresses.sort();
    addresses.dedup();
    addresses.truncate(MOST_ADDRESSES);
    Ok(addresses)
}

/// 128 random bits as text in base64url; `None` if the system gives none.
fn random() -> Option<String> {
    let mut octets = [0; 16];
    SystemRandom::new().fill(&mut octets).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(octets))
}

/// Makes the request of the http challenge (RFC 8555 section 8.3) at one address. Only an answer
/// with the expected content is this crawlgate's; redirects are not followed.
async fn ask_for_file(
    stream: TcpStream,
    address: SocketAddr,
    host: &str,
    token: &str,
    content: &str,
) -> ReachResult {
    match exchange(stream, host, token).await {
        Some(answer) => judge(address, &answer, content),
        None => ReachResult::Nobody,
    }
}

/// Sends the request for the file of a token, and returns the answer with its head: at most 16 KiB,
/// up to the end of the connection. `None` if nothing came.
async fn exchange(mut stream: TcpStream, host: &str, token: &str) -> Option<Vec<u8>> {
    let request = format!(
        "GET /.well-known/acme-challenge/{token} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: crawlgate/{}\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    // A connection that is reset after the answer has answered.
    let _ = stream.take(LARGEST).read_to_end(&mut answer).await;
    (!answer.is_empty()).then_some(answer)
}

/// Tells whose answer this is: `Own` if it is a 200 with exactly this content, else `Other`, with
/// the status and the fields Server and Location as the description. Never `Nobody`.
fn judge(address: SocketAddr, answer: &[u8], content: &str) -> ReachResult {
    let mut fields = [EMPTY_HEADER; MOST_FIELDS];
    let mut response = Response::new(&mut fields);
    let Ok(Status::Complete(head)) = response.parse(answer) else {
        return ReachResult::Other(format!("at {address} something answers that is not HTTP"));
    };
    let status = response.code.unwrap_or_default();
    if status == 200 && answer[head..] == *content.as_bytes() {
        return ReachResult::Own;
    }
    let mut how = format!("{address} answers {status}");
    for name in ["Server", "Location"] {
        let mut fields = response.headers.iter();
        if let Some(field) = fields.find(|field| field.name.eq_ignore_ascii_case(name)) {
            let value = cut(&String::from_utf8_lossy(field.value));
            how.push_str(&format!(", {name}: {value}"));
        }
    }
    ReachResult::Other(how)
}

/// Makes the handshake of the tls-alpn challenge (RFC 8737 section 3) at one address. It compares
/// the certificate with the one that this crawlgate shows, in place of verifying it.
async fn shake_hands(
    stream: TcpStream,
    address: SocketAddr,
    host: &str,
    expected: &CertifiedKey,
) -> ReachResult {
    let Ok(name) = ServerName::try_from(host.to_owned()) else {
        return ReachResult::Nobody;
    };
    let Ok(config) = config() else {
        return ReachResult::Nobody;
    };
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) if stream.get_ref().1.peer_certificates() == Some(&expected.cert) => {
            ReachResult::Own
        }
        Ok(_) => ReachResult::Other(format!("{address} shows another certificate")),
        Err(error) => {
            ReachResult::Other(format!("{address} does not shake hands as asked: {error}"))
        }
    }
}

/// The TLS client for the handshake of the challenge: it offers `acme-tls/1` alone and takes every
/// certificate.
fn config() -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider::default_provider());
    let verifier = Arc::new(Unverified(provider.clone()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![ACME_ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// Takes every certificate: nothing is sent over the connection, and only this crawlgate has the
/// one that it is compared with. rustls could not check the signature either: it refuses the
/// critical extension of RFC 8737.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::{ReachResult, judge, together};

    #[test]
    fn one_address_of_another_server_is_one_too_many() {
        let nobody = || ReachResult::Nobody;
        let other = || ReachResult::Other("192.0.2.7".into());
        assert_eq!(together(vec![ReachResult::Own, other()]), other());
        assert_eq!(together(vec![nobody(), ReachResult::Own]), ReachResult::Own);
        assert_eq!(together(vec![nobody()]), nobody());
        assert_eq!(together(Vec::new()), nobody());
    }

    #[test]
    fn another_answer_is_said_with_its_status_and_server() {
        let said = |answer: &str| judge(([192, 0, 2, 7], 80).into(), answer.as_bytes(), "token");
        assert_eq!(said("HTTP/1.1 200 OK\r\n\r\ntoken"), ReachResult::Own);
        assert_eq!(
            said("HTTP/1.1 404 Not Found\r\n\r\ntoken"),
            ReachResult::Other("192.0.2.7:80 answers 404".into())
        );
        let ReachResult::Other(who) =
            said("HTTP/1.1 301 M\r\nServer: nginx\r\nLocation: https://a/\r\n\r\n")
        else {
            panic!()
        };
        assert_eq!(
            who,
            "192.0.2.7:80 answers 301, Server: nginx, Location: https://a/"
        );
        assert!(matches!(said("SSH-2.0-x\r\n"), ReachResult::Other(_)));
        assert!(matches!(
            said("HTTP/1.1 200 OK\r\n\r\ntoken and more"),
            ReachResult::Other(_)
        ));
    }
}
