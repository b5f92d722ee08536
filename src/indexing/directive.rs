//! One directive, and a set of them in which the most restrictive value wins.

use crate::time::Timestamp;

/// What a page's index entry may or may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// No restriction.
    All,
    /// A directive without a value, in its canonical lower-case spelling: `noindex`, `nofollow`, `noarchive`, `noai`, ...
    Flag(Box<str>),
    /// Characters of a snippet; `None` is -1, without limit.
    MaxSnippet(Option<u32>),
    /// Seconds of a video preview; `None` is -1.
    MaxVideoPreview(Option<u32>),
    /// `none`, `standard` or `large`, in this order of restriction.
    MaxImagePreview(ImagePreview),
    /// Not to be shown after this moment.
    UnavailableAfter(Timestamp),
    /// A `key: value` that is not known; kept as it was.
    Unknown(Box<str>, Box<str>),
}

/// The sizes of `max-image-preview`, the most restrictive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImagePreview {
    /// No image.
    None,
    /// A small one.
    Standard,
    /// Up to the width of the window.
    Large,
}

/// Why a directive of a policy is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DirectiveError {
    /// What is wrong, for a person.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// A set of directives; of one kind the most restrictive value is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    members: Vec<Directive>,
}

impl Directives {
    /// Reads a policy's `noindex, noarchive` or one directive with its value, `max-snippet: 50`, strictly: an unknown
    /// name or a bad value is an error with the nearest known name.
    pub fn parse(text: &str) -> Result<Directives, DirectiveError> {
        let _ = text;
        todo!()
    }

    /// Adds a directive; the more restrictive value stays. `none` is noindex and nofollow.
    pub fn insert(&mut self, directive: Directive) {
        let _ = directive;
        todo!()
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: &Directives) {
        let _ = other;
        todo!()
    }

    /// The members in the order they are written.
    pub fn iter(&self) -> impl Iterator<Item = &Directive> {
        self.members.iter()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether they keep a page out of the index.
    pub fn forbids_indexing(&self) -> bool {
        todo!()
    }
}
