//! Judges access logs for `crawlgate audit`: which crawlers fetched URLs that robots.txt
//! disallowed, by which rules, and what enforcement would have done. [`audit`] judges the requests
//! of [`Input`]s on several cores by the [`Rules`] that were in force, and returns a
//! [`Report`](crate::report::Report). Memory does not grow with the number of lines: top lists are
//! bounded [`sketch`]es, and caches are emptied when they are full.

mod input;
mod pool;
mod report;
mod rules;
pub mod sketch;
mod tally;
mod worker;

pub use input::{Input, each_line};
pub use pool::{ReadSoFar, audit};
pub use rules::{PublishedFile, Rules};
pub use worker::{Options, PublishedNetworks};
