//! [`html_rules`] compiles the `html` section of a policy into [`HtmlRules`].

use crate::policy::model::HtmlPolicy;
use crate::policy::site::HtmlRules;
use crate::robots::Pattern;
use crate::yaml::Located;

/// The compiled section; `None` where nothing is written into pages.
pub fn html_rules(policy: &HtmlPolicy) -> Option<HtmlRules> {
    if !policy.meta && policy.links.is_empty() && policy.nosnippet.is_empty() {
        return None;
    }
    let patterns = |paths: &[Located<String>]| paths.iter().map(|path| Pattern::new(&path.value)).collect();
    Some(HtmlRules {
        meta: policy.meta,
        #[cfg(feature = "html")]
        marks: std::sync::Arc::new(marks(policy)),
        paths: patterns(&policy.paths),
        not_paths: patterns(&policy.not_paths),
    })
}

#[cfg(feature = "html")]
fn marks(policy: &HtmlPolicy) -> crate::html::Marks {
    let mut marks = crate::html::Marks::default();
    // Checking has read every selector once already.
    for links in &policy.links {
        let rel: Vec<&'static str> = links.rel.iter().map(|rel| rel.name()).collect();
        for selector in &links.select {
            let _ = marks.link(&selector.value, &rel);
        }
    }
    for selector in &policy.nosnippet {
        let _ = marks.nosnippet(&selector.value);
    }
    marks
}
