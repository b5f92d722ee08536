//! The status of certificates for operators: [`Acme::orders`] of each host that is to have one, [`Acme::certificates`] of
//! each one in use.

use super::certificate::IssuedCertificate;
use super::renewal;
use super::scheduler::{Acme, Host};
use crate::telemetry::{CertificateStatus, FailedOrder, OrderStatus};
use crate::time::Timestamp;

/// Seconds.
const DAY: i64 = 86_400;

impl Acme {
    /// The status of each host that is to have a certificate.
    pub fn orders(&self) -> Vec<OrderStatus> {
        let now = self.now();
        self.hosts().iter().map(|(name, host)| self.order(name, host, now)).collect()
    }

    /// The status of each certificate of the authority in use.
    pub fn certificates(&self, now: Timestamp) -> Vec<CertificateStatus> {
        self.shared.issued.all().iter().map(|certificate| status(certificate, now)).collect()
    }

    fn order(&self, name: &str, host: &Host, now: Timestamp) -> OrderStatus {
        let certificate = self.shared.issued.get(name);
        let renewal = certificate.as_ref().map(|found| renewal::due(found, host.progress.suggestion.as_ref()));
        let failed = host.progress.failure.as_ref().map(|failure| failure.failed.clone());
        let problem = failed.as_ref().and_then(|failed| match (&certificate, renewal) {
            (Some(certificate), Some(renewal)) => {
                // Two thirds of its life are over, and a tenth of the rest, too.
                let is_late = now > renewal.plus(certificate.lifetime() / 30) || now > certificate.not_after;
                let until = certificate.not_after.to_http_date();
                is_late.then(|| said(failed, &format!("the certificate of {name} is not renewed and ends on {until}")))
            }
            _ => Some(said(failed, &format!("{name} has no certificate: https fails for it"))),
        });
        OrderStatus {
            host: name.to_owned(),
            not_after: certificate.as_ref().map(|certificate| certificate.not_after),
            renewal,
            failed,
            problem,
        }
    }
}

fn said(failed: &FailedOrder, what: &str) -> String {
    let FailedOrder { reason, times, next, .. } = failed;
    let times = if *times == 1 { "once".to_owned() } else { format!("{times} times in a row") };
    format!(
        "{what}. Getting one failed {times}: {reason}. crawlgate tries again at {next}, or on SIGHUP. Mend what the reason says, \
         or name files in `certificates`"
    )
}

fn status(certificate: &IssuedCertificate, now: Timestamp) -> CertificateStatus {
    CertificateStatus {
        names: vec![certificate.host.clone()],
        file: std::path::absolute(&certificate.file).unwrap_or_else(|_| certificate.file.clone()),
        not_after: certificate.not_after,
        days_left: certificate.not_after.0.saturating_sub(now.0).div_euclid(DAY),
        renewed: certificate.obtained,
        refused: None,
        problems: Vec::new(),
    }
}
