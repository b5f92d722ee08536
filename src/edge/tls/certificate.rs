//! [`Certificate`]: a certificate with its key, read from files and checked. One that no client would accept is refused,
//! with a [`CertificateError`].

use crate::settings::CertificateFiles;
use crate::time::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Signatures that no client accepts any more: with MD5 and SHA-1.
const BROKEN: [&str; 3] = ["1.2.840.113549.1.1.4", "1.2.840.113549.1.1.5", "1.2.840.10045.4.1"];

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file for the certificate contains none.
    #[error("{} contains no certificate in PEM", .0.display())]
    NoCertificate(PathBuf),
    /// The file for the key contains none.
    #[error("{} contains no private key in PEM", .0.display())]
    NoKey(PathBuf),
    /// The certificate is no X.509.
    #[error("the certificate in {} cannot be read", .0.display())]
    Unreadable(PathBuf),
    /// The key is not one of this certificate.
    #[error("the key in {} does not belong to the certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
    /// The key is of a kind or size that is not accepted: RSA below 2048 bits, for example.
    #[error("the key in {} cannot be used: {reason}", path.display())]
    Key {
        /// The file with the key.
        path: PathBuf,
        /// What rustls says.
        reason: rustls::Error,
    },
    /// The certificate is signed with MD5 or SHA-1.
    #[error("the certificate in {} is signed with MD5 or SHA-1, which no client accepts", .0.display())]
    BrokenSignature(PathBuf),
    /// A renewed certificate has expired already.
    #[error("the certificate in {} expired on {until}", path.display())]
    Expired {
        /// The file with the certificate.
        path: PathBuf,
        /// Its last day.
        until: String,
    },
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Certificate {
    /// What rustls serves.
    pub key: Arc<CertifiedKey>,
    /// Its host names in lower case, `*.` in front of those with a wildcard.
    pub names: Vec<String>,
    /// The beginning of its validity.
    pub not_before: Timestamp,
    /// The end of its validity.
    pub not_after: Timestamp,
    /// Whether the file has the certificate alone, without the chain to a known authority.
    pub is_alone: bool,
}

/// The two files, as they are now.
pub struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Contents {
    /// Reads the files.
    pub fn read(files: &CertificateFiles) -> Result<Contents, CertificateError> {
        let read = |path: &Path| {
            crate::files::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
        };
        Ok(Contents { certificate: read(&files.certificate)?, key: read(&files.key)? })
    }

    /// A hash of both files, which shows whether they changed.
    pub fn digest(&self) -> [u8; 32] {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        hash.update((self.certificate.len() as u64).to_be_bytes());
        hash.update(&self.certificate);
        hash.update(&self.key);
        hash.finalize().into()
    }
}

impl Certificate {
    /// Checks what the files contain.
    pub fn new(files: &CertificateFiles, contents: &Contents) -> Result<Certificate, CertificateError> {
        let path = &files.certificate;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&contents.certificate)
            .collect::<Result<_, _>>()
            .map_err(|_| CertificateError::NoCertificate(path.clone()))?;
        let first = chain.first().ok_or_else(|| CertificateError::NoCertificate(path.clone()))?.clone();
        let is_alone = chain.len() == 1;
        let key =
            PrivateKeyDer::from_pem_slice(&contents.key).map_err(|_| CertificateError::NoKey(files.key.clone()))?;
        let (_, parsed) = X509Certificate::from_der(&first).map_err(|_| CertificateError::Unreadable(path.clone()))?;
        if BROKEN.contains(&parsed.signature_algorithm.algorithm.to_id_string().as_str()) {
            return Err(CertificateError::BrokenSignature(path.clone()));
        }
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|reason| match reason {
            rustls::Error::InconsistentKeys(_) => {
                CertificateError::Mismatch { certificate: path.clone(), key: files.key.clone() }
            }
            rustls::Error::InvalidCertificate(_) => CertificateError::Unreadable(path.clone()),
            reason => CertificateError::Key { path: files.key.clone(), reason },
        })?;
        Ok(Certificate {
            key: Arc::new(key),
            names: names(&parsed),
            not_before: Timestamp(parsed.validity().not_before.timestamp()),
            not_after: Timestamp(parsed.validity().not_after.timestamp()),
            is_alone: is_alone && parsed.issuer() != parsed.subject(),
        })
    }
}

/// The host names of a certificate. Clients have not looked at its common name for years.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names = extension.iter().flat_map(|extension| &extension.value.general_names);
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}
