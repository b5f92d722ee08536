//! A document ready for verdicts: which group binds a product token, which rule of it decides.

use super::{Document, RuleSet};
use std::collections::HashMap;

/// Groups by token. Indexes of groups and rules are those of the document it was made from.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    groups: Vec<RuleSet>,
    tokens: HashMap<Box<str>, usize>,
    star: Option<usize>,
}

impl Matcher {
    /// Prepares a document in which each token stands in at most one group (the first wins otherwise).
    pub fn new(document: &Document) -> Matcher {
        let _ = document;
        todo!()
    }

    /// The group that names `token`, without regard to case; `*` is not a token.
    pub fn named(&self, token: &str) -> Option<usize> {
        let _ = (token, &self.tokens);
        todo!()
    }

    /// The `*` group.
    pub fn star(&self) -> Option<usize> {
        self.star
    }

    /// The rules of a group.
    pub fn rules(&self, group: usize) -> &RuleSet {
        &self.groups[group]
    }
}
