//! The automata of expressions, and what building and searching them may take in all of a policy. Knows expressions and
//! steps; nothing of patterns and URLs.

use super::Progress;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use std::collections::VecDeque;

/// Steps of all searches of a policy: a check and a reload take no longer for it, whatever the expressions are.
const STEPS_OF_A_POLICY: usize = 400_000;
/// Comparisons of octets where patterns are held against each other, in all of a policy.
const OVERLAPS_OF_A_POLICY: usize = 500_000;
/// Memory of one expression's automaton, while it is searched.
const CACHE_BYTES: usize = 1 << 20;
/// Steps that building an automaton costs, for each state that the expression has before it is one.
const STEPS_OF_A_STATE: usize = 4;
/// Automata that are kept: a rule's, and its `not`'s.
const KEPT: usize = 2;

/// What all searches of a policy may still take, and what they have built.
#[derive(Debug)]
pub struct Searches {
    /// Steps.
    pub left: usize,
    /// Comparisons in `Pattern::overlaps`.
    pub overlaps: usize,
    built: VecDeque<(String, Option<DFA>)>,
}

impl Searches {
    pub fn of_a_policy() -> Searches {
        Searches { left: STEPS_OF_A_POLICY, overlaps: OVERLAPS_OF_A_POLICY, built: VecDeque::new() }
    }

    /// The automaton of an expression; `None` where it would be too large, or too much was built already.
    pub fn automaton(&mut self, text: &str) -> Option<DFA> {
        if let Some((_, known)) = self.built.iter().find(|(known, _)| known == text) {
            return known.clone();
        }
        if self.left == 0 {
            return None;
        }
        let automaton = automaton(text);
        let states = automaton.as_ref().map_or(CACHE_BYTES / 64, |automaton| automaton.get_nfa().states().len());
        self.left = self.left.saturating_sub(states * STEPS_OF_A_STATE);
        self.built.truncate(KEPT - 1);
        self.built.push_front((text.to_owned(), automaton.clone()));
        automaton
    }
}

/// The automaton of an expression, made as far as it is walked.
pub struct Expression {
    dfa: DFA,
    cache: Cache,
}

fn automaton(text: &str) -> Option<DFA> {
    DFA::builder()
        // Rather no answer than states forgotten and made again.
        .configure(
            DFA::config()
                .cache_capacity(CACHE_BYTES)
                .skip_cache_capacity_check(true)
                .minimum_cache_clear_count(Some(0)),
        )
        // Read as it is when it is used: on octets, which need be no UTF-8.
        .syntax(syntax::Config::new().utf8(false))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(CACHE_BYTES)))
        .build(text)
        .ok()
}

impl Expression {
    pub fn new(dfa: DFA) -> Expression {
        let cache = dfa.create_cache();
        Expression { dfa, cache }
    }

    /// The kind of an octet: those of one lead to the same states.
    pub fn class(&self, octet: u8) -> u8 {
        self.dfa.byte_classes().get(octet)
    }

    pub fn start(&mut self) -> Option<LazyStateID> {
        let input = Input::new(b"").anchored(Anchored::No);
        self.dfa.start_state_forward(&mut self.cache, &input).ok()
    }

    /// `Some(None)` where it cannot hold any more.
    pub fn step(&mut self, state: LazyStateID, octet: u8) -> Option<Option<Progress>> {
        let next = self.dfa.next_state(&mut self.cache, state, octet).ok()?;
        // It cannot tell a boundary of words beside what is not ASCII.
        if next.is_quit() {
            return None;
        }
        // A match is known one octet late; whatever follows, there is one.
        Some(match (next.is_match(), next.is_dead()) {
            (true, _) => Some(Progress::Holds),
            (_, true) => None,
            _ => Some(Progress::At(next)),
        })
    }

    pub fn ends(&mut self, state: LazyStateID) -> Option<bool> {
        let end = self.dfa.next_eoi_state(&mut self.cache, state).ok()?;
        (!end.is_quit()).then_some(end.is_match())
    }
}
