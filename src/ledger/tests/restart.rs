//! What the next start makes of a run: gaps, moments that lie ahead, and what the state store was
//! told.

use super::*;
use crate::facts::Observation;
use crate::ledger::ProxyFetch;
use crate::record::ProxyPath;

#[test]
fn observation_continues_after_short_gaps_only() {
    for (in_order, away, kind) in [
        (true, 55, Kind::Violation),
        (true, 65, Kind::Unproven),
        (false, 5, Kind::Violation),
        (false, 18, Kind::Violation),
        (false, 25, Kind::Unproven),
        (false, 55, Kind::Unproven),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = settled(Some(directory.path()));
        world.ask(4, 0, "/");
        world.tick();
        world.end(in_order);
        world.now += away;
        world.start();
        assert_eq!(
            world.ask(0, 0, "/always/").0,
            kind,
            "in order: {in_order}, {away} s"
        );
    }
}

#[test]
fn visits_are_the_same_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = settled(Some(directory.path()));
    for version in [0, 1, 2, 3] {
        world.publish(version);
        for crawler in 0..5 {
            world.fetch(crawler, version % 2);
        }
        world.now += HOUR;
    }
    let visits = world.ledger.copies("shop");
    assert_eq!(
        visits
            .iter()
            .filter(|visits| visits.host == "a.example")
            .count(),
        4,
        "two share a cache"
    );
    world.start_again(true);
    assert_eq!(world.ledger.copies("shop"), visits);
}

#[test]
fn path_without_a_cache_is_known_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = settled(Some(directory.path()));
    let path = ProxyPath::from_addresses([[10, 0, 0, 1].into()]);
    world.ask(4, 0, "/");
    for id in ["bingbot", "gptbot"] {
        assert!(!world.ledger.is_uncached(b"a.example", path));
        let claim = Claim::Known(Registry::builtin().find(id).expect(id));
        let fetch = ProxyFetch { claim, path };
        world.ledger.served_through(
            Registry::builtin(),
            &world.entry,
            b"a.example",
            fetch,
            world.moment().now,
        );
    }
    for in_order in [true, false] {
        world.tick();
        world.start_again(in_order);
        assert!(
            world.ledger.is_uncached(b"a.example", path)
                && !world.ledger.is_uncached(b"b.example", path)
        );
    }
}

#[test]
fn dropped_version_counts_as_unknown_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = settled(Some(directory.path()));
    for number in 0..66 {
        world.publish_site(site(&format!("disallow: [/{number}/]"), ""));
        world.fetch(0, 0);
    }
    world.publish_site(site("disallow: [/always/]", ""));
    for in_order in [true, false] {
        world.tick();
        world.start_again(in_order);
        assert_eq!(world.ask(0, 0, "/always/").0, Kind::StaleCopy);
    }
}

/// The hosts that the state store knows.
fn stored(directory: &Path) -> Vec<Observation> {
    let now = Timestamp(1_100 * DAY);
    let opened = StateStore::open(
        Some(directory),
        Arc::new(move || Moment {
            now,
            lived: Duration::ZERO,
        }),
    );
    opened
        .expect("a state directory")
        .1
        .facts
        .observations
        .into_iter()
        .map(|(_, observation)| observation)
        .collect()
}

#[test]
fn made_up_hosts_are_not_stored_and_forgotten_ones_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = World::new(Some(directory.path()), 0, 1_000 * DAY);
    let serve = |world: &World, host: &str| {
        let claim = Registry::builtin().identify(agent(0).as_bytes());
        world.ledger.served(
            Registry::builtin(),
            &world.entry,
            host.as_bytes(),
            claim,
            world.wall(),
        );
    };
    for made_up in 0..20_000 {
        serve(&world, &format!("made-up-{made_up}.example"));
    }
    world.tick();
    world.end(false);
    assert_eq!(stored(directory.path()).len(), 0);
    world.start();
    serve(&world, "real.example");
    world.now += 61;
    serve(&world, "real.example");
    world.now += 1;
    world.tick();
    world.end(false);
    let hosts = stored(directory.path());
    assert_eq!(
        hosts
            .iter()
            .map(|host| host.host.as_str())
            .collect::<Vec<_>>(),
        ["real.example"]
    );
    world.start();
    for made_up in 0..20_000 {
        serve(&world, &format!("made-up-{made_up}.example"));
        world.now += 1;
    }
    world.tick();
    world.end(false);
    assert_eq!(stored(directory.path()).len(), 0);
}

#[test]
fn gap_does_not_shorten_a_removed_cache() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = settled(Some(directory.path()));
    world.fetch(0, 0);
    let without_cache = world.entry.site.clone();
    for (generation, site) in [
        (1, site("disallow: [/p1/]", ", behind_cache: 20h")),
        (2, without_cache),
    ] {
        world.entry.site = site;
        world.ledger.tick(
            &Snapshot::new(vec![world.entry.clone()], generation),
            world.moment(),
        );
    }
    // Until its time is over, the cache hands out what it has.
    let since = |world: &World| {
        world
            .ledger
            .copies("shop")
            .iter()
            .map(|visits| visits.observed_since)
            .max()
    };
    let cache_is_over = Timestamp(world.wall().0 + 20 * HOUR);
    assert_eq!(since(&world), Some(cache_is_over));
    world.end(true);
    world.now += 2 * HOUR;
    world.start();
    assert_eq!(since(&world), Some(cache_is_over));
    // By a clock that was set back meanwhile it waits as long.
    world.end(true);
    world.set = -10 * DAY;
    world.start();
    assert_eq!(since(&world), Some(Timestamp(cache_is_over.0 - 10 * DAY)));
}

#[test]
fn copy_from_a_clock_ahead_counts_from_now() {
    for restart in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = World::new(Some(directory.path()), 0, 1_000 * DAY);
        world.set = 10 * DAY;
        world.tick();
        world.fetch(0, 0);
        world.ask(4, 0, "/");
        if restart {
            world.end(true);
        }
        world.set = 0;
        if restart {
            world.start();
        } else {
            world.tick();
        }
        for visits in world.ledger.copies("shop") {
            assert!(
                visits.versions.iter().all(|visit| visit.at <= world.wall()),
                "{visits:?}"
            );
        }
        world.live(2);
        world.publish(15);
        world.live(21);
        assert_eq!(
            world.ask(0, 0, "/p1/").0,
            Kind::StaleCopy,
            "restart: {restart}"
        );
        world.live(5);
        assert_eq!(
            world.ask(0, 0, "/p1/").0,
            Kind::Violation,
            "restart: {restart}"
        );
    }
}
