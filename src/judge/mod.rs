//! [`Judge`] judges a request. It finds out which crawler the client claims to be, whether that is
//! proven, which versions of robots.txt the crawler may have cached, and how the client behaved
//! lately. Then it decides what crawlgate does. Each request is judged only once, because judging
//! has effects: it counts the request against the crawl rate, and marks a client that requests a
//! trap (a path that no obedient crawler requests). [`Judge::explain`] comes to the same decision
//! without these effects. [`Recorder`] passes each finished request to metrics and logs.

mod peers;
mod recorder;
mod workspace;

pub use peers::{ConfirmationCounts, PeerConfirmation};
pub use recorder::{Recorder, RequestLogs, record_front_page_tags};

use crate::crawlers::{Claim, Registry};
use crate::heads::origin_form;
use crate::identity::{
    IdentityClaim, IdentityEffects, IdentityFinding, IdentityVerifier, SignedRequest,
};
use crate::ledger::{BehaviourTables, HostUpdate, Ledger, ProxiedFetch, RateCheckMode, list_key};
use crate::policy::{SiteEntry, Snapshot};
use crate::record::{Judgement, RequestCopy, RequestRecord, SiteJudgement};
use crate::sites::SiteManager;
use crate::time::Timestamp;
use crate::verdict::{
    Action, CachedVersions, CachedVersionsBasis, Decision, DecisionScratch, Explanation, Identity,
    IdentityDoubt, ProofKind, RecentBehaviour, RequestFacts, RequestToJudge, ResponseFacts,
    SiteClaim, claim_with_method, decide_for, explain_decision, explain_unclaimed,
    identity_by_policy,
};
use Claim::*;
use RateCheckMode::*;
use std::sync::Arc;
use workspace::{ClaimCache, JudgeWorkspace, WORKSPACE};

/// Judges requests. All entry points share one judge.
pub struct Judge {
    /// The policies in force.
    pub sites: Arc<SiteManager>,
    /// Known crawlers.
    pub registry: &'static Registry,
    /// Which robots.txt was served to which crawler.
    pub ledger: Arc<Ledger>,
    /// The proofs of crawlers' identities, besides the networks of policies.
    pub proofs: Arc<IdentityVerifier>,
    /// The recent behaviour of clients.
    pub behaviours: Arc<BehaviourTables>,
    /// Other instances in front of the same sites.
    pub peers: Option<Arc<PeerConfirmation>>,
}

/// The result of evaluating a request, with the effects to apply if it counts.
struct Evaluation<'a> {
    input: RequestToJudge<'a>,
    finding: IdentityFinding,
    /// How the record of the host changes.
    host_update: HostUpdate,
    /// What to record or look up about the claimed identity.
    identity_effects: IdentityEffects,
    /// The result of a list of networks, if it is to be recorded: the list of the site, or the
    /// operator's (`None`).
    list_observation: Option<(Option<&'a SiteEntry>, Identity)>,
}

impl Judge {
    /// Judges a request, which must not have been judged before: it counts against the crawl rate,
    /// as a visit of the host, and marks the client if it hits a trap.
    pub fn judge(&self, request: &RequestCopy) -> Judgement {
        WORKSPACE.with_borrow_mut(|workspace| self.judge_with(request, workspace, Count))
    }

    /// What [`Judge::judge`] would find now, without counting the request. Changes nothing. For a
    /// request that was judged before and that a proxy asks about again.
    pub fn preview(&self, request: &RequestCopy) -> Judgement {
        WORKSPACE.with_borrow_mut(|workspace| self.judge_with(request, workspace, Check))
    }

    /// Judges a request by the policies in force. Only with `RateCheckMode::Count` it counts, and
    /// changes the ledger, the proofs and the marks. For a host of no site only the claim is found.
    fn judge_with(
        &self,
        request: &RequestCopy,
        workspace: &mut JudgeWorkspace,
        rate: RateCheckMode,
    ) -> Judgement {
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target());
        let facts = request.to_facts(&target);
        let claimant = match self.find_claimant(&snapshot, &facts, &mut workspace.claims) {
            Ok(claimant) => claimant,
            Err(claim) => return Judgement::Unclaimed { claim, snapshot },
        };
        let mut evaluation = self.evaluate(request, claimant, facts);
        if rate == Count
            && !self
                .proofs
                .record_signature(&evaluation.identity_effects, facts.now)
        {
            // Another address used the same signature first: evaluating again finds that.
            evaluation = self.evaluate(request, claimant, facts);
        }
        let decision = self.decide(request, &evaluation.input, rate, &mut workspace.scratch);
        let IdentityFinding { proof, doubt, .. } = evaluation.finding;
        let signature = request
            .signature()
            .map(|_| evaluation.finding.signature_text());
        let good_signature = evaluation
            .identity_effects
            .take_good_signature()
            .filter(|_| proof == ProofKind::Signature)
            .map(Arc::new);
        let identity = evaluation.input.facts.identity;
        let cached_versions = evaluation.input.cached_versions;
        if rate == Count {
            self.apply_effects(evaluation, &decision, request);
        }
        let is_robots_txt = decision.action == Action::RobotsTxt;
        let withholds_robots_txt = is_robots_txt
            && self
                .peers
                .as_ref()
                .is_some_and(|peers| peers.withholds_robots_txt(request.arrived_at()));
        let older_until = cached_versions.older_until;
        Judgement::Judged(SiteJudgement {
            older_until: older_until.filter(|_| decision.is_in_doubt()),
            decision,
            identity,
            proof,
            signature,
            doubt,
            good_signature,
            cached: cached_versions.cached,
            basis: cached_versions.basis,
            may_confirm_by_date: cached_versions.has_version_in_force && claimant.has_unique_date(),
            withholds_robots_txt,
            snapshot,
        })
    }

    /// Finds the claimant of the request: the site of its host, and the crawler that the user agent
    /// claims to be.
    ///
    /// # Errors
    /// No site has the host. The error is the claim by the registry alone. A challenge (ACME) is no
    /// crawler's request: its claim is `Visitor`, with a site and without.
    fn find_claimant<'a>(
        &self,
        snapshot: &'a Arc<Snapshot>,
        facts: &RequestFacts<'_>,
        claims: &mut ClaimCache,
    ) -> Result<SiteClaim<'a>, Claim> {
        let agent = facts.user_agent;
        let identified = SiteClaim::find_with(snapshot, facts, |index, site| {
            claims.get_or_identify(snapshot, Some(index), agent, || {
                self.registry.identify_on_site(agent, &site.tokens)
            })
        });
        identified.ok_or_else(|| {
            if facts.is_challenge() {
                return Visitor;
            }
            let identified =
                claims.get_or_identify(snapshot, None, agent, || self.registry.identify(agent));
            claim_with_method(identified, facts.method)
        })
    }

    /// What [`Judge::judge`] would decide now, and why. Changes nothing. The user agent may be the
    /// bare token, id or name of a crawler; `response` is the answer of the origin that the tags
    /// are for.
    pub fn explain(&self, request: &RequestCopy, response: &ResponseFacts<'_>) -> Explanation {
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target());
        let facts = request.to_facts(&target);
        let Some(claimant) = SiteClaim::find_by_name(&snapshot, self.registry, &facts) else {
            return explain_unclaimed(self.registry, &facts, response);
        };
        let Evaluation {
            mut input,
            finding: IdentityFinding { proof, doubt, .. },
            ..
        } = self.evaluate(request, claimant, facts);
        let is_of_crawler = claimant.claim != Visitor && claimant.entry.site.perhaps_behind_cache;
        // The request to explain has no proxies: it is explained as one that came through the
        // proxies of recent requests.
        if request.proxies.is_none()
            && is_of_crawler
            && self.ledger.is_perhaps_cached(request.host(), facts.now)
        {
            input.cached_versions = input
                .cached_versions
                .with_possible_cache(claimant, facts.now);
        }
        let decision = self.decide(request, &input, Check, &mut DecisionScratch::default());
        let mut explanation = explain_decision(&input, &decision, response);
        explanation.proof = proof.name();
        explanation.doubt = doubt;
        if let (Known(crawler), Some(address)) = (claimant.claim, input.facts.client) {
            explanation
                .evidence
                .extend(self.proofs.explain(crawler, address, input.facts.now));
        }
        // A host that no crawler has requested yet, perhaps mistyped: name those that were.
        if self.cached_versions(request, claimant, false).1 == HostUpdate::Insert {
            let hosts = self.ledger.hosts_of_site(&claimant.entry.site.name);
            explanation.requested_hosts = Some(hosts);
        }
        explanation
    }

    /// The first half of judging: the identity of the claimant, and the versions that it may have
    /// cached. Changes nothing; `Judge::apply_effects` does that. The identity is not checked if
    /// the client claims no crawler, or nothing can prove the claim.
    fn evaluate<'a>(
        &self,
        request: &RequestCopy,
        claimant: SiteClaim<'a>,
        mut facts: RequestFacts<'a>,
    ) -> Evaluation<'a> {
        let SiteClaim { entry, claim, .. } = claimant;
        let mut finding = IdentityFinding::default();
        let mut identity_effects = IdentityEffects::default();
        let mut list_observation = None;
        if claim != Visitor
            && !request.is_peer_unknown
            && (facts.client.is_none()
                || !entry.site.networks.0.is_empty()
                || self.proofs.can_prove(claim))
        {
            (finding, identity_effects, list_observation) =
                self.check_identity(request, claimant, &facts);
            facts.identity = finding.identity;
        }
        // `false`: the peers have not reported yet what they served until this request.
        let (cached_versions, host_update) = self.cached_versions(request, claimant, false);
        Evaluation {
            input: RequestToJudge {
                registry: self.registry,
                facts,
                claimant,
                cached_versions,
            },
            finding,
            host_update,
            identity_effects,
            list_observation,
        }
    }

    /// The versions that the claimant may have cached, and the change of the record of its host. A
    /// crawler that came through proxies, one of which may be a cache, may have got any version
    /// that was in force. `peers_confirmed` says whether every peer has reported what it served
    /// until the request.
    fn cached_versions<'a>(
        &self,
        request: &RequestCopy,
        claimant: SiteClaim<'a>,
        peers_confirmed: bool,
    ) -> (CachedVersions<'a>, HostUpdate) {
        let moment = request.arrival_moment();
        let (cached_versions, host_update) = self.ledger.cached_versions(
            self.registry,
            claimant,
            request.host(),
            moment,
            peers_confirmed,
        );
        let is_of_crawler = claimant.claim != Visitor;
        let through = request
            .proxies
            .filter(|_| is_of_crawler && claimant.entry.site.perhaps_behind_cache);
        match through {
            Some(path) if !self.ledger.is_path_uncached(request.host(), path) => (
                cached_versions.with_possible_cache(claimant, moment.now),
                host_update,
            ),
            _ => (cached_versions, host_update),
        }
    }

    /// Checks a claimed identity, by the networks of the policy and by what operators publish. A
    /// list that verified no request of the crawler within a week proves no impostor: the finding
    /// is then `Suspended`. Also returns the effects to apply, and the result of the list (the
    /// site's, or the operator's: `None`), if it is to be recorded.
    fn check_identity<'a>(
        &self,
        request: &RequestCopy,
        claimant: SiteClaim<'a>,
        facts: &RequestFacts<'_>,
    ) -> (
        IdentityFinding,
        IdentityEffects,
        Option<(Option<&'a SiteEntry>, Identity)>,
    ) {
        let SiteClaim { entry, claim, .. } = claimant;
        let may_accuse = facts.client.is_some() && request.unread.is_empty();
        // The policy may list the address of a trusted proxy as the crawler's.
        let peer_facts = RequestFacts {
            client: request.logged,
            ..*facts
        };
        let by_policy = identity_by_policy(&entry.site, &peer_facts, claim, may_accuse);
        let signed = request.signature().map(|fields| SignedRequest {
            host: facts.host,
            target: facts.target,
            method: facts.method,
            user_agent: facts.user_agent,
            fields,
        });
        let claimed = IdentityClaim {
            claim,
            address: facts.client,
            may_accuse,
            by_policy,
            signed,
        };
        let (found, identity_effects) = self.proofs.evaluate(&claimed, facts.now);
        let list = match found.proof {
            // A signature proves one request, and says nothing about a list.
            ProofKind::None | ProofKind::Signature => return (found, identity_effects, None),
            ProofKind::Networks => Some(entry),
            _ => None,
        };
        let (identity, is_due) = self.ledger.list_health.check_identity(
            list_key(self.registry, list, claim),
            found.identity,
            facts.now,
        );
        let list_observation = is_due.then_some((list, found.identity));
        let finding = match identity {
            Identity::Suspended => IdentityFinding {
                identity,
                proof: ProofKind::None,
                doubt: Some(IdentityDoubt::Suspended),
                ..found
            },
            _ => IdentityFinding { identity, ..found },
        };
        (finding, identity_effects, list_observation)
    }

    /// Applies the effects of a request that counts: records the visit, the proofs and the result
    /// of the list, and marks a client that hit a trap. With peers the mark waits for
    /// `Judge::rejudge`.
    fn apply_effects(
        &self,
        evaluation: Evaluation<'_>,
        decision: &Decision,
        request: &RequestCopy,
    ) {
        let Evaluation {
            input,
            host_update,
            identity_effects,
            list_observation,
            ..
        } = evaluation;
        let SiteClaim { entry, claim, .. } = input.claimant;
        let now = input.facts.now;
        self.ledger
            .record_request(entry, input.facts.host, host_update, now);
        if input.cached_versions.basis == CachedVersionsBasis::PerhapsCached {
            self.ledger.record_perhaps_cached(input.facts.host, now);
        }
        self.proofs.apply(identity_effects, now);
        if let Some((list, identity)) = list_observation {
            self.ledger.list_health.record_identity(
                list_key(self.registry, list, claim),
                identity,
                now,
            );
        }
        // With peers the mark waits until they have reported what they served.
        if decision.trap_hit && self.peers.is_none() {
            self.behaviours
                .mark_client(&input, request.arrival.monotonic);
        }
    }

    /// Judges a request again after every peer has reported what it served until the request. Marks
    /// the client if the request still hits a trap. The action does not change, because it was
    /// taken. `None` if no site has the host any more.
    fn rejudge(&self, record: &RequestRecord) -> Option<SiteJudgement> {
        let judged = record.judged()?;
        let request = &record.request;
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target());
        let facts = RequestFacts {
            identity: judged.identity,
            ..request.to_facts(&target)
        };
        WORKSPACE.with_borrow_mut(|workspace| {
            let claimant = self
                .find_claimant(&snapshot, &facts, &mut workspace.claims)
                .ok()?;
            let (cached_versions, _) = self.cached_versions(request, claimant, true);
            let input = RequestToJudge {
                registry: self.registry,
                facts,
                claimant,
                cached_versions,
            };
            // A marked client would have been blocked for its mark, and not for this request.
            let behaviour = self
                .behaviours
                .evaluate(&input, request.arrival.monotonic, Check);
            let behaviour = RecentBehaviour {
                trapped: false,
                ..behaviour
            };
            let decision = decide_for(&input, behaviour, &mut workspace.scratch);
            if decision.trap_hit {
                self.behaviours
                    .mark_client(&input, request.arrival.monotonic);
            }
            let older_until = cached_versions.older_until;
            Some(SiteJudgement {
                older_until: older_until.filter(|_| decision.is_in_doubt()),
                decision: Decision {
                    action: judged.decision.action,
                    would: judged.decision.would,
                    ..decision
                },
                cached: cached_versions.cached,
                basis: cached_versions.basis,
                snapshot: snapshot.clone(),
                ..judged.clone()
            })
        })
    }

    /// Removes a judged request from the count against the crawl rate, because no server of the
    /// origin had a place for it. Returns the seconds after which the crawler may come again: its
    /// crawl delay, or 0 without one. A request that came too soon was not counted; for it, its
    /// Retry-After.
    pub fn undo_rate_count(&self, request: &RequestCopy, judged: &SiteJudgement) -> u32 {
        if let Some(seconds) = judged.decision.slow_retry_after() {
            return seconds;
        }
        let target = origin_form(request.target());
        let facts = RequestFacts {
            identity: judged.identity,
            ..request.to_facts(&target)
        };
        let claimant = judged.claimant(request.host());
        // As it was judged, before the peers reported what they served.
        let (cached_versions, _) = self.cached_versions(request, claimant, false);
        let input = RequestToJudge {
            registry: self.registry,
            facts,
            claimant,
            cached_versions,
        };
        let delay = self
            .behaviours
            .undo_rate_count(&input, request.arrival.monotonic)
            .unwrap_or_default();
        u32::try_from(delay.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX)
    }

    /// Records that the client of a judged request for robots.txt got a complete copy, or a 304 for
    /// its own copy. Does nothing for any other request. A 304 by date is only sent to a crawler
    /// that has the version in force according to the ledger.
    pub fn record_served(&self, record: &RequestRecord, now: Timestamp) {
        let Some(judged) = record.judged() else {
            return;
        };
        let request = &record.request;
        if judged.decision.action != Action::RobotsTxt {
            return;
        }
        let facts = RequestFacts {
            identity: judged.identity,
            now,
            ..request.to_facts(b"/robots.txt")
        };
        self.behaviours
            .record_served(self.registry, judged.claimant(request.host()), &facts);
        self.ledger.record_served(
            self.registry,
            judged.entry(),
            request.host(),
            judged.decision.claim,
            now,
        );
        if let Some(path) = request.proxies {
            self.ledger.record_fetch_path(
                self.registry,
                judged.entry(),
                request.host(),
                ProxiedFetch {
                    claim: judged.decision.claim,
                    path,
                },
                now,
            );
        }
    }

    /// The second half of judging: the recent behaviour of the client, and the decision. Counts the
    /// request against the crawl rate only with `RateCheckMode::Count`.
    fn decide(
        &self,
        request: &RequestCopy,
        input: &RequestToJudge<'_>,
        rate: RateCheckMode,
        scratch: &mut DecisionScratch,
    ) -> Decision {
        let behaviour = self
            .behaviours
            .evaluate(input, request.arrival.monotonic, rate);
        let decision = decide_for(input, behaviour, scratch);
        if request.has_license_token {
            decision.with_license_token()
        } else {
            decision
        }
    }
}

#[cfg(test)]
mod tests;
