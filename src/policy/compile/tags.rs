//! [`tag_plan`] compiles the section `indexing` of a policy into [`TagRules`], by which each
//! response gets its X-Robots-Tag lines. It adds `noindex` rules for a staging site, and for
//! retired paths (which the site takes out of search engines).

use crate::indexing::{Directives, RobotsTags, TagScope};
use crate::policy::model::{
    Environment, IndexingRule, OriginTagsMode, Policy, ResponseConditions, patterns,
};
use crate::policy::regular_expression::compile_path_regex;
use crate::policy::retire::RetireStage;
use crate::policy::site::{RobotsVersionId, TagConditions, TagLines, TagRule, TagRules};
use crate::time::Timestamp;
use crate::yaml::located_values;

/// Compiles the rules of a policy at a time. Those for staging and retirement come first.
pub fn tag_plan(policy: &Policy, at: Timestamp) -> TagRules {
    let mut noindex = RobotsTags::default();
    noindex.add(
        TagScope::All,
        &Directives::parse("noindex").unwrap_or_default(),
    );
    let is_staging = policy.environment == Environment::Staging;
    let retired = policy
        .retirements()
        .iter()
        .filter(|retired| retired.stage(at) != RetireStage::Planned)
        .map(|retired| ResponseConditions {
            paths: retired.paths.clone(),
            ..ResponseConditions::default()
        });
    let noindex_rules = is_staging
        .then(ResponseConditions::default)
        .into_iter()
        .chain(retired)
        .map(|when| IndexingRule {
            when,
            tags: noindex.clone(),
            ..IndexingRule::default()
        });
    let rules = noindex_rules
        .chain(policy.indexing.iter().cloned())
        .map(|rule| tag_rule(&rule, policy.origin_tags));
    TagRules::new(rules.collect())
}

/// A hash of 32 bits.
fn hash32(text: &str) -> u64 {
    RobotsVersionId::from_body(text.as_bytes()).as_u64() >> 32
}

/// Compiles a rule. `site` is how the origin's lines are treated if the rule does not say it.
fn tag_rule(rule: &IndexingRule, site: OriginTagsMode) -> TagRule {
    let lines = TagLines::new(rule.tags.clone(), rule.origin_tags);
    let mut conditions_text = String::new();
    for conditions in std::iter::once(&rule.when).chain(&rule.unless) {
        let regex = conditions.path_regex.as_ref().map(|regex| &regex.value);
        let listed = (
            located_values(&conditions.paths),
            regex,
            located_values(&conditions.types),
            located_values(&conditions.status),
        );
        conditions_text += &format!("{listed:?}");
    }
    let lines_text = format!("{:?}{:?}", lines.lines, rule.origin_tags.unwrap_or(site));
    TagRule {
        id: hash32(&conditions_text) << 32 | hash32(&lines_text),
        when: compile_conditions(&rule.when),
        unless: rule.unless.as_ref().map(compile_conditions),
        lines,
    }
}

fn compile_conditions(conditions: &ResponseConditions) -> TagConditions {
    TagConditions {
        paths: patterns(&conditions.paths),
        // Decoding has checked that it compiles.
        path_regex: conditions
            .path_regex
            .as_ref()
            .and_then(|text| compile_path_regex(text).ok()),
        types: located_values(&conditions.types),
        status: located_values(&conditions.status),
    }
}
