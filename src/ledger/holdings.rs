//! The definition: from what was served to what may be held. Reads no clock and no lock.

use super::visits::{ANYONE, Host, Visit};
use crate::crawlers::{Claim, Registry};
use crate::policy::{Held, SiteEntry, Version};
use crate::time::Timestamp;
use crate::verdict::{Holdings, bits};
use std::time::Duration;

/// Bots that no list knows.
const OTHER: &str = "other";

/// Whose holdings are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// The name of its cache: crawlers that share one share what they were served.
    pub name: &'a str,
    /// How long it is documented to keep a copy.
    pub kept: Duration,
}

impl<'a> Claimant<'a> {
    /// A claim as the ledger knows it.
    pub fn of(claim: Claim, registry: &'a Registry, entry: &'a SiteEntry) -> Claimant<'a> {
        let (name, kept) = match claim {
            Claim::Known(index) => registry.robots_cache(index),
            Claim::Token(index) => {
                let token = entry.site.tokens.tokens().get(usize::from(index));
                (token.map_or(OTHER, String::as_str), Duration::ZERO)
            }
            Claim::Other => (OTHER, Duration::ZERO),
            Claim::Nobody => (ANYONE, Duration::ZERO),
        };
        Claimant { name, kept }
    }

    /// How long it may go by a copy.
    pub fn window(&self, entry: &SiteEntry) -> Duration {
        entry.site.grace.max(self.kept)
    }
}

/// The versions that anybody may hold where nobody knows who was served what: those that were in force within this
/// time.
pub fn in_force_within(entry: &SiteEntry, reach: Duration, now: Timestamp) -> impl Iterator<Item = Version> {
    let reached = move |held: &&Held| now.since(held.superseded_at) <= reach;
    entry.held.iter().filter(reached).map(|held| held.former.version)
}

/// What a crawler may hold. `steady` says whether the clock goes as it went.
pub fn holdings<'a>(
    entry: &'a SiteEntry,
    claimant: Claimant<'_>,
    host: Option<&Host>,
    now: Timestamp,
    steady: bool,
) -> Holdings<'a> {
    let window = claimant.window(entry);
    // What a cache before us handed out at the end of a version's time may be held from then on.
    let reach = window + entry.site.behind_cache.unwrap_or_default();
    let whole = |host: &&Host| {
        steady && !host.is_forsaken(entry.site.grace, now) && !goes_by_unseen(entry, claimant, host, now)
    };
    let unbroken = host.filter(whole);
    let since = unbroken.map(Host::since);
    // A copy from the second before the watch began may be held for as long as any.
    let watched = since.is_some_and(|since| now.since(since) > reach);
    // Behind a cache nobody knows who was served what, nor on a host that was not watched all the time.
    let unseen = !watched || entry.site.behind_cache.is_some();

    // Who was told apart otherwise within the window was served in another's name.
    let name = if now.since(entry.identity_epoch) > window { claimant.name } else { ANYONE };
    // What we served, a cache before us may have handed out for as long as it keeps it: a 503 as well.
    let within = |moment: Timestamp| now.since(moment) <= reach;
    let (mut held, mut forgotten, mut fetched) = (0, false, entry.site.behind_cache.is_some());
    if unseen {
        let reached = |moment: Timestamp| now.since(moment) <= reach;
        held = bits(&entry.held, |held| reached(held.superseded_at));
        forgotten = entry.forgotten.is_some_and(reached);
    }
    let current = entry.site.robots_txt.version;
    for served in host.into_iter().flat_map(|host| [host.crawler(name), Some(&host.everyone)]).flatten() {
        for visit in served.versions.iter().filter(|visit| within(visit.at)) {
            fetched = true;
            if visit.version != current {
                match entry.held.iter().take(64).position(|held| held.former.version == visit.version) {
                    Some(place) => held |= 1 << place,
                    None => forgotten = true,
                }
            }
        }
        forgotten |= served.lost.is_some_and(within);
    }
    // Bots that no list knows share a name, and behind a cache it is the cache that is served.
    let apart = claimant.name != OTHER && entry.site.behind_cache.is_none();
    let own = host.and_then(|host| host.crawler(claimant.name)).filter(|_| apart);
    let is_current = |visit: &Visit| visit.version == current && visit.at >= entry.identity_epoch;
    let in_force = own.is_some_and(|served| served.versions.iter().any(is_current));
    Holdings { versions: &entry.held, held, forgotten, fetched, in_force, watched }
}

/// Whether it may go by a copy from before the watch for longer: it asked for another one, and could not have it. Of
/// what was asked around a crash nobody knows who asked: it was this one, if it could have such a copy then.
fn goes_by_unseen(entry: &SiteEntry, claimant: Claimant<'_>, host: &Host, now: Timestamp) -> bool {
    let window = claimant.window(entry);
    // Who was told apart otherwise within the window asked in another's name.
    let name = if now.since(entry.identity_epoch) > window { claimant.name } else { ANYONE };
    let reach = window + entry.site.behind_cache.unwrap_or_default();
    let known = [claimant.name, name].into_iter().filter_map(|name| host.crawler(name));
    let anybody = host.everyone.unseen.filter(|heard| heard.since(host.since()) <= reach);
    known.filter_map(|served| served.unseen).chain(anybody).any(|heard| now.since(heard) <= reach)
}
