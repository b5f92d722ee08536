//! [`Reuse`]: a few values (buffers) that a thread keeps after one request for the next one. To
//! allocate and free them for each request would cost more than using them.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Values that a thread keeps, at most `most` of them.
pub struct Reuse<T> {
    kept: RefCell<Vec<T>>,
    most: usize,
}

impl<T: 'static> Reuse<T> {
    /// Keeps at most `most` values.
    pub const fn new(most: usize) -> Reuse<T> {
        Reuse {
            kept: RefCell::new(Vec::new()),
            most,
        }
    }

    /// Takes a kept value, if there is one.
    pub fn take(place: &'static LocalKey<Reuse<T>>) -> Option<T> {
        place.with(|reuse| reuse.kept.borrow_mut().pop())
    }

    /// Keeps a value, unless the thread is ending or keeps enough.
    pub fn give(place: &'static LocalKey<Reuse<T>>, value: T) {
        let _ = place.try_with(|reuse| {
            if let Ok(mut kept) = reuse.kept.try_borrow_mut()
                && kept.len() < reuse.most
            {
                kept.push(value);
            }
        });
    }
}

impl Reuse<Vec<u8>> {
    /// Empties a buffer and keeps its memory, if that is between 1 and `largest` octets.
    pub fn give_buffer(
        place: &'static LocalKey<Reuse<Vec<u8>>>,
        mut buffer: Vec<u8>,
        largest: usize,
    ) {
        if (1..=largest).contains(&buffer.capacity()) {
            buffer.clear();
            Reuse::give(place, buffer);
        }
    }
}
