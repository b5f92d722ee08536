//! [`GoogleRules`]: the rules of a published document as Google's library reads them. Few rules are
//! read otherwise than RFC 9309 says ([`is_read_otherwise`]), so most groups need none of this.

use super::{Dialect, Document, Pattern, Rule, RuleSet};

/// Whether Google's library reads a rule otherwise than RFC 9309 says. The rules of a document are
/// in normal form, so only escapes of `*` and `$`, and an Allow of an index page, make a
/// difference.
pub fn is_read_otherwise(rule: &Rule) -> bool {
    rule.pattern.is_respelled() || rule.google_directory().is_some()
}

impl Rule {
    /// The directory that Google's library allows along with an Allow of its index page.
    pub(crate) fn google_directory(&self) -> Option<Pattern> {
        if !self.allow {
            return None;
        }
        Dialect::Google.directory_of_index(self.pattern.as_str().as_bytes())
    }
}

/// The rules of the groups that Google's library finds for a crawler.
#[derive(Debug)]
pub struct GoogleRules {
    rules: RuleSet,
    /// The group and the rule of the document that each rule comes from. `Allow: /`, which is
    /// written for a group without rules, comes from none.
    sources: Box<[(usize, Option<usize>)]>,
}

impl GoogleRules {
    /// Reads the groups of a document with these indexes. The library reads all groups of a token
    /// as one.
    pub fn new(document: &Document, groups: &[usize]) -> GoogleRules {
        let mut rules = Vec::new();
        let mut sources = Vec::new();
        for &group in groups {
            if document.groups[group].rules.is_empty() {
                rules.push(Rule {
                    allow: true,
                    pattern: Pattern::verbatim(b"/"),
                });
                sources.push((group, None));
            }
            for (index, rule) in document.groups[group].rules.iter().enumerate() {
                let written = Dialect::Google.pattern(rule.pattern.as_str().as_bytes());
                for pattern in std::iter::once(written).chain(rule.google_directory()) {
                    rules.push(Rule {
                        allow: rule.allow,
                        pattern,
                    });
                    sources.push((group, Some(index)));
                }
            }
        }
        GoogleRules {
            rules: RuleSet::new(rules),
            sources: sources.into(),
        }
    }

    /// The rules, for targets as they were written ([`Target::written`](super::Target::written)).
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// The group of the document that a rule comes from, and the rule if it has one.
    pub fn source(&self, rule: usize) -> Option<(usize, Option<usize>)> {
        self.sources.get(rule).copied()
    }
}
