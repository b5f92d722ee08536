//! [`BodyDecoder`] finds the data and the end of an HTTP/1 message body: by its length, by chunks
//! ([`ChunkedDecoder`], RFC 9112 section 7.1), or by the end of the connection. A body is an error
//! if two readers could disagree about its end.

use crate::requests::BodyFraming;
use BodyDecoder::{Chunked, Length, UntilClose};

/// The most bytes of chunk extensions, padding and trailers of a body. Clients hardly send them,
/// and origins hardly read them.
pub const MAX_EXTRA_BYTES: usize = 8 * 1024;
/// The most trailers of a body.
pub const MAX_TRAILERS: usize = 100;
/// The most digits of a chunk's size: one chunk of 256 TiB is enough.
const MAX_SIZE_DIGITS: u8 = 12;

/// A body that two readers could frame differently, or with malformed, too many or too large
/// trailers.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed chunk or trailers")]
pub struct MalformedBody;

/// The part of the body that the next byte belongs to. A chunk goes from `Size` (through
/// `Extension`, if it has one) to `DataEnd` and back, the last one from `SizeEnd` to
/// `TrailerStart`. A trailer goes from there to `TrailerEnd` and back. The body ends with `Over`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastEnd,
    Over,
}

/// A body in chunks that is being decoded.
#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: ChunkState,
    /// Bytes of the chunk's data that are not read yet.
    left: u64,
    digits: u8,
    extra_bytes: usize,
    /// The field lines of the trailers, each with its end.
    trailers: Vec<u8>,
    trailer_count: usize,
    /// Whether spaces may follow a size, as some origins send them.
    allows_padding: bool,
}

impl ChunkedDecoder {
    /// Decodes an origin's response. Spaces after a chunk's size are allowed, because crawlgate
    /// writes the chunks anew.
    pub fn for_response() -> ChunkedDecoder {
        ChunkedDecoder {
            allows_padding: true,
            ..ChunkedDecoder::default()
        }
    }

    /// Reads the next bytes. Returns how many of them belong to the body, with sizes and trailers:
    /// all, unless the body ends before.
    ///
    /// # Errors
    /// The framing is malformed.
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, MalformedBody> {
        let mut read = 0;
        while read < bytes.len() && !self.is_finished() {
            read += self.next_data(&bytes[read..])?.1;
        }
        Ok(read)
    }

    /// Reads to the end of the first data in these bytes. Returns the data, and how many bytes were
    /// read. Without data, it is empty, and everything up to the end of the body was read.
    ///
    /// # Errors
    /// The framing is malformed.
    pub fn next_data<'o>(&mut self, bytes: &'o [u8]) -> Result<(&'o [u8], usize), MalformedBody> {
        let mut read = 0;
        while read < bytes.len() && !self.is_finished() {
            if self.state == ChunkState::Data {
                let rest = &bytes[read..];
                let count =
                    usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
                self.left -= count as u64;
                if self.left == 0 {
                    self.state = ChunkState::DataReturn;
                }
                return Ok((&rest[..count], read + count));
            }
            self.state = self.next_state(bytes[read])?;
            read += 1;
        }
        Ok((&[], read))
    }

    /// The field lines of its trailers as they came, each with its end.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Whether the body has ended.
    pub fn is_finished(&self) -> bool {
        self.state == ChunkState::Over
    }

    /// Reads one byte that is not chunk data, and returns the state after it. Fails if the byte
    /// does not fit the state, and at the limits: digits of a size, `MAX_EXTRA_BYTES`,
    /// `MAX_TRAILERS`.
    fn next_state(&mut self, byte: u8) -> Result<ChunkState, MalformedBody> {
        use ChunkState::*;

        Ok(match (self.state, byte) {
            (Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if self.digits < MAX_SIZE_DIGITS => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                self.left = self.left * 16 + u64::from(digit);
                self.digits += 1;
                Size
            }
            (Size | Extension, b'\r') if self.digits > 0 => SizeEnd,
            (Size, b';') if self.digits > 0 => Extension,
            (Size, b' ' | b'\t') if self.digits > 0 && self.allows_padding => {
                self.count_extra_byte(Extension)?
            }
            (Extension, b' '..=b'~' | b'\t' | 0x80..) => self.count_extra_byte(Extension)?,
            (SizeEnd, b'\n') => {
                self.digits = 0;
                if self.left == 0 { TrailerStart } else { Data }
            }
            (DataReturn, b'\r') => DataEnd,
            (DataEnd, b'\n') => Size,
            (TrailerStart, b'\r') => LastEnd,
            (TrailerStart, b' ' | b'\t') => return Err(MalformedBody),
            (TrailerStart | Trailer, b' '..=b'~' | b'\t' | 0x80..) => {
                self.trailers.push(byte);
                self.count_extra_byte(Trailer)?
            }
            (Trailer, b'\r') => TrailerEnd,
            (TrailerEnd, b'\n') => {
                self.trailer_count += 1;
                if self.trailer_count > MAX_TRAILERS {
                    return Err(MalformedBody);
                }
                self.trailers.extend_from_slice(b"\r\n");
                TrailerStart
            }
            (LastEnd, b'\n') => Over,
            _ => return Err(MalformedBody),
        })
    }

    /// Counts one byte of an extension, padding or trailer. Returns `state`, unless the body has
    /// more than `MAX_EXTRA_BYTES` of these bytes.
    fn count_extra_byte(&mut self, state: ChunkState) -> Result<ChunkState, MalformedBody> {
        self.extra_bytes += 1;
        if self.extra_bytes > MAX_EXTRA_BYTES {
            Err(MalformedBody)
        } else {
            Ok(state)
        }
    }
}

/// The part of a body that is not read yet.
#[derive(Debug)]
pub enum BodyDecoder {
    /// This many bytes.
    Length(u64),
    Chunked(ChunkedDecoder),
    /// Everything up to the end of the connection.
    UntilClose,
}

impl From<BodyFraming> for BodyDecoder {
    fn from(framing: BodyFraming) -> BodyDecoder {
        match framing {
            BodyFraming::None => Length(0),
            BodyFraming::Length(length) => Length(length),
            BodyFraming::Chunked => Chunked(ChunkedDecoder::default()),
        }
    }
}

impl BodyDecoder {
    pub fn is_finished(&self) -> bool {
        match self {
            Length(left) => *left == 0,
            Chunked(chunks) => chunks.is_finished(),
            UntilClose => false,
        }
    }

    /// Reads to the end of the first data in these bytes. Returns the data, which may be empty, and
    /// how many bytes were read. Only chunks can be malformed.
    pub fn next_data<'o>(&mut self, bytes: &'o [u8]) -> Result<(&'o [u8], usize), MalformedBody> {
        let count = match self {
            Length(left) => {
                let count =
                    usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= count as u64;
                count
            }
            Chunked(chunks) => return chunks.next_data(bytes),
            UntilClose => bytes.len(),
        };
        Ok((&bytes[..count], count))
    }

    /// The field lines of the trailers; only a body in chunks has some.
    pub fn trailers(&self) -> &[u8] {
        match self {
            Chunked(chunks) => chunks.trailers(),
            Length(_) | UntilClose => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of the body, if it is complete: the same in one piece and byte by byte.
    fn body_length(bytes: &[u8]) -> Result<Option<usize>, MalformedBody> {
        let whole = {
            let mut chunks = ChunkedDecoder::default();
            chunks
                .read(bytes)
                .map(|count| chunks.is_finished().then_some(count))
        };
        let mut chunks = ChunkedDecoder::default();
        let mut count = 0;
        let singly = bytes
            .iter()
            .try_for_each(|byte| chunks.read(&[*byte]).map(|read| count += read));
        assert_eq!(
            singly.map(|()| chunks.is_finished().then_some(count)),
            whole,
            "{bytes:?}"
        );
        whole
    }

    #[test]
    fn body_ends_where_its_last_chunk_ends() {
        for body in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "A\r\n0123456789\r\n00\r\n\r\n",
            "1;name=\"value\"\r\nx\r\n0\r\nTrailer: a\r\nOther: b\r\n\r\n",
            "3\r\n\r\n0\r\n0\r\n\r\n",
        ] {
            let followed = format!("{body}GET / HTTP/1.1\r\n");
            assert_eq!(
                body_length(followed.as_bytes()),
                Ok(Some(body.len())),
                "{body:?}"
            );
            for cut in 0..body.len() {
                assert_eq!(
                    body_length(&body.as_bytes()[..cut]),
                    Ok(None),
                    "{body:?} until {cut}"
                );
            }
        }
    }

    #[test]
    fn chunks_are_decoded_to_their_data() {
        let mut chunks = ChunkedDecoder::for_response();
        let body = b"3  \r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\nrest".as_slice();
        let mut data = Vec::new();
        let mut read = 0;
        while !chunks.is_finished() {
            let (piece, count) = chunks.next_data(&body[read..]).unwrap();
            data.push(piece);
            read += count;
        }
        assert_eq!(
            (data.concat().as_slice(), &body[read..]),
            (b"abcde".as_slice(), b"rest".as_slice())
        );
    }

    #[test]
    fn ambiguous_framing_is_malformed() {
        for body in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1 \r\n",
            "1\n",
            "1\r\r\n",
            "1\r\nab",
            "1\r\na\n",
            ";a\r\n",
            "1;a\nx",
            "1;\u{0}",
            "0\r\n folded\r\n\r\n",
            "0\r\na\n",
            "0\r\n\rx",
            "ffffffffffffffff\r\n",
            "0000000000000\r\n",
        ] {
            assert_eq!(body_length(body.as_bytes()), Err(MalformedBody), "{body:?}");
        }
        assert_eq!(
            body_length(format!("1;{}", "a".repeat(MAX_EXTRA_BYTES + 1)).as_bytes()),
            Err(MalformedBody)
        );
        assert_eq!(
            body_length(format!("0\r\n{}", "a: b\r\n".repeat(MAX_EXTRA_BYTES)).as_bytes()),
            Err(MalformedBody)
        );
    }
}
