//! [`Carried`]: the comments of an imported robots.txt, each with its place in the new policy. That
//! is the top or the bottom, above a group, a rule or a sitemap, or behind a rule.

use super::groups::Draft;
use super::yaml::one_line;
use crate::robots::{File, Key};
use std::collections::{BTreeSet, HashMap};

/// Comments, by their places in the policy.
#[derive(Default)]
pub struct Carried {
    pub top: Vec<String>,
    /// Above the group, the rule or the sitemap of a line.
    above: HashMap<usize, Vec<String>>,
    /// Behind the rule of the line.
    pub behind_rule: HashMap<usize, String>,
    pub bottom: Vec<String>,
}

impl Carried {
    pub fn has_comments(&self, line: usize) -> bool {
        !self.above(line).is_empty() || self.behind_rule.contains_key(&line)
    }
    /// Sorts the comments of the file by the lines that they belong to. A block before the first
    /// record and a blank line goes to the top. Other comments wait for the next rule, User-agent
    /// line or sitemap that the policy has; those at the end go to the bottom. A comment behind a
    /// rule stays there, behind another line it waits like a line of its own.
    pub fn of(file: &File, drafts: &[Draft]) -> Carried {
        let mut carried = Carried::default();
        let rules: BTreeSet<usize> = drafts
            .iter()
            .flat_map(|draft| &draft.rules)
            .map(|rule| rule.line)
            .collect();
        let agents: BTreeSet<usize> = drafts
            .iter()
            .flat_map(|draft| draft.agent_lines.iter().copied())
            .collect();
        let mut waiting: Vec<String> = Vec::new();
        let mut begun = false;
        for line in file.lines_read() {
            let comment = line
                .comment
                .as_ref()
                .map(|comment| one_line(file.text(comment).trim()));
            let Some(record) = &line.record else {
                match comment {
                    Some(comment) => waiting.push(comment),
                    // A block at the top, and then a blank line: it is about the file.
                    None if !begun => carried.top.append(&mut waiting),
                    None => {}
                }
                continue;
            };
            begun = true;
            let comment = comment.filter(|comment| !comment.is_empty());
            let is_rule = rules.contains(&line.number);
            if is_rule {
                carried
                    .behind_rule
                    .extend(comment.map(|comment| (line.number, comment)))
            } else {
                waiting.extend(comment)
            }
            if is_rule || agents.contains(&line.number) || record.key == Key::Sitemap {
                carried
                    .above
                    .insert(line.number, std::mem::take(&mut waiting));
            }
        }
        let rest = if begun {
            &mut carried.bottom
        } else {
            &mut carried.top
        };
        rest.append(&mut waiting);
        carried
    }

    /// The comments above the group, the rule or the sitemap of a line.
    pub fn above(&self, line: usize) -> &[String] {
        self.above.get(&line).map_or(&[], Vec::as_slice)
    }
}
