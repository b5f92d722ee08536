//! Content negotiation for errors, refusals and pauses (RFC 9110 section 12.5.1). [`form`] reads
//! `Accept` and returns the [`Form`] of the answer: plain text, HTML or JSON.

use http::{HeaderMap, header};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Text,
    Html,
    Json,
}

impl Form {
    /// All forms, in the order of their numbers.
    pub const ALL: [Form; 3] = [Form::Text, Form::Html, Form::Json];

    pub fn content_type(self) -> &'static str {
        match self {
            Form::Text => "text/plain; charset=utf-8",
            Form::Html => "text/html; charset=utf-8",
            Form::Json => "application/json",
        }
    }

    /// Type and subtype, as `Accept` names them.
    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            Form::Text => ("text", "plain"),
            Form::Html => ("text", "html"),
            Form::Json => ("application", "json"),
        }
    }
}

/// Members of Accept that are read; no client needs more.
const MEMBERS: usize = 32;

/// The form with the highest quality in `Accept`; text without `Accept`, or if it allows none of
/// them. The most specific range that matches a form gives its quality. Of forms with the same
/// quality, the one with the more specific range wins, then the first of text, HTML, JSON.
pub fn form(headers: &HeaderMap) -> Form {
    if !headers.contains_key(header::ACCEPT) {
        return Form::Text;
    }
    let mut best = (Form::Text, 0, 0);
    for form in Form::ALL {
        let (quality, specificity) = preference(headers, form);
        if (quality, specificity) > (best.1, best.2) {
            best = (form, quality, specificity);
        }
    }
    best.0
}

/// The quality of a form in thousandths, and how specifically `Accept` names it: 1 for `*/*`, 2 for
/// `text/*`, 3 by itself; both 0 if it does not. Of equal ranges the first counts.
fn preference(headers: &HeaderMap, form: Form) -> (u16, u8) {
    let (kind, subtype) = form.media_type();
    let lines = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok());
    let mut found = (0, 0);
    for member in lines.flat_map(|line| line.split(',')).take(MEMBERS) {
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
            found = (quality(parts), specificity);
        }
    }
    found
}

/// The quality (`q`) among the parameters of a range, in thousandths: 1000 without one, 0 if it is
/// no number from 0 to 1.
fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
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

    fn asked(accept: &'static str) -> Form {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        form(&headers)
    }

    #[test]
    fn browsers_get_html_programs_json_and_everybody_else_text() {
        assert_eq!(
            asked("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            Form::Html
        );
        assert_eq!(asked("application/json"), Form::Json);
        assert_eq!(asked("application/json;q=0.9, text/*;q=0.5"), Form::Json);
        assert_eq!(asked("*/*"), Form::Text);
        assert_eq!(asked("image/avif"), Form::Text);
        assert_eq!(asked(""), Form::Text);
        assert_eq!(form(&HeaderMap::new()), Form::Text);
    }

    #[test]
    fn qualities_decide_and_nonsense_counts_for_nothing() {
        assert_eq!(asked("text/html;q=0.1, application/json;q=0.2"), Form::Json);
        assert_eq!(asked("text/plain;q=0, text/html;q=0.001"), Form::Html);
        assert_eq!(asked("text/html;q=NaN, application/json;q=0.1"), Form::Json);
        assert_eq!(asked("TEXT/HTML ; Q=1.0"), Form::Html);
    }
}
