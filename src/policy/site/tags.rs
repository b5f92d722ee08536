//! [`TagPlan`]: the compiled rules for the X-Robots-Tag lines of a site. The path of a request
//! selects the rules that can match ([`PathRules`]). The status and the type of the response then
//! decide which of these rules match, and so which lines are sent ([`TagLines`]). [`combine`] puts
//! them together with the lines that the origin sent.

use crate::indexing::{Tags, parse_whole};
use crate::policy::model::{OriginTags, StatusCondition};
use crate::robots::{self, LITERAL_STAR, Pattern, RuleSet, Target, path_of};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

mod media;
use media::Media;

/// How many combinations of rules have their lines remembered.
const MAX_COMBINATIONS: usize = 1_024;

/// The compiled `indexing` rules of a site.
#[derive(Debug, Default)]
pub struct TagPlan {
    rules: Vec<TagRule>,
    /// The patterns of all rules that have some, found without trying each. `owners` has the rule
    /// of each pattern.
    patterns: RuleSet,
    owners: Box<[u16]>,
    /// The rules without patterns.
    anywhere: Box<[u16]>,
    has_path_regex: bool,
    /// The treatment of the origin's lines where no rule has one.
    origin_tags: OriginTags,
    /// Lines of several rules together, made when first needed. Bounded: beyond, they are made
    /// anew.
    combinations: RwLock<HashMap<SmallVec<[u16; 8]>, Arc<TagLines>>>,
}

/// A rule that the path selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Its index in the plan.
    pub rule: u16,
    /// The path conditions of its `not` hold: status and type decide whether it is excluded.
    excludable: bool,
}

/// The rules that can still match once status and type are known.
pub type PathRules = SmallVec<[PathRule; 8]>;

/// The tags of a response.
#[derive(Clone, Debug, Default)]
pub struct TagLines {
    /// As data, to be merged with the origin's.
    pub tags: Tags,
    /// Ready field values in the order of emission.
    pub lines: Vec<String>,
    /// The treatment of the origin's tags, where a rule has one: of several, the one that passes
    /// least of them on.
    pub origin_tags: Option<OriginTags>,
}

impl TagLines {
    /// The lines of these tags.
    pub fn new(tags: Tags, origin_tags: Option<OriginTags>) -> Arc<TagLines> {
        let lines = tags.lines();
        Arc::new(TagLines {
            tags,
            lines,
            origin_tags,
        })
    }
}

/// One rule of a plan.
#[derive(Debug)]
pub struct TagRule {
    /// A number by which equal rules are found, wherever they stand in the file. Its upper half
    /// stands for the conditions, its lower half for the directives.
    pub identity: u64,
    /// What a response has to be.
    pub when: TagConditions,
    /// What it must not be.
    pub unless: Option<TagConditions>,
    /// What it gets.
    pub said: Arc<TagLines>,
}

impl TagRule {
    /// Whether the rule holds for a response whose path it matches. Of the types that the response
    /// may have, one is enough for the rule, and its `not` has to hold for each. `excludable` tells
    /// that the path conditions of `not` hold.
    fn holds(&self, excludable: bool, status: u16, media: Media<'_>) -> bool {
        let when = &self.when;
        if !when.status(status) || !when.types.is_empty() && !media.may_be(&when.types) {
            return false;
        }
        let unless = self.unless.as_ref().filter(|_| excludable);
        unless.is_none_or(|unless| {
            !unless.status(status) || !unless.types.is_empty() && !media.is(&unless.types)
        })
    }
}

/// The conditions of a rule on a request and its response.
#[derive(Debug)]
pub struct TagConditions {
    /// One of these matches the path; all do where there is none.
    pub paths: Vec<Pattern>,
    /// It matches the decoded path.
    pub path_regex: Option<regex::bytes::Regex>,
    /// The response has one of these types; any where there is none.
    pub types: Vec<String>,
    /// The response has one of these statuses; any where there is none.
    pub status: Vec<StatusCondition>,
}

impl TagConditions {
    /// Whether the conditions on the path hold: `reading` is the path for patterns, `decoded` the
    /// one for the regular expression.
    fn path(&self, reading: &[u8], decoded: &[u8]) -> bool {
        let listed =
            self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.matches(reading));
        listed && self.regex(decoded)
    }

    fn regex(&self, decoded: &[u8]) -> bool {
        self.path_regex
            .as_ref()
            .is_none_or(|regex| regex.is_match(decoded))
    }

    /// Whether the condition on the status holds. One on 200 holds for 206, too.
    fn status(&self, status: u16) -> bool {
        self.status.is_empty()
            || self.status.iter().any(|condition| match condition {
                // A part of a page is tagged as the page.
                StatusCondition::Code(code) => *code == status || (*code, status) == (200, 206),
                StatusCondition::Class(class) => u16::from(*class) == status / 100,
            })
    }

    fn asks_response(&self) -> bool {
        !self.types.is_empty() || !self.status.is_empty()
    }
}

impl TagPlan {
    /// Indexes rules, given in their order; `origin_tags` is what becomes of the origin's lines
    /// where no rule says it.
    pub fn new(mut rules: Vec<TagRule>, origin_tags: OriginTags) -> TagPlan {
        // A file with as many would be larger than a policy may be.
        rules.truncate(usize::from(u16::MAX));
        let has_path_regex = rules.iter().any(|rule| {
            let mut conditions = rule.unless.iter().chain([&rule.when]);
            conditions.any(|conditions| conditions.path_regex.is_some())
        });
        let mut patterns = Vec::new();
        let mut owners = Vec::new();
        let mut anywhere = Vec::new();
        for (owner, rule) in (0u16..).zip(&rules) {
            if rule.when.paths.is_empty() {
                anywhere.push(owner);
            }
            for pattern in &rule.when.paths {
                patterns.push(robots::Rule {
                    allow: false,
                    pattern: pattern.clone(),
                });
                owners.push(owner);
            }
        }

        TagPlan {
            patterns: RuleSet::new(patterns),
            owners: owners.into(),
            anywhere: anywhere.into(),
            rules,
            has_path_regex,
            origin_tags,
            combinations: RwLock::default(),
        }
    }

    /// The identities of the rules, by their index: equal rules of two versions of a policy have
    /// the same identity.
    pub fn identities(&self) -> impl Iterator<Item = u64> + '_ {
        self.rules.iter().map(|rule| rule.identity)
    }

    /// Whether two rules with these identities have the same conditions.
    pub fn are_for_the_same(one: u64, other: u64) -> bool {
        one >> 32 == other >> 32
    }

    /// Whether the origin's lines are taken away from every response. Any other treatment applies
    /// only where a rule matches, and is a part of the rule's identity.
    pub fn strips(&self) -> bool {
        self.origin_tags == OriginTags::Strip
    }

    /// The rules whose conditions on the path hold for one of the target's readings, each once in
    /// the order of the plan. `decoded` is memory to be used again; with room for the path in it,
    /// nothing is allocated for up to eight rules.
    pub fn for_path(&self, target: Target<'_>, decoded: &mut Vec<u8>) -> PathRules {
        let mut selected = PathRules::new();
        if self.rules.is_empty() {
            return selected;
        }
        // The origin answers with the page at the path that it resolves the target to: `//drafts/`
        // is `/drafts/` to many.
        for reading in target.readings() {
            if self.has_path_regex {
                decode_path(reading, decoded);
            }
            self.select(reading, decoded, &mut selected);
        }
        // Combinations are remembered by the rules in their order; a rule of several patterns may
        // be here twice.
        if selected.len() > 1 {
            selected.sort_unstable_by_key(|selected| (selected.rule, selected.excludable));
            selected.dedup_by_key(|selected| selected.rule);
        }
        selected
    }

    /// Adds the rules whose conditions on the path hold for one reading of it. A rule whose `not`
    /// asks for nothing but the path, and holds, is not added.
    fn select(&self, reading: &[u8], decoded: &[u8], selected: &mut PathRules) {
        for rule in &self.anywhere {
            self.select_rule(*rule, reading, decoded, selected);
        }
        self.patterns.each(reading, |pattern| {
            self.select_rule(self.owners[pattern], reading, decoded, selected);
        });
    }

    /// Adds a rule whose paths match if its other conditions on the path hold.
    fn select_rule(&self, index: u16, reading: &[u8], decoded: &[u8], selected: &mut PathRules) {
        let rule = &self.rules[usize::from(index)];
        if !rule.when.regex(decoded) {
            return;
        }
        let unless = rule.unless.as_ref();
        let unless = unless.filter(|unless| unless.path(reading, decoded));
        // A `not` that asks for nothing but the path is decided here.
        if unless.is_some_and(|unless| !unless.asks_response()) {
            return;
        }
        let excludable = unless.is_some();
        // While there is room, a rule is selected once: twice it would take the room of another.
        if !selected.spilled()
            && let Some(known) = selected.iter_mut().find(|known| known.rule == index)
        {
            known.excludable &= excludable;
        } else {
            selected.push(PathRule {
                rule: index,
                excludable,
            });
        }
    }

    /// Whether the lines of a response are unknown: it is a 304, and they depend on the type of the
    /// stored response. Then there must be none: a recipient would put them in the place of the
    /// stored lines.
    pub fn is_hidden(&self, rules: &PathRules, status: u16) -> bool {
        status == 304
            && rules.iter().any(|selected| {
                let rule = &self.rules[usize::from(selected.rule)];
                let unless = rule.unless.as_ref();
                !rule.when.types.is_empty() || unless.is_some_and(|unless| !unless.types.is_empty())
            })
    }

    /// The tags of the rules that the path selected and the response matches; `None` where none
    /// matches. On 304 only when no rule with a type could match: a partial field would replace the
    /// stored one (RFC 9111 section 3.2). Never on 1xx.
    ///
    /// `content_type` may hold several types, joined with commas as lines of one field are (RFC
    /// 9110 section 5.3).
    pub fn tags(
        &self,
        rules: &PathRules,
        status: u16,
        content_type: Option<&[u8]>,
    ) -> Option<Arc<TagLines>> {
        if rules.is_empty() || status < 200 || self.is_hidden(rules, status) {
            return None;
        }
        // A 304 speaks of the stored 200.
        let status = if status == 304 { 200 } else { status };
        let media = Media::new(status, content_type);
        let matching: SmallVec<[u16; 8]> = rules
            .iter()
            .filter(|path| self.rules[usize::from(path.rule)].holds(path.excludable, status, media))
            .map(|path| path.rule)
            .collect();
        match matching.as_slice() {
            [] => None,
            [only] => Some(self.rules[usize::from(*only)].said.clone()),
            _ => Some(self.combined(matching)),
        }
    }

    /// The tags of several rules, united; of their treatments of the origin's lines the one that
    /// passes least on. At most 1,024 combinations are remembered; others are made anew each time.
    fn combined(&self, rules: SmallVec<[u16; 8]>) -> Arc<TagLines> {
        // A poisoned lock holds a map that is whole all the same: insertion is the only change.
        let remembered = self
            .combinations
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .get(&rules)
            .cloned();
        if let Some(lines) = remembered {
            return lines;
        }
        let mut tags = Tags::default();
        let mut origin_tags = None;
        for rule in &rules {
            let said = &self.rules[usize::from(*rule)].said;
            tags.merge(&said.tags);
            origin_tags = origin_tags.max(said.origin_tags);
        }
        let lines = TagLines::new(tags, origin_tags);
        let mut combinations = self
            .combinations
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if combinations.len() < MAX_COMBINATIONS {
            combinations.insert(rules, lines.clone());
        }
        lines
    }
}

/// Writes the path of a target without the query into `path`, its escapes decoded: regular
/// expressions are written for this form. What was in `path` before is dropped.
fn decode_path(target: &[u8], path: &mut Vec<u8>) {
    path.clear();
    let mut rest = path_of(target);
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%'
            && let [high, low, ..] = after
            && let Some(high) = char::from(*high).to_digit(16)
            && let Some(low) = char::from(*low).to_digit(16)
        {
            path.push((high * 16 + low) as u8);
            rest = &after[2..];
        } else {
            path.push(if *first == LITERAL_STAR { b'*' } else { *first });
            rest = after;
        }
    }
}

/// The X-Robots-Tag lines of a response.
#[derive(Debug)]
pub enum Sent<'a> {
    /// The origin's lines stay as they are, and these are added, before them the lines for every
    /// crawler.
    Added(&'a [String]),
    /// The origin's lines are taken away, and these stand in their place.
    Instead(Cow<'a, [String]>),
}

/// Combines the lines of a policy with those of an origin (none, most of the time). `site` is the
/// treatment of the origin's lines where `ours` has none. Only `strip` takes them away where the
/// policy has no line. Where the origin sends more lines than are read, they stay as they are: a
/// crawler that reads all of them must not miss a part.
pub fn combine<'a, 'b>(
    ours: Option<&'a TagLines>,
    theirs: impl Iterator<Item = &'b [u8]>,
    site: OriginTags,
) -> Sent<'a> {
    let lines = ours.map_or([].as_slice(), |ours| ours.lines.as_slice());
    let mut theirs = theirs.peekable();
    if theirs.peek().is_none() {
        return Sent::Added(lines);
    }
    match ours.and_then(|ours| ours.origin_tags).unwrap_or(site) {
        OriginTags::Strip => Sent::Instead(lines.into()),
        OriginTags::Replace if !lines.is_empty() => Sent::Instead(lines.into()),
        OriginTags::Merge if !lines.is_empty() => match (ours, parse_whole(theirs)) {
            (Some(ours), Some(mut tags)) => {
                tags.merge(&ours.tags);
                Sent::Instead(tags.lines().into())
            }
            _ => Sent::Added(lines),
        },
        OriginTags::Keep | OriginTags::Merge | OriginTags::Replace => Sent::Added(lines),
    }
}
