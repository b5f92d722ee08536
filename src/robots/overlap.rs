//! Two patterns compared: [`Pattern::overlaps`] tells whether a URL matches both,
//! [`Pattern::covers`] whether one pattern matches all that the other matches. Lints and the
//! merging of rules ask this before they say that one rule undoes another. [`Pattern::example`] and
//! [`Pattern::common_target`] make example targets, spelled as a client sends them.

use super::{LITERAL_STAR, Pattern};
use memchr::memchr;
use std::collections::VecDeque;

impl Pattern {
    /// Whether this pattern matches every target that `other` matches. The answer may be no where
    /// it is yes, never the reverse: a wildcard of `other` has to match a wildcard of this pattern.
    pub(crate) fn covers(&self, other: &Pattern) -> bool {
        !other.is_empty() && self.matches(&other.as_target())
    }

    /// This pattern as a target: what matches it [covers](Pattern::covers) the pattern.
    pub(crate) fn as_target(&self) -> Vec<u8> {
        // No literal of a pattern has a `*`, so nothing but a wildcard matches the other's.
        let mut target = self.literal().to_vec();
        if !self.is_anchored() {
            target.push(b'*');
        }
        target
    }

    /// Whether some target is matched by both. Each comparison of two octets takes one from
    /// `budget`. The answer is exact until the budget is used up, and for patterns that are not
    /// both very long; then it is yes, the careful answer.
    pub(crate) fn overlaps(&self, other: &Pattern, budget: &mut usize) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        if *budget == 0 {
            return true;
        }
        // Most patterns differ in their beginnings.
        let one = self.prefix();
        let two = other.prefix();
        let common = one.len().min(two.len());
        *budget = budget.saturating_sub(1 + common / 16);
        if one[..common] != two[..common] {
            return false;
        }
        if !self.has_wildcard() && !other.has_wildcard() {
            // Of two patterns that begin alike, the shorter one must match more than its text.
            let short = if one.len() <= two.len() { self } else { other };
            return !short.is_anchored() || one.len() == two.len();
        }
        let one = steps(self);
        let two = steps(other);
        let cost = one.len().saturating_mul(two.len());
        let is_affordable = cost <= LARGEST_SEARCH.min(*budget);
        *budget = budget.saturating_sub(cost);
        !is_affordable || shortest(&one, &two).is_some()
    }

    fn has_wildcard(&self) -> bool {
        memchr(b'*', self.literal()).is_some()
    }

    /// A target that the pattern matches, with `fill` in place of each wildcard. It begins with
    /// `/`, also where the pattern does not.
    pub(crate) fn example(&self, fill: &str) -> String {
        let octets = self
            .literal()
            .iter()
            .map(|octet| if *octet == b'*' { None } else { Some(*octet) });
        spelled(octets, fill)
    }

    /// The shortest target that both match. `None` where there is none, and where the two are so
    /// long that the search would take too long.
    pub(crate) fn common_target(&self, other: &Pattern) -> Option<String> {
        if self.is_empty() || other.is_empty() {
            return None;
        }
        let one = steps(self);
        let two = steps(other);
        if one.len().saturating_mul(two.len()) > LARGEST_SEARCH {
            return None;
        }
        Some(spelled(shortest(&one, &two)?.into_iter().map(Some), ""))
    }
}

/// Pairs of places that a search for a common target may have.
const LARGEST_SEARCH: usize = 65_536;

/// Bytes as a client would send them, with `fill` for each `None` (a wildcard). A `/` is put in
/// front where they do not begin with one.
fn spelled(octets: impl Iterator<Item = Option<u8>>, fill: &str) -> String {
    let mut target = String::new();
    for octet in octets {
        match octet {
            None => target.push_str(fill),
            Some(LITERAL_STAR) => target.push_str("%2A"),
            Some(octet) => target.push(char::from(octet)),
        }
    }
    if target.starts_with('/') {
        target
    } else {
        format!("/{target}")
    }
}

/// An octet, or any run of octets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Octet(u8),
    Any,
}

/// The pattern as steps. One that does not end with `$` gets a wildcard at its end; wildcards in a
/// row are one.
fn steps(pattern: &Pattern) -> Vec<Step> {
    let octets = pattern.literal().iter().map(|octet| {
        if *octet == b'*' {
            Step::Any
        } else {
            Step::Octet(*octet)
        }
    });
    // Without a `$` whatever follows is matched, too.
    let end = (!pattern.is_anchored()).then_some(Step::Any);
    let mut steps: Vec<Step> = octets.chain(end).collect();
    steps.dedup_by(|a, b| *a == Step::Any && *b == Step::Any);
    steps
}

/// The shortest text that both match: a search over pairs of places, in the order of the length of
/// the text before them.
fn shortest(one: &[Step], two: &[Step]) -> Option<Vec<u8>> {
    let width = two.len() + 1;
    // For each pair of places, the pair before it and the octet between them; the first has itself
    // before it.
    let mut before: Vec<Option<(usize, Option<u8>)>> = vec![None; (one.len() + 1) * width];
    let mut open = VecDeque::from([(0, 0, None)]);
    while let Some((place, from, octet)) = open.pop_front() {
        if before[place].is_some() {
            continue;
        }
        before[place] = Some((from, octet));
        let i = place / width;
        let j = place % width;
        if i == one.len() && j == two.len() {
            return Some(text_before(place, &before));
        }
        let a = one.get(i);
        let b = two.get(j);
        if a == Some(&Step::Any) {
            open.push_front((place + width, place, None));
        }
        if b == Some(&Step::Any) {
            open.push_front((place + 1, place, None));
        }
        match (a, b) {
            (Some(Step::Octet(a)), Some(Step::Octet(b))) if a == b => {
                open.push_back((place + width + 1, place, Some(*a)));
            }
            (Some(Step::Any), Some(Step::Octet(octet))) => {
                open.push_back((place + 1, place, Some(*octet)))
            }
            (Some(Step::Octet(octet)), Some(Step::Any)) => {
                open.push_back((place + width, place, Some(*octet)))
            }
            _ => {}
        }
    }
    None
}

/// The octets on the way to a pair of places.
fn text_before(mut place: usize, before: &[Option<(usize, Option<u8>)>]) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some((from, octet)) = before[place] {
        text.extend(octet);
        if from == place {
            break;
        }
        place = from;
    }
    text.reverse();
    text
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_overlap_where_a_target_matches_both() {
        let overlap = |a: &str, b: &str| Pattern::new(a).overlaps(&Pattern::new(b), &mut 10_000);
        assert!(overlap("/a/*.pdf$", "/a/b/"));
        assert!(!overlap("/a/*.pdf$", "/b/"));
        assert!(!overlap("/*.pdf$", "/*.html$"));
    }

    #[test]
    fn examples_are_matched_by_their_patterns() {
        assert_eq!(Pattern::new("/a/*.pdf$").example("x"), "/a/x.pdf");
        let common = |a: &str, b: &str| Pattern::new(a).common_target(&Pattern::new(b));
        assert_eq!(common("/a/", "/*.pdf$").as_deref(), Some("/a/.pdf"));
        assert_eq!(common("/a", "/b"), None);
    }
}
