//! [`Incoming`]: a response on its way from an origin. It holds the octets that were read from the
//! origin and not passed on to the client yet.

use super::response::{self, BadResponse, Framing, Parsed, ResponseHead};
use crate::edge::buffers::Buffer;
use crate::edge::chunks::{BadChunk, Chunks, Rest};
use std::ops::Range;

/// A buffer of at most this size is not exchanged for a smaller one.
const SMALL_BUFFER: usize = 16 * 1024;

/// The stage of a response. Each stage leads to a later one.
#[derive(Debug, Default)]
enum Stage {
    /// No octet of it has come.
    #[default]
    Awaited,
    /// Octets of a head have come.
    Head,
    Body(Rest),
}

/// A response on its way.
#[derive(Debug, Default)]
pub struct Incoming {
    input: Buffer,
    /// How far the input was read.
    read: usize,
    /// Octets of the body before that place which were not passed on yet.
    piece: Range<usize>,
    stage: Stage,
}

impl Incoming {
    /// The buffer for more bytes of the response. It is emptied first if all bytes in it were read
    /// and passed on. [`Incoming::received`] has to follow.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.read == self.input.len() && self.piece.is_empty() {
            self.input.clear();
            self.read = 0;
            self.piece = 0..0;
        }
        self.input.filled()
    }

    /// Records after a read that the first bytes have come. If the buffer is empty, it gives its
    /// memory back.
    pub fn received(&mut self) {
        if self.input.is_empty() {
            self.input.release();
        } else if let Stage::Awaited = self.stage {
            self.stage = Stage::Head;
        }
    }

    /// Whether no octet has come.
    pub fn is_awaited(&self) -> bool {
        matches!(self.stage, Stage::Awaited)
    }

    /// Whether the head is still to come.
    pub fn is_before_body(&self) -> bool {
        matches!(self.stage, Stage::Awaited | Stage::Head)
    }

    /// Moves the bytes that wait for the client into memory of their size, if they fill less than
    /// half of the buffer. The buffer is then free for another request.
    pub fn settle(&mut self) {
        let waiting = self.input.len() - self.piece.start;
        if self.input.capacity() > SMALL_BUFFER.max(2 * waiting) {
            self.input.settle(self.piece.start);
            self.read -= self.piece.start;
            self.piece = 0..self.piece.len();
        }
    }

    /// Reads a head, if it is complete, hands it to `with_head`, and returns what crawlgate reads
    /// from it. `is_head` says whether the request was HEAD. The body follows a head that is final;
    /// after an informational one another head does.
    ///
    /// # Errors
    /// The response cannot be passed on.
    pub fn take_head(
        &mut self,
        is_head: bool,
        with_head: impl FnOnce(&Parsed<'_, '_>),
    ) -> Result<Option<ResponseHead>, BadResponse> {
        let octets = &self.input[self.read..];
        if octets.is_empty() {
            return Ok(None);
        }
        let read = response::read(octets, is_head, |parsed| {
            with_head(&parsed);
            parsed.head
        })?;
        let Some(head) = read else { return Ok(None) };
        self.read += head.length;
        if !head.status.is_informational() {
            self.piece = self.read..self.read;
            self.stage = Stage::Body(match head.framing {
                Framing::None => Rest::Length(0),
                Framing::Length(length) => Rest::Length(length),
                Framing::Chunked => Rest::Chunked(Chunks::of_response()),
                Framing::UntilClose => Rest::UntilClose,
            });
        }
        Ok(Some(head))
    }

    /// The bytes of the body that can be passed on, and whether the body ends with them. That is
    /// known for a body with a length only: it is false for the last chunk.
    pub fn piece(&self) -> (&[u8], bool) {
        (
            &self.input[self.piece.clone()],
            matches!(self.stage, Stage::Body(Rest::Length(0))),
        )
    }

    /// Notes how many octets of the piece were passed on.
    pub fn passed_on(&mut self, count: usize) {
        self.piece.start += count;
    }

    /// Whether there is nothing more of the body than the piece.
    pub fn is_body_over(&self) -> bool {
        matches!(&self.stage, Stage::Body(rest) if rest.is_over())
    }

    /// Whether the end of the connection ends the body.
    pub fn ends_by_close(&self) -> bool {
        matches!(self.stage, Stage::Body(Rest::UntilClose))
    }

    /// The lines of the trailers; empty before the body, and if it is not in chunks.
    pub fn trailers(&self) -> &[u8] {
        match &self.stage {
            Stage::Body(rest) => rest.trailers(),
            Stage::Awaited | Stage::Head => b"",
        }
    }

    /// Whether the end of the body was known before it came: it has a length, or there is no body.
    pub fn has_length(&self) -> bool {
        matches!(self.stage, Stage::Body(Rest::Length(_)))
    }

    /// Finds the next piece, after the one before was passed on. It may be empty, if only the
    /// framing of chunks has come. False if nothing more has come.
    ///
    /// # Errors
    /// A chunk is malformed.
    pub fn next_piece(&mut self) -> Result<bool, BadChunk> {
        let octets = &self.input[self.read..];
        if octets.is_empty() {
            return Ok(false);
        }
        let Stage::Body(rest) = &mut self.stage else {
            return Ok(false);
        };
        let (data, count) = rest.piece(octets)?;
        self.read += count;
        self.piece = self.read - data.len()..self.read;
        Ok(true)
    }

    /// Whether bytes came after the end of what was read: at the end of a response, they belong to
    /// none.
    pub fn has_surplus(&self) -> bool {
        self.read < self.input.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_that_waits_for_the_client_holds_no_buffer() {
        let (head, body) = (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
            b"some octe",
        );
        let mut response = Incoming::default();
        response.room().reserve(64 * 1024);
        response
            .room()
            .extend_from_slice(&[head.as_slice(), body, b"surplus"].concat());
        response.received();
        assert!(
            response
                .take_head(false, |_| ())
                .is_ok_and(|head| head.is_some())
        );
        assert_eq!(response.next_piece(), Ok(true));
        response.passed_on(2);
        response.settle();
        assert_eq!(
            (response.piece(), response.has_surplus()),
            ((b"me octe".as_slice(), true), true)
        );
        assert!(response.input.capacity() <= SMALL_BUFFER);
        response.passed_on(7);
        assert!(response.is_body_over() && response.has_surplus());
    }
}
