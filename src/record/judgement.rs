//! [`Judgement`]: the result of judging a request. It owns the snapshot that it was made with, so
//! that all later steps of the request use the same policies, even if a reload replaces them
//! meanwhile.

use super::CountedAction;
use crate::crawlers::Claim;
use crate::policy::{HostHistory, SiteEntry, Snapshot, Version};
use crate::robots::seconds;
use crate::time::Timestamp;
use crate::verdict::{
    Claimant, Decision, Doubt, HistoryBasis, Identity, Kind, Proof, chosen, group_place, rule_place,
};
use std::sync::Arc;
use std::time::Duration;

/// What was decided about a request.
#[derive(Clone, Debug)]
pub enum Judgement {
    /// It was answered before it was judged: its head was refused, or it got the file of a
    /// challenge of a certificate authority, or a redirect to https.
    Unjudged(CountedAction),
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

/// A signature that proves a crawler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoodSignature {
    /// The text that was signed (RFC 9421 section 2.5).
    pub base: String,
    /// The public key, Ed25519.
    pub key: Vec<u8>,
    /// The signature.
    pub octets: Vec<u8>,
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
    /// `judge::Others::is_silent`.
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
    pub fn claimant(&self, host: &[u8]) -> Claimant<'_> {
        let Decision { site, claim, .. } = self.decision;
        Claimant {
            site,
            entry: self.entry(),
            history: self.history(host),
            claim,
        }
    }

    /// The superseded versions that the crawler may have cached, given the host of the request.
    pub fn cached_versions(&self, host: &[u8]) -> impl Iterator<Item = Version> {
        chosen(&self.history(host).superseded, self.cached).map(|held| held.parsed.version)
    }

    /// The bytes of the superseded versions that the crawler may have cached.
    pub fn cached_files(&self, host: &[u8]) -> impl Iterator<Item = &Arc<[u8]>> {
        chosen(&self.history(host).superseded, self.cached).map(|held| &held.parsed.body)
    }

    /// The site.
    pub fn entry(&self) -> &SiteEntry {
        &self.snapshot.sites()[self.decision.site]
    }

    /// The line of robots.txt that decided: the crawl delay for a request that came too soon, else
    /// the rule.
    pub fn rule(&self) -> Option<String> {
        let deciding = self.decision.rule?;
        let document = &self.entry().site.document;
        let group = document.groups.get(usize::from(deciding.group))?;
        if let Some(delay) = self.crawl_delay() {
            return Some(format!("Crawl-delay: {}", seconds(delay)));
        }
        let rule = group.rules.get(usize::try_from(deciding.rule?).ok()?)?;
        Some(rule.to_string())
    }

    /// Where that line is written: `file:line:column` of the policy, or a line of the origin's
    /// file.
    pub fn rule_place(&self) -> Option<String> {
        let site = &self.entry().site;
        match self.crawl_delay() {
            Some(_) => group_place(&self.decision, site),
            None => rule_place(&self.decision, site),
        }
    }

    /// The crawl delay of the group that applied, if the request came sooner.
    fn crawl_delay(&self) -> Option<Duration> {
        self.decision.slowed_for()?;
        let group = usize::from(self.decision.rule?.group);
        self.entry().site.document.groups.get(group)?.crawl_delay
    }

    /// Whether the record accuses the crawler of something that depends on the robots.txt that it
    /// was served: a violation, too fast, or a trap. Only these need the other instances.
    pub fn accuses(&self) -> bool {
        let decision = &self.decision;
        decision.trap_hit || matches!(decision.kind, Kind::Violation | Kind::TooFast)
    }

    /// The same judgement as `unproven`, because it is not known what other instances served. The
    /// action stays.
    pub fn unproven(&self) -> Judged {
        let decision = Decision {
            kind: Kind::Unproven,
            never_fetched: false,
            trap_hit: false,
            ..self.decision.clone()
        };
        Judged {
            decision,
            basis: HistoryBasis::Unknown,
            older_until: None,
            ..self.clone()
        }
    }
}

impl Judgement {
    /// The judgement about a site; `None` for a host that no site claims, and for a request that
    /// was answered before it was judged.
    pub fn judged(&self) -> Option<&Judged> {
        match self {
            Judgement::Unjudged(_) | Judgement::Unclaimed { .. } => None,
            Judgement::Judged(judged) => Some(judged),
        }
    }

    /// The crawler that the request claims to come from; `None` for one that was answered before it
    /// was judged.
    pub fn claim(&self) -> Option<Claim> {
        match self {
            Judgement::Unjudged(_) => None,
            Judgement::Unclaimed { claim, .. } => Some(*claim),
            Judgement::Judged(judged) => Some(judged.decision.claim),
        }
    }

    /// Replaces the snapshot by one of this site and host alone, which is what a record needs; by
    /// an empty one if no site has the host. For a request that may last for days: it must not keep
    /// all policies in memory. The decision names the site by its place in the new snapshot then.
    pub fn release_policies(&mut self, host: &[u8]) {
        match self {
            Judgement::Unjudged(_) => {}
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
            Judgement::Unjudged(_) => return false,
            Judgement::Unclaimed { snapshot, .. } => (snapshot, false),
            Judgement::Judged(judged) => (
                &judged.snapshot,
                judged
                    .entry()
                    .tags_are_new(&judged.decision.path_rules, now),
            ),
        };
        self.claim() != Some(Claim::Nobody)
            && (changed || snapshot.history(host).has_moved_lately(now))
    }
}
