//! Answers to a proxy that asks whether a request may pass: yes, with the fields that the proxy adds to its response; no, in
//! the one form that nginx understands; and what is wrong with the question.

use super::answer::Answer;
use super::field::Field;
use crate::heads::{joined, tag_values};
use crate::policy::SiteEntry;
use crate::policy::site::TagLines;
use crate::verdict::Decision;
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use std::sync::LazyLock;

/// The status that a page most likely has.
const OK: u16 = 200;
/// Types that stand for their class, and the field that says how responses of the class are tagged.
const CLASSES: [(Field, &str, &str); 5] = [
    (Field::TagsHtml, "text/html", "text/html"),
    (Field::TagsPdf, "application/pdf", "application/pdf"),
    (Field::TagsImage, "image/", "image/png"),
    (Field::TagsVideo, "video/", "video/mp4"),
    (Field::TagsOther, "", "application/octet-stream"),
];

static PASS: LazyLock<Answer> = LazyLock::new(|| {
    let fields = [(Field::ContentLength, 0.into()), (Field::Decision, HeaderValue::from_static("pass"))];
    Answer::new(StatusCode::OK, fields, Bytes::new())
});

/// The request may pass. With what the policy says about the response: its signals, its tags if the response is of
/// `content_type`, and its tags for each class of types. A proxy that reads one line of a field gets all tags in one.
pub fn passed(judged: Option<(&Decision, &SiteEntry)>, content_type: &str) -> Answer {
    let Some((decision, entry)) = judged else { return PASS.clone() };
    let mut answer = PASS.clone();
    for (name, value) in entry.site.signals.fields(decision.signals) {
        let field = Field::of_signal(name);
        // A policy puts no control character there.
        if let (Some(field), Ok(value)) = (field, HeaderValue::from_str(value)) {
            answer = answer.with(field, value);
        }
    }
    if decision.path_rules.is_empty() {
        return answer;
    }
    let tags = |media: &str| in_one_line(&*entry.site.tags.tags(&decision.path_rules, OK, Some(media.as_bytes()))?);
    if let Some(line) = tags(content_type) {
        answer = answer.with(Field::XRobotsTag, line);
    }
    let own = CLASSES.iter().position(|(_, class, _)| content_type.starts_with(class));
    for (place, (field, _, media)) in CLASSES.iter().enumerate() {
        let media = if own == Some(place) { content_type } else { media };
        if let Some(line) = tags(media) {
            answer = answer.with(*field, line);
        }
    }
    answer
}

/// All lines in one. The lines for every crawler stand first, so that no crawler's name is read as theirs.
fn in_one_line(tags: &TagLines) -> Option<HeaderValue> {
    let lines: Vec<HeaderValue> = tag_values(&tags.lines).collect();
    HeaderValue::from_bytes(&joined(lines.iter().map(HeaderValue::as_bytes))?).ok()
}

/// The request may not pass, for nginx: `auth_request` knows 403 alone. `Crawlgate-Status` says that crawlgate refuses, and
/// the status of the complete answer.
pub fn referred(answer: &Answer) -> Answer {
    let status = HeaderValue::from(answer.status().as_u16());
    Answer::new(StatusCode::FORBIDDEN, [(Field::ContentLength, 0.into()), (Field::Status, status)], Bytes::new())
}

/// The request may not pass, for Envoy, which takes 5xx for a service that is down and lets the request through.
pub fn retry_later(answer: Answer) -> Answer {
    if !answer.status().is_server_error() {
        return answer;
    }
    let fields = answer.fields().filter(|(field, _)| *field != Field::Server);
    let fields: Vec<_> = fields.map(|(field, value)| (field, value.clone())).collect();
    Answer::new(StatusCode::TOO_MANY_REQUESTS, fields, answer.body().clone())
}

/// crawlgate cannot understand the question. A refusal to every proxy: the request that it asks about may be the reason.
pub fn misasked(message: &str, method: &Method) -> Answer {
    said(StatusCode::FORBIDDEN, message, method).with(Field::Status, 403.into())
}

/// The request is for a file of crawlgate's in another spelling, and is led to this one. To a request that passes, the
/// origin would show its own file.
pub fn led_to(location: HeaderValue, method: &Method) -> Answer {
    said(StatusCode::MOVED_PERMANENTLY, "This file has one spelling.", method).with(Field::Location, location)
}

/// crawlgate has no answer of its own: the proxy takes its origin's.
pub fn not_here(message: &str, method: &Method) -> Answer {
    said(StatusCode::NOT_FOUND, message, method)
}

/// crawlgate asked the origin for its file, and the question came back.
pub fn led_back(method: &Method) -> Answer {
    let message = "crawlgate asked for this file of the origin, and the proxy asks crawlgate for it";
    said(StatusCode::LOOP_DETECTED, message, method)
}

fn said(status: StatusCode, message: &str, method: &Method) -> Answer {
    let body = Bytes::from(format!("{message}\n"));
    Answer::uncached(status, "text/plain; charset=utf-8", None, body).in_reply_to(method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexing::{Directives, Scope, Tags, parse_lines};

    #[test]
    fn lines_of_several_scopes_mean_the_same_when_joined() {
        let mut tags = Tags::default();
        for (scope, said) in [("*", "noindex, noarchive"), ("googlebot", "nofollow, nosnippet"), ("bingbot", "nocache")]
        {
            tags.add(Scope::named(scope), &Directives::parse(said).expect("directives"));
        }
        let lines = TagLines { lines: tags.lines(), tags: tags.clone(), origin_tags: None };
        assert!(lines.lines.len() > 2);
        let line = in_one_line(&lines).expect("a line");
        assert_eq!(parse_lines([line.as_bytes()]), tags);
    }
}
