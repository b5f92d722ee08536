//! [`Judge`] judges a request: which crawler the client claims to be, whether that is proven, which
//! versions of robots.txt it may have cached, how it behaved lately, and what crawlgate does. A
//! request is judged only once, because judging counts it towards the crawl rate and notes requests
//! for traps. [`Judge::explain`] takes the same steps and changes nothing. [`Recorder`] records the
//! outcome.

mod claims;
mod peers;
mod recorder;

pub use peers::{PeerConfirmation, Settled};
pub use recorder::{Logs, Recorder, watch_front_page};

use crate::crawlers::{Claim, Registry};
use crate::heads::origin_form;
use crate::identity::{Claimed, IdentityFinding, Proofs, Signed, ToDo};
use crate::ledger::{Behaviours, HostNews, Ledger, ProxyFetch, RateStep, list_of};
use crate::policy::{SiteEntry, Snapshot};
use crate::record::{Judged, Judgement, RequestFacts, RequestRecord};
use crate::sites::SiteManager;
use crate::time::Timestamp;
use crate::verdict::{
    Action, Behaviour, CachedVersions, Case, Claimant, Decision, Doubt, Explanation, Facts,
    HistoryBasis, Identity, Proof, ResponseFacts, Scratch, decide_for, identity_by_policy, report,
    report_unclaimed,
};
use claims::Workspace;
use std::sync::Arc;

/// Judges requests. All doors share one judge.
pub struct Judge {
    /// The policies in force.
    sites: Arc<SiteManager>,
    /// Known crawlers.
    pub registry: &'static Registry,
    /// Which robots.txt was served to which crawler.
    ledger: Arc<Ledger>,
    /// What proves crawlers, beside the networks of policies.
    proofs: Arc<Proofs>,
    /// What clients did recently.
    behaviours: Arc<Behaviours>,
    /// Other instances in front of the same sites.
    peers: Option<Arc<PeerConfirmation>>,
}

/// What a look at a request found, and what the judge does about it once the request counts.
struct Look<'a> {
    case: Case<'a>,
    finding: IdentityFinding,
    /// What the request says of its host.
    visit: HostNews,
    /// What is to be noted or asked about its claim.
    to_do: ToDo,
    /// What a list of networks said of its address, where that is worth a note: the site's list or
    /// the operator's.
    by_list: Option<(Option<&'a SiteEntry>, Identity)>,
}

impl Judge {
    /// A judge with these parts. `peers` are other instances in front of the same sites.
    pub fn new(
        sites: Arc<SiteManager>,
        ledger: Arc<Ledger>,
        proofs: Arc<Proofs>,
        behaviours: Arc<Behaviours>,
        registry: &'static Registry,
        peers: Option<Arc<PeerConfirmation>>,
    ) -> Judge {
        Judge {
            sites,
            registry,
            ledger,
            proofs,
            behaviours,
            peers,
        }
    }

    /// Judges a request, which must not have been judged before: it counts against the crawl rate,
    /// as a visit of the host, and where it hits a trap.
    pub fn judge(&self, request: &RequestFacts) -> Judgement {
        claims::with_workspace(|workspace| self.judgement(request, workspace, RateStep::Counts))
    }

    /// What [`Judge::judge`] would find now, without counting the request. Changes nothing. For one
    /// that was judged already and that a proxy asks about a second time.
    pub fn look(&self, request: &RequestFacts) -> Judgement {
        claims::with_workspace(|workspace| self.judgement(request, workspace, RateStep::Looks))
    }

    /// Judges a request by the policies in force. Only with `RateStep::Counts` it counts, and
    /// leaves traces in the ledger, the proofs and the marks. For a host of no site only the claim
    /// is found.
    fn judgement(
        &self,
        request: &RequestFacts,
        workspace: &mut Workspace,
        rate: RateStep,
    ) -> Judgement {
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target());
        let facts = request.for_engine(&target);
        let claimant = match self.claimed(&snapshot, &facts, &mut workspace.claims) {
            Ok(claimant) => claimant,
            Err(claim) => return Judgement::Unclaimed { claim, snapshot },
        };
        let mut look = self.look_at(request, claimant, facts);
        if rate == RateStep::Counts && !self.proofs.record_signature(&look.to_do, facts.now) {
            // Another address was faster with the same signature: a second look finds that out.
            look = self.look_at(request, claimant, facts);
        }
        let decision = self.decision(request, &look.case, rate, &mut workspace.scratch);
        let IdentityFinding { proof, doubt, .. } = look.finding;
        let signature = request.signature().map(|_| look.finding.of_signature());
        let good_signature = look
            .to_do
            .take_signature()
            .filter(|_| proof == Proof::Signature)
            .map(Arc::new);
        let identity = look.case.facts.identity;
        let CachedVersions {
            cached,
            has_version_in_force,
            basis,
            older_until,
            ..
        } = look.case.cached_versions;
        let older_until = older_until.filter(|_| decision.is_in_doubt());
        if rate == RateStep::Counts {
            self.take_up(look, &decision, request);
        }
        let is_robots_txt = decision.action == Action::RobotsTxt;
        let is_silent = is_robots_txt
            && self
                .peers
                .as_ref()
                .is_some_and(|peers| peers.is_silent(request.now()));
        let may_confirm_by_date = has_version_in_force && claimant.is_told_by_its_date();
        Judgement::Judged(Judged {
            decision,
            identity,
            proof,
            signature,
            doubt,
            good_signature,
            cached,
            basis,
            older_until,
            may_confirm_by_date,
            is_silent,
            snapshot,
        })
    }

    /// The claimant of the request: the site of its host, and which crawler the user agent claims
    /// to be.
    ///
    /// # Errors
    /// No site has the host. The error is the claim by the registry alone. A challenge (ACME) is no
    /// crawler's request: its claim is `Nobody`, with a site and without.
    fn claimed<'a>(
        &self,
        snapshot: &'a Arc<Snapshot>,
        facts: &Facts<'_>,
        claims: &mut claims::Claims,
    ) -> Result<Claimant<'a>, Claim> {
        let agent = facts.user_agent;
        let identified = Claimant::identified(snapshot, facts, |index, site| {
            claims.claim(snapshot, Some(index), agent, || {
                self.registry.identify_with(agent, &site.tokens)
            })
        });
        identified.ok_or_else(|| {
            if facts.is_challenge() {
                return Claim::Nobody;
            }
            claims.claim(snapshot, None, agent, || self.registry.identify(agent))
        })
    }

    /// What [`Judge::judge`] would decide now, and why. Changes nothing. The user agent may be the
    /// bare token, id or name of a crawler; `response` is the answer of the origin that the tags
    /// are for.
    pub fn explain(&self, request: &RequestFacts, response: &ResponseFacts<'_>) -> Explanation {
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target());
        let facts = request.for_engine(&target);
        let Some(claimant) = Claimant::named(&snapshot, self.registry, &facts) else {
            return report_unclaimed(self.registry, &facts, response);
        };
        let Look {
            mut case,
            finding: IdentityFinding { proof, doubt, .. },
            ..
        } = self.look_at(request, claimant, facts);
        let is_of_crawler =
            claimant.claim != Claim::Nobody && claimant.entry.site.perhaps_behind_cache;
        // Who asks names no proxies: the answer is that of the requests that came through them
        // lately.
        if request.proxies.is_none()
            && is_of_crawler
            && self.ledger.is_perhaps_cached(request.host(), facts.now)
        {
            case.cached_versions = case.cached_versions.perhaps_cached(claimant, facts.now);
        }
        let decision = self.decision(request, &case, RateStep::Looks, &mut Scratch::default());
        let mut explanation = report(&case, &decision, response);
        explanation.proof = proof.name();
        explanation.doubt = doubt;
        if let (Claim::Known(crawler), Some(address)) = (claimant.claim, case.facts.client) {
            explanation
                .evidence
                .extend(self.proofs.evidence(crawler, address, case.facts.now));
        }
        // A host that no crawler has requested yet, perhaps mistyped: name those that were.
        if self.cached_versions(request, claimant, false).1 == HostNews::New {
            let hosts = self.ledger.hosts_of(&claimant.entry.site.name);
            explanation.requested_hosts = Some(hosts);
        }
        explanation
    }

    /// The first half of judging: what is proven of the claimant, and what it may have cached.
    /// Changes nothing: `Judge::take_up` does what it leaves to do. No proof is sought for a client
    /// that claims no crawler, or where nothing can prove the claim.
    fn look_at<'a>(
        &self,
        request: &RequestFacts,
        claimant: Claimant<'a>,
        mut facts: Facts<'a>,
    ) -> Look<'a> {
        let Claimant { entry, claim, .. } = claimant;
        let mut finding = IdentityFinding::default();
        let mut to_do = ToDo::default();
        let mut by_list = None;
        let is_unknown = facts.client.is_none();
        if claim != Claim::Nobody
            && (is_unknown || !entry.site.networks.is_empty() || self.proofs.can_prove(claim))
        {
            (finding, to_do, by_list) = self.identity(request, claimant, &facts);
            facts.identity = finding.identity;
        }
        // `false`: other instances have not told yet what they served until this request.
        let (cached_versions, visit) = self.cached_versions(request, claimant, false);
        Look {
            case: Case {
                registry: self.registry,
                facts,
                claimant,
                cached_versions,
            },
            finding,
            visit,
            to_do,
            by_list,
        }
    }

    /// What the claimant may have cached, and what the request adds to the knowledge of its host. A
    /// crawler that came through proxies, of which one may be a cache, may have got any version
    /// that was in force. `has_heard_all` says whether every other instance has told what it
    /// served.
    fn cached_versions<'a>(
        &self,
        request: &RequestFacts,
        claimant: Claimant<'a>,
        has_heard_all: bool,
    ) -> (CachedVersions<'a>, HostNews) {
        let moment = request.moment();
        let (cached_versions, visit) = self.ledger.look(
            self.registry,
            claimant,
            request.host(),
            moment,
            has_heard_all,
        );
        let is_of_crawler = claimant.claim != Claim::Nobody;
        let through = request
            .proxies
            .filter(|_| is_of_crawler && claimant.entry.site.perhaps_behind_cache);
        match through {
            Some(path) if !self.ledger.is_uncached(request.host(), path) => {
                (cached_versions.perhaps_cached(claimant, moment.now), visit)
            }
            _ => (cached_versions, visit),
        }
    }

    /// What is proven of a claim: by the networks of the policy and by what operators publish. A
    /// list that verified no request of the crawler within a week accuses nobody: then the finding
    /// is `Suspended`. Returns as well what is left to do, and which list (the site's, or the
    /// operator's: `None`) said what, if that is to be recorded.
    fn identity<'a>(
        &self,
        request: &RequestFacts,
        claimant: Claimant<'a>,
        facts: &Facts<'_>,
    ) -> (
        IdentityFinding,
        ToDo,
        Option<(Option<&'a SiteEntry>, Identity)>,
    ) {
        let Claimant { entry, claim, .. } = claimant;
        let may_accuse = facts.client.is_some() && request.unread.is_empty();
        // The owner's networks may have the crawler itself, though the settings trust its address.
        let of_peer = Facts {
            client: request.logged,
            ..*facts
        };
        let by_policy = identity_by_policy(&entry.site, &of_peer, claim, may_accuse);
        let signed = request.signature().map(|fields| Signed {
            host: facts.host,
            target: facts.target,
            method: facts.method,
            user_agent: facts.user_agent,
            fields,
        });
        let claimed = Claimed {
            claim,
            address: facts.client,
            may_accuse,
            by_policy,
            signed,
        };
        let (found, to_do) = self.proofs.look(&claimed, facts.now);
        let list = match found.proof {
            // A signature proves one request, and says nothing about lists.
            Proof::None | Proof::Signature => return (found, to_do, None),
            Proof::Networks => Some(entry),
            _ => None,
        };
        let (identity, is_due) = self.ledger.list_health.look(
            list_of(self.registry, list, claim),
            found.identity,
            facts.now,
        );
        let by_list = is_due.then_some((list, found.identity));
        let finding = match identity {
            Identity::Suspended => IdentityFinding {
                identity,
                proof: Proof::None,
                doubt: Some(Doubt::Suspended),
                ..found
            },
            _ => IdentityFinding { identity, ..found },
        };
        (finding, to_do, by_list)
    }

    /// Does what `Judge::look_at` left to do, because the request counts: records the visit, the
    /// proofs and what the lists said, and marks a client that hit a trap. With other instances the
    /// mark waits for `Judge::judged_again`, until they have told what they served.
    fn take_up(&self, look: Look<'_>, decision: &Decision, request: &RequestFacts) {
        let Look {
            case,
            visit,
            to_do,
            by_list,
            ..
        } = look;
        let Claimant { entry, claim, .. } = case.claimant;
        let now = case.facts.now;
        self.ledger.note_request(entry, case.facts.host, visit, now);
        if case.cached_versions.basis == HistoryBasis::PerhapsCached {
            self.ledger.record_perhaps_cached(case.facts.host, now);
        }
        self.proofs.take_up(to_do, now);
        if let Some((list, identity)) = by_list {
            self.ledger
                .list_health
                .note(list_of(self.registry, list, claim), identity, now);
        }
        // With other instances the mark waits until they have told what they served.
        if decision.trap_hit && self.peers.is_none() {
            self.behaviours.mark(&case, request.arrival.lived);
        }
    }

    /// Judges a request once more that was judged before, now that every other instance has told
    /// what it served until then. Marks the client if it still hits a trap. The action stays what
    /// it was, because it was taken. `None` if no site has the host any more.
    fn judged_again(&self, record: &RequestRecord) -> Option<Judged> {
        let judged = record.judged()?;
        let request = &record.request;
        let snapshot = self.sites.snapshot();
        let target = origin_form(request.target());
        let facts = Facts {
            identity: judged.identity,
            ..request.for_engine(&target)
        };
        claims::with_workspace(|workspace| {
            let claimant = self
                .claimed(&snapshot, &facts, &mut workspace.claims)
                .ok()?;
            let (cached_versions, _) = self.cached_versions(request, claimant, true);
            let case = Case {
                registry: self.registry,
                facts,
                claimant,
                cached_versions,
            };
            // It was no client with a mark, or it would have been refused for that.
            let behaviour = self
                .behaviours
                .look(&case, request.arrival.lived, RateStep::Looks);
            let behaviour = Behaviour {
                trapped: false,
                ..behaviour
            };
            let decision = decide_for(&case, behaviour, &mut workspace.scratch);
            if decision.trap_hit {
                self.behaviours.mark(&case, request.arrival.lived);
            }
            let Decision { action, would, .. } = judged.decision;
            let CachedVersions {
                cached,
                basis,
                older_until,
                ..
            } = cached_versions;
            let older_until = older_until.filter(|_| decision.is_in_doubt());
            let decision = Decision {
                action,
                would,
                ..decision
            };
            Some(Judged {
                decision,
                cached,
                basis,
                older_until,
                snapshot: snapshot.clone(),
                ..judged.clone()
            })
        })
    }

    /// Undoes that a judged request counts against the crawl rate, because it was turned away for
    /// want of a place, which is not the crawler's doing. Returns after how many seconds the
    /// crawler may come again: its crawl delay, zero without one. A request that came too soon had
    /// not counted: then its own Retry-After.
    pub fn take_back(&self, request: &RequestFacts, judged: &Judged) -> u32 {
        let Judged {
            decision, identity, ..
        } = judged;
        if let Some(seconds) = decision.slowed_for() {
            // It came too soon, and did not count.
            return seconds;
        }
        let target = origin_form(request.target());
        let facts = Facts {
            identity: *identity,
            ..request.for_engine(&target)
        };
        let claimant = judged.claimant(request.host());
        // As it was judged, before other instances told what they served.
        let (cached_versions, _) = self.cached_versions(request, claimant, false);
        let case = Case {
            registry: self.registry,
            facts,
            claimant,
            cached_versions,
        };
        let delay = self
            .behaviours
            .take_back(&case, request.arrival.lived)
            .unwrap_or_default();
        u32::try_from(delay.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX)
    }

    /// Records that the client of a judged request for robots.txt got a whole copy, or a 304 for
    /// its own copy. Does nothing for any other request. A 304 to a date is only sent to a crawler
    /// that the ledger knows to have the version in force.
    pub fn served(&self, record: &RequestRecord, now: Timestamp) {
        let Some(judged) = record.judged() else {
            return;
        };
        let Judged {
            decision, identity, ..
        } = judged;
        let request = &record.request;
        if decision.action != Action::RobotsTxt {
            return;
        }
        let facts = Facts {
            identity: *identity,
            now,
            ..request.for_engine(b"/robots.txt")
        };
        self.behaviours
            .served(self.registry, judged.claimant(request.host()), &facts);
        self.ledger.served(
            self.registry,
            judged.entry(),
            request.host(),
            decision.claim,
            now,
        );
        if let Some(path) = request.proxies {
            self.ledger.served_through(
                self.registry,
                judged.entry(),
                request.host(),
                ProxyFetch {
                    claim: decision.claim,
                    path,
                },
                now,
            );
        }
    }

    /// The second half of judging: how the client behaved lately, and what crawlgate does. A
    /// licence token in the request may change the decision. Counts against the crawl rate only
    /// with `RateStep::Counts`.
    fn decision(
        &self,
        request: &RequestFacts,
        case: &Case<'_>,
        rate: RateStep,
        scratch: &mut Scratch,
    ) -> Decision {
        let behaviour = self.behaviours.look(case, request.arrival.lived, rate);
        let decision = decide_for(case, behaviour, scratch);
        if request.has_license_token {
            decision.with_license_token()
        } else {
            decision
        }
    }
}

#[cfg(test)]
mod tests;
