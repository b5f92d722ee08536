//! What a host published when: sites that are renamed, hosts that move, and clocks that are set.

use super::*;
use crate::crawlers::Registry;
use crate::policy::Version;
use crate::policy::decode::parse_host;
use crate::policy::host_history::{ClockJump, HostHistories, HostHistory, Unavailability};
use crate::policy::model::HostPattern;
use crate::policy::site::HostIndex;
use crate::time::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const WEEK: Duration = Duration::from_secs(7 * 86_400);

fn body(number: usize) -> Vec<u8> {
    format!("User-agent: *\nDisallow: /{number}/\n").into_bytes()
}

fn version(number: usize) -> Published {
    Published::Version(Version::of(&body(number)))
}

/// A site: its name, its hosts, what it publishes.
type Site = (&'static str, Vec<&'static str>, Published);

struct World {
    log: PublicationLog,
    versions: VersionStore,
    /// What each site says of the time before crawlgate.
    declared: Option<Declared>,
}

impl World {
    fn new() -> World {
        let mut versions = VersionStore::default();
        for number in 0..400 {
            versions.insert(Version::of(&body(number)), body(number).into());
        }
        World {
            log: PublicationLog::default(),
            versions,
            declared: None,
        }
    }

    fn record(&mut self, at: i64, sites: &[Site]) -> bool {
        let parse = |host: &&str| parse_host(host).expect("a host");
        let hosts: Vec<Vec<HostPattern>> = sites
            .iter()
            .map(|(_, hosts, _)| hosts.iter().map(parse).collect())
            .collect();
        let current = sites
            .iter()
            .zip(&hosts)
            .map(|((site, _, published), hosts)| Current {
                site,
                hosts: hosts.iter().collect(),
                published: *published,
                identities: 1,
                tells: true,
                declared: self.declared,
            });
        self.log.record(&current.collect::<Vec<_>>(), Timestamp(at))
    }

    fn histories(&mut self, now: i64) -> HostHistories {
        let horizon = Horizon {
            longest: WEEK,
            now: Timestamp(now),
        };
        HostHistories::new(self.log.histories_beside(
            &[],
            &mut self.versions,
            Registry::builtin(),
            horizon,
        ))
    }

    fn superseded(&mut self, host: &str, now: i64) -> Vec<(Version, i64)> {
        let histories = self.histories(now);
        let superseded = &histories.of(host.as_bytes()).superseded;
        superseded
            .iter()
            .map(|held| (held.parsed.version, held.superseded_at.0))
            .collect()
    }
}

fn id(number: usize) -> Version {
    Version::of(&body(number))
}

#[test]
fn renamed_site_keeps_the_history_of_its_hosts() {
    let mut world = World::new();
    world.record(0, &[("a", vec!["x.example"], version(1))]);
    world.record(10, &[("a", vec!["x.example"], version(2))]);
    assert!(
        !world.record(15, &[("a", vec!["x.example"], version(2))]),
        "nothing changed"
    );
    world.record(20, &[("b", vec!["x.example"], version(3))]);
    assert_eq!(
        world.superseded("x.example", 30),
        [(id(2), 20), (id(1), 10)]
    );
    assert_eq!(world.superseded("y.example", 30), []);
    let histories = world.histories(30);
    let history = histories.of(b"X.example:8080");
    assert_eq!(
        (history.since, history.moved_at),
        (Timestamp(20), Some(Timestamp(20)))
    );
    assert_eq!(world.log.in_force_since("b"), Some(Timestamp(20)));
}

#[test]
fn closest_pattern_counts_and_no_other() {
    let mut world = World::new();
    let wide = |number| ("wide", vec!["*.example"], version(number));
    world.record(0, &[wide(1), ("others", vec![], version(5))]);
    world.record(10, &[wide(2), ("near", vec!["x.example"], version(3))]);
    world.record(20, &[wide(4), ("near", vec!["x.example"], version(3))]);
    assert_eq!(world.superseded("x.example", 30), [(id(1), 10)]);
    assert_eq!(
        world.superseded("y.example", 30),
        [(id(2), 20), (id(1), 10)]
    );
    assert_eq!(world.superseded("example", 30), [(id(5), 10)]);
}

#[test]
fn two_versions_within_a_second_are_both_known_and_no_date_tells_them_apart() {
    let mut world = World::new();
    for number in 1..=3 {
        world.record(5, &[("a", vec!["x.example"], version(number))]);
    }
    assert_eq!(world.superseded("x.example", 5), [(id(2), 5), (id(1), 5)]);
    assert!(!world.histories(5).of(b"x.example").is_told_by_its_date);
    world.record(6, &[("a", vec!["x.example"], version(4))]);
    assert!(world.histories(6).of(b"x.example").is_told_by_its_date);
}

#[test]
fn clock_set_back_leaves_no_moment_to_come() {
    let mut world = World::new();
    world.record(1_000, &[("a", vec!["x.example"], version(1))]);
    world.record(100, &[("a", vec!["x.example"], version(2))]);
    assert_eq!(world.superseded("x.example", 100), [(id(1), 100)]);
    assert_eq!(
        world.histories(100).of(b"x.example").superseded[0].since,
        Timestamp(100)
    );
}

#[test]
fn clock_set_forward_makes_no_version_older() {
    const HOUR: i64 = 3_600;
    let mut world = World::new();
    let site = |published| [("a", vec!["x.example"], published)];
    world.record(0, &site(version(1)));
    world.record(2 * HOUR, &site(version(2)));
    let since = |world: &mut World, hour: i64| {
        world
            .histories(hour * HOUR)
            .of(b"x.example")
            .cached_since(DAY, Timestamp(hour * HOUR))
            .0
            / HOUR
    };
    // By two months at hour 3, which is longer than the log remembers.
    let by = 60 * 24;
    world
        .log
        .apply_clock_step(by * HOUR, Timestamp((3 + by) * HOUR));
    world.record((4 + by) * HOUR, &site(version(3)));
    assert_eq!(since(&mut world, 4 + by), 4 - 24);
    assert_eq!(
        world.superseded("x.example", (4 + by) * HOUR),
        [(id(2), (4 + by) * HOUR), (id(1), 2 * HOUR)]
    );
    assert_eq!(
        since(&mut world, 3 + by + 24),
        3,
        "up to the moment of the jump"
    );
    assert_eq!(
        since(&mut world, 3 + by + 25),
        4 + by,
        "all of the window came after the jump"
    );
    // A window before the jump is none of its concern.
    assert_eq!(since(&mut world, 2 + by), 2 + by - 24);
    // Set back by a part of it, and then by more than there is.
    world
        .log
        .apply_clock_step(-10 * HOUR, Timestamp((5 + by - 10) * HOUR));
    assert_eq!(world.log.jumped().as_secs() as i64, (by - 10) * HOUR);
    world.record((5 + by - 10) * HOUR, &site(version(4)));
    assert_eq!(since(&mut world, 6 + by - 10), 6 - 24);
    world
        .log
        .apply_clock_step(-2 * by * HOUR, Timestamp(6 * HOUR));
    assert_eq!(
        (world.log.jumped(), since(&mut world, 30)),
        (Duration::ZERO, 6)
    );
}

#[test]
fn clock_set_forward_too_often_counts_as_one_jump() {
    let mut log = PublicationLog::default();
    for time in 1..=100 {
        log.apply_clock_step(10, Timestamp(time * 1_000));
    }
    assert_eq!(
        (log.jumps.len(), log.jumped()),
        (64, Duration::from_secs(1_000))
    );
    assert_eq!(
        (log.jumps[0].at, log.jumps[63].at),
        (Timestamp(100_000), Timestamp(37_000))
    );
}

#[test]
fn span_of_503_within_the_window_lengthens_it_and_keeps_last_modified() {
    const HOUR: i64 = 3_600;
    let mut world = World::new();
    let site = |published| [("a", vec!["x.example"], published)];
    world.record(0, &site(version(1)));
    world.record(20 * HOUR, &site(Published::Unavailable));
    world.record(22 * HOUR, &site(version(1)));
    let since = |world: &mut World, hour: i64| {
        world
            .histories(hour * HOUR)
            .of(b"x.example")
            .cached_since(DAY, Timestamp(hour * HOUR))
            .0
            / HOUR
    };
    assert_eq!(since(&mut world, 21), -4, "the window before the 503 began");
    assert_eq!(
        since(&mut world, 46),
        -4,
        "a crawler that heard it at its end may use its copy for a day"
    );
    assert_eq!(since(&mut world, 47), 23);
    assert_eq!(
        world.histories(48 * HOUR).of(b"x.example").since,
        Timestamp(0)
    );
    // Of two spans the earlier one counts where its end is within the lengthened window.
    world.record(45 * HOUR, &site(Published::Unavailable));
    world.record(46 * HOUR, &site(version(1)));
    assert_eq!(since(&mut world, 69), -4);
}

#[test]
fn versions_beyond_a_bound_are_unknown() {
    let mut world = World::new();
    for number in 0..=65 {
        world.record(number as i64, &[("a", vec!["x.example"], version(number))]);
    }
    let histories = world.histories(100);
    let history = histories.of(b"x.example");
    assert_eq!(
        (history.superseded.len(), history.unknown_until),
        (64, Some(Timestamp(1)))
    );
    // Beyond the bound of the log, too.
    for number in 66..400 {
        world.record(number as i64, &[("a", vec!["x.example"], version(number))]);
    }
    let histories = world.histories(400);
    let history = histories.of(b"x.example");
    assert_eq!(
        (history.superseded.len(), history.unknown_until),
        (64, Some(Timestamp(399 - 64)))
    );
    assert!(world.log.publications.len() <= 257);
    // A 503 within what became unknown still lengthens the window.
    assert!(history.unavailable.is_empty());
    let mut world = World::new();
    world.record(0, &[("a", vec!["x.example"], Published::Unavailable)]);
    for number in 1..300 {
        world.record(number as i64, &[("a", vec!["x.example"], version(number))]);
    }
    let unavailable = world.histories(300).of(b"x.example").unavailable.clone();
    assert_eq!(
        unavailable
            .iter()
            .map(|span| span.since)
            .collect::<Vec<_>>(),
        [Timestamp(0)]
    );
    // A version whose bytes are lost is unknown, too.
    let mut world = World::new();
    for number in 0..400 {
        world.record(number as i64, &[("a", vec!["x.example"], version(number))]);
    }
    world.versions.keep_only(&BTreeSet::from([id(398)]));
    let histories = world.histories(400);
    assert_eq!(
        histories.of(b"x.example").unknown_until,
        Some(Timestamp(398))
    );
}

/// Whether the history of a host rests on the word of the operator.
fn is_declared(world: &mut World, host: &str, now: i64) -> bool {
    world.histories(now).of(host.as_bytes()).is_declared
}

#[test]
fn a_declared_version_ends_with_the_first_publication() {
    let mut world = World::new();
    world.declared = Some(Declared::Version(id(9)));
    world.record(100, &[("a", vec!["x.example"], Published::Unavailable)]);
    world.record(101, &[("a", vec!["x.example"], version(1))]);
    world.record(200, &[("a", vec!["x.example"], version(2))]);
    assert_eq!(
        world.superseded("x.example", 300),
        [(id(1), 200), (id(9), 100)]
    );
    assert!(is_declared(&mut world, "x.example", 300));
    assert!(
        !is_declared(&mut world, "other.example", 300),
        "no site has the host"
    );
    // A version that was published again later is in the list once, with the later end.
    world.record(400, &[("a", vec!["x.example"], version(9))]);
    world.record(500, &[("a", vec!["x.example"], version(3))]);
    assert_eq!(
        world.superseded("x.example", 600),
        [(id(9), 500), (id(2), 400), (id(1), 200)]
    );
    world.declared = None;
    assert!(
        world.record(600, &[("a", vec!["x.example"], version(3))]),
        "the word is taken back"
    );
    assert!(!is_declared(&mut world, "x.example", 700));
}

#[test]
fn a_declared_version_says_nothing_after_a_move_or_a_gap() {
    let begin = |now: i64| {
        let mut world = World::new();
        world.declared = Some(Declared::Version(id(9)));
        world.record(now, &[("a", vec!["x.example"], version(1))]);
        world
    };
    let mut moved = begin(100);
    moved.record(200, &[("b", vec!["x.example"], version(2))]);
    assert!(!is_declared(&mut moved, "x.example", 300));
    assert_eq!(moved.superseded("x.example", 300), [(id(1), 200)]);

    let mut first = begin(100);
    first.log.set_broken(Timestamp(100));
    assert!(
        is_declared(&mut first, "x.example", 300),
        "a gap before the first publication is what the word is about"
    );
    first.log.set_broken(Timestamp(101));
    assert!(!is_declared(&mut first, "x.example", 300));

    let mut lost = begin(100);
    lost.log.set_lost(Timestamp(100));
    assert!(!is_declared(&mut lost, "x.example", 300));
}

#[test]
fn the_origins_file_is_declared_as_it_was_first_read() {
    let mut world = World::new();
    let publish = |world: &mut World, at: i64, first: Option<Version>, published: usize| {
        world.declared = Some(Declared::Origin(first));
        world.record(at, &[("a", vec!["x.example"], version(published))]);
    };
    publish(&mut world, 100, None, 1);
    assert!(
        !is_declared(&mut world, "x.example", 100),
        "nothing is known of it"
    );
    publish(&mut world, 101, Some(id(7)), 2);
    publish(&mut world, 200, Some(id(8)), 3);
    publish(&mut world, 201, None, 3);
    assert_eq!(
        world.superseded("x.example", 300),
        [(id(2), 200), (id(1), 101), (id(7), 100)]
    );
    assert!(
        world.log.versions_since(Timestamp(1_000)).contains(&id(7)),
        "its bytes are still wanted"
    );
}

#[test]
fn a_declared_version_whose_bytes_are_lost_is_unknown() {
    let mut world = World::new();
    world.declared = Some(Declared::Version(id(9)));
    world.record(100, &[("a", vec!["x.example"], version(1))]);
    world.versions.keep_only(&BTreeSet::from([id(1)]));
    assert_eq!(
        world.histories(200).of(b"x.example").unknown_until,
        Some(Timestamp(100))
    );
}

#[test]
fn five_thousand_hosts_of_one_site_share_one_history() {
    let hosts: Vec<HostPattern> = (0..5_000)
        .map(|number| parse_host(&format!("h{number}.example")).expect("a host"))
        .collect();
    let mut world = World::new();
    for number in 0..64 {
        let published = version(number);
        let current = Current {
            site: "a",
            hosts: hosts.iter().collect(),
            published,
            identities: 1,
            tells: false,
            declared: None,
        };
        world.log.record(&[current], Timestamp(number as i64));
    }
    let histories = world.histories(100);
    assert!(std::ptr::eq(
        histories.of(b"h1.example"),
        histories.of(b"h4999.example")
    ));
    assert_eq!(histories.of(b"h77.example").superseded.len(), 63);
}

/// What requests see at each moment, kept whole: for each change which site a host has and what
/// that publishes.
fn naive(changes: &[Vec<Site>], host: &str) -> Vec<(usize, Option<(&'static str, Published)>)> {
    let at = |sites: &Vec<Site>| {
        let parse = |host: &&str| parse_host(host).expect("a host");
        let hosts: Vec<Vec<HostPattern>> = sites
            .iter()
            .map(|(_, hosts, _)| hosts.iter().map(parse).collect())
            .collect();
        let found = HostIndex::new(&hosts).find(host.as_bytes())?;
        Some((sites[found].0, sites[found].2))
    };
    changes
        .iter()
        .enumerate()
        .map(|(number, sites)| (number, at(sites)))
        .collect()
}

const PATTERNS: [&str; 8] = [
    "a.example",
    "b.a.example",
    "*.a.example",
    "*.example",
    "a.example:8443",
    "*.example:8443",
    "*.b.a.example",
    "c.test",
];
const HOSTS: [&str; 9] = [
    "a.example",
    "b.a.example",
    "c.a.example",
    "x.example",
    "a.example:8443",
    "x.example:8443",
    "d.b.a.example",
    "c.test",
    "other.test",
];

fn a_change() -> impl Strategy<Value = Vec<Site>> {
    let site = (
        prop::sample::subsequence(PATTERNS.to_vec(), 0..4),
        0usize..5,
    );
    prop::collection::vec(site, 1..4).prop_map(|sites| {
        let names = ["one", "two", "three"];
        let mut taken = BTreeSet::new();
        let mut all = Vec::new();
        for ((mut hosts, number), name) in sites.into_iter().zip(names) {
            let is_for_others = hosts.is_empty();
            hosts.retain(|host| taken.insert(*host));
            if hosts.is_empty() && !(is_for_others && taken.insert("")) {
                continue;
            }
            let published = if number == 0 {
                Published::Unavailable
            } else {
                version(number)
            };
            all.push((name, hosts, published));
        }
        all
    })
}

proptest! {
    #[test]
    fn history_by_host_equals_what_requests_saw(changes in prop::collection::vec(a_change(), 1..12)) {
        let mut world = World::new();
        for (at, sites) in changes.iter().enumerate() {
            world.record(at as i64, sites);
        }
        let now = changes.len() as i64;
        let histories = world.histories(now);
        for host in HOSTS {
            let saw = naive(&changes, host);
            let history = histories.of(host.as_bytes());
            let current = match saw.last().and_then(|(_, seen)| *seen) {
                Some((_, Published::Version(version))) => Some(version),
                _ => None,
            };
            let until = |version: Version| {
                let is = |seen: &Option<(&str, Published)>| seen.is_some_and(|(_, seen)| seen == Published::Version(version));
                let (last, seen) = saw.iter().rev().find(|(_, seen)| is(seen))?;
                // A span of the same site in which robots.txt answered 503 supersedes nothing.
                let unavailable = seen.map(|(site, _)| (site, Published::Unavailable));
                let through = saw[last + 1..].iter().take_while(|(_, seen)| *seen == unavailable).count();
                Some((last + 1 + through) as i64)
            };
            let mut expected: Vec<(i64, Version)> =
                (1..5).map(id).filter(|id| Some(*id) != current).filter_map(|id| Some((until(id)?, id))).collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            let known: Vec<(i64, Version)> =
                history.superseded.iter().map(|held| (held.superseded_at.0, held.parsed.version)).collect();
            prop_assert_eq!(&known, &expected, "{} of {:?}", host, changes);
            prop_assert_eq!(history.unknown_until, None);
            let answered_503 = |at: i64| history.unavailable.iter().any(|span| span.since.0 <= at && span.until.is_none_or(|until| at < until.0));
            for (at, seen) in &saw {
                let unavailable = seen.is_some_and(|(_, seen)| seen == Published::Unavailable);
                prop_assert_eq!(answered_503(*at as i64), unavailable, "{} at {} of {:?}", host, at, changes);
            }
        }
    }
}

/// What counts by [`HostHistory::cached_since`] counts to the end that
/// [`HostHistory::cached_until`] says, and no longer.
#[test]
fn cached_until_is_the_reverse_of_cached_since() {
    let window = Duration::from_secs(10);
    let span = |since, until| Unavailability {
        since: Timestamp(since),
        until: Some(Timestamp(until)),
    };
    let jump = |at, by| ClockJump {
        at: Timestamp(at),
        by: Duration::from_secs(by),
    };
    let histories = [
        (vec![], vec![]),
        (vec![span(60, 63), span(55, 58)], vec![]),
        (vec![span(48, 70), span(20, 22)], vec![]),
        (vec![], vec![jump(60, 4), jump(52, 30)]),
        (vec![span(61, 62)], vec![jump(58, 25)]),
    ];
    for (unavailable, jumps) in histories {
        let history = HostHistory {
            unavailable,
            jumps,
            ..HostHistory::new(Timestamp(0))
        };
        for (served, now) in
            (0..75).flat_map(|served| (70..120).map(move |now| (Timestamp(served), Timestamp(now))))
        {
            let counts = served >= history.cached_since(window, now);
            assert_eq!(
                counts,
                now <= history.cached_until(window, served, now),
                "{served:?} {now:?} {history:?}"
            );
        }
    }
}
