//! [`tag_plan`] compiles the `indexing` rules of a policy into a [`TagPlan`].

use crate::indexing::{Directives, Scope, Tags};
use crate::policy::model::{Conditions, Environment, OriginTags, Policy};
use crate::policy::regular_expression::compile_path_regex;
use crate::policy::retire::RetireStage;
use crate::policy::site::{TagConditions, TagLines, TagPlan, TagRule, Version};
use crate::robots::Pattern;
use crate::time::Timestamp;
use crate::yaml::Located;

/// Compiles a policy's rules as they are at a moment; a staging site says noindex on everything before all else,
/// and so does what is being retired.
pub fn tag_plan(policy: &Policy, at: Timestamp) -> TagPlan {
    let mut rules: Vec<TagRule> = Vec::with_capacity(policy.indexing.len() + 1);
    let mut noindex = Tags::default();
    noindex.add(Scope::All, &Directives::parse("noindex").unwrap_or_default());
    let site = policy.origin_tags;
    if policy.environment == Environment::Staging {
        rules.push(tag_rule(&Conditions::default(), None, noindex.clone(), None, site));
    }
    for retired in policy.retiring().iter().filter(|retired| retired.stage(at) != RetireStage::Planned) {
        let when = Conditions { paths: retired.paths.clone(), ..Conditions::default() };
        rules.push(tag_rule(&when, None, noindex.clone(), None, site));
    }
    let written = policy.indexing.iter();
    rules.extend(
        written.map(|rule| tag_rule(&rule.when, rule.unless.as_ref(), rule.tags.clone(), rule.origin_tags, site)),
    );
    TagPlan::new(rules, site)
}

/// Compiles a rule. `site` is the treatment of the origin's lines where the rule has none; it is a part of the rule's
/// identity.
fn tag_rule(
    when: &Conditions,
    unless: Option<&Conditions>,
    tags: Tags,
    origin_tags: Option<OriginTags>,
    site: OriginTags,
) -> TagRule {
    let lines = TagLines::new(tags, origin_tags);
    let texts = |list: &[Located<String>]| list.iter().map(|item| item.value.clone()).collect::<Vec<_>>();
    let asked = |conditions: &Conditions| {
        let status: Vec<_> = conditions.status.iter().map(|status| status.value).collect();
        let regex = conditions.path_regex.as_ref().map(|regex| &regex.value);
        format!("{:?}", (texts(&conditions.paths), regex, texts(&conditions.types), status))
    };
    let asked: String = std::iter::once(when).chain(unless).map(asked).collect();
    let said = format!("{:?}{:?}", lines.lines, origin_tags.unwrap_or(site));
    let half = |text: String| Version::of(text.as_bytes()).number() >> 32;
    TagRule {
        identity: half(asked) << 32 | half(said),
        when: conditions(when),
        unless: unless.map(conditions),
        said: lines,
    }
}

fn conditions(conditions: &Conditions) -> TagConditions {
    TagConditions {
        paths: conditions.paths.iter().map(|path| Pattern::new(&path.value)).collect(),
        // Checking has compiled it once already.
        path_regex: conditions.path_regex.as_ref().and_then(|text| compile_path_regex(&text.value).ok()),
        types: conditions.types.iter().map(|media| media.value.clone()).collect(),
        status: conditions.status.iter().map(|status| status.value).collect(),
    }
}
