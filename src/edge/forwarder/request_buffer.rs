//! [`RequestBuffer`]: the bytes of an HTTP request that wait to be written to the connection to the
//! origin. The buffer frames the body in chunks where necessary. While too many bytes wait, the
//! buffer takes no more of the body.

use super::trailers::may_be_trailer;
use crate::edge::pooled_buffer::PooledBuffer;
use crate::requests::BodyFraming;
use std::io::Write;

/// With this many unwritten bytes, no more of the body is added.
const MAX_UNWRITTEN_BYTES: usize = 32 * 1024;
/// Bytes of memory for them: what is added below the limit has up to 32 KiB.
pub const FORWARDER_UPLOAD_BYTES: usize = 2 * MAX_UNWRITTEN_BYTES;

/// A request that is being written.
pub struct RequestBuffer {
    bytes: PooledBuffer,
    /// How many of `bytes` were written.
    written: usize,
    body: BodyFraming,
    /// Bytes of the body that were added and not yet counted by the caller.
    pub uncounted_body_bytes: usize,
    trailers: Vec<u8>,
    /// Whether a byte of the request was written, or may have been.
    pub is_partly_written: bool,
    /// Whether the end of the body was added.
    pub is_complete: bool,
}

impl RequestBuffer {
    pub fn new(head: PooledBuffer, body: BodyFraming) -> RequestBuffer {
        let is_complete = body == BodyFraming::None;
        RequestBuffer {
            bytes: head,
            written: 0,
            body,
            uncounted_body_bytes: 0,
            trailers: Vec::new(),
            is_partly_written: false,
            is_complete,
        }
    }

    /// Adds bytes of the body, as one chunk if the body is framed in chunks.
    pub fn push_body(&mut self, bytes: &[u8]) {
        self.uncounted_body_bytes += bytes.len();
        if self.body == BodyFraming::Chunked {
            write_chunk(bytes, self.bytes.writable());
        } else {
            self.bytes.writable().extend_from_slice(bytes);
        }
    }

    /// Adds a trailer for [`RequestBuffer::finish_body`]. Ignored if it may not be passed on, or if
    /// the body is not in chunks.
    pub fn add_trailer(&mut self, name: &str, value: &[u8]) {
        if self.body == BodyFraming::Chunked && may_be_trailer(name) {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                self.trailers.extend_from_slice(part);
            }
        }
    }

    /// Adds the end of the body: for chunks the last chunk and the trailers. The second call does
    /// nothing.
    pub fn finish_body(&mut self) {
        if self.body == BodyFraming::Chunked && !self.is_complete {
            for part in [b"0\r\n", self.trailers.as_slice(), b"\r\n"] {
                self.bytes.extend_from_slice(part);
            }
        }
        self.is_complete = true;
    }

    /// Whether more of the body may be added.
    pub fn has_capacity(&self) -> bool {
        self.bytes.len() - self.written < MAX_UNWRITTEN_BYTES
    }

    pub fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Records that bytes were written. The head of a request without a body is kept, because it
    /// may be sent again. Otherwise an empty buffer releases its memory.
    pub fn mark_written(&mut self, count: usize) {
        self.written += count;
        self.is_partly_written = true;
        if self.body != BodyFraming::None && self.written == self.bytes.len() {
            self.bytes.release();
            self.written = 0;
        }
    }

    /// Whether the whole request was written.
    pub fn is_sent(&self) -> bool {
        self.is_complete && self.unwritten().is_empty()
    }

    /// Releases the memory, if the whole request was written. Called when it will not be sent
    /// again.
    pub fn release_if_sent(&mut self) {
        if self.is_sent() {
            self.bytes.release();
            self.written = 0;
        }
    }

    /// Begins again with the first byte. Only called if no byte was written, or for a request
    /// without a body, whose head is kept.
    pub fn rewind(&mut self) {
        self.written = 0;
        self.is_partly_written = false;
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
