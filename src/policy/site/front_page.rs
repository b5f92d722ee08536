//! [`FrontPageStatus`] remembers whether the last response for `/` had a noindex for search
//! engines, from the policy or from the origin. A metric and `crawlgate status` show it, because
//! such a line can remove a whole site from search. If `/` redirects to another page of the site,
//! that page counts as the front page as well.

use crate::indexing::RobotsTags;
use crate::time::Timestamp;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

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
    /// A hash of the target that `/` last redirected to; zero for none.
    redirect_hash: AtomicU64,
}

impl Default for FrontPageStatus {
    fn default() -> FrontPageStatus {
        let noindex_from = SEARCH_ENGINES.map(|_| AtomicI64::new(i64::MAX));
        FrontPageStatus {
            seen: AtomicI64::new(0),
            noindex_from,
            redirect_hash: AtomicU64::new(0),
        }
    }
}

impl FrontPageStatus {
    /// Whether a target is `/`, or the page that `/` last redirected to.
    pub fn is_front_page(&self, target: &[u8]) -> bool {
        let redirect_hash = self.redirect_hash.load(Relaxed);
        target == b"/" || redirect_hash != 0 && redirect_hash == target_hash(target)
    }

    /// Records a redirect. If `from` is the front page, `to` becomes the front page as well.
    pub fn record_redirect(&self, from: &[u8], to: &[u8]) {
        if self.is_front_page(from) {
            self.redirect_hash.store(target_hash(to), Relaxed);
        }
    }

    /// Records the tags of a response for `target`, which must be a front page. A response for `/`
    /// itself ends an earlier redirect.
    pub fn record_tags(&self, target: &[u8], tags: &RobotsTags, now: Timestamp) {
        if target == b"/" {
            self.redirect_hash.store(0, Relaxed);
        }
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
        self.redirect_hash
            .store(before.redirect_hash.load(Relaxed), Relaxed);
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

/// A hash of a target, valid in this process; never zero.
fn target_hash(target: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    hasher.finish().max(1)
}
