//! [`Layout`]: the frame of every page of the dashboard (title, navigation, version). The functions
//! of this file make links to pages.

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

/// A link to the page of a site.
pub fn site_link(name: &str) -> String {
    format!("/site?{}", query(&[("name", name)]))
}

/// A link to the page of a crawler.
pub fn crawler_link(id: &str) -> String {
    format!("/crawler?{}", query(&[("id", id)]))
}

/// A link to the page of violations with these values in the query. Empty values select all.
pub fn samples_link(given: &[(&str, &str)]) -> String {
    format!("/violations?{}", query(given))
}

/// The pairs as the query of a URL, without those that have an empty value.
fn query(given: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(given.iter().filter(|(_, value)| !value.is_empty()));
    query.finish()
}

/// A link to the line that `file:line:column` names, on the page of its site. `None` if the text
/// does not end with a line and a column.
pub fn policy_line(site: &str, source: &str) -> Option<Link> {
    let mut parts = source.rsplitn(3, ':');
    let _column = parts.next()?.parse::<u32>().ok()?;
    let line = parts.next()?.parse::<u32>().ok()?;
    Some(Link {
        href: format!("{}#line-{line}", site_link(site)),
        name: format!("{} line {line}", parts.next()?),
        is_current: false,
    })
}
