//! [`Shared`]: what a request is judged by, held in and recorded in, for the sequence at its beginning and the ticket at its end.

use super::buffer_space::BufferSpace;
use super::upload::UploadLimits;
use crate::clock::Clock;
use crate::judge::{Judge, Recorder};
use std::sync::Arc;

/// What all requests of one crawlgate share.
pub(super) struct Shared {
    pub judge: Arc<Judge>,
    pub recorder: Arc<Recorder>,
    pub clock: Clock,
    pub space: BufferSpace,
    pub upload: UploadLimits,
}
