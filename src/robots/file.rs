//! [`File`]: a robots.txt as it was written. Each [`Line`] has its kind, its place, its comment and
//! its [oddities](Oddity).
//!
//! The texts and ends of the lines put together are the bytes of the file. `reading.rs` decides
//! what a line means in a dialect.

use super::dialect::is_blank;
use super::steps::took;
use memchr::{memchr, memchr2};
use std::ops::Range;
use std::sync::Arc;

/// The octets of a line that Google's library keeps. It drops the rest and reads the shortened
/// line.
pub const MAX_LINE: usize = 2083 * 8 - 1;

/// The size that every crawler reads (RFC 9309 section 2.5: at least 500 KiB).
pub const MAX_BYTES: usize = 500 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum LineEnd {
    Lf,
    Cr,
    CrLf,
    /// The file ends here.
    Nothing,
}

/// The field of robots.txt that the key of a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Key {
    UserAgent,
    Allow,
    Disallow,
    Sitemap,
    CrawlDelay,
    RequestRate,
    VisitTime,
    Host,
    CleanParam,
    ContentSignal,
    ContentUsage,
    License,
    /// Once read by Google, never documented: `Noindex`, and `Nofollow` and `Noarchive` like it.
    Noindex,
    /// Any other name.
    Unknown,
}

/// How a key is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// As it should be, in any case.
    Exact,
    /// A known misspelling that parsers accept: `Dissallow`.
    Typo,
    /// A known key with more behind it, which Google's library takes for the key: `Disallowed`.
    Longer,
}

/// An oddity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Oddity {
    /// The key is misspelled, see [`Spelling`].
    Typo,
    /// Two words without a colon between them, read as if there were one.
    MissingColon,
    /// Neither a record nor a comment.
    NoRecord,
    /// More than [`MAX_LINE`] octets.
    TooLong,
    /// A NUL octet; what follows in the line is not read.
    Nul,
    /// Not UTF-8.
    NotUtf8,
    /// A byte order mark that is not at the beginning of the file, or a broken one; it spoils its
    /// line.
    StrayBom,
}

/// A key and a value: `key: value`. Ranges are those of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// What the key means.
    pub key: Key,
    /// How it is spelled.
    pub spelling: Spelling,
    /// Where the key stands.
    pub name: Range<usize>,
    /// Where the value stands, without blanks around it.
    pub value: Range<usize>,
}

impl Record {
    /// Where key and value stand together.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.name.start..self.value.end.max(self.name.end)
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// From 1, as editors and Google's library count.
    pub number: usize,
    /// Where its text stands in the file, without the line's end; a byte order mark is part of it.
    pub text: Range<usize>,
    /// The line break after it.
    pub end: LineEnd,
    /// Its key and value, if it has them.
    pub record: Option<Record>,
    /// Where its comment stands, after the `#`.
    pub comment: Option<Range<usize>>,
    /// Its oddities.
    pub oddities: Vec<Oddity>,
}

/// The format of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Text, perhaps empty.
    Text,
    /// A page of HTML in place of a robots.txt.
    Html,
    /// UTF-16, which no crawler reads: nothing in it is a rule.
    Utf16,
}

/// A whole file.
#[derive(Clone, Debug)]
pub struct File {
    bytes: Arc<[u8]>,
    lines: Vec<Line>,
    /// Octets of a byte order mark at the beginning: 3, or fewer when it is broken off. They are
    /// skipped.
    bom: usize,
    shape: Shape,
}

impl File {
    /// Reads any bytes. Takes linear time, and memory linear in the number of lines; never fails.
    ///
    /// ```
    /// use crawlgate::robots::{File, Key, Oddity};
    /// let file = File::parse(*b"User agent: *\nDissalow /a # why\n");
    /// let line = &file.lines()[1];
    /// assert_eq!(line.record.as_ref().map(|record| record.key), Some(Key::Disallow));
    /// assert_eq!(line.oddities, [Oddity::Typo, Oddity::MissingColon]);
    /// ```
    pub fn parse(bytes: impl Into<Arc<[u8]>>) -> File {
        let bytes: Arc<[u8]> = bytes.into();
        let bom = bytes
            .iter()
            .zip(BOM)
            .take_while(|(octet, bom)| octet == bom)
            .count();
        let mut lines = Vec::new();
        let mut start = 0;
        while start < bytes.len() {
            let end =
                memchr2(b'\n', b'\r', &bytes[start..]).map_or(bytes.len(), |place| start + place);
            let (line_end, length) = match bytes[end..] {
                [b'\r', b'\n', ..] => (LineEnd::CrLf, 2),
                [b'\r', ..] => (LineEnd::Cr, 1),
                [b'\n', ..] => (LineEnd::Lf, 1),
                _ => (LineEnd::Nothing, 0),
            };
            let skipped = if start == 0 { bom } else { 0 };
            lines.push(line(&bytes, lines.len() + 1, start..end, skipped, line_end));
            start = end + length;
        }
        let mut shape = shape(&bytes, bom);
        if shape == Shape::Html && has_rule(&lines) {
            shape = Shape::Text;
        }
        File {
            bytes,
            lines,
            bom,
            shape,
        }
    }

    /// The bytes it was read from.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// All lines. Their texts and ends, one after the other, are the bytes.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lines that every crawler reads (RFC 9309 section 2.5).
    pub fn lines_read(&self) -> impl Iterator<Item = &Line> + Clone {
        self.lines
            .iter()
            .take_while(|line| line.text.end <= MAX_BYTES)
    }

    /// The line of this number, from 1.
    pub fn line(&self, number: usize) -> Option<&Line> {
        self.lines.get(number.checked_sub(1)?)
    }

    /// The key and value of the line of this number, from 1; `None` for a line without, and beyond
    /// the file.
    pub(crate) fn record(&self, number: usize) -> Option<&Record> {
        self.line(number)?.record.as_ref()
    }

    /// A part of the file as text; what is not UTF-8 is replaced.
    pub fn text(&self, range: &Range<usize>) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.octets(range))
    }

    /// A part of the file.
    pub fn octets(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    /// The length of the byte order mark at the beginning: 0 without one, 3 with a whole one.
    pub fn bom(&self) -> usize {
        self.bom
    }

    /// The format of the file. With a group and a rule it is a robots.txt, whatever it begins with.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether it has a rule that belongs to a group.
    pub(crate) fn has_rule(&self) -> bool {
        has_rule(&self.lines)
    }

    /// Whether it is a page in place of a robots.txt: it begins like HTML and has no rule, or it
    /// was sent as HTML (`is_html`), is not UTF-16, and has no line with a key that crawlers know.
    pub(crate) fn is_page(&self, is_html: bool) -> bool {
        let mut known = self
            .lines
            .iter()
            .flat_map(|line| &line.record)
            .filter(|record| record.key != Key::Unknown);
        self.shape == Shape::Html || is_html && self.shape == Shape::Text && known.next().is_none()
    }
}

/// Whether a rule stands below a User-agent line.
fn has_rule(lines: &[Line]) -> bool {
    let mut keys = lines
        .iter()
        .flat_map(|line| &line.record)
        .map(|record| record.key);
    keys.any(|key| key == Key::UserAgent)
        && keys.any(|key| matches!(key, Key::Allow | Key::Disallow))
}

/// Reads one line. `text` is its place in the file, `skipped` the length of a byte order mark at
/// its beginning. What lies beyond `MAX_LINE` bytes, or behind a NUL, is not read.
#[inline]
fn line(bytes: &[u8], number: usize, text: Range<usize>, skipped: usize, end: LineEnd) -> Line {
    took(text.len() + 1);
    let mut oddities = Vec::new();
    let start = (text.start + skipped).min(text.end);
    let mut read = start..text.end;
    if read.len() > MAX_LINE {
        read.end = start + MAX_LINE;
        oddities.push(Oddity::TooLong);
    }
    if let Some(nul) = memchr(0, &bytes[read.clone()]) {
        read.end = start + nul;
        oddities.push(Oddity::Nul);
    }
    if std::str::from_utf8(&bytes[start..text.end]).is_err() {
        oddities.push(Oddity::NotUtf8);
    }
    let comment = memchr(b'#', &bytes[read.clone()]).map(|place| read.start + place);
    let content = strip(bytes, read.start..comment.unwrap_or(read.end));
    if bytes[content.clone()].starts_with(&BOM[..2]) {
        oddities.push(Oddity::StrayBom);
    }
    let record = record(bytes, content.clone(), &mut oddities);
    if record.is_none() && !content.is_empty() {
        oddities.push(Oddity::NoRecord);
    }
    Line {
        number,
        text,
        end,
        record,
        comment: comment.map(|place| place + 1..read.end),
        oddities,
    }
}

/// Without blanks at both ends.
#[inline]
fn strip(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &bytes[range.clone()];
    let before = text.iter().take_while(|octet| is_blank(**octet)).count();
    let after = text[before..]
        .iter()
        .rev()
        .take_while(|octet| is_blank(**octet))
        .count();
    range.start + before..range.end - after
}

/// The key and the value of a line without its comment. Two words without a colon are one, too, if
/// the first is a known key. `None` for anything else, and for an empty key. Adds the oddities of a
/// misspelt key and of a missing colon.
#[inline]
fn record(bytes: &[u8], content: Range<usize>, oddities: &mut Vec<Oddity>) -> Option<Record> {
    let text = &bytes[content.clone()];
    let (separator, missing) = match memchr(b':', text) {
        Some(colon) => (colon, false),
        None => {
            let blank = memchr2(b' ', b'\t', text)?;
            let second = text[blank..]
                .iter()
                .position(|octet| !matches!(octet, b' ' | b'\t'))?;
            // Two words only: a sentence is no record.
            if memchr2(b' ', b'\t', &text[blank + second..]).is_some() {
                return None;
            }
            (blank, true)
        }
    };
    let name = strip(bytes, content.start..content.start + separator);
    if name.is_empty() {
        return None;
    }
    let value = strip(bytes, content.start + separator + 1..content.end);
    let (key, spelling) = key(&bytes[name.clone()]);
    if missing && key == Key::Unknown {
        return None;
    }
    if spelling != Spelling::Exact {
        oddities.push(Oddity::Typo);
    }
    if missing {
        oddities.push(Oddity::MissingColon);
    }
    Some(Record {
        key,
        spelling,
        name,
        value,
    })
}

/// Keys that Google's library takes by their beginnings, the right spelling first.
const KEYS: [(Key, &[&str]); 4] = [
    (Key::UserAgent, &["user-agent", "useragent", "user agent"]),
    (Key::Allow, &["allow"]),
    (
        Key::Disallow,
        &[
            "disallow",
            "dissallow",
            "dissalow",
            "disalow",
            "diasllow",
            "disallaw",
        ],
    ),
    (Key::Sitemap, &["sitemap", "site-map"]),
];

const OTHER_KEYS: [(Key, &str); 11] = [
    (Key::CrawlDelay, "crawl-delay"),
    (Key::RequestRate, "request-rate"),
    (Key::VisitTime, "visit-time"),
    (Key::Host, "host"),
    (Key::CleanParam, "clean-param"),
    (Key::ContentSignal, "content-signal"),
    (Key::ContentUsage, "content-usage"),
    (Key::License, "license"),
    (Key::Noindex, "noindex"),
    (Key::Noindex, "nofollow"),
    (Key::Noindex, "noarchive"),
];

/// Whether some parser reads the key as one for which a document has a field: User-agent, Allow,
/// Disallow, Sitemap or Crawl-delay.
pub(super) fn has_its_own_place(name: &str) -> bool {
    matches!(
        key(name.as_bytes()).0,
        Key::UserAgent | Key::Allow | Key::Disallow | Key::Sitemap | Key::CrawlDelay
    )
}

/// The meaning of a key, without regard to case. User-agent, Allow, Disallow and Sitemap also count
/// where more follows them, or where they are misspelt in a known way.
#[inline]
fn key(name: &[u8]) -> (Key, Spelling) {
    for (key, spellings) in KEYS {
        for (place, spelling) in spellings.iter().enumerate() {
            if name
                .get(..spelling.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(spelling.as_bytes()))
            {
                let how = match (name.len() == spelling.len(), place) {
                    (true, 0) => Spelling::Exact,
                    (true, _) => Spelling::Typo,
                    (false, _) => Spelling::Longer,
                };
                return (key, how);
            }
        }
    }
    let other = OTHER_KEYS
        .iter()
        .find(|(_, spelling)| name.eq_ignore_ascii_case(spelling.as_bytes()));
    (other.map_or(Key::Unknown, |(key, _)| *key), Spelling::Exact)
}

/// The format that a file seems to have by its beginning, behind a byte order mark of `bom` bytes:
/// UTF-16 by its mark or by a NUL in every second place, HTML by its first tag.
fn shape(bytes: &[u8], bom: usize) -> Shape {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Shape::Utf16;
    }
    // Without a mark, ASCII letters with a NUL before or after each.
    let start = &bytes[bom..bytes.len().min(64)];
    let mut pairs = start.chunks_exact(2);
    let is_wide = pairs.clone().all(|pair| pair[0] == 0 && pair[1] != 0)
        || pairs.all(|pair| pair[0] != 0 && pair[1] == 0);
    if start.len() >= 8 && is_wide {
        return Shape::Utf16;
    }
    let text = bytes[bom..].trim_ascii_start();
    let tags = [
        &b"<!doctype"[..],
        b"<html",
        b"<head",
        b"<body",
        b"<?xml",
        b"<!--",
        b"<script",
        b"<meta",
        b"<title",
    ];
    let is_page = tags.iter().any(|tag| {
        text.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag))
    });
    if is_page { Shape::Html } else { Shape::Text }
}
