//! The members of an X-Robots-Tag line, which are separated by commas: [`unfold`] removes control
//! characters, [`is_token`] recognises names.

/// The text without the blanks of a field around it (RFC 9110 section 5.6.3). Other white space
/// stays.
pub fn trim_blanks(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// The member with a blank for each control character, which unfolds it (RFC 9112 section 5.2), and
/// trimmed.
pub fn unfold(part: &str) -> String {
    trim_blanks(&part.replace(|c: char| c.is_ascii_control(), " ")).to_owned()
}

/// Whether a text is a token (RFC 9110 section 5.6.2) of 1 to 64 characters.
pub fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.*+!#$%&'^`|~".contains(&byte))
}
