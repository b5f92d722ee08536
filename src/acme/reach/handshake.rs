//! [`ask`] makes the handshake of the tls-alpn challenge (RFC 8737 section 3) at one address. It compares the certificate
//! with the one that this crawlgate shows, in place of verifying it.

use super::ReachResult;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Shakes hands as an authority does.
pub async fn ask(address: SocketAddr, host: &str, expected: &CertifiedKey) -> ReachResult {
    let Ok(name) = ServerName::try_from(host.to_owned()) else {
        return ReachResult::Nobody(format!("{host} is no name for TLS"));
    };
    let config = match config() {
        Ok(config) => config,
        Err(error) => return ReachResult::Nobody(error.to_string()),
    };
    let stream = match TcpStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) => return ReachResult::Nobody(format!("{address} cannot be reached: {error}")),
    };
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) if stream.get_ref().1.peer_certificates() == Some(&expected.cert) => ReachResult::Own,
        Ok(_) => ReachResult::Other(format!("{address} shows another certificate")),
        Err(error) => ReachResult::Other(format!("{address} does not shake hands as asked: {error}")),
    }
}

fn config() -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Unverified(provider.clone()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![crate::acme::issued::ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// Takes every certificate: nothing is sent over the connection, and only this crawlgate has the one that it is compared with.
/// rustls could not check the signature either: it refuses the critical extension of RFC 8737.
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
