//! [`Issued`]: the certificates in use, by host, and the answers to the open challenges of the
//! authority. Attempts to get certificates write it; TLS handshakes and the authority's requests
//! read it. Finding a certificate takes no lock.

use super::certificate::IssuedCertificate;
use super::progress::ChallengeKind;
use crate::edge::OrderedCertificates;
use crate::locks::lock;
use crate::settings::TlsSettings;
use arc_swap::ArcSwap;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// The certificates in use, and the answers to the open challenges of the authority.
#[derive(Debug, Default)]
pub struct Issued {
    by_host: ArcSwap<BTreeMap<String, Arc<IssuedCertificate>>>,
    open: Mutex<HashMap<Challenge, ChallengeAnswer>>,
    /// Hosts that are to get a certificate and have none. `true` after the log said that a client
    /// asked for it.
    missing: Mutex<BTreeMap<String, bool>>,
}

/// A challenge: its kind, and the token of its file or the host of its handshake.
type Challenge = (ChallengeKind, String);

/// What proves a host to an authority.
#[derive(Debug)]
struct ChallengeAnswer {
    /// The content of the file, or what the certificate is made from.
    proof: String,
    /// The certificate for a handshake.
    key: Option<Arc<CertifiedKey>>,
}

/// The answers to the open challenges, for the next process: the authority may reach that one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedQuestions {
    /// Tokens, with the content of their files.
    files: Vec<(String, String)>,
    /// Hosts, with the proofs.
    handshakes: Vec<(String, String)>,
}

/// An open challenge. It is answered until this value is dropped.
pub struct Answering {
    issued: Arc<Issued>,
    question: Challenge,
}

impl Issued {
    /// These certificates for a listener whose settings have `acme`; `None` for another.
    pub fn for_listener(
        self: &Arc<Issued>,
        tls: &TlsSettings,
    ) -> Option<Arc<dyn OrderedCertificates>> {
        tls.acme.as_ref()?;
        Some(self.clone())
    }

    /// The content of the file that an authority asks for by its token (RFC 8555 section 8.3).
    pub fn file(&self, token: &str) -> Option<String> {
        self.questions()
            .get(&(ChallengeKind::Http, token.to_owned()))
            .map(|answer| answer.proof.clone())
    }

    /// The answers to all open challenges.
    pub fn pass(&self) -> PassedQuestions {
        let mut passed = PassedQuestions::default();
        for ((kind, name), answer) in &*self.questions() {
            let PassedQuestions { files, handshakes } = &mut passed;
            let of_kind = if *kind == ChallengeKind::Http {
                files
            } else {
                handshakes
            };
            of_kind.push((name.clone(), answer.proof.clone()));
        }
        passed
    }

    /// Answers the open challenges of the process before. An order that goes on answers its
    /// challenge anew and removes it at its end. The other ones stay: they are few, and good for
    /// one order each. One whose certificate cannot be made is left out.
    pub fn answer_passed(&self, passed: PassedQuestions) {
        let PassedQuestions { files, handshakes } = passed;
        for (kind, of_kind) in [
            (ChallengeKind::Http, files),
            (ChallengeKind::TlsAlpn, handshakes),
        ] {
            for (name, proof) in of_kind {
                if let Ok(answer) = ChallengeAnswer::new(kind, &name, proof) {
                    self.questions().insert((kind, name), answer);
                }
            }
        }
    }

    pub(super) fn get(&self, host: &str) -> Option<Arc<IssuedCertificate>> {
        self.by_host.load().get(host).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<IssuedCertificate>> {
        self.by_host.load().values().cloned().collect()
    }

    /// Takes a certificate into use.
    pub(super) fn insert(&self, certificate: IssuedCertificate) {
        let certificate = Arc::new(certificate);
        self.by_host.rcu(|before| {
            let mut after = BTreeMap::clone(before);
            after.insert(certificate.host.clone(), certificate.clone());
            after
        });
        lock(&self.missing).remove(&certificate.host);
    }

    /// Sets the hosts that are to get a certificate, in place of those of the last call. Returns
    /// those that have none and were not waiting for one before.
    pub(super) fn expect(&self, hosts: &BTreeSet<String>) -> Vec<String> {
        let mut missing = lock(&self.missing);
        missing.retain(|host, _| hosts.contains(host));
        let new: Vec<String> = hosts
            .iter()
            .filter(|host| !self.has(host) && !missing.contains_key(*host))
            .cloned()
            .collect();
        missing.extend(new.iter().map(|host| (host.clone(), false)));
        new
    }

    /// Answers a challenge with a proof until the returned [`Answering`] is dropped. The second
    /// value is the certificate for a handshake. `name` is the token of a file, or the host of a
    /// handshake.
    pub(super) fn answer(
        self: &Arc<Issued>,
        kind: ChallengeKind,
        name: &str,
        proof: String,
    ) -> Result<(Answering, Option<Arc<CertifiedKey>>), rcgen::Error> {
        let answer = ChallengeAnswer::new(kind, name, proof)?;
        let key = answer.key.clone();
        let question = (kind, name.to_owned());
        self.questions().insert(question.clone(), answer);
        Ok((
            Answering {
                issued: self.clone(),
                question,
            },
            key,
        ))
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<Challenge, ChallengeAnswer>> {
        lock(&self.open)
    }
}

impl OrderedCertificates for Issued {
    fn certificate(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        Some(self.get(host)?.key.clone())
    }

    /// The certificate for clients that name no host: that of the alphabetically first host.
    fn any(&self) -> Option<Arc<CertifiedKey>> {
        self.by_host
            .load()
            .values()
            .next()
            .map(|certificate| certificate.key.clone())
    }

    fn has(&self, host: &str) -> bool {
        self.by_host.load().contains_key(host)
    }

    fn ends(&self) -> Vec<(String, i64)> {
        self.by_host
            .load()
            .iter()
            .map(|(host, certificate)| (host.clone(), certificate.not_after.0))
            .collect()
    }

    fn handshake(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        self.questions()
            .get(&(ChallengeKind::TlsAlpn, host.to_owned()))?
            .key
            .clone()
    }

    /// Logs once for each host that a client asks for a certificate which crawlgate does not have
    /// yet.
    fn note_missing(&self, host: &str) {
        let mut missing = lock(&self.missing);
        if let Some(told @ false) = missing.get_mut(host) {
            *told = true;
            tracing::warn!(
                host,
                "a client asks for https, and the host has no certificate yet; the handshake fails. `crawlgate status` says \
                 how the order stands"
            );
        }
    }
}

impl ChallengeAnswer {
    fn new(
        kind: ChallengeKind,
        name: &str,
        proof: String,
    ) -> Result<ChallengeAnswer, rcgen::Error> {
        let key = match kind {
            ChallengeKind::Http => None,
            ChallengeKind::TlsAlpn => Some(challenge_key(name, proof.as_bytes())?),
        };
        Ok(ChallengeAnswer { proof, key })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.issued.questions().remove(&self.question);
    }
}

/// The certificate that proves a host in a handshake of an authority: it has the hash of the proof
/// (RFC 8737 section 3).
fn challenge_key(host: &str, proof: &[u8]) -> Result<Arc<CertifiedKey>, rcgen::Error> {
    let digest: [u8; 32] = Sha256::digest(proof).into();
    let mut params = CertificateParams::new(vec![host.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    let key = any_ecdsa_type(&key).map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    // Not `from_der`, which reads the certificate, and refuses the critical extension.
    Ok(Arc::new(CertifiedKey::new(
        vec![certificate.der().clone()],
        key,
    )))
}
