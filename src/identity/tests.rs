//! Which identities follow from published lists and answers of DNS, as time passes.

use super::names::FoundNames;
use super::published::{Disbelief, FetchedList};
use super::*;
use crate::crawlers::{ListError, Registry};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const USES: Uses = Uses {
    lists: true,
    signatures: true,
};
const MINUTE: i64 = 60;
const DAY: i64 = 86_400;
const INSIDE: &str = "192.0.2.7";
const OUTSIDE: &str = "203.0.113.7";

/// Proofs whose questions to DNS are kept, and answered by the test.
struct World {
    proofs: Proofs,
    asked: Arc<Mutex<Vec<IpAddr>>>,
    room: usize,
}

fn world(room: usize) -> World {
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
    let proofs = Proofs::new(
        Registry::builtin(),
        &remembered.facts,
        &store,
        USES,
        Some(Box::new(put)),
    );
    World {
        proofs,
        asked,
        room,
    }
}

fn ip(written: &str) -> IpAddr {
    written.parse().expect("an address")
}

fn claimed(id: &str, address: &str) -> Claimed<'static> {
    let claim = Claim::Known(Registry::builtin().find(id).expect(id));
    Claimed {
        claim,
        address: Some(ip(address)),
        may_accuse: true,
        by_policy: Identity::Unverified,
        signed: None,
    }
}

/// What a request finds that counts.
fn look(proofs: &Proofs, claimed: &Claimed<'_>, now: Timestamp) -> IdentityFinding {
    let (finding, to_do) = proofs.look(claimed, now);
    assert!(proofs.record_signature(&to_do, now));
    proofs.take_up(to_do, now);
    finding
}

impl World {
    fn check(&self, id: &str, address: &str, now: i64) -> (Identity, Proof) {
        let finding = look(&self.proofs, &claimed(id, address), Timestamp(now));
        (finding.identity, finding.proof)
    }

    /// Gives the lists of a crawler these networks.
    fn publish(&self, id: &str, text: &str, now: i64) {
        let index = Registry::builtin().find(id).expect(id);
        for list in &self.proofs.means.get(index).expect(id).lists {
            let fetched = FetchedList {
                bytes: text.as_bytes().to_vec(),
                etag: "\"1\"".into(),
                last_modified: String::new(),
            };
            self.proofs
                .lists
                .take(*list, fetched, Timestamp(now))
                .expect("believed");
        }
    }

    fn answer(&self, address: &str, names: &[&str], now: i64) {
        let confirmed = names.iter().map(|name| (*name).to_owned()).collect();
        self.take(
            address,
            FoundNames {
                confirmed,
                without_forward: Vec::new(),
            },
            now,
        );
    }

    fn answer_without_forward(&self, address: &str, name: &str, now: i64) {
        self.take(
            address,
            FoundNames {
                confirmed: Vec::new(),
                without_forward: vec![name.to_owned()],
            },
            now,
        );
    }

    fn take(&self, address: &str, names: FoundNames, now: i64) {
        self.asked
            .lock()
            .expect("a queue")
            .retain(|asked| *asked != ip(address));
        self.proofs
            .names
            .answered(ip(address), names, Duration::from_secs(300), Timestamp(now));
    }

    fn asked(&self) -> usize {
        self.asked.lock().expect("a queue").len()
    }
}

const PENDING: (Identity, Proof) = (Identity::Pending, Proof::None);

#[test]
fn a_list_verifies_at_once_and_accuses_alone_where_there_are_no_host_names() {
    let world = world(9);
    assert_eq!(
        world.check("gptbot", INSIDE, 0),
        PENDING,
        "the list is not known yet"
    );
    world.publish("gptbot", "192.0.2.0/24", 0);
    assert_eq!(
        world.check("gptbot", INSIDE, 1),
        (Identity::Verified, Proof::List)
    );
    assert_eq!(
        world.check("gptbot", OUTSIDE, 1),
        (Identity::Impostor, Proof::List)
    );
    assert_eq!(
        world.check("gptbot", "2001:db8::1", 1),
        PENDING,
        "the list has no IPv6 networks"
    );
    assert_eq!(
        world.check("gptbot", "10.0.0.1", 1),
        PENDING,
        "a private address proves nothing"
    );
    let undeclared = Claimed {
        may_accuse: false,
        ..claimed("gptbot", OUTSIDE)
    };
    assert_eq!(
        look(&world.proofs, &undeclared, Timestamp(1)).identity,
        Identity::Pending
    );
    // Eight days later nobody has said that the list is still so.
    assert_eq!(world.check("gptbot", OUTSIDE, 8 * DAY), PENDING);
    assert_eq!(
        world.check("gptbot", INSIDE, 8 * DAY),
        (Identity::Verified, Proof::List)
    );
    assert_eq!(world.asked(), 0, "it has no host names");
}

#[test]
fn each_unverified_claim_has_its_reason() {
    let world = world(9);
    let doubt =
        |claimed: &Claimed<'_>, now: i64| look(&world.proofs, claimed, Timestamp(now)).doubt;
    let (inside, outside) = (claimed("gptbot", INSIDE), claimed("gptbot", OUTSIDE));
    assert_eq!(doubt(&outside, 0), Some(Doubt::ListUnknown));
    world.publish("gptbot", "192.0.2.0/24", 0);
    assert_eq!(
        (doubt(&inside, 1), doubt(&outside, 1)),
        (None, None),
        "verified, and an impostor"
    );
    assert_eq!(
        doubt(&claimed("gptbot", "10.0.0.1"), 1),
        Some(Doubt::PrivateAddress)
    );
    assert_eq!(
        doubt(&claimed("gptbot", "2001:db8::1"), 1),
        Some(Doubt::ListOtherKind)
    );
    assert_eq!(
        doubt(
            &Claimed {
                may_accuse: false,
                ..outside
            },
            1
        ),
        Some(Doubt::PerhapsProxy)
    );
    assert_eq!(doubt(&outside, 8 * DAY), Some(Doubt::ListOld));
    let googlebot = claimed("googlebot", OUTSIDE);
    assert_eq!(doubt(&googlebot, 0), Some(Doubt::DnsPending));
    world.proofs.names.failed(ip(OUTSIDE), Timestamp(1));
    assert_eq!(doubt(&googlebot, 2), Some(Doubt::DnsFailed));
    world.answer(OUTSIDE, &[], 70);
    assert_eq!(doubt(&googlebot, 71), Some(Doubt::DnsOneAnswer));
}

#[test]
fn unknown_client_is_never_an_impostor_and_dns_is_not_asked() {
    let world = world(9);
    world.publish("gptbot", "192.0.2.0/24", 0);
    for id in ["gptbot", "googlebot", "ccbot"] {
        let unknown = Claimed {
            address: None,
            ..claimed(id, OUTSIDE)
        };
        let found = look(&world.proofs, &unknown, Timestamp(1));
        assert_eq!(
            (found.identity, found.doubt),
            (Identity::Pending, Some(Doubt::ClientUnknown)),
            "{id}"
        );
        let of_the_owner = Claimed {
            by_policy: Identity::Verified,
            ..unknown
        };
        let found = look(&world.proofs, &of_the_owner, Timestamp(1));
        assert_eq!(
            (found.identity, found.proof, found.doubt),
            (Identity::Verified, Proof::Networks, None),
            "{id}"
        );
    }
    assert_eq!(world.asked(), 0);
}

#[test]
fn a_visit_from_outside_of_the_list_is_suspected_while_dns_is_not_asked() {
    let (store, remembered) = StateStore::in_memory_only();
    let proofs = Proofs::new(Registry::builtin(), &remembered.facts, &store, USES, None);
    let world = World { proofs, ..world(0) };
    world.publish("googlebot", "192.0.2.0/24", 0);
    let outside = claimed("googlebot", OUTSIDE);
    let found = look(&world.proofs, &outside, Timestamp(1));
    assert_eq!(
        (found.identity, found.doubt),
        (Identity::Pending, Some(Doubt::DnsNotAsked))
    );
    assert_eq!(
        found.identity.outcome(found.doubt),
        crate::verdict::IdentityOutcome::Suspected
    );
    let behind_a_proxy = Claimed {
        may_accuse: false,
        ..outside
    };
    assert_eq!(
        look(&world.proofs, &behind_a_proxy, Timestamp(1)).doubt,
        Some(Doubt::PerhapsProxy)
    );
    let Claim::Known(googlebot) = outside.claim else {
        panic!()
    };
    let evidence = world.proofs.evidence(googlebot, ip(OUTSIDE), Timestamp(1));
    assert!(
        evidence
            .iter()
            .any(|evidence| evidence.id == "dns-not-asked"),
        "{evidence:?}"
    );
}

#[test]
fn a_list_and_reverse_dns_have_to_agree() {
    let world = world(9);
    world.publish("googlebot", "192.0.2.0/24\n2001:db8::/32", 0);
    assert_eq!(
        world.check("googlebot", OUTSIDE, 0),
        PENDING,
        "DNS is asked first"
    );
    assert_eq!(world.asked(), 1);
    world.answer(OUTSIDE, &[], 1);
    assert_eq!(
        world.check("googlebot", OUTSIDE, 2),
        PENDING,
        "one answer is not enough"
    );
    assert_eq!(world.asked(), 0, "it is not asked again at once");
    assert_eq!(world.check("googlebot", OUTSIDE, 1 + 10 * MINUTE), PENDING);
    assert_eq!(world.asked(), 1);
    world.answer(OUTSIDE, &[], 2 + 10 * MINUTE);
    assert_eq!(
        world.check("googlebot", OUTSIDE, 3 + 10 * MINUTE),
        (Identity::Impostor, Proof::ListAndReverseDns)
    );
    // A new address of the crawler that the list does not have yet.
    world.answer("203.0.113.8", &["crawl-203-0-113-8.googlebot.com"], 5);
    assert_eq!(
        world.check("googlebot", "203.0.113.8", 6),
        (Identity::Verified, Proof::ReverseDns)
    );
    assert_eq!(
        world.check("bingbot", "203.0.113.8", 6),
        PENDING,
        "the name is another crawler's"
    );
}

#[test]
fn reverse_dns_alone_accuses_where_it_is_all_that_the_operator_offers() {
    let world = world(9);
    // Its operator documents host names and publishes no list.
    let id = Registry::builtin()
        .crawlers()
        .iter()
        .find(|crawler| {
            crawler.ips.is_empty() && !crawler.rdns.is_empty() && crawler.source.starts_with("[D]")
        })
        .map(|crawler| crawler.id.as_str())
        .expect("there is one");
    world.answer(OUTSIDE, &[], 0);
    world.answer(OUTSIDE, &[], 10 * MINUTE);
    assert_eq!(
        world.check(id, OUTSIDE, 10 * MINUTE + 1),
        (Identity::Impostor, Proof::ReverseDns)
    );
    assert_eq!(
        world.check("linkedinbot", OUTSIDE, 10 * MINUTE + 1),
        PENDING,
        "nobody promises its host names"
    );
    assert_eq!(
        world.check("bingbot", OUTSIDE, 10 * MINUTE + 1),
        PENDING,
        "its list is not known"
    );
}

#[test]
fn name_without_forward_decides_nothing_if_none_is_documented() {
    let world = world(9);
    let undocumented = Registry::builtin()
        .crawlers()
        .iter()
        .filter(|crawler| crawler.forward_undocumented);
    for crawler in undocumented {
        let name = format!("a.crawl.{}", crawler.rdns[0]);
        for minute in [0, 10, 20] {
            world.answer_without_forward(OUTSIDE, &name, minute * MINUTE);
        }
        let found = look(
            &world.proofs,
            &claimed(&crawler.id, OUTSIDE),
            Timestamp(20 * MINUTE + 1),
        );
        assert_eq!(
            (found.identity, found.doubt),
            (Identity::Pending, Some(Doubt::DnsNoForward)),
            "{}",
            crawler.id
        );
        // The same names as those of another crawler are no excuse.
        assert_eq!(
            world.check("mojeekbot", OUTSIDE, 20 * MINUTE + 1),
            (Identity::Impostor, Proof::ReverseDns)
        );
        world.answer(OUTSIDE, &[], 40 * MINUTE);
        assert_eq!(
            world.check(&crawler.id, OUTSIDE, 40 * MINUTE + 1),
            PENDING,
            "one answer without a name"
        );
        world.answer(OUTSIDE, &[], 50 * MINUTE);
        assert_eq!(
            world.check(&crawler.id, OUTSIDE, 50 * MINUTE + 1).0,
            Identity::Impostor,
            "{}",
            crawler.id
        );
    }
}

#[test]
fn failures_of_dns_prove_nothing_and_take_nothing_away() {
    let world = world(9);
    assert_eq!(world.check("bingbot", OUTSIDE, 0), PENDING);
    for minute in 0..30 {
        world
            .proofs
            .names
            .failed(ip(OUTSIDE), Timestamp(minute * MINUTE));
        assert_eq!(
            world.check("bingbot", OUTSIDE, minute * MINUTE + 1),
            PENDING
        );
    }
    assert_eq!(
        world.asked(),
        1,
        "asked again no sooner than after a minute"
    );
    world.answer(OUTSIDE, &["msnbot.search.msn.com"], 31 * MINUTE);
    world
        .proofs
        .names
        .failed(ip(OUTSIDE), Timestamp(200 * MINUTE));
    assert_eq!(
        world.check("bingbot", OUTSIDE, 201 * MINUTE),
        (Identity::Verified, Proof::ReverseDns)
    );
    assert_eq!(
        world.check("bingbot", OUTSIDE, 3 * DAY),
        PENDING,
        "but not for ever"
    );
}

#[test]
fn a_name_that_comes_and_goes_begins_the_count_of_answers_anew() {
    let world = world(9);
    world.publish("googlebot", "192.0.2.0/24", 0);
    world.answer(OUTSIDE, &[], 0);
    world.answer(OUTSIDE, &["a.googlebot.com"], 5 * MINUTE);
    world.answer(OUTSIDE, &[], 11 * MINUTE);
    assert_eq!(world.check("googlebot", OUTSIDE, 11 * MINUTE + 1), PENDING);
    world.answer(OUTSIDE, &[], 21 * MINUTE);
    assert_eq!(
        world.check("googlebot", OUTSIDE, 21 * MINUTE + 1).0,
        Identity::Impostor
    );
}

#[test]
fn the_policys_networks_decide_alone_only_where_dns_is_not_asked() {
    let asking = world(9);
    let outside = Claimed {
        by_policy: Identity::Impostor,
        ..claimed("bingbot", OUTSIDE)
    };
    assert_eq!(
        look(&asking.proofs, &outside, Timestamp(0)).identity,
        Identity::Pending
    );
    let silent = Proofs::none(Registry::builtin());
    let found = look(&silent, &outside, Timestamp(0));
    assert_eq!(
        (found.identity, found.proof),
        (Identity::Impostor, Proof::Networks)
    );
    let of_no_means = Claimed {
        claim: Claim::Other,
        ..outside
    };
    assert_eq!(
        look(&asking.proofs, &of_no_means, Timestamp(0)).identity,
        Identity::Impostor
    );
    let inside = Claimed {
        by_policy: Identity::Verified,
        ..outside
    };
    let found = look(&asking.proofs, &inside, Timestamp(0));
    assert_eq!(
        (found.identity, found.proof),
        (Identity::Verified, Proof::Networks)
    );
}

#[test]
fn a_shrunken_list_is_believed_only_when_the_former_is_old() {
    let world = world(9);
    world.publish(
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
        };
        world.proofs.lists.take(list, fetched, Timestamp(now))
    };
    assert_eq!(
        take("192.0.2.0/26\n192.0.2.64/26", DAY),
        Err(Disbelief::Shrunk { now: 2, before: 5 })
    );
    assert_eq!(take("", DAY), Err(Disbelief::NotAList(ListError::Empty)));
    assert_eq!(
        world.check("gptbot", OUTSIDE, DAY),
        (Identity::Verified, Proof::List)
    );
    let change = take("192.0.2.0/26", 8 * DAY).expect("believed");
    assert_eq!(
        (change.added.len(), change.removed.len(), change.networks),
        (0, 4, 1)
    );
}

#[test]
fn a_flood_of_made_up_addresses_stays_bounded_and_is_counted() {
    let world = world(100);
    let begin = std::time::Instant::now();
    for address in 0..200_000u32 {
        let claimed = Claimed {
            address: Some(IpAddr::V4((0x0b00_0000 + address).into())),
            ..claimed("bingbot", OUTSIDE)
        };
        assert_eq!(
            look(&world.proofs, &claimed, Timestamp(0)).identity,
            Identity::Pending
        );
    }
    assert_eq!(
        (world.asked(), world.proofs.names.count()),
        (world.room, world.room),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(world.proofs.left_out(), 199_900);
}
