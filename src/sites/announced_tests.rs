//! Changes of policies while other instances cannot be told: the robots.txt of the changed site
//! waits, and everything else takes effect.

use super::*;
use crate::clock::Moment;
use crate::policy::{SiteEntry, Version};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const START: Timestamp = Timestamp(1_000_000);

/// Other instances, as far as they can be told.
struct Told {
    is_away: Arc<AtomicBool>,
    published: Arc<AtomicUsize>,
}

impl PublicationSubscriber for Told {
    fn announce(&self, _log: &PublicationLog, _files: &[VersionFile]) -> Result<(), AnnounceError> {
        if self.is_away.load(Ordering::SeqCst) {
            Err(AnnounceError::Store("connection refused".into()))
        } else {
            Ok(())
        }
    }

    fn published(&self, _log: &PublicationLog, _sites: &[SiteEntry]) {
        self.published.fetch_add(1, Ordering::SeqCst);
    }
}

struct World {
    directory: tempfile::TempDir,
    live: Arc<SiteManager>,
    is_away: Arc<AtomicBool>,
    published: Arc<AtomicUsize>,
}

fn write(directory: &Path, site: &str, rule: &str, mode: &str) {
    let text = format!(
        "hosts: [{site}.example]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [{rule}] }}] }}\nenforcement: {{ mode: {mode} }}\n"
    );
    fs::write(directory.join(format!("{site}.yaml")), text).expect("written");
}

fn started(policies: &Path, store: &StateStore, remembered: &Remembered) -> Arc<SiteManager> {
    let options = SiteOptions {
        policies: policies.to_owned(),
        strict: false,
        may_be_missing: false,
        origins: KnownOrigins::default(),
        published_proof: false,
    };
    let live = SiteManager::start(options, (store, remembered), START);
    live.unwrap_or_else(|error| panic!("{error}"))
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        for site in ["one", "two"] {
            write(directory.path(), site, "/a", "observe");
        }
        let (store, remembered) = StateStore::in_memory_only();
        let live = started(directory.path(), &store, &remembered);
        let is_away = Arc::new(AtomicBool::new(true));
        let published = Arc::<AtomicUsize>::default();
        live.subscribe(Box::new(Told {
            is_away: is_away.clone(),
            published: published.clone(),
        }));
        assert_eq!(published.swap(0, Ordering::SeqCst), 1, "those in force");
        World {
            directory,
            live,
            is_away,
            published,
        }
    }

    fn write(&self, site: &str, rule: &str, mode: &str) {
        write(self.directory.path(), site, rule, mode);
    }

    fn of(&self, site: &str) -> (Version, String) {
        let snapshot = self.live.snapshot();
        let entry = &snapshot.sites()[snapshot.site_named(site).expect("the site")];
        (
            entry.site.robots_txt.version,
            format!("{:?}", entry.site.policy.enforcement.site.mode),
        )
    }
}

#[test]
fn a_robots_txt_waits_and_modes_do_not() {
    let world = World::new();
    let (one, two) = (world.of("one"), world.of("two"));
    world.write("one", "/b", "enforce");
    world.write("two", "/a", "enforce");
    let report = world.live.reload(START.plus(Duration::from_secs(1)));
    assert_eq!(report.waiting.expect("it waits").id, "waits-for-store");
    assert_eq!(world.of("one").0, one.0, "its new robots.txt waits");
    assert_ne!(world.of("one").1, one.1, "its mode does not");
    assert_eq!(world.of("two").0, two.0);
    assert_ne!(world.of("two").1, two.1);
    assert_eq!(world.published.load(Ordering::SeqCst), 0);
    let generation = world.live.snapshot().generation;
    for second in 2..5 {
        assert!(
            !world
                .live
                .publish_deferred(START.plus(Duration::from_secs(second)))
        );
    }
    assert_eq!(
        world.live.snapshot().generation,
        generation,
        "another attempt is no other generation"
    );
    // Back, before it was told.
    world.write("one", "/b", "observe");
    world.live.reload(START.plus(Duration::from_secs(5)));
    assert_eq!(world.of("one"), one);
    assert!(
        world.live.snapshot().generation > generation,
        "its mode is another one"
    );
    world.is_away.store(false, Ordering::SeqCst);
    assert!(
        world
            .live
            .publish_deferred(START.plus(Duration::from_secs(6)))
    );
    assert_ne!(world.of("one").0, one.0);
    assert_eq!(world.published.load(Ordering::SeqCst), 1);
    assert!(world.live.status(START).warnings.is_empty());
}

#[test]
fn tags_and_planned_pauses_wait_for_no_robots_txt() {
    let world = World::new();
    let before = world.of("one").0;
    let tells = |site: &str| {
        let snapshot = world.live.snapshot();
        let entry = &snapshot.sites()[snapshot.site_named(site).expect("the site")];
        let now = START.plus(Duration::from_secs(2));
        (
            entry.site.tags.identities().count(),
            entry.tag_ages.since.len(),
            entry.pause(now).is_some(),
        )
    };
    assert_eq!(tells("one"), (0, 0, false));
    let more = "indexing: [{ paths: [/p/], tag: noindex }]\npause: { audience: everyone, until: 1970-01-12T15:00:00Z }\n";
    for (site, rule) in [("one", "/b"), ("two", "/a")] {
        world.write(site, rule, "observe");
        let file = world.directory.path().join(format!("{site}.yaml"));
        let text = fs::read_to_string(&file).expect("read") + more;
        fs::write(file, text).expect("written");
    }
    let report = world.live.reload(START.plus(Duration::from_secs(1)));
    assert!(
        report
            .sites
            .iter()
            .all(|site| site.outcome == ReloadOutcome::Replaced),
        "{report:?}"
    );
    for site in ["one", "two"] {
        assert_eq!(tells(site), (1, 1, true), "{site}");
    }
    assert_eq!(world.of("one").0, before);
}

#[test]
fn a_host_that_moves_waits_with_both_sites() {
    let world = World::new();
    let before = world.live.snapshot();
    let text = fs::read_to_string(world.directory.path().join("two.yaml")).expect("read");
    fs::remove_file(world.directory.path().join("two.yaml")).expect("removed");
    fs::write(world.directory.path().join("three.yaml"), text).expect("written");
    world.live.reload(START.plus(Duration::from_secs(1)));
    let names = |snapshot: &Snapshot| -> Vec<String> {
        snapshot
            .sites()
            .iter()
            .map(|entry| entry.site.name.clone())
            .collect()
    };
    assert_eq!(names(&world.live.snapshot()), names(&before));
    world.is_away.store(false, Ordering::SeqCst);
    assert!(
        world
            .live
            .publish_deferred(START.plus(Duration::from_secs(2)))
    );
    assert_ne!(names(&world.live.snapshot()), names(&before));
}

#[test]
fn a_version_first_heard_of_elsewhere_is_stored_once_it_is_published() {
    let elsewhere = World::new();
    elsewhere.is_away.store(false, Ordering::SeqCst);
    elsewhere.write("one", "/b", "observe");
    elsewhere.live.reload(START);
    let (version, _) = elsewhere.of("one");
    let (log, files) = elsewhere.live.published();

    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write(directory.path(), "one", "/a", "observe");
    let now = || Moment {
        now: START,
        lived: Duration::ZERO,
    };
    let (store, remembered) =
        StateStore::open(Some(state.path()), Arc::new(now)).expect("no other owner");
    let live = started(directory.path(), &store, &remembered);
    store.begin(Vec::new()).expect("begun");
    let is_stored = || {
        let facts = StateStore::read(state.path(), START).expect("readable");
        facts
            .versions
            .iter()
            .any(|(_, stored)| stored.id == version)
    };
    let others = OfOthers {
        logs: vec![log],
        files,
    };
    assert!(live.others_published(others, START).is_ok());
    store.commit(Vec::new()).expect("committed");
    assert!(!is_stored(), "it is another instance's");
    write(directory.path(), "one", "/b", "observe");
    live.reload(START.plus(Duration::from_secs(1)));
    assert!(is_stored(), "the next start must know its rules");
}
