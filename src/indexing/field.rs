//! The syntax of X-Robots-Tag. [`parse_lines`] parses the lines that an origin sends, and
//! [`RobotsTags::lines`] writes lines for a response. Unknown text is kept: if a directive were
//! lost or misread, a page could become visible in search or disappear from it.
//!
//! There is no common grammar. This module follows these rules:
//! - A bot's name applies to the directives after it, up to the next name or the end of the line.
//! - A known key with a value (`max-snippet: 20`) is not taken for a bot's name.
//! - A date may contain commas and colons.
//! - Unknown text is kept, for the bot or for all bots that it was written for.

use super::date::parse_date;
use super::directive::is_value_key;
use super::member::{is_token, trim_blanks, unfold};
use super::names::is_bot_name;
use super::{Directive, Directives, Flag, RobotsTags, TagScope};
use std::borrow::Cow;

/// The most bytes of one response's lines that are parsed.
const MAX_FIELD_BYTES: usize = 64 * 1024;
/// The most members of one response's lines that are parsed.
const MAX_FIELD_MEMBERS: usize = 1_000;

/// Parses `X-Robots-Tag` field values. Unreadable members are kept as unknown directives in their
/// scope. Only the first 64 KiB and 1,000 members are parsed.
pub fn parse_lines<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> RobotsTags {
    parse_within_limits(lines).0
}

/// [`parse_lines`], but `None` if the lines exceed its limits or are not UTF-8. For a caller that
/// sends the lines on and must not lose a part of them.
pub fn parse_lines_complete<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<RobotsTags> {
    let (tags, whole) = parse_within_limits(lines);
    whole.then_some(tags)
}

/// Parses field values, and tells whether the tags are complete: nothing exceeded the limits, and
/// all bytes were UTF-8. A line that exceeds the limit of bytes is skipped whole.
fn parse_within_limits<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> (RobotsTags, bool) {
    let mut tags = RobotsTags::default();
    let mut bytes = 0;
    let mut members = 0;
    let mut is_text = true;
    for line in lines {
        bytes += line.len();
        if bytes > MAX_FIELD_BYTES || members >= MAX_FIELD_MEMBERS {
            return (tags, false);
        }
        let line = String::from_utf8_lossy(line);
        is_text &= matches!(line, Cow::Borrowed(_));
        let read = parse_line(&line, &mut tags, MAX_FIELD_MEMBERS - members);
        if read < line.split(',').count() {
            return (tags, false);
        }
        members += read;
    }
    (tags, is_text)
}

/// Adds the directives of one line to `tags`. Parses at most `limit` members; returns their number,
/// empty ones included.
fn parse_line(line: &str, tags: &mut RobotsTags, limit: usize) -> usize {
    let parts: Vec<&str> = line.split(',').take(limit).collect();
    let mut scope = TagScope::All;
    let mut index = 0;
    while index < parts.len() {
        let part = unfold(parts[index]);
        index += 1;
        let (name, rest) = split_bot_name(&part);
        if let Some(name) = name {
            scope = TagScope::from_name(name);
        }
        let rest = trim_blanks(rest);
        if rest.is_empty() {
            continue;
        }
        let mut directives = Directives::default();
        if let Some(known) = Directive::from_word(rest) {
            known
                .into_iter()
                .for_each(|directive| directives.insert(directive));
        } else if let Some((key, value)) = rest.split_once(':') {
            let key = trim_blanks(key);
            if key.eq_ignore_ascii_case("unavailable_after") {
                let (directive, used) = unavailable_after(value, &parts[index..]);
                index += used;
                directives.insert(directive);
            } else {
                directives.insert(Directive::from_key_value(key, value).unwrap_or_else(
                    || match key {
                        // Without its colon it would be another directive.
                        "" => Directive::Unknown("".into(), rest.into()),
                        _ => Directive::Unknown(
                            key.to_ascii_lowercase().into(),
                            trim_blanks(value).into(),
                        ),
                    },
                ));
            }
        } else if is_token(rest) {
            directives.insert(Directive::Custom(rest.to_ascii_lowercase().into()));
        } else {
            directives.insert(Directive::Unknown("".into(), rest.into()));
        }
        tags.add(scope.clone(), &directives);
    }
    parts.len()
}

/// Splits off a bot's name: a token before a colon that is neither a directive nor a key. A directive
/// must follow it, or it must be a known bot's name; so `max-foo: 3` is an unknown key. Without a
/// name the part stays whole.
fn split_bot_name(part: &str) -> (Option<&str>, &str) {
    let Some((name, rest)) = part.split_once(':') else {
        return (None, part);
    };
    let name = trim_blanks(name);
    // A directive is no name: in `googlebot: noindex: nofollow` the bot is googlebot.
    if !is_token(name) || is_value_key(name) || name.parse::<Flag>().is_ok() {
        return (None, part);
    }
    let rest = trim_blanks(rest);
    let first = rest.split([':', ' ']).next().unwrap_or("");
    let is_directive = Directive::from_word(rest).is_some()
        || is_value_key(first)
        || first.parse::<Flag>().is_ok()
        // `bingbot: somethingnew`, `googlebot:` (the directives follow the comma), `googlebot:
        // newkey: 3`.
        || is_bot_name(name);
    if is_directive {
        (Some(name), rest)
    } else {
        (None, part)
    }
}

/// Whether a member begins with a bot's name.
fn has_bot_name(member: &str) -> bool {
    split_bot_name(member).0.is_some()
}

/// The position of a line among the lines of a response. A recipient may join them (RFC 9110 section
/// 5.3); in this order no line for every bot becomes one for a single bot.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub enum LineOrder {
    /// No bot's name.
    Unscoped,
    /// A bot's name behind another member.
    ScopedLater,
    /// A bot's name at the beginning.
    ScopedFirst,
}

/// The position of a line among the lines of a response.
pub fn line_order(line: &[u8]) -> LineOrder {
    let line = String::from_utf8_lossy(line);
    let mut members = line.split(',').map(|member| has_bot_name(&unfold(member)));
    if members.next() == Some(true) {
        LineOrder::ScopedFirst
    } else if members.any(|is_scoped| is_scoped) {
        LineOrder::ScopedLater
    } else {
        LineOrder::Unscoped
    }
}

/// Whether `name: member` parses as a member for that bot.
fn parses_as_bot_name(name: &str, member: &str) -> bool {
    split_bot_name(&format!("{name}: {member}")).0 == Some(name)
}

/// Parses the text behind `unavailable_after:`. Returns the directive and the number of following
/// members that it used. An unreadable date, or one with other text behind it, is kept as an unknown
/// directive up to the next directive or bot's name: recipients may understand it.
fn unavailable_after(value: &str, following: &[&str]) -> (Directive, usize) {
    let parts: Vec<String> = following
        .iter()
        .map(|part| unfold(part))
        .take_while(|next| !ends_date(next))
        .collect();
    let mut text = trim_blanks(value).to_owned();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        text.push_str(", ");
        text.push_str(part);
    }
    let directive = match parse_date(&text) {
        Some(moment) => Directive::UnavailableAfter(moment),
        None => Directive::Unknown("unavailable_after".into(), text.into()),
    };
    (directive, parts.len())
}

/// Whether a member ends an unreadable date: it is a directive, a key with a value, or begins with a
/// bot's name.
fn ends_date(member: &str) -> bool {
    let key = trim_blanks(member.split(':').next().unwrap_or(""));
    Directive::from_word(member).is_some()
        || member.contains(':') && is_value_key(key)
        || has_bot_name(member)
}

impl RobotsTags {
    /// The field values to send: one line per scope, those for every bot first. Two kinds of
    /// directives have lines of their own: `unavailable_after` (in ISO 8601, without a comma), so that
    /// nothing behind it is read as a part of the date; and an unknown directive that begins like a
    /// bot's name.
    ///
    /// Behind a bot's name comes a directive that identifies it as a name, `all` if there is no other:
    /// `other: somethingnew, max-snippet: 3` would be parsed as an unknown key and a limit for every
    /// bot.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (scope, directives) in self.iter() {
            let words = directives
                .iter()
                .map(|directive| (needs_own_line(directive), directive.to_string()));
            let (apart, together): (Vec<_>, Vec<_>) = words.partition(|(apart, _)| *apart);
            let groups = std::iter::once(together).chain(apart.into_iter().map(|word| vec![word]));
            for group in groups.filter(|group| !group.is_empty()) {
                let words = group.into_iter().map(|(_, word)| word).collect();
                lines.push(format_line(scope, words));
            }
        }
        lines
    }
}

/// Whether a directive needs a line of its own: a date, readable or not, or an unknown one that
/// begins like a bot's name.
fn needs_own_line(directive: &Directive) -> bool {
    match directive {
        Directive::UnavailableAfter(_) => true,
        Directive::Unknown(key, _) => {
            &**key == "unavailable_after" || has_bot_name(&directive.to_string())
        }
        _ => false,
    }
}

/// Joins words into one field value, with the bot's name in front. The first word that identifies the
/// name as a bot's moves to the front; without one, `all` is added.
fn format_line(scope: &TagScope, mut words: Vec<String>) -> String {
    let TagScope::Bot(name) = scope else {
        return words.join(", ");
    };
    match words.iter().position(|word| parses_as_bot_name(name, word)) {
        Some(place) => words[..=place].rotate_right(1),
        None => words.insert(0, Directive::All.to_string()),
    }
    format!("{name}: {}", words.join(", "))
}
