//! Content negotiation for errors, refusals and pauses (RFC 9110 section 12.5.1).
//! [`negotiate_format`] reads `Accept` and returns the [`BodyFormat`] of the answer: plain text,
//! HTML or JSON.

use http::{HeaderMap, header};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyFormat {
    Text,
    Html,
    Json,
}

impl BodyFormat {
    /// All formats, in the order of their discriminants.
    pub const ALL: [BodyFormat; 3] = [BodyFormat::Text, BodyFormat::Html, BodyFormat::Json];

    pub fn content_type(self) -> &'static str {
        match self {
            BodyFormat::Text => "text/plain; charset=utf-8",
            BodyFormat::Html => "text/html; charset=utf-8",
            BodyFormat::Json => "application/json",
        }
    }

    /// Type and subtype, as `Accept` names them.
    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            BodyFormat::Text => ("text", "plain"),
            BodyFormat::Html => ("text", "html"),
            BodyFormat::Json => ("application", "json"),
        }
    }
}

/// The most members of Accept that are read. No client needs more.
const MAX_MEMBERS: usize = 32;

/// The format with the highest quality in `Accept`; text without `Accept`, or if it allows none of
/// them. The most specific range that matches a format gives its quality. Of formats with the same
/// quality, the one with the more specific range wins, then the first of text, HTML, JSON.
pub fn negotiate_format(headers: &HeaderMap) -> BodyFormat {
    if !headers.contains_key(header::ACCEPT) {
        return BodyFormat::Text;
    }
    let mut best = (BodyFormat::Text, 0, 0);
    for format in BodyFormat::ALL {
        let (quality, specificity) = accept_preference(headers, format);
        if (quality, specificity) > (best.1, best.2) {
            best = (format, quality, specificity);
        }
    }
    best.0
}

/// The quality of a format in thousandths, and how specifically `Accept` names it: 1 for `*/*`, 2
/// for `text/*`, 3 for `text/html`; both 0 if it does not. Of equal ranges the first counts.
fn accept_preference(headers: &HeaderMap, format: BodyFormat) -> (u16, u8) {
    let (kind, subtype) = format.media_type();
    let lines = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok());
    let mut found = (0, 0);
    for member in lines.flat_map(|line| line.split(',')).take(MAX_MEMBERS) {
        let mut parts = member.split(';').map(str::trim);
        let Some((their_kind, their_subtype)) =
            parts.next().and_then(|range| range.split_once('/'))
        else {
            continue;
        };
        let specificity = if their_kind.eq_ignore_ascii_case(kind)
            && their_subtype.eq_ignore_ascii_case(subtype)
        {
            3
        } else if their_kind.eq_ignore_ascii_case(kind) && their_subtype == "*" {
            2
        } else if their_kind == "*" && their_subtype == "*" {
            1
        } else {
            continue;
        };
        if specificity > found.1 {
            found = (parse_quality(parts), specificity);
        }
    }
    found
}

/// The quality (`q`) among the parameters of a range, in thousandths: 1000 without one, 0 if it is
/// no number from 0 to 1.
fn parse_quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
    let value = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("q")
            .then_some(value.trim())
    });
    match value.map(str::parse::<f32>) {
        None => 1000,
        Some(Ok(value)) if (0.0..=1.0).contains(&value) => (value * 1000.0) as u16,
        Some(_) => 0,
    }
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
            negotiate("application/json;q=0.9, text/*;q=0.5"),
            BodyFormat::Json
        );
        assert_eq!(negotiate("*/*"), BodyFormat::Text);
        assert_eq!(negotiate("image/avif"), BodyFormat::Text);
        assert_eq!(negotiate(""), BodyFormat::Text);
        assert_eq!(negotiate_format(&HeaderMap::new()), BodyFormat::Text);
    }

    #[test]
    fn highest_valid_quality_wins() {
        assert_eq!(
            negotiate("text/html;q=0.1, application/json;q=0.2"),
            BodyFormat::Json
        );
        assert_eq!(
            negotiate("text/plain;q=0, text/html;q=0.001"),
            BodyFormat::Html
        );
        assert_eq!(
            negotiate("text/html;q=NaN, application/json;q=0.1"),
            BodyFormat::Json
        );
        assert_eq!(negotiate("TEXT/HTML ; Q=1.0"), BodyFormat::Html);
    }
}
