//! [`signal_parts`] and [`usage_line`] parse the lines of a robots.txt about the use of content:
//! `Content-Signal` (contentsignals.org) and `Content-Usage` (draft-ietf-aipref-attach-05). The
//! import of a robots.txt and the lints use both.

use super::decode::is_category;
use super::model::{SignalCategory, USES};

/// The meaning of a part of a Content-Signal line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalPart {
    /// `ai-train=no`.
    Category(SignalCategory, bool),
    /// `use=reference`: one of [`USES`].
    Extent(&'static str),
}

/// A member of the dictionary of a Content-Usage line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageMember<'v> {
    /// The category and its value; `None` where readers take the member for unknown.
    pub said: Option<(&'v str, bool)>,
    /// Parameters behind it, which readers pass over; mostly none.
    pub parameters: &'v str,
}

/// The parts of a Content-Signal line, which commas separate, as they are written but trimmed.
/// Empty parts are left out. Each comes with its meaning; `None` where readers pass over the part.
pub fn signal_parts(value: &str) -> impl Iterator<Item = (&str, Option<SignalPart>)> {
    value
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| (part, signal_part(part)))
}

/// The meaning of one part, `ai-train=no` or `use=reference`; names and values are compared without
/// regard to case. `None` without `=`, for an unknown name, or for another value than `yes` and
/// `no` (for `use`: than those of `USES`).
fn signal_part(part: &str) -> Option<SignalPart> {
    let (name, word) = part
        .split_once('=')
        .map(|(name, word)| (name.trim(), word.trim()))?;
    if name.eq_ignore_ascii_case("use") {
        return USES
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(word))
            .map(SignalPart::Extent);
    }
    let category = SignalCategory::ALL
        .into_iter()
        .find(|category| category.name().eq_ignore_ascii_case(name))?;
    let said = ["no", "yes"]
        .into_iter()
        .position(|known| known.eq_ignore_ascii_case(word))?;
    Some(SignalPart::Category(category, said == 1))
}

pub fn yes_or_no(said: bool) -> &'static str {
    if said { "yes" } else { "no" }
}

/// Splits a Content-Usage line into the path before the first blank or tab, if the line begins with
/// `/`, and the trimmed members of the dictionary after it. The members are `None` where one of
/// them (also an empty one) is not a member of a dictionary: its key is not valid, or it has blanks
/// but no string, list or parameter. Then the whole line counts for nothing (RFC 9651 section 4.2).
pub fn usage_line(value: &str) -> (Option<&str>, Option<Vec<&str>>) {
    let (path, dictionary) = if value.starts_with('/') {
        value
            .split_once([' ', '\t'])
            .map_or((Some(value), ""), |(path, rest)| (Some(path), rest))
    } else {
        (None, value)
    };
    let members: Vec<&str> = dictionary.split(',').map(str::trim).collect();
    let is_dictionary = members.iter().all(|member| {
        let torn = member.contains([' ', '\t']) && !member.contains(['"', ';', '(']);
        !torn && is_key(member.split(['=', ';']).next().unwrap_or_default())
    });
    (path, is_dictionary.then_some(members))
}

/// The meaning of a member of a dictionary: `train-ai=n` restricts (`false`), `=y` grants (`true`).
/// `said` is `None` for any other value, without a value, or where the key cannot be a category.
/// `parameters` is all that follows the first `;`, else empty.
pub fn usage_member(member: &str) -> UsageMember<'_> {
    let (assignment, parameters) = member.split_once(';').unwrap_or((member, ""));
    let (category, word) = assignment.split_once('=').unwrap_or((assignment, ""));
    let word = ["n", "y"].into_iter().position(|known| known == word);
    let said = word
        .filter(|_| is_category(category))
        .map(|word| (category, word == 1));
    UsageMember { said, parameters }
}

/// A key of RFC 9651 section 3.1.2.
fn is_key(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_lowercase() || sign == '*')
        && text
            .chars()
            .all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "_-.*".contains(sign))
}
