//! TLS for fetches of robots.txt: the roots of the system (and of `SSL_CERT_FILE`), or what the settings say of an origin, as
//! Pingora uses for requests. With roots of its own, crawlgate would forward a site behind a company's authority and could
//! not read its robots.txt.

use crate::settings::{OriginTls, TlsFile};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The system's roots.
pub(super) fn system() -> TlsConfig {
    TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build()
}

/// What the settings say of an origin.
///
/// # Errors
/// A file cannot be read.
pub(super) fn of_origin(tls: &OriginTls) -> Result<TlsConfig, ureq::Error> {
    let roots = match &tls.ca {
        Some(file) => RootCerts::from(certificates(file)?),
        None => RootCerts::PlatformVerifier,
    };
    let client = match &tls.client {
        Some([cert, key]) => {
            let key = PrivateKey::from_pem(&std::fs::read(&key.path)?)?;
            Some(ClientCert::new_with_certs(&certificates(cert)?, key))
        }
        None => None,
    };
    Ok(TlsConfig::builder().root_certs(roots).client_cert(client).build())
}

fn certificates(file: &TlsFile) -> Result<Vec<Certificate<'static>>, ureq::Error> {
    let text = std::fs::read(&file.path)?;
    let of_item = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    };
    parse_pem(&text).filter_map(of_item).collect()
}
