//! What an operator reads of certificates: [`CertificateStatus`] of each one in use, [`OrderStatus`] of each host that
//! crawlgate gets one for.

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
    /// When crawlgate last took a renewed certificate from the file; `None`: not since the start.
    #[serde(serialize_with = "rfc3339")]
    pub renewed: Option<Timestamp>,
    /// The renewal that was refused, while the files are such that crawlgate cannot use them.
    pub refused: Option<RefusedRenewal>,
    /// What clients refuse it for or will soon, and what an operator can do.
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

/// A host that crawlgate gets a certificate for by itself.
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
    /// What an operator has to look at.
    pub problem: Option<String>,
}

/// An attempt that brought no certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedOrder {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Why.
    pub reason: String,
    /// Attempts in a row that failed so.
    pub times: u32,
    /// When crawlgate tries again.
    #[serde(serialize_with = "rfc3339")]
    pub next: Timestamp,
}
