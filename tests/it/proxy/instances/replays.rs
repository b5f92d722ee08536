//! Random lives of three processes and a real Redis, with the trouble of `exchange::tests::lives`
//! as far as a minute has room for it: no obedient crawler is accused, and each instance catches a
//! violator once all is well.
//!
//! Time is real, so that no cached copy ends within a life, and clocks differ by up to four
//! seconds. The model knows nothing of crawlgate but the answers to `/robots.txt`: an obedient
//! crawler asks for what its last answer allows.
//!
//! `EXCHANGE_REPLAYS=100` plays more of them, six at a time, from `EXCHANGE_FIRST` on;
//! `CRAWLGATE_SEED=N` one alone, and says what happens. Without them two lives are played.

use super::{Fleet, instances, kind, policy, standings};
use crate::proxy::support::random::Random;
use crate::proxy::support::redis::RedisServer;
use crate::proxy::support::upgrade::signal;
use crate::proxy::support::{Connection, Gate, HOST, Origin, Response, eventually, read};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const COUNT: usize = 3;
const STEPS: usize = 24;
/// Longer than an instance waits for the word of another, and than a time-out of the store.
const LONG: Duration = Duration::from_millis(6_500);
/// A process that was dead for longer may find that its hosts were not observed meanwhile: after a
/// crash that is so after 20 seconds without a commit.
const UNOBSERVED: Duration = Duration::from_secs(15);
/// Paths that policies allow and disallow.
const PATHS: [&str; 3] = ["/a/", "/b/", "/c/"];
/// Disallowed by every file, also by the one from before crawlgate.
const NEVER: &str = "/cart/";
const OBEDIENT: [&str; 3] = [
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
    "Mozilla/5.0 (compatible; DuckDuckBot-Https/1.1; https://duckduckgo.com/duckduckbot)",
];
const VIOLATOR: &str = "CCBot/2.0 (https://commoncrawl.org/faq/)";

/// What happened, so that it is known that lives try what they are for.
#[derive(Default)]
struct Tally {
    requests: AtomicU64,
    /// Requests of obedient crawlers for paths that the file in force where they came disallows.
    stale: AtomicU64,
    fetches: AtomicU64,
    kills: AtomicU64,
    stops: AtomicU64,
    losses: AtomicU64,
    /// Lives in which a violator is to be caught, and the longest time until it was, in
    /// milliseconds.
    caught: AtomicU64,
    slowest: AtomicU64,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

struct Life<'a> {
    seed: u64,
    random: Random,
    tally: &'a Tally,
    origin: Origin,
    redis: RedisServer,
    gates: Vec<Gate>,
    /// Which processes run, and until when those that are stopped are.
    is_dead: [bool; COUNT],
    stopped: [Option<Instant>; COUNT],
    paused: Option<Instant>,
    is_store_dead: bool,
    /// Paths that the last policy disallows, as bits; the same as each instance was told last.
    target: usize,
    told: [usize; COUNT],
    /// What the crawlers' copies disallow.
    copies: [Option<BTreeSet<String>>; OBEDIENT.len()],
    /// The store that a process that does not run was settled in.
    remembered: [Option<String>; COUNT],
    died: [Option<Instant>; COUNT],
    /// Observation began anew somewhere: only a day later a violator is called one.
    began_anew: bool,
    number: usize,
    log: Vec<String>,
}

fn paths(set: usize) -> String {
    let some = PATHS
        .iter()
        .enumerate()
        .filter(|(place, _)| set & (1 << place) != 0)
        .map(|(_, path)| *path);
    std::iter::once(NEVER)
        .chain(some)
        .collect::<Vec<_>>()
        .join(", ")
}

/// One request, where the process may die meanwhile.
fn ask(address: SocketAddr, agent: &str, path: &str) -> Option<Response> {
    // A process that was just killed accepts nothing.
    drop(TcpStream::connect(address).ok()?);
    let mut connection = Connection::open(address);
    connection.send(&format!(
        "GET {path} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    ));
    Some(connection.response("GET"))
}

impl Life<'_> {
    fn start(seed: u64, tally: &Tally) -> Life<'_> {
        let mut random = Random(seed);
        let target = random.below(1 << PATHS.len());
        let (redis, origin) = (RedisServer::start(), Origin::plain());
        let mut life = Life {
            seed,
            random,
            tally,
            origin,
            redis,
            gates: Vec::new(),
            is_dead: [false; COUNT],
            stopped: [None; COUNT],
            paused: None,
            is_store_dead: false,
            target,
            told: [target; COUNT],
            copies: Default::default(),
            remembered: Default::default(),
            died: [None; COUNT],
            began_anew: false,
            number: 0,
            log: Vec::new(),
        };
        for _ in 0..COUNT {
            let gate = life.instance();
            life.gates.push(gate);
        }
        Fleet::wait_until_these_accuse(&life.gates);
        life
    }

    /// A fresh instance with a clock that is off.
    fn instance(&mut self) -> Gate {
        let ahead = self.random.below(9) as i64 - 4;
        let setup =
            super::setup(&self.origin, &format!("store: '{}'", self.redis.url())).with_clock();
        let setup = setup.policy("shop", &policy(&paths(self.target)));
        fs::write(
            setup.policies().with_file_name("clock"),
            format!("elapsed 0s set {ahead}s"),
        )
        .expect("a clock");
        setup.start()
    }

    fn say(&mut self, what: String) {
        if std::env::var_os("CRAWLGATE_SEED").is_some() {
            println!("{what}");
        }
        self.log.push(what);
    }

    fn steps(&mut self) {
        for _ in 0..STEPS {
            self.resume_ended_pauses();
            match self.random.below(16) {
                0 | 1 => self.policy_changes(),
                2 | 3 => self.sent_to_one(),
                4 => self.kill(),
                5 => self.restart(),
                6 => self.stop(),
                7 => self.store_trouble(),
                8 => thread::sleep(Duration::from_millis(self.random.below(1_500) as u64)),
                _ => self.requests(),
            }
        }
    }

    fn running(&mut self) -> Option<usize> {
        let running: Vec<usize> = (0..COUNT)
            .filter(|place| !self.is_dead[*place] && self.stopped[*place].is_none())
            .collect();
        if running.is_empty() {
            None
        } else {
            Some(running[self.random.below(running.len())])
        }
    }

    fn policy_changes(&mut self) {
        self.target = self.random.below(1 << PATHS.len());
        self.sent_to_one();
    }

    /// The last policy reaches an instance.
    fn sent_to_one(&mut self) {
        let place = self.random.below(COUNT);
        self.tell(place);
    }

    fn tell(&mut self, place: usize) {
        self.say(format!("policy {:03b} to {place}", self.target));
        self.gates[place].write_policy("shop", &policy(&paths(self.target)));
        self.told[place] = self.target;
    }

    fn kill(&mut self) {
        let Some(place) = self.running() else { return };
        self.say(format!("kill {place}"));
        add(&self.tally.kills);
        self.remembered[place] = self.settled(place);
        self.gates[place].signal("KILL");
        self.gates[place].ended();
        self.is_dead[place] = true;
        self.died[place] = Some(Instant::now());
    }

    fn restart(&mut self) {
        match (0..COUNT).find(|place| self.is_dead[*place]) {
            Some(place) => self.revive(place),
            None => {
                let Some(place) = self.running() else { return };
                self.say(format!("restart {place}"));
                self.remembered[place] = self.settled(place);
                self.gates[place].signal("TERM");
                self.gates[place].ended();
                self.revive(place);
            }
        }
    }

    /// The store that an instance is settled in.
    fn settled(&self, place: usize) -> Option<String> {
        let store = instances(&self.gates[place]);
        let own = store["members"]
            .as_array()?
            .iter()
            .find(|found| found["member"]["id"] == store["id"])?;
        let settled = &own["member"]["settled"];
        Some(format!(
            "{} {}",
            settled["run_id"].as_str()?,
            settled["epoch"].as_str()?
        ))
    }

    /// The store that answers now.
    fn store(&self) -> Option<String> {
        if self.is_store_dead || self.paused.is_some() {
            return None;
        }
        let info: String = self.redis.command(&["INFO", "server"]);
        let run = info
            .lines()
            .find_map(|line| line.trim_end().strip_prefix("run_id:"))?
            .to_owned();
        let epoch: Option<String> = self.redis.command(&["GET", "crawlgate:epoch"]);
        Some(format!("{run} {}", epoch?.strip_prefix("crawlgate ")?))
    }

    fn revive(&mut self, place: usize) {
        self.say(format!("start {place}"));
        // It remembers another store than the one that it finds: what was served meanwhile is not
        // known.
        let (remembered, found) = (self.remembered[place].take(), self.store());
        self.began_anew |= found.is_none() || remembered != found;
        self.gates[place].start_again();
        self.is_dead[place] = false;
        self.began_anew |= self.died[place]
            .take()
            .is_some_and(|died| died.elapsed() > UNOBSERVED);
    }

    fn stop(&mut self) {
        let Some(place) = self.running() else { return };
        self.say(format!("stop {place}"));
        add(&self.tally.stops);
        signal(self.gates[place].pid(), "STOP");
        self.stopped[place] = Some(Instant::now() + LONG);
    }

    fn store_trouble(&mut self) {
        if self.is_store_dead {
            self.say("start the store".into());
            self.redis.program.start_again();
            self.is_store_dead = false;
            return;
        }
        if self.paused.is_some() {
            return;
        }
        add(&self.tally.losses);
        match self.random.below(3) {
            0 => {
                self.say("pause the store".into());
                self.redis.pause();
                self.paused = Some(Instant::now() + LONG);
            }
            1 => {
                self.say("flush the store".into());
                let _: () = self.redis.command(&["FLUSHALL"]);
            }
            _ => {
                self.say("kill the store".into());
                self.redis.program.kill();
                self.is_store_dead = true;
            }
        }
    }

    fn resume_ended_pauses(&mut self) {
        for place in 0..COUNT {
            if self.stopped[place].is_some_and(|until| until <= Instant::now()) {
                self.go_on(place);
            }
        }
        if self.paused.is_some_and(|until| until <= Instant::now()) {
            self.say("resume the store".into());
            self.redis.resume();
            self.paused = None;
        }
    }

    fn go_on(&mut self, place: usize) {
        self.say(format!("go on {place}"));
        signal(self.gates[place].pid(), "CONT");
        self.stopped[place] = None;
    }

    fn requests(&mut self) {
        for _ in 0..self.random.below(12) {
            let Some(place) = self.running() else { return };
            let crawler = self.random.below(OBEDIENT.len());
            if self.random.below(4) == 0 {
                self.fetch(place, crawler);
            } else {
                self.page(place, crawler);
            }
            if self.random.below(8) == 0 {
                self.number += 1;
                let path = format!("{NEVER}{}", self.number);
                ask(self.gates[place].address, VIOLATOR, &path);
            }
        }
    }

    fn fetch(&mut self, place: usize, crawler: usize) {
        let Some(answer) = ask(self.gates[place].address, OBEDIENT[crawler], "/robots.txt") else {
            return;
        };
        self.say(format!(
            "crawler {crawler} fetches from {place}: {}",
            answer.status
        ));
        if answer.status != 200 {
            return;
        }
        add(&self.tally.fetches);
        let rules = answer
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("Disallow: "));
        self.copies[crawler] = Some(rules.map(str::to_owned).collect());
    }

    fn page(&mut self, place: usize, crawler: usize) {
        let Some(copy) = &self.copies[crawler] else {
            return;
        };
        let path = PATHS[self.random.below(PATHS.len())];
        if copy.contains(path) {
            return;
        }
        let is_stale = paths(self.told[place]).contains(path);
        self.number += 1;
        let path = format!("{path}{}", self.number);
        self.say(format!("crawler {crawler} asks {place} for {path}"));
        if ask(self.gates[place].address, OBEDIENT[crawler], &path).is_some() {
            add(&self.tally.requests);
            self.tally
                .stale
                .fetch_add(u64::from(is_stale), Ordering::Relaxed);
        }
    }

    /// All runs, and is told the same policy; since when.
    fn all_is_well(&mut self) -> Instant {
        self.say("all is well".into());
        if self.paused.take().is_some() {
            self.redis.resume();
        }
        if self.is_store_dead {
            self.redis.program.start_again();
            self.is_store_dead = false;
        }
        for place in 0..COUNT {
            if self.stopped[place].is_some() {
                self.go_on(place);
            }
            if self.is_dead[place] {
                self.revive(place);
            }
            self.tell(place);
        }
        let since = Instant::now();
        Fleet::wait_until_these_accuse(&self.gates);
        for gate in &self.gates {
            assert_eq!(standings(&instances(gate)).len(), COUNT);
        }
        since
    }

    fn is_caught(&mut self, well_since: Instant) {
        for place in 0..COUNT {
            eventually("a violator is caught", || {
                self.number += 1;
                let found = kind(
                    &self.gates[place],
                    VIOLATOR,
                    &format!("{NEVER}caught-{}", self.number),
                );
                (found == "violation").then_some(())
            });
        }
        add(&self.tally.caught);
        let took = u64::try_from(well_since.elapsed().as_millis()).expect("short");
        self.tally.slowest.fetch_max(took, Ordering::Relaxed);
    }

    /// No line of any log accuses an obedient crawler.
    fn assert_no_accusation(&self) {
        for (place, gate) in self.gates.iter().enumerate() {
            for line in read(&gate.path("access.log")).lines() {
                let Ok(line) = serde_json::from_str::<Value>(line) else {
                    continue;
                };
                let agent = line["user_agent"].as_str().expect("a user agent");
                let is_accused = line["kind"] == "violation" && OBEDIENT.contains(&agent);
                assert!(!is_accused, "instance {place} accuses: {line}");
            }
        }
    }

    fn live(&mut self) {
        self.steps();
        let well_since = self.all_is_well();
        if !self.began_anew {
            self.is_caught(well_since);
        }
        (0..OBEDIENT.len()).for_each(|crawler| {
            self.fetch(crawler % COUNT, crawler);
            (0..COUNT).for_each(|place| self.page(place, crawler));
        });
        // Records wait for at most five seconds to be confirmed.
        for gate in &self.gates {
            eventually("no record waits", || {
                (instances(gate)["records_waiting"] == 0).then_some(())
            });
        }
        self.assert_no_accusation();
    }
}

/// Plays a life; what happened in it, where it failed.
fn play(seed: u64, tally: &Tally) {
    let mut life = Life::start(seed, tally);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| life.live()));
    if let Err(panic) = outcome {
        eprintln!(
            "CRAWLGATE_SEED={} plays this life again:\n{}",
            life.seed,
            life.log.join("\n")
        );
        for (place, gate) in life.gates.iter().enumerate() {
            let last = read(&gate.path("access.log"));
            let last: Vec<&str> = last.lines().rev().take(3).collect();
            eprintln!(
                "instance {place}:\n{}\n{}",
                gate.log.text(),
                last.join("\n")
            );
            for words in [
                &["instances"][..],
                &[
                    "explain",
                    "--live",
                    "--host",
                    HOST,
                    "--user-agent",
                    VIOLATOR,
                    NEVER,
                ],
            ] {
                eprintln!("{}", String::from_utf8_lossy(&gate.command(words).stdout));
            }
        }
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn random_lives_with_a_real_store_accuse_no_obedient_crawler() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect("a number"))
    };
    let seeds: Vec<u64> = match number("CRAWLGATE_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("EXCHANGE_REPLAYS").unwrap_or(2)).collect(),
    };
    let first = number("EXCHANGE_FIRST").unwrap_or(0);
    let (tally, next) = (Tally::default(), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..seeds.len().min(6) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    play(first + seed, &tally);
                }
            });
        }
    });
    println!(
        "{} lives: {:?} requests of obedient crawlers, {:?} against the file in force, {:?} fetches; {:?} kills, {:?} stops, \
         {:?} troubles of the store; in {:?} lives a violator was to be caught by all three, at most {:?} ms after all was well",
        seeds.len(),
        tally.requests,
        tally.stale,
        tally.fetches,
        tally.kills,
        tally.stops,
        tally.losses,
        tally.caught,
        tally.slowest,
    );
}
