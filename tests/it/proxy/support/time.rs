//! A clock that the test controls: hours pass in no time (`crawlgate run --clock`).

use super::{Gate, Setup, eventually, read};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

impl Setup {
    /// With a clock that [`Gate::live_through`] and [`Gate::set_clock`] move.
    pub fn with_clock(self) -> Setup {
        self.with_clock_set(0)
    }

    /// The same, with the clock set forward, or back, by these seconds at the start.
    pub fn with_clock_set(self, seconds: i64) -> Setup {
        let file = self.directory.path().join("clock");
        fs::write(&file, format!("elapsed 0s set {seconds}s")).expect("a clock");
        self.argument("--clock").argument(file.display())
    }
}

impl Gate {
    /// Lets seconds pass.
    pub fn live_through(&mut self, seconds: i64) {
        self.move_clock(seconds, 0);
    }

    /// Sets the clock forward, or back, as somebody with the rights to might.
    pub fn set_clock(&mut self, seconds: i64) {
        self.move_clock(0, seconds);
    }

    /// The same while nobody serves.
    pub fn write_clock(&self, elapsed: i64, set: i64) -> (i64, i64) {
        let (elapsed_before, set_before) = self.shifts();
        let (elapsed, set) = (elapsed_before + elapsed, set_before + set);
        let new = self.path("new-clock");
        fs::write(&new, format!("elapsed {elapsed}s set {set}s")).expect("a clock");
        fs::rename(new, self.path("clock")).expect("the clock in its place");
        (elapsed, set)
    }

    /// By how many seconds the clock was moved; not at all without a clock of its own.
    fn shifts(&self) -> (i64, i64) {
        let text = read(&self.path("clock"));
        let numbers = text
            .split_whitespace()
            .filter_map(|word| word.strip_suffix('s')?.parse().ok());
        let numbers: Vec<i64> = numbers.collect();
        if let [elapsed, set] = numbers[..] {
            (elapsed, set)
        } else {
            (0, 0)
        }
    }

    /// The time by its clock, in seconds since 1970.
    pub fn now(&self) -> i64 {
        let (elapsed, set) = self.shifts();
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        i64::try_from(since.as_secs()).expect("before the end of time") + elapsed + set
    }

    /// Waits until everything that happened is in the state store. What is told to the store once a
    /// second is there after two.
    pub fn wait_until_stored(&self) {
        let now = self.now();
        eventually("a commit of the state store", || {
            self.last_commit().filter(|at| *at > now + 2)
        });
    }

    fn move_clock(&mut self, elapsed: i64, set: i64) {
        let said = |gate: &Gate| {
            gate.log
                .text()
                .matches("developer's clock was moved")
                .count()
        };
        let before = said(self);
        self.write_clock(elapsed, set);
        // Each process that lives says so, after an upgrade more than one.
        eventually("the clock is moved", || {
            (said(self) >= before + self.living()).then_some(())
        });
    }
}
