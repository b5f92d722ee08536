//! The messages of `crawlgate upgrade`. [`UpgradeRequest`] asks the running process to hand over to a new process, and
//! [`UpgradeReport`] is the answer. [`Upgrade`] is the function that hands over.

use super::Refusal;
use serde::{Deserialize, Serialize};

/// The request to hand over, with its conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeRequest {
    /// Whether a process that still answers its last requests is ended first.
    #[serde(default)]
    pub now: bool,
    /// Whether it is fine that no service manager follows the next process.
    #[serde(default)]
    pub unsupervised: bool,
}

/// The answer: another process serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeReport {
    /// The process before. It answers its last requests.
    pub before: u32,
    /// The process that serves.
    pub pid: u32,
    /// How long it took, from the start of the program on.
    pub milliseconds: u64,
}

/// Hands over to the next process, or says why the running process goes on.
pub type Upgrade = Box<dyn Fn(UpgradeRequest) -> Result<UpgradeReport, Refusal> + Send + Sync>;
