//! [`Chunks`] finds the end of a body in chunks (RFC 9112 section 7.1), so that no octet after it
//! is taken for a part of it. A body that two readers could frame differently is an error.
//! [`Rest`]: the rest of a body, however it is framed.

use crate::requests::Framing;

/// Octets of chunk extensions and trailers that a body may have in all. Clients hardly send them,
/// and origins hardly read them.
pub const ASIDE: usize = 8 * 1024;
/// Trailers that a body may have.
pub const MAX_TRAILERS: usize = 100;
/// Digits of a chunk's size: one chunk of 256 TiB is enough.
const DIGITS: u8 = 12;

/// A body that two readers could frame differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed chunk")]
pub struct BadChunk;

/// The part of the body that the next octet belongs to. A chunk leads from `Size` (over
/// `Extension`, if it has one) to `DataEnd` and back, the last one from `SizeEnd` to
/// `TrailerStart`. A trailer leads from there to `TrailerEnd` and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
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

/// A body in chunks that is being read.
#[derive(Debug, Default)]
pub struct Chunks {
    state: State,
    /// Octets of the chunk's data that are still to come.
    left: u64,
    digits: u8,
    aside: usize,
    /// The lines of the trailers, each with its end.
    trailers: Vec<u8>,
    trailer_count: usize,
    /// Whether spaces may follow a size, as some origins send them.
    allows_padding: bool,
}

impl Chunks {
    /// For the body of an origin's response: spaces after a chunk's size are allowed, because
    /// crawlgate writes the chunks anew.
    pub fn of_response() -> Chunks {
        Chunks {
            allows_padding: true,
            ..Chunks::default()
        }
    }

    /// Reads on in these bytes. Returns how many of them belong to the body, with sizes and
    /// trailers: all, unless the body ends before.
    ///
    /// # Errors
    /// The body is not framed as it should be.
    pub fn read(&mut self, octets: &[u8]) -> Result<usize, BadChunk> {
        let mut read = 0;
        while read < octets.len() && !self.is_over() {
            read += self.piece(&octets[read..])?.1;
        }
        Ok(read)
    }

    /// Reads on to the end of the first piece of chunk data in these bytes. Returns the piece, and
    /// how many bytes were read to its end. Where there is no data, the piece is empty and
    /// everything up to the end of the body was read.
    ///
    /// # Errors
    /// The body is not framed as it should be.
    pub fn piece<'o>(&mut self, octets: &'o [u8]) -> Result<(&'o [u8], usize), BadChunk> {
        let mut read = 0;
        while read < octets.len() && !self.is_over() {
            if self.state == State::Data {
                let rest = &octets[read..];
                let count =
                    usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
                self.left -= count as u64;
                if self.left == 0 {
                    self.state = State::DataReturn;
                }
                return Ok((&rest[..count], read + count));
            }
            self.state = self.next(octets[read])?;
            read += 1;
        }
        Ok((&[], read))
    }

    /// The lines of its trailers, each with its end, as they came.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Whether the body has ended.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Reads one byte that is not chunk data, and returns the state after it. Fails if the byte
    /// does not fit the state, and at the limits: digits of a size, `ASIDE`, `MAX_TRAILERS`.
    fn next(&mut self, octet: u8) -> Result<State, BadChunk> {
        Ok(match (self.state, octet) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if self.digits < DIGITS => {
                let digit = char::from(octet).to_digit(16).unwrap_or_default();
                self.left = self.left * 16 + u64::from(digit);
                self.digits += 1;
                State::Size
            }
            (State::Size | State::Extension, b'\r') if self.digits > 0 => State::SizeEnd,
            (State::Size, b';') if self.digits > 0 => State::Extension,
            (State::Size, b' ' | b'\t') if self.digits > 0 && self.allows_padding => {
                self.set_aside(State::Extension)?
            }
            (State::Extension, b' '..=b'~' | b'\t' | 0x80..) => self.set_aside(State::Extension)?,
            (State::SizeEnd, b'\n') => {
                self.digits = 0;
                if self.left == 0 {
                    State::TrailerStart
                } else {
                    State::Data
                }
            }
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Size,
            (State::TrailerStart, b'\r') => State::LastEnd,
            (State::TrailerStart, b' ' | b'\t') => return Err(BadChunk),
            (State::TrailerStart | State::Trailer, b' '..=b'~' | b'\t' | 0x80..) => {
                self.trailers.push(octet);
                self.set_aside(State::Trailer)?
            }
            (State::Trailer, b'\r') => State::TrailerEnd,
            (State::TrailerEnd, b'\n') => {
                self.trailer_count += 1;
                if self.trailer_count > MAX_TRAILERS {
                    return Err(BadChunk);
                }
                self.trailers.extend_from_slice(b"\r\n");
                State::TrailerStart
            }
            (State::LastEnd, b'\n') => State::Over,
            _ => return Err(BadChunk),
        })
    }

    /// Counts one byte of an extension, padding or trailer. Returns `state`, unless the body has
    /// more than `ASIDE` of these bytes.
    fn set_aside(&mut self, state: State) -> Result<State, BadChunk> {
        self.aside += 1;
        if self.aside > ASIDE {
            Err(BadChunk)
        } else {
            Ok(state)
        }
    }
}

/// What is still to come of a body.
#[derive(Debug)]
pub enum Rest {
    /// So many octets.
    Length(u64),
    Chunked(Chunks),
    /// Everything up to the end of the connection.
    UntilClose,
}

impl From<Framing> for Rest {
    fn from(framing: Framing) -> Rest {
        match framing {
            Framing::None => Rest::Length(0),
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(Chunks::default()),
        }
    }
}

impl Rest {
    /// Whether nothing is still to come.
    pub fn is_over(&self) -> bool {
        match self {
            Rest::Length(left) => *left == 0,
            Rest::Chunked(chunks) => chunks.is_over(),
            Rest::UntilClose => false,
        }
    }

    /// Reads on to the end of the first piece of data in these bytes. Returns the piece, which may
    /// be empty, and how many bytes were read to its end. Only chunks can be malformed.
    pub fn piece<'o>(&mut self, octets: &'o [u8]) -> Result<(&'o [u8], usize), BadChunk> {
        let count = match self {
            Rest::Length(left) => {
                let count =
                    usize::try_from(*left).map_or(octets.len(), |left| left.min(octets.len()));
                *left -= count as u64;
                count
            }
            Rest::Chunked(chunks) => return chunks.piece(octets),
            Rest::UntilClose => octets.len(),
        };
        Ok((&octets[..count], count))
    }

    /// The lines behind the last chunk.
    pub fn trailers(&self) -> &[u8] {
        match self {
            Rest::Chunked(chunks) => chunks.trailers(),
            Rest::Length(_) | Rest::UntilClose => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets of the body, if it is over, however the octets come.
    fn end(octets: &[u8]) -> Result<Option<usize>, BadChunk> {
        let whole = {
            let mut chunks = Chunks::default();
            chunks
                .read(octets)
                .map(|count| chunks.is_over().then_some(count))
        };
        let mut chunks = Chunks::default();
        let mut count = 0;
        let singly = octets
            .iter()
            .try_for_each(|octet| chunks.read(&[*octet]).map(|read| count += read));
        assert_eq!(
            singly.map(|()| chunks.is_over().then_some(count)),
            whole,
            "{octets:?}"
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
            assert_eq!(end(followed.as_bytes()), Ok(Some(body.len())), "{body:?}");
            for cut in 0..body.len() {
                assert_eq!(
                    end(&body.as_bytes()[..cut]),
                    Ok(None),
                    "{body:?} until {cut}"
                );
            }
        }
    }

    #[test]
    fn data_comes_in_pieces_without_its_frame() {
        let mut chunks = Chunks::of_response();
        let (body, mut data, mut read) = (
            b"3  \r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\nrest".as_slice(),
            Vec::new(),
            0,
        );
        while !chunks.is_over() {
            let (piece, count) = chunks.piece(&body[read..]).unwrap();
            data.push(piece);
            read += count;
        }
        assert_eq!(
            (data.concat().as_slice(), &body[read..]),
            (b"abcde".as_slice(), b"rest".as_slice())
        );
    }

    #[test]
    fn body_that_two_readers_could_frame_differently_is_refused() {
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
            assert_eq!(end(body.as_bytes()), Err(BadChunk), "{body:?}");
        }
        assert_eq!(
            end(format!("1;{}", "a".repeat(ASIDE + 1)).as_bytes()),
            Err(BadChunk)
        );
        assert_eq!(
            end(format!("0\r\n{}", "a: b\r\n".repeat(ASIDE)).as_bytes()),
            Err(BadChunk)
        );
    }
}
