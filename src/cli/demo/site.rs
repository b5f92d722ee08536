//! The files of the demo's sample site, a small museum. They are embedded in the binary, so the
//! demo needs no other file.

/// A file of the site.
pub struct Page {
    /// Its path, as clients request it.
    pub path: &'static str,
    pub content_type: &'static str,
    pub body: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";

macro_rules! page {
    ($path:literal, $file:literal, $content_type:expr) => {
        Page {
            path: $path,
            content_type: $content_type,
            body: include_bytes!(concat!("site/", $file)),
        }
    };
}

/// Every file that can be asked for.
pub const PAGES: &[Page] = &[
    page!("/", "index.html", HTML),
    page!("/visit.html", "visit.html", HTML),
    page!("/gallery.html", "gallery.html", HTML),
    page!("/search", "search.html", HTML),
    page!("/exhibits/", "exhibits/index.html", HTML),
    page!(
        "/exhibits/lighthouse.html",
        "exhibits/lighthouse.html",
        HTML
    ),
    page!("/exhibits/charts.html", "exhibits/charts.html", HTML),
    page!("/exhibits/ropewalk.html", "exhibits/ropewalk.html", HTML),
    page!("/drafts/", "drafts/index.html", HTML),
    page!(
        "/drafts/storm-of-1825.html",
        "drafts/storm-of-1825.html",
        HTML
    ),
    page!("/drafts/fog-signals.html", "drafts/fog-signals.html", HTML),
    page!("/members/", "members/index.html", HTML),
    page!("/members/minutes.html", "members/minutes.html", HTML),
    page!("/members/directory.html", "members/directory.html", HTML),
    page!(
        "/reports/annual-report.pdf",
        "reports/annual-report.pdf",
        "application/pdf"
    ),
    page!(
        "/images/lighthouse.png",
        "images/lighthouse.png",
        "image/png"
    ),
    page!("/images/harbour.png", "images/harbour.png", "image/png"),
    page!("/images/chart.svg", "images/chart.svg", "image/svg+xml"),
    page!("/images/anchor.svg", "images/anchor.svg", "image/svg+xml"),
    page!("/style.css", "style.css", "text/css; charset=utf-8"),
];

/// The answer to every other path.
pub const NOT_FOUND: Page = page!("", "404.html", HTML);

/// The example policy, for a demo that is not started in a checkout.
pub const POLICY: &str = include_str!("../../../policies/demo.yaml");

/// Finds the page of a request target, the way many servers do: the query aside, percent-encoding
/// decoded, doubled slashes and dot segments resolved, and a directory also without its final
/// slash. `None` if there is no such page. (That servers do this is why a policy speaks of
/// `ambiguous` requests.)
pub fn find(target: &str) -> Option<&'static Page> {
    let path = target.split(['?', '#']).next().unwrap_or("");
    let decoded = percent_encoding::percent_decode_str(path)
        .decode_utf8()
        .ok()?;
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let directory = decoded.ends_with(['/', '.']) && !segments.is_empty();
    let resolved = format!(
        "/{}{}",
        segments.join("/"),
        if directory { "/" } else { "" }
    );
    PAGES
        .iter()
        .find(|page| page.path == resolved || page.path.strip_suffix('/') == Some(&resolved))
}
