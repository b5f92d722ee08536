//! The policy's groups and the origin's made into one file.
//!
//! For each token that either side names: the effective rules of both (the group that names it, else the group of a
//! token that its crawler also goes by, else `*`), put together. The policy's Disallow always holds (`beside.rs`).
//! Nothing that the origin disallows goes away unsaid.

use super::allow_conflicts::{Beside, Ours};
use super::budget::{Bounds, TooMuch};
use super::draft::{Draft, Drafts, octets_of};
use super::origin_rules::{OriginGroup, OriginRules};
use super::signals;
use crate::crawlers::{Binds, Crawler, Registry};
use crate::policy::site::{LeftOut, RuleSource};
use crate::robots::{Extension, Pattern, Rule};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Allow lines of a group that are named when they do not come along as they are; the rest is counted, lest comments
/// fill the file.
pub(super) const NOTED: usize = 20;

/// What names rules in comments: the file is public, an address of the origin is not.
pub(super) const ORIGIN: &str = "the origin's robots.txt";

/// The comment of a `*` that only the site's signals need.
pub(super) const EVERYBODY_ELSE: &str = "For every crawler that no group names.";

/// The origin's file alone. Tokens that have the same group share one.
pub fn only(origin: &OriginRules) -> Vec<Draft> {
    let star = origin.star.iter().map(|&(group, line)| ("*".to_owned(), group, line));
    let mut drafts = Shared::default();
    for (token, group, line) in star.chain(origin.tokens.iter().cloned()) {
        let key = (Pair { policy: None, origin: Some(group) }, token == "*");
        let source = RuleSource::Origin(line);
        drafts.add(key, token, source, || {
            let OriginGroup { rules, crawl_delay, extensions } = origin.groups[group].clone();
            Draft { rules, crawl_delay, extensions, comments: vec![format!("From {ORIGIN}.")], ..Draft::nothing() }
        });
    }
    drafts.drafts
}

/// The policy's groups, given one for each token, and the origin's. Tokens whose rules are the same on both sides share
/// a group: however many there are, it is made once.
pub fn merge(
    policy: Vec<Draft>,
    origin: &OriginRules,
    registry: &Registry,
    bounds: &mut Bounds,
) -> Result<Vec<Draft>, TooMuch> {
    let sides = Sides::new(&policy, origin, registry);
    let mut alike = Alike::new(&policy, origin);
    let mut merged = Shared::default();
    for token in sides.tokens() {
        let (pair, is_star) = (alike.pair(sides.pair(&token)), token == "*");
        let source = sides.named_by(&token);
        let mut enough = true;
        let make = || {
            let of_policy = pair.policy.map(|index| &policy[index]);
            let of_origin = pair.origin.map(|index| &origin.groups[index]);
            if !bounds.look_at(of_origin.map_or(0, |group| group.rules.len())) {
                enough = false;
                return Draft::nothing();
            }
            let mut draft = together(of_policy, of_origin, bounds);
            enough = bounds.grow(octets_of(&draft));
            // Who is named by the origin has the signals of `*`, and is not everybody else any more.
            if !is_star
                && let Some(comment) = draft.comments.first_mut().filter(|comment| comment.starts_with(EVERYBODY_ELSE))
            {
                *comment = comment.replacen(EVERYBODY_ELSE, "From the site's policy.", 1);
            }
            draft
        };
        // Where the group comes from is where the token is named, not where its rules are.
        let source = source.or_else(|| pair.policy.map(|index| policy[index].source.clone()));
        merged.add((pair, is_star), token, source.unwrap_or(RuleSource::Origin(0)), make);
        if !enough {
            return Err(origin.too_much());
        }
    }
    Ok(merged.drafts)
}

/// Groups, each made once for all tokens that it is for. `*` stays alone: its comments are its own, and parsers that
/// know one agent per group must find it.
#[derive(Default)]
struct Shared {
    drafts: Vec<Draft>,
    known: HashMap<(Pair, bool), usize>,
    tokens: usize,
}

impl Shared {
    fn add(&mut self, key: (Pair, bool), token: String, source: RuleSource, make: impl FnOnce() -> Draft) {
        let index = *self.known.entry(key).or_insert_with(|| {
            self.drafts.push(Draft { source: source.clone(), ..make() });
            self.drafts.last_mut().expect("just pushed").agents.clear();
            self.drafts.len() - 1
        });
        self.drafts[index].agents.push(token);
        self.drafts[index].places.push((self.tokens, source));
        self.tokens += 1;
    }
}

/// Which groups come to the same, so that they are merged once.
struct Alike<'a> {
    policy: Vec<usize>,
    closed: Vec<bool>,
    origin: &'a [OriginGroup],
    /// What is left of a group of the origin beside one of the policy that is closed.
    beside_closed: HashMap<(bool, Option<Duration>, &'a [Extension]), usize>,
}

impl<'a> Alike<'a> {
    fn new(policy: &[Draft], origin: &'a OriginRules) -> Alike<'a> {
        let mut known = Drafts::default();
        Alike {
            policy: (0..policy.len()).map(|index| known.find(index, |other| &policy[other])).collect(),
            closed: policy.iter().map(|draft| is_closed(&draft.rules)).collect(),
            origin: &origin.groups,
            beside_closed: HashMap::new(),
        }
    }

    fn pair(&mut self, pair: Pair) -> Pair {
        let mut alike = Pair { policy: pair.policy.map(|index| self.policy[index]), ..pair };
        if let (Some(policy), Some(index)) = (alike.policy, alike.origin)
            && self.closed[policy]
        {
            let OriginGroup { rules, crawl_delay, extensions } = &self.origin[index];
            alike.origin =
                Some(*self.beside_closed.entry((rules.is_empty(), *crawl_delay, extensions)).or_insert(index));
        }
        alike
    }
}

/// Whose rules a token gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Pair {
    policy: Option<usize>,
    origin: Option<usize>,
}

/// Both sides, ready to be asked who binds a token.
struct Sides<'a> {
    policy: &'a [Draft],
    origin: &'a OriginRules,
    /// Groups by token in lower case; `*` is one.
    of_policy: HashMap<String, usize>,
    of_origin: HashMap<String, usize>,
    /// Where the origin names a token.
    lines: HashMap<String, usize>,
    /// The first crawler that goes by a token before any other.
    crawlers: HashMap<String, &'a Crawler>,
    registry: &'a Registry,
}

impl<'a> Sides<'a> {
    fn new(policy: &'a [Draft], origin: &'a OriginRules, registry: &'a Registry) -> Sides<'a> {
        let mut of_policy = HashMap::new();
        for (index, draft) in policy.iter().enumerate() {
            for agent in &draft.agents {
                of_policy.entry(agent.to_ascii_lowercase()).or_insert(index);
            }
        }
        let tokens = origin.tokens.iter().map(|(token, group, _)| (token.to_ascii_lowercase(), *group));
        let of_origin = tokens.chain(origin.star.map(|(group, _)| ("*".to_owned(), group))).collect();
        let lines = origin.tokens.iter().map(|(token, _, line)| (token.to_ascii_lowercase(), *line)).collect();
        let mut crawlers = HashMap::new();
        for crawler in registry.crawlers() {
            if let Some(token) = crawler.tokens.first() {
                crawlers.entry(token.to_ascii_lowercase()).or_insert(crawler);
            }
        }
        Sides { policy, origin, of_policy, of_origin, lines, crawlers, registry }
    }

    /// Each token that needs a group of its own, once: the policy's in their order, then the origin's. After them the
    /// crawlers that would find a group of only one side, because the sides know them by different tokens.
    fn tokens(&self) -> Vec<String> {
        let agents = self.policy.iter().flat_map(|draft| draft.agents.iter().cloned());
        let star = self.origin.star.iter().map(|_| "*".to_owned());
        let tokens = self.origin.tokens.iter().map(|(token, ..)| token.clone());
        let mut seen = HashSet::new();
        let mut all: Vec<String> =
            agents.chain(star).chain(tokens).filter(|token| seen.insert(token.to_ascii_lowercase())).collect();
        for crawler in self.registry.crawlers() {
            let Some(token) = crawler.tokens.first().filter(|token| !seen.contains(&token.to_ascii_lowercase())) else {
                continue;
            };
            let found = crawler.tokens.iter().find(|token| seen.contains(&token.to_ascii_lowercase()));
            let found = found.map(|found| self.pair(found)).unwrap_or_else(|| match follows_star(Some(crawler)) {
                true => self.pair("*"),
                false => Pair::default(),
            });
            if found != self.pair(token) {
                seen.insert(token.to_ascii_lowercase());
                all.push(token.clone());
            }
        }
        all
    }

    fn pair(&self, token: &str) -> Pair {
        Pair { policy: self.find(&self.of_policy, token), origin: self.find(&self.of_origin, token) }
    }

    /// The group of one side that binds a token. `*` does not bind the crawlers whose operators say so: naming them
    /// would.
    fn find(&self, side: &HashMap<String, usize>, token: &str) -> Option<usize> {
        let token = token.to_ascii_lowercase();
        let crawler = self.crawlers.get(&token).copied();
        let chain = crawler.iter().flat_map(|crawler| crawler.tokens.iter().skip(1));
        let mut named = std::iter::once(token.clone()).chain(chain.map(|other| other.to_ascii_lowercase()));
        let named = named.find_map(|token| side.get(&token).copied());
        named.or_else(|| side.get("*").copied().filter(|_| follows_star(crawler)))
    }

    fn named_by(&self, token: &str) -> Option<RuleSource> {
        let token_in_lower_case = token.to_ascii_lowercase();
        let by_policy = self.of_policy.get(&token_in_lower_case).map(|&index| self.policy[index].source.clone());
        let star = self.origin.star.filter(|_| token == "*").map(|(_, line)| line);
        let line = star.or_else(|| self.lines.get(&token_in_lower_case).copied());
        by_policy.or(line.map(RuleSource::Origin))
    }
}

fn follows_star(crawler: Option<&Crawler>) -> bool {
    crawler.is_none_or(|crawler| matches!(crawler.binds, Binds::Star | Binds::Unknown))
}

/// The rules of both sides for one token.
fn together(policy: Option<&Draft>, origin: Option<&OriginGroup>, bounds: &mut Bounds) -> Draft {
    let Some(origin) = origin else { return policy.cloned().unwrap_or_else(Draft::nothing) };
    let mut draft = policy.cloned().unwrap_or_else(Draft::nothing);
    let mut notes = Vec::new();
    let closed = is_closed(&draft.rules);
    if closed {
        if !origin.rules.is_empty() {
            // Of whoever it is for: the origin may name none of these, and mean them by its `*`.
            notes.push(format!("All is disallowed: no rule of {ORIGIN} changes that."));
        }
    } else {
        let added = added(&mut draft, origin, bounds, &mut notes);
        match draft.comments.first_mut() {
            Some(comment) if !added.is_empty() => comment.push_str(&format!(" And from {ORIGIN}.")),
            _ => {}
        }
        draft.rules.extend(added);
    }
    if draft.comments.is_empty() {
        draft.comments.push(format!("From {ORIGIN}."));
    }
    match (draft.crawl_delay, origin.crawl_delay) {
        // Who may fetch nothing has nothing to be slow with.
        (None, delay) => draft.crawl_delay = delay.filter(|_| !closed),
        (Some(ours), Some(theirs)) if ours != theirs => {
            let seconds = theirs.as_secs_f64();
            notes.push(format!("Left out of {ORIGIN}: `Crawl-delay: {seconds}`, for the policy has its own."));
        }
        _ => {}
    }
    // Lines with a key that the policy has for the whole site are gone by now (`OriginRules::leave_out`). Nothing is
    // said about the use of what may not be fetched (draft-ietf-aipref-attach-05 section 3.1).
    let among =
        |keys: &[&'static str], line: &Extension| keys.iter().copied().find(|key| line.key.eq_ignore_ascii_case(key));
    let (mut kept, mut own) = (Vec::new(), Vec::new());
    for line in origin.extensions.iter().filter(|line| !(closed && among(&signals::KEYS, line).is_some())) {
        match among(&draft.signal_keys, line) {
            Some(key) => own.push(key),
            None => kept.push(line.clone()),
        }
    }
    if !own.is_empty() {
        own.sort_unstable();
        own.dedup();
        notes.push(format!("Left out of {ORIGIN}, for the policy has its own here: {}.", own.join(", ")));
    }
    draft.comments.append(&mut notes);
    draft.extensions.extend(kept);
    draft
}

/// The origin's rules that join the policy's; of the others a note says why they do not.
fn added(
    draft: &mut Draft,
    origin: &OriginGroup,
    bounds: &mut Bounds,
    notes: &mut Vec<String>,
) -> Vec<(Rule, RuleSource)> {
    let of_policy = draft.rules.clone();
    let ours: HashSet<&Rule> = of_policy.iter().map(|(rule, _)| rule).collect();
    let mut allows = Allows::new(&of_policy, &of_policy);
    let mut added = Vec::new();
    for (rule, source) in origin.rules.iter().filter(|(rule, _)| !ours.contains(rule)) {
        if rule.allow {
            allows.add(rule, source, bounds, &mut added, &mut draft.left_out, notes);
            continue;
        }
        let opposite = Rule { allow: true, pattern: rule.pattern.clone() };
        let reason = if draft.allowed_by_purpose && is_blanket(&rule.pattern) {
            "for the purpose is allowed".to_owned()
        } else if ours.contains(&opposite) {
            // Of two rules for the same pattern Allow wins: the line would be there and mean nothing.
            format!("which gives way to `{}`", written(&opposite))
        } else {
            allows.present.insert(rule.clone());
            added.push((rule.clone(), source.clone()));
            continue;
        };
        notes.push(format!("Left out of {ORIGIN}: `{}`, {reason}.", written(rule)));
    }
    allows.count_the_rest(notes);
    added
}

/// Sees to it that no Allow of the origin defeats one of these Disallow rules, whatever group it is in.
pub fn hold_against_origin(drafts: &mut [Draft], disallows: &[(Rule, RuleSource)], bounds: &mut Bounds) {
    let is_allow_of_origin = |rule: &Rule, source: &RuleSource| rule.allow && matches!(source, RuleSource::Origin(_));
    for Draft { rules, comments, left_out, .. } in drafts {
        if !rules.iter().any(|(rule, source)| is_allow_of_origin(rule, source)) {
            continue;
        }
        let of_policy: Vec<_> =
            rules.iter().filter(|(_, source)| !matches!(source, RuleSource::Origin(_))).cloned().collect();
        let mut allows = Allows::new(disallows, &of_policy);
        let mut held = Vec::with_capacity(rules.len());
        for (rule, source) in std::mem::take(rules) {
            match is_allow_of_origin(&rule, &source) {
                true => allows.add(&rule, &source, bounds, &mut held, left_out, comments),
                false => {
                    allows.present.insert(rule.clone());
                    held.push((rule, source));
                }
            }
        }
        *rules = held;
        allows.count_the_rest(comments);
    }
}

/// The Allow rules of the origin that come into one group, one after the other.
struct Allows<'a> {
    ours: Ours<'a>,
    /// Disallow rules that are in the group already: what is said again is said once.
    present: HashSet<Rule>,
    left_out: usize,
    cut: usize,
}

impl<'a> Allows<'a> {
    fn new(disallows: &'a [(Rule, RuleSource)], of_policy: &'a [(Rule, RuleSource)]) -> Allows<'a> {
        Allows { ours: Ours::new(disallows, of_policy), present: HashSet::new(), left_out: 0, cut: 0 }
    }

    fn add(
        &mut self,
        rule: &Rule,
        source: &RuleSource,
        bounds: &mut Bounds,
        rules: &mut Vec<(Rule, RuleSource)>,
        left_out: &mut Vec<LeftOut>,
        notes: &mut Vec<String>,
    ) {
        match self.ours.beside(rule, bounds) {
            Beside::AsItIs => rules.push((rule.clone(), source.clone())),
            Beside::Cut { by, held } => {
                rules.push((rule.clone(), source.clone()));
                for added in held {
                    if self.present.insert(added.0.clone()) {
                        rules.push(added);
                    }
                }
                self.cut += 1;
                if self.cut <= NOTED {
                    let (theirs, ours) = (written(rule), written(by));
                    notes.push(format!("`{theirs}` of {ORIGIN}, but not where it would defeat `{ours}`."));
                }
            }
            Beside::Covered { by } => {
                self.note(rule, &format!("which could defeat `{}`", written(&by.0)), notes);
            }
            Beside::LeftOut { by } => {
                let reason = format!("which could defeat `{}` in places that no few rules can name", written(&by.0));
                self.note(rule, &reason, notes);
                left_out.extend(told(rule, source, &by.1, true));
            }
            Beside::NotCompared { by } => {
                let reason = format!("which could defeat `{}`: there is too much to compare", written(&by.0));
                self.note(rule, &reason, notes);
                left_out.extend(told(rule, source, &by.1, false));
            }
        }
    }

    fn note(&mut self, rule: &Rule, reason: &str, notes: &mut Vec<String>) {
        self.left_out += 1;
        if self.left_out <= NOTED {
            notes.push(format!("Left out of {ORIGIN}: `{}`, {reason}.", written(rule)));
        }
    }

    fn count_the_rest(&self, notes: &mut Vec<String>) {
        if let Some(more) = self.left_out.checked_sub(NOTED).filter(|more| *more > 0) {
            notes.push(format!("Left out of {ORIGIN}, for the same reason: {more} more Allow lines."));
        }
    }
}

/// What is said of an Allow that is left out, where both have a place.
fn told(rule: &Rule, source: &RuleSource, by: &RuleSource, compared: bool) -> Option<LeftOut> {
    match (source, by) {
        (RuleSource::Origin(line), RuleSource::Policy(span) | RuleSource::Purpose(span)) => {
            Some(LeftOut { allow: rule.pattern.clone(), line: *line, disallow: *span, compared })
        }
        _ => None,
    }
}

fn written(rule: &Rule) -> String {
    format!("{}: {}", if rule.allow { "Allow" } else { "Disallow" }, rule.pattern.as_str())
}

/// The whole site.
pub fn is_blanket(pattern: &Pattern) -> bool {
    matches!(pattern.as_str(), "/" | "/*" | "*")
}

/// Nothing is allowed: more rules change nothing.
fn is_closed(rules: &[(Rule, RuleSource)]) -> bool {
    let closes = |rule: &Rule| !rule.allow && is_blanket(&rule.pattern);
    rules.iter().any(|(rule, _)| closes(rule)) && !rules.iter().any(|(rule, _)| rule.allow)
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
