//! [`ReloadReport`]: the outcome of a reload of the policies, with the findings about each file.

use serde::{Deserialize, Serialize};

/// The outcome of a reload, per site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Sites in the order of their names.
    pub sites: Vec<SiteReload>,
    /// What is wrong with the directory itself.
    pub problem: Option<String>,
    /// Why new policies are not in force yet, though nothing is wrong with them.
    pub waiting: Option<String>,
}

impl ReloadReport {
    /// Whether every file is in force as it stands.
    pub fn is_whole(&self) -> bool {
        self.problem.is_none()
            && self.waiting.is_none()
            && !self.sites.iter().any(|site| matches!(site.outcome, ReloadOutcome::Kept | ReloadOutcome::Refused))
    }
}

/// One site's outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReload {
    /// The site.
    pub site: String,
    /// The outcome.
    pub outcome: ReloadOutcome,
    /// `file:line:column: error[id]: message`, in the order of the file.
    pub findings: Vec<String>,
}

/// The outcome for a site's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReloadOutcome {
    /// The file is new, and its policy is in force.
    Added,
    /// The file is as it was, and its policy is in force.
    Unchanged,
    /// The new policy is in force.
    Replaced,
    /// The file is refused; the old policy stays in force.
    Kept,
    /// The file is refused, and there is no old policy: none is in force.
    Refused,
    /// The file is gone, and with it the site.
    Removed,
}
