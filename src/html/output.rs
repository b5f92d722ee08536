//! What a reading has written. A part of it may be held until it is known what is to be written before it.
//!
//! Must not know why.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by a rewriter, which writes, and its handlers, which hold. They run one after the other: nobody waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Output(Arc<Mutex<Written>>);

#[derive(Debug, Default)]
struct Written {
    octets: Vec<u8>,
    /// What is written from here on is held.
    held_from: Option<usize>,
}

impl Output {
    pub(super) fn write(&self, octets: &[u8]) {
        self.lock().octets.extend_from_slice(octets);
    }

    /// From here on nothing is given out.
    pub(super) fn hold(&self) {
        let mut written = self.lock();
        let here = written.octets.len();
        written.held_from.get_or_insert(here);
    }

    /// Gives out what is held, behind this.
    pub(super) fn release(&self, before: &str) {
        let mut written = self.lock();
        if let Some(place) = written.held_from.take() {
            written.octets.splice(place..place, before.bytes());
        }
    }

    /// How much is held.
    pub(super) fn held(&self) -> usize {
        let written = self.lock();
        written.held_from.map_or(0, |place| written.octets.len() - place)
    }

    /// What is not held.
    pub(super) fn take(&self) -> Vec<u8> {
        let mut written = self.lock();
        let Some(place) = written.held_from else { return std::mem::take(&mut written.octets) };
        let held = written.octets.split_off(place);
        written.held_from = Some(0);
        std::mem::replace(&mut written.octets, held)
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
