//! [`Buffer`]: memory for octets, used by one request after the other. An idle connection holds
//! none.

use crate::reuse::Reuse;
use std::ops::{Deref, DerefMut};

/// Buffers that a worker keeps.
const MOST_KEPT: usize = 256;
/// Octets of a buffer that is kept.
const LARGEST_KEPT: usize = 128 * 1024;

thread_local! {
    static KEPT: Reuse<Vec<u8>> = const { Reuse::new(MOST_KEPT) };
}

/// Octets of one request. Their memory goes back to the worker when they are dropped.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty buffer, with the memory of a former one if there is one.
    pub fn take() -> Buffer {
        Buffer(Reuse::take(&KEPT).unwrap_or_default())
    }

    /// The octets, for adding more. Takes memory if there is none.
    pub fn filled(&mut self) -> &mut Vec<u8> {
        if self.0.capacity() == 0 {
            *self = Buffer::take();
        }
        &mut self.0
    }

    /// Drops the bytes before `from`. Moves the rest into memory of exactly its size, and gives the
    /// old memory back to the worker.
    pub fn settle(&mut self, from: usize) {
        let kept = self.0[from..].to_vec();
        self.release();
        self.0 = kept;
    }

    /// Empties the buffer and gives its memory back to the worker, which keeps it unless it is
    /// larger than 128 KiB.
    pub fn release(&mut self) {
        Reuse::give_buffer(&KEPT, std::mem::take(&mut self.0), LARGEST_KEPT);
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
