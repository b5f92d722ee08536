//! The policy's groups and the origin's made into one file.
//!
//! For each token that either side names: the effective rules of both (the group that names it, else the group of a
//! token that its crawler also goes by, else `*`), put together. The policy's Disallow always holds (`beside.rs`). Nothing that the origin disallows goes away unsaid.

use super::beside::{Beside, Bounds, beside};
use super::origin_rules::{OriginGroup, OriginRules};
use super::signals;
use super::synthesis::Draft;
use crate::crawlers::{Binds, Crawler, Registry};
use crate::policy::compiled::{LeftOut, RuleSource};
use crate::robots::{Extension, Pattern, Rule};
use std::collections::{HashMap, HashSet};

/// Allow lines of a group that are named when they do not come along as they are; the rest is counted, lest comments fill
/// the file.
pub(super) const NOTED: usize = 20;

/// What names rules in comments: the file is public, an address of the origin is not.
pub(super) const ORIGIN: &str = "the origin's robots.txt";

/// The comment of a `*` that only the site's signals need.
pub(super) const EVERYBODY_ELSE: &str = "For every crawler that no group names.";

/// The origin's file alone.
pub fn only(origin: &OriginRules) -> Vec<Draft> {
    let star = origin.star.iter().map(|&(group, line)| ("*".to_owned(), group, line));
    let tokens = star.chain(origin.tokens.iter().cloned());
    let draft = |(token, group, line): (String, usize, usize)| {
        let OriginGroup { rules, crawl_delay, extensions } = origin.groups[group].clone();
        Draft {
            agents: vec![token],
            rules,
            crawl_delay,
            extensions,
            comments: vec![format!("From {ORIGIN}.")],
            source: RuleSource::Origin(line),
            ..Draft::nothing()
        }
    };
    tokens.map(draft).collect()
}

/// The policy's groups, given one for each token, and the origin's.
pub fn merge(policy: Vec<Draft>, origin: &OriginRules, registry: &Registry) -> Vec<Draft> {
    let sides = Sides::new(&policy, origin, registry);
    let mut merged: HashMap<Pair, Draft> = HashMap::new();
    let mut bounds = Bounds::default();
    let mut drafts = Vec::new();
    for token in sides.tokens() {
        let pair = sides.pair(&token);
        let together = merged.entry(pair).or_insert_with(|| {
            let of_policy = pair.policy.map(|index| &policy[index]);
            together(of_policy, pair.origin.map(|index| &origin.groups[index]), &mut bounds)
        });
        // Where the group comes from is where the token is named, not where its rules are.
        let source = sides.named_by(&token).unwrap_or_else(|| together.source.clone());
        let mut draft = Draft { agents: vec![token], source, ..together.clone() };
        // Who is named by the origin has the signals of `*`, and is not everybody else any more.
        if draft.agents[0] != "*"
            && let Some(comment) = draft.comments.first_mut().filter(|comment| comment.starts_with(EVERYBODY_ELSE))
        {
            *comment = comment.replacen(EVERYBODY_ELSE, "From the site's policy.", 1);
        }
        drafts.push(draft);
    }
    drafts
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
        let mut crawlers = HashMap::new();
        for crawler in registry.crawlers() {
            if let Some(token) = crawler.tokens.first() {
                crawlers.entry(token.to_ascii_lowercase()).or_insert(crawler);
            }
        }
        Sides { policy, origin, of_policy, of_origin, crawlers, registry }
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

    /// The group of one side that binds a token. `*` does not bind the crawlers whose operators say so: naming them would.
    fn find(&self, side: &HashMap<String, usize>, token: &str) -> Option<usize> {
        let token = token.to_ascii_lowercase();
        let crawler = self.crawlers.get(&token).copied();
        let chain = crawler.iter().flat_map(|crawler| crawler.tokens.iter().skip(1));
        let mut named = std::iter::once(token.clone()).chain(chain.map(|other| other.to_ascii_lowercase()));
        let named = named.find_map(|token| side.get(&token).copied());
        named.or_else(|| side.get("*").copied().filter(|_| follows_star(crawler)))
    }

    fn named_by(&self, token: &str) -> Option<RuleSource> {
        let is = |other: &String| other.eq_ignore_ascii_case(token);
        let by_policy = self.of_policy.get(&token.to_ascii_lowercase()).map(|&index| self.policy[index].source.clone());
        let star = self.origin.star.filter(|_| token == "*").map(|(_, line)| line);
        let line = star.or_else(|| self.origin.tokens.iter().find(|(other, ..)| is(other)).map(|(.., line)| *line));
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
            notes.push(format!("All is disallowed: what else {ORIGIN} says about it changes nothing."));
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
    draft.comments.append(&mut notes);
    // Lines with a key that the policy has are gone by now (`OriginRules::leave_out`). Nothing is said about the use of what may not be fetched (draft-ietf-aipref-attach-05 section 3.1).
    let is_signal = |line: &Extension| signals::KEYS.iter().any(|key| line.key.eq_ignore_ascii_case(key));
    draft.extensions.extend(origin.extensions.iter().filter(|line| !(closed && is_signal(line))).cloned());
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
            added.push((rule.clone(), source.clone()));
            continue;
        };
        notes.push(format!("Left out of {ORIGIN}: `{}`, {reason}.", written(rule)));
    }
    allows.count_the_rest(notes);
    added
}

/// Sees to it that no Allow of the origin defeats one of these Disallow rules, whatever group it is in.
pub fn hold_against_origin(drafts: &mut [Draft], disallows: &[(Rule, RuleSource)]) {
    let mut bounds = Bounds::default();
    for Draft { rules, comments, left_out, .. } in drafts {
        let of_policy: Vec<_> =
            rules.iter().filter(|(_, source)| !matches!(source, RuleSource::Origin(_))).cloned().collect();
        let mut allows = Allows::new(disallows, &of_policy);
        let mut held = Vec::with_capacity(rules.len());
        for (rule, source) in std::mem::take(rules) {
            match rule.allow && matches!(source, RuleSource::Origin(_)) {
                true => allows.add(&rule, &source, &mut bounds, &mut held, left_out, comments),
                false => held.push((rule, source)),
            }
        }
        *rules = held;
        allows.count_the_rest(comments);
    }
}

/// The Allow rules of the origin that come into one group, one after the other.
struct Allows<'a> {
    disallows: &'a [(Rule, RuleSource)],
    of_policy: &'a [(Rule, RuleSource)],
    left_out: usize,
    cut: usize,
}

impl<'a> Allows<'a> {
    fn new(disallows: &'a [(Rule, RuleSource)], of_policy: &'a [(Rule, RuleSource)]) -> Allows<'a> {
        Allows { disallows, of_policy, left_out: 0, cut: 0 }
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
        match beside(rule, self.disallows, self.of_policy, bounds) {
            Beside::AsItIs => rules.push((rule.clone(), source.clone())),
            Beside::Cut { by, held } => {
                rules.push((rule.clone(), source.clone()));
                for added in held {
                    if !rules.iter().any(|(present, _)| *present == added.0) {
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
                if let (RuleSource::Origin(line), RuleSource::Policy(span) | RuleSource::Purpose(span)) =
                    (source, &by.1)
                {
                    left_out.push(LeftOut { allow: rule.pattern.clone(), line: *line, disallow: *span });
                }
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
