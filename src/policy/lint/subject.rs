//! [`Subject`]: a robots.txt for the lints that a policy and a file share. Each part knows its
//! place in the policy or in the file.

use crate::policy::model::HostPattern;
use crate::policy::site::{RuleSource, Site};
use crate::robots::{Extent, Rule, closed};
use crate::yaml::Span;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;

/// A robots.txt.
pub struct Subject {
    pub groups: Vec<SubjectGroup>,
    pub sitemaps: Vec<(String, Span)>,
    /// The hosts that it is for, where they are known.
    pub hosts: Vec<HostPattern>,
    /// Whether it is made from a policy, where a group can extend another.
    pub is_policy: bool,
}

/// All the rules of some tokens.
pub struct SubjectGroup {
    /// The tokens that the owner wrote. Tokens that follow from a purpose are not linted.
    pub agents: Vec<(String, Span)>,
    pub rules: Vec<SubjectRule>,
}

pub struct SubjectRule {
    pub rule: Rule,
    pub span: Span,
}

impl Deref for SubjectRule {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        &self.rule
    }
}

impl AsRef<Rule> for SubjectRule {
    fn as_ref(&self) -> &Rule {
        &self.rule
    }
}

impl Subject {
    /// The parts of the served file that the policy wrote. Rules and agents that come from the
    /// origin, a purpose or staging are left out, as their places are not in the policy.
    pub fn of_site(site: &Site) -> Subject {
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
                .map(|agent| (agent.clone(), source.span()));
            let rules = group
                .rules
                .iter()
                .zip(sources)
                .filter(|(_, source)| matches!(source, RuleSource::Policy(_)));
            let rules = rules.map(|(rule, source)| SubjectRule {
                rule: rule.clone(),
                span: source.span(),
            });
            SubjectGroup {
                agents: agents.collect(),
                rules: rules.collect(),
            }
        });
        Subject {
            groups: joined(groups),
            sitemaps: site
                .policy
                .robots
                .sitemaps
                .iter()
                .map(|url| (url.value.clone(), url.span))
                .collect(),
            hosts: site
                .policy
                .hosts
                .iter()
                .map(|host| host.value.clone())
                .collect(),
            is_policy: true,
        }
    }

    /// The group of a token, without regard to case.
    pub fn named(&self, token: &str) -> Option<&SubjectGroup> {
        self.groups.iter().find(|group| {
            group
                .agents
                .iter()
                .any(|(agent, _)| agent.eq_ignore_ascii_case(token))
        })
    }
}

impl SubjectGroup {
    /// The rule that closes the whole site, where nothing is open beside it but files for machines.
    pub fn closing(&self) -> Option<&SubjectRule> {
        let closed = closed(&self.rules).filter(|closed| closed.extent == Extent::Whole)?;
        self.rules.get(closed.rule)
    }

    /// The rule that decides about a normalised target: the longest that matches, Allow before
    /// Disallow. `None` where no rule matches. Tries every rule: it is asked a few times only.
    pub fn deciding(&self, target: &[u8]) -> Option<&SubjectRule> {
        let matching = self
            .rules
            .iter()
            .filter(|rule| rule.pattern.matches(target));
        matching.max_by_key(|rule| (rule.pattern.priority(), rule.allow))
    }
}

/// Joins groups that have the same rules of the same places, so that their rules are checked once.
/// Such are the tokens of a list of agents, and tokens that the origin names and the policy does
/// not.
fn joined(groups: impl Iterator<Item = SubjectGroup>) -> Vec<SubjectGroup> {
    let mut joined: Vec<SubjectGroup> = Vec::new();
    let mut known: HashMap<Vec<(Span, bool)>, usize> = HashMap::new();
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
