//! Answers of the decision service, which another reverse proxy asks whether a request may pass:
//!
//! - [`allow_answer`]: the request may pass, with the header fields that the proxy adds to the
//!   response.
//! - [`nginx_refusal`]: a block as 403 without a body, because nginx's `auth_request` understands
//!   only 401 and 403.
//! - [`envoy_refusal`]: a block for Envoy, with 429 in place of 5xx, because Envoy takes 5xx for a
//!   service that is down.
//! - [`malformed_query`]: a block, because the query cannot be read.
//! - [`redirect_to_file`]: a redirect to the usual spelling of a file that crawlgate serves, such
//!   as `/robots.txt`.
//! - [`not_found`]: 404, if the proxy asks for an answer and crawlgate has none of its own.
//! - [`healthy`]: 200 for a health check of the proxy.
//! - [`loop_detected`]: 508, if crawlgate fetches the origin's robots.txt and the proxy in front of
//!   the origin asks crawlgate for this file.

use super::answer::Answer;
use super::field::{DECISION, STATUS};
use crate::heads::{X_ROBOTS_TAG, join_lines, tag_values};
use crate::policy::SiteEntry;
use crate::policy::site::TagLines;
use crate::verdict::Decision;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use std::sync::LazyLock;

/// The likely status of a page.
const LIKELY_STATUS: u16 = 200;
/// The classes of content types: the field with the tags of a class, the beginning of its types,
/// and an example of its types.
const CONTENT_CLASSES: [(&str, &str, &str); 5] = [
    ("crawlgate-tags-html", "text/html", "text/html"),
    ("crawlgate-tags-pdf", "application/pdf", "application/pdf"),
    ("crawlgate-tags-image", "image/", "image/png"),
    ("crawlgate-tags-video", "video/", "video/mp4"),
    ("crawlgate-tags-other", "", "application/byte-stream"),
];

static PASS_ANSWER: LazyLock<Answer> = LazyLock::new(|| {
    let fields = [
        (header::CONTENT_LENGTH, 0.into()),
        (DECISION, HeaderValue::from_static("pass")),
    ];
    Answer::new(StatusCode::OK, fields, Bytes::new())
});

/// Lets a request pass, with what the policy says about the response: its signals, its tags for
/// `content_type` (the likely type of the response), and its tags for each class of types. All tags
/// of a type are in one line, because a proxy reads one line of a field. `judged` is `None` if no
/// site has the host: then nothing is added.
pub fn allow_answer(judged: Option<(&Decision, &SiteEntry)>, content_type: &str) -> Answer {
    let Some((decision, entry)) = judged else {
        return PASS_ANSWER.clone();
    };
    let mut answer = PASS_ANSWER.clone();
    for (name, value) in entry.site.signals.fields(decision.signals) {
        let name = HeaderName::from_bytes(name.as_bytes());
        // A policy puts no control character there.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            answer = answer.with_field(name, value);
        }
    }
    if decision.path_rules.is_empty() {
        return answer;
    }
    if let Some(line) = tag_line(entry, decision, content_type) {
        answer = answer.with_field(X_ROBOTS_TAG, line);
    }
    let own = CONTENT_CLASSES
        .iter()
        .position(|(_, class, _)| content_type.starts_with(class));
    for (place, (name, _, media)) in CONTENT_CLASSES.iter().enumerate() {
        let media = if own == Some(place) {
            content_type
        } else {
            media
        };
        if let Some(line) = tag_line(entry, decision, media) {
            answer = answer.with_field(HeaderName::from_static(name), line);
        }
    }
    answer
}

/// The tags for a content type, in one line.
fn tag_line(entry: &SiteEntry, decision: &Decision, content_type: &str) -> Option<HeaderValue> {
    let content_type = Some(content_type.as_bytes());
    let tags = &entry.site.tags;
    join_tag_lines(&*tags.tags(&decision.path_rules, LIKELY_STATUS, content_type)?)
}

/// All lines as one; `None` without lines. The lines for every crawler come first: after a
/// crawler's name they would be read as lines for that crawler.
fn join_tag_lines(tags: &TagLines) -> Option<HeaderValue> {
    let lines: Vec<HeaderValue> = tag_values(&tags.lines).collect();
    HeaderValue::from_bytes(&join_lines(lines.iter().map(HeaderValue::as_bytes))?).ok()
}

/// A refusal for nginx: 403 without a body, because `auth_request` understands only 401 and 403.
/// `Crawlgate-Status` has the status of the complete answer.
pub fn nginx_refusal(answer: &Answer) -> Answer {
    let status = HeaderValue::from(answer.status().as_u16());
    Answer::new(
        StatusCode::FORBIDDEN,
        [(header::CONTENT_LENGTH, 0.into()), (STATUS, status)],
        Bytes::new(),
    )
}

/// A refusal for Envoy: a status 5xx becomes 429. Envoy takes 5xx for a service that is down, and
/// lets the request through.
pub fn envoy_refusal(answer: Answer) -> Answer {
    if !answer.status().is_server_error() {
        return answer;
    }
    let fields = answer
        .fields()
        .filter(|(field, _)| *field != header::SERVER);
    let fields: Vec<_> = fields
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    Answer::new(StatusCode::TOO_MANY_REQUESTS, fields, answer.body().clone())
}

/// The answer (403) to a malformed query. Every proxy takes it for a refusal, because the proxy's
/// client may be the reason.
pub fn malformed_query(message: &str, method: &Method) -> Answer {
    plain_text(StatusCode::FORBIDDEN, message, method).with_field(STATUS, 403.into())
}

/// A redirect (301) to the usual spelling of a file that crawlgate serves. If the request passed,
/// the origin would show its own file.
pub fn redirect_to_file(location: HeaderValue, method: &Method) -> Answer {
    plain_text(
        StatusCode::MOVED_PERMANENTLY,
        "This file has only one spelling.",
        method,
    )
    .with_field(header::LOCATION, location)
}

/// 404: crawlgate has no answer of its own. For a file, the proxy takes that of its origin.
pub fn not_found(message: &str, method: &Method) -> Answer {
    plain_text(StatusCode::NOT_FOUND, message, method)
}

/// 200 for a health check of the proxy: the service answers.
pub fn healthy(method: &Method) -> Answer {
    plain_text(StatusCode::OK, "ok", method)
}

/// 508: crawlgate asked the origin for its robots.txt, and the proxy in front of the origin asks
/// crawlgate.
pub fn loop_detected(method: &Method) -> Answer {
    let message = "The proxy answered crawlgate's own request for this file by asking crawlgate.";
    plain_text(StatusCode::LOOP_DETECTED, message, method)
}

/// An answer with this sentence as plain text.
fn plain_text(status: StatusCode, message: &str, method: &Method) -> Answer {
    let body = Bytes::from(format!("{message}\n"));
    Answer::uncacheable(status, "text/plain; charset=utf-8", None, body).for_method(method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexing::{Directives, RobotsTags, TagScope, parse_lines};

    #[test]
    fn joined_lines_of_several_scopes_keep_their_meaning() {
        let mut tags = RobotsTags::default();
        for (scope, directives) in [
            ("*", "noindex, noarchive"),
            ("googlebot", "nofollow, nosnippet"),
            ("bingbot", "nocache"),
        ] {
            tags.add(
                TagScope::from_name(scope),
                &Directives::parse(directives).expect("directives"),
            );
        }
        let lines = TagLines {
            lines: tags.lines(),
            tags: tags.clone(),
            origin_tags: None,
        };
        assert!(lines.lines.len() > 2);
        let line = join_tag_lines(&lines).expect("a line");
        assert_eq!(parse_lines([line.as_bytes()]), tags);
    }
}
