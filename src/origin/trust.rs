//! The TLS roots for fetches of robots.txt: those of the system (and of `SSL_CERT_FILE`), as Pingora uses for requests. With
//! roots of its own, crawlgate would forward a site behind a company's authority and could not read its robots.txt.

use ureq::tls::{RootCerts, TlsConfig};

/// The system's roots.
pub(super) fn system() -> TlsConfig {
    TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build()
}
