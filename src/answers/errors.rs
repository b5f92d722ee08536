//! HTTP responses that do not depend on a site's rules. [`rejection_answer`] rejects a request that
//! crawlgate cannot serve, such as a malformed one. [`challenge_answer`] answers the ACME challenge
//! of a certificate authority. [`redirect_answer`] sends a client from http to https.
//! [`origin_failure`], [`origin_full`] and [`no_origin_answer`] answer a request for which the
//! origin gives no response.

use super::answer::Answer;
use super::context::RequestToAnswer;
use super::field::STATUS;
use super::negotiate::{BodyFormat, negotiate_format};
use super::page::AnswerContent;
use crate::policy::SiteEntry;
use crate::policy::site::PageTemplate;
use crate::printable::printable;
use crate::verdict::Decision;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Why a request is rejected, whatever the policies say.
#[derive(PartialEq, Eq)]
pub enum Rejection {
    /// HTTP/1.1 without Host: a server must answer 400 (RFC 9112 section 3.2).
    NoHost,
    /// TRACE shows a client the fields that proxies added to its request; CONNECT is for other
    /// proxies.
    Method,
    /// A method other than GET and HEAD, for a file that can only be read.
    ReadOnly,
    /// The target is longer than the settings allow.
    TargetTooLong,
    /// The header fields are larger than the settings allow.
    HeadersTooLarge,
    /// The request is malformed, or two readers could understand it differently.
    Malformed,
    /// The client expects something other than a 100 (RFC 9110 section 10.1.1).
    Expectation,
    /// The request did not arrive in time.
    Timeout,
    /// The body is larger than the settings allow.
    BodyTooLarge,
    /// The request circles: an origin leads back to crawlgate.
    Loop,
    /// The request is in clear text, and the listener speaks TLS.
    NotEncrypted,
    /// There are more connections, or bytes in buffers, than the settings allow.
    Busy,
    /// The peer may not ask for decisions. Not 403: a proxy would refuse its client's request.
    Untrusted,
    /// A proxy asks about a request in a way that cannot be read. 403, which every proxy takes for
    /// a refusal: the proxy's client may have caused it, and must not pass because of it.
    Unreadable,
}

/// The most bytes of a host that an answer repeats. A name has at most 253 bytes.
const MAX_HOST: usize = 256;
/// The Retry-After of a server with too many connections.
const BUSY_RETRY_AFTER: u32 = 10;

impl Rejection {
    /// The answer in the format that `Accept` asks for. The connection is closed after it, because
    /// the rest of the request may not have been read. If only the method is wrong (405), it stays
    /// open. The field [`STATUS`] of `Unreadable` tells nginx that crawlgate refuses.
    fn answer(self, headers: &HeaderMap) -> Answer {
        use Rejection::*;

        let format = negotiate_format(headers);
        let (status, error, message) = match self {
            Method => {
                return method_not_allowed("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH", format);
            }
            ReadOnly => return method_not_allowed("GET, HEAD", format),
            Malformed => {
                return failure_page(StatusCode::BAD_REQUEST)
                    .to_answer(format)
                    .closing_connection();
            }
            NoHost => (
                StatusCode::BAD_REQUEST,
                "no_host",
                "The request does not say which host it is for.",
            ),
            NotEncrypted => (
                StatusCode::BAD_REQUEST,
                "not_encrypted",
                "This port speaks https only.",
            ),
            TargetTooLong => (
                StatusCode::URI_TOO_LONG,
                "target_too_long",
                "The URL is too long.",
            ),
            HeadersTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
                "The header fields are too large.",
            ),
            Expectation => (
                StatusCode::EXPECTATION_FAILED,
                "expectation",
                "The request expects something other than 100-continue.",
            ),
            Timeout => (
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                "The request did not arrive in time.",
            ),
            BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                "The body of the request is too large.",
            ),
            Loop => (
                StatusCode::LOOP_DETECTED,
                "loop",
                "The server of this site sends the request back to the proxy that it came from.",
            ),
            Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "There are too many connections or requests. Try again soon.",
            ),
            Untrusted => (
                StatusCode::SERVICE_UNAVAILABLE,
                "untrusted",
                "This peer may not ask for decisions. Add its address to decisions.trusted in crawlgate's settings.",
            ),
            Unreadable => (
                StatusCode::FORBIDDEN,
                "unreadable",
                "The request cannot be read, so it is blocked.",
            ),
        };
        let page = AnswerContent {
            retry_after: (self == Busy).then_some(BUSY_RETRY_AFTER),
            ..AnswerContent::new(status, error, message)
        };
        let answer = page.to_answer(format).closing_connection();
        if self == Unreadable {
            return answer.with_field(STATUS, 403.into());
        }
        answer
    }
}

/// The answer to a rejected request, in the format that it asks for.
pub fn rejection_answer(rejection: Rejection, request: &RequestToAnswer<'_>) -> Answer {
    rejection.answer(request.headers).for_method(request.method)
}

/// The answer to a challenge of a certificate authority: the file, or 404.
pub fn challenge_answer(file: Option<Vec<u8>>, request: &RequestToAnswer<'_>) -> Answer {
    let answer = match file {
        Some(file) => Answer::uncacheable(StatusCode::OK, "text/plain", None, file.into()),
        None => AnswerContent::new(
            StatusCode::NOT_FOUND,
            "no_challenge",
            "There is no such challenge.",
        )
        .to_answer(negotiate_format(request.headers)),
    };
    answer.for_method(request.method)
}

/// A permanent redirect to an https URL. For GET and HEAD the status is 301, which every client
/// knows. For other methods it is 308, which keeps the method. `None` if the URL is no valid field
/// value.
pub fn redirect_answer(location: &[u8], request: &RequestToAnswer<'_>) -> Option<Answer> {
    let value = HeaderValue::from_bytes(location).ok()?;
    let status = match *request.method {
        Method::GET | Method::HEAD => StatusCode::MOVED_PERMANENTLY,
        _ => StatusCode::PERMANENT_REDIRECT,
    };
    let page = AnswerContent::new(status, "moved", "This site is served over https.");
    Some(
        page.to_answer(negotiate_format(request.headers))
            .with_field(header::LOCATION, value)
            .for_method(request.method),
    )
}

/// A request that the origin did not answer.
pub struct UnansweredRequest<'a> {
    /// The parts of the request that the answer depends on.
    pub request: &'a RequestToAnswer<'a>,
    /// The decision and its site; `None` for a host that no site claims.
    pub judged: Option<(&'a Decision, &'a SiteEntry)>,
    /// The id of the request.
    pub request_id: &'a [u8],
}

/// The answer to a request that could not be forwarded, with the tags that the policy has for its
/// status. An invalid status becomes 500. The site's own page is used for 502 and 504.
pub fn origin_failure(status: u16, unanswered: &UnansweredRequest<'_>) -> Answer {
    let headers = unanswered.request.headers;
    let answer = match status {
        408 => Rejection::Timeout.answer(headers),
        413 => Rejection::BodyTooLarge.answer(headers),
        503 => Rejection::Busy.answer(headers),
        other => {
            let status = StatusCode::from_u16(other).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let own = unanswered
                .failure_page_template()
                .filter(|_| matches!(other, 502 | 504));
            unanswered.page_answer(AnswerContent {
                own,
                ..failure_page(status)
            })
        }
    };
    unanswered.add_tags_and_request_id(answer)
}

/// The answer (503) to a request for which no server of the origin has a place. `retry_after` is in
/// seconds.
pub fn origin_full(retry_after: u32, unanswered: &UnansweredRequest<'_>) -> Answer {
    let message = "This site has too many visitors at the moment. Please try again soon.";
    unanswered.add_tags_and_request_id(unanswered.page_answer(AnswerContent {
        own: unanswered.failure_page_template(),
        links_robots_txt: false,
        retry_after: Some(retry_after),
        ..AnswerContent::new(StatusCode::SERVICE_UNAVAILABLE, "full", message)
    }))
}

/// The answer (502) to a request for a host without an origin. Not 4xx: search engines would drop
/// the pages of a host that was forgotten in the settings. The page names the host, truncated and
/// without control characters.
pub fn no_origin_answer(host: &[u8], unanswered: &UnansweredRequest<'_>) -> Answer {
    let host = printable(&host[..host.len().min(MAX_HOST)]);
    let message = if host.is_empty() {
        "The request names no host, and no origin is configured for that.".to_owned()
    } else {
        format!("No origin is configured for the host {host}.")
    };
    let page = AnswerContent::new(StatusCode::BAD_GATEWAY, "no_origin", message);
    unanswered.add_tags_and_request_id(unanswered.page_answer(AnswerContent {
        own: unanswered.failure_page_template(),
        links_robots_txt: false,
        ..page
    }))
}

impl<'a> UnansweredRequest<'a> {
    /// The site's own page for failures, if the policy has one.
    fn failure_page_template(&self) -> Option<&'a PageTemplate> {
        self.judged
            .and_then(|(_, entry)| entry.site.pages.failure.as_ref())
    }

    /// The page as an answer in the format that the request asks for. The connection is closed
    /// after it.
    fn page_answer(&self, page: AnswerContent<'a>) -> Answer {
        let request_id = std::str::from_utf8(self.request_id).ok();
        AnswerContent { request_id, ..page }
            .to_answer(negotiate_format(self.request.headers))
            .closing_connection()
    }

    /// Adds the policy's tags and the request's id, and removes the body for HEAD.
    fn add_tags_and_request_id(&self, answer: Answer) -> Answer {
        let answer = match self.judged {
            Some((decision, entry)) => answer.with_tags(entry, decision),
            None => answer,
        };
        answer
            .with_request_id(self.request_id)
            .for_method(self.request.method)
    }
}

/// A 405, which names the allowed methods. The connection stays open.
fn method_not_allowed(allowed: &'static str, format: BodyFormat) -> Answer {
    let message = format!("This method is not allowed here. Allowed: {allowed}.");
    let page = AnswerContent::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        message,
    );
    page.to_answer(format)
        .with_field(header::ALLOW, HeaderValue::from_static(allowed))
}

/// The page for a failure with this status. Every status except 400, 502 and 504 has the text of an
/// internal error.
fn failure_page(status: StatusCode) -> AnswerContent<'static> {
    let (error, message) = match status {
        StatusCode::BAD_REQUEST => ("bad_request", "The request could not be understood."),
        StatusCode::BAD_GATEWAY => (
            "bad_gateway",
            "This site is not available at the moment. Please try again in a few minutes.",
        ),
        StatusCode::GATEWAY_TIMEOUT => (
            "gateway_timeout",
            "This site takes too long to answer at the moment. Please try again in a few minutes.",
        ),
        _ => (
            "internal_error",
            "Something went wrong here. Please try again in a few minutes.",
        ),
    };
    AnswerContent {
        links_robots_txt: false,
        ..AnswerContent::new(status, error, message)
    }
}
