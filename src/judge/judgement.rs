//! [`Judgement`]: the result of judging a request. It owns the snapshot that it was made with, so
//! that all later steps of the request use the same policies, even if a reload replaces them
//! meanwhile.

use crate::crawlers::Claim;
use crate::identity::GoodSignature;
use crate::policy::{HostHistory, SiteEntry, Snapshot, Version};
use crate::time::Timestamp;
use crate::verdict::{Claimant, Decision, Doubt, HistoryBasis, Identity, Proof, chosen};
use std::sync::Arc;

/// A request that was judged.
#[derive(Debug)]
pub enum Judgement {
    /// No site claims the host: the request is forwarded untouched.
    Unclaimed {
        /// The claimed crawler, by the registry alone.
        claim: Claim,
        /// The snapshot that the request was judged by.
        snapshot: Arc<Snapshot>,
    },
    /// A site claims the host.
    Judged(Judged),
}

/// A request to a site.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The decision.
    pub decision: Decision,
    /// What is proven about the claimed crawler.
    pub identity: Identity,
    /// How it was proven.
    pub proof: Proof,
    /// What the signature of the request proves, or why it proves nothing, if it has one.
    pub signature: Option<&'static str>,
    /// Why nothing is proven of a crawler that can be proven here.
    pub doubt: Option<Doubt>,
    /// The signature that proves the claim, if one does.
    pub good_signature: Option<Arc<GoodSignature>>,
    /// The superseded versions that the crawler may have cached: a bit each, by their place in the
    /// host's history.
    pub cached: u64,
    /// How crawlgate knows that the crawler has cached nothing else.
    pub basis: HistoryBasis,
    /// Until when a request in doubt does not count: see
    /// [`CachedVersions::older_until`](crate::verdict::CachedVersions::older_until).
    pub older_until: Option<Timestamp>,
    /// Whether a date alone may confirm the crawler's copy: the crawler itself was served the
    /// version in force on this host, and no other version there had the same Last-Modified.
    pub may_confirm_by_date: bool,
    /// Whether this instance may not answer a request for robots.txt: see
    /// [`Others::is_silent`](super::Others::is_silent).
    pub is_silent: bool,
    /// The snapshot that the request was judged by.
    pub snapshot: Arc<Snapshot>,
}

impl Judged {
    /// The history that the request was judged by, given its host.
    fn history(&self, host: &[u8]) -> &HostHistory {
        self.snapshot.history(host)
    }

    /// The claimant that was judged, given the host of the request.
    pub(super) fn claimant(&self, host: &[u8]) -> Claimant<'_> {
        let Decision { site, claim, .. } = self.decision;
        Claimant {
            site,
            entry: self.entry(),
            history: self.history(host),
            claim,
        }
    }

    /// The superseded versions that the crawler may have cached, given the host of the request.
    pub(super) fn cached_versions(&self, host: &[u8]) -> impl Iterator<Item = Version> {
        chosen(&self.history(host).superseded, self.cached).map(|held| held.parsed.version)
    }

    /// The bytes of the superseded versions that the crawler may have cached.
    pub(super) fn cached_files(&self, host: &[u8]) -> impl Iterator<Item = &Arc<[u8]>> {
        chosen(&self.history(host).superseded, self.cached).map(|held| &held.parsed.body)
    }

    /// The site.
    pub fn entry(&self) -> &SiteEntry {
        &self.snapshot.sites()[self.decision.site]
    }
}

impl Judgement {
    /// The judgement about a site; `None` for a host that no site claims.
    pub fn judged(&self) -> Option<&Judged> {
        match self {
            Judgement::Unclaimed { .. } => None,
            Judgement::Judged(judged) => Some(judged),
        }
    }

    /// The crawler that the request claims to come from.
    pub fn claim(&self) -> Claim {
        match self {
            Judgement::Unclaimed { claim, .. } => *claim,
            Judgement::Judged(judged) => judged.decision.claim,
        }
    }

    /// Replaces the snapshot by one of this site and host alone, which is what a record needs; by
    /// an empty one if no site has the host. For a request that may last for days: it must not keep
    /// all policies in memory. The decision names the site by its place in the new snapshot then.
    pub fn let_go(&mut self, host: &[u8]) {
        match self {
            Judgement::Unclaimed { snapshot, .. } => *snapshot = Arc::default(),
            Judgement::Judged(judged) => {
                judged.snapshot = Arc::new(judged.snapshot.of_one(judged.decision.site, host));
                judged.decision.site = 0;
            }
        }
    }

    /// Whether the origin has to send the whole page to this crawler, because a 304 would hide a
    /// new noindex from one that has the page: the tags of the path changed lately, or the host
    /// came from another site lately (though no site may have it now). Never for a client that
    /// claims no crawler.
    pub fn needs_whole_page(&self, host: &[u8], now: Timestamp) -> bool {
        let (snapshot, changed) = match self {
            Judgement::Unclaimed { snapshot, .. } => (snapshot, false),
            Judgement::Judged(judged) => (
                &judged.snapshot,
                judged
                    .entry()
                    .tags_are_new(&judged.decision.path_rules, now),
            ),
        };
        self.claim() != Claim::Nobody && (changed || snapshot.history(host).has_moved_lately(now))
    }
}
