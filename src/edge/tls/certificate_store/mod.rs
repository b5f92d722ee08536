//! [`CertificateStore`]: the TLS certificates of all listeners. They come from files, or crawlgate
//! orders them itself from a certificate authority ([`AcmeCertificates`]). Each handshake gets the
//! certificate for the host name that the client asks for.
//!
//! When the files of a certificate change, the new certificate replaces the former one. If the new
//! certificate cannot be used, the former one stays in use. Open connections are not affected.

use super::certificate::{Certificate, CertificateError, PemFiles};
use super::{ACME_ALPN, AcmeCertificates, ListenerTls, TlsError};
use crate::files::absolute_path;
use crate::hash::Hash;
use crate::locks::lock;
use crate::numbers::plural;
use crate::printable::join;
use crate::settings::{CertificateFiles, ListenSettings, TlsSettings};
use crate::telemetry::{
    CertificateFault, CertificateProblem, CertificateStatus, Metrics, RejectedCertificateFiles,
};
use crate::time::Timestamp;
use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Seconds.
const DAY: i64 = 86_400;
/// How long before its end a certificate expires soon.
const EXPIRY_WARNING_SECONDS: i64 = 14 * DAY;

/// Further hosts without a certificate are only counted.
const MAX_NAMED: usize = 3;

/// The certificates of all listeners.
#[derive(Default)]
pub struct CertificateStore {
    sets: Vec<Arc<ListenerCertificates>>,
    acme: Option<Arc<dyn AcmeCertificates>>,
}

/// The certificates of one listener.
#[derive(Debug)]
pub struct ListenerCertificates {
    from_files: Mutex<Vec<FileCertificate>>,
    by_name: ArcSwap<CertificatesByName>,
    /// The ordered ones, if the listener uses them.
    pub acme: Option<Arc<dyn AcmeCertificates>>,
}

/// A certificate in use, and its files.
#[derive(Debug)]
struct FileCertificate {
    files: CertificateFiles,
    certificate: Certificate,
    /// The digest of the files when they were last read; `None` if they could not be read.
    last_digest: Option<Hash>,
    /// When it last changed, since the start.
    renewed: Option<Timestamp>,
    /// The new files that could not be used, if there are some.
    refused: Option<RejectedCertificateFiles>,
}

/// The certificates from files, by the names in them.
#[derive(Debug, Default)]
struct CertificatesByName {
    exact: HashMap<String, Arc<CertifiedKey>>,
    /// Wildcard certificates, by the part of the name after `*.`.
    wildcards: HashMap<String, Arc<CertifiedKey>>,
    /// For clients that name no host, or one that no certificate has.
    first: Option<Arc<CertifiedKey>>,
}

impl CertificateStore {
    /// Reads the certificates of these listeners. Also returns the TLS of each listener, or `None`
    /// for clear text. `acme` returns the ordered certificates, for a listener that uses them.
    ///
    /// # Errors
    /// A certificate cannot be used.
    pub fn open(
        listeners: &[ListenSettings],
        acme: impl Fn(&TlsSettings) -> Option<Arc<dyn AcmeCertificates>>,
    ) -> Result<(CertificateStore, Vec<Option<ListenerTls>>), TlsError> {
        let mut certificates = CertificateStore::default();
        let mut all = Vec::new();
        for listener in listeners {
            let Some(tls) = &listener.tls else {
                all.push(None);
                continue;
            };
            let set = Arc::new(ListenerCertificates::open(&tls.certificates, acme(tls))?);
            if set.acme.is_some() {
                certificates.acme = set.acme.clone();
            }
            certificates.sets.push(set.clone());
            all.push(Some(ListenerTls::new(tls, listener.speaks_http2, set)?));
        }
        Ok((certificates, all))
    }

    /// Reads the files again, uses those that changed, and logs each change. Also sets the metrics
    /// of when all certificates expire. Returns how many certificates have new files that cannot be
    /// used.
    pub fn reload_changed_files(&self, now: Timestamp, metrics: &Metrics) -> usize {
        let mut not_after = Vec::new();
        let mut refused = 0;
        for set in &self.sets {
            let mut all = lock(&set.from_files);
            let mut has_changed = false;
            for file in &mut *all {
                has_changed |= file.reload_changed_files(now);
                refused += usize::from(file.refused.is_some());
                not_after.push((file.first_name().to_owned(), file.certificate.not_after.0));
            }
            if has_changed {
                set.by_name.store(Arc::new(CertificatesByName::new(&all)));
            }
        }
        not_after.extend(self.acme.iter().flat_map(|acme| acme.expiries()));
        metrics.set_certificates(&not_after);
        refused
    }

    /// The reasons for which clients may refuse the certificates.
    pub fn problems(&self, now: Timestamp) -> Vec<CertificateProblem> {
        self.map_certificates(|file| file.problems(now)).concat()
    }

    /// Calls `read` with each certificate from files.
    fn map_certificates<T>(&self, read: impl Fn(&FileCertificate) -> T) -> Vec<T> {
        let mut all = Vec::new();
        for set in &self.sets {
            all.extend(lock(&set.from_files).iter().map(&read));
        }
        all
    }

    /// Whether there is a certificate from files for this host, which may be a wildcard.
    pub fn has_file_certificate(&self, host: &str) -> bool {
        self.sets
            .iter()
            .any(|set| set.by_name.load().has_certificate(host))
    }

    /// Whether there is a certificate for this host, from files or ordered.
    pub fn has_certificate(&self, host: &str) -> bool {
        self.has_file_certificate(host)
            || self
                .acme
                .as_ref()
                .is_some_and(|acme| acme.has_certificate(host))
    }

    /// The problem of those of these hosts that have no certificate; none if no listener has TLS. If
    /// certificates are ordered, only wildcards can lack one.
    pub fn uncovered_hosts_problem<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a String>,
    ) -> Option<CertificateProblem> {
        if self.is_empty() {
            return None;
        }
        let mut uncovered = hosts.into_iter().filter(|host| {
            let is_from_acme = self.acme.is_some() && !host.starts_with("*.");
            !is_from_acme && !self.has_file_certificate(host)
        });
        let mut named = join(uncovered.by_ref().take(MAX_NAMED), ", ");
        let more = uncovered.count();
        if more > 0 {
            named.push_str(&format!(" and {}", plural(more, "other host")));
        }
        (!named.is_empty()).then(|| {
            CertificateFault::Uncovered.with_message(format!(
                "no certificate is for {named} of \"origins\", so clients reject https there. Add certificates with \
                 these names to \"certificates\""
            ))
        })
    }

    /// The status of each certificate from files.
    pub fn status(&self, now: Timestamp) -> Vec<CertificateStatus> {
        self.map_certificates(|file| file.status(now))
    }

    /// Whether no listener has TLS.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }
}

impl ListenerCertificates {
    /// Reads the certificates of one listener. Fails at the first that cannot be used.
    fn open(
        files: &[CertificateFiles],
        acme: Option<Arc<dyn AcmeCertificates>>,
    ) -> Result<ListenerCertificates, CertificateError> {
        let from_files: Vec<FileCertificate> = files
            .iter()
            .map(FileCertificate::open)
            .collect::<Result<_, _>>()?;
        let by_name = ArcSwap::from_pointee(CertificatesByName::new(&from_files));
        Ok(ListenerCertificates {
            from_files: Mutex::new(from_files),
            by_name,
            acme,
        })
    }

    /// The certificate for a client that asks for this [`certificate_name`], in this order: from
    /// files with the whole name, ordered, from files with a wildcard, the first one from files.
    /// Without any: a client that names no host gets the fallback of the ordered ones; one that
    /// names a host gets none.
    fn choose_certificate(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let by_name = self.by_name.load();
        let acme = self.acme.as_ref();
        let named = name.and_then(|name| {
            by_name
                .exact
                .get(name)
                .cloned()
                .or_else(|| acme?.certificate(name))
                .or_else(|| by_name.wildcard_certificate(name).cloned())
        });
        named
            .or_else(|| by_name.first.clone())
            .or_else(|| acme.filter(|_| name.is_none())?.fallback_certificate())
    }
}

impl ResolvesServerCert for ListenerCertificates {
    /// The certificate for a handshake. A challenge of a certificate authority (ALPN of ACME) gets
    /// the certificate that answers it, if there is one.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_acme_challenge = hello
            .alpn()
            .is_some_and(|mut offered| offered.any(|protocol| protocol == ACME_ALPN));
        let name = hello.server_name().map(certificate_name);
        match &self.acme {
            Some(acme) if is_acme_challenge => acme.challenge_certificate(name.as_deref()?),
            _ => self.choose_certificate(name.as_deref()),
        }
    }
}

/// The name that a client asks for, in lower case and without a final dot. RFC 6066 section 3
/// forbids the dot, and some clients send it.
fn certificate_name(server_name: &str) -> String {
    server_name
        .strip_suffix('.')
        .unwrap_or(server_name)
        .to_ascii_lowercase()
}

impl FileCertificate {
    /// Reads one certificate from its files and checks it.
    fn open(files: &CertificateFiles) -> Result<FileCertificate, CertificateError> {
        let contents = PemFiles::read(files)?;
        let certificate = Certificate::parse(files, &contents)?;
        let last_digest = Some(contents.digest());
        Ok(FileCertificate {
            files: files.clone(),
            certificate,
            last_digest,
            renewed: None,
            refused: None,
        })
    }

    /// The first name of the certificate, for the metrics; `none` if it has no name.
    fn first_name(&self) -> &str {
        self.certificate
            .names
            .first()
            .map_or("none", String::as_str)
    }

    /// Reads the files again, if they changed. Returns whether another certificate is in use now.
    /// New files that cannot be used, or that have expired while the present certificate has not,
    /// are refused until they change again. Logs what happened.
    fn reload_changed_files(&mut self, now: Timestamp) -> bool {
        let contents = PemFiles::read(&self.files);
        let digest = contents.as_ref().ok().map(PemFiles::digest);
        if digest == self.last_digest {
            return false;
        }
        self.last_digest = digest;
        let renewed = contents.and_then(|contents| {
            let renewed = Certificate::parse(&self.files, &contents)?;
            if now > renewed.not_after && now <= self.certificate.not_after {
                return Err(CertificateError::Expired {
                    file: self.files.certificate.display().to_string(),
                    end: renewed.not_after.to_http_date(),
                });
            }
            Ok(renewed)
        });
        match renewed {
            Ok(renewed) => {
                let lost = self
                    .certificate
                    .names
                    .iter()
                    .filter(|name| !renewed.names.contains(name));
                let lost: Vec<&String> = lost.collect();
                if !lost.is_empty() {
                    tracing::warn!(names = ?lost, "a renewed certificate lacks these names of the old one");
                }
                let until = renewed.not_after.to_http_date();
                tracing::info!(names = ?renewed.names, "the renewed certificate is in use, valid until {until}");
                self.certificate = renewed;
                self.renewed = Some(now);
                self.refused = None;
                true
            }
            Err(error) => {
                let until = self.certificate.not_after.to_http_date();
                tracing::warn!("{error}; the old certificate stays in use, valid until {until}");
                self.refused = Some(RejectedCertificateFiles {
                    at: now,
                    reason: error.to_string(),
                });
                false
            }
        }
    }

    /// The status. `days_left` is rounded down, and negative after the end.
    fn status(&self, now: Timestamp) -> CertificateStatus {
        CertificateStatus {
            names: self.certificate.names.clone(),
            // Whoever reads it may be in another directory.
            file: absolute_path(&self.files.certificate).display().to_string(),
            not_after: self.certificate.not_after,
            days_left: self
                .certificate
                .not_after
                .0
                .saturating_sub(now.0)
                .div_euclid(DAY),
            renewed: self.renewed,
            refused: self.refused.clone(),
            problems: self.problems(now),
        }
    }

    /// The reasons for which clients refuse this certificate, or may refuse it. It expires soon
    /// within 14 days of its end, or within the last quarter of its life if that is shorter.
    fn problems(&self, now: Timestamp) -> Vec<CertificateProblem> {
        use CertificateFault::*;

        let file = self.files.certificate.display();
        let certificate = &self.certificate;
        let from = certificate.not_before;
        let until = certificate.not_after;
        let soon = EXPIRY_WARNING_SECONDS.min(until.0.saturating_sub(from.0) / 4);
        let is_soon = now <= until && now.0 > until.0.saturating_sub(soon);
        let begin = from.to_http_date();
        let end = until.to_http_date();
        let mut problems = Vec::new();
        if now > until {
            problems.push(Expired.with_message(format!(
                "the certificate in {file} expired on {end}, so clients reject it. Renew it"
            )));
        }
        if now < from {
            problems.push(NotYetValid.with_message(format!(
                "the certificate in {file} is not valid before {begin}. Check the clock of this machine"
            )));
        }
        if is_soon {
            problems.push(ExpiresSoon.with_message(format!(
                "the certificate in {file} expires on {end}. Renew it"
            )));
        }
        if certificate.names.is_empty() {
            problems.push(NoNames.with_message(format!(
                "the certificate in {file} names no host, so clients reject it. Use one that names your hosts"
            )));
        }
        if certificate.lacks_chain {
            problems.push(NoChain.with_message(format!(
                "{file} lacks the certificate of the issuer, so some clients reject it. Use the file with the whole \
                 chain (certbot: fullchain.pem)"
            )));
        }
        if let Some(refused) = &self.refused {
            problems.push(RejectedCertificateFiles.with_message(format!(
                "{}; the old certificate stays in use, valid until {end}. Fix the files before the next start: \
                 crawlgate uses them as soon as they are right, and does not start without them",
                refused.reason
            )));
        }
        problems
    }
}

impl CertificatesByName {
    /// Of two certificates with the same name, the first one counts.
    fn new(from_files: &[FileCertificate]) -> CertificatesByName {
        let first = from_files.first().map(|file| file.certificate.key.clone());
        let mut by_name = CertificatesByName {
            first,
            ..CertificatesByName::default()
        };
        for FileCertificate { certificate, .. } in from_files {
            for name in &certificate.names {
                let (names, name) = match name.strip_prefix("*.") {
                    Some(rest) => (&mut by_name.wildcards, rest),
                    None => (&mut by_name.exact, name.as_str()),
                };
                names
                    .entry(name.to_owned())
                    .or_insert_with(|| certificate.key.clone());
            }
        }
        by_name
    }

    /// Whether there is a certificate for this host. A host that is a wildcard needs a wildcard.
    fn has_certificate(&self, host: &str) -> bool {
        self.exact.contains_key(host) || self.wildcard_certificate(host).is_some()
    }

    /// The certificate whose wildcard matches the name. A wildcard stands for one label (RFC 9525
    /// section 6.3).
    fn wildcard_certificate(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let (_, rest) = name.split_once('.')?;
        self.wildcards.get(rest)
    }
}

#[cfg(test)]
mod tests;
