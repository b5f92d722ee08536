//! [`Layout`]: the frame of every page of the dashboard (title, navigation, version). Links to
//! pages are those of the report.

pub use crate::report::links::{crawler_link, policy_line, samples_link, site_link};

/// The pages in the navigation.
const PAGES: [(&str, &str); 3] = [
    ("/", "Overview"),
    ("/violations", "Violations"),
    ("/health", "Health"),
];

/// The frame of a page.
#[derive(Debug)]
pub struct Layout {
    pub title: String,
    pub pages: Vec<Link>,
    pub version: &'static str,
    /// Whose counts the page shows, where there are several instances.
    pub counted: String,
}

/// A link to a page, in the navigation or to another period.
#[derive(Clone, Debug)]
pub struct Link {
    pub href: String,
    pub name: String,
    pub is_current: bool,
}

impl Layout {
    /// The frame of the page at a path, which the navigation marks. With `problems` (how many need
    /// attention) the link to the page of health shows their number.
    pub fn new(title: &str, path: &'static str, problems: usize) -> Layout {
        let mut pages = PAGES.map(|(href, name)| Link {
            href: href.to_owned(),
            name: name.to_owned(),
            is_current: href == path,
        });
        if problems > 0 {
            let [.., health] = &mut pages;
            health.name.push_str(&format!(" ({problems})"));
        }
        Layout {
            title: title.to_owned(),
            pages: pages.into(),
            version: env!("CARGO_PKG_VERSION"),
            counted: String::new(),
        }
    }

    /// Adds the sentence that says whose counts the page shows.
    pub fn counted(self, counted: String) -> Layout {
        Layout { counted, ..self }
    }
}
