//! Functions with which HTTP/1 and HTTP/2 send the responses that crawlgate makes itself (such as
//! robots.txt or a 403). [`reserve_space`] reserves buffer space for a response that has to wait
//! until its client reads. [`record_answer`] records in logs and metrics how much of the response
//! was sent. [`bare_rejection`] makes an error response for a request that could not be read.

use crate::answers::{Answer, Rejection, RequestToAnswer, rejection_answer};
use crate::heads::X_ROBOTS_TAG;
use crate::requests::{OutgoingAnswer, ResponseEnd, ResponseOutcome};
use http::{HeaderMap, HeaderValue, Method};
use pingora_core::ErrorType;

/// How much of an answer was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SentAmount {
    Nothing,
    /// The head, and this many bytes of the body.
    Partial(u64),
    Whole,
}

/// The answer to a connection, or to a head that cannot be read.
pub fn bare_rejection(rejection: Rejection) -> Answer {
    let request = RequestToAnswer {
        method: &Method::GET,
        headers: &HeaderMap::new(),
    };
    rejection_answer(rejection, &request)
}

/// Reserves `bytes` of buffer space for an answer that waits for its client. Returns false if there
/// is none: then the answer must not wait. An answer without a ticket, or to a proxy that asks for
/// a decision (`recorded`), needs no space.
pub fn reserve_space(outgoing: &mut OutgoingAnswer, bytes: usize) -> bool {
    let Some(ticket) = outgoing
        .ticket
        .as_mut()
        .filter(|_| outgoing.recorded.is_none())
    else {
        return true;
    };
    if !ticket.lacks_buffer_space() {
        ticket.reserve_buffers(bytes);
    }
    !ticket.lacks_buffer_space()
}

/// Records an answer, if it has a ticket: with its status and tags if at least its head was sent.
/// An answer to a proxy that asks for a decision has to be sent whole, and is recorded with the
/// status and end in `recorded`. Otherwise the ticket is dropped, which records a request whose
/// client left.
pub fn record_answer(outgoing: OutgoingAnswer, sent: SentAmount) {
    use SentAmount::*;
    let OutgoingAnswer {
        answer,
        ticket,
        recorded,
    } = outgoing;
    let Some(ticket) = ticket else { return };
    let status = answer.status().as_u16();
    let (bytes, (status, ended_by)) = match (sent, recorded) {
        (Nothing, _) | (Partial(_), Some(_)) => return,
        (Partial(bytes), None) => (
            bytes,
            (status, ResponseEnd::Error(ErrorType::WriteError.as_str())),
        ),
        (Whole, recorded) => (
            answer.body().len() as u64,
            recorded.unwrap_or((status, ResponseEnd::Complete)),
        ),
    };
    let tags = answer
        .values(X_ROBOTS_TAG)
        .map(HeaderValue::as_bytes)
        .collect();
    ticket.finish(&ResponseOutcome {
        status,
        tags,
        bytes,
        ended_by,
    });
}
