//! [`TagRules`]: the compiled `indexing` rules of a policy, which add X-Robots-Tag lines (such as
//! `noindex`) to responses. The path of a request selects the rules that can match
//! ([`SelectedRules`]). When the origin has answered, the status and the media type of the response
//! decide which of the selected rules match. The lines of the matching rules are sent
//! ([`TagLines`]). [`combine_with_origin`] merges the lines of the policy with the lines that the
//! origin sent.

use super::signals::paths_match;
use crate::indexing::{RobotsTags, parse_lines_complete};
use crate::policy::model::{OriginTagsMode, StatusCondition};
use crate::robots::{
    self, LITERAL_STAR, PathPattern, RequestTarget, RuleSet, parse_escape, without_query,
};
use TagHeaderEdit::*;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

mod media;
use media::ResponseMedia;

/// The most combinations of rules whose lines are cached.
const MAX_COMBINATIONS: usize = 1_024;

/// The compiled `indexing` rules of a site.
#[derive(Debug)]
pub struct TagRules {
    rules: Vec<TagRule>,
    /// The patterns of all rules, indexed. `owners` has the rule of each pattern.
    patterns: RuleSet,
    owners: Box<[u16]>,
    /// The rules without patterns.
    without_patterns: Box<[u16]>,
    has_path_regex: bool,
    /// The lines of several rules together, cached up to `MAX_COMBINATIONS`.
    combinations: RwLock<HashMap<SmallVec<[u16; 8]>, Arc<TagLines>>>,
}

/// A rule whose conditions on the path hold.
#[derive(Clone, Debug)]
pub struct SelectedTagRule {
    /// Its index in the plan.
    pub rule: u16,
    /// Whether the path conditions of its `not` hold, so that status and type decide.
    may_be_excluded: bool,
}

/// The rules that a path selects. Status and type of the response decide which of them match.
pub type SelectedRules = SmallVec<[SelectedTagRule; 8]>;

/// X-Robots-Tag lines of a rule, or of several.
#[derive(Debug, Default)]
pub struct TagLines {
    /// The directives, to be merged with the origin's.
    pub tags: RobotsTags,
    /// The same as field values, in the order in which they are sent.
    pub lines: Vec<String>,
    /// How the origin's tags are treated, if a rule says it. Of several values the strictest.
    pub origin_tags: Option<OriginTagsMode>,
}

impl TagLines {
    pub fn new(tags: RobotsTags, origin_tags: Option<OriginTagsMode>) -> Arc<TagLines> {
        let lines = tags.lines();
        Arc::new(TagLines {
            tags,
            lines,
            origin_tags,
        })
    }
}

/// A compiled rule of `indexing`.
#[derive(Debug)]
pub struct TagRule {
    /// A number that equal rules of two policies share: a hash of the conditions in the upper half,
    /// a hash of the directives and `origin_tags` in the lower half.
    pub id: u64,
    /// What a response must meet.
    pub when: TagConditions,
    /// A response that meets all of these is excluded.
    pub unless: Option<TagConditions>,
    /// What the response gets.
    pub lines: Arc<TagLines>,
}

impl TagRule {
    /// Whether a selected rule matches a response. If its type is not certain, one of the possible
    /// types must meet `when`, and all must meet `unless` to exclude the response.
    fn matches_response(
        &self,
        may_be_excluded: bool,
        status: u16,
        media: ResponseMedia<'_>,
    ) -> bool {
        let when = &self.when;
        if !when.matches_status(status) || !when.types.is_empty() && !media.may_match(&when.types) {
            return false;
        }
        let unless = self.unless.as_ref().filter(|_| may_be_excluded);
        unless.is_none_or(|unless| {
            !unless.matches_status(status)
                || !unless.types.is_empty() && !media.always_matches(&unless.types)
        })
    }
}

/// Compiled conditions on a response.
#[derive(Debug)]
pub struct TagConditions {
    /// One of these must match the path; empty for all paths.
    pub paths: Vec<PathPattern>,
    /// A regular expression on the decoded path.
    pub path_regex: Option<regex::bytes::Regex>,
    /// One of these must be the type; empty for all.
    pub types: Vec<String>,
    /// One of these must be the status; empty for all.
    pub status: Vec<StatusCondition>,
}

impl TagConditions {
    /// Whether the conditions on the path hold. `decoded` is the path for the regular expression.
    fn matches_path(&self, reading: &[u8], decoded: &[u8]) -> bool {
        paths_match(&self.paths, reading) && self.matches_regex(decoded)
    }

    fn matches_regex(&self, decoded: &[u8]) -> bool {
        self.path_regex
            .as_ref()
            .is_none_or(|regex| regex.is_match(decoded))
    }

    /// Whether the condition on the status holds; 200 includes 206, a part of the same page.
    fn matches_status(&self, status: u16) -> bool {
        self.status.is_empty()
            || self.status.iter().any(|condition| match condition {
                StatusCondition::Code(code) => *code == status || (*code, status) == (200, 206),
                StatusCondition::Class(class) => u16::from(*class) == status / 100,
            })
    }
}

impl TagRules {
    pub fn new(mut rules: Vec<TagRule>) -> TagRules {
        // No policy is large enough for so many.
        rules.truncate(usize::from(u16::MAX));
        let has_path_regex = rules.iter().any(|rule| {
            rule.unless
                .iter()
                .chain([&rule.when])
                .any(|conditions| conditions.path_regex.is_some())
        });
        let mut patterns = Vec::new();
        let mut owners = Vec::new();
        let mut without_patterns = Vec::new();
        for (owner, rule) in (0u16..).zip(&rules) {
            if rule.when.paths.is_empty() {
                without_patterns.push(owner);
            }
            for pattern in &rule.when.paths {
                patterns.push(robots::Rule {
                    allow: false,
                    pattern: pattern.clone(),
                });
                owners.push(owner);
            }
        }

        TagRules {
            patterns: RuleSet::new(patterns),
            owners: owners.into(),
            without_patterns: without_patterns.into(),
            rules,
            has_path_regex,
            combinations: RwLock::default(),
        }
    }

    /// The [`TagRule::id`] of each rule.
    pub fn rule_ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.rules.iter().map(|rule| rule.id)
    }

    /// Whether two rules with these ids have the same conditions.
    pub fn have_same_conditions(one: u64, other: u64) -> bool {
        one >> 32 == other >> 32
    }

    /// Selects the rules whose conditions on the path hold for one of the target's readings, in the
    /// order of the plan. `decoded` is a reusable buffer: if the path fits, nothing is allocated
    /// for up to eight rules.
    pub fn for_path(&self, target: RequestTarget<'_>, decoded: &mut Vec<u8>) -> SelectedRules {
        let mut selected = SelectedRules::new();
        if self.rules.is_empty() {
            return selected;
        }
        // Many origins resolve `//drafts/` to `/drafts/`.
        for reading in target.forms() {
            if self.has_path_regex {
                decode_path(reading, decoded);
            }
            for rule in &self.without_patterns {
                self.select_rule(*rule, reading, decoded, &mut selected);
            }
            self.patterns.for_each_match(reading, |pattern| {
                self.select_rule(self.owners[pattern], reading, decoded, &mut selected);
            });
        }
        // Combinations are cached by their rules in order. A rule with several patterns may be
        // selected twice.
        if selected.len() > 1 {
            selected.sort_unstable_by_key(|selected| (selected.rule, selected.may_be_excluded));
            selected.dedup_by_key(|selected| selected.rule);
        }
        selected
    }

    /// Adds a rule whose patterns match, if its other conditions on the path hold.
    fn select_rule(
        &self,
        index: u16,
        reading: &[u8],
        decoded: &[u8],
        selected: &mut SelectedRules,
    ) {
        let rule = &self.rules[usize::from(index)];
        if !rule.when.matches_regex(decoded) {
            return;
        }
        let unless = rule
            .unless
            .as_ref()
            .filter(|unless| unless.matches_path(reading, decoded));
        if unless.is_some_and(|unless| unless.types.is_empty() && unless.status.is_empty()) {
            return;
        }
        let may_be_excluded = unless.is_some();
        // A rule that was selected twice would use up the inline capacity.
        if !selected.spilled()
            && let Some(known) = selected.iter_mut().find(|known| known.rule == index)
        {
            known.may_be_excluded &= may_be_excluded;
        } else {
            selected.push(SelectedTagRule {
                rule: index,
                may_be_excluded,
            });
        }
    }

    /// Whether the response must have no lines, because it is a 304 and the lines depend on the
    /// type of the stored response: a recipient would replace the stored lines (RFC 9111 section
    /// 3.2).
    pub fn hides_tags(&self, rules: &SelectedRules, status: u16) -> bool {
        status == 304 && self.depends_on_type(rules)
    }

    /// Whether the type of the response decides which of these rules match.
    pub fn depends_on_type(&self, rules: &SelectedRules) -> bool {
        rules.iter().any(|selected| {
            let rule = &self.rules[usize::from(selected.rule)];
            let unless = rule.unless.as_ref();
            !rule.when.types.is_empty() || unless.is_some_and(|unless| !unless.types.is_empty())
        })
    }

    /// The lines of a response with these selected rules; `None` where no rule matches, on 1xx, and
    /// where [`hides_tags`](TagRules::hides_tags) is true. `content_type` may have several types,
    /// joined with commas.
    pub fn tags(
        &self,
        rules: &SelectedRules,
        status: u16,
        content_type: Option<&[u8]>,
    ) -> Option<Arc<TagLines>> {
        if rules.is_empty() || status < 200 || self.hides_tags(rules, status) {
            return None;
        }
        // A 304 is about the stored 200.
        let status = if status == 304 { 200 } else { status };
        let media = ResponseMedia::new(status, content_type);
        let matching: SmallVec<[u16; 8]> = rules
            .iter()
            .filter(|path| {
                self.rules[usize::from(path.rule)].matches_response(
                    path.may_be_excluded,
                    status,
                    media,
                )
            })
            .map(|path| path.rule)
            .collect();
        match matching.as_slice() {
            [] => None,
            [only] => Some(self.rules[usize::from(*only)].lines.clone()),
            _ => Some(self.combined_lines(matching)),
        }
    }

    /// The lines of several rules together.
    fn combined_lines(&self, rules: SmallVec<[u16; 8]>) -> Arc<TagLines> {
        // The map of a poisoned lock is whole: insertion is the only change.
        let cached = self
            .combinations
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = cached.get(&rules) {
            return lines.clone();
        }
        drop(cached);
        let mut tags = RobotsTags::default();
        let mut origin_tags = None;
        for rule in &rules {
            let lines = &self.rules[usize::from(*rule)].lines;
            tags.merge(&lines.tags);
            origin_tags = origin_tags.max(lines.origin_tags);
        }
        let lines = TagLines::new(tags, origin_tags);
        let mut combinations = self
            .combinations
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if combinations.len() < MAX_COMBINATIONS {
            combinations.insert(rules, lines.clone());
        }
        lines
    }
}

/// Replaces `path` by the percent-decoded path of a target without its query, for regular
/// expressions.
fn decode_path(target: &[u8], path: &mut Vec<u8>) {
    path.clear();
    let mut rest = without_query(target);
    while let Some((first, after)) = rest.split_first() {
        if let Some(escaped) = parse_escape(rest) {
            path.push(escaped);
            rest = &rest[3..];
        } else {
            path.push(if *first == LITERAL_STAR { b'*' } else { *first });
            rest = after;
        }
    }
}

/// What is done with the X-Robots-Tag lines of the origin's response.
pub enum TagHeaderEdit<'a> {
    /// They stay, and these lines are added.
    Add(&'a [String]),
    /// These lines replace them.
    Replace(Cow<'a, [String]>),
}

/// Combines the policy's lines (`ours`) with the origin's (`theirs`). `site` is how the origin's
/// lines are treated where `ours` does not say it. Lines of the origin that cannot all be parsed
/// stay as they are.
pub fn combine_with_origin<'a, 'b>(
    ours: Option<&'a TagLines>,
    theirs: impl Iterator<Item = &'b [u8]>,
    site: OriginTagsMode,
) -> TagHeaderEdit<'a> {
    let lines = ours.map_or([].as_slice(), |ours| ours.lines.as_slice());
    let mut theirs = theirs.peekable();
    if theirs.peek().is_none() {
        return Add(lines);
    }
    match ours.and_then(|ours| ours.origin_tags).unwrap_or(site) {
        OriginTagsMode::Strip => Replace(lines.into()),
        OriginTagsMode::Replace if !lines.is_empty() => Replace(lines.into()),
        OriginTagsMode::Merge if !lines.is_empty() => match (ours, parse_lines_complete(theirs)) {
            (Some(ours), Some(mut tags)) => {
                tags.merge(&ours.tags);
                Replace(tags.lines().into())
            }
            _ => Add(lines),
        },
        OriginTagsMode::Keep | OriginTagsMode::Merge | OriginTagsMode::Replace => Add(lines),
    }
}
