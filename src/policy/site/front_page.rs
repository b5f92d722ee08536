//! [`FrontPage`] remembers whether the last response for `/` told search engines not to index it,
//! by an X-Robots-Tag of the policy or of the origin. A metric and `crawlgate status` show it,
//! because such a line can remove a whole site from search. Where `/` redirects to another page of
//! the site, that page is the front page as well.

use crate::indexing::Tags;
use crate::time::Timestamp;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The search engines whose loss a site owner notices last and regrets most.
pub const SEARCH_ENGINES: [&str; 2] = ["Googlebot", "bingbot"];

/// The last answer to `/`, if there was one. The numbers are stored apart, so that requests neither
/// lock nor wait. For a moment a reader may see the numbers of two different answers.
#[derive(Debug)]
pub struct FrontPage {
    /// When the answer was sent; zero before there was any.
    seen: AtomicI64,
    /// For each engine the moment from which the page is kept out of its index: the earliest of all
    /// for noindex, the latest of all without noindex and `unavailable_after`.
    gone_from: [AtomicI64; SEARCH_ENGINES.len()],
    /// The digest of the target that `/` last redirected to; zero for none.
    leads_to: AtomicU64,
}

impl Default for FrontPage {
    fn default() -> FrontPage {
        let gone_from = SEARCH_ENGINES.map(|_| AtomicI64::new(i64::MAX));
        FrontPage {
            seen: AtomicI64::new(0),
            gone_from,
            leads_to: AtomicU64::new(0),
        }
    }
}

impl FrontPage {
    /// Whether a target is `/`, or the page that `/` was last seen to redirect to.
    pub fn is_at(&self, target: &[u8]) -> bool {
        let leads_to = self.leads_to.load(Relaxed);
        target == b"/" || leads_to != 0 && leads_to == digest(target)
    }

    /// Remembers that `from` redirects to `to`, so that `to` is the front page as well, if `from`
    /// is the front page. Otherwise does nothing.
    pub fn redirects(&self, from: &[u8], to: &[u8]) {
        if self.is_at(from) {
            self.leads_to.store(digest(to), Relaxed);
        }
    }

    /// Records the tags of the last answer for the front page. The caller passes only a `target`
    /// for which `is_at` is true. An answer for `/` itself ends an earlier redirect.
    pub fn record(&self, target: &[u8], tags: &Tags, now: Timestamp) {
        if target == b"/" {
            self.leads_to.store(0, Relaxed);
        }
        for (gone_from, engine) in self.gone_from.iter().zip(SEARCH_ENGINES) {
            let from = tags.effective(engine).forbids_indexing_from();
            gone_from.store(from.map_or(i64::MAX, |moment| moment.0), Relaxed);
        }
        self.seen.store(now.0.max(1), Relaxed);
    }

    /// Takes over the last answer from a site before a reload that changed nothing about the front
    /// page.
    pub fn go_on_from(&self, before: &FrontPage) {
        for (gone_from, before) in self.gone_from.iter().zip(&before.gone_from) {
            gone_from.store(before.load(Relaxed), Relaxed);
        }
        self.leads_to.store(before.leads_to.load(Relaxed), Relaxed);
        self.seen.store(before.seen.load(Relaxed), Relaxed);
    }

    /// When the last answer was sent, if there was one.
    pub fn seen(&self) -> Option<Timestamp> {
        Some(Timestamp(self.seen.load(Relaxed))).filter(|seen| seen.0 != 0)
    }

    /// The search engines whose index the tags of the last answer keep the page out of at `now`;
    /// none before there was an answer.
    pub fn kept_from(&self, now: Timestamp) -> impl Iterator<Item = &'static str> {
        let engines = self.gone_from.iter().zip(SEARCH_ENGINES);
        engines
            .filter(move |(gone_from, _)| gone_from.load(Relaxed) < now.0)
            .map(|(_, engine)| engine)
    }
}

/// A hash of a target within this process; never zero, which stands for none.
fn digest(target: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    hasher.finish().max(1)
}
