//! What can be wrong with a sitemap: the ids of findings and how grave they are. `docs/lints.md`
//! has a section for each.

use crate::policy::lint::Lint;
use crate::yaml::Severity;

/// A file that is no sitemap, or beyond a limit.
pub const SITEMAP_UNREADABLE: Lint = error("sitemap-unreadable");
/// A URL that search crawlers may not fetch.
pub const URL_DISALLOWED: Lint = error("sitemap-url-disallowed");
/// A URL whose tags keep it out of the index.
pub const URL_NOINDEX: Lint = warning("sitemap-url-noindex");
/// A URL on a host of no site.
pub const URL_OTHER_HOST: Lint = warning("sitemap-url-other-host");
/// A URL that is not absolute.
pub const URL_RELATIVE: Lint = warning("sitemap-url-relative");
/// A URL that redirects.
pub const URL_REDIRECTS: Lint = warning("sitemap-url-redirects");
/// A URL with the status 404 or 410.
pub const URL_MISSING: Lint = warning("sitemap-url-missing");
/// A URL with another error, or without an answer.
pub const URL_FAILING: Lint = warning("sitemap-url-failing");
/// A URL that was not requested, because time ran out.
pub const URL_UNFETCHED: Lint = warning("sitemap-url-unfetched");

/// All of them, in the order of `docs/lints.md`.
#[cfg(any(test, feature = "internals"))]
pub const LINTS: &[Lint] = &[
    SITEMAP_UNREADABLE,
    URL_DISALLOWED,
    URL_NOINDEX,
    URL_OTHER_HOST,
    URL_RELATIVE,
    URL_REDIRECTS,
    URL_MISSING,
    URL_FAILING,
    URL_UNFETCHED,
];

const fn error(id: &'static str) -> Lint {
    Lint {
        id,
        severity: Severity::Error,
    }
}

const fn warning(id: &'static str) -> Lint {
    Lint {
        id,
        severity: Severity::Warning,
    }
}
