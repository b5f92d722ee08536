//! [`FrontPage`] remembers whether the last response for `/` told crawlers not to index it, by an X-Robots-Tag of the
//! policy or of the origin. A metric shows it, because such a line can remove a whole site from search.

use crate::indexing::Directives;
use crate::time::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};

/// The last answer to `/`, if there was one. Two numbers are stored apart, so that requests neither lock nor wait. For
/// a moment a reader may see the numbers of two different answers.
#[derive(Debug)]
pub struct FrontPage {
    /// When the answer was sent; zero before there was any.
    seen: AtomicI64,
    /// The moment from which the page is kept out of the index: the earliest of all for noindex, the latest of all
    /// without noindex and `unavailable_after`.
    gone_from: AtomicI64,
}

impl Default for FrontPage {
    fn default() -> FrontPage {
        FrontPage { seen: AtomicI64::new(0), gone_from: AtomicI64::new(i64::MAX) }
    }
}

impl FrontPage {
    /// Remembers the directives of an answer to `/` for a bot.
    pub fn saw(&self, said: &Directives, now: Timestamp) {
        self.gone_from.store(said.forbids_indexing_from().map_or(i64::MAX, |moment| moment.0), Ordering::Relaxed);
        self.seen.store(now.0.max(1), Ordering::Relaxed);
    }

    /// Takes over the last answer from a site before a reload that changed nothing about the front page.
    pub fn go_on_from(&self, before: &FrontPage) {
        self.gone_from.store(before.gone_from.load(Ordering::Relaxed), Ordering::Relaxed);
        self.seen.store(before.seen.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether the last answer keeps the page out of the index at a moment, and when that answer was sent.
    pub fn last(&self, now: Timestamp) -> Option<(bool, Timestamp)> {
        match self.seen.load(Ordering::Relaxed) {
            0 => None,
            seen => Some((self.gone_from.load(Ordering::Relaxed) < now.0, Timestamp(seen))),
        }
    }
}
