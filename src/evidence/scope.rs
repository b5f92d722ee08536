//! [`CaseScope`] says what a case is about: one crawler on one site in a span of time. A case is an
//! excerpt of the evidence log, as one file.
//!
//! The entries of a case come from three chains of the log. One chain is about the crawler on the
//! site, one about the robots.txt files of the site, and one about the log itself, such as
//! interruptions. Each is a hash chain: every entry has the hash of the entry before it.
//! [`CaseScope::chain_names`] names the chains.
//!
//! [`CaseScope::chain_starts`] says from which time on the entries of each chain are in the case.
//! Entries about the crawler are in it from the start of the span. Entries about the robots.txt
//! files are in it from 32 days earlier, because during the span the crawler may still use a
//! robots.txt of those 32 days. Entries about the log are in it from the same earlier time, so that
//! interruptions in those days show, too.

use super::{ChainName, format_time};
use std::time::{Duration, SystemTime};

/// No crawler uses a copy for longer, so a case has the publications since then.
const MAX_COPY: Duration = Duration::from_secs(32 * 86_400);

/// What a case is about.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseScope {
    /// The site.
    pub site: String,
    /// The crawler's label.
    pub crawler: String,
    /// The beginning of the span.
    pub from: SystemTime,
    /// The end of the span.
    pub to: SystemTime,
}

impl CaseScope {
    /// The names of the three chains, in the order of [`super::CHAIN_FILES`].
    pub fn chain_names(site: &str, crawler: &str) -> [ChainName; 3] {
        [
            ChainName::of_crawler(site, crawler),
            ChainName::of_site(site),
            ChainName::of_log(),
        ]
    }

    /// Since when a case has entries of each chain: of the crawler since `from`, of the others since
    /// 32 days before.
    pub fn chain_starts(from: SystemTime) -> [String; 3] {
        let published_since = from.checked_sub(MAX_COPY).unwrap_or(SystemTime::UNIX_EPOCH);
        [from, published_since, published_since].map(format_time)
    }
}
