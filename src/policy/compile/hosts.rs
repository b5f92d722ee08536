//! Which site a host belongs to: exact names, then the longest wildcard, then the site without hosts.

use crate::policy::model::HostPattern;

/// Hosts to site indexes.
#[derive(Clone, Debug, Default)]
pub struct HostIndex {}

impl HostIndex {
    /// Indexes the patterns of sites, given in the order of their indexes.
    pub fn new<'a>(sites: impl IntoIterator<Item = impl IntoIterator<Item = &'a HostPattern>>) -> HostIndex {
        let _ = sites.into_iter().count();
        todo!()
    }

    /// The site for a Host field value.
    pub fn find(&self, host: &[u8]) -> Option<usize> {
        let _ = host;
        todo!()
    }
}
