//! [`Judge`]: claim, identity, cached versions, behaviour and decision of a request. A request is judged once, because
//! judging counts: crawl rate and traps. [`Judge::explain`] goes the same way and changes nothing. [`Recorder`] writes down
//! what was sent. Knows plain bytes and values; must not know Pingora, nor how an answer is made.

mod claims;
mod judgement;
mod outcome;
mod recorder;
mod request;
mod workspace;

pub use judgement::{Judged, Judgement, Unclaimed};
pub use outcome::{Outcome, Unjudged};
pub use recorder::{Logs, Recorder};
pub use request::RequestFacts;

use crate::crawlers::{Claim, Registry};
use crate::heads::origin_form;
use crate::identity::{Claimed, Finding, Proofs, Signed};
use crate::ledger::{Behaviours, Ledger};
use crate::policy::Snapshot;
use crate::sites::SiteManager;
use crate::time::Timestamp;
use crate::verdict::{
    Action, Behaviour, CachedVersions, Case, Claimant, Decision, Doubt, Explanation, Facts, Identity, Proof,
    ResponseFacts, Scratch, decide_for, identity_by_policy, report, report_unclaimed,
};
use std::sync::Arc;
use workspace::Workspace;

/// What requests are judged by. All doors share one.
pub struct Judge {
    /// The policies in force.
    sites: Arc<SiteManager>,
    registry: &'static Registry,
    /// Which robots.txt was served to which crawler.
    ledger: Arc<Ledger>,
    /// What proves crawlers, beside the networks of policies.
    proofs: Arc<Proofs>,
    /// What clients did recently.
    behaviours: Arc<Behaviours>,
}

/// Whether the sequence leaves traces: in the ledger, the crawl rate and the marked clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Traces {
    Left,
    None,
}

impl Judge {
    /// Judges by these.
    pub fn new(
        sites: Arc<SiteManager>,
        ledger: Arc<Ledger>,
        proofs: Arc<Proofs>,
        behaviours: Arc<Behaviours>,
        registry: &'static Registry,
    ) -> Judge {
        Judge { sites, registry, ledger, proofs, behaviours }
    }

    /// Known crawlers.
    pub fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// Judges a request. The request counts: against the crawl rate, as a visit of the host, and where it hits a trap.
    pub fn judge(&self, request: &RequestFacts<'_>) -> Judgement {
        workspace::with(|workspace| self.judgement(request, workspace, Traces::Left))
    }

    /// What [`Judge::judge`] would find now. Changes nothing: for a request that was judged already, and that a proxy
    /// asks about a second time.
    pub fn look(&self, request: &RequestFacts<'_>) -> Judgement {
        workspace::with(|workspace| self.judgement(request, workspace, Traces::None))
    }

    fn judgement(&self, request: &RequestFacts<'_>, workspace: &mut Workspace, traces: Traces) -> Judgement {
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target);
        let facts = request.facts(&target);
        let claimant = match self.claimed(&snapshot, &facts, &mut workspace.claims) {
            Ok(claimant) => claimant,
            Err(claim) => return Judgement::Unclaimed(Unclaimed { claim, snapshot }),
        };
        let (case, Finding { proof, signature, doubt, .. }) = self.case(request, claimant, facts, traces);
        let decision = self.decision(request, &case, traces, &mut workspace.scratch);
        let (identity, CachedVersions { cached, has_version_in_force, basis, .. }) =
            (case.facts.identity, case.cached_versions);
        let may_confirm_by_date = has_version_in_force && claimant.is_told_by_its_date();
        Judgement::Judged(Judged {
            decision,
            identity,
            proof,
            signature,
            doubt,
            cached,
            basis,
            may_confirm_by_date,
            snapshot,
        })
    }

    /// Who claims to send the request to which site, or only who where no site claims the host.
    fn claimed<'a>(
        &self,
        snapshot: &'a Arc<Snapshot>,
        facts: &Facts<'_>,
        claims: &mut claims::Claims,
    ) -> Result<Claimant<'a>, Claim> {
        let agent = facts.user_agent;
        let identified = Claimant::identified(snapshot, facts, |site, tokens| {
            claims.claim(snapshot, Some(site), agent, || self.registry.identify_with(agent, tokens))
        });
        identified.ok_or_else(|| claims.claim(snapshot, None, agent, || self.registry.identify(agent)))
    }

    /// What [`Judge::judge`] would decide now, and why. Changes nothing. The user agent may be the bare token, id or
    /// name of a crawler; `response` is the answer of the origin that the tags are for.
    pub fn explain(&self, request: &RequestFacts<'_>, response: &ResponseFacts<'_>) -> Explanation {
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target);
        let facts = request.facts(&target);
        let Some(claimant) = Claimant::named(&snapshot, self.registry, &facts) else {
            return report_unclaimed(self.registry, &facts, response);
        };
        let (case, Finding { proof, doubt, .. }) = self.case(request, claimant, facts, Traces::None);
        let decision = self.decision(request, &case, Traces::None, &mut Scratch::default());
        let mut explanation = report(&case, &decision, response);
        (explanation.proof, explanation.doubt) = (proof.name(), doubt);
        if let (Claim::Known(crawler), Some(address)) = (claimant.claim, case.facts.client) {
            explanation.evidence = self.proofs.evidence(crawler, address, case.facts.now);
        }
        explanation
    }

    /// The first half of the sequence: identity, with what it rests on, and cached versions of a claimant.
    fn case<'a>(
        &self,
        request: &RequestFacts<'_>,
        claimant: Claimant<'a>,
        mut facts: Facts<'a>,
        traces: Traces,
    ) -> (Case<'a>, Finding) {
        let Claimant { entry, claim, .. } = claimant;
        let mut finding = Finding::default();
        if claim != Claim::Nobody && (entry.site.lists_addresses() || self.proofs.can_prove(claim)) {
            finding = self.identity(request, claimant, &facts, traces);
            facts.identity = finding.identity;
        }
        let cached_versions = match traces {
            Traces::Left => self.ledger.check(self.registry, claimant, facts.host, request.moment()),
            Traces::None => self.ledger.peek(self.registry, claimant, facts.host, request.moment()),
        };
        (Case { registry: self.registry, facts, claimant, cached_versions }, finding)
    }

    /// What is proven of a claim: by the networks of the policy, by what operators publish, and by how well either has
    /// described the crawler so far.
    fn identity(
        &self,
        request: &RequestFacts<'_>,
        claimant: Claimant<'_>,
        facts: &Facts<'_>,
        traces: Traces,
    ) -> Finding {
        let Claimant { entry, claim, .. } = claimant;
        let may_accuse = request.address_may_accuse;
        let by_policy = identity_by_policy(&entry.site, facts, claim, may_accuse);
        let signed = request.signature.map(|fields| Signed {
            host: facts.host,
            target: facts.target,
            method: facts.method,
            user_agent: facts.user_agent,
            fields,
        });
        let claimed = Claimed { claim, address: facts.client, may_accuse, by_policy, signed };
        let (registry, ledger, now) = (self.registry, &self.ledger, facts.now);
        let found = match traces {
            Traces::Left => self.proofs.check(&claimed, now),
            Traces::None => self.proofs.peek(&claimed, now),
        };
        let identity = match (found.proof, traces) {
            // A signature proves one request, and says nothing about lists.
            (Proof::None | Proof::Signature, _) => found.identity,
            (Proof::Networks, Traces::Left) => ledger.check_identity(registry, entry, claim, found.identity, now),
            (Proof::Networks, Traces::None) => ledger.peek_identity(registry, entry, claim, found.identity, now),
            (_, Traces::Left) => ledger.check_published(registry, claim, found.identity, now),
            (_, Traces::None) => ledger.peek_published(registry, claim, found.identity, now),
        };
        match identity {
            Identity::Suspended => Finding { identity, proof: Proof::None, doubt: Some(Doubt::Suspended), ..found },
            _ => Finding { identity, ..found },
        }
    }

    /// Notes that the client of a request got a whole copy of robots.txt, or word that its own copy is good. A 304 to a
    /// date is only sent to a crawler that the ledger knows to have the version in force. Other requests leave no trace.
    pub fn served(&self, request: &RequestFacts<'_>, judged: &Judged, now: Timestamp) {
        let Judged { decision, identity, .. } = judged;
        if decision.action != Action::RobotsTxt {
            return;
        }
        let (entry, claim) = (judged.entry(), decision.claim);
        let facts = Facts { identity: *identity, now, ..request.facts(b"/robots.txt") };
        let claimant = Claimant { site: decision.site, entry, history: judged.history(request.host), claim };
        self.behaviours.served(self.registry, claimant, &facts);
        self.ledger.served(self.registry, entry, request.host, claim, now);
    }

    /// The second half: behaviour and decision.
    fn decision(&self, request: &RequestFacts<'_>, case: &Case<'_>, traces: Traces, scratch: &mut Scratch) -> Decision {
        let behaviour: Behaviour = match traces {
            Traces::Left => self.behaviours.check(case, request.lived),
            Traces::None => self.behaviours.peek(case, request.lived),
        };
        let decision = decide_for(case, behaviour, scratch);
        if decision.trap_hit && traces == Traces::Left {
            self.behaviours.mark(case, request.lived);
        }
        if request.has_license_token { decision.with_license_token() } else { decision }
    }
}

#[cfg(test)]
mod tests;
