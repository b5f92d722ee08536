//! [`Buffers`]: the memory of a request in the lane, used by one request after the other. An idle connection holds none.

use std::cell::RefCell;

/// Sets of buffers that a worker keeps.
const MOST_KEPT: usize = 64;
/// Octets of a buffer that is kept.
const LARGEST_KEPT: usize = 128 * 1024;

thread_local! {
    static KEPT: RefCell<Vec<Buffers>> = RefCell::default();
}

/// The buffers of one request. They go back to the worker when they are dropped.
#[derive(Debug, Default)]
pub struct Buffers {
    /// The head of the request as the origin gets it.
    pub(super) request: Vec<u8>,
    /// What came from the origin.
    pub(super) input: Vec<u8>,
    /// What goes to the client.
    pub(super) output: Vec<u8>,
    /// The values of X-Robots-Tag that were sent, each with a line's end.
    pub(super) tags: Vec<u8>,
}

impl Buffers {
    /// Empty buffers.
    pub fn take() -> Buffers {
        KEPT.with_borrow_mut(Vec::pop).unwrap_or_default()
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let mut buffers = [&mut self.request, &mut self.input, &mut self.output, &mut self.tags];
        if buffers.iter().any(|buffer| buffer.capacity() > LARGEST_KEPT) {
            return;
        }
        let [request, input, output, tags] = buffers.each_mut().map(|buffer| {
            buffer.clear();
            std::mem::take(*buffer)
        });
        // The worker may be ending, or keep enough.
        let _ = KEPT.try_with(|kept| {
            if let Ok(mut kept) = kept.try_borrow_mut()
                && kept.len() < MOST_KEPT
            {
                kept.push(Buffers { request, input, output, tags });
            }
        });
    }
}
