//! [`Responder`]: a service that answers every request itself and forwards none. An example is the
//! decision service, which other proxies ask whether a request may pass. The listener in front of
//! the service passes it a [`ReceivedRequest`]. The listener then sends the [`OutgoingAnswer`] that
//! the service returns, and records the request in the logs.

use super::response_outcome::ResponseEnd;
use super::ticket::Ticket;
use crate::answers::Answer;
use crate::record::ArrivalTimes;
use http::{HeaderMap, Method};
use std::net::IpAddr;

/// A request as a listener has read it.
pub struct ReceivedRequest<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its target as it came.
    pub target: &'a [u8],
    /// The host that it asks for.
    pub host: &'a [u8],
    /// Its fields.
    pub headers: &'a HeaderMap,
    /// The other end of the connection, where that has an address.
    pub peer: Option<IpAddr>,
    /// The version of HTTP: `1.0`, `1.1`, `2`.
    pub http: &'static str,
    /// When it arrived.
    pub arrival: ArrivalTimes,
}

/// An answer to send, with the ticket that is to be recorded.
pub struct OutgoingAnswer {
    /// The answer.
    pub answer: Answer,
    /// The ticket of the request that the answer is about, if it is recorded.
    pub ticket: Option<Ticket>,
    /// For an answer to a proxy: the status that the proxy's client gets, and how the response ends
    /// as far as crawlgate knows. Recorded when all of the answer was written.
    pub recorded: Option<(u16, ResponseEnd)>,
}

/// An answer that is not recorded.
impl From<Answer> for OutgoingAnswer {
    fn from(answer: Answer) -> OutgoingAnswer {
        OutgoingAnswer {
            answer,
            ticket: None,
            recorded: None,
        }
    }
}

impl From<(Ticket, Answer)> for OutgoingAnswer {
    fn from(recorded: (Ticket, Answer)) -> OutgoingAnswer {
        let (ticket, answer) = recorded;
        OutgoingAnswer {
            answer,
            ticket: Some(ticket),
            recorded: None,
        }
    }
}

/// Answers every request itself.
pub trait Responder: Send + Sync + 'static {
    /// The answer to a request.
    fn respond(&self, request: &ReceivedRequest<'_>) -> OutgoingAnswer;
}
