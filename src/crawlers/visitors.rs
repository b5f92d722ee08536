//! A built-in list of real user agents of browsers and apps. [`is_visitor_word`] tests whether a
//! name is a word in one of these user agents. If a policy named a crawler by such a word,
//! crawlgate could take visitors for that crawler.

use super::byte_search::is_separate_token;
#[cfg(test)]
use super::byte_search::is_token_byte;
use std::sync::LazyLock;

const VISITOR_USER_AGENTS: &str = include_str!("visitors.txt");
/// The longest marker of a policy.
const MAX_NAME: usize = 100;

/// The user agents of the list. None may be identified as a bot.
#[cfg(test)]
pub fn visitor_user_agents() -> impl Iterator<Item = &'static str> {
    VISITOR_USER_AGENTS.lines()
}

/// Whether a user agent of the list contains a name as a separate word, without regard to case.
/// Allocates only in the first call.
pub fn is_visitor_word(name: &[u8]) -> bool {
    static LOWER: LazyLock<String> = LazyLock::new(|| VISITOR_USER_AGENTS.to_ascii_lowercase());
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
    memchr::memmem::find_iter(LOWER.as_bytes(), lower)
        .any(|start| is_separate_token(LOWER.as_bytes(), start, start + name.len()))
}

/// The words of the list that could be tokens of a policy, in lower case: products, platforms,
/// models.
#[cfg(test)]
pub fn visitor_words() -> std::collections::BTreeSet<String> {
    let words = visitor_user_agents().flat_map(|person| {
        person.split(|sign: char| !sign.is_ascii() || !is_token_byte(sign as u8))
    });
    let words =
        words.filter(|word| word.len() >= 3 && word.bytes().any(|byte| byte.is_ascii_alphabetic()));
    words.map(str::to_ascii_lowercase).collect()
}
