//! [`PageLayout`]: the frame of every page of the dashboard, with title, navigation and version.

pub use crate::report::links::{crawler_link, policy_line_link, site_link, violations_link};

/// The pages in the navigation.
const PAGES: [(&str, &str); 3] = [
    ("/", "Overview"),
    ("/violations", "Violations"),
    ("/health", "Health"),
];

/// The frame of a page.
pub struct PageLayout {
    pub title: String,
    pub pages: Vec<PageLink>,
    pub version: &'static str,
    /// The sentence about the included instances; may be empty.
    pub counts_note: String,
}

/// A link to a page, in the navigation or to another period.
pub struct PageLink {
    pub href: String,
    pub name: String,
    pub is_current: bool,
}

impl PageLayout {
    /// The frame of the page at `path`. The link to the page of health shows the number of problems.
    pub fn new(
        title: &str,
        path: &'static str,
        problems: usize,
        counts_note: String,
    ) -> PageLayout {
        let mut pages = PAGES.map(|(href, name)| PageLink {
            href: href.to_owned(),
            name: name.to_owned(),
            is_current: href == path,
        });
        if problems > 0 {
            let [.., health] = &mut pages;
            health.name.push_str(&format!(" ({problems})"));
        }
        PageLayout {
            title: title.to_owned(),
            pages: pages.into(),
            version: env!("CARGO_PKG_VERSION"),
            counts_note,
        }
    }
}
