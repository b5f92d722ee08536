//! Random tests of the exchange of facts between crawlgate instances (such as which crawler fetched
//! which robots.txt). Three simulated instances share a store that fails in many ways. An
//! independent model knows which robots.txt each crawler may have cached. No obedient crawler may
//! be accused. When the failures are over, each violator must be caught. All instances must then
//! agree on which clients are marked as violators, and whether the site is paused.
//!
//! `EXCHANGE_LIVES=100000` runs that many random tests, beginning with seed `EXCHANGE_FIRST=N`.
//! `CRAWLGATE_SEED=N` runs the one with this seed.

mod crawlers;
mod trouble;

use super::TestRandom;
use super::life::{HOUR, InstanceDisk, Instances, SimulatedInstance, TestRequest, WaitOutcome};
use super::simulated::SimulatedServer;
use std::collections::BTreeMap;

const START: i64 = 1_000_000_000_000;
const SECOND: i64 = 1_000;
const GRACE: i64 = 24 * HOUR * SECOND;
const COUNT: usize = 3;

/// What an obedient crawler has cached: versions with the time at which it got them. It goes by any
/// that is young enough.
#[derive(Default)]
struct Copies(Vec<(usize, i64)>);

/// What happened in lives, so that it is known that they try what they are for.
#[derive(Clone, Copy, Debug, Default)]
struct LifeCounts {
    /// Requests of obedient crawlers that would be called violations without the word of the
    /// others.
    waited: u64,
    /// Requests of obedient crawlers by a copy that is not in force where they came.
    stale: u64,
    /// Of those, requests that the word of the others took back.
    taken_back: u64,
    requests: u64,
    violations: u64,
    /// Lives at whose end clients were marked, and the site was paused.
    marked: u64,
    paused: u64,
}

struct RandomLife {
    tally: LifeCounts,
    seed: u64,
    dice: TestRandom,
    store: SimulatedServer,
    now: i64,
    instances: Instances,
    /// What processes left that do not run.
    disks: BTreeMap<usize, (InstanceDisk, i64)>,
    /// Processes that are stopped by a signal until then.
    stopped: BTreeMap<usize, i64>,
    cut_off: BTreeMap<usize, i64>,
    ahead: [i64; COUNT],
    copies: [Copies; 2],
    runs: u64,
    target: usize,
    /// Versions that an instance is to publish from then on.
    rolled_out: Vec<(usize, i64, usize)>,
    caught: Option<i64>,
    log: Vec<String>,
}

impl Drop for RandomLife {
    /// Says how to play it again where it failed, and what happened in it where somebody does.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "CRAWLGATE_SEED={} cargo test --lib exchange::tests::lives plays this life again",
                self.seed
            );
            eprintln!("{}", self.log.join("\n"));
        }
    }
}

impl RandomLife {
    fn new(seed: u64) -> RandomLife {
        let mut dice = TestRandom(seed);
        let ahead = [0; COUNT].map(|_| dice.below(8_001) - 4_000);
        let store = SimulatedServer::new(dice.next_number());
        let target = usize::try_from(dice.below(8)).expect("small");
        let mut life = RandomLife {
            seed,
            dice,
            store,
            now: START,
            instances: Instances::new(),
            disks: BTreeMap::new(),
            stopped: BTreeMap::new(),
            cut_off: BTreeMap::new(),
            ahead,
            copies: Default::default(),
            runs: 0,
            target,
            rolled_out: Vec::new(),
            caught: None,
            tally: LifeCounts::default(),
            log: Vec::new(),
        };
        // A crawler may have any file from before.
        life.copies[0].0.push((0, START));
        (0..COUNT).for_each(|number| life.start_instance(number, InstanceDisk::default()));
        life
    }

    fn log(&mut self, what: impl FnOnce() -> String) {
        if std::env::var_os("CRAWLGATE_SEED").is_some() {
            let line = format!("{:>12.1} {}", (self.now - START) as f64 / 1e3, what());
            self.log.push(line);
        }
    }

    fn start_instance(&mut self, number: usize, disk: InstanceDisk) {
        self.log(|| format!("start {number}"));
        self.runs += 1;
        let run = self.seed.wrapping_mul(1_000).wrapping_add(self.runs);
        let instance =
            SimulatedInstance::start(number, disk, run, self.target, self.ahead[number], self.now);
        self.instances.insert(number, instance);
    }

    fn is_stopped(&self, number: usize) -> bool {
        self.stopped
            .get(&number)
            .is_some_and(|until| *until > self.now)
    }

    /// All instances that run take a turn, in any order.
    fn run_turns(&mut self) {
        let now = self.now;
        self.store.with_state(|inner| inner.milliseconds = now);
        let due: Vec<usize> = self
            .disks
            .iter()
            .filter(|(_, (_, at))| *at <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in due {
            if let Some((disk, _)) = self.disks.remove(&number) {
                self.start_instance(number, disk);
            }
        }
        for (number, at, version) in std::mem::take(&mut self.rolled_out) {
            match self.instances.get_mut(&number) {
                Some(instance) if at <= now => instance.wanted = version,
                _ if at <= now => {}
                _ => self.rolled_out.push((number, at, version)),
            }
        }
        let mut numbers: Vec<usize> = self.instances.keys().copied().collect();
        if self.dice.one_in(2) {
            numbers.reverse();
        }
        for number in numbers
            .into_iter()
            .filter(|number| !self.is_stopped(*number))
            .collect::<Vec<_>>()
        {
            let is_cut_off = self.cut_off.get(&number).is_some_and(|until| *until > now);
            let Some(instance) = self.instances.get_mut(&number) else {
                continue;
            };
            let over = instance.turn(&self.store, is_cut_off, now);
            over.into_iter()
                .for_each(|(request, word)| self.check_outcome(number, &request, word));
        }
    }

    fn check_outcome(&mut self, number: usize, request: &TestRequest, word: WaitOutcome) {
        if word != WaitOutcome::Violation {
            self.tally.taken_back +=
                u64::from(word == WaitOutcome::TakenBack && !request.is_violator);
            return;
        }
        let at = (self.now - START) as f64 / 1e3;
        assert!(
            request.is_violator,
            "instance {number} accuses an obedient crawler at {at:.1}: {request:?}"
        );
        self.tally.violations += 1;
        self.caught.get_or_insert(self.now - request.true_ms);
    }

    /// Turns of about 200 ms for so long.
    fn pass_time(&mut self, milliseconds: i64) {
        let end = self.now + milliseconds;
        while self.now < end {
            self.now += 150 + self.dice.below(100);
            self.run_turns();
        }
    }

    /// So much time passes at once, the last two seconds turn by turn.
    fn skip_time(&mut self, milliseconds: i64) {
        let end = self.now + milliseconds - 2 * SECOND;
        // Instances that wait for the store do not sleep: they try again all the time.
        while self.is_store_away() && self.now + 50 * SECOND < end {
            self.now += 50 * SECOND;
            self.run_turns();
        }
        self.now = end.max(self.now);
        self.pass_time(milliseconds.min(2 * SECOND));
    }

    fn is_store_away(&self) -> bool {
        self.store.with_state(|inner| inner.is_away)
            || self.cut_off.values().any(|until| *until > self.now)
    }

    /// An instance that runs, if there is one.
    fn any_running_instance(&mut self) -> Option<usize> {
        let running: Vec<usize> = self
            .instances
            .keys()
            .copied()
            .filter(|number| !self.is_stopped(*number))
            .collect();
        (!running.is_empty()).then(|| *self.dice.pick(&running))
    }

    fn play(mut self) -> (i64, i64, LifeCounts) {
        self.pass_time(3 * SECOND);
        // Trouble begins when crawlers are accused.
        self.pass_hours(26);
        if self.dice.one_in(2) {
            for _ in 0..3 {
                self.lose_instances_and_store();
                self.pass_hours(26);
            }
            return self.play_until_caught();
        }
        for _ in 0..4 {
            for _ in 0..6 {
                self.play_episode();
            }
            // The host is in use, and hours pass.
            let hours = 1 + self.dice.below(12);
            self.pass_hours(hours);
        }
        self.play_until_caught()
    }

    fn play_episode(&mut self) {
        if self.dice.one_in(2) {
            self.random_trouble();
        }
        if self.dice.one_in(2) {
            self.random_order();
        }
        for _ in 0..12 {
            match self.dice.below(8) {
                0 | 1 => self.fetch_robots_txt(),
                2..=4 => self.request_allowed_page(),
                5 => drop(self.request_disallowed()),
                6 => self
                    .store
                    .with_state(super::simulated::ServerState::replicate),
                _ => self.race_publication(),
            }
            let pause = *self.dice.pick(&[1, 200, 400, 1_500]);
            self.pass_time(pause);
        }
    }

    /// All instances have the same marks, and the same pause.
    fn assert_same_orders(&mut self) {
        let mut all = self
            .instances
            .values()
            .map(|instance| instance.orders.marks_and_pause());
        let (marks, paused) = all.next().expect("an instance");
        self.tally.marked += u64::from(!marks.is_empty());
        self.tally.paused += u64::from(paused);
        let all: Vec<_> = all.collect();
        let same = (marks, paused);
        assert!(
            all.iter().all(|other| *other == same),
            "{same:?}, others {all:?}"
        );
    }

    /// The host is in use. While hours pass at once, members are silent; in the seconds after it
    /// they are heard again.
    fn pass_hours(&mut self, hours: i64) {
        for _ in 0..hours {
            self.skip_time((HOUR - 1) * SECOND);
            self.visit_all();
            self.request_allowed_page();
            self.pass_time(SECOND);
        }
    }

    /// All is well from now on: says how long after a violation is recorded for the first time, and
    /// how long it took to be.
    fn play_until_caught(mut self) -> (i64, i64, LifeCounts) {
        self.store
            .with_state(|inner| (inner.is_away, inner.loses_answers) = (false, 0));
        self.stopped.clear();
        self.cut_off.clear();
        let left: Vec<(usize, InstanceDisk)> = std::mem::take(&mut self.disks)
            .into_iter()
            .map(|(number, (disk, _))| (number, disk))
            .collect();
        left.into_iter()
            .for_each(|(number, disk)| self.start_instance(number, disk));
        let well = self.now;
        self.caught = None;
        for _ in 0..2 * 54 {
            self.now += 30 * 60 * SECOND - 8 * SECOND;
            self.pass_time(2 * SECOND);
            self.visit_all();
            self.pass_time(SECOND);
            self.request_disallowed();
            self.pass_time(5 * SECOND);
            if let Some(took) = self.caught {
                self.assert_same_orders();
                return (self.now - well, took, self.tally);
            }
        }
        panic!("no violator is caught in the end")
    }
}

#[test]
fn random_lives_accuse_violators_only() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let (first, count) = match number("CRAWLGATE_SEED") {
        Some(seed) => (seed, 1),
        None => (
            number("EXCHANGE_FIRST").unwrap_or(1),
            number("EXCHANGE_LIVES").unwrap_or(30),
        ),
    };
    let (mut worst, mut slowest, mut all) = (0, 0, LifeCounts::default());
    for seed in first..first + count {
        let life = RandomLife::new(seed);
        let (well_after, took, tally) = life.play();
        all.requests += tally.requests;
        all.waited += tally.waited;
        all.taken_back += tally.taken_back;
        all.stale += tally.stale;
        all.violations += tally.violations;
        all.marked += tally.marked;
        all.paused += tally.paused;
        (worst, slowest) = (worst.max(well_after), slowest.max(took));
    }
    eprintln!(
        "{count} lives, {all:?}: caught at the latest {:.1} h after all was well, {:.1} s after the request",
        worst as f64 / 3.6e6,
        slowest as f64 / 1e3
    );
    let tried = [
        all.waited,
        all.taken_back,
        all.stale,
        all.violations,
        all.marked,
        all.paused,
    ];
    assert!(
        count == 1 || tried.iter().all(|tried| *tried > 0),
        "{all:?}"
    );
}
