//! Octets of a field as text and back: a field value may hold any octet from 0x80 up (RFC 9110 section 5.5, obs-text),
//! and what is no UTF-8 must come out as it went in.

use std::borrow::Cow;

/// Where octets that are no UTF-8 are kept: the last 128 characters of the second private plane, which fields do not
/// use. If one does, its octets are kept in the same way.
const FIRST: u32 = 0x10_FF80;

/// A field value as text.
pub(super) fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) if !text.contains(is_kept) => Cow::Borrowed(text),
        _ => {
            let mut kept = String::with_capacity(value.len() + 16);
            for chunk in value.utf8_chunks() {
                for sign in chunk.valid().chars() {
                    match is_kept(sign) {
                        false => kept.push(sign),
                        true => kept.extend(sign.encode_utf8(&mut [0; 4]).bytes().filter_map(keep)),
                    }
                }
                kept.extend(chunk.invalid().iter().copied().filter_map(keep));
            }
            Cow::Owned(kept)
        }
    }
}

/// The octets of a line of [`Tags::lines`](super::Tags::lines), as they are sent.
pub fn octets(line: &str) -> Cow<'_, [u8]> {
    if !line.contains(is_kept) {
        return Cow::Borrowed(line.as_bytes());
    }
    let mut octets = Vec::with_capacity(line.len());
    for sign in line.chars() {
        match u32::from(sign).checked_sub(FIRST).and_then(|place| u8::try_from(place).ok()) {
            Some(place) => octets.push(place | 0x80),
            None => octets.extend(sign.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Cow::Owned(octets)
}

fn is_kept(sign: char) -> bool {
    u32::from(sign) >= FIRST
}

fn keep(octet: u8) -> Option<char> {
    char::from_u32(FIRST + u32::from(octet & 0x7F))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_goes_in_comes_out(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(*octets(&text(&value)) == *value);
        }

        #[test]
        fn text_is_what_it_is(value in "[ -~é€]{0,20}") {
            prop_assert_eq!(text(value.as_bytes()), value.as_str());
        }
    }

    #[test]
    fn a_character_that_stands_for_octets_is_kept_as_its_own() {
        let value = "a\u{10FFAB}b".as_bytes();
        assert_eq!(octets(&text(value)), value);
    }
}
