//! [`PooledBuffer`]: a byte buffer that takes its memory from a pool of the worker thread. When the
//! buffer is no longer needed, the memory goes back to the pool. So requests reuse memory, and an
//! idle connection takes none.

use crate::local_pool::LocalPool;
use std::ops::{Deref, DerefMut};

/// The most buffers in the pool of a worker.
const MAX_BUFFERS: usize = 256;
/// A larger buffer is freed instead of going back.
const MAX_BUFFER_BYTES: usize = 128 * 1024;

thread_local! {
    static POOL: LocalPool<Vec<u8>> = const { LocalPool::new(MAX_BUFFERS) };
}

/// Bytes whose memory goes back to the pool when they are dropped.
#[derive(Debug, Default)]
pub struct PooledBuffer(Vec<u8>);

impl PooledBuffer {
    /// An empty buffer with memory of the pool, if the pool has some.
    pub fn from_pool() -> PooledBuffer {
        PooledBuffer(LocalPool::take(&POOL).unwrap_or_default())
    }

    /// The bytes, for adding more. Takes memory of the pool if there is none.
    pub fn writable(&mut self) -> &mut Vec<u8> {
        if self.0.capacity() == 0 {
            *self = PooledBuffer::from_pool();
        }
        &mut self.0
    }

    /// Drops the bytes before `from`. Moves the rest into memory of exactly its size, and gives the
    /// old memory back to the pool.
    pub fn discard_before(&mut self, from: usize) {
        let rest = self.0[from..].to_vec();
        self.release();
        self.0 = rest;
    }

    /// Empties the buffer and gives its memory back to the pool.
    pub fn release(&mut self) {
        LocalPool::put_buffer(&POOL, std::mem::take(&mut self.0), MAX_BUFFER_BYTES);
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

impl Deref for PooledBuffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}
