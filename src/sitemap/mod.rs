//! Sitemaps (sitemaps.org/protocol.html), checked against the rules of a site. [`Sitemap`] is a
//! file that was read, [`SitemapLocation`] where it is, and [`SitemapChecker`] finds the URLs that
//! search crawlers may not fetch or index. A file may come from anybody: sizes are bounded, a
//! document type is an error, and nothing is requested that the caller did not ask for.

mod checker;
mod fetch;
mod lints;
mod location;
mod parse;

pub use checker::SitemapChecker;
pub use lints::LINTS;
pub use location::{SitemapLocation, check_sitemap};
#[cfg(any(test, feature = "internals"))]
pub use parse::Sitemap;
