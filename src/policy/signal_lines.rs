//! Parses the lines of a robots.txt about the use of content, for the import and the lints:
//! `Content-Signal` ([`parse_content_signal`], contentsignals.org) and `Content-Usage`
//! ([`parse_content_usage`], draft-ietf-aipref-attach-05).

use super::model::{SignalCategory, USES};

/// The most bytes of a category. RFC 9651 permits longer keys, but no draft has one.
const MAX_CATEGORY: usize = 64;

/// A valid part of a Content-Signal line.
pub enum ContentSignalPart {
    /// `ai-train=no`.
    Category(SignalCategory, bool),
    /// `use=reference`: one of [`USES`].
    Extent(&'static str),
}

/// The parts of the value of a Content-Signal line, each as text and parsed. `None` where readers
/// ignore the part. Empty parts are left out.
pub fn parse_content_signal(
    value: &str,
) -> impl Iterator<Item = (&str, Option<ContentSignalPart>)> {
    value
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| (part, parse_signal_part(part)))
}

/// Parses `ai-train=no` or `use=reference`, without regard to case.
fn parse_signal_part(part: &str) -> Option<ContentSignalPart> {
    let (name, word) = part.split_once('=')?;
    let name = name.trim();
    let word = word.trim();
    if name.eq_ignore_ascii_case("use") {
        return USES
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(word))
            .map(ContentSignalPart::Extent);
    }
    let category = SignalCategory::ALL
        .into_iter()
        .find(|category| category.name().eq_ignore_ascii_case(name))?;
    let is_yes = word.eq_ignore_ascii_case("yes");
    (is_yes || word.eq_ignore_ascii_case("no"))
        .then_some(ContentSignalPart::Category(category, is_yes))
}

pub fn yes_or_no(is_yes: bool) -> &'static str {
    if is_yes { "yes" } else { "no" }
}

/// Splits the value of a Content-Usage line into its path, if it begins with `/`, and the members
/// of the dictionary. The members are `None` where one of them is not valid: then readers ignore
/// the whole line (RFC 9651 section 4.2).
pub fn parse_content_usage(value: &str) -> (Option<&str>, Option<Vec<&str>>) {
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
        !torn && is_dictionary_key(member.split(['=', ';']).next().unwrap_or_default())
    });
    (path, is_dictionary.then_some(members))
}

/// Parses a member of the dictionary: `train-ai=y` grants, `train-ai=n` restricts. Returns the
/// category and whether it is granted, or `None` where readers ignore the member; and the parameters
/// after `;`, which readers ignore.
pub fn parse_usage_member(member: &str) -> (Option<(&str, bool)>, &str) {
    let (assignment, parameters) = member.split_once(';').unwrap_or((member, ""));
    let (category, word) = assignment.split_once('=').unwrap_or((assignment, ""));
    let is_valid = matches!(word, "y" | "n") && is_category(category);
    (is_valid.then_some((category, word == "y")), parameters)
}

/// Whether a text can be a category: a key of a dictionary, without a `*` in front.
pub fn is_category(text: &str) -> bool {
    !text.starts_with('*') && text.len() <= MAX_CATEGORY && is_dictionary_key(text)
}

/// Whether a text is a key of a dictionary (RFC 9651 section 3.1.2).
fn is_dictionary_key(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_lowercase() || sign == '*')
        && text
            .chars()
            .all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "_-.*".contains(sign))
}
