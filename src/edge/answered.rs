//! [`Answered`]: an answer of crawlgate's own from when it is given until it is recorded, in either version of HTTP. Must not know
//! how it is written.

use crate::answers::{Answer, Field};
use crate::requests::{EndedBy, Respond, Responded, Sent, Ticket};
use http::HeaderValue;
use std::sync::Arc;

/// An answer that was given.
pub(super) enum Answered {
    /// To a request that was received.
    Request(Ticket, Answer),
    /// By a door that answers by itself.
    Question(Arc<dyn Respond>, Responded),
}

impl Answered {
    /// The answer.
    pub(super) fn answer(&self) -> &Answer {
        match self {
            Answered::Request(_, answer) => answer,
            Answered::Question(_, responded) => &responded.answer,
        }
    }

    /// Holds space in buffers while it waits for its client. False if there is none: then it must not wait.
    pub(super) fn hold(&mut self, octets: usize) -> bool {
        match self {
            Answered::Request(ticket, _) if ticket.lacks_space() => false,
            Answered::Request(ticket, _) => {
                ticket.hold(octets);
                !ticket.lacks_space()
            }
            // Only trusted proxies ask.
            Answered::Question(..) => true,
        }
    }

    /// Records it. `is_sent` says whether all of it was written.
    pub(super) fn record(self, is_sent: bool) {
        let (ticket, answer) = match self {
            Answered::Request(ticket, answer) => (ticket, answer),
            Answered::Question(door, responded) => return door.written(responded, is_sent),
        };
        let tags = answer.fields().filter(|(field, _)| is_sent && *field == Field::XRobotsTag);
        ticket.finish(&Sent {
            status: if is_sent { answer.status().as_u16() } else { 0 },
            tags: tags.map(|(_, value)| HeaderValue::as_bytes(value)).collect(),
            octets: if is_sent { answer.body().len() as u64 } else { 0 },
            ended_by: if is_sent { EndedBy::Complete } else { EndedBy::Client },
        });
    }
}
