//! [`HostOwners`] says for each host to which site it belongs. A host belongs to only one site. If
//! the policy of a second site names the host, that site gets a [`HostConflict`]. The same rule
//! holds in the server and in commands that work without the server.

use crate::policy::Site;
use crate::policy::model::HostPattern;
use crate::yaml::{Diagnostic, SourceSpan};
use std::collections::HashMap;
use std::sync::Arc;

/// The beginning of a file.
const FIRST_LINE: SourceSpan = SourceSpan {
    start: 0,
    end: 0,
    line: 1,
    column: 1,
};

/// The site that has each host; `None` stands for every other host.
#[derive(Default)]
pub struct HostOwners(HashMap<Option<HostPattern>, Arc<Site>>);

/// A host that a site claims and that another site has.
pub struct HostConflict {
    /// The host; `None` for every other host.
    pub host: Option<HostPattern>,
    /// The site that has it.
    pub owner: Arc<Site>,
}

impl HostOwners {
    /// Records a site as the owner of each of its hosts, also of one that had another owner. A site
    /// without hosts owns every other host.
    pub fn insert_site(&mut self, site: &Arc<Site>) {
        for host in claimed_hosts(site) {
            self.0.insert(host, site.clone());
        }
    }

    /// Whether each host of this site has an owner here, whichever site that is.
    pub fn contains_all_hosts(&self, site: &Site) -> bool {
        claimed_hosts(site)
            .iter()
            .all(|host| self.0.contains_key(host))
    }

    /// The first host of the site that has an owner here. The site itself must not have been added:
    /// it would be its own conflict.
    pub fn find_conflict(&self, site: &Site) -> Option<HostConflict> {
        claimed_hosts(site).into_iter().find_map(|host| {
            Some(HostConflict {
                owner: self.0.get(&host)?.clone(),
                host,
            })
        })
    }
}

impl HostConflict {
    /// The finding for the site that is rejected: at the host in its file, or at the first line if
    /// the conflict is about every other host. Names the place in the other file, which may be the
    /// one with the mistake.
    pub fn diagnostic(&self, site: &Site) -> Diagnostic {
        let host = self
            .host
            .as_ref()
            .map_or("no host".into(), |host| format!("the host {host}"));
        let owner = &self.owner;
        let place = self.place_in(owner);
        Diagnostic::error(
            "host-taken",
            self.place_in(site),
            format!(
                "{} and {} both name {host} ({}:{}:{})",
                owner.name, site.name, owner.policy.source.name, place.line, place.column
            ),
        )
        .help(
            "a host belongs to one site, and only one policy may leave out \"hosts\": change one of the two files",
        )
    }

    /// Where the file of a site names the host.
    fn place_in(&self, site: &Site) -> SourceSpan {
        site.policy
            .hosts
            .iter()
            .find(|claimed| Some(&claimed.value) == self.host.as_ref())
            .map_or(FIRST_LINE, |claimed| claimed.span)
    }
}

/// The hosts that a site claims: those of its policy, or `None` (every other host) if it names
/// none.
fn claimed_hosts(site: &Site) -> Vec<Option<HostPattern>> {
    match site.policy.hosts.as_slice() {
        [] => vec![None],
        hosts => hosts.iter().map(|host| Some(host.value.clone())).collect(),
    }
}
