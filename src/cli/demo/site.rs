//! The files of the demo's sample site, a small museum. They are embedded in the binary, so the
//! demo needs no other file.

use crate::heads::{likely_type, path_of};
use crate::robots::TargetScratch;

/// A file of the site.
pub struct Page {
    /// Its path, as clients request it.
    pub path: &'static str,
    pub body: &'static [u8],
}

impl Page {
    /// The type, by the extension of the path.
    pub fn content_type(&self) -> String {
        let media = likely_type(self.path.as_bytes());
        if media.starts_with("text/") {
            format!("{media}; charset=utf-8")
        } else {
            media.to_owned()
        }
    }
}

/// A page by its path, and by its file if that has another name.
macro_rules! page {
    ($path:literal) => {
        page!($path, $path)
    };
    ($path:literal, $file:literal) => {
        Page {
            path: $path,
            body: include_bytes!(concat!("site", $file)),
        }
    };
}

/// Every file that can be asked for.
pub const PAGES: &[Page] = &[
    page!("/", "/index.html"),
    page!("/visit.html"),
    page!("/gallery.html"),
    page!("/search", "/search.html"),
    page!("/exhibits/", "/exhibits/index.html"),
    page!("/exhibits/lighthouse.html"),
    page!("/exhibits/charts.html"),
    page!("/exhibits/ropewalk.html"),
    page!("/drafts/", "/drafts/index.html"),
    page!("/drafts/storm-of-1825.html"),
    page!("/drafts/fog-signals.html"),
    page!("/members/", "/members/index.html"),
    page!("/members/minutes.html"),
    page!("/members/directory.html"),
    page!("/reports/annual-report.pdf"),
    page!("/images/lighthouse.png"),
    page!("/images/harbour.png"),
    page!("/images/chart.svg"),
    page!("/images/anchor.svg"),
    page!("/style.css"),
];

/// The answer to every other path.
pub const NOT_FOUND: Page = page!("", "/404.html");

/// The example policy, for a demo that is not started in a checkout.
pub const POLICY: &str = include_str!("../../../policies/demo.yaml");

/// Finds the page of a request target, the way many servers do: the query aside, percent-encoding
/// decoded, doubled slashes and dot segments resolved, and a directory also without its final
/// slash. `None` if there is no such page. (That servers do this is why a policy speaks of
/// `ambiguous` requests.)
pub fn find(target: &str) -> Option<&'static Page> {
    let mut scratch = TargetScratch::default();
    let target = scratch.normalise(target.as_bytes());
    let resolved = target
        .resolved
        .map_or(target.sent, |resolved| resolved.target);
    let path = path_of(resolved);
    PAGES.iter().find(|page| {
        let own = page.path.as_bytes();
        own == path || own.strip_suffix(b"/") == Some(path)
    })
}
