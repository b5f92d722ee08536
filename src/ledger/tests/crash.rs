//! What a crash takes with it beside visits: word that robots.txt could not be had. And what was noted by a clock that
//! was ahead.

use super::*;
use crate::policy::model::Audience;
use crate::policy::site::ActivePause;

impl World {
    /// robots.txt is answered 503 from now on, for so long.
    fn pause(&mut self, hours: i64) {
        let (from, until) = (self.wall(), Timestamp(self.wall().0 + hours * HOUR));
        self.entry.pauses = vec![ActivePause {
            audience: Audience::Crawlers,
            from,
            until,
            retry_after: 60,
            robots_txt_until: Some(until),
            at_run_time: true,
        }];
    }

    /// Everything up to now is on disk.
    fn write(&self, directory: &Path) {
        let stamp = directory.join("ledger/alive.json");
        let at = format!("\"at\":{},", self.wall().0);
        while !std::fs::read_to_string(&stamp).is_ok_and(|text| text.contains(&at)) {
            self.ask(4, 0, "/");
            self.ledger.tick(&self.snapshot(), self.moment());
        }
    }
}

/// How a pause of robots.txt and a crash meet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meeting {
    /// It is not over at the next start.
    Lasts,
    /// It was there when the last stamp was written, and is over at the next start.
    IsOver,
    /// Nobody crashes: what was heard is written.
    EndsInOrder,
    /// There is none.
    None,
    /// It began after the last write of the ledger, and its beginning was written by who began it.
    Remembered,
}

#[test]
fn who_heard_503_in_the_last_second_before_a_crash_may_go_on_by_its_copy() {
    for meeting in [Meeting::Lasts, Meeting::IsOver, Meeting::EndsInOrder, Meeting::Remembered, Meeting::None] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = settled(Some(directory.path()));
        for crawler in [0, 3] {
            world.fetch(crawler, 0);
        }
        world.publish(15);
        world.live(20);
        match meeting {
            Meeting::Lasts => {
                world.write(directory.path());
                world.pause(2);
            }
            Meeting::IsOver => {
                world.pause(2);
                world.now += 1;
                world.write(directory.path());
                world.entry.pauses.clear();
            }
            Meeting::EndsInOrder | Meeting::Remembered | Meeting::None => world.write(directory.path()),
        }
        // bingbot may hear 503 here, and nobody will know. Who was served nothing for two days holds no copy.
        world.now += 3;
        if meeting == Meeting::Remembered {
            let withheld = [world.entry.site.name.clone()].into();
            let options =
                LedgerOptions { state: Some(directory.path().to_owned()), withheld, ..LedgerOptions::default() };
            world.ledger = Ledger::open(options, &world.snapshot(), world.moment());
        } else {
            world.start_again(directory.path(), meeting == Meeting::EndsInOrder);
        }
        world.live(6);
        let prolonged = matches!(meeting, Meeting::Lasts | Meeting::IsOver | Meeting::Remembered);
        let kind = world.ask(0, 0, "/p1/").0;
        assert_eq!(kind, if prolonged { Kind::StaleCopy } else { Kind::Violation }, "{meeting:?}");
        assert_eq!(world.ask(1, 0, "/p1/").0, Kind::Violation, "{meeting:?}");
        world.live(20);
        assert_eq!(world.ask(0, 0, "/p1/").0, Kind::Violation, "{meeting:?}");
        // DuckAssistBot keeps its copy for three days.
        assert_eq!(world.ask(3, 0, "/p1/").0, Kind::StaleCopy, "{meeting:?}");
        world.live(27);
        assert_eq!(world.ask(3, 0, "/p1/").0, if prolonged { Kind::StaleCopy } else { Kind::Violation }, "{meeting:?}");
        world.live(20);
        assert_eq!(world.ask(3, 0, "/p1/").0, Kind::Violation, "{meeting:?}");
    }
}

#[test]
fn so_may_who_goes_by_a_copy_from_before_the_watch() {
    // Started anew twice, the second crash after the first one's time.
    for crashes in [1, 2] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = World::new(Some(directory.path()), 15, 1_000 * DAY);
        world.ask(4, 0, "/");
        for _ in 0..crashes {
            world.live(20);
            world.write(directory.path());
            world.pause(2);
            world.now += 3;
            world.start_again(directory.path(), false);
        }
        world.live(23);
        assert_eq!(world.ask(0, 0, "/p1/").0, Kind::Unproven, "{crashes}");
        world.live(2);
        assert_eq!(world.ask(0, 0, "/p1/").0, Kind::Violation, "{crashes}");
    }
}

#[test]
fn what_was_served_while_the_clock_was_ahead_is_held_for_its_time_from_when_that_is_noticed() {
    for restart in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = World::new(Some(directory.path()), 0, 1_000 * DAY);
        world.set = 10 * DAY;
        world.ledger.tick(&world.snapshot(), world.moment());
        world.fetch(0, 0);
        world.ask(4, 0, "/");
        world.ledger.close(world.wall());
        world.set = 0;
        if restart {
            world.ledger = open(Some(directory.path()), &world.snapshot(), world.now, 0);
        } else {
            world.ledger.tick(&world.snapshot(), world.moment());
        }
        for visits in world.ledger.visits("shop") {
            assert!(visits.versions.iter().all(|visit| visit.at <= world.wall()), "{visits:?}");
        }
        world.live(2);
        world.publish(15);
        world.live(21);
        assert_eq!(world.ask(0, 0, "/p1/").0, Kind::StaleCopy, "restart: {restart}");
        world.live(5);
        assert_eq!(world.ask(0, 0, "/p1/").0, Kind::Violation, "restart: {restart}");
    }
}
