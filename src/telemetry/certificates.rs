//! The status of certificates for operators. [`CertificateStatus`] is that of a certificate in use,
//! [`OrderStatus`] that of a host for which crawlgate gets certificates by ACME.

use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A certificate in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateStatus {
    /// Its host names, `*.` in front of those with a wildcard.
    pub names: Vec<String>,
    /// Its file.
    pub file: PathBuf,
    /// When it expires.
    #[serde(serialize_with = "rfc3339")]
    pub not_after: Timestamp,
    /// Whole days until then; negative once it has expired.
    pub days_left: i64,
    /// When crawlgate last took a renewed certificate into use; `None`: not since the start.
    #[serde(serialize_with = "rfc3339")]
    pub renewed: Option<Timestamp>,
    /// The refused renewal, while crawlgate cannot use the files as they are.
    pub refused: Option<RefusedRenewal>,
    /// Why clients refuse the certificate or soon will, and what an operator can do.
    pub problems: Vec<String>,
}

/// Files that changed and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRenewal {
    /// When crawlgate looked at them.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Why it cannot use them.
    pub reason: String,
}

/// A host for which crawlgate gets certificates by ACME.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderStatus {
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

/// An attempt that brought no certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedOrder {
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
