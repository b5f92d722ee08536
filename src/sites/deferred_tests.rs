//! Tests of policy changes while the state database cannot be written. A new robots.txt waits;
//! everything else takes effect.

use super::*;
use crate::clock::Moment;
use crate::facts::{Fact, LastGoodPolicy};
use crate::finding::finding_ids;
use crate::policy::RobotsVersionId;
use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

/// The next start sees a gap when so much time has passed since the last commit.
const GAP: i64 = 21;
const START: i64 = 1_000_000;

struct DeferredSites {
    directory: tempfile::TempDir,
    seconds: Arc<AtomicI64>,
    store: StateStore,
    manager: Arc<SiteManager>,
}

impl DeferredSites {
    /// Sites of which everything is written, and from now on nothing can be.
    fn failing() -> DeferredSites {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("policies")).expect("a folder");
        write_policy(directory.path(), "/one", "");
        let seconds = Arc::new(AtomicI64::new(0));
        let clock = seconds.clone();
        let now = move || {
            let passed = clock.load(Ordering::SeqCst);
            Moment {
                now: Timestamp(START + passed),
                monotonic: Duration::from_secs(passed.unsigned_abs()),
            }
        };
        let opened = StateStore::open(Some(&directory.path().join("state")), Arc::new(now));
        let (store, restored) = opened.expect("no other owner");
        let options = SiteLoadOptions {
            policies: directory.path().join("policies"),
            ..SiteLoadOptions::default()
        };
        let manager = SiteManager::start(options, &store, &restored, Timestamp(START));
        store.begin(Vec::new()).expect("begun");
        store.execute("PRAGMA max_page_count = 1");
        let large = LastGoodPolicy {
            site: "b".into(),
            text: "x".repeat(8_000),
        };
        store.put([Fact::set(Timestamp(START), large)]);
        DeferredSites {
            directory,
            seconds,
            store,
            manager: manager.unwrap_or_else(|error| panic!("{error}")),
        }
    }

    fn advance(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp(START + self.seconds.load(Ordering::SeqCst))
    }

    fn publish(&self, rule: &str) -> ReloadReport {
        write_policy(self.directory.path(), rule, "");
        self.manager.reload(self.now())
    }

    fn version(&self) -> RobotsVersionId {
        self.manager.snapshot().sites()[0].site.robots_txt.version
    }

    fn is_waiting(&self) -> bool {
        self.manager
            .status(self.now())
            .warnings
            .iter()
            .any(|warning| warning.id == "waits-for-state")
    }

    /// Whether pages are paused, and whether robots.txt is answered 503.
    fn paused_pages_and_robots(&self) -> (bool, bool) {
        let snapshot = self.manager.snapshot();
        let entry = &snapshot.sites()[0];
        (
            entry.active_pause(self.now()).is_some(),
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
fn unstored_pause_is_reported() {
    let sites = DeferredSites::failing();
    assert_eq!(finding_ids(&sites.manager.persistence_problems()), [""; 0]);
    let request = PauseRequest {
        robots_txt: true,
        ..PauseRequest::default()
    };
    sites.manager.pause(&request, sites.now()).expect("paused");
    assert_eq!(sites.paused_pages_and_robots(), (true, false));
    assert_eq!(
        sites.manager.persistence_problems().len(),
        2,
        "the 503 waits, and the pause is not stored"
    );
    sites.store.execute("PRAGMA max_page_count = 1073741823");
    sites.advance(1);
    assert!(sites.manager.publish_deferred(sites.now()));
    assert_eq!(
        (
            sites.paused_pages_and_robots(),
            sites.manager.persistence_problems()
        ),
        ((true, true), Vec::new())
    );
}

#[test]
fn new_version_waits_until_the_next_start_sees_a_gap() {
    let sites = DeferredSites::failing();
    let one = sites.version();
    let report = sites.publish("/two");
    assert!(report.waiting.is_some() && !report.is_complete());
    sites.advance(GAP - 1);
    assert!(!sites.manager.publish_deferred(sites.now()));
    assert_eq!((sites.version(), sites.is_waiting()), (one, true));
    sites.advance(1);
    assert!(sites.manager.publish_deferred(sites.now()));
    assert!(!sites.is_waiting() && sites.version() != one);
    let snapshot = sites.manager.snapshot();
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
    let sites = DeferredSites::failing();
    let one = sites.version();
    sites.publish("/two");
    sites.store.execute("PRAGMA max_page_count = 1073741823");
    sites.advance(1);
    assert!(sites.manager.publish_deferred(sites.now()));
    assert!(!sites.is_waiting() && sites.version() != one);
    assert!(!sites.manager.publish_deferred(sites.now()), "once");
}

#[test]
fn withdrawn_version_waits_no_more() {
    let sites = DeferredSites::failing();
    sites.publish("/two");
    write_policy(sites.directory.path(), "/one", "");
    sites.manager.reload(sites.now());
    assert!(!sites.is_waiting());
}

#[test]
fn pauses_of_pages_and_enforcement_wait_for_nothing() {
    let sites = DeferredSites::failing();
    write_policy(
        sites.directory.path(),
        "/one",
        "enforcement: { mode: enforce }\n",
    );
    assert!(sites.manager.reload(sites.now()).is_complete());
    assert_eq!(sites.manager.status(sites.now()).sites[0].mode, "enforce");
    sites.publish("/two");
    let pause = PauseRequest {
        seconds: Some(600),
        ..PauseRequest::default()
    };
    assert!(sites.manager.pause(&pause, sites.now()).is_ok());
    assert_eq!(
        (sites.paused_pages_and_robots(), sites.is_waiting()),
        ((true, false), true)
    );
    assert_eq!(
        sites.manager.resume(None, sites.now()),
        Ok(vec!["a".to_owned()])
    );
    assert_eq!(sites.paused_pages_and_robots(), (false, false));
}

/// A crawler that receives 503 may use its copy for longer, and the next start has to know that.
#[test]
fn robots_txt_is_answered_503_only_when_the_store_knows() {
    let sites = DeferredSites::failing();
    let pause = PauseRequest {
        seconds: Some(600),
        robots_txt: true,
        ..PauseRequest::default()
    };
    assert!(sites.manager.pause(&pause, sites.now()).is_ok());
    assert_eq!(
        (sites.paused_pages_and_robots(), sites.is_waiting()),
        ((true, false), true)
    );
    sites.advance(GAP);
    assert!(sites.manager.publish_deferred(sites.now()));
    assert_eq!(sites.paused_pages_and_robots(), (true, true));
    assert!(sites.manager.resume(None, sites.now()).is_ok());
    assert_eq!(sites.paused_pages_and_robots(), (false, false));
}

#[test]
fn robots_txt_is_answered_503_by_the_snapshot_and_not_by_the_clock() {
    let sites = DeferredSites::failing();
    sites.store.execute("PRAGMA max_page_count = 1073741823");
    let pause =
        "pause: { from: 1970-01-12T13:48:00Z, until: 1970-01-12T13:50:00Z, robots_txt: pause }\n";
    write_policy(sites.directory.path(), "/one", pause);
    assert!(sites.manager.reload(sites.now()).is_complete());
    assert_eq!(sites.manager.next_switch(), Some(Timestamp(START + 80)));
    sites.advance(80);
    assert_eq!(
        sites.paused_pages_and_robots(),
        (true, false),
        "the store does not know of it yet"
    );
    assert!(sites.manager.apply_due_changes(sites.now()).is_empty());
    assert_eq!(sites.paused_pages_and_robots(), (true, true));
    sites.advance(120);
    assert_eq!(sites.paused_pages_and_robots(), (false, true));
    sites.manager.apply_due_changes(sites.now());
    assert_eq!(
        (sites.paused_pages_and_robots(), sites.manager.next_switch()),
        ((false, false), None)
    );
    let snapshot = sites.manager.snapshot();
    let unavailable = &snapshot.history(b"a.example").unavailable;
    let spans: Vec<_> = unavailable
        .iter()
        .map(|span| (span.since.0 - START, span.until.map(|end| end.0 - START)))
        .collect();
    assert_eq!(spans, [(80, Some(200))]);
}
