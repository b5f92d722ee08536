//! Sending the answers that crawlgate makes itself (robots.txt, refusals) to a client, over HTTP/1
//! and HTTP/2. [`hold`] reserves buffer space for an answer that waits, and [`record`] records how
//! much of it was sent.

use crate::answers::Field;
use crate::requests::{EndedBy, Responded, Sent};
use http::HeaderValue;
use pingora_core::ErrorType;

/// How much of an answer was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Nothing.
    Nothing,
    /// Its head, and so many octets of its body.
    Begun(u64),
    /// All of it.
    Whole,
}

/// Reserves `octets` bytes of buffer space for an answer that waits for its client. Returns false
/// if there is no space: then the answer must not wait. Reserves nothing, and returns true, for an
/// answer without a ticket and for one to a proxy's question (`recorded`).
pub fn hold(responded: &mut Responded, octets: usize) -> bool {
    // Only trusted proxies ask for decisions.
    let Some(ticket) = responded
        .ticket
        .as_mut()
        .filter(|_| responded.recorded.is_none())
    else {
        return true;
    };
    if !ticket.lacks_space() {
        ticket.hold(octets);
    }
    !ticket.lacks_space()
}

/// Records an answer, if it has a ticket. When its head was sent, it counts with its status and its
/// tags, whatever the client takes of the body. An answer to a proxy's question that was sent whole
/// counts with the status and end in `recorded` instead. If nothing was sent, or not all of an
/// answer to a proxy's question, the ticket is dropped, which records a request whose client left.
pub fn record(responded: Responded, extent: Extent) {
    let Responded {
        answer,
        ticket,
        recorded,
    } = responded;
    let Some(ticket) = ticket else { return };
    let status = answer.status().as_u16();
    let (octets, (status, ended_by)) = match (extent, recorded) {
        // A ticket that is dropped is recorded as one whose client left.
        (Extent::Nothing, _) | (Extent::Begun(_), Some(_)) => return,
        (Extent::Begun(octets), None) => (
            octets,
            (status, EndedBy::Error(ErrorType::WriteError.as_str())),
        ),
        (Extent::Whole, recorded) => (
            answer.body().len() as u64,
            recorded.unwrap_or((status, EndedBy::Complete)),
        ),
    };
    let tags = answer
        .values(Field::XRobotsTag)
        .map(HeaderValue::as_bytes)
        .collect();
    ticket.finish(&Sent {
        status,
        tags,
        octets,
        ended_by,
    });
}
