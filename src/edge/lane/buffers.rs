//! [`Buffer`]: memory of requests in the lane, used by one request after the other. An idle connection holds none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Buffers that a worker keeps.
const MOST_KEPT: usize = 256;
/// Octets of a buffer that is kept.
const LARGEST_KEPT: usize = 128 * 1024;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = RefCell::default();
}

/// Octets of one request. Their memory goes back to the worker when they are dropped.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty buffer, with the memory of a former one if there is one.
    pub fn take() -> Buffer {
        Buffer(KEPT.with_borrow_mut(Vec::pop).unwrap_or_default())
    }

    /// Keeps the octets from this place on, in memory of their size, and gives the rest to the worker.
    pub fn settle(&mut self, from: usize) {
        let kept = self.0[from..].to_vec();
        self.release();
        self.0 = kept;
    }

    /// Gives the memory back to the worker.
    pub fn release(&mut self) {
        let mut octets = std::mem::take(&mut self.0);
        if octets.capacity() == 0 || octets.capacity() > LARGEST_KEPT {
            return;
        }
        octets.clear();
        // The worker may be ending, or keep enough.
        let _ = KEPT.try_with(|kept| {
            if let Ok(mut kept) = kept.try_borrow_mut()
                && kept.len() < MOST_KEPT
            {
                kept.push(octets);
            }
        });
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.release();
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}
