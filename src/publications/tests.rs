//! Tests of the publication log: which robots.txt a host published at which time, after sites were
//! renamed, hosts moved to another site, or the clock was set.

use super::*;
use crate::crawlers::Registry;
use crate::policy::RobotsVersionId;
use crate::policy::decode::parse_host;
use crate::policy::model::HostPattern;
use crate::policy::publication_history::{
    ClockJump, PublicationHistories, PublicationHistory, UnavailableSpan,
};
use crate::policy::site::HostIndex;
use crate::time::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const WEEK: Duration = Duration::from_secs(7 * 86_400);

fn robots_bytes(number: usize) -> Vec<u8> {
    format!("User-agent: *\nDisallow: /{number}/\n").into_bytes()
}

fn published_version(number: usize) -> PublishedRobots {
    PublishedRobots::Version(RobotsVersionId::from_body(&robots_bytes(number)))
}

/// A site: its name, its hosts, what it publishes.
type SiteRow = (&'static str, Vec<&'static str>, PublishedRobots);

struct TestLog {
    log: PublicationLog,
    versions: VersionStore,
    /// The version that all sites declare for the time before crawlgate.
    declared: Option<DeclaredPreviousRobots>,
}

impl TestLog {
    fn new() -> TestLog {
        let mut versions = VersionStore::default();
        for number in 0..400 {
            versions.insert(
                RobotsVersionId::from_body(&robots_bytes(number)),
                robots_bytes(number).into(),
            );
        }
        TestLog {
            log: PublicationLog::default(),
            versions,
            declared: None,
        }
    }

    fn record(&mut self, at: i64, sites: &[SiteRow]) -> bool {
        let parse = |host: &&str| parse_host(host).expect("a host");
        let hosts: Vec<Vec<HostPattern>> = sites
            .iter()
            .map(|(_, hosts, _)| hosts.iter().map(parse).collect())
            .collect();
        let current = sites
            .iter()
            .zip(&hosts)
            .map(|((site, _, published), hosts)| PublishedSite {
                site,
                hosts: hosts.iter().collect(),
                published: *published,
                identities: 1,
                has_page_tags: true,
                declared: self.declared,
            });
        self.log.record(&current.collect::<Vec<_>>(), Timestamp(at))
    }

    fn histories(&mut self, now: i64) -> PublicationHistories {
        let horizon = HistoryHorizon {
            max_cache_time: WEEK,
            now: Timestamp(now),
        };
        PublicationHistories::new(self.log.build_histories(
            &[],
            &mut self.versions,
            Registry::builtin(),
            horizon,
        ))
    }

    fn superseded(&mut self, host: &str, now: i64) -> Vec<(RobotsVersionId, i64)> {
        let histories = self.histories(now);
        let superseded = &histories.get(host.as_bytes()).superseded;
        superseded
            .iter()
            .map(|old| (old.parsed.version, old.superseded_at.0))
            .collect()
    }
}

fn version_id(number: usize) -> RobotsVersionId {
    RobotsVersionId::from_body(&robots_bytes(number))
}

#[test]
fn renamed_site_keeps_the_history_of_its_hosts() {
    let mut test_log = TestLog::new();
    test_log.record(0, &[("a", vec!["x.example"], published_version(1))]);
    test_log.record(10, &[("a", vec!["x.example"], published_version(2))]);
    assert!(
        !test_log.record(15, &[("a", vec!["x.example"], published_version(2))]),
        "nothing changed"
    );
    test_log.record(20, &[("b", vec!["x.example"], published_version(3))]);
    assert_eq!(
        test_log.superseded("x.example", 30),
        [(version_id(2), 20), (version_id(1), 10)]
    );
    assert_eq!(test_log.superseded("y.example", 30), []);
    let histories = test_log.histories(30);
    let history = histories.get(b"X.example:8080");
    assert_eq!(
        (history.since, history.moved_at),
        (Timestamp(20), Some(Timestamp(20)))
    );
    assert_eq!(test_log.log.in_force_since("b"), Some(Timestamp(20)));
}

#[test]
fn closest_pattern_counts_and_no_other() {
    let mut test_log = TestLog::new();
    let wide = |number| ("wide", vec!["*.example"], published_version(number));
    test_log.record(0, &[wide(1), ("others", vec![], published_version(5))]);
    test_log.record(
        10,
        &[wide(2), ("near", vec!["x.example"], published_version(3))],
    );
    test_log.record(
        20,
        &[wide(4), ("near", vec!["x.example"], published_version(3))],
    );
    assert_eq!(test_log.superseded("x.example", 30), [(version_id(1), 10)]);
    assert_eq!(
        test_log.superseded("y.example", 30),
        [(version_id(2), 20), (version_id(1), 10)]
    );
    assert_eq!(test_log.superseded("example", 30), [(version_id(5), 10)]);
}

#[test]
fn two_versions_in_one_second_have_no_unique_date() {
    let mut test_log = TestLog::new();
    for number in 1..=3 {
        test_log.record(5, &[("a", vec!["x.example"], published_version(number))]);
    }
    assert_eq!(
        test_log.superseded("x.example", 5),
        [(version_id(2), 5), (version_id(1), 5)]
    );
    assert!(!test_log.histories(5).get(b"x.example").has_unique_date);
    test_log.record(6, &[("a", vec!["x.example"], published_version(4))]);
    assert!(test_log.histories(6).get(b"x.example").has_unique_date);
}

#[test]
fn clock_set_back_leaves_no_time_in_the_future() {
    let mut test_log = TestLog::new();
    test_log.record(1_000, &[("a", vec!["x.example"], published_version(1))]);
    test_log.record(100, &[("a", vec!["x.example"], published_version(2))]);
    assert_eq!(
        test_log.superseded("x.example", 100),
        [(version_id(1), 100)]
    );
    assert_eq!(
        test_log.histories(100).get(b"x.example").superseded[0].since,
        Timestamp(100)
    );
}

#[test]
fn clock_set_forward_makes_no_version_older() {
    const HOUR: i64 = 3_600;
    let mut test_log = TestLog::new();
    let site = |published| [("a", vec!["x.example"], published)];
    test_log.record(0, &site(published_version(1)));
    test_log.record(2 * HOUR, &site(published_version(2)));
    let since = |test_log: &mut TestLog, hour: i64| {
        test_log
            .histories(hour * HOUR)
            .get(b"x.example")
            .cached_since(DAY, Timestamp(hour * HOUR))
            .0
            / HOUR
    };
    // By two months at hour 3, which is longer than the log remembers.
    let by = 60 * 24;
    test_log
        .log
        .apply_clock_step(by * HOUR, Timestamp((3 + by) * HOUR));
    test_log.record((4 + by) * HOUR, &site(published_version(3)));
    assert_eq!(since(&mut test_log, 4 + by), 4 - 24);
    assert_eq!(
        test_log.superseded("x.example", (4 + by) * HOUR),
        [(version_id(2), (4 + by) * HOUR), (version_id(1), 2 * HOUR)]
    );
    assert_eq!(
        since(&mut test_log, 3 + by + 24),
        3,
        "up to the moment of the jump"
    );
    assert_eq!(
        since(&mut test_log, 3 + by + 25),
        4 + by,
        "all of the window came after the jump"
    );
    // A window before the jump is none of its concern.
    assert_eq!(since(&mut test_log, 2 + by), 2 + by - 24);
    // Set back by a part of it, and then by more than there is.
    test_log
        .log
        .apply_clock_step(-10 * HOUR, Timestamp((5 + by - 10) * HOUR));
    assert_eq!(test_log.log.total_jump().as_secs() as i64, (by - 10) * HOUR);
    test_log.record((5 + by - 10) * HOUR, &site(published_version(4)));
    assert_eq!(since(&mut test_log, 6 + by - 10), 6 - 24);
    test_log
        .log
        .apply_clock_step(-2 * by * HOUR, Timestamp(6 * HOUR));
    assert_eq!(
        (test_log.log.total_jump(), since(&mut test_log, 30)),
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
        (log.jumps.len(), log.total_jump()),
        (64, Duration::from_secs(1_000))
    );
    assert_eq!(
        (log.jumps[0].at, log.jumps[63].at),
        (Timestamp(100_000), Timestamp(37_000))
    );
}

#[test]
fn unavailable_span_widens_the_window() {
    const HOUR: i64 = 3_600;
    let mut test_log = TestLog::new();
    let site = |published| [("a", vec!["x.example"], published)];
    test_log.record(0, &site(published_version(1)));
    test_log.record(20 * HOUR, &site(PublishedRobots::Unavailable));
    test_log.record(22 * HOUR, &site(published_version(1)));
    let since = |test_log: &mut TestLog, hour: i64| {
        test_log
            .histories(hour * HOUR)
            .get(b"x.example")
            .cached_since(DAY, Timestamp(hour * HOUR))
            .0
            / HOUR
    };
    assert_eq!(
        since(&mut test_log, 21),
        -4,
        "the window before the 503 began"
    );
    assert_eq!(
        since(&mut test_log, 46),
        -4,
        "a crawler that heard it at its end may use its copy for a day"
    );
    assert_eq!(since(&mut test_log, 47), 23);
    assert_eq!(
        test_log.histories(48 * HOUR).get(b"x.example").since,
        Timestamp(0)
    );
    // Of two spans the earlier one counts where its end is within the lengthened window.
    test_log.record(45 * HOUR, &site(PublishedRobots::Unavailable));
    test_log.record(46 * HOUR, &site(published_version(1)));
    assert_eq!(since(&mut test_log, 69), -4);
}

#[test]
fn versions_beyond_a_bound_are_unknown() {
    let mut test_log = TestLog::new();
    for number in 0..=65 {
        test_log.record(
            number as i64,
            &[("a", vec!["x.example"], published_version(number))],
        );
    }
    let histories = test_log.histories(100);
    let history = histories.get(b"x.example");
    assert_eq!(
        (history.superseded.len(), history.unknown_until),
        (64, Some(Timestamp(1)))
    );
    // Beyond the bound of the log, too.
    for number in 66..400 {
        test_log.record(
            number as i64,
            &[("a", vec!["x.example"], published_version(number))],
        );
    }
    let histories = test_log.histories(400);
    let history = histories.get(b"x.example");
    assert_eq!(
        (history.superseded.len(), history.unknown_until),
        (64, Some(Timestamp(399 - 64)))
    );
    assert!(test_log.log.publications.len() <= 257);
    // A 503 within what became unknown still lengthens the window.
    assert!(history.unavailable.is_empty());
    let mut test_log = TestLog::new();
    test_log.record(0, &[("a", vec!["x.example"], PublishedRobots::Unavailable)]);
    for number in 1..300 {
        test_log.record(
            number as i64,
            &[("a", vec!["x.example"], published_version(number))],
        );
    }
    let unavailable = test_log
        .histories(300)
        .get(b"x.example")
        .unavailable
        .clone();
    assert_eq!(
        unavailable
            .iter()
            .map(|span| span.since)
            .collect::<Vec<_>>(),
        [Timestamp(0)]
    );
    // A version whose bytes are lost is unknown, too.
    let mut test_log = TestLog::new();
    for number in 0..400 {
        test_log.record(
            number as i64,
            &[("a", vec!["x.example"], published_version(number))],
        );
    }
    test_log
        .versions
        .retain_only(&BTreeSet::from([version_id(398)]));
    let histories = test_log.histories(400);
    assert_eq!(
        histories.get(b"x.example").unknown_until,
        Some(Timestamp(398))
    );
}

/// Whether the history of a host rests on the word of the operator.
fn is_declared(test_log: &mut TestLog, host: &str, now: i64) -> bool {
    test_log.histories(now).get(host.as_bytes()).is_declared
}

#[test]
fn declared_version_ends_with_the_first_publication() {
    let mut test_log = TestLog::new();
    test_log.declared = Some(DeclaredPreviousRobots::Version(version_id(9)));
    test_log.record(
        100,
        &[("a", vec!["x.example"], PublishedRobots::Unavailable)],
    );
    test_log.record(101, &[("a", vec!["x.example"], published_version(1))]);
    test_log.record(200, &[("a", vec!["x.example"], published_version(2))]);
    assert_eq!(
        test_log.superseded("x.example", 300),
        [(version_id(1), 200), (version_id(9), 100)]
    );
    assert!(is_declared(&mut test_log, "x.example", 300));
    assert!(
        !is_declared(&mut test_log, "other.example", 300),
        "no site has the host"
    );
    // A version that was published again later is in the list once, with the later end.
    test_log.record(400, &[("a", vec!["x.example"], published_version(9))]);
    test_log.record(500, &[("a", vec!["x.example"], published_version(3))]);
    assert_eq!(
        test_log.superseded("x.example", 600),
        [
            (version_id(9), 500),
            (version_id(2), 400),
            (version_id(1), 200)
        ]
    );
    test_log.declared = None;
    assert!(
        test_log.record(600, &[("a", vec!["x.example"], published_version(3))]),
        "the word is taken back"
    );
    assert!(!is_declared(&mut test_log, "x.example", 700));
}

#[test]
fn declaration_ends_with_a_move_or_a_gap() {
    let begin = |now: i64| {
        let mut test_log = TestLog::new();
        test_log.declared = Some(DeclaredPreviousRobots::Version(version_id(9)));
        test_log.record(now, &[("a", vec!["x.example"], published_version(1))]);
        test_log
    };
    let mut moved = begin(100);
    moved.record(200, &[("b", vec!["x.example"], published_version(2))]);
    assert!(!is_declared(&mut moved, "x.example", 300));
    assert_eq!(moved.superseded("x.example", 300), [(version_id(1), 200)]);

    let mut first = begin(100);
    first.log.gaps.broken_at = Some(Timestamp(100));
    assert!(
        is_declared(&mut first, "x.example", 300),
        "a gap before the first publication is what the word is about"
    );
    first.log.gaps.broken_at = Some(Timestamp(101));
    assert!(!is_declared(&mut first, "x.example", 300));
    assert_eq!(
        first.superseded("x.example", 300),
        [(version_id(9), 100)],
        "crawlers may still use it"
    );

    let mut lost = begin(100);
    lost.log.gaps.lost_at = Some(Timestamp(100));
    assert!(!is_declared(&mut lost, "x.example", 300));
}

#[test]
fn origin_file_is_declared_as_first_read() {
    let mut test_log = TestLog::new();
    let publish =
        |test_log: &mut TestLog, at: i64, first: Option<RobotsVersionId>, published: usize| {
            test_log.declared = Some(DeclaredPreviousRobots::Origin(first));
            test_log.record(
                at,
                &[("a", vec!["x.example"], published_version(published))],
            );
        };
    publish(&mut test_log, 100, None, 1);
    assert!(
        !is_declared(&mut test_log, "x.example", 100),
        "nothing is known of it"
    );
    publish(&mut test_log, 101, Some(version_id(7)), 2);
    publish(&mut test_log, 200, Some(version_id(8)), 3);
    publish(&mut test_log, 201, None, 3);
    assert_eq!(
        test_log.superseded("x.example", 300),
        [
            (version_id(2), 200),
            (version_id(1), 101),
            (version_id(7), 100)
        ]
    );
    assert!(
        test_log
            .log
            .versions_since(Timestamp(1_000))
            .contains(&version_id(7)),
        "its bytes are still wanted"
    );
}

#[test]
fn declared_version_without_bytes_is_unknown() {
    let mut test_log = TestLog::new();
    test_log.declared = Some(DeclaredPreviousRobots::Version(version_id(9)));
    test_log.record(100, &[("a", vec!["x.example"], published_version(1))]);
    test_log
        .versions
        .retain_only(&BTreeSet::from([version_id(1)]));
    assert_eq!(
        test_log.histories(200).get(b"x.example").unknown_until,
        Some(Timestamp(100))
    );
}

#[test]
fn five_thousand_hosts_of_one_site_share_one_history() {
    let hosts: Vec<HostPattern> = (0..5_000)
        .map(|number| parse_host(&format!("h{number}.example")).expect("a host"))
        .collect();
    let mut test_log = TestLog::new();
    for number in 0..64 {
        let published = published_version(number);
        let current = PublishedSite {
            site: "a",
            hosts: hosts.iter().collect(),
            published,
            identities: 1,
            has_page_tags: false,
            declared: None,
        };
        test_log.log.record(&[current], Timestamp(number as i64));
    }
    let histories = test_log.histories(100);
    assert!(std::ptr::eq(
        histories.get(b"h1.example"),
        histories.get(b"h4999.example")
    ));
    assert_eq!(histories.get(b"h77.example").superseded.len(), 63);
}

/// that publishes.
fn naive_history(
    changes: &[Vec<SiteRow>],
    host: &str,
) -> Vec<(usize, Option<(&'static str, PublishedRobots)>)> {
    let at = |sites: &Vec<SiteRow>| {
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

fn any_change() -> impl Strategy<Value = Vec<SiteRow>> {
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
                PublishedRobots::Unavailable
            } else {
                published_version(number)
            };
            all.push((name, hosts, published));
        }
        all
    })
}

proptest! {
    #[test]
    fn history_by_host_equals_what_requests_saw(changes in prop::collection::vec(any_change(), 1..12)) {
        let mut test_log = TestLog::new();
        for (at, sites) in changes.iter().enumerate() {
            test_log.record(at as i64, sites);
        }
        let now = changes.len() as i64;
        let histories = test_log.histories(now);
        for host in HOSTS {
            let saw = naive_history(&changes, host);
            let history = histories.get(host.as_bytes());
            let current = match saw.last().and_then(|(_, seen)| *seen) {
                Some((_, PublishedRobots::Version(version))) => Some(version),
                _ => None,
            };
            let until = |version: RobotsVersionId| {
                let is = |seen: &Option<(&str, PublishedRobots)>| seen.is_some_and(|(_, seen)| seen == PublishedRobots::Version(version));
                let (last, seen) = saw.iter().rev().find(|(_, seen)| is(seen))?;
                // A span of the same site in which robots.txt answered 503 supersedes nothing.
                let unavailable = seen.map(|(site, _)| (site, PublishedRobots::Unavailable));
                let through = saw[last + 1..].iter().take_while(|(_, seen)| *seen == unavailable).count();
                Some((last + 1 + through) as i64)
            };
            let mut expected: Vec<(i64, RobotsVersionId)> =
                (1..5).map(version_id).filter(|id| Some(*id) != current).filter_map(|id| Some((until(id)?, id))).collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            let known: Vec<(i64, RobotsVersionId)> =
                history.superseded.iter().map(|old| (old.superseded_at.0, old.parsed.version)).collect();
            prop_assert_eq!(&known, &expected, "{} of {:?}", host, changes);
            prop_assert_eq!(history.unknown_until, None);
            let answered_503 = |at: i64| history.unavailable.iter().any(|span| span.since.0 <= at && span.until.is_none_or(|until| at < until.0));
            for (at, seen) in &saw {
                let unavailable = seen.is_some_and(|(_, seen)| seen == PublishedRobots::Unavailable);
                prop_assert_eq!(answered_503(*at as i64), unavailable, "{} at {} of {:?}", host, at, changes);
            }
        }
    }
}

/// What counts by [`PublicationHistory::cached_since`] counts to the end that
/// [`PublicationHistory::cached_until`] says, and no longer.
#[test]
fn cached_until_is_the_reverse_of_cached_since() {
    let window = Duration::from_secs(10);
    let span = |since, until| UnavailableSpan {
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
        let history = PublicationHistory {
            unavailable,
            jumps,
            ..PublicationHistory::new(Timestamp(0))
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
