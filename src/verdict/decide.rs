//! [`decide`] and [`decide_for`] judge one request: first whether robots.txt allows the request,
//! then which [`Action`] (such as pass or block) the policy takes. [`crawl_delay`] is the delay
//! that a crawler must keep. No function here takes a lock or reads a clock.

use super::challenge::is_challenge;
use super::decision::{Action, Decision, RobotsReadings, RuleRef};
use super::identity::Identity;
use super::{
    CachedVersions, DecisionScratch, RecentBehaviour, RequestFacts, RequestToJudge, SiteClaim,
};
use crate::crawlers::{Claim, Registry, RobotsObedience};
use crate::policy::model::{
    EnforcementMode, IdentityStatus, Kind, PauseAudience, UnverifiedTreatment, Verdict,
};
use crate::policy::site::{
    CrawlerRules, GoogleParsing, GroupBinding, ParsedRobotsVersion, PathSignals, PauseWindow,
    RobotsTxtAnswer, Site, Snapshot,
};
use crate::robots::{Dialect, GoogleRules, RequestTarget, RuleSet};
use crate::time::Timestamp;
use crate::yaml::saturating_u32;
use std::time::Duration;

use Action::*;
use GroupBinding::*;
use Kind::{Exempt, StaleCopy, TooFast, Trapped, Unproven, Violation};
use RobotsReadings::*;

/// Judges a request by its facts and the versions that the crawler may have cached. The client's
/// recent behaviour does not count. `None` if no site has the host: the request is forwarded
/// untouched. Does not allocate, unless more than eight tag rules match.
pub fn decide(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &RequestFacts<'_>,
    cached_versions: &CachedVersions<'_>,
    scratch: &mut DecisionScratch,
) -> Option<Decision> {
    let claimant = SiteClaim::find(snapshot, registry, facts)?;
    let request = RequestToJudge {
        registry,
        facts: *facts,
        claimant,
        cached_versions: *cached_versions,
    };
    Some(decide_for(&request, RecentBehaviour::default(), scratch))
}

/// Judges a request whose claimant is known, with the client's recent behaviour. With
/// `mode: observe` the request passes, and `would` is the answer of enforcement. Pauses,
/// robots.txt and tdmrep.json come before all rules.
pub fn decide_for(
    request: &RequestToJudge<'_>,
    behaviour: RecentBehaviour,
    scratch: &mut DecisionScratch,
) -> Decision {
    let site = &*request.claimant.entry.site;
    let target = scratch.target.normalise(request.facts.target);
    let inputs = DecisionInputs {
        request,
        behaviour,
        rules: request.claimant.rules(),
        target,
    };
    let outcome = inputs.apply_rules();
    let signals = site.signals.for_path(target);
    let trap_hit = inputs.is_trap_hit(&outcome);
    let EnforcementOutcome { kind, refusal } = inputs.enforce(&outcome, trap_hit, signals);
    let mode = inputs.rules.mode_for(request.facts.identity.to_status());
    let (action, would) = match (inputs.action_before_rules(), refusal, mode) {
        (Some(action), ..) => (action, None),
        (None, Some(refusal), EnforcementMode::Enforce) => (refusal, None),
        (None, Some(refusal), EnforcementMode::Observe) => (Pass, Some(refusal)),
        (None, ..) => (Pass, None),
    };
    Decision {
        site: request.claimant.site,
        claim: request.claimant.claim,
        verdict: outcome.verdict,
        readings: outcome.readings,
        kind,
        never_fetched: kind == Violation && !request.cached_versions.was_served,
        rule: outcome.rule,
        action,
        would,
        trap_hit: trap_hit && kind != Kind::Impostor,
        path_rules: site.tags.for_path(target, &mut scratch.decoded),
        signals,
        robots_txt: target.reaches_robots_txt(),
        recorded: inputs.rules.mode != EnforcementMode::Off,
    }
}

/// One request to judge, with the values that all steps of the decision use.
struct DecisionInputs<'a> {
    request: &'a RequestToJudge<'a>,
    behaviour: RecentBehaviour,
    rules: CrawlerRules,
    target: RequestTarget<'a>,
}

/// The result of robots.txt: the verdict of the version in force, and the kind of the request,
/// which depends on the cached versions too.
struct RulesOutcome {
    verdict: Verdict,
    readings: RobotsReadings,
    kind: Kind,
    rule: Option<RuleRef>,
}

/// The result of enforcement: the kind of the request, and the answer to a request against the
/// rules. The mode decides whether the answer is sent.
struct EnforcementOutcome {
    kind: Kind,
    refusal: Option<Action>,
}

impl EnforcementOutcome {
    fn refuse(&mut self, kind: Kind, refusal: Action) {
        self.kind = kind;
        self.refusal = Some(refusal);
    }
}

impl<'a> DecisionInputs<'a> {
    fn site(&self) -> &'a Site {
        &self.request.claimant.entry.site
    }

    /// The verdict of the version in force and the kind of the request. A disallowed request is a
    /// stale copy if a cached version allows it, ambiguous if one disallows only what the path
    /// resolves to, `NotBound` for a crawler that ignores robots.txt, unproven if not all cached
    /// versions are known, else a violation.
    fn apply_rules(&self) -> RulesOutcome {
        use VersionVerdict::*;

        let (matched, rule) = self.match_version();
        let (verdict, kind) = match matched.verdict {
            NotACrawler => (Verdict::NotACrawler, Kind::NotACrawler),
            NotBound => (Verdict::NotBound, Kind::NotBound),
            Allowed => (Verdict::Allowed, Kind::Allowed),
            Disallowed | Ambiguous => {
                let kind = match mildest_cached_verdict(self.request, self.target) {
                    Allowed | NotBound | NotACrawler => StaleCopy,
                    _ if matched.verdict == Ambiguous => Kind::Ambiguous,
                    _ if self.rules.binds == RobotsObedience::Never => Kind::NotBound,
                    // A crawler that uses the mildest cached version obeys the RFC to the letter.
                    Ambiguous => Kind::Ambiguous,
                    Disallowed if self.request.cached_versions.is_complete() => Violation,
                    Disallowed => Unproven,
                };
                (Verdict::Disallowed, kind)
            }
        };
        RulesOutcome {
            verdict,
            readings: matched.readings,
            kind,
            rule,
        }
    }

    /// The verdict of the version in force, and the group of its document that applied, with the
    /// rule that decided, if one did; `None` without a group. A client that is not judged is no
    /// crawler. A request for tdmrep.json, which crawlgate hands out itself, is allowed.
    fn match_version(&self) -> (VersionOutcome, Option<RuleRef>) {
        let site = self.site();
        let verdict = match self.rules.binding {
            _ if !self.rules.judged => VersionVerdict::NotACrawler,
            GroupBinding::NotBound => VersionVerdict::NotBound,
            NoRules | Group(_) => VersionVerdict::Allowed,
        };
        let group = self.rules.binding.group().filter(|_| self.rules.judged);
        // crawlgate hands out this file to crawlers itself, so a request for it breaks no rule.
        let Some(group) = group.filter(|_| !site.signals.is_tdmrep(self.target)) else {
            let rule = group.map(|group| RuleRef { group, rule: None });
            return (VersionOutcome::without_rule(verdict), rule);
        };
        let rules = site.matcher.rules(group);
        let own = site.own_google_rules(self.rules.google_parsing);
        let google = match self.rules.google_parsing {
            GoogleParsing::Unused => None,
            _ => Some(own.map_or(rules, GoogleRules::rules)),
        };
        let matched = match_rules(rules, google, self.target);
        let place = match own.filter(|_| matched.uses_google_rule()) {
            Some(own) => matched.rule.and_then(|rule| own.source_rule(rule)),
            None => matched.rule.map(|rule| (group, Some(rule))),
        };
        let (group, rule) = place.unwrap_or((group, None));
        (matched, Some(RuleRef { group, rule }))
    }

    /// Whether enforcement applies to this request: the claimant is judged, the mode is not off,
    /// and the request is not for robots.txt or tdmrep.json, which are free for every client.
    fn is_enforced(&self) -> bool {
        let free = self.target.reaches_robots_txt() || self.site().signals.is_tdmrep(self.target);
        self.rules.judged && self.rules.mode != EnforcementMode::Off && !free
    }

    /// Whether the request hits a trap. The rules must disallow the URL as sent for this crawler,
    /// and each version that it may have cached must have the trap in the group that binds it. On a
    /// host that was not observed for long enough no trap counts: a crawler that was served the
    /// version in force may still use an older copy.
    fn is_trap_hit(&self, outcome: &RulesOutcome) -> bool {
        let against_the_rules = outcome.verdict == Verdict::Disallowed
            && matches!(outcome.kind, Violation | Unproven | Kind::NotBound);
        if !against_the_rules
            || self.rules.exempt
            || !self.request.cached_versions.is_complete()
            || !self.is_enforced()
        {
            return false;
        }
        let traps = &self.site().traps;
        let Some(trap) = traps
            .find(self.target.sent)
            .and_then(|trap| traps.rules().get(trap))
        else {
            return false;
        };
        self.request.cached_versions.superseded().all(|version| {
            let group = superseded_binding(self.request, &version.parsed).group();
            let matcher = &version.parsed.matcher;
            group.is_some_and(|group| matcher.rules(group).rules().contains(trap))
        })
    }

    /// Checks for an impostor first, also if the crawler is exempt; then, unless it is exempt, goes
    /// through `enforce_rules`, and at last demands a licence. Without enforcement the kind stays
    /// that of the rules, but a disallowed request of an exempt crawler is `Exempt`.
    fn enforce(
        &self,
        outcome: &RulesOutcome,
        trap_hit: bool,
        signals: PathSignals,
    ) -> EnforcementOutcome {
        let rules = self.rules;
        let kind = outcome.kind;
        let mut enforcement = EnforcementOutcome {
            kind,
            refusal: None,
        };
        let enforced = self.is_enforced();
        if enforced && self.request.facts.identity == Identity::Impostor {
            enforcement.refuse(Kind::Impostor, Block(rules.impostor));
        } else if enforced && !rules.exempt {
            enforcement = self.enforce_rules(outcome, trap_hit);
            enforcement.refusal = enforcement.refusal.or_else(|| self.license_demand(signals));
        } else if rules.exempt && outcome.verdict == Verdict::Disallowed && kind != StaleCopy {
            enforcement.kind = Exempt;
        }
        enforcement
    }

    /// The first that applies, in this order: a trap, the rules, the identity, the crawl rate. A
    /// client that hit a trap earlier is blocked too, unless it is verified.
    fn enforce_rules(&self, outcome: &RulesOutcome, trap_hit: bool) -> EnforcementOutcome {
        let rules = self.rules;
        let identity = self.request.facts.identity;
        let not_verified = identity.to_status() == IdentityStatus::Unverified;
        let mut enforcement = EnforcementOutcome {
            kind: outcome.kind,
            refusal: None,
        };
        match (outcome.verdict, outcome.kind) {
            // A verified crawler is blocked only for this request: a mark belongs to an address.
            _ if trap_hit || self.behaviour.trapped && identity != Identity::Verified => {
                enforcement.refuse(Trapped, Block(rules.trapped));
            }
            (Verdict::Disallowed, Kind::Ambiguous) => {
                enforcement.refusal = Some(Block(rules.ambiguous))
            }
            (Verdict::Disallowed, Violation | Unproven | Kind::NotBound) => {
                enforcement.refusal = Some(Block(rules.disallowed));
            }
            _ if rules.unverified == UnverifiedTreatment::Refuse && not_verified => {
                let may_be_proven = matches!(identity, Identity::Pending | Identity::Suspended);
                let answer = if may_be_proven {
                    rules.awaiting_proof
                } else {
                    rules.disallowed
                };
                enforcement.refuse(Kind::Unverified, Block(answer));
            }
            _ => {
                if let Some(wait) = self.behaviour.too_fast {
                    let retry_after = saturating_u32(wait.as_millis().div_ceil(1_000)).max(1);
                    // The crawler may have cached an unknown version with a shorter delay, or with
                    // none.
                    let kind = if self.request.cached_versions.is_complete() {
                        TooFast
                    } else {
                        Unproven
                    };
                    enforcement.refuse(
                        kind,
                        Slow {
                            answer: rules.too_fast,
                            retry_after,
                        },
                    );
                }
            }
        }
        enforcement
    }

    /// The demand for a licence. `None` if the policy demands none, if there is no licence for the
    /// path, and for a request for the terms themselves.
    fn license_demand(&self, signals: PathSignals) -> Option<Action> {
        let status = self.rules.unlicensed?;
        let site = self.site();
        site.signals.license(signals, self.rules.binding.group())?;
        (!site.signals.is_terms_page(self.target)).then_some(License { status })
    }

    fn is_paused_by(&self, pause: &PauseWindow) -> bool {
        pause.audience == PauseAudience::Everyone || self.rules.pausable
    }

    /// The action that comes before all rules: robots.txt (the file, or 503 during a pause for this
    /// client), tdmrep.json, or a pause. Challenges of certificate authorities pass during a pause.
    fn action_before_rules(&self) -> Option<Action> {
        let entry = self.request.claimant.entry;
        let target = self.target;
        let now = self.request.facts.now;
        if target.reaches_robots_txt() {
            let paused = match entry.robots_txt {
                RobotsTxtAnswer::Paused(place) => entry.pauses.get(place),
                RobotsTxtAnswer::File | RobotsTxtAnswer::AwaitsOrigin => None,
            };
            let paused = paused.filter(|pause| self.is_paused_by(pause));
            return Some(paused.map_or(RobotsTxt, |pause| pause_action(pause, now)));
        }
        if entry.site.signals.is_tdmrep(target) {
            return Some(Tdmrep);
        }
        let pause = entry
            .active_pause(now)
            .filter(|pause| self.is_paused_by(pause))?;
        (!is_challenge(self.request.facts.method, target.sent)).then(|| pause_action(pause, now))
    }
}

/// The answer during a pause. Its Retry-After is at most the rest of the pause, and at least a
/// second.
fn pause_action(pause: &PauseWindow, now: Timestamp) -> Action {
    let left = saturating_u32(pause.until.since(now).as_secs());
    Pause {
        retry_after: pause.retry_after.min(left).max(1),
    }
}

/// The crawl delay that a crawler must keep: the shortest of all versions that it may have cached,
/// and none if one of them has none. On a host that was not observed for long enough, the delay
/// binds only a client that was served the version in force, and a request that comes sooner is no
/// violation.
pub fn crawl_delay(request: &RequestToJudge<'_>, was_served_current: bool) -> Option<Duration> {
    let now = request.claimant.rules().crawl_delay?;
    let cached = &request.cached_versions;
    if cached.may_be_unknown || !cached.is_complete() && !was_served_current {
        return None;
    }
    cached.superseded().try_fold(now, |shortest, version| {
        let group = superseded_binding(request, &version.parsed).group()?;
        Some((*version.parsed.delays.get(group)?)?.min(shortest))
    })
}

/// The verdict of the rules of one version, the mildest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum VersionVerdict {
    NotACrawler,
    NotBound,
    Allowed,
    Ambiguous,
    Disallowed,
}

/// The verdict of one version, with the readings and the rule behind it.
struct VersionOutcome {
    verdict: VersionVerdict,
    readings: RobotsReadings,
    /// The index of the rule that decided.
    rule: Option<usize>,
}

impl VersionOutcome {
    fn without_rule(verdict: VersionVerdict) -> VersionOutcome {
        VersionOutcome {
            verdict,
            readings: RobotsReadings::default(),
            rule: None,
        }
    }

    /// Whether `rule` is an index into Google's rules. It is where only RFC 9309 disallows the
    /// request, so that the request is allowed.
    fn uses_google_rule(&self) -> bool {
        self.readings == OnlyRfc9309 && self.verdict == VersionVerdict::Allowed
    }
}

/// The verdict of one version alone. `google` has the rules as Google's published parser reads
/// them, for a crawler that uses it; then a request is disallowed only if both readings disallow
/// it. A path that is disallowed only as origins resolve it, or only as RFC 9309 normalises it, is
/// ambiguous. robots.txt is allowed.
fn match_rules(
    rules: &RuleSet,
    google: Option<&RuleSet>,
    target: RequestTarget<'_>,
) -> VersionOutcome {
    if target.reaches_robots_txt() {
        return VersionOutcome::without_rule(VersionVerdict::Allowed);
    }
    let sent = rules.find(target.sent);
    let is_disallowed = disallows(rules, sent);
    let by_google = google.map(|google| {
        // The same rules have the same result for a path in normal form.
        let is_same = std::ptr::eq(google, rules) && target.is_normal();
        let found = if is_same {
            sent
        } else {
            google.find(target.written)
        };
        (found, disallows(google, found))
    });
    let readings = match by_google {
        None => Rfc9309,
        Some((_, disallowed)) if disallowed == is_disallowed => Both,
        Some(_) if is_disallowed => OnlyRfc9309,
        Some(_) => OnlyGoogle,
    };
    let matched = |verdict, rule| VersionOutcome {
        verdict,
        readings,
        rule,
    };
    if is_disallowed {
        return match by_google {
            Some((found, false)) if target.is_normal() => matched(VersionVerdict::Allowed, found),
            // Another spelling of a page that both disallow: `/%63art/` of `/cart/`.
            Some((_, false)) => matched(VersionVerdict::Ambiguous, sent),
            _ => matched(VersionVerdict::Disallowed, sent),
        };
    }
    // Many origins resolve dot segments, doubled slashes, `%2F` and parameters. If only that makes
    // the path disallowed, the crawler obeyed the RFC to the letter and still reaches a closed
    // page. An Allow of the URL as sent counts if it is longer than the Disallow: `Allow: /` is
    // not. It never counts where dot segments or parameters were removed: `/public/../private` is
    // not in `/public/`, and `/private/x;.css` is no file of `/*.css$`.
    let closed = target.resolutions().find_map(|resolved| {
        let rule = rules.find(resolved.target)?;
        let outranks_sent = resolved.is_shortened
            || sent.is_none_or(|sent| rule_priority(rules, sent) < rule_priority(rules, rule));
        (disallows(rules, Some(rule)) && outranks_sent).then_some(rule)
    });
    match closed {
        Some(rule) => matched(VersionVerdict::Ambiguous, Some(rule)),
        None => matched(VersionVerdict::Allowed, sent),
    }
}

/// The priority of a rule among those that match; 0 for an index that has no rule.
fn rule_priority(rules: &RuleSet, rule: usize) -> usize {
    let rule = rules.rules().get(rule);
    rule.map_or(0, |rule| rule.pattern.priority())
}

/// Whether the rule that was found is a Disallow.
fn disallows(rules: &RuleSet, found: Option<usize>) -> bool {
    found
        .and_then(|rule| rules.rules().get(rule))
        .is_some_and(|rule| !rule.allow)
}

/// The mildest verdict of the superseded versions that a crawler may have cached, on a request that
/// the version in force disallows. A version whose rules are no longer known counts as one that
/// allows. Without superseded versions it is disallowed.
fn mildest_cached_verdict(
    request: &RequestToJudge<'_>,
    target: RequestTarget<'_>,
) -> VersionVerdict {
    if request.cached_versions.may_be_unknown {
        return VersionVerdict::Allowed;
    }
    request
        .cached_versions
        .superseded()
        .map(|version| superseded_verdict(request, &version.parsed, target))
        .min()
        .unwrap_or(VersionVerdict::Disallowed)
}

/// The verdict of a superseded version about the claimant's request, by its own groups, and by
/// Google's reading of them for Google's crawlers.
fn superseded_verdict(
    request: &RequestToJudge<'_>,
    parsed: &ParsedRobotsVersion,
    target: RequestTarget<'_>,
) -> VersionVerdict {
    let group = match superseded_binding(request, parsed) {
        GroupBinding::NotBound => return VersionVerdict::NotBound,
        NoRules => return VersionVerdict::Allowed,
        Group(group) => usize::from(group),
    };
    let google = match request.claimant.claim {
        Claim::Known(index) => Some(request.registry.get(index))
            .filter(|crawler| crawler.reading == Dialect::Google)
            .and_then(|crawler| parsed.google_rules(crawler, request.claimant.rules().binds)),
        _ => None,
    };
    match_rules(parsed.matcher.rules(group), google, target).verdict
}

/// The group of a superseded version that binds the claimant. Whether `*` binds the crawler
/// (`binds`) is taken from the policy in force.
fn superseded_binding(request: &RequestToJudge<'_>, parsed: &ParsedRobotsVersion) -> GroupBinding {
    let binds = request.claimant.rules().binds;
    parsed.binding(request.registry, superseded_claim(request, parsed), binds)
}

/// The claim with the tokens of a superseded version. The index of a token belongs to one policy:
/// in another version the same crawler may have another token or none.
fn superseded_claim(request: &RequestToJudge<'_>, parsed: &ParsedRobotsVersion) -> Claim {
    let claim = request.claimant.claim;
    let token = match claim {
        Claim::PolicyToken(index) => request.claimant.entry.site.tokens.token(index),
        _ if parsed.tokens.tokens().is_empty() => return claim,
        _ => None,
    };
    if let Some(theirs) = token.and_then(|token| parsed.tokens.token_claim(token)) {
        return theirs;
    }
    match request
        .registry
        .identify_on_site(request.facts.user_agent, &parsed.tokens)
    {
        found @ Claim::PolicyToken(_) => found,
        // A crawler that the version does not name follows its `*`.
        _ if matches!(claim, Claim::PolicyToken(_)) => Claim::UnknownBot,
        _ => claim,
    }
}
