//! What an expression of `path_regex` demands of every path that it matches, read from its text piece by piece.
//!
//! It knows the pieces that most expressions consist of: literals, classes, `^`, `$` and repetitions. Of an expression
//! with groups, alternatives or flags nothing is said, so that nothing said is false.

use crate::policy::model::Conditions;
use std::iter::Peekable;
use std::str::Chars;

/// What is wrong with an expression, and what to do.
pub type Finding = (String, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Start,
    End,
    Literal(char),
    /// One character of several.
    Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    Once,
    AtLeastOnce,
    Maybe,
}

/// Why a rule with this expression matches no path, or only paths that its writer hardly means; `None` where nothing
/// can be said.
pub fn finding(regex: &str, conditions: &Conditions) -> Option<Finding> {
    let pieces = pieces(regex)?;
    let needed: Vec<Piece> =
        pieces.iter().filter(|(_, times)| *times != Times::Maybe).map(|(piece, _)| *piece).collect();
    if anchors_contradict(&needed) {
        return Some((
            "this expression matches nothing: what stands around its `^` or `$` cannot be there".into(),
            "write `\\$` or `\\^` for the signs themselves".into(),
        ));
    }
    let begins_elsewhere = match pieces.as_slice() {
        [(Piece::Start, Times::Once), (Piece::Literal(first), Times::Once | Times::AtLeastOnce), ..] => *first != '/',
        [(Piece::Start, Times::Once), (Piece::End, Times::Once), ..] => true,
        _ => false,
    };
    if begins_elsewhere {
        let help = format!("write `^/{}`", regex.trim_start_matches('^'));
        return Some(("this expression matches nothing: a path begins with `/`".into(), help));
    }
    if needed.contains(&Piece::Literal('?')) {
        return Some((
            "the query is no part of the path: this matches only where the path itself has a `?`, as `%3F`".into(),
            "use `paths`, whose `*` reaches the query: `/*?id=`".into(),
        ));
    }
    if pieces.windows(3).any(is_escape) {
        return Some((
            "the path is read with its escapes decoded: this matches only where an escape is escaped once more, like \
             `%2541` for `%41`"
                .into(),
            "write the character itself: `é` for `%C3%A9`, `A` for `%41`".into(),
        ));
    }
    let prefix = prefix(&pieces);
    let meets = |path: &str| plain(path.bytes()).zip(prefix.bytes()).all(|(one, other)| one == other);
    (!conditions.paths.is_empty() && !conditions.paths.iter().any(|path| meets(&path.value)))
        .then(|| ("no path of `paths` is one that this expression matches".into(), "write two rules".into()))
}

/// Whether something is needed before a `^`, or after a `$`.
fn anchors_contradict(needed: &[Piece]) -> bool {
    let is_sign = |piece: &Piece| matches!(piece, Piece::Literal(_) | Piece::Class);
    let first_sign = needed.iter().position(is_sign);
    let last_sign = needed.iter().rposition(is_sign);
    let last_start = needed.iter().rposition(|piece| *piece == Piece::Start);
    let first_end = needed.iter().position(|piece| *piece == Piece::End);
    let before_start = first_sign.zip(last_start).is_some_and(|(sign, start)| sign < start);
    let after_end = last_sign.zip(first_end).is_some_and(|(sign, end)| sign > end);
    before_start || after_end
}

fn is_escape(pieces: &[(Piece, Times)]) -> bool {
    let is_hex =
        |piece: &(Piece, Times)| matches!(piece, (Piece::Literal(sign), Times::Once) if sign.is_ascii_hexdigit());
    matches!(pieces, [(Piece::Literal('%'), Times::Once), high, low] if is_hex(high) && is_hex(low))
}

/// What every path that the expression matches begins with, as far as no escape can spell it otherwise.
fn prefix(pieces: &[(Piece, Times)]) -> String {
    let [(Piece::Start, Times::Once), rest @ ..] = pieces else { return String::new() };
    let mut prefix = String::new();
    for (piece, times) in rest {
        match (piece, times) {
            (Piece::Literal(sign), Times::Once) if sign.is_ascii() && is_plain(*sign as u8) => prefix.push(*sign),
            _ => break,
        }
    }
    prefix
}

/// The octets that a pattern begins with and that stand in every path that it matches as they are.
fn plain(pattern: impl Iterator<Item = u8>) -> impl Iterator<Item = u8> {
    pattern.take_while(|octet| is_plain(*octet))
}

fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"/-._~".contains(&octet)
}

/// The pieces of an expression, each with how often it is needed; `None` where there is one that is not known here.
fn pieces(regex: &str) -> Option<Vec<(Piece, Times)>> {
    let mut signs = regex.chars().peekable();
    let mut pieces = Vec::new();
    while let Some(sign) = signs.next() {
        let piece = match sign {
            '^' => Piece::Start,
            '$' => Piece::End,
            '.' => Piece::Class,
            '[' => class(&mut signs)?,
            '\\' => match signs.next()? {
                'd' | 'D' | 'w' | 'W' | 's' | 'S' => Piece::Class,
                // A boundary of words.
                '<' | '>' => return None,
                sign if sign.is_ascii_punctuation() => Piece::Literal(sign),
                _ => return None,
            },
            '(' | ')' | '|' | '?' | '*' | '+' | '{' => return None,
            sign => Piece::Literal(sign),
        };
        pieces.push((piece, times(&mut signs)?));
    }
    Some(pieces)
}

/// What follows `[`.
fn class(signs: &mut Peekable<Chars<'_>>) -> Option<Piece> {
    let mut inside = String::new();
    loop {
        match signs.next()? {
            // A class in a class, or a `]` that does not end it.
            '[' => return None,
            ']' if matches!(inside.as_str(), "" | "^") => return None,
            ']' => break,
            '\\' => {
                inside.push('\\');
                inside.push(signs.next()?);
            }
            sign => inside.push(sign),
        }
    }
    let mut only = inside.chars();
    match (only.next(), only.next()) {
        (Some(sign), None) => Some(Piece::Literal(sign)),
        _ => Some(Piece::Class),
    }
}

/// How often the piece before is needed. Of a repetition that is repeated nothing is known.
fn times(signs: &mut Peekable<Chars<'_>>) -> Option<Times> {
    let times = match signs.peek() {
        Some('?' | '*') => Times::Maybe,
        Some('+') => Times::AtLeastOnce,
        Some('{') => {
            signs.next();
            let mut bounds = String::new();
            while *signs.peek()? != '}' {
                bounds.push(signs.next()?);
            }
            match bounds.split(',').next()?.trim().parse::<u32>().ok()? {
                0 => Times::Maybe,
                1 if bounds == "1" => Times::Once,
                _ => Times::AtLeastOnce,
            }
        }
        _ => return Some(Times::Once),
    };
    signs.next();
    // As few as possible, which is the same to a test.
    if signs.peek() == Some(&'?') {
        signs.next();
    }
    match signs.peek() {
        Some('?' | '*' | '+' | '{') => None,
        _ => Some(times),
    }
}
