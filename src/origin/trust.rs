//! Whom the fetches of robots.txt trust over TLS: the roots of the system (and of `SSL_CERT_FILE`), as Pingora does for
//! requests. With roots of its own, a site behind a company's authority would be forwarded and its robots.txt not be
//! read.

use ureq::tls::{RootCerts, TlsConfig};

/// The system's roots.
pub(super) fn system() -> TlsConfig {
    TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build()
}
