//! [`compose`] makes the robots.txt that a site serves. It writes the groups that the policy lists,
//! and groups for crawlers that the policy allows or disallows by purpose (such as training). The
//! module `merge` adds the rules of the origin's own robots.txt. A staging site has only one group,
//! for `*`.
//!
//! Traps (paths that no obedient crawler requests) and retired paths (which the site takes out of
//! search engines) are disallowed in every group. The group for `*` alone would not be enough,
//! because a crawler with a group of its own ignores it.

use super::CompileError;
use super::assemble::{ComposedRobots, assemble_groups};
use super::budget::{MergeBudget, try_spend};
use super::draft::{GroupDraft, GroupHeading, SourcedRule, draft_size, lines_size};
use super::merge::{self, is_fully_disallowed};
use super::origin_rules::OriginRules;
use super::registry_overrides::{CrawlerFacts, unregistered_crawlers};
use super::signals::{extends_chain, group_signal_keys, missing_star_group, signal_lines};
use crate::crawlers::{Registry, RobotsObedience};
use crate::policy::model::{CrawlStance, Environment, GroupPolicy, OriginRobotsMode, Policy};
use crate::policy::origin::OriginRobotsTxt;
use crate::policy::retire::RetireStage;
use crate::policy::site::RuleSource;
use crate::robots::Rule;
use crate::time::Timestamp;
use crate::yaml::Located;
use CrawlStance::*;
use GroupHeading::*;
use std::collections::HashSet;
use std::time::Duration;

/// The robots.txt of a policy at a time. `origin` is the origin's file, if the policy uses it and
/// there is a copy; with `origin: only` it alone gives the groups.
///
/// # Errors
/// When the origin's file is more than can be merged. A policy alone never is.
pub fn compose(
    policy: &Policy,
    origin: Option<&OriginRobotsTxt>,
    registry: &Registry,
    at: Timestamp,
) -> Result<ComposedRobots, CompileError> {
    let origin = origin
        .map(|origin| OriginRules::parse(origin, policy, registry))
        .transpose()?;
    let rules_for_all = [
        (Retire, retired_rules(policy, at)),
        (
            Traps,
            policy.enforcement.traps.iter().map(disallow_rule).collect(),
        ),
    ];
    let size_for_all = rules_for_all
        .iter()
        .map(|(_, rules)| lines_size(rules, &[]))
        .sum();
    // Without the origin's file nothing is bounded: a policy is small enough.
    let mut budget = MergeBudget::new(usize::MAX);
    let mut drafts = match &origin {
        None if policy.environment == Environment::Staging => vec![staging_group(policy)],
        None => policy_groups(policy, registry),
        Some(origin) if policy.robots.origin == OriginRobotsMode::Only => {
            budget = MergeBudget::new(size_for_all);
            let mut drafts = merge::merge(Vec::new(), origin, registry, &mut budget)?;
            for draft in &mut drafts {
                draft.extensions.splice(0..0, signal_lines(policy, &[]));
            }
            drafts
        }
        Some(origin) => {
            let drafts = policy_groups(policy, registry);
            budget = MergeBudget::new(
                drafts
                    .iter()
                    .map(|draft| draft_size(draft) + size_for_all)
                    .sum(),
            );
            merge::merge(drafts, origin, registry, &mut budget)?
        }
    };
    let origin = origin.unwrap_or_default();
    if !try_spend(&mut budget.size, drafts.len().saturating_mul(size_for_all)) {
        return Err(origin.too_large_error());
    }
    for (heading, rules) in &rules_for_all {
        disallow_in_all_groups(policy, *heading, rules, &mut drafts, &mut budget);
    }
    let mut seen = HashSet::new();
    let dropped_rules = drafts
        .iter()
        .flat_map(|draft| &draft.dropped_rules)
        .filter(|one| seen.insert(*one))
        .cloned()
        .collect();
    let composed = assemble_groups(policy, drafts, &origin);
    Ok(ComposedRobots {
        dropped_rules,
        unpublished_lines: origin.unpublished_lines,
        origin_tokens: origin.tokens.into_iter().map(|(token, ..)| token).collect(),
        ..composed
    })
}

/// The only group of a staging site. It allows everything, so that crawlers see the noindex of
/// every page, unless the policy says `staging_crawl: disallow`.
fn staging_group(policy: &Policy) -> GroupDraft {
    let allow = policy.staging_crawl != Disallow;
    let heading = if allow { OpenStaging } else { ClosedStaging };
    GroupDraft {
        rules: vec![(Rule::new(allow, "/"), RuleSource::Staging)],
        ..star_group(policy, heading, RuleSource::Staging)
    }
}

/// The groups of the policy, one for each agent, a group for `*` if statements about the use of
/// content need one, and the groups for purposes.
fn policy_groups(policy: &Policy, registry: &Registry) -> Vec<GroupDraft> {
    let mut drafts: Vec<GroupDraft> = Vec::new();
    for (index, group) in policy.robots.groups.iter().enumerate() {
        let chain = extends_chain(policy, index);
        let (rules, crawl_delay) = resolved_rules(&chain);
        for agent in &group.agents {
            drafts.push(GroupDraft {
                agents: vec![agent.value.clone()],
                rules: rules.clone(),
                crawl_delay: crawl_delay.clone(),
                extensions: signal_lines(policy, &chain),
                signal_keys: group_signal_keys(&chain),
                ..GroupDraft::new(Groups, RuleSource::Policy(agent.span))
            });
        }
    }
    if let Some(span) = missing_star_group(policy) {
        drafts.push(star_group(policy, Signals, RuleSource::Policy(span)));
    }
    add_purpose_groups(policy, registry, &mut drafts);
    drafts
}

/// Adds a group for each crawler with a purpose that the policy allows or disallows, unless a group
/// names its first token. A `disallow` group has only `Disallow: /`; an `allow` group is a copy of
/// the group for `*` without its Disallow of the whole site.
fn add_purpose_groups(policy: &Policy, registry: &Registry, drafts: &mut Vec<GroupDraft>) {
    let star = drafts.iter().find(|draft| draft.names_star()).cloned();
    for (purpose, stance) in &policy.purposes {
        let source = RuleSource::Purpose(stance.span);
        let heading = Purpose {
            purpose: *purpose,
            allowed: stance.value == Allow,
        };
        let draft = match (stance.value, &star) {
            (Inherit, _) => continue,
            // Nothing is said about the use of what may not be fetched (draft-ietf-aipref-attach-05
            // section 3.1).
            (Disallow, _) => GroupDraft {
                rules: vec![(Rule::new(false, "/"), source.clone())],
                ..GroupDraft::new(heading, source)
            },
            (Allow, Some(star)) => {
                let rules = star
                    .rules
                    .iter()
                    .filter(|(rule, _)| rule.allow || !rule.pattern.is_blanket())
                    .cloned()
                    .collect();
                GroupDraft {
                    heading,
                    source,
                    rules,
                    ..star.clone()
                }
            }
            (Allow, None) => star_group(policy, heading, source),
        };
        let known = registry
            .crawlers()
            .iter()
            .filter(|crawler| crawler.retired.is_none())
            .filter_map(|crawler| {
                let facts = CrawlerFacts::from_registry(policy, crawler);
                Some((crawler.tokens.first()?, facts.binds)).filter(|_| facts.purpose == *purpose)
            });
        let added = unregistered_crawlers(policy, registry)
            .filter(|described| described.purpose == Some(*purpose))
            .map(|described| {
                (
                    &described.token.value,
                    described.binds.unwrap_or(RobotsObedience::Star),
                )
            });
        for (token, binds) in known.chain(added) {
            // A crawler that does not follow `*` is free without a group; `allow` would bind it.
            let is_free = stance.value == Allow && !binds.follows_star();
            if !is_free
                && !drafts
                    .iter()
                    .any(|draft| draft.agents[0].eq_ignore_ascii_case(token))
            {
                drafts.push(GroupDraft {
                    agents: vec![token.clone()],
                    ..draft.clone()
                });
            }
        }
    }
}

/// Adds Disallow rules to every group, and removes Allow rules of the origin that could defeat
/// them. Adds a group for `*` if there is none. A group that disallows everything gets only the
/// rules of traps, so that it stays short.
fn disallow_in_all_groups(
    policy: &Policy,
    heading: GroupHeading,
    rules: &[SourcedRule],
    drafts: &mut Vec<GroupDraft>,
    budget: &mut MergeBudget,
) {
    let Some((_, source)) = rules.first() else {
        return;
    };
    merge::drop_defeating_allows(drafts, rules, budget);
    if !drafts.iter().any(GroupDraft::names_star) {
        drafts.push(star_group(policy, heading, source.clone()));
    }
    drafts
        .iter_mut()
        .filter(|draft| heading == Traps || !is_fully_disallowed(&draft.rules))
        .for_each(|draft| add_missing_rules(draft, rules));
}

/// A group for `*` without rules, with the site's lines about the use of content.
fn star_group(policy: &Policy, heading: GroupHeading, source: RuleSource) -> GroupDraft {
    GroupDraft {
        agents: vec!["*".into()],
        extensions: signal_lines(policy, &[]),
        ..GroupDraft::new(heading, source)
    }
}

/// A Disallow for each path in the last stage of its retirement.
fn retired_rules(policy: &Policy, at: Timestamp) -> Vec<SourcedRule> {
    policy
        .retirements()
        .iter()
        .filter(|retired| retired.stage(at) == RetireStage::Disallowed)
        .flat_map(|retired| &retired.paths)
        .map(disallow_rule)
        .collect()
}

fn disallow_rule(path: &Located<String>) -> SourcedRule {
    (Rule::new(false, path), RuleSource::Policy(path.span))
}

/// Appends the rules that the group does not have yet, each once.
fn add_missing_rules(draft: &mut GroupDraft, rules: &[SourcedRule]) {
    let mut present: HashSet<&Rule> = draft.rules.iter().map(|(rule, _)| rule).collect();
    let new: Vec<_> = rules
        .iter()
        .filter(|(rule, _)| present.insert(rule))
        .cloned()
        .collect();
    draft.rules.extend(new);
}

/// The rules of a group after those of the groups that it extends, each once; and its Crawl-delay,
/// else that of the nearest group that it extends.
fn resolved_rules(chain: &[&GroupPolicy]) -> (Vec<SourcedRule>, Option<(Duration, RuleSource)>) {
    let mut rules: Vec<SourcedRule> = Vec::new();
    for group in chain.iter().rev() {
        for (allow, patterns) in [(true, &group.allow), (false, &group.disallow)] {
            for pattern in patterns {
                let rule = Rule::new(allow, pattern);
                if !rules.iter().any(|(present, _)| *present == rule) {
                    rules.push((rule, RuleSource::Policy(pattern.span)));
                }
            }
        }
    }
    (
        rules,
        chain
            .iter()
            .find_map(|group| group.crawl_delay)
            .map(|delay| (delay.value, RuleSource::Policy(delay.span))),
    )
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
