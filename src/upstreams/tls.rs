//! [`ServerTls`]: the trusted authorities and the client certificate with which crawlgate connects
//! to the servers of an origin over TLS. When their files change, crawlgate uses the new content.
//! If the new content cannot be used, the former content stays active.
//!
//! All connections of an origin share one configuration, so that TLS sessions are resumed
//! ([`TlsServerConnector`]). Pingora's own connector makes a new configuration for each connection
//! if there are authorities or a client certificate, and so resumes no session. Pingora's proxy
//! must use Pingora's own connector all the same (Pingora 0.9.1): the proxy reuses only connections
//! that this connector made. For this connector, the same certificates are converted to Pingora's
//! form.

use crate::locks::lock;
use crate::settings::{OriginTls, TlsFile};
use arc_swap::ArcSwap;
use pingora_core::connectors::TransportConnector;
use pingora_core::protocols::Stream as BoxedStream;
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::protocols::tls::{CaType, client};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::utils::tls::{CertKey, WrappedX509, parse_x509};
use pingora_core::{Error, ErrorType, Result};
use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Why a file of an origin's `tls` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {mistake}", path = file.path.display())]
pub struct TlsFileError {
    /// The file, and where the settings name it.
    pub file: TlsFile,
    mistake: String,
}

/// TLS to the servers of an origin.
pub struct ServerTls {
    /// The files.
    pub settings: OriginTls,
    active: ArcSwap<ActiveTls>,
    loaded: Mutex<LoadedTlsFiles>,
}

/// The files as they were last read.
struct LoadedTlsFiles {
    /// `None` if they could not be read.
    contents: Option<TlsFiles>,
    /// Why their content is not active.
    rejection: Option<String>,
}

#[derive(Default)]
struct ActiveTls {
    /// For connections of the forwarder and of checks. `None` without files: then Pingora's own
    /// connector is used.
    connector: Option<TlsConnector>,
    /// The authorities and the client's certificate in Pingora's form.
    ca: Option<Arc<CaType>>,
    client: Option<Arc<CertKey>>,
}

/// The files and their contents.
#[derive(PartialEq)]
struct TlsFiles {
    ca: Option<TlsFileContent>,
    /// The certificate and its key.
    client: Option<[TlsFileContent; 2]>,
}

#[derive(PartialEq)]
struct TlsFileContent {
    file: TlsFile,
    bytes: Vec<u8>,
}

/// Connects to one server with TLS, and resumes its sessions.
pub struct TlsServerConnector {
    pub tls: Arc<ServerTls>,
    name: String,
    /// The server without TLS, for the TCP connection.
    clear_peer: HttpPeer,
    /// For the handshake.
    handshake_timeout: Duration,
}

impl ServerTls {
    /// Reads the files, and prepares TLS with them.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn open(settings: &OriginTls) -> Result<ServerTls, TlsFileError> {
        let contents = TlsFiles::read(settings)?;
        Ok(ServerTls {
            active: ArcSwap::from_pointee(ActiveTls::new(&contents)?),
            loaded: Mutex::new(LoadedTlsFiles {
                contents: Some(contents),
                rejection: None,
            }),
            settings: settings.clone(),
        })
    }

    /// Whether there are files to reload.
    pub fn has_files(&self) -> bool {
        self.settings.files().next().is_some()
    }

    /// Reads the files again, and uses changed ones for new connections. If they cannot be used, the
    /// former content stays, and the reason is kept. Logs both.
    pub fn reload(&self) {
        let contents = TlsFiles::read(&self.settings);
        let mut loaded = lock(&self.loaded);
        if loaded.contents.as_ref() == contents.as_ref().ok() {
            return;
        }
        loaded.contents = None;
        match contents.and_then(|contents| ActiveTls::new(loaded.contents.insert(contents))) {
            Ok(renewed) => {
                let files: Vec<_> = self
                    .settings
                    .files()
                    .map(|file| file.path.display().to_string())
                    .collect();
                tracing::info!(
                    ?files,
                    "the renewed TLS files of an origin are in use for new connections"
                );
                self.active.store(Arc::new(renewed));
                loaded.rejection = None;
            }
            Err(error) => {
                tracing::warn!(
                    "{error}; crawlgate still uses the old files for connections to the origin. Fix the file"
                );
                loaded.rejection = Some(error.to_string());
            }
        }
    }

    /// Why changed files are not active; `None` if all are.
    pub fn rejection(&self) -> Option<String> {
        lock(&self.loaded).rejection.clone()
    }

    /// Sets the authorities and the client certificate of a peer.
    pub fn configure_peer(&self, peer: &mut HttpPeer) {
        let active = self.active.load();
        peer.options.ca = active.ca.clone();
        peer.client_cert_key = active.client.clone();
    }

    /// The connector for one server; `None` without files. `origin` is the origin's index in the
    /// settings: as the group key of `peer` it keeps these connections from being used for another
    /// origin, which may trust other authorities. `name` is the name in the server's certificate.
    pub fn connector_for(
        self: &Arc<Self>,
        peer: &mut HttpPeer,
        origin: usize,
        name: &str,
    ) -> Option<TlsServerConnector> {
        peer.group_key = 1 + origin as u64;
        if !self.has_files() {
            return None;
        }
        // A placeholder for the address of `peer`.
        let mut clear_peer = HttpPeer::new("0.0.0.0:0", false, String::new());
        clear_peer._address = peer._address.clone();
        clear_peer.options = peer.options.clone();
        Some(TlsServerConnector {
            tls: self.clone(),
            name: name.to_owned(),
            clear_peer,
            handshake_timeout: peer.options.connection_timeout.unwrap_or(Duration::MAX),
        })
    }
}

impl TlsFiles {
    /// Reads the files that the settings name. Fails at the first that cannot be read.
    fn read(settings: &OriginTls) -> Result<TlsFiles, TlsFileError> {
        Ok(TlsFiles {
            ca: settings.ca.as_ref().map(TlsFileContent::read).transpose()?,
            client: settings
                .client
                .as_ref()
                .map(|[cert, key]| Ok([TlsFileContent::read(cert)?, TlsFileContent::read(key)?]))
                .transpose()?,
        })
    }
}

impl ActiveTls {
    /// Prepares TLS with these files; empty without files. Fails if a file has no certificate or key,
    /// or they do not match.
    fn new(TlsFiles { ca, client }: &TlsFiles) -> Result<ActiveTls, TlsFileError> {
        let Some(first) = ca.iter().chain(client.iter().flatten()).next() else {
            return Ok(ActiveTls::default());
        };
        let ca = ca.as_ref().map(TlsFileContent::certificates).transpose()?;
        let client = client.as_ref();
        let client = client
            .map(|[cert, key]| Ok((&key.file, cert.certificates()?, key.private_key()?)))
            .transpose()?;
        let pingora_client = client.as_ref().map(|(_, chain, key)| {
            let chain = chain
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect();
            Arc::new(CertKey::new(chain, key.secret_der().to_vec()))
        });
        let builder = client_config_builder(ca.as_deref()).map_err(|error| {
            file_error(
                &first.file,
                format_args!("a certificate in this file cannot be used: {error}"),
            )
        })?;
        let config = match client {
            Some((file, chain, key)) => {
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    file_error(
                        file,
                        format_args!("this key cannot be used with the certificate: {error}"),
                    )
                })?
            }
            None => builder.with_no_client_auth(),
        };
        let ca = ca.map(|certificates| {
            certificates
                .iter()
                .map(|certificate| WrappedX509::new(certificate.to_vec(), parse_x509))
                .collect()
        });
        Ok(ActiveTls {
            connector: Some(TlsConnector::from(Arc::new(config))),
            ca,
            client: pingora_client,
        })
    }
}

/// The configuration of a client that trusts these authorities, or with `None` those of the system
/// that can be read.
///
/// # Errors
/// One of them cannot be used.
pub fn client_config_builder(
    ca: Option<&[CertificateDer<'static>]>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(certificates) => certificates
            .iter()
            .try_for_each(|certificate| roots.add(certificate.clone()))?,
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots),
    )
}

impl TlsServerConnector {
    /// Opens a connection with a finished TLS handshake, which may take as long as connecting.
    ///
    /// # Errors
    /// The server cannot be reached, or the handshake fails or takes too long.
    pub async fn connect(&self, connector: &TransportConnector) -> Result<BoxedStream> {
        let stream = connector
            .new_stream(&self.clear_peer)
            .await?
            .into_any()
            .downcast::<Stream>();
        let stream = *stream.map_err(|_| {
            Error::explain(ErrorType::InternalError, "not a connection in clear text")
        })?;
        let active = self.tls.active.load_full();
        let Some(connector) = &active.connector else {
            return Error::e_explain(ErrorType::InternalError, "no files in \"tls\"");
        };
        let handshake = client::handshake(connector, &self.name, stream);
        match tokio::time::timeout(self.handshake_timeout, handshake).await {
            Ok(stream) => Ok(Box::new(stream?)),
            Err(_) => Error::e_explain(
                ErrorType::TLSHandshakeTimedout,
                "the server does not finish the TLS handshake",
            ),
        }
    }
}

fn file_error(file: &TlsFile, mistake: impl fmt::Display) -> TlsFileError {
    TlsFileError {
        file: file.clone(),
        mistake: mistake.to_string(),
    }
}

impl TlsFileContent {
    /// Reads one file.
    fn read(file: &TlsFile) -> Result<TlsFileContent, TlsFileError> {
        match crate::files::read_bounded(&file.path) {
            Ok(bytes) => Ok(TlsFileContent {
                file: file.clone(),
                bytes,
            }),
            Err(error) => Err(file_error(
                file,
                format_args!("cannot read this file: {error}"),
            )),
        }
    }

    /// The certificates in the file. Fails if there is none, or if one of them cannot be read.
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
        let found = CertificateDer::pem_slice_iter(&self.bytes).collect::<Result<Vec<_>, _>>();
        found
            .ok()
            .filter(|found| {
                !found.is_empty()
                    && found
                        .iter()
                        .all(|certificate| X509Certificate::from_der(certificate).is_ok())
            })
            .ok_or_else(|| {
                file_error(
                    &self.file,
                    "this file contains no certificate in PEM format, or a damaged one",
                )
            })
    }

    /// The private key in the file. Fails if there is none in PEM, or Pingora could not read it.
    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsFileError> {
        let key = PrivateKeyDer::from_pem_slice(&self.bytes).ok();
        // Pingora guesses the format of a key from its bytes.
        key.filter(|key| PrivateKeyDer::try_from(key.secret_der()).is_ok())
            .ok_or_else(|| {
                file_error(
                    &self.file,
                    "this file contains no private key in PEM format",
                )
            })
    }
}
