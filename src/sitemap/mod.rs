//! Checks sitemaps (sitemaps.org/protocol.html) against the rules of their sites.
//! [`SitemapLocation`] is the path or URL of a sitemap, [`Sitemap`] its content, and
//! [`SitemapChecker`] finds the URLs that search crawlers may not fetch or index. A sitemap may
//! come from anybody. So sizes are bounded, an XML document type is an error, and no URL is
//! requested unless the caller asks for it.

mod checker;
mod fetch;
mod findings;
mod lints;
mod location;
mod parse;

pub use checker::SitemapChecker;
pub use fetch::FetchLimits;
pub use findings::{AffectedUrl, SitemapFindings};
pub use lints::LINTS;
pub use location::{PageCheck, SitemapLocation, check_sitemap};
#[cfg(any(test, feature = "internals"))]
pub use parse::Sitemap;
