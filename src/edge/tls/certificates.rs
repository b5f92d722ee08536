//! [`Certificates`]: the certificates of all listeners, chosen by the name that a client asks for.
//! Some are from files, others from crawlgate's own orders ([`Issued`]).
//!
//! After a change of a certificate's files, crawlgate uses the new certificate. If it cannot be
//! used, the former one stays in use. Open connections are not affected.

use super::certificate::{Certificate, CertificateError, Contents};
use super::{TlsError, TlsListener};
use crate::acme::{ALPN, Issued};
use crate::evidence::Hash;
use crate::locks::lock;
use crate::settings::{CertificateFiles, ListenSettings};
use crate::telemetry::{CertificateStatus, Metrics, RefusedRenewal};
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
    issued: Option<Arc<Issued>>,
}

/// The certificates of one listener.
#[derive(Debug)]
pub(super) struct CertificateSet {
    kept: Mutex<Vec<Kept>>,
    by_name: ArcSwap<ByName>,
    issued: Option<Arc<Issued>>,
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

/// A reason for which clients may refuse a certificate, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateProblem {
    /// Whether clients refuse it now.
    pub is_error: bool,
    /// What is wrong, with the file.
    pub text: String,
}

impl Certificates {
    /// Reads the certificates of these listeners, and sets TLS up for each that has some, or issued
    /// ones.
    ///
    /// # Errors
    /// A certificate cannot be used.
    pub fn open(
        listeners: &[ListenSettings],
        issued: &Arc<Issued>,
    ) -> Result<(Certificates, Vec<Option<TlsListener>>), TlsError> {
        let mut certificates = Certificates::default();
        let mut open = |listener: &ListenSettings| -> Result<Option<TlsListener>, TlsError> {
            let Some(tls) = &listener.tls else {
                return Ok(None);
            };
            let issued = tls.acme.as_ref().map(|_| issued.clone());
            let set = Arc::new(CertificateSet::open(&tls.certificates, issued.clone())?);
            if issued.is_some() {
                certificates.issued = issued;
            }
            certificates.sets.push(set.clone());
            TlsListener::new(tls, listener.speaks_http2, set).map(Some)
        };
        let tls = listeners.iter().map(&mut open).collect::<Result<_, _>>()?;
        Ok((certificates, tls))
    }

    /// Reads the files again, uses those that changed, and logs each change. Returns how many
    /// certificates have refused files.
    pub fn renew(&self, now: Timestamp, metrics: &Metrics) -> usize {
        let (mut not_after, mut refused) = (Vec::new(), 0);
        for set in &self.sets {
            let mut kept = lock(&set.kept);
            let changed = kept
                .iter_mut()
                .map(|kept| kept.renew(now))
                .fold(false, |any, changed| any | changed);
            if changed {
                set.by_name.store(Arc::new(ByName::new(&kept)));
            }
            refused += kept.iter().filter(|kept| kept.refused.is_some()).count();
            not_after.extend(
                kept.iter()
                    .map(|kept| (kept.name().to_owned(), kept.certificate.not_after.0)),
            );
        }
        not_after.extend(self.issued.iter().flat_map(|issued| issued.ends()));
        metrics.set_certificates(&not_after);
        refused
    }

    /// The reasons for which clients may refuse the certificates.
    pub fn problems(&self, now: Timestamp) -> Vec<CertificateProblem> {
        self.each(|kept| kept.problems(now)).concat()
    }

    fn each<T>(&self, read: impl Fn(&Kept) -> T) -> Vec<T> {
        let of = |set: &Arc<CertificateSet>| lock(&set.kept).iter().map(&read).collect::<Vec<T>>();
        self.sets.iter().flat_map(of).collect()
    }

    /// Whether a certificate from files is for a host of the settings, which may be a wildcard
    /// itself.
    pub fn has_file_for(&self, host: &str) -> bool {
        self.sets.iter().any(|set| set.by_name.load().has(host))
    }

    /// Whether a client of a host finds a certificate for it.
    pub fn has(&self, host: &str) -> bool {
        self.has_file_for(host) || self.issued.as_ref().is_some_and(|issued| issued.has(host))
    }

    /// The hosts of the settings that no certificate is for, if a listener has TLS. With orders of
    /// its own, crawlgate gets the certificates of whole names by itself.
    pub fn uncovered<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a String>,
    ) -> Vec<CertificateProblem> {
        if self.is_empty() {
            return Vec::new();
        }
        let is_got = |host: &str| self.issued.is_some() && !host.starts_with("*.");
        let hosts = hosts
            .into_iter()
            .filter(|host| !is_got(host) && !self.has_file_for(host));
        let uncovered = hosts.map(|host| CertificateProblem {
            is_error: false,
            text: format!(
                "no certificate is for {host}, which `origins` names: clients refuse https://{host}. Add a certificate with \
                 this name to `certificates`"
            ),
        });
        uncovered.collect()
    }

    /// Each certificate in use, for an operator.
    pub fn status(&self, now: Timestamp) -> Vec<CertificateStatus> {
        self.each(|kept| kept.status(now))
    }

    /// Whether no listener has TLS.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }
}

impl CertificateSet {
    fn open(
        files: &[CertificateFiles],
        issued: Option<Arc<Issued>>,
    ) -> Result<CertificateSet, CertificateError> {
        let kept: Vec<Kept> = files.iter().map(Kept::open).collect::<Result<_, _>>()?;
        let by_name = ArcSwap::from_pointee(ByName::new(&kept));
        Ok(CertificateSet {
            kept: Mutex::new(kept),
            by_name,
            issued,
        })
    }

    /// The certificate for a client that asks for this [`certificate_name`]. One of files outranks
    /// an issued one, and a whole name a wildcard.
    fn of(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let by_name = self.by_name.load();
        let exact = name.and_then(|name| by_name.exact.get(name).cloned());
        let issued = || self.issued.as_ref()?.certificate(name?);
        let wildcard = || by_name.wildcard(name?);
        let found = exact
            .or_else(issued)
            .or_else(wildcard)
            .or_else(|| by_name.first.clone());
        found.or_else(|| match (name, self.issued.as_ref()?) {
            (Some(name), issued) => {
                issued.note_missing(name);
                None
            }
            (None, issued) => issued.any(),
        })
    }
}

impl ResolvesServerCert for CertificateSet {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_question = hello
            .alpn()
            .is_some_and(|mut offered| offered.any(|protocol| protocol == ALPN));
        let name = hello.server_name().map(certificate_name);
        match &self.issued {
            Some(issued) if is_question => issued.handshake(name.as_deref()?),
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

    fn name(&self) -> &str {
        self.certificate
            .names
            .first()
            .map_or("none", String::as_str)
    }

    /// Reads the files again. Returns whether another certificate is in use now.
    fn renew(&mut self, now: Timestamp) -> bool {
        let contents = Contents::read(&self.files);
        let digest = contents.as_ref().ok().map(Contents::digest);
        if digest == self.looked_at {
            return false;
        }
        self.looked_at = digest;
        let until = |certificate: &Certificate| certificate.not_after.to_http_date();
        let renewed = contents
            .and_then(|contents| Certificate::new(&self.files, &contents))
            .and_then(|renewed| {
                match now > renewed.not_after && now <= self.certificate.not_after {
                    true => Err(CertificateError(format!(
                        "the certificate in {} expired on {}",
                        self.files.certificate.display(),
                        until(&renewed)
                    ))),
                    false => Ok(renewed),
                }
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
                tracing::info!(names = ?renewed.names, "took a renewed certificate, valid until {}", until(&renewed));
                (self.certificate, self.renewed, self.refused) = (renewed, Some(now), None);
                true
            }
            Err(error) => {
                let kept = until(&self.certificate);
                tracing::warn!("{error}; the former certificate stays in use, valid until {kept}");
                self.refused = Some(RefusedRenewal {
                    at: now,
                    reason: error.to_string(),
                });
                false
            }
        }
    }

    fn status(&self, now: Timestamp) -> CertificateStatus {
        let mut problems: Vec<String> = self
            .problems(now)
            .into_iter()
            .map(|problem| problem.text)
            .collect();
        problems.extend(self.refused.as_ref().map(|refused| {
            format!(
                "{}; the former certificate stays in use, valid until {}. Mend the files before the next start: crawlgate \
                 takes them by itself, and does not start without them",
                refused.reason,
                self.certificate.not_after.to_http_date()
            )
        }));
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
            problems,
        }
    }

    fn problems(&self, now: Timestamp) -> Vec<CertificateProblem> {
        let (file, certificate) = (self.files.certificate.display(), &self.certificate);
        let (from, until) = (certificate.not_before, certificate.not_after);
        // A certificate that lives for a few days is renewed within them.
        let soon = SOON.min(until.0.saturating_sub(from.0) / 4);
        let is_soon = now <= until && now.0 > until.0.saturating_sub(soon);
        let (begin, end) = (from.to_http_date(), until.to_http_date());
        [
            (now > until, true, format!("the certificate in {file} expired on {end}: renew it")),
            (now < from, true, format!("the certificate in {file} is not valid before {begin}: is the clock right?")),
            (is_soon, false, format!("the certificate in {file} expires on {end}: renew it")),
            (
                certificate.names.is_empty(),
                false,
                format!("the certificate in {file} names no host: clients refuse it"),
            ),
            (
                certificate.is_alone,
                false,
                format!(
                    "{file} has the certificate alone: use the file with the whole chain (certbot: fullchain.pem), or \
                     clients that do not know its issuer refuse it"
                ),
            ),
        ]
        .into_iter()
        .filter(|(is_so, ..)| *is_so)
        .map(|(_, is_error, text)| CertificateProblem { is_error, text })
        .collect()
    }
}

impl ByName {
    /// Of two certificates with one name, the first one counts.
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

    /// Whether a certificate has this host of the settings, which may be a wildcard itself.
    fn has(&self, host: &str) -> bool {
        match host.split_once('.') {
            Some(("*", rest)) => self.wildcards.contains_key(rest),
            parts => {
                self.exact.contains_key(host)
                    || parts.is_some_and(|(_, rest)| self.wildcards.contains_key(rest))
            }
        }
    }

    /// The certificate of a wildcard, which stands for one label (RFC 9525 section 6.3).
    fn wildcard(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        name.split_once('.')
            .and_then(|(_, rest)| self.wildcards.get(rest))
            .cloned()
    }
}

#[cfg(test)]
mod tests;
