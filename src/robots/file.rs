//! [`RobotsFile`]: any robots.txt, split into lines without loss. A [`RobotsLine`] has a key, a
//! value and a comment, each with its byte range, and the [issues](LineIssue) of the line.
//! `dialect_rules` decides what a line means in a dialect (RFC 9309 or Google's library).

use super::dialect::is_c_space;
use super::step_counter::count_steps;
use memchr::{memchr, memchr2};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use strum::EnumString;

/// The most bytes of a line that are read, as in Google's library. The rest of the line is dropped.
pub const MAX_LINE_BYTES: usize = 2083 * 8 - 1;

/// The size that every crawler reads (RFC 9309 section 2.5: at least 500 KiB).
pub const MAX_ROBOTS_BYTES: usize = 500 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The meaning of the key of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString)]
#[strum(serialize_all = "kebab-case", ascii_case_insensitive)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum RobotsKey {
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
    #[strum(serialize = "noindex", serialize = "nofollow", serialize = "noarchive")]
    Noindex,
    /// Any other name.
    #[strum(disabled)]
    Unknown,
}

/// How a key is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeySpelling {
    /// Correctly, in upper or lower case.
    Exact,
    /// A known misspelling that parsers accept: `Dissallow`.
    Typo,
    /// A known key with more letters, which Google's library takes for the key: `Disallowed`.
    Longer,
}

/// Something unusual about a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineIssue {
    /// The key is misspelled, see [`KeySpelling`].
    Typo,
    /// Two words without a colon between them. They are read as key and value.
    MissingColon,
    /// Neither a key and value nor a comment.
    NotKeyValue,
    /// More than [`MAX_LINE_BYTES`] bytes.
    TooLong,
    /// A NUL byte; what follows in the line is not read.
    Nul,
    /// Not UTF-8.
    NotUtf8,
    /// A broken byte order mark, or one that is not at the beginning of the file. It makes its key
    /// unknown.
    StrayBom,
}

/// A line of the form `key: value`. Ranges are byte offsets in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyValue {
    /// The meaning of the key.
    pub key: RobotsKey,
    /// How the key is spelled.
    pub spelling: KeySpelling,
    /// The range of the key.
    pub name: Range<usize>,
    /// The range of the value, without blanks around it.
    pub value: Range<usize>,
}

impl KeyValue {
    /// The range from the key to the end of the value.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.name.start..self.value.end.max(self.name.end)
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RobotsLine {
    /// From 1, as editors and Google's library count.
    pub number: usize,
    /// The range of its text, without the line end. It includes a byte order mark.
    pub text: Range<usize>,
    /// Its key and value, if it has them.
    pub key_value: Option<KeyValue>,
    /// The range of its comment, after the `#`.
    pub comment: Option<Range<usize>>,
    /// Its issues.
    pub issues: Vec<LineIssue>,
}

impl RobotsLine {
    /// Whether it is a User-agent, Allow or Disallow line with a misspelt key or without a colon.
    /// Google reads such lines, other crawlers may not.
    pub(crate) fn is_misspelt(&self) -> bool {
        let key = self.key_value.as_ref().map(|record| record.key);
        let mut issues = self.issues.iter();
        matches!(
            key,
            Some(RobotsKey::UserAgent | RobotsKey::Allow | RobotsKey::Disallow)
        ) && issues.any(|issue| matches!(issue, LineIssue::Typo | LineIssue::MissingColon))
    }
}

/// The format of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Text, perhaps empty.
    Text,
    /// A page of HTML in place of a robots.txt.
    Html,
    /// UTF-16, which no crawler reads: nothing in it is a rule.
    Utf16,
}

/// A whole file.
#[derive(Clone, Debug)]
pub struct RobotsFile {
    bytes: Arc<[u8]>,
    lines: Vec<RobotsLine>,
    /// Length of the byte order mark: 3, less for a truncated one, 0 without one.
    bom: usize,
    shape: FileFormat,
}

impl RobotsFile {
    /// Parses any bytes. Takes linear time, and memory linear in the number of lines; never fails.
    ///
    /// ```
    /// use crawlgate::robots::{LineIssue, RobotsFile, RobotsKey};
    /// let file = RobotsFile::parse(*b"User agent: *\nDissalow /a # why\n");
    /// let line = &file.lines()[1];
    /// assert_eq!(line.key_value.as_ref().map(|it| it.key), Some(RobotsKey::Disallow));
    /// assert_eq!(line.issues, [LineIssue::Typo, LineIssue::MissingColon]);
    /// ```
    pub fn parse(bytes: impl Into<Arc<[u8]>>) -> RobotsFile {
        let bytes: Arc<[u8]> = bytes.into();
        let bom = bytes
            .iter()
            .zip(BYTE_ORDER_MARK)
            .take_while(|(byte, bom)| byte == bom)
            .count();
        let mut lines = Vec::new();
        let mut start = 0;
        while start < bytes.len() {
            let end =
                memchr2(b'\n', b'\r', &bytes[start..]).map_or(bytes.len(), |place| start + place);
            let skipped = if start == 0 { bom } else { 0 };
            lines.push(parse_line(&bytes, lines.len() + 1, start..end, skipped));
            let is_pair = bytes[end..].starts_with(b"\r\n");
            start = end + 1 + usize::from(is_pair);
        }
        let mut shape = detect_format(&bytes, bom);
        if shape == FileFormat::Html && has_rule(&lines) {
            shape = FileFormat::Text;
        }
        RobotsFile {
            bytes,
            lines,
            bom,
            shape,
        }
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// All lines, in order. Their texts and the line ends between them make up the whole file.
    pub fn lines(&self) -> &[RobotsLine] {
        &self.lines
    }

    /// The lines within the size that every crawler reads (RFC 9309 section 2.5).
    pub fn lines_within_limit(&self) -> impl Iterator<Item = &RobotsLine> + Clone {
        self.lines
            .iter()
            .take_while(|line| line.text.end <= MAX_ROBOTS_BYTES)
    }

    /// The lines that are misspelt, see [`RobotsLine::is_misspelt`].
    pub(crate) fn misspelt_lines(&self) -> impl Iterator<Item = &RobotsLine> {
        self.lines_within_limit().filter(|line| line.is_misspelt())
    }

    /// The values of the Sitemap lines within the size that every crawler reads. They stand for
    /// every crawler, inside of groups and outside.
    ///
    /// ```
    /// use crawlgate::robots::RobotsFile;
    /// let file = RobotsFile::parse(*b"User-agent: *\nDisallow: /a\nSitemap: https://shop.example/map.xml\n");
    /// assert_eq!(file.sitemaps().collect::<Vec<_>>(), ["https://shop.example/map.xml"]);
    /// ```
    pub fn sitemaps(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.lines_within_limit()
            .flat_map(|line| &line.key_value)
            .filter(|record| record.key == RobotsKey::Sitemap)
            .map(|record| self.text(&record.value))
    }

    /// The line of this number, from 1.
    pub fn line(&self, number: usize) -> Option<&RobotsLine> {
        self.lines.get(number.checked_sub(1)?)
    }

    /// The key and value of the line of this number, from 1.
    pub(crate) fn key_value(&self, number: usize) -> Option<&KeyValue> {
        self.line(number)?.key_value.as_ref()
    }

    /// A range of the file as text. Invalid UTF-8 is replaced.
    pub fn text(&self, range: &Range<usize>) -> Cow<'_, str> {
        String::from_utf8_lossy(self.slice(range))
    }

    /// A range of the file.
    pub fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    /// The length of the byte order mark at the beginning: 0 without one, 3 with a whole one.
    pub fn bom(&self) -> usize {
        self.bom
    }

    /// The format of the file. A file with a group and a rule is text, even if it begins like HTML.
    pub fn shape(&self) -> FileFormat {
        self.shape
    }

    /// Whether it has a rule that belongs to a group.
    pub(crate) fn has_rule(&self) -> bool {
        has_rule(&self.lines)
    }

    /// Whether it is a web page in place of a robots.txt: it begins like HTML and has no rule, or it
    /// was sent as HTML (`is_html`) and is text without any known key.
    pub(crate) fn is_html_page(&self, is_html: bool) -> bool {
        let mut known = self
            .lines
            .iter()
            .flat_map(|line| &line.key_value)
            .filter(|record| record.key != RobotsKey::Unknown);
        self.shape == FileFormat::Html
            || is_html && self.shape == FileFormat::Text && known.next().is_none()
    }
}

/// Whether a rule stands below a User-agent line.
fn has_rule(lines: &[RobotsLine]) -> bool {
    let mut keys = lines
        .iter()
        .flat_map(|line| &line.key_value)
        .map(|record| record.key);
    keys.any(|key| key == RobotsKey::UserAgent)
        && keys.any(|key| matches!(key, RobotsKey::Allow | RobotsKey::Disallow))
}

/// Parses one line. `text` is its range in the file, `skipped` the length of a byte order mark at
/// its beginning. Bytes beyond `MAX_LINE_BYTES` or after a NUL are ignored.
#[inline]
fn parse_line(bytes: &[u8], number: usize, text: Range<usize>, skipped: usize) -> RobotsLine {
    count_steps(text.len() + 1);
    let mut issues = Vec::new();
    let start = (text.start + skipped).min(text.end);
    let mut read = start..text.end;
    if read.len() > MAX_LINE_BYTES {
        read.end = start + MAX_LINE_BYTES;
        issues.push(LineIssue::TooLong);
    }
    if let Some(nul) = memchr(0, &bytes[read.clone()]) {
        read.end = start + nul;
        issues.push(LineIssue::Nul);
    }
    if std::str::from_utf8(&bytes[start..text.end]).is_err() {
        issues.push(LineIssue::NotUtf8);
    }
    let comment = memchr(b'#', &bytes[read.clone()]).map(|place| read.start + place);
    let content = trim_blanks(bytes, read.start..comment.unwrap_or(read.end));
    if bytes[content.clone()].starts_with(&BYTE_ORDER_MARK[..2]) {
        issues.push(LineIssue::StrayBom);
    }
    let key_value = parse_key_value(bytes, content.clone(), &mut issues);
    if key_value.is_none() && !content.is_empty() {
        issues.push(LineIssue::NotKeyValue);
    }
    RobotsLine {
        number,
        text,
        key_value,
        comment: comment.map(|place| place + 1..read.end),
        issues,
    }
}

/// The range without blanks at both ends.
#[inline]
fn trim_blanks(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &bytes[range.clone()];
    let before = text.iter().take_while(|byte| is_c_space(**byte)).count();
    let after = text[before..]
        .iter()
        .rev()
        .take_while(|byte| is_c_space(**byte))
        .count();
    range.start + before..range.end - after
}

/// Parses the key and value of a line without its comment. The colon may be missing between two
/// words if the first is a known key. `None` for anything else, and for an empty key. Adds the
/// issues of a misspelt key and of a missing colon.
#[inline]
fn parse_key_value(
    bytes: &[u8],
    content: Range<usize>,
    issues: &mut Vec<LineIssue>,
) -> Option<KeyValue> {
    let text = &bytes[content.clone()];
    let (separator, missing) = match memchr(b':', text) {
        Some(colon) => (colon, false),
        None => {
            let blank = memchr2(b' ', b'\t', text)?;
            let second = text[blank..]
                .iter()
                .position(|byte| !matches!(byte, b' ' | b'\t'))?;
            // Two words only: a sentence is no key and value.
            if memchr2(b' ', b'\t', &text[blank + second..]).is_some() {
                return None;
            }
            (blank, true)
        }
    };
    let name = trim_blanks(bytes, content.start..content.start + separator);
    if name.is_empty() {
        return None;
    }
    let value = trim_blanks(bytes, content.start + separator + 1..content.end);
    let (key, spelling) = parse_key(&bytes[name.clone()]);
    if missing && key == RobotsKey::Unknown {
        return None;
    }
    if spelling != KeySpelling::Exact {
        issues.push(LineIssue::Typo);
    }
    if missing {
        issues.push(LineIssue::MissingColon);
    }
    Some(KeyValue {
        key,
        spelling,
        name,
        value,
    })
}

/// Keys that Google's library recognises by their beginnings, the correct spelling first.
const PREFIX_KEYS: [(RobotsKey, &[&str]); 4] = [
    (
        RobotsKey::UserAgent,
        &["user-agent", "useragent", "user agent"],
    ),
    (RobotsKey::Allow, &["allow"]),
    (
        RobotsKey::Disallow,
        &[
            "disallow",
            "dissallow",
            "dissalow",
            "disalow",
            "diasllow",
            "disallaw",
        ],
    ),
    (RobotsKey::Sitemap, &["sitemap", "site-map"]),
];

/// Whether some parser reads the key as User-agent, Allow, Disallow, Sitemap or Crawl-delay, which
/// have fields of their own in a [`RobotsDocument`](super::RobotsDocument).
pub(super) fn is_document_field(name: &str) -> bool {
    matches!(
        parse_key(name.as_bytes()).0,
        RobotsKey::UserAgent
            | RobotsKey::Allow
            | RobotsKey::Disallow
            | RobotsKey::Sitemap
            | RobotsKey::CrawlDelay
    )
}

/// The meaning and spelling of a key, without regard to case. User-agent, Allow, Disallow and
/// Sitemap also count with more letters behind them, and in known misspellings.
#[inline]
fn parse_key(name: &[u8]) -> (RobotsKey, KeySpelling) {
    for (key, spellings) in PREFIX_KEYS {
        for (place, spelling) in spellings.iter().enumerate() {
            if name
                .get(..spelling.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(spelling.as_bytes()))
            {
                let spelling = match (name.len() == spelling.len(), place) {
                    (true, 0) => KeySpelling::Exact,
                    (true, _) => KeySpelling::Typo,
                    (false, _) => KeySpelling::Longer,
                };
                return (key, spelling);
            }
        }
    }
    let other = std::str::from_utf8(name)
        .ok()
        .and_then(|name| name.parse().ok());
    (other.unwrap_or(RobotsKey::Unknown), KeySpelling::Exact)
}

/// Detects the format by the beginning of a file, behind a byte order mark of `bom` bytes: UTF-16 by
/// its mark or by a NUL in every second byte, HTML by its first tag.
fn detect_format(bytes: &[u8], bom: usize) -> FileFormat {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return FileFormat::Utf16;
    }
    // Without a mark, ASCII letters with a NUL before or after each.
    let start = &bytes[bom..bytes.len().min(64)];
    let mut pairs = start.chunks_exact(2);
    let is_wide = pairs.clone().all(|pair| pair[0] == 0 && pair[1] != 0)
        || pairs.all(|pair| pair[0] != 0 && pair[1] == 0);
    if start.len() >= 8 && is_wide {
        return FileFormat::Utf16;
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
    if is_page {
        FileFormat::Html
    } else {
        FileFormat::Text
    }
}
