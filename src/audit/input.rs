//! Reads the access logs of an audit from files or standard input. [`LogInput`] names a log,
//! [`LogReader`] reads it in chunks of whole lines, and [`for_each_line`] reads it line by line.
//! Logs may be compressed with gzip or zstd; their first bytes show it.

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A longer line is cut, and its pieces cannot be read.
const CHUNK_BYTES: usize = 1 << 20;

/// Reading stops at a longer line: a device such as `/dev/zero` has no end.
const MAX_CHUNKS_PER_LINE: usize = 16;

/// The longest signature of a compression format. Every log is longer.
const MAGIC_BYTES: usize = 6;

/// An access log that can be opened.
#[derive(Debug, PartialEq)]
pub enum LogInput {
    /// Standard input.
    Stdin,
    /// A file, plain or compressed.
    File(PathBuf),
}

impl LogInput {
    /// The name for messages, without control characters.
    pub fn display_name(&self) -> String {
        match self {
            LogInput::Stdin => "standard input".into(),
            LogInput::File(path) => crate::printable::printable_path(path),
        }
    }

    /// The size of the file, compressed as it is. `None` for standard input and for a file that is
    /// not regular.
    ///
    /// # Errors
    /// The file cannot be opened, or is a directory.
    pub(super) fn stored_bytes(&self) -> io::Result<Option<u64>> {
        let LogInput::File(path) = self else {
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

    fn has_compressed_extension(&self) -> bool {
        let LogInput::File(path) = self else {
            return false;
        };
        path.extension()
            .is_some_and(|ending| ending == "gz" || ending == "zst")
    }

    /// Opens the log and decompresses it while it is read. `bytes_read` grows by the stored bytes
    /// that were read.
    ///
    /// # Errors
    /// The log cannot be opened, or is compressed in an unsupported way. A damaged log opens, and
    /// sets [`LogReader::read_error`] later.
    pub(super) fn open(&self, bytes_read: Arc<AtomicU64>) -> io::Result<LogReader> {
        let inner: Box<dyn Read> = match self {
            LogInput::Stdin => Box::new(io::stdin().lock()),
            LogInput::File(path) => Box::new(File::open(path)?),
        };
        let counting = CountingReader { inner, bytes_read };
        let reader = decompress(counting, self.has_compressed_extension())?;
        Ok(LogReader {
            reader,
            partial_lineial_line: Vec::new(),
            read_error: None,
            is_finished: false,
            chunks_in_line: 0,
        })
    }
}

/// Calls `on_line` with each line of a log, in order and without its end (`\n` or `\r\n`).
///
/// # Errors
/// The log cannot be opened or read to its end. The lines before the error are passed all the same.
pub fn for_each_line(input: &LogInput, mut on_line: impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = input.open(Arc::default())?;
    while let Some(chunk) = reader.next_chunk() {
        let chunk = chunk.strip_suffix(b"\n").unwrap_or(&chunk);
        chunk
            .split(|byte| *byte == b'\n')
            .for_each(|line| on_line(line.strip_suffix(b"\r").unwrap_or(line)));
    }
    reader.read_error.map_or(Ok(()), Err)
}

struct CountingReader {
    inner: Box<dyn Read>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Decompresses gzip or zstd, recognised by the first bytes. bzip2 and xz are an error. Everything
/// else is plain text, except a log with the extension of a compressed one that does not begin with
/// text: reading it fails.
fn decompress(
    mut source: CountingReader,
    has_compressed_extension: bool,
) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::new();
    source
        .by_ref()
        .take(MAGIC_BYTES as u64)
        .read_to_end(&mut magic)?;
    let whole = Cursor::new(magic.clone()).chain(source);
    match magic.as_slice() {
        [0x1f, 0x8b, ..] => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(
            io::BufReader::with_capacity(1 << 17, whole),
        ))),
        // A frame, or one to skip with which pzstd begins (RFC 8878 section 3.1.2).
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Ok(Box::new(zstd::Decoder::new(whole)?))
        }
        [b'B', b'Z', b'h', ..] => Err(unsupported_compression("bzip2", "bzcat")),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(unsupported_compression("xz", "xzcat")),
        plain
            if has_compressed_extension
                && (plain.len() < MAGIC_BYTES || !plain.iter().all(is_text_byte)) =>
        {
            Ok(Box::new(FailingReader))
        }
        _ => Ok(Box::new(whole)),
    }
}

fn is_text_byte(byte: &u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// Fails at the first read.
struct FailingReader;

impl Read for FailingReader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it begins neither like gzip or zstd nor like a log",
        ))
    }
}

fn unsupported_compression(packer: &str, command: &str) -> io::Error {
    io::Error::other(format!(
        "is packed with {packer}, which crawlgate cannot unpack; use `{command} FILE | crawlgate audit -`"
    ))
}

/// Reads a log in chunks of whole lines.
pub struct LogReader {
    reader: Box<dyn Read>,
    /// The beginning of a line whose end was not read yet.
    partial_lineial_line: Vec<u8>,
    /// Why the log could not be read to its end.
    pub read_error: Option<io::Error>,
    is_finished: bool,
    /// Chunks since the last end of a line.
    chunks_in_line: usize,
}

impl LogReader {
    /// Reads the next chunk of at most 1 MiB. It ends with a whole line, except at the end of the
    /// log or in a longer line. `None` after the end. If the log is damaged or has a line of more
    /// than 16 MiB, the bytes before are returned, and [`LogReader::read_error`] has the error.
    pub fn next_chunk(&mut self) -> Option<Vec<u8>> {
        if self.is_finished {
            return None;
        }
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        bytes.append(&mut self.partial_lineial_line);
        let missing = CHUNK_BYTES - bytes.len();
        match self
            .reader
            .by_ref()
            .take(missing as u64)
            .read_to_end(&mut bytes)
        {
            Ok(read) => self.is_finished = read < missing,
            Err(error) => {
                self.read_error = Some(error);
                self.is_finished = true;
            }
        }
        match memchr::memrchr(b'\n', &bytes) {
            Some(end) if !self.is_finished => {
                self.partial_lineial_line
                    .extend_from_slice(&bytes[end + 1..]);
                bytes.truncate(end + 1);
                self.chunks_in_line = 0;
            }
            Some(_) => {}
            None => self.chunks_in_line += 1,
        }
        if self.chunks_in_line > MAX_CHUNKS_PER_LINE {
            self.read_error = Some(io::Error::other(
                "is no log: it has a line of more than 16 MiB",
            ));
            self.is_finished = true;
            return None;
        }
        (!bytes.is_empty()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, LogInput, LogReader};
    use std::io::Read;

    fn log_reader(reader: impl Read + 'static) -> LogReader {
        LogReader {
            reader: Box::new(reader),
            partial_lineial_line: Vec::new(),
            read_error: None,
            is_finished: false,
            chunks_in_line: 0,
        }
    }

    #[test]
    fn chunks_end_with_lines_and_lose_nothing() {
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        let text = [line.repeat(25_000), b"last".to_vec()].concat();
        let (mut opened, mut together) =
            (log_reader(std::io::Cursor::new(text.clone())), Vec::new());
        while let Some(chunk) = opened.next_chunk() {
            assert!(
                chunk.len() <= CHUNK_BYTES && (chunk.ends_with(b"\n") || chunk.ends_with(b"last"))
            );
            together.extend(chunk);
        }
        assert!(together == text && opened.read_error.is_none());
    }

    #[test]
    fn display_name_has_no_control_characters() {
        let name = LogInput::File("logs/a\u{1b}[2J\n\u{202e}gol.log".into()).display_name();
        assert_eq!(name, "logs/a\u{fffd}[2J\u{fffd}\u{fffd}gol.log");
    }

    #[test]
    fn line_longer_than_chunk_is_cut() {
        let mut opened = log_reader(std::io::repeat(b'x').take(3 * CHUNK_BYTES as u64));
        let lengths: Vec<usize> = std::iter::from_fn(|| opened.next_chunk())
            .map(|chunk| chunk.len())
            .collect();
        assert_eq!(lengths, [CHUNK_BYTES; 3]);
    }

    #[test]
    fn endless_line_ends_reading() {
        let mut opened = log_reader(std::io::repeat(0));
        assert!(std::iter::from_fn(|| opened.next_chunk()).count() <= super::MAX_CHUNKS_PER_LINE);
        assert!(opened.read_error.is_some());
    }
}
