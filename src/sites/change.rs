//! A planned change of the catalog: the main types are [`SiteChange`] and [`Claim`]. This file must not know how changes
//! are found.

use super::compiler::Candidate;
use super::host_owners::HostConflict;
use super::policy_directory::PolicyText;
use crate::policy::Site;
use std::sync::Arc;

/// A change of one site.
pub struct SiteChange {
    /// The site.
    pub site: String,
    /// Its file, if that is new or changed, or if its hosts may be free by now. `None` where the file is gone.
    pub file: Option<Claim>,
}

/// A file on its way into force.
pub struct Claim {
    /// Its text, if it could be read.
    pub text: PolicyText,
    /// What was compiled from it. It has a site if the file comes into force.
    pub candidate: Candidate,
    /// Another site has one of its hosts.
    pub conflict: Option<HostConflict>,
    /// The last good policy of the state store, where nothing else is in force.
    pub copy: Option<Arc<Site>>,
}

/// A change of the sites that are in force without a policy.
pub enum DefaultSitesChange {
    /// There is no policy any more, or not yet.
    Begin(Vec<Arc<Site>>),
    /// The first policy is in force.
    End,
}
