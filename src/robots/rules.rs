//! [`RuleSet`]: the rules of one group. [`RuleSet::find`] finds the longest rule that matches a
//! target, with two indexes: one by the beginnings of the patterns, and [`Windows`] by octets in
//! their middle.

use super::Rule;
use super::windows::Windows;
use std::cmp::Reverse;

/// So many patterns with wildcards and the same beginning are tried one by one. More of them go
/// into [`Windows`].
const TRIED_ONE_BY_ONE: usize = 4;

/// Rules in the order given, with two indexes for matching.
///
/// The first is the sorted list of what the patterns begin with (their octets before the first
/// `*`). Everything in that list that a target begins with is the target's nearest predecessor in
/// sorted order, or a beginning of it: whatever sorts between a beginning of the target and the
/// target begins alike. So one binary search and a walk over ever shorter beginnings meet every
/// rule that can match, and pass over nearly all that cannot.
///
/// The second, `Windows`, has the patterns with wildcards that begin like many others.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Indexes of the rules that are not empty, the deciding one first: longest, then Allow, then
    /// as given. The place in this list is a rule's **rank**.
    ranked: Box<[u32]>,
    /// Sorted by `text`, each once.
    beginnings: Box<[Beginning]>,
    /// Their first octets, aligned with them.
    keys: Box<[u128]>,
    /// Ranks, by beginning, rising.
    ranks: Box<[u32]>,
    windows: Windows,
}

/// The octets before the first wildcard of one or more patterns.
#[derive(Clone, Debug)]
struct Beginning {
    text: Box<[u8]>,
    /// Where its ranks stand in `RuleSet::ranks`.
    first: u32,
    end: u32,
    /// The longest other beginning that this one begins with.
    shorter: Option<u32>,
    /// The lowest rank of its rules and of all shorter ones: when something better is found
    /// already, the walk is over.
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
        let (ranks, crowded) = part_crowded(
            ranks,
            |a, b| pattern(a).prefix() == pattern(b).prefix(),
            |rank| Windows::fit(pattern(rank)),
        );
        let crowded = crowded.into_iter().map(|rank| (rank, pattern(rank)));
        let windows = Windows::new(&crowded.collect::<Vec<_>>());

        let mut beginnings: Vec<Beginning> = Vec::new();
        // The beginnings that the current one begins with, the longest last.
        let mut open: Vec<u32> = Vec::new();
        let mut first = 0u32;
        for same in ranks.chunk_by(|a, b| pattern(*a).prefix() == pattern(*b).prefix()) {
            let text = pattern(same[0]).prefix();
            let end = first + same.len() as u32;
            while open
                .last()
                .is_some_and(|&last| !text.starts_with(&beginnings[last as usize].text))
            {
                open.pop();
            }
            let shorter = open.last().copied();
            let best = shorter.map_or(same[0], |shorter| {
                same[0].min(beginnings[shorter as usize].best)
            });
            open.push(beginnings.len() as u32);
            beginnings.push(Beginning {
                text: text.into(),
                first,
                end,
                shorter,
                best,
            });
            first = end;
        }
        let keys = beginnings
            .iter()
            .map(|beginning| first_octets(&beginning.text))
            .collect();
        RuleSet {
            keys,
            ranked: ranked.into(),
            beginnings: beginnings.into(),
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
    /// Disallow, the first of equals. `None` when no rule matches: allowed. Neither allocates nor
    /// locks.
    pub fn find(&self, target: &[u8]) -> Option<usize> {
        let mut found: Option<u32> = None;
        for beginning in self.beginnings_of(target) {
            if found.is_some_and(|found| found <= beginning.best) {
                break;
            }
            let better = self
                .ranks_of(beginning)
                .iter()
                .take_while(|&&rank| found.is_none_or(|found| rank < found));
            let matching = better
                .copied()
                .find(|&rank| self.rule(rank).pattern.matches_beyond_prefix(target));
            found = matching.or(found);
        }
        let found = self.windows.find(target, found, |rank| {
            self.rule(rank).pattern.matches(target)
        });
        found.map(|rank| self.ranked[rank as usize] as usize)
    }

    /// Calls `found` with the index of every rule that matches a normalised target: in no order,
    /// and of some more than once. Neither allocates nor locks.
    pub fn each(&self, target: &[u8], mut found: impl FnMut(usize)) {
        for beginning in self.beginnings_of(target) {
            for &rank in self.ranks_of(beginning) {
                if self.rule(rank).pattern.matches_beyond_prefix(target) {
                    found(self.ranked[rank as usize] as usize);
                }
            }
        }
        self.windows.each(target, |rank| {
            if self.rule(rank).pattern.matches(target) {
                found(self.ranked[rank as usize] as usize);
            }
        });
    }

    /// The beginnings that a target begins with, the longest first.
    #[inline]
    fn beginnings_of(&self, target: &[u8]) -> impl Iterator<Item = &Beginning> {
        let nearest = self
            .after(target)
            .checked_sub(1)
            .map(|nearest| &self.beginnings[nearest]);
        // All that follow are beginnings of the nearest: the target begins with those that are no
        // longer than this.
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
                .map(|shorter| &self.beginnings[shorter as usize])
        })
        .filter(move |beginning| beginning.text.len() <= common)
    }

    fn ranks_of(&self, beginning: &Beginning) -> &[u32] {
        &self.ranks[beginning.first as usize..beginning.end as usize]
    }

    /// How many beginnings sort before the target or are it. Most are told apart by their first
    /// octets, which stand together in memory.
    fn after(&self, target: &[u8]) -> usize {
        let key = first_octets(target);
        let below = self.keys.partition_point(|other| *other < key);
        let same = self.keys[below..].partition_point(|other| *other == key);
        below
            + self.beginnings[below..below + same]
                .partition_point(|beginning| &*beginning.text <= target)
    }

    fn rule(&self, rank: u32) -> &Rule {
        &self.rules[self.ranked[rank as usize] as usize]
    }
}

/// A number that sorts as the first octets of a text do; equal ones may still differ.
fn first_octets(text: &[u8]) -> u128 {
    let mut octets = [0; 16];
    let length = text.len().min(octets.len());
    octets[..length].copy_from_slice(&text[..length]);
    u128::from_be_bytes(octets)
}

/// Parts ranks, which are given in the order of their beginnings, into those that stay and those
/// that go into the other index. Of patterns that begin alike (`alike`) those that fit it (`fits`)
/// go if they are more than `TRIED_ONE_BY_ONE`.
fn part_crowded(
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
            .nth(TRIED_ONE_BY_ONE)
            .is_some();
        let (go, keep): (Vec<u32>, Vec<u32>) = same.iter().partition(|rank| many && fits(**rank));
        stay.extend(keep);
        crowded.extend(go);
    }
    (stay, crowded)
}
