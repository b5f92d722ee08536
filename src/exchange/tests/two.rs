//! Tests with two crawlgate instances and one shared store: both must agree on which versions of
//! robots.txt each crawler was served, even if an instance or the content of the store is lost.

use super::life::{InstanceDisk, SimulatedInstance, TestRequest, WaitOutcome};
use super::simulated::{ServerState, SimulatedServer, SimulatedStore};
use crate::exchange::codec::encode_event;
use crate::exchange::{
    ExchangeStore, LogEntry, Member, MemberState, NoAccusationReason, StoreBatch,
};
use crate::facts::{ClientMark, Fact};
use crate::time::Timestamp;
use crate::verdict::Kind;
use std::net::IpAddr;

const START: i64 = 1_000_000_000_000;
const HOUR: i64 = 3_600_000;

struct TwoInstances {
    store: SimulatedServer,
    now: i64,
    instances: Vec<SimulatedInstance>,
    recorded: Vec<(TestRequest, WaitOutcome)>,
}

impl TwoInstances {
    /// Two instances that have observed the host for more than a day.
    fn after_a_day_of_requests() -> TwoInstances {
        let store = SimulatedServer::new(1);
        let start = |number: usize, ahead| {
            SimulatedInstance::start(
                number,
                InstanceDisk::default(),
                number as u64 + 1,
                0,
                ahead,
                START,
            )
        };
        let instances = vec![start(0, 0), start(1, 3_000)];
        let mut world = TwoInstances {
            store,
            now: START,
            instances,
            recorded: Vec::new(),
        };
        world.pass_time(5_000);
        world.pass_hours(30);
        world
    }

    /// Hours pass, and the host is in use.
    fn pass_hours(&mut self, hours: i64) {
        for _ in 0..2 * hours {
            self.pass_time(HOUR / 2);
            for instance in &mut self.instances {
                instance.request_page(2, "/", false, self.now);
            }
            self.pass_time(2_000);
        }
    }

    fn pass_time(&mut self, milliseconds: i64) {
        let end = self.now + milliseconds;
        // Long times pass at once, and the last seconds turn by turn.
        self.now = self.now.max(end - 4_000);
        while self.now < end {
            self.now += 200;
            self.run_turns();
        }
    }

    fn run_turns(&mut self) {
        let now = self.now;
        self.store.with_state(|inner| inner.milliseconds = now);
        for instance in &mut self.instances {
            self.recorded.extend(instance.turn(&self.store, false, now));
        }
    }
}

#[test]
fn report_lost_with_instance_and_store_is_no_violation() {
    let mut world = TwoInstances::after_a_day_of_requests();
    for instance in &mut world.instances {
        instance.wanted = 1;
    }
    world.pass_hours(26);
    world.store.with_state(ServerState::back_up);
    // One is cut off from the store while the other one opens /p0/ and serves that.
    let mut other = world.instances.pop().expect("two");
    let from = world.now;
    world.pass_hours(12);
    world.instances[0].wanted = 0;
    world.pass_time(2_000);
    world.instances[0].serve_robots_txt(0, world.now);
    world.pass_time(1_000);
    for now in (from..world.now).step_by(50_000) {
        other.turn(&world.store, true, now);
    }
    world.store.with_state(ServerState::restart_from_backup);
    world.instances = vec![other];
    world.pass_time(2_000);
    world.pass_hours(14);
    assert_eq!(
        world.instances[0].request_page(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    world.pass_hours(12);
    assert_eq!(
        world.instances[0].request_page(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
}

#[test]
fn copy_of_an_instance_lost_in_an_outage_is_no_violation() {
    let mut world = TwoInstances::after_a_day_of_requests();
    world.instances.pop();
    world.store.with_state(|inner| inner.is_away = true);
    let now = world.now;
    world.instances.push(SimulatedInstance::start(
        2,
        InstanceDisk::default(),
        9,
        1,
        0,
        now,
    ));
    world.pass_hours(20);
    world.instances[0].serve_robots_txt(0, world.now);
    world.instances.remove(0);
    world.pass_hours(8);
    world.store.with_state(|inner| {
        inner.flush();
        inner.is_away = false;
    });
    world.pass_time(4_000);
    assert_eq!(
        world.instances[0].request_page(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    world.pass_hours(25);
    assert_eq!(
        world.instances[0].request_page(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
}

impl TwoInstances {
    /// Instances that find another store wait for some seconds.
    fn wait_for_witnesses(&mut self) {
        (0..3).for_each(|_| self.pass_time(3_000));
        let status = |instance: &SimulatedInstance| {
            instance
                .exchange
                .no_accusation_reason(instance.exchange_time(self.now))
        };
        assert!(
            self.instances
                .iter()
                .all(|instance| status(instance).is_none())
        );
    }

    /// Both have closed /p0/ for a day. One leaves in order and the other one sleeps for an hour.
    /// Meanwhile a new one opens /p0/, serves that to a crawler, and is lost. Who sleeps, and what
    /// the other one left.
    fn sleep_while_new_instance_serves(&mut self) -> (SimulatedInstance, InstanceDisk) {
        self.close_for_a_day();
        let left = self.instances.remove(1).stop(&self.store, false, self.now);
        self.pass_time(1_000);
        self.store.with_state(ServerState::back_up);
        let sleeper = self.instances.remove(0);
        self.lose_a_serving_new_instance();
        (sleeper, left)
    }

    fn close_for_a_day(&mut self) {
        self.instances
            .iter_mut()
            .for_each(|instance| instance.wanted = 1);
        self.pass_hours(26);
    }

    fn lose_a_serving_new_instance(&mut self) {
        let now = self.now;
        self.instances.push(SimulatedInstance::start(
            2,
            InstanceDisk::default(),
            9,
            0,
            0,
            now,
        ));
        self.pass_time(2_000);
        self.instances[0].serve_robots_txt(0, self.now);
        self.pass_hours(1);
        self.instances.clear();
    }
}

#[test]
fn restarted_observer_is_no_witness_for_a_sleeper() {
    let mut world = TwoInstances::after_a_day_of_requests();
    world.close_for_a_day();
    let sleepers = std::mem::take(&mut world.instances);
    world.lose_a_serving_new_instance();
    world.store.with_state(ServerState::flush);
    for sleeper in sleepers {
        world.instances.push(sleeper);
        (0..3).for_each(|_| world.pass_time(3_000));
    }
    world.wait_for_witnesses();
    assert_eq!(
        world.instances[1].request_page(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
}

#[test]
fn copy_of_an_unknown_instance_during_sleep_is_allowed() {
    let mut world = TwoInstances::after_a_day_of_requests();
    let (sleeper, left) = world.sleep_while_new_instance_serves();
    world.store.with_state(ServerState::flush);
    world.instances.push(sleeper);
    world.wait_for_witnesses();
    assert_eq!(
        world.instances[0].request_page(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    // One that comes back later takes it for no witness of what was before.
    let now = world.now;
    world
        .instances
        .push(SimulatedInstance::start(1, left, 10, 1, 3_000, now));
    world.wait_for_witnesses();
    assert_eq!(
        world.instances[1].request_page(0, "/p0/", false, world.now),
        Some(Kind::Unproven)
    );
    world.pass_hours(25);
    assert_eq!(
        world.instances[0].request_page(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
}

#[test]
fn observation_in_a_restored_store_does_not_count() {
    let mut world = TwoInstances::after_a_day_of_requests();
    let (sleeper, _) = world.sleep_while_new_instance_serves();
    world.store.with_state(ServerState::restart_from_backup);
    let now = world.now;
    world.instances.push(SimulatedInstance::start(
        3,
        InstanceDisk::default(),
        10,
        1,
        0,
        now,
    ));
    world.pass_time(1_000);
    world.instances.push(sleeper);
    world.wait_for_witnesses();
    // Once more the same copy, for instances that are awake.
    for _ in 0..2 {
        for place in [0, 1] {
            assert_eq!(
                world.instances[place].request_page(0, "/p0/", false, world.now),
                Some(Kind::Unproven)
            );
        }
        // What they tell of their visits is in the store, before that is lost.
        world.pass_time(2_000);
        world.store.with_state(ServerState::restart_from_backup);
        world.wait_for_witnesses();
    }
}

#[test]
fn copy_from_one_instance_counts_on_the_other() {
    let mut world = TwoInstances::after_a_day_of_requests();
    world.instances[0].serve_robots_txt(0, world.now);
    world.pass_time(1_000);
    for place in 0..2 {
        world.instances[place].wanted = 1;
    }
    world.pass_time(2_000);
    assert_eq!(
        world.instances[1].request_page(0, "/p0/", false, world.now),
        Some(Kind::StaleCopy)
    );
    world.pass_hours(25);
    assert_eq!(
        world.instances[1].request_page(0, "/p0/", true, world.now),
        None,
        "its copy is too old"
    );
    world.pass_time(5_000);
    assert!(
        world
            .recorded
            .last()
            .is_some_and(|(_, word)| *word == WaitOutcome::Violation)
    );
}

#[test]
fn copy_served_a_moment_ago_refutes_an_accusation() {
    let mut world = TwoInstances::after_a_day_of_requests();
    // Both close /p0/; the crawler holds the open file of a moment before, from the other instance.
    world.instances[0].wanted = 1;
    world.pass_time(400);
    world.instances[1].serve_robots_txt(0, world.now);
    world.instances[1].wanted = 1;
    world.run_turns();
    let found = world.instances[0].request_page(0, "/p0/", false, world.now);
    world.pass_time(5_000);
    let accused = world
        .recorded
        .iter()
        .any(|(_, word)| *word == WaitOutcome::Violation);
    assert!(!accused, "{found:?}");
}

#[test]
fn violation_is_recorded_within_about_a_second() {
    let mut world = TwoInstances::after_a_day_of_requests();
    assert_eq!(
        world.instances[0].request_page(0, "/never/", true, world.now),
        None
    );
    let asked = world.now;
    while world.recorded.is_empty() {
        world.pass_time(200);
        assert!(world.now - asked <= 1_200, "after {} ms", world.now - asked);
    }
    assert_eq!(world.recorded[0].1, WaitOutcome::Violation);
}

#[test]
fn outage_records_no_violation() {
    let mut world = TwoInstances::after_a_day_of_requests();
    world.store.with_state(|inner| inner.is_away = true);
    let found = world.instances[0].request_page(0, "/never/", true, world.now);
    assert_eq!(found, None);
    world.pass_time(10_000);
    assert_eq!(
        world
            .recorded
            .iter()
            .map(|(_, word)| *word)
            .collect::<Vec<_>>(),
        [WaitOutcome::Late]
    );
    assert_eq!(
        world.instances[0].request_page(0, "/never/", true, world.now),
        Some(Kind::Unproven)
    );
}

#[test]
fn peers_keep_their_state_during_an_outage() {
    let mut world = TwoInstances::after_a_day_of_requests();
    world.store.with_state(|inner| inner.is_away = true);
    // Whoever tries to announce looks at the clock.
    world.instances[0].wanted = 1;
    world.pass_time(60_000);
    let status = world.instances[0]
        .exchange
        .status(world.instances[0].exchange_time(world.now));
    let other = status
        .members
        .iter()
        .find(|found| found.member.id != status.id)
        .expect("the other one");
    assert_eq!(other.standing, MemberState::Present);
    assert!((58.0..63.0).contains(&other.lag), "{}", other.lag);
    let own = status
        .members
        .iter()
        .find(|found| found.member.id == status.id)
        .expect("its own entry");
    assert_eq!(own.standing, MemberState::Present);
}

#[test]
fn version_waits_until_the_store_accepts_it() {
    let mut world = TwoInstances::after_a_day_of_requests();
    world.store.with_state(|inner| inner.is_away = true);
    world.instances[0].wanted = 1;
    world.pass_time(60_000);
    assert_eq!(world.instances[0].version, 0);
    world.store.with_state(|inner| inner.is_away = false);
    world.pass_time(2_000);
    assert_eq!(world.instances[0].version, 1);
}

#[test]
fn instance_that_never_reached_the_store_is_silent() {
    let store = SimulatedServer::new(1);
    store.with_state(|inner| inner.is_away = true);
    let mut instance = SimulatedInstance::start(0, InstanceDisk::default(), 1, 0, 0, START);
    instance.turn(&store, false, START + 200);
    assert!(!instance.serves_robots_txt(START + 200));
    let withheld = |of: &SimulatedInstance, at| {
        of.exchange
            .status(of.exchange_time(at))
            .withholds_robots_txt_since
            .map(|since| since.0 * 1_000)
    };
    assert_eq!(withheld(&instance, START + 60_000), Some(START));
    store.with_state(|inner| inner.is_away = false);
    instance.turn(&store, false, START + 400);
    assert!(instance.serves_robots_txt(START + 400));
    assert!(instance.serves_robots_txt(START + 24 * HOUR - 1_000));
    assert_eq!(withheld(&instance, START + 24 * HOUR - 1_000), None);
    assert_eq!(
        withheld(&instance, START + 26 * HOUR),
        Some(START + 24 * HOUR)
    );
    assert!(
        !instance.serves_robots_txt(START + 24 * HOUR + 1_400),
        "silent for a day"
    );
}

impl TwoInstances {
    /// The first instance ends in order, and the store is flushed; its next process.
    fn restart_into_flushed_store(&mut self) -> SimulatedInstance {
        let instance = self.instances.remove(0);
        let disk = instance.stop(&self.store, false, self.now);
        self.store.with_state(super::simulated::ServerState::flush);
        SimulatedInstance::start(0, disk, 9, 0, 0, self.now)
    }
}

#[test]
fn instance_in_an_empty_store_waits_for_peers() {
    let mut world = TwoInstances::after_a_day_of_requests();
    let mut returned = world.restart_into_flushed_store();
    returned.turn(&world.store, false, world.now);
    assert_eq!(returned.exchange.settled, None);
    assert_eq!(
        returned
            .exchange
            .no_accusation_reason(returned.exchange_time(world.now)),
        Some(NoAccusationReason::StartingOver)
    );
    assert!(!returned.serves_robots_txt(world.now));
    // One turn finds another store, and the next one writes everything again.
    world.run_turns();
    world.run_turns();
    returned.turn(&world.store, false, world.now);
    assert!(returned.exchange.settled.is_some());
    assert!(returned.serves_robots_txt(world.now));
}

#[test]
fn instance_alone_in_an_empty_store_begins_anew() {
    let mut world = TwoInstances::after_a_day_of_requests();
    let returned = world.restart_into_flushed_store();
    world.instances.clear();
    world.instances.push(returned);
    world.pass_time(4_000);
    assert_eq!(world.instances[0].exchange.settled, None);
    world.pass_time(2_000);
    assert!(world.instances[0].exchange.settled.is_some());
    assert_eq!(
        world.instances[0]
            .exchange
            .no_accusation_reason(world.instances[0].exchange_time(world.now)),
        None
    );
    assert_eq!(
        world.instances[0].request_page(0, "/never/", true, world.now),
        Some(Kind::Unproven)
    );
}

#[test]
fn overlong_key_or_member_is_ignored_alone() {
    let mut world = TwoInstances::after_a_day_of_requests();
    let at = world.now.div_euclid(1_000);
    let facts = [
        ("a".repeat(5_000), "192.0.2.1"),
        ("other".into(), "192.0.2.2"),
    ];
    let facts = facts.map(|(crawler, address)| {
        let mark = ClientMark {
            site: "shop".into(),
            crawler,
            address: address.parse().expect("an address"),
            since: Timestamp(at),
            until: Timestamp(at + 86_400),
        };
        encode_event(&Fact::set(Timestamp(at), mark), at)
    });
    let host = "h".repeat(5_000);
    let entry = LogEntry {
        member: Member {
            id: "long".into(),
            run: "long.1".into(),
            host: host.clone(),
            ..Member::default()
        },
        ..LogEntry::default()
    };
    let batch = StoreBatch {
        facts: facts.into(),
        entry: Some(entry),
        ..StoreBatch::default()
    };
    let mut store = SimulatedStore(&world.store, false);
    let (identity, _) = store.identity("f00d").expect("an identity");
    store.write(&identity, &batch).expect("written");
    let now = world.now;
    let instance = SimulatedInstance::start(2, InstanceDisk::default(), 9, 0, 0, now);
    world.instances.push(instance);
    world.pass_time(4_000);
    let marked = world.instances[2].orders.marks_and_pause().0;
    assert_eq!(marked, ["192.0.2.2".parse::<IpAddr>().expect("an address")]);
    // The first ones read the log, and the last one the sets.
    for instance in &world.instances {
        let time = instance.exchange_time(world.now);
        let members = instance.exchange.status(time).members;
        assert_eq!(members.len(), 3);
        assert!(members.iter().all(|known| known.member.host != host));
    }
}

#[test]
fn new_instance_uses_observations_of_peers() {
    let mut world = TwoInstances::after_a_day_of_requests();
    let now = world.now;
    world.instances.push(SimulatedInstance::start(
        2,
        InstanceDisk::default(),
        9,
        0,
        -2_000,
        now,
    ));
    world.pass_time(4_000);
    assert_eq!(
        world.instances[2].request_page(0, "/never/", true, world.now),
        None
    );
    world.pass_time(3_000);
    assert!(
        world
            .recorded
            .last()
            .is_some_and(|(_, word)| *word == WaitOutcome::Violation)
    );
}
