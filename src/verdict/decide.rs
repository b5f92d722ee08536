//! The decision: site, claim, rules, and what follows. Neither allocates, locks nor reads a clock.

use super::{Action, Decision, Facts, Holdings, Kind, RuleRef, Scratch, Verdict};
use crate::crawlers::{Claim, Registry};
use crate::policy::compiled::{ActivePause, Binding, PathRules, PathSignals, Site, SiteEntry, Snapshot, Standing};
use crate::policy::model::{Audience, Mode};
use crate::robots::Target;
use crate::time::Timestamp;

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
    let site = snapshot.site_for_host(facts.host);
    let claim = match site {
        Some(index) => registry.identify_with(facts.user_agent, &snapshot.sites()[index].site.tokens),
        None => registry.identify(facts.user_agent),
    };
    decide_as(snapshot, registry, facts, claim, site, holdings, scratch)
}

/// The same for a claim that is already known: what `explain` asks for a bare token.
pub(super) fn decide_as(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &Facts<'_>,
    claim: Claim,
    site: Option<usize>,
    holdings: &Holdings<'_>,
    scratch: &mut Scratch,
) -> Decision {
    let Some(index) = site else {
        return Decision {
            site: None,
            claim,
            verdict: Verdict::NotACrawler,
            kind: Kind::NotACrawler,
            rule: None,
            action: Action::Pass,
            would: None,
            path_rules: PathRules::new(),
            signals: PathSignals::default(),
        };
    };
    let entry = &snapshot.sites()[index];
    let site = &*entry.site;
    let standing = site.standing(claim);
    let target = scratch.target.normalise(facts.target);
    let judged = judge(site, standing, target);
    let (verdict, kind) = match judged.outcome {
        Outcome::NotACrawler => (Verdict::NotACrawler, Kind::NotACrawler),
        Outcome::NotBound => (Verdict::NotBound, Kind::NotBound),
        Outcome::Allowed => (Verdict::Allowed, Kind::Allowed),
        Outcome::Disallowed | Outcome::Ambiguous
            if may_hold_permission(registry, facts, claim, site, target, holdings) =>
        {
            (Verdict::Disallowed, Kind::StaleCopy)
        }
        Outcome::Ambiguous => (Verdict::Disallowed, Kind::Ambiguous),
        Outcome::Disallowed if standing.never_bound => (Verdict::Disallowed, Kind::NotBound),
        Outcome::Disallowed => (Verdict::Disallowed, Kind::Unproven),
    };
    let signals = site.signals.for_path(target);
    let refusal = match (verdict, kind) {
        (Verdict::Disallowed, Kind::Ambiguous) => Some(Action::Block(standing.ambiguous)),
        (Verdict::Disallowed, Kind::Unproven | Kind::NotBound) => Some(Action::Block(standing.disallowed)),
        _ => license_wanted(site, standing, signals, target),
    };
    let (action, would) = match (action_before_rules(entry, standing, target, facts.now), refusal, standing.mode) {
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
        rule: judged.rule,
        action,
        would,
        path_rules: site.tags.for_path(target, &mut scratch.decoded),
        signals,
    }
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

fn judge(site: &Site, standing: Standing, target: Target<'_>) -> Judged {
    if !standing.judged {
        return Judged { outcome: Outcome::NotACrawler, rule: None };
    }
    let group = match standing.binding {
        Binding::NotBound => return Judged { outcome: Outcome::NotBound, rule: None },
        Binding::NoRules => return Judged { outcome: Outcome::Allowed, rule: None },
        Binding::Group(group) => group,
    };
    let reference = |rule: Option<usize>| Some(RuleRef { group, rule: rule.and_then(|rule| u32::try_from(rule).ok()) });
    // What the gate itself hands out to crawlers is no breach of the rules for the site behind it.
    if target.is_robots_txt() || site.signals.is_tdmrep(target) {
        return Judged { outcome: Outcome::Allowed, rule: reference(None) };
    }
    let rules = site.matcher.rules(usize::from(group));
    let allows = |rule: usize| rules.rules().get(rule).is_none_or(|rule| rule.allow);
    if let Some(rule) = rules.find(target.sent) {
        let outcome = if allows(rule) { Outcome::Allowed } else { Outcome::Disallowed };
        return Judged { outcome, rule: reference(Some(rule)) };
    }
    // Many origins resolve dot segments and doubled slashes; where only that makes the path disallowed, the crawler kept
    // to the letter of the RFC and still gets at what the owner closed.
    match target.resolved.and_then(|resolved| rules.find(resolved)) {
        Some(rule) if !allows(rule) => Judged { outcome: Outcome::Ambiguous, rule: reference(Some(rule)) },
        _ => Judged { outcome: Outcome::Allowed, rule: reference(None) },
    }
}

/// Whether some version that the crawler may still hold does not disallow the request.
fn may_hold_permission(
    registry: &Registry,
    facts: &Facts<'_>,
    claim: Claim,
    current: &Site,
    target: Target<'_>,
    holdings: &Holdings<'_>,
) -> bool {
    if holdings.forgotten_until.is_some_and(|until| facts.now < until) {
        return true;
    }
    holdings.versions.iter().filter(|held| facts.now.since(held.superseded_at) <= current.grace).any(|held| {
        let claim = claim_in(registry, facts, claim, current, &held.site);
        !matches!(
            judge(&held.site, held.site.standing(claim), target).outcome,
            Outcome::Disallowed | Outcome::Ambiguous
        )
    })
}

/// A token's index is its site's own: the same crawler may have another one, or be known otherwise, in another version.
fn claim_in(registry: &Registry, facts: &Facts<'_>, claim: Claim, current: &Site, other: &Site) -> Claim {
    let Claim::Token(index) = claim else { return claim };
    let token = current.tokens.tokens().get(usize::from(index));
    let place =
        token.and_then(|token| other.tokens.tokens().iter().position(|theirs| theirs.eq_ignore_ascii_case(token)));
    match place.and_then(|place| u16::try_from(place).ok()) {
        Some(place) => Claim::Token(place),
        None => registry.identify_with(facts.user_agent, &other.tokens),
    }
}

/// What a crawler without a licence token gets where the policy asks for one. The licence itself can always be read.
fn license_wanted(site: &Site, standing: Standing, signals: PathSignals, target: Target<'_>) -> Option<Action> {
    let status = standing.unlicensed?;
    site.signals.license(signals)?;
    let open = site.signals.is_terms(target) || target.sent.starts_with(ACME);
    (!open).then_some(Action::License { status })
}

/// robots.txt and pauses come before any rule.
fn action_before_rules(entry: &SiteEntry, standing: Standing, target: Target<'_>, now: Timestamp) -> Option<Action> {
    let pause = entry.pauses.iter().find(|pause| pause.from <= now && now < pause.until);
    let concerned = pause.filter(|pause| pause.audience == Audience::Everyone || standing.pausable);
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
