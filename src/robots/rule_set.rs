//! [`RuleSet`]: the Allow and Disallow rules of one robots.txt group. [`RuleSet::find`] finds the
//! longest rule that matches a request target. Two indexes make this fast, even among thousands of
//! rules: one of the prefixes of the path patterns, and [`WindowIndex`] of the bytes that follow
//! the first wildcard of a pattern.

use super::Rule;
use super::window_index::WindowIndex;
use std::cmp::Reverse;

/// The most patterns with wildcards and the same prefix that are tried one by one. More of them go
/// into [`WindowIndex`].
const MAX_TRIED_SINGLY: usize = 4;

/// Rules in the order given, with two indexes for matching.
///
/// The first is the sorted list of the prefixes of the patterns (their bytes before the first `*`).
/// The longest prefix in the list that a target can begin with is its predecessor in sorted order
/// or a prefix of that. So one binary search and a walk over ever shorter prefixes meet every rule
/// that can match, and skip nearly all others.
///
/// The second, [`WindowIndex`], has patterns with wildcards that share their prefix with many.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Indexes of the rules that are not empty, by precedence: the longest first, then Allow, then
    /// in order. The position in this list is the **rank** of a rule.
    ranked: Box<[u32]>,
    /// Sorted by `text`, each once.
    prefixes: Box<[PatternPrefix]>,
    /// The first bytes of each prefix, as a number.
    keys: Box<[u128]>,
    /// Ranks by prefix, ascending within each.
    ranks: Box<[u32]>,
    windows: WindowIndex,
}

/// The bytes before the first wildcard of one or more patterns.
#[derive(Debug)]
struct PatternPrefix {
    text: Box<[u8]>,
    /// Start of its ranks in `RuleSet::ranks`.
    first: u32,
    /// One past their end.
    end: u32,
    /// The longest other prefix that this one begins with.
    shorter: Option<u32>,
    /// The lowest rank of this prefix and all shorter ones. The walk ends once a lower one matched.
    best: u32,
}

impl RuleSet {
    /// Prepares `rules` for matching.
    pub fn new(rules: Vec<Rule>) -> RuleSet {
        let mut ranked: Vec<u32> = (0u32..)
            .zip(&rules)
            .filter(|(_, rule)| !rule.pattern.is_empty())
            .map(|(i, _)| i)
            .collect();
        ranked.sort_by_key(|&index| {
            let rule = &rules[index as usize];
            (Reverse(rule.pattern.priority()), Reverse(rule.allow), index)
        });
        let pattern = |rank: u32| &rules[ranked[rank as usize] as usize].pattern;
        let mut ranks: Vec<u32> = (0u32..).zip(&ranked).map(|(rank, _)| rank).collect();
        ranks.sort_by_key(|&rank| (pattern(rank).prefix(), rank));
        let (ranks, crowded) = split_crowded(
            ranks,
            |a, b| pattern(a).prefix() == pattern(b).prefix(),
            |rank| WindowIndex::has_window(pattern(rank)),
        );
        let crowded = crowded.into_iter().map(|rank| (rank, pattern(rank)));
        let windows = WindowIndex::new(&crowded.collect::<Vec<_>>());

        let mut prefixes: Vec<PatternPrefix> = Vec::new();
        // The prefixes that the current one begins with, the longest last.
        let mut open: Vec<u32> = Vec::new();
        let mut first = 0u32;
        for same in ranks.chunk_by(|a, b| pattern(*a).prefix() == pattern(*b).prefix()) {
            let text = pattern(same[0]).prefix();
            let end = first + same.len() as u32;
            while open
                .last()
                .is_some_and(|&last| !text.starts_with(&prefixes[last as usize].text))
            {
                open.pop();
            }
            let shorter = open.last().copied();
            let best = shorter.map_or(same[0], |shorter| {
                same[0].min(prefixes[shorter as usize].best)
            });
            open.push(prefixes.len() as u32);
            prefixes.push(PatternPrefix {
                text: text.into(),
                first,
                end,
                shorter,
                best,
            });
            first = end;
        }
        let keys = prefixes
            .iter()
            .map(|beginning| first_bytes_key(&beginning.text))
            .collect();
        RuleSet {
            keys,
            ranked: ranked.into(),
            prefixes: prefixes.into(),
            ranks: ranks.into(),
            windows,
            rules,
        }
    }

    /// The rules in the order they were given.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The index of the rule that decides about a normalised target: the longest, Allow before
    /// Disallow, the first of equals. `None` if no rule matches, which means allowed. Neither
    /// allocates nor locks.
    pub fn find(&self, target: &[u8]) -> Option<usize> {
        let mut found: Option<u32> = None;
        for beginning in self.prefixes_of(target) {
            if found.is_some_and(|found| found <= beginning.best) {
                break;
            }
            let better = self
                .ranks_of(beginning)
                .iter()
                .take_while(|&&rank| found.is_none_or(|found| rank < found));
            let matching = better
                .copied()
                .find(|&rank| self.rule(rank).pattern.matches_after_prefix(target));
            found = matching.or(found);
        }
        let found = self.windows.find(target, found, |rank| {
            self.rule(rank).pattern.matches(target)
        });
        found.map(|rank| self.ranked[rank as usize] as usize)
    }

    /// Calls `found` with the index of every rule that matches a normalised target, in no order,
    /// for some rules more than once. Neither allocates nor locks.
    pub fn for_each_match(&self, target: &[u8], mut found: impl FnMut(usize)) {
        for beginning in self.prefixes_of(target) {
            for &rank in self.ranks_of(beginning) {
                if self.rule(rank).pattern.matches_after_prefix(target) {
                    found(self.ranked[rank as usize] as usize);
                }
            }
        }
        self.windows.for_each_candidate(target, |rank| {
            if self.rule(rank).pattern.matches(target) {
                found(self.ranked[rank as usize] as usize);
            }
        });
    }

    /// The prefixes of a target, the longest first.
    #[inline]
    fn prefixes_of(&self, target: &[u8]) -> impl Iterator<Item = &PatternPrefix> {
        let nearest = self
            .count_up_to(target)
            .checked_sub(1)
            .map(|nearest| &self.prefixes[nearest]);
        // All candidates are prefixes of the nearest; those up to this length are also prefixes of
        // the target.
        let common = nearest.map_or(0, |nearest| {
            nearest
                .text
                .iter()
                .zip(target)
                .take_while(|(a, b)| a == b)
                .count()
        });
        std::iter::successors(nearest, |beginning| {
            beginning
                .shorter
                .map(|shorter| &self.prefixes[shorter as usize])
        })
        .filter(move |beginning| beginning.text.len() <= common)
    }

    fn ranks_of(&self, beginning: &PatternPrefix) -> &[u32] {
        &self.ranks[beginning.first as usize..beginning.end as usize]
    }

    /// The number of prefixes that sort up to and including the target. Their first bytes decide
    /// mostly, and are adjacent in memory.
    fn count_up_to(&self, target: &[u8]) -> usize {
        let key = first_bytes_key(target);
        let below = self.keys.partition_point(|other| *other < key);
        let same = self.keys[below..].partition_point(|other| *other == key);
        below
            + self.prefixes[below..below + same]
                .partition_point(|beginning| &*beginning.text <= target)
    }

    fn rule(&self, rank: u32) -> &Rule {
        &self.rules[self.ranked[rank as usize] as usize]
    }
}

/// The first 16 bytes as a number that sorts like them. Texts with equal numbers may differ.
fn first_bytes_key(text: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = text.len().min(bytes.len());
    bytes[..length].copy_from_slice(&text[..length]);
    u128::from_be_bytes(bytes)
}

/// Splits ranks, sorted by prefix, into those for the prefix index and those for [`WindowIndex`].
/// Patterns with the same prefix (`alike`) that have a window (`fits`) go into the second if there
/// are more than `MAX_TRIED_SINGLY`.
fn split_crowded(
    ranks: Vec<u32>,
    alike: impl Fn(u32, u32) -> bool,
    fits: impl Fn(u32) -> bool,
) -> (Vec<u32>, Vec<u32>) {
    let mut stay = Vec::with_capacity(ranks.len());
    let mut crowded = Vec::new();
    for same in ranks.chunk_by(|a, b| alike(*a, *b)) {
        let many = same
            .iter()
            .filter(|rank| fits(**rank))
            .nth(MAX_TRIED_SINGLY)
            .is_some();
        let (go, keep): (Vec<u32>, Vec<u32>) = same.iter().partition(|rank| many && fits(**rank));
        stay.extend(keep);
        crowded.extend(go);
    }
    (stay, crowded)
}
