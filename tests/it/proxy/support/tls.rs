//! A client over TLS, and an authority that it trusts.

use super::PATIENCE;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// An authority of the tests' own.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // A certificate with the name of its issuer is taken for one that vouches for itself.
        params
            .distinguished_name
            .push(DnType::CommonName, "An authority of the tests");
        let key = KeyPair::generate().expect("a key");
        Authority {
            issuer: CertifiedIssuer::self_signed(params, key).expect("an authority"),
        }
    }

    /// Writes `NAME.pem` and `NAME.key` for these hosts; another serial number each time. Valid
    /// from 2000 to the given year.
    pub fn certify(&self, directory: &Path, name: &str, hosts: &[&str], until: i32) {
        let mut params = CertificateParams::new(
            hosts
                .iter()
                .map(|host| (*host).to_owned())
                .collect::<Vec<_>>(),
        )
        .expect("names");
        (params.not_before, params.not_after) =
            (date_time_ymd(2000, 1, 1), date_time_ymd(until, 1, 1));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let chain = format!("{}{}", certificate.pem(), self.issuer.pem());
        std::fs::write(directory.join(format!("{name}.key")), key.serialize_pem()).expect("a key");
        std::fs::write(directory.join(format!("{name}.pem")), chain).expect("a certificate");
    }

    /// The certificate of the authority, for clients.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A client that trusts this authority alone.
    pub fn client(
        &self,
        alpn: &[&str],
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a root");
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// A connection over TLS.
pub struct TlsConnection {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl TlsConnection {
    /// Connects and shakes hands; an error is what the client finds wrong.
    pub fn open(
        address: SocketAddr,
        host: &str,
        config: &Arc<ClientConfig>,
    ) -> io::Result<TlsConnection> {
        TlsConnection::over(
            TcpStream::connect_timeout(&address, PATIENCE)?,
            host,
            config,
        )
    }

    /// Shakes hands on a connection that is there.
    pub fn over(
        socket: TcpStream,
        host: &str,
        config: &Arc<ClientConfig>,
    ) -> io::Result<TlsConnection> {
        socket.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(host.to_owned()).expect("a name");
        let connection = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(TlsConnection { stream })
    }

    pub fn send(&mut self, text: &str) {
        self.stream
            .write_all(text.as_bytes())
            .expect("the other side takes it");
    }

    /// The next response with a length, as text.
    pub fn response(&mut self) -> String {
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"\r\n\r\n") {
            self.stream.read_exact(&mut byte).expect("a head");
            text.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        text.extend(body);
        String::from_utf8(text).expect("UTF-8")
    }

    /// All that comes until the other side ends the connection.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            // Without a goodbye.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(bytes),
            read => read.map(|_| bytes),
        }
    }

    /// The protocol that ALPN chose.
    pub fn protocol(&self) -> Option<String> {
        self.stream
            .conn
            .alpn_protocol()
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// The certificate that the server showed.
    pub fn certificate(&self) -> Vec<u8> {
        self.stream.conn.peer_certificates().expect("certificates")[0].to_vec()
    }

    /// Whether the server said goodbye, and nothing else.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0))
    }
}
