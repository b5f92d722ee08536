//! Octets of user agents: [`is_token_byte`] tells the characters of product tokens, and three functions compare text
//! without regard to case.

/// Whether an octet is a character of product tokens. Next to a marker it makes the marker part of another word.
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Whether a text ends in these lower-case letters, without regard to case.
pub fn ends_with(text: &[u8], lower: &[u8]) -> bool {
    text.len() >= lower.len() && text[text.len() - lower.len()..].eq_ignore_ascii_case(lower)
}

/// Whether these lower-case letters stand in a text, without regard to case.
pub fn contains(text: &[u8], lower: &[u8]) -> bool {
    text.windows(lower.len()).any(|window| window.eq_ignore_ascii_case(lower))
}

/// Whether a text begins with these lower-case letters, without regard to case.
pub fn begins_with(text: &[u8], lower: &[u8]) -> bool {
    text.get(..lower.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(lower))
}
