//! [`HtmlRules`]: the compiled `html` section of a site, with paths as patterns and selectors read.

use super::Version;
use crate::policy::model::HtmlPolicy;
use crate::robots::{Pattern, Target};
use crate::yaml::Located;

/// The compiled `html` section of a site.
#[derive(Debug)]
pub struct HtmlRules {
    /// Whether robots metas say what the X-Robots-Tag field says.
    pub meta: bool,
    /// The marks for elements of pages.
    #[cfg(feature = "html")]
    pub marks: std::sync::Arc<crate::html::Marks>,
    pub(in crate::policy) paths: Vec<Pattern>,
    pub(in crate::policy) not_paths: Vec<Pattern>,
}

impl HtmlRules {
    /// A number that is the same for equal `html` sections, to find out whether a reload changed one.
    pub fn identity(policy: &HtmlPolicy) -> u64 {
        let texts = |list: &[Located<String>]| list.iter().map(|item| item.value.clone()).collect::<Vec<_>>();
        let links: Vec<_> = policy.links.iter().map(|links| (texts(&links.select), &links.rel)).collect();
        let lists = [&policy.nosnippet, &policy.paths, &policy.not_paths].map(|list| texts(list));
        Version::of(format!("html {:?}", (policy.meta, links, lists)).as_bytes()).number()
    }

    /// Whether the section depends on the path. Otherwise the target need not be normalised.
    pub fn asks_path(&self) -> bool {
        !self.paths.is_empty() || !self.not_paths.is_empty()
    }

    /// Whether pages of this path are meant.
    pub fn applies(&self, target: Target<'_>) -> bool {
        let applies = |path: &[u8]| {
            let listed = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(path));
            (self.paths.is_empty() || listed(&self.paths)) && !listed(&self.not_paths)
        };
        // The origin answers with the page at the path that it resolves the target to.
        target.readings().any(applies)
    }
}
