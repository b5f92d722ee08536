//! What was noted by a clock that was ahead.

use super::*;

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
