//! [`Sitemap::parse`] parses an XML sitemap, an index of sitemaps or a plain list of URLs. The text
//! may be compressed with gzip. Each URL keeps its byte range in the text, and [`SpanFinder`]
//! converts ranges to lines and columns. [`shown`] quotes and shortens a URL for a message.

use crate::files::read_up_to;
use crate::printable::truncate;
use crate::yaml::{SourceSpan, saturating_u32};
use SitemapError::*;
use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};
use std::io::{self, Read};
use std::ops::Range;
use strum::EnumString;

/// The largest file, unpacked (the protocol's limit).
pub const MAX_BYTES: u64 = 52_428_800;
/// The most URLs of one file (the protocol's limit).
pub const MAX_URLS: usize = 50_000;
/// The most bytes of a URL in a finding.
const MAX_SHOWN_BYTES: usize = 300;
/// How deep elements may be nested. A sitemap with extensions has five.
const MAX_DEPTH: usize = 64;

/// What a file lists.
#[derive(Debug, PartialEq, EnumString)]
pub enum SitemapKind {
    /// Pages.
    #[strum(serialize = "urlset")]
    Pages,
    /// Other sitemaps.
    #[strum(serialize = "sitemapindex")]
    Index,
}

/// A URL with its place in the text.
#[derive(Debug)]
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

/// Why a file cannot be read as a sitemap.
#[derive(Debug, thiserror::Error)]
pub enum SitemapError {
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    #[error("it has more than {} MiB; split it", MAX_BYTES >> 20)]
    TooLarge,
    #[error("it lists more than 50,000 URLs; split it")]
    TooManyUrls,
    #[error("it is not UTF-8 from byte {0}: a sitemap must be UTF-8")]
    NotUtf8(usize),
    #[error(
        "it has a document type, as an HTML page has. A sitemap needs none: remove it, or name the sitemap in place of the page"
    )]
    DocumentType,
    #[error("it is not well-formed XML: {0}")]
    Xml(#[from] quick_xml::Error),
    #[error("it is not well-formed XML: &{0}; is not an entity of XML; write & as &amp;")]
    UnknownEntity(String),
    #[error("it is not well-formed XML: it ends inside an element")]
    Unclosed,
    #[error("its elements are nested deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("it begins with <{0}>: a sitemap begins with <urlset> or <sitemapindex>")]
    OtherDocument(String),
    #[error("it has no URL")]
    NoUrl,
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
    /// A mistake at a byte of the text.
    fn at(at: usize, text: &str, error: SitemapError) -> UnreadableSitemap {
        UnreadableSitemap {
            span: Some(SpanFinder::new(text).find(at..at + 1)),
            ..error.into()
        }
    }
}

impl From<io::Error> for SitemapError {
    fn from(error: io::Error) -> SitemapError {
        match error.kind() {
            io::ErrorKind::FileTooLarge => TooLarge,
            _ => Read(error),
        }
    }
}

impl From<SitemapError> for UnreadableSitemap {
    fn from(error: SitemapError) -> UnreadableSitemap {
        UnreadableSitemap { error, span: None }
    }
}

impl Sitemap {
    /// Reads a sitemap. `file` may be packed with gzip.
    ///
    /// # Errors
    /// It is no sitemap, or beyond the limits of the protocol.
    pub fn parse(file: impl Read) -> Result<Sitemap, UnreadableSitemap> {
        let text = decode_text(read_unpacked(file).map_err(SitemapError::from)?)?;
        let (kind, urls) = if text.trim_start().starts_with('<') {
            read_xml(&text)?
        } else {
            (SitemapKind::Pages, read_lines(&text)?)
        };
        if urls.is_empty() {
            return Err(NoUrl.into());
        }
        Ok(Sitemap { kind, text, urls })
    }
}

/// Finds the lines and columns of ranges, which must begin in ascending order. A sitemap may be one
/// line of 50 MB with 50,000 URLs.
pub struct SpanFinder<'a> {
    text: &'a str,
    /// The byte that `line` and `column` are of.
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> SpanFinder<'a> {
    pub fn new(text: &'a str) -> SpanFinder<'a> {
        SpanFinder {
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
fn read_unpacked(file: impl Read) -> io::Result<Vec<u8>> {
    let bytes = read_up_to(file, MAX_BYTES)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        read_up_to(flate2::read::MultiGzDecoder::new(&*bytes), MAX_BYTES)
    } else {
        Ok(bytes)
    }
}

/// The text of a file, without a byte order mark.
fn decode_text(bytes: Vec<u8>) -> Result<String, UnreadableSitemap> {
    // UTF-16 without a mark: the first character has a zero.
    if bytes[..bytes.len().min(2)].contains(&0) {
        return Err(NotUtf8(0).into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        UnreadableSitemap::at(at, &String::from_utf8_lossy(error.as_bytes()), NotUtf8(at))
    })?;
    let without_mark = text.strip_prefix('\u{feff}').map(str::to_owned);
    Ok(without_mark.unwrap_or(text))
}

/// A list of URLs, one a line.
fn read_lines(text: &str) -> Result<Vec<ListedUrl>, SitemapError> {
    let mut urls = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let range = trimmed(text, begin..begin + line.len());
        if !range.is_empty() {
            add(&mut urls, text[range.clone()].to_owned(), range)?;
        }
        begin += line.len();
    }
    Ok(urls)
}

fn add(urls: &mut Vec<ListedUrl>, url: String, range: Range<usize>) -> Result<(), SitemapError> {
    if urls.len() == MAX_URLS {
        return Err(TooManyUrls);
    }
    urls.push(ListedUrl { url, range });
    Ok(())
}

/// Reads XML: the text of each `loc` in a `url` or `sitemap`, whatever their prefix.
fn read_xml(text: &str) -> Result<(SitemapKind, Vec<ListedUrl>), UnreadableSitemap> {
    use Event::*;
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    let mut kind: Option<SitemapKind> = None;
    let mut urls = Vec::new();
    // The text since the last `loc` began, and where that was.
    let mut value = String::new();
    let mut start = 0;
    reader.config_mut().expand_empty_elements = true;
    loop {
        let at = reader.buffer_position() as usize;
        let fail = |error| UnreadableSitemap::at(at, text, error);
        let event = reader.read_event().map_err(|error| {
            UnreadableSitemap::at(reader.error_position() as usize, text, error.into())
        })?;
        if let (None, Start(element)) = (&kind, &event) {
            let name: &str = element.local_name().into_inner();
            let other = |_| fail(OtherDocument(name.to_owned()));
            kind = Some(name.parse().map_err(other)?);
        }
        match event {
            DocType(_) => return Err(fail(DocumentType)),
            Start(element) => {
                if path.len() == MAX_DEPTH {
                    return Err(fail(TooDeep));
                }
                path.push(element.local_name().as_ref().to_owned());
                if is_loc(&path) {
                    value.clear();
                    start = reader.buffer_position() as usize;
                }
            }
            End(_) => {
                if is_loc(&path) {
                    add(&mut urls, value.trim().to_owned(), trimmed(text, start..at))?;
                }
                path.pop();
            }
            Text(part) => value.push_str(&part),
            CData(part) => value.push_str(&part),
            GeneralRef(reference) => value.push_str(&resolve(&reference).map_err(fail)?),
            Eof if !path.is_empty() => return Err(fail(Unclosed)),
            Eof => break,
            _ => {}
        }
    }
    Ok((kind.ok_or(NoUrl)?, urls))
}

/// Whether the innermost element is the `loc` of a page or of a sitemap. (`image:loc` is deeper.)
fn is_loc(path: &[String]) -> bool {
    matches!(path, [_, entry, field] if field == "loc" && (entry == "url" || entry == "sitemap"))
}

/// What a reference stands for: one of XML's own five, or the number of a character.
fn resolve(reference: &BytesRef<'_>) -> Result<String, SitemapError> {
    if let Some(sign) = reference.resolve_char_ref()? {
        return Ok(sign.to_string());
    }
    let name: &str = reference;
    quick_xml::escape::resolve_predefined_entity(name)
        .map(str::to_owned)
        .ok_or_else(|| UnknownEntity(name.to_owned()))
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
                (String::new(), ""),
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
            error(&packed(&vec![b' '; MAX_BYTES as usize + 1])),
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
        assert!(matches!(error(bomb.as_bytes()), SitemapError::DocumentType));
        let outside = "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><urlset/>";
        assert!(matches!(
            error(outside.as_bytes()),
            SitemapError::DocumentType
        ));
        assert!(matches!(
            error(b"<urlset><url><loc>a&nbsp;b</loc></url></urlset>"),
            SitemapError::UnknownEntity(_)
        ));
        assert!(matches!(
            error(b"<urlset><url><loc>a</url></urlset>"),
            SitemapError::Xml(_)
        ));
        assert!(matches!(
            error(b"<urlset><url><loc>a</loc>"),
            SitemapError::Unclosed
        ));
        assert!(matches!(
            error(b"<html><body/></html>"),
            SitemapError::OtherDocument(_)
        ));
        let utf16 = b"\xff\xfe<\0u\0";
        assert!(matches!(error(utf16), SitemapError::NotUtf8(0)));
        assert!(matches!(error(&utf16[2..]), SitemapError::NotUtf8(0)));
        assert!(matches!(
            error(b"<urlset>\xff</urlset>"),
            SitemapError::NotUtf8(8)
        ));
        for empty in ["<!-- -->", "<urlset/>", "<sitemapindex/>", "\n"] {
            assert!(matches!(error(empty.as_bytes()), SitemapError::NoUrl));
        }
        assert!(matches!(
            error("<a>".repeat(100).as_bytes()),
            SitemapError::OtherDocument(_)
        ));
        let deep = format!("<urlset>{}", "<a>".repeat(100));
        assert!(matches!(error(deep.as_bytes()), SitemapError::TooDeep));
        let place = |text: &str| {
            let span = Sitemap::parse(text.as_bytes()).expect_err("a mistake").span;
            span.map(|span| (span.line, span.column))
        };
        assert_eq!(
            place("<urlset>\n <url>ä&nbsp;</url></urlset>"),
            Some((2, 8))
        );
        let many = "https://a.example/\n".repeat(MAX_URLS + 1);
        assert!(matches!(error(many.as_bytes()), SitemapError::TooManyUrls));
    }
}
