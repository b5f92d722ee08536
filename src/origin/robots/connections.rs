//! How the HTTP client (ureq) connects to the servers of an origin to fetch its robots.txt: name
//! resolution ([`OriginNameResolver`]), Unix sockets ([`UnixConnector`]), and TLS ([`tls_config`]).

use crate::dns::resolve_host_blocking;
use crate::settings::{OriginTls, TlsFile};
use crate::verdict::is_public_address;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::http::uri::Scheme;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// The most addresses of a lookup.
const MAX_ADDRESSES: usize = 16;
/// The shortest timeout of a socket: zero would mean none.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// The longest timeout of a socket.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// Resolves names for one request.
#[derive(Debug)]
pub struct OriginNameResolver {
    /// The name servers; those of the system if it is empty.
    pub servers: Vec<SocketAddr>,
    /// The server to connect to, if the URL has another name: the name in the server's certificate.
    pub server: Option<String>,
    /// Whether only public addresses count. The connection goes to one of the addresses that were
    /// checked here, which prevents DNS rebinding.
    pub must_be_public: bool,
}

/// A name without a public address.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no public address")]
pub struct NoPublicAddressError(SocketAddr);

impl Resolver for OriginNameResolver {
    /// The addresses of `server` if it is set, else of the host of the URL. Names are resolved by
    /// `servers` or, if there are none, by the system; then with `must_be_public` only public
    /// addresses count. Fails with [`NoPublicAddressError`] if none is public.
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let server_uri;
        let uri = match &self.server {
            Some(server) => {
                let built = Uri::builder()
                    .scheme(Scheme::HTTPS)
                    .authority(server.as_str())
                    .path_and_query("/")
                    .build();
                server_uri = built.map_err(Error::Http)?;
                &server_uri
            }
            None => uri,
        };
        let mut addresses = self.empty();
        let host = uri
            .host()
            .filter(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().is_err());
        let Some(host) = host.filter(|_| !self.servers.is_empty()) else {
            let found = DefaultResolver::default().resolve(uri, config, timeout)?;
            for address in found.iter() {
                if !self.must_be_public || is_public_address(address.ip()) {
                    addresses.push(*address);
                }
            }
            return match found.first() {
                Some(first) if addresses.is_empty() => {
                    Err(Error::Other(Box::new(NoPublicAddressError(*first))))
                }
                _ => Ok(addresses),
            };
        };
        let port = uri
            .port_u16()
            .unwrap_or(if uri.scheme() == Some(&Scheme::HTTPS) {
                443
            } else {
                80
            });
        let found = resolve_host_blocking(host, &self.servers);
        let found = found.map_err(|error| Error::Io(io::Error::other(error)))?;
        for ip in found.addresses.into_iter().take(MAX_ADDRESSES) {
            addresses.push(SocketAddr::new(ip, port));
        }
        Ok(addresses)
    }
}

/// Connects to this socket, whatever the URL says.
#[derive(Debug)]
pub struct UnixConnector(pub PathBuf);

impl<In: Transport> Connector<In> for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<In>,
    ) -> Result<Option<UnixTransport>, Error> {
        let stream = UnixStream::connect(&self.0)?;
        let config = &details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// A connection over a Unix socket.
#[derive(Debug)]
pub struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    /// Writes the first `amount` bytes of the output buffer.
    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream
            .set_write_timeout(Some(socket_timeout(&timeout)))?;
        let sent = self.stream.write_all(&self.buffers.output()[..amount]);
        sent.map_err(|error| transfer_error(error, &timeout))
    }

    /// Reads more bytes into the input buffer. Returns whether any came; false is the end.
    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream
            .set_read_timeout(Some(socket_timeout(&timeout)))?;
        let count = self
            .stream
            .read(self.buffers.input_append_buf())
            .map_err(|error| transfer_error(error, &timeout))?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        // No connection is used twice.
        false
    }
}

/// The timeout for the socket: from a millisecond to a minute.
fn socket_timeout(timeout: &NextTimeout) -> Duration {
    Duration::clamp(*timeout.after, MIN_TIMEOUT, MAX_TIMEOUT)
}

/// The error of ureq for an error of the socket. A late read or write is the timeout that ureq set.
fn transfer_error(error: io::Error, timeout: &NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => Error::Io(error),
    }
}

/// The configuration of TLS to an origin, from its settings.
///
/// # Errors
/// A file cannot be read.
pub fn tls_config(tls: &OriginTls) -> Result<TlsConfig, Error> {
    let roots = match &tls.ca {
        Some(file) => RootCerts::from(read_certificates(file)?),
        None => RootCerts::PlatformVerifier,
    };
    let client = match &tls.client {
        Some([cert, key]) => {
            let key = PrivateKey::from_pem(&crate::files::read_bounded(&key.path)?)?;
            Some(ClientCert::new_with_certs(&read_certificates(cert)?, key))
        }
        None => None,
    };
    Ok(TlsConfig::builder()
        .root_certs(roots)
        .client_cert(client)
        .build())
}

/// The certificates in a file; other items of PEM are skipped. Fails if the file cannot be read.
fn read_certificates(file: &TlsFile) -> Result<Vec<Certificate<'static>>, Error> {
    let text = crate::files::read_bounded(&file.path)?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item? {
            certificates.push(certificate);
        }
    }
    Ok(certificates)
}
