//! [`Sitemap::parse`] reads an XML sitemap, an index of sitemaps or a list of URLs, plain or packed
//! with gzip. Each URL keeps its range in the text; [`PlaceFinder`] turns ranges into lines and
//! columns. [`shown`] writes a URL in a finding.

use crate::printable::truncate;
use crate::yaml::{SourceSpan, saturating_u32};
use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};
use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;

/// The largest file, unpacked (the protocol's limit).
pub const MAX_BYTES: usize = 52_428_800;
/// The most URLs of one file (the protocol's limit).
pub const MAX_URLS: usize = 50_000;
/// The most bytes of a URL in a finding.
const MAX_SHOWN_BYTES: usize = 300;
/// How deep elements may be nested. A sitemap with extensions has five.
const MAX_DEPTH: usize = 64;

/// What a file lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SitemapKind {
    /// Pages.
    Pages,
    /// Other sitemaps.
    Index,
}

/// A URL with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedUrl {
    /// As the file means it: without escapes and blanks around it.
    pub url: String,
    /// Bytes of the text.
    pub range: Range<usize>,
}

/// A sitemap that was read.
#[derive(Debug)]
pub struct Sitemap {
    /// What it lists.
    pub kind: SitemapKind,
    /// The text, unpacked.
    pub text: String,
    /// Its URLs in order.
    pub urls: Vec<ListedUrl>,
}

/// Why a file cannot be read as a sitemap. Bytes are counted from the beginning of the text.
#[derive(Debug, thiserror::Error)]
pub enum SitemapError {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it is larger than 50 MiB unpacked; split it")]
    TooLarge,
    #[error("it lists more than 50,000 URLs; split it")]
    TooManyUrls,
    #[error("it is UTF-16: a sitemap must be UTF-8")]
    Utf16,
    #[error("it is not UTF-8 from byte {at}")]
    NotUtf8 { at: usize },
    #[error(
        "it has a document type, as an HTML page has. A sitemap needs none: remove it, or name the sitemap in place of the page"
    )]
    DocumentType { at: usize },
    #[error("it is not well-formed XML: {reason}")]
    Xml { at: usize, reason: String },
    #[error("its elements are nested deeper than {MAX_DEPTH}")]
    TooDeep { at: usize },
    #[error("it begins with <{name}>: a sitemap begins with <urlset> or <sitemapindex>")]
    OtherDocument { at: usize, name: String },
    #[error("it is empty")]
    Empty,
}

impl SitemapError {
    /// The byte of the text where the mistake is, if it is in one place.
    fn position(&self) -> Option<usize> {
        match *self {
            SitemapError::NotUtf8 { at }
            | SitemapError::DocumentType { at }
            | SitemapError::Xml { at, .. }
            | SitemapError::TooDeep { at }
            | SitemapError::OtherDocument { at, .. } => Some(at),
            _ => None,
        }
    }
}

/// A file that is no sitemap, with the place of the mistake if it is in one place.
#[derive(Debug)]
pub struct UnreadableSitemap {
    /// What is wrong.
    pub error: SitemapError,
    /// Where.
    pub span: Option<SourceSpan>,
}

impl UnreadableSitemap {
    /// `text` is the text up to the mistake, or more of it.
    fn new(error: SitemapError, text: &str) -> UnreadableSitemap {
        let span = error
            .position()
            .map(|at| PlaceFinder::new(text).find(at..at + 1));
        UnreadableSitemap { error, span }
    }
}

impl Sitemap {
    /// Reads a sitemap. `file` may be packed with gzip.
    ///
    /// # Errors
    /// It is no sitemap, or beyond the limits of the protocol.
    pub fn parse(file: impl Read) -> Result<Sitemap, UnreadableSitemap> {
        let bytes = read_unpacked(file).map_err(|error| UnreadableSitemap::new(error, ""))?;
        let text = decode_text(bytes)?;
        let listed = if text.trim_start().starts_with('<') {
            read_xml(&text)
        } else {
            read_lines(&text).map(|urls| (SitemapKind::Pages, urls))
        };
        match listed {
            Ok((kind, urls)) => Ok(Sitemap { kind, text, urls }),
            Err(error) => Err(UnreadableSitemap::new(error, &text)),
        }
    }
}

/// Finds the lines and columns of ranges, which must begin in ascending order. A sitemap may be one
/// line of 50 MB with 50,000 URLs.
pub struct PlaceFinder<'a> {
    text: &'a str,
    /// The byte that `line` and `column` are of.
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> PlaceFinder<'a> {
    pub fn new(text: &'a str) -> PlaceFinder<'a> {
        PlaceFinder {
            text,
            at: 0,
            line: 1,
            column: 1,
        }
    }

    /// The place of a range. One that begins before an earlier range, or beyond the text, is taken
    /// for the place that was found last.
    pub fn find(&mut self, range: Range<usize>) -> SourceSpan {
        if let Some(passed) = self.text.get(self.at..range.start) {
            self.line += memchr::memchr_iter(b'\n', passed.as_bytes()).count();
            match passed.rsplit_once('\n') {
                Some((_, last)) => self.column = 1 + last.chars().count(),
                None => self.column += passed.chars().count(),
            }
            self.at = range.start;
        }
        SourceSpan {
            start: range.start,
            end: range.end,
            line: saturating_u32(self.line),
            column: saturating_u32(self.column),
        }
    }
}

/// The bytes of a file, unpacked if it begins as gzip does.
fn read_unpacked(mut file: impl Read) -> Result<Vec<u8>, SitemapError> {
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic)?;
    let is_packed = magic == [0x1f, 0x8b];
    let whole = io::Cursor::new(magic).chain(file);
    let reader: Box<dyn Read> = if is_packed {
        Box::new(flate2::read::MultiGzDecoder::new(whole))
    } else {
        Box::new(whole)
    };
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        return Err(SitemapError::TooLarge);
    }
    Ok(bytes)
}

/// The text of a file, without a byte order mark.
fn decode_text(bytes: Vec<u8>) -> Result<String, UnreadableSitemap> {
    // A zero in one of the first two places: UTF-16 without a mark.
    if matches!(
        bytes.get(..2),
        Some([0xff, 0xfe] | [0xfe, 0xff] | [_, 0] | [0, _])
    ) {
        return Err(UnreadableSitemap::new(SitemapError::Utf16, ""));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        UnreadableSitemap::new(SitemapError::NotUtf8 { at }, &text)
    })?;
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

/// A list of URLs, one a line.
fn read_lines(text: &str) -> Result<Vec<ListedUrl>, SitemapError> {
    let mut urls = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let url = line.trim();
        if !url.is_empty() {
            let start = begin + (line.len() - line.trim_start().len());
            add(&mut urls, url.to_owned(), start..start + url.len())?;
        }
        begin += line.len();
    }
    if urls.is_empty() {
        return Err(SitemapError::Empty);
    }
    Ok(urls)
}

fn add(urls: &mut Vec<ListedUrl>, url: String, range: Range<usize>) -> Result<(), SitemapError> {
    if urls.len() == MAX_URLS {
        return Err(SitemapError::TooManyUrls);
    }
    urls.push(ListedUrl { url, range });
    Ok(())
}

/// Reads XML: the text of each `loc` in a `url` or `sitemap`, whatever their prefix.
fn read_xml(text: &str) -> Result<(SitemapKind, Vec<ListedUrl>), SitemapError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut path: Vec<String> = Vec::new();
    let mut kind = None;
    let mut urls = Vec::new();
    let mut current: Option<(String, usize)> = None;
    loop {
        let at = position(&reader);
        let event = reader.read_event().map_err(|error| {
            xml(
                usize::try_from(reader.error_position()).unwrap_or(at),
                error,
            )
        })?;
        match event {
            Event::DocType(_) => return Err(SitemapError::DocumentType { at }),
            Event::Start(element) => {
                let name = element.local_name().as_ref().to_owned();
                if kind.is_none() {
                    kind = Some(kind_of(&name, at)?);
                }
                if path.len() == MAX_DEPTH {
                    return Err(SitemapError::TooDeep { at });
                }
                path.push(name);
                if is_location(&path) {
                    current = Some((String::new(), position(&reader)));
                }
            }
            Event::Empty(element) if kind.is_none() => {
                kind = Some(kind_of(element.local_name().as_ref(), at)?);
            }
            Event::End(_) => {
                if is_location(&path)
                    && let Some((url, start)) = current.take()
                {
                    add(&mut urls, url.trim().to_owned(), trimmed(text, start..at))?;
                }
                path.pop();
            }
            Event::Text(part) => push(&mut current, &part),
            Event::CData(part) => push(&mut current, &part),
            Event::GeneralRef(reference) => push(&mut current, &resolve(&reference, at)?),
            Event::Eof if !path.is_empty() => {
                return Err(xml(at, "it ends inside an element"));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    kind.map(|kind| (kind, urls)).ok_or(SitemapError::Empty)
}

/// Adds a part to the URL that is being read, if there is one.
fn push(current: &mut Option<(String, usize)>, part: &str) {
    if let Some((url, _)) = current {
        url.push_str(part);
    }
}

/// How much of the text was read.
fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

fn xml(at: usize, reason: impl ToString) -> SitemapError {
    SitemapError::Xml {
        at,
        reason: reason.to_string(),
    }
}

fn kind_of(name: &str, at: usize) -> Result<SitemapKind, SitemapError> {
    match name {
        "urlset" => Ok(SitemapKind::Pages),
        "sitemapindex" => Ok(SitemapKind::Index),
        _ => Err(SitemapError::OtherDocument {
            at,
            name: name.to_owned(),
        }),
    }
}

/// Whether the innermost element is the address of a page or of a sitemap. (`image:loc` is deeper.)
fn is_location(path: &[String]) -> bool {
    match path {
        [_, entry, location] => matches!(entry.as_str(), "url" | "sitemap") && location == "loc",
        _ => false,
    }
}

/// What a reference stands for: one of XML's own five, or the number of a character.
fn resolve(reference: &BytesRef<'_>, at: usize) -> Result<Cow<'static, str>, SitemapError> {
    if let Some(sign) = reference
        .resolve_char_ref()
        .map_err(|error| xml(at, error))?
    {
        return Ok(Cow::Owned(sign.to_string()));
    }
    let name: &str = reference;
    match quick_xml::escape::resolve_predefined_entity(name) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => Err(xml(
            at,
            format!("&{name}; is not an entity of XML; write & as &amp;"),
        )),
    }
}

/// A range without the blanks at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = text.get(range.clone()).unwrap_or_default();
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// A URL as findings show it.
pub fn shown(url: &str) -> String {
    let start = truncate(url, MAX_SHOWN_BYTES);
    let end = if start.len() < url.len() { "..." } else { "" };
    format!("\"{start}{end}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn urls(text: &str) -> Vec<(String, &str)> {
        let read = Sitemap::parse(text.as_bytes()).expect("a sitemap");
        read.urls
            .iter()
            .map(|listed| (listed.url.clone(), &text[listed.range.clone()]))
            .collect()
    }

    fn error(bytes: &[u8]) -> SitemapError {
        Sitemap::parse(bytes).expect_err("a mistake").error
    }

    #[test]
    fn urls_of_xml_have_their_places() {
        let text = "<?xml version=\"1.0\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:image=\"x\">\n\
            <url><loc> https://a.example/?a=1&amp;b=&#50; </loc><image:image><image:loc>https://a.example/i.png</image:loc></image:image></url>\n\
            <s:url xmlns:s=\"y\"><s:loc><![CDATA[https://a.example/<b>]]></s:loc></s:url><url><loc/></url></urlset>";
        assert_eq!(
            urls(text),
            [
                (
                    "https://a.example/?a=1&b=2".into(),
                    "https://a.example/?a=1&amp;b=&#50;"
                ),
                (
                    "https://a.example/<b>".into(),
                    "<![CDATA[https://a.example/<b>]]>"
                ),
            ]
        );
    }

    #[test]
    fn index_and_text_are_read() {
        let index = Sitemap::parse(
            "<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>"
                .as_bytes(),
        )
        .expect("an index");
        assert_eq!((index.kind, index.urls.len()), (SitemapKind::Index, 1));
        assert_eq!(
            urls("https://a.example/\r\n\n  https://a.example/b\n"),
            [
                ("https://a.example/".into(), "https://a.example/"),
                ("https://a.example/b".into(), "https://a.example/b"),
            ]
        );
    }

    #[test]
    fn packed_sitemap_is_unpacked_within_its_bound() {
        let packed = |text: &[u8]| {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(text).expect("memory");
            out.finish().expect("memory")
        };
        let read = Sitemap::parse(&*packed(
            b"<urlset><url><loc>https://a.example/</loc></url></urlset>",
        ))
        .expect("a sitemap");
        assert_eq!(read.urls.len(), 1);
        assert!(matches!(
            error(&packed(&vec![b' '; MAX_BYTES + 1])),
            SitemapError::TooLarge
        ));
        assert!(matches!(
            error(&packed(b"<urlset>")[..12]),
            SitemapError::Read(_)
        ));
    }

    #[test]
    fn hostile_and_broken_files_are_errors() {
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><urlset><url><loc>&b;</loc></url></urlset>";
        assert!(matches!(
            error(bomb.as_bytes()),
            SitemapError::DocumentType { at: 0 }
        ));
        let outside = "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><urlset/>";
        assert!(matches!(
            error(outside.as_bytes()),
            SitemapError::DocumentType { .. }
        ));
        assert!(matches!(
            error(b"<urlset><url><loc>a&nbsp;b</loc></url></urlset>"),
            SitemapError::Xml { .. }
        ));
        assert!(matches!(
            error(b"<urlset><url><loc>a</url></urlset>"),
            SitemapError::Xml { .. }
        ));
        assert!(matches!(
            error(b"<urlset><url><loc>a</loc>"),
            SitemapError::Xml { .. }
        ));
        assert!(matches!(
            error(b"<html><body/></html>"),
            SitemapError::OtherDocument { .. }
        ));
        assert!(matches!(error(b"\xff\xfe<\0u\0"), SitemapError::Utf16));
        assert!(matches!(error(b"<\0u\0r\0"), SitemapError::Utf16));
        assert!(matches!(
            error(b"<urlset>\xff</urlset>"),
            SitemapError::NotUtf8 { at: 8 }
        ));
        assert!(matches!(error(b""), SitemapError::Empty));
        assert!(matches!(
            error("<a>".repeat(100).as_bytes()),
            SitemapError::OtherDocument { .. }
        ));
        let deep = format!("<urlset>{}", "<a>".repeat(100));
        assert!(matches!(
            error(deep.as_bytes()),
            SitemapError::TooDeep { .. }
        ));
        let place = |text: &str| {
            let span = Sitemap::parse(text.as_bytes()).expect_err("a mistake").span;
            span.map(|span| (span.line, span.column))
        };
        assert_eq!(
            place("<urlset>\n <url>ä&nbsp;</url></urlset>"),
            Some((2, 8))
        );
        assert_eq!(place(" "), None);
        let many = "https://a.example/\n".repeat(MAX_URLS + 1);
        assert!(matches!(error(many.as_bytes()), SitemapError::TooManyUrls));
    }
}
