//! The identity of this instance among several. [`me`] makes its id, its run and a digest of the crawlers that it knows.
//! [`before`] is what the previous run left, and [`policies`] a digest of the robots.txt files in force.

use super::Instance;
use crate::evidence::Hash;
use crate::exchange::{Before, Identity, Me};
use crate::policy::{Snapshot, Version};
use crate::state::{PreviousRun, Remembered, StoredFacts};
use crate::time::Timestamp;
use std::hash::{BuildHasher, RandomState};

/// What the run before left, and the id of this instance.
pub(super) fn before(remembered: &Remembered) -> (Before, String) {
    let known = remembered.facts.exchange_memberships.last().map(|(_, membership)| membership.clone());
    let identity = known.as_ref().filter(|known| !known.store_epoch.is_empty());
    let identity = identity.map(|known| Identity { run_id: known.store_run.clone(), epoch: known.store_epoch.clone() });
    let previous = remembered.previous_run;
    let is_clean = matches!(previous, PreviousRun::Clean { .. });
    let unreported_since = match previous {
        // The process before may still serve what it had in force.
        _ if remembered.is_handed_over => previous.end(),
        PreviousRun::Unknown => known.as_ref().map(|_| Timestamp(i64::MIN)),
        previous => previous.unknown_since(),
    };
    let before = Before {
        run: known.as_ref().map(|known| known.run.clone()),
        identity,
        has_left: is_clean && known.as_ref().is_some_and(|known| known.has_left),
        has_observed: remembered.facts != StoredFacts::default(),
        unreported_since,
    };
    let id = known.map_or_else(|| format!("{:016x}", RandomState::new().hash_one(0)), |known| known.id);
    (before, id)
}

pub(super) fn me(id: String, host: String, instance: &Instance) -> Me {
    let crawlers = instance.judge.registry().crawlers().iter();
    let names: Vec<&[u8]> = crawlers
        .flat_map(|crawler| [&crawler.id].into_iter().chain(&crawler.markers))
        .map(|name| name.as_bytes())
        .collect();
    let run = format!("{id}.{:08x}", RandomState::new().hash_one(1) >> 32);
    Me { id, run, host, crawlers: Hash::of(&names).short() }
}

/// A digest of what the policies in force say in robots.txt.
pub(super) fn policies(snapshot: &Snapshot) -> String {
    let mut sites: Vec<(&str, Version)> =
        snapshot.sites().iter().map(|entry| (entry.site.name.as_str(), entry.site.robots_txt.version)).collect();
    sites.sort_unstable_by_key(|(name, _)| *name);
    let said: Vec<&[u8]> = sites.iter().flat_map(|(name, version)| [name.as_bytes(), &version.0]).collect();
    Hash::of(&said).short()
}
