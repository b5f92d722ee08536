//! [`Sent`]: what was sent in response to a request, for its record. [`EndedBy`] says how the
//! response ended.

use smallvec::SmallVec;

/// A response as it was sent.
#[derive(Debug, Default)]
pub struct Sent<'a> {
    /// The status; 0 if no response was begun, or if another server sends it.
    pub status: u16,
    /// The lines of X-Robots-Tag that were sent.
    pub tags: SmallVec<[&'a [u8]; 4]>,
    /// Octets of the body that were sent.
    pub octets: u64,
    /// How it ended.
    pub ended_by: EndedBy,
}

/// How a response ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum EndedBy {
    /// All of it was written. A robots.txt that ended so counts as cached by the crawler from then
    /// on.
    Complete,
    /// The client left, or took too long.
    #[default]
    Client,
    /// An error, with its word for the access log.
    Error(&'static str),
    /// Another server sends the response, so that crawlgate does not know how it ended.
    Unknown,
}

impl Sent<'_> {
    /// The word of the access log for what ended the request early: that of the error, or
    /// `no_response` if no response was begun. `None` if it did not end early, if the client left
    /// during the response, and if the end is not known.
    pub(super) fn error(&self) -> Option<&'static str> {
        match self.ended_by {
            EndedBy::Error(word) => Some(word),
            EndedBy::Client if self.status == 0 => Some("no_response"),
            EndedBy::Complete | EndedBy::Client | EndedBy::Unknown => None,
        }
    }
}
