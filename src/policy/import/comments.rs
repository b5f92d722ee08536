//! [`ImportedComments`]: the comments of an imported robots.txt, each with its place in the policy:
//! at the top or the bottom, above a group, a rule or a sitemap, or after a rule on its line.

use super::groups::ImportedGroup;
use super::yaml::one_line;
use crate::robots::{RobotsFile, RobotsKey};
use std::collections::{BTreeSet, HashMap};

/// The comments of a file, by their places in the policy.
#[derive(Default)]
pub struct ImportedComments {
    pub top: Vec<String>,
    /// Above the group, the rule or the sitemap of a line.
    above: HashMap<usize, Vec<String>>,
    /// After the rule of the line.
    pub behind_rule: HashMap<usize, String>,
    pub bottom: Vec<String>,
}

impl ImportedComments {
    pub fn has_comments(&self, line: usize) -> bool {
        !self.above(line).is_empty() || self.behind_rule.contains_key(&line)
    }

    /// Collects the comments of a file. A block before the first record and a blank line goes to
    /// the top. Other comments go to the next rule, User-agent line or sitemap of the policy, or to
    /// the bottom; a comment after a rule stays there.
    pub fn collect(file: &RobotsFile, drafts: &[ImportedGroup]) -> ImportedComments {
        let mut comments = ImportedComments::default();
        let rules: BTreeSet<usize> = drafts
            .iter()
            .flat_map(|draft| &draft.rules)
            .map(|rule| rule.line)
            .collect();
        let agents: BTreeSet<&usize> = drafts.iter().flat_map(|draft| &draft.agent_lines).collect();
        let mut waiting: Vec<String> = Vec::new();
        let mut begun = false;
        for line in file.lines_within_limit() {
            let comment = line
                .comment
                .as_ref()
                .map(|comment| one_line(file.text(comment).trim()));
            let Some(record) = &line.key_value else {
                match comment {
                    Some(comment) => waiting.push(comment),
                    None if !begun => comments.top.append(&mut waiting),
                    None => {}
                }
                continue;
            };
            begun = true;
            let comment = comment.filter(|comment| !comment.is_empty());
            let is_rule = rules.contains(&line.number);
            if is_rule {
                comments
                    .behind_rule
                    .extend(comment.map(|comment| (line.number, comment)))
            } else {
                waiting.extend(comment)
            }
            if is_rule || agents.contains(&line.number) || record.key == RobotsKey::Sitemap {
                comments
                    .above
                    .insert(line.number, std::mem::take(&mut waiting));
            }
        }
        let rest = if begun {
            &mut comments.bottom
        } else {
            &mut comments.top
        };
        rest.append(&mut waiting);
        comments
    }

    /// The comments above the group, the rule or the sitemap of a line.
    pub fn above(&self, line: usize) -> &[String] {
        self.above.get(&line).map_or(&[], Vec::as_slice)
    }
}
