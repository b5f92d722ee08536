//! Answers that no policy asks for. [`rejection`] refuses a request that crawlgate cannot serve.
//! [`challenge`] answers a certificate authority. [`redirect`] sends a client to https.
//! [`failure`], [`full`] and [`no_origin`] take the place of an origin's response. A rejection is
//! made once in each form: text, HTML and JSON.

use super::answer::Answer;
use super::field::Field;
use super::negotiate::{Form, form};
use super::page::{Page, Reader};
use super::ruling::Asked;
use crate::policy::SiteEntry;
use crate::policy::site::PageTemplate;
use crate::printable::printable;
use crate::verdict::Decision;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::sync::OnceLock;

/// Why a request is rejected, whatever the policies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The request is in clear text, and the listener speaks TLS.
    NotEncrypted,
    /// There are more connections, or octets in buffers, than the settings allow.
    Busy,
    /// The peer may not ask for decisions. Not 403: a proxy would refuse its client's request.
    Untrusted,
    /// A proxy asks about a request in a way that cannot be read. 403, which every proxy takes for
    /// a refusal: the proxy's client may have caused it, and must not pass that way.
    Unreadable,
}

/// The longest host that an answer repeats. A name has at most 253 octets.
const MAX_HOST: usize = 256;
/// The Retry-After of a server with too many connections.
const BUSY_RETRY: u32 = 10;

/// One answer in each form, in the order of [`Form::ALL`].
type Forms = [Answer; 3];

/// The answers to rejected requests, in the order of [`Rejection`].
static REJECTIONS: [OnceLock<Forms>; Rejection::Unreadable as usize + 1] =
    [const { OnceLock::new() }; Rejection::Unreadable as usize + 1];

impl Rejection {
    /// The answer in the form that `Accept` asks for. All forms are made when the first one is
    /// needed.
    fn answer(self, headers: &HeaderMap) -> Answer {
        REJECTIONS[self as usize].get_or_init(|| self.forms())[form(headers) as usize].clone()
    }

    /// Makes the answer in each form. The connection ends after it, except where only the method is
    /// wrong (405).
    fn forms(self) -> Forms {
        let (status, error, message) = match self {
            Rejection::Method => {
                return wrong_method("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH");
            }
            Rejection::ReadOnly => return wrong_method("GET, HEAD"),
            Rejection::Malformed => return closing(&failure_page(StatusCode::BAD_REQUEST)),
            Rejection::NoHost => (
                StatusCode::BAD_REQUEST,
                "no_host",
                "The request does not say which host it is for.",
            ),
            Rejection::NotEncrypted => (
                StatusCode::BAD_REQUEST,
                "not_encrypted",
                "This port speaks https only.",
            ),
            Rejection::TargetTooLong => (
                StatusCode::URI_TOO_LONG,
                "target_too_long",
                "The URL is too long.",
            ),
            Rejection::HeadersTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
                "The header fields are too large.",
            ),
            Rejection::Expectation => (
                StatusCode::EXPECTATION_FAILED,
                "expectation",
                "The request expects something other than 100-continue.",
            ),
            Rejection::Timeout => (
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                "The request did not arrive in time.",
            ),
            Rejection::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                "The body of the request is too large.",
            ),
            Rejection::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "There are too many connections or requests. Try again soon.",
            ),
            Rejection::Untrusted => (
                StatusCode::SERVICE_UNAVAILABLE,
                "untrusted",
                "This peer may not ask for decisions: `decisions.trusted` of crawlgate's settings names those that may.",
            ),
            Rejection::Unreadable => (
                StatusCode::FORBIDDEN,
                "unreadable",
                "The request cannot be read, so it is refused.",
            ),
        };
        let page = Page {
            retry_after: (self == Rejection::Busy).then_some(BUSY_RETRY),
            ..Page::new(status, error, message)
        };
        let forms = closing(&page);
        match self {
            // By this field nginx knows that crawlgate refuses.
            Rejection::Unreadable => forms.map(|answer| answer.with(Field::Status, 403.into())),
            _ => forms,
        }
    }
}

/// The answer to a rejected request, in the form that it asks for, and without a body for HEAD.
pub fn rejection(rejection: Rejection, asked: &Asked<'_>) -> Answer {
    rejection.answer(asked.headers).in_reply_to(asked.method)
}

/// The answer to a certificate authority that checks who controls a host: the file that it asks
/// for, or 404.
pub fn challenge(file: Option<Vec<u8>>, asked: &Asked<'_>) -> Answer {
    let answer = match file {
        Some(file) => Answer::uncached(StatusCode::OK, "text/plain", None, file.into()),
        None => Page::new(
            StatusCode::NOT_FOUND,
            "no_challenge",
            "There is no such challenge.",
        )
        .answer(form(asked.headers)),
    };
    answer.in_reply_to(asked.method)
}

/// A permanent redirect to this URL, for a listener that redirects to https. For GET and HEAD the
/// status is 301, which every client knows. For other methods it is 308, which keeps the method.
/// `None` if the URL cannot be a field value.
pub fn redirect(location: &[u8], asked: &Asked<'_>) -> Option<Answer> {
    let value = HeaderValue::from_bytes(location).ok()?;
    let status = match *asked.method {
        Method::GET | Method::HEAD => StatusCode::MOVED_PERMANENTLY,
        _ => StatusCode::PERMANENT_REDIRECT,
    };
    let page = Page::new(status, "moved", "This site is served over https.");
    Some(
        page.answer(form(asked.headers))
            .with(Field::Location, value)
            .in_reply_to(asked.method),
    )
}

/// A request that the origin did not answer.
pub struct Unanswered<'a> {
    /// The parts of the request that shape the answer.
    pub asked: &'a Asked<'a>,
    /// The decision and the site that it is about; `None` for a host that no site claims.
    pub judged: Option<(&'a Decision, &'a SiteEntry)>,
    /// The id of the request.
    pub request_id: &'a [u8],
}

/// The answer to a request that could not be forwarded, with the tags that the policy has for its
/// status. A status that is none becomes 500. The site's own page is used for 502 and 504.
pub fn failure(status: u16, unanswered: &Unanswered<'_>) -> Answer {
    let headers = unanswered.asked.headers;
    let answer = match status {
        408 => Rejection::Timeout.answer(headers),
        413 => Rejection::BodyTooLarge.answer(headers),
        503 => Rejection::Busy.answer(headers),
        other => {
            let status = StatusCode::from_u16(other).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let own = unanswered.own_page().filter(|_| matches!(other, 502 | 504));
            unanswered.render(Page {
                own,
                ..failure_page(status)
            })
        }
    };
    unanswered.finish(answer)
}

/// The answer to a request for which no server of the origin has a place: 503, which tells crawlers
/// to come back after `retry_after` seconds, and says nothing about the page.
pub fn full(retry_after: u32, unanswered: &Unanswered<'_>) -> Answer {
    let message = "This site has too many visitors at the moment. Please try again soon.";
    unanswered.finish(unanswered.render(Page {
        own: unanswered.own_page(),
        reader: Reader::Person,
        retry_after: Some(retry_after),
        ..Page::new(StatusCode::SERVICE_UNAVAILABLE, "full", message)
    }))
}

/// The answer (502) to a request for a host that no origin is for. Not 4xx: search engines would
/// drop the pages of a host that was forgotten. The page names the host, cut and without control
/// characters.
pub fn no_origin(host: &[u8], unanswered: &Unanswered<'_>) -> Answer {
    let host = printable(&host[..host.len().min(MAX_HOST)]);
    let message = format!("No origin is configured for the host {host}.");
    let page = Page::new(StatusCode::BAD_GATEWAY, "no_origin", message);
    unanswered.finish(unanswered.render(Page {
        own: unanswered.own_page(),
        reader: Reader::Person,
        ..page
    }))
}

impl<'a> Unanswered<'a> {
    /// The site's own page for failures, if the policy has one.
    fn own_page(&self) -> Option<&'a PageTemplate> {
        self.judged
            .and_then(|(_, entry)| entry.site.pages.failure.as_deref())
    }

    /// The page as an answer, with the request's id, in the form that the request asks for. The
    /// connection ends after it.
    fn render(&self, page: Page<'a>) -> Answer {
        let request_id = std::str::from_utf8(self.request_id).ok();
        Page { request_id, ..page }
            .answer(form(self.asked.headers))
            .closing()
    }

    /// Adds the policy's tags and the request's id, and removes the body for HEAD.
    fn finish(&self, answer: Answer) -> Answer {
        let answer = match self.judged {
            Some((decision, entry)) => answer.with_tags(entry, decision),
            None => answer,
        };
        answer.named(self.request_id).in_reply_to(self.asked.method)
    }
}

/// The answers after which the connection is closed: the rest of the request may not be read.
fn closing(page: &Page<'_>) -> Forms {
    Form::ALL.map(|form| page.answer(form).closing())
}

/// A 405 in each form, which names the methods that are allowed. The connection goes on.
fn wrong_method(allowed: &'static str) -> Forms {
    let message = format!("This cannot be done here. Methods that can: {allowed}.");
    let page = Page::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        message,
    );
    Form::ALL.map(|form| {
        page.answer(form)
            .with(Field::Allow, HeaderValue::from_static(allowed))
    })
}

/// The page for a failure with this status; every status but 400, 502 and 504 has the words of an
/// internal error.
fn failure_page(status: StatusCode) -> Page<'static> {
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
    Page {
        reader: Reader::Person,
        ..Page::new(status, error, message)
    }
}
