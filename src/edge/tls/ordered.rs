//! [`OrderedCertificates`]: certificates that do not come from files, because crawlgate orders them
//! from an authority. The listeners use them, and answer the handshakes by which the authority checks
//! who controls a host.

use rustls::sign::CertifiedKey;
use std::fmt::Debug;
use std::sync::Arc;

/// The protocol of handshakes that prove a host to an authority (RFC 8737 section 6.2).
pub const ACME_ALPN: &[u8] = b"acme-tls/1";

/// The certificates that were ordered. No call waits: handshakes read them.
pub trait OrderedCertificates: Debug + Send + Sync {
    /// The certificate of a host.
    fn certificate(&self, host: &str) -> Option<Arc<CertifiedKey>>;

    /// The certificate for clients that name no host.
    fn any(&self) -> Option<Arc<CertifiedKey>>;

    /// Whether a host has a certificate.
    fn has(&self, host: &str) -> bool;

    /// When each certificate in use expires, by host, in seconds since 1970.
    fn ends(&self) -> Vec<(String, i64)>;

    /// The certificate for a handshake of an authority (RFC 8737 section 3).
    fn handshake(&self, host: &str) -> Option<Arc<CertifiedKey>>;

    /// Logs that a client asks for a host that has no certificate yet.
    fn note_missing(&self, host: &str);
}
