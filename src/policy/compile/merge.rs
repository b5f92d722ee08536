//! The policy's groups and the origin's made into one file.
//!
//! For each token that either side names: the effective rules of both (the group that names it, else the group of a
//! token that its crawler also goes by, else `*`), put together. The policy's Disallow always holds: an Allow of the
//! origin that could defeat one is left out, and a comment says so. Nothing that the origin disallows goes away unsaid.

use super::origin_rules::{OriginGroup, OriginRules};
use super::synthesis::Draft;
use crate::crawlers::{Binds, Crawler, Registry};
use crate::policy::compiled::RuleSource;
use crate::robots::{Pattern, Rule};
use std::collections::{HashMap, HashSet};

/// What comparing patterns may cost for a whole file, in octets compared: some 100 ms. Beyond it every Allow of the
/// origin is taken for one that could defeat a Disallow.
const BUDGET: usize = 50_000_000;

/// Allow lines of a group that are named when they are left out; the rest is counted, lest comments fill the file.
const NOTED: usize = 20;

/// What names rules in comments: the file is public, an address of the origin is not.
const ORIGIN: &str = "the origin's robots.txt";

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
            allowed_by_purpose: false,
        }
    };
    tokens.map(draft).collect()
}

/// The policy's groups, given one for each token, and the origin's.
pub fn merge(policy: Vec<Draft>, origin: &OriginRules, registry: &Registry) -> Vec<Draft> {
    let sides = Sides::new(&policy, origin, registry);
    let mut merged: HashMap<Pair, Draft> = HashMap::new();
    let mut budget = BUDGET;
    let mut drafts = Vec::new();
    for token in sides.tokens() {
        let pair = sides.pair(&token);
        let together = merged.entry(pair).or_insert_with(|| {
            let of_policy = pair.policy.map(|index| &policy[index]);
            together(of_policy, pair.origin.map(|index| &origin.groups[index]), &mut budget)
        });
        // Where the group comes from is where the token is named, not where its rules are.
        let source = sides.named_by(&token).unwrap_or_else(|| together.source.clone());
        drafts.push(Draft { agents: vec![token], source, ..together.clone() });
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
fn together(policy: Option<&Draft>, origin: Option<&OriginGroup>, budget: &mut usize) -> Draft {
    let Some(origin) = origin else { return policy.cloned().unwrap_or_else(Draft::nothing) };
    let mut draft = policy.cloned().unwrap_or_else(Draft::nothing);
    let mut notes = Vec::new();
    let closed = is_closed(&draft.rules);
    if closed {
        if !origin.rules.is_empty() {
            notes.push(format!("All is disallowed: what else {ORIGIN} says about it changes nothing."));
        }
    } else {
        let added = added(&draft, origin, budget, &mut notes);
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
    // Of lines with the same key the policy's are the owner's last word.
    let ours: HashSet<String> = draft.extensions.iter().map(|ours| ours.key.to_ascii_lowercase()).collect();
    let new = origin.extensions.iter().filter(|theirs| !ours.contains(&theirs.key.to_ascii_lowercase()));
    draft.extensions.extend(new.cloned());
    draft
}

/// The origin's rules that join the policy's; of the others a note says why they do not.
fn added(draft: &Draft, origin: &OriginGroup, budget: &mut usize, notes: &mut Vec<String>) -> Vec<(Rule, RuleSource)> {
    let ours: HashSet<&Rule> = draft.rules.iter().map(|(rule, _)| rule).collect();
    let disallows: Vec<&Rule> = draft.rules.iter().map(|(rule, _)| rule).filter(|rule| !rule.allow).collect();
    let (mut added, mut allows) = (Vec::new(), 0_usize);
    for (rule, source) in origin.rules.iter().filter(|(rule, _)| !ours.contains(rule)) {
        let opposite = Rule { allow: true, pattern: rule.pattern.clone() };
        let reason = if rule.allow {
            let could_defeat = |ours: &&&Rule| {
                ours.pattern.priority() <= rule.pattern.priority() && rule.pattern.overlaps(&ours.pattern, budget)
            };
            let defeated = disallows.iter().find(could_defeat);
            defeated.map(|ours| format!("which could defeat `{}`", written(ours)))
        } else if draft.allowed_by_purpose && is_blanket(&rule.pattern) {
            Some("for the purpose is allowed".to_owned())
        } else if ours.contains(&opposite) {
            // Of two rules for the same pattern Allow wins: the line would be there and mean nothing.
            Some(format!("which gives way to `{}`", written(&opposite)))
        } else {
            None
        };
        allows += usize::from(rule.allow && reason.is_some());
        match reason {
            None => added.push((rule.clone(), source.clone())),
            Some(_) if rule.allow && allows > NOTED => {}
            Some(reason) => notes.push(format!("Left out of {ORIGIN}: `{}`, {reason}.", written(rule))),
        }
    }
    if let Some(more) = allows.checked_sub(NOTED).filter(|more| *more > 0) {
        notes.push(format!("Left out of {ORIGIN}, for the same reason: {more} more Allow lines."));
    }
    added
}

/// Leaves out each Allow of the origin that could defeat one of these Disallow rules, whatever group it is in.
pub fn leave_out_allows(drafts: &mut [Draft], disallows: &[Rule]) {
    let mut budget = BUDGET;
    for Draft { rules, comments, .. } in drafts {
        let mut allows = 0_usize;
        rules.retain(|(rule, source)| {
            if !rule.allow || !matches!(source, RuleSource::Origin(_)) {
                return true;
            }
            let could_defeat = |ours: &&Rule| {
                ours.pattern.priority() <= rule.pattern.priority() && rule.pattern.overlaps(&ours.pattern, &mut budget)
            };
            let Some(ours) = disallows.iter().find(could_defeat) else { return true };
            allows += 1;
            if allows <= NOTED {
                let (theirs, ours) = (written(rule), written(ours));
                comments.push(format!("Left out of {ORIGIN}: `{theirs}`, which could defeat `{ours}`."));
            }
            false
        });
        if let Some(more) = allows.checked_sub(NOTED).filter(|more| *more > 0) {
            comments.push(format!("Left out of {ORIGIN}, for the same reason: {more} more Allow lines."));
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
