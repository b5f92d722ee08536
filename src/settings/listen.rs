//! [`ListenSettings`]: a listener, which is an address with the protocols that it speaks.

use super::AcmeSettings;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

/// An address to serve on.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenSettings {
    /// The address.
    pub address: SocketAddr,
    /// TLS; clear text when absent.
    pub tls: Option<TlsSettings>,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether requests are led to https, and where.
    pub redirect: Option<RedirectSettings>,
}

/// Where a listener leads its requests to: https.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedirectSettings {
    /// The port that clients see; the one of the first TLS listener when absent.
    pub port: Option<NonZeroU16>,
}

impl From<SocketAddr> for ListenSettings {
    fn from(address: SocketAddr) -> ListenSettings {
        ListenSettings { address, tls: None, proxy_protocol: false, redirect: None }
    }
}

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsSettings {
    /// The certificates. The first one is for clients that name no host, or one that no certificate has. There may be none
    /// where there is `acme`.
    pub certificates: Vec<CertificateFiles>,
    /// Certificates that crawlgate gets by itself. All listeners that have it say the same.
    pub acme: Option<AcmeSettings>,
    /// Whether TLS 1.2 is spoken, beside 1.3.
    pub allows_tls12: bool,
    /// Strict-Transport-Security; none when absent.
    pub hsts: Option<Hsts>,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those of the authorities up to a known one.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Strict-Transport-Security (RFC 6797).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hsts {
    /// How long a browser asks over https only.
    pub max_age: Duration,
    /// Whether the hosts below this one are meant, too.
    pub subdomains: bool,
}

impl Hsts {
    /// The value of the field.
    pub fn value(self) -> String {
        let subdomains = if self.subdomains { "; includeSubDomains" } else { "" };
        format!("max-age={}{subdomains}", self.max_age.as_secs())
    }
}
