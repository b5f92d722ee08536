//! Compares two path patterns of robots.txt rules. [`PathPattern::overlaps`] says whether some URL
//! matches both, [`PathPattern::covers`] whether one pattern matches every URL that the other
//! matches. Lints and the merging of rules use this to find rules that undo each other.
//! [`PathPattern::example_target`] and [`PathPattern::common_target`] make example targets, spelled
//! as a client sends them.

use super::{LITERAL_STAR, PathPattern};
use memchr::memchr;
use std::collections::VecDeque;

impl PathPattern {
    /// Whether this pattern matches every target that `other` matches. May be false although it
    /// does, never the reverse: a wildcard of `other` must meet a wildcard of this pattern.
    pub(crate) fn covers(&self, other: &PathPattern) -> bool {
        !other.is_empty() && self.matches(&other.to_wildcard_target())
    }

    /// This pattern as a target. A pattern that matches it [covers](PathPattern::covers) this one.
    pub(crate) fn to_wildcard_target(&self) -> Vec<u8> {
        // Only a wildcard matches the `*` of this target: literal ones are another byte.
        let mut target = self.body().to_vec();
        if !self.is_anchored() {
            target.push(b'*');
        }
        target
    }

    /// Whether some target matches both. Each comparison of two bytes takes one from `budget`. True,
    /// the safe answer, when the budget is used up or both patterns are very long; else exact.
    pub(crate) fn overlaps(&self, other: &PathPattern, budget: &mut usize) -> bool {
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
            // The shorter of two equal prefixes must match more than its own text.
            let short = if one.len() <= two.len() { self } else { other };
            return !short.is_anchored() || one.len() == two.len();
        }
        let one = pattern_elements(self);
        let two = pattern_elements(other);
        let cost = one.len().saturating_mul(two.len());
        let is_affordable = cost <= MAX_SEARCH_PAIRS.min(*budget);
        *budget = budget.saturating_sub(cost);
        !is_affordable || shortest_common_text(&one, &two).is_some()
    }

    fn has_wildcard(&self) -> bool {
        memchr(b'*', self.body()).is_some()
    }

    /// A target that the pattern matches, with `fill` in place of each wildcard. It begins with
    /// `/`, also where the pattern does not.
    pub(crate) fn example_target(&self, fill: &str) -> String {
        let bytes = self
            .body()
            .iter()
            .map(|byte| if *byte == b'*' { None } else { Some(*byte) });
        format_target(bytes, fill)
    }

    /// The shortest target that both match. `None` if there is none, or the patterns are too long
    /// to search.
    pub(crate) fn common_target(&self, other: &PathPattern) -> Option<String> {
        if self.is_empty() || other.is_empty() {
            return None;
        }
        let one = pattern_elements(self);
        let two = pattern_elements(other);
        if one.len().saturating_mul(two.len()) > MAX_SEARCH_PAIRS {
            return None;
        }
        Some(format_target(
            shortest_common_text(&one, &two)?.into_iter().map(Some),
            "",
        ))
    }
}

/// The most pairs of positions that a search for a common target may visit.
const MAX_SEARCH_PAIRS: usize = 65_536;

/// The bytes as a target that a client would send, with `fill` for each `None` (a wildcard) and
/// with a `/` in front.
fn format_target(bytes: impl Iterator<Item = Option<u8>>, fill: &str) -> String {
    let mut target = String::new();
    for byte in bytes {
        match byte {
            None => target.push_str(fill),
            Some(LITERAL_STAR) => target.push_str("%2A"),
            Some(byte) => target.push(char::from(byte)),
        }
    }
    if target.starts_with('/') {
        target
    } else {
        format!("/{target}")
    }
}

/// A byte, or any run of bytes.
#[derive(PartialEq, Eq)]
enum PatternElement {
    Byte(u8),
    Any,
}

/// The elements of a pattern. One without a final `$` gets a wildcard at its end; adjacent
/// wildcards become one.
fn pattern_elements(pattern: &PathPattern) -> Vec<PatternElement> {
    let bytes = pattern.body().iter().map(|byte| {
        if *byte == b'*' {
            PatternElement::Any
        } else {
            PatternElement::Byte(*byte)
        }
    });
    // Without a `$` whatever follows is matched, too.
    let end = (!pattern.is_anchored()).then_some(PatternElement::Any);
    let mut steps: Vec<PatternElement> = bytes.chain(end).collect();
    steps.dedup_by(|a, b| *a == PatternElement::Any && *b == PatternElement::Any);
    steps
}

/// The shortest text that both match: a breadth-first search over pairs of positions, by the length
/// of the text before them.
fn shortest_common_text(one: &[PatternElement], two: &[PatternElement]) -> Option<Vec<u8>> {
    use PatternElement::*;

    let width = two.len() + 1;
    // For each pair the previous pair and the byte between them. The first pair is its own previous.
    let mut before: Vec<Option<(usize, Option<u8>)>> = vec![None; (one.len() + 1) * width];
    let mut open = VecDeque::from([(0, 0, None)]);
    while let Some((place, from, byte)) = open.pop_front() {
        if before[place].is_some() {
            continue;
        }
        before[place] = Some((from, byte));
        let i = place / width;
        let j = place % width;
        if i == one.len() && j == two.len() {
            return Some(trace_back(place, &before));
        }
        let a = one.get(i);
        let b = two.get(j);
        if a == Some(&Any) {
            open.push_front((place + width, place, None));
        }
        if b == Some(&Any) {
            open.push_front((place + 1, place, None));
        }
        match (a, b) {
            (Some(Byte(a)), Some(Byte(b))) if a == b => {
                open.push_back((place + width + 1, place, Some(*a)));
            }
            (Some(Any), Some(Byte(byte))) => open.push_back((place + 1, place, Some(*byte))),
            (Some(Byte(byte)), Some(Any)) => open.push_back((place + width, place, Some(*byte))),
            _ => {}
        }
    }
    None
}

/// The bytes on the path from the first pair to `place`.
fn trace_back(mut place: usize, before: &[Option<(usize, Option<u8>)>]) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some((from, byte)) = before[place] {
        text.extend(byte);
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
    use super::PathPattern;

    #[test]
    fn patterns_overlap_where_a_target_matches_both() {
        let overlap =
            |a: &str, b: &str| PathPattern::new(a).overlaps(&PathPattern::new(b), &mut 10_000);
        assert!(overlap("/a/*.pdf$", "/a/b/"));
        assert!(!overlap("/a/*.pdf$", "/b/"));
        assert!(!overlap("/*.pdf$", "/*.html$"));
    }

    #[test]
    fn examples_are_matched_by_their_patterns() {
        assert_eq!(
            PathPattern::new("/a/*.pdf$").example_target("x"),
            "/a/x.pdf"
        );
        let common = |a: &str, b: &str| PathPattern::new(a).common_target(&PathPattern::new(b));
        assert_eq!(common("/a/", "/*.pdf$").as_deref(), Some("/a/.pdf"));
        assert_eq!(common("/a", "/b"), None);
    }
}
