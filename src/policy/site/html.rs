//! [`HtmlRules`]: the compiled `html` section of a policy, which says how HTML pages are changed for search engines and
//! on which paths. Path patterns and CSS selectors are already parsed.

use super::Version;
use crate::policy::model::{HtmlPolicy, patterns};
use crate::robots::{Pattern, Target};
use crate::yaml::values;

/// The compiled `html` section of a site.
#[derive(Debug)]
pub struct HtmlRules {
    /// Whether robots metas say what the X-Robots-Tag field says.
    pub meta: bool,
    /// The marks for elements of pages.
    #[cfg(feature = "html")]
    pub marks: std::sync::Arc<crate::html::Marks>,
    paths: Vec<Pattern>,
    not_paths: Vec<Pattern>,
}

#[cfg(feature = "html")]
fn marks(policy: &HtmlPolicy) -> crate::html::Marks {
    let mut marks = crate::html::Marks::default();
    // Checking has read every selector once already.
    for links in &policy.links {
        let rel: Vec<&'static str> = links.rel.iter().map(Into::into).collect();
        for selector in &links.select {
            let _ = marks.link(&selector.value, &rel);
        }
    }
    for selector in &policy.nosnippet {
        let _ = marks.nosnippet(&selector.value);
    }
    marks
}

impl HtmlRules {
    /// The compiled section; `None` where nothing is written into pages.
    pub(in crate::policy) fn new(policy: &HtmlPolicy) -> Option<HtmlRules> {
        (policy.meta || !policy.links.is_empty() || !policy.nosnippet.is_empty()).then(|| HtmlRules {
            meta: policy.meta,
            #[cfg(feature = "html")]
            marks: std::sync::Arc::new(marks(policy)),
            paths: patterns(&policy.paths),
            not_paths: patterns(&policy.not_paths),
        })
    }

    /// A number that is the same for equal `html` sections, to find out whether a reload changed one.
    pub fn identity(policy: &HtmlPolicy) -> u64 {
        let links: Vec<_> = policy.links.iter().map(|links| (values(&links.select), &links.rel)).collect();
        let lists = [&policy.nosnippet, &policy.paths, &policy.not_paths].map(|list| values(list));
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
