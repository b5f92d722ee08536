//! Tests of what crawlgate still knows after a restart: on which hosts it observes crawlers, and
//! which versions of robots.txt they were served there. If crawlgate was not stopped for long, it
//! also knows since when it observes each host.

use super::*;
use crate::facts::HostObservation;
use crate::ledger::ProxiedFetch;
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
        let mut world = observed_for_two_days(Some(directory.path()));
        world.request_kind(4, 0, "/");
        world.tick();
        world.end_run(in_order);
        world.now += away;
        world.start_run();
        assert_eq!(
            world.request_kind(0, 0, "/always/").0,
            kind,
            "in order: {in_order}, {away} s"
        );
    }
}

#[test]
fn visits_are_the_same_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = observed_for_two_days(Some(directory.path()));
    for version in [0, 1, 2, 3] {
        world.publish(version);
        for crawler in 0..5 {
            world.fetch(crawler, version % 2);
        }
        world.now += HOUR;
    }
    let visits = world.ledger.crawler_copies("shop");
    assert_eq!(
        visits
            .iter()
            .filter(|visits| visits.host == "a.example")
            .count(),
        4,
        "two share a cache"
    );
    world.restart(true);
    assert_eq!(world.ledger.crawler_copies("shop"), visits);
}

#[test]
fn path_without_a_cache_is_known_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = observed_for_two_days(Some(directory.path()));
    let path = ProxyPath::from_addresses([[10, 0, 0, 1].into()]);
    world.request_kind(4, 0, "/");
    for id in ["bingbot", "gptbot"] {
        assert!(!world.ledger.is_path_uncached(b"a.example", path));
        let claim = Claim::Known(Registry::builtin().find(id).expect(id));
        let fetch = ProxiedFetch { claim, path };
        world.ledger.record_fetch_path(
            Registry::builtin(),
            &world.entry,
            b"a.example",
            fetch,
            world.moment().now,
        );
    }
    for in_order in [true, false] {
        world.tick();
        world.restart(in_order);
        assert!(
            world.ledger.is_path_uncached(b"a.example", path)
                && !world.ledger.is_path_uncached(b"b.example", path)
        );
    }
}

#[test]
fn dropped_version_counts_as_unknown_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = observed_for_two_days(Some(directory.path()));
    for number in 0..66 {
        world.publish_site(site_with_rules(&format!("disallow: [/{number}/]"), ""));
        world.fetch(0, 0);
    }
    world.publish_site(site_with_rules("disallow: [/always/]", ""));
    for in_order in [true, false] {
        world.tick();
        world.restart(in_order);
        assert_eq!(world.request_kind(0, 0, "/always/").0, Kind::StaleCopy);
    }
}

/// The hosts that the state store knows.
fn stored_observations(directory: &Path) -> Vec<HostObservation> {
    let now = Timestamp(1_100 * DAY);
    let opened = StateStore::open(
        Some(directory),
        Arc::new(move || Moment {
            now,
            monotonic: Duration::ZERO,
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
    let mut world = LedgerWorld::new(Some(directory.path()), 0, 1_000 * DAY);
    let serve = |world: &LedgerWorld, host: &str| {
        let claim = Registry::builtin().identify(user_agent(0).as_bytes());
        world.ledger.record_served(
            Registry::builtin(),
            &world.entry,
            host.as_bytes(),
            claim,
            world.wall_time(),
        );
    };
    for made_up in 0..20_000 {
        serve(&world, &format!("made-up-{made_up}.example"));
    }
    world.tick();
    world.end_run(false);
    assert_eq!(stored_observations(directory.path()).len(), 0);
    world.start_run();
    serve(&world, "real.example");
    world.now += 61;
    serve(&world, "real.example");
    world.now += 1;
    world.tick();
    world.end_run(false);
    let hosts = stored_observations(directory.path());
    assert_eq!(
        hosts
            .iter()
            .map(|host| host.host.as_str())
            .collect::<Vec<_>>(),
        ["real.example"]
    );
    world.start_run();
    for made_up in 0..20_000 {
        serve(&world, &format!("made-up-{made_up}.example"));
        world.now += 1;
    }
    world.tick();
    world.end_run(false);
    assert_eq!(stored_observations(directory.path()).len(), 0);
}

#[test]
fn gap_does_not_shorten_a_removed_cache() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = observed_for_two_days(Some(directory.path()));
    world.fetch(0, 0);
    let without_cache = world.entry.site.clone();
    for (generation, site) in [
        (
            1,
            site_with_rules("disallow: [/p1/]", ", behind_cache: 20h"),
        ),
        (2, without_cache),
    ] {
        world.entry.site = site;
        world.ledger.tick(
            &Snapshot::new(vec![world.entry.clone()], generation),
            world.moment(),
        );
    }
    // Until its time is over, the cache hands out what it has.
    let since = |world: &LedgerWorld| {
        world
            .ledger
            .crawler_copies("shop")
            .iter()
            .map(|visits| visits.observed_since)
            .max()
    };
    let cache_is_over = Timestamp(world.wall_time().0 + 20 * HOUR);
    assert_eq!(since(&world), Some(cache_is_over));
    world.end_run(true);
    world.now += 2 * HOUR;
    world.start_run();
    assert_eq!(since(&world), Some(cache_is_over));
    // By a clock that was set back meanwhile it waits as long.
    world.end_run(true);
    world.set = -10 * DAY;
    world.start_run();
    assert_eq!(since(&world), Some(Timestamp(cache_is_over.0 - 10 * DAY)));
}

#[test]
fn copy_from_a_clock_ahead_counts_from_now() {
    for restart in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = LedgerWorld::new(Some(directory.path()), 0, 1_000 * DAY);
        world.set = 10 * DAY;
        world.tick();
        world.fetch(0, 0);
        world.request_kind(4, 0, "/");
        if restart {
            world.end_run(true);
        }
        world.set = 0;
        if restart {
            world.start_run();
        } else {
            world.tick();
        }
        for visits in world.ledger.crawler_copies("shop") {
            assert!(
                visits
                    .versions
                    .iter()
                    .all(|visit| visit.at <= world.wall_time()),
                "{visits:?}"
            );
        }
        world.pass_hours_in_use(2);
        world.publish(15);
        world.pass_hours_in_use(21);
        assert_eq!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::StaleCopy,
            "restart: {restart}"
        );
        world.pass_hours_in_use(5);
        assert_eq!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::Violation,
            "restart: {restart}"
        );
    }
}
