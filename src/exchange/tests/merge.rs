//! Tests that merging facts of instances ([`Merged`]), and what operators did ([`Orders`]), gives
//! the same result in any sequence and with repetitions. Also, a fact is read as it was written.

use crate::exchange::SharedFact;
use crate::exchange::codec::{Clocks, is_of, read, read_event, write, write_event};
use crate::exchange::fact::Merged;
use crate::exchange::orders::Orders;
use crate::facts::{AnyFact, Fact, Mark, Observation, Pause, PauseEvent, Release, Served};
use crate::policy::Version;
use crate::policy::model::Audience;
use crate::publications::{Change, Publication, Published, Span};
use crate::time::Timestamp;
use proptest::prelude::*;
use std::net::IpAddr;

/// When the events happened.
const AT: Timestamp = Timestamp(1_000);

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

fn pause(site: &str, audience: Audience, seconds: i64) -> Fact {
    let paused = Pause {
        audience,
        until: Timestamp(AT.0 + seconds),
        retry_after: 60,
        ..Pause::of_plan(site, "", PauseEvent::Switched, AT)
    };
    Fact::set(AT, paused)
}

fn resumed(site: &str) -> Fact {
    Fact::removed(AT, Pause::of_plan(site, "", PauseEvent::Switched, AT))
}

fn paused() -> impl Strategy<Value = Fact> {
    ("[ab]", 0..3i64, any::<bool>()).prop_map(|(site, seconds, everyone)| {
        match (seconds, everyone) {
            (0, _) => resumed(&site),
            (seconds, true) => pause(&site, Audience::Everyone, seconds),
            (seconds, false) => pause(&site, Audience::Crawlers, seconds),
        }
    })
}

fn release(network: &str) -> Fact {
    let network = network.parse().expect("a network");
    Fact::set(AT, Release { network })
}

fn released() -> impl Strategy<Value = Fact> {
    (0..2u8, 24..26u8).prop_map(|(last, length)| release(&format!("192.0.{last}.0/{length}")))
}

fn mark(crawler: String, address: IpAddr, seconds: u32) -> Fact {
    let mark = Mark {
        site: "shop".into(),
        crawler,
        address,
        since: AT,
        until: Timestamp(AT.0 + i64::from(seconds)),
    };
    Fact::set(AT, mark)
}

fn events() -> impl Strategy<Value = Fact> {
    let version = any::<[u8; 8]>();
    let served = ("[a-z.]{1,9}", "[a-z]{0,5}", version).prop_map(|(host, crawler, version)| {
        let received = Published::Version(Version(version));
        Fact::set(
            AT,
            Served {
                host,
                crawler,
                received,
            },
        )
    });
    let marked = ("[a-z /.0-9]{0,9}", address(), any::<u32>())
        .prop_map(|(crawler, address, seconds)| mark(crawler, address, seconds));
    prop_oneof![served, marked, paused(), released()]
}

/// What operators did, in an order.
fn orders(given: &[(Fact, i64)]) -> Orders {
    let mut orders = Orders::default();
    for (fact, at) in given {
        orders.add(fact, &write_event(fact, *at).expect("an event"));
    }
    orders
}

proptest! {
    #[test]
    fn events_are_read_as_they_were_written(event in events(), at in any::<i64>()) {
        let shared = write_event(&event, at).expect("short names");
        prop_assert!(shared.value.is_empty());
        prop_assert_eq!(read_event(&shared.key, AT), Some(event.clone()));
        let is_mark = matches!(event.fact, AnyFact::Mark(_));
        prop_assert_eq!(is_of::<Mark>(&shared.key), is_mark);
    }

    #[test]
    fn orders_are_the_same_in_any_order_and_given_again(
        given in proptest::collection::vec((prop_oneof![paused(), released()], 0..4i64), 0..8),
        turned in any::<prop::sample::Index>(),
    ) {
        let once = orders(&given);
        let mut other = given.clone();
        other.rotate_left(if given.is_empty() { 0 } else { turned.index(given.len()) });
        other.reverse();
        other.extend(given.iter().cloned());
        prop_assert_eq!(&once, &orders(&other));
        // A store that starts over is told what there is, in whatever order.
        let told = once.facts().map(|shared| (read_event(&shared.key, AT).expect("read"), shared.at));
        prop_assert_eq!(&once, &orders(&told.collect::<Vec<_>>()));
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
fn order_that_follows_another_at_once_is_later() {
    let on = pause("shop", Audience::Everyone, 60);
    let off = resumed("shop");
    let mut orders = Orders::default();
    let given_at = |orders: &mut Orders, fact: &Fact, at| {
        orders.add(fact, &write_event(fact, at).expect("an event"))
    };
    for (fact, at) in [(&on, 100), (&off, 100), (&on, 101), (&off, 101)] {
        let at = orders.time_of(fact, at);
        assert!(given_at(&mut orders, fact, at), "{fact:?}");
    }
    assert!(!given_at(&mut orders, &on, 101), "given before it");
    // What waited while the store was away is as old as it is.
    assert_eq!(orders.time_of(&on, 50), 50);
}

#[test]
fn release_is_for_what_was_marked_before_it() {
    let orders = orders(&[(release("192.0.2.0/24"), 100)]);
    let are_released =
        |address: &str, at| orders.are_released(address.parse().expect("an address"), at);
    assert!(are_released("192.0.2.7", 100));
    assert!(!are_released("192.0.2.7", 101));
    assert!(!are_released("198.51.100.7", 100));
}

#[test]
fn name_that_cannot_stand_in_a_key_is_not_shared() {
    let of = |crawler: String| write_event(&mark(crawler, IpAddr::from([192, 0, 2, 1]), 1), 1);
    assert!(of("a bot".into()).is_some());
    assert_eq!((of("a\nbot".into()), of("a".repeat(300))), (None, None));
}

#[test]
fn facts_of_one_writer_are_read_by_the_own_clock() {
    // The reader's clock is a minute ahead of the writer's.
    let clocks = |ahead| Clocks {
        store: 5_000_000,
        ahead,
    };
    let span = Span {
        since: Change {
            number: 7,
            at: Timestamp(4_000),
        },
        until: Some(Change {
            number: 9,
            at: Timestamp(4_500),
        }),
    };
    let publication = Publication {
        site: "shop".into(),
        published: Published::Version(Version([7; 8])),
        identities: u64::MAX,
        tells: true,
        span,
        unreported_until: None,
    };
    let shared = write("a.1", &publication.clone().into(), 5_000, clocks(0));
    assert_eq!(
        shared.key, "publications\na.1\nshop\n7",
        "written with its table, its writer and its key"
    );
    let mut later = publication;
    later.span.since.at = Timestamp(4_062);
    later.span.until = later.span.until.map(|until| Change {
        at: Timestamp(4_562),
        ..until
    });
    assert_eq!(
        read(&shared.key, &shared.value, clocks(60_000)),
        Some(("a.1", later.into()))
    );

    let observed = Observation {
        host: "shop.example".into(),
        site: "shop".into(),
        since: Timestamp(0),
        seen: Timestamp(4_000),
        named: true,
        behind_cache: None,
    };
    let shared = write("a", &observed.clone().into(), 5_000, clocks(0));
    let later = Observation {
        seen: Timestamp(4_062),
        ..observed
    };
    assert_eq!(
        read(&shared.key, &shared.value, clocks(60_000)),
        Some(("a", later.into())),
        "the beginning of time is the same by every clock"
    );
}
