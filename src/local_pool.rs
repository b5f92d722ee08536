//! [`LocalPool`]: a few values (buffers, timers) that a thread keeps after one request and reuses
//! for the next. Allocating and freeing them for each request would cost more.

use std::cell::RefCell;
use std::thread::LocalKey;

/// A pool in a thread-local variable.
pub struct LocalPool<T> {
    values: RefCell<Vec<T>>,
    capacity: usize,
}

impl<T: 'static> LocalPool<T> {
    /// An empty pool that keeps at most `capacity` values.
    pub const fn new(capacity: usize) -> LocalPool<T> {
        LocalPool {
            values: RefCell::new(Vec::new()),
            capacity,
        }
    }

    /// Takes a value out of the pool, if it has one.
    pub fn take(pool: &'static LocalKey<LocalPool<T>>) -> Option<T> {
        pool.with(|pool| pool.values.borrow_mut().pop())
    }

    /// Puts a value into the pool, unless the thread is ending or the pool is full.
    pub fn put(pool: &'static LocalKey<LocalPool<T>>, value: T) {
        let _ = pool.try_with(|pool| {
            if let Ok(mut values) = pool.values.try_borrow_mut()
                && values.len() < pool.capacity
            {
                values.push(value);
            }
        });
    }
}

impl LocalPool<Vec<u8>> {
    /// Empties a buffer and puts it into the pool, if its capacity is between 1 and `max_bytes`.
    pub fn put_buffer(
        pool: &'static LocalKey<LocalPool<Vec<u8>>>,
        mut buffer: Vec<u8>,
        max_bytes: usize,
    ) {
        if (1..=max_bytes).contains(&buffer.capacity()) {
            buffer.clear();
            LocalPool::put(pool, buffer);
        }
    }
}
