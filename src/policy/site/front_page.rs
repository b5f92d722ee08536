//! [`FrontPageStatus`] remembers whether the last response for `/` had a noindex for search
//! engines, from the policy or from the origin. A metric and `crawlgate status` show this, because
//! a noindex on the front page can cost a site its place in search engines.

use crate::indexing::RobotsTags;
use crate::time::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The search engines that matter most to site owners, Googlebot first.
pub const SEARCH_ENGINES: [&str; 2] = ["Googlebot", "bingbot"];

/// What is known of the last response for the front page. Its fields are atomics, so that requests
/// do not lock; a reader may see fields of two different responses.
#[derive(Debug)]
pub struct FrontPageStatus {
    /// When it was sent; zero before the first.
    seen: AtomicI64,
    /// For each engine, since when the page is out of its index: `i64::MIN` for noindex, the time
    /// of `unavailable_after`, or `i64::MAX` without either.
    noindex_from: [AtomicI64; SEARCH_ENGINES.len()],
}

impl Default for FrontPageStatus {
    fn default() -> FrontPageStatus {
        let noindex_from = SEARCH_ENGINES.map(|_| AtomicI64::new(i64::MAX));
        FrontPageStatus {
            seen: AtomicI64::new(0),
            noindex_from,
        }
    }
}

impl FrontPageStatus {
    /// Records the tags of a response for `/`.
    pub fn record_tags(&self, tags: &RobotsTags, now: Timestamp) {
        for (noindex_from, engine) in self.noindex_from.iter().zip(SEARCH_ENGINES) {
            let from = tags.effective(engine).forbids_indexing_from();
            noindex_from.store(from.map_or(i64::MAX, |moment| moment.0), Relaxed);
        }
        self.seen.store(now.0.max(1), Relaxed);
    }

    /// Copies the last response from the site before a reload that changed nothing about it.
    pub fn copy_from(&self, before: &FrontPageStatus) {
        for (noindex_from, before) in self.noindex_from.iter().zip(&before.noindex_from) {
            noindex_from.store(before.load(Relaxed), Relaxed);
        }
        self.seen.store(before.seen.load(Relaxed), Relaxed);
    }

    /// When the last response was sent, if there was one.
    pub fn last_seen(&self) -> Option<Timestamp> {
        Some(Timestamp(self.seen.load(Relaxed))).filter(|seen| seen.0 != 0)
    }

    /// The search engines that must not index the front page at `now`, by the last response.
    pub fn excluding_engines(&self, now: Timestamp) -> impl Iterator<Item = &'static str> {
        self.noindex_from
            .iter()
            .zip(SEARCH_ENGINES)
            .filter(move |(noindex_from, _)| noindex_from.load(Relaxed) < now.0)
            .map(|(_, engine)| engine)
    }
}
