//! [`Behaviour`]: the recent behaviour of a client, as facts for one decision: its crawl rate, and whether it requested
//! a trap. The ledger remembers it. [`behaviour_counts`] tells whether it counts for a request.

use crate::policy::model::Mode;
use crate::policy::site::{CrawlerRules, Site};
use crate::robots::reaches_robots_txt;
use std::time::Duration;

/// The recent behaviour of a client on a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// The request comes sooner after the last one than the crawl delay says, by this much.
    pub too_fast: Option<Duration>,
    /// The client requested a trap under the same name, and the mark has not expired.
    pub trapped: bool,
    /// The client was served the version in force on this host, as far as that is proven: the fetch was verified, or
    /// came from the same address. On a host that was not observed for long enough, other cached versions are unknown,
    /// and every client can use a crawler's name. So a crawl delay holds there only for a client that was served it.
    pub was_served_current: bool,
}

/// Whether the client's behaviour counts for a request, so that the ledger is asked. The files that crawlgate hands out
/// itself are free for every client.
pub fn behaviour_counts(site: &Site, rules: &CrawlerRules, target: &[u8]) -> bool {
    // The cheap answer first, without reading the target: people send most requests, and their behaviour never counts.
    if !rules.judged || rules.exempt || rules.mode == Mode::Off {
        return false;
    }
    let path = target.split(|octet| *octet == b'?').next().unwrap_or_default();
    !reaches_robots_txt(target) && !site.signals.has_at(path)
}
