//! [`RequestHead`]: the head of a request, however a door has read it. Borrowed: what outlasts the head is copied into the
//! [`Ticket`](super::Ticket).

use super::mistake::Mistake;
use crate::heads::SignatureFields;
use crate::settings::Limits;
use http::{HeaderMap, Method};
use std::borrow::Cow;

/// A head as the sequence reads it.
pub trait RequestHead {
    /// The method.
    fn method(&self) -> &[u8];

    /// The target as it came, in origin form or absolute form.
    fn target(&self) -> &[u8];

    /// The host that is asked for, with its port if it has one. Empty where an HTTP/1.0 request has none.
    fn host(&self) -> &[u8];

    /// The client's version of HTTP: `1.0`, `1.1`, `2`.
    fn http(&self) -> &'static str;

    /// The fields that judging and recording read.
    fn fields(&self) -> HeadFields<'_>;

    /// The lines of X-Forwarded-For.
    fn forwarded_for(&self) -> impl DoubleEndedIterator<Item = &[u8]>;

    /// The fields that shape an answer: those that [`Asked::reads`](crate::answers::Asked::reads) are enough.
    fn answer_fields(&self) -> Cow<'_, HeaderMap>;

    /// The method that an answer is framed for.
    fn answer_method(&self) -> Method {
        Method::from_bytes(self.method()).unwrap_or_default()
    }

    /// What makes the head one that two readers could understand differently. A door whose reader refuses such heads has
    /// nothing to say here.
    fn mistake(&self, _limits: &Limits) -> Option<Mistake> {
        None
    }
}

/// Fields of a head. Of several lines of a field the first counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadFields<'a> {
    /// User-Agent.
    pub user_agent: Option<&'a [u8]>,
    /// Referer.
    pub referer: Option<&'a [u8]>,
    /// The signature, if there is one.
    pub signature: Option<SignatureFields<'a>>,
    /// Whether the request carries a licence token.
    pub has_license_token: bool,
    /// Whether a field says that the peer speaks for another client.
    pub names_another_client: bool,
    /// X-Request-Id.
    pub request_id: Option<&'a [u8]>,
    /// The `traceparent` of W3C Trace Context. Empty, which is malformed, where there are several lines.
    pub traceparent: Option<&'a [u8]>,
}

impl<'a> HeadFields<'a> {
    /// Notes a line of `traceparent`.
    pub fn note_traceparent(&mut self, value: &'a [u8]) {
        self.traceparent = Some(if self.traceparent.is_some() { b"" } else { value });
    }
}
