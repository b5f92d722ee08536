//! Every link between pages leads somewhere: to a file of the repository, and to a heading of the
//! page where the link names one.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A page, as its links and headings.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    /// The names by which links reach its headings.
    anchors: BTreeSet<String>,
}

impl Page {
    fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let heading = heading.take().unwrap_or_default();
                    page.add_anchor(&anchor_of(&heading));
                }
                _ => {}
            }
        }
        page
    }

    /// A heading that a page has twice gets a number.
    fn add_anchor(&mut self, anchor: &str) {
        if self.anchors.insert(anchor.to_owned()) {
            return;
        }
        let free = (1..)
            .map(|number| format!("{anchor}-{number}"))
            .find(|numbered| !self.anchors.contains(numbered));
        self.anchors.extend(free);
    }
}

/// The name that GitHub gives to a heading.
fn anchor_of(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'))
        .map(|sign| if sign == ' ' { '-' } else { sign })
        .collect()
}

/// A path below the repository without `..`; `None` if it leads out of it.
fn within(path: &Path) -> Option<PathBuf> {
    let mut within = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                if !within.pop() {
                    return None;
                }
            }
            component => within.push(component),
        }
    }
    Some(within)
}

/// The pages below a directory of the repository, by their path.
fn pages(root: &Path, directory: &Path, found: &mut BTreeMap<PathBuf, Page>) {
    for entry in fs::read_dir(root.join(directory)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = directory.join(entry.file_name());
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') && name != "target" {
            pages(root, &path, found);
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(entry.path()).expect("a page");
            found.insert(path, Page::read(&text));
        }
    }
}

/// The links of all pages below a directory that lead nowhere, and the number of all links.
pub(crate) fn check(root: &Path) -> (Vec<String>, usize) {
    let mut found = BTreeMap::new();
    pages(root, Path::new(""), &mut found);
    let links = found.values().map(|page| page.links.len()).sum();
    (faults(root, &found), links)
}

fn faults(root: &Path, pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let mut faults = Vec::new();
    for (from, page) in pages {
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = match link.split_once('#') {
                Some((file, anchor)) => (file, Some(anchor)),
                None => (link.as_str(), None),
            };
            let to = if file.is_empty() {
                Some(from.clone())
            } else {
                within(&from.parent().unwrap_or(Path::new("")).join(file))
            };
            let leads_somewhere = to.is_some_and(|to| match anchor {
                Some(anchor) => pages
                    .get(&to)
                    .is_some_and(|page| page.anchors.contains(anchor)),
                None => root.join(to).exists(),
            });
            if !leads_somewhere {
                faults.push(format!("{}: {link}", from.display()));
            }
        }
    }
    faults
}

#[cfg(not(feature = "proxy"))]
#[test]
fn every_link_between_pages_leads_somewhere() {
    let (faults, links) = check(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(links > 200, "only {links} links were found");
    assert_eq!(faults, Vec::<String>::new());
}

#[cfg(not(feature = "proxy"))]
#[test]
fn links_that_lead_nowhere_are_found() {
    let page = Page::read(
        "# One `two`: three\n## Same\n## Same\n\
         [a](#one-two-three) [b](#same-1) [c](#same-2) [d](gone.md) [e](../out.md)\n",
    );
    let pages = BTreeMap::from([(PathBuf::from("page.md"), page)]);
    let faults = faults(Path::new(env!("CARGO_MANIFEST_DIR")), &pages);
    assert_eq!(
        faults,
        ["page.md: #same-2", "page.md: gone.md", "page.md: ../out.md"]
    );
}
