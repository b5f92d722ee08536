//! Tests that merging facts of instances ([`Merged`]), and what operators did ([`Orders`]), gives
//! the same result in any sequence and with repetitions. Also, an [`Event`] is read from its key as
//! it was written.

use crate::exchange::event::{Event, MarkedClient, PauseTerms, PausedSite, ServedVersion};
use crate::exchange::fact::Merged;
use crate::exchange::orders::Orders;
use crate::exchange::{SharedFact, event};
use proptest::prelude::*;
use std::net::IpAddr;

fn facts() -> impl Strategy<Value = Vec<SharedFact>> {
    let fact = ("[spto]\n[ab]", 0..4i64, "[xy]?").prop_map(|(key, at, value)| SharedFact {
        key,
        at,
        value,
    });
    proptest::collection::vec(fact, 0..12)
}

fn merged(facts: &[SharedFact]) -> Merged {
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

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from)
    ]
}

fn paused() -> impl Strategy<Value = Event> {
    let terms = (1..3u64, any::<bool>()).prop_map(|(seconds, everyone)| PauseTerms {
        seconds,
        retry_after: 60,
        everyone,
        robots_txt: false,
    });
    ("[ab]", proptest::option::of(terms))
        .prop_map(|(site, pause)| Event::Paused(PausedSite { site, pause }))
}

fn released() -> impl Strategy<Value = Event> {
    (0..2u8, 24..26u8).prop_map(|(last, length)| {
        Event::Released(
            format!("192.0.{last}.0/{length}")
                .parse()
                .expect("a network"),
        )
    })
}

fn events() -> impl Strategy<Value = Event> {
    let version = any::<[u8; 8]>();
    let served = ("[a-z.]{1,9}", "[a-z]{0,5}", version).prop_map(|(host, crawler, version)| {
        Event::Served(ServedVersion {
            host,
            crawler,
            version,
        })
    });
    let marked = ("[a-z]{1,5}", "[a-z /.0-9]{0,9}", address(), any::<u64>()).prop_map(
        |(site, crawler, address, seconds)| {
            Event::Marked(MarkedClient {
                site,
                crawler,
                address,
                seconds,
            })
        },
    );
    prop_oneof![served, marked, paused(), released()]
}

/// What operators said, and a mark, in an order.
fn orders(of: &[(Event, i64)]) -> Orders {
    let mut orders = Orders::default();
    for (event, at) in of {
        orders.add(event, *at);
    }
    orders
}

proptest! {
    #[test]
    fn events_are_read_as_they_were_written(event in events(), at in any::<i64>()) {
        let fact = event.fact(at).expect("short names");
        prop_assert!(fact.value.is_empty());
        prop_assert_eq!(Event::of(&fact.key), Some(event.clone()));
        let is_of_clients = matches!(event, Event::Marked(_));
        prop_assert_eq!(event::is_of_clients(&fact.key), is_of_clients);
    }

    #[test]
    fn orders_are_the_same_in_any_order_and_said_again(
        said in proptest::collection::vec((prop_oneof![paused(), released()], 0..4i64), 0..8),
        turned in any::<prop::sample::Index>(),
    ) {
        let once = orders(&said);
        let mut other = said.clone();
        other.rotate_left(if said.is_empty() { 0 } else { turned.index(said.len()) });
        other.reverse();
        other.extend(said.iter().cloned());
        prop_assert_eq!(&once, &orders(&other));
        // A store that starts over is told what there is, in whatever order.
        let told: Vec<(Event, i64)> = once.facts().map(|fact| (Event::of(&fact.key).expect("read"), fact.at)).collect();
        prop_assert_eq!(&once, &orders(&told));
    }

    #[test]
    fn merging_is_commutative_associative_and_idempotent(one in facts(), two in facts(), three in facts()) {
        let (a, b, c) = (merged(&one), merged(&two), merged(&three));
        prop_assert_eq!(both(&a, &b), both(&b, &a));
        prop_assert_eq!(both(&both(&a, &b), &c), both(&a, &both(&b, &c)));
        prop_assert_eq!(both(&a, &a), a.clone());
        let all: Vec<SharedFact> = one.iter().chain(&two).rev().cloned().collect();
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

#[test]
fn a_word_that_follows_another_at_once_is_the_later_one() {
    let pause = PauseTerms {
        seconds: 60,
        retry_after: 60,
        everyone: true,
        robots_txt: false,
    };
    let said = |pause| {
        Event::Paused(PausedSite {
            site: "shop".into(),
            pause,
        })
    };
    let (on, off) = (said(Some(pause)), said(None));
    let mut orders = Orders::default();
    for (event, at) in [(&on, 100), (&off, 100), (&on, 101), (&off, 101)] {
        let at = orders.said_at(event, at);
        assert!(orders.add(event, at), "{event:?}");
    }
    assert!(!orders.add(&on, 101), "said before it");
    // What waited while the store was away is as old as it is.
    assert_eq!(orders.said_at(&on, 50), 50);
}

#[test]
fn a_release_is_for_what_was_marked_before_it() {
    let mut orders = Orders::default();
    orders.add(
        &Event::Released("192.0.2.0/24".parse().expect("a network")),
        100,
    );
    let are_released =
        |address: &str, at| orders.are_released(address.parse().expect("an address"), at);
    assert!(are_released("192.0.2.7", 100));
    assert!(!are_released("192.0.2.7", 101));
    assert!(!are_released("198.51.100.7", 100));
}

#[test]
fn a_name_that_cannot_stand_in_a_key_is_not_told() {
    let of = |crawler: String| {
        let address = IpAddr::from([192, 0, 2, 1]);
        Event::Marked(MarkedClient {
            site: "shop".into(),
            crawler,
            address,
            seconds: 1,
        })
        .fact(1)
    };
    assert!(of("a bot".into()).is_some());
    assert_eq!((of("a\nbot".into()), of("a".repeat(300))), (None, None));
}
