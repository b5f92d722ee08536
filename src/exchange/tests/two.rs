//! Two instances with one shared store agree on which versions crawlers were served.

use super::life::{Disk, Instance, Request, Word};
use super::simulated::{Inner, Simulated};
use crate::exchange::{Hindrance, Standing};
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
        let start = |number: usize, ahead| {
            Instance::start(number, Disk::default(), number as u64 + 1, 0, ahead, START)
        };
        let instances = vec![start(0, 0), start(1, 3_000)];
        let mut world = World {
            store,
            now: START,
            instances,
            recorded: Vec::new(),
        };
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
fn what_a_lost_instance_told_a_lost_store_is_no_violation() {
    let mut world = World::observed();
    for instance in &mut world.instances {
        instance.wanted = 1;
    }
    world.hours(26);
    world.store.change(Inner::back_up);
    // One is cut off from the store while the other one opens /p0/ and serves that.
    let mut other = world.instances.pop().expect("two");
    let from = world.now;
    world.hours(12);
    world.instances[0].wanted = 0;
    world.pass(2_000);
    world.instances[0].serve(0, world.now);
    world.pass(1_000);
    for now in (from..world.now).step_by(50_000) {
        other.turn(&world.store, true, now);
    }
    world.store.change(Inner::restart_from_backup);
    world.instances = vec![other];
    world.pass(2_000);
    world.hours(14);
    assert_eq!(
        world.instances[0].ask(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    world.hours(12);
    assert_eq!(
        world.instances[0].ask(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
}

#[test]
fn what_a_lost_instance_served_before_a_new_one_reached_the_store_is_no_violation() {
    let mut world = World::observed();
    world.instances.pop();
    world.store.change(|inner| inner.is_away = true);
    let now = world.now;
    world
        .instances
        .push(Instance::start(2, Disk::default(), 9, 1, 0, now));
    world.hours(20);
    world.instances[0].serve(0, world.now);
    world.instances.remove(0);
    world.hours(8);
    world.store.change(|inner| {
        inner.flush();
        inner.is_away = false;
    });
    world.pass(4_000);
    assert_eq!(
        world.instances[0].ask(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    world.hours(25);
    assert_eq!(
        world.instances[0].ask(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
}

impl World {
    /// Instances that find another store wait for some seconds.
    fn waits_for_witnesses(&mut self) {
        (0..3).for_each(|_| self.pass(3_000));
        let status = |instance: &Instance| instance.exchange.hindrance(instance.now(self.now));
        assert!(
            self.instances
                .iter()
                .all(|instance| status(instance).is_none())
        );
    }

    /// Both have closed /p0/ for a day. One leaves in order and the other one sleeps for an hour.
    /// Meanwhile a new one opens /p0/, serves that to a crawler, and is lost. Who sleeps, and what
    /// the other one left.
    fn sleeps_while_a_new_one_serves(&mut self) -> (Instance, Disk) {
        self.close_for_a_day();
        let left = self.instances.remove(1).end(&self.store, false, self.now);
        self.pass(1_000);
        self.store.change(Inner::back_up);
        let sleeper = self.instances.remove(0);
        self.a_new_one_serves_and_is_lost();
        (sleeper, left)
    }

    fn close_for_a_day(&mut self) {
        self.instances
            .iter_mut()
            .for_each(|instance| instance.wanted = 1);
        self.hours(26);
    }

    fn a_new_one_serves_and_is_lost(&mut self) {
        let now = self.now;
        self.instances
            .push(Instance::start(2, Disk::default(), 9, 0, 0, now));
        self.pass(2_000);
        self.instances[0].serve(0, self.now);
        self.hours(1);
        self.instances.clear();
    }
}

#[test]
fn one_that_began_anew_is_no_witness_for_another_that_slept() {
    let mut world = World::observed();
    world.close_for_a_day();
    let sleepers = std::mem::take(&mut world.instances);
    world.a_new_one_serves_and_is_lost();
    world.store.change(Inner::flush);
    for sleeper in sleepers {
        world.instances.push(sleeper);
        (0..3).for_each(|_| world.pass(3_000));
    }
    world.waits_for_witnesses();
    assert_eq!(
        world.instances[1].ask(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
}

#[test]
fn what_an_unknown_instance_served_while_another_one_slept_is_no_violation() {
    let mut world = World::observed();
    let (sleeper, left) = world.sleeps_while_a_new_one_serves();
    world.store.change(Inner::flush);
    world.instances.push(sleeper);
    world.waits_for_witnesses();
    assert_eq!(
        world.instances[0].ask(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    // One that comes back later takes it for no witness of what was before.
    let now = world.now;
    world
        .instances
        .push(Instance::start(1, left, 10, 1, 3_000, now));
    world.waits_for_witnesses();
    assert_eq!(
        world.instances[1].ask(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    world.hours(25);
    assert_eq!(
        world.instances[0].ask(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
}

#[test]
fn what_an_older_copy_of_the_store_says_of_observation_does_not_count() {
    let mut world = World::observed();
    let (sleeper, _) = world.sleeps_while_a_new_one_serves();
    world.store.change(Inner::restart_from_backup);
    let now = world.now;
    world
        .instances
        .push(Instance::start(3, Disk::default(), 10, 1, 0, now));
    world.pass(1_000);
    world.instances.push(sleeper);
    world.waits_for_witnesses();
    // Once more the same copy, for instances that are awake.
    for _ in 0..2 {
        for place in [0, 1] {
            assert_eq!(
                world.instances[place].ask(0, "/p0/", false, world.now),
                Some(Kind::Unproven)
            );
        }
        // What they tell of their visits is in the store, before that is lost.
        world.pass(2_000);
        world.store.change(Inner::restart_from_backup);
        world.waits_for_witnesses();
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
    assert_eq!(
        world.instances[1].ask(0, "/p0/", false, world.now),
        Some(Kind::StaleCopy)
    );
    world.hours(25);
    assert_eq!(
        world.instances[1].ask(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
    world.pass(5_000);
    assert!(
        world
            .recorded
            .last()
            .is_some_and(|(_, word)| *word == Word::Violation)
    );
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
    let accused = world
        .recorded
        .iter()
        .any(|(_, word)| *word == Word::Violation);
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
    assert_eq!(
        world
            .recorded
            .iter()
            .map(|(_, word)| *word)
            .collect::<Vec<_>>(),
        [Word::Late]
    );
    assert_eq!(
        world.instances[0].ask(0, "/never/", true, world.now),
        Some(Kind::Unproven)
    );
}

#[test]
fn while_the_store_is_away_others_stand_as_they_did() {
    let mut world = World::observed();
    world.store.change(|inner| inner.is_away = true);
    // Whoever tries to announce looks at the clock.
    world.instances[0].wanted = 1;
    world.pass(60_000);
    let status = world.instances[0]
        .exchange
        .status(world.instances[0].now(world.now));
    let other = status
        .members
        .iter()
        .find(|found| found.member.id != status.id)
        .expect("the other one");
    assert_eq!(other.standing, Standing::Present);
    assert!((58.0..63.0).contains(&other.lag), "{}", other.lag);
    let own = status
        .members
        .iter()
        .find(|found| found.member.id == status.id)
        .expect("its own entry");
    assert_eq!(own.standing, Standing::Present);
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
    let mut instance = Instance::start(0, Disk::default(), 1, 0, 0, START);
    instance.turn(&store, false, START + 200);
    assert!(!instance.speaks(START + 200));
    let withheld = |of: &Instance, at| {
        of.exchange
            .status(of.now(at))
            .withholds_robots_txt_since
            .map(|since| since.0 * 1_000)
    };
    assert_eq!(withheld(&instance, START + 60_000), Some(START));
    store.change(|inner| inner.is_away = false);
    instance.turn(&store, false, START + 400);
    assert!(instance.speaks(START + 400));
    assert!(instance.speaks(START + 24 * HOUR - 1_000));
    assert_eq!(withheld(&instance, START + 24 * HOUR - 1_000), None);
    assert_eq!(
        withheld(&instance, START + 26 * HOUR),
        Some(START + 24 * HOUR)
    );
    assert!(
        !instance.speaks(START + 24 * HOUR + 1_400),
        "silent for a day"
    );
}

impl World {
    /// The first instance ends in order, and the store is flushed; its next process.
    fn returns_to_a_flushed_store(&mut self) -> Instance {
        let instance = self.instances.remove(0);
        let disk = instance.end(&self.store, false, self.now);
        self.store.change(super::simulated::Inner::flush);
        Instance::start(0, disk, 9, 0, 0, self.now)
    }
}

#[test]
fn an_instance_that_finds_an_empty_store_waits_for_those_that_were_there() {
    let mut world = World::observed();
    let mut returned = world.returns_to_a_flushed_store();
    returned.turn(&world.store, false, world.now);
    assert_eq!(returned.exchange.settled(), None);
    assert_eq!(
        returned.exchange.hindrance(returned.now(world.now)),
        Some(Hindrance::StartingOver)
    );
    assert!(!returned.speaks(world.now));
    // One turn finds another store, and the next one writes everything again.
    world.turns();
    world.turns();
    returned.turn(&world.store, false, world.now);
    assert!(returned.exchange.settled().is_some());
    assert!(returned.speaks(world.now));
}

#[test]
fn an_instance_that_is_alone_in_an_empty_store_begins_anew_after_some_seconds() {
    let mut world = World::observed();
    let returned = world.returns_to_a_flushed_store();
    world.instances.clear();
    world.instances.push(returned);
    world.pass(4_000);
    assert_eq!(world.instances[0].exchange.settled(), None);
    world.pass(2_000);
    assert!(world.instances[0].exchange.settled().is_some());
    assert_eq!(
        world.instances[0]
            .exchange
            .hindrance(world.instances[0].now(world.now)),
        None
    );
    assert_eq!(
        world.instances[0].ask(0, "/never/", true, world.now),
        Some(Kind::Unproven)
    );
}

#[test]
fn a_fresh_instance_goes_by_what_the_others_observed() {
    let mut world = World::observed();
    let now = world.now;
    world
        .instances
        .push(Instance::start(2, Disk::default(), 9, 0, -2_000, now));
    world.pass(4_000);
    assert_eq!(world.instances[2].ask(0, "/never/", true, world.now), None);
    world.pass(3_000);
    assert!(
        world
            .recorded
            .last()
            .is_some_and(|(_, word)| *word == Word::Violation)
    );
}
