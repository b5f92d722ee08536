//! Answers of the decision service, which a proxy asks whether a request may pass:
//!
//! - [`passed`]: it may, with the header fields that the proxy is to add to the response.
//! - [`refused_for_nginx`]: a refusal as 403 without a body, because `auth_request` of nginx
//!   understands only 401 and 403.
//! - [`retry_later`]: a refusal for Envoy, with 429 in place of 5xx, which Envoy takes for a
//!   service that is down.
//! - [`malformed_question`]: a refusal, because the question cannot be read.
//! - [`moved_to`]: a redirect to the usual spelling of a file that crawlgate serves, such as
//!   `/robots.txt`.
//! - [`not_served`]: 404, because crawlgate has no answer of its own.
//! - [`asked_in_a_loop`]: 508, because crawlgate fetches the origin's robots.txt and the proxy asks
//!   crawlgate for it.

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
/// The classes of content types: the field with the tags of a class, the beginning of its types,
/// and a type that stands for it.
const CLASSES: [(Field, &str, &str); 5] = [
    (Field::TagsHtml, "text/html", "text/html"),
    (Field::TagsPdf, "application/pdf", "application/pdf"),
    (Field::TagsImage, "image/", "image/png"),
    (Field::TagsVideo, "video/", "video/mp4"),
    (Field::TagsOther, "", "application/octet-stream"),
];

static PASS: LazyLock<Answer> = LazyLock::new(|| {
    let fields = [
        (Field::ContentLength, 0.into()),
        (Field::Decision, HeaderValue::from_static("pass")),
    ];
    Answer::new(StatusCode::OK, fields, Bytes::new())
});

/// Lets a request pass, with what the policy says about the response: its signals, its tags for
/// `content_type` (the likely type of the response), and its tags for each class of types. All tags
/// of a type are in one line, because a proxy reads one line of a field. `judged` is `None` if no
/// site has the host: then nothing is added.
pub fn passed(judged: Option<(&Decision, &SiteEntry)>, content_type: &str) -> Answer {
    let Some((decision, entry)) = judged else {
        return PASS.clone();
    };
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
    if let Some(line) = tags(entry, decision, content_type) {
        answer = answer.with(Field::XRobotsTag, line);
    }
    let own = CLASSES
        .iter()
        .position(|(_, class, _)| content_type.starts_with(class));
    for (place, (field, _, media)) in CLASSES.iter().enumerate() {
        let media = if own == Some(place) {
            content_type
        } else {
            media
        };
        if let Some(line) = tags(entry, decision, media) {
            answer = answer.with(*field, line);
        }
    }
    answer
}

/// The tags for a content type, in one line.
fn tags(entry: &SiteEntry, decision: &Decision, content_type: &str) -> Option<HeaderValue> {
    let content_type = Some(content_type.as_bytes());
    let tags = &entry.site.tags;
    in_one_line(&*tags.tags(&decision.path_rules, OK, content_type)?)
}

/// All lines as one; `None` without lines. The lines for every crawler are the first: behind a
/// crawler's name they would be read as that crawler's.
fn in_one_line(tags: &TagLines) -> Option<HeaderValue> {
    let lines: Vec<HeaderValue> = tag_values(&tags.lines).collect();
    HeaderValue::from_bytes(&joined(lines.iter().map(HeaderValue::as_bytes))?).ok()
}

/// A refusal for nginx, whose `auth_request` passes on no other one than 401 and 403, and no body.
/// `Crawlgate-Status` has the status of the complete answer.
pub fn refused_for_nginx(answer: &Answer) -> Answer {
    let status = HeaderValue::from(answer.status().as_u16());
    Answer::new(
        StatusCode::FORBIDDEN,
        [(Field::ContentLength, 0.into()), (Field::Status, status)],
        Bytes::new(),
    )
}

/// A refusal for Envoy: an answer with 5xx gets 429 in its place, any other one is returned as it
/// is. Envoy takes 5xx for a service that is down, and lets the request through.
pub fn retry_later(answer: Answer) -> Answer {
    if !answer.status().is_server_error() {
        return answer;
    }
    let fields = answer.fields().filter(|(field, _)| *field != Field::Server);
    let fields: Vec<_> = fields
        .map(|(field, value)| (field, value.clone()))
        .collect();
    Answer::new(StatusCode::TOO_MANY_REQUESTS, fields, answer.body().clone())
}

/// The answer (403) to a malformed question. Every proxy takes it for a refusal, because the
/// proxy's client may be the reason.
pub fn malformed_question(message: &str, method: &Method) -> Answer {
    in_words(StatusCode::FORBIDDEN, message, method).with(Field::Status, 403.into())
}

/// A redirect (301) to the usual spelling of a file that crawlgate serves. If the request passed,
/// the origin would show its own file.
pub fn moved_to(location: HeaderValue, method: &Method) -> Answer {
    in_words(
        StatusCode::MOVED_PERMANENTLY,
        "This file has one spelling.",
        method,
    )
    .with(Field::Location, location)
}

/// 404: crawlgate has no answer of its own. For a file, the proxy takes that of its origin.
pub fn not_served(message: &str, method: &Method) -> Answer {
    in_words(StatusCode::NOT_FOUND, message, method)
}

/// 508: crawlgate asked the origin for its robots.txt, and the proxy in front of the origin asks
/// crawlgate.
pub fn asked_in_a_loop(method: &Method) -> Answer {
    let message =
        "crawlgate asked for this file of the origin, and the proxy asks crawlgate for it";
    in_words(StatusCode::LOOP_DETECTED, message, method)
}

/// An answer with this status and sentence as plain text, without it for HEAD.
fn in_words(status: StatusCode, message: &str, method: &Method) -> Answer {
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
        for (scope, said) in [
            ("*", "noindex, noarchive"),
            ("googlebot", "nofollow, nosnippet"),
            ("bingbot", "nocache"),
        ] {
            tags.add(
                Scope::named(scope),
                &Directives::parse(said).expect("directives"),
            );
        }
        let lines = TagLines {
            lines: tags.lines(),
            tags: tags.clone(),
            origin_tags: None,
        };
        assert!(lines.lines.len() > 2);
        let line = in_one_line(&lines).expect("a line");
        assert_eq!(parse_lines([line.as_bytes()]), tags);
    }
}
