//! [`usable_challenges`] checks that a host's DNS leads to this crawlgate, before a certificate
//! for the host is ordered. For each kind of ACME challenge, it connects to each address of the
//! host as the certificate authority will. It requests a file with a random name (HTTP challenge),
//! or makes a TLS handshake (TLS-ALPN challenge).
//!
//! If another server answers, crawlgate does not use this kind of challenge, because the order
//! could fail, and authorities limit failed orders. If no kind is left, crawlgate orders nothing.
//! If no server answers, crawlgate orders all the same, because the authority may reach addresses
//! that crawlgate cannot reach.

use super::failure::OrderError;
use super::issued::IssuedCertificates;
use super::progress::ChallengeKind;
use crate::dns;
use crate::edge::ACME_ALPN;
use ReachResult::{OtherServer, Reached, Unreachable};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use httparse::{EMPTY_HEADER, Response, Status};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// For the check of one address.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(8);
/// More addresses are not checked.
const MAX_ADDRESSES: usize = 8;
const MAX_RESPONSE_BYTES: u64 = 16 * 1024;
const MAX_FIELDS: usize = 100;

/// How an authority can reach this crawlgate.
#[derive(Clone, Copy)]
pub struct ChallengeEndpoints {
    /// The port to which it connects in clear text.
    pub http: u16,
    /// The port to which it connects over TLS.
    pub tls: u16,
    /// Whether a listener of this crawlgate speaks clear text.
    pub has_clear_text: bool,
}

/// Who answered at an address.
#[derive(Debug, PartialEq)]
pub enum ReachResult {
    /// This crawlgate.
    Reached,
    /// Nobody. The network may still let the authority through.
    Unreachable,
    /// Another server, with a description of its answer.
    OtherServer(String),
}

/// The kinds of challenges by which an authority may reach this crawlgate, which answers them by
/// `issued`: first those where it answered, then those without an answer, each in the given order.
///
/// # Errors
/// The host has no address, or another server answers every kind.
pub async fn usable_challenges(
    host: &str,
    kinds: &[ChallengeKind],
    resolvers: &[SocketAddr],
    endpoints: ChallengeEndpoints,
    issued: &Arc<IssuedCertificates>,
) -> Result<Vec<ChallengeKind>, OrderError> {
    let addresses = addresses_to_check(host, resolvers).await?;
    let mut possible = Vec::new();
    let mut others = Vec::new();
    for kind in kinds {
        match check_challenge(host, &addresses, *kind, endpoints, issued).await {
            OtherServer(who) => others.push(who),
            reached => possible.push((*kind, reached)),
        }
    }
    possible.sort_by_key(|(_, reached)| *reached != Reached);
    if possible.is_empty() {
        return Err(OrderError::HostNotReached(format!(
            "{host} points to another server: {}",
            others.join("; ")
        )));
    }
    Ok(possible.into_iter().map(|(kind, _)| kind).collect())
}

/// Opens a challenge with a random key authorization, and checks each address in turn, for at most
/// eight seconds each.
async fn check_challenge(
    host: &str,
    addresses: &[IpAddr],
    kind: ChallengeKind,
    endpoints: ChallengeEndpoints,
    issued: &Arc<IssuedCertificates>,
) -> ReachResult {
    let Some((token, content)) = random_token().zip(random_token()) else {
        return Unreachable;
    };
    let (name, port) = match kind {
        ChallengeKind::Http => (token.as_str(), endpoints.http),
        ChallengeKind::TlsAlpn => (host, endpoints.tls),
    };
    let Ok(answering) = issued.open_challenge(kind, name, content.clone()) else {
        return Unreachable;
    };
    let mut reached = Vec::new();
    for address in addresses {
        let address = SocketAddr::new(*address, port);
        let asked = async {
            let stream = TcpStream::connect(address).await.ok()?;
            if let Some(key) = &answering.key {
                return Some(check_handshake(stream, address, host, key).await);
            }
            let response = request_challenge_file(stream, host, &token).await?;
            Some(challenge_file_result(address, &response, &content))
        };
        reached.extend(timeout(ADDRESS_TIMEOUT, asked).await.ok().flatten());
    }
    combined_result(reached)
}

/// The first `OtherServer`, because an authority may choose any address; else `Reached` if one is.
fn combined_result(reached: Vec<ReachResult>) -> ReachResult {
    let is_own = reached.contains(&Reached);
    let mut others = reached.into_iter();
    others
        .find(|reached| matches!(reached, OtherServer(_)))
        .unwrap_or(if is_own { Reached } else { Unreachable })
}

/// The distinct addresses of a host, IPv4 and IPv6, at most eight.
async fn addresses_to_check(
    host: &str,
    resolvers: &[SocketAddr],
) -> Result<Vec<IpAddr>, OrderError> {
    let found = dns::resolve_host(host, resolvers)
        .await
        .map_err(|error| OrderError::HostNotReached(format!("{host} does not resolve: {error}")))?;
    let addresses: BTreeSet<IpAddr> = found.addresses.iter().map(IpAddr::to_canonical).collect();
    Ok(addresses.into_iter().take(MAX_ADDRESSES).collect())
}

/// 128 random bits in base64url.
fn random_token() -> Option<String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// Makes the request of the http challenge (RFC 8555 section 8.3). Returns the raw response; `None` if
/// nothing came.
async fn request_challenge_file(mut stream: TcpStream, host: &str, token: &str) -> Option<Vec<u8>> {
    let request = format!(
        "GET /.well-known/acme-challenge/{token} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: crawlgate/{}\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    // The connection may be reset after the response.
    let _ = stream
        .take(MAX_RESPONSE_BYTES)
        .read_to_end(&mut answer)
        .await;
    (!answer.is_empty()).then_some(answer)
}

/// `Reached` for a 200 with exactly this content, else `OtherServer` with the status.
fn challenge_file_result(address: SocketAddr, answer: &[u8], content: &str) -> ReachResult {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut response = Response::new(&mut fields);
    let Ok(Status::Complete(head)) = response.parse(answer) else {
        return OtherServer(format!("what answers at {address} does not speak HTTP"));
    };
    let status = response.code.unwrap_or_default();
    if status == 200 && answer[head..] == *content.as_bytes() {
        return Reached;
    }
    OtherServer(format!("{address} answers {status}"))
}

/// Makes the handshake of the tls-alpn challenge (RFC 8737 section 3) at one address, and compares
/// the certificate with the one of this crawlgate.
async fn check_handshake(
    stream: TcpStream,
    address: SocketAddr,
    host: &str,
    expected: &CertifiedKey,
) -> ReachResult {
    let name = ServerName::try_from(host.to_owned());
    let (Ok(name), Ok(config)) = (name, challenge_tls_config()) else {
        return Unreachable;
    };
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) if stream.get_ref().1.peer_certificates() == Some(&expected.cert) => Reached,
        Ok(_) => OtherServer(format!("{address} shows another certificate")),
        Err(error) => OtherServer(format!("the TLS handshake with {address} failed: {error}")),
    }
}

/// Offers only `acme-tls/1`.
fn challenge_tls_config() -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider::default_provider());
    let verifier = Arc::new(AcceptAnyCertificate(provider.clone()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![ACME_ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// Accepts every certificate: nothing is sent over the connection, and the certificate is compared
/// afterwards. rustls could not check the signature: it rejects the critical extension of RFC 8737.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
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
    use super::{ReachResult, challenge_file_result, combined_result};

    #[test]
    fn one_address_of_another_server_decides() {
        let nobody = || ReachResult::Unreachable;
        let other = || ReachResult::OtherServer("192.0.2.7".into());
        assert_eq!(
            combined_result(vec![ReachResult::Reached, other()]),
            other()
        );
        assert_eq!(
            combined_result(vec![nobody(), ReachResult::Reached]),
            ReachResult::Reached
        );
        assert_eq!(combined_result(vec![nobody()]), nobody());
        assert_eq!(combined_result(Vec::new()), nobody());
    }

    #[test]
    fn other_servers_are_described_by_their_status() {
        let said = |answer: &str| {
            challenge_file_result(([192, 0, 2, 7], 80).into(), answer.as_bytes(), "token")
        };
        assert_eq!(said("HTTP/1.1 200 OK\r\n\r\ntoken"), ReachResult::Reached);
        assert_eq!(
            said("HTTP/1.1 404 Not Found\r\n\r\ntoken"),
            ReachResult::OtherServer("192.0.2.7:80 answers 404".into())
        );
        assert!(matches!(said("SSH-2.0-x\r\n"), ReachResult::OtherServer(_)));
        assert!(matches!(
            said("HTTP/1.1 200 OK\r\n\r\ntoken and more"),
            ReachResult::OtherServer(_)
        ));
    }
}
