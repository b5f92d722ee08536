//! Lints of selectors of `html` that ask for the place of an element among others. crawlgate compares a selector with
//! the tags as they are written, not with the tree of a browser.

use super::catalogue as lints;
use crate::policy::site::Site;
use crate::yaml::Diagnostics;

/// Parts of a selector that ask for the place of an element among others.
const OF_THE_TREE: [&str; 3] = [">", ":nth-", ":first-"];

pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let html = &site.policy.html;
    for selector in html.links.iter().flat_map(|links| &links.select).chain(&html.nosnippet) {
        let written = selector.value.to_ascii_lowercase();
        let Some(part) = OF_THE_TREE.into_iter().find(|part| written.contains(part)) else { continue };
        diagnostics.push(
            lints::SELECTOR_OF_THE_TREE
                .at(selector.span, format!("`{part}` is held against the tags as they are written, not against the tree of a browser"))
                .help("where pages leave tags out (`</li>`, `</p>`, `<tbody>`, `<body>`) it selects others than a browser would; a class on the elements themselves does not"),
        );
    }
}
