//! Property tests of what crawlgate instances exchange: facts such as which crawler fetched which
//! robots.txt ([`MergedFacts`]), and orders of operators ([`OperatorCommands`]). However often and
//! in whatever order these arrive, each instance must end in the same state. Encoding and decoding
//! a fact must not change it.

use crate::exchange::SharedFact;
use crate::exchange::codec::{
    StoreClockOffset, decode_event, decode_fact, encode_event, encode_fact, is_key_of,
};
use crate::exchange::fact::MergedFacts;
use crate::exchange::operator_commands::OperatorCommands;
use crate::facts::{
    AnyFact, ClientMark, Fact, HostObservation, MarkRelease, PauseEvent, PauseRecord, ServedVersion,
};
use crate::policy::RobotsVersionId;
use crate::policy::model::PauseAudience;
use crate::publications::{ChangePoint, ChangeSpan, Publication, PublishedRobots};
use crate::time::Timestamp;
use proptest::prelude::*;
use std::net::IpAddr;

/// When the events happened.
const AT: Timestamp = Timestamp(1_000);

fn any_facts() -> impl Strategy<Value = Vec<SharedFact>> {
    let fact = ("[spto]\n[ab]", 0..4i64, "[xy]?").prop_map(|(key, at, value)| SharedFact {
        key,
        at,
        value,
    });
    proptest::collection::vec(fact, 0..12)
}

fn merge_all(facts: &[SharedFact]) -> MergedFacts {
    let mut merged = MergedFacts::default();
    facts.iter().for_each(|fact| {
        merged.add(fact.clone());
    });
    merged
}

fn merge_both(one: &MergedFacts, other: &MergedFacts) -> MergedFacts {
    let mut both = one.clone();
    both.merge(other.clone());
    both
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from)
    ]
}

fn pause_fact(site: &str, audience: PauseAudience, seconds: i64) -> Fact {
    let paused = PauseRecord {
        audience,
        until: Timestamp(AT.0 + seconds),
        retry_after: 60,
        ..PauseRecord::for_pause_event(site, "", PauseEvent::Switched, AT)
    };
    Fact::set(AT, paused)
}

fn resume_fact(site: &str) -> Fact {
    Fact::removed(
        AT,
        PauseRecord::for_pause_event(site, "", PauseEvent::Switched, AT),
    )
}

fn any_pause() -> impl Strategy<Value = Fact> {
    ("[ab]", 0..3i64, any::<bool>()).prop_map(|(site, seconds, everyone)| {
        match (seconds, everyone) {
            (0, _) => resume_fact(&site),
            (seconds, true) => pause_fact(&site, PauseAudience::Everyone, seconds),
            (seconds, false) => pause_fact(&site, PauseAudience::Crawlers, seconds),
        }
    })
}

fn release_fact(network: &str) -> Fact {
    let network = network.parse().expect("a network");
    Fact::set(AT, MarkRelease { network })
}

fn any_release() -> impl Strategy<Value = Fact> {
    (0..2u8, 24..26u8).prop_map(|(last, length)| release_fact(&format!("192.0.{last}.0/{length}")))
}

fn mark_fact(crawler: String, address: IpAddr, seconds: u32) -> Fact {
    let mark = ClientMark {
        site: "shop".into(),
        crawler,
        address,
        since: AT,
        until: Timestamp(AT.0 + i64::from(seconds)),
    };
    Fact::set(AT, mark)
}

fn any_event() -> impl Strategy<Value = Fact> {
    let version = any::<[u8; 8]>();
    let served = ("[a-z.]{1,9}", "[a-z]{0,5}", version).prop_map(|(host, crawler, version)| {
        let received = PublishedRobots::Version(RobotsVersionId(version));
        Fact::set(
            AT,
            ServedVersion {
                host,
                crawler,
                received,
            },
        )
    });
    let marked = ("[a-z /.0-9]{0,9}", any_address(), any::<u32>())
        .prop_map(|(crawler, address, seconds)| mark_fact(crawler, address, seconds));
    prop_oneof![served, marked, any_pause(), any_release()]
}

/// What operators did, in an order.
fn merge_orders(given: &[(Fact, i64)]) -> OperatorCommands {
    let mut orders = OperatorCommands::default();
    for (fact, at) in given {
        orders.add(fact, &encode_event(fact, *at));
    }
    orders
}

proptest! {
    #[test]
    fn events_are_read_as_they_were_written(event in any_event(), at in any::<i64>()) {
        let shared = encode_event(&event, at);
        prop_assert!(shared.value.is_empty());
        prop_assert_eq!(decode_event(&shared.key, AT), Some(event.clone()));
        let is_mark = matches!(event.fact, AnyFact::ClientMark(_));
        prop_assert_eq!(is_key_of::<ClientMark>(&shared.key), is_mark);
    }

    #[test]
    fn orders_merge_the_same_in_any_sequence(
        given in proptest::collection::vec((prop_oneof![any_pause(), any_release()], 0..4i64), 0..8),
        turned in any::<prop::sample::Index>(),
    ) {
        let once = merge_orders(&given);
        let mut other = given.clone();
        other.rotate_left(if given.is_empty() { 0 } else { turned.index(given.len()) });
        other.reverse();
        other.extend(given.iter().cloned());
        prop_assert_eq!(&once, &merge_orders(&other));
        // A store that starts over is told what there is, in whatever order.
        let told = once.facts().map(|shared| (decode_event(&shared.key, AT).expect("read"), shared.at));
        prop_assert_eq!(&once, &merge_orders(&told.collect::<Vec<_>>()));
    }

    #[test]
    fn merging_is_commutative_associative_and_idempotent(one in any_facts(), two in any_facts(), three in any_facts()) {
        let (a, b, c) = (merge_all(&one), merge_all(&two), merge_all(&three));
        prop_assert_eq!(merge_both(&a, &b), merge_both(&b, &a));
        prop_assert_eq!(merge_both(&merge_both(&a, &b), &c), merge_both(&a, &merge_both(&b, &c)));
        prop_assert_eq!(merge_both(&a, &a), a.clone());
        let all: Vec<SharedFact> = one.iter().chain(&two).rev().cloned().collect();
        prop_assert_eq!(merge_all(&all), merge_both(&a, &b));
    }

    #[test]
    fn add_returns_whether_the_fact_changed_anything(facts in any_facts()) {
        let mut all = MergedFacts::default();
        for fact in facts {
            let before = all.clone();
            prop_assert_eq!(all.add(fact), all != before);
        }
    }
}

#[test]
fn order_right_after_another_is_later() {
    let on = pause_fact("shop", PauseAudience::Everyone, 60);
    let off = resume_fact("shop");
    let mut orders = OperatorCommands::default();
    let given_at =
        |orders: &mut OperatorCommands, fact: &Fact, at| orders.add(fact, &encode_event(fact, at));
    for (fact, at) in [(&on, 100), (&off, 100), (&on, 101), (&off, 101)] {
        let at = orders.order_time(fact, at);
        assert!(given_at(&mut orders, fact, at), "{fact:?}");
    }
    assert!(!given_at(&mut orders, &on, 101), "given before it");
    // What waited while the store was away is as old as it is.
    assert_eq!(orders.order_time(&on, 50), 50);
}

#[test]
fn release_covers_earlier_marks_only() {
    let orders = merge_orders(&[(release_fact("192.0.2.0/24"), 100)]);
    let is_released =
        |address: &str, at| orders.is_released(address.parse().expect("an address"), at);
    assert!(is_released("192.0.2.7", 100));
    assert!(!is_released("192.0.2.7", 101));
    assert!(!is_released("198.51.100.7", 100));
}

#[test]
fn facts_of_one_writer_are_read_by_the_own_clock() {
    // The reader's clock is a minute ahead of the writer's.
    let clocks = |ahead| StoreClockOffset {
        store: 5_000_000,
        ahead,
    };
    let span = ChangeSpan {
        since: ChangePoint {
            number: 7,
            at: Timestamp(4_000),
        },
        until: Some(ChangePoint {
            number: 9,
            at: Timestamp(4_500),
        }),
    };
    let publication = Publication {
        site: "shop".into(),
        published: PublishedRobots::Version(RobotsVersionId([7; 8])),
        identities: u64::MAX,
        has_page_tags: true,
        span,
        unreported_until: None,
    };
    let shared = encode_fact("a.1", &publication.clone().into(), 5_000, clocks(0));
    assert_eq!(
        shared.key, "publications\na.1\nshop\n7",
        "written with its table, its writer and its key"
    );
    let mut later = publication;
    later.span.since.at = Timestamp(4_062);
    later.span.until = later.span.until.map(|until| ChangePoint {
        at: Timestamp(4_562),
        ..until
    });
    assert_eq!(
        decode_fact(&shared.key, &shared.value, clocks(60_000)),
        Some(("a.1", later.into()))
    );

    let observed = HostObservation {
        host: "shop.example".into(),
        site: "shop".into(),
        since: Timestamp(0),
        seen: Timestamp(4_000),
        named: true,
        behind_cache: None,
    };
    let shared = encode_fact("a", &observed.clone().into(), 5_000, clocks(0));
    let later = HostObservation {
        seen: Timestamp(4_062),
        ..observed
    };
    assert_eq!(
        decode_fact(&shared.key, &shared.value, clocks(60_000)),
        Some(("a", later.into())),
        "the beginning of time is the same by every clock"
    );
}
