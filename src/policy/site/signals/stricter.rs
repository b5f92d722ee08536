//! What is said about a path that origins resolve to another one: `/open/../x` is `/x` to many. It is read as sent and
//! as resolved, and of what the two say the stricter counts, as it does for tags. Knows indexes and values; no header.

use super::{Tdm, Usage};
use std::borrow::Cow;

/// What the path of a request decides: indexes into a [`SignalPlan`](super::SignalPlan).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSignals {
    /// Of the path as it is sent.
    pub(super) sent: Reading,
    /// Of what it resolves to, where that is another path, of which something else is said.
    pub(super) resolved: Option<Reading>,
}

/// One reading of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) usage: Option<u16>,
    pub(super) license: Option<u16>,
    pub(super) tdm: Option<u16>,
}

impl PathSignals {
    /// The licence that covers what is there; of two, that of the document that most origins answer with.
    pub(super) fn license(self) -> Option<u16> {
        self.resolved.and_then(|resolved| resolved.license).or(self.sent.license)
    }
}

/// Of each category what denies more: a "no" of either, a "yes" only of both. What one of them does not speak of is
/// unknown.
pub(super) fn usage<'a>(sent: Option<&'a Usage>, resolved: Option<&'a Usage>) -> Option<Cow<'a, str>> {
    let (sent, resolved) = match (sent, resolved) {
        (Some(sent), Some(resolved)) if sent.value == resolved.value => return Some(Cow::Borrowed(&sent.value)),
        (sent, resolved) => {
            (sent.map_or([].as_slice(), |usage| &usage.said), resolved.map_or([].as_slice(), |usage| &usage.said))
        }
    };
    let of = |said: &[(String, bool)], name: &str| said.iter().find(|(known, _)| known == name).map(|(_, said)| *said);
    let more = resolved.iter().filter(|(name, _)| of(sent, name).is_none());
    let both = sent.iter().chain(more).filter_map(|(name, _)| match (of(sent, name), of(resolved, name)) {
        (Some(false), _) | (_, Some(false)) => Some((name, false)),
        (Some(true), Some(true)) => Some((name, true)),
        _ => None,
    });
    let value = super::dictionary(both.map(|(name, said)| (name.as_str(), said)));
    (!value.is_empty()).then_some(Cow::Owned(value))
}

/// A reservation of either; that there is none only of both.
pub(super) fn tdm<'a>(sent: Option<&'a Tdm>, resolved: Option<&'a Tdm>) -> Option<&'a Tdm> {
    let reserved = |rule: &&Tdm| rule.reserved;
    resolved.filter(reserved).or(sent.filter(reserved)).or(sent.and(resolved))
}
