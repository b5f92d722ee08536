//! Changes of policies while the state store cannot be written: publications of robots.txt wait,
//! and everything else takes effect.

use super::*;
use crate::clock::Moment;
use crate::facts::{Fact, LastGoodPolicy};
use crate::finding::ids;
use crate::policy::Version;
use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

/// The next start sees a gap when so much time has passed since the last commit.
const GAP: i64 = 21;
const START: i64 = 1_000_000;

struct World {
    directory: tempfile::TempDir,
    seconds: Arc<AtomicI64>,
    store: StateStore,
    live: Arc<SiteManager>,
}

impl World {
    /// Sites of which everything is written, and from now on nothing can be.
    fn failing() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("policies")).expect("a folder");
        write_policy(directory.path(), "/one", "");
        let seconds = Arc::new(AtomicI64::new(0));
        let clock = seconds.clone();
        let now = move || {
            let passed = clock.load(Ordering::SeqCst);
            Moment {
                now: Timestamp(START + passed),
                lived: Duration::from_secs(passed.unsigned_abs()),
            }
        };
        let opened = StateStore::open(Some(&directory.path().join("state")), Arc::new(now));
        let (store, remembered) = opened.expect("no other owner");
        let options = SiteOptions {
            policies: directory.path().join("policies"),
            strict: false,
            may_be_missing: false,
            origins: KnownOrigins::default(),
            published_proof: false,
        };
        let live = SiteManager::start(options, (&store, &remembered), Timestamp(START));
        store.begin(Vec::new()).expect("begun");
        store.execute("PRAGMA max_page_count = 1");
        let large = LastGoodPolicy {
            site: "b".into(),
            text: "x".repeat(8_000),
        };
        store.put([Fact::set(Timestamp(START), large)]);
        World {
            directory,
            seconds,
            store,
            live: live.unwrap_or_else(|error| panic!("{error}")),
        }
    }

    fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp(START + self.seconds.load(Ordering::SeqCst))
    }

    fn publish(&self, rule: &str) -> ReloadReport {
        write_policy(self.directory.path(), rule, "");
        self.live.reload(self.now())
    }

    fn version(&self) -> Version {
        self.live.snapshot().sites()[0].site.robots_txt.version
    }

    fn is_waiting(&self) -> bool {
        self.live
            .status(self.now())
            .warnings
            .iter()
            .any(|warning| warning.id == "waits-for-state")
    }

    /// Whether pages are paused, and whether robots.txt is answered 503.
    fn paused(&self) -> (bool, bool) {
        let snapshot = self.live.snapshot();
        let entry = &snapshot.sites()[0];
        (
            entry.pause(self.now()).is_some(),
            entry.robots_txt.is_unavailable(),
        )
    }
}

fn write_policy(directory: &std::path::Path, rule: &str, more: &str) {
    let groups = format!("groups: [{{ agents: \"*\", disallow: [{rule}] }}]");
    let text = format!("hosts: a.example\nrobots: {{ origin: replace, {groups} }}\n{more}");
    fs::write(directory.join("policies/a.yaml"), text).expect("a policy");
}

#[test]
fn a_pause_that_cannot_be_stored_is_told() {
    let world = World::failing();
    assert_eq!(ids(&world.live.storing_problems()), [""; 0]);
    let request = PauseRequest {
        robots_txt: true,
        ..PauseRequest::default()
    };
    world.live.pause(&request, world.now()).expect("paused");
    assert_eq!(world.paused(), (true, false));
    assert_eq!(
        world.live.storing_problems().len(),
        2,
        "the 503 waits, and the pause is not stored"
    );
    world.store.execute("PRAGMA max_page_count = 1073741823");
    world.pass(1);
    assert!(world.live.publish_deferred(world.now()));
    assert_eq!(
        (world.paused(), world.live.storing_problems()),
        ((true, true), Vec::new())
    );
}

#[test]
fn new_version_waits_until_the_next_start_sees_a_gap() {
    let world = World::failing();
    let one = world.version();
    let report = world.publish("/two");
    assert!(report.waiting.is_some() && !report.is_whole());
    world.pass(GAP - 1);
    assert!(!world.live.publish_deferred(world.now()));
    assert_eq!((world.version(), world.is_waiting()), (one, true));
    world.pass(1);
    assert!(world.live.publish_deferred(world.now()));
    assert!(!world.is_waiting() && world.version() != one);
    let snapshot = world.live.snapshot();
    assert_eq!(snapshot.sites()[0].since, Timestamp(START + GAP));
    let superseded = &snapshot.history(b"a.example").superseded;
    let superseded: Vec<_> = superseded
        .iter()
        .map(|held| (held.parsed.version, held.superseded_at))
        .collect();
    assert_eq!(
        superseded,
        [(one, Timestamp(START + GAP))],
        "it was in force until then"
    );
}

#[test]
fn new_version_comes_into_force_when_the_store_can_be_written() {
    let world = World::failing();
    let one = world.version();
    world.publish("/two");
    world.store.execute("PRAGMA max_page_count = 1073741823");
    world.pass(1);
    assert!(world.live.publish_deferred(world.now()));
    assert!(!world.is_waiting() && world.version() != one);
    assert!(!world.live.publish_deferred(world.now()), "once");
}

#[test]
fn withdrawn_version_waits_no_more() {
    let world = World::failing();
    world.publish("/two");
    write_policy(world.directory.path(), "/one", "");
    world.live.reload(world.now());
    assert!(!world.is_waiting());
}

#[test]
fn pauses_of_pages_and_enforcement_wait_for_nothing() {
    let world = World::failing();
    write_policy(
        world.directory.path(),
        "/one",
        "enforcement: { mode: enforce }\n",
    );
    assert!(world.live.reload(world.now()).is_whole());
    assert_eq!(world.live.status(world.now()).sites[0].mode, "enforce");
    world.publish("/two");
    let pause = PauseRequest {
        seconds: Some(600),
        ..PauseRequest::default()
    };
    assert!(world.live.pause(&pause, world.now()).is_ok());
    assert_eq!((world.paused(), world.is_waiting()), ((true, false), true));
    assert_eq!(
        world.live.resume(None, world.now()),
        Ok(vec!["a".to_owned()])
    );
    assert_eq!(world.paused(), (false, false));
}

/// A crawler that receives 503 may use its copy for longer, and the next start has to know that.
#[test]
fn robots_txt_is_answered_503_only_when_the_store_knows() {
    let world = World::failing();
    let pause = PauseRequest {
        seconds: Some(600),
        robots_txt: true,
        ..PauseRequest::default()
    };
    assert!(world.live.pause(&pause, world.now()).is_ok());
    assert_eq!((world.paused(), world.is_waiting()), ((true, false), true));
    world.pass(GAP);
    assert!(world.live.publish_deferred(world.now()));
    assert_eq!(world.paused(), (true, true));
    assert!(world.live.resume(None, world.now()).is_ok());
    assert_eq!(world.paused(), (false, false));
}

#[test]
fn robots_txt_is_answered_503_by_the_snapshot_and_not_by_the_clock() {
    let world = World::failing();
    world.store.execute("PRAGMA max_page_count = 1073741823");
    let pause =
        "pause: { from: 1970-01-12T13:48:00Z, until: 1970-01-12T13:50:00Z, robots_txt: pause }\n";
    write_policy(world.directory.path(), "/one", pause);
    assert!(world.live.reload(world.now()).is_whole());
    assert_eq!(world.live.next_switch(), Some(Timestamp(START + 80)));
    world.pass(80);
    assert_eq!(
        world.paused(),
        (true, false),
        "the store does not know of it yet"
    );
    assert!(world.live.keep_time(world.now()).is_empty());
    assert_eq!(world.paused(), (true, true));
    world.pass(120);
    assert_eq!(world.paused(), (false, true));
    world.live.keep_time(world.now());
    assert_eq!(
        (world.paused(), world.live.next_switch()),
        ((false, false), None)
    );
    let snapshot = world.live.snapshot();
    let unavailable = &snapshot.history(b"a.example").unavailable;
    let spans: Vec<_> = unavailable
        .iter()
        .map(|span| (span.since.0 - START, span.until.map(|end| end.0 - START)))
        .collect();
    assert_eq!(spans, [(80, Some(200))]);
}
