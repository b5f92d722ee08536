//! Tests of the state database with real files: what crawlgate finds at its start after the
//! previous process ended in each possible way.

use super::writer::StoreClock;
use super::{PreviousRun, RestoredState, StateError, StateStore, StoreHealth};
use crate::clock::Moment;
use crate::facts::{
    ClientMark, Fact, HostObservation, LastGoodPolicy, OriginCopy, PauseEvent, PauseRecord,
    Publication, ServedVersion, TagChange, VersionBytes,
};
use crate::policy::{self, model::PauseAudience};
use crate::publications::{ChangePoint, ChangeSpan, PublishedRobots};
use crate::time::Timestamp;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const START: i64 = 1_800_000_000;

/// A clock that stands still until a test moves it.
#[derive(Clone)]
struct TestClock {
    wall: Arc<AtomicI64>,
    monotonic: Arc<AtomicI64>,
}

impl TestClock {
    fn new() -> TestClock {
        TestClock {
            wall: Arc::new(START.into()),
            monotonic: Arc::default(),
        }
    }

    fn now(&self) -> StoreClock {
        let clock = self.clone();
        Arc::new(move || clock.moment())
    }

    fn moment(&self) -> Moment {
        let monotonic =
            u64::try_from(self.monotonic.load(Ordering::SeqCst)).expect("time passes forwards");
        Moment {
            now: Timestamp(self.wall.load(Ordering::SeqCst)),
            monotonic: Duration::from_secs(monotonic),
        }
    }

    fn pass(&self, seconds: i64) {
        self.wall.fetch_add(seconds, Ordering::SeqCst);
        self.monotonic.fetch_add(seconds, Ordering::SeqCst);
    }

    /// As if somebody had set the clock.
    fn set(&self, seconds: i64) {
        self.wall.fetch_add(seconds, Ordering::SeqCst);
    }

    fn open(&self, directory: &Path) -> (StateStore, RestoredState) {
        StateStore::open(Some(directory), self.now()).expect("opened")
    }

    /// A run that has begun without facts of its own.
    fn open_and_begin(&self, directory: &Path) -> (StateStore, RestoredState) {
        let (store, remembered) = self.open(directory);
        store.begin(Vec::new()).expect("begun");
        (store, remembered)
    }
}

fn observation(host: &str, since: i64) -> HostObservation {
    let (site, seen) = ("shop".to_owned(), Timestamp(since));
    HostObservation {
        host: host.into(),
        site,
        since: seen,
        seen,
        named: true,
        behind_cache: None,
    }
}

fn served(crawler: &str) -> ServedVersion {
    let received =
        PublishedRobots::Version(policy::RobotsVersionId([0, 255, 0, 255, 0, 255, 0, 255]));
    ServedVersion {
        host: "shop.example".into(),
        crawler: crawler.into(),
        received,
    }
}

fn policy(text: &str) -> LastGoodPolicy {
    LastGoodPolicy {
        site: "shop".into(),
        text: text.into(),
    }
}

fn version(id: &str) -> VersionBytes {
    VersionBytes {
        id: version_of(id),
        bytes: Arc::from(b"User-agent: *\n".as_slice()),
    }
}

/// The version of a file that has this text.
fn version_of(text: &str) -> policy::RobotsVersionId {
    policy::RobotsVersionId::from_body(text.as_bytes())
}

fn publication(since: i64, version: Option<&str>, until: Option<i64>) -> Publication {
    let answered = version.map_or(PublishedRobots::Unavailable, |name| {
        PublishedRobots::Version(version_of(name))
    });
    let number = since.unsigned_abs();
    Publication {
        site: "shop".into(),
        published: answered,
        identities: 255,
        has_page_tags: true,
        span: ChangeSpan {
            since: ChangePoint {
                number,
                at: Timestamp(since),
            },
            until: until.map(|at| ChangePoint {
                number: number + 1,
                at: Timestamp(at),
            }),
        },
        unreported_until: None,
    }
}

/// Nothing more can be added to the file, and something waits for that.
fn fill_disk(store: &StateStore) {
    store.execute("PRAGMA max_page_count = 1");
    store.put([Fact::set(Timestamp(START), large_policy("waiting"))]);
}

fn free_disk(store: &StateStore) {
    store.execute("PRAGMA max_page_count = 1073741823");
}

/// Too large for the room that is left within the pages that are there.
fn large_policy(site: &str) -> LastGoodPolicy {
    LastGoodPolicy {
        site: site.into(),
        text: "x".repeat(1 << 20),
    }
}

#[test]
fn clean_end_keeps_every_kind_of_fact() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, remembered) = clock.open_and_begin(directory.path());
    assert_eq!(
        (remembered.previous_run, remembered.is_continued),
        (PreviousRun::Unknown, false)
    );
    let at = Timestamp(START);
    let pause = PauseRecord {
        site: "shop".into(),
        event: PauseEvent::Switched,
        plan: String::new(),
        audience: PauseAudience::Crawlers,
        since: at,
        until: Timestamp(START + 3_600),
        retry_after: 1_800,
        robots_txt: true,
    };
    let marked = ClientMark {
        site: "shop".into(),
        crawler: "other".into(),
        address: "192.0.2.7".parse().expect("an address"),
        since: at,
        until: Timestamp(START + 86_400),
    };
    let copy = OriginCopy {
        site: "shop".into(),
        bytes: Arc::from([0, 255]),
        digest: "d".into(),
        state: "{}".into(),
    };
    let behind_cache = HostObservation {
        behind_cache: Some(600),
        ..observation("shop.example", START)
    };
    store.put([
        Fact::set(at, version("00ff00ff00ff00ff")),
        Fact::set(at, publication(START, None, None)),
        Fact::set(at, served("google")),
        Fact::set(at, behind_cache.clone()),
        Fact::set(
            at,
            TagChange {
                site: "shop".into(),
                rule: String::new(),
                since: at,
            },
        ),
        Fact::set(at, pause.clone()),
        Fact::set(at, marked.clone()),
        Fact::set(at, copy.clone()),
        Fact::set(at, policy("site: shop")),
    ]);
    store.close().expect("closed");
    clock.pass(60);
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(remembered.previous_run, PreviousRun::Clean { at });
    assert!(remembered.is_continued && remembered.set_aside.is_none());
    let facts = remembered.facts;
    assert_eq!(facts.versions, [(at, version("00ff00ff00ff00ff"))]);
    assert_eq!(facts.publications, [(at, publication(START, None, None))]);
    assert_eq!(facts.served, [(at, served("google"))]);
    assert_eq!(facts.observations, [(at, behind_cache)]);
    assert_eq!(facts.pauses, [(at, pause)]);
    assert_eq!(facts.marked_clients, [(at, marked)]);
    assert_eq!(facts.origin_copies, [(at, copy)]);
    assert_eq!(facts.last_good_policies, [(at, policy("site: shop"))]);
    assert_eq!(facts.tag_changes.len(), 1);
    assert!(
        !directory.path().join("state.db-wal").exists()
            || directory.path().join("state.db-shm").exists()
    );
}

#[test]
fn crashed_run_leaves_its_last_commit_and_no_later_fact() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store
        .commit(vec![Fact::set(
            Timestamp(START),
            observation("shop.example", START),
        )])
        .expect("committed");
    clock.pass(3);
    store
        .commit(vec![Fact::set(Timestamp(START + 3), served("google"))])
        .expect("committed");
    clock.pass(1);
    store.put([Fact::set(Timestamp(START + 4), policy("new"))]);
    drop(store);
    clock.pass(19);
    let (_store, remembered) = clock.open(directory.path());
    // The thread may have written once more before it was told to end, but no fact without its
    // time.
    let PreviousRun::Crashed { last_commit } = remembered.previous_run else {
        panic!("{remembered:?}")
    };
    assert!([START + 3, START + 4].contains(&last_commit.0));
    assert!(remembered.facts.last_good_policies.is_empty() || last_commit.0 == START + 4);
    assert!(remembered.is_continued);
    assert_eq!(
        remembered.facts.served,
        [(Timestamp(START + 3), served("google"))]
    );
    assert_eq!(
        remembered.previous_run.unknown_since(),
        Some(Timestamp(last_commit.0 - 1))
    );
}

#[test]
fn first_commit_after_a_gap_deletes_observations() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store
        .commit(vec![Fact::set(
            Timestamp(START),
            observation("shop.example", START),
        )])
        .expect("committed");
    drop(store);
    clock.pass(21);
    let (store, remembered) = clock.open(directory.path());
    assert!(!remembered.is_continued && remembered.facts.observations.len() == 1);
    // This start ends before it has begun: the next must not take its commits for those of an
    // observing run.
    store
        .commit(vec![Fact::set(Timestamp(START + 21), policy("new"))])
        .expect("committed");
    drop(store);
    let (store, remembered) = clock.open(directory.path());
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START)
        }
    );
    assert!(!remembered.is_continued && remembered.facts.observations.len() == 1);
    store.begin(Vec::new()).expect("begun");
    drop(store);
    let (_store, remembered) = clock.open(directory.path());
    assert!(remembered.is_continued && remembered.facts.observations.is_empty());
}

#[test]
fn facts_that_follow_from_a_crash_begin_the_run() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    drop(clock.open_and_begin(directory.path()));
    clock.pass(10);
    let (store, remembered) = clock.open(directory.path());
    let since = remembered.previous_run.unknown_since().expect("a crash");
    store
        .begin(vec![Fact::set(since, served(""))])
        .expect("begun");
    drop(store);
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START + 10)
        }
    );
    assert_eq!(remembered.facts.served, [(since, served(""))]);
}

#[test]
fn full_disk_delays_facts_and_publications() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    fill_disk(&store);
    store.put([Fact::set(Timestamp(START), served("google"))]);
    assert!(store.commit(Vec::new()).is_err());
    clock.pass(2);
    let published = || vec![Fact::set(Timestamp(START + 2), large_policy("a"))];
    assert!(matches!(
        store.publish(published()),
        Err(StateError::Unwritten { .. })
    ));
    let StoreHealth::Failing { since, .. } = store.health() else {
        panic!("{:?}", store.health())
    };
    assert_eq!(since, Timestamp(START));
    clock.pass(18);
    assert!(
        store.publish(published()).is_err(),
        "a start at once would continue"
    );
    clock.pass(1);
    store
        .publish(published())
        .expect("the next start sees a gap");
    free_disk(&store);
    store.commit(Vec::new()).expect("there is room");
    assert_eq!(store.health(), StoreHealth::Healthy);
    drop(store);
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(remembered.facts.served.len(), 1);
    assert!(
        remembered
            .facts
            .last_good_policies
            .contains(&(Timestamp(START + 2), large_policy("a")))
    );
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START + 21)
        }
    );
}

#[test]
fn crash_on_a_full_disk_leaves_the_last_commit() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store
        .commit(vec![Fact::set(
            Timestamp(START),
            observation("shop.example", START),
        )])
        .expect("committed");
    fill_disk(&store);
    for second in 1..=30 {
        clock.pass(1);
        let facts = vec![Fact::set(Timestamp(START + second), large_policy("a"))];
        assert_eq!(store.publish(facts).is_ok(), second > 20, "{second}");
    }
    drop(store);
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START)
        }
    );
    assert!(!remembered.is_continued);
    assert!(remembered.facts.last_good_policies.is_empty());
}

#[test]
fn clock_that_is_set_does_not_end_the_wait() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    fill_disk(&store);
    assert!(
        store
            .commit(vec![Fact::set(Timestamp(START), large_policy("a"))])
            .is_err()
    );
    clock.set(3_600);
    assert!(
        !store.may_publish(clock.moment()),
        "the clock may be set back before the next start"
    );
    clock.pass(21);
    assert!(store.may_publish(clock.moment()));
    clock.set(-7_200);
    assert!(
        !store.may_publish(clock.moment()),
        "the time of the last commit is yet to come"
    );
}

#[test]
fn failed_first_commit_is_tried_again_with_its_facts() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    drop(clock.open_and_begin(directory.path()));
    let (store, _) = clock.open(directory.path());
    fill_disk(&store);
    store
        .begin(vec![Fact::set(Timestamp(START), large_policy("a"))])
        .expect_err("the disk is full");
    free_disk(&store);
    store.commit(Vec::new()).expect("there is room");
    drop(store);
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(remembered.facts.last_good_policies.len(), 2);
}

#[test]
fn damaged_file_is_set_aside_and_replaced() {
    for wrong in [
        b"no database at all, and long enough to be looked at".to_vec(),
        damaged_database(),
    ] {
        let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
        let file = directory.path().join("state.db");
        fs::write(&file, &wrong).expect("written");
        let (store, remembered) = clock.open_and_begin(directory.path());
        let aside = remembered.set_aside.expect("set aside");
        assert_eq!(fs::read(&aside).expect("kept"), wrong);
        assert_eq!(
            aside,
            directory.path().join("state.db.damaged-20270115T080000Z")
        );
        assert_eq!(
            (remembered.previous_run, store.health()),
            (PreviousRun::Unknown, StoreHealth::Healthy)
        );
        store
            .commit(vec![Fact::set(Timestamp(START), policy("new"))])
            .expect("committed");
    }
}

/// A database with a page that is not what it was.
fn damaged_database() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, _) = TestClock::new().open_and_begin(directory.path());
    let facts = (0..2_000).map(|number| Fact::set(Timestamp(START), served(&number.to_string())));
    store.commit(facts.collect()).expect("committed");
    store.close().expect("closed");
    let mut bytes = fs::read(directory.path().join("state.db")).expect("there");
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle..middle + 4_096].fill(0x5a);
    bytes
}

#[test]
fn file_of_an_earlier_crawlgate_is_set_aside() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = TestClock::new();
    let (store, _) = clock.open_and_begin(directory.path());
    store
        .commit(vec![Fact::set(Timestamp(START), policy("former"))])
        .expect("committed");
    store.execute("PRAGMA user_version = 5");
    store.close().expect("closed");
    let error = StateStore::read(directory.path(), Timestamp(START));
    assert!(matches!(error, Err(StateError::Unread { .. })), "{error:?}");
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(
        remembered.set_aside,
        Some(directory.path().join("state.db.former-20270115T080000Z"))
    );
    assert!(remembered.facts.last_good_policies.is_empty());
}

#[test]
fn file_with_other_tables_is_set_aside() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let other = rusqlite::Connection::open(directory.path().join("state.db")).expect("opened");
    other
        .execute_batch("CREATE TABLE served (x)")
        .expect("made");
    drop(other);
    let (_store, remembered) = clock.open(directory.path());
    assert!(remembered.set_aside.is_some());
}

#[test]
fn second_process_is_rejected_with_the_pid_of_the_first() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    match StateStore::open(Some(directory.path()), clock.now()) {
        Err(StateError::Held { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    store.close().expect("closed");
    clock.open(directory.path());
}

#[test]
fn directory_without_a_lock_is_read_and_never_written() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store
        .commit(vec![
            Fact::set(Timestamp(START), policy("good")),
            Fact::set(Timestamp(START), observation("shop.example", START)),
        ])
        .expect("committed");
    store.close().expect("closed");
    let before = fs::read(directory.path().join("state.db")).expect("there");
    // Stands for a read-only directory: the tests may run as root.
    fs::remove_file(directory.path().join("lock")).expect("removed");
    fs::create_dir(directory.path().join("lock")).expect("made");
    let (store, remembered) = clock.open(directory.path());
    assert!(matches!(store.health(), StoreHealth::Unusable { .. }));
    assert_eq!(remembered.previous_run, PreviousRun::Unknown);
    assert_eq!(
        remembered.facts.last_good_policies,
        [(Timestamp(START), policy("good"))]
    );
    assert!(!remembered.is_continued);
    store.begin(Vec::new()).expect("begun");
    store
        .publish(vec![Fact::set(Timestamp(START), policy("new"))])
        .expect("the site is served at once");
    store.close().expect("nothing to close");
    assert_eq!(
        fs::read(directory.path().join("state.db")).expect("there"),
        before
    );
}

#[test]
fn run_that_cannot_open_the_file_turns_the_end_to_a_crash() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store.close().expect("closed");
    let (file, away) = (
        directory.path().join("state.db"),
        directory.path().join("away"),
    );
    fs::rename(&file, &away)
        .and_then(|()| fs::create_dir(&file))
        .expect("in the way");
    let (store, _) = clock.open(directory.path());
    assert!(matches!(store.health(), StoreHealth::Unusable { .. }));
    drop(store);
    fs::remove_dir(&file)
        .and_then(|()| fs::rename(&away, &file))
        .expect("back");
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START)
        }
    );
}

#[test]
fn store_without_a_directory_accepts_everything() {
    let clock = TestClock::new();
    let (store, remembered) = StateStore::open(None, clock.now()).expect("opened");
    assert_eq!(store.health(), StoreHealth::NoDirectory);
    assert_eq!(
        (remembered.previous_run, remembered.is_continued),
        (PreviousRun::Unknown, false)
    );
    store.begin(Vec::new()).expect("begun");
    store.put([Fact::set(Timestamp(START), policy("new"))]);
    store
        .publish(vec![Fact::set(Timestamp(START), policy("new"))])
        .expect("published");
    assert!(store.may_publish(clock.moment()));
    store.close().expect("closed");
}

#[test]
fn clock_set_back_between_runs_ends_observation() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    let facts = [
        Fact::set(Timestamp(START), served("google")),
        Fact::set(Timestamp(START), policy("old")),
    ];
    store.commit(facts.to_vec()).expect("committed");
    store.close().expect("closed");
    clock.set(-3_600);
    let (store, remembered) = clock.open_and_begin(directory.path());
    let now = Timestamp(START - 3_600);
    assert!(!remembered.is_continued);
    assert_eq!(remembered.facts.served, [(now, served("google"))]);
    // What changes now is later than what was recorded by the clock that was ahead.
    store
        .commit(vec![Fact::removed(now, policy(""))])
        .expect("committed");
    store.close().expect("closed");
    let (_store, remembered) = clock.open(directory.path());
    assert!(remembered.facts.last_good_policies.is_empty());
}

#[test]
fn facts_written_out_of_order_leave_the_latest() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    let at = |second: i64, text: &str| vec![Fact::set(Timestamp(START - second), policy(text))];
    for batch in [
        at(10, "3"),
        at(30, "1"),
        at(20, "2"),
        at(10, "3"),
        at(30, "1"),
    ] {
        store.commit(batch).expect("committed");
    }
    let removed = || {
        Fact::removed(
            Timestamp(START - 20),
            TagChange {
                site: "a".into(),
                rule: "1".into(),
                since: Timestamp(0),
            },
        )
    };
    let set = Fact::set(
        Timestamp(START - 40),
        TagChange {
            site: "a".into(),
            rule: "1".into(),
            since: Timestamp(0),
        },
    );
    for batch in [vec![removed()], vec![set.clone()], vec![removed(), set]] {
        store.commit(batch).expect("committed");
    }
    drop(store);
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(
        remembered.facts.last_good_policies,
        [(Timestamp(START - 10), policy("3"))]
    );
    assert!(
        remembered.facts.tag_changes.is_empty(),
        "what was set before the removal is not back"
    );
}

#[test]
fn fact_in_the_future_is_replaced_by_later_ones() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store
        .commit(vec![Fact::set(Timestamp(START + 86_400), policy("ahead"))])
        .expect("committed");
    clock.pass(10);
    store
        .commit(vec![Fact::set(Timestamp(START + 10), policy("later"))])
        .expect("committed");
    drop(store);
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(
        remembered.facts.last_good_policies,
        [(Timestamp(START + 10), policy("later"))]
    );
}

#[test]
fn hundred_thousand_facts_are_one_transaction() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    let facts = |at: i64| {
        (0..100_000).map(move |number| Fact::set(Timestamp(at), served(&number.to_string())))
    };
    let before = store.commits();
    store.commit(facts(START).collect()).expect("committed");
    assert!(
        store.commits() - before <= 2,
        "{} transactions",
        store.commits() - before
    );
    // The same keys again: nothing grows.
    let size = || {
        fs::metadata(directory.path().join("state.db"))
            .expect("there")
            .len()
    };
    store.execute("PRAGMA wal_checkpoint");
    let first = size();
    store.put(facts(START + 60));
    store.commit(Vec::new()).expect("committed");
    store.execute("PRAGMA wal_checkpoint");
    assert!(
        size() <= first + first / 4,
        "{first} bytes, then {}",
        size()
    );
    store.close().expect("closed");
    let (_store, remembered) = clock.open(directory.path());
    assert_eq!(remembered.facts.served.len(), 100_000);
}

#[test]
fn queued_facts_are_written_together() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    let before = store.commits();
    for number in 0..1_000 {
        store.put([Fact::set(Timestamp(START), served(&number.to_string()))]);
    }
    while store.commits() == before {
        std::thread::yield_now();
    }
    assert!(store.commits() - before <= 2);
    store.commit(Vec::new()).expect("committed");
    drop(store);
    assert_eq!(clock.open(directory.path()).1.facts.served.len(), 1_000);
}

#[test]
fn versions_that_no_crawler_has_cached_are_deleted() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    let day = 86_400;
    let old = Timestamp(START - 40 * day);
    let of_version = |crawler: &str, id: &str| ServedVersion {
        received: PublishedRobots::Version(version_of(id)),
        ..served(crawler)
    };
    let facts = vec![
        Fact::set(old, version("unused")),
        Fact::set(old, version("published")),
        Fact::set(old, version("served")),
        Fact::set(old, version("ended")),
        Fact::set(
            old,
            publication(START - 40 * day, Some("ended"), Some(START - 35 * day)),
        ),
        Fact::set(old, publication(START - 35 * day, Some("published"), None)),
        Fact::set(Timestamp(START - day), of_version("google", "served")),
        Fact::set(old, of_version("bing", "ended")),
        Fact::removed(
            old,
            TagChange {
                site: "a".into(),
                rule: "1".into(),
                since: old,
            },
        ),
    ];
    store.commit(facts).expect("committed");
    store.prune(Timestamp(START - 30 * day));
    store.commit(Vec::new()).expect("committed");
    store.close().expect("closed");
    let (_store, remembered) = clock.open(directory.path());
    let versions = remembered.facts.versions.iter();
    let ids: Vec<policy::RobotsVersionId> = versions.map(|(_, version)| version.id).collect();
    assert_eq!(ids, ["published", "served"].map(version_of));
    assert_eq!(
        (
            remembered.facts.publications.len(),
            remembered.facts.served.len()
        ),
        (1, 1)
    );
}

#[test]
fn removals_of_marks_do_not_fill_the_file() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    let mark = |number: u32| ClientMark {
        site: "shop".into(),
        crawler: "other".into(),
        address: std::net::Ipv4Addr::from(number).into(),
        since: Timestamp(START),
        until: Timestamp(START + 86_400),
    };
    for round in 0..8 {
        let at = clock.moment().now;
        store
            .commit(
                (0..5_000)
                    .map(|number| Fact::set(at, mark(round * 5_000 + number)))
                    .collect(),
            )
            .expect("written");
        store
            .commit(
                (0..5_000)
                    .map(|number| Fact::removed(at, mark(round * 5_000 + number)))
                    .collect(),
            )
            .expect("gone");
        clock.pass(61);
    }
    store.execute("PRAGMA wal_checkpoint");
    let size = fs::metadata(directory.path().join("state.db"))
        .expect("there")
        .len();
    assert!(size < 3 * 1024 * 1024, "{size} bytes");
}

#[test]
fn dropped_facts_make_the_run_unknown() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store.put([Fact::set(
        Timestamp(START),
        LastGoodPolicy {
            site: "a".into(),
            text: "x".repeat(300 << 20),
        },
    )]);
    store.put([Fact::set(Timestamp(START), policy("new"))]);
    store.close().expect("closed");
    let (store, remembered) = clock.open(directory.path());
    assert_eq!(remembered.previous_run, PreviousRun::Unknown);
    assert_eq!(
        remembered.facts.last_good_policies,
        [(Timestamp(START), policy("new"))]
    );
    store.begin(Vec::new()).expect("begun");
    store.close().expect("closed");
    assert!(clock.open(directory.path()).1.is_continued);
}

#[test]
fn file_is_readable_while_it_is_written() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store
        .commit(vec![Fact::set(Timestamp(START), policy("1"))])
        .expect("committed");
    let person = rusqlite::Connection::open(directory.path().join("state.db")).expect("opened");
    let read = || {
        person.query_row("SELECT text FROM last_good_policies", [], |row| {
            row.get::<_, String>(0)
        })
    };
    person.execute_batch("BEGIN").expect("begun");
    assert_eq!(read().expect("read"), "1");
    store
        .commit(vec![Fact::set(Timestamp(START), policy("2"))])
        .expect("a reader holds nothing up");
    person.execute_batch("COMMIT").expect("ended");
    assert_eq!(read().expect("read"), "2");
}

#[test]
fn closed_store_rejects_facts() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store.close().expect("closed");
    assert!(matches!(
        store.commit(Vec::new()),
        Err(StateError::Unwritten { .. })
    ));
    assert!(matches!(store.close(), Err(StateError::Unwritten { .. })));
}

#[test]
fn facts_are_read_while_another_process_owns_them() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let read = || {
        StateStore::read(directory.path(), Timestamp(START))
            .expect("read")
            .last_good_policies
    };
    let names = || {
        let entries = fs::read_dir(directory.path()).expect("there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(read(), [], "no database yet");
    assert_eq!(names().len(), 0, "and none is made");
    let (store, _) = clock.open_and_begin(directory.path());
    for text in ["one", "two"] {
        store
            .commit(vec![Fact::set(Timestamp(START), policy(text))])
            .expect("written");
        assert_eq!(read(), [(Timestamp(START), policy(text))]);
    }
    store.put([Fact::set(Timestamp(START), policy("three"))]);
    store.close().expect("closed");
    let left = names();
    assert_eq!(
        read(),
        [(Timestamp(START), policy("three"))],
        "nothing runs"
    );
    assert_eq!(names(), left, "reading leaves nothing behind");
    // The write-ahead log of a crashed run is read as well.
    let (store, remembered) = clock.open_and_begin(directory.path());
    assert!(
        matches!(remembered.previous_run, PreviousRun::Clean { .. }),
        "reading is no run: {remembered:?}"
    );
    store
        .commit(vec![Fact::set(Timestamp(START), policy("four"))])
        .expect("written");
    drop(store);
    assert_eq!(read(), [(Timestamp(START), policy("four"))]);
}

#[test]
fn reading_a_file_that_is_no_database_fails() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(
        directory.path().join("state.db"),
        "no database at all, and longer than a header of one".repeat(9),
    )
    .expect("written");
    let error = StateStore::read(directory.path(), Timestamp(START)).expect_err("damaged");
    assert!(matches!(error, StateError::Unread { .. }), "{error:?}");
    assert_eq!(
        fs::read_dir(directory.path()).expect("there").count(),
        1,
        "it is not set aside"
    );
}

#[test]
fn deleted_file_is_a_failure_until_it_is_put_back() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    let (file, elsewhere) = (
        directory.path().join("state.db"),
        directory.path().join("elsewhere"),
    );
    fs::rename(&file, &elsewhere).expect("moved");
    assert!(matches!(
        store.commit(vec![Fact::set(Timestamp(START), policy("1"))]),
        Err(StateError::Unwritten { .. })
    ));
    assert!(matches!(store.health(), StoreHealth::Failing { .. }));
    fs::write(&file, b"").expect("another file");
    assert!(
        store
            .commit(vec![Fact::set(Timestamp(START), policy("1"))])
            .is_err()
    );
    fs::rename(&elsewhere, &file).expect("put back");
    store
        .commit(vec![Fact::set(Timestamp(START), policy("2"))])
        .expect("committed");
    assert_eq!(store.health(), StoreHealth::Healthy);
}

#[test]
fn file_of_a_newer_crawlgate_is_left_alone() {
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let (store, _) = clock.open_and_begin(directory.path());
    store.close().expect("closed");
    let file = directory.path().join("state.db");
    let open = || rusqlite::Connection::open(&file).expect("opened");
    open()
        .pragma_update(None, "user_version", 99)
        .expect("written");
    let (store, remembered) = clock.open(directory.path());
    let health = store.health().to_string();
    assert!(health.contains("Put the newer crawlgate back"), "{health}");
    assert!(!health.contains("Free space"), "{health}");
    assert!(remembered.set_aside.is_none());
    let version: i64 = open()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .expect("read");
    assert_eq!(version, 99);
}

#[test]
fn state_is_for_one_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, clock) = (tempfile::tempdir().expect("a directory"), TestClock::new());
    let state = directory.path().join("state");
    let (_store, _) = clock.open_and_begin(&state);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(
        (mode(&state), mode(&state.join("state.db"))),
        (0o700, 0o600)
    );
    assert_eq!(mode(&state.join("state.db-wal")), 0o600);
}
