//! The steps that requests of all entry points go through. An entry point is a way by which
//! requests come in: HTTP/1, HTTP/2, the middleware in an application, or the decision service
//! (which other proxies ask whether a request may pass). [`RequestPipeline::receive`] does
//! everything that comes before the origin. It rejects malformed heads, answers challenges of
//! certificate authorities, redirects to https, has the request judged, and makes the answer.
//!
//! The result is a [`Ticket`]: the request and the decision about it. The entry point sends the
//! [`Answer`](crate::answers::Answer), or forwards the request with the heads that [`HeadWriter`]
//! writes. [`Ticket::finish`] records the request once the bytes were written. If a ticket is
//! dropped before that, the request is recorded as one whose client left.
//!
//! An entry point implements [`RequestHead`], or uses [`HeaderMapHead`] if its requests have the
//! types of the crate `http`. [`InstanceInputs`](crate::upkeep::InstanceInputs) opens an
//! [`Instance`](crate::upkeep::Instance), whose judge and recorder [`RequestPipeline::new`] needs.
//! `examples/toy_entry_point` is a complete entry point.

mod admission;
mod buffer_budget;
mod challenge_files;
#[cfg(feature = "proxy")]
mod client;
mod connection_facts;
mod head;
mod head_check;
mod head_error;
mod head_writer;
mod header_map_head;
mod https_redirect;
mod partial_head;
mod pending_record;
mod pipeline;
mod request_id;
mod responder;
mod response_outcome;
mod ticket;
mod upload_meter;

pub use crate::heads::HeadFields;
pub use crate::record::ArrivalTimes;
pub use admission::{AdmissionLimiter, LimitReached};
pub use buffer_budget::{MAX_UNRESERVED, body_reservation, head_reservation};
pub use challenge_files::{ChallengeFileSources, OwnChallengeLookup};
#[cfg(feature = "proxy")]
pub use client::ClientConnection;
pub use connection_facts::ConnectionFacts;
pub use head::RequestHead;
pub use head_check::{BodyFraming, HeadParts, check_head, content_length};
pub use head_error::HeadError;
pub use head_writer::HeadWriter;
pub use header_map_head::HeaderMapHead;
pub use https_redirect::HttpsRedirect;
pub use pending_record::PendingRecord;
pub use pipeline::{HasCertificate, RequestPipeline, RequestSettings};
pub use responder::{OutgoingAnswer, ReceivedRequest, Responder};
pub use response_outcome::{ResponseEnd, ResponseOutcome};
pub use ticket::Ticket;

#[cfg(test)]
mod tests;
