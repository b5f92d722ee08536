//! What is written into pages, ready for use: paths as patterns, selectors read.

use super::Version;
use crate::policy::model::HtmlPolicy;
use crate::robots::{Pattern, Target};
use crate::yaml::Located;

/// The compiled `html` section of a site.
#[derive(Debug)]
pub struct HtmlRules {
    /// Whether robots metas say what the X-Robots-Tag field says.
    pub meta: bool,
    /// What is marked in pages.
    #[cfg(feature = "html")]
    pub marks: std::sync::Arc<crate::html::Marks>,
    pub(in crate::policy) paths: Vec<Pattern>,
    pub(in crate::policy) not_paths: Vec<Pattern>,
}

impl HtmlRules {
    /// What is written and where, told apart from all else that could be: nothing has an identity of its own.
    pub fn identity(policy: &HtmlPolicy) -> u64 {
        let texts = |list: &[Located<String>]| list.iter().map(|item| item.value.clone()).collect::<Vec<_>>();
        let links: Vec<_> = policy.links.iter().map(|links| (texts(&links.select), &links.rel)).collect();
        let lists = [&policy.nosnippet, &policy.paths, &policy.not_paths].map(|list| texts(list));
        Version::of(format!("html {:?}", (policy.meta, links, lists)).as_bytes()).number()
    }

    /// Whether there are paths to look at: a request's target need not be put into its normal form otherwise.
    pub fn asks_path(&self) -> bool {
        !self.paths.is_empty() || !self.not_paths.is_empty()
    }

    /// Whether pages of this path are meant.
    pub fn applies(&self, target: Target<'_>) -> bool {
        let applies = |path: &[u8]| {
            let listed = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(path));
            (self.paths.is_empty() || listed(&self.paths)) && !listed(&self.not_paths)
        };
        // What the origin resolves the path to is what it answers with.
        target.readings().any(applies)
    }
}
