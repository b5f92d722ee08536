//! [`merge`] unites the groups of the policy with the groups of the origin's own robots.txt.
//!
//! Every user-agent token that the policy or the origin names gets rules from the policy and from
//! the origin. On each side, the group that names the token counts. If there is none, a group for
//! another token of the same crawler counts. If there is none either, the group for `*` counts,
//! provided that the crawler follows `*`.
//!
//! An Allow of the origin is left out if it could defeat a Disallow of the policy
//! (`allow_conflicts.rs`). The policy's group for `*` may count for a token that only the origin
//! names. Then an Allow of this group is left out if a Disallow of the origin covers all URLs of
//! the Allow. Comments in the merged file say what is left out.

use super::CompileError;
use super::allow_conflicts::{AllowFilter, dropped_rule};
use super::budget::{MergeBudget, try_spend};
use super::draft::{
    GroupDraft, GroupHeading, ORIGIN_FILE, SourcedRule, draft_size, first_equal_drafts,
};
use super::origin_rules::{OriginGroup, OriginRules};
use super::signals;
use crate::crawlers::{Crawler, Registry};
use crate::policy::site::RuleSource;
use crate::robots::{ExtensionLine, Rule};
use std::collections::{HashMap, HashSet};

/// Merges the policy's groups, each for one token, with the origin's. Tokens that get the same
/// groups of both sides share a merged group.
///
/// # Errors
/// When the rules of the origin or the size of the merged groups exceed the budget.
pub fn merge(
    policy: Vec<GroupDraft>,
    origin: &OriginRules,
    registry: &Registry,
    budget: &mut MergeBudget,
) -> Result<Vec<GroupDraft>, CompileError> {
    let sides = MergeSides::new(&policy, origin, registry);
    // Equal groups of the policy are merged once: the first stands for all.
    let alike = first_equal_drafts(&policy);
    let mut drafts: Vec<GroupDraft> = Vec::new();
    let mut places = HashMap::new();
    for (number, token) in sides.tokens().into_iter().enumerate() {
        let pair = sides.group_pair(&token);
        let Some(source) = sides.source(&token, pair) else {
            continue;
        };
        let pair = GroupPair {
            policy: pair.policy.map(|index| alike[index]),
            ..pair
        };
        // `*` has a group of its own: its comments are its own, and parsers that know one agent per
        // group must find it.
        let is_star = token == "*";
        let place = *places.entry((pair, is_star)).or_insert(drafts.len());
        if place == drafts.len() {
            let mut draft = match pair.policy {
                Some(index) => policy[index].clone(),
                None => GroupDraft::new(GroupHeading::Origin, source.clone()),
            };
            if let Some(index) = pair.origin {
                let group = &origin.groups[index];
                if !try_spend(&mut budget.rules, group.rules.len()) {
                    return Err(origin.too_large_error());
                }
                if !is_star && draft.names_star() {
                    drop_opening_allows(&mut draft, group, budget);
                }
                add_origin_group(&mut draft, group, budget);
            }
            if !try_spend(&mut budget.size, draft_size(&draft)) {
                return Err(origin.too_large_error());
            }
            drafts.push(GroupDraft {
                source: source.clone(),
                agents: Vec::new(),
                ..draft
            });
        }
        drafts[place].agents.push(token);
        drafts[place].places.push((number, source));
    }
    Ok(drafts)
}

/// The groups of the policy and of the origin that bind a token, as indexes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct GroupPair {
    policy: Option<usize>,
    origin: Option<usize>,
}

/// The groups of both sides, indexed by token.
struct MergeSides<'a> {
    policy: &'a [GroupDraft],
    origin: &'a OriginRules,
    /// The group of each token (in lower case, also `*`).
    of_policy: HashMap<String, usize>,
    /// The group of each token, and the line that names the token.
    of_origin: HashMap<String, (usize, usize)>,
    /// The crawler of each first token.
    crawlers: HashMap<String, &'a Crawler>,
    registry: &'a Registry,
}

impl<'a> MergeSides<'a> {
    fn new(
        policy: &'a [GroupDraft],
        origin: &'a OriginRules,
        registry: &'a Registry,
    ) -> MergeSides<'a> {
        let mut of_policy = HashMap::new();
        for (index, draft) in policy.iter().enumerate() {
            for agent in &draft.agents {
                of_policy.entry(agent.to_ascii_lowercase()).or_insert(index);
            }
        }
        let of_origin = origin
            .tokens
            .iter()
            .map(|(token, group, line)| (token.to_ascii_lowercase(), (*group, *line)))
            .collect();
        let mut crawlers = HashMap::new();
        for crawler in registry.crawlers() {
            if let Some(token) = crawler.tokens.first() {
                crawlers
                    .entry(token.to_ascii_lowercase())
                    .or_insert(crawler);
            }
        }
        MergeSides {
            policy,
            origin,
            of_policy,
            of_origin,
            crawlers,
            registry,
        }
    }

    /// The tokens that need a merged group: the policy's, then the origin's, then those of crawlers
    /// that would find the group of only one side, because the sides name them by different tokens.
    fn tokens(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let mut all: Vec<String> = self
            .policy
            .iter()
            .flat_map(|draft| &draft.agents)
            .chain(self.origin.tokens.iter().map(|(token, ..)| token))
            .filter(|token| seen.insert(token.to_ascii_lowercase()))
            .cloned()
            .collect();
        for crawler in self.registry.crawlers() {
            let Some(token) = crawler.tokens.first() else {
                continue;
            };
            let lower = token.to_ascii_lowercase();
            // Another crawler with the same first token may follow other tokens, and a group for it
            // would bind both.
            if self.crawlers[&lower].id != crawler.id || seen.contains(&lower) {
                continue;
            }
            let found = crawler
                .tokens
                .iter()
                .find(|token| seen.contains(&token.to_ascii_lowercase()));
            let followed = match found {
                Some(found) => self.group_pair(found),
                None if crawler.binds.follows_star() => self.group_pair("*"),
                None => GroupPair::default(),
            };
            if followed != self.group_pair(token) {
                seen.insert(lower);
                all.push(token.clone());
            }
        }
        all
    }

    fn group_pair(&self, token: &str) -> GroupPair {
        GroupPair {
            policy: self.find_group(&self.of_policy, token),
            origin: self
                .find_group(&self.of_origin, token)
                .map(|(group, _)| group),
        }
    }

    /// The group of one side that binds a token: the one that names it, else one that names another
    /// token of its crawler, else the one for `*` if the crawler follows it.
    /// A token of no known crawler does.
    fn find_group<T: Copy>(&self, side: &HashMap<String, T>, token: &str) -> Option<T> {
        let token = token.to_ascii_lowercase();
        let crawler = self.crawlers.get(&token).copied();
        let follows_star = crawler.is_none_or(|crawler| crawler.binds.follows_star());
        std::iter::once(&token)
            .chain(crawler.iter().flat_map(|crawler| &crawler.tokens))
            .find_map(|token| side.get(&token.to_ascii_lowercase()))
            .or_else(|| side.get("*").filter(|_| follows_star))
            .copied()
    }

    /// The source of the merged group of a token: where the token is named, else where the rules of
    /// `pair` are; `None` where there are none.
    fn source(&self, token: &str, pair: GroupPair) -> Option<RuleSource> {
        let token = token.to_ascii_lowercase();
        // For a token that the policy names, `pair.policy` is the group that names it.
        let line = match (self.of_origin.get(&token), pair.policy) {
            (Some((_, line)), _) if !self.of_policy.contains_key(&token) => *line,
            (_, Some(index)) => return Some(self.policy[index].source.clone()),
            _ => self.origin.first_line_of(pair.origin?)?,
        };
        Some(RuleSource::Origin(line))
    }
}

/// Removes from a copy of the policy's group for `*` each Allow that opens only what the origin
/// disallows for the token, with a comment for each.
fn drop_opening_allows(draft: &mut GroupDraft, origin: &OriginGroup, budget: &mut MergeBudget) {
    let filter = AllowFilter::new(&origin.rules, &origin.rules);
    let notes = &mut draft.notes;
    draft.rules.retain(|(rule, _)| {
        let Some(closing) = filter.find_covering(rule, budget) else {
            return true;
        };
        notes.push(format!(
            "Left out of the policy's group for \"*\": \"{rule}\", because {ORIGIN_FILE} names \
             this crawler and says \"{closing}\"."
        ));
        false
    });
}

/// Adds a group of the origin to a group of the policy. A group that disallows everything gets no
/// rules and no delay, and a delay of the policy stays. Comments name what is left out.
fn add_origin_group(draft: &mut GroupDraft, origin: &OriginGroup, budget: &mut MergeBudget) {
    let closed = is_fully_disallowed(&draft.rules);
    if closed {
        if !origin.rules.is_empty() {
            draft.notes.push(format!(
                "Everything is disallowed: no rule of {ORIGIN_FILE} changes that."
            ));
        }
    } else {
        let added = rules_to_add(draft, origin, budget);
        draft.has_origin_rules = !added.is_empty() && draft.heading != GroupHeading::Origin;
        draft.rules.extend(added);
    }
    match (&draft.crawl_delay, &origin.crawl_delay) {
        // A crawler that may fetch nothing needs no delay.
        (None, delay) => draft.crawl_delay = delay.clone().filter(|_| !closed),
        (Some((ours, _)), Some((theirs, _))) if ours != theirs => {
            let seconds = theirs.as_secs_f64();
            draft.notes.push(format!(
                "Left out of {ORIGIN_FILE}: \"Crawl-delay: {seconds}\", because the policy has \
                 its own."
            ));
        }
        _ => {}
    }
    add_origin_lines(draft, origin, closed);
}

/// Adds the other lines of a group of the origin, except those with keys that the policy has for
/// this group; a comment names these keys. A closed group gets no lines about the use of content
/// (draft-ietf-aipref-attach-05 section 3.1).
fn add_origin_lines(draft: &mut GroupDraft, origin: &OriginGroup, closed: bool) {
    let mut own = Vec::new();
    for line in &origin.extensions {
        if closed && matching_key(line, &signals::KEYS).is_some() {
            continue;
        }
        match matching_key(line, &draft.signal_keys) {
            Some(key) => own.push(key),
            None => draft.extensions.push(line.clone()),
        }
    }
    if !own.is_empty() {
        own.sort_unstable();
        own.dedup();
        draft.notes.push(format!(
            "Left out of {ORIGIN_FILE}, because the policy has its own here: {}.",
            own.join(", ")
        ));
    }
}

/// The new rules of an origin's group. Left out with a comment: an Allow that could defeat a
/// Disallow of the policy, a Disallow of the whole site where the policy allows the purpose, and a
/// Disallow of a pattern that the policy allows.
fn rules_to_add(
    draft: &mut GroupDraft,
    origin: &OriginGroup,
    budget: &mut MergeBudget,
) -> Vec<SourcedRule> {
    let of_policy = draft.rules.clone();
    let ours: HashSet<&Rule> = of_policy.iter().map(|(rule, _)| rule).collect();
    let mut allows = AllowFilter::new(&of_policy, &of_policy);
    let mut added = Vec::new();
    for new in origin.rules.iter().filter(|(rule, _)| !ours.contains(rule)) {
        let (rule, source) = new;
        if rule.allow {
            if allows.admit(rule, source, budget, draft) {
                added.push(new.clone());
            }
            continue;
        }
        let opposite = Rule {
            allow: true,
            pattern: rule.pattern.clone(),
        };
        let reason = if matches!(draft.heading, GroupHeading::Purpose { allowed: true, .. })
            && rule.pattern.is_blanket()
        {
            "because the purpose is allowed".to_owned()
        } else if ours.contains(&opposite) {
            if rule.pattern.is_blanket()
                && let Some((_, by)) = of_policy.iter().find(|(ours, _)| *ours == opposite)
            {
                draft.dropped_rules.extend(dropped_rule(rule, source, by));
            }
            // Of two rules for the same pattern Allow wins: the Disallow would have no effect.
            format!("which gives way to \"{opposite}\"")
        } else {
            added.push(new.clone());
            continue;
        };
        draft
            .notes
            .push(format!("Left out of {ORIGIN_FILE}: \"{rule}\", {reason}."));
    }
    allows.note_unlisted(&mut draft.notes);
    added
}

/// The key of a line, if it is one of `keys`.
fn matching_key(line: &ExtensionLine, keys: &[&'static str]) -> Option<&'static str> {
    keys.iter()
        .copied()
        .find(|key| line.key.eq_ignore_ascii_case(key))
}

/// Removes from every group the Allow rules of the origin that could defeat one of these Disallow
/// rules, with a comment for each.
pub fn drop_defeating_allows(
    drafts: &mut [GroupDraft],
    disallows: &[SourcedRule],
    budget: &mut MergeBudget,
) {
    for draft in drafts {
        if !draft
            .rules
            .iter()
            .any(|(rule, source)| rule.allow && is_origin_rule(source))
        {
            continue;
        }
        let rules = std::mem::take(&mut draft.rules);
        let of_policy: Vec<_> = rules
            .iter()
            .filter(|(_, source)| !is_origin_rule(source))
            .cloned()
            .collect();
        let mut allows = AllowFilter::new(disallows, &of_policy);
        for (rule, source) in rules {
            if !rule.allow
                || !is_origin_rule(&source)
                || allows.admit(&rule, &source, budget, draft)
            {
                draft.rules.push((rule, source));
            }
        }
        allows.note_unlisted(&mut draft.notes);
    }
}

fn is_origin_rule(source: &RuleSource) -> bool {
    matches!(source, RuleSource::Origin(_))
}

/// Whether a group disallows the whole site and has no Allow: more rules change nothing.
pub fn is_fully_disallowed(rules: &[SourcedRule]) -> bool {
    rules.iter().all(|(rule, _)| !rule.allow)
        && rules.iter().any(|(rule, _)| rule.pattern.is_blanket())
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
