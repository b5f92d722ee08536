//! The answer of a listener that only leads to another one.

use super::answer::Answer;
use super::field::Field;
use super::negotiate::form;
use super::page::Page;
use super::ruling::Asked;
use http::{HeaderValue, Method, StatusCode};

/// Leads to this URL for good. A request with a body is repeated with its method (308); for GET and HEAD 301 says the
/// same, and every client knows it. `None` where the URL cannot be a field value.
pub fn redirect(location: &[u8], asked: &Asked<'_>) -> Option<Answer> {
    let value = HeaderValue::from_bytes(location).ok()?;
    let status = match *asked.method {
        Method::GET | Method::HEAD => StatusCode::MOVED_PERMANENTLY,
        _ => StatusCode::PERMANENT_REDIRECT,
    };
    let page = Page::new(status, "moved", "This site is served over https.");
    Some(page.answer(form(asked.headers)).with(Field::Location, value).in_reply_to(asked.method))
}
