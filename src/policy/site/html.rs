//! [`HtmlRules`]: the compiled `html` section of a policy, which says on which paths HTML pages get
//! robots metas. Path patterns are already parsed.

use super::Version;
use crate::policy::model::{HtmlPolicy, patterns};
use crate::robots::{Pattern, Target};
use crate::yaml::values;

/// The compiled `html` section of a site.
#[derive(Debug)]
pub struct HtmlRules {
    paths: Vec<Pattern>,
    not_paths: Vec<Pattern>,
}

impl HtmlRules {
    /// The compiled section; `None` where nothing is written into pages.
    pub fn new(policy: &HtmlPolicy) -> Option<HtmlRules> {
        policy.meta.then(|| HtmlRules {
            paths: patterns(&policy.paths),
            not_paths: patterns(&policy.not_paths),
        })
    }

    /// A number that is the same for equal `html` sections, to find out whether a reload changed
    /// one.
    pub fn identity(policy: &HtmlPolicy) -> u64 {
        let lists = [&policy.paths, &policy.not_paths].map(|list| values(list));
        Version::of(format!("html {:?}", (policy.meta, lists)).as_bytes()).number()
    }

    /// Whether the section depends on the path. Otherwise the target need not be normalised.
    pub fn asks_path(&self) -> bool {
        !self.paths.is_empty() || !self.not_paths.is_empty()
    }

    /// Whether pages of this path are meant: of the listed ones, if there are any, and none of
    /// `not`. One of the readings of the target is enough.
    pub fn applies(&self, target: Target<'_>) -> bool {
        // The origin answers with the page at the path that it resolves the target to.
        target.readings().any(|path| {
            let is_listed = self.paths.is_empty() || self.paths.iter().any(|own| own.matches(path));
            is_listed && !self.not_paths.iter().any(|own| own.matches(path))
        })
    }
}
