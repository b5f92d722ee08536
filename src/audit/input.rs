//! [`Input`]: a log, which is a file or standard input. [`Opened`] reads it in chunks of whole
//! lines, and [`each_line`] line by line. The first octets of the log say whether it is compressed
//! with gzip or zstd.

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Octets of a chunk. A line that is longer is cut, and its pieces cannot be read.
const CHUNK: usize = 1 << 20;

/// Chunks without the end of a line, after which something is no log. A device such as `/dev/zero`
/// has no end.
const MAX_CHUNKS_OF_LINE: usize = 16;

/// Octets that tell how a log is packed. A log is longer.
const MAGIC: usize = 6;

/// A log.
#[derive(Debug, PartialEq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, plain or packed.
    File(PathBuf),
}

impl Input {
    /// What messages call it. It holds no sign that a terminal obeys.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "standard input".into(),
            Input::File(path) => crate::printable::printable_path(path),
        }
    }

    /// Its size in octets as it is stored; `None` for standard input and for a file that is no
    /// regular one.
    ///
    /// # Errors
    /// It cannot be opened, or it is a directory.
    pub(super) fn size(&self) -> io::Result<Option<u64>> {
        let Input::File(path) = self else {
            return Ok(None);
        };
        if fs::metadata(path)?.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "is a directory; name the files in it",
            ));
        }
        let file = File::open(path)?.metadata()?;
        Ok(file.is_file().then_some(file.len()))
    }

    fn is_named_packed(&self) -> bool {
        let Input::File(path) = self else {
            return false;
        };
        path.extension()
            .is_some_and(|ending| ending == "gz" || ending == "zst")
    }

    /// Opens it for reading, unpacked. `taken` is raised by the octets that are read from it as
    /// stored.
    ///
    /// # Errors
    /// It cannot be opened, or is packed in a way that crawlgate cannot unpack. A damaged one
    /// opens: [`Opened::damage`] says so later.
    pub(super) fn open(&self, taken: Arc<AtomicU64>) -> io::Result<Opened> {
        let source: Box<dyn Read> = match self {
            Input::Stdin => Box::new(io::stdin().lock()),
            Input::File(path) => Box::new(File::open(path)?),
        };
        let reader = unpacked(Counting { source, taken }, self.is_named_packed())?;
        Ok(Opened {
            reader,
            rest: Vec::new(),
            damage: None,
            is_over: false,
            chunks_of_line: 0,
        })
    }
}

/// Calls `line` with each line of a log, in order and without its end (`\n` or `\r\n`).
///
/// # Errors
/// The log cannot be opened, or not be read to its end; the lines before are passed all the same.
pub fn each_line(input: &Input, mut line: impl FnMut(&[u8])) -> io::Result<()> {
    let mut opened = input.open(Arc::default())?;
    while let Some(chunk) = opened.chunk() {
        let chunk = chunk.strip_suffix(b"\n").unwrap_or(&chunk);
        chunk
            .split(|octet| *octet == b'\n')
            .for_each(|text| line(text.strip_suffix(b"\r").unwrap_or(text)));
    }
    opened.damage.map_or(Ok(()), Err)
}

/// A reader that counts.
struct Counting {
    source: Box<dyn Read>,
    taken: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A reader that unpacks gzip or zstd, which it tells by the first octets; bzip2 and xz are an
/// error. Everything else is read as it is, but for a log that is named like a packed one and does
/// not begin with text: it cannot be read.
fn unpacked(mut source: Counting, is_named_packed: bool) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::new();
    source.by_ref().take(MAGIC as u64).read_to_end(&mut magic)?;
    let whole = Cursor::new(magic.clone()).chain(source);
    match magic.as_slice() {
        [0x1f, 0x8b, ..] => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(
            io::BufReader::with_capacity(1 << 17, whole),
        ))),
        // A frame, or one to skip with which pzstd begins (RFC 8878 section 3.1.2).
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Ok(Box::new(zstd::Decoder::new(whole)?))
        }
        [b'B', b'Z', b'h', ..] => Err(unsupported("bzip2", "bzcat")),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(unsupported("xz", "xzcat")),
        plain if is_named_packed && (plain.len() < MAGIC || !plain.iter().all(is_text)) => {
            Ok(Box::new(Broken))
        }
        _ => Ok(Box::new(whole)),
    }
}

fn is_text(octet: &u8) -> bool {
    octet.is_ascii_graphic() || octet.is_ascii_whitespace()
}

/// A log that cannot be read at all.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it begins neither like gzip or zstd nor like a log",
        ))
    }
}

fn unsupported(packer: &str, command: &str) -> io::Error {
    io::Error::other(format!(
        "is packed with {packer}, which crawlgate cannot unpack; use `{command} FILE | crawlgate audit -`"
    ))
}

/// A log that is being read.
pub struct Opened {
    reader: Box<dyn Read>,
    /// The beginning of a line whose end was not read yet.
    rest: Vec<u8>,
    /// Why the log could not be read to its end.
    pub damage: Option<io::Error>,
    is_over: bool,
    /// Chunks since the last end of a line.
    chunks_of_line: usize,
}

impl Opened {
    /// The next lines, as one piece of about 1 MiB at most. It ends with a whole line, except at
    /// the end of the log or where a line is longer. `None` after the end. What comes before a
    /// damage is returned; then [`Opened::damage`] has the error. A line of more than 16 MiB is a
    /// damage, too.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        if self.is_over {
            return None;
        }
        let mut octets = Vec::with_capacity(CHUNK);
        octets.append(&mut self.rest);
        let missing = CHUNK - octets.len();
        match self
            .reader
            .by_ref()
            .take(missing as u64)
            .read_to_end(&mut octets)
        {
            Ok(read) => self.is_over = read < missing,
            Err(error) => {
                self.damage = Some(error);
                self.is_over = true;
            }
        }
        match memchr::memrchr(b'\n', &octets) {
            Some(end) if !self.is_over => {
                self.rest.extend_from_slice(&octets[end + 1..]);
                octets.truncate(end + 1);
                self.chunks_of_line = 0;
            }
            Some(_) => {}
            None => self.chunks_of_line += 1,
        }
        if self.chunks_of_line > MAX_CHUNKS_OF_LINE {
            self.damage = Some(io::Error::other(
                "is no log: it has a line of more than 16 MiB",
            ));
            self.is_over = true;
            return None;
        }
        (!octets.is_empty()).then_some(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Input, Opened};
    use std::io::Read;

    fn opened(reader: impl Read + 'static) -> Opened {
        Opened {
            reader: Box::new(reader),
            rest: Vec::new(),
            damage: None,
            is_over: false,
            chunks_of_line: 0,
        }
    }

    #[test]
    fn chunks_end_with_lines_and_lose_nothing() {
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        let text = [line.repeat(25_000), b"last".to_vec()].concat();
        let (mut opened, mut together) = (opened(std::io::Cursor::new(text.clone())), Vec::new());
        while let Some(chunk) = opened.chunk() {
            assert!(chunk.len() <= CHUNK && (chunk.ends_with(b"\n") || chunk.ends_with(b"last")));
            together.extend(chunk);
        }
        assert!(together == text && opened.damage.is_none());
    }

    #[test]
    fn the_name_of_a_file_moves_no_cursor() {
        let name = Input::File("logs/a\u{1b}[2J\n\u{202e}gol.log".into()).name();
        assert_eq!(name, "logs/a\u{fffd}[2J\u{fffd}\u{fffd}gol.log");
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut opened = opened(std::io::repeat(b'x').take(3 * CHUNK as u64));
        let lengths: Vec<usize> = std::iter::from_fn(|| opened.chunk())
            .map(|chunk| chunk.len())
            .collect();
        assert_eq!(lengths, [CHUNK; 3]);
    }

    #[test]
    fn what_has_no_lines_is_no_log() {
        let mut opened = opened(std::io::repeat(0));
        assert!(std::iter::from_fn(|| opened.chunk()).count() <= super::MAX_CHUNKS_OF_LINE);
        assert!(opened.damage.is_some());
    }
}
