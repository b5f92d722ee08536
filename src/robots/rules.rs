//! The rules of one group, ready for the longest match.

use super::Rule;

/// Rules in the order given, with an index for matching.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

impl RuleSet {
    /// Prepares `rules` for matching.
    pub fn new(rules: Vec<Rule>) -> RuleSet {
        RuleSet { rules }
    }

    /// The rules in the order they were given.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The index of the rule that decides about a normalised target: the longest, Allow before Disallow. Neither
    /// allocates nor locks.
    pub fn find(&self, target: &[u8]) -> Option<usize> {
        let _ = target;
        todo!()
    }
}
