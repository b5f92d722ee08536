//! TLS for client connections, by rustls. [`ListenerTls`] does the handshakes of a listener.
//! [`CertificateStore`] has the certificates of all listeners, and replaces a certificate when its
//! files change.

mod acme;
mod certificate;
mod certificate_store;

pub use acme::{ACME_ALPN, AcmeCertificates};
pub use certificate::{CertificateError, dns_names};
pub use certificate_store::CertificateStore;

use crate::settings::TlsSettings;
use certificate_store::ListenerCertificates;
use http::HeaderValue;
use rustls::crypto::ring;
use rustls::version::{TLS12, TLS13};
use rustls::{ProtocolVersion, ServerConfig};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// HTTP/2 in ALPN.
const H2: &[u8] = b"h2";
/// HTTP/1.1 in ALPN.
const HTTP1: &[u8] = b"http/1.1";

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// rustls refuses the configuration, or there is no randomness for tickets.
    #[error("cannot set up TLS: {0}")]
    Config(#[from] rustls::Error),
}

/// TLS of one listener.
pub struct ListenerTls {
    acceptor: TlsAcceptor,
    /// The value of Strict-Transport-Security in its responses.
    pub hsts: Option<HeaderValue>,
}

/// A completed handshake.
pub struct CompletedHandshake {
    /// The encrypted stream.
    pub stream: TlsStream<TcpStream>,
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// Whether ALPN chose HTTP/2.
    pub speaks_http2: bool,
    /// Whether it was a challenge of a certificate authority (RFC 8737), after which nothing
    /// follows.
    pub is_acme_challenge: bool,
}

impl ListenerTls {
    /// `speaks_http2` is whether ALPN offers HTTP/2. `certificates` chooses the certificate of each
    /// handshake.
    fn new(
        settings: &TlsSettings,
        speaks_http2: bool,
        certificates: Arc<ListenerCertificates>,
    ) -> Result<ListenerTls, TlsError> {
        let has_acme = certificates.acme.is_some();
        let versions: &[_] = if settings.allows_tls12 {
            &[&TLS13, &TLS12]
        } else {
            &[&TLS13]
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_cert_resolver(certificates);
        if speaks_http2 {
            config.alpn_protocols.push(H2.to_vec());
        }
        config.alpn_protocols.push(HTTP1.to_vec());
        if has_acme {
            config.alpn_protocols.push(ACME_ALPN.to_vec());
        }
        config.ticketer = ring::Ticketer::new()?;
        let hsts = settings
            .hsts
            .and_then(|hsts| HeaderValue::try_from(hsts.header_value()).ok());
        Ok(ListenerTls {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            hsts,
        })
    }

    /// Does a handshake.
    ///
    /// # Errors
    /// The client speaks no TLS, or no version that is allowed here.
    pub async fn handshake(&self, stream: TcpStream) -> io::Result<CompletedHandshake> {
        let stream = self.acceptor.accept(stream).await?;
        let connection = stream.get_ref().1;
        let speaks_http2 = connection.alpn_protocol() == Some(H2);
        let is_acme_challenge = connection.alpn_protocol() == Some(ACME_ALPN);
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "1.2",
            _ => "1.3",
        };
        Ok(CompletedHandshake {
            stream,
            version,
            speaks_http2,
            is_acme_challenge,
        })
    }
}
