//! [`Incoming`]: a response on its way from an origin: what of it was read and not passed on yet. Must not know who gets it.

use super::buffers::Buffer;
use super::response::{self, BadResponse, Framing, Parsed, ResponseHead};
use crate::edge::chunks::{BadChunk, Chunks};
use std::ops::Range;

/// How far a response has come. Each stage leads to one below it.
#[derive(Debug)]
enum Stage {
    /// No octet of it has come.
    Awaited,
    /// Octets of a head have come.
    Head,
    /// So many octets of the body are to come.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

/// A response on its way.
#[derive(Debug)]
pub(super) struct Incoming {
    input: Buffer,
    /// How far the input was read.
    read: usize,
    /// Octets of the body before that place which were not passed on yet.
    piece: Range<usize>,
    stage: Stage,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming { input: Buffer::default(), read: 0, piece: 0..0, stage: Stage::Awaited }
    }
}

impl Incoming {
    /// Where more octets are read to. To be followed by [`received`](Incoming::received).
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        if self.read == self.input.len() && self.piece.is_empty() {
            self.input.clear();
            (self.read, self.piece) = (0, 0..0);
            if self.input.capacity() == 0 {
                self.input = Buffer::take();
            }
        }
        &mut self.input
    }

    /// Notes whether octets came. Nothing is held while none do.
    pub(super) fn received(&mut self) {
        if self.input.is_empty() {
            self.input.release();
        } else if let Stage::Awaited = self.stage {
            self.stage = Stage::Head;
        }
    }

    /// Whether no octet has come.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.stage, Stage::Awaited)
    }

    /// Whether the head is still to come.
    pub(super) fn is_before_body(&self) -> bool {
        matches!(self.stage, Stage::Awaited | Stage::Head)
    }

    /// Reads a head, if it is complete, and shows it to `with_head`.
    pub(super) fn take_head(
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
            self.stage = match head.framing {
                Framing::None => Stage::Length(0),
                Framing::Length(length) => Stage::Length(length),
                Framing::Chunked => Stage::Chunked(Chunks::of_response()),
                Framing::UntilClose => Stage::UntilClose,
            };
        }
        Ok(Some(head))
    }

    /// Octets of the body to be passed on, and whether the body ends with them.
    pub(super) fn piece(&self) -> (&[u8], bool) {
        (&self.input[self.piece.clone()], matches!(self.stage, Stage::Length(0)))
    }

    /// Notes that so many octets of the piece were passed on.
    pub(super) fn passed_on(&mut self, count: usize) {
        self.piece.start += count;
    }

    /// Whether there is nothing more of the body than the piece.
    pub(super) fn is_body_over(&self) -> bool {
        match &self.stage {
            Stage::Length(left) => *left == 0,
            Stage::Chunked(chunks) => chunks.is_over(),
            Stage::Awaited | Stage::Head | Stage::UntilClose => false,
        }
    }

    /// Whether the end of the connection ends the body.
    pub(super) fn ends_by_close(&self) -> bool {
        matches!(self.stage, Stage::UntilClose)
    }

    /// The lines behind the last chunk.
    pub(super) fn trailers(&self) -> &[u8] {
        match &self.stage {
            Stage::Chunked(chunks) => chunks.trailers(),
            _ => b"",
        }
    }

    /// Whether the end of the body was known before it came.
    pub(super) fn has_length(&self) -> bool {
        matches!(self.stage, Stage::Length(_))
    }

    /// Finds the next piece, after the one before was passed on. False if nothing more has come.
    pub(super) fn next_piece(&mut self) -> Result<bool, BadChunk> {
        let octets = &self.input[self.read..];
        if octets.is_empty() {
            return Ok(false);
        }
        let (length, count) = match &mut self.stage {
            Stage::Length(left) => {
                let count = usize::try_from(*left).map_or(octets.len(), |left| left.min(octets.len()));
                *left -= count as u64;
                (count, count)
            }
            Stage::Chunked(chunks) => {
                let (data, count) = chunks.piece(octets)?;
                (data.len(), count)
            }
            Stage::UntilClose => (octets.len(), octets.len()),
            Stage::Awaited | Stage::Head => (0, 0),
        };
        self.read += count;
        self.piece = self.read - length..self.read;
        Ok(true)
    }

    /// Whether octets came that belong to no response.
    pub(super) fn has_surplus(&self) -> bool {
        self.read < self.input.len()
    }
}
