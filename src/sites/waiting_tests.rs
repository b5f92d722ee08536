//! What is new while nothing can be written and no file taken away: it waits, and what was in force stays.

use super::*;
use crate::durable::Part;
use crate::policy::Version;
use std::fs;
use std::path::{Path, PathBuf};

struct World {
    directory: tempfile::TempDir,
    live: Arc<SiteManager>,
}

/// Since then the stamp is too old.
const TOO_OLD: i64 = 120;

impl World {
    /// Everything is written, and the stamp is believed for a while.
    fn new(rule: &str) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("policies")).expect("a folder");
        write_policy(directory.path(), rule, "");
        let live = start(directory.path(), 0);
        live.write_again(Timestamp(0));
        fs::create_dir(directory.path().join("state/ledger")).expect("a folder");
        let stamped =
            live.witnesses().put_stamp(Timestamp(95)..=Timestamp(TOO_OLD - 1), |file| fs::write(file, "1").is_ok());
        assert!(stamped && live.witnesses().has_mark());
        World { directory, live }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("state").join(name)
    }

    /// Nothing can be written, and neither file taken away.
    fn block(&self) {
        for file in ["state.json", "versions", "complete", "ledger/alive.json"] {
            let path = self.path(file);
            fs::rename(&path, path.with_extension("away")).expect("it is there");
            if file == "versions" {
                fs::write(path, "in the way")
            } else {
                fs::create_dir_all(path.join("in the way"))
            }
            .expect("in the way");
        }
    }

    fn unblock(&self) {
        for file in ["state.json", "versions", "complete", "ledger/alive.json"] {
            let path = self.path(file);
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.expect("in the way");
            fs::rename(path.with_extension("away"), &path).expect("as it was");
        }
    }

    fn publish(&self, rule: &str, now: i64) -> ReloadReport {
        write_policy(self.directory.path(), rule, "");
        self.live.reload(Timestamp(now))
    }

    fn version(&self) -> Version {
        self.live.snapshot().sites()[0].site.robots_txt.version
    }

    fn waits(&self) -> bool {
        self.live.status(Timestamp(0)).warnings.iter().any(|warning| warning.contains("what is new waits"))
    }

    /// Until it is time to try again, and that is done.
    fn write_again(&self, now: i64) -> bool {
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_secs(20) {
            if self.live.write_again(Timestamp(now)) {
                return true;
            }
        }
        false
    }
}

fn write_policy(directory: &Path, rule: &str, more: &str) {
    let groups = format!("groups: [{{ agents: \"*\", disallow: [{rule}] }}]");
    let text = format!("hosts: a.example\nrobots: {{ origin: replace, {groups} }}\n{more}");
    fs::write(directory.join("policies/a.yaml"), text).expect("a policy");
}

fn start(directory: &Path, now: i64) -> Arc<SiteManager> {
    super::tests::start(&directory.join("policies"), Some(&directory.join("state")), now)
}

#[test]
fn what_the_next_start_would_know_nothing_of_waits_until_the_stamp_is_too_old_and_that_is_said() {
    let world = World::new("/one");
    let one = world.version();
    world.block();
    for (rule, now) in [("/two", 100), ("/three", 105)] {
        let report = world.publish(rule, now);
        assert!(report.waiting.is_some() && !report.is_whole());
        assert!(!world.live.write_again(Timestamp(now)));
        assert_eq!((world.version(), world.waits()), (one, true));
    }
    assert!(world.write_again(TOO_OLD));
    assert!(!world.waits());
    let snapshot = world.live.snapshot();
    let entry = &snapshot.sites()[0];
    assert_ne!(entry.site.robots_txt.version, one);
    assert_eq!(entry.since, Timestamp(TOO_OLD));
    let superseded = &snapshot.history(b"a.example").superseded;
    let held = superseded.iter().find(|held| held.former.version == one).expect("it may be held");
    assert_eq!(held.superseded_at, Timestamp(TOO_OLD), "it was in force until then");
}

#[test]
fn it_waits_until_everything_is_written() {
    let world = World::new("/one");
    let one = world.version();
    world.block();
    world.publish("/two", 100);
    world.unblock();
    assert_eq!(world.version(), one);
    assert!(world.write_again(103));
    assert!(!world.waits());
    let two = world.version();
    let began = std::time::Instant::now();
    while !world.path("complete").is_file() {
        world.live.write_again(Timestamp(103));
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
    }
    let live = start(world.directory.path(), 110);
    assert!(!live.versions_missing());
    let snapshot = live.snapshot();
    let entry = &snapshot.sites()[0];
    assert_eq!((entry.site.robots_txt.version, entry.since), (two, Timestamp(103)));
    let superseded = &snapshot.history(b"a.example").superseded;
    let held: Vec<_> = superseded.iter().map(|held| (held.former.version, held.superseded_at)).collect();
    assert_eq!(held, [(one, Timestamp(103))]);
}

#[test]
fn a_file_that_can_be_taken_away_lets_it_pass_whichever_it_is() {
    for file in ["complete", "ledger/alive.json"] {
        let world = World::new("/one");
        let one = world.version();
        world.block();
        fs::remove_dir_all(world.path(file)).expect("in the way");
        assert!(world.publish("/two", 100).is_whole());
        assert_ne!(world.version(), one);
    }
}

#[test]
fn pauses_and_what_is_no_version_wait_for_nothing() {
    let world = World::new("/one");
    world.block();
    let pause = PauseRequest { seconds: Some(600), ..PauseRequest::default() };
    assert!(world.live.pause(&pause, Timestamp(100)).is_ok());
    assert!(!world.waits());
    write_policy(world.directory.path(), "/one", "enforcement: { mode: enforce }\n");
    assert!(world.live.reload(Timestamp(101)).is_whole());
    assert_eq!(world.live.status(Timestamp(101)).sites[0].mode, "enforce");
    world.publish("/two", 102);
    assert!(world.waits());
    assert_eq!(world.live.resume(None, Timestamp(103)), Ok(vec!["a".to_owned()]));
    assert_eq!(world.live.status(Timestamp(103)).sites[0].paused_until, None);
}

/// Who hears 503 may go by its copy for longer, and the next start would not know of it.
#[test]
fn a_robots_txt_that_was_answered_is_not_refused_before_the_stamp_is_too_old() {
    let withholds = |world: &World, now: i64| {
        let snapshot = world.live.snapshot();
        let entry = &snapshot.sites()[0];
        (entry.pause(Timestamp(now)).is_some(), entry.withholds_robots_txt(Timestamp(now)))
    };
    let world = World::new("/one");
    world.block();
    let pause = PauseRequest { seconds: Some(600), robots_txt: true, ..PauseRequest::default() };
    assert!(world.live.pause(&pause, Timestamp(100)).is_ok());
    assert_eq!((withholds(&world, 101), world.waits()), ((true, false), true));
    assert!(!world.live.write_again(Timestamp(102)));
    assert_eq!(withholds(&world, 102), (true, false), "still");
    assert!(world.write_again(TOO_OLD));
    assert_eq!((withholds(&world, TOO_OLD), world.waits()), ((true, true), false));

    // An origin's file that is asked for and not there.
    let world = World::new("/one");
    world.block();
    let text = "hosts: a.example\nrobots: { groups: [{ agents: \"*\", disallow: [/one] }] }\n";
    fs::write(world.directory.path().join("policies/a.yaml"), text).expect("a policy");
    assert!(world.live.reload(Timestamp(100)).waiting.is_some());
    assert_eq!(withholds(&world, 101), (false, false));
    assert!(world.write_again(TOO_OLD));
    assert_eq!(withholds(&world, TOO_OLD), (false, true));

    // Where all can be written nothing waits.
    let world = World::new("/one");
    assert!(world.live.pause(&pause, Timestamp(100)).is_ok());
    assert_eq!((withholds(&world, 101), world.waits()), ((true, true), false));
    // The beginning is on the disk at once, whatever the ledger has written by then.
    assert!(start(world.directory.path(), 102).withheld_before().contains("a"));
    assert!(world.live.resume(None, Timestamp(103)).is_ok());
    assert!(start(world.directory.path(), 104).withheld_before().is_empty());
}

#[test]
fn no_mark_is_put_back_before_the_visits_are_written() {
    let world = World::new("/one");
    let witnesses = world.live.witnesses();
    witnesses.note(Part::Visits, false);
    world.live.write_again(Timestamp(100));
    assert!(!world.path("complete").exists());
    witnesses.note(Part::Visits, true);
    let began = std::time::Instant::now();
    while !world.path("complete").exists() {
        world.live.write_again(Timestamp(100));
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
    }
}
