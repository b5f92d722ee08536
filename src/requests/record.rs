//! [`Record`]: a request whose response was sent, until the last byte has left.

use super::sent::{EndedBy, Sent};
use super::ticket::Ticket;

/// A ticket with what was sent, to be recorded when the bytes have left. Until then the request
/// keeps its buffer space.
pub struct Record {
    /// The ticket.
    pub ticket: Ticket,
    /// The status that the client got; 0 for none.
    pub status: u16,
    /// The values of X-Robots-Tag that were sent, each with a line's end.
    pub tags: Vec<u8>,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// How the response ended, if its bytes have left.
    pub ended_by: EndedBy,
}

impl Record {
    /// Records the request. `has_left` says whether all bytes have left; if not, a response that
    /// was complete counts as one that broke off while it was written.
    pub fn finish(self, has_left: bool) {
        let tags = self
            .tags
            .split(|byte| *byte == b'\n')
            .filter(|tag| !tag.is_empty());
        self.ticket.finish(&Sent {
            status: self.status,
            tags: tags.collect(),
            octets: self.bytes,
            ended_by: match self.ended_by {
                // The word of Pingora's errors.
                EndedBy::Complete if !has_left => EndedBy::Error("WriteError"),
                ended_by => ended_by,
            },
        });
    }
}
