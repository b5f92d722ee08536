//! Tests of policy changes while crawlgate cannot reach the store that it shares with its other
//! instances. A changed robots.txt waits, with the rest of its policy, until the other instances can
//! learn of it. Other sites take effect.

use super::*;
use crate::clock::Moment;
use crate::policy::{RobotsVersionId, SiteEntry};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const START: Timestamp = Timestamp(1_000_000);

/// Other instances, as far as they can be told.
struct RecordingSubscriber {
    is_away: Arc<AtomicBool>,
    published: Arc<AtomicUsize>,
}

impl PublicationSubscriber for RecordingSubscriber {
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

struct AnnouncedSites {
    directory: tempfile::TempDir,
    manager: Arc<SiteManager>,
    is_away: Arc<AtomicBool>,
    published: Arc<AtomicUsize>,
}

fn write_policy(directory: &Path, site: &str, rule: &str, mode: &str) {
    let text = format!(
        "hosts: [{site}.example]\nrobots: {{ origin: replace, groups: [{{ agents: '*', disallow: [{rule}] }}] }}\nenforcement: {{ mode: {mode} }}\n"
    );
    fs::write(directory.join(format!("{site}.yaml")), text).expect("written");
}

fn start_manager(
    policies: &Path,
    store: &StateStore,
    restored: &RestoredState,
) -> Arc<SiteManager> {
    let options = SiteLoadOptions {
        policies: policies.to_owned(),
        ..SiteLoadOptions::default()
    };
    let manager = SiteManager::start(options, store, restored, START);
    manager.unwrap_or_else(|error| panic!("{error}"))
}

impl AnnouncedSites {
    fn new() -> AnnouncedSites {
        let directory = tempfile::tempdir().expect("a directory");
        for site in ["one", "two"] {
            write_policy(directory.path(), site, "/a", "observe");
        }
        let (store, restored) = StateStore::in_memory_only();
        let manager = start_manager(directory.path(), &store, &restored);
        let is_away = Arc::new(AtomicBool::new(true));
        let published = Arc::<AtomicUsize>::default();
        manager.subscribe(Box::new(RecordingSubscriber {
            is_away: is_away.clone(),
            published: published.clone(),
        }));
        assert_eq!(published.swap(0, Ordering::SeqCst), 1, "those in force");
        AnnouncedSites {
            directory,
            manager,
            is_away,
            published,
        }
    }

    fn write_policy(&self, site: &str, rule: &str, mode: &str) {
        write_policy(self.directory.path(), site, rule, mode);
    }

    fn version_and_mode(&self, site: &str) -> (RobotsVersionId, String) {
        let snapshot = self.manager.snapshot();
        let entry = &snapshot.sites()[snapshot.site_index(site).expect("the site")];
        (
            entry.site.robots_txt.version,
            format!("{:?}", entry.site.policy.enforcement.site.mode),
        )
    }
}

#[test]
fn new_robots_txt_waits_and_other_sites_do_not() {
    let sites = AnnouncedSites::new();
    let (one, two) = (sites.version_and_mode("one"), sites.version_and_mode("two"));
    sites.write_policy("one", "/b", "enforce");
    sites.write_policy("two", "/a", "enforce");
    let report = sites.manager.reload(START.plus(Duration::from_secs(1)));
    assert_eq!(report.waiting.expect("it waits").id, "waits-for-store");
    assert_eq!(sites.version_and_mode("one"), one, "its policy waits");
    assert_eq!(sites.version_and_mode("two").0, two.0);
    assert_ne!(sites.version_and_mode("two").1, two.1);
    assert_eq!(sites.published.load(Ordering::SeqCst), 0);
    let generation = sites.manager.snapshot().generation;
    for second in 2..5 {
        assert!(
            !sites
                .manager
                .publish_deferred(START.plus(Duration::from_secs(second)))
        );
    }
    assert_eq!(
        sites.manager.snapshot().generation,
        generation,
        "another attempt is no other generation"
    );
    sites.write_policy("two", "/a", "observe");
    sites.manager.reload(START.plus(Duration::from_secs(5)));
    assert_eq!(sites.version_and_mode("two"), two);
    assert!(
        sites.manager.snapshot().generation > generation,
        "its mode is another one"
    );
    sites.is_away.store(false, Ordering::SeqCst);
    assert!(
        sites
            .manager
            .publish_deferred(START.plus(Duration::from_secs(6)))
    );
    assert_ne!(sites.version_and_mode("one").0, one.0);
    assert_eq!(sites.published.load(Ordering::SeqCst), 1);
    assert!(sites.manager.status(START).warnings.is_empty());
}

#[test]
fn tags_and_planned_pauses_wait_with_robots_txt() {
    let sites = AnnouncedSites::new();
    let before = sites.version_and_mode("one").0;
    let tells = |site: &str| {
        let snapshot = sites.manager.snapshot();
        let entry = &snapshot.sites()[snapshot.site_index(site).expect("the site")];
        let now = START.plus(Duration::from_secs(2));
        (
            entry.site.tags.rule_ids().count(),
            entry.tag_change_times.since.len(),
            entry.active_pause(now).is_some(),
        )
    };
    assert_eq!(tells("one"), (0, 0, false));
    let more = "indexing: [{ paths: [/p/], tag: noindex }]\npause: { audience: everyone, until: 1970-01-12T15:00:00Z }\n";
    for (site, rule) in [("one", "/b"), ("two", "/a")] {
        sites.write_policy(site, rule, "observe");
        let file = sites.directory.path().join(format!("{site}.yaml"));
        let text = fs::read_to_string(&file).expect("read") + more;
        fs::write(file, text).expect("written");
    }
    let report = sites.manager.reload(START.plus(Duration::from_secs(1)));
    assert!(
        report
            .sites
            .iter()
            .all(|site| site.outcome == ReloadOutcome::Replaced),
        "{report:?}"
    );
    assert_eq!(tells("one"), (0, 0, false));
    assert_eq!(tells("two"), (1, 1, true));
    let request = PauseRequest {
        site: Some("one".to_owned()),
        ..PauseRequest::default()
    };
    let paused = sites.manager.pause(&request, START);
    assert!(paused.is_ok(), "{paused:?}");
    assert_eq!(tells("one"), (0, 0, true), "an operator's pause");
    assert_eq!(sites.version_and_mode("one").0, before);
}

#[test]
fn moved_host_waits_with_both_sites() {
    let sites = AnnouncedSites::new();
    let before = sites.manager.snapshot();
    let text = fs::read_to_string(sites.directory.path().join("two.yaml")).expect("read");
    fs::remove_file(sites.directory.path().join("two.yaml")).expect("removed");
    fs::write(sites.directory.path().join("three.yaml"), text).expect("written");
    sites.manager.reload(START.plus(Duration::from_secs(1)));
    let names = |snapshot: &Snapshot| -> Vec<String> {
        snapshot
            .sites()
            .iter()
            .map(|entry| entry.site.name.clone())
            .collect()
    };
    assert_eq!(names(&sites.manager.snapshot()), names(&before));
    sites.is_away.store(false, Ordering::SeqCst);
    assert!(
        sites
            .manager
            .publish_deferred(START.plus(Duration::from_secs(2)))
    );
    assert_ne!(names(&sites.manager.snapshot()), names(&before));
}

#[test]
fn version_of_a_peer_is_stored_when_published_here() {
    let elsewhere = AnnouncedSites::new();
    elsewhere.is_away.store(false, Ordering::SeqCst);
    elsewhere.write_policy("one", "/b", "observe");
    elsewhere.manager.reload(START);
    let (version, _) = elsewhere.version_and_mode("one");
    let (log, files) = elsewhere.manager.publications();

    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(directory.path(), "one", "/a", "observe");
    let now = || Moment {
        now: START,
        monotonic: Duration::ZERO,
    };
    let (store, restored) =
        StateStore::open(Some(state.path()), Arc::new(now)).expect("no other owner");
    let manager = start_manager(directory.path(), &store, &restored);
    store.begin(Vec::new()).expect("begun");
    let is_stored = || {
        let facts = StateStore::read(state.path(), START).expect("readable");
        facts
            .versions
            .iter()
            .any(|(_, stored)| stored.id == version)
    };
    let others = PeerPublicationLogs {
        logs: vec![log],
        files,
    };
    assert!(manager.apply_peer_logs(others, START).is_ok());
    store.commit(Vec::new()).expect("committed");
    assert!(!is_stored(), "it is another instance's");
    write_policy(directory.path(), "one", "/b", "observe");
    manager.reload(START.plus(Duration::from_secs(1)));
    assert!(is_stored(), "the next start must know its rules");
}
