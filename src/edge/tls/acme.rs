//! [`AcmeCertificates`]: the trait by which TLS listeners get the certificates that crawlgate
//! orders from a certificate authority. The trait also gives them the special certificates that
//! answer the authority's challenges during a handshake (TLS-ALPN).

use rustls::sign::CertifiedKey;
use std::fmt::Debug;
use std::sync::Arc;

/// The ALPN protocol of challenges (RFC 8737 section 6.2).
pub const ACME_ALPN: &[u8] = b"acme-tls/1";

/// The certificates that were ordered. No call blocks: handshakes use them.
pub trait AcmeCertificates: Debug + Send + Sync {
    /// The certificate of a host.
    fn certificate(&self, host: &str) -> Option<Arc<CertifiedKey>>;

    /// The certificate for clients that name no host.
    fn fallback_certificate(&self) -> Option<Arc<CertifiedKey>>;

    /// Whether a host has a certificate.
    fn has_certificate(&self, host: &str) -> bool;

    /// When each certificate in use expires, by host, in seconds since 1970.
    fn expiries(&self) -> Vec<(String, i64)>;

    /// The certificate that answers a challenge of an authority (RFC 8737 section 3).
    fn challenge_certificate(&self, host: &str) -> Option<Arc<CertifiedKey>>;
}
