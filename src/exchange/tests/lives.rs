//! Random lives of three instances and a store with every trouble, against an independent model of
//! what each crawler may have cached: no obedient crawler is accused, and each violator is caught
//! once all is well. Then all instances have the same marks of clients and the same pause, whatever
//! was said of them in between.
//!
//! `EXCHANGE_LIVES=100000` plays more of them, from `EXCHANGE_FIRST=N` on; `CRAWLGATE_SEED=N` one
//! alone, and says what happens where it fails.

mod crawlers;
mod trouble;

use super::Dice;
use super::life::{Disk, HOUR, Instance, Instances, Request, Word};
use super::simulated::Simulated;
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
struct Tally {
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

struct Life {
    tally: Tally,
    seed: u64,
    dice: Dice,
    store: Simulated,
    now: i64,
    instances: Instances,
    /// What processes left that do not run.
    disks: BTreeMap<usize, (Disk, i64)>,
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

impl Drop for Life {
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

impl Life {
    fn new(seed: u64) -> Life {
        let mut dice = Dice(seed);
        let ahead = [0; COUNT].map(|_| dice.below(8_001) - 4_000);
        let store = Simulated::new(dice.next());
        let target = usize::try_from(dice.below(8)).expect("small");
        let mut life = Life {
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
            tally: Tally::default(),
            log: Vec::new(),
        };
        // A crawler may have any file from before.
        life.copies[0].0.push((0, START));
        (0..COUNT).for_each(|number| life.start(number, Disk::default()));
        life
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        if std::env::var_os("CRAWLGATE_SEED").is_some() {
            let line = format!("{:>12.1} {}", (self.now - START) as f64 / 1e3, what());
            self.log.push(line);
        }
    }

    fn start(&mut self, number: usize, disk: Disk) {
        self.say(|| format!("start {number}"));
        self.runs += 1;
        let run = self.seed.wrapping_mul(1_000).wrapping_add(self.runs);
        let instance =
            Instance::start(number, disk, run, self.target, self.ahead[number], self.now);
        self.instances.insert(number, instance);
    }

    fn is_stopped(&self, number: usize) -> bool {
        self.stopped
            .get(&number)
            .is_some_and(|until| *until > self.now)
    }

    /// All instances that run take a turn, in any order.
    fn turns(&mut self) {
        let now = self.now;
        self.store.change(|inner| inner.milliseconds = now);
        let due: Vec<usize> = self
            .disks
            .iter()
            .filter(|(_, (_, at))| *at <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in due {
            if let Some((disk, _)) = self.disks.remove(&number) {
                self.start(number, disk);
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
                .for_each(|(request, word)| self.recorded(number, &request, word));
        }
    }

    fn recorded(&mut self, number: usize, request: &Request, word: Word) {
        if word != Word::Violation {
            self.tally.taken_back += u64::from(word == Word::TakenBack && !request.is_violator);
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
    fn pass(&mut self, milliseconds: i64) {
        let end = self.now + milliseconds;
        while self.now < end {
            self.now += 150 + self.dice.below(100);
            self.turns();
        }
    }

    /// So much time passes at once, the last two seconds turn by turn.
    fn later(&mut self, milliseconds: i64) {
        let end = self.now + milliseconds - 2 * SECOND;
        // Instances that wait for the store do not sleep: they try again all the time.
        while self.is_store_away() && self.now + 50 * SECOND < end {
            self.now += 50 * SECOND;
            self.turns();
        }
        self.now = end.max(self.now);
        self.pass(milliseconds.min(2 * SECOND));
    }

    fn is_store_away(&self) -> bool {
        self.store.change(|inner| inner.is_away)
            || self.cut_off.values().any(|until| *until > self.now)
    }

    /// An instance that runs, if there is one.
    fn any(&mut self) -> Option<usize> {
        let running: Vec<usize> = self
            .instances
            .keys()
            .copied()
            .filter(|number| !self.is_stopped(*number))
            .collect();
        (!running.is_empty()).then(|| *self.dice.pick(&running))
    }

    fn play(mut self) -> (i64, i64, Tally) {
        self.pass(3 * SECOND);
        // Trouble begins when crawlers are accused.
        self.hours(26);
        if self.dice.one_in(2) {
            for _ in 0..3 {
                self.losses();
                self.hours(26);
            }
            return self.end();
        }
        for _ in 0..4 {
            for _ in 0..6 {
                self.episode();
            }
            // The host is in use, and hours pass.
            let hours = 1 + self.dice.below(12);
            self.hours(hours);
        }
        self.end()
    }

    fn episode(&mut self) {
        if self.dice.one_in(2) {
            self.trouble();
        }
        if self.dice.one_in(2) {
            self.order();
        }
        for _ in 0..12 {
            match self.dice.below(8) {
                0 | 1 => self.fetch(),
                2..=4 => self.obey(),
                5 => drop(self.violate()),
                6 => self.store.change(super::simulated::Inner::replicate),
                _ => self.race(),
            }
            let pause = *self.dice.pick(&[1, 200, 400, 1_500]);
            self.pass(pause);
        }
    }

    /// All instances have the same marks, and the same pause.
    fn agree(&mut self) {
        let mut all = self
            .instances
            .values()
            .map(|instance| instance.orders.in_force());
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
    fn hours(&mut self, hours: i64) {
        for _ in 0..hours {
            self.later((HOUR - 1) * SECOND);
            self.visit_all();
            self.obey();
            self.pass(SECOND);
        }
    }

    /// All is well from now on: says how long after a violation is recorded for the first time, and
    /// how long it took to be.
    fn end(mut self) -> (i64, i64, Tally) {
        self.store
            .change(|inner| (inner.is_away, inner.loses_answers) = (false, 0));
        self.stopped.clear();
        self.cut_off.clear();
        let left: Vec<(usize, Disk)> = std::mem::take(&mut self.disks)
            .into_iter()
            .map(|(number, (disk, _))| (number, disk))
            .collect();
        left.into_iter()
            .for_each(|(number, disk)| self.start(number, disk));
        let well = self.now;
        self.caught = None;
        for _ in 0..2 * 54 {
            self.now += 30 * 60 * SECOND - 8 * SECOND;
            self.pass(2 * SECOND);
            self.visit_all();
            self.pass(SECOND);
            self.violate();
            self.pass(5 * SECOND);
            if let Some(took) = self.caught {
                self.agree();
                return (self.now - well, took, self.tally);
            }
        }
        panic!("no violator is caught in the end")
    }
}

#[test]
fn in_random_lives_no_obedient_crawler_is_accused_and_violators_are_caught() {
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
    let (mut worst, mut slowest, mut all) = (0, 0, Tally::default());
    for seed in first..first + count {
        let life = Life::new(seed);
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
