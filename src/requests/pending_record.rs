//! [`PendingRecord`]: a request whose response is complete, while crawlgate still writes the last
//! bytes to the connection. How the response ended is known when these bytes were written, or when
//! writing failed. Then the request is recorded in the access log and the metrics.

use super::response_outcome::{ResponseEnd, ResponseOutcome};
use super::ticket::Ticket;

/// A ticket with what was sent, to be recorded when the bytes were written. Until then the request
/// keeps its buffer space.
pub struct PendingRecord {
    /// The ticket.
    pub ticket: Ticket,
    /// The status that the client got; 0 for none.
    pub status: u16,
    /// The values of X-Robots-Tag that were sent, each with a line's end.
    pub tags: Vec<u8>,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// How the response ends if all its bytes are written.
    pub ended_by: ResponseEnd,
}

impl PendingRecord {
    /// Records the request. If not all bytes were written, a complete response counts as one that
    /// broke off.
    pub fn finish(self, is_written: bool) {
        let tags = self
            .tags
            .split(|byte| *byte == b'\n')
            .filter(|tag| !tag.is_empty());
        self.ticket.finish(&ResponseOutcome {
            status: self.status,
            tags: tags.collect(),
            bytes: self.bytes,
            ended_by: match self.ended_by {
                // As Pingora calls this error.
                ResponseEnd::Complete if !is_written => ResponseEnd::Error("WriteError"),
                ended_by => ended_by,
            },
        });
    }
}
