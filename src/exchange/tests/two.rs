//! Two instances over one store agree on what was served.

use super::life::{Disk, Instance, Request, Word};
use super::simulated::Simulated;
use crate::exchange::Standing;
use crate::verdict::Kind;

const START: i64 = 1_000_000_000_000;
const HOUR: i64 = 3_600_000;

struct World {
    store: Simulated,
    now: i64,
    instances: Vec<Instance>,
    recorded: Vec<(Request, Word)>,
}

impl World {
    /// Two instances that have observed the host for more than a day.
    fn observed() -> World {
        let store = Simulated::new(1);
        let start =
            |number: usize, ahead| Instance::start(number, Disk::default(), number as u64 + 1, 0, (ahead, START));
        let instances = vec![start(0, 0), start(1, 3_000)];
        let mut world = World { store, now: START, instances, recorded: Vec::new() };
        world.pass(5_000);
        world.hours(30);
        world
    }

    /// Hours pass, and the host is in use.
    fn hours(&mut self, hours: i64) {
        for _ in 0..2 * hours {
            self.pass(HOUR / 2);
            for instance in &mut self.instances {
                instance.ask(2, "/", false, self.now);
            }
            self.pass(2_000);
        }
    }

    fn pass(&mut self, milliseconds: i64) {
        let end = self.now + milliseconds;
        // Long times pass at once, and the last seconds turn by turn.
        self.now = self.now.max(end - 4_000);
        while self.now < end {
            self.now += 200;
            self.turns();
        }
    }

    fn turns(&mut self) {
        let now = self.now;
        self.store.change(|inner| inner.milliseconds = now);
        for instance in &mut self.instances {
            self.recorded.extend(instance.turn(&self.store, false, now));
        }
    }
}

#[test]
fn a_copy_from_one_instance_counts_on_the_other() {
    let mut world = World::observed();
    world.instances[0].serve(0, world.now);
    world.pass(1_000);
    for place in 0..2 {
        world.instances[place].wanted = 1;
    }
    world.pass(2_000);
    assert_eq!(world.instances[1].ask(0, "/p0/", false, world.now), Some(Kind::StaleCopy));
    world.hours(25);
    assert_eq!(world.instances[1].ask(0, "/p0/", true, world.now), None, "its copy is too old");
    world.pass(5_000);
    assert!(world.recorded.last().is_some_and(|(_, word)| *word == Word::Violation));
}

#[test]
fn a_copy_that_was_served_a_moment_ago_takes_an_accusation_back() {
    let mut world = World::observed();
    // Both close /p0/; the crawler holds the open file of a moment before, from the other instance.
    world.instances[0].wanted = 1;
    world.pass(400);
    world.instances[1].serve(0, world.now);
    world.instances[1].wanted = 1;
    world.turns();
    let found = world.instances[0].ask(0, "/p0/", false, world.now);
    world.pass(5_000);
    let accused = world.recorded.iter().any(|(_, word)| *word == Word::Violation);
    assert!(!accused, "{found:?}");
}

#[test]
fn a_violation_is_recorded_within_a_second_or_so() {
    let mut world = World::observed();
    assert_eq!(world.instances[0].ask(0, "/never/", true, world.now), None);
    let asked = world.now;
    while world.recorded.is_empty() {
        world.pass(200);
        assert!(world.now - asked <= 1_200, "after {} ms", world.now - asked);
    }
    assert_eq!(world.recorded[0].1, Word::Violation);
}

#[test]
fn nothing_is_recorded_while_the_store_is_away() {
    let mut world = World::observed();
    world.store.change(|inner| inner.is_away = true);
    let found = world.instances[0].ask(0, "/never/", true, world.now);
    assert_eq!(found, None);
    world.pass(10_000);
    assert_eq!(world.recorded.iter().map(|(_, word)| *word).collect::<Vec<_>>(), [Word::Late]);
    assert_eq!(world.instances[0].ask(0, "/never/", true, world.now), Some(Kind::Unproven));
}

#[test]
fn while_the_store_is_away_others_stand_as_they_did() {
    let mut world = World::observed();
    world.store.change(|inner| inner.is_away = true);
    // Whoever tries to announce looks at the clock.
    world.instances[0].wanted = 1;
    world.pass(60_000);
    let status = world.instances[0].exchange.status(world.instances[0].now(world.now));
    let other = status.members.iter().find(|found| found.member.id != status.id).expect("the other one");
    assert_eq!(other.standing, Standing::Present);
    assert!((58.0..63.0).contains(&other.lag), "{}", other.lag);
}

#[test]
fn a_version_waits_until_the_store_has_taken_it() {
    let mut world = World::observed();
    world.store.change(|inner| inner.is_away = true);
    world.instances[0].wanted = 1;
    world.pass(60_000);
    assert_eq!(world.instances[0].version, 0);
    world.store.change(|inner| inner.is_away = false);
    world.pass(2_000);
    assert_eq!(world.instances[0].version, 1);
}

#[test]
fn an_instance_that_never_reached_the_store_serves_no_robots_txt() {
    let store = Simulated::new(1);
    store.change(|inner| inner.is_away = true);
    let mut instance = Instance::start(0, Disk::default(), 1, 0, (0, START));
    instance.turn(&store, false, START + 200);
    assert!(!instance.speaks(START + 200));
    store.change(|inner| inner.is_away = false);
    instance.turn(&store, false, START + 400);
    assert!(instance.speaks(START + 400));
    assert!(instance.speaks(START + 24 * HOUR - 1_000));
    assert!(!instance.speaks(START + 24 * HOUR + 1_400), "silent for a day");
}

#[test]
fn a_fresh_instance_goes_by_what_the_others_observed() {
    let mut world = World::observed();
    let now = world.now;
    world.instances.push(Instance::start(2, Disk::default(), 9, 0, (-2_000, now)));
    world.pass(4_000);
    assert_eq!(world.instances[2].ask(0, "/never/", true, world.now), None);
    world.pass(3_000);
    assert!(world.recorded.last().is_some_and(|(_, word)| *word == Word::Violation));
}
