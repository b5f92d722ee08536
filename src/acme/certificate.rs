//! [`IssuedCertificate`]: a certificate chain from a certificate authority, with its private key.
//! [`IssuedCertificate::from_pem`] checks that the chain fits the host and the key before crawlgate
//! stores or uses it: crawlgate does not trust what an authority sends.

use crate::edge::dns_names;
use crate::time::Timestamp;
use instant_acme::CertificateIdentifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, Der, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The longest chain.
const MAX_CERTIFICATES: usize = 10;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It is not a certificate chain with a key in PEM.
    #[error("it cannot be read")]
    Unreadable,
    /// It names another host.
    #[error("it is for another host")]
    OtherHost,
    /// It has expired.
    #[error("it expired on {0}")]
    Expired(String),
    /// Its key is another one, or of a kind that is not accepted.
    #[error("its key cannot be used: {0}")]
    Key(rustls::Error),
}

/// A certificate chain of a host, with its key.
#[derive(Debug)]
pub struct IssuedCertificate {
    /// The host that crawlgate uses it for.
    pub host: String,
    /// The chain and the private key, as rustls serves them.
    pub key: Arc<CertifiedKey>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// The identifier in requests for a renewal suggestion (RFC 9773 section 4.1).
    pub id: Option<CertificateIdentifier<'static>>,
    /// Where it is stored.
    pub file: PathBuf,
    /// When crawlgate got it; `None` if it was before this start.
    pub obtained: Option<Timestamp>,
}

impl IssuedCertificate {
    /// Parses a private key and a chain of at most ten certificates. The first one must name exactly
    /// this host and fit the key. Its validity is not checked. `file` is where it is stored.
    pub fn from_pem(
        host: &str,
        pem: &str,
        file: PathBuf,
    ) -> Result<IssuedCertificate, CertificateError> {
        use CertificateError::*;

        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .take(MAX_CERTIFICATES)
            .collect::<Result<_, _>>()
            .map_err(|_| Unreadable)?;
        let first = chain.first().ok_or(Unreadable)?.clone();
        let (_, parsed) = X509Certificate::from_der(&first).map_err(|_| Unreadable)?;
        if !dns_names(&parsed)
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
        {
            return Err(OtherHost);
        }
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| Unreadable)?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(Key)?;
        Ok(IssuedCertificate {
            host: host.to_owned(),
            key: Arc::new(key),
            not_before: Timestamp(parsed.validity().not_before.timestamp()),
            not_after: Timestamp(parsed.validity().not_after.timestamp()),
            id: renewal_id(&parsed),
            file,
            obtained: None,
        })
    }

    /// An error if the certificate has expired. One that is not valid yet passes.
    pub fn check_not_expired(self, now: Timestamp) -> Result<IssuedCertificate, CertificateError> {
        if now > self.not_after {
            Err(CertificateError::Expired(self.not_after.to_http_date()))
        } else {
            Ok(self)
        }
    }

    pub fn lifetime(&self) -> Duration {
        self.not_after.since(self.not_before)
    }
}

/// The RFC 9773 section 4.1 identifier: the key identifier of the authority, and the serial number.
/// `None` without the former.
fn renewal_id(certificate: &X509Certificate<'_>) -> Option<CertificateIdentifier<'static>> {
    let authority = certificate.extensions().iter().find_map(|extension| {
        match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(authority) => {
                authority.key_identifier.as_ref().map(|key| key.0)
            }
            _ => None,
        }
    })?;
    let serial = certificate.tbs_certificate.raw_serial();
    Some(
        CertificateIdentifier::new(Der::from_slice(authority), Der::from_slice(serial))
            .into_owned(),
    )
}
