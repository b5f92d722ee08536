//! [`Windows`]: an index of patterns by octets that every matching target contains.
//!
//! Patterns that begin alike (`/*?sort=`, `/*.pdf$`, ... all begin with `/`) cannot be told apart
//! by their beginnings. Each is filed under one **window**: up to four octets in a row of its text
//! after the first wildcard. Of its windows the rarest among all patterns is taken. One walk over
//! the target finds every pattern that can match: at each octet it looks up the octets before it in
//! a small bit set. Memory is linear in the number of patterns.

use super::Pattern;
use super::steps::took;

/// A longer window would be rarer but leave out more patterns.
const WIDEST: usize = 4;
/// Patterns that are tried because the target contains their window. A client can write targets in
/// which the same windows appear again and again. Beyond this, each pattern is tried once instead,
/// and the work stays linear.
const MAX_TRIES: u32 = 64;
/// Slots in which occurrences of windows are counted, to choose the rarest: approximate, and of a
/// fixed size.
const COUNTED: usize = 1 << 14;

/// Patterns by a window of theirs.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// A bit set with the hashes of all windows. Its size is a power of two.
    filter: Box<[u64]>,
    /// How far a hash is shifted to be an index of a bit.
    shift: u32,
    /// The widths that occur.
    widths: Box<[usize]>,
    /// Sorted by window, each once.
    buckets: Box<[Bucket]>,
    /// Ranks by bucket, rising.
    ranks: Box<[u32]>,
    /// All ranks, rising.
    all: Box<[u32]>,
}

#[derive(Clone, Debug)]
struct Bucket {
    window: Window,
    first: u32,
    end: u32,
}

/// Up to four octets, the last one lowest, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Window {
    octets: u32,
    width: u8,
}

impl Window {
    /// The window of the last `width` bytes of `octets`, of which the last is the lowest.
    fn new(octets: u32, width: usize) -> Window {
        let mask = u32::MAX >> (8 * (WIDEST - width));
        Window {
            octets: octets & mask,
            width: width as u8,
        }
    }

    /// Its place in a table of [`COUNTED`] counts.
    fn count_slot(self) -> usize {
        (self.hash() >> (32 - COUNTED.ilog2())) as usize
    }

    /// A hash that is well spread in its upper bits.
    fn hash(self) -> u32 {
        (self.octets ^ u32::from(self.width) << 29).wrapping_mul(0x9E37_79B1)
    }
}

/// Whether a rank is lower than what was found so far.
fn is_better(rank: u32, found: Option<u32>) -> bool {
    found.is_none_or(|found| rank < found)
}

/// The windows of a text, `width` octets each.
fn windows(text: &[u8], width: usize) -> impl Iterator<Item = Window> + '_ {
    text.windows(width).map(move |octets| {
        Window::new(
            octets
                .iter()
                .fold(0, |sum, octet| sum << 8 | u32::from(*octet)),
            width,
        )
    })
}

/// The windows under which a pattern can be filed: the widest that its text after the first
/// wildcard has.
fn choices(pattern: &Pattern) -> impl Iterator<Item = Window> + '_ {
    let longest = pattern.pieces().map(<[u8]>::len).max().unwrap_or(0);
    let width = longest.min(WIDEST);
    pattern
        .pieces()
        .filter(move |piece| width > 0 && piece.len() >= width)
        .flat_map(move |piece| windows(piece, width))
}

impl Windows {
    /// Whether a pattern can be found by a window.
    pub fn fit(pattern: &Pattern) -> bool {
        pattern.pieces().any(|piece| !piece.is_empty())
    }

    /// Files patterns that [`fit`](Windows::fit), given with their ranks.
    pub fn new(patterns: &[(u32, &Pattern)]) -> Windows {
        if patterns.is_empty() {
            return Windows::default();
        }
        let mut counts = vec![0u32; COUNTED];
        for (_, pattern) in patterns {
            choices(pattern).for_each(|window| counts[window.count_slot()] += 1);
        }
        let mut filed: Vec<(Window, u32)> = patterns
            .iter()
            .filter_map(|(rank, pattern)| {
                // Of equally rare windows the first.
                let rarest = choices(pattern).min_by_key(|window| counts[window.count_slot()])?;
                Some((rarest, *rank))
            })
            .collect();
        filed.sort_unstable();

        let bits = (filed.len() * 16).next_power_of_two().max(64);
        let shift = 32 - bits.ilog2();
        let mut filter = vec![0u64; bits / 64];
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut first = 0u32;
        for same in filed.chunk_by(|(a, _), (b, _)| a == b) {
            let window = same[0].0;
            let end = first + same.len() as u32;
            let bit = (window.hash() >> shift) as usize;
            filter[bit / 64] |= 1 << (bit % 64);
            buckets.push(Bucket { window, first, end });
            first = end;
        }
        let ranks: Box<[u32]> = filed.iter().map(|(_, rank)| *rank).collect();
        let mut all = ranks.clone();
        all.sort_unstable();
        let mut widths: Vec<usize> = buckets
            .iter()
            .map(|bucket| usize::from(bucket.window.width))
            .collect();
        widths.sort_unstable();
        widths.dedup();
        Windows {
            filter: filter.into(),
            shift,
            widths: widths.into(),
            buckets: buckets.into(),
            ranks,
            all,
        }
    }

    /// The lowest rank of a pattern that matches, by `matches`, or `found` if that is lower. Takes
    /// time linear in the target and in the patterns that are tried; allocates nothing.
    pub fn find(
        &self,
        target: &[u8],
        mut found: Option<u32>,
        mut matches: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if !self.all.first().is_some_and(|&best| is_better(best, found)) {
            return found;
        }
        let mut tries = 0;
        let mut octets = 0u32;
        for (place, octet) in target.iter().enumerate() {
            took(1);
            octets = octets << 8 | u32::from(*octet);
            for &width in self.widths.iter().take_while(|&&width| width <= place + 1) {
                let window = Window::new(octets, width);
                let bit = (window.hash() >> self.shift) as usize;
                if self.filter[bit / 64] & (1 << (bit % 64)) == 0 {
                    continue;
                }
                for &rank in self.filed_under(window) {
                    if !is_better(rank, found) {
                        break;
                    }
                    took(1);
                    tries += 1;
                    if tries > MAX_TRIES {
                        let all = self.all.iter().copied();
                        let mut left = all.take_while(|&rank| is_better(rank, found));
                        return left.find(|&rank| matches(rank)).or(found);
                    }
                    if matches(rank) {
                        found = Some(rank);
                        break;
                    }
                }
            }
        }
        found
    }

    /// Calls `candidate` with the ranks of all patterns that may match, of some more than once. It
    /// does not check that they match. Takes time linear in the target and in the patterns;
    /// allocates nothing.
    pub fn each(&self, target: &[u8], mut candidate: impl FnMut(u32)) {
        self.find(target, None, |rank| {
            candidate(rank);
            false
        });
    }

    /// The ranks of the patterns that are filed under a window, rising; empty if there are none.
    fn filed_under(&self, window: Window) -> &[u32] {
        match self
            .buckets
            .binary_search_by_key(&window, |bucket| bucket.window)
        {
            Ok(place) => {
                let bucket = &self.buckets[place];
                &self.ranks[bucket.first as usize..bucket.end as usize]
            }
            Err(_) => &[],
        }
    }
}
