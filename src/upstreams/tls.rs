//! [`ServerTls`]: what a connection over TLS to the servers of an origin needs beside an address, read from files once. Must
//! not know which servers there are.
//!
//! One configuration for all connections of an origin, so that TLS sessions are resumed. Pingora's own connector makes a
//! configuration for each connection, and resumes none of them, where the authorities or the client's certificate are not
//! the system's (Pingora 0.9.1): it gets the same certificates in its own form.

use crate::settings::{OriginTls, TlsFile};
use crate::yaml::Span;
use pingora_core::connectors::TransportConnector;
use pingora_core::protocols::Stream as BoxedStream;
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::protocols::tls::{CaType, client};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::utils::tls::{CertKey, WrappedX509, parse_x509};
use pingora_core::{Error, ErrorType, Result};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A file of an origin's `tls` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {mistake}", path = path.display())]
pub struct TlsFileError {
    /// The file.
    pub path: PathBuf,
    /// Where the settings name it.
    pub span: Span,
    mistake: Mistake,
}

#[derive(Debug, thiserror::Error)]
enum Mistake {
    #[error("cannot read this file: {0}")]
    Read(#[from] std::io::Error),
    #[error("this file contains no certificate in PEM")]
    NoCertificate,
    #[error("this file contains no private key in PEM")]
    NoKey,
    #[error("a certificate in this file cannot be read")]
    Unreadable,
    #[error("a certificate in this file cannot be used: {0}")]
    Unusable(rustls::Error),
    #[error("this key cannot be used with the certificate: {0}")]
    Key(rustls::Error),
}

/// TLS to the servers of an origin.
pub struct ServerTls {
    /// The name of the certificates; each server's own when absent.
    pub(super) server_name: Option<String>,
    /// For connections of the lane; none where Pingora's own does.
    connector: Option<TlsConnector>,
    ca: Option<Arc<CaType>>,
    client: Option<Arc<CertKey>>,
}

/// Connections to one server that resume its sessions.
pub(super) struct Prepared {
    connector: TlsConnector,
    name: String,
    /// The server without TLS.
    clear: HttpPeer,
    /// For the handshake.
    limit: Duration,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn open(settings: &OriginTls) -> Result<ServerTls, TlsFileError> {
        let ca = settings.ca.as_ref().map(|file| Ok((file, certificates(file)?))).transpose()?;
        let client =
            settings.client.as_ref().map(|[cert, file]| Ok((file, certificates(cert)?, key(file)?))).transpose()?;
        let server_name = settings.server_name.clone();
        let Some(first) = settings.ca.iter().chain(settings.client.iter().flatten()).next() else {
            return Ok(ServerTls { server_name, connector: None, ca: None, client: None });
        };
        let mut roots = RootCertStore::empty();
        match &ca {
            Some((file, certificates)) => {
                for certificate in certificates {
                    roots.add(certificate.clone()).map_err(|error| wrong(file, Mistake::Unusable(error)))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let of_pingora = client.as_ref().map(|(_, chain, key)| {
            let chain = chain.iter().map(|certificate| certificate.to_vec()).collect();
            Arc::new(CertKey::new(chain, key.secret_der().to_vec()))
        });
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(first, Mistake::Unusable(error)))?
            .with_root_certificates(roots);
        let config = match client {
            Some((file, chain, key)) => {
                builder.with_client_auth_cert(chain, key).map_err(|error| wrong(file, Mistake::Key(error)))?
            }
            None => builder.with_no_client_auth(),
        };
        let wrapped = |certificate: &CertificateDer<'_>| WrappedX509::new(certificate.to_vec(), parse_x509);
        Ok(ServerTls {
            server_name,
            connector: Some(TlsConnector::from(Arc::new(config))),
            ca: ca.map(|(_, certificates)| certificates.iter().map(wrapped).collect()),
            client: of_pingora,
        })
    }

    /// Tells Pingora what to trust and what to show at one server, and prepares what Pingora cannot do. Connections of one
    /// origin are not used for another, which may trust others.
    pub(super) fn prepare(&self, peer: &mut HttpPeer, origin: usize, name: &str) -> Option<Prepared> {
        peer.options.ca = self.ca.clone();
        peer.client_cert_key = self.client.clone();
        peer.group_key = 1 + origin as u64;
        let connector = self.connector.clone()?;
        let mut clear = HttpPeer::new("0.0.0.0:0", false, String::new());
        (clear._address, clear.options) = (peer._address.clone(), peer.options.clone());
        let limit = peer.options.connection_timeout.unwrap_or(Duration::MAX);
        Some(Prepared { connector, name: name.to_owned(), clear, limit })
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Prepared").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Prepared {
    async fn clear_stream(&self, connector: &TransportConnector) -> Result<Stream> {
        let stream = connector.new_stream(&self.clear).await?.into_any().downcast::<Stream>();
        stream
            .map(|stream| *stream)
            .map_err(|_| Error::explain(ErrorType::InternalError, "not a connection in clear text"))
    }

    /// A new connection.
    ///
    /// # Errors
    /// There is none, or TLS fails.
    pub(super) async fn connect(&self, connector: &TransportConnector) -> Result<BoxedStream> {
        let stream = self.clear_stream(connector).await?;
        let handshake = client::handshake(&self.connector, &self.name, stream);
        match tokio::time::timeout(self.limit, handshake).await {
            Ok(stream) => Ok(Box::new(stream?)),
            Err(_) => Error::e_explain(ErrorType::TLSHandshakeTimedout, "the server does not finish the TLS handshake"),
        }
    }
}

fn wrong(file: &TlsFile, mistake: impl Into<Mistake>) -> TlsFileError {
    TlsFileError { path: file.path.clone(), span: file.span, mistake: mistake.into() }
}

fn certificates(file: &TlsFile) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let text = std::fs::read(&file.path).map_err(|error| wrong(file, error))?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found =
        found.ok().filter(|found: &Vec<_>| !found.is_empty()).ok_or_else(|| wrong(file, Mistake::NoCertificate))?;
    match found.iter().all(|certificate| X509Certificate::from_der(certificate).is_ok()) {
        true => Ok(found),
        false => Err(wrong(file, Mistake::Unreadable)),
    }
}

fn key(file: &TlsFile) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let text = std::fs::read(&file.path).map_err(|error| wrong(file, error))?;
    let key = PrivateKeyDer::from_pem_slice(&text).ok();
    // Pingora guesses the form of a key from its octets.
    key.filter(|key| PrivateKeyDer::try_from(key.secret_der()).is_ok()).ok_or_else(|| wrong(file, Mistake::NoKey))
}
