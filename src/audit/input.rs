//! Reads the access logs of an audit from files, directories or standard input. [`LogInput`] names
//! a log, [`LogReader`] reads it in chunks of whole lines, and [`for_each_line`] reads it line by
//! line. Logs may be compressed with gzip or zstd; their first bytes show the format.

use crate::logs::ColumnHeader;
use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A longer line is cut, and its pieces cannot be read.
const CHUNK_BYTES: usize = 1 << 20;

/// Reading stops at a longer line: a device such as `/dev/zero` has no end.
const MAX_CHUNKS_PER_LINE: usize = 16;

/// The longest signature of a compression format. Every log is longer.
const MAGIC_BYTES: usize = 6;

/// An access log that can be opened.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// The error with the name of the log that cannot be read.
    pub fn error(&self, error: io::Error) -> io::Error {
        io::Error::other(format!("cannot read {}: {error}", self.display_name()))
    }

    /// The size of the file, compressed as it is. `None` for standard input and for a file that is
    /// not regular.
    ///
    /// # Errors
    /// The file cannot be opened, or is a directory.
    pub fn stored_bytes(&self) -> io::Result<Option<u64>> {
        let LogInput::File(path) = self else {
            return Ok(None);
        };
        if fs::metadata(path)?.is_dir() {
            return Err(io::Error::other("is a directory; name the files in it"));
        }
        let file = File::open(path)?.metadata()?;
        Ok(file.is_file().then_some(file.len()))
    }

    fn has_compressed_extension(&self) -> bool {
        matches!(self, LogInput::File(path) if path
            .extension()
            .is_some_and(|ending| ending == "gz" || ending == "zst"))
    }

    /// Opens the log and decompresses it while it is read.
    ///
    /// # Errors
    /// The log cannot be opened, or is compressed in an unsupported way. A damaged log opens, and
    /// sets [`LogReader::read_error`] later.
    pub fn open(&self) -> io::Result<LogReader> {
        let mut stored = None;
        let source: Box<dyn Read> = match self {
            LogInput::Stdin => Box::new(io::stdin().lock()),
            LogInput::File(path) => Box::new(stored.insert(Arc::new(File::open(path)?)).clone()),
        };
        Ok(LogReader {
            reader: decompress(source, self.has_compressed_extension())?,
            stored,
            partial_line: Vec::new(),
            header: ColumnHeader::default(),
            read_error: None,
            is_finished: false,
            chunks_in_line: 0,
        })
    }

    /// Whether it is a file that begins with `<`, maybe after blanks or a byte order mark. `false` for
    /// what can be read only once.
    pub fn is_xml(&self) -> bool {
        matches!(self.stored_bytes(), Ok(Some(_)))
            && self
                .open()
                .ok()
                .and_then(|mut log| log.next_chunk())
                .is_some_and(|chunk| {
                    String::from_utf8_lossy(&chunk.bytes)
                        .trim_start_matches('\u{feff}')
                        .trim_start()
                        .starts_with('<')
                })
    }
}

/// What editors and transfers leave beside logs.
const LEFTOVER_ENDINGS: [&str; 6] = ["~", ".swp", ".swo", ".tmp", ".part", ".lock"];

/// The logs at a path: standard input for `-`, the regular files of a directory, or the file
/// itself. Hidden files and what editors and transfers leave behind are no logs.
///
/// # Errors
/// The directory cannot be read, or has no log.
pub fn logs_at(path: &Path) -> io::Result<Vec<LogInput>> {
    if path.as_os_str() == "-" {
        return Ok(vec![LogInput::Stdin]);
    }
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![LogInput::File(path.to_owned())]);
    }
    let mut logs = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_leftover = LEFTOVER_ENDINGS.iter().any(|ending| name.ends_with(ending));
        if !name.starts_with('.') && !is_leftover && entry.path().is_file() {
            logs.push(LogInput::File(entry.path()));
        }
    }
    if logs.is_empty() {
        return Err(io::Error::other("is a directory without logs"));
    }
    Ok(logs)
}

/// Calls `on_line` with each line of a log, in order and without its end (`\n` or `\r\n`).
///
/// # Errors
/// The log cannot be opened or read to its end. The lines before the error are passed all the same.
pub fn for_each_line(input: &LogInput, mut on_line: impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = input.open()?;
    while let Some(chunk) = reader.next_chunk() {
        let lines = chunk.bytes.strip_suffix(b"\n").unwrap_or(&chunk.bytes);
        lines
            .split(|byte| *byte == b'\n')
            .for_each(|line| on_line(line.strip_suffix(b"\r").unwrap_or(line)));
    }
    reader.read_error.map_or(Ok(()), Err)
}

/// Decompresses gzip or zstd, recognised by the first bytes. bzip2 and xz are an error. Everything
/// else is plain text, except a log with the extension of a compressed one that does not begin with
/// text: reading it fails.
fn decompress(
    mut source: Box<dyn Read>,
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
        Err(io::Error::other("is neither a log nor a gzip or zstd file"))
    }
}

fn unsupported_compression(packer: &str, command: &str) -> io::Error {
    io::Error::other(format!(
        "is packed with {packer}, which crawlgate cannot unpack. Use \"{command} FILE | crawlgate \
         audit -\""
    ))
}

/// Whole lines of a log.
pub struct LineChunk {
    /// What the lines before them say about their columns.
    pub header: ColumnHeader,
    /// The lines.
    pub bytes: Vec<u8>,
}

/// Reads a log in chunks of whole lines.
pub struct LogReader {
    reader: Box<dyn Read>,
    /// The file that it reads.
    stored: Option<Arc<File>>,
    /// The beginning of a line whose end was not read yet.
    partial_line: Vec<u8>,
    /// The columns of the next chunk.
    header: ColumnHeader,
    /// Why the log could not be read to its end.
    pub read_error: Option<io::Error>,
    is_finished: bool,
    /// Chunks since the last end of a line.
    chunks_in_line: usize,
}

impl LogReader {
    /// The stored bytes that were read so far; zero for what is no regular file.
    pub fn bytes_read(&self) -> u64 {
        self.stored
            .as_deref()
            .and_then(|mut file| file.stream_position().ok())
            .unwrap_or_default()
    }

    /// Reads the next chunk of at most 1 MiB. It ends with a whole line, except at the end of the
    /// log or in a longer line. `None` after the end. If the log is damaged or has a line of more
    /// than 16 MiB, the bytes before are returned, and [`LogReader::read_error`] has the error.
    pub fn next_chunk(&mut self) -> Option<LineChunk> {
        if self.is_finished {
            return None;
        }
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        bytes.append(&mut self.partial_line);
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
                self.partial_line.extend_from_slice(&bytes[end + 1..]);
                bytes.truncate(end + 1);
                self.chunks_in_line = 0;
            }
            Some(_) => {}
            None => self.chunks_in_line += 1,
        }
        if self.chunks_in_line > MAX_CHUNKS_PER_LINE {
            self.read_error = Some(io::Error::other(
                "is not a log: it has a line of more than 16 MiB",
            ));
            self.is_finished = true;
            return None;
        }
        let header = self.header.clone();
        self.header.update(&bytes);
        (!bytes.is_empty()).then_some(LineChunk { header, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, ColumnHeader, LogInput, LogReader, logs_at};
    use crate::logs::{LineFormat, LineReader, LogLine};
    use std::fs;
    use std::io::{self, Read};

    fn log_reader(reader: impl Read + 'static) -> LogReader {
        LogReader {
            reader: Box::new(reader),
            stored: None,
            partial_line: Vec::new(),
            header: ColumnHeader::default(),
            read_error: None,
            is_finished: false,
            chunks_in_line: 0,
        }
    }

    #[test]
    fn chunks_end_with_lines_and_lose_nothing() {
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        let text = [line.repeat(25_000), b"last".to_vec()].concat();
        let mut opened = log_reader(io::Cursor::new(text.clone()));
        let mut together = Vec::new();
        while let Some(chunk) = opened.next_chunk() {
            let chunk = chunk.bytes;
            assert!(
                chunk.len() <= CHUNK_BYTES && (chunk.ends_with(b"\n") || chunk.ends_with(b"last"))
            );
            together.extend(chunk);
        }
        assert!(together == text && opened.read_error.is_none());
    }

    #[test]
    fn each_chunk_has_the_header_before_it() {
        const NARROW: &str = "#Fields: date time cs-uri-stem\n";
        const WIDE: &str = "#Fields: date time sc-status cs-uri-stem\n";
        let narrow = "2026-11-22 10:00:00 /a\n".repeat(100_000);
        let wide = "2026-11-22 10:00:00 200 /b\n".repeat(100_000);
        // Of two headers the last one counts.
        let text = [NARROW, &narrow, NARROW, WIDE, &wide, NARROW, &narrow].concat();
        let mut opened = log_reader(io::Cursor::new(text));
        let mut chunks: Vec<_> = std::iter::from_fn(|| opened.next_chunk()).collect();
        assert!(chunks.len() > 5);
        // Each chunk is read alone, in another order than that of the log.
        chunks.reverse();
        let format = LineFormat::Detect;
        let mut targets = [0, 0];
        for chunk in chunks {
            let mut lines = LineReader::new(&format, chunk.header);
            for line in chunk.bytes.split(|byte| *byte == b'\n') {
                if let Ok(LogLine::Request(record)) = lines.parse(line) {
                    targets[usize::from(*record.target == *b"/b")] += 1;
                }
            }
        }
        assert_eq!(targets, [200_000, 100_000]);
    }

    #[test]
    fn display_name_has_no_control_characters() {
        let name = LogInput::File("logs/a\u{1b}[2J\n\u{202e}gol.log".into()).display_name();
        assert_eq!(name, "logs/a\u{fffd}[2J\u{fffd}\u{fffd}gol.log");
    }

    #[test]
    fn line_longer_than_chunk_is_cut() {
        let mut opened = log_reader(io::repeat(b'x').take(3 * CHUNK_BYTES as u64));
        let lengths: Vec<usize> = std::iter::from_fn(|| opened.next_chunk())
            .map(|chunk| chunk.bytes.len())
            .collect();
        assert_eq!(lengths, [CHUNK_BYTES; 3]);
    }

    #[test]
    fn endless_line_ends_reading() {
        let mut opened = log_reader(io::repeat(0));
        assert!(std::iter::from_fn(|| opened.next_chunk()).count() <= super::MAX_CHUNKS_PER_LINE);
        assert!(opened.read_error.is_some());
    }

    #[test]
    fn packed_bomb_is_read_in_chunks() {
        // 64 MiB of one line and of empty lines.
        for (byte, ends_early) in [(b'x', true), (b'\n', false)] {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            let mut content = io::repeat(byte).take(64 << 20);
            io::copy(&mut content, &mut gzip).expect("room");
            let zstd = zstd::encode_all(io::repeat(byte).take(64 << 20), 1).expect("room");
            for packed in [gzip.finish().expect("room"), zstd] {
                assert!(packed.len() < 1 << 20, "{}", packed.len());
                let directory = tempfile::tempdir().expect("a directory");
                let path = directory.path().join("bomb");
                fs::write(&path, &packed).expect("a file");
                let mut opened = LogInput::File(path).open().expect("a log");
                let mut chunks = 0;
                while let Some(chunk) = opened.next_chunk() {
                    assert!(chunk.bytes.capacity() <= CHUNK_BYTES + 1);
                    chunks += 1;
                }
                assert_eq!(opened.read_error.is_some(), ends_early);
                assert_eq!(chunks <= super::MAX_CHUNKS_PER_LINE, ends_early);
                assert!(ends_early || opened.bytes_read() == packed.len() as u64);
            }
        }
    }

    #[test]
    fn directory_gives_its_logs_without_leftovers() {
        let directory = tempfile::tempdir().expect("a directory");
        let names = ["b.log.gz.log", "a.log"];
        for name in names {
            fs::write(directory.path().join(name), "junk\n").expect("a file");
        }
        for leftover in ["a.log.swp", ".hidden", "d.log~", "e.part"] {
            fs::write(directory.path().join(leftover), "").expect("a file");
        }
        fs::create_dir(directory.path().join("z")).expect("a directory");
        assert!(logs_at(&directory.path().join("z")).is_err());
        let mut logs = logs_at(directory.path()).expect("logs");
        logs.sort_by(|log, other| other.cmp(log));
        let found = names.map(|name| LogInput::File(directory.path().join(name)));
        assert_eq!(logs, found);
    }
}
