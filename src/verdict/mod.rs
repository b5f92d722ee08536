//! Judges one request by a policy. [`decide()`] makes a [`Decision`] from the facts about the
//! request ([`RequestFacts`]) and the versions of robots.txt that the crawler may have cached
//! ([`CachedVersions`]); [`explain`] makes the same decision and gives the reasons. Neither
//! function takes a lock or reads a clock, and `decide` does not allocate. [`load_site`] compiles,
//! lints and tests a policy.

mod challenge;
mod decide;
mod decision;
mod explanation;
mod identity;
mod labels;
mod load;
mod render;
mod report;
mod suite;
mod unenforced_reason;

pub(crate) use crate::crawlers::is_public_address;
pub use crate::policy::model::{IdentityStatus, Kind, Verdict};
pub use challenge::{acme_token, is_challenge};
pub use decide::{crawl_delay, decide, decide_for};
pub use decision::{Action, ActionKind, Decision, RobotsReadings, RuleRef};
pub use explanation::{
    ActionReport, CrawlerReport, EffectiveReport, Explanation, GroupReport, ResponseFacts,
    RuleReport,
};
pub(crate) use identity::ProofStatement;
pub use identity::{Identity, IdentityDoubt, IdentityOutcome, ProofKind, identity_by_policy};
pub use labels::{claim_label, crawler_name, misspelt_line, rule_location, source_location};
pub use load::{PolicyDependencies, load_site, load_site_at};
pub use render::PERHAPS_CACHED_END;
pub use report::{action_report, explain, explain_decision, explain_request, explain_unclaimed};
#[cfg(feature = "internals")]
pub use suite::test_host;
pub use unenforced_reason::{ENFORCE_ALL_LINE, UnenforcedReason};

use crate::crawlers::{Claim, Registry};
use crate::policy::PublicationHistory;
use crate::policy::model::EnforcementMode;
use crate::policy::site::{CrawlerRules, Site, SiteEntry, Snapshot, SupersededVersion};
use crate::robots::{TargetScratch, reaches_robots_txt, without_query};
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;
use strum::IntoStaticStr;

use CachedVersionsBasis::*;
use Claim::*;

/// The facts of a request, borrowed as they were received.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
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
    /// Whether the client is the crawler that it claims to be.
    pub identity: Identity,
    /// When it arrived.
    pub now: Timestamp,
}

impl RequestFacts<'_> {
    /// Whether a certificate authority checks who controls the host: see [`is_challenge`].
    pub fn is_challenge(&self) -> bool {
        is_challenge(self.method, self.target)
    }
}

/// The claim of a request with this method, where its user agent alone has the claim `identified`.
/// Crawlers send GET and HEAD. An unknown bot that sends another method is a program that calls the
/// application, such as a webhook: a tool. A log without methods has the empty one.
pub(crate) fn claim_with_method(identified: Claim, method: &[u8]) -> Claim {
    match identified {
        UnknownBot if !matches!(method, b"" | b"GET" | b"HEAD") => Tool,
        identified => identified,
    }
}

/// The site that a request is for, and the crawler that its user agent claims to be.
#[derive(Clone, Copy)]
pub struct SiteClaim<'a> {
    /// Index of the site in the snapshot.
    pub site: usize,
    /// The site itself.
    pub entry: &'a SiteEntry,
    /// The earlier publications of the host.
    pub history: &'a PublicationHistory,
    /// The claimed crawler.
    pub claim: Claim,
}

impl<'a> SiteClaim<'a> {
    /// Finds the claimant by the host and the user agent of a request, with the tokens of the
    /// host's site. A challenge of a certificate authority claims no crawler, whatever its user
    /// agent is. `None` if no site has the host.
    pub fn find(
        snapshot: &'a Snapshot,
        registry: &Registry,
        facts: &RequestFacts<'_>,
    ) -> Option<SiteClaim<'a>> {
        SiteClaim::find_with(snapshot, facts, |_, site| {
            registry.identify_on_site(facts.user_agent, &site.tokens)
        })
    }

    /// [`find`](SiteClaim::find), where the caller identifies the user agent for the site:
    /// `identify` gets the site's index and the site. It is not called for a challenge, which is no
    /// crawler's request, whoever sends it.
    pub fn find_with(
        snapshot: &'a Snapshot,
        facts: &RequestFacts<'_>,
        identify: impl FnOnce(usize, &Site) -> Claim,
    ) -> Option<SiteClaim<'a>> {
        let (site, history) = snapshot.site_and_history(facts.host)?;
        let entry = snapshot.sites().get(site)?;
        let claim = if facts.is_challenge() {
            Visitor
        } else {
            claim_with_method(identify(site, &entry.site), facts.method)
        };
        Some(SiteClaim {
            site,
            entry,
            history,
            claim,
        })
    }

    /// [`find`](SiteClaim::find), where `user_agent` may also be the bare token, id or name of a
    /// crawler, as people write it.
    pub fn find_by_name(
        snapshot: &'a Snapshot,
        registry: &Registry,
        facts: &RequestFacts<'_>,
    ) -> Option<SiteClaim<'a>> {
        let agent = String::from_utf8_lossy(facts.user_agent);
        SiteClaim::find_with(snapshot, facts, |_, site| {
            site.claim_for_request(&agent, registry)
        })
    }

    /// How the site treats the claimed crawler.
    pub fn rules(&self) -> CrawlerRules {
        self.entry.site.crawler_rules(self.claim)
    }

    /// Whether no other version with the Last-Modified of the version in force was published on the
    /// host. Where the host came to the site later than the version, an earlier version of the host
    /// may have had the same date.
    pub fn has_unique_date(&self) -> bool {
        self.history.has_unique_date && self.history.since == self.entry.since
    }
}

/// One request to a site with everything that decides about it, except for the claimant's
/// behaviour.
pub struct RequestToJudge<'a> {
    /// Known crawlers.
    pub registry: &'a Registry,
    /// The request.
    pub facts: RequestFacts<'a>,
    /// The site and the claimed crawler.
    pub claimant: SiteClaim<'a>,
    /// The versions of robots.txt that the claimant may have cached.
    pub cached_versions: CachedVersions<'a>,
}

impl<'a> RequestToJudge<'a> {
    /// A GET by a crawler that is proven, and has cached only the version in force. A challenge of a
    /// certificate authority is no crawler's request. The host does not matter: `entry` is its site.
    pub fn verified_get(
        registry: &'a Registry,
        entry: &'a SiteEntry,
        claim: Claim,
        target: &'a [u8],
    ) -> RequestToJudge<'a> {
        let facts = RequestFacts {
            host: b"",
            target,
            method: b"GET",
            user_agent: b"",
            client: None,
            identity: Identity::Verified,
            now: Timestamp(0),
        };
        let claim = if facts.is_challenge() { Visitor } else { claim };
        RequestToJudge {
            registry,
            facts,
            claimant: SiteClaim {
                site: 0,
                entry,
                history: PublicationHistory::empty(),
                claim,
            },
            cached_versions: CachedVersions {
                was_served: true,
                has_version_in_force: true,
                basis: Declared,
                ..CachedVersions::default()
            },
        }
    }
}

/// The recent behaviour of a client on a site, as facts for one decision. The ledger keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentBehaviour {
    /// By how much the request came before the end of the crawl delay, if it did.
    pub too_fast: Option<Duration>,
    /// Whether the client requested a trap under the same name and the mark has not expired.
    pub trapped: bool,
    /// Whether the client is proven to have been served the version in force on this host: the
    /// fetch was verified, or came from the same address. On a host that was not observed for long
    /// enough, other cached versions are unknown, and every client can use a crawler's name. There
    /// a crawl delay binds only a client that was served the version with the delay.
    pub was_served_current: bool,
}

/// Whether the client's behaviour counts for a request, so that it must be looked up. It does not
/// count for robots.txt and tdmrep.json, which are free for every client, nor where `rules` do not
/// judge the crawler, exempt it, or have the mode off.
pub fn behaviour_counts(site: &Site, rules: &CrawlerRules, target: &[u8]) -> bool {
    // The cheap answer first, without reading the target: people send most requests, and their
    // behaviour never counts.
    if !rules.judged || rules.exempt || rules.mode == EnforcementMode::Off {
        return false;
    }
    !reaches_robots_txt(target) && !site.signals.is_tdmrep_path(without_query(target))
}

/// The versions of robots.txt that a crawler may have cached, besides the one in force. The default
/// is for a crawler of which nothing is known.
#[derive(Clone, Copy, Default)]
pub struct CachedVersions<'a> {
    /// All superseded versions in the history of the host.
    pub versions: &'a [SupersededVersion],
    /// Which of them the crawler may have cached: one bit for each, the lowest for the first.
    pub cached: u64,
    /// Whether the crawler may have cached a version whose rules are not known any more. Such a
    /// version counts as one that allows the request.
    pub may_be_unknown: bool,
    /// Whether the crawler was served any version that it may still use.
    pub was_served: bool,
    /// Whether the crawler itself was served the version in force on this host. Always false for
    /// unknown bots, which share a name, and behind a cache.
    pub has_version_in_force: bool,
    /// Why the crawler cannot have cached any other version.
    pub basis: CachedVersionsBasis,
    /// Until when, at the latest, the crawler may use anything but the version in force. `None`
    /// where it has nothing else, and where no time ends the doubt.
    pub older_until: Option<Timestamp>,
}

/// Why the list of versions that a crawler may have cached is complete, or may not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CachedVersionsBasis {
    /// The list may be incomplete, so no request counts as a violation.
    #[default]
    Unknown,
    /// A cache in front of crawlgate may have answered the crawler, so the list may be incomplete.
    PerhapsCached,
    /// The host was observed without a gap for as long as a copy may be used.
    Observed,
    /// The host was observed without a gap since crawlgate began to answer for it, and the policy
    /// says what the host served before.
    Declared,
}

/// A host on which no violation counts at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonCountingHost {
    /// Its name, with its port where that is not a usual one.
    pub host: String,
    /// `Unknown` or `PerhapsCached`.
    pub history: CachedVersionsBasis,
    /// Until when crawlers may use a copy from before the host was observed. No time ends
    /// `PerhapsCached`.
    #[serde(serialize_with = "rfc3339")]
    pub until: Option<Timestamp>,
}

impl<'a> CachedVersions<'a> {
    /// The versions that any crawler may have cached, for use without a ledger: every version that
    /// was in force within the time for which a copy may be used. The basis stays `Unknown`, so no
    /// request counts as a violation.
    pub fn for_any_crawler(claimant: SiteClaim<'a>, now: Timestamp) -> CachedVersions<'a> {
        let SiteClaim { entry, history, .. } = claimant;
        let cached_since = history.cached_since(entry.site.copy_lifetime(), now);
        let cached = superseded_bits_since(claimant, cached_since);
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

    /// Whether the crawler cannot have cached other versions than these and the one in force.
    pub fn is_complete(&self) -> bool {
        !matches!(self.basis, Unknown | PerhapsCached)
    }

    /// Adds the versions that a cache in front of crawlgate may have sent the crawler: every
    /// version that was in force within the time for which a copy may be used.
    pub fn with_possible_cache(
        self,
        claimant: SiteClaim<'a>,
        now: Timestamp,
    ) -> CachedVersions<'a> {
        let anyone = CachedVersions::for_any_crawler(claimant, now);
        CachedVersions {
            cached: self.cached | anyone.cached,
            may_be_unknown: self.may_be_unknown || anyone.may_be_unknown,
            has_version_in_force: false,
            basis: PerhapsCached,
            older_until: None,
            ..self
        }
    }

    /// The superseded versions that the crawler may have cached.
    pub fn superseded(&self) -> impl Iterator<Item = &'a SupersededVersion> {
        select_versions(self.versions, self.cached)
    }
}

/// The versions whose bits are set; the lowest bit stands for the first version. Versions beyond
/// the 64th are left out.
pub fn select_versions(
    versions: &[SupersededVersion],
    bits: u64,
) -> impl Iterator<Item = &SupersededVersion> {
    versions
        .iter()
        .take(64)
        .enumerate()
        .filter(move |(place, _)| bits >> place & 1 == 1)
        .map(|(_, version)| version)
}

/// One bit for each superseded version of the claimant's host that was in force at `cached_since`
/// or later. While robots.txt answers 503, the history has the version by which requests are judged
/// too; it gets no bit.
pub fn superseded_bits_since(claimant: SiteClaim<'_>, cached_since: Timestamp) -> u64 {
    let current = claimant.entry.site.robots_txt.version;
    claimant
        .history
        .superseded
        .iter()
        .take(64)
        .enumerate()
        .filter(|(_, superseded)| {
            superseded.superseded_at >= cached_since && superseded.parsed.version != current
        })
        .fold(0, |bits, (place, _)| bits | 1 << place)
}

/// Buffers that `decide` writes into. One for each worker or request, reused.
#[derive(Default)]
pub struct DecisionScratch {
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
