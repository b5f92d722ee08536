//! Facts merge in any order, in any grouping and any number of times.

use crate::exchange::Fact;
use crate::exchange::fact::Merged;
use proptest::prelude::*;

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    let fact = ("[spto]\n[ab]", 0..4i64, "[xy]?").prop_map(|(key, at, value)| Fact { key, at, value });
    proptest::collection::vec(fact, 0..12)
}

fn merged(facts: &[Fact]) -> Merged {
    let mut merged = Merged::default();
    facts.iter().for_each(|fact| {
        merged.add(fact.clone());
    });
    merged
}

fn both(one: &Merged, other: &Merged) -> Merged {
    let mut both = one.clone();
    both.merge(other.clone());
    both
}

proptest! {
    #[test]
    fn merging_is_commutative_associative_and_idempotent(one in facts(), two in facts(), three in facts()) {
        let (a, b, c) = (merged(&one), merged(&two), merged(&three));
        prop_assert_eq!(both(&a, &b), both(&b, &a));
        prop_assert_eq!(both(&both(&a, &b), &c), both(&a, &both(&b, &c)));
        prop_assert_eq!(both(&a, &a), a.clone());
        let all: Vec<Fact> = one.iter().chain(&two).rev().cloned().collect();
        prop_assert_eq!(merged(&all), both(&a, &b));
    }

    #[test]
    fn adding_a_fact_says_whether_it_changed_anything(facts in facts()) {
        let mut all = Merged::default();
        for fact in facts {
            let before = all.clone();
            prop_assert_eq!(all.add(fact), all != before);
        }
    }
}
