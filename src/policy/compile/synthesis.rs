//! [`synthesise`] makes the robots.txt that a site serves. It writes the groups of the policy, and
//! groups for the crawlers of each purpose (such as training) that the policy allows or disallows.
//! It adds the origin's own robots.txt where the policy uses it. A staging site has only one group,
//! for `*`.
//!
//! Traps (paths that no obedient crawler requests) and paths that were retired from search engines
//! are disallowed in every group, because a crawler with a group of its own ignores the group for
//! `*`.

use super::budget::{Bounds, TooMuch, take};
use super::draft::{Draft, Heading, ORIGIN, first_alike, octets_of, octets_of_rule};
use super::merge::{self, is_closed};
use super::origin_rules::OriginRules;
use super::registry_overrides::{Nature, added};
use super::signals::{
    chain, group_keys, group_lines, group_lines_of_site, site_lines, star_without_group,
};
use crate::crawlers::{Binds, Registry};
use crate::policy::model::{Environment, OriginRobots, Policy, Stance};
use crate::policy::origin::OriginFile;
use crate::policy::retire::RetireStage;
use crate::policy::site::{LeftOut, RuleSource};
use crate::robots::{Document, Group, Pattern, Rule, render};
use crate::time::Timestamp;
use crate::yaml::Located;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Above this, tokens with identical rules share a group; below, each has its own, which weak
/// parsers read best.
const SEPARATE_GROUPS_BYTES: usize = 64 * 1024;

/// A document, its bytes, and the sources of its lines.
pub struct Synthesis {
    /// Tokens that the origin's file names.
    pub origin_tokens: Vec<String>,
    /// Allow lines of the origin that are in no group of those they were written for.
    pub left_out: Vec<LeftOut>,
    /// Lines of the origin with a host that crawlers cannot reach.
    pub unpublished_lines: Vec<usize>,
    pub document: Document,
    pub body: String,
    pub group_sources: Vec<RuleSource>,
    pub rule_sources: Vec<Vec<RuleSource>>,
}

/// The document of a policy as it is at `at`, together with the origin's file where the policy uses
/// it. With `origin: only` that file alone gives the groups; without a copy of it (`None`), the
/// policy alone does. Traps are disallowed on staging sites too, retired paths are not.
///
/// # Errors
/// When the origin's file is more than can be merged. A policy alone never is.
pub fn synthesise(
    policy: &Policy,
    origin: Option<&OriginFile>,
    registry: &Registry,
    at: Timestamp,
) -> Result<Synthesis, TooMuch> {
    let origin = origin
        .map(|origin| OriginRules::read(origin, policy, registry))
        .transpose()?;
    let in_all = retired(policy, at)
        .iter()
        .chain(&traps(policy))
        .map(|(rule, _)| octets_of_rule(rule))
        .sum();
    // Without the origin's file nothing is bounded: a policy is small enough.
    let mut bounds = Bounds::new(usize::MAX);
    let mut drafts = match (policy.environment, policy.robots.origin, &origin) {
        (Environment::Staging, ..) => vec![staging(policy)],
        (Environment::Production, OriginRobots::Merge, Some(origin)) => {
            let drafts = production(policy, registry);
            bounds = Bounds::new(drafts.iter().map(|draft| octets_of(draft) + in_all).sum());
            merge::merge(drafts, origin, registry, &mut bounds)?
        }
        (Environment::Production, OriginRobots::Only, Some(origin)) => {
            bounds = Bounds::new(in_all);
            let mut drafts = merge::merge(Vec::new(), origin, registry, &mut bounds)?;
            drafts
                .iter_mut()
                .for_each(|draft| drop(draft.extensions.splice(0..0, group_lines_of_site(policy))));
            drafts
        }
        (Environment::Production, ..) => production(policy, registry),
    };
    let origin = origin.unwrap_or_default();
    // Rules for all groups are written once for each group.
    if !take(&mut bounds.size, drafts.len().saturating_mul(in_all)) {
        return Err(origin.too_much());
    }
    if policy.environment == Environment::Production {
        disallow_in_all(
            policy,
            Heading::Retire,
            &retired(policy, at),
            &mut drafts,
            &mut bounds,
        );
    }
    disallow_in_all(
        policy,
        Heading::Traps,
        &traps(policy),
        &mut drafts,
        &mut bounds,
    );
    let mut seen = HashSet::new();
    let left_out = drafts
        .iter()
        .flat_map(|draft| &draft.left_out)
        .filter(|one| seen.insert(*one))
        .cloned()
        .collect();
    let mut synthesis = written(policy, drafts, &origin);
    synthesis.left_out = left_out;
    synthesis.unpublished_lines = origin.unpublished_lines;
    synthesis.origin_tokens = origin.tokens.into_iter().map(|(token, ..)| token).collect();
    Ok(synthesis)
}

/// Renders the drafts. Each token gets a group of its own if the file is at most 64 KiB then;
/// otherwise tokens whose groups are alike share one.
fn written(policy: &Policy, drafts: Vec<Draft>, origin: &OriginRules) -> Synthesis {
    let size = drafts
        .iter()
        .map(|draft| octets_of(draft).saturating_mul(draft.agents.len().max(1)));
    // Without looking closer, lest ten thousand tokens get ten thousand copies of what they share.
    if size.fold(0, usize::saturating_add) <= SEPARATE_GROUPS_BYTES {
        let separate = assemble(policy, separate(&drafts), origin);
        if separate.body.len() <= SEPARATE_GROUPS_BYTES {
            return separate;
        }
    }
    let mut shared: BTreeMap<usize, Draft> = BTreeMap::new();
    for (first, draft) in first_alike(&drafts).into_iter().zip(drafts) {
        match shared.get_mut(&first) {
            Some(alike) => alike.agents.extend(draft.agents),
            None => drop(shared.insert(first, draft)),
        }
    }
    assemble(policy, shared.into_values().collect(), origin)
}

/// One group for each agent, in the order of the agents in policy and origin (`places`); agents
/// without a place come last. The left-out Allow lines are not copied.
fn separate(drafts: &[Draft]) -> Vec<Draft> {
    let mut agents: Vec<_> = drafts
        .iter()
        .flat_map(|draft| (0..draft.agents.len()).map(move |agent| (draft, agent)))
        .collect();
    // Groups that were added later have no place, and stay behind.
    agents.sort_by_key(|(draft, agent)| {
        draft
            .places
            .get(*agent)
            .map_or(usize::MAX, |(place, _)| *place)
    });
    agents
        .into_iter()
        .map(|(draft, agent)| Draft {
            agents: vec![draft.agents[agent].clone()],
            places: Vec::new(),
            source: draft
                .places
                .get(agent)
                .map_or(&draft.source, |(_, source)| source)
                .clone(),
            left_out: Vec::new(),
            ..draft.clone()
        })
        .collect()
}

/// The only group of a staging site. It allows everything, because such a site says noindex on
/// everything (see the tag plan) and must be crawlable for that to be seen; it disallows everything
/// where the policy says `staging_crawl: disallow`.
fn staging(policy: &Policy) -> Draft {
    let allow = policy.staging_crawl != Stance::Disallow;
    Draft {
        rules: vec![(
            Rule {
                allow,
                pattern: Pattern::new("/"),
            },
            RuleSource::Staging,
        )],
        ..everybody_else(
            policy,
            Heading::Staging { crawlable: allow },
            RuleSource::Staging,
        )
    }
}

/// The groups of the policy, one for each agent, then a group for `*` if only statements about the
/// use of content need it, then the groups for purposes.
fn production(policy: &Policy, registry: &Registry) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for (index, group) in policy.robots.groups.iter().enumerate() {
        let (rules, crawl_delay) = resolved(policy, index);
        for agent in &group.agents {
            drafts.push(Draft {
                agents: vec![agent.value.clone()],
                rules: rules.clone(),
                crawl_delay,
                extensions: group_lines(policy, index),
                signal_keys: group_keys(policy, index),
                ..Draft::new(Heading::Groups, RuleSource::Policy(agent.span))
            });
        }
    }
    if let Some(span) = star_without_group(policy) {
        drafts.push(everybody_else(
            policy,
            Heading::EverybodyElse,
            RuleSource::Policy(span),
        ));
    }
    add_purposes(policy, registry, &mut drafts);
    drafts
}

/// Adds a group for each crawler (also of the owner's own) of a purpose that the policy allows or
/// disallows, unless a group names its first token. Retired crawlers get none. `disallow` is
/// `Disallow: /` alone; `allow` copies the group for `*` without its Disallow of the whole site,
/// and leaves out crawlers that `*` does not bind.
fn add_purposes(policy: &Policy, registry: &Registry, drafts: &mut Vec<Draft>) {
    let star = drafts.iter().find(|draft| draft.agents[0] == "*").cloned();
    for (purpose, stance) in &policy.purposes {
        let source = RuleSource::Purpose(stance.span);
        let heading = Heading::Purpose {
            purpose: *purpose,
            allowed: stance.value == Stance::Allow,
        };
        let draft = match (stance.value, &star) {
            (Stance::Inherit, _) => continue,
            // Nothing is said about the use of what may not be fetched (draft-ietf-aipref-attach-05
            // section 3.1).
            (Stance::Disallow, _) => {
                let blanket = Rule {
                    allow: false,
                    pattern: Pattern::new("/"),
                };
                Draft {
                    rules: vec![(blanket, source.clone())],
                    ..Draft::new(heading, source)
                }
            }
            (Stance::Allow, Some(star)) => {
                let rules = star
                    .rules
                    .iter()
                    .filter(|(rule, _)| !is_closing(rule))
                    .cloned()
                    .collect();
                Draft {
                    heading,
                    source,
                    rules,
                    ..star.clone()
                }
            }
            (Stance::Allow, None) => everybody_else(policy, heading, source),
        };
        let current = registry
            .crawlers()
            .iter()
            .filter(|crawler| crawler.retired.is_none());
        let known = current.filter_map(|crawler| {
            let nature = Nature::of_known(policy, crawler);
            Some((crawler.tokens.first()?, nature.binds)).filter(|_| nature.purpose == *purpose)
        });
        let added = added(policy, registry).filter(|described| described.purpose == Some(*purpose));
        let added = added.map(|described| {
            (
                &described.token.value,
                described.binds.unwrap_or(Binds::Star),
            )
        });
        for (token, binds) in known.chain(added) {
            // `allow` would bind crawlers that `*` does not: they are free without it.
            let is_free =
                stance.value == Stance::Allow && matches!(binds, Binds::Named | Binds::Never);
            if !is_free
                && !drafts
                    .iter()
                    .any(|draft| draft.agents[0].eq_ignore_ascii_case(token))
            {
                drafts.push(Draft {
                    agents: vec![token.clone()],
                    ..draft.clone()
                });
            }
        }
    }
}

/// Disallows paths in every group, because a group that names a crawler replaces `*`. Adds a group
/// for `*` where there is none, so that the crawlers that follow it read of the paths. Takes out
/// Allow rules of the origin that could defeat these. A closed group gets the rules only for traps.
/// Without rules nothing happens.
fn disallow_in_all(
    policy: &Policy,
    heading: Heading,
    rules: &[(Rule, RuleSource)],
    drafts: &mut Vec<Draft>,
    bounds: &mut Bounds,
) {
    let Some((_, source)) = rules.first() else {
        return;
    };
    merge::hold_against_origin(drafts, rules, bounds);
    if !drafts
        .iter()
        .any(|draft| draft.agents.iter().any(|agent| agent == "*"))
    {
        drafts.push(everybody_else(policy, heading, source.clone()));
    }
    // A closed group stays as short as it is, but for traps.
    drafts
        .iter_mut()
        .filter(|draft| heading == Heading::Traps || !is_closed(&draft.rules))
        .for_each(|draft| add_new(draft, rules));
}

/// A group for `*` without rules, with the site's lines about the use of content.
fn everybody_else(policy: &Policy, heading: Heading, source: RuleSource) -> Draft {
    Draft {
        agents: vec!["*".into()],
        extensions: group_lines_of_site(policy),
        ..Draft::new(heading, source)
    }
}

fn traps(policy: &Policy) -> Vec<(Rule, RuleSource)> {
    policy.enforcement.traps.iter().map(disallow).collect()
}

/// A Disallow for each path whose retirement has come to its last stage at `at`.
fn retired(policy: &Policy, at: Timestamp) -> Vec<(Rule, RuleSource)> {
    let retired = policy
        .retiring()
        .iter()
        .filter(|retired| retired.stage(at) == RetireStage::Disallowed);
    retired
        .flat_map(|retired| &retired.paths)
        .map(disallow)
        .collect()
}

fn disallow(path: &Located<String>) -> (Rule, RuleSource) {
    (
        Rule {
            allow: false,
            pattern: Pattern::new(path),
        },
        RuleSource::Policy(path.span),
    )
}

/// Adds those of the rules that the group does not have yet, each once, behind its own.
fn add_new(draft: &mut Draft, rules: &[(Rule, RuleSource)]) {
    let present: HashSet<&Rule> = draft.rules.iter().map(|(rule, _)| rule).collect();
    let mut seen = HashSet::new();
    let new: Vec<_> = rules
        .iter()
        .filter(|(rule, _)| !present.contains(rule) && seen.insert(rule))
        .cloned()
        .collect();
    draft.rules.extend(new);
}

/// A disallow of the whole site.
fn is_closing(rule: &Rule) -> bool {
    !rule.allow && rule.pattern.is_blanket()
}

/// The rules of a group behind those of the groups that it extends, each once, with Allow before
/// Disallow in each group; and the Crawl-delay of the group, else of the nearest that it extends.
fn resolved(policy: &Policy, index: usize) -> (Vec<(Rule, RuleSource)>, Option<Duration>) {
    let chain = chain(policy, index);
    let mut rules: Vec<(Rule, RuleSource)> = Vec::new();
    for group in chain.iter().rev() {
        for (allow, patterns) in [(true, &group.allow), (false, &group.disallow)] {
            for pattern in patterns {
                let rule = Rule {
                    allow,
                    pattern: Pattern::new(pattern),
                };
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
            .find_map(|group| group.crawl_delay.as_ref())
            .map(|delay| delay.value),
    )
}

/// Writes a comment about each kind of lines that the published file does not take over.
fn add_left_out(origin: &OriginRules, comments: &mut Vec<String>) {
    if !origin.left_out.is_empty() {
        let keys = origin.left_out.join(", ");
        comments.push(format!(
            "Left out of {ORIGIN}, for the policy has its own: {keys}."
        ));
    }
    if origin.unknown > 0 {
        // Without the lines: they may be anything.
        let lines = origin.unknown;
        comments.push(format!(
            "Left out of {ORIGIN}: lines with keys that no robots.txt has ({lines})."
        ));
    }
    if !origin.unpublished_lines.is_empty() {
        // Without the lines: the addresses are those of the origin's network.
        let lines = origin.unpublished_lines.len();
        comments.push(format!(
            "Left out of {ORIGIN}: lines with a host that crawlers cannot reach ({lines})."
        ));
    }
    let relative = &origin.relative_sitemaps;
    for sitemap in relative.iter().take(merge::NOTED) {
        let shown: String = sitemap.chars().take(200).collect();
        comments.push(format!(
            "Left out of {ORIGIN}: `Sitemap: {shown}`, which is no whole URL."
        ));
    }
    if let more @ 1.. = relative.len().saturating_sub(merge::NOTED) {
        comments.push(format!(
            "Left out of {ORIGIN}, for the same reason: {more} more sitemaps."
        ));
    }
}

/// Makes the document of these groups and renders it: the first comments (with what was left out of
/// the origin's file), groups, lines for the whole file, and sitemaps, each once. Of a run of
/// groups with the same comments only the first has them. `origin_tokens`, `left_out` and
/// `unpublished_lines` stay empty; the caller sets them.
fn assemble(policy: &Policy, drafts: Vec<Draft>, origin: &OriginRules) -> Synthesis {
    let own = policy
        .robots
        .sitemaps
        .iter()
        .map(|sitemap| sitemap.value.clone());
    let mut sitemaps: Vec<String> = own.chain(origin.sitemaps.iter().cloned()).collect();
    let mut seen = HashSet::new();
    sitemaps.retain(|sitemap| seen.insert(sitemap.clone()));
    let mut document = Document {
        comments: vec![match policy.robots.origin {
            OriginRobots::Only if policy.reads_origin() => {
                "Written by crawlgate from the origin's robots.txt.".into()
            }
            _ => "Written by crawlgate from the site's policy.".into(),
        }],
        groups: Vec::with_capacity(drafts.len()),
        extensions: site_lines(policy)
            .into_iter()
            .chain(origin.extensions.iter().cloned())
            .collect(),
        sitemaps,
    };
    add_left_out(origin, &mut document.comments);
    let mut group_sources = Vec::new();
    let mut rule_sources = Vec::new();
    let mut last_comments = Vec::new();
    for draft in drafts {
        // Comments once for a run of groups that have the same.
        let all = draft.comments();
        let comments = if all == last_comments {
            Vec::new()
        } else {
            all.clone()
        };
        last_comments = all;
        let (rules, sources) = draft.rules.into_iter().unzip();
        document.groups.push(Group {
            comments,
            agents: draft.agents,
            rules,
            crawl_delay: draft.crawl_delay,
            extensions: draft.extensions,
        });
        group_sources.push(draft.source);
        rule_sources.push(sources);
    }
    let body = render(&document);
    Synthesis {
        document,
        body,
        group_sources,
        rule_sources,
        origin_tokens: Vec::new(),
        left_out: Vec::new(),
        unpublished_lines: Vec::new(),
    }
}

#[cfg(test)]
#[path = "synthesis_tests.rs"]
mod tests;
