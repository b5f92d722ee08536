//! [`Shared`]: what a request is judged by and recorded in, for the sequence at its beginning and the ticket at its end.

use crate::clock::Clock;
use crate::judge::{Judge, Recorder};
use std::sync::Arc;

/// What all requests of one crawlgate share.
pub(super) struct Shared {
    pub judge: Arc<Judge>,
    pub recorder: Arc<Recorder>,
    pub clock: Clock,
}
