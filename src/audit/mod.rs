//! Judges access logs for `crawlgate audit`: which crawlers fetched URLs that robots.txt
//! disallowed, and which requests crawlgate would have blocked. [`audit_logs`] judges the requests
//! in [`LogInput`]s by [`AuditRules`], on several cores, and returns a
//! [`Report`](crate::report::Report). Memory does not grow with the number of lines: lists of the
//! most frequent entries are bounded ([`TopKSketch`](crate::sketch::TopKSketch)), and caches are
//! emptied when they are full.

mod input;
mod pool;
mod report;
mod rules;
mod tally;
mod worker;

pub use input::{LogInput, for_each_line, logs_at, sort_by_time};
pub use pool::{AuditProgress, audit_logs};
pub use rules::{AuditRules, DatedRobotsTxt};
pub use worker::{AuditOptions, PublishedNetworks, client_identity};
