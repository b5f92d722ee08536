//! Answers that no policy asks for: to a request that is none, to a wrong method, and in place of an origin that does
//! not answer. Those to a request that is none are made once per form.

use super::answer::Answer;
use super::field::Field;
use super::negotiate::{Form, form};
use super::page::{Page, Reader};
use super::ruling::Asked;
use super::tags::with_tags;
use crate::policy::SiteEntry;
use crate::policy::site::PageTemplate;
use crate::verdict::Decision;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::sync::LazyLock;

/// Why a request is rejected before it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// RFC 9112 section 3.2: a server must answer 400.
    NoHost,
    /// TRACE shows a client the fields that proxies added to its request; CONNECT is for other proxies.
    Method,
    /// The target is longer than the settings let it be.
    TargetTooLong,
    /// The header fields are larger than the settings let them be.
    HeadersTooLarge,
    /// The request is malformed, or two readers could understand it differently.
    Malformed,
    /// The request did not arrive in time.
    Timeout,
    /// The body is larger than the settings let it be.
    BodyTooLarge,
    /// It is in clear text, and the listener speaks TLS.
    NotEncrypted,
    /// There are more connections than the settings let be.
    Busy,
    /// The peer may not ask for decisions. Not 403, which its own clients would be told.
    Untrusted,
    /// A proxy asks about a request in a way that cannot be read. 403, which every proxy takes for a refusal: a client
    /// may have caused it, and must not pass by it.
    Unreadable,
}

/// The longest host that an answer repeats: a name has at most 253 octets.
const MAX_HOST: usize = 256;
/// The Retry-After of a server with too many connections.
const BUSY_RETRY: u32 = 10;

/// One answer in each form, in the order of [`Form::ALL`].
type Forms = [Answer; 3];

static NO_HOST: LazyLock<Forms> =
    LazyLock::new(|| rejected(StatusCode::BAD_REQUEST, "no_host", "The request does not say which host it is for."));
static TARGET_TOO_LONG: LazyLock<Forms> =
    LazyLock::new(|| rejected(StatusCode::URI_TOO_LONG, "target_too_long", "The URL is too long."));
static HEADERS_TOO_LARGE: LazyLock<Forms> = LazyLock::new(|| {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    rejected(status, "headers_too_large", "The header fields are too large.")
});
static TIMEOUT: LazyLock<Forms> =
    LazyLock::new(|| rejected(StatusCode::REQUEST_TIMEOUT, "request_timeout", "The request did not arrive in time."));
static BODY_TOO_LARGE: LazyLock<Forms> = LazyLock::new(|| {
    rejected(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "The body of the request is too large.")
});
static NOT_ENCRYPTED: LazyLock<Forms> =
    LazyLock::new(|| rejected(StatusCode::BAD_REQUEST, "not_encrypted", "This port speaks https only."));
static BUSY: LazyLock<Forms> = LazyLock::new(|| {
    let page = Page::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "busy",
        "There are too many connections or requests. Try again soon.",
    );
    let page = Page { retry_after: Some(BUSY_RETRY), ..page };
    Form::ALL.map(|form| page.answer(form).closing())
});
static UNTRUSTED: LazyLock<Forms> = LazyLock::new(|| {
    let message =
        "This peer may not ask for decisions: `decisions.trusted` of crawlgate's settings names those that may.";
    rejected(StatusCode::SERVICE_UNAVAILABLE, "untrusted", message)
});
static UNREADABLE: LazyLock<Forms> = LazyLock::new(|| {
    let message = "The request cannot be read, so it is refused.";
    // nginx is told by the field that crawlgate refuses.
    rejected(StatusCode::FORBIDDEN, "unreadable", message).map(|answer| answer.with(Field::Status, 403.into()))
});
static METHOD: LazyLock<Forms> = LazyLock::new(|| wrong_method("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
static NOT_TO_BE_WRITTEN: LazyLock<Forms> = LazyLock::new(|| wrong_method("GET, HEAD"));
static BAD_REQUEST: LazyLock<Forms> = LazyLock::new(|| {
    let page = failure_page(StatusCode::BAD_REQUEST);
    Form::ALL.map(|form| page.answer(form).closing())
});

/// The answer to a request that is rejected before it is judged.
pub fn rejection(rejection: Rejection, asked: &Asked<'_>) -> Answer {
    let forms = match rejection {
        Rejection::NoHost => &NO_HOST,
        Rejection::TargetTooLong => &TARGET_TOO_LONG,
        Rejection::HeadersTooLarge => &HEADERS_TOO_LARGE,
        Rejection::Method => &METHOD,
        Rejection::Malformed => &BAD_REQUEST,
        Rejection::Timeout => &TIMEOUT,
        Rejection::BodyTooLarge => &BODY_TOO_LARGE,
        Rejection::NotEncrypted => &NOT_ENCRYPTED,
        Rejection::Busy => &BUSY,
        Rejection::Untrusted => &UNTRUSTED,
        Rejection::Unreadable => &UNREADABLE,
    };
    choose(forms, asked.headers).in_reply_to(asked.method)
}

/// A request that the origin did not answer.
#[derive(Clone, Copy)]
pub struct Unanswered<'a> {
    /// What shapes the answer.
    pub asked: &'a Asked<'a>,
    /// The decision and the site that it is about; `None` for a host that no site claims.
    pub judged: Option<(&'a Decision, &'a SiteEntry)>,
    /// Its id.
    pub request_id: &'a [u8],
}

/// The answer to a request that could not be forwarded, with the tags that the policy has for its status.
pub fn failure(status: u16, unanswered: &Unanswered<'_>) -> Answer {
    let headers = unanswered.asked.headers;
    let answer = match status {
        408 => choose(&TIMEOUT, headers),
        413 => choose(&BODY_TOO_LARGE, headers),
        503 => choose(&BUSY, headers),
        other => {
            let status = StatusCode::from_u16(other).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let own = unanswered.own_page().filter(|_| matches!(other, 502 | 504));
            unanswered.render(Page { own, ..failure_page(status) })
        }
    };
    unanswered.finish(answer)
}

/// The answer to a request that no server of the origin has a place for. 503 tells crawlers to come back later, and says
/// nothing about the page.
pub fn full(retry_after: u32, unanswered: &Unanswered<'_>) -> Answer {
    let message = "This site has too many visitors at the moment. Please try again soon.";
    unanswered.finish(unanswered.render(Page {
        own: unanswered.own_page(),
        reader: Reader::Person,
        retry_after: Some(retry_after),
        ..Page::new(StatusCode::SERVICE_UNAVAILABLE, "full", message)
    }))
}

/// The answer to a request for a host that no origin is for. Not 4xx: search engines would drop the pages of a host that
/// was forgotten.
pub fn no_origin(host: &[u8], unanswered: &Unanswered<'_>) -> Answer {
    let host = String::from_utf8_lossy(&host[..host.len().min(MAX_HOST)]);
    let host: String = host.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect();
    let message = format!("No origin is configured for the host {host}.");
    let page = Page::new(StatusCode::BAD_GATEWAY, "no_origin", message);
    unanswered.finish(unanswered.render(Page { own: unanswered.own_page(), reader: Reader::Person, ..page }))
}

impl<'a> Unanswered<'a> {
    /// The site's own page.
    fn own_page(&self) -> Option<&'a PageTemplate> {
        self.judged.and_then(|(_, entry)| entry.site.pages.failure.as_deref())
    }

    fn render(&self, page: Page<'a>) -> Answer {
        let request_id = std::str::from_utf8(self.request_id).ok();
        Page { request_id, ..page }.answer(form(self.asked.headers)).closing()
    }

    fn finish(&self, answer: Answer) -> Answer {
        let answer = match self.judged {
            Some((decision, entry)) => with_tags(answer, entry, decision),
            None => answer,
        };
        answer.named(self.request_id).in_reply_to(self.asked.method)
    }
}

/// The answer to a method other than GET and HEAD, for what can only be read.
pub(super) fn only_to_be_read(headers: &HeaderMap) -> Answer {
    choose(&NOT_TO_BE_WRITTEN, headers)
}

fn choose(forms: &Forms, headers: &HeaderMap) -> Answer {
    forms[form(headers) as usize].clone()
}

fn rejected(status: StatusCode, error: &'static str, message: &'static str) -> Forms {
    let page = Page::new(status, error, message);
    Form::ALL.map(|form| page.answer(form).closing())
}

fn wrong_method(allowed: &'static str) -> Forms {
    let message = format!("This cannot be done here. Methods that can: {allowed}.");
    let page = Page::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    Form::ALL.map(|form| page.answer(form).with(Field::Allow, HeaderValue::from_static(allowed)))
}

fn failure_page(status: StatusCode) -> Page<'static> {
    let (error, message) = match status {
        StatusCode::BAD_REQUEST => ("bad_request", "The request could not be understood."),
        StatusCode::BAD_GATEWAY => {
            ("bad_gateway", "This site is not available at the moment. Please try again in a few minutes.")
        }
        StatusCode::GATEWAY_TIMEOUT => {
            ("gateway_timeout", "This site takes too long to answer at the moment. Please try again in a few minutes.")
        }
        _ => ("internal_error", "Something went wrong here. Please try again in a few minutes."),
    };
    Page { reader: Reader::Person, ..Page::new(status, error, message) }
}
