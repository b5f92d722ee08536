//! [`combine`] combines the X-Robots-Tag lines of a policy with those of an origin's response.

use super::tags::TagLines;
use crate::indexing::parse_whole;
use crate::policy::model::OriginTags;
use std::borrow::Cow;

/// The X-Robots-Tag lines of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent<'a> {
    /// The origin's lines stay as they are, and these are added, before them the lines for every crawler.
    Added(&'a [String]),
    /// The origin's lines are taken away, and these stand in their place.
    Instead(Cow<'a, [String]>),
}

/// Combines the lines of a policy with those of an origin (none, most of the time). Where the origin sends more lines
/// than are read, they stay as they are: a crawler that reads all of them must not miss a part.
pub fn combine<'a, 'b>(
    ours: Option<&'a TagLines>,
    theirs: impl Iterator<Item = &'b [u8]>,
    site: OriginTags,
) -> Sent<'a> {
    let lines = ours.map_or([].as_slice(), |ours| ours.lines.as_slice());
    let mut theirs = theirs.peekable();
    if theirs.peek().is_none() {
        return Sent::Added(lines);
    }
    match ours.and_then(|ours| ours.origin_tags).unwrap_or(site) {
        OriginTags::Strip => Sent::Instead(lines.into()),
        OriginTags::Replace if !lines.is_empty() => Sent::Instead(lines.into()),
        OriginTags::Merge if !lines.is_empty() => match (ours, parse_whole(theirs)) {
            (Some(ours), Some(mut tags)) => {
                tags.merge(&ours.tags);
                Sent::Instead(tags.lines().into())
            }
            _ => Sent::Added(lines),
        },
        OriginTags::Keep | OriginTags::Merge | OriginTags::Replace => Sent::Added(lines),
    }
}
