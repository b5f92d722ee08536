//! [`Certificates`]: the certificates of all listeners, chosen by the name that a client asks for.
//! Some are from files, others from crawlgate's own orders
//! ([`OrderedCertificates`]).
//!
//! After a change of a certificate's files, crawlgate uses the new certificate. If it cannot be
//! used, the former one stays in use. Open connections are not affected.

use super::certificate::{Certificate, CertificateError, Contents};
use super::{ACME_ALPN, OrderedCertificates, TlsError, TlsListener};
use crate::hash::Hash;
use crate::locks::lock;
use crate::settings::{CertificateFiles, ListenSettings, TlsSettings};
use crate::telemetry::{
    CertificateFault, CertificateProblem, CertificateStatus, Metrics, RefusedRenewal,
};
use crate::time::Timestamp;
use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Seconds.
const DAY: i64 = 86_400;
/// Seconds before its end from which a certificate is said to expire soon.
const SOON: i64 = 14 * DAY;

/// The certificates of all listeners.
#[derive(Default)]
pub struct Certificates {
    sets: Vec<Arc<CertificateSet>>,
    ordered: Option<Arc<dyn OrderedCertificates>>,
}

/// The certificates of one listener.
#[derive(Debug)]
pub struct CertificateSet {
    kept: Mutex<Vec<Kept>>,
    by_name: ArcSwap<ByName>,
    /// Those of orders, where the listener uses them.
    pub(super) ordered: Option<Arc<dyn OrderedCertificates>>,
}

/// A certificate in use, and its files.
#[derive(Debug)]
struct Kept {
    files: CertificateFiles,
    certificate: Certificate,
    /// The digest of the files when they were last read; `None` if they could not be read.
    looked_at: Option<Hash>,
    renewed: Option<Timestamp>,
    refused: Option<RefusedRenewal>,
}

/// The certificates by the names in them.
#[derive(Debug, Default)]
struct ByName {
    exact: HashMap<String, Arc<CertifiedKey>>,
    /// Wildcard certificates, by the part of the name after `*.`.
    wildcards: HashMap<String, Arc<CertifiedKey>>,
    /// For clients that name no host, or a host that no certificate has.
    first: Option<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Reads the certificates of these listeners. Returns them, and for each listener, in order,
    /// its TLS or `None` where it has none. `ordered` says which listener also uses certificates of
    /// orders.
    ///
    /// # Errors
    /// A certificate cannot be used.
    pub fn open(
        listeners: &[ListenSettings],
        ordered: impl Fn(&TlsSettings) -> Option<Arc<dyn OrderedCertificates>>,
    ) -> Result<(Certificates, Vec<Option<TlsListener>>), TlsError> {
        let mut certificates = Certificates::default();
        let mut all = Vec::new();
        for listener in listeners {
            let Some(tls) = &listener.tls else {
                all.push(None);
                continue;
            };
            let set = Arc::new(CertificateSet::open(&tls.certificates, ordered(tls))?);
            if set.ordered.is_some() {
                certificates.ordered = set.ordered.clone();
            }
            certificates.sets.push(set.clone());
            all.push(Some(TlsListener::new(tls, listener.speaks_http2, set)?));
        }
        Ok((certificates, all))
    }

    /// Reads the files again, uses those that changed, and logs each change. Also sets the metrics
    /// of when all certificates expire. Returns how many certificates have files that were refused,
    /// now or before, so that the former one is still in use.
    pub fn renew(&self, now: Timestamp, metrics: &Metrics) -> usize {
        let mut not_after = Vec::new();
        let mut refused = 0;
        for set in &self.sets {
            let mut all = lock(&set.kept);
            let mut has_changed = false;
            for kept in &mut *all {
                has_changed |= kept.renew(now);
                refused += usize::from(kept.refused.is_some());
                not_after.push((kept.name().to_owned(), kept.certificate.not_after.0));
            }
            if has_changed {
                set.by_name.store(Arc::new(ByName::new(&all)));
            }
        }
        not_after.extend(self.ordered.iter().flat_map(|ordered| ordered.ends()));
        metrics.set_certificates(&not_after);
        refused
    }

    /// The reasons for which clients may refuse the certificates.
    pub fn problems(&self, now: Timestamp) -> Vec<CertificateProblem> {
        self.each(|kept| kept.problems(now)).concat()
    }

    /// Calls `read` with each certificate from files, listener by listener, and returns the
    /// results.
    fn each<T>(&self, read: impl Fn(&Kept) -> T) -> Vec<T> {
        let mut all = Vec::new();
        for set in &self.sets {
            all.extend(lock(&set.kept).iter().map(&read));
        }
        all
    }

    /// Whether a listener has a certificate from files for a host of the settings, which may be a
    /// wildcard itself.
    pub fn has_file_for(&self, host: &str) -> bool {
        self.sets.iter().any(|set| set.by_name.load().has(host))
    }

    /// Whether there is a certificate for this host, from files or of an order.
    pub fn has(&self, host: &str) -> bool {
        self.has_file_for(host)
            || self
                .ordered
                .as_ref()
                .is_some_and(|ordered| ordered.has(host))
    }

    /// One problem for each of these hosts of the settings that no certificate is for; none if no
    /// listener has TLS. With orders of its own, crawlgate gets the certificates of whole names by
    /// itself, so that only wildcards count.
    pub fn uncovered<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a String>,
    ) -> Vec<CertificateProblem> {
        if self.is_empty() {
            return Vec::new();
        }
        let uncovered = hosts.into_iter().filter(|host| {
            let is_ordered = self.ordered.is_some() && !host.starts_with("*.");
            !is_ordered && !self.has_file_for(host)
        });
        uncovered
            .map(|host| {
                CertificateFault::Uncovered.because(format!(
                    "no certificate is for {host}, which `origins` names: clients refuse https://{host}. Add a certificate \
                     with this name to `certificates`"
                ))
            })
            .collect()
    }

    /// The status of each certificate from files, for an operator.
    pub fn status(&self, now: Timestamp) -> Vec<CertificateStatus> {
        self.each(|kept| kept.status(now))
    }

    /// Whether no listener has TLS.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }
}

impl CertificateSet {
    /// Reads the certificates of one listener. Fails at the first that cannot be used.
    fn open(
        files: &[CertificateFiles],
        ordered: Option<Arc<dyn OrderedCertificates>>,
    ) -> Result<CertificateSet, CertificateError> {
        let kept: Vec<Kept> = files.iter().map(Kept::open).collect::<Result<_, _>>()?;
        let by_name = ArcSwap::from_pointee(ByName::new(&kept));
        Ok(CertificateSet {
            kept: Mutex::new(kept),
            by_name,
            ordered,
        })
    }

    /// The certificate for a client that asks for this [`certificate_name`], in this order: of
    /// files with the whole name, of orders, of files with a wildcard, the first of the files. Without
    /// any: a client that names no host gets any ordered one; a name is noted as missing, and gets
    /// none.
    fn of(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let by_name = self.by_name.load();
        let ordered = self.ordered.as_ref();
        let named = name.and_then(|name| {
            let exact = by_name.exact.get(name).cloned();
            exact
                .or_else(|| ordered?.certificate(name))
                .or_else(|| by_name.wildcard(name))
        });
        if let Some(key) = named.or_else(|| by_name.first.clone()) {
            return Some(key);
        }
        let Some(name) = name else {
            return ordered?.any();
        };
        ordered?.note_missing(name);
        None
    }
}

impl ResolvesServerCert for CertificateSet {
    /// The certificate for a handshake. A certificate authority that checks who controls the host
    /// (ALPN of ACME) gets the one for that check, if there is one.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_question = hello
            .alpn()
            .is_some_and(|mut offered| offered.any(|protocol| protocol == ACME_ALPN));
        let name = hello.server_name().map(certificate_name);
        match &self.ordered {
            Some(ordered) if is_question => ordered.handshake(name.as_deref()?),
            _ => self.of(name.as_deref()),
        }
    }
}

/// The name that a client asks for, as certificates have it: in lower case, and without a final
/// dot. RFC 6066 section 3 forbids the dot, and some clients send it.
fn certificate_name(asked: &str) -> String {
    asked
        .strip_suffix('.')
        .unwrap_or(asked)
        .to_ascii_lowercase()
}

impl Kept {
    /// Reads one certificate from its files and checks it.
    fn open(files: &CertificateFiles) -> Result<Kept, CertificateError> {
        let contents = Contents::read(files)?;
        let certificate = Certificate::new(files, &contents)?;
        let looked_at = Some(contents.digest());
        Ok(Kept {
            files: files.clone(),
            certificate,
            looked_at,
            renewed: None,
            refused: None,
        })
    }

    /// The first host name of the certificate, for the metrics; `none` if it has no name.
    fn name(&self) -> &str {
        self.certificate
            .names
            .first()
            .map_or("none", String::as_str)
    }

    /// Reads the files again, if they changed since they were last read. Returns whether another
    /// certificate is in use now. New files that cannot be used, or that have expired while the
    /// present certificate has not, are refused until the files change again. Logs what happened.
    fn renew(&mut self, now: Timestamp) -> bool {
        let contents = Contents::read(&self.files);
        let digest = contents.as_ref().ok().map(Contents::digest);
        if digest == self.looked_at {
            return false;
        }
        self.looked_at = digest;
        let renewed = contents.and_then(|contents| {
            let renewed = Certificate::new(&self.files, &contents)?;
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
                    tracing::warn!(names = ?lost, "a renewed certificate lacks these names of the former one");
                }
                let until = renewed.not_after.to_http_date();
                tracing::info!(names = ?renewed.names, "took a renewed certificate, valid until {until}");
                self.certificate = renewed;
                self.renewed = Some(now);
                self.refused = None;
                true
            }
            Err(error) => {
                let until = self.certificate.not_after.to_http_date();
                tracing::warn!("{error}; the former certificate stays in use, valid until {until}");
                self.refused = Some(RefusedRenewal {
                    at: now,
                    reason: error.to_string(),
                });
                false
            }
        }
    }

    /// The certificate for an operator, with its problems and the refusal of new files, if any.
    /// `days_left` is rounded down, and negative after the end.
    fn status(&self, now: Timestamp) -> CertificateStatus {
        CertificateStatus {
            names: self.certificate.names.clone(),
            // An operator may be in another directory.
            file: std::path::absolute(&self.files.certificate)
                .unwrap_or_else(|_| self.files.certificate.clone()),
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

    /// The reasons for which clients refuse this certificate now (`is_error`) or may refuse it: it
    /// has expired, is not valid yet, expires soon (within 14 days or the last quarter of its life,
    /// whichever is shorter), names no host, or comes without its chain.
    fn problems(&self, now: Timestamp) -> Vec<CertificateProblem> {
        let file = self.files.certificate.display();
        let certificate = &self.certificate;
        let from = certificate.not_before;
        let until = certificate.not_after;
        // A certificate that lives for a few days is renewed within them.
        let soon = SOON.min(until.0.saturating_sub(from.0) / 4);
        let is_soon = now <= until && now.0 > until.0.saturating_sub(soon);
        let begin = from.to_http_date();
        let end = until.to_http_date();
        let mut problems = Vec::new();
        if now > until {
            problems.push(CertificateFault::Expired.because(format!(
                "the certificate in {file} expired on {end}: renew it"
            )));
        }
        if now < from {
            problems.push(CertificateFault::NotYetValid.because(format!(
                "the certificate in {file} is not valid before {begin}: is the clock right?"
            )));
        }
        if is_soon {
            problems.push(CertificateFault::ExpiresSoon.because(format!(
                "the certificate in {file} expires on {end}: renew it"
            )));
        }
        if certificate.names.is_empty() {
            problems.push(CertificateFault::NoNames.because(format!(
                "the certificate in {file} names no host: clients refuse it"
            )));
        }
        if certificate.is_alone {
            problems.push(CertificateFault::NoChain.because(format!(
                "{file} has the certificate alone: use the file with the whole chain (certbot: fullchain.pem), or clients \
                 that do not know its issuer refuse it"
            )));
        }
        if let Some(refused) = &self.refused {
            problems.push(CertificateFault::RefusedRenewal.because(format!(
                "{}; the former certificate stays in use, valid until {end}. Mend the files before the next start: \
                 crawlgate takes them by itself, and does not start without them",
                refused.reason
            )));
        }
        problems
    }
}

impl ByName {
    /// Sorts the names of these certificates. Of two certificates with one name, the first one
    /// counts; the first of all is for clients without a name that is known.
    fn new(kept: &[Kept]) -> ByName {
        let first = kept.first().map(|kept| kept.certificate.key.clone());
        let mut by_name = ByName {
            first,
            ..ByName::default()
        };
        for Kept { certificate, .. } in kept {
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

    /// Whether a certificate has this host of the settings, which may be a wildcard itself: a
    /// wildcard needs a wildcard, a whole name its own name or a wildcard.
    fn has(&self, host: &str) -> bool {
        match host.split_once('.') {
            Some(("*", rest)) => self.wildcards.contains_key(rest),
            parts => {
                self.exact.contains_key(host)
                    || parts.is_some_and(|(_, rest)| self.wildcards.contains_key(rest))
            }
        }
    }

    /// The certificate whose wildcard fits the name. A wildcard stands for one label (RFC 9525
    /// section 6.3), so the rest after the first dot must be equal.
    fn wildcard(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        name.split_once('.')
            .and_then(|(_, rest)| self.wildcards.get(rest))
            .cloned()
    }
}

#[cfg(test)]
mod tests;
