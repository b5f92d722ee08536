//! Finding which of a few hundred fixed marks stand in a user agent, by looking only where a word begins.
//!
//! Knows bytes; knows neither crawlers nor what a mark means. An automaton over all octets takes about twice as long
//! for a browser's string, and 1.4 MB: nearly all marks begin a word, and a string has some twenty of those.

/// Part of a word: a character of a product token.
const WORD: u8 = 1;
/// Some mark begins with it, where a word begins.
const BEGINS: u8 = 2;
/// Some mark begins with it, wherever it stands: it is no letter and no digit.
const SIGN: u8 = 4;

/// Marks, ready to be found.
#[derive(Debug)]
pub struct WordIndex {
    classes: [u8; 256],
    /// By the [`key`] of the first three octets: where the marks that begin so are in `marks`, or how many marks there
    /// are, if none does.
    beginnings: Box<[u16]>,
    marks: Vec<Mark>,
}

#[derive(Debug)]
struct Mark {
    key: u16,
    /// Its place in the order given.
    place: u16,
    /// The first octets as [`eight`] has them, and which of its bits they are.
    eight: u64,
    mask: u64,
    lower: Box<[u8]>,
}

impl WordIndex {
    /// Prepares marks; those shorter than three octets are left out. At most 65,535 are looked for.
    pub fn new<'a>(marks: impl IntoIterator<Item = &'a str>) -> WordIndex {
        let mut classes = [0; 256];
        for byte in 0..=u8::MAX {
            classes[usize::from(byte)] = u8::from(super::octets::is_token_byte(byte)) * WORD;
        }
        let mut index = WordIndex { classes, beginnings: Box::default(), marks: Vec::new() };
        for (mark, place) in marks.into_iter().zip(0..u16::MAX) {
            let lower = mark.to_ascii_lowercase().into_bytes().into_boxed_slice();
            let Some(key) = key(&lower) else { continue };
            for first in [lower[0], lower[0].to_ascii_uppercase()] {
                index.classes[usize::from(first)] |= if first.is_ascii_alphanumeric() { BEGINS } else { SIGN };
            }
            let mask = u64::MAX >> (64 - 8 * lower.len().min(8));
            index.marks.push(Mark { key, place, eight: eight(&lower) & mask, mask, lower });
        }
        index.marks.sort_by_key(|mark| (mark.key, mark.place));
        let none = index.marks.len() as u16;
        index.beginnings = vec![none; 1 << 15].into_boxed_slice();
        for (place, mark) in (0..none).zip(&index.marks).rev() {
            index.beginnings[usize::from(mark.key)] = place;
        }
        index
    }

    /// Tells every mark that stands in the text where a word begins, or anywhere if it begins with a sign: its place in
    /// the order given, and where it begins and ends. Tells the end of every word, too.
    pub fn find(&self, text: &[u8], mut mark: impl FnMut(u16, usize, usize), mut word: impl FnMut(usize)) {
        let class = |byte: &u8| self.classes[usize::from(*byte)];
        let mut at = 0;
        while let Some(passed) = text[at..].iter().position(|byte| class(byte) & (WORD | SIGN) != 0) {
            at += passed;
            let first = class(&text[at]);
            if first & (BEGINS | SIGN) != 0 {
                self.begin_at(text, at, &mut mark);
            }
            at += 1;
            if first & WORD == 0 {
                continue;
            }
            while let Some(passed) = text[at..].iter().position(|byte| class(byte) & (WORD | SIGN) != WORD) {
                at += passed;
                if class(&text[at]) & WORD == 0 {
                    break;
                }
                self.begin_at(text, at, &mut mark);
                at += 1;
            }
            if text.get(at).is_none_or(|byte| class(byte) & WORD != 0) {
                at = text.len();
            }
            word(at);
        }
    }

    /// Not part of the loop above: it has the registers to itself.
    #[inline(never)]
    fn begin_at(&self, text: &[u8], start: usize, mark: &mut impl FnMut(u16, usize, usize)) {
        let rest = &text[start..];
        let Some(key) = key(rest) else { return };
        let alike = self.marks.get(usize::from(self.beginnings[usize::from(key)])..).unwrap_or_default();
        if alike.is_empty() {
            return;
        }
        let eight = eight(rest);
        for candidate in alike.iter().take_while(|candidate| candidate.key == key) {
            if eight & candidate.mask == candidate.eight
                && rest.get(..candidate.lower.len()).is_some_and(|part| part.eq_ignore_ascii_case(&candidate.lower))
            {
                mark(candidate.place, start, start + candidate.lower.len());
            }
        }
    }

    /// The most marks that a single place has to be compared with.
    #[cfg(test)]
    pub fn most_at_one_place(&self) -> usize {
        self.marks.chunk_by(|one, other| one.key == other.key).map(<[_]>::len).max().unwrap_or_default()
    }
}

/// Five bits of each of the first three octets: a letter's are the same in either case.
fn key(text: &[u8]) -> Option<u16> {
    let [one, two, three, ..] = *text else { return None };
    let bits = |byte: u8| u16::from(byte & 31);
    Some(bits(one) << 10 | bits(two) << 5 | bits(three))
}

/// The first eight octets as a number, with letters of either case alike (and some other octets, too: whoever compares
/// these compares the text as well).
fn eight(text: &[u8]) -> u64 {
    let octets = text.first_chunk::<8>().copied().unwrap_or_else(|| {
        let mut octets = [0; 8];
        octets[..text.len()].copy_from_slice(text);
        octets
    });
    u64::from_le_bytes(octets) | 0x2020_2020_2020_2020
}
