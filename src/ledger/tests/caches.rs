//! Tests of which robots.txt a crawler may have cached, in rare situations: a cache in front of
//! crawlgate is removed, a cache gets a 503, a bot becomes a known crawler at a restart, the clock
//! is set. A random test combines such events ([`CacheEvent`]).

use super::*;
use crate::policy::publication_history::UnavailableSpan;

/// Versions 0 (all open), 15 (all closed) and 1, without a cache and behind two.
static BEHIND: LazyLock<Vec<Vec<Arc<Site>>>> = LazyLock::new(|| {
    let rules = ["", "/p0/, /p1/, /p2/, /p3/, ", "/p0/, "];
    let behind = ["", ", behind_cache: 1h", ", behind_cache: 6h"];
    let sites = |behind: &&str| {
        rules
            .iter()
            .map(|closed| site_with_rules(&format!("disallow: [{closed}/always/]"), behind))
            .collect::<Vec<_>>()
    };
    behind.iter().map(sites).collect()
});

const CACHE: [i64; 3] = [0, HOUR, 6 * HOUR];

/// Whether a version closes a path.
fn closes(version: usize, path: usize) -> bool {
    [false, true, path == 0][version]
}

impl LedgerWorld {
    /// The owner changes the policy, and what is before crawlgate.
    fn publish_behind(&mut self, behind: usize, version: usize) {
        self.publish_site(BEHIND[behind][version].clone());
        self.ledger
            .apply_snapshot(&self.snapshot(), self.wall_time());
    }

    /// robots.txt answers 503 at this moment.
    fn answer_503(&mut self) {
        let now = self.wall_time();
        self.history.unavailable.insert(
            0,
            UnavailableSpan {
                since: now,
                until: Some(now),
            },
        );
    }

    /// Time in which the host is in use.
    pub fn pass_hours_in_use(&mut self, hours: i64) {
        for _ in 0..hours {
            self.now += HOUR;
            self.request_kind(4, 0, "/");
            self.tick();
        }
    }

    /// Ends at once, and starts again.
    pub fn restart(&mut self, in_order: bool) {
        self.end_run(in_order);
        self.start_run();
    }
}

/// Behind a cache from the beginning, and observed for two days.
fn world_behind_a_cache(state: Option<&Path>) -> LedgerWorld {
    let mut world = LedgerWorld::new(state, 0, 1_000 * DAY);
    world.publish_behind(1, 0);
    world.pass_hours_in_use(48);
    world
}

#[test]
fn copy_of_a_removed_cache_counts_for_its_time() {
    for restart in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = world_behind_a_cache(Some(directory.path()));
        // bingbot has the open version from the cache, unknown to crawlgate. Then the owner removes
        // the cache.
        if restart {
            world.end_run(true);
            world.entry.site = BEHIND[0][0].clone();
            world.start_run();
        }
        world.publish_behind(0, 1);
        world.pass_hours_in_use(20);
        assert_ne!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::Violation,
            "restart: {restart}"
        );
        // What the cache had last it may have handed out an hour later.
        world.pass_hours_in_use(4);
        assert_ne!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::Violation,
            "restart: {restart}"
        );
        world.pass_hours_in_use(2);
        assert_eq!(
            world.request_kind(0, 0, "/p1/"),
            (Kind::Violation, true),
            "restart: {restart}"
        );
    }
}

#[test]
fn clock_that_is_set_does_not_shorten_a_removed_cache() {
    for (set, restart) in [(30 * HOUR, false), (-30 * HOUR, false), (-30 * HOUR, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = world_behind_a_cache(Some(directory.path()));
        world.publish_behind(2, 0);
        world.pass_hours_in_use(48);
        world.publish_behind(0, 1);
        if restart {
            world.end_run(true);
            world.set = set;
            world.start_run();
        } else {
            world.set = set;
            world.tick();
        }
        world.pass_hours_in_use(29);
        assert_ne!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::Violation,
            "set by {set}, restart: {restart}"
        );
        world.pass_hours_in_use(2);
        assert_eq!(
            world.request_kind(0, 0, "/p1/"),
            (Kind::Violation, true),
            "set by {set}, restart: {restart}"
        );
    }
}

#[test]
fn cached_copy_counts_for_longer_after_a_503() {
    let mut world = world_behind_a_cache(None);
    world.publish_behind(1, 1);
    world.pass_hours_in_use(20);
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::StaleCopy);
    // robots.txt is paused: its copy is still good (RFC 9309 section 2.4).
    world.answer_503();
    world.pass_hours_in_use(20);
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::StaleCopy);
    world.pass_hours_in_use(6);
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::Violation);
}

#[test]
fn copy_from_before_counts_for_longer_after_a_503() {
    let mut world = LedgerWorld::new(None, 15, 1_000 * DAY);
    world.request_kind(4, 0, "/");
    world.pass_hours_in_use(20);
    world.answer_503();
    world.pass_hours_in_use(23);
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::Unproven);
    world.pass_hours_in_use(2);
    assert_eq!(world.request_kind(0, 0, "/p1/"), (Kind::Violation, true));
}

#[test]
fn every_crawler_may_have_received_the_503() {
    let mut world = observed_for_two_days(None);
    world.fetch(0, 0);
    world.publish(15);
    world.pass_hours_in_use(23);
    world.answer_503();
    world.pass_hours_in_use(23);
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::StaleCopy);
    assert_eq!(
        world.request_kind(1, 0, "/p1/"),
        (Kind::Violation, true),
        "it was served nothing here"
    );
    world.pass_hours_in_use(2);
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::Violation);
}

/// The definition to the second: a copy is good for the whole of its time, the last second
/// included.
#[test]
fn copy_counts_until_its_last_second() {
    // From another server: the observation began in the same second.
    let mut world = LedgerWorld::new(None, 15, 1_000 * DAY);
    for _ in 0..24 {
        world.request_kind(4, 0, "/");
        world.now += HOUR;
    }
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::Unproven);
    world.now += 1;
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::Violation);
    // From us, under another name that second.
    let mut world = observed_for_two_days(None);
    world.fetch(4, 0);
    world.history.identity_epoch = world.wall_time();
    world.publish(15);
    for _ in 0..24 {
        assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::StaleCopy);
        world.now += HOUR;
    }
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::StaleCopy);
    world.now += 1;
    assert_eq!(world.request_kind(0, 0, "/p1/").0, Kind::Violation);
}

#[test]
fn bot_that_gets_a_name_around_a_restart_keeps_its_copy() {
    let names = |token: &str| {
        let rules = format!("disallow: [/p1/] }}, {{ agents: [{token}], disallow: [/p1/]");
        site_with_rules(&rules, "")
    };
    for in_order in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = observed_for_two_days(Some(directory.path()));
        world.request_kind(4, 0, "/");
        let housebot = Registry::builtin().identify(b"HouseBot/1.0");
        assert_eq!(housebot, Claim::UnknownBot);
        world.ledger.record_served(
            Registry::builtin(),
            &world.entry,
            b"a.example",
            housebot,
            world.wall_time(),
        );
        world.restart(true);
        // Its name comes, goes, and comes again, with a restart each time.
        for token in ["HouseBot", "OtherBot", "HouseBot"] {
            world.now += 5 * HOUR;
            world.publish_site(names(token));
            world.history.identity_epoch = world.wall_time();
            world.tick();
            world.restart(in_order);
            world.request_kind(4, 0, "/");
        }
        let claim = Registry::builtin().identify_on_site(b"HouseBot/1.0", &world.entry.site.tokens);
        assert!(matches!(claim, Claim::PolicyToken(_)));
        let snapshot = world.snapshot();
        let cached_versions = peek_cached_versions(&world, &snapshot, "HouseBot/1.0");
        let open = snapshot
            .history(b"a.example")
            .superseded
            .last()
            .expect("the first version")
            .parsed
            .version;
        assert!(
            cached_versions
                .superseded()
                .any(|version| version.parsed.version == open),
            "in order: {in_order}"
        );
    }
}

#[test]
fn clock_set_back_to_a_change_removes_no_copy() {
    for offset in -3..=3 {
        for restart in [false, true] {
            let directory = tempfile::tempdir().expect("a directory");
            let mut world = observed_for_two_days(Some(directory.path()));
            world.fetch(0, 0);
            world.pass_hours_in_use(10);
            world.publish(15);
            let changed = world.wall_time();
            world.pass_hours_in_use(5);
            if restart {
                world.end_run(true);
            }
            // To the second in which the version changed, or one beside it.
            world.set -= world.wall_time().0 - changed.0 + offset;
            if restart {
                world.start_run();
            } else {
                world.tick();
            }
            // It fetched 15 hours ago, whatever the clock says.
            for _ in 0..9 {
                let kind = world.request_kind(0, 0, "/p1/").0;
                assert!(
                    [Kind::StaleCopy, Kind::Unproven].contains(&kind),
                    "{kind:?}, {offset}, restart: {restart}"
                );
                world.pass_hours_in_use(1);
            }
        }
    }
}

/// What happens to a site that is behind a cache, and not.
#[derive(Clone, Debug)]
enum CacheEvent {
    Pass(i64),
    Reload {
        behind: usize,
        version: usize,
    },
    /// A crawler asks for robots.txt, of the cache if there is one.
    Fetch(usize),
    /// It asks, and hears 503.
    Pause(usize),
    Ask(usize, usize),
    Restart {
        in_order: bool,
        reload: Option<(usize, usize)>,
    },
    SetClock(i64),
    /// The host is with another site for a while, where everything is open.
    Away(i64),
}

fn any_cache_events() -> impl Strategy<Value = Vec<CacheEvent>> {
    let crawler = || prop_oneof![4 => Just(0usize), 1 => Just(3)];
    let event = prop_oneof![
        4 => (1i64..500).prop_map(CacheEvent::Pass),
        4 => (0usize..3, 0usize..3).prop_map(|(behind, version)| CacheEvent::Reload { behind, version }),
        3 => crawler().prop_map(CacheEvent::Fetch),
        3 => crawler().prop_map(CacheEvent::Pause),
        8 => (crawler(), 0usize..2).prop_map(|(crawler, path)| CacheEvent::Ask(crawler, path)),
        1 => (any::<bool>(), proptest::option::of((0usize..3, 0usize..3)))
            .prop_map(|(in_order, reload)| CacheEvent::Restart { in_order, reload }),
        1 => prop_oneof![9 => -4i64..=4, 1 => -40 * HOUR..40 * HOUR].prop_map(CacheEvent::SetClock),
        1 => prop_oneof![9 => Just(CacheEvent::Pass(1)), 1 => (0i64..300).prop_map(CacheEvent::Away)],
    ];
    proptest::collection::vec(event, 4..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The cache answers for as long as it may, with what it had at first, and it hands out what it
    /// has to anybody.
    #[test]
    fn obedient_crawler_is_no_violator_behind_changing_caches(
        first in (0usize..3, prop_oneof![3 => Just(0usize), 1 => 1usize..3]), events in any_cache_events()
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = LedgerWorld::new(Some(directory.path()), 0, 1_000 * DAY);
        let (mut behind, mut version) = first;
        world.publish_behind(behind, version);
        world.pass_hours_in_use(60);
        // What each crawler holds, and what the cache has: version and when it was fetched, by
        // the monotonic time.
        let mut copies: [Vec<(usize, i64)>; 4] = Default::default();
        let mut cache: Option<(usize, i64)> = (behind != 0).then_some((version, world.now));
        if behind != 0 {
            // Who came before did not come to us.
            copies.iter_mut().for_each(|copies| copies.push((version, world.now)));
        }
        for event in &events {
            match *event {
                CacheEvent::Pass(minutes) => {
                    world.now += minutes * 60;
                    world.tick();
                }
                CacheEvent::Reload { behind: before_us, version: new } => {
                    (behind, version) = (before_us, new);
                    world.publish_behind(behind, version);
                }
                CacheEvent::Fetch(crawler) => {
                    cache = cache.filter(|(_, at)| behind != 0 && world.now - at <= CACHE[behind]);
                    let copy = *cache.get_or_insert_with(|| {
                        world.fetch(crawler, 0);
                        (version, world.now)
                    });
                    copies[crawler].push((copy.0, world.now));
                }
                CacheEvent::Pause(crawler) => {
                    world.answer_503();
                    let window = CACHES[crawler].1;
                    for copy in copies[crawler].iter_mut().filter(|copy| world.now - copy.1 <= window) {
                        copy.1 = world.now;
                    }
                }
                CacheEvent::Ask(crawler, path) => {
                    let window = CACHES[crawler].1;
                    let allows = |(version, at): &(usize, i64)| world.now - at <= window && !closes(*version, path);
                    let allowed = copies[crawler].iter().any(allows);
                    let (kind, _) = world.request_kind(crawler, 0, &format!("/p{path}/"));
                    prop_assert!(!(allowed && kind == Kind::Violation), "{:?} {:?}", first, events);
                }
                CacheEvent::Restart { in_order, reload } => {
                    world.end_run(in_order);
                    world.now += 3;
                    if let Some((before_us, new)) = reload {
                        (behind, version) = (before_us, new);
                        world.publish_behind(behind, version);
                    }
                    world.start_run();
                }
                CacheEvent::SetClock(seconds) => world.set += seconds,
                CacheEvent::Away(minutes) => {
                    let here = world.snapshot();
                    world.ledger.apply_snapshot(&Snapshot::default(), world.wall_time());
                    for copies in &mut copies {
                        copies.push((0, world.now));
                    }
                    world.now += minutes * 60;
                    world.ledger.apply_snapshot(&here, world.wall_time());
                }
            }
        }
    }
}
