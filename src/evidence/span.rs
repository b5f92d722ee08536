//! [`CaseSpan`]: the subject of a case (a part of the evidence log as one file), which is one
//! crawler on one site in a span of time. It also says which hash chains belong to the case, and
//! from what time on.

use super::{ChainName, time_text};
use std::time::{Duration, SystemTime};

/// No crawler uses a copy for longer: publications from so long before are part of a case.
const LONGEST_COPY: Duration = Duration::from_secs(32 * 86_400);

/// What a case is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseSpan {
    /// The site.
    pub site: String,
    /// The crawler's label.
    pub crawler: String,
    /// From this moment.
    pub from: SystemTime,
    /// Until this moment.
    pub to: SystemTime,
}

impl CaseSpan {
    /// The three chains, in the order of [`super::CHAINS`].
    pub fn chains(site: &str, crawler: &str) -> [ChainName; 3] {
        [
            ChainName::of_crawler(site, crawler),
            ChainName::of_site(site),
            ChainName::of_log(),
        ]
    }

    /// Since when a case has entries of each of the three chains: the crawler's since `from`, and
    /// the others since 32 days before, because a crawler may use a copy from so long ago.
    pub fn beginnings(from: SystemTime) -> [String; 3] {
        let published_since = from
            .checked_sub(LONGEST_COPY)
            .unwrap_or(SystemTime::UNIX_EPOCH);
        [from, published_since, published_since].map(time_text)
    }
}
