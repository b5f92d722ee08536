//! A state directory that cannot be written for a while: what the next start knows of that time, and what is made good.

use super::*;
use crate::policy::Version;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DAY: i64 = 86_400;

struct World {
    directory: tempfile::TempDir,
    live: Arc<SiteManager>,
}

impl World {
    /// The rules that are in force, everything written.
    fn new(rule: &str) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("policies")).expect("a folder");
        write_policy(directory.path(), rule);
        let live = start(directory.path(), 0);
        live.write_again(Timestamp(0));
        World { directory, live }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("state").join(name)
    }

    /// Puts other rules into force, and says which version they are.
    fn publish(&self, rule: &str, now: i64) -> Version {
        write_policy(self.directory.path(), rule);
        assert!(self.live.reload(Timestamp(now)).is_whole(), "the proxy runs on");
        self.version()
    }

    fn version(&self) -> Version {
        self.live.snapshot().sites()[0].site.robots_txt.version
    }

    fn warnings(&self) -> Vec<String> {
        self.live.status(Timestamp(0)).warnings
    }

    /// Until it is time to try again, and that is done.
    fn write_again(&self, done: impl Fn(&World) -> bool) {
        let began = std::time::Instant::now();
        while !done(self) {
            self.live.write_again(Timestamp(0));
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", self.warnings());
        }
    }

    fn start_again(&mut self, now: i64) {
        self.live = start(self.directory.path(), now);
    }

    fn held(&self) -> Vec<Version> {
        self.live.snapshot().history(b"a.example").superseded.iter().map(|held| held.former.version).collect()
    }
}

fn write_policy(directory: &Path, rule: &str) {
    let text =
        format!("hosts: a.example\nrobots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: [{rule}] }}] }}\n");
    fs::write(directory.join("policies/a.yaml"), text).expect("a policy");
}

fn start(directory: &Path, now: i64) -> Arc<SiteManager> {
    super::tests::start(&directory.join("policies"), Some(&directory.join("state")), now)
}

/// Puts something in the way of a file or a directory, which is kept beside it; and takes it away again.
struct InTheWay(PathBuf);

impl InTheWay {
    fn of(path: PathBuf) -> InTheWay {
        let is_file = path.is_file();
        fs::rename(&path, path.with_extension("away")).expect("it is there");
        if is_file { fs::create_dir(&path) } else { fs::write(&path, "in the way") }.expect("something in the way");
        InTheWay(path)
    }

    fn take_away(self) {
        if self.0.is_dir() { fs::remove_dir(&self.0) } else { fs::remove_file(&self.0) }.expect("it is in the way");
        fs::rename(self.0.with_extension("away"), &self.0).expect("as it was");
    }
}

#[test]
fn a_version_that_could_not_be_written_is_written_until_it_is_though_it_is_superseded() {
    let mut world = World::new("/one");
    let one = world.version();
    let in_the_way = InTheWay::of(world.path("versions"));
    let two = world.publish("/two", 10);
    let three = world.publish("/three", 20);
    assert!(!world.path("complete").exists(), "it is gone before anybody is served what is not written");
    assert_eq!(world.warnings().iter().filter(|warning| warning.contains("cannot be written")).count(), 2);
    world.live.write_again(Timestamp(0));
    assert!(!world.path("complete").exists());
    in_the_way.take_away();
    world.write_again(|world| world.warnings().is_empty());
    assert!(world.path("complete").exists());
    world.start_again(30);
    assert!(!world.live.versions_missing());
    assert_eq!(world.held(), [two, one]);
    assert_eq!(world.version(), three);
    assert_eq!(world.live.snapshot().history(b"a.example").unknown_until, None);
}

#[test]
fn a_version_that_nobody_may_hold_any_more_is_not_written_and_no_warning_stays() {
    let world = World::new("/one");
    let in_the_way = InTheWay::of(world.path("versions"));
    let two = world.publish("/two", 10);
    in_the_way.take_away();
    world.publish("/three", 20);
    assert!(!world.warnings().is_empty());
    world.live.reload(Timestamp(60 * DAY));
    assert_eq!(world.warnings(), Vec::<String>::new());
    world.write_again(|world| world.path("complete").exists());
    assert!(!world.path(&format!("versions/{two}.txt")).exists());
}

#[test]
fn a_start_after_that_knows_that_it_does_not_know() {
    for file in ["versions", "state.json"] {
        let mut world = World::new("/one");
        let in_the_way = InTheWay::of(world.path(file));
        world.publish("/two", 10);
        world.publish("/three", 20);
        in_the_way.take_away();
        world.start_again(30);
        assert!(world.live.versions_missing(), "{file}");
        assert_eq!(world.live.snapshot().history(b"a.example").identity_epoch, Timestamp(30), "{file}");
        // Nobody has noted yet that the watches begin anew.
        world.start_again(40);
        assert!(world.live.versions_missing(), "{file}");
        world.live.write_again(Timestamp(0));
        world.start_again(50);
        assert!(!world.live.versions_missing(), "{file}");
    }
}

#[test]
fn so_does_one_whose_state_was_lost() {
    for lose in [
        (|world| fs::remove_file(world.path("state.json"))) as fn(&World) -> std::io::Result<()>,
        |world| fs::write(world.path("state.json"), "{ torn"),
        |world| fs::remove_file(world.path("complete")),
        |world| fs::remove_dir_all(world.path("")),
    ] {
        let mut world = World::new("/one");
        lose(&world).expect("lost");
        world.start_again(10);
        assert!(world.live.versions_missing());
        // What is written again at the start does not make up for that.
        world.start_again(20);
        assert!(world.live.versions_missing());
    }
}

#[test]
fn everything_else_is_tried_again_without_a_reload() {
    let mut world = World::new("/one");
    let files = ["state.json", "last-good"];
    let in_the_way = files.map(|file| InTheWay::of(world.path(file)));
    world.publish("/two", 10);
    let pause = PauseRequest { seconds: Some(600), ..PauseRequest::default() };
    assert!(world.live.pause(&pause, Timestamp(20)).is_ok());
    assert_eq!(world.warnings().len(), 2, "{:?}", world.warnings());
    in_the_way.into_iter().for_each(InTheWay::take_away);
    world.write_again(|world| world.warnings().is_empty());
    let copy = fs::read_to_string(world.path("last-good/a.yaml")).expect("a copy");
    assert!(copy.contains("/two"));
    world.start_again(30);
    assert_eq!(world.live.status(Timestamp(30)).sites[0].paused_until, Some(Timestamp(620)));
}

#[test]
fn a_state_that_is_as_it_was_last_written_is_not_complained_of() {
    let world = World::new("/one");
    let in_the_way = InTheWay::of(world.path("state.json"));
    let pause = PauseRequest { seconds: Some(600), ..PauseRequest::default() };
    assert!(world.live.pause(&pause, Timestamp(20)).is_ok());
    assert_eq!(world.warnings().len(), 1);
    in_the_way.take_away();
    assert!(world.live.resume(None, Timestamp(21)).is_ok());
    assert_eq!(world.warnings(), Vec::<String>::new());
}

#[test]
fn a_directory_that_was_taken_away_is_made_again() {
    let world = World::new("/one");
    fs::remove_dir_all(world.path("")).expect("removed");
    fs::create_dir(world.path("")).expect("made");
    let two = world.publish("/two", 10);
    assert!(world.path(&format!("versions/{two}.txt")).exists());
    assert!(world.path("last-good/a.yaml").exists());
    assert_eq!(world.warnings(), Vec::<String>::new());
}

#[test]
fn a_version_whose_file_is_torn_is_written_again_when_it_is_in_force() {
    let mut world = World::new("/one");
    let one = world.version();
    let file = world.path(&format!("versions/{one}.txt"));
    let whole = fs::read(&file).expect("written");
    fs::write(&file, &whole[..5]).expect("torn");
    world.start_again(10);
    assert_eq!(fs::read(&file).expect("written"), whole);
    world.publish("/two", 20);
    world.start_again(30);
    assert_eq!(world.held(), [one]);
}
