//! The store with real files: what a start finds after the previous process ended in each possible
//! way.

use super::writer::Now;
use super::{PreviousRun, Remembered, StateError, StateStore, StoreHealth};
use crate::clock::Moment;
use crate::facts::{
    Fact, LastGoodPolicy, Mark, Observation, OriginCopy, Pause, PauseEvent, Publication, Served,
    TagChange, Version,
};
use crate::policy::{self, model::Audience};
use crate::publications::{Change, Published, Span};
use crate::time::Timestamp;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const START: i64 = 1_800_000_000;

/// A clock that stands still until a test moves it.
#[derive(Clone)]
struct Hands {
    wall: Arc<AtomicI64>,
    lived: Arc<AtomicI64>,
}

impl Hands {
    fn new() -> Hands {
        Hands {
            wall: Arc::new(START.into()),
            lived: Arc::default(),
        }
    }

    fn now(&self) -> Now {
        let hands = self.clone();
        Arc::new(move || hands.moment())
    }

    fn moment(&self) -> Moment {
        let lived = u64::try_from(self.lived.load(Ordering::SeqCst)).expect("time passes forwards");
        Moment {
            now: Timestamp(self.wall.load(Ordering::SeqCst)),
            lived: Duration::from_secs(lived),
        }
    }

    fn pass(&self, seconds: i64) {
        self.wall.fetch_add(seconds, Ordering::SeqCst);
        self.lived.fetch_add(seconds, Ordering::SeqCst);
    }

    /// As if somebody had set the clock.
    fn set(&self, seconds: i64) {
        self.wall.fetch_add(seconds, Ordering::SeqCst);
    }

    fn open(&self, directory: &Path) -> (StateStore, Remembered) {
        StateStore::open(Some(directory), self.now()).expect("opened")
    }

    /// A run that has begun without facts of its own.
    fn run(&self, directory: &Path) -> (StateStore, Remembered) {
        let (store, remembered) = self.open(directory);
        store.begin(Vec::new()).expect("begun");
        (store, remembered)
    }
}

fn observation(host: &str, since: i64) -> Observation {
    let (site, seen) = ("shop".to_owned(), Timestamp(since));
    Observation {
        host: host.into(),
        site,
        since: seen,
        seen,
        named: true,
        behind_cache: None,
    }
}

fn served(crawler: &str) -> Served {
    let received = Published::Version(policy::Version([0, 255, 0, 255, 0, 255, 0, 255]));
    Served {
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

fn version(id: &str) -> Version {
    Version {
        id: named(id),
        bytes: Arc::from(b"User-agent: *\n".as_slice()),
    }
}

/// The version of a file that has this text.
fn named(text: &str) -> policy::Version {
    policy::Version::of(text.as_bytes())
}

fn publication(since: i64, version: Option<&str>, until: Option<i64>) -> Publication {
    let answered = version.map_or(Published::Unavailable, |name| {
        Published::Version(named(name))
    });
    let number = since.unsigned_abs();
    Publication {
        site: "shop".into(),
        published: answered,
        identities: 255,
        tells: true,
        span: Span {
            since: Change {
                number,
                at: Timestamp(since),
            },
            until: until.map(|at| Change {
                number: number + 1,
                at: Timestamp(at),
            }),
        },
        unreported_until: None,
    }
}

/// Nothing more can be added to the file, and something waits for that.
fn fill(store: &StateStore) {
    store.execute("PRAGMA max_page_count = 1");
    store.put([Fact::set(Timestamp(START), large("waiting"))]);
}

fn make_room(store: &StateStore) {
    store.execute("PRAGMA max_page_count = 1073741823");
}

/// Too large for the room that is left within the pages that are there.
fn large(site: &str) -> LastGoodPolicy {
    LastGoodPolicy {
        site: site.into(),
        text: "x".repeat(1 << 20),
    }
}

#[test]
fn every_kind_of_fact_is_there_after_a_clean_end() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, remembered) = hands.run(directory.path());
    assert_eq!(
        (remembered.previous_run, remembered.is_continued),
        (PreviousRun::Unknown, false)
    );
    let at = Timestamp(START);
    let pause = Pause {
        site: "shop".into(),
        event: PauseEvent::Switched,
        plan: String::new(),
        audience: Audience::Crawlers,
        since: at,
        until: Timestamp(START + 3_600),
        retry_after: 1_800,
        robots_txt: true,
    };
    let marked = Mark {
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
    let behind_cache = Observation {
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
    hands.pass(60);
    let (_store, remembered) = hands.open(directory.path());
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
fn a_run_that_vanished_leaves_its_last_commit_and_no_later_fact() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store
        .commit(vec![Fact::set(
            Timestamp(START),
            observation("shop.example", START),
        )])
        .expect("committed");
    hands.pass(3);
    store
        .commit(vec![Fact::set(Timestamp(START + 3), served("google"))])
        .expect("committed");
    hands.pass(1);
    store.put([Fact::set(Timestamp(START + 4), policy("new"))]);
    drop(store);
    hands.pass(19);
    let (_store, remembered) = hands.open(directory.path());
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
fn after_a_gap_no_observation_outlasts_the_first_commit() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store
        .commit(vec![Fact::set(
            Timestamp(START),
            observation("shop.example", START),
        )])
        .expect("committed");
    drop(store);
    hands.pass(21);
    let (store, remembered) = hands.open(directory.path());
    assert!(!remembered.is_continued && remembered.facts.observations.len() == 1);
    // This start ends before it has begun: the next must not take its commits for those of an
    // observing run.
    store
        .commit(vec![Fact::set(Timestamp(START + 21), policy("new"))])
        .expect("committed");
    drop(store);
    let (store, remembered) = hands.open(directory.path());
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START)
        }
    );
    assert!(!remembered.is_continued && remembered.facts.observations.len() == 1);
    store.begin(Vec::new()).expect("begun");
    drop(store);
    let (_store, remembered) = hands.open(directory.path());
    assert!(remembered.is_continued && remembered.facts.observations.is_empty());
}

#[test]
fn what_follows_from_a_crash_is_in_the_transaction_that_begins_the_run() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    drop(hands.run(directory.path()));
    hands.pass(10);
    let (store, remembered) = hands.open(directory.path());
    let since = remembered.previous_run.unknown_since().expect("a crash");
    store
        .begin(vec![Fact::set(since, served(""))])
        .expect("begun");
    drop(store);
    let (_store, remembered) = hands.open(directory.path());
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START + 10)
        }
    );
    assert_eq!(remembered.facts.served, [(since, served(""))]);
}

#[test]
fn a_full_disk_keeps_facts_waiting_and_publications_for_20_seconds() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    fill(&store);
    store.put([Fact::set(Timestamp(START), served("google"))]);
    assert!(store.commit(Vec::new()).is_err());
    hands.pass(2);
    let published = || vec![Fact::set(Timestamp(START + 2), large("a"))];
    assert!(matches!(
        store.publish(published()),
        Err(StateError::Unwritten { .. })
    ));
    let StoreHealth::Failing {
        since, last_commit, ..
    } = store.health()
    else {
        panic!("{:?}", store.health())
    };
    assert_eq!(
        (since, last_commit),
        (Timestamp(START), Some(Timestamp(START)))
    );
    hands.pass(18);
    assert!(
        store.publish(published()).is_err(),
        "a start at once would continue"
    );
    hands.pass(1);
    store
        .publish(published())
        .expect("the next start sees a gap");
    make_room(&store);
    store.commit(Vec::new()).expect("there is room");
    assert_eq!(store.health(), StoreHealth::Healthy);
    drop(store);
    let (_store, remembered) = hands.open(directory.path());
    assert_eq!(remembered.facts.served.len(), 1);
    assert!(
        remembered
            .facts
            .last_good_policies
            .contains(&(Timestamp(START + 2), large("a")))
    );
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START + 21)
        }
    );
}

#[test]
fn a_crash_while_nothing_could_be_written_leaves_the_time_of_the_last_commit() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store
        .commit(vec![Fact::set(
            Timestamp(START),
            observation("shop.example", START),
        )])
        .expect("committed");
    fill(&store);
    for second in 1..=30 {
        hands.pass(1);
        let facts = vec![Fact::set(Timestamp(START + second), large("a"))];
        assert_eq!(store.publish(facts).is_ok(), second > 20, "{second}");
    }
    drop(store);
    let (_store, remembered) = hands.open(directory.path());
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
fn a_clock_set_forward_does_not_end_the_wait_and_one_set_back_lengthens_it() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    fill(&store);
    assert!(
        store
            .commit(vec![Fact::set(Timestamp(START), large("a"))])
            .is_err()
    );
    hands.set(3_600);
    assert!(
        !store.may_publish(hands.moment()),
        "the clock may be set back before the next start"
    );
    hands.pass(21);
    assert!(store.may_publish(hands.moment()));
    hands.set(-7_200);
    assert!(
        !store.may_publish(hands.moment()),
        "the time of the last commit is yet to come"
    );
}

#[test]
fn a_first_commit_that_fails_is_tried_again_with_what_follows_from_the_crash() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    drop(hands.run(directory.path()));
    let (store, _) = hands.open(directory.path());
    fill(&store);
    store
        .begin(vec![Fact::set(Timestamp(START), large("a"))])
        .expect_err("the disk is full");
    make_room(&store);
    store.commit(Vec::new()).expect("there is room");
    drop(store);
    let (_store, remembered) = hands.open(directory.path());
    assert_eq!(remembered.facts.last_good_policies.len(), 2);
}

#[test]
fn a_damaged_file_is_set_aside_and_an_empty_one_begun() {
    for wrong in [
        b"no database at all, and long enough to be looked at".to_vec(),
        torn(),
    ] {
        let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
        let file = directory.path().join("state.db");
        fs::write(&file, &wrong).expect("written");
        let (store, remembered) = hands.run(directory.path());
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
fn torn() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, _) = Hands::new().run(directory.path());
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
    let hands = Hands::new();
    let (store, _) = hands.run(directory.path());
    store
        .commit(vec![Fact::set(Timestamp(START), policy("former"))])
        .expect("committed");
    store.execute("PRAGMA user_version = 5");
    store.close().expect("closed");
    let error = StateStore::read(directory.path(), Timestamp(START));
    assert!(matches!(error, Err(StateError::Unread { .. })), "{error:?}");
    let (_store, remembered) = hands.open(directory.path());
    assert_eq!(
        remembered.set_aside,
        Some(directory.path().join("state.db.former-20270115T080000Z"))
    );
    assert!(remembered.facts.last_good_policies.is_empty());
}

#[test]
fn a_file_of_another_shape_is_set_aside() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let other = rusqlite::Connection::open(directory.path().join("state.db")).expect("opened");
    other
        .execute_batch("CREATE TABLE served (x)")
        .expect("made");
    drop(other);
    let (_store, remembered) = hands.open(directory.path());
    assert!(remembered.set_aside.is_some());
}

#[test]
fn a_second_process_is_refused_with_the_pid_of_the_first() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    match StateStore::open(Some(directory.path()), hands.now()) {
        Err(StateError::Held { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    store.close().expect("closed");
    hands.open(directory.path());
}

#[test]
fn a_directory_that_cannot_be_locked_is_read_and_never_written() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
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
    let (store, remembered) = hands.open(directory.path());
    assert!(matches!(store.health(), StoreHealth::Unusable { .. }));
    assert_eq!(remembered.previous_run, PreviousRun::Unknown);
    assert_eq!(
        remembered.facts.last_good_policies,
        [(Timestamp(START), policy("good"))]
    );
    assert!(!remembered.is_continued);
    // A start within a minute that can use the directory would continue the run before.
    assert!(store.begin(Vec::new()).is_err() && store.publish(Vec::new()).is_err());
    hands.pass(61);
    store
        .publish(vec![Fact::set(Timestamp(START + 61), policy("new"))])
        .expect("no start is misled any more");
    store.close().expect("nothing to close");
    assert_eq!(
        fs::read(directory.path().join("state.db")).expect("there"),
        before
    );
}

#[test]
fn a_run_that_could_not_open_the_file_makes_the_end_before_it_a_crash() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store.close().expect("closed");
    let (file, away) = (
        directory.path().join("state.db"),
        directory.path().join("away"),
    );
    fs::rename(&file, &away)
        .and_then(|()| fs::create_dir(&file))
        .expect("in the way");
    let (store, _) = hands.open(directory.path());
    assert!(matches!(store.health(), StoreHealth::Unusable { .. }));
    drop(store);
    fs::remove_dir(&file)
        .and_then(|()| fs::rename(&away, &file))
        .expect("back");
    let (_store, remembered) = hands.open(directory.path());
    assert_eq!(
        remembered.previous_run,
        PreviousRun::Crashed {
            last_commit: Timestamp(START)
        }
    );
}

#[test]
fn without_a_directory_everything_works_and_nothing_is_kept() {
    let hands = Hands::new();
    let (store, remembered) = StateStore::open(None, hands.now()).expect("opened");
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
    assert!(store.may_publish(hands.moment()));
    store.close().expect("closed");
}

#[test]
fn a_clock_set_back_between_runs_ends_observation_and_makes_times_now() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    let facts = [
        Fact::set(Timestamp(START), served("google")),
        Fact::set(Timestamp(START), policy("old")),
    ];
    store.commit(facts.to_vec()).expect("committed");
    store.close().expect("closed");
    hands.set(-3_600);
    let (store, remembered) = hands.run(directory.path());
    let now = Timestamp(START - 3_600);
    assert!(!remembered.is_continued);
    assert_eq!(remembered.facts.served, [(now, served("google"))]);
    // What changes now is later than what was noted by the clock that was ahead.
    store
        .commit(vec![Fact::removed(now, policy(""))])
        .expect("committed");
    store.close().expect("closed");
    let (_store, remembered) = hands.open(directory.path());
    assert!(remembered.facts.last_good_policies.is_empty());
}

#[test]
fn facts_written_twice_and_out_of_order_leave_the_latest() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
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
    let (_store, remembered) = hands.open(directory.path());
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
fn a_fact_from_ahead_is_taken_for_now_and_does_not_outlast_later_ones() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store
        .commit(vec![Fact::set(Timestamp(START + 86_400), policy("ahead"))])
        .expect("committed");
    hands.pass(10);
    store
        .commit(vec![Fact::set(Timestamp(START + 10), policy("later"))])
        .expect("committed");
    drop(store);
    let (_store, remembered) = hands.open(directory.path());
    assert_eq!(
        remembered.facts.last_good_policies,
        [(Timestamp(START + 10), policy("later"))]
    );
}

#[test]
fn a_hundred_thousand_facts_are_one_transaction() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
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
    let (_store, remembered) = hands.open(directory.path());
    assert_eq!(remembered.facts.served.len(), 100_000);
}

#[test]
fn facts_that_were_put_are_written_together_and_without_being_asked_for() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
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
    assert_eq!(hands.open(directory.path()).1.facts.served.len(), 1_000);
}

#[test]
fn what_nobody_may_hold_any_more_is_deleted() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    let day = 86_400;
    let old = Timestamp(START - 40 * day);
    let of_version = |crawler: &str, id: &str| Served {
        received: Published::Version(named(id)),
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
    let (_store, remembered) = hands.open(directory.path());
    let versions = remembered.facts.versions.iter();
    let ids: Vec<policy::Version> = versions.map(|(_, version)| version.id).collect();
    assert_eq!(ids, ["published", "served"].map(named));
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
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    let mark = |number: u32| Mark {
        site: "shop".into(),
        crawler: "other".into(),
        address: std::net::Ipv4Addr::from(number).into(),
        since: Timestamp(START),
        until: Timestamp(START + 86_400),
    };
    for round in 0..8 {
        let at = hands.moment().now;
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
        hands.pass(61);
    }
    store.execute("PRAGMA wal_checkpoint");
    let size = fs::metadata(directory.path().join("state.db"))
        .expect("there")
        .len();
    assert!(size < 3 * 1024 * 1024, "{size} bytes");
}

#[test]
fn facts_that_found_no_room_make_the_run_unknown_to_the_next() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store.put([Fact::set(
        Timestamp(START),
        LastGoodPolicy {
            site: "a".into(),
            text: "x".repeat(300 << 20),
        },
    )]);
    store.put([Fact::set(Timestamp(START), policy("new"))]);
    store.close().expect("closed");
    let (store, remembered) = hands.open(directory.path());
    assert_eq!(remembered.previous_run, PreviousRun::Unknown);
    assert_eq!(
        remembered.facts.last_good_policies,
        [(Timestamp(START), policy("new"))]
    );
    store.begin(Vec::new()).expect("begun");
    store.close().expect("closed");
    assert!(hands.open(directory.path()).1.is_continued);
}

#[test]
fn a_person_can_read_the_file_while_it_is_written() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
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
fn a_store_that_was_closed_refuses_facts() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store.close().expect("closed");
    assert!(matches!(
        store.commit(Vec::new()),
        Err(StateError::Closed { .. })
    ));
    assert!(matches!(store.close(), Err(StateError::Closed { .. })));
}

#[test]
fn facts_are_read_while_another_owns_the_directory_and_after_it() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
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
    let (store, _) = hands.run(directory.path());
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
    let (store, remembered) = hands.run(directory.path());
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
fn reading_a_file_that_is_no_database_is_an_error() {
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
fn a_deleted_file_is_a_failure_until_it_is_put_back() {
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
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
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let (store, _) = hands.run(directory.path());
    store.close().expect("closed");
    let file = directory.path().join("state.db");
    let open = || rusqlite::Connection::open(&file).expect("opened");
    open()
        .pragma_update(None, "user_version", 99)
        .expect("written");
    let (store, remembered) = hands.open(directory.path());
    assert!(
        store.health().to_string().contains("newer"),
        "{}",
        store.health()
    );
    assert!(remembered.set_aside.is_none());
    let version: i64 = open()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .expect("read");
    assert_eq!(version, 99);
}

#[test]
fn state_is_for_one_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, hands) = (tempfile::tempdir().expect("a directory"), Hands::new());
    let state = directory.path().join("state");
    let (_store, _) = hands.run(&state);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(
        (mode(&state), mode(&state.join("state.db"))),
        (0o700, 0o600)
    );
    assert_eq!(mode(&state.join("state.db-wal")), 0o600);
}
