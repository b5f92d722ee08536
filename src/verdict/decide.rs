//! [`decide`] and [`decide_for`] judge one request: the verdict of the rules, the enforcement, and
//! the [`Action`]. [`crawl_delay`] is the delay that a crawler is held to. None of them locks or
//! reads a clock.

use super::challenge::is_challenge;
use super::decision::{Action, Decision, Readings, RuleRef};
use super::identity::Identity;
use super::{Behaviour, CachedVersions, Case, Claimant, Facts, Scratch};
use crate::crawlers::{Binds, Claim, Registry};
use crate::policy::model::{Audience, Kind, Mode, Unverified, Verdict};
use crate::policy::site::{
    ActivePause, Binding, CrawlerRules, ParsedVersion, PathSignals, RobotsTxtAnswer, SecondReading,
    Site, Snapshot,
};
use crate::robots::{Dialect, GoogleRules, RuleSet, Target};
use crate::time::Timestamp;
use std::time::Duration;

/// Judges a request by its facts and the versions that the crawler may have cached, without regard
/// to what the client did recently. `None` where no site has the host: the request is forwarded
/// untouched. Neither allocates, locks nor reads a clock (beyond eight matching tag rules the
/// selection grows).
pub fn decide(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &Facts<'_>,
    cached_versions: &CachedVersions<'_>,
    scratch: &mut Scratch,
) -> Option<Decision> {
    let claimant = Claimant::of(snapshot, registry, facts)?;
    let case = Case {
        registry,
        facts: *facts,
        claimant,
        cached_versions: *cached_versions,
    };
    Some(decide_for(&case, Behaviour::default(), scratch))
}

/// Judges a request whose claimant is known, together with what the client did recently. With
/// `mode: observe` the request passes, and `would` is the answer of `mode: enforce`. Pauses,
/// robots.txt and tdmrep.json come before all rules.
pub fn decide_for(case: &Case<'_>, behaviour: Behaviour, scratch: &mut Scratch) -> Decision {
    let Claimant {
        site: index,
        entry,
        claim,
        ..
    } = case.claimant;
    let site = &*entry.site;
    let target = scratch.target.normalise(case.facts.target);
    let question = Question {
        case,
        behaviour,
        rules: site.crawler_rules(claim),
        target,
    };
    let ruling = question.ruling();
    let signals = site.signals.for_path(target);
    let trap_hit = question.is_trap_hit(&ruling);
    let Enforcement {
        kind,
        refusal,
        mode,
    } = question.enforcement(&ruling, trap_hit, signals);
    let (action, would) = match (question.action_before_rules(), refusal, mode) {
        (Some(action), ..) => (action, None),
        (None, Some(refusal), Mode::Enforce) => (refusal, None),
        (None, Some(refusal), Mode::Observe) => (Action::Pass, Some(refusal)),
        (None, ..) => (Action::Pass, None),
    };
    Decision {
        site: index,
        claim,
        verdict: ruling.verdict,
        readings: ruling.readings,
        kind,
        never_fetched: kind == Kind::Violation && !case.cached_versions.was_served,
        rule: ruling.rule,
        action,
        would,
        trap_hit: trap_hit && kind != Kind::Impostor,
        path_rules: site.tags.for_path(target, &mut scratch.decoded),
        signals,
        robots_txt: target.reaches_robots_txt(),
        recorded: question.rules.mode != Mode::Off,
    }
}

/// One request to judge: its case, and the values that the steps of the decision share.
struct Question<'a> {
    case: &'a Case<'a>,
    behaviour: Behaviour,
    rules: CrawlerRules,
    target: Target<'a>,
}

/// The result of robots.txt: the verdict of the version in force, and the kind that cached versions
/// make of it.
struct Ruling {
    verdict: Verdict,
    readings: Readings,
    kind: Kind,
    rule: Option<RuleRef>,
}

/// The result of enforcement: the kind of the request, the answer that a crawler against the rules
/// gets, and the mode, which decides whether the answer is sent.
struct Enforcement {
    kind: Kind,
    refusal: Option<Action>,
    mode: Mode,
}

impl Enforcement {
    fn refuse(&mut self, kind: Kind, refusal: Action) {
        self.kind = kind;
        self.refusal = Some(refusal);
    }
}

impl<'a> Question<'a> {
    fn site(&self) -> &'a Site {
        &self.case.claimant.entry.site
    }

    /// The verdict of the version in force and the kind of the request. A disallowed request is a
    /// stale copy if a cached version allows it, ambiguous if one disallows only what the path
    /// resolves to, `NotBound` for a crawler that ignores robots.txt, unproven if not all cached
    /// versions are known, else a violation.
    fn ruling(&self) -> Ruling {
        let (
            Matched {
                verdict: said,
                readings,
                ..
            },
            rule,
        ) = self.matched();
        let (verdict, kind) = match said {
            VersionVerdict::NotACrawler => (Verdict::NotACrawler, Kind::NotACrawler),
            VersionVerdict::NotBound => (Verdict::NotBound, Kind::NotBound),
            VersionVerdict::Allowed => (Verdict::Allowed, Kind::Allowed),
            VersionVerdict::Disallowed | VersionVerdict::Ambiguous => {
                let kind = match mildest_cached(self.case, self.target) {
                    VersionVerdict::Allowed
                    | VersionVerdict::NotBound
                    | VersionVerdict::NotACrawler => Kind::StaleCopy,
                    _ if said == VersionVerdict::Ambiguous => Kind::Ambiguous,
                    _ if self.rules.binds == Binds::Never => Kind::NotBound,
                    // A crawler that uses that version keeps to the letter of the RFC.
                    VersionVerdict::Ambiguous => Kind::Ambiguous,
                    VersionVerdict::Disallowed if self.case.cached_versions.is_whole() => {
                        Kind::Violation
                    }
                    VersionVerdict::Disallowed => Kind::Unproven,
                };
                (Verdict::Disallowed, kind)
            }
        };
        Ruling {
            verdict,
            readings,
            kind,
            rule,
        }
    }

    /// The verdict of the version in force, and the group of its document that applied, with the
    /// rule that decided, if one did; `None` without a group. A client that is not judged is no
    /// crawler. A request for tdmrep.json, which crawlgate hands out itself, is allowed.
    fn matched(&self) -> (Matched, Option<RuleRef>) {
        let site = self.site();
        let group = match self.rules.binding {
            _ if !self.rules.judged => {
                return (Matched::by_no_rule(VersionVerdict::NotACrawler), None);
            }
            Binding::NotBound => return (Matched::by_no_rule(VersionVerdict::NotBound), None),
            Binding::NoRules => return (Matched::by_no_rule(VersionVerdict::Allowed), None),
            Binding::Group(group) => group,
        };
        // crawlgate hands out this file to crawlers itself, so a request for it breaks no rule.
        if site.signals.is_tdmrep(self.target) {
            return (
                Matched::by_no_rule(VersionVerdict::Allowed),
                Some(RuleRef { group, rule: None }),
            );
        }
        let rules = site.matcher.rules(usize::from(group));
        let own = site.own_rules(self.rules.second_reading);
        let google = match self.rules.second_reading {
            SecondReading::None => None,
            _ => Some(own.map_or(rules, GoogleRules::rules)),
        };
        let matched = match_rules(rules, google, self.target);
        let place = match own.filter(|_| matched.is_by_google()) {
            Some(own) => matched.rule.and_then(|rule| own.source(rule)),
            None => matched.rule.map(|rule| (usize::from(group), Some(rule))),
        };
        let group = place
            .and_then(|(group, _)| u16::try_from(group).ok())
            .unwrap_or(group);
        (
            matched,
            Some(RuleRef {
                group,
                rule: place.and_then(|(_, rule)| u32::try_from(rule?).ok()),
            }),
        )
    }

    /// Whether enforcement looks at this request: the claimant is judged, the mode is not off, and
    /// the request is not for robots.txt or tdmrep.json, which are free for every client.
    fn is_enforced(&self) -> bool {
        let free = self.target.reaches_robots_txt() || self.site().signals.is_tdmrep(self.target);
        self.rules.judged && self.rules.mode != Mode::Off && !free
    }

    /// Whether the request hits a trap. The rules must disallow the URL as sent for this crawler,
    /// and each version that it may have cached must have the trap in the group that binds it. On a
    /// host that was not observed for long enough no trap counts: a crawler that was served the
    /// version in force may still use an older copy.
    fn is_trap_hit(&self, ruling: &Ruling) -> bool {
        let against_the_rules = ruling.verdict == Verdict::Disallowed
            && matches!(
                ruling.kind,
                Kind::Violation | Kind::Unproven | Kind::NotBound
            );
        if !against_the_rules
            || self.rules.exempt
            || !self.case.cached_versions.is_whole()
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
        self.case.cached_versions.superseded().all(|held| {
            let group = binding_in(self.case, &held.parsed).group();
            group.is_some_and(|group| {
                held.parsed
                    .matcher
                    .rules(usize::from(group))
                    .rules()
                    .contains(trap)
            })
        })
    }

    /// Weighs an impostor before all else, also if the crawler is exempt; then, unless it is
    /// exempt, what `weighed` finds, and last the demand for a licence. Where nothing is enforced
    /// the kind stays that of the rules; for an exempt crawler against them it is `Exempt`.
    fn enforcement(&self, ruling: &Ruling, trap_hit: bool, signals: PathSignals) -> Enforcement {
        let rules = self.rules;
        let kind = ruling.kind;
        let mut enforcement = Enforcement {
            kind,
            refusal: None,
            mode: rules.mode,
        };
        let enforced = self.is_enforced();
        if enforced && self.case.facts.identity == Identity::Impostor {
            enforcement.refuse(Kind::Impostor, Action::Block(rules.impostor));
        } else if enforced && !rules.exempt {
            enforcement = self.weighed(ruling, trap_hit);
            enforcement.refusal = enforcement.refusal.or_else(|| self.license_wanted(signals));
        } else if rules.exempt && ruling.verdict == Verdict::Disallowed && kind != Kind::StaleCopy {
            enforcement.kind = Kind::Exempt;
        }
        enforcement
    }

    /// The first that applies, in order of weight: a trap, the rules, the identity, the crawl rate.
    /// A client that was marked by a trap earlier is refused too, unless it is verified. The mode
    /// is at most observe for a crawler that is not verified, where the policy says `unverified:
    /// observe`.
    fn weighed(&self, ruling: &Ruling, trap_hit: bool) -> Enforcement {
        let rules = self.rules;
        let identity = self.case.facts.identity;
        let not_verified = matches!(
            identity,
            Identity::Unverified | Identity::Suspended | Identity::Pending
        );
        let mode = match rules.unverified {
            Unverified::Observe if not_verified => rules.mode.min(Mode::Observe),
            _ => rules.mode,
        };
        let mut enforcement = Enforcement {
            kind: ruling.kind,
            refusal: None,
            mode,
        };
        match (ruling.verdict, ruling.kind) {
            // Verified crawlers are reported. What an address did before does not count against
            // them.
            _ if trap_hit || self.behaviour.trapped && identity != Identity::Verified => {
                enforcement.refuse(Kind::Trapped, Action::Block(rules.trapped));
            }
            (Verdict::Disallowed, Kind::Ambiguous) => {
                enforcement.refusal = Some(Action::Block(rules.ambiguous))
            }
            (Verdict::Disallowed, Kind::Violation | Kind::Unproven | Kind::NotBound) => {
                enforcement.refusal = Some(Action::Block(rules.disallowed));
            }
            _ if rules.unverified == Unverified::Refuse && not_verified => {
                let may_be_proven = matches!(identity, Identity::Pending | Identity::Suspended);
                let answer = if may_be_proven {
                    rules.awaiting_proof
                } else {
                    rules.disallowed
                };
                enforcement.refuse(Kind::Unverified, Action::Block(answer));
            }
            _ => {
                if let Some(wait) = self.behaviour.too_fast {
                    let retry_after = u32::try_from(wait.as_millis().div_ceil(1_000))
                        .unwrap_or(u32::MAX)
                        .max(1);
                    // The crawler may have cached an unknown version with a shorter delay, or with
                    // none.
                    let kind = if self.case.cached_versions.is_whole() {
                        Kind::TooFast
                    } else {
                        Kind::Unproven
                    };
                    enforcement.refuse(
                        kind,
                        Action::Slow {
                            answer: rules.too_fast,
                            retry_after,
                        },
                    );
                }
            }
        }
        enforcement
    }

    /// The answer to a crawler without a licence token where the policy asks for one; `None` where
    /// it does not, there is no licence for the path, or the request is for the terms themselves.
    fn license_wanted(&self, signals: PathSignals) -> Option<Action> {
        let status = self.rules.unlicensed?;
        let site = self.site();
        site.signals.license(signals, self.rules.binding.group())?;
        (!site.signals.is_terms(self.target)).then_some(Action::License { status })
    }

    fn is_paused_by(&self, pause: &ActivePause) -> bool {
        pause.audience == Audience::Everyone || self.rules.pausable
    }

    /// The action that comes before any rule: the answer to robots.txt (the file, or 503 of a pause
    /// that stops this client), tdmrep.json, or a pause. A pause does not stop challenges of
    /// certificate authorities.
    fn action_before_rules(&self) -> Option<Action> {
        let entry = self.case.claimant.entry;
        let target = self.target;
        let now = self.case.facts.now;
        if target.reaches_robots_txt() {
            let paused = match entry.robots_txt {
                RobotsTxtAnswer::Paused(place) => entry.pauses.get(place),
                RobotsTxtAnswer::File | RobotsTxtAnswer::AwaitsOrigin => None,
            };
            let paused = paused.filter(|pause| self.is_paused_by(pause));
            return Some(paused.map_or(Action::RobotsTxt, |pause| pause_action(pause, now)));
        }
        if entry.site.signals.is_tdmrep(target) {
            return Some(Action::TdmRep);
        }
        let pause = entry.pause(now).filter(|pause| self.is_paused_by(pause))?;
        let is_challenge = is_challenge(self.case.facts.method, target.sent);
        (!is_challenge).then(|| pause_action(pause, now))
    }
}

/// The answer of a pause. Its Retry-After is at most the time that is left of the pause, and at
/// least a second.
fn pause_action(pause: &ActivePause, now: Timestamp) -> Action {
    let left = u32::try_from(pause.until.since(now).as_secs()).unwrap_or(u32::MAX);
    Action::Pause {
        retry_after: pause.retry_after.min(left).max(1),
    }
}

/// The crawl delay that a crawler is held to: the shortest of all versions that it may have cached,
/// and none where one of them has none. On a host that was not observed for long enough, the delay
/// holds only for a client that was served the version in force, and a request that comes sooner is
/// no violation.
pub fn crawl_delay(case: &Case<'_>, was_served_current: bool) -> Option<Duration> {
    let now = case
        .claimant
        .entry
        .site
        .crawler_rules(case.claimant.claim)
        .crawl_delay?;
    if case.cached_versions.may_be_unknown
        || !case.cached_versions.is_whole() && !was_served_current
    {
        return None;
    }
    case.cached_versions
        .superseded()
        .try_fold(now, |shortest, held| {
            let group = binding_in(case, &held.parsed).group()?;
            let delay = held
                .parsed
                .delays
                .get(usize::from(group))
                .copied()
                .flatten();
            delay.map(|delay| delay.min(shortest))
        })
}

/// The verdict of the rules of one version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VersionVerdict {
    NotACrawler,
    NotBound,
    Allowed,
    Disallowed,
    Ambiguous,
}

/// The verdict of one version, and what it rests on.
struct Matched {
    verdict: VersionVerdict,
    readings: Readings,
    /// The index of the rule that decided.
    rule: Option<usize>,
}

impl Matched {
    fn by_no_rule(verdict: VersionVerdict) -> Matched {
        Matched {
            verdict,
            readings: Readings::default(),
            rule: None,
        }
    }

    /// Whether `rule` is an index into Google's rules: only RFC 9309 disallows the request, and so
    /// it is allowed.
    fn is_by_google(&self) -> bool {
        self.readings == Readings::OnlyRfc9309 && self.verdict == VersionVerdict::Allowed
    }
}

/// The verdict of one version alone. `google` are the rules as Google's published parser reads
/// them, for a crawler that goes by it; then only what both disallow is disallowed. A path that is
/// disallowed only as origins resolve it, or only as RFC 9309 normalises it, is ambiguous.
/// robots.txt is allowed.
fn match_rules(rules: &RuleSet, google: Option<&RuleSet>, target: Target<'_>) -> Matched {
    if target.reaches_robots_txt() {
        return Matched::by_no_rule(VersionVerdict::Allowed);
    }
    let sent = rules.find(target.sent);
    let is_disallowed = disallows(rules, sent);
    let by_google = google.map(|google| {
        // The same rules say the same of a path in normal form.
        let is_same = std::ptr::eq(google, rules) && target.is_normal();
        let found = if is_same {
            sent
        } else {
            google.find(target.written)
        };
        (found, disallows(google, found))
    });
    let readings = match by_google {
        None => Readings::Rfc9309,
        Some((_, disallowed)) if disallowed == is_disallowed => Readings::Both,
        Some(_) if is_disallowed => Readings::OnlyRfc9309,
        Some(_) => Readings::OnlyGoogle,
    };
    let matched = |verdict, rule| Matched {
        verdict,
        readings,
        rule,
    };
    if is_disallowed {
        return match by_google {
            Some((found, false)) if target.is_normal() => matched(VersionVerdict::Allowed, found),
            // Spelled otherwise, it leads to a page that both disallow: `/%63art/` to `/cart/`.
            Some((_, false)) => matched(VersionVerdict::Ambiguous, sent),
            _ => matched(VersionVerdict::Disallowed, sent),
        };
    }
    // Many origins resolve dot segments, doubled slashes, `%2F` and parameters; where only that
    // makes the path disallowed, the crawler kept to the letter of the RFC and still reaches what
    // the owner closed. An Allow of the URL as sent counts if it says more than the Disallow:
    // `Allow: /` does not. Where dot segments or parameters were removed it never counts:
    // `/public/../private` has nothing of `/public/`, nor `/private/x;.css` of `/*.css$`.
    let closed = target.resolutions().find_map(|resolved| {
        let rule = rules.find(resolved.target)?;
        let outranks_sent = resolved.is_shortened
            || sent.is_none_or(|sent| priority(rules, sent) < priority(rules, rule));
        (disallows(rules, Some(rule)) && outranks_sent).then_some(rule)
    });
    match closed {
        Some(rule) => matched(VersionVerdict::Ambiguous, Some(rule)),
        None => matched(VersionVerdict::Allowed, sent),
    }
}

/// Whether a rule that was found is a Disallow.
fn priority(rules: &RuleSet, rule: usize) -> usize {
    let rule = rules.rules().get(rule);
    rule.map_or(0, |rule| rule.pattern.priority())
}

fn disallows(rules: &RuleSet, found: Option<usize>) -> bool {
    found
        .and_then(|rule| rules.rules().get(rule))
        .is_some_and(|rule| !rule.allow)
}

/// The mildest verdict of the superseded versions that a crawler may have cached, on a request that
/// the version in force disallows. A version whose rules are no longer known counts as one that
/// allows. Without superseded versions it is disallowed.
fn mildest_cached(case: &Case<'_>, target: Target<'_>) -> VersionVerdict {
    if case.cached_versions.may_be_unknown {
        return VersionVerdict::Allowed;
    }
    let mut mildest = VersionVerdict::Disallowed;
    for held in case.cached_versions.superseded() {
        match superseded_verdict(case, &held.parsed, target) {
            VersionVerdict::Disallowed => {}
            VersionVerdict::Ambiguous => mildest = VersionVerdict::Ambiguous,
            allowed => return allowed,
        }
    }
    mildest
}

/// The verdict of a superseded version about the claimant's request, by its own groups, and by
/// Google's reading of them for Google's crawlers.
fn superseded_verdict(
    case: &Case<'_>,
    parsed: &ParsedVersion,
    target: Target<'_>,
) -> VersionVerdict {
    let group = match binding_in(case, parsed) {
        Binding::NotBound => return VersionVerdict::NotBound,
        Binding::NoRules => return VersionVerdict::Allowed,
        Binding::Group(group) => group,
    };
    let Claimant { entry, claim, .. } = case.claimant;
    let google = match claim {
        Claim::Known(index) if case.registry.get(index).reading == Dialect::Google => parsed
            .google_rules(
                case.registry.get(index),
                entry.site.crawler_rules(claim).binds,
            ),
        _ => None,
    };
    match_rules(parsed.matcher.rules(usize::from(group)), google, target).verdict
}

/// The group of a superseded version that binds the claimant. What binds the crawler besides a
/// group of its own (`binds`) comes from the site in force.
fn binding_in(case: &Case<'_>, parsed: &ParsedVersion) -> Binding {
    let binds = case
        .claimant
        .entry
        .site
        .crawler_rules(case.claimant.claim)
        .binds;
    parsed.binding(case.registry, claim_in(case, parsed), binds)
}

/// The claim as a superseded version knows it. A token's index is its policy's own: the same
/// crawler may have another one, or be known otherwise, in another version.
fn claim_in(case: &Case<'_>, parsed: &ParsedVersion) -> Claim {
    let claim = case.claimant.claim;
    let token = match claim {
        Claim::Token(index) => case.claimant.entry.site.tokens.token(index),
        _ if parsed.tokens.tokens().is_empty() => return claim,
        _ => None,
    };
    if let Some(theirs) = token.and_then(|token| parsed.tokens.named(token)) {
        return theirs;
    }
    match case
        .registry
        .identify_with(case.facts.user_agent, &parsed.tokens)
    {
        found @ Claim::Token(_) => found,
        // A crawler that the version does not name follows its `*`.
        _ if matches!(claim, Claim::Token(_)) => Claim::Other,
        _ => claim,
    }
}
