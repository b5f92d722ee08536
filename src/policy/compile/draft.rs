//! [`GroupDraft`]: a group of a robots.txt that is being made. A draft keeps the source of each
//! rule: a position in the policy, or a line of the origin's robots.txt. `compose.rs` and
//! `merge.rs` make drafts, and `assemble.rs` writes them. [`first_equal_drafts`] finds drafts with
//! the same content, and [`draft_size`] gives the size of a draft in bytes.

use crate::crawlers::Purpose;
use crate::policy::site::{DroppedRule, RuleSource};
use crate::robots::{ExtensionLine, Rule};
use std::collections::HashMap;
use std::time::Duration;

/// The name of the origin's file in comments of the public file, where its address must not appear.
pub const ORIGIN_FILE: &str = "the origin's robots.txt";

/// The most left-out lines that comments name, of each kind and group. The others are counted.
pub const MAX_LISTED: usize = 20;

/// The first comment of a group: why it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum GroupHeading {
    /// The policy writes the group.
    #[error("From robots.groups.")]
    Groups,
    /// The site's signals need a group for `*`, and the policy has none.
    #[error("From the site's policy.")]
    Signals,
    /// The policy has a stance towards a purpose.
    #[error("From purposes: {} {}.", purpose.name(), if *allowed { "allow" } else { "disallow" })]
    Purpose { purpose: Purpose, allowed: bool },
    /// Traps need a group for `*`.
    #[error("From enforcement.traps.")]
    Traps,
    /// Retired paths need a group for `*`.
    #[error("From retire.")]
    Retire,
    /// The site is a staging site that crawlers may fetch.
    #[error("A staging site: open to crawlers, so that they see its noindex.")]
    OpenStaging,
    /// The site is a staging site that crawlers may not fetch.
    #[error("A staging site.")]
    ClosedStaging,
    /// Only the origin has the group.
    #[error("From {ORIGIN_FILE}.")]
    Origin,
}

/// A rule with its source.
pub type SourcedRule = (Rule, RuleSource);

/// A group of robots.txt while the file is compiled.
#[derive(Clone)]
pub struct GroupDraft {
    pub agents: Vec<String>,
    /// The place of each agent among all tokens of the file, and the source that names it. Empty
    /// for a group that was not merged.
    pub places: Vec<(usize, RuleSource)>,
    pub rules: Vec<SourcedRule>,
    pub crawl_delay: Option<(Duration, RuleSource)>,
    pub extensions: Vec<ExtensionLine>,
    /// Keys of lines about the use of content that the policy has for this group, in robots.txt or
    /// as headers.
    pub signal_keys: Vec<&'static str>,
    pub heading: GroupHeading,
    /// Whether rules of the origin were added to a group of the policy.
    pub has_origin_rules: bool,
    /// Comments after the heading: the parts of the origin's group that were left out, and why.
    pub notes: Vec<String>,
    pub source: RuleSource,
    /// Rules of the origin that were left out and are reported.
    pub dropped_rules: Vec<DroppedRule>,
}

impl GroupDraft {
    /// A group without agents and rules.
    pub fn new(heading: GroupHeading, source: RuleSource) -> GroupDraft {
        GroupDraft {
            agents: Vec::new(),
            places: Vec::new(),
            rules: Vec::new(),
            crawl_delay: None,
            extensions: Vec::new(),
            signal_keys: Vec::new(),
            heading,
            has_origin_rules: false,
            notes: Vec::new(),
            source,
            dropped_rules: Vec::new(),
        }
    }

    /// Whether the group is for `*`.
    pub fn names_star(&self) -> bool {
        self.agents.iter().any(|agent| agent == "*")
    }

    /// The comments above the group.
    pub fn comments(&self) -> Vec<String> {
        let mut heading = self.heading.to_string();
        if self.has_origin_rules {
            heading += &format!(" And from {ORIGIN_FILE}.");
        }
        std::iter::once(heading)
            .chain(self.notes.iter().cloned())
            .collect()
    }
}

/// For each draft the index of the first draft with the same content, whatever its agents are; that
/// may be its own index. A group for `*` never equals one for other agents: parsers that know one
/// agent per group must find it.
pub fn first_equal_drafts(drafts: &[GroupDraft]) -> Vec<usize> {
    let mut known = HashMap::new();
    drafts
        .iter()
        .enumerate()
        .map(|(index, draft)| {
            let heading = (draft.heading, draft.has_origin_rules, &draft.notes);
            let content = (
                &draft.rules,
                // Not where it stands.
                draft.crawl_delay.as_ref().map(|(delay, _)| delay),
                &draft.extensions,
                &draft.signal_keys,
            );
            *known
                .entry((draft.names_star(), heading, content))
                .or_insert(index)
        })
        .collect()
}

/// The size of a group without its User-agent lines, in bytes.
pub fn draft_size(draft: &GroupDraft) -> usize {
    lines_size(&draft.rules, &draft.extensions)
}

/// The size of these lines, in bytes.
pub fn lines_size(rules: &[SourcedRule], extensions: &[ExtensionLine]) -> usize {
    let rules = rules.iter().map(|(rule, _)| {
        let key = if rule.allow { "Allow" } else { "Disallow" };
        key.len() + rule.pattern.priority()
    });
    let others = extensions
        .iter()
        .map(|line| line.key.len() + line.value.len());
    rules.chain(others).map(|size| size + ": \n".len()).sum()
}
