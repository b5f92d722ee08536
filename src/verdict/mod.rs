//! [`decide()`] judges one request: it makes a [`Decision`] of [`Facts`] and [`CachedVersions`].
//! [`explain`] makes the same decision and gives its reasons. Neither locks nor reads a clock, and
//! `decide` does not allocate.

mod challenge;
mod decide;
mod decision;
mod explanation;
mod identity;
mod labels;
mod load;
mod pass_reason;
mod render;
mod report;
mod suite;

pub(crate) use crate::crawlers::is_public;
pub use crate::policy::model::{Kind, KnownIdentity, Verdict};
pub use challenge::{acme_token, is_challenge};
pub use decide::{crawl_delay, decide, decide_for};
pub use decision::{Action, Decision, Readings};
pub use explanation::{
    ActionReport, CrawlerReport, EffectiveReport, Explanation, GroupReport, ResponseFacts,
    RuleReport,
};
pub(crate) use identity::Evidence;
pub use identity::{Doubt, Identity, IdentityOutcome, Proof, identity_by_policy};
pub use labels::{claim_label, claim_of, crawler_name, group_place, rule_place, source_place};
pub use load::{Surroundings, load, load_with};
pub use pass_reason::{LINE_FOR_ALL, PassReason};
pub use render::PERHAPS_CACHED;
pub use report::{action_report, explain, explain_for, report, report_unclaimed};
#[cfg(feature = "internals")]
pub use suite::{ask, host_of};

use crate::crawlers::{Claim, Registry};
use crate::policy::HostHistory;
use crate::policy::model::Mode;
use crate::policy::site::{CrawlerRules, Site, SiteEntry, Snapshot, SupersededVersion};
use crate::robots::{TargetScratch, path_of, reaches_robots_txt};
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;
use strum::IntoStaticStr;

/// The facts of a request. Borrowed bytes as they came.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The Host field or `:authority`, with its port if it has one.
    pub host: &'a [u8],
    /// Path and query as sent.
    pub target: &'a [u8],
    /// GET, HEAD, ...
    pub method: &'a [u8],
    /// The User-Agent field; empty when absent.
    pub user_agent: &'a [u8],
    /// The address of the client, behind trusted proxies.
    pub client: Option<IpAddr>,
    /// The finding about the claimed identity.
    pub identity: Identity,
    /// When it arrived.
    pub now: Timestamp,
}

impl Facts<'_> {
    /// Whether a certificate authority checks who controls the host: see [`is_challenge`].
    pub fn is_challenge(&self) -> bool {
        is_challenge(self.method, self.target)
    }
}

/// The site that a request is for, and the crawler that its user agent claims to be.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// Index of the site in the snapshot.
    pub site: usize,
    /// The site itself.
    pub entry: &'a SiteEntry,
    /// The earlier publications of the host.
    pub history: &'a HostHistory,
    /// The claimed crawler.
    pub claim: Claim,
}

impl<'a> Claimant<'a> {
    /// The claimant by the host and the user agent of a request, with the tokens of the host's
    /// site. A challenge of a certificate authority claims to be nobody, whatever its user agent
    /// is. `None` where no site has the host.
    pub fn of(
        snapshot: &'a Snapshot,
        registry: &Registry,
        facts: &Facts<'_>,
    ) -> Option<Claimant<'a>> {
        Claimant::identified(snapshot, facts, |_, site| {
            registry.identify_with(facts.user_agent, &site.tokens)
        })
    }

    /// [`of`](Claimant::of), where the caller identifies the user agent for the site: `identify`
    /// gets the site's index and the site. It is not called for a challenge, which is no crawler's
    /// request, whoever sends it.
    pub fn identified(
        snapshot: &'a Snapshot,
        facts: &Facts<'_>,
        identify: impl FnOnce(usize, &Site) -> Claim,
    ) -> Option<Claimant<'a>> {
        let (site, history) = snapshot.site_and_history(facts.host)?;
        let entry = snapshot.sites().get(site)?;
        let claim = if facts.is_challenge() {
            Claim::Nobody
        } else {
            identify(site, &entry.site)
        };
        Some(Claimant {
            site,
            entry,
            history,
            claim,
        })
    }

    /// [`of`](Claimant::of), where `user_agent` may also be the bare token, id or name of a
    /// crawler, as people write it.
    pub fn named(
        snapshot: &'a Snapshot,
        registry: &Registry,
        facts: &Facts<'_>,
    ) -> Option<Claimant<'a>> {
        let agent = String::from_utf8_lossy(facts.user_agent);
        Claimant::identified(snapshot, facts, |_, site| {
            site.claim_of_request(&agent, registry)
        })
    }

    /// Whether Last-Modified tells the version in force from every other that was published on the
    /// host. Where the host came to the site later than the version, an earlier version of the host
    /// may have had the same date.
    pub fn is_told_by_its_date(&self) -> bool {
        self.history.is_told_by_its_date && self.history.since == self.entry.since
    }
}

/// One request to a site, with everything that its judgement rests on, but for the claimant's
/// behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Known crawlers.
    pub registry: &'a Registry,
    /// The request.
    pub facts: Facts<'a>,
    /// The site and the claimed crawler.
    pub claimant: Claimant<'a>,
    /// The versions of robots.txt that the claimant may have cached.
    pub cached_versions: CachedVersions<'a>,
}

/// The recent behaviour of a client on a site, as facts for one decision. The ledger remembers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// The request comes sooner after the last one than the crawl delay says, by this much.
    pub too_fast: Option<Duration>,
    /// The client requested a trap under the same name, and the mark has not expired.
    pub trapped: bool,
    /// The client was served the version in force on this host, as far as that is proven: the fetch
    /// was verified, or came from the same address. On a host that was not observed for long
    /// enough, other cached versions are unknown, and every client can use a crawler's name. So a
    /// crawl delay holds there only for a client that was served it.
    pub was_served_current: bool,
}

/// Whether the client's behaviour counts for a request, so that the ledger is asked. It does not
/// for robots.txt and tdmrep.json, which are free for every client, nor where `rules` do not judge
/// the crawler, exempt it, or have the mode off.
pub fn behaviour_counts(site: &Site, rules: &CrawlerRules, target: &[u8]) -> bool {
    // The cheap answer first, without reading the target: people send most requests, and their
    // behaviour never counts.
    if !rules.judged || rules.exempt || rules.mode == Mode::Off {
        return false;
    }
    !reaches_robots_txt(target) && !site.signals.has_at(path_of(target))
}

/// The versions of robots.txt that a crawler may have cached, besides the one in force. The default
/// is what is known without a ledger: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct CachedVersions<'a> {
    /// Superseded versions, as the history of the host has them.
    pub versions: &'a [SupersededVersion],
    /// Which of them the crawler may have cached: a bit each, the first the lowest.
    pub cached: u64,
    /// Whether the crawler may have cached a version whose rules are not known any more. That
    /// counts as allowing.
    pub may_be_unknown: bool,
    /// Whether the crawler was served any version that it may still use.
    pub was_served: bool,
    /// Whether the crawler itself was served the version in force on this host. Never of bots that
    /// no list knows, which share a name, nor behind a cache.
    pub has_version_in_force: bool,
    /// The reason why the crawler can have cached nothing else.
    pub basis: HistoryBasis,
    /// Until when, at the latest, the crawler may use anything but the version in force. `None`
    /// where it has nothing else, and where no time ends the doubt.
    pub older_until: Option<Timestamp>,
}

/// The reason why a list of the versions that a crawler may have cached is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HistoryBasis {
    /// The list may not be whole: it accuses no crawler.
    #[default]
    Unknown,
    /// A cache in front of crawlgate may have answered the crawler: the list may not be whole.
    PerhapsCached,
    /// The host was observed without a gap for as long as a copy may be used.
    Observed,
    /// The host was observed without a gap since crawlgate began to answer for it, and the operator
    /// says what it served before.
    Declared,
}

/// A host on which no violation counts at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnprovenHost {
    /// Its name, with its port where that is not a usual one.
    pub host: String,
    /// `Unknown` or `PerhapsCached`.
    pub history: HistoryBasis,
    /// Until when crawlers may use a copy from before the host was observed. No time ends
    /// `PerhapsCached`.
    #[serde(serialize_with = "rfc3339")]
    pub until: Option<Timestamp>,
}

impl<'a> CachedVersions<'a> {
    /// The versions that any crawler may have cached, where it is not known which crawler was
    /// served which version: every version that was in force within the time for which a copy may
    /// be used. The basis stays `Unknown`, so they accuse no crawler.
    pub fn of_anyone(claimant: Claimant<'a>, now: Timestamp) -> CachedVersions<'a> {
        let Claimant { entry, history, .. } = claimant;
        let cached_since = history.cached_since(entry.site.copy_time(), now);
        let cached = superseded_since(claimant, cached_since);
        let may_be_unknown = history
            .unknown_until
            .is_some_and(|until| until >= cached_since);
        CachedVersions {
            versions: &history.superseded,
            cached,
            may_be_unknown,
            ..CachedVersions::default()
        }
    }

    /// Whether the crawler can have cached nothing but these versions and the one in force.
    pub fn is_whole(&self) -> bool {
        !matches!(
            self.basis,
            HistoryBasis::Unknown | HistoryBasis::PerhapsCached
        )
    }

    /// The same versions where a cache in front of crawlgate may have answered the crawler: it may
    /// have got any version that was in force, and crawlgate does not know what it got.
    pub fn perhaps_cached(self, claimant: Claimant<'a>, now: Timestamp) -> CachedVersions<'a> {
        let anyone = CachedVersions::of_anyone(claimant, now);
        CachedVersions {
            cached: self.cached | anyone.cached,
            may_be_unknown: self.may_be_unknown || anyone.may_be_unknown,
            has_version_in_force: false,
            basis: HistoryBasis::PerhapsCached,
            older_until: None,
            ..self
        }
    }

    /// The superseded versions that the crawler may have cached.
    pub fn superseded(&self) -> impl Iterator<Item = &'a SupersededVersion> {
        chosen(self.versions, self.cached)
    }
}

/// The versions whose bits are set; the lowest bit stands for the first version. Versions beyond
/// the 64th are left out.
pub fn chosen(
    versions: &[SupersededVersion],
    bits: u64,
) -> impl Iterator<Item = &SupersededVersion> {
    versions
        .iter()
        .take(64)
        .enumerate()
        .filter(move |(place, _)| bits >> place & 1 == 1)
        .map(|(_, held)| held)
}

/// A bit for each superseded version of the claimant's host that was in force at `cached_since` or
/// later. While robots.txt answers 503 the version that the site is judged by is among those of the
/// history; it is left out here.
pub fn superseded_since(claimant: Claimant<'_>, cached_since: Timestamp) -> u64 {
    let current = claimant.entry.site.robots_txt.version;
    let versions = claimant.history.superseded.iter().take(64).enumerate();
    versions
        .filter(|(_, held)| held.superseded_at >= cached_since && held.parsed.version != current)
        .fold(0, |bits, (place, _)| bits | 1 << place)
}

/// Memory that `decide` writes into; one per worker or request, reused.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For the normalised target.
    pub target: TargetScratch,
    /// For the decoded path.
    pub decoded: Vec<u8>,
}

#[cfg(test)]
mod enforcement_tests;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod load_tests;
