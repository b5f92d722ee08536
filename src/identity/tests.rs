//! Tests of whether a client counts as verified, unverified or impostor, as published lists and DNS
//! answers change over time.

use super::names::ReverseDnsNames;
use super::published::{FetchedList, ListRejection};
use super::*;
use crate::crawlers::{NetworkListError, Registry};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ALL_METHODS: ProofMethods = ProofMethods {
    lists: true,
    signatures: true,
};
const MINUTE: i64 = 60;
const DAY: i64 = 86_400;
const INSIDE: &str = "192.0.2.7";
const OUTSIDE: &str = "203.0.113.7";

/// Proofs with a queue of DNS queries, which the test answers.
struct DnsWorld {
    proofs: IdentityVerifier,
    asked: Arc<Mutex<Vec<IpAddr>>>,
    room: usize,
}

fn dns_world(room: usize) -> DnsWorld {
    let asked: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
    let queue = asked.clone();
    let put = move |address| {
        let mut queue = queue.lock().expect("a queue");
        let has_room = queue.len() < room;
        if has_room {
            queue.push(address);
        }
        has_room
    };
    let (store, remembered) = StateStore::in_memory_only();
    let proofs = IdentityVerifier::new(
        Registry::builtin(),
        &remembered.facts,
        &store,
        ALL_METHODS,
        Some(Box::new(put)),
    );
    DnsWorld {
        proofs,
        asked,
        room,
    }
}

fn parse_ip(written: &str) -> IpAddr {
    written.parse().expect("an address")
}

fn claim_from(id: &str, address: &str) -> IdentityClaim<'static> {
    let claim = Claim::Known(Registry::builtin().find(id).expect(id));
    IdentityClaim {
        claim,
        address: Some(parse_ip(address)),
        may_accuse: true,
        by_policy: Identity::Unverified,
        signed: None,
    }
}

/// The finding about a request that counts.
fn evaluate_and_apply(
    proofs: &IdentityVerifier,
    claimed: &IdentityClaim<'_>,
    now: Timestamp,
) -> IdentityFinding {
    let (finding, effects) = proofs.evaluate(claimed, now);
    assert!(proofs.record_signature(&effects, now));
    proofs.apply(effects, now);
    finding
}

impl DnsWorld {
    fn identity_of(&self, id: &str, address: &str, now: i64) -> (Identity, ProofKind) {
        let finding = evaluate_and_apply(&self.proofs, &claim_from(id, address), Timestamp(now));
        (finding.identity, finding.proof)
    }

    /// Replaces the lists of a crawler.
    fn publish_list(&self, id: &str, text: &str, now: i64) {
        let index = Registry::builtin().find(id).expect(id);
        for list in &self.proofs.means.get(index).expect(id).lists {
            let fetched = FetchedList {
                bytes: text.as_bytes().to_vec(),
                etag: "\"1\"".into(),
                last_modified: String::new(),
                checked: Timestamp(now),
            };
            self.proofs
                .lists
                .replace_list(*list, fetched)
                .expect("believed");
        }
    }

    fn answer_with_names(&self, address: &str, names: &[&str], now: i64) {
        let confirmed = names.iter().map(|name| (*name).to_owned()).collect();
        self.record_dns_answer(
            address,
            ReverseDnsNames {
                confirmed,
                without_forward: Vec::new(),
            },
            now,
        );
    }

    fn answer_without_forward(&self, address: &str, name: &str, now: i64) {
        self.record_dns_answer(
            address,
            ReverseDnsNames {
                confirmed: Vec::new(),
                without_forward: vec![name.to_owned()],
            },
            now,
        );
    }

    fn record_dns_answer(&self, address: &str, names: ReverseDnsNames, now: i64) {
        self.asked
            .lock()
            .expect("a queue")
            .retain(|asked| *asked != parse_ip(address));
        self.proofs.names.record_answer(
            parse_ip(address),
            names,
            Duration::from_secs(300),
            Timestamp(now),
        );
    }

    fn asked_count(&self) -> usize {
        self.asked.lock().expect("a queue").len()
    }
}

const PENDING: (Identity, ProofKind) = (Identity::Pending, ProofKind::None);

#[test]
fn list_accuses_alone_without_host_names() {
    let world = dns_world(9);
    assert_eq!(
        world.identity_of("gptbot", INSIDE, 0),
        PENDING,
        "the list is not known yet"
    );
    world.publish_list("gptbot", "192.0.2.0/24", 0);
    assert_eq!(
        world.identity_of("gptbot", INSIDE, 1),
        (Identity::Verified, ProofKind::List)
    );
    assert_eq!(
        world.identity_of("gptbot", OUTSIDE, 1),
        (Identity::Impostor, ProofKind::List)
    );
    assert_eq!(
        world.identity_of("gptbot", "2001:db8::1", 1),
        PENDING,
        "the list has no IPv6 networks"
    );
    assert_eq!(
        world.identity_of("gptbot", "10.0.0.1", 1),
        PENDING,
        "a private address proves nothing"
    );
    let undeclared = IdentityClaim {
        may_accuse: false,
        ..claim_from("gptbot", OUTSIDE)
    };
    assert_eq!(
        evaluate_and_apply(&world.proofs, &undeclared, Timestamp(1)).identity,
        Identity::Pending
    );
    // Eight days later nobody has said that the list is still so.
    assert_eq!(world.identity_of("gptbot", OUTSIDE, 8 * DAY), PENDING);
    assert_eq!(
        world.identity_of("gptbot", INSIDE, 8 * DAY),
        (Identity::Verified, ProofKind::List)
    );
    assert_eq!(world.asked_count(), 0, "it has no host names");
}

#[test]
fn unverified_claims_have_a_reason() {
    let world = dns_world(9);
    let doubt = |claimed: &IdentityClaim<'_>, now: i64| {
        evaluate_and_apply(&world.proofs, claimed, Timestamp(now)).doubt
    };
    let (inside, outside) = (claim_from("gptbot", INSIDE), claim_from("gptbot", OUTSIDE));
    assert_eq!(doubt(&outside, 0), Some(IdentityDoubt::ListUnknown));
    world.publish_list("gptbot", "192.0.2.0/24", 0);
    assert_eq!(
        (doubt(&inside, 1), doubt(&outside, 1)),
        (None, None),
        "verified, and an impostor"
    );
    assert_eq!(
        doubt(&claim_from("gptbot", "10.0.0.1"), 1),
        Some(IdentityDoubt::PrivateAddress)
    );
    assert_eq!(
        doubt(&claim_from("gptbot", "2001:db8::1"), 1),
        Some(IdentityDoubt::ListOtherKind)
    );
    assert_eq!(
        doubt(
            &IdentityClaim {
                may_accuse: false,
                ..outside
            },
            1
        ),
        Some(IdentityDoubt::PerhapsProxy)
    );
    assert_eq!(doubt(&outside, 8 * DAY), Some(IdentityDoubt::ListOld));
    let googlebot = claim_from("googlebot", OUTSIDE);
    assert_eq!(doubt(&googlebot, 0), Some(IdentityDoubt::DnsPending));
    world
        .proofs
        .names
        .record_failure(parse_ip(OUTSIDE), Timestamp(1));
    assert_eq!(doubt(&googlebot, 2), Some(IdentityDoubt::DnsFailed));
    world.answer_with_names(OUTSIDE, &[], 70);
    assert_eq!(doubt(&googlebot, 71), Some(IdentityDoubt::DnsOneAnswer));
}

#[test]
fn unknown_client_is_never_an_impostor_and_dns_is_not_asked() {
    let world = dns_world(9);
    world.publish_list("gptbot", "192.0.2.0/24", 0);
    for id in ["gptbot", "googlebot", "ccbot"] {
        let unknown = IdentityClaim {
            address: None,
            ..claim_from(id, OUTSIDE)
        };
        let found = evaluate_and_apply(&world.proofs, &unknown, Timestamp(1));
        assert_eq!(
            (found.identity, found.doubt),
            (Identity::Pending, Some(IdentityDoubt::ClientUnknown)),
            "{id}"
        );
        let of_the_owner = IdentityClaim {
            by_policy: Identity::Verified,
            ..unknown
        };
        let found = evaluate_and_apply(&world.proofs, &of_the_owner, Timestamp(1));
        assert_eq!(
            (found.identity, found.proof, found.doubt),
            (Identity::Verified, ProofKind::Networks, None),
            "{id}"
        );
    }
    assert_eq!(world.asked_count(), 0);
}

#[test]
fn visit_outside_the_list_is_suspected_without_dns() {
    let (store, remembered) = StateStore::in_memory_only();
    let proofs = IdentityVerifier::new(
        Registry::builtin(),
        &remembered.facts,
        &store,
        ALL_METHODS,
        None,
    );
    let world = DnsWorld {
        proofs,
        ..dns_world(0)
    };
    world.publish_list("googlebot", "192.0.2.0/24", 0);
    let outside = claim_from("googlebot", OUTSIDE);
    let found = evaluate_and_apply(&world.proofs, &outside, Timestamp(1));
    assert_eq!(
        (found.identity, found.doubt),
        (Identity::Pending, Some(IdentityDoubt::DnsNotAsked))
    );
    assert_eq!(
        found.identity.outcome(found.doubt),
        crate::verdict::IdentityOutcome::Suspected
    );
    let behind_a_proxy = IdentityClaim {
        may_accuse: false,
        ..outside
    };
    assert_eq!(
        evaluate_and_apply(&world.proofs, &behind_a_proxy, Timestamp(1)).doubt,
        Some(IdentityDoubt::PerhapsProxy)
    );
    let Claim::Known(googlebot) = outside.claim else {
        panic!()
    };
    let evidence = world
        .proofs
        .explain(googlebot, parse_ip(OUTSIDE), Timestamp(1));
    assert!(
        evidence
            .iter()
            .any(|evidence| evidence.id == "dns-not-asked"),
        "{evidence:?}"
    );
}

#[test]
fn list_and_reverse_dns_have_to_agree() {
    let world = dns_world(9);
    world.publish_list("googlebot", "192.0.2.0/24\n2001:db8::/32", 0);
    assert_eq!(
        world.identity_of("googlebot", OUTSIDE, 0),
        PENDING,
        "DNS is asked first"
    );
    assert_eq!(world.asked_count(), 1);
    world.answer_with_names(OUTSIDE, &[], 1);
    assert_eq!(
        world.identity_of("googlebot", OUTSIDE, 2),
        PENDING,
        "one answer is not enough"
    );
    assert_eq!(world.asked_count(), 0, "it is not asked again at once");
    assert_eq!(
        world.identity_of("googlebot", OUTSIDE, 1 + 10 * MINUTE),
        PENDING
    );
    assert_eq!(world.asked_count(), 1);
    world.answer_with_names(OUTSIDE, &[], 2 + 10 * MINUTE);
    assert_eq!(
        world.identity_of("googlebot", OUTSIDE, 3 + 10 * MINUTE),
        (Identity::Impostor, ProofKind::ListAndReverseDns)
    );
    // A new address of the crawler that the list does not have yet.
    world.answer_with_names("203.0.113.8", &["crawl-203-0-113-8.googlebot.com"], 5);
    assert_eq!(
        world.identity_of("googlebot", "203.0.113.8", 6),
        (Identity::Verified, ProofKind::ReverseDns)
    );
    assert_eq!(
        world.identity_of("bingbot", "203.0.113.8", 6),
        PENDING,
        "the name is another crawler's"
    );
}

#[test]
fn reverse_dns_accuses_alone_without_published_list() {
    let world = dns_world(9);
    // Its operator documents host names and publishes no list.
    let id = Registry::builtin()
        .crawlers()
        .iter()
        .find(|crawler| {
            crawler.ips.is_empty() && !crawler.rdns.is_empty() && crawler.source.starts_with("[D]")
        })
        .map(|crawler| crawler.id.as_str())
        .expect("there is one");
    world.answer_with_names(OUTSIDE, &[], 0);
    world.answer_with_names(OUTSIDE, &[], 10 * MINUTE);
    assert_eq!(
        world.identity_of(id, OUTSIDE, 10 * MINUTE + 1),
        (Identity::Impostor, ProofKind::ReverseDns)
    );
    assert_eq!(
        world.identity_of("linkedinbot", OUTSIDE, 10 * MINUTE + 1),
        PENDING,
        "nobody promises its host names"
    );
    assert_eq!(
        world.identity_of("bingbot", OUTSIDE, 10 * MINUTE + 1),
        PENDING,
        "its list is not known"
    );
}

#[test]
fn name_without_forward_decides_nothing_if_none_is_documented() {
    let world = dns_world(9);
    let undocumented = Registry::builtin()
        .crawlers()
        .iter()
        .filter(|crawler| crawler.forward_undocumented);
    for crawler in undocumented {
        let name = format!("a.crawl.{}", crawler.rdns[0]);
        for minute in [0, 10, 20] {
            world.answer_without_forward(OUTSIDE, &name, minute * MINUTE);
        }
        let found = evaluate_and_apply(
            &world.proofs,
            &claim_from(&crawler.id, OUTSIDE),
            Timestamp(20 * MINUTE + 1),
        );
        assert_eq!(
            (found.identity, found.doubt),
            (Identity::Pending, Some(IdentityDoubt::DnsNoForward)),
            "{}",
            crawler.id
        );
        // The same names as those of another crawler are no excuse.
        assert_eq!(
            world.identity_of("mojeekbot", OUTSIDE, 20 * MINUTE + 1),
            (Identity::Impostor, ProofKind::ReverseDns)
        );
        world.answer_with_names(OUTSIDE, &[], 40 * MINUTE);
        assert_eq!(
            world.identity_of(&crawler.id, OUTSIDE, 40 * MINUTE + 1),
            PENDING,
            "one answer without a name"
        );
        world.answer_with_names(OUTSIDE, &[], 50 * MINUTE);
        assert_eq!(
            world.identity_of(&crawler.id, OUTSIDE, 50 * MINUTE + 1).0,
            Identity::Impostor,
            "{}",
            crawler.id
        );
    }
}

#[test]
fn failures_of_dns_prove_nothing_and_take_nothing_away() {
    let world = dns_world(9);
    assert_eq!(world.identity_of("bingbot", OUTSIDE, 0), PENDING);
    for minute in 0..30 {
        world
            .proofs
            .names
            .record_failure(parse_ip(OUTSIDE), Timestamp(minute * MINUTE));
        assert_eq!(
            world.identity_of("bingbot", OUTSIDE, minute * MINUTE + 1),
            PENDING
        );
    }
    assert_eq!(
        world.asked_count(),
        1,
        "asked again no sooner than after a minute"
    );
    world.answer_with_names(OUTSIDE, &["msnbot.search.msn.com"], 31 * MINUTE);
    world
        .proofs
        .names
        .record_failure(parse_ip(OUTSIDE), Timestamp(200 * MINUTE));
    assert_eq!(
        world.identity_of("bingbot", OUTSIDE, 201 * MINUTE),
        (Identity::Verified, ProofKind::ReverseDns)
    );
    assert_eq!(
        world.identity_of("bingbot", OUTSIDE, 3 * DAY),
        PENDING,
        "but not for ever"
    );
}

#[test]
fn changing_name_restarts_the_count_of_answers() {
    let world = dns_world(9);
    world.publish_list("googlebot", "192.0.2.0/24", 0);
    world.answer_with_names(OUTSIDE, &[], 0);
    world.answer_with_names(OUTSIDE, &["a.googlebot.com"], 5 * MINUTE);
    world.answer_with_names(OUTSIDE, &[], 11 * MINUTE);
    assert_eq!(
        world.identity_of("googlebot", OUTSIDE, 11 * MINUTE + 1),
        PENDING
    );
    world.answer_with_names(OUTSIDE, &[], 21 * MINUTE);
    assert_eq!(
        world.identity_of("googlebot", OUTSIDE, 21 * MINUTE + 1).0,
        Identity::Impostor
    );
}

#[test]
fn policy_networks_decide_alone_only_without_dns() {
    let asking = dns_world(9);
    let outside = IdentityClaim {
        by_policy: Identity::Impostor,
        ..claim_from("bingbot", OUTSIDE)
    };
    assert_eq!(
        evaluate_and_apply(&asking.proofs, &outside, Timestamp(0)).identity,
        Identity::Pending
    );
    let silent = IdentityVerifier::with_policy_networks_only(Registry::builtin());
    let found = evaluate_and_apply(&silent, &outside, Timestamp(0));
    assert_eq!(
        (found.identity, found.proof),
        (Identity::Impostor, ProofKind::Networks)
    );
    let of_no_means = IdentityClaim {
        claim: Claim::UnknownBot,
        ..outside
    };
    assert_eq!(
        evaluate_and_apply(&asking.proofs, &of_no_means, Timestamp(0)).identity,
        Identity::Impostor
    );
    let inside = IdentityClaim {
        by_policy: Identity::Verified,
        ..outside
    };
    let found = evaluate_and_apply(&asking.proofs, &inside, Timestamp(0));
    assert_eq!(
        (found.identity, found.proof),
        (Identity::Verified, ProofKind::Networks)
    );
}

#[test]
fn shrunken_list_is_accepted_only_over_an_old_one() {
    let world = dns_world(9);
    world.publish_list(
        "gptbot",
        "192.0.2.0/26\n192.0.2.64/26\n192.0.2.128/26\n198.51.100.0/24\n203.0.113.0/24",
        0,
    );
    let index = Registry::builtin().find("gptbot").expect("a crawler");
    let list = world.proofs.means.get(index).expect("its means").lists[0];
    let take = |text: &str, now: i64| {
        let fetched = FetchedList {
            bytes: text.into(),
            etag: String::new(),
            last_modified: String::new(),
            checked: Timestamp(now),
        };
        world.proofs.lists.replace_list(list, fetched)
    };
    assert_eq!(
        take("192.0.2.0/26\n192.0.2.64/26", DAY),
        Err(ListRejection::Shrunk { now: 2, before: 5 })
    );
    assert_eq!(
        take("", DAY),
        Err(ListRejection::NotAList(NetworkListError::Empty))
    );
    assert_eq!(
        world.identity_of("gptbot", OUTSIDE, DAY),
        (Identity::Verified, ProofKind::List)
    );
    let change = take("192.0.2.0/26", 8 * DAY).expect("believed");
    assert_eq!(
        (change.added.len(), change.removed.len(), change.networks),
        (0, 4, 1)
    );
}

#[test]
fn flood_of_addresses_is_bounded_and_counted() {
    let world = dns_world(100);
    let begin = std::time::Instant::now();
    for address in 0..200_000u32 {
        let claimed = IdentityClaim {
            address: Some(IpAddr::V4((0x0b00_0000 + address).into())),
            ..claim_from("bingbot", OUTSIDE)
        };
        assert_eq!(
            evaluate_and_apply(&world.proofs, &claimed, Timestamp(0)).identity,
            Identity::Pending
        );
    }
    assert_eq!(
        (world.asked_count(), world.proofs.names.address_count()),
        (world.room, world.room),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(world.proofs.dropped_lookups(), 199_900);
}
