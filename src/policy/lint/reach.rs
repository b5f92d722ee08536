//! Whether there is a URL at all for which a rule's conditions on the path hold: its patterns and its expression, and
//! not those of its `not`.
//!
//! A search through what the pieces can tell apart: the states of the expressions' automata, and the places in the
//! patterns. It knows URLs in their normal form and nothing of status and type. It is exact where it ends; what would
//! take long is let be.

use crate::policy::model::Conditions;
use crate::robots::{LITERAL_STAR, Pattern};
use regex_automata::hybrid::LazyStateID;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

mod expression;
mod kept_off;

use expression::Expression;
pub use expression::Searches;
pub use kept_off::kept_off;

/// Steps of one search; what people write takes a few hundred.
const MAX_STEPS: usize = 20_000;
/// Octets of all patterns of a rule; their places are kept in 16 bits.
const MAX_PATTERNS: usize = 8_192;

/// Which URLs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Those that a server may see.
    All,
    /// Those without a `?` in their path: it could only be an escape, `%3F`.
    WithoutQuestionMark,
    /// Those whose path has no escape left once its escapes are decoded: it was `%25C3`.
    WithoutDoubleEscape,
    /// Those without an escape that could be left out: `/` and not `%2F`, where a path goes on.
    Plain,
    /// Texts that begin with anything, not only with `/`. There are no such URLs: it tells why none matches.
    AnyText,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'c> {
    pub paths: &'c [Pattern],
    pub path_regex: Option<&'c str>,
    /// What must not hold, where there is something.
    pub unless: Option<(&'c [Pattern], Option<&'c str>)>,
}

/// The patterns of conditions.
pub fn patterns(conditions: &Conditions) -> Vec<Pattern> {
    conditions.paths.iter().map(|path| Pattern::new(&path.value)).collect()
}

/// Whether some URL is what is wanted; `None` where that was not found out. Takes its steps from `searches`.
pub fn any(wanted: Wanted<'_>, among: Among, searches: &mut Searches) -> Option<bool> {
    let (when, unless) = sides(wanted, searches)?;
    let given = MAX_STEPS.min(searches.left);
    let mut left = given;
    let found = search(when, unless, among, &mut left);
    searches.left -= given - left;
    found
}

/// The conditions of a rule and those of its `not`, ready to be searched.
fn sides(wanted: Wanted<'_>, searches: &mut Searches) -> Option<(Side, Option<Side>)> {
    let when = Side::new(wanted.paths, wanted.path_regex, searches)?;
    let unless = match wanted.unless {
        Some((paths, path_regex)) => Some(Side::new(paths, path_regex, searches)?),
        None => None,
    };
    // Finding the octets that are told apart looks at each pattern, and at each octet.
    let octets = |side: &Side| 128 + side.patterns.iter().map(Vec::len).sum::<usize>();
    let cost = octets(&when) + unless.as_ref().map_or(0, octets);
    searches.left = searches.left.saturating_sub(cost);
    (searches.left > 0).then_some((when, unless))
}

fn search(mut when: Side, mut unless: Option<Side>, among: Among, left: &mut usize) -> Option<bool> {
    let octets = representatives(&when, unless.as_ref(), &[]);
    let fewer = representatives(&when, None, &[]);
    let mut known = HashSet::new();
    let first = State {
        when: when.start()?,
        unless: unless.as_mut().map(Side::start).map_or(Some(None), |start| start.map(Some))?,
        place: Place { at: if among == Among::AnyText { At::Path } else { At::Start }, stray: 0, escape: 0 },
    };
    let mut waiting = vec![first.clone()];
    known.insert(first);
    while let Some(state) = waiting.pop() {
        if state.place.at != At::Start {
            let excluded = match (&mut unless, &state.unless) {
                (Some(side), Some(state)) => side.ends(state)?,
                _ => false,
            };
            if when.ends(&state.when)? && !excluded {
                return Some(true);
            }
        }
        // Where nothing can be excluded any more its patterns tell nothing apart.
        for &octet in if state.unless.is_some() { &octets } else { &fewer } {
            for (token, place) in tokens(octet, state.place, among).into_iter().rev() {
                *left = left.checked_sub(1)?;
                let in_path = place.at == At::Path;
                let Some(one) = when.step(&state.when, octet, &token, in_path)? else { continue };
                let other = match (&mut unless, &state.unless) {
                    // What cannot be excluded any more needs no looking at.
                    (Some(side), Some(state)) => side.step(state, octet, &token, in_path)?,
                    _ => None,
                };
                let next = State { when: one, unless: other, place };
                if known.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
    }
    Some(false)
}

/// A place in the search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    when: Reached,
    unless: Option<Reached>,
    place: Place,
}

/// Where in the URL, and what the octets before allow next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    at: At,
    /// Octets for which a `%` that begins no escape keeps the escapes of hex digits as they are.
    stray: u8,
    /// Octets of an escape that stand here decoded: `%`, and one hex digit.
    escape: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Start,
    Path,
    Query,
}

type Token = SmallVec<[u8; 3]>;

/// How a URL may spell an octet at a place, in its normal form, and the place after it. A question mark also begins the
/// query, in which an octet is whatever is compared.
fn tokens(octet: u8, from: Place, among: Among) -> SmallVec<[(Token, Place); 2]> {
    let mut out: SmallVec<[(Token, Place); 2]> = SmallVec::new();
    if from.at == At::Start {
        if octet == b'/' {
            out.push((Token::from_slice(b"/"), Place { at: At::Path, stray: 0, escape: 0 }));
        }
        return out;
    }
    let hex = octet.is_ascii_hexdigit();
    let mut place = Place {
        at: from.at,
        stray: from.stray.saturating_sub(1),
        escape: match (octet, from.escape) {
            (b'%', _) => 1,
            (_, 1) if hex => 2,
            _ => 0,
        },
    };
    if from.at == At::Path {
        if octet == b'?' {
            out.push((Token::from_slice(b"?"), Place { at: At::Query, stray: 0, escape: 0 }));
        }
        let double = among == Among::WithoutDoubleEscape && hex && from.escape == 2;
        let question = among == Among::WithoutQuestionMark && octet == b'?';
        if double || question {
            return out;
        }
    }
    if from.at != At::Path || among != Among::WithoutDoubleEscape {
        // Nothing asks for what an escape stands for.
        place.escape = 0;
    }
    let escaped = || Token::from_slice(format!("%{octet:02X}").as_bytes());
    let unreserved = octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
    match octet {
        b'*' => out.push((Token::from_slice(&[LITERAL_STAR]), place)),
        b'$' => out.push((Token::from_slice(b"$"), place)),
        b'%' => {
            out.push((escaped(), place));
            out.push((Token::from_slice(b"%"), Place { stray: 2, ..place }));
        }
        b'#' => out.push((escaped(), place)),
        _ if octet.is_ascii_graphic() => {
            if octet != b'?' || from.at == At::Query {
                out.push((Token::from_slice(&[octet]), place));
            }
            if among != Among::Plain && !unreserved || hex && from.stray > 0 {
                out.push((escaped(), place));
            }
        }
        _ => out.push((escaped(), place)),
    }
    out
}

/// One set of conditions: what one of the patterns and the expression hold for.
struct Side {
    expression: Option<Expression>,
    /// As octets of which `*` is any number; empty where there is no condition on them.
    patterns: Vec<Vec<u8>>,
}

/// How far one set of conditions has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reached {
    expression: Progress,
    patterns: Places,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Progress {
    /// It holds, whatever follows.
    Holds,
    At(LazyStateID),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Places {
    /// One holds, whatever follows.
    Holds,
    /// Which pattern, and how many octets of it are behind.
    At(SmallVec<[(u16, u16); 4]>),
}

impl Side {
    fn new(paths: &[Pattern], path_regex: Option<&str>, searches: &mut Searches) -> Option<Side> {
        let expression = match path_regex {
            Some(text) => Some(Expression::new(searches.automaton(text)?)),
            None => None,
        };
        let mut patterns: Vec<Vec<u8>> = paths.iter().filter(|path| !path.is_empty()).map(Pattern::as_target).collect();
        if !paths.is_empty() && patterns.is_empty() {
            // An empty pattern matches nothing: neither does this, which no URL begins with.
            patterns.push(b"\0".to_vec());
        }
        (patterns.iter().map(Vec::len).sum::<usize>() < MAX_PATTERNS).then_some(Side { expression, patterns })
    }

    fn start(&mut self) -> Option<Reached> {
        let expression = match &mut self.expression {
            Some(expression) => Progress::At(expression.start()?),
            None => Progress::Holds,
        };
        let patterns = match self.patterns.is_empty() {
            true => Places::Holds,
            false => self.closed((0..self.patterns.len()).map(|pattern| (pattern as u16, 0)).collect()),
        };
        Some(Reached { expression, patterns })
    }

    /// After another octet, spelled so; `Some(None)` where nothing that follows makes the conditions hold.
    fn step(&mut self, from: &Reached, octet: u8, token: &[u8], in_path: bool) -> Option<Option<Reached>> {
        let expression = match (&mut self.expression, from.expression) {
            // Of the query the expression sees nothing: it holds by now, or never.
            (Some(expression), Progress::At(state)) if !in_path => match expression.ends(state)? {
                true => Progress::Holds,
                false => return Some(None),
            },
            (_, progress) => progress,
        };
        let expression = match (&mut self.expression, expression) {
            (Some(expression), Progress::At(state)) => match expression.step(state, octet)? {
                Some(progress) => progress,
                None => return Some(None),
            },
            (_, progress) => progress,
        };
        let mut patterns = from.patterns.clone();
        for &byte in token {
            let Places::At(places) = patterns else { break };
            let mut after = SmallVec::new();
            for (pattern, place) in places {
                match self.patterns[usize::from(pattern)].get(usize::from(place)) {
                    Some(b'*') => after.push((pattern, place)),
                    Some(wanted) if *wanted == byte => after.push((pattern, place + 1)),
                    _ => {}
                }
            }
            if after.is_empty() {
                return Some(None);
            }
            patterns = self.closed(after);
        }
        Some(Some(Reached { expression, patterns }))
    }

    /// With the places that a wildcard reaches by standing for nothing.
    fn closed(&self, mut places: SmallVec<[(u16, u16); 4]>) -> Places {
        let mut index = 0;
        while let Some(&(pattern, place)) = places.get(index) {
            index += 1;
            let text = &self.patterns[usize::from(pattern)];
            if text.get(usize::from(place)) == Some(&b'*') {
                if usize::from(place) + 1 == text.len() {
                    return Places::Holds;
                }
                places.push((pattern, place + 1));
            }
        }
        places.sort_unstable();
        places.dedup();
        Places::At(places)
    }

    /// Whether the conditions hold if the URL ends here.
    fn ends(&mut self, at: &Reached) -> Option<bool> {
        let listed = match &at.patterns {
            Places::Holds => true,
            Places::At(places) => places.iter().any(|(pattern, place)| {
                let text = &self.patterns[usize::from(*pattern)];
                usize::from(*place) == text.len()
            }),
        };
        if !listed {
            return Some(false);
        }
        match (&mut self.expression, at.expression) {
            (Some(expression), Progress::At(state)) => expression.ends(state),
            _ => Some(true),
        }
    }

    /// The kind of an octet to the expression.
    fn class(&self, octet: u8) -> u8 {
        self.expression.as_ref().map_or(0, |expression| expression.class(octet))
    }
}

/// Octets, one of each kind that this search tells apart: those that lead to the same places are of one kind. What no
/// pattern has in it, is nothing but what a wildcard stands for, be it a sign, or a digit of its escape.
fn representatives(when: &Side, unless: Option<&Side>, beside: &[Vec<u8>]) -> Vec<u8> {
    let patterns = || when.patterns.iter().chain(unless.into_iter().flat_map(|side| &side.patterns)).chain(beside);
    let mut named = [false; 256];
    patterns().flatten().for_each(|octet| named[usize::from(*octet)] = true);
    let seen = |octet: u8| named[usize::from(octet)].then_some(octet);
    let digit = |value: u8| seen(b"0123456789ABCDEF"[usize::from(value)]);
    let mut kinds = HashMap::new();
    for octet in 0..=u8::MAX {
        let own = b"/?%*$#".contains(&octet).then_some(octet);
        let hex = octet.is_ascii_hexdigit();
        let unreserved = octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
        // An unreserved octet is escaped only where a stray `%` keeps the escapes of hex digits.
        let escape = (hex || !unreserved).then(|| (digit(octet >> 4), digit(octet & 15)));
        let spelling = (octet.is_ascii_graphic(), unreserved, hex, escape);
        let classes = (when.class(octet), unless.map_or(0, |side| side.class(octet)));
        kinds.entry((classes, own, seen(octet), spelling)).or_insert(octet);
    }
    let mut octets: Vec<u8> = kinds.into_values().collect();
    // What comes last is looked at first: where there is anything, letters mostly find it.
    octets.sort_unstable_by_key(|octet| (octet.is_ascii_graphic(), octet.is_ascii_alphanumeric(), *octet));
    octets
}
