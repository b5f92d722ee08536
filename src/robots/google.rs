//! [`GoogleRules`]: the rules of a published document as Google's library reads them. Few rules are read otherwise than
//! RFC 9309 says ([`is_read_otherwise`]), so most groups need none of this.

use super::{Dialect, Document, Rule, RuleSet};

/// Whether Google's library reads a rule otherwise than RFC 9309 says. The rules of a document are in normal form, so
/// only escapes of `*` and `$`, and an Allow of an index page, make a difference.
pub fn is_read_otherwise(rule: &Rule) -> bool {
    let written = rule.pattern.as_str().as_bytes();
    rule.pattern.is_respelled() || rule.allow && Dialect::Google.directory_of_index(written).is_some()
}

/// The rules of the groups that Google's library finds for a crawler.
#[derive(Debug)]
pub struct GoogleRules {
    rules: RuleSet,
    /// The group and the rule of the document that each rule comes from.
    sources: Box<[(usize, usize)]>,
}

impl GoogleRules {
    /// Reads the groups of a document with these indexes. The library reads all groups of a token as one.
    pub fn new(document: &Document, groups: &[usize]) -> GoogleRules {
        let (mut rules, mut sources) = (Vec::new(), Vec::new());
        for &group in groups {
            for (index, Rule { allow, pattern }) in document.groups[group].rules.iter().enumerate() {
                let written = pattern.as_str().as_bytes();
                let directory = Dialect::Google.directory_of_index(written).filter(|_| *allow);
                for pattern in std::iter::once(Dialect::Google.pattern(written)).chain(directory) {
                    rules.push(Rule { allow: *allow, pattern });
                    sources.push((group, index));
                }
            }
        }
        GoogleRules { rules: RuleSet::new(rules), sources: sources.into() }
    }

    /// The rules, for targets as they were written ([`Target::written`](super::Target::written)).
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// The group and the rule of the document that a rule comes from.
    pub fn source(&self, rule: usize) -> Option<(usize, usize)> {
        self.sources.get(rule).copied()
    }
}
