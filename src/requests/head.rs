//! [`RequestHead`]: a trait for the head of an HTTP request (method, target, header fields).
//! HTTP/1, HTTP/2, the middleware (crawlgate inside an application) and the decision service (for
//! other proxies) have heads of different types. Through this trait one pipeline handles all of
//! them. [`HeadFields`] are the parts that judging reads. A head is only borrowed, so the
//! [`Ticket`](super::Ticket) copies what is needed later.

use super::head_error::HeadError;
use crate::answers::RequestToAnswer;
use crate::heads::HeadFields;
use crate::settings::Limits;
use http::{HeaderMap, HeaderName, Method};
use std::borrow::Cow;

/// The head of a request.
pub trait RequestHead {
    /// The parts that judging and recording read.
    fn fields(&self) -> HeadFields<'_>;

    /// The values of all lines of a field.
    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]>;

    /// The fields that shape an answer: those that
    /// [`RequestToAnswer::may_affect_answer`](crate::answers::RequestToAnswer::may_affect_answer) are
    /// enough.
    fn answer_fields(&self) -> Cow<'_, HeaderMap>;

    /// The method to which an answer replies; GET for one that cannot be read.
    fn answer_method(&self) -> Method {
        Method::from_bytes(self.fields().method).unwrap_or_default()
    }

    /// Why the head must be rejected. `None` from a reader that rejects such heads itself.
    fn head_error(&self, _limits: &Limits) -> Option<HeadError> {
        None
    }

    /// Calls `answer` with the parts of the head that an answer depends on.
    fn answer_with<T>(&self, answer: impl FnOnce(&RequestToAnswer<'_>) -> T) -> T {
        answer(&RequestToAnswer {
            method: &self.answer_method(),
            headers: &self.answer_fields(),
        })
    }
}
