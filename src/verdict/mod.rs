//! [`decide()`] judges one request: it makes a [`Decision`] of [`Facts`] and [`CachedVersions`]. [`explain`] makes the
//! same decision and gives its reasons. Neither locks nor reads a clock, and `decide` does not allocate.

mod behaviour;
mod claimant;
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

pub use behaviour::{Behaviour, behaviour_counts};
pub use claimant::{Case, Claimant};
pub use decide::{acme_token, crawl_delay, decide, decide_for};
pub use decision::{Action, Decision, Kind, Verdict};
pub use explanation::{
    ActionReport, CrawlerReport, EffectiveReport, Explanation, GroupReport, ResponseFacts, RuleReport,
};
pub use identity::{Doubt, Identity, Proof, identity_by_policy, is_public};
pub use labels::{claim_label, claim_of, crawler_name, group_place, rule_line, rule_place, source_place};
pub use load::{Surroundings, load, load_with};
pub use pass_reason::{LINE_FOR_ALL, PassReason};
pub use report::{action_report, explain, explain_for, report, report_unclaimed};
#[cfg(feature = "internals")]
pub use suite::{ask, host_of, user_agent_of};

use crate::policy::site::SupersededVersion;
use crate::robots::TargetScratch;
use crate::time::Timestamp;
use std::net::IpAddr;
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

/// The versions of robots.txt that a crawler may have cached, besides the one in force. The default is what is known
/// without a ledger: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct CachedVersions<'a> {
    /// Superseded versions, as the history of the host has them.
    pub versions: &'a [SupersededVersion],
    /// Which of them the crawler may have cached: a bit each, the first the lowest.
    pub cached: u64,
    /// Whether the crawler may have cached a version whose rules are not known any more. That counts as allowing.
    pub may_be_unknown: bool,
    /// Whether the crawler was served any version that it may still use.
    pub was_served: bool,
    /// Whether the crawler itself was served the version in force on this host. Never of bots that no list knows, which
    /// share a name, nor behind a cache.
    pub has_version_in_force: bool,
    /// The reason why the crawler can have cached nothing else.
    pub basis: HistoryBasis,
}

/// The reason why a list of the versions that a crawler may have cached is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum HistoryBasis {
    /// The list may not be whole: it accuses no crawler.
    #[default]
    Unknown,
    /// The host was observed without a gap for as long as a copy may be used.
    Observed,
    /// The host was observed without a gap since crawlgate began to answer for it, and the operator says what it served
    /// before.
    Declared,
}

impl HistoryBasis {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl<'a> CachedVersions<'a> {
    /// The versions that any crawler may have cached, where it is not known which crawler was served which version:
    /// every version that was in force within the time for which a copy may be used.
    pub fn of_anyone(claimant: Claimant<'a>, now: Timestamp) -> CachedVersions<'a> {
        let Claimant { entry, history, .. } = claimant;
        let window = entry.site.grace + entry.site.behind_cache.unwrap_or_default();
        let cached_since = history.cached_since(window, now);
        let cached = superseded_since(claimant, cached_since);
        let may_be_unknown = history.unknown_until.is_some_and(|until| until >= cached_since);
        CachedVersions { versions: &history.superseded, cached, may_be_unknown, ..CachedVersions::default() }
    }

    /// Whether the crawler can have cached nothing else.
    pub fn is_whole(&self) -> bool {
        self.basis != HistoryBasis::Unknown
    }

    /// The superseded versions that the crawler may have cached.
    pub fn superseded(&self) -> impl Iterator<Item = &'a SupersededVersion> {
        chosen(self.versions, self.cached)
    }
}

/// The versions whose bits are set: the reverse of `bits`.
pub fn chosen(versions: &[SupersededVersion], bits: u64) -> impl Iterator<Item = &SupersededVersion> {
    versions.iter().take(64).enumerate().filter(move |(place, _)| bits >> place & 1 == 1).map(|(_, held)| held)
}

/// A bit for each superseded version of the claimant's host that was in force at `cached_since` or later. While
/// robots.txt answers 503 the version that the site is judged by is among those of the history; it is left out here.
pub fn superseded_since(claimant: Claimant<'_>, cached_since: Timestamp) -> u64 {
    let current = claimant.entry.site.robots_txt.version;
    bits(&claimant.history.superseded, |held| held.superseded_at >= cached_since && held.parsed.version != current)
}

/// A bit for each of the first 64 versions that a condition holds for.
fn bits(versions: &[SupersededVersion], mut condition: impl FnMut(&SupersededVersion) -> bool) -> u64 {
    let mut bits = 0;
    for (place, held) in versions.iter().take(64).enumerate() {
        bits |= u64::from(condition(held)) << place;
    }
    bits
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
