//! Parses the members of an X-Robots-Tag line, which are separated by commas. A date may contain
//! commas itself, so [`parse_split_date`] puts it together again. [`unfold`] removes control
//! characters.

use super::date::parse_date;
use crate::time::Timestamp;

/// Parses a date that was split at its commas: `value`, or `value` and the next part that is not
/// empty. Returns it with the number of following parts used.
pub fn parse_split_date(value: &str, following: &[&str]) -> Option<(Timestamp, usize)> {
    if let Some(moment) = parse_date(value) {
        return Some((moment, 0));
    }
    let mut rest = following.iter().map(|part| unfold(part)).enumerate();
    let (index, rest) = rest.find(|(_, part)| !part.is_empty())?;
    parse_date(&format!("{value}, {rest}")).map(|moment| (moment, index + 1))
}

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
