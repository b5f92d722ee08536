//! A planned change of the catalog: the main type is [`SiteChange`]. This file must not know how changes are found.

use super::policy_directory::PolicyText;
use super::policy_file::FileReport;
use crate::policy::Site;
use std::sync::Arc;

/// A change of one site.
pub struct SiteChange {
    /// The site.
    pub site: String,
    /// What changes.
    pub kind: ChangeKind,
}

/// What changes of a site.
pub enum ChangeKind {
    /// The file is gone.
    Removed,
    /// The file is new or changed, or its hosts may be free by now.
    Read(ReadFile),
}

/// A file that was read.
pub struct ReadFile {
    /// Its text, if it could be read.
    pub text: PolicyText,
    /// Its findings.
    pub report: FileReport,
    /// What comes of it.
    pub result: FileResult,
}

/// What comes of a file. A `copy` is the last good policy of the state store, where nothing else is in force.
pub enum FileResult {
    /// It comes into force.
    Good(Arc<Site>),
    /// Another site has one of its hosts.
    HostConflict {
        /// The other site.
        owner: String,
        /// The last good policy.
        copy: Option<Arc<Site>>,
    },
    /// It has a mistake.
    Mistake {
        /// The last good policy.
        copy: Option<Arc<Site>>,
    },
}

/// A change of the sites that are in force without a policy.
pub enum DefaultSitesChange {
    /// There is no policy any more, or not yet.
    Begin(Vec<Arc<Site>>),
    /// The first policy is in force.
    End,
}
