//! [`WindowIndex`] finds the path patterns of robots.txt that may match a request target. It is for
//! patterns that have the same text before their first wildcard. For example, `/*?sort=` and
//! `/*.pdf$` both begin with `/`, so this prefix cannot tell them apart.
//!
//! Each pattern is filed under one **window**: up to four adjacent bytes of the text after its
//! first wildcard. Every target that matches the pattern contains the window. For each pattern, the
//! index chooses the window that is rarest among all patterns. One pass over the target finds every
//! pattern that can match: at each byte, the last bytes are looked up in a small bit set. Memory is
//! linear in the number of patterns.

use super::PathPattern;
use super::step_counter::count_steps;

/// The longest window. Longer ones would be rarer but exclude more patterns.
const MAX_WINDOW_BYTES: usize = 4;
/// The most patterns that are tried because the target contains their window. A client can repeat
/// windows in a target. Beyond this, each pattern is tried once, and the work stays linear.
const MAX_TRIES: u32 = 64;
/// Slots of the table that counts windows to choose the rarest. Collisions only make it a worse
/// choice.
const COUNT_SLOTS: usize = 1 << 14;

/// Patterns by one of their windows.
#[derive(Debug, Default)]
pub struct WindowIndex {
    /// A bit set with the hashes of all windows. Its size is a power of two.
    filter: Box<[u64]>,
    /// The shift that makes a hash the index of a bit.
    shift: u32,
    /// The widths of windows that occur, ascending.
    widths: Box<[usize]>,
    /// Sorted by window, each once.
    buckets: Box<[WindowBucket]>,
    /// Ranks by bucket, ascending within each.
    ranks: Box<[u32]>,
    /// All ranks, ascending.
    all: Box<[u32]>,
}

#[derive(Debug)]
struct WindowBucket {
    window: ByteWindow,
    first: u32,
    end: u32,
}

/// Up to four adjacent bytes, the last one in the lowest bits, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ByteWindow {
    bytes: u32,
    width: u8,
}

impl ByteWindow {
    /// The window of the lowest `width` bytes of `bytes`.
    fn new(bytes: u32, width: usize) -> ByteWindow {
        let mask = u32::MAX >> (8 * (MAX_WINDOW_BYTES - width));
        ByteWindow {
            bytes: bytes & mask,
            width: width as u8,
        }
    }

    /// Its place in a table of [`COUNT_SLOTS`] counts.
    fn count_slot(self) -> usize {
        (self.hash() >> (32 - COUNT_SLOTS.ilog2())) as usize
    }

    /// A hash with well distributed upper bits.
    fn hash(self) -> u32 {
        (self.bytes ^ u32::from(self.width) << 29).wrapping_mul(0x9E37_79B1)
    }
}

/// Whether a rank is lower than the best one found.
fn is_better(rank: u32, found: Option<u32>) -> bool {
    found.is_none_or(|found| rank < found)
}

/// The windows of a text, `width` bytes each.
fn windows(text: &[u8], width: usize) -> impl Iterator<Item = ByteWindow> + '_ {
    text.windows(width).map(move |bytes| {
        ByteWindow::new(
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
            width,
        )
    })
}

/// The windows under which a pattern can be filed: the widest ones in its text after the first
/// wildcard.
fn window_choices(pattern: &PathPattern) -> impl Iterator<Item = ByteWindow> + '_ {
    let longest = pattern
        .wildcard_pieces()
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    let width = longest.min(MAX_WINDOW_BYTES);
    pattern
        .wildcard_pieces()
        .filter(move |piece| width > 0 && piece.len() >= width)
        .flat_map(move |piece| windows(piece, width))
}

impl WindowIndex {
    /// Whether a pattern can be found by a window.
    pub fn has_window(pattern: &PathPattern) -> bool {
        pattern.wildcard_pieces().any(|piece| !piece.is_empty())
    }

    /// Files patterns that [`has_window`](Windows::has_window), given with their ranks.
    pub fn new(patterns: &[(u32, &PathPattern)]) -> WindowIndex {
        if patterns.is_empty() {
            return WindowIndex::default();
        }
        let mut counts = vec![0u32; COUNT_SLOTS];
        for (_, pattern) in patterns {
            window_choices(pattern).for_each(|window| counts[window.count_slot()] += 1);
        }
        let mut filed: Vec<(ByteWindow, u32)> = patterns
            .iter()
            .filter_map(|(rank, pattern)| {
                // Of equally rare windows the first.
                let rarest =
                    window_choices(pattern).min_by_key(|window| counts[window.count_slot()])?;
                Some((rarest, *rank))
            })
            .collect();
        filed.sort_unstable();

        let bits = (filed.len() * 16).next_power_of_two().max(64);
        let shift = 32 - bits.ilog2();
        let mut filter = vec![0u64; bits / 64];
        let mut buckets: Vec<WindowBucket> = Vec::new();
        let mut first = 0u32;
        for same in filed.chunk_by(|(a, _), (b, _)| a == b) {
            let window = same[0].0;
            let end = first + same.len() as u32;
            let bit = (window.hash() >> shift) as usize;
            filter[bit / 64] |= 1 << (bit % 64);
            buckets.push(WindowBucket { window, first, end });
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
        WindowIndex {
            filter: filter.into(),
            shift,
            widths: widths.into(),
            buckets: buckets.into(),
            ranks,
            all,
        }
    }

    /// The lowest rank for which `matches` is true, or `found` if that is lower. Takes time linear
    /// in the target and the patterns; does not allocate.
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
        let mut bytes = 0u32;
        for (place, byte) in target.iter().enumerate() {
            count_steps(1);
            bytes = bytes << 8 | u32::from(*byte);
            for &width in self.widths.iter().take_while(|&&width| width <= place + 1) {
                let window = ByteWindow::new(bytes, width);
                let bit = (window.hash() >> self.shift) as usize;
                if self.filter[bit / 64] & (1 << (bit % 64)) == 0 {
                    continue;
                }
                for &rank in self.ranks_in_window(window) {
                    if !is_better(rank, found) {
                        break;
                    }
                    count_steps(1);
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

    /// Calls `candidate` with the rank of every pattern that may match, for some more than once.
    /// Takes time linear in the target and the patterns; does not allocate.
    pub fn for_each_candidate(&self, target: &[u8], mut candidate: impl FnMut(u32)) {
        self.find(target, None, |rank| {
            candidate(rank);
            false
        });
    }

    /// The ranks of the patterns under a window, ascending.
    fn ranks_in_window(&self, window: ByteWindow) -> &[u32] {
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
