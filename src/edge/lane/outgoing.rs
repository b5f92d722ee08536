//! [`Outgoing`]: a request on its way to an origin: what of it waits to be written. Must not know who sends it, nor where it
//! goes.

use super::buffers::Buffer;
use super::trailers::may_be_trailer;
use crate::requests::Framing;
use std::io::Write;

/// Octets of a body that wait for the origin.
const MOST_WAITING: usize = 32 * 1024;

/// A request on its way.
#[derive(Debug)]
pub struct Outgoing {
    octets: Buffer,
    /// How many of these were written.
    written: usize,
    body: Framing,
    /// Octets of the body that came.
    body_octets: usize,
    /// What follows the last chunk.
    trailers: Vec<u8>,
    /// Whether an octet of the request was written, or may have been.
    is_begun: bool,
    is_whole: bool,
}

impl Outgoing {
    /// A request with this head, and a body that is framed so.
    pub(super) fn new(head: Buffer, body: Framing) -> Outgoing {
        let is_whole = body == Framing::None;
        Outgoing { octets: head, written: 0, body, body_octets: 0, trailers: Vec::new(), is_begun: false, is_whole }
    }

    /// Adds octets of the body.
    pub fn add(&mut self, octets: &[u8]) {
        self.body_octets += octets.len();
        if self.octets.capacity() == 0 {
            self.octets = Buffer::take();
        }
        match self.body {
            Framing::Chunked => write_chunk(octets, &mut self.octets),
            Framing::None | Framing::Length(_) => self.octets.extend_from_slice(octets),
        }
    }

    /// Adds a trailer, if it is one that is passed on. Only a body in chunks has any.
    pub fn add_trailer(&mut self, name: &str, value: &[u8]) {
        if self.body == Framing::Chunked && may_be_trailer(name) {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                self.trailers.extend_from_slice(part);
            }
        }
    }

    /// Adds the end of the body.
    pub(super) fn end(&mut self) {
        if self.body == Framing::Chunked && !self.is_whole {
            for part in [b"0\r\n", self.trailers.as_slice(), b"\r\n"] {
                self.octets.extend_from_slice(part);
            }
        }
        self.is_whole = true;
    }

    /// Octets of the body that came since this was last asked.
    pub(super) fn take_count(&mut self) -> usize {
        std::mem::take(&mut self.body_octets)
    }

    /// Whether more of the body may be added.
    pub(super) fn has_room(&self) -> bool {
        self.octets.len() - self.written < MOST_WAITING
    }

    /// What waits.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.octets[self.written..]
    }

    /// Notes that so many octets were written. The head of a request without a body is kept; otherwise nothing is held while
    /// nothing waits.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
        self.is_begun = true;
        if self.body != Framing::None && self.written == self.octets.len() {
            self.octets.release();
            self.written = 0;
        }
    }

    /// Whether the end of the body was added.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether all of it was written.
    pub(super) fn is_sent(&self) -> bool {
        self.is_whole && self.waiting().is_empty()
    }

    /// Whether nothing of it was written.
    pub(super) fn is_untouched(&self) -> bool {
        !self.is_begun
    }

    /// Gives the memory of a request back that was sent, and that is not sent again.
    pub(super) fn let_go(&mut self) {
        if self.is_sent() {
            self.octets.release();
            self.written = 0;
        }
    }

    /// Begins again with a request that is untouched or has no body.
    pub(super) fn rewind(&mut self) {
        (self.written, self.is_begun) = (0, false);
    }
}

/// Writes data as a chunk.
pub fn write_chunk(data: &[u8], output: &mut Vec<u8>) {
    // An empty chunk would be the last one.
    if !data.is_empty() {
        // Writing to memory does not fail.
        let _ = write!(output, "{:X}\r\n", data.len());
        output.extend_from_slice(data);
        output.extend_from_slice(b"\r\n");
    }
}
