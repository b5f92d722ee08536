//! What cannot be written for a while, and how long a stamp is believed: who was served what then, the next start does
//! not know.

use super::*;
use std::fs;

/// The rules that close every path.
const CLOSED: usize = 15;

/// Ticks until that is so: a table is written when it is time.
fn tick_until(world: &World, what: &str, done: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !done() {
        world.ledger.tick(&world.snapshot(), world.moment());
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
    }
}

fn open_again(world: &World, state: &Path, versions_missing: bool) -> Ledger {
    let options = LedgerOptions {
        state: Some(state.to_owned()),
        new_hosts: Vec::new(),
        versions_missing,
        ..LedgerOptions::default()
    };
    Ledger::open(options, &world.snapshot(), world.moment())
}

/// Since when the host that is watched for the shortest time is, which may be to come.
fn last_since(ledger: &Ledger) -> Option<Timestamp> {
    ledger.visits("shop").iter().map(|visits| visits.watched_since).max()
}

/// Puts a directory in the place of a file, which is kept beside it.
fn block(file: &Path) {
    if file.exists() {
        fs::rename(file, file.with_extension("away")).expect("moved");
    }
    fs::create_dir(file).expect("in the way");
}

fn unblock(file: &Path) {
    fs::remove_dir(file).expect("in the way");
    let _ = fs::rename(file.with_extension("away"), file);
}

#[test]
fn a_stamp_is_believed_for_a_minute_after_an_end_in_order_and_for_seconds_after_a_crash() {
    for (clean, away, kind) in [
        (true, 55, Kind::Violation),
        (true, 65, Kind::Unproven),
        (false, 5, Kind::Violation),
        (false, 18, Kind::Violation),
        (false, 25, Kind::Unproven),
        (false, 55, Kind::Unproven),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = settled(Some(directory.path()));
        world.ask(4, 0, "/");
        let stamp = directory.path().join("ledger/alive.json");
        let at = format!("\"at\":{},", world.wall().0);
        tick_until(&world, "a stamp", || fs::read_to_string(&stamp).is_ok_and(|text| text.contains(&at)));
        if clean {
            world.ledger.close(world.wall());
        }
        world.now += away;
        world.ledger = open_again(&world, directory.path(), false);
        assert_eq!(world.ask(0, 0, "/always/").0, kind, "clean: {clean}, {away} s");
    }
}

#[test]
fn there_is_no_stamp_while_the_table_or_the_stamp_cannot_be_written() {
    for name in ["visits.json", "alive.json"] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = settled(Some(directory.path()));
        world.ask(4, 0, "/");
        let (stamp, file) = (directory.path().join("ledger/alive.json"), directory.path().join("ledger").join(name));
        tick_until(&world, "a stamp", || stamp.is_file());
        block(&file);
        world.now += 1;
        world.fetch(0, 0);
        tick_until(&world, "a failure", || world.ledger.problem().is_some());
        assert!(!stamp.is_file(), "{name}");
        // A crash. The room is there again, and with it the table of before.
        world.now += 3;
        let aside = directory.path().join("aside");
        fs::create_dir_all(aside.join("ledger")).expect("a directory");
        let table =
            directory.path().join("ledger").join(if name == "visits.json" { "visits.away" } else { "visits.json" });
        fs::copy(table, aside.join("ledger/visits.json")).expect("a table");
        let ledger = open_again(&world, &aside, false);
        let before = std::mem::replace(&mut world.ledger, ledger);
        assert_eq!(world.ask(1, 0, "/always/").0, Kind::Unproven, "{name}");
        // Nobody crashed: it is tried until it is written.
        world.ledger = before;
        unblock(&file);
        tick_until(&world, "written", || world.ledger.problem().is_none() && stamp.is_file());
        world.ledger = open_again(&world, directory.path(), false);
        assert_eq!(world.ask(1, 0, "/always/").0, Kind::Violation, "{name}");
        world.publish(CLOSED);
        assert_eq!(world.ask(0, 0, "/p1/").0, Kind::StaleCopy, "{name}: what it fetched is written");
    }
}

#[test]
fn an_end_in_order_that_cannot_be_written_is_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = settled(Some(directory.path()));
    world.ask(4, 0, "/");
    let stamp = directory.path().join("ledger/alive.json");
    tick_until(&world, "a stamp", || stamp.is_file());
    world.fetch(0, 0);
    block(&directory.path().join("ledger/visits.json"));
    world.ledger.close(world.wall());
    assert!(!stamp.exists());
}

#[test]
fn where_versions_may_be_missing_all_watches_begin_anew_however_fresh_the_stamp_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = settled(Some(directory.path()));
    world.ask(4, 0, "/");
    world.ledger.close(world.wall());
    world.publish(CLOSED);
    world.now += 2;
    world.ledger = open_again(&world, directory.path(), true);
    assert_eq!(world.ask(0, 0, "/always/").0, Kind::Unproven);
    for _ in 0..5 {
        world.now += 6 * HOUR;
        world.ask(4, 0, "/");
    }
    assert_eq!(world.ask(0, 0, "/p1/"), (Kind::Violation, true), "a day later that is over");
}

#[test]
fn without_a_stamp_a_watch_that_waits_for_a_cache_waits_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = settled(Some(directory.path()));
    world.fetch(0, 0);
    let without_cache = world.entry.site.clone();
    let cached = site("disallow: [/p1/]", ", behind_cache: 20h");
    world.entry.site = cached;
    world.ledger.tick(&Snapshot::new(vec![world.entry.clone()], 1), world.moment());
    // The policy does without: until its time is over, the cache hands out what it has.
    world.entry.site = without_cache;
    world.ledger.tick(&Snapshot::new(vec![world.entry.clone()], 2), world.moment());
    world.ledger.close(world.wall());
    let since = last_since(&world.ledger);
    assert_eq!(since, Some(Timestamp(world.wall().0 + 20 * HOUR)));
    fs::remove_file(directory.path().join("ledger/alive.json")).expect("a stamp");
    world.now += 2;
    assert_eq!(last_since(&open_again(&world, directory.path(), false)), since);
    // By a clock that was set back meanwhile it waits as long.
    world.set = -10 * DAY;
    let since = last_since(&open_again(&world, directory.path(), false)).expect("a host");
    assert!(since.0.abs_diff(world.wall().0 + 20 * HOUR) <= 60 + 2, "{}", since.0 - world.wall().0);
}

#[test]
fn each_file_s_problem_is_said_until_it_is_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = settled(Some(directory.path()));
    world.ask(4, 0, "/");
    world.ledger.close(world.wall());
    let table = directory.path().join("ledger/visits.json");
    fs::write(&table, "{ torn").expect("written");
    let again = open_again(&world, directory.path(), false);
    assert!(again.problem().is_some_and(|said| said.contains("set aside")));
    let stamp = directory.path().join("ledger/alive.json");
    let _ = fs::remove_file(&stamp);
    block(&stamp);
    again.close(world.wall());
    let said = again.problem().expect("a problem");
    assert!(said.contains("alive.json: cannot be written") && !said.contains("set aside"), "{said}");
    unblock(&stamp);
    again.close(world.wall());
    assert_eq!(again.problem(), None);
}
