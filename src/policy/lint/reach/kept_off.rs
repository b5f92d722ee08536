//! Whether the rules of a robots.txt keep crawlers off every URL for which a rule's conditions on the path hold: the
//! same search, with the places in their patterns. Knows rules and conditions; not whose they are.

use super::{Among, At, MAX_STEPS, Place, Reached, Searches, Side, State, Wanted, representatives, sides, tokens};
use crate::robots::Rule;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The Disallow that keeps crawlers off one of the URLs that are wanted, where each of them has one. `None` where one
/// of them may be fetched, where there are none, and where that was not found out. URLs count as they are sent: one
/// that an origin would resolve to another is another.
pub fn kept_off<'r>(wanted: Wanted<'_>, rules: &[&'r Rule], among: Among, searches: &mut Searches) -> Option<&'r Rule> {
    let mut ranked: Vec<&Rule> = rules.iter().copied().filter(|rule| !rule.pattern.is_empty()).collect();
    if ranked.len() > usize::from(u16::MAX) || ranked.iter().all(|rule| rule.allow) {
        return None;
    }
    // The first of those that match decides.
    ranked.sort_by_key(|rule| (Reverse(rule.pattern.priority()), Reverse(rule.allow)));
    let texts: Vec<Vec<u8>> = ranked.iter().map(|rule| rule.pattern.as_target()).collect();
    let octets = texts.iter().map(Vec::len).sum::<usize>();
    if texts.iter().any(|text| text.len() > usize::from(u16::MAX)) || octets > searches.left {
        return None;
    }
    searches.left -= octets;
    let (when, unless) = sides(wanted, searches)?;
    let given = MAX_STEPS.min(searches.left);
    let mut left = given;
    let found = search(when, unless, &Ranked { rules: &ranked, texts: &texts }, among, &mut left);
    searches.left -= given - left;
    found.flatten().map(|rank| ranked[usize::from(rank)])
}

struct Ranked<'r> {
    rules: &'r [&'r Rule],
    texts: &'r [Vec<u8>],
}

/// How far the rules have come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    /// The first that holds, whatever follows.
    holds: Option<u16>,
    /// Which of those before it may still hold, and how many octets of it are behind.
    places: SmallVec<[(u16, u16); 4]>,
}

fn search(
    mut when: Side,
    mut unless: Option<Side>,
    ranked: &Ranked<'_>,
    among: Among,
    left: &mut usize,
) -> Option<Option<u16>> {
    let octets = representatives(&when, unless.as_ref(), ranked.texts);
    let fewer = representatives(&when, None, &[]);
    let first = State {
        when: when.start()?,
        unless: unless.as_mut().map(Side::start).map_or(Some(None), |start| start.map(Some))?,
        place: Place { at: At::Start, stray: 0, escape: 0 },
    };
    let all = (0..ranked.rules.len()).map(|rank| (rank as u16, 0)).collect();
    let first = (first, ranked.closed(None, all));
    let mut known = HashSet::new();
    let mut waiting = vec![first.clone()];
    known.insert(first);
    let mut found = None;
    while let Some((state, open)) = waiting.pop() {
        if state.place.at != At::Start {
            let excluded = match (&mut unless, &state.unless) {
                (Some(side), Some(state)) => side.ends(state)?,
                _ => false,
            };
            if when.ends(&state.when)? && !excluded {
                match ranked.deciding(&open) {
                    Some(rank) if !ranked.rules[usize::from(rank)].allow => found = Some(rank),
                    _ => return Some(None),
                }
            }
        }
        // Whatever follows is kept off, too.
        if found.is_some() && ranked.is_closed(&open) {
            continue;
        }
        // Where no other pattern may still hold none tells anything apart.
        let is_settled = state.unless.is_none() && open.places.is_empty();
        for &octet in if is_settled { &fewer } else { &octets } {
            for (token, place) in tokens(octet, state.place, among).into_iter().rev() {
                *left = left.checked_sub(1 + open.places.len() / 4)?;
                let in_path = place.at == At::Path;
                let Some(one) = when.step(&state.when, octet, &token, in_path)? else { continue };
                let other: Option<Reached> = match (&mut unless, &state.unless) {
                    (Some(side), Some(state)) => side.step(state, octet, &token, in_path)?,
                    _ => None,
                };
                let next = (State { when: one, unless: other, place }, ranked.step(&open, &token));
                if known.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
    }
    Some(found)
}

impl Ranked<'_> {
    fn step(&self, open: &Open, token: &[u8]) -> Open {
        let mut open = open.clone();
        for &byte in token {
            let mut after = SmallVec::new();
            for (rank, place) in open.places {
                match self.texts[usize::from(rank)].get(usize::from(place)) {
                    Some(b'*') => after.push((rank, place)),
                    Some(wanted) if *wanted == byte => after.push((rank, place + 1)),
                    _ => {}
                }
            }
            open = self.closed(open.holds, after);
        }
        open
    }

    /// With the places that a wildcard reaches by standing for nothing, and without what does not count any more.
    fn closed(&self, mut holds: Option<u16>, mut places: SmallVec<[(u16, u16); 4]>) -> Open {
        let mut index = 0;
        while let Some(&(rank, place)) = places.get(index) {
            index += 1;
            let text = &self.texts[usize::from(rank)];
            if text.get(usize::from(place)) == Some(&b'*') {
                if usize::from(place) + 1 == text.len() {
                    holds = Some(holds.map_or(rank, |known| known.min(rank)));
                } else {
                    places.push((rank, place + 1));
                }
            }
        }
        places.retain(|(rank, _)| holds.is_none_or(|known| *rank < known));
        places.sort_unstable();
        places.dedup();
        Open { holds, places }
    }

    /// The rule that decides if the URL ends here.
    fn deciding(&self, open: &Open) -> Option<u16> {
        let ended =
            open.places.iter().filter(|(rank, place)| self.texts[usize::from(*rank)].len() == usize::from(*place));
        ended.map(|(rank, _)| *rank).chain(open.holds).min()
    }

    /// Whether a Disallow decides, however the URL goes on.
    fn is_closed(&self, open: &Open) -> bool {
        let allow = |rank: &u16| self.rules[usize::from(*rank)].allow;
        open.holds.is_some_and(|rank| !allow(&rank)) && !open.places.iter().any(|(rank, _)| allow(rank))
    }
}
