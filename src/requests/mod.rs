//! The steps of a request that all doors share. A door is a way by which requests come in: HTTP/1,
//! HTTP/2, the middleware in an application, or the decision service. [`Requests::receive`] does
//! everything before the origin: it refuses malformed heads, answers challenges, redirects to
//! https, has the request judged, and makes the answer. A request that passes is forwarded by its
//! door, with the fields that [`Forward`] writes. [`Ticket::finish`] records what was sent.
//!
//! [`Requests::receive`] returns a [`Ticket`]: the request with what was decided about it. It is
//! finished once, when the request is recorded. A ticket that is dropped before is recorded as a
//! request whose client left.
//!
//! A door reads a head as a [`RequestHead`], calls [`Requests::receive`], sends the
//! [`Answer`](crate::answers::Answer) or forwards the request, and calls [`Ticket::finish`] when
//! the octets were written. A door that has requests of the crate `http` uses [`MappedRequest`].
//! [`JudgeParts`](crate::upkeep::JudgeParts) opens an [`Instance`](crate::upkeep::Instance); its
//! judge and recorder are what [`Requests::new`] needs. `examples/toy_door` is a whole door.

mod admission;
mod buffer_space;
mod challenges;
mod client;
mod connection;
mod forward;
mod head;
mod mapped;
mod mistake;
mod record;
mod redirect;
mod request_id;
mod respond;
mod sent;
mod sequence;
mod strict;
mod ticket;
mod unread;
mod upload;

pub use crate::heads::HeadFields;
pub use crate::record::Arrival;
pub use admission::{Admission, Full};
pub use buffer_space::{SMALL, memory_of_body, memory_of_head};
pub use challenges::{Challenges, OwnFiles};
pub use client::ClientConnection;
pub use connection::Connection;
pub use forward::Forward;
pub use head::RequestHead;
pub use mapped::MappedRequest;
pub use mistake::Mistake;
pub use record::Record;
pub use redirect::Redirect;
pub use respond::{Received, Respond, Responded};
pub use sent::{EndedBy, Sent};
pub use sequence::{IsEncrypted, Next, RequestSettings, Requests};
pub use strict::{Framing, Seen, check, content_length};
pub use ticket::Ticket;

#[cfg(test)]
mod tests;
