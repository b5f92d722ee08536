//! [`Sent`]: what a door tells at the end of a request.

use smallvec::SmallVec;

/// What was sent, and how it ended.
#[derive(Clone, Debug, Default)]
pub struct Sent<'a> {
    /// The status; 0 where no response was begun, or where the door cannot know it.
    pub status: u16,
    /// The lines of X-Robots-Tag that were sent.
    pub tags: SmallVec<[&'a [u8]; 4]>,
    /// Octets of the body that were sent.
    pub octets: u64,
    /// How it ended.
    pub ended_by: EndedBy,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndedBy {
    /// All of it was written. A robots.txt that ended so counts as cached by the crawler from then on.
    Complete,
    /// The client left, or took too long; with the door's word for it, if it has one.
    #[default]
    Client,
    /// An error ended it, with the door's word for it.
    Error(&'static str),
    /// Another server sends it, and the door cannot know what becomes of it.
    Unknown,
}

impl Sent<'_> {
    /// The word of the access log for what ended the request early.
    pub(super) fn error(&self) -> Option<&'static str> {
        match self.ended_by {
            EndedBy::Error(word) => Some(word),
            EndedBy::Client if self.status == 0 => Some("no_response"),
            EndedBy::Complete | EndedBy::Client | EndedBy::Unknown => None,
        }
    }
}
