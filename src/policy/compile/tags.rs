//! [`tag_plan`] compiles the `indexing` rules of a policy into a [`TagPlan`], which gives each
//! response its X-Robots-Tag lines. It adds `noindex` rules for a staging site and for paths that
//! are being retired.

use crate::indexing::{Directives, Scope, Tags};
use crate::policy::model::{Conditions, Environment, OriginTags, Policy, patterns};
use crate::policy::regular_expression::compile_path_regex;
use crate::policy::retire::RetireStage;
use crate::policy::site::{TagConditions, TagLines, TagPlan, TagRule, Version};
use crate::time::Timestamp;
use crate::yaml::values;

/// Compiles a policy's rules as they are at a moment. Rules that say noindex come first: for
/// everything on a staging site, and for paths whose retirement has begun.
pub fn tag_plan(policy: &Policy, at: Timestamp) -> TagPlan {
    let mut noindex = Tags::default();
    noindex.add(
        Scope::All,
        &Directives::parse("noindex").unwrap_or_default(),
    );
    let site = policy.origin_tags;
    let is_staging = policy.environment == Environment::Staging;
    let retired = policy
        .retiring()
        .iter()
        .filter(|retired| retired.stage(at) != RetireStage::Planned);
    let retired = retired.map(|retired| Conditions {
        paths: retired.paths.clone(),
        ..Conditions::default()
    });
    let unseen = is_staging
        .then(Conditions::default)
        .into_iter()
        .chain(retired)
        .map(|when| tag_rule(&when, None, noindex.clone(), None, site));
    let written = policy.indexing.iter().map(|rule| {
        tag_rule(
            &rule.when,
            rule.unless.as_ref(),
            rule.tags.clone(),
            rule.origin_tags,
            site,
        )
    });
    TagPlan::new(unseen.chain(written).collect(), site)
}

/// Half of the version of a text, in the lower bits.
fn half_version(text: &str) -> u64 {
    Version::of(text.as_bytes()).number() >> 32
}

/// Compiles a rule. `site` is the treatment of the origin's lines where the rule has none. The
/// rule's identity is a number of 64 bits: the upper half is a hash of its conditions, the lower
/// half one of its directives and its treatment of the origin's lines.
fn tag_rule(
    when: &Conditions,
    unless: Option<&Conditions>,
    tags: Tags,
    origin_tags: Option<OriginTags>,
    site: OriginTags,
) -> TagRule {
    let lines = TagLines::new(tags, origin_tags);
    let mut asked = String::new();
    for conditions in std::iter::once(when).chain(unless) {
        let regex = conditions.path_regex.as_ref().map(|regex| &regex.value);
        let paths = values(&conditions.paths);
        let types = values(&conditions.types);
        let status = values(&conditions.status);
        asked += &format!("{:?}", (paths, regex, types, status));
    }
    let said = format!("{:?}{:?}", lines.lines, origin_tags.unwrap_or(site));
    TagRule {
        identity: half_version(&asked) << 32 | half_version(&said),
        when: conditions(when),
        unless: unless.map(conditions),
        said: lines,
    }
}

/// Compiles the conditions of a rule.
fn conditions(conditions: &Conditions) -> TagConditions {
    TagConditions {
        paths: patterns(&conditions.paths),
        // Checking has compiled it once already.
        path_regex: conditions
            .path_regex
            .as_ref()
            .and_then(|text| compile_path_regex(text).ok()),
        types: values(&conditions.types),
        status: values(&conditions.status),
    }
}
