//! [`Judgement`]: what crawlgate found out and decided about one request. It is a [`SiteJudgement`]
//! if the requested host belongs to a site. A judgement keeps the compiled policies by which the
//! request was judged. So a reload of the policies changes nothing about the later steps of that
//! request.

use super::CountedAction;
use crate::crawlers::Claim;
use crate::policy::{PublicationHistory, RobotsVersionId, Site, SiteEntry, Snapshot};
use crate::robots::format_seconds;
use crate::time::Timestamp;
use crate::verdict::{
    CachedVersionsBasis, Decision, Identity, IdentityDoubt, Kind, ProofKind, RuleRef, SiteClaim,
    select_versions, source_location,
};
use std::sync::Arc;

/// The result of judging a request.
#[derive(Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "most requests are judged, and none allocates for it"
)]
pub enum Judgement {
    /// The request was answered before it was judged: its head was rejected, or it got the file of
    /// a challenge of a certificate authority, or a redirect to https.
    Unjudged(CountedAction),
    /// No site claims the host: the request is forwarded untouched.
    Unclaimed {
        /// The claimed crawler, by the registry alone.
        claim: Claim,
        /// The snapshot that the request was judged by.
        snapshot: Arc<Snapshot>,
    },
    /// A site claims the host.
    Judged(SiteJudgement),
}

/// The signature that proves a crawler's identity, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureProof {
    /// The text that was signed (RFC 9421 section 2.5).
    pub base: String,
    /// The public key, Ed25519.
    pub key: Vec<u8>,
    /// The signature.
    pub bytes: Vec<u8>,
}

/// The judgement of a request to a site.
#[derive(Clone, Debug)]
pub struct SiteJudgement {
    /// The decision.
    pub decision: Decision,
    /// What is proven about the claimed crawler.
    pub identity: Identity,
    /// How it was proven.
    pub proof: ProofKind,
    /// The result of checking the signature of the request, if it has one.
    pub signature: Option<&'static str>,
    /// Why a crawler that can be proven here is not verified.
    pub doubt: Option<IdentityDoubt>,
    /// The signature that proves the claim, if one does.
    pub good_signature: Option<Arc<SignatureProof>>,
    /// The superseded versions that the crawler may have cached: one bit for each, by the index in
    /// the host's history.
    pub cached: u64,
    /// How crawlgate knows that the crawler has cached no other version.
    pub basis: CachedVersionsBasis,
    /// Until when a request in doubt does not count: see
    /// [`CachedVersions::older_until`](crate::verdict::CachedVersions::older_until).
    pub older_until: Option<Timestamp>,
    /// Whether a date alone may confirm the crawler's copy: the crawler itself was served the
    /// version in force on this host, and no other version there had the same Last-Modified.
    pub may_confirm_by_date: bool,
    /// Whether this instance must not serve robots.txt: see
    /// `judge::PeerConfirmation::withholds_robots_txt`.
    pub withholds_robots_txt: bool,
    /// The snapshot that the request was judged by.
    pub snapshot: Arc<Snapshot>,
}

/// A line of a site's robots.txt that decided about a request. Cheap to make and to clone, because
/// its texts are made when they are asked for.
#[derive(Clone)]
pub struct DecidingLine {
    site: Arc<Site>,
    group: usize,
    /// The rule in the group; `None` for the crawl delay of the group.
    rule: Option<usize>,
}

impl DecidingLine {
    /// The line, such as `Disallow: /cart/`.
    pub fn text(&self) -> Option<String> {
        let group = self.site.document.groups.get(self.group)?;
        Some(match self.rule {
            Some(rule) => group.rules.get(rule)?.to_string(),
            None => format!("Crawl-delay: {}", format_seconds(group.crawl_delay?)),
        })
    }

    /// Its location: `file:line:column` of the policy, or a line of the origin's file.
    pub fn location(&self) -> Option<String> {
        let source = match self.rule {
            Some(rule) => self.site.rule(self.group, rule)?.1,
            None => self.site.delay_sources.get(self.group)?.as_ref()?,
        };
        Some(source_location(source, &self.site).0)
    }
}

impl SiteJudgement {
    /// The history that the request was judged by, given its host.
    fn history(&self, host: &[u8]) -> &PublicationHistory {
        self.snapshot.history(host)
    }

    /// The claimant that was judged, given the host of the request.
    pub fn claimant(&self, host: &[u8]) -> SiteClaim<'_> {
        let Decision { site, claim, .. } = self.decision;
        SiteClaim {
            site,
            entry: self.entry(),
            history: self.history(host),
            claim,
        }
    }

    /// The superseded versions that the crawler may have cached, given the host of the request.
    pub fn cached_versions(&self, host: &[u8]) -> impl Iterator<Item = RobotsVersionId> {
        select_versions(&self.history(host).superseded, self.cached).map(|held| held.parsed.version)
    }

    /// The bytes of the superseded versions that the crawler may have cached.
    pub fn cached_files(&self, host: &[u8]) -> impl Iterator<Item = &Arc<[u8]>> {
        select_versions(&self.history(host).superseded, self.cached).map(|held| &held.parsed.body)
    }

    /// The site.
    pub fn entry(&self) -> &SiteEntry {
        &self.snapshot.sites()[self.decision.site]
    }

    /// The line of robots.txt that decided: the crawl delay for a request that came too soon, else
    /// the rule.
    pub fn deciding_line(&self) -> Option<DecidingLine> {
        let RuleRef { group, rule } = self.decision.rule?;
        let site = &self.entry().site;
        let has_delay = site.document.groups.get(group)?.crawl_delay.is_some();
        let rule = match self.decision.slow_retry_after() {
            Some(_) if has_delay => None,
            _ => Some(rule?),
        };
        Some(DecidingLine {
            site: site.clone(),
            group,
            rule,
        })
    }

    /// The text of that line.
    pub fn rule(&self) -> Option<String> {
        self.deciding_line()?.text()
    }

    /// The location of that line: `file:line:column` of the policy, or a line of the origin's file.
    pub fn rule_location(&self) -> Option<String> {
        self.deciding_line()?.location()
    }

    /// Whether the crawler is accused of breaking the robots.txt that it was served: a violation,
    /// too fast, or a trap. The peers must confirm these.
    pub fn accuses(&self) -> bool {
        let decision = &self.decision;
        decision.trap_hit || matches!(decision.kind, Kind::Violation | Kind::TooFast)
    }

    /// A copy with the kind `unproven`, because it is not known what peers served. The action
    /// stays.
    pub fn with_unproven_kind(&self) -> SiteJudgement {
        let decision = Decision {
            kind: Kind::Unproven,
            never_fetched: false,
            trap_hit: false,
            ..self.decision.clone()
        };
        SiteJudgement {
            decision,
            basis: CachedVersionsBasis::Unknown,
            older_until: None,
            ..self.clone()
        }
    }
}

impl Judgement {
    /// The judgement about a site; `None` for a host that no site claims, and for a request that
    /// was answered before it was judged.
    pub fn judged(&self) -> Option<&SiteJudgement> {
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

    /// Replaces the snapshot by one of this site and host alone, or by an empty one if no site has
    /// the host. For a request that may last for days, which must not keep all policies in memory.
    /// The index of the site in the decision becomes that of the new snapshot.
    pub fn narrow_snapshot(&mut self, host: &[u8]) {
        match self {
            Judgement::Unjudged(_) => {}
            Judgement::Unclaimed { snapshot, .. } => *snapshot = Arc::default(),
            Judgement::Judged(judged) => {
                judged.snapshot = Arc::new(judged.snapshot.single_site(judged.decision.site, host));
                judged.decision.site = 0;
            }
        }
    }

    /// Whether the origin must send the whole page to this crawler, because a 304 would hide a new
    /// noindex: the tags of the path changed lately, or the host moved from another site lately
    /// (even if no site has it now). False for a client that claims no crawler.
    pub fn needs_whole_page(&self, host: &[u8], now: Timestamp) -> bool {
        let (snapshot, changed) = match self {
            Judgement::Unjudged(_) => return false,
            Judgement::Unclaimed { snapshot, .. } => (snapshot, false),
            Judgement::Judged(judged) => (
                &judged.snapshot,
                judged
                    .entry()
                    .has_new_tags(&judged.decision.path_rules, now),
            ),
        };
        self.claim() != Some(Claim::Visitor)
            && (changed || snapshot.history(host).has_moved_recently(now))
    }
}

#[cfg(test)]
impl SiteJudgement {
    /// A judgement of a client that is not verified, and of which nothing else is known.
    pub fn for_test(decision: Decision, snapshot: Arc<Snapshot>) -> SiteJudgement {
        SiteJudgement {
            decision,
            identity: Identity::Unverified,
            proof: ProofKind::None,
            signature: None,
            doubt: None,
            good_signature: None,
            cached: 0,
            basis: CachedVersionsBasis::Unknown,
            older_until: None,
            may_confirm_by_date: false,
            withholds_robots_txt: false,
            snapshot,
        }
    }
}
