//! [`ResponseReader`] parses the response of an origin while its bytes arrive. It keeps the bytes
//! until they are passed on to the client.

use super::response_head::{self, InvalidResponse, ParsedResponse, ResponseFraming, ResponseHead};
use crate::edge::body_decoder::{BodyDecoder, ChunkedDecoder, MalformedBody};
use crate::edge::pooled_buffer::PooledBuffer;
use BodyDecoder::{Chunked, Length, UntilClose};
use ResponseStage::{BeforeFirstByte, Body, Head};
use std::ops::Range;

/// A buffer of at most this size is not replaced by a smaller one.
const SMALL_BUFFER: usize = 16 * 1024;

/// What the response has come to, in this order.
#[derive(Default)]
enum ResponseStage {
    #[default]
    BeforeFirstByte,
    /// Bytes of a head have come.
    Head,
    Body(BodyDecoder),
}

/// A response that is being read.
#[derive(Default)]
pub struct ResponseReader {
    input: PooledBuffer,
    /// The length of the parsed part of `input`.
    parsed: usize,
    /// The data of the body in that part that was not consumed yet.
    data: Range<usize>,
    stage: ResponseStage,
}

impl ResponseReader {
    /// The buffer for more bytes of the response. Emptied first if everything in it was consumed.
    /// Call [`ResponseReader::mark_read`] after the read.
    pub fn input_buffer(&mut self) -> &mut Vec<u8> {
        if self.parsed == self.input.len() && self.data.is_empty() {
            self.input.clear();
            self.parsed = 0;
            self.data = 0..0;
        }
        self.input.writable()
    }

    /// Called after a read: records that the first bytes have come, or releases an empty buffer.
    pub fn mark_read(&mut self) {
        if self.input.is_empty() {
            self.input.release();
        } else if let BeforeFirstByte = self.stage {
            self.stage = Head;
        }
    }

    /// Whether no byte has come.
    pub fn is_before_first_byte(&self) -> bool {
        matches!(self.stage, BeforeFirstByte)
    }

    /// Whether the final head has not come.
    pub fn is_before_body(&self) -> bool {
        matches!(self.stage, BeforeFirstByte | Head)
    }

    /// Moves the bytes that wait for the client into memory of their size, if they fill less than
    /// half of the buffer, which is then free for another request.
    pub fn shrink_buffer(&mut self) {
        let waiting = self.input.len() - self.data.start;
        if self.input.capacity() > SMALL_BUFFER.max(2 * waiting) {
            self.input.discard_before(self.data.start);
            self.parsed -= self.data.start;
            self.data = 0..self.data.len();
        }
    }

    /// Parses the next head, if it is complete, and calls `with_head` with it. `is_head` is whether
    /// the request was HEAD. After an informational head, another head follows.
    ///
    /// # Errors
    /// The response cannot be passed on.
    pub fn parse_head(
        &mut self,
        is_head: bool,
        with_head: impl FnOnce(&ParsedResponse<'_, '_>),
    ) -> Result<Option<ResponseHead>, InvalidResponse> {
        let bytes = &self.input[self.parsed..];
        if bytes.is_empty() {
            return Ok(None);
        }
        let parsed = response_head::parse_response_head(bytes, is_head, |parsed| {
            with_head(&parsed);
            parsed.head
        })?;
        let Some(head) = parsed else { return Ok(None) };
        self.parsed += head.length;
        if !head.status.is_informational() {
            self.data = self.parsed..self.parsed;
            self.stage = Body(match head.framing {
                ResponseFraming::None => Length(0),
                ResponseFraming::Length(length) => Length(length),
                ResponseFraming::Chunked => Chunked(ChunkedDecoder::for_response()),
                ResponseFraming::UntilClose => UntilClose,
            });
        }
        Ok(Some(head))
    }

    /// The data of the body that can be passed on, and whether the body ends with it. The latter is
    /// known only for a body with a length: it is false for the last chunk.
    pub fn data(&self) -> (&[u8], bool) {
        (
            &self.input[self.data.clone()],
            matches!(self.stage, Body(Length(0))),
        )
    }

    /// Drops the first bytes of the data, which were passed on.
    pub fn consume(&mut self, count: usize) {
        self.data.start += count;
    }

    /// Whether the body ends with the present data.
    pub fn is_body_finished(&self) -> bool {
        matches!(&self.stage, Body(rest) if rest.is_finished())
    }

    /// Whether the end of the connection ends the body.
    pub fn ends_by_close(&self) -> bool {
        matches!(self.stage, Body(UntilClose))
    }

    /// The field lines of the trailers; only a body in chunks has some.
    pub fn trailers(&self) -> &[u8] {
        match &self.stage {
            Body(rest) => rest.trailers(),
            BeforeFirstByte | Head => b"",
        }
    }

    /// Whether the body has a length, or there is none.
    pub fn has_known_length(&self) -> bool {
        matches!(self.stage, Body(Length(_)))
    }

    /// Decodes the next data, after the present data was consumed. It may be empty, if only the
    /// framing of chunks has come. Returns false if no more bytes have come.
    ///
    /// # Errors
    /// A chunk is malformed.
    pub fn decode_more(&mut self) -> Result<bool, MalformedBody> {
        let bytes = &self.input[self.parsed..];
        if bytes.is_empty() {
            return Ok(false);
        }
        let Body(rest) = &mut self.stage else {
            return Ok(false);
        };
        let (data, count) = rest.next_data(bytes)?;
        self.parsed += count;
        self.data = self.parsed - data.len()..self.parsed;
        Ok(true)
    }

    /// Whether unparsed bytes have come. At the end of a response they belong to none.
    pub fn has_surplus(&self) -> bool {
        self.parsed < self.input.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrink_buffer_releases_memory() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let body = b"some byte";
        let mut response = ResponseReader::default();
        response.input_buffer().reserve(64 * 1024);
        response
            .input_buffer()
            .extend_from_slice(&[head.as_slice(), body, b"surplus"].concat());
        response.mark_read();
        assert!(
            response
                .parse_head(false, |_| ())
                .is_ok_and(|head| head.is_some())
        );
        assert_eq!(response.decode_more(), Ok(true));
        response.consume(2);
        response.shrink_buffer();
        assert_eq!(
            (response.data(), response.has_surplus()),
            ((b"me byte".as_slice(), true), true)
        );
        assert!(response.input.capacity() <= SMALL_BUFFER);
        response.consume(7);
        assert!(response.is_body_finished() && response.has_surplus());
    }
}
