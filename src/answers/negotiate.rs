//! Content negotiation for errors, refusals and pauses. [`negotiate_format`] reads `Accept` and
//! returns the [`BodyFormat`] of the answer: plain text, HTML or JSON. Quality values and wildcards
//! are ignored.

use crate::heads::{has_media_type, list_members};
use http::{HeaderMap, header};

use BodyFormat::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyFormat {
    Text,
    Html,
    Json,
}

impl BodyFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            Text => "text/plain; charset=utf-8",
            Html => "text/html; charset=utf-8",
            Json => "application/json",
        }
    }
}

/// HTML if `Accept` names `text/html`, else JSON if it names `application/json`, else text.
pub fn negotiate_format(headers: &HeaderMap) -> BodyFormat {
    if accept_names(headers, b"text/html") {
        Html
    } else if accept_names(headers, b"application/json") {
        Json
    } else {
        Text
    }
}

/// Whether `Accept` names this media type, with any parameters.
fn accept_names(headers: &HeaderMap, media_type: &[u8]) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .flat_map(|line| list_members(line.as_bytes()))
        .any(|member| has_media_type(member, media_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn negotiate(accept: &'static str) -> BodyFormat {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        negotiate_format(&headers)
    }

    #[test]
    fn accept_decides_the_format_and_text_is_the_default() {
        assert_eq!(
            negotiate("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            BodyFormat::Html
        );
        assert_eq!(negotiate("application/json"), BodyFormat::Json);
        assert_eq!(
            negotiate("application/json, TEXT/HTML ; q=0.1"),
            BodyFormat::Html
        );
        assert_eq!(
            negotiate("text/plain, application/json;q=0.1"),
            BodyFormat::Json
        );
        assert_eq!(negotiate("text/*"), BodyFormat::Text);
        assert_eq!(negotiate("*/*"), BodyFormat::Text);
        assert_eq!(negotiate("image/avif"), BodyFormat::Text);
        assert_eq!(negotiate(""), BodyFormat::Text);
        assert_eq!(negotiate_format(&HeaderMap::new()), BodyFormat::Text);
    }
}
