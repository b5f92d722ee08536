//! [`Certificate`]: a TLS certificate with its private key, parsed from PEM files ([`PemFiles`])
//! and checked. A certificate that no client would accept is a [`CertificateError`].

use crate::hash::Hash;
use crate::settings::CertificateFiles;
use crate::time::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::io;
use std::path::Path;
use std::sync::Arc;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The algorithms of signatures that no client accepts any more: MD5 and SHA-1.
const BROKEN_SIGNATURE_OIDS: [&str; 3] = [
    "1.2.840.113549.1.1.4",
    "1.2.840.113549.1.1.5",
    "1.2.840.10045.4.1",
];

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read {file}: {error}")]
    ReadFailed { file: String, error: io::Error },
    #[error("{0} contains no certificate in PEM format")]
    NoCertificate(String),
    #[error("{0} contains no private key in PEM format")]
    NoKey(String),
    #[error("the certificate in {0} cannot be read")]
    Malformed(String),
    #[error("the certificate in {0} is signed with MD5 or SHA-1, which no client accepts")]
    WeakSignature(String),
    #[error("the key in {key} does not belong to the certificate in {certificate}")]
    KeyMismatch { key: String, certificate: String },
    /// Of a kind or size that is not accepted: RSA below 2048 bits, for example.
    #[error("the key in {key} cannot be used: {error}")]
    UnusableKey { key: String, error: rustls::Error },
    #[error("the certificate in {file} expired on {end}")]
    Expired { file: String, end: String },
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Certificate {
    /// What rustls serves.
    pub key: Arc<CertifiedKey>,
    /// Its DNS names in lower case; wildcards begin with `*.`.
    pub names: Vec<String>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// Whether the file lacks the chain to a known authority.
    pub lacks_chain: bool,
}

/// The contents of the certificate's and the key's file.
pub struct PemFiles {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl PemFiles {
    /// Reads the files.
    pub fn read(files: &CertificateFiles) -> Result<PemFiles, CertificateError> {
        Ok(PemFiles {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
        })
    }

    /// A hash of both files.
    pub fn digest(&self) -> Hash {
        Hash::digest(&[
            &self.certificate.len().to_be_bytes(),
            &self.certificate,
            &self.key,
        ])
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    crate::files::read_bounded(path).map_err(|error| CertificateError::ReadFailed {
        file: path.display().to_string(),
        error,
    })
}

impl Certificate {
    /// Parses and checks the contents of these files. The dates are not checked.
    pub fn parse(
        files: &CertificateFiles,
        contents: &PemFiles,
    ) -> Result<Certificate, CertificateError> {
        use CertificateError::*;

        let path = files.certificate.display().to_string();
        let key_path = files.key.display().to_string();
        let chain = CertificateDer::pem_slice_iter(&contents.certificate)
            .collect::<Result<Vec<_>, _>>()
            .unwrap_or_default();
        let Some(first) = chain.first().cloned() else {
            return Err(NoCertificate(path));
        };
        let is_alone = chain.len() == 1;
        let Ok(key) = PrivateKeyDer::from_pem_slice(&contents.key) else {
            return Err(NoKey(key_path));
        };
        let Ok((_, parsed)) = X509Certificate::from_der(&first) else {
            return Err(Malformed(path));
        };
        if BROKEN_SIGNATURE_OIDS
            .contains(&parsed.signature_algorithm.algorithm.to_id_string().as_str())
        {
            return Err(WeakSignature(path));
        }
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider());
        let key = key.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => KeyMismatch {
                key: key_path,
                certificate: path,
            },
            rustls::Error::InvalidCertificate(_) => Malformed(path),
            error => UnusableKey {
                key: key_path,
                error,
            },
        })?;
        Ok(Certificate {
            key: Arc::new(key),
            names: dns_names(&parsed),
            not_before: Timestamp(parsed.validity().not_before.timestamp()),
            not_after: Timestamp(parsed.validity().not_after.timestamp()),
            lacks_chain: is_alone && parsed.issuer() != parsed.subject(),
        })
    }
}

/// The DNS names of a certificate, in lower case. Clients have ignored its common name for years.
pub fn dns_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    extension
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}
