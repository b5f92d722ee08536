//! [`IssuedCertificates`]: the certificates that crawlgate has ordered by ACME and now uses, one
//! for each host. TLS handshakes read these certificates without a lock. The module also has the
//! answers to open ACME challenges, which the certificate authority requests.

use super::certificate::IssuedCertificate;
use super::progress::ChallengeKind;
use crate::edge::AcmeCertificates;
use crate::locks::lock;
use crate::settings::TlsSettings;
use ChallengeKind::{Http, TlsAlpn};
use arc_swap::ArcSwap;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// The certificates in use, and the answers to open challenges.
#[derive(Debug, Default)]
pub struct IssuedCertificates {
    by_host: ArcSwap<BTreeMap<String, Arc<IssuedCertificate>>>,
    challenges: Mutex<HashMap<ChallengeKey, ChallengeAnswer>>,
    /// Hosts that wait for a certificate.
    missing: Mutex<BTreeSet<String>>,
}

/// The kind of a challenge, and the token of its file or the host of its handshake.
type ChallengeKey = (ChallengeKind, String);

/// The answer that proves a host to an authority.
#[derive(Debug)]
struct ChallengeAnswer {
    /// The key authorization: the content of the file, or hashed in the certificate.
    proof: String,
    /// The certificate for a TLS-ALPN handshake.
    key: Option<Arc<CertifiedKey>>,
}

/// A guard: the challenge is answered until it is dropped.
pub struct ChallengeGuard {
    issued: Arc<IssuedCertificates>,
    challenge: ChallengeKey,
    /// The certificate for a handshake.
    pub key: Option<Arc<CertifiedKey>>,
}

impl IssuedCertificates {
    /// These certificates, if the listener's settings have `acme`.
    pub fn for_listener(
        self: &Arc<IssuedCertificates>,
        tls: &TlsSettings,
    ) -> Option<Arc<dyn AcmeCertificates>> {
        tls.acme.as_ref()?;
        Some(self.clone())
    }

    /// The content of the http challenge's file with this token (RFC 8555 section 8.3).
    pub fn challenge_file(&self, token: &str) -> Option<String> {
        let challenge = (Http, token.to_owned());
        Some(lock(&self.challenges).get(&challenge)?.proof.clone())
    }

    /// The certificate of a host.
    pub fn get(&self, host: &str) -> Option<Arc<IssuedCertificate>> {
        self.by_host.load().get(host).cloned()
    }

    /// All certificates.
    pub fn all(&self) -> Vec<Arc<IssuedCertificate>> {
        self.by_host.load().values().cloned().collect()
    }

    /// Takes a certificate into use.
    pub fn insert(&self, certificate: IssuedCertificate) {
        let certificate = Arc::new(certificate);
        self.by_host.rcu(|before| {
            let mut after = BTreeMap::clone(before);
            after.insert(certificate.host.clone(), certificate.clone());
            after
        });
        lock(&self.missing).remove(&certificate.host);
    }

    /// Replaces the hosts that should have a certificate. Returns those that begin to wait for one.
    pub fn set_expected_hosts(&self, hosts: &BTreeSet<String>) -> Vec<String> {
        let mut missing = lock(&self.missing);
        missing.retain(|host| hosts.contains(host));
        hosts
            .iter()
            .filter(|host| !self.has_certificate(host) && missing.insert(host.to_string()))
            .cloned()
            .collect()
    }

    /// Answers a challenge until the returned guard is dropped. `name` is the token of a file, or the
    /// host of a handshake.
    pub fn open_challenge(
        self: &Arc<IssuedCertificates>,
        kind: ChallengeKind,
        name: &str,
        proof: String,
    ) -> Result<ChallengeGuard, rcgen::Error> {
        let key = match kind {
            Http => None,
            TlsAlpn => Some(challenge_certificate(name, proof.as_bytes())?),
        };
        let answer = ChallengeAnswer {
            proof,
            key: key.clone(),
        };
        let challenge = (kind, name.to_owned());
        lock(&self.challenges).insert(challenge.clone(), answer);
        Ok(ChallengeGuard {
            issued: self.clone(),
            challenge,
            key,
        })
    }
}

impl AcmeCertificates for IssuedCertificates {
    fn certificate(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        Some(self.get(host)?.key.clone())
    }

    /// For clients that name no host: the certificate of the alphabetically first host.
    fn fallback_certificate(&self) -> Option<Arc<CertifiedKey>> {
        Some(self.by_host.load().values().next()?.key.clone())
    }

    fn has_certificate(&self, host: &str) -> bool {
        self.by_host.load().contains_key(host)
    }

    fn expiries(&self) -> Vec<(String, i64)> {
        self.by_host
            .load()
            .iter()
            .map(|(host, certificate)| (host.clone(), certificate.not_after.0))
            .collect()
    }

    fn challenge_certificate(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        lock(&self.challenges)
            .get(&(TlsAlpn, host.to_owned()))?
            .key
            .clone()
    }
}

impl Drop for ChallengeGuard {
    fn drop(&mut self) {
        lock(&self.issued.challenges).remove(&self.challenge);
    }
}

/// The certificate for a TLS-ALPN challenge, with the hash of the key authorization (RFC 8737
/// section 3).
fn challenge_certificate(host: &str, proof: &[u8]) -> Result<Arc<CertifiedKey>, rcgen::Error> {
    let digest: [u8; 32] = Sha256::digest(proof).into();
    let mut params = CertificateParams::new(vec![host.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    let key = any_ecdsa_type(&key).map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    // Not `from_der`, which rejects the critical extension.
    Ok(Arc::new(CertifiedKey::new(
        vec![certificate.der().clone()],
        key,
    )))
}
