//! [`RequestHead`]: the head of a request, whether HTTP/1, HTTP/2, the middleware or the decision
//! service has read it. [`HeadFields`] are its parts. A head is borrowed; the
//! [`Ticket`](super::Ticket) copies what outlasts it.

use super::mistake::Mistake;
use crate::answers::Asked;
use crate::heads::HeadFields;
use crate::settings::Limits;
use http::{HeaderMap, HeaderName, Method};
use std::borrow::Cow;

/// A head as [`Requests`](super::Requests) reads it.
pub trait RequestHead {
    /// The parts that judging and recording read.
    fn fields(&self) -> HeadFields<'_>;

    /// The values of all lines of a field.
    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]>;

    /// The fields that shape an answer: those that [`Asked::reads`](crate::answers::Asked::reads)
    /// are enough.
    fn answer_fields(&self) -> Cow<'_, HeaderMap>;

    /// The method to which an answer replies; GET for one that cannot be read.
    fn answer_method(&self) -> Method {
        Method::from_bytes(self.fields().method).unwrap_or_default()
    }

    /// The mistake for which the head is refused. `None` from a reader that refuses such heads
    /// itself.
    fn mistake(&self, _limits: &Limits) -> Option<Mistake> {
        None
    }

    /// Calls `answer` with the parts of the head that shape an answer.
    fn asked<T>(&self, answer: impl FnOnce(&Asked<'_>) -> T) -> T {
        answer(&Asked {
            method: &self.answer_method(),
            headers: &self.answer_fields(),
        })
    }
}
