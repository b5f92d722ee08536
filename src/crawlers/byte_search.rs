//! Text search in the bytes of a `User-Agent`. [`words`] splits a text into words; the other
//! functions search and compare without regard to ASCII case. The text to search for must be in
//! lower case.

/// Whether a byte may be part of a product token: an ASCII letter or digit, `_` or `-`.
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Whether a text ends in these lower-case letters, without regard to case.
pub fn ends_with_ignore_case(text: &[u8], lower: &[u8]) -> bool {
    text.len() >= lower.len() && text[text.len() - lower.len()..].eq_ignore_ascii_case(lower)
}

/// The offset of the first occurrence of these lower-case letters, without regard to case.
pub fn find_ignore_case(text: &[u8], lower: &[u8]) -> Option<usize> {
    text.windows(lower.len())
        .position(|window| window.eq_ignore_ascii_case(lower))
}

/// Whether a text contains these lower-case letters, without regard to case.
pub fn contains_ignore_case(text: &[u8], lower: &[u8]) -> bool {
    find_ignore_case(text, lower).is_some()
}

/// Whether a text contains one of these.
pub fn contains_any_ignore_case(text: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| contains_ignore_case(text, word))
}

/// Whether a text begins with one of these.
pub fn starts_with_any_ignore_case(text: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| starts_with_ignore_case(text, word))
}

/// The words of a text with their offsets; some are empty.
pub fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    words_by(text, is_token_byte)
}

/// The runs of bytes for which `is_part` is true, with their offsets; some are empty.
pub fn words_by(text: &[u8], is_part: impl Fn(u8) -> bool) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    text.split(move |&byte| !is_part(byte)).map(move |word| {
        let begin = next;
        next += word.len() + 1;
        (begin, word)
    })
}

/// Whether a text begins with these lower-case letters, without regard to case.
pub fn starts_with_ignore_case(text: &[u8], lower: &[u8]) -> bool {
    text.get(..lower.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(lower))
}

/// Whether the text before a word ends in `like ` or `following `. Then the word names another
/// program than the client: `FreshRSS/1.2 (like Googlebot)` is FreshRSS.
pub fn is_before_other_program(before: &[u8]) -> bool {
    ends_with_ignore_case(before, b"like ") || ends_with_ignore_case(before, b"following ")
}

/// [`is_separate_word`] for a text that needs a boundary at each side where it has a letter.
pub fn is_separate_token(text: &[u8], start: usize, end: usize) -> bool {
    let begins_word = is_token_byte(text[start]);
    let ends_word = is_token_byte(text[end - 1]);
    is_separate_word(text, start, end, begins_word, ends_word)
}

/// Whether the text at `start..end` is a word by itself, and not the name of another program than
/// the client. `begins_word` and `ends_word` tell at which sides a boundary is needed: a marker
/// that begins or ends with a sign needs none there.
pub fn is_separate_word(
    text: &[u8],
    start: usize,
    end: usize,
    begins_word: bool,
    ends_word: bool,
) -> bool {
    let is_inside_word = begins_word && start > 0 && is_token_byte(text[start - 1])
        || ends_word && text.get(end).is_some_and(|&next| is_token_byte(next));
    !is_inside_word && !is_before_other_program(&text[..start])
}
