//! [`GoogleRules`]: the rules of a robots.txt that crawlgate publishes, as Google's open-source
//! parser reads them. Google's crawlers are judged by these rules in addition to those of RFC 9309.
//! Most crawlers need no [`GoogleRules`]: the parser finds the same group as RFC 9309, and the
//! group has no rule that the parser reads differently ([`differs_for_google`]).

use super::{Dialect, PathPattern, RobotsDocument, Rule, RuleSet};

/// Whether Google's library reads a rule differently from RFC 9309. The rules of a document are in
/// normal form, so only an escaped `*` or `$` and an Allow of an index page differ.
pub fn differs_for_google(rule: &Rule) -> bool {
    rule.pattern.has_escaped_wildcard() || rule.google_index_directory().is_some()
}

impl Rule {
    /// The directory that Google's library allows as well, if this is an Allow of its index page.
    pub(crate) fn google_index_directory(&self) -> Option<PathPattern> {
        if !self.allow {
            return None;
        }
        Dialect::Google.index_directory_pattern(self.pattern.as_str().as_bytes())
    }
}

/// The rules that Google's library applies to a crawler.
#[derive(Debug)]
pub struct GoogleRules {
    rules: RuleSet,
    /// For each rule the indexes of its group and its rule in the document. The `Allow: /` of a
    /// group without rules has no rule.
    sources: Box<[(usize, Option<usize>)]>,
}

impl GoogleRules {
    /// Reads the groups with these indexes as one group, as the library does.
    pub fn new(document: &RobotsDocument, groups: &[usize]) -> GoogleRules {
        let mut rules = Vec::new();
        let mut sources = Vec::new();
        for &group in groups {
            if document.groups[group].rules.is_empty() {
                rules.push(Rule {
                    allow: true,
                    pattern: PathPattern::from_escaped(b"/"),
                });
                sources.push((group, None));
            }
            for (index, rule) in document.groups[group].rules.iter().enumerate() {
                let written = Dialect::Google.parse_pattern(rule.pattern.as_str().as_bytes());
                for pattern in std::iter::once(written).chain(rule.google_index_directory()) {
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

    /// The rules. They match targets as written
    /// ([`RequestTarget::written`](super::RequestTarget::written)).
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// The indexes in the document of the group and the rule that a rule comes from.
    pub fn source_rule(&self, rule: usize) -> Option<(usize, Option<usize>)> {
        self.sources.get(rule).copied()
    }
}
