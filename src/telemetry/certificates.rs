//! The status of TLS certificates for operators: [`CertificateStatus`] for a certificate in use,
//! [`AcmeHostStatus`] for a host for which crawlgate gets certificates automatically (ACME).

use crate::time::{Timestamp, rfc3339};
use crate::yaml::Severity;
use serde::{Deserialize, Serialize};

/// A certificate in use.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateStatus {
    /// Its host names, `*.` in front of those with a wildcard.
    pub names: Vec<String>,
    /// Its file.
    pub file: String,
    /// When it expires.
    #[serde(serialize_with = "rfc3339")]
    pub not_after: Timestamp,
    /// Whole days until then; negative once it has expired.
    pub days_left: i64,
    /// When crawlgate last began to use a renewed certificate; `None`: not since the start.
    #[serde(serialize_with = "rfc3339")]
    pub renewed: Option<Timestamp>,
    /// The refused renewal, while crawlgate cannot use the files as they are.
    pub refused: Option<RejectedCertificateFiles>,
    /// What needs an operator.
    pub problems: Vec<CertificateProblem>,
}

/// Why clients refuse a certificate or soon will, and what an operator can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateProblem {
    /// What is wrong.
    pub id: CertificateFault,
    /// A sentence for people, with the file.
    pub message: String,
}

/// What can be wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateFault {
    /// crawlgate cannot serve with it.
    Unusable,
    /// It has expired.
    Expired,
    /// Its time has not begun.
    NotYetValid,
    /// It expires within two weeks; one with a short life is in the last quarter of it.
    ExpiresSoon,
    /// It is for no host.
    NoNames,
    /// Its file lacks the chain to a known authority.
    NoChain,
    /// No certificate is for a host of the settings.
    Uncovered,
    /// Its files changed and cannot be used.
    RejectedCertificateFiles,
}

impl CertificateFault {
    /// The problem, with its message.
    pub fn with_message(self, message: String) -> CertificateProblem {
        CertificateProblem { id: self, message }
    }

    /// An error if clients refuse the certificate now.
    pub fn severity(self) -> Severity {
        match self {
            CertificateFault::Unusable
            | CertificateFault::Expired
            | CertificateFault::NotYetValid => Severity::Error,
            _ => Severity::Warning,
        }
    }
}

/// Files that changed and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedCertificateFiles {
    /// When crawlgate read them.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Why it cannot use them.
    pub reason: String,
}

/// A host for which crawlgate gets certificates by ACME.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcmeHostStatus {
    /// Its name.
    pub host: String,
    /// When its certificate expires; `None` where it has none yet.
    #[serde(serialize_with = "rfc3339")]
    pub not_after: Option<Timestamp>,
    /// When it is to be renewed.
    #[serde(serialize_with = "rfc3339")]
    pub renewal: Option<Timestamp>,
    /// The last attempt, where it failed.
    pub failed: Option<FailedOrder>,
    /// The problem that needs an operator.
    pub problem: Option<String>,
}

/// The kinds of failures. Each has pauses of its own before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderFailureKind {
    /// The DNS of the host leads to another server, or to none: crawlgate ordered nothing.
    Elsewhere,
    /// The authority does not answer correctly.
    Away,
    /// The authority refuses.
    Refused,
    /// The authority limits requests.
    Limited,
    /// The cause is on this machine: the disk, the randomness, or a mistake in crawlgate.
    Own,
}

/// An attempt that brought no certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedOrder {
    /// The kind of its failure.
    pub kind: OrderFailureKind,
    /// When it ended.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Why it failed.
    pub reason: String,
    /// How many attempts in a row failed with this kind of failure.
    pub times: u32,
    /// When crawlgate tries again.
    #[serde(serialize_with = "rfc3339")]
    pub next: Timestamp,
}
