//! [`MarkerIndex`] finds markers (texts that identify crawlers) in a `User-Agent`. A marker that
//! begins with a letter or digit is found only at the beginning of a word. Any other marker is
//! found anywhere.
//!
//! The index is faster than the crate aho-corasick: it identifies a browser in 1,698 instructions,
//! aho-corasick's DFA in 4,735 and its NFA in 9,684 (`benches/instructions`). crawlgate caches the
//! result for each `User-Agent`. The speed matters all the same, because a client can send a new
//! `User-Agent` in each request.

/// Class bit: a character of a product token, so part of a word.
const WORD_BYTE: u8 = 1;
/// Class bit: a letter or digit with which some marker begins.
const MARKER_START: u8 = 2;
/// Class bit: another byte with which some marker begins.
const SIGN_MARKER_START: u8 = 4;
/// Class bit: a sign that joins two parts of a word: `Baiduspider-ads`.
const JOINT_BYTE: u8 = 8;

/// Bits of a [`three_byte_key`].
const KEY_BITS: u32 = 15;
/// The multiplier of Knuth's multiplicative hashing.
const HASH_MULTIPLIER: u16 = 0x4E6D;

/// Markers, hashed by their first three bytes.
#[derive(Debug)]
pub struct MarkerIndex {
    /// The class bits of each byte.
    classes: [u8; 256],
    /// The index of the first entry of each slot, or the number of entries for an empty slot.
    slots: Box<[u16]>,
    /// The bits by which a hash is shifted to give a slot.
    shift: u32,
    /// Sorted by slot.
    entries: Vec<MarkerEntry>,
}

/// A marker of the index.
#[derive(Debug)]
struct MarkerEntry {
    slot: u16,
    /// The index of the marker, as given.
    place: u16,
    /// Its first eight bytes or fewer, folded by [`fold_eight`].
    first_eight: u64,
    /// The bits of `first_eight` that belong to the marker.
    mask: u64,
    lower: Box<[u8]>,
}

impl MarkerIndex {
    /// Prepares markers. Markers shorter than three bytes are left out, and so are those after the
    /// first 65,535.
    pub fn new<'a>(markers: impl IntoIterator<Item = &'a [u8]>) -> MarkerIndex {
        let mut classes = [0; 256];
        for byte in 0..=u8::MAX {
            classes[usize::from(byte)] =
                u8::from(super::byte_search::is_token_byte(byte)) * WORD_BYTE;
        }
        for byte in [b'-', b'_'] {
            classes[usize::from(byte)] |= JOINT_BYTE;
        }
        let markers: Vec<&[u8]> = markers.into_iter().collect();
        // Eight slots for each marker: few markers share one, and a small site needs little memory.
        let bits = (8 * markers.len())
            .next_power_of_two()
            .ilog2()
            .clamp(5, KEY_BITS);
        let mut index = MarkerIndex {
            classes,
            slots: Box::default(),
            shift: KEY_BITS - bits,
            entries: Vec::new(),
        };
        for (marker, place) in markers.into_iter().zip(0..u16::MAX) {
            let lower = marker.to_ascii_lowercase().into_boxed_slice();
            let Some(slot) = index.slot_of(&lower) else {
                continue;
            };
            for first in [lower[0], lower[0].to_ascii_uppercase()] {
                index.classes[usize::from(first)] |= if first.is_ascii_alphanumeric() {
                    MARKER_START
                } else {
                    SIGN_MARKER_START
                };
            }
            let mask = u64::MAX >> (64 - 8 * lower.len().min(8));
            index.entries.push(MarkerEntry {
                slot,
                place,
                first_eight: fold_eight(&lower) & mask,
                mask,
                lower,
            });
        }
        index.entries.sort_by_key(|entry| (entry.slot, entry.place));
        let none = index.entries.len() as u16;
        index.slots = vec![none; 1 << bits].into_boxed_slice();
        for (position, entry) in (0..none).zip(&index.entries).rev() {
            index.slots[usize::from(entry.slot)] = position;
        }
        index
    }

    /// Scans a text from an offset at which a word may begin. `on_marker` gets the index, the start
    /// and the end of each marker found; starts never decrease. `on_part_end` gets the end of each
    /// word, and of each part of a word before a `-` or `_`.
    pub fn scan(
        &self,
        text: &[u8],
        from: usize,
        mut on_marker: impl FnMut(u16, usize, usize),
        mut on_part_end: impl FnMut(usize),
    ) {
        let class_of = |byte: &u8| self.classes[usize::from(*byte)];
        let mut at = from;
        while let Some(passed) = text[at..]
            .iter()
            .position(|byte| class_of(byte) & (WORD_BYTE | SIGN_MARKER_START) != 0)
        {
            at += passed;
            let first = class_of(&text[at]);
            if first & (MARKER_START | SIGN_MARKER_START) != 0 {
                self.match_at(text, at, &mut on_marker);
            }
            at += 1;
            if first & WORD_BYTE == 0 {
                continue;
            }
            while let Some(passed) = text[at..].iter().position(|byte| {
                class_of(byte) & (WORD_BYTE | SIGN_MARKER_START | JOINT_BYTE) != WORD_BYTE
            }) {
                at += passed;
                let class = class_of(&text[at]);
                if class & WORD_BYTE == 0 {
                    break;
                }
                if class & SIGN_MARKER_START != 0 {
                    self.match_at(text, at, &mut on_marker);
                }
                if class & JOINT_BYTE != 0 {
                    on_part_end(at);
                }
                at += 1;
            }
            if text
                .get(at)
                .is_none_or(|byte| class_of(byte) & WORD_BYTE != 0)
            {
                at = text.len();
            }
            on_part_end(at);
        }
    }

    /// Calls `on_marker` for each marker at `start`. Not inlined, so that the loop of `scan` keeps
    /// its registers.
    #[inline(never)]
    fn match_at(&self, text: &[u8], start: usize, on_marker: &mut impl FnMut(u16, usize, usize)) {
        let rest = &text[start..];
        let Some(slot) = self.slot_of(rest) else {
            return;
        };
        let alike = self
            .entries
            .get(usize::from(self.slots[usize::from(slot)])..)
            .unwrap_or_default();
        if alike.is_empty() {
            return;
        }
        let first_eight = fold_eight(rest);
        for entry in alike.iter().take_while(|entry| entry.slot == slot) {
            if first_eight & entry.mask == entry.first_eight
                && rest
                    .get(..entry.lower.len())
                    .is_some_and(|part| part.eq_ignore_ascii_case(&entry.lower))
            {
                on_marker(entry.place, start, start + entry.lower.len());
            }
        }
    }

    /// The slot of a text's first three bytes; `None` for fewer than three bytes.
    fn slot_of(&self, text: &[u8]) -> Option<u16> {
        Some(
            (three_byte_key(text)?.wrapping_mul(HASH_MULTIPLIER) & ((1 << KEY_BITS) - 1))
                >> self.shift,
        )
    }

    /// The most markers in one slot.
    #[cfg(test)]
    pub fn max_markers_per_slot(&self) -> usize {
        self.entries
            .chunk_by(|one, other| one.slot == other.slot)
            .map(<[_]>::len)
            .max()
            .unwrap_or_default()
    }
}

/// Five bits of each of the first three bytes; `None` if there are fewer. A letter has the same five
/// bits in either case.
fn three_byte_key(text: &[u8]) -> Option<u16> {
    let [one, two, three, ..] = *text else {
        return None;
    };
    let bits = |byte: u8| u16::from(byte & 31);
    Some(bits(one) << 10 | bits(two) << 5 | bits(three))
}

/// The first eight bytes as a number, folded to lower case; missing bytes are zero. Some other bytes
/// become equal, too, so equal numbers do not prove equal texts.
fn fold_eight(text: &[u8]) -> u64 {
    let bytes = text.first_chunk::<8>().copied().unwrap_or_else(|| {
        let mut bytes = [0; 8];
        bytes[..text.len()].copy_from_slice(text);
        bytes
    });
    u64::from_le_bytes(bytes) | 0x2020_2020_2020_2020
}
