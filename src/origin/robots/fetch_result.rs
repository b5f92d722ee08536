//! [`FetchResult`]: the result of fetching a robots.txt from an origin. A [`FetchFailure`] is the
//! reason why there is no usable response. [`find_defect`] detects bodies that are no robots.txt,
//! and [`truncate_body`] limits their size.

use crate::robots::{FileFormat, MAX_ROBOTS_BYTES, RobotsFile};
use serde::{Deserialize, Serialize};

use FileFormat::*;

/// The result of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchResult {
    /// A 200 with a body.
    File {
        /// The bytes. Those beyond 500 KiB may be cut off.
        bytes: Vec<u8>,
        /// Their URL, after redirects.
        url: String,
        /// The `ETag` of the answer.
        etag: Option<String>,
        /// The `Last-Modified` of the answer.
        last_modified: Option<String>,
        /// Whether the answer has the media type of HTML.
        html: bool,
    },
    /// 304: the copy is current.
    Unchanged,
    /// 4xx except 429, or too many redirects. Crawlers treat the site as one without rules (RFC
    /// 9309 section 2.3.1.3).
    NoFile {
        /// The URL that was asked for.
        url: String,
        /// Why, for a person.
        reason: String,
    },
    /// 5xx, 429, or an incomplete answer. Crawlers stay away (RFC 9309 section 2.3.1.4).
    Unreachable(FetchFailure),
}

/// Why an origin gave no usable response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct FetchFailure {
    /// For a person.
    pub reason: String,
    /// Whether the origin redirects to its public name, which is crawlgate's, or to a URL that
    /// crawlgate does not follow.
    pub is_redirect: bool,
    /// Whether a server gave no answer at all, so that every site that it has fails alike. The reason
    /// names the server.
    #[serde(default)]
    pub is_server_down: bool,
    /// Whether the server accepted the connection and closed it without an answer, as PHP-FPM does.
    #[serde(skip)]
    pub is_other_protocol: bool,
}

impl FetchFailure {
    /// The origin redirects to a URL that crawlgate does not follow.
    pub fn redirect_refused(url: &str, why: impl std::fmt::Display) -> FetchFailure {
        FetchFailure {
            is_redirect: true,
            ..format!(
                "it redirects to {url}, and {why}; crawlgate follows redirects to the hosts of the site, to the \
                 servers of the origin, and to public addresses over https"
            )
            .into()
        }
    }
}

impl<T: Into<String>> From<T> for FetchFailure {
    fn from(reason: T) -> FetchFailure {
        FetchFailure {
            reason: reason.into(),
            ..FetchFailure::default()
        }
    }
}

impl FetchResult {
    /// The result as crawlers read it: a page of HTML is a file without rules. For default sites,
    /// because single-page apps answer every request with their page.
    pub fn into_crawler_reading(self) -> FetchResult {
        match self {
            FetchResult::File {
                bytes, url, html, ..
            } if RobotsFile::parse(bytes.as_slice()).is_html_page(html) => FetchResult::NoFile {
                url,
                reason: "the answer is an HTML page, in which crawlers find no rules".into(),
            },
            other => other,
        }
    }
}

/// Why the body of a response is no robots.txt; `None` if it is one. `html`: the response has the
/// media type of HTML.
pub fn find_defect(file: &RobotsFile, html: bool) -> Option<&'static str> {
    match file.shape() {
        Html => Some("this is an HTML page, not a robots.txt"),
        Utf16 => Some("this is UTF-16, which no crawler reads"),
        Text if !file.is_html_page(true) => None,
        Text if file.bytes().contains(&0) => Some("this is not text"),
        Text => html.then_some("its media type is HTML, and it has no line of a robots.txt"),
    }
}

/// Truncates a body of more than the 500 KiB that crawlers read to `max` bytes, at the end of a line,
/// because half a line would be another rule. Returns a note for a person; `None` if the body is
/// shorter.
pub fn truncate_body(bytes: &mut Vec<u8>, max: usize) -> Option<&'static str> {
    if bytes.len() <= MAX_ROBOTS_BYTES {
        return None;
    }
    bytes.truncate(max);
    let end = memchr::memrchr2(b'\n', b'\r', bytes).map_or(0, |place| place + 1);
    bytes.truncate(end);
    Some(
        "the file is larger than 500 KiB, and crawlers read no more than that; crawlgate leaves out the rest",
    )
}
