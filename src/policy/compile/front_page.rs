//! What a site says about its front page in fact: the tags that were last sent with it, the origin's own included.

use crate::time::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};

/// The last answer to `/`, if there was one. One number, so that requests neither lock nor wait: the moment of the answer,
/// negative where it said noindex, zero before there was any.
#[derive(Debug, Default)]
pub struct FrontPage(AtomicI64);

impl FrontPage {
    /// An answer to `/` was sent, with or without noindex to the bot that is watched for.
    pub fn saw(&self, noindex: bool, now: Timestamp) {
        let moment = now.0.max(1);
        self.0.store(if noindex { -moment } else { moment }, Ordering::Relaxed);
    }

    /// Whether the last answer said noindex, and when it was.
    pub fn last(&self) -> Option<(bool, Timestamp)> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            moment => Some((moment < 0, Timestamp(moment.saturating_abs()))),
        }
    }
}
