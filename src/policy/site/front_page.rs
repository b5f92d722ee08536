//! What a site says about its front page in fact: the tags that were last sent with it, the origin's own included.

use crate::indexing::Directives;
use crate::time::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};

/// The last answer to `/`, if there was one. Two numbers, so that requests neither lock nor wait; between an answer and
/// the next they may be read as one of each, which a moment later is put right.
#[derive(Debug)]
pub struct FrontPage {
    /// When it was; zero before there was any.
    seen: AtomicI64,
    /// The moment from which it is not to be found: the earliest there is for noindex, the latest for neither that nor
    /// `unavailable_after`.
    gone_from: AtomicI64,
}

impl Default for FrontPage {
    fn default() -> FrontPage {
        FrontPage { seen: AtomicI64::new(0), gone_from: AtomicI64::new(i64::MAX) }
    }
}

impl FrontPage {
    /// An answer to `/` was sent that said this to the bot that is watched for.
    pub fn saw(&self, said: &Directives, now: Timestamp) {
        self.gone_from.store(said.forbids_indexing_from().map_or(i64::MAX, |moment| moment.0), Ordering::Relaxed);
        self.seen.store(now.0.max(1), Ordering::Relaxed);
    }

    /// Takes up what was seen of the front page before: nothing that bears upon it has changed.
    pub fn go_on_from(&self, before: &FrontPage) {
        self.gone_from.store(before.gone_from.load(Ordering::Relaxed), Ordering::Relaxed);
        self.seen.store(before.seen.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether what the last answer said keeps it out of the index at a moment, and when that answer was.
    pub fn last(&self, now: Timestamp) -> Option<(bool, Timestamp)> {
        match self.seen.load(Ordering::Relaxed) {
            0 => None,
            seen => Some((self.gone_from.load(Ordering::Relaxed) < now.0, Timestamp(seen))),
        }
    }
}
