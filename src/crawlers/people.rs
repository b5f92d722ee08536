//! The built-in list of user agents of people's browsers and apps. [`is_of_people`] tells whether a
//! name stands in one of them.

use super::octets::{is_token_byte, stands_alone};
use std::sync::LazyLock;

const PEOPLE: &str = include_str!("humans.txt");
/// No marker of a policy is longer.
const MAX_NAME: usize = 100;

/// User agents of people: none of them may be taken for a bot's.
#[cfg(test)]
pub fn people() -> impl Iterator<Item = &'static str> {
    PEOPLE.lines()
}

/// Whether a name stands by itself in a user agent of the list, without regard to case. Does not
/// allocate, but for the first time.
pub fn is_of_people(name: &[u8]) -> bool {
    static LOWER: LazyLock<String> = LazyLock::new(|| PEOPLE.to_ascii_lowercase());
    let mut lower = [0; MAX_NAME];
    let Some(lower) = lower.get_mut(..name.len()) else {
        return false;
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    if name.is_empty() {
        return false;
    }
    // A line break is no part of a word, so the list can be searched as one text.
    memchr::memmem::find_iter(LOWER.as_bytes(), lower).any(|start| {
        let end = start + name.len();
        stands_alone(
            LOWER.as_bytes(),
            start,
            end,
            is_token_byte(name[0]),
            is_token_byte(name[name.len() - 1]),
        )
    })
}

/// Every word of the list that a policy can have as a token, in lower case: products, platforms,
/// models.
#[cfg(test)]
pub fn words_of_people() -> std::collections::BTreeSet<String> {
    let words = people().flat_map(|person| {
        person.split(|sign: char| !sign.is_ascii() || !is_token_byte(sign as u8))
    });
    let words =
        words.filter(|word| word.len() >= 3 && word.bytes().any(|byte| byte.is_ascii_alphabetic()));
    words.map(str::to_ascii_lowercase).collect()
}
