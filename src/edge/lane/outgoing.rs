//! [`Outgoing`]: a request on its way to an origin. It holds the octets that wait to be written to
//! the origin's connection.

use super::trailers::may_be_trailer;
use crate::edge::buffers::Buffer;
use crate::requests::Framing;
use std::io::Write;

/// Octets of a body that wait for the origin.
const MOST_WAITING: usize = 32 * 1024;
/// Bytes of memory for them: a piece that begins below the limit has up to 32 KiB.
pub const LANE_UPLOAD: usize = 2 * MOST_WAITING;

/// A request on its way.
pub struct Outgoing {
    octets: Buffer,
    /// How many of these were written.
    written: usize,
    body: Framing,
    /// Octets of the body that came since they were last counted.
    pub body_octets: usize,
    trailers: Vec<u8>,
    /// Whether an octet of the request was written, or may have been.
    pub is_begun: bool,
    /// Whether the end of the body was added.
    pub is_whole: bool,
}

impl Outgoing {
    /// A request with this head, and a body with this framing.
    pub fn new(head: Buffer, body: Framing) -> Outgoing {
        let is_whole = body == Framing::None;
        Outgoing {
            octets: head,
            written: 0,
            body,
            body_octets: 0,
            trailers: Vec::new(),
            is_begun: false,
            is_whole,
        }
    }

    /// Adds bytes of the body, as one chunk if the body is framed in chunks.
    pub fn add(&mut self, octets: &[u8]) {
        self.body_octets += octets.len();
        match self.body {
            Framing::Chunked => write_chunk(octets, self.octets.filled()),
            Framing::None | Framing::Length(_) => self.octets.filled().extend_from_slice(octets),
        }
    }

    /// Adds a trailer, which [`Outgoing::end`] writes. Leaves it out if it is not one that is
    /// passed on, and if the body is not in chunks.
    pub fn add_trailer(&mut self, name: &str, value: &[u8]) {
        if self.body == Framing::Chunked && may_be_trailer(name) {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                self.trailers.extend_from_slice(part);
            }
        }
    }

    /// Adds the end of the body: in chunks the last chunk and the trailers. Does nothing the second
    /// time.
    pub fn end(&mut self) {
        if self.body == Framing::Chunked && !self.is_whole {
            for part in [b"0\r\n", self.trailers.as_slice(), b"\r\n"] {
                self.octets.extend_from_slice(part);
            }
        }
        self.is_whole = true;
    }

    /// Whether more of the body may be added: less than 32 KiB wait to be written.
    pub fn has_room(&self) -> bool {
        self.octets.len() - self.written < MOST_WAITING
    }

    /// The octets that wait to be written.
    pub fn waiting(&self) -> &[u8] {
        &self.octets[self.written..]
    }

    /// Notes how many octets were written. The head of a request without a body is kept, because it
    /// may be sent again. Otherwise no memory is held while nothing waits.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
        self.is_begun = true;
        if self.body != Framing::None && self.written == self.octets.len() {
            self.octets.release();
            self.written = 0;
        }
    }

    /// Whether all of it was written.
    pub fn is_sent(&self) -> bool {
        self.is_whole && self.waiting().is_empty()
    }

    /// Gives the memory back, if all of the request was written. Called when the response has
    /// begun, so that the request is not sent again.
    pub fn let_go(&mut self) {
        if self.is_sent() {
            self.octets.release();
            self.written = 0;
        }
    }

    /// Begins again with the first byte that is in memory. Only called if no byte was written, or
    /// for a request without a body, whose head is kept.
    pub fn rewind(&mut self) {
        self.written = 0;
        self.is_begun = false;
    }
}

/// Writes data as a chunk. Writes nothing if it is empty.
pub fn write_chunk(data: &[u8], output: &mut Vec<u8>) {
    // An empty chunk would be the last one.
    if !data.is_empty() {
        // Writing to memory does not fail.
        let _ = write!(output, "{:X}\r\n", data.len());
        output.extend_from_slice(data);
        output.extend_from_slice(b"\r\n");
    }
}
