//! [`ResponseOutcome`]: what a client got in response to a request. It has the status, the
//! X-Robots-Tag lines and the size of the body, for the access log and the metrics. [`ResponseEnd`]
//! says whether the response was sent completely, and if not, why.

use smallvec::SmallVec;

/// What was sent of a response.
#[derive(Default)]
pub struct ResponseOutcome<'a> {
    /// The status; 0 if no response was begun, or if another server sends the response.
    pub status: u16,
    /// The lines of X-Robots-Tag that were sent.
    pub tags: SmallVec<[&'a [u8]; 4]>,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// How it ended.
    pub ended_by: ResponseEnd,
}

/// How a response ended.
#[derive(Default, PartialEq, Eq)]
pub enum ResponseEnd {
    /// All of it was written. The crawler counts as having a copy of a robots.txt that ended so.
    Complete,
    /// The client left, or took too long.
    #[default]
    Client,
    /// An error, with its name in the access log.
    Error(&'static str),
    /// Another server sends the response, and crawlgate does not know how it ended.
    Unknown,
}

impl ResponseOutcome<'_> {
    /// Why the request ended early, for the access log: the name of the error, or `no_response` if
    /// no response was begun. `None` if it did not end early, if the client left during the
    /// response, and if the end is not known.
    pub(super) fn error(&self) -> Option<&'static str> {
        match self.ended_by {
            ResponseEnd::Error(word) => Some(word),
            ResponseEnd::Client if self.status == 0 => Some("no_response"),
            _ => None,
        }
    }
}
