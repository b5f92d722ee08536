//! The decision: site, claim, rules, and what follows. Neither allocates, locks nor reads a clock.

use super::behaviour::{Behaviour, Claimant};
use super::{Action, Decision, Facts, Holdings, Identity, Kind, RuleRef, Scratch, Verdict};
use crate::crawlers::{Claim, Registry};
use crate::policy::compiled::{
    ActivePause, Binding, CrawlerRules, Former, PathRules, PathSignals, Site, SiteEntry, Snapshot,
};
use crate::policy::model::{Audience, Mode, Unverified};
use crate::robots::{Matcher, Target};
use crate::time::Timestamp;
use std::time::Duration;

/// Certificates must renew through any pause (RFC 8555 section 8.3).
const ACME: &[u8] = b"/.well-known/acme-challenge/";

/// Judges a request. Neither allocates, locks nor reads a clock (beyond eight matching tag rules the selection grows).
///
/// ```
/// use crawlgate::{crawlers::Registry, policy::Snapshot, verdict::{decide, Action, Facts, Holdings, Identity, Scratch}};
/// let facts = Facts {
///     host: b"shop.example", target: b"/", method: b"GET", user_agent: b"GPTBot/1.2", client: None,
///     identity: Identity::Unverified, now: crawlgate::time::Timestamp(0),
/// };
/// let snapshot = Snapshot::default();
/// let decision = decide(&snapshot, Registry::builtin(), &facts, &Holdings::default(), &mut Scratch::default());
/// assert_eq!(decision.action, Action::Pass, "a host that no site claims is forwarded untouched");
/// ```
pub fn decide(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &Facts<'_>,
    holdings: &Holdings<'_>,
    scratch: &mut Scratch,
) -> Decision {
    let claimant = Claimant::of(snapshot, registry, facts);
    decide_for(snapshot, registry, facts, claimant, holdings, Behaviour::default(), scratch)
}

/// The same where it is known who asks, with how it has conducted itself.
pub fn decide_for(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &Facts<'_>,
    claimant: Claimant,
    holdings: &Holdings<'_>,
    behaviour: Behaviour,
    scratch: &mut Scratch,
) -> Decision {
    let Claimant { site, claim } = claimant;
    let Some(index) = site else {
        return Decision {
            site: None,
            claim,
            verdict: Verdict::NotACrawler,
            kind: Kind::NotACrawler,
            never_fetched: false,
            rule: None,
            action: Action::Pass,
            would: None,
            trap_hit: false,
            path_rules: PathRules::new(),
            signals: PathSignals::default(),
            robots_txt: false,
            recorded: true,
        };
    };
    let entry = &snapshot.sites()[index];
    let site = &*entry.site;
    let standing = site.crawler_rules(claim);
    let target = scratch.target.normalise(facts.target);
    let judged = judge(site, standing, target);
    let (verdict, kind) = match judged.outcome {
        Outcome::NotACrawler => (Verdict::NotACrawler, Kind::NotACrawler),
        Outcome::NotBound => (Verdict::NotBound, Kind::NotBound),
        Outcome::Allowed => (Verdict::Allowed, Kind::Allowed),
        Outcome::Disallowed | Outcome::Ambiguous => {
            let kind = match mildest_held(registry, facts, claim, site, target, holdings) {
                Held::Allows => Kind::StaleCopy,
                _ if judged.outcome == Outcome::Ambiguous => Kind::Ambiguous,
                _ if standing.never_bound => Kind::NotBound,
                // Who goes by that version keeps to the letter of the RFC.
                Held::Ambiguous => Kind::Ambiguous,
                Held::Disallows if holdings.watched => Kind::Violation,
                Held::Disallows => Kind::Unproven,
            };
            (Verdict::Disallowed, kind)
        }
    };
    let never_fetched = kind == Kind::Violation && !holdings.fetched;
    let signals = site.signals.for_path(target);
    // What the gate itself hands out is free for everybody.
    let free = target.is_robots_txt() || site.signals.is_tdmrep(target);
    let held = standing.judged && standing.mode != Mode::Off && !free;
    let against_the_rules =
        verdict == Verdict::Disallowed && matches!(kind, Kind::Violation | Kind::Unproven | Kind::NotBound);
    let trap_hit =
        held && !standing.exempt && against_the_rules && springs(registry, facts, claim, site, target, holdings);
    let impostor = held && facts.identity == Identity::Impostor;
    let mut found = Found { kind, refusal: None, mode: standing.mode };
    if impostor {
        found.refuse(Kind::Impostor, Action::Block(standing.impostor));
    } else if held && !standing.exempt {
        found = held_to(standing, verdict, kind, facts.identity, trap_hit, behaviour, holdings.watched);
        found.refusal = found.refusal.or_else(|| license_wanted(site, standing, signals, target));
    } else if standing.exempt && verdict == Verdict::Disallowed && kind != Kind::StaleCopy {
        found.kind = Kind::Exempt;
    }
    let Found { kind, refusal, mode } = found;
    let (action, would) = match (action_before_rules(entry, standing, target, facts.now), refusal, mode) {
        (Some(action), ..) => (action, None),
        (None, Some(refusal), Mode::Enforce) => (refusal, None),
        (None, Some(refusal), Mode::Observe) => (Action::Pass, Some(refusal)),
        (None, ..) => (Action::Pass, None),
    };
    Decision {
        site: Some(index),
        claim,
        verdict,
        kind,
        never_fetched: never_fetched && kind == Kind::Violation,
        rule: judged.rule,
        action,
        would,
        trap_hit: trap_hit && !impostor,
        path_rules: site.tags.for_path(target, &mut scratch.decoded),
        signals,
        robots_txt: target.is_robots_txt(),
        recorded: standing.mode != Mode::Off,
    }
}

/// What is found beyond the rules: what the request is, what enforce does about it, and how far that goes.
struct Found {
    kind: Kind,
    refusal: Option<Action>,
    mode: Mode,
}

impl Found {
    fn refuse(&mut self, kind: Kind, refusal: Action) {
        (self.kind, self.refusal) = (kind, Some(refusal));
    }
}

/// What weighs more comes first: a trap, the rules, proof, pace.
fn held_to(
    standing: CrawlerRules,
    verdict: Verdict,
    kind: Kind,
    identity: Identity,
    trap_hit: bool,
    behaviour: Behaviour,
    watched: bool,
) -> Found {
    let not_verified = matches!(identity, Identity::Unverified | Identity::Suspended);
    let mode = match standing.unverified {
        Unverified::Observe if not_verified => standing.mode.min(Mode::Observe),
        _ => standing.mode,
    };
    let mut found = Found { kind, refusal: None, mode };
    match (verdict, kind) {
        // Verified crawlers are reported, and never held to what an address did.
        _ if trap_hit || behaviour.trapped && identity != Identity::Verified => {
            found.refuse(Kind::Trapped, Action::Block(standing.trapped));
        }
        (Verdict::Disallowed, Kind::Ambiguous) => found.refusal = Some(Action::Block(standing.ambiguous)),
        (Verdict::Disallowed, Kind::Violation | Kind::Unproven | Kind::NotBound) => {
            found.refusal = Some(Action::Block(standing.disallowed));
        }
        (Verdict::NotACrawler, _) => {}
        _ if standing.unverified == Unverified::Refuse && not_verified => {
            found.refuse(Kind::Unverified, Action::Block(standing.disallowed));
        }
        _ => {
            if let Some(wait) = behaviour.too_fast {
                let retry_after = u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
                // It may go by a version with a shorter delay, or none, that nobody here knows of.
                let kind = if watched { Kind::TooFast } else { Kind::Unproven };
                found.refuse(kind, Action::Slow { answer: standing.too_fast, retry_after });
            }
        }
    }
    found
}

/// Whether a trap springs: the rules disallow the URL as sent for this crawler, and no version that it may hold lacks
/// the trap in what it says to this crawler. Where it may hold one from before the watch, none springs: whoever was
/// shown the one in force may go by that other one all the same.
fn springs(
    registry: &Registry,
    facts: &Facts<'_>,
    claim: Claim,
    current: &Site,
    target: Target<'_>,
    holdings: &Holdings<'_>,
) -> bool {
    if !holdings.watched {
        return false;
    }
    let Some(trap) = current.traps.find(target.sent).and_then(|trap| current.traps.rules().get(trap)) else {
        return false;
    };
    holdings.former().all(|held| {
        let former = &held.former;
        match binding_in(registry, facts, claim, current, former) {
            Binding::Group(group) => former.matcher.rules(usize::from(group)).rules().contains(trap),
            Binding::NoRules | Binding::NotBound => false,
        }
    })
}

/// The crawl delay that a crawler is held to: the shortest of all versions that it may hold, and none where one of them
/// has none. Where a version from before the watch may be held, only whoever was `shown` the one in force is held to a
/// delay, and what is sooner is not called a violation.
pub fn pace(
    registry: &Registry,
    facts: &Facts<'_>,
    claim: Claim,
    current: &Site,
    holdings: &Holdings<'_>,
    shown: bool,
) -> Option<Duration> {
    let now = current.crawler_rules(claim).pace?;
    if holdings.forgotten || !holdings.watched && !shown {
        return None;
    }
    holdings.former().try_fold(now, |shortest, held| match binding_in(registry, facts, claim, current, &held.former) {
        Binding::Group(group) => {
            let delay = held.former.delays.get(usize::from(group)).copied().flatten();
            delay.map(|delay| delay.min(shortest))
        }
        Binding::NoRules | Binding::NotBound => None,
    })
}

/// What the rules of one version say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    NotACrawler,
    NotBound,
    Allowed,
    Disallowed,
    Ambiguous,
}

struct Judged {
    outcome: Outcome,
    rule: Option<RuleRef>,
}

fn judge(site: &Site, standing: CrawlerRules, target: Target<'_>) -> Judged {
    if !standing.judged {
        return Judged { outcome: Outcome::NotACrawler, rule: None };
    }
    match standing.binding {
        // What the gate itself hands out to crawlers is no breach of the rules for the site behind it.
        Binding::Group(group) if site.signals.is_tdmrep(target) => {
            Judged { outcome: Outcome::Allowed, rule: Some(RuleRef { group, rule: None }) }
        }
        binding => judge_by(&site.matcher, binding, target),
    }
}

/// The verdict of one file alone.
fn judge_by(matcher: &Matcher, binding: Binding, target: Target<'_>) -> Judged {
    let group = match binding {
        Binding::NotBound => return Judged { outcome: Outcome::NotBound, rule: None },
        Binding::NoRules => return Judged { outcome: Outcome::Allowed, rule: None },
        Binding::Group(group) => group,
    };
    let reference = |rule: Option<usize>| Some(RuleRef { group, rule: rule.and_then(|rule| u32::try_from(rule).ok()) });
    if target.is_robots_txt() {
        return Judged { outcome: Outcome::Allowed, rule: reference(None) };
    }
    let rules = matcher.rules(usize::from(group));
    let allows = |rule: usize| rules.rules().get(rule).is_none_or(|rule| rule.allow);
    if let Some(rule) = rules.find(target.sent) {
        let outcome = if allows(rule) { Outcome::Allowed } else { Outcome::Disallowed };
        return Judged { outcome, rule: reference(Some(rule)) };
    }
    // Many origins resolve dot segments and doubled slashes; where only that makes the path disallowed, the crawler
    // kept to the letter of the RFC and still gets at what the owner closed.
    match target.resolved.and_then(|resolved| rules.find(resolved)) {
        Some(rule) if !allows(rule) => Judged { outcome: Outcome::Ambiguous, rule: reference(Some(rule)) },
        _ => Judged { outcome: Outcome::Allowed, rule: reference(None) },
    }
}

/// What the versions that a crawler may still hold say of a request that the one in force disallows.
enum Held {
    Allows,
    Ambiguous,
    Disallows,
}

/// The mildest of them.
fn mildest_held(
    registry: &Registry,
    facts: &Facts<'_>,
    claim: Claim,
    current: &Site,
    target: Target<'_>,
    holdings: &Holdings<'_>,
) -> Held {
    if holdings.forgotten {
        return Held::Allows;
    }
    let mut mildest = Held::Disallows;
    for held in holdings.former() {
        let binding = binding_in(registry, facts, claim, current, &held.former);
        match judge_by(&held.former.matcher, binding, target).outcome {
            Outcome::Disallowed => {}
            Outcome::Ambiguous => mildest = Held::Ambiguous,
            Outcome::NotACrawler | Outcome::NotBound | Outcome::Allowed => return Held::Allows,
        }
    }
    mildest
}

/// The group of a former version that binds a claim. What binds the crawler at all is what is known of it now.
fn binding_in(registry: &Registry, facts: &Facts<'_>, claim: Claim, current: &Site, former: &Former) -> Binding {
    let binds = current.crawler_rules(claim).binds;
    former.binding(registry, claim_in(registry, facts, claim, current, former), binds)
}

/// A token's index is its policy's own: the same crawler may have another one, or be known otherwise, in another
/// version.
fn claim_in(registry: &Registry, facts: &Facts<'_>, claim: Claim, current: &Site, former: &Former) -> Claim {
    let theirs = former.tokens.tokens();
    let token = match claim {
        Claim::Token(index) => current.tokens.tokens().get(usize::from(index)),
        _ if theirs.is_empty() => return claim,
        _ => None,
    };
    let place = token.and_then(|token| theirs.iter().position(|theirs| theirs.eq_ignore_ascii_case(token)));
    if let Some(place) = place.and_then(|place| u16::try_from(place).ok()) {
        return Claim::Token(place);
    }
    match registry.identify_with(facts.user_agent, &former.tokens) {
        found @ Claim::Token(_) => found,
        // Whom that file does not name follows its `*`.
        _ if matches!(claim, Claim::Token(_)) => Claim::Other,
        _ => claim,
    }
}

/// What a crawler without a licence token gets where the policy asks for one. The licence itself can always be read.
fn license_wanted(site: &Site, standing: CrawlerRules, signals: PathSignals, target: Target<'_>) -> Option<Action> {
    let status = standing.unlicensed?;
    let group = match standing.binding {
        Binding::Group(group) => Some(group),
        Binding::NoRules | Binding::NotBound => None,
    };
    site.signals.license(signals, group)?;
    let open = site.signals.is_terms(target) || target.sent.starts_with(ACME);
    (!open).then_some(Action::License { status })
}

/// robots.txt and pauses come before any rule.
fn action_before_rules(
    entry: &SiteEntry,
    standing: CrawlerRules,
    target: Target<'_>,
    now: Timestamp,
) -> Option<Action> {
    let concerned = entry.pause(now).filter(|pause| pause.audience == Audience::Everyone || standing.pausable);
    if target.is_robots_txt() {
        let paused = concerned.filter(|pause| pause.robots_txt_until.is_some_and(|until| now < until));
        return Some(paused.map_or(Action::RobotsTxt, |pause| pause_action(pause, now)));
    }
    if entry.site.signals.is_tdmrep(target) {
        return Some(Action::TdmRep);
    }
    concerned.filter(|_| !target.sent.starts_with(ACME)).map(|pause| pause_action(pause, now))
}

fn pause_action(pause: &ActivePause, now: Timestamp) -> Action {
    let left = u32::try_from(pause.until.since(now).as_secs()).unwrap_or(u32::MAX);
    Action::Pause { retry_after: pause.retry_after.min(left).max(1) }
}
