//! Members of a field line, which stand between commas. [`dated`] reads a date, which may hold
//! commas itself. [`clean`] and [`trimmed`] remove what does not belong to a member.

use super::date::moment;
use crate::time::Timestamp;

/// A date that commas may have cut: `value` and as many of the following parts, at most four, as
/// make the longest date. Returns it with the number of parts that it used; `None` where no date
/// can be read.
pub fn dated(value: &str, following: &[&str]) -> Option<(Timestamp, usize)> {
    let mut found = moment(trimmed(value)).map(|moment| (moment, 0));
    let mut text = trimmed(value).to_owned();
    // `Tuesday, June 25, 2030, 3:00 PM` holds three commas; no form holds more than four.
    for (used, part) in following.iter().take(4).enumerate() {
        text.push_str(", ");
        text.push_str(&clean(part));
        // An empty member is no piece of a date.
        if !trimmed(part).is_empty()
            && let Some(moment) = moment(trimmed(&text))
        {
            found = Some((moment, used + 1));
        }
    }
    found
}

/// Without the blanks of a field (RFC 9110 section 5.6.3). A character that only looks like a blank
/// stays.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// The member with a blank for each control character, so unfolded (RFC 9112 section 5.2), and
/// trimmed.
pub fn clean(part: &str) -> String {
    trimmed(&part.replace(|sign: char| sign.is_ascii_control(), " ")).to_owned()
}

/// Whether a text is a token (RFC 9110 section 5.6.2) of 1 to 64 characters.
pub fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.*+!#$%&'^`|~".contains(&byte))
}
