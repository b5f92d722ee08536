//! The field X-Robots-Tag: [`Tags::lines`] writes it, [`parse_lines`] reads it as origins send it.
//! Reading is lenient, because a line that is misread deindexes a page or reveals one.
//!
//! No grammar is followed by everybody. Here a bot's name holds within a line until the next name.
//! Keys that take values are recognised before names. A date may hold commas and colons. Unknown
//! text is kept as it was, in its scope.

use super::directive::is_key;
use super::member::{clean, dated, is_token, trimmed};
use super::names::is_bots_name;
use super::{Directive, Directives, Flag, Scope, Tags};
use std::borrow::Cow;

/// How many octets of one response's lines are read.
const MAX_BYTES: usize = 64 * 1024;
/// How many members of one response's lines are read.
const MAX_MEMBERS: usize = 1_000;

/// Reads `X-Robots-Tag` field values. Lenient: what cannot be read is kept as an unknown directive,
/// never re-scoped. Of very long lines (64 KiB, 1,000 members) only the beginning is read.
pub fn parse_lines<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Tags {
    read(lines).0
}

/// [`parse_lines`], but `None` when there is more than is read, or octets that are not text: a
/// caller that sends the lines on must not leave out or change a part of them.
pub fn parse_whole<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Tags> {
    let (tags, whole) = read(lines);
    whole.then_some(tags)
}

/// Reads field values, and tells whether the tags are all that the lines say: nothing was beyond
/// the limits, and all bytes were text. A line that passes the limit of bytes is not read at all.
fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> (Tags, bool) {
    let mut tags = Tags::default();
    let mut bytes = 0;
    let mut members = 0;
    let mut is_text = true;
    for line in lines {
        bytes += line.len();
        if bytes > MAX_BYTES || members >= MAX_MEMBERS {
            return (tags, false);
        }
        let line = String::from_utf8_lossy(line);
        is_text &= matches!(line, Cow::Borrowed(_));
        let read = read_line(&line, &mut tags, MAX_MEMBERS - members);
        if read < line.split(',').count() {
            return (tags, false);
        }
        members += read;
    }
    (tags, is_text)
}

/// Adds the directives of one line to `tags`. Reads at most `limit` members; returns how many it
/// read, empty ones included.
fn read_line(line: &str, tags: &mut Tags, limit: usize) -> usize {
    let parts: Vec<&str> = line.split(',').take(limit).collect();
    let mut scope = Scope::All;
    let mut index = 0;
    while index < parts.len() {
        let part = clean(parts[index]);
        index += 1;
        let (name, rest) = scoped(&part);
        if let Some(name) = name {
            scope = Scope::named(name);
        }
        let rest = trimmed(rest);
        if rest.is_empty() {
            continue;
        }
        let mut directives = Directives::default();
        if let Some(known) = Directive::word(rest) {
            known
                .into_iter()
                .for_each(|directive| directives.insert(directive));
        } else if let Some((key, value)) = rest.split_once(':') {
            let key = trimmed(key);
            if key.eq_ignore_ascii_case("unavailable_after") {
                let (directive, used) = unavailable_after(value, &parts[index..]);
                index += used;
                directives.insert(directive);
            } else {
                directives.insert(Directive::valued(key, value).unwrap_or_else(|| match key {
                    // Without its colon it would be another directive.
                    "" => Directive::Unknown("".into(), rest.into()),
                    _ => Directive::Unknown(key.to_ascii_lowercase().into(), trimmed(value).into()),
                }));
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

/// Splits off a bot's name: a token before a colon that is neither a directive nor a key with a
/// value. It counts as a name where a directive follows it, or where it is known to be a bot's.
/// `max-foo: 3` has no directive behind its colon and is an unknown key. Without a name (`None`)
/// the part stays whole.
fn scoped(part: &str) -> (Option<&str>, &str) {
    let Some((name, rest)) = part.split_once(':') else {
        return (None, part);
    };
    let name = trimmed(name);
    // A directive is no name either: `googlebot: noindex: nofollow` would be for another bot when
    // it stands second.
    if !is_token(name) || is_key(name) || Flag::named(name).is_some() {
        return (None, part);
    }
    let rest = trimmed(rest);
    let first = rest.split([':', ' ']).next().unwrap_or("");
    let is_directive = Directive::word(rest).is_some()
        || is_key(first)
        || Flag::named(first).is_some()
        // `bingbot: somethingnew`, `googlebot:` (the directives follow the comma), `googlebot:
        // newkey: 3`.
        || is_bots_name(name);
    if is_directive {
        (Some(name), rest)
    } else {
        (None, part)
    }
}

/// Whether a member would be read as one for another bot, were it not the first of its line.
fn begins_scope(member: &str) -> bool {
    scoped(member).0.is_some()
}

/// The group that a line belongs to among others, so that a recipient who joins them (RFC 9110
/// section 5.3) does not read a line for every bot as one for a single bot: 0 without a bot's name,
/// 1 with a name behind another member, 2 with a name at its beginning.
pub fn place_of(line: &[u8]) -> u8 {
    let line = String::from_utf8_lossy(line);
    let mut members = line.split(',').map(|member| begins_scope(&clean(member)));
    match members.next() {
        Some(true) => 2,
        _ => u8::from(members.any(|begins| begins)),
    }
}

/// Whether `name: member` is read as a member for that bot.
fn names_scope(name: &str, member: &str) -> bool {
    scoped(&format!("{name}: {member}")).0 == Some(name)
}

/// The directive for the text behind `unavailable_after:`, and how many of the following members it
/// takes beside its own. Others may read a date that cannot be read here, or that pieces of a date
/// follow. Such a date is kept as an unknown directive with its text, up to the next directive or
/// bot's name.
fn unavailable_after(value: &str, following: &[&str]) -> (Directive, usize) {
    if let Some((moment, used)) = dated(value, following) {
        let mut rest = following[used..]
            .iter()
            .map(|part| clean(part))
            .take_while(|next| !ends_date(next));
        if !rest.any(|next| super::date::is_piece(&next)) {
            return (Directive::UnavailableAfter(moment), used);
        }
    }
    let mut text = trimmed(value).to_owned();
    let mut used = 0;
    for next in following
        .iter()
        .map(|part| clean(part))
        .take_while(|next| !ends_date(next))
    {
        used += 1;
        if !next.is_empty() {
            text.push_str(", ");
            text.push_str(&next);
        }
    }
    (
        Directive::Unknown("unavailable_after".into(), text.into()),
        used,
    )
}

/// Whether a member is known to be something else than a piece of a date: a directive, a key with a
/// value, or a member for a bot.
fn ends_date(member: &str) -> bool {
    let key = trimmed(member.split(':').next().unwrap_or(""));
    Directive::word(member).is_some() || member.contains(':') && is_key(key) || begins_scope(member)
}

impl Tags {
    /// Field values, one per line to send: unscoped first, one line per scope, never folded. Two
    /// kinds of directives have a line of their own. `unavailable_after` has one (in ISO 8601,
    /// which has no comma), so that no reader takes what follows for a part of the date. An unknown
    /// directive has one if it would be read as for another bot, were it not the first of its line.
    ///
    /// The first directive behind a bot's name must be one by which the name is known to be a
    /// bot's, `all` if there is no other: `other: somethingnew, max-snippet: 3` would be read as an
    /// unknown key, and the limit as one for every bot.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (scope, directives) in self.iter() {
            let said = directives
                .iter()
                .map(|directive| (stands_apart(directive), directive.to_string()));
            let (apart, together): (Vec<_>, Vec<_>) = said.partition(|(apart, _)| *apart);
            let groups = std::iter::once(together).chain(apart.into_iter().map(|word| vec![word]));
            for group in groups.filter(|group| !group.is_empty()) {
                let words = group.into_iter().map(|(_, word)| word).collect();
                lines.push(line(scope, words));
            }
        }
        lines
    }
}

/// Whether a directive needs a line of its own: a date, read or unread, or an unknown one that
/// would be read as for another bot, were it not the first of its line.
fn stands_apart(directive: &Directive) -> bool {
    match directive {
        Directive::UnavailableAfter(_) => true,
        Directive::Unknown(key, _) => {
            &**key == "unavailable_after" || begins_scope(&directive.to_string())
        }
        _ => false,
    }
}

/// Joins words into one field value, for a bot with its name in front. The first word by which the
/// name is known to be a bot's comes first; without such a word `all` is put there.
fn line(scope: &Scope, mut words: Vec<String>) -> String {
    let Scope::Bot(name) = scope else {
        return words.join(", ");
    };
    match words.iter().position(|word| names_scope(name, word)) {
        Some(place) => words[..=place].rotate_right(1),
        None => words.insert(0, Directive::All.to_string()),
    }
    format!("{name}: {}", words.join(", "))
}
