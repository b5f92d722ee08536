//! [`assemble_groups`] is the last step of making a robots.txt. It puts the groups ([`GroupDraft`])
//! into one document and renders the document as text. Each user-agent token gets a group of its
//! own; in a large file, tokens with the same rules share a group. Comments in the file say what
//! was left out of the origin's robots.txt.

use super::draft::{GroupDraft, ORIGIN_FILE, draft_size, first_equal_drafts};
use super::origin_rules::OriginRules;
use super::signals::site_license_lines;
use crate::policy::model::{OriginRobotsMode, Policy};
use crate::policy::site::{DroppedRule, RuleSource};
use crate::robots::{RobotsDocument, RuleGroup, render_robots_txt};
use crate::yaml::located_values;
use std::collections::{BTreeMap, HashSet};

/// In a larger file, tokens with identical rules share a group. In a smaller one each token has its
/// own, which simple parsers read best.
const SEPARATE_GROUPS_BYTES: usize = 64 * 1024;

/// A robots.txt as data and as text, and where its lines come from.
#[derive(Default)]
pub struct ComposedRobots {
    /// Tokens that the origin's file names.
    pub origin_tokens: Vec<String>,
    /// Allow lines of the origin that the merge left out, each once.
    pub dropped_rules: Vec<DroppedRule>,
    /// Lines of the origin with a host that crawlers cannot reach.
    pub unpublished_lines: Vec<usize>,
    pub document: RobotsDocument,
    pub body: String,
    pub group_sources: Vec<RuleSource>,
    pub rule_sources: Vec<Vec<RuleSource>>,
    pub delay_sources: Vec<Option<RuleSource>>,
}

/// Makes the document of all drafts and renders it. Each token gets a group of its own, or, if the
/// file would have more than 64 KiB, tokens with equal groups share one. The caller sets the fields
/// about the origin.
pub fn assemble_groups(
    policy: &Policy,
    drafts: Vec<GroupDraft>,
    origin: &OriginRules,
) -> ComposedRobots {
    let size = drafts
        .iter()
        .map(|draft| draft_size(draft).saturating_mul(draft.agents.len().max(1)));
    // Ten thousand tokens may share a group: it is not copied for each before its size is known.
    if size.fold(0, usize::saturating_add) <= SEPARATE_GROUPS_BYTES {
        let separate = render_groups(policy, split_by_agent(&drafts), origin);
        if separate.body.len() <= SEPARATE_GROUPS_BYTES {
            return separate;
        }
    }
    let mut shared: BTreeMap<usize, GroupDraft> = BTreeMap::new();
    for (first, draft) in first_equal_drafts(&drafts).into_iter().zip(drafts) {
        match shared.get_mut(&first) {
            Some(alike) => alike.agents.extend(draft.agents),
            None => drop(shared.insert(first, draft)),
        }
    }
    render_groups(policy, shared.into_values().collect(), origin)
}

/// One draft for each agent, in the order of [`GroupDraft::places`]; agents without a place come
/// last.
fn split_by_agent(drafts: &[GroupDraft]) -> Vec<GroupDraft> {
    let mut agents: Vec<_> = drafts
        .iter()
        .flat_map(|draft| (0..draft.agents.len()).map(move |agent| (draft, agent)))
        .collect();
    agents.sort_by_key(|(draft, agent)| {
        draft
            .places
            .get(*agent)
            .map_or(usize::MAX, |(place, _)| *place)
    });
    agents
        .into_iter()
        .map(|(draft, agent)| GroupDraft {
            agents: vec![draft.agents[agent].clone()],
            places: Vec::new(),
            source: draft
                .places
                .get(agent)
                .map_or(&draft.source, |(_, source)| source)
                .clone(),
            dropped_rules: Vec::new(),
            ..draft.clone()
        })
        .collect()
}

/// Adds a comment about each kind of lines of the origin's file that the served file does not have.
/// Lines are only counted: those with unknown keys may be anything, and those with unreachable hosts
/// are private.
fn comment_omissions(origin: &OriginRules, comments: &mut Vec<String>) {
    if !origin.omitted_keys.is_empty() {
        let keys = origin.omitted_keys.join(", ");
        comments.push(format!(
            "Left out of {ORIGIN_FILE}, because the policy has its own: {keys}."
        ));
    }
    for (count, what) in [
        (
            origin.unknown_lines,
            "lines with keys that robots.txt does not have",
        ),
        (
            origin.unpublished_lines.len(),
            "lines with a host that crawlers cannot reach",
        ),
        (origin.relative_sitemaps, "sitemaps that are not full URLs"),
    ] {
        if count > 0 {
            comments.push(format!("Left out of {ORIGIN_FILE}: {what} ({count})."));
        }
    }
}

/// Renders these groups with the comments, lines and sitemaps of the whole file. Of consecutive
/// groups with the same comments only the first has them.
fn render_groups(policy: &Policy, drafts: Vec<GroupDraft>, origin: &OriginRules) -> ComposedRobots {
    let mut sitemaps = located_values(&policy.sitemaps());
    sitemaps.extend(origin.sitemaps.iter().cloned());
    let mut seen = HashSet::new();
    sitemaps.retain(|sitemap| seen.insert(sitemap.clone()));
    let written = match policy.robots.origin {
        OriginRobotsMode::Only if policy.reads_origin() => {
            "Written by crawlgate from the origin's robots.txt."
        }
        _ => "Written by crawlgate from the site's policy.",
    };
    // An empty comment line ends the site's own text.
    let own = policy
        .robots
        .comment
        .iter()
        .map(|comment| format!("{comment}\n"));
    let mut document = RobotsDocument {
        comments: own.chain([written.to_owned()]).collect(),
        groups: Vec::new(),
        extensions: site_license_lines(policy)
            .into_iter()
            .chain(origin.extensions.iter().cloned())
            .collect(),
        sitemaps,
    };
    comment_omissions(origin, &mut document.comments);
    let mut group_sources = Vec::new();
    let mut rule_sources = Vec::new();
    let mut delay_sources = Vec::new();
    let mut last_comments = Vec::new();
    for draft in drafts {
        let all = draft.comments();
        let comments = if all == last_comments {
            Vec::new()
        } else {
            all.clone()
        };
        last_comments = all;
        let (rules, sources) = draft.rules.into_iter().unzip();
        let (crawl_delay, delay_source) = draft.crawl_delay.unzip();
        document.groups.push(RuleGroup {
            comments,
            agents: draft.agents,
            rules,
            crawl_delay,
            extensions: draft.extensions,
        });
        group_sources.push(draft.source);
        rule_sources.push(sources);
        delay_sources.push(delay_source);
    }
    let body = render_robots_txt(&document);
    ComposedRobots {
        document,
        body,
        group_sources,
        rule_sources,
        delay_sources,
        ..ComposedRobots::default()
    }
}
