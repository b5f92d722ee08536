//! Connections to the servers of origins, for ureq: the addresses of their names ([`Names`]), their
//! Unix sockets ([`UnixConnector`]), and TLS to them ([`tls_of`]).

use crate::dns::addresses_of_host_blocking;
use crate::settings::{OriginTls, TlsFile};
use crate::verdict::is_public;
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

/// Addresses that a lookup gives at most.
const MOST: usize = 16;
/// The shortest limit: the system takes none for zero.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest limit.
const LONGEST: Duration = Duration::from_secs(60);

/// Resolves names for one request.
#[derive(Debug)]
pub struct Names {
    /// The name servers to ask; those of the system where it is empty.
    pub servers: Vec<SocketAddr>,
    /// The server to connect to, if it is not that of the URL. The URL has the name in the server's
    /// certificate then.
    pub server: Option<String>,
    /// Whether only public addresses count. A connection goes to one of the addresses that are
    /// given here, so a name that resolves to another address the next time gains nothing (DNS
    /// rebinding).
    pub must_be_public: bool,
}

/// A name has no public address.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no public address")]
pub struct NotPublic(SocketAddr);

impl Resolver for Names {
    /// The addresses of the server to connect to: of `server` if it is set, else of the URL. A name
    /// is asked of `servers`, if there are some; otherwise the system resolves it, and with
    /// `must_be_public` only public addresses count. If there is none of these, it fails with
    /// [`NotPublic`].
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let of_server;
        let uri = match &self.server {
            Some(server) => {
                let built = Uri::builder()
                    .scheme(Scheme::HTTPS)
                    .authority(server.as_str())
                    .path_and_query("/")
                    .build();
                of_server = built.map_err(Error::Http)?;
                &of_server
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
                if !self.must_be_public || is_public(address.ip()) {
                    addresses.push(*address);
                }
            }
            return match found.first() {
                Some(first) if addresses.is_empty() => {
                    Err(Error::Other(Box::new(NotPublic(*first))))
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
        let found = addresses_of_host_blocking(host, &self.servers);
        let found = found.map_err(|error| Error::Io(io::Error::other(error)))?;
        for ip in found.addresses.into_iter().take(MOST) {
            addresses.push(SocketAddr::new(ip, port));
        }
        Ok(addresses)
    }
}

/// A name or an address as it is written in a URL: IPv6 in brackets, everything else as it is.
pub fn in_url(name: &str) -> String {
    match name.parse() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => name.to_owned(),
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

    /// Writes the first `amount` bytes of the output buffer. A write that is late is the timeout
    /// that ureq set.
    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(Some(limit(&timeout)))?;
        let sent = self.stream.write_all(&self.buffers.output()[..amount]);
        sent.map_err(|error| of_transfer(error, &timeout))
    }

    /// Reads more bytes into the input buffer. Returns whether any came; false is the end.
    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(Some(limit(&timeout)))?;
        let count = self
            .stream
            .read(self.buffers.input_append_buf())
            .map_err(|error| of_transfer(error, &timeout))?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        // No connection is used twice.
        false
    }
}

/// The timeout as the socket takes it: from a millisecond to a minute.
fn limit(timeout: &NextTimeout) -> Duration {
    Duration::clamp(*timeout.after, SHORTEST, LONGEST)
}

/// The error of ureq for an error of the socket: a late one is the timeout that ureq set.
fn of_transfer(error: io::Error, timeout: &NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => Error::Io(error),
    }
}

/// The configuration of TLS to an origin, from its settings.
///
/// # Errors
/// A file cannot be read.
pub fn tls_of(tls: &OriginTls) -> Result<TlsConfig, Error> {
    let roots = match &tls.ca {
        Some(file) => RootCerts::from(certificates(file)?),
        None => RootCerts::PlatformVerifier,
    };
    let client = match &tls.client {
        Some([cert, key]) => {
            let key = PrivateKey::from_pem(&crate::files::read(&key.path)?)?;
            Some(ClientCert::new_with_certs(&certificates(cert)?, key))
        }
        None => None,
    };
    Ok(TlsConfig::builder()
        .root_certs(roots)
        .client_cert(client)
        .build())
}

/// The certificates in a file; other items of PEM are passed over. Fails if the file cannot be
/// read.
fn certificates(file: &TlsFile) -> Result<Vec<Certificate<'static>>, Error> {
    let text = crate::files::read(&file.path)?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item? {
            certificates.push(certificate);
        }
    }
    Ok(certificates)
}
