//! [`merge`] unites the groups of the policy and the groups of the origin's own robots.txt.
//!
//! Each user-agent token that either side names gets the rules of both sides. On each side these
//! are the rules of the group that names the token. Without such a group, they are the rules for
//! another token of the same crawler, else those for `*` if `*` binds the crawler. A known crawler
//! that the two sides name by different tokens gets a group, too. No Allow of the origin defeats a
//! Disallow of the policy (`allow_conflicts.rs`). Comments in the merged file name or count the
//! rules of the origin that are left out. In a group that disallows the whole site one comment
//! stands for all left-out rules.

use super::allow_conflicts::{Conflict, PolicyRules};
use super::budget::{Bounds, TooMuch, take};
use super::draft::{Draft, Heading, ORIGIN, first_alike, octets_of};
use super::origin_rules::{OriginGroup, OriginRules};
use super::signals;
use crate::crawlers::{Crawler, Registry};
use crate::policy::site::{LeftOut, RuleSource};
use crate::robots::{Extension, Rule};
use std::collections::{HashMap, HashSet};

/// How many left-out Allow lines of a group comments name. The others are counted, lest comments
/// fill the file.
pub const NOTED: usize = 20;

/// The policy's groups, of which each is for one token, merged with the origin's. Tokens whose
/// rules are the same on both sides share a group, which is made once however many they are; only
/// `*` stays alone.
///
/// # Errors
/// When the rules of the origin, or the size of the merged groups, pass `bounds`.
pub fn merge(
    policy: Vec<Draft>,
    origin: &OriginRules,
    registry: &Registry,
    bounds: &mut Bounds,
) -> Result<Vec<Draft>, TooMuch> {
    let sides = Sides::new(&policy, origin, registry);
    // Groups of the policy that say the same are merged once: the first stands for all.
    let alike = first_alike(&policy);
    let (mut drafts, mut places): (Vec<Draft>, HashMap<(Pair, bool), usize>) = Default::default();
    for (number, token) in sides.tokens().into_iter().enumerate() {
        let pair = sides.pair(&token);
        let Some(source) = sides.source(&token, pair) else {
            continue;
        };
        let pair = Pair {
            policy: pair.policy.map(|index| alike[index]),
            ..pair
        };
        // `*` stays alone: its comments are its own, and parsers that know one agent per group must
        // find it.
        let is_star = token == "*";
        let place = match places.get(&(pair, is_star)) {
            Some(place) => *place,
            None => {
                let of_policy = pair.policy.map(|index| policy[index].clone());
                let mut draft =
                    of_policy.unwrap_or_else(|| Draft::new(Heading::Origin, source.clone()));
                let of_origin = pair.origin.map(|index| &origin.groups[index]);
                if !take(
                    &mut bounds.rules,
                    of_origin.map_or(0, |group| group.rules.len()),
                ) {
                    return Err(origin.too_much());
                }
                of_origin
                    .into_iter()
                    .for_each(|group| join(&mut draft, group, bounds));
                if !take(&mut bounds.size, octets_of(&draft)) {
                    return Err(origin.too_much());
                }
                // A token that the origin names has the signals of `*`, and is not everybody else
                // any more.
                if !is_star && draft.heading == Heading::EverybodyElse {
                    draft.heading = Heading::Policy;
                }
                drafts.push(Draft {
                    source: source.clone(),
                    agents: Vec::new(),
                    ..draft
                });
                places.insert((pair, is_star), drafts.len() - 1);
                drafts.len() - 1
            }
        };
        drafts[place].agents.push(token);
        drafts[place].places.push((number, source));
    }
    Ok(drafts)
}

/// The groups of both sides that a token gets its rules from.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Pair {
    policy: Option<usize>,
    origin: Option<usize>,
}

/// Both sides, prepared to find the group that binds a token.
struct Sides<'a> {
    policy: &'a [Draft],
    origin: &'a OriginRules,
    /// Groups by token in lower case; `*` is one. The origin's have the line that names the token.
    of_policy: HashMap<String, usize>,
    of_origin: HashMap<String, (usize, usize)>,
    /// The first crawler of which a token is the first token.
    crawlers: HashMap<String, &'a Crawler>,
    registry: &'a Registry,
}

impl<'a> Sides<'a> {
    /// Indexes the groups of both sides by token. Where several groups of the policy name a token,
    /// the first counts.
    fn new(policy: &'a [Draft], origin: &'a OriginRules, registry: &'a Registry) -> Sides<'a> {
        let mut of_policy = HashMap::new();
        for (index, draft) in policy.iter().enumerate() {
            for agent in &draft.agents {
                of_policy.entry(agent.to_ascii_lowercase()).or_insert(index);
            }
        }
        let tokens = origin
            .tokens
            .iter()
            .map(|(token, group, line)| (token.to_ascii_lowercase(), (*group, *line)));
        let of_origin = tokens
            .chain(origin.star.map(|star| ("*".to_owned(), star)))
            .collect();
        let mut crawlers = HashMap::new();
        for crawler in registry.crawlers() {
            if let Some(token) = crawler.tokens.first() {
                crawlers
                    .entry(token.to_ascii_lowercase())
                    .or_insert(crawler);
            }
        }
        Sides {
            policy,
            origin,
            of_policy,
            of_origin,
            crawlers,
            registry,
        }
    }

    /// Each token that needs a group of its own, once: the policy's in their order, then the
    /// origin's. After them the crawlers that would find a group of only one side, because the
    /// sides know them by different tokens.
    fn tokens(&self) -> Vec<String> {
        let agents = self
            .policy
            .iter()
            .flat_map(|draft| draft.agents.iter().cloned());
        let star = self.origin.star.iter().map(|_| "*".to_owned());
        let tokens = self.origin.tokens.iter().map(|(token, ..)| token.clone());
        let mut seen = HashSet::new();
        let mut all: Vec<String> = agents
            .chain(star)
            .chain(tokens)
            .filter(|token| seen.insert(token.to_ascii_lowercase()))
            .collect();
        for crawler in self.registry.crawlers() {
            let Some(token) = crawler
                .tokens
                .first()
                .filter(|token| !seen.contains(&token.to_ascii_lowercase()))
            else {
                continue;
            };
            let found = crawler
                .tokens
                .iter()
                .find(|token| seen.contains(&token.to_ascii_lowercase()));
            let followed = match found {
                Some(found) => self.pair(found),
                None if follows_star(Some(crawler)) => self.pair("*"),
                None => Pair::default(),
            };
            if followed != self.pair(token) {
                seen.insert(token.to_ascii_lowercase());
                all.push(token.clone());
            }
        }
        all
    }

    /// Indexes of the groups that bind a token, one on each side; `None` where a side has none.
    fn pair(&self, token: &str) -> Pair {
        let origin = self.find(&self.of_origin, token).map(|(group, _)| group);
        Pair {
            policy: self.find(&self.of_policy, token),
            origin,
        }
    }

    /// The group of one side that binds a token: the one that names it, else one that names another
    /// token of the crawler whose first token it is, else the one for `*`. Some operators say that
    /// `*` does not bind their crawler: for its token the group for `*` does not count.
    fn find<T: Copy>(&self, side: &HashMap<String, T>, token: &str) -> Option<T> {
        let token = token.to_ascii_lowercase();
        let crawler = self.crawlers.get(&token).copied();
        let chain = crawler
            .iter()
            .flat_map(|crawler| crawler.tokens.iter().skip(1));
        let mut named =
            std::iter::once(token.clone()).chain(chain.map(|other| other.to_ascii_lowercase()));
        let named = named.find_map(|token| side.get(&token).copied());
        named.or_else(|| side.get("*").copied().filter(|_| follows_star(crawler)))
    }

    /// The source of the group of a token: the place that names the token, in the policy before the
    /// origin, else the place of the rules that `pair` gives it. `None` where neither side has
    /// rules for it.
    fn source(&self, token: &str, pair: Pair) -> Option<RuleSource> {
        let token = token.to_ascii_lowercase();
        if let Some(index) = self.of_policy.get(&token) {
            return Some(self.policy[*index].source.clone());
        }
        if let Some((_, line)) = self.of_origin.get(&token) {
            return Some(RuleSource::Origin(*line));
        }
        if let Some(index) = pair.policy {
            return Some(self.policy[index].source.clone());
        }
        self.origin.line_of(pair.origin?).map(RuleSource::Origin)
    }
}

/// Whether `*` binds a crawler. A token of no known crawler (`None`) follows it.
fn follows_star(crawler: Option<&Crawler>) -> bool {
    crawler.is_none_or(|crawler| crawler.binds.follow_star())
}

/// Adds a group of the origin to the policy's group for the same token: rules, Crawl-delay and
/// other lines. A group that disallows everything gets no rules and no delay. A delay of the policy
/// stays. Comments (`notes`) name what is left out.
fn join(draft: &mut Draft, origin: &OriginGroup, bounds: &mut Bounds) {
    let closed = is_closed(&draft.rules);
    if closed {
        if !origin.rules.is_empty() {
            // For any group of the origin: it may name none of these crawlers, and mean them by its
            // `*`.
            draft.notes.push(format!(
                "All is disallowed: no rule of {ORIGIN} changes that."
            ));
        }
    } else {
        let added = added(draft, origin, bounds);
        draft.has_origin_rules = !added.is_empty() && draft.heading != Heading::Origin;
        draft.rules.extend(added);
    }
    match (draft.crawl_delay, origin.crawl_delay) {
        // A crawler that may fetch nothing needs no delay.
        (None, delay) => draft.crawl_delay = delay.filter(|_| !closed),
        (Some(ours), Some(theirs)) if ours != theirs => {
            let seconds = theirs.as_secs_f64();
            draft.notes.push(format!(
                "Left out of {ORIGIN}: `Crawl-delay: {seconds}`, for the policy has its own."
            ));
        }
        _ => {}
    }
    join_extensions(draft, origin, closed);
}

/// Adds the other lines of a group of the origin, except those with a key that the policy has for
/// this group; a comment names these keys. Lines with a key that the policy has for the whole site
/// are gone by now (`OriginRules::leave_out`). A closed group gets no lines about the use of
/// content (draft-ietf-aipref-attach-05 section 3.1).
fn join_extensions(draft: &mut Draft, origin: &OriginGroup, closed: bool) {
    let mut own = Vec::new();
    for line in &origin.extensions {
        if closed && key_of(line, &signals::KEYS).is_some() {
            continue;
        }
        match key_of(line, &draft.signal_keys) {
            Some(key) => own.push(key),
            None => draft.extensions.push(line.clone()),
        }
    }
    if !own.is_empty() {
        own.sort_unstable();
        own.dedup();
        draft.notes.push(format!(
            "Left out of {ORIGIN}, for the policy has its own here: {}.",
            own.join(", ")
        ));
    }
}

/// The rules of the origin that join the policy's, without those that it has already. Left out with
/// a comment: an Allow that could defeat a Disallow of the policy, a Disallow of the whole site
/// where the policy allows the purpose, and a Disallow of a pattern that the policy allows.
fn added(draft: &mut Draft, origin: &OriginGroup, bounds: &mut Bounds) -> Vec<(Rule, RuleSource)> {
    let of_policy = draft.rules.clone();
    let ours: HashSet<&Rule> = of_policy.iter().map(|(rule, _)| rule).collect();
    let mut allows = Allows::new(&of_policy, &of_policy);
    let mut added = Vec::new();
    for (rule, source) in origin.rules.iter().filter(|(rule, _)| !ours.contains(rule)) {
        if rule.allow {
            if allows.admit(rule, source, bounds, draft) {
                added.push((rule.clone(), source.clone()));
            }
            continue;
        }
        let opposite = Rule {
            allow: true,
            pattern: rule.pattern.clone(),
        };
        let reason = if matches!(draft.heading, Heading::Purpose { allowed: true, .. })
            && rule.pattern.is_blanket()
        {
            "for the purpose is allowed".to_owned()
        } else if ours.contains(&opposite) {
            // Of two rules for the same pattern Allow wins: the Disallow would have no effect.
            format!("which gives way to `{opposite}`")
        } else {
            added.push((rule.clone(), source.clone()));
            continue;
        };
        draft
            .notes
            .push(format!("Left out of {ORIGIN}: `{rule}`, {reason}."));
    }
    allows.count_the_rest(&mut draft.notes);
    added
}

/// The one of the keys that a line has.
fn key_of(line: &Extension, keys: &[&'static str]) -> Option<&'static str> {
    let mut keys = keys.iter().copied();
    keys.find(|key| line.key.eq_ignore_ascii_case(key))
}

/// Takes out of every group the Allow rules of the origin that could defeat one of these Disallow
/// rules, with a comment for each. All other rules stay.
pub fn hold_against_origin(
    drafts: &mut [Draft],
    disallows: &[(Rule, RuleSource)],
    bounds: &mut Bounds,
) {
    for draft in drafts {
        let mut rules = draft.rules.iter();
        if !rules.any(|(rule, source)| rule.allow && is_of_origin(source)) {
            continue;
        }
        let rules = std::mem::take(&mut draft.rules);
        let of_policy: Vec<_> = rules
            .iter()
            .filter(|(_, source)| !is_of_origin(source))
            .cloned()
            .collect();
        let mut allows = Allows::new(disallows, &of_policy);
        for (rule, source) in rules {
            if !rule.allow || !is_of_origin(&source) || allows.admit(&rule, &source, bounds, draft)
            {
                draft.rules.push((rule, source));
            }
        }
        allows.count_the_rest(&mut draft.notes);
    }
}

/// The Allow rules of the origin that come into one group, one after the other.
struct Allows<'a> {
    ours: PolicyRules<'a>,
    left_out: usize,
}

impl<'a> Allows<'a> {
    fn new(disallows: &'a [(Rule, RuleSource)], of_policy: &'a [(Rule, RuleSource)]) -> Allows<'a> {
        Allows {
            ours: PolicyRules::new(disallows, of_policy),
            left_out: 0,
        }
    }

    /// Decides whether an Allow of the origin may stay. If it may not, counts it, adds a comment to
    /// `draft` (for the first `NOTED` of the group), and a finding for the lints, except where the
    /// Disallow covers all of the Allow.
    fn admit(
        &mut self,
        rule: &Rule,
        source: &RuleSource,
        bounds: &mut Bounds,
        draft: &mut Draft,
    ) -> bool {
        let Some(conflict) = self.ours.conflict(&rule.pattern, bounds) else {
            return true;
        };
        let ((ours, _), told) = match conflict {
            Conflict::Covered(ours) => (ours, None),
            Conflict::Defeats(ours) => (ours, told(rule, source, &ours.1)),
        };
        self.left_out += 1;
        if self.left_out <= NOTED {
            draft.notes.push(format!(
                "Left out of {ORIGIN}: `{rule}`, which could defeat `{ours}`."
            ));
        }
        draft.left_out.extend(told);
        false
    }

    /// Adds a comment with the number of left-out Allow lines beyond `NOTED`, if there are any.
    fn count_the_rest(&self, notes: &mut Vec<String>) {
        if let more @ 1.. = self.left_out.saturating_sub(NOTED) {
            notes.push(format!(
                "Left out of {ORIGIN}, for the same reason: {more} more Allow lines."
            ));
        }
    }
}

/// The finding for the lints that the Allow `rule` of the origin is left out because of the
/// Disallow at `by`. `None` unless `source` is a line of the origin and `by` a place in the policy.
fn told(rule: &Rule, source: &RuleSource, by: &RuleSource) -> Option<LeftOut> {
    match (source, by) {
        (RuleSource::Origin(line), RuleSource::Policy(span) | RuleSource::Purpose(span)) => {
            Some(LeftOut {
                allow: rule.pattern.clone(),
                line: *line,
                disallow: *span,
            })
        }
        _ => None,
    }
}

fn is_of_origin(source: &RuleSource) -> bool {
    matches!(source, RuleSource::Origin(_))
}

/// Whether a group disallows the whole site and has no Allow, so that more rules change nothing.
pub fn is_closed(rules: &[(Rule, RuleSource)]) -> bool {
    rules.iter().all(|(rule, _)| !rule.allow)
        && rules.iter().any(|(rule, _)| rule.pattern.is_blanket())
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
