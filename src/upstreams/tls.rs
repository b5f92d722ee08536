//! [`ServerTls`]: the authorities, the client certificate and the server name for TLS to the
//! servers of an origin. After a change of the files, crawlgate uses the new content. If it cannot
//! be used, the former content stays in use.
//!
//! All connections of an origin share one configuration, so that TLS sessions are resumed. With
//! authorities or a client certificate of the settings, Pingora's own connector makes a
//! configuration for each connection, and resumes no session. Pingora can send a request over a
//! connection of crawlgate's connector, but it does not keep the connection: it finds kept ones by
//! their sockets (Pingora 0.9.1). So Pingora gets the same certificates in its own form, and
//! connects by itself.

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

/// A file of an origin's `tls` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {mistake}", path = file.path.display())]
pub struct TlsFileError {
    /// The file, and where the settings name it.
    pub file: TlsFile,
    mistake: String,
}

/// TLS to the servers of an origin.
pub struct ServerTls {
    pub(super) settings: OriginTls,
    in_use: ArcSwap<InUse>,
    looked_at: Mutex<LookedAt>,
}

/// The files as they were when they were last read.
struct LookedAt {
    /// `None` where they could not be read.
    contents: Option<Contents>,
    /// Why their content is not in use.
    refused: Option<String>,
}

#[derive(Default)]
struct InUse {
    /// For connections of the lane and of checks. `None` without files: Pingora's own connector
    /// does then.
    connector: Option<TlsConnector>,
    /// The authorities and the client's certificate in Pingora's form.
    ca: Option<Arc<CaType>>,
    client: Option<Arc<CertKey>>,
}

/// The files with what they contain.
#[derive(PartialEq)]
struct Contents {
    ca: Option<Content>,
    /// The certificate and its key.
    client: Option<[Content; 2]>,
}

#[derive(PartialEq)]
struct Content {
    file: TlsFile,
    octets: Vec<u8>,
}

/// Connections to one server that resume its sessions.
pub struct Prepared {
    pub tls: Arc<ServerTls>,
    name: String,
    /// The server without TLS.
    clear: HttpPeer,
    /// For the handshake.
    limit: Duration,
}

impl ServerTls {
    /// Reads the files, and prepares TLS with them.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn open(settings: &OriginTls) -> Result<ServerTls, TlsFileError> {
        let contents = Contents::read(settings)?;
        Ok(ServerTls {
            in_use: ArcSwap::from_pointee(InUse::new(&contents)?),
            looked_at: Mutex::new(LookedAt {
                contents: Some(contents),
                refused: None,
            }),
            settings: settings.clone(),
        })
    }

    pub(super) fn has_files(&self) -> bool {
        self.settings.files().next().is_some()
    }

    /// Reads the files again. If they changed, new connections are made with them; if they cannot
    /// be used, with the former content, and the reason is kept. Logs both.
    pub(super) fn renew(&self) {
        let contents = Contents::read(&self.settings);
        let mut looked_at = lock(&self.looked_at);
        if looked_at.contents.as_ref() == contents.as_ref().ok() {
            return;
        }
        looked_at.contents = None;
        match contents.and_then(|contents| InUse::new(looked_at.contents.insert(contents))) {
            Ok(renewed) => {
                let files: Vec<_> = self
                    .settings
                    .files()
                    .map(|file| file.path.display().to_string())
                    .collect();
                tracing::info!(
                    ?files,
                    "took renewed files for TLS to an origin; new connections are made with them"
                );
                self.in_use.store(Arc::new(renewed));
                looked_at.refused = None;
            }
            Err(error) => {
                tracing::warn!(
                    "{error}; connections to the origin are made with the former files. Mend the file"
                );
                looked_at.refused = Some(error.to_string());
            }
        }
    }

    /// Why files that changed are not in use; `None` if all are.
    pub(super) fn refused(&self) -> Option<String> {
        lock(&self.looked_at).refused.clone()
    }

    /// Sets the authorities and the client certificate of a peer.
    pub(super) fn show(&self, peer: &mut HttpPeer) {
        let in_use = self.in_use.load();
        peer.options.ca = in_use.ca.clone();
        peer.client_cert_key = in_use.client.clone();
    }

    /// Prepares connections to one server that resume TLS sessions; `None` without files. `origin`
    /// is the origin's number in the settings: as the group key of `peer` it keeps these
    /// connections from being used for another origin, which may trust other authorities. `name` is
    /// checked in the server's certificate.
    pub(super) fn prepare(
        self: &Arc<Self>,
        peer: &mut HttpPeer,
        origin: usize,
        name: &str,
    ) -> Option<Prepared> {
        peer.group_key = 1 + origin as u64;
        if !self.has_files() {
            return None;
        }
        // Any address: that of `peer` takes its place.
        let mut clear = HttpPeer::new("0.0.0.0:0", false, String::new());
        clear._address = peer._address.clone();
        clear.options = peer.options.clone();
        Some(Prepared {
            tls: self.clone(),
            name: name.to_owned(),
            clear,
            limit: peer.options.connection_timeout.unwrap_or(Duration::MAX),
        })
    }
}

impl Contents {
    /// Reads the files that the settings name. Fails at the first that cannot be read.
    fn read(settings: &OriginTls) -> Result<Contents, TlsFileError> {
        Ok(Contents {
            ca: settings.ca.as_ref().map(Content::read).transpose()?,
            client: settings
                .client
                .as_ref()
                .map(|[cert, key]| Ok([Content::read(cert)?, Content::read(key)?]))
                .transpose()?,
        })
    }
}

impl InUse {
    /// Prepares TLS with these files. Without files there is nothing to prepare, and Pingora's
    /// connector is used. Fails if a file holds no certificate or key, or they do not fit together.
    fn new(Contents { ca, client }: &Contents) -> Result<InUse, TlsFileError> {
        let Some(first) = ca.iter().chain(client.iter().flatten()).next() else {
            return Ok(InUse::default());
        };
        let ca = ca.as_ref().map(Content::certificates).transpose()?;
        let client = client.as_ref();
        let client = client
            .map(|[cert, key]| Ok((&key.file, cert.certificates()?, key.key()?)))
            .transpose()?;
        let of_pingora = client.as_ref().map(|(_, chain, key)| {
            let chain = chain
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect();
            Arc::new(CertKey::new(chain, key.secret_der().to_vec()))
        });
        let builder = trusting(ca.as_deref()).map_err(|error| {
            wrong(
                &first.file,
                format_args!("a certificate in this file cannot be used: {error}"),
            )
        })?;
        let config = match client {
            Some((file, chain, key)) => {
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| {
                    wrong(
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
        Ok(InUse {
            connector: Some(TlsConnector::from(Arc::new(config))),
            ca,
            client: of_pingora,
        })
    }
}

/// The configuration of a client that trusts these authorities, or with `None` those of the system
/// that can be read.
///
/// # Errors
/// One of them cannot be used.
pub fn trusting(
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
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots))
}

impl Prepared {
    /// A new connection with a finished TLS handshake, which may take as long as connecting.
    ///
    /// # Errors
    /// The server cannot be reached, or the handshake fails or takes too long. Also without files
    /// in the settings, where Pingora's connector has to be used.
    pub async fn connect(&self, connector: &TransportConnector) -> Result<BoxedStream> {
        let stream = connector
            .new_stream(&self.clear)
            .await?
            .into_any()
            .downcast::<Stream>();
        let stream = *stream.map_err(|_| {
            Error::explain(ErrorType::InternalError, "not a connection in clear text")
        })?;
        let in_use = self.tls.in_use.load_full();
        let Some(connector) = &in_use.connector else {
            return Error::e_explain(ErrorType::InternalError, "no files of `tls`");
        };
        let handshake = client::handshake(connector, &self.name, stream);
        match tokio::time::timeout(self.limit, handshake).await {
            Ok(stream) => Ok(Box::new(stream?)),
            Err(_) => Error::e_explain(
                ErrorType::TLSHandshakeTimedout,
                "the server does not finish the TLS handshake",
            ),
        }
    }
}

fn wrong(file: &TlsFile, mistake: impl fmt::Display) -> TlsFileError {
    TlsFileError {
        file: file.clone(),
        mistake: mistake.to_string(),
    }
}

impl Content {
    /// Reads one file into memory and keeps beside its bytes which file it is; does not look at the
    /// bytes. The error names the file and why it cannot be read.
    fn read(file: &TlsFile) -> Result<Content, TlsFileError> {
        match crate::files::read(&file.path) {
            Ok(octets) => Ok(Content {
                file: file.clone(),
                octets,
            }),
            Err(error) => Err(wrong(file, format_args!("cannot read this file: {error}"))),
        }
    }

    /// The certificates in the file. Fails if there is none, or if one of them cannot be read.
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
        let found = CertificateDer::pem_slice_iter(&self.octets)
            .collect::<std::result::Result<Vec<_>, _>>();
        match found {
            Ok(found)
                if found
                    .iter()
                    .any(|certificate| X509Certificate::from_der(certificate).is_err()) =>
            {
                Err(wrong(
                    &self.file,
                    "a certificate in this file cannot be read",
                ))
            }
            Ok(found) if !found.is_empty() => Ok(found),
            _ => Err(wrong(
                &self.file,
                "this file contains no certificate in PEM",
            )),
        }
    }

    /// The private key in the file. Fails if there is none in PEM, or Pingora could not read it.
    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsFileError> {
        let key = PrivateKeyDer::from_pem_slice(&self.octets).ok();
        // Pingora guesses the form of a key from its octets.
        key.filter(|key| PrivateKeyDer::try_from(key.secret_der()).is_ok())
            .ok_or_else(|| wrong(&self.file, "this file contains no private key in PEM"))
    }
}
