//! [`Respond`]: a door that answers every request by itself, behind any listener. A listener hands over what it has read,
//! and says afterwards whether the answer was written. Must not know connections.

use super::connection::Arrival;
use super::ticket::Ticket;
use crate::answers::Answer;
use http::{HeaderMap, Method};
use std::net::IpAddr;

/// A request as a listener has read it.
#[derive(Clone, Copy)]
pub struct Received<'a> {
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
    pub arrival: Arrival,
}

/// An answer, and what it rests on.
pub struct Responded {
    /// The answer.
    pub answer: Answer,
    /// The request that it is about, if it is to be recorded.
    pub ticket: Option<Ticket>,
}

/// Answers every request by itself.
pub trait Respond: Send + Sync + 'static {
    /// The answer to a request.
    fn respond(&self, request: &Received<'_>) -> Responded;

    /// Takes note that the answer was written, or was not.
    fn written(&self, responded: Responded, is_whole: bool);
}
