//! Judges access logs for `crawlgate audit`: which crawlers fetched URLs that robots.txt
//! disallowed, and which requests crawlgate would have blocked. [`audit_logs`] judges the requests
//! in [`LogInput`]s by [`AuditRules`], on several cores, and returns a
//! [`Report`](crate::report::Report). Memory stays bounded for a log of any length, because lists
//! ([`TopKSketch`](crate::sketch::TopKSketch)) and caches have a maximum size.

mod input;
mod pool;
mod report;
mod rules;
mod sitemap_urls;
mod tally;
mod worker;

pub use input::{LogInput, for_each_line, logs_at};
pub use pool::{AuditProgress, audit_logs};
pub use rules::{AuditRules, DatedRobotsTxt};
pub use sitemap_urls::SitemapUrls;
pub use worker::{AuditOptions, PublishedNetworks, client_identity};
