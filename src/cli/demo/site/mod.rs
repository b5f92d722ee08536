//! The files of the demo's sample site, a small museum. They are embedded in the binary, so the
//! demo needs no other file.

use crate::heads::{likely_content_type, path_of};
use crate::robots::TargetScratch;

/// A file of the site.
pub struct SiteFile {
    /// Its path, as clients request it.
    pub path: &'static str,
    pub body: &'static [u8],
}

impl SiteFile {
    /// The type, by the extension of the path.
    pub fn content_type(&self) -> String {
        let media = likely_content_type(self.path.as_bytes());
        if media.starts_with("text/") {
            format!("{media}; charset=utf-8")
        } else {
            media.to_owned()
        }
    }
}

/// Embeds a file by its path, and by its name if that differs.
macro_rules! page {
    ($path:literal) => {
        page!($path, $path)
    };
    ($path:literal, $file:literal) => {
        SiteFile {
            path: $path,
            body: include_bytes!(concat!(".", $file)),
        }
    };
}

/// Every file of the site.
pub const SITE_FILES: &[SiteFile] = &[
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
pub const NOT_FOUND: SiteFile = page!("", "/404.html");

/// The example policy, for a demo outside of a checkout.
pub const POLICY: &str = include_str!("../../../../policies/demo.yaml");

/// Finds the file of a request target as many servers do: ignores the query, decodes percent-encoding,
/// and resolves doubled slashes and dot segments. A directory may lack its final slash. (Because of
/// such servers there are `ambiguous` requests.)
pub fn find_file(target: &str) -> Option<&'static SiteFile> {
    let mut scratch = TargetScratch::default();
    let target = scratch.normalise(target.as_bytes());
    let resolved = target
        .resolved
        .map_or(target.sent, |resolved| resolved.target);
    let path = path_of(resolved);
    SITE_FILES.iter().find(|page| {
        let own = page.path.as_bytes();
        own == path || own.strip_suffix(b"/") == Some(path)
    })
}
