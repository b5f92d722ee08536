//! [`LintSubject`]: a robots.txt in the form that lints check. A subject is made from a policy or
//! from a robots.txt file, so that the same lints can check policies and files. Every token, rule
//! and sitemap keeps its position in the policy or the file, so that messages can point there.

use crate::policy::model::HostPattern;
use crate::policy::site::{RuleSource, Site};
use crate::robots::{DisallowedPart, Rule, blanket_disallow};
use crate::yaml::{Located, SourceSpan, located_values};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A robots.txt to be checked.
pub struct LintSubject {
    pub groups: Vec<SubjectGroup>,
    pub sitemaps: Vec<Located<String>>,
    /// Its hosts, if they are known.
    pub hosts: Vec<HostPattern>,
    /// Whether it is that of a policy, in which a group can extend another.
    pub is_policy: bool,
}

/// The rules of some tokens.
pub struct SubjectGroup {
    /// The tokens that the owner wrote. Tokens that follow from a purpose are not checked.
    pub agents: Vec<Located<String>>,
    pub rules: Vec<SubjectRule>,
}

/// A rule with its place.
pub type SubjectRule = Located<Rule>;

impl LintSubject {
    /// The parts of a site's robots.txt that are written in the policy. Parts that come from the
    /// origin, a purpose or staging have no place in the policy, and are left out.
    pub fn from_site(site: &Site) -> LintSubject {
        let groups = site
            .document
            .groups
            .iter()
            .zip(&site.group_sources)
            .zip(&site.rule_sources);
        let groups = groups.map(|((group, source), sources)| {
            let written = matches!(source, RuleSource::Policy(_));
            let agents = group
                .agents
                .iter()
                .filter(|_| written)
                .map(|agent| Located {
                    value: agent.clone(),
                    span: source.span(),
                });
            let rules = group
                .rules
                .iter()
                .zip(sources)
                .filter(|(_, source)| matches!(source, RuleSource::Policy(_)));
            let rules = rules.map(|(rule, source)| Located {
                value: rule.clone(),
                span: source.span(),
            });
            SubjectGroup {
                agents: agents.collect(),
                rules: rules.collect(),
            }
        });
        LintSubject {
            groups: merge_equal_groups(groups),
            sitemaps: site.policy.sitemaps(),
            hosts: located_values(&site.policy.hosts),
            is_policy: true,
        }
    }

    /// The group of a token, without regard to case.
    pub fn group_for_token(&self, token: &str) -> Option<&SubjectGroup> {
        self.groups.iter().find(|group| {
            group
                .agents
                .iter()
                .any(|agent| agent.eq_ignore_ascii_case(token))
        })
    }
}

impl SubjectGroup {
    /// The rule that closes the whole site, if nothing else is open but files for machines.
    pub fn closing_rule(&self) -> Option<&SubjectRule> {
        let closed =
            blanket_disallow(&self.rules).filter(|closed| closed.part == DisallowedPart::Whole)?;
        self.rules.get(closed.rule)
    }

    /// The rule that decides about a normalised target: the longest match, Allow before Disallow.
    pub fn deciding_rule(&self, target: &[u8]) -> Option<&SubjectRule> {
        let matching = self
            .rules
            .iter()
            .filter(|rule| rule.pattern.matches(target));
        matching.max_by_key(|rule| (rule.pattern.priority(), rule.allow))
    }
}

/// Merges groups with rules of the same places, such as those of a list of agents, so that their
/// rules are checked once.
fn merge_equal_groups(groups: impl Iterator<Item = SubjectGroup>) -> Vec<SubjectGroup> {
    let mut joined: Vec<SubjectGroup> = Vec::new();
    let mut known: HashMap<Vec<(SourceSpan, bool)>, usize> = HashMap::new();
    for group in groups {
        let key = group
            .rules
            .iter()
            .map(|rule| (rule.span, rule.allow))
            .collect();
        match known.entry(key) {
            Entry::Occupied(place) => joined[*place.get()].agents.extend(group.agents),
            Entry::Vacant(place) => {
                place.insert(joined.len());
                joined.push(group);
            }
        }
    }
    joined
}
