//! Random lives of the real binary: edits of the policy, fetches, clocks, crashes, upgrades, and
//! crawlers that keep to the rules by any copy that they hold. None of them is ever called a
//! violator; somebody else in their name, who asks for what all copies close, always is. Knows the
//! words of docs/semantics.md, and nothing of how crawlgate remembers.
//!
//! `CRAWLGATE_SEED` plays one life, `CRAWLGATE_STEPS` makes all of them longer.

use super::cast::*;
use super::model::*;
use super::stage::find_record;
use crate::proxy::support::random::{Random, seed_in_environment};
use crate::proxy::support::{Gate, Origin, Response, Setup, eventually, read};
use std::time::Instant;

mod upgrades;
mod upsets;

struct FetchState {
    gate: Gate,
    random: Random,
    seed: u64,
    began: Instant,
    /// Seconds that were made to pass.
    passed: i64,
    asked: usize,
    in_force: Said,
    /// What was in force before, and until when.
    before: Vec<(Said, f64)>,
    copies: Vec<Vec<Vec<Copy>>>,
    held: Vec<SupersededVersion>,
    last_page: Vec<[f64; 2]>,
    seen: [f64; 2],
    watched_since: [f64; 2],
    /// When robots.txt answered 503: from when until when.
    unavailable: Vec<(f64, f64)>,
    /// What came before is not remembered, or not by its true age.
    known_since: f64,
    /// Since when crawlers are told apart, by what is remembered.
    told_apart_since: f64,
    /// How far the clock was set in all, and whether by a few seconds at the moment.
    set: f64,
    nudged: bool,
    paused: bool,
    /// Accusations since the last start.
    accused: usize,
    trail: Vec<String>,
}

impl Drop for FetchState {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let trail = &self.trail[self.trail.len().saturating_sub(60)..];
            eprintln!(
                "CRAWLGATE_SEED={} after {} steps:\n{}",
                self.seed,
                self.trail.len(),
                trail.join("\n")
            );
        }
    }
}

impl FetchState {
    fn begin(seed: u64) -> FetchState {
        let mut random = Random(seed);
        let first = some_rules(&mut random);
        let setup = Setup::before(Origin::plain().address)
            .policy("shop", &first.policy(&HOSTS.join(", "), ""));
        let setup = setup
            .with_clock()
            .settings("trusted_proxies: [127.0.0.1]\nlogs: { events: events.log }");
        let log = setup
            .policies()
            .parent()
            .expect("a directory")
            .join("access.log");
        let gate = setup
            .argument("--access-log")
            .argument(log.display())
            .replaceable()
            .start();
        // What another server gave to all of them an hour ago, and that allows everything.
        let from_before = Copy {
            said: Said::default(),
            at: -3_600.0,
            served: -3_600.0,
            validators: None,
        };
        let mut life = FetchState {
            gate,
            random,
            seed,
            began: Instant::now(),
            passed: 0,
            asked: 0,
            in_force: said(&first),
            before: Vec::new(),
            copies: vec![vec![vec![from_before]; 2]; CACHES],
            held: Vec::new(),
            last_page: vec![[f64::NEG_INFINITY; 2]; CRAWLERS.len()],
            seen: [0.0; 2],
            watched_since: [0.0; 2],
            unavailable: Vec::new(),
            known_since: 0.0,
            told_apart_since: 0.0,
            set: 0.0,
            nudged: false,
            paused: false,
            accused: 0,
            trail: Vec::new(),
        };
        for host in 0..2 {
            life.ask(BYSTANDER, "203.0.113.99", host, "/");
            life.watched_since[host] = life.now();
        }
        // Of half of them the host is watched for longer than anybody keeps a copy.
        let hours = if seed.is_multiple_of(2) {
            7 * 24 + 1
        } else {
            life.random.between(1, 30)
        };
        life.pass(hours * HOUR, true);
        life
    }

    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64() + self.passed as f64
    }

    fn note(&mut self, what: String) {
        self.trail.push(format!("{:>12.1} {what}", self.now()));
    }

    fn live_through(&mut self, seconds: i64) {
        self.gate.live_through(seconds);
        self.passed += seconds;
    }

    fn pass(&mut self, seconds: i64, in_use: bool) {
        self.note(format!(
            "{seconds} s pass, {}",
            if in_use { "in use" } else { "in silence" }
        ));
        for done in (0..seconds).step_by(21_600) {
            self.live_through((seconds - done).min(21_600));
            for host in 0..if in_use { 2 } else { 0 } {
                assert_eq!(self.ask(BYSTANDER, "203.0.113.99", host, "/"), "allowed");
            }
        }
    }

    fn request(
        &mut self,
        method: &str,
        agent: &str,
        from: &str,
        host: usize,
        path: &str,
        more: &str,
    ) -> (Response, String) {
        self.asked += 1;
        let target = format!("{path}?request={}", self.asked);
        let headers = format!("User-Agent: {agent}\r\nX-Forwarded-For: {from}\r\n{more}");
        let response = self.gate.ask(method, HOSTS[host], &target, &headers);
        let kind = find_record(&self.gate, &target)["kind"]
            .as_str()
            .expect("a kind")
            .to_owned();
        let now = self.now();
        if now - self.seen[host] > DAY - MARGIN {
            self.watched_since[host] = now;
        }
        self.seen[host] = now;
        (response, kind)
    }

    fn ask(&mut self, agent: &str, from: &str, host: usize, path: &str) -> String {
        let (answer, kind) = self.request("GET", agent, from, host, path, "");
        // Whom a pause turns away is not counted besides.
        self.accused += usize::from(ACCUSATIONS.contains(&kind.as_str()) && answer.status != 503);
        kind
    }

    /// One thing that happens.
    fn step(&mut self) {
        let (mut crawler, host) = (self.random.below(CRAWLERS.len()), self.random.below(2));
        // Those that keep a delay have more to get wrong.
        if !CRAWLERS[crawler].honours_delay {
            crawler = self.random.below(CRAWLERS.len());
        }
        match self.random.below(100) {
            0..42 => self.page(crawler, host),
            42..58 => self.fetch(crawler, host),
            58..72 => self.forger(crawler, host),
            72..82 => {
                let rules = some_rules(&mut self.random);
                self.note(format!("policy: {:?}", said(&rules)));
                self.gate
                    .write_policy("shop", &rules.policy(&HOSTS.join(", "), ""));
                let reloaded = self.gate.command(&["reload"]);
                assert!(reloaded.status.success(), "{reloaded:?}");
                self.comes_into_force(said(&rules));
            }
            82..92 => {
                let seconds = self.random.between(1, 15 * HOUR);
                let in_use = self.random.percent(90);
                self.pass(seconds, in_use);
            }
            92..94 => self.pause_or_resume(),
            94..96 => self.restart(),
            96..98 => self.upgrade(),
            98 => self.nudge_clock(),
            _ => self.set_clock(),
        }
    }

    fn comes_into_force(&mut self, said: Said) {
        let now = self.now();
        if said != self.in_force {
            self.before
                .push((std::mem::replace(&mut self.in_force, said), now));
        }
    }

    /// Copies that a crawler may go by.
    fn valid(&self, crawler: &Crawler, host: usize) -> Vec<Copy> {
        let fresh = |copy: &&Copy| self.now() - copy.at <= crawler.keeps - 10.0;
        self.copies[crawler.cache][host]
            .iter()
            .filter(fresh)
            .cloned()
            .collect()
    }

    /// A crawler asks for a page that one of its copies allows, as soon as that copy lets it.
    fn page(&mut self, number: usize, host: usize) {
        let crawler = &CRAWLERS[number];
        let Some(copy) = self.random.one(&self.valid(crawler, host)).cloned() else {
            return self.fetch(number, host);
        };
        let known = copy.validators.is_some() && copy.served > self.known_since;
        // Where crawlgate cannot know of the copy it goes by what it was shown since; see
        // docs/semantics.md, Traps.
        let may = |path: &&&str| copy.said.allows(path) && (known || **path != TRAP);
        let allowed: Vec<&str> = PATHS.iter().filter(may).copied().collect();
        let closed_now: Vec<&str> = allowed
            .iter()
            .filter(|path| !self.in_force.allows(path))
            .copied()
            .collect();
        let closed_now = if self.random.percent(80) {
            closed_now
        } else {
            Vec::new()
        };
        let path = *self
            .random
            .one(&closed_now)
            .or(self.random.one(&allowed))
            .expect("`/` is always open");
        if let Some(delay) = copy.said.delay.filter(|_| crawler.honours_delay) {
            let wait = self.last_page[number][host] + delay - self.now();
            if wait > 0.0 {
                self.live_through(wait.ceil() as i64);
            }
            if self.now() - copy.at > crawler.keeps - 10.0 {
                return;
            }
        }
        let kind = self.ask(crawler.agent, crawler.address, host, path);
        self.last_page[number][host] = self.now();
        self.note(format!(
            "{} asks {} for {path} by its copy of {:.1}: {kind}",
            crawler.agent, HOSTS[host], copy.at
        ));
        assert!(
            !ACCUSATIONS.contains(&kind.as_str()),
            "it keeps to {copy:?}, and is called {kind}",
            copy = copy.said
        );
        if known && path != ELSEWHERE {
            assert!(
                ["allowed", "stale_copy"].contains(&kind.as_str()),
                "crawlgate knows of its copy: {kind}"
            );
        }
    }

    fn fetch(&mut self, number: usize, host: usize) {
        let crawler = &CRAWLERS[number];
        let with_validators = self.copies[crawler.cache][host]
            .iter()
            .filter(|copy| copy.validators.is_some());
        let with_validators: Vec<Copy> = with_validators.cloned().collect();
        let copy = self
            .random
            .one(&with_validators)
            .cloned()
            .filter(|_| self.random.percent(50));
        let (by_tag, head) = (self.random.percent(50), self.random.percent(10));
        let condition = match copy.as_ref().and_then(|copy| copy.validators.as_ref()) {
            Some((tag, _)) if by_tag => format!("If-None-Match: {tag}\r\n"),
            Some((_, date)) => format!("If-Modified-Since: {date}\r\n"),
            None => String::new(),
        };
        let method = if head { "HEAD" } else { "GET" };
        let at = self.now();
        let (answer, _) = self.request(
            method,
            crawler.agent,
            crawler.address,
            host,
            "/robots.txt",
            &condition,
        );
        let condition = condition.trim_end();
        self.note(format!(
            "{} {method} {} {condition}: {}",
            crawler.agent, HOSTS[host], answer.status
        ));
        match (answer.status, copy) {
            (503, _) if !head => self.unreachable(crawler, host),
            (200 | 304 | 503, _) if head => {}
            (304, Some(copy)) => {
                assert_eq!(copy.said, self.in_force, "it hears that its copy is good");
                self.served(
                    crawler,
                    host,
                    Copy {
                        at,
                        served: at,
                        ..copy
                    },
                );
            }
            (200, _) => {
                let said = Said::read(answer.text());
                assert_eq!(said, self.in_force);
                let field = |name: &str| answer.field(name).expect("a validator").to_owned();
                let validators = Some((field("etag"), field("last-modified")));
                self.served(
                    crawler,
                    host,
                    Copy {
                        said,
                        at,
                        served: at,
                        validators,
                    },
                );
            }
            (status, _) => panic!("robots.txt is answered {status}"),
        }
    }

    fn served(&mut self, crawler: &Crawler, host: usize, copy: Copy) {
        let (said, at) = (copy.said.clone(), self.now());
        self.held.push(SupersededVersion {
            said,
            host,
            cache: Some(crawler.cache),
            at,
        });
        self.copies[crawler.cache][host].push(copy);
    }

    /// It may use its copies for as long again (RFC 9309 section 2.4).
    fn unreachable(&mut self, crawler: &Crawler, host: usize) {
        let now = self.now();
        for copy in self.valid(crawler, host) {
            self.copies[crawler.cache][host].push(Copy { at: now, ..copy });
        }
    }

    /// The earliest moment at which the crawler can have fetched a copy that it may still use:
    /// every crawler may have asked while robots.txt answered 503.
    fn cached_since(&self, crawler: &Crawler) -> f64 {
        let (now, window) = (self.now(), crawler.keeps + self.set + MARGIN);
        let spans = self.unavailable.iter().rev();
        spans.fold(now - window, |cached_since, (since, until)| {
            match *until >= cached_since {
                true => cached_since.min(since - window),
                false => cached_since,
            }
        })
    }

    /// Everything that crawlgate may take it to hold, and perhaps more.
    fn may_hold(&self, crawler: &Crawler, host: usize) -> Vec<Said> {
        let cached_since = self.cached_since(crawler);
        let told_apart = self.told_apart_since < cached_since;
        let of = |held: &&SupersededVersion| {
            let same = held
                .cache
                .is_none_or(|cache| cache == crawler.cache || !told_apart);
            held.host == host && same && held.at >= cached_since
        };
        self.held
            .iter()
            .filter(of)
            .map(|held| held.said.clone())
            .chain([self.in_force.clone()])
            .collect()
    }

    /// Whether the host was certainly observed for as long as this crawler may use a copy.
    fn is_watched(&self, crawler: &Crawler, host: usize) -> bool {
        self.watched_since[host] < self.cached_since(crawler)
            && self.now() - self.seen[host] < DAY - MARGIN
    }

    /// Somebody else takes its name, from another address.
    fn forger(&mut self, number: usize, host: usize) {
        let crawler = &CRAWLERS[number];
        if self.random.percent(20) {
            let (answer, _) = self.request(
                "GET",
                crawler.agent,
                crawler.forger,
                host,
                "/robots.txt",
                "",
            );
            self.note(format!(
                "{}'s forger GET {}: {}",
                crawler.agent, HOSTS[host], answer.status
            ));
            let (said, at) = (self.in_force.clone(), self.now());
            match answer.status {
                200 => self.held.push(SupersededVersion {
                    said,
                    host,
                    cache: Some(crawler.cache),
                    at,
                }),
                status => assert_eq!(status, 503),
            }
            return;
        }
        let (watched, held) = (self.is_watched(crawler, host), self.may_hold(crawler, host));
        let closed: Vec<&str> = PATHS
            .iter()
            .filter(|path| held.iter().all(|said| !said.allows(path)))
            .copied()
            .collect();
        let path = *self
            .random
            .one(&closed)
            .expect("`/never/` is closed in every version");
        let kind = self.ask(crawler.agent, crawler.forger, host, path);
        self.note(format!(
            "{}'s forger asks {} for {path}: {kind}",
            crawler.agent, HOSTS[host]
        ));
        let reported = ["violation", "trapped"].contains(&kind.as_str());
        assert!(
            reported || !watched,
            "{path} is closed in all of {held:?}, and that is called {kind}"
        );
        if crawler.honours_delay && watched && held.iter().all(|said| said.delay.is_some()) {
            self.ask(crawler.agent, crawler.forger, host, "/");
            let kind = self.ask(crawler.agent, crawler.forger, host, "/");
            self.note(format!(
                "{}'s forger asks {} twice: {kind}",
                crawler.agent, HOSTS[host]
            ));
            assert!(
                ["too_fast", "trapped"].contains(&kind.as_str()),
                "it keeps none of {held:?}: {kind}"
            );
        }
    }

    /// What is written down as evidence names nobody who kept to the rules, and the metrics count
    /// what was told.
    fn end(&mut self) {
        let events = read(&self.gate.path("events.log"));
        for event in events.lines() {
            let event: serde_json::Value = serde_json::from_str(event).expect("JSON");
            let accused = ACCUSATIONS.iter().any(|kind| event["kind"] == *kind);
            let obedient = CRAWLERS
                .iter()
                .any(|crawler| event["client"] == crawler.address);
            assert!(!(accused && obedient), "{event}");
        }
        eventually("all accusations are counted", || {
            let metrics = self.gate.metrics();
            let series = metrics
                .lines()
                .filter(|line| line.starts_with("crawlgate_violations_total"));
            let series = series.filter(|line| !line.contains("kind=\"unproven\""));
            let counted: f64 = series
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum();
            (counted == self.accused as f64).then_some(())
        });
    }
}

#[test]
fn only_crawlers_that_obey_no_copy_are_accused() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let steps = number("CRAWLGATE_STEPS").unwrap_or(100);
    let seeds = seed_in_environment().map_or_else(|| vec![1, 2, 3, 4], |seed| vec![seed]);
    std::thread::scope(|scope| {
        let lives = seeds.into_iter().map(|seed| {
            scope.spawn(move || {
                let mut life = FetchState::begin(seed);
                (0..steps).for_each(|_| life.step());
                life.end();
            })
        });
        let lives: Vec<_> = lives.collect();
        for life in lives {
            assert!(life.join().is_ok(), "see the life above");
        }
    });
}
