//! Functions on the octets of user agents. [`is_token_byte`] tells the characters of product
//! tokens, and [`words`] splits a text into words. The others search and compare text without
//! regard to case.

/// Whether a byte is a character of product tokens: an ASCII letter or digit, `_` or `-`. Next to a
/// marker it makes the marker part of another word.
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Whether a text ends in these lower-case letters, without regard to case.
pub fn ends_with(text: &[u8], lower: &[u8]) -> bool {
    text.len() >= lower.len() && text[text.len() - lower.len()..].eq_ignore_ascii_case(lower)
}

/// Where these lower-case letters first stand in a text, without regard to case.
pub fn find(text: &[u8], lower: &[u8]) -> Option<usize> {
    text.windows(lower.len())
        .position(|window| window.eq_ignore_ascii_case(lower))
}

/// Whether these lower-case letters stand in a text, without regard to case.
pub fn contains(text: &[u8], lower: &[u8]) -> bool {
    find(text, lower).is_some()
}

/// Whether one of these stands in a text.
pub fn contains_any(text: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| contains(text, word))
}

/// Whether a text begins with one of these.
pub fn begins_with_any(text: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| begins_with(text, word))
}

/// The words of a text with the places where they begin; some are empty.
pub fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    words_of(text, is_token_byte)
}

/// The words that have only such octets, with the places where they begin; some are empty.
pub fn words_of(text: &[u8], is_part: impl Fn(u8) -> bool) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    text.split(move |&byte| !is_part(byte)).map(move |word| {
        let begin = next;
        next += word.len() + 1;
        (begin, word)
    })
}

/// Whether a text begins with these lower-case letters, without regard to case.
pub fn begins_with(text: &[u8], lower: &[u8]) -> bool {
    text.get(..lower.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(lower))
}

/// Whether the text before a word ends in `like ` or `following `, so that the word names another
/// program than the client: `FreshRSS/1.2 (like Googlebot)` is FreshRSS.
pub fn names_another_program(before: &[u8]) -> bool {
    ends_with(before, b"like ") || ends_with(before, b"following ")
}

/// Whether what stands at `start..end` is a word by itself, and not the name of another program
/// (`names_another_program`). It must not continue a word to its left if `begins_word`, and no word
/// may continue it to its right if `ends_word`; a marker that begins or ends with a sign needs
/// neither.
pub fn stands_alone(
    text: &[u8],
    start: usize,
    end: usize,
    begins_word: bool,
    ends_word: bool,
) -> bool {
    let is_inside_word = begins_word && start > 0 && is_token_byte(text[start - 1])
        || ends_word && text.get(end).is_some_and(|&next| is_token_byte(next));
    !is_inside_word && !names_another_program(&text[..start])
}
